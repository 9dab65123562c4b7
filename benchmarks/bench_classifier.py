"""What DecoupledClassifier adds to the fits of its own estimator, as ratios of one run.

python benchmarks/bench_classifier.py [--quick]
"""

import argparse
import warnings
from time import perf_counter

import numpy as np
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import cross_val_predict

from bench_infer import machine
from looselabels import DecoupledClassifier, Transition
from looselabels.datasets import make_loose_labels
from looselabels.model_selection import LabelStratifiedKFold
from simulate import image_like


def seconds(function):
    begin = perf_counter()
    function()
    return perf_counter() - begin


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small sizes, to see that it runs")
    n_rows = 3_000 if parser.parse_args().quick else 60_000
    warnings.simplefilter("ignore")
    X, y = image_like(n_rows)
    classes = np.minimum(y, 7)  # seven positive classes, the others negative
    design = Transition.partial(range(7), labeled=0.1, negative=7)
    labels = make_loose_labels(classes.tolist(), design, random_state=0)
    index = design.label_index(labels)
    forest = RandomForestClassifier(100, n_jobs=-1, random_state=0)
    DecoupledClassifier(forest, design).fit(X[:500], labels[:500])  # compiles
    print(machine())
    print("\n| how rows are predicted | estimator alone | DecoupledClassifier | added | target |")
    print("|---|---|---|---|---|")

    def folds_alone():
        clone(forest).fit(X, index)
        cv = LabelStratifiedKFold(3, random_state=0)
        cross_val_predict(forest, X, index, cv=cv, method="predict_proba")

    out_of_bag = clone(forest).set_params(oob_score=True)
    cases = {
        "out of bag": (lambda: out_of_bag.fit(X, index), "oob"),
        "3 folds": (folds_alone, 3),
    }
    for name, (alone, cv) in cases.items():
        base = seconds(alone)
        clf = DecoupledClassifier(clone(forest), design, cv=cv, random_state=0)
        whole = seconds(lambda clf=clf: clf.fit(X, labels))
        print(
            f"| {name}, {n_rows:,} × {X.shape[1]} | {base:.1f} s | {whole:.1f} s | "
            f"{whole / base - 1:+.1%} | ≤ 8 % |"
        )


if __name__ == "__main__":
    main()
