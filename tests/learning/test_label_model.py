"""The label model of a fitted classifier: estimated noise, label rates and class priors."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB

from looselabels import DecoupledClassifier, Transition, estimate_transition
from looselabels._rows import on_simplex
from looselabels.datasets import make_loose_labels
from looselabels.estimation import noise
from looselabels.estimation.noise import estimate_noise
from looselabels.exceptions import IdentifiabilityWarning
from looselabels.learning.label_design import design_labels
from looselabels.learning.label_model import LabelScores, model_labels, score_labels


@pytest.mark.slow
def test_the_classifier_finds_wrong_labels_without_a_specified_rate():
    X, y = load_digits(return_X_y=True)
    rng = np.random.default_rng(0)
    wrong = rng.random(len(y)) < 0.2
    labels = np.where(wrong, (y + rng.integers(1, 10, len(y))) % 10, y)
    clf = DecoupledClassifier(random_state=0).fit(X, labels)
    corrected = clf.classes_[clf.class_proba_given_label_.argmax(axis=1)]
    assert np.mean(corrected == y) > 0.97
    doubt = 1 - clf.class_proba_given_label_[np.arange(len(y)), labels]
    assert doubt.sum() == pytest.approx(wrong.sum(), rel=0.1)
    kept = DecoupledClassifier(noise=0, random_state=0).fit(X, labels)
    assert np.mean(kept.classes_[kept.class_proba_given_label_.argmax(axis=1)] == y) < 0.85


@pytest.mark.slow
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


def test_a_method_of_transitions_needs_labels_that_name_classes():
    design = Transition.from_meanings({"pet": ["cat", "dog"], "dog": "dog"})
    clf = DecoupledClassifier(GaussianNB(), design, noise="calibrated")
    with (
        pytest.raises(
            ValueError,
            match=r"needs labels that each name a class of their own; not all of \('pet'",
        ),
    ):
        clf.fit(np.arange(20.0)[:, None], ["pet", "dog"] * 10)


def digits_with_noise(rate, design, rng):
    """Return features, classes, and labels: a share of the zeros is labeled like another digit."""
    X, y = load_digits(n_class=4, return_X_y=True)
    moved = (y == 0) & (rng.random(len(y)) < rate)
    labeled_as = np.where(moved, rng.integers(1, 4, len(y)), y)
    return X / 16, y, make_loose_labels(labeled_as, design, random_state=0)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["coarse", "merged", "candidates"])
def test_noise_is_estimated_where_labels_do_not_name_classes(kind):
    rng = np.random.default_rng(0)
    design = {
        "coarse": Transition.from_meanings({0: [0], 1: [1], 2: [2], 3: [3], "2 or 3": [2, 3]}),
        "merged": Transition.combine(
            {
                "digits": Transition.identity(range(4)),
                "parity": Transition.from_meanings({"even": [0, 2], "odd": [1, 3]}),
            },
            {"digits": 2, "parity": 1},
        ),
        "candidates": Transition.from_meanings(
            {"01": [0, 1], "12": [1, 2], "23": [2, 3], "0": [0]}
        ),
    }[kind]
    X, y, labels = digits_with_noise(0.4, design, rng)
    clf = DecoupledClassifier(
        LogisticRegression(max_iter=500), design, noise="estimate", cv=3, random_state=0
    ).fit(X, labels)
    is_wrong = ~(design.is_right[design.label_index(labels), y])
    low, high = clf.label_model_.wrong_share_interval
    assert low - 0.02 < is_wrong.mean() < high + 0.02
    assert low > 0.01
    wrong = 1 - clf.transition_.proba[:, design.proba[0] > 0].sum(axis=1)
    assert wrong[0] == pytest.approx(is_wrong[y == 0].mean(), abs=0.12)


def test_the_missing_label_keeps_its_probability_next_to_coarse_labels(rng):
    proba = [[0.3, 0.2, 0.0, 0.5], [0.0, 0.4, 0.2, 0.4]]
    design = Transition(proba, ["a", "b"], ["a", "either", "b", None])
    label_proba = np.repeat(proba, 200, axis=0)
    index = [rng.choice(4, p=row) for row in label_proba]
    labels = [design.labels[s] for s in index]
    clf = DecoupledClassifier(transition=design, noise="estimate")
    found = clf.fit_from_proba(label_proba, labels).transition_.proba
    assert_allclose(found[:, 3], design.proba[:, 3], atol=0.02)


def test_noise_is_not_estimated_twice_where_labels_do_not_name_classes():
    design = Transition([[0.9, 0.1], [0.05, 0.95]], ["a", "b"], ["x", "y"])
    clf = DecoupledClassifier(GaussianNB(), design, noise="estimate")
    with pytest.raises(ValueError, match="transition has some: class 'b' gets label 'x' with prob"):
        clf.fit(np.arange(20.0)[:, None], ["x", "y"] * 10)


@pytest.mark.parametrize("noise", ["estimate", "em"])
def test_noise_is_not_estimated_if_it_can_be_on_a_class_that_is_never_labeled(noise):
    """It would be 0 on that class, which would be said with an interval of 0 to 0."""
    design = Transition.partial(["cat", "dog"], labeled=0.5, negative="other")
    clf = DecoupledClassifier(GaussianNB(), design, noise=noise)
    labels = ["cat", "dog", None, None] * 10
    advice = "on rows of class 'other', .* Specify negative='other'.* Or leave noise out and add"
    with pytest.raises(ValueError, match=advice):
        clf.fit(np.arange(40.0)[:, None], labels)
    known = design.with_noise({"other": 0.01})
    clf.set_params(transition=known, noise=None).fit(np.arange(40.0)[:, None], labels)
    assert clf.transition_ == known


@pytest.mark.parametrize("n_positive", [1, pytest.param(7, marks=pytest.mark.slow)])
def test_the_label_rate_is_found_if_a_class_has_no_labels(n_positive):
    X, y = load_digits(return_X_y=True)
    rng = np.random.default_rng(0)
    truth = np.where(y < n_positive, y, 10)
    labels = np.where((y < n_positive) & (rng.random(len(y)) < 0.3), y, None)
    clf = DecoupledClassifier(negative=10, noise=0, random_state=0).fit(X, labels)
    rates = np.diag(clf.transition_.proba)[:n_positive]
    assert rates[0] == pytest.approx(0.3, abs=0.06)
    assert np.ptp(rates) == 0  # one rate for all classes
    assert clf.class_prior_[-1] == pytest.approx(np.mean(truth == 10), abs=0.08)
    assert np.mean(clf.classes_[clf.class_proba_.argmax(axis=1)] == truth) > 0.93


def test_a_negative_class_needs_a_transition_that_is_open():
    clf = DecoupledClassifier(GaussianNB(), Transition.identity([0, 1]), negative=2)
    with pytest.raises(ValueError, match="negative is for transition=None"):
        clf.fit(np.arange(20.0)[:, None], [0, 1] * 10)


def half_of_the_rows_noisy(rng):
    """Return p(label | x), labels and weights: 300 correct rows of weight 0, 300 noisy rows."""
    class_1 = 1 / (1 + np.exp(-20 * rng.uniform(-1, 1, 600)))
    label_1 = np.where(np.arange(600) < 300, class_1, 0.2 + 0.6 * class_1)
    index = (rng.random(600) < label_1).astype(int)
    return np.column_stack([1 - label_1, label_1]), index, np.repeat([0.0, 1.0], 300)


def test_rows_of_weight_zero_say_nothing_about_the_noise(rng):
    label_proba, index, weight = half_of_the_rows_noisy(rng)
    found = estimate_noise(label_proba, index, weight)
    clf = DecoupledClassifier(noise="estimate").fit_from_proba(label_proba, index, weight)
    assert_allclose(clf.transition_.proba, found.proba)
    assert clf.label_model_.wrong_share_interval == found[1:3]
    assert_allclose(clf.label_model_.class_share_room, found.share_room)


def test_only_the_rows_that_noise_is_estimated_from_are_converted(rng, monkeypatch):
    label_proba, index, _ = half_of_the_rows_noisy(rng)
    design, n_rows, real = design_labels(index), [], LabelScores.real

    def record(scores, labels, rows=slice(None)):
        n_rows.append(len(scores.label_index[rows]))
        return real(scores, labels, rows)

    monkeypatch.setattr(LabelScores, "real", record)
    monkeypatch.setattr(noise, "MAX_ROWS", 100)
    monkeypatch.setattr(noise, "MIN_ROWS", 100)
    found = model_labels(design, score_labels(design, label_proba))
    assert n_rows == [100]
    assert_allclose(found.transition.proba, estimate_noise(label_proba, index).proba)


@pytest.mark.parametrize("strength", [np.inf, 5.0])
def test_weights_below_one_are_scaled_to_counts_of_rows(strength, rng):
    label_proba, index, _ = half_of_the_rows_noisy(rng)
    clf = DecoupledClassifier(noise="estimate", strength=strength)
    plain = clf.fit_from_proba(label_proba, index).class_proba_
    shares = np.full(600, 1 / 600)
    assert_allclose(clf.fit_from_proba(label_proba, index, shares).class_proba_, plain)


def test_labels_of_weight_zero_get_no_estimated_noise():
    X, y = load_digits(n_class=3, return_X_y=True)
    X = X / 16
    labels = np.where(np.arange(len(y)) % 5 == 0, (y + 1) % 3, y)
    clf = DecoupledClassifier(LogisticRegression(max_iter=500), noise="estimate", cv=3)
    design = Transition.identity([0, 1, 2]).with_noise({0: 0.1, 1: 0.1})  # 1 has another label
    with pytest.raises(ValueError, match=r"label_weights are 0 for every label of class 1"):
        clf.set_params(label_weights=[1, 0.0, 1]).fit(X, labels)
    with pytest.raises(
        ValueError, match=r"transition has some: class 0 gets label 1 with probability 0\.05"
    ):
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
        pytest.warns(UserWarning, match="do not occur in y"),
        pytest.raises(ValueError, match="noise='estimate' needs rows with labels; y has none"),
    ):
        clf.fit(np.arange(20.0)[:, None], [None] * 20)


@pytest.mark.parametrize("method", ["calibrated", "confident", "em", "joint"])
def test_noise_is_estimated_by_the_method_that_is_named(method, rng):
    label_proba, index, _ = half_of_the_rows_noisy(rng)
    clf = DecoupledClassifier(noise=method).fit_from_proba(label_proba, index)
    start = np.array([[0.9, 0.1], [0.1, 0.9]])
    found = estimate_transition(label_proba, index, start, method=method)
    assert_allclose(clf.transition_.proba, found.transition)


@pytest.mark.parametrize("noise", [0.3, "estimate"])
def test_the_interval_contains_the_class_prior_if_labels_are_wrong(noise, rng):
    label_proba, labels = positive_unlabeled(rng, rates=(0.4, 0.4), shares=(0.5, 0.1))
    spoiled = np.where((labels == "a") & (rng.random(len(labels)) < 0.3), "b", labels)
    clf = DecoupledClassifier(negative="-", noise=noise).fit_from_proba(label_proba, spoiled)
    low, high = clf.class_prior_interval_
    assert np.all((low <= clf.class_prior_ + 1e-9) & (clf.class_prior_ <= high + 1e-9))


@pytest.mark.parametrize(
    ("labels", "weight", "words"),
    [
        (["a", "b"] * 10, None, "no row without a label has positive weight"),
        (["a", None] * 10, [1.0, 0.0] * 10, "no row without a label has positive weight"),
        (["a", "b", None, None] * 5, [1, 0, 1, 1] * 5, "no row labeled 'b' has positive weight"),
    ],
)
def test_a_rate_needs_rows_of_every_label_or_fails_before_the_fit(labels, weight, words):
    clf = DecoupledClassifier(Unfit(), negative="-")
    with pytest.raises(ValueError, match=words):
        clf.fit(np.arange(20.0)[:, None], labels, sample_weight=weight)


class Unfit(GaussianNB):
    def fit(self, X, y, sample_weight=None):
        raise AssertionError("must not be called")


def test_an_unknown_method_is_refused():
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


def test_a_class_prior_is_estimated_with_an_interval(rng):
    label_proba, labels = positive_unlabeled(rng)
    clf = DecoupledClassifier(negative="-", class_prior="density-ratio")
    clf.fit_from_proba(label_proba, labels)
    assert_allclose(clf.class_prior_, 1 / 3, atol=0.06)
    assert_allclose(np.diag(clf.transition_.proba)[:2], [0.2, 0.5], rtol=0.2)
    low, high = clf.class_prior_interval_
    assert np.all((low <= clf.class_prior_ + 1e-9) & (clf.class_prior_ <= high + 1e-9))
    assert np.all(high - low < 0.2)
    specified = clone(clf).set_params(class_prior=[1 / 3, 1 / 3])
    assert specified.fit_from_proba(label_proba, labels).class_prior_interval_ is None


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"class_prior": "best-bin"}, "needs negative, the class without labels"),
        ({"class_prior": "best", "negative": "-"}, "class_prior is 'best' and negative is '-'"),
    ],
)
def test_estimating_a_class_prior_needs_a_negative_class_and_a_known_method(given, words):
    with pytest.raises(ValueError, match=words):
        DecoupledClassifier(**given).fit_from_proba(np.full((4, 2), 0.5), ["a", None] * 2)


def test_a_method_that_compares_labels_needs_two_of_them():
    label_proba = np.column_stack([np.tile([0.4, 0.05], 40), np.tile([0.6, 0.95], 40)])
    labels = np.array(["p", None, None, None] * 20, dtype=object)
    for method in ("calibrated", "confident"):
        clf = DecoupledClassifier(negative="n", noise=method)
        with pytest.raises(ValueError, match="y has only one"):
            clf.fit_from_proba(label_proba, labels)


def test_estimating_a_class_prior_assumes_that_labels_are_correct():
    clf = DecoupledClassifier(negative="n", class_prior="best-bin", noise=0.1)
    with pytest.raises(ValueError, match="assumes that labels are correct, but noise is"):
        clf.fit_from_proba(np.full((4, 2), 0.5), ["p", None] * 2)


# ---------------------------------------------------- wrong labels on rows of the negative class


def mislabeled_gaussians(noise, n_positive=1, distance=5.0, n_rows=1500, seed=0):
    """Return features, classes, and labels: half of the positive rows; a share of them is wrong.

    A wrong label is on a row of any class that it does not name.
    """
    rng = np.random.default_rng(seed)
    classes = rng.choice(n_positive + 1, n_rows, p=[*[0.5 / n_positive] * n_positive, 0.5])
    X = rng.standard_normal((n_rows, n_positive + 1))
    X[np.arange(n_rows), classes] += distance
    names = np.array([*(f"class {k}" for k in range(n_positive)), "other"], dtype=object)
    labels = np.full(n_rows, None, dtype=object)
    labels[(classes < n_positive) & (rng.random(n_rows) < 0.5)] = 0  # right, named below
    labels[labels == 0] = names[classes[labels == 0]]
    for row in rng.permutation(np.flatnonzero(labels != None))[: round(noise * n_rows / 4)]:  # noqa: E711
        label, labels[row] = labels[row], None
        labels[rng.choice(np.flatnonzero((names[classes] != label) & (labels == None)))] = label  # noqa: E711
    return X, names[classes], labels


def fit_linear(X, labels, **parameters):
    clf = DecoupledClassifier(
        LogisticRegression(), negative="other", refit=False, random_state=0, **parameters
    )
    return clf.fit(X, labels)


@pytest.mark.parametrize("n_positive", [1, 3])
@pytest.mark.parametrize("noise", ["estimate", 0.2])
def test_labels_on_rows_of_the_negative_class_are_found(n_positive, noise):
    X, classes, labels = mislabeled_gaussians(0.2, n_positive)
    is_labeled = np.array([label is not None for label in labels])
    is_wrong = is_labeled & (labels != classes)
    clf = fit_linear(X, labels, noise=noise)
    given_label = clf.class_proba_given_label_
    position = clf.transition_.label_index(labels)
    doubt = 1 - given_label[np.arange(len(X)), np.minimum(position, n_positive - 1)]
    assert np.mean((doubt > 0.5)[is_labeled] == is_wrong[is_labeled]) > 0.97
    assert doubt[is_labeled].sum() == pytest.approx(is_wrong.sum(), rel=0.2)
    low, high = clf.class_prior_interval_
    true_shares = [np.mean(classes == name) for name in clf.classes_]
    assert_allclose(clf.class_prior_, true_shares, atol=0.04)
    assert np.all((low[-1:] < true_shares[-1]) & (true_shares[-1] < high[-1:]))
    if noise == "estimate":
        low, high = clf.label_model_.wrong_share_interval
        assert 0.05 < low < is_wrong[is_labeled].mean() < high < 0.4
    as_if_right = fit_linear(X, labels, noise=0).class_prior_
    assert as_if_right[-1] < true_shares[-1] - 0.06  # what ignoring wrong labels costs


@pytest.mark.parametrize("n_positive", [1, 3])
def test_right_labels_leave_the_class_prior_as_it_is(n_positive):
    X, _, labels = mislabeled_gaussians(0.0, n_positive)
    found, as_if_right = fit_linear(X, labels, noise="estimate"), fit_linear(X, labels)
    assert_allclose(found.class_prior_, as_if_right.class_prior_, atol=0.01)
    low, high = found.label_model_.wrong_share_interval
    assert low == 0
    assert 0 < high < 0.05


def test_a_specified_class_prior_leaves_only_the_noise_open():
    X, classes, labels = mislabeled_gaussians(0.2)
    prior = {"class 0": np.mean(classes == "class 0")}
    clf = fit_linear(X, labels, noise="estimate", class_prior=prior)
    assert clf.class_prior_[0] == prior["class 0"]
    assert clf.class_prior_interval_ is None
    implied = clf.class_prior_ @ clf.transition_.proba
    assert_allclose(implied, np.bincount(clf.label_scores_.label_index) / len(X), atol=1e-9)
    low, high = clf.label_model_.wrong_share_interval
    assert low < 0.2 < high


def test_specified_class_prior_and_noise_imply_the_transition():
    labels = np.array(["a"] * 20 + [None] * 80, dtype=object)
    label_proba = np.tile([0.2, 0.8], (100, 1))
    clf = DecoupledClassifier(negative="-", class_prior={"a": 0.4}, noise=0.1)
    found = clf.fit_from_proba(label_proba, labels).label_model_
    assert_allclose(found.transition.proba, [[0.45, 0.55], [0.02 / 0.6, 1 - 0.02 / 0.6]])
    assert found.sources.transition == "implied"
    with pytest.raises(ValueError, match=r"class_prior of 'a' is .* too small for"):
        clf.set_params(class_prior={"a": 0.1}).fit_from_proba(label_proba, labels)


def test_noise_is_asked_for_if_no_row_is_clear():
    X, _, labels = mislabeled_gaussians(0.1, distance=0.2)
    with pytest.warns(IdentifiabilityWarning, match=r"Too few rows are clearly .* as noise, such"):
        clf = fit_linear(X, labels, noise="estimate")
    low, high = clf.label_model_.wrong_share_interval
    assert low == 0
    assert high > 0.5


@pytest.mark.filterwarnings("ignore:Classes have nearly identical label distributions")
def test_labels_can_be_wrong_among_positive_classes_if_no_row_is_clear():
    """The warning is about rows of the negative class only: other labels are not taken as right."""
    labels = np.array(["a", "b", *[None] * 3] * 40, dtype=object)
    label_proba = np.tile([0.2, 0.2, 0.6], (200, 1))
    clf = DecoupledClassifier(negative="-", noise="estimate")
    words = r"As few labels as possible were taken to be on rows of '-'\."
    with pytest.warns(IdentifiabilityWarning, match=words):
        found = clf.fit_from_proba(label_proba, labels).label_model_.transition.proba
    assert found[2, :2].sum() < 0.5 < found[2, 2]
    assert found[0, 1] > 0.01


@pytest.mark.filterwarnings("ignore:1000 of 1000 rows have several class distributions")
@pytest.mark.parametrize("names", [["a"] * 5, ["a", "a", "b", "b", "c"]])
def test_few_labels_on_rows_that_look_unlabeled_are_no_error(names):
    """p(label | x) of every labeled row is below the rate at which negative rows get labels."""
    labels = np.array([*names, *[None] * 995], dtype=object)
    shares = np.unique(names, return_counts=True)[1] / len(names)
    labeled = np.concatenate([np.full(5, 1e-4), np.linspace(1e-4, 1e-2, 995)])
    label_proba = np.column_stack([np.outer(labeled, shares), 1 - labeled])
    clf = DecoupledClassifier(negative="-", noise="estimate", calibrate=None)
    with pytest.warns(IdentifiabilityWarning, match="Too few rows are clearly"):
        clf.fit_from_proba(label_proba, labels)
    assert_allclose(clf.class_proba_.sum(axis=1), 1)
    assert clf.label_model_.wrong_share_interval[1] > 0.5
