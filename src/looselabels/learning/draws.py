"""Any classifier, fitted to many balanced draws of the rows; the mean of all fits predicts.

A classifier that follows single rows, such as a fully grown forest or a linear model of many
columns, predicts labels badly if some are rare or wrong. The mean of models that each saw other
rows is smoother, and a draw can be balanced: of the n_s rows of label s it has

    m_s = min(n_s, 2 · median count),

where the median is over all labels but the most frequent.

The rows are divided into three folds, several times. For each fold a model is fitted to a draw of
the rows outside of it, and predicts the fold. So all rows are predicted by equally many models that
have not seen them. With bootstrap samples, rows of an abundant label would be out of more samples,
and their mean smoother: unlabeled rows would look different from labeled rows of the same class.
"""

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin
from sklearn.utils import _safe_indexing, check_random_state, get_tags
from sklearn.utils.validation import check_is_fitted

from looselabels._progress import each
from looselabels._validation import weight_of_rows
from looselabels.learning.forest import draw_sizes
from looselabels.learning.out_of_sample import align, stratified_folds
from looselabels.learning.soft_labels import class_draw_sizes
from looselabels.learning.unchanged import unchanged_on_failure
from looselabels.learning.weighted_copies import Copies, fit_copies, weight_name
from looselabels.learning.workers import in_parallel

N_FOLDS, N_REPEATS = 3, 4
CLASS_REPEATS = 2  # for models that learn classes, several times in a fit
DRAW = 2  # the most rows of one label in a draw, in multiples of the median count of the others
MIN_ROWS = 12  # in a draw, of which a fold is left out; many classifiers cannot learn from fewer
MAX_ROWS = 20_000  # in a draw; with more rows one model predicts well, and many take long


def reduces_labels(label_counts) -> bool:
    """Return whether a draw leaves out rows of an abundant label.

    >>> reduces_labels(np.array([20, 30, 5000])), reduces_labels(np.array([20, 30, 40]))
    (True, False)
    """
    counts = label_counts[label_counts > 0]
    return bool((draw_sizes(counts, DRAW) < counts).any())


def can_draw(label_counts) -> bool:
    """Return whether draws of these labels are neither too large nor too small for many models."""
    counts = label_counts[label_counts > 0]
    return len(counts) > 1 and MIN_ROWS <= draw_sizes(counts, DRAW).sum() <= MAX_ROWS


def _weighted_values(column, weight) -> tuple[np.ndarray, np.ndarray]:
    """Return the values of rows with positive weight, and the position of each row's value in them.

    Rows of weight zero, which are never drawn, can have other values: they get a position of these.

    >>> _weighted_values(["a", "c", "b"], np.array([1, 1, 0]))
    (array(['a', 'c'], dtype='<U1'), array([0, 1, 1]))
    """
    values = np.unique(np.asarray(column)[weight > 0])
    return values, np.searchsorted(values, column).clip(max=len(values) - 1)


class DrawnModels(MetaEstimatorMixin, BaseEstimator):
    """Models that were each fitted to their own draw of rows; their mean is the prediction."""

    n_repeats: int  #: how often the rows are divided into folds

    def __init__(self, estimator, *, n_jobs=None, random_state=None):
        self.estimator = estimator
        self.n_jobs = n_jobs
        self.random_state = random_state

    def predict_proba(self, X):
        """Return the mean prediction of the models; columns are `classes_`."""
        n_classes = len(self.classes_)
        return sum(align(model, X, n_classes) for model in self.estimators_) / len(self.estimators_)

    def _fit_draws(self, X, strata, weight, groups, sizes, copies_of, fit_params) -> tuple:
        """Fit the models; return their predictions, and how frequent each stratum is in draws.

        A row is predicted by the mean of the models that have not seen it. The second array is
        relative to the data: 2 for a stratum that is twice as frequent in draws.

        `strata` has a number from 0 for each row, and `sizes` maps how many rows there are of each
        number to how many are drawn. `copies_of` maps drawn rows, and a seed, to what is learned
        from them.
        """
        draws = list(self._draws(strata, weight, groups, sizes))
        # one per draw: with a common generator, results would depend on the order of parallel work
        seeds = check_random_state(self.random_state).randint(2**31 - 1, size=len(draws))
        n_drawn = sum(np.bincount(strata[rows], minlength=strata.max() + 1) for rows, _ in draws)

        def fit_and_predict(rows, test, seed):
            model = fit_copies(self.estimator, X, copies_of(rows, seed), fit_params)
            return model, align(model, _safe_indexing(X, test), len(self.classes_))

        tasks = [(*draw, seed) for draw, seed in zip(draws, seeds, strict=True)]
        parts = in_parallel(fit_and_predict, tasks, self.n_jobs)
        self.estimators_, total = [], np.zeros((len(strata), len(self.classes_)))
        for (_, test), (model, proba) in each(zip(draws, parts, strict=True), len(draws)):
            self.estimators_.append(model)
            total[test] += proba
        drawn_part = n_drawn / len(draws) / np.bincount(strata, weight > 0)
        share = np.bincount(strata, weight) / weight.sum()
        return total / total.sum(axis=1, keepdims=True), drawn_part / (share @ drawn_part)

    def _draws(self, strata, weight, groups, sizes: Callable) -> Iterator[tuple]:
        """Yield the rows of each draw, and the rows that its model predicts."""
        random = check_random_state(self.random_state)
        for _ in range(self.n_repeats):
            seed = random.randint(2**31 - 1)
            rng = np.random.default_rng(seed)
            for train, test in stratified_folds(strata, groups, N_FOLDS, seed):
                train = rng.permutation(train[weight[train] > 0])
                by_stratum = [train[strata[train] == k] for k in range(strata.max() + 1)]
                counts = np.array([len(rows) for rows in by_stratum])
                drawn = zip(by_stratum, sizes(counts), strict=True)
                yield np.sort(np.concatenate([rows[:size] for rows, size in drawn])), test


class BalancedDraws(ClassifierMixin, DrawnModels):
    """A classifier that fits `estimator` to balanced draws of the labels.

    `DecoupledClassifier` uses it if a label is far more frequent than the others, or if it predicts
    the labels better than `estimator` alone. Its probabilities are of the weighted distribution
    in which label s is ``label_weights_[s]`` times as frequent as in the data.

    Parameters
    ----------
    estimator : classifier with predict_proba
        Fitted to each draw.
    n_jobs : int, default=None
        The number of models to fit in parallel.
    random_state : int, RandomState or None, default=None
        Seed of the draws.

    Attributes
    ----------
    classes_ : ndarray of shape (n_labels,)
        The labels.
    label_weights_ : ndarray of shape (n_labels,)
        How many times as frequent each label is in a draw as in the data.
    estimators_ : list
        The models.

    Examples
    --------
    >>> from sklearn.naive_bayes import GaussianNB
    >>> X = np.arange(100.0)[:, None]
    >>> y = (X[:, 0] >= 90).astype(int)
    >>> model = BalancedDraws(GaussianNB(), random_state=0).fit(X, y)
    >>> model.label_weights_.round(2), len(model.estimators_)
    (array([0.74, 3.33]), 12)
    """

    n_repeats = N_REPEATS

    def fit(self, X, y, sample_weight=None, **fit_params):
        """Fit the models to labels `y`."""
        self.fit_out_of_sample(X, y, sample_weight, **fit_params)
        return self

    def fit_out_of_sample(self, X, y, sample_weight=None, groups=None, **fit_params) -> np.ndarray:
        """Fit, and return p(label | x) of each row from the models that have not seen it.

        Columns are `classes_`, of the weighted distribution. Rows of a group are in one fold. A row
        of weight zero is not drawn, but predicted.
        """
        with unchanged_on_failure(self):
            weight = weight_of_rows(sample_weight, len(y))
            self.classes_, index = _weighted_values(y, weight)
            takes_weight = weight_name(self.estimator) is not None
            is_weighted = takes_weight and np.ptp(weight[weight > 0]) > 0

            def copies_of(rows, _):
                return Copies(rows, index[rows], weight[rows] if is_weighted else None)

            together = None if groups is None else np.asarray(groups)
            sizes = partial(draw_sizes, draw=DRAW)
            proba, self.label_weights_ = self._fit_draws(
                X, index, weight, together, sizes, copies_of, fit_params
            )
            return proba

    def predict_proba(self, X):
        """Return p(label | x) of the weighted distribution; columns are `classes_`."""
        check_is_fitted(self)
        return super().predict_proba(X)

    def predict(self, X):
        """Return the most probable label of each row in the weighted distribution."""
        return self.classes_[self.predict_proba(X).argmax(axis=1)]

    def soft_label_estimator(self, label_counts) -> "ClassDraws | None":
        """Return models that learn classes, not fitted; None if the draws would be large."""
        if class_draw_sizes(label_counts).sum() > MAX_ROWS:
            return None
        return ClassDraws(self.estimator, n_jobs=self.n_jobs, random_state=self.random_state)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags = get_tags(self.estimator).input_tags
        return tags


class ClassDraws(DrawnModels):
    """Models that learn p(class | x) from p(class | x, label), each from its own draw of rows."""

    n_repeats = CLASS_REPEATS

    def fit_out_of_sample(
        self, X, class_proba, label_index, transition, sample_weight=None, groups=None
    ) -> np.ndarray:
        """Fit, and return p(class | x) of each row from the models that have not seen it.

        The parameters are those of `ClassForest.fit_out_of_sample`.
        """
        weight = weight_of_rows(sample_weight, len(label_index))
        labels, strata = _weighted_values(label_index, weight)
        self.classes_ = np.arange(class_proba.shape[1])
        takes_weight = weight_name(self.estimator) is not None

        def copies_of(rows, seed):
            known = class_proba[rows], weight[rows]
            found = Copies.weighted(*known) if takes_weight else Copies.drawn(*known, seed)
            return found._replace(rows=rows[found.rows])

        proba, label_weights = self._fit_draws(
            X, strata, weight, groups, class_draw_sizes, copies_of, {}
        )
        self.label_weights_ = np.ones(transition.shape[1])
        self.label_weights_[labels] = label_weights
        return proba
