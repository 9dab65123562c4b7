"""
How many labels should I check?
===============================

An audit ranks labels by their doubt, the probability that the label is wrong. The sum of the first
k doubts says how many wrong labels to expect among the first k rows. Here we know the truth, so we
can compare.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from looselabels import DecoupledClassifier, audit

X, y = load_breast_cancer(return_X_y=True)
rng = np.random.default_rng(0)
is_wrong = rng.random(len(y)) < 0.1
labels = np.where(is_wrong, 1 - y, y)
model = make_pipeline(StandardScaler(), LogisticRegression(C=0.1))
clf = DecoupledClassifier(model, refit=False, random_state=0).fit(X, labels)
found = audit(clf, labels)

# %%
# Go down the list until the next doubts are too small to be worth the work.
expected = np.cumsum(found.doubt[found.order])
real = np.cumsum(is_wrong[found.order])
n_checked = int(np.sum(found.doubt > 0.5))
print(f"Labels with a doubt above 0.5: {n_checked} of {len(y)}.")
print(f"Wrong labels among these: {expected[n_checked - 1]:.0f} expected, "
      f"{real[n_checked - 1]} in truth, of {is_wrong.sum()} in all.")  # fmt: skip

figure, ax = plt.subplots(figsize=(7, 4), layout="constrained")
k = np.arange(1, 151)
ax.plot(k, expected[:150], label="expected: the sum of their doubts")
ax.plot(k, real[:150], "k--", label="truth")
ax.plot(k, k * is_wrong.mean(), color="tab:gray", label="in random order")
ax.axvline(n_checked, color="tab:orange", label="doubt 0.5")
ax.set(xlabel="labels checked", ylabel="wrong labels among them")
ax.legend()
plt.show()
