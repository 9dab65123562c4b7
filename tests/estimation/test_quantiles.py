"""Intervals from draws."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from looselabels.estimation.quantiles import interval_ends, quantile_interval


def test_the_ends_leave_the_same_share_below_and_above():
    low, high = interval_ends(0.8)
    assert low == pytest.approx(0.1)
    assert high == pytest.approx(0.9)
    assert_allclose(interval_ends(), [0.05, 0.95])


@pytest.mark.parametrize("level", [0, 1, 90, -0.1, np.nan])
def test_a_level_is_a_probability(level):
    with pytest.raises(ValueError, match="level must be between 0 and 1"):
        interval_ends(level)


def test_the_interval_of_normal_draws_is_known(rng):
    draws = rng.normal([0.0, 10.0], [1.0, 2.0], (100_000, 2))
    low, high = quantile_interval(draws)
    assert_allclose(low, [-1.645, 10 - 2 * 1.645], atol=0.04)  # standard error 0.013
    assert_allclose(high, [1.645, 10 + 2 * 1.645], atol=0.04)
