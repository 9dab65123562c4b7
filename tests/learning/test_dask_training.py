"""Estimators that learn on a cluster: out of sample by blocks, and plain errors.

LightGBM and XGBoost are tested by tests/test_engines.py, which has its own environment.
"""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LogisticRegression

from looselabels import DecoupledClassifier
from tests.learning.test_row_sample import gaussians

pytestmark = pytest.mark.slow  # because the extra `bench` has Dask
dask = pytest.importorskip("dask", reason="the extra `dask` is not installed")
da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")
import pandas as pd  # noqa: E402 - after the checks

N_ROWS, BLOCK_ROWS = 1200, 200
FITS: list = []  # the features that each fit has seen


class OnDask(ClassifierMixin, BaseEstimator):
    """A logistic regression that takes arrays and tables of Dask, and nothing else."""

    def __init__(self, client=None, failure=None):
        self.client, self.failure = client, failure

    def fit(self, X, y, sample_weight=None):
        if 0 in getattr(X, "chunks", [()])[0]:
            raise AssertionError("a block without rows")
        if self.failure is not None:
            raise self.failure
        X, y, weight = (dask.compute(part)[0] for part in (X, y, sample_weight))
        FITS.append(np.asarray(X))
        self.model_ = LogisticRegression().fit(np.asarray(X), y, weight)
        self.classes_ = self.model_.classes_
        return self

    def predict_proba(self, X):
        X = X.to_dask_array() if isinstance(X, dd.DataFrame) else X
        n_classes = len(self.classes_)
        return X.map_blocks(self.model_.predict_proba, dtype=float, chunks=(X.chunks[0], n_classes))


@pytest.fixture(autouse=True)
def _threads():
    FITS.clear()
    with dask.config.set(scheduler="threads", num_workers=2):
        yield


def sample():
    X, y, _ = gaussians(N_ROWS, [0.5, 0.3, 0.2])
    labels = np.array(["a", "b", "c"], dtype=object)[y]
    labels[::4] = None
    return X, labels


def in_blocks(X):
    return da.from_array(X, chunks=(BLOCK_ROWS, 2))


def as_table(X):
    return dd.from_pandas(pd.DataFrame(X, columns=["u", "v"]), chunksize=BLOCK_ROWS)


def by_blocks(X, labels, weight=None):
    """Fit in memory, with every other block of rows as one fold of two."""
    is_odd = (np.arange(len(X)) // BLOCK_ROWS) % 2 == 1
    folds = [np.flatnonzero(is_odd), np.flatnonzero(~is_odd)]
    clf = DecoupledClassifier(LogisticRegression(), noise=0.1, refit=False, cv=[folds, folds[::-1]])
    return clf.fit(X, labels, weight)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("rows_of", [in_blocks, as_table])
def test_rows_are_predicted_by_a_model_of_other_blocks(rows_of, weighted):
    X, labels = sample()
    weight = np.random.default_rng(0).integers(3, size=N_ROWS).astype(float) if weighted else None
    expected, rows = by_blocks(X, labels, weight), rows_of(X)
    found = DecoupledClassifier(OnDask(), noise=0.1, max_fit_rows=100).fit(rows, labels, weight)
    assert found.n_fit_rows_ == N_ROWS  # no sample is needed
    for name in ("label_proba_", "class_proba_", "class_proba_given_label_"):
        assert_allclose(getattr(found, name), getattr(expected, name), atol=1e-5, err_msg=name)
    in_memory = pd.DataFrame(X, columns=["u", "v"]) if rows_of is as_table else X
    assert_allclose(found.predict_proba(rows).compute(), expected.predict_proba(X), atol=1e-5)
    assert_allclose(found.predict_proba(in_memory), expected.predict_proba(X), atol=1e-5)
    assert_array_equal(found.predict(rows).compute(), expected.predict(X))


def test_rows_without_an_informative_label_are_not_learned_from_but_predicted():
    X, labels = sample()
    DecoupledClassifier(OnDask(), noise=0.1).fit(in_blocks(X), labels)
    is_labeled = labels != None  # noqa: E711 - of each entry
    is_odd = (np.arange(N_ROWS) // BLOCK_ROWS) % 2 == 1
    for fit, part in zip(FITS, (~is_odd, is_odd, np.ones(N_ROWS, bool)), strict=True):
        assert_array_equal(fit, X[is_labeled & part])


def test_a_block_without_an_informative_label_is_predicted_but_not_passed_to_a_fit():
    X, labels = sample()
    labels[:BLOCK_ROWS] = None
    found = DecoupledClassifier(OnDask(), noise=0.1).fit(in_blocks(X), labels)
    assert_allclose(found.class_proba_, by_blocks(X, labels).class_proba_, atol=1e-5)


def test_empty_blocks_are_left_out():
    X, labels = sample()
    sizes = ((200, 0, 200, 200, 0, 0, 200, 200, 200), (2,))
    found = DecoupledClassifier(OnDask(), noise=0.1).fit(da.from_array(X, chunks=sizes), labels)
    assert_allclose(found.class_proba_, by_blocks(X, labels).class_proba_, atol=1e-5)


def test_a_failure_of_the_training_is_one_clear_error():
    X, labels = sample()
    broken = OnDask(failure=OSError("worker tcp://1 left\nduring training"))
    message = "OnDask could not be trained on the Dask cluster: OSError: worker tcp://1 left during"
    with pytest.raises(RuntimeError, match=f"{message} training. Training starts anew"):
        DecoupledClassifier(broken).fit(in_blocks(X), labels)


def test_rows_that_cannot_be_divided_are_an_error():
    X, labels = sample()
    rows, clf = in_blocks(X), DecoupledClassifier(OnDask())
    with pytest.raises(ValueError, match=r"X has one block of rows; OnDask needs two or more"):
        clf.fit(rows.rechunk((N_ROWS, 2)), labels)
    with pytest.raises(ValueError, match=r"Every other block of X has no row with label 'c'"):
        clf.fit(rows, np.where((np.arange(N_ROWS) < 200) | (labels != "c"), labels, "a"))
    with pytest.raises(ValueError, match=r"on blocks of rows; then \['groups'\] cannot be used"):
        clf.fit(rows, labels, groups=np.arange(N_ROWS) // 2)
    with pytest.raises(ValueError, match=r"OnDask has a client, which cannot be copied"):
        DecoupledClassifier(OnDask(client="tcp://scheduler:8786")).fit(rows, labels)
    with pytest.raises(ValueError, match=r"then \['cv', 'label_weights'\] cannot be used"):
        DecoupledClassifier(OnDask(), cv=5, label_weights="costs").fit(rows, labels)


def test_an_estimator_with_a_client_learns_in_memory_as_any_other():
    class Local(LogisticRegression):
        client = "of another service"

    X, labels = sample()
    found, expected = (
        DecoupledClassifier(kind(), noise=0.1, refit=False, random_state=0).fit(X, labels)
        for kind in (Local, LogisticRegression)
    )
    assert_array_equal(found.predict_proba(X), expected.predict_proba(X))
