"""The labels of a table: cells as labels, and checks that something can be learned from them."""

import warnings
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from looselabels._names import UNLABELED, listed, plain_name
from looselabels._validation import short_repr
from looselabels.command.sources import nearest
from looselabels.command.spelling import joined, label_as_text, respelled
from looselabels.command.tables import pd, row_location
from looselabels.estimation.sampling import sample_rows
from looselabels.transition import Transition, is_missing, named_class

MIN_ROWS = 10  # needed for cross-validation
MAX_UNSUSPICIOUS = 20  # distinct labels; with more, the column may be an identifier
MAX_LABELS = 1000  # distinct labels; more take hours
MIN_PREDICTED, MAX_COMMON = 0.99, 0.9  # of the labels: by a copy of them; the most common one
MAX_VALUES, ROWS_PER_VALUE, N_SAMPLED = 40, 10, 2000  # of a column that may be a copy


class Labels(NamedTuple):
    """What the user specified about a column of labels."""

    column: str
    unlabeled: tuple = ()  #: cells that mean "no label", in addition to empty ones
    negative: Any = None  #: the class that is never labeled, if there is one
    noise: float | str | None = None  #: the share of wrong labels; None: as `DecoupledClassifier`
    design: Transition | None = None  #: p(label | class), if specified
    strip: bool = False  #: whether spaces around a label, and repeated ones in it, are removed
    merge: Mapping[str, str] = MappingProxyType({})  #: the label to use instead, by spelling
    source: str | None = None  #: the column that names the data set of each row
    class_prior: dict | None = None  #: the share of each class, if specified
    label_rate: float | None = None  #: the labeled share of each positive class, if specified


def read_labels(frame, labels: Labels) -> list:
    """Return the labels of a table: None where a cell is empty or means "no label".

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"kind": ["cat", "?", "dog", None, "cat"] * 2})
    >>> read_labels(frame, Labels("kind", unlabeled=("?",)))[:5]
    ['cat', None, 'dog', None, 'cat']
    """
    known = () if labels.design is None else labels.design.labels
    column = labels_of(frame, labels, known)
    if labels.design is not None:
        check_known(column, known, labels.column, labels.design.classes)
    given = [label for label in column if not is_missing(label)]
    # a dict keeps the order of the table; a set of text has another order in each run
    distinct = dict.fromkeys(given if labels.source is None else [label for _, label in given])
    name = f"Column {short_repr(labels.column)}"
    check_labels(name, distinct, len(given), len(column))
    if labels.design is None:
        _check_negative(labels, distinct, name)
    warn_of_unused_words(frame[labels.column], labels)
    return column


def labels_of(frame, labels: Labels, known=()) -> list:
    """Return the labels of a table without checks; with a source, they are (source, label)."""
    cells, spelling = frame[labels.column], {"strip": labels.strip, "merge": labels.merge}
    if labels.source is None:
        return cells_as_labels(cells, labels.unlabeled, known, **spelling)
    sources = _read_sources(frame, labels.source, tuple(dict.fromkeys(name for name, _ in known)))
    column = np.empty(len(cells), dtype=object)
    for source in set(sources):
        rows = [row for row, name in enumerate(sources) if name == source]
        own = [label for name, label in known if name == source]
        found = cells_as_labels(cells.iloc[rows], labels.unlabeled, own, **spelling)
        for row, label in zip(rows, found, strict=True):
            column[row] = (source, label)
    return column.tolist()


def _read_sources(frame, column, known) -> list:
    """Return the data set of each row; raise if the design does not include it."""
    if column not in frame:
        raise ValueError(
            f"The table has no column {short_repr(column)}.{nearest(column, list(frame.columns))}"
        )
    sources = cells_as_labels(frame[column], known=known)
    if None in sources:
        raise ValueError(
            f"{row_location(frame, sources.index(None))}: column {short_repr(column)} is empty, "
            "but each row needs a source."
        )
    unknown = sorted(set(sources) - set(known), key=str)
    if unknown:
        raise ValueError(
            f"Column {short_repr(column)} names the sources {listed(unknown)}, which the design "
            f"does not include; it has {listed(known)}."
        )
    return sources


def cells_as_labels(cells, unlabeled=(), known=(), *, strip=False, merge=None) -> list:
    """Return a column of cells as labels; a cell that spells a `known` label becomes that label.

    `strip` and `merge` are those of `Labels`.

    Examples
    --------
    >>> import pandas as pd
    >>> cells_as_labels(pd.Series(["1", "1.0", "-1"]), unlabeled=("-1",), known=(1, 0))
    [1, 1, None]
    >>> cells_as_labels(pd.Series([" a", "b", "B"]), strip=True, merge={"b": "B"})
    ['a', 'B', 'B']
    """
    by_text = {label_as_text(label): label for label in known if label is not None}
    missing = {label_as_text(text) for text in unlabeled}
    values = cells.astype(object).tolist()
    labels: dict = {}
    try:
        for cell in set(values):  # the slow part, only once per distinct cell
            label = respelled(plain_name(cell), strip, merge or {})
            if label in unlabeled or (
                not isinstance(label, str) and label_as_text(label) in missing
            ):
                labels[cell] = None
            else:
                labels[cell] = label if label in known else by_text.get(label_as_text(label), label)
    except TypeError:
        name = short_repr(cells.name)
        raise ValueError(
            f"Column {name} holds lists; a label must be text, a number or bool."
        ) from None
    if merge:  # a label that is a number keeps its type if others are merged into it
        by_text = {
            label_as_text(name): name
            for name in labels.values()
            if not isinstance(name, str | None)
        }
        labels = {cell: by_text.get(label_as_text(name), name) for cell, name in labels.items()}
    return [labels[cell] for cell in values]


def check_known(labels, known, column, classes=()) -> None:
    """Raise if the column contains labels that are not `known`; they may be names of classes."""
    unknown = set(labels).difference(known)
    missing = sorted(filter(is_missing, unknown), key=str)
    wrong = sorted(unknown.difference(missing), key=str)
    if wrong:
        allowed = tuple(label for label in known if not is_missing(label))  # no cell spells None
        hint = ""
        if all(named_class(label, classes) is not None for label in wrong):
            hint = (
                " They are classes of the design: if a review decided on them, pass --decisions; "
                'otherwise add labels for them, such as "wolf": "wolf".'
            )
        raise ValueError(
            f"Column {short_repr(column)} holds {listed(wrong)}; the known labels are "
            f"{listed(allowed)}. Correct the cells, or use --merge, or --unlabeled if they mean "
            f"'no label'.{hint}"
        )
    if missing:
        source = f" of source {short_repr(missing[0][0])}" if missing[0] is not None else ""
        raise ValueError(
            f"Column {short_repr(column)} has rows{source} without a label, but the design does "
            'not include a missing label. Add what it means, such as "": ["dog", "wolf"].'
        )


def check_labels(name, distinct, n_labeled, n_rows) -> None:
    """Raise if nothing can be learned from labels; `name` is where they are from."""
    if n_rows < MIN_ROWS:
        rows = "row" if n_rows == 1 else "rows"
        raise ValueError(f"The table has {n_rows} {rows}; at least {MIN_ROWS} are needed.")
    if not distinct:
        raise ValueError(f"{name} contains no label; label at least one row of each class.")
    if UNLABELED in distinct:
        raise ValueError(
            f"{name} contains the text {UNLABELED!r}. If it means 'no label', pass --unlabeled "
            f"{UNLABELED!r}; otherwise rename it."
        )
    fractions = [label for label in distinct if isinstance(label, float) and not label.is_integer()]
    if fractions:
        raise ValueError(
            f"{name} contains {fractions[0]} and looks like a measurement; a label must be text or "
            "a whole number."
        )
    n_labels = f"{name} has {len(distinct):,} different labels in {n_labeled:,} labeled rows"
    if len(distinct) > MAX_UNSUSPICIOUS and 2 * len(distinct) > n_labeled:
        raise ValueError(f"{n_labels}. Is it an identifier? Name the column of labels: --label.")
    if len(distinct) > MAX_LABELS:
        raise ValueError(f"{n_labels}; at most {MAX_LABELS:,} are possible. Merge rare labels.")


def _check_negative(labels: Labels, distinct, name):
    """Raise if the labels contradict the negative class, or if only one label occurs."""
    negative = labels.negative and label_as_text(labels.negative)
    if found := [label for label in distinct if label_as_text(label) == negative]:
        written = short_repr(str(found[0]))  # as --unlabeled must spell it
        raise ValueError(
            f"{name} contains the label {written}, but the negative class has no label. Omit "
            f"--negative, or pass --unlabeled {written} if these rows are unlabeled."
        )
    if len(distinct) == 1 and labels.negative is None:
        raise ValueError(
            f"{name} contains only one label, {listed(distinct)}. If unlabeled rows can belong to "
            "another class, name that class: --negative other."
        )


def note_copies(frame, y, names) -> list[str]:
    """Return a note on each of the columns `names` that predicts nearly all labels on its own.

    It has few values, and nearly all rows with the same value have the same label. If labels can be
    wrong, only a copy of them does this, and a model that learns from it repeats their errors.

    >>> import pandas as pd
    >>> frame = pd.DataFrame({"code": [1, 2, 3] * 10, "color": ["red", "blue"] * 15})
    >>> note_copies(frame, ["cat", "dog", "emu"] * 10, ["code", "color"])[0].partition(":")[0]
    "Column 'code' alone predicts 100.0% of the labels"
    """
    given = [row for row, label in enumerate(y) if not is_missing(label)]
    rows = [given[i] for i in sample_rows(len(given), N_SAMPLED, random_state=0)]
    number = {label: k for k, label in enumerate(dict.fromkeys(y[row] for row in rows))}
    label = np.array([number[y[row]] for row in rows], dtype=int)
    found, sample = [], frame[list(names)].iloc[rows]
    if np.bincount(label).max() > MAX_COMMON * len(rows):
        return []
    for name in names:
        value, values = pd.factorize(sample[name], use_na_sentinel=False)
        if len(values) > min(MAX_VALUES, len(rows) // ROWS_PER_VALUE):
            continue
        counts = np.bincount(value * len(number) + label, minlength=len(values) * len(number))
        predicted = counts.reshape(len(values), -1).max(axis=1).sum() / len(rows)
        if predicted >= MIN_PREDICTED:
            found.append(
                f"Column {short_repr(name)} alone predicts {predicted:.1%} of the labels: if it "
                "was made from them, it repeats their errors, which are not found then. To leave "
                "it out, name the other columns with --features."
            )
    return found


def warn_of_unused_words(cells, labels: Labels) -> None:
    """Warn if --unlabeled or --merge matches no cell."""
    found = {label_as_text(cell) for cell in cells.unique()}
    if labels.strip:
        found |= set(map(joined, found))
    found |= {labels.merge[cell] for cell in found if cell in labels.merge}
    for option, texts in (("--unlabeled", labels.unlabeled), ("--merge", labels.merge)):
        for text in texts:
            if text and label_as_text(text) not in found:
                warnings.warn(f"{option} {short_repr(text)} matches no cell.", stacklevel=3)
