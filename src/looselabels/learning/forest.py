"""A random forest of p(label | x) for labels that occur with very different frequencies.

If one label is far more frequent than the others (usually: unlabeled), the trees of an ordinary
forest mostly describe that label. In `BalancedForestClassifier` each tree draws, with replacement,

    m_s = min(n_s, draw · median count)

of the n_s rows of label s, where the median is over all labels but the most frequent: all rows of a
rare label, a fresh part of an abundant one. In the trees label s is

    w_s = p_tree(s) / p(s),        p_tree(s) = m_s / Σ_t m_t,

times as frequent as in the data, so the forest estimates p_w(s|x) ∝ w_s p(s|x), with known weights.
"""

from functools import partial
from numbers import Integral, Real

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from looselabels._validation import short_repr
from looselabels.estimation.losses import label_losses
from looselabels.learning.soft_labels import ClassForest, class_draw_sizes
from looselabels.learning.trees import (
    DrawnForest,
    Draws,
    LeafChoice,
    grow,
    rows_for_trees,
    small_indices,
)
from looselabels.learning.unchanged import unchanged_on_failure

MAX_DRAWN = 50_000  # rows per tree; 200 trees of so many rows take up to 2 GB with ten labels
MAX_REFIT_ROWS = 5_000  # per tree; with more rows a refit gained nothing (ARCHITECTURE.md)


def draw_sizes(counts, draw) -> np.ndarray:
    """Return how many rows of each label a tree draws: m_s = min(n_s, draw · median count).

    If these are more than MAX_DRAWN in total, every label is reduced by the same factor.

    >>> draw_sizes(np.array([20, 30, 50, 5000]), 2)
    array([20, 30, 50, 60])
    >>> draw_sizes(np.array([100_000, 300_000]), np.inf)
    array([12500, 37500])
    """
    others = np.sort(counts[counts > 0])[:-1]  # a part of the rows may lack a rare label
    sizes = counts
    if len(others):
        sizes = np.minimum(counts, np.ceil(draw * np.median(others))).astype(int)
    if sizes.sum() <= MAX_DRAWN:
        return sizes
    return np.ceil(sizes * (MAX_DRAWN / sizes.sum())).astype(int)


class BalancedForestClassifier(ClassifierMixin, DrawnForest):
    """A random forest whose trees each see a balanced draw of the labels.

    Its probabilities are of the weighted distribution in which label s is ``label_weights_[s]``
    times as frequent as in the data: p_w(s|x) ∝ w_s p(s|x). Every tree sees the same number of rows
    of a label, so these weights are exact.

    Parameters
    ----------
    n_estimators : int, default=200
        The number of trees.
    draw : float, default=2
        The most rows of one label that a tree sees, in multiples of the median count of all labels
        but the most frequent. A more frequent label is reduced to that, with a fresh draw for each
        tree. If all labels are about equally frequent, this is an ordinary forest. 1 or more;
        inf reduces no label. A tree draws at most about 50,000 rows: if there are more, each label
        is reduced by the same factor.
    min_samples_leaf : "auto", int or float, default="auto"
        The smallest number of rows in a leaf. "auto" chooses how many rows a prediction rests on by
        how well it predicts the labels of out-of-bag rows.
    max_features : "sqrt", "log2", int, float or None, default="sqrt"
        The number of features that each split chooses from.
    oob_score : bool, default=False
        Whether to predict the training rows out of bag.
    n_jobs : int, default=None
        The number of trees to grow in parallel, in threads.
    random_state : int, RandomState or None, default=None
        Seed of the draws and of the trees.

    Attributes
    ----------
    classes_ : ndarray of shape (n_labels,)
        The labels of rows with positive weight.
    label_weights_ : ndarray of shape (n_labels,)
        How many times as frequent each label is in a tree's draw as in the data.
    estimators_ : list of DecisionTreeClassifier
        The trees, grown to single rows if `min_samples_leaf` is "auto".
    node_values_ : list of ndarray or None
        What the nodes of each tree predict with the chosen leaf size; None: what the trees say.
    min_samples_leaf_ : int or float
        The smallest number of rows that a prediction rests on.
    oob_decision_function_ : ndarray of shape (n_samples, n_labels)
        `predict_proba` of the training rows, each from the trees that did not draw it; NaN for a
        row that all trees drew, such as the only row of its label. Only with `oob_score`.
    n_features_in_ : int
        The number of features seen in `fit`.
    feature_names_in_ : ndarray of shape (n_features,)
        Their names, if X was a table with column names.

    Examples
    --------
    At each of two places there are 200 rows, of which 40 and 20 have label 1. Each tree sees all of
    these and as many others:

    >>> X = np.repeat([[0.0], [1.0]], 200, axis=0)
    >>> y = (np.arange(400) % 200 < np.repeat([40, 20], 200)).astype(int)
    >>> forest = BalancedForestClassifier(draw=1, random_state=0).fit(X, y)
    >>> forest.label_weights_.round(3)
    array([0.588, 3.333])

    Divided by these weights and normalized, its probabilities are those of the data:

    >>> label_proba = forest.predict_proba([[0.0], [1.0]]) / forest.label_weights_
    >>> (label_proba / label_proba.sum(axis=1, keepdims=True)).round(2)
    array([[0.8, 0.2],
           [0.9, 0.1]])
    """

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

        A row is drawn among the rows of its label in proportion to `sample_weight`; a row of weight
        zero is ignored, except that it gets an out-of-bag prediction.
        """
        with unchanged_on_failure(self):
            X, draws = self._fit(X, y, sample_weight)
            if self.oob_score:
                self.oob_decision_function_ = self._out_of_bag(X, draws)
        return self

    def fit_out_of_sample(self, X, y, sample_weight=None, groups=None) -> np.ndarray:
        """Fit, and return p(label | x) of each row from the trees that did not draw it.

        Columns are `classes_`, of the weighted distribution. NaN for a row that all trees drew.
        With `groups`, the number of each row's group from 0, rows of a group are drawn together,
        and a row is predicted by the trees that drew no row of its group.
        """
        with unchanged_on_failure(self):
            X, draws = self._fit(X, y, sample_weight, groups)
            return self._out_of_bag(X, draws)

    def soft_label_estimator(self, label_counts) -> ClassForest | None:
        """Return an unfitted forest of the same size that learns classes; None if not worthwhile.

        `label_counts` are the rows of each label that it would learn from.
        """
        if class_draw_sizes(label_counts).sum() > MAX_REFIT_ROWS:
            return None
        return ClassForest(
            self.n_estimators,
            max_features=self.max_features,
            n_jobs=self.n_jobs,
            random_state=self.random_state,
        )

    def predict_proba(self, X):
        """Return p(label | x) of the weighted distribution; columns are `classes_`."""
        check_is_fitted(self)
        return super().predict_proba(X)

    def predict(self, X):
        """Return the most probable label of each row in the weighted distribution."""
        best = self.predict_proba(X).argmax(axis=1)
        return self.classes_[best]

    def _fit(self, X, y, sample_weight, groups=None):
        """Grow the trees and set what was found; return X as the trees read it, and the draws."""
        self._check_parameters()
        self.__dict__.pop("oob_decision_function_", None)  # of an earlier fit
        X, y = validate_data(self, small_indices(X), y, **rows_for_trees(X))
        check_classification_targets(y)
        weight = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        if not weight.any():
            raise ValueError("sample_weight must contain a positive number; all are zero.")
        self.classes_ = np.unique(y[weight > 0])
        index = np.searchsorted(self.classes_, y)  # of rows without weight: anything
        n_labels = len(self.classes_)
        sizes = partial(draw_sizes, draw=self.draw)
        draws = Draws.of(index, n_labels, weight, sizes, groups)
        shares = np.array([weight[rows].sum() for rows, _ in draws.strata]) / weight.sum()
        self.label_weights_ = draws.label_weights(shares)
        grown = grow(
            self._new_tree, X, index, draws, self._leaf_choice(index, draws),
            n_trees=self.n_estimators, n_jobs=self.n_jobs, random_state=self.random_state,
        )  # fmt: skip
        self.estimators_, self.node_values_ = grown.trees, grown.values
        self.min_samples_leaf_ = grown.leaf_size or self.min_samples_leaf
        return X, draws

    def _leaf_choice(self, index, draws):
        if self.min_samples_leaf != "auto":
            return None

        def losses(label_proba, rows, weight):
            return label_losses(label_proba, index[rows], weight)

        return LeafChoice.of(draws, draws.sizes / draws.sizes.sum(), losses)

    def _new_tree(self, seed):
        return DecisionTreeClassifier(
            min_samples_leaf=1 if self.min_samples_leaf == "auto" else self.min_samples_leaf,
            max_features=self.max_features,
            random_state=seed,
        )

    def _check_parameters(self):
        """Raise if a parameter is invalid; the trees check theirs."""
        if not (isinstance(self.n_estimators, Integral) and int(self.n_estimators) >= 1):
            raise ValueError(
                f"n_estimators must be 1 or more; it is {short_repr(self.n_estimators)}."
            )
        if not (isinstance(self.draw, Real) and float(self.draw) >= 1):
            raise ValueError(
                f"draw must be 1 or more; it is {short_repr(self.draw)}. Pass inf to reduce no "
                "label."
            )

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = tags.input_tags.allow_nan = True
        return tags
