"""
Each row has a set of candidate classes
=======================================

The label of a flower is a set of two species; one of them is right. Each set that occurs is a label
of its own, and its meaning is the list of its members.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression

from looselabels import DecoupledClassifier, Transition

iris = load_iris()
X, y = iris.data, iris.target_names[iris.target]
species = iris.target_names.tolist()

# %%
# Add one wrong species, drawn at random, to the right one.
rng = np.random.default_rng(0)
other = np.array([rng.choice([name for name in species if name != right]) for right in y])
labels = np.array([" or ".join(sorted(pair)) for pair in zip(y, other, strict=True)])
meanings = {label: label.split(" or ") for label in sorted(set(labels))}
transition = Transition.from_meanings(meanings, classes=species)
print(transition)

# %%
# p(class | x) uses the flower only; p(class | x, label) also uses its candidates.
model = LogisticRegression(max_iter=500)
clf = DecoupledClassifier(model, transition, refit=False, random_state=0).fit(X, labels)
chosen = clf.classes_[clf.class_proba_given_label_.argmax(axis=1)]
print(f"Right species: {np.mean(chosen == y):.1%}. By chance: 50.0%.")

figure, axes = plt.subplots(1, 3, figsize=(13, 4), layout="constrained")
transition.plot(ax=axes[0])
axes[0].tick_params(axis="x", labelrotation=20)
for ax, names, title in ((axes[1], labels, "candidates"), (axes[2], chosen, "chosen species")):
    for name in sorted(set(names)):
        ax.scatter(*X[names == name][:, 2:].T, s=14, label=name)
    ax.set(title=title, xlabel="petal length (cm)", ylabel="petal width (cm)")
    ax.legend(fontsize="small")
plt.show()
