"""The examples of the paper. Numbers that the paper does not give are marked as chosen here."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from looselabels.transition import Transition

# ---------------------------------------------------------------------------- section 3.2, figure 1


def test_panel_a_binary_supervised():
    t = Transition.identity(["positive", "negative"])
    assert_allclose(t.proba, [[1, 0], [0, 1]])


def test_panel_b_positive_unlabeled():
    # "10% of the positive samples are labelled, while the remaining 90% and all of the negative
    # class are unlabelled"
    t = Transition.partial(["positive"], labeled=0.1, negative="negative")
    assert_allclose(t.proba, [[0.1, 0.9], [0, 1]])
    assert (t.classes, t.labels) == (("positive", "negative"), ("positive", None))


def test_panel_c_binary_semi_supervised():
    t = Transition.partial(["a", "b"], labeled=0.1)  # rate chosen here
    assert_allclose(t.proba, [[0.1, 0, 0.9], [0, 0.1, 0.9]])


def test_panel_d_semi_supervised_with_a_negative_class():
    t = Transition.partial(["a", "b"], labeled=0.1, negative="-")  # rate chosen here
    assert_allclose(t.proba, [[0.1, 0, 0.9], [0, 0.1, 0.9], [0, 0, 1]])


def test_panel_e_several_positive_classes_and_a_negative_one():
    rates = [0.1, 0.2, 0.3]  # chosen here
    t = Transition.partial(["a", "b", "c"], labeled=rates, negative="-")
    assert_allclose(t.proba, [[0.1, 0, 0, 0.9], [0, 0.2, 0, 0.8], [0, 0, 0.3, 0.7], [0, 0, 0, 1]])


def test_panel_f_one_percent_of_the_labels_are_wrong():
    # "a 1% chance of mislabelling a sample": 10% of each class are labeled (chosen here); a share
    # of 0.1 · 0.01 gets one of the two other labels, and the other 90% stay unlabeled
    t = Transition.partial(["a", "b", "c"], labeled=0.1, negative="-").with_noise(0.01)
    right, wrong = 0.1 * 0.99, 0.1 * 0.01 / 2
    assert_allclose(
        t.proba,
        [
            [right, wrong, wrong, 0.9],
            [wrong, right, wrong, 0.9],
            [wrong, wrong, right, 0.9],
            [0, 0, 0, 1],
        ],
    )


def test_panel_f_where_the_negative_class_is_mislabeled_too():
    # "Of course the noise rate can differ across the matrix"
    t = Transition.partial(["a", "b"], labeled=0.1, negative="-").with_noise({"-": 0.01})
    assert_allclose(t.proba, [[0.1, 0, 0.9], [0, 0.1, 0.9], [0.005, 0.005, 0.99]])


# ---------------------------------------------------------------------------- section 3.4, T_ex

MEANINGS = {
    "s1": "dog",
    "s2": "cat",
    "s3": {"-": 0.8, "dog": 0.1, "cat": 0.1},
    "s4": ["-", "dog"],
}


def test_panel_g_data_integration_as_printed():
    # the printed T_ex follows from equal label counts, not from the sizes that the text states
    t = Transition.from_meanings(MEANINGS, classes=["-", "dog", "cat"])
    printed = [[0, 0, 0.62, 0.38], [0.63, 0, 0.06, 0.31], [0, 0.91, 0.09, 0]]
    assert_allclose(t.proba, printed, atol=0.005 + 1e-9)  # two decimals
    assert_allclose(t.proba[0], [0, 0, 8 / 13, 5 / 13])
    assert_allclose(t.proba[1], [10 / 16, 0, 1 / 16, 5 / 16])
    assert_allclose(t.proba[2], [0, 10 / 11, 1 / 11, 0])


def test_panel_g_data_integration_with_the_sizes_stated():
    # p(D1) = 0.1, split evenly over its two labels; p(D2) = 0.6; p(D3) = 0.3
    sizes = {"s1": 0.05, "s2": 0.05, "s3": 0.6, "s4": 0.3}
    t = Transition.from_meanings(MEANINGS, sizes, classes=["-", "dog", "cat"])
    expected = [[0, 0, 0.762, 0.238], [0.192, 0, 0.231, 0.577], [0, 0.455, 0.545, 0]]
    assert_allclose(t.proba, expected, atol=0.0005)


def test_panel_g_by_combining_the_three_data_sets():
    # p(data set | class) from the same numbers: p(class in D) · size of D, for each class
    web = Transition([[1.0]] * 3, ["-", "dog", "cat"], [None])
    canines = Transition([[1.0]] * 2, ["-", "dog"], ["canine"])
    combined = Transition.combine(
        {"D2": web, "D1": Transition.identity(["dog", "cat"]), "D3": canines},
        sizes={
            "D1": {"dog": 0.05, "cat": 0.05},
            "D2": {"-": 0.48, "dog": 0.06, "cat": 0.06},
            "D3": {"-": 0.15, "dog": 0.15},
        },
    )
    assert combined.labels == (("D2", None), ("D1", "dog"), ("D1", "cat"), ("D3", "canine"))
    expected = [[0.762, 0, 0, 0.238], [0.231, 0.192, 0, 0.577], [0.545, 0, 0.455, 0]]
    assert_allclose(combined.proba, expected, atol=0.0005)


# ---------------------------------------------------------------------------- Elkan and Noto 2008


@pytest.mark.parametrize("rho", [0.1, 0.4, 1.0])  # chosen here
def test_elkan_noto_matrix_and_its_inverse(rho):
    t = Transition.partial([1], unlabeled=0, labeled=rho, negative=0)
    assert_allclose(t.proba, [[rho, 1 - rho], [0, 1]])
    assert_allclose(np.linalg.inv(t), [[1 / rho, (rho - 1) / rho], [0, 1]], atol=1e-15)


def test_elkan_noto_constraint_is_that_p_labeled_is_at_most_rho():
    rho = 0.4  # chosen here
    t = Transition.partial(["positive"], labeled=rho, negative="negative")
    p = np.array([0, 0.2, 0.399, 0.4, 0.401, 0.7, 1])
    assert t.infeasible(np.column_stack([p, 1 - p])).tolist() == [False] * 4 + [True] * 3


# ---------------------------------------------------------------------------- supplement, costs


def test_costs_are_the_disagreement_of_labels():
    # C_ss' = Σ_y (1 − p(y | s')) p(y | s), summed by hand
    t = Transition.from_meanings(MEANINGS, classes=["-", "dog", "cat"])
    class_prior = [0.2, 0.3, 0.5]  # chosen here
    reverse = t.reverse(class_prior)
    by_hand = [
        [sum((1 - reverse[b, y]) * reverse[a, y] for y in range(3)) for b in range(4)]
        for a in range(4)
    ]
    assert_allclose(t.label_costs(class_prior), by_hand)
