"""Measure the error of each estimator of the transition, on digits with wrong labels.

python benchmarks/quality_transitions.py [--quick]

All rows are labeled, or ten per class. p(label | x) is predicted out of bag by the default forest.
"likelihood" is ``noise="estimate"``; the last four estimators are not in the package. The error is
the mean over classes of the sum over labels of |T − T*|, where T* is counted in the sample.
"""

import warnings

import numpy as np
from sklearn.datasets import load_digits

from bench_infer import is_quick, machine
from looselabels import DecoupledClassifier, Transition
from looselabels.estimation.noise import estimate_noise
from looselabels.estimation.transition import METHODS, estimate_transition
from transition_estimators import OTHERS

NOISES = [("uniform", 0.0), ("uniform", 0.2), ("next", 0.3), ("uniform", 0.4)]


def spoiled(y, kind, rate, rng):
    """Return labels with a share of wrong ones: any other class, or the next class."""
    n_classes = y.max() + 1
    step = 1 if kind == "next" else rng.integers(1, n_classes, len(y))
    return np.where(rng.random(len(y)) < rate, (y + step) % n_classes, y)


def errors(X, y, labels):
    """Return the error of each estimator, by name."""
    clf = DecoupledClassifier(noise=0.1, random_state=0, n_jobs=-1).fit(X, labels)
    design, label_proba = (
        Transition.identity(range(10)).with_noise(0.1),
        clf.label_scores_.label_proba,
    )
    truth = np.histogram2d(y, labels, bins=[range(11)] * 2)[0]
    truth /= truth.sum(axis=1, keepdims=True)
    found = {"likelihood": estimate_noise(label_proba, labels).proba} | {
        name: estimate_transition(label_proba, labels, design, method=name).transition
        for name in METHODS
    }
    found |= {name: find(label_proba, labels, design.proba) for name, find in OTHERS.items()}
    return {name: abs(matrix - truth).sum(axis=1).mean() for name, matrix in found.items()}


def main():
    """Print the table."""
    quick = is_quick(__doc__)
    warnings.simplefilter("ignore")
    print(machine())
    X, y = load_digits(return_X_y=True)
    few = np.concatenate([np.flatnonzero(y == k)[:10] for k in range(10)])
    names = ["likelihood", *METHODS, *OTHERS]
    print(f"\n| rows | noise | {' | '.join(names)} |\n|{'---|' * (len(names) + 2)}")
    for rows in [few] if quick else [np.arange(len(y)), few]:
        for kind, rate in NOISES[1:2] if quick else NOISES:
            labels = spoiled(y[rows], kind, rate, np.random.default_rng(0))
            found = errors(X[rows], y[rows], labels)
            cells = " | ".join(f"{found[name]:.2f}" for name in names)
            print(f"| {len(rows):,} | {kind} {rate:.0%} | {cells} |")


if __name__ == "__main__":
    main()
