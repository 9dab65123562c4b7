"""Compare the numbers of two commits on thirteen small problems.

    python benchmarks/same_numbers.py dump before.npz     # in one checkout
    python benchmarks/same_numbers.py dump after.npz      # in the other
    python benchmarks/same_numbers.py compare before.npz after.npz

The script uses only public names that exist in both commits. The problems cover each kind of
labels, each way of predicting training rows out of sample, and each part that can be specified or
estimated.
"""

import sys
import warnings

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from looselabels import (
    BalancedForestClassifier,
    DecoupledClassifier,
    KernelDensityClassifier,
    Transition,
    audit,
    diagnose,
)
from looselabels.datasets import make_loose_labels

TOLERANCE = 1e-9


def data(load):
    """Return the features and the class names of the rows."""
    found = load()
    names = [str(name) for name in found.target_names]
    return found.data, np.array([names[k] for k in found.target], dtype=object)


def forest(**options):
    return BalancedForestClassifier(40, random_state=0, **options)


def linear():
    return make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))


def problems():
    """Yield a name, an unfitted classifier, features, labels and keyword arguments of fit."""
    X, y = data(load_iris)
    yield "supervised", DecoupledClassifier(forest(), noise=0), X, y, {}
    yield "noise told", DecoupledClassifier(linear(), noise=0.1, random_state=0), X, y, {}

    X, y = data(load_digits)
    X, y = X[:900], y[:900]
    some = Transition.partial(sorted(set(y)), labeled=0.3)
    labels = make_loose_labels(y, some, random_state=0)
    yield "semi-supervised", DecoupledClassifier(forest(), noise=0), X, labels, {}
    noisy = make_loose_labels(y, some.with_noise(0.2), random_state=1)
    yield "noise estimated", DecoupledClassifier(forest(), noise="estimate"), X, noisy, {}
    without = DecoupledClassifier(forest(), noise="estimate", refit=False)
    yield "noise, without refit", without, X, noisy, {}

    X, y = data(load_breast_cancer)
    positive = Transition.partial(["benign"], labeled=0.4, negative="malignant")
    labels = make_loose_labels(y, positive, random_state=0)
    open_rate = {"negative": "malignant", "noise": 0, "random_state": 0}
    yield "positive-unlabeled", DecoupledClassifier(forest(), **open_rate), X, labels, {}
    kernel = KernelDensityClassifier(0.5)
    yield (
        "class prior by method",
        DecoupledClassifier(kernel, negative="malignant", class_prior="density-ratio"),
        X,
        labels,
        {},
    )
    known = open_rate | {"class_prior": {"benign": 0.63}}
    weight = np.random.default_rng(7).uniform(0.5, 2, len(y))
    yield (
        "class prior told",
        DecoupledClassifier(linear(), **known),
        X,
        labels,
        {"sample_weight": weight},
    )
    trees = RandomForestClassifier(40, random_state=0)
    yield "out of bag", DecoupledClassifier(trees, noise=0, calibrate="marginals"), X, y, {}

    X, y = data(load_wine)
    meanings = {"class_0": "class_0", "rest": ["class_1", "class_2"], "class_2": "class_2"}
    coarse = Transition.from_meanings(meanings, {"class_0": 60, "rest": 80, "class_2": 40})
    labels = make_loose_labels(y, coarse, random_state=0)
    yield "coarse", DecoupledClassifier(forest(), coarse), X, labels, {}
    believed = {"strength": 50, "label_weights": "costs", "random_state": 0}
    yield "strength and costs", DecoupledClassifier(linear(), coarse, **believed), X, labels, {}
    swapped = Transition.identity(sorted(set(y))).with_noise(0.2)
    noisy = make_loose_labels(y, swapped, random_state=0)
    yield (
        "noise by method",
        DecoupledClassifier(GaussianNB(), noise="calibrated", random_state=0),
        X,
        noisy,
        {},
    )
    yield (
        "temperature",
        DecoupledClassifier(GaussianNB(), noise=0.2, calibrate="temperature", cv=4, random_state=1),
        X,
        noisy,
        {},
    )


def numbers(clf, X, y, keywords) -> dict:
    """Return all numbers of a fit, its audit and its diagnosis by name."""
    np.random.seed(0)  # noqa: NPY002 - for estimators without a random_state
    clf.fit(X, y, **keywords)
    found = {
        name: getattr(clf, name)
        for name in ("class_proba_", "class_proba_given_label_", "class_prior_", "objective_")
    }
    found |= {"transition": clf.transition_.proba, "gap": clf.gap_}
    found |= {"interval": clf.class_prior_interval_ or []}
    found |= {"predict_proba": clf.predict_proba(X), "predict_label": clf.predict_label_proba(X)}
    summary = audit(clf, y).summary()
    wrong = summary["wrong"].items()
    found |= {f"wrong {key}": value for key, value in wrong if key != "why_no_count"}  # not words
    for key in ("share", "low", "high"):
        found[f"class {key}"] = [entry[key] for entry in summary["classes"]]
    found |= {f"transition {key}": summary["transition"][key] for key in ("low", "high")}
    found |= {"flow": summary["flow"], "infeasible": summary["infeasible"]}
    found["calibration"] = summary["calibration"]["error"]
    for finding in diagnose(clf, y):
        found[f"{finding.kind} p"] = finding.p_value
    return {key: np.asarray(np.nan if v is None else v, float) for key, v in found.items()}


def dump(path):
    found = {}
    for name, clf, X, y, keywords in problems():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            of_problem = numbers(clf, X, y, keywords)
        found |= {f"{name}/{key}": value for key, value in of_problem.items()}
        print(f"{name}: {len(of_problem)} arrays", flush=True)
    np.savez(path, **found)


def distance(a, b) -> float:
    """Return the largest difference; infinity if shapes or missing values differ."""
    if a.shape != b.shape or not np.array_equal(np.isnan(a), np.isnan(b)):
        return np.inf
    return float(np.max(abs(np.nan_to_num(a) - np.nan_to_num(b)), initial=0))


def compare(before, after) -> int:
    """Print the differences, and return the number of problems with different numbers."""
    a, b = np.load(before), np.load(after)
    n_moved = 0
    for name in dict.fromkeys(key.split("/")[0] for key in a.files):
        keys = [key for key in a.files if key.startswith(f"{name}/")]
        apart = {key.split("/")[1]: distance(a[key], b[key]) for key in keys}
        moved = {key: value for key, value in apart.items() if value > TOLERANCE}
        n_moved += bool(moved)
        words = ", ".join(f"{key} {value:.2g}" for key, value in moved.items()) or "same"
        print(
            f"{name:24} {len(keys)} arrays, largest difference {max(apart.values()):.1e}: {words}"
        )
    return n_moved


if __name__ == "__main__":
    if len(sys.argv) == 3 and sys.argv[1] == "dump":
        dump(sys.argv[2])
    elif len(sys.argv) == 4 and sys.argv[1] == "compare":
        sys.exit(bool(compare(*sys.argv[2:])))
    else:
        sys.exit(__doc__)
