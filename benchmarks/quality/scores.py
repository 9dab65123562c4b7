"""Compare methods: means over seeds, the best peer, wins, ties and losses."""

from collections import defaultdict
from typing import NamedTuple

import numpy as np
from benchmarks.quality.data import NAMES, TEST
from benchmarks.quality.methods import ALL, METHODS, PEER, methods_for
from benchmarks.quality.problems import FAMILY

LOWER = ("log_loss", "calibration_error", "class_prior_error", "transition_error", "seconds")
WIN, TIE, LOSS = "win", "tie", "loss"


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
    def difference(self):
        """The mean gain over seeds; positive if `ours` is better."""
        return float(np.mean(self._gains()))

    def _gains(self):
        return (self.theirs - self.ours) if self.lower else (self.ours - self.theirs)

    @property
    def outcome(self):
        """A tie: the mean gain is within one standard deviation of the gains of the seeds."""
        is_tie = abs(self.difference) <= sd(self._gains())
        return TIE if is_tie else WIN if self.difference > 0 else LOSS


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

    def by_family(self):
        """Yield family, data and their places, in order."""
        for family in ALL:
            for data in NAMES:
                places = [p for p in self.places if (p.family, p.data) == (family, data)]
                if places:
                    yield family, data, places

    def mean(self, places, method, score) -> np.ndarray:
        """Return one mean over the places per seed; only seeds that all places have."""
        seeds = [self._seeds.get((place, method, score), {}) for place in places]
        common = set.intersection(*map(set, seeds)) if seeds else set()
        return np.array([np.mean([one[seed] for one in seeds]) for seed in sorted(common)])

    def best_peer(self, places, score, peers=None):
        """Return the peer with the best mean; None if no peer has the score."""
        sign = -1 if score in LOWER else 1
        names = methods_for(places[0].family, PEER) if peers is None else peers
        found = {name: self.mean(places, name, score) for name in names}
        means = {name: sign * values.mean() for name, values in found.items() if len(values)}
        return max(means, key=lambda name: means[name]) if means else None

    def compare(self, places, method, score, peer=None) -> Compared | None:
        """Compare `method` with `peer` (None: the best one); None if one was not run."""
        peer = peer or self.best_peer(places, score)
        ours = self.mean(places, method, score)
        theirs = self.mean(places, peer, score) if peer else ours[:0]
        n_seeds = min(len(ours), len(theirs))
        if not n_seeds:
            return None
        return Compared(ours[:n_seeds], theirs[:n_seeds], peer, score in LOWER)

    def methods(self):
        """Return the methods that have results, in the order of METHODS."""
        found = {cell.method for cell in self.rows}
        return [name for name in METHODS if name in found]


def sd(values):
    """Return the standard deviation over seeds; 0 for one seed."""
    return float(np.std(values, ddof=1)) if len(values) > 1 else 0.0


def mean_and_sd(values, digits=3):
    """Return "mean ± sd" over seeds as text; only the mean for one seed."""
    if not len(values):
        return ""
    spread = f" ± {sd(values):.{digits}f}" if len(values) > 1 else ""
    return f"{np.mean(values):.{digits}f}{spread}"
