"""label_proba of training rows comes from models that did not see them."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, GroupKFold, KFold, cross_val_predict
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from looselabels import (
    BalancedForestClassifier,
    DecoupledClassifier,
    KernelDensityClassifier,
    Transition,
)
from looselabels.datasets import make_loose_labels
from looselabels.learning.copies import RowGroups
from looselabels.learning.out_of_sample import (
    OWN,
    align,
    choose_folds,
    fit_and_predict,
    fit_positions,
    predicts_own_rows,
    weight_parameter,
)
from looselabels.model_selection import LabelStratifiedKFold


def no_report(_):
    return None


def data(seed=0, n=120):
    rng = np.random.default_rng(seed)
    index = rng.integers(0, 3, n)
    return rng.standard_normal((n, 2)) + 2 * index[:, None], index


class Memory(ClassifierMixin, BaseEstimator):
    """Remembers its rows: p(label 0 | x) is 1 for those, 0 for others."""

    def fit(self, X, y):
        self.classes_, self.seen_ = np.unique(y), {row.tobytes() for row in X}
        return self

    def predict_proba(self, X):
        seen = np.array([row.tobytes() in self.seen_ for row in X], dtype=float)
        proba = np.zeros((len(X), len(self.classes_)))
        proba[:, 0], proba[:, 1] = seen, 1 - seen
        return proba


def test_no_row_is_predicted_by_a_model_that_saw_it():
    X, index = data()
    folds = list(LabelStratifiedKFold(4, random_state=0).split(X, index))
    whole, label_proba = fit_and_predict(Memory(), X, index, 3, folds, {}, None, no_report)
    assert_array_equal(label_proba[:, 1], 1)
    assert_array_equal(whole.predict_proba(X)[:, 0], 1)


def test_folds_agree_with_cross_val_predict():
    X, index = data()
    folds = list(KFold(3).split(X))
    _, ours = fit_and_predict(GaussianNB(), X, index, 3, folds, {}, 2, no_report)
    expected = cross_val_predict(GaussianNB(), X, index, cv=folds, method="predict_proba")
    assert_allclose(ours, expected)


def test_a_label_missing_in_a_fold_keeps_its_column():
    X, index = data()
    index[index == 1] = 0
    index[-1] = 1  # seen once: one fold trains without it
    folds = list(KFold(3).split(X))
    _, label_proba = fit_and_predict(GaussianNB(), X, index, 4, folds, {}, None, no_report)
    assert label_proba.shape == (120, 4)
    assert_allclose(label_proba.sum(axis=1), 1)
    assert label_proba[-1, 1] == 0  # its own fold did not know the label


@pytest.mark.parametrize(
    "estimator", [LogisticRegression(), HistGradientBoostingClassifier(max_iter=5), GaussianNB()]
)
def test_a_fold_that_trains_on_one_label_predicts_this_label(estimator):
    X, index = data()
    index[:-1], index[-1] = 0, 1
    _, label_proba = fit_and_predict(
        estimator, X, index, 3, list(KFold(3).split(X)), {}, None, no_report
    )
    assert_array_equal(label_proba[80:], np.eye(3)[np.zeros(40, dtype=int)])


# -------------------------------------------------------------------- scikit-learn's forests


@pytest.mark.parametrize("oob_score", [False, True])
def test_a_forest_of_scikit_learn_keeps_the_oob_score_of_the_user(oob_score):
    X, index = data()
    forest = RandomForestClassifier(50, oob_score=oob_score, random_state=0)
    before = dict(vars(forest))
    clf = DecoupledClassifier(forest, noise=0.1, refit=False).fit(X, index)
    own = clone(forest).set_params(oob_score=True).fit(X, index)
    assert_array_equal(clf.label_scores_.label_proba, own.oob_decision_function_)
    assert vars(forest) == before
    assert clf.estimator_.oob_score is oob_score
    assert hasattr(clf.estimator_, "oob_decision_function_") is oob_score
    assert_array_equal(clf.estimator_.predict_proba(X), own.predict_proba(X))


def test_rows_never_out_of_bag_are_predicted_by_a_forest_that_has_not_seen_them():
    X, index = data()
    forest = RandomForestClassifier(3, random_state=0)
    _, label_proba = fit_and_predict(forest, X, index, 3, "oob", {}, None, no_report)
    with pytest.warns(UserWarning, match="do not have OOB scores"):
        own = clone(forest).set_params(oob_score=True).fit(X, index)
    never = np.nan_to_num(own.oob_decision_function_).sum(axis=1) == 0
    assert 5 < never.sum() < 60
    assert_array_equal(label_proba[~never], own.oob_decision_function_[~never])
    others = clone(forest).fit(X[~never], index[~never])
    assert_allclose(label_proba[never], others.predict_proba(X[never]))


def test_such_rows_are_converted_to_the_weighted_distribution_of_the_whole_forest():
    X = np.zeros((300, 1))  # X says nothing about labels: p(label | x) are their shares
    index = np.repeat([0, 1, 2], [1, 40, 259])
    forest = BalancedForestClassifier(20, random_state=0)
    forest, label_proba = fit_and_predict(forest, X, index, 3, "oob", {}, None, no_report)
    real = label_proba[0, 1:] / forest.label_weights_[1:]
    assert_allclose(real / real.sum(), [40 / 299, 259 / 299], rtol=1e-6)


def test_columns_are_aligned_by_name():
    X, index = data()
    model = GaussianNB().fit(X, np.array(["b", "c", "a"])[index])
    aligned = align(model, X, 4, columns=[3, 0, 1])  # where a, b and c belong
    assert_array_equal(aligned[:, [3, 0, 1]], model.predict_proba(X))
    assert_array_equal(aligned[:, 2], 0)


class Gaps(GaussianNB):
    """Predicts NaN for the second row."""

    def predict_proba(self, X):
        proba = super().predict_proba(X)
        proba[1] = np.nan
        return proba


class Half(GaussianNB):
    """Predicts in half precision."""

    def predict_proba(self, X):
        return super().predict_proba(X).astype(np.float16)


def test_predictions_in_half_precision_are_used_in_single_precision():
    X, index = data()
    clf, exact = (
        DecoupledClassifier(model, noise=0, refit=False, calibrate=None).fit(X, index)
        for model in (Half(), GaussianNB())
    )
    assert clf.predict_proba(X).dtype == np.float32
    assert_allclose(clf.predict_proba(X), exact.predict_proba(X), atol=1e-3)


def test_probabilities_in_half_precision_from_a_model_elsewhere_are_enough():
    X, index = data()
    label_proba = GaussianNB().fit(X, index).predict_proba(X)
    clf = DecoupledClassifier().fit_from_proba(label_proba.astype(np.float16), index)
    assert_allclose(clf.predict_proba(label_proba), clf.class_proba_, atol=0.01)


@pytest.mark.parametrize("calibrate", ["classes", "temperature", "marginals", None])
def test_a_prediction_that_is_nan_is_an_error_whatever_calibrates_it(calibrate):
    X, index = data()
    message = r"predict_proba of Gaps must hold numbers that are finite .* row 1, column 0 is nan"
    with pytest.raises(ValueError, match=message):
        DecoupledClassifier(Gaps(), calibrate=calibrate).fit(X, index)
    frozen = FrozenEstimator(GaussianNB().fit(X, index))
    clf = DecoupledClassifier(frozen, calibrate=calibrate, refit=False).fit(X, index)
    clf.estimator_ = FrozenEstimator(Gaps().fit(X, index))
    with pytest.raises(ValueError, match="row 1, column 0 is nan"):
        clf.predict_proba(X)


def test_test_folds_must_cover_all_rows():
    X, index = data()
    with pytest.raises(ValueError, match=r"cv leaves 60 rows \(first: row 60\) out of every test"):
        fit_and_predict(
            GaussianNB(), X, index, 3, [(np.arange(60, 120), np.arange(60))], {}, None, no_report
        )


def test_kernel_densities_of_another_library_come_back_as_numpy():
    torch = pytest.importorskip("torch")
    X, index = data()
    expected = DecoupledClassifier(KernelDensityClassifier()).fit(X, index)
    clf = DecoupledClassifier(KernelDensityClassifier()).fit(torch.asarray(X), index)
    assert_allclose(clf.class_proba_, expected.class_proba_, atol=1e-6)
    assert_allclose(clf.predict_proba(torch.asarray(X)), expected.predict_proba(X), atol=1e-6)


# --------------------------------------------------------------------- third-party estimators


class PlaceShares(ClassifierMixin, BaseEstimator):
    """Shares of the labels among rows with the same x; training rows without themselves."""

    def fit(self, X, y, sample_weight=None):
        raise AssertionError("with rows of its own, no other fit is needed")

    def fit_out_of_sample(self, X, y, sample_weight=None):
        weight = np.ones(len(y)) if sample_weight is None else sample_weight
        self.classes_ = np.unique(y[weight > 0])
        self.counts_ = np.ones((3, len(self.classes_)))
        given = (y[:, None] == self.classes_) * weight[:, None]
        np.add.at(self.counts_, X[:, 0].astype(int), given)
        return self._shares(self.counts_[X[:, 0].astype(int)] - given)

    def predict_proba(self, X):
        return self._shares(self.counts_[np.asarray(X)[:, 0].astype(int)])

    def _shares(self, counts):
        return counts / counts.sum(axis=1, keepdims=True)


def labels_at_places(n=90, seed=0):
    """Return rows at three places, and labels that mostly agree with the place."""
    rng = np.random.default_rng(seed)
    place = np.arange(n) % 3
    return place[:, None], np.where(rng.random(n) < 0.3, rng.integers(0, 3, n), place)


def test_an_estimator_with_rows_of_its_own_needs_no_folds():
    X, y = labels_at_places()
    assert predicts_own_rows(PlaceShares())
    assert choose_folds(PlaceShares(), None, X, y, y, {}, 0) == OWN
    clf = DecoupledClassifier(PlaceShares(), noise=0.1, refit=False).fit(X, y)
    for i in range(len(y)):
        others = (X[:, 0] == X[i, 0]) & (np.arange(len(y)) != i)
        counts = 1 + np.bincount(y[others], minlength=3)
        assert_allclose(clf.label_scores_.label_proba[i], counts / counts.sum())
    assert clf.label_scores_.label_weights is None
    assert clf.score(X, X[:, 0]) == 1


def test_its_rows_with_an_uninformative_label_have_no_weight():
    X, y = labels_at_places()
    labels = np.where(np.arange(90) % 2 == 0, y, None)
    clf = DecoupledClassifier(PlaceShares(), noise=0.1).fit(X, labels)
    assert_array_equal(clf.training_label_weights_, [1, 1, 1, 0])
    assert_array_equal(clf.estimator_.classes_, [0, 1, 2])
    assert clf.estimator_.counts_.sum() == 45 + 9


class PlaceSharesWithoutWeights(PlaceShares):
    """The same without sample weights."""

    def fit(self, X, y):
        super().fit(X, y)

    def fit_out_of_sample(self, X, y):
        return super().fit_out_of_sample(X, y)


def test_without_sample_weights_rows_with_an_uninformative_label_are_left_out():
    X, y = labels_at_places()
    labels = np.where(np.arange(90) % 2 == 0, y, None)
    clf, expected = (
        DecoupledClassifier(estimator, noise=0.1).fit(X, labels)
        for estimator in (PlaceSharesWithoutWeights(), PlaceShares())
    )
    assert_array_equal(clf.training_label_weights_, [1, 1, 1, 0])
    assert_array_equal(clf.estimator_.counts_, expected.estimator_.counts_)
    assert_allclose(clf.label_scores_.label_proba, expected.label_scores_.label_proba)
    assert_allclose(clf.class_proba_, expected.class_proba_)


class UnsureAboutTheFirst(PlaceShares):
    """Has no prediction of its own for the first row."""

    def fit(self, X, y, sample_weight=None):
        assert len(y) == 89  # all rows but the first
        PlaceShares.fit_out_of_sample(self, X, y, sample_weight)
        return self

    def fit_out_of_sample(self, X, y, sample_weight=None):
        found = super().fit_out_of_sample(X, y, sample_weight)
        found[0] = np.nan
        return found


def test_a_row_that_an_estimator_cannot_predict_is_predicted_by_a_fit_without_it():
    X, y = labels_at_places()
    expected = fit_and_predict(PlaceShares(), X, y, 3, OWN, {}, None, no_report)
    found = fit_and_predict(UnsureAboutTheFirst(), X, y, 3, OWN, {}, None, no_report)
    assert_allclose(found.label_proba, expected.label_proba)


class KnownProba(ClassifierMixin, BaseEstimator):
    """Knows p(label | x), which is its X; labels count `weights` times as often in it."""

    def __init__(self, weights=None):
        self.weights = weights

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        if self.weights is not None:
            self.label_weights_ = np.asarray(self.weights, dtype=float)
        return self

    def predict_proba(self, X):
        proba = X * (1.0 if self.weights is None else self.label_weights_)
        return proba / proba.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("calibrate", [None, "classes"])
@pytest.mark.parametrize("wrap", [lambda e: e, lambda e: make_pipeline("passthrough", e)])
def test_label_weights_of_an_estimator_are_taken_into_account(wrap, calibrate):
    """On exact probabilities, results do not depend on the weights."""
    rng = np.random.default_rng(0)
    design = Transition.partial(["a", "b"], labeled=[0.5, 0.2], negative="c").with_noise(0.1)
    class_proba = rng.dirichlet(np.full(3, 0.5), 400)
    classes = [design.classes[rng.choice(3, p=p)] for p in class_proba]
    labels = make_loose_labels(classes, design, random_state=0)
    X = class_proba @ design.proba
    plain, weighted = (
        DecoupledClassifier(
            wrap(KnownProba(weights)), design, cv=2, calibrate=calibrate, refit=False
        )
        for weights in (None, (4.0, 9.0, 0.5))
    )
    plain.fit(X, labels)
    weighted.fit(X, labels)
    assert plain.training_label_weights_ is None
    assert_array_equal(weighted.training_label_weights_, [4.0, 9.0, 0.5])
    assert np.max(abs(weighted.label_scores_.label_proba - plain.label_scores_.label_proba)) > 0.1
    # prior and floor of the calibration of classes are about the weighted distribution
    tolerance = {"atol": 1e-12 if calibrate is None else 0.05}
    for name in ("class_proba_", "class_proba_given_label_", "label_proba_"):
        assert_allclose(getattr(weighted, name), getattr(plain, name), **tolerance)
    assert_allclose(weighted.predict_proba(X), plain.predict_proba(X), **tolerance)
    assert_allclose(weighted.predict_label_proba(X), plain.predict_label_proba(X), **tolerance)
    if calibrate is None:
        assert_allclose(plain.class_proba_, class_proba, atol=1e-12)


# --------------------------------------------------------------- what estimators and cv may be


@pytest.mark.parametrize(
    ("estimator", "expected"),
    [
        (BalancedForestClassifier(), True),
        (KernelDensityClassifier(), True),
        (RandomForestClassifier(), True),
        (RandomForestClassifier(bootstrap=False), False),
        (GaussianNB(), False),
        (make_pipeline(StandardScaler(), BalancedForestClassifier()), False),
    ],
)
def test_which_estimators_need_no_folds(estimator, expected):
    X, index = data()
    assert predicts_own_rows(estimator) is expected
    folds = choose_folds(estimator, None, X, index, index, {}, 0)
    assert folds == OWN if expected else len(folds) == 5


@pytest.mark.parametrize(
    ("estimator", "name"),
    [
        (GaussianNB(), "sample_weight"),
        (make_pipeline(StandardScaler(), GaussianNB()), "gaussiannb__sample_weight"),
        (Memory(), None),
        (make_pipeline(StandardScaler(), Memory()), None),
    ],
)
def test_the_name_of_sample_weights(estimator, name):
    assert weight_parameter(estimator) == name


@pytest.mark.parametrize(
    ("cv", "message"),
    [
        ("oob", "cv is 'oob' for GaussianNB; 'oob' needs an estimator with oob_score or"),
        ("loo", "cv is 'loo' for GaussianNB"),
        (1, "cv must be 2 folds or more, a splitter or 'oob'; it is 1"),
        (True, "it is True"),
        (2.5, "it is 2.5"),
    ],
)
def test_a_cv_that_cannot_be_used_is_refused(cv, message):
    X, index = data()
    with pytest.raises(ValueError, match=message):
        choose_folds(GaussianNB(), cv, X, index, index, {}, 0)


# ----------------------------------------------------------------------------------------- groups


THREES = RowGroups(np.arange(120) // 3)


@pytest.mark.parametrize(
    "cv", [None, 4, KFold(4, shuffle=True, random_state=0), [(np.arange(100), np.arange(99, 120))]]
)
def test_no_fold_trains_on_a_group_of_its_test_rows(cv):
    X, index = data()
    for train, test in choose_folds(GaussianNB(), cv, X, index, index, {}, 0, THREES):
        assert not set(THREES.group_index[train]) & set(THREES.group_index[test])
        assert len(train) > 30


class LeaveOneOut(KernelDensityClassifier):
    """Predicts its training rows itself, but does not know of groups."""


@pytest.mark.parametrize("estimator", [RandomForestClassifier(5), LeaveOneOut()])
def test_estimators_that_cannot_keep_groups_together_get_folds(estimator):
    X, index = data()
    assert choose_folds(estimator, None, X, index, index, {}, 0) == OWN
    assert len(choose_folds(estimator, None, X, index, index, {}, 0, THREES)) == 5
    with pytest.raises(ValueError, match=f"{type(estimator).__name__} cannot keep groups.*cv=5"):
        choose_folds(estimator, "oob", X, index, index, {}, 0, THREES)


def test_our_forest_keeps_groups_together_itself():
    X, index = data()
    assert choose_folds(BalancedForestClassifier(), None, X, index, index, {}, 0, THREES) == OWN


@pytest.mark.parametrize(
    "estimator", [BalancedForestClassifier(50, random_state=0), KernelDensityClassifier()]
)
def test_an_unlabeled_copy_is_not_predicted_by_a_model_that_saw_its_label(estimator):
    rng = np.random.default_rng(0)
    X, y = np.tile(rng.random((200, 3)), (2, 1)), rng.permutation(np.repeat(["cat", "dog"], 100))
    labels = np.concatenate([y.astype(object), np.full(200, None)])
    clf = DecoupledClassifier(estimator, random_state=0, refit=False).fit(X, labels)
    assert clf.label_scores_.groups.n_copies == 200
    for rows in (slice(200), slice(200, None)):
        best = clf.label_scores_.label_proba[rows, :2].argmax(axis=1)
        assert np.mean(np.array(["cat", "dog"])[best] == y) < 0.6


def test_our_estimators_learn_from_one_of_all_copies_with_their_weight():
    X, index = data()
    copies = np.repeat(np.arange(120), 3)
    once, thrice = (
        fit_and_predict(
            BalancedForestClassifier(20, random_state=0),
            np.repeat(X, n, axis=0),
            np.repeat(index, n),
            3,
            OWN,
            {},
            None,
            no_report,
            groups=groups,
        )
        for n, groups in ((1, None), (3, RowGroups(copies, copies)))
    )
    assert_array_equal(thrice.label_proba, np.repeat(once.label_proba, 3, axis=0))
    assert_array_equal(thrice.estimator.predict_proba(X), once.estimator.predict_proba(X))


# ------------------------------------------------------------- what a fresh-eyes review found


def test_folds_of_a_balanced_forest_are_in_one_weighted_distribution():
    """Each fold draws labels in its own proportion; the answer must not depend on that."""
    rng = np.random.default_rng(0)
    group = np.repeat([0, 1, 2], 400)
    x = rng.random(1200) < np.where(group == 0, 0.9, 0.2)  # groups differ in x, not in p(label | x)
    labels = np.where(rng.random(1200) < np.where(x, 0.4, 0.05), "cat", None)
    forest = BalancedForestClassifier(30, draw=1, random_state=0)
    clf = DecoupledClassifier(
        forest, negative="dog", class_prior={"cat": 0.6}, cv=GroupKFold(3), calibrate=None
    )
    clf.fit(x[:, None].astype(float), labels, groups=group)
    real = clf.label_scores_.real([0, 1])[:, 0]
    for part in range(3):
        for value, expected in ((False, 0.05), (True, 0.4)):
            rows = (group == part) & (x == value)
            assert real[rows].mean() == pytest.approx(expected, abs=0.06)


def test_a_frozen_model_need_not_know_uninformative_labels():
    X, labels = rows_and_labels()
    known = np.array([label is not None for label in labels])
    frozen = FrozenEstimator(GaussianNB().fit(X[known], labels[known].astype(str)))
    clf = DecoupledClassifier(frozen, noise=0, calibrate=None).fit(X, labels)
    assert clf.training_label_weights_[-1] == 0
    # one third, but for the factors that match the label frequencies
    assert_allclose(clf.label_proba_[:, -1], np.mean(~known), atol=0.03)
    assert_allclose(clf.predict_proba(X), frozen.predict_proba(X), atol=1e-9)
    with pytest.raises(ValueError, match=r"does not know the labels .*unlabeled.*, which say"):
        DecoupledClassifier(frozen, negative="other").fit(X, labels)


def test_a_search_passes_weights_on():
    X, labels = rows_and_labels()
    search = GridSearchCV(GaussianNB(), {"var_smoothing": [1e-9, 1e-3]}, cv=2)
    assert weight_parameter(search) == "sample_weight"
    weight = np.where(np.arange(len(X)) % 2, 1.0, 3.0)
    heavy = DecoupledClassifier(search, cv=2, random_state=0).fit(X, labels, sample_weight=weight)
    plain = DecoupledClassifier(search, cv=2, random_state=0).fit(X, labels)
    assert abs(heavy.predict_proba(X) - plain.predict_proba(X)).max() > 1e-6


class WantsNoGaps(GaussianNB):
    """Takes only labels 0, 1, …, as the classifier of XGBoost does."""

    def fit(self, X, y, sample_weight=None):
        expected = np.arange(len(np.unique(y)))
        if not np.array_equal(np.unique(y), expected):
            raise ValueError(f"Invalid classes: expected {expected}, got {np.unique(y)}")
        return super().fit(X, y, sample_weight)


NAMES = ["a", "b", "c", "d"]
ANY = {"a": "a", "any": NAMES, "b": "b", "c": "c", "d": "d"}


@pytest.mark.parametrize("refit", [False, 1])
@pytest.mark.parametrize(
    ("given", "changed"),
    [
        ({"transition": Transition.from_meanings(ANY)}, dict.fromkeys(range(0, 120, 3), "any")),
        ({"noise": 0}, dict.fromkeys(range(31, 60), "a")),  # one row of b: a fold has none
        ({"transition": Transition.identity(NAMES)}, dict.fromkeys(range(30, 60), "a")),  # no b
    ],
    ids=["an uninformative label", "a rare label", "a label that does not occur"],
)
@pytest.mark.filterwarnings("ignore:Label:UserWarning")
def test_estimators_get_labels_without_gaps_if_they_need_them(given, changed, refit, tmp_path):
    labels = np.repeat(NAMES, 30).astype(object)
    X = np.repeat(np.eye(4), 30, axis=0) * 4 + np.random.default_rng(0).normal(size=(120, 4))
    labels[list(changed)] = list(changed.values())
    probas = []
    for estimator in (WantsNoGaps(), GaussianNB()):
        clf = DecoupledClassifier(estimator, refit=refit, random_state=0, **given).fit(X, labels)
        probas.append(clf.predict_proba(X))
    assert_allclose(*probas)


def test_the_error_of_an_estimator_that_gets_labels_without_gaps_is_its_own():
    with pytest.raises(ValueError, match=r"one class|1 class"):
        fit_positions(LogisticRegression(), np.eye(3), np.zeros(3, int), {})
    with pytest.raises(ValueError, match="Input X contains NaN"):
        fit_positions(LogisticRegression(), np.full((2, 2), np.nan), np.array([0, 2]), {})


def rows_and_labels():
    """Return 120 rows of two classes that are apart; a third of them has no label."""
    rng = np.random.default_rng(0)
    y = np.repeat(["cat", "dog"], 60).astype(object)
    X = np.where(y == "cat", 0.0, 3.0)[:, None] + rng.standard_normal((120, 2))
    y[::3] = None
    return X, y
