"""Passes over the answers of several annotators: extrapolation, and answers that are missing."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from looselabels.annotations import Answers
from looselabels.estimation.annotator_levels import Prior
from looselabels.estimation.annotator_passes import MAX_JUMP, Guess, Problem, extrapolate


def guess(counts, common=((0.5, 0.5, 0.0), (0.2, 0.0, 0.8))):
    counts, common = np.array(counts, float) ** 2, np.array([common])
    prior = Prior(common, np.array([[2.0], [3.0]]), np.array([[0.5], [0.5]]))
    return Guess(counts, np.array([0.3, 0.7]), prior)


def test_a_change_that_bends_is_followed_to_its_third_point():
    path = [guess([[x, 1.0]]) for x in (1.0, 2.0, 0.5)]
    assert_allclose(extrapolate(*path).counts, path[2].counts)


def test_a_steady_change_is_followed_further_but_not_without_end():
    path = [guess([[x, 1.0]]) for x in (1.0, 1.5, 1.75)]  # halved: it ends at 2
    assert_allclose(extrapolate(*path).counts, [[4.0, 1.0]])
    path = [guess([[x, 1.0]]) for x in (1.0, 1.1, 1.2)]
    assert_allclose(extrapolate(*path).counts, [[(1.0 + 2 * MAX_JUMP * 0.1) ** 2, 1.0]])


def test_a_label_that_is_impossible_stays_so():
    found = extrapolate(*(guess([[x, 1.0]]) for x in (1.0, 1.5, 1.75))).prior.common
    assert_allclose(found, guess([[1.0, 1.0]]).prior.common)
    assert np.all((found == 0) == (guess([[1.0, 1.0]]).prior.common == 0))


def test_an_annotator_who_answered_every_row_left_out_none():
    rows, annotators = np.array([0, 0, 1, 2]), np.array([0, 1, 0, 0])
    answers = Answers(rows, annotators, np.array([0, 1, 1, 0]), 3, 2, 3, missing_label=2)
    design = np.array([[0.7, 0.1, 0.2], [0.1, 0.7, 0.2]])
    problem = Problem.read(None, answers, None, np.inf, design, None)
    class_proba = np.array([[0.9, 0.1], [0.2, 0.8], [0.5, 0.5]])
    found = problem.count_answers(class_proba)
    is_missing = problem.label == 2
    assert problem.annotator[is_missing].tolist() == [0, 1]
    assert_allclose(found[is_missing], [[0, 0], [0.7, 1.3]], atol=1e-12)


def small_problem(rng):
    """Return a problem with 60 rows, 5 annotators and 3 classes, and its first pass."""
    row, annotator = np.divmod(np.arange(300), 5)
    answers = Answers(row, annotator, (row + (rng.random(300) < 0.3)) % 3, 60, 5, 3)
    problem = Problem.read(None, answers, None, np.inf, None, None)
    return problem, problem.run_pass(problem.first_guess())


@pytest.mark.parametrize("at_once", [True, False])
def test_the_objective_never_falls(rng, at_once):
    problem, found = small_problem(rng)
    for _ in range(20):
        new = problem.next_pass(found, at_once)
        assert new.objective > found.objective - 1e-9
        found = new


def test_a_prior_that_lowers_the_objective_is_improved_for_the_new_counts(rng):
    problem, found = small_problem(rng)
    bad = found.prior._replace(common=found.prior.common[:, [1, 2, 0]])
    found = found._replace(prior=bad)
    assert problem.run_pass(problem.next_guess(found)).objective < found.objective
    assert problem.next_pass(found).objective > found.objective
