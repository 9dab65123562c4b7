"""Annotators who agree more than their transitions explain."""

from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import beta

from looselabels.annotations import Answers
from looselabels.estimation import agreement
from looselabels.estimation.agreement import (
    MIN_EQUAL,
    EqualPair,
    _expected_equal,
    _pairs_of_answers,
    agreeing_pairs,
    equal_pairs,
    join,
    merge_annotators,
    unexplained_by_accuracy,
)
from looselabels.estimation.annotator_powers import Powers
from looselabels.estimation.annotators import infer_from_annotators
from tests.estimation.crowds import crowd


def with_copy(answers, original, copy, rows):
    """Return answers in which `copy` repeats the answers of `original` in some rows."""
    table = np.full((answers.n_rows, answers.n_annotators), -1)
    table[answers.row, answers.annotator] = answers.label
    table[:, copy] = -1
    table[rows, copy] = table[rows, original]
    row, annotator = np.nonzero(table >= 0)
    return answers._replace(row=row, annotator=annotator, label=table[row, annotator])


@pytest.mark.parametrize(("n_annotators", "n_classes"), [(6, 2), (20, 4), (40, 10)])
def test_independent_annotators_are_no_pair(n_annotators, n_classes):
    for seed in range(3):
        rng = np.random.default_rng(seed)
        answers, *_ = crowd(rng, 500, n_annotators, n_classes, per_row=5)
        assert agreeing_pairs(infer_from_annotators(None, answers), answers) == []


def average_annotator(transitions):
    """Return the first annotator but the last one that is right in about 70 % of its answers."""
    return int(np.abs(transitions[:-1, 0, 0] - 0.7).argmin())


def test_a_copy_is_found_and_counted_once(rng):
    answers, _, transitions = crowd(rng, 1000, 20, 4, per_row=5)
    original = average_annotator(transitions)
    copied = with_copy(answers, original, copy=19, rows=np.arange(500))
    pairs = agreeing_pairs(infer_from_annotators(None, copied), copied)
    assert [pair[:2] for pair in pairs if pair.agreement == 1] == [(original, 19)]
    assert pairs[0].agreement == 1
    assert pairs[0].expected < 0.8
    same_as = join([pair for pair in pairs if pair.agreement == 1], 20)
    assert same_as[19] == original
    merged = merge_annotators(copied, same_as, 20)
    assert len(copied.row) - len(merged.row) == pairs[0].n_rows
    without = with_copy(answers, original, copy=19, rows=[])
    assert all(map(np.array_equal, merged[:3], without[:3]))


def test_annotators_who_are_both_perfect_are_no_copies(rng):
    answers, classes, _ = crowd(rng, 500, 20, 4, per_row=6)
    perfect = np.isin(answers.annotator, [5, 6])
    answers = answers._replace(label=np.where(perfect, classes[answers.row], answers.label))
    assert agreeing_pairs(infer_from_annotators(None, answers), answers) == []


def test_an_annotator_who_looks_at_another_is_found_but_is_no_copy(rng):
    answers, _, transitions = crowd(rng, 1500, 20, 4, per_row=6)
    original = average_annotator(transitions)
    copied = with_copy(answers, original, copy=19, rows=np.arange(1500))
    wrong = (copied.annotator == 19) & (rng.random(len(copied.row)) < 0.2)
    copied = copied._replace(label=np.where(wrong, (copied.label + 1) % 4, copied.label))
    pairs = agreeing_pairs(infer_from_annotators(None, copied), copied)
    assert pairs[0][:2] == (original, 19)
    assert not any(pair.agreement == 1 for pair in pairs)


def test_few_common_rows_say_nothing():
    answers = Answers(np.arange(8) // 2, np.arange(8) % 2, np.zeros(8, int), 4, 2, 2)
    assert agreeing_pairs(infer_from_annotators(None, answers), answers) == []
    alone = Answers(np.arange(8), np.zeros(8, int), np.zeros(8, int), 8, 1, 2)
    assert agreeing_pairs(infer_from_annotators(None, alone), alone) == []


def test_copies_of_copies_become_one_annotator():
    answers = Answers(np.array([0, 0, 0, 1]), np.array([0, 1, 2, 2]), np.zeros(4, int), 2, 4, 2)
    same_as = join([EqualPair(1, 2, 40), EqualPair(0, 1, 40)], 4)
    assert_array_equal(same_as, [0, 0, 0, 3])
    merged = merge_annotators(answers, same_as, 4)
    assert_array_equal(merged.row, [0, 1])
    assert_array_equal(merged.annotator, [0, 0])


def test_equal_answers_are_found_without_an_inference(rng):
    answers, *_ = crowd(rng, 1000, 20, 4, per_row=5)
    copied = with_copy(answers, original=3, copy=19, rows=np.arange(500))
    ((first, second, n_rows),) = equal_pairs(copied)
    assert (first, second) == (3, 19)
    assert n_rows == np.sum(copied.annotator == 19)


def test_annotators_with_few_answers_change_no_other_pair(rng):
    answers, *_ = crowd(rng, 1000, 20, 4, per_row=5)
    copied = with_copy(answers, original=3, copy=19, rows=np.arange(500))
    few = (copied.annotator < 2) & (copied.row >= 40)
    rest = Answers(*(x[~few] for x in copied[:3]), *copied[3:])
    assert np.bincount(rest.annotator).min() < MIN_EQUAL
    assert equal_pairs(rest) == equal_pairs(copied)
    assert equal_pairs(copied.take(np.arange(5))) == []


@pytest.mark.parametrize("accuracy", [0.8, 0.2])
def test_equal_answers_are_unexplained_if_their_mean_probability_is_below_the_level(accuracy):
    """A second route: the mean of r^2n, or of (1 − r)^2n, over the distribution of r."""
    right, wrong = np.full(2, 50 * accuracy), np.full(2, 50 * (1 - accuracy))
    pair = EqualPair(0, 1, 30)
    often = max(accuracy, 1 - accuracy)
    chance = beta(50 * often, 50 * (1 - often)).expect(lambda r: r**60)
    assert unexplained_by_accuracy([pair], right, wrong, level=1.01 * chance) == [pair]
    assert unexplained_by_accuracy([pair], right, wrong, level=0.99 * chance) == []


def test_silent_functions_are_equal_only_if_they_answer_the_same_rows():
    row = np.r_[np.arange(100), np.arange(100), np.arange(50, 150)]
    answers = Answers(
        row, np.repeat([0, 1, 2], 100), np.zeros(300, int), 150, 3, 2, missing_label=1
    )
    order = np.lexsort((answers.annotator, answers.row))
    answers = answers._replace(row=answers.row[order], annotator=answers.annotator[order])
    assert equal_pairs(answers) == [EqualPair(0, 1, 100)]
    assert len(equal_pairs(answers._replace(missing_label=None))) == 3


@pytest.mark.parametrize("is_alone", [False, True])
def test_of_too_many_pairs_functions_are_equal_if_they_are_in_the_rows_compared(
    monkeypatch, is_alone
):
    answered = np.arange(500)[:, None] < [400, 400, 450]
    answered[480, 0] = is_alone  # in a row that nobody else answered
    row, annotator = np.nonzero(answered)
    answers = Answers(row, annotator, np.zeros(len(row), int), 500, 3, 2, missing_label=1)
    monkeypatch.setattr(agreement, "MAX_PAIRS", 300)  # of 1,200: every fourth row
    assert equal_pairs(answers) == ([] if is_alone else [EqualPair(0, 1, 100)])


def test_of_too_many_pairs_evenly_spaced_rows_are_compared(monkeypatch):
    row, annotator = np.repeat(np.arange(6), 3), np.tile(np.arange(3), 6)
    answers = Answers(row, annotator, np.zeros(18, int), 6, 3, 2)
    monkeypatch.setattr(agreement, "MAX_PAIRS", 10)
    rows, one, two = _pairs_of_answers(answers)
    assert_array_equal(rows, np.repeat([0, 2, 4], 3))
    assert_array_equal(annotator[one], [0, 0, 1] * 3)
    assert_array_equal(annotator[two], [1, 2, 2] * 3)
    assert_array_equal(row[one], rows)


def test_with_many_classes_fewer_pairs_of_answers_are_compared(rng, monkeypatch):
    answers, *_ = crowd(rng, 400, 4, 5, per_row=4)
    found = infer_from_annotators(None, answers)
    equal = answers._replace(label=np.zeros_like(answers.label))
    assert {pair.n_rows for pair in agreeing_pairs(found, equal)} == {400}
    monkeypatch.setattr(agreement, "MAX_NUMBERS", 6 * 100 * 5)  # pairs × rows × classes
    assert {pair.n_rows for pair in agreeing_pairs(found, equal)} == {100}


def test_expected_numbers_do_not_depend_on_the_size_of_blocks(rng, monkeypatch):
    answers, *_ = crowd(rng, 300, 6, 4, per_row=4)
    found = infer_from_annotators(None, answers)
    at_once = agreeing_pairs(found, answers, level=np.inf)
    monkeypatch.setattr(agreement, "BLOCK", 4 * 7)  # numbers of seven pairs
    assert at_once
    assert agreeing_pairs(found, answers, level=np.inf) == at_once


@pytest.mark.parametrize("power", [1.0, 0.4])
def test_the_expected_equal_is_that_of_annotators_who_both_answered(power):
    """Two annotators who may leave out a row, and whose answers leave the class uncertain."""
    transitions = np.array([[[0.5, 0.1, 0.4], [0.2, 0.6, 0.2]], [[0.3, 0.3, 0.4], [0.1, 0.2, 0.7]]])
    answers = Answers(np.array([0, 0]), np.array([0, 1]), np.array([0, 1]), 1, 2, 3, 2)
    given = np.array([0.3, 0.7]) * (transitions[0, :, 0] * transitions[1, :, 1]) ** power
    found = SimpleNamespace(
        lazy_transitions=transitions.copy(),
        class_proba_given_label=(given / given.sum())[None],
        powers=Powers(1.0, power),
    )
    places = (np.array([k]) for k in (0, 0, 1, 0, 0, 1))
    equal = (transitions[0] * transitions[1])[:, :2].sum(axis=1)
    both = transitions[0, :, :2].sum(axis=1) * transitions[1, :, :2].sum(axis=1)
    expected = ([0.3, 0.7] @ equal) / ([0.3, 0.7] @ both)
    assert_allclose(_expected_equal(found, answers, *places), [expected])


def test_p_values_are_probabilities_for_any_number_of_pairs(rng, monkeypatch):
    answers, _, _ = crowd(rng, 200, 8, 3, per_row=5)
    monkeypatch.setattr(agreement, "MIN_EXCESS", -1)
    pairs = agreeing_pairs(infer_from_annotators(None, answers), answers, level=1)
    assert len(pairs) == 8 * 7 / 2
    assert max(pair.p_value for pair in pairs) == 1
