"""Corrections of label_proba and class_proba."""

import numpy as np
import pytest
from hypothesis import given
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize, minimize_scalar

from looselabels._rows import on_simplex
from looselabels.estimation.calibration import (
    FLOOR,
    SPREAD,
    SPREAD_ABOVE_ONE,
    SPREAD_NAMED,
    Calibration,
    fit_class_calibration,
    fit_label_calibration,
    fit_shares,
    fit_temperature,
    is_named,
    label_likelihood,
    mean_of_rows,
    relative_to_shares,
    softmax,
)
from looselabels.estimation.weighting import class_weights
from looselabels.inference import condition_on_label
from looselabels.transition import Transition
from tests.strategies import positive_rows


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
    calibration = fit_label_calibration("marginals", label_proba, index)
    mean = calibration.apply(label_proba).mean(axis=0)
    assert_allclose(mean, np.bincount(index, minlength=4) / 500, atol=1e-3)
    assert calibration.factor[3] == 0  # a label that never occurs


def test_no_calibration_changes_nothing(rng):
    label_proba = rng.dirichlet(np.ones(4), 10)
    calibration = fit_label_calibration(None, label_proba, None)
    assert calibration.is_identity
    assert calibration.apply(label_proba) is label_proba


@pytest.mark.parametrize(
    "calibration",
    [Calibration(power=2.0), Calibration(factor=np.array([1.0, 2.0])), Calibration(floor=0.1)],
)
def test_each_part_of_a_calibration_changes_probabilities(calibration):
    rows = np.array([[0.05, 0.95]])
    assert not calibration.is_identity
    assert abs(calibration.apply(rows) - rows).max() > 0.02


@pytest.mark.parametrize(
    "broken",
    [
        Calibration(power=np.nan),
        Calibration(factor=np.array([1.0, np.nan])),
        Calibration(floor=np.array([np.nan, 0.1])),
        Calibration(factor=np.array([1.0, np.inf])),
    ],
)
def test_a_calibration_that_is_not_finite_is_an_error_and_makes_no_uniform_rows(broken):
    with pytest.raises(ValueError, match=r"(power|factor|floor) of the calibration is .*(nan|inf)"):
        broken.apply(np.array([[0.2, 0.8]]))


def test_softmax_of_large_scores_is_finite():
    proba, log_total = softmax(np.array([[1000.0, 1000.0 + np.log(3)], [-1e4, -1e4]]))
    assert_allclose(proba, [[0.25, 0.75], [0.5, 0.5]])
    assert_allclose(log_total, [1000 + np.log(4), -1e4 + np.log(2)])


def test_a_class_without_share_is_never_the_largest_relative_to_its_share():
    found = relative_to_shares(np.array([[0.9, 0.06, 0.04]]), np.array([0.0, 0.8, 0.2]))
    assert_allclose(found, [[0, 0.075, 0.2]])


@pytest.mark.parametrize("kind", ["temperature", "marginals"])
def test_zeros_stay_zero_and_rows_stay_on_the_simplex(rng, kind):
    label_proba, index = rng.dirichlet(np.ones(4), 200), rng.integers(0, 4, 200)
    label_proba[rng.random(label_proba.shape) < 0.3] = 0
    label_proba[:, 0] += 1e-3
    label_proba /= label_proba.sum(axis=1, keepdims=True)
    corrected = fit_label_calibration(kind, label_proba, index).apply(label_proba)
    assert_array_equal(corrected == 0, label_proba == 0)
    assert_allclose(corrected.sum(axis=1), 1)


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
    # The estimate of p(class | x) is too smooth and has too much of class 0. Only the labels show
    # it, and 3 in 10 of them are wrong.
    truth = rng.dirichlet(np.full(3, 0.3), 50_000)
    transition = np.full((3, 3), 0.15) + 0.55 * np.eye(3)
    label_proba = truth @ transition
    index = (rng.random(50_000)[:, None] > np.cumsum(label_proba, axis=1)).sum(axis=1)
    smooth = truth**0.4 * [1.5, 1, 1]
    smooth /= smooth.sum(axis=1, keepdims=True)
    found, _ = fit_class_calibration(smooth, transition, index)
    assert found.power == pytest.approx(2.5, rel=0.1)
    assert_allclose(found.factor / found.factor[1], [1.5**-2.5, 1, 1], rtol=0.15)


def test_the_likelihood_of_several_labels_replaces_the_label(rng):
    transition = Transition.identity(["a", "b", "c"]).with_noise(0.2).proba
    class_proba = rng.dirichlet([2, 2, 2], 200)
    labels = rng.integers(3, size=200)
    by_label, value = fit_class_calibration(class_proba, transition, labels)
    likelihood = label_likelihood(transition, labels)
    found, same = fit_class_calibration(class_proba, transition, None, likelihood=likelihood)
    assert_array_equal(found.apply(class_proba), by_label.apply(class_proba))
    assert value == same
    twice, _ = fit_class_calibration(class_proba, transition, None, likelihood=likelihood**2)
    assert not np.allclose(twice.apply(class_proba), found.apply(class_proba))


def test_class_calibration_maximizes_its_formula():
    """A second route: the formula of the docstring, with very unequal shares."""
    rng = np.random.default_rng(0)
    truth = on_simplex(rng.dirichlet([0.3, 0.3], 300) * [9, 1])
    transition = np.array([[0.8, 0.2], [0.3, 0.7]])
    labels = (rng.random(300) > truth @ transition[:, 0]).astype(int)
    estimate = on_simplex(truth**0.4)
    mean = estimate.mean(axis=0)

    def value(log_power, *log_factor):
        calibrated = on_simplex(np.exp(log_factor) * mean * (estimate / mean) ** np.exp(log_power))
        given = np.log((calibrated @ transition)[np.arange(300), labels]).sum()
        wide = np.append(SPREAD_ABOVE_ONE if log_power > 0 else SPREAD, [SPREAD_NAMED] * 2)
        return given - np.sum((np.array([log_power, *log_factor]) / wide) ** 2) / 2

    found, log_posterior = fit_class_calibration(estimate, transition, labels)
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


def test_few_labels_move_the_share_of_the_unnamed_class_most():
    # three labels in four are "a", and more rows are labeled than if a third were negative
    design = Transition.partial(["a", "b"], labeled=0.3, negative="-").proba
    labels = np.array([0, 0, 0, 1, 2, 2, 2, 2, 2, 2, 2, 2])
    found, _ = fit_class_calibration(np.full((12, 3), 1 / 3), design, labels)
    moved = np.log(found.factor / found.factor[0])
    assert moved[2] < -0.8
    assert -0.2 < moved[1] < 0


def test_calibration_of_weighted_classes_gives_real_ones(rng):
    # The estimate is too smooth in the weighted distribution, where one power corrects it. After a
    # conversion to the real distribution it would need factors as well.
    truth = rng.dirichlet(np.full(3, 0.3), 50_000)
    design = Transition.partial(["a", "b"], labeled=0.1, negative="-").proba
    label_proba = truth @ design
    index = (rng.random(50_000)[:, None] > np.cumsum(label_proba, axis=1)).sum(axis=1)
    factor = class_weights(design, np.array([9.0, 9.0, 0.5]))
    smooth = on_simplex(on_simplex(truth * factor) ** 0.5)
    found, _ = fit_class_calibration(smooth, design, index, class_weights=factor)
    assert found.power == pytest.approx(2, rel=0.1)
    assert abs(found.apply(smooth) - truth).mean() < 0.02  # 0.10 before


def test_uninformative_labels_leave_the_classes_unchanged(rng):
    class_proba = rng.dirichlet(np.ones(3), 500)
    found, _ = fit_class_calibration(class_proba, np.full((3, 2), 0.5), np.zeros(500, int))
    assert found.power == pytest.approx(1)
    assert_allclose(found.factor, 1)


def test_a_power_does_not_make_rows_of_tiny_numbers_vanish():
    rows = np.array([[1 - 2e-160, 1e-160, 1e-160]])
    assert_allclose(Calibration(power=3.0).apply(rows), [[1, 0, 0]], atol=1e-12)


@pytest.mark.parametrize("trust", [0.0, 0.5, 1.0])
def test_matched_shares_are_averaged_with_the_present_ones(trust, rng):
    proba, shares = rng.dirichlet([1, 2, 3], 200), np.array([0.5, 0.3, 0.2])
    before = Calibration(power=2.0)
    mean = before.apply(proba).mean(axis=0)
    after = before.match_shares(proba, shares, trust=trust).apply(proba).mean(axis=0)
    assert_allclose(after, (1 - trust) * mean + trust * shares, atol=1e-6)


def test_single_precision_does_not_lose_small_factors():
    found = Calibration(9.0, np.array([1.0, 1e-50]), 1e-6)
    small = found.apply(np.array([[1e-6, 1.0]], dtype=np.float32))
    assert small.dtype == np.float32
    assert_allclose(small, found.apply(np.array([[1e-6, 1.0]])), rtol=1e-5)


def test_an_impossible_label_does_not_stop_the_calibration():
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
def test_shares_are_matched_even_if_all_rows_are_certain(power, share):
    certain = np.repeat([[1 - 1e-6, 1e-6], [1e-6, 1 - 1e-6]], 50, axis=0)
    shares = np.array([share, 1 - share])
    found = Calibration(power, np.ones(2), 1e-6).match_shares(certain, shares).apply(certain)
    assert_allclose(found.mean(axis=0), shares, atol=1e-6)


def test_shares_are_matched_with_weights_and_a_share_of_zero_exactly():
    rng = np.random.default_rng(0)
    proba, weight = rng.dirichlet(np.ones(4), 200), rng.random(200)
    shares = np.array([0.5, 0.3, 0.2, 0.0])
    factor = fit_shares(proba, shares, weight)
    found = np.average(on_simplex(proba * factor), axis=0, weights=weight)
    assert_allclose(found, shares, atol=1e-7)
    assert found[3] == 0


# ---------------------------------------------------------------------------------- known classes


def test_without_a_known_class_nothing_changes():
    """Certain and wrong rows: a higher floor would fit better, but nobody reviewed them."""
    rng = np.random.default_rng(0)
    class_proba = rng.dirichlet(np.ones(3), 600)
    labels = np.sum(rng.random((600, 1)) > class_proba.cumsum(axis=1), axis=1).clip(0, 2)
    is_odd = rng.random(600) < 0.05
    class_proba[is_odd] = np.where(np.eye(3)[(labels[is_odd] + 1) % 3] > 0, 0.9998, 0.0001)
    transition = 0.97 * np.eye(3) + 0.01
    plain, value = fit_class_calibration(class_proba, transition, labels)
    unknown, same = fit_class_calibration(
        class_proba, transition, labels, class_index=np.full(600, -1)
    )
    assert (unknown.power, same) == (plain.power, value)
    assert_array_equal(unknown.floor, plain.floor)


def test_rows_of_known_class_have_the_likelihood_of_class_and_label(rng):
    class_proba, transition = rng.dirichlet(np.ones(3), 50), rng.dirichlet(np.ones(3), 3)
    label_index, class_index = rng.integers(3, size=50), np.full(50, -1)
    class_index[:20] = rng.integers(3, size=20)
    found, value = fit_class_calibration(
        class_proba, transition, label_index, class_index=class_index, power=1.0
    )
    calibrated, rows = found.apply(class_proba), np.arange(50)
    joint = calibrated * transition.T[label_index]
    expected = np.log(np.where(class_index < 0, joint.sum(axis=1), joint[rows, class_index])).sum()
    prior = value - expected  # of the factors: never positive, and small
    assert -5 < prior <= 0


def test_all_classes_known_makes_the_calibration_that_of_these_classes(rng):
    truth = rng.dirichlet(np.ones(3), 5000)
    classes = np.argmax(rng.random(5000)[:, None] < truth.cumsum(axis=1), axis=1)
    labels = rng.integers(3, size=5000)  # they say nothing
    smooth = on_simplex(np.sqrt(truth))
    found, _ = fit_class_calibration(
        smooth, np.full((3, 3), 1 / 3), labels, class_index=classes, spread_above_one=2.0
    )
    assert found.power == pytest.approx(2, rel=0.1)


def test_a_known_class_that_the_transition_excludes_wins_and_costs_a_finite_amount():
    likelihood = label_likelihood(np.eye(2), np.array([0, 0]), np.array([-1, 1]))
    assert_array_equal(likelihood, [[1, 0], [0, 1]])
    found = fit_class_calibration(
        np.full((2, 2), 0.5), np.eye(2), np.array([0, 0]), class_index=np.array([-1, 1])
    )
    assert np.isfinite(found[1])


def test_certain_rows_that_a_review_refutes_raise_the_floor(rng):
    proba = np.sort(rng.random(2000))
    classes = (rng.random(2000) < proba).astype(int)
    class_proba, class_index = np.column_stack([1 - proba, proba]), np.full(2000, -1)
    class_index[:60] = np.arange(60) % 3 == 0  # x says 0, but a third of them is of class 1
    transition = np.array([[0.9, 0.1], [0.1, 0.9]])
    labels = classes ^ (rng.random(2000) < 0.1)
    plain, reviewed = (
        fit_class_calibration(class_proba, transition, labels, class_index=known)[0]
        for known in (None, class_index)
    )
    assert (reviewed.floor > plain.floor).all()
    assert reviewed.apply(class_proba)[0, 1] > 2 * plain.apply(class_proba)[0, 1]


def test_a_floor_that_a_review_raises_is_in_proportion_to_the_shares_of_the_classes(rng):
    proba = np.sort(rng.beta(1, 4, 2000))  # one row in five is of class 1
    class_proba, class_index = np.column_stack([1 - proba, proba]), np.full(2000, -1)
    class_index[:60] = np.arange(60) % 3 == 0  # x says 0, but a third of them is of class 1
    labels = (rng.random(2000) < proba).astype(int)
    found, _ = fit_class_calibration(
        class_proba, 0.8 * np.eye(2) + 0.1, labels, class_index=class_index, power=1.0
    )
    part = found.floor / class_proba.mean(axis=0)
    assert part[0] == pytest.approx(part[1])
    assert part[0] > 1.9 * FLOOR


@pytest.mark.parametrize("power", [0.5, 2.0])
def test_a_known_power_is_kept(rng, power):
    proba, labels = rng.dirichlet(np.ones(2), 100), rng.integers(2, size=100)
    found, _ = fit_class_calibration(proba, np.array([[0.9, 0.1], [0.2, 0.8]]), labels, power=power)
    assert found.power == pytest.approx(power)


def test_an_unknown_power_has_bounds(rng):
    """Labels that x determines would let it grow without end."""
    labels = np.repeat([0, 1], 500)
    found, _ = fit_class_calibration(
        np.array([[0.51, 0.49], [0.49, 0.51]])[labels], np.eye(2), labels, spread_above_one=1e9
    )
    assert found.power == pytest.approx(np.exp(3))


def test_a_label_that_no_class_can_have_does_not_move_the_calibration():
    transition = np.array([[0.8, 0.2, 0.0], [0.3, 0.7, 0.0]])
    proba = np.array([[0.7, 0.3], [0.3, 0.7]] * 20 + [[0.6, 0.4], [0.4, 0.6]])
    labels = np.array([0, 1, 1, 1, 0, 0] * 7)
    without, _ = fit_class_calibration(proba, transition, labels)
    labels[-2:] = 2
    weight = np.append(np.ones(40), [0.0, 0.0])
    alone, _ = fit_class_calibration(proba[:40], transition, labels[:40])
    impossible, _ = fit_class_calibration(proba, transition, labels)
    assert np.abs(without.factor - alone.factor).max() > 1e-3  # the two labels matter
    assert impossible.power == pytest.approx(alone.power, rel=1e-3)
    assert_allclose(impossible.factor, alone.factor, rtol=1e-3)
    zero, _ = fit_class_calibration(proba, transition, labels, weight)
    assert_allclose(zero.factor, alone.factor, rtol=1e-3)


def test_a_column_without_probability_does_not_change_the_factors_of_the_others():
    proba, shares = np.array([[0.5, 0.5], [0.1, 0.9]]), np.array([0.4, 0.6])
    wider = np.column_stack([proba, np.zeros(2)])
    found = fit_shares(wider, np.array([0.2, 0.3, 0.5]))
    expected = fit_shares(proba, shares)
    assert_allclose(found[:2] / found[0], expected / expected[0], rtol=1e-6)
    assert found[2] == 1


def test_the_mean_of_many_rows_in_single_precision_is_exact(rng):
    proba = rng.random((200_000, 1), dtype=np.float32) * np.float32([0.3, 0.7])
    expected = proba.astype(np.float64).mean(axis=0)
    assert_allclose(mean_of_rows(proba), expected, rtol=1e-12)
    assert_allclose(mean_of_rows(proba, np.ones(len(proba))), expected, rtol=1e-12)


def test_a_sample_of_many_rows_gives_about_the_same_corrections(rng, monkeypatch):
    class_proba = on_simplex(rng.random((4000, 3)))
    transition = Transition.identity(list("abc")).with_noise(0.2).proba
    certain = on_simplex(class_proba**3)
    cumulative = np.cumsum(certain @ transition, axis=1)
    label_index = (rng.random((4000, 1)) > cumulative).sum(axis=1).clip(max=2)
    class_index = np.where(np.arange(4000) % 500 == 0, certain.argmax(axis=1), -1)
    shares, half = np.array([0.5, 0.3, 0.2]), on_simplex(class_proba**0.5)

    def corrections():
        known = fit_class_calibration(class_proba, transition, label_index, class_index=class_index)
        plain = fit_class_calibration(class_proba, transition, label_index)
        temperature = fit_temperature(half, label_index)
        return known, plain, fit_shares(class_proba, shares), temperature

    everything = corrections()
    monkeypatch.setattr("looselabels.estimation.calibration.MAX_FIT_ROWS", 2000)
    sampled = corrections()
    for (found, value), (expected, expected_value) in zip(sampled[:2], everything[:2], strict=True):
        assert_allclose(found.power, expected.power, rtol=0.1)
        assert_allclose(value, expected_value, rtol=0.05)  # weights stand for all rows
    assert_allclose(sampled[2], everything[2], rtol=0.05)
    assert_allclose(sampled[3], everything[3], rtol=0.2)
    assert sampled[2].tolist() != everything[2].tolist()


def test_rows_are_corrected_in_blocks_as_they_are_at_once(rng, monkeypatch):
    proba = on_simplex(rng.random((50, 3))).astype(np.float32)
    calibration = Calibration(1.7, np.array([0.2, 1.0, 0.5]), 0.01)
    expected = calibration.apply(proba)
    monkeypatch.setattr("looselabels.estimation.calibration.BLOCK", 7)
    assert_array_equal(calibration.apply(proba), expected)


def test_the_largest_factor_of_class_calibration_is_1(rng):
    class_proba, label_index = rng.dirichlet([5, 1, 1], 100), rng.integers(3, size=100)
    found, _ = fit_class_calibration(class_proba, np.eye(3), label_index)
    assert found.factor.max() == 1
    assert found.factor.min() < 0.9
