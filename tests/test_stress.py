"""Numbers at the ends of what occurs, against exact fractions, closed forms and float64."""

from fractions import Fraction

import numpy as np
import pytest
from numpy.testing import assert_allclose

from looselabels import _blocks, _rows
from looselabels.inference import condition_on_label, infer, objective

MIXED = np.array([[0.8, 0.2], [0.1, 0.9]])


@pytest.fixture(params=["compiled", "batched"])
def solver(request, monkeypatch):
    if request.param == "batched":
        monkeypatch.setattr(_blocks, "_row_solver", lambda labels: _rows)
    else:
        pytest.importorskip("numba")


def exact_rows(class_proba, transition):
    """Return yT, computed exactly and rounded once."""
    return np.array(
        [
            [
                float(sum(Fraction(y) * Fraction(t) for y, t in zip(row, column, strict=True)))
                for column in transition.T
            ]
            for row in class_proba
        ]
    )


def exact_posterior(class_proba, transition, label_index):
    """Return p(class | x, label) by exact fractions, rounded once."""
    found = []
    for row, label in zip(class_proba, label_index, strict=True):
        joint = [Fraction(y) * Fraction(t) for y, t in zip(row, transition[:, label], strict=True)]
        found.append([float(part / sum(joint)) for part in joint])
    return np.array(found)


def exact_gap(label_proba, class_proba, transition):
    """Return the Frank–Wolfe gap of each row by exact fractions."""
    gaps = []
    for labels, classes in zip(label_proba.tolist(), class_proba.tolist(), strict=True):
        s, y = [Fraction(x) for x in labels], [Fraction(x) for x in classes]
        t = [[Fraction(x) for x in row] for row in transition.tolist()]
        q = [sum(a * row[j] for a, row in zip(y, t, strict=True)) for j in range(len(s))]
        slope = [sum(a * b / c for a, b, c in zip(s, row, q, strict=True) if a) for row in t]
        gaps.append(float(max(slope) - sum(a * b for a, b in zip(y, slope, strict=True))))
    return np.array(gaps)


@pytest.mark.parametrize("rate", [1e-2, 1e-4, 1e-6])
def test_classes_are_recovered_from_labels_that_are_one_in_a_million(rate, rng, solver):
    transition = np.array([[rate, 0, 1 - rate], [0, 2 * rate, 1 - 2 * rate], [0, 0, 1]])
    class_proba = rng.dirichlet(np.ones(3), 50)
    label_proba = exact_rows(class_proba, transition)
    found = infer(label_proba, transition)
    assert found.converged
    assert_allclose(found.class_proba, class_proba, atol=1e-16 / rate + 1e-12)


def test_more_labels_than_a_rate_of_one_in_a_million_allows_mean_the_class(solver):
    transition = np.array([[1e-6, 1 - 1e-6], [0, 1]])
    found = infer(np.array([[2e-6, 1 - 2e-6], [0.5, 0.5]]), transition)
    assert_allclose(found.class_proba, [[1, 0], [1, 0]])


@pytest.mark.parametrize("tiny", [1e-30, 1e-100, 1e-300])
def test_a_tiny_entry_of_the_transition_is_a_small_probability_and_no_error(tiny, rng, solver):
    transition = np.array([[tiny, 1 - tiny], [0.5, 0.5]])
    class_proba = np.array([[0.4, 0.6], [0.9, 0.1], [0.999999, 1e-6]])
    label_proba = exact_rows(class_proba, transition)
    with np.errstate(all="raise", under="ignore"):
        found = infer(label_proba, transition)
        given = condition_on_label(class_proba, transition, np.zeros(3, int))
    assert_allclose(found.class_proba, class_proba, atol=1e-10)
    assert exact_gap(label_proba, found.class_proba, transition).max() <= 1e-9
    assert_allclose(given, exact_posterior(class_proba, transition, np.zeros(3, int)), rtol=1e-12)


def test_a_label_that_only_a_tiny_entry_explains_names_its_class(solver):
    transition = np.array([[1e-300, 1.0], [0.0, 1.0]])
    with np.errstate(all="raise", under="ignore"):
        found = infer(np.array([[0.5, 0.5]]), transition)
    assert_allclose(found.class_proba, [[1, 0]], atol=1e-9)
    assert found.gap[0] <= 1e-9


def test_the_gap_is_that_of_exact_arithmetic(rng, solver):
    label_proba = rng.dirichlet(np.full(4, 0.3), 30)
    transition = rng.dirichlet(np.full(4, 0.3), 3)
    found = infer(label_proba, transition)
    exact = exact_gap(label_proba, found.class_proba, transition)
    assert_allclose(found.gap, exact, atol=1e-12)
    assert exact.max() <= 1e-9


@pytest.mark.slow
def test_a_thousand_classes_are_solved_to_their_certificate():
    n, rng = 1000, np.random.default_rng(0)
    transition = 0.7 * np.eye(n) + 0.2 * np.roll(np.eye(n), 1, axis=1) + 0.1 / n
    transition /= transition.sum(axis=1, keepdims=True)
    class_proba = rng.dirichlet(np.full(n, 0.01), 10)
    class_proba = 0.999 * class_proba + 0.001 / n  # no class is absent: one solution
    found = infer(class_proba @ transition, transition)
    assert_allclose(found.class_proba, class_proba, atol=1e-6)
    labels = rng.dirichlet(np.full(n, 0.1), 5) + 1e-12  # most classes are absent
    labels /= labels.sum(axis=1, keepdims=True)
    found = infer(labels, transition)
    gradient = (labels / (found.class_proba @ transition)) @ transition.T
    gap = gradient.max(axis=1) - (found.class_proba * gradient).sum(axis=1)
    assert gap.max() <= 1e-6
    assert gap.mean() <= 1e-9


@pytest.mark.slow
def test_single_precision_of_ten_million_rows_is_as_good_as_its_rows():
    pytest.importorskip("numba")
    n, rng = 10_000_000, np.random.default_rng(0)
    classes = rng.random(n)
    labels = np.empty((n, 2), np.float32)
    labels[:, 0] = 0.1 + 0.7 * classes
    labels[:, 1] = 1 - labels[:, 0]
    found = infer(labels, MIXED)
    assert found.class_proba.dtype == np.float32
    assert found.converged
    # a rounding error of label_proba, 3e-8, is divided by 0.7
    assert np.abs(found.class_proba[:, 0] - classes).max() <= 1e-6
    assert found.class_proba.mean(axis=0, dtype=np.float64)[0] == pytest.approx(
        classes.mean(), abs=1e-9
    )
    some = slice(0, 1000)
    exact = infer(labels[some].astype(np.float64), MIXED)
    assert_allclose(found.class_proba[some], exact.class_proba, atol=1e-6)
    part = objective(labels[some], found.class_proba[some], MIXED)
    assert part == pytest.approx(exact.objective[-1], abs=1e-5)  # of 1,000 rows
