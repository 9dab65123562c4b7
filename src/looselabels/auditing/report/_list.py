"""The list of rows, and what the page needs to review them."""

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from hashlib import sha256
from html import escape

from looselabels.auditing.report._words import (
    clean,
    count,
    counted_classes,
    exact_text,
    is_about_unlabeled,
    is_number,
    name,
    plural,
    tuple_from_json,
)
from looselabels.transition import is_missing, named_class

MAX_ROWS = 500  # that are listed
MAX_COLUMNS = 20  # of the table that are shown
MAX_PROBABILITIES = 3  # of each row
MAX_CELL = 1_000  # letters
LONG_CELL = 80  # letters; a column with longer cells gets more room
MAX_CELLS = 600_000  # letters of all cells together; escaped, each takes up to five bytes
MAX_REVIEW = 3_000_000  # bytes of names and identifiers, which cannot be shortened
LONG_NUMBER = re.compile(r"-?\d+\.\d{5,}")
FROM_0 = "Rows are counted from 0: row 0 is the first row of the data."


def row_list(content: Mapping) -> dict:
    """Return the list of rows as the template shows it."""
    unlabeled, positions = is_about_unlabeled(content), _asked(content)
    rows = [content["rows"][i] for i in positions]
    has_ids = all("id" in row for row in rows)
    rows = [row if has_ids else {**row, "id": row["row"]} for row in rows]
    labels, suggestions = (ListedNames(row[key] for row in rows) for key in ("label", "suggestion"))
    columns, cells = cells_of(content, rows)
    review = _review(content, rows)
    to_check = [row.get("to_check", True) for row in rows]
    return {
        "unlabeled": unlabeled,
        "negative": negative_class(content, _classes(content, rows)),
        "positions": positions,
        "id_name": name(content.get("id_name") or "Row") if has_ids else "Row (from 0)",
        "id_note": clean(content.get("id_note") or "") if has_ids else FROM_0,
        "why_empty": "" if rows else _why_empty(content),
        "how_many": _how_many(content, len(rows), sum(to_check)),
        "n_to_check": sum(to_check) or len(rows),  # what the progress of a review refers to
        "columns": columns,
        "left_out": left_out(content, rows) + _no_review(rows, review),
        "rows": [
            {
                **row,
                "label_id": labels.ids[tuple_from_json(row["label"])],
                "class_id": suggestions.ids[tuple_from_json(row["suggestion"])],
                "why": row.get("why") or "",
                "cells": shown,
                "probabilities": _probabilities(row),
                "to_check": check or not any(to_check),
            }
            for row, shown, check in zip(rows, cells, to_check, strict=True)
        ],
        "is_long": [max(map(len, texts)) > LONG_CELL for texts in zip(*cells, strict=True)],
        "labels": labels.options(),
        "classes": suggestions.options(),
        "review": review,
    }


class ListedNames:
    """The names in a column of the list: their numbers in the page, and how many rows have them."""

    def __init__(self, values):
        self.counts = Counter(map(tuple_from_json, values))
        self.ids = {value: i for i, value in enumerate(self.counts)}

    def options(self) -> list[tuple[int, str, int]]:
        """Return number, name and rows of each value, in the order of a menu."""
        options = [(self.ids[value], name(value), n) for value, n in self.counts.items()]
        return sorted(options, key=lambda option: option[1].casefold())


def _asked(content) -> list[int]:
    """Return the positions of the rows that the question is about, at most `MAX_ROWS`.

    Rows without a label cannot have a wrong one. If the question is about them, they are the only
    ones, unless the missing label has a name, which the page does not know.
    """
    rows = content.get("rows") or []
    missing = [i for i, row in enumerate(rows) if is_missing(tuple_from_json(row["label"]))]
    if is_about_unlabeled(content):
        return (missing or [*range(len(rows))])[:MAX_ROWS]
    left_out = {i for i in missing if not rows[i]["doubt"]}
    return [i for i in range(len(rows)) if i not in left_out][:MAX_ROWS]


def _probabilities(row) -> list:
    """Return the suggested class and the next classes, each with its probability."""
    others = [pair for pair in row.get("probabilities") or () if pair[0] != row["suggestion"]]
    return [(row["suggestion"], row["class_proba"]), *others][:MAX_PROBABILITIES]


def cells_of(content, rows) -> tuple[list[str], list[list[str]]]:
    """Return the names of the shown columns, and the texts of each row."""
    columns = (content.get("shown_columns") or [])[:MAX_COLUMNS]
    letters = _max_cell(len(columns) * len(rows))
    texts = []
    for row in rows:
        # a row may have fewer cells than there are columns
        cells = [*row.get("cells", ()), *[None] * len(columns)][: len(columns)]
        texts.append(["" if cell is None else _cell(cell, letters) for cell in cells])
    return [name(c) for c in columns], texts


def _cell(value, max_letters: int) -> str:
    """Return a cell in one line; numbers with many decimals are rounded.

    >>> _cell("2.806139358515022", 100), _cell("a  b", 100), _cell("12345678", 5)
    ('2.8061', 'a b', '1234…')
    """
    text = clean(value, max_letters)
    if not LONG_NUMBER.fullmatch(text):
        return text
    return f"{float(text):.5g}" if abs(float(text)) < 10_000 else f"{float(text):.1f}"


def _max_cell(n_cells: int) -> int:
    return min(MAX_CELL, MAX_CELLS // max(n_cells, 1))


# --------------------------------------------------------------------------- sentences on the list


def _how_many(content, n_listed: int, n_first: int) -> str:
    """Return how many rows should be checked, and where those are that are not listed.

    The `n_first` rows of the list are to be checked.
    """
    table, found = content.get("table_file"), []
    if is_about_unlabeled(content):
        n_to_check = sum(part["expected"] for part in counted_classes(content))
        rows = f"About {count(n_to_check)} unlabeled rows are probably of a labeled class"
    else:
        n_to_check = content.get("n_to_check", content["wrong"].get("doubted"))
        rows = f"{count(n_to_check)} labels are more likely wrong than right"
    if is_number(n_to_check) and round(n_to_check) > n_listed:
        found.append(f"{rows}; this page lists the first {n_listed:,}.")
    if 0 < n_first < n_listed:
        is_so, others = "more likely wrong than right", "probably right"
        if is_about_unlabeled(content):
            is_so, others = "probably of a labeled class", "probably not"
        found.append(
            f"The first {n_first:,} are {is_so}; the other {n_listed - n_first:,} are {others}."
        )
    if table:
        found.append(f"{name(table)} has all rows.")
    return " ".join(found)


def _why_empty(content) -> str:
    """Return why no row is listed, if the features do not predict the labels."""
    useless = (
        found["words"]
        for found in content.get("findings") or ()
        if found["kind"] == "features" and found["found"]
    )
    return clean(next(useless, ""))


def left_out(content, rows) -> list[str]:
    """Return sentences on what was left out to keep the page small."""
    columns = content.get("shown_columns") or []
    n_cells = min(len(columns), MAX_COLUMNS) * len(rows)
    longest = max((len(str(cell)) for row in rows for cell in row.get("cells", ())), default=0)
    found = []
    if len(columns) > MAX_COLUMNS:
        more = plural(len(columns) - MAX_COLUMNS, "more column is", "more columns are")
        found.append(f"{more} not shown.")
    if longest > _max_cell(n_cells):
        found.append(f"Texts are cut after {_max_cell(n_cells):,} letters.")
    return found


def _no_review(rows, review) -> list[str]:
    if not rows or review is not None:
        return []
    return ["Rows cannot be decided here: their names and identifiers are too long."]


# --------------------------------------------------------------------------------------- the review


def _cell_of(label):
    """Return a label as its cell in the table: without the source of a pair (source, label)."""
    return label[-1] if isinstance(label, list | tuple) else label


def _review(content, rows) -> dict | None:
    """Return what decisions.csv needs, exactly: identifiers, names, doubts.

    `names` holds each name once; classes, labels and suggestions are positions in it, and `kept` is
    the position in `classes` of the class that the label names or, without a label, of the class
    that is never labeled. The doubt of a row without a label is the probability that it is of a
    labeled class. The key under which the browser stores decisions depends on all of it, so
    decisions never reach another page. None: there are no rows, or names and identifiers are too
    long for a page.
    """
    classes = _classes(content, rows)
    value = "positive_proba" if is_about_unlabeled(content) else "doubt"
    negative = negative_class(content, classes)
    names: dict[str, int] = {}
    data = {
        "classes": [names.setdefault(exact_text(c), len(names)) for c in classes],
        "rows": [
            {
                "id": exact_text(row["id"]),
                "label": names.setdefault(exact_text(_cell_of(row["label"])), len(names)),
                "suggestion": names.setdefault(exact_text(row["suggestion"]), len(names)),
                "kept": _kept(row["label"], classes, negative),
                "doubt": doubt if is_number(doubt := row.get(value, row["doubt"])) else None,
                "hash": exact_text(row.get("hash")),
            }
            for row in rows
        ],
        "names": list(names),
    }
    written = json.dumps(data)
    if not rows or len(escape(written)) > MAX_REVIEW:
        return None
    return {"data": written, "key": "looselabels-" + sha256(written.encode()).hexdigest()[:16]}


def _kept(label, classes, negative) -> int | None:
    """Return the position of the class of a row whose label is kept; None: it stays open."""
    label = tuple_from_json(label)
    if is_missing(label):
        return None if negative is None else classes.index(negative)
    return named_class(label, classes)


def negative_class(content, classes):
    """Return the class of unlabeled rows that are of no labeled class, if there is only one."""
    labeled = {tuple_from_json(part["name"]) for part in counted_classes(content)}
    never = [name for name in classes if labeled and name not in labeled]
    return never[0] if len(never) == 1 else None


def _classes(content, rows) -> Sequence:
    """Return all classes that a row can be of."""
    named = content.get("class_names") or [part["name"] for part in content.get("classes") or ()]
    return [*dict.fromkeys(map(tuple_from_json, named or [row["suggestion"] for row in rows]))]
