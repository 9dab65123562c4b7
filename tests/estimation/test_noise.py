"""Noise estimated by the likelihood of the labels."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from looselabels.estimation.noise import (
    confident_errors,
    equal_errors,
    estimate_noise,
    highest_likely_rate,
    log_likelihood,
    shrinkage,
)


def clear_labels(rng, noise, blur=0.3, n_samples=4000):
    """Return smoothed p(label | x), and labels; x mostly determines the class."""
    class_proba = rng.dirichlet(np.full(len(noise), 0.05), n_samples)
    label_proba = class_proba @ noise
    drawn = rng.random(n_samples)[:, None] > np.cumsum(label_proba, axis=1)
    blurred = (1 - blur) * class_proba + blur * rng.dirichlet(np.ones(len(noise)), n_samples)
    return blurred @ noise, drawn.sum(axis=1).clip(max=len(noise) - 1)


@pytest.mark.parametrize("rate", [0.0, 0.05, 0.2, 0.4])
def test_the_rate_of_uniform_noise_is_found(rng, rate):
    noise = np.eye(4) * (1 - rate) + rate * equal_errors(4)
    # the standard error of the rate is at most 0.008; the errors of four seeds are up to 0.019
    assert_allclose(estimate_noise(*clear_labels(rng, noise)), noise, atol=0.025)


def test_structured_noise_is_found_with_its_structure(rng):
    noise = 0.7 * np.eye(4) + 0.3 * np.roll(np.eye(4), 1, axis=1)
    # shrinking toward equal errors costs 0.03, and no seed differs by more than 0.006 from that
    assert_allclose(estimate_noise(*clear_labels(rng, noise)), noise, atol=0.04)


def test_random_differences_between_errors_are_shrunk_away(rng):
    equal = equal_errors(6)
    given = clear_labels(rng, 0.7 * np.eye(6) + 0.3 * equal, n_samples=1000)
    assert_allclose(confident_errors(*given, np.ones(1000)), equal, atol=0.02)
    next_class = np.roll(np.eye(6), 1, axis=1)
    given = clear_labels(rng, 0.7 * np.eye(6) + 0.3 * next_class, n_samples=1000)
    found = confident_errors(*given, np.ones(1000))[next_class > 0]
    assert found.min() > 0.6  # 0.2 if equal; twelve seeds reach 0.64 to 0.78


def test_rows_of_weight_zero_do_not_change_confident_errors(rng):
    label_proba, labels = clear_labels(rng, 0.7 * np.eye(3) + 0.1, n_samples=200)
    weight = (np.arange(200) < 100).astype(float)
    found = confident_errors(label_proba, labels, weight)
    assert_allclose(found, confident_errors(label_proba[:100], labels[:100], np.ones(100)))


def test_shrinkage_maximizes_the_evidence_of_the_counts():
    """A second route: the Dirichlet-multinomial probability of the counts, label by label."""
    counts = np.array([[0, 7, 1, 1], [2, 0, 5, 0], [3, 3, 0, 3], [0, 1, 6, 0]])

    def log_evidence(strength):
        value = 0.0
        for row in range(4):
            seen = np.full(4, strength / 3)
            for column in range(4):
                for _ in range(counts[row, column]):
                    value += np.log(seen[column] / np.delete(seen, row).sum())
                    seen[column] += 1
        return value

    best = shrinkage(counts)
    assert all(log_evidence(best) > log_evidence(best * factor) for factor in (0.7, 0.9, 1.1, 1.4))


def test_exact_probabilities_leave_open_whether_it_is_noise_or_overlap_but_bound_the_noise(rng):
    noise = np.eye(4) * 0.8 + 0.2 * equal_errors(4)
    label_proba, labels = clear_labels(rng, noise, blur=0)
    assert 0.78 < estimate_noise(label_proba, labels)[0, 0] < 0.9
    values = [
        log_likelihood(label_proba, (1 - rate) * np.eye(4) + rate * equal_errors(4), labels)
        for rate in (0.1, 0.2, 0.3)
    ]
    assert abs(values[0] - values[1]) < 2
    assert values[2] < values[1] - 20


def test_one_label_has_no_noise():
    assert estimate_noise(np.ones((5, 1)), np.zeros(5, int)) == 1


def test_rows_of_weight_zero_say_nothing_about_the_noise(rng):
    """300 rows with correct labels and weight 0, then 300 with wrong ones."""
    class_1 = 1 / (1 + np.exp(-20 * rng.uniform(-1, 1, 600)))
    label_1 = np.where(np.arange(600) < 300, class_1, 0.2 + 0.6 * class_1)
    index = (rng.random(600) < label_1).astype(int)
    label_proba, weight = np.column_stack([1 - label_1, label_1]), np.repeat([0.0, 1.0], 300)
    found = estimate_noise(label_proba, index, weight)
    assert_allclose(found, estimate_noise(label_proba[300:], index[300:]))
    assert found[0, 0] < estimate_noise(label_proba, index)[0, 0] - 0.05


def test_a_sample_of_many_rows_is_enough(monkeypatch, rng):
    noise = np.eye(4) * 0.8 + 0.2 * equal_errors(4)
    given = clear_labels(rng, noise, n_samples=6000)
    seen = []

    def count_rows(label_proba, *rest):
        seen.append(len(label_proba))
        return log_likelihood(label_proba, *rest)

    monkeypatch.setattr("looselabels.estimation.noise.log_likelihood", count_rows)
    monkeypatch.setattr("looselabels.estimation.noise.MAX_ROWS", 2000)
    assert_allclose(estimate_noise(*given), noise, atol=0.04)
    assert set(seen) == {2000}
    once, again = (estimate_noise(*given, random_state=seed) for seed in (0, 1))
    assert (once != again).any()


def test_the_highest_likely_rate_is_where_the_value_has_lost_half_a_nat():
    def value(rate):
        return -2000 * (rate - 0.2) ** 2

    found, best = highest_likely_rate(value, 1.0)
    assert found == pytest.approx(0.2 + (0.5 / 2000) ** 0.5, abs=0.005)
    assert best == pytest.approx(0, abs=0.05)
    assert highest_likely_rate(lambda rate: 20 * rate, 1.0)[0] == 1


def test_a_local_maximum_does_not_end_the_search():
    """Without noise 30 nats are lost to the best rate, with a little noise 80, with half none."""

    def value(rate):
        return np.interp(rate, [0, 0.1, 0.5, 0.8], [-30, -80, 0, -500])

    assert highest_likely_rate(value, 0.8)[0] == pytest.approx(0.5, abs=0.01)
