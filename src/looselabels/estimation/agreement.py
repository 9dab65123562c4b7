"""Annotators who agree more than their transitions explain: copies, and those who influence others.

Given the class, annotators are taken to be independent. Two annotators a and b then agree on a row
with probability Σ_y p(y) Σ_s T_a[y, s] T_b[y, s], where p(y) is what x and the *other* annotators
say about the class. Pairs that agree more often break this assumption: the consensus is then more
certain than it should be. Copies are an extreme case, which can be counted once. In an inference
they confirm each other and look like experts, so they are found by equal answers (`equal_pairs`),
and judged by what the others say if they are counted once (`unexplained_by_accuracy`).
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from looselabels.annotations import Answers
from looselabels.estimation.annotator_input import IMPOSSIBLE
from looselabels.estimation.annotators import AnnotatorInference

MIN_ROWS = 10  # rows that both annotators answered; with fewer nothing can be said
MIN_EQUAL = 30  # equal answers of copies; with fewer, equal answers are soon chance
MIN_EXCESS = 0.05  # smaller differences can come from rows that are hard for everyone
MAX_PAIRS = 3_000_000  # pairs of answers that are compared; of more, evenly spaced rows are used
MAX_NUMBERS = 30_000_000  # pairs × classes, where each pair has a number for each class
BLOCK = 2**16  # numbers that are in memory at once


class AgreeingPair(NamedTuple):
    """Two annotators who agree more than their transitions explain."""

    first: int  #: index of the annotator
    second: int
    n_rows: int  #: rows that both answered
    agreement: float  #: share of these rows with equal answers
    expected: float  #: the share if both answered independently
    p_value: float  #: of such an agreement by chance, corrected for the number of pairs


def agreeing_pairs(found: AnnotatorInference, answers: Answers, level=0.05) -> list[AgreeingPair]:
    """Return the pairs of annotators who agree more than their transitions explain.

    Parameters
    ----------
    found : AnnotatorInference
        The result of `infer_from_annotators` for these answers.
    answers : Answers
        All answers.
    level : float
        The probability of one or more false alarms, over all pairs (Bonferroni).

    Returns
    -------
    list of AgreeingPair
        The smallest p-value first. Pairs with fewer than 10 common rows are not tested.
    """
    from scipy.stats import betabinom

    n_classes = found.class_proba_given_label.shape[1]
    row, one, two = _pairs_of_answers(answers, MAX_NUMBERS // n_classes)
    code, pair, n_rows = np.unique(
        answers.annotator[one] * answers.n_annotators + answers.annotator[two],
        return_inverse=True,
        return_counts=True,
    )
    if not (n_rows >= MIN_ROWS).any():
        return []
    kept = (n_rows >= MIN_ROWS)[pair]
    place = np.cumsum(n_rows >= MIN_ROWS) - 1
    code, n_rows = code[n_rows >= MIN_ROWS], n_rows[n_rows >= MIN_ROWS]
    row, one, two, pair = row[kept], one[kept], two[kept], place[pair[kept]]
    first, second = np.divmod(code, answers.n_annotators)

    expected = _expected_equal(found, answers, row, one, two, pair, first, second) / n_rows
    expected = np.clip(expected, 1e-6, 1 - 1e-6)
    equal = answers.label[one] == answers.label[two]
    agreed = np.bincount(pair, equal, len(code))
    # transitions are estimates: the expected share is known as well as from this many answers
    size = np.minimum(found.n_answers[first], found.n_answers[second])
    p_value = betabinom.sf(agreed - 1, n_rows, expected * size, (1 - expected) * size)
    p_value = np.minimum(p_value * len(code), 1)
    hits = np.flatnonzero((p_value <= level) & (agreed / n_rows >= expected + MIN_EXCESS))
    pairs = [
        AgreeingPair(
            int(first[i]),
            int(second[i]),
            int(n_rows[i]),
            float(agreed[i] / n_rows[i]),
            float(expected[i]),
            float(p_value[i]),
        )
        for i in hits
    ]
    return sorted(pairs, key=lambda pair: (pair.p_value, pair.first, pair.second))


class EqualPair(NamedTuple):
    """Two annotators with equal answers to all compared rows that both answered."""

    first: int  #: index of the annotator
    second: int
    n_rows: int  #: compared rows that both answered


def equal_pairs(answers: Answers) -> list[EqualPair]:
    """Return the pairs of annotators with equal answers to all of at least `MIN_EQUAL` rows.

    If "no answer" is a label, both answered the same rows: otherwise all functions that vote for
    one class only would be equal.

    >>> row, annotator = np.divmod(np.arange(120), 3)
    >>> label = np.where(annotator < 2, row % 2, row % 3 % 2)
    >>> equal_pairs(Answers(row, annotator, label, 40, 3, 2))
    [EqualPair(first=0, second=1, n_rows=40)]
    """
    from scipy.sparse import csr_array

    n = answers.n_annotators
    n_answers = np.bincount(answers.annotator, minlength=n)
    row, who, label = (x[(n_answers >= MIN_EQUAL)[answers.annotator]] for x in answers[:3])
    if not len(row):
        return []
    answers = answers._replace(row=row, annotator=who, label=label)
    compared, one, two = _pairs_of_answers(answers)
    # sparse matrices add up what has the same place in linear time; different answers: −inf
    counted = np.where(label[one] == label[two], 1.0, -np.inf)
    counts = csr_array((counted, (who[one], who[two])), shape=(n, n))
    first, second = np.repeat(np.arange(n), np.diff(counts.indptr)), counts.indices
    n_rows = np.maximum(counts.data, 0).astype(np.intp)
    is_equal = n_rows >= MIN_EQUAL
    if answers.missing_label is not None:
        is_compared = answers.n_answers < 2  # in no pair: only one of the two annotators answered
        is_compared[compared] = True
        n_answers = np.bincount(who[is_compared[row]], minlength=n)
        is_equal &= (n_answers[first] == n_rows) & (n_answers[second] == n_rows)
    found = np.column_stack([first, second, n_rows])[is_equal]
    return [EqualPair(*numbers) for numbers in found.tolist()]


def unexplained_by_accuracy(pairs: list[EqualPair], right, wrong, level=1e-6) -> list[EqualPair]:
    """Return the pairs that are too inaccurate to have equal answers by chance: copies.

    What others say about an annotator gives its accuracy the distribution Beta(right, wrong). Two
    annotators of accuracy r are right in all n rows with probability r^2n, of which the mean is
    taken; equal answers that are all wrong are explained in the same way. The level is low: copies
    that are accurate do little harm, and experts are more accurate than others can confirm.

    >>> pair = EqualPair(0, 1, 40)
    >>> unexplained_by_accuracy([pair], np.array([70.0, 70.0]), np.array([30.0, 30.0]))
    [EqualPair(first=0, second=1, n_rows=40)]
    >>> unexplained_by_accuracy([pair], np.array([100.0, 100.0]), np.array([2.0, 2.0]))
    []
    """
    from scipy.special import betaln

    def is_unexplained(pair):
        a, b = right[pair.first], wrong[pair.first]
        chance = max(betaln(a + 2 * pair.n_rows, b), betaln(a, b + 2 * pair.n_rows)) - betaln(a, b)
        return chance <= np.log(level)

    return [pair for pair in pairs if is_unexplained(pair)]


def join(pairs: list, n_annotators: int) -> np.ndarray:
    """Return for each annotator the first one that it is equal to, directly or through others.

    >>> join([EqualPair(1, 2, 40), EqualPair(0, 1, 40)], 4)
    array([0, 0, 0, 3])
    """
    same_as = np.arange(n_annotators)
    for pair in pairs:
        ends = same_as[[pair.first, pair.second]]
        same_as[same_as == ends.max()] = ends.min()
    return same_as


def merge_annotators(answers: Answers, position, n_annotators) -> Answers:
    """Return the answers with annotator a as annotator position[a] of `n_annotators`.

    Of several answers for a row, the first one remains.

    >>> answers = Answers(np.array([0, 0, 1]), np.array([0, 1, 1]), np.array([1, 1, 0]), 2, 2, 2)
    >>> merged = merge_annotators(answers, np.array([0, 0]), 2)
    >>> merged.row, merged.annotator, merged.label
    (array([0, 1]), array([0, 0]), array([1, 0]))
    """
    pairs = answers.row * n_annotators + position[answers.annotator]
    pairs, first = np.unique(pairs, return_index=True)
    row, annotator = np.divmod(pairs, n_annotators)
    label = answers.label[first]
    return answers._replace(row=row, annotator=annotator, label=label, n_annotators=n_annotators)


def _pairs_of_answers(answers: Answers, most=np.inf):
    """Return the row and the positions of both answers of each pair, the lower annotator first."""
    n = answers.n_answers
    ends = np.cumsum(n)
    step = max(1, int(np.ceil((n * (n - 1) // 2).sum() / min(most, MAX_PAIRS))))
    parts = []
    for m in np.unique(n[n > 1]):
        rows = np.flatnonzero(n == m)[::step]
        places = (ends[rows] - m)[:, None] + np.arange(m)
        a, b = np.triu_indices(m, 1)
        parts.append((np.repeat(rows, len(a)), places[:, a].ravel(), places[:, b].ravel()))
    if not parts:
        return np.zeros((3, 0), np.intp)
    return tuple(np.concatenate(part) for part in zip(*parts, strict=True))


def _expected_equal(found, answers, row, one, two, pair, first, second) -> np.ndarray:
    """Return the expected number of equal answers of each pair, if both answer independently."""
    who = np.unique(np.concatenate([first, second]))
    position = np.zeros(answers.n_annotators, np.intp)
    position[who] = np.arange(len(who))
    first, second = position[first], position[second]
    transitions = found.lazy_transitions[who]
    if answers.missing_label is not None:  # both did answer: given that, and nothing else
        transitions[:, :, answers.missing_label] = 0
    equal = np.empty((len(first), transitions.shape[1]))
    for some in _blocks(len(first), transitions[0].size):
        equal[some] = np.einsum("pys,pys->py", transitions[first[some]], transitions[second[some]])
    answered = transitions.sum(axis=2)
    both = answered[first] * answered[second]
    logs = np.log(np.maximum(transitions, IMPOSSIBLE)).swapaxes(1, 2)
    label, annotator = answers.label, position[answers.annotator]
    log_proba = np.log(np.maximum(found.class_proba_given_label, IMPOSSIBLE))
    share = np.empty(len(row))
    for some in _blocks(len(row), transitions.shape[1]):
        a, b = one[some], two[some]
        both_logs = logs[annotator[a], label[a]] + logs[annotator[b], label[b]]
        others = log_proba[row[some]] - found.powers.answers * both_logs
        others = np.exp(others - others.max(axis=1, keepdims=True))
        p = pair[some]
        share[some] = (others * equal[p]).sum(axis=1) / (others * both[p]).sum(axis=1)
    return np.bincount(pair, share, len(first))


def _blocks(n, n_numbers) -> Iterator[slice]:
    """Yield slices of n things that have so many numbers each, a block of numbers at a time."""
    step = max(1, BLOCK // n_numbers)
    return (slice(begin, begin + step) for begin in range(0, n, step))
