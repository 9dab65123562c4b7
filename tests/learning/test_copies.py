"""Copies of a row count once; rows that are equal by chance are not copies."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.preprocessing import scale

from looselabels.learning.copies import (
    RowGroups,
    _joined,
    copy_groups,
    group_rows,
    occur_too_evenly,
)

pandas = pytest.importorskip("pandas", reason="the extra `tables` is not installed")
polars = pytest.importorskip("polars", reason="polars is not installed")

RNG = np.random.default_rng(0)
NUMBERS = RNG.standard_normal((120, 4))
NUMBERS[::7, 1] = np.nan
TEXTS = [" ".join(map(str, RNG.integers(500, size=n))) for n in RNG.integers(4, 30, 120)]
WORDS = (RNG.random((120, 300)) < 0.05).astype(float)
MIXED = pandas.DataFrame(
    {
        "size": NUMBERS[:, 0],
        "color": RNG.choice(["red", "blue", None], 120),
        "kind": pandas.Categorical(RNG.choice(["cat", "dog"], 120)),
        "number": pandas.array(RNG.choice([1, 2, None], 120), dtype="Int64"),
        "day": pandas.Timestamp("2024-01-01") + pandas.to_timedelta(RNG.integers(99, size=120)),
    }
)
TWICE = np.concatenate([np.arange(120), np.arange(0, 120, 2)])  # half of the rows are there twice
TABLES = {
    "float": lambda rows: NUMBERS[rows],
    "float32": lambda rows: NUMBERS[rows].astype(np.float32),
    "lists": lambda rows: NUMBERS[rows].tolist(),
    "int": lambda rows: (1e6 * np.nan_to_num(NUMBERS[rows])).astype(int),
    "images": lambda rows: NUMBERS[rows].reshape(-1, 2, 2),
    "sparse": lambda rows: sp.csr_matrix(WORDS)[rows],
    "frame": lambda rows: MIXED.iloc[rows],
    "objects": lambda rows: MIXED.iloc[rows].to_numpy(dtype=object),
    "polars": lambda rows: polars.from_pandas(MIXED)[rows.tolist()],
    "texts": lambda rows: [TEXTS[row] for row in rows],
    "column of texts": lambda rows: pandas.DataFrame({"text": TEXTS}).iloc[rows],
    "series of texts": lambda rows: pandas.Series(TEXTS).iloc[rows],
}


def one_hot(columns):
    return np.hstack([np.eye(column.max() + 1)[column] for column in columns.T])


def survey(n_rows=400):
    """Return 16 yes-no answers of people who mostly answer as their party does."""
    rng = np.random.default_rng(0)
    lean = rng.choice([0.02, 0.1, 0.3], size=16)
    return rng.integers(2, size=(n_rows, 1)) ^ (rng.random((n_rows, 16)) < lean)


def few_values(seed):
    """Return rows whose columns have few values: independent, or of few types, or a chain."""
    rng = np.random.default_rng(seed)
    size = n_rows, n_columns = rng.choice([100, 300, 1000, 3000]), rng.choice([5, 8, 12, 20])
    n_values, kind = rng.choice([2, 3, 4, 8]), seed % 4
    X = rng.integers(n_values, size=size)
    if kind in (1, 2):  # answers that mostly follow from the type
        types = rng.integers(n_values, size=(2 + seed % 3, n_columns))
        own = types[rng.choice(len(types), n_rows, p=rng.dirichlet(np.full(len(types), 2.0)))]
        rate = rng.choice([0.02, 0.1, 0.3], n_columns if kind == 1 else 1)
        X = np.where(rng.random(size) < rate, X, own)
    if kind == 3:  # each column is mostly equal to the one before
        is_new = rng.random(size) < rng.choice([0.02, 0.1, 0.3])
        for j in range(1, n_columns):
            X[:, j] = np.where(is_new[:, j], X[:, j], X[:, j - 1])
    return X.astype(float)


# ------------------------------------------------------------------------------------- detection


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
def test_half_of_the_rows_twice_are_copies(table):
    assert_array_equal(copy_groups(table(TWICE)), TWICE)


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
def test_rows_that_differ_are_no_copies(table):
    assert copy_groups(table(np.arange(120))) is None


@pytest.mark.parametrize("one_hot_encoded", [False, True])
@pytest.mark.parametrize(
    ("n_values", "n_columns"), [(2, 2), (2, 3), (2, 4), (2, 6), (2, 10), (3, 5), (10, 3), (40, 2)]
)
def test_columns_of_few_values_have_equal_rows_by_chance(n_values, n_columns, one_hot_encoded):
    X = np.random.default_rng(0).integers(n_values, size=(500, n_columns))
    X = one_hot(X) if one_hot_encoded else X
    assert len(np.unique(X, axis=0)) < 495
    assert copy_groups(X) is None


def test_a_column_of_few_values_beside_a_constant_has_equal_rows_by_chance():
    values = np.random.default_rng(0).integers(60, size=500)
    assert copy_groups(np.column_stack([values, np.ones(500)])) is None


def test_answers_that_depend_on_each_other_are_equal_by_chance():
    X = survey().astype(int)
    assert len(X) - len(np.unique(X, axis=0)) > 50
    assert copy_groups(X) is None
    assert copy_groups(one_hot(X)) is None


@pytest.mark.parametrize("number", range(60))
def test_columns_of_few_values_have_no_copies_unless_rows_are_repeated(number):
    X = few_values(number)
    assert copy_groups(X) is None
    assert not occur_too_evenly(np.unique(X, axis=0, return_counts=True)[1])
    assert_repetitions_are_copies(X)


@pytest.mark.parametrize("load", [load_breast_cancer, load_wine, load_digits])
@pytest.mark.parametrize("n_columns", [6, 8, 12, None])
@pytest.mark.parametrize("n_values", [2, 3])
def test_real_columns_of_few_values_have_no_copies_unless_rows_are_repeated(
    load, n_columns, n_values
):
    X = scale(load().data[:, :n_columns])
    X = np.digitize(X, [0] if n_values == 2 else [-0.5, 0.5]).astype(float)
    assert copy_groups(X) is None
    assert_repetitions_are_copies(X)


def assert_repetitions_are_copies(X):
    n_rows, n_distinct = len(X), len(np.unique(X, axis=0))
    for times in (2, 3):
        repeated = np.tile(X, (times, 1))
        shuffled = np.random.default_rng(0).permuted(repeated, axis=0)
        n_by_chance = len(repeated) - len(np.unique(shuffled, axis=0))
        if n_distinct > 0.5 * n_rows and n_by_chance < 0.3 * n_rows:
            assert len(np.unique(copy_groups(repeated))) == n_distinct


def test_few_equal_rows_do_not_matter():
    assert copy_groups(load_iris().data) is None  # one of 150
    assert copy_groups(NUMBERS[np.r_[:120, :4]]) is None
    assert copy_groups(NUMBERS[np.r_[:120, :5]]) is not None


def test_one_rich_column_is_enough():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.random(300), rng.integers(2, size=(300, 9))])
    assert copy_groups(X) is None
    assert_array_equal(copy_groups(np.repeat(X, 2, axis=0)), np.repeat(np.arange(300), 2))


def test_one_column_of_numbers_or_of_short_texts_says_nothing():
    assert copy_groups(np.repeat(NUMBERS[:, :1], 2, axis=0)) is None
    assert copy_groups(["yes", "no"] * 100) is None


def test_a_few_different_rows_are_no_sample():
    assert copy_groups(np.tile(NUMBERS[:19], (5, 1))) is None
    assert copy_groups(np.tile(NUMBERS[:20], (5, 1))) is not None


def test_minus_zero_is_zero_and_a_stored_zero_is_none():
    X = np.random.default_rng(0).standard_normal((40, 3))
    X[:, 0] = 0.0
    signs = np.where(np.arange(3) == 0, -1.0, 1.0)
    assert copy_groups(np.vstack([X, X * signs])) is not None
    stored = sp.csr_matrix(np.vstack([X, X]) + 1)
    stored.data -= 1
    assert_array_equal(copy_groups(stored), np.tile(np.arange(40), 2))


@pytest.mark.parametrize(
    "X",
    [
        [[[1], [2]], [[3]]] * 40,
        np.array([{}, set()] * 40, dtype=object).reshape(-1, 2),
        np.ones((80, 2), dtype=complex),
        np.zeros((0, 2)),
        iter([[1.0, 2.0]] * 80),
    ],
    ids=["ragged", "unhashable", "complex", "empty", "iterator"],
)
def test_nothing_is_found_in_other_types(X):
    assert copy_groups(X) is None


def test_copies_are_numbered_by_first_occurrence():
    X = load_digits().data
    assert_array_equal(copy_groups(np.tile(X, (3, 1))), np.tile(np.arange(len(X)), 3))


# --------------------------------------------------------------------------------- groups, weights


def test_groups_can_have_any_names():
    for groups in (
        ["b", "a", "b"],
        np.array([7, 3, 7]),
        pandas.Series(["b", "a", "b"]),
        (2.5, 1, 2.5),
    ):
        found = group_rows(np.zeros((3, 1)), groups)
        assert_array_equal(found.group_index, [0, 1, 0])
        assert not found.are_copies


def test_groups_of_one_row_each_are_no_groups_and_stop_the_search_for_copies():
    X = np.repeat(NUMBERS, 2, axis=0)
    assert group_rows(X).are_copies
    assert group_rows(X, range(240)) is None


def test_copies_are_found_in_groups_too_and_are_in_one_group():
    X = np.tile(NUMBERS, (3, 1))
    kept = group_rows(X, np.tile(np.arange(120) // 4, 3))
    assert_array_equal(kept.group_index, np.tile(np.arange(120) // 4, 3))
    joined = group_rows(X, np.arange(360) // 5)  # 24 groups in each copy of the table
    assert_array_equal(joined.group_index, np.tile(np.arange(120) // 5, 3))
    for found in (kept, joined):
        assert_array_equal(found.copy_index, np.tile(np.arange(120), 3))
        assert found.n_copies == 240
        assert found.copies_per_row(np.ones(360)) == 3
        assert_allclose(found.count_once(np.zeros(360, int), np.ones(360)), np.arange(360) < 120)


def test_groups_that_copies_link_to_one_are_not_kept_and_warned_about():
    X, hospital = np.tile(NUMBERS, (3, 1)), np.repeat(["A", "B", "C"], 120)
    with pytest.warns(UserWarning, match="one group would have 360 of 360 rows.*groups were not"):
        found = group_rows(X, hospital)
    assert_array_equal(found.group_index, np.tile(np.arange(120), 3))
    assert_array_equal(found.copy_index, found.group_index)


@given(st.lists(st.tuples(st.integers(0, 30), st.booleans()), min_size=30, max_size=60))
def test_rows_are_together_exactly_if_groups_and_copies_link_them(rows):
    groups = np.array([group for group, _ in rows])
    source = np.array([0 if is_copy else row for row, (_, is_copy) in enumerate(rows)])
    linked = (groups[:, None] == groups) | (source[:, None] == source)
    for _ in rows:
        linked = linked @ linked
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = _joined(*(np.unique(index, return_inverse=True)[1] for index in (groups, source)))
    if linked.sum(axis=0).max() <= len(rows) / 2:
        assert_array_equal(found[:, None] == found, linked)
    assert set(found) == set(range(found.max() + 1))


def test_some_rows_keep_their_groups_and_copies():
    groups = RowGroups(np.array([0, 1, 2, 1, 2]), np.array([0, 1, 2, 3, 2])).take([2, 3, 4])
    assert_array_equal(groups.group_index, [1, 0, 1])
    assert_array_equal(groups.copy_index, [0, 1, 0])


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        ([1, 2], "groups has 2 values; X has 3 rows"),
        ([1, None, 2], "groups must have a value in each row; row 1 has none"),
        ([1.0, 2.0, np.nan], "row 2 has none"),
        ([[1], [2], [1]], r"names or numbers; it starts with \[1\]"),
    ],
)
def test_bad_groups_are_refused(groups, message):
    with pytest.raises(ValueError, match=message):
        group_rows(np.zeros((3, 1)), groups)


# half of the smallest float is 0
WEIGHTS = st.floats(0, 9, allow_subnormal=False)


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2), WEIGHTS), min_size=1))
def test_copies_count_once_and_move_no_weight_between_labels(rows):
    names, labels, weight = (np.array(column) for column in zip(*rows, strict=True))
    index = np.unique(names, return_inverse=True)[1]
    groups = RowGroups(index, index)
    counts = groups.count_once(labels, weight)
    for group in np.unique(index):
        own = index == group
        repeats = min(max(weight[own].sum(), 1), max(np.count_nonzero(weight[own]), 1))
        for label in range(3):
            rows_of = own & (labels == label)
            assert_allclose(counts[rows_of].sum(), weight[rows_of].sum() / repeats)
            assert np.count_nonzero(counts[rows_of]) <= 1
    assert groups.n_copies == len(rows) - len(np.unique(index))
    assert RowGroups(index).count_once(labels, weight) is weight


def test_a_copy_of_weight_zero_is_as_good_as_absent():
    copies = np.array([0, 0, 1, 1])
    groups = RowGroups(copies, copies)
    counts = groups.count_once(np.zeros(4, int), np.array([1.0, 0.0, 1.0, 3.0]))
    assert_array_equal(counts, [1, 0, 2, 0])
    assert groups.copies_per_row(np.array([1.0, 0.0, 1.0, 0.0])) == 1


def test_parts_of_a_row_that_add_up_to_one_repeat_nothing():
    rows = np.repeat(np.arange(50), 2)
    groups, weight = RowGroups(rows, rows), np.tile([0.8, 0.2], 50)
    counts = groups.count_once(np.tile([0, 1], 50), weight)
    assert_allclose(counts, weight)
    assert groups.copies_per_row(weight) == pytest.approx(1)
    assert groups.copies_per_row(np.ones(100)) == 2


def test_the_design_effect_is_that_of_a_mean_over_rows():
    rng = np.random.default_rng(0)
    sizes = np.array([1] * 50 + [4] * 10)
    groups = RowGroups(np.zeros(90, int), np.repeat(np.arange(60), sizes))
    means = [np.repeat(rng.standard_normal(60), sizes).mean() for _ in range(20_000)]
    assert np.var(means) * 90 == pytest.approx(groups.copies_per_row(np.ones(90)), rel=0.03)
    assert RowGroups(groups.group_index).copies_per_row(np.ones(90)) == 1
