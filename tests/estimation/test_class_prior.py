"""Class shares if one class has no labels."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from looselabels.estimation.class_prior import (
    METHODS,
    _fit_mixture,
    _mixture_parts,
    best_bin,
    distribute_share,
    estimate_class_prior,
)


def separate(n_labeled=100, n_positive=300, n_samples=1000):
    """Return p(label | x) and labels if x determines the class: a rate at positive rows, else 0."""
    row = np.arange(n_samples)
    scores = np.where(row < n_positive, n_labeled / n_positive, 0.0)
    return np.column_stack([scores, 1 - scores]), np.where(row < n_labeled, 0, 1)


def overlapping(rng, shares, rates, n_samples=3000, distance=3.0):
    """Return p(label | x), labels and classes: Gaussian classes at the corners of a simplex."""
    n_classes = len(shares)
    classes = rng.choice(n_classes, n_samples, p=shares)
    X = rng.normal(size=(n_samples, n_classes)) + distance / np.sqrt(2) * np.eye(n_classes)[classes]
    class_proba = np.asarray(shares) * np.exp(distance / np.sqrt(2) * X)
    class_proba /= class_proba.sum(axis=1, keepdims=True)
    rates = np.append(rates, 0.0)
    labels = np.where(rng.random(n_samples) < rates[classes], classes, n_classes - 1)
    label_proba = class_proba * rates
    label_proba[:, -1] = 1 - label_proba[:, :-1].sum(axis=1)
    return label_proba, labels, classes


@pytest.mark.parametrize(("method", "error"), [("density-ratio", 0.003), ("best-bin", 1e-9)])
def test_scores_that_determine_the_class_give_the_share(method, error):
    found = estimate_class_prior(*separate(), method=method, n_resamples=0)
    assert_allclose(found.share, [0.3, 0.7], atol=error)
    assert_allclose(found.labeled, 0.1 / found.share[0])


@pytest.mark.parametrize("method", METHODS)
def test_case_control_data_are_a_single_sample_with_another_prior(method, rng):
    label_proba, labels, _ = overlapping(rng, [0.4, 0.6], [0.3], 800)
    one = estimate_class_prior(label_proba, labels, method=method, n_resamples=0)
    two = estimate_class_prior(label_proba, labels, method=method, n_resamples=0, case_control=True)
    n_labeled, n_unlabeled = np.bincount(labels)
    assert_allclose(two.labeled, n_labeled / (n_labeled + n_unlabeled * two.share[:1]))
    assert_allclose(two.labeled, one.labeled)
    assert_allclose(one.share[0] * len(labels), n_labeled + n_unlabeled * two.share[0])


@pytest.mark.parametrize("method", METHODS)
def test_the_number_of_separately_sampled_labels_does_not_change_the_share(method, rng):
    population, labels, classes = overlapping(rng, [0.4, 0.6], [0.5], 6000)
    unlabeled = labels == 1
    share = np.mean(classes[unlabeled] == 0)
    for some in (slice(None), slice(0, None, 3)):
        rows = np.concatenate([np.flatnonzero(~unlabeled)[some], np.flatnonzero(unlabeled)])
        found = estimate_class_prior(
            population[rows], labels[rows], method=method, case_control=True, n_resamples=0
        )
        # four seeds are off by up to 0.044 with 400 labels, by 0.017 with 1,200
        assert found.share[0] == pytest.approx(share, abs=0.05)


@pytest.mark.parametrize("method", METHODS)
def test_several_classes_are_found_with_their_own_rates(method, rng):
    shares, rates = [0.1, 0.3, 0.2, 0.4], [0.6, 0.2, 0.4]
    label_proba, labels, _ = overlapping(rng, shares, rates, 6000, distance=4)
    found = estimate_class_prior(label_proba, labels, method=method)
    assert_allclose(found.share, shares, atol=0.025)  # four seeds: 0.019 and 0.054
    assert_allclose(found.labeled, rates, atol=0.07)
    assert found.share.sum() == pytest.approx(1)
    assert (found.low <= found.share).all()
    assert (found.share <= found.high).all()


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("case_control", [False, True])
def test_classes_with_the_same_rate_are_pooled_and_split_by_their_labels(method, case_control, rng):
    label_proba, labels, _ = overlapping(rng, [0.1, 0.3, 0.6], [0.4, 0.4], 2000)
    options = {"method": method, "case_control": case_control, "n_resamples": 20}
    found = estimate_class_prior(label_proba, labels, one_rate=True, **options)
    pooled = np.column_stack([label_proba[:, :2].sum(axis=1), label_proba[:, 2]])
    one = estimate_class_prior(pooled, (labels == 2).astype(int), **options)
    parts = np.bincount(labels)[:2] / np.sum(labels < 2)
    for of_each, of_all in zip(found[:3], one[:3], strict=True):
        assert_allclose(of_each, np.append(of_all[0] * parts, of_all[1]))
    assert_allclose(found.labeled, [*one.labeled, *one.labeled])


def test_pooling_is_more_accurate_if_labels_are_few():
    errors = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        shares = [0.1] * 6 + [0.4]
        label_proba, labels, _ = overlapping(rng, shares, [0.1] * 6, 1000, distance=4)
        each, one = (
            estimate_class_prior(label_proba, labels, one_rate=one, n_resamples=0).share[-1]
            for one in (False, True)
        )
        errors.append((abs(each - 0.4), abs(one - 0.4)))
    each, one = np.mean(errors, axis=0)
    assert one < 0.5 * each


def test_shares_above_all_rows_are_reduced_in_proportion():
    # x says nothing: each label would take all of the unlabeled rows
    label_proba = np.tile([0.2, 0.3, 0.5], (100, 1))
    labels = np.repeat([0, 1, 2], [20, 30, 50])
    found = estimate_class_prior(label_proba, labels, method="best-bin", n_resamples=20)
    assert_allclose(found.share, [0.45, 0.55, 0.0], atol=1e-12)
    assert_allclose(found.labeled, [20 / 45, 30 / 55])


@pytest.mark.parametrize("method", METHODS)
def test_only_the_order_of_the_scores_matters(method, rng):
    label_proba, labels, _ = overlapping(rng, [0.3, 0.7], [0.3])
    other = label_proba[:, 0] ** 3 / 2
    found = estimate_class_prior(label_proba, labels, method=method)
    again = estimate_class_prior(np.column_stack([other, 1 - other]), labels, method=method)
    for one, two in zip(found, again, strict=True):
        assert_array_equal(one, two)


def test_best_bin_is_the_smallest_bound_over_all_thresholds(rng):
    label_proba, labels, _ = overlapping(rng, [0.3, 0.7], [0.3], 300, distance=1.5)
    scores = label_proba[:, 0]
    labeled, unlabeled = scores[labels == 0], scores[labels == 1]

    def margin(values):
        return np.sqrt(np.log(40) / 2 / len(values))

    best = np.inf, np.nan
    for c in labeled:
        above, above_u = np.mean(labeled >= c), np.mean(unlabeled >= c)
        if above > margin(labeled):
            bound = (above_u + margin(unlabeled)) / (above - margin(labeled))
            best = min(best, (bound, above_u / above))
    found = estimate_class_prior(
        label_proba, labels, method="best-bin", case_control=True, n_resamples=0
    )
    assert found.share[0] == pytest.approx(best[1], abs=0.02)  # bins of one unlabeled row in 100


@pytest.mark.parametrize("method", METHODS)
def test_a_weight_of_two_is_the_same_as_two_rows(method, rng):
    label_proba, labels, _ = overlapping(rng, [0.4, 0.6], [0.4], 500)
    weight = rng.integers(0, 3, len(labels))
    rows = np.repeat(np.arange(len(labels)), weight)
    weighted = estimate_class_prior(
        label_proba, labels, method=method, sample_weight=weight, n_resamples=0
    )
    repeated = estimate_class_prior(label_proba[rows], labels[rows], method=method, n_resamples=0)
    assert_allclose(weighted.share, repeated.share, rtol=1e-6)


def test_the_seed_changes_only_the_interval(rng):
    label_proba, labels, _ = overlapping(rng, [0.3, 0.7], [0.3], 600)
    first, again, other = (
        estimate_class_prior(label_proba, labels, random_state=seed) for seed in (0, 0, 1)
    )
    assert_array_equal(first.low, again.low)
    assert_array_equal(first.share, other.share)
    assert (first.low != other.low).any()


@pytest.mark.parametrize(("method", "ratio"), [("best-bin", 0.5), ("density-ratio", 0.75)])
def test_more_rows_make_the_interval_narrower(method, ratio, rng):
    """Sixteen times the rows: a quarter of the width, plus what "density-ratio" assumes about κ."""
    widths = []
    for n_samples in (500, 8000):
        label_proba, labels, _ = overlapping(rng, [0.3, 0.7], [0.3], n_samples, distance=5)
        found = estimate_class_prior(label_proba, labels, method=method)
        widths.append(found.high[0] - found.low[0])
    assert widths[1] < ratio * widths[0]  # twelve seeds: at most 0.48 and 0.62


def test_rare_labels_show_the_share_of_a_frequent_class(rng):
    # a fit that does not converge would stay near its start; 0.61 to 0.71 in four seeds
    label_proba, labels, _ = overlapping(rng, [0.7, 0.3], [0.005], 20_000, distance=5)
    found = estimate_class_prior(label_proba, labels, n_resamples=0)
    assert np.sum(labels == 0) < 100
    assert found.share[0] == pytest.approx(0.7, abs=0.1)


def test_the_mixture_maximizes_the_likelihood(rng):
    labeled = rng.integers(1, 10, 60).astype(float)
    parts = _mixture_parts(labeled, 3.0)
    unlabeled = rng.poisson(20 * labeled * (parts @ np.append(0.4, np.full(10, 0.06))))
    weight = _fit_mixture(labeled, unlabeled, parts, np.full(11, 1 / 11))

    def log_likelihood(weight):
        odds = parts @ weight * unlabeled.sum() / labeled.sum()
        return np.sum(unlabeled * np.log(odds / (1 + odds)) - labeled * np.log(1 + odds))

    best = log_likelihood(weight)
    for k in range(11):
        for step in (0.02, -0.02):
            other = weight + step * np.eye(11)[k]
            if other[k] >= 0:
                assert log_likelihood(other) <= best + 1e-6


@pytest.mark.parametrize("method", METHODS)
def test_labels_of_one_row_have_an_interval(method, rng):
    label_proba, labels, _ = overlapping(rng, [0.1] * 6 + [0.4], [1.0] * 6, 300)
    first = np.unique(labels, return_index=True)[1]
    few = np.full(300, 6)
    few[first[:6]] = np.arange(6)
    found = estimate_class_prior(label_proba, few, method=method, n_resamples=40)
    assert (found.high - found.low)[:6].min() > 0


@pytest.mark.parametrize("method", METHODS)
def test_a_tiny_weight_changes_hardly_anything(method, rng):
    label_proba, labels, _ = overlapping(rng, [0.4, 0.6], [0.5], 200)
    weight = np.ones(200)
    weight[np.argmin(label_proba[:, 0])] = 0.0
    options = {"method": method, "n_resamples": 0}
    without = estimate_class_prior(label_proba, labels, sample_weight=weight, **options)
    weight[weight == 0] = 1e-20
    found = estimate_class_prior(label_proba, labels, sample_weight=weight, **options)
    assert_allclose(found.share, without.share, atol=0.01)


@pytest.mark.parametrize("method", METHODS)
def test_a_label_of_one_row_gives_finite_shares(method):
    label_proba, labels = separate(n_labeled=1)
    found = estimate_class_prior(label_proba, labels, method=method, n_resamples=10)
    assert np.isfinite(np.concatenate(found)).all()


def test_a_class_whose_rows_are_all_labeled_has_no_unlabeled_rows():
    found = estimate_class_prior(*separate(300, 300), n_resamples=0)
    assert_allclose(found.share, [0.3, 0.7], atol=1e-3)
    assert found.labeled == pytest.approx(1, abs=1e-3)


@pytest.mark.parametrize("one_rate", [False, True])
def test_without_resamples_there_is_no_interval(one_rate):
    found = estimate_class_prior(*separate(), n_resamples=0, one_rate=one_rate)
    assert np.isnan([found.low, found.high]).all()
    assert np.isfinite(found.share).all()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"label_index": np.ones(1000, int)},
            "No row has label 0: the share of its class cannot be",
        ),
        ({"label_index": np.zeros(1000, int)}, "No row has the missing label, 1"),
        (
            {"label_proba": np.full((1000, 3), 1 / 3), "label_index": np.arange(1000) % 2},
            "No row has the missing label, 2",
        ),
        ({"sample_weight": np.arange(1000) >= 100}, "No row has label 0"),
        (
            {"label_proba": np.ones((1000, 1)), "label_index": np.zeros(1000, int)},
            "label_proba has one column",
        ),
        ({"label_proba": np.full((1000, 2), np.nan)}, "label_proba must hold numbers"),
        ({"label_index": np.full(1000, 2)}, "label_index must be between 0 and 1; row 0 is 2"),
        ({"method": "e1"}, "method must be one of density-ratio, best-bin; it is 'e1'"),
        ({"n_resamples": -1}, "n_resamples must be a whole number, 0 or more; it is -1"),
        ({"n_resamples": 1.5}, "n_resamples must be a whole number, 0 or more; it is 1.5"),
    ],
)
def test_the_error_says_what_to_do(change, message):
    label_proba, label_index = separate()
    arguments = {"label_proba": label_proba, "label_index": label_index, **change}
    with pytest.raises(ValueError, match=message):
        estimate_class_prior(**arguments)


@pytest.mark.parametrize("missing", [None, "(unlabeled)"])
def test_a_table_that_names_the_missing_label_first_is_refused(missing):
    pandas = pytest.importorskip("pandas", reason="the extra `tables` is not installed")
    label_proba, label_index = separate()
    table = pandas.DataFrame(label_proba, columns=pandas.Index(["cat", missing], dtype=object))
    expected = estimate_class_prior(label_proba, label_index)
    assert_array_equal(estimate_class_prior(table, label_index).share, expected.share)
    with pytest.raises(ValueError, match=r"'\(unlabeled\)' as column 0 of 2.*must be the last"):
        estimate_class_prior(table.iloc[:, ::-1], label_index)


def coverage(method, distance, n_samples, n_runs=60):
    """Return how often the interval contains the true share, and the mean error of the estimate."""
    held, errors = [], []
    for seed in range(n_runs):
        rng = np.random.default_rng(seed)
        share = rng.uniform(0.1, 0.7)
        label_proba, labels, _ = overlapping(rng, [share, 1 - share], [0.3], n_samples, distance)
        found = estimate_class_prior(label_proba, labels, method=method, n_resamples=100)
        held.append(found.low[0] <= share <= found.high[0])
        errors.append(found.share[0] - share)
    return np.mean(held), np.mean(errors)


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
def test_intervals_contain_the_truth_if_classes_are_separated(method):
    held, error = coverage(method, distance=4.0, n_samples=1500)
    assert held >= 0.8
    assert abs(error) < 0.02


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
def test_the_share_is_an_upper_bound_if_classes_overlap(method):
    _, error = coverage(method, distance=1.0, n_samples=1500)
    assert error > 0.03


def test_many_labeled_rows_with_a_score_of_zero_do_not_disturb_the_share():
    rng = np.random.default_rng(0)
    n = 20_000
    score = np.round(np.r_[rng.beta(3, 1, 2 * n), rng.beta(1, 3, 2 * n)], 2) / 2
    score[:n][rng.random(n) < 0.03] = 0
    index = np.repeat([0, 1], [n, 3 * n])
    found = estimate_class_prior(np.column_stack([score, 1 - score]), index, n_resamples=0)
    assert found.share[0] == pytest.approx(0.5, abs=0.02)  # half of the rows are positive


def test_weights_below_one_are_scaled_to_counts_of_rows():
    rng = np.random.default_rng(0)
    score = np.r_[rng.beta(3, 1, 200), rng.beta(1, 3, 200)] / 2
    given = np.column_stack([score, 1 - score]), np.repeat([0, 1], [100, 300])
    plain = estimate_class_prior(*given)
    shares = estimate_class_prior(*given, sample_weight=np.full(400, 1 / 400))
    assert_allclose(shares.share, plain.share)
    assert_allclose(shares.low, plain.low)


def test_the_positive_share_is_split_and_the_negative_one_kept():
    found = distribute_share(np.array([0.5, 0.1, 0.4]), np.array([30.0, 90.0]))
    assert_allclose(found, [0.15, 0.45, 0.4])
    equal = distribute_share(np.array([0.5, 0.1, 0.4]), np.zeros(2))  # no proportions are known
    assert_allclose(equal, [0.3, 0.3, 0.4])


def test_the_best_bin_of_too_few_rows_is_all_of_them():
    assert_array_equal(best_bin(np.array([[1.0, 0.0]]), np.array([[1.0, 3.0]])), [1.0])


def test_the_best_bin_agrees_with_plain_loops(rng):
    labeled, unlabeled = rng.integers(0, 40, (200, 8)), rng.integers(0, 90, (200, 8))
    for row, row_u, found in zip(labeled, unlabeled, best_bin(labeled, unlabeled), strict=True):
        n, n_u, best = row.sum(), row_u.sum(), np.inf
        for k in range(1, 9):
            above, above_u = row[:k].sum() / n, row_u[:k].sum() / n_u
            low = above - np.sqrt(np.log(4 / 0.1) / (2 * n))
            bound = (above_u + np.sqrt(np.log(4 / 0.1) / (2 * n_u))) / low if low > 0 else np.inf
            if bound < best:
                best, expected = bound, above_u / above
        assert found == pytest.approx(expected)
