"""Predicted probabilities compared with observed frequencies."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from looselabels.estimation.reliability import N_BINS, calibration_error, reliability


def test_bins_by_hand():
    confidence = np.array([0.52, 0.58, 0.91, 1.0])
    is_right = np.array([True, False, True, True])
    label_proba = np.column_stack([confidence, 1 - confidence])
    found = reliability(label_proba, np.where(is_right, 0, 1))
    assert_allclose(found.predicted, [0.55, 0.955])  # 1.0 is in the last bin
    assert_allclose(found.observed, [0.5, 1.0])
    assert_allclose(found.n_rows, [2, 2])
    assert found.error == pytest.approx((0.05 * 2 + 0.045 * 2) / 4)
    assert found.error == calibration_error(confidence, is_right, np.ones(4))


def test_probabilities_that_are_right_have_no_error(rng):
    label_proba = rng.dirichlet(np.ones(3), 50_000)
    labels = (rng.random((50_000, 1)) > label_proba.cumsum(axis=1)).sum(axis=1)
    found = reliability(label_proba, labels)
    assert found.error < 0.01  # ten bins of thousands of rows; 0.004 by chance
    overconfident = label_proba**3 / (label_proba**3).sum(axis=1, keepdims=True)
    assert reliability(overconfident, labels).error > 0.1


def test_a_weight_is_a_number_of_rows(rng):
    label_proba, labels = rng.dirichlet(np.ones(3), 60), rng.integers(3, size=60)
    weight = rng.integers(0, 3, 60)
    rows = np.repeat(np.arange(60), weight)
    weighted = reliability(label_proba, labels, weight.astype(float))
    repeated = reliability(label_proba[rows], labels[rows])
    for one, other in zip(weighted, repeated, strict=True):
        assert_allclose(one, other)
    assert len(weighted.n_rows) <= N_BINS


def test_without_rows_there_is_no_error():
    found = reliability(np.array([[0.7, 0.3]]), np.array([0]), np.zeros(1))
    assert found.error is None


def test_a_bin_with_one_row_or_a_part_of_one_counts():
    found = reliability(np.array([[0.9, 0.1], [0.6, 0.4]]), np.array([0, 1]), np.array([1.0, 0.5]))
    assert_allclose(found.n_rows, [0.5, 1])
    assert_allclose(found.predicted, [0.6, 0.9])
    assert_allclose(found.observed, [0, 1])
