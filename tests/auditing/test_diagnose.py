"""Tests of assumptions: they find violations, and rarely raise false alarms."""

import itertools
import os
import warnings
from copy import copy
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import ndtri
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from looselabels import BalancedForestClassifier, DecoupledClassifier, Transition
from looselabels._rows import on_simplex
from looselabels.auditing import diagnose as diagnose_module
from looselabels.auditing.diagnose import (
    _dependence_score,
    dependence_given_class,
    diagnose,
    identifiability,
    instance_dependence,
    miscalibration,
    missing_dependence,
)
from looselabels.datasets import make_gaussians, make_loose_labels
from looselabels.exceptions import IdentifiabilityWarning
from looselabels.learning.label_model import LabelScores

CLASSES = ("red", "green", "blue", "other")
UNIFORM = Transition.identity(CLASSES).with_noise(0.3)
NEXT = Transition(0.7 * np.eye(4) + 0.3 * np.roll(np.eye(4), 1, axis=1), CLASSES, CLASSES)


def draw_labels(label_proba, rng):
    return (rng.random((len(label_proba), 1)) > label_proba.cumsum(axis=1)).sum(axis=1)


def clear_rows(n, rng):
    """Return rows of four classes that hardly overlap, and the names of the classes."""
    index = rng.integers(4, size=n)
    centers = 3 * np.array([[1, 1], [1, -1], [-1, 1], [-1, -1]])
    return centers[index] + rng.standard_normal((n, 2)), np.array(CLASSES, dtype=object)[index]


def hard_rows_wrong(X, y, rng):
    """Return labels from across the nearer axis, more often the closer it is: about 24 %."""
    near = np.abs(X).argmin(axis=1)
    wrong = rng.random(len(y)) < 0.9 * np.exp(-np.abs(X).min(axis=1) / 1.5)
    across = X * np.where(wrong[:, None] & (near[:, None] == [0, 1]), -1, 1)
    return np.where(wrong, np.array(CLASSES)[(across < 0) @ [2, 1]], y).astype(object)


def average(labels, y):
    """Return the transition that is right on average."""
    counts = [[np.sum((y == k) & (labels == s)) for s in CLASSES] for k in CLASSES]
    return Transition(on_simplex(np.array(counts, float)), CLASSES, CLASSES)


def fitted(X, y, transition, estimator=None, **parameters):
    estimator = LogisticRegression() if estimator is None else estimator
    # labels are tested, not classes; an estimated transition is not tested
    parameters = {"noise": 0, "refit": False, "random_state": 0} | parameters
    return DecoupledClassifier(estimator, transition, **parameters).fit(X, y)


# ------------------------------------------------------------------------------ more than the class


@pytest.mark.parametrize("estimator", [LogisticRegression(), GaussianNB()])
def test_labels_that_are_wrong_more_often_in_hard_rows_are_found(rng, estimator):
    X, y = clear_rows(600, rng)
    labels = hard_rows_wrong(X, y, rng)
    clf = fitted(X, labels, average(labels, y), estimator)
    assert diagnose(clf, labels)[0].found


@pytest.mark.parametrize("transition", [Transition.identity(CLASSES), UNIFORM, NEXT])
@pytest.mark.parametrize("estimator", [LogisticRegression(), GaussianNB()])
def test_labels_that_depend_on_the_class_only_raise_no_alarm(rng, transition, estimator):
    for X, y in (clear_rows(300, rng), make_gaussians(300, random_state=rng)[:2]):
        labels = make_loose_labels(y, transition, random_state=rng)
        assert not diagnose(fitted(X, labels, transition, estimator), labels)[0].found


def test_an_estimated_transition_is_tested_only_by_rows_of_known_class(rng):
    X, y = clear_rows(400, rng)
    checked = np.where(rng.random(400) < 0.7, y, None)
    for labels, expected in (
        (hard_rows_wrong(X, y, rng), True),
        (make_loose_labels(y, UNIFORM, random_state=rng), False),
    ):
        clf = fitted(X, labels, average(labels, y), GaussianNB())
        model = clf.label_model_  # as if it were estimated, which takes long
        sources = model.sources._replace(noise="estimated", transition="estimated")
        clf.label_model_ = model._replace(sources=sources)
        untested = diagnose(clf, labels)[0]
        assert not untested.found
        assert untested.p_value is None
        assert "was estimated from the same labels" in untested.words
        assert diagnose(clf, labels, checked)[0].found == expected


def test_labels_that_are_missing_more_often_in_hard_rows_are_found(rng):
    X, y = clear_rows(1000, rng)
    hard = np.exp(-np.abs(X).min(axis=1) / 1.5)
    for missing, expected in ((0.9 * hard, True), (np.full(1000, hard.mean()), False)):
        labels = np.where(rng.random(1000) < missing, None, y)
        # with weights, the estimator learns from unlabeled rows, too
        clf = fitted(X, labels, None, GaussianNB(), label_weights=[1.0] * 5)
        assert diagnose(clf, labels)[0].found == expected


def test_the_score_is_the_slope_of_the_log_likelihood(rng):
    label_proba = rng.dirichlet(np.ones(3), 40)
    class_proba, transition = rng.dirichlet(np.ones(2), 40), rng.dirichlet(np.ones(3), 2)
    index = rng.integers(3, size=40)
    given_label = class_proba * transition.T[index]
    given_label /= given_label.sum(axis=1, keepdims=True)
    logs = np.log(np.maximum(label_proba, 0.01 / 3))
    mean = np.stack([np.average(logs, axis=0, weights=w) for w in given_label.T])

    def log_likelihood(a):
        tilted = transition * np.exp(a * (logs[:, None, :] - mean))
        tilted /= tilted.sum(axis=2, keepdims=True)
        return np.log(np.sum(class_proba * tilted[np.arange(40), :, index], axis=1))

    slope = (log_likelihood(1e-5) - log_likelihood(-1e-5)) / 2e-5
    assert_allclose(
        _dependence_score(label_proba, transition, index, given_label, np.ones(40)),
        slope,
        atol=1e-6,
    )


def test_the_permutation_test_has_the_moments_of_all_permutations(rng):
    label_proba, index = rng.dirichlet(np.ones(3), 9), rng.integers(3, size=9)
    of_class = np.array([0] * 5 + [1] * 4)
    logs = np.log(np.maximum(label_proba, 0.01 / 3))
    totals = []
    for first in itertools.permutations(index[:5]):
        for second in itertools.permutations(index[5:]):
            totals.append(logs[np.arange(9), [*first, *second]].sum())
    z = (logs[np.arange(9), index].sum() - np.mean(totals)) / np.std(totals)
    p_value = dependence_given_class(label_proba, of_class, index).p_value
    assert_allclose(ndtri(1 - p_value), z)


def test_where_nothing_varies_there_is_nothing_to_test(rng):
    label_proba = rng.dirichlet(np.ones(3), 50)
    index = draw_labels(label_proba, rng)
    assert instance_dependence(label_proba, np.eye(3), index).p_value is None
    assert dependence_given_class(label_proba, index, index).p_value is None
    clf = DecoupledClassifier().fit_from_proba(label_proba, index)
    assert diagnose(clf, index, [None] * 50)[0].p_value is None


def test_columns_of_a_table_are_matched_with_the_labels_of_the_transition(rng):
    pandas = pytest.importorskip("pandas", reason="the extra `tables` is not installed")
    t = Transition.identity(["cat", "dog", "cow"]).with_noise(0.2)
    label_proba = rng.dirichlet(np.ones(3), 500)
    index = draw_labels(label_proba, rng)
    table = pandas.DataFrame(label_proba, columns=t.labels)
    expected = instance_dependence(label_proba, t.proba, index)
    assert instance_dependence(table[["dog", "cow", "cat"]], t, index) == expected
    with pytest.raises(ValueError, match=r"columns of label_proba .*'cow'"):
        instance_dependence(table[["dog", "cat"]], t, index)


def reweighted(clf, weights):
    """Return the classifier as if its scores were learned in a weighted distribution."""
    clf, weights, scores = copy(clf), np.array(weights), clf.label_scores_
    label_proba = on_simplex(scores.label_proba * weights)
    clf.label_scores_ = scores._replace(label_proba=label_proba, label_weights=weights)
    return clf


def test_label_weights_change_nothing(rng):
    X, y = make_gaussians(600, random_state=rng)[:2]
    labels = make_loose_labels(y, UNIFORM, random_state=rng)
    clf = fitted(X, labels, UNIFORM)
    before = diagnose(clf, labels)
    after = diagnose(reweighted(clf, [5.0, 0.2, 1.0, 2.0]), labels)
    assert after[0].p_value == pytest.approx(before[0].p_value, rel=1e-9)
    assert after[1:] == before[1:]


def test_rows_with_a_label_of_weight_zero_are_left_out(rng):
    X, y = clear_rows(400, rng)
    labels = make_loose_labels(y, UNIFORM, random_state=rng)
    clf = reweighted(fitted(X, labels, UNIFORM, GaussianNB()), [1.0, 1.0, 1.0, 0.0])
    rest = labels != "other"
    label_proba = clf.label_scores_.label_proba[rest, :3]
    index = UNIFORM.label_index(labels)[rest]
    alone = instance_dependence(label_proba, on_simplex(UNIFORM.proba[:, :3]), index)
    assert diagnose(clf, labels)[0].p_value == pytest.approx(alone.p_value)


def test_parameters_that_are_set_after_the_fit_change_nothing(rng):
    X, y = clear_rows(200, rng)
    labels = make_loose_labels(y, UNIFORM, random_state=rng)
    clf = fitted(X, labels, UNIFORM)
    before = diagnose(clf, labels)
    assert before[0].p_value is not None
    for later in ({"noise": "estimate"}, {"negative": "other"}, {"strength": 5}):
        assert diagnose(copy(clf).set_params(**later), labels) == before


# -------------------------------------------------------------------- identifiability, calibration


def test_classes_with_identical_label_distributions_are_named():
    pets = Transition.from_meanings({"pet": ["cat", "dog"], "other": "other"})
    finding = identifiability(pets)
    assert finding.found
    assert "('cat', 'dog')" in finding.words


@pytest.mark.parametrize(
    ("proba", "found"),
    [
        ([[1, 0, 0], [0, 1, 0], [0.5, 0.5, 0]], True),  # the third is a mixture of the others
        ([[0.0001, 0.9999], [0, 1]], True),  # one label in ten thousand
        ([[0.1, 0.9], [0, 1]], False),
    ],
)
def test_identical_mixtures_and_nearly_identical_classes_are_found(proba, found):
    columns = range(len(proba[0]))
    assert identifiability(Transition(proba, range(len(proba)), columns)).found == found


def test_the_words_distinguish_a_low_rank_from_a_bad_condition():
    mixture = Transition([[1, 0, 0], [0, 1, 0], [0.5, 0.5, 0]], range(3), range(3))
    rare = Transition([[0.0001, 0.9999], [0, 1]], range(2), range(2))
    assert "rank 2 for 3 classes" in identifiability(mixture).words
    assert "condition number" in identifiability(rare).words


def test_identifiability_agrees_with_the_warning_of_the_transition(rng):
    for n_labels in (2, 3, 4):
        transition = Transition(rng.dirichlet(np.ones(n_labels), 3), range(3), range(n_labels))
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", IdentifiabilityWarning)
            transition.check_identifiable()
        assert identifiability(transition).found == bool(caught)


def test_labels_drawn_from_the_predicted_probabilities_rarely_alarm(rng):
    alarms = 0
    for n in (10, 30, 100, 1000):
        for _ in range(50):
            label_proba = rng.dirichlet(np.ones(3), n)
            labels = draw_labels(label_proba, rng)
            alarms += miscalibration(label_proba, labels, n_draws=200).found
    assert alarms <= 8  # of 200 at a level of .01: more than 8 occur once in 5,000 times


def test_an_overconfident_model_is_found(rng):
    truth = rng.dirichlet(np.ones(3), 500)
    labels = draw_labels(truth, rng)
    assert miscalibration(on_simplex(truth**4), labels).found


def test_a_small_error_does_not_alarm_however_many_rows_there_are():
    label_proba = np.array([[0.7, 0.3]] * 20_000)
    finding = miscalibration(label_proba, (np.arange(20_000) % 100 >= 72).astype(int))
    assert finding.p_value < 0.01
    assert not finding.found


def test_an_overconfident_classifier_is_found_unless_it_is_calibrated(rng):
    X, y = make_gaussians(800, random_state=rng)[:2]
    often = np.tile(X, 5)  # naive Bayes treats copies as independent features
    clf = fitted(often, y, None, GaussianNB(), calibrate=None)
    assert diagnose(clf, y)[2].found
    assert not diagnose(fitted(often, y, None, GaussianNB()), y)[2].found


# ------------------------------------------------------------------------------------------- words


def test_other_rows_than_those_of_the_fit_are_refused(rng):
    X, y = clear_rows(100, rng)
    clf = fitted(X, y, None)
    with pytest.raises(ValueError, match="y has 99 rows; the classifier has 100"):
        diagnose(clf, y[:99])
    with pytest.raises(ValueError, match="classes has 99 rows; y has 100"):
        diagnose(clf, y, y[:99])
    with pytest.raises(ValueError, match="purple"):
        diagnose(clf, y, np.where(y == "red", "purple", y))


def test_models_that_find_other_noise_are_named(rng):
    X, y = clear_rows(300, rng)
    clf = DecoupledClassifier(GaussianNB(), noise="estimate", refit=False).fit(X, y)
    low, high = clf.label_model_.wrong_share_interval
    for rival, found in (((low, high + 0.1), False), ((high + 0.1, high + 0.2), True)):
        clf.rival_wrong_shares_ = {"forest": rival}
        finding = finding_of("candidates", clf, y)
        assert finding.found == found
        assert ("A forest alone predicts" in finding.words) == found
    clf.rival_wrong_shares_ = {"forest": (0.501, 0.502)}
    assert "finds 50% of the labels wrong" in finding_of("candidates", clf, y).words


def test_models_whose_noise_is_written_the_same_do_not_disagree(rng):
    X, y = clear_rows(300, rng)
    clf = DecoupledClassifier(GaussianNB(), noise="estimate", refit=False).fit(X, y)
    clf.label_model_ = clf.label_model_._replace(wrong_share_interval=(0.136, 0.138))
    clf.rival_wrong_shares_ = {"forest": (0.141, 0.143)}  # 14% instead of 14%
    assert not finding_of("candidates", clf, y).found


def test_an_estimator_that_predicts_the_labels_badly_is_compared_with_a_better_model(rng):
    X = rng.uniform(-3, 3, (300, 1))
    y = (abs(X[:, 0]) < 1.5).astype(int)
    bad = DecoupledClassifier(LogisticRegression(), refit=False, random_state=0).fit(X, y)
    finding = finding_of("estimator", bad, y)
    assert finding.found
    assert finding.words.startswith("A forest predicts the labels better than your estimator")
    bad.candidate_losses_ = {"forest": 1.36, "estimator": 1.43}  # not 1.4 instead of 1.4
    assert "the log-loss is 1.36 instead of 1.43" in finding_of("estimator", bad, y).words
    good = DecoupledClassifier(refit=False, random_state=0).fit(X, y)
    assert not finding_of("estimator", good, y).found
    alone = bad.set_params(noise=0).fit(X, y)  # no other model is fitted
    assert "nothing to compare" in finding_of("estimator", alone, y).words


def finding_of(kind, clf, y):
    (found,) = (finding for finding in diagnose(clf, y) if finding.kind == kind)
    return found


def test_every_finding_is_a_sentence(rng):
    X, y = clear_rows(300, rng)
    labels = hard_rows_wrong(X, y, rng)
    findings = diagnose(fitted(X, labels, UNIFORM), labels)
    assert [finding.kind for finding in findings] == [
        "instance",
        "identifiability",
        "calibration",
        "missing",
        "features",
        "copies",
        "candidates",
        "estimator",
    ]
    for finding in findings:
        assert finding.words[0].isupper()
        assert finding.words.endswith(".")


# -------------------------------------------------------------------------------------------- slow


@pytest.mark.slow
@pytest.mark.parametrize("estimator", [LogisticRegression(), GaussianNB()])
def test_at_most_five_alarms_in_a_hundred_are_false(estimator):
    """80 samples per kind of noise; at a level of .01 more than 4 occur once in 1,000 times."""
    for transition in (UNIFORM, NEXT):
        unchecked, checked = 0, 0
        for seed in range(80):
            rng = np.random.default_rng(seed)
            X, y = make_gaussians(400, random_state=rng)[:2] if seed % 2 else clear_rows(400, rng)
            labels = make_loose_labels(y, transition, random_state=rng)
            clf = fitted(X, labels, transition, estimator)
            unchecked += diagnose(clf, labels)[0].found
            checked += diagnose(clf, labels, np.where(rng.random(400) < 0.7, y, None))[0].found
        assert unchecked <= 4
        assert checked <= 4


@pytest.mark.slow
def test_labels_of_people_depend_on_more_than_the_class_and_simulated_ones_do_not():
    file = Path(os.environ.get("LOOSELABELS_DATA", ".")) / "cifar10n" / "cifar10n.npz"
    if not file.is_file():
        pytest.skip("cifar10n/cifar10n.npz is not in LOOSELABELS_DATA")
    data = np.load(file)
    rng = np.random.default_rng(0)
    rows = rng.choice(50_000, 4000, replace=False)
    X = data["X_train"][rows] * data["scale"] + data["offset"]
    y, worst = data["y_train_clean"].astype(int), data["y_train_worst"].astype(int)
    joint = np.zeros((10, 10))
    np.add.at(joint, (y, worst), 1)
    transition = Transition(on_simplex(joint), range(10), range(10))
    y, people = y[rows], worst[rows]
    simulated = make_loose_labels(y, transition, random_state=rng).astype(int)
    estimator = make_pipeline(StandardScaler(), LogisticRegression(C=0.1))
    checked = np.where(rng.random(4000) < 0.1, y, None)
    for labels, expected in ((people, True), (simulated, False)):
        clf = fitted(X, labels, transition, estimator)
        assert diagnose(clf, labels)[0].found == expected
        assert diagnose(clf, labels, checked)[0].found == expected


def test_weighted_rows_count_as_often_as_their_weight():
    rng = np.random.default_rng(0)
    label_1 = rng.uniform(0.55, 0.95, 1500)
    labels = (rng.random(1500) < label_1).astype(int)
    label_proba = np.column_stack([1 - label_1, label_1])
    # rows with label 1 are ten times as frequent as in the distribution of label_proba
    times = np.where(labels == 1, 10, 1)
    many = np.repeat(np.arange(1500), times)
    assert miscalibration(label_proba[many], labels[many]).found
    assert not miscalibration(label_proba[many], labels[many], 1 / times[many]).found
    known, some = np.array([[0.8, 0.2], [0.2, 0.8]]), np.arange(1500) % 3 == 0
    weighted = instance_dependence(label_proba, known, labels, some.astype(float))
    alone = instance_dependence(label_proba[some], known, labels[some])
    assert weighted.p_value == pytest.approx(alone.p_value, rel=1e-3)


def test_uninformative_labels_do_not_dilute_the_calibration_error():
    rng = np.random.default_rng(0)
    label_proba = np.column_stack([np.full(2000, 0.045), np.full(2000, 0.005), np.full(2000, 0.95)])
    drawn = rng.choice(3, 2000, p=[0.025, 0.025, 0.95])  # predicted 9 : 1, observed 1 : 1
    for unlabeled in (None, "?"):
        names = np.array(["a", "b", unlabeled], dtype=object)
        design = Transition.partial(["a", "b"], labeled=0.05, unlabeled=unlabeled)
        clf = DecoupledClassifier(transition=design, calibrate=None)
        clf.fit_from_proba(label_proba, names[drawn])
        assert diagnose(clf, names[drawn])[2].found


def test_an_unknown_class_is_named():
    clf = DecoupledClassifier().fit_from_proba(np.full((4, 2), 0.5), ["a", "b"] * 2)
    with pytest.raises(ValueError, match=r"classes contains \['zebra'\]; the classes of"):
        diagnose(clf, ["a", "b"] * 2, ["zebra", None, "a", "b"])


# ------------------------------------------------------------------------- missing at random


def test_labels_missing_at_random_cause_no_alarm():
    p_values = []
    for seed in range(60):
        rng = np.random.default_rng(seed)
        class_proba = rng.dirichlet(np.ones(4), 300)
        found = missing_dependence(class_proba, rng.random(300) < 0.7, rng.uniform(0.5, 1.5, 300))
        assert not found.found
        p_values.append(found.p_value)
    assert 0.02 < np.mean(np.array(p_values) < 0.1) < 0.2  # 10 % of them, give or take


def test_labels_that_one_class_lacks_more_often_cause_an_alarm(rng):
    class_proba = rng.dirichlet(np.full(3, 0.2), 500)
    is_missing = rng.random(500) < 0.5 + 0.4 * class_proba[:, 1]
    found = missing_dependence(class_proba, is_missing, classes=("cat", "dog", "bird"))
    assert found.found
    assert "rows that look like class 'dog' have a label less often" in found.words


@pytest.mark.parametrize("estimator", [GaussianNB(), BalancedForestClassifier(30, random_state=0)])
def test_a_classifier_is_tested_for_labels_that_are_not_missing_at_random(estimator):
    data = make_gaussians(800, random_state=0)
    at_random = Transition.partial(data.classes, labeled=0.5)
    rates = dict.fromkeys(data.classes, 0.5) | {"red": 0.15}
    by_class = Transition.partial(data.classes, labeled=rates)
    alarms = []
    for design in (at_random, by_class):
        y = make_loose_labels(data.y, design, random_state=0)
        clf = DecoupledClassifier(estimator, refit=False, random_state=0).fit(data.X, y)
        alarms += [f.found for f in diagnose(clf, y) if f.kind == "missing"]
    assert alarms == [False, True]
    # specified as they are, these labels are informative: there is nothing to test
    clf = DecoupledClassifier(estimator, by_class, refit=False, random_state=0).fit(data.X, y)
    assert [f.p_value for f in diagnose(clf, y) if f.kind == "missing"] == [None]


@pytest.mark.parametrize("noise", [0.1, "estimate"])
def test_of_a_large_table_only_the_rows_that_are_tested_are_converted(monkeypatch, noise):
    label_proba, n_rows = np.tile([[0.9, 0.1], [0.1, 0.9]], (500, 1)), []
    real = LabelScores.real

    def record(scores, labels, rows=slice(None)):
        n_rows.append(len(scores.label_index[rows]))
        return real(scores, labels, rows)

    clf = DecoupledClassifier(noise=noise).fit_from_proba(label_proba, ["a", "b"] * 500)
    monkeypatch.setattr(diagnose_module, "MAX_ROWS", 60)
    monkeypatch.setattr(LabelScores, "real", record)
    diagnose(clf, ["a", "b"] * 500)
    assert n_rows
    assert max(n_rows) <= 60
