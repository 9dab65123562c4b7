"""
Several annotators: who can be relied on?
=========================================

Ten people each labeled some of the rows, three answers per row. Nobody knows the classes. The
accuracy of each person follows from the answers of the others and from the features.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LogisticRegression

from looselabels import DecoupledClassifier
from looselabels.annotations import annotations_to_table

rng = np.random.default_rng(0)
n_rows, people = 300, list("ABCDEFGHIJ")
accuracy = np.linspace(0.55, 0.95, len(people))
y = rng.integers(3, size=n_rows)
X = rng.normal(size=(n_rows, 2)) + 2 * np.array([(0, 0), (1, 1), (2, 0)])[y]

# %%
# Answers are a list of row, person and label. Three people are asked about each row.
row = np.repeat(np.arange(n_rows), 3)
person = np.argsort(rng.random((n_rows, len(people))), axis=1)[:, :3].ravel()
is_right = rng.random(len(row)) < accuracy[person]
answer = np.where(is_right, y[row], (y[row] + rng.integers(1, 3, len(row))) % 3)
table = annotations_to_table(row, np.array(people)[person], answer, n_rows=n_rows)
clf = DecoupledClassifier(LogisticRegression(), refit=1, random_state=0).fit(X, table)

# %%
# The consensus is the most probable class given the features and all answers.
consensus = clf.classes_[clf.class_proba_given_label_.argmax(axis=1)]
votes = np.stack([np.bincount(row[answer == k], minlength=n_rows) for k in range(3)], axis=1)
shares = np.mean(votes.argmax(axis=1) == y), np.mean(consensus == y)
print(f"Right classes: majority vote {shares[0]:.1%}, looselabels {shares[1]:.1%}.")

found = {name: np.asarray(clf.annotator_quality_[name]) for name in ("accuracy", "low", "high")}
inside = (found["low"] <= accuracy) & (accuracy <= found["high"])
print(f"Intervals that contain the true accuracy: {inside.sum()} of {len(people)}.")

figure, ax = plt.subplots(figsize=(7, 4), layout="constrained")
error = np.abs(np.stack([found["low"], found["high"]]) - found["accuracy"])
ax.errorbar(people, found["accuracy"], yerr=error, fmt="o", label="estimate, 90 % interval")
ax.plot(people, accuracy, "k_", markersize=18, label="truth")
ax.set(xlabel="annotator", ylabel="share of right answers", ylim=(0.3, 1))
ax.legend(loc="lower right")
plt.show()
