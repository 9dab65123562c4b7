"""A second row solver, for the few rows that `_rows.ascend` leaves short of their optimum.

If the labels of a row differ by many orders of magnitude, a class may have to grow by just as many,
but a Newton step in class_proba can at most double it. This primal-dual method has variables for
everything that can become extreme. The optimum y of a row satisfies

    Tr + l + z = λ1,   Σ_k y_k = 1,   (yT)_s r_s = S_s,   y_k z_k = 0,   y ≥ 0,   z ≥ 0,

where z is the multiplier of y ≥ 0 and λ that of the sum. Newton steps solve these equations with
y_k z_k = τ instead of 0, and a τ that falls in each step. About ten steps are enough, but each
costs as much as several steps of `_rows`.
"""

from typing import Any, NamedTuple

from array_api_compat import array_namespace, device

from looselabels._rows import evaluate, on_simplex, ratio, solve_on

MAX_STEPS = 100
FALL = 0.05  # τ, relative to the mean of y z
TO_BOUNDARY = 0.99  # the largest share of the way to a zero in one step


class Interior(NamedTuple):
    """A positive point for each row; the conditions need not hold yet."""

    class_proba: Any  # y
    label_ratio: Any  # r, one per label
    multiplier: Any  # z, one per class
    level: Any  # λ, one per row


def solve_inside(label_proba, class_proba, transition, log_prior, tol):
    """Return a class_proba with a gap below `tol` for each row, or else the best one found.

    The given class_proba, a result of `_rows.ascend`, is what has to be improved on.
    """
    xp = array_namespace(label_proba)
    if log_prior is None:
        log_prior = xp.zeros_like(transition[:, 0])
    chosen = class_proba
    gap = evaluate(label_proba, class_proba, transition, log_prior).gap
    at = _start(label_proba, transition, log_prior)
    for _ in range(MAX_STEPS):
        at = _step(at, label_proba, transition, log_prior)
        new = evaluate(label_proba, on_simplex(at.class_proba), transition, log_prior)
        better = (gap > tol) & (new.gap < gap)
        chosen = xp.where(better[:, None], new.class_proba, chosen)
        gap = xp.where(better, new.gap, gap)
        if bool(xp.all(gap <= tol)):
            break
    return chosen


def _start(label_proba, transition, log_prior) -> Interior:
    xp = array_namespace(label_proba)
    shape = (label_proba.shape[0], transition.shape[0])
    class_proba = xp.full(shape, 1 / shape[1], dtype=xp.float64, device=device(label_proba))
    label_ratio = ratio(label_proba, class_proba @ transition)
    gradient = label_ratio @ transition.T + log_prior
    level = xp.max(gradient, axis=1, keepdims=True) + 1
    return Interior(class_proba, label_ratio, level - gradient, level)


def _step(at: Interior, label_proba, transition, log_prior) -> Interior:
    """Take one Newton step on the conditions, and stay positive."""
    xp = array_namespace(label_proba)
    y, r, z, level = at
    explained = y @ transition
    aim = FALL * xp.mean(y * z, axis=1, keepdims=True)
    # r and z are eliminated: (T diag(r / yT) Tᵀ + diag(z / y)) dy + dλ = right, and Σ dy = 1 − Σ y
    target = ratio(label_proba, explained)
    right = target @ transition.T + log_prior + aim / y - level
    identity = xp.eye(transition.shape[0], dtype=z.dtype, device=device(z))
    factor = xp.concat([transition, identity], axis=1)
    weight = xp.concat([ratio(r, explained), z / y], axis=1)
    toward, shift = solve_on(y > 0, factor, weight, right, xp.ones_like(y))
    missing = 1 - xp.sum(y, axis=1, keepdims=True)
    rise = (xp.sum(toward, axis=1, keepdims=True) - missing) / xp.sum(shift, axis=1, keepdims=True)
    dy = toward - rise * shift
    change = dy @ transition
    dr = target - r - ratio(r, explained) * change
    dz = aim / y - z - z / y * dy
    primal = xp.minimum(_room(y, dy), _room(explained, change))
    dual = xp.minimum(_room(z, dz), _room(r, dr))
    return Interior(y + primal * dy, r + dual * dr, z + dual * dz, level + dual * rise)


def _room(value, change):
    """Return the share of `change` after which every entry is still positive; at most 1."""
    xp = array_namespace(value)
    falling = change < 0
    room = xp.where(falling, value / xp.where(falling, -change, 1.0), xp.inf)
    return xp.clip(TO_BOUNDARY * xp.min(room, axis=1, keepdims=True), None, 1.0)
