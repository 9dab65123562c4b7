"""The weighted distribution: probabilities when some labels count more than others.

A classifier that is trained with a weight w_s on each label s does not estimate p(s|x), but the
probability in a distribution where label s is w_s times as frequent. Everything follows:

    p_w(s|x) ∝ w_s p(s|x),    T_w[y, s] ∝ w_s T[y, s],    p_w(y|x) ∝ p(y|x) Σ_s w_s T[y, s].

p(class | x, label) is the same in both distributions. These functions convert between the weighted
distribution and the real one, and no other module does. Weights of None leave everything unchanged.
"""

import numpy as np

from looselabels._rows import on_simplex


def weighted_transition(transition, label_weights) -> np.ndarray:
    """Return T_w, the transition of the weighted distribution.

    >>> weighted_transition(np.array([[0.1, 0.9], [0.0, 1.0]]), np.array([9.0, 1.0]))
    array([[0.5, 0.5],
           [0. , 1. ]])
    """
    if label_weights is None:
        return transition
    mass = transition * label_weights
    total = mass.sum(axis=1, keepdims=True)
    if not total.all():
        raise ValueError(
            f"label_weights are 0 for every label of class {int(np.argmin(total))}: the class "
            "could not be learned. Give one of its labels a positive weight."
        )
    return mass / total


def real_transition(fitted, design, label_weights) -> np.ndarray:
    """Return the real transition for one that was fitted in the weighted distribution.

    A label of weight zero does not occur in the weighted distribution: its column is taken from
    `design`, which is a real transition.
    """
    if label_weights is None:
        return fitted
    known = label_weights > 0
    mass = np.where(known, fitted / np.where(known, label_weights, 1.0), 0.0)
    room = 1 - design[:, ~known].sum(axis=1, keepdims=True)
    return np.where(known, mass * (room / mass.sum(axis=1, keepdims=True)), design)


def class_weights(transition, label_weights) -> np.ndarray | None:
    """Return how many times as frequent each class is in the weighted distribution: T w.

    `transition` is the real one. Multiplying class_proba by these weights and normalizing its rows
    leads from the real distribution to the weighted one, dividing leads back.

    >>> class_weights(np.array([[0.1, 0.9], [0.0, 1.0]]), np.array([9.0, 1.0]))
    array([1.8, 1. ])
    """
    return None if label_weights is None else transition @ label_weights


def real_label_proba(label_proba, label_weights, labels) -> np.ndarray:
    """Return the real p(label | x, label is one of `labels`), one column for each of these.

    `label_proba` is of the weighted distribution, which knows nothing of labels of weight zero:
    these must not be among `labels`.

    >>> real_label_proba(np.array([[0.9, 0.1]]), np.array([9.0, 1.0]), [0, 1])
    array([[0.5, 0.5]])
    """
    chosen = label_proba[:, labels]
    return on_simplex(chosen if label_weights is None else chosen / label_weights[labels])


def multiply_weights(weight, other) -> np.ndarray | None:
    """Return the product of two weights; None stands for weights that are all one."""
    if weight is None or other is None:
        return other if weight is None else weight
    return weight * other


def reweight(label_proba, old_weights, new_weights) -> np.ndarray:
    """Return p(label | x) of one weighted distribution in another one, rows not normalized."""
    return label_proba * (new_weights / old_weights)
