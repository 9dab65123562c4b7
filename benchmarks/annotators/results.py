"""The file of results: one line per cell, appended as soon as the cell is done."""

import csv
from pathlib import Path

from benchmarks.annotators.methods import Cell

RESULTS = Path(__file__).parent / "results.csv"
SCORES = (
    "right", "macro_f1", "log_loss", "intervals", "held", "cross_predictions", "time_ratio",
    "seconds", "certainty",
)  # fmt: skip
COLUMNS = (*Cell._fields, *SCORES, "commit")


def read(path) -> dict[Cell, dict]:
    """Return the scores of each cell with a complete line; the last line of a cell counts."""
    return {cell: scores for cell, scores, _ in _lines(path)}


def commits(path, methods) -> str:
    """Return the commits that methods were measured with; a + means that files differed."""
    return ", ".join(sorted({commit for cell, _, commit in _lines(path) if cell.method in methods}))


def keep(path, wanted):
    """Rewrite the file with the cells for which `wanted` is true, sorted."""
    lines = {cell: (scores, commit) for cell, scores, commit in _lines(path) if wanted(cell)}
    part = path.with_name(path.name + ".part")
    with open(part, "w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerow(COLUMNS)
    for cell in sorted(lines):
        append(part, cell, *lines[cell])
    part.replace(path)


def append(path, cell, scores, commit):
    """Append the line of a cell."""
    numbers = [f"{scores[name]:.5g}" if name in scores else "" for name in SCORES]
    with open(path, "a", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerow([*cell, *numbers, commit])


def _lines(path):
    """Yield cell, scores and commit of each complete line."""
    if not Path(path).exists():
        return
    with open(path, encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            if row["commit"]:
                numbers = {"answers": int(row["answers"]), "seed": int(row["seed"])}
                cell = Cell(**{name: row[name] for name in Cell._fields} | numbers)
                scores = {name: float(row[name]) for name in SCORES if row.get(name)}
                yield cell, scores, row["commit"]
