"""The row solver of `_rows`, compiled: the same methods, one row at a time, without temporaries.

It is used for NumPy arrays if numba is installed. The kernels release the GIL, which allows
several threads to solve blocks of rows at the same time.
"""

import numpy as np

from looselabels import _rows
from looselabels._dual_numba import back_solve, compiled, factor, solve_dual
from looselabels._rows import (
    ARMIJO,
    FLAT,
    MAX_STEPS,
    NOISE,
    SHRINK,
    SINGULAR,
    SMALL_CHANGE,
    Ascent,
)

__all__ = ["ascend", "evaluate", "is_ambiguous", "solve_dual"]

SMALL_TRANSITION = 1024  # entries; for more, a matrix product is faster than a loop


def evaluate(label_proba, class_proba, transition, log_prior, explained=None) -> Ascent:
    """Return the same as `_rows.evaluate`."""
    if transition.size > SMALL_TRANSITION:
        return _rows.evaluate(label_proba, class_proba, transition, log_prior, explained)
    if explained is None:
        explained = class_proba @ transition
    if log_prior is None:
        log_prior = np.zeros(len(transition))
    slope, gap = np.empty_like(class_proba), np.empty(len(label_proba))
    _evaluate_rows(label_proba, class_proba, transition, log_prior, explained, slope, gap)
    return Ascent(label_proba, class_proba, explained, slope, gap)


def ascend(label_proba, start, transition, log_prior, tol):
    """Return the same as `_rows.ascend`."""
    class_proba = start.copy()
    if log_prior is None:
        log_prior = np.zeros(len(transition))
    _ascend_rows(label_proba, class_proba, transition, log_prior, tol)
    return class_proba


def is_ambiguous(at: Ascent, transition, tol):
    """Return the same as `_rows.is_ambiguous`."""
    largest = transition.max(axis=0)
    scaled = transition / np.where(largest > 0, largest, 1.0)
    return _is_ambiguous(at.label_proba, at.slope, scaled, tol)


@compiled
def _evaluate_rows(label_proba, class_proba, transition, log_prior, explained, slope, gap):
    for i in range(len(label_proba)):
        _fill_slope(label_proba[i], class_proba[i], explained[i], transition, log_prior, slope[i])
        gap[i] = slope[i].max()


@compiled
def _ascend_rows(label_proba, class_proba, transition, log_prior, tol):
    """Solve every row by Newton steps on its free classes; `class_proba` is overwritten."""
    n_classes, n_labels = transition.shape
    explained, weight = np.empty(n_labels), np.empty(n_labels)
    slope, direction, target = np.empty(n_classes), np.empty(n_classes), np.empty(n_classes)
    present, free = np.empty(n_classes, np.bool_), np.empty(n_classes, np.bool_)
    part, gram = np.empty((n_classes, n_labels)), np.empty((n_classes, n_classes))
    for i in range(len(label_proba)):
        labels, point = label_proba[i], class_proba[i]
        _mix(point, transition, explained)
        for _ in range(MAX_STEPS):
            _fill_slope(labels, point, explained, transition, log_prior, slope)
            if slope.max() <= tol:
                break
            for s in range(n_labels):
                weight[s] = labels[s] / explained[s] ** 2 if labels[s] > 0 else 0.0
            for k in range(n_classes):
                present[k] = point[k] > 0
                free[k] = present[k] or slope[k] > 0
            _direction(transition, weight, slope, present, free, direction, part, gram, tol)
            if not _line_search(labels, point, direction, transition, explained, slope, target):
                break  # no step improves the row: it has reached floating-point precision


@compiled
def _mix(point, transition, explained):
    """Write yT into `explained`."""
    explained[:] = 0.0
    for k in range(len(point)):
        if point[k] > 0:
            for s in range(len(explained)):
                explained[s] += point[k] * transition[k, s]


@compiled
def _fill_slope(labels, point, explained, transition, log_prior, slope):
    """Write the gradient minus its mean under y into `slope`."""
    n_classes, n_labels = transition.shape
    level = 0.0
    for k in range(n_classes):
        total = log_prior[k]
        for s in range(n_labels):
            if labels[s] > 0:
                total += transition[k, s] * (labels[s] / explained[s])
        slope[k] = total
        level += point[k] * total
    for k in range(n_classes):
        slope[k] -= level


@compiled
def _direction(transition, weight, slope, present, free, direction, part, gram, tol):
    """Write the Newton direction on the free classes into `direction`; its entries sum to 0."""
    n_classes = len(slope)
    for _ in range(n_classes):
        _equality_newton(transition, weight, slope, free, direction, part, gram)
        blocked = False
        for k in range(n_classes):
            if free[k] and not present[k] and direction[k] < 0:
                free[k], blocked = False, True
        if not blocked:
            break
    steepest, worst = 0, 0.0
    for k in range(n_classes):
        if slope[k] > slope[steepest]:
            steepest = k
        if free[k]:
            worst = max(worst, abs(slope[k]))
    if worst <= tol / 2:
        # The present classes are at their optimum: the absent class of largest slope must enter.
        free[:] = present
        free[steepest] = True
        _equality_newton(transition, weight, slope, free, direction, part, gram)


@compiled
def _equality_newton(transition, weight, slope, free, direction, part, gram):
    index = np.nonzero(free)[0]
    size = len(index)
    for a in range(size):
        for s in range(len(weight)):
            part[a, s] = transition[index[a], s] * weight[s]
        for b in range(a + 1):
            total = 0.0
            for s in range(len(weight)):
                total += part[a, s] * transition[index[b], s]
            gram[a, b] = total
    right = np.empty((2, size))
    right[0] = slope[index]
    right[1] = 1.0
    factor(gram, size, FLAT)
    back_solve(gram, right[0])
    back_solve(gram, right[1])
    shift = right[0].sum() / right[1].sum()
    direction[:] = 0.0
    for a in range(size):
        direction[index[a]] = right[0, a] - shift * right[1, a]


@compiled
def _line_search(labels, point, direction, transition, explained, slope, target):
    """Move `point` and `explained` uphill and return True, or return False if no step helps.

    The attempts are those of `_rows._step`: the full step with classes that vanish, the full step
    with classes that only shrink, the step up to the first class that vanishes, and then half as
    far each time.
    """
    length, first, first_at = 1.0, 1.0, -1
    for k in range(len(point)):
        if direction[k] < 0 and -point[k] / direction[k] < first:
            first, first_at = -point[k] / direction[k], k
    mixed = np.empty_like(explained)
    for attempt in range(60):
        at_boundary = attempt == 2 and first_at >= 0
        floor = SHRINK if attempt == 1 else 0.0
        for k in range(len(point)):
            target[k] = max(point[k] + length * direction[k], floor * point[k])
        if at_boundary:
            target[first_at] = 0.0
        target /= target.sum()
        gain = (slope * (target - point)).sum()
        _mix(target, transition, mixed)
        rise = gain - _curvature_loss(labels, explained, mixed)
        if rise > ARMIJO * abs(gain) or (at_boundary and rise >= -NOISE):
            point[:] = target
            explained[:] = mixed
            return True
        if attempt > 0:
            length = first if attempt == 1 else length / 2
    return False


@compiled
def _curvature_loss(labels, before, after):
    """Return Σ S (r − log(1 + r)), r the relative change of yT: the loss due to curvature."""
    loss = 0.0
    for s in range(len(labels)):
        if labels[s] > 0:
            if after[s] <= 0:
                return np.inf
            r = (after[s] - before[s]) / before[s]
            if abs(r) < SMALL_CHANGE:
                loss += labels[s] * r * r * (0.5 - r * (1 / 3 - r / 4))
            else:
                loss += labels[s] * (r - np.log(after[s] / before[s]))
    return loss


@compiled
def _is_ambiguous(label_proba, slope, scaled, tol):
    n_classes, n_labels = scaled.shape
    gram, right = np.empty((n_classes, n_classes)), np.empty(n_classes)
    many = np.zeros(len(slope), np.bool_)
    for i in range(len(slope)):
        size = 0
        for k in range(n_classes):
            if slope[i, k] < -tol:
                continue
            # Add a row to a Cholesky factor: a zero pivot means that it depends on the others.
            right[size] = k
            pivot = 0.0
            for a in range(size + 1):
                other = int(right[a])
                total = 0.0
                for s in range(n_labels):
                    if label_proba[i, s] > 0:
                        total += scaled[k, s] * scaled[other, s]
                if a == size:
                    pivot = total
                    break
                for b in range(a):
                    total -= gram[size, b] * gram[a, b]
                gram[size, a] = total / gram[a, a]
            left = pivot
            for b in range(size):
                left -= gram[size, b] ** 2
            if left <= SINGULAR * pivot:
                many[i] = True
                break
            gram[size, size] = np.sqrt(left)
            size += 1
    return many
