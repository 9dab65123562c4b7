"""How many right labels are reported as wrong where classes overlap? Compared with cleanlab.

python benchmarks/false_alarms.py [--quick]

All labels are right, so each reported label is a false alarm. Both libraries get the same
out-of-sample p(label | x), by a forest or a linear model with 5 folds, and no noise rate. We report
labels that are more likely wrong than right (`audit`, which estimates the noise); cleanlab reports
by `find_label_issues` with its defaults. "Not predicted" is the share of labels that are not the
most probable one. Digits overlap by noise with `spread` times the standard deviation of each pixel.
"""

import numpy as np
from cleanlab.filter import find_label_issues
from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from bench_infer import is_quick, machine
from looselabels import audit
from looselabels.datasets import make_gaussians

COLUMNS = (
    *("data", "model", "labels", "not predicted", "reported, looselabels"),
    *("90 % interval of wrong labels", "reported, cleanlab"),
)
MODELS = {
    "forest": RandomForestClassifier(100, min_samples_leaf=3, random_state=0),
    "linear": make_pipeline(StandardScaler(), LogisticRegression(max_iter=500)),
}


def data(quick):
    """Yield names, features and classes."""
    simulated = make_gaussians(400 if quick else 2000, random_state=0)
    yield "Gaussians", simulated.X, np.unique(simulated.y, return_inverse=True)[1]
    X, y = load_digits(return_X_y=True)
    rng, n = np.random.default_rng(0), 300 if quick else len(y)
    for spread in (0, 1, 2):
        noise = rng.normal(size=X.shape) * X.std(axis=0)
        yield f"digits, spread {spread}", (X + spread * noise)[:n], y[:n]


def main():
    quick = is_quick(__doc__)
    print(machine(), end="\n\n")
    print(f"| {' | '.join(COLUMNS)} |\n|{'---|' * len(COLUMNS)}")
    for name, X, y in data(quick):
        for model, estimator in MODELS.items():
            label_proba = cross_val_predict(estimator, X, y, cv=5, method="predict_proba")
            overlap = np.mean(label_proba.argmax(axis=1) != y)
            found = audit(label_proba=label_proba, labels=y)
            ours, theirs = np.sum(found.doubt > 0.5), np.sum(find_label_issues(y, label_proba))
            wrong = found.summary()["wrong"]
            interval = f"{wrong['low']:.0f} to {wrong['high']:.0f}"
            cells = (name, model, len(y), f"{overlap:.0%}", ours, interval, theirs)
            print(f"| {' | '.join(map(str, cells))} |", flush=True)


if __name__ == "__main__":
    main()
