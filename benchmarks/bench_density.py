"""Leave-one-out kernel densities compared with their matrix products, as ratios of one run.

python benchmarks/bench_density.py [--quick] [--rows 60000]
"""

import argparse
from time import perf_counter

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from sklearn.neighbors import KernelDensity
from sklearn.utils import gen_batches
from threadpoolctl import threadpool_limits

from bench_infer import machine
from looselabels.learning.density import BANDWIDTH_STEPS, ROWS_PER_BLOCK, kernel_sums
from simulate import image_like

BANDWIDTH = 5.0  # in standard deviations of a feature
PEER_ROWS = 100  # for measuring KernelDensity of scikit-learn


def seconds(*functions, repeats=3):
    """Return the shortest time of each function; they run in turns to share other load fairly."""
    times = [[] for _ in functions]
    for _ in range(repeats):
        for function, took in zip(functions, times, strict=True):
            begin = perf_counter()
            function()
            took.append(perf_counter() - begin)
    return [min(took) for took in times]


def bare_products(Z, n_jobs):
    """Multiply all rows with all rows in the blocks of `kernel_sums`; discard the products."""
    blocks = gen_batches(len(Z), ROWS_PER_BLOCK)

    def one_block(block):
        Z[block] @ Z.T  # not stored: all pairs would not fit into memory

    if n_jobs is None:
        for block in blocks:
            one_block(block)
        return
    with threadpool_limits(1):
        Parallel(n_jobs, require="sharedmem")(delayed(one_block)(block) for block in blocks)


def peer(Z, y):
    """Return the time of one KernelDensity per label at all rows, extrapolated from a few rows."""
    total = 0.0
    for label in np.unique(y):
        found = KernelDensity(bandwidth=BANDWIDTH)
        (fit,) = seconds(lambda f=found, rows=Z[y == label]: f.fit(rows), repeats=1)
        (score,) = seconds(lambda f=found: f.score_samples(Z[:PEER_ROWS]), repeats=1)
        total += fit + score * len(Z) / PEER_ROWS
    return total


def row(name, took, compared, base, target=""):
    print(f"| {name} | {took:.2f} s | {compared}: {base:.2f} s | {took / base:.2f} × | {target} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small sizes, to see that it runs")
    parser.add_argument("--rows", type=int, default=20_000)
    given = parser.parse_args()
    n_rows = 2_000 if given.quick else given.rows
    X, y = image_like(n_rows)
    Z = ((X - X.mean(axis=0)) / X.std(axis=0)).astype(np.float32)
    one_hot = np.eye(y.max() + 1, dtype=np.float32)[y]
    many = np.random.default_rng(0).random((n_rows, 200), dtype=np.float32)
    n_cores = effective_n_jobs(-1)

    def leave_one_out(columns, bandwidths, n_jobs):
        return lambda: kernel_sums(Z, None, columns, bandwidths, n_jobs=n_jobs)

    print(machine(), f"\n\nLeave-one-out, {n_rows:,} × {Z.shape[1]}, float32:\n")
    print("| case | time | compared with | ratio | target |")
    print("|---|---|---|---|---|")
    for name, n_jobs in (("BLAS threads", None), (f"n_jobs={n_cores}", n_cores)):
        sums = leave_one_out(one_hot, [BANDWIDTH], n_jobs)
        bare, one = seconds(lambda n_jobs=n_jobs: bare_products(Z, n_jobs), sums)
        row(f"one bandwidth, {name}", one, "products alone", bare, "≤ 1.5 ×")
    (wide,) = seconds(leave_one_out(many, [BANDWIDTH], n_cores), repeats=1)
    row(f"200 columns, {name}", wide, "products alone", bare)
    (grid,) = seconds(leave_one_out(one_hot, BANDWIDTH * BANDWIDTH_STEPS, n_cores), repeats=1)
    row(f"{len(BANDWIDTH_STEPS)} bandwidths, {name}", grid, "products alone", bare)
    slow = peer(Z.astype(np.float64), y)
    row("one KernelDensity per label, float64", slow, f"one bandwidth, {name}", one)
    print(
        f"\nKernelDensity: its fits, and {PEER_ROWS} rows times {n_rows / PEER_ROWS:g} (time is "
        "linear in them); it has one thread and float64, and leaves no row out."
    )


if __name__ == "__main__":
    main()
