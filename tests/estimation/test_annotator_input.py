"""Answers and specified transitions that do not fit are refused with a reason."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from looselabels.annotations import Answers
from looselabels.estimation.annotator_input import (
    _restrict,
    label_sets,
    read_designs,
    sort_into_slots,
)
from looselabels.estimation.annotators import infer_from_annotators

ANSWERS = Answers(np.array([0, 0, 1]), np.array([0, 1, 0]), np.array([0, 0, 1]), 2, 2, 2)


def test_a_slot_is_an_annotator_with_a_label_that_it_used():
    votes, annotator, label = sort_into_slots(ANSWERS)
    assert_array_equal(annotator, [0, 0, 1])
    assert_array_equal(label, [0, 1, 0])
    assert_array_equal(votes.toarray(), [[1, 0, 1], [0, 1, 0]])


def test_an_answer_that_is_listed_as_missing_has_no_slot():
    answers = ANSWERS._replace(label=np.array([0, 2, 1]), n_labels=3, missing_label=2)
    votes, annotator, label = sort_into_slots(answers)
    assert_array_equal(annotator, [0, 0])
    assert_array_equal(label, [0, 1])
    assert_array_equal(votes.toarray(), [[1, 0], [0, 1]])


@pytest.mark.parametrize("n_classes", [2, 3, 4])
def test_labels_name_the_first_classes_and_a_class_without_a_name_has_any_label(n_classes):
    answers = table_of_answers([[0, 1], [2, 1], [0, 2]])
    _, design, *_ = read_designs(None, answers, np.full((3, n_classes), 1 / n_classes), {})
    expected = np.vstack([np.eye(3), np.full((1, 3), 1 / 3)])[:n_classes]
    assert_allclose(design, [expected])


def test_a_label_set_that_the_design_does_not_have_leaves_the_design_of_other_labels():
    design = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
    found = _restrict(design, np.array([False, False, True]))
    assert_allclose(found, [[0.5, 0.5, 0], [0.5, 0.5, 0]])


def test_annotators_with_equal_designs_are_a_group():
    answers = ANSWERS._replace(n_annotators=4)
    coarse = np.array([[1.0, 0.0], [1.0, 0.0]])
    group, design, right, _ = read_designs({1: coarse, 3: coarse.copy()}, answers, None, {})
    assert_array_equal(group, [0, 1, 0, 1])
    assert_array_equal(design, [np.eye(2), coarse])
    assert_array_equal(right, design > 0)


def test_rules_that_abstain_have_a_design_of_the_labels_that_they_use():
    answers = ANSWERS._replace(n_labels=3, missing_label=2)
    group, design, *_ = read_designs(None, answers, None, {})
    assert_array_equal(group, [0, 1])
    assert_array_equal(design[0], [[0.5, 0, 0.5], [0, 0.5, 0.5]])
    assert_array_equal(design[1], [[0.5, 0, 0.5], [0, 0, 1]])


def test_rules_keep_their_label_sets_if_the_meaning_of_labels_is_specified():
    answers = ANSWERS._replace(n_labels=3, missing_label=2)
    group, design, *_ = read_designs(np.array([[0.1, 0, 0.9], [0, 0.2, 0.8]]), answers, None, {})
    assert_array_equal(group, [0, 1])
    assert_allclose(design[0], [[0.1, 0, 0.9], [0, 0.2, 0.8]])
    assert_allclose(design[1], [[0.1, 0, 0.9], [0, 0, 1]])


def table_of_answers(table):
    """Return the answers of a full table."""
    table = np.asarray(table)
    row, annotator = np.indices(table.shape).reshape(2, -1)
    return Answers(row, annotator, table.ravel(), *table.shape, int(table.max()) + 1)


CLASSES = np.arange(90) % 3
TWO_LABELS = np.where(CLASSES == 2, np.arange(90) % 2, CLASSES)  # a forced choice for class 2


def test_a_label_set_without_a_class_has_equal_labels_for_it_and_none_is_right():
    answers = table_of_answers(np.column_stack([CLASSES] * 3 + [TWO_LABELS] * 2))
    group, design, right, _ = read_designs(None, answers, None, {})
    assert_array_equal(group, [0, 0, 0, 1, 1])
    assert_allclose(design[1], [[1, 0, 0], [0, 1, 0], [0.5, 0.5, 0]])
    assert_array_equal(right, [np.eye(3), np.eye(3)])


def test_coarse_labels_are_what_remains_of_the_meanings_of_all_labels():
    meaning = np.array([[0.5, 0, 0, 0.5], [0, 0.5, 0, 0.5], [0, 0, 1, 0]])  # label 3: class 0 or 1
    answers = table_of_answers(np.column_stack([CLASSES] * 3 + [np.where(CLASSES < 2, 3, 2)]))
    group, design, *_ = read_designs(meaning, answers, None, {})
    assert_array_equal(group, [0, 0, 0, 1])
    assert_allclose(design[1], [[0, 0, 0, 1], [0, 0, 0, 1], [0, 0, 1, 0]])


@pytest.mark.parametrize("n_rows", [3, 20])
def test_few_answers_leave_no_label_out(n_rows):
    answers = table_of_answers(np.column_stack([CLASSES] * 3 + [TWO_LABELS])[:n_rows])
    assert label_sets(answers).all()


def test_a_label_that_others_give_to_other_rows_is_not_left_out():
    own_rows = np.where(CLASSES < 2, CLASSES, -1)
    answers = table_of_answers(np.column_stack([CLASSES] * 3 + [own_rows]))
    keep = answers.label >= 0
    answers = answers._replace(**{n: getattr(answers, n)[keep] for n in Answers._fields[:3]})
    assert label_sets(answers).all()


def test_an_annotator_with_a_specified_design_keeps_it():
    answers = table_of_answers(np.column_stack([CLASSES] * 3 + [TWO_LABELS]))
    group, design, *_ = read_designs({3: np.full((3, 3), 1 / 3)}, answers, None, {})
    assert_allclose(design[group[3]], 1 / 3)
    group, design, *_ = read_designs(None, answers, None, {3: np.eye(3)})
    assert_array_equal(group, 0)  # its transition is fixed, and nobody shrinks to its design


def test_a_specified_transition_with_a_strength_is_the_design_of_its_annotator():
    answers = table_of_answers(np.column_stack([CLASSES] * 3))
    belief = np.array([[0.8, 0.2, 0], [0, 1, 0], [0.1, 0.1, 0.8]])
    group, design, right, strength = read_designs(None, answers, None, {1: belief}, 7.0)
    assert_array_equal(group, [0, 1, 0])
    assert_allclose(design, [np.eye(3), belief], atol=1e-9)
    assert_array_equal(right, [np.eye(3), np.eye(3)])
    assert_array_equal(strength, [np.nan, 7])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"class_proba": np.full((3, 2), 0.5)}, "class_proba has 3 rows; the answers are for 2"),
        ({"class_proba": [[0.5, 0.6], [1, 0]]}, "Each row of class_proba must sum to 1; row 0"),
        ({"transitions": {2: np.eye(2)}}, "transitions names annotator 2; the 2 annotators"),
        ({"transitions": {0: np.eye(3)}}, r"transitions\[0\] has 3 columns; there are 2 labels"),
        ({"transitions": {0: [[1, 1], [0, 1]]}}, r"Each row of transitions\[0\] must sum to 1"),
        ({"designs": {1: [[0, 1], [0, 1]]}}, "annotator 1 answered label 0, which its design"),
        (
            {"class_proba": np.full((2, 3), 1 / 3), "transitions": {0: np.eye(2)}},
            "must be for the same classes; they are for 2 and 3 classes",
        ),
        ({"transitions": {0: np.eye(2)}, "strength": 0}, "strength must be positive; it is 0"),
        ({"sample_weight": [1, 2, 3]}, r"sample_weight has shape \(3,\); 2 rows"),
    ],
)
def test_what_does_not_fit_is_named(arguments, message):
    class_proba = arguments.pop("class_proba", None)
    with pytest.raises(ValueError, match=message):
        infer_from_annotators(class_proba, ANSWERS, **arguments)
