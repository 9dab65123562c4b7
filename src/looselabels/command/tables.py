"""Tables from CSV and Parquet files, read strictly: what is not a proper table is an error.

A CSV file is read as text, cell by cell, so that it can be written back unchanged. `features.py`
decides which columns are numbers, dates, categories or text.
"""

import codecs
import csv
import gzip
import io
import os
import sys
import zlib
from collections import Counter
from contextlib import contextmanager, nullcontext, suppress
from difflib import get_close_matches
from itertools import islice
from numbers import Integral

import numpy as np

from looselabels._validation import import_extra, short_repr, some_of

BLOCK = 8 * 1024**2  # bytes that are parsed at once; a longer row is an error
N_ROWS = 50_000  # per block
NUMBER = r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$"


class _Extra:
    """An optional module, imported when it is first used."""

    def __init__(self, module):
        self._module = module

    def __getattr__(self, name):
        return getattr(import_extra(self._module, '"looselabels[cli]"'), name)


pa, pc, pd = _Extra("pyarrow"), _Extra("pyarrow.compute"), _Extra("pandas")
pq, pacsv = _Extra("pyarrow.parquet"), _Extra("pyarrow.csv")


class TableError(ValueError):
    """A table that cannot be used: what is wrong, where, and what to do."""


# -------------------------------------------------------------------------------------------- read


def read_table(source, *, label=None, delimiter=None):
    """Return a table as a pandas DataFrame.

    Cells of a CSV file are text; a Parquet file keeps its types. Only empty cells are missing.

    Parameters
    ----------
    source : str or path
        A CSV or TSV file, which may be compressed with gzip, a Parquet file, or "-" for CSV from
        stdin.
    label : str, default=None
        A column that the table must have.
    delimiter : str, default=None
        The character between cells of a CSV file. None: a tab for .tsv and .tab, otherwise a comma.
    """
    source = _Source(source, delimiter, keep=True)
    return _frame(pa.Table.from_batches(list(_batches(source, BLOCK, label))), source)


def read_blocks(source, n_rows=N_ROWS, *, label=None, delimiter=None):
    """Yield a table as DataFrames of `n_rows` rows each; the last may be shorter. See `read_table`.

    The index of each block continues that of the block before.
    """
    source, waiting, start = _Source(source, delimiter), [], 0
    for batch in _batches(source, n_rows, label):
        waiting.append(batch)
        while sum(map(len, waiting)) >= n_rows:
            table = pa.Table.from_batches(waiting)
            yield _frame(table.slice(0, n_rows), source, start)
            start, waiting = start + n_rows, table.slice(n_rows).to_batches()
    if waiting:
        yield _frame(pa.Table.from_batches(waiting), source, start)


def nearest(name, names) -> str:
    """Return the end of a message about an unknown name: the closest of `names`, and the names."""
    lower = {str(known).lower(): known for known in names}
    close = get_close_matches(str(name).lower(), lower, n=1)
    hint = f" Did you mean {short_repr(lower[close[0]])}?" if close else ""
    return f"{hint} It has {some_of(list(names), 10)}."


class _Source:
    """Where a table comes from. With `keep`, stdin is stored so that it can be read twice."""

    def __init__(self, source, delimiter=None, keep=False):
        self.source, self.name = source, "stdin" if source == "-" else str(source)
        self.delimiter = delimiter or default_delimiter(self.name)
        self.kept = sys.stdin.buffer.read() if keep and source == "-" else None
        self.can_rewind = os.path.isfile(source) if source != "-" else keep

    @contextmanager
    def open(self):
        """Open the source, decompressed if needed; raise if it is clearly not a table."""
        with self._raw() as raw:
            stream = raw if hasattr(raw, "peek") else io.BufferedReader(raw)
            if stream.peek(2)[:2] == b"\x1f\x8b":
                stream = gzip.GzipFile(fileobj=stream)
            head = self.unpacked(stream.peek, 4)[:4]
            if head == b"PK\x03\x04":
                what = "a zip or Excel file; save it as CSV (UTF-8) or Parquet"
                raise TableError(f"{self.name} is {what}.")
            if head[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
                raise TableError(f"{self.name} is UTF-16; save it as UTF-8.")
            yield stream

    def _raw(self):
        if self.source != "-":
            return open(self.source, "rb")
        return nullcontext(sys.stdin.buffer if self.kept is None else io.BytesIO(self.kept))

    def unpacked(self, read, size):
        """Return the result of `read`; raise TableError if the compressed data is damaged."""
        try:
            return read(size)
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise TableError(f"{self.name} is damaged: {error}. Compress it again.") from error


def default_delimiter(name) -> str:
    """Return the delimiter that goes with a file name."""
    return "\t" if name.lower().removesuffix(".gz").endswith((".tsv", ".tab")) else ","


def _starts_as_parquet(stream) -> bool:
    return stream.peek(4)[:4] == b"PAR1"


def _frame(table, source, start=0):
    """Return a pandas DataFrame with Arrow types, which remembers its source."""
    frame = _plain(table).to_pandas(types_mapper=pd.ArrowDtype)
    frame.index = pd.RangeIndex(start, start + len(frame))
    frame.attrs["looselabels"] = (str(source.source), source.delimiter)
    return frame


def _plain(table):
    """Return a table with plain values instead of dictionaries, and without pandas metadata."""
    types = {f.name: f.type for f in table.schema}
    types |= {n: t.value_type for n, t in types.items() if pa.types.is_dictionary(t)}
    return table.cast(pa.schema(types))


def row_location(frame, position) -> str:
    """Return where a row is, counting from 1: its line in a CSV file (read again), else its row."""
    row = frame.index[position]
    row = int(row) if isinstance(row, Integral) else position
    if "looselabels" not in frame.attrs:
        return f"Row {row + 1}"
    source = _Source(*frame.attrs["looselabels"])
    with suppress(TableError, OSError, UnicodeError):  # it may be Parquet, or deleted
        if source.can_rewind:
            line, _ = next(islice(_csv_lines(source), row + 1, None))
            return f"{source.name}, line {line}"
    return f"{source.name}, row {row + 1}"


def number_of_first_row(frame) -> tuple[str, int]:
    """Return how people count the rows of a table: ("Line", 2), ("Row", 2) or ("Row", 1).

    The header is line 1 of a CSV file in which every row is one line. With line breaks in cells,
    empty lines, or from a pipe, the header is row 1, as in a spreadsheet. Other formats have none.
    """
    if "looselabels" not in frame.attrs:
        return "Row", 1
    source = _Source(*frame.attrs["looselabels"])
    if not source.can_rewind:
        return "Row", 2
    with suppress(TableError, OSError), source.open() as stream:
        n_breaks, last = 0, b"\n"
        while part := stream.read(BLOCK):
            if b"\0" in part:  # Parquet and other formats that are not text
                return "Row", 1
            n_breaks, last = n_breaks + part.count(b"\n"), part[-1:]
        return ("Line" if n_breaks + (last != b"\n") == len(frame) + 1 else "Row"), 2
    return "Row", 1


def _batches(source, n_rows, label):
    """Yield the record batches of a table; raise if it has no header or no rows."""
    count = 0
    with source.open() as stream:
        if _starts_as_parquet(stream):
            found = _parquet_batches(stream, source.name, n_rows, label)
        elif source.name.lower().endswith((".parquet", ".pq")):
            raise TableError(f"{source.name} is not a Parquet file: it does not start with PAR1.")
        else:
            found = _csv_batches(stream, source, label)
        for batch in found:
            count += len(batch)
            yield batch
    if not count:
        raise TableError(f"{source.name} has a header but no rows.")


def check_columns(names, label, name):
    """Raise if a column has no name, two have the same name, or the label column is missing."""
    for position, column in enumerate(names):
        if column == "":
            raise TableError(
                f"{name}: column {position + 1} of {len(names)} has no name; give it one in the "
                "header. (For row numbers written by pandas: to_csv(…, index=False).)"
            )
    twice = [column for column, count in Counter(names).items() if count > 1]
    if twice:
        raise TableError(f"{name} has more than one column {some_of(twice)}; rename them.")
    if label is not None and label not in names:
        raise TableError(f"{name} has no column {short_repr(label)}.{nearest(label, names)}")


def _parquet_batches(stream, name, n_rows, label):
    if not stream.seekable():
        raise TableError(f"{name} is Parquet, which cannot be read from a pipe; pass a file.")
    try:
        file = pq.ParquetFile(stream)
        check_columns(file.schema_arrow.names, label, name)
        yield from file.iter_batches(batch_size=n_rows)
    except (pa.ArrowException, OSError) as error:
        raise TableError(f"{name} is damaged: {one_line(error)}") from error


def one_line(error) -> str:
    """Return the message of an error without line breaks and control characters."""
    text = " ".join(str(error).split())
    return text if text.isprintable() else ascii(text)[1:-1]


# --------------------------------------------------------------------------------------- read: CSV


class _Utf8:
    """A byte stream that counts lines and quotes, and raises at NUL bytes and invalid UTF-8."""

    def __init__(self, stream, source):
        self.stream, self.source, self.closed = stream, source, False
        self.lines = self.quotes = 0
        self.decoder = codecs.getincrementaldecoder("utf-8")()

    def read(self, size=-1) -> bytes:
        """Return the next bytes, for pyarrow."""
        return self._checked(self.source.unpacked(self.stream.read, size))

    def text_lines(self):
        """Yield the lines as text, for the header."""
        while line := self._checked(self.source.unpacked(self.stream.readline, BLOCK)):
            yield line.decode()

    def close(self):
        """Do not close the stream: its opener does."""
        self.closed = True

    def _checked(self, data):
        whole = self.decoder.getstate()[0] + data  # starts with a character that the last block cut
        bad, reason = whole.find(b"\0"), "a NUL byte, so it is not a CSV file."
        try:
            self.decoder.decode(data, final=not data)
        except UnicodeDecodeError as error:
            bad, byte = error.start, whole[error.start : error.start + 1]
            reason = (
                f"byte 0x{byte.hex()} is not UTF-8 (in Windows-1252 it is "
                f"{byte.decode('cp1252', 'replace')!r}). Save the file as UTF-8."
            )
        if bad >= 0:
            line = self.lines + whole.count(b"\n", 0, bad) + 1
            raise TableError(f"{self.source.name}, line {line}: {reason}")
        self.lines += data.count(b"\n")
        self.quotes += data.count(b'"')
        return data


def _csv_batches(stream, source, label):
    """Yield batches of text; raise if a row has too few or too many cells."""
    text = _Utf8(stream, source)
    names = _header(text, source)
    check_columns(names, label, source.name)
    ragged, last = [], None

    def refuse(row):
        ragged.append(row)
        return "error"

    try:
        reader = pacsv.open_csv(
            text,
            pacsv.ReadOptions(use_threads=False, block_size=BLOCK, column_names=names),
            pacsv.ParseOptions(
                delimiter=source.delimiter, newlines_in_values=True, invalid_row_handler=refuse
            ),
            pacsv.ConvertOptions(
                column_types=dict.fromkeys(names, pa.string()),
                null_values=[""],
                strings_can_be_null=True,
                check_utf8=False,
            ),
        )
        for last in reader:
            yield last
    except pa.ArrowInvalid as error:
        if not str(error).startswith("Empty CSV"):
            raise _csv_error(source, names, ragged, error) from None
    if text.quotes % 2 and last is not None:
        _check_last_quote(source, last)


def _header(text, source) -> list[str]:
    """Return the column names; the stream is then at the first row."""
    name, lines = source.name, text.text_lines()
    try:
        with _long_cells():
            names = next(csv.reader(lines, delimiter=source.delimiter, strict=True), None)
    except csv.Error as error:
        hint = " Save it with LF or CRLF line endings." if "new-line" in str(error) else ""
        raise TableError(f"{name}: the header cannot be read: {error}.{hint}") from None
    if names is None:
        raise TableError(f"{name} is empty; it needs a header and rows.")
    if not names:
        raise TableError(f"{name}: line 1 is empty; it needs the names of the columns.")
    names[0] = names[0].removeprefix("\ufeff")
    others = [other for other in ",;\t|" if len(names) == 1 and other in names[0]]
    if others:
        raise TableError(
            f"{name} has one column, {short_repr(names[0])}. If {others[0]!r} separates the cells, "
            "pass it as the delimiter."
        )
    return names


def _csv_lines(source):
    """Yield the number of the first line and the cells of each row, header included, blanks not."""
    with source.open() as stream, _long_cells():
        if _starts_as_parquet(stream):
            raise TableError(f"{source.name} is a Parquet file, which has no lines.")
        text = io.TextIOWrapper(stream, encoding="utf-8-sig", newline="")
        reader, line = csv.reader(text, delimiter=source.delimiter, strict=True), 1
        try:
            for row in reader:
                if row:
                    yield line, row
                line = reader.line_num + 1
        except csv.Error as error:
            raise TableError(
                f'{source.name}, line {line}: {error}. Is a quote (") not closed there?'
            ) from None


@contextmanager
def _long_cells():
    before = csv.field_size_limit(BLOCK)
    try:
        yield
    finally:
        csv.field_size_limit(before)


def _csv_error(source, names, ragged, error) -> TableError:
    """Return the error for a malformed row; a file is read again to find the line."""
    found = [(f"row {row.number}", row.actual_columns, row.text) for row in ragged]
    if source.can_rewind:
        for line, row in _csv_lines(source):
            if len(row) != len(names):
                found = [(f"line {line}", len(row), source.delimiter.join(row))]
                break
    if not found:
        reason = one_line(error)
        if "straddling" in reason:
            reason = f'a row is longer than {BLOCK} bytes. Is a quote (") not closed?'
        return TableError(f"{source.name} cannot be read: {reason}")
    where, count, text = found[0]
    hint = ' Is a quote (") not closed there?' if "\n" in text else ""
    return TableError(
        f"{source.name}, {where}: {count} cell{'' if count == 1 else 's'} where the header has "
        f"{len(names)}, {short_repr(text)}.{hint}"
    )


def _check_last_quote(source, batch):
    """Raise if an unclosed quote swallowed the end of the file; a single quote may be fine."""
    if source.can_rewind:
        for _ in _csv_lines(source):
            pass  # raises where reading stops
    elif "\n" in (batch.column(batch.num_columns - 1)[-1].as_py() or ""):
        raise TableError(f'{source.name}: a quote (") is not closed in the last row.')


# ------------------------------------------------------------------------------ columns of a frame


def add_columns(frame, columns):
    """Return the table with additional columns; a name that it already has gets a prefix.

    Examples
    --------
    >>> import pandas as pd
    >>> list(add_columns(pd.DataFrame({"doubt": [1]}), {"doubt": [0.5]}).columns)
    ['doubt', 'looselabels_doubt']
    """
    taken, added = set(frame.columns), {}
    for name, values in columns.items():
        while name in taken or name in added:
            name = f"looselabels_{name}"
        added[name] = values
    return frame.assign(**added)


def values_of_one_type(names) -> np.ndarray:
    """Return names as an array for a column, which has one type: as text if they have several."""
    values = np.empty(len(names), dtype=object)
    one_type = len({type(name) for name in names}) == 1 and not isinstance(names[0], tuple)
    values[:] = list(names) if one_type else [str(name) for name in names]
    return values


# ------------------------------------------------------------------------------------------- Arrow


def arrow_table(frame):
    """Return a DataFrame as an Arrow table; raise if a column mixes types."""
    try:
        return _plain(pa.Table.from_pandas(frame, preserve_index=False))
    except pa.ArrowException as error:
        raise TableError(f"A column mixes types: {one_line(error)}.") from None


def is_text(kind) -> bool:
    """Return whether an Arrow type is one of its text types."""
    return kind in (pa.string(), pa.large_string()) or str(kind) == "string_view"
