"""Rows that are not in memory: `Blocks`, and arrays of Dask.

Functions are applied to one block of rows at a time, where it is: `reduced` adds up small results
at once, and `mapped` returns rows that are computed when they are read. Only the transition and
sums travel.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from looselabels import _dask
from looselabels._blocks import PassFound, RowProblem, Rows, add_passes
from looselabels._validation import as_float_array, as_numpy, check_entries, check_row_sums
from looselabels.blocks import Blocks, aligned


class RowFacts(NamedTuple):
    """What `infer` needs to know about all rows before the first pass."""

    n_rows: int
    seen: np.ndarray  # which labels have positive label_proba
    total_weight: float
    max_weight: float


class SourceRows:
    """The driver of `infer` for a source. It keeps no rows: each pass solves them anew.

    That was measured to be faster than starting from the last pass, which would have to be stored
    (`benchmarks/bench_scale.py`). `class_proba` and `gap` are solved again when they are read.
    """

    def __init__(self, label_proba, sample_weight, n_classes):
        self.label_proba, self.sample_weight, self.n_classes = label_proba, sample_weight, n_classes
        self.problem: Any = None  # the RowProblem of the last pass, which is all of its state
        self.kept: Any = None

    def solve(self, problem: RowProblem) -> PassFound:
        """Solve every row for the problem's transition."""
        self.problem = problem
        one_block = partial(pass_over, problem=problem)
        return reduced(one_block, add_passes, self.label_proba, self.sample_weight)

    def solve_to(self, path, problem: RowProblem) -> PassFound:
        """Solve every row of `Blocks`, and write class_proba to a .npy file in the same pass."""
        self.problem = problem
        passes: list[PassFound] = []  # what was found so far, in one sum

        def class_proba_of(labels, weight=None):
            rows, found = _solved_rows(labels, weight, problem)
            passes[:] = [add_passes([*passes, found])]
            return rows.class_proba

        weights = [] if self.sample_weight is None else [self.sample_weight]
        self.label_proba.map(class_proba_of, *weights).to_npy(path)
        return passes[0]

    def keep(self):
        """Keep the current state for `restore`."""
        self.kept = self.problem

    def restore(self):
        """Return to the state at the last `keep`."""
        self.problem = self.kept

    @property
    def class_proba(self):
        """The class_proba of the last pass, as a source."""
        return self._solved("class_proba", self.n_classes)

    @property
    def gap(self):
        """The gaps of the last pass, as a source."""
        return self._solved("gap", None)

    def _solved(self, field, n_columns):
        function = partial(_solved_field, problem=self.problem, field=field)
        return mapped(function, n_columns, self.label_proba)


def scan(label_proba, sample_weight, n_labels) -> RowFacts:
    """Check all rows of a source in one pass, and return what is known about them then."""
    facts = reduced(
        partial(_check_block, n_labels=n_labels), _add_facts, label_proba, sample_weight
    )
    if facts.max_weight == 0:
        raise ValueError("sample_weight must contain a positive number; all are zero.")
    return facts


# --------------------------------------------------------------------------- functions of one block


def _check_block(labels, weight=None, *, n_labels) -> RowFacts:
    labels = as_float_array("label_proba", labels)
    if labels.ndim != 2 or labels.shape[1] != n_labels:
        raise ValueError(
            f"label_proba has a block of shape {labels.shape}; the transition has {n_labels} "
            f"labels, so its shape must be (rows, {n_labels})."
        )
    check_row_sums("label_proba", labels, tol=1e-5)
    n_rows, seen = len(labels), (labels > 0).any(axis=0)
    if weight is None:
        return RowFacts(n_rows, seen, float(n_rows), 1.0)
    weight = as_numpy("sample_weight", weight)
    if weight.shape != (n_rows,):
        raise ValueError(
            f"sample_weight has a block of shape {weight.shape}; {n_rows} rows need ({n_rows},)."
        )
    check_entries("sample_weight", weight)
    return RowFacts(n_rows, seen, float(weight.sum()), float(weight.max()))


def _add_facts(facts: list[RowFacts]) -> RowFacts:
    n_rows, seen, total, largest = zip(*facts, strict=True)
    return RowFacts(sum(n_rows), np.any(seen, axis=0), sum(total), max(largest))


def _solved_rows(labels, weight, problem: RowProblem):
    weight = None if weight is None else as_numpy("sample_weight", weight)
    rows = Rows(as_float_array("label_proba", labels), weight, len(problem.transition))
    with np.errstate(under="ignore"):
        return rows, rows.solve(problem)


def pass_over(labels, weight=None, *, problem: RowProblem) -> PassFound:
    """Return what the rows of one block add to a pass."""
    return _solved_rows(labels, weight, problem)[1]


def _solved_field(labels, *, problem: RowProblem, field):
    rows, _ = _solved_rows(labels, None, problem)
    return getattr(rows, field)


# --------------------------------------------------------------------------------- kinds of sources


def is_source(rows) -> bool:
    """Return whether rows are a source: `Blocks` or an array of Dask."""
    return isinstance(rows, Blocks) or _dask.is_dask(rows)


def as_source(name, rows):
    """Return a table of Dask as an array of Dask, anything else unchanged."""
    if isinstance(rows, Iterator):
        raise TypeError(
            f"{name} is a {type(rows).__name__}, which can be read only once. Pass "
            "looselabels.blocks.Blocks(function), where `function` returns a new one for each call."
        )
    return _dask.as_dask_array(name, rows) if _dask.is_dask(rows) else rows


def reduced(function: Callable, combine: Callable, *sources):
    """Return the combined results of `function` for all blocks; sources that are None are left out.

    `function` returns something small, and `combine` turns a list of these into one.
    """
    used = [source for source in sources if source is not None]
    if not isinstance(used[0], Blocks):
        return _dask.reduced(function, combine, *used)
    total, begin = None, 0
    for arrays in aligned(*used):
        try:
            found = function(*arrays)
        except ValueError as error:
            raise ValueError(f"{error} (Rows are counted from row {begin}.)") from None
        total = found if total is None else combine([total, found])
        begin += len(arrays[0])
    if total is None:
        raise ValueError("The source has no rows.")
    return total


def mapped(function: Callable, n_columns: int | None, *sources):
    """Return a source of the results of `function`, with `n_columns` columns (None: 1-D)."""
    first, *others = sources
    if isinstance(first, Blocks):
        return first.map(function, *others)
    return _dask.mapped(function, n_columns, *sources)
