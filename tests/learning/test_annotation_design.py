"""What is specified about annotators, and what their answers mean."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from looselabels import Transition
from looselabels.annotations import Annotations
from looselabels.estimation.annotator_powers import Powers
from looselabels.learning.annotation_design import AnnotatorTransitions, design_annotations

TABLE = np.array([["cat", "dog"], ["dog", None], [None, "cat"]], dtype=object)


def test_by_default_each_label_is_a_class():
    design = design_annotations(Annotations.from_table(TABLE))
    assert design.classes == ("cat", "dog")
    assert_array_equal(design.meaning, np.eye(2))
    assert_array_equal(design.n_answers, [2, 2])
    assert_array_equal(design.has_answers, [True, True, True])


def test_silence_that_is_a_label_is_no_class():
    design = design_annotations(Annotations.from_table(TABLE, missing_is_label=True))
    assert design.classes == ("cat", "dog")
    assert_array_equal(design.meaning, [[0.5, 0, 0.5], [0, 0.5, 0.5]])


def test_specified_transitions_are_matched_by_names():
    first = Transition([[0.9, 0.1], [0.2, 0.8]], ["dog", "cat"], ["dog", "cat"])
    other = Transition([[0.7, 0.3, 0], [0, 0, 1]], ["cat", "dog"], ["cat", "pet", "dog"])
    design = design_annotations(Annotations.from_table(TABLE), {0: first, 1: other})
    assert design.classes == ("dog", "cat")
    assert design.annotations.labels == ("cat", "dog", "pet")
    assert_array_equal(design.transitions[0], [[0.1, 0.9, 0], [0.8, 0.2, 0]])
    assert_array_equal(design.transitions[1], [[0, 1, 0], [0.7, 0, 0.3]])
    assert_array_equal(design.meaning, [[0, 1, 0], [1, 0, 0]])


def test_copies_count_once():
    design = design_annotations(Annotations.from_table(TABLE)).count_once(np.array([0, 0]))
    assert_array_equal(design.annotations.answers.annotator, [0, 0, 0])
    assert_array_equal(design.annotations.answers.label, [0, 1, 0])
    assert_array_equal(design.n_answers, [2, 2])


def test_a_table_of_new_rows_multiplies_the_transitions():
    proba = np.array([[[0.9, 0.1], [0.4, 0.6]], [[0.8, 0.2], [0.5, 0.5]]])
    found = AnnotatorTransitions((0, 1), proba, ("cat", "dog"), ("cat", "dog"), np.arange(2))
    given = found.condition(np.array([[0.3, 0.7]]), TABLE)
    joint = [[0.3 * 0.9 * 0.2, 0.7 * 0.4 * 0.5], [0.3 * 0.1, 0.7 * 0.6], [0.3 * 0.8, 0.7 * 0.5]]
    assert_allclose(given, joint / np.sum(joint, axis=1, keepdims=True))
    assert list(found) == [0, 1]
    assert repr(found) == "AnnotatorTransitions((0, 1))"


def test_dependent_evidence_has_powers():
    proba = np.array([[[0.9, 0.1], [0.4, 0.6]], [[0.8, 0.2], [0.5, 0.5]]])
    names = (0, 1), proba, ("cat", "dog"), ("cat", "dog"), np.arange(2)
    found = AnnotatorTransitions(*names, Powers(0.8, 0.5))
    given = found.condition(np.array([[0.3, 0.7]]), TABLE, np.array([0.4, 0.6]))
    of_x = np.array([0.4 * (0.3 / 0.4) ** 0.8, 0.6 * (0.7 / 0.6) ** 0.8])
    joint = of_x * np.sqrt([[0.9 * 0.2, 0.4 * 0.5], [0.1, 0.6], [0.8, 0.5]])
    assert_allclose(given, joint / np.sum(joint, axis=1, keepdims=True))


def test_a_zero_of_class_proba_is_no_promise_but_one_of_a_transition_is():
    proba = np.array([np.eye(2), [[0.6, 0.4], [0.4, 0.6]]])
    found = AnnotatorTransitions((0, 1), proba, ("cat", "dog"), ("cat", "dog"), np.arange(2))
    assert_allclose(found.condition(np.array([[0.0, 1.0]]), TABLE)[0], [1, 0], atol=1e-9)


@pytest.mark.parametrize("shares", [{"cat": 0.3, "dog": 0.7}, [0.3, 0.7]])
def test_class_shares_are_read_by_name_or_in_order(shares):
    design = design_annotations(Annotations.from_table(TABLE), class_prior=shares)
    assert_allclose(design.class_prior, [0.3, 0.7])
