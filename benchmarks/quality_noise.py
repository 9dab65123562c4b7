"""Find and correct wrong labels on small data, without a noise rate; compare with cleanlab.

python benchmarks/quality_noise.py [--quick]

Both use the same out-of-sample p(label | x), `label_scores_` of DecoupledClassifier. The second
table shows the effect of calibrating the classes and of the refit, on the digits of the demo.
"""

import warnings

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits, load_wine
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from bench_infer import is_quick, machine
from looselabels import DecoupledClassifier, audit
from looselabels.command.demo import CLASSES, spoiled_digits
from looselabels.datasets import make_gaussians

NOISES = [("uniform", 0.05), ("uniform", 0.2), ("uniform", 0.4), ("next", 0.1), ("next", 0.3)]


def spoiled(y, kind, rate, rng):
    """Return labels with a share of wrong ones: any other class, or the next class."""
    n_classes = y.max() + 1
    step = 1 if kind == "next" else rng.integers(1, n_classes, len(y))
    return np.where(rng.random(len(y)) < rate, (y + step) % n_classes, y)


def data():
    """Yield names, features and classes. A fifth of the Gaussians cannot be classified."""
    yield "digits", *load_digits(return_X_y=True)
    yield "breast cancer", *load_breast_cancer(return_X_y=True)
    yield "wine", *load_wine(return_X_y=True)
    simulated = make_gaussians(2000, random_state=0)
    yield "Gaussians", simulated.X, np.array([simulated.classes.index(k) for k in simulated.y])


def compare(estimator, X, y, labels):
    """Return the numbers of one line: expected wrong labels, AUPRC, accuracy after correction."""
    clf = DecoupledClassifier(estimator, noise="estimate", n_jobs=-1, random_state=0)
    found = audit(clf.fit(X, labels), labels)
    label_proba = clf.label_scores_.label_proba.astype(float)
    wrong = labels != y
    their_ranking, their_right = score_cleanlab(label_proba, labels, y)
    return [
        found.summary()["wrong"]["expected"],
        average_precision_score(wrong, found.doubt),
        their_ranking,
        np.mean(found.suggestion == y),
        their_right,
    ]


def score_cleanlab(label_proba, labels, y):
    """Return its AUPRC and accuracy after correction; NaN if it is not installed."""
    try:
        from cleanlab.filter import find_label_issues
        from cleanlab.rank import get_label_quality_scores
    except ImportError:
        return np.nan, np.nan
    score = get_label_quality_scores(labels, label_proba)
    is_issue = find_label_issues(labels, label_proba, n_jobs=1)
    corrected = np.where(is_issue, label_proba.argmax(axis=1), labels)
    return average_precision_score(labels != y, -score), np.mean(corrected == y)


def compare_refits(seeds):
    """Print which share of the planted errors of the demo is found and corrected."""
    columns = "wrong labels ranked first | right suggestions among these"
    print(f"\n| calibrate | refit | {columns} |\n|---|---|---|---|")
    ways = [(None, False), ("temperature", False), ("classes", False), ("classes", True)]
    for calibrate, refit in ways:
        shares = []
        for seed in range(seeds):
            X, classes, labels = spoiled_digits(seed)
            clf = DecoupledClassifier(
                noise=0.2, calibrate=calibrate, refit=refit, random_state=seed
            )
            found = audit(clf.fit(X, labels), labels)
            planted = np.array([label is not None for label in labels]) & (labels != classes)
            hits = [row for row in found.order[: planted.sum()] if planted[row]]
            right = [CLASSES[found.suggestion[row]] == classes[row] for row in hits]
            shares.append((len(hits) / planted.sum(), np.mean(right)))
        share, right = np.mean(shares, axis=0)
        print(f"| {calibrate} | {refit} | {share:.0%} | {right:.0%} |")


def main():
    """Print both tables."""
    quick = is_quick(__doc__)
    warnings.simplefilter("ignore")
    print(machine())
    print(
        "\n| data | p(label given x) by | noise | wrong | expected | AUPRC, ours | AUPRC, cleanlab "
        "| right after correction, ours | right after correction, cleanlab |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    linear, no_worse = make_pipeline(StandardScaler(), LogisticRegression(max_iter=500)), []
    for name, X, y in list(data())[2:3] if quick else data():
        for base, estimator in (("forest", None), ("linear", linear)):
            for kind, rate in NOISES[:1] if quick else NOISES:
                labels = spoiled(y, kind, rate, np.random.default_rng(0))
                numbers = compare(estimator, X, y, labels)
                no_worse.append(numbers[-2] >= numbers[-1])
                line = [f"{numbers[0]:.0f}", *(f"{number:.3f}" for number in numbers[1:])]
                n_wrong = np.sum(labels != y)
                print(f"| {name} | {base} | {kind} {rate:.0%} | {n_wrong} |", " | ".join(line), "|")
    print(f"\nAt least as good as cleanlab: {sum(no_worse)} of {len(no_worse)} lines.")
    compare_refits(1 if quick else 5)


if __name__ == "__main__":
    main()
