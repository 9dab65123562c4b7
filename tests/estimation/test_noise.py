"""What the labels tell of their own noise."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB

from looselabels import DecoupledClassifier, Transition
from looselabels._rows import on_simplex
from looselabels.estimation.noise import _confident, _last_likely, _some_rows, noise_matrix


def clear_labels(rng, noise, blur=0.3, n_samples=4000):
    """Return p(label | x) of classes that are mostly clear, blurred as estimates are; labels."""
    class_proba = rng.dirichlet(np.full(len(noise), 0.05), n_samples)
    label_proba = class_proba @ noise
    drawn = rng.random(n_samples)[:, None] > np.cumsum(label_proba, axis=1)
    blurred = (1 - blur) * class_proba + blur * rng.dirichlet(np.ones(len(noise)), n_samples)
    return blurred @ noise, drawn.sum(axis=1).clip(max=len(noise) - 1)


@pytest.mark.parametrize("rate", [0.0, 0.05, 0.2, 0.4])
def test_the_rate_of_uniform_noise_is_found(rng, rate):
    noise = np.eye(4) * (1 - rate) + rate * (1 - np.eye(4)) / 3
    assert_allclose(noise_matrix(*clear_labels(rng, noise)), noise, atol=0.04)


def test_structured_noise_is_found_with_its_structure(rng):
    noise = 0.7 * np.eye(4) + 0.3 * np.roll(np.eye(4), 1, axis=1)
    assert_allclose(noise_matrix(*clear_labels(rng, noise)), noise, atol=0.08)


def test_a_shape_that_is_chance_is_taken_for_none(rng):
    alike = (1 - np.eye(6)) / 5
    given = clear_labels(rng, 0.7 * np.eye(6) + 0.3 * alike, n_samples=300)
    assert_allclose(_confident(*given, np.ones(300)), alike, atol=0.05)
    next_one = np.roll(np.eye(6), 1, axis=1)
    given = clear_labels(rng, 0.7 * np.eye(6) + 0.3 * next_one, n_samples=300)
    assert (_confident(*given, np.ones(300))[next_one > 0] > 0.6).all()


def test_of_exact_probabilities_noise_and_overlap_look_alike_but_too_much_noise_does_not(rng):
    noise = np.eye(4) * 0.8 + 0.2 * (1 - np.eye(4)) / 3
    found = noise_matrix(*clear_labels(rng, noise, blur=0))
    assert found[0, 0] > 0.78


def test_one_label_has_no_noise():
    assert noise_matrix(np.ones((5, 1)), np.zeros(5, int)) == 1


def test_the_classifier_finds_wrong_labels_without_being_told_of_them():
    X, y = load_digits(return_X_y=True)
    rng = np.random.default_rng(0)
    wrong = rng.random(len(y)) < 0.2
    labels = np.where(wrong, (y + rng.integers(1, 10, len(y))) % 10, y)
    clf = DecoupledClassifier(noise="estimate", random_state=0).fit(X, labels)
    corrected = clf.classes_[clf.class_proba_given_label_.argmax(axis=1)]
    assert np.mean(corrected == y) > 0.97
    doubt = 1 - clf.class_proba_given_label_[np.arange(len(y)), labels]
    assert doubt.sum() == pytest.approx(wrong.sum(), rel=0.1)
    kept = DecoupledClassifier(random_state=0).fit(X, labels)
    assert np.mean(kept.classes_[kept.class_proba_given_label_.argmax(axis=1)] == y) < 0.85


def test_noise_is_estimated_from_the_labeled_rows_alone():
    X, y = load_digits(n_class=3, return_X_y=True)
    rng = np.random.default_rng(0)
    labels = np.where(rng.random(len(y)) < 0.2, (y + 1) % 3, y).astype(object)
    labels[rng.random(len(y)) < 0.5] = None
    clf = DecoupledClassifier(LogisticRegression(max_iter=500), noise="estimate", cv=3)
    found = clf.fit(X / 16, labels).transition_.proba
    wrong = 1 - np.diag(found[:, :3]) / found[:, :3].sum(axis=1)
    assert_allclose(wrong, 0.2, atol=0.1)  # 270 labels
    assert_allclose(found[:, 3], np.mean([label is None for label in labels]))


def test_labels_that_are_no_classes_say_what_to_do_instead():
    design = Transition.from_meanings({"pet": ["cat", "dog"], "dog": "dog"})
    clf = DecoupledClassifier(GaussianNB(), design, noise="estimate")
    with (
        pytest.raises(ValueError, match=r"needs labels that name classes; of \('pet'"),
    ):
        clf.fit(np.arange(20.0)[:, None], ["pet", "dog"] * 10)


@pytest.mark.parametrize("n_positive", [1, 7])
def test_the_share_that_is_labeled_is_found_where_a_class_has_no_labels(n_positive):
    X, y = load_digits(return_X_y=True)
    rng = np.random.default_rng(0)
    truth = np.where(y < n_positive, y, 10)
    labels = np.where((y < n_positive) & (rng.random(len(y)) < 0.3), y, None)
    clf = DecoupledClassifier(negative=10, random_state=0).fit(X, labels)
    rates = np.diag(clf.transition_.proba)[:n_positive]
    assert rates[0] == pytest.approx(0.3, abs=0.06)
    assert np.ptp(rates) == 0  # one for all
    assert clf.class_prior_[-1] == pytest.approx(np.mean(truth == 10), abs=0.08)
    assert np.mean(clf.classes_[clf.class_proba_.argmax(axis=1)] == truth) > 0.93


def test_a_negative_class_needs_a_transition_that_is_open():
    clf = DecoupledClassifier(GaussianNB(), Transition.identity([0, 1]), negative=2)
    with pytest.raises(ValueError, match="negative is for transition=None"):
        clf.fit(np.arange(20.0)[:, None], [0, 1] * 10)


def two_worlds(rng):
    """Return p(label | x) and labels: 300 rows with wrong labels after 300 with right ones."""
    class_1 = 1 / (1 + np.exp(-20 * rng.uniform(-1, 1, 600)))
    label_1 = np.where(np.arange(600) < 300, class_1, 0.2 + 0.6 * class_1)
    index = (rng.random(600) < label_1).astype(int)
    return np.column_stack([1 - label_1, label_1]), index, np.repeat([0.0, 1.0], 300)


def test_rows_without_weight_tell_nothing_of_the_noise(rng):
    label_proba, index, weight = two_worlds(rng)
    found = noise_matrix(label_proba, index, weight)
    assert_allclose(found, noise_matrix(label_proba[300:], index[300:]))
    assert found[0, 0] < noise_matrix(label_proba, index)[0, 0] - 0.05
    clf = DecoupledClassifier(noise="estimate").fit_from_proba(label_proba, index, weight)
    assert_allclose(clf.transition_.proba, found)


@pytest.mark.parametrize("strength", [np.inf, 5.0])
def test_weights_that_are_shares_count_as_rows(strength, rng):
    label_proba, index, _ = two_worlds(rng)
    clf = DecoupledClassifier(noise="estimate", strength=strength)
    plain = clf.fit_from_proba(label_proba, index).class_proba_
    shares = np.full(600, 1 / 600)
    assert_allclose(clf.fit_from_proba(label_proba, index, shares).class_proba_, plain)


def test_labels_without_weight_have_no_noise_that_could_be_estimated():
    X, y = load_digits(n_class=3, return_X_y=True)
    X = X / 16
    labels = np.where(np.arange(len(y)) % 5 == 0, (y + 1) % 3, y)
    clf = DecoupledClassifier(LogisticRegression(max_iter=500), noise="estimate", cv=3)
    design = Transition.identity([0, 1, 2]).with_noise({0: 0.1, 1: 0.1})  # 1 has another label
    with pytest.raises(ValueError, match=r"label_weights are 0 for every label of class 1"):
        clf.set_params(label_weights=[1, 0.0, 1]).fit(X, labels)
    with pytest.raises(ValueError, match=r"transition has some: class 0 gets label 1 with 0\.05"):
        clf.set_params(transition=design).fit(X, labels)
    partial = Transition.partial([0, 1, 2], labeled=0.5)
    some = np.where(np.arange(len(y)) % 2 == 0, labels, None)
    clf.set_params(transition=partial, label_weights=[1, 0.0, 1, 1])
    with pytest.warns(UserWarning, match="No class can have label 1"):
        found = clf.fit(X, some).transition_.proba
    assert_allclose(found[1], partial.proba[1])
    assert np.isfinite(found).all()


def test_noise_cannot_be_estimated_without_labels():
    clf = DecoupledClassifier(None, Transition.partial([0, 1]), noise="estimate")
    with (
        pytest.warns(UserWarning, match="are not in y"),
        pytest.raises(ValueError, match="noise='estimate' needs rows with labels; y has none"),
    ):
        clf.fit(np.arange(20.0)[:, None], [None] * 20)


def test_many_labels_are_estimated_from_fewer_rows():
    assert [len(_some_rows(np.arange(20_000), m, 0)) for m in (10, 100, 1000)] == [
        5000,
        3000,
        500,
    ]


def test_the_last_likely_number_is_found():
    def value(place):
        return -2000 * (place - 0.2) ** 2

    found, best = _last_likely(value, 1.0)
    assert found == pytest.approx(0.2 + (0.5 / 2000) ** 0.5, abs=0.005)
    assert best == pytest.approx(0, abs=0.05)
    assert _last_likely(lambda rate: 20 * rate, 1.0)[0] == 1


@pytest.mark.parametrize("method", ["calibrated", "confident", "em"])
def test_noise_is_estimated_by_any_method(method, rng):
    noise = np.full((2, 2), 0.15) + 0.7 * np.eye(2)
    label_proba, index = clear_labels(rng, noise, blur=0.1, n_samples=1000)
    clf = DecoupledClassifier(noise=method).fit_from_proba(label_proba, index)
    wrong = clf.transition_.proba[[0, 1], [1, 0]]
    assert np.all((wrong > 0.02) & (wrong < 0.3))


@pytest.mark.parametrize("noise", [0.3, "estimate"])
def test_the_interval_of_a_class_prior_holds_it_where_labels_are_wrong(noise, rng):
    label_proba, labels = positive_unlabeled(rng, rates=(0.4, 0.4), shares=(0.5, 0.1))
    spoiled = np.where((labels == "a") & (rng.random(len(labels)) < 0.3), "b", labels)
    clf = DecoupledClassifier(negative="-", noise=noise).fit_from_proba(label_proba, spoiled)
    low, high = clf.class_prior_interval_
    assert np.all((low <= clf.class_prior_ + 1e-9) & (clf.class_prior_ <= high + 1e-9))


@pytest.mark.parametrize(
    ("labels", "weight", "words"),
    [
        (["a", "b"] * 10, None, "no row without a label has weight"),
        (["a", None] * 10, [1.0, 0.0] * 10, "no row without a label has weight"),
        (["a", "b", None, None] * 5, [1, 0, 1, 1] * 5, "no row labeled 'b' has weight"),
    ],
)
def test_a_rate_needs_rows_of_every_label_and_says_so_before_the_fit(labels, weight, words):
    clf = DecoupledClassifier(Unfit(), negative="-")
    with pytest.raises(ValueError, match=words):
        clf.fit(np.arange(20.0)[:, None], labels, sample_weight=weight)


class Unfit(GaussianNB):
    def fit(self, X, y, sample_weight=None):
        raise AssertionError("nothing is fitted")


def test_a_method_that_is_none_is_refused():
    clf = DecoupledClassifier(noise="guess")
    with pytest.raises(ValueError, match="a method of estimate_transition; it is 'guess'"):
        clf.fit_from_proba(np.full((4, 2), 0.5), [0, 1, 0, 1])


def positive_unlabeled(rng, rates=(0.2, 0.5), shares=(1 / 3, 1 / 3)):
    """Return p(label | x) and labels of two positive classes; the other rows are negative."""
    counts = np.round(3000 * np.append(shares, 1 - sum(shares))).astype(int)
    class_proba = np.repeat(np.eye(3) * 0.94 + 0.02, counts, axis=0)
    class_proba = on_simplex(class_proba * rng.uniform(0.5, 1, class_proba.shape))
    design = Transition.partial(
        ["a", "b"], labeled=dict(zip("ab", rates, strict=True)), negative="-"
    )
    label_proba = class_proba @ design.proba
    drawn = (rng.random(3000)[:, None] > np.cumsum(label_proba, axis=1)).sum(axis=1)
    return label_proba, np.array(["a", "b", None], dtype=object)[drawn]


def test_a_class_prior_is_estimated_by_a_method_with_its_interval(rng):
    label_proba, labels = positive_unlabeled(rng)
    clf = DecoupledClassifier(negative="-", class_prior="density-ratio")
    clf.fit_from_proba(label_proba, labels)
    assert_allclose(clf.class_prior_, 1 / 3, atol=0.06)
    assert_allclose(np.diag(clf.transition_.proba)[:2], [0.2, 0.5], rtol=0.2)
    low, high = clf.class_prior_interval_
    assert np.all((low <= clf.class_prior_ + 1e-9) & (clf.class_prior_ <= high + 1e-9))
    assert np.all(high - low < 0.2)
    told = clone(clf).set_params(class_prior=[1 / 3, 1 / 3])
    assert told.fit_from_proba(label_proba, labels).class_prior_interval_ is None


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"class_prior": "best-bin"}, "needs negative, the class that has no labels"),
        ({"class_prior": "best", "negative": "-"}, "class_prior is 'best' and negative '-'"),
    ],
)
def test_a_class_prior_by_a_method_needs_a_negative_class_and_a_method(given, words):
    with pytest.raises(ValueError, match=words):
        DecoupledClassifier(**given).fit_from_proba(np.full((4, 2), 0.5), ["a", None] * 2)


def test_one_named_label_has_no_noise_by_any_method():
    label_proba = np.column_stack([np.tile([0.4, 0.05], 40), np.tile([0.6, 0.95], 40)])
    labels = np.array(["p", None, None, None] * 20, dtype=object)
    for method in ("estimate", "calibrated", "confident"):
        clf = DecoupledClassifier(negative="n", noise=method).fit_from_proba(label_proba, labels)
        assert clf.transition_.proba[1, 0] == 0


def test_a_class_prior_by_a_method_takes_labels_for_right():
    clf = DecoupledClassifier(negative="n", class_prior="best-bin", noise=0.1)
    with pytest.raises(ValueError, match="takes labels for right; with noise="):
        clf.fit_from_proba(np.full((4, 2), 0.5), ["p", None] * 2)


def test_a_dip_on_the_way_does_not_end_the_search():
    """Without noise 30 nats are lost to the best, at a little of it 80, at half of it none."""

    def value(rate):
        return np.interp(rate, [0, 0.1, 0.5, 0.8], [-30, -80, 0, -500])

    assert _last_likely(value, 0.8)[0] == pytest.approx(0.5, abs=0.01)
