"""One pass over all rows, block by block, as `infer` needs it.

`solve_block` does all the work for one block of rows. It is a pure function: it takes arrays and
returns class_proba with its certificates, and sums that add up over blocks (label mass and
objective). `Rows` applies it to arrays in memory, in threads if the compiled kernels are used.
"""

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from contextvars import ContextVar
from functools import cache
from importlib.util import find_spec
from threading import Lock, get_ident
from typing import Any, NamedTuple

import numpy as np
from array_api_compat import (
    array_namespace,
    device,
    is_cupy_array,
    is_numpy_array,
    is_torch_array,
)
from threadpoolctl import ThreadpoolController

from looselabels import _compiled, _rows
from looselabels._interior import solve_inside
from looselabels._validation import as_numpy

ELEMENTS_PER_BLOCK = 2**16  # rows × columns; a block and its temporaries fit into the caches
ELEMENTS_PER_GPU_BLOCK = 2**25  # launching a kernel takes as long as computing many rows
MIN_BLOCK_ROWS = 256  # matrix products of fewer rows are inefficient
MIN_THREAD_ROWS = 2048  # fewer rows are not worth a thread
NEGLIGIBLE = 1e-14  # smaller label_proba are rounding errors of the sum of the row, and are ignored
ROUNDED_GAP = 1e-9  # nats; a smaller gap can be what rounding errors leave
SMALLEST = 1e-100  # lower limit of positive entries of T: their squares must stay positive
RULED_OUT = 1e-10  # a label with less than this share of what an optimum gives it is ruled out
MANY_CLASSES = 100  # from here on, a singular value decomposition takes noticeable time
WELL_CONDITIONED = 1e8  # condition numbers below this leave no doubt about the rank
BLAS_LOCK = Lock()
BLAS_USERS: list[int] = []  # the threads that need BLAS to be limited now
BLAS_LIMIT = ExitStack()
ONE_THREAD = ContextVar("one_thread", default=False)  # for workers that solve blocks in parallel


class RowProblem(NamedTuple):
    """The parameters that all rows share: small NumPy arrays, cheap to send to any worker."""

    transition: np.ndarray
    inverse: np.ndarray  # the pseudo-inverse
    rank: int
    log_prior: np.ndarray | None
    anchor: np.ndarray  # among several optima, the one closest to this is chosen
    tol: float  # gap, in nats, that every row should reach
    needs_mass: bool = True  # False saves a matrix product


class BlockFound(NamedTuple):
    """The result for one block of rows: class_proba, and sums that add up over blocks."""

    class_proba: Any
    gap: Any
    label_mass: np.ndarray  # expected samples of each class and label; 0 if it is not needed
    objective: float
    n_ambiguous: int


class PassFound(NamedTuple):
    """The result of one pass over all rows, or over a part of them (see `add_passes`)."""

    label_mass: np.ndarray
    objective: float
    mean_gap: float
    max_gap: float
    n_ambiguous: int
    weight: float = 1.0  # of all rows together


class Rows:
    """All rows and their current class_proba; `solve` updates them in one pass.

    `keep` and `restore` return to an earlier state without copying it. `_sources.SourceRows` is the
    driver for rows that are not in memory.
    """

    def __init__(self, label_proba, sample_weight, n_classes):
        xp = array_namespace(label_proba)
        self.label_proba, self.sample_weight = label_proba, sample_weight
        n_rows, n_labels = label_proba.shape
        kind = {"dtype": label_proba.dtype, "device": device(label_proba)}
        self.class_proba = xp.empty((n_rows, n_classes), **kind)
        self.gap = xp.empty(n_rows, **kind)
        self.solved = False
        self.kept: Any = None
        self.spare: Any = None
        elements = ELEMENTS_PER_GPU_BLOCK if is_cuda(label_proba) else ELEMENTS_PER_BLOCK
        size = max(MIN_BLOCK_ROWS, elements // max(n_classes, n_labels))
        if _row_solver(label_proba) is not _rows:  # a few blocks for each thread
            size = min(size, max(MIN_THREAD_ROWS, n_rows // (4 * _n_threads())))
        self.blocks = [slice(begin, min(begin + size, n_rows)) for begin in range(0, n_rows, size)]

    def solve(self, problem: RowProblem) -> PassFound:
        """Solve every row for the problem's transition, starting from the current class_proba."""
        target = self.spare or (self.class_proba, self.gap)
        found = self._map(lambda block: self._solve_block(block, problem, *target))
        self.class_proba, self.gap = target
        self.solved = True
        xp = array_namespace(self.gap)
        gap = xp.astype(self.gap, xp.float64)
        weight = self.sample_weight
        total = gap.shape[0] if weight is None else float(xp.sum(weight))
        return PassFound(
            np.sum([block.label_mass for block in found], axis=0),
            sum(block.objective for block in found),
            float(xp.sum(weighted(gap, weight))) / (total or 1.0),  # a block can have weight 0
            float(xp.max(gap)),
            sum(block.n_ambiguous for block in found),
            float(total),
        )

    def keep(self):
        """Keep the current state for `restore`; later passes write to a second buffer."""
        xp = array_namespace(self.gap)
        current = (self.class_proba, self.gap)
        if self.kept is None:
            self.spare = tuple(xp.empty_like(array) for array in current)
        elif self.class_proba is not self.kept[0]:
            self.spare = self.kept
        self.kept = current

    def restore(self):
        """Return to the state at the last `keep`."""
        self.class_proba, self.gap = self.kept

    def _solve_block(self, block: slice, problem: RowProblem, class_proba, gap) -> BlockFound:
        start = self.class_proba[block, :] if self.solved else None
        weight = None if self.sample_weight is None else self.sample_weight[block]
        found = solve_block(self.label_proba[block, :], start, weight, problem)
        class_proba[block, :] = found.class_proba
        gap[block] = found.gap
        return found._replace(class_proba=None, gap=None)

    def _map(self, function) -> list[BlockFound]:
        # Only compiled kernels release the GIL. Other libraries have their own threads or device.
        if ONE_THREAD.get():
            with one_blas_thread():
                return [function(block) for block in self.blocks]
        if len(self.blocks) == 1 or _row_solver(self.label_proba) is _rows:
            return [function(block) for block in self.blocks]
        with one_blas_thread(), ThreadPoolExecutor(_n_threads()) as pool:
            return list(pool.map(function, self.blocks))


def add_passes(parts: Sequence[PassFound]) -> PassFound:
    """Return the pass over all rows from passes over parts of them."""
    total = sum(part.weight for part in parts)
    return PassFound(
        np.sum([part.label_mass for part in parts], axis=0),
        sum(part.objective for part in parts),
        sum(part.mean_gap * part.weight for part in parts) / (total or 1.0),
        max(part.max_gap for part in parts),
        sum(part.n_ambiguous for part in parts),
        total,
    )


def solve_block(label_proba, start, sample_weight, problem: RowProblem) -> BlockFound:
    """Solve a block of rows exactly, and sum up the quantities that a new transition needs."""
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
        if label_proba.dtype != xp.float64:  # rounding: the sums are no longer 1
            start = _rows.on_simplex(start)
    at = _solve_rows(labels, start, problem)
    at, n_ambiguous = _settle_ties(at, problem)
    class_proba = at.class_proba
    if bool(xp.any((seen > 0) & (labels == 0))):  # as in `_evaluate`, but for negligible labels too
        ruled_out = _ruled_out(seen, class_proba @ problem.transition, problem.transition)
        class_proba = _explain(xp.where(ruled_out, seen, 0.0), class_proba, problem.transition)
    value = minus_divergence(labels, at.explained)
    if problem.log_prior is not None:
        value = value + xp.sum(at.class_proba * problem.log_prior, axis=1)
    mass = xp.zeros_like(problem.transition)
    if problem.needs_mass:
        ratio = weighted(_rows.ratio(labels, at.explained), sample_weight)
        mass = problem.transition * (xp.matrix_transpose(at.class_proba) @ ratio)
    return BlockFound(
        xp.astype(class_proba, label_proba.dtype),
        xp.astype(xp.clip(at.gap, 0.0, xp.finfo(label_proba.dtype).max), label_proba.dtype),
        as_numpy("label_mass", mass),
        float(xp.sum(weighted(value, sample_weight))),
        n_ambiguous,
    )


def _solve_rows(labels, start, problem: RowProblem) -> _rows.Ascent:
    """Solve every row by the cheapest method whose result passes the certificate."""
    solver = _row_solver(labels)
    # Errors of the mass delay the search for the transition, so they must be smaller.
    tol = problem.tol / 10 if problem.needs_mass else problem.tol
    transition, log_prior = problem.transition, problem.log_prior
    at = _evaluate(labels, _first_guess(labels, start, problem, tol), problem)
    if start is None:
        at = _redo(at, at.gap > 1, problem, lambda s, y: _less_extreme(s, y, transition))
    at = _redo(
        at, at.gap > tol, problem, lambda s, y: solver.ascend(s, y, transition, log_prior, tol)
    )
    left = at.gap > max(problem.tol, ROUNDED_GAP)
    return _redo(at, left, problem, lambda s, y: solve_inside(s, y, transition, log_prior, tol))


def _first_guess(labels, start, problem: RowProblem, tol):
    """Return the solution of the dual where possible; else `start`, or ŜT⁺ if it is None.

    The dual is solved anew in each pass. Rows that stay where the last pass has left them, because
    their gap is small enough, hold the transition back: that costs many more passes.
    """
    xp = array_namespace(labels)
    n_classes, n_labels = problem.transition.shape
    invertible = problem.log_prior is None and problem.rank == n_classes == n_labels
    whole = xp.all(labels > 0, axis=1) & invertible
    solve_dual = _row_solver(labels).solve_dual
    if bool(xp.all(whole)):
        return solve_dual(labels, problem.inverse, tol)
    guess = _rows.on_simplex(labels @ problem.inverse) if start is None else start
    if not bool(xp.any(whole)):
        return guess
    part = xp.take(labels, xp.nonzero(whole)[0], axis=0)
    return _rows.put_rows(whole, guess, solve_dual(part, problem.inverse, tol))


def _less_extreme(labels, class_proba, transition):
    """Average class_proba with the uniform distribution if that explains the labels better.

    A Newton step can at most double a class. A class that starts far too small would need many.
    """
    xp = array_namespace(labels)
    mixed = (class_proba + 1 / class_proba.shape[1]) / 2
    gain = minus_divergence(labels, mixed @ transition) - minus_divergence(
        labels, class_proba @ transition
    )
    return xp.where(gain[:, None] > 0, mixed, class_proba)


def _settle_ties(at: _rows.Ascent, problem: RowProblem) -> tuple[_rows.Ascent, int]:
    """Move rows with several optima to the one closest to the class prior, and count these rows."""
    xp = array_namespace(at.gap)
    suspect = xp.sum(xp.astype(at.slope >= -problem.tol, xp.int64), axis=1) > 1
    if problem.rank == problem.transition.shape[0]:  # then rows without zeros have one optimum
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
    # With entries as small as 1e-100 the search can overflow. Such a row is not changed.
    with np.errstate(over="ignore", invalid="ignore"):
        chosen = _rows.closest_optimum(part, problem.transition, problem.anchor, problem.tol)
    chosen = xp.where(xp.all(xp.isfinite(chosen), axis=1)[:, None], chosen, part.class_proba)
    # Before a row has reached its optimum, the result can rule out one of its labels. Such a row
    # is not changed either.
    explained = chosen @ problem.transition
    lost = xp.any(_ruled_out(part.label_proba, explained, problem.transition), axis=1)
    chosen = xp.where(lost[:, None], part.class_proba, chosen)
    new = _rows.evaluate(part.label_proba, chosen, problem.transition, problem.log_prior)
    kept = xp.where((new.gap <= problem.tol)[:, None], chosen, part.class_proba)
    class_proba = _rows.put_rows(suspect, at.class_proba, kept)
    at = _rows.evaluate(at.label_proba, class_proba, problem.transition, problem.log_prior)
    return at, int(rows.shape[0])


def _redo(at: _rows.Ascent, rows, problem: RowProblem, solve) -> _rows.Ascent:
    """Replace the marked rows by the result of `solve`."""
    xp = array_namespace(at.gap)
    if not bool(xp.any(rows)):
        return at
    index = xp.nonzero(rows)[0]
    labels = xp.take(at.label_proba, index, axis=0)
    class_proba = solve(labels, xp.take(at.class_proba, index, axis=0))
    new = _row_solver(at.gap).evaluate(labels, class_proba, problem.transition, problem.log_prior)
    return _rows.Ascent(*(_rows.put_rows(rows, *pair) for pair in zip(at, new, strict=True)))


@contextmanager
def one_blas_thread():
    """Limit BLAS to one thread: for threads of our own, and for very small problems."""
    # The limit is global to the process: the first thread sets it, and the last one removes it.
    with BLAS_LOCK:
        if not BLAS_USERS:
            BLAS_LIMIT.enter_context(_blas().limit(limits=1))
        BLAS_USERS.append(get_ident())
    try:
        yield
    finally:
        with BLAS_LOCK:
            BLAS_USERS.remove(get_ident())
            if not BLAS_USERS:
                BLAS_LIMIT.close()


@cache
def _blas():
    """Return the controller of the BLAS libraries, of NumPy and of SciPy."""
    import scipy.linalg  # noqa: F401  the controller knows libraries that are loaded, and no others

    return ThreadpoolController()


def _n_threads():
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()


def is_cuda(array) -> bool:
    """Return whether the array is in the memory of a CUDA device."""
    return is_cupy_array(array) or (is_torch_array(array) and array.is_cuda)


def _row_solver(labels):
    use_numba = is_numpy_array(labels) and find_spec("numba") and not _compiled.ERRORS
    return _compiled if use_numba else _rows


def row_problem(transition, class_prior, tol, *, needs_mass=True) -> RowProblem:
    """Return the shared parameters of a pass with this transition; `class_prior` is positive."""
    transition = np.where(transition > 0, np.maximum(transition, SMALLEST), 0.0)
    n_classes = len(transition)
    anchor = np.full(n_classes, 1 / n_classes) if class_prior is None else class_prior
    uniform = np.ptp(anchor) == 0  # then the prior term of the objective is constant
    log_prior = None if uniform else np.log(anchor)
    inverse, rank = _pseudo_inverse(transition)
    return RowProblem(transition, inverse, rank, log_prior, anchor, tol, needs_mass)


def _pseudo_inverse(transition) -> tuple[np.ndarray, int]:
    """Return the pseudo-inverse and the rank."""
    n_classes, n_labels = transition.shape
    if n_classes == n_labels >= MANY_CLASSES:  # an LU factorization takes a fifth of the time
        with suppress(np.linalg.LinAlgError):
            inverse = np.linalg.inv(transition)
            if np.linalg.norm(inverse, 1) * np.linalg.norm(transition, 1) < WELL_CONDITIONED:
                return inverse, n_classes
    left, values, right = np.linalg.svd(transition, full_matrices=False)
    rank = int(np.sum(values > values[0] * max(transition.shape) * np.finfo(float).eps))
    return (right[:rank].T / values[:rank]) @ left[:, :rank].T, rank


def _possible_part(labels, transition):
    """Return rows without labels that no class can have, and without negligible ones."""
    xp = array_namespace(labels)
    labels = xp.where(xp.any(transition > 0, axis=0) & (labels > NEGLIGIBLE), labels, 0.0)
    total = xp.sum(labels, axis=1, keepdims=True)
    return labels / xp.where(total > 0, total, 1.0)


def _ruled_out(labels, explained, transition):
    """Return which labels of a row its classes rule out, or nearly so.

    An optimum explains label s with at least S_s max_k T_ks, or one thousandth of it if the class
    prior is extreme. With far less, Newton's method would need many steps or overflow.
    """
    xp = array_namespace(labels)
    return (labels > 0) & (explained <= RULED_OUT * labels * xp.max(transition, axis=0))


def _evaluate(labels, class_proba, problem: RowProblem) -> _rows.Ascent:
    """Evaluate rows, after adding classes to those that rule out one of their labels."""
    xp = array_namespace(labels)
    transition, log_prior = problem.transition, problem.log_prior
    explained = class_proba @ transition
    ruled_out = _ruled_out(labels, explained, transition)
    if bool(xp.any(ruled_out)):
        class_proba = _explain(xp.where(ruled_out, labels, 0.0), class_proba, transition)
        explained = class_proba @ transition
    return _row_solver(labels).evaluate(labels, class_proba, transition, log_prior, explained)


def _explain(missing, class_proba, transition):
    """Add classes that can have the missing labels, in proportion to their probability."""
    xp = array_namespace(missing)
    total = xp.sum(transition, axis=0)
    sources = xp.matrix_transpose(transition / xp.where(total > 0, total, 1.0))
    return _rows.on_simplex(class_proba + missing @ sources)


# ------------------------------------------------------------------------------------ small algebra


def like(array, values):
    """Return NumPy `values` in the library, with the dtype and on the device of `array`."""
    return array_namespace(array).asarray(values, dtype=array.dtype, device=device(array))


def weighted(rows, weight):
    """Return rows multiplied by their weights; None means ones."""
    if weight is None:
        return rows
    return rows * (weight if rows.ndim == 1 else weight[:, None])


def minus_divergence(labels, explained):
    """Return −KL(S, q) = Σ_s S_s log(q_s / S_s) of each row; −inf if q_s = 0 < S_s."""
    xp = array_namespace(labels)
    return xp.sum(xlogy(labels, explained / xp.where(labels > 0, labels, 1.0)), axis=1)


def xlogy(x, y):
    """Return x log y, or 0 where x is 0."""
    xp = array_namespace(x)
    y = xp.where(x > 0, y, 1.0)
    safe = xp.where(y > 0, y, 1.0)
    return xp.where(y > 0, x * xp.log(safe), -xp.inf)
