"""The row solver, compiled and batched: certificates, the dual, and rows with several optima."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize

from looselabels import _rows
from looselabels._validation import as_numpy
from tests import reference

SEMI = np.array([[0.1, 0.0, 0.9], [0.0, 0.1, 0.9]])
NOISY = np.array([[0.8, 0.15, 0.05], [0.1, 0.7, 0.2], [0.05, 0.05, 0.9]])


@pytest.fixture(params=["compiled", "batched"])
def solver(request):
    if request.param == "batched":
        return _rows
    return pytest.importorskip("looselabels._rows_numba", exc_type=ImportError)


def uniform(n, m):
    return np.full((n, m), 1 / m)


def test_the_slope_is_the_gradient_minus_its_mean(rng, solver):
    labels, classes = rng.dirichlet(np.ones(3), 5), rng.dirichlet(np.ones(3), 5)
    log_prior = np.log([0.2, 0.3, 0.5])
    at = solver.evaluate(labels, classes, NOISY, log_prior)
    gradient = (labels / (classes @ NOISY)) @ NOISY.T + log_prior
    expected = gradient - np.sum(classes * gradient, axis=1, keepdims=True)
    assert_allclose(at.slope, expected, atol=1e-12)
    assert_allclose(at.gap, expected.max(axis=1), atol=1e-12)
    assert_allclose(at.explained, classes @ NOISY, atol=1e-15)


@pytest.mark.parametrize("prior", [None, [0.2, 0.3, 0.5]])
def test_newton_steps_reach_the_optimum_of_scipy(rng, solver, prior):
    labels = rng.dirichlet(np.full(3, 0.5), 20)
    log_prior = None if prior is None else np.log(prior)
    found = solver.ascend(labels, uniform(20, 3), NOISY, log_prior, 1e-10)
    assert solver.evaluate(labels, found, NOISY, log_prior).gap.max() <= 1e-10
    for row, classes in zip(labels, found, strict=True):
        _, value = reference.solve_row(row, NOISY, prior)
        seen = row > 0
        ours = row[seen] @ np.log((classes @ NOISY)[seen])
        ours += 0.0 if prior is None else classes @ np.log(prior)
        assert ours >= value - 1e-9


def test_the_dual_and_the_primal_have_the_same_optimum(rng, solver):
    labels = rng.dirichlet(np.ones(3), 200)
    inverse = np.linalg.inv(NOISY)
    assert np.any(labels @ inverse < 0, axis=1).sum() > 50  # these have absent classes
    primal = solver.ascend(labels, uniform(200, 3), NOISY, None, 1e-12)
    assert_allclose(solver.solve_dual(labels, inverse, 1e-13), primal, atol=1e-8)


@pytest.mark.parametrize("tol", [1e-6, 1e-9])
def test_matrix_products_solve_rows_whose_labels_name_their_class(rng, tol, monkeypatch):
    compiled = pytest.importorskip("looselabels._dual_numba", exc_type=ImportError)
    monkeypatch.delattr(compiled, "_solve_dual_by_row")
    confusion = 0.8 * np.eye(30)[rng.permutation(30)] + 0.2 * rng.dirichlet(np.ones(30), 30)
    labels = rng.dirichlet(np.full(30, 0.3), 100) @ confusion
    labels = _rows.on_simplex(labels * np.exp(0.1 * rng.standard_normal(labels.shape)))
    inverse = np.linalg.inv(confusion)
    assert np.any(labels @ inverse < 0, axis=1).mean() > 0.9
    found = compiled.solve_dual(labels, inverse, tol)
    assert _rows.evaluate(labels, found, confusion, None).gap.max() <= tol


def test_both_solvers_know_which_rows_have_several_optima(solver):
    # A row of unlabeled samples only can have any class; each label alone means one class.
    labels = np.array([[0.0, 0.0, 1.0], [1.0, 0.0, 0.0], [0.05, 0.05, 0.9]])
    optimum = np.array([[0.5, 0.5], [1.0, 0.0], [0.5, 0.5]])
    at = _rows.evaluate(labels, optimum, SEMI, None)
    assert at.gap.max() < 1e-12
    assert solver.is_ambiguous(at, SEMI, 1e-9).tolist() == [True, False, False]


def test_the_closest_optimum_is_the_anchor_itself_if_that_is_optimal():
    at = _rows.evaluate(np.array([[0.0, 0.0, 1.0]]), np.array([[0.9, 0.1]]), SEMI, None)
    found = _rows.closest_optimum(at, SEMI, np.array([0.3, 0.7]), 1e-9)
    assert_allclose(found, [[0.3, 0.7]], atol=1e-12)


FAR_FROM_ANCHOR = {
    "the step is too long": (
        [
            [0.09, 0, 0.83, 0.08],
            [0, 0.99, 0, 0.01],
            [0, 0.01, 0.77, 0.22],
            [0.55, 0.34, 0.1, 0.01],
            [0.01, 0.03, 0, 0.96],
        ],
        [0.37, 0, 0.04, 0.59, 0],
        [0, 0.11, 0.69, 0.18, 0.02],
    ),
    "too few classes are present": (
        [
            [0.06, 0, 0.01, 0.93],
            [0, 0.63, 0.34, 0.03],
            [0.5, 0.08, 0.37, 0.05],
            [0, 0.47, 0.08, 0.45],
            [0.93, 0.03, 0.04, 0],
            [0, 0.56, 0.08, 0.36],
        ],
        [0.03, 0.19, 0, 0, 0.78, 0],
        [0, 0.18, 0, 0.79, 0, 0.03],
    ),
}


@pytest.mark.parametrize("case", FAR_FROM_ANCHOR)
def test_the_closest_optimum_is_that_of_scipy(case):
    transition, optimum, anchor = map(np.array, FAR_FROM_ANCHOR[case])
    labels = optimum @ transition
    at = _rows.evaluate(labels[None], optimum[None], transition, None)
    found = _rows.closest_optimum(at, transition, anchor, 1e-9)[0]
    assert_allclose(found @ transition, labels, atol=1e-12)
    expected = minimize(
        lambda y: np.sum((y - anchor) ** 2),
        optimum,
        jac=lambda y: 2 * (y - anchor),
        bounds=[(0, 1)] * len(optimum),
        constraints={"type": "eq", "fun": lambda y: y @ transition - labels},
        method="SLSQP",
        options={"ftol": 1e-14},
    )
    assert_allclose(found, expected.x, atol=1e-6)


def test_with_a_class_prior_the_closest_optimum_is_a_distribution_too():
    """The slopes of all classes are 0 where label 0 is seen with p = 0.6, whatever their sum."""
    transition = np.array([[0.8, 0.2], [0.4, 0.6], [0.6, 0.4]])
    prior = np.exp(-transition[:, 0] / 0.6)
    prior /= prior.sum()
    labels, optimum = np.array([1.0, 0.0]), np.array([0.1, 0.1, 0.8])
    at = _rows.evaluate(labels[None], optimum[None], transition, np.log(prior))
    assert_allclose(at.slope, 0, atol=1e-12)
    found = _rows.closest_optimum(at, transition, prior, 1e-9)[0]
    assert_allclose(found, reference.closest(prior, labels, optimum, transition), atol=1e-7)
    assert found @ transition[:, 0] == pytest.approx(0.6, abs=1e-12)


def test_the_steepest_absent_class_enters_if_present_classes_are_at_their_optimum(rng):
    alone = np.tile([1.0, 0.0, 0.0], (20, 1))
    at = _rows.evaluate(rng.dirichlet(np.ones(3), 20), alone, NOISY, None)
    steepest = at.slope[:, 1:].argmax(axis=1) + 1
    direction = _rows._direction(at, NOISY, tol=1e9)  # all slopes count as zero
    assert_allclose(direction.sum(axis=1), 0, atol=1e-9)
    for row, k in zip(direction[at.gap > 0], steepest[at.gap > 0], strict=True):
        assert row[k] > 0
        assert row[3 - k] == 0


@pytest.mark.parametrize("size", [1.0, 1e-2, 1e-5])
def test_the_rise_of_a_step_is_that_of_the_objective(rng, size):
    labels, classes = rng.dirichlet(np.ones(3), 30), rng.dirichlet(np.ones(3), 30)
    labels[:10, 1] = 0.0  # unseen
    labels /= labels.sum(axis=1, keepdims=True)
    target = classes + size * (rng.dirichlet(np.ones(3), 30) - classes)
    found = _rows._rise(_rows.evaluate(labels, classes, NOISY, None), target, NOISY)
    before, after = classes @ NOISY, target @ NOISY
    rise = (labels * np.log1p((after - before) / before)).sum(axis=1)
    gain = (labels * (after - before) / before).sum(axis=1)
    assert_allclose(found, rise - _rows.ARMIJO * np.abs(gain), rtol=1e-5, atol=1e-8 * size)


def test_a_step_that_makes_a_label_impossible_is_no_rise():
    transition = np.array([[1.0, 0.0], [0.5, 0.5]])
    at = _rows.evaluate(np.array([[0.9, 0.1]]), np.array([[0.5, 0.5]]), transition, None)
    assert _rows._rise(at, np.array([[1.0, 0.0]]), transition) == -np.inf


def test_negative_entries_become_zero_and_rows_sum_to_one(xp):
    rows = xp.asarray([[1.0, -1.0, 3.0], [-1.0, -2.0, 0.0]])
    found = as_numpy("rows", _rows.on_simplex(rows))
    assert_allclose(found, [[0.25, 0, 0.75], [1 / 3] * 3], rtol=1e-6)  # torch: single precision


def test_a_ratio_with_numerator_zero_is_zero():
    found = _rows.ratio(np.array([0.0, 0.0, 3.0]), np.array([0.0, 2.0, 2.0]))
    assert_array_equal(found, [0, 0, 1.5])


@pytest.mark.parametrize("flat", [0.0, 0.5])
@pytest.mark.parametrize("at_once", [_rows.ELEMENTS_AT_ONCE, 60])
def test_the_systems_of_all_rows_are_solved_as_each_row_alone(rng, flat, at_once, monkeypatch):
    monkeypatch.setattr(_rows, "ELEMENTS_AT_ONCE", at_once)  # several chunks, or one
    factor, weight = rng.normal(size=(5, 7)), rng.exponential(size=(40, 7)) * 1e-3
    members, rights = rng.random((40, 5)) < 0.6, rng.normal(size=(2, 40, 5))
    if flat:
        factor[3] = factor[1]  # linearly dependent: a solution exists only with `flat`
    found = _rows.solve_on(members, factor, weight, *rights, flat=flat)
    for right, solved in zip(rights, found, strict=True):
        assert_array_equal(solved[~members], 0.0)
        for x, r, w, m in zip(solved, right, weight, members, strict=True):
            matrix = (factor[m] * w) @ factor[m].T + flat * np.eye(m.sum())
            assert_allclose(matrix @ x[m], r[m], rtol=1e-6, atol=1e-6)


def test_conjugate_gradients_of_all_rows_are_as_accurate_as_promised(rng):
    factor, weight = rng.normal(size=(6, 9)), rng.exponential(size=(50, 9))
    members, right = rng.random((50, 6)) < 0.7, rng.normal(size=(50, 6))
    found = _rows._conjugate_gradients(members, factor, weight, right)
    assert_array_equal(found[~members], 0.0)
    for x, r, w, m in zip(found, right, weight, members, strict=True):
        matrix = (factor[m] * w) @ factor[m].T
        rest, scale = r[m] - matrix @ x[m], 1 / np.diag(matrix)
        assert (scale * rest**2).sum() <= _rows.CG_SHARE**2 * (scale * r[m] ** 2).sum() * (1 + 1e-9)


def test_marked_rows_are_replaced_and_others_kept():
    old = np.arange(8.0).reshape(4, 2)
    found = _rows.put_rows(np.array([False, True, False, True]), old, -np.ones((2, 2)))
    assert_array_equal(found, [[0, 1], [-1, -1], [4, 5], [-1, -1]])
    assert_array_equal(old, np.arange(8.0).reshape(4, 2))


# ------------------------------------------------------------------------------ compiled kernels


@pytest.fixture
def kernels():
    return pytest.importorskip("looselabels._rows_numba", exc_type=ImportError)


@pytest.fixture
def dual_kernels():
    return pytest.importorskip("looselabels._dual_numba", exc_type=ImportError)


def gram_problem(rng, n_rows=30, n_labels=40):
    """Draw rows, weights, the rows that are active, and a right-hand side."""
    rows, weight = rng.normal(size=(n_rows, n_labels)), rng.random(n_labels) + 0.5
    return rows, weight, rng.random(n_rows) < 0.7, rng.normal(size=n_rows)


def solved_on(rows, weight, active, right):
    """Return the solution of (R diag(weight) Rᵀ) x = right on the active rows, 0 elsewhere."""
    expected, part = np.zeros(len(rows)), rows[active]
    expected[active] = np.linalg.solve((part * weight) @ part.T, right[active])
    return expected


def test_a_factorization_solves_for_the_active_rows(rng, dual_kernels):
    rows, weight, active, right = gram_problem(rng)
    move, scaled, trial = np.full(30, np.nan), np.empty((30, 40)), np.empty(30)
    dual_kernels._direct(rows, np.sqrt(weight), active, right, move, scaled, trial)
    assert_allclose(move, solved_on(rows, weight, active, right), rtol=1e-8)


def test_conjugate_gradients_solve_for_the_active_rows(rng, dual_kernels):
    rows = np.eye(30, 40) + 0.05 * rng.normal(size=(30, 40))  # most labels name their class
    _, weight, active, right = gram_problem(rng)
    move = np.full(30, np.nan)
    dual_kernels._conjugate_gradients(rows, weight, active, right, move)
    assert_allclose(move, solved_on(rows, weight, active, right), atol=0.01)
    # a few products are enough: the directions are conjugate
    rows, weight, active, right = gram_problem(rng, 12, 40)
    dual_kernels._conjugate_gradients(rows, weight, active, right, move[:12])
    assert_allclose(move[:12], solved_on(rows, weight, active, right), atol=1e-3)


def test_the_factorization_does_not_depend_on_the_scale_of_the_system(rng, dual_kernels):
    rows, weight, active, right = gram_problem(rng, 10, 15)
    for scale in (1e-20, 1e20):
        move, scaled, trial = np.full(10, np.nan), np.empty((10, 15)), np.empty(10)
        dual_kernels._direct(rows, np.sqrt(scale * weight), active, right, move, scaled, trial)
        assert_allclose(scale * move, solved_on(rows, weight, active, right), rtol=1e-8)


def test_labels_that_do_not_name_a_class_add_to_the_diagonal_of_its_hessian(rng, dual_kernels):
    labels, inverse = rng.dirichlet(np.ones(3), 5), np.linalg.inv(NOISY)
    found = dual_kernels._diagonal_hessian(labels, inverse)
    for i, k in np.ndindex(5, 3):
        named = np.abs(inverse[:, k]).argmax()
        others = sum(labels[i, s] * inverse[s, k] ** 2 for s in range(3) if s != named)
        assert found.others[i, k] == pytest.approx(others)


def test_prices_and_classes_satisfy_the_conditions_of_the_dual(rng, dual_kernels):
    """S / q = 1 − T⁻¹μ, so that the classes sum to 1 without being normalized."""
    labels, inverse = rng.dirichlet(np.ones(3), 100), np.linalg.inv(NOISY)
    price, change = np.zeros((100, 3)), np.full(100, 2.0)
    hessian = dual_kernels._diagonal_hessian(labels, inverse)
    found, solved = dual_kernels._descend(labels, inverse, hessian, price, change, 1e-10)
    assert np.any(price[solved] > 0, axis=1).sum() > 20
    assert_allclose(found[solved].sum(axis=1), 1, atol=1e-8)
    assert_allclose(labels[solved], (found @ NOISY * (1 - price @ inverse.T))[solved], atol=1e-8)
    assert (found * price)[solved].max() == 0


@pytest.mark.parametrize("n_classes", [4, 12, 110])
def test_rows_one_by_one_reach_the_optimum_of_the_dual(rng, n_classes, dual_kernels):
    spread = rng.dirichlet(np.ones(n_classes), n_classes)
    transition = 0.6 * np.eye(n_classes) + 0.4 * spread
    labels = rng.dirichlet(np.full(n_classes, 0.1), 40) @ transition
    labels = _rows.on_simplex(labels * np.exp(0.5 * rng.standard_normal(labels.shape)))
    found = dual_kernels._solve_dual_by_row(labels, np.linalg.inv(transition), 1e-12)
    n_absent = (found == 0).sum(axis=1)
    assert n_absent.max() > (_rows.MAX_DIRECT if n_classes == 110 else 0)  # or by products only
    # Rounding can stop a row early: `ascend` would finish it.
    gap = _rows.evaluate(labels, _rows.on_simplex(found), transition, None).gap
    assert np.mean((gap <= 1e-9) & (np.abs(found.sum(axis=1) - 1) <= 1e-9)) >= 0.9


def some_rows(rng, n_rows=200, n_classes=6):
    """Return a transition with zeros, and rows that are not at their optimum."""
    transition = np.where(rng.random((n_classes, n_classes)) < 0.4, 0.0, 1.0) + np.eye(n_classes)
    transition = _rows.on_simplex(transition * rng.uniform(0.2, 1, transition.shape))
    classes = rng.dirichlet(np.ones(n_classes), n_rows)
    classes = _rows.on_simplex(np.where(rng.random(classes.shape) < 0.3, 0.0, classes))
    labels = rng.dirichlet(np.full(n_classes, 0.3), n_rows)
    labels[classes @ transition < 0.01] = 0  # a start explains all labels
    return _rows.evaluate(_rows.on_simplex(labels), classes, transition, None), transition


@pytest.mark.parametrize("share", [0.0, 0.2, 0.5, 0.8])
def test_both_solvers_take_the_same_direction(rng, share, kernels):
    """Also if slopes are zero, up to the tolerance, in a share of the rows."""
    at, transition = some_rows(rng)
    tol = np.quantile(np.abs(at.slope).max(axis=1), share)
    weight = _rows.ratio(at.label_proba, at.explained**2)
    part, gram = np.empty_like(transition), np.empty_like(transition)
    for i, expected in enumerate(_rows._direction(at, transition, tol)):
        present, found = at.class_proba[i] > 0, np.full(len(transition), np.nan)
        free = present | (at.slope[i] > 0)
        kernels._direction(
            transition, weight[i], at.slope[i], present, free, found, part, gram, tol
        )
        assert_allclose(found, expected, rtol=1e-4, atol=1e-6 * np.abs(expected).max())


@pytest.mark.parametrize("length", [0.1, 1.0, 10.0, 1000.0])
def test_both_solvers_take_the_same_step(rng, length, kernels, monkeypatch):
    """Also if the direction is too long, so that the first attempts make the row worse."""
    at, transition = some_rows(rng)
    falling = (at.slope < 0) & (at.class_proba > 0)
    direction = length * np.where(falling | (at.slope > 0), at.slope, 0)
    monkeypatch.setattr(_rows, "_direction", lambda *_: direction)
    for i, expected in enumerate(_rows._step(at, transition, 1e-9)):
        found, explained = at.class_proba[i].copy(), at.explained[i].copy()
        moved = kernels._line_search(
            *(at.label_proba[i], found, direction[i], transition),
            *(explained, at.slope[i], np.empty(len(transition))),
        )
        assert moved == (expected != at.class_proba[i]).any()
        assert_allclose(found, expected, atol=1e-9)
        assert_allclose(explained, found @ transition, atol=1e-12)


@pytest.mark.parametrize("change", [1e-5, 5e-4, 0.1, -0.5])
def test_the_loss_due_to_curvature_is_positive_and_that_of_the_formula(change, kernels):
    labels, before = np.array([0.3, 0.7, 0.0]), np.array([0.2, 0.5, 0.3])
    r = np.array([change, -change / 2, 0.7])
    found = kernels._curvature_loss(labels, before, before * (1 + r))
    assert_allclose(found, labels @ (r - np.log1p(r)), rtol=1e-5)
    assert kernels._curvature_loss(labels, before, np.array([0.0, 0.5, 0.3])) == np.inf
