"""Kernel densities: comparison with independent computations, extreme inputs, invalid inputs."""

import pickle
import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn import config_context
from sklearn.datasets import load_iris, make_blobs
from sklearn.neighbors import KernelDensity
from sklearn.utils.estimator_checks import parametrize_with_checks

from looselabels.learning import density
from looselabels.learning.density import (
    KernelDensityClassifier,
    kernel_sums,
    standardization,
    standardize,
)

LABELS = np.array(["a", "b", "c"])


def make_data(rng, n_rows=40, n_features=3, n_labels=3):
    X = rng.standard_normal((n_rows, n_features)) * [1, 5, 0.1][:n_features] + 3
    index = np.r_[np.arange(n_labels), rng.integers(n_labels, size=n_rows - n_labels)]
    X[:, 0] += index
    return X, LABELS[index], rng.choice([0.5, 1.0, 2.5], n_rows)


def brute_force(X, y, weight, query, bandwidth, priors=None):
    """Return p(label | x) of one standardized query, computed by loops in float64."""
    log_kernel = np.array([-((query - row) ** 2).sum() / (2 * bandwidth**2) for row in X])
    kernel = np.exp(log_kernel - log_kernel[weight > 0].max())
    proba = []
    for position, label in enumerate(LABELS):
        total = sum(weight[j] for j in range(len(X)) if y[j] == label)
        prior = total / weight.sum() if priors is None else priors[position]
        mass = sum(weight[j] * kernel[j] for j in range(len(X)) if y[j] == label)
        proba.append(prior * mass / total if total else 0.0)
    return np.array(proba) / sum(proba)


def standardized(X, weight):
    mean = np.average(X, axis=0, weights=weight)
    return (X - mean) / np.sqrt(np.average((X - mean) ** 2, axis=0, weights=weight))


# ------------------------------------------------------------------- independent computations


@pytest.mark.parametrize("priors", [None, (0.7, 0.2, 0.1), (0.5, 0.5, 0.0)])
def test_leave_one_out_is_the_fit_without_the_row(rng, priors):
    X, y, weight = make_data(rng)
    clf = KernelDensityClassifier(0.6, priors=priors).fit(X, y, weight)
    Z, others = standardized(X, weight), ~np.eye(len(X), dtype=bool)
    for i, keep in enumerate(others):
        expected = brute_force(Z[keep], y[keep], weight[keep], Z[i], 0.6, priors)
        assert_allclose(clf.loo_proba_[i], expected, atol=1e-12)


@pytest.mark.parametrize("priors", [None, (0.7, 0.2, 0.1)])
def test_predictions_equal_those_of_plain_loops(rng, priors):
    X, y, weight = make_data(rng)
    clf = KernelDensityClassifier(0.4, priors=priors).fit(X[:30], y[:30], weight[:30])
    Z = (X - np.average(X[:30], axis=0, weights=weight[:30])) / standardization(
        X[:30], weight[:30]
    )[2]
    expected = [brute_force(Z[:30], y[:30], weight[:30], z, 0.4, priors) for z in Z[30:]]
    assert_allclose(clf.predict_proba(X[30:]), expected, atol=1e-12)
    assert_array_equal(clf.predict(X[30:]), LABELS[np.argmax(expected, axis=1)])


def test_predictions_equal_those_of_one_density_per_label(rng):
    X, y, weight = make_data(rng)
    clf = KernelDensityClassifier(0.5).fit(X, y, weight)
    Z = standardized(X, weight)
    logs = []
    for label in LABELS:
        rows = y == label
        found = KernelDensity(bandwidth=0.5).fit(Z[rows], sample_weight=weight[rows])
        logs.append(found.score_samples(Z) + np.log(weight[rows].sum()))
    expected = np.array(logs).T - np.logaddexp.reduce(logs, axis=0)[:, None]
    assert_allclose(np.log(clf.predict_proba(X)), expected, atol=1e-8)


def test_the_chosen_bandwidth_has_the_smallest_loss_of_separate_fits(rng):
    X, y, weight = make_data(rng)
    grid = [0.05, 0.3, 1.0, 4.0]
    clf = KernelDensityClassifier(grid).fit(X, y, weight)
    fits = [KernelDensityClassifier(h).fit(X, y, weight) for h in grid]
    losses = [fit.loo_log_loss_[h] for h, fit in zip(grid, fits, strict=True)]
    assert clf.loo_log_loss_ == pytest.approx(dict(zip(grid, losses, strict=True)), rel=1e-12)
    best = fits[int(np.argmin(losses))]
    assert clf.bandwidth_ == best.bandwidth_
    assert_allclose(clf.loo_proba_, best.loo_proba_, atol=1e-14)
    own = np.maximum(best.loo_proba_[np.arange(len(y)), np.searchsorted(LABELS, y)], 1e-12)
    assert best.loo_log_loss_[best.bandwidth_] == pytest.approx(
        -weight @ np.log(own) / weight.sum()
    )


@pytest.mark.parametrize("n_features", [1, 2, 30, 784])
def test_the_default_bandwidths_surround_the_best_one(n_features):
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=400)
    centers = 1.5 * rng.standard_normal((3, n_features)) / n_features**0.25
    X = centers[y] + rng.standard_normal((400, n_features))
    losses = list(KernelDensityClassifier().fit(X, y).loo_log_loss_.values())
    assert 0 < np.argmin(losses) < len(losses) - 1
    assert min(losses) < 1.0  # log 3 = 1.1 is the loss of uniform predictions


def test_the_classifier_is_accurate_on_iris():
    X, y = load_iris(return_X_y=True)
    clf = KernelDensityClassifier().fit(X, y)
    assert clf.score(X, y) > 0.98  # 149 of 150 are correct
    assert np.mean(clf.loo_proba_.argmax(axis=1) == y) > 0.945  # 143 of 150 are correct


# ------------------------------------------------------------------------------------- kernel_sums


def test_columns_do_not_affect_each_other(rng):
    X = rng.standard_normal((30, 2))
    columns = rng.random((30, 7))
    together = kernel_sums(X, None, columns, [0.2, 1.0])
    for c in range(7):
        alone = kernel_sums(X, None, columns[:, [c]], [0.2, 1.0])
        assert_allclose(together.sums[:, :, [c]], alone.sums, rtol=1e-12)
    distances = ((X[:, None] - X) ** 2).sum(axis=2) + np.diag(np.full(30, np.inf))
    assert_allclose(together.nearest, distances.min(axis=1), atol=1e-12)
    for h, sums in zip([0.2, 1.0], together.sums, strict=True):
        shift = np.exp(-together.nearest / (2 * h**2))[:, None]
        assert_allclose(sums * shift, np.exp(-distances / (2 * h**2)) @ columns, rtol=1e-9)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from([1, 2, 7, 19, 20, 21]), st.sampled_from([None, 2]))
def test_blocks_and_threads_do_not_change_the_sums(seed, rows_per_block, n_jobs):
    rng = np.random.default_rng(seed)
    X, query, columns = rng.random((20, 3)), rng.random((9, 3)), rng.random((20, 2))
    for at in (None, query):
        whole = kernel_sums(X, at, columns, [0.1, 0.5])
        memory = rows_per_block * (n_jobs or 1) * 2 * 20 * 8 / 2**20
        with config_context(working_memory=memory):
            blocks = kernel_sums(X, at, columns, [0.1, 0.5], n_jobs=n_jobs)
        assert_allclose(blocks.sums, whole.sums, rtol=1e-10)
        assert_allclose(blocks.nearest, whole.nearest, atol=1e-14)


def test_sums_of_many_float32_terms_are_float64(rng, monkeypatch):
    X, columns = rng.random((500, 2), dtype=np.float32), np.ones((500, 1))
    expected = kernel_sums(X, None, columns, [1.0]).sums
    monkeypatch.setattr(density, "FLOAT32_TERMS", 7)
    found = kernel_sums(X, None, columns, [1.0]).sums
    assert found.dtype == np.float64
    assert_allclose(found, expected, rtol=1e-6)


def test_memory_is_limited_by_working_memory():
    X = np.random.default_rng(0).random((4000, 2), dtype=np.float32)
    y = (X[:, 0] > 0.5).astype(int)
    tracemalloc.start()
    try:
        with config_context(working_memory=4):
            KernelDensityClassifier(0.3, n_jobs=2).fit(X, y)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 8 * 2**20  # all pairs in float32 take 61 MiB


@pytest.mark.parametrize("bad", [0, -1.0, np.nan, np.inf, [1.0, 0.0], [], "scott", [[1.0]]])
def test_invalid_bandwidths_are_refused(rng, bad):
    X, y, _ = make_data(rng)
    with pytest.raises(ValueError, match="bandwidth must be"):
        KernelDensityClassifier(bad).fit(X, y)
    for wrong in (bad, None):
        with pytest.raises(ValueError, match="bandwidth must be"):
            kernel_sums(X, None, np.ones((40, 1)), wrong)


def test_columns_need_one_row_per_kernel(rng):
    with pytest.raises(ValueError, match=r"columns has shape \(3, 1\); X has 4 rows"):
        kernel_sums(rng.random((4, 2)), None, np.ones((3, 1)), [1.0])


# ---------------------------------------------------------------------------------- extreme inputs


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("bandwidth", [1e-300, 1e-3, 0.3, 1e3, 1e300])
def test_hundreds_of_dimensions_do_not_underflow(rng, dtype, bandwidth):
    X, y = rng.standard_normal((60, 784)).astype(dtype), np.arange(60) % 3
    with np.errstate(all="raise"):
        clf = KernelDensityClassifier(bandwidth).fit(X, y)
        proba = clf.predict_proba(-X[:7])
    for found in (clf.loo_proba_, proba):
        assert found.dtype == dtype
        assert np.isfinite(found).all()
        assert_allclose(found.sum(axis=1), 1, rtol=1e-6)


def test_float32_agrees_with_float64(rng):
    X, y, weight = make_data(rng, 200)
    double = KernelDensityClassifier([0.2, 0.5]).fit(X, y, weight)
    single = KernelDensityClassifier([0.2, 0.5]).fit(X.astype(np.float32), y, weight)
    assert single.bandwidth_ == double.bandwidth_
    assert_allclose(single.loo_proba_, double.loo_proba_, atol=1e-5)
    assert_allclose(single.predict_proba(X), double.predict_proba(X), atol=1e-5)


def test_features_far_from_the_origin_keep_their_distances(rng):
    X = (rng.standard_normal((60, 4)) * 100 + 1e6).astype(np.float32)
    y = (X[:, 0] > 1e6).astype(int)
    centered = X.astype(np.float64) - 1e6
    single = KernelDensityClassifier(0.3).fit(X, y)
    double = KernelDensityClassifier(0.3).fit(centered, y)
    assert_allclose(single.loo_proba_, double.loo_proba_, atol=1e-4)
    assert_allclose(single.predict_proba(X), double.predict_proba(centered), atol=1e-4)
    sums = kernel_sums(X, None, np.ones((60, 1)), [30.0]).sums
    assert_allclose(sums, kernel_sums(centered, None, np.ones((60, 1)), [30.0]).sums, rtol=1e-3)


@pytest.mark.parametrize("far", [1e3, 1e30, 1e300])
def test_predictions_far_from_all_data_are_finite(rng, far):
    X, y, _ = make_data(rng)
    for dtype in (np.float32, np.float64):
        clf = KernelDensityClassifier(0.3).fit(X.astype(dtype), y)
        proba = clf.predict_proba(np.full((2, 3), min(far, float(np.finfo(dtype).max) / 2), dtype))
        assert np.isfinite(proba).all()
        assert_allclose(proba.sum(axis=1), 1, rtol=1e-6)


def test_equal_densities_give_the_priors():
    X, y = np.array([[-1.0, 0.0], [1.0, 0.0], [-1.0, 1.0], [1.0, 1.0]]), [0, 1, 0, 1]
    clf = KernelDensityClassifier(0.1, priors=[0.8, 0.2]).fit(X, y)
    assert_allclose(clf.predict_proba([[0.0, 0.5], [0.0, 1e6]]), [[0.8, 0.2]] * 2)
    assert_allclose(clf.priors_, [0.8, 0.2])


def test_a_duplicate_stays_when_its_row_is_left_out():
    X, y = np.array([[0.0], [0.0], [5.0], [5.0]]), np.array([0, 1, 1, 1])
    clf = KernelDensityClassifier(0.01).fit(X, y)
    assert_allclose(clf.loo_proba_, [[0, 1], [1, 0], [0, 1], [0, 1]], atol=1e-12)
    assert_allclose(clf.predict_proba([[0.0]]), [[0.5, 0.5]], atol=1e-12)


@pytest.mark.parametrize("priors", [None, [0.4, 0.6]])
def test_a_label_with_one_sample_has_probability_zero_there(rng, priors):
    X, y = rng.random((10, 2)), np.r_[0, np.ones(9, dtype=int)]
    clf = KernelDensityClassifier(priors=priors).fit(X, y)
    assert_array_equal(clf.loo_proba_[0], [0, 1])
    assert np.isfinite(clf.loo_proba_).all()
    assert np.isfinite(list(clf.loo_log_loss_.values())).all()


def test_rounding_errors_do_not_make_probabilities_negative():
    priors = np.array([0.5, 0.5])
    assert_array_equal(density.normalize_sums(np.array([[-1e-320, 2.0]]), priors), [[0.0, 1.0]])


@pytest.mark.filterwarnings("ignore:X has constant columns:UserWarning")
def test_without_other_rows_the_prediction_is_the_priors():
    clf = KernelDensityClassifier().fit([[1.0, 2.0]], ["a"])
    assert_array_equal(clf.loo_proba_, [[1.0]])
    assert_array_equal(clf.predict([[5.0, 5.0]]), ["a"])
    clf = KernelDensityClassifier(1.0).fit([[1.0, 2.0], [3.0, 4.0]], [0, 1], [2.0, 0.0])
    assert_array_equal(clf.loo_proba_, [[1.0, 0.0]] * 2)


# ------------------------------------------------------------------------- weights and constants


@pytest.mark.parametrize("priors", [None, (0.2, 0.3, 0.5)])
def test_weights_are_equivalent_to_repeated_rows(rng, priors):
    X, y, _ = make_data(rng)
    weight = rng.integers(0, 4, len(X))
    weight[:3] = 1
    weighted = KernelDensityClassifier(0.4, priors=priors).fit(X, y, weight)
    repeated = KernelDensityClassifier(0.4, priors=priors).fit(
        np.repeat(X, weight, axis=0), np.repeat(y, weight)
    )
    assert_allclose(weighted.predict_proba(X), repeated.predict_proba(X), atol=1e-12)
    assert_allclose(weighted.priors_, repeated.priors_)


def test_a_row_of_weight_zero_has_no_effect(rng):
    X, y, weight = make_data(rng)
    X[3], weight[3] = 1e6, 0
    keep = weight > 0
    for priors in (None, (0.2, 0.3, 0.5)):
        clf = KernelDensityClassifier(priors=priors).fit(X, y, weight)
        fewer = KernelDensityClassifier(priors=priors).fit(X[keep], y[keep], weight[keep])
        assert clf.bandwidth_ == fewer.bandwidth_
        assert_allclose(clf.loo_proba_[keep], fewer.loo_proba_, atol=1e-12)
        assert_allclose(clf.loo_proba_[3], fewer.predict_proba(X[[3]])[0], atol=1e-12)
        assert_allclose(clf.predict_proba(X), fewer.predict_proba(X), atol=1e-12)


def test_a_near_row_of_weight_zero_does_not_cause_underflow():
    X = np.array([[0.0], [1.0], [2.0]])
    clf = KernelDensityClassifier(1e-3).fit(X, [0, 1, 1], [0.0, 1.0, 1.0])
    assert_array_equal(clf.predict_proba([[0.0]]), [[0.0, 1.0]])
    clf = KernelDensityClassifier(1e-3, priors=[0.0, 1.0]).fit(X, [0, 1, 1])
    assert_array_equal(clf.predict_proba([[0.0]]), [[0.0, 1.0]])


def test_the_scale_of_the_weights_has_no_effect(rng):
    X, y, weight = make_data(rng)
    expected = KernelDensityClassifier(0.4).fit(X, y, weight).loo_proba_
    for size in (1e-60, 1e60):
        for dtype in (np.float32, np.float64):
            found = KernelDensityClassifier(0.4).fit(X.astype(dtype), y, weight * size)
            assert_allclose(found.loo_proba_, expected, atol=1e-5)


def test_constant_columns_are_ignored_and_named(rng):
    X, y, _ = make_data(rng)
    expected = KernelDensityClassifier(0.4).fit(X, y)
    wide = np.insert(X, 1, 0.1, axis=1)
    with pytest.warns(UserWarning, match="X has constant columns: 1\\."):
        clf = KernelDensityClassifier(0.4).fit(wide, y)
    wide[:, 1] = rng.random(len(wide))
    assert_allclose(clf.predict_proba(wide), expected.predict_proba(X), atol=1e-12)
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame({"height": X[:, 0], "planet": 3.0})
    with pytest.warns(UserWarning, match="constant columns: 'planet'\\."):
        KernelDensityClassifier(0.4).fit(table, y)


@pytest.mark.filterwarnings("ignore:X has constant columns:UserWarning")
def test_without_varying_columns_the_prediction_is_the_priors():
    clf = KernelDensityClassifier().fit(np.ones((4, 2)), [0, 0, 0, 1])
    assert_allclose(clf.predict_proba([[1.0, 1.0]]), [[0.75, 0.25]])


# ----------------------------------------------------------------------------------- invalid inputs


@pytest.mark.parametrize("container", [sp.csr_matrix, sp.csr_array])
def test_sparse_features_are_refused(rng, container):
    X, y, _ = make_data(rng)
    with pytest.raises(ValueError, match=r"dense arrays only. Pass X.toarray\(\)"):
        KernelDensityClassifier().fit(container(X), y)


def test_missing_features_are_refused():
    X = np.array([[0.0], [np.nan], [1.0], [2.0]])
    with pytest.raises(ValueError, match="Input X contains NaN"):
        KernelDensityClassifier(1.0).fit(X, [0, 0, 1, 1])


@pytest.mark.parametrize(
    ("priors", "message"),
    [
        ([0.5, 0.5], "priors has shape"),
        ([0.5, 0.6, 0.5], "priors must sum to 1; they sum to 1.6"),
        ([-0.5, 1.0, 0.5], "finite and not negative"),
        ([np.nan, 0.5, 0.5], "finite and not negative"),
    ],
)
def test_priors_must_be_a_distribution(rng, priors, message):
    X, y, _ = make_data(rng)
    with pytest.raises(ValueError, match=message):
        KernelDensityClassifier(priors=priors).fit(X, y)


@pytest.mark.parametrize("weight", [-1.0, np.nan, 0.0])
def test_invalid_weights_are_refused(rng, weight):
    X, y, _ = make_data(rng)
    with pytest.raises(ValueError, match="weight"):
        KernelDensityClassifier().fit(X, y, np.full(len(X), weight))


def test_a_column_with_too_large_numbers_is_named():
    X = np.array([[0.0, 3e38], [1.0, -3e38], [2.0, 3e38]], dtype=np.float32)
    with pytest.raises(ValueError, match="Column 1 of X has numbers too large or too small"):
        KernelDensityClassifier().fit(X, [0, 1, 0])


def test_tiny_numbers_have_a_standard_deviation():
    X, weight = np.array([[1e-200], [3e-200]]), np.ones(2)
    assert_allclose(standardize(X, *standardization(X, weight)), [[-1.0], [1.0]])


@pytest.mark.parametrize("method", ["fit", "fit_out_of_sample"])
@pytest.mark.parametrize("fitted", [False, True])
def test_a_failed_fit_leaves_the_object_as_it_was(rng, method, fitted):
    X, y, _ = make_data(rng)
    clf = KernelDensityClassifier(0.4)
    if fitted:
        clf.fit(X, y)
    clf.set_params(priors=[1.0])  # one prior, but three labels
    before = dict(vars(clf))
    with pytest.raises(ValueError, match="priors has shape"):
        getattr(clf, method)(X[:, :2], y)  # n_features_in_ would become 2
    assert vars(clf).keys() == before.keys()
    assert all(vars(clf)[name] is before[name] for name in before)


@pytest.mark.parametrize("priors", [None, (0.7, 0.2, 0.1)])
def test_fit_out_of_sample_returns_what_fit_stores(rng, priors):
    X, y, weight = make_data(rng)
    expected = KernelDensityClassifier(priors=priors).fit(X, y, weight)
    clf = KernelDensityClassifier(priors=priors).fit(X[:20], y[:20])
    found = clf.fit_out_of_sample(X, y, weight)
    assert_array_equal(found, expected.loo_proba_)
    assert vars(clf).keys() == vars(expected).keys() - {"loo_proba_"}  # not even of the first fit
    assert clf.loo_log_loss_ == expected.loo_log_loss_
    assert_array_equal(clf.predict_proba(X), expected.predict_proba(X))


def test_a_second_fit_forgets_the_names_of_the_first(rng):
    pandas = pytest.importorskip("pandas")
    X, y, _ = make_data(rng)
    clf = KernelDensityClassifier(0.4).fit(pandas.DataFrame(X, columns=list("abc")), y)
    assert clf.feature_names_in_.tolist() == ["a", "b", "c"]
    assert not hasattr(clf.fit(X, y), "feature_names_in_")


# ---------------------------------------------------------------------------------- other libraries


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("priors", [None, (0.2, 0.3, 0.5)])
def test_torch_gives_the_same_results(rng, dtype, priors):
    torch = pytest.importorskip("torch")
    X, y, weight = make_data(rng)
    X, index = X.astype(dtype), np.searchsorted(LABELS, y)
    tensor = torch.asarray(X)
    expected = KernelDensityClassifier(priors=priors).fit(X, index, weight)
    clf = KernelDensityClassifier(priors=priors).fit(
        tensor, torch.asarray(index), torch.asarray(weight)
    )
    tol = 1e-5 if dtype == "float32" else 1e-10
    assert clf.bandwidth_ == expected.bandwidth_
    assert isinstance(clf.loo_proba_, torch.Tensor)
    assert clf.loo_proba_.dtype == tensor.dtype
    assert_allclose(clf.loo_proba_.numpy(), expected.loo_proba_, atol=tol)
    proba = clf.predict_proba(tensor)
    assert isinstance(proba, torch.Tensor)
    assert_allclose(proba.numpy(), expected.predict_proba(X), atol=tol)
    assert_array_equal(clf.predict(tensor), expected.predict(X))
    across = clf.predict_proba(X)  # the result has the library of its X
    assert isinstance(across, np.ndarray)
    assert_allclose(across, proba.numpy(), atol=tol)
    assert isinstance(expected.predict_proba(tensor), torch.Tensor)


def test_torch_features_are_checked(rng):
    torch = pytest.importorskip("torch")
    X, y, _ = make_data(rng)
    X[4, 1] = np.nan
    with pytest.raises(ValueError, match="row 4 has NaN"):
        KernelDensityClassifier().fit(torch.asarray(X), y)
    clf = KernelDensityClassifier(1.0).fit(torch.asarray(np.nan_to_num(X)), y)
    with pytest.raises(ValueError, match="2 features"):
        clf.predict(torch.ones((1, 2)))


# ------------------------------------------------------------------------------------- the contract


def expected_failures(estimator):
    """Return the checks that this estimator cannot pass, each with the reason."""
    reason = "scikit-learn 1.6 passes sparse rows to estimators that do not support them"
    expected = {"check_sample_weight_equivalence_on_sparse_data": reason}
    if estimator.bandwidth is None:
        reason = (
            "leaving out a repeated row leaves its copies, unlike a weighted row: losses differ"
        )
        expected["check_sample_weight_equivalence_on_dense_data"] = reason
    return expected


@parametrize_with_checks(
    [KernelDensityClassifier(1.0), KernelDensityClassifier(), KernelDensityClassifier(n_jobs=2)],
    expected_failed_checks=expected_failures,
)
@pytest.mark.filterwarnings("ignore:X has constant columns:UserWarning")
def test_the_checks_of_scikit_learn(estimator, check):
    check(estimator)


def test_a_pickled_classifier_predicts_the_same():
    X, y = make_blobs(50, random_state=0)
    clf = KernelDensityClassifier().fit(X, y)
    again = pickle.loads(pickle.dumps(clf))
    assert_array_equal(again.predict_proba(X), clf.predict_proba(X))
