"""Made the models in this folder, with looselabels 0.1 (commit 71f73c0): python make.py FOLDER."""

import sys
from pathlib import Path

import numpy as np
from sklearn.datasets import load_iris

from looselabels import (
    BalancedForestClassifier,
    DecoupledClassifier,
    KernelDensityClassifier,
    save,
)


def make(out):
    out.mkdir(exist_ok=True)
    X, y = load_iris(return_X_y=True)
    names = load_iris().target_names[y]
    some = names.astype(object)
    some[::3] = None
    new = X[::7] + 0.05
    label_proba = np.eye(3)[y] + 0.2
    label_proba /= label_proba.sum(axis=1, keepdims=True)

    forest = DecoupledClassifier(BalancedForestClassifier(3, random_state=0)).fit(X, some)
    save(forest, out / "forest")
    kernel = DecoupledClassifier(KernelDensityClassifier(0.5), noise=0.1, calibrate="marginals")
    save(kernel.fit(X[::3], names[::3]), out / "kernel")
    elsewhere = DecoupledClassifier(noise=0.2).fit_from_proba(label_proba, names)
    save(elsewhere, out / "proba")
    np.savez(
        out / "expected.npz",
        forest=forest.predict_proba(new),
        kernel=kernel.predict_proba(new),
        proba=elsewhere.predict_proba(label_proba[::7]),
    )


if __name__ == "__main__":
    make(Path(sys.argv[1]))
