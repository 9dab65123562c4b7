"""Classifiers that the command fits."""

from contextlib import nullcontext

import numpy as np
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.pipeline import Pipeline

from looselabels import DecoupledClassifier, Transition
from looselabels.command import fitting
from looselabels.command.fitting import fit, fit_from_proba
from looselabels.command.labels import Labels
from looselabels.learning.density import KernelDensityClassifier
from looselabels.learning.forest import BalancedForestClassifier


@pytest.mark.parametrize(
    ("model", "kind"),
    [
        ("forest", BalancedForestClassifier),
        ("linear", Pipeline),
        ("kernel", KernelDensityClassifier),
        ("boosting", HistGradientBoostingClassifier),
    ],
)
def test_the_name_of_a_model_chooses_the_estimator(model, kind, fitted):
    clf = fit(fitted.X, fitted.y, fitted.labels, model=model, n_jobs=1)
    assert isinstance(clf.estimator_, kind)


def test_by_default_the_labels_choose(fitted):
    clf = fit(fitted.X, fitted.y, fitted.labels)
    assert set(clf.candidate_losses_) == {"forest", "linear"}


def test_a_design_is_used_as_it_is(fitted):
    design = Transition.partial(["cat", "dog"], labeled=0.9).with_noise(0.05)
    labels = Labels("species", noise=0.0, design=design)
    clf = fit(fitted.X, fitted.y, labels, model="kernel")
    assert clf.transition_ == design


def test_the_seed_decides_the_forest(fitted):
    rows = fitted.X, fitted.y, fitted.labels
    first, again, other = (
        fit(*rows, model="forest", seed=seed, n_jobs=1).predict_proba(fitted.X)
        for seed in (1, 1, 2)
    )
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()


def test_few_rows_use_one_thread_except_for_the_large_products_of_kernels(fitted, monkeypatch):
    limits, limit = [], fitting.threadpool_limits
    monkeypatch.setattr(fitting, "threadpool_limits", lambda n: limits.append(n) or limit(n))
    for model in ("boosting", "linear", "kernel"):
        fit(fitted.X, fitted.y, fitted.labels, model=model)
    assert limits == [1, 1, None]


def test_folds_are_fitted_in_threads_except_for_boosting_which_has_its_own(fitted, monkeypatch):
    found, rows = [], (fitted.X, fitted.y, fitted.labels)
    monkeypatch.setattr(
        fitting, "parallel_config", lambda name: found.append(name) or nullcontext()
    )
    for model in ("boosting", "linear"):
        fit(*rows, model=model)
    assert found == ["loky", "threading"]


def test_the_number_of_cores_does_not_change_the_result(fitted):
    rows = fitted.X, fitted.y, fitted.labels
    one, two = (fit(*rows, n_jobs=n_jobs).class_proba_ for n_jobs in (1, 2))
    np.testing.assert_array_equal(one, two)


def test_probabilities_of_another_model_take_the_place_of_features(fitted):
    label_proba = fitted.clf.label_proba_
    clf = fit_from_proba(label_proba, fitted.y, fitted.labels)
    # nearly equal: label_proba_ is calibrated, and is calibrated again here
    np.testing.assert_allclose(clf.class_proba_, fitted.clf.class_proba_, atol=0.02)


def test_known_classes_reach_the_classifier(monkeypatch):
    passed = []

    def keep(clf, *_, **options):
        passed.append(options.get("known_classes"))
        return clf

    for method in ("fit", "fit_from_proba"):
        monkeypatch.setattr(DecoupledClassifier, method, keep)
    known, labels = ["cat", None], Labels("species")
    fit(np.zeros((2, 1)), ["cat", "dog"], labels, model="kernel", known_classes=known)
    fit_from_proba(np.eye(2), ["cat", "dog"], labels, known_classes=known)
    fit(np.zeros((2, 1)), ["cat", "dog"], labels, model="kernel")
    assert passed == [known, known, None]
