"""
From p(label | x) to p(class | x)
=================================

Half of the positive rows have a label, and no negative row has one. Elkan and Noto divide
p(label | x) by the label rate. If the estimate of p(label | x) is above the label rate, the
quotient is above 1. ``infer`` finds the most likely class probability instead. It equals the
quotient where that is at most 1.
"""

import matplotlib.pyplot as plt
import numpy as np

from looselabels import Transition, infer

x = np.linspace(-3, 3, 200)
class_proba = 1 / (1 + np.exp(-3 * x))
transition = Transition.partial(["positive"], labeled=0.5, negative="negative")

# %%
# p(label | x) = p(class | x) T. A classifier estimates it with errors, which we simulate.
rng = np.random.default_rng(0)
label_proba = class_proba * 0.5
estimated = np.clip(label_proba + np.cumsum(rng.normal(0, 0.008, 200)), 0.001, 0.999)
estimated = np.column_stack([estimated, 1 - estimated])

# %%
# ``infeasible`` marks the rows that no probability of the class can explain.
divided = estimated[:, 0] / 0.5
inferred = infer(estimated, transition).class_proba[:, 0]
infeasible = transition.infeasible(estimated)
print(f"Largest quotient: {divided.max():.2f}. Largest inferred probability: {inferred.max():.2f}.")
print(f"Largest difference elsewhere: {np.abs(divided - inferred)[~infeasible].max():.6f}.")

figure, ax = plt.subplots(figsize=(7, 4), layout="constrained")
ax.plot(x, class_proba, "k--", label="p(positive | x), the truth")
ax.plot(x, estimated[:, 0], color="tab:gray", label="p(label | x), estimated")
ax.plot(x, divided, color="tab:orange", label="divided by the label rate")
ax.plot(x, inferred, color="tab:blue", label="inferred")
ax.fill_between(x, 0, 1.2, where=infeasible, color="tab:orange", alpha=0.1, label="infeasible")
ax.set(xlabel="x", ylabel="probability", ylim=(0, 1.2))
ax.legend(loc="upper left")
plt.show()
