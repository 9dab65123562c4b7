"""The four tasks: exact, certified, the same in every array library, and firm with bad input."""

import os
import secrets
import warnings
from importlib.util import find_spec

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import xlogy
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from looselabels import _blocks, _climb, _rows, inference
from looselabels._validation import (
    as_numpy,
)
from looselabels.exceptions import IdentifiabilityWarning, InconsistentLabelWarning
from looselabels.inference import (
    condition_on_label,
    infer,
    objective,
    transition_from_labels,
)
from tests import reference
from tests.strategies import joint_problems, positive_rows, simplex_rows

PU = np.array([[0.4, 0.6], [0.0, 1.0]])
SEMI = np.array([[0.1, 0.0, 0.9], [0.0, 0.1, 0.9]])
quiet = pytest.mark.filterwarnings("ignore::looselabels.exceptions.IdentifiabilityWarning")


@pytest.fixture(params=["compiled", "batched"])
def solver(request, monkeypatch):
    """Run a test with numba's row solver and without it."""
    if request.param == "batched":
        monkeypatch.setattr(_blocks, "_row_solver", lambda labels: _rows)
    else:
        pytest.importorskip("numba", reason="the extra `speed` is not installed")


def simulate(rng, n_rows=200, n_classes=4, n_labels=5, zeros=0.2):
    """Draw label_proba with exact zeros, which a forest has, and a transition."""
    label_proba = rng.dirichlet(np.ones(n_labels), n_rows)
    label_proba[rng.random(label_proba.shape) < zeros] = 0
    label_proba[:, 0] += 1e-3
    label_proba /= label_proba.sum(axis=1, keepdims=True)
    return label_proba, rng.dirichlet(np.ones(n_labels), n_classes)


# ------------------------------------------------------------------------- task 3: exact, certified


@quiet
@given(label_proba=simplex_rows(6, 4), transition=simplex_rows(3, 4), prior=st.booleans())
def test_every_row_is_solved_to_its_certificate(label_proba, transition, prior):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InconsistentLabelWarning)
        class_prior = np.array([0.2, 0.3, 0.5]) if prior else None
        found = infer(label_proba, transition, class_prior=class_prior)
    assert found.converged
    assert found.gap.max() <= 1e-6
    assert_allclose(found.class_proba.sum(axis=1), 1)
    assert found.class_proba.min() >= 0


@quiet
@pytest.mark.parametrize("class_prior", [None, [0.1, 0.2, 0.3, 0.4]])
def test_the_optimum_is_the_one_scipy_finds(rng, solver, class_prior):
    label_proba, transition = simulate(rng, n_rows=20)
    found = infer(label_proba, transition, class_prior=class_prior)
    for row, ours in zip(label_proba, found.class_proba, strict=True):
        _, value = reference.solve_row(row, transition, class_prior)
        entropy = reference.objective([row], [row], np.eye(len(row)))
        mine = reference.objective([row], [ours], transition, None, class_prior)
        seen = row[row > 0]
        assert entropy == 0
        assert mine + seen @ np.log(seen) >= value - 1e-9


@quiet
def test_the_gap_bounds_how_far_a_row_is_from_its_optimum(rng):
    label_proba, transition = simulate(rng, n_rows=30)
    best = infer(label_proba, transition).class_proba
    worse = rng.dirichlet(np.ones(4), 30)
    gap = _rows.evaluate(label_proba, worse, transition, None).gap
    for i in range(30):
        rows = label_proba[i : i + 1]
        loss = objective(rows, best[i : i + 1], transition) - objective(
            rows, worse[i : i + 1], transition
        )
        assert -1e-12 <= loss <= gap[i] + 1e-12


def test_elkan_noto_is_a_special_case(solver):
    p = np.linspace(0, 1, 41)
    found = infer(np.column_stack([p, 1 - p]), PU)
    assert_allclose(found.class_proba[:, 0], np.clip(p / 0.4, 0, 1), atol=1e-9)


def test_the_identity_returns_label_proba(rng, solver):
    label_proba, _ = simulate(rng)
    assert_allclose(infer(label_proba, np.eye(5)).class_proba, label_proba, atol=1e-15)


def test_what_a_transition_made_is_undone_exactly(rng, solver):
    class_proba = rng.dirichlet(np.ones(4), 500)
    transition = 0.6 * np.eye(4) + 0.4 * rng.dirichlet(np.ones(4), 4)
    found = infer(class_proba @ transition, transition)
    assert_allclose(found.class_proba, class_proba, atol=1e-9)


@pytest.mark.parametrize("n_classes", [3, 20, 150])
def test_many_classes_are_solved_by_both_solvers_alike(seed, n_classes, monkeypatch):
    pytest.importorskip("numba", reason="the extra `speed` is not installed")
    rng = np.random.default_rng(seed)
    transition = 0.7 * np.eye(n_classes) + 0.3 * rng.dirichlet(np.ones(n_classes), n_classes)
    label_proba = rng.dirichlet(np.full(n_classes, 0.3), 60) @ transition
    label_proba *= np.exp(0.3 * rng.standard_normal(label_proba.shape))
    label_proba[::7, 0] = 0  # some rows are not for the dual
    label_proba /= label_proba.sum(axis=1, keepdims=True)
    compiled = infer(label_proba, transition)
    monkeypatch.setattr(_blocks, "_row_solver", lambda labels: _rows)
    batched = infer(label_proba, transition)
    assert max(compiled.gap.max(), batched.gap.max()) <= 1e-9
    assert_allclose(compiled.class_proba, batched.class_proba, atol=1e-9)


# ------------------------------------------------------------------------------------- many optima


@pytest.mark.parametrize(
    ("prior", "chosen"), [(None, [0.5, 0.5]), ([0.5, 0.5], [0.5, 0.5])], ids=["none", "given"]
)
def test_a_row_that_says_nothing_gets_the_class_prior(solver, prior, chosen):
    label_proba = np.array([[0.0, 0.0, 1.0], [0.2, 0.0, 0.8]])
    with pytest.warns(IdentifiabilityWarning, match="1 of 2 rows .* 2 classes, rank 2"):
        found = infer(label_proba, SEMI, class_prior=prior)
    assert_allclose(found.class_proba, [chosen, [1, 0]])


def test_classes_that_no_label_tells_apart_share_alike(solver):
    transition = np.array([[0.8, 0.2], [0.8, 0.2], [0.1, 0.9]])
    with pytest.warns(IdentifiabilityWarning, match="3 classes, rank 2"):
        found = infer(np.array([[0.45, 0.55], [0.9, 0.1]]), transition)
    assert_allclose(found.class_proba, [[0.25, 0.25, 0.5], [0.5, 0.5, 0]], atol=1e-9)


@pytest.mark.filterwarnings("ignore::looselabels.exceptions.IdentifiabilityWarning")
def test_of_many_optima_the_closest_to_uniform_is_taken(rng, solver):
    # Ten classes, three labels: the optima are many, and the closest has classes at zero.
    label_proba, transition = rng.dirichlet(np.full(3, 0.3), 60), rng.dirichlet(np.full(3, 0.5), 10)
    found = infer(label_proba, transition)
    assert found.converged
    better = []
    for row, ours in zip(label_proba, found.class_proba, strict=True):
        nearest = reference.closest(np.full(10, 0.1), row, ours, transition)
        better.append(((ours - 0.1) ** 2).sum() - ((nearest - 0.1) ** 2).sum())
    assert max(better) <= 1e-7


# ------------------------------------------------------------------------------------------ task 1


@quiet
@given(label_proba=simplex_rows(8, 4), transition=positive_rows(3, 4), strength=st.floats(0, 50))
def test_the_objective_never_decreases(label_proba, transition, strength):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        found = infer(label_proba, transition, pseudocounts=strength * transition, max_iter=40)
    steps = np.diff(found.objective)
    assert len(steps) == 0 or steps.min() >= -1e-9 * max(1, abs(found.objective[0]))


@quiet
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("max_iter", [1, 4, 1000])
@pytest.mark.parametrize("prior", [[0.4, 0.3, 0.2, 0.1], [0.25] * 4, [0.3, 0.7, 0, 0]], ids=str)
def test_the_objective_reported_is_the_paper_s(rng, solver, prior, max_iter):
    label_proba, transition = simulate(rng)
    options = {"pseudocounts": 9 * transition, "class_prior": prior, "max_iter": max_iter}
    found = infer(label_proba, transition, **options)
    by_hand = reference.objective(
        label_proba, found.class_proba, found.transition, 9 * transition, prior
    )
    assert_allclose(found.objective[-1], by_hand, rtol=1e-12)
    ours = objective(label_proba, found.class_proba, found.transition, 9 * transition, prior)
    assert_allclose(ours, by_hand, rtol=1e-12)


SOLVERS = ["compiled", "batched"] if find_spec("numba") else ["batched"]


def check_joint_inference(label_proba, transition, options):
    """Check the objective, the transition and class_proba of `infer` with both row solvers."""
    counts, weight, prior = (options[k] for k in ("pseudocounts", "sample_weight", "class_prior"))
    total_weight = len(label_proba) if weight is None else weight.sum()
    row_sums = counts.sum(axis=1, keepdims=True)
    bound = xlogy(counts, counts / np.where(row_sums > 0, row_sums, 1.0)).sum()
    if prior is not None:
        bound += total_weight * np.log(np.max(prior))
    for solver in SOLVERS:
        with (
            pytest.MonkeyPatch.context() as patch,
            warnings.catch_warnings(),
            np.errstate(all="raise"),
        ):
            warnings.simplefilter("ignore")
            if solver == "batched":
                patch.setattr(_blocks, "_row_solver", lambda labels: _rows)
            found = infer(label_proba, transition, **options)
        values = np.array(found.objective)
        rounding = 1e-12 * (total_weight + counts.sum() + np.abs(values)) + 1e-307
        assert np.isfinite(values).all(), solver
        assert (values >= np.maximum.accumulate(values) - rounding).all(), (solver, values)
        assert (values <= bound + rounding).all(), (solver, values, bound)
        for rows in (found.transition, found.class_proba):
            assert rows.min() >= 0, solver
            assert_allclose(rows.sum(axis=1), 1, rtol=1e-12, err_msg=solver)
        assert_array_equal(found.transition[transition == 0], 0)
        assert found.gap.min() >= 0
        assert not found.converged or found.gap.max() <= 1000 * options.get("tol", 1e-9)


@settings(max_examples=200)
@given(problem=joint_problems())
def test_joint_inference_stays_on_the_simplex_and_below_its_bound(problem):
    check_joint_inference(*problem)


def random_rows(rng, shape):
    """Return rows that sum to 1: small fractions, sparse, dense, over-confident or extreme."""
    rows = [
        lambda: rng.integers(0, 4, shape).astype(float),
        lambda: rng.exponential(size=shape) ** 3 * (rng.random(shape) < 0.6),
        lambda: rng.exponential(size=shape),
        lambda: np.exp(20 * rng.standard_normal(shape)),
        lambda: rng.choice([0, 1e-300, 1e-100, 1e-20, 1e-14, 1e-13, 1e-9, 0.5, 1.0], shape),
    ][rng.integers(5)]()
    empty = np.flatnonzero(rows.sum(axis=1) == 0)
    rows[empty, rng.integers(0, shape[1], len(empty))] = 1.0
    return rows / rows.sum(axis=1, keepdims=True)


def random_masses(rng, shape):
    """Return weights or pseudocounts, some of them zero, tiny or huge."""
    return [
        lambda: rng.integers(0, 3, shape).astype(float),
        lambda: rng.exponential(size=shape) * (rng.random(shape) < 0.5),
        lambda: rng.choice([0, 1e-300, 1e-12, 1.0, 1e12], shape),
        lambda: np.full(shape, rng.choice([1e-300, 1e-100, 1e-12, 1e12, 1e300])),
    ][rng.integers(4)]()


def random_problem(rng):
    """Draw label_proba, a transition and keywords of `infer` with pseudocounts."""
    n_rows, n_classes, n_labels = rng.integers(1, (9, 5, 5))
    transition = random_rows(rng, (n_classes, n_labels))
    counts = [
        lambda: np.zeros(transition.shape),
        lambda: transition * random_masses(rng, (n_classes, 1)),
        lambda: np.where(transition > 0, random_masses(rng, transition.shape), 0.0),
    ][rng.integers(3)]()
    weight, prior = random_masses(rng, n_rows), random_rows(rng, (1, n_classes))[0]
    possible = (transition[prior > 0] > 0).any(axis=0)
    options = {
        "pseudocounts": counts,
        "sample_weight": weight if weight.any() and rng.random() < 0.7 else None,
        "class_prior": prior if possible.all() and rng.random() < 0.3 else None,
        "max_iter": int(rng.choice([1, 2, 3, 7, 40, 150])),
        "tol": float(rng.choice([1e-3, 1e-6, 1e-9, 1e-12], p=[0.1, 0.1, 0.7, 0.1])),
    }
    return random_rows(rng, (n_rows, n_labels)), transition, options


@pytest.mark.parametrize("number", [0, 1, 83, 270, 566, 857, 1199, 1482, 8179, 16857, 2696256157])
def test_joint_inference_on_problems_that_need_a_safeguard(number):
    """Each of them failed without one of the safeguards of `infer`."""
    check_joint_inference(*random_problem(np.random.default_rng(number)))


N_NEW_PROBLEMS = int(os.environ.get("LOOSELABELS_NEW_PROBLEMS", "1000"))


@pytest.mark.slow
def test_joint_inference_on_new_random_problems():
    """Every run draws other problems; LOOSELABELS_FIRST_SEED repeats those of an earlier run.

    LOOSELABELS_NEW_PROBLEMS=20000 draws more of them.
    """
    first = int(os.environ.get("LOOSELABELS_FIRST_SEED", secrets.randbits(32)))
    for seed in range(first, first + N_NEW_PROBLEMS):
        try:
            check_joint_inference(*random_problem(np.random.default_rng(seed)))
        except Exception as error:
            message = f"seed {seed}; repeat with LOOSELABELS_FIRST_SEED={seed}: {error}"
            raise AssertionError(message) from error


def test_no_pseudocounts_and_zeros_in_label_proba():
    """The extrapolation of this problem once had negative entries, and an objective above 0."""
    label_proba = np.array([[0, 1, 0], [1 / 3, 0, 2 / 3]])
    transition = np.array([[1 / 6, 1 / 3, 1 / 2], [3 / 8, 3 / 8, 1 / 4]])
    options = {"pseudocounts": np.zeros((2, 3)), "sample_weight": None, "class_prior": None}
    check_joint_inference(label_proba, transition, options)
    found = infer(label_proba, transition, pseudocounts=np.zeros((2, 3)))
    assert found.converged
    assert_allclose(found.objective[-1], 0, atol=1e-9)
    assert_allclose(found.class_proba @ found.transition, label_proba, atol=1e-6)


def test_a_row_of_weight_zero_does_not_affect_the_others(solver):
    """The labels of row 1 become impossible for the class that it started with."""
    label_proba = np.array([[0.5, 0.5, 0], [0, 0.5, 0.5], [0, 0, 1]])
    transition = np.array([[0.6, 0.3, 0.1], [0.1, 0.3, 0.6]])
    counts, weight = np.zeros((2, 3)), np.array([1.0, 0.0, 1.0])
    options = {"pseudocounts": counts, "sample_weight": weight, "class_prior": None}
    check_joint_inference(label_proba, transition, options)
    found = infer(label_proba, transition, **options)
    alone = infer(label_proba[[0, 2]], transition, pseudocounts=counts)
    assert found.converged
    assert_allclose(found.transition, alone.transition, atol=1e-9)
    assert_allclose(found.class_proba[[0, 2]], alone.class_proba, atol=1e-9)
    assert_allclose(found.class_proba[1], [0.5, 0.5], atol=1e-6)
    assert_allclose(found.objective[-1], objective(label_proba, *found[:2], sample_weight=weight))


@quiet
@pytest.mark.parametrize("factor", [2.0**-1000, 2.0**-40, 2.0**40, 2.0**1000])
def test_only_the_ratio_of_weights_and_pseudocounts_matters(rng, solver, factor):
    label_proba, transition = simulate(rng, n_rows=40)
    weight, counts = rng.integers(0, 3, 40), 2 * transition
    one = infer(label_proba, transition, sample_weight=weight, pseudocounts=counts)
    options = {"sample_weight": factor * weight, "pseudocounts": factor * counts}
    other = infer(label_proba, transition, **options)
    assert_allclose(other.transition, one.transition, atol=1e-12)
    assert_allclose(other.class_proba, one.class_proba, atol=1e-12)
    assert_allclose(other.objective, factor * np.array(one.objective), rtol=1e-12)


def test_huge_pseudocounts_do_not_need_weights(rng):
    label_proba, transition = simulate(rng, zeros=0)
    found = infer(label_proba.astype(np.float32), transition, pseudocounts=1e200 * transition)
    assert found.converged
    assert_allclose(found.transition, transition, atol=1e-6)


@quiet
def test_single_precision_does_not_lower_the_objective(rng, solver):
    label_proba, transition = simulate(rng)
    found = infer(label_proba.astype(np.float32), transition, pseudocounts=transition)
    values = np.array(found.objective)
    assert found.converged
    assert np.diff(values).min() >= -1e-12 * (len(label_proba) + abs(values[0]))


@quiet
def test_joint_inference_is_at_least_as_good_as_long_em(rng, solver):
    label_proba, transition = simulate(rng, zeros=0)
    counts = 20 * transition
    found = infer(label_proba, transition, pseudocounts=counts)
    assert found.converged
    slow = reference.em(label_proba, transition, counts, 3000)
    assert found.objective[-1] >= reference.objective(label_proba, *slow, counts) - 1e-9


@quiet
def test_the_transition_found_is_a_fixed_point(rng, solver):
    label_proba, transition = simulate(rng)
    counts = 20 * transition
    found = infer(label_proba, transition, pseudocounts=counts, tol=1e-12)
    mass = reference.label_mass(label_proba, found.class_proba, found.transition) + counts
    assert_allclose(mass / mass.sum(axis=1, keepdims=True), found.transition, atol=1e-5)


@quiet
def test_a_zero_is_a_promise_and_stays_zero(rng, solver):
    label_proba, _ = simulate(rng, n_labels=3)
    found = infer(label_proba, SEMI, pseudocounts=SEMI)
    assert_array_equal(found.transition == 0, SEMI == 0)


@quiet
def test_a_weight_is_a_repeated_row(rng, solver):
    label_proba, transition = simulate(rng, n_rows=40)
    times = rng.integers(0, 4, 40)
    repeated = infer(np.repeat(label_proba, times, axis=0), transition, pseudocounts=transition)
    weighted = infer(label_proba, transition, pseudocounts=transition, sample_weight=times)
    assert_allclose(weighted.transition, repeated.transition, atol=1e-7)
    assert_allclose(weighted.objective[-1], repeated.objective[-1], rtol=1e-9)


@quiet
def test_permuting_classes_labels_and_rows_permutes_the_answer(rng, solver):
    label_proba, transition = simulate(rng)
    rows, classes, labels = (rng.permutation(k) for k in (200, 4, 5))
    plain = infer(label_proba, transition, pseudocounts=5 * transition)
    shuffled_t = transition[np.ix_(classes, labels)]
    shuffled = infer(label_proba[np.ix_(rows, labels)], shuffled_t, pseudocounts=5 * shuffled_t)
    assert_allclose(shuffled.transition, plain.transition[np.ix_(classes, labels)], atol=1e-6)
    assert_allclose(shuffled.objective[-1], plain.objective[-1], rtol=1e-9)


@quiet
@pytest.mark.parametrize("rows_a_block", [1, 7, 200, 201])
def test_the_size_of_a_block_does_not_matter(rng, monkeypatch, rows_a_block):
    label_proba, transition = simulate(rng)
    whole = infer(label_proba, transition, pseudocounts=5 * transition)
    monkeypatch.setattr(_blocks, "ELEMENTS_PER_BLOCK", 0)
    monkeypatch.setattr(_blocks, "MIN_BLOCK_ROWS", rows_a_block)
    parts = infer(label_proba, transition, pseudocounts=5 * transition)
    assert_allclose(parts.objective[-1], whole.objective[-1], rtol=1e-10)
    assert_allclose(parts.transition, whole.transition, atol=1e-8)
    assert_allclose(parts.class_proba, whole.class_proba, atol=1e-6)


def test_a_poor_extrapolation_falls_back_to_the_plain_step(rng, monkeypatch):
    label_proba, transition = simulate(rng, zeros=0)
    plain = infer(label_proba, transition, pseudocounts=20 * transition)
    monkeypatch.setattr(_climb, "_extrapolated", lambda *_: np.full((4, 5), 0.2))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", IdentifiabilityWarning)
        forced = infer(label_proba, transition, pseudocounts=20 * transition)
    assert np.diff(forced.objective).min() >= -1e-12
    assert_allclose(forced.objective[-1], plain.objective[-1], rtol=1e-6)


def test_rows_return_to_the_state_that_was_kept(rng):
    label_proba, transition = simulate(rng, zeros=0)
    rows = _blocks.Rows(label_proba, None, 4)
    for _ in range(2):
        rows.solve(_blocks.row_problem(transition, None, 1e-9))
        rows.keep()
        kept = rows.class_proba.copy(), rows.gap.copy()
        for _ in range(2):
            rows.solve(_blocks.row_problem(np.full((4, 5), 0.2), None, 1e-9))
        assert not np.array_equal(rows.class_proba, kept[0])
        rows.restore()
        assert_array_equal(rows.class_proba, kept[0])
        assert_array_equal(rows.gap, kept[1])


# ----------------------------------------------------------------------------------- tasks 2 and 4


def test_labels_of_known_classes_are_counted():
    class_proba = np.eye(2)[[0, 0, 0, 1]]
    counts = np.array([[0, 1], [2, 0]])
    found = transition_from_labels(class_proba, [0, 1, 1, 1], counts)
    assert_allclose(found, [[1 / 4, 3 / 4], [2 / 3, 1 / 3]])
    weighted = transition_from_labels(class_proba, [0, 1, 1, 1], counts, sample_weight=[2, 1, 0, 1])
    assert_allclose(weighted, [[2 / 4, 2 / 4], [2 / 3, 1 / 3]])


def test_soft_classes_blur_task_2_and_conditioning_on_the_label_repairs_it():
    rng = np.random.default_rng(0)
    truth = np.array([[0.8, 0.2], [0.3, 0.7]])
    positive = rng.beta(1, 1, 100_000)
    class_proba = np.column_stack([positive, 1 - positive])
    classes = (rng.random(len(positive)) > positive).astype(int)
    labels = (rng.random(len(positive)) > truth[classes, 0]).astype(int)
    printed = transition_from_labels(class_proba, labels, np.zeros((2, 2)))
    assert_allclose(printed, [[0.63, 0.37], [0.47, 0.53]], atol=0.01)
    fitted = printed
    for _ in range(300):
        given_label = condition_on_label(class_proba, fitted, labels)
        fitted = transition_from_labels(given_label, labels, np.zeros((2, 2)))
    assert_allclose(fitted, truth, atol=0.01)


def test_conditioning_on_the_label_is_bayes():
    class_proba = np.array([[0.2, 0.5, 0.3]])
    transition = np.array([[0.9, 0.1], [0.5, 0.5], [0.0, 1.0]])
    expected = np.array([[0.2 * 0.9, 0.5 * 0.5, 0.0]])
    found = condition_on_label(class_proba, transition, [0])
    assert_allclose(found, expected / expected.sum())


def test_an_impossible_label_is_believed_with_a_warning():
    class_proba = np.array([[0.0, 1.0], [0.5, 0.5]])
    assert_allclose(condition_on_label(class_proba, PU, [0, 0]), [[1, 0], [1, 0]])  # one class only
    transition = np.array([[0.5, 0.5, 0.0], [0.25, 0.75, 0.0], [0.0, 0.0, 1.0]])
    with pytest.warns(InconsistentLabelWarning, match=r"1 rows .*row 0, label 0"):
        found = condition_on_label(np.array([[0.0, 0.0, 1.0]]), transition, [0])
    assert_allclose(found, [[2 / 3, 1 / 3, 0]])


def test_a_class_without_any_count_is_uniform_and_warns():
    with pytest.warns(InconsistentLabelWarning, match="Class 1 has no samples and no pseudocounts"):
        found = transition_from_labels(np.array([[1.0, 0.0]]), [0], np.zeros((2, 2)))
    assert_allclose(found, [[1, 0], [0.5, 0.5]])


# ---------------------------------------------------------------------------------- array libraries


@quiet
@pytest.mark.parametrize("options", [{}, {"learn": True}, {"prior": True}], ids=str)
def test_array_libraries_agree_and_get_their_own_arrays_back(rng, xp, options):
    label_proba, transition = simulate(rng)
    kwargs = {}
    if "learn" in options:
        kwargs["pseudocounts"] = 10 * transition
    if "prior" in options:
        kwargs["class_prior"] = np.array([0.1, 0.2, 0.3, 0.4])
    expected = infer(label_proba, transition, **kwargs)
    found = infer(xp.asarray(label_proba), transition, **kwargs)
    assert type(found.class_proba) is type(found.gap) is type(xp.asarray([0.0]))
    assert_allclose(found.objective[-1], expected.objective[-1], rtol=1e-12)
    assert_allclose(as_numpy("", found.transition), expected.transition, atol=1e-9)
    assert_allclose(as_numpy("", found.class_proba), expected.class_proba, atol=1e-6)
    index = rng.integers(0, 5, 200)
    ours = condition_on_label(found.class_proba, found.transition, xp.asarray(index))
    numpy_s = condition_on_label(expected.class_proba, expected.transition, index)
    assert_allclose(as_numpy("", ours), numpy_s, atol=1e-6)
    ours = transition_from_labels(found.class_proba, xp.asarray(index), np.ones((4, 5)))
    assert_allclose(ours, transition_from_labels(expected.class_proba, index, np.ones((4, 5))))


def test_libraries_agree_to_nine_digits_where_the_problem_is_well_conditioned(rng, xp):
    transition = 0.6 * np.eye(4) + 0.4 * rng.dirichlet(np.ones(4), 4)
    label_proba = rng.dirichlet(np.ones(4), 300) @ transition
    expected = infer(label_proba, transition).class_proba
    found = infer(xp.asarray(label_proba), transition).class_proba
    assert_allclose(as_numpy("", found), expected, atol=1e-9)


@quiet
def test_single_precision_stays_single_and_close(rng, xp):
    label_proba, transition = simulate(rng)
    double = infer(label_proba, transition, pseudocounts=10 * transition)
    single = infer(
        xp.asarray(label_proba, dtype=xp.float32), transition, pseudocounts=10 * transition
    )
    assert single.class_proba.dtype == single.gap.dtype == xp.float32
    assert_allclose(as_numpy("", single.class_proba), double.class_proba, atol=1e-4)
    assert_allclose(as_numpy("", single.transition), double.transition, atol=1e-4)


def test_the_number_of_blas_threads_does_not_matter(rng):
    label_proba, transition = simulate(rng)
    found = []
    for n_threads in (1, 2):
        with threadpool_limits(n_threads):
            found.append(infer(label_proba, transition, pseudocounts=5 * transition))
    one, two = found
    assert_allclose(two.objective[-1], one.objective[-1], rtol=1e-10)
    assert_allclose(two.transition, one.transition, atol=1e-8)
    assert_allclose(two.class_proba, one.class_proba, atol=1e-6)


def test_half_precision_is_read_and_becomes_single(rng):
    label_proba, transition = simulate(rng)
    half = label_proba.astype(np.float16)
    assert abs(half.sum(axis=1, dtype=float) - 1).max() > 1e-4
    found = infer(half, transition)
    assert found.class_proba.dtype == np.float32
    rounded = half.astype(float) / half.sum(axis=1, dtype=float)[:, None]
    assert_allclose(found.class_proba, infer(rounded, transition).class_proba, atol=1e-4)
    index = np.zeros(len(half), dtype=int)
    given_label = condition_on_label(found.class_proba.astype(np.float16), transition, index)
    assert_allclose(given_label.sum(axis=1), 1, atol=1e-6)


@quiet
@pytest.mark.parametrize("remake", ["fortran", "strided", "read-only", "byte-swapped", "list"])
def test_the_layout_of_the_input_does_not_matter_and_it_is_left_alone(rng, remake):
    label_proba, transition = simulate(rng)
    expected = infer(label_proba, transition)
    given_rows = {
        "fortran": lambda a: np.asfortranarray(a),
        "strided": lambda a: np.repeat(a, 2, axis=0)[::2],
        "read-only": lambda a: np.frombuffer(a.tobytes()).reshape(a.shape),
        "byte-swapped": lambda a: a.astype(">f8"),
        "list": lambda a: a.tolist(),
    }[remake](label_proba)
    before = np.array(given_rows, dtype=float)
    assert_allclose(infer(given_rows, transition).class_proba, expected.class_proba, atol=1e-12)
    assert_array_equal(np.asarray(given_rows, dtype=float), before)


# ---------------------------------------------------------------- corners (FAULTS, section B)


@pytest.fixture
def strict_floats():
    with np.errstate(all="raise"):
        yield


@pytest.mark.usefixtures("strict_floats")
class TestCorners:
    """Nothing overflows, divides by zero or turns into NaN, whatever the zeros."""

    def test_a_label_no_class_can_have_is_left_out_with_a_warning(self, solver):
        transition = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
        label_proba = np.array([[0.2, 0.3, 0.5], [0.0, 0.0, 1.0]])
        with (
            pytest.warns(InconsistentLabelWarning, match="No class can have label 2"),
            pytest.warns(IdentifiabilityWarning, match="1 of 2 rows"),
        ):
            found = infer(label_proba, transition)
        assert_allclose(found.class_proba, [[0.4, 0.6], [0.5, 0.5]])
        assert np.isfinite(found.objective[-1])
        assert objective(label_proba, found.class_proba, transition) == -np.inf

    def test_a_class_without_prior_gets_exactly_zero(self, rng, solver):
        label_proba, transition = simulate(rng)
        found = infer(label_proba, transition, class_prior=[0.5, 0.0, 0.25, 0.25])
        assert_array_equal(found.class_proba[:, 1], 0)
        others = infer(label_proba, transition[[0, 2, 3]], class_prior=[0.5, 0.25, 0.25])
        assert_allclose(found.class_proba[:, [0, 2, 3]], others.class_proba)
        assert found.objective == pytest.approx(others.objective)

    def test_joint_inference_keeps_the_row_of_a_class_without_prior(self, rng, solver):
        label_proba, transition = simulate(rng)
        prior = [0.5, 0.0, 0.25, 0.25]
        found = infer(label_proba, transition, pseudocounts=3 * transition, class_prior=prior)
        assert_allclose(found.transition[1], transition[1])
        assert found.transition.shape == (4, 5)

    def test_a_one_hot_prior_decides(self, rng, solver):
        label_proba, transition = simulate(rng)
        found = infer(label_proba, transition, class_prior=[0, 0, 1, 0])
        assert_array_equal(found.class_proba, np.tile([0, 0, 1, 0], (200, 1)))

    def test_a_prior_that_rules_out_a_seen_label_is_refused(self):
        with pytest.raises(ValueError, match="class_prior is 0 for class 0, but no other class"):
            infer(np.array([[0.2, 0.8]]), PU, class_prior=[0, 1])

    def test_a_label_that_does_not_occur_may_be_impossible(self):
        found = infer(np.array([[0.0, 1.0]]), PU, class_prior=[0, 1])
        assert_allclose(found.class_proba, [[0, 1]])
        rows, transition = np.array([[0.3, 0.7], [0.6, 0.4]]), np.array([[0.9, 0.1], [0.2, 0.8]])
        wider = [np.column_stack([part, np.zeros(2)]) for part in (rows, transition)]
        assert_allclose(infer(*wider).class_proba, infer(rows, transition).class_proba)

    def test_label_proba_of_exact_zeros_and_ones(self, solver):
        found = infer(np.eye(2), PU)
        assert_allclose(found.class_proba, [[1, 0], [0, 1]])

    def test_no_pseudocounts_at_all(self, rng, solver):
        label_proba, transition = simulate(rng, zeros=0)
        with warnings.catch_warnings():  # KL-NMF: EM may need more passes for the last digits
            warnings.simplefilter("ignore", ConvergenceWarning)
            found = infer(label_proba, transition, pseudocounts=np.zeros((4, 5)), max_iter=200)
        assert np.diff(found.objective).min() >= -1e-12
        assert_allclose(found.transition.sum(axis=1), 1)

    def test_huge_pseudocounts_keep_the_design(self, rng, solver):
        label_proba, transition = simulate(rng, zeros=0)
        found = infer(label_proba, transition, pseudocounts=1e12 * transition)
        assert_allclose(found.transition, transition, atol=1e-9)

    @pytest.mark.parametrize("tiny", [1e-13, 1e-10, 1e-8])
    def test_labels_that_are_almost_ruled_out(self, rng, solver, tiny, monkeypatch):
        """As a softmax gives them; the dual cannot finish such rows, and must not go on trying."""
        compiled = pytest.importorskip("looselabels._dual_numba", exc_type=ImportError)
        rounds, settle = [], compiled._settle_prices
        monkeypatch.setattr(
            compiled, "_settle_prices", lambda *given: rounds.append(1) or settle(*given)
        )
        votes = rng.multinomial(100, rng.dirichlet(np.full(10, 0.2), 200)) / 100 + tiny
        label_proba = votes / votes.sum(axis=1, keepdims=True)
        transition = 0.7 * np.eye(10) + 0.3 / 10
        found = infer(label_proba, transition)
        assert found.converged
        assert len(rounds) < 20

    def test_tiny_numbers(self, rng, solver):
        label_proba, _ = simulate(rng, n_labels=3)
        label_proba[0] = [1e-300, 0, 1]
        transition = np.array([[1.0, 1e-300, 0.0], [1e-200, 0.5, 0.5], [5e-324, 0.0, 1.0]])
        with warnings.catch_warnings():  # an entry that has to grow from 1e-300 needs many passes
            warnings.simplefilter("ignore", ConvergenceWarning)
            found = infer(label_proba, transition, pseudocounts=transition, max_iter=100, tol=1e-6)
        assert np.isfinite(found.class_proba).all()
        assert np.diff(found.objective).min() >= -1e-9 * abs(found.objective[0])

    def test_one_row_alone_equals_the_row_among_others(self, rng, solver):
        label_proba, transition = simulate(rng, zeros=0)
        many = infer(label_proba, transition).class_proba
        for i in (0, 77, 199):
            alone = infer(label_proba[i : i + 1], transition).class_proba
            assert_allclose(alone[0], many[i], atol=1e-12)

    def test_equal_rows_of_an_unknown_transition_are_said_to_be_so(self, rng):
        label_proba, _ = simulate(rng, zeros=0)
        uniform = np.full((3, 5), 0.2)
        with pytest.warns(IdentifiabilityWarning, match="3 classes, rank 1"):
            first = infer(label_proba, uniform, pseudocounts=uniform)
        with pytest.warns(IdentifiabilityWarning):
            second = infer(label_proba, uniform, pseudocounts=uniform)
        assert_array_equal(first.class_proba, second.class_proba)


@pytest.mark.parametrize("largest", [1e-200, 1e-90, 1.0, 1e90, 1e200])
def test_weights_are_rescaled_only_if_products_could_overflow_or_underflow(largest):
    given, counts = largest * np.array([0.25, 0.75]), largest * np.array([[1.0, 0.0]])
    weight, pseudocounts, scale = inference._in_range(given, counts, np.eye(2), 0.75 * largest)
    assert_array_equal(scale * weight, given)  # a power of 2: nothing is rounded
    assert_array_equal(scale * pseudocounts, counts)
    if 1e-100 < largest < 1e100:
        assert scale == 1
    else:
        assert 1 <= pseudocounts.max() < 2


def test_an_impossible_label_of_a_row_with_weight_zero_does_not_count():
    label_proba, class_proba, transition = (
        np.eye(2),
        np.array([[1.0], [1.0]]),
        np.array([[1.0, 0.0]]),
    )
    assert objective(label_proba, class_proba, transition) == -np.inf
    assert objective(label_proba, class_proba, transition, sample_weight=[1, 0]) == 0


def test_too_few_passes_are_reported():
    rng = np.random.default_rng(0)
    label_proba, transition = simulate(rng, zeros=0)
    with pytest.warns(ConvergenceWarning, match="Increase max_iter or tol"):
        found = infer(label_proba, transition, pseudocounts=transition, max_iter=2)
    assert not found.converged
    assert found.n_iter == len(found.objective) == 2


# ---------------------------------------------------------------------------------------- bad input

GOOD = np.array([[0.3, 0.7], [0.5, 0.5]])


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        ({"label_proba": [[0.3, 0.6], [0.5, 0.5]]}, "row of label_proba .* row 0 sums to 0.9"),
        ({"label_proba": [[0.3, np.nan], [0.5, 0.5]]}, "label_proba .* row 0, column 1 is nan"),
        ({"label_proba": [[1.5, -0.5], [0.5, 0.5]]}, "label_proba .* row 0, column 1 is -0.5"),
        ({"label_proba": [0.5, 0.5]}, r"label_proba must be a 2-D array .* shape is \(2,\)"),
        ({"label_proba": np.empty((0, 2))}, r"label_proba must be .* shape is \(0, 2\)"),
        ({"label_proba": "labels"}, "label_proba must be an array of numbers"),
        ({"label_proba": np.full((2, 3), 1 / 3)}, r"3 columns, .* transition has shape \(2, 2\)"),
        ({"transition": [[0.4, 0.5], [0, 1]]}, "row of transition .* row 0 sums to 0.9. Divide"),
        ({"transition": [[0.4, 0.0], [0.6, 1]]}, "Its columns do: pass the transpose"),
        ({"transition": [[0.4, 0.6], [0, 0]]}, "row 1 sums to 0"),
        ({"transition": [[1.4, -0.4], [0, 1]]}, "transition .* row 0, column 1 is -0.4"),
        ({"class_prior": [0.5, 0.6]}, "class_prior .* sums to 1.1"),
        ({"class_prior": [1.5, -0.5]}, "class_prior .* is -0.5"),
        ({"class_prior": [1.0]}, r"class_prior has shape \(1,\); 2 classes need \(2,\)"),
        ({"pseudocounts": [[-1, 1], [0, 1]]}, "pseudocounts .* row 0, column 0 is -1"),
        ({"pseudocounts": [[1, np.nan], [0, 1]]}, "pseudocounts .* row 0, column 1 is nan"),
        ({"pseudocounts": [[1, 1]]}, r"pseudocounts has shape \(1, 2\); the transition has \(2, 2"),
        (
            {"pseudocounts": [[1, 1], [1, 1]]},
            "class never has the label; row 1, column 0 is 1",
        ),
        ({"sample_weight": [1, 2, 3]}, r"sample_weight has shape \(3,\); 2 rows need"),
        ({"sample_weight": [1, -1]}, "sample_weight .* row 1 is -1"),
        ({"sample_weight": [0, 0]}, "sample_weight must contain a positive number"),
        ({"tol": np.nan}, "tol must be positive"),
        ({"tol": "x"}, "tol must be positive .* got tol='x'"),
        ({"tol": 10**400}, "tol must be positive"),
        ({"max_iter": 1.5}, "max_iter a whole number, at least 1; got tol=1e-09, max_iter=1.5"),
        ({"max_iter": 0}, "max_iter a whole number, at least 1; got tol=1e-09, max_iter=0"),
    ],
)
def test_bad_input_is_named(kwargs, message):
    arguments = {"label_proba": GOOD, "transition": PU} | kwargs
    with pytest.raises(ValueError, match=message):
        infer(**arguments)


@pytest.mark.parametrize(
    ("index", "message"),
    [
        ([0, 2], "label_index must be between 0 and 1; row 1 is 2"),
        ([0, -1], "row 1 is -1"),
        ([0.5, 1], "label_index must hold integers"),
        ([0], r"label_index has shape \(1,\); 2 rows need"),
    ],
)
def test_a_bad_label_index_is_named(index, message):
    with pytest.raises(ValueError, match=message):
        condition_on_label(GOOD, PU, index)
    with pytest.raises(ValueError, match=message):
        transition_from_labels(GOOD, index, np.zeros((2, 2)))


def test_classes_and_transition_must_fit():
    with pytest.raises(ValueError, match="class_proba has 2 columns; the transition has 3 classes"):
        condition_on_label(GOOD, np.full((3, 2), 0.5), [0, 1])


@quiet
@pytest.mark.parametrize("prior", [None, "given"])
@pytest.mark.parametrize("design", ["zeros", "identity", "noise", "ring"])
def test_over_confident_label_proba_are_solved_too(rng, solver, design, prior):
    # softmax of large numbers: entries from 1 down to 1e-40, many below rounding
    n_labels = 10 if design == "ring" else 4
    logits = 15 * rng.standard_normal((2000, n_labels))
    label_proba = np.exp(logits - logits.max(axis=1, keepdims=True))
    label_proba /= label_proba.sum(axis=1, keepdims=True)
    transition = {
        "zeros": np.array([[1, 0, 2, 3], [0, 2, 4, 0], [0, 0, 2, 4], [0, 0, 6, 0]]) / 6,
        "identity": np.eye(4),
        "noise": 0.9 * np.eye(4) + 0.025,
        "ring": 0.7 * np.eye(10) + 0.3 * np.roll(np.eye(10), 1, axis=1),
    }[design]
    prior = None if prior is None else np.arange(1, n_labels + 1) / np.arange(1, n_labels + 1).sum()
    found = infer(label_proba, transition, class_prior=prior)
    assert found.converged
    assert found.gap.max() <= 1e-6
    assert np.isfinite(objective(label_proba, found.class_proba, transition))


@quiet
@pytest.mark.slow
@settings(max_examples=3000)
@given(
    label_proba=simplex_rows(6, 4),
    transition=simplex_rows(4, 4) | simplex_rows(2, 4) | simplex_rows(6, 4),
    prior=st.booleans(),
    learn=st.booleans(),
)
def test_fuzzed_rows_are_certified_whatever_their_zeros(label_proba, transition, prior, learn):
    n_classes = len(transition)
    class_prior = np.arange(1, n_classes + 1) / np.arange(1, n_classes + 1).sum()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InconsistentLabelWarning)
        warnings.simplefilter("ignore", ConvergenceWarning)
        found = infer(
            label_proba,
            transition,
            class_prior=class_prior if prior else None,
            pseudocounts=transition if learn else None,
            max_iter=30,
        )
    # If the transition needs more passes, a row may be short of its optimum; `converged` says so.
    assert found.gap.max() <= 1e-6 or (learn and not found.converged)
    assert_allclose(found.class_proba.sum(axis=1), 1)
    assert_array_equal(found.transition[transition == 0], 0)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: condition_on_label(GOOD, [[1.5, -0.5], [0, 1]], [0, 1]), "column 1 is -0.5"),
        (lambda: transition_from_labels(GOOD, [0, 1], [1, 1]), "pseudocounts must be a 2-D array"),
        (lambda: transition_from_labels(GOOD, [0, 1], [[1, 1]]), "pseudocounts has 1 rows"),
        (lambda: objective(GOOD, [[0.9, 0.9], [0.5, 0.5]], PU), "row 0 sums to 1.8"),
        (lambda: objective(GOOD, GOOD[:1], PU), r"class_proba has shape \(1, 2\); 2 rows and 2"),
    ],
)
def test_the_other_tasks_name_bad_input_too(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_a_label_that_no_class_has_leaves_class_proba():
    with pytest.warns(InconsistentLabelWarning, match="row 0, label 1"):
        found = condition_on_label(np.array([[0.9, 0.1]]), np.array([[1.0, 0.0], [1.0, 0.0]]), [1])
    assert_allclose(found, [[0.9, 0.1]])
