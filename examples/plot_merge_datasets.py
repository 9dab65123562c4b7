"""
One classifier from three data sets that were labeled differently
=================================================================

One data set has labels for dogs and cats, one has no labels, and one labels dogs and wolves as
"canine". Together they determine a classifier of four classes, although no label names the wolf.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.ensemble import ExtraTreesClassifier

from looselabels import DecoupledClassifier, Transition
from looselabels.datasets import make_loose_labels

CENTERS = {"dog": (0, 0), "cat": (3, 0), "wolf": (0, 2.5), "other": (3, 2.5)}
COUNTS = {  # number of samples per class in each data set
    "pets": {"dog": 150, "cat": 150},
    "web": {"dog": 300, "cat": 300, "wolf": 200, "other": 1000},
    "canines": {"dog": 450, "wolf": 450},
}
rng = np.random.default_rng(0)
y = np.concatenate([np.repeat(list(c), list(c.values())) for c in COUNTS.values()])
X, X_test = (np.array([CENTERS[name] for name in y]) + rng.normal(size=(len(y), 2)) for _ in "ab")

# %%
# Specify how labels arise in each data set. The labels of all data are pairs (data set, label).
pets = Transition.identity(["dog", "cat"])
web = Transition.from_meanings({None: list(CENTERS)})
canines = Transition.from_meanings({"canine": ["dog", "wolf"]})
transition = Transition.combine({"pets": pets, "web": web, "canines": canines}, sizes=COUNTS)
labels = make_loose_labels(y, transition, random_state=0)
trees = ExtraTreesClassifier(100, min_samples_leaf=10, random_state=0)
clf = DecoupledClassifier(trees, transition, refit=False, random_state=0).fit(X, labels)

# %%
# As a baseline, take the most probable label, and then the most probable class of this label.
class_of_label = clf.classes_[clf.transition_.reverse(clf.class_prior_).argmax(axis=1)]
baseline = class_of_label[clf.predict_label_proba(X_test).argmax(axis=1)]
predicted = clf.predict(X_test)
shares = f"trees alone {np.mean(baseline == y):.1%}, looselabels {np.mean(predicted == y):.1%}"
print(f"Accuracy on new samples: {shares}.")
wolves = np.mean(predicted[y == "wolf"] == "wolf")
print(f"Share of wolves found, although no label names them: {wolves:.1%}.")

figure, axes = plt.subplots(1, 3, figsize=(14, 4.4), layout="constrained")
names = [text.get_text() for text in transition.plot(ax=axes[0]).ax_.get_xticklabels()]
index = transition.label_index(labels)
for s in np.argsort(-np.bincount(index)):  # rare labels on top
    axes[1].scatter(*X[index == s].T, s=6, label=names[s])
axes[1].legend(markerscale=3)
grid = np.meshgrid(*np.linspace(X.min(axis=0), X.max(axis=0), 150).T)
regions = clf.predict_proba(np.stack(grid, axis=-1).reshape(-1, 2)).argmax(axis=1)
axes[2].pcolormesh(*grid, regions.reshape(grid[0].shape), cmap="Pastel1", vmax=8)
for name, center in CENTERS.items():
    axes[2].text(*center, name, ha="center")
for ax, title in zip(axes, ["p(label | class)", "labels", "predicted classes"], strict=True):
    ax.set_title(title)
plt.show()
