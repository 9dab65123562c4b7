"""Cells whose labels are predicted by kernel densities: one pass over the kernels serves them all.

The kernels do not depend on the labels, so the labels of all cells are columns of one
`kernel_sums`; weights of the labels only rescale columns, p_w(s|x) ∝ w_s p(s|x). What comes out is
what ``KernelDensityClassifier(BANDWIDTHS)`` gives each cell, on pixels that are standardized once:
label_proba of the training rows leaves the row itself out, and the bandwidth is the first with the
smallest leave-one-out log-loss of the (weighted) labels. `looselabels` takes flat weights, as
``DecoupledClassifier(KernelDensityClassifier(BANDWIDTHS), transition=design)`` does.
"""

import time
import warnings

import numpy as np

from experiments.cells import (
    WEIGHTS,
    label_weights_of,
    looselabels_rows,
    paper_rows,
    plain_row,
    strengths_of,
    told_nothing,
)
from experiments.progress import minutes, say
from looselabels import DecoupledClassifier
from looselabels._validation import as_numpy, import_extra
from looselabels.learning.density import KernelSums, _leave_one_out, _normalized, kernel_sums

# In standard deviations of a pixel. The more labels, and the fewer wrong ones, the smaller: a part
# of the rows, with a wider grid, chose among all of these but the first.
BANDWIDTHS = (3.0, 4.0, 6.0, 8.0, 12.0, 16.0)


class KernelCells:
    """Runs `cells`, of whose labels it has the kernel sums."""

    def __init__(self, data, cells, device=None):
        self.data = data
        columns, self._places = columns_of(data, cells)
        shape = f"{len(data.y):,} × {len(data.y):,} kernels, {columns.shape[1]} columns"
        say(f"one pass: {shape}, {len(BANDWIDTHS)} bandwidths")
        start = time.perf_counter()
        self._test = _sums(data.X, data.X_test, columns, device)
        taken = time.perf_counter() - start
        left = minutes(taken * len(data.y) / len(data.y_test))
        say(f"test rows: {minutes(taken)}; training rows: about {left} left")
        self._train = _sums(data.X, None, columns, device)
        self._seconds = (time.perf_counter() - start) / len(self._places)  # each labeling's share

    def run(self, cell) -> list[dict]:
        """Return the rows of a cell."""
        problem = cell.draw(self.data)
        index = problem.design.label_index(problem.labels)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if cell.setting == "looselabels":
                return self._looselabels_rows(cell, problem, index)
            return [row for w in WEIGHTS for row in self._paper_rows(cell, problem, index, w)]

    def label_proba(self, cell, index, label_weights):
        """Return label_proba of the training rows, each left out; of the test rows; and in-sample.

        The last one, of the training rows with themselves among the kernels, is what is avoided.
        """
        places, here = self._places[cell[:3]], np.arange(len(index))
        sums = self._train.sums[:, :, places] * label_weights
        priors = label_weights * np.bincount(index, minlength=len(places))
        priors /= priors.sum()
        weight = label_weights[index]
        probas, losses = _leave_one_out(sums, index, weight, priors, np.ones(len(index)))
        best = int(np.argmin(losses))
        test = self._test.sums[best][:, places] * label_weights
        in_sample = sums[best]
        nearest = self._train.nearest / (2 * BANDWIDTHS[best] ** 2)
        in_sample[here, index] += weight * np.exp(np.minimum(nearest, 700))  # e^700 is all there is
        return probas[best], _normalized(test, priors), _normalized(in_sample, priors)

    def _looselabels_rows(self, cell, problem, index):
        start = time.perf_counter() - self._seconds
        label_weights = label_weights_of(problem, "flat")
        label_proba, label_proba_test, _ = self.label_proba(cell, index, label_weights)
        fitted, seconds = {}, {}
        settings = {"told": {"transition": problem.design}, "nothing": told_nothing(problem)}
        for name, told in settings.items():
            fitted[name] = DecoupledClassifier(**told).fit_from_proba(label_proba, problem.labels)
            seconds[name] = time.perf_counter() - start
        rows = looselabels_rows(problem, fitted, seconds, label_proba_test, label_proba_test)
        return [row | {"weights": "flat"} for row in rows]

    def _paper_rows(self, cell, problem, index, weights):
        start = time.perf_counter() - self._seconds
        label_weights = label_weights_of(problem, weights)
        label_proba, test, in_sample = self.label_proba(cell, index, label_weights)
        seconds, strengths = time.perf_counter() - start, strengths_of(cell, problem)
        rows = paper_rows(problem, index, label_proba, test, seconds, strengths)
        biased = plain_row("in-sample", problem, problem.truth, in_sample)
        rows.append(biased | {"setting": "paper", "seconds": seconds})
        return [row | {"weights": weights} for row in rows]


def columns_of(data, cells):
    """Return a column a set of rows with the same label, and the columns of each draw of labels.

    Most draws share some: the first classes of all problems are drawn alike.
    """
    columns: dict[bytes, int] = {}
    places = {}
    for cell in {cell[:3]: cell for cell in cells}.values():
        problem = cell.draw(data)
        index = problem.design.label_index(problem.labels)
        labels = range(len(problem.design.labels))
        places[cell[:3]] = [
            columns.setdefault((index == s).tobytes(), len(columns)) for s in labels
        ]
    stacked = np.array([np.frombuffer(column, bool) for column in columns]).T
    return stacked.astype(np.float32), places


def _sums(X, query, columns, device):
    if device is not None:
        torch = import_extra("torch", '"looselabels[torch]"')
        try:
            X = torch.asarray(X, device=device)
        except (RuntimeError, AssertionError) as error:
            raise ValueError(f"--device {device}: {error}") from None
    found = kernel_sums(X, query, columns, BANDWIDTHS, n_jobs=-1)
    return KernelSums(as_numpy("nearest", found.nearest), as_numpy("sums", found.sums))
