"""The linear model, and the choice between it and the default forest."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse
from sklearn import config_context
from sklearn.datasets import load_digits

from looselabels import BalancedForestClassifier, DecoupledClassifier
from looselabels.learning.linear import linear_model

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


def test_noise_is_also_estimated_by_a_rival_that_is_as_good():
    rng = np.random.default_rng(0)
    y = np.arange(400) % 2
    X = rng.normal(1.5 * y)[:, None]  # both models do what is possible
    clf = DecoupledClassifier(refit=False, random_state=0).fit(X, y)
    losses = clf.candidate_losses_
    (rival,) = clf.rival_wrong_shares_
    assert losses[rival] == max(losses.values()) < 1.05 * min(losses.values())
    low, high = clf.rival_wrong_shares_[rival]
    assert 0 <= low < high < 0.5
    assert clf.set_params(noise=0).fit(X, y).rival_wrong_shares_ == {}
    far = DecoupledClassifier(refit=False, random_state=0).fit(RINGS, OUTSIDE)
    assert far.rival_wrong_shares_ == {}


def test_there_is_no_choice_for_an_estimator_of_the_user():
    clf = DecoupledClassifier(BalancedForestClassifier(20, random_state=0)).fit(LINE, ABOVE)
    assert clf.candidate_losses_ is None
    assert isinstance(clf.estimator_, BalancedForestClassifier)


def test_out_of_bag_rows_leave_only_the_forest():
    clf = DecoupledClassifier(cv="oob", refit=False, random_state=0).fit(LINE, ABOVE)
    assert list(clf.candidate_losses_) == ["forest"]


def test_scales_and_gaps_do_not_matter_to_the_linear_model():
    scaled = LINE * np.geomspace(1e-3, 1e3, 20)
    gaps = LINE.copy()
    gaps[:, 0] = np.nan
    expected = linear_model(LINE).fit(LINE, ABOVE).predict_proba(LINE)
    assert_allclose(linear_model(scaled).fit(scaled, ABOVE).predict_proba(scaled), expected)
    assert linear_model(gaps).fit(gaps, ABOVE).score(gaps, ABOVE) > 0.9


def test_sparse_rows_are_used_as_they_are():
    X, y = load_digits(return_X_y=True)
    rows = sparse.csr_matrix(X[:400] / 16)
    clf = DecoupledClassifier(random_state=0, refit=False).fit(rows, y[:400])
    assert set(clf.candidate_losses_) == {"forest", "linear"}
    assert clf.score(sparse.csr_matrix(X[400:800] / 16), y[400:800]) > 0.75  # unscaled, C=1


def test_weights_reach_the_linear_model_with_metadata_routing():
    weight = np.where(ABOVE, 1.0, 3.0)
    plain = DecoupledClassifier(random_state=0, refit=False).fit(LINE, ABOVE, sample_weight=weight)
    with config_context(enable_metadata_routing=True):
        clf = DecoupledClassifier(random_state=0, refit=False)
        clf.set_fit_request(sample_weight=True).fit(LINE, ABOVE, sample_weight=weight)
        assert_allclose(clf.predict_proba(LINE), plain.predict_proba(LINE))
