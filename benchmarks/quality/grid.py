"""The grid of cells, and the loop that runs those without results."""

import subprocess
import sys
import time
import warnings
from collections import defaultdict
from contextlib import nullcontext
from functools import cache
from itertools import takewhile
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from benchmarks.quality import metrics, problems, results
from benchmarks.quality.answer import LINEAR
from benchmarks.quality.data import NAMES, read_sample, store_samples
from benchmarks.quality.methods import METHODS, PEER, PU, RECIPE, methods_for
from benchmarks.quality.scores import RIVALS, WIN, Scores
from benchmarks.quality.targets import EVERY
from joblib import Parallel, delayed
from threadpoolctl import threadpool_limits

from looselabels import infer

QUICK_KINDS = {  # data that needs no download, one problem per family
    "digits": (
        "semi-supervised", "multi-positive", "positive-50", "noisy-20", "coarse", "clean",
        "overlap", "asymmetric-30", "uneven-25", "copies", "merged", "candidates",
    ),
    "gaussians": ("positive-50",),
}  # fmt: skip
HERE = Path(__file__).parent


# ------------------------------------------------------------------------------ cells


def cells_of(data, seed):
    """Return the cells of one seed of a data set, all methods of a problem together."""
    return [
        results.Cell(data.name, kind, count, seed, method)
        for kind in problems.kinds_of(data)
        for count in problems.counts_of(kind, data)
        for method in methods_for(problems.FAMILY[kind])
        if count == problems.middle_count(data) or is_full(kind, method)
    ]


def is_full(kind, method):
    """Whether a method is run with every number of labels of a problem, not only 30 %."""
    return method != RECIPE and (METHODS[method].base != LINEAR or problems.FAMILY[kind] != PU)


def is_quick(cell, data):
    """Whether a cell belongs to the quick run: one problem per family.

    30 % of the rows are labeled, or as many as possible where wrong labels are counted: tables of
    these leave out problems with few labels.
    """
    count = problems.middle_count(data)
    if problems.FAMILY[cell.problem] in problems.NOISY:
        count = max(problems.counts_of(cell.problem, data))
    return cell.labels == count and cell.problem in QUICK_KINDS[cell.data] and cell.method != RECIPE


def missing_cells(done, samples, names, seeds, *, more=0, methods=(), quick=False):
    """Return the cells without results; the first seed of all data comes first.

    `more` seeds are added to the comparisons in which looselabels is not ahead.
    """
    close = close_cells(done) if more else set()
    return [
        cell
        for seed in range(seeds + more)
        for data in (read_sample(samples, name, seed) for name in names)
        for cell in cells_of(data, seed)
        if cell not in done
        and (seed < seeds or cell._replace(seed=0) in close)
        and (not methods or cell.method in methods)
        and (not quick or is_quick(cell, data))
    ]


def close_cells(done):
    """Return the cells of comparisons without a win for looselabels, all its peers included.

    With one seed, these may be losses or ties by chance. The cells are those of seed 0.
    """
    first = {cell: scores for cell, scores in done.items() if cell.seed == 0}
    scores, found = Scores(first), set()
    for place in scores.places:
        for method in EVERY:
            compared = scores.compare([place], method, "macro_f1")
            if compared is not None and compared.outcome != WIN:
                peers = methods_for(place.family, PEER, RIVALS[METHODS[method].base])
                found |= {results.Cell(*place, 0, name) for name in (method, *peers)}
    return found & set(first)


def estimated_seconds(done, cells):
    """Return how long the cells take, by similar cells that were run; None if none were."""
    if not done:
        return None
    known: dict[tuple, list] = defaultdict(list)
    for cell, scores in done.items():
        for key in _similar(cell):
            known[key].append(scores["seconds"])
    means = {key: np.mean(found) for key, found in known.items()}
    return float(sum(next(means[k] for k in _similar(cell) if k in means) for cell in cells))


def _similar(cell):
    """Return what a cell has in common with others, most similar first."""
    return (cell.data, cell.problem, cell.method), (cell.data, cell.method), (cell.method,), ()


# ------------------------------------------------------------------------------ runs


def run(
    path, *, quick=False, folder=None, samples=None, names=(), methods=(), redo=(), seeds=3, more=0,
    jobs=2, minutes=np.inf, mark=None,
):  # fmt: skip
    """Run the cells without results. Each is written as soon as it is done.

    No cell is started after `minutes`. `samples` is a folder that keeps the rows of each seed; by
    default they are kept for this run only. A cell that fails is reported and stays missing.
    """
    begin, mark = time.perf_counter(), mark or commit()
    results.tidy(path, redo)
    names = names or tuple(QUICK_KINDS if quick else NAMES)
    with nullcontext(samples) if samples else TemporaryDirectory() as place:
        store_samples(place, names, seeds + more, folder)
        done = results.read(path)
        missing = missing_cells(done, place, names, seeds, more=more, methods=methods, quick=quick)
        needed = estimated_seconds(done, missing)
        about = "" if needed is None else f", about {needed / 60 / jobs:.0f} minutes"
        _print_progress(f"{len(missing)} cells to run{about}: {', '.join(names)}")
        in_time = takewhile(lambda _: time.perf_counter() - begin < 60 * minutes, missing)
        work = (delayed(try_cell)(place, cell) for cell in in_time)
        # batches of one: a batch that was dispatched is completed, however late it is
        found = Parallel(jobs, return_as="generator_unordered", batch_size=1)(work)
        errors = []
        for count, (cell, scores) in enumerate(found, start=1):
            if isinstance(scores, str):
                errors.append(f"{cell}: {scores}")
                _print_progress(f"failed: {errors[-1]}")
                continue
            results.append(path, cell, scores, mark)
            left = (time.perf_counter() - begin) / count * (len(missing) - count) / 60
            _print_progress(
                f"{count} of {len(missing)}, {cell}, {scores['seconds']:.1f} s; {left:.0f} min left"
            )
    results.tidy(path)
    _print_progress(f"{(time.perf_counter() - begin) / 60:.1f} minutes, {jobs} at a time")
    if errors:
        raise ValueError(f"{len(errors)} cells failed. The first: {errors[0]}")


def try_cell(samples, cell):
    """Return the cell and its scores; the error as text if there is one."""
    try:
        return run_cell(samples, cell)
    except Exception as error:
        return cell, f"{type(error).__name__}: {error}"


def run_cell(samples, cell):
    """Return the cell and its scores, with the processor seconds of the method."""
    data = read_sample(samples, cell.data, cell.seed)
    problem = problems.make(cell.problem, data, cell.labels, cell.seed)
    compile_solver()
    with warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore")
        begin = time.process_time()  # not disturbed by other work on the machine
        answer = METHODS[cell.method].answer(problem, cell.seed)
        seconds = time.process_time() - begin
    scores = metrics.score(problem, answer) | {"seconds": seconds}
    if problem.family == PU:
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
