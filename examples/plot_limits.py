"""
When the assumption fails: hard cases are mislabeled more often
===============================================================

looselabels assumes that the label of a row depends only on its class. Here labels near the border
of the classes are wrong more often. A specified noise rate is then wrong for most rows, and
``diagnose`` says so.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LogisticRegression

from looselabels import DecoupledClassifier, diagnose

rng = np.random.default_rng(0)
X = rng.uniform(-3, 3, size=(3000, 1))
y = (X[:, 0] > 0).astype(int)
rates = {
    "the same rate everywhere": np.full(len(y), 0.15),
    "more at the border": 0.45 * np.exp(-(X[:, 0] ** 2)),
}

# %%
# In both cases we specify the average rate: a transition cannot express more.
figure, axes = plt.subplots(1, 2, figsize=(11, 4), layout="constrained", sharey=True)
for ax, (name, rate) in zip(axes, rates.items(), strict=True):
    labels = np.where(rng.random(len(y)) < rate, 1 - y, y)
    clf = DecoupledClassifier(LogisticRegression(), noise=rate.mean(), refit=False, random_state=0)
    clf.fit(X, labels)
    kinds = [finding.kind for finding in diagnose(clf, labels) if finding.found]
    n_violated = int("instance" in kinds)
    print(f"{name}: {n_violated} violation of the assumption")
    order = np.argsort(X[:, 0])
    ax.plot(X[order, 0], y[order], "k--", label="p(class 1 | x), the truth")
    ax.plot(X[order, 0], clf.class_proba_[order, 1], label="p(class 1 | x), inferred")
    ax.plot(X[order, 0], rate[order], color="tab:red", label="p(label is wrong | x), the truth")
    ax.set(title=f"{name}:\n{'a violation is reported' if n_violated else 'no violation found'}")
    ax.set_xlabel("x")
axes[0].legend(loc="center left")
plt.show()
