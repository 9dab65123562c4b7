"""Two forests: one estimates p(label | x) from labels, the other p(class | x) from what they say.

**Labels.** Where one label is far more frequent than the others (mostly: unlabeled), the trees of
an ordinary forest spend themselves on it. In `BalancedForestClassifier` each tree draws, with
replacement,

    m_s = min(n_s, draw · worth)

of the n_s rows of label s, where a label's worth is the median count of all labels but the most
frequent: all of a rare label, a fresh part of an abundant one. In the trees label s is

    w_s = p_tree(s) / p(s),        p_tree(s) = m_s / Σ_t m_t,

times as frequent as in the data, so that the forest estimates p_w(s|x) ∝ w_s p(s|x): it lives in
the world of weights of `calibration.py`, and these weights are known exactly.

**Classes.** `ClassForest` grows its trees on rows of probabilities. The squared error of such rows
is the Gini impurity of the classes, so that these are the trees of a classification forest in which
each row is shared among the classes. Rows that say little, the unlabeled ones mostly, are cut down
here too, though not as much: p(class | x, label) is the same in all worlds of weights, and what the
forest makes of it is p_w(class | x) of its own.

**Leaves.** How many rows a prediction should rest on hangs on the data: one where the classes are
apart, thirty where they overlap or labels are wrong. Trees are grown to single rows; then a leaf of
fewer than m rows says what the nearest node above it that holds m rows says. m is the smallest of a
few whose loss, on rows out of bag, is not a standard error above the least.

imbalanced-learn's BalancedRandomForestClassifier (0.14) does not serve: out of bag it predicts only
rows that are in a tree's draw but not in its bootstrap, while nearly all unlabeled rows are outside
of the draw. scikit-learn's own forest draws in private functions, which differ between 1.6 and 1.9.
So these stand on public trees.
"""

from collections.abc import Callable
from numbers import Integral, Real
from typing import NamedTuple

import numpy as np
from joblib import Parallel, delayed
from scipy.sparse import issparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from looselabels._validation import short_repr
from looselabels.estimation.calibration import label_losses

LEAF_SIZES = (1, 3, 10, 30)
MOST_TRIED = 10_000  # rows that a leaf size is chosen by,
MOST_NUMBERS = 300_000  # less where there are many labels,
FEWEST_TRIED = 1_000  # but not less than this
TIMES_OTHERS = 3  # rows of one label that a tree of classes draws, for each row of the others


def draw_sizes(counts, draw) -> np.ndarray:
    """Return how many rows of each label a tree draws: m_s = min(n_s, draw · worth).

    A label's worth is the median count of all labels but the most frequent.

    >>> draw_sizes(np.array([20, 30, 50, 5000]), 2)
    array([20, 30, 50, 60])
    """
    others = np.sort(counts)[:-1]
    if not len(others):
        return counts
    return np.minimum(counts, np.ceil(draw * np.median(others))).astype(int)


def class_draw_sizes(counts) -> np.ndarray:
    """Return how many rows of each label a tree of classes draws: few labels are not drowned.

    >>> class_draw_sizes(np.array([20, 30, 50, 5000]))
    array([ 20,  30,  50, 300])
    """
    others = counts.sum() - counts
    return np.where(others > 0, np.minimum(counts, TIMES_OTHERS * others), counts)


def strata_of(label_index, n_labels, sample_weight):
    """Return, for each label, its rows with weight and the probability of each to be drawn."""
    strata = []
    for k in range(n_labels):
        rows = np.flatnonzero((label_index == k) & (sample_weight > 0))
        strata.append((rows, sample_weight[rows] / sample_weight[rows].sum()))
    return strata


def draw_rows(strata, sizes, seed):
    """Return the rows of one tree's draw, and how many times each is in it."""
    rng = np.random.default_rng(seed)
    drawn = [rng.choice(rows, m, p=p) for (rows, p), m in zip(strata, sizes, strict=True)]
    return np.unique(np.concatenate(drawn), return_counts=True)


class Trial(NamedTuple):
    """What the leaves of a forest are chosen by."""

    rows: np.ndarray
    weight: np.ndarray
    losses: Callable  #: p(· | x) of some of the rows, their positions and weights → their losses

    @classmethod
    def of(cls, strata, shares, losses) -> "Trial":
        """Return that of all rows, or of some of each stratum, which weigh as many as it has."""
        rng, parts = np.random.default_rng(0), []
        most = max(FEWEST_TRIED, min(MOST_TRIED, MOST_NUMBERS // len(strata)))
        n_rows = sum(len(rows) for rows, _ in strata)
        for (rows, p), share in zip(strata, shares, strict=True):
            few = rng.permutation(len(rows))[: -(-most // len(strata))]
            parts.append((rows[few], n_rows * share * p[few] / p[few].sum()))
        tried, weight = map(np.concatenate, zip(*parts, strict=True))
        return cls(tried, weight, losses)

    def leaf_size(self, said) -> int:
        """Return the smallest good one; `said` of the rows, out of bag, has a layer a leaf size."""
        seen = said[0].any(axis=1)  # by a tree that did not draw the row
        if not seen.any():
            return LEAF_SIZES[0]
        proba = said[:, seen] / said[:, seen].sum(axis=2, keepdims=True)
        rows, weight = self.rows[seen], self.weight[seen]
        losses = np.stack([self.losses(layer, rows, weight) for layer in proba])
        return LEAF_SIZES[smallest_good(losses, weight)]


def smallest_good(losses, weight) -> int:
    """Return the first row of `losses` whose mean is not a standard error above the least.

    >>> losses = np.array([[0.9, 0.8, 0.9], [0.2, 0.4, 0.4], [0.3, 0.2, 0.3], [0.8, 0.8, 0.9]])
    >>> smallest_good(losses, np.ones(3))
    1
    """
    weight = weight / weight.sum()
    excess = losses - losses[np.argmin(losses @ weight)]
    mean = excess @ weight
    error = np.sqrt((excess - mean[:, None]) ** 2 @ weight**2)
    return int(np.flatnonzero(mean <= error)[0])


# --------------------------------------------------------------------------------------- trees


def node_values(tree):
    """Return what each node says, (n_nodes, n_outputs), and rows of it sum to 1."""
    value = tree.tree_.value
    return value.reshape(len(value), -1)


def nodes_above(tree, size):
    """Return for each node the nearest one, itself or above it, that holds `size` rows."""
    nodes = tree.tree_
    inner = np.flatnonzero(nodes.children_left >= 0)
    parent = np.zeros(nodes.node_count, dtype=np.intp)
    parent[nodes.children_left[inner]] = parent[nodes.children_right[inner]] = inner
    at = np.arange(nodes.node_count)
    while len(small := np.flatnonzero((nodes.n_node_samples[at] < size) & (at > 0))):
        at[small] = parent[at[small]]
    return at


def widen_leaves(tree, size):
    """Let leaves of fewer than `size` rows say what the nearest node above them says that has."""
    value = tree.tree_.value
    value[:] = value[nodes_above(tree, size)]


def _grow_tree(tree, X, target, strata, sizes, tried, X_tried):
    """Return the tree, grown on its draw, and what it says of rows `tried`, a layer a leaf size."""
    rows, times = draw_rows(strata, sizes, tree.random_state)
    tree.fit(X[rows], target[rows], sample_weight=times)
    if tried is None:
        return tree, np.zeros(1)
    leaf, value = tree.apply(X_tried, check_input=False), node_values(tree)
    said = np.stack([value[nodes_above(tree, size)[leaf]] for size in LEAF_SIZES])
    said[:, np.isin(tried, rows)] = 0
    return tree, said


def _unseen(tree, X, strata, sizes):
    """Return what the tree says of all rows but those that it drew: zeros there."""
    rows, _ = draw_rows(strata, sizes, tree.random_state)
    # All rows, as nearly all are out of the draw: to pick them would copy X for every tree.
    proba = node_values(tree)[tree.apply(X, check_input=False)]
    proba[rows] = 0
    return proba


class _Forest(BaseEstimator):
    """Trees, each of which is grown on its own draw of rows."""

    def _grow(self, X, target, strata, sizes, trial):
        """Grow the trees and choose their leaves; without a trial they stay as they were grown."""
        tried, X_tried = (None, None) if trial is None else (trial.rows, X[trial.rows])
        seeds = check_random_state(self.random_state).randint(2**31 - 1, size=self.n_estimators)
        # In the order of the trees, so that sums are the same for any n_jobs.
        grown = Parallel(self.n_jobs, prefer="threads", return_as="generator")(
            delayed(_grow_tree)(self._new_tree(seed), X, target, strata, sizes, tried, X_tried)
            for seed in seeds.tolist()
        )
        self.estimators_, said = [], None
        for tree, part in grown:
            self.estimators_.append(tree)
            said = part if said is None else np.add(said, part, out=said)
        if trial is not None:
            self.min_samples_leaf_ = trial.leaf_size(said)
            for tree in self.estimators_:
                widen_leaves(tree, self.min_samples_leaf_)

    def _out_of_bag(self, X, strata, sizes):
        """Return what trees say of rows that they did not draw; NaN where there is no such tree."""
        parts = Parallel(self.n_jobs, prefer="threads", return_as="generator")(
            delayed(_unseen)(tree, X, strata, sizes) for tree in self.estimators_
        )
        unseen = sum(parts)
        with np.errstate(invalid="ignore"):  # 0 / 0
            return unseen / unseen.sum(axis=1, keepdims=True)

    def _mean(self, X):
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, **_rows_for_trees(X))
        parts = Parallel(self.n_jobs, prefer="threads", return_as="generator")(
            delayed(_said)(tree, X) for tree in self.estimators_
        )
        return sum(parts) / len(self.estimators_)


def _said(tree, X):
    return node_values(tree)[tree.apply(X, check_input=False)]


# -------------------------------------------------------------------------------------- labels


class BalancedForestClassifier(ClassifierMixin, _Forest):
    """A random forest whose trees each see a balanced draw of the labels.

    Its probabilities are those of the world of the trees, where label s is ``label_weights_[s]``
    times as frequent as in the data: p_w(s|x) ∝ w_s p(s|x). Every tree sees the same number of rows
    of a label, so that these weights are exact.

    Parameters
    ----------
    n_estimators : int, default=200
        The number of trees.
    draw : float, default=2
        How many labels' worth of rows a tree sees of one label at most; a label's worth is the
        median count of all labels but the most frequent. More frequent labels are cut down to it,
        by a fresh draw for each tree; labels of about equal counts make an ordinary forest. 1 or
        more; inf cuts down no label.
    min_samples_leaf : "auto", int or float, default="auto"
        The smallest number of rows in a leaf. "auto": that a prediction rests on, chosen by how
        well labels of rows out of bag are predicted.
    max_features : "sqrt", "log2", int, float or None, default="sqrt"
        The number of features that a split chooses from.
    oob_score : bool, default=False
        Whether to predict the training rows out of bag.
    n_jobs : int, default=None
        Trees that are grown at once, in threads.
    random_state : int, RandomState or None, default=None
        Seed of the draws and of the trees.

    Attributes
    ----------
    classes_ : ndarray of shape (n_labels,)
        The labels of rows with weight.
    label_weights_ : ndarray of shape (n_labels,)
        How many times as frequent each label is in a tree's draw as in the data.
    estimators_ : list of DecisionTreeClassifier
        The trees.
    min_samples_leaf_ : int or float
        The smallest number of rows that a prediction rests on.
    oob_decision_function_ : ndarray of shape (n_samples, n_labels)
        `predict_proba` of the training rows, each by the trees that did not draw it; NaN for a row
        that all have drawn, such as the only one of its label. Only with `oob_score`.
    n_features_in_ : int
        The number of features seen in `fit`.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Their names, where X was a table that has them.

    Examples
    --------
    Of 200 rows at either place, 40 and 20 have label 1. Each tree sees them and as many others:

    >>> X = np.repeat([[0.0], [1.0]], 200, axis=0)
    >>> y = (np.arange(400) % 200 < np.repeat([40, 20], 200)).astype(int)
    >>> forest = BalancedForestClassifier(draw=1, random_state=0).fit(X, y)
    >>> forest.label_weights_.round(3)
    array([0.588, 3.333])

    Divided by these weights, and normalized, its probabilities are those of the data:

    >>> label_proba = forest.predict_proba([[0.0], [1.0]]) / forest.label_weights_
    >>> (label_proba / label_proba.sum(axis=1, keepdims=True)).round(2)
    array([[0.8, 0.2],
           [0.9, 0.1]])
    """

    bootstrap = True  # what tells a forest that has out-of-bag rows from one that has not

    def __init__(
        self,
        n_estimators=200,
        *,
        draw=2,
        min_samples_leaf="auto",
        max_features="sqrt",
        oob_score=False,
        n_jobs=None,
        random_state=None,
    ):
        self.n_estimators = n_estimators
        self.draw = draw
        self.min_samples_leaf = min_samples_leaf
        self.max_features = max_features
        self.oob_score = oob_score
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(self, X, y, sample_weight=None):
        """Grow the trees on labels `y`.

        A row is drawn among its label's in proportion to `sample_weight`; without weight it is as
        if it were not there, but for its out-of-bag prediction.
        """
        self._check_parameters()
        X, y = validate_data(self, X, y, **_rows_for_trees(X))
        check_classification_targets(y)
        weight = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        if not weight.any():
            raise ValueError("sample_weight must have a positive number; all are zero.")
        self.classes_ = np.unique(y[weight > 0])
        index = np.searchsorted(self.classes_, y)  # of rows without weight: anything
        strata = strata_of(index, len(self.classes_), weight)
        sizes = draw_sizes(np.array([len(rows) for rows, _ in strata]), self.draw)
        shares = np.array([weight[rows].sum() for rows, _ in strata]) / weight.sum()
        self.label_weights_ = sizes / sizes.sum() / shares
        self.min_samples_leaf_ = self.min_samples_leaf  # until it is chosen
        self._grow(X, index, strata, sizes, self._trial(index, strata, sizes))
        if hasattr(self, "oob_decision_function_"):
            delattr(self, "oob_decision_function_")  # of an earlier fit
        if self.oob_score:
            self.oob_decision_function_ = self._out_of_bag(X, strata, sizes)
        return self

    def _trial(self, index, strata, sizes):
        """Return what leaves are chosen by, or None where their size is given."""
        if self.min_samples_leaf != "auto":
            return None

        def losses(label_proba, rows, weight):
            return label_losses(label_proba, index[rows], weight)

        return Trial.of(strata, sizes / sizes.sum(), losses)

    def _new_tree(self, seed):
        return DecisionTreeClassifier(
            min_samples_leaf=1 if self.min_samples_leaf == "auto" else self.min_samples_leaf,
            max_features=self.max_features,
            random_state=seed,
        )

    def predict_proba(self, X):
        """Return p(label | x) in the world of the trees; columns are `classes_`."""
        return self._mean(X)

    def predict(self, X):
        """Return the most probable label of each row, in the world of the trees."""
        best = self.predict_proba(X).argmax(axis=1)
        return self.classes_[best]

    # -------------------------------------------------------------------------------- plumbing

    def _check_parameters(self):
        """Say which parameter is off; the trees check theirs."""
        if not (isinstance(self.n_estimators, Integral) and int(self.n_estimators) >= 1):
            raise ValueError(
                f"n_estimators must be 1 tree or more; it is {short_repr(self.n_estimators)}."
            )
        if not (isinstance(self.draw, Real) and float(self.draw) >= 1):
            raise ValueError(
                f"draw must be 1 label's worth or more; it is {short_repr(self.draw)}. Pass inf to "
                "cut down no label."
            )

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = tags.input_tags.allow_nan = True
        return tags


# ------------------------------------------------------------------------------------- classes


class ClassForest(_Forest):
    """A random forest that learns rows of probabilities: p(class | x) from p(class | x, label).

    Parameters
    ----------
    n_estimators, max_features, n_jobs, random_state
        As of `BalancedForestClassifier`.

    Attributes
    ----------
    estimators_ : list of DecisionTreeRegressor
        The trees.
    min_samples_leaf_ : int
        The smallest number of rows that a prediction rests on.
    label_weights_ : ndarray of shape (n_labels,)
        How many times as frequent each label is in a tree's draw as in the data.
    oob_proba_ : ndarray of shape (n_samples, n_classes)
        `predict` of the training rows, each by the trees that did not draw it; NaN where all did.
    """

    def __init__(self, n_estimators=200, *, max_features="sqrt", n_jobs=None, random_state=None):
        self.n_estimators = n_estimators
        self.max_features = max_features
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(self, X, class_proba, label_index, n_labels, losses, sample_weight=None):
        """Grow the trees.

        Parameters
        ----------
        X : array, sparse matrix or table of shape (n_samples, n_features)
        class_proba : array of shape (n_samples, n_classes)
            What is known of the class of each row.
        label_index : integer array of shape (n_samples,)
            The position of each row's label, of `n_labels`.
        losses : callable
            Returns the losses of some rows, given p(class | x) out of bag, positions and weights.
        sample_weight : array of shape (n_samples,), default=None
            How often each row counts.
        """
        X = validate_data(self, X, **_rows_for_trees(X))
        weight = np.ones(X.shape[0]) if sample_weight is None else sample_weight
        shares = np.bincount(label_index, weight) / weight.sum()
        labels = np.flatnonzero(shares)
        strata = strata_of(np.searchsorted(labels, label_index), len(labels), weight)
        counts = np.array([len(rows) for rows, _ in strata])
        sizes = class_draw_sizes(counts)
        self.label_weights_ = np.ones(n_labels)
        self.label_weights_[labels] = sizes / sizes.sum() / shares[labels]
        self._grow(X, class_proba, strata, sizes, Trial.of(strata, shares[labels], losses))
        self.oob_proba_ = self._out_of_bag(X, strata, sizes)
        return self

    def _new_tree(self, seed):
        return DecisionTreeRegressor(max_features=self.max_features, random_state=seed)

    def predict(self, X):
        """Return p(class | x) in the world of the trees, a column a class."""
        return self._mean(X)


def _rows_for_trees(X):
    """Return how X is read: float32, row by row; missing values are for dense rows."""
    return {
        "dtype": np.float32,
        "order": "C",
        "accept_sparse": "csr",
        "accept_large_sparse": False,
        "ensure_all_finite": True if issparse(X) else "allow-nan",
    }
