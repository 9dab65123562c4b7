"""Independent implementations from the paper: plain loops and general-purpose solvers."""

import math

import numpy as np
from scipy.optimize import minimize


def objective(label_proba, class_proba, transition, pseudocounts=None, class_prior=None):
    """Return O = −KL(S, YT) + Σ Y log p(y) + Σ A log T, term by term."""
    n_classes, n_labels = np.shape(transition)
    total = 0.0
    for i in range(len(label_proba)):
        for s in range(n_labels):
            explained = sum(class_proba[i][y] * transition[y][s] for y in range(n_classes))
            if label_proba[i][s] > 0:
                if explained == 0:
                    return -math.inf
                total -= label_proba[i][s] * math.log(label_proba[i][s] / explained)
        for y in range(n_classes):
            if class_prior is not None and class_proba[i][y] > 0:
                if class_prior[y] == 0:
                    return -math.inf
                total += class_proba[i][y] * math.log(class_prior[y])
    for y in range(n_classes):
        for s in range(n_labels):
            if pseudocounts is not None and pseudocounts[y][s] > 0:
                total += pseudocounts[y][s] * math.log(transition[y][s])
    return total


def label_mass(label_proba, class_proba, transition):
    """Return M_ys, the expected number of samples of class y that have label s."""
    n_classes, n_labels = np.shape(transition)
    mass = np.zeros((n_classes, n_labels))
    for row, classes in zip(label_proba, class_proba, strict=True):
        for s in range(n_labels):
            explained = sum(classes[y] * transition[y][s] for y in range(n_classes))
            for y in range(n_classes):
                if row[s] > 0:
                    mass[y, s] += row[s] * classes[y] * transition[y][s] / explained
    return mass


def solve_row(labels, transition, class_prior=None):
    """Return the best class distribution of one row, by SLSQP of SciPy from several starts."""
    n_classes = len(transition)
    log_prior = np.zeros(n_classes) if class_prior is None else np.log(class_prior)
    seen = labels > 0

    def loss(y):
        explained = np.maximum(y @ transition, 1e-300)
        return -(labels[seen] @ np.log(explained[seen])) - y @ log_prior

    def gradient(y):
        explained = np.maximum(y @ transition, 1e-300)
        return -(transition[:, seen] @ (labels[seen] / explained[seen])) - log_prior

    best = None
    for start in [np.full(n_classes, 1 / n_classes), *(0.9 * np.eye(n_classes) + 0.1 / n_classes)]:
        found = minimize(
            loss,
            start / start.sum(),
            jac=gradient,
            bounds=[(0, 1)] * n_classes,
            constraints={"type": "eq", "fun": lambda y: y.sum() - 1, "jac": np.ones_like},
            options={"ftol": 1e-15, "maxiter": 500},
        )
        y = np.clip(found.x, 0, None) / np.clip(found.x, 0, None).sum()
        if best is None or loss(y) < loss(best):
            best = y
    return best, -loss(best)


def em(label_proba, transition, pseudocounts, n_steps):
    """Return Y and T after plain EM steps on both, with a uniform class prior: slow but simple."""
    n_classes = len(transition)
    class_proba = np.full((len(label_proba), n_classes), 1 / n_classes)
    for _ in range(n_steps):
        ratio = label_proba / (class_proba @ transition)
        mass = transition * (class_proba.T @ ratio) + pseudocounts
        class_proba = class_proba * (ratio @ transition.T)
        class_proba /= class_proba.sum(axis=1, keepdims=True)
        transition = mass / mass.sum(axis=1, keepdims=True)
    return class_proba, transition


def closest(anchor, label_proba, class_proba, transition):
    """Return the point closest to `anchor` with the same yT on labels with S_s > 0, by SLSQP."""
    seen = label_proba > 0
    found = minimize(
        lambda y: ((y - anchor) ** 2).sum(),
        class_proba,
        bounds=[(0, 1)] * len(anchor),
        constraints=[
            {"type": "eq", "fun": lambda y: ((y - class_proba) @ transition)[seen]},
            {"type": "eq", "fun": lambda y: y.sum() - 1},
        ],
        options={"ftol": 1e-14, "maxiter": 500},
    )
    return found.x


def log_dirichlet_multinomial(counts, alpha) -> float:
    """Return the log probability of a sequence of labels with these (fractional) counts."""
    of_labels = sum(math.lgamma(a + c) - math.lgamma(a) for c, a in zip(counts, alpha, strict=True))
    return math.lgamma(sum(alpha)) - math.lgamma(sum(alpha) + sum(counts)) + of_labels
