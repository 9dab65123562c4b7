"""Rows in arrays and tables of Dask.

Workers get recomputable tasks, one per block of rows, and return sums. The client sends the
transition once per pass. A block that is lost with its worker is computed again by Dask.
"""

import ctypes
import os
import sys
import warnings
from collections.abc import Callable
from contextlib import contextmanager
from functools import partial
from uuid import uuid4

import numpy as np

from looselabels._blocks import ONE_THREAD
from looselabels._validation import import_extra

INSTALL = "'looselabels[dask]'"
BLOCK = "looselabels-block-"  # how the names of tasks begin, so that errors can name the block
FAN_IN = 16  # results that are combined by one task
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3  # options of glibc's mallopt, from malloc.h
MMAP_THRESHOLD = 2**17  # bytes; the default of glibc
REUSED_MEMORY = 2**25  # bytes; the largest threshold that glibc accepts


def is_dask(rows) -> bool:
    """Return whether rows are an array or a table of Dask, without importing it."""
    dask = sys.modules.get("dask")
    return dask is not None and hasattr(rows, "__dask_graph__") and dask.is_dask_collection(rows)


def as_dask_array(name, rows):
    """Return an array or table of Dask as an array whose blocks have all columns."""
    array = import_extra("dask.array", INSTALL)
    found = rows.to_dask_array() if hasattr(type(rows), "to_dask_array") else rows
    if not isinstance(found, array.Array) or found.ndim not in (1, 2):
        raise TypeError(
            f"{name} must be a 1-D or 2-D array or a table of Dask; got {type(rows).__name__}."
        )
    return found if found.ndim == 1 else found.rechunk({1: -1})


def reduced(function: Callable, combine: Callable, *sources):
    """Return the combined results of `function` for all blocks of rows that are not empty."""
    dask = import_extra("dask", INSTALL)
    parts = [source.to_delayed().ravel() for source in _aligned(*sources)]
    tasks = tasks_of(function, list(zip(*parts, strict=True)))
    join = dask.delayed(_joined, pure=False)
    while len(tasks) > 1:
        tasks = [join(combine, tasks[k : k + FAN_IN]) for k in range(0, len(tasks), FAN_IN)]
    (found,) = computed(tasks)
    if found is None:
        raise ValueError("The source has no rows.")
    return found


def tasks_of(function: Callable, blocks, extra=None, empty=None) -> list:
    """Return one task per block of rows, named so that errors can name the block.

    `blocks` are tuples with a block of each source, and `extra` has further arguments for each of
    them. The function travels once per worker, even if it holds a large model. A block without rows
    gives `empty`.
    """
    dask = import_extra("dask", INSTALL)
    shared = dask.delayed(function, pure=False, traverse=False)
    call, run = dask.delayed(_of_block, pure=False), uuid4().hex
    more = [()] * len(blocks) if extra is None else extra
    return [
        call(shared, index, more[index], empty, *block, dask_key_name=f"{BLOCK}{index}-{run}")
        for index, block in enumerate(blocks)
    ]


def rows_of_tasks(tasks, sizes, n_columns: int | None, dtype):
    """Return an array of Dask with the rows that tasks return; sizes may be NaN."""
    array = import_extra("dask.array", INSTALL)
    rest = () if n_columns is None else (n_columns,)
    meta = np.empty((0,) * (1 + len(rest)), dtype=dtype)
    parts = [
        array.from_delayed(task, shape=(size, *rest), dtype=dtype, meta=meta)
        for task, size in zip(tasks, sizes, strict=True)
    ]
    return array.concatenate(parts)


def computed(collections) -> tuple:
    """Return tasks, arrays or tables of Dask in memory."""
    with _plain_errors():
        return import_extra("dask", INSTALL).compute(*collections)


def persisted(collections) -> tuple:
    """Return the same, kept by the workers, and computed again if a worker is lost."""
    with _plain_errors():
        return import_extra("dask", INSTALL).persist(*collections)


def in_memory(column):
    """Return a column of Dask, such as labels or weights, in memory; anything else unchanged."""
    return computed([column])[0] if is_dask(column) else column


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


def _of_block(function, index, extra, empty, *arrays):
    """Return `function` of one block, or `empty`."""
    arrays = tuple(_dense(array, index) for array in arrays)
    lengths = [len(array) for array in arrays]
    if len(set(lengths)) > 1:
        raise ValueError(
            f"Block {index} has {' and '.join(map(str, lengths))} rows in different arrays. All "
            "arrays must be divided at the same rows."
        )
    if not lengths[0]:
        return empty
    # A worker solves several blocks at a time if it has several threads.
    token = ONE_THREAD.set(True)
    try:
        with _reused_memory():
            return function(*arrays, *extra)
    except ValueError as error:
        raise ValueError(f"{error} (This is in block {index}.)") from None
    finally:
        ONE_THREAD.reset(token)


def _dense(block, index):
    """Return a block as an array, or as the table that it is."""
    if type(block).__module__.startswith("scipy.sparse"):
        raise TypeError(
            f"Block {index} is a sparse {type(block).__name__}. Arrays of Dask must have dense "
            "blocks: X.map_blocks(lambda block: block.toarray())."
        )
    return block if hasattr(block, "iloc") else np.asarray(block)


@contextmanager
def _reused_memory():
    """Let temporary arrays reuse the memory of earlier ones while a block is solved.

    Dask starts workers with MALLOC_TRIM_THRESHOLD_. With it, glibc gives the memory of every array
    back to the system and clears new pages for the next one, which takes longer than solving rows.
    """
    threshold = os.environ.get("MALLOC_TRIM_THRESHOLD_", "")
    libc = ctypes.CDLL(None) if sys.platform == "linux" and threshold.isdecimal() else None
    mallopt = getattr(libc, "mallopt", None)
    if mallopt is None:  # another system, or not a worker
        yield
        return
    for option in (M_TRIM_THRESHOLD, M_MMAP_THRESHOLD):
        mallopt(option, REUSED_MEMORY)
    try:
        yield
    finally:
        mallopt(M_TRIM_THRESHOLD, int(threshold))
        mallopt(M_MMAP_THRESHOLD, MMAP_THRESHOLD)


def _joined(combine, results):
    found = [result for result in results if result is not None]
    return combine(found) if found else None


def _rows_of_block(function, n_columns, dtype, *arrays):
    empty = np.empty((0,) if n_columns is None else (0, n_columns), dtype=dtype)
    return _of_block(function, "", (), empty, *arrays).astype(dtype, copy=False)


# --------------------------------------------------------------------------------------- the client


def _aligned(first, *others):
    """Return arrays of Dask that are divided at the same rows."""
    return [first, *(_divided_like(first, other) for other in others)]


def _divided_like(first, other):
    """Return `other` as an array of Dask with blocks of the same rows as those of `first`."""
    array = import_extra("dask.array", INSTALL)
    other = other if is_dask(other) else array.from_array(np.asarray(other), chunks=-1)
    sizes, others = first.chunks[0], other.chunks[0]
    if np.isnan([*sizes, *others]).any():  # then only their numbers can be compared here
        if len(sizes) == len(others):
            return other
        raise ValueError(
            f"The sizes of blocks are unknown, and their numbers differ: {len(sizes)} and "
            f"{len(others)}. Call compute_chunk_sizes() on the arrays of Dask first."
        )
    if sum(sizes) != sum(others):
        raise ValueError(
            f"The rows of different sources do not match: they have {sum(sizes)} and "
            f"{sum(others)} rows."
        )
    return other.rechunk({0: sizes})


@contextmanager
def _plain_errors():
    """Explain the errors of a cluster in one line."""
    try:
        with warnings.catch_warnings():
            # Models and weights are part of the tasks, so that no lost worker can lose them.
            warnings.filterwarnings("ignore", "Sending large graph", UserWarning)
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
    """Return which block killed its workers; the first argument of the error is the task."""
    task, number = error.args[0], None
    if isinstance(task, tuple):  # a task of the user's array: its name, and the indices of a block
        number = task[1]
    elif str(task).startswith(BLOCK):
        number = str(task).removeprefix(BLOCK).partition("-")[0]
    name = f"task {task}" if number is None else f"block {number} of the rows"
    return (
        f"Every worker that computed {name} died. The block may need more memory than a worker "
        "has: use smaller blocks (rechunk or repartition), fewer threads per worker, or compute "
        "this block alone to see what happens."
    )
