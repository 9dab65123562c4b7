"""Which rows models learn from, and what the other rows get."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression

from looselabels import DecoupledClassifier
from looselabels.learning.candidates import rows_to_fit
from looselabels.learning.label_design import design_labels
from looselabels.learning.row_sample import choose_rows, sample_label_weights

SHARES = [0.80, 0.17, 0.03]


def gaussians(n_rows, shares=SHARES, seed=0):
    """Return features, classes, and exact p(class | x) of three overlapping classes."""
    rng = np.random.default_rng(seed)
    means = np.array([[0.0, 0.0], [2.0, 0.0], [0.0, 2.5]])
    y = rng.choice(3, size=n_rows, p=shares)
    X = means[y] + rng.normal(size=(n_rows, 2))
    likelihood = np.exp(-0.5 * ((X[:, None] - means) ** 2).sum(axis=2)) * shares
    return X, y, likelihood / likelihood.sum(axis=1, keepdims=True)


def classifier(**parameters):
    return DecoupledClassifier(LogisticRegression(), refit=False, random_state=0, **parameters)


# ------------------------------------------------------------------------------------ which rows


def test_no_row_is_left_out_of_a_table_that_is_not_larger():
    assert choose_rows(np.zeros(10, int), 10) is None
    assert choose_rows(np.zeros(10, int), None) is None


def test_a_rare_label_keeps_all_of_its_rows_and_the_others_share_the_rest():
    label_index = np.random.default_rng(0).permutation(np.repeat([0, 1, 2], [5000, 2000, 7]))
    rows = choose_rows(label_index, 1007, random_state=0)
    assert_array_equal(np.bincount(label_index[rows]), [500, 500, 7])
    assert (np.diff(rows) > 0).all()


def test_groups_are_taken_as_a_whole(rng):
    groups = rng.permutation(np.repeat(np.arange(300), 10))
    label_index = (groups < 3).astype(int)  # three groups have all rows of label 1
    rows = choose_rows(label_index, 500, groups=groups, random_state=0)
    is_chosen = np.isin(groups, groups[rows])
    assert_array_equal(np.flatnonzero(is_chosen), rows)
    assert np.bincount(label_index[rows])[1] == 30
    assert 450 <= len(rows) <= 500


def test_a_label_in_a_group_that_is_too_large_does_not_vanish():
    groups = np.repeat([0, 1, 2, 3], [400, 5, 5, 5])
    label_index = np.repeat([1, 0], [400, 15])
    rows = choose_rows(label_index, 20, groups=groups, random_state=0)
    assert set(label_index[rows]) == {0, 1}


def test_each_label_keeps_a_row_to_learn_from_if_another_is_predicted():
    label_index = np.repeat([0, 1, 2], [500, 20, 1])
    rows = choose_rows(label_index, 2, random_state=0)
    assert_array_equal(np.bincount(label_index[rows]), [2, 2, 1])
    X, y, _ = gaussians(300)
    with pytest.warns(UserWarning, match="have 2 samples each: 2 folds"):
        clf = classifier(max_fit_rows=2).fit(X, y)
    assert clf.predict_proba(X).shape == (300, 3)


def test_rows_that_models_do_not_learn_from_are_left_out():
    label_index = np.repeat([0, 1], [50, 950])
    rows = choose_rows(label_index, 100, is_learned=label_index == 0)
    assert_array_equal(rows, np.arange(50))


def test_weights_lead_from_the_shares_of_all_rows_to_those_of_the_sample(rng):
    y, weight = rng.choice(3, size=1000, p=SHARES), rng.random(1000)
    design = design_labels(y.tolist(), sample_weight=weight)
    rows = choose_rows(design.label_index, 90, random_state=0)
    total, sample = (np.bincount(y[part], weight[part]) for part in (slice(None), rows))
    drawn = total / total.sum() * sample_label_weights(design, rows)
    assert_allclose(drawn, sample / sample.sum())


# ---------------------------------------------------------------------------------- a classifier


def test_a_table_up_to_the_maximum_gives_exactly_what_it_gives_without_one():
    X, y, _ = gaussians(300, [0.4, 0.3, 0.3])
    limited, free = (classifier(max_fit_rows=n).fit(X, y) for n in (300, None))
    assert_array_equal(limited.class_proba_given_label_, free.class_proba_given_label_)
    assert_array_equal(limited.class_prior_, free.class_prior_)
    assert limited.n_fit_rows_ == 300


@pytest.mark.parametrize("noise", [0.1, "estimate"])
def test_rows_in_the_sample_and_other_rows_get_the_probabilities_of_all_rows(noise):
    X, y, class_proba = gaussians(6000)
    rng = np.random.default_rng(1)
    labels = np.where(rng.random(len(y)) < 0.1, rng.integers(3, size=len(y)), y)
    clf = classifier(max_fit_rows=1200, noise=noise).fit(X, labels)
    rows = rows_to_fit(clf._settings(), clf.label_design_, 1200)
    assert clf.n_fit_rows_ == len(rows) == 1200
    is_sampled = np.isin(np.arange(len(y)), rows)
    for part in (is_sampled, ~is_sampled):
        assert np.abs(clf.class_proba_ - class_proba)[part].mean() < 0.04
    assert_allclose(clf.class_prior_, SHARES, atol=0.03)
    assert_allclose(clf.class_proba_.sum(axis=1), 1, atol=1e-6)
    # the sample has equally many rows of each label; new rows have the real shares
    assert np.abs(clf.predict_proba(X) - class_proba).mean() < 0.04


def test_a_sample_of_unlabeled_and_rare_labels_finds_the_share_of_positives():
    X, y, class_proba = gaussians(6000, [0.6, 0.4, 0.0])
    is_labeled = (y == 1) & (np.random.default_rng(2).random(len(y)) < 0.1)
    labels = np.where(is_labeled, "positive", None)
    clf = classifier(negative="negative", max_fit_rows=1500, class_prior={"positive": 0.4})
    clf.fit(X, labels)
    assert clf.n_fit_rows_ == 1500
    assert np.abs(clf.class_proba_[:, 0] - class_proba[:, 1]).mean() < 0.06


def test_rows_without_a_label_are_not_learned_from_but_predicted():
    X, y, class_proba = gaussians(4000, [0.4, 0.3, 0.3])
    labels = np.where(np.arange(4000) % 5 == 0, y.astype(object), None)
    clf = classifier(max_fit_rows=2000).fit(X, labels)
    assert clf.n_fit_rows_ == 800
    assert np.abs(clf.class_proba_ - class_proba).mean() < 0.03


@pytest.mark.parametrize("together", [1, 2], ids=["rows", "groups with rows without labels"])
@pytest.mark.parametrize("limits", [(400, None), (5000, 400)], ids=["other models", "all models"])
def test_rows_without_a_label_take_no_evidence_from_those_with_one(limits, together, monkeypatch):
    max_extra_rows, max_fit_rows = limits
    monkeypatch.setattr("looselabels.learning.candidates.MAX_EXTRA_ROWS", max_extra_rows)
    X, y, _ = gaussians(2000, [0.5, 0.5, 0.0])
    rng = np.random.default_rng(1)
    labels = np.where(rng.random(2000) < 0.2, 1 - y, y).astype(object)
    labels[np.arange(2000) % 10 > 0] = None
    groups = np.arange(2000) // together
    clf = classifier(max_fit_rows=max_fit_rows).fit(X, labels, groups=groups)
    pooled, rows = clf._pooled
    assert len(rows) < 2000
    assert_allclose(pooled.row_counts[labels[rows] != None].sum(), 200)  # noqa: E711  in an array
    reviewed = clf.with_known_classes([labels[0], *[None] * 1999])
    assert_allclose(reviewed._pooled[0].row_counts, pooled.row_counts)


def test_a_frozen_estimator_predicts_all_rows_block_by_block(monkeypatch):
    X, y, _ = gaussians(900, [0.4, 0.3, 0.3])
    monkeypatch.setattr("looselabels.learning.row_sample.BLOCK", 70)
    frozen = FrozenEstimator(LogisticRegression().fit(X[:300], y[:300]))
    found = [
        DecoupledClassifier(frozen, noise=0.1, max_fit_rows=n).fit(X[300:], y[300:])
        for n in (100, None)
    ]
    # sampled fits keep probabilities in single precision
    assert_allclose(found[0].class_proba_, found[1].class_proba_, atol=1e-5)


@pytest.mark.slow
def test_the_default_estimator_and_its_rival_learn_from_the_sample():
    X, y, class_proba = gaussians(1500, [0.4, 0.3, 0.3])
    clf = DecoupledClassifier(max_fit_rows=300, noise="estimate", random_state=0).fit(X, y)
    assert clf.n_fit_rows_ == 300
    assert np.abs(clf.class_proba_ - class_proba).mean() < 0.1
    for low, high in clf.rival_wrong_shares_.values():
        assert 0 <= low <= high <= 0.3


def test_known_classes_of_rows_outside_the_sample_are_used():
    X, y, _ = gaussians(2000, [0.4, 0.3, 0.3])
    known = np.full(2000, None)
    known[::100] = (y[::100] + 1) % 3
    clf = classifier(max_fit_rows=400, noise=0.1).fit(X, y, known_classes=known)
    rows = np.arange(0, 2000, 100)
    assert_array_equal(clf.class_proba_given_label_[rows].argmax(axis=1), known[rows])


def test_groups_and_weights_go_with_their_rows(rng):
    X, y, class_proba = gaussians(3000, [0.4, 0.3, 0.3])
    groups = rng.permutation(np.repeat(np.arange(600), 5))
    clf = classifier(max_fit_rows=600).fit(X, y, rng.random(3000), groups=groups)
    rows = rows_to_fit(clf._settings(), clf.label_design_, 1200)
    assert_array_equal(np.flatnonzero(np.isin(groups, groups[rows])), rows)
    assert np.abs(clf.class_proba_ - class_proba).mean() < 0.04


def test_folds_as_a_list_number_all_rows():
    X, y, _ = gaussians(300, [0.4, 0.3, 0.3])
    folds = [(np.arange(150), np.arange(150, 300)), (np.arange(150, 300), np.arange(150))]
    assert classifier(cv=folds, max_fit_rows=50).fit(X, y).n_fit_rows_ == 300


def test_a_fit_to_several_labels_per_row_or_to_probabilities_uses_no_sample():
    X, y, class_proba = gaussians(200, [0.4, 0.3, 0.3])
    answers, clf = np.column_stack([y, y, y]), classifier(max_fit_rows=50)
    assert clf.fit(X, answers).n_fit_rows_ == 200
    assert clf.fit(None, answers).n_fit_rows_ == 0
    assert clf.fit_from_proba(class_proba, y).n_fit_rows_ == 0


@pytest.mark.parametrize("value", [1, 0.5, "all"])
def test_an_invalid_maximum_is_an_error(value):
    X, y, _ = gaussians(30, [0.4, 0.3, 0.3])
    with pytest.raises(ValueError, match="max_fit_rows must be 2 or more"):
        classifier(max_fit_rows=value).fit(X, y)
