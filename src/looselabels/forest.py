"""A forest that balances labels in every tree.

Where one label is far more frequent than the others (mostly: unlabeled), the trees of an ordinary
forest spend themselves on it. Here each tree draws, with replacement,

    m_s = min(n_s, draw · worth)

of the n_s rows of label s, where a label's worth is the median count of all labels but the most
frequent: all of a rare label, a fresh part of an abundant one. In the trees label s is

    w_s = p_tree(s) / p(s),        p_tree(s) = m_s / Σ_t m_t,

times as frequent as in the data, so that the forest estimates p_w(s|x) ∝ w_s p(s|x): it lives in
the world of weights of `calibration.py`, and these weights are known exactly.

imbalanced-learn's BalancedRandomForestClassifier (0.14) does not serve: out of bag it predicts only
rows that are in a tree's draw but not in its bootstrap, while nearly all unlabeled rows are outside
of the draw. scikit-learn's own forest draws in private functions, which differ between 1.6 and 1.9.
So this one stands on public trees.
"""

from numbers import Integral, Real

import numpy as np
from joblib import Parallel, delayed
from scipy.sparse import issparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from looselabels._validation import short_repr


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


class BalancedForestClassifier(ClassifierMixin, BaseEstimator):
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
    min_samples_leaf : int or float, default=1
        The smallest number of rows in a leaf.
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
        min_samples_leaf=1,
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
        self._grow(X, index, strata, sizes)
        return self

    def _grow(self, X, index, strata, sizes):
        seeds = check_random_state(self.random_state).randint(2**31 - 1, size=self.n_estimators)
        # In the order of the trees, so that sums are the same for any n_jobs.
        grown = Parallel(self.n_jobs, prefer="threads", return_as="generator")(
            delayed(_grow_tree)(self._new_tree(seed), X, index, strata, sizes, self.oob_score)
            for seed in seeds.tolist()
        )
        self.estimators_, unseen = [], np.zeros((len(index), len(sizes)))
        for tree, label_proba in grown:
            self.estimators_.append(tree)
            unseen += label_proba
        if hasattr(self, "oob_decision_function_"):
            delattr(self, "oob_decision_function_")  # of an earlier fit
        if self.oob_score:
            with np.errstate(invalid="ignore"):  # 0 / 0: no tree that has not seen the row
                self.oob_decision_function_ = unseen / unseen.sum(axis=1, keepdims=True)

    def _new_tree(self, seed):
        return DecisionTreeClassifier(
            min_samples_leaf=self.min_samples_leaf,
            max_features=self.max_features,
            random_state=seed,
        )

    def predict_proba(self, X):
        """Return p(label | x) in the world of the trees; columns are `classes_`."""
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, **_rows_for_trees(X))
        parts = Parallel(self.n_jobs, prefer="threads", return_as="generator")(
            delayed(tree.predict_proba)(X, check_input=False) for tree in self.estimators_
        )
        return sum(parts) / len(self.estimators_)

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


def _rows_for_trees(X):
    """Return how X is read: float32, row by row; missing values are for dense rows."""
    return {
        "dtype": np.float32,
        "order": "C",
        "accept_sparse": "csr",
        "accept_large_sparse": False,
        "ensure_all_finite": True if issparse(X) else "allow-nan",
    }


def _grow_tree(tree, X, index, strata, sizes, oob_score):
    """Return `tree` grown on its draw, and what it says of all rows but those: zeros there."""
    rows, times = draw_rows(strata, sizes, tree.random_state)
    tree.fit(X[rows], index[rows], sample_weight=times)
    if not oob_score:
        return tree, 0.0
    # All rows, as nearly all are out of the draw: to pick them would copy X for every tree.
    label_proba = tree.predict_proba(X, check_input=False)
    label_proba[rows] = 0
    return tree, label_proba
