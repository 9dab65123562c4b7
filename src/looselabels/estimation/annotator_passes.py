"""Passes over the answers of all annotators: classes from transitions, transitions from classes."""

from typing import Any, NamedTuple

import numpy as np

from looselabels._validation import check_sample_weight, weight_of_rows
from looselabels.annotations import Answers
from looselabels.estimation.annotator_input import (
    IMPOSSIBLE,
    UNLIKELY,
    check_answers,
    check_labels,
    read_class_proba,
    read_designs,
    read_transitions,
    sort_into_slots,
)
from looselabels.estimation.annotator_levels import (
    STRENGTHS,
    Layout,
    Prior,
    first_prior,
    log_density,
    mean_transitions,
    posterior,
    raise_evidence,
    with_noise,
)
from looselabels.estimation.annotator_powers import MAX_NUMBERS, Others, Powers, fit_powers

CLASS_STRENGTH = 30.0  # rows per class that equal class shares are worth
FIRST_NOISE = 0.3  # chance answers of all annotators at the start: a soft majority vote
BLOCK = 100_000  # answers that are taken together where each has numbers of its own
PART = 16_384  # numbers per answer and class at a time: new memory for more takes longer than they
COARSE = 0.03  # if a probability changes by more, passes need not be exact
MAX_JUMP = 32.0  # longest extrapolation, relative to the change that two passes make


class Guess(NamedTuple):
    """Everything that a pass starts from."""

    counts: np.ndarray  # (n_slots, n_classes): expected answers
    class_prior: np.ndarray
    prior: Prior


class Pass(NamedTuple):
    """What follows from a guess."""

    guess: Guess
    class_proba: np.ndarray  # p(class | x, answers)
    objective: float
    levels: np.ndarray  # (n_levels, n_annotators): p(level | answers)
    prior: Prior  # a better one than that of the guess, for the same counts


class Problem(NamedTuple):
    """All that stays the same during the inference."""

    answers: Answers
    votes: Any  # sparse, (n_rows, n_listed): which row has the answer of which slot
    columns: Any  # its transpose
    annotator: np.ndarray  # of each slot: first those of answers, then one per "no answer"
    label: np.ndarray
    layout: Layout  # of the slots of annotators whose transition is estimated
    free: np.ndarray  # which slots these are
    fixed: dict
    known: np.ndarray  # (n_slots, n_classes): log T of the other annotators
    log_proba: np.ndarray | None  # log p(class | x); None: class shares are estimated
    weight: np.ndarray

    @classmethod
    def read(
        cls, class_proba, answers, transitions, strength, designs, sample_weight, layout=None
    ) -> "Problem":
        """Check the arguments and sort the answers into slots, or take a `layout` of them."""
        check_answers(answers)
        if class_proba is not None:
            class_proba = read_class_proba(class_proba, answers)
        specified = read_transitions(transitions, strength, answers)
        fixed = specified if np.isinf(strength) else {}
        votes, annotator, label = sort_into_slots(answers)
        if answers.missing_label is not None:
            annotator = np.r_[annotator, np.arange(answers.n_annotators)]
            label = np.r_[label, np.full(answers.n_annotators, answers.missing_label)]
        free = ~np.isin(annotator, list(fixed))
        if layout is None:
            group, *meaning = read_designs(designs, answers, class_proba, specified, strength)
            layout = Layout.of(annotator[free], label[free], group, *meaning)
            check_labels(layout)
        known = np.zeros((len(annotator), layout.design.shape[1]))
        for a, transition in fixed.items():
            mine = annotator == a
            known[mine] = np.log(np.maximum(transition.T[label[mine]], IMPOSSIBLE))
        weight = check_sample_weight(sample_weight, np.empty((answers.n_rows, 1)))
        weight = weight_of_rows(weight, answers.n_rows)
        log_proba = None if class_proba is None else np.log(np.maximum(class_proba, UNLIKELY))
        slots = annotator, label, layout, free
        return cls(answers, votes, votes.T.tocsr(), *slots, fixed, known, log_proba, weight)

    def first_guess(self) -> Guess:
        """Return a soft majority vote: annotators make no errors but chance, all the same rate."""
        n_classes = self.known.shape[1]
        equal = np.full(n_classes, 1 / n_classes)
        design = self.layout.design
        is_zero = ~np.isnan(self.layout.strength)[:, None, None] & (design <= UNLIKELY)
        start = np.where(is_zero, IMPOSSIBLE, with_noise(design, FIRST_NOISE))  # zeros stay
        start = self.layout.of_slots(start)
        class_proba, _ = self.classes_given(np.log(np.maximum(start, IMPOSSIBLE)), equal)
        return self.improve(class_proba, first_prior(self.layout))

    def run_pass(self, guess: Guess) -> Pass:
        """Infer the classes from a guess."""
        known = posterior(self.layout, guess.prior, guess.counts)
        class_proba, log_rows = self.classes_given(known.mean_log, guess.class_prior)
        objective = self.weight @ log_rows + known.log_evidence.sum()
        objective -= (guess.counts * known.mean_log).sum()
        objective += log_density(guess.prior, self.layout.design)
        if self.log_proba is None:
            objective += CLASS_STRENGTH * np.log(guess.class_prior).sum()
        prior = raise_evidence(self.layout, guess.prior, known)
        return Pass(guess, class_proba, float(objective), known.levels, prior)

    def next_pass(self, found: Pass, at_once=True) -> Pass:
        """Return a pass with an objective that is not lower.

        At once: counts and prior both follow from the pass before it, with a single evaluation. The
        objective hardly ever falls then. If it does, the prior is improved for the new counts.
        """
        if at_once:
            new = self.run_pass(self.next_guess(found))
            if new.objective >= found.objective:
                return new
        return self.run_pass(self.improve(found.class_proba, found.guess.prior))

    def next_guess(self, found: Pass) -> Guess:
        """Return the counts that follow from a pass, and its better prior for the old counts."""
        return self.guess_from(found.class_proba, found.prior)

    def improve(self, class_proba, prior: Prior) -> Guess:
        """Return counts, class shares and a prior that follow from the classes."""
        guess = self.guess_from(class_proba, prior)
        known = posterior(self.layout, prior, guess.counts)
        return guess._replace(prior=raise_evidence(self.layout, prior, known))

    def guess_from(self, class_proba, prior: Prior) -> Guess:
        """Return the counts and class shares that follow from the classes, with this prior."""
        class_prior = self.weight @ class_proba + CLASS_STRENGTH
        return Guess(self.count_answers(class_proba), class_prior / class_prior.sum(), prior)

    def count_answers(self, class_proba) -> np.ndarray:
        """Return the expected answers of each estimated slot and class."""
        weighted = class_proba * self.weight[:, None]
        counts = self.columns @ weighted
        if self.answers.missing_label is not None:
            given = np.zeros((self.answers.n_annotators, counts.shape[1]))
            np.add.at(given, self.annotator[: len(counts)], counts)
            counts = np.vstack([counts, np.maximum(weighted.sum(axis=0) - given, 0)])
        return counts[self.free] if self.fixed else counts

    def classes_given(self, logs, class_prior):
        """Return p(class | x, answers) for log T of the estimated slots, and log p(answers)."""
        of_slots, baseline = self.split(logs)
        scores = self.votes @ of_slots
        scores += (np.log(class_prior) if self.log_proba is None else self.log_proba) + baseline
        return _normalize_rows(scores)

    def split(self, logs):
        """Return log T of the slots of answers, relative to "no answer", and the log of that."""
        of_slots = logs
        if self.fixed:
            of_slots = self.known.copy()
            of_slots[self.free] = logs
        if self.answers.missing_label is None:
            return of_slots, 0.0
        listed = self.votes.shape[1]
        silent = of_slots[listed:]
        return of_slots[:listed] - silent[self.annotator[:listed]], silent.sum(axis=0)

    def without_own_answers(self, found: Pass, start: Powers, accuracy=True):
        """Return p(class | x, answers) from transitions without the row's own answers.

        Also return the powers of the evidence, which are looked for from `start`, and with
        `accuracy` how likely each answer is, if it is right and if it is wrong, for the class that
        x and the other annotators say the row has.
        """
        guess, class_proba = found.guess, found.class_proba
        known = self._known_transitions(found)
        log_prior = np.log(self.weight @ class_proba / self.weight.sum() + UNLIKELY)
        some = self._rows_for_powers()
        of_some = self._kept_answers(some, class_proba, known)
        powers = fit_powers(self._others(some, of_some, log_prior, known), start)
        shares = self.right_and_wrong(guess) if accuracy else []
        kept_out, chances = np.empty_like(class_proba), np.empty((len(shares), self.votes.nnz))
        for rows in _blocks(self.votes):
            # one block of all rows is the usual case
            kept_answers = of_some if rows == some else self._kept_answers(rows, class_proba, known)
            slot, row, kept, scores = kept_answers
            of_x = np.log(guess.class_prior) if self.log_proba is None else self.log_proba[rows]
            kept_out[rows], _ = _normalize_rows(powers.combine(of_x, log_prior, scores))
            # without powers: a consensus that is less certain makes nobody less accurate
            scores, first = of_x + scores, self.votes.indptr[rows.start]
            for part in _parts(kept) if shares else ():
                others, _ = _normalize_rows(scores.take(row[part], axis=0) - kept[part])
                place = slice(first + part.start, first + part.stop)
                for share, chance in zip(shares, chances, strict=True):
                    of_answers = share.take(slot[part], axis=0)
                    chance[place] = np.einsum("ay,ay->a", others, of_answers)
        return kept_out, powers, chances

    def _known_transitions(self, found: Pass):
        """Return the answers that T is known by, by label and in all, and log T of silence.

        The quotient of the first two is E[T]; they have one row per slot.
        """
        filled, size = np.exp(self.known), np.ones_like(self.known)
        guess, layout = found.guess, self.layout
        mean, sizes = mean_transitions(layout, guess.prior, guess.counts, found.levels)
        size[self.free] = sizes.take(layout.annotator, axis=0)
        filled[self.free] = mean * size[self.free]
        silent = np.zeros((self.answers.n_annotators, mean.shape[1]))
        if self.answers.missing_label is not None:
            listed = self.votes.shape[1]
            silent = np.log(filled[listed:] / size[listed:])
        return filled, size, silent

    def _kept_answers(self, rows, class_proba, known):
        """Return slot and row of the answers of some rows, their log T, and its sum per row.

        The transitions are those that follow without the row itself.
        """
        filled, size, silent = known
        slot, row, sums = _answers_of(self.votes, rows)
        weight = self.weight[rows][row] * self.free[slot]
        kept = np.empty((len(slot), class_proba.shape[1]))
        for part in _parts(kept):
            own = class_proba[rows].take(row[part], axis=0) * weight[part, None]
            rest = filled.take(slot[part], axis=0) - own
            rest /= size.take(slot[part], axis=0) - own
            kept[part] = np.log(np.maximum(rest, IMPOSSIBLE))
        if self.answers.missing_label is None:
            return slot, row, kept, sums @ kept
        scores = sums @ (kept - silent[self.annotator[slot]]) + silent.sum(axis=0)
        return slot, row, kept, scores

    def _rows_for_powers(self) -> slice:
        """Return the rows from whose answers powers are estimated: all, or the first ones."""
        n_rows, n_classes = self.answers.n_rows, self.known.shape[1]
        has_silence = self.answers.missing_label is not None
        per_row = self.answers.n_annotators if has_silence else self.votes.nnz / n_rows
        return slice(0, min(n_rows, max(1, int(MAX_NUMBERS / (n_classes * max(per_row, 1))))))

    def _others(self, rows, kept_answers, log_prior, known) -> Others:
        """Return the answers of these rows, and what the rest of the evidence is."""
        slot, row, kept, scores = kept_answers
        of_x = np.zeros_like(scores)
        if self.log_proba is not None:
            of_x = self.log_proba[rows] - log_prior
        silent = None if self.answers.missing_label is None else known[2]
        who = self.annotator[slot]
        return Others(of_x, log_prior, scores, self.weight[rows], row, who, kept, silent)

    def right_and_wrong(self, guess: Guess):
        """Return p(label | class) of all slots among right answers, and among wrong answers.

        If "no answer" is a label, annotators choose the rows that they answer, often those of one
        class: that they answer says nothing about being right. So these numbers are then relative
        to how frequent the label is among right, or wrong, answers.
        """
        given = np.arange(self.answers.n_labels) != self.answers.missing_label
        right = self.layout.right
        parts = (self.layout.design * right * given, np.where(right, 0, guess.prior.common) * given)
        if self.answers.missing_label is None:
            sums = [part.sum(axis=2, keepdims=True) for part in parts]
        else:
            sums = [(guess.class_prior @ part)[:, None] for part in parts]
        shares = [part / np.maximum(s, IMPOSSIBLE) for part, s in zip(parts, sums, strict=True)]
        return [self.of_slots(share) for share in shares]

    def of_slots(self, cells) -> np.ndarray:
        """Return the numbers of (n_groups, n_classes, n_labels) for all slots."""
        return cells.swapaxes(1, 2)[self.layout.group[self.annotator], self.label]


def extrapolate(first: Guess, second: Guess, third: Guess) -> Guess:
    """Return where the passes are heading: a step along their change, longer if it is steady."""
    a, b, c = (_as_vectors(guess) for guess in (first, second, third))
    change = [y - x for x, y in zip(a, b, strict=True)]
    bend = [z - y - d for y, z, d in zip(b, c, change, strict=True)]
    length, curve = (np.sqrt(sum((x**2).sum() for x in xs)) for xs in (change, bend))
    step = float(np.clip(length / max(curve, 1e-300), 1, MAX_JUMP))
    moved = [x + 2 * step * d + step**2 * v for x, d, v in zip(a, change, bend, strict=True)]
    counts, strength = np.maximum(moved[0], 0) ** 2, first.prior.strength
    low, high = np.minimum(strength, STRENGTHS[0]), np.maximum(strength, STRENGTHS[1])
    strength = np.clip(np.exp(moved[1]), low, high)  # what is specified can be out of bounds
    # zeros, and what hardly occurs, stay as they are
    floors = (np.minimum(x, 1e-8) for x in a[2:])
    class_prior, common, shares = (
        np.maximum(x, floor) ** 2 for x, floor in zip(moved[2:], floors, strict=True)
    )
    common /= common.sum(axis=2, keepdims=True)
    prior = Prior(common, strength, shares / shares.sum(axis=0))
    return Guess(counts, class_prior / class_prior.sum(), prior)


def _as_vectors(guess: Guess) -> list[np.ndarray]:
    """Return square roots and logarithms, in which steps of EM are about equally long."""
    common, strength, shares = guess.prior
    roots = [np.sqrt(x) for x in (guess.class_prior, common, shares)]
    return [np.sqrt(guess.counts), np.log(strength), *roots]


def _normalize_rows(scores) -> tuple[np.ndarray, np.ndarray]:
    """Return exp(scores) divided by its row sums, and the logs of these; `scores` is used up."""
    top = scores.max(axis=1, keepdims=True)
    scores -= top
    np.exp(scores, out=scores)
    total = scores.sum(axis=1, keepdims=True)
    scores /= total
    return scores, (top + np.log(total))[:, 0]


def _blocks(votes):
    """Yield slices of rows, so that numbers per answer and class take little memory."""
    n_rows, per_row = votes.shape[0], max(1, votes.nnz // max(votes.shape[0], 1))
    size = max(1, BLOCK // per_row)
    yield from (slice(i, min(i + size, n_rows)) for i in range(0, n_rows, size))


def _parts(numbers):
    """Yield slices of the rows of an array that have few numbers each."""
    step = max(1, PART // numbers.shape[1])
    yield from (slice(i, min(i + step, len(numbers))) for i in range(0, len(numbers), step))


def _answers_of(votes, rows):
    """Return slot and row of the answers in a block of rows, and the matrix that sums them."""
    from scipy.sparse import csr_array

    ends = votes.indptr[rows.start : rows.stop + 1]
    slot, ends = votes.indices[ends[0] : ends[-1]], ends - ends[0]
    row = np.repeat(np.arange(len(ends) - 1), np.diff(ends))
    ones, place = np.ones(len(slot)), np.arange(len(slot))
    return slot, row, csr_array((ones, place, ends), shape=(len(ends) - 1, len(slot)))
