"""The decisions of a review, decisions.csv: read, matched with the rows of a table, and applied.

A decision stays valid after it was applied: it names its row by identifier and hash (`identity`),
neither of which depends on the label, and holds the label that the row had before. A file that
`accept_above` wrote has a further column: nobody has reviewed its rows, so they are corrected, but
an audit does not learn from them.
"""

from math import isfinite
from shutil import copy2
from typing import NamedTuple

import numpy as np

from looselabels._names import UNLABELED, listed
from looselabels._validation import short_repr, some_of
from looselabels.auditing.audit import Audit
from looselabels.command.identity import Identity, as_text, identify
from looselabels.command.labels import Labels, cells_as_labels, read_labels
from looselabels.command.tables import (
    TableError,
    arrow_table,
    check_columns,
    pa,
    pd,
    read_table,
    row_location,
    values_of_one_type,
)
from looselabels.command.writing import table_writer

FILE = "decisions.csv"
COLUMNS = ("id", "label", "suggestion", "doubt", "decision", "class", "hash")
REVIEWED = "reviewed"  # the further column, "no" in each row
WORDS = ("keep", "accept", "change", "skip")


class Decision(NamedTuple):
    """What was decided about the label of one row; names of labels and classes are text."""

    id: str
    label: str | None  #: before the decision; None: the row had no label
    doubt: float
    decision: str  #: keep, accept (the suggestion), change (to another class) or skip
    decided: str | None  #: the class; None if none was decided
    hash: str
    is_reviewed: bool = True  #: whether a person decided

    @property
    def new_label(self) -> str | None:
        """The label that follows from the decision."""
        return self.decided if self.decision in ("accept", "change") else self.label


class Matched(NamedTuple):
    """A decision and its row."""

    row: int  #: position in the table, from 0
    decision: Decision
    is_applied: bool  #: whether the table already has the new label


# -------------------------------------------------------------------------------------------- read


def read_decisions(path) -> list[Decision]:
    """Return the decisions in a file; raise if one of them is incomplete or not known."""
    frame = read_table(path)
    for name in COLUMNS:
        check_columns(list(frame.columns), name, path)
    names = [*COLUMNS, *({REVIEWED} & {*frame.columns})]
    columns = (as_text(column).to_pylist() for column in arrow_table(frame[names]).columns)
    return [
        _decision(dict(zip(names, cells, strict=True)), frame, row)
        for row, cells in enumerate(zip(*columns, strict=True))
    ]


def _read_all(paths) -> list[Decision]:
    return [decision for path in paths for decision in read_decisions(path)]


def _decision(cells, frame, row) -> Decision:
    """Return the decision in one line of the file."""
    problem = _problem(cells)
    if problem is not None:
        raise TableError(f"{row_location(frame, row)}: {problem}")
    return Decision(
        cells["id"],
        None if cells["label"] == UNLABELED else cells["label"],
        float(cells["doubt"]),
        cells["decision"],
        cells["class"],
        cells["hash"],
        cells.get(REVIEWED) != "no",
    )


def _problem(cells) -> str | None:
    """Return what is wrong with one line of the file, or None."""
    word = cells["decision"]
    if word not in WORDS:
        return f"the decision is {short_repr(word or '')}; it must be {some_of(WORDS)}."
    for name in ("id", "hash"):
        if cells[name] is None:
            return f"the {name} is missing; `looselabels audit` writes pages that have it."
    if word in ("accept", "change") and cells["class"] is None:
        return f"the decision is {word!r}, but the class is missing."
    try:
        is_probability = isfinite(float(cells["doubt"])) and 0 <= float(cells["doubt"]) <= 1
    except (TypeError, ValueError):
        is_probability = False
    if not is_probability:
        return f"the doubt is {short_repr(cells['doubt'] or '')}; it must be a number from 0 to 1."
    return None


# ------------------------------------------------------------------------------------------- match


def match_decisions(decisions, identity: Identity, labels) -> list[Matched]:
    """Return the decisions that were not skipped with their rows; raise if one does not fit.

    Parameters
    ----------
    decisions : list of Decision
        From one or more reviews; equal decisions about one row count once.
    identity : Identity
        Of the table.
    labels : list
        The label of each row of the table, None without one: the one before the review, or the
        new one.
    """
    decisions = _one_per_id(d for d in decisions if d.decision != "skip")
    rows = identity.positions([d.id for d in decisions])
    hashes = iter(identity.hashes(row for row in rows if row is not None))
    known = dict.fromkeys(labels)
    old = cells_as_labels(_texts(d.label for d in decisions), known=known)
    new = cells_as_labels(_texts(d.new_label for d in decisions), known=known)
    matched: list[Matched] = []
    problems: dict = {}
    for decision, row, before, after in zip(decisions, rows, old, new, strict=True):
        if row is None:
            problem = "no row has"
        elif next(hashes) != decision.hash:
            problem = "other cells changed in"
        elif labels[row] not in (before, after):
            problem = "the label is neither the reviewed nor the decided one in"
        else:
            matched.append(Matched(row, decision, labels[row] != before))
            continue
        problems.setdefault(problem, []).append(decision.id)
    if problems:
        _refuse(problems, len(decisions), identity)
    return matched


def _one_per_id(decisions) -> list[Decision]:
    """Return one decision per identifier; raise if two contradict each other."""
    by_id: dict = {}
    for decision in decisions:
        known = by_id.setdefault(decision.id, decision)
        if (known.label, known.new_label) != (decision.label, decision.new_label):
            pairs = (
                f"{short_repr(d.label)} → {short_repr(d.new_label)}" for d in (known, decision)
            )
            raise TableError(
                f"Two decisions about {short_repr(decision.id)} contradict each other: "
                f"{' and '.join(pairs)}. Delete one of them."
            )
    return list(by_id.values())


def _refuse(problems, n_decisions, identity):
    """Raise an error that names the decisions that do not fit, by problem."""
    parts = [f"{problem} {identity.name} {some_of(ids)}" for problem, ids in problems.items()]
    raise TableError(
        f"{sum(map(len, problems.values())):,} of {n_decisions:,} decisions cannot be matched: "
        f"{'; '.join(parts)}. Pass the table that was audited, with the same --label and --id."
    )


def _labels_now(frame, labels: Labels) -> list:
    return cells_as_labels(frame[labels.column], labels.unlabeled)


def _texts(names):
    return pd.Series(list(names), dtype=object)


# ------------------------------------------------------------------------------------------- apply


def with_labels(frame, column, labels: dict):
    """Return a table with other labels in some rows: text, or None for no label, by position."""
    cells = arrow_table(frame[[column]]).column(0)
    texts = pa.array(labels.values(), pa.string())
    try:
        new = texts.cast(cells.type)
    except pa.ArrowException:
        raise TableError(
            f"Column {short_repr(column)} holds {cells.type} and cannot hold each of the labels "
            f"{some_of(sorted({*labels.values()} - {None}))}. Convert it to text."
        ) from None
    source = np.arange(len(cells))
    source[list(labels)] = len(cells) + np.arange(len(labels))
    combined = pa.chunked_array([*cells.chunks, new], cells.type).take(pa.array(source))
    series = pd.Series(pd.arrays.ArrowExtensionArray(combined), index=frame.index)
    return frame.assign(**{column: series})


def correct(frame, labels: Labels, id_column, paths):
    """Return a table with the labels that were decided, what changed, and a sentence about it.

    Parameters
    ----------
    frame : DataFrame
        The table; some of the decisions may have been applied to it already.
    labels : Labels
        The column of labels, and which cells mean "no label".
    id_column : str or None
        The column of identifiers.
    paths : sequence of str
        The files with decisions.
    """
    identity = identify(frame, id_column, label=labels.column)
    decisions = _read_all(paths)
    n_skipped = sum(d.decision == "skip" for d in decisions)
    matched = match_decisions(decisions, identity, _labels_now(frame, labels))
    changed = [m for m in matched if not m.is_applied and m.decision.label != m.decision.new_label]
    corrected = with_labels(frame, labels.column, {m.row: m.decision.new_label for m in changed})
    log = [(d.id, d.label, d.new_label, d.decision) for d in (m.decision for m in changed)]
    names = ["id", "old_label", "new_label", "decision"]
    n_before = sum(m.is_applied for m in matched)
    n_kept = len(matched) - len(changed) - n_before
    sentence = (
        f"Labels: {len(changed):,} changed, {n_before:,} changed before, {n_kept:,} kept, "
        f"{n_skipped:,} skipped."
    )
    return corrected, pd.DataFrame(log, columns=names, dtype=object), sentence


# ------------------------------------------------------------------------------------------- audit


class Review(NamedTuple):
    """What is known about the rows of a table from earlier reviews."""

    identity: Identity
    labels: list  #: as they were before the reviews, None without a label
    known_classes: list | None  #: the decided class of each row, None where it is not known
    doubts: dict  #: of the reviewed rows, as recorded, by position

    def summary(self, found: Audit) -> dict | None:
        """Return how many reviewed labels were wrong, and how many were expected to be.

        Rows without a label are not counted. None: no label was reviewed.
        """
        rows = [row for row in self.doubts if found.is_labeled[row]]
        if not rows or self.known_classes is None:
            return None
        position = {name: k for k, name in enumerate(found.transition.classes)}
        known = [(row, self.known_classes[row]) for row in rows]
        is_right = [
            found.is_right[found.label_index[row], position[name]]
            for row, name in known
            if name is not None
        ]
        expected = sum(self.doubts[row] for row in rows)
        return {"n": len(rows), "confirmed": is_right.count(False), "expected": expected}


def read_review(frame, labels: Labels, id_column, paths) -> Review:
    """Return the labels of a table and the decisions about them in files, none or several.

    Labels that were corrected already are again those before the review, so that the estimate of
    the noise sees them.
    """
    identity = identify(frame, id_column, label=labels.column)
    matched = match_decisions(_read_all(paths), identity, _labels_now(frame, labels))
    old = {m.row: m.decision.label for m in matched if m.is_applied}
    y = read_labels(with_labels(frame, labels.column, old), labels)
    reviewed = [m for m in matched if m.decision.is_reviewed]
    doubts = {m.row: m.decision.doubt for m in reviewed}
    return Review(identity, y, _known_classes(reviewed, y, labels), doubts)


def _known_classes(matched, y, labels) -> list | None:
    """Return the decided class of each row; raise if there is no such class."""
    if not matched:
        return None
    names = (*y, labels.negative) if labels.design is None else labels.design.classes
    classes = dict.fromkeys(name for name in names if name is not None)
    decided = cells_as_labels(_texts(m.decision.decided for m in matched), known=classes)
    for one, name in zip(matched, decided, strict=True):
        if name is not None and name not in classes:
            raise TableError(
                f"The decision about {short_repr(one.decision.id)} is the class "
                f"{short_repr(name)}, which no label names; the classes are "
                f"{listed(sorted(classes, key=str))}."
            )
    by_row = {one.row: name for one, name in zip(matched, decided, strict=True)}
    return [by_row.get(row) for row in range(len(y))]


def accept_above(found: Audit, review: Review, proba: float):
    """Return decisions that accept each suggested class with a probability above `proba`.

    Rows without a label, rows whose label fits the suggested class, and reviewed rows are left
    out. The result is a table for decisions.csv, and how many of them are expected to be wrong.
    """
    best = found.class_proba_given_label.max(axis=1)
    is_wrong = ~found.is_right[found.label_index, found.suggestion]
    rows = np.flatnonzero((best > proba) & is_wrong & found.is_labeled)
    rows = np.setdiff1d(rows, list(review.doubts)).astype(int)
    suggestion = values_of_one_type(found.transition.classes)[found.suggestion[rows]]
    values = (
        [review.identity.ids[row] for row in rows.tolist()],
        values_of_one_type(found.transition.labels)[found.label_index[rows]],
        suggestion,
        found.doubt[rows],
        ["accept"] * len(rows),
        suggestion,
        review.identity.hashes(rows.tolist()),
        ["no"] * len(rows),
    )
    accepted = pd.DataFrame(dict(zip((*COLUMNS, REVIEWED), values, strict=True)))
    return accepted, float(np.sum(1 - best[rows]))


def write_accepted(folder, found: Audit, review: Review, proba) -> str | None:
    """Write decisions.csv of `accept_above` into a folder, and return a sentence about it.

    Without any such suggestion there is no file; without a `proba` there is no sentence either.
    """
    if proba is None:
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
