"""The row solver of `_rows`, compiled: the same methods, one row at a time, without temporaries.

Used for NumPy arrays when numba is installed. The kernels release the GIL, so that blocks of rows
can be solved in threads.
"""

import numpy as np
import scipy.linalg  # noqa: F401  its BLAS is the one of compiled matrix products
from numba import njit

from looselabels import _rows
from looselabels._rows import (
    ARMIJO,
    FLAT,
    MAX_STEPS,
    NOISE,
    RIDGE,
    SHRINK,
    SINGULAR,
    SMALL_CHANGE,
    Ascent,
    on_simplex,
)

MOST_DIRECT = 48  # absent classes; beyond it a few products are cheaper than a factorization
MOST_CG = 25  # such products at most
DUAL_STEPS = 20  # Newton steps for one set of absent classes; more are spent on rounding
SMALL_TRANSITION = 1024  # entries; beyond it a matrix product evaluates faster than a loop

# Sums may be reordered, which lets them run in vector registers; NaN and inf keep their meaning.
compiled = njit(nogil=True, cache=True, error_model="numpy", fastmath={"reassoc", "contract"})


def evaluate(label_proba, class_proba, transition, log_prior) -> Ascent:
    """Do what `_rows.evaluate` does."""
    if transition.size > SMALL_TRANSITION:
        return _rows.evaluate(label_proba, class_proba, transition, log_prior)
    if log_prior is None:
        log_prior = np.zeros(len(transition))
    explained, slope = np.empty_like(label_proba), np.empty_like(class_proba)
    gap = np.empty(len(label_proba))
    _evaluate_rows(label_proba, class_proba, transition, log_prior, explained, slope, gap)
    return Ascent(label_proba, class_proba, explained, slope, gap)


def ascend(label_proba, start, transition, log_prior, tol):
    """Do what `_rows.ascend` does."""
    class_proba = start.copy()
    if log_prior is None:
        log_prior = np.zeros(len(transition))
    _ascend_rows(label_proba, class_proba, transition, log_prior, tol)
    return class_proba


def solve_dual(label_proba, inverse, tol):
    """Do what `_rows.solve_dual` does."""
    # Which classes are absent takes a matrix product for all rows; the prices of a given set of
    # absent classes are then a small problem of each row.
    inverse_t = np.ascontiguousarray(inverse.T)
    class_proba = label_proba @ inverse
    price, slack = np.zeros_like(class_proba), np.ones_like(label_proba)
    moving, before = np.arange(len(label_proba)), np.full(len(label_proba), np.inf)
    for _ in range(MAX_STEPS):
        residual = np.abs(np.minimum(class_proba[moving], price[moving])).max(axis=1)
        # A row with tiny labels can stall short of `tol`, in rounding: the primal takes it on.
        still = (residual > tol) & (residual < before / 2)
        moving, before = moving[still], residual[still]
        if not len(moving):
            break
        members = (price[moving] > 0) | (class_proba[moving] < 0)
        labels, new_price, new_slack = label_proba[moving], price[moving], slack[moving]
        _settle_prices(labels, new_price, new_slack, members, inverse_t, tol)
        price[moving], slack[moving] = new_price, new_slack
        class_proba[moving] = (labels / new_slack) @ inverse
    return on_simplex(np.where(price > 0, 0.0, class_proba))


def is_ambiguous(at: Ascent, transition, tol):
    """Do what `_rows.is_ambiguous` does."""
    largest = transition.max(axis=0)
    scaled = transition / np.where(largest > 0, largest, 1.0)
    return _is_ambiguous(at.label_proba, at.slope, scaled, tol)


@compiled
def _evaluate_rows(label_proba, class_proba, transition, log_prior, explained, slope, gap):
    for i in range(len(label_proba)):
        _mix(class_proba[i], transition, explained[i])
        _fill_slope(label_proba[i], class_proba[i], explained[i], transition, log_prior, slope[i])
        gap[i] = slope[i].max()


@compiled
def _ascend_rows(label_proba, class_proba, transition, log_prior, tol):
    """Solve every row in place of `class_proba` by Newton steps on its free classes."""
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
                break  # no step improves the row: it has reached the precision of its numbers


@compiled
def _mix(point, transition, explained):
    """Fill in yT."""
    explained[:] = 0.0
    for k in range(len(point)):
        if point[k] > 0:
            for s in range(len(explained)):
                explained[s] += point[k] * transition[k, s]


@compiled
def _fill_slope(labels, point, explained, transition, log_prior, slope):
    """Fill in the gradient less its mean under y."""
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
    """Fill in the Newton direction on the free classes; its entries sum to zero."""
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
        # The classes present are at their optimum: the steepest absent one must enter.
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
    _factor(gram, size, FLAT)
    _back_solve(gram, right[0])
    _back_solve(gram, right[1])
    shift = right[0].sum() / right[1].sum()
    direction[:] = 0.0
    for a in range(size):
        direction[index[a]] = right[0, a] - shift * right[1, a]


@compiled
def _line_search(labels, point, direction, transition, explained, slope, target):
    """Move `point` (and `explained`) uphill, or tell that no step helps.

    As `_rows._step` does: the whole step with classes that vanish, then with classes that shrink,
    then no further than the first class to vanish, then ever less.
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
    """Σ S (r − log(1 + r)), r the relative change of yT: what a step falls short of its slope."""
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
            # One more row of a Cholesky factor: no pivot left means that it depends on the others.
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


@compiled
def _settle_prices(label_proba, price, slack, members, inverse_t, tol):
    """Solve the dual on each row's `members`, in place of `price` and `slack`."""
    for i in range(len(label_proba)):
        index = np.nonzero(members[i])[0]
        _settle(label_proba[i], price[i], slack[i], index, inverse_t, tol)


@compiled
def _settle(labels, price, slack, index, inverse_t, tol):
    n_labels = len(labels)
    rows = inverse_t[index]
    scaled = np.empty((min(len(index), MOST_DIRECT), n_labels))
    absent, trial, move = np.empty(len(index)), np.empty(len(index)), np.empty(len(index))
    active = np.empty(len(index), np.bool_)
    trial_slack = np.empty(n_labels)
    value = (labels * np.log(slack)).sum()
    enough = tol
    for step in range(DUAL_STEPS):
        explained = labels / slack
        worst, used = 0.0, 0
        for a in range(len(index)):
            absent[a] = (rows[a] * explained).sum()
            worst = max(worst, abs(min(absent[a], price[index[a]])))
            active[a] = price[index[a]] > 0 or absent[a] < 0
            used += active[a]
        if step == 0:
            enough = max(tol, worst / 500)  # classes may still join: no more digits than needed
        if worst <= enough:
            return
        if used <= MOST_DIRECT:
            _direct(rows, np.sqrt(labels) / slack, active, absent, move, scaled, trial)
        else:
            _conjugate_gradients(rows, explained / slack, active, absent, move)
        value = _dual_search(labels, price, slack, index, rows, move, trial_slack, value)
        if value == -np.inf:
            return


@compiled
def _direct(rows, root, active, right, move, scaled, trial):
    """Solve (R diag(root²) Rᵀ) move = right on the active rows R by a factorization."""
    used = 0
    for a in range(len(active)):
        if active[a]:
            for s in range(len(root)):
                scaled[used, s] = rows[a, s] * root[s]
            trial[used] = right[a]
            used += 1
    gram = np.dot(scaled[:used], scaled[:used].T)
    _factor(gram, used, 0.0)
    _back_solve(gram, trial[:used])
    used = 0
    for a in range(len(active)):
        move[a] = trial[used] if active[a] else 0.0
        used += active[a]


@compiled
def _conjugate_gradients(rows, weight, active, right, move):
    """Solve (R diag(weight) Rᵀ) move = right on the active rows R, to three digits.

    T⁻¹ is near a diagonal where labels mostly tell their class: a few products of a vector then do
    what a matrix of all pairs of absent classes would. A direction cut short is still a descent.
    """
    size = len(active)
    scale, rest, toward = np.empty(size), np.zeros(size), np.zeros(size)
    move[:] = 0.0
    left = 0.0
    for a in range(size):
        if active[a]:
            total = 0.0
            for s in range(len(weight)):
                total += rows[a, s] * rows[a, s] * weight[s]
            scale[a] = 1 / total
            rest[a] = right[a]
            toward[a] = rest[a] * scale[a]
            left += rest[a] * toward[a]
    goal = 1e-6 * left
    for _ in range(MOST_CG):
        image = np.dot(rows, np.dot(toward, rows) * weight)
        length = left / (toward * image).sum()
        before, left = left, 0.0
        for a in range(size):
            if active[a]:
                move[a] += length * toward[a]
                rest[a] -= length * image[a]
                left += rest[a] * rest[a] * scale[a]
        if left <= goal:
            return
        for a in range(size):
            if active[a]:
                toward[a] = rest[a] * scale[a] + left / before * toward[a]


@compiled
def _dual_search(labels, price, slack, index, rows, move, trial_slack, value):
    length = 1.0
    for _ in range(40):
        trial_slack[:] = 1.0
        for a in range(len(index)):
            wanted = max(price[index[a]] - length * move[a], 0.0)
            if wanted > 0:
                for s in range(len(labels)):
                    trial_slack[s] -= wanted * rows[a, s]
        if trial_slack.min() > 0:
            new = (labels * np.log(trial_slack)).sum()
            if new >= value - NOISE:
                slack[:] = trial_slack
                for a in range(len(index)):
                    price[index[a]] = max(price[index[a]] - length * move[a], 0.0)
                return new
        length /= 2
    return -np.inf


@compiled
def _factor(gram, size, flat):
    """Cholesky in the lower triangle of `gram`, with the ridge of `_rows`."""
    for a in range(size):
        lift = RIDGE * (gram[a, a] if gram[a, a] > 0 else 1.0) + flat
        for b in range(a + 1):
            total = gram[a, b]
            for c in range(b):
                total -= gram[a, c] * gram[b, c]
            if a == b:
                gram[a, a] = np.sqrt(max(total, 0.0) + lift)
            else:
                gram[a, b] = total / gram[b, b]


@compiled
def _back_solve(gram, right):
    size = len(right)
    for a in range(size):
        total = right[a]
        for b in range(a):
            total -= gram[a, b] * right[b]
        right[a] = total / gram[a, a]
    for a in range(size - 1, -1, -1):
        right[a] /= gram[a, a]
        for b in range(a):
            right[b] -= gram[a, b] * right[a]
