"""Any classifier learns from class probabilities, through copies of rows."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier

from looselabels.learning.out_of_sample import stratified_folds
from looselabels.learning.weighted_copies import MIN_SHARE, Copies, learn_from_copies

RNG = np.random.default_rng(0)
CLASS = np.arange(200) % 2
X = (2 * CLASS - 1)[:, None] + RNG.standard_normal((200, 3))
SOFT = np.where(CLASS[:, None] == [0, 1], 0.8, 0.2)


def learn(estimator, class_proba=SOFT, label_index=CLASS, transition=None, **options):
    settings = {"folds": stratified_folds(CLASS, random_state=0), "fit_params": {}} | options
    transition = np.eye(2) if transition is None else transition
    weight = settings.pop("sample_weight", None)
    return learn_from_copies(estimator, X, class_proba, label_index, transition, weight, **settings)


def test_weights_of_the_copies_of_a_row_sum_to_its_weight():
    weight = RNG.uniform(0, 2, 50)
    weight[:5] = 0
    copies = Copies.weighted(RNG.dirichlet([0.3] * 4, 50), weight)
    assert_allclose(np.bincount(copies.rows, copies.weight, 50), weight)
    assert not np.isin(np.arange(5), copies.rows).any()


def test_improbable_classes_get_no_copy():
    copies = Copies.weighted(np.array([[1 - MIN_SHARE / 2, MIN_SHARE / 2]]), np.ones(1))
    assert_array_equal(copies.classes, [0])
    assert_allclose(copies.weight, 1)


def test_known_classes_give_an_ordinary_fit():
    learned = learn(LogisticRegression(), np.eye(2)[CLASS])
    own = LogisticRegression().fit(X, CLASS)
    assert_allclose(learned.estimator.predict_proba(X), own.predict_proba(X))
    for train, test in stratified_folds(CLASS, random_state=0):
        fold = LogisticRegression().fit(X[train], CLASS[train])
        assert_allclose(learned.class_proba[test], fold.predict_proba(X[test]))


def test_soft_labels_are_learned_as_probabilities():
    """A Gaussian of weighted copies has the weighted mean."""
    model = learn(GaussianNB()).estimator
    assert_allclose(model.theta_, SOFT.T @ X / SOFT.sum(axis=0)[:, None])


def test_a_model_without_weights_learns_drawn_classes():
    learned = learn(KNeighborsClassifier(25), random_state=0)
    mean = learned.class_proba[CLASS == 1, 1].mean()
    assert 0.6 < mean < 0.85  # .8, smoothed


@pytest.mark.parametrize("estimator", [LogisticRegression(), KNeighborsClassifier(5)])
def test_no_row_is_predicted_by_a_model_that_has_seen_it(estimator):
    """Pure chance stays chance: no fold knows the classes of its own rows."""
    chance = np.eye(2)[RNG.integers(0, 2, 200)]
    learned = learn(estimator, chance, random_state=0)
    agreement = np.mean(learned.class_proba.argmax(axis=1) == chance.argmax(axis=1))
    assert 0.38 < agreement < 0.62


def test_an_abundant_label_counts_less():
    label_index = np.where(np.arange(200) < 20, 0, 1)
    learned = learn(LogisticRegression(), label_index=label_index, transition=np.eye(2))
    assert_allclose(learned.label_weights, [1, 60 / 180])


def test_sample_weights_multiply_the_copies():
    weight = np.where(np.arange(200) < 100, 1.0, 0.0)
    learned = learn(GaussianNB(), sample_weight=weight)
    assert_allclose(
        learned.estimator.theta_, SOFT[:100].T @ X[:100] / SOFT[:100].sum(axis=0)[:, None]
    )


def test_a_single_class_is_predicted_as_it_is():
    learned = learn(LogisticRegression(), np.tile([0.0, 1.0], (200, 1)))
    assert_allclose(learned.class_proba, np.tile([0.0, 1.0], (200, 1)))
