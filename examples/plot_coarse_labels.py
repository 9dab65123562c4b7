"""
Labels that name a group of classes
===================================

Few digits have a label that names them. Most labels only say whether the digit is even or odd.
These coarse labels still help to classify all ten digits, if we say what they mean.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from looselabels import BalancedForestClassifier, DecoupledClassifier, Transition
from looselabels.datasets import make_loose_labels

X, y = load_digits(return_X_y=True)
X, X_test, y, y_test = train_test_split(X, y.astype(str), test_size=0.5, random_state=0)
names = [str(digit) for digit in range(10)]

# %%
# Specify the meaning of each label, and how often it occurs: 90 % of all labels are coarse.
meanings = {name: name for name in names} | {"even": names[::2], "odd": names[1::2]}
counts = dict.fromkeys(names, 1) | {"even": 45, "odd": 45}
transition = Transition.from_meanings(meanings, counts, classes=names)
labels = make_loose_labels(y, transition, random_state=0)

# %%
# Compare with a model that learns from the rows with a fine label only.
model = BalancedForestClassifier(random_state=0)
clf = DecoupledClassifier(model, transition, refit=1, random_state=0).fit(X, labels)
is_fine = np.isin(labels, names)
alone = model.fit(X[is_fine], labels[is_fine])
scores = {
    "fine labels only": np.mean(alone.predict(X_test) == y_test),
    "all labels": np.mean(clf.predict(X_test) == y_test),
}
print(f"Accuracy: {', '.join(f'{name} {score:.1%}' for name, score in scores.items())}.")

figure = plt.figure(figsize=(11, 4), layout="constrained")
left, right = figure.subplots(1, 2, width_ratios=[3, 1])
transition.plot(ax=left)
left.set_title("p(label | class)")
bars = right.bar(list(scores), list(scores.values()), color=["tab:gray", "tab:blue"])
right.bar_label(bars, fmt="{:.1%}")
right.set(title="accuracy on new digits", ylim=(0, 1))
plt.show()
