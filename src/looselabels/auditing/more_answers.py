"""How many more answers would settle the class of a row."""

import numpy as np

from looselabels._rows import on_simplex

SETTLED = 0.95  # probability from which the class of a row needs no more answers
MOST = 10  # answers that are looked ahead; further ones depend too much on the transition
N_FUTURES = 200  # sequences of answers that are drawn for each row
GRID = 50  # rows whose probabilities are equal after rounding to 1 / GRID share their futures
BLOCK = 2**22  # numbers that are in memory at once


def answers_to_settle(
    class_proba, transition, *, settled=SETTLED, most=MOST, n_futures=N_FUTURES, random_state=0
) -> np.ndarray:
    """Return how many more answers give some class a probability of at least `settled`.

    It is a median: in half of the futures that are drawn, this many answers are enough. A future is
    a class, drawn from the current probabilities of the row, and answers to it, drawn from the
    transition. Each answer multiplies p(class) by p(answer | class). Rows are rounded before their
    futures are drawn, so that large tables have few different ones.

    Parameters
    ----------
    class_proba : array of shape (n_rows, n_classes)
        The current probabilities, p(class | x, answers).
    transition : array of shape (n_classes, n_labels)
        p(answer | class) of a typical annotator. Answers are independent given the class.
    settled : float, default=0.95
        From which probability a row is settled; 0 answers are enough then.
    most : int, default=10
        How many answers are drawn. If they do not settle half of the futures, the result is
        infinite: the number is larger than `most`, or no number is enough.
    n_futures : int, default=200
        How many futures are drawn for each row.
    random_state : int, default=0
        Seed of the futures.

    Examples
    --------
    Two annotators who are right in 90 % of their answers settle an open question, if they agree. A
    coin never does.

    >>> answers_to_settle([[0.5, 0.5], [0.97, 0.03]], [[0.9, 0.1], [0.1, 0.9]])
    array([2., 0.])
    >>> answers_to_settle([[0.5, 0.5]], [[0.5, 0.5], [0.5, 0.5]])
    array([inf])
    """
    class_proba, transition = np.asarray(class_proba, float), np.asarray(transition, float)
    found, is_open = np.zeros(len(class_proba)), class_proba.max(axis=1) < settled
    rounded = np.rint(GRID * class_proba[is_open])
    is_zero = ~rounded.any(axis=1)  # of many classes, none has 1 / (2 GRID)
    rounded[is_zero] = class_proba[is_open][is_zero]
    distinct, which = np.unique(rounded, axis=0, return_inverse=True)
    answers = _draw_answers(transition, most, n_futures, random_state)
    step = max(1, BLOCK // (n_futures * class_proba.shape[1]))
    parts = [
        _median_answers(on_simplex(distinct[i : i + step]), transition, answers, settled)
        for i in range(0, len(distinct), step)
    ]
    if parts:
        found[is_open] = np.concatenate(parts)[which.ravel()]
    return found


def _draw_answers(transition, most, n_futures, random_state) -> np.ndarray:
    """Return answers to rows of each class, (n_classes, n_futures, most), as positions."""
    n_classes, n_labels = transition.shape
    drawn = np.random.default_rng(random_state).random((n_classes, n_futures, most))
    ends = np.cumsum(transition, axis=1)
    found = [np.searchsorted(ends[y], drawn[y], side="right") for y in range(n_classes)]
    # rounding can leave the end of a row just below 1
    return np.minimum(np.stack(found), n_labels - 1)


def _median_answers(proba, transition, answers, settled) -> np.ndarray:
    """Return the answers that settle at least half of the futures of each row."""
    n_futures, most = answers.shape[1:]
    with np.errstate(divide="ignore"):
        log_proba, log_transition = np.log(proba), np.log(transition)
    # as many futures of each class as its probability says, and not by chance
    places = (np.arange(n_futures) + 0.5) / n_futures
    classes = np.sum(proba.cumsum(axis=1)[:, None, :] < places[None, :, None], axis=2)
    classes = np.minimum(classes, proba.shape[1] - 1)
    found, rows = np.full(len(proba), np.inf), np.arange(len(proba))
    log_joint = np.repeat(log_proba[:, None, :], n_futures, axis=1)
    is_settled = np.zeros(classes.shape, bool)
    for k in range(most):
        given = answers[classes[rows], np.arange(n_futures), k]
        log_joint = log_joint + log_transition.T[given]
        log_joint -= log_joint.max(axis=2, keepdims=True)
        is_settled |= 1 / np.exp(log_joint).sum(axis=2) >= settled
        is_done = is_settled.mean(axis=1) >= 0.5
        found[rows[is_done]] = k + 1
        rows, log_joint, is_settled = rows[~is_done], log_joint[~is_done], is_settled[~is_done]
    return found
