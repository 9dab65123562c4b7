"""Cross-validation with labels as given: a splitter and a score that need no classes."""

import warnings

import numpy as np
from sklearn.model_selection import BaseCrossValidator, StratifiedKFold
from sklearn.pipeline import Pipeline

from looselabels._names import as_column, listed, read_column


class LabelStratifiedKFold(BaseCrossValidator):
    """Folds stratified by label, for columns of labels as given: missing ones are a label too.

    scikit-learn's own splitters refuse a column with None in it; pass this one as ``cv`` to
    GridSearchCV, cross_val_score and the like.

    Parameters
    ----------
    n_splits : int, default=5
        The number of folds; fewer, with a warning, where a label is too rare for so many.
    shuffle : bool, default=True
        Whether to shuffle before splitting.
    random_state : int, RandomState or None, default=None
        Seed of the shuffle.

    Examples
    --------
    >>> y = ["cat", None, "dog", None, "cat", "dog"]
    >>> [test for _, test in LabelStratifiedKFold(2, shuffle=False).split(y, y)]
    [array([0, 1, 2]), array([3, 4, 5])]
    """

    def __init__(self, n_splits=5, *, shuffle=True, random_state=None):
        self.n_splits = n_splits
        self.shuffle = shuffle
        self.random_state = random_state

    def get_n_splits(self, X=None, y=None, groups=None):
        """Return the number of folds; with `y`, as many as its rarest label allows."""
        if y is None:
            return self.n_splits
        labels, index = read_column("y", y)
        return self._enough(labels, np.bincount(index))

    def split(self, X, y, groups=None):
        """Yield the training and test rows of each fold."""
        labels, index = read_column("y", y)
        n_splits = self._enough(labels, np.bincount(index))
        seed = self.random_state if self.shuffle else None
        folds = StratifiedKFold(n_splits, shuffle=self.shuffle, random_state=seed)
        with warnings.catch_warnings():  # ours has been given, and names the label
            warnings.filterwarnings("ignore", "The least populated class", UserWarning)
            yield from folds.split(np.zeros(len(index)), index)

    def _enough(self, labels, counts):
        rarest = int(counts[counts > 0].min())
        n_splits = max(2, min(self.n_splits, rarest))
        if n_splits < self.n_splits or rarest < 2:
            rare = [label for label, count in zip(labels, counts, strict=True) if count == rarest]
            warnings.warn(
                f"Label {listed(rare)} has {rarest} samples: {n_splits} folds instead of "
                f"{self.n_splits}. Give it more samples, or merge it with another label.",
                UserWarning,
                stacklevel=3,
            )
        return n_splits


def neg_label_log_loss(estimator, X, y, sample_weight=None):
    """Score a fitted DecoupledClassifier by the labels given: no truth is needed.

    The mean log p(label | x) of the labels `y` (missing ones are a label too, where the transition
    has it). Pass it as ``scoring``, with `LabelStratifiedKFold` as ``cv``.
    """
    last = estimator[-1] if isinstance(estimator, Pipeline) else estimator
    index = last.transition_.label_index(as_column(y))
    label_proba = estimator.predict_proba(X) @ last.transition_.proba
    given = label_proba[np.arange(len(index)), index]
    return float(np.average(np.log(np.maximum(given, 1e-12)), weights=sample_weight))
