"""Any classifier on balanced draws: who is drawn, who predicts, and when draws are used."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier

from looselabels import DecoupledClassifier
from looselabels.estimation.weighting import reweight
from looselabels.learning.draws import BalancedDraws, ClassDraws
from looselabels.learning.label_model import LabelScores

RARE = 30
CLASS = (np.arange(600) % 2).astype(int)
X = np.random.default_rng(0).normal(2.0 * CLASS[:, None], 1.0, (600, 2))
LABEL = np.where((CLASS == 1) & (np.arange(600) < 2 * RARE), 1, 0)  # 30 labels of class 1


class Recorder(GaussianNB):
    """Remembers the rows that it was fitted to."""

    def fit(self, X, y, sample_weight=None):
        self.X_, self.y_, self.weight_ = X, y, sample_weight
        return super().fit(X, y, sample_weight)


def drawn(estimator=None, y=LABEL, rows=X, **fit):
    model = BalancedDraws(estimator or Recorder(), random_state=0)
    return model, model.fit_out_of_sample(rows, y, **fit)


def test_each_draw_has_the_rare_rows_outside_of_a_fold_and_twice_as_many_others():
    model, _ = drawn()
    assert len(model.estimators_) == 12
    for one in model.estimators_:
        assert_array_equal(np.bincount(one.y_), [40, 20])


def test_every_row_is_predicted_by_four_models_that_have_not_seen_it():
    number = np.arange(600.0)[:, None]
    model, proba = drawn(rows=number)
    again = np.zeros((600, 2))
    for _, test in model._draws(LABEL, np.ones(600), None, lambda counts: counts):
        again[test] += 1
    assert_array_equal(again, 4)
    has_seen = [np.isin(number[:, 0], one.X_[:, 0]) for one in model.estimators_]
    draws = model._draws(LABEL, np.ones(600), None, lambda counts: counts)
    assert not any(seen[test].any() for seen, (_, test) in zip(has_seen, draws, strict=True))
    assert_allclose(proba.sum(axis=1), 1)


def test_label_weights_lead_back_to_the_real_distribution():
    """Dividing by the weights gives label shares about as in the data."""
    model, proba = drawn(LogisticRegression())
    assert_allclose(model.label_weights_, [40 / 570, 20 / 30] / np.sum([40, 20]) * 600, rtol=1e-6)
    real = reweight(proba, model.label_weights_, np.ones(2))
    assert abs(np.mean(real[:, 1] / real.sum(axis=1)) - RARE / 600) < 0.01
    assert abs(proba[:, 1].mean() - RARE / 600) > 0.1


def test_rows_of_weight_zero_are_predicted_but_not_drawn():
    weight = np.where(np.arange(600) < 300, 1.0, 0.0)
    number = np.arange(600.0)[:, None]
    model, proba = drawn(rows=number, sample_weight=weight)
    assert max(one.X_.max() for one in model.estimators_) < 300
    assert np.isfinite(proba).all()


def test_weights_reach_the_models():
    weight = np.random.default_rng(1).uniform(1, 2, 600)
    model, _ = drawn(rows=np.column_stack([weight, X]), sample_weight=weight)
    for one in model.estimators_:
        assert_array_equal(one.weight_, one.X_[:, 0])


def test_groups_are_not_divided():
    groups = np.arange(600) // 4
    model, _ = drawn(rows=groups[:, None].astype(float), groups=groups)
    draws = model._draws(LABEL, np.ones(600), groups, lambda counts: counts)
    for one, (_, test) in zip(model.estimators_, draws, strict=True):
        assert not np.isin(one.X_[:, 0], groups[test]).any()


def test_classes_are_learned_from_their_probabilities():
    soft = np.where(CLASS[:, None] == [0, 1], 0.8, 0.2)
    for base in (GaussianNB(), KNeighborsClassifier(25)):  # with weights, and without
        model = ClassDraws(base, random_state=0)
        proba = model.fit_out_of_sample(X, soft, CLASS, np.eye(2))
        assert_allclose(model.predict_proba(X).sum(axis=1), 1)
        assert abs(proba[CLASS == 1, 1].mean() - 0.7) < 0.12  # .8, smoothed
        assert_allclose(model.label_weights_, 1)


def test_a_label_that_only_rows_of_weight_zero_have_leaves_the_draws_as_they_are():
    label = np.where(np.arange(600) % 3 == 2, 2, CLASS)
    soft = np.where(CLASS[:, None] == [0, 1], 0.8, 0.2)
    weight = np.where(label == 2, 0.0, np.where(CLASS, 0.5, 2.0))
    model = ClassDraws(GaussianNB(), random_state=0)
    proba = model.fit_out_of_sample(X, soft, label, np.eye(2, 3), weight)
    assert np.isfinite(model.label_weights_).all()
    assert abs(proba[CLASS == 1, 1].mean() - 0.7) < 0.12
    merged = ClassDraws(GaussianNB(), random_state=0)
    assert_array_equal(
        merged.fit_out_of_sample(X, soft, label.clip(max=1), np.eye(2), weight), proba
    )
    assert_array_equal(model.label_weights_, [*merged.label_weights_, 1])


@pytest.mark.parametrize("base", [GaussianNB(), KNeighborsClassifier(25)])
def test_the_number_of_jobs_does_not_change_what_is_learned(base):
    """With sample weights, and without: then the class of each row is drawn."""
    soft = np.where(CLASS[:, None] == [0, 1], 0.8, 0.2)
    one, two = (
        ClassDraws(base, n_jobs=n_jobs, random_state=0).fit_out_of_sample(X, soft, CLASS, np.eye(2))
        for n_jobs in (None, 2)
    )
    assert_array_equal(one, two)


def test_each_draw_draws_classes_anew():
    model = ClassDraws(KNeighborsClassifier(1), random_state=0)
    model.fit_out_of_sample(X, np.full((600, 2), 0.5), CLASS, np.eye(2))
    first, second = (one.predict(X[:300]) for one in model.estimators_[:2])
    assert 0.3 < np.mean(first == second) < 0.9  # a third of the rows is in both draws


def test_an_unfitted_model_says_so():
    with pytest.raises(ValueError, match="not fitted yet"):
        BalancedDraws(GaussianNB()).predict_proba(X)


# ------------------------------------------------------------------------------ in the classifier


def test_rare_labels_are_drawn(monkeypatch):
    labels = np.where(LABEL == 1, "pos", None)
    forest = RandomForestClassifier(20, random_state=0)
    clf = DecoupledClassifier(forest, negative="neg", noise=0)
    with monkeypatch.context() as patch:  # whatever one model would predict
        patch.delattr(LabelScores, "log_loss")
        clf.fit(X, labels)
    assert isinstance(clf.estimator_, BalancedDraws)
    assert clf.training_label_weights_ is not None
    alone = clone(clf).set_params(cv="oob").fit(X, labels)
    truth = np.where(CLASS == 1, "pos", "neg")
    assert clf.score(X, truth) > alone.score(X, truth) + 0.05


def test_models_that_learn_classes_ignore_a_label_whose_rows_have_no_weight():
    label = np.where(np.arange(600) % 3 == 2, 2, CLASS)
    clf = DecoupledClassifier(BalancedDraws(GaussianNB(), random_state=0), refit=1, random_state=0)
    clf.fit(X, label, sample_weight=(label < 2).astype(float))
    assert isinstance(clf.class_estimator_, ClassDraws)
    assert clf.score(X, CLASS) > 0.85  # and not the same class for all rows


@pytest.mark.parametrize(
    "options",
    [{"cv": 3}, {"refit": False}, {"refit": 1}, {"calibrate": None}, {"label_weights": 1}],
)
def test_one_model_is_fitted_if_something_else_was_asked_for(options):
    labels = np.where(LABEL == 1, "pos", None)
    clf = DecoupledClassifier(GaussianNB(), negative="neg", random_state=0, **options)
    assert isinstance(clf.fit(X, labels).estimator_, GaussianNB)


def test_one_model_or_draws_whichever_predicts_the_labels_better():
    clf = DecoupledClassifier(GaussianNB(), random_state=0).fit(X[:60], CLASS[:60])
    drawn_loss, alone_loss = (
        DecoupledClassifier(base, refit=False, random_state=0)
        .fit(X[:60], CLASS[:60])
        .label_scores_.log_loss()
        for base in (BalancedDraws(GaussianNB(), random_state=0), GaussianNB())
    )
    assert isinstance(clf.estimator_, BalancedDraws) == (drawn_loss < alone_loss)


@pytest.mark.slow
def test_a_model_that_follows_single_rows_is_drawn():
    """Half of the columns are noise, and a fifth of the labels is wrong."""
    rng = np.random.default_rng(0)
    wide = np.hstack([X, rng.standard_normal((600, 150))])[:300]
    labels = CLASS[:300] ^ (rng.random(300) < 0.2)
    clf = DecoupledClassifier(LogisticRegression(C=100, max_iter=5000), random_state=0, noise=0.2)
    clf.fit(wide, labels)
    assert isinstance(clf.estimator_, BalancedDraws)
    alone = clone(clf).set_params(cv=5).fit(wide, labels)
    test = np.hstack([X, rng.standard_normal((600, 150))])[300:]
    assert clf.score(test, CLASS[300:]) > alone.score(test, CLASS[300:])
