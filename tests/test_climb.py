"""The search for the transition: small entries, extrapolations, and the safeguard."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from looselabels import _climb
from looselabels._blocks import PassFound, Rows, row_problem
from looselabels._climb import climb, faster_step, growth_bound, normalize_rows
from tests import reference

MAX_PASSES = 40


def rarely_labeled(n_classes, rate=0.1):
    """Return the transition of classes that are rarely labeled, and of one that never is."""
    labeled = rate * np.eye(n_classes)
    labeled[-1] = 0
    labeled[:, -1] = 1 - labeled.sum(axis=1)
    return labeled


def next_class(n_classes):
    """Return the transition of labels that are sometimes those of the next class."""
    return 0.8 * np.eye(n_classes) + 0.2 * np.roll(np.eye(n_classes), 1, axis=1)


def simulate(rng, transition, n_rows=600):
    """Return label_proba that no class_proba explains exactly."""
    class_proba = np.exp(2 * rng.standard_normal((n_rows, len(transition))))
    label_proba = normalize_rows(class_proba, class_proba) @ transition
    label_proba *= np.exp(0.1 * rng.standard_normal(label_proba.shape))
    return normalize_rows(label_proba, label_proba)


def search(label_proba, transition, pseudocounts, tol=1e-9):
    """Return the result of `climb`, and how many passes it needed, also rejected ones."""
    rows, n_passes = Rows(label_proba, None, len(transition)), 0

    def solve(transition, accuracy):
        nonlocal n_passes
        n_passes += 1
        return rows.solve(row_problem(transition, None, accuracy))

    return climb(solve, transition, pseudocounts, tol, 1000, rows.keep, rows.restore), n_passes


@pytest.mark.parametrize("entry", [0, 1e-9, 1e-6, 1e-4])
@pytest.mark.parametrize("strength", [1, 10, 100])
@pytest.mark.parametrize("design", [rarely_labeled(8), next_class(4)], ids=["rare", "next"])
def test_small_entries_of_the_transition_do_not_need_more_passes(rng, design, strength, entry):
    label_proba = simulate(rng, design)
    start = normalize_rows(np.maximum(design, entry), design)
    (_, _, objectives, stationary), n_passes = search(label_proba, start, strength * start)
    assert stationary
    assert n_passes <= MAX_PASSES
    assert np.diff(objectives).min() >= -1e-13 * (len(label_proba) + strength * len(design))


def test_a_small_entry_is_at_the_optimum_of_its_fixed_gradient():
    transition = np.array([[0.9, 0.1 - 1e-6, 1e-6], [0.0, 0.5, 0.5]])
    counts = np.array([[90.0, 10.0, 1e-4], [0.0, 50.0, 50.0]])
    label_mass = np.array([[80.0, 20.0, 1e-6 * 150], [0.0, 30.0, 70.0]])
    found, small = faster_step(label_mass, counts, transition)
    assert small.tolist() == [[False, False, True], [False, False, False]]
    total = (label_mass + counts)[0].sum()
    assert_allclose(found[0, 2], 1e-4 / (total - 150), rtol=1e-5)
    plain = normalize_rows(label_mass + counts, transition)
    assert_allclose(found[~small], plain[~small], rtol=1e-5)


def test_entries_that_the_rows_determine_are_not_small():
    """A rare label, a label of one class, an entry that grows, and one without pseudocounts."""
    transition = np.array([[0.5, 0.5 - 3e-6, 1e-6, 1e-6, 1e-6], [0.5 - 1e-6, 0.5, 1e-6, 0, 0]])
    counts = np.array([[50.0, 50.0, 1e-4, 1e-4, 0.0], [50.0, 50.0, 1e-4, 0, 0]])
    gradient = np.array([[100.0, 100.0, 100.0, 250.0, 100.0], [100.0, 100.0, 100.0, 0, 0]])
    label_mass = gradient * transition
    label_mass[1, 3:] = 100.0  # class 1 explains the last two labels
    found, small = faster_step(label_mass, counts, transition)
    assert not small.any()
    assert_array_equal(found, normalize_rows(label_mass + counts, transition))


def test_the_search_with_small_entries_ends_where_long_em_does(rng):
    design = next_class(3)
    label_proba, start = simulate(rng, design, 60), normalize_rows(design + 1e-3, design)
    (found, last, objectives, _), _ = search(label_proba, start, 10 * start)
    slow = reference.em(label_proba, start, 10 * start, 5000)
    best = reference.objective(label_proba, *slow, 10 * start)
    assert best - 1e-9 <= objectives[-1] <= best + 1e-4
    assert growth_bound(last.label_mass + 10 * start, found) <= 1e-9


def test_small_entries_are_extrapolated_one_by_one():
    small = np.array([[False, True, True]])
    steps = [np.array([[1 - a - b, a, b]]) for a, b in ((1e-6, 8e-6), (4e-6, 4e-6), (2e-6, 4e-6))]
    ahead = _climb._extrapolated(steps, small)
    # The steps of the first entry alternate: log T moves by log 4, then by −log 2.
    assert_allclose(ahead[0, 1:], [4e-6 * 0.5 ** (1 / 1.5), 4e-6], rtol=1e-4)


def test_an_extrapolation_off_the_simplex_is_the_third_step():
    first, second, third = (np.array([[1 - p, p]]) for p in (0.5, 0.3, 0.15))
    assert_array_equal(_climb._squarem(first, second, third), third)


def test_an_extrapolation_is_a_transition_even_where_the_third_step_is_zero():
    first, second, third = np.array([[[0.5, 0.4, 0.1]], [[0.55, 0.35, 0.1]], [[0.75, 0.25, 0.0]]])
    ahead = _climb._squarem(first, second, third)
    assert (ahead >= 0).all()
    assert_allclose(ahead.sum(axis=1), 1)


def test_an_extrapolation_that_overflows_is_the_third_step():
    first = np.array([[0.5, 0.5], [1.0, 1e-158]])
    second = np.array([[0.25, 0.75], [1.0, 2e-158]])
    third = np.array([[0.0, 1.0], [1.0, 4e-158]])
    assert_array_equal(_climb._squarem(first, second, third), third)


class RoughRows:
    """A solver whose passes lower the objective unless they are exact and start from good rows."""

    def __init__(self, needs=1e-12):
        self.needs, self.calls, self.n_good = needs, [], 0

    def solve(self, transition, accuracy):
        self.calls.append(accuracy)
        good = len(self.calls) == 1 or (accuracy <= self.needs and self.calls[-2] == "restore")
        self.n_good += good
        mass = np.array([[1.0, 2.0 + self.n_good], [3.0, 1.0]])
        return PassFound(mass, float(self.n_good if good else -9), 0.0, 0.0, 0)

    def keep(self):
        self.calls.append("keep")

    def restore(self):
        self.calls.append("restore")


def test_rows_that_lower_the_objective_are_solved_again_exactly():
    start, rows = np.full((2, 2), 0.5), RoughRows()
    result = climb(rows.solve, start, np.zeros((2, 2)), 1e-9, 4, rows.keep, rows.restore)
    assert result[2] == [1, 2, 3, 5]  # the last value is that of the final, exact pass
    assert rows.calls.count("keep") == 4


def test_a_pass_that_always_lowers_the_objective_ends_the_search():
    start, rows = np.full((2, 2), 0.5), RoughRows(needs=0)
    transition, found, objectives, stationary = climb(
        rows.solve, start, np.zeros((2, 2)), 1e-9, 40, rows.keep, rows.restore
    )
    assert rows.calls[-1] == "restore"
    assert_array_equal(transition, start)
    assert (found.objective, objectives, stationary) == (1, [1], False)
