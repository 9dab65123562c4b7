"""The rows of `infer` on a GPU: one fused kernel per pass, for up to 32 classes and labels.

The kernels are in `_rows_cuda.cu`. CuPy compiles them at first use, with the compiler that comes
with it, and keeps the result on disk. PyTorch tensors are passed to CuPy without a copy. Rows that
the kernels do not settle, such as those with several optima, go through `solve_block` like the rows
of any other library. CuPy is imported only if an array is on a GPU.
"""

import warnings
from functools import cache
from importlib.resources import files
from importlib.util import find_spec
from threading import Lock
from typing import Any, NamedTuple

import numpy as np
from array_api_compat import array_namespace

from looselabels import _rows
from looselabels._blocks import (
    NEGLIGIBLE,
    RULED_OUT,
    PassFound,
    RowProblem,
    Rows,
    is_cuda,
    solve_block,
    weighted,
)

MAX_SIDE = 32  # classes or labels: a thread holds a whole row
BLOCKS_PER_PROCESSOR = 16  # of threads, so that some compute while others wait for memory
ROWS_LEFT_AT_ONCE = 2**16  # limits the temporary arrays of `solve_block`
PROBLEM_LOCK = Lock()  # of the variable `problem` of the kernels
CONSTANTS = {
    "NEGLIGIBLE": NEGLIGIBLE,
    "RULED_OUT": RULED_OUT,
    **{
        name: getattr(_rows, name)
        for name in (
            "MAX_STEPS",
            "RIDGE",
            "FLAT",
            "SINGULAR",
            "ARMIJO",
            "SHRINK",
            "NOISE",
            "SMALL_CHANGE",
        )
    },
}


class Sums(NamedTuple):
    """The sums over the rows that one kernel or one call of `solve_block` has settled."""

    label_mass: np.ndarray
    objective: float
    gap_sum: float
    gap_max: float
    n_ambiguous: int


def has_kernel(label_proba, n_classes) -> bool:
    """Return whether the kernels can solve these rows; warn if only CuPy is missing."""
    if not is_cuda(label_proba) or max(n_classes, label_proba.shape[1]) > MAX_SIDE:
        return False
    if find_spec("cupy"):
        return True
    warnings.warn(
        "infer is many times faster on CUDA tensors if CuPy is installed: pip install "
        "cupy-cuda13x, or cupy-cuda12x for CUDA 12.",
        RuntimeWarning,
        stacklevel=4,
    )
    return False


class CudaRows(Rows):
    """`Rows` that are solved by the fused kernels."""

    def __init__(self, label_proba, sample_weight, n_classes):
        import cupy

        super().__init__(label_proba, sample_weight, n_classes)
        self.labels = cupy.ascontiguousarray(cupy.from_dlpack(label_proba))
        self.left = cupy.empty(len(self.labels), dtype=bool)  # which rows are not settled

    def solve(self, problem: RowProblem) -> PassFound:
        """Solve every row for the problem's transition, starting from the current class_proba."""
        target = self.spare or (self.class_proba, self.gap)
        found: list[Sums] = []
        rows: Any = None  # all
        with self.labels.device:
            for name in kernels_for(problem):
                sums, rows = self._run(name, problem, rows, *target)
                found.append(sums)
                if not len(rows):
                    break
            for begin in range(0, len(rows), ROWS_LEFT_AT_ONCE):
                some = rows[begin : begin + ROWS_LEFT_AT_ONCE]
                found.append(self._solve_left(some, problem, *target))
        self.class_proba, self.gap = target
        self.solved = True
        weight = self.sample_weight
        n = len(self.labels) if weight is None else float(array_namespace(weight).sum(weight))
        return PassFound(
            np.sum([part.label_mass for part in found], axis=0),
            sum(part.objective for part in found),
            sum(part.gap_sum for part in found) / (n or 1.0),
            max(part.gap_max for part in found),
            sum(part.n_ambiguous for part in found),
            float(n),
        )

    def _run(self, name, problem: RowProblem, rows, class_proba, gap):
        """Run a kernel on all rows, or on the listed ones; return its sums and the rows left."""
        import cupy

        n_classes, n_labels = problem.transition.shape
        tile = rows_per_block(n_classes, n_labels)
        after_another = rows is not None
        # ST⁻¹ is a better start for the dual than the last pass, and takes less to read.
        start = class_proba if after_another else self.class_proba if self.solved else None
        if name == "dual_rows":
            start = None
        n_rows = len(rows) if after_another else len(self.labels)
        most = BLOCKS_PER_PROCESSOR * self.labels.device.attributes["MultiProcessorCount"]
        n_blocks = min(most, -(-n_rows // tile))
        sums = cupy.empty((n_blocks, n_classes * n_labels + 4))
        arrays = (
            self.labels,
            start,
            self.sample_weight,
            rows,
            np.int64(n_rows),
            class_proba,
            gap,
            self.left,
            sums,
        )
        arguments = tuple(_argument(array) for array in arrays)
        with PROBLEM_LOCK:  # until the kernel is done, which the sums wait for
            _kernel(name, problem, self.labels.dtype)((n_blocks,), (tile,), arguments)
            total = cupy.asnumpy(sums.sum(axis=0))
        mass, (value, gap_sum, _, n_left) = total[:-4].reshape(n_classes, n_labels), total[-4:]
        if n_left == 0:
            rows = self.labels[:0, 0]
        else:
            rows = cupy.flatnonzero(self.left) if rows is None else rows[self.left[rows]]
        return Sums(mass, float(value), float(gap_sum), float(sums[:, -2].max()), 0), rows

    def _solve_left(self, rows, problem: RowProblem, class_proba, gap) -> Sums:
        xp = array_namespace(class_proba)
        rows = xp.from_dlpack(rows)
        weight = self.sample_weight
        weight = None if weight is None else xp.take(weight, rows, axis=0)
        labels, start = (xp.take(a, rows, axis=0) for a in (self.label_proba, class_proba))
        found = solve_block(labels, start, weight, problem)
        class_proba[rows, :] = found.class_proba
        gap[rows] = found.gap
        gaps = xp.astype(found.gap, xp.float64)
        return Sums(
            found.label_mass,
            found.objective,
            float(xp.sum(weighted(gaps, weight))),
            float(xp.max(gaps)),
            found.n_ambiguous,
        )


def kernels_for(problem: RowProblem) -> tuple[str, ...]:
    """Return the kernels to run, one after the other, on the rows that are left."""
    n_classes, n_labels = problem.transition.shape
    invertible = problem.rank == n_classes == n_labels
    return ("dual_rows",) * (invertible and problem.log_prior is None) + ("ascend_rows",)


def _kernel(name, problem: RowProblem, dtype):
    """Return the kernel with the problem in its constant memory: one for all threads of Python."""
    n_classes, n_labels = problem.transition.shape
    module = _module(n_classes, n_labels, dtype.name)
    shared = pack(problem)
    module.get_global("problem").copy_from_host(shared.ctypes.data, shared.nbytes)
    return module.get_function(name)


def pack(problem: RowProblem) -> np.ndarray:
    """Return the struct `Problem` of the kernels."""
    prior = np.zeros(len(problem.transition)) if problem.log_prior is None else problem.log_prior
    tol = problem.tol / 10 if problem.needs_mass else problem.tol
    numbers = (tol, problem.tol, problem.rank == len(problem.transition))
    arrays = (problem.transition, problem.inverse, prior, problem.transition.max(axis=0), numbers)
    return np.concatenate([np.ravel(array) for array in arrays], dtype=float)


def options_for(n_classes, n_labels, real) -> tuple[str, ...]:
    """Return the options that compile the kernels for these sizes and this type of number."""
    defined = {
        "N_CLASSES": n_classes,
        "N_LABELS": n_labels,
        "REAL": real,
        "TILE": rows_per_block(n_classes, n_labels),
        "MIN_BLOCKS": min_blocks(n_classes, n_labels),
        **CONSTANTS,
    }
    return ("-std=c++17", *(f"-D{name}={value}" for name, value in defined.items()))


def rows_per_block(n_classes, n_labels) -> int:
    """Return the rows, one per thread, whose terms of the label mass fit into shared memory."""
    return 128 if n_classes + n_labels <= 40 else 64


def min_blocks(n_classes, n_labels) -> int:
    """Return how many blocks must fit on a processor, which limits the registers of a thread.

    Chosen by the section "occupancy" of benchmarks/bench_gpu.py.
    """
    return 4 if n_classes + n_labels <= 24 else 3


def source() -> str:
    """Return the source of the kernels."""
    return (files("looselabels") / "_rows_cuda.cu").read_text(encoding="utf-8")


@cache
def _module(n_classes, n_labels, dtype):
    import cupy

    real = {"float32": "float", "float64": "double"}[dtype]
    return cupy.RawModule(code=source(), options=options_for(n_classes, n_labels, real))


def _argument(array):
    """Return a number, a CuPy array that shares the memory, or a null pointer."""
    import cupy

    if array is None:
        return np.uint64(0)
    return array if isinstance(array, np.int64 | cupy.ndarray) else cupy.from_dlpack(array)
