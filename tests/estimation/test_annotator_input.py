"""Answers and specified transitions that do not fit are refused with a reason."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from looselabels.annotations import Answers
from looselabels.estimation.annotator_input import read_designs, sort_into_slots
from looselabels.estimation.annotators import infer_from_annotators

ANSWERS = Answers(np.array([0, 0, 1]), np.array([0, 1, 0]), np.array([0, 0, 1]), 2, 2, 2)


def test_a_slot_is_an_annotator_with_a_label_that_it_used():
    votes, annotator, label = sort_into_slots(ANSWERS)
    assert_array_equal(annotator, [0, 0, 1])
    assert_array_equal(label, [0, 1, 0])
    assert_array_equal(votes.toarray(), [[1, 0, 1], [0, 1, 0]])


def test_annotators_with_equal_designs_are_a_group():
    answers = ANSWERS._replace(n_annotators=4)
    coarse = np.array([[1.0, 0.0], [1.0, 0.0]])
    design, group = read_designs({1: coarse, 3: coarse.copy()}, answers, None, {})
    assert_array_equal(group, [0, 1, 0, 1])
    assert_array_equal(design, [np.eye(2), coarse])


def test_rules_that_abstain_have_a_design_of_the_labels_that_they_use():
    answers = ANSWERS._replace(n_labels=3, missing_label=2)
    design, group = read_designs(None, answers, None, {})
    assert_array_equal(group, [0, 1])
    assert_array_equal(design[0], [[0.5, 0, 0.5], [0, 0.5, 0.5]])
    assert_array_equal(design[1], [[0.5, 0, 0.5], [0, 0, 1]])


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
        ({"sample_weight": [1, 2, 3]}, r"sample_weight has shape \(3,\); 2 rows"),
    ],
)
def test_what_does_not_fit_is_named(arguments, message):
    class_proba = arguments.pop("class_proba", None)
    with pytest.raises(ValueError, match=message):
        infer_from_annotators(class_proba, ANSWERS, **arguments)
