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

from looselabels.estimation.log_gamma import BLOCK, log_gamma_and_slope

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
    by_cell: Any  #: sparse matrix that sums the slots of each cell
    cell: np.ndarray  #: of each slot
    group_of_cell: np.ndarray  #: (n_cells,); a cell is a label that someone of a group used
    label_of_cell: np.ndarray  #: (n_cells,)
    chance: np.ndarray  #: (n_cells,): p(label) if all labels of the group are equally likely

    @classmethod
    def of(cls, annotator, label, group, design, right=None, strength=np.nan) -> "Layout":
        """Return the layout of these slots; by default what a design contains is right."""
        n_groups, _, n_labels = design.shape
        cells, cell = np.unique(group[annotator] * n_labels + label, return_inverse=True)
        sums = _indicator(annotator, len(group)), _indicator(cell, len(cells))
        right = design > 0 if right is None else right
        strength = np.broadcast_to(np.asarray(strength, float), n_groups)
        of_cell = np.divmod(cells, n_labels)
        chance = equal_labels(design)[:, 0][of_cell]
        slots = annotator, label, group
        return cls(*slots, design, right, strength, *sums, cell, *of_cell, chance)

    def of_cells(self, values) -> np.ndarray:
        """Return the numbers of (n_groups, n_classes, n_labels) as (n_cells, n_classes)."""
        return values[self.group_of_cell, :, self.label_of_cell]

    def sum_cells(self, values) -> np.ndarray:
        """Return sums over the annotators of each group, as (n_groups, n_classes, n_labels)."""
        sums = np.zeros(self.design.shape)
        sums[self.group_of_cell, :, self.label_of_cell] = self.by_cell @ values
        return sums

    def of_slots(self, values) -> np.ndarray:
        """Return the numbers of (n_groups, n_classes, n_labels) as (n_slots, n_classes)."""
        return self.of_cells(values).take(self.cell, axis=0)

    def sum_groups(self, values, group) -> np.ndarray:
        """Return the sums of (n_levels, n_items) over each group, (n_levels, n_groups)."""
        shape = len(values), len(self.design)
        place = np.arange(shape[0])[:, None] * shape[1] + group
        return np.bincount(place.ravel(), values.ravel(), shape[0] * shape[1]).reshape(shape)


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

    def of_cells(self, layout) -> tuple[np.ndarray, np.ndarray]:
        """Return the common transition (n_cells, n_classes), and the pseudocounts of all levels.

        Most groups use few of the labels: all others are left out.
        """
        common, chance = layout.of_cells(self.common), CHANCE[:, None, None]
        means = (1 - chance) * common + chance * layout.chance[:, None]
        return common, self.strength[:, layout.group_of_cell, None] * means


class Evidence(NamedTuple):
    """How likely the counts are at each level, and the slopes of log Γ that tell how to raise it.

    If all answers are chance, which is the last level, one class stands for all of them.
    """

    logs: np.ndarray  #: (n_levels, n_annotators): log p(counts, level), transitions integrated out
    of_slots: np.ndarray  #: (n_levels − 1, n_slots, n_classes): ψ(pseudocount + count)
    of_chance: np.ndarray  #: (n_slots,): the same of the last level
    of_cells: np.ndarray  #: (n_levels, n_cells, n_classes): ψ(pseudocount)
    of_sizes: np.ndarray  #: (n_levels, n_annotators, n_classes): ψ(strength + sum of counts)
    of_strength: np.ndarray  #: (n_levels, n_groups): ψ(strength)


class Posterior(NamedTuple):
    """What is known about the annotators, given the counts of their answers."""

    levels: np.ndarray  #: (n_levels, n_annotators): p(level | answers)
    mean_log: np.ndarray  #: (n_slots, n_classes): E[log T_a[y, s]]
    log_evidence: np.ndarray  #: (n_annotators,): log probability of the counts
    drawn: np.ndarray  #: (n_levels, n_cells, n_classes): how ψ rises with the counts
    cost: np.ndarray  #: (n_levels, n_groups): how ψ of the strengths rises with them


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

    At the last level all answers are chance: the rows are equal, so that one with all counts stands
    for all of them, (..., 1).
    """
    return counts if CHANCE[level] < 1 else counts.sum(axis=-1, keepdims=True)


def log_density(prior: Prior, design) -> float:
    """Return the log density of the prior's own numbers, up to a constant."""
    expected = DESIGN_STRENGTH * with_noise(design, DESIGN_NOISE)
    of_common = expected * np.log(np.where(expected > 0, prior.common, 1))
    return float(of_common.sum() + np.log(prior.shares).sum())


def evaluate(layout: Layout, prior: Prior, counts) -> Evidence:
    """Return how likely the counts are under a prior, at each level."""
    _, pseudocounts = prior.of_cells(layout)
    of_cells, cell_slopes = log_gamma_and_slope(pseudocounts)
    of_strength, strength_slopes = log_gamma_and_slope(prior.strength)
    of_sizes, size_slopes = _evaluate_sizes(layout, prior, layout.by_annotator @ counts)
    of_answers, slot_slopes, of_chance = _evaluate_slots(layout, pseudocounts, counts)
    without = np.vstack([_sum_classes(of_cells[:-1]), of_cells[-1:, :, 0]]).T
    of_answers -= without.take(layout.cell, axis=0)
    n_rows = np.where(CHANCE < 1, counts.shape[1], 1)[:, None]
    logs = np.log(prior.shares)[:, layout.group] + (layout.by_annotator @ of_answers).T
    logs += n_rows * of_strength[:, layout.group] - of_sizes
    return Evidence(logs, slot_slopes, of_chance, cell_slopes, size_slopes, strength_slopes)


def _evaluate_slots(layout: Layout, pseudocounts, counts):
    """Return log Γ(pseudocount + count), summed over classes, and ψ of the same.

    The shapes are (n_slots, n_levels), and those of `Evidence`. All levels are evaluated together,
    because with few annotators calls of NumPy take longer than the numbers; of many, a block at a
    time, because new memory for large arrays takes as long as the numbers.
    """
    n_slots, n_classes = counts.shape
    n_own = len(CHANCE) - 1
    logs, slopes = np.empty((n_slots, n_own + 1)), np.empty((n_own, n_slots, n_classes))
    step = max(1, BLOCK // (n_own * n_classes))
    for start in range(0, n_slots, step):
        part = slice(start, start + step)
        filled = pseudocounts[:-1].take(layout.cell[part], axis=1)
        filled += counts[part]
        log_gamma, slopes[:, part] = log_gamma_and_slope(filled)
        logs[part, :-1] = _sum_classes(log_gamma).T
    filled = pseudocounts[-1, :, 0].take(layout.cell) + counts.sum(axis=1)
    logs[:, -1], of_chance = log_gamma_and_slope(filled)
    return logs, slopes, of_chance


def _sum_classes(values) -> np.ndarray:
    """Return the sums over the last axis, as a product: NumPy sums many short rows slowly."""
    n_classes = values.shape[-1]
    return (values.reshape(-1, n_classes) @ np.ones(n_classes)).reshape(values.shape[:-1])


def _evaluate_sizes(layout: Layout, prior: Prior, totals):
    """Return log Γ(strength + sum of counts), summed over classes, and ψ of the same.

    At the last level one class stands for all of them.
    """
    sizes = np.repeat(prior.strength[:, layout.group, None], totals.shape[1], axis=2)
    for level, of_level in enumerate(sizes):
        of_level += counts_at(level, totals)
    log_gamma, slopes = log_gamma_and_slope(sizes)
    return np.vstack([_sum_classes(log_gamma[:-1]), log_gamma[-1:, :, 0]]), slopes


def posterior(layout: Layout, prior: Prior, counts) -> Posterior:
    """Return what the counts say about levels and transitions."""
    evidence = evaluate(layout, prior, counts)
    levels, log_evidence = normalize_logs(evidence.logs)
    share = levels.take(layout.annotator, axis=1)
    weighted = np.multiply(evidence.of_slots, share[:-1, :, None], out=evidence.of_slots)
    of_chance = share[-1] * evidence.of_chance
    drawn = -evidence.of_cells * (layout.by_cell @ share.T).T[:, :, None]
    for of_level, slopes in zip(drawn, weighted, strict=False):
        of_level += layout.by_cell @ slopes
    drawn[-1, :, 0] += layout.by_cell @ of_chance
    drawn[-1, :, 1:] = 0  # the first class has the numbers of all classes
    mean_log = weighted.sum(axis=0)
    mean_log += of_chance[:, None]
    mean_log -= (levels[:, :, None] * evidence.of_sizes).sum(axis=0).take(layout.annotator, axis=0)
    return Posterior(levels, mean_log, log_evidence, drawn, _cost(layout, evidence, levels))


def _cost(layout: Layout, evidence: Evidence, levels) -> np.ndarray:
    """Return Σ_a p(level) Σ_y (ψ(strength + sum of counts) − ψ(strength)) of each group."""
    cost = evidence.of_sizes - evidence.of_strength[:, layout.group, None]
    cost = np.vstack([_sum_classes(cost[:-1]), cost[-1:, :, 0]])
    return layout.sum_groups(levels * cost, layout.group)


def mean_transitions(layout: Layout, prior: Prior, counts, levels):
    """Return E[T_a[y, s]] of all slots, and how many answers row y of T_a is known by.

    The shapes are (n_slots, n_classes) and (n_annotators, n_classes).
    """
    mean, inverse_size = np.zeros_like(counts), np.zeros((len(layout.group), counts.shape[1]))
    for level, cells in enumerate(prior.pseudocounts(layout.design)):
        mine = counts_at(level, counts)
        sizes = prior.strength[level][layout.group][:, None] + layout.by_annotator @ mine
        share = levels[level][:, None] / sizes
        inverse_size += share
        mean += share[layout.annotator] * (layout.of_slots(cells) + mine)
    return mean, 1 / inverse_size


def raise_evidence(layout: Layout, prior: Prior, known: Posterior) -> Prior:
    """Return a prior under which the counts of a posterior are more likely: one fixed-point step.

    Γ(n + x) / Γ(x) is at least proportional to x to the power x₀ (ψ(n + x₀) − ψ(x₀)), and equal at
    x₀. So this power counts how often a label was drawn from the mean instead of repeated; means
    and strengths follow in closed form, and the evidence cannot decrease.
    """
    first, cost = prior.strength, known.cost
    common, pseudocounts = prior.of_cells(layout)
    drawn = pseudocounts * known.drawn
    moved = layout.sum_groups(_sum_classes(drawn), layout.group_of_cell) / np.maximum(cost, 1e-300)
    strength = np.where(cost > 1e-9, np.clip(moved, *STRENGTHS), first)
    # the part of a label that is not chance: (1 − c) B / mean, where mean = pseudocount / strength
    competent = (1 - CHANCE)[:, None] * first[:, layout.group_of_cell]
    drawn_common = common * (competent[:, :, None] * known.drawn).sum(axis=0)
    new = DESIGN_STRENGTH * with_noise(layout.design, DESIGN_NOISE)
    new[layout.group_of_cell, :, layout.label_of_cell] += drawn_common
    new /= new.sum(axis=2, keepdims=True)
    return _keep_specified(layout, Prior(new, strength, _level_shares(layout, known.levels)))


def normalize_logs(logs) -> tuple[np.ndarray, np.ndarray]:
    """Return probabilities ∝ exp(logs), which sum to 1 along the first axis, and the log sums."""
    top = logs.max(axis=0)
    proba = np.exp(logs - top)
    total = proba.sum(axis=0)
    return proba / total, top + np.log(total)


def _level_shares(layout: Layout, levels) -> np.ndarray:
    """Return how frequent the levels of each group are; each has one annotator to begin with."""
    shares = layout.sum_groups(levels, layout.group) + 1
    return shares / shares.sum(axis=0)


def _indicator(index, n):
    """Return the sparse matrix that sums the items with the same index, shape (n, n_items)."""
    from scipy.sparse import csr_array

    n_items = len(index)
    return csr_array((np.ones(n_items), (index, np.arange(n_items))), shape=(n, n_items))
