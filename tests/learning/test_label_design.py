"""What is specified about labels, what their counts imply, what is left open."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from looselabels import Transition
from looselabels.learning.label_design import (
    design_labels,
    implied_class_prior,
    uninformative_weights,
)

PETS = ["cat", "dog", None, None, "cat", "dog", None, None]


@pytest.mark.parametrize(
    ("specified", "label_rates", "noise", "class_prior", "transition"),
    [
        ({}, "implied", "specified", "implied", "implied"),
        ({"noise": 0.1}, "implied", "specified", "implied", "implied"),
        ({"noise": "estimate"}, "implied", "estimated", "estimated", "estimated"),
        ({"negative": "bird"}, "estimated", "specified", "estimated", "estimated"),
        (
            {"negative": "bird", "class_prior": {"cat": 0.3, "dog": 0.3}},
            *("implied", "specified", "specified", "implied"),
        ),
        (
            {"negative": "bird", "class_prior": "density-ratio"},
            *("estimated", "specified", "estimated", "estimated"),
        ),
        (
            {"transition": Transition.partial(["cat", "dog"], labeled=0.5)},
            *("specified", "specified", "implied", "specified"),
        ),
        (
            {"transition": Transition.partial(["cat", "dog"], labeled=0.5), "strength": 5},
            *("specified", "specified", "implied", "estimated"),
        ),
        ({"class_prior": [0.5, 0.5]}, "implied", "specified", "specified", "implied"),
    ],
)
def test_the_source_of_each_number(specified, label_rates, noise, class_prior, transition):
    found = design_labels(PETS, **specified).sources
    assert found == (label_rates, noise, class_prior, transition)


def test_the_values_are_immutable():
    design = design_labels(PETS)
    with pytest.raises(AttributeError):
        design.noise = 0.5
    with pytest.raises(AttributeError):
        design.sources.noise = "estimated"


def test_a_sequence_of_priors_leaves_out_the_negative_class():
    design = design_labels(PETS, negative="bird", class_prior=[0.3, 0.4])
    assert_allclose(design.class_prior, [0.3, 0.4, 0.3])


def test_uninformative_labels_get_no_weight():
    assert_array_equal(uninformative_weights(design_labels(PETS)), [1, 1, 0])
    assert uninformative_weights(design_labels(["cat", "dog"])) is None
    informative = design_labels(PETS, negative="bird", class_prior=[0.3, 0.4])
    assert uninformative_weights(informative) is None


def test_costs_are_the_weights_of_the_transition():
    design = design_labels(PETS, negative="bird", class_prior=[0.3, 0.4], label_weights="costs")
    assert_allclose(design.label_weights, design.transition.label_weights([0.3, 0.4, 0.3]))


def test_equal_label_weights_are_none():
    assert design_labels(["cat", "dog"], label_weights=[2, 2]).label_weights is None


def test_label_counts_imply_the_class_prior():
    transition = Transition.partial(["cat"], labeled=0.5, negative="dog")
    shares = np.array([0.3, 0.7])  # half of the cats are labeled: 60 % are cats
    assert_allclose(implied_class_prior(transition, shares), [0.6, 0.4])
