"""Rows that belong together: groups as specified, and copies of a row.

A model that was trained on a copy of a row knows its label. So copies must be predicted together,
and they are not independent evidence. Equal rows are not always copies, though: a table of a few
binary columns has many equal rows by chance. Equal rows count as copies if

1. far more rows are equal than after each column was shuffled on its own, and
2. columns that depend on each other (dummy variables, answers to a survey) cannot be the reason.
   They can make rows equal by chance, and shuffling removes such rows. But then half of the columns
   distinguish fewer rows than all columns do, and the numbers f_k of rows that occur k times are
   limited, whatever the distribution of rows is. Each row occurs Poisson(λ) times, with a λ of its
   own, so E f_k = Σ λ^k exp(−λ) / k!, and by the inequality of Cauchy and Schwarz

       (E f_k)² ≤ (k + 1) / k · E f_{k−1} · E f_{k+1}.

   Rows are copies if half of the columns distinguish nearly all of them, or if this limit is
   exceeded: if each row is there three times, f_2 = f_4 = 0.

All need only the hash of each row, a sum over the hashes of its cells: O(number of cells).
"""

import warnings
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from scipy.sparse import coo_array, issparse
from scipy.sparse.csgraph import connected_components

from looselabels._validation import short_repr

MIN_SHARE, MIN_COPIES = 0.01, 5  # of the rows, and how many; fewer copies do not matter
MIN_ROWS = 20  # different rows; with fewer, nothing can be said about chance
TIMES_CHANCE = 3  # how many times as many rows are copies as after shuffling
MIN_DISTINCT = 0.97  # of the different rows differ in half of the columns
MAX_MORE = 1.2  # times as many rows are equal in half of the columns as in all
N_ERRORS = 3  # standard errors by which a number of rows can differ from its expected value
N_SPLITS = 8  # into halves of the columns; one half of each must do
MAX_WORDS = 8  # columns that a text is divided into
MAX_LINKED = 0.5  # of the rows: a larger group leaves too few rows to learn from


class RowGroups(NamedTuple):
    """Rows that are predicted together, by a model that has seen none of them."""

    group_index: np.ndarray  #: the group of each row, from 0; copies are in the same group
    copy_index: np.ndarray | None = None  #: equal for copies of a row, from 0; None: no copies

    def take(self, rows) -> "RowGroups":
        """Return the groups of some rows, numbered anew."""
        copies = None if self.copy_index is None else _renumbered(self.copy_index[rows])
        return RowGroups(_renumbered(self.group_index[rows]), copies)

    @property
    def are_copies(self) -> bool:
        """Whether some rows are copies, and count once."""
        return self.copy_index is not None

    @property
    def sizes(self) -> np.ndarray:
        """How many copies of each row there are, itself included; 1 for each row without copies."""
        if self.copy_index is None:
            return np.ones(len(self.group_index))
        return np.bincount(self.copy_index)[self.copy_index]

    @property
    def n_copies(self) -> int:
        """How many rows are copies of an earlier row."""
        return 0 if self.copy_index is None else len(self.sizes) - int(self.copy_index.max()) - 1

    def copies_per_row(self, weight) -> float:
        """Return by what factor copies reduce the evidence of all rows: Kish's design effect.

        A mean over rows has the variance of a mean over n / factor rows without copies.
        """
        return float(np.average(self._repeats(weight), weights=weight)) if weight.any() else 1.0

    def count_once(self, label_index, weight) -> np.ndarray:
        """Return weights in which all copies of a row count as one row.

        The copies of a row that have the same label are the same evidence: the first of them gets
        their weight, and the others get 0. Weights of groups that are not copies are unchanged.

        >>> copies = np.array([0, 1, 0, 0])
        >>> groups = RowGroups(copies, copies)
        >>> groups.count_once(np.array([0, 0, 0, 1]), np.ones(4)).round(2)
        array([0.67, 1.  , 0.  , 0.33])
        """
        if self.copy_index is None:
            return weight
        return self.move_to_first(label_index, weight / self._repeats(weight))

    def _repeats(self, weight) -> np.ndarray:
        """Return how many times the evidence of each row is repeated by its copies.

        It is their number; copies without weight repeat nothing, and neither do parts of one row,
        such as soft labels, whose weights add up to 1.
        """
        if self.copy_index is None:
            return np.ones(len(weight))
        total, number = (np.bincount(self.copy_index, part) for part in (weight, weight > 0))
        return np.clip(total, 1, np.maximum(number, 1))[self.copy_index]

    def move_to_first(self, label_index, weight) -> np.ndarray:
        """Return weights in which the first of all copies with the same label stands for them.

        It has the weight of all of them, and the others have 0.

        >>> copies = np.array([0, 1, 0, 0])
        >>> groups = RowGroups(copies, copies)
        >>> groups.move_to_first(np.array([0, 0, 0, 1]), np.array([1.0, 2.0, 3.0, 4.0]))
        array([4., 2., 0., 4.])
        """
        if self.copy_index is None:
            return weight
        pairs = self.copy_index * (np.max(label_index) + 1) + label_index
        _, first, pair = np.unique(pairs, return_index=True, return_inverse=True)
        moved = np.zeros(len(weight))
        moved[first] = np.bincount(pair, weight)
        return moved


def group_rows(X, groups=None) -> RowGroups | None:
    """Return the groups of the rows: those specified, and copies in `X`; None: all rows are apart.

    Copies of a row are in one group, also if they were specified to be in different ones. If every
    row has a group of its own, all rows are apart, and copies are not looked for.

    >>> group_rows([[1.0], [2.0], [3.0]], groups=["Ann", "Bob", "Ann"]).group_index
    array([0, 1, 0])
    """
    if groups is None:
        copies = copy_groups(X)
        return None if copies is None else RowGroups(copies, copies)
    index = _group_index(groups, X.shape[0] if hasattr(X, "shape") else len(X))
    if index.max() + 1 == len(index):
        return None
    copies = copy_groups(X)
    return RowGroups(index if copies is None else _joined(index, copies), copies)


def specified_copies(copies, n_rows) -> RowGroups | None:
    """Return the groups of rows with equal values in a column; None: all values are different.

    >>> specified_copies(["a", "b", "a"], 3).n_copies
    1
    """
    index = _group_index(copies, n_rows, "copies")
    return None if index.max() + 1 == n_rows else RowGroups(index, index)


def _joined(groups, copies) -> np.ndarray:
    """Return groups in which copies are together: the parts of a graph that links them.

    Warn and return the copies alone if they link most rows: too few would be left to learn from.
    """
    n_nodes = max(groups.max(), copies.max()) + 1
    links = coo_array((np.ones(len(groups)), (groups, n_nodes + copies)), (2 * n_nodes,) * 2)
    joined = _renumbered(connected_components(links, directed=False)[1][groups])
    largest, before = (np.bincount(index).max() for index in (joined, groups))
    if largest <= max(before, MAX_LINKED * len(groups)):
        return joined
    warnings.warn(
        "Copies of rows are in different groups. If these groups were joined, one group would have "
        f"{largest:,} of {len(groups):,} rows, and too few others would be left to learn from. So "
        "copies were kept together, but groups were not. To keep groups together, remove the "
        "copies of rows.",
        UserWarning,
        stacklevel=4,
    )
    return copies


def _renumbered(index) -> np.ndarray:
    """Return the same groups, numbered from 0 without gaps."""
    return np.unique(index, return_inverse=True)[1]


def _group_index(groups, n_rows, argument="groups") -> np.ndarray:
    """Return the group of each row, numbered by first occurrence; raise if there is a bad value."""
    values = groups.tolist() if hasattr(groups, "tolist") else list(groups)
    if len(values) != n_rows:
        raise ValueError(f"{argument} has {len(values)} values; X has {n_rows} rows.")
    for row, value in enumerate(values):
        if value is None or value != value:
            raise ValueError(f"{argument} must have a value in each row; row {row} has none.")
    try:
        return _codes(values)
    except TypeError:
        found = short_repr(values[0])
        raise ValueError(
            f"{argument} must be a column of names or numbers; it starts with {found}."
        ) from None


# ------------------------------------------------------------------------------------- detection


def copy_groups(X, random_state=0) -> np.ndarray | None:
    """Return the group of each row if many rows of `X` are copies of others, else None.

    Parameters
    ----------
    X : array, sparse matrix, DataFrame or list of texts
        A missing value equals another one. Nothing is found in objects of other types, in values
        that cannot be hashed, and in a single column of numbers.
    random_state : int, default=0
        Seed of shuffling and of hashing.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.random((100, 3))
    >>> copy_groups(X) is None
    True
    >>> copy_groups(np.repeat(X, 2, axis=0))[:6]
    array([0, 0, 1, 1, 2, 2])

    Two binary columns have equal rows by chance:

    >>> copy_groups(rng.integers(2, size=(500, 2))) is None
    True
    """
    table = _Cells.of(X)
    if table is None or table.n_columns < 2:
        return None
    rng = np.random.default_rng(random_state)
    keys = rng.integers(2**64, size=table.n_columns, dtype=np.uint64)
    found = np.zeros(table.n_rows, np.uint64)
    try:
        for rows, cells in table.hashed(keys):
            found[rows] += cells
    except TypeError:  # a value that cannot be hashed
        return None
    distinct, index = np.unique(found, return_inverse=True)
    n_copies = len(found) - len(distinct)
    if len(distinct) < MIN_ROWS or n_copies < max(MIN_SHARE * len(found), MIN_COPIES):
        return None
    return None if _is_chance(table, keys, found, rng) else _codes(index.tolist())


def _is_chance(table, keys, found, rng) -> bool:
    """Return whether as many rows can be equal by chance; see the top of the file."""
    is_in_half = np.zeros((table.n_columns, N_SPLITS), dtype=bool)
    for split in range(N_SPLITS):
        is_in_half[rng.permutation(table.n_columns)[::2], split] = True
    shuffled, halves = np.zeros_like(found), np.zeros((N_SPLITS, len(found)), np.uint64)
    for (rows, cells), splits in zip(table.hashed(keys), is_in_half, strict=True):
        shuffled[rng.permutation(len(found))[: len(cells)]] += cells
        for half, is_in in zip(halves, splits, strict=True):
            if is_in:
                half[rows] += cells
    n_distinct = _n_distinct(found)
    if len(found) - n_distinct < TIMES_CHANCE * (len(found) - _n_distinct(shuffled)):
        return True
    best = [max(_n_distinct(half), _n_distinct(found - half)) for half in halves]
    if min(best) >= MIN_DISTINCT * n_distinct and (
        len(found) - min(best) <= MAX_MORE * (len(found) - n_distinct)
    ):
        return False
    return not occur_too_evenly(np.unique(found, return_counts=True)[1])


def occur_too_evenly(counts) -> bool:
    """Return whether rows that occur `counts` times cannot be equal by chance.

    It is so if there are more rows that occur k times than those that occur k − 1 and k + 1 times
    allow; see the top of the file. Each number can differ by three standard errors.

    >>> counts = np.random.default_rng(0).poisson(0.5, size=1000)
    >>> occur_too_evenly(counts[counts > 0]), occur_too_evenly(3 * counts[counts > 0])
    (False, True)
    """
    n_rows = np.append(np.bincount(counts), [0, 0])  # that occur 0, 1, 2, … times
    error = N_ERRORS * np.sqrt(n_rows)
    low, high = n_rows - error, n_rows + error + N_ERRORS**2  # a Poisson number can be 0
    k = np.arange(2, len(n_rows) - 1)
    return bool(np.any(low[k] > np.sqrt((k + 1) / k * high[k - 1] * high[k + 1])))


def _n_distinct(hashes) -> int:
    return len(np.unique(hashes))


class _Cells(NamedTuple):
    """A table whose cells can be hashed, column by column."""

    columns: list  #: for each column: its rows, and the values in them
    n_rows: int

    @property
    def n_columns(self) -> int:
        """How many columns there are."""
        return len(self.columns)

    @classmethod
    def of(cls, X) -> "_Cells | None":
        """Return the cells of X; None if its type is unknown."""
        if issparse(X):
            X = X.tocsc(copy=True)
            X.sum_duplicates()
            X.eliminate_zeros()
            parts = [slice(*ends) for ends in zip(X.indptr, X.indptr[1:], strict=False)]
            return cls([(X.indices[part], X.data[part]) for part in parts], X.shape[0])
        columns = _dense_columns(X)
        if not columns or not len(columns[0]):
            return None
        if len(columns) == 1 and all(isinstance(text, str) for text in columns[0]):
            columns = _words(columns[0])
        return cls([(slice(None), column) for column in columns], len(columns[0]))

    def hashed(self, keys) -> Iterator[tuple]:
        """Yield the rows of each column, and a hash of each of their values."""
        for (rows, values), key in zip(self.columns, keys, strict=True):
            yield rows, _mixed(_bits(values) ^ key)


def _dense_columns(X) -> list:
    """Return the columns of an array, a list, a DataFrame or a Series; [] for other types."""
    if isinstance(X, list) and all(isinstance(text, str) for text in X):
        return [X]  # an array would be as wide as the longest text
    try:
        if isinstance(X, np.ndarray | list):
            parts = [np.asarray(X)]
        elif hasattr(X, "columns"):
            parts = [X[name].to_numpy() for name in dict.fromkeys(X.columns)]
        else:
            parts = [X.to_numpy()]
    except (AttributeError, TypeError, ValueError):  # another type, or rows of different lengths
        return []
    if any(part.dtype.kind not in "biufMmOUS" or not part.size for part in parts):
        return []
    return [column for part in parts for column in part.reshape(len(part), -1).T]


def _words(texts) -> list[list]:
    """Return texts as columns: one word each, and what is left in the last one."""
    split = [text.split(maxsplit=MAX_WORDS - 1) for text in texts]
    n_columns = max(map(len, split))
    return [[words[k] if k < len(words) else None for words in split] for k in range(n_columns)]


def _bits(values) -> np.ndarray:
    """Return 64 bits per value, equal for equal values; NaN equals NaN."""
    kind = values.dtype.kind if isinstance(values, np.ndarray) else "O"
    if kind == "f":
        values = values.astype(np.float64) + 0.0  # −0 equals 0
        values[np.isnan(values)] = np.nan
        return values.view(np.uint64)
    if kind in "Mm":
        return values.astype(np.int64).view(np.uint64)
    if kind in "biu":
        return values.astype(np.uint64)
    return _codes(values.tolist() if isinstance(values, np.ndarray) else values).astype(np.uint64)


def _codes(values: list) -> np.ndarray:
    """Return the number of each value, counted by first occurrence."""
    numbers: dict = {}
    plain = (None if isinstance(value, float) and value != value else value for value in values)
    return np.array([numbers.setdefault(value, len(numbers)) for value in plain], dtype=np.int64)


def _mixed(bits) -> np.ndarray:
    """Return well mixed bits: sums of them differ if the values differ (splitmix64)."""
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return bits ^ (bits >> np.uint64(31))
