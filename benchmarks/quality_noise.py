"""Find and correct wrong labels on small data, without a noise rate; compare with cleanlab.

python benchmarks/quality_noise.py [--quick]

All use the same out-of-sample p(label | x), by a forest (out of bag) or a linear model (5 folds).
"True transition" is what the library does if the noise is known. Then there are tables of what the
rule for directions of errors and the constants of estimation/noise.py change, and one of the effect
of calibrating the classes and of the refit, on the digits of the demo. The last line is the time of
the estimate, relative to that of a 5-fold cross-prediction.
"""

import warnings
from time import perf_counter
from unittest.mock import patch

import numpy as np
from sklearn.datasets import (
    load_breast_cancer,
    load_digits,
    load_iris,
    load_wine,
    make_classification,
)
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score
from sklearn.model_selection import cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from bench_infer import is_quick, machine
from looselabels import DecoupledClassifier, Transition, audit
from looselabels.command.demo import CLASSES, spoiled_digits
from looselabels.datasets import make_gaussians, make_loose_labels
from looselabels.estimation.errors import equal_errors
from looselabels.estimation.noise import COST, RULED_OUT_PROBA, estimate_noise, gain_of_directions
from looselabels.learning.forest import BalancedForestClassifier

NOISES = [
    *(("none", 0.0), ("uniform", 0.1), ("uniform", 0.4), ("next", 0.1), ("next", 0.3)),
    *(("every other class", 0.25), ("largest class", 0.4)),
]
COLUMNS = (
    "data | p(label given x) by | noise | wrong | expected | low | high | with true transition | "
    "AUPRC | with true transition | cleanlab | right after correction | with true transition | "
    "cleanlab"
)
JUDGED = (
    "p(label given x) by | count within 25% | mean right corrected | mean flagged if none is wrong"
)


def noise_of(kind, rate, y):
    """Return p(label | class): errors of all classes, of every other one, or of the largest."""
    n_classes = y.max() + 1
    errors = equal_errors(np.eye(n_classes))
    if kind in ("next", "largest class"):
        errors = np.roll(np.eye(n_classes), 1, axis=1)
    rates = np.full(n_classes, rate)
    if kind == "every other class":
        rates[::2] = 0
    if kind == "largest class":
        rates[np.arange(n_classes) != np.bincount(y).argmax()] = 0
    names = range(n_classes)
    return Transition(np.diag(1 - rates) + rates[:, None] * errors, names, names)


def data():
    """Yield names, features and classes. A fifth of the Gaussians cannot be classified."""
    yield "wine", *load_wine(return_X_y=True)
    yield "digits", *load_digits(return_X_y=True)
    yield "breast cancer", *load_breast_cancer(return_X_y=True)
    yield "iris", *load_iris(return_X_y=True)
    simulated = make_gaussians(2000, random_state=0)
    yield "Gaussians", simulated.X, np.array([simulated.classes.index(k) for k in simulated.y])
    tables = {"n_redundant": 0, "flip_y": 0, "random_state": 0, "n_informative": 8}
    two = {"n_samples": 1500, "n_features": 20, "n_classes": 5, "class_sep": 1.8}
    yield "table, 2 clusters per class", *make_classification(**two, **tables)
    rare = {"n_samples": 2000, "n_features": 15, "n_classes": 4, "class_sep": 2.0}
    rare |= {"weights": [0.6, 0.25, 0.1, 0.05], "n_clusters_per_class": 1}
    yield "table, rare classes", *make_classification(**rare, **tables)


def label_scores(base, X, labels):
    """Return p(label | x) of each row by a model that has not seen it."""
    estimator = BalancedForestClassifier(100)
    if base == "linear":
        estimator = make_pipeline(StandardScaler(), LogisticRegression(max_iter=300))
    clf = DecoupledClassifier(estimator, noise=0, refit=False, calibrate=None, random_state=0)
    scores = clf.fit(X, labels).label_scores_
    return scores.real(np.arange(scores.label_proba.shape[1])).astype(float)


def cells(quick):
    """Yield all combinations of data, base and noise: names, p(label | x), labels, classes, T."""
    for name, X, y in list(data())[:1] if quick else data():
        for base in ("forest", "linear"):
            for kind, rate in NOISES[:2] if quick else NOISES:
                noise = noise_of(kind, rate, y)
                labels = make_loose_labels(y, noise, random_state=0).astype(int)
                text = kind if kind == "none" else f"{kind} {rate:.0%}"
                yield (name, base, text), label_scores(base, X, labels), labels, y, noise


def judge(label_proba, labels, y, transition=None):
    """Return the count of wrong labels, AUPRC, share of right labels after correction, flagged."""
    found = audit(label_proba=label_proba, labels=labels, transition=transition)
    wrong, is_wrong = found.summary()["wrong"], labels != y
    ranking = average_precision_score(is_wrong, found.doubt) if is_wrong.any() else np.nan
    return wrong, ranking, np.mean(found.suggestion == y), np.mean(found.doubt > 0.5)


def compare(grid):
    """Print one line for each cell, and how many are good."""
    print(f"\n| {COLUMNS} |\n|{'---|' * (COLUMNS.count('|') + 1)}")
    lines = []
    for names, label_proba, labels, y, noise in grid:
        ours, true = (judge(label_proba, labels, y, known) for known in (None, noise))
        theirs = score_cleanlab(label_proba, labels, y) if names[2] != "none" else (np.nan, 1.0)
        counts = [ours[0][end] for end in ("expected", "low", "high")] + [true[0]["expected"]]
        numbers = [ours[1], true[1], theirs[0], ours[2], true[2], theirs[1]]
        n_wrong = int(np.sum(labels != y))
        text = [*names, n_wrong, *(f"{_number(n):.0f}" for n in counts)]
        print("|", " | ".join(map(str, [*text, *(f"{number:.3f}" for number in numbers)])), "|")
        lines.append((names, n_wrong, ours, true, theirs))
    print_summary(lines)


def _number(count):
    return np.nan if count is None else count


def print_summary(lines):
    """Print how many lines with wrong labels are good, by base, and what is flagged without."""
    columns = "count within 25% | interval holds | right within .01 of true transition"
    columns += " | at least as good as cleanlab | most flagged if none is wrong"
    print(f"\n| p(label given x) by | {columns} |")
    print("|---|---|---|---|---|---|")
    for base in ("forest", "linear"):
        noisy = [line[1:] for line in lines if line[0][1] == base and line[1]]
        clean = [line[2][3] for line in lines if line[0][1] == base and not line[1]]
        good = [
            sum(abs(_number(ours[0]["expected"]) - n) <= n / 4 for n, ours, _, _ in noisy),
            sum(_number(o[0]["low"]) <= n <= _number(o[0]["high"]) for n, o, _, _ in noisy),
            sum(ours[2] >= true[2] - 0.01 for _, ours, true, _ in noisy),
            sum(ours[2] >= theirs[1] for _, ours, _, theirs in noisy),
        ]
        shares = " | ".join(f"{number} of {len(noisy)}" for number in good)
        print(f"| {base} | {shares} | {max(clean):.1%} |")


def compare_directions(grid):
    """Print how good the estimate is if directions of errors must gain other amounts.

    They must predict the labels of rows held out better by this many standard errors.
    """
    print(f"\n| standard errors | {JUDGED} |\n|---|---|---|---|---|")
    for errors in (-np.inf, 0.5, 1, 2, np.inf):  # always directions, …, never

        def gain(kinds, random_state, errors=errors):
            found, error = gain_of_directions(kinds, random_state)
            return (found, errors * error) if np.isfinite(errors) else (-errors, 0.0)

        with patch("looselabels.estimation.noise.gain_of_directions", gain):
            print_judged(errors, grid)


def compare_constants(grid):
    """Print what other constants of the estimate would change."""
    print(f"\n| RULED_OUT_PROBA | COST | {JUDGED} |\n|---|---|---|---|---|---|")
    module = "looselabels.estimation.noise"
    for floor, cost in [
        (RULED_OUT_PROBA, COST),
        (RULED_OUT_PROBA / 3, COST),
        (RULED_OUT_PROBA * 3, COST),
        (RULED_OUT_PROBA, 0),
        (RULED_OUT_PROBA, 1),
    ]:
        with patch(f"{module}.RULED_OUT_PROBA", floor), patch(f"{module}.COST", cost):
            print_judged(f"{floor:.3f} | {cost}", grid)


def print_judged(name, grid):
    """Print a line for each base: how good the estimates of all cells are."""
    found = [
        (names[1], np.sum(labels != y), judge(label_proba, labels, y))
        for names, label_proba, labels, y, _ in grid
    ]
    for base in ("forest", "linear"):
        noisy = [(n, ours) for b, n, ours in found if b == base and n]
        flagged = np.mean([ours[3] for b, n, ours in found if b == base and not n])
        close = sum(abs(_number(ours[0]["expected"]) - n) <= n / 4 for n, ours in noisy)
        right = np.mean([ours[2] for _, ours in noisy])
        line = f"{base} | {close} of {len(noisy)} | {right:.3f} | {flagged:.1%}"
        print(f"| {name} | {line} |")


def compare_time(n_rows):
    """Print the time of the estimate relative to that of a cross-prediction."""
    X, y = make_classification(
        n_rows, 20, n_informative=10, n_classes=10, n_clusters_per_class=1, random_state=0
    )
    labels = make_loose_labels(y, noise_of("uniform", 0.2, y), random_state=0).astype(int)
    forest, start = RandomForestClassifier(100, random_state=0), perf_counter()
    label_proba = cross_val_predict(forest, X, labels, cv=5, method="predict_proba")
    middle = perf_counter()
    estimate_noise(label_proba, labels)
    ratio = (perf_counter() - middle) / (middle - start)
    print(f"\nThe estimate takes {ratio:.2f} times as long as a 5-fold cross-prediction with 100 "
          f"trees ({n_rows} rows, 10 classes).")  # fmt: skip


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
    """Print all tables."""
    quick = is_quick(__doc__)
    warnings.simplefilter("ignore")
    print(machine())
    grid = list(cells(quick))
    compare(grid)
    compare_directions(grid)
    if not quick:
        compare_constants(grid)
    compare_refits(seeds=1 if quick else 5)
    compare_time(500 if quick else 5000)


if __name__ == "__main__":
    main()
