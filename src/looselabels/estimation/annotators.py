"""Several annotators per row: p(class | x, answers) ∝ p(class | x) · Π_a T_a[class, answer_a].

Each annotator a has a transition T_a of its own. Few answers say little about it, so its rows are
shrunk: T_a[y] ~ Dirichlet(A_g[y]), with pseudocounts A_g that all annotators of a group g share.
A group is the annotators whose labels mean the same. Pseudocounts are those under which the
answers are most likely; the pooled transition, their mean, is itself shrunk to what the labels mean
(the design) with one rate of wrong labels.

Inference is variational Bayes: classes and transitions have independent posteriors, and each step
raises the evidence lower bound (the objective). The answers are one sparse matrix: rows × slots,
where a slot is one annotator with one of the labels that it used. A pass is two products with it.
"""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from looselabels._validation import as_numpy, check_row_stochastic, check_sample_weight
from looselabels.annotations import Answers

STRENGTHS = (0.5, 10_000.0)  # answers per class that the pooled transition can be worth
DESIGN_STRENGTH = 2.0  # annotators per class that the design is worth, for the pooled transition
IMPOSSIBLE = 1e-100  # stands for a zero of a specified transition: logarithms stay finite
UNLIKELY = 1e-12  # stands for a zero of p(class | x), which is an estimate and no promise


class Slots(NamedTuple):
    """Which annotators used which labels: one slot per annotator and label, and their counts."""

    annotator: np.ndarray
    label: np.ndarray
    counts: np.ndarray  #: (n_slots, n_classes): expected number of such answers for each class


class AnnotatorInference(NamedTuple):
    """What several annotators say about the classes, and what that says about them."""

    class_proba_given_label: np.ndarray  #: (n_rows, n_classes): p(class | x, all answers of a row)
    class_prior: np.ndarray  #: (n_classes,): class shares; the mean of the above
    slots: Slots  #: expected counts, without the zeros
    pseudocounts: np.ndarray  #: (n_groups, n_classes, n_labels): what transitions are shrunk to
    design: np.ndarray  #: (n_groups, n_classes, n_labels): p(label | class) if none is wrong
    group: np.ndarray  #: (n_annotators,): whose labels mean the same
    fixed: dict  #: annotators whose transition was specified, and that transition
    n_answers: np.ndarray  #: (n_annotators,)
    missing_label: int | None  #: the label that "no answer" means
    objective: list  #: evidence lower bound after each pass; it never decreases
    n_iter: int  #: passes over the answers
    stationarity: float  #: largest change of a probability in the last pass
    converged: bool  #: whether that is below `tol`

    @property
    def pooled(self) -> np.ndarray:
        """The transition that the annotators of each group are shrunk to."""
        return self.pseudocounts / self.pseudocounts.sum(axis=2, keepdims=True)

    @property
    def label_mass(self) -> np.ndarray:
        """Expected number of answers, shape (n_annotators, n_classes, n_labels)."""
        mass = np.zeros((len(self.group), *self.pseudocounts.shape[1:]))
        mass[self.slots.annotator, :, self.slots.label] = self.slots.counts
        return mass

    @property
    def transitions(self) -> np.ndarray:
        """Posterior means of p(label | class), shape (n_annotators, n_classes, n_labels)."""
        found = self.label_mass + self.pseudocounts[self.group]
        found /= found.sum(axis=2, keepdims=True)
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
    tol=1e-4,
    max_iter=200,
) -> AnnotatorInference:
    """Infer the class of each row and the transition of each annotator from all answers.

    Parameters
    ----------
    class_proba : array of shape (n_rows, n_classes) or None
        p(class | x), which stays as it is. None: class shares, equal for all rows, are estimated
        too; this is Dawid and Skene's model with shrunk transitions.
    answers : Answers
        See `looselabels.annotations`.
    transitions : mapping or array of shape (n_annotators, n_classes, n_labels), optional
        Transitions that are known and stay fixed, by the index of the annotator.
    designs : array of shape (n_classes, n_labels) or mapping, optional
        p(label | class) if no label is wrong, for all annotators or by annotator. Annotators with
        the same design share a pooled transition. By default label k names class k, and the missing
        label, if there is one, names none.
    sample_weight : array of shape (n_rows,), optional
        How often each row counts.
    start : AnnotatorInference, optional
        An earlier result for the same rows, to start from.
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
    state = problem.first_state() if start is None else problem.state_from(start)
    objective: list[float] = []
    change = np.inf
    while len(objective) < max_iter and change > tol:
        last = state.proba
        state = problem.step(state)
        change = float(np.abs(state.proba - last).max())
        objective.append(state.objective)
    return problem.result(state, objective, change, tol)


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
    weights = logs[annotator, :, label]
    found = np.zeros((answers.n_rows, logs.shape[1]))
    if answers.missing_label is not None:
        silent = logs[:, :, answers.missing_label]
        weights = weights - silent[annotator]
        found += silent.sum(axis=0)
    found += votes @ weights
    return found - found.max(axis=1, keepdims=True)


class AnnotatorAccuracy(NamedTuple):
    """How often the answers of each annotator are right."""

    n_answers: np.ndarray  #: (n_annotators,)
    accuracy: np.ndarray  #: share of answers that are right: posterior mean
    low: np.ndarray  #: lower end of the interval
    high: np.ndarray  #: upper end
    confusions: list  #: per annotator: (class, label, share of wrong answers), most frequent first


def annotator_accuracy(found: AnnotatorInference, level=0.9, max_confusions=3) -> AnnotatorAccuracy:
    """Return how often the answers of each annotator are right, with an interval.

    An answer is right if the class of the row can have this label by design. The accuracy of
    annotator a is Σ_y p_a(y) Σ_s T_a[y, s] over right labels s, where p_a are the class shares
    among its answers; the posterior of T_a gives the interval. "No answer" is not counted.
    """
    from scipy.stats import beta

    given = np.arange(found.pseudocounts.shape[2]) != found.missing_label
    right = (found.design > 0)[found.group][:, :, given]
    mass = found.label_mass[:, :, given]
    dirichlet = mass + found.pseudocounts[found.group][:, :, given]
    total = dirichlet.sum(axis=2)
    rate = (dirichlet * right).sum(axis=2) / total
    for a, transition in found.fixed.items():
        kept = transition[:, given]
        rate[a] = (kept * right[a]).sum(axis=1) / np.maximum(kept.sum(axis=1), IMPOSSIBLE)
        total[a] = np.inf
    # one more answer, by the class shares of all rows, for annotators with few or none
    shares = mass.sum(axis=2) + found.class_prior
    shares /= shares.sum(axis=1, keepdims=True)
    mean = (shares * rate).sum(axis=1)
    variance = (shares**2 * rate * (1 - rate) / (total + 1)).sum(axis=1)
    low, high = _beta_interval(beta, mean, variance, level)
    confusions = [_confusions(m, r, max_confusions) for m, r in zip(mass, right, strict=True)]
    return AnnotatorAccuracy(found.n_answers, mean, low, high, confusions)


# -------------------------------------------------------------------------------------------- parts


class _State(NamedTuple):
    """One step of the inference."""

    proba: np.ndarray  # p(class | x, answers)
    strength: np.ndarray  # (n_groups,)
    mean: np.ndarray  # (n_groups, n_classes, n_labels): the pooled transitions
    counts: np.ndarray  # (n_slots, n_classes): those that the transitions were learned from
    class_prior: np.ndarray
    objective: float


class _Problem(NamedTuple):
    """All that stays the same during the inference."""

    answers: Answers
    votes: object  # sparse, (n_rows, n_listed): 1 where a row has this answer of this annotator
    annotator: np.ndarray  # of each slot: first the listed answers, then the missing ones
    label: np.ndarray
    n_listed: int
    by_annotator: object  # sparse, (n_annotators, n_slots): sums slots of an annotator
    by_cell: object  # sparse, (n_groups · n_labels, n_slots): sums slots of a group and label
    group: np.ndarray
    design: np.ndarray
    fixed: dict
    free: np.ndarray  # (n_annotators,): whose transition is estimated
    known: np.ndarray  # (n_slots, n_classes): log T of fixed annotators, otherwise 0
    log_proba: np.ndarray | None  # log p(class | x); None: class shares are estimated
    weight: np.ndarray

    @classmethod
    def read(cls, class_proba, answers, transitions, designs, sample_weight):
        """Check the arguments and sort the answers into slots."""
        n_annotators, n_labels = answers.n_annotators, answers.n_labels
        if class_proba is not None:
            class_proba = check_row_stochastic(
                "class_proba", as_numpy("class_proba", class_proba), tol=1e-5
            )
        fixed = _read_transitions(transitions, n_annotators)
        design, group = _read_designs(designs, answers, class_proba, fixed)
        votes, annotator, label = _votes(answers)
        n_listed = len(annotator)
        if answers.missing_label is not None:
            annotator = np.r_[annotator, np.arange(n_annotators)]
            label = np.r_[label, np.full(n_annotators, answers.missing_label)]
        known = np.zeros((len(annotator), design.shape[1]))
        free = np.ones(n_annotators, bool)
        for a, transition in fixed.items():
            free[a], mine = False, annotator == a
            known[mine] = np.log(np.maximum(transition[:, label[mine]].T, IMPOSSIBLE))
        weight = check_sample_weight(sample_weight, np.empty((answers.n_rows, 1)))
        return cls(
            answers,
            votes,
            annotator,
            label,
            n_listed,
            _indicator(annotator, n_annotators),
            _indicator(
                group[annotator] * n_labels + label, len(design) * n_labels, free[annotator]
            ),
            group,
            design,
            fixed,
            free,
            known,
            None if class_proba is None else np.log(np.maximum(class_proba, UNLIKELY)),
            np.ones(answers.n_rows) if weight is None else weight,
        )

    def first_state(self) -> _State:
        """Start from a soft majority vote: all annotators have the design with a rate of 0.3."""
        mean = _with_noise(self.design, np.full(len(self.design), 0.3))
        logs = np.where(self.free[self.annotator, None], 0, self.known)
        free = self.free[self.annotator]
        logs[free] = np.log(mean[self.group[self.annotator], :, self.label])[free]
        prior = np.full(self.design.shape[1], 1 / self.design.shape[1])
        proba, _ = self.classes_given(logs, prior)
        counts = self.count(proba)
        # the pooled transition starts at the average of all annotators, with some of the design
        mass = self.sum_cells(counts) + mean
        wrong = (mass * (self.design == 0)).sum(axis=(1, 2)) / mass.sum(axis=(1, 2))
        mean = mass + DESIGN_STRENGTH * _with_noise(self.design, np.clip(wrong, 0.01, 0.5))
        mean /= mean.sum(axis=2, keepdims=True)
        return _State(proba, np.full(len(mean), 10.0), mean, counts, prior, -np.inf)

    def state_from(self, start: AnnotatorInference) -> _State:
        strength = start.pseudocounts[:, 0].sum(axis=1)
        proba = start.class_proba_given_label
        return _State(proba, strength, start.pooled, self.count(proba), start.class_prior, -np.inf)

    def count(self, proba) -> np.ndarray:
        """Return the expected answers of each slot and class."""
        weighted = proba * self.weight[:, None]
        counts = self.votes.T @ weighted
        if self.answers.missing_label is None:
            return counts
        asked = weighted.sum(axis=0) - self.by_annotator[:, : self.n_listed] @ counts
        return np.vstack([counts, np.maximum(asked, 0)])

    def sum_cells(self, values) -> np.ndarray:
        """Return sums over the free annotators of a group, as (n_groups, n_classes, n_labels)."""
        n_groups, n_classes, n_labels = self.design.shape
        return (self.by_cell @ values).reshape(n_groups, n_labels, n_classes).swapaxes(1, 2)

    def classes_given(self, logs, class_prior):
        """Return p(class | x, answers) given log T of the slots, and log p(answers) of the rows."""
        log_proba = np.log(class_prior) if self.log_proba is None else self.log_proba
        weights = logs[: self.n_listed]
        if self.answers.missing_label is not None:
            silent = logs[self.n_listed :]
            weights = weights - silent[self.annotator[: self.n_listed]]
            log_proba = log_proba + silent.sum(axis=0)
        scores = self.votes @ weights
        scores += log_proba
        top = scores.max(axis=1, keepdims=True)
        scores -= top
        np.exp(scores, out=scores)
        total = scores.sum(axis=1, keepdims=True)
        scores /= total
        return scores, (top + np.log(total))[:, 0]

    def step(self, state: _State) -> _State:
        """Learn pseudocounts, transitions and class shares from the classes, then classes again."""
        from scipy.special import digamma

        counts = self.count(state.proba)
        totals = self.by_annotator @ counts
        strength, mean = state.strength, state.mean
        for _ in range(3):
            strength, mean = self.raise_evidence(counts, totals, strength, mean)
        alpha = self.of_slots(strength, mean)
        sums = strength[self.group][:, None] + totals
        logs = digamma(alpha + counts) - digamma(sums)[self.annotator]
        logs = np.where(self.free[self.annotator, None], logs, self.known)
        prior = self.weight @ state.proba + 1
        prior /= prior.sum()
        proba, log_rows = self.classes_given(logs, prior)
        objective = self.weight @ log_rows + self.evidence(counts, totals, strength, mean)
        objective -= (counts * logs)[self.free[self.annotator]].sum()
        objective += DESIGN_STRENGTH * (self.shrunk_to() * np.log(np.maximum(mean, 1e-300))).sum()
        if self.log_proba is None:
            objective += np.log(prior).sum()
        return _State(proba, strength, mean, counts, prior, float(objective))

    def shrunk_to(self):
        return _with_noise(self.design, np.full(len(self.design), 0.2))

    def of_slots(self, strength, mean):
        pseudocounts = strength[:, None, None] * mean
        return pseudocounts[self.group[self.annotator], :, self.label]

    def evidence(self, counts, totals, strength, mean) -> float:
        """Return the log probability of the counts, transitions of free annotators integrated."""
        from scipy.special import gammaln

        alpha, free = self.of_slots(strength, mean), self.free[self.annotator]
        of_slots = gammaln(alpha + counts) - gammaln(alpha)
        strength = strength[self.group][:, None]
        of_totals = gammaln(strength) - gammaln(strength + totals)
        return of_slots[free].sum() + of_totals[self.free].sum()

    def raise_evidence(self, counts, totals, strength, mean):
        """Move strengths and pooled transitions uphill: fixed-point steps that cannot go down."""
        from scipy.special import digamma

        alpha = self.of_slots(strength, mean)
        gain = self.sum_cells(alpha * (digamma(alpha + counts) - digamma(alpha)))
        of_annotator = strength[self.group][:, None]
        cost = (digamma(of_annotator + totals) - digamma(of_annotator)).sum(axis=1) * self.free
        cost = np.bincount(self.group, cost, minlength=len(strength))
        moved = gain.sum(axis=(1, 2)) / np.maximum(cost, 1e-300)
        strength = np.where(cost > 0, np.clip(moved, *STRENGTHS), strength)
        mean = gain + DESIGN_STRENGTH * self.shrunk_to()
        return strength, mean / mean.sum(axis=2, keepdims=True)

    def result(self, state, objective, change, tol) -> AnnotatorInference:
        listed = np.bincount(self.answers.annotator, minlength=self.answers.n_annotators)
        return AnnotatorInference(
            class_proba_given_label=state.proba,
            class_prior=self.weight @ state.proba / self.weight.sum(),
            slots=Slots(self.annotator, self.label, self.count(state.proba)),
            pseudocounts=state.strength[:, None, None] * state.mean,
            design=self.design,
            group=self.group,
            fixed=self.fixed,
            n_answers=listed,
            missing_label=self.answers.missing_label,
            objective=objective,
            n_iter=len(objective),
            stationarity=change,
            converged=change <= tol,
        )


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


def _indicator(index, n, values=1.0):
    """Return the sparse matrix that sums the items with the same index, shape (n, n_items)."""
    from scipy.sparse import csr_array

    n_items = len(index)
    values = np.broadcast_to(np.asarray(values, float), n_items)
    return csr_array((values, (index, np.arange(n_items))), shape=(n, n_items))


def _with_noise(design, rate) -> np.ndarray:
    """Return designs in which a share `rate` of labels is any other of the labels in use."""
    used = design.any(axis=1, keepdims=True)
    uniform = used / used.sum(axis=2, keepdims=True)
    rate = np.asarray(rate)[:, None, None]
    return (1 - rate) * design + rate * uniform


def _read_transitions(transitions, n_annotators) -> dict:
    """Return the specified transitions by annotator."""
    if transitions is None:
        return {}
    if not isinstance(transitions, Mapping):
        transitions = dict(enumerate(transitions))
    unknown = [a for a in transitions if not 0 <= a < n_annotators]
    if unknown:
        raise ValueError(f"transitions names annotator {unknown[0]}; there are {n_annotators}.")
    return {
        a: check_row_stochastic(f"transitions[{a}]", as_numpy(f"transitions[{a}]", t))
        for a, t in transitions.items()
    }


def _read_designs(designs, answers, class_proba, fixed):
    """Return the different designs, (n_groups, n_classes, n_labels), and that of each annotator."""
    labels = np.delete(np.arange(answers.n_labels), answers.missing_label or [])
    labels = np.array([s for s in range(answers.n_labels) if s != answers.missing_label])
    if isinstance(designs, Mapping):
        own = {a: as_numpy(f"designs[{a}]", d) for a, d in designs.items()}
        common = None
    else:
        own, common = {}, None if designs is None else as_numpy("designs", designs)
    if common is None:
        shapes = [d.shape[0] for d in (*own.values(), *fixed.values())]
        n_classes = shapes[0] if shapes else len(labels)
        if class_proba is not None:
            n_classes = class_proba.shape[1]
        common = np.zeros((n_classes, answers.n_labels))
        named = min(n_classes, len(labels))
        common[np.arange(named), labels[:named]] = 1
        if answers.missing_label is not None:
            common = common / 2
            common[:, answers.missing_label] = 1 - common.sum(axis=1)
        common[common.sum(axis=1) == 0] = 1 / answers.n_labels
    distinct: dict[bytes, int] = {}
    found, group = [], np.zeros(answers.n_annotators, np.intp)
    for a in range(answers.n_annotators):
        design = own.get(a, common)
        key = design.tobytes()
        if key not in distinct:
            distinct[key] = len(found)
            found.append(design)
        group[a] = distinct[key]
    return np.array(found), group


def _beta_interval(beta, mean, variance, level):
    """Return the ends of the intervals of Beta distributions with this mean and variance."""
    tail = (1 - level) / 2
    spread = np.maximum(mean * (1 - mean), 1e-300)
    size = np.maximum(spread / np.maximum(variance, 1e-300) - 1, 1e-3)
    certain = (variance <= 0) | (mean <= 0) | (mean >= 1)
    a, b = np.where(certain, 1, mean * size), np.where(certain, 1, (1 - mean) * size)
    low, high = beta.ppf(tail, a, b), beta.ppf(1 - tail, a, b)
    return np.where(certain, mean, low), np.where(certain, mean, high)


def _confusions(mass, right, max_confusions) -> list:
    """Return the most frequent wrong answers as (class, label, share of all answers)."""
    wrong = np.where(right, 0, mass)
    order = np.argsort(wrong, axis=None)[::-1][:max_confusions]
    total = max(mass.sum(), 1e-300)
    cells = [np.unravel_index(i, mass.shape) for i in order]
    return [(int(y), int(s), float(wrong[y, s] / total)) for y, s in cells if wrong[y, s] > 0.5]
