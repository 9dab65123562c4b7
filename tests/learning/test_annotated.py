"""A classifier learns classes from the answers of several annotators."""

import json
import pickle
from functools import partial

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import DataConversionWarning
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.naive_bayes import GaussianNB
from sklearn.tree import DecisionTreeClassifier

from looselabels import DecoupledClassifier, Transition, audit, load, save
from looselabels.annotations import Annotations, annotations_to_table
from looselabels.estimation import annotator_powers
from looselabels.exceptions import IdentifiabilityWarning
from looselabels.learning import annotated
from looselabels.learning.annotation_design import design_annotations
from looselabels.learning.training import Training
from tests.learning.samples import crowd

decoupled = partial(DecoupledClassifier, random_state=0)
X, CLASSES, TABLE = crowd()
FRAME = pd.DataFrame(TABLE, columns=[f"ann{a}" for a in range(TABLE.shape[1])])
EXPERT = Transition.identity(["c", "d", "h"])


@pytest.fixture(scope="module")
def fitted():
    return decoupled(LogisticRegression()).fit(X, FRAME)


def share_right(clf, classes=CLASSES):
    return np.mean(clf.classes_[clf.class_proba_given_label_.argmax(axis=1)] == classes)


# ----------------------------------------------------------------------------------------- quality


def test_features_and_answers_together_are_better_than_either_alone(fitted):
    alone = decoupled().fit(None, FRAME)
    by_features = np.mean(fitted.classes_[fitted.class_proba_.argmax(axis=1)] == CLASSES)
    assert share_right(fitted) > max(share_right(alone), by_features) + 0.05


def test_rules_about_words_that_are_features_too_do_not_make_the_consensus_too_certain(
    monkeypatch, tmp_path
):
    """Each word is more frequent in one of three classes; six rules vote for it."""
    rng = np.random.default_rng(0)
    classes = rng.integers(3, size=600)
    meant = np.arange(18) % 3
    words = rng.random((600, 18)) < np.where(classes[:, None] == meant, 0.35, 0.12)
    votes = np.where(words[:, :6], meant[:6].astype(object), None)
    rules = Annotations.from_table(votes, missing_is_label=True)
    has_votes = words[:, :6].any(axis=1)

    def fit():
        clf = decoupled(LogisticRegression()).fit(words.astype(float), rules)
        proba = clf.class_proba_given_label_[has_votes]
        return clf, log_loss(classes[has_votes], proba), proba.max(axis=1).mean()

    clf, loss, certainty = fit()
    assert clf.annotator_inference_.powers.answers < 0.5
    save(clf, tmp_path / "rules")
    assert load(tmp_path / "rules").transitions_.powers == clf.annotator_inference_.powers
    monkeypatch.setattr(annotator_powers, "MIN_GAIN", np.inf)
    _, product_loss, product_certainty = fit()
    assert loss < product_loss - 0.1
    assert certainty < product_certainty - 0.05


def test_new_rows_are_predicted_better_than_by_a_plain_classifier_of_the_consensus():
    scores = []
    for seed in range(4):
        rows, _, table = crowd(seed=seed, n_features=8)
        others, truth, _ = crowd(1000, seed=seed + 10, n_features=8)
        alone = decoupled().fit(None, table)
        consensus = alone.classes_[alone.class_proba_given_label_.argmax(axis=1)]
        plain = LogisticRegression().fit(rows, consensus)
        ours = decoupled(LogisticRegression()).fit(rows, table)
        scores.append((plain.score(others, truth), ours.score(others, truth)))
        assert log_loss(truth, ours.predict_proba(others)) < 0.9
    before, after = np.mean(scores, axis=0)
    assert after > before + 0.01


def test_probabilities_of_the_consensus_are_neither_too_certain_nor_too_uncertain():
    rows, classes, table = crowd(1000, n_answers=1)
    clf = decoupled(LogisticRegression()).fit(rows, table)
    assert_allclose(
        clf.class_proba_given_label_.max(axis=1).mean(), share_right(clf, classes), atol=0.06
    )


def test_answers_calibrate_a_model_that_is_not_certain_enough():
    smooth = LogisticRegression(C=0.001)
    plain = decoupled(smooth, calibrate=None).fit(X, FRAME)
    clf = decoupled(smooth).fit(X, FRAME)
    assert clf.class_calibration_.power > 1.5
    assert log_loss(CLASSES, clf.class_proba_) < log_loss(CLASSES, plain.class_proba_) - 0.1


def test_annotators_are_ranked_by_how_often_they_are_right(fitted):
    quality = fitted.annotator_quality_
    assert quality["accuracy"].idxmax() == "ann0"
    assert quality["accuracy"].idxmin() == "ann1"
    assert quality.loc["ann0", "low"] > quality.loc["ann1", "high"]
    assert_array_equal(quality["answers"], FRAME.notna().sum())
    right = fitted.transitions_["ann0"].proba.diagonal()
    assert (right > fitted.transitions_["ann1"].proba.diagonal()).all()


def test_a_fit_predicts_all_rows_out_of_sample_at_most_six_times(monkeypatch):
    calls = []

    def counted(method):
        def call(*args):
            calls.append(1)
            return method(*args)

        return call

    monkeypatch.setattr(Training, "score", counted(Training.score))
    monkeypatch.setattr(Training, "learn", counted(Training.learn))
    monkeypatch.setattr(annotated, "SMALL_CHANGE", 0.0)  # all rounds
    decoupled().fit(X[:100], TABLE[:100])
    assert len(calls) == 6


@pytest.mark.parametrize(("trains_on_it", "low", "high"), [(False, 0, 0.02), (True, 0.3, 1)])
def test_a_row_is_predicted_without_its_own_answers(trains_on_it, low, high):
    """A tree remembers its training rows; only class shares change a little by one row."""
    changed = FRAME.copy()
    changed.iloc[0] = FRAME.iloc[0].map({"c": "d", "d": "h", "h": "c"})
    rows, tree = np.arange(300), DecisionTreeClassifier(random_state=0)
    folds = [
        (rows[1 - trains_on_it :], rows[:1]),
        (rows[150:], rows[1:150]),
        (rows[:150], rows[150:]),
    ]
    known = {name: EXPERT.with_noise(0.3) for name in FRAME}
    one, other = (
        decoupled(tree, known, cv=folds, refit=1, calibrate=None).fit(X, table)
        for table in (FRAME, changed)
    )
    assert low <= np.abs(one.class_proba_[0] - other.class_proba_[0]).max() <= high
    difference = one.class_proba_given_label_[0] - other.class_proba_given_label_[0]
    assert np.abs(difference).max() > 0.3


# ------------------------------------------------------------------------------------------- input


def test_a_table_with_one_column_gives_the_result_of_the_column():
    column = FRAME[["ann2"]].fillna({"ann2": "c"})
    with pytest.warns(DataConversionWarning):
        table = decoupled(GaussianNB(), noise=0.1).fit(X, column)
    with pytest.warns(DataConversionWarning):
        array = decoupled(GaussianNB(), noise=0.1).fit(X, column.to_numpy())
    alone = decoupled(GaussianNB(), noise=0.1).fit(X, column["ann2"])
    for clf in (table, array):
        assert_array_equal(clf.class_proba_given_label_, alone.class_proba_given_label_)
        assert_array_equal(clf.predict_proba(X), alone.predict_proba(X))
        assert not hasattr(clf, "annotators_")


@pytest.mark.parametrize("form", ["array", "triples", "annotations"])
def test_all_forms_of_the_same_answers_give_the_same_result(fitted, form):
    rows, columns = np.nonzero(FRAME.notna())
    labels = TABLE[rows, columns]
    Y = {
        "array": TABLE,
        "annotations": Annotations.from_table(FRAME),
        "triples": annotations_to_table(rows, FRAME.columns.to_numpy()[columns], labels),
    }[form]
    again = decoupled(LogisticRegression()).fit(X, Y)
    assert_array_equal(again.class_proba_given_label_, fitted.class_proba_given_label_)
    assert again.annotators_.tolist() == (list(range(8)) if form == "array" else list(FRAME))


def test_answers_alone_are_enough(tmp_path):
    clf = decoupled().fit(None, FRAME)
    assert share_right(clf) > 0.6
    assert_allclose(clf.class_proba_, np.tile(clf.class_prior_, (300, 1)), atol=0.05)
    assert clf.n_rounds_ == 0
    assert clf.class_estimator_ is None
    given = clf.predict_proba_given_label(None, FRAME)
    assert np.mean(given.argmax(axis=1) == clf.class_proba_given_label_.argmax(axis=1)) > 0.95
    with pytest.raises(ValueError, match="fitted to answers without features"):
        clf.predict(X)
    save(clf, tmp_path / "model")
    again = load(tmp_path / "model").predict_proba_given_label(None, FRAME)
    assert_array_equal(again, given)


def test_one_label_per_row_needs_features():
    with pytest.raises(ValueError, match="X is None, but y has one label per row"):
        decoupled().fit(None, CLASSES)


def test_sample_weights_count_rows(fitted):
    n_times = np.where(CLASSES == "c", 5, 1)
    repeated = FRAME.iloc[np.repeat(np.arange(300), n_times)]
    by_rows = decoupled().fit(None, repeated)
    by_weight = decoupled().fit(None, FRAME, sample_weight=n_times)
    assert by_weight.class_prior_[0] > 0.5
    assert_allclose(by_weight.class_prior_, by_rows.class_prior_, atol=0.01)
    for name in ("ann0", "ann5"):
        counted = by_rows.transitions_[name].proba
        assert_allclose(by_weight.transitions_[name].proba, counted, atol=0.02)
    heavy = decoupled(LogisticRegression()).fit(X, FRAME, sample_weight=n_times)
    assert heavy.class_proba_[:, 0].mean() > fitted.class_proba_[:, 0].mean() + 0.05


def test_rows_of_a_group_are_predicted_together(fitted):
    groups = np.arange(300) // 3
    grouped = decoupled(LogisticRegression()).fit(X, FRAME, groups=groups)
    assert_array_equal(grouped.label_design_.groups.group_index, groups)
    assert not np.allclose(grouped.class_proba_, fitted.class_proba_)


def test_class_shares_that_are_specified_are_matched():
    shares = {"c": 0.5, "d": 0.25, "h": 0.25}
    clf = decoupled(LogisticRegression(), class_prior=shares).fit(X, FRAME)
    assert_allclose(clf.class_proba_.mean(axis=0), [0.5, 0.25, 0.25], atol=1e-6)
    assert_array_equal(clf.class_prior_, [0.5, 0.25, 0.25])
    alone = decoupled(class_prior=shares).fit(None, FRAME)
    assert_allclose(alone.class_proba_[0], [0.5, 0.25, 0.25])


def test_rows_without_answers_are_predicted():
    table = FRAME.copy()
    table.iloc[:150] = None
    clf = decoupled(LogisticRegression()).fit(X, table)
    assert clf.label_design_.transition.labels == ("c", "d", "h", None)
    assert_allclose(clf.class_proba_given_label_[:150], clf.class_proba_[:150], atol=1e-9)
    truth = np.searchsorted(["c", "d", "h"], CLASSES)
    assert np.mean(clf.class_proba_[:150].argmax(axis=1) == truth[:150]) > 0.65


def test_rows_without_answers_teach_nothing_in_the_first_round():
    table, moved = FRAME.copy(), X.copy()
    table.iloc[:150] = None
    moved[:150] += 100
    clf = decoupled(LogisticRegression(), refit=1, calibrate=None)
    one, other = clf.fit(X, table).class_proba_, clf.fit(moved, table).class_proba_
    assert_allclose(one[150:], other[150:])
    assert not np.allclose(one[:150], other[:150])


def test_a_default_fit_with_rows_without_answers_works():
    table = TABLE.copy()
    table[::4] = None
    clf = decoupled().fit(X, table)
    assert set(clf.candidate_losses_) == {"forest", "linear"}
    assert share_right(clf) > 0.7


def test_a_frozen_estimator_predicts_the_classes_as_it_is():
    frozen = FrozenEstimator(LogisticRegression().fit(X[:100], CLASSES[:100]))
    clf = decoupled(frozen).fit(X[100:], TABLE[100:])
    assert clf.n_rounds_ == 0
    assert clf.score(X, CLASSES) > 0.7
    assert share_right(clf, CLASSES[100:]) > 0.8


@pytest.mark.parametrize("refit", [False, 1, 2])
def test_the_number_of_rounds_can_be_specified(refit):
    clf = decoupled(LogisticRegression(), refit=refit).fit(X, FRAME)
    assert clf.n_rounds_ == int(refit)
    assert share_right(clf) > 0.75


@pytest.mark.slow
def test_a_table_after_a_column_and_a_column_after_a_table_leave_nothing_behind(fitted):
    clf = clone(fitted).fit(X, CLASSES).fit(X, FRAME)
    assert_array_equal(clf.class_proba_, fitted.class_proba_)
    assert clf.gap_ is None
    clf.fit(X, CLASSES)
    assert not any(hasattr(clf, name) for name in ("annotators_", "transitions_"))
    assert clf.predict_proba_given_label(X, CLASSES).shape == (300, 3)


# --------------------------------------------------------------------------------------- prediction


def test_new_rows_can_have_any_of_the_annotators(fitted):
    some = FRAME[["ann3", "ann0"]].iloc[:40]
    given = fitted.predict_proba_given_label(X[:40], some)
    by_hand = fitted.predict_proba(X[:40])
    for name in some:
        transition = fitted.transitions_[name]
        for row, label in enumerate(some[name]):
            if isinstance(label, str):
                by_hand[row] *= transition.proba[:, transition.labels.index(label)]
    assert_allclose(given, by_hand / by_hand.sum(axis=1, keepdims=True), atol=1e-9)
    unasked = some[["ann3"]].copy()
    unasked.iloc[1:] = None
    found = fitted.predict_proba_given_label(X[:40], unasked)
    assert_allclose(found[1:], fitted.predict_proba(X[1:40]), atol=1e-9)


def test_an_array_of_new_rows_needs_all_annotators(fitted):
    found = fitted.predict_proba_given_label(X, TABLE)
    assert_array_equal(found, fitted.predict_proba_given_label(X, FRAME))
    with pytest.raises(ValueError, match=r"array with 3 columns; .* fitted to 8 annotators"):
        fitted.predict_proba_given_label(X, TABLE[:, :3])


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (FRAME.rename(columns={"ann0": "bob"}), r"annotators of Y contain \['bob'\]; known are"),
        (FRAME.replace("c", "cat"), r"labels of Y contain \['cat'\]; known are \['c', 'd', 'h'\]"),
        (FRAME.iloc[:9], "Y has 9 rows; X has 300"),
        (CLASSES, "must be a DataFrame or a 2-D array"),
    ],
)
def test_answers_that_do_not_fit_the_classifier_are_refused(fitted, table, message):
    with pytest.raises(ValueError, match=message):
        fitted.predict_proba_given_label(X, table)


# ------------------------------------------------------------------------ specified transitions


def test_a_trusted_expert_decides():
    clf = decoupled(LogisticRegression(), {"ann0": EXPERT}).fit(X, FRAME)
    rows = FRAME["ann0"].notna().to_numpy()
    found = clf.classes_[clf.class_proba_given_label_[rows].argmax(axis=1)]
    assert_array_equal(found, FRAME["ann0"][rows])
    assert_array_equal(clf.transitions_["ann0"].proba, np.eye(3))
    assert_allclose(clf.annotator_quality_.loc["ann0", ["accuracy", "low", "high"]].tolist(), 1)


def test_a_transition_with_a_strength_is_where_an_annotator_starts():
    """ann3 is often wrong: its answers correct the belief that it is right."""
    rates, belief = [], {"ann3": EXPERT.with_noise(0.05)}
    for strength in (1, 20, np.inf):
        clf = decoupled(transition=belief, strength=strength).fit(None, FRAME)
        quality = clf.annotator_quality_.loc["ann3"]
        assert quality["low"] <= quality["accuracy"] <= quality["high"]
        rates.append(float(np.diag(clf.transitions_["ann3"].proba).mean()))
    assert rates[0] < rates[1] - 0.05 < rates[1] < rates[2] - 0.01


@pytest.mark.parametrize(
    ("transition", "strength", "message"),
    [
        (None, 5, "strength=5 is for transitions that you specify"),
        ("common", 5, "strength=5 is for transitions that you specify"),
        ("mapping", 0, "strength must be positive; it is 0"),
        ("mapping", "much", "strength must be positive; it is 'much'"),
    ],
)
def test_a_strength_needs_transitions_of_annotators(transition, strength, message):
    transition = {"common": EXPERT, "mapping": {"ann0": EXPERT}}.get(transition)
    with pytest.raises(ValueError, match=message):
        decoupled(transition=transition, strength=strength).fit(None, FRAME)


def test_coarse_labels_of_one_annotator_have_a_transition():
    table = FRAME.copy()
    table["ann0"] = table["ann0"].map({"c": "pet", "d": "pet", "h": "h"}).astype(object)
    table = table.where(table.notna(), None)
    coarse = Transition([[1, 0], [1, 0], [0, 1]], ["c", "d", "h"], ["pet", "h"])
    clf = decoupled(LogisticRegression(), {"ann0": coarse}).fit(X, table)
    assert clf.classes_.tolist() == ["c", "d", "h"]
    assert clf.labels_.tolist() == ["c", "d", "h", "pet"]
    pets = (table["ann0"] == "pet").to_numpy()
    assert clf.class_proba_given_label_[pets, 2].max() < 1e-6
    assert share_right(clf) > 0.75


def test_one_transition_says_what_the_labels_of_all_annotators_mean():
    meanings = Transition.from_meanings({"c": "c", "d": "d", "h": "h", "pet": ["c", "d"]})
    table = FRAME.copy()
    table["ann3"] = table["ann3"].replace({"c": "pet", "d": "pet"})
    clf = decoupled(LogisticRegression(), meanings).fit(X, table)
    assert share_right(clf) > 0.75
    pet = clf.transitions_["ann3"].proba[:, clf.labels_.tolist().index("pet")]
    assert pet[2] < min(pet[:2])


def test_labeling_functions_that_abstain():
    """A function that is silent where its class is not says something by its silence."""
    rng = np.random.default_rng(0)
    votes = np.full((300, 4), None, dtype=object)
    for a, (k, share) in enumerate([("c", 0.9), ("d", 0.8), ("h", 0.9), ("h", 0.5)]):
        fires = (k == CLASSES) & (rng.random(300) < share) | (rng.random(300) < 0.05)
        votes[fires, a] = k
    Y = Annotations.from_table(votes, missing_is_label=True)
    clf = decoupled(LogisticRegression()).fit(X, Y)
    assert clf.labels_.tolist() == ["c", "d", "h", None]
    assert share_right(clf) > 0.85
    silent = Annotations.from_table(votes[:, :3], missing_is_label=True)
    fired = clf.predict_proba_given_label(X, Y)
    assert_array_equal(clf.predict_proba_given_label(X, votes), fired)
    assert not np.allclose(clf.predict_proba_given_label(X, silent), fired)


def test_an_expert_among_labeling_functions_needs_a_missing_label():
    Y = Annotations.from_table(FRAME, missing_is_label=True)
    with pytest.raises(ValueError, match="'ann0' has no missing label, but a missing answer"):
        decoupled(LogisticRegression(), {"ann0": EXPERT}).fit(X, Y)
    silent = Transition.partial(["c", "d", "h"], labeled=0.25)
    clf = decoupled(LogisticRegression(), {"ann0": silent}).fit(X, Y)
    assert share_right(clf) > 0.8


@pytest.mark.parametrize(
    ("transition", "message"),
    [
        ({"bob": EXPERT}, r"transition names \['bob'\]; known are \['ann0'"),
        ({"ann0": np.eye(3)}, "transition of annotator 'ann0' must be a Transition"),
        ("identity", "transition must be a Transition, or a mapping"),
        (
            {"ann0": EXPERT, "ann1": Transition.identity(["c", "d"])},
            r"must have the same classes; one has \('c', 'd', 'h'\), another one \('c', 'd'\)",
        ),
        (Transition.identity(["c", "d"]), "used the label 'h' in row .*, which no class has"),
        (
            {"ann0": Transition.identity(["c", "d"])},
            "used the label 'h' in row .*, which no class has",
        ),
        (
            Transition.partial(["c", "d", "h"]),
            "transition has a missing label, but a missing answer",
        ),
    ],
)
def test_transitions_that_do_not_fit_the_answers_are_refused(transition, message):
    with pytest.raises(ValueError, match=message):
        decoupled(LogisticRegression(), transition).fit(X, FRAME)


# --------------------------------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    "parameters",
    [
        {"negative": "other"},
        {"noise": 0.1},
        {"noise": "estimate"},
        {"label_weights": "costs"},
        {"calibrate": "temperature"},
        {"class_prior": "density-ratio"},
    ],
)
def test_parameters_for_one_label_per_row_are_refused(parameters):
    (name,) = parameters
    with pytest.raises(ValueError, match=f"{name}=.* is for one label per row, but Y has several"):
        decoupled(LogisticRegression(), **parameters).fit(X, FRAME)


def test_known_classes_are_answers_of_an_expert():
    with pytest.raises(ValueError, match=r"known_classes is for one label per row.*Add a column"):
        decoupled().fit(X, FRAME, known_classes=CLASSES)


def test_a_fitted_crowd_has_no_known_classes(fitted):
    with pytest.raises(ValueError, match=r"known_classes is for one label per row.*Add a column"):
        fitted.with_known_classes(CLASSES)


def test_an_annotator_without_answers_is_like_the_others(fitted):
    table = FRAME.assign(nobody=None)
    clf = decoupled(LogisticRegression()).fit(X, table)
    assert_allclose(clf.class_proba_given_label_, fitted.class_proba_given_label_, atol=0.05)
    assert clf.annotator_quality_.loc["nobody", "answers"] == 0
    low, high = clf.annotator_quality_.loc["nobody", ["low", "high"]]
    assert high - low > 0.3


def test_one_annotator_who_answered_all_rows_among_annotators_without_answers():
    table = pd.DataFrame({"all": CLASSES, "none": None}, dtype=object)
    clf = decoupled(LogisticRegression()).fit(X, table)
    assert share_right(clf) > 0.9


def test_annotators_who_always_say_the_same_are_not_believed(fitted):
    table = FRAME.copy()
    table["x"] = table["y"] = table["z"] = "c"
    clf = decoupled(LogisticRegression()).fit(X, table)
    assert share_right(clf) > share_right(fitted) - 0.05
    assert np.ptp(clf.transitions_["x"].proba[:, 0]) < 0.3


def test_single_answers_without_features_are_warned_about():
    single = TABLE.copy()
    for row in single:
        row[np.flatnonzero(row != None)[1:]] = None  # noqa: E711
    with pytest.warns(IdentifiabilityWarning, match="do not show how often answers are wrong"):
        clf = decoupled().fit(None, single)
    assert clf.class_proba_given_label_.max(axis=1).mean() > share_right(clf)  # too certain
    expert = dict.fromkeys(range(8), EXPERT)
    decoupled(transition=expert).fit(None, single)  # nothing is estimated: no warning


def test_copies_of_an_annotator_count_once(tmp_path):
    table = FRAME.copy()
    for name in ("copy", "other copy"):
        table[name] = table["ann1"]  # who answers by chance
    alone = decoupled(LogisticRegression()).fit(X, FRAME)
    clf = decoupled(LogisticRegression()).fit(X, table)
    change = clf.class_proba_given_label_ - alone.class_proba_given_label_
    assert np.abs(change).mean() < 0.01
    assert clf.annotator_quality_["copy_of"].tolist() == [None] * 8 + ["ann1"] * 2
    assert clf.annotator_quality_.loc["copy", "answers"] == FRAME["ann1"].notna().sum()
    assert_array_equal(clf.transitions_["copy"].proba, clf.transitions_["ann1"].proba)
    given = clf.predict_proba_given_label(X, table)
    assert_array_equal(given, clf.predict_proba_given_label(X, table[list(FRAME)]))
    only = clf.predict_proba_given_label(X, table[["copy", "other copy"]])
    assert_array_equal(only, clf.predict_proba_given_label(X, FRAME[["ann1"]]))
    save(clf, tmp_path / "copies")
    again = load(tmp_path / "copies").predict_proba_given_label(X, table)
    assert_array_equal(again, given)


def test_copies_whose_rows_nobody_else_answered_are_found_by_the_features():
    rng, asked = np.random.default_rng(0), np.arange(300) % 4
    table = pd.DataFrame(dtype=object, index=range(300), columns=["a", "b", "chance", "d"])
    for a, name in enumerate(table):
        table.loc[asked == a, name] = CLASSES[asked == a]
    table.loc[asked == 2, "chance"] = rng.choice(list("cdh"), 75)
    table = table.assign(copy=table["chance"], other=table["chance"])
    clf = decoupled(LogisticRegression()).fit(X, table)
    assert clf.annotator_quality_["copy_of"].tolist() == [None] * 4 + ["chance"] * 2
    assert clf.annotator_quality_.loc["other", "accuracy"] < 0.6
    assert clf.annotator_quality_.loc["other", "answers"] == 75
    by_answers = decoupled().fit(None, table)  # three annotators who agree
    assert by_answers.annotator_quality_["copy_of"].tolist() == [None] * 6
    assert share_right(clf) > share_right(by_answers) + 0.1


def test_an_inference_that_found_copies_is_not_repeated():
    table = FRAME.assign(copy=FRAME["ann1"])
    design = design_annotations(Annotations.from_table(table))
    once, rough = annotated.count_copies_once(design)
    expected = annotated.infer_classes(once, tol=annotated.ROUGH)
    assert_array_equal(rough.class_proba_given_label, expected.class_proba_given_label)
    assert annotated.infer_from_answers(once, rough).inference is rough
    assert annotated.count_copies_once(once) == (once, None)


def test_experts_who_agree_because_they_are_right_are_no_copies():
    table = FRAME.assign(expert=CLASSES, other=CLASSES)
    clf = decoupled(LogisticRegression()).fit(X, table)
    assert clf.annotator_quality_["copy_of"].tolist() == [None] * 10
    assert share_right(clf) > 0.98


def test_one_label_alone_is_refused():
    with pytest.raises(ValueError, match="Y contains only one label, 'c'"):
        decoupled().fit(X[:20], np.full((20, 2), "c", dtype=object))


@pytest.mark.parametrize("estimator", [LogisticRegression(), GaussianNB()])
def test_a_consensus_of_one_class_is_an_error_only_if_the_estimator_needs_two(estimator):
    table = np.full((60, 3), "c", dtype=object)
    table[[0, 5], [0, 1]] = "d"  # outvoted
    if isinstance(estimator, GaussianNB):
        clf = decoupled(estimator).fit(X[:60], table)
        assert clf.classes_.tolist() == ["c", "d"]
        assert (clf.predict(X[:60]) == "c").all()
    else:
        with pytest.raises(ValueError, match="consensus of all rows is 'c', and the estimator"):
            decoupled(estimator).fit(X[:60], table)


@pytest.mark.parametrize("refit", [True, False])
@pytest.mark.parametrize("estimator", [None, GaussianNB(), LogisticRegression()])
def test_a_consensus_of_one_class_does_not_make_rows_without_answers_a_class(
    estimator, refit, tmp_path
):
    table = np.full((60, 3), "c", dtype=object)
    table[[0, 5], [0, 1]] = "d"  # outvoted
    table[10] = None
    clf = decoupled(estimator, refit=refit)
    if isinstance(estimator, LogisticRegression):
        with pytest.raises(ValueError, match="consensus of all rows is 'c', and the estimator"):
            clf.fit(X[:60], table)
        return
    clf.fit(X[:60], table)
    assert clf.label_design_.transition.labels == ("c", "d", None)
    assert clf.estimator_.classes_.tolist() == [0]
    proba = clf.predict_proba(X)
    assert (clf.classes_[proba.argmax(axis=1)] == "c").all()
    save(clf, tmp_path / "crowd")
    assert_array_equal(load(tmp_path / "crowd").predict_proba(X), proba)


def test_label_sets_that_do_not_overlap_are_all_classes():
    table = FRAME[["ann2", "ann3"]].copy()
    table["ann3"] = table["ann3"].str.upper().astype(object)
    table = table.where(table.notna(), None)
    with pytest.warns(IdentifiabilityWarning, match="No annotator uses labels of both"):
        clf = decoupled(GaussianNB()).fit(X, table)
    assert clf.classes_.tolist() == ["C", "D", "H", "c", "d", "h"]
    assert np.isfinite(clf.class_proba_given_label_).all()


def test_a_copy_of_a_fitted_crowd_has_its_transitions(fitted):
    again = pickle.loads(pickle.dumps(fitted))
    assert_array_equal(again.transitions_["ann3"].proba, fitted.transitions_["ann3"].proba)


def test_many_annotators_with_one_answer_each():
    """10,000 here; the inference itself is tested with 100,000."""
    rng = np.random.default_rng(0)
    n_rows = 5000
    classes = rng.integers(2, size=n_rows)
    rows = rng.standard_normal((n_rows, 2)) + classes[:, None]
    row = np.repeat(np.arange(n_rows), 2)
    label = np.where(rng.random(2 * n_rows) < 0.8, classes[row], 1 - classes[row])
    Y = annotations_to_table(row, np.arange(2 * n_rows), label)
    clf = decoupled(GaussianNB()).fit(rows, Y)
    assert share_right(clf, classes) > 0.85
    assert len(clf.transitions_) == len(clf.annotator_quality_) == 2 * n_rows
    first, last = clf.transitions_[0].proba, clf.transitions_[9999].proba
    assert_allclose(first, last, atol=0.2)


@pytest.mark.parametrize(
    ("rows", "annotators", "labels", "options", "message"),
    [
        ([0, 0], ["a", "a"], ["c", "d"], {}, "row 0 has several answers by annotator 'a'"),
        ([0, 9], ["a", "b"], ["c", "d"], {"n_rows": 5}, "rows contains 9; positions are between"),
        (["x"], ["a"], ["c"], {"index": ["y", "z"]}, "rows contains 'x', which index does not"),
    ],
)
def test_answers_that_cannot_be_are_refused(rows, annotators, labels, options, message):
    with pytest.raises(ValueError, match=message):
        annotations_to_table(rows, annotators, labels, **options)


@pytest.mark.parametrize(
    ("rows", "table", "message"),
    [
        (X, np.full((300, 2), None), "Y contains no answers"),
        (X[:9], FRAME, "X has 9 rows; Y has 300"),
        (X, FRAME.assign(ann1=0), "labels"),
    ],
)
def test_tables_that_do_not_fit_are_refused_and_change_nothing(fitted, rows, table, message):
    before = dict(vars(fitted))
    with pytest.raises(ValueError, match=message):
        fitted.fit(rows, table)
    assert vars(fitted) == before


# -------------------------------------------------------------------------------------------- files


@pytest.mark.parametrize("estimator", [LogisticRegression(), None, "frozen"])
def test_a_saved_crowd_predicts_as_before(estimator, tmp_path):
    pytest.importorskip("skops")
    if estimator == "frozen":
        estimator = FrozenEstimator(LogisticRegression().fit(X[:100], CLASSES[:100]))
    clf = decoupled(estimator, {"ann0": EXPERT}).fit(X, FRAME)
    save(clf, tmp_path / "crowd")
    again = load(tmp_path / "crowd")
    assert_array_equal(again.predict_proba(X), clf.predict_proba(X))
    given = clf.predict_proba_given_label(X, FRAME)
    assert_array_equal(again.predict_proba_given_label(X, FRAME), given)
    assert_array_equal(again.annotators_, clf.annotators_)
    assert again.transitions_["ann1"] == clf.transitions_["ann1"]
    pd.testing.assert_frame_equal(again.annotator_quality_, clf.annotator_quality_)
    assert again.n_rounds_ == clf.n_rounds_


def test_names_that_are_tuples_are_loaded_as_tuples(tmp_path):
    names = FRAME.map(lambda label: ("pets", (label, 1)) if isinstance(label, str) else None)
    names.columns = [("crowd", name) for name in FRAME]
    clf = decoupled().fit(None, names)
    save(clf, tmp_path / "model")
    quality = load(tmp_path / "model").annotator_quality_
    assert quality["confusions"].tolist() == clf.annotator_quality_["confusions"].tolist()
    assert quality.index.tolist() == clf.annotator_quality_.index.tolist()


@pytest.fixture
def saved(fitted, tmp_path):
    pytest.importorskip("skops")
    save(fitted, tmp_path / "crowd")
    return tmp_path / "crowd"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda a: a.pop("quality"), r"annotators lacks \['quality'\]"),
        (lambda a: a["quality"].pop("low"), r"quality lacks \['low'\]"),
        (lambda a: a["names"].pop(), r"transitions have shape \(8, 3, 3\), which does not fit"),
        (lambda a: a["quality"].update(copy_of=["bob"] * 8), "not in tuple"),
    ],
)
def test_a_damaged_crowd_is_refused(saved, change, message):
    content = json.loads((saved / "decoupling.json").read_text())
    change(content["annotators"])
    (saved / "decoupling.json").write_text(json.dumps(content))
    with pytest.raises(ValueError, match=message):
        load(saved)


# ---------------------------------------------------------------------------- specified annotators


def simulated(accuracies, n=200, seed=0):
    """Return the class of each row, and a table of answers that are right this often."""
    rng = np.random.default_rng(seed)
    truth = np.arange(n) % 2
    columns = [np.where(rng.random(n) < one, truth, 1 - truth) for one in accuracies]
    return truth, np.array(["a", "b"], dtype=object)[np.stack(columns, axis=1)]


def test_the_average_answer_includes_annotators_with_a_specified_transition():
    _, table = simulated([0.95, 0.95, 0.5])
    table[20:, 2] = None
    expert = Transition.identity(["a", "b"]).with_noise(0.05)
    clf = DecoupledClassifier(transition={0: expert, 1: expert}).fit(None, table)
    assert np.diag(clf.transition_.proba).min() > 0.85


def test_noise_of_a_common_transition_is_estimated_instead():
    _, table = simulated([0.9, 0.7, 0.7, 0.8], n=600)
    noisy = Transition.identity(["a", "b"]).with_noise(0.1)
    found = DecoupledClassifier(transition=noisy).fit(None, table).annotator_quality_["accuracy"]
    assert np.abs(np.asarray(found) - [0.9, 0.7, 0.7, 0.8]).max() < 0.1


def test_the_accuracy_of_a_rule_is_that_of_its_votes():
    _, table = simulated([0.8, 0.8, 0.8])
    table[::2] = None
    rules = Annotations.from_table(table, missing_is_label=True)
    votes = Transition([[0.4, 0.1, 0.5], [0.1, 0.4, 0.5]], ["a", "b"], ["a", "b", None])
    clf = DecoupledClassifier(transition={0: votes}).fit(None, rules)
    assert np.asarray(clf.annotator_quality_["accuracy"])[0] == pytest.approx(0.8)
    assert clf.transition_.proba.sum(axis=1) == pytest.approx([1, 1])


def test_new_rows_need_no_answer():
    _, table = simulated([0.9, 0.8, 0.8])
    clf = DecoupledClassifier().fit(None, table)
    none = np.full((2, 3), None)
    found = clf.predict_proba_given_label(None, none)
    assert_allclose(found, np.tile(clf.class_prior_, (2, 1)), atol=1e-6)
    assert len(audit(clf, none).consensus) == 2
