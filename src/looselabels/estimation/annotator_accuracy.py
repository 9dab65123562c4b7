"""How often the answers of an annotator are right, if the classes of the rows are uncertain.

Answer i is right with the annotator's accuracy r. It has the probability R_i if it is right and W_i
if it is wrong, given what x and the *other* annotators say about the class: the likelihood of r is
Π_i (r R_i + (1 − r) W_i). If classes are certain this is the binomial likelihood; an answer
with R_i = W_i says nothing about r. Annotators have r ~ Beta(a, b), estimated from all of them.
"""

from typing import NamedTuple

import numpy as np

N_STEPS = 12  # Newton's method for all annotators at once; the likelihood is concave in r
GRID = (np.arange(20) + 0.5) / 20  # accuracies
PRIOR_SIZES = (0.2, 50.0)  # answers that a typical annotator can be worth for another one
FEW = 1e-3  # accuracies stay this far from 0 and 1 during the steps


class RightAnswers(NamedTuple):
    """The posterior of each annotator's accuracy, a Beta distribution."""

    mode: np.ndarray  #: (n_annotators,)
    size: np.ndarray  #: (n_annotators,): answers of known class that say as much

    def beta(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the parameters of the Beta distributions."""
        return 1 + self.mode * self.size, 1 + (1 - self.mode) * self.size


def count_right(annotator, right, wrong, weight, n_annotators) -> RightAnswers:
    """Return the accuracy of each annotator from the answers of all.

    Parameters
    ----------
    annotator, weight : arrays of shape (n_answers,)
        Who gave each answer, and how often it counts.
    right, wrong : arrays of shape (n_answers,)
        The probability of each answer if it is right, and if it is wrong.
    n_annotators : int
        The number of annotators, including those without answers.

    Examples
    --------
    Nine of ten answers are right for certain:

    >>> right = np.array([1.0] * 9 + [0.0])
    >>> found = count_right(np.zeros(10, int), right, 1 - right, np.ones(10), 1)
    >>> a, b = found.beta()
    >>> float((a / (a + b))[0].round(2))
    0.83
    """

    answers = annotator, right, wrong, weight, n_annotators
    mean, variance = _population(*answers)
    size = mean * (1 - mean) / variance - 1
    return _most_likely(*answers, mean, float(np.clip(size - 2, *PRIOR_SIZES)))


def _population(annotator, right, wrong, weight, n_annotators) -> tuple[float, float]:
    """Return mean and variance of the accuracies of all annotators.

    The distribution of accuracies has one share per point of a grid. EM starts at equal shares, so
    that accuracies remain open if the answers say little about them.
    """
    likelihood = np.array(
        [
            np.bincount(
                annotator,
                weight * np.log(np.maximum(r * right + (1 - r) * wrong, 1e-300)),
                n_annotators,
            )
            for r in GRID
        ]
    )
    likelihood = np.exp(likelihood - likelihood.max(axis=0))
    shares = np.full(len(GRID), 1 / len(GRID))
    for _ in range(N_STEPS):
        member = likelihood * shares[:, None]
        shares = (member / member.sum(axis=0)).sum(axis=1) + 1 / len(GRID)
        shares /= shares.sum()
    mean = float(shares @ GRID)
    return mean, float(shares @ (GRID - mean) ** 2)


def _most_likely(annotator, right, wrong, weight, n_annotators, mean, size) -> RightAnswers:
    """Return mode and curvature of the posteriors with prior Beta(1 + size·mean, …)."""
    more, less = size * mean, size * (1 - mean)
    accuracy = np.full(n_annotators, mean)
    for _ in range(N_STEPS):
        mix = accuracy[annotator]
        slope = (right - wrong) / np.maximum(mix * right + (1 - mix) * wrong, 1e-300)
        score = more / accuracy - less / (1 - accuracy)
        score += np.bincount(annotator, weight * slope, n_annotators)
        curvature = more / accuracy**2 + less / (1 - accuracy) ** 2
        curvature += np.bincount(annotator, weight * slope**2, n_annotators)
        moved = accuracy + score / curvature
        # at most nine tenths of the way to 0 or 1, from where steps would be wild
        accuracy = np.clip(moved, accuracy / 10, 1 - (1 - accuracy) / 10)
        accuracy = np.clip(accuracy, FEW, 1 - FEW)
    return RightAnswers(accuracy, curvature * accuracy * (1 - accuracy))
