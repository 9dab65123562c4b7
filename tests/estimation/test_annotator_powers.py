import numpy as np
import pytest

from looselabels.annotations import Answers
from looselabels.estimation import annotator_powers
from looselabels.estimation.annotator_powers import (
    INDEPENDENT,
    Others,
    Powers,
    Terms,
    _log_likelihood,
    fit_powers,
)
from looselabels.estimation.annotators import infer_from_annotators
from tests.estimation.crowds import crowd


def rules(rng, n_rows=60, n_rules=6, n_classes=3):
    """Return rules that vote or abstain, and p(class | x) of each row."""
    transitions = rng.dirichlet(np.ones(2), (n_rules, n_classes))  # fires, or is silent
    fires = rng.random((n_rows, n_rules)) < 0.4
    row, annotator = np.nonzero(fires)
    logs = np.log(transitions)
    sums = np.where(fires[:, :, None], logs[None, :, :, 0], logs[None, :, :, 1]).sum(axis=1)
    of_x = np.log(rng.dirichlet(np.ones(n_classes), n_rows)) - np.log(1 / n_classes)
    others = Others(
        of_x, np.log(np.full(n_classes, 1 / n_classes)), sums, rng.uniform(0.5, 2, n_rows),
        row, annotator, logs[annotator, :, 0], logs[:, :, 1],
    )  # fmt: skip
    return others, fires, transitions


def loop_log_likelihood(others, fires, transitions, alpha, beta):
    """Return Σ log p(answer | x, other answers) by loops, silence included."""
    total = 0.0
    for i, answers in enumerate(fires):
        said = np.where(answers[:, None], transitions[:, :, 0], transitions[:, :, 1])
        for a in range(len(said)):
            rest = np.exp(others.log_prior + alpha * others.of_x[i])
            rest = rest * np.prod(np.delete(said, a, axis=0), axis=0) ** beta
            total += others.weight[i] * np.log(rest @ said[a] / rest.sum())
    return total


@pytest.mark.parametrize(("alpha", "beta"), [(1.0, 1.0), (0.7, 0.3)])
def test_likelihood_is_that_of_each_answer_given_the_others(rng, alpha, beta):
    others, fires, transitions = rules(rng)
    terms = Terms.of(others)
    value, slope = _log_likelihood(others, terms, alpha, beta)
    assert value == pytest.approx(loop_log_likelihood(others, fires, transitions, alpha, beta))
    step = 1e-5
    for k, (a, b) in enumerate([(step, 0), (0, step)]):
        higher = _log_likelihood(others, terms, alpha + a, beta + b)[0]
        lower = _log_likelihood(others, terms, alpha - a, beta - b)[0]
        assert slope[k] == pytest.approx((higher - lower) / (2 * step), rel=1e-5)


def test_answers_in_blocks_have_the_same_likelihood(rng, monkeypatch):
    others, _, _ = rules(rng)
    terms = Terms.of(others)
    value, slope = _log_likelihood(others, terms, 0.7, 0.3)
    monkeypatch.setattr(annotator_powers, "BLOCK", 30)  # ten answers
    in_blocks = _log_likelihood(others, terms, 0.7, 0.3)
    assert in_blocks[0] == pytest.approx(value)
    assert in_blocks[1] == pytest.approx(slope)


def test_single_precision_hardly_changes_the_likelihood(rng):
    others, _, _ = rules(rng)
    # a specified zero of a transition has the logarithm −230
    others.logs[0, 0], others.silent[0, 0] = -230, -230
    value, slope = _log_likelihood(others, Terms.of(others), 0.7, 0.3)
    terms = Terms.of(others, np.float32)
    assert terms.rest.dtype == terms.likelihood.dtype == np.float32
    single = _log_likelihood(others, terms, 0.7, 0.3)
    assert single[0] == pytest.approx(value, abs=1e-3)
    assert single[1] == pytest.approx(slope, rel=1e-4)


def test_the_start_of_the_search_hardly_matters(rng):
    _, class_proba, answers = repeated_evidence(rng)
    found = infer_from_annotators(class_proba, answers)
    again = infer_from_annotators(class_proba, answers, start=found, resume=True)
    assert found.powers.answers < 0.6
    assert again.powers == pytest.approx(found.powers, rel=0.1)


def test_powers_are_those_of_the_highest_posterior(rng, monkeypatch):
    """A second route: a grid of both. Their logarithms have standard normal priors."""
    others, *_ = rules(rng, n_rows=20)
    # x says the same as the answers, and more firmly
    others = others._replace(of_x=1.5 * (others.sums - others.sums.mean(axis=1, keepdims=True)))

    terms = Terms.of(others)

    def log_posterior(powers):
        return _log_likelihood(others, terms, *powers)[0] - np.sum(np.log(powers) ** 2) / 2

    monkeypatch.setattr(annotator_powers, "MIN_GAIN", 0.0)
    found = fit_powers(others)
    assert not found.is_identity
    grid = np.geomspace(annotator_powers.MIN_POWER, 1, 30)
    assert log_posterior(found) > max(log_posterior((a, b)) for a in grid for b in grid) - 1e-3


def test_without_answers_nothing_is_estimated():
    nobody = np.zeros(0, np.intp)
    empty = np.zeros((3, 2)), np.zeros(2), np.zeros((3, 2)), np.ones(3)
    assert fit_powers(Others(*empty, nobody, nobody, np.zeros((0, 2)))) == INDEPENDENT


def test_powers_of_1_are_the_product():
    parts = np.array([[-1.0, -2.0]]), np.array([-0.5, -0.7]), np.array([[-3.0, -1.0]])
    assert np.array_equal(INDEPENDENT.combine(*parts), parts[0] + parts[2])
    same = Powers(1.0, 0.5).combine(parts[0], parts[1], 2 * parts[2])
    assert np.allclose(same, parts[0] + parts[2])


def test_independent_annotators_count_fully():
    for seed in range(3):
        rng = np.random.default_rng(seed)
        answers, classes, _ = crowd(rng)
        expected = (classes + rng.choice(4, size=len(classes), p=[0.7, 0.1, 0.1, 0.1])) % 4
        class_proba = np.where(expected[:, None] == np.arange(4), 0.7, 0.1)
        assert infer_from_annotators(None, answers).powers == INDEPENDENT
        assert infer_from_annotators(class_proba, answers).powers == INDEPENDENT


def repeated_evidence(rng, n_rows=1500, n_words=4, accuracy=0.6):
    """Return classes, p(class | x) and answers that repeat what the words of x say.

    Each of four words of x points to the right class in 60 % of the rows, and each annotator
    reports one word. p(class | x) is exact: given x, the answers say nothing about the class.
    """
    classes = rng.integers(3, size=n_rows)
    wrong = (classes[:, None] + rng.integers(1, 3, (n_rows, n_words))) % 3
    words = np.where(rng.random((n_rows, n_words)) < accuracy, classes[:, None], wrong)
    votes = (words[:, :, None] == np.arange(3)).sum(axis=1)
    class_proba = (2 * accuracy / (1 - accuracy)) ** votes.astype(float)
    class_proba /= class_proba.sum(axis=1, keepdims=True)
    row, annotator = np.divmod(np.arange(n_words * n_rows), n_words)
    return classes, class_proba, Answers(row, annotator, words.ravel(), n_rows, n_words, 3)


def log_loss(classes, proba):
    return -np.log(proba[np.arange(len(classes)), classes]).mean()


def test_answers_that_repeat_what_x_says_count_less(rng, monkeypatch):
    classes, class_proba, answers = repeated_evidence(rng)
    found = infer_from_annotators(class_proba, answers)
    proba = found.class_proba_given_label
    assert found.powers.answers < 0.6
    monkeypatch.setattr(annotator_powers, "MIN_GAIN", np.inf)
    product = infer_from_annotators(class_proba, answers).class_proba_given_label
    right = np.mean(proba.argmax(axis=1) == classes)
    assert product.max(axis=1).mean() > right + 0.1  # far too certain
    assert proba.max(axis=1).mean() < product.max(axis=1).mean() - 0.05
    assert log_loss(classes, proba) < log_loss(classes, product) - 0.1
