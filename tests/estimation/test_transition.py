"""How labels arise, estimated: every method on every shape, against the truth and plain loops."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.special import psi
from scipy.stats import beta
from sklearn.exceptions import ConvergenceWarning

from looselabels import Transition
from looselabels.estimation import transition as estimate
from looselabels.estimation.calibration import weighted_transition
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
MISSING = np.array([[0.27, 0.03, 0.7], [0.06, 0.24, 0.7]])  # one label in ten, in five is wrong
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
LIKELY = ["calibrated", "em", "variational"]  # methods with a likelihood of the labels given


def drawn(rng, proba):
    """Return a column a row, drawn from that row."""
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
    """Return the design that knows of a transition which labels a class may have, no more."""
    return shares((transition > 0).astype(float))


def shares(mass):
    return mass / mass.sum(axis=1, keepdims=True)


def noisier(transition):
    """Return a design by which labels tell less: more of the last one, or all more alike."""
    last = transition[:, -1] > 0.3
    tells_less = np.eye(transition.shape[1])[-1] if last.all() else flat(transition)
    return 0.5 * transition + 0.5 * tells_less


# --------------------------------------------------------------------------------------- the truth


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", ["noise", "missing", "positive", "several", "more labels"])
def test_the_truth_is_found_from_a_design_with_too_much_noise(rng, method, name):
    truth = SHAPES[name]
    label_proba, labels, _ = gaussians(rng, truth, distance=6)
    found = estimate_transition(label_proba, labels, noisier(truth), method=method)
    assert_allclose(found.transition, truth, atol=0.06)


@pytest.mark.parametrize("method", ["em", "variational"])
def test_with_the_right_classes_soft_ones_do_not_blur_the_transition(rng, method):
    label_proba, labels, _ = gaussians(rng, NOISE, n_samples=20_000, distance=1.5)
    found = estimate_transition(label_proba, labels, NOISE, method=method, strength=1e-3)
    assert_allclose(found.transition, NOISE, atol=0.04)
    literal = estimate_transition(label_proba, labels, NOISE, method="argmax").transition
    assert np.abs(literal - NOISE).max() > 0.08


def test_calibration_finds_noise_that_the_design_did_not_expect(rng):
    label_proba, labels, _ = gaussians(rng, NOISE, distance=6)
    expected = np.array([[0.98, 0.02], [0.02, 0.98]])
    found = estimate_transition(label_proba, labels, expected).transition
    assert_allclose(found, NOISE, atol=0.04)
    # that design explains p(label | x) exactly, and leaves em nothing to find
    found = estimate_transition(label_proba, labels, expected, method="em").transition
    assert_allclose(found, expected, atol=0.04)


def test_calibration_makes_up_for_a_classifier_that_is_far_too_unsure(rng):
    """Labels pass for the next class, and classes overlap: counts take one for the other."""
    truth = 0.7 * np.eye(3) + 0.3 * np.roll(np.eye(3), 1, axis=1)
    label_proba, labels, _ = gaussians(rng, truth, distance=2.5)
    unsure = np.maximum(label_proba @ np.linalg.inv(truth), 1e-12) ** 0.2
    design = 0.7 * np.eye(3) + 0.1
    error = {
        method: np.abs(
            estimate_transition(shares(unsure) @ truth, labels, design, method=method).transition
            - truth
        ).max()
        for method in ("calibrated", "confident")
    }
    assert error["calibrated"] < 0.09 < error["confident"]


def test_a_calibration_that_loses_is_not_taken(monkeypatch, rng):
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


def test_of_classes_that_are_sure_argmax_counts(rng):
    labels, classes = rng.integers(3, size=50), rng.integers(2, size=50)
    design = np.array([[0.5, 0.25, 0.25], [0.2, 0.4, 0.4]])
    found = estimate_transition(design[classes], labels, design, method="argmax", strength=3.0)
    counts = 3 * design
    for label, k in zip(labels, classes, strict=True):
        counts[k, label] += 1
    assert_allclose(found.label_mass, counts)
    assert_allclose(found.transition, shares(counts))


def test_where_x_says_nothing_argmax_takes_no_side():
    label_proba, labels = np.full((8, 2), 0.5), np.repeat([0, 1], [6, 2])
    design = np.array([[0.9, 0.1], [0.1, 0.9]])
    found = estimate_transition(label_proba, labels, design, method="argmax", strength=0)
    assert_allclose(found.label_mass, [[3, 1], [3, 1]])


def test_anchors_are_exact_where_there_are_some(rng):
    class_proba = np.vstack([np.repeat(np.eye(3), 20, axis=0), rng.dirichlet(np.ones(3), 140)])
    label_proba, labels = class_proba @ COARSE, np.ones(200, int)
    found = estimate_transition(label_proba, labels, noisier(COARSE), method="anchors", strength=0)
    assert_allclose(found.transition, COARSE, atol=1e-9)


def test_dual_repairs_what_label_proba_says_too_firmly(rng):
    label_proba, labels, _ = gaussians(rng, NOISE)
    too_firm = shares(label_proba**3)
    error = {
        method: np.abs(
            estimate_transition(too_firm, labels, np.eye(2) * 0.4 + 0.3, method=method).transition
            - NOISE
        ).max()
        for method in ("anchors", "dual")
    }
    assert error["dual"] < 0.05 < error["anchors"]


def test_labels_of_the_unsure_are_not_counted_by_confident():
    sure, unsure = np.repeat([[0.9, 0.1], [0.1, 0.9]], 10, axis=0), np.tile([0.55, 0.45], (10, 1))
    labels = np.repeat([0, 1, 1], 10)
    design = np.eye(2) * 0.98 + 0.01
    mass = {
        method: estimate_transition(
            np.vstack([sure, unsure]), labels, design, method=method, strength=0
        ).label_mass
        for method in ("argmax", "confident")
    }
    assert_allclose(mass["confident"], [[10, 0], [0, 10]])
    assert_allclose(mass["argmax"], [[10, 10], [0, 10]])


# ------------------------------------------------------------------------------------- the promises


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
def test_the_design_decides_where_it_is_strong(rng, method):
    label_proba, labels, _ = gaussians(rng, NOISE, n_samples=200)
    design = np.array([[0.9, 0.1], [0.4, 0.6]])
    found = estimate_transition(label_proba, labels, design, method=method, strength=1e7)
    assert_allclose(found.transition, design, atol=1e-4)


@pytest.mark.parametrize("method", ["argmax", "confident"])
def test_a_class_without_samples_and_pseudocounts_keeps_its_row(method):
    label_proba, labels = np.tile([0.9, 0.1], (5, 1)), np.zeros(5, int)
    design = np.array([[0.9, 0.1], [0.3, 0.7]])
    found = estimate_transition(label_proba, labels, design, method=method, strength=0)
    assert_allclose(found.transition[1], design[1])


@pytest.mark.parametrize("method", LIKELY)
def test_a_label_is_believed_where_x_rules_out_its_class(method):
    label_proba, labels = np.eye(3)[[0] * 6 + [2] * 4], np.repeat([0, 2], 5)
    design = np.array([[0.9, 0.1, 0.0], [0.0, 0.2, 0.8]])
    assert class_proba_from(label_proba, design)[5, 1] == 0
    found = estimate_transition(label_proba, labels, design, method=method)
    assert_allclose(found.label_mass.sum(axis=0), [5 + 0.9, 0.3, 5 + 0.8])
    assert np.isfinite(found.objective).all()


def test_calibration_counts_labels_that_no_sure_sample_has():
    sure, unsure = np.repeat([[0.9, 0.1, 0], [0, 0.1, 0.9]], 20, axis=0), np.full((10, 3), 1 / 3)
    labels = np.repeat([0, 2, 1], [20, 20, 10])
    design = np.array([[0.8, 0.1, 0.1], [0.1, 0.1, 0.8]])
    found = estimate_transition(np.vstack([sure, unsure]), labels, design, strength=0)
    assert_allclose(found.label_mass.sum(axis=0), [20, 10, 20])


def test_a_transition_is_a_design():
    design = Transition.identity(["cat", "dog"]).with_noise(0.1)
    found = estimate_transition(np.eye(2), np.array([0, 1]), design, method="argmax")
    assert_allclose(found.transition, (np.eye(2) + design.proba) / 2)


# --------------------------------------------------------------------------------- worlds of labels


@pytest.mark.parametrize("method", METHODS)
def test_the_real_transition_is_found_in_the_world_of_a_weighted_classifier(rng, method):
    weights = np.array([3.0, 1.0, 0.5])
    label_proba, labels, _ = gaussians(rng, MISSING, distance=6)
    label_proba = shares(label_proba * weights)
    design = noisier(MISSING)
    found = estimate_transition(label_proba, labels, design, method=method, label_weights=weights)
    assert_allclose(found.transition, MISSING, atol=0.05)


@pytest.mark.parametrize("method", METHODS)
def test_a_label_without_weight_keeps_what_the_design_says_of_it(rng, method):
    label_proba, labels, _ = gaussians(rng, MISSING, distance=6)
    design = np.array([[0.24, 0.06, 0.7], [0.06, 0.24, 0.7]])
    found = estimate_transition(
        label_proba, labels, design, method=method, label_weights=[1.0, 1.0, 0.0]
    )
    assert_allclose(found.transition[:, 2], 0.7)
    among = labels < 2
    inner = estimate_transition(
        label_proba[among][:, :2] / 0.3, labels[among], design[:, :2] / 0.3, method=method,
        strength=0.3,
    )  # fmt: skip
    assert_allclose(found.transition[:, :2] / 0.3, inner.transition, atol=2e-3)


def test_only_the_ratio_of_label_weights_matters(rng):
    label_proba, labels, _ = gaussians(rng, NOISE, n_samples=100, distance=3)
    once, tenfold = (
        estimate_transition(
            label_proba, labels, NOISE, method="em", label_weights=weights, strength=50.0
        ).label_mass
        for weights in ([1.0, 2.0], [10.0, 20.0])
    )
    assert_allclose(once, tenfold, rtol=1e-3)


def test_a_world_is_a_world_of_counts(rng):
    """Counts do not depend on the world, if it leaves each sample its class."""
    weights = np.array([2.0, 1.0, 0.2])
    _, labels, classes = gaussians(rng, MISSING, n_samples=500)
    inner = weighted_transition(MISSING, weights)
    found = estimate_transition(
        inner[classes], labels, MISSING, method="argmax", label_weights=weights, strength=2.0
    )
    there = estimate_transition(MISSING[classes], labels, MISSING, method="argmax", strength=2.0)
    assert_allclose(found.label_mass, there.label_mass)


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


@pytest.mark.parametrize("method", LIKELY)
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


def expected_logs(mass):
    return np.exp(psi(mass) - psi(mass.sum(axis=1, keepdims=True)))


def plain_em(class_proba, labels, pseudocounts, factors, n_steps):
    """Return the mass of EM by loops; `factors` says what a mass means for the next step."""
    mass = np.array(pseudocounts)
    for _ in range(n_steps):
        factor, mass = factors(mass), np.array(pseudocounts)
        for row, label in zip(class_proba, labels, strict=True):
            joint = row * factor[:, label]
            mass[:, label] += joint / joint.sum()
    return mass


def small_problem(rng):
    label_proba, labels, _ = gaussians(rng, MORE_LABELS, n_samples=60, distance=3)
    design = noisier(MORE_LABELS)
    class_proba = np.maximum(class_proba_from(label_proba, design), 1e-6)
    return label_proba, labels, design, shares(class_proba)


def test_em_is_em(rng):
    label_proba, labels, design, class_proba = small_problem(rng)
    found = estimate_transition(label_proba, labels, design, method="em", strength=2.0)
    mass = plain_em(class_proba, labels, 2 * design, shares, 500)
    assert_allclose(found.transition, shares(mass), atol=2e-3)
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


def test_variational_is_em_with_expected_logs(rng):
    label_proba, labels, design, class_proba = small_problem(rng)
    mass = plain_em(class_proba, labels, 2 * design, expected_logs, 500)
    found = estimate_transition(label_proba, labels, design, method="variational", strength=2.0)
    assert_allclose(found.label_mass, mass, atol=0.05)


def test_the_bound_is_the_evidence_where_the_classes_are_sure(rng):
    """One class: p(labels) is Dirichlet-multinomial, and its logarithm a product of chances."""
    labels, design = rng.integers(3, size=20), np.array([[0.5, 0.3, 0.2]])
    found = estimate_transition(
        np.tile(design, (20, 1)), labels, design, method="variational", strength=4.0
    )
    log_evidence, counts = 0.0, 4.0 * design[0]
    for label in labels:
        log_evidence += np.log(counts[label] / counts.sum())
        counts[label] += 1
    assert found.objective[-1] == pytest.approx(log_evidence)
    assert_allclose(found.label_mass[0], counts)


def test_joint_does_not_look_at_the_labels(rng):
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
@pytest.mark.parametrize("method", [*LIKELY, "argmax", "confident"])
def test_the_interval_covers_where_x_tells_the_class(method):
    def interval(label_proba, labels):
        return estimate_transition(label_proba, labels, noisier(NOISE), method=method).interval()

    assert 0.85 < coverage(interval, np.random.default_rng(0), 200) < 0.95


@pytest.mark.slow
def test_the_bootstrap_covers():
    def interval(label_proba, labels):
        return bootstrap(label_proba, labels, noisier(NOISE), method="em", n_draws=100)

    assert 0.82 < coverage(interval, np.random.default_rng(0), 100) < 0.97


def test_the_bootstrap_is_as_wide_as_the_interval_where_x_tells_the_class(rng):
    label_proba, labels, _ = gaussians(rng, NOISE, n_samples=500, distance=8)
    low, high = bootstrap(label_proba, labels, noisier(NOISE), method="argmax", n_draws=200)
    found = estimate_transition(label_proba, labels, noisier(NOISE), method="argmax")
    assert_allclose(high - low, np.subtract(*found.interval()[::-1]), rtol=0.25)
    assert (low < found.transition).all()
    assert (found.transition < high).all()


def test_the_bootstrap_is_wider_where_x_does_not(rng):
    label_proba, labels, _ = gaussians(rng, NOISE, n_samples=500, distance=1.5)
    low, high = bootstrap(label_proba, labels, NOISE, method="em", n_draws=30)
    found = estimate_transition(label_proba, labels, NOISE, method="em")
    assert (high - low).mean() > 1.1 * np.subtract(*found.interval()[::-1]).mean()


def test_samples_without_weight_are_not_drawn(rng):
    label_proba, labels, _ = gaussians(rng, NOISE, n_samples=100)
    wrong = np.where(np.arange(100) < 50, labels, 1 - labels)
    weight = (np.arange(100) < 50).astype(float)
    kept, spoiled = (
        bootstrap(label_proba, index, NOISE, method="argmax", sample_weight=weight)
        for index in (labels, wrong)
    )
    assert_allclose(kept, spoiled)


# ---------------------------------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"method": "confidant"}, "it is 'confidant'. Did you mean 'confident'"),
        ({"method": "nothing like it"}, "method must be one of 'calibrated', 'em'"),
        ({"method": None}, "it is None"),
        ({"strength": np.inf}, "strength must be a finite number.*there is nothing to estimate"),
        ({"strength": -1}, "strength must be a finite number, 0 or more; it is -1"),
        ({"method": "variational", "strength": 0}, "variational needs a prior"),
        ({"design": [[0.5, 0.6], [0.5, 0.5]]}, "Each row of design must sum to 1; row 0"),
        ({"design": [[0.2, 0.3, 0.5]]}, "label_proba has 2 columns, but the design has shape"),
        ({"label_proba": [[0.5, 0.6]] * 3}, "Each row of label_proba must sum to 1"),
        ({"label_index": np.array([0, 1, 2])}, "between 0 and 1; row 2 is 2"),
        ({"sample_weight": [1, 1]}, "sample_weight has shape"),
        ({"label_weights": [1, 1, 1]}, "label_weights has shape"),
        ({"label_weights": [1, -1]}, "label_weights must hold numbers that are finite"),
        ({"sample_weight": [1, 0, 0], "label_weights": [0, 1]}, "No sample is left"),
    ],
)
def test_bad_input_is_named(change, message):
    arguments = {
        "label_proba": np.full((3, 2), 0.5),
        "label_index": np.array([0, 1, 1]),
        "design": NOISE,
    }
    with pytest.raises(ValueError, match=message):
        estimate_transition(**arguments | change)


@pytest.mark.parametrize("level", [0, 1, 90])
def test_a_level_is_a_probability(level):
    with pytest.raises(ValueError, match="level must be between 0 and 1"):
        bootstrap(np.eye(2), np.array([0, 1]), NOISE, level=level)


def test_some_draws_are_needed():
    with pytest.raises(ValueError, match="n_draws must be 1 or more; it is 0"):
        bootstrap(np.eye(2), np.array([0, 1]), NOISE, n_draws=0)


def test_labels_that_no_class_may_have_are_left_out_with_a_word():
    label_proba, labels = np.eye(3)[[0, 0, 1, 2]], np.array([0, 0, 1, 2])
    design = np.array([[0.9, 0.1, 0.0], [0.1, 0.9, 0.0]])
    with pytest.warns(InconsistentLabelWarning, match=r"1 samples have a label .* \(label 2\)"):
        found = estimate_transition(label_proba, labels, design, method="argmax", strength=0)
    assert_allclose(found.label_mass, [[2, 0, 0], [0, 1, 0]])


@pytest.mark.parametrize("method", LIKELY)
def test_stopping_early_is_said(monkeypatch, rng, method):
    monkeypatch.setattr(estimate, "MAX_ITER", 2)
    monkeypatch.setattr(estimate, "MAX_ROUNDS", 1)
    label_proba, labels, design, _ = small_problem(rng)
    with pytest.warns(ConvergenceWarning, match="stopped before it converged"):
        estimate_transition(label_proba, labels, design, method=method)


def test_joint_says_what_the_labels_leave_open(rng):
    label_proba, labels, _ = gaussians(rng, MORE_CLASSES, n_samples=50)
    with pytest.warns(IdentifiabilityWarning):
        estimate_transition(label_proba, labels, MORE_CLASSES, method="joint")


def test_a_class_whose_labels_nobody_has_keeps_its_row_of_the_design():
    label_proba = np.column_stack([np.tile([0.9, 0.1], 20), np.tile([0.1, 0.9], 20), np.zeros(40)])
    found = estimate_transition(label_proba, np.arange(40) % 2, np.eye(3), method="confident")
    assert_allclose(found.transition, np.eye(3))
