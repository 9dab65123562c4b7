"""The results of an audit: the table with suggestions, the page, and two JSON files."""

import json
import sys
from pathlib import Path

from looselabels import __version__
from looselabels.auditing.audit import Audit
from looselabels.auditing.report import render
from looselabels.command.features import Features
from looselabels.command.images import read_thumbnails
from looselabels.command.labels import Labels
from looselabels.command.models import MODEL_FILES
from looselabels.command.notes import (
    describe,
    ignored_columns,
    violated_assumptions,
    why_no_count,
)
from looselabels.command.tables import add_columns, values_of_one_type
from looselabels.command.writing import table_writer

MAX_SHOWN = 500  # rows on the page
COLUMNS = ("suggestion", "suggestion_proba", "label_proba", "doubt", "why")
# What an audit writes, as a tree for `unexpected_files`.
AUDIT_FILES = {
    **dict.fromkeys(("labels.csv", "labels.parquet", "report.html")),
    **dict.fromkeys(("summary.json", "transition.json")),
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
    import sklearn

    content = found.summary()
    content["design"]["words"] = describe(found, labels)
    content["wrong"]["why_no_count"] = why_no_count(found)
    content |= {
        "data": data,
        "label_column": labels.column,
        "warnings": [*notes, *ignored_columns(features), *violated_assumptions(found)],
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
    """Return the table with the columns `COLUMNS` added, one row per row of the table."""
    rows = range(len(found.label_index))
    values = (
        values_of_one_type(found.transition.classes)[found.suggestion],
        found.class_proba_given_label.max(axis=1),
        found.label_proba,
        found.doubt,
        [found.why(row) for row in rows],
    )
    return add_columns(frame, dict(zip(COLUMNS, values, strict=True)))


def thumbnails(X, features: Features | None, found: Audit, frame=None, image=None):
    """Return an image per row on the page, or None if rows have none.

    Images are read from the files in the column `image` of the table `frame`, if there is one, or
    are the features themselves, if these are pixels.
    """
    rows = found.order[:MAX_SHOWN]
    if image is not None:
        return read_thumbnails(frame, image, rows)
    if features is None or features.image_shape is None:
        return None
    return [X[row].reshape(features.image_shape) for row in rows]


def write_audit(folder: Path, content, found: Audit, frame, suffix, *, images, excel_safe) -> None:
    """Write the table with suggestions, the page, the transition and the summary to `folder`.

    `suffix` is .csv or .parquet, the format of the table; `images` come from `thumbnails`.
    """
    with table_writer(folder / f"labels{suffix}", excel_safe=excel_safe) as write:
        write(with_suggestions(frame, found))
    page = render(content | {"rows": found.records(MAX_SHOWN)}, images)
    (folder / "report.html").write_text(page, encoding="utf-8")
    (folder / "transition.json").write_text(found.transition.to_json(), encoding="utf-8")
    (folder / "summary.json").write_text(to_json(content), encoding="utf-8")


def to_json(content) -> str:
    """Return strict JSON; names of types that JSON does not have become text."""
    return json.dumps(content, allow_nan=False, default=str, indent=1)
