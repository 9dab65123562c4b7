"""The row solver behind `infer`: many small concave problems on the simplex, solved exactly.

For one row S of label_proba, a transition T and a log prior l, find the class distribution y that
maximizes

    f(y) = Σ_s S_s log (yT)_s + y·l        subject to y ≥ 0, Σ_k y_k = 1.

There are two active-set Newton methods. `ascend` solves for the classes that are free and accepts
every transition. `solve_dual` needs a square and invertible T and solves for the multipliers of the
absent classes (y_k = 0); these are few, which makes a thousand classes affordable. Both use the
same linear solver. Rows come in blocks of float64, in any library that follows the array API.
"""

from typing import Any, NamedTuple

from array_api_compat import array_namespace, device

MAX_STEPS = 100  # Newton steps per row; five are typical
MAX_DIRECT = 48  # size of a system; beyond it, conjugate gradients are cheaper than its matrix
MAX_CG_STEPS = 25
CG_SHARE = 1e-3  # relative accuracy of conjugate gradients
ELEMENTS_AT_ONCE = 2**19  # limits the temporary arrays of one linear solve to 4 MiB
RIDGE = 1e-13  # relative; the pivot of linearly dependent rows of T is rounding error
FLAT = 1e-10  # nats; added to the curvature, to keep steps in flat directions finite
SINGULAR = 1e-10  # relative; below this, rows of T count as linearly dependent
ABSENT = 1e-8  # weight of absent classes: if few are present, their system alone is singular
ARMIJO = 1e-4  # required share of the increase that the slope predicts
SHRINK = 0.01  # a step that keeps a class positive reduces it to this share at most
NOISE = 1e-15  # nats; a smaller change of the objective can be rounding error
SMALL_CHANGE = 1e-3  # for smaller r, r − log(1 + r) is computed by a series: it cancels


class Ascent(NamedTuple):
    """A point on the simplex for each row, with everything that a step from there needs."""

    label_proba: Any
    class_proba: Any
    explained: Any  # the p(label | x) that class_proba implies: yT
    slope: Any  # the gradient minus its mean under class_proba
    gap: Any  # the Frank–Wolfe gap, max slope: the optimum is better by at most this


class Descent(NamedTuple):
    """Multipliers of y ≥ 0 for each row, with the class_proba that they imply."""

    label_proba: Any
    price: Any  # the multipliers μ, one per class
    slack: Any  # 1 − T⁻¹μ > 0, one per label
    class_proba: Any  # qT⁻¹ with q = label_proba / slack; entries can still be negative
    residual: Any  # max |min(class_proba, price)|: zero at the optimum


def evaluate(label_proba, class_proba, transition, log_prior, explained=None) -> Ascent:
    """Return the slope of each row at `class_proba`, and its gap; `explained` is yT, if known."""
    xp = array_namespace(label_proba)
    if explained is None:
        explained = class_proba @ transition
    gradient = ratio(label_proba, explained) @ transition.T
    if log_prior is not None:
        gradient = gradient + log_prior
    slope = gradient - xp.sum(class_proba * gradient, axis=1, keepdims=True)
    return Ascent(label_proba, class_proba, explained, slope, xp.max(slope, axis=1))


def ascend(label_proba, start, transition, log_prior, tol):
    """Solve every row by Newton steps on its free classes.

    `start` must give a positive probability to each label with S_s > 0.
    """
    xp = array_namespace(label_proba)

    def step(at):
        target = _step(at, transition, tol)
        # If no step improves a row, it has reached floating-point precision.
        moved = xp.any(target != at.class_proba, axis=1)
        after = evaluate(at.label_proba, target, transition, log_prior)
        return after, moved & (after.gap > tol)

    at = evaluate(label_proba, start, transition, log_prior)
    return _repeat(step, at, at.gap > tol).class_proba


def solve_dual(label_proba, inverse, tol):
    """Solve rows with S > 0 for every label; T is invertible and the class prior is uniform.

    In terms of q = yT the problem is max Σ S log q subject to qT⁻¹ ≥ 0. Its optimum is
    q = S / (1 − T⁻¹μ) with a multiplier μ_k ≥ 0 for each class, which is zero if the class is
    present. Newton's method minimizes −Σ S log(1 − T⁻¹μ) over μ; the gradient is y, and the linear
    systems are only as large as the number of absent classes. `tol` is the gap to reach; a row that
    does not reach it is returned as a good start for `ascend`.
    """
    xp = array_namespace(label_proba)
    tol = tol / 100  # negative class_proba are set to zero, which adds a larger gap

    def step(at):
        members = (at.price > 0) | (at.class_proba < 0)
        weight = at.label_proba / at.slack**2
        if inverse.shape[0] > MAX_DIRECT:
            move = _conjugate_gradients(members, inverse.T, weight, at.class_proba)
        else:
            (move,) = solve_on(members, inverse.T, weight, at.class_proba)
        after = _dual_step(at, move, inverse)
        moved = xp.any(after.price != at.price, axis=1)
        return after, (after.residual > tol) & moved

    class_proba = label_proba @ inverse
    at = _descent(label_proba, xp.zeros_like(class_proba), xp.ones_like(label_proba), inverse)
    at = _repeat(step, at, at.residual > tol)
    return on_simplex(xp.where(at.price > 0, 0.0, at.class_proba))


def is_ambiguous(at: Ascent, transition, tol):
    """Return which rows, evaluated at an optimum, have more than one optimum.

    All optima have the same yT on the labels with S_s > 0, and all their classes have slope zero.
    The optimum is unique exactly if the rows of T of these classes, restricted to the columns of
    these labels, are linearly independent.
    """
    xp = array_namespace(at.slope)
    # Rare labels distinguish classes as well as frequent ones: scale all columns to maximum 1.
    largest = xp.max(transition, axis=0)
    weight = xp.where(at.label_proba > 0, 1 / xp.where(largest > 0, largest, 1.0) ** 2, 0.0)
    # The right-hand side is arbitrary, but must not be orthogonal to all null vectors.
    probe = xp.cos(xp.arange(1, transition.shape[0] + 1, dtype=weight.dtype, device=device(weight)))
    probe = xp.broadcast_to(probe, at.slope.shape)
    (answer,) = solve_on(at.slope >= -tol, transition, weight, probe)
    return xp.max(xp.abs(answer), axis=1) > 1 / SINGULAR


def closest_optimum(at: Ascent, transition, anchor, tol):
    """Return for each row the optimum that is closest to `anchor`.

    min |y − anchor|² subject to y ≥ 0, y = 0 for classes with a negative slope, and the same yT as
    in `at` on the labels with S_s > 0. Solved by Newton's method on the dual:
    y = (anchor + Cν)₊ with Cᵀy = d and C = (T, 1).
    """
    xp = array_namespace(at.slope)
    ones = xp.ones_like(at.gap)[:, None]
    tied = at.slope >= -tol
    constraints = xp.concat([transition.T, xp.ones_like(transition[:, :1]).T], axis=0)
    binding = xp.concat([at.label_proba > 0, ones > 0], axis=1)
    wanted = at.class_proba @ constraints.T
    multiplier = xp.zeros_like(wanted)

    def primal(multiplier):
        return xp.where(tied, xp.clip(anchor + multiplier @ constraints, 0.0, None), 0.0)

    def merit(multiplier):
        return xp.sum(primal(multiplier) ** 2, axis=1) / 2 - xp.sum(wanted * multiplier, axis=1)

    for _ in range(MAX_STEPS):
        class_proba = primal(multiplier)
        miss = xp.where(binding, wanted - class_proba @ constraints.T, 0.0)
        if float(xp.max(xp.abs(miss))) <= 1e-14:
            break
        active = xp.clip(xp.astype(class_proba > 0, miss.dtype), ABSENT, None)
        (move,) = solve_on(binding, constraints, active, miss)
        share, value = ones, merit(multiplier)
        for _ in range(30):
            worse = merit(multiplier + share * move) > value + NOISE
            if not bool(xp.any(worse)):
                break
            share = xp.where(worse[:, None], share / 2, share)
        multiplier = multiplier + share * move
    return on_simplex(class_proba)


def _repeat(step, state, moving):
    """Apply `step` to the rows that are still moving, until no row moves."""
    xp = array_namespace(moving)
    for _ in range(MAX_STEPS):
        if not bool(xp.any(moving)):
            break
        rows = xp.nonzero(moving)[0]
        after, still = step(type(state)(*(xp.take(field, rows, axis=0) for field in state)))
        state = type(state)(*(put_rows(moving, *pair) for pair in zip(state, after, strict=True)))
        moving = put_rows(moving, moving, still)
    return state


def _step(at: Ascent, transition, tol):
    """Return the class_proba of every row after one Newton step; f never decreases."""
    xp = array_namespace(at.label_proba)
    direction = _direction(at, transition, tol)
    # Most steps set several classes to zero: try the projection of the full step first.
    target = on_simplex(at.class_proba + direction)
    good = _rise(at, target, transition) > 0
    share, vanishing = _to_boundary(xp, at.class_proba, direction)
    for attempt in range(60):
        if bool(xp.all(good)):
            break
        if attempt == 0:  # a class that alone can have a rare label must shrink, not vanish
            trial = xp.maximum(at.class_proba + direction, SHRINK * at.class_proba)
        else:  # up to the point where the first class vanishes, then half as far each time
            trial = at.class_proba + share[:, None] * direction
            share = share / 2
        if attempt == 1:
            trial = xp.where(vanishing, 0.0, trial)
        trial = on_simplex(trial)
        rise = _rise(at, trial, transition)
        better = ~good & ((rise > 0) | ((attempt == 1) & (rise >= -NOISE)))
        target = _where(xp, better, trial, target)
        good = good | better
    return _where(xp, good, target, at.class_proba)


def _rise(at: Ascent, target, transition):
    """Return by how much the increase of f exceeds what the Armijo condition requires.

    f(target) − f(y) = slope·(target − y) − Σ S (r − log(1 + r)), where r is the relative change of
    yT. Unlike a difference of two values of f, this is accurate near the optimum.
    """
    xp = array_namespace(target)
    move = target - at.class_proba
    gain = xp.sum(at.slope * move, axis=1)
    mixed = target @ transition
    seen = at.label_proba > 0
    lost = seen & (mixed <= 0)
    growth = xp.where(seen & ~lost, mixed / xp.where(seen, at.explained, 1.0), 1.0)
    r = xp.where(seen & ~lost, (mixed - at.explained) / xp.where(seen, at.explained, 1.0), 0.0)
    series = r * r * (0.5 - r * (1 / 3 - r / 4))
    shortfall = xp.where(xp.abs(r) < SMALL_CHANGE, series, r - xp.log(growth))
    rise = gain - xp.sum(at.label_proba * shortfall, axis=1) - ARMIJO * xp.abs(gain)
    return xp.where(xp.any(lost, axis=1), -xp.inf, rise)


def _direction(at: Ascent, transition, tol):
    """Return the Newton direction on the free classes; its entries sum to zero."""
    xp = array_namespace(at.label_proba)
    present = at.class_proba > 0
    slope = at.slope
    weight = ratio(at.label_proba, at.explained**2)
    free = present | (slope > 0)
    for _ in range(transition.shape[0]):
        direction = _equality_newton(xp, free, transition, weight, slope)
        blocked = free & ~present & (direction < 0)
        if not bool(xp.any(blocked)):
            break
        free = free & ~blocked
    # If the present classes are at their optimum, the absent class of largest slope must enter.
    stuck = xp.max(xp.abs(xp.where(free, slope, 0.0)), axis=1) <= tol / 2
    if bool(xp.any(stuck)):
        steepest = slope >= xp.max(slope, axis=1, keepdims=True)
        entering = _equality_newton(xp, present | steepest, transition, weight, slope)
        direction = _where(xp, stuck, entering, direction)
    return direction


def _equality_newton(xp, free, transition, weight, slope):
    toward, shift = solve_on(free, transition, weight, slope, xp.ones_like(slope), flat=FLAT)
    total = xp.sum(shift, axis=1, keepdims=True)
    return toward - shift * (xp.sum(toward, axis=1, keepdims=True) / total)


def _descent(label_proba, price, slack, inverse) -> Descent:
    xp = array_namespace(label_proba)
    class_proba = (label_proba / slack) @ inverse
    residual = xp.max(xp.abs(xp.minimum(class_proba, price)), axis=1)
    return Descent(label_proba, price, slack, class_proba, residual)


def _dual_step(at: Descent, move, inverse) -> Descent:
    """Decrease the dual of each row along the projected Newton path, halving the step if needed."""
    xp = array_namespace(move)
    value = xp.sum(at.label_proba * xp.log(at.slack), axis=1)
    waiting = ~xp.isnan(value)
    share, price, slack = 1.0, at.price, at.slack
    for _ in range(40):
        if not bool(xp.any(waiting)):
            break
        rows = xp.nonzero(waiting)[0]  # after the first attempt, these are few
        pick = (xp.take(a, rows, axis=0) for a in (at.price, move, at.label_proba, value))
        old, step, labels, least = pick
        trial = xp.clip(old - share * step, 0.0, None)
        trial_slack = 1 - trial @ inverse.T
        inside = xp.min(trial_slack, axis=1) > 0
        log_slack = xp.log(xp.where(inside[:, None], trial_slack, 1.0))
        lower = inside & (xp.sum(labels * log_slack, axis=1) >= least - NOISE)
        price = put_rows(waiting, price, _where(xp, lower, trial, xp.take(price, rows, axis=0)))
        kept = xp.take(slack, rows, axis=0)
        slack = put_rows(waiting, slack, _where(xp, lower, trial_slack, kept))
        waiting = put_rows(waiting, waiting, ~lower)
        share = share / 2
    return _descent(at.label_proba, price, slack, inverse)


def _conjugate_gradients(members, factor, weight, right):
    """Solve the systems of `solve_on` to `CG_SHARE` of the right-hand side, by products only.

    Two products of matrices serve all rows, where `solve_on` needs a matrix for each row. An
    inexact solution is still a descent direction.
    """
    xp = array_namespace(members)
    rest = xp.where(members, right, 0.0)
    scale = xp.where(members, 1 / (weight @ (factor * factor).T), 0.0)
    found, toward = xp.zeros_like(rest), scale * rest
    left = xp.sum(rest * toward, axis=1, keepdims=True)
    goal = CG_SHARE**2 * left
    for _ in range(MAX_CG_STEPS):
        if bool(xp.all(left <= goal)):
            break
        image = xp.where(members, ((toward @ factor) * weight) @ factor.T, 0.0)
        curvature = xp.sum(toward * image, axis=1, keepdims=True)
        length = xp.where(left > goal, left / xp.where(curvature > 0, curvature, 1.0), 0.0)
        found = found + length * toward
        rest = rest - length * image
        before, left = left, xp.sum(scale * rest * rest, axis=1, keepdims=True)
        toward = scale * rest + left / xp.where(before > 0, before, 1.0) * toward
    return found


def solve_on(members, factor, weight, *rights, flat=0.0):
    """Solve (F diag(w) Fᵀ) x = right for each row, where F holds the row's members of `factor`.

    x is zero for all other entries. Rows are sorted by their number of members, which keeps the
    padding of each batch small.
    """
    xp = array_namespace(members)
    count = xp.sum(xp.astype(members, xp.int64), axis=1)
    by_count = xp.argsort(count)
    begin, n_rows, parts = 0, members.shape[0], []
    while begin < n_rows:
        # Widths increase along by_count: the first row sets the chunk size, the last the padding.
        width = max(1, int(count[int(by_count[begin])]))
        end = min(n_rows, begin + max(1, ELEMENTS_AT_ONCE // (width * factor.shape[1])))
        rows = by_count[begin:end]
        width = max(1, int(count[int(by_count[end - 1])]))
        pick = (xp.take(a, rows, axis=0) for a in (members, weight, *rights))
        parts.append(_solve_padded(xp, width, flat, factor, *pick))
        begin = end
    back = xp.argsort(by_count)
    return tuple(xp.take(xp.concat(part), back, axis=0) for part in zip(*parts, strict=True))


def _solve_padded(xp, width, flat, factor, members, weight, *rights):
    order = xp.argsort(xp.astype(~members, xp.int8), axis=1)  # members first
    chosen = order[:, :width]
    live = xp.take_along_axis(members, chosen, axis=1)
    part = xp.reshape(
        xp.take(factor, xp.reshape(chosen, (-1,)), axis=0), (*chosen.shape, factor.shape[1])
    )
    half = part * xp.sqrt(weight)[:, None, :]
    # Labels can differ in frequency by orders of magnitude: scale all members to norm 1.
    size = xp.sqrt(xp.sum(half * half, axis=2))
    scale = xp.where(
        live & (size > 0), 1 / xp.where(size > 0, size, 1.0), xp.astype(live, size.dtype)
    )
    half = half * scale[:, :, None]
    eye = xp.eye(width, dtype=half.dtype, device=device(half))
    gram = (
        half @ xp.matrix_transpose(half)
        + (RIDGE + xp.astype(scale == 0, size.dtype) + flat * scale**2)[:, :, None] * eye
    )
    right = xp.stack([xp.take_along_axis(r, chosen, axis=1) * scale for r in rights], axis=2)
    found = xp.linalg.solve(gram, right) * scale[:, :, None]
    padding = xp.zeros(
        (members.shape[0], members.shape[1] - width), dtype=gram.dtype, device=device(gram)
    )
    home = xp.argsort(order, axis=1)
    return tuple(
        xp.take_along_axis(xp.concat([found[:, :, i], padding], axis=1), home, axis=1)
        for i in range(len(rights))
    )


def _to_boundary(xp, class_proba, direction):
    """Return the share of `direction` at which the first class vanishes, and the class."""
    falling = direction < 0
    room = xp.where(falling, class_proba / xp.where(falling, -direction, 1.0), xp.inf)
    share = xp.clip(xp.min(room, axis=1), None, 1.0)
    return share, room <= share[:, None]


def on_simplex(rows):
    """Return rows with negative entries set to 0, normalized; uniform if nothing is positive."""
    xp = array_namespace(rows)
    rows = xp.where(rows > 0, rows, 0.0)
    total = xp.sum(rows, axis=1, keepdims=True)
    rows = xp.where(total > 0, rows, 1.0)
    return rows / xp.where(total > 0, total, float(rows.shape[1]))


def ratio(x, y):
    """Return x / y, or 0 where x is 0."""
    xp = array_namespace(x)
    return xp.where(x > 0, x / xp.where(x > 0, y, 1.0), 0.0)


def put_rows(where, old, new):
    """Return `old` with the marked rows replaced by `new`, without writing in place."""
    xp = array_namespace(old)
    position = xp.clip(xp.cumulative_sum(xp.astype(where, xp.int64)) - 1, 0, None)
    return _where(xp, where, xp.take(new, position, axis=0), old)


def _where(xp, rows, yes, no):
    return xp.where(rows if yes.ndim == 1 else rows[:, None], yes, no)
