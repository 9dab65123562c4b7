"""Simulators: what they promise is what they draw."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import multivariate_normal

from looselabels.datasets import MEANS, SPREADS, make_gaussians, make_loose_labels
from looselabels.transition import Transition


def test_the_gaussians_class_proba_is_bayes_on_scipy_s_densities():
    data = make_gaussians(50, random_state=0)
    density = np.column_stack(
        [
            multivariate_normal(mean, spread**2 * np.eye(2)).pdf(data.X)
            for mean, spread in zip(MEANS, SPREADS, strict=True)
        ]
    )
    assert_allclose(data.class_proba, density / density.sum(axis=1, keepdims=True))


def test_the_gaussians_class_proba_is_calibrated():
    data = make_gaussians(20_000, random_state=1)
    for k, name in enumerate(data.classes):
        assert abs(data.class_proba[:, k].mean() - np.mean(data.y == name)) < 0.01


def test_the_same_seed_draws_the_same_data():
    assert_array_equal(make_gaussians(9, random_state=3).X, make_gaussians(9, random_state=3).X)


def test_labels_are_drawn_by_the_row_of_their_class():
    t = Transition.partial(["cat", "dog"], labeled={"cat": 0.3, "dog": 0.8}, negative="other")
    y = np.repeat(["cat", "dog", "other"], 20_000)
    labels = make_loose_labels(y, t, random_state=0)
    for k, name in enumerate(t.classes):
        drawn = labels[y == name]
        share = [np.mean([label == wanted for label in drawn]) for wanted in t.labels]
        assert_allclose(share, t.proba[k], atol=0.015)
    assert "dog" not in labels[y == "cat"]


def test_a_class_the_transition_lacks_is_named():
    with pytest.raises(ValueError, match=r"y has classes that .* 'bird'; it has \('cat', 'dog'\)"):
        make_loose_labels(["cat", "bird"], Transition.identity(["cat", "dog"]))
