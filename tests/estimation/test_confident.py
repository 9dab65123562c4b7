"""Counts of confident rows."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from looselabels.estimation.confident import confident_counts
from tests.strategies import simplex_rows


@settings(max_examples=50)
@given(
    class_proba=simplex_rows(10, 3),
    labels=st.lists(st.integers(0, 1), min_size=10, max_size=10),
    threshold=simplex_rows(1, 3),
)
def test_counts_agree_with_plain_loops(class_proba, labels, threshold):
    threshold, weight, expected = threshold[0], np.arange(10.0), np.zeros((3, 2))
    for i, row in enumerate(class_proba):
        best = None
        for k in range(3):
            if row[k] >= threshold[k] and row[k] > 0 and (best is None or row[k] > row[best]):
                best = k
        if best is not None:
            expected[best, labels[i]] += weight[i]
    counts = confident_counts(class_proba, threshold, np.array(labels), weight, 2)
    assert_allclose(counts, expected)


@pytest.mark.parametrize(
    ("tolerance", "counts"), [(None, [[1], [0]]), (1e-9, [[0.5], [0.5]]), (0.0, [[0.5], [0.5]])]
)
def test_equal_classes_share_a_row_or_the_first_gets_it(tolerance, counts):
    rows, labels = np.full((1, 2), 0.5), np.zeros(1, int)
    found = confident_counts(rows, np.zeros(2), labels, np.ones(1), 1, tolerance=tolerance)
    assert_allclose(found, counts)


def test_the_tolerance_applies_to_the_threshold():
    rows, labels, threshold = np.array([[0.7, 0.3]]), np.zeros(1, int), np.array([0.7 + 1e-12, 1])
    exact = confident_counts(rows, threshold, labels, np.ones(1), 1)
    assert exact.sum() == 0
    tolerant = confident_counts(rows, threshold, labels, np.ones(1), 1, tolerance=1e-9)
    assert_allclose(tolerant, [[1], [0]])
