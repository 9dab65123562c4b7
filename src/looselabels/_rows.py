"""The row solver behind `infer`: many small concave problems on the simplex, solved exactly.

For one row S of label_proba, a transition T and a log prior l, find the class distribution y that
maximizes

    f(y) = Σ_s S_s log (yT)_s + y·l        subject to y ≥ 0, Σ_k y_k = 1.

Two active-set Newton methods share one linear solve. `ascend` works on the classes that are free,
and takes any transition. `solve_dual` works on the classes that are absent: where T is square and
invertible it needs only the few multipliers of y ≥ 0, which is what makes a thousand classes
affordable. Any array library that follows the array API will do; rows come in blocks, as float64.
"""

from typing import Any, NamedTuple

from array_api_compat import array_namespace, device

MAX_STEPS = 100  # Newton steps a row may take; five are typical
ELEMENTS_AT_ONCE = 2**19  # bounds the temporary arrays of one linear solve (4 MiB)
RIDGE = 1e-13  # relative; what dependent rows of T leave of a pivot is rounding
FLAT = 1e-10  # nats; curvature below this is none, and steps in such directions stay finite
SINGULAR = 1e-10  # relative; classes nearer to dependence than this count as dependent
ARMIJO = 1e-4
SHRINK = 0.01  # to what share of itself a class may fall in a step that keeps it
NOISE = 1e-15  # nats; a change of the objective below this may be rounding
SMALL_CHANGE = 1e-3  # below it r − log(1 + r) is summed as a series: the difference is rounding


class Ascent(NamedTuple):
    """A point on the simplex in each row, with all that a step from it needs."""

    label_proba: Any
    class_proba: Any
    explained: Any  # p(label | x) that class_proba implies: the rows of yT
    slope: Any  # the gradient less its mean under class_proba
    gap: Any  # Frank–Wolfe, the largest slope: no class_proba is better by more than this


class Descent(NamedTuple):
    """Multipliers of y ≥ 0 in each row, with the class_proba that they imply."""

    label_proba: Any
    price: Any  # μ, one a class
    slack: Any  # 1 − T⁻¹μ, one a label; positive
    class_proba: Any  # qT⁻¹ with q = label_proba / slack; not yet ≥ 0
    residual: Any  # a class is absent, or its price is zero: how far from that


def evaluate(label_proba, class_proba, transition, log_prior) -> Ascent:
    """Return the slope of each row at `class_proba`, and its certificate."""
    xp = array_namespace(label_proba)
    explained = class_proba @ transition
    gradient = ratio(label_proba, explained) @ transition.T
    if log_prior is not None:
        gradient = gradient + log_prior
    slope = gradient - xp.sum(class_proba * gradient, axis=1, keepdims=True)
    return Ascent(label_proba, class_proba, explained, slope, xp.max(slope, axis=1))


def ascend(label_proba, start, transition, log_prior, tol):
    """Solve every row by Newton steps on its free classes.

    `start` must give each label that was seen some probability.
    """
    xp = array_namespace(label_proba)

    def step(at):
        target = _step(at, transition, tol)
        # A row that no step improves has reached the precision of its numbers.
        moved = xp.any(target != at.class_proba, axis=1)
        after = evaluate(at.label_proba, target, transition, log_prior)
        return after, moved & (after.gap > tol)

    at = evaluate(label_proba, start, transition, log_prior)
    return _repeat(step, at, at.gap > tol).class_proba


def solve_dual(label_proba, inverse, tol):
    """Solve rows where every label has some probability; T is invertible, the prior uniform.

    In q = yT the problem is max Σ S log q subject to qT⁻¹ ≥ 0: its optimum is q = S / (1 − T⁻¹μ)
    with a multiplier μ_k ≥ 0 for each class, zero where the class is present. Newton's method on
    min_μ −Σ S log(1 − T⁻¹μ), whose gradient is y, solves systems of the size of the absent classes
    only. Rows that do not settle come back as a good start for `ascend`.
    """
    xp = array_namespace(label_proba)

    def step(at):
        members = (at.price > 0) | (at.class_proba < 0)
        weight = at.label_proba / at.slack**2
        (move,) = _solve_on(members, inverse.T, weight, at.class_proba)
        after = _dual_step(at, move, inverse)
        moved = xp.any(after.price != at.price, axis=1)
        return after, (after.residual > tol) & moved

    class_proba = label_proba @ inverse
    at = _descent(label_proba, xp.zeros_like(class_proba), xp.ones_like(label_proba), inverse)
    at = _repeat(step, at, at.residual > tol)
    return on_simplex(xp.where(at.price > 0, 0.0, at.class_proba))


def is_ambiguous(at: Ascent, transition, tol):
    """Tell which rows, at their optimum, have other optima too.

    All optima share yT on the labels seen and live on the classes with no slope; they are one point
    exactly where those rows of T, seen labels only, are independent.
    """
    xp = array_namespace(at.slope)
    # Rare labels tell classes apart as well as common ones do: put all columns on one scale.
    largest = xp.max(transition, axis=0)
    weight = xp.where(at.label_proba > 0, 1 / xp.where(largest > 0, largest, 1.0) ** 2, 0.0)
    # The right-hand side is arbitrary: it must not be orthogonal to every null vector.
    probe = xp.cos(xp.arange(1, transition.shape[0] + 1, dtype=weight.dtype, device=device(weight)))
    probe = xp.broadcast_to(probe, at.slope.shape)
    (answer,) = _solve_on(at.slope >= -tol, transition, weight, probe)
    return xp.max(xp.abs(answer), axis=1) > 1 / SINGULAR


def closest_optimum(at: Ascent, transition, anchor, tol):
    """Return, of all optima of each row, the class_proba closest to `anchor`.

    min |y − anchor|² subject to y ≥ 0, y = 0 off the tied classes, and yT as `at` has it on the
    labels seen. By Newton's method on the dual: y = (anchor + Cν)₊ with Cᵀy = d, C = (T, 1).
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
        active = xp.astype(class_proba > 0, miss.dtype)
        (move,) = _solve_on(binding, constraints, active, miss)
        share, value = ones, merit(multiplier)
        for _ in range(30):
            worse = merit(multiplier + share * move) > value + NOISE
            if not bool(xp.any(worse)):
                break
            share = xp.where(worse[:, None], share / 2, share)
        multiplier = multiplier + share * move
    chosen = on_simplex(class_proba)
    return chosen


def _repeat(step, state, moving):
    """Apply `step` to the rows that are still moving until none is."""
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
    """Return the class_proba that one Newton step leads to in every row; never downhill."""
    xp = array_namespace(at.label_proba)
    direction = _direction(at, transition, tol)
    # Most steps end with several classes at zero: try the projection of the whole step first.
    target = on_simplex(at.class_proba + direction)
    good = _rise(at, target, transition) > 0
    share, vanishing = _to_boundary(xp, at.class_proba, direction)
    for attempt in range(60):
        if bool(xp.all(good)):
            break
        if attempt == 0:  # a class that alone explains a rare label must not vanish, only shrink
            trial = xp.maximum(at.class_proba + direction, SHRINK * at.class_proba)
        else:  # go to the first class that vanishes, then ever less
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
    """Return how far each row rises above the Armijo line, to full precision even near the optimum.

    f(target) − f(y) = slope·(target − y) − Σ S (r − log(1 + r)), r the relative change of yT.
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
    # Where the classes present are at their optimum, the steepest absent one must enter.
    stuck = xp.max(xp.abs(xp.where(free, slope, 0.0)), axis=1) <= tol / 2
    if bool(xp.any(stuck)):
        steepest = slope >= xp.max(slope, axis=1, keepdims=True)
        entering = _equality_newton(xp, present | steepest, transition, weight, slope)
        direction = _where(xp, stuck, entering, direction)
    return direction


def _equality_newton(xp, free, transition, weight, slope):
    toward, shift = _solve_on(free, transition, weight, slope, xp.ones_like(slope), flat=FLAT)
    total = xp.sum(shift, axis=1, keepdims=True)
    return toward - shift * (xp.sum(toward, axis=1, keepdims=True) / total)


def _descent(label_proba, price, slack, inverse) -> Descent:
    xp = array_namespace(label_proba)
    class_proba = (label_proba / slack) @ inverse
    residual = xp.max(xp.abs(xp.minimum(class_proba, price)), axis=1)
    return Descent(label_proba, price, slack, class_proba, residual)


def _dual_step(at: Descent, move, inverse) -> Descent:
    """Lower each row's dual along the projected Newton path, halving the step until it falls."""
    xp = array_namespace(move)
    value = xp.sum(at.label_proba * xp.log(at.slack), axis=1)
    good = xp.isnan(value)
    share, price, slack = 1.0, at.price, at.slack
    for _ in range(40):
        trial = xp.clip(at.price - share * move, 0.0, None)
        trial_slack = 1 - trial @ inverse.T
        inside = xp.min(trial_slack, axis=1) > 0
        log_slack = xp.log(xp.where(inside[:, None], trial_slack, 1.0))
        lower = ~good & inside & (xp.sum(at.label_proba * log_slack, axis=1) >= value - NOISE)
        price = _where(xp, lower, trial, price)
        slack = _where(xp, lower, trial_slack, slack)
        good = good | lower
        if bool(xp.all(good)):
            break
        share = share / 2
    return _descent(at.label_proba, price, slack, inverse)


def _solve_on(members, factor, weight, *rights, flat=0.0):
    """Solve (F diag(w) Fᵀ) x = right in each row, F being that row's members of `factor`.

    x is zero off the members.

    Rows are taken in order of how many members they have, so that padding stays small.
    """
    xp = array_namespace(members)
    count = xp.sum(xp.astype(members, xp.int64), axis=1)
    by_count = xp.argsort(count)
    begin, n_rows, parts = 0, members.shape[0], []
    while begin < n_rows:
        # Widths grow along by_count: size the chunk by its first row, pad it to its own last one.
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
    # Labels may be rarer than others by many orders: give all members the same scale.
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
    """Return the share of `direction` at which a first class vanishes, and which class that is."""
    falling = direction < 0
    room = xp.where(falling, class_proba / xp.where(falling, -direction, 1.0), xp.inf)
    share = xp.clip(xp.min(room, axis=1), None, 1.0)
    return share, room <= share[:, None]


def on_simplex(rows):
    """Return rows without their negative entries, summing to 1; uniform where nothing is left."""
    xp = array_namespace(rows)
    rows = xp.where(rows > 0, rows, 0.0)
    total = xp.sum(rows, axis=1, keepdims=True)
    rows = xp.where(total > 0, rows, 1.0)
    return rows / xp.where(total > 0, total, float(rows.shape[1]))


def ratio(x, y):
    """Return x / y, and 0 where x is 0."""
    xp = array_namespace(x)
    return xp.where(x > 0, x / xp.where(x > 0, y, 1.0), 0.0)


def put_rows(where, old, new):
    """Return `old` with `new` in the rows marked, without writing in place."""
    xp = array_namespace(old)
    position = xp.clip(xp.cumulative_sum(xp.astype(where, xp.int64)) - 1, 0, None)
    return _where(xp, where, xp.take(new, position, axis=0), old)


def _where(xp, rows, yes, no):
    return xp.where(rows if yes.ndim == 1 else rows[:, None], yes, no)
