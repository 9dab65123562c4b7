"""Calibration of label_proba, and the change of world that label weights bring."""

import numpy as np
import pytest
from hypothesis import given
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize, minimize_scalar

from looselabels._rows import on_simplex
from looselabels.estimation.calibration import (
    NAMED_SPREAD,
    SURER,
    Calibration,
    fit_class_calibration,
    fit_marginals,
    fit_shares,
    fit_temperature,
    from_real_world,
    is_named,
    label_losses,
    to_real_world,
    unweighted_transition,
    weighted_transition,
)
from looselabels.inference import condition_on_label, infer
from looselabels.transition import Transition
from tests.strategies import positive_rows

WEIGHTS = np.array([5.0, 0.2, 1.0])


@given(class_proba=positive_rows(5, 3), transition=positive_rows(3, 3))
def test_labels_of_the_weighted_world_are_the_weighted_labels(class_proba, transition):
    # p_w(s|x) ∝ w_s p(s|x), by the route over the classes and by the direct one
    weighted = class_proba * (transition @ WEIGHTS)
    weighted /= weighted.sum(axis=1, keepdims=True)
    direct = class_proba @ transition * WEIGHTS
    direct /= direct.sum(axis=1, keepdims=True)
    assert_allclose(weighted @ weighted_transition(transition, WEIGHTS), direct)
    assert_allclose(to_real_world(transition, WEIGHTS).apply(weighted), class_proba)


@given(class_proba=positive_rows(5, 3), transition=positive_rows(3, 3))
def test_conditioning_on_the_label_is_the_same_in_both_worlds(class_proba, transition):
    index = np.array([0, 1, 2, 0, 1])
    weighted = class_proba * (transition @ WEIGHTS)
    weighted /= weighted.sum(axis=1, keepdims=True)
    inner = weighted_transition(transition, WEIGHTS)
    assert_allclose(
        condition_on_label(weighted, inner, index),
        condition_on_label(class_proba, transition, index),
    )


@given(class_proba=positive_rows(5, 3), transition=positive_rows(3, 3))
def test_classes_come_back_from_the_weighted_world(class_proba, transition):
    there = from_real_world(transition, WEIGHTS).apply(class_proba)
    expected = on_simplex(class_proba * (transition @ WEIGHTS))
    assert_allclose(there, expected)
    assert_allclose(to_real_world(transition, WEIGHTS).apply(there), class_proba)


@given(transition=positive_rows(3, 3))
def test_a_transition_comes_back_from_the_weighted_world(transition):
    inner = weighted_transition(transition, WEIGHTS)
    assert_allclose(unweighted_transition(inner, transition, WEIGHTS), transition)


def test_a_label_without_weight_keeps_what_the_design_says():
    design = np.array([[0.2, 0.3, 0.5], [0.1, 0.6, 0.3]])
    weights = np.array([2.0, 1.0, 0.0])
    back = unweighted_transition(weighted_transition(design, weights), design, weights)
    assert_allclose(back, design)


def test_a_class_that_would_lose_all_its_weight_is_named():
    with pytest.raises(ValueError, match="every label of class 1"):
        weighted_transition(np.array([[0.5, 0.5], [0.0, 1.0]]), np.array([1.0, 0.0]))


def test_the_temperature_undoes_a_known_one(rng):
    truth = rng.dirichlet(np.ones(4), 20_000)
    index = (rng.random((len(truth), 1)) > truth.cumsum(axis=1)).sum(axis=1)
    sharp = truth**3 / (truth**3).sum(axis=1, keepdims=True)
    assert fit_temperature(sharp, index) == pytest.approx(1 / 3, rel=0.03)


def test_the_temperature_is_the_log_loss_optimum_with_weights(rng):
    label_proba, index = rng.dirichlet(np.ones(3), 50), rng.integers(0, 3, 50)
    weight = rng.random(50)

    def loss(log_power):
        scaled = label_proba ** np.exp(log_power)
        scaled /= scaled.sum(axis=1, keepdims=True)
        return -(weight @ np.log(scaled[np.arange(50), index]))

    best = minimize_scalar(loss, bounds=(np.log(0.02), np.log(50)), method="bounded")
    ours = loss(np.log(fit_temperature(label_proba, index, weight)))
    assert ours <= best.fun + 1e-4


def test_marginals_equal_the_label_frequencies(rng):
    label_proba, index = rng.dirichlet(np.ones(4), 500), rng.choice(3, 500, p=[0.5, 0.3, 0.2])
    calibration = Calibration.fit("marginals", label_proba, index)
    mean = calibration.apply(label_proba).mean(axis=0)
    assert_allclose(mean, np.bincount(index, minlength=4) / 500, atol=1e-3)
    assert fit_marginals(label_proba, index)[3] == 0  # a label that never occurs


def test_no_calibration_changes_nothing(rng):
    label_proba = rng.dirichlet(np.ones(4), 10)
    assert Calibration.fit(None, label_proba, None).apply(label_proba) is label_proba


@pytest.mark.parametrize("kind", ["temperature", "marginals"])
def test_zeros_stay_zero_and_rows_stay_on_the_simplex(rng, kind):
    label_proba, index = rng.dirichlet(np.ones(4), 200), rng.integers(0, 4, 200)
    label_proba[rng.random(label_proba.shape) < 0.3] = 0
    label_proba[:, 0] += 1e-3
    label_proba /= label_proba.sum(axis=1, keepdims=True)
    corrected = Calibration.fit(kind, label_proba, index).apply(label_proba)
    assert_array_equal(corrected == 0, label_proba == 0)
    assert_allclose(corrected.sum(axis=1), 1)


def test_inference_in_the_weighted_world_finds_the_real_classes(rng):
    # Gaussians with a closed form: g is exact in the weighted world, so the answer must be too.
    from looselabels.datasets import make_gaussians

    data = make_gaussians(300, random_state=0)
    design = Transition.partial(data.classes[:3], labeled=0.05, negative="other").with_noise(0.1)
    weights = np.array([20.0, 10.0, 15.0, 0.5])
    g = data.class_proba @ design.proba * weights
    g /= g.sum(axis=1, keepdims=True)
    found = infer(g, weighted_transition(design.proba, weights))
    back = to_real_world(design.proba, weights).apply(found.class_proba)
    assert_allclose(back, data.class_proba, atol=1e-7)


@given(class_proba=positive_rows(6, 3), transition=positive_rows(3, 4))
def test_class_calibration_makes_the_labels_no_less_likely(class_proba, transition):
    index = np.array([0, 1, 2, 3, 0, 1])
    found, _ = fit_class_calibration(class_proba, transition, index)

    def log_likelihood(proba):
        return np.log((proba @ transition)[np.arange(6), index]).sum()

    assert log_likelihood(found.apply(class_proba)) >= log_likelihood(class_proba) - 1e-6


def test_calibrated_classes_and_conditioned_ones_agree_on_the_shares(rng):
    class_proba = rng.dirichlet(np.ones(3), 20_000)
    transition = np.array([[0.8, 0.1, 0.1], [0.2, 0.7, 0.1], [0.1, 0.2, 0.7]])
    index = rng.integers(3, size=20_000)
    found, _ = fit_class_calibration(class_proba, transition, index)
    calibrated = found.apply(class_proba)
    given_label = condition_on_label(calibrated, transition, index)
    assert_allclose(calibrated.mean(axis=0), given_label.mean(axis=0), atol=1e-3)


def test_class_calibration_undoes_a_power_and_factors_through_the_transition(rng):
    # p(class | x) is known, the estimate is too smooth and has too much of class 0; only labels
    # that are wrong in 3 of 10 cases tell of it
    truth = rng.dirichlet(np.full(3, 0.3), 50_000)
    transition = np.full((3, 3), 0.15) + 0.55 * np.eye(3)
    label_proba = truth @ transition
    index = (rng.random(50_000)[:, None] > np.cumsum(label_proba, axis=1)).sum(axis=1)
    smooth = truth**0.4 * [1.5, 1, 1]
    smooth /= smooth.sum(axis=1, keepdims=True)
    found, _ = fit_class_calibration(smooth, transition, index)
    assert found.power == pytest.approx(2.5, rel=0.1)
    assert_allclose(found.factor / found.factor[1], [1.5**-2.5, 1, 1], rtol=0.15)


def test_class_calibration_is_the_optimum_of_what_it_says():
    """A second route: the formula as it is written, with shares that are far from alike."""
    rng = np.random.default_rng(0)
    truth = on_simplex(rng.dirichlet([0.3, 0.3], 300) * [9, 1])
    transition = np.array([[0.8, 0.2], [0.3, 0.7]])
    labels = (rng.random(300) > truth @ transition[:, 0]).astype(int)
    said = on_simplex(truth**0.4)
    mean = said.mean(axis=0)

    def value(log_power, *log_factor):
        calibrated = on_simplex(np.exp(log_factor) * mean * (said / mean) ** np.exp(log_power))
        given = np.log((calibrated @ transition)[np.arange(300), labels]).sum()
        wide = np.append(SURER if log_power > 0 else 2.0, [NAMED_SPREAD] * 2)
        return given - np.sum((np.array([log_power, *log_factor]) / wide) ** 2) / 2

    found, log_posterior = fit_class_calibration(said, transition, labels)
    log_factor = np.log(found.factor) + (found.power - 1) * np.log(mean)
    best = minimize(lambda theta: -value(*theta), np.zeros(3), method="Nelder-Mead")
    assert found.power > 1.2
    assert value(np.log(found.power), *log_factor - log_factor.mean()) >= -best.fun - 0.01
    assert log_posterior == pytest.approx(-best.fun, abs=0.01)


def test_a_class_is_named_by_a_label_that_is_rare_elsewhere():
    design = Transition.partial(["a", "b"], labeled=0.1, negative="-").with_noise(0.2)
    assert_array_equal(is_named(design.proba), [True, True, False])
    coarse = Transition.from_meanings({"dog": "dog", "pet": ["cat", "fox"]})
    assert_array_equal(is_named(coarse.proba), [True, False, False])
    assert_array_equal(is_named(np.ones((1, 1))), [True])


def test_few_labels_move_the_share_of_the_unnamed_class_more_than_of_the_others():
    # three of four labels are "a", and there are too many labels for a third of negative rows
    design = Transition.partial(["a", "b"], labeled=0.3, negative="-").proba
    labels = np.array([0, 0, 0, 1, 2, 2, 2, 2, 2, 2, 2, 2])
    found, _ = fit_class_calibration(np.full((12, 3), 1 / 3), design, labels)
    moved = np.log(found.factor / found.factor[0])
    assert moved[2] < -0.8
    assert -0.2 < moved[1] < 0


def test_calibration_in_the_world_of_the_weights_ends_in_the_real_one(rng):
    # Too smooth an estimate in the weighted world: one power mends it there. Moved back first, it
    # would need factors as well, which few labels cannot tell.
    truth = rng.dirichlet(np.full(3, 0.3), 50_000)
    design = Transition.partial(["a", "b"], labeled=0.1, negative="-").proba
    weights = np.array([9.0, 9.0, 0.5])
    label_proba = truth @ design
    index = (rng.random(50_000)[:, None] > np.cumsum(label_proba, axis=1)).sum(axis=1)
    smooth = on_simplex(on_simplex(truth * (design @ weights)) ** 0.5)
    found, _ = fit_class_calibration(smooth, design, index, label_weights=weights)
    assert found.power == pytest.approx(2, rel=0.1)
    assert abs(found.apply(smooth) - truth).mean() < 0.02  # 0.10 before


def test_class_calibration_keeps_what_the_labels_say_nothing_of(rng):
    class_proba = rng.dirichlet(np.ones(3), 500)
    found, _ = fit_class_calibration(class_proba, np.full((3, 2), 0.5), np.zeros(500, int))
    assert found.power == pytest.approx(1)
    assert_allclose(found.factor, 1)


def test_a_power_does_not_make_rows_of_tiny_numbers_vanish():
    rows = np.array([[1 - 2e-160, 1e-160, 1e-160]])
    assert_allclose(Calibration(power=3.0).apply(rows), [[1, 0, 0]], atol=1e-12)


@pytest.mark.parametrize("part", [0.0, 0.5, 1.0])
def test_shares_are_matched_a_part_of_the_way(part, rng):
    proba, shares = rng.dirichlet([1, 2, 3], 200), np.array([0.5, 0.3, 0.2])
    before = Calibration(power=2.0)
    mean = before.apply(proba).mean(axis=0)
    after = before.matched(proba, shares, part=part).apply(proba).mean(axis=0)
    assert_allclose(after, (1 - part) * mean + part * shares, atol=1e-6)


def test_single_precision_does_not_lose_small_factors():
    found = Calibration(9.0, np.array([1.0, 1e-50]), 1e-6)
    small = found.apply(np.array([[1e-6, 1.0]], dtype=np.float32))
    assert small.dtype == np.float32
    assert_allclose(small, found.apply(np.array([[1e-6, 1.0]])), rtol=1e-5)


def test_a_label_that_no_class_has_does_not_stop_the_calibration():
    unsure = np.repeat([[0.6, 0.4], [0.4, 0.6]], 40, axis=0)
    transition = np.array([[0.75, 0.25, 0.0], [0.25, 0.75, 0.0]])
    labels = np.repeat([0, 1], 40) ^ (np.arange(80) % 4 == 0)
    plain, _ = fit_class_calibration(unsure, transition, labels)
    labels, unsure = np.append(labels, 2), np.append(unsure, [[0.5, 0.5]], axis=0)
    found, _ = fit_class_calibration(unsure, transition, labels)
    assert found.power == pytest.approx(plain.power, rel=0.01)
    assert found.power > 2


@pytest.mark.parametrize("share", [0.45, 0.4, 0.3])
@pytest.mark.parametrize("power", [1.0, 3.0])
def test_shares_are_matched_also_where_all_rows_are_sure(power, share):
    sure = np.repeat([[1 - 1e-6, 1e-6], [1e-6, 1 - 1e-6]], 50, axis=0)
    shares = np.array([share, 1 - share])
    found = Calibration(power, np.ones(2), 1e-6).matched(sure, shares).apply(sure)
    assert_allclose(found.mean(axis=0), shares, atol=1e-6)


def test_shares_are_matched_by_weight_and_none_is_exact():
    rng = np.random.default_rng(0)
    proba, weight = rng.dirichlet(np.ones(4), 200), rng.random(200)
    shares = np.array([0.5, 0.3, 0.2, 0.0])
    factor = fit_shares(proba, shares, weight)
    found = np.average(on_simplex(proba * factor), axis=0, weights=weight)
    assert_allclose(found, shares, atol=1e-7)


def test_losses_of_labels_are_those_of_the_best_power_and_share_of_blind_labels(rng):
    """By a grid of both: nothing on it is better, and its best is as good."""
    proba = rng.dirichlet(np.full(3, 0.5), 400)
    blind = rng.random(400) < 0.3
    drawn = (rng.random(400)[:, None] > np.cumsum(proba, axis=1)).sum(axis=1)
    index = np.where(blind, rng.integers(3, size=400), np.minimum(drawn, 2))
    weight = rng.random(400)
    share = np.bincount(index, weight) / weight.sum()

    def mean_loss(log_power, part):
        powered = np.maximum(proba, 1e-6) ** np.exp(log_power)
        mixed = (1 - part) * powered / powered.sum(axis=1, keepdims=True) + part * share
        return np.average(-np.log(mixed[np.arange(400), index]), weights=weight)

    grid = [mean_loss(b, e) for b in np.linspace(-2, 2, 41) for e in np.linspace(0.01, 0.95, 48)]
    found = np.average(label_losses(proba, index, weight), weights=weight)
    assert found <= min(grid) + 1e-6
    assert found == pytest.approx(min(grid), abs=0.002)
