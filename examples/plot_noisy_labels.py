"""
Repair labels that are wrong three times in ten
===============================================

Three in ten digits carry the label of the next digit: a 3 reads 4, a 9 reads 0. Told how the labels
go wrong, the most probable class given the image *and* its label repairs most of them.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from looselabels import DecoupledClassifier, Transition
from looselabels.datasets import make_loose_labels

digits = load_digits()
X, y = digits.data, digits.target

# %%
# How labels arise: with probability 0.3 a digit passes for the next one.
passes_for = 0.7 * np.eye(10) + 0.3 * np.roll(np.eye(10), 1, axis=1)
transition = Transition.identity(range(10)).with_noise(passes_for)
labels = make_loose_labels(y, transition, random_state=0)
clf = DecoupledClassifier(transition=transition, random_state=0).fit(X, labels)

# %%
# The forest alone knows the image, by trees that did not see it. p(class | x, label) also uses the
# label: a sample labeled 4 is a 4 or a 3, and nothing else.
alone = clf.labels_[clf.label_proba_.argmax(axis=1)]
repaired = clf.classes_[clf.class_proba_given_label_.argmax(axis=1)]
right = {"labels as given": labels, "forest alone": alone, "p(class | x, label)": repaired}
right = {way: np.mean(guess == y) for way, guess in right.items()}
print("Right: " + ", ".join(f"{way} {share:.1%}" for way, share in right.items()) + ".")
changed = repaired != labels
good = np.mean(repaired[changed] == y[changed])
print(f"Labels changed: {changed.sum()}, of which now right: {good:.1%}.")

# %%
# Left: the transition. Right: the changed labels that are most sure to be wrong.
figure = plt.figure(figsize=(12, 5), layout="constrained")
left, right_half = figure.subfigures(1, 2)
transition.plot(ax=left.subplots())
left.suptitle("the transition, p(label | class)")
p_of_label = clf.class_proba_given_label_[np.arange(len(y)), labels.astype(int)]
for ax, row in zip(right_half.subplots(3, 5).flat, np.argsort(p_of_label), strict=False):
    ax.imshow(digits.images[row], cmap="gray_r")
    ax.set_title(f"{labels[row]} → {repaired[row]}", color="g" if repaired[row] == y[row] else "r")
    ax.axis("off")
right_half.suptitle("label → class (green: right)")
plt.show()
