"""Simulated data with known classes: the paper's Gaussians, and loose labels for any classes."""

from typing import NamedTuple

import numpy as np

from looselabels._names import listed
from looselabels.transition import Transition

# Four overlapping Gaussians; the last one is the negative class. The paper gives no numbers.
MEANS = np.array([[-2.0, 1.5], [2.0, 2.0], [0.5, -2.0], [0.0, 0.5]])
SPREADS = np.array([0.8, 0.9, 0.9, 1.6])


class Gaussians(NamedTuple):
    """The samples that `make_gaussians` draws."""

    X: np.ndarray  #: (n_samples, 2)
    y: np.ndarray  #: the class of each sample
    class_proba: np.ndarray  #: the exact p(class | x)
    classes: tuple[str, ...]


def make_gaussians(n_samples=1000, *, random_state=None) -> Gaussians:
    """Draw samples of the paper's four 2-D Gaussians: three positive classes and a negative one.

    Examples
    --------
    >>> data = make_gaussians(3, random_state=0)
    >>> data.X.shape, data.class_proba.sum(axis=1)
    ((3, 2), array([1., 1., 1.]))
    """
    rng = np.random.default_rng(random_state)
    classes = ("red", "green", "blue", "other")
    index = rng.integers(len(classes), size=n_samples)
    X = MEANS[index] + SPREADS[index, None] * rng.standard_normal((n_samples, 2))
    return Gaussians(X, np.array(classes)[index], gaussian_class_proba(X), classes)


def gaussian_class_proba(X) -> np.ndarray:
    """Return the exact p(class | x) of the classes of `make_gaussians` at the points `X`."""
    distance = ((X[:, None, :] - MEANS) ** 2).sum(axis=2)
    log_density = -distance / (2 * SPREADS**2) - 2 * np.log(SPREADS)
    density = np.exp(log_density - log_density.max(axis=1, keepdims=True))
    return density / density.sum(axis=1, keepdims=True)


def make_loose_labels(y, transition: Transition, *, random_state=None) -> np.ndarray:
    """Draw a label for each sample from p(label | class), given its class in `y`.

    Examples
    --------
    >>> t = Transition.partial(["cat", "dog"], labeled=0.5)
    >>> make_loose_labels(["cat", "cat", "dog", "dog"], t, random_state=1)
    array([None, None, 'dog', None], dtype=object)
    """
    rng = np.random.default_rng(random_state)
    position = {name: k for k, name in enumerate(transition.classes)}
    unknown = [name for name in dict.fromkeys(y) if name not in position]
    if unknown:
        raise ValueError(
            f"y contains classes that are not in the transition: {listed(unknown)}; it has "
            f"{listed(transition.classes)}."
        )
    index = np.array([position[name] for name in y])
    upper = np.cumsum(transition.proba, axis=1)[index]
    drawn = (rng.random(len(index))[:, None] * upper[:, -1:] >= upper).sum(axis=1)
    labels = np.empty(len(transition.labels), dtype=object)
    labels[:] = transition.labels
    return labels[drawn]
