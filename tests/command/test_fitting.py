"""Classifiers that the command fits."""

from contextlib import nullcontext

import numpy as np
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.pipeline import Pipeline

from looselabels import DecoupledClassifier, Transition
from looselabels.command import fitting
from looselabels.command.fitting import fit, fit_from_proba, read_proba
from looselabels.command.labels import Labels
from looselabels.command.tables import TableError
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
    clf = fit(fitted.X, fitted.y, fitted.labels, model=model, n_jobs=1, refit=False)
    assert isinstance(clf.estimator_, kind)


def test_by_default_the_labels_choose(fitted):
    clf = fit(fitted.X, fitted.y, fitted.labels, refit=False)
    assert set(clf.candidate_losses_) == {"forest", "linear"}


def test_a_design_is_used_as_it_is(fitted):
    design = Transition.partial(["cat", "dog"], labeled=0.9).with_noise(0.05)
    labels = Labels("species", noise=0.0, design=design)
    clf = fit(fitted.X, fitted.y, labels, model="kernel")
    assert clf.transition_ == design


def test_the_seed_decides_the_forest(fitted):
    rows = fitted.X, fitted.y, fitted.labels
    first, again, other = (
        fit(*rows, model="forest", seed=seed, n_jobs=1, refit=False).predict_proba(fitted.X)
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
    one, two = (fit(*rows, n_jobs=n_jobs, refit=False).class_proba_ for n_jobs in (1, 2))
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


def test_class_shares_of_labels_that_are_all_there_are_matched(fitted):
    y = [label or "cat" for label in fitted.y]
    shares = {"cat": 0.45, "dog": 0.55}
    clf = fit(fitted.X, y, fitted.labels._replace(class_prior=shares), model="kernel")
    assert clf.class_prior_.tolist() == [0.45, 0.55]
    assert clf.class_proba_.mean(axis=0).tolist() == pytest.approx([0.45, 0.55], abs=0.02)


# ----------------------------------------------------------------------------------------- --proba

Y = ["cat", "dog", None, "dog"]
TABLE = "dog,cat\n0.25,0.75\n1,0\n0.5,0.5\n0,1\n"


def test_columns_of_probabilities_are_matched_by_name(file):
    noisy = Labels("y", noise=0.1)
    y = ["cat", "dog", "dog", "dog"]
    clf = fit_from_proba(read_proba(file(TABLE), y, noisy), y, noisy)
    assert clf.labels_.tolist() == ["cat", "dog"]
    assert clf.label_scores_.label_proba[0].tolist() == [0.75, 0.25]
    with pytest.raises(ValueError, match=r"names \['cow'\]; it can name \('cat', 'dog'\)"):
        fit_from_proba(read_proba(file(TABLE.replace("cat", "cow")), y, noisy), y, noisy)
    with pytest.raises(ValueError, match=r"lacks \['dog'\]; it must name"):
        fit_from_proba(read_proba(file("cat\n1\n1\n1\n1\n"), y, noisy), y, noisy)


def test_labels_that_are_missing_at_random_need_no_column(file):
    found = read_proba(file(TABLE), Y, Labels("y"))
    assert found.iloc[0].tolist() == [0.25 * 0.75, 0.75 * 0.75, 0.25]
    full = TABLE.replace("\n", ",0\n").replace("cat,0", "cat,(unlabeled)")
    for table, labels in ((full, Labels("y")), (TABLE, Labels("y", negative="other"))):
        assert read_proba(file(table), Y, labels).iloc[1, :2].tolist() == [1, 0]


def test_numbers_are_labels_and_pairs_have_colons(file):
    y = [0, 1, 1, 1]
    table = file(TABLE.replace("dog,cat", "1,0"))
    clf = fit_from_proba(read_proba(table, y, Labels("y")), y, Labels("y", noise=0.1))
    assert clf.label_scores_.label_proba[0].tolist() == [0.75, 0.25]
    design = Transition.combine({"A": Transition.identity(["cat", "dog"])}, {"A": 1})
    labels = Labels("y", design=design, source="s", noise=0.1)
    found = read_proba(file(TABLE.replace("dog,cat", "A: dog,A: cat")), y, labels)
    assert list(found.columns) == [("A", "dog"), ("A", "cat")]
    pairs = [("A", name) for name in ("cat", "dog", "dog", "dog")]
    clf = fit_from_proba(found, pairs, labels)
    assert clf.label_scores_.label_proba[0].tolist() == [0.75, 0.25]


def test_a_cell_that_is_no_number_is_named(file):
    path = file(TABLE.replace("0.5,0.5", "0.5,x"))
    with pytest.raises(TableError, match=r"data.csv, line 4, column 'cat': 'x' is not a number"):
        read_proba(path, Y, Labels("y"))
