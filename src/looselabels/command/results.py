"""The results of an audit: the table with suggestions, the page, and two JSON files."""

import json
import sys
from collections import Counter
from pathlib import Path

import numpy as np

from looselabels import __version__
from looselabels._names import shown
from looselabels.auditing.audit import Audit
from looselabels.auditing.pages import (
    MAX_COLUMNS,
    MAX_LETTERS,
    MAX_SHOWN,
    most_probable,
    violated_assumptions,
)
from looselabels.auditing.report import render
from looselabels.command.features import RESULTS, Features
from looselabels.command.images import read_thumbnails
from looselabels.command.labels import Labels
from looselabels.command.models import MODEL_FILES
from looselabels.command.notes import (
    describe,
    ignored_columns,
    why_no_count,
    why_no_unlabeled_count,
    words_of_command,
)
from looselabels.command.review import Review
from looselabels.command.spelling import spelling_variants
from looselabels.command.tables import (
    N_ROWS,
    NUMBER,
    add_columns,
    arrow_table,
    check_columns,
    column_as_text,
    pc,
    values_of_one_type,
)
from looselabels.command.writing import table_writer

N_SAMPLED = 1000  # rows that tell whether a column is text
# What an audit writes, as a tree for `unexpected_files`.
AUDIT_FILES = {
    **dict.fromkeys(("labels.csv", "labels.parquet", "labels.feather", "report.html")),
    **dict.fromkeys(("summary.json", "transition.json", "decisions.csv", "annotators.csv")),
    "model": MODEL_FILES,
}


def page_content(found: Audit, labels: Labels, data, command, notes, features=None, seed=0):
    """Return the content of the page and of summary.json, without the rows.

    Parameters
    ----------
    found : Audit
        The audit.
    labels : Labels
        What was specified about the labels.
    data, command : str
        The name of the table, and the command that repeats the audit.
    notes : list of str
        Warnings that occurred.
    features : Features, default=None
        The features; None if the audit used the probabilities of another model.
    seed : int, default=0
        The seed of the fit.
    """
    content = found.summary()
    content["design"]["words"] = describe(found, labels)
    content["wrong"]["why_no_count"] = why_no_count(found, labels)
    if content["unlabeled"]:
        content["unlabeled"]["why_no_count"] = why_no_unlabeled_count(found)
    content |= about_run(found, data, command, notes, features, seed)
    content["label_column"] = labels.column
    counts = Counter(found.transition.labels[s] for s in found.label_index.tolist())
    content["variants"] = [] if labels.design else spelling_variants(counts, command)
    return content


def about_run(found, data, command, notes, features, seed) -> dict:
    """Return what the page says about the table, the features, the warnings and the command."""
    import sklearn

    content = {
        "data": data,
        "warnings": [
            *(*notes, *ignored_columns(features)),
            *map(words_of_command, violated_assumptions(found)),
        ],
        "reproduce": {
            "command": command,
            "versions": {
                "looselabels": __version__,
                "scikit-learn": sklearn.__version__,
                "python": ".".join(map(str, sys.version_info[:3])),
            },
            "seed": seed,
        },
    }
    if features is not None:
        ignored = [{"name": name, "why": why} for name, why in features.ignored]
        content["columns"] = {"used": len(features.used), "ignored": ignored}
    return content


def with_suggestions(frame, found: Audit):
    """Yield blocks of the table with the columns `RESULTS` added.

    If the features do not predict the labels, there are suggestions and doubts of reviewed rows
    only: others would be as good as random.
    """
    classes = values_of_one_type(found.transition.classes)
    is_known = found.is_known
    for start in range(0, len(frame), N_ROWS):
        rows = slice(start, start + N_ROWS)
        values = (
            np.where(is_known[rows], classes[found.suggestion[rows]], None),
            np.where(is_known[rows], found.class_proba_given_label[rows].max(axis=1), np.nan),
            found.label_proba[rows],
            np.where(is_known[rows], found.doubt[rows], np.nan),
            [found.why(row) for row in range(len(frame))[rows]],
        )
        yield add_columns(frame.iloc[rows], dict(zip(RESULTS, values, strict=True)))


def review_content(found: Audit, frame, review: Review, columns=(), suffix=".csv") -> dict:
    """Return what a person needs to review rows: how each is named, its cells, the classes.

    Parameters
    ----------
    found : Audit
        The audit.
    frame : DataFrame
        The table.
    review : Review
        The identity of its rows, and earlier decisions; the rows they are about are left out.
    columns : sequence of str, default=()
        The columns to show; see `columns_to_show`.
    suffix : str, default=".csv"
        The end of the name of the table with all rows, which is its format.
    """
    records = found.records(min(MAX_SHOWN + len(review.doubts), int(found.is_open.sum())))
    records = [record for record in records if record["row"] not in review.doubts][:MAX_SHOWN]
    rows, identity = [record["row"] for record in records], review.identity
    details = zip(identity.hashes(rows), cells_of(frame, rows, columns), strict=True)
    return {
        "id_name": identity.name,
        "id_note": identity.note,
        "shown_columns": list(columns),
        "class_names": list(found.transition.classes),
        "table_file": f"labels{suffix}",
        "reviewed": review.summary(found),
        "rows": [
            record
            | {"id": identity.ids[record["row"]], "hash": digest, "cells": cells}
            | {"probabilities": most_probable(found, record["row"])}
            for record, (digest, cells) in zip(records, details, strict=True)
        ],
    }


def check_shown(frame, columns) -> None:
    """Raise if the table lacks one of the columns to show."""
    for name in columns:
        check_columns(list(frame.columns), name, "The table")


def columns_to_show(frame, hidden, features: Features | None = None) -> list[str]:
    """Return up to four columns that help people: sentences first, then other text, then numbers.

    Columns that are `hidden`, because the page shows them elsewhere, pixels, and columns with one
    value are left out.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"x": [1, 2], "color": ["red", "blue"], "text": ["a b", "c d"]})
    >>> columns_to_show(frame, hidden=("x",))
    ['text', 'color']
    """
    if features is not None and features.image_shape is not None:
        hidden = (*hidden, *features.used)
    names, kinds = [name for name in frame.columns if name not in hidden], {}
    for name, cells in zip(names, arrow_table(frame[names].head(N_SAMPLED)).columns, strict=True):
        text = column_as_text(cells).drop_null()
        if len(text.unique()) > 1:
            is_number = pc.all(pc.match_substring_regex(text, NUMBER)).as_py()
            has_words = pc.any(pc.match_substring(text, " ")).as_py()
            kinds[name] = (is_number, not has_words)
    return sorted(kinds, key=kinds.__getitem__)[:MAX_COLUMNS]


def cells_of(frame, rows, columns) -> list[list[str]]:
    """Return the cells of some rows as short texts without line breaks."""
    if not columns:
        return [[] for _ in rows]
    table = arrow_table(frame[list(columns)].iloc[rows])
    texts = [column_as_text(column).to_pylist() for column in table.columns]
    return [
        [shown(" ".join((text or "")[: 4 * MAX_LETTERS].split()), MAX_LETTERS) for text in row]
        for row in zip(*texts, strict=True)
    ]


def thumbnails(X, features: Features | None, records, frame=None, image=None):
    """Return an image per row on the page, or None if rows have none.

    Images are read from the files in the column `image` of the table `frame`, if there is one, or
    are the features themselves, if these are pixels.
    """
    rows = [record["row"] for record in records]
    if image is not None:
        return read_thumbnails(frame, image, rows)
    if features is None or features.image_shape is None:
        return None
    return [X[row].reshape(features.image_shape) for row in rows]


def write_audit(folder: Path, content, found: Audit, frame, *, images, excel_safe) -> None:
    """Write the table with suggestions, the page, the transition and the summary to `folder`.

    `content` comes from `page_content` and `review_content`, `images` from `thumbnails`.
    """
    with table_writer(folder / content["table_file"], excel_safe=excel_safe) as write:
        for block in with_suggestions(frame, found):
            write(block)
    (folder / "report.html").write_text(render(content, images), encoding="utf-8")
    (folder / "transition.json").write_text(found.transition.to_json(), encoding="utf-8")
    (folder / "summary.json").write_text(to_json(without_rows(content)), encoding="utf-8")


def without_rows(content) -> dict:
    """Return the content of summary.json."""
    return {key: value for key, value in content.items() if key != "rows"}


def to_json(content) -> str:
    """Return strict JSON; names of types that JSON does not have become text."""
    return json.dumps(content, allow_nan=False, default=str, indent=1)
