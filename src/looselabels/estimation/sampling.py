"""Subsets of rows, for estimates that do not need all of them."""

import numpy as np

# that models, encoders of columns and corrections of probabilities are fitted to, by default
MAX_FIT_ROWS = 200_000
MAX_NUMBERS = 300_000  # numbers of label_proba that one estimate reads


def limit_rows(n_columns, max_rows, min_rows) -> int:
    """Return how many rows an estimate uses: `max_rows`, fewer with many columns.

    The rows have at most MAX_NUMBERS numbers together, except that `min_rows` are always allowed.

    >>> [limit_rows(n_labels, max_rows=5000, min_rows=500) for n_labels in (10, 100, 1000)]
    [5000, 3000, 500]
    """
    return max(min_rows, min(max_rows, MAX_NUMBERS // n_columns))


def sample_rows(n_rows, max_rows, *, random_state=None, shuffle=False) -> np.ndarray:
    """Return the indices of at most `max_rows` of `n_rows` rows.

    Parameters
    ----------
    n_rows, max_rows : int
        How many rows there are, and how many may be used.
    random_state : int or numpy.random.Generator, default=None
        None takes evenly spaced rows (every second, third, …), anything else draws at random,
        without replacement.
    shuffle : bool, default=False
        Whether rows that are drawn come in random order, even if all of them are used.

    Examples
    --------
    >>> sample_rows(10, 4)
    array([0, 3, 6, 9])
    >>> sample_rows(3, 4, random_state=0)
    array([0, 1, 2])
    >>> len(set(sample_rows(10, 4, random_state=0, shuffle=True).tolist()))
    4
    """
    if random_state is None:
        return np.arange(0, n_rows, max(1, -(-n_rows // max_rows)))
    rng = np.random.default_rng(random_state)
    if shuffle:
        return rng.permutation(n_rows)[:max_rows]
    if n_rows <= max_rows:
        return np.arange(n_rows)
    return np.sort(rng.choice(n_rows, max_rows, replace=False))
