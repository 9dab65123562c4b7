"""Losses of labels after the best correction."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from looselabels._rows import on_simplex
from looselabels.estimation.calibration import fit_class_calibration, softmax
from looselabels.estimation.losses import (
    LabelSkill,
    class_losses,
    is_better,
    label_losses,
    label_skill,
)


def few_rows(seed, n_rows=12):
    """Draw p(label | x) of few rows; half of their labels are the most probable ones."""
    rng = np.random.default_rng(seed)
    proba = rng.dirichlet(np.full(4, 0.05), n_rows)
    is_best = rng.random(n_rows) < 0.5
    return proba, np.where(is_best, proba.argmax(axis=1), rng.integers(4, size=n_rows))


def test_label_losses_use_the_best_power_and_share_of_random_labels(rng):
    """Compared with a grid of both: no point of it is better, and its best point is as good."""
    proba = rng.dirichlet(np.full(3, 0.5), 400)
    random = rng.random(400) < 0.3
    drawn = (rng.random(400)[:, None] > np.cumsum(proba, axis=1)).sum(axis=1)
    index = np.where(random, rng.integers(3, size=400), np.minimum(drawn, 2))
    weight = rng.random(400)
    share = np.bincount(index, weight) / weight.sum()

    def mean_loss(log_power, part):
        powered = np.maximum(proba, 1e-6) ** np.exp(log_power)
        mixed = (1 - part) * on_simplex(powered) + part * share
        return np.average(-np.log(mixed[np.arange(400), index]), weights=weight)

    grid = [mean_loss(b, e) for b in np.linspace(-2, 2, 41) for e in np.linspace(0.01, 0.95, 48)]
    found = np.average(label_losses(proba, index, weight), weights=weight)
    assert found <= min(grid) + 1e-6
    assert found == pytest.approx(min(grid), abs=0.002)


def test_label_losses_prefer_the_better_ranking_over_the_smoother_one(rng):
    """With 30 % random labels the plain log-loss prefers probabilities that are less sharp."""
    truth = on_simplex(rng.dirichlet(np.full(3, 0.1), 3000) + 1e-4)
    drawn = (rng.random(3000)[:, None] > np.cumsum(truth, axis=1)).sum(axis=1).clip(max=2)
    index = np.where(rng.random(3000) < 0.3, rng.integers(3, size=3000), drawn)
    smooth = on_simplex(0.5 * truth + 0.5 * rng.dirichlet(np.ones(3), 3000))
    rows, weight = np.arange(3000), np.ones(3000)
    plain = [-np.log(proba[rows, index]).mean() for proba in (truth, smooth)]
    corrected = [label_losses(proba, index, weight).mean() for proba in (truth, smooth)]
    assert plain[0] > plain[1]
    assert corrected[0] < corrected[1]


def test_class_losses_are_those_of_calibrated_classes(rng):
    class_proba = rng.dirichlet(np.ones(3), 200)
    transition = np.array([[0.8, 0.1, 0.1], [0.2, 0.7, 0.1], [0.1, 0.2, 0.7]])
    index, weight, factor = rng.integers(3, size=200), rng.random(200), np.array([1.0, 2.0, 0.5])
    calibration, _ = fit_class_calibration(class_proba, transition, index, weight, factor)
    by_label = calibration.apply(class_proba) @ transition
    expected = -np.log(by_label[np.arange(200), index])
    assert_allclose(class_losses(class_proba, transition, index, weight, factor), expected)


def test_an_impossible_label_has_a_finite_loss():
    transition = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
    losses = class_losses(np.full((3, 2), 0.5), transition, np.array([0, 1, 2]))
    assert_allclose(losses[2], -np.log(1e-12))
    assert np.isfinite(losses).all()


def test_the_accuracy_is_how_often_the_most_probable_label_is_given():
    proba = np.array([[0.7, 0.2, 0.1]] * 3 + [[0.1, 0.2, 0.7]] * 2)
    found = label_skill(proba, np.array([0, 0, 1, 2, 0]), np.array([1.0, 1.0, 2.0, 3.0, 1.0]))
    assert found.accuracy == pytest.approx(5 / 8)


def test_predictions_are_useful_if_they_gain_more_than_two_standard_errors():
    gains = [LabelSkill(0.5, gain, standard_error=0.1).is_useful for gain in (0.1, 0.19, 0.21, 1.0)]
    assert gains == [False, False, True, True]


def test_only_labels_that_contradict_predictions_surprise():
    """Right predictions do not, of many labels or of a few equal ones; permuted predictions do."""
    rng, surprises = np.random.default_rng(0), []
    for _ in range(20):
        proba = rng.dirichlet([1.0, 1.0, 1.0], 400)
        labels = (proba.cumsum(axis=1) < rng.random((400, 1))).sum(axis=1)
        equal = np.flatnonzero(labels == 0)[:60]
        right = [slice(None), equal, np.append(equal[:54], np.flatnonzero(labels == 1)[:6])]
        found = [
            label_skill(proba[rows], labels[rows], np.ones(labels[rows].size)) for rows in right
        ]
        found.append(label_skill(rng.permutation(proba), labels, np.ones(400)))
        surprises.append([skill.is_contradicted for skill in found])
    assert np.sum(surprises, axis=0).tolist() == [0, 0, 0, 20]


def test_wrong_labels_of_one_class_or_of_a_few_rows_do_not_make_predictions_useless():
    sure, weight = np.array([[0.98, 0.02]] * 100), np.ones(100)
    assert not label_skill(sure, (np.arange(100) % 5 == 0).astype(int), weight).is_contradicted
    both = np.array([[0.99, 0.01], [0.01, 0.99]])
    assert not label_skill(both, np.array([1, 0]), np.ones(2)).is_contradicted
    assert label_skill(np.tile(both, (10, 1)), np.tile([1, 0], 10), np.ones(20)).is_contradicted


@pytest.mark.parametrize("number", [7, 11, 26, 100])  # both starts win some
def test_the_better_of_two_minima_is_found(number):
    """Few or many labels can be independent of x: no point of a grid of both numbers is better."""
    proba, index = few_rows(number)
    rows = np.arange(len(index))
    share = (np.bincount(index) / len(index))[index]
    logs = np.log(np.maximum(proba, 1e-6))
    powers, parts = np.exp(np.linspace(-3, 3, 50)), 1 / (1 + np.exp(-np.linspace(-9, 3, 50)))
    own = np.array([softmax(power * logs)[0][rows, index] for power in powers])
    mixed = (1 - parts)[:, None, None] * own + parts[:, None, None] * share
    best = np.mean(-np.log(mixed), axis=2).min()
    assert label_losses(proba, index, np.ones(len(index))).mean() <= best + 1e-6


def test_losses_are_better_by_their_weighted_mean_and_by_more_than_rounding():
    losses, others = np.array([0.2, 0.6]), np.array([0.4, 0.5])
    assert is_better(losses, others, np.ones(2))
    assert not is_better(losses, others, np.array([1.0, 3.0]))
    assert not is_better(others - 1e-12, others, np.ones(2))
