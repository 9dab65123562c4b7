"""One pass over the rows, block by block: what `infer` needs to know of them, and no more.

`solve_block` is the whole of the work on a block of rows, and pure: it takes arrays and returns its
answer with sums that add up over blocks (label mass, objective) and the certificates. `Rows` drives
it over arrays in memory, in threads where kernels are compiled; a driver over processes or a
cluster is another class with such a `solve`.
"""

import os
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from importlib.util import find_spec
from threading import Lock
from typing import Any, NamedTuple

import numpy as np
from array_api_compat import array_namespace, device, is_numpy_array
from threadpoolctl import ThreadpoolController

from looselabels import _rows
from looselabels._validation import as_numpy

ELEMENTS_A_BLOCK = 2**16  # rows × columns: a block and its temporaries stay in the caches
FEWEST_ROWS = 256  # of a block, so that its matrix products are worth their name
ROWS_A_THREAD = 2048  # fewer are not worth a thread of their own
NEGLIGIBLE = 1e-14  # a label_proba below this is the rounding of its row's sum, and takes no part
SMALLEST = 1e-100  # positive entries of T are kept above this, so that their squares stay positive
BLAS_LOCK = Lock()


class RowProblem(NamedTuple):
    """What all rows have in common: small, and in NumPy, so that it travels to any worker."""

    transition: np.ndarray
    inverse: np.ndarray  # the pseudo-inverse
    rank: int
    log_prior: np.ndarray | None
    anchor: np.ndarray  # of several optima, the one closest to this is taken
    tol: float


class BlockFound(NamedTuple):
    """What a block of rows contributes to a pass: its answer, and sums that add up over blocks."""

    class_proba: Any
    gap: Any
    label_mass: np.ndarray  # expected number of samples of each class behind each label
    objective: float
    n_ambiguous: int


class PassFound(NamedTuple):
    """What one pass over all rows found."""

    label_mass: np.ndarray
    objective: float
    mean_gap: float
    max_gap: float
    n_ambiguous: int


class Rows:
    """All rows and their present answer; `solve` takes them through one pass.

    Another driver (processes, a cluster) is another class with such a method over `solve_block`.
    """

    def __init__(self, label_proba, sample_weight, n_classes):
        xp = array_namespace(label_proba)
        self.label_proba, self.sample_weight = label_proba, sample_weight
        n_rows, n_labels = label_proba.shape
        kind = {"dtype": label_proba.dtype, "device": device(label_proba)}
        self.class_proba = xp.empty((n_rows, n_classes), **kind)
        self.gap = xp.empty(n_rows, **kind)
        self.solved = False
        size = max(FEWEST_ROWS, ELEMENTS_A_BLOCK // max(n_classes, n_labels))
        if _row_solver(label_proba) is not _rows:  # a few blocks for each thread
            size = min(size, max(ROWS_A_THREAD, n_rows // (4 * _n_threads())))
        self.blocks = [slice(begin, min(begin + size, n_rows)) for begin in range(0, n_rows, size)]

    def solve(self, problem: RowProblem) -> PassFound:
        """Solve every row for the problem's transition, starting from the last answer."""
        found = self._map(lambda block: self._solve_block(block, problem))
        self.solved = True
        xp = array_namespace(self.gap)
        gap = xp.astype(self.gap, xp.float64)
        weight = self.sample_weight
        n = gap.shape[0] if weight is None else float(xp.sum(weight))
        return PassFound(
            np.sum([block.label_mass for block in found], axis=0),
            sum(block.objective for block in found),
            float(xp.sum(weighted(gap, weight))) / n,
            float(xp.max(gap)),
            sum(block.n_ambiguous for block in found),
        )

    def _solve_block(self, block: slice, problem: RowProblem) -> BlockFound:
        start = self.class_proba[block, :] if self.solved else None
        weight = None if self.sample_weight is None else self.sample_weight[block]
        found = solve_block(self.label_proba[block, :], start, weight, problem)
        self.class_proba[block, :] = found.class_proba
        self.gap[block] = found.gap
        return found._replace(class_proba=None, gap=None)

    def _map(self, function) -> list[BlockFound]:
        # Compiled kernels release the GIL; other libraries bring threads or a device of their own.
        if _row_solver(self.label_proba) is _rows or len(self.blocks) == 1:
            return [function(block) for block in self.blocks]
        # The limit is the process's own: two threads must not set and restore it in turns.
        with BLAS_LOCK, _blas().limit(limits=1), ThreadPoolExecutor(_n_threads()) as pool:
            return list(pool.map(function, self.blocks))


def solve_block(label_proba, start, sample_weight, problem: RowProblem) -> BlockFound:
    """Solve a block of rows exactly, and sum up what a new transition needs to know of them."""
    xp = array_namespace(label_proba)
    labels = xp.astype(label_proba, xp.float64)
    problem = problem._replace(
        **{
            name: like(labels, value)
            for name, value in problem._asdict().items()
            if isinstance(value, np.ndarray)
        }
    )
    seen, labels = labels, _possible_part(labels, problem.transition)
    if start is not None:
        start = xp.astype(start, xp.float64)
    at = _solve_rows(labels, start, problem)
    at, n_ambiguous = _settle_ties(at, problem)
    class_proba = at.class_proba
    if bool(xp.any((seen > 0) & (labels == 0))):
        class_proba = _explain_all(seen, class_proba, problem.transition)
    value = minus_divergence(labels, at.explained)
    if problem.log_prior is not None:
        value = value + xp.sum(at.class_proba * problem.log_prior, axis=1)
    ratio = weighted(_rows.ratio(labels, at.explained), sample_weight)
    mass = problem.transition * (xp.matrix_transpose(at.class_proba) @ ratio)
    return BlockFound(
        xp.astype(class_proba, label_proba.dtype),
        xp.astype(xp.clip(at.gap, 0.0, None), label_proba.dtype),
        as_numpy("label_mass", mass),
        float(xp.sum(weighted(value, sample_weight))),
        n_ambiguous,
    )


def _solve_rows(labels, start, problem: RowProblem) -> _rows.Ascent:
    """Bring every row to its optimum, each by the cheapest way that its certificate accepts."""
    solver, tol = _row_solver(labels), problem.tol / 10
    transition, log_prior = problem.transition, problem.log_prior
    if start is None:
        at = _first_guess(labels, problem, tol)
    else:
        at = solver.evaluate(labels, start, transition, log_prior)
    return _redo(
        at, at.gap > tol, problem, lambda s, y: solver.ascend(s, y, transition, log_prior, tol)
    )


def _first_guess(labels, problem: RowProblem, tol) -> _rows.Ascent:
    """Take ŜT⁺, which is exact inside the simplex and often on its border; else ask the dual."""
    xp = array_namespace(labels)
    solver, transition = _row_solver(labels), problem.transition
    guess = _explain_all(labels, _rows.on_simplex(labels @ problem.inverse), transition)
    at = solver.evaluate(labels, guess, transition, problem.log_prior)
    n_classes, n_labels = transition.shape
    if problem.log_prior is None and problem.rank == n_classes == n_labels:
        dual = (at.gap > tol) & xp.all(labels > 0, axis=1)
        at = _redo(
            at,
            dual,
            problem,
            lambda s, _: _explain_all(
                s, solver.solve_dual(s, problem.inverse, tol / 100), transition
            ),
        )
    return _redo(at, at.gap > 1, problem, lambda s, y: _less_extreme(s, y, transition))


def _less_extreme(labels, class_proba, transition):
    """Mix in all classes alike where that explains the labels better.

    Newton's method no more than doubles, in a step, a class that starts far too small.
    """
    xp = array_namespace(labels)
    mixed = (class_proba + 1 / class_proba.shape[1]) / 2
    gain = minus_divergence(labels, mixed @ transition) - minus_divergence(
        labels, class_proba @ transition
    )
    return xp.where(gain[:, None] > 0, mixed, class_proba)


def _settle_ties(at: _rows.Ascent, problem: RowProblem) -> tuple[_rows.Ascent, int]:
    """Move rows with many optima to the one closest to the class prior, and count them."""
    xp = array_namespace(at.gap)
    suspect = xp.sum(xp.astype(at.slope >= -problem.tol, xp.int64), axis=1) > 1
    if problem.rank == problem.transition.shape[0]:  # then a row that sees every label has one
        suspect = suspect & ~xp.all(at.label_proba > 0, axis=1)
    if not bool(xp.any(suspect)):
        return at, 0
    rows = xp.nonzero(suspect)[0]
    part = _rows.Ascent(*(xp.take(field, rows, axis=0) for field in at))
    many = _row_solver(at.gap).is_ambiguous(part, problem.transition, problem.tol)
    suspect = _rows.put_rows(suspect, suspect, many)
    if not bool(xp.any(many)):
        return at, 0
    rows = xp.nonzero(suspect)[0]
    part = _rows.Ascent(*(xp.take(field, rows, axis=0) for field in at))
    chosen = _rows.closest_optimum(part, problem.transition, problem.anchor, problem.tol)
    # Rows that are not at their optimum yet may lose a label that was seen: they wait.
    lost = xp.any((part.label_proba > 0) & (chosen @ problem.transition <= 0), axis=1)
    chosen = xp.where(lost[:, None], part.class_proba, chosen)
    new = _rows.evaluate(part.label_proba, chosen, problem.transition, problem.log_prior)
    kept = xp.where((new.gap <= problem.tol)[:, None], chosen, part.class_proba)
    class_proba = _rows.put_rows(suspect, at.class_proba, kept)
    at = _rows.evaluate(at.label_proba, class_proba, problem.transition, problem.log_prior)
    return at, int(rows.shape[0])


def _redo(at: _rows.Ascent, rows, problem: RowProblem, solve) -> _rows.Ascent:
    """Replace the rows marked by what `solve` makes of them, and certify again."""
    xp = array_namespace(at.gap)
    if not bool(xp.any(rows)):
        return at
    index = xp.nonzero(rows)[0]
    new = solve(xp.take(at.label_proba, index, axis=0), xp.take(at.class_proba, index, axis=0))
    class_proba = _rows.put_rows(rows, at.class_proba, new)
    return _row_solver(at.gap).evaluate(
        at.label_proba, class_proba, problem.transition, problem.log_prior
    )


@cache
def _blas():
    """Return the handle that keeps a matrix product of one block to the block's own thread."""
    return ThreadpoolController()


def _n_threads():
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()


def _row_solver(labels):
    if is_numpy_array(labels) and find_spec("numba"):
        from looselabels import _rows_numba

        return _rows_numba
    return _rows


def row_problem(transition, class_prior, tol) -> RowProblem:
    """Return what a pass with this transition needs; `class_prior` has no zeros."""
    transition = np.where(transition > 0, np.maximum(transition, SMALLEST), 0.0)
    n_classes = len(transition)
    anchor = np.full(n_classes, 1 / n_classes) if class_prior is None else class_prior
    uniform = np.ptp(anchor) == 0  # then the term is a constant
    left, values, right = np.linalg.svd(transition, full_matrices=False)
    rank = int(np.sum(values > values[0] * max(transition.shape) * np.finfo(float).eps))
    return RowProblem(
        transition,
        (right[:rank].T / values[:rank]) @ left[:, :rank].T,
        rank,
        None if uniform else np.log(anchor),
        anchor,
        tol,
    )


def _possible_part(labels, transition):
    """Leave out labels that no class can have (they are warned of) and those that are rounding."""
    xp = array_namespace(labels)
    labels = xp.where(xp.any(transition > 0, axis=0) & (labels > NEGLIGIBLE), labels, 0.0)
    total = xp.sum(labels, axis=1, keepdims=True)
    return labels / xp.where(total > 0, total, 1.0)


def _explain_all(labels, class_proba, transition):
    """Where a label seen would be impossible, add classes that can have it, as rare as it is."""
    xp = array_namespace(labels)
    if bool(xp.all(transition > 0)):
        return class_proba
    missing = xp.where(class_proba @ transition <= 0, labels, 0.0)
    total = xp.sum(transition, axis=0)
    sources = xp.matrix_transpose(transition / xp.where(total > 0, total, 1.0))
    return _rows.on_simplex(class_proba + missing @ sources)


# ------------------------------------------------------------------------------------ small algebra


def like(array, values):
    """Return NumPy `values` in the library, type and place of `array`."""
    return array_namespace(array).asarray(values, dtype=array.dtype, device=device(array))


def weighted(rows, weight):
    """Return rows times their weight; None is all ones."""
    if weight is None:
        return rows
    return rows * (weight if rows.ndim == 1 else weight[:, None])


def minus_divergence(labels, explained):
    """Return −KL(S, q) = Σ_s S_s log(q_s / S_s) of each row; −inf where q misses a label of S."""
    xp = array_namespace(labels)
    return xp.sum(xlogy(labels, explained / xp.where(labels > 0, labels, 1.0)), axis=1)


def xlogy(x, y):
    """Return x log y, and 0 where x is 0."""
    xp = array_namespace(x)
    y = xp.where(x > 0, y, 1.0)
    safe = xp.where(y > 0, y, 1.0)
    return xp.where(y > 0, x * xp.log(safe), -xp.inf)
