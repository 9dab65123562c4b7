"""log Γ and ψ in one pass."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import digamma, gammaln

from looselabels.estimation.log_gamma import BLOCK, log_gamma_and_slope


@pytest.mark.parametrize(("low", "high"), [(1e-100, 1e-3), (1e-3, 1), (1, 10), (10, 1e12)])
def test_both_are_those_of_scipy(low, high):
    x = np.geomspace(low, high, 10_000)
    log_gamma, slope = log_gamma_and_slope(x)
    assert_allclose(log_gamma, gammaln(x), rtol=1e-13, atol=1e-12)
    assert_allclose(slope, digamma(x), rtol=1e-13, atol=1e-12)


@pytest.mark.parametrize("shape", [(0, 3), (1,), (BLOCK + 1, 2)])
def test_the_shape_is_kept(shape):
    x = np.linspace(0.1, 9, int(np.prod(shape))).reshape(shape)
    assert_allclose(log_gamma_and_slope(x), [gammaln(x), digamma(x)], atol=1e-12)
