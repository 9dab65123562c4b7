"""Class shares and wrong labels together, if the negative class has no labels of its own."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from looselabels.estimation.class_prior import estimate_class_prior
from looselabels.estimation.noisy_positives import (
    MAX_WRONG,
    _both_tails,
    _estimate_and_interval,
    _share_of_negatives,
    estimate_noisy_positives,
    positive_with_noise,
    transition_with_wrong_labels,
)

POSITIVE = 0.4


def simulated(noise, rate=0.5, distance=3.5, n_rows=3000, seed=0):
    """Return p(label | x), labels, and classes: two normal classes, and wrong labels."""
    rng = np.random.default_rng(seed)
    is_positive = rng.random(n_rows) < POSITIVE
    x = rng.standard_normal(n_rows) + distance * is_positive
    odds = POSITIVE / (1 - POSITIVE) * np.exp(distance * x - distance**2 / 2)
    rates = np.array([rate * POSITIVE * noise / (1 - POSITIVE), rate * (1 - noise)])
    labeled = rates[0] + (rates[1] - rates[0]) * odds / (1 + odds)
    label_index = (rng.random(n_rows) >= rates[is_positive.astype(int)]).astype(int)
    return np.column_stack([labeled, 1 - labeled]), label_index, is_positive


@pytest.mark.parametrize("noise", [0.1, 0.2])
@pytest.mark.parametrize("rate", [0.3, 0.5])
def test_both_numbers_are_found_where_classes_are_clear(noise, rate):
    label_proba, label_index, is_positive = simulated(noise, rate)
    found = estimate_noisy_positives(label_proba, label_index)
    wrong = np.mean(~is_positive[label_index == 0])
    assert found.wrong == pytest.approx(wrong, abs=0.06)
    assert found.wrong_interval[0] < wrong < found.wrong_interval[1]
    assert found.wrong_interval[0] > 0
    assert found.share == pytest.approx(is_positive.mean(), abs=0.04)
    assert found.share_interval[0] < is_positive.mean() < found.share_interval[1]
    assert found.labeled == pytest.approx(np.mean(label_index[is_positive] == 0), abs=0.04)
    assert found.mislabeled == pytest.approx(np.mean(label_index[~is_positive] == 0), abs=0.03)
    as_if_right = estimate_class_prior(label_proba, label_index, n_resamples=0).share[0]
    assert as_if_right - is_positive.mean() > 0.03 * noise / 0.1  # what ignoring noise costs


@pytest.mark.parametrize("rate", [0.3, 0.5])
def test_right_labels_hardly_change_the_class_share(rate):
    label_proba, label_index, _ = simulated(0.0, rate)
    found = estimate_noisy_positives(label_proba, label_index)
    as_if_right = estimate_class_prior(label_proba, label_index, n_resamples=0).share[0]
    assert found.share == pytest.approx(as_if_right, abs=0.005)
    assert found.wrong_interval[0] == 0
    assert 0 < found.wrong < 0.01  # no estimate rules wrong labels out
    assert found.wrong_interval[1] < 0.03
    assert found.wrong_interval[1] >= 3 / np.sum(label_index == 0)


def test_a_known_share_leaves_only_the_noise_open():
    label_proba, label_index, is_positive = simulated(0.2)
    found = estimate_noisy_positives(label_proba, label_index, share=POSITIVE)
    assert found.share == POSITIVE
    assert found.share_interval == (POSITIVE, POSITIVE)
    assert found.wrong == pytest.approx(np.mean(~is_positive[label_index == 0]), abs=0.05)
    rates = np.array([found.labeled, found.mislabeled])
    assert rates @ [POSITIVE, 1 - POSITIVE] == pytest.approx(np.mean(label_index == 0))


def test_a_share_below_that_of_the_labels_implies_wrong_ones():
    label_proba, label_index, _ = simulated(0.2)
    labeled = np.mean(label_index == 0)
    found = estimate_noisy_positives(label_proba, label_index, share=0.7 * labeled)
    assert 0.3 - 1e-9 <= found.wrong < 0.6


def test_nothing_is_claimed_if_no_row_is_clear():
    label_proba, label_index, _ = simulated(0.1, distance=0.3)
    found = estimate_noisy_positives(label_proba, label_index)
    assert not found.is_certain
    assert found.wrong_interval[0] == 0
    assert found.wrong_interval[1] > 0.5
    assert found.wrong == 0.5 / np.sum(label_index == 0)  # taken to be right
    assert found.share_interval[0] < POSITIVE < found.share_interval[1]


def test_rows_count_as_often_as_their_weights():
    label_proba, label_index, _ = simulated(0.1, n_rows=600)
    twice = estimate_noisy_positives(np.repeat(label_proba, 2, axis=0), np.repeat(label_index, 2))
    weighted = estimate_noisy_positives(label_proba, label_index, sample_weight=np.full(600, 2.0))
    assert weighted.wrong == pytest.approx(twice.wrong, abs=1e-3)
    assert weighted.share == pytest.approx(twice.share, abs=1e-3)


def test_several_labels_are_pooled():
    label_proba, label_index, _ = simulated(0.1)
    is_second = np.random.default_rng(1).random(len(label_index)) < 0.3
    split = np.column_stack([0.7 * label_proba[:, 0], 0.3 * label_proba[:, 0], label_proba[:, 1]])
    of_split = np.where(label_index == 0, is_second, 2)
    found = estimate_noisy_positives(split, of_split)
    expected = estimate_noisy_positives(label_proba, label_index)
    assert found.share == pytest.approx(expected.share)
    assert found.wrong == pytest.approx(expected.wrong)


def test_labeled_rows_are_positive_by_bayes_rule():
    found = estimate_noisy_positives(*simulated(0.2)[:2])
    rates = np.array([found.labeled, found.mislabeled])
    positive = np.array([0.0, 0.3, 1.0])
    labeled = rates[0] * positive + rates[1] * (1 - positive)
    assert_allclose(found.positive_given_label(labeled), rates[0] * positive / labeled, atol=1e-9)


def test_the_transition_reproduces_label_shares_class_shares_and_noise():
    label_shares, prior = np.array([0.12, 0.05]), np.array([0.3, 0.2, 0.5])
    proba = transition_with_wrong_labels(label_shares, prior, 0.2)
    assert_allclose(proba.sum(axis=1), 1)
    assert_allclose(prior @ proba[:, :-1], label_shares)
    right = prior[:-1] * np.diag(proba)[:-1] / label_shares
    assert_allclose(right, 0.8)  # of the rows with each label
    assert proba[2, 0] == proba[1, 0]  # a wrong label is equally likely on all other rows


@pytest.mark.parametrize("label_shares", [[0.2], [0.1, 0.1], [0.15, 0.04, 0.01]])
def test_the_share_of_positive_rows_fits_the_labels_on_negative_ones(label_shares):
    label_shares, seen, noise = np.array(label_shares), 0.5, 0.2
    positive = positive_with_noise(seen, label_shares, noise)
    shares = np.append(positive * label_shares / label_shares.sum(), 1 - positive)
    proba = transition_with_wrong_labels(label_shares, shares, noise)
    on_negatives = shares[-1] * proba[-1, :-1].sum() / label_shares.sum()
    assert positive == pytest.approx(seen * (1 - on_negatives))
    assert 0 < on_negatives <= noise + 1e-12


def test_with_a_known_share_not_all_labels_are_wrong_and_no_more_than_all_rows_are_positive():
    labeled, unlabeled = np.array([[50.0, 50.0]]), np.array([[450.0, 450.0]])
    wrong, top = _both_tails(labeled, unlabeled, 0.001, np.zeros(1))
    assert_allclose(wrong, [1 - 1 / 101])
    wrong, top = _both_tails(labeled, unlabeled, 0.2, np.array([0.9]))
    assert_allclose(wrong, [0.9])
    assert_allclose(top, [1.0])


def test_labels_that_look_like_negative_rows_are_not_all_wrong():
    labeled, unlabeled = np.array([[50.0, 50.0]]), np.array([[450.0, 450.0]])
    found = _share_of_negatives(labeled, unlabeled, np.zeros(1))
    assert_allclose(found, [1 - 1 / 101])  # as in both tails


def test_wrong_labels_are_an_estimate_up_to_the_largest_share_and_the_least_one_above_it():
    at_most, above = np.full((2, 50), MAX_WRONG), np.full((2, 50), 0.51)
    assert _estimate_and_interval(at_most, 0.01, 1000) == (MAX_WRONG, (MAX_WRONG, MAX_WRONG))
    estimate, (low, high) = _estimate_and_interval(above, 0.01, 1000)
    assert (estimate, low, high) == (0.01, 0.01, pytest.approx(0.51))
