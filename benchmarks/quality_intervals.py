"""Simulate how often 90 % intervals hold the truth, and how often large doubts are right.

python benchmarks/quality_intervals.py [--runs 40] [--jobs 2] [--quick]

Four Gaussian classes, 1,000 rows, a forest of 100 trees, ``noise="estimate"``, everything else by
default. "wrong labels" and "class shares" are the intervals of `audit`: how many runs, or which
share of runs and classes, hold the truth, and their median width. The true class shares are those
of the population. "doubt > 99%" are the labels of all runs that are doubted this much, and which
share of them is wrong, with its one-sided 95 % bound: first as audited, then with the true
transition.
"""

import argparse
import time
import warnings
from typing import NamedTuple

import numpy as np
from joblib import Parallel, delayed
from scipy.stats import beta
from threadpoolctl import threadpool_limits

from bench_infer import machine
from looselabels import BalancedForestClassifier, DecoupledClassifier, Transition, audit
from simulate import draw

SHARES = np.array([0.35, 0.3, 0.2, 0.15])
N_FEATURES = 6
OVERLAPS = {"low": 3.5, "high": 2.0}  # distance of the centers from the origin
RATES = {  # of wrong labels, by class
    "uniform 10%": [0.1, 0.1, 0.1, 0.1],
    "one class 40%": [0.4, 0.0, 0.0, 0.0],
    "every other class 25%": [0.25, 0.0, 0.25, 0.0],
}
COLUMNS = (
    *("noise", "overlap", "wrong labels, mean", "estimated, mean", "interval holds", "width"),
    *("class shares: interval holds", "width", "doubt > 99%", "wrong among them"),
    *("doubt > 99%, true transition", "wrong among them", "seconds"),
)
CERTAIN = 0.99  # doubts above this should be right
MIN_CERTAIN = 50  # fewer of them are not judged
RIGHT = 0.97  # which share of these labels should be wrong, at least


class Run(NamedTuple):
    """One simulated table: the truth and what an audit says."""

    n_wrong: int
    expected: float
    ends: np.ndarray  #: of the interval of the number of wrong labels; NaN if there is none
    share_ends: np.ndarray  #: (2, n_classes)
    certain: (
        np.ndarray
    )  #: how many labels have a doubt above CERTAIN, and how many of them are wrong
    certain_with_truth: np.ndarray  #: the same with the true transition
    seconds: float  #: of fit and audit, with estimated noise


def simulated(noise, overlap, seed, n_rows):
    """Return features, classes, labels, and the true transition."""
    rng = np.random.default_rng(seed)
    classes = rng.choice(len(SHARES), n_rows, p=SHARES)
    X = rng.standard_normal((n_rows, N_FEATURES))
    X[np.arange(n_rows), classes] += OVERLAPS[overlap]
    rates = dict(enumerate(RATES[noise]))
    transition = Transition.identity(range(len(SHARES))).with_noise(rates)
    return X, classes, draw(rng, transition.proba[classes]), transition


def run(noise, overlap, seed, n_rows=1000, n_trees=100) -> Run:
    """Simulate one table and audit it."""
    X, classes, labels, transition = simulated(noise, overlap, seed, n_rows)
    forest = BalancedForestClassifier(n_trees, random_state=seed)
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        start = time.perf_counter()
        clf = DecoupledClassifier(forest, noise="estimate", random_state=seed).fit(X, labels)
        found = audit(clf, labels)
        summary = found.summary()
        seconds = time.perf_counter() - start
        truth = DecoupledClassifier(forest, transition, random_state=seed).fit(X, labels)
    wrong, is_wrong = summary["wrong"], labels != classes
    expected, *ends = (
        np.nan if wrong[key] is None else wrong[key] for key in ("expected", "low", "high")
    )
    return Run(
        n_wrong=int(is_wrong.sum()),
        expected=expected,
        ends=np.array(ends),
        share_ends=np.array(
            [[part[key] for part in summary["classes"]] for key in ("low", "high")]
        ),
        certain=count_certain(found, is_wrong),
        certain_with_truth=count_certain(audit(truth, labels), is_wrong),
        seconds=seconds,
    )


def count_certain(found, is_wrong) -> np.ndarray:
    """Return how many labels are certainly doubted, and how many of these are wrong."""
    is_certain = found.doubt > CERTAIN
    return np.array([is_certain.sum(), np.sum(is_certain & is_wrong)])


# ----------------------------------------------------------------------------------------- summary


def count_held(runs) -> int:
    """Return how many intervals of the number of wrong labels hold it; a missing one does not."""
    return sum(bool(one.ends[0] <= one.n_wrong <= one.ends[1]) for one in runs)


def shares_held(runs) -> np.ndarray:
    """Return which intervals of class shares hold the truth, (n_runs, n_classes)."""
    ends = np.array([one.share_ends for one in runs])
    return (ends[:, 0] <= SHARES) & (ends[:, 1] >= SHARES)


def upper_bound(n, n_wrong) -> float:
    """Return the one-sided 95 % upper bound of the share of wrong labels."""
    return 1.0 if n_wrong == n else float(beta.ppf(0.95, n_wrong + 1, n - n_wrong))


def are_doubts_calibrated(runs) -> bool:
    """Return whether large doubts are right, and at least half as many as with the true T."""
    n, n_wrong = sum(one.certain for one in runs)
    are_right = n <= MIN_CERTAIN or upper_bound(n, n_wrong) >= RIGHT
    return bool(are_right and 2 * n >= sum(one.certain_with_truth for one in runs)[0])


def certain_cells(n, n_wrong) -> list[str]:
    """Return the two cells on large doubts."""
    return [f"{n:,}", f"{n_wrong / n:.1%} (≤ {upper_bound(n, n_wrong):.1%})" if n else "–"]


def line(noise, overlap, runs) -> str:
    """Return the row of a cell in the table."""
    counts = np.array([one.ends for one in runs])
    shares = np.array([one.share_ends for one in runs])
    cells = [
        noise,
        overlap,
        f"{np.mean([one.n_wrong for one in runs]):.0f}",
        f"{np.nanmean([one.expected for one in runs]):.0f}",
        f"{count_held(runs)} of {len(runs)}",
        f"{np.nanmedian(counts[:, 1] - counts[:, 0]):.0f}",
        f"{shares_held(runs).mean():.0%}",
        f"{np.median(shares[:, 1] - shares[:, 0]):.3f}",
        *certain_cells(*sum(one.certain for one in runs)),
        *certain_cells(*sum(one.certain_with_truth for one in runs)),
        f"{np.mean([one.seconds for one in runs]):.1f}",
    ]
    return f"| {' | '.join(cells)} |"


def conclusions(by_cell) -> str:
    """Return what the intervals and doubts reach, over all cells."""
    runs = [one for cell in by_cell.values() for one in cell]
    least = min(count_held(cell) / len(cell) for cell in by_cell.values())
    calibrated = sum(map(are_doubts_calibrated, by_cell.values()))
    return (
        f"All cells: {count_held(runs) / len(runs):.0%} of the intervals of the number of wrong "
        f"labels hold it (at least {least:.0%} in each cell), and {shares_held(runs).mean():.0%} "
        f"of the intervals of class shares. Doubts above {CERTAIN:.0%} are right, and not too few, "
        f"in {calibrated} of {len(by_cell)} cells."
    )


def main():
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=40, help="simulated tables per cell")
    parser.add_argument("--jobs", type=int, default=2, help="tables at a time")
    parser.add_argument("--quick", action="store_true", help="a small part, to test the script")
    options = parser.parse_args()
    n_runs, size = (2, (200, 20)) if options.quick else (options.runs, ())
    cells = [(noise, overlap) for noise in RATES for overlap in OVERLAPS]
    found = Parallel(options.jobs)(
        delayed(run)(*cell, seed, *size) for cell in cells for seed in range(n_runs)
    )
    by_cell = {cell: found[i * n_runs : (i + 1) * n_runs] for i, cell in enumerate(cells)}
    print(machine())
    print(f"\n| {' | '.join(COLUMNS)} |\n|{'---|' * len(COLUMNS)}")
    for cell, runs in by_cell.items():
        print(line(*cell, runs))
    print(f"\n{conclusions(by_cell)}")


if __name__ == "__main__":
    main()
