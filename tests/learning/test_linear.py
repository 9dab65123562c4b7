"""The linear model: scaled if rows are dense, as they are if sparse."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.datasets import load_digits
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from looselabels import DecoupledClassifier
from looselabels.learning.linear import MAX_WORDS, as_numbers, linear_model

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


# --------------------------------------------------------------------------------- words as numbers


def test_a_table_without_words_is_used_as_it_is():
    pd = pytest.importorskip("pandas")
    for X in (np.ones((3, 2)), pd.DataFrame({"a": [1, 2, 3], "b": [True, False, True]})):
        assert as_numbers(X) is X


def test_texts_identifiers_and_infinite_numbers_are_left_out():
    pd = pytest.importorskip("pandas")
    assert as_numbers(["a text", "another one"]) is None
    assert as_numbers(pd.Series(["a text", "another one"])) is None
    names = [f"name {row}" for row in range(6)]
    assert as_numbers(pd.DataFrame({"name": names})) is None
    infinite = [np.inf, 1.5, 2.5, 3.5, 4.5, 5.5]
    table = pd.DataFrame({"name": names, "number": infinite, "kind": ["a", "b", None] * 2})
    found = as_numbers(table)  # of the kinds only, the missing one included
    assert_array_equal(found[:3], found[3:])
    assert_array_equal(np.sort(found[:3] @ [1, 2, 3]), [1, 2, 3])


def test_rare_words_share_a_column():
    pd = pytest.importorskip("pandas")
    words = [f"word {k}" for k in range(40) for _ in range(40 - k)]
    found = as_numbers(pd.DataFrame({"word": pd.Categorical(words)}))
    assert found.shape == (820, MAX_WORDS)
    assert_array_equal(found.sum(axis=1), 1)
    assert found[:, -1].sum() == sum(range(1, 40 - MAX_WORDS + 2))


def test_texts_in_a_series_are_learned_like_a_list_of_them():
    pd = pytest.importorskip("pandas")
    texts, labels = ["it barks", "it purrs", "a bark", "purrs all day"] * 10, ["dog", "cat"] * 20
    pipe = make_pipeline(CountVectorizer(), LogisticRegression())
    clf = DecoupledClassifier(pipe, refit=False, random_state=0).fit(texts, labels)
    again = DecoupledClassifier(pipe, refit=False, random_state=0).fit(pd.Series(texts), labels)
    assert_array_equal(again.class_proba_, clf.class_proba_)
