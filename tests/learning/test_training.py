"""How often classes are learned is decided by rows that took part in no step."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import LeaveOneOut, RepeatedKFold, StratifiedKFold
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from looselabels import BalancedForestClassifier, DecoupledClassifier, Transition
from looselabels.exceptions import IdentifiabilityWarning
from looselabels.learning import training as steps
from looselabels.learning.candidates import FitData, make_training
from looselabels.learning.copies import RowGroups
from looselabels.learning.decoupling import decouple
from looselabels.learning.label_design import design_labels
from looselabels.learning.label_model import model_labels
from looselabels.learning.out_of_sample import choose_folds, stratified_folds
from looselabels.learning.training import (
    Rounds,
    Training,
    choose_rounds,
    joined_folds,
    restrict_folds,
)

X, TRUTH = load_digits(return_X_y=True)
TRAIN, TEST = np.arange(0, 1797, 3), np.arange(1, 1797, 3)
NEXT = Transition(0.7 * np.eye(10) + 0.3 * np.roll(np.eye(10), 1, axis=1), range(10), range(10))
LINEAR = make_pipeline(StandardScaler(), LogisticRegression(C=0.1))
FOREST = BalancedForestClassifier(30, random_state=0)


def next_labels(seed=0):
    is_wrong = np.random.default_rng(seed).random(len(TRAIN)) < 0.3
    return np.where(is_wrong, (TRUTH[TRAIN] + 1) % 10, TRUTH[TRAIN])


def training(estimator, rows, labels, **specified):
    design = design_labels(labels, **specified)
    folds = stratified_folds(design.label_index, random_state=0)
    return Training(estimator, rows, design, folds, {}, None, random_state=0)


# ----------------------------------------------------------------------------------------- rounds


@pytest.mark.parametrize("estimator", [LINEAR, FOREST], ids=["linear", "forest"])
def test_learning_the_classes_helps_any_estimator(estimator):
    never = DecoupledClassifier(estimator, NEXT, refit=False, random_state=0)
    chosen = DecoupledClassifier(estimator, NEXT, random_state=0)
    scores = [
        clf.fit(X[TRAIN], next_labels()).score(X[TEST], TRUTH[TEST]) for clf in (never, chosen)
    ]
    assert chosen.n_rounds_ >= 1
    assert scores[1] > scores[0] + 0.02
    assert never.n_rounds_ == 0
    assert never.class_estimator_ is None


def test_a_model_that_follows_wrong_labels_learns_from_sure_rows():
    rng, rows, others = np.random.default_rng(0), TRAIN[TRUTH[TRAIN] < 5], TEST[TRUTH[TEST] < 5]
    labels = np.where(rng.random(len(rows)) < 0.4, rng.integers(0, 5, len(rows)), TRUTH[rows])
    noisy = Transition.identity(range(5)).with_noise(0.32)
    given = training(LogisticRegression(max_iter=1000), X[rows] / 4, labels, transition=noisy)
    _, scores = given.score()
    found = decouple(scores, model_labels(given.design, scores))
    rounds = choose_rounds(given._replace(may_leave_out=True), found.model, "classes")
    assert rounds.only_sure

    def accuracy(rounds):
        learned = steps.learn_in_rounds(given, scores, found, "classes", rounds)
        return np.mean(learned.class_estimator.predict(X[others] / 4) == TRUTH[others])

    assert accuracy(rounds) > accuracy(rounds._replace(only_sure=False)) + 0.03


@pytest.mark.parametrize(
    ("estimator", "expected"),
    [
        (LogisticRegression(), True),
        (RandomForestClassifier(), False),
        (RandomForestClassifier(bootstrap=False), True),
        (None, False),
    ],
)
def test_forests_of_bootstrap_samples_learn_from_all_rows(estimator, expected):
    settings = DecoupledClassifier(estimator)._settings()
    data = FitData(X[TRAIN], TRUTH[TRAIN], design_labels(TRUTH[TRAIN]), {})
    given = make_training(settings, data, FOREST if estimator is None else estimator)
    assert given.may_leave_out == expected
    drawn = given.on_draws()
    assert drawn is None or drawn.may_leave_out == expected


@pytest.mark.parametrize("estimator", [LogisticRegression(), GaussianNB(), FOREST])
@pytest.mark.parametrize("draw", range(3))
def test_labels_that_are_pure_chance_choose_no_round(estimator, draw):
    assert rounds_for_chance(draw, estimator, Transition.identity(range(3)).with_noise(0.3)) == 0


@pytest.mark.slow
@pytest.mark.parametrize("estimator", [LogisticRegression(), GaussianNB()])
def test_pure_chance_hardly_ever_chooses_a_round(estimator):
    """With one standard error as the only hurdle, 4 or 5 of 16 fits learned the classes."""
    found = [rounds_for_chance(draw, estimator, None) for draw in range(16)]
    assert np.count_nonzero(found) <= 1


def rounds_for_chance(draw, estimator, transition):
    rng = np.random.default_rng(draw)
    rows, labels = rng.standard_normal((300, 5)), rng.integers(0, 3, 300)
    return DecoupledClassifier(estimator, transition, random_state=0).fit(rows, labels).n_rounds_


def test_inside_the_chain_chance_would_confirm_itself():
    """Why rows are held out: the labels of training rows seem to be predicted better and better."""
    rng = np.random.default_rng(0)
    rows, labels = rng.standard_normal((300, 5)), rng.integers(0, 3, 300)
    noisy = Transition.identity(range(3)).with_noise(0.3)
    found = [
        DecoupledClassifier(FOREST, noisy, refit=rounds, random_state=0).fit(rows, labels)
        for rounds in (0, 3)
    ]
    given = [np.sum(clf.class_proba_ * noisy.proba.T[labels], axis=1) for clf in found]
    assert np.log(given[1]).mean() > np.log(given[0]).mean()


def test_the_number_of_rounds_can_be_fixed():
    clf = DecoupledClassifier(GaussianNB(), NEXT, refit=2).fit(X[TRAIN], next_labels())
    assert clf.n_rounds_ == 2
    assert isinstance(clf.class_estimator_, GaussianNB)


@pytest.mark.parametrize("refit", [-1, 0.5, "yes"])
def test_an_impossible_number_of_rounds_is_an_error(refit):
    with pytest.raises(ValueError, match="refit must be True, False or a number of rounds"):
        DecoupledClassifier(GaussianNB(), refit=refit).fit(X[TRAIN], TRUTH[TRAIN])


def test_classes_with_the_same_labels_are_learned_once_at_most(monkeypatch):
    monkeypatch.setattr(steps, "is_better", lambda *_: True)
    monkeypatch.setattr(steps, "first_good", lambda losses, _: len(losses) - 1)
    coarse = Transition.from_meanings({"low": [0, 1], "high": [2]}, {"low": 200, "high": 100})
    labels = np.array(["low", "high"], dtype=object)[(np.arange(300) % 3 == 2).astype(int)]
    rows = np.random.default_rng(0).standard_normal((300, 2))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", IdentifiabilityWarning)
        given = training(GaussianNB(), rows, labels, transition=coarse)
        model = model_labels(given.design, given.score()[1])
        assert choose_rounds(given, model, "classes").number == 1


def test_labels_of_held_out_rows_influence_no_step():
    labels = next_labels()
    given = training(GaussianNB(), X[TRAIN], labels, transition=NEXT)
    rows, held_out = next(steps._held_out_rows(given))
    other = labels.copy()
    other[held_out] = (other[held_out] + 3) % 10
    changed = training(GaussianNB(), X[TRAIN], other, transition=NEXT)._replace(folds=given.folds)
    model = model_labels(given.design, given.score()[1])  # specified, so it depends on no label
    trials = [steps.Trial(one, model, "classes", rows, held_out) for one in (given, changed)]
    found = [trial.learn(trial.found)[0] for trial in trials]
    assert_array_equal(found[0].class_proba, found[1].class_proba)
    losses = [trial.losses(one) for trial, one in zip(trials, found, strict=True)]
    assert (losses[0] != losses[1]).any()


def test_few_rows_choose_no_round():
    rows, labels = np.arange(6.0)[:, None], ["a", "b"] * 3
    assert choose_rounds(training(GaussianNB(), rows, labels), None, "classes") == Rounds(0)


def test_the_calibration_after_the_last_round_uses_rows_that_were_held_out():
    given = training(LINEAR, X[TRAIN], next_labels(), transition=NEXT)
    _, scores = given.score()
    inferred = decouple(scores, model_labels(given.design, scores))
    rounds = choose_rounds(given, inferred.model, "classes")
    found = steps.learn_in_rounds(given, scores, inferred, "classes", rounds)
    own = steps.learn_in_rounds(given, scores, inferred, "classes", Rounds(rounds.number))
    assert_allclose(found.class_calibration.power, rounds.power)
    assert abs(own.class_calibration.power - rounds.power) > 0.02


# ---------------------------------------------------------------------------------- held-out rows


def test_rows_that_are_held_out_have_no_copy_among_the_rows_that_are_learned_from():
    labels, group = np.arange(400) % 2, np.arange(400) // 4 % 100  # four copies of each row
    copies = RowGroups(group, group)
    splitter = StratifiedKFold(5, shuffle=True, random_state=0)  # knows nothing of copies
    folds = choose_folds(GaussianNB(), splitter, labels[:, None], None, labels, {}, 0, copies)
    splits = held_out_rows(labels, folds, groups=copies)
    assert splits
    for (rows, tested), (train, test) in zip(splits, folds, strict=False):
        assert not set(group[rows]) & set(group[tested])
        assert_array_equal(rows, train)
        assert_array_equal(tested, test)


def test_rows_that_a_splitter_leaves_out_next_to_the_tested_ones_stay_out():
    labels, times = np.arange(400) % 2, np.arange(400)
    tests = np.split(times, 4)
    folds = [(times[(times < t[0] - 20) | (times > t[-1] + 20)], t) for t in tests]
    for (rows, tested), (train, test) in zip(held_out_rows(labels, folds), folds, strict=False):
        assert_array_equal(rows, train)
        assert_array_equal(tested, test)


def test_a_label_that_would_vanish_stays_with_all_rows_of_its_group():
    labels, group = np.arange(100) % 2, np.arange(100) // 10
    labels[3] = 2  # only in the first group
    folds = [(np.flatnonzero(group % 2 != k), np.flatnonzero(group % 2 == k)) for k in (0, 1)]
    (rows, tested), (others, _) = held_out_rows(labels, folds, groups=RowGroups(group))
    assert_array_equal(rows, np.flatnonzero((group % 2 == 1) | (group == 0)))
    assert_array_equal(tested, np.flatnonzero((group % 2 == 0) & (group > 0)))
    assert_array_equal(others, folds[1][0])


def test_rounds_are_chosen_with_copies_and_folds_that_know_nothing_of_them():
    rows = np.repeat(np.random.default_rng(0).standard_normal((200, 4)), 3, axis=0)
    labels = (rows[:, 0] > 0).astype(int)
    folds = StratifiedKFold(5, shuffle=True, random_state=0)  # most rows have copies in two folds
    clf = DecoupledClassifier(GaussianNB(), cv=folds, random_state=0).fit(rows, labels)
    assert clf.label_scores_.groups.are_copies
    assert clf.score(rows, labels) > 0.9


def test_folds_far_apart_may_have_no_training_rows_within_those_of_another_fold():
    rng, block = np.random.default_rng(0), np.arange(300) // 60
    rows, far = rng.standard_normal((300, 3)), abs(np.arange(5)[:, None] - block) >= 2
    folds = [(np.flatnonzero(far[k]), np.flatnonzero(block == k)) for k in range(5)]
    labels = (rows[:, 0] > 0).astype(int)
    whole = training(GaussianNB(), rows, labels)._replace(folds=folds)
    part = whole.part(folds[0][0])  # of blocks 2, 3 and 4, none is far from block 3
    assert_array_equal(np.sort(np.concatenate([t for _, t in part.folds])), np.arange(180))
    clf = DecoupledClassifier(GaussianNB(), cv=folds, random_state=0).fit(rows, labels)
    assert clf.score(rows, labels) > 0.9


def test_leaving_one_out_takes_no_trial_per_row(monkeypatch):
    rows = np.random.default_rng(0).standard_normal((100, 2))
    labels = (rows[:, 0] > 0).astype(int)
    folds = list(LeaveOneOut().split(rows))
    sizes = []
    monkeypatch.setattr(steps, "Trial", lambda *given: sizes.append(len(given[-1])))
    monkeypatch.setattr(steps, "_best_rounds", lambda trials, _: Rounds(len(trials)))
    whole = training(GaussianNB(), rows, labels)._replace(folds=folds)
    assert choose_rounds(whole, None, "classes").number == 10
    assert sizes == [10] * 10  # all rows are held out


def held_out_rows(labels, folds, groups=None):
    design = design_labels(labels, noise=0)._replace(groups=groups)
    rows = np.zeros((len(labels), 1))
    return list(steps._held_out_rows(Training(GaussianNB(), rows, design, folds, {}, None)))


# ------------------------------------------------------------------------------------------ parts


def test_restricted_folds_count_rows_anew():
    folds = [(np.array([0, 1, 2]), np.array([3, 4])), (np.array([3, 4]), np.array([0, 1, 2]))]
    (first, second) = restrict_folds(folds, np.array([1, 2, 4]))
    assert_array_equal(first[0], [0, 1])
    assert_array_equal(first[1], [2])
    assert_array_equal(second[0], [2])


def test_joined_folds_predict_each_row_by_a_model_that_could_have_predicted_it():
    near = abs(np.subtract.outer(np.arange(40), np.arange(40))) <= 2
    folds = [(np.flatnonzero(~near[k]), np.array([k])) for k in range(40)]
    joined = joined_folds(folds, 4)
    assert len(joined) == 4
    for train, test in joined:
        assert not near[np.ix_(train, test)].any()
    assert_array_equal(np.sort(np.concatenate([test for _, test in joined])), np.arange(40))


def test_repeated_folds_are_needed_once():
    folds = list(RepeatedKFold(n_splits=3, n_repeats=4, random_state=0).split(np.zeros(30)))
    for joined, expected in zip(joined_folds(folds, 10), folds[:3], strict=True):
        assert_array_equal(joined[0], expected[0])
        assert_array_equal(joined[1], expected[1])


def test_folds_that_have_no_training_rows_in_common_are_not_joined():
    block = np.arange(80) // 4  # of each fold, a model learns from two blocks only
    folds = [(np.flatnonzero((block - k) % 20 > 17), np.flatnonzero(block == k)) for k in range(20)]
    whole = training(GaussianNB(), np.zeros((80, 1)), np.arange(80) % 2)._replace(folds=folds)
    assert whole.in_few_folds() is whole


def test_a_part_has_its_own_rows_weights_and_parameters():
    weight = np.arange(1.0, 11)
    design = design_labels(list("ab" * 5), sample_weight=weight)
    folds = stratified_folds(design.label_index, n_splits=3, random_state=0)
    whole = Training(
        GaussianNB(), np.arange(10)[:, None], design, folds, {"sample_weight": weight}, None
    )
    part = whole.part(np.array([2, 3, 4, 5, 8, 9]))
    assert_array_equal(part.X[:, 0], [2, 3, 4, 5, 8, 9])
    assert_array_equal(part.design.sample_weight, [3, 4, 5, 6, 9, 10])
    assert_allclose(part.fit_params["sample_weight"], [3, 4, 5, 6, 9, 10])
    assert_array_equal(np.sort(np.concatenate([test for _, test in part.folds])), np.arange(6))


# ---------------------------------------------------------------------------------- known classes


def test_known_classes_go_along_with_the_rows_of_a_part():
    known = np.where(np.arange(len(TRAIN)) % 5 == 0, TRUTH[TRAIN].astype(object), None)
    design = design_labels(next_labels(), transition=NEXT).with_known_classes(known)
    rows = np.arange(0, len(TRAIN), 2)
    whole = training(GaussianNB(), X[TRAIN], next_labels(), transition=NEXT)
    _, scores = whole._replace(design=design).part(rows).score()
    assert_array_equal(scores.class_index, design.class_index[rows])


def test_known_classes_of_held_out_rows_enter_no_step():
    labels, held_out = next_labels(), np.arange(0, len(TRAIN), 5)
    rows = np.setdiff1d(np.arange(len(TRAIN)), held_out)
    whole = training(GaussianNB(), X[TRAIN], labels, transition=NEXT)
    model = model_labels(whole.design, whole.score()[1])
    found = []
    for classes in (TRUTH[TRAIN], (TRUTH[TRAIN] + 3) % 10):
        known = np.full(len(TRAIN), None)
        known[held_out] = classes[held_out]
        reviewed = whole._replace(design=whole.design.with_known_classes(known))
        trial = steps.Trial(reviewed, model, "classes", rows, held_out)
        learned, _ = trial.learn(trial.found)
        found.append((learned.class_proba_given_label, trial.losses(learned)))
    assert_array_equal(found[0][0], found[1][0])
    assert_array_equal(found[0][1], found[1][1])
