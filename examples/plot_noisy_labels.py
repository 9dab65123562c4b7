"""
Correct wrong labels if the noise is known
==========================================

Here 30% of the digits have the label of the next digit: a 3 is labeled 4, a 9 is labeled 0. We
specify this transition. The most probable class given the image *and* its label then corrects
almost all wrong labels.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.ensemble import ExtraTreesClassifier

from looselabels import DecoupledClassifier, Transition
from looselabels.datasets import make_loose_labels

digits = load_digits()
X, y = digits.data, digits.target

# %%
# Specify how labels arise: with probability 0.3, a digit gets the label of the next digit.
confusion = 0.7 * np.eye(10) + 0.3 * np.roll(np.eye(10), 1, axis=1)
transition = Transition.identity(range(10)).with_noise(confusion)
labels = make_loose_labels(y, transition, random_state=0)
trees = ExtraTreesClassifier(100, min_samples_leaf=3, random_state=0)
clf = DecoupledClassifier(trees, transition, refit=False, random_state=0).fit(X, labels)

# %%
# The trees alone use only the image; each image is predicted by trees that did not see it.
# p(class | x, label) also uses the label: a sample labeled 4 is either a 4 or a 3.
alone = clf.labels_[clf.label_proba_.argmax(axis=1)]
corrected = clf.classes_[clf.class_proba_given_label_.argmax(axis=1)]
guesses = {"labels": labels, "trees alone": alone, "p(class | x, label)": corrected}
accuracy = ", ".join(f"{name} {np.mean(guess == y):.1%}" for name, guess in guesses.items())
print(f"Accuracy: {accuracy}.")
changed = corrected != labels
share = np.mean(corrected[changed] == y[changed])
print(f"{changed.sum()} labels were changed. Correct after the change: {share:.1%}.")

# %%
# Left: the transition. Right: the labels that are most likely wrong.
figure = plt.figure(figsize=(12, 5), layout="constrained")
left, right = figure.subfigures(1, 2)
transition.plot(ax=left.subplots())
left.suptitle("transition, p(label | class)")
p_of_label = clf.class_proba_given_label_[np.arange(len(y)), labels.astype(int)]
for ax, row in zip(right.subplots(3, 5).flat, np.argsort(p_of_label), strict=False):
    ax.imshow(digits.images[row], cmap="gray_r")
    ax.set_title(
        f"{labels[row]} → {corrected[row]}", color="g" if corrected[row] == y[row] else "r"
    )
    ax.axis("off")
right.suptitle("label → class (green: correct)")
plt.show()
