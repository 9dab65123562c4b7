"""
Classify seven digits with few labels and a negative class
==========================================================

Only 20% of the digits 0 to 6 are labeled. All other samples, including all digits 7 to 9, are
unlabeled. A forest trained on these labels predicts "unlabeled" for almost every sample. With the
transition, its probabilities of labels become probabilities of classes.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.metrics import ConfusionMatrixDisplay, f1_score
from sklearn.model_selection import train_test_split

from looselabels import BalancedForestClassifier, DecoupledClassifier, Transition
from looselabels.datasets import make_loose_labels

X, digit = load_digits(return_X_y=True)
y = np.where(digit < 7, digit.astype(str), "other")
X_train, X_test, y_train, y_test = train_test_split(X, y, stratify=y, random_state=0)

# %%
# Specify how labels arise: 20% of each positive class is labeled; the class "other" never is.
transition = Transition.partial(list("0123456"), labeled=0.2, negative="other")
labels = make_loose_labels(y_train, transition, random_state=0)
forest = BalancedForestClassifier(random_state=0)
clf = DecoupledClassifier(forest, transition, refit=1, random_state=0).fit(X_train, labels)

# %%
# The forest alone predicts the most probable label. As a baseline, "unlabeled" counts as "other".
most_probable = clf.predict_label_proba(X_test).argmax(axis=1)
alone = np.array([label or "other" for label in clf.labels_[most_probable]])
decoupled = clf.predict(X_test)

unlabeled = np.mean([label is None for label in labels])
print(f"{unlabeled:.0%} of the training samples are unlabeled.")
f1 = {"forest alone": f1_score(y_test, alone, average="macro", zero_division=0)}
f1["looselabels"] = f1_score(y_test, decoupled, average="macro")
print("Macro-F1 on test samples: " + ", ".join(f"{name} {f1[name]:.2f}" for name in f1) + ".")

# %%
# Left: the transition. Right: confusion matrices on the test samples.
figure, axes = plt.subplots(1, 3, figsize=(14, 4.6), layout="constrained")
transition.plot(ax=axes[0])
axes[0].set_title("transition, p(label | class)")
for ax, name, predicted in zip(axes[1:], f1, (alone, decoupled), strict=True):
    ConfusionMatrixDisplay.from_predictions(
        y_test, predicted, labels=clf.classes_, ax=ax, cmap="Blues", colorbar=False
    )
    ax.set(title=f"{name}: macro-F1 {f1[name]:.2f}", xlabel="predicted class", ylabel="class")
plt.show()
