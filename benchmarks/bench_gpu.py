"""Time `infer` and kernel densities on a GPU next to the time of copying their arrays once.

    python benchmarks/bench_gpu.py              # everything; needs CuPy and about 40 GB on the GPU
    python benchmarks/bench_gpu.py --quick      # small sizes, to test the script
    python benchmarks/bench_gpu.py --only joint > table.md

The floor of a pass is the time of reading label_proba and class_proba and of writing class_proba
and the gaps, at the bandwidth of a copy on the same device.
"""

import argparse
import time
from functools import partial
from typing import NamedTuple
from unittest.mock import patch

import cupy
import numpy as np

from bench_infer import machine, shape, timed
from looselabels import _cuda, infer
from looselabels._blocks import row_problem
from looselabels._cuda import CudaRows
from looselabels.learning.density import kernel_sums
from simulate import NOISE, SHARPNESS, confusion, partial_transition

STRENGTH = 100  # pseudocounts per class
TOLERANCE = 1e-7  # nats per row
COLUMNS = ("", "case", "time", "floor", "ratio", "target", "remarks")


class Sizes(NamedTuple):
    joint: tuple = ((10**8, 10, 0.05), (10**7, 20, 0.02))  # rows, classes, target in s per pass
    known: tuple = ((1_280_000, 1_000, 20.0),)
    density: tuple = (60_000, 784, 2_000)  # rows, columns of X, label columns


QUICK = Sizes(((10**5, 10, 0.05), (10**5, 20, 0.02)), ((4_096, 200, 20.0),), (4_000, 50, 20))


def joint(sizes: Sizes, bandwidth):
    """Time a pass of task 1, and the whole inference."""
    for n_rows, n_classes, target in sizes.joint:
        transition = partial_transition(n_classes)
        label_proba = simulate(n_rows, transition)
        run = partial(infer, label_proba, transition, pseudocounts=STRENGTH * transition)
        infer(label_proba[:1000], transition, pseudocounts=transition)  # compiles the kernels
        with timing_of_passes() as passes:
            seconds, found = elapsed(partial(run, tol=TOLERANCE))
        change = abs(last_step(label_proba, found.transition, STRENGTH * transition)).max()
        floor = 4 * n_rows * (3 * n_classes + 1) / bandwidth
        each = np.median(passes)
        remarks = f"{found.n_iter} passes, {timed(max(passes))} the longest; all {timed(seconds)}; "
        remarks += f"mean gap {float(found.gap.mean()):.1e}, converged: {found.converged}, "
        remarks += f"the next step changes T by {change:.0e}"
        case = f"joint, a pass, {n_rows:,} × {n_classes}, float32"
        yield case, timed(each), timed(floor), f"{each / floor:.3g} ×", timed(target), remarks
        del label_proba, found, run
        cupy.get_default_memory_pool().free_all_blocks()


def last_step(label_proba, transition, pseudocounts):
    """Return by how much one more step changes the transition."""
    transition = cupy.asnumpy(transition)
    rows = CudaRows(label_proba, None, len(transition))
    mass = rows.solve(row_problem(transition, None, TOLERANCE)).label_mass + pseudocounts
    return mass / mass.sum(axis=1, keepdims=True) - transition


def known(sizes: Sizes, bandwidth):
    """Time task 3 with many classes: the batched path."""
    for n_rows, n_classes, target in sizes.known:
        transition = confusion(n_classes)
        label_proba = simulate(n_rows, transition)
        infer(label_proba[: 2**16], transition, tol=1e-6)  # compiles CuPy's kernels
        seconds, found = elapsed(partial(infer, label_proba, transition, tol=1e-6))
        floor = 4 * n_rows * (2 * n_classes + 1) / bandwidth
        remarks = f"max gap {float(found.gap.max()):.1e}"
        case = f"known T, {n_rows:,} × {n_classes:,}, float32"
        yield case, timed(seconds), timed(floor), f"{seconds / floor:.3g} ×", timed(target), remarks


def occupancy(sizes: Sizes, bandwidth):
    """Time a pass with more threads per processor, and so with fewer registers for each."""
    for n_rows, n_classes, _ in sizes.joint:
        transition = partial_transition(n_classes)
        label_proba = simulate(n_rows // 5, transition)
        moved = 0.99 * transition + 0.01 / n_classes
        for blocks in (2, 3, 4):
            _cuda._module.cache_clear()
            with patch.object(_cuda, "min_blocks", lambda *_, blocks=blocks: blocks):
                rows = CudaRows(label_proba, None, n_classes)
                for given in (transition, moved, transition):  # the first one compiles
                    solve = partial(rows.solve, row_problem(given, None, TOLERANCE))
                    seconds, _ = elapsed(solve)
            floor = 4 * len(label_proba) * (3 * n_classes + 1) / bandwidth
            case = f"a pass, {shape(label_proba)}, {blocks} blocks per processor"
            chosen = "chosen" if blocks == _cuda.min_blocks(n_classes, n_classes) else ""
            yield case, timed(seconds), timed(floor), f"{seconds / floor:.3g} ×", "", chosen
        _cuda._module.cache_clear()


def density(sizes: Sizes, _):
    """Time leave-one-out kernel densities, and the bare matrix products."""
    n_rows, n_features, n_columns = sizes.density
    rng = cupy.random.default_rng(0)
    X = rng.standard_normal((n_rows, n_features), dtype=cupy.float32)
    columns = cupy.zeros((n_rows, n_columns), dtype=cupy.float32)
    columns[cupy.arange(n_rows), cupy.arange(n_rows) % n_columns] = 1
    run = partial(kernel_sums, X, None, columns, [5.0])
    run()
    seconds, _ = elapsed(run)
    floor, _ = elapsed(partial(products, X, columns))
    case = f"kernel densities, {n_rows:,} × {n_features}, {n_columns:,} label columns, float32"
    remarks = "floor: the two matrix products"
    yield case, timed(seconds), timed(floor), f"{seconds / floor:.3g} ×", "600 ms", remarks


def products(X, columns, size=4096):
    for begin in range(0, len(X), size):
        (X[begin : begin + size] @ X.T) @ columns


def simulate(n_rows, transition, seed=1, chunk=2**27):
    """Return label_proba as `simulate.simulate` does, in float32 and drawn on the GPU."""
    rng, given = cupy.random.default_rng(seed), cupy.asarray(transition, dtype=cupy.float32)
    n_classes, n_labels = given.shape
    label_proba = cupy.empty((n_rows, n_labels), dtype=cupy.float32)
    size = max(1, chunk // n_labels)
    for begin in range(0, n_rows, size):
        rows = min(size, n_rows - begin)
        normal = rng.standard_normal((rows, n_classes), dtype=cupy.float32)
        class_proba = cupy.exp(SHARPNESS * normal)
        exact = (class_proba / class_proba.sum(axis=1, keepdims=True)) @ given
        error = rng.standard_normal(exact.shape, dtype=cupy.float32)
        noisy = exact * cupy.exp(NOISE * error)
        label_proba[begin : begin + rows] = noisy / noisy.sum(axis=1, keepdims=True)
    return label_proba


def elapsed(function):
    cupy.cuda.Device().synchronize()
    start = time.perf_counter()
    result = function()
    cupy.cuda.Device().synchronize()
    return time.perf_counter() - start, result


class timing_of_passes:
    """Within this context, collect the seconds of each pass over the rows."""

    def __enter__(self):
        seconds, solve = [], CudaRows.solve

        def timed_solve(rows, problem):
            took, found = elapsed(partial(solve, rows, problem))
            seconds.append(took)
            return found

        self.patch = patch.object(CudaRows, "solve", timed_solve)
        self.patch.start()
        return seconds

    def __exit__(self, *error):
        self.patch.stop()


def copy_bandwidth(size):
    """Return the bytes per second that a copy on the device reads and writes."""
    one = cupy.ones(size, dtype=cupy.uint8)
    other = cupy.empty_like(one)
    cupy.copyto(other, one)
    return 2 * size / min(elapsed(partial(cupy.copyto, other, one))[0] for _ in range(5))


SECTIONS = {"joint": joint, "known": known, "density": density, "occupancy": occupancy}


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--only", nargs="+", choices=SECTIONS, default=list(SECTIONS))
    parser.add_argument("--quick", action="store_true", help="small sizes")
    options = parser.parse_args()
    bandwidth = copy_bandwidth(2**27 if options.quick else 2**32)
    name = cupy.cuda.runtime.getDeviceProperties(cupy.cuda.Device().id)["name"].decode()
    print(f"{name}, copy at {bandwidth / 1e12:.2f} TB/s, CuPy {cupy.__version__}; {machine()}.\n")
    print(f"| {' | '.join(COLUMNS)} |\n{'|---' * len(COLUMNS)}|", flush=True)
    for section in options.only:
        for row in SECTIONS[section](QUICK if options.quick else Sizes(), bandwidth):
            print(f"| {section} | {' | '.join(row)} |", flush=True)


if __name__ == "__main__":
    main()
