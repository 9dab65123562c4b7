"""Each tree sees a balanced draw of the labels, with label weights that are exact."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csc_matrix, csr_matrix
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier
from sklearn.metrics import f1_score, log_loss
from sklearn.utils.estimator_checks import parametrize_with_checks

from looselabels import DecoupledClassifier, Transition, infer
from looselabels.datasets import make_loose_labels
from looselabels.estimation.weighting import class_weights, weighted_transition
from looselabels.learning.forest import BalancedForestClassifier, draw_sizes
from looselabels.learning.trees import Draws
from tests.learning.samples import (
    overlapping_classes,
    places,
    predict_row_by_row,
    rare_labels,
    unrelated_labels,
)


def expected_failures(_):
    """Checks that no estimator of this kind can pass, each with its reason."""
    reason = "trees draw rows: weights and copies of rows draw differently"
    return {
        "check_sample_weight_equivalence_on_dense_data": reason,
        "check_sample_weight_equivalence_on_sparse_data": reason,
    }


@parametrize_with_checks(
    [BalancedForestClassifier(n_estimators=20, random_state=0)],
    expected_failed_checks=expected_failures,
)
def test_the_contract_of_scikit_learn(estimator, check):
    check(estimator)


def balanced_draws(y, weight=None):
    """Return the draws of a forest with the default size."""
    weight = np.ones(len(y)) if weight is None else weight
    labels = np.unique(y[weight > 0])
    index = np.searchsorted(labels, y)
    return Draws.of(index, len(labels), weight, lambda counts: draw_sizes(counts, 2))


# -------------------------------------------------------------------------------------- draws


@pytest.mark.parametrize(
    ("counts", "draw", "sizes"),
    [
        ([20, 5000], 2, [20, 40]),  # positive-unlabeled
        ([20] * 7 + [5000], 3, [20] * 7 + [60]),  # several positive classes
        ([90, 100, 110], 1, [90, 95, 95]),
        ([90, 100, 110], 2, [90, 100, 110]),  # about equal: an ordinary forest
        (list(range(100, 1001, 100)), 2, list(range(100, 1001, 100))),
        ([20, 30, 25, 4000, 6000], 2, [20, 30, 25, 55, 55]),  # two kinds of unlabeled
        ([1, 1000], 1, [1, 1]),
        ([3, 1000], 1.5, [3, 5]),  # rounded up
        ([20, 5000], np.inf, [20, 5000]),
        ([7], 2, [7]),
        ([58, 0], 2, [58, 0]),  # a label that a part of the rows lacks is not counted
        ([20, 60, 0], 2, [20, 40, 0]),
    ],
)
def test_abundant_labels_are_reduced_and_rare_ones_are_not(counts, draw, sizes):
    assert_array_equal(draw_sizes(np.array(counts), draw), sizes)


def test_every_tree_has_a_draw_of_its_own():
    X, y = rare_labels()
    forest = BalancedForestClassifier(50, random_state=0).fit(X, y)
    draws = [balanced_draws(y).rows(tree.random_state)[0] for tree in forest.estimators_]
    assert len({rows.tobytes() for rows in draws}) == 50
    assert len(np.unique(np.concatenate(draws))) > 0.98 * len(y)
    for tree, rows in zip(forest.estimators_, draws, strict=True):
        assert tree.tree_.n_node_samples[0] == len(rows)
        assert_allclose(tree.tree_.value[0, 0], [0.25, 0.25, 0.5])  # 20, 20 and 40 rows


# ------------------------------------------------------------------------------ label weights


def test_label_weights_by_hand():
    X, y = rare_labels()  # a tree sees 20, 20 and 40 of 20, 20 and 400
    forest = BalancedForestClassifier(2, draw=2, random_state=0).fit(X, y)
    assert_allclose(forest.label_weights_, [0.25 / (20 / 440)] * 2 + [0.5 / (400 / 440)])


def test_sample_weights_change_the_label_frequencies():
    X, y = rare_labels()
    weight = np.where(y == "a", 3.0, 1.0)  # a: 60 of 480 by weight, a fourth of the draw
    forest = BalancedForestClassifier(2, random_state=0).fit(X, y, sample_weight=weight)
    assert_allclose(
        forest.label_weights_, [0.25 / (60 / 480), 0.25 / (20 / 480), 0.5 / (400 / 480)]
    )


def test_labels_of_equal_counts_have_equal_weights():
    X, y = rare_labels(n_other=20)
    assert_allclose(BalancedForestClassifier(2).fit(X, y).label_weights_, 1)


SHARES = [[0.10, 0.00, 0.90], [0.05, 0.05, 0.90], [0.00, 0.02, 0.98], [0.01, 0.01, 0.98]]


@pytest.mark.parametrize("draw", [1, 2, 5, np.inf])
def test_the_real_distribution_is_recovered_for_any_size_of_the_draw(draw):
    X, y = places(SHARES, 1000)
    forest = BalancedForestClassifier(300, draw=draw, random_state=0).fit(X, y)
    label_proba = forest.predict_proba(np.arange(4)[:, None]) / forest.label_weights_
    label_proba /= label_proba.sum(axis=1, keepdims=True)
    assert_allclose(label_proba, SHARES, atol=0.002)  # of 300 draws: .0012 at most


def test_integer_weights_give_the_probabilities_of_repeated_rows():
    X, y = places(SHARES, 1000)
    times = 1 + (np.arange(len(y)) % 3)
    answers = []
    for data in ((X, y, times), (X.repeat(times, axis=0), y.repeat(times), None)):
        forest = BalancedForestClassifier(300, random_state=0).fit(*data)
        label_proba = forest.predict_proba(np.arange(4)[:, None]) / forest.label_weights_
        answers.append(label_proba / label_proba.sum(axis=1, keepdims=True))
    assert_allclose(answers[0], answers[1], atol=0.002)  # of 300 draws: .0012 at most


def test_classes_inferred_in_the_weighted_distribution_are_converted_exactly():
    """Positive-unlabeled, p(positive | place) known: .8, .4 and .1, a tenth of them labeled."""
    design = np.array([[0.1, 0.9], [0.0, 1.0]])
    positive = np.array([0.8, 0.4, 0.1])
    X, y = places(np.column_stack([0.1 * positive, 1 - 0.1 * positive]), 2000)
    forest = BalancedForestClassifier(300, random_state=0).fit(X, y)
    inner = weighted_transition(design, forest.label_weights_)
    found = infer(forest.predict_proba(np.arange(3)[:, None]), inner).class_proba
    found /= class_weights(design, forest.label_weights_)
    found /= found.sum(axis=1, keepdims=True)
    assert_allclose(found[:, 0], positive, atol=0.02)


# --------------------------------------------------------------------------------- out of bag


@pytest.mark.parametrize("sparse", [False, True])
def test_out_of_bag_is_the_mean_of_the_trees_that_did_not_draw_the_row(sparse):
    X, y = rare_labels()
    weight = np.random.default_rng(0).integers(0, 3, len(y)).astype(float)
    given = csr_matrix(X) if sparse else X
    forest = BalancedForestClassifier(30, oob_score=True, random_state=0).fit(given, y, weight)
    draws = balanced_draws(y, weight)
    drawn = [set(draws.rows(tree.random_state)[0]) for tree in forest.estimators_]
    size = forest.min_samples_leaf_
    predicted = [predict_row_by_row(tree, X, size) for tree in forest.estimators_]
    for row in range(len(y)):
        unseen = [p[row] for p, rows in zip(predicted, drawn, strict=True) if row not in rows]
        assert_allclose(forest.oob_decision_function_[row], np.mean(unseen, axis=0))
    assert_array_equal(
        clone(forest).fit_out_of_sample(given, y, weight), forest.oob_decision_function_
    )


def test_the_forest_remembers_its_rows_but_not_out_of_bag():
    """Labels have no relation to X. The mean over data sets has a standard error of .02."""
    agreement = []
    for seed in range(6):
        X, y = unrelated_labels(400, seed)
        forest = BalancedForestClassifier(
            30, min_samples_leaf=1, oob_score=True, random_state=0
        ).fit(X, y)
        assert np.mean(forest.predict(X) == y) > 0.99
        agreement.append(np.mean(forest.oob_decision_function_.argmax(axis=1) == y))
    assert abs(np.mean(agreement) - 0.5) < 0.03


def test_a_row_that_every_tree_drew_has_no_out_of_bag_prediction():
    X, y = rare_labels()
    y = np.where(np.arange(len(y)) == 7, "only one", y)
    forest = BalancedForestClassifier(60, oob_score=True, random_state=0).fit(X, y)
    assert_array_equal(np.flatnonzero(np.isnan(forest.oob_decision_function_).any(axis=1)), [7])
    assert_array_equal(forest.classes_, ["a", "b", "only one", "u"])
    assert forest.predict(X[[7]]) == "only one"


def test_out_of_bag_predictions_of_a_row_come_from_trees_that_drew_no_row_of_its_group():
    X, y = rare_labels()
    index, groups = np.searchsorted(["a", "b", "u"], y), np.arange(len(y)) // 4
    forest = BalancedForestClassifier(20, random_state=0)
    found = forest.fit_out_of_sample(X, index, groups=groups)
    draws = Draws.of(
        index, 3, np.ones(len(y)), lambda counts: draw_sizes(counts, forest.draw), groups
    )
    total = np.zeros_like(found)
    for tree, values in zip(forest.estimators_, forest._values(), strict=True):
        rows, _ = draws.rows(tree.random_state)
        unseen = ~np.isin(groups, groups[rows])
        total[unseen] += values[tree.apply(X[unseen])]
    with np.errstate(invalid="ignore"):
        assert_allclose(found, total / total.sum(axis=1, keepdims=True), rtol=1e-12)
    assert np.isfinite(found).all(axis=1).mean() > 0.9


def test_random_labels_of_copies_cannot_be_predicted():
    rng = np.random.default_rng(0)
    X, y = np.repeat(rng.random((200, 3)), 3, axis=0), np.repeat(np.arange(200) % 2, 3)
    forest, groups = BalancedForestClassifier(50, random_state=0), np.repeat(np.arange(200), 3)
    leaking = forest.fit_out_of_sample(X, y).argmax(axis=1) == y
    apart = forest.fit_out_of_sample(X, y, groups=groups).argmax(axis=1) == y
    assert leaking.mean() > 0.9
    assert apart.mean() < 0.6


def test_out_of_bag_predictions_are_kept_only_on_request():
    X, y = rare_labels()
    forest = BalancedForestClassifier(5, random_state=0).fit(X, y)
    assert not hasattr(forest, "oob_decision_function_")
    forest.fit_out_of_sample(X, y)
    assert not hasattr(forest, "oob_decision_function_")


# ------------------------------------------------------------------------------- as a classifier


def test_equally_frequent_labels_make_an_ordinary_forest():
    X, y = load_digits(return_X_y=True)
    train, test = np.arange(0, 1797, 2), np.arange(1, 1797, 2)
    ours = BalancedForestClassifier(100, random_state=0).fit(X[train], y[train])
    theirs = RandomForestClassifier(100, random_state=0).fit(X[train], y[train])
    assert_allclose(ours.label_weights_, 1)
    # .957 and .955; a row is .001
    assert abs(ours.score(X[test], y[test]) - theirs.score(X[test], y[test])) < 0.005
    depth = [np.mean([t.get_depth() for t in f.estimators_]) for f in (ours, theirs)]
    assert_allclose(*depth, rtol=0.02)


def test_random_state_changes_the_answer_and_n_jobs_does_not():
    X, y = rare_labels()
    forest = BalancedForestClassifier(20, oob_score=True, random_state=0)
    one = clone(forest).fit(X, y)
    two = clone(forest).set_params(n_jobs=2).fit(X, y)
    assert_array_equal(one.predict_proba(X), two.predict_proba(X))
    assert_array_equal(one.oob_decision_function_, two.oob_decision_function_)
    other = clone(forest).set_params(random_state=1).fit(X, y)
    assert (one.predict_proba(X) != other.predict_proba(X)).any()


def test_sparse_and_dense_rows_give_the_same_answer():
    X, y = rare_labels()
    X = np.where(np.abs(X) < 1, 0, X)
    forest = BalancedForestClassifier(20, oob_score=True, random_state=0)
    dense = clone(forest).fit(X, y)
    for form in (csr_matrix, csc_matrix):
        sparse = clone(forest).fit(form(X), y)
        assert_array_equal(sparse.predict_proba(form(X)), dense.predict_proba(X))
        assert_array_equal(sparse.oob_decision_function_, dense.oob_decision_function_)


def test_missing_values_go_where_trees_send_them():
    X, y = rare_labels()
    X[y == "a", 0] = np.nan  # missing identifies the label
    forest = BalancedForestClassifier(50, max_features=None, random_state=0).fit(X, y)
    assert_array_equal(forest.predict(X[y == "a"]), "a")
    assert (forest.predict(X[y != "a"]) != "a").all()


def test_a_row_without_weight_is_ignored():
    X, y = rare_labels()
    weight = np.ones(len(y))
    weight[y == "b"] = 0
    weight[::3] = 0
    kept = weight > 0
    forest = BalancedForestClassifier(10, oob_score=True, random_state=0)
    weighted = clone(forest).fit(X, y, weight)
    without = clone(forest).fit(X[kept], y[kept])
    assert_array_equal(weighted.classes_, ["a", "u"])
    assert_array_equal(weighted.label_weights_, without.label_weights_)
    assert_array_equal(weighted.predict_proba(X), without.predict_proba(X))
    assert_array_equal(weighted.oob_decision_function_[kept], without.oob_decision_function_)
    assert_allclose(weighted.oob_decision_function_[~kept], weighted.predict_proba(X[~kept]))


@pytest.mark.parametrize(
    "names", [["x", "y", "z"], [3, -1, 7], [False, True, True], [0.0, 1.0, 2.0]]
)
def test_labels_may_be_of_any_type_that_sorts(names):
    X, y = rare_labels()
    y = np.array(names)[np.searchsorted(["a", "b", "u"], y)]
    forest = BalancedForestClassifier(10, random_state=0).fit(X, y)
    assert_array_equal(forest.classes_, np.unique(y))
    assert forest.predict(X).dtype == y.dtype


def test_one_label_alone_is_certain():
    X, _ = rare_labels()
    forest = BalancedForestClassifier(3, oob_score=True, random_state=0).fit(X, ["u"] * len(X))
    assert_array_equal(forest.predict_proba(X), 1)
    assert_array_equal(forest.label_weights_, 1)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_estimators": 0}, "n_estimators must be 1 or more; it is 0"),
        ({"n_estimators": 2.5}, "it is 2.5"),
        ({"draw": 0.5}, "draw must be 1 or more; it is 0.5. Pass inf"),
        ({"draw": "all"}, "it is 'all'"),
        ({"draw": np.nan}, "it is nan"),
        ({"min_samples_leaf": 0}, "min_samples_leaf"),
        ({"max_features": "some"}, "max_features"),
    ],
)
def test_messages_name_the_parameter_and_its_value(parameters, message):
    X, y = rare_labels()
    with pytest.raises(ValueError, match=message):
        BalancedForestClassifier(**parameters).fit(X, y)


def test_weights_that_are_all_zero_are_refused():
    X, y = rare_labels()
    with pytest.raises(ValueError, match="zero"):
        BalancedForestClassifier(2).fit(X, y, np.zeros(len(y)))


def test_a_decoupled_classifier_uses_the_out_of_bag_rows():
    X, y = rare_labels()
    labels = np.where(y == "u", None, y)
    design = Transition.partial(["a", "b"], labeled=0.1, negative="other")
    forest = BalancedForestClassifier(30, random_state=0)
    fitted = DecoupledClassifier(forest, design).fit(X, labels)
    again = clone(forest).set_params(oob_score=True).fit(X, design.label_index(labels))
    assert_array_equal(fitted.label_scores_.label_proba, again.oob_decision_function_)
    assert_array_equal(fitted.label_scores_.label_weights, again.label_weights_)


def test_rare_labels_are_distinguished_better_than_by_an_ordinary_forest():
    """Digits 0 to 6 have about twenty labels each, all other rows are unlabeled."""
    X, y = load_digits(return_X_y=True)
    classes = np.where(y < 7, y, 7)
    design = Transition.partial(range(7), labeled=20 / 120, negative=7)
    index = design.label_index(make_loose_labels(classes[:1200], design, random_state=0))
    forest = BalancedForestClassifier(100, random_state=0).fit(X[:1200], index)
    inner = weighted_transition(design.proba, forest.label_weights_)
    found = infer(forest.predict_proba(X[1200:]), inner).class_proba.argmax(axis=1)
    plain = RandomForestClassifier(100, min_samples_leaf=3, random_state=0).fit(X[:1200], index)
    plain = infer(plain.predict_proba(X[1200:]), design.proba).class_proba.argmax(axis=1)
    ours, theirs = (f1_score(classes[1200:], p, average="macro") for p in (found, plain))
    assert ours > theirs + 0.1  # .89 and .76 here, .84 and .68 with other labels


def test_a_new_fit_removes_the_out_of_bag_rows_of_an_earlier_one():
    X, y = load_digits(n_class=3, return_X_y=True)
    forest = BalancedForestClassifier(5, oob_score=True, random_state=0).fit(X, y)
    assert not hasattr(forest.set_params(oob_score=False).fit(X, y), "oob_decision_function_")


# ---------------------------------------------------------------------------- a fit that fails


def fingerprint(forest):
    """Return the attributes by identity."""
    return {name: id(value) for name, value in vars(forest).items()}


@pytest.mark.parametrize("method", ["fit", "fit_out_of_sample"])
@pytest.mark.parametrize(
    ("parameters", "rows"),
    [
        ({}, lambda X: csr_matrix(np.where(X > 0, np.nan, X))),
        ({}, lambda X: X[:, :1][:5]),
        ({"draw": 0.5}, lambda X: X[:, :1]),
        ({"max_features": "some"}, lambda X: X[:, :1]),  # found by the first tree
    ],
    ids=["NaN in sparse rows", "too few rows", "bad draw", "bad max_features"],
)
def test_a_fit_that_fails_leaves_the_forest_as_it_was(method, parameters, rows):
    X, y = rare_labels()
    forest = BalancedForestClassifier(3, oob_score=True, random_state=0).fit(X, y)
    expected = forest.predict_proba(X)
    before = fingerprint(forest.set_params(**parameters))
    with pytest.raises(ValueError):
        getattr(forest, method)(rows(X), np.where(y == "a", "c", y))
    assert fingerprint(forest) == before
    assert_array_equal(forest.predict_proba(X), expected)


def test_a_fit_that_is_interrupted_at_its_end_leaves_the_forest_as_it_was(monkeypatch):
    X, y = rare_labels()
    forest = BalancedForestClassifier(3, oob_score=True, random_state=0).fit(X, y)
    before = fingerprint(forest)

    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(BalancedForestClassifier, "_out_of_bag", interrupt)
    with pytest.raises(KeyboardInterrupt):
        forest.fit(X[:, :1], np.where(y == "a", "c", y))
    assert fingerprint(forest) == before
    new = BalancedForestClassifier(3, oob_score=True)
    with pytest.raises(KeyboardInterrupt):
        new.fit(X, y)
    assert vars(new) == new.get_params()


# ----------------------------------------------------------------------------------- leaf size


def test_leaves_are_large_where_classes_overlap_and_small_where_they_are_separated():
    X, y = overlapping_classes(1000)
    assert BalancedForestClassifier(50, random_state=0).fit(X, y).min_samples_leaf_ == 30
    X, y = load_digits(return_X_y=True)
    assert BalancedForestClassifier(50, random_state=0).fit(X, y).min_samples_leaf_ == 1


def test_wrong_labels_alone_do_not_make_leaves_large(seed):
    """The losses account for wrong labels: without that, leaves of 10 would win."""
    X, y = load_digits(return_X_y=True)
    rng = np.random.default_rng(seed)
    labels = np.where(rng.random(len(y)) < 0.2, rng.integers(10, size=len(y)), y)
    forest = BalancedForestClassifier(50, random_state=0).fit(X[:500], labels[:500])
    assert forest.min_samples_leaf_ <= 3


def test_the_chosen_leaf_size_predicts_better_than_single_rows():
    X, y = overlapping_classes(1000)
    X_test, y_test = overlapping_classes(2000, seed=1)
    losses = {
        size: log_loss(
            y_test,
            BalancedForestClassifier(50, min_samples_leaf=size, random_state=0)
            .fit(X, y)
            .predict_proba(X_test),
        )
        for size in ("auto", 1)
    }
    truth = log_loss(y_test, 0.5 + 0.3 * X_test[:, 0])
    assert losses["auto"] < truth + 0.01  # .635 and .628
    assert losses[1] > truth + 1  # 2.98: single rows are certain, and often wrong


def test_a_tree_draws_at_most_a_fixed_number_of_rows_and_keeps_the_shares(monkeypatch):
    monkeypatch.setattr("looselabels.learning.forest.MAX_DRAWN", 100)
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(600, 2)), np.repeat([0, 1], [400, 200])
    forest = BalancedForestClassifier(5, random_state=0).fit(X, y)
    assert {int(tree.tree_.weighted_n_node_samples[0]) for tree in forest.estimators_} == {101}
    assert_allclose(forest.label_weights_, 1, atol=0.02)  # 67 and 34 rows
