"""Scores as functions of the number of labels, for the figures and the claims."""

from typing import NamedTuple

import numpy as np

from experiments.cells import SPECIFIED
from experiments.results import read_rows

# The strength of `paper` that the figures and claims show; README.md gives the reasons.
SHOWN_STRENGTH = "inf"


class Series(NamedTuple):
    """Identifies one curve."""

    setting: str
    weights: str
    method: str
    strength: str = ""

    def __str__(self):
        return " ".join(word for word in (self.setting, self.weights, self.method) if word)


def paper(weights, method, strength=SHOWN_STRENGTH) -> Series:
    """Return a series of the paper's method; only inferred results have a strength."""
    return Series("paper", weights, method, strength if method in ("inferred", "W") else "")


def library(method, setting=SPECIFIED) -> Series:
    """Return a series of the library, where `setting` is SPECIFIED or OPEN.

    Methods without inference have the same results in both.
    """
    inferred = method in ("inferred", "W")
    # The label weights are empty: they are the default of the library in all cells.
    return Series(setting if inferred else "looselabels", "", method)


def score_of(problem):
    """Return the name of the score that is reported for `problem`."""
    return "positive_f1" if problem == "positive-unlabeled" else "macro_f1"


class Curves:
    """The scores of an experiment by problem, series and number of labels per class."""

    def __init__(self, rows):
        self._scores: dict = {}
        for row in rows:
            weights = row["weights"] if row["setting"] == "paper" else ""
            series = Series(row["setting"], weights, row["method"], row["strength"])
            score = row[score_of(row["problem"])]
            by_count = self._scores.setdefault((row["problem"], series), {})
            by_count.setdefault(int(row["labels_a_class"]), []).append(float(score))

    @classmethod
    def read(cls, path):
        """Return the curves of a results file."""
        return cls(read_rows(path))

    def seeds(self, problem, series) -> dict[int, list[float]]:
        """Return the scores of all seeds by number of labels per class; empty if not run."""
        return dict(sorted(self._scores.get((problem, series), {}).items()))

    def means(self, problem, series) -> dict[int, float]:
        """Return the mean over seeds by number of labels per class."""
        found = self.seeds(problem, series)
        return {count: float(np.mean(scores)) for count, scores in found.items()}
