"""A file with features of the user's own, such as embeddings, matched to the rows of a table."""

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

from looselabels._validation import short_repr, some_of
from looselabels.command.sources import one_line
from looselabels.command.tables import (
    TableError,
    arrow_table,
    check_columns,
    column_as_text,
    pd,
    read_table,
)


class FeatureFile:
    """A file with the features of the rows of a table.

    The rows of a .npy file are in the order of the table. Those of a CSV or Parquet file have an
    identifier: a column with the same name as the one in the table, otherwise the first column.

    Parameters
    ----------
    path : str or path
        The file.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "embeddings.csv")
    ...     _ = path.write_text("name,a,b\\nRex,1,2\\nTom,3,4\\nBen,5,6\\n")
    ...     file = FeatureFile(path)
    >>> file.of(pd.DataFrame({"name": ["Tom", "Rex"], "kind": ["cat", "dog"]})).to_numpy().tolist()
    [['3', '4'], ['1', '2']]
    """

    def __init__(self, path):
        self.path = Path(path)
        is_array = self.path.suffix.lower() == ".npy"
        self._array: Any = _load(self.path) if is_array else None
        self._frame: Any = None if is_array else read_table(self.path)

    def of(self, frame, column=None, start=0):
        """Return the features of the rows of a table, as a table.

        Parameters
        ----------
        frame : DataFrame
            The table, or a block of it.
        column : str, default=None
            The column of the table that identifies rows; not needed for a .npy file. None: the
            one with the name of the first column of the file.
        start : int, default=0
            The number of rows in the blocks before.
        """
        if self._array is None:
            return self._matched(frame, column)
        if start + len(frame) > len(self._array):
            self.check_length(start + len(frame))
        rows = self._array[start : start + len(frame)]
        n_columns = rows.shape[1]
        # the width is a part of the names, so that a file with another width does not fit a model
        names = [f"feature {i + 1} of {n_columns}" for i in range(n_columns)]
        is_single = rows.itemsize <= (4 if rows.dtype.kind == "f" else 2)  # it has 24 bits
        rows = rows.astype(np.float32 if is_single else np.float64)
        return pd.DataFrame(rows, columns=names, index=range(start, start + len(rows)))

    def check_length(self, n_rows) -> None:
        """Raise if rows are matched by their order and the table does not have as many."""
        if self._array is not None and len(self._array) != n_rows:
            raise TableError(
                f"{self.path} has {len(self._array):,} rows, the table {n_rows:,}. It needs one "
                "row per row of the table, in the same order."
            )

    def _matched(self, frame, column):
        names = list(self._frame.columns)
        own = column if column in names else names[0]
        column = own if column is None or own in frame.columns else column
        if column not in frame.columns:
            raise TableError(
                f"{self.path}: the first column, {short_repr(own)}, identifies rows, but the table "
                "has no column of this name. Rename the first column to one of "
                f"{some_of(list(frame.columns), 10)}."
            )
        if len(names) == 1:
            raise TableError(f"{self.path} has identifiers, but no column of features.")
        position = _positions(_as_text(self._frame, own), own, self.path)
        ids = _as_text(frame, column)
        missing = [name for name in dict.fromkeys(ids) if name not in position]
        if missing:
            raise TableError(
                f"{self.path} has no row for {len(missing):,} of {len(set(ids)):,} values of "
                f"column {short_repr(column)}: {some_of(missing)}."
            )
        return self._frame.iloc[[position[name] for name in ids]].drop(columns=own)


def load_array(path, mmap_mode=None):
    """Return the array of a .npy file."""
    try:
        array = np.load(path, mmap_mode=mmap_mode, allow_pickle=False)
    except (OSError, MemoryError):
        raise
    except Exception as error:  # NumPy parses the header as Python: damage raises anything
        raise TableError(f"{path} is not an array of numbers (.npy): {one_line(error)}") from None
    if not isinstance(array, np.ndarray):
        array.close()
        raise TableError(f"{path} is an archive of arrays (.npz); save one of them with np.save.")
    return array


def _load(path):
    """Return the matrix of a .npy file, which stays on disk until its rows are needed."""
    array = load_array(path, mmap_mode="r")
    if array.ndim != 2 or array.dtype.kind not in "fiub" or not array.shape[1]:
        raise TableError(
            f"{path} holds an array of {array.dtype} with shape {array.shape}; features must be "
            "numbers, with a row per row of the table and a column per feature."
        )
    return array


def _as_text(frame, column) -> list:
    """Return a column as text, so that a number is the same in a CSV and in a Parquet file."""
    check_columns(list(frame.columns), column, "The table")
    return column_as_text(arrow_table(frame[[column]]).column(0)).to_pylist()


def _positions(ids, column, path) -> dict:
    """Return the row of each identifier; raise if one occurs twice."""
    if twice := [name for name, count in Counter(ids).items() if count > 1]:
        name = short_repr(column)
        raise TableError(f"{path}: column {name} identifies rows, but repeats {some_of(twice)}.")
    return {name: row for row, name in enumerate(ids) if name is not None}
