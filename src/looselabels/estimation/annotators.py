"""Several annotators per row: p(class | x, answers) ∝ p(class | x) · Π_a T_a[class, answer_a].

Each annotator a has a transition T_a of its own, shrunk to that of annotators like it
(`annotator_levels`). Inference is variational Bayes: classes and transitions have independent
posteriors, and every pass raises the evidence lower bound, the objective. The answers are one
sparse matrix of rows × slots, a slot being one annotator with one label that it used; a pass is two
products with it, and its time is linear in the answers.

In the end each row is inferred once more, from transitions without its own answers: a row whose
annotators have few answers would otherwise confirm itself. In this step evidence that is counted
more than once gets a power below 1 (`annotator_powers`).
"""

from typing import NamedTuple

import numpy as np

from looselabels.annotations import Answers
from looselabels.estimation.annotator_accuracy import RightAnswers, count_right
from looselabels.estimation.annotator_input import IMPOSSIBLE, sort_into_slots
from looselabels.estimation.annotator_levels import Layout, Prior, counts_at
from looselabels.estimation.annotator_passes import COARSE, Guess, Pass, Problem, extrapolate
from looselabels.estimation.annotator_powers import INDEPENDENT, Powers


class LazyTransitions:
    """p(label | class) of many annotators: an array that is computed where it is indexed.

    A hundred thousand transitions between a hundred classes would take 8 GB. What is stored are the
    counts of answers, and the few transitions that annotators share.
    """

    def __init__(self, found: "AnnotatorInference", order, who):
        self.found, self.order = found, order
        self.sorted = found.layout.annotator[order]
        self.who = who  # which annotators these are
        self.shape = (len(who), *found.layout.design.shape[1:])

    def __len__(self):
        return len(self.who)

    def take(self, index, axis=0) -> "LazyTransitions":
        """Return the transitions of some of these annotators, not yet computed."""
        return LazyTransitions(self.found, self.order, self.who[index])

    def __getitem__(self, index) -> np.ndarray:
        who = self.who[index]
        found = self._of(np.atleast_1d(who))
        return found[0] if np.ndim(who) == 0 else found

    def __array__(self, dtype=None, copy=None):
        return np.asarray(self[:], dtype)

    def of_answers(self, annotator, label) -> np.ndarray:
        """Return T_a[:, label] of pairs of annotators and labels, (n_pairs, n_classes)."""
        layout, prior, n_labels = self.found.layout, self.found.prior, self.shape[2]
        who = self.who[annotator]
        code = (layout.annotator * n_labels + layout.label)[self.order]
        slot = np.searchsorted(code, who * n_labels + label)
        is_used = np.append(code, -1)[slot] == who * n_labels + label
        counts = np.zeros((len(who), self.shape[1]))
        counts[is_used] = self.found.counts[self.order[slot[is_used]]]
        found = np.zeros_like(counts)
        for level, cells in enumerate(prior.pseudocounts(layout.design)):
            filled = counts_at(level, counts) + cells.swapaxes(1, 2)[layout.group[who], label]
            found += filled * self._weight(level)[who]
        for a, transition in self.found.fixed.items():
            found[who == a] = transition.T[label[who == a]]
        return found

    def _of(self, who) -> np.ndarray:
        """Return posterior means of some annotators, (n, n_classes, n_labels)."""
        layout, prior, fixed = self.found.layout, self.found.prior, self.found.fixed
        distinct, place = np.unique(who, return_inverse=True)
        begin, end = (np.searchsorted(self.sorted, distinct, side) for side in ("left", "right"))
        n_slots = end - begin
        slots = np.repeat(end - np.cumsum(n_slots), n_slots) + np.arange(n_slots.sum())
        slots = self.order[slots]
        mass = np.zeros((len(distinct), *layout.design.shape[1:]))
        owner = np.repeat(np.arange(len(distinct)), n_slots)
        mass[owner, :, layout.label[slots]] = self.found.counts[slots]
        found = np.zeros_like(mass)
        for level, cells in enumerate(prior.pseudocounts(layout.design)):
            mine = counts_at(level, mass.swapaxes(1, 2)).swapaxes(1, 2)
            filled = mine + cells[layout.group[distinct]]
            found += filled * self._weight(level)[distinct][:, :, None]
        for a in fixed.keys() & set(distinct.tolist()):
            found[np.searchsorted(distinct, a)] = fixed[a]
        return found[place]

    def _weight(self, level) -> np.ndarray:
        """Return what each answer counts at a level, (n_annotators, n_classes)."""
        layout, prior = self.found.layout, self.found.prior
        sizes = layout.by_annotator @ counts_at(level, self.found.counts)
        sizes += prior.strength[level][layout.group][:, None]
        return self.found.levels[level][:, None] / sizes


class AnnotatorInference(NamedTuple):
    """What several annotators say about the classes, and what that says about them."""

    class_proba_given_label: np.ndarray  #: (n_rows, n_classes): p(class | x, all answers of a row)
    class_prior: np.ndarray  #: (n_classes,): class shares, the mean of the above
    n_answers: np.ndarray  #: (n_annotators,)
    accuracy: RightAnswers | None  #: how often answers are right; None: it was not asked for
    layout: Layout  #: which annotators used which labels; their groups and designs
    counts: np.ndarray  #: (n_slots, n_classes): expected number of such answers for each class
    prior: Prior  #: what is expected of annotators, from which their transitions are shrunk
    levels: np.ndarray  #: (n_levels, n_annotators): p(share of chance answers | answers)
    fixed: dict  #: transitions that were specified, by annotator
    missing_label: int | None  #: the label that "no answer" means
    objective: list  #: evidence lower bound after each pass; it never decreases
    n_iter: int  #: passes over the answers
    stationarity: float  #: the largest change of a probability that one more pass makes
    converged: bool  #: whether that is at most `tol`
    powers: Powers  #: how much x and the answers count, if they are not independent

    @property
    def pooled(self) -> np.ndarray:
        """Mean transition of the annotators of each group, (n_groups, n_classes, n_labels)."""
        shares = self.prior.shares[:, :, None, None]
        return (shares * self.prior.means(self.layout.design)).sum(axis=0)

    @property
    def label_mass(self) -> np.ndarray:
        """Expected number of answers, (n_annotators, n_classes, n_labels)."""
        layout = self.layout
        mass = np.zeros((len(layout.group), *layout.design.shape[1:]))
        mass[layout.annotator, :, layout.label] = self.counts
        return mass

    @property
    def transitions(self) -> np.ndarray:
        """Posterior means of p(label | class), (n_annotators, n_classes, n_labels).

        A new row with several answers has p(class | x, answers) ∝ p(class | x) · Π_a of these.
        """
        return np.asarray(self.lazy_transitions)

    @property
    def lazy_transitions(self) -> "LazyTransitions":
        """The same, computed only for the annotators that are asked for."""
        order = np.lexsort((self.layout.label, self.layout.annotator))
        return LazyTransitions(self, order, np.arange(len(self.layout.group)))


def infer_from_annotators(
    class_proba,
    answers: Answers,
    transitions=None,
    *,
    strength=np.inf,
    designs=None,
    sample_weight=None,
    start: AnnotatorInference | None = None,
    resume=False,
    accuracy=True,
    tol=1e-3,
    max_iter=200,
) -> AnnotatorInference:
    """Infer the class of each row and the transition of each annotator from all answers.

    Parameters
    ----------
    class_proba : array of shape (n_rows, n_classes) or None
        p(class | x), which stays as it is. None: class shares, equal for all rows, are estimated
        too; this is the model of Dawid and Skene with shrunk transitions.
    answers : Answers
        See `looselabels.annotations`.
    transitions : mapping or array of shape (n_annotators, n_classes, n_labels), optional
        Transitions that are specified, by the index of the annotator.
    strength : float, default=inf
        How many answers per class each of `transitions` is worth. inf: they stay fixed; otherwise
        T_a[y] ~ Dirichlet(strength · specified[y]), and answers move it. Zeros stay.
    designs : array of shape (n_classes, n_labels) or mapping, optional
        p(label | class) if no label is wrong, for all annotators or by the index of the annotator;
        the key None is for all others, of which each has the part that its label set allows
        (`label_sets`). By default label k names class k. Annotators with equal designs share a
        pooled transition; one with a design of its own shrinks to that, with a level of chance.
    sample_weight : array of shape (n_rows,), optional
        How often each row counts.
    start : AnnotatorInference, optional
        An earlier result for the same answers and designs, to start from.
    resume : bool
        Whether `start` is from the same `class_proba`, so that the passes can go on where it ended.
    accuracy : bool
        Whether to estimate how often the answers of each annotator are right.
    tol : float
        Converged if no probability changes by more in one pass.
    max_iter : int
        Largest number of passes.

    Examples
    --------
    Two annotators agree with each other, and the third one does not:

    >>> row, annotator = np.divmod(np.arange(12), 3)
    >>> label = np.array([0, 0, 1, 1, 1, 1, 0, 0, 0, 1, 1, 0])
    >>> found = infer_from_annotators(None, Answers(row, annotator, label, 4, 3, 2))
    >>> found.class_proba_given_label.argmax(axis=1)
    array([0, 1, 0, 1])
    >>> found.converged
    True
    """
    layout = None if start is None else start.layout  # of the same answers
    problem = Problem.read(
        class_proba, answers, transitions, strength, designs, sample_weight, layout
    )
    if start is None:
        guess = problem.first_guess()
    elif resume:
        guess = Guess(start.counts, start.class_prior, start.prior)
    else:
        guess = problem.guess_from(start.class_proba_given_label, start.prior)
    objective: list[float] = []
    first = problem.run_pass(guess)
    while True:
        # two passes and an extrapolation (SQUAREM), which is dropped if the objective falls
        second = problem.next_pass(first)
        change = float(np.abs(second.class_proba - first.class_proba).max())
        objective += [first.objective, second.objective]
        if change <= tol or len(objective) >= max_iter:
            powers = INDEPENDENT if start is None else start.powers
            return _result(problem, second, objective, change, tol, powers, accuracy)
        third = problem.next_guess(second)
        jumped = problem.run_pass(extrapolate(first.guess, second.guess, third))
        best = jumped if jumped.objective >= second.objective else second
        objective.append(best.objective)
        # steps that are taken at once go back and forth in the end, and jumps become short
        first = problem.next_pass(best, at_once=change > COARSE)


def _result(problem: Problem, last: Pass, objective, change, tol, powers: Powers, accuracy):
    """Return the result, with classes from transitions without the row's own answers."""
    class_proba, powers, chances = problem.without_own_answers(last, powers, accuracy)
    votes, weight = problem.votes, problem.weight
    annotator, n_annotators = problem.annotator[votes.indices], problem.answers.n_annotators
    right = None
    if accuracy:
        of_answers = np.repeat(weight, np.diff(votes.indptr))
        right = count_right(annotator, chances[0], chances[1], of_answers, n_annotators)
    return AnnotatorInference(
        class_proba_given_label=class_proba,
        class_prior=weight @ class_proba / weight.sum(),
        n_answers=np.bincount(annotator, minlength=n_annotators),
        accuracy=right,
        layout=problem.layout,
        counts=last.guess.counts,
        prior=last.guess.prior,
        levels=last.levels,
        fixed=problem.fixed,
        missing_label=problem.answers.missing_label,
        objective=objective,
        n_iter=len(objective),
        stationarity=change,
        converged=change <= tol,
        powers=powers,
    )


def answer_likelihood(transitions, answers: Answers, chance=None) -> np.ndarray:
    """Return log Π_a T_a[y, answer_a] of each row and class y, shifted so that the maximum is 0.

    `transitions` has the shape (n_annotators, n_classes, n_labels), an array or `LazyTransitions`.
    `chance` is the share of equally likely labels that is added to each of them. Rows without
    answers are 0.

    >>> transitions = np.array([[[0.9, 0.1], [0.2, 0.8]]])
    >>> answers = Answers(np.array([1]), np.array([0]), np.array([0]), 2, 1, 2)
    >>> np.exp(answer_likelihood(transitions, answers)).round(3)
    array([[1.   , 1.   ],
           [1.   , 0.222]])
    """

    def logs(annotator, label):
        if isinstance(transitions, LazyTransitions):
            proba = transitions.of_answers(annotator, label)
        else:
            proba = transitions[annotator, :, label]
        if chance is not None:
            added = chance[annotator][:, None]
            proba = (1 - added) * proba + added / transitions.shape[2]
        return np.log(np.maximum(proba, IMPOSSIBLE))

    votes, annotator, label = sort_into_slots(answers)
    of_slots, baseline = logs(annotator, label), np.zeros(transitions.shape[1])
    if answers.missing_label is not None:
        everyone = np.arange(len(transitions))
        silent = logs(everyone, np.full(len(everyone), answers.missing_label))
        of_slots, baseline = of_slots - silent[annotator], silent.sum(axis=0)
    found = votes @ of_slots + baseline
    return found - found.max(axis=1, keepdims=True)


class AnnotatorAccuracy(NamedTuple):
    """How often the answers of each annotator are right."""

    n_answers: np.ndarray  #: (n_annotators,)
    accuracy: np.ndarray  #: share of answers that are right
    low: np.ndarray  #: lower end of its interval
    high: np.ndarray  #: upper end
    confusions: list  #: per annotator: (class, label, share of all answers), most frequent first


def annotator_accuracy(found: AnnotatorInference, level=0.9, max_confusions=3) -> AnnotatorAccuracy:
    """Return how often the answers of each annotator are right, with an interval.

    An answer is right if the class of the row can have this label by design; "no answer" is not
    counted. The accuracy is what further answers of the same kind would show; the class of a row is
    what x and the other annotators say, so that no annotator confirms itself.

    >>> row, annotator = np.divmod(np.arange(300), 3)
    >>> label = np.where((annotator == 2) & (row % 4 == 0), 1 - row % 2, row % 2)
    >>> found = infer_from_annotators(None, Answers(row, annotator, label, 100, 3, 2))
    >>> quality = annotator_accuracy(found)
    >>> quality.accuracy.round(2)
    array([0.98, 0.98, 0.75])
    >>> quality.confusions[2]
    [(0, 1, 0.25)]
    """
    from scipy.special import betaincinv

    if found.accuracy is None:
        raise ValueError("The accuracy was not estimated: infer_from_annotators(…, accuracy=True).")
    confusions = _most_frequent_confusions(found, max_confusions)
    a, b = found.accuracy.beta()
    low, high = betaincinv(a, b, (1 - level) / 2), betaincinv(a, b, (1 + level) / 2)
    return AnnotatorAccuracy(found.n_answers, a / (a + b), low, high, confusions)


def _most_frequent_confusions(found: AnnotatorInference, most) -> list[list]:
    """Return the wrong answers of each annotator as (class, label, share of the answers)."""
    layout = found.layout
    wrong = found.counts * ~layout.of_slots(layout.right)
    wrong[layout.label == found.missing_label] = 0
    slot, y = np.nonzero(wrong > 0.5)
    who, label, mass = layout.annotator[slot], layout.label[slot], wrong[slot, y]
    order = np.lexsort((label, y, -mass, who))
    ends = np.cumsum(np.bincount(who, minlength=len(layout.group)))
    rank = np.arange(len(who)) - np.append(0, ends)[who[order]]
    order = order[rank < most]
    confusions: list[list] = [[] for _ in layout.group]
    for a, k, s, m in zip(*(x[order].tolist() for x in (who, y, label, mass)), strict=True):
        confusions[a].append((k, s, round(m / max(int(found.n_answers[a]), 1), 4)))
    return confusions
