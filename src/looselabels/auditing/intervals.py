"""How certain the summaries are: draws of how many rows of each class have each label.

If the transition is known, or has a prior of finite strength, the label counts are enough. They are
one draw from p(s) = Σ_y p(y) T[y, s]. So, repeatedly (`draw_from_counts`):

1. draw label shares from the Dirichlet distribution of the label counts;
2. draw a transition: T[y] ~ Dirichlet(strength · T[y]); zeros stay zero;
3. compute the class shares that these two imply (task 3 on one row);
4. draw how many of the n_s rows with label s are of each class: multinomial with
   p(y|s) ∝ p(y) T[y, s].

x is not used. The intervals are wider than they could be, but free of the errors of a classifier.
If label rates or noise were estimated, only x gives information: then p(y|s) is drawn from the
Dirichlet distribution of the label mass, the sum of p(class | x, label) (`draw_from_mass`), and
errors of the classifier are errors of the intervals. The range of noise that explains the labels
about equally well is added to the interval of the count of wrong labels (`add_noise_range`), and
the range of class shares with this noise to the intervals of class shares (`add_room`).

If some rows were reviewed, wrong labels are drawn for the other rows only, and from their label
mass: the most doubtful rows are no longer among them, so their labels do not follow the transition.
"""

from typing import NamedTuple

import numpy as np

from looselabels._rows import on_simplex
from looselabels.inference import class_proba_from


class Draws(NamedTuple):
    """Draws that fit the labels, one after the other."""

    class_share: np.ndarray  #: (n_draws, n_classes)
    transition: np.ndarray  #: (n_draws, n_classes, n_labels)
    label_mass: np.ndarray  #: (n_draws, n_classes, n_labels): rows of each class with each label


def draw(model, label_mass, is_always_right, *, random_state=0) -> Draws:
    """Draw class shares, transitions and label mass for a fitted `LabelModel`.

    Parameters
    ----------
    model : LabelModel
        Its sources decide what is uncertain.
    label_mass : array of shape (n_classes, n_labels)
        How many rows of each class have each label, by p(class | x, label).
    is_always_right : bool array of shape (n_labels,)
        Labels that cannot be wrong, such as the missing one. If label rates were not estimated,
        their columns of the transition are certain.
    """
    sources, proba = model.sources, model.transition.proba
    if "estimated" in (sources.noise, sources.label_rates) or not model.strength:
        is_certain = is_always_right & (sources.label_rates != "estimated") & (model.strength > 0)
        return draw_from_mass(label_mass, proba, is_certain, random_state=random_state)
    counts = np.rint(label_mass.sum(axis=0)).astype(int)
    return draw_from_counts(counts, proba, model.strength, random_state=random_state)


def draw_from_counts(
    label_counts, transition, strength=np.inf, *, n_draws=400, random_state=0
) -> Draws:
    """Draw class shares, transitions and label mass that fit the label counts.

    Parameters
    ----------
    label_counts : integer array of shape (n_labels,)
    transition : array of shape (n_classes, n_labels)
    strength : float, default=inf
        Prior pseudocount per class for the transition. inf: it is known.

    Examples
    --------
    300 of 1,000 rows are labeled, and half of the positive rows are labeled: about 600 rows are
    positive.

    >>> draws = draw_from_counts(np.array([300, 700]), np.array([[0.5, 0.5], [0.0, 1.0]]))
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
        transitions = _draw_rows(rng, strength * transitions)
        pairs = zip(label_share, transitions, strict=True)
        class_share = np.stack([class_proba_from(s[None, :], t)[0] for s, t in pairs])
    joint = class_share[:, :, None] * transitions
    # A label that these shares rule out says what the transition alone says about it: the drawn
    # one, or the given one if all draws of this label underflow.
    for instead in (transitions, transition, np.ones_like(transition)):
        joint = np.where(joint.any(axis=1, keepdims=True), joint, instead)
    of_label = np.moveaxis(joint / joint.sum(axis=1, keepdims=True), 1, 2)
    mass = rng.multinomial(np.tile(counts, (n_draws, 1)), of_label)
    return Draws(class_share, transitions, np.moveaxis(mass, 2, 1))


def draw_from_mass(label_mass, transition, is_certain, *, n_draws=400, random_state=0) -> Draws:
    """Draw the same from label mass, (n_classes, n_labels).

    `is_certain` marks labels whose column of the transition is known, such as the missing label
    where labels are missing at random: these columns are kept.
    """
    rng = np.random.default_rng(random_state)
    mass = np.tile(np.asarray(label_mass, float).T, (n_draws, 1, 1))
    counts = np.rint(mass.sum(axis=2)).astype(int)
    of_label = _draw_rows(rng, mass)
    drawn = np.moveaxis(rng.multinomial(counts, of_label), 2, 1)
    label_share = on_simplex(rng.standard_gamma(counts.astype(float)))
    class_share = np.einsum("ds,dsy->dy", label_share, of_label)
    transitions = np.tile(transition, (n_draws, 1, 1))
    room = 1 - transitions[:, :, is_certain].sum(axis=2, keepdims=True)
    uncertain = np.moveaxis(of_label * label_share[:, :, None], 2, 1)[:, :, ~is_certain]
    total = uncertain.sum(axis=2, keepdims=True)
    # a class without rows keeps its row of the transition
    transitions[:, :, ~is_certain] = np.where(
        total > 0,
        room * (uncertain / np.where(total > 0, total, 1)),
        transitions[:, :, ~is_certain],
    )
    return Draws(class_share, transitions, drawn)


def add_noise_range(interval, estimate, n_labeled, wrong_share) -> tuple[float, float]:
    """Return the interval of a count of wrong labels, with the range of the noise added.

    The draws show what one transition leaves open. `wrong_share` is the range of the share of wrong
    labels over all transitions that are about as likely (`LabelModel.wrong_share_interval`), or
    None if noise was not estimated. Both are independent, so their distances from the estimate add
    up like standard errors. If having no noise is about as likely, the lower end is 0.

    >>> add_noise_range((97.0, 103.0), 100.0, 1000, (0.096, 0.104))
    (95.0, 105.0)
    >>> add_noise_range((97.0, 103.0), 100.0, 1000, (0.0, 0.1))
    (0.0, 103.0)
    """
    low, high = interval
    if wrong_share is None:
        return float(low), float(high)
    least, most = (share * n_labeled for share in wrong_share)
    room = max(estimate - least, 0), max(most - estimate, 0)
    low, high = add_room(interval, estimate, room)
    return float(max(low, 0)), float(min(high, n_labeled))


def add_room(interval, estimate, room) -> tuple:
    """Return intervals with an independent uncertainty of so much below and above the estimate.

    >>> low, high = add_room((97.0, 104.0), 100.0, (4.0, 3.0))
    >>> float(low), float(high)
    (95.0, 105.0)
    """
    (low, high), (below, above) = interval, room
    return estimate - np.hypot(estimate - low, below), estimate + np.hypot(high - estimate, above)


def add_share_range(interval, estimate, n_rows, model, parts) -> tuple[np.ndarray, np.ndarray]:
    """Return intervals of counts of rows, with the range of class shares added.

    Each line of `parts`, (n_parts, n_classes), has a 1 for the classes that are counted together.
    Draws from the label mass take estimated label rates as certain. `class_prior_interval` of the
    model knows how uncertain they are: the intervals reach at least as far from their estimate as
    it reaches from the class prior, in rows.

    >>> from types import SimpleNamespace
    >>> ends = np.array([0.1, 0.7]), np.array([0.3, 0.9])
    >>> model = SimpleNamespace(class_prior=np.array([0.2, 0.8]), class_prior_interval=ends)
    >>> narrow = np.array([95.0, 480.0]), np.array([120.0, 505.0])
    >>> low, high = add_share_range(narrow, np.array([100.0, 500.0]), 100, model, np.eye(2))
    >>> low.round(6).tolist(), high.round(6).tolist()
    ([90.0, 480.0], [120.0, 510.0])
    """
    low, high = interval
    if model.class_prior_interval is None:
        return low, high
    prior, ends = model.class_prior, model.class_prior_interval
    below, above = (n_rows * parts @ (end - prior) for end in ends)
    return np.minimum(low, estimate + below), np.maximum(high, estimate + above)


def _draw_rows(rng, amounts):
    """Draw rows (last axis) from Dirichlet distributions; their mean where all draws underflow."""
    drawn = rng.standard_gamma(amounts)
    drawn = np.where(drawn.any(axis=-1, keepdims=True), drawn, amounts)
    drawn = np.where(drawn.any(axis=-1, keepdims=True), drawn, 1.0)
    return drawn / drawn.sum(axis=-1, keepdims=True)
