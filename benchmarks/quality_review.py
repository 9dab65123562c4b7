"""How much better are labels after a person has reviewed some rows? Compare orders of review.

python benchmarks/quality_review.py [--quick]

A simulated reviewer replaces the labels of the first rows of an order by their classes. Rows that
were not reviewed keep their labels. All orders use the same out-of-sample p(label | x), by a forest
(out of bag). Ours is the order of `audit`, which learns of the decisions after every 50 rows;
cleanlab's is that of `find_label_issues`, then of the label quality scores; "random" is the mean of
ten random orders. The last columns compare the wrong labels there are, reviewed or not, with their
90 % interval after the last review.
"""

import numpy as np

from bench_infer import is_quick, machine
from looselabels import DecoupledClassifier, audit
from looselabels.datasets import make_loose_labels
from quality_noise import data, label_scores, noise_of

DATA = ("digits", "breast cancer", "table, 2 clusters per class")
NOISES = (("uniform", 0.15), ("largest class", 0.4))
REVIEWED = (0, 50, 100, 200)
STEP = 50  # reviewed rows between two audits
N_RANDOM = 10


def review_in_our_order(label_proba, labels, y, n_rows):
    """Return rows in the order in which they are reviewed, and the last audit."""
    clf = DecoupledClassifier(noise="estimate").fit_from_proba(label_proba, labels)
    decisions, rows = np.full(len(y), None), []
    found = audit(clf, labels)
    while len(rows) < n_rows:
        chosen = found.order[:STEP]
        rows.extend(chosen.tolist())
        decisions[chosen] = y[chosen]
        found = audit(clf, labels, decisions=decisions)
    return np.array(rows), found


def cleanlab_order(label_proba, labels):
    """Return all rows, most suspicious first; None without cleanlab."""
    try:
        from cleanlab.filter import find_label_issues
        from cleanlab.rank import get_label_quality_scores
    except ImportError:
        return None
    ranked = {"return_indices_ranked_by": "self_confidence", "n_jobs": 1}
    issues = find_label_issues(labels, label_proba, **ranked)
    others = np.argsort(get_label_quality_scores(labels, label_proba), kind="stable")
    return np.concatenate([issues, others[~np.isin(others, issues)]])


def right_labels(is_right, order, reviewed):
    """Return the share of right labels after each number of reviewed rows."""
    if order is None:
        return np.full(len(reviewed), np.nan)
    n_right = [np.sum(is_right) + np.sum(~is_right[order[:n]]) for n in reviewed]
    return np.array(n_right) / len(is_right)


def compare(name, X, y, kind, rate, reviewed):
    """Print one line per order."""
    labels = make_loose_labels(y, noise_of(kind, rate, y), random_state=0).astype(int)
    label_proba = label_scores("forest", X, labels)
    is_right = labels == y
    ours, found = review_in_our_order(label_proba, labels, y, max(reviewed))
    rng, wrong = np.random.default_rng(0), found.summary()["wrong"]
    drawn = [right_labels(is_right, rng.permutation(len(y)), reviewed) for _ in range(N_RANDOM)]
    lines = {
        "ours": right_labels(is_right, ours, reviewed),
        "cleanlab": right_labels(is_right, cleanlab_order(label_proba, labels), reviewed),
        "random": np.mean(drawn, axis=0),
    }
    for order, shares in lines.items():
        count = f"{np.sum(~is_right)} | {wrong['low']:.0f} to {wrong['high']:.0f}"
        print(
            f"| {name} | {kind} {rate:.0%} | {order} | "
            + " | ".join(f"{share:.1%}" for share in shares)
            + f" | {count if order == 'ours' else ' | '} |",
            flush=True,
        )


def main():
    """Print the table."""
    quick = is_quick(__doc__.splitlines()[0])
    names, noises = (("wine",), NOISES[:1]) if quick else (DATA, NOISES)
    reviewed = REVIEWED[:2] if quick else REVIEWED
    print(f"{machine()}\n")
    columns = " | ".join(f"{n} reviewed" for n in reviewed)
    print(f"| data | noise | order | {columns} | wrong | interval |")
    print("|---" * (len(reviewed) + 5) + "|")
    for name, X, y in data():
        for kind, rate in noises if name in names else ():
            compare(name, X, y, kind, rate, reviewed)


if __name__ == "__main__":
    main()
