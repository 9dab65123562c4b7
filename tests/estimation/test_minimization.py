"""The minimum of a smooth function."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from threadpoolctl import threadpool_info

from looselabels.estimation.minimization import minimize_smooth

TARGET = np.array([1.0, -2.0])


def distance(x):
    return np.sum((x - TARGET) ** 2), 2 * (x - TARGET)


def blas_threads():
    return [one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas"]


def test_the_minimum_is_found_within_bounds():
    assert_allclose(minimize_smooth(distance, np.zeros(2)).x, TARGET, atol=1e-6)
    assert_allclose(minimize_smooth(distance, np.zeros(2), [(0, 5)] * 2).x, [1, 0], atol=1e-6)


def test_options_are_those_of_scipy():
    assert minimize_smooth(distance, np.zeros(2)).success
    assert not minimize_smooth(distance, np.zeros(2), maxiter=0).success


def test_blas_has_one_thread_until_the_minimum_is_found_or_an_error_occurs():
    before, during = blas_threads(), []

    def watched(x):
        during.extend(blas_threads())
        if len(during) > 10 * len(before):
            raise ZeroDivisionError
        return distance(x)

    minimize_smooth(watched, np.zeros(2))
    assert set(during) == {1}
    assert blas_threads() == before
    during += [1] * 10 * len(before)
    with pytest.raises(ZeroDivisionError):
        minimize_smooth(watched, np.zeros(2))
    assert blas_threads() == before
