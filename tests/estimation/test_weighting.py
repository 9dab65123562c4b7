"""Conversion between the weighted distribution and the real one."""

import numpy as np
import pytest
from hypothesis import given
from numpy.testing import assert_allclose

from looselabels import Transition, infer
from looselabels._rows import on_simplex
from looselabels.datasets import make_gaussians
from looselabels.estimation.weighting import (
    class_weights,
    multiply_weights,
    real_label_proba,
    real_transition,
    weighted_transition,
)
from looselabels.inference import condition_on_label
from tests.strategies import positive_rows

WEIGHTS = np.array([5.0, 0.2, 1.0])


@given(class_proba=positive_rows(5, 3), transition=positive_rows(3, 3))
def test_weighted_classes_and_transition_give_the_weighted_labels(class_proba, transition):
    # p_w(s|x) ∝ w_s p(s|x): once by the classes, once directly
    weighted = on_simplex(class_proba * class_weights(transition, WEIGHTS))
    direct = on_simplex(class_proba @ transition * WEIGHTS)
    assert_allclose(weighted @ weighted_transition(transition, WEIGHTS), direct)


@given(class_proba=positive_rows(5, 3), transition=positive_rows(3, 3))
def test_dividing_by_class_weights_reverts_multiplying(class_proba, transition):
    factor = class_weights(transition, WEIGHTS)
    weighted = on_simplex(class_proba * factor)
    assert_allclose(on_simplex(weighted / factor), class_proba)


@given(class_proba=positive_rows(5, 3), transition=positive_rows(3, 3))
def test_conditioning_on_the_label_is_the_same_in_both_distributions(class_proba, transition):
    index = np.array([0, 1, 2, 0, 1])
    weighted = on_simplex(class_proba * class_weights(transition, WEIGHTS))
    assert_allclose(
        condition_on_label(weighted, weighted_transition(transition, WEIGHTS), index),
        condition_on_label(class_proba, transition, index),
    )


@given(transition=positive_rows(3, 3))
def test_the_real_transition_reverts_the_weighted_one(transition):
    weighted = weighted_transition(transition, WEIGHTS)
    assert_allclose(real_transition(weighted, transition, WEIGHTS), transition)


def test_a_label_of_weight_zero_keeps_its_column_of_the_design():
    design = np.array([[0.2, 0.3, 0.5], [0.1, 0.6, 0.3]])
    weights = np.array([2.0, 1.0, 0.0])
    fitted = np.array([[0.5, 0.5, 0.0], [0.2, 0.8, 0.0]])
    found = real_transition(fitted, design, weights)
    assert_allclose(found[:, 2], design[:, 2])
    # by hand: 0.5 / 2 to 0.5 / 1 in class 0, 0.2 / 2 to 0.8 / 1 in class 1
    assert_allclose(found[:, :2], [[0.5 / 3, 1 / 3], [0.7 / 9, 5.6 / 9]])


@given(label_proba=positive_rows(5, 3))
def test_real_label_proba_reverts_the_weights_among_the_chosen_labels(label_proba):
    weighted = on_simplex(label_proba * WEIGHTS)
    assert_allclose(real_label_proba(weighted, WEIGHTS, [0, 1, 2]), label_proba)
    expected = on_simplex(label_proba[:, [2, 0]])
    assert_allclose(real_label_proba(weighted, WEIGHTS, [2, 0]), expected)


def test_without_weights_nothing_changes():
    transition = np.array([[0.2, 0.8], [0.9, 0.1]])
    assert weighted_transition(transition, None) is transition
    assert real_transition(transition, np.eye(2), None) is transition
    assert class_weights(transition, None) is None
    assert_allclose(real_label_proba(transition, None, [0, 1]), transition)


def test_a_class_that_would_lose_all_its_weight_is_named():
    with pytest.raises(ValueError, match="every label of class 1"):
        weighted_transition(np.array([[0.5, 0.5], [0.0, 1.0]]), np.array([1.0, 0.0]))


def test_inference_in_the_weighted_distribution_finds_the_real_classes():
    # p(label | x) of Gaussians has a closed form, in the weighted distribution too
    data = make_gaussians(300, random_state=0)
    design = Transition.partial(data.classes[:3], labeled=0.05, negative="other").with_noise(0.1)
    weights = np.array([20.0, 10.0, 15.0, 0.5])
    label_proba = on_simplex(data.class_proba @ design.proba * weights)
    found = infer(label_proba, weighted_transition(design.proba, weights))
    real = on_simplex(found.class_proba / class_weights(design.proba, weights))
    assert_allclose(real, data.class_proba, atol=1e-7)


def test_weights_that_are_none_are_ones():
    two, three = np.full(4, 2.0), np.full(4, 3.0)
    assert multiply_weights(None, None) is None
    assert_allclose(multiply_weights(two, None), two)
    assert_allclose(multiply_weights(None, three), three)
    assert_allclose(multiply_weights(two, three), 6)
