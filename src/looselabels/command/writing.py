"""Tables as CSV, Parquet or Feather files, written block by block."""

import bz2
import gzip
import lzma
import os
import re
import sys
from contextlib import contextmanager, nullcontext
from functools import partial

from looselabels._files import new_file
from looselabels.command.places import check_file
from looselabels.command.sources import (
    SUFFIXES,
    TableError,
    default_delimiter,
    pa,
    pc,
    pq,
    without_packing,
)
from looselabels.command.tables import N_ROWS, NUMBER, arrow_table, is_text

NOT_WRITTEN = (*SUFFIXES["Excel"], ".xls", *SUFFIXES["JSON lines"], ".json")


def suffix_for(path) -> str:
    """Return the end of the name of a table with results: its format follows that of the input.

    >>> suffix_for("data.parquet"), suffix_for("data.xlsx"), suffix_for("data.csv.gz")
    ('.parquet', '.csv', '.csv')
    """
    name = without_packing(path)
    kinds = (kind for kind in ("Parquet", "Feather") if name.endswith(SUFFIXES[kind]))
    return next((SUFFIXES[kind][0] for kind in kinds), ".csv")


def format_note(path) -> list[str]:
    """Return a sentence if results are not written in the format of the input, else nothing."""
    if not without_packing(path).endswith(NOT_WRITTEN):
        return []
    return ["The table with suggestions is a CSV file, because this format is only read."]


@contextmanager
def table_writer(path, *, force=False, excel_safe=False):
    """Yield a function that appends a DataFrame to a table at `path`.

    The name determines the format: .parquet, .feather, .csv or .tsv, the last two also compressed
    (.gz, .bz2, .xz, .zst); "-" writes CSV to stdout. The file is written completely or not at all.
    In CSV a missing value is an empty cell.

    Parameters
    ----------
    path : str or path
        The file to write.
    force : bool, default=False
        Whether to replace an existing file.
    excel_safe : bool, default=False
        Whether to put a ' before text in CSV that a spreadsheet would run as a formula, because it
        starts with = + - @. Numbers, including negative ones, are not changed.

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
    check_writable(path)
    check = partial(check_file, force=force)
    suffix = suffix_for(path)
    with new_file(path, check) as temporary, open(temporary, "wb") as handle:
        if suffix != ".csv":
            with _arrow_writer(handle, suffix) as write:
                yield write
        else:
            with _packed(handle, str(path).lower()) as packed:
                yield _csv_writer(packed.write, default_delimiter(path), excel_safe)


def check_writable(path) -> None:
    """Raise if the name of a file promises a format that is not written."""
    if without_packing(path).endswith(NOT_WRITTEN):
        raise TableError(f"{path}: tables are written as .csv, .tsv, .parquet or .feather.")


def _packed(handle, name):
    """Return a file that compresses what is written to it, as its name says."""
    end = os.path.splitext(name)[1]
    if end == ".gz":  # without name and time: the same bytes every time
        return gzip.GzipFile("", "wb", fileobj=handle, mtime=0)
    if end == ".zst":
        return pa.CompressedOutputStream(pa.PythonFile(handle, mode="w"), "zstd")
    if end in (".bz2", ".xz"):
        return (bz2.BZ2File if end == ".bz2" else lzma.LZMAFile)(handle, "wb")
    return nullcontext(handle)


def _write_stdout(data):
    sys.stdout.flush()
    if hasattr(sys.stdout, "buffer"):
        sys.stdout.buffer.write(data)
    else:  # a text-only stream, as in a notebook
        sys.stdout.write(data.decode())


@contextmanager
def _arrow_writer(handle, suffix):
    open_writer = pq.ParquetWriter if suffix == ".parquet" else pa.ipc.new_file
    writer = schema = None

    def write(frame):
        nonlocal writer, schema
        table = arrow_table(frame)
        if writer is None:  # a later block may have text where this one is empty
            types = [(f.name, pa.string() if f.type == pa.null() else f.type) for f in table.schema]
            schema = pa.schema(types)
            writer = open_writer(handle, schema)
        writer.write_table(table.cast(schema))

    try:
        yield write
    finally:
        if writer is not None:
            writer.close()


def _csv_writer(write_bytes, delimiter, excel_safe):
    """Return a function that writes rows as CSV; the first call also writes the header."""
    at_start = True

    def write(frame):
        nonlocal at_start
        table = arrow_table(frame)
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
    empty = '""' if len(cells) == 1 else ""  # readers skip blank lines
    lines = pc.binary_join_element_wise(
        *cells,
        pa.scalar(delimiter, pa.large_string()),
        null_handling="replace",
        null_replacement=empty,
    )
    return "".join(f"{line}\n" for line in lines.to_pylist()).encode()


def _csv_cells(column, delimiter, excel_safe):
    """Return a column as text, quoted where CSV requires it."""
    text = is_text(column.type)
    if pa.types.is_floating(column.type):
        column = pc.if_else(pc.is_nan(column), None, column)
    try:
        column = column.cast(pa.large_string())
    except pa.ArrowException:
        raise TableError(
            f"CSV cannot hold a column of {column.type}; write a .parquet file."
        ) from None
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
