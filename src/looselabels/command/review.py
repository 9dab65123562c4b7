"""Reviews in an audit: earlier decisions that it uses, and suggestions that it accepts itself.

Suggestions that are accepted without a review are applied to the table like other decisions, but an
audit does not learn from them: it would only confirm its own suggestions.
"""

import warnings
from shutil import copy2
from typing import NamedTuple

import numpy as np

from looselabels._names import listed
from looselabels._validation import short_repr
from looselabels.auditing.audit import Audit
from looselabels.command.decisions import (
    COLUMNS,
    REVIEWED,
    as_cells,
    labels_now,
    match_decisions,
    read_all,
    read_decisions,
    with_labels,
)
from looselabels.command.identity import Identity, identify
from looselabels.command.labels import Labels, cells_as_labels, read_labels
from looselabels.command.tables import TableError, pd, values_of_one_type
from looselabels.command.writing import table_writer
from looselabels.transition import is_missing

FILE = "decisions.csv"


class Review(NamedTuple):
    """What is known about the rows of a table from earlier reviews."""

    identity: Identity
    labels: list  #: as they were before the reviews, None without a label
    known_classes: list | None  #: the decided class of each row, None where it is not known
    doubts: dict  #: of the reviewed rows, as recorded, by position

    def summary(self, found: Audit) -> dict | None:
        """Return how many reviewed labels were wrong, and how many were expected to be.

        If the audit asks about unlabeled rows: how many of those were of a labeled class. Rows that
        it does not ask about are not counted. None: no other row was reviewed.
        """
        known, is_about_labels = self.known_classes, found.question == "labels"
        if known is None:
            return None
        rows = [row for row in self.doubts if found.is_asked[row]]
        classes = {row: known[row] for row in rows if known[row] is not None}
        # the class of a label that was kept may be open, but then the label is right
        rows = rows if is_about_labels else list(classes)
        if not rows:
            return None
        index = [found.transition.classes.index(name) for name in classes.values()]
        labels = found.label_index[list(classes)]
        is_so = ~(
            found.is_right[labels, index] if is_about_labels else found.is_never_labeled[index]
        )
        expected = sum(self.doubts[row] for row in rows)
        # without a label, pages of 0.1 recorded a doubt of 0
        has_doubts = is_about_labels or expected > 0
        return {
            "n": len(rows),
            "confirmed": int(is_so.sum()),
            "expected": expected if has_doubts else None,
        }


def read_review(frame, labels: Labels, id_column, paths) -> Review:
    """Return the labels of a table and the decisions about them in files, none or several.

    Labels that were corrected already are again those before the review, so that the estimate of
    the noise sees them.
    """
    identity = identify(frame, id_column, label=labels.column)
    matched = match_decisions(read_all(paths), identity, labels_now(frame, labels))
    old = {m.row: m.old for m in matched if m.is_applied}
    y = read_labels(with_labels(frame, labels.column, old), labels)
    reviewed = [m for m in matched if m.decision.is_reviewed]
    if n_others := len(matched) - len(reviewed):
        warnings.warn(
            f"Decisions that were accepted without a review are not used: {n_others:,}. The audit "
            "uses the labels before these decisions; otherwise it would only confirm its own "
            "suggestions.",
            stacklevel=2,
        )
    doubts = {m.row: m.decision.doubt for m in reviewed}
    return Review(identity, y, _known_classes(reviewed, identity, y, labels), doubts)


def _known_classes(matched, identity, y, labels) -> list | None:
    """Return the decided class of each row; raise if there is no such class."""
    if not matched:
        return None
    names = (*y, labels.negative) if labels.design is None else labels.design.classes
    classes = dict.fromkeys(name for name in names if name is not None)
    decided = cells_as_labels(as_cells(m.decision.decided for m in matched), known=classes)
    for one, name in zip(matched, decided, strict=True):
        if name is not None and name not in classes:
            means = (
                "label rows of it, or pass --negative if its rows have no label"
                if labels.design is None
                else "add it to --design"
            )
            raise TableError(
                f"The decision about {identity.name} {short_repr(one.decision.id)} is the class "
                f"{short_repr(name)}, which this audit does not know; it knows "
                f"{listed(sorted(classes, key=str))}. Pass --negative, --design and --merge as in "
                f"the audit that was reviewed. If the class is new, {means}. If it is misspelled, "
                "correct the file of decisions."
            )
    by_row = {one.row: name for one, name in zip(matched, decided, strict=True)}
    return [by_row.get(row) for row in range(len(y))]


# ------------------------------------------------------------------------------------------ accept


def accept_above(found: Audit, review: Review, proba: float):
    """Return decisions that accept each suggested class with a probability above `proba`.

    Rows whose label fits the suggested class, and reviewed rows, are left out. Unlabeled rows are
    accepted only if they are in question and the class is one that has labels. The result is a
    table for decisions.csv, and how many of them are expected to be wrong.
    """
    best = found.class_proba_given_label.max(axis=1)
    is_wrong = ~found.is_right[found.label_index, found.suggestion]
    is_positive = ~found.is_never_labeled[found.suggestion] & (found.question == "unlabeled")
    can_accept = np.where(found.is_labeled, is_wrong, is_positive)
    rows = np.flatnonzero((best > proba) & can_accept)
    rows = np.setdiff1d(rows, list(review.doubts)).astype(int)
    suggestion = values_of_one_type(found.transition.classes)[found.suggestion[rows]]
    values = (
        [review.identity.ids[row] for row in rows.tolist()],
        _labels_or_none(found, rows),
        suggestion,
        np.where(found.is_labeled, found.doubt, found.positive_proba)[rows],
        ["accept"] * len(rows),
        suggestion,
        review.identity.hashes(rows.tolist()),
        ["no"] * len(rows),
    )
    accepted = pd.DataFrame(dict(zip((*COLUMNS, REVIEWED), values, strict=True)))
    return accepted, float(np.sum(1 - best[rows]))


def _labels_or_none(found, rows):
    """Return the labels of rows as decisions.csv has them, which are their cells.

    An empty cell is the missing label. A source is in another column of the table.
    """
    names = [name[-1] if isinstance(name, tuple) else name for name in found.transition.labels]
    labels = values_of_one_type(names)[found.label_index[rows]]
    is_given = np.array([not is_missing(name) for name in found.transition.labels])
    return pd.Series(labels, dtype=object).where(is_given[found.label_index[rows]], None)


def write_accepted(folder, found: Audit, review: Review, proba) -> str | None:
    """Write decisions.csv of `accept_above` into a folder, and return a sentence about it.

    Without any such suggestion there is no file; without a `proba`, or if `check_can_accept`
    raises, there is no sentence either.
    """
    if proba is None or not found.predicts_labels:
        return None
    accepted, n_wrong = accept_above(found, review, proba)
    if accepted.empty:
        return f"No suggestion has a probability above {proba:g}; {FILE} is not written."
    with table_writer(folder / FILE) as write:
        write(accepted)
    return (
        f"Suggestions accepted in {FILE}: {len(accepted):,}, with a probability above {proba:g}; "
        f"about {n_wrong:,.1f} of them are expected to be wrong."
    )


def check_can_accept(found: Audit, proba) -> None:
    """Raise if suggestions should be accepted that are as good as random."""
    if proba is not None and not found.predicts_labels:
        raise TableError(
            f"--accept-above {proba:g}: no suggestion was accepted, because the columns, the "
            "--model or --proba do not predict the labels. All other results were written. Add "
            "columns that depend on the class, try --model auto, or leave out --accept-above."
        )


def check_earlier(folder, proba) -> None:
    """Raise if `accept_above` would replace the decisions of a person in a folder."""
    if proba is not None and _has_review(folder / FILE):
        raise FileExistsError(
            f"{folder / FILE} is the result of a review and is not replaced. Move it elsewhere."
        )


def keep_earlier(old, new) -> None:
    """Copy the decisions of a person in an old folder into the new one that replaces it."""
    if _has_review(old / FILE):
        copy2(old / FILE, new / FILE)


def _has_review(file) -> bool:
    """Return whether a file may hold decisions of a person: also if it cannot be read."""
    try:
        return file.exists() and any(d.is_reviewed for d in read_decisions(file))
    except (TableError, OSError):
        return True
