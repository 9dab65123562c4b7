"""label_proba of training rows comes from models that did not see them."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import KFold, cross_val_predict
from sklearn.naive_bayes import GaussianNB

from looselabels import (
    BalancedForestClassifier,
    DecoupledClassifier,
    KernelDensityClassifier,
)
from looselabels.learning.out_of_sample import align, fit_and_predict
from looselabels.model_selection import LabelStratifiedKFold


def say(_):
    return None


def data(seed=0, n=120):
    rng = np.random.default_rng(seed)
    index = rng.integers(0, 3, n)
    return rng.standard_normal((n, 2)) + 2 * index[:, None], index


class Memory(ClassifierMixin, BaseEstimator):
    """Says which rows it has seen: p(label 0 | x) is 1 for those, 0 for others."""

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
    whole, label_proba = fit_and_predict(Memory(), X, index, 3, folds, {}, None, say)
    assert_array_equal(label_proba[:, 1], 1)
    assert_array_equal(whole.predict_proba(X)[:, 0], 1)


def test_folds_agree_with_cross_val_predict():
    X, index = data()
    folds = list(KFold(3).split(X))
    _, ours = fit_and_predict(GaussianNB(), X, index, 3, folds, {}, 2, say)
    expected = cross_val_predict(GaussianNB(), X, index, cv=folds, method="predict_proba")
    assert_allclose(ours, expected)


def test_a_label_missing_in_a_fold_keeps_its_column():
    X, index = data()
    index[index == 1] = 0
    index[-1] = 1  # seen once: one fold trains without it
    folds = list(KFold(3).split(X))
    _, label_proba = fit_and_predict(GaussianNB(), X, index, 4, folds, {}, None, say)
    assert label_proba.shape == (120, 4)
    assert_allclose(label_proba.sum(axis=1), 1)
    assert label_proba[-1, 1] == 0  # its own fold did not know the label


def test_out_of_bag_rows_are_the_forest_s_own():
    X, index = data()
    forest = RandomForestClassifier(50, random_state=0)
    whole, label_proba = fit_and_predict(forest, X, index, 3, "oob", {}, None, say)
    own = clone(forest).set_params(oob_score=True).fit(X, index)
    assert_array_equal(label_proba, own.oob_decision_function_)
    assert not hasattr(whole, "oob_decision_function_")


def test_rows_never_out_of_bag_are_predicted_by_a_forest_that_has_not_seen_them():
    X, index = data()
    forest = RandomForestClassifier(3, random_state=0)
    _, label_proba = fit_and_predict(forest, X, index, 3, "oob", {}, None, say)
    with pytest.warns(UserWarning, match="do not have OOB scores"):
        own = clone(forest).set_params(oob_score=True).fit(X, index)
    never = np.nan_to_num(own.oob_decision_function_).sum(axis=1) == 0
    assert never.sum() > 5
    assert_allclose(label_proba.sum(axis=1), 1)


def test_such_rows_are_predicted_in_the_world_of_the_whole_forest():
    X = np.zeros((300, 1))  # nothing tells labels apart: p(label | x) are their shares
    index = np.repeat([0, 1, 2], [1, 40, 259])
    forest = BalancedForestClassifier(20, random_state=0)
    forest, label_proba = fit_and_predict(forest, X, index, 3, "oob", {}, None, say)
    real = label_proba[0, 1:] / forest.label_weights_[1:]
    assert_allclose(real / real.sum(), [40 / 299, 259 / 299], rtol=1e-6)


def test_columns_are_aligned_by_name():
    X, index = data()
    model = GaussianNB().fit(X, np.array(["b", "c", "a"])[index])
    aligned = align(model, X, 4, columns=[3, 0, 1])  # where a, b and c belong
    assert_array_equal(aligned[:, [3, 0, 1]], model.predict_proba(X))
    assert_array_equal(aligned[:, 2], 0)


def test_test_folds_must_cover_all_rows():
    X, index = data()
    with pytest.raises(ValueError, match=r"cv leaves 60 rows \(first: row 60\) out of every test"):
        fit_and_predict(
            GaussianNB(), X, index, 3, [(np.arange(60, 120), np.arange(60))], {}, None, say
        )


def test_a_rare_label_reduces_the_folds_and_is_named():
    y = ["cat"] * 10 + ["dog"] * 3 + [None] * 20
    with pytest.warns(UserWarning, match=r"Label \['dog'\] has 3 samples: 3 folds instead of 5"):
        folds = list(LabelStratifiedKFold(5).split(y, y))
    assert len(folds) == 3
    assert sorted(np.concatenate([test for _, test in folds])) == list(range(33))


def test_a_label_seen_once_is_named():
    with pytest.warns(UserWarning, match=r"Label \['dog'\] has 1 samples: 2 folds"):
        list(LabelStratifiedKFold(3).split(range(9), ["cat"] * 8 + ["dog"]))


def test_each_fold_has_each_label_s_share():
    y = np.array(["cat", None, "dog", None], dtype=object).repeat(25)
    for _, test in LabelStratifiedKFold(5, random_state=0).split(y, y):
        assert [np.sum(y[test] == name) for name in ("cat", "dog")] == [5, 5]


def test_kernel_densities_of_another_library_come_back_as_numpy():
    torch = pytest.importorskip("torch")
    X, index = data()
    expected = DecoupledClassifier(KernelDensityClassifier()).fit(X, index)
    clf = DecoupledClassifier(KernelDensityClassifier()).fit(torch.asarray(X), index)
    assert_allclose(clf.class_proba_, expected.class_proba_, atol=1e-6)
    assert_allclose(clf.predict_proba(torch.asarray(X)), expected.predict_proba(X), atol=1e-6)
