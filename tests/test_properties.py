"""Properties of inference and of saved models, for whatever hypothesis draws."""

import tempfile
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from looselabels import DecoupledClassifier, Transition, _blocks, load, save
from looselabels.inference import condition_on_label, infer, objective
from tests.strategies import names, positive_rows, simplex_rows

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")
N_ROWS, N_CLASSES, N_LABELS = 6, 3, 4
FEW = settings(max_examples=40)
# A row is solved to 1e-9 nats, so that the label distributions that two solutions imply can differ
# by the square root of that.
CLOSE = 1e-4

label_probas = simplex_rows(N_ROWS, N_LABELS)
transitions = simplex_rows(N_CLASSES, N_LABELS)


def assert_on_simplex(rows):
    assert rows.min() >= 0
    assert_allclose(rows.sum(axis=1), 1, atol=1e-12)


def explained(label_proba, class_proba, transition):
    """Return yT where the row has the label: the same for all optima of a row."""
    return np.where(label_proba > 1e-9, class_proba @ transition, 0.0)


def assert_equally_good(label_proba, transition, one, other):
    """Check that two class_proba are optima of the same rows."""
    assert_allclose(
        explained(label_proba, one, transition),
        explained(label_proba, other, transition),
        atol=CLOSE,
    )


@FEW
@given(simplex_rows(N_ROWS, N_CLASSES), transitions, st.integers(0, 4**N_ROWS - 1))
def test_conditioning_on_a_label_stays_on_the_simplex_and_is_bayes(class_proba, transition, code):
    label_index = np.array([code // 4**i % 4 for i in range(N_ROWS)])
    found = condition_on_label(class_proba, transition, label_index)
    assert_on_simplex(found)
    joint = class_proba * transition.T[label_index]
    known = joint.sum(axis=1) > 1e-300
    assert_allclose(found[known], joint[known] / joint[known].sum(axis=1, keepdims=True))


@FEW
@given(label_probas, transitions, st.permutations(range(N_ROWS)), st.data())
def test_the_order_of_rows_classes_and_labels_does_not_matter(label_proba, transition, rows, data):
    classes, labels = (data.draw(st.permutations(range(n))) for n in (N_CLASSES, N_LABELS))
    plain = infer(label_proba, transition)
    shuffled = infer(label_proba[np.ix_(rows, labels)], transition[np.ix_(classes, labels)])
    assert_on_simplex(shuffled.class_proba)
    back = np.empty_like(plain.class_proba)
    back[np.ix_(rows, classes)] = shuffled.class_proba
    assert_equally_good(label_proba, transition, back, plain.class_proba)
    assert shuffled.objective[-1] == pytest.approx(plain.objective[-1], abs=1e-7)


@FEW
@given(label_probas, transitions, st.integers(1, N_ROWS))
def test_blocks_of_any_size_give_the_same_rows(label_proba, transition, size):
    whole = infer(label_proba, transition)
    with patch.multiple(_blocks, ELEMENTS_PER_BLOCK=0, MIN_BLOCK_ROWS=size):
        parts = infer(label_proba, transition)
    assert_equally_good(label_proba, transition, parts.class_proba, whole.class_proba)
    assert parts.objective[-1] == pytest.approx(whole.objective[-1], abs=1e-8)


@FEW
@given(
    positive_rows(N_ROWS, N_LABELS),
    positive_rows(N_CLASSES, N_LABELS),
    st.lists(st.integers(0, 3), min_size=N_ROWS, max_size=N_ROWS).filter(any),
)
def test_a_weight_is_a_number_of_copies(label_proba, transition, times):
    counts = 3 * transition
    weighted = infer(
        label_proba, transition, sample_weight=np.array(times, float), pseudocounts=counts
    )
    copies = infer(np.repeat(label_proba, times, axis=0), transition, pseudocounts=counts)
    assert weighted.objective[-1] == pytest.approx(copies.objective[-1], abs=1e-6)
    assert np.all(np.diff(weighted.objective) >= -1e-10 * sum(times))


@FEW
@given(label_probas, positive_rows(N_CLASSES, N_LABELS), simplex_rows(N_ROWS, N_CLASSES))
def test_no_class_proba_is_better_than_the_one_found(label_proba, transition, other):
    found = infer(label_proba, transition)
    best = objective(label_proba, found.class_proba, transition)
    assert best >= objective(label_proba, other, transition) - N_ROWS * 1e-6


@settings(max_examples=25)
@given(
    names(N_CLASSES),
    names(N_LABELS, missing=True),
    positive_rows(N_CLASSES, N_LABELS),
    label_probas,
)
def test_a_loaded_model_is_the_saved_one(classes, labels, transition, label_proba):
    design = Transition(transition, classes, labels)
    y = [labels[row.argmax()] for row in label_proba]
    clf = DecoupledClassifier(transition=design, calibrate=None).fit_from_proba(label_proba, y)
    with tempfile.TemporaryDirectory() as folder:
        save(clf, f"{folder}/model")
        again = load(f"{folder}/model")
    assert again.transition_ == clf.transition_
    assert list(again.classes_) == list(clf.classes_)
    assert_array_equal(again.class_prior_, clf.class_prior_)
    assert_array_equal(again.predict_proba(label_proba), clf.predict_proba(label_proba))
    assert again.get_params()["transition"] == design
