"""Tables other than CSV as Arrow record batches: Parquet, Feather, JSON lines and Excel.

Parquet and Feather files keep their types. Cells of JSON lines and Excel become text, as in CSV:
`features.py` then decides in one way for all of them which columns are numbers.
"""

import json
import warnings
import zipfile
from datetime import datetime, time
from itertools import islice

from looselabels._validation import parse_json, short_repr, some_of
from looselabels.command.sources import (
    TableError,
    Utf8,
    check_columns,
    one_line,
    openpyxl,
    pa,
    pq,
)

EXCEL_ROWS = 2**20  # the most that Excel writes
ROWS_AT_ONCE = 2**16  # of a Parquet file: a few kilobytes can hold millions of equal rows


def parquet_batches(stream, source, n_rows, label):
    """Yield the record batches of a Parquet file."""
    _check_seekable(stream, source, "Parquet")
    try:
        file = pq.ParquetFile(stream)
        check_columns(file.schema_arrow.names, label, source.name)
        yield from file.iter_batches(batch_size=min(n_rows, ROWS_AT_ONCE))
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise _arrow_error(error, source) from error


def feather_batches(stream, source, n_rows, label):
    """Yield the record batches of a Feather file (Arrow IPC), or of a stream in Arrow's format."""
    is_file = stream.peek(6).startswith(b"ARROW1")
    if is_file:
        _check_seekable(stream, source, "Feather")
    try:
        reader = pa.ipc.open_file(stream) if is_file else pa.ipc.open_stream(stream)
        check_columns(reader.schema.names, label, source.name)
        batches = map(reader.get_batch, range(reader.num_record_batches)) if is_file else reader
        for batch in batches:
            batch.validate(full=True)  # Arrow follows offsets of a damaged file out of its memory
            yield batch
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise _arrow_error(error, source) from error


def _arrow_error(error, source):
    """Return the error to raise for one of pyarrow: a file too large for memory is not damaged."""
    if isinstance(error, MemoryError):
        return MemoryError(f"{source.name} cannot be read, {one_line(error)}")
    return TableError(f"{source.name} is damaged: {one_line(error)}")


def _check_seekable(stream, source, kind):
    if not stream.seekable():
        raise TableError(f"{source.name} is {kind}, which cannot be read from a pipe; pass a file.")


def _text_batch(names, rows):
    """Return rows, mappings from column to text, as a record batch; other cells are missing."""
    columns = ([row.get(name) for row in rows] for name in names)
    return pa.record_batch([pa.array(column, pa.string()) for column in columns], list(names))


# -------------------------------------------------------------------------------------- JSON lines


def json_batches(stream, source, n_rows, label):
    """Yield the record batches of a file with one JSON object per line.

    The columns are the keys of the first `n_rows` objects; a later object with another key is an
    error. An object may lack keys.
    """
    rows = json_rows(stream, source)
    block = list(islice(rows, n_rows))
    names = dict.fromkeys(key for _, row in block for key in row)
    if not block:
        raise TableError(f"{source.name} is empty; it needs one JSON object per line.")
    check_columns(list(names), label, source.name)
    while block:
        for line, row in block:
            if not row.keys() <= names.keys():
                key = next(key for key in row if key not in names)
                raise TableError(
                    f"{source.name}, line {line}: the key {short_repr(key)} is not in the first "
                    f"{n_rows:,} lines; add it to line 1, as null."
                )
        yield _text_batch(names, [row for _, row in block])
        block = list(islice(rows, n_rows))


def json_rows(stream, source):
    """Yield the line number of each object and its values as text; blank lines are skipped."""
    for line, text in enumerate(Utf8(stream, source).text_lines(), 1):
        if not text.strip():
            continue
        where = f"{source.name}, line {line}"
        try:
            row = parse_json(text, parse_int=str, parse_float=str)
        except (ValueError, RecursionError) as error:  # a JSON error counts lines from 1 again
            reason = error.msg if isinstance(error, json.JSONDecodeError) else error
            raise TableError(f"{where}: not valid JSON: {reason}.") from None
        if not isinstance(row, dict):
            raise TableError(f'{where}: {short_repr(row)} is not an object, such as {{"a": 1}}.')
        for key in row:
            _json_cell(key, where, key)
        yield line, {key: _json_cell(value, where, key) for key, value in row.items()}


def _json_cell(value, where, key):
    if isinstance(value, bool):
        return str(value).lower()
    if not isinstance(value, str | None):
        raise TableError(
            f"{where}, key {short_repr(key)}: {short_repr(value)} is not a single value. Write its "
            "parts to keys of their own."
        )
    try:
        return value.encode().decode() if value else None
    except UnicodeEncodeError:
        raise TableError(
            f"{where}, key {short_repr(key)}: half of a character, an unpaired surrogate. Correct "
            "the text."
        ) from None


# ------------------------------------------------------------------------------------------- Excel


def excel_batches(stream, source, n_rows, label):
    """Yield the record batches of a sheet of an Excel file; a warning names the sheet."""
    _check_seekable(stream, source, "an Excel file")
    is_chosen = source.sheet is not None
    rows, sheets = excel_rows(stream, source)
    name, others = table_name(source), [] if is_chosen else sheets[1:]
    hint = f" For another sheet, pass --sheet: {some_of(others, 10)}." if others else ""
    warnings.warn(f"Sheet {short_repr(source.sheet)} was read.{hint}", stacklevel=2)
    try:
        _check_sheet(rows, label, name)
    except TableError as error:
        raise TableError(f"{error}{hint}") from None
    (_, names), *rows = rows
    for start in range(0, len(rows), n_rows):
        block = rows[start : start + n_rows]
        yield _text_batch(names, [dict(zip(names, cells, strict=False)) for _, cells in block])


def _check_sheet(rows, label, name):
    """Raise if the rows of a sheet are not a table with the column of labels."""
    if not rows:
        raise TableError(f"{name} is empty; it needs a header and rows.")
    (header_row, names), *rows = rows
    check_columns(names, label, name)
    for row, cells in rows:
        if len(cells) > len(names):
            raise TableError(
                f"{name}, row {row}: {len(cells)} cells where the header, row {header_row}, has "
                f"{len(names)}, {short_repr(cells[-1])}. The sheet must contain one table only."
            )


def excel_rows(stream, source) -> tuple[list, list]:
    """Return the rows of a sheet that are not empty, and the names of all sheets.

    A row is its number and its cells as text. The sheet of `source` is set to the one that is read.
    """
    _check_excel(stream, source.name)
    with warnings.catch_warnings():  # about styles and extensions, which do not matter
        warnings.simplefilter("ignore")
        try:
            book = openpyxl.load_workbook(stream, read_only=True, data_only=True)
            names = [sheet.title for sheet in book.worksheets]
            sheet = book.worksheets[_sheet_position(names, source)]
            sheet.reset_dimensions()  # some programs write wrong ones
            rows = list(_filled_rows(sheet, source))
        except (TableError, ImportError, MemoryError):
            raise
        except Exception as error:  # a damaged file can lead to an error of any type
            raise TableError(f"{source.name} is damaged: {one_line(error)}.") from error
    return rows, names


def table_name(source) -> str:
    """Return the name of a source for messages, with the sheet of an Excel file."""
    return f"{source.name}, sheet {short_repr(source.sheet)}" if source.sheet else source.name


def _check_excel(stream, name):
    """Raise if a zip file is not an Excel file."""
    try:
        content = zipfile.ZipFile(stream).namelist()
    except zipfile.BadZipFile as error:
        raise TableError(f"{name} is a damaged zip or Excel file: {one_line(error)}.") from None
    stream.seek(0)
    if "xl/workbook.xml" in content:
        return
    if "content.xml" in content or "xl/workbook.bin" in content:
        raise TableError(f"{name} is not an .xlsx file; save it as .xlsx or CSV (UTF-8).")
    raise TableError(f"{name} is a zip archive; unpack it and pass the table.")


def _sheet_position(names, source) -> int:
    """Return the position of the sheet to read, and name it in the source."""
    if not names:
        raise TableError(f"{source.name} has no sheet with cells.")
    source.sheet = names[0] if source.sheet is None else source.sheet
    if source.sheet not in names:
        raise TableError(
            f"{source.name} has no sheet {short_repr(source.sheet)}. It has {some_of(names, 10)}."
        )
    return names.index(source.sheet)


def _filled_rows(sheet, source):
    """Yield the number and the cells of each row that is not empty."""
    for number, row in enumerate(sheet.iter_rows(), 1):
        if number > EXCEL_ROWS:  # a forged number of a row stands for as many empty ones
            raise TableError(f"{table_name(source)} has more than {EXCEL_ROWS:,} rows.")
        if cells := _excel_cells(row, source):
            yield number, cells


def _excel_cells(row, source) -> list:
    """Return the cells of a row as text, without empty ones at the end."""
    cells = [_excel_text(cell, source) for cell in row]
    while cells and cells[-1] is None:
        cells.pop()
    return cells


def _excel_text(cell, source) -> str | None:
    value = cell.value
    if value is None or value == "":
        return None
    if cell.data_type == "e":
        raise TableError(
            f"{table_name(source)}, cell {cell.coordinate}: the error {value}. Correct its formula "
            "or empty the cell."
        )
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, datetime) and value.time() == time():
        value = value.date()
    return str(value)
