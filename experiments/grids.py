"""The list of experiments, and the loops that run their missing cells."""

import os
import subprocess
import time
from functools import partial
from pathlib import Path
from typing import NamedTuple

from joblib import Parallel, delayed, parallel_config
from threadpoolctl import threadpool_limits

from experiments import simulated, transitions
from experiments.cells import SETTINGS, grid
from experiments.data import load
from experiments.forests import run_forest_cell
from experiments.kernels import KernelCells
from experiments.progress import print_progress, time_left
from experiments.results import Results, write_table
from looselabels import __version__

HERE = Path(__file__).parent
RESULTS = HERE / "results"


class Experiment(NamedTuple):
    """A grid of cells for one data set and one model."""

    data: str
    model: str
    several: str  #: name of the problem with several positive classes and a negative one
    counts: tuple[int, ...]  #: numbers of labels per class

    @property
    def problems(self):
        """The five problems, in the order of the paper."""
        return ("semi-supervised", self.several, "positive-unlabeled", "noisy-20", "noisy-50")


FASHION_COUNTS = (10, 20, 50, 200, 500, 2000, 4000)
GRIDS = {
    "fashion-forest": Experiment("fashion", "forest", "7-positive", FASHION_COUNTS),
    "fashion-kernel": Experiment("fashion", "kernel", "7-positive", FASHION_COUNTS),
    "news-forest": Experiment("news", "forest", "14-positive", (5, 20, 50, 100, 300)),
}
TABLES = {"simulated": simulated.table, "transitions": transitions.table}
EXPERIMENTS = (*GRIDS, *TABLES)


def cells_of(name, *, quick=False, seeds=3, problems=(), counts=(), skip_paper=False):
    """Return the selected cells of an experiment, in the order in which they are run."""
    experiment = GRIDS[name]
    all_counts = experiment.counts[:1] if quick else experiment.counts
    return grid(
        [name for name in experiment.problems if not problems or name in problems],
        [count for count in all_counts if not counts or count in counts],
        1 if quick else seeds,
        [setting for setting in SETTINGS if not (skip_paper and setting == "paper")],
    )


def run_grid(name, folder, *, data=None, quick=False, device=None, jobs=1, **chosen):
    """Run the cells that are missing in the results; each is written when it is done."""
    experiment, results = GRIDS[name], Results(folder, name).recover()
    cells = cells_of(name, quick=quick, **chosen)
    missing = [cell for cell in cells if cell not in results.cells]
    print_progress(f"{name}: {len(cells) - len(missing)} of {len(cells)} cells are already done")
    if not missing:
        return
    loaded = load(experiment.data, data, quick)
    run_cell = runner(experiment.model, loaded, missing, device)
    common = {"data": experiment.data, "model": experiment.model, **made_by()}
    taken: dict = {}
    left = set(missing)
    for done, (cell, rows, seconds) in enumerate(run_cells(run_cell, missing, jobs), start=1):
        known = {"problem": cell.problem, "labels_a_class": cell.labels_a_class, "seed": cell.seed}
        results.append(cell, [{**common, **known, **row} for row in rows])
        taken.setdefault(cell.setting, []).append(seconds)
        left.remove(cell)
        end = f"{cell}: {seconds:.1f} s; {time_left(left, taken, jobs)}"
        print_progress(f"{name}: {done} of {len(missing)}, {end}")


def run_cells(run_cell, cells, jobs):
    """Yield (cell, rows, seconds) for each cell when it is done.

    One cell at a time uses all cores. Several at a time run in processes of one core each, and
    those with the most labels start first, because they take longest.
    """
    if jobs > 1:
        cells = sorted(cells, key=lambda cell: -cell.labels_a_class)
    n_threads = -1 if jobs == 1 else 1
    tasks = (delayed(_timed)(run_cell, cell, n_threads) for cell in cells)
    return Parallel(jobs, return_as="generator_unordered")(tasks)


def _timed(run_cell, cell, n_threads):
    start = time.perf_counter()
    # One thread for matrix products: they are too small for several.
    with (
        threadpool_limits(1, user_api="blas"),
        parallel_config(backend="threading", n_jobs=n_threads),
    ):
        rows = run_cell(cell)
    return cell, rows, time.perf_counter() - start


def runner(model, data, cells, device=None):
    """Return the function that runs one of `cells`."""
    if model == "forest":
        return partial(run_forest_cell, data)
    return KernelCells(data, cells, device).run


def run_table(name, folder):
    """Write the table of a small experiment unless it exists."""
    path = Path(folder) / f"{name}.csv"
    if path.exists():
        print_progress(f"{name}: {path} already exists")
        return
    rows = [{**row, **made_by()} for row in TABLES[name]()]
    write_table(path, rows)
    print_progress(f"{name}: wrote {len(rows)} rows to {path}")


def made_by():
    """Return the version and the commit that is running; "+" marks uncommitted changes."""
    return {"version": __version__, "commit": os.environ.get("LOOSELABELS_COMMIT") or _commit()}


def _commit():
    try:
        found = subprocess.run(
            ["git", "describe", "--always", "--dirty=+", "--exclude=*"],
            cwd=HERE, capture_output=True, text=True, check=True,
        )  # fmt: skip
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return found.stdout.strip()
