"""Subsets of rows."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from looselabels.estimation.sampling import limit_rows, sample_rows


def test_many_columns_allow_fewer_rows_down_to_a_minimum():
    limits = [limit_rows(n, max_rows=10_000, min_rows=1_000) for n in (1, 30, 60, 300, 10_000)]
    assert limits == [10_000, 10_000, 5_000, 1_000, 1_000]


@pytest.mark.parametrize("n_rows", [1, 9, 10, 11, 19, 20, 21, 101])
@pytest.mark.parametrize("random_state", [None, 0])
def test_rows_are_distinct_sorted_and_never_too_many(n_rows, random_state):
    rows = sample_rows(n_rows, 10, random_state=random_state)
    assert len(rows) <= 10
    assert (np.diff(rows) > 0).all()
    assert 0 <= rows[0] <= rows[-1] < n_rows
    if n_rows <= 10:
        assert_array_equal(rows, np.arange(n_rows))


def test_rows_without_a_seed_are_evenly_spaced():
    assert_array_equal(sample_rows(11, 5), [0, 3, 6, 9])


def test_the_seed_decides_which_rows_are_drawn():
    first, again, other = (sample_rows(1000, 10, random_state=seed) for seed in (0, 0, 1))
    assert_array_equal(first, again)
    assert (first != other).any()


def test_shuffled_rows_come_in_random_order_and_advance_the_generator():
    rng = np.random.default_rng(0)
    first, second = (sample_rows(50, 100, random_state=rng, shuffle=True) for _ in range(2))
    assert_array_equal(np.sort(first), np.arange(50))
    assert (first != np.arange(50)).any()
    assert (first != second).any()
    assert len(sample_rows(50, 20, random_state=rng, shuffle=True)) == 20
