"""Time an audit and its report relative to fitting the forest with out-of-bag predictions.

python benchmarks/bench_audit.py [--quick]
"""

import warnings

import numpy as np

from bench_infer import best_time, is_quick, machine
from looselabels import DecoupledClassifier, Transition
from looselabels.auditing.audit import audit
from looselabels.auditing.report import render
from looselabels.datasets import make_loose_labels
from looselabels.learning.forest import BalancedForestClassifier
from simulate import blobs

MAX_ROWS = 500  # on the page


def row(name, took, base, target):
    print(f"| {name} | {took:.2f} s | {took / base:.3f} | {target} |", flush=True)


def main():
    n_rows = 3_000 if is_quick(__doc__) else 100_000
    warnings.simplefilter("ignore")
    X, y = blobs(np.random.default_rng(0), n_rows, 10, 30)
    noisy = Transition.identity(range(10)).with_noise(0.1)
    labels = make_loose_labels(y.tolist(), noisy, random_state=0).astype(int)
    settings = {"n_jobs": 2, "random_state": 0}
    forest = BalancedForestClassifier(min_samples_leaf=3, oob_score=True, **settings)
    clf = DecoupledClassifier(noise="estimate", **settings)

    def fit_and_audit():
        found = audit(clf.fit(X, labels), labels)
        return found, found.summary(), found.table()

    def page():
        return render(summary | {"rows": found.records(MAX_ROWS)})

    clf.fit(X[:500], labels[:500])  # compiles the kernels
    print(machine())
    print(f"\n{n_rows:,} rows × {X.shape[1]} columns, 10 labels, 10 % of them wrong")
    print("\n| step | time | ratio to cross-prediction | target |")
    print("|---|---|---|---|")
    base, _ = best_time(lambda: forest.fit(X, labels), max_calls=1)
    row("cross-prediction", base, base, "")
    took, (found, summary, _) = best_time(fit_and_audit, max_calls=1)
    row("audit", took, base, "≤ 1.5")
    took, _ = best_time(page, max_calls=1)
    row("report", took, base, "< 0.05")


if __name__ == "__main__":
    main()
