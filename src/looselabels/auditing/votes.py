"""Answers compared with each other: agreement, majority votes, annotators who never change."""

import numpy as np

from looselabels.annotations import Answers
from looselabels.estimation.annotator_input import count_labels
from looselabels.estimation.sampling import sample_rows

MAX_NUMBERS = 20_000_000  # of transitions that are in memory at once
RARE = 0.001  # probability below which equal answers are no chance


def agreement(answers: Answers, class_proba, transitions) -> dict:
    """Return how often two answers to one row are equal, and how often that is expected.

    Parameters
    ----------
    answers : Answers
        All answers.
    class_proba : array of shape (n_rows, n_classes)
        p(class | x, answers).
    transitions : array of shape (n_annotators, n_classes, n_labels)
        p(answer | class) of each annotator.

    Returns
    -------
    dict
        The number of pairs of answers to one row, `n_pairs`; the share of them that is equal,
        `observed`; this share if annotators answer independently given the class, `expected`; and
        if answers do not depend on the row, `chance`. Shares are None if there are no pairs.

    Examples
    --------
    >>> answers = Answers(np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1]), np.array([0, 0, 0, 1]),
    ...                   n_rows=2, n_annotators=2, n_labels=2)
    >>> always_right = np.array([np.eye(2), np.eye(2)])
    >>> agreement(answers, np.array([[1, 0], [1, 0]]), always_right)
    {'n_pairs': 2, 'observed': 0.5, 'expected': 1.0, 'chance': 0.625}
    """
    n_pairs = _pairs(answers.n_answers)
    if not n_pairs.any():
        return {"n_pairs": 0, "observed": None, "expected": None, "chance": None}
    n_equal = _pairs(count_labels(answers)[2])
    share = np.bincount(answers.label, minlength=answers.n_labels) / len(answers.label)
    return {
        "n_pairs": int(n_pairs.sum()),
        "observed": float(n_equal.sum() / n_pairs.sum()),
        "expected": _mean_expected(answers, class_proba, transitions),
        "chance": float(np.sum(share**2)),
    }


def _pairs(counts):
    return counts * (counts - 1) // 2


def _mean_expected(answers, class_proba, transitions) -> float:
    """Return Σ_y p(y) Σ_s T_a[y, s] T_b[y, s], the mean over pairs a, b of some thousand rows."""
    rows = np.flatnonzero(answers.n_answers > 1)
    per_row = np.prod(transitions.shape[1:]) * answers.n_answers[rows].mean()
    rows = rows[sample_rows(len(rows), max(1, int(MAX_NUMBERS / per_row)))]
    part = answers.take(rows)
    given, starts = transitions[part.annotator], np.searchsorted(part.row, range(len(rows)))
    if answers.missing_label is not None:  # given that there is an answer
        given = np.delete(given, answers.missing_label, axis=2)
        total = given.sum(axis=2, keepdims=True)
        given = given / np.where(total > 0, total, 1)  # 0: never answers
    # (Σ_a t_a)² − Σ_a t_a² is twice the sum over pairs
    twice = np.add.reduceat(given, starts) ** 2 - np.add.reduceat(given**2, starts)
    expected = np.sum(class_proba[rows] * twice.sum(axis=2) / 2)
    return float(expected / _pairs(part.n_answers).sum())


def rows_unlike_vote(answers: Answers, consensus, class_of_label) -> np.ndarray:
    """Return the rows where no most frequent answer names the consensus.

    `consensus` has the class of each row, `class_of_label` the class that each label names.

    >>> answers = Answers(np.array([0, 0, 0, 1, 1]), np.array([0, 1, 2, 0, 1]),
    ...                   np.array([0, 0, 1, 0, 1]), n_rows=3, n_annotators=3, n_labels=2)
    >>> rows_unlike_vote(answers, np.array([1, 1, 1]), np.array([0, 1]))
    array([0])
    """
    row, label, counts = count_labels(answers)
    most = np.zeros(answers.n_rows, int)
    np.maximum.at(most, row, counts)
    agrees = most == 0  # without answers there is no vote
    is_winner = counts == most[row]
    agrees[row[is_winner & (class_of_label[label] == consensus[row])]] = True
    return np.flatnonzero(~agrees)


def constant_annotators(answers: Answers, class_proba, transition) -> list[tuple[int, int, int]]:
    """Return annotators whose answers are all equal, though a typical annotator's would not be.

    Each is (annotator, label, number of answers). The probability that all answers of a typical
    annotator, with this transition, are this label must be below 0.1 %, divided by the number of
    annotators. If not to answer is a label, there are none: a rule may vote for one class only.
    """
    if answers.missing_label is not None:
        return []
    n, label = answers.n_annotators, answers.label
    least, most = np.full(n, answers.n_labels), np.full(n, -1)
    np.minimum.at(least, answers.annotator, label)
    np.maximum.at(most, answers.annotator, label)
    kept = (least == most)[answers.annotator]
    who, row, given = answers.annotator[kept], answers.row[kept], label[kept]
    proba = np.sum(class_proba[row] * transition[:, given].T, axis=1)
    log_chance = np.bincount(who, np.log(np.maximum(proba, 1e-300)), minlength=n)
    counts = np.bincount(who, minlength=n)
    found = np.flatnonzero((counts > 0) & (log_chance < np.log(RARE / n)))
    return [(int(a), int(least[a]), int(counts[a])) for a in found]
