"""The second row solver: rows on which Newton's method of `_rows` makes no progress."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from looselabels import _rows
from looselabels._interior import _start, _step, solve_inside
from looselabels._validation import as_numpy
from tests import reference

RING = 0.7 * np.eye(10) + 0.3 * np.roll(np.eye(10), 1, axis=1)
LOG_PRIOR = np.log(np.arange(1, 11) / 55)
HARD = np.array([[1e-17, 0.9978, 1.6e-3, 1e-15, 5e-14, 6e-4, 1e-18, 5e-12, 1.4e-7, 5e-8]])


def gaps(labels, class_proba, transition, log_prior):
    return _rows.evaluate(labels, class_proba, transition, log_prior).gap


def test_a_row_that_newton_steps_leave_is_solved():
    uniform = np.full((1, 10), 0.1)
    left = _rows.ascend(HARD, uniform, RING, LOG_PRIOR, 1e-9)
    assert gaps(HARD, left, RING, LOG_PRIOR) > 0.1
    found = solve_inside(HARD, left, RING, LOG_PRIOR, 1e-9)
    assert gaps(HARD, found, RING, LOG_PRIOR) <= 1e-9


@pytest.mark.parametrize("prior", [None, [0.2, 0.3, 0.5]])
def test_it_reaches_the_optimum_of_scipy(rng, prior):
    transition = np.array([[0.8, 0.2, 0.0], [0.1, 0.9, 0.0], [0.0, 0.3, 0.7]])
    labels = rng.dirichlet(np.full(3, 0.5), 20)
    labels[0] = [0.4, 0.6, 0.0]
    log_prior = None if prior is None else np.log(prior)
    found = solve_inside(labels, np.full((20, 3), 1 / 3), transition, log_prior, 1e-10)
    assert gaps(labels, found, transition, log_prior).max() <= 1e-10
    for row, classes in zip(labels, found, strict=True):
        expected, _ = reference.solve_row(row, transition, prior)
        assert_allclose(classes, expected, atol=1e-4)


def test_steps_lead_to_a_point_where_all_conditions_hold(rng):
    labels, log_prior = rng.dirichlet(np.ones(10), 20), LOG_PRIOR
    at = _start(labels, RING, log_prior)
    for _ in range(40):
        at = _step(at, labels, RING, log_prior)
    y, r, z, level = at
    assert_allclose(r @ RING.T + log_prior + z, np.tile(level, 10), atol=1e-9)
    assert_allclose(y.sum(axis=1), 1, atol=1e-9)
    assert_allclose(y @ RING * r, labels, atol=1e-9)
    assert_allclose(y * z, 0, atol=1e-9)
    assert min(y.min(), z.min()) > 0


def test_it_never_returns_worse_than_it_was_given():
    best = _rows.ascend(HARD, np.full((1, 10), 0.1), RING, None, 1e-12)
    found = solve_inside(HARD, best, RING, None, 1e-30)  # which cannot be reached
    assert gaps(HARD, found, RING, None) <= gaps(HARD, best, RING, None)
    assert_array_equal(solve_inside(HARD, best, RING, None, 1e-9), best)


def test_it_accepts_arrays_of_other_libraries(xp):
    labels, start, transition, log_prior = (
        xp.asarray(part, dtype=xp.float64)
        for part in (HARD, np.full((1, 10), 0.1), RING, LOG_PRIOR)
    )
    found = as_numpy("found", solve_inside(labels, start, transition, log_prior, 1e-9))
    assert gaps(HARD, found, RING, LOG_PRIOR) <= 1e-9
