"""Several annotators per row: p(class | x, answers) ∝ p(class | x) · Π_a T_a[class, answer_a].

Each annotator a has a transition T_a of its own, shrunk to that of annotators like it
(`annotator_levels`). Inference is variational Bayes: classes and transitions have independent
posteriors, and every pass raises the evidence lower bound, the objective. The answers are one
sparse matrix of rows × slots, a slot being one annotator with one label that it used; a pass is two
products with it, and its time is linear in the answers.

In the end each row is inferred once more, from transitions without its own answers: a row whose
annotators have few answers would otherwise confirm itself.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from looselabels._validation import (
    as_numpy,
    check_2d,
    check_row_stochastic,
    check_sample_weight,
)
from looselabels.annotations import Answers
from looselabels.estimation.annotator_accuracy import RightAnswers, count_right
from looselabels.estimation.annotator_levels import (
    STRENGTHS,
    Layout,
    Prior,
    first_prior,
    log_density,
    posterior,
    raise_evidence,
    with_noise,
)

IMPOSSIBLE = 1e-100  # stands for a zero of a specified transition: logarithms stay finite
UNLIKELY = 1e-12  # stands for a zero of p(class | x), which is an estimate and no promise
CLASS_STRENGTH = 30.0  # rows per class that equal class shares are worth
FIRST_NOISE = 0.3  # chance answers of all annotators at the start: a soft majority vote
BLOCK = 100_000  # answers that are taken together where each has numbers of its own
MAX_JUMP = 32.0  # how many passes one extrapolation can stand for, about


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
        for weight, cells in zip(levels, self.prior.pseudocounts(layout.design), strict=True):
            filled = mass + cells[layout.group]
            found += filled * (weight[:, None] / filled.sum(axis=2))[:, :, None]
        for annotator, transition in self.fixed.items():
            found[annotator] = transition
        return found


def infer_from_annotators(
    class_proba,
    answers: Answers,
    transitions=None,
    *,
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
        Transitions that are known and stay fixed, by the index of the annotator.
    designs : array of shape (n_classes, n_labels) or mapping, optional
        p(label | class) if no label is wrong, for all annotators or by the index of the annotator.
        Annotators with the same design share a pooled transition. By default label k names class k;
        if "no answer" is a label, each annotator has a design of the labels that it uses.
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
    problem = _Problem.read(class_proba, answers, transitions, designs, sample_weight)
    guess = problem.first_guess() if start is None else problem.guess_from(start)
    objective: list[float] = []
    while True:
        # two passes and an extrapolation (SQUAREM), which is dropped if the objective falls
        first = problem.run_pass(guess)
        second = problem.run_pass(first.guess)
        change = float(np.abs(second.class_proba - first.class_proba).max())
        objective += [first.objective, second.objective]
        if change <= tol or len(objective) >= max_iter:
            return problem.result(second, first.guess, objective, change, tol)
        jumped = problem.run_pass(_extrapolate(guess, first.guess, second.guess))
        better = jumped if jumped.objective >= second.objective else second
        objective.append(better.objective)
        guess = better.guess


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
    votes, annotator, label = _votes(answers)
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
    wrong = found.label_mass[:, :, given] * (layout.design == 0)[layout.group][:, :, given]
    labels, total = np.flatnonzero(given), np.maximum(found.n_answers, 1)
    confusions = [
        _most_frequent(mass, labels, n, max_confusions)
        for mass, n in zip(wrong, total, strict=True)
    ]
    a, b = found.accuracy.beta()
    low, high = betaincinv(a, b, (1 - level) / 2), betaincinv(a, b, (1 + level) / 2)
    return AnnotatorAccuracy(found.n_answers, a / (a + b), low, high, confusions)


# ------------------------------------------------------------------------------------- one problem


class _Guess(NamedTuple):
    """Everything that a pass starts from."""

    counts: np.ndarray  # (n_slots, n_classes): expected answers
    class_prior: np.ndarray
    prior: Prior


class _Pass(NamedTuple):
    class_proba: np.ndarray  # p(class | x, answers) by the guess that the pass started from
    objective: float  # of that guess
    guess: _Guess  # a better one


class _Problem(NamedTuple):
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
    def read(cls, class_proba, answers, transitions, designs, sample_weight) -> "_Problem":
        """Check the arguments and sort the answers into slots."""
        if class_proba is not None:
            class_proba = _read_class_proba(class_proba, answers)
        fixed = _read_transitions(transitions, answers)
        design, group = _read_designs(designs, answers, class_proba, fixed)
        votes, annotator, label = _votes(answers)
        if answers.missing_label is not None:
            annotator = np.r_[annotator, np.arange(answers.n_annotators)]
            label = np.r_[label, np.full(answers.n_annotators, answers.missing_label)]
        free = ~np.isin(annotator, list(fixed))
        known = np.zeros((len(annotator), design.shape[1]))
        for a, transition in fixed.items():
            mine = annotator == a
            known[mine] = np.log(np.maximum(transition.T[label[mine]], IMPOSSIBLE))
        layout = Layout.of(annotator[free], label[free], group, design)
        _check_labels(layout)
        weight = check_sample_weight(sample_weight, np.empty((answers.n_rows, 1)))
        weight = np.ones(answers.n_rows) if weight is None else weight
        log_proba = None if class_proba is None else np.log(np.maximum(class_proba, UNLIKELY))
        slots = annotator, label, layout, free
        return cls(answers, votes, votes.T.tocsr(), *slots, fixed, known, log_proba, weight)

    def first_guess(self) -> _Guess:
        """Return a soft majority vote: annotators make no errors but chance, all the same rate."""
        n_classes = self.known.shape[1]
        equal = np.full(n_classes, 1 / n_classes)
        start = self.layout.of_slots(with_noise(self.layout.design, FIRST_NOISE))
        class_proba, _ = self.classes_given(np.log(np.maximum(start, IMPOSSIBLE)), equal)
        return self.improve(_Guess(None, equal, first_prior(self.layout)), class_proba)

    def guess_from(self, start: AnnotatorInference) -> _Guess:
        """Return the guess of an earlier result for the same rows."""
        return self.improve(
            _Guess(None, start.class_prior, start.prior), start.class_proba_given_label
        )

    def run_pass(self, guess: _Guess) -> _Pass:
        """Infer the classes from a guess, and a better guess from the classes."""
        known = posterior(self.layout, guess.prior, guess.counts)
        class_proba, log_rows = self.classes_given(known.mean_log, guess.class_prior)
        objective = self.weight @ log_rows + known.log_evidence.sum()
        objective -= (guess.counts * known.mean_log).sum()
        objective += log_density(guess.prior, self.layout.design)
        if self.log_proba is None:
            objective += CLASS_STRENGTH * np.log(guess.class_prior).sum()
        return _Pass(class_proba, float(objective), self.improve(guess, class_proba))

    def improve(self, guess: _Guess, class_proba) -> _Guess:
        """Return counts, class shares and prior that follow from the classes."""
        counts = self.count(class_proba)
        class_prior = self.weight @ class_proba + CLASS_STRENGTH
        return _Guess(
            counts,
            class_prior / class_prior.sum(),
            raise_evidence(self.layout, guess.prior, counts),
        )

    def count(self, class_proba) -> np.ndarray:
        """Return the expected answers of each estimated slot and class."""
        weighted = class_proba * self.weight[:, None]
        counts = self.columns @ weighted
        if self.answers.missing_label is not None:
            n_annotators, listed = self.answers.n_annotators, self.annotator[: len(counts)]
            given = np.zeros((n_annotators, counts.shape[1]))
            np.add.at(given, listed, counts)
            counts = np.vstack([counts, np.maximum(weighted.sum(axis=0) - given, 0)])
        return counts[self.free]

    def classes_given(self, logs, class_prior):
        """Return p(class | x, answers) for log T of the estimated slots, and log p(answers)."""
        of_slots, baseline = self.split(logs)
        scores = self.votes @ of_slots
        scores += (np.log(class_prior) if self.log_proba is None else self.log_proba) + baseline
        return _normalize_rows(scores)

    def split(self, logs):
        """Return log T of the slots of answers, relative to "no answer", and the log of that."""
        of_slots = self.known.copy()
        of_slots[self.free] = logs
        if self.answers.missing_label is None:
            return of_slots, 0.0
        listed = self.votes.shape[1]
        silent = of_slots[listed:]
        return of_slots[:listed] - silent[self.annotator[:listed]], silent.sum(axis=0)

    def without_own_answers(self, guess: _Guess, class_proba):
        """Return p(class | x, answers) from transitions without the row's own answers.

        Also return how likely each answer is, if it is right and if it is wrong, for the class that
        x and the other annotators say the row has.
        """
        known = posterior(self.layout, guess.prior, guess.counts)
        mean, size = np.exp(self.known), np.ones_like(self.known)
        mean[self.free], size[self.free] = known.mean, known.size[self.layout.annotator]
        silent = np.zeros((self.answers.n_annotators, mean.shape[1]))
        if self.answers.missing_label is not None:
            silent = np.log(mean[self.votes.shape[1] :])
        log_proba = np.log(guess.class_prior)[None] if self.log_proba is None else self.log_proba
        right, wrong = self.right_and_wrong(guess.prior.common)
        found, chances = np.empty_like(class_proba), np.empty((2, self.votes.nnz))
        for rows in _blocks(self.votes):
            slot, row, sums = _answers_of(self.votes, rows)
            weight = self.weight[rows][row]
            own = class_proba[rows][row] * (weight * self.free[slot])[:, None]
            kept = np.log(np.maximum(mean[slot] * size[slot] - own, IMPOSSIBLE))
            kept -= np.log(size[slot] - own)
            scores = sums @ (kept - silent[self.annotator[slot]]) + silent.sum(axis=0)
            scores += log_proba if self.log_proba is None else log_proba[rows]
            found[rows], _ = _normalize_rows(scores)
            others = np.log(np.maximum(found[rows], IMPOSSIBLE))[row] - kept
            if self.answers.missing_label is not None:  # these annotators did answer
                others += np.log1p(-np.minimum(np.exp(silent), 1 - 1e-9))[self.annotator[slot]]
            others, _ = _normalize_rows(others)
            block = slice(*self.votes.indptr[[rows.start, rows.stop]])
            chances[0, block] = (others * right[slot]).sum(axis=1)
            chances[1, block] = (others * wrong[slot]).sum(axis=1)
        return found, chances

    def right_and_wrong(self, common):
        """Return p(label | class) of all slots among right answers, and among wrong answers."""
        given = np.arange(self.answers.n_labels) != self.answers.missing_label
        possible = self.layout.design > 0
        parts = (self.layout.design * given, np.where(possible, 0, common) * given)
        sums = [part.sum(axis=2, keepdims=True) for part in parts]
        return [
            self.of_slots(part / np.where(total > 0, total, 1))
            for part, total in zip(parts, sums, strict=True)
        ]

    def of_slots(self, cells) -> np.ndarray:
        """Return the numbers of (n_groups, n_classes, n_labels) for all slots."""
        return cells.swapaxes(1, 2)[self.layout.group[self.annotator], self.label]

    def result(self, last: _Pass, guess, objective, change, tol) -> AnnotatorInference:
        """Return what was found."""
        class_proba, chances = self.without_own_answers(guess, last.class_proba)
        row = np.repeat(np.arange(self.answers.n_rows), np.diff(self.votes.indptr))
        annotator, n = self.annotator[self.votes.indices], self.answers.n_annotators
        return AnnotatorInference(
            class_proba_given_label=class_proba,
            class_prior=self.weight @ class_proba / self.weight.sum(),
            n_answers=np.bincount(annotator, minlength=n),
            accuracy=count_right(annotator, *chances, self.weight[row], n),
            layout=self.layout,
            counts=guess.counts,
            prior=guess.prior,
            fixed=self.fixed,
            missing_label=self.answers.missing_label,
            objective=objective,
            n_iter=len(objective),
            stationarity=change,
            converged=change <= tol,
        )


def _extrapolate(first: _Guess, second: _Guess, third: _Guess) -> _Guess:
    """Return where the passes are heading: a step along their change, longer if it is steady."""
    a, b, c = (_as_vectors(guess) for guess in (first, second, third))
    change = [y - x for x, y in zip(a, b, strict=True)]
    bend = [z - y - d for y, z, d in zip(b, c, change, strict=True)]
    length, curve = (np.sqrt(sum((x**2).sum() for x in xs)) for xs in (change, bend))
    step = float(np.clip(length / max(curve, 1e-300), 1, MAX_JUMP))
    moved = [x + 2 * step * d + step**2 * v for x, d, v in zip(a, change, bend, strict=True)]
    counts, class_prior, common, shares, strength = moved
    squares = [np.maximum(x, 1e-8) ** 2 for x in (class_prior, common, shares)]
    squares[1] = np.where(first.prior.common > 0, squares[1], 0)
    class_prior, common, shares = squares
    prior = Prior(
        common / common.sum(axis=2, keepdims=True),
        np.clip(np.exp(strength), *STRENGTHS),
        shares / shares.sum(axis=0),
    )
    return _Guess(np.maximum(counts, 0) ** 2, class_prior / class_prior.sum(), prior)


def _as_vectors(guess: _Guess) -> list[np.ndarray]:
    """Return square roots and logarithms, in which steps of EM are about equally long."""
    common, strength, shares = guess.prior
    roots = [np.sqrt(x) for x in (guess.counts, guess.class_prior, common, shares)]
    return [*roots, np.log(strength)]


# ------------------------------------------------------------------------------------------- parts


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


def _answers_of(votes, rows):
    """Return slot and row of the answers in a block of rows, and the matrix that sums them."""
    from scipy.sparse import csr_array

    ends = votes.indptr[rows.start : rows.stop + 1]
    slot, ends = votes.indices[ends[0] : ends[-1]], ends - ends[0]
    row = np.repeat(np.arange(len(ends) - 1), np.diff(ends))
    ones, place = np.ones(len(slot)), np.arange(len(slot))
    return slot, row, csr_array((ones, place, ends), shape=(len(ends) - 1, len(slot)))


def _votes(answers: Answers):
    """Return the sparse matrix of rows × slots, and annotator and label of each slot."""
    from scipy.sparse import csr_array

    row, annotator, label = answers[:3]
    if answers.missing_label is not None:  # listed or not, they are in the baseline
        listed = label != answers.missing_label
        row, annotator, label = row[listed], annotator[listed], label[listed]
    code, slot = np.unique(annotator * answers.n_labels + label, return_inverse=True)
    ends = np.r_[0, np.cumsum(np.bincount(row, minlength=answers.n_rows))]
    votes = csr_array((np.ones(len(row)), slot, ends), shape=(answers.n_rows, len(code)))
    return votes, *np.divmod(code, answers.n_labels)


def _read_class_proba(class_proba, answers) -> np.ndarray:
    class_proba = as_numpy("class_proba", class_proba)
    class_proba = check_row_stochastic("class_proba", class_proba, tol=1e-5)
    if len(class_proba) != answers.n_rows:
        raise ValueError(
            f"class_proba has {len(class_proba)} rows; the answers are for {answers.n_rows}."
        )
    return class_proba


def _read_transitions(transitions, answers) -> dict:
    """Return the specified transitions by annotator."""
    if transitions is None:
        return {}
    if not isinstance(transitions, Mapping):
        transitions = dict(enumerate(transitions))
    return {
        a: check_row_stochastic(f"transitions[{a}]", _of_annotator("transitions", a, t, answers))
        for a, t in transitions.items()
    }


def _of_annotator(name, annotator, matrix, answers) -> np.ndarray:
    """Return one annotator's matrix, or raise an error if it does not fit the answers."""
    if not 0 <= annotator < answers.n_annotators:
        raise ValueError(
            f"{name} names annotator {annotator}; the {answers.n_annotators} annotators are "
            "counted from 0."
        )
    matrix = as_numpy(f"{name}[{annotator}]", matrix)
    check_2d(f"{name}[{annotator}]", matrix)
    if matrix.shape[1] != answers.n_labels:
        raise ValueError(
            f"{name}[{annotator}] has {matrix.shape[1]} columns; there are {answers.n_labels} "
            "labels."
        )
    return matrix


def _read_designs(designs, answers, class_proba, fixed):
    """Return the different designs, (n_groups, n_classes, n_labels), and that of each annotator."""
    own = designs if isinstance(designs, Mapping) else {}
    own = {a: _of_annotator("designs", a, d, answers) for a, d in own.items()}
    shapes = {len(matrix) for matrix in (*own.values(), *fixed.values())}
    if class_proba is not None:
        shapes.add(class_proba.shape[1])
    if designs is not None and not own:
        common = as_numpy("designs", designs)
        own = dict.fromkeys(range(answers.n_annotators), common)
        shapes.add(len(common))
    n_labels = answers.n_labels - (answers.missing_label is not None)
    n_classes = shapes.pop() if shapes else n_labels
    if shapes:
        raise ValueError(
            f"class_proba, transitions and designs must have as many classes; they have "
            f"{sorted({n_classes, *shapes})}."
        )
    default = _default_designs(answers, n_classes)
    distinct: dict[bytes, int] = {}
    found: list[np.ndarray] = []
    group = np.zeros(answers.n_annotators, np.intp)
    for a in range(answers.n_annotators):
        design = own.get(a)
        design = default(a) if design is None else design
        key = design.tobytes()
        if key not in distinct:
            distinct[key] = len(found)
            found.append(design)
        group[a] = distinct[key]
    return np.array(found), group


def _default_designs(answers, n_classes):
    """Return a function that gives the design of an annotator whose labels name the classes."""
    labels = np.array([s for s in range(answers.n_labels) if s != answers.missing_label])
    named = min(n_classes, len(labels))
    design = np.zeros((n_classes, answers.n_labels))
    design[np.arange(named), labels[:named]] = 1
    if answers.missing_label is None:
        design[design.sum(axis=1) == 0] = 1 / answers.n_labels
        return lambda annotator: design
    used = np.zeros((answers.n_annotators, answers.n_labels), bool)
    used[answers.annotator, answers.label] = True

    def of_labels_used(annotator):
        own = design * used[annotator] / 2
        own[:, answers.missing_label] = 1 - own.sum(axis=1)
        return own

    return of_labels_used


def _check_labels(layout: Layout):
    """Raise an error if an annotator gave an answer that its design does not have."""
    possible = layout.design.any(axis=1)[layout.group[layout.annotator], layout.label]
    if not possible.all():
        i = int(np.argmin(possible))
        raise ValueError(
            f"annotator {layout.annotator[i]} answered label {layout.label[i]}, which its design "
            "gives to no class; add the label to its design."
        )


def _most_frequent(mass, labels, n_answers, max_confusions) -> list:
    """Return the largest numbers of a matrix as (class, label, share of the answers)."""
    order = np.argsort(-mass, axis=None, kind="stable")[:max_confusions]
    cells = [np.unravel_index(i, mass.shape) for i in order]
    return [
        (int(y), int(labels[s]), round(float(mass[y, s] / n_answers), 4))
        for y, s in cells
        if mass[y, s] > 0.5
    ]
