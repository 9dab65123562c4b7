"""How much x and the answers count, if they are not independent given the class.

The product p(class | x) Π_a T_a[class, s_a] counts everything once if the answers, and x, are
independent given the class. Rules that look for similar words are not, and if x contains the words
too, the same is said several times: the product is then far too certain. So each kind of evidence
has a power,

    p(class | x, answers) ∝ p(class) · (p(class | x) / p(class))^α · (Π_a T_a[class, s_a])^β,

and α, β ≤ 1 are those under which each answer is most likely, given x and the *other* answers for
its row. If evidence is counted twice, the others claim to know the answer better than they do. No
class needs to be known for that. Both powers are 1 unless others are clearly better and β is below
1: if only p(class | x) is too certain, this is a matter of its calibration.
"""

from typing import NamedTuple

import numpy as np

from looselabels.estimation.minimization import minimize_smooth

MIN_GAIN = 3.0  # nats by which powers must predict the answers better to be used instead of 1
MIN_POWER = 0.05
SPREAD = 1.0  # standard deviation of the normal priors of the logarithms
MAX_NUMBERS = 2_000_000  # numbers per row, annotator and class that are looked at
LEAST = 1e-37  # of the probability of an answer: its logarithm is finite in single precision too
BLOCK = 20_000  # numbers per answer and class at a time, so that they stay in the cache


class Powers(NamedTuple):
    """How much two kinds of evidence count; 1: as if they were independent given the class."""

    class_proba: float = 1.0  #: α, of p(class | x)
    answers: float = 1.0  #: β, of the answers

    @property
    def is_identity(self) -> bool:
        """Whether everything counts fully."""
        return self == INDEPENDENT

    def combine(self, log_proba, log_prior, logs) -> np.ndarray:
        """Return log p(class | x, answers) up to a constant per row, for logs = Σ_a log T_a."""
        if self.is_identity:
            return log_proba + logs
        return log_prior + self.class_proba * (log_proba - log_prior) + self.answers * logs


INDEPENDENT = Powers()


class Others(NamedTuple):
    """The answers of some rows, and what the rest of the evidence is."""

    of_x: np.ndarray  #: (n_rows, n_classes): log p(class | x) − log p(class)
    log_prior: np.ndarray  #: (n_classes,): log p(class)
    sums: np.ndarray  #: (n_rows, n_classes): Σ_a log T_a[class, s_a]
    weight: np.ndarray  #: (n_rows,)
    row: np.ndarray  #: of each answer
    annotator: np.ndarray  #: of each answer
    logs: np.ndarray  #: (n_answers, n_classes): log T_a[class, s] of each answer
    silent: np.ndarray | None = None  #: (n_annotators, n_classes): log T_a of "no answer"


class Terms(NamedTuple):
    """What the likelihood of all answers needs, whatever the powers are.

    There is one row per class: NumPy sums few long rows several times faster than many short ones.
    """

    of_x: np.ndarray  #: (n_classes, n_answers): log p(class | x) − log p(class)
    rest: np.ndarray  #: (n_classes, n_answers): Σ log T of the other answers for the row
    likelihood: np.ndarray  #: (n_classes, n_answers): T_a[class, s]
    weight: np.ndarray  #: (n_answers,)
    of_silence: np.ndarray | None  #: (n_rows, n_annotators): weight, 0 if there is an answer

    @classmethod
    def of(cls, others: Others, dtype=float) -> "Terms":
        """Return the terms of all answers, and of all pairs without an answer."""
        row, of_silence = others.row, None
        by_row = others.of_x, others.sums, others.logs
        of_x, sums, logs = (np.ascontiguousarray(numbers.T, dtype) for numbers in by_row)
        if others.silent is not None:
            of_silence = np.repeat(others.weight[:, None], len(others.silent), axis=1)
            of_silence[row, others.annotator] = 0
        rest = sums.take(row, axis=1)
        rest -= logs
        weight = others.weight.astype(dtype)[row]
        return cls(of_x.take(row, axis=1), rest, np.exp(logs), weight, of_silence)


def fit_powers(others: Others, start: Powers = INDEPENDENT) -> Powers:
    """Return the powers under which each answer is most likely given the other ones and x.

    The search begins at `start`.

    Examples
    --------
    Two rules are right in 70 % of the rows, independently. The words that they look for are in x as
    well, so x says what both answers say, and the answers add nothing:

    >>> label = np.repeat([[0, 0], [0, 1], [1, 0], [1, 1]], [580, 420, 420, 580], axis=0)
    >>> logs = np.log(np.where(label.reshape(-1, 1) == np.arange(2), 0.7, 0.3))
    >>> row, annotator = np.divmod(np.arange(4000), 2)
    >>> sums = logs.reshape(2000, 2, 2).sum(axis=1)
    >>> repeated = Others(sums, np.log([0.5, 0.5]), sums, np.ones(2000), row, annotator, logs)
    >>> fit_powers(repeated).answers < 0.1
    True
    >>> fit_powers(repeated._replace(of_x=np.zeros((2000, 2))))  # without x
    Powers(class_proba=1.0, answers=1.0)
    """

    # exponentials take a fraction of the time, and errors are about 1e-5 nats, far below MIN_GAIN
    terms = Terms.of(others, np.float32)

    def loss(theta):
        value, slope = _log_likelihood(others, terms, *np.exp(theta).tolist())
        slope = slope * np.exp(theta)
        return -value + np.sum((theta / SPREAD) ** 2) / 2, -slope + theta / SPREAD**2

    if not len(others.row):
        return INDEPENDENT
    value, slope = loss(np.zeros(2))
    if slope[1] <= 0:  # β would rather be above 1
        return INDEPENDENT
    limits = [(np.log(MIN_POWER), 0.0)] * 2
    found = minimize_smooth(loss, np.log(start), bounds=limits, ftol=1e-5, maxiter=30)
    if value - found.fun < MIN_GAIN or found.x[1] == 0:
        return INDEPENDENT
    return Powers(*map(float, np.exp(found.x)))


def _log_likelihood(others: Others, terms: Terms, alpha, beta) -> tuple[float, np.ndarray]:
    """Return Σ log p(answer | x, other answers of the row), and its slopes in both powers."""
    value, slope = 0.0, np.zeros(2)
    n_classes, n_answers = terms.of_x.shape
    log_prior = others.log_prior.astype(terms.of_x.dtype)[:, None]
    step = max(1, BLOCK // n_classes)
    for start in range(0, n_answers, step):
        part = slice(start, start + step)
        of_x, rest, weight = terms.of_x[:, part], terms.rest[:, part], terms.weight[part]
        expected = alpha * of_x
        expected += beta * rest
        expected += log_prior
        _normalize(expected, axis=0)
        change = expected * terms.likelihood[:, part]
        proba = np.maximum(change.sum(axis=0), LEAST)
        change /= proba
        change -= expected
        change *= weight
        value += np.sum(weight * np.log(proba))
        slope += np.sum(change * of_x), np.sum(change * rest)
    if terms.of_silence is None:
        return float(value), slope
    scores = others.log_prior + alpha * others.of_x + beta * others.sums
    of_silence = _log_silence(others, terms.of_silence, _normalize(scores, axis=1), beta)
    return float(value + of_silence[0]), slope + of_silence[1]


def _log_silence(others: Others, weight, proba, beta) -> tuple[float, np.ndarray]:
    """Return the same for all pairs of rows and annotators without an answer.

    Others expect class y ∝ proba[y] / silent[y]^β, so that p(silence) is a ratio of two products of
    matrices, with the powers 1 − β and −β of `silent`.
    """
    silent = np.asarray(others.silent)
    value, slope = 0.0, np.zeros(2)
    for sign, power in ((1, 1 - beta), (-1, -beta)):
        factor = np.exp(power * silent)
        share = np.maximum(proba @ factor.T, 1e-300)
        value += sign * np.sum(weight * np.log(share))
        np.divide(weight, share, out=share)
        # products of small matrices, instead of sums over all pairs
        back = proba * (share @ factor)
        of_rest = np.sum(back * others.sums) - np.sum(silent * factor * (share.T @ proba))
        slope += sign * np.array([np.sum(back * others.of_x), of_rest])
    return float(value), slope


def _normalize(scores, axis) -> np.ndarray:
    """Return exp(scores) divided by its sums along an axis; `scores` is used up."""
    scores -= scores.max(axis=axis, keepdims=True)
    np.exp(scores, out=scores)
    scores /= scores.sum(axis=axis, keepdims=True)
    return scores
