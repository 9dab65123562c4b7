"""
Describe how labels arise: seven transitions
============================================

A transition holds p(label | class). One line of code describes each kind of labels in figure 1 of
the paper. Rows of a heat map are classes, columns are labels, and each row sums to 1.
"""

import matplotlib.pyplot as plt

from looselabels import Transition

# %%
# ``partial`` is for classes of which only some rows are labeled. A class that is never labeled is
# ``negative``: its rows are among the unlabeled ones.
meanings = {"s1": "dog", "s2": "cat", "s3": {"-": 0.8, "dog": 0.1, "cat": 0.1}, "s4": ["-", "dog"]}
rates = {"a": 0.1, "b": 0.2, "c": 0.3}
designs = {
    "(a) supervised": Transition.identity(["+", "-"]),
    "(b) positive-unlabeled": Transition.partial(["+"], labeled=0.1, negative="-"),
    "(c) semi-supervised": Transition.partial(["a", "b"], labeled=0.1),
    "(d) with a negative class": Transition.partial(["a", "b"], labeled=0.1, negative="-"),
    "(e) several rates": Transition.partial(list(rates), labeled=rates, negative="-"),
    "(f) noisy labels": Transition.partial(["a", "b"], labeled=0.5, negative="-").with_noise(0.1),
    "(g) merged data sets": Transition.from_meanings(meanings, classes=["-", "dog", "cat"]),
}

# %%
# The rank of a transition should be the number of classes. Otherwise labels do not determine the
# classes.
for name, transition in designs.items():
    print(f"{name}: rank {transition.rank}, classes {len(transition.classes)}")

figure, axes = plt.subplots(2, 4, figsize=(12, 5.2), layout="constrained")
for ax, (name, transition) in zip(axes.flat, designs.items(), strict=False):
    transition.plot(ax=ax)
    ax.set_title(name)
axes.flat[-1].axis("off")
plt.show()
