"""The identity of each row: an identifier that people use, and a hash that notices other cells."""

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from looselabels._validation import short_repr
from looselabels.command.tables import (
    NUMBER,
    TableError,
    arrow_table,
    check_columns,
    column_as_text,
    number_of_first_row,
    pa,
    pc,
    row_location,
)

N_DIGITS = 12  # of a hash, hexadecimal; the identifier is compared too
NOTES = {
    ("Line", 2): "Rows are named by their line in the file; the header is line 1.",
    ("Row", 2): "Rows are numbered as in a spreadsheet; the header is row 1.",
    ("Row", 1): "Rows are numbered from 1; the header is not counted.",
}


@dataclass(frozen=True, eq=False)
class Identity:
    """How the rows of a table are named, and how they are recognized in another version of it."""

    name: str  #: of the identifier: a column, "Line" or "Row"
    note: str  #: a sentence on what the identifier is
    ids: Sequence  #: the identifier of each row: text, or numbers that count
    cells: Any  #: the table without the label column, a DataFrame

    @property
    def is_column(self) -> bool:
        """Whether a column names the rows; otherwise they are counted."""
        return not isinstance(self.ids, range)

    def positions(self, ids) -> list[int | None]:
        """Return the row of each identifier, which is text; None if no row has it."""
        position = {str(name): row for row, name in enumerate(self.ids)}
        return [position.get(name) for name in ids]

    def hashes(self, rows) -> list[str]:
        """Return a short hash of the identifier and the cells of each of `rows`.

        It does not depend on the label, on the order of columns, or on how a number is written.
        With a column of identifiers, a CSV file and a Parquet file with the same text and numbers
        have the same hashes. It starts with a letter, so that a spreadsheet does not read it as a
        number.
        """
        rows = list(rows)
        if not rows:
            return []
        table = arrow_table(self.cells.iloc[rows][sorted(self.cells.columns)])
        ids = pa.array([str(self.ids[row]) for row in rows], pa.large_string())
        texts = [ids, *map(_as_plain_text, table.columns)]
        joined = pc.binary_join_element_wise(*texts, pa.scalar("\x1f", pa.large_string()))
        return ["h" + sha256(text.encode()).hexdigest()[:N_DIGITS] for text in joined.to_pylist()]


def identify(frame, column=None, *, label) -> Identity:
    """Return the identity of the rows of a table.

    Parameters
    ----------
    frame : DataFrame
        A table, as returned by `read_table`.
    column : str, default=None
        The column of identifiers. None: rows are counted.
    label : str
        The column of labels. It is no part of the identity, because labels are corrected.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"name": ["Tom", "Rex"], "size": [3, 7], "kind": ["dog", "dog"]})
    >>> animals = identify(frame, "name", label="kind")
    >>> animals.positions(["Rex", "Ben"])
    [1, None]
    >>> corrected = identify(frame.assign(kind=["cat", "dog"]), "name", label="kind")
    >>> animals.hashes([0]) == corrected.hashes([0])
    True
    """
    cells = frame.drop(columns=label)
    if column is None:
        name, first = number_of_first_row(frame)
        return Identity(name, NOTES[name, first], range(first, first + len(frame)), cells)
    check_columns(list(frame.columns), column, "The table")
    if column == label:
        raise TableError(f"Column {short_repr(column)} is the label; it cannot identify rows.")
    ids = column_as_text(arrow_table(frame[[column]]).column(0)).to_pylist()
    _check_distinct(ids, frame, column)
    return Identity(column, f"Rows are named by the column {short_repr(column)}.", ids, cells)


def _check_distinct(ids, frame, column):
    """Raise if an identifier is missing or occurs twice."""
    first: dict = {}
    for row, name in enumerate(ids):
        if name is None:
            raise TableError(
                f"{row_location(frame, row)}: column {short_repr(column)} is empty, but each row "
                "needs an identifier."
            )
        if first.setdefault(name, row) != row:
            raise TableError(
                f"Column {short_repr(column)} has {short_repr(name)} twice, at "
                f"{row_location(frame, first[name])} and {row_location(frame, row)}; an identifier "
                "must be unique."
            )


def _as_plain_text(column):
    """Return a column as text that is equal for 1, 1.0 and "1.00", and for true, "True" and "TRUE".

    A spreadsheet changes True to TRUE when it saves a CSV file.
    """
    text = pc.fill_null(column_as_text(column), "")
    is_number = pc.match_substring_regex(text, NUMBER)
    number = pc.if_else(is_number, text, None).cast(pa.float64()).cast(pa.large_string())
    is_bool = pc.is_in(text, pa.array(["True", "False", "TRUE", "FALSE"], pa.large_string()))
    return pc.coalesce(number, pc.if_else(is_bool, pc.utf8_lower(text), text))
