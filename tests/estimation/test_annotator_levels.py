"""What is expected of annotators, and what their answers say about them."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import psi

from looselabels.estimation.annotator_levels import (
    CHANCE,
    DESIGN_NOISE,
    DESIGN_STRENGTH,
    STRENGTHS,
    Layout,
    Prior,
    counts_at,
    evaluate,
    first_prior,
    log_density,
    mean_transitions,
    posterior,
    raise_evidence,
)
from tests.reference import log_dirichlet_multinomial


@pytest.fixture
def layout():
    """Return two groups, the second one without the label 2; one annotator has no answers."""
    design = np.array([np.eye(3), [[1, 0, 0], [0, 1, 0], [0.5, 0.5, 0]]])
    annotator, label = np.array([0, 0, 0, 1, 1, 2, 2]), np.array([0, 1, 2, 0, 2, 0, 1])
    return Layout.of(annotator, label, np.array([0, 0, 1, 0]), design)


@pytest.fixture
def prior(rng, layout):
    common = rng.dirichlet(np.ones(3), size=(2, 3)) * (layout.design.max(axis=1) > 0)[:, None]
    common /= common.sum(axis=2, keepdims=True)
    shares = rng.dirichlet(np.ones(len(CHANCE)), size=2).T
    return Prior(common, rng.uniform(5, 50, size=(len(CHANCE), 2)), shares)


def full_table(layout, counts):
    table = np.zeros((4, 3, 3))
    table[layout.annotator, :, layout.label] = counts
    return table


def test_the_evidence_is_that_of_dirichlet_multinomial_counts(rng, layout, prior):
    counts = rng.gamma(1, size=(7, 3))
    found = evaluate(layout, prior, counts).logs
    table = full_table(layout, counts)
    for level, chance in enumerate(CHANCE):
        for a, g in enumerate(layout.group):
            expected = np.log(prior.shares[level, g])
            used = layout.design[g].any(axis=0)
            # if all answers are chance, all classes have the same row, with all counts
            rows = table[a] if chance < 1 else table[a].sum(axis=0, keepdims=True)
            for y, row in enumerate(rows):
                mean = (1 - chance) * prior.common[g, y] + chance * used / used.sum()
                alpha = (prior.strength[level, g] * mean)[used]
                expected += log_dirichlet_multinomial(row[used], alpha)
            assert found[level, a] == pytest.approx(expected)


def test_a_step_raises_the_evidence(rng, layout, prior):
    counts = rng.gamma(2, 3, size=(7, 3))
    values = []
    for _ in range(30):
        found = posterior(layout, prior, counts)
        values.append(found.log_evidence.sum() + log_density(prior, layout.design))
        prior = raise_evidence(layout, prior, found)
    assert np.diff(values).min() > -1e-9
    assert values[-1] > values[0] + 1


def test_many_steps_end_at_a_maximum(rng, layout, prior):
    """A second route: no small change of strengths, shares or common transitions is better."""
    counts = rng.gamma(2, 3, size=(7, 3))

    def value(prior):
        evidence = posterior(layout, prior, counts).log_evidence.sum()
        return evidence + log_density(prior, layout.design)

    for _ in range(2000):
        prior = raise_evidence(layout, prior, posterior(layout, prior, counts))
    for _ in range(20):
        common = prior.common * np.exp(rng.normal(0, 0.01, prior.common.shape))
        shares = prior.shares * np.exp(rng.normal(0, 0.01, prior.shares.shape))
        strength = prior.strength * np.exp(rng.normal(0, 0.01, prior.strength.shape))
        moved = [
            prior._replace(common=common / common.sum(axis=2, keepdims=True)),
            prior._replace(shares=shares / shares.sum(axis=0)),
            prior._replace(strength=np.clip(strength, *STRENGTHS)),
        ]
        assert max(map(value, moved)) < value(prior) + 2e-4


def test_a_step_is_that_of_the_formula(rng, layout, prior):
    """A second route: loops over annotators, levels, classes and labels, and ψ of SciPy."""
    counts = rng.gamma(2, 3, size=(7, 3))
    known = posterior(layout, prior, counts)
    found, levels = raise_evidence(layout, prior, known), known.levels
    table, means = full_table(layout, counts), prior.means(layout.design)
    used = layout.design.any(axis=1)
    equal = used / used.sum(axis=1, keepdims=True)
    expected = (1 - DESIGN_NOISE) * layout.design + DESIGN_NOISE * equal[:, None]
    common = DESIGN_STRENGTH * expected
    shares, strength = np.ones((len(CHANCE), 2)), found.strength.copy()
    for level, g in np.ndindex(len(CHANCE), 2):
        chance, x, drawn, cost = CHANCE[level], prior.strength[level, g], 0.0, 0.0
        for a in np.flatnonzero(layout.group == g):
            shares[level, g] += levels[level, a]
            rows = table[a] if chance < 1 else table[a].sum(axis=0, keepdims=True)
            for y, row in enumerate(rows):
                cost += levels[level, a] * (psi(x + row.sum()) - psi(x))
                for s in np.flatnonzero(used[g]):
                    mean = means[level, g, y, s]
                    rise = levels[level, a] * x * mean * (psi(x * mean + row[s]) - psi(x * mean))
                    drawn += rise
                    # the part of the label that is not chance
                    common[g, y, s] += rise * (1 - chance) * prior.common[g, y, s] / mean
        if cost > 1e-6:  # if nobody has this level, its strength says nothing
            strength[level, g] = np.clip(drawn / cost, *STRENGTHS)
    assert_allclose(found.strength, strength)
    assert_allclose(found.shares, shares / shares.sum(axis=0))
    assert_allclose(found.common, common / common.sum(axis=2, keepdims=True))


def test_a_specified_strength_has_no_levels_and_stays(rng):
    """T_a[y] ~ Dirichlet(strength · specified[y]): the mean has a closed form."""
    design = np.array([np.eye(2), [[0.9, 0.1], [0.3, 0.7]]])
    annotator, label = np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1])
    layout = Layout.of(annotator, label, np.array([0, 1]), design, strength=[np.nan, 20.0])
    counts, prior = rng.gamma(1, 5, size=(4, 2)), first_prior(layout)
    for _ in range(2):
        known = posterior(layout, prior, counts)
        mean, size = mean_transitions(layout, prior, counts, known.levels)
        filled = 20 * design[1].T + counts[2:]
        assert_allclose(mean[2:], filled / filled.sum(axis=0))
        assert_allclose(size[1], filled.sum(axis=0))
        prior = raise_evidence(layout, prior, known)


def test_if_all_answers_are_chance_one_class_has_the_counts_of_all():
    counts = np.arange(24.0).reshape(2, 3, 4)
    for level, chance in enumerate(CHANCE):
        expected = counts if chance < 1 else counts.sum(axis=2)[:, :, None]
        assert_allclose(counts_at(level, counts), expected)


def test_an_annotator_without_answers_has_the_levels_of_its_group(layout, prior, rng):
    found = posterior(layout, prior, rng.gamma(1, size=(7, 3)))
    assert_allclose(found.levels[:, 3], prior.shares[:, 0])
    assert found.log_evidence[3] == pytest.approx(0)


def test_means_are_a_mixture_over_levels(rng, layout, prior):
    counts = rng.gamma(1, size=(7, 3))
    found = posterior(layout, prior, counts)
    mean, _ = mean_transitions(layout, prior, counts, found.levels)
    table, pseudocounts = full_table(layout, counts), prior.pseudocounts(layout.design)
    for slot, (a, s) in enumerate(zip(layout.annotator, layout.label, strict=True)):
        filled = table[a] + pseudocounts[:, layout.group[a]]
        filled[-1] = table[a].sum(axis=0) + pseudocounts[-1, layout.group[a]]
        means = (filled / filled.sum(axis=2, keepdims=True))[:, :, s]
        assert_allclose(mean[slot], found.levels[:, a] @ means)
    assert (found.mean_log < np.log(mean)).all()


def test_levels_tell_experts_from_spammers():
    annotator, label = np.divmod(np.arange(6), 3)
    layout = Layout.of(annotator, label, np.zeros(2, int), np.eye(3)[None])
    counts = np.vstack([10 * np.eye(3), np.full((3, 3), 10 / 3)])
    levels = posterior(layout, first_prior(layout), counts).levels
    assert CHANCE[levels.argmax(axis=0)].tolist() == [0.0, 1.0]


def test_a_spammer_who_prefers_a_label_says_nothing_about_the_class():
    annotator, label = np.divmod(np.arange(4), 2)
    layout = Layout.of(annotator, label, np.zeros(2, int), np.eye(2)[None])
    counts = np.array([[40, 0], [0, 40], [36, 36], [4, 4.0]])
    found = posterior(layout, first_prior(layout), counts)
    assert CHANCE[found.levels.argmax(axis=0)].tolist() == [0.0, 1.0]
    assert found.levels[-1, 1] > 0.9
    mean, _ = mean_transitions(layout, first_prior(layout), counts, found.levels)
    assert_allclose(mean[2:], [[0.85, 0.85], [0.15, 0.15]], atol=0.05)


def test_zeros_of_the_label_set_stay(layout, rng):
    known = posterior(layout, first_prior(layout), rng.gamma(1, size=(7, 3)))
    found = raise_evidence(layout, first_prior(layout), known)
    assert (found.common[1][:, 2] == 0).all()
    assert_allclose(found.common.sum(axis=2), 1)


def test_before_any_answer_all_levels_are_equally_likely_and_specified_ones_have_the_first(layout):
    assert_allclose(first_prior(layout).shares, 1 / len(CHANCE))
    specified = first_prior(layout._replace(strength=np.array([np.nan, 7.0])))
    assert_allclose(specified.shares[:, 0], 1 / len(CHANCE))
    assert_allclose(specified.shares[:, 1], np.arange(len(CHANCE)) == 0, atol=1e-9)
    assert_allclose(specified.strength[:, 1], 7)
