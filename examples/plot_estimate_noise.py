"""
Estimate which classes are confused
===================================

Labels of digits are wrong in an uneven way: many 8s are labeled 3, and some 9s are labeled 4. We
only say that there is noise. Its rate and its direction are estimated for each class.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.ensemble import ExtraTreesClassifier

from looselabels import DecoupledClassifier, Transition
from looselabels.datasets import make_loose_labels

X, y = load_digits(return_X_y=True)
true = np.eye(10)
true[8, [8, 3]] = 0.6, 0.4
true[9, [9, 4]] = 0.8, 0.2
truth = Transition.identity(range(10)).with_noise(true)
labels = make_loose_labels(y, truth, random_state=0)

# %%
# Fit any model of the labels. The noise is estimated, because none is specified.
trees = ExtraTreesClassifier(100, min_samples_leaf=2, random_state=0)
clf = DecoupledClassifier(trees, refit=False, random_state=0).fit(X, labels)
estimated = clf.transition_.proba
print(f"8 labeled 3: {estimated[8, 3]:.2f} estimated, 0.40 in truth.")
print(f"9 labeled 4: {estimated[9, 4]:.2f} estimated, 0.20 in truth.")

# %%
# p(class | x, label) corrects most of these labels.
corrected = clf.classes_[clf.class_proba_given_label_.argmax(axis=1)]
before, after = np.sum(labels != y), np.sum(corrected != y)
print(f"Wrong labels: {before} before the correction, {after} after it.")

figure, axes = plt.subplots(1, 2, figsize=(11, 4.6), layout="constrained")
for ax, transition, title in ((axes[0], truth, "truth"), (axes[1], clf.transition_, "estimated")):
    shown = np.where(transition.proba < 0.005, 0, transition.proba)
    transition.with_proba(shown / shown.sum(axis=1, keepdims=True)).plot(ax=ax)
    ax.set_title(f"p(label | class), {title}")
plt.show()
