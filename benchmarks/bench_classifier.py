"""Time DecoupledClassifier relative to the fits of its estimator alone.

python benchmarks/bench_classifier.py [--quick]
"""

import warnings

import numpy as np
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import cross_val_predict

from bench_infer import best_time, is_quick, machine
from looselabels import DecoupledClassifier, Transition
from looselabels.datasets import make_loose_labels
from looselabels.model_selection import LabelStratifiedKFold
from simulate import image_like


def main():
    n_rows = 3_000 if is_quick(__doc__) else 60_000
    warnings.simplefilter("ignore")
    X, y = image_like(n_rows)
    classes = np.minimum(y, 7)  # seven positive classes; the others form the negative class
    design = Transition.partial(range(7), labeled=0.1, negative=7)
    labels = make_loose_labels(classes.tolist(), design, random_state=0)
    index = design.label_index(labels)
    forest = RandomForestClassifier(100, n_jobs=-1, random_state=0)
    DecoupledClassifier(forest, design).fit(X[:500], labels[:500])  # compiles the kernels
    print(machine())
    print(
        "\n| training rows are predicted | estimator alone | DecoupledClassifier | added | target |"
    )
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
        base, _ = best_time(alone, max_calls=1)
        clf = DecoupledClassifier(clone(forest), design, cv=cv, random_state=0)
        whole, _ = best_time(lambda clf=clf: clf.fit(X, labels), max_calls=1)
        print(
            f"| {name}, {n_rows:,} × {X.shape[1]} | {base:.1f} s | {whole:.1f} s | "
            f"{whole / base - 1:+.1%} | ≤ 8 % |"
        )


if __name__ == "__main__":
    main()
