"""Classes and transitions from the answers of several annotators."""

import tracemalloc
from itertools import product

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from looselabels.annotations import Answers
from looselabels.estimation.annotator_levels import log_density
from looselabels.estimation.annotator_passes import CLASS_STRENGTH, Problem
from looselabels.estimation.annotators import (
    annotator_accuracy,
    answer_likelihood,
    infer_from_annotators,
)
from tests.estimation.crowds import crowd, dawid_skene, draw_labels
from tests.reference import log_dirichlet_multinomial


def share_right(class_proba, classes):
    return float((class_proba.argmax(axis=1) == classes).mean())


def answers_of(table, **options):
    """Return the answers of a table of labels; −1 is no answer."""
    row, annotator = np.nonzero(table >= 0)
    n_labels = options.pop("n_labels", int(table.max()) + 1)
    return Answers(row, annotator, table[row, annotator], *table.shape, n_labels, **options)


# -------------------------------------------------------------------------------------- the numbers


def test_with_known_transitions_the_answers_multiply(rng):
    answers, _, transitions = crowd(rng, n_rows=30)
    class_proba = rng.dirichlet(np.ones(4), size=30)
    found = infer_from_annotators(class_proba, answers, transitions)
    expected = class_proba.copy()
    for row, annotator, label in zip(*answers[:3], strict=True):
        expected[row] *= transitions[annotator][:, label]
    expected /= expected.sum(axis=1, keepdims=True)
    assert_allclose(found.class_proba_given_label, expected)
    assert_allclose(found.transitions, transitions)
    logs = np.log(class_proba) + answer_likelihood(transitions, answers)
    assert_allclose(np.exp(logs) / np.exp(logs).sum(axis=1, keepdims=True), expected)


def exact_evidence(answers, guess, design):
    """Sum over all classes of all rows and all levels of all annotators, one by one."""
    pseudocounts = guess.prior.pseudocounts(design)[:, 0]
    total, by_class = 0.0, np.zeros((answers.n_rows, len(guess.class_prior)))
    for classes in product(range(len(guess.class_prior)), repeat=answers.n_rows):
        p = np.prod(guess.class_prior[list(classes)])
        for a in range(answers.n_annotators):
            counts = np.zeros(design.shape[1:], int)
            for row, annotator, label in zip(*answers[:3], strict=True):
                counts[classes[row], label] += annotator == a
            # if all answers are chance, the label says nothing about the class
            tables = [counts] * (len(pseudocounts) - 1) + [counts.sum(axis=0, keepdims=True)]
            logs = [
                sum(map(log_dirichlet_multinomial, table, level))
                for table, level in zip(tables, pseudocounts, strict=True)
            ]
            p *= guess.prior.shares[:, 0] @ np.exp(logs)
        total += p
        by_class[np.arange(answers.n_rows), list(classes)] += p
    return np.log(total), by_class / total


def test_the_objective_is_a_lower_bound_of_the_exact_evidence_and_close_to_it():
    """A second route: enumeration of all classes and levels of a tiny case."""
    table = np.array([[0, 0, 1], [1, 1, 1], [0, 0, -1], [1, -1, 0], [0, 0, 0]])
    answers = answers_of(table)
    problem = Problem.read(None, answers, None, np.inf, None, None)
    guess = problem.first_guess()
    for _ in range(30):
        guess = problem.next_guess(problem.run_pass(guess))
    evidence, by_class = exact_evidence(answers, guess, problem.layout.design)
    bound = problem.run_pass(guess).objective - log_density(guess.prior, problem.layout.design)
    bound -= CLASS_STRENGTH * np.log(guess.class_prior).sum()
    assert evidence - 0.6 < bound < evidence
    found = infer_from_annotators(None, answers).class_proba_given_label
    assert_array_equal(found.argmax(axis=1), by_class.argmax(axis=1))
    assert_allclose(found, by_class, atol=0.15)  # posteriors are taken to be independent


@pytest.mark.parametrize(("n_annotators", "n_classes", "per_row"), [(6, 2, 2), (20, 4, 3)])
def test_the_objective_never_decreases(rng, n_annotators, n_classes, per_row):
    for class_proba in (None, np.full((200, n_classes), 1 / n_classes)):
        answers, *_ = crowd(rng, 200, n_annotators, n_classes, per_row)
        found = infer_from_annotators(class_proba, answers, tol=1e-6)
        assert np.diff(found.objective).min() > -1e-8
        assert len(found.objective) == found.n_iter > 5


def test_stationarity_is_the_change_of_one_more_pass(rng):
    answers, *_ = crowd(rng)
    found = infer_from_annotators(None, answers, tol=1e-5, max_iter=1000)
    assert found.converged
    assert found.stationarity <= 1e-5
    stopped = infer_from_annotators(None, answers, max_iter=2)
    assert not stopped.converged
    assert stopped.stationarity > 1e-3


def test_a_result_is_a_good_start(rng):
    answers, *_ = crowd(rng)
    cold = infer_from_annotators(None, answers)
    warm = infer_from_annotators(None, answers, start=cold)
    assert warm.n_iter < cold.n_iter / 2
    assert_allclose(warm.class_proba_given_label, cold.class_proba_given_label, atol=0.05)


def test_the_order_of_rows_and_annotators_is_irrelevant(rng):
    answers, *_ = crowd(rng, n_rows=100)
    found = infer_from_annotators(None, answers)
    rows, people = rng.permutation(100), rng.permutation(20)
    moved = answers.take(rows)
    moved = moved._replace(annotator=np.argsort(people)[moved.annotator])
    again = infer_from_annotators(None, moved)
    assert_allclose(again.class_proba_given_label, found.class_proba_given_label[rows], atol=1e-6)
    assert_allclose(again.transitions, found.transitions[people], atol=1e-6)


def test_a_row_of_weight_two_counts_as_two_rows(rng):
    answers, *_ = crowd(rng, n_rows=60)
    weight = rng.integers(1, 3, size=60)
    many = answers.take(np.repeat(np.arange(60), weight))
    # a fixed number of passes: where the objective is flat, rounding decides when they end
    weighted = infer_from_annotators(None, answers, sample_weight=weight, tol=0, max_iter=50)
    repeated = infer_from_annotators(None, many, tol=0, max_iter=50)
    assert_allclose(weighted.transitions, repeated.transitions, atol=1e-6)
    assert_allclose(weighted.objective[-1], repeated.objective[-1])


def test_the_likelihood_of_answers_has_a_maximum_of_0_and_rows_without_answers_have_only_0(rng):
    answers, _, transitions = crowd(rng, n_rows=5)
    few = answers.take([0, 1])._replace(n_rows=3)
    found = answer_likelihood(transitions, few)
    assert_allclose(found.max(axis=1), 0)
    assert_array_equal(found[2], 0)


# -------------------------------------------------------------------------------------- the quality


@pytest.mark.parametrize(
    ("n_annotators", "n_classes", "per_row"),
    [(20, 4, 1), (20, 2, 3), (20, 10, 2), (200, 4, 3), (200, 2, 5)],
)
def test_without_features_it_is_no_worse_than_dawid_and_skene(n_annotators, n_classes, per_row):
    gains = []
    for seed in range(3):
        rng = np.random.default_rng(seed)
        answers, classes, _ = crowd(rng, 400, n_annotators, n_classes, per_row)
        found = infer_from_annotators(None, answers)
        ours = share_right(found.class_proba_given_label, classes)
        gains.append(ours - share_right(dawid_skene(answers, n_steps=30), classes))
    assert np.mean(gains) > -0.01
    if (n_annotators, per_row) == (200, 3):
        assert np.mean(gains) > 0.02


def test_features_settle_rows_where_annotators_disagree(rng):
    answers, classes, _ = crowd(rng, n_rows=800, per_row=2)
    class_proba = np.full((800, 4), 0.2 / 3)
    class_proba[np.arange(800), np.where(rng.random(800) < 0.8, classes, (classes + 1) % 4)] = 0.8
    with_x = infer_from_annotators(class_proba, answers).class_proba_given_label
    without = infer_from_annotators(None, answers).class_proba_given_label
    assert share_right(with_x, classes) > share_right(without, classes) + 0.02
    assert share_right(with_x, classes) > share_right(class_proba, classes) + 0.02


def test_transitions_can_be_computed_for_some_annotators_only(rng):
    answers, *_ = crowd(rng, n_rows=100, n_annotators=9)
    found = infer_from_annotators(None, answers, {4: np.eye(4)})
    some = [7, 4, 0, 7]
    assert_allclose(found.lazy_transitions[some], found.transitions[some])
    assert_allclose(found.lazy_transitions[3], found.transitions[3])
    assert_allclose(found.lazy_transitions.take([4, 2])[1:], found.transitions[2:3])
    assert_allclose(found.transitions.sum(axis=2), 1)


@pytest.mark.parametrize("missing_label", [None, 1])
def test_the_likelihood_of_answers_needs_no_full_transitions(rng, missing_label):
    answers, *_ = crowd(rng, n_rows=100, n_annotators=9)
    answers = answers._replace(missing_label=missing_label)
    fixed = {4: 0.6 * np.eye(4 if missing_label is None else 3, 4) + 0.1}
    fixed[4] /= fixed[4].sum(axis=1, keepdims=True)
    found = infer_from_annotators(None, answers, fixed)
    new, *_ = crowd(rng, n_rows=30, n_annotators=9)  # with labels that some have not used
    new = new._replace(missing_label=missing_label)
    lazy = answer_likelihood(found.lazy_transitions, new)
    assert_allclose(lazy, answer_likelihood(found.transitions, new), atol=1e-9)
    chance = np.full(9, 0.2)
    mixed = 0.8 * found.transitions + 0.2 / 4
    lazy = answer_likelihood(found.lazy_transitions, new, chance)
    assert_allclose(lazy, answer_likelihood(mixed, new), atol=1e-9)


def test_many_annotators_and_classes_need_no_transition_each_in_memory(rng):
    n_annotators, n_classes = 1000, 60
    row, annotator = np.repeat(np.arange(500), 2), rng.permutation(n_annotators)
    label = np.where(rng.random(1000) < 0.8, row % n_classes, rng.integers(n_classes, size=1000))
    answers = Answers(row, annotator, label, 500, n_annotators, n_classes)
    annotator_accuracy(infer_from_annotators(None, answers.take([0]), max_iter=2))  # imports
    tracemalloc.start()
    found = infer_from_annotators(None, answers, max_iter=2)
    annotator_accuracy(found)
    answer_likelihood(found.lazy_transitions, answers)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < n_annotators * n_classes**2 * 8 / 2  # 29 MB for all transitions


def test_an_annotator_with_few_answers_has_about_the_pooled_transition(rng):
    answers, _, transitions = crowd(rng, n_rows=600, per_row=5)
    newcomer = answers.annotator == 5
    kept = ~newcomer | (np.cumsum(newcomer) <= 3)
    few = answers._replace(**{k: getattr(answers, k)[kept] for k in ("row", "annotator", "label")})
    before, after = infer_from_annotators(None, answers), infer_from_annotators(None, few)
    assert np.abs(before.transitions[5] - transitions[5]).max() < 0.2
    assert np.abs(after.transitions[5] - after.pooled[0]).max() < 0.25
    assert np.abs(before.transitions[0] - transitions[0]).max() < 0.25  # the confuser


def test_rows_do_not_confirm_themselves(rng):
    """With one answer per annotator, all transitions are the pooled one for every row."""
    classes = rng.integers(3, size=2000)
    row, annotator = np.repeat(np.arange(2000), 2), np.arange(4000)
    proba = np.full((3, 3), 0.1) + 0.7 * np.eye(3)
    answers = Answers(row, annotator, draw_labels(rng, proba[classes[row]]), 2000, 4000, 3)
    found = infer_from_annotators(None, answers).class_proba_given_label
    sure = found.max(axis=1)
    assert abs(sure.mean() - share_right(found, classes)) < 0.04


# ------------------------------------------------------------------------------------------ designs


def test_annotators_with_coarse_labels_and_with_labels_that_exclude_a_class_help(rng):
    """Labels 0 to 2 name the classes, 3 means "0 or 1", 4 means "not 0"."""
    n = 600
    classes = rng.integers(3, size=n)
    exact = 0.6 * np.eye(3, 5) + 0.4 / 3 * (np.arange(5) < 3)
    coarse = np.array([[0, 0, 0, 1, 0], [0, 0, 0, 1, 0], [0, 0, 1, 0, 0.0]])
    excluding = np.array([[1, 0, 0, 0, 0], [0, 0, 0, 0, 1], [0, 0, 0, 0, 1.0]])
    table = np.column_stack([draw_labels(rng, p[classes]) for p in (exact, exact, exact)])
    more = np.column_stack([draw_labels(rng, p[classes]) for p in (coarse, excluding)])
    wrong = rng.random((n, 2)) < 0.1
    more[wrong] = np.array([3, 4])[np.nonzero(wrong)[1]]
    designs = {None: np.eye(3, 5), 3: coarse, 4: excluding}
    few = infer_from_annotators(None, answers_of(table, n_labels=5), designs=np.eye(3, 5))
    all_answers = answers_of(np.hstack([table, more]), n_labels=5)
    found = infer_from_annotators(None, all_answers, designs=designs)
    assert found.pooled.shape == (3, 3, 5)
    gain = share_right(found.class_proba_given_label, classes)
    gain -= share_right(few.class_proba_given_label, classes)
    assert gain > 0.07
    assert_array_equal(found.transitions[3][:, [0, 1, 4]], 0)  # not in its label set
    assert found.transitions[3][2, 3] == pytest.approx(0.1, abs=0.06)
    assert_allclose(annotator_accuracy(found).accuracy[3:], [0.967, 0.967], atol=0.03)


def test_annotators_without_a_label_for_a_class_are_not_asked_about_it(rng):
    """They choose one of their labels, and this says nothing about the class that has none."""
    n_rows, n_annotators = 400, 12
    classes = rng.integers(4, size=n_rows)
    transitions = np.tile(0.8 * np.eye(4) + 0.05, (n_annotators, 1, 1))
    for a in range(6):
        unnamed = np.arange(4) // 2 == a % 2
        transitions[a] = 0.8 * np.eye(4)
        transitions[a, unnamed] = 0
        transitions[a, :, ~unnamed] += (1 - transitions[a].sum(axis=1)) / 2
    annotator = np.sort(rng.random((n_rows, n_annotators)).argsort(axis=1)[:, :3], axis=1).ravel()
    row = np.repeat(np.arange(n_rows), 3)
    label = draw_labels(rng, transitions[annotator, classes[row]])
    answers = Answers(row, annotator, label, n_rows, n_annotators, 4)
    found = infer_from_annotators(None, answers)
    same_set = infer_from_annotators(None, answers, designs=dict.fromkeys(range(12), np.eye(4)))
    right, right_before = (
        np.mean(one.class_proba_given_label.argmax(axis=1) == classes) for one in (found, same_set)
    )
    assert right > right_before + 0.01
    # an answer for a class without a label is wrong, although it could not be right
    accuracy = annotator_accuracy(found).accuracy
    assert accuracy[:6].mean() < 0.55 < 0.75 < accuracy[6:].mean()


def test_a_trusted_expert_overrules_the_crowd(rng):
    table = np.column_stack([np.zeros((50, 3), int), np.ones(50, int)])
    table[::2] = 1
    answers = answers_of(table)
    assert infer_from_annotators(None, answers).class_proba_given_label[1].argmax() == 0
    found = infer_from_annotators(None, answers, {3: np.eye(2)})
    assert found.class_proba_given_label[1].argmax() == 1
    assert_array_equal(found.transitions[3], np.eye(2))


@pytest.mark.parametrize("strength", [2.0, 300.0])
def test_a_transition_with_a_strength_counts_as_that_many_answers(rng, strength):
    answers, classes, _ = crowd(rng, n_rows=200)
    class_proba = np.eye(4)[classes]  # known: expected counts are counts
    belief = 0.6 * np.eye(4) + 0.1
    found = infer_from_annotators(class_proba, answers, {2: belief}, strength=strength)
    mine = answers.annotator == 2
    counts = np.zeros((4, 4))
    np.add.at(counts, (classes[answers.row[mine]], answers.label[mine]), 1)
    expected = (strength * belief + counts) / (strength + counts.sum(axis=1, keepdims=True))
    assert_allclose(found.transitions[2], expected, atol=1e-6)
    objective = infer_from_annotators(None, answers, {2: belief}, strength=strength).objective
    assert (np.diff(objective) >= -1e-8 * np.abs(objective[:-1])).all()


def test_a_great_strength_fixes_a_transition_and_zeros_stay(rng):
    answers, *_ = crowd(rng, n_rows=200)
    belief = np.array([[1, 0, 0, 0], [0, 0.9, 0.1, 0], [0.2, 0, 0.8, 0], [0, 0, 0, 1.0]])
    fixed = infer_from_annotators(None, answers, {2: belief}, tol=1e-4)
    close = infer_from_annotators(None, answers, {2: belief}, strength=1e8, tol=1e-4)
    both = (one.class_proba_given_label for one in (fixed, close))
    assert_allclose(*both, atol=0.03)
    free = infer_from_annotators(None, answers, {2: belief}, strength=1, tol=1e-4)
    assert free.transitions[2][belief == 0].max() < 1e-6
    assert np.abs(free.transitions[2] - belief).max() > 0.02


def test_experts_who_contradict_each_other_raise_no_error():
    found = infer_from_annotators(
        None, answers_of(np.array([[0, 1]])), {0: np.eye(2), 1: np.eye(2)}
    )
    assert_allclose(found.class_proba_given_label, 0.5)


# -------------------------------------------------------------------------- labeling functions


def rules(rng, n=2000):
    """Four rules vote for one class each, or abstain, which says as much as a vote."""
    classes = rng.integers(2, size=n)
    fires = rng.random((n, 4)) < np.where(classes[:, None] == [0, 0, 1, 1], 0.4, 0.05)
    return np.where(fires, [0, 0, 1, 1], -1), classes


def test_abstaining_is_computed_as_if_it_were_listed(rng):
    """A second route: every pair of row and rule without a vote is listed as the label 2."""
    table, _ = rules(rng, n=200)
    short = answers_of(table, n_labels=3, missing_label=2)
    full = answers_of(np.where(table < 0, 2, table), n_labels=3)
    designs = {a: np.array([[0, 0, 1.0], [0, 0, 1.0]]) for a in range(4)}
    for a, label in enumerate([0, 0, 1, 1]):
        designs[a][label] = [*(0.5 * np.eye(2)[label]), 0.5]
    found = infer_from_annotators(None, short, max_iter=20)
    listed = infer_from_annotators(None, full, designs=designs, max_iter=20)
    assert_allclose(found.objective, listed.objective)
    assert_allclose(found.transitions, listed.transitions)
    likelihoods = [answer_likelihood(found.transitions, answers) for answers in (short, full)]
    assert_allclose(*likelihoods, atol=1e-12)


def test_abstaining_tells_something_if_it_is_a_label(rng):
    table, classes = rules(rng)
    silent = (table < 0).all(axis=1)
    informed = infer_from_annotators(None, answers_of(table, n_labels=3, missing_label=2))
    assert share_right(informed.class_proba_given_label, classes) > 0.7
    assert np.ptp(informed.class_proba_given_label[silent], axis=0).max() < 1e-9
    assert_allclose(informed.transitions[0, :, 0], [0.4, 0.05], atol=0.05)
    assert_allclose(annotator_accuracy(informed).accuracy, 0.89, atol=0.1)


# ---------------------------------------------------------------------------------------- accuracy


def test_accuracy_intervals_hold_as_often_as_they_say():
    inside = []
    for seed, n_annotators, n_classes, per_row in product(range(2), (20, 200), (2, 4), (2, 3, 8)):
        rng = np.random.default_rng(seed)
        answers, _, transitions = crowd(rng, 500, n_annotators, n_classes, per_row)
        found = annotator_accuracy(infer_from_annotators(None, answers))
        true = np.einsum("akk->ak", transitions).mean(axis=1)
        inside.append(((found.low <= true) & (true <= found.high))[found.n_answers >= 10])
    assert 0.85 < np.concatenate(inside).mean() < 0.95


def test_classes_are_the_same_if_the_accuracy_is_not_asked_for(rng):
    answers, *_ = crowd(rng, n_rows=100)
    found = infer_from_annotators(None, answers)
    without = infer_from_annotators(None, answers, accuracy=False)
    assert without.accuracy is None
    assert_array_equal(without.class_proba_given_label, found.class_proba_given_label)
    with pytest.raises(ValueError, match="accuracy=True"):
        annotator_accuracy(without)


@pytest.mark.slow
def test_accuracy_intervals_of_rules_that_abstain_hold_as_often_as_they_say():
    inside, rights = [], np.repeat(np.arange(6), 2)
    for seed, has_features in product(range(8), (False, True)):
        rng = np.random.default_rng(seed)
        fires = rng.uniform(0.005, 0.06, size=(6, 12))
        fires[rights, np.arange(12)] = rng.uniform(0.3, 0.7, size=12)
        classes = rng.integers(6, size=600)
        table = np.where(rng.random((600, 12)) < fires[classes], rights, -1)
        scores = rng.normal(2 * np.eye(6)[classes])  # class means are 2 apart from each other
        class_proba = np.exp(2 * scores) / np.exp(2 * scores).sum(axis=1, keepdims=True)
        answers = answers_of(table, n_labels=7, missing_label=6)
        found = infer_from_annotators(class_proba if has_features else None, answers)
        found, true = annotator_accuracy(found), fires[rights, np.arange(12)] / fires.sum(axis=0)
        inside.append((found.low <= true) & (true <= found.high))
    assert 0.85 < np.mean(inside) < 0.95


def test_a_rule_for_a_rare_class_is_as_accurate_as_its_votes(rng):
    classes = rng.choice(4, size=3000, p=[0.05, 0.3, 0.3, 0.35])
    rights = np.array([0, 0, 1, 2, 3])
    fires = rng.random((3000, 5)) < np.where(classes[:, None] == rights, 0.6, 0.01)
    table = np.where(fires, rights, -1)
    found = infer_from_annotators(None, answers_of(table, n_labels=5, missing_label=4))
    true = [np.mean(classes[fires[:, a]] == rights[a]) for a in range(5)]
    assert_allclose(annotator_accuracy(found).accuracy, true, atol=0.15)


def test_confusions_are_the_most_frequent_wrong_answers(rng):
    answers, *_ = crowd(rng, n_rows=800, per_row=5)
    found = annotator_accuracy(infer_from_annotators(None, answers))
    assert {(y, s) for y, s, _ in found.confusions[0]} <= {(0, 3), (1, 0), (2, 1), (3, 2)}
    assert all(0.15 < share < 0.35 for _, _, share in found.confusions[0])
    assert found.accuracy[0] < 0.1


def test_a_higher_level_gives_a_wider_interval(rng):
    answers, *_ = crowd(rng, n_rows=100)
    found = infer_from_annotators(None, answers)
    narrow, wide = annotator_accuracy(found, level=0.5), annotator_accuracy(found, level=0.99)
    assert (wide.low < narrow.low).all()
    assert (narrow.low < narrow.accuracy).all()
    assert (narrow.high < wide.high).all()


# --------------------------------------------------------------------------------------- bad input


def test_an_annotator_without_answers_has_the_pooled_transition(rng):
    answers, *_ = crowd(rng)
    found = infer_from_annotators(None, answers._replace(n_annotators=21))
    assert_allclose(found.transitions[20], found.pooled[0], atol=1e-9)
    quality = annotator_accuracy(found)
    assert quality.n_answers[20] == 0
    assert quality.high[20] - quality.low[20] > 0.4
    assert quality.confusions[20] == []


def test_a_single_annotator_is_right_in_most_rows():
    found = infer_from_annotators(None, answers_of(np.array([0, 1, 0, 1, 2, 2])[:, None]))
    assert_array_equal(found.class_proba_given_label.argmax(axis=1), [0, 1, 0, 1, 2, 2])
    assert found.class_proba_given_label.max() < 0.99


def test_an_annotator_who_always_says_the_same_changes_no_class(rng):
    answers, classes, _ = crowd(rng, n_rows=400, per_row=4)
    table = np.full((400, 21), -1)
    table[answers.row, answers.annotator] = answers.label
    table[:, 20] = 2
    found = infer_from_annotators(None, answers_of(table))
    assert share_right(found.class_proba_given_label, classes) > 0.85
    columns = found.transitions[20]
    assert (columns[:, 2] > 0.85).all()
    assert annotator_accuracy(found).accuracy[20] == pytest.approx(0.25, abs=0.06)


def test_all_answers_can_be_equal():
    found = infer_from_annotators(None, answers_of(np.ones((10, 3), int)))
    assert_array_equal(found.class_proba_given_label.argmax(axis=1), 1)
    assert np.isfinite(found.transitions).all()


def test_rows_without_answers_have_the_class_shares_or_their_own_probabilities(rng):
    answers = answers_of(np.array([[0, 0], [1, 1], [-1, -1], [0, 0]]))
    found = infer_from_annotators(None, answers)
    assert found.class_proba_given_label[2, 0] == pytest.approx(0.5, abs=0.05)
    class_proba = np.tile([0.9, 0.1], (4, 1))
    found = infer_from_annotators(class_proba, answers)
    assert_allclose(found.class_proba_given_label[2], [0.9, 0.1])


@pytest.mark.parametrize("missing_label", [None, 2])
def test_without_answers_nothing_is_known(missing_label):
    none = np.zeros(0, int)
    answers = Answers(none, none, none, 3, 2, 2 + (missing_label == 2), missing_label)
    found = infer_from_annotators(None, answers)
    assert_allclose(found.class_proba_given_label, 0.5)
    assert_array_equal(annotator_accuracy(found).n_answers, 0)


@pytest.mark.parametrize("n", [10_000, pytest.param(100_000, marks=pytest.mark.slow)])
def test_many_annotators_with_one_answer_each_take_little_memory(n):
    rng = np.random.default_rng(0)
    classes = rng.integers(3, size=n // 2)
    row = np.repeat(np.arange(n // 2), 2)
    label = np.where(rng.random(n) < 0.8, classes[row], rng.integers(3, size=n))
    tracemalloc.start()
    found = infer_from_annotators(None, Answers(row, np.arange(n), label, n // 2, n, 3), max_iter=6)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2500 * n  # bytes; the table of all rows and annotators would take 4n² and more
    assert share_right(found.class_proba_given_label, classes) > 0.8


@pytest.mark.parametrize(
    ("row", "annotator", "label", "message"),
    [
        ([1, 0], [0, 0], [0, 1], "sorted by row"),
        ([0, 5], [0, 0], [0, 1], "row of answer 1 is 5; it must be from 0 to 1"),
        ([0, 1], [0, -1], [0, 1], "annotator of answer 1 is -1; it must be from 0 to 2"),
        ([0, 1], [0, 1], [0, 2], "label of answer 1 is 2; it must be from 0 to 1"),
    ],
)
def test_answers_out_of_range_or_order_are_refused(row, annotator, label, message):
    with pytest.raises(ValueError, match=message):
        infer_from_annotators(None, Answers(*map(np.array, (row, annotator, label)), 2, 3, 2))


def test_the_mass_of_a_label_is_how_often_it_was_given_shared_among_the_classes(rng):
    answers, _, _ = crowd(rng, n_rows=30)
    mass = infer_from_annotators(None, answers).label_mass
    given = np.zeros((answers.n_annotators, answers.n_labels))
    np.add.at(given, (answers.annotator, answers.label), 1)
    assert_allclose(mass.sum(axis=1), given)
    assert mass.shape[1] == 4
    assert mass.min() >= 0


def test_a_label_that_a_design_gives_to_no_class_is_refused():
    answers = answers_of(np.array([[0, 1], [2, 1]]))
    design = {1: np.array([[1.0, 0, 0], [1, 0, 0], [0, 0, 1]])}
    with pytest.raises(ValueError, match="annotator 1 answered label 1, which its design"):
        infer_from_annotators(None, answers, designs=design)
