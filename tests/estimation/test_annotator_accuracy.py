"""Accuracies of annotators whose rows have uncertain classes."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from looselabels.estimation.annotator_accuracy import _population, count_right


def mean_of(found):
    a, b = found.beta()
    return a / (a + b)


def test_with_known_classes_it_is_the_share_of_right_answers(rng):
    accuracy = rng.uniform(0.2, 0.95, size=30)
    annotator = np.repeat(np.arange(30), 400)
    right = (rng.random(len(annotator)) < accuracy[annotator]).astype(float)
    found = count_right(annotator, right, 1 - right, np.ones(len(right)), 30)
    share = np.bincount(annotator, right) / 400
    assert_allclose(mean_of(found), share, atol=0.01)
    assert_allclose(found.size, 400, rtol=0.02)


def test_answers_that_are_equally_likely_if_wrong_say_nothing():
    right = np.tile([1.0, 0.0, 1.0, 1.0], 10)
    known = count_right(np.zeros(40, int), right, 1 - right, np.ones(40), 2)
    annotator = np.r_[np.zeros(40, int), np.ones(500, int)]
    padded = np.r_[right, np.full(500, 0.4)], np.r_[1 - right, np.full(500, 0.4)]
    found = count_right(annotator, *padded, np.ones(540), 2)
    assert found.size[1] < 2
    assert_allclose(mean_of(found)[0], mean_of(known)[0], atol=0.02)


def test_the_mode_is_that_of_the_likelihood_and_the_prior(rng):
    """A second route: a grid of accuracies for one annotator among many."""
    annotator = np.repeat(np.arange(50), 60)
    truth = rng.random(len(annotator)) < np.linspace(0.4, 0.9, 50)[annotator]
    strength = rng.uniform(0, 1, len(annotator))  # how well the class of the row is known
    right = np.where(truth, 0.5 + strength / 2, 0.5 - strength / 2)
    found = count_right(annotator, right, 1 - right, np.ones(len(right)), 50)
    grid = np.linspace(0.001, 0.999, 999)
    mine = annotator == 7
    likelihood = np.log(np.outer(grid, right[mine]) + np.outer(1 - grid, 1 - right[mine]))
    peak = grid[likelihood.sum(axis=1).argmax()]
    assert found.mode[7] == pytest.approx(peak, abs=0.08)  # shrunk to the others
    assert abs(found.mode[7] - 0.65) < abs(peak - 0.65) + 0.02
    assert found.size[7] < 60


def test_the_accuracies_of_all_include_one_annotator_about_whom_nothing_is_known():
    """Two annotators were right in all of many answers, so that their accuracy is the highest."""
    annotator, right = np.repeat([0, 1], 2000), np.ones(4000)
    mean, variance = _population(annotator, right, 1 - right, np.ones(4000), 2)
    highest, grid = 0.975, np.arange(0.025, 1, 0.05)
    assert mean == pytest.approx((2 * highest + grid.mean()) / 3, abs=1e-6)
    squares = (2 * highest**2 + (grid**2).mean()) / 3
    assert variance == pytest.approx(squares - mean**2, abs=1e-6)


def test_a_weight_counts_answers(rng):
    right = np.array([1.0, 0.0])
    weighted = count_right(np.zeros(2, int), right, 1 - right, np.array([30.0, 10.0]), 1)
    repeated = np.repeat(right, [30, 10])
    found = count_right(np.zeros(40, int), repeated, 1 - repeated, np.ones(40), 1)
    assert_allclose(weighted.beta(), found.beta())


@pytest.mark.parametrize("right", [0.0, 1.0])
def test_annotators_who_are_always_right_or_wrong_are_no_special_case(right):
    values = np.full(50, right)
    found = count_right(np.zeros(50, int), values, 1 - values, np.ones(50), 1)
    assert mean_of(found)[0] == pytest.approx(right, abs=0.03)
    assert np.isfinite(found.size).all()
