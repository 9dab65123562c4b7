"""Measure class shares and wrong-label counts if labels can be on rows of the negative class.

python benchmarks/quality_negative_noise.py [--quick]

Some rows of one positive class are labeled, and a share of these labels is on rows of the negative
class instead. Two Gaussian classes with low, moderate or high overlap, 2,000 rows of which 40 % are
positive, and digits (0 to 3 against the others). p(label | x) is that of a forest or of logistic
regression. "positive share" is the share of the positive class less the truth: as if all labels
were right, with ``noise="estimate"``, and with the true share of wrong labels. "wrong labels" are
those of `audit`, with ``noise="estimate"``. "held" counts intervals that hold the truth, all other
numbers are means over label rates of 0.3 and 0.5 and over seeds.
"""

import warnings

import numpy as np
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from bench_infer import is_quick, machine
from looselabels import BalancedForestClassifier, DecoupledClassifier, audit

N_SEEDS = 3
N_ROWS = 2000
POSITIVE = 0.4
DISTANCES = {"low overlap": 4.0, "moderate overlap": 2.5, "high overlap": 1.5}
RATES = [0.3, 0.5]
NOISES = [0.0, 0.1, 0.2]
BASES = {
    "forest": BalancedForestClassifier(100, random_state=0),
    "linear": make_pipeline(StandardScaler(), LogisticRegression(max_iter=500)),
}
COLUMNS = (
    *("data", "p(label given x) by", "noise", "positive share, as if right", "estimated", "held"),
    *("noise specified", "wrong labels", "estimated", "low", "high", "held"),
)


def data(name, seed):
    """Return features, and which rows are positive."""
    if name == "digits":
        X, y = load_digits(return_X_y=True)
        return X, y < 4
    rng = np.random.default_rng(seed)
    is_positive = rng.random(N_ROWS) < POSITIVE
    X = rng.standard_normal((N_ROWS, 4))
    X[:, 0] += DISTANCES[name] * is_positive
    return X, is_positive


def label_some(is_positive, rate, noise, seed):
    """Return labels: as many as this share of the positive rows; a share of them is wrong."""
    rng = np.random.default_rng(seed)
    n_labels = round(rate * is_positive.sum())
    n_wrong = round(noise * n_labels)
    labels = np.full(len(is_positive), None, dtype=object)
    labels[rng.choice(np.flatnonzero(is_positive), n_labels - n_wrong, replace=False)] = "positive"
    labels[rng.choice(np.flatnonzero(~is_positive), n_wrong, replace=False)] = "positive"
    return labels


def measure(name, base, noise, rate, seed):
    """Return the numbers of one row of the table, in the order of its columns."""
    X, is_positive = data(name, seed)
    labels = label_some(is_positive, rate, noise, seed)
    options = {"noise": 0, "refit": False, "random_state": seed}
    clf = DecoupledClassifier(BASES[base], negative="negative", **options)
    as_if_right = clf.fit(X, labels).class_prior_[0]
    label_proba = clf.label_scores_.real([0, 1])  # the same for all
    known = clf.set_params(noise=noise).fit_from_proba(label_proba, labels).class_prior_[0]
    clf.set_params(noise="estimate").fit_from_proba(label_proba, labels)
    wrong, n_wrong = audit(clf, labels).summary()["wrong"], np.sum(labels[~is_positive] != None)  # noqa: E711
    low, high = (end[0] for end in clf.class_prior_interval_)
    share = is_positive.mean()
    return (
        *(as_if_right - share, clf.class_prior_[0] - share, low <= share <= high, known - share),
        *(n_wrong, wrong["expected"], wrong["low"], wrong["high"]),
        wrong["low"] <= n_wrong <= wrong["high"],
    )


def main():
    """Print the table."""
    quick = is_quick(__doc__)
    warnings.simplefilter("ignore")
    print(machine())
    print(f"\n| {' | '.join(COLUMNS)} |")
    print("|---" * len(COLUMNS) + "|")
    for name in ["low overlap"] if quick else [*DISTANCES, "digits"]:
        for base in BASES:
            for noise in NOISES[::2] if quick else NOISES:
                cells = [(rate, seed) for rate in RATES for seed in range(1 if quick else N_SEEDS)]
                found = np.array([measure(name, base, noise, *cell) for cell in cells], float)
                shares = [f"{mean:+.3f}" for mean in found[:, [0, 1, 3]].mean(axis=0)]
                counts = [f"{mean:.0f}" for mean in found[:, 4:8].mean(axis=0)]
                held = [f"{n:.0f} of {len(found)}" for n in found[:, [2, 8]].sum(axis=0)]
                numbers = *shares[:2], held[0], shares[2], *counts, held[1]
                print(f"| {name} | {base} | {noise:.0%} | {' | '.join(numbers)} |", flush=True)


if __name__ == "__main__":
    main()
