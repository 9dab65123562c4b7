"""Simulated data: samples and labels follow the distributions that are documented."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import multivariate_normal

from looselabels.datasets import MEANS, SPREADS, make_gaussians, make_loose_labels
from looselabels.transition import Transition


def test_class_proba_is_bayes_rule_on_the_densities_of_scipy():
    data = make_gaussians(50, random_state=0)
    density = np.column_stack(
        [
            multivariate_normal(mean, spread**2 * np.eye(2)).pdf(data.X)
            for mean, spread in zip(MEANS, SPREADS, strict=True)
        ]
    )
    assert_allclose(data.class_proba, density / density.sum(axis=1, keepdims=True))


def test_classes_are_drawn_with_the_probability_of_class_proba():
    data = make_gaussians(20_000, random_state=1)
    for k, name in enumerate(data.classes):
        for low in np.arange(0, 1, 0.1):
            inside = (data.class_proba[:, k] >= low) & (data.class_proba[:, k] < low + 0.1)
            proba = data.class_proba[inside, k]
            error = np.sqrt(np.sum(proba * (1 - proba))) / len(proba)
            assert abs(np.mean(data.y[inside] == name) - proba.mean()) < 3.5 * error


def test_the_same_seed_draws_the_same_data_and_another_seed_does_not():
    first, again, other = (make_gaussians(9, random_state=seed) for seed in (3, 3, 4))
    assert_array_equal(first.X, again.X)
    assert_array_equal(first.y, again.y)
    assert not np.any(first.X == other.X)


def test_labels_are_drawn_from_the_row_of_their_class():
    t = Transition.partial(["cat", "dog"], labeled={"cat": 0.3, "dog": 0.8}, negative="other")
    y = np.repeat(["cat", "dog", "other"], 20_000)
    labels = make_loose_labels(y, t, random_state=0)
    for k, name in enumerate(t.classes):
        drawn = labels[y == name]
        share = [np.mean([label == wanted for label in drawn]) for wanted in t.labels]
        assert_allclose(share, t.proba[k], atol=0.01)  # three standard errors
    assert "dog" not in labels[y == "cat"]


def test_a_class_that_is_not_in_the_transition_is_named():
    with pytest.raises(ValueError, match=r"y contains .*: \['bird'\]; it has \('cat', 'dog'\)"):
        make_loose_labels(["cat", "bird"], Transition.identity(["cat", "dog"]))


def test_the_same_seed_draws_the_same_labels():
    t = Transition.partial(["cat", "dog"], labeled=0.5)
    y = ["cat", "dog"] * 50
    first, again, other = (make_loose_labels(y, t, random_state=seed) for seed in (0, 0, 1))
    assert first.tolist() == again.tolist()
    assert first.tolist() != other.tolist()
