"""Trees grown on draws of rows: the draws, the choice of the leaf size, what nodes predict."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.tree import DecisionTreeClassifier

from looselabels import BalancedForestClassifier
from looselabels.learning import trees
from looselabels.learning.forest import draw_sizes
from looselabels.learning.trees import (
    Draws,
    LeafChoice,
    ancestors_of_sizes,
    first_good,
    grow,
    node_values,
)
from tests.learning.samples import overlapping_classes, predict_row_by_row, rare_labels


def draws_of(y, sizes, weight=None):
    """Return draws of fixed sizes."""
    weight = np.ones(len(y)) if weight is None else weight
    return Draws.of(y, len(sizes), weight, lambda counts: np.asarray(sizes))


# -------------------------------------------------------------------------------------- draws


def test_strata_are_the_rows_of_each_label_that_have_weight():
    draws = Draws.of(
        np.array([1, 0, 1, 0, 1]), 2, np.array([1.0, 2, 0, 6, 3]), lambda counts: 10 * counts
    )
    (first, p_first), (second, p_second) = draws.strata
    assert_array_equal(first, [1, 3])
    assert_array_equal(second, [0, 4])
    assert_allclose(p_first, [0.25, 0.75])
    assert_allclose(p_second, [0.25, 0.75])
    assert_array_equal(draws.sizes, [20, 20])


def test_a_draw_has_the_requested_size_of_each_label_with_replacement(seed):
    y = np.repeat([0, 1], [10, 500])
    rows, times = draws_of(y, [10, 20]).rows(seed)
    assert_array_equal(np.bincount(y[rows], times), [10, 20])
    assert len(set(rows.tolist())) == len(rows)
    assert times[y[rows] == 0].max() > 1  # ten of ten without a copy: one in 2,755


def test_rows_are_drawn_in_proportion_to_their_weights():
    weight = np.array([0.0, 1.0, 3.0])
    rows, times = draws_of(np.zeros(3, dtype=int), [100_000], weight).rows(0)
    assert_array_equal(rows, [1, 2])
    assert_allclose(times / 100_000, [0.25, 0.75], atol=0.005)  # 3.6 standard errors


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**31 - 1), st.integers(1, 40), st.integers(1, 3))
def test_draws_of_groups_have_the_requested_sizes_and_leave_groups_out(seed, n_groups, n_labels):
    rng = np.random.default_rng(seed)
    groups = np.unique(rng.integers(n_groups, size=200), return_inverse=True)[1]
    y, weight = rng.integers(n_labels, size=200), rng.random(200)
    sizes = np.bincount(y, minlength=n_labels)
    rows, times = Draws.of(y, n_labels, weight, lambda _: sizes, groups).rows(seed)
    assert_array_equal(np.bincount(y[rows], times, n_labels), sizes)
    if n_groups > 20:  # a third is left out on average; none of 21: one in 10,000
        assert len(set(groups[rows].tolist())) < groups.max() + 1


def test_rows_of_drawn_groups_are_drawn_evenly():
    groups = np.repeat(np.arange(200), 5)
    draws = Draws.of(np.zeros(1000, dtype=int), 1, np.ones(1000), lambda counts: counts, groups)
    drawn = [draws.rows(seed) for seed in range(20)]
    # as in a bootstrap sample of groups: 63 % of them, with all of their rows
    assert np.mean([len(rows) for rows, _ in drawn]) == pytest.approx(632, abs=20)
    assert np.mean([len(np.unique(groups[rows])) for rows, _ in drawn]) == pytest.approx(127, abs=5)


def test_a_label_whose_groups_were_not_drawn_is_drawn_from_all_of_its_rows():
    groups, y = np.arange(100) // 2, (np.arange(100) < 2).astype(int)  # label 1: one group
    draws = Draws.of(y, 2, np.ones(100), lambda counts: counts, groups)
    for seed in range(10):
        rows, times = draws.rows(seed)
        assert times[y[rows] == 1].sum() == 2


def test_groups_with_one_row_to_draw_are_drawn_as_rows():
    y, weight = np.repeat([0, 1], 30), np.tile([1.0, 0.0, 0.0], 20)
    groups = np.arange(60) // 3
    plain, grouped = (
        Draws.of(y, 2, weight, lambda counts: counts, given) for given in (None, groups)
    )
    for one, other in zip(plain.rows(0), grouped.rows(0), strict=True):
        assert_array_equal(one, other)
    assert_array_equal(grouped.with_groups(np.array([0, 7])), [0, 1, 2, 6, 7, 8])
    assert_array_equal(plain.with_groups(np.array([0, 7])), [0, 7])


def test_a_seed_gives_the_same_draw_again_and_another_seed_another_one():
    draws = draws_of(np.repeat([0, 1], 50), [30, 30])
    for first, again in zip(draws.rows(7), draws.rows(7), strict=True):
        assert_array_equal(first, again)
    assert not np.array_equal(draws.rows(7)[0], draws.rows(8)[0])


def test_label_weights_compare_the_draw_with_the_data():
    draws = draws_of(np.repeat([0, 1], [20, 180]), [20, 60])
    assert_allclose(draws.label_weights(np.array([0.1, 0.9])), [0.25 / 0.1, 0.75 / 0.9])


# --------------------------------------------------------------------------- choice of leaf size


def test_rows_of_a_leaf_choice_count_as_many_as_their_label_has(monkeypatch):
    monkeypatch.setattr(trees, "MIN_ROWS", 4)
    monkeypatch.setattr(trees, "MAX_ROWS", 4)
    weight = np.array([1.0, 3.0, 1.0, 1.0, 1.0, 1.0])
    draws = draws_of(np.array([0, 0, 1, 1, 1, 1]), [2, 2], weight)
    choice = LeafChoice.of(draws, np.array([0.5, 0.5]), None)
    assert_array_equal(np.sort(choice.rows[:2]), [0, 1])
    assert_allclose(choice.weight[:2], 3 * weight[choice.rows[:2]] / 4)
    assert_allclose(choice.weight[2:], [1.5, 1.5])  # two of four stand for all


def test_of_equal_losses_the_first_is_taken():
    rng = np.random.default_rng(0)
    same = rng.random(100)
    noisy = same + rng.normal(0, 0.1, 100)
    noisy += 0.005 - np.mean(noisy - same)  # worse by half a standard error
    assert first_good(np.stack([noisy, same, same]), np.ones(100)) == 0
    assert first_good(np.stack([same + 0.1, same, same]), np.ones(100)) == 1
    assert first_good(np.stack([same + 1e-15, same]), np.ones(100)) == 0  # rounding


def test_rows_that_every_tree_drew_do_not_take_part_in_the_choice():
    """Row 0 was drawn by all trees: its loss, which favors the largest leaf, does not count."""

    def losses(proba, rows, weight):
        assert_array_equal(rows, [4, 6])
        assert_array_equal(weight, [1, 1])
        return 1 - proba[:, 0]

    predicted = np.zeros((4, 3, 2))
    predicted[:, 1:, 0] = np.array([0.2, 1.8, 1.0, 1.0])[:, None]  # two trees: sums to 2
    predicted[:, 1:, 1] = 2 - predicted[:, 1:, 0]
    choice = LeafChoice(np.array([2, 4, 6]), np.ones(3), losses)
    assert choice.leaf_size(predicted) == trees.LEAF_SIZES[1]


def test_without_out_of_bag_rows_leaves_have_one_row():
    choice = LeafChoice(np.arange(3), np.ones(3), None)
    assert choice.leaf_size(np.zeros((4, 3, 2))) == 1


# --------------------------------------------------------------------------- what nodes predict


def test_a_small_node_has_the_nearest_ancestor_with_enough_rows():
    X, y = overlapping_classes(200)
    tree = DecisionTreeClassifier(random_state=0).fit(X, y)
    nodes, parent = tree.tree_, {}
    for k in range(nodes.node_count):
        for child in (nodes.children_left[k], nodes.children_right[k]):
            parent[child] = k
    (found,) = ancestors_of_sizes(tree, [10])
    for node in range(nodes.node_count):
        expected = node
        while nodes.n_node_samples[expected] < 10:
            expected = parent[expected]
        assert found[node] == expected


def test_every_node_has_one_row_and_none_has_more_rows_than_the_root():
    X, y = overlapping_classes(50)
    tree = DecisionTreeClassifier(random_state=0).fit(X, y)
    smallest, largest = ancestors_of_sizes(tree, [1, 51])
    assert_array_equal(smallest, np.arange(tree.tree_.node_count))
    assert_array_equal(largest, 0)


def test_node_values_are_what_the_tree_predicts():
    X, y = overlapping_classes(200)
    tree = DecisionTreeClassifier(min_samples_leaf=5, random_state=0).fit(X, y)
    assert_array_equal(node_values(tree)[tree.apply(X)], tree.predict_proba(X))


# ------------------------------------------------------------------------------ a grown forest


@pytest.fixture(scope="module")
def wide_forest():
    """A forest whose predictions rest on more than one row, its rows and labels."""
    X, y = overlapping_classes(400)
    forest = BalancedForestClassifier(20, random_state=0).fit(X, y)
    assert forest.min_samples_leaf_ > 1
    return forest, X, y


def test_nothing_is_written_into_the_buffers_of_the_trees(wide_forest):
    forest, X, y = wide_forest
    draws = draws_of(y, draw_sizes(np.bincount(y), 2))
    for tree in forest.estimators_:
        rows, times = draws.rows(tree.random_state)
        alone = clone(tree).fit(X[rows], y[rows], sample_weight=times)
        assert_array_equal(tree.tree_.value, alone.tree_.value)


def test_predictions_are_those_of_a_walk_through_each_tree(wide_forest):
    forest, _, _ = wide_forest
    new, _ = overlapping_classes(100, seed=1)
    size = forest.min_samples_leaf_
    walked = [predict_row_by_row(tree, new, size) for tree in forest.estimators_]
    assert_allclose(forest.predict_proba(new), np.mean(walked, axis=0), rtol=1e-12)
    narrow = np.mean([tree.predict_proba(new) for tree in forest.estimators_], axis=0)
    assert np.max(abs(narrow - forest.predict_proba(new))) > 0.1  # the leaf size matters


def test_single_rows_predict_what_the_trees_say():
    X, y = rare_labels()
    index = np.searchsorted(["a", "b", "u"], y)
    forest = BalancedForestClassifier(5, min_samples_leaf=1, random_state=0).fit(X, index)
    assert forest.node_values_ is None
    expected = np.mean([tree.predict_proba(X) for tree in forest.estimators_], axis=0)
    assert_allclose(forest.predict_proba(X), expected, rtol=1e-12)


def test_the_leaf_size_is_chosen_by_predictions_of_trees_that_did_not_draw_a_row(monkeypatch):
    monkeypatch.setattr(trees, "LEAF_SIZES", (1, 5, 10, 20))
    X, y = overlapping_classes(120)
    draws, seen = draws_of(y, np.bincount(y)), []
    choice = LeafChoice.of(draws, np.bincount(y) / 120, None)
    monkeypatch.setattr(
        LeafChoice, "leaf_size", lambda self, predicted: seen.append(predicted) or 5
    )
    grown = grow(
        lambda seed: DecisionTreeClassifier(random_state=seed), X, y, draws, choice,
        n_trees=4, n_jobs=None, random_state=0,
    )  # fmt: skip
    expected = np.zeros((4, 120, 2))
    for tree in grown.trees:
        unseen = ~np.isin(choice.rows, draws.rows(tree.random_state)[0])
        for layer, size in zip(expected, (1, 5, 10, 20), strict=True):
            layer[unseen] += predict_row_by_row(tree, X[choice.rows[unseen]], size)
    assert_allclose(seen[0], expected, rtol=1e-12)
    assert grown.leaf_size == 5
    for tree, values in zip(grown.trees, grown.values, strict=True):
        assert_array_equal(values, node_values(tree)[ancestors_of_sizes(tree, [5])[0]])


def test_without_a_choice_trees_are_left_as_they_are():
    X, y = overlapping_classes(60)
    grown = grow(
        lambda seed: DecisionTreeClassifier(random_state=seed), X, y, draws_of(y, [5, 5]), None,
        n_trees=3, n_jobs=None, random_state=0,
    )  # fmt: skip
    assert len(grown.trees) == 3
    assert (grown.leaf_size, grown.values) == (None, None)
