"""Tables from files, read strictly: what is not a proper table is an error.

A CSV file is read as text, cell by cell, so that it can be written back unchanged. `features.py`
decides which columns are numbers, dates, categories or text. `formats.py` reads other formats.
"""

import csv
import io
from codecs import BOM_UTF8
from contextlib import contextmanager, suppress
from itertools import islice
from numbers import Integral

import numpy as np

from looselabels._validation import short_repr
from looselabels.command import formats
from looselabels.command.shell import shell_word
from looselabels.command.sources import (
    BLOCK,
    Source,
    TableError,
    Utf8,
    check_columns,
    one_line,
    pa,
    pacsv,
    pd,
    within_memory,
)
from looselabels.command.sources import nearest as nearest  # modules that use tables need these
from looselabels.command.sources import pc as pc
from looselabels.command.spilling import table_of

N_ROWS = 50_000  # per block
NUMBER = r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$"


# -------------------------------------------------------------------------------------------- read


def read_table(source, *, label=None, delimiter=None, sheet=None):
    """Return a table as a pandas DataFrame.

    Cells of CSV, JSON lines and Excel files are text; Parquet and Feather files keep their types.
    Only empty cells are missing. A large table is mapped from a temporary file (`spilling`).

    Parameters
    ----------
    source : str or path
        A CSV or TSV file, a file with one JSON object per line (.jsonl, .ndjson), any of which may
        be compressed (.gz, .bz2, .xz, .zst); a Parquet, Feather or Excel (.xlsx) file; or "-" for
        CSV from stdin.
    label : str, default=None
        A column that the table must have.
    delimiter : str, default=None
        The character between cells of a CSV file. None: a tab for .tsv and .tab, otherwise a comma.
    sheet : str, default=None
        The sheet of an Excel file. None: the first one, with a warning if there are more.
    """
    source = Source(source, delimiter, sheet, keep=True)
    batches = within_memory(_batches(source, BLOCK, label), source.name)
    plain = (part for batch in batches for part in _plain(pa.table(batch)).to_batches())
    return _frame(table_of(plain), source)


def read_blocks(source, n_rows=N_ROWS, *, label=None, delimiter=None, sheet=None):
    """Yield a table as DataFrames of `n_rows` rows each; the last may be shorter. See `read_table`.

    The index of each block continues that of the block before.
    """
    source, waiting, start = Source(source, delimiter, sheet), [], 0
    for batch in _batches(source, n_rows, label):
        waiting.append(batch)
        while sum(map(len, waiting)) >= n_rows:
            table = pa.Table.from_batches(waiting)
            yield _frame(table.slice(0, n_rows), source, start)
            start, waiting = start + n_rows, table.slice(n_rows).to_batches()
    if waiting:
        yield _frame(pa.Table.from_batches(waiting), source, start)


def _frame(table, source, start=0):
    """Return a pandas DataFrame with Arrow types, which remembers its source."""
    frame = _plain(table).to_pandas(types_mapper=pd.ArrowDtype)
    frame.index = pd.RangeIndex(start, start + len(frame))
    frame.attrs["looselabels"] = (str(source.source), source.delimiter, source.sheet)
    return frame


def _plain(table):
    """Return a table with plain values instead of dictionaries, and without pandas metadata."""
    types = {f.name: f.type for f in table.schema}
    types |= {n: t.value_type for n, t in types.items() if pa.types.is_dictionary(t)}
    return table.cast(pa.schema(types))


def row_location(frame, position) -> str:
    """Return where a row is, counting from 1: its line in a file (read again), else its row."""
    row = frame.index[position]
    row = int(row) if isinstance(row, Integral) else position
    if "looselabels" not in frame.attrs:
        return f"Row {row + 1}"
    source = Source(*frame.attrs["looselabels"])
    with suppress(TableError, OSError, UnicodeError):  # it may have no lines, or be deleted
        if source.can_rewind:
            line = next(islice(_line_numbers(source), row, None))
            word = "row" if source.sheet else "line"
            return f"{formats.table_name(source)}, {word} {line}"
    return f"{source.name}, row {row + 1}"


def number_of_first_row(frame) -> tuple[str, int]:
    """Return how people count the rows of a table: ("Line", 2), ("Row", 2) or ("Row", 1).

    The header is line 1 of a CSV file in which every row is one line. With line breaks in cells, or
    from a pipe, the header is row 1, as in Excel. Other formats have none, and rows of a sheet with
    empty rows are counted from 1.
    """
    if "looselabels" not in frame.attrs:
        return "Row", 1
    source = Source(*frame.attrs["looselabels"])
    if not source.can_rewind:
        return "Row", 2
    with suppress(TableError, OSError), source.open() as stream:
        kind = source.format(stream)
        if kind == "Excel":
            is_dense = all(row == k for k, row in enumerate(_line_numbers(source), 2))
            return "Row", 2 if is_dense else 1
        if kind != "CSV":
            return "Row", 1
        n_breaks, last = 0, b"\n"
        while part := stream.read(BLOCK):
            n_breaks, last = n_breaks + part.count(b"\n"), part[-1:]
        return ("Line" if n_breaks + (last != b"\n") == len(frame) + 1 else "Row"), 2
    return "Row", 1


def _line_numbers(source):
    """Yield the line of each row in a CSV or JSON file, or its row in a sheet."""
    with source.open() as stream:
        kind = source.format(stream)
        if kind == "JSON lines":
            yield from (line for line, _ in formats.json_rows(stream, source))
        elif kind == "Excel":
            yield from (row for row, _ in formats.excel_rows(stream, source)[0][1:])
    if kind == "CSV":
        yield from (line for line, _ in islice(_csv_lines(source), 1, None))
    elif kind in ("Parquet", "Feather"):
        raise TableError(f"{source.name} is a {kind} file, which has no lines.")


def _batches(source, n_rows, label):
    """Yield the record batches of a table; raise if it has no header or no rows."""
    count = 0
    with source.open() as stream:
        kind = source.format(stream)
        if source.sheet is not None and kind != "Excel":
            raise TableError(f"{source.name} is {kind}, which has no sheets. Leave --sheet out.")
        for batch in READERS[kind](stream, source, n_rows, label):
            count += len(batch)
            yield batch
    if not count:
        raise TableError(f"{formats.table_name(source)} has a header but no rows.")


# --------------------------------------------------------------------------------------- read: CSV


def _csv_batches(stream, source, _n_rows, label):
    """Yield batches of text; raise if a row has too few or too many cells.

    Every block is parsed from memory. Given the stream, pyarrow would read ahead in a thread, which
    can outlive an error and then calls Python while Python shuts down.
    """
    text, count, last = Utf8(stream, source), 0, None
    names = _header(text, source)
    check_columns(names, label, source.name)
    for block in text.row_blocks(source.delimiter):
        for last in _csv_rows(block, source, names, count):
            yield last
            count += len(last)
    if text.quotes % 2 and last is not None:
        _check_last_quote(source, last)


def _csv_rows(block, source, names, count):
    """Return the batches of a block of whole rows, which follows `count` rows."""
    ragged = []
    if block.startswith(BOM_UTF8):  # it is part of the first cell, and pyarrow removes one
        block = BOM_UTF8 + block

    def refuse(row):
        ragged.append((f"row {count + row.number}", row.actual_columns, row.text))
        return "error"

    read = pacsv.ReadOptions(use_threads=False, block_size=len(block) + 1, column_names=names)
    parse = pacsv.ParseOptions(
        delimiter=source.delimiter, newlines_in_values=True, invalid_row_handler=refuse
    )
    convert = pacsv.ConvertOptions(
        column_types=dict.fromkeys(names, pa.string()),
        null_values=[""],
        strings_can_be_null=True,
        check_utf8=False,
    )
    try:
        return pacsv.read_csv(pa.BufferReader(block), read, parse, convert).to_batches()
    except pa.ArrowInvalid as error:
        if str(error).startswith("Empty CSV"):  # blank lines only
            return []
        raise _csv_error(source, names, ragged, error) from None


def _header(text, source) -> list[str]:
    """Return the column names; the stream is then at the first row."""
    name, lines = source.name, text.text_lines()
    try:
        with _long_cells():
            names = next(csv.reader(lines, delimiter=source.delimiter, strict=True), None)
    except csv.Error as error:
        reason = str(error)
        if "new-line" in reason:
            reason = "lines end with CR alone. Save the file with LF or CRLF line endings"
        raise TableError(f"{name}: the header cannot be read: {reason}.") from None
    if names is None:
        raise TableError(f"{name} is empty; it needs a header and rows.")
    if not names:
        raise TableError(f"{name}: line 1 is empty; it needs the names of the columns.")
    others = [other for other in ",;\t|" if len(names) == 1 and other in names[0]]
    if others:
        option = "tab" if others[0] == "\t" else shell_word(others[0])
        raise TableError(
            f"{name} has one column, {short_repr(names[0])}. If {others[0]!r} separates its cells, "
            f"pass --delimiter {option} if {name} is DATA, and otherwise save it as CSV with "
            "commas."
        )
    return names


def _csv_lines(source):
    """Yield the number of the first line and the cells of each row, header included, blanks not."""
    with source.open() as stream, _long_cells():
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
    if source.can_rewind:
        for line, row in _csv_lines(source):
            if len(row) != len(names):
                ragged = [(f"line {line}", len(row), source.delimiter.join(row))]
                break
    if not ragged:
        return TableError(f"{source.name} cannot be read: {one_line(error)}")
    where, count, text = ragged[0]
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


READERS = {
    "CSV": _csv_batches,
    "JSON lines": formats.json_batches,
    "Parquet": formats.parquet_batches,
    "Feather": formats.feather_batches,
    "Excel": formats.excel_batches,
}


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


def as_numbers(frame):
    """Return a table with a number in place of each cell; equal cells have equal numbers.

    A single column, which may consist of texts, is returned as it is. None: cells of some column
    cannot be compared, such as lists.

    Examples
    --------
    >>> import pandas as pd
    >>> as_numbers(pd.DataFrame({"color": ["red", None, "red"], "size": [2.5, 1, 2.5]})).tolist()
    [[0, 0], [1, 1], [0, 0]]
    """
    if len(frame.columns) < 2:
        return frame
    columns = (column.combine_chunks() for column in arrow_table(frame).columns)
    try:
        coded = [column.dictionary_encode(null_encoding="encode").indices for column in columns]
    except pa.ArrowNotImplementedError:
        return None
    return np.column_stack([column.to_numpy(zero_copy_only=False) for column in coded])


def column_as_text(column):
    """Return a column of an Arrow table as text."""
    if pa.types.is_floating(column.type):
        column = pc.if_else(pc.is_nan(column), None, column)
    try:
        return column.cast(pa.large_string())
    except pa.ArrowException:  # lists and bytes
        return pa.array(map(repr, column.to_pylist()), pa.large_string())


def is_text(kind) -> bool:
    """Return whether an Arrow type is one of its text types."""
    return kind in (pa.string(), pa.large_string()) or str(kind) == "string_view"
