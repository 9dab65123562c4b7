"""Wrong labels, found and corrected by looselabels told nothing, beside cleanlab, on small data.

python benchmarks/quality_noise.py [--quick]

Same out-of-sample p(label | x) for both: that of DecoupledClassifier's own estimator. The second
table shows what calibration of the classes and the refit are worth, on the digits of the demo.
"""

import argparse
import warnings

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits, load_wine
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from bench_infer import machine
from looselabels import DecoupledClassifier, audit
from looselabels.command.demo import CLASSES, spoiled_digits
from looselabels.datasets import make_gaussians

NOISES = [("alike", 0.05), ("alike", 0.2), ("alike", 0.4), ("next", 0.1), ("next", 0.3)]


def spoiled(y, kind, rate, rng):
    """Return labels of which a share is wrong: any other class, or the next one."""
    n_classes = y.max() + 1
    step = 1 if kind == "next" else rng.integers(1, n_classes, len(y))
    return np.where(rng.random(len(y)) < rate, (y + step) % n_classes, y)


def data():
    """Yield names, features and classes; of the Gaussians a fifth overlap beyond repair."""
    yield "digits", *load_digits(return_X_y=True)
    yield "breast cancer", *load_breast_cancer(return_X_y=True)
    yield "wine", *load_wine(return_X_y=True)
    simulated = make_gaussians(2000, random_state=0)
    yield "Gaussians", simulated.X, np.array([simulated.classes.index(k) for k in simulated.y])


def compare(estimator, X, y, labels):
    """Return the numbers of one line: expected wrong labels, AUPRC, accuracy after correction."""
    clf = DecoupledClassifier(estimator, noise="estimate", n_jobs=-1, random_state=0)
    found = audit(clf.fit(X, labels), labels)
    said = clf.label_proba_.astype(float)
    wrong = labels != y
    their_ranking, their_right = of_cleanlab(said, labels, y)
    return [
        found.summary()["wrong"]["expected"],
        average_precision_score(wrong, found.doubt),
        their_ranking,
        np.mean(found.suggestion == y),
        their_right,
    ]


def of_cleanlab(said, labels, y):
    """Return its AUPRC and accuracy after correction; NaN where it is not installed."""
    try:
        from cleanlab.filter import find_label_issues
        from cleanlab.rank import get_label_quality_scores
    except ImportError:
        return np.nan, np.nan
    score = get_label_quality_scores(labels, said)
    corrected = np.where(find_label_issues(labels, said, n_jobs=1), said.argmax(axis=1), labels)
    return average_precision_score(labels != y, -score), np.mean(corrected == y)


def calibration_is_worth(seeds):
    """Print which share of the demo's planted errors is found and corrected, by the fit."""
    found_and_right = "wrong labels among the first suggestions | of these, suggestion right"
    print(f"\n| calibrate | refit | {found_and_right} |\n|---|---|---|---|")
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
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one data set and one noise")
    quick = parser.parse_args().quick
    warnings.simplefilter("ignore")
    print(machine())
    print(
        "\n| data | p(label given x) by | noise | wrong | expected | AUPRC, ours | AUPRC, cleanlab "
        "| right after correction, ours | by cleanlab's filter and prediction |"
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
    print(f"\nCorrected no worse than by cleanlab: {sum(no_worse)} of {len(no_worse)} lines.")
    calibration_is_worth(1 if quick else 5)


if __name__ == "__main__":
    main()
