"""The linear model: scaled if rows are dense, as they are if sparse."""

import numpy as np
from numpy.testing import assert_allclose
from scipy import sparse
from sklearn.datasets import load_digits

from looselabels import DecoupledClassifier
from looselabels.learning.linear import linear_model

RNG = np.random.default_rng(0)
LINE = RNG.standard_normal((300, 20))
ABOVE = (LINE.sum(axis=1) > 0).astype(int)  # 20 equal coefficients


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
