"""How sure the summaries are: draws of how many rows of each class have each label.

Where the transition was told, or is believed with a strength, the label counts are enough. They are
one draw from p(s) = Σ_y p(y) T[y, s]; so, again and again (`draw`):

1. label shares from the Dirichlet distribution of the label counts;
2. a transition: T[y] ~ Dirichlet(strength · T[y]), zeros stay zero;
3. the class shares that these two imply (task 3 on one row);
4. of the n_s rows with label s, how many are of each class: multinomial, p(y|s) ∝ p(y) T[y, s].

x takes no part, which makes the intervals wider than they could be, but free of the errors of a
classifier. Where the noise was estimated, x is all there is: then p(y|s) comes from the Dirichlet
distribution of the label mass that p(class | x, label) adds up to (`draw_from_mass`), and whatever
is wrong with the classifier is wrong with the intervals.
"""

from typing import NamedTuple

import numpy as np

from looselabels._rows import on_simplex
from looselabels.inference import class_proba_from


class Draws(NamedTuple):
    """What `draw` returns, one draw after the other."""

    class_share: np.ndarray  #: (n_draws, n_classes)
    transition: np.ndarray  #: (n_draws, n_classes, n_labels)
    label_mass: np.ndarray  #: (n_draws, n_classes, n_labels) rows of each class and label


def draw(label_counts, transition, strength=np.inf, *, n_draws=400, random_state=0) -> Draws:
    """Draw class shares, transitions and numbers of rows of each class that fit the label counts.

    Parameters
    ----------
    label_counts : integer array of shape (n_labels,)
    transition : array of shape (n_classes, n_labels)
    strength : float, default=inf
        How many samples of each class the transition is worth. inf: it is known.

    Examples
    --------
    300 of 1,000 rows are labeled, as are half of the positive ones: 600 are positive, give or take.

    >>> draws = draw(np.array([300, 700]), np.array([[0.5, 0.5], [0.0, 1.0]]))
    >>> np.quantile(draws.class_share[:, 0], [0.05, 0.5, 0.95]).round(2)
    array([0.55, 0.6 , 0.64])
    """
    rng = np.random.default_rng(random_state)
    counts, transition = np.asarray(label_counts), np.asarray(transition)
    label_share = on_simplex(rng.standard_gamma(np.tile(counts, (n_draws, 1)).astype(float)))
    transitions = np.tile(transition, (n_draws, 1, 1))
    if np.isinf(strength):
        class_share = class_proba_from(label_share, transition)
    else:
        transitions = _rows_from(rng, strength * transitions)
        pairs = zip(label_share, transitions, strict=True)
        class_share = np.stack([class_proba_from(s[None, :], t)[0] for s, t in pairs])
    joint = class_share[:, :, None] * transitions
    # A label that these shares rule out says what the transition alone says of it.
    joint = np.where(joint.any(axis=1, keepdims=True), joint, transitions + np.finfo(float).tiny)
    of_label = np.moveaxis(joint / joint.sum(axis=1, keepdims=True), 1, 2)
    mass = rng.multinomial(np.tile(counts, (n_draws, 1)), of_label)
    return Draws(class_share, transitions, np.moveaxis(mass, 2, 1))


def draw_from_mass(label_mass, transition, is_sure, *, n_draws=400, random_state=0) -> Draws:
    """Draw the same from the label mass that was found, (n_classes, n_labels).

    `is_sure` marks labels whose column of the transition is not in question, such as the missing
    one: its share of each class is kept.
    """
    rng = np.random.default_rng(random_state)
    mass = np.tile(np.asarray(label_mass, float).T, (n_draws, 1, 1))
    counts = np.rint(mass.sum(axis=2)).astype(int)
    of_label = _rows_from(rng, mass)
    drawn = np.moveaxis(rng.multinomial(counts, of_label), 2, 1)
    label_share = on_simplex(rng.standard_gamma(counts.astype(float)))
    class_share = np.einsum("ds,dsy->dy", label_share, of_label)
    transitions = np.tile(transition, (n_draws, 1, 1))
    room = 1 - transitions[:, :, is_sure].sum(axis=2, keepdims=True)
    named = np.moveaxis(of_label * label_share[:, :, None], 2, 1)[:, :, ~is_sure]
    total = named.sum(axis=2, keepdims=True)
    # a class that no row has keeps its row of the transition
    transitions[:, :, ~is_sure] = np.where(
        total > 0, room * (named / np.where(total > 0, total, 1)), transitions[:, :, ~is_sure]
    )
    return Draws(class_share, transitions, drawn)


def interval(draws, level=0.9):
    """Return the lower and the upper end of what lies in the middle of the draws."""
    return np.quantile(draws, [(1 - level) / 2, (1 + level) / 2], axis=0)


def _rows_from(rng, amounts):
    """Draw rows (of the last axis) from Dirichlet distributions; where all is lost, their mean."""
    drawn = rng.standard_gamma(amounts)
    drawn = np.where(drawn.any(axis=-1, keepdims=True), drawn, amounts)
    drawn = np.where(drawn.any(axis=-1, keepdims=True), drawn, 1.0)
    return drawn / drawn.sum(axis=-1, keepdims=True)
