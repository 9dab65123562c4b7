"""
How many unlabeled rows are positive?
=====================================

Some malignant tumors have a label; all other rows have none. The share of malignant tumors is
estimated from these labels alone, with an interval, for different label rates. With the lowest
rate, the estimate is based on 41 labels, and its interval misses the truth.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from looselabels import DecoupledClassifier

X, y = load_breast_cancer(return_X_y=True)
is_malignant = y == 0
model = make_pipeline(StandardScaler(), LogisticRegression(C=0.1))
rates = [0.2, 0.4, 0.6, 0.8]
rng = np.random.default_rng(0)

# %%
# ``negative`` names the class that is never labeled. The label rate is not specified.
found = []
for rate in rates:
    labels = np.where(is_malignant & (rng.random(len(y)) < rate), "malignant", None)
    clf = DecoupledClassifier(model, negative="benign", refit=False, random_state=0).fit(X, labels)
    low, high = clf.class_prior_interval_
    k = clf.classes_.tolist().index("malignant")
    found.append((clf.class_prior_[k], low[k], high[k]))
    print(f"rate {rate}: {found[-1][0]:.2f} ({low[k]:.2f} to {high[k]:.2f})")
share, low, high = np.array(found).T
truth = is_malignant.mean()
inside = np.sum((low <= truth) & (truth <= high))
print(f"Intervals that contain the true share {truth:.2f}: {inside} of {len(rates)}.")

figure, ax = plt.subplots(figsize=(7, 4), layout="constrained")
ax.errorbar(rates, share, yerr=[share - low, high - share], fmt="o", label="90 % interval")
ax.plot(rates, truth * np.array(rates), "s", color="tab:gray", label="share of labeled rows")
ax.axhline(truth, color="k", linestyle="--", label="true share")
ax.set(xlabel="labeled share of the malignant tumors", ylabel="share of all rows", ylim=(0, 0.7))
ax.legend()
plt.show()
