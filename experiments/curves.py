"""Rows of results as curves over the number of labels, for the figures and the claims."""

from typing import NamedTuple

import numpy as np

from experiments.results import read_rows

SHOWN = "inf"  # the strength of `paper` that figures and claims show; README.md says why


class Series(NamedTuple):
    """What one curve is of."""

    setting: str
    weights: str
    method: str
    strength: str = ""

    def __str__(self):
        return " ".join(word for word in (self.setting, self.weights, self.method) if word)


def paper(weights, method, strength=SHOWN) -> Series:
    """Return a series of the paper's method; only what is inferred has a strength."""
    return Series("paper", weights, method, strength if method in ("inferred", "W") else "")


def library(method, told="told") -> Series:
    """Return a series of the library; what is not inferred is the same, told or not."""
    name = f"looselabels {told}" if method in ("inferred", "W") else "looselabels"
    return Series(name, "", method)  # its weights are its own choice, the same in all cells


def score_of(problem):
    """Return the name of the score that counts in `problem`."""
    return "positive_f1" if problem == "positive-unlabeled" else "macro_f1"


class Curves:
    """The scores of an experiment, by problem, series and labels a class."""

    def __init__(self, rows):
        self._scores: dict = {}
        for row in rows:
            weights = row["weights"] if row["setting"] == "paper" else ""
            series = Series(row["setting"], weights, row["method"], row["strength"])
            score = row[score_of(row["problem"])]
            of_counts = self._scores.setdefault((row["problem"], series), {})
            of_counts.setdefault(int(row["labels_a_class"]), []).append(float(score))

    @classmethod
    def read(cls, path):
        """Return the curves of a results file."""
        return cls(read_rows(path))

    def seeds(self, problem, series) -> dict[int, list[float]]:
        """Return the score of every seed, by labels a class, in order; empty where not run."""
        return dict(sorted(self._scores.get((problem, series), {}).items()))

    def means(self, problem, series) -> dict[int, float]:
        """Return the mean over seeds, by labels a class."""
        found = self.seeds(problem, series)
        return {count: float(np.mean(scores)) for count, scores in found.items()}
