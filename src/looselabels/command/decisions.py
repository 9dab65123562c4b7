"""The decisions of a review, decisions.csv: read, matched with the rows of a table, and applied.

A decision stays valid after it was applied: it names its row by identifier and hash (`identity`),
neither of which depends on the label, and holds the label that the row had before.
"""

import re
from typing import Any, NamedTuple

import numpy as np

from looselabels._names import UNLABELED, listed
from looselabels._validation import short_repr, some_of
from looselabels.command.identity import Identity, identify
from looselabels.command.labels import Labels, cells_as_labels
from looselabels.command.shell import shell_word
from looselabels.command.sources import Source
from looselabels.command.spelling import label_as_text
from looselabels.command.tables import (
    TableError,
    arrow_table,
    check_columns,
    column_as_text,
    is_text,
    pa,
    pd,
    read_table,
    row_location,
)

COLUMNS = ("id", "label", "suggestion", "doubt", "decision", "class", "hash")
REVIEWED = "reviewed"  # a further column: "no" in rows that nobody looked at
MAX_NAMED = 5  # new labels
OTHER_LABEL = "the label is neither the reviewed nor the decided one in"
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
    old: Any  #: the label before the decision, and the one after, as the table writes them: a
    new: Any  #: spreadsheet may write 1 for 1.0 and TRUE for True in the file of decisions


# -------------------------------------------------------------------------------------------- read


def read_decisions(path) -> list[Decision]:
    """Return the decisions in a file; raise if one of them is incomplete or not known."""
    frame = read_table(path, delimiter=_delimiter(path))
    for name in COLUMNS:
        check_columns(list(frame.columns), name, path)
    names = [*COLUMNS, *({REVIEWED} & {*frame.columns})]
    columns = (column_as_text(column).to_pylist() for column in arrow_table(frame[names]).columns)
    return [
        _decision(dict(zip(names, cells, strict=True)), frame, row)
        for row, cells in enumerate(zip(*columns, strict=True))
    ]


def _delimiter(path) -> str | None:
    """Return ";" if it separates the cells: spreadsheets write it where 0,5 is a number."""
    source = Source(path)
    if not source.can_rewind:
        return None
    with source.open() as stream:
        head = source.unpacked(stream.peek, 200)
    return ";" if b";decision;" in head.replace(b'"', b"") else None


def read_all(paths) -> list[Decision]:
    """Return the decisions in several files."""
    return [decision for path in paths for decision in read_decisions(path)]


def _decision(cells, frame, row) -> Decision:
    """Return the decision in one line of the file."""
    problem = _problem(cells)
    if problem is not None:
        raise TableError(f"{row_location(frame, row)}: {problem}")
    is_suggestion = cells["decision"] == "accept" and cells["class"] == cells["suggestion"]
    return Decision(
        cells["id"],
        None if cells["label"] == UNLABELED else cells["label"],
        _number(cells["doubt"]),
        cells["decision"],
        cells["class"],
        cells["hash"],
        cells.get(REVIEWED) != "no" or not is_suggestion,  # a person has changed the line
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
    kept = None if cells["label"] == UNLABELED else cells["label"]
    if word == "keep" and kept and label_as_text(cells["class"] or kept) != label_as_text(kept):
        return (
            f"the decision is 'keep', but the class is {short_repr(cells['class'])} and the label "
            f"{short_repr(kept)}. To keep the label, write it as the class too; otherwise write "
            "'change'."
        )
    try:
        is_probability = 0 <= _number(cells["doubt"] or "") <= 1  # not NaN
    except ValueError:
        is_probability = False
    if not is_probability:
        return f"the doubt is {short_repr(cells['doubt'] or '')}; it must be a number from 0 to 1."
    return None


def _number(text) -> float:
    """Return a number that is written with a point or a decimal comma."""
    return float(text.replace(",", "."))


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
    decisions = [d for d in decisions if d.decision != "skip"]
    decisions = _one_per_id(_with_zeros(decisions, identity))
    rows = identity.positions([d.id for d in decisions])
    hashes = iter(identity.hashes(row for row in rows if row is not None))
    known = dict.fromkeys(labels)
    old = cells_as_labels(as_cells(d.label for d in decisions), known=known)
    new = cells_as_labels(as_cells(d.new_label for d in decisions), known=known)
    matched: list[Matched] = []
    problems: dict = {}
    for decision, row, before, after in zip(decisions, rows, old, new, strict=True):
        if row is None:
            problem = "no row has"
        elif next(hashes) != decision.hash:
            problem = "other cells changed in"
        elif labels[row] not in (before, after):
            problem = OTHER_LABEL
        else:
            matched.append(Matched(row, decision, labels[row] != before, before, after))
            continue
        problems.setdefault(problem, []).append(decision.id)
    if problems:
        _refuse(problems, len(decisions), identity)
    return matched


def _with_zeros(decisions, identity) -> list[Decision]:
    """Return decisions with the zeros before their identifiers, which spreadsheets remove."""
    known = set(map(str, identity.ids))
    lost = {d.id for d in decisions} - known
    by_number = {name.lstrip("0") or "0": name for name in known} if lost else {}
    return [d._replace(id=by_number.get(d.id, d.id)) if d.id in lost else d for d in decisions]


def _one_per_id(decisions) -> list[Decision]:
    """Return one decision per identifier; raise if two contradict each other."""
    by_id: dict = {}
    for decision in decisions:
        known = by_id.setdefault(decision.id, decision)
        if _change(known) != _change(decision):
            pairs = (
                f"{short_repr(d.label)} → {short_repr(d.new_label)}" for d in (known, decision)
            )
            raise TableError(
                f"Two decisions about {short_repr(decision.id)} contradict each other: "
                f"{' and '.join(pairs)}. Delete one of them."
            )
        if decision.is_reviewed:  # it counts, not that the same was accepted without a review
            by_id[decision.id] = decision
    return list(by_id.values())


def _change(decision) -> list:
    """Return the labels before and after a decision, equal for all spellings."""
    return [_text(label, label_as_text) for label in (decision.label, decision.new_label)]


def _text(label, as_text=str) -> str | None:
    return None if label is None else as_text(label)


def _refuse(problems, n_decisions, identity):
    """Raise an error that names the decisions that do not fit, by problem."""
    parts = [f"{problem} {identity.name} {some_of(ids)}" for problem, ids in problems.items()]
    all_ids = [name for ids in problems.values() for name in ids]
    hint = "" if OTHER_LABEL in problems else _id_hint(all_ids, identity)  # it was found by its id
    raise TableError(
        f"{len(all_ids):,} of {n_decisions:,} decisions cannot be matched: "
        f"{'; '.join(parts)}. {hint}Pass the table that was audited, and what that audit had of "
        "--label, --id, --unlabeled, --strip and --merge."
    )


def _id_hint(ids, identity) -> str:
    """Return a sentence on which --id may be missing, or an empty text."""
    table = arrow_table(identity.cells)
    for name, column in zip(table.column_names, table.columns, strict=True):
        cells = column_as_text(column).to_pylist()
        if name != identity.name and {*ids} <= {*cells} and len({*cells}) == len(cells):
            option = f"--id {shell_word(name)}"
            return f"Column {short_repr(name)} has these identifiers: try {option}. "
    if identity.is_column and all(re.fullmatch("[1-9][0-9]*", name) for name in ids):
        return "These identifiers may count lines: try without --id. "
    return ""


def labels_now(frame, labels: Labels) -> list:
    """Return the labels of a table as they are, without checks that something can be learned."""
    spelling = {"strip": labels.strip, "merge": labels.merge}
    return cells_as_labels(frame[labels.column], labels.unlabeled, **spelling)


def as_cells(names):
    """Return names as the cells of a column."""
    return pd.Series(list(names), dtype=object)


# ------------------------------------------------------------------------------------------- apply


def with_labels(frame, column, labels: dict):
    """Return a table with other labels in some rows, by position; None is no label."""
    cells = arrow_table(frame[[column]]).column(0)
    as_text = str if is_text(cells.type) else label_as_text  # 1.0 cannot be cast to int
    texts = [_text(label, as_text) for label in labels.values()]
    try:
        new = pa.array(texts, pa.string()).cast(cells.type)
    except pa.ArrowException:
        raise TableError(
            f"Column {short_repr(column)} holds {cells.type} and cannot hold each of the labels "
            f"{some_of(sorted({*texts} - {None}))}. Convert it to text."
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
    decisions = read_all(paths)
    n_skipped = sum(d.decision == "skip" for d in decisions)
    matched = match_decisions(decisions, identity, labels_now(frame, labels))
    changed = [m for m in matched if not m.is_applied and m.old != m.new]
    corrected = with_labels(frame, labels.column, {m.row: m.new for m in changed})
    log = [(m.decision.id, _text(m.old), _text(m.new), m.decision.decision) for m in changed]
    names = ["id", "old_label", "new_label", "decision"]
    n_before = sum(m.is_applied for m in matched)
    n_kept = len(matched) - len(changed) - n_before
    sentence = (
        f"Labels: {len(changed):,} changed, {n_before:,} changed before, {n_kept:,} kept, "
        f"{n_skipped:,} skipped."
    )
    return corrected, pd.DataFrame(log, columns=names, dtype=object), sentence


def next_steps(frame, labels: Labels, changes, data, paths) -> list[str]:
    """Return sentences on how to audit again after a table was corrected.

    Parameters
    ----------
    frame : DataFrame
        The table before it was corrected.
    labels : Labels
        The column of labels, and which cells mean "no label".
    changes : DataFrame
        What changed; see `correct`.
    data, paths : str and sequence of str
        The name of the table, and the files with decisions.
    """
    words = " ".join(f"--decisions {shell_word(str(path))}" for path in paths)
    found = [f"To audit again with these decisions, audit {shell_word(str(data))} with {words}."]
    before = {label_as_text(label) for label in labels_now(frame, labels)}
    new = sorted({name for name in changes["new_label"] if label_as_text(name) not in before})
    if new:
        words = " ".join(f"--unlabeled {shell_word(name)}" for name in new[:MAX_NAMED])
        found.append(
            f"The corrected table has new labels, {listed(new)}. To audit it without --decisions, "
            f"add {words} if they are the class of --negative; with --design, add their meaning."
        )
    return found
