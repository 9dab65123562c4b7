"""In the end a forest learns the classes from p(class | x, label) of all rows."""

import warnings
from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier

from looselabels import (
    BalancedForestClassifier,
    DecoupledClassifier,
    Transition,
)
from looselabels.exceptions import IdentifiabilityWarning
from looselabels.learning.classifier import _unseen_classes
from looselabels.learning.forest import ClassForest

X, TRUTH = load_digits(return_X_y=True)
TRAIN, TEST = np.arange(0, 1797, 2), np.arange(1, 1797, 2)
FOREST = BalancedForestClassifier(50, random_state=0)


def noisy(rate, seed=0):
    rng = np.random.default_rng(seed)
    wrong = rng.random(len(TRAIN)) < rate
    return np.where(wrong, rng.integers(10, size=len(TRAIN)), TRUTH[TRAIN])


def partly(share, seed=0, negative=None):
    """Return a share of the labels, none of the negative class."""
    labels = TRUTH[TRAIN].astype(object)
    labels[np.random.default_rng(seed).random(len(labels)) >= share] = None
    if negative is not None:
        labels[TRUTH[TRAIN] == negative] = None
    return labels


def fitted(labels, **options):
    return DecoupledClassifier(FOREST, random_state=0, **options).fit(X[TRAIN], labels)


@pytest.mark.parametrize(
    ("labels", "options"),
    [
        (noisy(0.6), {"noise": 0.54}),
        (partly(0.1), {}),
        (partly(0.3, negative=9), {"negative": 9}),
    ],
    ids=["noisy", "semi-supervised", "multi-positive"],
)
def test_classes_are_predicted_better_than_by_the_inference_alone(labels, options):
    loss = {}
    for refit in (True, False):
        class_proba = fitted(labels, refit=refit, **options).predict_proba(X[TEST])
        loss[refit] = -np.log(class_proba[np.arange(len(TEST)), TRUTH[TEST]] + 1e-9).mean()
    assert loss[True] < loss[False] - 0.02


def test_training_rows_are_predicted_out_of_bag():
    """Labels without any relation to X: nothing is known of a row but its own label.

    In the bag all would agree. Out of bag a label still reaches its row by way of others, whose
    classes were inferred from it: somewhat more than a half agrees.
    """
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 2, 400)
    clf = DecoupledClassifier(FOREST, noise=0.2, random_state=0)
    clf.fit(rng.standard_normal((400, 5)), labels)
    agree = clf.class_proba_.argmax(axis=1) == labels
    assert 0.4 < agree.mean() < 0.7


def test_predictions_are_those_of_the_forest_of_classes_calibrated():
    clf = fitted(noisy(0.2), noise=0.2)
    assert isinstance(clf.class_estimator_, ClassForest)
    raw = clf.class_estimator_.predict(X[TEST])
    assert_allclose(clf.predict_proba(X[TEST]), clf.class_calibration_.apply(raw))
    assert_allclose(
        clf.predict_label_proba(X[TEST]), clf.predict_proba(X[TEST]) @ clf.transition_.proba
    )
    assert not hasattr(clf.class_estimator_, "oob_proba_")


@pytest.mark.parametrize(
    "options",
    [
        {"refit": False},
        {"cv": 3},  # rows were predicted by folds, whose groups a forest would not keep
        {"label_weights": "costs"},  # which it would not know
        {"estimator": RandomForestClassifier(20, min_samples_leaf=10, random_state=0)},
    ],
)
def test_nothing_is_refitted_without_rows_out_of_bag(options):
    clf = DecoupledClassifier(**{"estimator": FOREST, "random_state": 0} | options)
    assert clf.fit(X[TRAIN], partly(0.5)).class_estimator_ is None


def test_nothing_is_refitted_where_labels_are_many(monkeypatch):
    assert fitted(partly(0.5)).class_estimator_ is not None
    monkeypatch.setattr("looselabels.learning.classifier.MOST_DRAWN", 500)
    assert fitted(partly(0.5)).class_estimator_ is None


def test_the_forest_of_classes_has_the_settings_of_the_forest_of_labels():
    clf = fitted(partly(0.5))
    forest = clf.class_estimator_
    assert (forest.n_estimators, forest.max_features, forest.random_state) == (50, "sqrt", 0)


def test_a_refit_that_fails_leaves_the_last_fit_whole(monkeypatch):
    clf = fitted(partly(0.5))
    before = clf.predict_proba(X[TEST])

    def fail(*_):
        raise MemoryError

    monkeypatch.setattr(ClassForest, "fit", fail)
    with pytest.raises(MemoryError):
        clf.fit(X[TRAIN] * 2, noisy(0.5))
    assert_array_equal(clf.predict_proba(X[TEST]), before)


# ----------------------------------------------------------------- labels that tell nothing


def test_rows_whose_label_is_missing_at_random_are_not_in_the_trees_of_labels():
    labels = partly(0.3)
    named = np.array([label is not None for label in labels])
    clf = fitted(labels, refit=False)
    alone = clone(FOREST).fit(X[TRAIN][named], labels[named].astype(int))
    assert clf.label_weights_[-1] == 0
    assert_allclose(clf.estimator_.predict_proba(X[TEST]), alone.predict_proba(X[TEST]))


def test_rows_whose_label_is_missing_for_a_reason_are_in_the_trees():
    clf = fitted(partly(0.3, negative=9), negative=9)
    assert clf.label_weights_[-1] > 0
    assert 9 in clf.estimator_.classes_  # the position of None


def test_without_any_label_nothing_is_left_out():
    design = Transition.partial(["cat", "dog"], labeled=0.3)
    clf = DecoupledClassifier(FOREST, design, random_state=0)
    with (
        pytest.warns(UserWarning, match="not in y"),
        pytest.warns(IdentifiabilityWarning),
    ):
        clf.fit(X[TRAIN], [None] * len(TRAIN))
    assert_allclose(clf.predict_proba(X[TEST]).sum(axis=1), 1)


def test_one_row_of_each_label_is_enough():
    """Every tree has drawn both of them, and nobody else counts."""
    labels = np.full(len(TRAIN), None, dtype=object)
    labels[:2] = "cat", "dog"
    clf = fitted(labels)
    assert_allclose(clf.label_proba_[:2], [[0.5, 0.5, 0]] * 2)
    assert_allclose(clf.predict_proba(X[TEST]).sum(axis=1), 1)


def test_folds_without_labels_are_fitted_to_what_there_is():
    labels = partly(0.5)
    labels[100:] = None
    first, others = np.arange(100), np.arange(100, len(TRAIN))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", IdentifiabilityWarning)
        clf = fitted(labels, cv=[(others, first), (first, others)])
    assert clf.label_weights_[-1] > 0


def test_labels_whose_rows_have_no_weight_leave_the_others_in():
    labels = partly(0.5)
    weight = np.array([float(label is None) for label in labels])
    design = Transition.partial(range(10), labeled=0.5)
    clf = DecoupledClassifier(FOREST, design, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", IdentifiabilityWarning)
        clf.fit(X[TRAIN], labels, weight)
    assert_allclose(clf.class_proba_.sum(axis=1), 1)


# ------------------------------------------------------------------------- a known class prior


def test_class_shares_agree_with_a_class_prior_that_was_given():
    prior = np.bincount(TRUTH[TRAIN]) / len(TRAIN)
    clf = fitted(partly(0.1, negative=9), negative=9, class_prior=prior[:9])
    assert_allclose(clf.class_proba_.mean(axis=0), prior, atol=1e-3)
    weight = np.where(TRUTH[TRAIN] < 5, 2.0, 1.0)
    clf = DecoupledClassifier(FOREST, class_prior=prior, random_state=0)
    clf.fit(X[TRAIN], partly(0.3), weight)
    assert_allclose(np.average(clf.class_proba_, axis=0, weights=weight), prior, atol=1e-3)


def test_the_share_of_one_positive_class_comes_with_an_interval():
    labels = np.where((TRUTH[TRAIN] < 3) & (np.arange(len(TRAIN)) % 2 == 0), 1, None)
    clf = DecoupledClassifier(FOREST, negative=0, random_state=0).fit(X[TRAIN], labels)
    low, high = clf.class_prior_interval_
    truth = np.mean(TRUTH[TRAIN] < 3)
    assert low[0] <= clf.class_prior_[0] <= high[0]
    assert clf.class_prior_[0] == pytest.approx(truth, abs=0.05)


# -------------------------------------------------------------------------------- the decision


def test_rows_that_all_trees_drew_keep_what_was_inferred_in_the_world_of_the_forest():
    design = Transition.partial(["a", "b"], labeled={"a": 0.5, "b": 0.25})
    weights = np.array([2.0, 4.0, 1.0])
    seen, inferred = [0.9, 0.1], [0.2, 0.8]
    forest = SimpleNamespace(oob_proba_=np.array([seen, [np.nan, np.nan]]), label_weights_=weights)
    found = _unseen_classes(forest, np.array([[0.5, 0.5], inferred]), design)
    moved = inferred * (design.proba @ weights)
    assert_allclose(found, [seen, moved / moved.sum()])


def test_rows_without_weight_do_not_decide_whether_to_learn_again(monkeypatch):
    monkeypatch.setattr("looselabels.learning.classifier.MOST_DRAWN", 500)
    weight = (np.arange(len(TRAIN)) < 400).astype(float)
    clf = fitted(TRUTH[TRAIN])
    assert clf.class_estimator_ is None
    assert clf.fit(X[TRAIN], TRUTH[TRAIN], sample_weight=weight).class_estimator_ is not None


def test_labels_are_predicted_as_they_were_fitted_whatever_is_set_later():
    clf = DecoupledClassifier(FOREST, noise=0.2, refit=False).fit(X[TRAIN], noisy(0.2))
    before = clf.predict_label_proba(X[TEST])
    assert_array_equal(clf.set_params(calibrate=None).predict_label_proba(X[TEST]), before)


def test_a_balanced_decision_takes_the_class_that_is_probable_beside_its_share():
    clf = fitted(partly(0.1, negative=9), negative=9)
    assert clf.class_prior_.min() > 0
    class_proba = clf.predict_proba(X[TEST])
    assert_array_equal(clf.predict(X[TEST]), clf.classes_[class_proba.argmax(axis=1)])
    clf.set_params(decide="balanced")
    best = (class_proba / clf.class_prior_).argmax(axis=1)
    assert_array_equal(clf.predict(X[TEST]), clf.classes_[best])


def test_a_balanced_decision_finds_more_of_a_rare_class():
    rng = np.random.default_rng(0)
    y = (rng.random(2000) < 0.1).astype(int)
    rows = rng.normal(1.5 * y, 1)[:, None]
    clf = DecoupledClassifier(FOREST, random_state=0).fit(rows[:1000], y[:1000])
    found = {}
    for decide in ("probable", "balanced"):
        guess = clf.set_params(decide=decide).predict(rows[1000:])
        found[decide] = np.mean(guess[y[1000:] == 1] == 1)
    assert found["balanced"] > found["probable"] + 0.2


def test_what_cannot_be_decided_by_is_said():
    with pytest.raises(ValueError, match="decide must be 'probable' or 'balanced'; it is 'cost'"):
        fitted(partly(0.5), decide="cost")


def test_a_class_prior_that_was_given_stays_where_noise_is_estimated():
    prior = np.bincount(TRUTH[TRAIN]) / len(TRAIN)
    named = Transition.identity(range(10))
    clf = fitted(noisy(0.2), transition=named, noise="estimate", class_prior=prior)
    assert_allclose(clf.class_prior_, prior, rtol=1e-9)


def test_what_is_said_of_labels_follows_from_the_classes_however_they_are_calibrated():
    clf = fitted(noisy(0.2), noise=0.2, calibrate="temperature")
    assert_allclose(
        clf.predict_label_proba(X[TEST]), clf.predict_proba(X[TEST]) @ clf.transition_.proba
    )
