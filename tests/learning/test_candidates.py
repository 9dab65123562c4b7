"""Which models predict the labels, on which rows they are fitted, and with which parameters."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn import config_context
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.frozen import FrozenEstimator
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import LeaveOneOut
from sklearn.naive_bayes import GaussianNB, MultinomialNB
from sklearn.pipeline import make_pipeline

from looselabels import BalancedForestClassifier, DecoupledClassifier
from looselabels.learning import candidates

RNG = np.random.default_rng(0)
LINE = RNG.standard_normal((300, 20))
ABOVE = (LINE.sum(axis=1) > 0).astype(int)  # 20 equal coefficients
RINGS = RNG.standard_normal((300, 2))
OUTSIDE = (np.sum(RINGS**2, axis=1) > 1.4).astype(int)  # no line separates them


@pytest.mark.parametrize(
    ("X", "y", "best"), [(LINE, ABOVE, "linear"), (RINGS, OUTSIDE, "forest")], ids=["line", "rings"]
)
def test_the_labels_choose_the_estimator(X, y, best):
    clf = DecoupledClassifier(random_state=0, refit=False).fit(X, y)
    losses = clf.candidate_losses_
    assert min(losses, key=losses.get) == best
    assert isinstance(clf.estimator_, BalancedForestClassifier) == (best == "forest")
    assert_allclose(clf.label_scores_.log_loss(), losses[best])


def test_noise_is_also_estimated_by_the_best_model_alone_if_it_is_as_good_as_all():
    rng = np.random.default_rng(0)
    y = np.arange(400) % 2
    X = rng.normal(1.5 * y)[:, None]  # both models do what is possible
    clf = DecoupledClassifier(refit=False, random_state=0).fit(X, y)
    losses = clf.candidate_losses_
    ((name, (low, high)),) = clf.rival_wrong_shares_.items()
    assert losses[name] == min(losses.values())
    assert 0 <= low < high < 0.5
    assert clf.set_params(noise=0).fit(X, y).rival_wrong_shares_ == {}


def test_an_estimator_of_the_user_is_used_also_if_others_are_better():
    clf = DecoupledClassifier(BalancedForestClassifier(20, random_state=0)).fit(LINE, ABOVE)
    losses = clf.candidate_losses_
    assert set(losses) == {"estimator", "forest", "linear"}
    assert min(losses, key=losses.get) == "linear"
    assert clf.estimator_.n_estimators == 20
    assert_allclose(clf.label_scores_.log_loss(), losses["estimator"])


@pytest.mark.parametrize(
    "given",
    [
        {"noise": 0},
        {"noise": 0.1},
        {"label_weights": 1},
        {"estimator": FrozenEstimator(LogisticRegression().fit(LINE, ABOVE))},
    ],
    ids=["no noise", "a rate", "weights", "frozen"],
)
def test_other_models_are_fitted_only_if_something_is_to_be_estimated_from_them(given):
    clf = DecoupledClassifier(**({"estimator": LogisticRegression(), "refit": False} | given))
    assert clf.fit(LINE, ABOVE).candidate_losses_ is None


def test_an_estimator_of_texts_is_used_alone():
    texts = ["red rose", "red tulip", "blue sea", "blue sky"] * 20
    words = make_pipeline(CountVectorizer(), LogisticRegression())
    clf = DecoupledClassifier(words, refit=False).fit(texts, ["warm", "warm", "cold", "cold"] * 20)
    assert clf.candidate_losses_ is None
    assert clf.predict(["red sky rose"])[0] == "warm"


@pytest.mark.parametrize("max_rows", [100, 300], ids=["a sample", "all rows"])
def test_labels_of_one_row_each_are_no_error_of_extra_models(monkeypatch, max_rows):
    monkeypatch.setattr(candidates, "MAX_EXTRA_ROWS", max_rows)
    labels = ["below" if row == 0 else "above" if row == 1 else None for row in range(300)]
    with pytest.warns(UserWarning, match="1 sample each: 2 folds"):
        clf = DecoupledClassifier(GaussianNB(), refit=False).fit(LINE, labels)
    assert clf.candidate_losses_ is None


def test_leaving_one_out_takes_no_extra_model_per_row(monkeypatch):
    n_rows = []

    class Counting(GaussianNB):
        def fit(self, X, y, sample_weight=None):
            n_rows.append(len(X))
            return super().fit(X, y, sample_weight)

    monkeypatch.setattr(candidates, "default_forest", lambda *_: Counting())
    clf = DecoupledClassifier(GaussianNB(), cv=LeaveOneOut(), refit=False).fit(LINE, ABOVE)
    assert set(clf.candidate_losses_) == {"estimator", "forest", "linear"}
    assert n_rows == [300] + [270] * 10


def test_a_model_that_does_not_fit_makes_no_label_wrong():
    """A class lies on both sides of the other one: a line cannot separate them."""
    X = np.random.default_rng(0).uniform(-3, 3, (600, 1))
    y = (abs(X[:, 0]) < 1.5).astype(int)
    clf = DecoupledClassifier(LogisticRegression(), refit=False, random_state=0).fit(X, y)
    assert clf.label_model_.wrong_share_interval[1] < 0.02
    assert clf.candidate_losses_["estimator"] > 5 * clf.candidate_losses_["forest"]


@pytest.mark.parametrize("limit", [{}, {"max_fit_rows": 500}], ids=["all rows", "a sample"])
def test_extra_models_learn_from_some_rows_and_a_review_does_not_forget_them(monkeypatch, limit):
    monkeypatch.setattr(candidates, "MAX_EXTRA_ROWS", 400)
    X = np.random.default_rng(0).uniform(-3, 3, (1200, 1))
    y = (abs(X[:, 0]) < 1).astype(int)  # a third of the rows
    clf = DecoupledClassifier(LogisticRegression(), refit=False, random_state=0, **limit).fit(X, y)
    pooled, rows = clf._pooled
    assert len(rows) == len(pooled.label_proba) == 400
    assert_array_equal(pooled.label_index, clf.label_scores_.label_index[rows])
    assert_allclose(pooled.label_shares(), clf.label_scores_.label_shares())
    assert np.mean(abs(pooled.real([0, 1])[:, 1] - y[rows])) < 0.05
    reviewed = clf.with_known_classes([y[0], *[None] * 1199])
    for found in (clf, reviewed):
        assert found.label_model_.wrong_share_interval[1] < 0.03


def test_weights_that_add_up_to_one_are_those_of_whole_rows():
    losses = [
        DecoupledClassifier(refit=False, random_state=0)
        .fit(LINE, ABOVE, sample_weight=weight)
        .candidate_losses_
        for weight in (None, np.full(300, 1 / 300))
    ]
    assert losses[0] == pytest.approx(losses[1])


def test_rows_that_only_the_estimator_of_the_user_can_use_are_no_error():
    rows = sparse.csr_array(LINE)
    rows.data[::7] = np.nan
    filled = make_pipeline(SimpleImputer(), LogisticRegression())
    clf = DecoupledClassifier(filled, refit=False).fit(rows, ABOVE)
    assert clf.candidate_losses_ is None
    assert clf.score(rows, ABOVE) > 0.8


def test_a_sparse_table_is_a_sparse_matrix():
    pd = pytest.importorskip("pandas")
    rows = sparse.csr_array(np.maximum(LINE, 0))
    table = pd.DataFrame.sparse.from_spmatrix(rows)
    clf = DecoupledClassifier(MultinomialNB(), refit=False, random_state=0)
    losses = [clone(clf).fit(X, ABOVE).candidate_losses_ for X in (rows, table)]
    assert losses[0] == losses[1]


def test_words_of_a_table_are_numbers_for_the_extra_models():
    """Only the words tell the classes; the estimator of the user does not use them."""
    pd = pytest.importorskip("pandas")
    color = np.array(["red", "blue", "green", "black"], dtype=object)[np.arange(400) % 4]
    y = np.isin(color, ["red", "green"]).astype(int)
    color[::50] = None
    X = pd.DataFrame({"size": np.random.default_rng(0).normal(size=400), "color": color})
    X["id"] = [f"row {row}" for row in range(400)]
    only_size = make_pipeline(make_column_transformer(("passthrough", ["size"])), GaussianNB())
    clf = DecoupledClassifier(only_size, refit=False, random_state=0).fit(X, y)
    losses = clf.candidate_losses_
    assert set(losses) == {"estimator", "forest", "linear"}
    assert max(losses["forest"], losses["linear"]) < 0.2 < losses["estimator"]
    assert clf.label_model_.wrong_share_interval[1] < 0.05


def test_warnings_of_models_that_nobody_asked_for_are_not_shown():
    """Counts are not scaled, so the linear model does not converge."""
    rows = sparse.csr_array(np.random.default_rng(0).poisson(3, (300, 400)) * 100)
    DecoupledClassifier(MultinomialNB(), refit=False).fit(rows, ABOVE)


def test_out_of_bag_rows_leave_only_the_forest():
    clf = DecoupledClassifier(cv="oob", refit=False, random_state=0).fit(LINE, ABOVE)
    assert list(clf.candidate_losses_) == ["forest"]


def test_weights_reach_the_linear_model_with_metadata_routing():
    weight = np.where(ABOVE, 1.0, 3.0)
    plain = DecoupledClassifier(random_state=0, refit=False).fit(LINE, ABOVE, sample_weight=weight)
    with config_context(enable_metadata_routing=True):
        clf = DecoupledClassifier(random_state=0, refit=False)
        clf.set_fit_request(sample_weight=True).fit(LINE, ABOVE, sample_weight=weight)
        assert_allclose(clf.predict_proba(LINE), plain.predict_proba(LINE))
