"""Rows with features in arrays or tables of Dask.

Columns with one value per row, such as labels, are gathered. Features stay where they are: models
learn from a sample of rows (`row_sample`), and workers predict all other rows, block by block. Then
`infer` runs on the workers as well. What is found about a row, a few numbers per class, is gathered
in single precision, because estimates of shares and calibrations are made of all rows.
"""

from collections.abc import Callable
from functools import partial

import numpy as np
from sklearn.utils import _safe_indexing

from looselabels._dask import (
    INSTALL,
    as_dask_array,
    computed,
    is_dask,
    mapped,
    persisted,
    rows_of_tasks,
    tasks_of,
)
from looselabels._names import listed
from looselabels._validation import import_extra
from looselabels.inference import Decoupling, infer
from looselabels.learning.out_of_sample import align


class DaskRows:
    """The rows of a table of Dask, with the size of each block."""

    def __init__(self, blocks: list, sizes, meta):
        self.blocks = blocks  #: tasks that return arrays, or tables of pandas
        self.sizes = np.asarray(sizes, dtype=int)
        self.meta = meta  #: the columns, without rows
        self.shape = (int(self.sizes.sum()), *meta.shape[1:])

    def __len__(self):
        return self.shape[0]

    def __getitem__(self, rows):
        """Return some rows in memory: a slice, or numbers in increasing order."""
        parts = self._local(np.arange(len(self))[rows])
        used = [k for k, part in enumerate(parts) if len(part)]
        blocks, extra = [(self.blocks[k],) for k in used], [(parts[k],) for k in used]
        found = computed(tasks_of(_safe_indexing, blocks, extra))
        if hasattr(self.meta, "iloc"):
            return import_extra("pandas", INSTALL).concat(found)
        return np.concatenate(found)

    def label_proba(self, estimator, columns, rows, known):
        """Return p(label | x) of all rows in memory, and the same as an array of Dask.

        Those of `rows` are known, and the estimator predicts the others.
        """
        parts, n_labels = self._local(rows), known.shape[1]
        known = np.split(known.astype(np.float32), np.cumsum([len(part) for part in parts])[:-1])
        predict = partial(_predict_block, estimator=estimator, columns=columns)
        empty = np.empty((0, n_labels), np.float32)
        blocks, extra = [(block,) for block in self.blocks], list(zip(parts, known, strict=True))
        return gathered(tasks_of(predict, blocks, extra, empty), self.sizes, n_labels)

    def collection(self, blocks, rows=None):
        """Return some blocks as an array or a table of Dask, with all rows or some of each."""
        tasks, sizes = [self.blocks[k] for k in blocks], self.sizes[blocks]
        if rows is not None:
            tasks = tasks_of(_safe_indexing, [(task,) for task in tasks], [(r,) for r in rows])
            sizes = [len(part) for part in rows]
        if hasattr(self.meta, "iloc"):
            return import_extra("dask.dataframe", INSTALL).from_delayed(tasks, meta=self.meta)
        return rows_of_tasks(tasks, sizes, self.shape[1], self.meta.dtype)

    def _local(self, rows) -> list:
        """Return for each block which of the rows are in it, counted within the block."""
        ends = np.cumsum(self.sizes)
        parts = np.split(rows, np.searchsorted(rows, ends[:-1]))
        return [part - begin for part, begin in zip(parts, ends - self.sizes, strict=True)]


def gathered(tasks, sizes, n_labels) -> tuple:
    """Return the label_proba of tasks in memory, and as an array of Dask that workers keep."""
    tasks = persisted(tasks)
    found = np.concatenate(computed(tasks))
    (remote,) = persisted([rows_of_tasks(tasks, sizes, n_labels, np.float32)])
    return found, remote


def _predict_block(block, rows, known, *, estimator, columns):
    """Return label_proba of a block: `known` in `rows`, and predictions in the others."""
    found = np.empty((len(block), known.shape[1]), np.float32)
    found[rows] = known
    others = np.setdiff1d(np.arange(len(block)), rows)
    if len(others):
        part = block if not len(rows) else _safe_indexing(block, others)
        found[others] = align(estimator, part, known.shape[1], columns)
    return found


def _typed(block, *, function, dtype):
    """Return the results of a function as the type that the array of Dask has."""
    return np.asarray(function(block)).astype(dtype, copy=False)


def read_rows(X, max_rows: int | None):
    """Return the rows of a table of Dask, in memory if models learn from all; others unchanged."""
    if not is_dask(X):
        return X
    rows = DaskRows(*_blocks_of(X))
    if not len(rows):
        raise ValueError("X has no rows: all of its blocks are empty.")
    return rows[:] if max_rows is None or len(rows) <= max_rows else rows


def _blocks_of(X):
    """Return the blocks of an array or table of Dask, their sizes, and its columns without rows."""
    if not hasattr(type(X), "to_dask_array"):
        X = as_dask_array("X", X)
        if not isinstance(X._meta, np.ndarray):
            raise TypeError(
                f"X is an array of Dask with blocks of type {type(X._meta).__name__}; they must be "
                "NumPy arrays. For sparse ones: X.map_blocks(lambda block: block.toarray())."
            )
        blocks, meta = X.to_delayed().ravel().tolist(), np.empty((0, *X.shape[1:]), X.dtype)
        if not np.isnan(X.chunks[0]).any():
            return blocks, X.chunks[0], meta
    else:
        _check_categories(X)
        blocks, meta = X.to_delayed(), X._meta
    return blocks, computed(tasks_of(len, [(block,) for block in blocks], empty=0)), meta


def _check_categories(table):
    """Raise if blocks can have different categories: a model would mistake one for another."""
    unknown = [
        name
        for name in getattr(table, "columns", ())
        if str(table.dtypes[name]) == "category" and not table[name].cat.known
    ]
    if unknown:
        raise ValueError(
            f"X has categories that are not known yet, in {listed(unknown)}. Call "
            "X = X.categorize() first."
        )


def infer_rows(scores, calibration, transition, sample_weight, **options) -> Decoupling:
    """Return what `infer` finds for calibrated label_proba, on the workers if it is there."""
    if scores.remote is None:
        label_proba = calibration.apply(scores.label_proba)
        return infer(label_proba, transition, sample_weight=sample_weight, **options)
    remote, weight = scores.remote, sample_weight
    if not calibration.is_identity:
        (remote,) = persisted([mapped(calibration.apply, remote.shape[1], remote)])
    if weight is not None:  # they travel once, not in each pass
        array = import_extra("dask.array", INSTALL)
        (weight,) = persisted([array.from_array(weight, chunks=(remote.chunks[0],))])
    found = infer(remote, transition, sample_weight=weight, **options)
    class_proba, gap = computed([found.class_proba, found.gap])
    return found._replace(class_proba=class_proba, gap=gap)


def apply_to_rows(function: Callable, X, n_columns: int | None, dtype=float):
    """Return `function` of X; for a table of Dask an array of Dask, computed when it is read.

    The function returns `n_columns` numbers per row, or one value if it is None.
    """
    if not is_dask(X):
        return function(X)
    is_table = hasattr(type(X), "to_dask_array")
    X = X if is_table else as_dask_array("X", X)
    blocks = X.to_delayed() if is_table else X.to_delayed().ravel()
    sizes = [np.nan] * len(blocks) if is_table else X.chunks[0]
    empty = np.empty((0,) if n_columns is None else (0, n_columns), dtype)
    typed = partial(_typed, function=function, dtype=dtype)
    tasks = tasks_of(typed, [(block,) for block in blocks], empty=empty)
    return rows_of_tasks(tasks, sizes, n_columns, dtype)
