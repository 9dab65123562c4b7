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
from looselabels.inference import class_proba_from, label_mass

LEAST_TOLD = 0.5  # share of the rows of a label that count as told, where x tells less


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


def draw_from_mass(
    label_mass, transition, is_sure, share_open=1.0, *, n_draws=400, random_state=0
) -> Draws:
    """Draw the same from the label mass that was found, (n_classes, n_labels).

    Of the n_s rows with label s, a share f_s is open (`share_open`): x does not tell their class.
    p(y|s) is known as well as the others make it, Dirichlet((1 − f_s) · mass); the classes of the
    open rows are drawn from it, and those of the others stay.

    `is_sure` marks labels whose column of the transition is not in question, such as the missing
    one: its share of each class is kept.
    """
    rng = np.random.default_rng(random_state)
    mass = np.asarray(label_mass, float).T
    counts = np.rint(mass.sum(axis=1)).astype(int)
    n_open = np.rint(share_open * counts).astype(int)
    told = np.maximum(counts - n_open, LEAST_TOLD * counts) / np.maximum(counts, 1)
    of_label = _rows_from(rng, np.tile(told[:, None] * mass, (n_draws, 1, 1)))
    stay = (counts - n_open)[:, None] * np.divide(
        mass,
        mass.sum(axis=1, keepdims=True),
        out=np.zeros_like(mass),
        where=mass.sum(axis=1, keepdims=True) > 0,
    )
    drawn = np.moveaxis(rng.multinomial(n_open, of_label) + stay, 2, 1)
    label_share = on_simplex(rng.standard_gamma(np.tile(counts.astype(float), (n_draws, 1))))
    class_share = np.einsum("ds,dsy->dy", label_share, of_label)
    transitions = np.tile(transition, (n_draws, 1, 1))
    room = 1 - transitions[:, :, is_sure].sum(axis=2, keepdims=True)
    named = np.moveaxis(of_label * label_share[:, :, None], 2, 1)[:, :, ~is_sure]
    total = named.sum(axis=2, keepdims=True)
    # a class that no row has keeps its row
    transitions[:, :, ~is_sure] = np.where(
        total > 0, named * (room / np.where(total > 0, total, 1)), transitions[:, :, ~is_sure]
    )
    return Draws(class_share, transitions, drawn)


def open_share(class_proba_given_label, label_index, n_labels) -> np.ndarray:
    """Return, for each label, the share of its rows whose class x leaves open.

    Rows that are all alike say nothing beyond their mean m: Σ_y m_y (1 − m_y), what one row then
    adds to the variance of the label mass, is the most. What they do add, beside it, is the share:

        f_s = mean_i Σ_y W_iy (1 − W_iy)  /  Σ_y m_y (1 − m_y).

    >>> open_share(np.array([[1.0, 0], [0, 1], [0.5, 0.5], [0.5, 0.5]]), np.array([0, 0, 1, 1]), 2)
    array([0., 1.])
    """
    count = np.maximum(np.bincount(label_index, minlength=n_labels), 1)
    squares = np.bincount(label_index, np.sum(class_proba_given_label**2, axis=1), n_labels)
    mean = label_mass(class_proba_given_label, label_index, n_labels) / count
    most = 1 - np.sum(mean**2, axis=0)
    return np.clip(
        np.divide(1 - squares / count, most, out=np.ones(n_labels), where=most > 0), 0, 1
    )


def interval(draws, level=0.9):
    """Return the lower and the upper end of what lies in the middle of the draws."""
    return np.quantile(draws, [(1 - level) / 2, (1 + level) / 2], axis=0)


def _rows_from(rng, amounts):
    """Draw rows (of the last axis) from Dirichlet distributions; where all is lost, their mean."""
    drawn = rng.standard_gamma(amounts)
    drawn = np.where(drawn.any(axis=-1, keepdims=True), drawn, amounts)
    drawn = np.where(drawn.any(axis=-1, keepdims=True), drawn, 1.0)
    return drawn / drawn.sum(axis=-1, keepdims=True)
