"""One pass over the rows: sums over blocks, repeated passes, and rows that keep their labels."""

import os
import subprocess
import sys
from contextvars import copy_context
from threading import get_ident

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from threadpoolctl import threadpool_info, threadpool_limits

from looselabels import _blocks, _rows
from looselabels._blocks import Rows, minus_divergence, row_problem, solve_block, weighted, xlogy
from tests import reference

NOISY = np.array([[0.8, 0.15, 0.05], [0.1, 0.7, 0.2], [0.05, 0.05, 0.9]])
TOL = 1e-9


def test_the_sums_of_a_block_are_those_of_the_paper(rng):
    labels, prior = rng.dirichlet(np.ones(3), 15), np.array([0.2, 0.3, 0.5])
    found = solve_block(labels, None, None, row_problem(NOISY, prior, TOL))
    mass = reference.label_mass(labels, found.class_proba, NOISY)
    assert_allclose(found.label_mass, mass, atol=1e-10)
    value = reference.objective(labels, found.class_proba, NOISY, class_prior=prior)
    assert found.objective == pytest.approx(value, abs=1e-10)
    assert found.gap.max() <= TOL
    assert found.n_ambiguous == 0


def test_a_weight_multiplies_what_a_row_adds_to_the_sums(rng):
    labels, weight = rng.dirichlet(np.ones(3), 10), np.arange(10.0)
    problem = row_problem(NOISY, None, TOL)
    found = solve_block(labels, None, weight, problem)
    alone = [solve_block(labels[[i]], None, None, problem) for i in range(10)]
    mass = sum(w * block.label_mass for w, block in zip(weight, alone, strict=True))
    assert_allclose(found.label_mass, mass, atol=1e-10)
    value = sum(w * block.objective for w, block in zip(weight, alone, strict=True))
    assert found.objective == pytest.approx(value, abs=1e-10)


def test_a_pass_adds_up_its_blocks(rng, monkeypatch):
    labels = rng.dirichlet(np.ones(3), 50)
    problem = row_problem(NOISY, None, TOL)
    whole = solve_block(labels, None, None, problem)
    monkeypatch.setattr(_blocks, "ELEMENTS_PER_BLOCK", 0)
    monkeypatch.setattr(_blocks, "MIN_BLOCK_ROWS", 7)
    rows = Rows(labels, None, 3)
    assert [len(range(50)[block]) for block in rows.blocks] == [7] * 7 + [1]
    found = rows.solve(problem)
    assert_allclose(rows.class_proba, whole.class_proba, atol=1e-9)
    assert_allclose(found.label_mass, whole.label_mass, atol=1e-8)
    assert found.objective == pytest.approx(whole.objective, abs=1e-9)
    assert found.max_gap == rows.gap.max() <= TOL
    assert found.mean_gap == pytest.approx(rows.gap.mean())


def test_the_first_pass_does_not_depend_on_what_was_in_memory(rng):
    labels = rng.dirichlet(np.ones(2), 20)
    transition = np.array([[0.8, 0.2], [0.3, 0.7], [0.5, 0.5]])
    problem, rows = row_problem(transition, None, TOL), Rows(labels, None, 3)
    rows.class_proba[:] = np.nan
    assert rows.solve(problem).max_gap <= TOL
    assert_allclose(rows.class_proba, solve_block(labels, None, None, problem).class_proba)


def test_two_classes_that_explain_a_row_equally_well_share_it():
    transition = np.array([[0.4, 0.4, 0.2, 0.0], [0.4, 0.4, 0.0, 0.2], [0.1, 0.1, 0.6, 0.2]])
    labels = np.array([[0.5, 0.5, 0.0, 0.0], [0.2, 0.3, 0.0, 0.5]])
    problem = row_problem(transition, None, TOL)
    start = np.array([[0.8, 0.2, 0.0], [0.1, 0.1, 0.8]])  # the first row is an optimum already
    found = solve_block(labels, start, None, problem)
    assert_allclose(found.class_proba[0], [0.5, 0.5, 0.0], atol=1e-9)
    assert found.n_ambiguous == 1


@pytest.mark.parametrize("difference", [0.1, 1e-6])
def test_classes_that_differ_little_still_have_one_optimum_if_every_label_is_seen(difference):
    transition = np.array([[0.5, 0.5], [0.5 + difference, 0.5 - difference]])
    labels = np.array([[0.8, 0.2], [0.3, 0.7]]) @ transition
    found = solve_block(labels, None, None, row_problem(transition, None, TOL))
    assert_allclose(found.class_proba, [[0.8, 0.2], [0.3, 0.7]], atol=1e-6)
    assert found.n_ambiguous == 0


def test_restore_returns_to_the_state_that_was_kept(rng):
    rows = Rows(rng.dirichlet(np.ones(3), 20), None, 3)
    rows.solve(row_problem(NOISY, None, TOL))
    before, gap = rows.class_proba.copy(), rows.gap.copy()
    rows.keep()
    for prior in ([0.2, 0.3, 0.5], [0.6, 0.3, 0.1]):
        rows.solve(row_problem(NOISY, np.array(prior), TOL))
        assert np.abs(rows.class_proba - before).max() > 0.01
    rows.restore()
    assert_array_equal(rows.class_proba, before)
    assert_array_equal(rows.gap, gap)


def test_a_row_whose_label_became_impossible_for_its_classes_gets_a_class_that_can_have_it():
    labels = np.array([[1.0, 0.0]])
    rows = Rows(labels, None, 2)
    rows.solve(row_problem(np.array([[0.9, 0.1], [0.0, 1.0]]), None, TOL))
    assert_allclose(rows.class_proba, [[1, 0]])
    found = rows.solve(row_problem(np.array([[0.0, 1.0], [0.5, 0.5]]), None, TOL))
    assert_allclose(rows.class_proba, [[0, 1]], atol=1e-9)
    assert found.max_gap <= TOL


@pytest.mark.parametrize("solver", ["compiled", "batched"])
@pytest.mark.parametrize("rare", [1.0, 1e-3, 1e-13])
def test_a_row_whose_label_became_almost_impossible_for_its_class_is_solved(
    rare, solver, monkeypatch
):
    """Its class would have to grow from 1e-100: hundreds of Newton steps that double it."""
    if solver == "batched":
        monkeypatch.setattr(_blocks, "_row_solver", lambda labels: _rows)
    labels, before = np.array([[rare, 1 - rare]]), np.array([[1.0, 0.0]])
    problem = row_problem(np.array([[1e-100, 1.0], [0.5, 0.5]]), None, TOL)
    with np.errstate(all="raise", under="ignore"):
        found = solve_block(labels, before, None, problem)
    assert found.gap.max() <= TOL
    assert_allclose(found.class_proba[0, 1], min(2 * rare, 1), rtol=1e-3)


def test_the_parameters_of_a_pass():
    problem = row_problem(NOISY, None, TOL)
    assert problem.rank == 3
    assert problem.log_prior is None  # a uniform prior adds a constant
    assert_allclose(problem.inverse, np.linalg.inv(NOISY))
    semi = row_problem(np.array([[0.5, 0.5], [0.5, 0.5]]), np.array([0.2, 0.8]), TOL)
    assert semi.rank == 1
    assert_allclose(semi.log_prior, np.log([0.2, 0.8]))
    tiny = row_problem(np.array([[1e-300, 1.0], [0.0, 1.0]]), None, TOL)
    assert_array_equal(tiny.transition, [[_blocks.SMALLEST, 1], [0, 1]])


def test_rows_whose_labels_do_not_name_their_class_are_solved_too(rng):
    compiled = pytest.importorskip("looselabels._dual_numba", exc_type=ImportError)
    transition = 0.05 * np.eye(12) + 0.95 * rng.dirichlet(np.full(12, 0.3), 12)
    labels, problem = rng.dirichlet(np.ones(12), 50), row_problem(transition, None, TOL)
    single = labels.astype(np.float32), problem.inverse.astype(np.float32)
    hessian = compiled._diagonal_hessian(*single)
    price, change = np.zeros_like(single[0]), np.full(50, 2.0)
    assert not compiled._descend(*single, hessian, price, change, 1e-5)[1].all()
    with np.errstate(all="raise", under="ignore"):
        assert solve_block(labels, None, None, problem).gap.max() <= TOL


def test_many_classes_have_the_same_inverse_and_rank(rng):
    confusion = 0.8 * np.eye(100) + 0.2 * rng.dirichlet(np.ones(100), 100)
    problem = row_problem(confusion, None, TOL)
    assert problem.rank == 100
    assert_allclose(problem.inverse, np.linalg.pinv(confusion), atol=1e-12)
    confusion[1] = confusion[0]
    problem = row_problem(confusion, None, TOL)
    assert problem.rank == 99
    assert_allclose(problem.inverse, np.linalg.pinv(confusion, 1e-12), atol=1e-9)


def test_a_pass_without_label_mass_finds_the_same_rows(rng):
    labels = rng.dirichlet(np.ones(3), 20)
    found = solve_block(labels, None, None, row_problem(NOISY, None, TOL, needs_mass=False))
    other = solve_block(labels, None, None, row_problem(NOISY, None, TOL))
    assert_array_equal(found.label_mass, np.zeros((3, 3)))
    assert found.objective == pytest.approx(other.objective, abs=20 * TOL)
    assert found.gap.max() <= TOL


def test_zero_times_the_log_of_zero_is_zero():
    assert_array_equal(xlogy(np.array([0.0, 0.0, 2.0]), np.array([0.0, 5.0, 1.0])), [0, 0, 0])
    assert xlogy(np.array([1.0]), np.array([0.0]))[0] == -np.inf
    labels = np.array([[0.5, 0.5, 0.0], [1.0, 0.0, 0.0]])
    explained = np.array([[0.25, 0.25, 0.5], [0.0, 0.5, 0.5]])
    assert_array_equal(minus_divergence(labels, explained), [np.log(0.5), -np.inf])


def test_weights_multiply_rows():
    assert_array_equal(weighted(np.ones((2, 2)), np.array([1.0, 3.0])), [[1, 1], [3, 3]])
    assert_array_equal(weighted(np.ones(2), np.array([1.0, 3.0])), [1, 3])
    rows = np.ones(2)
    assert weighted(rows, None) is rows


def test_keeping_twice_keeps_the_state_too(rng):
    rows = Rows(rng.dirichlet(np.ones(3), 20), None, 3)
    rows.solve(row_problem(NOISY, None, TOL))
    before = rows.class_proba.copy()
    rows.keep()
    rows.keep()
    rows.solve(row_problem(NOISY, np.array([0.2, 0.3, 0.5]), TOL))
    rows.restore()
    assert_array_equal(rows.class_proba, before)


def test_a_start_is_mixed_with_the_uniform_one_only_if_that_explains_the_labels_better():
    labels = np.array([[1.0, 0.0, 0.0], [0.8, 0.15, 0.05]])
    start = np.array([[0.0, 0.0, 1.0], [1.0, 0.0, 0.0]])  # far off, and exact
    found = _blocks._less_extreme(labels, start, NOISY)
    assert_allclose(found, [[1 / 6, 1 / 6, 2 / 3], [1, 0, 0]])


@pytest.mark.parametrize("prior", [None, [0.2, 0.3, 0.5]])
def test_the_dual_is_used_only_without_a_class_prior(prior, rng, monkeypatch):
    calls = []

    def solve_dual(labels, *rest):
        calls.append(len(labels))
        return np.full(labels.shape, 1 / 3)

    solver = _blocks._row_solver(np.zeros((1, 3)))
    monkeypatch.setattr(solver, "solve_dual", solve_dual)
    labels = rng.dirichlet(np.ones(3), 50)  # some of them have absent classes
    prior = None if prior is None else np.array(prior)
    assert solve_block(labels, None, None, row_problem(NOISY, prior, TOL)).gap.max() <= TOL
    assert bool(calls) == (prior is None)


# ------------------------------------------------------------------------------------------ threads


def blas_threads():
    """Return the largest number of threads of a BLAS library."""
    pools = [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]
    return max(pools, default=1)


@pytest.fixture
def two_blas_threads():
    with threadpool_limits(2, "blas"):
        if blas_threads() != 2:
            pytest.skip("BLAS has only one thread here")
        yield


@pytest.mark.parametrize("among_others", [False, True])
def test_blocks_are_solved_in_threads_unless_the_worker_is_one_among_others(
    rng, among_others, monkeypatch
):
    pytest.importorskip("looselabels._rows_numba", exc_type=ImportError)
    used = set()

    def solve(*arguments):
        used.add(get_ident())
        return solve_block(*arguments)

    monkeypatch.setattr(_blocks, "solve_block", solve)
    monkeypatch.setattr(_blocks, "MIN_THREAD_ROWS", 5)
    monkeypatch.setattr(_blocks, "_n_threads", lambda: 2)

    def solve_rows():
        if among_others:
            _blocks.ONE_THREAD.set(True)
        Rows(rng.dirichlet(np.ones(3), 40), None, 3).solve(row_problem(NOISY, None, TOL))

    copy_context().run(solve_rows)
    assert (get_ident() in used) == among_others


def test_a_worker_among_others_solves_its_rows_with_one_thread(rng, monkeypatch, two_blas_threads):
    used = []

    def solve(*arguments):
        used.append(blas_threads())
        return solve_block(*arguments)

    monkeypatch.setattr(_blocks, "solve_block", solve)
    token = _blocks.ONE_THREAD.set(True)
    try:
        Rows(rng.dirichlet(np.ones(3), 20), None, 3).solve(row_problem(NOISY, None, TOL))
    finally:
        _blocks.ONE_THREAD.reset(token)
    assert used == [1]
    assert blas_threads() == 2


def test_blas_stays_limited_until_the_last_thread_leaves(two_blas_threads):
    first, second = _blocks.one_blas_thread(), _blocks.one_blas_thread()
    first.__enter__()
    with second:
        first.__exit__(None, None, None)
        assert blas_threads() == 1
    assert blas_threads() == 2


def test_the_blas_of_scipy_is_limited_even_if_nothing_has_used_it_yet():
    """The compiled kernels load it after the first limit of a process."""
    code = (
        "from threadpoolctl import threadpool_info\n"
        "from looselabels._blocks import one_blas_thread\n"
        "with one_blas_thread():\n"
        "    import scipy.linalg\n"
        "    pools = [pool for pool in threadpool_info() if pool['user_api'] == 'blas']\n"
        "    print(max((pool['num_threads'] for pool in pools), default=1))"
    )
    env = os.environ | {f"{name}_NUM_THREADS": "2" for name in ("OMP", "OPENBLAS", "MKL")}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("1\n", "")
