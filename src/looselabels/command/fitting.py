"""A table of features and its labels → a fitted classifier."""

from joblib import parallel_config
from threadpoolctl import threadpool_limits

from looselabels.command.labels import Labels
from looselabels.learning.classifier import DecoupledClassifier
from looselabels.learning.forest import BalancedForestClassifier
from looselabels.learning.linear import linear_model

MIN_ROWS_FOR_THREADS = 10_000  # with fewer rows, BLAS and boosting are faster with one thread


def fit(
    X, y, labels: Labels, *, model="auto", groups=None, known_classes=None, seed=0, n_jobs=None
) -> DecoupledClassifier:
    """Return a classifier fitted to features and labels.

    `model` is "auto" (forest or linear, whichever predicts the labels better), "forest", "linear",
    "kernel" or "boosting". `known_classes` has the class of each reviewed row and None elsewhere.
    """
    clf = _classifier(_estimator(model, X, seed, n_jobs), labels, seed, n_jobs)
    # threads make small trees and small products slower, up to tenfold on busy cores
    one_thread = model != "kernel" and len(X) < MIN_ROWS_FOR_THREADS
    # Processes would take longer to start than most folds to fit. Boosting has them nevertheless:
    # in threads, the limit would not hold.
    folds_in = "loky" if model == "boosting" else "threading"
    with threadpool_limits(1 if one_thread else None), parallel_config(folds_in):
        return clf.fit(X, y, groups=groups, **_known(known_classes))


def fit_from_proba(
    label_proba, y, labels: Labels, *, known_classes=None, seed=0
) -> DecoupledClassifier:
    """Return a classifier fitted to p(label | x) of another model."""
    clf = _classifier(None, labels, seed, None)
    return clf.fit_from_proba(label_proba, y, **_known(known_classes))


def _known(classes):
    return {} if classes is None else {"known_classes": classes}


def _classifier(estimator, labels, seed, n_jobs):
    return DecoupledClassifier(
        estimator,
        labels.design,
        negative=labels.negative if labels.design is None else None,
        noise=labels.noise,
        refit=False,  # with a refit, fewer of the suggested classes in the demo are correct
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
