"""The data: digits, Gaussians, Fashion-MNIST, 20 Newsgroups, CIFAR-10N, as dense features.

pulearn accepts dense features only. Posts are therefore reduced to 50 latent semantic features for
every method.
"""

import hashlib
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
from experiments import data as stored

from looselabels._files import check_parent, new_file

ROWS, TEST_ROWS = 2000, 2000
TOPICS = 50
DEVELOPMENT = ("digits", "gaussians", "fashion")  # defaults may be chosen on these
TEST = ("news", "cifar")  # never used to choose a default
NAMES = (*DEVELOPMENT, *TEST)
CIFAR = "286682707101001fbf9ae8919f9b7831ece81249a69d622416133afd8e3f82f0"
ARRAYS = ("X", "y", "X_test", "y_test")  # in the order of `Data`
NOISE = " noise"  # ends the name of a stored matrix
HUMAN = {"human-9": "aggregate", "human-40": "worst"}


class Data(NamedTuple):
    """Training and test rows, with their classes 0, 1, …"""

    name: str
    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray
    human: dict  #: name of the problem → labels of the training rows, given by people
    human_noise: dict  #: name of the problem → p(label | class) of all people's labels

    @property
    def n_classes(self):
        return int(self.y.max()) + 1


def load(name, folder=None) -> Data:
    """Return all rows of the data called `name`."""
    loaders = {
        "digits": lambda: _digits(),
        "gaussians": lambda: _gaussians(),
        "fashion": lambda: _from(stored.load_fashion(folder)),
        "news": lambda: _topics(stored.load_news(folder)),
        "cifar": lambda: _cifar(folder),
    }
    return loaders[name]()


def sample(data, seed) -> Data:
    """Return the rows of one seed. Training rows differ between seeds, test rows do not."""
    rng = np.random.default_rng([seed, 1])
    rows = np.sort(rng.permutation(len(data.y))[:ROWS])
    test = np.sort(np.random.default_rng(0).permutation(len(data.y_test))[:TEST_ROWS])
    human = {name: labels[rows] for name, labels in data.human.items()}
    return data._replace(
        X=data.X[rows], y=data.y[rows], X_test=data.X_test[test], y_test=data.y_test[test],
        human=human,
    )  # fmt: skip


def store_samples(samples, names, seeds, folder=None):
    """Write the rows of each data set and seed to the folder `samples`, unless they are there."""
    Path(samples).mkdir(parents=True, exist_ok=True)
    for name in names:
        missing = [s for s in range(seeds) if not sample_path(samples, name, s).exists()]
        loaded = load(name, folder) if missing else None
        for seed in missing:
            _, *arrays, human, noise = sample(loaded, seed)
            named = dict(zip(ARRAYS, arrays, strict=True)) | human
            named |= {name + NOISE: proba for name, proba in noise.items()}
            path = sample_path(samples, name, seed)
            with new_file(path, check_parent) as part, open(part, "wb") as file:
                np.savez_compressed(file, **named)


@cache
def read_sample(samples, name, seed) -> Data:
    """Return the rows that `store_samples` wrote; a process reads them once."""
    with np.load(sample_path(samples, name, seed)) as file:
        arrays = dict(file)
    main = [arrays.pop(key) for key in ARRAYS]
    noise = {
        key.removesuffix(NOISE): arrays.pop(key) for key in list(arrays) if key.endswith(NOISE)
    }
    return Data(name, *main, human=arrays, human_noise=noise)


def sample_path(samples, name, seed):
    return Path(samples) / f"{name}-{seed}.npz"


def _from(loaded):
    return Data(loaded.name, *loaded[1:], human={}, human_noise={})


def _digits():
    """Return the digits, half of them as test rows."""
    from sklearn.datasets import load_digits

    X, y = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(y))
    half = len(y) // 2
    train, test = order[half:], order[:half]
    return Data("digits", X[train], y[train], X[test], y[test], {}, {})


def _gaussians():
    """Return the paper's four overlapping Gaussians; the last one is the negative class."""
    from looselabels.datasets import make_gaussians

    parts = []
    for n_rows, seed in ((3 * ROWS, 0), (TEST_ROWS, 1)):
        drawn = make_gaussians(n_rows, random_state=seed)
        parts += [drawn.X, np.array([drawn.classes.index(name) for name in drawn.y])]
    return Data("gaussians", *parts, human={}, human_noise={})


def _topics(news):
    """Return 20 Newsgroups as latent semantic features, computed without the classes."""
    from sklearn.decomposition import TruncatedSVD
    from sklearn.feature_extraction.text import TfidfTransformer

    weigh = TfidfTransformer(sublinear_tf=True).fit(news.X)
    reduce = TruncatedSVD(TOPICS, random_state=0)
    X = reduce.fit_transform(weigh.transform(news.X))
    X_test = reduce.transform(weigh.transform(news.X_test))
    X, X_test = X.astype(np.float32), X_test.astype(np.float32)
    return Data("news", X, news.y, X_test, news.y_test, {}, {})


def _cifar(folder):
    """Return CIFAR-10N: 64 features per picture, the true classes, and labels by people."""
    path, tried = stored._find("cifar10n", ["cifar10n.npz"], folder)
    if path is None:
        raise stored._not_found("CIFAR-10N (cifar10n.npz)", tried, "")
    stored._check_sum(path, hashlib.sha256(path.read_bytes()).hexdigest(), CIFAR)
    with np.load(path) as arrays:
        scale, offset = arrays["scale"], arrays["offset"]
        X, X_test = arrays["X_train"] * scale + offset, arrays["X_test"] * scale + offset
        human = {name: arrays[f"y_train_{kind}"].astype(int) for name, kind in HUMAN.items()}
        y, y_test = arrays["y_train_clean"].astype(int), arrays["y_test"].astype(int)
    noise = {name: _shares(y, labels) for name, labels in human.items()}
    return Data("cifar", X, y, X_test, y_test, human, noise)


def _shares(y, labels):
    """Return the share of each label among the rows of each class."""
    counts = np.zeros((y.max() + 1, y.max() + 1))
    np.add.at(counts, (y, labels), 1)
    return counts / counts.sum(axis=1, keepdims=True)
