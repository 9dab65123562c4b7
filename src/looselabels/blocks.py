"""Tables that do not fit in memory, read block by block.

`infer`, `class_proba_from` and `condition_on_label` accept `Blocks` in place of arrays, and return
`Blocks`. Only a few megabytes of rows are in memory at any time.
"""

from collections.abc import Callable, Iterable, Iterator
from itertools import chain, zip_longest
from pathlib import Path

import numpy as np

from looselabels._files import check_parent, new_file
from looselabels._validation import import_extra, some_of

ELEMENTS_PER_BLOCK = 2**20  # numbers that are in memory at a time: 8 MiB
MIN_BLOCK_ROWS = 2**10  # also if there are many columns: fewer rows would be slow to solve


class Blocks:
    """The rows of a table in blocks, read anew for each loop.

    Blocks may have any size, also 0. Results do not depend on it: functions that need larger or
    smaller blocks regroup the rows.

    Parameters
    ----------
    source : callable or iterable
        A function that returns a new iterator over arrays each time it is called, such as a
        generator function, or an iterable that can be read several times, such as a list. All
        arrays have the same columns, or all are 1-D.

    Examples
    --------
    >>> import numpy as np
    >>> def label_proba():
    ...     for rate in (0.1, 0.2):  # in practice: files, or the predictions of a model
    ...         yield np.array([[rate, 1 - rate], [0.03, 0.97]])
    >>> from looselabels import infer
    >>> found = infer(Blocks(label_proba), [[0.4, 0.6], [0.0, 1.0]])
    >>> found.class_proba.to_array().round(3)
    array([[0.25 , 0.75 ],
           [0.075, 0.925],
           [0.5  , 0.5  ],
           [0.075, 0.925]])
    """

    def __init__(self, source: Callable[[], Iterable] | Iterable):
        if isinstance(source, Iterator):
            raise TypeError(
                f"A {type(source).__name__} can be read only once, and rows are read several "
                "times. Pass the function that creates it, without calling it."
            )
        if not callable(source) and not isinstance(source, Iterable):
            raise TypeError(
                "Blocks needs a function that returns an iterator over arrays, or an iterable of "
                f"arrays; got {type(source).__name__}."
            )
        self._source = source
        self._n_rows: int | None = None  # known after the first complete loop

    def __iter__(self) -> Iterator[np.ndarray]:
        n_rows = 0
        for block in self._source() if callable(self._source) else self._source:
            array = np.asarray(block)
            if array.ndim not in (1, 2):
                raise ValueError(
                    f"Blocks must be 1-D or 2-D arrays; the block at row {n_rows} has shape "
                    f"{array.shape}."
                )
            n_rows += len(array)
            yield array
        if self._n_rows is not None and n_rows != self._n_rows:
            raise ValueError(
                f"The blocks had {self._n_rows} rows in the first loop and {n_rows} in a later "
                "one. The function passed to Blocks must return a new iterator over the same rows "
                "each time: an iterator that was created before can be read only once."
            )
        self._n_rows = n_rows

    # -------------------------------------------------------------------------------------- reading

    @classmethod
    def from_array(cls, array, block_rows: int | None = None) -> "Blocks":
        """Read an array that is sliced by rows: a memory map, or an array of Zarr or HDF5.

        >>> [len(block) for block in Blocks.from_array(np.eye(5), block_rows=2)]
        [2, 2, 1]
        """
        size = block_rows or rows_per_block(array)

        def read():
            for begin in range(0, array.shape[0], size):
                yield array[begin : begin + size]

        return cls(read)

    @classmethod
    def from_npy(cls, path, block_rows: int | None = None) -> "Blocks":
        """Read a .npy file, as `numpy.save` writes it."""
        array = np.load(path, mmap_mode="r", allow_pickle=False)
        n_rows, size = len(array), block_rows or rows_per_block(array)

        def read():
            for begin in range(0, n_rows, size):
                # A new map for each block: pages that were read count as memory until it is closed.
                rows = np.load(path, mmap_mode="r", allow_pickle=False)
                yield np.array(rows[begin : begin + size])

        return cls(read)

    @classmethod
    def from_parquet(cls, path, columns: str | list[str] | None = None) -> "Blocks":
        """Read a Parquet file, or all files of a folder in the order of their names.

        Parameters
        ----------
        path : str or path
            A file, or a folder with files whose names end in .parquet.
        columns : str or list of str, optional
            The columns to read, in this order. One name instead of a list gives 1-D blocks, as
            sample weights and label indices need. None: all columns.
        """
        parquet = import_extra("pyarrow.parquet", "'looselabels[tables]'")
        path = Path(path)
        files = sorted(path.glob("*.parquet")) if path.is_dir() else [path]
        if not files:
            raise FileNotFoundError(f"{path} has no files whose names end in .parquet.")
        with parquet.ParquetFile(files[0]) as first:
            known = first.schema_arrow.names
        names = known if columns is None else [columns] if isinstance(columns, str) else columns
        missing = [name for name in names if name not in known]
        if missing:
            raise ValueError(
                f"{files[0]} has no column {some_of(missing)}; its columns are {some_of(known)}."
            )
        size = max(MIN_BLOCK_ROWS, ELEMENTS_PER_BLOCK // len(names))

        def read():
            for file in files:
                with parquet.ParquetFile(file) as table:
                    for batch in table.iter_batches(size, columns=names):
                        arrays = [batch[name].to_numpy(zero_copy_only=False) for name in names]
                        yield arrays[0] if isinstance(columns, str) else np.column_stack(arrays)

        return cls(read)

    # --------------------------------------------------------------------------------- transforming

    def map(self, function: Callable, *others) -> "Blocks":
        """Return the results of `function` for each block, computed when they are read.

        Parameters
        ----------
        function : callable
            Called with a block, and with the same rows of each of the others. It returns an array
            with one row for each of them, such as ``classifier.predict_proba``.
        *others : Blocks or arrays
            They have as many rows. Their blocks may have other sizes.

        >>> Blocks([np.array([1, 2]), np.array([3])]).map(np.multiply, np.arange(3)).to_array()
        array([0, 2, 6])
        """
        return Blocks(lambda: (function(*arrays) for arrays in aligned(self, *others)))

    # -------------------------------------------------------------------------------------- writing

    def to_array(self) -> np.ndarray:
        """Return all rows in memory."""
        blocks = list(self)
        if not blocks:
            raise ValueError("There are no blocks.")
        return np.concatenate(blocks)

    def to_npy(self, path):
        """Write all rows to a .npy file; `path` exists only when it is complete."""
        with new_file(path, check_parent) as temporary, open(temporary, "wb") as file:
            n_rows, header = 0, None
            for block in self:
                if header is None:
                    header = _npy_header(block)
                    _write_header(file, header, 0)
                file.write(block.astype(header["descr"], order="C", casting="safe", copy=False))
                n_rows += len(block)
            if header is None:
                raise ValueError("There are no blocks to write.")
            file.seek(0)
            _write_header(file, header, n_rows)  # NumPy leaves room for any number of rows

    def to_parquet(self, path, columns: list[str] | None = None):
        """Write all rows to a Parquet file; `path` exists only when it is complete.

        Parameters
        ----------
        path : str or path
        columns : list of str, optional
            Names of the columns. None: "0", "1", …
        """
        arrow = import_extra("pyarrow", "'looselabels[tables]'")
        parquet = import_extra("pyarrow.parquet", "'looselabels[tables]'")
        with new_file(path, check_parent) as temporary:
            writer = None
            for (block,) in aligned(self):
                table = block.reshape(len(block), -1)
                names = columns or [str(k) for k in range(table.shape[1])]
                batch = arrow.table(dict(zip(names, table.T, strict=True)))
                writer = writer or parquet.ParquetWriter(temporary, batch.schema)
                writer.write_table(batch)
            if writer is None:
                raise ValueError("There are no rows to write.")
            writer.close()


def _npy_header(block) -> dict:
    header = np.lib.format.header_data_from_array_1_0(block)
    return {**header, "fortran_order": False}


def _write_header(file, header, n_rows):
    shape = (n_rows, *header["shape"][1:])
    np.lib.format.write_array_header_1_0(file, {**header, "shape": shape})


# ---------------------------------------------------------------------------------- regrouping rows


def rows_per_block(array) -> int:
    """Return how many rows of an array are read at a time."""
    n_columns = array.shape[1] if len(array.shape) > 1 else 1
    return max(MIN_BLOCK_ROWS, ELEMENTS_PER_BLOCK // max(n_columns, 1))


def aligned(*sources) -> Iterator[tuple[np.ndarray, ...]]:
    """Yield blocks of the same rows of all sources (Blocks or arrays), none of them empty."""
    first, *others = (x if isinstance(x, Blocks) else Blocks.from_array(x) for x in sources)
    blocks = iter(first)
    start = next(blocks, None)
    if start is None:
        return
    size, n_rows = rows_per_block(start), 0
    streams = [regrouped(chain([start], blocks), size), *(regrouped(x, size) for x in others)]
    for arrays in zip_longest(*streams, fillvalue=()):
        lengths = [len(array) for array in arrays]
        if len(set(lengths)) > 1:
            ends = " and ".join(str(n_rows + n) for n in lengths)
            raise ValueError(
                f"The rows of different sources do not match: they have {ends} rows, or more."
            )
        n_rows += lengths[0]
        yield arrays


def regrouped(blocks: Iterable, size: int) -> Iterator[np.ndarray]:
    """Yield the same rows in blocks of `size` rows; the last one can be smaller.

    >>> [len(block) for block in regrouped([np.eye(3), np.eye(3)[:0], np.eye(3)], 4)]
    [4, 2]
    """
    parts: list = []
    missing = size
    for block in blocks:
        while len(block):
            part, block = block[:missing], block[missing:]
            parts.append(part)
            missing -= len(part)
            if not missing:
                yield _joined(parts)
                parts, missing = [], size
    if parts:
        yield _joined(parts)


def _joined(parts):
    shapes = {part.shape[1:] for part in parts}
    if len(shapes) > 1:
        raise ValueError(f"Blocks differ in their number of columns: {sorted(shapes)}.")
    return parts[0] if len(parts) == 1 else np.concatenate(parts)
