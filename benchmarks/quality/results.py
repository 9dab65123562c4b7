"""The file of results: one line per cell, appended as soon as the cell is done."""

import csv
import io
import os
from pathlib import Path
from typing import NamedTuple

RESULTS = Path(__file__).parent / "results.csv"
SCORES = (
    "macro_f1", "balanced_f1", "log_loss", "calibration_error", "positive_f1", "average_precision",
    "class_prior", "class_prior_error", "auprc", "detection_f1", "corrected", "flagged",
    "count_error", "count_held", "count_width", "label_accuracy", "transition_error", "seconds",
)  # fmt: skip
COLUMNS = ("data", "problem", "labels", "seed", "method", *SCORES, "commit")


class Cell(NamedTuple):
    """One run: a method on a problem, for one seed."""

    data: str
    problem: str
    labels: int  #: per class
    seed: int
    method: str

    def __str__(self):
        return f"{self.data}, {self.problem}, {self.labels} labels, seed {self.seed}: {self.method}"


def read(path) -> dict[Cell, dict]:
    """Return the scores of each cell with a complete line; the last line of a cell counts."""
    if not Path(path).exists():
        return {}
    content = Path(path).read_text(encoding="utf-8")
    whole = content[: content.rfind("\n") + 1]
    if not whole:
        return {}
    reader = csv.DictReader(io.StringIO(whole, newline=""))
    if tuple(reader.fieldnames or ()) != COLUMNS:
        raise ValueError(
            f"{path}: the first line is not the header of a results file. Move the file away."
        )
    found = {}
    for number, row in enumerate(reader, start=2):
        try:
            cell = cell_of(row)
            found[cell] = {name: float(row[name]) for name in SCORES if row[name]}
        except (ValueError, TypeError, KeyError):
            raise ValueError(f"{path}: line {number} is not a row of results.") from None
    return found


def commits(path) -> dict[str, set[str]]:
    """Return the commits of each method's results; a + means that files differed from it."""
    found: dict[str, set[str]] = {}
    with open(path, encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            found.setdefault(row["method"], set()).add(row["commit"] or "unknown")
    return found


def cell_of(row) -> Cell:
    return Cell(row["data"], row["problem"], int(row["labels"]), int(row["seed"]), row["method"])


def tidy(path, redo=()):
    """Sort the lines; drop an incomplete last line and the methods in `redo`."""
    path = Path(path)
    found = read(path)  # raises, before anything is changed, if this is not a results file
    rows = {}
    if found:
        whole = path.read_text(encoding="utf-8")
        reader = csv.DictReader(io.StringIO(whole[: whole.rfind("\n") + 1], newline=""))
        rows = {cell_of(row): _line(row.values()) for row in reader if row["method"] not in redo}
    part = path.with_name(path.name + ".part")
    part.write_text(_line(COLUMNS) + "".join(rows[cell] for cell in sorted(rows)), encoding="utf-8")
    part.replace(path)


def append(path, cell, scores, commit):
    """Append the line of a cell."""
    numbers = [f"{scores[name]:.4g}" if name in scores else "" for name in SCORES]
    with open(path, "a", encoding="utf-8") as file:
        file.write(_line([*cell, *numbers, commit]))
        file.flush()
        os.fsync(file.fileno())


def _line(values):
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerow(values)
    return text.getvalue()
