"""Each tree sees a balanced draw of the labels, and the weights of that world are exact."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csc_matrix, csr_matrix
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier
from sklearn.metrics import f1_score, log_loss
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.estimator_checks import parametrize_with_checks

from looselabels import DecoupledClassifier, Transition, infer
from looselabels.datasets import make_loose_labels
from looselabels.estimation.calibration import to_real_world, weighted_transition
from looselabels.inference import condition_on_label
from looselabels.learning.forest import (
    BalancedForestClassifier,
    ClassForest,
    Trial,
    draw_rows,
    draw_sizes,
    node_values,
    nodes_above,
    smallest_good,
    strata_of,
    widen_leaves,
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


def rare(seed=0, n_rare=20, n_other=400, n_features=3):
    """Return blobs of labels "a" and "b", rare, and many of "u" all over the place."""
    rng = np.random.default_rng(seed)
    y = np.repeat(["a", "b", "u"], [n_rare, n_rare, n_other])
    means = np.repeat([2.0, -2.0, 0.0], [n_rare, n_rare, n_other])
    shuffled = rng.permutation(len(y))
    X = means[:, None] + rng.standard_normal((len(y), n_features))
    return X[shuffled].astype(np.float32), y[shuffled]


def strata_by_name(y, weight=None):
    """Return the rows of each label with their probabilities, the plain way."""
    weight = np.ones(len(y)) if weight is None else weight
    groups = [np.flatnonzero((y == label) & (weight > 0)) for label in np.unique(y[weight > 0])]
    return [(rows, weight[rows] / weight[rows].sum()) for rows in groups]


# ------------------------------------------------------------------------------------- the draw


@pytest.mark.parametrize(
    ("counts", "draw", "sizes"),
    [
        ([20, 5000], 2, [20, 40]),  # positive-unlabeled
        ([20] * 7 + [5000], 3, [20] * 7 + [60]),  # several positives
        ([90, 100, 110], 1, [90, 95, 95]),
        ([90, 100, 110], 2, [90, 100, 110]),  # about equal: an ordinary forest
        (list(range(100, 1001, 100)), 2, list(range(100, 1001, 100))),
        ([20, 30, 25, 4000, 6000], 2, [20, 30, 25, 55, 55]),  # two kinds of unlabeled
        ([1, 1000], 1, [1, 1]),
        ([3, 1000], 1.5, [3, 5]),  # never less than asked for
        ([20, 5000], np.inf, [20, 5000]),
        ([7], 2, [7]),
    ],
)
def test_rare_labels_keep_their_number_and_abundant_ones_are_cut_down(counts, draw, sizes):
    assert_array_equal(draw_sizes(np.array(counts), draw), sizes)


def test_a_draw_has_the_size_asked_for_of_every_label_with_replacement(seed):
    y = np.repeat([0, 1], [10, 500])
    rows, times = draw_rows(strata_by_name(y), [10, 20], seed)
    assert_array_equal(np.bincount(y[rows], times), [10, 20])
    assert len(set(rows.tolist())) == len(rows)
    assert times[y[rows] == 0].max() > 1  # ten of ten without a copy: one in 2,755


def test_rows_are_drawn_in_proportion_to_their_weights():
    weight = np.array([0.0, 1.0, 3.0])
    rows, times = draw_rows(strata_by_name(np.zeros(3, dtype=int), weight), [100_000], 0)
    assert_array_equal(rows, [1, 2])
    assert_allclose(times / 100_000, [0.25, 0.75], atol=0.01)


def test_every_tree_draws_anew():
    X, y = rare()
    forest = BalancedForestClassifier(50, random_state=0).fit(X, y)
    sizes = draw_sizes(np.array([20, 20, 400]), 2)
    draws = [
        draw_rows(strata_by_name(y), sizes, tree.random_state)[0] for tree in forest.estimators_
    ]
    assert len({rows.tobytes() for rows in draws}) == 50
    assert len(np.unique(np.concatenate(draws))) > 0.98 * len(y)
    # What the trees were grown on, as they tell themselves.
    for tree, rows in zip(forest.estimators_, draws, strict=True):
        assert tree.tree_.n_node_samples[0] == len(rows)
        assert_allclose(tree.tree_.value[0, 0], sizes / sizes.sum())


# --------------------------------------------------------------------------------- its weights


def test_label_weights_by_hand():
    X, y = rare()  # a tree sees 20, 20 and 40 of 20, 20 and 400
    forest = BalancedForestClassifier(2, draw=2, random_state=0).fit(X, y)
    assert_allclose(forest.label_weights_, [0.25 / (20 / 440)] * 2 + [0.5 / (400 / 440)])


def test_sample_weights_count_in_the_frequency_of_labels():
    X, y = rare()
    weight = np.where(y == "a", 3.0, 1.0)  # a: 60 of 480 by weight, a fourth of the draw
    forest = BalancedForestClassifier(2, random_state=0).fit(X, y, sample_weight=weight)
    assert_allclose(
        forest.label_weights_, [0.25 / (60 / 480), 0.25 / (20 / 480), 0.5 / (400 / 480)]
    )


def test_labels_of_equal_counts_have_equal_weights():
    X, y = rare(n_other=20)
    assert_allclose(BalancedForestClassifier(2).fit(X, y).label_weights_, 1)


def places(shares, per_place):
    """Return rows at a few places, and labels that have exactly these shares there."""
    counts = np.rint(np.asarray(shares) * per_place).astype(int)
    n_places, n_labels = counts.shape
    place = np.repeat(np.arange(n_places), per_place)
    y = np.concatenate([np.repeat(np.arange(n_labels), c) for c in counts])
    return place[:, None].astype(float), y


SHARES = [[0.10, 0.00, 0.90], [0.05, 0.05, 0.90], [0.00, 0.02, 0.98], [0.01, 0.01, 0.98]]


@pytest.mark.parametrize("draw", [1, 2, 5, np.inf])
def test_the_change_of_world_is_exact_for_any_size_of_the_draw(draw):
    X, y = places(SHARES, 1000)
    forest = BalancedForestClassifier(300, draw=draw, random_state=0).fit(X, y)
    label_proba = forest.predict_proba(np.arange(4)[:, None]) / forest.label_weights_
    label_proba /= label_proba.sum(axis=1, keepdims=True)
    assert_allclose(label_proba, SHARES, atol=0.003)


def test_integer_weights_give_the_probabilities_of_repeated_rows():
    X, y = places(SHARES, 1000)
    times = 1 + (np.arange(len(y)) % 3)
    answers = []
    for data in ((X, y, times), (X.repeat(times, axis=0), y.repeat(times), None)):
        forest = BalancedForestClassifier(300, random_state=0).fit(*data)
        label_proba = forest.predict_proba(np.arange(4)[:, None]) / forest.label_weights_
        answers.append(label_proba / label_proba.sum(axis=1, keepdims=True))
    assert_allclose(answers[0], answers[1], atol=0.005)


def test_classes_are_found_in_the_world_of_the_trees_and_moved_back():
    """Positive-unlabeled, p(positive | place) known: .8, .4 and .1, a tenth of them labeled."""
    design = np.array([[0.1, 0.9], [0.0, 1.0]])
    positive = np.array([0.8, 0.4, 0.1])
    X, y = places(np.column_stack([0.1 * positive, 1 - 0.1 * positive]), 2000)
    forest = BalancedForestClassifier(300, random_state=0).fit(X, y)
    inner = weighted_transition(design, forest.label_weights_)
    found = infer(forest.predict_proba(np.arange(3)[:, None]), inner).class_proba
    found = to_real_world(design, forest.label_weights_).apply(found)
    assert_allclose(found[:, 0], positive, atol=0.02)


# ---------------------------------------------------------------------------------- out of bag


@pytest.mark.parametrize("sparse", [False, True])
def test_out_of_bag_is_the_mean_of_the_trees_that_did_not_draw_the_row(sparse):
    X, y = rare()
    weight = np.random.default_rng(0).integers(0, 3, len(y)).astype(float)
    given = csr_matrix(X) if sparse else X
    forest = BalancedForestClassifier(30, oob_score=True, random_state=0).fit(given, y, weight)
    strata = strata_by_name(y, weight)
    sizes = draw_sizes(np.array([len(rows) for rows, _ in strata]), 2)
    draws = [set(draw_rows(strata, sizes, t.random_state)[0]) for t in forest.estimators_]
    said = [tree.predict_proba(X) for tree in forest.estimators_]
    for row in range(len(y)):
        unseen = [p[row] for p, drawn in zip(said, draws, strict=True) if row not in drawn]
        assert_allclose(forest.oob_decision_function_[row], np.mean(unseen, axis=0))


def test_the_forest_remembers_rows_and_out_of_bag_it_does_not():
    """Labels without any relation to X: in the bag they are known, out of it they are not."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((400, 5)), rng.integers(0, 2, 400)
    forest = BalancedForestClassifier(100, min_samples_leaf=1, oob_score=True, random_state=0).fit(
        X, y
    )
    assert (forest.predict(X) == y).all()
    assert abs((forest.oob_decision_function_.argmax(axis=1) == y).mean() - 0.5) < 0.1


def test_a_row_that_every_tree_has_drawn_has_no_out_of_bag_prediction():
    X, y = rare()
    y = np.where(np.arange(len(y)) == 7, "only one", y)
    forest = BalancedForestClassifier(60, oob_score=True, random_state=0).fit(X, y)
    assert_array_equal(np.flatnonzero(np.isnan(forest.oob_decision_function_).any(axis=1)), [7])
    assert_array_equal(forest.classes_, ["a", "b", "only one", "u"])
    assert forest.predict(X[[7]]) == "only one"


def test_out_of_bag_predictions_are_made_where_asked_for_only():
    X, y = rare()
    forest = BalancedForestClassifier(5, random_state=0).fit(X, y)
    assert not hasattr(forest, "oob_decision_function_")


# ------------------------------------------------------------------------------- as a classifier


def test_equal_labels_make_an_ordinary_forest():
    X, y = load_digits(return_X_y=True)
    train, test = np.arange(0, 1797, 2), np.arange(1, 1797, 2)
    ours = BalancedForestClassifier(100, random_state=0).fit(X[train], y[train])
    theirs = RandomForestClassifier(100, random_state=0).fit(X[train], y[train])
    assert_allclose(ours.label_weights_, 1)
    assert ours.score(X[test], y[test]) > theirs.score(X[test], y[test]) - 0.01
    depth = [np.mean([t.get_depth() for t in f.estimators_]) for f in (ours, theirs)]
    assert_allclose(*depth, rtol=0.05)


def test_the_answer_follows_random_state_and_not_n_jobs():
    X, y = rare()
    forest = BalancedForestClassifier(20, oob_score=True, random_state=0)
    one = clone(forest).fit(X, y)
    two = clone(forest).set_params(n_jobs=2).fit(X, y)
    assert_array_equal(one.predict_proba(X), two.predict_proba(X))
    assert_array_equal(one.oob_decision_function_, two.oob_decision_function_)
    other = clone(forest).set_params(random_state=1).fit(X, y)
    assert (one.predict_proba(X) != other.predict_proba(X)).any()


def test_sparse_rows_give_the_answer_of_dense_ones():
    X, y = rare()
    X = np.where(np.abs(X) < 1, 0, X)
    forest = BalancedForestClassifier(20, oob_score=True, random_state=0)
    dense = clone(forest).fit(X, y)
    for form in (csr_matrix, csc_matrix):
        sparse = clone(forest).fit(form(X), y)
        assert_array_equal(sparse.predict_proba(form(X)), dense.predict_proba(X))
        assert_array_equal(sparse.oob_decision_function_, dense.oob_decision_function_)


def test_missing_values_go_where_trees_send_them():
    X, y = rare()
    X[y == "a", 0] = np.nan  # missing says it all
    forest = BalancedForestClassifier(50, max_features=None, random_state=0).fit(X, y)
    assert_array_equal(forest.predict(X[y == "a"]), "a")
    assert (forest.predict(X[y != "a"]) != "a").all()


def test_a_row_without_weight_is_not_there():
    X, y = rare()
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
def test_labels_may_be_anything_that_sorts(names):
    X, y = rare()
    y = np.array(names)[np.searchsorted(["a", "b", "u"], y)]
    forest = BalancedForestClassifier(10, random_state=0).fit(X, y)
    assert_array_equal(forest.classes_, np.unique(y))
    assert forest.predict(X).dtype == y.dtype


def test_one_label_alone_is_certain():
    X, _ = rare()
    forest = BalancedForestClassifier(3, oob_score=True, random_state=0).fit(X, ["u"] * len(X))
    assert_array_equal(forest.predict_proba(X), 1)
    assert_array_equal(forest.label_weights_, 1)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_estimators": 0}, "n_estimators must be 1 tree or more; it is 0"),
        ({"n_estimators": 2.5}, "it is 2.5"),
        ({"draw": 0.5}, "draw must be 1 label's worth or more; it is 0.5. Pass inf"),
        ({"draw": "all"}, "it is 'all'"),
        ({"draw": np.nan}, "it is nan"),
        ({"min_samples_leaf": 0}, "min_samples_leaf"),
        ({"max_features": "some"}, "max_features"),
    ],
)
def test_messages_name_the_parameter_and_its_value(parameters, message):
    X, y = rare()
    with pytest.raises(ValueError, match=message):
        BalancedForestClassifier(**parameters).fit(X, y)


def test_weights_that_are_all_zero_are_refused():
    X, y = rare()
    with pytest.raises(ValueError, match="zero"):
        BalancedForestClassifier(2).fit(X, y, np.zeros(len(y)))


def test_a_decoupled_classifier_takes_it_for_a_forest_with_rows_out_of_bag():
    X, y = rare()
    labels = np.where(y == "u", None, y)
    design = Transition.partial(["a", "b"], labeled=0.1, negative="other")
    forest = BalancedForestClassifier(30, random_state=0)
    fitted = DecoupledClassifier(forest, design).fit(X, labels)
    again = clone(forest).set_params(oob_score=True).fit(X, design.label_index(labels))
    assert_array_equal(fitted.label_proba_, again.oob_decision_function_)


def test_rare_labels_are_told_apart_better_than_by_an_ordinary_forest():
    """Digits 0 to 6, twenty labels each, all else unlabeled; decided where the trees live."""
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
    assert ours > theirs + 0.05


def test_an_earlier_fit_leaves_no_out_of_bag_rows_behind():
    X, y = load_digits(n_class=3, return_X_y=True)
    forest = BalancedForestClassifier(5, oob_score=True, random_state=0).fit(X, y)
    assert not hasattr(forest.set_params(oob_score=False).fit(X, y), "oob_decision_function_")


# -------------------------------------------------------------------------------------- leaves


def overlapping(n_rows, seed=0):
    """Return two classes along a line: p(1 | x) rises from .2 to .8."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n_rows, 1)).astype(np.float32)
    return X, (rng.random(n_rows) < 0.5 + 0.3 * X[:, 0]).astype(int)


def test_a_small_leaf_says_what_the_nearest_node_above_it_says():
    X, y = overlapping(200)
    tree = DecisionTreeClassifier(random_state=0).fit(X, y)
    nodes, before = tree.tree_, tree.tree_.value.copy()
    parent = {}
    for k in range(nodes.node_count):
        for child in (nodes.children_left[k], nodes.children_right[k]):
            parent[child] = k
    widen_leaves(tree, 10)
    for leaf in np.unique(tree.apply(X)):
        above = leaf
        while nodes.n_node_samples[above] < 10:
            above = parent[above]
        assert_array_equal(nodes.value[leaf], before[above])
    assert_array_equal(tree.predict_proba(X), node_values(tree)[tree.apply(X)])


def test_leaves_of_one_row_stay_and_no_leaf_is_wider_than_the_tree():
    X, y = overlapping(50)
    tree = DecisionTreeClassifier(random_state=0).fit(X, y)
    assert_array_equal(nodes_above(tree, 1), np.arange(tree.tree_.node_count))
    assert_array_equal(nodes_above(tree, 51), 0)


def test_leaves_are_wide_where_classes_overlap_and_narrow_where_they_are_apart():
    X, y = overlapping(1000)
    assert BalancedForestClassifier(50, random_state=0).fit(X, y).min_samples_leaf_ >= 10
    X, y = load_digits(return_X_y=True)
    assert BalancedForestClassifier(50, random_state=0).fit(X, y).min_samples_leaf_ == 1


def test_wrong_labels_alone_do_not_widen_the_leaves_of_classes_that_are_apart(seed):
    """A power alone would take leaves of 10: the mean of many labels says how many are wrong."""
    X, y = load_digits(return_X_y=True)
    rng = np.random.default_rng(seed)
    labels = np.where(rng.random(len(y)) < 0.2, rng.integers(10, size=len(y)), y)
    forest = BalancedForestClassifier(50, random_state=0).fit(X[:500], labels[:500])
    assert forest.min_samples_leaf_ <= 3


def test_the_chosen_leaf_predicts_better_than_the_narrowest():
    X, y = overlapping(1000)
    X_test, y_test = overlapping(2000, seed=1)
    losses = {
        size: log_loss(
            y_test,
            BalancedForestClassifier(50, min_samples_leaf=size, random_state=0)
            .fit(X, y)
            .predict_proba(X_test),
        )
        for size in ("auto", 1)
    }
    assert losses["auto"] < losses[1] - 0.05


def test_rows_of_a_trial_weigh_as_many_as_their_label_has(monkeypatch):
    monkeypatch.setattr("looselabels.learning.forest.FEWEST_TRIED", 4)
    monkeypatch.setattr("looselabels.learning.forest.MOST_TRIED", 4)
    weight = np.array([1.0, 3.0, 1.0, 1.0, 1.0, 1.0])
    strata = strata_of(np.array([0, 0, 1, 1, 1, 1]), 2, weight)
    trial = Trial.of(strata, np.array([0.5, 0.5]), None)
    assert_array_equal(np.sort(trial.rows[:2]), [0, 1])
    assert_allclose(trial.weight[:2], 3 * weight[trial.rows[:2]] / 4)
    assert_allclose(trial.weight[2:], [1.5, 1.5])  # two of four stand for all


def test_of_equal_losses_the_smallest_leaf_is_taken():
    rng = np.random.default_rng(0)
    same = rng.random(100)
    noisy = same + rng.normal(0, 0.1, 100)
    noisy += 0.005 - np.mean(noisy - same)  # worse by half a standard error
    assert smallest_good(np.stack([noisy, same, same]), np.ones(100)) == 0
    assert smallest_good(np.stack([same + 0.1, same, same]), np.ones(100)) == 1


# ------------------------------------------------------------------------------------- classes


def learn(X, class_proba, label_index, **settings):
    def losses(proba, rows, weight):
        return -np.log(np.maximum(proba[np.arange(len(rows)), label_index[rows]], 1e-6))

    n_labels = label_index.max() + 1
    return ClassForest(random_state=0, **settings).fit(
        X, class_proba, label_index, n_labels, losses
    )


def test_trees_of_known_classes_are_those_of_a_classification_forest(monkeypatch):
    """The squared error of rows that are 0 but for a 1 is the Gini impurity."""
    monkeypatch.setattr("looselabels.learning.forest.LEAF_SIZES", (1,))
    X, y = load_digits(return_X_y=True)
    strata, counts = strata_by_name(y), np.bincount(y)
    forest = learn(X.astype(np.float32), np.eye(10)[y], y, n_estimators=5)
    for tree in forest.estimators_:
        rows, times = draw_rows(strata, counts, tree.random_state)
        own = DecisionTreeClassifier(max_features="sqrt", random_state=tree.random_state)
        own.fit(X[rows], y[rows], sample_weight=times)
        assert_allclose(tree.predict(X), own.predict_proba(X))


def test_a_row_that_is_shared_counts_for_both_classes():
    X = np.zeros((40, 1), dtype=np.float32)
    shared = np.tile([0.7, 0.3], (40, 1))
    forest = learn(X, shared, np.zeros(40, dtype=int), n_estimators=3)
    assert_allclose(forest.predict(X[:2]), [[0.7, 0.3]] * 2)
    seen = ~np.isnan(forest.oob_proba_[:, 0])
    assert seen.sum() > 20
    assert_allclose(forest.oob_proba_[seen], [[0.7, 0.3]] * seen.sum())


def test_classes_of_unknown_rows_are_learned_out_of_bag():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((400, 5)).astype(np.float32), rng.integers(0, 2, 400)
    forest = learn(X, np.eye(2)[y], y, n_estimators=50)
    right = forest.oob_proba_.argmax(axis=1) == y
    assert 0.4 < right.mean() < 0.6


def test_rows_without_weight_are_not_learned_from():
    X, y = overlapping(300)
    weight = np.where(y == 0, 0.0, 1.0)
    forest = ClassForest(5, random_state=0).fit(
        X, np.eye(2)[y], y, 2, lambda proba, rows, weight: np.zeros(len(rows)), weight
    )
    assert_array_equal(forest.predict(X), [[0.0, 1.0]] * 300)


def test_a_tree_of_classes_draws_three_rows_without_a_label_for_each_with_one():
    X, y = rare(n_rare=2, n_other=4000)
    index = np.searchsorted(["a", "b", "u"], y)
    forest = learn(X, np.eye(3)[index], index, n_estimators=5)
    assert all(tree.tree_.weighted_n_node_samples[0] == 16 for tree in forest.estimators_)
    share = np.array([2, 2, 4000]) / 4004
    assert_allclose(forest.label_weights_, np.array([2, 2, 12]) / 16 / share)


def test_probabilities_of_the_world_of_the_draws_are_brought_back_exactly():
    """Two places, where 40 and 10 % are positive; a tenth of the positive rows is labeled."""
    X = np.repeat([[0.0], [1.0]], 20_000, axis=0).astype(np.float32)
    place = X[:, 0].astype(int)
    positive = np.arange(40_000) % 20_000 < np.array([8000, 2000])[place]
    index = np.where(positive & (np.arange(40_000) % 10 == 0), 0, 1)
    design = np.array([[0.1, 0.9], [0.0, 1.0]])
    real = np.array([[0.4, 0.6], [0.1, 0.9]])
    given_label = condition_on_label(real[place], design, index)
    forest = learn(X, given_label, index, n_estimators=20)
    found = to_real_world(design, forest.label_weights_).apply(forest.predict([[0.0], [1.0]]))
    assert_allclose(found, real, atol=0.01)
    assert abs(forest.predict([[0.0]])[0, 0] - 0.4) > 0.05
