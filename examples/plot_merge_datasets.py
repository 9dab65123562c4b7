"""
One classifier from three data sets that were labeled differently
=================================================================

A small data set has dogs and cats, a big one has everything and no labels, a third says "canine" to
dogs and wolves alike. Together they teach four classes, although none has a label for a wolf.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.ensemble import ExtraTreesClassifier

from looselabels import DecoupledClassifier, Transition
from looselabels.datasets import make_loose_labels

CENTERS = {"dog": (0, 0), "cat": (3, 0), "wolf": (0, 2.5), "other": (3, 2.5)}
COUNTS = {  # about how many of each class a data set holds
    "pets": {"dog": 150, "cat": 150},
    "web": {"dog": 300, "cat": 300, "wolf": 200, "other": 1000},
    "canines": {"dog": 450, "wolf": 450},
}
rng = np.random.default_rng(0)
y = np.concatenate([np.repeat(list(c), list(c.values())) for c in COUNTS.values()])
X, X_test = (np.array([CENTERS[name] for name in y]) + rng.normal(size=(len(y), 2)) for _ in "ab")

# %%
# How labels arise in each data set, and in all of them: there labels are (data set, label).
pets = Transition.identity(["dog", "cat"])
web = Transition.from_meanings({None: list(CENTERS)})
canines = Transition.from_meanings({"canine": ["dog", "wolf"]})
transition = Transition.combine({"pets": pets, "web": web, "canines": canines}, sizes=COUNTS)
labels = make_loose_labels(y, transition, random_state=0)
trees = ExtraTreesClassifier(100, min_samples_leaf=10, random_state=0)
clf = DecoupledClassifier(trees, transition, random_state=0).fit(X, labels)

# %%
# The trees alone give the most probable label; the best guess is its most probable class.
guess = clf.classes_[clf.transition_.reverse(clf.class_prior_).argmax(axis=1)]
alone = guess[clf.predict_label_proba(X_test).argmax(axis=1)]
found = clf.predict(X_test)
shares = f"trees alone {np.mean(alone == y):.1%}, looselabels {np.mean(found == y):.1%}"
print(f"Unseen samples right: {shares}.")
print(f"Wolves found, which no label names: {np.mean(found[y == 'wolf'] == 'wolf'):.1%}.")

figure, axes = plt.subplots(1, 3, figsize=(14, 4.4), layout="constrained")
names = [text.get_text() for text in transition.plot(ax=axes[0]).ax_.get_xticklabels()]
index = transition.label_index(labels)
for s in np.argsort(-np.bincount(index)):  # the few on top of the many
    axes[1].scatter(*X[index == s].T, s=6, label=names[s])
axes[1].legend(markerscale=3)
grid = np.meshgrid(*np.linspace(X.min(axis=0), X.max(axis=0), 150).T)
regions = clf.predict_proba(np.stack(grid, axis=-1).reshape(-1, 2)).argmax(axis=1)
axes[2].pcolormesh(*grid, regions.reshape(grid[0].shape), cmap="Pastel1", vmax=8)
for name, center in CENTERS.items():
    axes[2].text(*center, name, ha="center")
for ax, title in zip(axes, ["p(label | class)", "labels given", "classes learned"], strict=True):
    ax.set_title(title)
plt.show()
