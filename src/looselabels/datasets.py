"""Data whose truth is known: the paper's Gaussians, and loose labels for any clean data."""

from typing import NamedTuple

import numpy as np

from looselabels.transition import Transition

# Four overlapping blobs, the last one the negative class. The paper shows them without numbers.
MEANS = np.array([[-2.0, 1.5], [2.0, 2.0], [0.5, -2.0], [0.0, 0.5]])
SPREADS = np.array([0.8, 0.9, 0.9, 1.6])


class Gaussians(NamedTuple):
    """Samples of `make_gaussians`."""

    X: np.ndarray  #: (n_samples, 2)
    y: np.ndarray  #: the class of each sample
    class_proba: np.ndarray  #: p(class | x), exact
    classes: tuple[str, ...]


def make_gaussians(n_samples=1000, *, random_state=None) -> Gaussians:
    """Draw from the paper's four 2-D Gaussians, three positive classes and a negative one.

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
    """Return p(class | x) of `make_gaussians` at any points."""
    distance = ((X[:, None, :] - MEANS) ** 2).sum(axis=2)
    log_density = -distance / (2 * SPREADS**2) - 2 * np.log(SPREADS)
    density = np.exp(log_density - log_density.max(axis=1, keepdims=True))
    return density / density.sum(axis=1, keepdims=True)


def make_loose_labels(y, transition: Transition, *, random_state=None) -> np.ndarray:
    """Draw a label for each class in `y`, by the transition's row of that class.

    Examples
    --------
    >>> t = Transition.partial(["cat", "dog"], labeled=0.5)
    >>> make_loose_labels(["cat", "cat", "dog", "dog"], t, random_state=1)
    array([None, None, 'dog', None], dtype=object)
    """
    rng = np.random.default_rng(random_state)
    position = {name: k for k, name in enumerate(transition.classes)}
    unknown = sorted({repr(name) for name in y if name not in position})
    if unknown:
        raise ValueError(
            f"y has classes that the transition does not: {', '.join(unknown[:5])}; "
            f"it has {transition.classes}."
        )
    index = np.array([position[name] for name in y])
    upper = np.cumsum(transition.proba, axis=1)[index]
    drawn = (rng.random(len(index))[:, None] * upper[:, -1:] >= upper).sum(axis=1)
    labels = np.empty(len(transition.labels), dtype=object)
    labels[:] = transition.labels
    return labels[drawn]
