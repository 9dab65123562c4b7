"""The labels of a table: cells as labels, and checks that something can be learned from them."""

import re
import warnings
from typing import Any, NamedTuple

from looselabels._names import UNLABELED, listed, plain_name
from looselabels._validation import short_repr
from looselabels.transition import Transition

MIN_ROWS = 10  # needed for cross-validation
MAX_UNSUSPICIOUS = 20  # distinct labels; with more, the column may be an identifier
MAX_LABELS = 1000  # distinct labels; more take hours


class Labels(NamedTuple):
    """What the user specified about a column of labels."""

    column: str
    unlabeled: tuple = ()  #: cells that mean "no label", in addition to empty ones
    negative: Any = None  #: the class that is never labeled, if there is one
    noise: float | str = "estimate"  #: the share of wrong labels
    design: Transition | None = None  #: p(label | class), if specified


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
    column = cells_as_labels(frame[labels.column], labels.unlabeled, known)
    if labels.design is not None:
        check_known(column, known, labels.column)
    distinct = {cell for cell in column if cell is not None}
    _check_labels(labels, distinct, sum(cell is not None for cell in column), len(column))
    _warn_of_likely_mistakes(frame, labels, distinct)
    return column


def cells_as_labels(cells, unlabeled=(), known=()) -> list:
    """Return a column of cells as labels; a cell that spells a `known` label becomes that label.

    Examples
    --------
    >>> import pandas as pd
    >>> cells_as_labels(pd.Series(["1", "1.0", "-1"]), unlabeled=("-1",), known=(1, 0))
    [1, 1, None]
    """
    by_text = {_as_text(label): label for label in known if label is not None}
    missing = {_as_text(text) for text in unlabeled}
    values = cells.astype(object).tolist()
    labels: dict = {}
    try:
        for cell in set(values):  # the slow part, only once per distinct cell
            label = plain_name(cell)
            if label in unlabeled or (not isinstance(label, str) and _as_text(label) in missing):
                labels[cell] = None
            else:
                labels[cell] = label if label in known else by_text.get(_as_text(label), label)
        return [labels[cell] for cell in values]
    except TypeError:
        name = short_repr(cells.name)
        raise ValueError(
            f"Column {name} holds lists; a label must be text, a number or bool."
        ) from None


def check_known(labels, known, column) -> None:
    """Raise if the column contains labels that are not `known`."""
    unknown = sorted({label for label in labels if label not in known}, key=str)
    if unknown == [None]:
        raise ValueError(
            f"Column {short_repr(column)} has rows without a label, but the design does not "
            'include a missing label. Add what it means, such as "": ["dog", "wolf"].'
        )
    if unknown:
        raise ValueError(
            f"Column {short_repr(column)} holds {listed(unknown)}; the known labels are "
            f"{listed(known)}. Correct the cells, or use --unlabeled if they mean 'no label'."
        )


def _as_text(label) -> str:
    """Return one text for labels that files write in several ways: True and true, 1.0 and 1."""
    text = str(label)
    if text in ("True", "False"):
        return text.lower()
    return text.removesuffix(".0") if re.fullmatch(r"-?\d+\.0", text) else text


def _check_labels(labels: Labels, distinct, n_labeled, n_rows):
    """Raise if nothing can be learned from the labels."""
    name = f"Column {short_repr(labels.column)}"
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
    if labels.design is None:
        _check_negative(labels, distinct, name)


def _check_negative(labels: Labels, distinct, name):
    """Raise if the labels contradict the negative class, or if only one label occurs."""
    if labels.negative in {_as_text(label) for label in distinct}:
        negative = short_repr(labels.negative)
        raise ValueError(
            f"{name} contains the label {negative}, but the negative class has no label. Omit "
            f"--negative, or pass --unlabeled {negative} if these rows are unlabeled."
        )
    if len(distinct) == 1 and labels.negative is None:
        raise ValueError(
            f"{name} contains only one label, {listed(distinct)}. If unlabeled rows can belong to "
            "another class, name that class: --negative other."
        )


def _warn_of_likely_mistakes(frame, labels: Labels, distinct):
    """Warn if --unlabeled matches no cell, and if labels differ only in case or spaces."""
    cells = {_as_text(cell) for cell in frame[labels.column].unique()}
    for text in labels.unlabeled:
        if text and _as_text(text) not in cells:
            warnings.warn(f"--unlabeled {short_repr(text)} matches no cell.", stacklevel=3)
    similar: dict = {}
    for label in distinct:
        similar.setdefault(" ".join(str(label).split()).casefold(), []).append(label)
    for group in similar.values():
        if len(group) > 1:
            names = listed(sorted(group, key=str))
            warnings.warn(f"Labels {names} differ only in case or spaces.", stacklevel=3)
