"""The simulated data of the paper: four Gaussians with few labels, three of which are wrong.

There are 200 samples; 12 samples of each positive class are labeled, one of them wrongly. We run
the method as printed. For values that the paper does not print we use kernels of .3 standard
deviations, a uniform label prior (the paper: "almost uniform") and pseudocounts A = 10 T. T is the
transition with which the labels were drawn.
"""

from typing import NamedTuple

import numpy as np

from looselabels import KernelDensityClassifier, Transition, infer
from looselabels.datasets import Gaussians, gaussian_class_proba, make_gaussians
from looselabels.inference import Decoupling, class_proba_from, condition_on_label

N_SAMPLES, N_LABELED, BANDWIDTH, STRENGTH, DRAWS = 200, 12, 0.3, 10.0, 10
HALF_WIDTH = 5.0  # the figure shows both features from −5 to 5


class Draw(NamedTuple):
    """Samples with their labels, and the results of the inference."""

    data: Gaussians
    labels: np.ndarray  #: None: unlabeled
    wrong: np.ndarray  #: indices of the rows with a wrong label
    kernels: KernelDensityClassifier
    found: Decoupling
    given: np.ndarray  #: W, p(class | x, label) of the samples

    def class_proba(self, X):
        """Return p(class | x) after inference."""
        return class_proba_from(self.kernels.predict_proba(X), self.found.transition)


def draw(seed, n_wrong=3) -> Draw:
    """Draw samples and labels, and infer the classes. `n_wrong` does not affect who is labeled."""
    data = make_gaussians(N_SAMPLES, random_state=seed)
    *positive, negative = data.classes
    rng = np.random.default_rng(seed)
    labels, wrong = np.full(N_SAMPLES, None, dtype=object), []
    for name, other in zip(positive, positive[1:] + positive[:1], strict=True):
        rows = rng.choice(np.flatnonzero(data.y == name), N_LABELED, replace=False)
        labels[rows] = name
        if len(wrong) < n_wrong:
            labels[rows[0]] = other
            wrong.append(rows[0])
    rates = {name: N_LABELED / (data.y == name).sum() for name in positive}
    design = Transition.partial(positive, labeled=rates, negative=negative)
    design = design.with_noise(1 / N_LABELED)
    index = design.label_index(labels)
    kernels = KernelDensityClassifier(BANDWIDTH, priors=np.full(4, 0.25))
    label_proba = kernels.fit_out_of_sample(data.X, index)
    found = infer(label_proba, design, pseudocounts=STRENGTH * design.proba)
    given = condition_on_label(found.class_proba, found.transition, index)
    return Draw(data, labels, np.array(wrong, dtype=int), kernels, found, given)


def square(n_steps):
    """Return a grid of points over the area of the figure, row by row from the bottom."""
    steps = np.linspace(-HALF_WIDTH, HALF_WIDTH, n_steps)
    return np.stack(np.meshgrid(steps, steps), axis=-1).reshape(-1, 2)


def table(n_draws=DRAWS) -> list[dict]:
    """Return one row per draw: areas, accuracies, errors, and results for the wrong labels."""
    return [_row(draw(seed), draw(seed, n_wrong=0), seed) for seed in range(n_draws)]


def _row(noisy, right, seed):
    X = square(100)
    new = make_gaussians(10_000, random_state=DRAWS + seed)
    names = np.array(new.classes)  # also of the labels; the last label is "unlabeled"
    by_label = names[noisy.kernels.predict_proba(new.X).argmax(axis=1)]
    by_class = names[noisy.class_proba(new.X).argmax(axis=1)]
    given = names[noisy.given.argmax(axis=1)]
    labels, truth = noisy.labels[noisy.wrong], noisy.data.y[noisy.wrong]
    regions = names[noisy.class_proba(noisy.data.X[noisy.wrong]).argmax(axis=1)]
    return {
        "draw": seed,
        "unlabeled_area": _share_of_last(noisy.kernels.predict_proba(X)),
        "negative_area": _share_of_last(noisy.class_proba(X)),
        "true_negative_area": _share_of_last(gaussian_class_proba(X)),
        "accuracy_by_label": float((by_label == new.y).mean()),
        "accuracy_inferred": float((by_class == new.y).mean()),
        "accuracy_exact": float((names[new.class_proba.argmax(axis=1)] == new.y).mean()),
        "error": _error(noisy, new),
        "error_if_labels_right": _error(right, new),
        "wrong_in_region_of_label": int((regions == labels).sum()),
        "wrong_corrected_by_W": int((given[noisy.wrong] == truth).sum()),
    }


def _share_of_last(proba):
    return float((proba.argmax(axis=1) == proba.shape[1] - 1).mean())


def _error(found, new):
    """Return the mean of Σ_y |p̂(y|x) − p(y|x)| / 2."""
    return float(abs(found.class_proba(new.X) - new.class_proba).sum(axis=1).mean() / 2)
