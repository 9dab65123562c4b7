"""
From regions of labels to regions of classes
============================================

Four Gaussians are four classes. Some rows of three classes are labeled, with some errors; the
fourth class never is. Most rows are unlabeled, so the most probable label is "unlabeled" almost
everywhere. With the transition, the regions of the four classes appear. This is the simulation of
the paper.
"""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import ListedColormap

from looselabels import DecoupledClassifier, KernelDensityClassifier, Transition
from looselabels.datasets import make_gaussians, make_loose_labels

X, y, _, names = make_gaussians(1500, random_state=0)

# %%
# 15 % of three classes are labeled, and 5 % of these labels are wrong.
transition = Transition.partial(names[:3], labeled=0.15, negative="other").with_noise(0.05)
labels = make_loose_labels(y, transition, random_state=0)
density = KernelDensityClassifier()
clf = DecoupledClassifier(density, transition, refit=False, random_state=0).fit(X, labels)
most_probable = clf.predict_label_proba(X).argmax(axis=1)
unlabeled = np.mean([clf.labels_[k] is None for k in most_probable])
print(f'Rows whose most probable label is "unlabeled": {unlabeled:.1%}')
print(f"Rows whose class is right: {np.mean(clf.predict(X) == y):.1%}")

# %%
# Left: labels, and regions of the most probable label. Right: classes, and their regions.
grid = np.meshgrid(*np.linspace(X.min(axis=0), X.max(axis=0), 120).T)
points = np.stack(grid, axis=-1).reshape(-1, 2)
figure, axes = plt.subplots(1, 2, figsize=(11, 4.6), layout="constrained")
colors = ["tab:red", "tab:green", "tab:blue", "tab:gray"]
for ax, proba, given, order, title in (
    (axes[0], clf.predict_label_proba(points), labels, clf.labels_, "labels"),
    (axes[1], clf.predict_proba(points), y, clf.classes_, "classes"),
):
    regions = proba.argmax(axis=1).reshape(grid[0].shape)
    ax.pcolormesh(*grid, regions, cmap=ListedColormap(colors), vmin=0, vmax=3, alpha=0.25)
    for k in reversed(range(len(order))):
        rows = np.array([name == order[k] for name in given])
        shown = "unlabeled" if order[k] is None else order[k]
        ax.scatter(*X[rows].T, s=8, color=colors[k], label=shown)
    ax.set_title(title)
    ax.legend(markerscale=2)
plt.show()
