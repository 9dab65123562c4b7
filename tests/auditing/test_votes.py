"""Answers compared with each other: numbers that follow by hand, and a second route by loops."""

from itertools import combinations

import numpy as np
import pytest

from looselabels.annotations import Annotations
from looselabels.auditing.votes import agreement, constant_annotators, rows_unlike_vote
from tests.auditing.crowds import crowd


def pairs_of(annotations):
    """Yield (row, annotator, label, annotator, label) of all pairs of answers to one row."""
    answers = list(zip(*(column.tolist() for column in annotations.answers[:3]), strict=True))
    for one, other in combinations(answers, 2):
        if one[0] == other[0]:
            yield (*one, *other[1:])


def test_agreement_is_that_of_all_pairs():
    annotations, _ = crowd(60)
    rng = np.random.default_rng(0)
    transitions, proba = rng.dirichlet((1, 1), (3, 2)), rng.dirichlet((1, 1), 60)
    found = agreement(annotations.answers, proba, transitions)
    pairs = list(pairs_of(annotations))
    equal = [(transitions[a] * transitions[b]).sum(axis=1) @ proba[i] for i, a, _, b, _ in pairs]
    assert found["n_pairs"] == len(pairs)
    assert found["observed"] == pytest.approx(np.mean([s == t for *_, s, _, t in pairs]))
    assert found["expected"] == pytest.approx(np.mean(equal))


def test_independent_annotators_agree_as_often_as_expected():
    annotations, truth = crowd(4000)
    transitions = np.array([[[p, 1 - p], [1 - p, p]] for p in (0.9, 0.8, 0.7)])
    found = agreement(annotations.answers, np.eye(2)[truth], transitions)
    assert found["observed"] == pytest.approx(found["expected"], abs=0.02)
    assert found["chance"] == pytest.approx(0.5, abs=0.01)


def test_a_large_table_is_sampled(monkeypatch):
    annotations, truth = crowd(4000)
    transitions = np.array([[[p, 1 - p], [1 - p, p]] for p in (0.9, 0.8, 0.7)])
    exact = agreement(annotations.answers, np.eye(2)[truth], transitions)["expected"]
    monkeypatch.setattr("looselabels.auditing.votes.MAX_NUMBERS", 10_000)
    sampled = agreement(annotations.answers, np.eye(2)[truth], transitions)["expected"]
    assert sampled != exact
    assert sampled == pytest.approx(exact, abs=0.02)


def test_one_answer_per_row_gives_no_agreement():
    annotations = Annotations.from_triples([0, 1], ["ann", "bob"], ["cat", "dog"])
    found = agreement(annotations.answers, np.eye(2), np.full((2, 2, 2), 0.5))
    assert found == {"n_pairs": 0, "observed": None, "expected": None, "chance": None}


def test_agreement_is_expected_among_answers_only_if_missing_is_a_label():
    # both rules answer half of the rows, and are always right if they do
    rules = np.array([["cat", "cat"], ["cat", None], [None, "dog"], ["dog", "dog"]] * 2, object)
    annotations = Annotations.from_table(rules, missing_is_label=True)
    transitions = np.array([[[0.5, 0, 0.5], [0, 0.5, 0.5]]] * 2)
    proba = np.eye(2)[[0, 0, 1, 1, 0, 0, 1, 1]]
    found = agreement(annotations.answers, proba, transitions)
    assert (found["observed"], found["expected"]) == (1, 1)


# ------------------------------------------------------------------------------ votes and constants


def test_ties_and_rows_without_answers_do_not_contradict_the_vote():
    table = [["cat", "cat", "dog"], ["cat", "dog", None], ["dog", "dog", None], [None, None, None]]
    annotations = Annotations.from_table(np.array(table, dtype=object))
    dogs = np.ones(4, int)
    assert rows_unlike_vote(annotations.answers, dogs, np.array([0, 1])).tolist() == [0]


def test_an_annotator_who_always_says_the_same_is_found():
    annotations, truth = crowd(accuracies=(0.9, 0.8, 0.7))
    table = annotations.to_frame().astype(object)
    table["lazy"] = "cat"
    table["brief"] = [*["cat"] * 2, *[None] * (len(table) - 2)]  # two equal answers are chance
    annotations = Annotations.from_table(table)
    proba, typical = np.eye(2)[truth], np.array([[0.8, 0.2], [0.2, 0.8]])
    lazy = annotations.annotators.index("lazy")
    assert constant_annotators(annotations.answers, proba, typical) == [(lazy, 0, 200)]


def test_equal_answers_to_rows_of_one_class_are_right_and_not_lazy():
    table = np.array([["cat", "cat"]] * 50 + [["dog", None]] * 50, object)
    annotations = Annotations.from_table(table)
    proba, typical = np.eye(2)[[0] * 50 + [1] * 50], np.array([[0.95, 0.05], [0.05, 0.95]])
    assert constant_annotators(annotations.answers, proba, typical) == []


def test_rules_that_vote_for_one_class_are_not_constant():
    """The same answers are a finding if nobody could have abstained."""
    table = np.array([["cat", None]] * 30 + [[None, "dog"]] * 30, dtype=object)
    proba, votes = np.repeat(np.eye(2), 30, axis=0), np.array([[0.5, 0.0, 0.5], [0.0, 0.5, 0.5]])
    rules = Annotations.from_table(table, missing_is_label=True)
    assert constant_annotators(rules.answers, proba, votes) == []
    people = Annotations.from_table(table)
    unsure = np.full((2, 2), 0.5)
    assert [found[:2] for found in constant_annotators(people.answers, proba, unsure)] == [
        (0, 0),
        (1, 1),
    ]


def test_agreement_is_known_if_a_rule_never_votes_in_a_class():
    table = np.array([["cat", "cat"], ["dog", "dog"]] * 5, dtype=object)
    rules = Annotations.from_table(table, missing_is_label=True)
    transitions = np.array([[[0.5, 0.0, 0.5], [0.0, 0.0, 1.0]]] * 2)
    found = agreement(rules.answers, np.tile(np.eye(2), (5, 1)), transitions)
    assert found["expected"] == pytest.approx(0.5)  # rows of the first class only
