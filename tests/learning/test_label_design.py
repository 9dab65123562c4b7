"""What is specified about labels, what their counts imply, what is left open."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from looselabels import Transition
from looselabels.learning.copies import RowGroups
from looselabels.learning.label_design import (
    design_labels,
    implied_class_prior,
    uninformative_weights,
)

PETS = ["cat", "dog", None, None, "cat", "dog", None, None]


@pytest.mark.parametrize(
    ("specified", "label_rates", "noise", "class_prior", "transition"),
    [
        ({}, "implied", "estimated", "estimated", "estimated"),
        ({"noise": 0}, "implied", "specified", "implied", "implied"),
        ({"strength": 5}, "implied", "assumed", "implied", "estimated"),
        ({"noise": 0.1}, "implied", "specified", "implied", "implied"),
        ({"noise": "estimate"}, "implied", "estimated", "estimated", "estimated"),
        ({"negative": "bird"}, "estimated", "estimated", "estimated", "estimated"),
        ({"negative": "bird", "noise": 0}, "estimated", "specified", "estimated", "estimated"),
        (
            {"negative": "bird", "class_prior": {"cat": 0.3, "dog": 0.3}},
            *("estimated", "estimated", "specified", "estimated"),
        ),
        (
            {"negative": "bird", "class_prior": {"cat": 0.3, "dog": 0.3}, "noise": 0},
            *("implied", "specified", "specified", "implied"),
        ),
        (
            {"negative": "bird", "class_prior": "density-ratio"},
            *("estimated", "assumed", "estimated", "estimated"),
        ),
        (
            {"transition": Transition.partial(["cat", "dog"], labeled=0.5)},
            *("specified", "specified", "implied", "specified"),
        ),
        (
            {"transition": Transition.partial(["cat", "dog"], labeled=0.5), "strength": 5},
            *("specified", "specified", "implied", "estimated"),
        ),
        ({"class_prior": [0.5, 0.5]}, "implied", "estimated", "specified", "estimated"),
        ({"class_prior": [0.5, 0.5], "noise": 0}, "implied", "specified", "specified", "implied"),
    ],
)
def test_the_source_of_each_number(specified, label_rates, noise, class_prior, transition):
    found = design_labels(PETS, **specified).sources
    assert found == (label_rates, noise, class_prior, transition)


@pytest.mark.parametrize("noise", [None, 0.2])
def test_class_shares_of_labels_that_are_all_there_are_not_label_rates(noise):
    y, shares = ["cat"] * 7 + ["dog"] * 3, {"cat": 0.6, "dog": 0.4}
    design = design_labels(y, class_prior=shares, noise=noise)
    assert design.transition.labels == ("cat", "dog")
    assert_allclose(design.class_prior, [0.6, 0.4])
    assert design.sources.label_rates == "implied"
    with pytest.raises(ValueError, match=r"'cat'.*must be at least that"):
        design_labels(y, class_prior=shares, noise=0)


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
    informative = design_labels(PETS, negative="bird", class_prior=[0.3, 0.4], noise=0)
    assert uninformative_weights(informative) is None


def test_costs_are_the_weights_of_the_transition():
    design = design_labels(PETS, negative="bird", class_prior=[0.3, 0.4], label_weights="costs")
    assert_allclose(design.label_weights, design.transition.label_weights([0.3, 0.4, 0.3]))


def test_equal_label_weights_are_none():
    assert design_labels(["cat", "dog"], label_weights=[2, 2]).label_weights is None


def test_training_weights_are_explicit_ones_or_leave_out_uninformative_labels():
    assert_array_equal(design_labels(PETS).training_weights, [1, 1, 0])
    assert design_labels(PETS, label_weights=1).training_weights is None
    assert_array_equal(design_labels(PETS, label_weights=[3, 2, 1]).training_weights, [3, 2, 1])


def test_label_counts_imply_the_class_prior():
    transition = Transition.partial(["cat"], labeled=0.5, negative="dog")
    shares = np.array([0.3, 0.7])  # half of the cats are labeled: 60 % are cats
    assert_allclose(implied_class_prior(transition, shares), [0.6, 0.4])


# ---------------------------------------------------------------------------------- known classes


def test_known_classes_are_positions_of_classes_and_go_along_with_rows():
    known = [None, "cat", None, "dog", None, None, np.nan, None]
    design = design_labels(PETS).with_known_classes(known)
    assert_array_equal(design.class_index, [-1, 0, -1, 1, -1, -1, -1, -1])
    assert_array_equal(design.take([3, 1]).class_index, [1, 0])
    more = design.with_known_classes(["dog", "dog", *[None] * 6])
    assert_array_equal(more.class_index, [1, 1, -1, 1, -1, -1, -1, -1])


def test_nothing_known_leaves_the_design_as_it_is():
    design = design_labels(PETS)
    assert design.with_known_classes(None) is design
    assert design.with_known_classes([None] * 8) is design


def test_unknown_classes_and_columns_of_another_length_are_refused():
    design = design_labels(PETS)
    with pytest.raises(ValueError, match=r"known_classes contains \['cow'\]; the classes of"):
        design.with_known_classes(["cow", *[None] * 7])
    with pytest.raises(ValueError, match="known_classes has 2 rows; y has 8"):
        design.with_known_classes(["cat", None])


def test_copies_of_which_one_was_reviewed_are_counted_separately():
    copies = np.array([0, 0, 0, 1])
    groups = RowGroups(copies, copies)
    design = design_labels(["cat", "cat", "cat", "dog"])._replace(groups=groups)
    assert_allclose(design.counts, [1, 0, 0, 1])
    reviewed = design.with_known_classes([None, "dog", None, None])
    assert_allclose(reviewed.counts, [2 / 3, 1 / 3, 0, 1])


@pytest.mark.parametrize(
    ("y", "label"),
    [
        ([-1, 0, 1, 0], "-1 in 1 rows"),
        (["a", "nan", "b", "nan"], "'nan' in 2 rows"),
        (["a", "NA", "b", "NA"], "'NA' in 2 rows"),
        (["a", "b", "?"], r"'\?' in 1 rows"),
        (["a", "b", "Unknown "], "'Unknown ' in 1 rows"),
    ],
)
def test_a_label_that_looks_missing_is_warned_about(y, label):
    with pytest.warns(UserWarning, match=f"y contains the label {label}; .* replace it with None"):
        assert len(design_labels(y).transition.classes) == 3
    design_labels(y, transition=Transition.identity(sorted(set(y))))  # it is a class: no warning


@pytest.mark.parametrize("y", [[-1, 1, 1], [-1, 0, 1, None], ["a", "none of these"]])
def test_other_labels_are_not_taken_for_missing_ones(y):
    design_labels(y)
