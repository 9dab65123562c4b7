"""Tables: CSV and Parquet, read strictly and written whole.

A CSV file is read as text, cell for cell as it is written, so that what is written back is what was
read. Which columns are numbers, dates, categories or text is asked in `features.py`.
"""

import codecs
import csv
import gzip
import io
import os
import re
import secrets
import sys
import time
import zlib
from collections import Counter
from contextlib import contextmanager, nullcontext, suppress
from difflib import get_close_matches
from itertools import islice
from numbers import Integral
from pathlib import Path

from looselabels._validation import import_extra, short_repr, some_of

DAY = 24 * 60 * 60  # seconds
BLOCK = 8 * 1024**2  # bytes that are parsed at once; no row is longer
N_ROWS = 50_000  # of a block
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
    """What is wrong with a table, where, and what to do."""


# -------------------------------------------------------------------------------------------- read


def read_table(source, *, label=None, delimiter=None):
    """Return a table as a pandas DataFrame.

    CSV comes as text, Parquet in its own types; an empty cell is missing, and nothing else is.

    Parameters
    ----------
    source : str or path
        A CSV file (also .tsv, also compressed by gzip), a Parquet file, or "-": CSV from stdin.
    label : str, default=None
        A column that must be there.
    delimiter : str, default=None
        What separates the cells of a CSV file; by default a tab in .tsv, else a comma.
    """
    source = _Source(source, delimiter, keep=True)
    return _frame(pa.Table.from_batches(list(_batches(source, BLOCK, label))), source)


def read_blocks(source, n_rows=N_ROWS, *, label=None, delimiter=None):
    """Yield a table as DataFrames of `n_rows` rows, the last of them shorter; see `read_table`.

    Each block's index counts the rows of the whole table.
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
    """Return " Did you mean …?" where one of `names` is close, and what they are."""
    lower = {str(known).lower(): known for known in names}
    close = get_close_matches(str(name).lower(), lower, n=1)
    hint = f" Did you mean {short_repr(lower[close[0]])}?" if close else ""
    return f"{hint} It has {some_of(list(names), 10)}."


class _Source:
    """Where a table comes from; `keep` stdin, so that it can be read twice, as a file can."""

    def __init__(self, source, delimiter=None, keep=False):
        self.source, self.name = source, "stdin" if source == "-" else str(source)
        self.delimiter = delimiter or _delimiter(self.name)
        self.kept = sys.stdin.buffer.read() if keep and source == "-" else None
        self.can_rewind = os.path.isfile(source) if source != "-" else keep

    @contextmanager
    def open(self):
        """Open it, unpacked where it is compressed; what is no table is said here."""
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
        """Return what is read, or say that it is damaged."""
        try:
            return read(size)
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise TableError(f"{self.name} is damaged: {error}. Compress it anew.") from error


def _delimiter(name) -> str:
    return "\t" if name.lower().removesuffix(".gz").endswith((".tsv", ".tab")) else ","


def _is_parquet(stream) -> bool:
    return stream.peek(4)[:4] == b"PAR1"


def _frame(table, source, start=0):
    """Return a pandas DataFrame that keeps the types of Arrow, and knows where it is from."""
    frame = _plain(table).to_pandas(types_mapper=pd.ArrowDtype)
    frame.index = pd.RangeIndex(start, start + len(frame))
    frame.attrs["looselabels"] = (str(source.source), source.delimiter)
    return frame


def _plain(table):
    """Return a table with values for categories, and without what pandas noted in it."""
    types = {f.name: f.type for f in table.schema}
    types |= {n: t.value_type for n, t in types.items() if pa.types.is_dictionary(t)}
    return table.cast(pa.schema(types))


def _place(frame, position) -> str:
    """Return where a row is: its line where it comes from a CSV file, which is read again."""
    row = frame.index[position]
    row = int(row) if isinstance(row, Integral) else position
    if "looselabels" not in frame.attrs:
        return f"Row {row + 1}"
    source = _Source(*frame.attrs["looselabels"])
    with suppress(TableError, OSError, UnicodeError):  # it may be Parquet, or gone
        if source.can_rewind:
            line, _ = next(islice(_csv_lines(source), row + 1, None))
            return f"{source.name}, line {line}"
    return f"{source.name}, row {row + 1}"


def _batches(source, n_rows, label):
    """Yield the record batches of a table that is there, has a header and has rows."""
    count = 0
    with source.open() as stream:
        if _is_parquet(stream):
            found = _parquet_batches(stream, source.name, n_rows, label)
        elif source.name.lower().endswith((".parquet", ".pq")):
            raise TableError(f"{source.name} is no Parquet file: it does not start with PAR1.")
        else:
            found = _csv_batches(stream, source, label)
        for batch in found:
            count += len(batch)
            yield batch
    if not count:
        raise TableError(f"{source.name} has a header and no rows.")


def _check_columns(names, label, name):
    """Say which columns have no name, or one that others have, and that the label is not there."""
    for position, column in enumerate(names):
        if column == "":
            raise TableError(
                f"{name}: column {position + 1} of {len(names)} has no name; give it one in the "
                "header. (Row numbers that pandas wrote: to_csv(…, index=False).)"
            )
    twice = [column for column, count in Counter(names).items() if count > 1]
    if twice:
        raise TableError(f"{name} has more than one column {some_of(twice)}; rename them.")
    if label is not None and label not in names:
        raise TableError(f"{name} has no column {short_repr(label)}.{nearest(label, names)}")


def _parquet_batches(stream, name, n_rows, label):
    if not stream.seekable():
        raise TableError(f"{name} is Parquet, which is read from its end; give it as a file.")
    try:
        file = pq.ParquetFile(stream)
        _check_columns(file.schema_arrow.names, label, name)
        yield from file.iter_batches(batch_size=n_rows)
    except (pa.ArrowException, OSError) as error:
        raise TableError(f"{name} is damaged: {_one_line(error)}") from error


def _one_line(error) -> str:
    text = " ".join(str(error).split())
    return text if text.isprintable() else ascii(text)[1:-1]


# --------------------------------------------------------------------------------------- read: CSV


class _Utf8:
    """A stream of bytes that are looked at as they pass: no NUL, only UTF-8, how many quotes."""

    def __init__(self, stream, source):
        self.stream, self.source, self.closed = stream, source, False
        self.lines = self.quotes = 0
        self.decoder = codecs.getincrementaldecoder("utf-8")()

    def read(self, size=-1) -> bytes:
        """Return the next bytes, for pyarrow."""
        return self._looked_at(self.source.unpacked(self.stream.read, size))

    def text_lines(self):
        """Yield the lines as text, for the header."""
        while line := self._looked_at(self.source.unpacked(self.stream.readline, BLOCK)):
            yield line.decode()

    def close(self):
        """Leave the stream to whoever opened it."""
        self.closed = True

    def _looked_at(self, data):
        whole = self.decoder.getstate()[0] + data  # with a character that the last block cut
        bad, reason = whole.find(b"\0"), "a NUL byte, so it is no CSV file."
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
    """Yield batches of text; a row with too few or too many cells is an error."""
    text = _Utf8(stream, source)
    names = _header(text, source)
    _check_columns(names, label, source.name)
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
    """Return the names of the columns; the stream is then at the first row."""
    name, lines = source.name, text.text_lines()
    try:
        with _long_cells():
            names = next(csv.reader(lines, delimiter=source.delimiter, strict=True), None)
    except csv.Error as error:
        hint = " Save it with line ends LF or CRLF." if "new-line" in str(error) else ""
        raise TableError(f"{name}: the header cannot be read: {error}.{hint}") from None
    if names is None:
        raise TableError(f"{name} is empty; it needs a header and rows.")
    if not names:
        raise TableError(f"{name}: line 1 is empty; it needs the names of the columns.")
    names[0] = names[0].removeprefix("\ufeff")
    others = [other for other in ",;\t|" if len(names) == 1 and other in names[0]]
    if others:
        raise TableError(
            f"{name} has one column, {short_repr(names[0])}. If {others[0]!r} separates its "
            f"cells, give that as the delimiter."
        )
    return names


def _csv_lines(source):
    """Yield each row that is not blank, from the header on, with the line where it starts."""
    with source.open() as stream, _long_cells():
        if _is_parquet(stream):
            raise TableError(f"{source.name} is Parquet and has no lines.")
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
    """Return what is wrong with a row, by a second reading where one is possible."""
    found = [(f"row {row.number}", row.actual_columns, row.text) for row in ragged]
    if source.can_rewind:
        for line, row in _csv_lines(source):
            if len(row) != len(names):
                found = [(f"line {line}", len(row), source.delimiter.join(row))]
                break
    if not found:
        reason = _one_line(error)
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
    """Say that the last cell has swallowed the end of the file; a lone quote may be fine."""
    if source.can_rewind:
        for _ in _csv_lines(source):
            pass  # it is said where reading stops
    elif "\n" in (batch.column(batch.num_columns - 1)[-1].as_py() or ""):
        raise TableError(f'{source.name}: a quote (") is not closed in the last row.')


# ------------------------------------------------------------------------------------------- write


def check_place(path, force=False) -> None:
    """Say, before anything is computed, why a file cannot be written at `path`."""
    if path == "-":
        return
    path = Path(path).resolve()
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder; name a file in it.")
    if not path.parent.is_dir():
        raise FileNotFoundError(f"{path.parent} is no folder; create it first.")
    if path.exists() and not path.is_file():
        raise FileExistsError(f"{path} is no regular file; write to - (stdout) instead.")
    if path.exists() and not force:
        raise FileExistsError(f"{path} exists; --force replaces it.")
    if not os.access(path.parent, os.W_OK | os.X_OK):
        raise PermissionError(f"{path.parent} cannot be written to; choose another folder.")


@contextmanager
def new_file(path, force=False):
    """Yield a path to write to; it becomes `path` if all goes well, and vanishes if not."""
    check_place(path, force)
    path = Path(path).resolve()  # a link to a file stays a link
    prefix = f".{path.name[:40]}.writing-"
    temporary = path.with_name(prefix + secrets.token_hex(4))
    try:
        yield temporary
        with open(temporary, "r+b") as handle:
            os.fsync(handle.fileno())  # a rename may reach the disk before what it names
        check_place(path, force)  # it may have appeared meanwhile
        os.replace(temporary, path)
    finally:
        with suppress(OSError):  # this is tidiness
            temporary.unlink(missing_ok=True)
            for stray in path.parent.iterdir():  # of killed runs; a younger one may be at work
                if stray.name.startswith(prefix) and time.time() - stray.stat().st_mtime > DAY:
                    stray.unlink()


@contextmanager
def table_writer(path, *, force=False, excel_safe=False):
    """Yield a function that appends a DataFrame to a table at `path`.

    The format follows the name: .parquet, .csv, .tsv, and .gz behind the latter two; "-" is CSV on
    stdout. The file appears whole or not at all. In CSV a missing value is an empty cell.

    Parameters
    ----------
    path : str or path
        Where to write.
    force : bool, default=False
        Whether to replace a file that is there.
    excel_safe : bool, default=False
        Whether text that a spreadsheet would run (it starts with = + - @) gets a ' before it in
        CSV. Numbers, negative ones too, stay as they are.

    Examples
    --------
    >>> import pandas as pd
    >>> with table_writer("-") as write:
    ...     write(pd.DataFrame({"name": ["a", None], "p": [0.5, 1]}))
    name,p
    a,0.5
    ,1
    """
    if path == "-":
        yield _csv_writer(_write_stdout, ",", excel_safe)
        sys.stdout.flush()
        return
    name = str(path).lower()
    with new_file(path, force) as temporary, open(temporary, "wb") as handle:
        if name.endswith((".parquet", ".pq")):
            with _parquet_writer(handle) as write:
                yield write
        elif name.endswith(".gz"):  # the same bytes every time: no name, no time
            with gzip.GzipFile("", "wb", fileobj=handle, mtime=0) as packed:
                yield _csv_writer(packed.write, _delimiter(name), excel_safe)
        else:
            yield _csv_writer(handle.write, _delimiter(name), excel_safe)


def _write_stdout(data):
    sys.stdout.flush()
    if hasattr(sys.stdout, "buffer"):
        sys.stdout.buffer.write(data)
    else:  # it holds text only, as in a notebook
        sys.stdout.write(data.decode())


@contextmanager
def _parquet_writer(handle):
    writer = None

    def write(frame):
        nonlocal writer
        table = _arrow(frame)
        if writer is None:  # a later block may have values where this has none
            types = [(f.name, pa.string() if f.type == pa.null() else f.type) for f in table.schema]
            writer = pq.ParquetWriter(handle, pa.schema(types))
        writer.write_table(table.cast(writer.schema))

    try:
        yield write
    finally:
        if writer is not None:
            writer.close()


def _arrow(frame):
    try:
        return _plain(pa.Table.from_pandas(frame, preserve_index=False))
    except pa.ArrowException as error:
        raise TableError(f"A column mixes types: {_one_line(error)}.") from None


def _csv_writer(write_bytes, delimiter, excel_safe):
    """Return a function that writes rows as CSV, before the first of them the header."""
    at_start = True

    def write(frame):
        nonlocal at_start
        table = _arrow(frame)
        if at_start:
            names = [pa.array([name]) for name in table.column_names]
            write_bytes(_csv_text(names, delimiter, excel_safe))
            at_start = False
        for start in range(0, len(table), N_ROWS):
            block = table.slice(start, N_ROWS)
            write_bytes(_csv_text(block.columns, delimiter, excel_safe))

    return write


def _csv_text(columns, delimiter, excel_safe) -> bytes:
    cells = [_csv_cells(column, delimiter, excel_safe) for column in columns]
    empty = '""' if len(cells) == 1 else ""  # a blank line would be no row
    lines = pc.binary_join_element_wise(
        *cells,
        pa.scalar(delimiter, pa.large_string()),
        null_handling="replace",
        null_replacement=empty,
    )
    return "".join(f"{line}\n" for line in lines.to_pylist()).encode()


def _csv_cells(column, delimiter, excel_safe):
    """Return a column as text, with quotes where CSV needs them."""
    text = _is_text(column.type)
    if pa.types.is_floating(column.type):
        column = pc.if_else(pc.is_nan(column), None, column)
    try:
        column = column.cast(pa.large_string())
    except pa.ArrowException:
        what = f"a column of {column.type}; write a .parquet file."
        raise TableError(f"CSV cannot hold {what}") from None
    if text and excel_safe:
        runs = pc.match_substring_regex(column, r"^[=+\-@\t\r\n]")
        number = pc.match_substring_regex(column, NUMBER)
        marked = pc.replace_substring_regex(column, "^", "'", max_replacements=1)
        column = pc.if_else(pc.and_not(runs, number), marked, column)
    special = pc.match_substring_regex(column, f'[{re.escape(delimiter)}"\r\n\ufeff]')
    if not pc.any(special).as_py():
        return column
    quote, nothing = (pa.scalar(part, pa.large_string()) for part in ('"', ""))
    doubled = pc.replace_substring(column, '"', '""')
    quoted = pc.binary_join_element_wise(quote, doubled, quote, nothing)
    return pc.if_else(special, quoted, column)


def _is_text(kind) -> bool:
    return kind in (pa.string(), pa.large_string()) or str(kind) == "string_view"
