"""Result files: one CSV per experiment, to which complete cells are appended."""

import csv
import fcntl
import io
import os
from contextlib import contextmanager
from pathlib import Path

from experiments.cells import Cell
from looselabels._files import check_parent, new_file

COLUMNS = (
    "data", "model", "problem", "labels_a_class", "weights", "seed", "setting", "strength",
    "method", "macro_f1", "positive_f1", "log_loss", "transition_error", "seconds", "version",
    "commit", "rows",
)  # fmt: skip
# `rows` is the number of rows of the cell. It shows whether the cell is complete.


class Locked(Exception):
    """Another run is writing to the same folder."""


class Results:
    """The rows of one experiment, in ``<folder>/<experiment>.csv``."""

    def __init__(self, folder, experiment):
        self.path = Path(folder) / f"{experiment}.csv"
        self.cells: set[Cell] = set()

    def recover(self):
        """Read which cells are complete, and remove an incomplete cell at the end of the file."""
        if not self.path.exists():
            return self
        content = self.path.read_bytes()
        whole, self.cells = _whole_cells(self.path, content)
        if whole < len(content):
            with open(self.path, "r+b") as file:
                file.truncate(whole)
                os.fsync(file.fileno())
        return self

    def append(self, cell, rows):
        """Append all rows of a cell; if this fails, the file is left as it was."""
        text = io.StringIO()
        writer = csv.DictWriter(text, COLUMNS, restval="", lineterminator="\n")
        size = self.path.stat().st_size if self.path.exists() else 0
        if size == 0:
            writer.writeheader()
        writer.writerows({**_as_text(row), "rows": len(rows)} for row in rows)
        with open(self.path, "ab") as file:
            try:
                _write(file, text.getvalue().encode())
            except BaseException:  # including Ctrl-C: a cell is never written in part
                os.ftruncate(file.fileno(), size)
                raise
        self.cells.add(cell)


def _write(file, content):
    file.write(content)
    file.flush()
    os.fsync(file.fileno())


def _as_text(row):
    return {
        name: "" if value is None else f"{value:.6g}" if isinstance(value, float) else value
        for name, value in row.items()
    }


def write_table(path, rows):
    """Write a small table; if this fails, no file is left."""
    text = io.StringIO()
    writer = csv.DictWriter(text, rows[0], lineterminator="\n")
    writer.writeheader()
    writer.writerows(map(_as_text, rows))
    with new_file(path, check_parent) as temporary, open(temporary, "wb") as file:
        _write(file, text.getvalue().encode())


def read_table(path, columns) -> list[dict]:
    """Return the rows of a small table as text; no rows if the file does not exist."""
    if not Path(path).exists():
        return []
    with open(path, encoding="utf-8", newline="") as file:
        table = csv.DictReader(file)
        missing = [name for name in columns if name not in (table.fieldnames or ())]
        if missing:
            raise ValueError(f"{path}: the first line has no column {missing[0]!r}. Move it away.")
        return list(table)


def read_rows(path) -> list[dict]:
    """Return the rows of a results file as text, without incomplete cells."""
    content = Path(path).read_bytes()
    whole, _ = _whole_cells(path, content)
    return list(csv.DictReader(io.StringIO(content[:whole].decode(), newline="")))


def cell_of(row) -> Cell:
    """Return the cell that a row belongs to."""
    setting = row["setting"].split()[0]
    return Cell(row["problem"], int(row["labels_a_class"]), int(row["seed"]), setting)


def _whole_cells(path, content):
    """Return the number of bytes that hold complete cells, and these cells."""
    lines = content.splitlines(keepends=True)
    if lines and not lines[-1].endswith(b"\n"):
        lines.pop()
    if not lines:
        return 0, set()
    if lines[0].decode().strip().split(",") != list(COLUMNS):
        raise ValueError(
            f"{path}: the first line is not the header of a results file. Move it away."
        )
    cells, whole, at = set(), len(lines[0]), 1
    while at < len(lines):
        try:
            (row,) = csv.DictReader([lines[at].decode()], COLUMNS)
            cell, n_rows = cell_of(row), int(row["rows"])
        except (ValueError, TypeError, AttributeError, IndexError):
            raise ValueError(f"{path}: line {at + 1} is not a row of results.") from None
        if at + n_rows > len(lines):
            break
        cells.add(cell)
        whole += sum(len(line) for line in lines[at : at + n_rows])
        at += n_rows
    return whole, cells


@contextmanager
def locked(folder):
    """Lock `folder` for one run; the system releases the lock even after a crash."""
    path = Path(folder) / ".lock"
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "a+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            pid = file.read().strip() or "unknown"
            raise Locked(f"{folder} is in use by another run (process {pid}).") from None
        file.truncate(0)
        file.write(str(os.getpid()))
        file.flush()
        yield
        file.truncate(0)
