"""Several annotators per row: p(class | x, answers) ∝ p(class | x) · Π_a T_a[class, answer_a].

Each annotator a has a transition T_a of its own, shrunk to that of annotators like it
(`annotator_levels`). Inference is variational Bayes: classes and transitions have independent
posteriors, and every pass raises the evidence lower bound, the objective. The answers are one
sparse matrix of rows × slots, a slot being one annotator with one label that it used; a pass is two
products with it, and its time is linear in the answers.

In the end each row is inferred once more, from transitions without its own answers: a row whose
annotators have few answers would otherwise confirm itself.
"""

from typing import NamedTuple

import numpy as np

from looselabels.annotations import Answers
from looselabels.estimation.annotator_accuracy import RightAnswers, count_right
from looselabels.estimation.annotator_input import IMPOSSIBLE, sort_into_slots
from looselabels.estimation.annotator_levels import Layout, Prior, counts_at, posterior
from looselabels.estimation.annotator_passes import Guess, Pass, Problem, extrapolate


class AnnotatorInference(NamedTuple):
    """What several annotators say about the classes, and what that says about them."""

    class_proba_given_label: np.ndarray  #: (n_rows, n_classes): p(class | x, all answers of a row)
    class_prior: np.ndarray  #: (n_classes,): class shares, the mean of the above
    n_answers: np.ndarray  #: (n_annotators,)
    accuracy: RightAnswers  #: how often the answers of each annotator are right
    layout: Layout  #: which annotators used which labels; their groups and designs
    counts: np.ndarray  #: (n_slots, n_classes): expected number of such answers for each class
    prior: Prior  #: what is expected of annotators, from which their transitions are shrunk
    fixed: dict  #: transitions that were specified, by annotator
    missing_label: int | None  #: the label that "no answer" means
    objective: list  #: evidence lower bound after each pass; it never decreases
    n_iter: int  #: passes over the answers
    stationarity: float  #: the largest change of a probability that one more pass makes
    converged: bool  #: whether that is at most `tol`

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
        mass, layout = self.label_mass, self.layout
        found = np.zeros_like(mass)
        levels = posterior(layout, self.prior, self.counts).levels
        for level, cells in enumerate(self.prior.pseudocounts(layout.design)):
            mine = counts_at(level, mass.swapaxes(1, 2)).swapaxes(1, 2)
            filled = mine + cells[layout.group]
            found += filled * (levels[level][:, None] / filled.sum(axis=2))[:, :, None]
        for annotator, transition in self.fixed.items():
            found[annotator] = transition
        return found


def infer_from_annotators(
    class_proba,
    answers: Answers,
    transitions=None,
    *,
    strength=np.inf,
    designs=None,
    sample_weight=None,
    start: AnnotatorInference | None = None,
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
        An earlier result for the same rows and annotators, to start from.
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
    problem = Problem.read(class_proba, answers, transitions, strength, designs, sample_weight)
    if start is None:
        guess = problem.first_guess()
    else:
        guess = problem.improve(start.class_proba_given_label, start.prior)
    objective: list[float] = []
    while True:
        # two passes and an extrapolation (SQUAREM), which is dropped if the objective falls
        first = problem.run_pass(guess)
        second = problem.run_pass(first.guess)
        change = float(np.abs(second.class_proba - first.class_proba).max())
        objective += [first.objective, second.objective]
        if change <= tol or len(objective) >= max_iter:
            return _result(problem, first.guess, second, objective, change, tol)
        jumped = problem.run_pass(extrapolate(guess, first.guess, second.guess))
        better = jumped if jumped.objective >= second.objective else second
        objective.append(better.objective)
        guess = better.guess


def _result(problem: Problem, guess: Guess, last: Pass, objective, change, tol):
    """Return the result, with classes from transitions without the row's own answers."""
    class_proba, (right, wrong) = problem.without_own_answers(guess, last.class_proba)
    votes, weight = problem.votes, problem.weight
    annotator, n_annotators = problem.annotator[votes.indices], problem.answers.n_annotators
    of_answers = np.repeat(weight, np.diff(votes.indptr))
    return AnnotatorInference(
        class_proba_given_label=class_proba,
        class_prior=weight @ class_proba / weight.sum(),
        n_answers=np.bincount(annotator, minlength=n_annotators),
        accuracy=count_right(annotator, right, wrong, of_answers, n_annotators),
        layout=problem.layout,
        counts=guess.counts,
        prior=guess.prior,
        fixed=problem.fixed,
        missing_label=problem.answers.missing_label,
        objective=objective,
        n_iter=len(objective),
        stationarity=change,
        converged=change <= tol,
    )


def answer_likelihood(transitions, answers: Answers) -> np.ndarray:
    """Return log Π_a T_a[y, answer_a] of each row and class y, shifted so that the maximum is 0.

    `transitions` has the shape (n_annotators, n_classes, n_labels). Rows without answers are 0.

    >>> transitions = np.array([[[0.9, 0.1], [0.2, 0.8]]])
    >>> answers = Answers(np.array([1]), np.array([0]), np.array([0]), 2, 1, 2)
    >>> np.exp(answer_likelihood(transitions, answers)).round(3)
    array([[1.   , 1.   ],
           [1.   , 0.222]])
    """
    logs = np.log(np.maximum(transitions, IMPOSSIBLE))
    votes, annotator, label = sort_into_slots(answers)
    of_slots, baseline = logs[annotator, :, label], np.zeros(logs.shape[1])
    if answers.missing_label is not None:
        silent = logs[:, :, answers.missing_label]
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

    layout = found.layout
    given = np.arange(layout.design.shape[2]) != found.missing_label
    wrong = found.label_mass[:, :, given] * ~layout.right[layout.group][:, :, given]
    labels, total = np.flatnonzero(given), np.maximum(found.n_answers, 1)
    confusions = [
        _most_frequent(mass, labels, n, max_confusions)
        for mass, n in zip(wrong, total, strict=True)
    ]
    a, b = found.accuracy.beta()
    low, high = betaincinv(a, b, (1 - level) / 2), betaincinv(a, b, (1 + level) / 2)
    return AnnotatorAccuracy(found.n_answers, a / (a + b), low, high, confusions)


def _most_frequent(mass, labels, n_answers, max_confusions) -> list:
    """Return the largest numbers of a matrix as (class, label, share of the answers)."""
    order = np.argsort(-mass, axis=None, kind="stable")[:max_confusions]
    cells = [np.unravel_index(i, mass.shape) for i in order]
    return [
        (int(y), int(labels[s]), round(float(mass[y, s] / n_answers), 4))
        for y, s in cells
        if mass[y, s] > 0.5
    ]
