"""Measure the error of each estimator of class shares when the negative class has no labels.

python benchmarks/quality_class_prior.py [--quick]

The same number of rows of each positive class is labeled, and all other rows are unlabeled. Each
estimator uses the same out-of-sample p(label | x): out of bag by the default forest, or by 5 folds
with logistic regression. "density-ratio" and "best-bin" are values of ``class_prior``; e1, e2 and
e3 (Elkan and Noto) are not in the package. The error is the mean of |share − true share| over the
classes, and the table shows its mean over label counts and seeds.
"""

import warnings

import numpy as np
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from bench_infer import is_quick, machine
from class_prior_estimators import OTHERS, estimate_shares
from looselabels import DecoupledClassifier
from looselabels.datasets import make_gaussians
from looselabels.estimation.class_prior import METHODS

ESTIMATORS = [*METHODS, *OTHERS]
LABEL_COUNTS = [20, 50, 100]  # per positive class
N_SEEDS = 3
NEGATIVE = "negative"
LINEAR = make_pipeline(StandardScaler(), LogisticRegression(max_iter=500))
BASES = {"forest, out of bag": (None, None), "linear, 5 folds": (LINEAR, 5)}  # estimator, cv
TOLERANCE = 1e-12  # errors that differ by no more than this are equal


def data(seed):
    """Yield names, features, classes, and the number of positive classes, which come first."""
    X, y = load_digits(return_X_y=True)
    yield "digits", X, y, 7
    yield "digits", X, y, 1
    simulated = make_gaussians(2000, random_state=seed)
    y = np.array([simulated.classes.index(name) for name in simulated.y])
    yield "Gaussians", simulated.X, y, 3
    yield "Gaussians", simulated.X, y, 1


def label_some(y, n_positive, n_labels, rng):
    """Return labels: of `n_labels` random rows per positive class; None for all other rows."""
    labels = np.full(len(y), None, dtype=object)
    for k in range(n_positive):
        labels[rng.choice(np.flatnonzero(y == k), n_labels, replace=False)] = f"class {k}"
    return labels


def errors(base, X, y, n_positive, n_labels, seed):
    """Return the error of each estimator, by name."""
    estimator, cv = BASES[base]
    labels = label_some(y, n_positive, n_labels, np.random.default_rng(seed))
    shares = np.bincount(np.minimum(y, n_positive)) / len(y)
    clf = DecoupledClassifier(
        estimator,
        negative=NEGATIVE,
        # True shares, so that no time is spent on estimating them; p(label | x) ignores them.
        class_prior={f"class {k}": share for k, share in enumerate(shares[:-1])},
        noise=0,
        cv=cv,
        calibrate=None,
        refit=False,
        n_jobs=-1,
        random_state=seed,
    )
    scores = clf.fit(X, labels).label_scores_
    label_proba = scores.real(np.arange(n_positive + 1))  # of the real distribution
    return {
        name: abs(estimate_shares(name, label_proba, scores.label_index) - shares).mean()
        for name in ESTIMATORS
    }


def measure(quick):
    """Return {(data, number of positive classes, base): errors, (n_cells, n_estimators)}."""
    cells = {}
    for seed in range(1 if quick else N_SEEDS):
        for name, X, y, n_positive in list(data(seed))[: 2 if quick else None]:
            for base in BASES:
                for n_labels in LABEL_COUNTS[1:2] if quick else LABEL_COUNTS:
                    found = errors(base, X, y, n_positive, n_labels, seed)
                    found = [found[estimator] for estimator in ESTIMATORS]
                    cells.setdefault((name, n_positive, base), []).append(found)
    return {key: np.array(found) for key, found in cells.items()}


def main():
    """Print the table."""
    quick = is_quick(__doc__)
    warnings.simplefilter("ignore")
    print(machine())
    print(f"\n| data | positive classes | p(label given x) by | {' | '.join(ESTIMATORS)} |")
    print("|---" * (len(ESTIMATORS) + 3) + "|")
    cells = measure(quick)
    for (name, n_positive, base), found in cells.items():
        means = " | ".join(f"{error:.3f}" for error in found.mean(axis=0))
        print(f"| {name} | {n_positive} | {base} | {means} |")
    everything = np.concatenate(list(cells.values()))
    means = " | ".join(f"{error:.3f}" for error in everything.mean(axis=0))
    print(f"| all | | | {means} |")
    is_closest = everything <= everything.min(axis=1, keepdims=True) + TOLERANCE
    times = " | ".join(map(str, is_closest.sum(axis=0)))
    print(f"| closest, of {len(everything)} cells | | | {times} |")


if __name__ == "__main__":
    main()
