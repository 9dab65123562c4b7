"""Noise estimated by the likelihood of the labels."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression

from looselabels._rows import on_simplex
from looselabels.datasets import make_gaussians
from looselabels.estimation.errors import Shrinkage, equal_errors, fit_shrinkage, shrunk_noise
from looselabels.estimation.noise import (
    COST,
    Fit,
    Given,
    _calibrated,
    about_as_likely,
    best_of,
    changes_of_rates,
    climb_from,
    estimate_noise,
    evaluate_noise,
    gain_of_directions,
    log_likelihood,
    noise_from_mass,
    noise_losses,
    search,
    share_room,
    sharpened,
    starts,
)


def clear_labels(rng, noise, blur=0.3, n_samples=2000, design=None):
    """Return smoothed p(label | x), and labels; x mostly determines the class."""
    transition = noise if design is None else noise @ design
    class_proba = rng.dirichlet(np.full(len(noise), 0.05), n_samples)
    label_proba = class_proba @ transition
    drawn = rng.random(n_samples)[:, None] > np.cumsum(label_proba, axis=1)
    blurred = (1 - blur) * class_proba + blur * rng.dirichlet(np.ones(len(noise)), n_samples)
    return blurred @ transition, drawn.sum(axis=1).clip(max=transition.shape[1] - 1)


def one_rate(rate, n_classes=4):
    return np.eye(n_classes) * (1 - rate) + rate * equal_errors(np.eye(n_classes))


def next_class(rates):
    rates, n = np.asarray(rates), len(rates)
    return np.diag(1 - rates) + rates[:, None] * np.roll(np.eye(n), 1, axis=1)


# ----------------------------------------------------------------------------------- what is found


@pytest.mark.parametrize("rate", [0.0, 0.05, 0.2, 0.4])
def test_the_rate_of_uniform_noise_is_found(rng, rate):
    found = estimate_noise(*clear_labels(rng, one_rate(rate)))
    # the standard error of the rate is at most 0.011; the errors of six seeds are up to 0.03
    assert_allclose(found.proba, one_rate(rate), atol=0.045)
    assert found.wrong_low <= found.wrong_high


def test_structured_noise_is_found_with_its_structure(rng):
    noise = next_class(np.full(4, 0.3))
    assert_allclose(estimate_noise(*clear_labels(rng, noise)).proba, noise, atol=0.05)


@pytest.mark.parametrize("rates", [[0, 0.25, 0, 0.25], [0.4, 0, 0, 0], [0.4, 0]])
def test_each_class_has_its_own_rate(rng, rates):
    """One rate for all classes would find next to nothing: a correct class contradicts it."""
    noise = next_class(rates)
    given = clear_labels(rng, noise)
    found = estimate_noise(*given)
    assert_allclose(found.proba, noise, atol=0.06)
    assert found.wrong_low - 0.02 < np.mean(rates) < found.wrong_high + 0.02
    assert log_likelihood(given[0], found.proba, given[1]) > 5 + max(
        log_likelihood(given[0], one_rate(rate, len(rates)), given[1]) for rate in (0, 0.1, 0.2)
    )


def both_kinds(label_proba, labels):
    """Return what is given, without and with directions."""
    n_rows, design = label_proba.shape[0], np.eye(label_proba.shape[1])
    given = Given(label_proba, labels, np.ones(n_rows), design, equal_errors(design))
    return [given._replace(has_directions=False), given]


def test_classes_that_overlap_are_not_taken_for_errors_between_them():
    """With directions, overlap would be explained by errors between the classes that overlap.

    A fixed draw: in one of two, directions predict the rows held out better by chance.
    """
    rng, drawn = np.random.default_rng(0), make_gaussians(1200, random_state=0)
    classes = np.array([drawn.classes.index(name) for name in drawn.y])
    labels = (classes + (rng.random(1200) < 0.1) * rng.integers(1, 4, 1200)) % 4
    model = LogisticRegression().fit(drawn.X[600:], labels[600:])
    label_proba, labels = model.predict_proba(drawn.X[:600]), labels[:600]
    share = np.mean(labels != classes[:600])
    without, with_directions = (best_of(search(kind)) for kind in both_kinds(label_proba, labels))
    assert abs(without.wrong_share - share) < 0.03
    assert with_directions.wrong_share > share + 0.06
    assert_allclose(estimate_noise(label_proba, labels).proba, without.noise)


@pytest.mark.parametrize("n_rows", [1, 2, 3])
def test_a_few_rows_are_enough_for_an_answer(rng, n_rows):
    label_proba, labels = clear_labels(rng, one_rate(0.2), n_samples=n_rows)
    assert_allclose(estimate_noise(label_proba, labels).proba.sum(axis=1), 1)


def test_the_range_includes_directions_that_rows_held_out_do_not_reject():
    rng = np.random.default_rng(0)
    label_proba, labels = clear_labels(rng, next_class([0.4, 0.4, 0]), n_samples=600)
    weight = rng.integers(0, 4, 600)  # fewer rows count, and directions do not gain
    found = estimate_noise(label_proba, labels, weight)
    assert found.wrong_low < 0.01
    assert found.wrong_high > 0.2


def test_directions_are_used_if_they_predict_the_labels_of_other_rows(rng):
    gain, error = gain_of_directions(both_kinds(*clear_labels(rng, next_class(np.full(4, 0.3)))), 0)
    assert gain > 3 * error
    gain, error = gain_of_directions(both_kinds(*clear_labels(rng, one_rate(0.3))), 0)
    assert gain < error


def test_without_directions_errors_of_a_class_are_equally_likely(rng):
    kinds = both_kinds(*clear_labels(rng, next_class([0.3, 0, 0.1]), n_samples=500))
    for path in search(kinds[0]):
        errors = path[-1].noise[~np.eye(3, dtype=bool)].reshape(3, 2)
        assert_allclose(errors[:, 0], errors[:, 1], atol=0.005)


def test_labels_that_all_seem_right_can_still_be_ranked(rng):
    found = estimate_noise(*clear_labels(rng, np.eye(3), n_samples=300))
    assert (found.proba > 0).all()
    assert found.wrong_low == 0


def test_the_loss_of_a_row_is_that_of_its_label_or_of_its_class_and_label(rng):
    """Both sum to the likelihood, without the prior of the calibration."""
    given = both_kinds(*clear_labels(rng, one_rate(0.2), n_samples=50))[1]
    class_proba, _ = _calibrated(given.label_proba, one_rate(0.2), given.label_index, given.weight)
    expected = [
        -np.log(row @ one_rate(0.2)[:, s]) for row, s in zip(class_proba, given[1], strict=True)
    ]
    assert_allclose(noise_losses(given, one_rate(0.2)), expected)
    known = given._replace(class_index=np.where(np.arange(50) < 5, 2, -1))
    class_proba, _ = _calibrated(*given[:1], one_rate(0.2), *given[1:3], known.class_index)
    expected = [-np.log(class_proba[i, 2] * one_rate(0.2)[2, given[1][i]]) for i in range(5)]
    assert_allclose(noise_losses(known, one_rate(0.2))[:5], expected)


@pytest.fixture(scope="module")
def digits():
    """Return p(label | x) of digits by a forest, and classes, for labels that are wrong by rule."""
    X, y = load_digits(n_class=6, return_X_y=True)

    def predict(noise):
        rng = np.random.default_rng(0)
        labels = np.array([rng.choice(6, p=noise[k]) for k in y])
        forest = RandomForestClassifier(60, oob_score=True, min_samples_leaf=3, random_state=0)
        return forest.fit(X, labels).oob_decision_function_, labels, y

    return predict


def test_with_a_forest_wrong_labels_of_one_digit_are_found(digits):
    label_proba, labels, y = digits(next_class([0, 0.4, 0, 0, 0, 0]))
    found = estimate_noise(label_proba, labels)
    wrong = np.mean(labels != y)
    assert_allclose(found.proba, next_class([0, 0.4, 0, 0, 0, 0]), atol=0.07)
    assert found.wrong_low * 0.9 < wrong < found.wrong_high * 1.1
    assert found.wrong_low > 0


def test_with_a_forest_correct_digits_stay_correct(digits):
    label_proba, labels, _ = digits(np.eye(6))
    found = estimate_noise(label_proba, labels)
    assert np.diag(found.proba).min() > 0.995
    assert found.wrong_low == pytest.approx(0, abs=1e-3)


def test_exact_probabilities_leave_open_whether_it_is_noise_or_overlap_but_bound_the_noise(rng):
    label_proba, labels = clear_labels(rng, one_rate(0.2), blur=0, n_samples=4000)
    values = [log_likelihood(label_proba, one_rate(rate), labels) for rate in (0.1, 0.2, 0.3)]
    assert abs(values[0] - values[1]) < 8  # 0.002 per row
    assert values[2] < values[1] - 20
    assert estimate_noise(label_proba, labels).wrong_high == pytest.approx(0.2, abs=0.04)


def test_class_shares_are_as_open_as_the_noise_that_moves_rows_between_classes(rng):
    """With exact probabilities, up to 20 % of label 1 can be on rows of class 0, or none.

    Rows move from class 0 to class 1 as the noise of class 0 falls.
    """
    label_1 = rng.uniform(0.2, 1, 1000)
    label_proba = np.column_stack([1 - label_1, label_1])
    labels = (rng.random(1000) < label_1).astype(int)
    found = estimate_noise(label_proba, labels)
    assert found.wrong_high - found.wrong_low > 0.05
    below, above = found.share_room
    assert_allclose(below, above[::-1], atol=1e-6)  # what one class gains, the other one loses
    assert (below + above).min() > 0.05
    clear = estimate_noise(*clear_labels(rng, one_rate(0.1, 2), blur=0.1))
    assert clear.share_room.max() < 0.02


def fit_with(log_likelihood, counts):
    counts, shrinkage = np.array(counts, float), Shrinkage(np.zeros(2), 0.0, 0.0, 0.0)
    return Fit(np.eye(2), log_likelihood, log_likelihood, 0.0, counts, shrinkage)


def test_the_room_of_class_shares_reaches_to_all_fits_that_are_about_as_likely(rng):
    best = fit_with(-10, [[50, 0], [10, 40]])
    other, unlikely = fit_with(-11.9, [[60, 0], [0, 40]]), fit_with(-12.1, [[90, 0], [0, 10]])
    likely = about_as_likely([best, other, unlikely])
    assert likely == [best, other]
    label_proba, labels = clear_labels(rng, one_rate(0.1, 2), n_samples=500)
    given = Given(label_proba, labels, np.ones(500), np.eye(2), equal_errors(np.eye(2)))
    found = best_of(search(given))
    moved = found._replace(counts=np.diag(found.class_share + np.array([0.2, -0.2])))
    alone, both = (share_room(given, fits, found) for fits in ([found], [found, moved]))
    assert 0 < alone.max() < 0.1
    assert_allclose(both, np.maximum(alone, [[0, 0.2], [0.2, 0]]), atol=1e-9)


def test_rates_change_until_two_nats_are_lost_and_class_shares_with_them(rng):
    label_proba, labels = clear_labels(rng, next_class([0.3, 0.1, 0.2]), n_samples=1000)
    given = Given(label_proba, labels, np.ones(1000), np.eye(3), equal_errors(np.eye(3)))
    best = best_of(search(given))
    order = np.argsort(-best.class_share)
    changes, rates = changes_of_rates(given, best)
    for k, change, (low, high) in zip(order, changes, rates, strict=True):
        assert -(1 - best.noise[k, k]) <= low < 0 < high
        noise = best.noise.copy()
        rate = 1 - noise[k, k]
        noise[k] *= (rate + high) / rate
        noise[k, k] = 1 - rate - high
        fit = evaluate_noise(given, noise)
        assert 1 < best.log_likelihood - fit.log_likelihood < 5
        assert_allclose(fit.class_share - best.class_share, change * high, atol=0.01)
        assert change[k] > 0  # more of the other labels are of this class


def test_labels_that_are_pure_chance_do_not_determine_the_noise(rng):
    """p(label | x) is the same everywhere: no noise and much noise are equally likely."""
    label_proba = np.tile([0.5, 0.3, 0.2], (500, 1))
    found = estimate_noise(label_proba, rng.choice(3, 500, p=[0.5, 0.3, 0.2]))
    assert found.wrong_low == 0
    assert found.wrong_high > 0.2
    assert np.isfinite(found.proba).all()


# --------------------------------------------------------------------- labels that are not classes


@pytest.mark.slow
def test_noise_is_found_where_two_classes_share_a_label(rng):
    """Of classes 0 and 1, half of the labels say only that it is one of these two."""
    design = np.array([[0.5, 0, 0.5, 0, 0], [0, 0.5, 0.5, 0, 0], [0, 0, 0, 1, 0], [0, 0, 0, 0, 1]])
    noise = np.eye(4)
    noise[2] = [0.15, 0.15, 0.7, 0]
    found = estimate_noise(*clear_labels(rng, noise, design=design, n_samples=3000), design=design)
    assert_allclose((found.proba @ design)[2], (noise @ design)[2], atol=0.06)
    assert np.diag(found.proba)[[0, 1, 3]].min() > 0.95
    assert found.wrong_low - 0.01 < 0.3 / 4 < found.wrong_high + 0.01


def test_the_order_of_labels_does_not_matter(rng):
    label_proba, labels = clear_labels(rng, next_class([0.3, 0, 0]), n_samples=500)
    plain = estimate_noise(label_proba, labels)
    design = np.eye(3)[:, ::-1]  # label 2 names class 0
    other = estimate_noise(label_proba[:, ::-1], 2 - labels, design=design)
    assert_allclose(other.proba, plain.proba, atol=1e-4)


def test_labels_that_exclude_no_class_cannot_be_wrong():
    found = estimate_noise(np.ones((5, 1)), np.zeros(5, int))
    assert found[:3] == (1, 0, 0)
    assert_allclose(found.share_room, np.zeros((2, 1)))
    found = estimate_noise(np.ones((5, 1)), np.zeros(5, int), design=np.ones((2, 1)))
    assert_allclose(found.proba, np.eye(2))
    assert found[1:3] == (0, 0)


def test_a_label_that_excludes_the_class_counts_for_those_it_is_right_for():
    design = np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 1.0]])
    given = Given(np.empty((0, 2)), np.empty(0, int), np.empty(0), design, equal_errors(design))
    found = noise_from_mass(np.array([[70.0, 30.0], [0.0, 100.0], [0.0, 100.0]]), given)
    assert_allclose(found[0], [0.7, 0.15, 0.15], atol=0.02)
    assert np.diag(found)[1:].min() > 0.98


# -------------------------------------------------------------------------------------- properties


def test_the_classes_can_come_in_any_order(rng):
    noise = next_class([0.3, 0, 0, 0.1])
    label_proba, labels = clear_labels(rng, noise, n_samples=800)
    order = np.array([2, 0, 3, 1])
    found = estimate_noise(label_proba, labels)
    other = estimate_noise(label_proba[:, order], np.argsort(order)[labels])
    assert_allclose(other.proba, found.proba[np.ix_(order, order)], atol=1e-4)


@pytest.mark.slow
def test_a_weight_counts_like_copies(rng):
    label_proba, labels = clear_labels(rng, next_class(np.full(4, 0.3)), n_samples=1000)
    weight = rng.integers(0, 4, 1000)
    found = estimate_noise(label_proba, labels, weight)
    copies = estimate_noise(np.repeat(label_proba, weight, axis=0), np.repeat(labels, weight))
    assert_allclose(found.proba, copies.proba, atol=1e-4)
    assert_allclose(found[1:3], copies[1:3], atol=1e-4)
    assert_allclose(found.share_room, copies.share_room, atol=1e-3)


def test_every_step_of_a_climb_is_better_than_the_one_before(rng):
    label_proba, labels = clear_labels(rng, next_class([0.3, 0, 0.1]), n_samples=500)
    given = Given(label_proba, labels, np.ones(500), np.eye(3), equal_errors(np.eye(3)))
    for start in starts(given):
        path = climb_from(given, start)
        assert_allclose(path[0].noise, start)
        assert (np.diff([fit.score for fit in path]) > 0).all()
        assert_allclose([fit.noise.sum(axis=1) for fit in path], 1)
        assert_allclose(path[-1].counts.sum(), 500)


def test_a_step_that_loses_is_tried_again_with_half_of_its_length(monkeypatch):
    """Counts ask for a rate of 0.4, but the score is highest at 0.19."""
    equal, counts = equal_errors(np.eye(2)), np.array([[60.0, 40.0], [40.0, 60.0]])

    def evaluate_rate(given, noise):
        score = -1000 * (noise[0, 1] - 0.19) ** 2
        return Fit(noise, score, score, noise[0, 1], counts, Shrinkage(0.4, 1e9, 1e9, 0.0))

    monkeypatch.setattr("looselabels.estimation.noise.evaluate_noise", evaluate_rate)
    given = Given(np.empty((0, 2)), np.empty(0, int), np.empty(0), np.eye(2), equal)
    path = climb_from(given, np.eye(2))
    assert_allclose([fit.wrong_share for fit in path], [0, 0.2])


def test_the_score_is_the_likelihood_less_a_part_of_the_evidence_that_parameters_lose(rng):
    given = both_kinds(*clear_labels(rng, next_class([0.3, 0, 0.1]), n_samples=300))[1]
    for fit in climb_from(given, one_rate(0.1, 3)):
        known = np.sum(fit.counts * np.log(fit.noise))  # as if the noise had not been estimated
        lost = known - fit.shrinkage.log_evidence
        assert fit.log_likelihood - fit.score == pytest.approx(COST * lost)


def test_expected_counts_are_those_of_bayes_rule(rng):
    """A second route: p(class, labeled as class | x, label), row by row."""
    design = np.array([[0.5, 0.5, 0.0], [0.0, 0.5, 0.5]])
    noise = np.array([[0.8, 0.2], [0.1, 0.9]])
    label_proba, labels = clear_labels(rng, noise, design=design, n_samples=50)
    given = Given(label_proba, labels, np.ones(50), design, equal_errors(design))
    fit = evaluate_noise(given, noise)
    class_proba, _ = _calibrated(label_proba, noise @ design, labels, None)
    counts = np.zeros((2, 2))
    for row, s in zip(class_proba, labels, strict=True):
        joint = row[:, None] * noise * design[:, s]
        counts += joint / joint.sum()
    assert_allclose(fit.counts, counts)
    excluded = [(0, 2), (1, 0)]
    given_label = on_simplex(class_proba * (noise @ design).T[labels])
    wrong = sum(given_label[labels == s, y].sum() for y, s in excluded)
    assert fit.wrong_share == pytest.approx(wrong / 50)


def test_sharpening_keeps_the_rates(rng):
    given = Given(
        *clear_labels(rng, one_rate(0.3), n_samples=50),
        np.ones(50),
        np.eye(4),
        equal_errors(np.eye(4)),
    )
    noise = np.array([[0.7, 0.2, 0.1, 0], [0, 1, 0, 0], [0.1, 0.1, 0.8, 0], [0, 0, 0.5, 0.5]])
    found = sharpened(evaluate_noise(given, noise), given)
    assert_allclose(np.diag(found), np.diag(noise))
    assert_allclose(found[0], [0.7, 0.3 * 8 / 9, 0.3 / 9, 0])
    assert_allclose(found[2:], noise[2:])


def test_rows_of_weight_zero_say_nothing_about_the_noise(rng):
    correct, wrong = (clear_labels(rng, next_class([rate, 0]), n_samples=400) for rate in (0, 0.4))
    label_proba, index = (np.concatenate(pair) for pair in zip(correct, wrong, strict=True))
    found = estimate_noise(label_proba, index, np.repeat([0.0, 1.0], 400))
    assert_allclose(found.proba, estimate_noise(*wrong).proba)
    assert found.proba[0, 0] < estimate_noise(label_proba, index).proba[0, 0] - 0.05


def test_a_sample_of_many_rows_is_enough(monkeypatch, rng):
    given = clear_labels(rng, one_rate(0.2), n_samples=4000)
    seen = []

    def count_rows(given, noise):
        seen.append(len(given.label_index))
        return evaluate_noise(given, noise)

    monkeypatch.setattr("looselabels.estimation.noise.evaluate_noise", count_rows)
    monkeypatch.setattr("looselabels.estimation.noise.MAX_ROWS", 1000)
    once, again = (estimate_noise(*given, random_state=seed).proba for seed in (0, 1))
    assert_allclose(once, one_rate(0.2), atol=0.06)
    assert max(seen) == 1000
    assert (once != again).any()


def test_a_class_whose_label_never_occurs_does_not_disturb_the_others(rng):
    label_proba, labels = clear_labels(rng, next_class([0.3, 0, 0]), n_samples=1000)
    padded = np.column_stack([label_proba, np.zeros(1000)])
    found = estimate_noise(padded, labels).proba
    assert_allclose(found.sum(axis=1), 1)
    assert_allclose(found[:3, :3], next_class([0.3, 0, 0]), atol=0.08)


def test_of_fits_that_are_about_as_good_the_one_with_more_wrong_labels_is_chosen():
    scores = [(-10.0, 0.0), (-10.9, 0.1), (-12.0, 0.3), (-8.5, 0.2)]
    paths = [[Fit(np.eye(2), 0.0, score, wrong, np.eye(2), None)] for score, wrong in scores]
    assert [best_of(paths[:n]).wrong_share for n in (1, 2, 3, 4)] == [0.0, 0.1, 0.1, 0.2]


def test_the_room_of_class_shares_adds_the_squares_of_what_single_rates_change(rng):
    label_proba, labels = clear_labels(rng, next_class([0.3, 0.1, 0.2]), n_samples=300)
    given = Given(label_proba, labels, np.ones(300), np.eye(3), equal_errors(np.eye(3)))
    best = best_of(search(given))
    squares = np.zeros((2, 3))
    for change, ends in zip(*changes_of_rates(given, best), strict=True):
        moved = np.array([change * end for end in ends])
        squares += np.maximum([-moved, moved], 0).max(axis=1) ** 2
    assert_allclose(share_room(given, [best], best), np.sqrt(squares))


def test_the_room_of_class_shares_ends_at_0_and_1(rng):
    label_proba, labels = rng.dirichlet([1, 1], 200), rng.integers(2, size=200)
    given = Given(label_proba, labels, np.ones(200), np.eye(2), equal_errors(np.eye(2)))
    best = best_of(search(given))
    ends = best.class_share + np.array([[-1], [1]]) * share_room(given, [best], best)
    assert ends.min() == pytest.approx(0)
    assert ends.max() == pytest.approx(1)


def test_the_last_climb_of_a_search_begins_at_the_sharpened_best_fit(rng):
    label_proba, labels = clear_labels(rng, next_class([0.3, 0.1, 0.2]), n_samples=300)
    given = Given(label_proba, labels, np.ones(300), np.eye(3), equal_errors(np.eye(3)))
    *paths, last = search(given)
    best = max((path[-1] for path in paths), key=lambda fit: fit.score)
    assert_allclose(last[0].noise, sharpened(best, given))


def test_the_first_start_is_made_of_rows_with_a_class_above_its_mean_in_rows_labeled_so(rng):
    class_proba, labels = rng.dirichlet(np.ones(3), 60), rng.integers(3, size=60)
    given = Given(class_proba, labels, np.ones(60), np.eye(3), equal_errors(np.eye(3)))
    threshold = np.array([class_proba[labels == k, k].mean() for k in range(3)])
    mass = np.zeros((3, 3))
    for row, label in zip(class_proba, labels, strict=True):
        if (row >= threshold).any():
            mass[np.where(row >= threshold, row, 0).argmax(), label] += 1
    assert_allclose(starts(given)[0], noise_from_mass(mass, given))


# ---------------------------------------------------------------------------------- known classes


def test_known_classes_are_in_the_expected_counts(rng):
    label_proba, label_index = clear_labels(rng, one_rate(0.2), n_samples=300)
    class_index = np.full(300, -1)
    class_index[:100] = rng.integers(4, size=100)
    given = Given(label_proba, label_index, np.ones(300), np.eye(4), equal_errors(np.eye(4)))
    known = given._replace(
        label_proba=label_proba[:100], label_index=label_index[:100], weight=np.ones(100),
        class_index=class_index[:100],
    )  # fmt: skip
    counted = np.zeros((4, 4))
    np.add.at(counted, (class_index[:100], label_index[:100]), 1)
    assert_allclose(evaluate_noise(known, one_rate(0.2)).counts, counted)


def test_classes_that_refute_a_transition_leave_all_numbers_finite():
    given = Given(
        np.full((4, 2), 0.5), np.array([0, 0, 1, 1]), np.ones(4), np.eye(2),
        equal_errors(np.eye(2)), np.array([1, 0, 1, -1]),
    )  # fmt: skip
    without_noise = evaluate_noise(given, np.eye(2))
    assert np.isfinite(without_noise.score)
    assert np.isfinite(without_noise.counts).all()
    assert without_noise.score < evaluate_noise(given, one_rate(0.2, 2)).score


@pytest.mark.slow
def test_the_share_of_wrong_labels_is_that_of_rows_whose_class_is_not_known(rng):
    label_proba, label_index = clear_labels(rng, one_rate(0.2), n_samples=600)
    class_index = np.full(600, -1)
    class_index[:300] = (label_index[:300] + 1) % 4  # all of them are wrong
    found = estimate_noise(label_proba, label_index, class_index=class_index)
    assert found.wrong_high < 0.9
    everything = estimate_noise(label_proba, label_index, class_index=(label_index + 1) % 4)
    assert (everything.wrong_low, everything.wrong_high) == (0, 0)


def test_no_known_class_changes_nothing(rng):
    given = clear_labels(rng, one_rate(0.2), n_samples=300)
    plain, unknown = (
        estimate_noise(*given, class_index=known) for known in (None, np.full(300, -1))
    )
    assert_allclose(unknown.proba, plain.proba, atol=0.02)


def test_a_weight_is_a_number_of_rows_in_all_starts(rng):
    times = rng.integers(1, 4, 60)
    rows = rng.dirichlet(np.ones(3), 60), rng.integers(3, size=60)
    design, equal = np.eye(3), equal_errors(np.eye(3))
    weighted = starts(Given(*rows, times.astype(float), design, equal))
    copies = (np.repeat(part, times, axis=0) for part in rows)
    repeated = starts(Given(*copies, np.ones(times.sum()), design, equal))
    for one, other in zip(weighted, repeated, strict=True):
        assert_allclose(one, other, atol=1e-8)


def test_only_labels_that_exclude_the_class_count_as_errors():
    design, mass = np.eye(2), np.array([[8.0, 2.0], [1.0, 9.0]])
    equal = equal_errors(design)
    given = Given(np.zeros((0, 2)), np.zeros(0, int), np.zeros(0), design, equal)
    counts = np.array([[8.5, 2.0], [1.0, 9.5]])
    expected = shrunk_noise(counts, equal, fit_shrinkage(counts, equal), given.max_rate)
    assert_allclose(noise_from_mass(mass, given), expected)
