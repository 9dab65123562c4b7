"""Of each label as many rows are kept as are expected to get their class right."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from looselabels.learning.sure_rows import most_probable, surest_rows


def two_classes(first):
    return np.column_stack([first, 1 - np.asarray(first)])


def test_all_rows_are_kept_if_all_classes_are_sure():
    class_proba = np.eye(3)[[0, 1, 2, 2, 1]]
    assert surest_rows(class_proba, np.array([0, 1, 2, 0, 0]), np.ones(5)).all()


def test_the_share_of_a_label_that_is_kept_is_its_mean_sureness():
    rng = np.random.default_rng(0)
    class_proba, index = rng.dirichlet(np.ones(3), 1000), rng.integers(0, 2, 1000)
    kept, sureness = surest_rows(class_proba, index, np.ones(1000)), class_proba.max(axis=1)
    for label in range(2):
        of_label = index == label
        assert abs(kept[of_label].sum() - sureness[of_label].sum()) <= 1
        assert sureness[of_label & kept].min() >= sureness[of_label & ~kept].max()


def test_labels_do_not_compete():
    """A label that is often wrong does not lose all of its rows to one that never is."""
    class_proba = two_classes([1.0, 1.0, 0.6, 0.55, 0.5])
    kept = surest_rows(class_proba, np.array([0, 0, 1, 1, 1]), np.ones(5))
    assert_array_equal(kept, [True, True, True, True, False])


def test_equally_sure_rows_are_kept_together():
    assert surest_rows(two_classes([0.8] * 5), np.zeros(5, int), np.ones(5)).all()


@given(st.lists(st.tuples(st.floats(0, 1), st.integers(0, 2), st.integers(1, 3)), min_size=1))
def test_weights_are_copies(rows):
    first, index, times = (np.array(column) for column in zip(*rows, strict=True))
    class_proba, index = two_classes(first), index.astype(int)
    weighted = surest_rows(class_proba, index, times.astype(float))
    copied = surest_rows(np.repeat(class_proba, times, axis=0), np.repeat(index, times),
                         np.ones(times.sum()))  # fmt: skip
    assert_array_equal(np.repeat(weighted, times), copied)


@pytest.mark.parametrize("n_classes", [2, 5])
def test_the_most_probable_class_has_all_probability(n_classes):
    class_proba = np.random.default_rng(0).dirichlet(np.ones(n_classes), 20)
    found = most_probable(class_proba)
    assert_array_equal(found.sum(axis=1), 1)
    assert_array_equal(found.argmax(axis=1), class_proba.argmax(axis=1))
