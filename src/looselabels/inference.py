"""The paper's four tasks as pure functions on arrays.

With label_proba S = p(s|x), class_proba Y = p(y|x), transition T = p(s|y) and pseudocounts A:

1. infer Y and T from S:              ``infer(S, T, pseudocounts=A)``
2. estimate T from Y and the labels:  ``transition_from_labels(Y, label_index, A)``
3. infer Y from S and a known T:      ``infer(S, T)``
4. find W = p(y|x,s):                 ``condition_on_label(Y, T, label_index)``

Tasks 1 and 3 maximize O = −KL(S, YT) + Σ Y log p(y) + Σ A log T. Given T, each row of Y is a small
concave problem that `_rows` solves exactly; given Y, the best T has a closed form. Arrays of any
library that follows the array API go in, and come back in kind.
"""

import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from array_api_compat import array_namespace, device

from looselabels._blocks import (
    PassFound,
    Rows,
    like,
    minus_divergence,
    row_problem,
    weighted,
    xlogy,
)
from looselabels._rows import on_simplex
from looselabels._validation import (
    as_float_array,
    as_numpy,
    check_2d,
    check_class_prior,
    check_entries,
    check_label_index,
    check_pseudocounts,
    check_row_stochastic,
    check_row_sums,
    check_sample_weight,
    some_of,
)
from looselabels.exceptions import IdentifiabilityWarning, InconsistentLabelWarning


class Decoupling(NamedTuple):
    """What `infer` found."""

    class_proba: Any  #: p(class | x), (n_samples, n_classes)
    transition: Any  #: p(label | class), (n_classes, n_labels)
    objective: list[float]  #: the paper's objective after each pass over the rows; never decreases
    gap: Any  #: (n_samples,) nats: no other class_proba is better in that row by more than this
    n_iter: int  #: passes over the rows
    converged: bool  #: mean gap ≤ tol, every gap ≤ 1000 tol, and a stationary transition


# --------------------------------------------------------------------------------------- the tasks


def infer(
    label_proba,
    transition,
    *,
    sample_weight=None,
    pseudocounts=None,
    class_prior=None,
    tol=1e-9,
    max_iter=1000,
) -> Decoupling:
    """Infer p(class | x), and with `pseudocounts` the transition too, from p(label | x).

    Maximizes the paper's objective (tasks 3 and 1)

        O(Y, T) = −KL(S, YT) + Σ_iy Y_iy log p(y) + Σ_ys A_ys log T_ys.

    Parameters
    ----------
    label_proba : array of shape (n_samples, n_labels)
        S, p(label | x). Rows sum to 1.
    transition : array of shape (n_classes, n_labels) or Transition
        T, p(label | class). Rows sum to 1. A zero is a promise and stays zero.
    sample_weight : array of shape (n_samples,), optional
        How often each row counts.
    pseudocounts : array of shape (n_classes, n_labels), optional
        A, the prior ∏ T^A on the transition. Given, the transition is inferred as well, starting
        from `transition`; ``strength * transition`` says how many samples a class the design is
        worth.
    class_prior : array of shape (n_classes,), optional
        The paper's linear term Σ Y log p(y). With rare labels this term decides everything; most
        users want it left out, which is the same as a uniform prior.
    tol : float, default=1e-9
        The mean gap, in nats a row, that counts as solved.
    max_iter : int, default=1000
        The most passes over the rows.

    Returns
    -------
    Decoupling
        class_proba, transition, objective (after each pass), gap (each row's certificate), n_iter
        and converged.

    Notes
    -----
    With exact zeros in a row, or classes that no label tells apart, a row can have many optima.
    Then the one closest to the class prior is taken, and `IdentifiabilityWarning` counts such rows.

    Examples
    --------
    One in ten positives is labeled, no negative is (Elkan and Noto): p(class | x) is
    p(label | x) / 0.1 where that is a probability.

    >>> import numpy as np
    >>> transition = np.array([[0.1, 0.9], [0.0, 1.0]])
    >>> infer(np.array([[0.03, 0.97], [0.2, 0.8]]), transition).class_proba.round(6)
    array([[0.3, 0.7],
           [1. , 0. ]])
    """
    if not (tol > 0 and max_iter >= 1):
        raise ValueError(
            f"tol must be positive and max_iter 1 or more; they are {tol}, {max_iter}."
        )
    label_proba, given = _check_pair(label_proba, transition)
    prior = None if class_prior is None else check_class_prior(class_prior, len(given))
    counts = None if pseudocounts is None else check_pseudocounts(pseudocounts, given)
    weight = check_sample_weight(sample_weight, label_proba)
    _check_labels_can_occur(label_proba, given, prior)
    if prior is not None and not prior.all():
        return _infer_present(label_proba, given, weight, counts, prior, tol, max_iter)

    rows = Rows(label_proba, weight, len(given))

    def solve(transition, tol=tol) -> PassFound:
        return rows.solve(row_problem(transition, prior, tol))

    with np.errstate(under="ignore"):  # a probability may underflow to zero: that is what it means
        if counts is None:
            fitted, found, stationary = given, solve(given), True
            objectives = [found.objective]
        else:
            fitted, found, objectives, stationary = _climb(solve, given, counts, tol, max_iter)
    converged = stationary and found.mean_gap <= tol and found.max_gap <= 1000 * tol
    _warn(found, fitted, rows.gap.shape[0], converged)
    fitted = like(label_proba, fitted)
    return Decoupling(rows.class_proba, fitted, objectives, rows.gap, len(objectives), converged)


def class_proba_from(label_proba, transition, *, tol=1e-9):
    """Return p(class | x) for a known transition: what `infer` finds, without a word on ties.

    For models that predict: what their transition leaves open was told when they were fitted.

    >>> class_proba_from([[0.03, 0.97]], [[0.1, 0.9], [0.0, 1.0]]).round(6)
    array([[0.3, 0.7]])
    """
    label_proba, given = _check_pair(label_proba, transition)
    rows = Rows(label_proba, None, len(given))
    with np.errstate(under="ignore"):
        rows.solve(row_problem(given, None, tol))
    return rows.class_proba


def transition_from_labels(class_proba, label_index, pseudocounts, *, sample_weight=None):
    """Estimate the transition from p(class | x) and the labels given (task 2), as printed.

        M = Yᵀ S_D,    T = M + A with rows normalized.

    Right where class_proba is (nearly) one-hot; soft rows blur it. With exact p(y|x) and
    T = (.8 .2; .3 .7) it can return (.63 .37; .47 .53). Passing p(class | x, label) of
    `condition_on_label` instead of p(class | x), and repeating, removes that bias.

    Parameters
    ----------
    class_proba : array of shape (n_samples, n_classes)
        Y, p(class | x).
    label_index : integer array of shape (n_samples,)
        The column of each row's label.
    pseudocounts : array of shape (n_classes, n_labels)
        A; zeros mean a flat prior. Its shape says how many labels there are.
    sample_weight : array of shape (n_samples,), optional
        How often each row counts.

    Examples
    --------
    >>> import numpy as np
    >>> class_proba = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    >>> transition_from_labels(class_proba, np.array([0, 1, 1]), np.zeros((2, 2)))
    array([[0.5, 0.5],
           [0. , 1. ]])
    """
    class_proba = as_float_array("class_proba", class_proba)
    check_row_sums("class_proba", class_proba, tol=1e-5)
    counts = as_numpy("pseudocounts", pseudocounts)
    check_2d("pseudocounts", counts)
    check_entries("pseudocounts", counts)
    if len(counts) != class_proba.shape[1]:
        raise ValueError(
            f"pseudocounts has {len(counts)} rows; class_proba has {class_proba.shape[1]} classes."
        )
    index = check_label_index(label_index, counts.shape[1], class_proba)
    weight = check_sample_weight(sample_weight, class_proba)
    mass = _label_mass(class_proba, index, counts.shape[1], weight) + counts
    silent = np.flatnonzero(mass.sum(axis=1) == 0)
    if len(silent):
        warnings.warn(
            f"No sample and no pseudocount speaks for class {some_of(silent.tolist())}; its row of "
            "the transition is uniform. Give that class pseudocounts.",
            InconsistentLabelWarning,
            stacklevel=2,
        )
        mass[silent] = 1.0
    return like(class_proba, mass / mass.sum(axis=1, keepdims=True))


def label_mass(class_proba, label_index, n_labels) -> np.ndarray:
    """Return how many rows of each class have each label, M = Yᵀ S_D, a row a class.

    >>> label_mass(np.array([[0.9, 0.1], [0.2, 0.8]]), np.array([0, 0]), 2)
    array([[1.1, 0. ],
           [0.9, 0. ]])
    """
    class_proba = as_float_array("class_proba", class_proba)
    index = check_label_index(label_index, n_labels, class_proba)
    return _label_mass(class_proba, index, n_labels, None)


def _label_mass(class_proba, index, n_labels, weight):
    xp = array_namespace(class_proba)
    columns = xp.arange(n_labels, dtype=index.dtype, device=device(index))
    given = xp.astype(index[:, None] == columns[None, :], xp.float64)
    mass = xp.matrix_transpose(xp.astype(class_proba, xp.float64)) @ weighted(given, weight)
    return as_numpy("label_mass", mass)


def condition_on_label(class_proba, transition, label_index):
    """Return p(class | x, label), which takes each row's own label into account (task 4, W).

        W_iy ∝ T_ys Y_iy,    s the label of row i.

    A row whose label is impossible for every class it may have gets W_iy ∝ T_ys (with an
    `InconsistentLabelWarning` where that is more than one class): a zero in T is a promise, one in
    class_proba an estimate.
    class_proba and transition must speak of the same world: both weighted by label, or neither.

    Examples
    --------
    >>> import numpy as np
    >>> class_proba, transition = np.array([[0.5, 0.5]]), np.array([[0.8, 0.2], [0.3, 0.7]])
    >>> condition_on_label(class_proba, transition, np.array([0])).round(3)
    array([[0.727, 0.273]])
    """
    class_proba = as_float_array("class_proba", class_proba)
    check_row_sums("class_proba", class_proba, tol=1e-5)
    xp = array_namespace(class_proba)
    transition = as_numpy("transition", transition)
    check_row_sums("transition", transition)
    transition = like(class_proba, transition)
    if transition.shape[0] != class_proba.shape[1]:
        raise ValueError(
            f"class_proba has {class_proba.shape[1]} columns; the transition has "
            f"{transition.shape[0]} classes."
        )
    index = check_label_index(label_index, transition.shape[1], class_proba)
    likelihood = xp.take(xp.matrix_transpose(transition), index, axis=0)
    joint = class_proba * likelihood
    possible = xp.sum(joint, axis=1, keepdims=True) > 0
    joint = xp.where(possible, joint, likelihood)
    never = xp.sum(likelihood, axis=1, keepdims=True) == 0  # a label that no class has says nothing
    joint = xp.where(never, class_proba, joint)
    # Where the label means one class only, there is nothing to be told: W is that class.
    several = xp.sum(xp.astype(joint > 0, xp.int64), axis=1) > 1
    rows = xp.nonzero(~possible[:, 0] & several)[0]
    if rows.shape[0]:
        warnings.warn(
            f"{rows.shape[0]} rows have a label that none of their classes can have (first: row "
            f"{int(rows[0])}, label {int(index[rows[0]])}); the label is believed, not x "
            "(and x, where no class at all has the label). A little noise in the transition makes "
            "such labels possible.",
            InconsistentLabelWarning,
            stacklevel=2,
        )
    return on_simplex(joint)


def objective(
    label_proba, class_proba, transition, pseudocounts=None, class_prior=None, *, sample_weight=None
) -> float:
    """Return the paper's objective, exactly as printed.

        O = −KL(S, YT) + Σ_iy Y_iy log p(y) + Σ_ys A_ys log T_ys

    It is −inf where a label has some probability but no class that may have it.

    Examples
    --------
    >>> import numpy as np
    >>> objective(np.array([[0.5, 0.5]]), np.array([[0.5, 0.5]]), np.eye(2))
    0.0
    """
    label_proba, given = _check_pair(label_proba, transition)
    xp = array_namespace(label_proba)
    class_proba = as_float_array("class_proba", class_proba)
    check_row_sums("class_proba", class_proba, tol=1e-5)
    if class_proba.shape != (label_proba.shape[0], len(given)):
        raise ValueError(
            f"class_proba has shape {tuple(class_proba.shape)}; {label_proba.shape[0]} rows and "
            f"{len(given)} classes need ({label_proba.shape[0]}, {len(given)})."
        )
    labels, classes = (xp.astype(a, xp.float64) for a in (label_proba, class_proba))
    value = minus_divergence(labels, classes @ like(labels, given))
    if class_prior is not None:
        prior = like(labels, check_class_prior(class_prior, len(given)))
        value = value + xp.sum(xlogy(classes, prior[None, :]), axis=1)
    total = float(xp.sum(weighted(value, check_sample_weight(sample_weight, labels))))
    if pseudocounts is None:
        return total
    return total + _transition_prior(given, check_pseudocounts(pseudocounts, given))


# ---------------------------------------------------------------------------------- the transition


def _climb(solve: Callable, transition, pseudocounts, tol, max_iter):
    """Alternate exact rows and exact transitions until neither moves.

    Returns the transition, the last pass, the objective after each pass, and whether it is
    stationary. Every third transition is extrapolated (SQUAREM) and kept only if it climbs.
    """

    def value(found, transition):
        return found.objective + _transition_prior(transition, pseudocounts)

    accuracy = 1e-4  # of the rows: no better than the transition deserves
    found = solve(transition, accuracy)
    objectives, trail = [value(found, transition)], [transition]
    while len(objectives) < max_iter:
        mass = found.label_mass + pseudocounts
        growth = _growth(mass, transition)
        if growth <= tol and accuracy <= tol:
            return transition, found, objectives, True
        accuracy = min(accuracy, max(growth / 10, tol))
        updated = proposal = _normalized(mass, transition)
        trail.append(updated)
        if len(trail) == 3:
            proposal, trail = _extrapolated(*trail), []
        attempt = solve(proposal, accuracy)
        if value(attempt, proposal) < objectives[-1]:
            proposal, attempt = updated, solve(updated, accuracy)
        transition, found = proposal, attempt
        trail = trail or [transition]
        objectives.append(value(found, transition))
    return transition, solve(transition, tol), objectives, False


def _normalized(mass, fallback):
    """Return `mass` with rows that sum to 1; a class without mass keeps its row of `fallback`."""
    total = mass.sum(axis=1, keepdims=True)
    return np.where(total > 0, mass / np.where(total > 0, total, 1.0), fallback)


def _growth(mass, transition):
    """Return the Frank–Wolfe gap of a transition, in nats a sample: what any other could gain."""
    rate = np.divide(mass, transition, out=np.zeros_like(mass), where=transition > 0)
    return float((rate.max(axis=1) - mass.sum(axis=1)).sum() / max(mass.sum(), 1.0))


def _extrapolated(first, second, third):
    """Return where three EM steps point to (SQUAREM); the third where that is off the simplex."""
    step, turn = second - first, third - 2 * second + first
    size = np.linalg.norm(turn)
    if size == 0:
        return third
    length = max(float(np.linalg.norm(step) / size), 1.0)
    ahead = first + 2 * length * step + length**2 * turn
    return _normalized(ahead, third) if (ahead[third > 0] > 0).all() else third


def _transition_prior(transition, pseudocounts) -> float:
    """Return Σ A log T, where a count of zero counts nothing."""
    used = pseudocounts > 0
    return float(np.sum(pseudocounts[used] * np.log(transition[used])))


# ---------------------------------------------------------------------------------- input and words


def _check_pair(label_proba, transition):
    """Return label_proba in its own library and the transition in NumPy, or say what is wrong."""
    names = getattr(transition, "classes", None)
    given = check_row_stochastic("transition", as_numpy("transition", transition), names)
    label_proba = as_float_array("label_proba", label_proba)
    check_row_sums("label_proba", label_proba, tol=1e-5)
    if label_proba.shape[1] != given.shape[1]:
        raise ValueError(
            f"label_proba has {label_proba.shape[1]} columns, but the transition has shape "
            f"{given.shape}: {given.shape[0]} classes and {given.shape[1]} labels."
        )
    return label_proba, given


def _check_labels_can_occur(label_proba, transition, class_prior):
    """Warn of labels that no class can have; refuse those that the class prior alone rules out."""
    xp = array_namespace(label_proba)
    seen = as_numpy("seen", xp.astype(xp.any(label_proba > 0, axis=0), xp.float64)) > 0
    impossible = np.flatnonzero(seen & ~(transition > 0).any(axis=0))
    if len(impossible):
        warnings.warn(
            f"No class can have label {some_of(impossible.tolist())}, but label_proba gives it "
            "some probability; that part is left out (the divergence KL itself is infinite).",
            InconsistentLabelWarning,
            stacklevel=3,
        )
    if class_prior is None:
        return
    possible = (transition[class_prior > 0] > 0).any(axis=0)
    for label in np.flatnonzero(seen & (transition > 0).any(axis=0) & ~possible):
        classes = np.flatnonzero(transition[:, label] > 0).tolist()
        raise ValueError(
            f"class_prior is 0 for class {some_of(classes)}, which alone can have label {label}, "
            "and label_proba gives that label some probability. Give the class a small prior."
        )


def _infer_present(label_proba, given, weight, counts, prior, tol, max_iter) -> Decoupling:
    """Infer for the classes that have a prior; the others get exactly zero."""
    xp = array_namespace(label_proba)
    kept = prior > 0
    found = infer(
        label_proba,
        given[kept],
        sample_weight=weight,
        pseudocounts=None if counts is None else counts[kept],
        class_prior=prior[kept],
        tol=tol,
        max_iter=max_iter,
    )
    position = np.where(kept, np.cumsum(kept) - 1, kept.sum())  # the last column holds the zeros
    column = xp.zeros_like(found.class_proba[:, :1])
    class_proba = xp.take(
        xp.concat([found.class_proba, column], axis=1),
        xp.asarray(position, device=device(label_proba)),
        axis=1,
    )
    transition = given if counts is None else _normalized(counts, given)
    transition[kept] = as_numpy("transition", found.transition)
    return found._replace(class_proba=class_proba, transition=like(label_proba, transition))


def _warn(found: PassFound, transition, n_rows, converged):
    if found.n_ambiguous:
        warnings.warn(
            f"{found.n_ambiguous} of {n_rows} rows have several class distributions that explain "
            "them equally well; the one closest to the class prior is taken. The transition has "
            f"{len(transition)} classes, rank {np.linalg.matrix_rank(transition)} and condition "
            f"number {np.linalg.cond(transition):.3g}.",
            IdentifiabilityWarning,
            stacklevel=3,
        )
    if not converged:
        from sklearn.exceptions import ConvergenceWarning

        warnings.warn(
            f"infer stopped before it converged: mean gap {found.mean_gap:.2g}, largest "
            f"{found.max_gap:.2g}. Raise max_iter or tol.",
            ConvergenceWarning,
            stacklevel=3,
        )
