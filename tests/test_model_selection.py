"""Cross-validation with missing labels: the splitter, and the score that needs no classes."""

import warnings

import numpy as np
import pytest
import sklearn
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from looselabels import DecoupledClassifier
from looselabels.model_selection import LabelStratifiedKFold, neg_label_log_loss

X_PETS = np.random.default_rng(0).standard_normal((60, 2)) + np.repeat([[0, 0], [4, 4]], 30, axis=0)
PETS = np.repeat(["cat", "dog"], 30).astype(object)
HALF = np.where(np.arange(60) % 3 == 0, None, PETS)


# ------------------------------------------------------------------------------------ the splitter


def test_each_row_is_in_exactly_one_test_fold():
    folds = list(LabelStratifiedKFold(4, random_state=0).split(HALF, HALF))
    assert len(folds) == LabelStratifiedKFold(4).get_n_splits(HALF, HALF) == 4
    assert_array_equal(np.sort(np.concatenate([test for _, test in folds])), np.arange(60))
    for train, test in folds:
        assert_array_equal(np.sort(np.concatenate([train, test])), np.arange(60))


def test_each_fold_has_the_same_share_of_each_label():
    y = np.array(["cat", None, "dog", None], dtype=object).repeat(25)
    for _, test in LabelStratifiedKFold(5, random_state=0).split(y, y):
        assert [np.sum(y[test] == name) for name in ("cat", "dog")] == [5, 5]
        assert sum(label is None for label in y[test]) == 10


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**31 - 1), st.integers(2, 60))
def test_rows_of_a_group_are_in_the_same_fold(seed, n_groups):
    rng = np.random.default_rng(seed)
    groups = rng.permutation(np.arange(120) % n_groups)
    y = rng.choice(["cat", None], 120)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # few groups
        folds = list(LabelStratifiedKFold(4, random_state=seed).split(y, y, groups))
    assert_array_equal(np.sort(np.concatenate([test for _, test in folds])), np.arange(120))
    for train, test in folds:
        assert not set(groups[train]) & set(groups[test])
        assert len(train) + len(test) == 120
        assert len(test)


def test_folds_of_groups_are_balanced_in_size_and_labels():
    rng = np.random.default_rng(0)
    groups = np.repeat(np.arange(100), rng.integers(1, 10, 100))
    y = np.array(["cat", None], dtype=object)[groups % 2]
    folds = list(LabelStratifiedKFold(5, random_state=0).split(y, y, groups))
    sizes = np.array([[np.sum(y[test] == "cat"), len(test)] for _, test in folds])
    assert np.ptp(sizes, axis=0).max() <= 10  # of about 50 cats in 100 rows
    again = LabelStratifiedKFold(5, random_state=1).split(y, y, groups)
    assert any(
        test.tolist() != other.tolist() for (_, test), (_, other) in zip(folds, again, strict=True)
    )


def test_copies_of_a_table_are_split_like_the_table():
    y = np.arange(300) % 3
    folds = LabelStratifiedKFold(3, random_state=0)
    once = [test for _, test in folds.split(y, y)]
    copied = np.repeat(y, 2)
    twice = [test for _, test in folds.split(copied, copied, np.arange(600) // 2)]
    for rows, both in zip(once, twice, strict=True):
        assert_array_equal(np.unique(both // 2), rows)


def test_groups_must_fit_the_rows_and_be_two_at_least():
    splitter = LabelStratifiedKFold(2)
    with pytest.raises(ValueError, match="groups has 2 values; y has 60 rows"):
        next(splitter.split(HALF, HALF, [0, 1]))
    with (
        pytest.warns(UserWarning, match="have 1 group each"),
        pytest.raises(ValueError, match="one group"),
    ):
        next(splitter.split(HALF, HALF, np.zeros(60)))


def test_a_label_in_few_groups_makes_fewer_folds():
    groups = np.where(PETS == "dog", np.arange(60) % 3, np.arange(60) + 3)
    with pytest.warns(UserWarning, match=r"\['dog'\] has 3 groups: 3 folds instead of 5"):
        assert LabelStratifiedKFold(5).get_n_splits(PETS, PETS, groups) == 3


def test_a_search_passes_groups_on_with_and_without_routing():
    groups, grid = np.arange(60) // 3, {"var_smoothing": [1e-9]}
    for routing in (False, True):
        with sklearn.config_context(enable_metadata_routing=routing):
            search = GridSearchCV(GaussianNB(), grid, cv=LabelStratifiedKFold(3, random_state=0))
            search.fit(X_PETS, PETS, groups=groups)
            assert search.best_score_ == 1


def test_a_seed_repeats_the_folds_and_another_seed_changes_them():
    def folds(seed):
        splitter = LabelStratifiedKFold(3, random_state=seed)
        return [test.tolist() for _, test in splitter.split(HALF, HALF)]

    assert folds(0) == folds(0)
    assert folds(0) != folds(1)


def test_a_few_unlabeled_rows_leave_the_number_of_folds():
    y = ["cat"] * 10 + ["dog"] * 10 + [None] * 2
    folds = list(LabelStratifiedKFold(5, random_state=0).split(y, y))
    assert sorted(np.concatenate([test for _, test in folds])) == list(range(22))
    assert len(folds) == LabelStratifiedKFold(5).get_n_splits(y=y) == 5


def test_a_rare_label_reduces_the_number_of_folds_and_is_named():
    y = ["cat"] * 10 + ["dog"] * 3 + [None] * 20
    with pytest.warns(UserWarning, match=r"Label \['dog'\] has 3 samples: 3 folds instead of 5"):
        folds = list(LabelStratifiedKFold(5).split(y, y))
    assert len(folds) == 3
    assert sorted(np.concatenate([test for _, test in folds])) == list(range(33))
    with pytest.warns(
        UserWarning, match=r"Labels \['dog', 'emu'\] have 3 samples each: 3 folds in"
    ):
        list(LabelStratifiedKFold(5).split([*y, "emu", "emu", "emu"], [*y, "emu", "emu", "emu"]))
    with pytest.warns(UserWarning, match=r"Label \['dog'\] has 3 samples"):
        assert LabelStratifiedKFold(5).get_n_splits(y, y) == 3


def test_a_label_that_occurs_once_is_named():
    with pytest.warns(UserWarning, match=r"Label \['dog'\] has 1 sample: 2 folds"):
        folds = list(LabelStratifiedKFold(3).split(range(9), ["cat"] * 8 + ["dog"]))
    assert len(folds) == 2
    with pytest.warns(UserWarning, match=r"Label \['dog'\] has 1 sample, fewer than the 2 folds"):
        assert LabelStratifiedKFold(2).get_n_splits(y=["cat"] * 8 + ["dog"]) == 2


def test_unlabeled_rows_are_not_named_as_a_rare_label():
    y = ["cat"] * 8 + ["dog"] * 2 + [None] * 2
    with pytest.warns(UserWarning, match=r"Label \['dog'\] has 2 samples: 2 folds instead of 5"):
        assert LabelStratifiedKFold(5).get_n_splits(y=y) == 2


@pytest.mark.parametrize("groups", [None, np.arange(60) // 2])
def test_unused_categories_leave_the_folds_as_they_are(groups):
    pandas = pytest.importorskip("pandas")
    y = pandas.Categorical(PETS, categories=["cat", "dog", "owl"])
    splitter = LabelStratifiedKFold(3, random_state=0)
    assert splitter.get_n_splits(y, y, groups) == 3
    folds = zip(splitter.split(y, y, groups), splitter.split(PETS, PETS, groups), strict=True)
    for (_, test), (_, expected) in folds:
        assert_array_equal(test, expected)


def test_labels_that_all_occur_once_are_refused():
    with pytest.raises(ValueError, match=r"No label of y has two samples.* 3 labels name 3"):
        LabelStratifiedKFold(3).get_n_splits(y=["cat", "dog", None])
    with pytest.raises(ValueError, match="No label of y has two samples"):
        DecoupledClassifier(GaussianNB()).fit([[1.0], [2.0]], ["cat", "dog"])


# --------------------------------------------------------------------------------------- the score


def test_the_score_is_the_mean_log_probability_of_the_labels():
    clf = DecoupledClassifier(GaussianNB(), random_state=0).fit(X_PETS, HALF)
    proba = clf.predict_proba(X_PETS) @ clf.transition_.proba
    column = {"cat": 0, "dog": 1, None: 2}
    given = [proba[i, column[label]] for i, label in enumerate(HALF)]
    assert neg_label_log_loss(clf, X_PETS, HALF) == pytest.approx(np.mean(np.log(given)))
    weight = np.arange(60)
    expected = weight @ np.log(given) / weight.sum()
    assert neg_label_log_loss(clf, X_PETS, HALF, weight) == pytest.approx(expected)


def test_a_pipeline_is_scored_by_its_last_step():
    clf = DecoupledClassifier(GaussianNB(), random_state=0)
    scaler = StandardScaler().fit(X_PETS)
    pipe = make_pipeline(StandardScaler(), clf).fit(X_PETS, HALF)
    alone = clf.fit(scaler.transform(X_PETS), HALF)
    expected = neg_label_log_loss(alone, scaler.transform(X_PETS), HALF)
    assert neg_label_log_loss(pipe, X_PETS, HALF) == pytest.approx(expected)


def test_cross_validation_needs_no_classes():
    # Two thirds of each class are labeled and the classes do not overlap: the best possible score
    # is 2/3 log 2/3 + 1/3 log 1/3.
    pipe = make_pipeline(StandardScaler(), DecoupledClassifier(GaussianNB(), random_state=0))
    folds = LabelStratifiedKFold(3, random_state=0)
    scores = cross_val_score(pipe, X_PETS, HALF, scoring=neg_label_log_loss, cv=folds)
    assert_allclose(scores, np.log(2 / 3) * 2 / 3 + np.log(1 / 3) / 3, atol=0.05)


def test_grid_search_needs_no_classes():
    search = GridSearchCV(
        DecoupledClassifier(LogisticRegression(), refit=False),
        {"strength": [10, np.inf], "estimator__C": [1e-6, 1.0]},
        scoring=neg_label_log_loss,
        cv=LabelStratifiedKFold(3, random_state=0),
    ).fit(X_PETS, HALF)
    assert search.best_params_["estimator__C"] == 1.0
    assert search.best_estimator_.score(X_PETS, PETS) == 1
