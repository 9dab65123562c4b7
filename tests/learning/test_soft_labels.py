"""A forest learns the classes from p(class | x, label) of all rows, alone and as a refit."""

import warnings
from copy import copy
from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.frozen import FrozenEstimator
from sklearn.tree import DecisionTreeClassifier

from looselabels import BalancedForestClassifier, DecoupledClassifier, Transition
from looselabels.estimation.weighting import class_weights
from looselabels.exceptions import IdentifiabilityWarning
from looselabels.inference import condition_on_label
from looselabels.learning.decoupling import decouple, learn_classes
from looselabels.learning.label_design import design_labels
from looselabels.learning.label_model import model_labels, score_labels
from looselabels.learning.soft_labels import ClassForest, _with_exact_sums
from looselabels.learning.trees import Draws
from tests.learning.samples import overlapping_classes, rare_labels, unrelated_labels

X, TRUTH = load_digits(return_X_y=True)
TRAIN, TEST = np.arange(0, 1797, 2), np.arange(1, 1797, 2)
FOREST = BalancedForestClassifier(50, random_state=0)


# ------------------------------------------------------------------------------------ the forest


def learn(rows, class_proba, label_index, transition=None, sample_weight=None, n_estimators=5):
    """Return a fitted forest, and its out-of-bag predictions; labels are classes by default."""
    forest = ClassForest(n_estimators, random_state=0)
    transition = np.eye(class_proba.shape[1]) if transition is None else transition
    return forest, forest.fit_out_of_sample(
        rows, class_proba, label_index, transition, sample_weight
    )


def test_trees_of_known_classes_are_those_of_a_classification_forest(monkeypatch):
    """The squared error of rows that are 0 except for a 1 is the Gini impurity."""
    monkeypatch.setattr("looselabels.learning.trees.LEAF_SIZES", (1,))
    rows = X.astype(np.float32)
    draws = Draws.of(TRUTH, 10, np.ones(len(TRUTH)), lambda counts: counts)
    forest, out_of_bag = learn(rows, np.eye(10)[TRUTH], TRUTH)
    total = np.zeros((len(TRUTH), 10))
    for tree in forest.estimators_:
        drawn, times = draws.rows(tree.random_state)
        own = DecisionTreeClassifier(max_features="sqrt", random_state=tree.random_state)
        own.fit(rows[drawn], TRUTH[drawn], sample_weight=times)
        assert_allclose(tree.predict(rows), own.predict_proba(rows))
        total += np.where(
            np.isin(np.arange(len(TRUTH)), drawn)[:, None], 0, own.predict_proba(rows)
        )
    seen = total.any(axis=1)
    assert_array_equal(np.isnan(out_of_bag).any(axis=1), ~seen)
    assert_allclose(out_of_bag[seen], total[seen] / total[seen].sum(axis=1, keepdims=True))


def test_a_row_that_is_shared_counts_for_both_classes():
    rows = np.zeros((40, 1), dtype=np.float32)
    shared, only_label = np.tile([0.7, 0.3], (40, 1)), np.zeros(40, dtype=int)
    forest, out_of_bag = learn(rows, shared, only_label, np.ones((2, 1)), n_estimators=3)
    assert_allclose(forest.predict_proba(rows[:2]), [[0.7, 0.3]] * 2, atol=1e-6)
    seen = ~np.isnan(out_of_bag[:, 0])
    assert seen.sum() > 20
    assert_allclose(out_of_bag[seen], [[0.7, 0.3]] * seen.sum(), atol=1e-6)


def test_classes_of_training_rows_are_predicted_out_of_bag():
    """Classes have no relation to X: .97 agree in the bag, .52 out of it, standard error .02."""
    agreement = []
    for seed in range(6):
        rows, y = unrelated_labels(400, seed)
        _, out_of_bag = learn(rows, np.eye(2)[y], y, n_estimators=20)
        agreement.append(np.mean(out_of_bag.argmax(axis=1) == y))
    assert abs(np.mean(agreement) - 0.5) < 0.04


def test_rows_without_weight_are_not_learned_from():
    rows, y = overlapping_classes(300)
    forest, out_of_bag = learn(rows, np.eye(2)[y], y, sample_weight=np.where(y == 0, 0.0, 1.0))
    assert_array_equal(forest.predict_proba(rows), [[0.0, 1.0]] * 300)
    assert_array_equal(out_of_bag[y == 0], [[0.0, 1.0]] * np.sum(y == 0))
    assert_allclose(forest.label_weights_, 1)  # of the label that has no rows: by definition


def test_a_tree_draws_three_rows_without_a_label_for_each_row_with_one():
    rows, y = rare_labels(n_rare=2, n_other=4000)
    index = np.searchsorted(["a", "b", "u"], y)
    forest, _ = learn(rows, np.eye(3)[index], index)
    assert all(tree.tree_.weighted_n_node_samples[0] == 16 for tree in forest.estimators_)
    share = np.array([2, 2, 4000]) / 4004
    assert_allclose(forest.label_weights_, np.array([2, 2, 12]) / 16 / share)


def test_probabilities_of_the_weighted_distribution_are_converted_exactly():
    """Two places, where 40 and 10 % are positive; a tenth of the positive rows is labeled."""
    rows = np.repeat([[0.0], [1.0]], 20_000, axis=0).astype(np.float32)
    place = rows[:, 0].astype(int)
    positive = np.arange(40_000) % 20_000 < np.array([8000, 2000])[place]
    index = np.where(positive & (np.arange(40_000) % 10 == 0), 0, 1)
    design = np.array([[0.1, 0.9], [0.0, 1.0]])
    real = np.array([[0.4, 0.6], [0.1, 0.9]])
    given_label = condition_on_label(real[place], design, index)
    forest, _ = learn(rows, given_label, index, design, n_estimators=20)
    weighted = forest.predict_proba([[0.0], [1.0]])
    found = weighted / class_weights(design, forest.label_weights_)
    assert_allclose(found / found.sum(axis=1, keepdims=True), real, atol=0.01)
    assert weighted[0, 0] > 0.45  # without the conversion


def test_a_fit_that_fails_leaves_the_forest_as_it_was(monkeypatch):
    rows, y = overlapping_classes(60)
    transition = np.array([[1.0, 0.0], [0.0, 1.0], [0.5, 0.5]])
    forest, _ = learn(rows, np.eye(2)[y], y)
    before = {name: id(value) for name, value in vars(forest).items()}

    def fail(*_):
        raise MemoryError

    monkeypatch.setattr(ClassForest, "_out_of_bag", fail)
    with pytest.raises(MemoryError):
        forest.fit_out_of_sample(np.tile(rows, 2), np.eye(3)[y], y, transition)
    assert {name: id(value) for name, value in vars(forest).items()} == before


# --------------------------------------------------------------------------------------- a refit


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
    options = {"refit": 1, "noise": 0} | options
    return DecoupledClassifier(FOREST, random_state=0, **options).fit(X[TRAIN], labels)


@pytest.fixture(scope="module")
def clf_noisy():
    return fitted(noisy(0.2), noise=0.2)


@pytest.fixture(scope="module")
def clf_partly():
    return fitted(partly(0.5))


@pytest.fixture(scope="module")
def clf_negative():
    return fitted(partly(0.1, negative=9), negative=9)


@pytest.mark.parametrize(
    ("labels", "options", "gain"),
    [  # the gain in nats that is reached with two seeds
        (partial(noisy, 0.6), {"noise": 0.54}, 0.05),  # .04, .12
        (partial(partly, 0.1), {}, 0.1),  # .21, .14
        (partial(partly, 0.3, negative=9), {"negative": 9}, 0.03),  # .06, .11
    ],
    ids=["noisy", "semi-supervised", "multi-positive"],
)
def test_classes_are_predicted_better_than_by_the_inference_alone(labels, options, gain):
    loss = {1: [], False: []}
    for seed in range(2):  # one seed alone can move by .04
        for refit in loss:
            clf = fitted(labels(seed=seed), refit=refit, **options)
            class_proba = clf.predict_proba(X[TEST])
            right = class_proba[np.arange(len(TEST)), TRUTH[TEST]]
            loss[refit].append(-np.log(right + 1e-9).mean())
    assert np.mean(loss[1]) < np.mean(loss[False]) - gain


def test_a_label_hardly_reaches_its_own_row():
    """Labels have no relation to X. In the bag .97 would agree with class_proba_.

    Out of bag it is .52 of chance before the refit, with a standard error of .02. A refit adds .01:
    a label reaches its row through other rows, whose classes were inferred with its help.
    """
    forest = BalancedForestClassifier(20, random_state=0)
    agreement = {True: [], False: []}
    for seed in range(6):
        rows, labels = unrelated_labels(400, seed)
        for refit in (True, False):
            clf = DecoupledClassifier(forest, noise=0.2, refit=refit, random_state=0)
            found = clf.fit(rows, labels).class_proba_.argmax(axis=1)
            agreement[refit].append(np.mean(found == labels))
    assert abs(np.mean(agreement[False]) - 0.5) < 0.04
    assert abs(np.mean(agreement[True]) - np.mean(agreement[False])) < 0.03


def test_predictions_are_those_of_the_class_forest_calibrated(clf_noisy):
    forest = clf_noisy.class_estimator_
    assert isinstance(forest, ClassForest)
    expected = clf_noisy.class_calibration_.apply(forest.predict_proba(X[TEST]))
    assert_allclose(clf_noisy.predict_proba(X[TEST]), expected)


@pytest.mark.parametrize("calibrate", ["classes", "temperature"])
def test_label_probabilities_follow_from_the_classes(clf_noisy, calibrate):
    clf = clf_noisy
    if calibrate != clf.calibrate:
        clf = fitted(noisy(0.2), noise=0.2, calibrate=calibrate)
    expected = clf.predict_proba(X[TEST]) @ clf.transition_.proba
    assert_allclose(clf.predict_label_proba(X[TEST]), expected)


def test_the_class_forest_keeps_no_training_rows(clf_noisy):
    arrays = [v for v in vars(clf_noisy.class_estimator_).values() if isinstance(v, np.ndarray)]
    assert all(len(array) < len(TRAIN) for array in arrays)


@pytest.mark.parametrize(
    "options",
    [
        {"refit": False},
        {"label_weights": "costs"},  # which it would ignore
        {"estimator": FrozenEstimator(clone(FOREST).fit(X[TEST], TRUTH[TEST]))},
    ],
)
def test_there_is_no_refit_if_it_is_not_wanted_or_not_possible(options):
    clf = DecoupledClassifier(**{"estimator": FOREST, "refit": 1, "random_state": 0} | options)
    assert clf.fit(X[TRAIN], partly(0.5)).class_estimator_ is None


def test_there_is_no_refit_if_trees_would_draw_many_rows(clf_partly, monkeypatch):
    assert clf_partly.class_estimator_ is not None
    monkeypatch.setattr("looselabels.learning.forest.MAX_REFIT_ROWS", 500)
    assert fitted(partly(0.5)).class_estimator_ is None


def test_rows_without_weight_do_not_decide_whether_there_is_a_refit(monkeypatch):
    monkeypatch.setattr("looselabels.learning.forest.MAX_REFIT_ROWS", 500)
    weight = (np.arange(len(TRAIN)) < 400).astype(float)
    clf = fitted(TRUTH[TRAIN])
    assert clf.class_estimator_ is None
    assert clf.fit(X[TRAIN], TRUTH[TRAIN], sample_weight=weight).class_estimator_ is not None


def test_the_class_forest_has_the_parameters_of_the_label_forest(clf_partly):
    found = clf_partly.class_estimator_.get_params()
    assert found == {"n_estimators": 50, "max_features": "sqrt", "n_jobs": None, "random_state": 0}


def test_a_refit_that_fails_leaves_the_last_fit_as_it_was(clf_partly, monkeypatch):
    before = {name: id(value) for name, value in vars(clf_partly).items()}

    def fail(*_):
        raise MemoryError

    monkeypatch.setattr(ClassForest, "fit_out_of_sample", fail)
    with pytest.raises(MemoryError):
        clf_partly.fit(X[TRAIN] * 2, noisy(0.5))
    assert {name: id(value) for name, value in vars(clf_partly).items()} == before


def test_rows_that_cannot_be_predicted_out_of_sample_keep_what_was_inferred():
    design = Transition.partial(["a", "b"], labeled={"a": 0.5, "b": 0.25})
    real = np.array([[0.9, 0.1], [0.2, 0.8], [0.5, 0.5]])
    design = design_labels(["a", "b", None], transition=design)
    scores = score_labels(design, real @ design.transition.proba)
    found = decouple(scores, model_labels(design, scores), None)
    weights = np.array([2.0, 4.0, 1.0])
    weighted = np.array([0.3, 0.7]) * (design.transition.proba @ weights)
    learned = np.array([weighted / weighted.sum(), [np.nan, np.nan], [np.nan, np.nan]])
    again = learn_classes(found, scores, lambda *_: (None, learned, weights), None)
    assert_allclose(found.class_proba, real, atol=1e-6)
    assert_allclose(again.class_proba, [[0.3, 0.7], *found.class_proba[1:]])


# -------------------------------------------------------------------------- uninformative labels


def test_rows_whose_label_is_missing_at_random_are_left_out_of_the_label_forest():
    labels = partly(0.3)
    named = np.array([label is not None for label in labels])
    clf = fitted(labels, refit=False)
    alone = clone(FOREST).fit(X[TRAIN][named], labels[named].astype(int))
    assert clf.training_label_weights_[-1] == 0
    assert_allclose(clf.estimator_.predict_proba(X[TEST]), alone.predict_proba(X[TEST]))


def test_rows_whose_label_is_missing_for_a_reason_are_in_the_label_forest(clf_negative):
    assert clf_negative.training_label_weights_[-1] > 0
    assert 9 in clf_negative.estimator_.classes_  # the position of None


def test_without_any_label_nothing_is_left_out():
    design = Transition.partial(["cat", "dog"], labeled=0.3)
    clf = DecoupledClassifier(FOREST, design, random_state=0)
    with (
        pytest.warns(UserWarning, match="do not occur in y"),
        pytest.warns(IdentifiabilityWarning),
    ):
        clf.fit(X[TRAIN], [None] * len(TRAIN))
    assert_allclose(clf.predict_proba(X[TEST]).sum(axis=1), 1)


def test_one_row_of_each_label_is_enough():
    """Every tree has drawn both of them, and no other row has weight."""
    labels = np.full(len(TRAIN), None, dtype=object)
    labels[:2] = "cat", "dog"
    clf = fitted(labels)
    assert_allclose(clf.label_scores_.label_proba[:2], [[0.5, 0.5, 0]] * 2)
    assert_allclose(clf.label_proba_.mean(axis=0), [1 / 899, 1 / 899, 897 / 899], atol=1e-8)
    assert_allclose(clf.predict_proba(X[TEST]).sum(axis=1), 1)


def test_folds_need_informative_labels():
    labels = partly(0.5)
    labels[100:] = None
    first, second, others = np.split(np.arange(len(TRAIN)), (50, 100))
    with pytest.raises(ValueError, match="Fold 1 of 3 trains on rows without an informative label"):
        fitted(labels, cv=[(others, first), (first, second), (first, others)])


def test_if_labeled_rows_have_no_weight_unlabeled_rows_are_kept():
    labels = partly(0.5)
    weight = np.array([float(label is None) for label in labels])
    design = Transition.partial(range(10), labeled=0.5)
    clf = DecoupledClassifier(FOREST, design, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", IdentifiabilityWarning)
        clf.fit(X[TRAIN], labels, weight)
    assert_allclose(clf.class_proba_.sum(axis=1), 1)


# --------------------------------------------------------------------- a specified class prior


def test_class_shares_agree_with_a_specified_class_prior():
    prior = np.bincount(TRUTH[TRAIN]) / len(TRAIN)
    clf = fitted(partly(0.1, negative=9), negative=9, class_prior=prior[:9])
    assert_allclose(clf.class_proba_.mean(axis=0), prior, atol=1e-8)
    weight = np.where(TRUTH[TRAIN] < 5, 2.0, 1.0)
    clf = DecoupledClassifier(FOREST, class_prior=prior, random_state=0)
    clf.fit(X[TRAIN], partly(0.3), weight)
    assert_allclose(np.average(clf.class_proba_, axis=0, weights=weight), prior, atol=1e-8)


def test_the_estimated_share_of_one_positive_class_has_an_interval():
    labels = np.where((TRUTH[TRAIN] < 3) & (np.arange(len(TRAIN)) % 2 == 0), 1, None)
    clf = DecoupledClassifier(FOREST, negative=0, random_state=0).fit(X[TRAIN], labels)
    low, high = clf.class_prior_interval_
    truth = np.mean(TRUTH[TRAIN] < 3)
    assert low[0] <= truth <= high[0]
    assert low[0] <= clf.class_prior_[0] <= high[0]
    assert high[0] - low[0] < 0.08  # .27 to .34
    assert clf.class_prior_[0] == pytest.approx(truth, abs=0.01)  # .305 and .299


# -------------------------------------------------------------------------------- the decision


def test_label_probabilities_do_not_change_if_a_parameter_is_set_after_the_fit():
    clf = fitted(noisy(0.2), noise=0.2, refit=False)
    before = clf.predict_label_proba(X[TEST])
    assert_array_equal(clf.set_params(calibrate=None).predict_label_proba(X[TEST]), before)


def test_a_balanced_decision_maximizes_the_probability_relative_to_the_class_share(clf_negative):
    clf = copy(clf_negative)
    assert clf.class_prior_.min() > 0
    class_proba = clf.predict_proba(X[TEST])
    assert_array_equal(clf.predict(X[TEST]), clf.classes_[class_proba.argmax(axis=1)])
    clf.decide = "balanced"
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
    assert found["balanced"] > 0.7  # as often as the other class is found: Φ(.75) = .77
    assert found["probable"] < 0.35  # the rows above x = (log 9 + 1.125) / 1.5: .24


def test_an_unknown_decision_is_refused():
    with pytest.raises(ValueError, match="decide must be 'probable' or 'balanced'; it is 'cost'"):
        fitted(partly(0.5), decide="cost")


def test_a_specified_class_prior_is_kept_if_noise_is_estimated():
    prior = np.bincount(TRUTH[TRAIN]) / len(TRAIN)
    named = Transition.identity(range(10))
    clf = fitted(noisy(0.2), transition=named, noise="estimate", class_prior=prior)
    assert_allclose(clf.class_prior_, prior, rtol=1e-9)


def test_the_order_of_rows_does_not_decide_between_equally_good_splits(rng):
    shared = rng.dirichlet([0.3] * 3, 300)
    exact = _with_exact_sums(shared)
    assert_array_equal(exact.sum(axis=1), 1)
    assert_allclose(exact, shared, atol=2e-6)
    assert_array_equal(exact.sum(axis=0), exact[rng.permutation(300)].sum(axis=0))
    assert_array_equal(np.cumsum(exact[::-1, 0])[-1], np.cumsum(exact[:, 0])[-1])
