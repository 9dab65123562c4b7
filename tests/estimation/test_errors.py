"""Rates and directions of errors, shrunk by their evidence."""

import numpy as np
from numpy.testing import assert_allclose
from scipy.stats import betabinom

from looselabels.estimation.errors import equal_errors, fit_shrinkage, shrunk_noise


def rates_of(counts, design):
    equal = equal_errors(design)
    return 1 - np.diag(shrunk_noise(counts, equal, fit_shrinkage(counts, equal)))


def test_random_differences_between_rates_and_directions_are_shrunk_away(rng):
    p = np.eye(6) * 0.7 + 0.3 * equal_errors(np.eye(6))
    counts = np.array([rng.multinomial(200, row) for row in p]).astype(float)
    equal = equal_errors(np.eye(6))
    found = shrunk_noise(counts, equal, fit_shrinkage(counts, equal))
    assert np.abs(found - p).max() < 0.045
    assert np.abs(found - p).mean() < 0.7 * np.abs(counts / 200 - p).mean()


def test_real_differences_remain():
    counts = np.array([[60.0, 40.0, 0.0], [0.0, 100.0, 0.0], [0.0, 0.0, 100.0]])
    equal = equal_errors(np.eye(3))
    found = shrunk_noise(counts, equal, fit_shrinkage(counts, equal))
    assert_allclose(found, counts / 100, atol=0.02)


def test_a_class_with_few_rows_has_about_the_pooled_rate():
    counts = np.array([[800.0, 200.0, 0], [210.0, 790, 0], [0, 0, 2.0]])
    assert 0.15 < rates_of(counts, np.eye(3))[2] < 0.21


def test_the_strengths_maximize_the_evidence_of_the_counts():
    """A second route: Beta-binomial and Dirichlet-multinomial probabilities, label by label."""
    counts = np.array([[9, 7, 1, 1], [2, 30, 5, 0], [3, 3, 25, 3], [0, 1, 6, 5]])
    found = fit_shrinkage(counts.astype(float), equal_errors(np.eye(4)))

    def of_rates(strength):
        n = counts.sum(axis=1)
        a, b = strength * found.rate, strength * (1 - found.rate)
        return betabinom(n, a, b).logpmf(n - np.diag(counts)).sum()

    def of_directions(strength):
        value = 0.0
        for row in range(4):
            seen = np.full(4, strength / 3)
            for column in set(range(4)) - {row}:
                for _ in range(counts[row, column]):
                    value += np.log(seen[column] / np.delete(seen, row).sum())
                    seen[column] += 1
        return value

    for factor in (0.7, 0.9, 1.1, 1.4):
        assert of_rates(found.rate_strength) > of_rates(found.rate_strength * factor)
        assert of_directions(found.direction_strength) > of_directions(
            found.direction_strength * factor
        )


def test_no_rate_is_above_the_highest(rng):
    counts, equal = np.array([[10.0, 90.0], [5.0, 95.0]]), equal_errors(np.eye(2))
    found = shrunk_noise(counts, equal, fit_shrinkage(counts, equal), max_rate=0.45)
    assert_allclose(found[0], [0.55, 0.45])
    assert found[1, 0] < 0.45


def test_a_class_that_no_label_excludes_has_no_errors():
    design = np.array([[0.5, 0.5], [1.0, 0.0]])  # label 1 excludes class 1
    equal = equal_errors(design)
    assert_allclose(equal, [[0, 0], [1, 0]])
    found = shrunk_noise(
        np.array([[50.0, 0], [10.0, 40.0]]), equal, fit_shrinkage(np.ones((2, 2)), equal)
    )
    assert_allclose(found[0], [1, 0])


def test_the_pooled_rate_is_that_of_all_rows_and_half_an_error_more():
    counts = np.array([[8.0, 2.0], [1.0, 9.0]])
    assert_allclose(fit_shrinkage(counts, equal_errors(np.eye(2))).rate, 3.5 / 21)
