"""Cross-validation without known classes: a splitter and a score for loose labels."""

import warnings

import numpy as np
from sklearn.model_selection import BaseCrossValidator, StratifiedKFold
from sklearn.pipeline import Pipeline
from sklearn.utils import check_random_state

from looselabels._names import as_column, listed, read_column
from looselabels.inference import given_label_proba

SMALL = 0.02  # of a fold; larger groups are dealt to the folds by size


class LabelStratifiedKFold(BaseCrossValidator):
    """Folds stratified by label. The missing label counts as a label.

    The splitters of scikit-learn raise an error if `y` contains None. Pass this one as ``cv`` to
    GridSearchCV or cross_val_score. With `groups`, rows of a group are in the same fold.

    Parameters
    ----------
    n_splits : int, default=5
        The number of folds. If a label has fewer samples (or groups) than this, there are fewer
        folds, and a warning names the label. Unlabeled samples can be fewer.
    shuffle : bool, default=True
        Whether to shuffle the rows before splitting.
    random_state : int, RandomState or None, default=None
        Seed of the shuffling.

    Examples
    --------
    >>> y = ["cat", None, "dog", None, "cat", "dog"]
    >>> [test for _, test in LabelStratifiedKFold(2, shuffle=False).split(y, y)]
    [array([0, 1, 2]), array([3, 4, 5])]
    """

    __metadata_request__split = {"groups": True}  # noqa: RUF012  read by scikit-learn

    def __init__(self, n_splits=5, *, shuffle=True, random_state=None):
        self.n_splits = n_splits
        self.shuffle = shuffle
        self.random_state = random_state

    def get_n_splits(self, X=None, y=None, groups=None):
        """Return the number of folds; given `y`, no more than its rarest label has samples."""
        if y is None:
            return self.n_splits
        labels, index = read_column("y", y)
        counts = _counts(index, groups, len(labels))
        return self._n_splits_for(labels, counts, groups is not None)

    def split(self, X, y, groups=None):
        """Yield the training and test rows of each fold."""
        labels, index = read_column("y", y)
        counts = _counts(index, groups, len(labels))
        n_splits = self._n_splits_for(labels, counts, groups is not None)
        if groups is None:
            yield from self._split_rows(index, n_splits)
        else:
            yield from self._split_groups(index, groups, n_splits)

    def _split_rows(self, index, n_splits):
        seed = self.random_state if self.shuffle else None
        folds = StratifiedKFold(n_splits, shuffle=self.shuffle, random_state=seed)
        with warnings.catch_warnings():  # our own warning names the label
            warnings.filterwarnings("ignore", "The least populated class", UserWarning)
            yield from folds.split(np.zeros(len(index)), index)

    def _split_groups(self, index, groups, n_splits):
        """Split the groups, each of which belongs to its most frequent label."""
        _, group = np.unique(np.asarray(groups), return_inverse=True)
        if not group.any():
            raise ValueError("groups has one group only; folds need two or more.")
        pairs, counts = np.unique(np.column_stack([group, index]), axis=0, return_counts=True)
        last = np.lexsort((counts, pairs[:, 0]))[np.cumsum(np.bincount(pairs[:, 0])) - 1]
        label, sizes = pairs[last, 1], np.bincount(group)
        # Small groups are split like rows, so that copies of a table have the folds of the table.
        if sizes.max() * n_splits <= SMALL * len(index):
            folds = [test for _, test in self._split_rows(label, n_splits)]
        else:
            folds = self._deal(label, sizes, n_splits)
        for fold in folds:
            is_test = np.isin(group, fold)
            yield np.flatnonzero(~is_test), np.flatnonzero(is_test)

    def _deal(self, label, sizes, n_splits):
        """Deal the groups of each label to the folds, the largest first; return the folds.

        scikit-learn's StratifiedGroupKFold handles one group at a time, which is slow where there
        are as many groups as rows.
        """
        ties = np.arange(len(sizes))
        if self.shuffle:
            ties = check_random_state(self.random_state).permutation(ties)
        order = np.lexsort((ties, -sizes, label))
        there, back = np.arange(n_splits), np.arange(n_splits)[::-1]  # so that sizes are balanced
        fold = np.empty(len(sizes), dtype=int)
        fold[order] = np.resize(np.concatenate([there, back]), len(sizes))
        return [np.flatnonzero(fold == k) for k in range(n_splits)]

    def _n_splits_for(self, labels, counts, has_groups=False):
        is_label = np.array([label is not None for label in labels])
        # a few unlabeled rows need not be in every fold
        named = is_label & (counts > 0)
        counted = named if named.any() else counts > 0
        rarest = int(counts[counted].min())
        if counts.max() < 2 and not has_groups:
            raise ValueError(
                f"No label of y has two samples, which folds need: {len(labels)} labels name "
                f"{counts.sum()} samples. Label more of them, or merge labels."
            )
        n_splits = max(2, min(self.n_splits, rarest))
        if n_splits < self.n_splits or rarest < 2:
            rare = [labels[k] for k in np.flatnonzero(counted & (counts == rarest))]
            unit = ("group" if has_groups else "sample") + ("s" if rarest > 1 else "")
            folds = f", fewer than the {n_splits} folds"
            if n_splits < self.n_splits:
                folds = f": {n_splits} folds instead of {self.n_splits}"
            warnings.warn(_advice_on(rare, f"{rarest} {unit}", folds), UserWarning, stacklevel=3)
        return n_splits


def _advice_on(rare, number, folds):
    """Return what to do about labels that have so few samples, and what that does to the folds."""
    if len(rare) == 1:
        return (
            f"Label {listed(rare)} has {number}{folds}. Give it more samples, or merge it with "
            "another label."
        )
    return (
        f"Labels {listed(rare)} have {number} each{folds}. Give them more samples, or merge them "
        "with other labels."
    )


def _counts(index, groups, n_labels):
    """Return how many rows, or groups, each label has; unused categories of y have none."""
    if groups is not None:
        if len(groups) != len(index):
            raise ValueError(f"groups has {len(groups)} values; y has {len(index)} rows.")
        _, group = np.unique(np.asarray(groups), return_inverse=True)
        index = np.unique(np.column_stack([group, index]), axis=0)[:, 1]
    return np.bincount(index, minlength=n_labels)


def neg_label_log_loss(estimator, X, y, sample_weight=None):
    """Return the mean log p(label | x) of the labels `y`; this needs no known classes.

    p(label | x) = Σ_y p(y | x) T[y, label] with the transition T of the classifier. Greater is
    better. Pass this function as ``scoring`` and `LabelStratifiedKFold` as ``cv``.

    Parameters
    ----------
    estimator : a fitted DecoupledClassifier, or a Pipeline that ends with one
    X : the features of each row
    y : column of labels; the missing label counts if the transition has it
    sample_weight : weight of each row, optional

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from looselabels import DecoupledClassifier
    >>> X = [[weight] for weight in range(12)]
    >>> y = ["cat", "cat", None] * 2 + ["dog", "dog", None] * 2
    >>> clf = DecoupledClassifier(LogisticRegression(), noise=0, cv=2).fit(X, y)
    >>> round(neg_label_log_loss(clf, X, y), 1)
    -0.7
    """
    last = estimator[-1] if isinstance(estimator, Pipeline) else estimator
    index = last.transition_.label_index(as_column(y))
    given = given_label_proba(estimator.predict_proba(X), last.transition_.proba, index)
    return float(np.average(np.log(np.maximum(given, 1e-12)), weights=sample_weight))
