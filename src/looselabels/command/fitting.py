"""A table of features and its labels → a fitted classifier."""

from contextlib import contextmanager

import numpy as np
from joblib import parallel_config
from threadpoolctl import threadpool_limits

from looselabels._names import UNLABELED, shown
from looselabels._validation import short_repr
from looselabels.annotations import Annotations
from looselabels.command.feature_file import load_array
from looselabels.command.labels import Labels
from looselabels.command.sources import TableError, pd
from looselabels.command.tables import read_table, row_location
from looselabels.estimation.sampling import MAX_FIT_ROWS
from looselabels.learning.classifier import DecoupledClassifier
from looselabels.learning.forest import BalancedForestClassifier
from looselabels.learning.linear import linear_model
from looselabels.learning.workers import uses_dask

MIN_ROWS_FOR_THREADS = 10_000  # with fewer rows, BLAS and boosting are faster with one thread


def fit(
    X, y, labels: Labels, *, model="auto", groups=None, known_classes=None, seed=0, n_jobs=None,
    max_fit_rows=MAX_FIT_ROWS, refit=True,
) -> DecoupledClassifier:  # fmt: skip
    """Return a classifier fitted to features and labels.

    `model` is "auto" (forest or linear, whichever predicts the labels better), "forest", "linear",
    "kernel" or "boosting". `known_classes` has the class of each reviewed row and None elsewhere.
    """
    clf = _classifier(_estimator(model, X, seed, n_jobs), labels, seed, n_jobs)
    clf.set_params(max_fit_rows=max_fit_rows, refit=refit)
    with _threads(model, len(X)):
        return clf.fit(X, y, groups=groups, known_classes=known_classes)


def fit_answers(
    X, annotations: Annotations, *, model="auto", groups=None, seed=0, n_jobs=None, refit=True
) -> DecoupledClassifier:
    """Return a classifier fitted to several answers per row; X is None without features."""
    if X is None:
        return DecoupledClassifier(random_state=seed).fit(None, annotations)
    estimator = _estimator(model, X, seed, n_jobs)
    clf = DecoupledClassifier(estimator, refit=refit, n_jobs=n_jobs, random_state=seed)
    with _threads(model, len(X)):
        return clf.fit(X, annotations, groups=groups)


@contextmanager
def _threads(model, n_rows):
    """Limit threads where they make a fit slower."""
    # threads make small trees and small products slower, up to tenfold on busy cores
    one_thread = model != "kernel" and n_rows < MIN_ROWS_FOR_THREADS
    # Processes would take longer to start than most folds to fit. Boosting has them nevertheless:
    # in threads, the limit would not hold.
    folds_in = "loky" if model == "boosting" else "threading"
    with threadpool_limits(1 if one_thread else None):
        if uses_dask():
            yield
            return
        with parallel_config(folds_in):
            yield


def fit_from_proba(
    label_proba, y, labels: Labels, *, known_classes=None, copies=None, seed=0
) -> DecoupledClassifier:
    """Return a classifier fitted to p(label | x) of another model."""
    clf = _classifier(None, labels, seed, None)
    return clf.fit_from_proba(label_proba, y, known_classes=known_classes, copies=copies)


def read_proba(path, y, labels: Labels):
    """Return p(label | x) of another model from a file: an array (.npy), or a table.

    The columns of an array are the labels in sorted order, or in that of the design; the missing
    label is last. The columns of a table are matched by name, such as "cat", "(unlabeled)" or, with
    a source, "shop: cat". If labels are missing at random, "(unlabeled)" can be left out.
    """
    if not str(path).lower().endswith((".npy", ".npz")):
        return _proba_of_table(read_table(path), y, labels)
    return load_array(path)


def _proba_of_table(frame, y, labels: Labels):
    """Return a table of p(label | x) as numbers, with labels as the names of its columns."""
    proba = frame.apply(pd.to_numeric, errors="coerce").astype(float)
    bad = np.argwhere(proba.isna().to_numpy())
    if len(bad):
        row, column = bad[0]
        raise TableError(
            f"{row_location(frame, row)}, column {short_repr(frame.columns[column])}: "
            f"{short_repr(frame.iloc[row, column])} is not a number."
        )
    is_random = labels.design is None and labels.negative is None and labels.class_prior is None
    if is_random and None in y and UNLABELED not in proba:  # p(unlabeled | x) is the same for all x
        share = y.count(None) / len(y)
        proba = (proba * (1 - share)).assign(**{UNLABELED: share})
    known = () if labels.design is None else labels.design.labels
    pairs = {shown(label, 10**6): label for label in known if isinstance(label, tuple)}
    proba.columns = pd.Index([pairs.get(name, name) for name in proba], tupleize_cols=False)
    return proba


def _classifier(estimator, labels, seed, n_jobs):
    return DecoupledClassifier(
        estimator,
        labels.design,
        negative=labels.negative if labels.design is None else None,
        noise=labels.noise,
        class_prior=labels.class_prior,
        n_jobs=n_jobs,
        random_state=seed,
    )


def _estimator(model: str, X, seed, n_jobs):
    """Return the classifier of that name; None lets the labels choose."""
    if model == "forest":
        return BalancedForestClassifier(n_jobs=n_jobs, random_state=seed)
    if model == "linear":
        return linear_model(X)
    if model == "kernel":
        from looselabels.learning.density import KernelDensityClassifier

        return KernelDensityClassifier()
    if model == "boosting":
        from sklearn.ensemble import HistGradientBoostingClassifier

        return HistGradientBoostingClassifier(random_state=0)
    return None
