"""Rows in arrays and tables of Dask.

Workers get recomputable tasks, one per block of rows, and return sums. The client sends the
transition once per pass. A block that is lost with its worker is computed again by Dask.
"""

import sys
from collections.abc import Callable
from contextlib import contextmanager
from functools import partial

import numpy as np

from looselabels._blocks import ONE_THREAD
from looselabels._validation import import_extra

INSTALL = "'looselabels[dask]'"
FAN_IN = 16  # results that are combined by one task


def is_dask(rows) -> bool:
    """Return whether rows are an array or a table of Dask, without importing it."""
    return "dask" in sys.modules and hasattr(rows, "__dask_graph__")


def as_dask_array(name, rows):
    """Return an array or table of Dask as an array whose blocks have all columns."""
    array = rows.to_dask_array() if hasattr(rows, "to_dask_array") else rows
    if not hasattr(array, "map_blocks") or array.ndim not in (1, 2):
        raise TypeError(f"{name} must be an array or a table of Dask; got {type(rows).__name__}.")
    return array if array.ndim == 1 else array.rechunk({1: -1})


def reduced(function: Callable, combine: Callable, *sources):
    """Return the combined results of `function` for all blocks of rows that are not empty."""
    dask = import_extra("dask", INSTALL)
    sources = _aligned(*sources)
    shared = dask.delayed(function, pure=False, traverse=False)  # travels once, not per block
    blocks = zip(*(source.to_delayed().ravel() for source in sources), strict=True)
    call, join = dask.delayed(_of_block, pure=False), dask.delayed(_joined, pure=False)
    tasks = [call(shared, index, *block) for index, block in enumerate(blocks)]
    while len(tasks) > 1:
        tasks = [join(combine, tasks[k : k + FAN_IN]) for k in range(0, len(tasks), FAN_IN)]
    with _plain_errors():
        (found,) = dask.compute(*tasks)
    if found is None:
        raise ValueError("The source has no rows.")
    return found


def mapped(function: Callable, n_columns: int | None, *sources):
    """Return an array of Dask with the results of `function` for each block of rows."""
    array = import_extra("dask.array", INSTALL)
    first, *others = _aligned(*sources)
    dtype = first.dtype if first.dtype == np.float32 else np.dtype(float)
    blocks = [first, *others]
    indices = [index for source in blocks for index in (source, "ik"[: source.ndim])]
    return array.blockwise(
        partial(_rows_of_block, function, n_columns, dtype),
        "i" if n_columns is None else "ij",
        *indices,
        new_axes={} if n_columns is None else {"j": n_columns},
        concatenate=True,
        dtype=dtype,
        meta=np.empty((0,) * (1 if n_columns is None else 2), dtype=dtype),
        align_arrays=False,
    )


# ---------------------------------------------------------------------------- what runs on a worker


def _of_block(function, index, *arrays):
    """Return `function` of one block; None if it is empty."""
    arrays = tuple(np.asarray(array) for array in arrays)
    lengths = [len(array) for array in arrays]
    if len(set(lengths)) > 1:
        raise ValueError(
            f"Block {index} has {' and '.join(map(str, lengths))} rows in different arrays. All "
            "arrays must be divided at the same rows."
        )
    if not lengths[0]:
        return None
    # A worker solves several blocks at a time if it has several threads.
    token = ONE_THREAD.set(True)
    try:
        return function(*arrays)
    except ValueError as error:
        raise ValueError(f"{error} (This is in block {index}.)") from None
    finally:
        ONE_THREAD.reset(token)


def _joined(combine, results):
    found = [result for result in results if result is not None]
    return combine(found) if found else None


def _rows_of_block(function, n_columns, dtype, *arrays):
    found = _of_block(function, "", *arrays)
    if found is None:
        return np.empty((0,) if n_columns is None else (0, n_columns), dtype=dtype)
    return found.astype(dtype, copy=False)


# --------------------------------------------------------------------------------------- the client


def _aligned(first, *others):
    """Return arrays of Dask that are divided at the same rows."""
    array = import_extra("dask.array", INSTALL)
    sizes = first.chunks[0]
    known = not np.isnan(sizes).any()
    aligned = [first]
    for other in others:
        other = as_dask_array("the second source", other) if is_dask(other) else other
        if not is_dask(other):
            if not known:
                raise ValueError(_unknown("and the other array is not one of Dask"))
            other = array.from_array(np.asarray(other), chunks=-1)
        if other.chunks[0] != sizes and not (
            np.isnan(sizes).any() or np.isnan(other.chunks[0]).any()
        ):
            if sum(other.chunks[0]) != sum(sizes):
                raise ValueError(
                    f"The rows of different sources do not match: they have {sum(sizes)} and "
                    f"{sum(other.chunks[0])} rows."
                )
            other = other.rechunk({0: sizes})
        if other.numblocks[0] != first.numblocks[0]:
            raise ValueError(_unknown("and the arrays have different numbers of blocks"))
        aligned.append(other)
    return aligned


def _unknown(problem):
    return (
        f"The sizes of blocks are unknown, {problem}. Call compute_chunk_sizes() on the arrays of "
        "Dask first."
    )


@contextmanager
def _plain_errors():
    """Explain the errors of a cluster in one line."""
    try:
        yield
    except Exception as error:
        name = type(error).__name__
        if name == "KilledWorker":
            raise RuntimeError(_killed(error)) from error
        if name in ("FutureCancelledError", "CancelledError", "CommClosedError", "TimeoutError"):
            raise ConnectionError(
                "The connection to the Dask scheduler was lost during a pass over the rows. Rows "
                "that were written are not affected. Connect to a scheduler and call the function "
                "again."
            ) from error
        raise


def _killed(error) -> str:
    return f"{error}"
