"""Estimators of the transition: every method on every shape, against the truth and plain loops."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.stats import beta
from sklearn.exceptions import ConvergenceWarning

from looselabels import Transition
from looselabels.estimation import transition as estimate
from looselabels.estimation.calibration import Calibration
from looselabels.estimation.transition import (
    METHODS,
    TransitionEstimate,
    bootstrap,
    estimate_transition,
)
from looselabels.exceptions import IdentifiabilityWarning, InconsistentLabelWarning
from looselabels.inference import class_proba_from
from tests.strategies import positive_rows, simplex_rows

NOISE = np.array([[0.8, 0.2], [0.3, 0.7]])
MISSING = np.array([[0.27, 0.03, 0.7], [0.06, 0.24, 0.7]])  # 10 % and 20 % of labels are wrong
POSITIVE = np.array([[0.4, 0.6], [0.0, 1.0]])  # no label names class 1
SEVERAL = np.array([[0.3, 0.0, 0.7], [0.0, 0.6, 0.4], [0.0, 0.0, 1.0]])
COARSE = np.array([[0.7, 0.3, 0.0], [0.2, 0.8, 0.0], [0.0, 0.6, 0.4]])
MORE_LABELS = np.array([[0.7, 0.2, 0.1], [0.1, 0.3, 0.6]])
MORE_CLASSES = np.array([[1.0, 0.0], [0.0, 1.0], [0.5, 0.5]])
SHAPES = {
    "noise": NOISE,
    "missing": MISSING,
    "positive": POSITIVE,
    "several": SEVERAL,
    "coarse": COARSE,
    "more labels": MORE_LABELS,
    "more classes": MORE_CLASSES,
}
LIKELIHOOD = ["calibrated", "em"]  # methods that maximize a likelihood of the given labels


def drawn(rng, proba):
    """Return one column per row, drawn with the probabilities of that row."""
    column = (rng.random(len(proba))[:, None] > np.cumsum(proba, axis=1)).sum(axis=1)
    return column.clip(max=proba.shape[1] - 1)


def gaussians(rng, transition, n_samples=4000, distance=4.0):
    """Return exact p(label | x) of classes around a circle, the labels, and the classes."""
    n_classes = len(transition)
    angle = 2 * np.pi * np.arange(n_classes) / n_classes
    centers = distance / 2 * np.column_stack([np.cos(angle), np.sin(angle)])
    classes = rng.integers(n_classes, size=n_samples)
    X = centers[classes] + rng.normal(size=(n_samples, 2))
    log_density = -((X[:, None] - centers) ** 2).sum(axis=2) / 2
    class_proba = np.exp(log_density - log_density.max(axis=1, keepdims=True))
    return shares(class_proba) @ transition, drawn(rng, transition[classes]), classes


def flat(transition):
    """Return a design in which all labels that a class can have are equally likely."""
    return shares((transition > 0).astype(float))


def shares(mass):
    return mass / mass.sum(axis=1, keepdims=True)


def noisier(transition):
    """Return a design with less informative labels: more missing ones, or more equal ones."""
    is_missing = transition[:, -1] > 0.3
    uninformative = np.eye(transition.shape[1])[-1] if is_missing.all() else flat(transition)
    return 0.5 * transition + 0.5 * uninformative


# --------------------------------------------------------------------------------------- the truth


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", ["noise", "missing", "positive", "several", "more labels"])
def test_the_truth_is_found_from_a_design_with_too_much_noise(rng, method, name):
    truth = SHAPES[name]
    label_proba, labels, _ = gaussians(rng, truth, distance=6)
    found = estimate_transition(label_proba, labels, noisier(truth), method=method)
    assert_allclose(found.transition, truth, atol=0.06)


def test_em_finds_the_truth_although_classes_overlap(rng):
    label_proba, labels, _ = gaussians(rng, NOISE, n_samples=20_000, distance=1.5)
    found = estimate_transition(label_proba, labels, NOISE, method="em", strength=1e-3)
    assert_allclose(found.transition, NOISE, atol=0.04)
    predicted = class_proba_from(label_proba, NOISE).argmax(axis=1)  # a fifth of them is wrong
    counts = np.histogram2d(predicted, labels, bins=[range(3)] * 2)[0]
    assert np.abs(shares(counts) - NOISE).max() > 0.08


def test_calibration_finds_noise_that_the_design_did_not_expect(rng):
    label_proba, labels, _ = gaussians(rng, NOISE, distance=6)
    expected = np.array([[0.98, 0.02], [0.02, 0.98]])
    found = estimate_transition(label_proba, labels, expected).transition
    assert_allclose(found, NOISE, atol=0.04)
    # that design explains p(label | x) exactly: em has nothing to find
    found = estimate_transition(label_proba, labels, expected, method="em").transition
    assert_allclose(found, expected, atol=0.04)


def test_calibration_corrects_a_classifier_that_is_not_confident_enough(rng):
    """Wrong labels are those of the next class, and classes overlap: counts confuse the two."""
    truth = 0.7 * np.eye(3) + 0.3 * np.roll(np.eye(3), 1, axis=1)
    label_proba, labels, _ = gaussians(rng, truth, distance=2.5)
    smooth = np.maximum(label_proba @ np.linalg.inv(truth), 1e-12) ** 0.2
    design = 0.7 * np.eye(3) + 0.1
    error = {
        method: np.abs(
            estimate_transition(shares(smooth) @ truth, labels, design, method=method).transition
            - truth
        ).max()
        for method in ("calibrated", "confident")
    }
    assert error["calibrated"] < 0.09 < error["confident"]


def test_a_calibration_that_lowers_the_objective_is_not_used(monkeypatch, rng):
    label_proba, labels, design, _ = small_problem(rng)
    once = estimate.fit_class_calibration
    seen = []

    def worse_each_time(*problem, **_):
        calibration, value = once(*problem)
        seen.append(value)
        return calibration, value - 10.0 * len(seen)

    monkeypatch.setattr(estimate, "fit_class_calibration", worse_each_time)
    objective = estimate_transition(label_proba, labels, design).objective
    assert len(seen) == 2
    assert (np.diff(objective) >= -1e-9).all()


@pytest.mark.parametrize(
    ("rounds", "used"),
    [
        ([[0.0, 2.0], [2.0, 5.0], [5.0, 5.4]], 3),  # the third gains less than half a nat
        ([[0.0, 2.0], [1.9, 3.0]], 1),  # the second begins below the first: it is not used
    ],
)
def test_rounds_of_calibration_end_if_they_gain_little_or_begin_lower(rounds, used, monkeypatch):
    left = iter(rounds)

    def most_likely(class_proba, label_index, *_):
        return estimate.Found(np.eye(2), next(left))

    monkeypatch.setattr(estimate, "fit_class_calibration", lambda *_, **__: (Calibration(), 0.0))
    monkeypatch.setattr(estimate, "_expected_mass", lambda *_: (np.eye(2), 0.0))
    monkeypatch.setattr(estimate, "_most_likely", most_likely)
    found = estimate_transition(np.eye(2), np.array([0, 1]), NOISE)
    assert found.objective == [value for values in rounds[:used] for value in values]


@pytest.mark.parametrize("method", ["calibrated", "confident"])
def test_the_rate_of_wrong_labels_is_found_from_smoothed_probabilities(rng, method):
    """15 % of 4,000 labels are wrong: twenty seeds are off by at most 0.03."""
    noise = np.full((2, 2), 0.15) + 0.7 * np.eye(2)
    class_proba = rng.dirichlet([0.05, 0.05], 4000)
    blurred = 0.9 * class_proba + 0.1 * rng.dirichlet([1, 1], 4000)
    labels, design = drawn(rng, class_proba @ noise), 0.8 * np.eye(2) + 0.1
    found = estimate_transition(blurred @ noise, labels, design, method=method).transition
    assert_allclose(found, noise, atol=0.035)
    # em and joint find no more noise than a design that has too little
    for weak in ("em", "joint"):
        found = estimate_transition(blurred @ noise, labels, design, method=weak).transition
        assert 0.04 < found[0, 1] < 0.101


def test_labels_of_rows_that_are_not_confident_are_not_counted():
    clear, unclear = np.repeat([[0.9, 0.1], [0.1, 0.9]], 10, axis=0), np.tile([0.55, 0.45], (10, 1))
    label_proba, labels = np.vstack([clear, unclear]), np.repeat([0, 1, 1], 10)
    design = np.eye(2) * 0.98 + 0.01
    found = estimate_transition(label_proba, labels, design, method="confident", strength=0)
    assert_allclose(found.label_mass, [[10, 0], [0, 10]])


def test_confident_takes_no_side_if_x_says_nothing():
    label_proba, labels = np.full((8, 2), 0.5), np.repeat([0, 1], [6, 2])
    design = np.array([[0.9, 0.1], [0.1, 0.9]])
    found = estimate_transition(label_proba, labels, design, method="confident", strength=0)
    assert_allclose(found.label_mass, [[3, 1], [3, 1]])


def test_confident_counts_all_rows_if_x_determines_the_class(rng):
    labels, classes = rng.integers(3, size=50), rng.integers(2, size=50)
    design = np.array([[0.5, 0.25, 0.25], [0.2, 0.4, 0.4]])
    found = estimate_transition(design[classes], labels, design, method="confident", strength=3.0)
    counts = 3 * design
    for label, k in zip(labels, classes, strict=True):
        counts[k, label] += 1
    assert_allclose(found.label_mass, counts)
    assert_allclose(found.transition, shares(counts))


# --------------------------------------------------------------------------------------- promises


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.filterwarnings("ignore::looselabels.exceptions.IdentifiabilityWarning")
def test_zeros_stay_zero_and_rows_sum_to_one(rng, method, name):
    truth = SHAPES[name]
    label_proba, _, _ = gaussians(rng, truth, n_samples=300, distance=2)
    labels = rng.integers(truth.shape[1], size=300)  # some are impossible for their class
    found = estimate_transition(label_proba, labels, flat(truth), method=method)
    assert found.transition.shape == truth.shape
    assert (found.transition[truth == 0] == 0).all()
    assert (found.label_mass[truth == 0] == 0).all()
    assert_allclose(found.transition.sum(axis=1), 1)
    low, high = found.interval()
    assert (low <= found.transition).all()
    assert (found.transition <= high).all()


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("truth", [NOISE, SEVERAL])
def test_a_weight_is_a_number_of_repetitions(rng, method, truth):
    label_proba, labels, _ = gaussians(rng, truth, n_samples=150, distance=3)
    weight = rng.integers(0, 4, size=150)
    rows = np.repeat(np.arange(150), weight)
    design = noisier(truth)
    weighted = estimate_transition(
        label_proba, labels, design, method=method, sample_weight=weight
    ).label_mass
    repeated = estimate_transition(label_proba[rows], labels[rows], design, method=method)
    assert_allclose(weighted, repeated.label_mass, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("method", METHODS)
def test_a_strong_design_is_kept(rng, method):
    label_proba, labels, _ = gaussians(rng, NOISE, n_samples=200)
    design = np.array([[0.9, 0.1], [0.4, 0.6]])
    found = estimate_transition(label_proba, labels, design, method=method, strength=1e7)
    assert_allclose(found.transition, design, atol=1e-4)


def test_a_class_without_rows_and_pseudocounts_keeps_its_row_of_the_design():
    label_proba, labels = np.tile([0.9, 0.1], (5, 1)), np.zeros(5, int)
    design = np.array([[0.9, 0.1], [0.3, 0.7]])
    found = estimate_transition(label_proba, labels, design, method="confident", strength=0)
    assert_allclose(found.transition[1], design[1])


@pytest.mark.parametrize("method", LIKELIHOOD)
def test_a_label_counts_although_x_rules_out_its_class(method):
    label_proba, labels = np.eye(3)[[0] * 6 + [2] * 4], np.repeat([0, 2], 5)
    design = np.array([[0.9, 0.1, 0.0], [0.0, 0.2, 0.8]])
    assert class_proba_from(label_proba, design)[5, 1] == 0
    found = estimate_transition(label_proba, labels, design, method=method)
    assert_allclose(found.label_mass.sum(axis=0), [5 + 0.9, 0.3, 5 + 0.8])
    assert np.isfinite(found.objective).all()


def test_calibration_counts_labels_that_no_confident_row_has():
    clear, unclear = np.repeat([[0.9, 0.1, 0], [0, 0.1, 0.9]], 20, axis=0), np.full((10, 3), 1 / 3)
    labels = np.repeat([0, 2, 1], [20, 20, 10])
    design = np.array([[0.8, 0.1, 0.1], [0.1, 0.1, 0.8]])
    found = estimate_transition(np.vstack([clear, unclear]), labels, design, strength=0)
    assert_allclose(found.label_mass.sum(axis=0), [20, 10, 20])


def test_a_transition_is_a_design():
    design = Transition.identity(["cat", "dog"]).with_noise(0.1)
    found = estimate_transition(np.eye(2), np.array([0, 1]), design, method="confident")
    assert_allclose(found.transition, (np.eye(2) + design.proba) / 2)


# ------------------------------------------------------------------------ objectives, second routes


@st.composite
def problems(draw):
    n_classes, n_labels = draw(st.integers(1, 3)), draw(st.integers(2, 4))
    design = draw(simplex_rows(n_classes, n_labels))
    design = 0.9 * design + 0.1 * draw(positive_rows(1, n_labels))
    label_proba = draw(simplex_rows(12, n_labels))
    labels = draw(st.lists(st.integers(0, n_labels - 1), min_size=12, max_size=12))
    strength = draw(st.sampled_from([0.1, 1.0, 10.0]))
    return label_proba, np.array(labels), design, strength


@pytest.mark.parametrize("method", LIKELIHOOD)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@settings(max_examples=50)
@given(problem=problems())
def test_the_objective_never_decreases(method, problem):
    label_proba, labels, design, strength = problem
    found = estimate_transition(label_proba, labels, design, method=method, strength=strength)
    steps = np.diff(found.objective)
    assert (steps >= -1e-9 * (1 + abs(found.objective[-1]))).all()


def log_posterior(class_proba, labels, transition, pseudocounts):
    total = 0.0
    for row, label in zip(class_proba, labels, strict=True):
        total += np.log(sum(row[k] * transition[k, label] for k in range(len(transition))))
    for k, label in np.ndindex(*transition.shape):
        if pseudocounts[k, label]:
            total += pseudocounts[k, label] * np.log(transition[k, label])
    return total


def plain_em(class_proba, labels, pseudocounts, n_steps):
    """Return the transition of EM by loops."""
    mass = np.array(pseudocounts)
    for _ in range(n_steps):
        transition, mass = shares(mass), np.array(pseudocounts)
        for row, label in zip(class_proba, labels, strict=True):
            joint = row * transition[:, label]
            mass[:, label] += joint / joint.sum()
    return shares(mass)


def small_problem(rng):
    label_proba, labels, _ = gaussians(rng, MORE_LABELS, n_samples=60, distance=3)
    design = noisier(MORE_LABELS)
    class_proba = np.maximum(class_proba_from(label_proba, design), 1e-6)
    return label_proba, labels, design, shares(class_proba)


def test_em_agrees_with_plain_loops(rng):
    label_proba, labels, design, class_proba = small_problem(rng)
    found = estimate_transition(label_proba, labels, design, method="em", strength=2.0)
    plain = plain_em(class_proba, labels, 2 * design, 500)
    assert_allclose(found.transition, plain, atol=2e-3)
    value = log_posterior(class_proba, labels, found.transition, 2 * design)
    assert found.objective[-1] == pytest.approx(value, abs=1e-4)


def test_no_transition_beats_that_of_em_by_more_than_its_gap(rng):
    label_proba, labels, design, class_proba = small_problem(rng)
    found = estimate_transition(label_proba, labels, design, method="em", strength=2.0)
    assert 0 <= found.gap <= 1e-7
    best = log_posterior(class_proba, labels, found.transition, 2 * design)
    slack = found.gap * (60 + 2 * 2)
    for _ in range(200):
        step = rng.choice([1e-3, 0.1, 1.0])
        other = (1 - step) * found.transition + step * rng.dirichlet(np.ones(3), 2)
        assert log_posterior(class_proba, labels, other, 2 * design) <= best + slack


def test_joint_does_not_use_the_labels(rng):
    label_proba, labels, _ = gaussians(rng, NOISE, n_samples=200)
    ours, others = (
        estimate_transition(label_proba, index, NOISE, method="joint").transition
        for index in (labels, 1 - labels)
    )
    assert_allclose(ours, others)


# ---------------------------------------------------------------------------------------- intervals


def test_the_interval_is_that_of_beta_distributions():
    mass = np.array([[30.0, 10.0, 0.0], [0.0, 5.0, 0.0]])
    found = TransitionEstimate(mass / mass.sum(axis=1, keepdims=True), mass, [], None)
    low, high = found.interval(0.8)
    assert low[0, 0] == pytest.approx(beta(30, 10).ppf(0.1))
    assert high[0, 1] == pytest.approx(beta(10, 30).ppf(0.9))
    assert low[1].tolist() == high[1].tolist() == [0, 1, 0]
    assert high[0, 2] == 0


def test_the_interval_holds_the_estimate_even_of_less_than_one_sample():
    mass = np.array([[0.001, 50.0]])
    low, high = TransitionEstimate(mass / mass.sum(), mass, [], None).interval()
    assert low[0, 0] < mass[0, 0] / mass.sum() <= high[0, 0]


def coverage(interval, rng, n_repeats):
    inside = []
    for _ in range(n_repeats):
        label_proba, labels, _ = gaussians(rng, NOISE, n_samples=400, distance=6)
        low, high = interval(label_proba, labels)
        inside.append((low[:, 0] <= NOISE[:, 0]) & (NOISE[:, 0] <= high[:, 0]))
    return np.mean(inside)


@pytest.mark.slow
@pytest.mark.parametrize("method", [*LIKELIHOOD, "confident"])
def test_the_interval_covers_the_truth_if_x_determines_the_class(method):
    def interval(label_proba, labels):
        return estimate_transition(label_proba, labels, noisier(NOISE), method=method).interval()

    assert 0.85 < coverage(interval, np.random.default_rng(0), 200) < 0.95


@pytest.mark.slow
def test_the_bootstrap_covers_the_truth():
    def interval(label_proba, labels):
        return bootstrap(label_proba, labels, noisier(NOISE), method="em", n_draws=100)

    assert 0.82 < coverage(interval, np.random.default_rng(0), 100) < 0.97


def test_the_bootstrap_is_as_wide_as_the_interval_if_x_determines_the_class(rng):
    label_proba, labels, _ = gaussians(rng, NOISE, n_samples=500, distance=8)
    low, high = bootstrap(label_proba, labels, noisier(NOISE), method="confident", n_draws=200)
    found = estimate_transition(label_proba, labels, noisier(NOISE), method="confident")
    assert_allclose(high - low, np.subtract(*found.interval()[::-1]), rtol=0.25)
    assert (low < found.transition).all()
    assert (found.transition < high).all()


def test_the_bootstrap_is_wider_if_x_does_not_determine_the_class(rng):
    label_proba, labels, _ = gaussians(rng, NOISE, n_samples=500, distance=1.5)
    low, high = bootstrap(label_proba, labels, NOISE, method="em", n_draws=30)
    found = estimate_transition(label_proba, labels, NOISE, method="em")
    assert (high - low).mean() > 1.1 * np.subtract(*found.interval()[::-1]).mean()


def test_the_bootstrap_contains_the_estimate_however_few_draws_there_are(rng):
    label_proba = rng.dirichlet([1, 1], 60)
    index = (rng.random(60) < label_proba[:, 1]).astype(int)
    design = np.array([[0.8, 0.2], [0.2, 0.8]])
    low, high = bootstrap(label_proba, index, design, n_draws=1, random_state=0)
    found = estimate_transition(label_proba, index, design).transition
    assert (low <= found).all()
    assert (found <= high).all()
    assert (low < high).any()


def test_the_bootstrap_reads_what_the_estimate_reads(rng):
    """Columns of a table are matched by name, and rows of half precision are normalized."""
    pandas = pytest.importorskip("pandas")
    label_proba, labels, _ = gaussians(rng, NOISE, n_samples=100)
    design = Transition(noisier(NOISE), ["a", "b"], ["a", "b"])
    expected = bootstrap(label_proba, labels, design, method="em", n_draws=5)
    table = pandas.DataFrame(label_proba, columns=["a", "b"])[["b", "a"]]
    assert_allclose(bootstrap(table, labels, design, method="em", n_draws=5), expected)
    half = label_proba.astype(np.float16)
    found = bootstrap(half, labels, design, method="em", n_draws=5)
    assert_allclose(found, expected, atol=0.01)


def test_rows_of_weight_zero_are_not_drawn(rng):
    label_proba, labels, _ = gaussians(rng, NOISE, n_samples=100)
    wrong = np.where(np.arange(100) < 50, labels, 1 - labels)
    weight = (np.arange(100) < 50).astype(float)
    kept, spoiled = (
        bootstrap(label_proba, index, NOISE, method="confident", sample_weight=weight)
        for index in (labels, wrong)
    )
    assert_allclose(kept, spoiled)


# ---------------------------------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"method": "confidant"}, "it is 'confidant'. Did you mean 'confident'"),
        (
            {"method": "variational"},
            "method must be one of 'calibrated', 'em', 'joint', 'confident'",
        ),
        ({"method": None}, "it is None"),
        ({"strength": np.inf}, "strength must be a finite number.*there is nothing to estimate"),
        ({"strength": -1}, "strength must be a finite number, 0 or more; it is -1"),
        ({"strength": "x"}, "strength must be a finite number, 0 or more; it is 'x'"),
        ({"design": [[0.5, 0.6], [0.5, 0.5]]}, "Each row of design must sum to 1; row 0"),
        ({"design": [[0.2, 0.3, 0.5]]}, "label_proba has 2 columns, but the design has shape"),
        ({"label_proba": [[0.5, 0.6]] * 3}, "Each row of label_proba must sum to 1"),
        ({"label_index": np.array([0, 1, 2])}, "between 0 and 1; row 2 is 2"),
        ({"sample_weight": [1, 1]}, "sample_weight has shape"),
    ],
)
def test_the_error_names_the_bad_input(change, message):
    arguments = {
        "label_proba": np.full((3, 2), 0.5),
        "label_index": np.array([0, 1, 1]),
        "design": NOISE,
    }
    with pytest.raises(ValueError, match=message):
        estimate_transition(**arguments | change)


def test_some_draws_are_needed():
    with pytest.raises(ValueError, match="n_draws must be a whole number, 1 or more; it is 0"):
        bootstrap(np.eye(2), np.array([0, 1]), NOISE, n_draws=0)


def test_impossible_labels_are_ignored_with_a_warning():
    label_proba, labels = np.eye(3)[[0, 0, 1, 2]], np.array([0, 0, 1, 2])
    design = np.array([[0.9, 0.1, 0.0], [0.1, 0.9, 0.0]])
    with pytest.warns(InconsistentLabelWarning, match=r"1 rows have a label .* \(label 2\)"):
        found = estimate_transition(label_proba, labels, design, method="confident", strength=0)
    assert_allclose(found.label_mass, [[2, 0, 0], [0, 1, 0]])


def test_an_impossible_label_of_a_row_that_does_not_count_is_no_reason_for_a_warning():
    label_proba, labels, weight = np.eye(3), np.arange(3), np.array([1.0, 1.0, 0.0])
    design = np.array([[0.9, 0.1, 0.0], [0.1, 0.9, 0.0]])
    found = estimate_transition(
        label_proba, labels, design, method="confident", strength=0, sample_weight=weight
    )
    assert_allclose(found.label_mass, [[1, 0, 0], [0, 1, 0]])


@pytest.mark.parametrize("method", LIKELIHOOD)
def test_stopping_early_is_a_warning(monkeypatch, rng, method):
    monkeypatch.setattr(estimate, "MAX_ITER", 2)
    monkeypatch.setattr(estimate, "MAX_ROUNDS", 1)
    label_proba, labels, design, _ = small_problem(rng)
    with pytest.warns(ConvergenceWarning, match="stopped before it converged"):
        estimate_transition(label_proba, labels, design, method=method)


def test_only_impossible_labels_are_an_error():
    design = np.array([[0.9, 0.1, 0.0], [0.1, 0.9, 0.0]])
    with (
        pytest.warns(InconsistentLabelWarning, match="2 rows have a label"),
        pytest.raises(ValueError, match="No row has a positive weight and a label"),
    ):
        estimate_transition(np.eye(3)[[0, 1]], np.array([2, 2]), design)


def test_a_bad_level_is_an_error():
    with pytest.raises(ValueError, match="level must be between 0 and 1; it is 90"):
        bootstrap(np.eye(2), np.array([0, 1]), NOISE, level=90)


def test_joint_warns_if_classes_cannot_be_distinguished(rng):
    label_proba, labels, _ = gaussians(rng, MORE_CLASSES, n_samples=50)
    with pytest.warns(IdentifiabilityWarning):
        estimate_transition(label_proba, labels, MORE_CLASSES, method="joint")


def test_a_class_whose_labels_do_not_occur_keeps_its_row_of_the_design():
    label_proba = np.column_stack([np.tile([0.9, 0.1], 20), np.tile([0.1, 0.9], 20), np.zeros(40)])
    found = estimate_transition(label_proba, np.arange(40) % 2, np.eye(3), method="confident")
    assert_allclose(found.transition, np.eye(3))


def test_a_number_has_an_interval_even_if_little_speaks_for_the_others():
    found = TransitionEstimate(np.array([[6 / 7, 1 / 7]]), np.array([[3.0, 0.5]]), [], None)
    low, high = found.interval()
    assert_allclose(low[0, 0], beta(3.0, 0.5).ppf(0.05))
    assert_allclose(high[0, 0], beta(3.0, 0.5).ppf(0.95))


def test_rounds_of_calibration_that_were_too_few_are_reported(rng, monkeypatch):
    monkeypatch.setattr(estimate, "MAX_ROUNDS", 1)
    class_proba = rng.dirichlet(np.ones(2), 300)
    label_index = (rng.random(300) > (class_proba @ NOISE)[:, 0]).astype(int)
    design = np.array([[0.9, 0.1], [0.1, 0.9]])
    with pytest.warns(ConvergenceWarning, match="the last round made the labels more likely"):
        estimate_transition(class_proba @ NOISE, label_index, design, method="calibrated")
