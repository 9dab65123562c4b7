"""Made-up answers of several annotators."""

import numpy as np

from looselabels.annotations import Annotations

NAMES = ("cat", "dog")


def crowd(n_rows=200, accuracies=(0.9, 0.8, 0.7), asked=0.7, classes=NAMES, seed=0):
    """Return answers of annotators with these accuracies, and the classes of the rows."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(len(classes), size=n_rows)
    table = np.full((n_rows, len(accuracies)), None, dtype=object)
    for a, accuracy in enumerate(accuracies):
        is_right = rng.random(n_rows) < accuracy
        other = (truth + rng.integers(1, len(classes), size=n_rows)) % len(classes)
        given = np.where(is_right, truth, other)
        for row in np.flatnonzero(rng.random(n_rows) < asked):
            table[row, a] = classes[given[row]]
    return Annotations.from_table(table), truth
