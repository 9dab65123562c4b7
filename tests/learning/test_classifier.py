"""DecoupledClassifier: the estimator contract, any label mess, and what the paper promises."""

import copy
import pickle
import threading
import warnings

import joblib
import numpy as np
import pytest
import scipy.sparse as sp
import sklearn
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer
from sklearn.datasets import load_digits
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    RandomForestClassifier,
    StackingClassifier,
    VotingClassifier,
)
from sklearn.exceptions import ConvergenceWarning, DataConversionWarning, NotFittedError
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression, Perceptron
from sklearn.metrics import f1_score
from sklearn.model_selection import (
    GridSearchCV,
    LeaveOneGroupOut,
    StratifiedGroupKFold,
    cross_val_score,
)
from sklearn.naive_bayes import GaussianNB, MultinomialNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.estimator_checks import parametrize_with_checks

from looselabels import (
    BalancedForestClassifier,
    DecoupledClassifier,
    KernelDensityClassifier,
    Transition,
    audit,
    diagnose,
    estimate_transition,
    infer,
)
from looselabels.datasets import gaussian_class_proba, make_gaussians, make_loose_labels
from looselabels.exceptions import IdentifiabilityWarning
from looselabels.inference import class_proba_from
from looselabels.model_selection import LabelStratifiedKFold, neg_label_log_loss

pandas = pytest.importorskip("pandas", reason="the extra `tables` is not installed")
polars = pytest.importorskip("polars", reason="polars is not installed")

# ------------------------------------------------------------------------------------- the contract


def expected_failures(estimator):
    """Checks that no estimator of this kind can pass, each with its reason."""
    if estimator.estimator is None:
        reason = "a forest draws bootstrap samples: weights and copies of rows draw differently"
        return {
            "check_sample_weight_equivalence_on_dense_data": reason,
            "check_sample_weight_equivalence_on_sparse_data": reason,
        }
    return {}


@parametrize_with_checks(
    [
        DecoupledClassifier(LogisticRegression(), noise=0, cv=2),  # the next one estimates noise
        DecoupledClassifier(KNeighborsClassifier(1), cv=2, calibrate="marginals", refit=False),
    ],
    expected_failed_checks=expected_failures,
)
@pytest.mark.filterwarnings("ignore:Label .* samples. 2 folds:UserWarning")
@pytest.mark.filterwarnings("ignore:KNeighborsClassifier takes no sample_weight:UserWarning")
def test_the_contract_of_scikit_learn(estimator, check):
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks(
    [DecoupledClassifier(refit=False, random_state=0)], expected_failed_checks=expected_failures
)
def test_the_contract_of_scikit_learn_with_the_default_estimator(estimator, check):
    check(estimator)


# --------------------------------------------------------------------------------------- label mess

X_PETS = np.random.default_rng(0).standard_normal((60, 2)) + np.repeat([[0, 0], [4, 4]], 30, axis=0)
PETS = np.repeat(["cat", "dog"], 30).astype(object)
HALF = np.where(np.arange(60) % 3 == 0, None, PETS)


def columns(labels, missing):
    """Return a column of labels in every shape that users bring it."""
    numbers = {"cat": 1, "dog": 2, None: missing}
    return {
        "list": list(labels),
        "object": np.array(labels, dtype=object),
        "object NaN": np.array([np.nan if v is None else v for v in labels], dtype=object),
        "float": np.array([numbers[v] if v is not None else np.nan for v in labels], dtype=float),
        "pandas": pandas.Series(labels),
        "string": pandas.Series(labels, dtype="string"),
        "category": pandas.Series(labels, dtype="category"),
        "Int64": pandas.Series([numbers[v] if v else pandas.NA for v in labels], dtype="Int64"),
        "boolean": pandas.Series([v and v == "dog" for v in labels], dtype="boolean"),
        "polars": polars.Series(list(labels)),
        "polars categorical": polars.Series(list(labels), dtype=polars.Categorical),
    }


@pytest.mark.parametrize("kind", list(columns(HALF, None)))
def test_any_column_of_labels_will_do(kind):
    y = columns(HALF, None)[kind]
    clf = DecoupledClassifier(GaussianNB()).fit(X_PETS, y)
    assert len(clf.classes_) == 2
    assert clf.labels_[-1] is None
    assert_array_equal(clf.predict(X_PETS) == clf.classes_[1], PETS == "dog")


@pytest.mark.parametrize("categories", [["cat", "dog", "owl"], ["ant", "cat", "dog"]])
def test_an_unused_category_is_a_class_of_which_nothing_is_known(categories):
    y = pandas.Categorical(HALF, categories=categories)
    with pytest.warns(UserWarning, match=r"Labels \['(owl|ant)'\] .* do not occur in y"):
        clf = DecoupledClassifier(GaussianNB(), random_state=0).fit(X_PETS, y)
    assert clf.classes_.tolist() == categories
    assert_array_equal(clf.predict(X_PETS), PETS)


@pytest.mark.parametrize(
    "names", [(1, 2, 3), (-1, 1), (-2, 0, 1), (False, True), ("a", "b"), (0, 1)]
)
def test_classes_keep_their_names(names):
    index = np.arange(60) % len(names)
    X = np.random.default_rng(1).standard_normal((60, 1)) * 0.1 + index[:, None]
    y = np.array(names)[index]
    clf = DecoupledClassifier(GaussianNB()).fit(X, y)
    assert clf.classes_.dtype.kind == y.dtype.kind
    assert_array_equal(clf.predict(X), y)


def test_minus_one_is_a_label_unless_the_transition_says_otherwise():
    y = np.where(np.arange(60) % 3 == 0, -1, PETS == "dog")
    with pytest.warns(UserWarning, match="y contains the label -1 in 20 rows; .* None"):
        assert DecoupledClassifier(GaussianNB()).fit(X_PETS, y).classes_.tolist() == [-1, 0, 1]
    design = Transition.partial([0, 1], unlabeled=-1, labeled=2 / 3)
    clf = DecoupledClassifier(GaussianNB(), design).fit(X_PETS, y)
    assert clf.classes_.tolist() == [0, 1]
    assert clf.score(X_PETS, PETS == "dog") == 1


def test_complete_labels_are_supervised_learning():
    clf = DecoupledClassifier(GaussianNB(), noise=0, calibrate=None).fit(X_PETS, PETS)
    assert clf.transition_ == Transition.identity(["cat", "dog"])
    plain = GaussianNB().fit(X_PETS, PETS).predict_proba(X_PETS)
    assert_allclose(clf.predict_proba(X_PETS), plain, atol=1e-10)


def test_missing_labels_are_semi_supervised_learning(capsys):
    clf = DecoupledClassifier(GaussianNB(), noise=0, verbose=1).fit(X_PETS, HALF)
    assert clf.transition_ == Transition.partial(["cat", "dog"], labeled=2 / 3)
    assert "assumed Transition(2 classes, 3 labels" in capsys.readouterr().out


def test_progress_is_told_in_words_and_to_callbacks(capsys):
    clf = DecoupledClassifier(GaussianNB(), cv=3, verbose=1)
    steps = []

    class Counter:
        def setup(self, estimator, context):
            steps.append("setup")

        def on_fit_task_begin(self, estimator, context):
            steps.append(context.task_name)

        def on_fit_task_end(self, estimator, context):
            return False

        def teardown(self, estimator, context):
            steps.append("teardown")

    if hasattr(clf, "set_callbacks"):
        clf.set_callbacks(Counter())
    clf.fit(X_PETS, HALF)
    own = ["fitted to all rows", "fold 1 of 3", "fold 2 of 3", "fold 3 of 3"]
    told = own + [f"{step} ({name})" for name in ("forest", "linear") for step in own]
    assert [line.split("] ")[1] for line in capsys.readouterr().out.splitlines()[1:]] == told
    if hasattr(clf, "set_callbacks"):
        assert steps == ["setup", *told, "teardown"]


def test_a_table_of_one_column_is_taken_with_a_warning():
    with pytest.warns(DataConversionWarning):
        clf = DecoupledClassifier(GaussianNB()).fit(X_PETS, pandas.DataFrame({"y": PETS}))
    assert clf.score(X_PETS, PETS) == 1


@pytest.mark.parametrize(
    ("y", "message"),
    [
        ([None] * 60, "y contains no label"),
        (["cat"] * 60, "only one label"),
        (["cat"] * 30 + [None] * 30, "only one label.*negative="),
        (np.linspace(0, 1, 60), "Unknown label type: .*continuous"),
        (["cat"] * 30 + [1] * 30, "labels must be of one type"),
        (np.arange("2026-01-01", "2026-03-02", dtype="datetime64[D]"), "contains times"),
        (np.ones((60, 2, 2)), "must be a column"),
        (np.ones((60, 2)), "only one label"),
        (["cat"] * 59, "inconsistent numbers of samples"),
    ],
)
def test_bad_labels_are_named(y, message):
    with pytest.raises(ValueError, match=message):
        DecoupledClassifier(GaussianNB()).fit(X_PETS, y)


def test_a_label_the_transition_lacks_is_listed():
    with pytest.raises(ValueError, match=r"labels \['bird'\] are not in the transition"):
        DecoupledClassifier(GaussianNB(), Transition.identity(["cat", "dog"])).fit(
            X_PETS, np.where(np.arange(60) == 3, "bird", PETS)
        )


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"estimator": Perceptron()}, "Perceptron has no predict_proba.*CalibratedClassifierCV"),
        ({"estimator": Perceptron}, "has no predict_proba.*CalibratedClassifierCV"),
        (
            {"estimator": make_pipeline(StackingClassifier([("bayes", GaussianNB())]))},
            "Set stackingclassifier__final_estimator=LogisticRegression",
        ),
        ({"strength": -1}, "strength must be 0 or more; it is -1"),
        ({"strength": np.nan}, "strength must be 0 or more"),
        ({"strength": "much"}, "strength must be 0 or more; it is 'much'"),
        ({"cv": 1}, "cv must be 2 folds or more, a splitter or 'oob'; it is 1"),
        ({"cv": 2.5}, "cv must be 2 folds or more.*it is 2.5"),
        ({"class_prior": {"cat": 5, "dog": 7}}, "must be between 0 and 1|sums to 12"),
        ({"calibrate": "platt"}, "calibrate must be 'classes', 'temperature', 'marginals' or None"),
        ({"strength": 10**400}, "strength must be 0 or more; it is 1000"),
        ({"noise": 1.5}, "noise must be a rate .*, or a method .*; it is 1.5"),
        ({"noise": 1}, "noise must be a rate below 1, .*; it is 1"),
        ({"noise": True}, "noise must be a rate below 1, .*; it is True"),
        ({"noise": 10**400}, "noise must be a rate below 1, .*; it is 1000"),
        ({"noise": "guess"}, "noise must be a rate .*, or a method .*; it is 'guess'"),
        ({"cv": "oob"}, "cv is 'oob' for GaussianNB"),
        ({"cv": "all"}, "cv is 'all'"),
        ({"label_weights": "balanced"}, "label_weights must be None, 'costs' or a weight"),
        ({"label_weights": {"cat": 1}}, r"label_weights lacks \['dog'\]"),
        ({"label_weights": {"cat": 0, "dog": 1}}, "every label of class 0"),
        ({"transition": np.eye(2)}, "transition must be a Transition"),
        ({"class_prior": {"cat": 0.5}}, r"class_prior lacks \['dog'\]"),
    ],
)
def test_bad_parameters_are_named(parameters, message):
    clf = DecoupledClassifier(GaussianNB()).set_params(**parameters)
    with pytest.raises(ValueError, match=message):
        clf.fit(X_PETS, PETS)


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        (-np.ones(60), "Negative values"),
        (np.full(60, np.nan), "NaN"),
        (np.ones(59), "shape"),
        (np.zeros(60), "positive|zero"),
        ([10**400] * 60, "sample_weight must be an array of numbers: .* above 1.8e308"),
    ],
)
def test_bad_sample_weights_are_named(weight, message):
    with pytest.raises(ValueError, match=message):
        DecoupledClassifier(GaussianNB()).fit(X_PETS, PETS, sample_weight=weight)


# --------------------------------------------------------------------------------- what it promises


def digits():
    X, y = load_digits(return_X_y=True)
    rng = np.random.default_rng(0)
    order = rng.permutation(len(X))
    return X[order[:1200]], y[order[:1200]], X[order[1200:]], y[order[1200:]]


@pytest.mark.slow
def test_seven_positive_classes_and_a_negative_one():
    X, y, X_test, y_test = digits()
    classes, truth = np.where(y < 7, y, 7), np.where(y_test < 7, y_test, 7)
    design = Transition.partial(range(7), labeled=0.2, negative=7)
    labels = make_loose_labels(classes, design, random_state=0)
    forest = RandomForestClassifier(50, min_samples_leaf=3, random_state=0)
    alone = forest.fit(X, [7 if label is None else label for label in labels]).predict(X_test)
    clf = DecoupledClassifier(forest, design, random_state=0).fit(X, labels)
    assert f1_score(truth, alone, average="macro") < 0.10
    assert f1_score(truth, clf.predict(X_test), average="macro") >= 0.80


def test_one_positive_class():
    X, y, X_test, y_test = digits()
    design = Transition.partial([True], labeled=0.2, negative=False)
    labels = make_loose_labels((y == 0).tolist(), design, random_state=0)
    forest = RandomForestClassifier(50, min_samples_leaf=3, random_state=0)
    clf = DecoupledClassifier(forest, design, random_state=0).fit(X, labels)
    knows_all = forest.fit(X, y == 0)
    best = f1_score(y_test == 0, knows_all.predict(X_test))
    assert f1_score(y_test == 0, clf.predict(X_test)) >= best - 0.15


@pytest.mark.slow
def test_wrong_labels_are_repaired():
    X, y, _, _ = digits()
    confusion = 0.7 * np.eye(10) + 0.3 * np.roll(np.eye(10), 1, axis=1)
    design = Transition.identity(range(10)).with_noise(confusion)
    labels = make_loose_labels(y, design, random_state=0)
    clf = DecoupledClassifier(transition=design, random_state=0).fit(X, labels)
    repaired = clf.classes_[clf.class_proba_given_label_.argmax(axis=1)]
    assert np.mean(repaired == y) >= np.mean(labels == y) + 0.2


class ExactGaussians(GaussianNB):
    """p(label | x) of make_gaussians in closed form, under whatever weights the fit is given."""

    def __init__(self, design=None):
        self.design = design

    def fit(self, X, y, sample_weight=None):
        self.classes_ = np.unique(y)
        weight = np.ones(len(y)) if sample_weight is None else sample_weight
        self.weights_ = np.array([weight[y == label].mean() for label in self.classes_])
        return self

    def predict_proba(self, X):
        proba = gaussian_class_proba(X) @ self.design.proba * self.weights_
        return proba / proba.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("label_weights", [None, "costs", [9.0, 4.0, 6.0, 0.5]])
def test_label_weights_do_not_change_the_answer_of_an_exact_classifier(label_weights):
    data = make_gaussians(600, random_state=0)
    design = Transition.partial(data.classes[:3], labeled=0.3, negative="other").with_noise(0.1)
    labels = make_loose_labels(data.y, design, random_state=0)
    clf = DecoupledClassifier(
        ExactGaussians(design),
        design,
        label_weights=label_weights,
        class_prior=[0.25] * 4,
        cv=2,
        calibrate=None,
    ).fit(data.X, labels)
    assert (clf.training_label_weights_ is None) == (label_weights is None)
    assert_allclose(clf.predict_proba(data.X), data.class_proba, atol=1e-6)
    assert_allclose(clf.class_proba_, data.class_proba, atol=1e-6)
    plain = data.class_proba * design.proba[:, design.label_index(labels)].T
    expected = plain / plain.sum(axis=1, keepdims=True)
    assert_allclose(clf.class_proba_given_label_, expected, atol=1e-6)
    assert_allclose(clf.predict_proba_given_label(data.X, labels), expected, atol=1e-6)
    assert_allclose(clf.predict_label_proba(data.X), data.class_proba @ design.proba, atol=1e-6)


def test_a_finite_strength_lets_the_data_move_the_transition():
    data = make_gaussians(3000, random_state=0)
    truth = Transition.identity(data.classes).with_noise(0.1)
    labels = make_loose_labels(data.y, truth, random_state=0)
    design = Transition.identity(data.classes).with_noise(0.3)
    fixed = DecoupledClassifier(ExactGaussians(truth), design, cv=2).fit(data.X, labels)
    moved = DecoupledClassifier(
        ExactGaussians(truth), design, cv=2, strength=10, label_weights=[2, 1, 1, 1]
    )
    moved = moved.fit(data.X, labels)
    assert fixed.transition_ == design
    error = [abs(clf.transition_.proba - truth.proba).mean() for clf in (fixed, moved)]
    assert error[1] < error[0] / 2


def test_elkan_noto_is_a_special_case():
    p = np.linspace(0, 1, 21)
    design = Transition.partial(["yes"], labeled=0.4, negative="no")
    y = np.where(np.arange(21) % 2, "yes", None)
    clf = DecoupledClassifier(transition=design, calibrate=None)
    clf.fit_from_proba(np.column_stack([p, 1 - p]), y)
    assert_allclose(clf.class_proba_[:, 0], np.clip(p / 0.4, 0, 1), atol=1e-9)


def test_the_paper_s_h_is_one_line_and_its_risk_is_the_cost_form():
    data = make_gaussians(200, random_state=0)
    design = Transition.partial(data.classes[:3], labeled=0.3, negative="other")
    labels = make_loose_labels(data.y, design, random_state=0)
    clf = DecoupledClassifier(GaussianNB(), design).fit(data.X, labels)
    reverse = design.reverse(clf.class_prior_)
    h = clf.predict_label_proba(data.X) @ reverse
    assert_allclose(h.sum(axis=1), 1)
    # R = Σ_y p(y) Σ_s p(s|y) Σ_s' R_ss' (1 − p(y|s')) = Σ_ss' p(s) R_ss' C_ss'
    risk = np.random.default_rng(0).dirichlet(np.ones(4), 4)  # R_ss' = p(g(X) = s' | s), any
    prior, costs = clf.class_prior_, design.label_costs(clf.class_prior_)
    by_class = sum(
        prior[k] * design.proba[k, s] * risk[s, t] * (1 - reverse[t, k])
        for k in range(4)
        for s in range(4)
        for t in range(4)
    )
    by_cost = np.sum((prior @ design.proba)[:, None] * risk * costs)
    assert by_class == pytest.approx(by_cost)


def test_the_class_prior_is_what_the_label_shares_imply():
    design = Transition.partial(["cat"], labeled=0.5, negative="other")
    y = np.array(["cat"] * 15 + [None] * 45, dtype=object)
    clf = DecoupledClassifier(GaussianNB(), design).fit(X_PETS, y)
    assert_allclose(clf.class_prior_, [0.5, 0.5], atol=1e-9)


def test_a_given_class_prior_sets_the_rates():
    clf = DecoupledClassifier(GaussianNB(), noise=0, class_prior={"cat": 0.4, "dog": 0.6})
    clf.fit(X_PETS, HALF)
    assert_allclose(clf.transition_.proba[:, :2].sum(axis=1), [(20 / 60) / 0.4, (20 / 60) / 0.6])
    assert_allclose(clf.class_prior_, [0.4, 0.6])


# ------------------------------------------------------------------------------------ out of sample


def test_the_default_forest_uses_its_out_of_bag_rows():
    clf = DecoupledClassifier(cv="oob", random_state=0).fit(X_PETS, HALF)
    forest = clone(clf.estimator_).set_params(oob_score=True)
    index = clf.transition_.label_index(HALF)
    forest.fit(X_PETS, index, sample_weight=index < 2)  # labels missing at random are uninformative
    assert_array_equal(clf.label_scores_.label_proba[:, :2], forest.oob_decision_function_)


def test_folds_of_groups_keep_groups_together():
    groups = np.repeat(np.arange(20), 3)
    seen = []

    class Spy(StratifiedGroupKFold):
        def split(self, X, y, groups=None):
            seen.append(groups)
            yield from super().split(X, y, groups)

    clf = DecoupledClassifier(GaussianNB(), cv=Spy(3)).fit(X_PETS, HALF, groups=groups)
    assert_array_equal(seen[0], groups)
    assert clf.label_proba_.shape == (60, 3)


@pytest.mark.parametrize("estimator", [None, GaussianNB(), RandomForestClassifier(20)])
def test_groups_need_no_splitter(estimator):
    groups = np.array([f"pet {k}" for k in np.arange(60) // 3])
    clf = DecoupledClassifier(estimator, random_state=0).fit(X_PETS, HALF, groups=groups)
    assert_array_equal(clf.label_scores_.groups.group_index, np.arange(60) // 3)
    assert clf.score(X_PETS, PETS) > 0.95


@pytest.mark.parametrize(
    "estimator", [BalancedForestClassifier(30, random_state=0), KNeighborsClassifier(1)]
)
def test_random_labels_of_a_repeated_table_do_not_look_predictable(estimator):
    rng = np.random.default_rng(1)
    X, y = rng.random((200, 3)), rng.permutation(np.repeat(["cat", "dog"], 100))
    X, y = np.tile(X, (3, 1)), np.tile(y, 3)
    clf = DecoupledClassifier(estimator, random_state=0).fit(X, y)
    found = {finding.kind: finding for finding in diagnose(clf, y)}
    assert audit(clf, y).label_accuracy < 0.6
    assert found["features"].found
    assert "400 of 600 rows are copies of other rows" in found["copies"].words
    grouped = DecoupledClassifier(estimator, random_state=0).fit(X, y, groups=np.arange(600) // 2)
    assert audit(grouped, y).label_accuracy < 0.6
    assert audit(grouped, y).groups.copies_per_row(np.ones(600)) == 3
    leaking = DecoupledClassifier(estimator, random_state=0).fit(X, y, groups=range(600))
    assert audit(leaking, y).label_accuracy > 0.9


@pytest.mark.parametrize("estimator", [BalancedForestClassifier(20, random_state=0), GaussianNB()])
def test_copies_change_the_weight_of_evidence_only(estimator):
    data = make_gaussians(200, random_state=0)
    labels = make_loose_labels(
        data.y, Transition.identity(data.classes).with_noise(0.2), random_state=0
    )
    folds = [(np.arange(200) % 4 != k, np.arange(200) % 4 == k) for k in range(4)]
    settings = {"noise": "estimate", "random_state": 0, "refit": False}
    needs_folds = isinstance(estimator, GaussianNB)
    once, twice = (
        DecoupledClassifier(
            estimator,
            cv=[tuple(np.tile(r, n) for r in f) for f in folds] if needs_folds else "oob",
            **settings,
        ).fit(np.tile(data.X, (n, 1)), np.tile(labels, n))
        for n in (1, 2)
    )
    assert twice.label_scores_.counts.sum() == 200
    assert_allclose(twice.transition_.proba, once.transition_.proba, atol=1e-6)
    assert_allclose(twice.class_proba_, np.tile(once.class_proba_, (2, 1)), atol=1e-6)


def test_folds_that_can_be_read_once_are_those_of_all_candidates():
    folds = [(np.flatnonzero(np.arange(60) % 3 != k), np.arange(k, 60, 3)) for k in range(3)]
    options = {"refit": False, "random_state": 0}
    listed = DecoupledClassifier(cv=folds, **options).fit(X_PETS, PETS)
    once = DecoupledClassifier(cv=(fold for fold in folds), **options).fit(X_PETS, PETS)
    assert once.candidate_losses_ == listed.candidate_losses_
    assert_array_equal(once.class_proba_, listed.class_proba_)


def test_groups_are_routed_by_a_search():
    groups = np.repeat(np.arange(20), 3)
    with sklearn.config_context(enable_metadata_routing=True):
        clf = DecoupledClassifier(GaussianNB(), cv=3, random_state=0)
        folds = LabelStratifiedKFold(2, random_state=0)
        scores = cross_val_score(clf, X_PETS, PETS, cv=folds, params={"groups": groups})
    assert scores.min() > 0.9


def test_groups_of_another_length_are_refused():
    with pytest.raises(ValueError, match="groups has 3 values; X has 60 rows"):
        DecoupledClassifier(GaussianNB()).fit(X_PETS, PETS, groups=[0, 1, 2])


def test_metadata_is_routed_to_the_estimator_and_the_splitter():
    groups = np.repeat(np.arange(20), 3)
    weight = np.random.default_rng(0).random(60)
    with sklearn.config_context(enable_metadata_routing=True):
        cv = StratifiedGroupKFold(3)
        base = GaussianNB().set_fit_request(sample_weight=True)
        clf = DecoupledClassifier(base, noise=0, cv=cv, calibrate=None)
        clf.fit(X_PETS, PETS, sample_weight=weight, groups=groups)
    plain = GaussianNB().fit(X_PETS, PETS, sample_weight=weight)
    assert_allclose(clf.predict_proba(X_PETS), plain.predict_proba(X_PETS), atol=1e-10)


def test_sample_weight_reaches_the_last_step_of_a_pipeline():
    weight = np.random.default_rng(0).random(60)
    pipe = make_pipeline(StandardScaler(), GaussianNB())
    ours = DecoupledClassifier(pipe, noise=0, calibrate=None)
    ours.fit(X_PETS, PETS, sample_weight=weight)
    theirs = clone(pipe).fit(X_PETS, PETS, gaussiannb__sample_weight=weight)
    assert_allclose(ours.predict_proba(X_PETS), theirs.predict_proba(X_PETS), atol=1e-10)


def test_label_weights_without_sample_weight_are_left_out_with_a_warning():
    base = KNeighborsClassifier(3)
    with pytest.warns(UserWarning, match="KNeighborsClassifier takes no sample_weight"):
        clf = DecoupledClassifier(base, label_weights={"cat": 2, "dog": 1}).fit(X_PETS, PETS)
    assert clf.training_label_weights_ is None


@pytest.mark.parametrize("max_fit_rows", [None, 40])
def test_label_weights_that_are_ignored_change_nothing(max_fit_rows):
    base, options = KNeighborsClassifier(3), {"max_fit_rows": max_fit_rows, "random_state": 0}
    with pytest.warns(UserWarning, match="label_weights are ignored"):
        clf = DecoupledClassifier(base, label_weights="costs", **options).fit(X_PETS, HALF)
    without = DecoupledClassifier(base, **options).fit(X_PETS, HALF)
    assert type(clf.estimator_) is type(without.estimator_)
    assert clf.n_rounds_ == without.n_rounds_
    assert_array_equal(clf.training_label_weights_, without.training_label_weights_)
    assert_array_equal(clf.class_proba_given_label_, without.class_proba_given_label_)


OF_LABELS = ("transition", "negative", "noise", "strength", "class_prior", "label_weights")


class ReadsOnce(DecoupledClassifier):
    """Raises if a parameter about labels is read after the design was made."""

    def _design(self, *args):
        design = super()._design(*args)
        self.has_read_ = True
        return design

    def __getattribute__(self, name):
        if name in OF_LABELS and "has_read_" in object.__getattribute__(self, "__dict__"):
            raise AssertionError(f"{name} was read again")
        return super().__getattribute__(name)


@pytest.mark.parametrize(
    "options",
    [
        {"label_weights": 1},
        {"label_weights": [1, 1, 0.1]},
        {"noise": 0.1, "refit": 1},
        {"cv": 3},
        {"max_fit_rows": 40},
        {"estimator": None},
    ],
)
def test_parameters_about_labels_are_read_once(options):
    clf = ReadsOnce(**{"estimator": GaussianNB(), "random_state": 0} | options).fit(X_PETS, HALF)
    clf = clf.with_known_classes(np.where(np.arange(60) == 0, PETS, None))
    assert clf.score(X_PETS, PETS) > 0.9


def test_a_frozen_model_is_used_as_it_is_with_its_own_labels():
    model = GaussianNB().fit(X_PETS, PETS)
    clf = DecoupledClassifier(FrozenEstimator(model)).fit(X_PETS[::2], PETS[::2])
    assert_array_equal(clf.label_scores_.label_proba, model.predict_proba(X_PETS[::2]))
    assert clf.score(X_PETS, PETS) == 1


def test_a_frozen_model_s_labels_must_be_in_the_transition():
    model = GaussianNB().fit(X_PETS, np.where(PETS == "cat", "cat", "bird"))
    with pytest.raises(ValueError, match=r"\['bird'\] are not in the transition"):
        DecoupledClassifier(FrozenEstimator(model)).fit(X_PETS, PETS)


def test_probabilities_of_a_model_elsewhere_are_enough():
    model = GaussianNB().fit(X_PETS, PETS)
    label_proba = model.predict_proba(X_PETS)
    clf = DecoupledClassifier(noise=0, calibrate=None).fit_from_proba(label_proba, PETS)
    assert_allclose(clf.predict_proba(label_proba[:5]), label_proba[:5])
    with pytest.raises(ValueError, match="label_proba has 60 rows; y has 59"):
        DecoupledClassifier().fit_from_proba(label_proba, PETS[1:])
    with pytest.raises(ValueError, match=r"shape \(60, 1\); 2 labels need as many columns"):
        DecoupledClassifier().fit_from_proba(label_proba[:, :1], PETS)


def test_trusted_rows_are_a_label_of_their_own():
    names = ["cat", "dog"]
    design = Transition.combine(
        {
            "checked": Transition.identity(names),
            "crowd": Transition.identity(names).with_noise(0.3),
        },
        sizes={"checked": 1, "crowd": 1},
    )
    y = np.empty(60, dtype=object)
    y[:] = [("checked" if i % 2 else "crowd", name) for i, name in enumerate(PETS)]
    y[1] = ("checked", "dog")  # against all appearance: checked is checked
    y[0] = ("crowd", "dog")  # the crowd may be wrong
    clf = DecoupledClassifier(GaussianNB(), design, random_state=0).fit(X_PETS, y)
    assert_allclose(clf.class_proba_given_label_[1], [0, 1])
    assert clf.class_proba_given_label_[0, 0] > 0.8


def test_soft_labels_are_weighted_copies():
    soft = np.column_stack([np.where(PETS == "cat", 0.9, 0.1), np.where(PETS == "cat", 0.1, 0.9)])
    X, y = np.repeat(X_PETS, 2, axis=0), np.tile(["cat", "dog"], 60)
    cv = StratifiedGroupKFold(3)
    clf = DecoupledClassifier(LogisticRegression(), noise=0, cv=cv)
    clf.fit(X, y, sample_weight=soft.ravel(), groups=np.repeat(np.arange(60), 2))
    assert clf.score(X_PETS, PETS) == 1
    assert abs(clf.predict_proba(X_PETS).max(axis=1).mean() - 0.9) < 0.05


# ---------------------------------------------------------------------------- around scikit-learn


def test_it_works_inside_and_around_pipelines():
    inner = DecoupledClassifier(make_pipeline(StandardScaler(), LogisticRegression()))
    outer = make_pipeline(StandardScaler(), DecoupledClassifier(LogisticRegression()))
    assert inner.fit(X_PETS, HALF).score(X_PETS, PETS) == 1
    assert outer.fit(X_PETS, HALF).score(X_PETS, PETS) == 1


def test_columns_and_feature_names():
    frame = pandas.DataFrame(X_PETS, columns=["weight", "height"])
    frame["color"] = np.where(PETS == "cat", "red", "brown")
    columns = ColumnTransformer([("n", StandardScaler(), ["weight", "height"])])
    clf = DecoupledClassifier(make_pipeline(columns, LogisticRegression())).fit(frame, HALF)
    assert clf.feature_names_in_.tolist() == ["weight", "height", "color"]
    assert clf.score(frame, PETS) == 1
    lazy = polars.DataFrame(X_PETS, schema=["weight", "height"])
    assert DecoupledClassifier(GaussianNB()).fit(lazy, HALF).score(lazy, PETS) == 1


def test_one_row_is_not_enough_to_fit():
    with pytest.raises(ValueError, match=r"fit needs at least two samples; y has n_samples=1"):
        DecoupledClassifier().fit(X_PETS[:1], HALF[:1])


@pytest.mark.parametrize(
    "estimator",
    [
        None,
        LogisticRegression(),
        HistGradientBoostingClassifier(max_iter=5),
        BalancedForestClassifier(10, random_state=0),
        KernelDensityClassifier(),
    ],
)
@pytest.mark.parametrize("cv", [None, LeaveOneGroupOut()])
@pytest.mark.filterwarnings("ignore:Labels .* have 1 group each")
def test_labels_that_are_each_in_one_group_are_named(estimator, cv):
    groups = np.where(PETS == "cat", "shop", "web")
    for labels in (PETS, HALF):
        clf = DecoupledClassifier(estimator, cv=cv, random_state=0)
        with pytest.raises(ValueError, match=r"^Every row with label '(cat|dog)' is in group '.*'"):
            clf.fit(X_PETS, labels, groups=groups)


def test_a_label_in_several_groups_is_enough_to_learn():
    groups = np.where(PETS == "cat", 0, np.arange(60) % 3)
    forest = BalancedForestClassifier(10, random_state=0)
    clf = DecoupledClassifier(forest, random_state=0).fit(X_PETS, PETS, groups=groups)
    assert np.isfinite(clf.class_proba_).all()


@pytest.mark.parametrize(
    ("cv", "message"),
    [
        ([([0], [99])], r"^cv must be .* rows as numbers from 0 to 59 or as masks: index 99"),
        ([(range(60), ["x"])], "^cv must be a number of folds, a splitter, or a list"),
        ([1, 2], "^cv must be a number of folds, a splitter, or a list"),
        ([], "cv leaves 60 rows"),
        (
            [(PETS == "cat", PETS == "dog"), (PETS == "dog", PETS == "cat")],
            "^No row is predicted by a model that has seen its label in other rows, such as '",
        ),
    ],
)
def test_folds_that_cannot_be_used_are_explained(cv, message):
    with pytest.raises(ValueError, match=message):
        DecoupledClassifier(GaussianNB(), cv=cv).fit(X_PETS, PETS)


@pytest.mark.parametrize("n_rare", [1, 2, 3])
@pytest.mark.parametrize(
    "estimator",
    [
        None,
        GaussianNB(),
        LogisticRegression(),
        RandomForestClassifier(10, random_state=0),
        HistGradientBoostingClassifier(max_iter=5),
        DecisionTreeClassifier(random_state=0),
        KNeighborsClassifier(),
        KernelDensityClassifier(),
    ],
    ids=lambda estimator: type(estimator).__name__,
)
@pytest.mark.filterwarnings(r"ignore:Label \['b'\] has . sample:UserWarning")
@pytest.mark.filterwarnings(r"ignore:Label \['b'\] has . samples. . folds:UserWarning")
def test_a_label_of_one_or_a_few_rows_is_no_error_for_any_estimator(estimator, n_rare):
    X = np.random.default_rng(0).standard_normal((60, 3))
    y = ["a"] * (60 - n_rare) + ["b"] * n_rare
    proba = DecoupledClassifier(estimator, random_state=0).fit(X, y).predict_proba(X)
    assert_allclose(proba.sum(axis=1), 1, rtol=1e-6)
    assert proba[:, 0].mean() > 0.5


def test_a_class_whose_rows_have_no_weight_is_as_good_as_absent():
    y = np.arange(90) % 3
    X = np.random.default_rng(0).standard_normal((90, 3)) + 3 * np.eye(3)[y]
    weight = np.where(y == 2, 0.0, 1.0)
    clf = DecoupledClassifier(LogisticRegression(), noise=0, random_state=0).fit(X, y, weight)
    assert_allclose(clf.class_prior_, [0.5, 0.5, 0])
    assert clf.predict_proba(X)[:, 2].max() < 1e-3


def test_a_column_may_have_the_name_of_an_attribute():
    frame = pandas.DataFrame(X_PETS, columns=["meta", "shape"])
    clf = DecoupledClassifier(GaussianNB()).fit(frame, HALF)
    assert clf.feature_names_in_.tolist() == ["meta", "shape"]


def test_two_columns_of_one_name_are_named():
    frame = pandas.DataFrame(X_PETS, columns=["weight", "weight"])
    with pytest.raises(ValueError, match=r"^X has more than one column 'weight'; rename them"):
        DecoupledClassifier(GaussianNB()).fit(frame, HALF)


@pytest.mark.parametrize("number", [np.inf, -np.inf])
@pytest.mark.parametrize("estimator", [None, GaussianNB()])
def test_infinite_features_are_refused(number, estimator):
    X = X_PETS.copy()
    X[3, 1] = number
    with pytest.raises(ValueError, match="contains infinity"):
        DecoupledClassifier(estimator).fit(X, HALF)


def test_raw_text():
    texts = ["purr purr meow", "bark woof bark"] * 30
    y = np.where(np.arange(60) % 4 > 1, None, np.tile(["cat", "dog"], 30))
    clf = DecoupledClassifier(make_pipeline(CountVectorizer(), MultinomialNB())).fit(texts, y)
    assert clf.predict(["meow", "woof"]).tolist() == ["cat", "dog"]


@pytest.mark.parametrize("wrap", [sp.csr_matrix, sp.csr_array, sp.csc_matrix])
def test_sparse_features_give_what_dense_ones_give(wrap):
    X = np.random.default_rng(0).poisson(1 + (PETS == "dog")[:, None] * np.arange(5), (60, 5))
    dense = DecoupledClassifier(MultinomialNB(), random_state=0).fit(X, HALF)
    sparse = DecoupledClassifier(MultinomialNB(), random_state=0).fit(wrap(X), HALF)
    assert_allclose(sparse.predict_proba(wrap(X)), dense.predict_proba(X), atol=1e-10)


def test_a_score_needs_one_class_per_row():
    clf = DecoupledClassifier(GaussianNB()).fit(X_PETS, HALF)
    with pytest.raises(ValueError, match=r"y has 3 rows; X has 40\."):
        clf.score(X_PETS[:40], PETS[:3])
    with pytest.raises(ValueError, match=r"y has 60 rows; X has 40\."):
        clf.score(X_PETS[:40], PETS)
    with pytest.raises(ValueError, match=r"sample_weight has 40 rows; X has 60\."):
        clf.score(X_PETS, PETS, sample_weight=np.ones(40))


def with_wide_indices(X):
    rows = sp.csr_array(X)
    rows.indices, rows.indptr = rows.indices.astype(np.int64), rows.indptr.astype(np.int64)
    return rows


@pytest.mark.parametrize("wrap", [sp.csr_matrix, sp.csc_array, with_wide_indices])
def test_sparse_features_give_the_same_forests_after_a_refit(wrap):
    X = np.random.default_rng(0).poisson(1 + (PETS == "dog")[:, None] * np.arange(5), (60, 5))
    forest = BalancedForestClassifier(30, random_state=0)
    clf = DecoupledClassifier(forest, refit=2, noise=0.1, random_state=0)
    dense, sparse = (clone(clf).fit(rows, HALF) for rows in (X, wrap(X)))
    assert_allclose(sparse.class_proba_, dense.class_proba_, atol=1e-10)
    assert_allclose(sparse.predict_proba(wrap(X)), dense.predict_proba(X), atol=1e-10)


def test_single_precision_features_are_close():
    double = DecoupledClassifier(LogisticRegression(), random_state=0).fit(X_PETS, HALF)
    single = DecoupledClassifier(LogisticRegression(), random_state=0)
    single.fit(X_PETS.astype(np.float32), HALF)
    found = single.predict_proba(X_PETS.astype(np.float32))
    assert_allclose(found, double.predict_proba(X_PETS), atol=1e-3)


def test_missing_features_are_the_estimator_s_matter():
    X = X_PETS.copy()
    X[::7, 0] = np.nan
    boosting = HistGradientBoostingClassifier(max_iter=5, min_samples_leaf=2)
    assert DecoupledClassifier(boosting, cv=2).fit(X, HALF).score(X, PETS) > 0.8
    with pytest.raises(ValueError, match="NaN"):
        DecoupledClassifier(GaussianNB()).fit(X, HALF)


def test_cross_val_score_against_classes_leaves_missing_rows_out():
    scores = cross_val_score(
        DecoupledClassifier(GaussianNB()), X_PETS, HALF, cv=LabelStratifiedKFold(3, random_state=0)
    )
    assert_array_equal(scores, 1)
    with pytest.raises(ValueError, match="no class to score against"):
        DecoupledClassifier(GaussianNB()).fit(X_PETS, HALF).score(X_PETS, [None] * 60)


def test_with_complete_labels_it_can_be_calibrated_and_voted():
    clf = DecoupledClassifier(GaussianNB(), cv=2)
    assert CalibratedClassifierCV(clf, cv=2).fit(X_PETS, PETS).score(X_PETS, PETS) == 1
    vote = VotingClassifier([("a", clf), ("b", GaussianNB())], voting="soft").fit(X_PETS, PETS)
    assert vote.score(X_PETS, PETS) == 1


@pytest.mark.parametrize(
    "remake", [copy.deepcopy, lambda c: pickle.loads(pickle.dumps(c))], ids=["deepcopy", "pickle"]
)
def test_a_copy_predicts_the_same(remake):
    clf = DecoupledClassifier(GaussianNB()).fit(X_PETS, HALF)
    assert_array_equal(remake(clf).predict_proba(X_PETS), clf.predict_proba(X_PETS))
    assert not hasattr(clone(clf), "classes_")


def test_joblib_round_trip(tmp_path):
    clf = DecoupledClassifier(GaussianNB()).fit(X_PETS, HALF)
    joblib.dump(clf, tmp_path / "clf")
    assert_array_equal(joblib.load(tmp_path / "clf").predict(X_PETS), clf.predict(X_PETS))


def test_the_html_repr_shows_the_estimator():
    assert "GaussianNB" in DecoupledClassifier(GaussianNB())._repr_html_()


def test_the_same_seed_gives_the_same_answer_and_n_jobs_does_not_matter():
    first, again, parallel = (
        DecoupledClassifier(LogisticRegression(), random_state=0, n_jobs=n).fit(X_PETS, HALF)
        for n in (None, None, 2)
    )
    assert_array_equal(first.label_proba_, again.label_proba_)
    assert_allclose(first.class_proba_, parallel.class_proba_, atol=1e-6)


def test_one_row_equals_the_row_in_a_batch():
    clf = DecoupledClassifier(GaussianNB()).fit(X_PETS, HALF)
    batch = clf.predict_proba(X_PETS)
    alone = np.vstack([clf.predict_proba(X_PETS[i : i + 1]) for i in range(5)])
    assert_allclose(alone, batch[:5], atol=1e-12)


def test_threads_predict_what_one_thread_does():
    clf = DecoupledClassifier(random_state=0).fit(X_PETS, HALF)
    expected, found = clf.predict_proba(X_PETS), [None] * 8

    def predict(i):
        found[i] = clf.predict_proba(X_PETS)

    threads = [threading.Thread(target=predict, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for answer in found:
        assert_allclose(answer, expected, atol=1e-12)


def test_predict_is_the_argmax_of_predict_proba():
    clf = DecoupledClassifier(LogisticRegression()).fit(X_PETS, HALF)
    proba = clf.predict_proba(X_PETS)
    assert_allclose(proba.sum(axis=1), 1)
    assert_array_equal(clf.predict(X_PETS), clf.classes_[proba.argmax(axis=1)])
    with np.errstate(divide="ignore"):
        assert_array_equal(clf.predict_log_proba(X_PETS), np.log(proba))


def test_an_unfitted_classifier_says_so():
    for method in ("predict", "predict_proba", "predict_label_proba"):
        with pytest.raises(NotFittedError):
            getattr(DecoupledClassifier(), method)(X_PETS)


def test_nothing_is_seeded_globally_and_the_estimator_is_left_alone():
    base = GaussianNB()
    before = np.random.get_state()[1].copy()  # noqa: NPY002  the global generator is the point
    DecoupledClassifier(base, random_state=3).fit(X_PETS, HALF)
    assert_array_equal(np.random.get_state()[1], before)  # noqa: NPY002
    assert not hasattr(base, "classes_")


def test_a_label_of_the_transition_that_never_occurs_is_allowed():
    design = Transition.identity(["bird", "cat", "dog"])
    with pytest.warns(UserWarning, match=r"Labels \['bird'\] of the transition do not occur in y"):
        clf = DecoupledClassifier(GaussianNB(), design).fit(X_PETS, PETS)
    assert clf.predict_proba(X_PETS)[:, 0].max() < 1e-3
    assert clf.score(X_PETS, PETS) == 1


class OverConfident(GaussianNB):
    """Says p(label | x)⁴, normalized: a temperature of 1/4 would make it honest."""

    def predict_proba(self, X):
        proba = super().predict_proba(X) ** 4
        return proba / proba.sum(axis=1, keepdims=True)


def test_the_temperature_makes_an_over_confident_classifier_honest():
    train, fresh = make_gaussians(1500, random_state=0), make_gaussians(1500, random_state=1)
    design = Transition.identity(train.classes).with_noise(0.1)
    labels, new_labels = (make_loose_labels(d.y, design, random_state=2) for d in (train, fresh))
    plain = DecoupledClassifier(OverConfident(), design, calibrate=None, random_state=0)
    plain.fit(train.X, labels)
    fixed = clone(plain).set_params(calibrate="temperature").fit(train.X, labels)
    assert fixed.calibration_.power == pytest.approx(1 / 4, rel=0.4)
    after = neg_label_log_loss(fixed, fresh.X, new_labels)
    assert after > neg_label_log_loss(plain, fresh.X, new_labels) + 0.01


@pytest.mark.parametrize("weights", [None, [1, 2, 3, 4]])
def test_marginals_are_the_label_frequencies_of_the_weighted_distribution(weights):
    data = make_gaussians(800, random_state=0)
    design = Transition.identity(data.classes).with_noise(0.1)
    labels = make_loose_labels(data.y, design, random_state=0)
    clf = DecoupledClassifier(
        GaussianNB(), design, calibrate="marginals", label_weights=weights, random_state=0
    ).fit(data.X, labels)
    index = design.label_index(labels)
    weight = np.ones(800) if weights is None else np.array(weights)[index]
    label_proba = clf.calibration_.apply(clf.label_scores_.label_proba)
    mean = np.average(label_proba, axis=0, weights=weight)
    assert_allclose(mean, np.bincount(index, weight) / weight.sum(), atol=1e-3)


def test_identifiability_is_warned_of_at_fit_and_not_at_each_prediction():
    label_proba = np.eye(3)[np.arange(60) % 3]  # a label that is surely missing: any class
    clf = DecoupledClassifier()
    with pytest.warns(IdentifiabilityWarning, match="of 60 rows"):
        clf.fit_from_proba(label_proba, HALF)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        clf.predict_proba(label_proba)


def test_labels_of_weight_zero_count_in_class_proba_given_label():
    data = make_gaussians(600, random_state=0)
    design = Transition.partial(data.classes, labeled=0.3)
    labels = make_loose_labels(data.y, design, random_state=0)
    flat = DecoupledClassifier(
        ExactGaussians(design), design, cv=2, calibrate=None, label_weights=[1] * 5
    ).fit(data.X, labels)
    weighted = clone(flat).set_params(label_weights=[1.0, 2.0, 3.0, 4.0, 0.0])
    weighted.fit(data.X, labels)
    expected = flat.class_proba_given_label_
    assert_allclose(weighted.class_proba_given_label_, expected, atol=1e-6)
    assert_allclose(weighted.predict_proba_given_label(data.X, labels), expected, atol=1e-6)


@pytest.mark.parametrize("cv", [None, 3])
def test_routing_does_not_change_what_weights_do(cv):
    weight = np.random.default_rng(0).random(60)
    settings = {"cv": cv, "random_state": 0, "label_weights": {"cat": 3, "dog": 1}}
    plain = DecoupledClassifier(GaussianNB(), **settings)
    with_weight = clone(plain).fit(X_PETS, PETS, sample_weight=weight).predict_proba(X_PETS)
    without = clone(plain).fit(X_PETS, PETS).predict_proba(X_PETS)
    with sklearn.config_context(enable_metadata_routing=True):
        base = GaussianNB().set_fit_request(sample_weight=True)
        routed = DecoupledClassifier(base, **settings).set_fit_request(sample_weight=True)
        assert_allclose(clone(routed).fit(X_PETS, PETS).predict_proba(X_PETS), without)
        found = clone(routed).fit(X_PETS, PETS, sample_weight=weight).predict_proba(X_PETS)
        assert_allclose(found, with_weight)
        folds, params = LabelStratifiedKFold(3, random_state=0), {"sample_weight": weight}
        routed.set_score_request(sample_weight=True)
        assert cross_val_score(routed, X_PETS, PETS, cv=folds, params=params).min() == 1


def test_a_fit_that_fails_leaves_the_last_one_whole():
    clf = DecoupledClassifier(GaussianNB(), cv=2).fit(X_PETS, HALF)
    before = clf.predict_proba(X_PETS)
    broken = X_PETS.copy()
    broken[0, 0] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        clf.fit(broken, np.where(HALF == "cat", "lion", HALF))
    assert clf.classes_.tolist() == ["cat", "dog"]
    assert_array_equal(clf.predict_proba(X_PETS), before)
    fresh = DecoupledClassifier(GaussianNB(), cv=2)
    with pytest.raises(ValueError, match="NaN"):
        fresh.fit(broken, HALF)
    with pytest.raises(NotFittedError):
        fresh.predict(X_PETS)


def test_many_models_that_do_not_converge_are_one_warning(recwarn):
    X = np.random.default_rng(0).normal(size=(60, 3)) * [1, 10, 1000]
    DecoupledClassifier(LogisticRegression(max_iter=2), refit=False).fit(X, PETS)
    assert [one.category for one in recwarn].count(ConvergenceWarning) == 1


def test_threads_leave_warnings_and_blas_as_they_were():
    from threadpoolctl import threadpool_info

    label_proba = np.random.default_rng(0).dirichlet(np.ones(3), 20_000)  # several blocks
    design = Transition.partial(["cat", "dog"], labeled=0.6)

    def state():
        blas = [(library["filepath"], library["num_threads"]) for library in threadpool_info()]
        return list(warnings.filters), blas

    class_proba_from(label_proba, design)  # loads what it needs
    before = state()
    threads = [
        threading.Thread(target=class_proba_from, args=(label_proba, design)) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert state() == before


def test_classes_of_mixed_names_are_scored():
    design = Transition.partial([1], labeled=0.5, negative="other")
    y = np.where((PETS == "cat") & (np.arange(60) % 2 == 0), 1, None)
    clf = DecoupledClassifier(GaussianNB(), design).fit(X_PETS, y)
    assert clf.score(X_PETS, [1] * 30 + ["other"] * 30) > 0.9


def test_a_weight_is_a_repeated_row_in_what_is_assumed():
    weight = np.where(HALF == None, 5, 1)  # noqa: E711  elementwise
    weighted = DecoupledClassifier(GaussianNB(), noise=0).fit(X_PETS, HALF, sample_weight=weight)
    rows = np.repeat(np.arange(60), weight)
    repeated = DecoupledClassifier(GaussianNB(), noise=0).fit(X_PETS[rows], HALF[rows])
    assert_allclose(weighted.transition_.proba, repeated.transition_.proba)
    assert_allclose(weighted.class_prior_, repeated.class_prior_)


def test_an_unfitted_frozen_model_is_named():
    with pytest.raises(NotFittedError):
        DecoupledClassifier(FrozenEstimator(GaussianNB())).fit(X_PETS, PETS)


def test_classes_that_no_label_tells_apart_are_named_at_fit():
    design = Transition.from_meanings({"pet": ["cat", "dog"], "other": "other"})
    y = np.where(PETS == "cat", "pet", "other")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        DecoupledClassifier(GaussianNB(), design).fit(X_PETS, y)
    assert any(
        "classes ('cat', 'dog') have identical label distributions" in str(w.message)
        for w in caught
    )


def test_single_precision_stays_single():
    class Single(GaussianNB):
        def predict_proba(self, X):
            return super().predict_proba(X).astype(np.float32)

    clf = DecoupledClassifier(Single(), cv=2).fit(X_PETS.astype(np.float32), HALF)
    for array in (clf.label_proba_, clf.class_proba_, clf.predict_proba(X_PETS)):
        assert array.dtype == np.float32


def few_dogs():
    rows = np.r_[0:30, 30:40]
    return X_PETS[rows], PETS[rows]


@pytest.mark.parametrize(
    "wrap",
    [
        FrozenEstimator,
        lambda forest: FrozenEstimator(make_pipeline(StandardScaler(), forest)),
        lambda forest: make_pipeline(StandardScaler(), make_pipeline(forest)),
        lambda forest: GridSearchCV(forest, {"draw": [1]}, cv=3),
    ],
)
def test_the_draws_of_a_balanced_forest_are_known_wherever_it_is(wrap):
    X, y = few_dogs()
    model = wrap(BalancedForestClassifier(20, draw=1, random_state=0))
    if isinstance(model, FrozenEstimator):
        model.estimator.fit(X, y.astype(str))
    clf = DecoupledClassifier(model, cv=3, random_state=0).fit(X, y)
    assert_allclose(clf.training_label_weights_, [0.5 / 0.75, 0.5 / 0.25])


def test_the_weights_within_a_decoupled_classifier_are_its_own_affair():
    X, y = few_dogs()
    clf = DecoupledClassifier(DecoupledClassifier(random_state=0), cv=3, random_state=0).fit(X, y)
    assert clf.training_label_weights_ is None


@pytest.mark.parametrize("prior", [{"cat": 0.4, "dog": 0.4}, [0.4, 0.4]])
def test_the_negative_class_may_be_left_out_of_the_class_prior(prior):
    clf = DecoupledClassifier(GaussianNB(), negative="other", noise=0, class_prior=prior)
    assert_allclose(clf.fit(X_PETS, HALF).class_prior_, [0.4, 0.4, 0.2])


def test_classes_are_calibrated_as_they_were_fitted_also_where_a_neighbor_rules_them_out():
    labels = np.where(np.arange(60) % 5 == 0, PETS[::-1], PETS)
    clf = DecoupledClassifier(KNeighborsClassifier(1), noise=0, cv=3, random_state=0)
    clf.fit(X_PETS, labels)
    assert clf.class_calibration_.power < 0.9
    wrong = clf.classes_[clf.class_proba_.argmax(axis=1)] != labels
    assert 1 - clf.class_proba_.max(axis=1).mean() == pytest.approx(wrong.mean(), abs=0.05)


# ------------------------------------------------------------------------- fitted values


class Unlucky(GaussianNB):
    """Fails at its third fit."""

    fits = 0

    def fit(self, X, y, sample_weight=None):
        Unlucky.fits += 1
        if Unlucky.fits == 3:
            raise RuntimeError("out of luck")
        return super().fit(X, y, sample_weight)


@pytest.mark.parametrize("fail", ["early", "late", "proba"])
def test_a_fit_that_fails_leaves_the_object_exactly_as_it_was(fail):
    clf = DecoupledClassifier(GaussianNB(), cv=3, random_state=0).fit(X_PETS, HALF)
    before = dict(vars(clf))
    wide = np.hstack([X_PETS, X_PETS])
    Unlucky.fits = 0
    if fail == "early":
        with pytest.raises(ValueError, match="inconsistent numbers"):
            clf.fit(wide, HALF[:5])
    elif fail == "late":
        clf.set_params(estimator=Unlucky())
        before["estimator"] = clf.estimator
        with pytest.raises(RuntimeError, match="out of luck"):
            clf.fit(wide, HALF)
    else:
        with pytest.raises(ValueError, match="label_proba has 3 rows"):
            clf.fit_from_proba(np.full((3, 3), 1 / 3), HALF)
    assert vars(clf).keys() == before.keys()
    assert all(vars(clf)[name] is value for name, value in before.items())


def test_a_first_fit_that_fails_sets_nothing():
    clf = DecoupledClassifier(GaussianNB())
    with pytest.raises(ValueError, match="NaN"):
        clf.fit(np.full((60, 2), np.nan), HALF)
    assert vars(clf).keys() == clf.get_params(deep=False).keys()


def test_the_user_s_estimator_is_not_changed():
    forest = RandomForestClassifier(10, random_state=0)
    before = dict(vars(forest))
    clf = DecoupledClassifier(forest, cv="oob").fit(X_PETS, PETS)
    assert vars(forest) == before
    assert clf.estimator_.get_params() == forest.get_params()
    assert not hasattr(clf.estimator_, "oob_decision_function_")


def test_label_proba_is_real_and_fed_into_nothing():
    clf = DecoupledClassifier(random_state=0, noise=0.1).fit(X_PETS, HALF)
    assert clf.training_label_weights_[-1] == 0  # the forest has not seen the missing label
    index = clf.transition_.label_index(HALF)
    assert_allclose(clf.label_proba_.mean(axis=0), np.bincount(index) / 60, atol=1e-6)
    assert_allclose(clf.label_proba_.sum(axis=1), 1)
    before = audit(clf, HALF).summary(), clf.predict_proba(X_PETS)
    clf.label_proba_ = None
    after = audit(clf, HALF).summary(), clf.predict_proba(X_PETS)
    assert before[0] == after[0]
    assert_array_equal(before[1], after[1])


def test_label_weights_have_a_new_name():
    clf = DecoupledClassifier(GaussianNB(), cv=2).fit(X_PETS, PETS)
    with pytest.warns(FutureWarning, match="label_weights_ is now training_label_weights_"):
        assert clf.label_weights_ is None


def test_fitted_numbers_are_those_of_the_label_model():
    clf = DecoupledClassifier(GaussianNB(), cv=2, noise="estimate").fit(X_PETS, HALF)
    assert clf.label_model_.transition is clf.transition_
    assert clf.label_model_.class_prior is clf.class_prior_
    assert clf.label_model_.sources.noise == "estimated"


# ------------------------------------------------------------------ uninformative labels


@pytest.mark.parametrize(
    "estimator",
    [
        LogisticRegression(),
        KNeighborsClassifier(3),
        make_pipeline(StandardScaler(), GaussianNB()),
        RandomForestClassifier(20, random_state=0),
        HistGradientBoostingClassifier(max_iter=5, min_samples_leaf=2, random_state=0),
    ],
    ids=lambda estimator: type(estimator).__name__,
)
def test_rows_with_labels_missing_at_random_are_left_out_of_the_fit(estimator):
    data = make_gaussians(400, random_state=0)
    labels = make_loose_labels(
        data.y, Transition.partial(data.classes, labeled=0.4), random_state=0
    )
    labeled = np.array([label is not None for label in labels])
    clf = DecoupledClassifier(estimator, noise=0, calibrate=None, refit=False, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # exact zeros leave some rows open
        clf.fit(data.X, labels)
    alone = clone(estimator).fit(data.X[labeled], labels[labeled].astype(str))
    new = make_gaussians(50, random_state=1).X
    order = [clf.classes_.tolist().index(name) for name in alone.classes_]
    assert_allclose(clf.predict_proba(new)[:, order], alone.predict_proba(new), atol=1e-9)
    share = np.mean(~labeled)
    label_proba = clf.predict_label_proba(new)
    assert_allclose(label_proba[:, -1], share)
    assert_allclose(label_proba[:, :-1], (1 - share) * clf.predict_proba(new), atol=1e-9)


def test_weights_of_rows_are_cut_along_with_them():
    class Spy(GaussianNB):
        seen = []  # noqa: RUF012 - of all fits

        def fit(self, X, y, sample_weight=None):
            Spy.seen.append((len(X), sample_weight))
            return super().fit(X, y, sample_weight)

    weight = np.arange(1.0, 61)
    DecoupledClassifier(Spy(), cv=2).fit(X_PETS, HALF, sample_weight=weight)
    n_rows, given = Spy.seen[0]
    labeled = np.array([label is not None for label in HALF])
    assert n_rows == labeled.sum()
    assert_array_equal(given, weight[labeled])


@pytest.mark.parametrize("options", [{"strength": 10}, {"label_weights": [1, 1, 0.5]}])
def test_rows_stay_if_the_transition_is_learned_or_labels_have_weights(options):
    clf = DecoupledClassifier(GaussianNB(), cv=2, **options).fit(X_PETS, HALF)
    assert len(clf.estimator_.classes_) == 3


def test_a_fold_without_informative_labels_is_named():
    first, middle, last = np.arange(30), np.arange(30, 45), np.arange(45, 60)
    folds = [(first, middle), (np.r_[first, middle], last), (last, first)]
    labels = np.where(np.arange(60) < 30, None, np.tile(["cat", "dog"], 30))
    with pytest.raises(ValueError, match="Fold 1 of 3 trains on rows without an informative label"):
        DecoupledClassifier(GaussianNB(), cv=folds).fit(X_PETS, labels)


# ---------------------------------------------------------------------- label_proba as a table


@pytest.mark.parametrize("library", [pandas, polars], ids=lambda library: library.__name__)
def test_columns_of_label_proba_are_matched_by_name_everywhere(library):
    label_proba = np.random.default_rng(0).dirichlet(np.ones(3), 60)
    names = ["cat", "dog", "(unlabeled)"]
    table = library.DataFrame(dict(zip(names, label_proba.T, strict=True)))
    table = table[["dog", "(unlabeled)", "cat"]]
    plain = DecoupledClassifier(noise=0.1).fit_from_proba(label_proba, HALF)
    named = DecoupledClassifier(noise=0.1).fit_from_proba(table, HALF)
    assert_array_equal(named.class_proba_, plain.class_proba_)
    assert_array_equal(named.predict_proba(table), plain.predict_proba(label_proba))
    t = plain.transition_
    assert_array_equal(
        audit(label_proba=table, labels=HALF, transition=t).class_proba,
        audit(label_proba=label_proba, labels=HALF, transition=t).class_proba,
    )
    assert_array_equal(infer(table, t).class_proba, infer(label_proba, t).class_proba)
    index = t.label_index(HALF)
    estimates = [estimate_transition(p, index, t, method="em") for p in (table, label_proba)]
    assert_array_equal(estimates[0].transition, estimates[1].transition)
    with pytest.raises(ValueError, match=r"columns of label_proba lacks \['cat'\]"):
        named.predict_proba(table[["dog", "(unlabeled)"]])


# ---------------------------------------------------------------------------------- known classes


def test_known_classes_of_the_wrong_kind_are_refused():
    clf = DecoupledClassifier(GaussianNB())
    with pytest.raises(ValueError, match=r"known_classes contains \['cow'\]"):
        clf.fit(X_PETS, PETS, known_classes=["cow", *[None] * 59])
    with pytest.raises(ValueError, match="known_classes has 2 rows; y has 60"):
        clf.fit(X_PETS, PETS, known_classes=["cat", None])


@pytest.mark.parametrize("first", [0, 1])
@pytest.mark.parametrize("max_rows", [80, 150], ids=["a sample for other models", "all rows"])
def test_a_review_of_one_of_two_copies_leaves_the_other_as_evidence(first, max_rows, monkeypatch):
    monkeypatch.setattr("looselabels.learning.candidates.MAX_EXTRA_ROWS", max_rows)
    rng = np.random.default_rng(0)
    X = np.repeat(rng.normal(np.repeat(np.eye(3), 25, axis=0) * 4), 2, axis=0)
    y = np.repeat(np.repeat(["a", "b", "c"], 25), 2).astype(object)
    labels, known = y.copy(), np.full(150, None, dtype=object)
    for k in range(0, 150, 10):
        labels[k : k + 2] = "a" if y[k] != "a" else "c"
    known[first::2] = y[first::2]
    clf = DecoupledClassifier(GaussianNB(), refit=False, random_state=0)
    expected = clone(clf).fit(X, labels, known_classes=known)
    found = clf.fit(X, labels).with_known_classes(known)
    assert_allclose(found.transition_.proba, expected.transition_.proba)
    low, high = found.label_model_.wrong_share_interval
    assert 0.05 < low < high < 0.3  # a fifth of the labels


def test_a_refit_learns_from_known_classes():
    labels = np.where(np.arange(60) % 2 == 0, None, PETS)
    known = np.where(np.arange(60) % 2 == 0, PETS[::-1], None)  # reviewers disagree with x
    plain, taught = (
        DecoupledClassifier(GaussianNB(), noise=0.1, refit=1, random_state=0).fit(
            X_PETS, labels, known_classes=column
        )
        for column in (None, known)
    )
    assert plain.score(X_PETS, PETS) > 0.9
    assert taught.predict_proba(X_PETS)[:30, 0].mean() < plain.predict_proba(X_PETS)[:30, 0].mean()


def test_known_classes_are_routed_by_a_search():
    known = np.where(np.arange(60) % 4 == 0, PETS, None)
    with sklearn.config_context(enable_metadata_routing=True):
        clf = DecoupledClassifier(GaussianNB(), noise=0.1, refit=False)
        scores = cross_val_score(clf, X_PETS, PETS, params={"known_classes": known}, cv=3)
    assert scores.min() > 0.9


def test_a_model_without_rows_can_learn_of_no_class():
    clf = DecoupledClassifier(GaussianNB()).fit(X_PETS, PETS)
    del clf.label_design_
    with pytest.raises(ValueError, match="loaded from a file has no rows"):
        clf.with_known_classes(PETS)
