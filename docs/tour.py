# ---
# jupyter:
#   jupytext:
#     formats: py:percent
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # A tour of looselabels
#
# Run the cells from top to bottom. You describe how labels arise, infer classes, find wrong
# labels, and work with unlabeled rows and several annotators. All data come with scikit-learn.

# %%
# %matplotlib inline
import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from looselabels import DecoupledClassifier, Transition, audit, diagnose, infer
from looselabels.datasets import make_loose_labels

# %% [markdown]
# ## 1. A transition says how labels arise
#
# Rows are classes, columns are labels, and each row sums to 1. Here half of the cats and dogs have
# a label, 10 % of these labels are wrong, and other animals never have one.

# %%
pets = Transition.partial(["cat", "dog"], labeled=0.5, negative="other").with_noise(0.1)
print(pets)
pets.plot()
# %% [markdown]
# ## 2. From p(label | x) to p(class | x)
#
# A model says that an animal has the label "cat" with probability 0.3, and no label with 0.65.
# It is probably a cat: only half of them have a label.

# %%
label_proba = np.array([[0.3, 0.05, 0.65]])
infer(label_proba, pets).class_proba.round(2)

# %% [markdown]
# ## 3. Find wrong labels
#
# 5 % of the labels of handwritten digits are wrong. Nothing about them is specified. An audit at
# the end of a cell shows its verdict and the first rows.

# %%
X, y = load_digits(return_X_y=True)
rng = np.random.default_rng(0)
labels = np.where(rng.random(len(y)) < 0.05, (y + rng.integers(1, 10, len(y))) % 10, y)
trees = ExtraTreesClassifier(100, min_samples_leaf=2, random_state=0)
clf = DecoupledClassifier(trees, refit=False, random_state=0).fit(X, labels)
found = audit(clf, labels)
found

# %% [markdown]
# The first plot shows how many labels have which doubt, the second one which classes the labels
# stand for.

# %%
found.plot()
# %% [markdown]
# How many of the doubtful labels are really wrong?

# %%
doubtful = found.doubt > 0.5
print(f"{np.sum(doubtful & (labels != y))} of {doubtful.sum()} doubtful labels are wrong;")
print(f"{np.sum(labels != y)} labels are wrong in all.")

# %% [markdown]
# ## 4. Test the assumptions

# %%
for finding in diagnose(clf, labels):
    print(f"{finding.kind}: {finding.words}")

# %% [markdown]
# ## 5. Positive and unlabeled rows
#
# Half of the malignant tumors have a label, all other rows have none. The share of malignant tumors
# is estimated; the truth is 37 %.

# %%
X, y = load_breast_cancer(return_X_y=True)
truth = np.where(y == 0, "malignant", "benign")
labels = np.where((truth == "malignant") & (rng.random(len(y)) < 0.5), "malignant", None)
model = make_pipeline(StandardScaler(), LogisticRegression(C=0.1))
clf = DecoupledClassifier(model, negative="benign", refit=False, random_state=0).fit(X, labels)
print(dict(zip(clf.classes_.tolist(), clf.class_prior_.round(2).tolist(), strict=True)))
print(f"Accuracy: {np.mean(clf.predict(X) == truth):.1%}")
clf.transition_.plot()
# %% [markdown]
# ## 6. Several annotators
#
# Five people labeled all tumors. Each is wrong at a rate of their own, which is estimated.

# %%
names = ["malignant", "benign"]
answers = np.column_stack([
    make_loose_labels(truth, Transition.identity(names).with_noise(rate), random_state=k)
    for k, rate in enumerate([0.05, 0.1, 0.2, 0.3, 0.45])
])  # fmt: skip
clf = DecoupledClassifier(model, refit=1, random_state=0).fit(X, answers)
consensus = clf.classes_[clf.class_proba_given_label_.argmax(axis=1)]
print(f"Right consensus: {np.mean(consensus == truth):.1%}")
clf.annotator_quality_

# %% [markdown]
# ## Next
#
# Find your own labels in "Which design is mine?", or run `looselabels audit table.csv --label
# column` on a table of yours.
