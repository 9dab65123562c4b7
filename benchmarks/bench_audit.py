"""What an audit adds to the cross-prediction of its own forest, as ratios of one run.

python benchmarks/bench_audit.py [--quick]
"""

import argparse
import warnings
from time import perf_counter

import numpy as np

from bench_infer import machine
from looselabels import DecoupledClassifier, Transition
from looselabels.auditing.audit import audit
from looselabels.auditing.report import render
from looselabels.datasets import make_loose_labels
from looselabels.learning.forest import BalancedForestClassifier
from simulate import blobs

MOST_ROWS = 500  # that the page shows


def seconds(function):
    begin = perf_counter()
    result = function()
    return perf_counter() - begin, result


def row(name, took, base, target):
    print(f"| {name} | {took:.2f} s | {took / base:.3f} | {target} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small sizes, to see that it runs")
    n_rows = 3_000 if parser.parse_args().quick else 100_000
    warnings.simplefilter("ignore")
    X, y = blobs(np.random.default_rng(0), n_rows, 10, 30)
    noisy = Transition.identity(range(10)).with_noise(0.1)
    labels = make_loose_labels(y.tolist(), noisy, random_state=0).astype(int)
    settings = {"n_jobs": 2, "random_state": 0}
    forest = BalancedForestClassifier(min_samples_leaf=3, oob_score=True, **settings)
    clf = DecoupledClassifier(noise="estimate", **settings)

    def whole():
        found = audit(clf.fit(X, labels), labels)
        return found, found.summary(), found.table()

    def page():
        return render(summary | {"rows": found.records(MOST_ROWS)})

    clf.fit(X[:500], labels[:500])  # compiles
    print(machine())
    print(f"\n{n_rows:,} rows × {X.shape[1]} columns, 10 labels, a tenth of them wrong")
    print("\n| step | time | beside cross-prediction | target |")
    print("|---|---|---|---|")
    base, _ = seconds(lambda: forest.fit(X, labels))
    row("cross-prediction", base, base, "")
    took, (found, summary, _) = seconds(whole)
    row("audit", took, base, "≤ 1.5")
    took, _ = seconds(page)
    row("report", took, base, "< 0.05")


if __name__ == "__main__":
    main()
