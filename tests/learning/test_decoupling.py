"""The line from labels to classes: each value, each arrow, without scikit-learn estimators."""

import ast
import inspect

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from looselabels import Transition, infer
from looselabels.datasets import make_gaussians, make_loose_labels
from looselabels.estimation.weighting import weighted_transition
from looselabels.inference import condition_on_label
from looselabels.learning import classifier, decoupling, label_design, label_model
from looselabels.learning.decoupling import (
    decouple,
    label_proba_of_training_rows,
    learn_classes,
)
from looselabels.learning.label_design import design_labels
from looselabels.learning.label_model import model_labels, score_labels


@pytest.fixture(scope="module")
def data():
    return make_gaussians(2000, random_state=0)


def scored(data, truth, /, *, label_weights=None, **specified):
    """Return a design, and its exact scores, of labels drawn by the transition `truth`."""
    labels = make_loose_labels(data.y, truth, random_state=1)
    design = design_labels(labels, **specified)
    order = [truth.labels.index(label) for label in design.transition.labels]
    label_proba = (data.class_proba @ truth.proba)[:, order]
    if label_weights is not None:
        label_proba = label_proba * label_weights
        label_proba /= label_proba.sum(axis=1, keepdims=True)
    return design, score_labels(design, label_proba, label_weights)


# ------------------------------------------------------------------------------- scores to classes


def test_a_design_with_an_open_label_rate_assumes_no_transition(data):
    labels = Transition.partial(data.classes[:3], labeled=0.5, negative="other")
    design, scores = scored(data, labels, negative="other")
    model = model_labels(design, scores)
    assert model.assumed is None
    # the classes overlap, so the rate is underestimated; .3 is what 2,000 rows give
    assert_allclose(model.transition.proba[:3, :3].diagonal(), 0.5, atol=0.2)


def test_what_was_assumed_stays_when_noise_is_estimated(data):
    noisy = Transition.identity(data.classes).with_noise(0.2)
    design, scores = scored(data, noisy, noise="estimate")
    model = model_labels(design, scores)
    assert_array_equal(model.assumed.proba, np.eye(4))
    assert model.transition.proba.diagonal().max() < 1


def test_exact_scores_give_the_exact_classes(data):
    noisy = Transition.identity(data.classes).with_noise(0.2)
    design, scores = scored(data, noisy, transition=noisy)
    found = decouple(scores, model_labels(design, scores), calibrate=None)
    assert_allclose(found.class_proba, data.class_proba, atol=1e-6)
    expected = condition_on_label(data.class_proba, noisy.proba, design.label_index)
    assert_allclose(found.class_proba_given_label, expected, atol=1e-5)
    assert found.converged


def test_label_weights_change_nothing_for_exact_scores(data):
    noisy = Transition.identity(data.classes).with_noise(0.2)
    weights = np.array([1.0, 5.0, 0.2, 2.0])
    design, scores = scored(data, noisy, transition=noisy, label_weights=weights)
    found = decouple(scores, model_labels(design, scores), calibrate=None)
    assert_allclose(found.class_proba, data.class_proba, atol=1e-6)


def test_decoupling_is_infer_in_the_weighted_distribution(data):
    noisy = Transition.identity(data.classes).with_noise(0.2)
    weights = np.array([1.0, 5.0, 0.2, 2.0])
    design, scores = scored(data, noisy, transition=noisy, strength=30, label_weights=weights)
    found = decouple(scores, model_labels(design, scores), calibrate=None)
    inner = weighted_transition(noisy.proba, weights)
    by_hand = infer(scores.label_proba, inner, pseudocounts=30 * inner)
    assert_allclose(weighted_transition(found.model.transition.proba, weights), by_hand.transition)
    assert found.objective == by_hand.objective
    assert found.model.assumed is noisy


def test_the_specified_prior_is_matched(data):
    noisy = Transition.identity(data.classes).with_noise(0.2)
    prior = np.array([0.1, 0.2, 0.3, 0.4])
    design, scores = scored(data, noisy, transition=noisy, class_prior=prior)
    found = decouple(scores, model_labels(design, scores))
    assert_allclose(found.class_proba.mean(axis=0), prior, atol=1e-6)
    assert_array_equal(found.model.class_prior, prior)


def test_an_estimated_prior_is_the_mean_of_what_was_found(data):
    noisy = Transition.identity(data.classes).with_noise(0.2)
    design, scores = scored(data, noisy, noise="estimate")
    found = decouple(scores, model_labels(design, scores))
    assert_allclose(found.model.class_prior, found.class_proba.mean(axis=0))


def test_estimating_label_rates_needs_weight_for_every_label(data):
    labels = Transition.partial(data.classes[:3], labeled=0.5, negative="other")
    weights = np.array([1.0, 1.0, 1.0, 0.0])
    design, scores = scored(data, labels, negative="other", label_weights=weights)
    with pytest.raises(ValueError, match=r"label_weights of None is 0; estimating label rates"):
        model_labels(design, scores)


class Memory:
    """A class estimator that returns fixed probabilities, and remembers what it was given."""

    label_weights_ = np.array([2.0, 1.0, 1.0, 1.0])

    def __init__(self, learned):
        self.learned = learned

    def learn(self, class_proba, transition):
        self.given = class_proba
        return self, self.learned, self.label_weights_


def test_rows_that_the_class_estimator_cannot_predict_keep_what_was_inferred(data):
    noisy = Transition.identity(data.classes).with_noise(0.2)
    design, scores = scored(data, noisy, transition=noisy)
    inferred = decouple(scores, model_labels(design, scores), calibrate=None)
    learned = np.tile(noisy.proba[0], (2000, 1))
    learned[:5] = np.nan
    memory = Memory(learned)
    found = learn_classes(inferred, scores, memory.learn, calibrate=None)
    assert_allclose(found.class_proba[:5], inferred.class_proba[:5])
    # the others are converted from its weighted distribution to the real one
    real = noisy.proba[0] / (noisy.proba @ Memory.label_weights_)
    assert_allclose(found.class_proba[5], real / real.sum())
    assert memory.given is inferred.class_proba_given_label
    assert found.class_estimator is memory


# ------------------------------------------------------------------------------ label_proba_


def test_label_proba_is_the_real_one(data):
    """Second route: p(label | x) is known exactly, for all labels, also those of weight zero."""
    partial = Transition.partial(data.classes, labeled=0.4).with_noise(0.1)
    weights = np.array([1.0, 3.0, 0.5, 1.0, 0.0])
    labels = make_loose_labels(data.y, partial, random_state=1)
    design = design_labels(labels, transition=partial)
    weighted = (data.class_proba @ partial.proba) * weights
    weighted /= weighted.sum(axis=1, keepdims=True)
    scores = score_labels(design, weighted, weights)
    found = decouple(scores, model_labels(design, scores), calibrate=None)
    label_proba = label_proba_of_training_rows(scores, found)
    assert_allclose(label_proba.sum(axis=1), 1)
    assert_allclose(label_proba.mean(axis=0), scores.label_shares(), atol=1e-6)
    # but for the factor of each label that matches the frequencies, it is the exact one
    ratio = label_proba / (data.class_proba @ partial.proba)
    ratio /= ratio[:, :1]
    assert_allclose(ratio, np.tile(ratio[0], (2000, 1)), rtol=1e-5)


# ------------------------------------------------------------------------------------ the property


def test_parameters_about_labels_are_read_once():
    """Only `_design` and `_design_answers` may read what the user specified about labels."""
    tree = ast.parse(inspect.getsource(classifier.DecoupledClassifier))
    about_labels = {"transition", "negative", "noise", "strength", "class_prior"}
    readers = {
        function.name
        for function in ast.walk(tree)
        if isinstance(function, ast.FunctionDef) and function.name != "__init__"
        for node in ast.walk(function)
        if isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.value.id == "self"
        and node.attr in about_labels
    }
    assert readers == {"_design", "_design_answers"}


def test_the_steps_know_nothing_of_scikit_learn():
    for module in (label_design, label_model, decoupling):
        tree = ast.parse(inspect.getsource(module))
        imports = [node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
        assert not [name for name in imports if name.startswith("sklearn")]


def test_known_classes_are_certain_even_if_the_transition_excludes_them():
    design = design_labels(["a"] * 10 + ["b"] * 10).with_known_classes([*[None] * 19, "a"])
    scores = score_labels(design, np.repeat([[0.9, 0.1], [0.1, 0.9]], 10, axis=0))
    found = decouple(scores, model_labels(design, scores))
    assert_array_equal(found.class_proba_given_label[-1], [1, 0])
    assert np.isfinite(found.class_proba).all()
    assert found.class_proba[-1, 0] < 1  # p(class | x) does not know it
