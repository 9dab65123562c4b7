"""The dual of `_rows`, compiled: a square and invertible T, and a row without zeros.

`solve_dual` first takes Newton steps with a diagonal Hessian for all rows of a block, by matrix
products, and then solves the rows for which that is not enough one by one.
"""

from typing import NamedTuple

import numpy as np
import scipy.linalg  # noqa: F401  numba calls the BLAS of SciPy
from numba import njit

from looselabels._rows import (
    CG_SHARE,
    MAX_CG_STEPS,
    MAX_DIRECT,
    MAX_STEPS,
    NOISE,
    RIDGE,
    on_simplex,
)

DUAL_STEPS = 20  # Newton steps per set of absent classes; more would only change rounding errors
DIAGONAL_STEPS = 12  # Newton steps with a diagonal Hessian; four are typical
SINGLE_TOL = 1e-5  # what these steps are certain to reach in single precision
MIN_RATE = 0.03  # of their convergence; a faster one will not last
MAX_RATE = 0.5  # if they converge more slowly, rows are solved one by one

# These flags allow sums to be reordered and vectorized; NaN and infinity keep their meaning.
compiled = njit(nogil=True, cache=True, error_model="numpy", fastmath={"reassoc", "contract"})


def solve_dual(label_proba, inverse, tol):
    """Return the same as `_rows.solve_dual`.

    If most labels name their class, T⁻¹ is nearly diagonal, and matrix products for all rows with
    the diagonal of the Hessian are much faster than Newton's method for each row. The first steps
    need only single precision.
    """
    labels, single = label_proba.astype(np.float32), inverse.astype(np.float32)
    hessian = _diagonal_hessian(labels, single)
    price = np.zeros_like(labels)
    change = np.full(len(price), 2.0)  # prices are at most 1
    _descend(labels, single, hessian, price, change, max(tol, SINGLE_TOL))
    price, change = price.astype(np.float64), np.clip(change, SINGLE_TOL / 10, 2.0)
    class_proba, solved = _descend(label_proba, inverse, hessian, price, change, tol)
    if not solved.all():
        class_proba[~solved] = _solve_dual_by_row(label_proba[~solved], inverse, tol / 100)
    # A row that diverged starts anew, as any row that misses its certificate.
    return on_simplex(np.where(np.isfinite(class_proba), class_proba, 0.0))


class Diagonal(NamedTuple):
    """The diagonal of the Hessian, T⁻ᵀ diag(S / slack²) T⁻¹, in a form that is cheap to update.

    Only the weight of the label that names a class is updated; the others contribute little.
    """

    label_of: np.ndarray  # the label that names each class
    leading: np.ndarray  # its entry of T⁻¹
    others: np.ndarray  # what the other labels contribute, for each row


def _diagonal_hessian(label_proba, inverse) -> Diagonal:
    squares = inverse * inverse
    label_of = squares.argmax(axis=0)
    leading = inverse[label_of, np.arange(inverse.shape[1])]
    others = label_proba @ squares - label_proba[:, label_of] * leading**2
    return Diagonal(label_of, leading, others)


def _descend(label_proba, inverse, hessian: Diagonal, price, change, tol):
    """Decrease the dual of all rows by projected Newton steps.

    `price` and `change`, the largest change of the last step, are overwritten. A row is solved if
    the prices after its next step will be accurate to `tol`: S / q is 1 − T⁻¹μ, so the gradient is
    1 − μ, and an error of the prices is an error of the gradient. Returns the class_proba before
    that step, and which rows are solved.
    """
    found, solved = np.zeros_like(price), np.zeros(len(price), np.bool_)
    rows, labels, current, others = np.arange(len(price)), label_proba, price, hessian.others
    for _ in range(DIAGONAL_STEPS):
        with np.errstate(all="ignore"):  # a row that leaves the domain of the dual is not solved
            explained = labels / (1 - current @ inverse.T) if current.any() else labels
            class_proba = explained @ inverse
        new = _step(labels, explained, class_proba, current, *hessian[:2], others)
        rate, change[rows] = np.maximum(new / change[rows], MIN_RATE), new
        price[rows], found[rows], solved[rows] = current, class_proba, new * rate <= tol / 2
        # A row that does not converge quickly has a Hessian that is not nearly diagonal.
        still = ~solved[rows] & (rate < MAX_RATE)
        if not still.any():
            break
        if not still.all():
            rows, labels, current, others = (a[still] for a in (rows, labels, current, others))
    return found, solved


@compiled
def _step(labels, explained, class_proba, price, label_of, leading, others):
    """Update `price`, set absent classes in `class_proba` to 0, and return the largest changes.

    A change is infinite if the row left the domain of the dual.
    """
    change = np.zeros(len(price))
    for i in range(len(price)):
        if not explained[i].min() > 0:
            change[i] = np.inf
            continue
        for k in range(price.shape[1]):
            if price[i, k] > 0 or class_proba[i, k] < 0:
                s = label_of[k]
                # The label that names the class has exactly known curvature: use its secant.
                part = leading[k] * explained[i, s]
                secant = max(part * (part - class_proba[i, k]), part * part / 2) / labels[i, s]
                move = class_proba[i, k] / (others[i, k] + secant)
                new = max(price[i, k] - move, 0.0)
                change[i] = max(change[i], abs(new - price[i, k]))
                price[i, k] = new
                class_proba[i, k] = 0.0
    return change


def _solve_dual_by_row(label_proba, inverse, tol):
    # Finding the absent classes takes one matrix product for all rows. The prices for a given set
    # of absent classes are then a small problem for each row.
    inverse_t = np.ascontiguousarray(inverse.T)
    class_proba = label_proba @ inverse
    price, slack = np.zeros_like(class_proba), np.ones_like(label_proba)
    moving, before = np.arange(len(label_proba)), np.full(len(label_proba), np.inf)
    for _ in range(MAX_STEPS):
        residual = np.abs(np.minimum(class_proba[moving], price[moving])).max(axis=1)
        # Rounding can stop a row with tiny labels before it reaches `tol`; `ascend` finishes it.
        still = (residual > tol) & (residual < before / 2)
        moving, before = moving[still], residual[still]
        if not len(moving):
            break
        members = (price[moving] > 0) | (class_proba[moving] < 0)
        labels, new_price, new_slack = label_proba[moving], price[moving], slack[moving]
        _settle_prices(labels, new_price, new_slack, members, inverse_t, tol)
        price[moving], slack[moving] = new_price, new_slack
        class_proba[moving] = (labels / new_slack) @ inverse
    return np.where(price > 0, 0.0, class_proba)


@compiled
def _settle_prices(label_proba, price, slack, members, inverse_t, tol):
    """Solve the dual on the `members` of each row; `price` and `slack` are overwritten."""
    for i in range(len(label_proba)):
        index = np.nonzero(members[i])[0]
        _settle(label_proba[i], price[i], slack[i], index, inverse_t, tol)


@compiled
def _settle(labels, price, slack, index, inverse_t, tol):
    n_labels = len(labels)
    rows = inverse_t[index]
    scaled = np.empty((min(len(index), MAX_DIRECT), n_labels))
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
            enough = max(tol, worst / 500)  # the set of absent classes can still change
        if worst <= enough:
            return
        if used <= MAX_DIRECT:
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
    factor(gram, used, 0.0)
    back_solve(gram, trial[:used])
    used = 0
    for a in range(len(active)):
        move[a] = trial[used] if active[a] else 0.0
        used += active[a]


@compiled
def _conjugate_gradients(rows, weight, active, right, move):
    """Solve (R diag(weight) Rᵀ) move = right on the active rows R, to a share `CG_SHARE`.

    If most labels name their class, T⁻¹ is nearly diagonal: a few products with a vector are then
    cheaper than the matrix of all pairs of absent classes. An inexact solution is still a descent
    direction.
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
    goal = CG_SHARE**2 * left
    for _ in range(MAX_CG_STEPS):
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


# ---------------------------------------------------------------------------------- linear algebra


@compiled
def factor(gram, size, flat):
    """Write the Cholesky factor into the lower triangle of `gram`, with the ridge of `_rows`."""
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
def back_solve(gram, right):
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
