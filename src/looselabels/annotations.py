"""Annotations: several labels per row, each by a named annotator.

An *answer* is one label by one annotator for one row. Only answers are stored, never the full table
of rows and annotators: 3 answers each for a million rows are 3 million triples, no matter how many
annotators there are.
"""

import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from looselabels._names import listed, look_missing, read_column, read_names, sorted_labels
from looselabels._validation import import_extra, short_repr, some_of
from looselabels.exceptions import IdentifiabilityWarning

MANY_ANSWERS = 5  # whoever gives this many does not give the same label each time by chance


class Answers(NamedTuple):
    """Who answered what for which row: indices without names, sorted by row, then by annotator."""

    row: np.ndarray  #: the row of each answer
    annotator: np.ndarray  #: who gave it
    label: np.ndarray  #: the answer itself
    n_rows: int  #: rows, including those without answers
    n_annotators: int  #: annotators, including those without answers
    n_labels: int  #: different labels, including `missing_label`
    #: the label that "no answer" means, for labeling functions that abstain; None: not asked
    missing_label: int | None = None

    @property
    def n_answers(self) -> np.ndarray:
        """The number of answers of each row."""
        return np.bincount(self.row, minlength=self.n_rows)

    def take(self, rows) -> "Answers":
        """Return the answers of some rows: indices, in any order and repeated, or a mask."""
        rows = np.arange(self.n_rows)[rows]
        ends = np.cumsum(self.n_answers)
        counts = self.n_answers[rows]
        # position of each answer = start of its row + its place within the row
        place = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
        found = np.repeat(ends[rows] - counts, counts) + place
        return self._replace(
            row=np.repeat(np.arange(len(rows)), counts),
            annotator=self.annotator[found],
            label=self.label[found],
            n_rows=len(rows),
        )


@dataclass(frozen=True, eq=False, repr=False)
class Annotations:
    """Several labels per row, with the names of annotators and labels.

    `DecoupledClassifier.fit` accepts it as Y. An annotator without answers is kept: nothing is
    known about it, so its transition is that of a typical annotator.

    Attributes
    ----------
    annotators, labels : tuple
        Their names. Labels are sorted; None is the last of them if "no answer" is a label.
    answers : Answers
        Who answered what for which row, by index.

    Examples
    --------
    >>> table = np.array([["cat", "cat", None], [None, "dog", "cat"]], dtype=object)
    >>> found = Annotations.from_table(table)
    >>> found
    Annotations(2 rows, 3 annotators, 4 answers, labels ('cat', 'dog'))
    >>> found.answers.row, found.answers.annotator, found.answers.label
    (array([0, 0, 1, 1]), array([0, 1, 1, 2]), array([0, 0, 1, 0]))
    """

    annotators: tuple
    labels: tuple
    answers: Answers

    def __post_init__(self):
        for array in self.answers[:3]:
            array.setflags(write=False)

    @classmethod
    def from_table(cls, Y, *, missing_is_label=False) -> "Annotations":
        """Read a table with one row per sample and one column per annotator.

        Parameters
        ----------
        Y : DataFrame or 2-D array
            Missing values (None, NaN, NA) mean that the annotator was not asked. The columns of an
            array are called 0, 1, 2, ….
        missing_is_label : bool, default=False
            Whether not answering says something about the class, as with labeling functions that
            abstain. It is then a label of its own, None, which names no class.
        """
        if not _is_table(Y):
            raise ValueError(
                f"Y must be a DataFrame or a 2-D array with one column per annotator; it is "
                f"{short_repr(Y)}. For (row, annotator, label) triples use annotations_to_table."
            )
        if not hasattr(Y, "columns"):
            names, columns = tuple(range(Y.shape[1])), list(Y.T)
        else:
            names = read_names("columns of Y", Y.columns)
            columns = [Y.iloc[:, a] if hasattr(Y, "iloc") else Y[:, a] for a in range(Y.shape[1])]
            unnamed = [a for a, name in enumerate(names) if name is None or name != name]
            if unnamed:
                raise ValueError(f"column {unnamed[0]} of Y has no name; name its annotator.")
        parts = [
            read_column(f"column {short_repr(name)} of Y", column)
            for name, column in zip(names, columns, strict=True)
        ]
        labels = _label_names(name for found, _ in parts for name in found)
        position = {name: s for s, name in enumerate(labels)} | {None: -1}
        table = [np.array([position[n] for n in found], np.intp)[index] for found, index in parts]
        given = [np.flatnonzero(column >= 0) for column in table]
        row = np.concatenate(given)
        annotator = np.repeat(np.arange(len(given)), [len(rows) for rows in given])
        label = np.concatenate([c[rows] for c, rows in zip(table, given, strict=True)])
        return cls._of(names, labels, row, annotator, label, Y.shape[0], missing_is_label)

    @classmethod
    def from_triples(
        cls, rows, annotators, labels, *, index=None, n_rows=None, missing_is_label=False
    ) -> "Annotations":
        """Read answers in long form: one row, one annotator and one label per answer.

        Parameters
        ----------
        rows : sequence
            The row of each answer: its position, or its identifier if `index` is given.
        annotators, labels : sequence
            Who gave each answer, and what it was. Missing labels are no answers: left out.
        index : sequence, optional
            The identifiers of the rows of X, in order.
        n_rows : int, optional
            The number of rows of X. None: the highest position plus 1, or the length of `index`.
        missing_is_label : bool, default=False
            As in `from_table`.

        Examples
        --------
        >>> Annotations.from_triples(["b", "a"], ["ann", "bob"], [1, 0], index=["a", "b"])
        Annotations(2 rows, 2 annotators, 2 answers, labels (0, 1))
        """
        people, annotator = read_column("annotators", annotators)
        names, label = read_column("labels", labels)
        row, n_rows = _row_positions(rows, index, n_rows)
        if not len(row) == len(annotator) == len(label):
            raise ValueError(
                f"rows, annotators and labels must be of equal length; they have {len(row)}, "
                f"{len(annotator)} and {len(label)}."
            )
        if None in people:
            where = int(np.argmax(annotator == people.index(None)))
            raise ValueError(f"annotators: answer {where} has no annotator; name it.")
        known = _label_names(names)
        position = {name: s for s, name in enumerate(known)} | {None: -1}
        label = np.array([position[name] for name in names], np.intp)[label]
        order = {name: a for a, name in enumerate(_sorted_if_possible(people))}
        annotator = np.array([order[name] for name in people], np.intp)[annotator]
        given = label >= 0
        columns = row[given], annotator[given], label[given]
        return cls._of(tuple(order), known, *columns, n_rows, missing_is_label)

    @classmethod
    def _of(cls, annotators, labels, row, annotator, label, n_rows, missing_is_label):
        """Return sorted and checked annotations."""
        order = np.lexsort((annotator, row))
        row, annotator, label = row[order], annotator[order], label[order]
        twice = (row[1:] == row[:-1]) & (annotator[1:] == annotator[:-1])
        if twice.any():
            i = int(np.argmax(twice))
            first, second = (short_repr(labels[label[k]]) for k in (i, i + 1))
            raise ValueError(
                f"row {row[i]} has several answers by annotator "
                f"{short_repr(annotators[annotator[i]])}, {first} and {second}; {twice.sum()} "
                "answers repeat a row and an annotator. Keep one of them."
            )
        missing = len(labels) if missing_is_label else None
        labels = (*labels, None) if missing_is_label else tuple(labels)
        answers = Answers(row, annotator, label, n_rows, len(annotators), len(labels), missing)
        return cls(annotators, labels, answers)

    @property
    def n_answers(self) -> int:
        """How many answers there are."""
        return len(self.answers.row)

    def take(self, rows) -> "Annotations":
        """Return the annotations of some rows; all annotators and labels keep their names."""
        return Annotations(self.annotators, self.labels, self.answers.take(rows))

    def to_frame(self):
        """Return a DataFrame with one column per annotator, None where there is no answer."""
        pandas = import_extra("pandas", '"looselabels[tables]"')
        table: np.ndarray = np.full((len(self), len(self.annotators)), None, dtype=object)
        names: np.ndarray = np.empty(len(self.labels), dtype=object)
        names[:] = self.labels
        table[self.answers.row, self.answers.annotator] = names[self.answers.label]
        return pandas.DataFrame(table, columns=list(self.annotators), dtype=object)

    def __len__(self):
        return self.answers.n_rows

    def __eq__(self, other):
        if not isinstance(other, Annotations):
            return NotImplemented
        same_names = (self.annotators, self.labels) == (other.annotators, other.labels)
        return same_names and all(
            np.array_equal(mine, theirs)  # type: ignore[arg-type]
            for mine, theirs in zip(self.answers, other.answers, strict=True)
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self):
        return (
            f"Annotations({len(self)} rows, {len(self.annotators)} annotators, "
            f"{self.n_answers} answers, labels {listed(self.labels)})"
        )


def annotations_to_table(
    rows, annotators, labels, *, index=None, n_rows=None, missing_is_label=False
) -> Annotations:
    """Return the answers of several annotators, in long form, as Y for `DecoupledClassifier.fit`.

    The parameters are those of `Annotations.from_triples`.

    >>> annotations_to_table([0, 0, 2], ["ann", "bob", "ann"], ["cat", "dog", "cat"]).to_frame()
        ann   bob
    0   cat   dog
    1  None  None
    2   cat  None
    """
    return Annotations.from_triples(
        rows, annotators, labels, index=index, n_rows=n_rows, missing_is_label=missing_is_label
    )


def read_annotations(y) -> Annotations | None:
    """Return a table with several columns as annotations, None if `y` is a single column.

    >>> read_annotations(["cat", "dog"]) is None
    True
    """
    if isinstance(y, Annotations):
        return y
    return Annotations.from_table(y) if _is_table(y) and y.shape[1] > 1 else None


def warn_if_label_sets_are_disjoint(annotations: Annotations):
    """Warn if annotators use label sets without a common label, so that nothing connects them.

    The labels of both sets are then different classes, although they may mean the same ones.
    Annotators who used only one label say nothing about label sets.
    """
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    n = annotations.answers.n_labels
    annotator, label = _used_labels(annotations.answers)
    linked = np.flatnonzero(annotator[1:] == annotator[:-1])
    links = csr_array((np.ones(len(linked)), (label[linked], label[linked + 1])), shape=(n, n))
    _, part = connected_components(links, directed=False)
    sets = [np.flatnonzero(part == k) for k in np.flatnonzero(np.bincount(part) > 1)]
    if len(sets) > 1:
        names = [listed([annotations.labels[s] for s in found]) for found in sets[:2]]
        warnings.warn(
            f"No annotator uses labels of both {names[0]} and {names[1]}: they are taken to be "
            "different classes. If they mean the same classes, pass transition=, a mapping from "
            "annotator to Transition.",
            IdentifiabilityWarning,
            stacklevel=3,
        )


def warn_if_each_annotator_uses_one_label(annotations: Annotations):
    """Warn if annotators differ, but each always gives the same label, and silence says nothing.

    Their answers then do not depend on the class, as far as the data show. Usually they are
    labeling functions, and it is their silence that says something.
    """
    answers = annotations.answers
    annotator, label = _used_labels(answers)
    if answers.missing_label is not None or len(np.unique(annotator)) < len(annotator):
        return
    counts = np.bincount(answers.annotator, minlength=answers.n_annotators)
    annotator, label = (part[counts[annotator] >= MANY_ANSWERS] for part in (annotator, label))
    found, first = np.unique(label, return_index=True)
    if len(found) > 1:
        said = [
            f"{short_repr(annotations.annotators[annotator[i]])} always says "
            f"{short_repr(annotations.labels[label[i]])}"
            for i in first[:2]
        ]
        warnings.warn(
            f"Each annotator gives one label only: {said[0]}, and {said[1]}. Such answers do not "
            "tell classes apart: the consensus can be wrong in most rows, even where its "
            "probability is close to 1. If annotators are labeling functions that abstain "
            "elsewhere, pass Annotations.from_table(Y, missing_is_label=True).",
            IdentifiabilityWarning,
            stacklevel=3,
        )


def warn_of_labels_that_look_missing(annotations: Annotations):
    """Warn of labels with which other tools and conversions mark missing answers."""
    answers = annotations.answers
    is_full = len(answers.row) == answers.n_rows * answers.n_annotators
    for s in look_missing(annotations.labels, is_full):
        label, n_answers = annotations.labels[s], np.sum(answers.label == s)
        warnings.warn(
            f"Y contains the label {label!r} in {n_answers:,} answers; it is "
            "taken to be a class. If it means that there is no answer, replace it with None. "
            "If it means that a labeling function abstains, also pass "
            "Annotations.from_table(Y, missing_is_label=True).",
            UserWarning,
            stacklevel=3,
        )


# -------------------------------------------------------------------------------------------- parts


def _used_labels(answers: Answers) -> tuple[np.ndarray, np.ndarray]:
    """Return each annotator together with each label that it uses, as indices, sorted."""
    used = np.unique(answers.annotator * answers.n_labels + answers.label)
    return np.divmod(used, answers.n_labels)


def _is_table(y) -> bool:
    """Return whether `y` is 2-D; a list of tuples is a column, because tuples can be labels."""
    return len(getattr(y, "shape", ())) == 2 and (
        hasattr(y, "columns") or isinstance(y, np.ndarray)
    )


def _label_names(names: Iterable) -> tuple:
    """Return the sorted labels without the missing one."""
    return tuple(sorted_labels(dict.fromkeys(name for name in names if name is not None)))


def _sorted_if_possible(names) -> list:
    try:
        return sorted(names)
    except TypeError:  # text and numbers: in order of appearance
        return list(names)


def _row_positions(rows, index, n_rows) -> tuple[np.ndarray, int]:
    """Return the position of each answer's row, and the number of rows."""
    if index is not None:
        names, found = read_column("rows", rows)
        position = {name: i for i, name in enumerate(read_names("index", index))}
        unknown = [name for name in names if name not in position]
        if unknown:
            raise ValueError(
                f"rows contains {some_of(unknown)}, which index does not have; remove these "
                "answers, or add the rows."
            )
        return np.array([position[name] for name in names], np.intp)[found], len(position)
    row = np.asarray(rows)
    if row.ndim != 1 or (row.dtype.kind not in "iu" and len(row)):
        raise ValueError(
            "rows must be positions, whole numbers from 0; if they are identifiers, pass those of "
            "all rows as index."
        )
    row = row.astype(np.intp)
    n_rows = int(row.max(initial=-1)) + 1 if n_rows is None else n_rows
    bad = (row < 0) | (row >= n_rows)
    if bad.any():
        raise ValueError(
            f"rows contains {some_of(np.unique(row[bad]).tolist())}; positions are between 0 and "
            f"{n_rows - 1}."
        )
    return row, n_rows
