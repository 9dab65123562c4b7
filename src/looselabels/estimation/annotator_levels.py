"""How annotators differ: levels of chance, and how much the annotators of a level differ in detail.

A transition has many numbers, and most annotators have few answers. So an annotator first of all
has a *level*: the share c of its answers that are chance. The annotators of a group (they have the
same label set, and labels mean the same) have one transition B in common, that of a competent
annotator, and at level c
T_a[y] ~ Dirichlet(strength · ((1 − c) B[y] + c · equal)). If all answers are chance, T_a[y] is the
same for all classes y: such an annotator may prefer a label, but says nothing. Level shares,
strengths and B are those under which the counts of answers are most likely; B is shrunk to what the
labels mean (the design). An annotator with three answers has nearly the pooled transition, one with
many has its own. If its transition is specified with a strength, there are no levels, and
T_a[y] ~ Dirichlet(strength · specified[y]).

Counts come in *slots*, one per annotator and label that it used: an annotator with three answers
takes three slots, no matter how many labels there are.
"""

from typing import Any, NamedTuple

import numpy as np

CHANCE = np.array([0.0, 0.1, 0.25, 0.45, 0.7, 1.0])  # shares of answers that are chance, by level
STRENGTHS = (5.0, 10_000.0)  # answers per class that the mean of a level can be worth
FIRST_STRENGTH = 10.0
DESIGN_STRENGTH = 30.0  # answers per class that the design is worth, for the common transition
NO_SHARE = 1e-300  # of a level that does not occur: its logarithm is finite
DESIGN_NOISE = 0.03  # wrong answers of a competent annotator, before its answers are seen


class Layout(NamedTuple):
    """Whose labels are counted where; all that stays the same during the inference."""

    annotator: np.ndarray  #: of each slot
    label: np.ndarray  #: of each slot
    group: np.ndarray  #: of each annotator
    design: np.ndarray  #: (n_groups, n_classes, n_labels): p(label | class) if none is wrong
    right: np.ndarray  #: of bool, the same shape: which label is right for which class
    strength: np.ndarray  #: (n_groups,): pseudocounts per class of a specified design, else NaN
    by_annotator: Any  #: sparse matrix that sums the slots of each annotator
    by_cell: Any  #: sparse matrix that sums the slots of each group and label

    @classmethod
    def of(cls, annotator, label, group, design, right=None, strength=np.nan) -> "Layout":
        """Return the layout of these slots; by default what a design contains is right."""
        n_groups, _, n_labels = design.shape
        cell = group[annotator] * n_labels + label
        sums = _indicator(annotator, len(group)), _indicator(cell, n_groups * n_labels)
        right = design > 0 if right is None else right
        strength = np.broadcast_to(np.asarray(strength, float), n_groups)
        return cls(annotator, label, group, design, right, strength, *sums)

    def sum_cells(self, values) -> np.ndarray:
        """Return sums over the annotators of each group, as (n_groups, n_classes, n_labels)."""
        n_groups, n_classes, n_labels = self.design.shape
        return (self.by_cell @ values).reshape(n_groups, n_labels, n_classes).swapaxes(1, 2)

    def of_slots(self, cells) -> np.ndarray:
        """Return the numbers of (n_groups, n_classes, n_labels) as (n_slots, n_classes)."""
        return cells.swapaxes(1, 2)[self.group[self.annotator], self.label]


class Prior(NamedTuple):
    """What is expected of the annotators of each group before their own answers."""

    common: np.ndarray  #: (n_groups, n_classes, n_labels): transition of a competent annotator
    strength: np.ndarray  #: (n_levels, n_groups)
    shares: np.ndarray  #: (n_levels, n_groups): how frequent the levels are

    def means(self, design) -> np.ndarray:
        """Return the mean transition of each level, (n_levels, n_groups, n_classes, n_labels)."""
        chance = CHANCE[:, None, None, None]
        return (1 - chance) * self.common + chance * equal_labels(design)

    def pseudocounts(self, design) -> np.ndarray:
        """Return strength · mean of each level."""
        return self.strength[:, :, None, None] * self.means(design)


class Posterior(NamedTuple):
    """What is known about the annotators, given the counts of their answers."""

    levels: np.ndarray  #: (n_levels, n_annotators): p(level | answers)
    mean: np.ndarray  #: (n_slots, n_classes): E[T_a[y, s]]
    mean_log: np.ndarray  #: (n_slots, n_classes): E[log T_a[y, s]]
    size: np.ndarray  #: (n_annotators, n_classes): answers that row y of T_a is known by
    log_evidence: np.ndarray  #: (n_annotators,): log probability of the counts


def equal_labels(design) -> np.ndarray:
    """Return transitions in which every label that a design uses is equally likely.

    >>> equal_labels(np.array([[[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]]))
    array([[[0.5, 0.5, 0. ],
            [0.5, 0.5, 0. ]]])
    """
    used = np.broadcast_to(design.any(axis=1, keepdims=True), design.shape)
    return used / used.sum(axis=2, keepdims=True)


def with_noise(design, rate) -> np.ndarray:
    """Return designs in which a share `rate` of the labels is chance."""
    return (1 - rate) * design + rate * equal_labels(design)


def first_prior(layout: Layout) -> Prior:
    """Return the prior before any answer is seen."""
    n_levels, n_groups = len(CHANCE), len(layout.design)
    strength = np.full((n_levels, n_groups), FIRST_STRENGTH)
    shares = np.full((n_levels, n_groups), 1 / n_levels)
    prior = Prior(with_noise(layout.design, DESIGN_NOISE), strength, shares)
    return _keep_specified(layout, prior)


def _keep_specified(layout: Layout, prior: Prior) -> Prior:
    """Return the prior in which groups whose strength is specified have exactly their design."""
    is_specified = ~np.isnan(layout.strength)
    only_first = np.where(np.arange(len(CHANCE)) == 0, 1, NO_SHARE)[:, None]
    return Prior(
        np.where(is_specified[:, None, None], layout.design, prior.common),
        np.where(is_specified, layout.strength, prior.strength),
        np.where(is_specified, only_first, prior.shares),
    )


def counts_at(level, counts) -> np.ndarray:
    """Return the counts that row y of a transition is learned from, (..., n_classes).

    At the last level all answers are chance: the rows are equal, so that each has all counts.
    """
    if CHANCE[level] < 1:
        return counts
    return np.broadcast_to(counts.sum(axis=-1, keepdims=True), counts.shape)


def log_density(prior: Prior, design) -> float:
    """Return the log density of the prior's own numbers, up to a constant."""
    expected = DESIGN_STRENGTH * with_noise(design, DESIGN_NOISE)
    of_common = expected * np.log(np.where(expected > 0, prior.common, 1))
    return float(of_common.sum() + np.log(prior.shares).sum())


def log_evidence(layout: Layout, prior: Prior, counts) -> np.ndarray:
    """Return log p(counts, level) of each level and annotator, transitions integrated out."""
    from scipy.special import gammaln

    found = np.log(prior.shares)[:, layout.group]
    for level, cells in enumerate(prior.pseudocounts(layout.design)):
        mine = counts_at(level, counts)
        totals = layout.by_annotator @ mine
        of_slots = gammaln(layout.of_slots(cells) + mine)
        of_slots -= layout.of_slots(gammaln(np.where(cells > 0, cells, 1)))
        strength = prior.strength[level][layout.group][:, None]
        of_totals = gammaln(strength) - gammaln(strength + totals)
        of_rows = layout.by_annotator @ of_slots + of_totals
        found[level] += of_rows.sum(axis=1) if CHANCE[level] < 1 else of_rows[:, 0]
    return found


def posterior(layout: Layout, prior: Prior, counts) -> Posterior:
    """Return what the counts say about levels and transitions."""
    from scipy.special import digamma

    levels, evidence = normalize_logs(log_evidence(layout, prior, counts))
    mean, mean_log = np.zeros_like(counts), np.zeros_like(counts)
    inverse_size = np.zeros((len(layout.group), counts.shape[1]))
    for level, cells in enumerate(prior.pseudocounts(layout.design)):
        mine = counts_at(level, counts)
        sizes = prior.strength[level][layout.group][:, None] + layout.by_annotator @ mine
        inverse_size += levels[level][:, None] / sizes
        filled = layout.of_slots(cells) + mine
        weight = levels[level][layout.annotator][:, None]
        mean += weight * filled / sizes[layout.annotator]
        mean_log += weight * (digamma(filled) - digamma(sizes)[layout.annotator])
    return Posterior(levels, mean, mean_log, 1 / inverse_size, evidence)


def raise_evidence(layout: Layout, prior: Prior, counts) -> Prior:
    """Return a prior under which the counts are more likely: one fixed-point step.

    Γ(n + x) / Γ(x) is at least proportional to x to the power x₀ (ψ(n + x₀) − ψ(x₀)), and equal at
    x₀. So this power counts how often a label was drawn from the mean instead of repeated; means
    and strengths follow in closed form, and the evidence cannot decrease.
    """
    from scipy.special import digamma

    levels, _ = normalize_logs(log_evidence(layout, prior, counts))
    strength = prior.strength.copy()
    common = DESIGN_STRENGTH * with_noise(layout.design, DESIGN_NOISE)
    for level, cells in enumerate(prior.pseudocounts(layout.design)):
        alpha, mine = layout.of_slots(cells), counts_at(level, counts)
        drawn = alpha * (digamma(alpha + mine) - digamma(alpha))
        drawn = layout.sum_cells(drawn * levels[level][layout.annotator][:, None])
        first = strength[level][layout.group][:, None]
        cost = (digamma(first + layout.by_annotator @ mine) - digamma(first)).sum(axis=1) * levels[
            level
        ]
        cost = np.bincount(layout.group, cost, minlength=len(layout.design))
        moved = drawn.sum(axis=(1, 2)) / np.maximum(cost, 1e-300)
        mean = cells / prior.strength[level][:, None, None]
        of_common = (1 - CHANCE[level]) * prior.common / np.where(mean > 0, mean, 1)
        common += drawn * of_common
        strength[level] = np.where(cost > 1e-9, np.clip(moved, *STRENGTHS), strength[level])
    common /= common.sum(axis=2, keepdims=True)
    return _keep_specified(layout, Prior(common, strength, _level_shares(layout, levels)))


def normalize_logs(logs) -> tuple[np.ndarray, np.ndarray]:
    """Return probabilities ∝ exp(logs), which sum to 1 along the first axis, and the log sums."""
    top = logs.max(axis=0)
    proba = np.exp(logs - top)
    total = proba.sum(axis=0)
    return proba / total, top + np.log(total)


def _level_shares(layout: Layout, levels) -> np.ndarray:
    """Return how frequent the levels of each group are; each has one annotator to begin with."""
    shares = np.stack([np.bincount(layout.group, row, len(layout.design)) for row in levels]) + 1
    return shares / shares.sum(axis=0)


def _indicator(index, n):
    """Return the sparse matrix that sums the items with the same index, shape (n, n_items)."""
    from scipy.sparse import csr_array

    n_items = len(index)
    return csr_array((np.ones(n_items), (index, np.arange(n_items))), shape=(n, n_items))
