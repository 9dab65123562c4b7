"""What both forests share: balanced draws of rows, leaves of a chosen size, out-of-bag predictions.

**Draws.** Each tree is grown on its own draw of rows, with replacement: a fixed number of rows of
each label. So the label frequencies in the draws, and with them the weighted distribution that the
forest estimates, are known exactly (`estimation/weighting.py`). Rows of a group are drawn together:
a tree draws groups, then rows of these groups, and a row is out of bag if its group is.

**Leaves.** How many rows a prediction should rest on depends on the data: one where classes are
well separated, thirty where they overlap or labels are wrong. Trees are grown to single rows; then
a leaf with fewer than m rows predicts what its nearest ancestor with m rows predicts. m is the
smallest of four sizes whose out-of-bag loss is within one standard error of the best.

imbalanced-learn's BalancedRandomForestClassifier (0.14) predicts out of bag only rows that are in a
tree's draw but not in its bootstrap sample, while nearly all unlabeled rows are outside of the
draw. scikit-learn's own forests draw rows in private functions, which differ between 1.6 and 1.9.
So these forests are built from scikit-learn's public trees.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.sparse import issparse
from sklearn import config_context
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import validate_data

from looselabels._progress import each
from looselabels.estimation.losses import first_good
from looselabels.estimation.sampling import limit_rows, sample_rows
from looselabels.learning.workers import in_parallel

LEAF_SIZES = (1, 3, 10, 30)
MAX_ROWS, MIN_ROWS = 10_000, 1_000  # by which the leaf size is chosen; fewer with many labels


class Draws(NamedTuple):
    """How each tree draws its rows: so many of each stratum, with these probabilities."""

    strata: list  #: for each label: its rows with weight, and the probability of each
    sums: list  #: for each label: cumulative sums of these probabilities
    sizes: np.ndarray  #: rows that a tree draws of each label
    groups: np.ndarray | None = None  #: the group of each row

    @classmethod
    def of(cls, label_index, n_labels, sample_weight, draw_sizes: Callable, groups=None) -> "Draws":
        """Return the draws for a rule that maps the rows of each label to rows to draw."""
        strata = []
        for k in range(n_labels):
            rows = np.flatnonzero((label_index == k) & (sample_weight > 0))
            strata.append((rows, sample_weight[rows] / sample_weight[rows].sum()))
        sums = [np.cumsum(p) / np.cumsum(p)[-1] for _, p in strata]
        return cls(strata, sums, draw_sizes(np.array([len(rows) for rows, _ in strata])), groups)

    def rows(self, seed) -> tuple[np.ndarray, np.ndarray]:
        """Return the rows of one tree's draw, and how many times each is in it."""
        rng = np.random.default_rng(seed)
        strata = zip(self.strata, self.sums, self.sizes, strict=True)
        if self.groups is None or not self._has_groups_to_split(self.groups):
            # what rng.choice(rows, size, p=p) does, after checking p for every tree anew
            drawn = [
                rows[sums.searchsorted(rng.random(size), side="right")]
                for (rows, _), sums, size in strata
            ]
        else:
            n_groups = int(self.groups.max()) + 1
            times = np.bincount(rng.integers(n_groups, size=n_groups), minlength=n_groups)
            drawn = [
                _draw_evenly(rng, rows, p * times[self.groups[rows]], p, size)
                for (rows, p), _, size in strata
            ]
        return np.unique(np.concatenate(drawn), return_counts=True)

    def _has_groups_to_split(self, groups) -> bool:
        """Return whether some group has several rows to draw; if not, drawing rows will do."""
        return np.bincount(groups[np.concatenate([rows for rows, _ in self.strata])]).max() > 1

    def with_groups(self, rows) -> np.ndarray:
        """Return the rows, and all other rows of their groups."""
        if self.groups is None:
            return rows
        return np.flatnonzero(np.isin(self.groups, self.groups[rows]))

    def label_weights(self, shares) -> np.ndarray:
        """Return how many times as frequent each label is in a draw as in the data."""
        return self.sizes / self.sizes.sum() / shares


def _draw_evenly(rng, rows, chances, p, size):
    """Draw rows in proportion to `chances`, or to `p` if all are zero, as evenly as possible.

    The groups were drawn with replacement. Drawing their rows at random once more would leave out
    too many.
    """
    sums = np.cumsum(chances if chances.any() else p)
    places = (np.arange(size) + rng.random()) / size
    return rows[np.searchsorted(sums / sums[-1], places, side="right")]


class LeafChoice(NamedTuple):
    """The rows and the loss by which the leaf size of a forest is chosen."""

    rows: np.ndarray
    weight: np.ndarray
    losses: Callable  #: (probabilities, rows, weights) → loss of each row

    @classmethod
    def of(cls, draws: Draws, shares, losses) -> "LeafChoice":
        """Return a choice by all rows, or by some rows of each label weighted to its share."""
        rng, parts, n_strata = np.random.default_rng(0), [], len(draws.strata)
        most = limit_rows(n_strata, MAX_ROWS, MIN_ROWS)
        n_rows = sum(len(rows) for rows, _ in draws.strata)
        for (rows, p), share in zip(draws.strata, shares, strict=True):
            few = sample_rows(len(rows), -(-most // n_strata), random_state=rng, shuffle=True)
            parts.append((rows[few], n_rows * share * p[few] / p[few].sum()))
        tried, weight = map(np.concatenate, zip(*parts, strict=True))
        return cls(tried, weight, losses)

    def leaf_size(self, predicted) -> int:
        """Return the smallest good size; `predicted` has one layer per size, zeros if unseen."""
        seen = predicted[0].any(axis=1)  # rows that some tree did not draw
        if not seen.any():
            return LEAF_SIZES[0]
        proba = predicted[:, seen] / predicted[:, seen].sum(axis=2, keepdims=True)
        rows, weight = self.rows[seen], self.weight[seen]
        losses = np.stack([self.losses(layer, rows, weight) for layer in proba])
        return LEAF_SIZES[first_good(losses, weight)]


# ------------------------------------------------------------------------------------------- trees


def node_values(tree) -> np.ndarray:
    """Return what each node predicts, (n_nodes, n_outputs); rows sum to 1."""
    value = tree.tree_.value
    return value.reshape(len(value), -1)


def ancestors_of_sizes(tree, sizes) -> list[np.ndarray]:
    """Return for each node the nearest one, itself or an ancestor, that holds so many rows.

    One array per size; sizes increase.
    """
    nodes = tree.tree_
    n_rows, left, right = nodes.n_node_samples, nodes.children_left, nodes.children_right
    inner = np.flatnonzero(left >= 0)
    parent = np.zeros(len(left), dtype=np.intp)
    parent[left[inner]] = parent[right[inner]] = inner
    at, found = np.arange(len(left)), []
    for size in sizes:
        while len(small := np.flatnonzero((n_rows[at] < size) & (at > 0))):
            at[small] = parent[at[small]]
        found.append(at.copy())
    return found


def _grow_tree(tree, X, target, draws, tried, X_tried, check_input):
    """Return the tree, and its prediction of the rows `tried` for each leaf size."""
    rows, times = draws.rows(tree.random_state)
    # `grow` has checked the parameters: for each tree anew it takes as long as growing a small one
    with config_context(skip_parameter_validation=True):
        tree.fit(X[rows], target[rows], sample_weight=times, check_input=check_input)
    if tried is None:
        return tree, np.zeros(1)
    leaf, value = tree.tree_.apply(X_tried), node_values(tree)
    predicted = np.stack([value[above[leaf]] for above in ancestors_of_sizes(tree, LEAF_SIZES)])
    is_drawn = np.zeros(X.shape[0], dtype=bool)
    is_drawn[draws.with_groups(rows)] = True
    predicted[:, is_drawn[tried]] = 0
    return tree, predicted


def _predict_tree(tree, values, X):
    return values[tree.tree_.apply(X)]


def _predict_unseen(tree, values, X, draws):
    """Return the prediction of all rows, zeros for those that the tree drew, or of their groups."""
    rows, _ = draws.rows(tree.random_state)
    # All rows, because nearly all are outside of the draw: selecting them would copy X per tree.
    proba = _predict_tree(tree, values, X)
    proba[draws.with_groups(rows)] = 0
    return proba


class Grown(NamedTuple):
    """What `grow` returns."""

    trees: list
    leaf_size: int | None  #: that was chosen
    values: list | None  #: what each tree's nodes predict with that leaf size; None: their own


def grow(new_tree, X, target, draws, choice, *, n_trees, n_jobs, random_state) -> Grown:
    """Grow trees on draws of rows, and choose their leaf size unless `choice` is None."""
    tried, X_tried = (None, None) if choice is None else (choice.rows, X[choice.rows])
    seeds = check_random_state(random_state).randint(2**31 - 1, size=n_trees)
    trees = [new_tree(seed) for seed in seeds.tolist()]
    trees[0]._validate_params()
    # Trees must look for missing values, and sort the columns of sparse rows.
    check_input = issparse(X) or bool(np.isnan(X).any())
    # In the order of the trees, so that sums are the same for any n_jobs.
    tasks = [(tree, X, target, draws, tried, X_tried, check_input) for tree in trees]
    grown = in_parallel(_grow_tree, tasks, n_jobs, prefer="threads")
    trees, predicted = [], None
    for tree, part in each(grown, 1.1 * n_trees):  # the rest is for out-of-bag predictions
        trees.append(tree)
        predicted = part if predicted is None else np.add(predicted, part, out=predicted)
    if choice is None:
        return Grown(trees, None, None)
    size = choice.leaf_size(predicted)
    values = [node_values(tree)[ancestors_of_sizes(tree, [size])[0]] for tree in trees]
    return Grown(trees, size, None if size == 1 else values)


class DrawnForest(BaseEstimator):
    """Trees that were each grown on their own draw of rows; their mean is the prediction."""

    def _values(self):
        """Return what the nodes of each tree predict."""
        wide = getattr(self, "node_values_", None)  # a forest saved by 0.1 has none
        return [node_values(tree) for tree in self.estimators_] if wide is None else wide

    def _map_trees(self, function, *arguments):
        trees = zip(self.estimators_, self._values(), strict=True)
        tasks = [(tree, values, *arguments) for tree, values in trees]
        return sum(in_parallel(function, tasks, self.n_jobs, prefer="threads"))

    def _out_of_bag(self, X, draws):
        """Return the mean over trees that did not draw a row; NaN where all trees drew it."""
        unseen = self._map_trees(_predict_unseen, X, draws)
        with np.errstate(invalid="ignore"):  # 0 / 0
            return unseen / unseen.sum(axis=1, keepdims=True)

    def predict_proba(self, X):
        """Return the mean prediction of the trees."""
        X = validate_data(self, small_indices(X), reset=False, **rows_for_trees(X))
        return self._map_trees(_predict_tree, X) / len(self.estimators_)


def small_indices(X):
    """Return X; if it is sparse, by rows and with indices of 32 bits, which trees need.

    >>> from scipy.sparse import coo_array
    >>> wide = coo_array(([1.0], (np.array([0]), np.array([2]))), shape=(1, 3))
    >>> small_indices(wide).indices.dtype
    dtype('int32')
    """
    if not issparse(X):
        return X
    X = X.tocsr()
    if X.indices.dtype == np.int32 or max(X.nnz, *X.shape) >= 2**31:
        return X
    arrays = X.data, X.indices.astype(np.int32), X.indptr.astype(np.int32)
    return type(X)(arrays, shape=X.shape)


def rows_for_trees(X) -> dict:
    """Return how X is validated: float32, by rows; missing values only if X is dense."""
    return {
        "dtype": np.float32,
        "order": "C",
        "accept_sparse": "csr",
        "accept_large_sparse": False,
        "ensure_all_finite": True if issparse(X) else "allow-nan",
    }
