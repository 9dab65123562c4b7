"""Makes the models of looselabels 0.1 that tests load."""
import warnings; warnings.simplefilter("ignore")
import sys
from pathlib import Path
import numpy as np
from sklearn.datasets import load_iris
import looselabels
from looselabels import DecoupledClassifier, BalancedForestClassifier, KernelDensityClassifier, save
print(looselabels.__file__)
out = Path(sys.argv[1]); out.mkdir(exist_ok=True)
X, y = load_iris(return_X_y=True)
names = load_iris().target_names[y].astype(object); names[::3] = None
new = X[::7] + 0.05
expected = {}
forest = DecoupledClassifier(BalancedForestClassifier(3, random_state=0)).fit(X, names)
assert forest.class_estimator_ is not None
save(forest, out / "forest"); expected["forest"] = forest.predict_proba(new)
kernel = DecoupledClassifier(KernelDensityClassifier(0.5), noise=0.1, calibrate="marginals").fit(X[::3], load_iris().target_names[y][::3])
save(kernel, out / "kernel"); expected["kernel"] = kernel.predict_proba(new)
p = np.clip(np.eye(3)[y] + .2, 0, None); p /= p.sum(1, keepdims=True)
proba = DecoupledClassifier(noise=0.2).fit_from_proba(p, load_iris().target_names[y])
save(proba, out / "proba"); expected["proba"] = proba.predict_proba(p[::7])
np.savez(out / "expected.npz", **expected)
