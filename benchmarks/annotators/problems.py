"""The problems: rows with classes that nobody sees, and the answers of several annotators.

Simulated crowds have experts, ordinary annotators, spammers, one annotator who confuses classes
systematically, and two who copy an ordinary one. CIFAR-10N has three real answers per picture, and
keyword functions vote on the posts of 20 Newsgroups.
"""

from functools import cache
from typing import NamedTuple

import numpy as np
from benchmarks.annotators.keywords import vote
from benchmarks.quality import data as quality_data
from experiments import data as stored

ROWS, TEST_ROWS = 1000, 2000
COMPONENTS = 64  # of Fashion-MNIST
SIMULATED = ("digits", "fashion")
CROWDS, ANSWERS = (20, 200), (1, 3, 10)
HUMAN, FUNCTIONS = "three people", "keyword functions"
CONFUSED, COPIED = 0.7, 0.55  # share of swapped answers; accuracy of the annotator who is copied


class Place(NamedTuple):
    """What methods are compared on."""

    data: str
    crowd: str
    answers: int  #: per row; 0: differs between rows


class Problem(NamedTuple):
    """Training rows with answers, and test rows. Classes are 0, 1, …"""

    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray
    answers: np.ndarray  #: (rows, annotators), −1: none
    accuracy: np.ndarray  #: of each annotator, the probability that an answer is right
    abstains: bool = False  #: no answer is an answer: a function that does not vote

    @property
    def n_classes(self):
        return int(max(self.y.max(), self.y_test.max())) + 1


PLACES = (
    *(Place(d, f"{m} annotators", k) for d in SIMULATED for m in CROWDS for k in ANSWERS),
    Place("cifar", HUMAN, 3),
    Place("news", FUNCTIONS, 0),
)


def make(place, seed, folder=None) -> Problem:
    """Return a problem; training rows and answers differ between seeds, test rows do not."""
    loaded = load(place.data, folder)
    rows = np.random.default_rng([seed, 1]).permutation(len(loaded.y))[:ROWS]
    test = np.random.default_rng(0).permutation(len(loaded.y_test))[:TEST_ROWS]
    parts = loaded.X[rows], loaded.y[rows], loaded.X_test[test], loaded.y_test[test]
    if loaded.answers is not None:
        accuracy = share_right(loaded.answers, loaded.y)
        return Problem(*parts, loaded.answers[rows], accuracy, place.crowd == FUNCTIONS)
    n_annotators = int(place.crowd.split()[0])
    rng = np.random.default_rng([seed, n_annotators, place.answers])
    return Problem(*parts, *simulate(loaded.y[rows], n_annotators, place.answers, rng))


def share_right(answers, y) -> np.ndarray:
    """Return the share of right answers of each annotator."""
    return np.sum(answers == y[:, None], axis=0) / np.maximum((answers >= 0).sum(axis=0), 1)


# ------------------------------------------------------------------------------ crowds


def simulate(y, n_annotators, n_answers, rng):
    """Return the answers of a crowd, `n_answers` per row before the copies, and its accuracies."""
    n_classes = int(y.max()) + 1
    transitions = crowd(n_annotators - 2, n_classes, rng)
    n_asked = min(n_answers, len(transitions))
    asked = rng.random((len(y), len(transitions))).argsort(axis=1)[:, :n_asked]
    drawn = rng.random((len(y), n_asked, 1))
    said = (transitions[asked, y[:, None]].cumsum(axis=2) < drawn).sum(axis=2)
    answers = np.full((len(y), len(transitions)), -1)
    np.put_along_axis(answers, asked, np.minimum(said, n_classes - 1), axis=1)
    shares = np.bincount(y) / len(y)
    accuracy = np.einsum("akk,k->a", transitions, shares)
    copies = [0, 0]  # the first annotator is copied twice
    return np.hstack([answers, answers[:, copies]]), np.append(accuracy, accuracy[copies])


def crowd(n_annotators, n_classes, rng) -> np.ndarray:
    """Return T of each annotator, (annotators, classes, answers)."""
    n_few = round(0.2 * n_annotators)
    accuracy = rng.uniform(0.5, 0.8, n_annotators)
    accuracy[0] = COPIED
    accuracy[2 : 2 + n_few] = rng.uniform(0.9, 0.97, n_few)  # experts
    wrong = rng.dirichlet(np.full(n_classes - 1, 0.5), (n_annotators, n_classes))
    transitions = np.empty((n_annotators, n_classes, n_classes))
    for k in range(n_classes):
        transitions[:, k, k] = accuracy
        transitions[:, k, np.arange(n_classes) != k] = (1 - accuracy)[:, None] * wrong[:, k]
    swapped = np.eye(n_classes)[np.arange(n_classes) ^ 1]  # 0 ↔ 1, 2 ↔ 3, …
    transitions[1] = CONFUSED * swapped + (1 - CONFUSED) * np.eye(n_classes)
    for a in range(2 + n_few, 2 + 2 * n_few):  # spammers: a favorite class, or at random
        always = np.eye(n_classes)[rng.integers(n_classes)]
        transitions[a] = always if a % 2 else np.full(n_classes, 1 / n_classes)
    return transitions


# ------------------------------------------------------------------------------ data


class Loaded(NamedTuple):
    """All rows of a data set, with answers if there are real ones."""

    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray
    answers: np.ndarray | None = None


@cache
def load(name, folder=None) -> Loaded:
    """Return the data called `name`; a process reads it once."""
    if name == "news":
        return Loaded(*quality_data.load("news", folder)[1:5], _votes(folder))
    if name == "cifar":
        return Loaded(*quality_data.load("cifar", folder)[1:5], _human_answers(folder))
    loaded = Loaded(*quality_data.load(name, folder)[1:5])
    return _reduced(loaded) if name == "fashion" else loaded


def _reduced(loaded):
    """Return the leading components of the pixels, computed without classes."""
    from sklearn.decomposition import PCA

    reduce = PCA(COMPONENTS, random_state=0).fit(loaded.X[:10_000])
    return loaded._replace(X=reduce.transform(loaded.X), X_test=reduce.transform(loaded.X_test))


def _human_answers(folder):
    path, _ = stored._find("cifar10n", ["cifar10n.npz"], folder)  # `load` has found it
    with np.load(path) as arrays:
        return np.stack([arrays[f"y_train_random{k}"] for k in (1, 2, 3)], axis=1).astype(int)


def _votes(folder):
    path, _ = stored._find("20newsgroups", stored.NEWS, folder)
    if path is None:
        raise stored._not_found("20 Newsgroups, with its texts", stored.places("20newsgroups"), "")
    (texts, _), _ = stored.read_news(path, stored.NEWS[path.name])
    return vote(texts)
