"""Files that hold a table: opened, decompressed, and recognized by their first bytes."""

import bz2
import codecs
import gzip
import io
import lzma
import os
import re
import sys
import zlib
from collections import Counter
from contextlib import contextmanager, nullcontext, suppress
from difflib import get_close_matches

import numpy as np

from looselabels._validation import import_extra, short_repr, some_of
from looselabels.estimation.sampling import MAX_FIT_ROWS

BLOCK = 8 * 1024**2  # bytes that are parsed at once; a longer row is an error
ROW_BYTES, COPIES = (
    100,
    3,
)  # about what a row needs besides its cells, and how often cells are copied
PACKED = {".gz": b"\x1f\x8b", ".bz2": b"BZh", ".xz": b"\xfd7zXZ", ".zst": b"\x28\xb5\x2f\xfd"}
# Formats other than text, by their first bytes, with the file names that promise them.
MAGIC = {b"PAR1": "Parquet", b"ARROW1": "Feather", b"\xff" * 4: "Feather", b"PK\3\4": "Excel"}
SUFFIXES = {
    "Parquet": (".parquet", ".pq"),
    "Feather": (".feather", ".arrow", ".ipc"),
    "Excel": (".xlsx", ".xlsm"),
    "JSON lines": (".jsonl", ".ndjson"),
}
REFUSED = {  # by the first bytes
    codecs.BOM_UTF16_LE: "is UTF-16; save it as UTF-8",
    codecs.BOM_UTF16_BE: "is UTF-16; save it as UTF-8",
    b"\xd0\xcf\x11\xe0": "is an .xls file of old versions of Excel, or an Excel file with a "
    "password; save it as .xlsx without a password",
    b"FEA1": "is a Feather file of version 1; write it again with a current version of pyarrow",
}


class _Extra:
    """An optional module, imported when it is first used."""

    def __init__(self, module, extra="cli"):
        self._module, self._extra = module, extra

    def __getattr__(self, name):
        return getattr(import_extra(self._module, f'"looselabels[{self._extra}]"'), name)


pa, pc, pd = _Extra("pyarrow"), _Extra("pyarrow.compute"), _Extra("pandas")
pq, pacsv = _Extra("pyarrow.parquet"), _Extra("pyarrow.csv")
openpyxl = _Extra("openpyxl", "excel")


class TableError(ValueError):
    """A table that cannot be used: what is wrong, where, and what to do."""


class Source:
    """Where a table comes from. With `keep`, stdin is stored so that it can be read twice."""

    def __init__(self, source, delimiter=None, sheet=None, keep=False):
        self.source, self.name, self.sheet = (
            source,
            "stdin" if source == "-" else str(source),
            sheet,
        )
        self.delimiter = delimiter or default_delimiter(self.name)
        self.kept = sys.stdin.buffer.read() if keep and source == "-" else None
        self.can_rewind = os.path.isfile(source) if source != "-" else keep

    @contextmanager
    def open(self):
        """Open the source, decompressed if needed; raise if it is clearly not a table."""
        with self._raw() as raw:
            stream = raw if hasattr(raw, "peek") else io.BufferedReader(raw)
            stream = self._unpack(stream)
            head = self.unpacked(stream.peek, 8)
            for start, reason in REFUSED.items():
                if head.startswith(start):
                    raise TableError(f"{self.name} {reason}.")
            yield stream

    def format(self, stream) -> str:
        """Return the format of the opened source: "CSV", "JSON lines", or a value of `MAGIC`."""
        head, name = stream.peek(8), without_packing(self.name)
        found = [kind for start, kind in MAGIC.items() if head.startswith(start)]
        named = [kind for kind, ends in SUFFIXES.items() if name.endswith(ends)]
        if found or named == ["JSON lines"]:
            return (found or named)[0]
        if named:
            start = next(start for start, kind in MAGIC.items() if kind == named[0])
            raise TableError(
                f"{self.name} is not {'an' if named[0] == 'Excel' else 'a'} {named[0]} file: it "
                f"does not start with {short_repr(start.decode())[1:-1]}."
            )
        if name.endswith(".json"):
            raise TableError(
                f"{self.name} is JSON, which has no rows. Write one object per line to a .jsonl "
                "file (in pandas: to_json(…, orient='records', lines=True)), or rename the file if "
                "that is what it contains."
            )
        return "CSV"

    def _raw(self):
        if self.source != "-":
            return open(self.source, "rb")
        return nullcontext(sys.stdin.buffer if self.kept is None else io.BytesIO(self.kept))

    def _unpack(self, stream):
        """Return the stream, decompressed if its first bytes say that it is compressed."""
        head = stream.peek(8)
        if head.startswith(PACKED[".gz"]):
            return gzip.GzipFile(fileobj=stream)
        if head.startswith(PACKED[".bz2"]):
            return bz2.BZ2File(stream)
        if head.startswith(PACKED[".xz"]):
            return lzma.LZMAFile(stream)
        if head.startswith(PACKED[".zst"]):
            return io.BufferedReader(_Zstandard(stream))
        return stream

    def unpacked(self, read, size):
        """Return the result of `read`; raise TableError if the compressed data is damaged."""
        try:
            return read(size)
        except (EOFError, OSError, zlib.error, lzma.LZMAError) as error:
            if isinstance(error, OSError) and error.errno is not None:
                raise  # of the operating system
            reason = one_line(error).removesuffix(".")
            raise TableError(f"{self.name} is damaged: {reason}. Compress it again.") from error


class _Zstandard(io.RawIOBase):
    """A stream that is compressed with Zstandard: pyarrow's, with the methods that Python needs."""

    def __init__(self, stream):
        self.stream = pa.CompressedInputStream(pa.PythonFile(stream, mode="r"), "zstd")

    def readable(self):
        """Say that it can be read."""
        return True

    def readinto(self, buffer):
        """Fill the buffer with the next bytes, and return their number."""
        data = self.stream.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)


class Utf8:
    """A byte stream that counts lines and quotes, and raises at NUL bytes and invalid UTF-8."""

    def __init__(self, stream, source):
        self.stream, self.source = stream, source
        self.lines = self.quotes = 0
        self.decoder = codecs.getincrementaldecoder("utf-8")()

    def row_blocks(self, delimiter):
        """Yield blocks of bytes that end where a row ends; only the end of the file may be cut."""
        rest, line = b"", self.lines + 1
        while data := self._checked(self.source.unpacked(self.stream.read, BLOCK)):
            data = rest + data
            end = _end_of_rows(data, delimiter)
            line += data.count(b"\n", 0, end)
            if end:
                yield data[:end]
            rest = data[end:]
            if len(rest) > BLOCK:
                raise TableError(
                    f"{self.source.name}, line {line}: a row is longer than {BLOCK:,} bytes. Is a "
                    'quote (") not closed there?'
                )
        if rest:
            yield rest

    def text_lines(self):
        """Yield the lines as text, the first one without a byte order mark."""
        mark = "\ufeff"
        while line := self.source.unpacked(self.stream.readline, BLOCK):
            if len(line) == BLOCK and not line.endswith(b"\n"):
                raise TableError(
                    f"{self.source.name}, line {self.lines + 1}: longer than {BLOCK:,} bytes. "
                    "Is a line end missing?"
                )
            yield self._checked(line, final=True).decode().removeprefix(mark)
            mark = ""

    def _checked(self, data, final=False):
        whole = self.decoder.getstate()[0] + data  # starts with a character that the last block cut
        bad, reason = whole.find(b"\0"), "a NUL byte, so it is not a CSV file."
        try:
            self.decoder.decode(data, final=final or not data)
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


def _end_of_rows(data, delimiter) -> int:
    """Return where the last whole row ends; `data` starts with a row.

    A quote at the start of a cell encloses it; any other quote is a character like others.
    """
    if b'"' not in data:
        return data.rfind(b"\n") + 1
    characters = np.frombuffer(b"\n" + data, np.uint8)
    quotes = np.flatnonzero(characters == ord('"'))
    before_opening = characters[quotes[::2] - 1]
    if not np.isin(before_opening, list(b'\r\n"' + delimiter.encode())).all():
        return _end_of_odd_rows(data, delimiter)
    ends = np.flatnonzero(characters == ord("\n"))  # the first is before the data
    is_outside = np.searchsorted(quotes, ends) % 2 == 0
    return int(ends[is_outside][-1])


def _end_of_odd_rows(data, delimiter) -> int:
    """Return the same for rows with quotes within cells, which need to be read one by one."""
    separators = rb"\r\n" + re.escape(delimiter.encode())
    quoted = rb'(?<![^%b])"(?>[^"]*(?:""[^"]*)*)"' % separators
    other = rb'(?<=[^%b])"' % separators
    row = re.compile(rb'[^"\n]*(?:(?>%b|%b)[^"\n]*)*\n' % (quoted, other))
    end = 0
    while match := row.match(data, end):
        end = match.end()
    return end


# ------------------------------------------------------------------------------------------ memory


def within_memory(batches, name):
    """Yield record batches of a table; raise MemoryError before what is kept fills the memory.

    A small file can hold a huge table. Cells are copied later, as text and as numbers, those of a
    large table only in a sample of its rows; the label and the probabilities of each row are kept.
    """
    free, size, n_rows = _free_memory(), 0, 0
    for batch in batches:
        size, n_rows = size + batch.nbytes, n_rows + len(batch)
        copied = size * min(1, MAX_FIT_ROWS / max(n_rows, 1))
        if COPIES * (copied + ROW_BYTES * n_rows) > free:
            raise MemoryError(
                f"{name} has more than {n_rows:,} rows, too many for the {free / 2**30:.1f} GiB "
                "that are free"
            )
        yield batch


def _free_memory() -> float:
    """Return how many bytes can be used; infinity where the system does not say."""
    free = float("inf")
    with suppress(OSError, ValueError), open("/proc/meminfo", encoding="ascii") as file:
        found = re.search(r"MemAvailable:\s+(\d+) kB", file.read())
        free = 1024.0 * int(found[1]) if found else free
    with suppress(OSError, ValueError), open("/sys/fs/cgroup/memory.max", encoding="ascii") as file:
        free = min(free, float(file.read()))  # the limit of a container, or "max"
    return free


# ------------------------------------------------------------------------------------------- names


def without_packing(name) -> str:
    """Return a file name in lower case, without the end that says how the file is compressed.

    >>> without_packing("Data.CSV.zst")
    'data.csv'
    """
    stem, end = os.path.splitext(str(name).lower())
    return stem if end in PACKED else stem + end


def default_delimiter(name) -> str:
    """Return the delimiter that goes with a file name."""
    return "\t" if without_packing(name).endswith((".tsv", ".tab")) else ","


def check_columns(names, label, name):
    """Raise if a column has no name, two have the same name, or the label column is missing."""
    for position, column in enumerate(names):
        if not column:
            raise TableError(
                f"{name}: column {position + 1} of {len(names)} has no name; give it one in the "
                "header. (For row numbers written by pandas: to_csv(…, index=False).)"
            )
    twice = [column for column, count in Counter(names).items() if count > 1]
    if twice:
        raise TableError(f"{name} has more than one column {some_of(twice)}; rename them.")
    if label is not None and label not in names:
        raise TableError(f"{name} has no column {short_repr(label)}.{nearest(label, names)}")


def nearest(name, names) -> str:
    """Return the end of a message about an unknown name: the closest of `names`, and the names."""
    lower = {str(known).lower(): known for known in names}
    close = get_close_matches(str(name).lower(), lower, n=1)
    hint = f" Did you mean {short_repr(lower[close[0]])}?" if close else ""
    return f"{hint} It has {some_of(list(names), 10)}."


def one_line(error) -> str:
    """Return the message of an error without line breaks and control characters."""
    text = " ".join(str(error).split())
    return text if text.isprintable() else ascii(text)[1:-1]
