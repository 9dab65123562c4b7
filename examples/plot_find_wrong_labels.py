"""
Find wrong labels if nothing is known about them
================================================

90 of 1,797 handwritten digits have a wrong label. We specify neither which ones nor how many. The
audit estimates how many labels are wrong, ranks them, and suggests a class for each.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from looselabels import DecoupledClassifier, audit

digits = load_digits()
X, y = digits.data, digits.target
rng = np.random.default_rng(0)
wrong = rng.choice(len(y), size=90, replace=False)
labels = y.copy()
labels[wrong] = (y[wrong] + rng.integers(1, 10, size=90)) % 10

# %%
# Any scikit-learn classifier can estimate p(label | x). ``refit=False`` keeps the example fast.
model = make_pipeline(StandardScaler(), LogisticRegression(C=0.01))
clf = DecoupledClassifier(model, refit=False, random_state=0).fit(X, labels)
found = audit(clf, labels)

# %%
# The doubt of a label is the probability that it is wrong, given the image and the label.
count = found.summary()["wrong"]
doubtful = found.doubt > 0.5
n_found = np.isin(np.flatnonzero(doubtful), wrong).sum()
print(f"Wrong labels: {count['low']:.0f} to {count['high']:.0f} expected, 90 in truth.")
print(f"Doubtful labels: {doubtful.sum()}. Wrong labels among these: {n_found} of 90.")

# %%
# The 18 most doubtful labels. Green: the suggestion is the true class.
figure, axes = plt.subplots(3, 6, figsize=(8, 4.6), layout="constrained")
for ax, row in zip(axes.flat, found.order, strict=False):
    suggestion = clf.classes_[found.suggestion[row]]
    ax.imshow(digits.images[row], cmap="gray_r")
    color = "tab:green" if suggestion == y[row] else "tab:red"
    ax.set_title(f"{labels[row]} → {suggestion}", color=color)
    ax.axis("off")
figure.suptitle("given label → suggested class")
plt.show()
