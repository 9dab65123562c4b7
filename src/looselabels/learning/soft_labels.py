"""A random forest that learns classes from soft labels: rows of class probabilities.

The squared error of such rows is the Gini impurity of the classes, so these are the trees of a
classification forest in which each row is shared among the classes. Rows that say little about the
class, mostly the unlabeled ones, are drawn less often. p(class | x, label) does not depend on how
often a label is drawn, but the forest's prediction is p_w(class | x) of its own weighted
distribution.
"""

import numpy as np
from sklearn.tree import DecisionTreeRegressor
from sklearn.utils.validation import validate_data

from looselabels._validation import weight_of_rows
from looselabels.estimation.losses import class_losses
from looselabels.estimation.weighting import class_weights
from looselabels.learning.trees import (
    DrawnForest,
    Draws,
    LeafChoice,
    grow,
    rows_for_trees,
    small_indices,
)
from looselabels.learning.unchanged import unchanged_on_failure

TIMES_OTHERS = 3  # the most rows of one label that a tree draws, per row of all other labels


def class_draw_sizes(counts) -> np.ndarray:
    """Return how many rows of each label a tree draws: of an abundant label, only a part.

    >>> class_draw_sizes(np.array([20, 30, 50, 5000]))
    array([ 20,  30,  50, 300])
    """
    others = counts.sum() - counts
    return np.where(others > 0, np.minimum(counts, TIMES_OTHERS * others), counts)


class ClassForest(DrawnForest):
    """A random forest that estimates p(class | x) from p(class | x, label) of the training rows.

    Parameters
    ----------
    n_estimators, max_features, n_jobs, random_state
        As in `BalancedForestClassifier`.

    Attributes
    ----------
    estimators_ : list of DecisionTreeRegressor
        The trees.
    node_values_ : list of ndarray or None
        What the nodes of each tree predict with the chosen leaf size; None: what the trees say.
    min_samples_leaf_ : int
        The smallest number of rows that a prediction rests on.
    label_weights_ : ndarray of shape (n_labels,)
        How many times as frequent each label is in a tree's draw as in the data.
    """

    def __init__(self, n_estimators=200, *, max_features="sqrt", n_jobs=None, random_state=None):
        self.n_estimators = n_estimators
        self.max_features = max_features
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit_out_of_sample(
        self, X, class_proba, label_index, transition, sample_weight=None, groups=None
    ):
        """Grow the trees, and return p(class | x) of each row from trees that did not draw it.

        Parameters
        ----------
        X : array, sparse matrix or table of shape (n_samples, n_features)
        class_proba : array of shape (n_samples, n_classes)
            What is known about the class of each row: p(class | x, label).
        label_index : integer array of shape (n_samples,)
            The column of each row's label in `transition`.
        transition : array of shape (n_classes, n_labels)
            p(label | class), by which the leaf size is chosen.
        sample_weight : array of shape (n_samples,), default=None
            How often each row counts.
        groups : integer array of shape (n_samples,), default=None
            The group of each row, from 0: rows of a group are drawn together.

        Returns
        -------
        array of shape (n_samples, n_classes)
            Of the weighted distribution; NaN for a row that all trees drew. With groups, a row is
            predicted by the trees that drew no row of its group.
        """
        with unchanged_on_failure(self):
            X = validate_data(self, small_indices(X), **rows_for_trees(X))
            weight = weight_of_rows(sample_weight, X.shape[0])
            shares = np.bincount(label_index, weight) / weight.sum()
            self.classes_ = np.arange(class_proba.shape[1])
            labels = np.flatnonzero(shares)
            position = np.searchsorted(labels, label_index)
            draws = Draws.of(position, len(labels), weight, class_draw_sizes, groups)
            self.label_weights_ = np.ones(transition.shape[1])
            self.label_weights_[labels] = draws.label_weights(shares[labels])
            of_classes = class_weights(transition, self.label_weights_)

            def losses(proba, rows, row_weight):
                return class_losses(proba, transition, label_index[rows], row_weight, of_classes)

            choice = LeafChoice.of(draws, shares[labels], losses)
            grown = grow(
                self._new_tree, X, _with_exact_sums(class_proba), draws, choice,
                n_trees=self.n_estimators, n_jobs=self.n_jobs, random_state=self.random_state,
            )  # fmt: skip
            self.estimators_, self.node_values_ = grown.trees, grown.values
            self.min_samples_leaf_ = grown.leaf_size
            return self._out_of_bag(X, draws)

    def _new_tree(self, seed):
        return DecisionTreeRegressor(max_features=self.max_features, random_state=seed)


def _with_exact_sums(class_proba) -> np.ndarray:
    """Return probabilities rounded to multiples of 2⁻²⁰; rows still sum to 1.

    Their sums, and in small nodes those of their squares, are then exact in any order. Otherwise
    rounding would decide between equally good splits, and trees of sparse features, in which rows
    are sorted in another way, would differ from those of dense ones.

    >>> _with_exact_sums(np.array([[1 / 3, 2 / 3]])) * 2**20
    array([[349525., 699051.]])
    """
    rounded = np.round(np.asarray(class_proba, dtype=float) * 2**20) / 2**20
    rows, largest = np.arange(len(rounded)), rounded.argmax(axis=1)
    rounded[rows, largest] += 1 - rounded.sum(axis=1)
    return rounded
