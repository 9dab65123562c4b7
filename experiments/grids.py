"""The grids of the experiments, and the loop that runs what is missing of them."""

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

from threadpoolctl import threadpool_limits

from experiments.cells import SETTINGS, grid, run_forest_cell
from experiments.data import load
from experiments.results import Results
from looselabels import __version__

HERE = Path(__file__).parent
RESULTS = HERE / "results"


class Experiment(NamedTuple):
    """A grid of cells on one data set with one model."""

    data: str
    model: str
    several: str  #: the name of the problem with several positive classes
    counts: tuple[int, ...]  #: labels a class

    @property
    def problems(self):
        """The five problems, in the paper's order."""
        return ("semi-supervised", self.several, "positive-unlabeled", "noisy-20", "noisy-50")


GRIDS = {
    "fashion-forest": Experiment(
        "fashion", "forest", "7-positive", (10, 20, 50, 200, 500, 2000, 4000)
    ),
    "news-forest": Experiment("news", "forest", "14-positive", (5, 20, 50, 100, 300)),
}
QUICK_COUNTS = (20, 50)


def cells_of(name, *, quick=False, seeds=3, problems=(), counts=(), skip_paper=False):
    """Return the cells of an experiment that were asked for, in the order of running."""
    experiment = GRIDS[name]
    every = QUICK_COUNTS if quick else experiment.counts
    return grid(
        [name for name in experiment.problems if not problems or name in problems],
        [count for count in every if not counts or count in counts],
        1 if quick else seeds,
        [setting for setting in SETTINGS if not (skip_paper and setting == "paper")],
    )


def run_grid(name, folder, *, data=None, quick=False, **chosen):
    """Run the cells that are not in the results yet; each is written as soon as it is done."""
    experiment, results = GRIDS[name], Results(folder, name).recover()
    cells = cells_of(name, quick=quick, **chosen)
    missing = [cell for cell in cells if cell not in results.cells]
    _say(f"{name}: {len(cells) - len(missing)} of {len(cells)} cells are there")
    if not missing:
        return
    loaded = load(experiment.data, data, quick)
    common = {"data": experiment.data, "model": experiment.model, "commit": commit()}
    taken: dict = {}
    for done, cell in enumerate(missing, start=1):
        start = time.perf_counter()
        with threadpool_limits(1, user_api="blas"):  # products are small: threads only wait
            rows = run_forest_cell(loaded, cell)
        known = {"problem": cell.problem, "labels_a_class": cell.labels_a_class, "seed": cell.seed}
        results.append(cell, [{**common, "version": __version__, **known, **row} for row in rows])
        taken.setdefault(cell.setting, []).append(time.perf_counter() - start)
        left = time_left(missing[done:], taken)
        _say(f"{name}: {done} of {len(missing)}, {cell}: {taken[cell.setting][-1]:.1f} s; {left}")


def time_left(cells, taken):
    """Return how long `cells` will take, in words, by what cells of their setting took so far."""
    means = {setting: sum(times) / len(times) for setting, times in taken.items()}
    longest = max(means.values())
    seconds = sum(means.get(cell.setting, longest) for cell in cells)
    return f"about {seconds / 60:.0f} min left" if seconds > 90 else f"about {seconds:.0f} s left"


def commit():
    """Return the commit that runs, with a + where files differ from it."""
    given = os.environ.get("LOOSELABELS_COMMIT")
    if given:
        return given
    try:
        found = subprocess.run(
            ["git", "describe", "--always", "--dirty=+", "--exclude=*"],
            cwd=HERE, capture_output=True, text=True, check=True,
        )  # fmt: skip
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return found.stdout.strip()


def _say(words):
    print(words, file=sys.stderr, flush=True)
