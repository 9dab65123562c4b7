"""An audit as HTML: a short summary for notebooks, and the content of the report."""

from html import escape

import numpy as np

from looselabels._files import check_parent, new_file
from looselabels._names import shown
from looselabels.auditing.report import FROM_0, facts, render, verdict

MAX_SHOWN = 500  # rows in the report
MAX_LISTED = 10  # rows in a notebook
MAX_COLUMNS = 4  # of the table that the report shows
MAX_CLASSES = 3  # whose probabilities the report shows
MAX_LETTERS = 500  # of a cell


# ------------------------------------------------------------------------------------- the notebook


def summary_html(found) -> str:
    """Return the verdict, the main numbers and the first rows of an `Audit` as a piece of HTML."""
    content = found.summary()
    numbers = [(name, f"{number} {note}") for name, number, note in facts(content)]
    parts = [f"<p><strong>{escape(verdict(content))}</strong></p>", _table(numbers)]
    rows = found.records(min(MAX_LISTED, int(found.is_open.sum())))
    if rows:
        listed = _list_of_answers(rows) if found.question == "consensus" else _list(found, rows)
        parts += [listed, f"<p>{FROM_0} to_html(path) writes the whole report.</p>"]
    return f"<div>{''.join(parts)}</div>"


def _list(found, rows) -> str:
    value = "doubt" if found.question == "labels" else "class_proba"
    header = ("row", "label", "suggestion", value, "why")
    lines = [
        (str(r["row"]), shown(r["label"]), shown(r["suggestion"]), f"{r[value]:.0%}", r["why"])
        for r in rows
    ]
    return _table(lines, header)


def _list_of_answers(rows) -> str:
    header = ("row", "answers", "consensus", "probability")
    lines = [
        (
            str(r["row"]),
            ", ".join(f"{shown(label)}: {len(who)}" for label, who in r["answers"]),
            shown(r["consensus"]),
            f"{r['probability']:.0%}",
        )
        for r in rows
    ]
    return _table(lines, header)


def _table(rows, header=()) -> str:
    names = "".join(f"<th>{escape(name)}</th>" for name in header)
    head = f"<thead><tr>{names}</tr></thead>" if header else ""
    body = "".join(
        f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in rows
    )
    return f"<table>{head}<tbody>{body}</tbody></table>"


# --------------------------------------------------------------------------------------- the report


def page_content(found, X=None) -> tuple[dict, list | None]:
    """Return what the report shows of an `Audit`, and an image of each of its rows, if X has them.

    Parameters
    ----------
    found : Audit
        The audit.
    X : DataFrame or array of images, optional
        See `Audit.to_html`.
    """
    records = found.records(min(MAX_SHOWN, int(found.is_open.sum())))
    rows = [record["row"] for record in records]
    columns, cells, images = _shown(X, len(found.class_proba_given_label), rows)
    content = found.summary() | {
        "id_name": "Row",
        "id_note": FROM_0,
        "shown_columns": columns,
        "class_names": list(found.transition.classes),
        "warnings": violated_assumptions(found),
        "rows": [
            record | {"id": row, "cells": texts, "probabilities": most_probable(found, row)}
            for record, row, texts in zip(records, rows, cells, strict=True)
        ],
    }
    return content, images


def write_page(path, content, images, *, overwrite) -> None:
    """Write the report to a file, completely or not at all."""

    def check(target):
        check_parent(target)
        if target.is_dir():
            raise IsADirectoryError(f"{target} is a folder; name a file in it.")
        if target.exists() and not overwrite:
            raise FileExistsError(f"{target} exists; overwrite=True replaces it.")

    with new_file(path, check) as temporary:
        temporary.write_text(render(content, images), encoding="utf-8")


def violated_assumptions(found) -> list[str]:
    """Return sentences on assumptions that the data contradict.

    Classes with identical label distributions are left out: the page has a section on them.
    """
    has_identical = bool(found.transition.indistinct_classes())
    return [
        finding.words
        for finding in found.findings
        if finding.found and not (has_identical and finding.kind == "identifiability")
    ]


def most_probable(found, row) -> list:
    """Return the most probable classes of a row, with their probabilities."""
    proba = found.class_proba_given_label[row]
    best = np.argsort(-proba, kind="stable")[:MAX_CLASSES]
    return [[found.transition.classes[y], float(proba[y])] for y in best]


def _shown(X, n_rows, rows) -> tuple[list[str], list[list[str]], list | None]:
    """Return the names of the shown columns, their cells in some rows, and images of these rows."""
    no_cells: list[list[str]] = [[] for _ in rows]
    if X is None:
        return [], no_cells, None
    if len(X) != n_rows:
        raise ValueError(f"X has {len(X)} rows; the audit has {n_rows}. Pass the rows of y.")
    if hasattr(X, "columns"):
        names = [str(name) for name in X.columns[:MAX_COLUMNS]]
        part = X.iloc[rows] if hasattr(X, "iloc") else X[rows]
        columns = [
            (part.iloc[:, i] if hasattr(part, "iloc") else part.to_series(i)).to_list()
            for i in range(len(names))
        ]
        return names, [[_text(column[i]) for column in columns] for i in range(len(rows))], None
    images = np.asarray(X)
    if images.ndim not in (3, 4):
        raise ValueError(
            "X must be a DataFrame, or images of shape (n_rows, height, width) or "
            f"(n_rows, height, width, 3); its shape is {images.shape}."
        )
    return [], no_cells, [images[row] for row in rows]


def _text(value) -> str:
    """Return a cell as one line of text; the missing values of all libraries are empty."""
    is_missing = value is None or type(value).__name__ in ("NAType", "NaTType")
    if is_missing or (isinstance(value, float) and np.isnan(value)):
        return ""
    return shown(" ".join(str(value).split()), MAX_LETTERS)
