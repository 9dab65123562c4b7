"""The grid of cells, and the loop that runs those without results."""

import subprocess
import sys
import time
import warnings
from functools import cache
from pathlib import Path

import numpy as np
from benchmarks.quality import metrics, problems, results
from benchmarks.quality.data import NAMES, load, sample
from benchmarks.quality.methods import METHODS, RECIPE, methods_for
from joblib import Parallel, delayed
from threadpoolctl import threadpool_limits

from looselabels import infer

QUICK_KINDS = {  # data that needs no download, one problem per family
    "digits": (
        "semi-supervised", "multi-positive", "positive-50", "noisy-20", "coarse", "clean",
        "asymmetric-30", "merged",
    ),
    "gaussians": ("positive-50",),
}  # fmt: skip
HERE = Path(__file__).parent


def cells_of(name, samples):
    """Return the cells of one data set, given its rows for each seed."""
    return [
        results.Cell(name, kind, count, seed, method)
        for seed, data in enumerate(samples)
        for kind in problems.kinds_of(data)
        for count in problems.counts_of(kind, data)
        for method in methods_for(problems.FAMILY[kind])
    ]


def is_quick(cell, samples):
    """Whether a cell belongs to the quick run: 30 % labeled, one problem per family."""
    middle = problems.counts_of(cell.problem, samples[cell.seed])[1]
    kinds = QUICK_KINDS[cell.data]
    return cell.labels == middle and cell.problem in kinds and cell.method != RECIPE


def missing_cells(path, samples, methods, quick):
    """Return the cells without results; the first seed of all data comes first."""
    done = results.read(path)
    missing = [
        cell
        for name, rows in samples.items()
        for cell in cells_of(name, rows)
        if cell not in done
        and (not methods or cell.method in methods)
        and (not quick or is_quick(cell, rows))
    ]
    return sorted(missing, key=lambda cell: cell.seed)


def run(path, *, quick=False, folder=None, names=(), methods=(), redo=(), seeds=3, jobs=2):
    """Run the cells without results. Each is written as soon as it is done."""
    results.tidy(path, redo)
    begin, mark, samples = time.perf_counter(), commit(), {}
    for name in names or (QUICK_KINDS if quick else NAMES):
        loaded = load(name, folder)
        samples[name] = [sample(loaded, seed) for seed in range(seeds)]
    missing = missing_cells(path, samples, methods, quick)
    _print_progress(f"{len(missing)} cells to run: {', '.join(samples)}")
    work = (delayed(run_cell)(samples[cell.data][cell.seed], cell) for cell in missing)
    done = Parallel(jobs, return_as="generator_unordered")(work)
    for count, (cell, scores) in enumerate(done, start=1):
        results.append(path, cell, scores, mark)
        taken = time.perf_counter() - begin
        left = taken / count * (len(missing) - count) / 60
        _print_progress(
            f"{count} of {len(missing)}, {cell}, {scores['seconds']:.1f} s; {left:.0f} min left"
        )
    results.tidy(path)
    _print_progress(f"{(time.perf_counter() - begin) / 60:.1f} minutes, {jobs} at a time")


def run_cell(data, cell):
    """Return the cell and its scores, with the processor seconds of the method."""
    problem = problems.make(cell.problem, data, cell.labels, cell.seed)
    compile_solver()
    with warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore")
        begin = time.process_time()  # not disturbed by other work on the machine
        answer = METHODS[cell.method].answer(problem, cell.seed)
        seconds = time.process_time() - begin
    scores = metrics.score(problem, answer) | {"seconds": seconds}
    if problem.family == "positive-unlabeled":
        scores["class_prior"] = float(problem.class_prior[0])
    return cell, scores


@cache
def compile_solver():
    """Let numba compile once per process, so that the time of a method does not include it."""
    label_proba = np.random.default_rng(0).dirichlet(np.ones(3), 50)
    infer(label_proba, np.array([[0.5, 0.3, 0.2], [0.0, 0.5, 0.5]]))
    infer(label_proba, np.eye(3) * 0.7 + 0.1)


def commit():
    """Return the current commit, with a + if files differ from it."""
    command = ["git", "describe", "--always", "--dirty=+", "--exclude=*"]
    try:
        done = subprocess.run(command, cwd=HERE, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return done.stdout.strip()


def _print_progress(text):
    print(text, file=sys.stderr, flush=True)
