"""Compare methods: means over seeds, the best peer, wins, ties and losses."""

from collections import defaultdict
from typing import NamedTuple

import numpy as np
from benchmarks.quality.answer import FOREST, LINEAR, OWN
from benchmarks.quality.data import NAMES, TEST
from benchmarks.quality.methods import ALL, METHODS, PEER, methods_for
from benchmarks.quality.problems import FAMILY
from scipy.stats import t as student

LOWER = ("log_loss", "calibration_error", "class_prior_error", "transition_error", "seconds")
WIN, TIE, LOSS = "win", "tie", "loss"
MIN_DIFFERENCE = 0.005  # smaller differences are ties
# The bases of the peers that a method is compared with: its own one. A method that chooses its
# classifier itself is compared with all peers.
RIVALS = {OWN: (OWN, FOREST, LINEAR), FOREST: (OWN, FOREST), LINEAR: (OWN, LINEAR)}


class Place(NamedTuple):
    """What methods are compared on: a problem, on some data, with `labels` labels per class."""

    data: str
    problem: str
    labels: int

    @property
    def family(self):
        return FAMILY[self.problem]

    @property
    def is_test(self):
        return self.data in TEST


class Compared(NamedTuple):
    """The scores of two methods, one per seed."""

    ours: np.ndarray
    theirs: np.ndarray
    peer: str
    lower: bool  #: lower scores are better

    @property
    def gains(self):
        """One gain per seed; positive if `ours` is better."""
        return (self.theirs - self.ours) if self.lower else (self.ours - self.theirs)

    @property
    def difference(self):
        """The mean gain over seeds."""
        return float(np.mean(self.gains))

    @property
    def outcome(self):
        """A win or loss: the mean gain exceeds 0.005 and two standard errors over the seeds."""
        if abs(self.difference) <= max(MIN_DIFFERENCE, 2 * standard_error(self.gains)):
            return TIE
        return WIN if self.difference > 0 else LOSS

    @property
    def upper(self):
        """The upper 95 % bound of the mean gain, one-sided, by Student's t."""
        if len(self.gains) < 2:
            return self.difference
        width = student.ppf(0.95, len(self.gains) - 1) * standard_error(self.gains)
        return self.difference + float(width)


class Scores:
    """All results, with means over places."""

    def __init__(self, rows):
        self.rows = rows
        self._seeds = defaultdict(dict)
        for cell, scores in rows.items():
            place = Place(cell.data, cell.problem, cell.labels)
            for name, value in scores.items():
                self._seeds[place, cell.method, name][cell.seed] = value
        found = {place for place, _, _ in self._seeds}
        kinds = list(FAMILY)
        self.places = sorted(
            found, key=lambda p: (kinds.index(p.problem), NAMES.index(p.data), p.labels)
        )

    def of_data(self, names) -> "Scores":
        """Return the results on some of the data sets."""
        return Scores({cell: scores for cell, scores in self.rows.items() if cell.data in names})

    def by_family(self):
        """Yield family, data and their places, in order."""
        for family in ALL:
            for data in NAMES:
                places = [p for p in self.places if (p.family, p.data) == (family, data)]
                if places:
                    yield family, data, places

    def mean(self, places, method, score) -> np.ndarray:
        """Return one mean over the places per seed; only seeds that all places have."""
        return np.array(list(self._by_seed(places, method, score).values()))

    def _by_seed(self, places, method, score):
        """Return seed → mean over the places, for seeds that all places have."""
        seeds = [self._seeds.get((place, method, score), {}) for place in places]
        common = set.intersection(*map(set, seeds)) if seeds else set()
        return {seed: float(np.mean([one[seed] for one in seeds])) for seed in sorted(common)}

    def compare(self, places, method, score, peer=None, bases=None) -> Compared | None:
        """Compare `method` with `peer` on the seeds that both have; None if one was not run.

        None as the peer is the best one whose base is in `bases`; see `RIVALS`.
        """
        places = [p for p in places if (p, method, score) in self._seeds]
        if not places:
            return None
        bases = bases or RIVALS[METHODS[method].base]
        names = [peer] if peer else methods_for(places[0].family, PEER, bases)
        compared = [self._compare(places, method, score, name) for name in names]
        found = [c for c in compared if c is not None]
        return min(found, key=lambda c: c.difference) if found else None

    def _compare(self, places, method, score, peer):
        ours, theirs = (self._by_seed(places, name, score) for name in (method, peer))
        common = [seed for seed in ours if seed in theirs]
        if not common:
            return None
        pairs = np.array([[ours[seed], theirs[seed]] for seed in common])
        return Compared(pairs[:, 0], pairs[:, 1], peer, score in LOWER)

    def n_seeds(self):
        """Return the seeds of a comparison as text, such as "1 to 3 seeds" if they differ."""
        counts = {len(seeds) for seeds in self._seeds.values()}
        low, high = min(counts), max(counts)
        return f"{low} to {high} seeds" if low < high else f"{low} seed{'s' * (low > 1)}"

    def methods(self):
        """Return the methods that have results, in the order of METHODS."""
        found = {cell.method for cell in self.rows}
        return [name for name in METHODS if name in found]


def sd(values):
    """Return the standard deviation over seeds; 0 for one seed."""
    return float(np.std(values, ddof=1)) if len(values) > 1 else 0.0


def standard_error(values):
    """Return the standard error of the mean over seeds; 0 for one seed."""
    return sd(values) / len(values) ** 0.5


def mean_and_sd(values, digits=3):
    """Return "mean ± sd" over seeds as text; only the mean for one seed."""
    if not len(values):
        return ""
    spread = f" ± {sd(values):.{digits}f}" if len(values) > 1 else ""
    return f"{np.mean(values):.{digits}f}{spread}"
