"""Several answers per row: columns of a table, or a file with one answer per line."""

from itertools import filterfalse

import click
import numpy as np

from looselabels._names import listed
from looselabels._validation import short_repr, some_of
from looselabels.annotations import Annotations
from looselabels.command.identity import Identity
from looselabels.command.labels import (
    Labels,
    cells_as_labels,
    check_known,
    check_labels,
    warn_of_unused_words,
)
from looselabels.command.tables import (
    TableError,
    arrow_table,
    check_columns,
    column_as_text,
    pd,
    read_table,
    row_location,
)
from looselabels.estimation.sampling import MAX_FIT_ROWS
from looselabels.transition import is_missing

COLUMNS = ("row", "annotator", "label")  # of a file of answers, in this order
# Options that say how one label per row arises, or what a person decided about it.
ABOUT_ONE_LABEL = {
    **dict.fromkeys(("negative", "noise", "design", "source", "label_rate"), None),
    **dict.fromkeys(("class_share", "decisions"), ()),
    **dict.fromkeys(("accept_above", "proba"), None),
    "max_fit_rows": MAX_FIT_ROWS,
}


def has_answers(options, proba=None) -> bool:
    """Return whether the options name several answers per row; raise if they contradict each other.

    With a single --label, the option becomes its column.
    """
    columns, file = options["label"], options["annotations"]
    twice = [name for name in dict.fromkeys(columns) if columns.count(name) > 1]
    if twice:
        raise click.UsageError(f"--label {short_repr(twice[0])} is given twice.")
    if file is not None and columns:
        raise click.UsageError("Pass either --label or --annotations; both name the answers.")
    if file is None and len(columns) < 2:
        options["label"] = columns[0] if columns else None
        if options["missing_is_label"]:
            raise click.UsageError("--missing-is-label needs several --label, or --annotations.")
        return False
    for name, default in ABOUT_ONE_LABEL.items():
        if (proba if name == "proba" else options[name]) != default:
            given = "--annotations" if file is not None else "several --label"
            raise click.UsageError(
                f"--{name.replace('_', '-')} cannot be combined with {given}: it is for one label "
                "per row."
            )
    return True


def answers_in_columns(frame, labels: Labels, columns, missing_is_label=False) -> Annotations:
    """Return the answers in some columns of a table, one column per annotator.

    `missing_is_label` is that of `Annotations`.

    Examples
    --------
    >>> frame = pd.DataFrame({"ann": ["cat", "?"] * 5, "bob": ["cat", "dog"] * 5})
    >>> answers_in_columns(frame, Labels("", unlabeled=("?",)), ["ann", "bob"])
    Annotations(10 rows, 2 annotators, 15 answers, labels ('cat', 'dog'))
    """
    for name in columns:
        check_columns(list(frame.columns), name, "The table")
    cells = pd.concat([frame[name].astype(object) for name in columns], ignore_index=True)
    found = np.empty(len(cells), dtype=object)
    found[:] = _read_cells(cells, labels, f"The group of columns {listed(columns)}", len(frame))
    table = found.reshape(len(columns), len(frame)).T
    frame = pd.DataFrame(table, columns=list(columns))
    return Annotations.from_table(frame, missing_is_label=missing_is_label)


def answers_for_model(frame, labels: Labels, columns, clf):
    """Return the answers in some columns of a table, which are some of a model's annotators."""
    known, found = clf.transition_.labels, {}
    for name in columns:
        check_columns(list(frame.columns), name, "The table")
        if name not in clf.transitions_:
            raise ValueError(
                f"The model has no annotator {short_repr(name)}; it has "
                f"{some_of(clf.transitions_, 10)}."
            )
        spelling = {"strip": labels.strip, "merge": labels.merge}
        cells = cells_as_labels(frame[name], labels.unlabeled, known, **spelling)
        check_known(filterfalse(is_missing, cells), known, name)
        found[name] = cells
    return pd.DataFrame(found, dtype=object)


def answers_in_file(path, labels: Labels, identity: Identity, missing_is_label=False):
    """Return the answers in a file with one answer per line: row, annotator, label.

    Parameters
    ----------
    path : str or path
        The file. Its columns are named as the identifier of the rows, annotator and label, or there
        are three columns in this order.
    labels : Labels
        How labels are spelled.
    identity : Identity
        How the rows of the table are named.
    missing_is_label : bool
        As in `Annotations`.
    """
    frame = read_table(path)
    columns = _columns_of(frame, path, identity.name)
    ids, people = (_texts(frame, name) for name in columns[:2])
    for name, texts in zip(columns, (ids, people), strict=False):
        if None in texts:
            raise TableError(
                f"{row_location(frame, texts.index(None))}: column {short_repr(name)} is empty, "
                "but each answer needs a row and an annotator."
            )
    name = f"Column {short_repr(columns[2])} of {path}"
    found = _read_cells(frame[columns[2]], labels, name, len(identity.ids))
    rows = _rows(ids, identity, frame, path)
    _check_once([i for i, label in enumerate(found) if label is not None], ids, people, frame)
    return Annotations.from_triples(
        rows, people, found, n_rows=len(identity.ids), missing_is_label=missing_is_label
    )


def _columns_of(frame, path, id_name) -> list[str]:
    """Return the columns of row, annotator and label: by name or, if there are three, by order."""
    names = list(frame.columns)
    for wanted in ([id_name, *COLUMNS[1:]], list(COLUMNS)):
        if set(wanted) <= set(names):
            return wanted
    if len(names) != len(COLUMNS):
        raise TableError(
            f"{path} needs the columns {short_repr(id_name)}, 'annotator' and 'label', or three "
            f"columns in this order; it has {some_of(names, 10)}."
        )
    return names


def _texts(frame, column) -> list:
    return column_as_text(arrow_table(frame[[column]]).column(0)).to_pylist()


def _read_cells(cells, labels: Labels, name, n_rows) -> list:
    """Return cells as labels, None without an answer; raise if nothing can be learned from them."""
    found = cells_as_labels(cells, labels.unlabeled, strip=labels.strip, merge=labels.merge)
    given = [label for label in found if label is not None]
    distinct = dict.fromkeys(given)
    check_labels(name, distinct, min(len(given), n_rows), n_rows)
    if len(distinct) == 1:
        raise ValueError(f"{name} contains only one label, {listed(distinct)}; two are needed.")
    warn_of_unused_words(cells, labels)
    return found


def _rows(ids, identity: Identity, frame, path) -> list[int]:
    """Return the row of each answer; raise if the table does not have it."""
    rows = identity.positions(ids)
    unknown = {name: i for i, name in reversed([*enumerate(ids)]) if rows[i] is None}
    if unknown:
        names = sorted(unknown, key=unknown.__getitem__)
        first, place = names[0], row_location(frame, unknown[names[0]])
        such = "one such row" if len(names) == 1 else f"{len(names):,} such rows"
        raise TableError(
            f"{place}: column {short_repr(identity.name)} of the table has no {short_repr(first)}. "
            f"{path} has answers for {such}: {some_of(names)}. Remove these answers, or add the "
            "rows."
        )
    return [row for row in rows if row is not None]


def _check_once(given, ids, people, frame) -> None:
    """Raise if an annotator answered a row twice."""
    first: dict = {}
    for i in given:
        before = first.setdefault((ids[i], people[i]), i)
        if before != i:
            raise TableError(
                f"{row_location(frame, before)} and {row_location(frame, i)}: "
                f"{short_repr(people[i])} answered {short_repr(ids[i])} twice. Keep one of them."
            )
