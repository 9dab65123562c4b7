"""Run cells with label_proba from kernel densities; all cells share one pass over the kernels.

The kernels do not depend on the labels. One call of `kernel_sums` therefore has one column for each
label of each cell; label weights only rescale the columns, p_w(s|x) ∝ w_s p(s|x). The result for a
cell is the one of ``KernelDensityClassifier(BANDWIDTHS)`` on standardized pixels: label_proba of a
training row is computed without the row itself, and the bandwidth has the smallest leave-one-out
log-loss of the (weighted) labels. The setting `looselabels` uses equal label weights, as
``DecoupledClassifier(KernelDensityClassifier(BANDWIDTHS), transition=design)`` does.
"""

import time
import warnings

import numpy as np

from experiments.cells import (
    OPEN,
    SPECIFIED,
    WEIGHTS,
    label_weights_of,
    looselabels_rows,
    open_parameters,
    paper_rows,
    plain_row,
    strengths_of,
)
from experiments.progress import duration, print_progress
from looselabels import DecoupledClassifier
from looselabels._validation import as_numpy, import_extra
from looselabels.learning.density import KernelSums, kernel_sums, leave_one_out, normalize_sums

# In standard deviations of a pixel. The best bandwidth shrinks with more labels and less noise. In
# a test with more bandwidths and fewer rows, each of these but the first was best for some cell.
BANDWIDTHS = (3.0, 4.0, 6.0, 8.0, 12.0, 16.0)


class KernelCells:
    """Computes the kernel sums for the labels of all `cells`, and runs each cell."""

    def __init__(self, data, cells, device=None):
        self.data = data
        columns, self._places = columns_of(data, cells)
        shape = f"{len(data.y):,} × {len(data.y):,} kernels, {columns.shape[1]} columns"
        print_progress(f"kernel sums: {shape}, {len(BANDWIDTHS)} bandwidths")
        start = time.perf_counter()
        self._test = _sums(data.X, data.X_test, columns, device)
        taken = time.perf_counter() - start
        left = duration(taken * len(data.y) / len(data.y_test))
        print_progress(f"test rows: {duration(taken)}; training rows: about {left} left")
        self._train = _sums(data.X, None, columns, device)
        self._seconds = (time.perf_counter() - start) / len(self._places)  # per labeling

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
        """Return label_proba of the training rows (leave-one-out), of the test rows, and in-sample.

        The in-sample label_proba of the training rows includes each row's own kernel. It is used
        only to show the bias that leave-one-out avoids.
        """
        places, here = self._places[cell[:3]], np.arange(len(index))
        sums = self._train.sums[:, :, places] * label_weights
        priors = label_weights * np.bincount(index, minlength=len(places))
        priors /= priors.sum()
        weight = label_weights[index]
        probas, losses = leave_one_out(sums, index, weight, priors)
        best = int(np.argmin(losses))
        test = self._test.sums[best][:, places] * label_weights
        in_sample = sums[best]
        nearest = self._train.nearest / (2 * BANDWIDTHS[best] ** 2)
        in_sample[here, index] += weight * np.exp(
            np.minimum(nearest, 700)
        )  # larger numbers overflow
        return probas[best], normalize_sums(test, priors), normalize_sums(in_sample, priors)

    def _looselabels_rows(self, cell, problem, index):
        start = time.perf_counter() - self._seconds
        label_weights = label_weights_of(problem, "flat")
        label_proba, label_proba_test, _ = self.label_proba(cell, index, label_weights)
        fitted, seconds = {}, {}
        settings = {SPECIFIED: {"transition": problem.design}, OPEN: open_parameters(problem)}
        for name, parameters in settings.items():
            clf = DecoupledClassifier(**parameters)
            fitted[name] = clf.fit_from_proba(label_proba, problem.labels)
            seconds[name] = time.perf_counter() - start
        rows = looselabels_rows(
            problem, fitted, seconds, label_proba_test, label_proba, label_proba_test
        )
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
    """Return one column for each distinct set of equally labeled rows, and the columns per draw.

    Many draws share columns: for a given seed, all problems label the same rows of class 0.
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
        torch = import_extra("torch", "torch")
        try:
            X = torch.asarray(X, device=device)
        except (RuntimeError, AssertionError) as error:
            raise ValueError(f"--device {device}: {error}") from None
    found = kernel_sums(X, query, columns, BANDWIDTHS, n_jobs=-1)
    return KernelSums(as_numpy("nearest", found.nearest), as_numpy("sums", found.sums))
