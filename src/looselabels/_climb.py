"""The search for the transition: EM steps between passes over the rows, made faster.

A pass solves all rows for one transition T and returns the expected mass M of each class and label.
The EM step for T is M + A with rows normalized, where A are the pseudocounts. It never lowers the
objective, but two things make it slow, and `climb` has a remedy for both. The safeguard is the
objective: a proposal that lowers it is replaced by the EM step.

- Steps shrink by a constant factor. Every second transition is therefore extrapolated (SQUAREM).
- Small entries follow slowly. If T_ks is small, the gradient D_ks = M_ks / T_ks of the rows hardly
  depends on it. With D fixed, the optimum is A_ks / (λ_k − D_ks), where λ_k is the sum of row k of
  M + A. The EM step approaches it by the factor D_ks / λ_k, which is often close to 1.
"""

from collections.abc import Callable

import numpy as np

ROUNDING = 1e-13  # relative; a smaller decrease of the objective can be rounding
FIRST_ACCURACY = 1e-4  # nats, of the rows in the first pass; later passes are more accurate
FINEST = 1e-14  # nats; the best accuracy of a row in double precision
SMALL_ENTRY = 1e-2  # an entry of T counts as small below this, and
SMALL_SHARE = 0.05  # if its class has at most this share of the label
MAX_RATE = 0.5  # of convergence; a small entry moves at most to 1 / (1 − 0.5) times its step


def _do_nothing():
    """Take the place of `keep` and `restore` if `solve` has no state."""


class _Search:
    """Where the search is: the transition, the pass over the rows for it, and all objectives."""

    def __init__(self, solve, pseudocounts, keep, restore):
        self.solve, self.pseudocounts = solve, pseudocounts
        self.keep, self.restore = keep, restore
        self.objectives: list[float] = []

    def go_to(self, transition, found):
        """Continue from this transition and its pass."""
        self.transition, self.found = transition, found
        self.objectives.append(self.objective(transition, found))

    def objective(self, transition, found):
        return found.objective + transition_prior(transition, self.pseudocounts)

    @property
    def mass(self):
        return self.found.label_mass + self.pseudocounts

    @property
    def growth(self):
        return growth_bound(self.mass, self.transition)

    def is_lower(self, transition, found):
        """Return whether the objective is lower than before, by more than rounding, or NaN."""
        rounding = ROUNDING * (self.mass.sum() + abs(self.objectives[-1]))
        return not self.objective(transition, found) >= max(self.objectives) - rounding

    def solve_without_loss(self, transition, accuracy):
        """Return the pass for a transition and its accuracy; None if the objective is lower there.

        After an EM step, or for the same transition, it is not lower if all rows are solved
        exactly. It can be if they are not, or if they start from the rows of a rejected proposal.
        Then they are solved again, exactly, from the rows that were kept.
        """
        for precision in (accuracy, min(accuracy, FINEST)):
            found = self.solve(transition, precision)
            if not self.is_lower(transition, found):
                return found, precision
            self.restore()
        return None, accuracy

    def solve_again(self, accuracy):
        """Replace the last pass by a more accurate one for the same transition."""
        self.keep()
        found, _ = self.solve_without_loss(self.transition, accuracy)
        if found is not None:
            self.objectives.pop()
            self.go_to(self.transition, found)


def climb(
    solve: Callable,
    transition,
    pseudocounts,
    tol,
    max_iter,
    keep: Callable = _do_nothing,
    restore: Callable = _do_nothing,
):
    """Update class_proba and the transition in turns until neither changes.

    `solve` may start from the rows of the last pass. `keep` saves the rows, and `restore` returns
    to the rows that were saved last.

    Returns the transition, the last pass, the objective after each pass, and whether the transition
    is stationary.
    """
    search = _Search(solve, pseudocounts, keep, restore)
    accuracy = used = FIRST_ACCURACY
    search.go_to(transition, solve(transition, accuracy))
    trail = [transition]  # the last steps, for an extrapolation
    while len(search.objectives) < max_iter:
        growth = search.growth
        if growth <= tol and accuracy <= tol:
            if used == accuracy:
                return search.transition, search.found, search.objectives, True
            break  # the last pass was too accurate to notice rows with several optima
        accuracy = used = min(accuracy, max(growth / 10, tol))
        proposal, small = faster_step(search.found.label_mass, pseudocounts, search.transition)
        trail.append(proposal)
        if len(trail) == 3:
            proposal, trail = _extrapolated(trail, small), []
        keep()
        found = solve(proposal, accuracy)
        if search.is_lower(proposal, found):
            proposal, trail = normalize_rows(search.mass, search.transition), []
            found, used = search.solve_without_loss(proposal, accuracy)
        if found is None:
            break
        search.go_to(proposal, found)
        trail = trail or [proposal]
    search.solve_again(tol)
    return search.transition, search.found, search.objectives, search.growth <= tol


def faster_step(label_mass, pseudocounts, transition):
    """Return the EM step, but with small entries at the optimum of a fixed gradient, and these.

    The gradient can be taken as fixed if the class of the entry explains little of the label, both
    before and after the step.
    """
    mass = label_mass + pseudocounts
    total = mass.sum(axis=1, keepdims=True)
    with np.errstate(over="ignore"):
        gradient = _divide(label_mass, transition)
        best = _divide(pseudocounts, np.maximum(total - gradient, 0.0))
        larger = np.maximum(best, transition)
        share = _divide(gradient * larger, label_mass.sum(axis=0))
    small = (larger <= SMALL_ENTRY) & (share <= SMALL_SHARE) & (best * total > 0)
    return normalize_rows(np.where(small, best * total, mass), transition), small


def _divide(x, y):
    """Return x / y, or 0 where y is 0."""
    x, y = np.broadcast_arrays(x, y)
    return np.divide(x, y, out=np.zeros(x.shape), where=y > 0)


def _extrapolated(trail, small):
    """Return the extrapolation of three steps.

    Entries that are not small share the step length of SQUAREM, because they depend on each other.
    Small entries hardly do: each is extrapolated alone, in log T.
    """
    third = trail[-1]
    ahead = _squarem(*(np.where(small, third, step) for step in trail))
    if not small.any():
        return ahead
    before, at, after = (np.log(step[small]) for step in trail)
    step, last = at - before, after - at
    rate = np.minimum(np.divide(last, step, out=np.zeros_like(step), where=step != 0), MAX_RATE)
    ahead[small] = np.maximum(np.exp(at + last / (1 - rate)), np.finfo(float).tiny)
    return normalize_rows(ahead, third)


def _squarem(first, second, third):
    """Return the SQUAREM extrapolation, or the third step if it is not a transition.

    An entry that is zero in `third` can become negative as well. There the boundary is reached, and
    the entry is set to zero.
    """
    step, turn = second - first, third - 2 * second + first
    size = np.linalg.norm(turn)
    if size == 0:
        return third
    with np.errstate(over="ignore", invalid="ignore"):
        length = np.maximum(np.linalg.norm(step) / size, 1.0)
        ahead = first + 2 * length * step + length**2 * turn
    if not (np.isfinite(ahead).all() and (ahead[third > 0] > 0).all()):
        return third
    return normalize_rows(np.maximum(ahead, 0.0), third)


def normalize_rows(mass, fallback):
    """Return `mass` with rows that sum to 1; a class without mass keeps its row of `fallback`.

    A positive entry stays positive, even if the quotient underflows.
    """
    total = mass.sum(axis=1, keepdims=True)
    share = mass / np.where(total > 0, total, 1.0)
    share = np.where(mass > 0, np.maximum(share, np.finfo(float).tiny), share)
    return np.where(total > 0, share, fallback)


def growth_bound(mass, transition):
    """Return the Frank–Wolfe gap in nats per sample: no other transition can gain more."""
    with np.errstate(over="ignore"):
        rate = _divide(mass, transition)
    total = mass.sum()
    return float((rate.max(axis=1) - mass.sum(axis=1)).sum() / (total if total > 0 else 1.0))


def transition_prior(transition, pseudocounts) -> float:
    """Return Σ A log T, with 0 log 0 = 0."""
    used = pseudocounts > 0
    return float(np.sum(pseudocounts[used] * np.log(transition[used])))
