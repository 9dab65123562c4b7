"""The paper's four tasks as pure functions on arrays.

With label_proba S = p(s|x), class_proba Y = p(y|x), transition T = p(s|y) and pseudocounts A:

1. infer Y and T from S:              ``infer(S, T, pseudocounts=A)``
2. estimate T from Y and the labels:  ``transition_from_labels(Y, label_index, A)``
3. infer Y from S and a known T:      ``infer(S, T)``
4. find W = p(y|x,s):                 ``condition_on_label(Y, T, label_index)``

Tasks 1 and 3 maximize O = −KL(S, YT) + Σ Y log p(y) + Σ A log T. Given T, each row of Y is a small
concave problem that `_rows` solves exactly. Given Y, the best T has a closed form. All functions
accept arrays of any library that follows the array API, and return arrays of the same library.
"""

import math
import warnings
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from array_api_compat import array_namespace, device, is_numpy_array

from looselabels._blocks import (
    PassFound,
    Rows,
    add_passes,
    like,
    minus_divergence,
    row_problem,
    weighted,
    xlogy,
)
from looselabels._climb import climb, normalize_rows, transition_prior
from looselabels._cuda import CudaRows, has_kernel
from looselabels._names import in_label_order
from looselabels._rows import on_simplex
from looselabels._sources import RowFacts, SourceRows, as_source, is_source, mapped, scan
from looselabels._validation import (
    as_float_array,
    as_number,
    as_numpy,
    check_2d,
    check_class_prior,
    check_entries,
    check_label_index,
    check_proba,
    check_pseudocounts,
    check_row_stochastic,
    check_row_sums,
    check_sample_weight,
    is_whole,
    short_repr,
    some_of,
)
from looselabels.blocks import Blocks
from looselabels.exceptions import IdentifiabilityWarning, InconsistentLabelWarning

__all__ = [
    "Decoupling",
    "add_passes",
    "class_proba_from",
    "climb",
    "condition_on_label",
    "infer",
    "label_mass",
    "objective",
    "one_pass",
    "rows_for",
    "transition_from_labels",
]

EXTREME = 1e100  # weights are rescaled if the largest is above this or below 1 / this
SMALLEST_WEIGHT = 1e-305  # smaller positive weights are raised to this: products stay positive


class Decoupling(NamedTuple):
    """The result of `infer`."""

    class_proba: Any  #: p(class | x), (n_samples, n_classes)
    transition: Any  #: p(label | class), (n_classes, n_labels)
    objective: list[float]  #: the paper's objective after each pass over the rows; never decreases
    gap: Any  #: (n_samples,) nats: no other class_proba improves the row by more than this
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
    out=None,
) -> Decoupling:
    """Infer p(class | x), and with `pseudocounts` the transition too, from p(label | x).

    Maximizes the paper's objective (tasks 3 and 1)

        O(Y, T) = −KL(S, YT) + Σ_iy Y_iy log p(y) + Σ_ys A_ys log T_ys.

    Parameters
    ----------
    label_proba : array of shape (n_samples, n_labels)
        S, p(label | x). Rows sum to 1. The columns of a DataFrame are matched by name to the labels
        of a `Transition`.
    transition : array of shape (n_classes, n_labels) or Transition
        T, p(label | class). Rows sum to 1. Entries that are zero stay zero.
    sample_weight : array of shape (n_samples,), optional
        Weight of each row. None: all rows have weight 1. Rows with weight 0 do not affect the
        transition.
    pseudocounts : array of shape (n_classes, n_labels), optional
        A, the pseudocounts of the prior ∏ T^A. If given, the transition is also inferred, starting
        from `transition`. With ``strength * transition``, the prior counts as `strength` samples
        per class.
    class_prior : array of shape (n_classes,), optional
        Class probabilities p(y) for the paper's linear term Σ Y log p(y). If labels are rare, this
        term dominates the objective. We recommend None, which is equivalent to a uniform prior.
    tol : float, default=1e-9
        Rows count as solved if their mean gap, in nats per row, is at most `tol`.
    max_iter : int, default=1000
        Maximum number of passes over the rows.
    out : path, optional
        Only for `Blocks`: a .npy file to write class_proba to, which the result then reads. With a
        known transition, rows are solved and written in one pass. None: rows are solved again
        whenever class_proba is read.

    Returns
    -------
    Decoupling
        class_proba, transition, objective (after each pass), gap (an upper bound on the
        suboptimality of each row), n_iter and converged.

    Notes
    -----
    A row can have several optima if it contains exact zeros, or if classes have identical label
    distributions. Then the optimum closest to the class prior is used, and an
    `IdentifiabilityWarning` reports the number of such rows.

    Examples
    --------
    One in ten positives is labeled and no negative is (Elkan and Noto). Then p(class | x) is
    p(label | x) / 0.1, or 1 if that is larger than 1.

    >>> import numpy as np
    >>> transition = np.array([[0.1, 0.9], [0.0, 1.0]])
    >>> infer(np.array([[0.03, 0.97], [0.2, 0.8]]), transition).class_proba.round(6)
    array([[0.3, 0.7],
           [1. , 0. ]])
    """
    if not (as_number(tol) > 0 and is_whole(max_iter, 1)):
        raise ValueError(
            "tol must be positive and max_iter a whole number, at least 1; got "
            f"tol={short_repr(tol)}, max_iter={short_repr(max_iter)}."
        )
    with np.errstate(under="ignore"):  # a probability that underflows to zero is no error
        label_proba, given = _check_pair(label_proba, transition)
        _check_out(out, label_proba)
        prior = None if class_prior is None else check_class_prior(class_prior, len(given))
        counts = None if pseudocounts is None else check_pseudocounts(pseudocounts, given)
        weight, facts = _check_weight(sample_weight, label_proba, given.shape[1])
        _check_labels_can_occur(facts.seen, given, prior)
        if prior is not None and not prior.all():
            return _infer_present(label_proba, given, weight, counts, prior, tol, max_iter, out)

        weight, counts, scale = _in_range(weight, counts, label_proba, facts.max_weight)
        rows = rows_for(label_proba, weight, len(given))

        def solve(transition, tol) -> PassFound:
            return rows.solve(row_problem(transition, prior, tol))

        if counts is None:
            fitted, stationary = given, True
            problem = row_problem(given, prior, tol, needs_mass=False)
            found = rows.solve(problem) if out is None else rows.solve_to(out, problem)
            objectives = [found.objective]
        else:
            fitted, found, objectives, stationary = climb(
                solve, given, counts, tol, max_iter, rows.keep, rows.restore
            )
            if out is not None:
                rows.class_proba.to_npy(out)
        converged = stationary and found.mean_gap <= tol and found.max_gap <= 1000 * tol
        _warn(found, fitted, facts.n_rows, converged)
        constant = _uniform_prior_term(prior, facts.total_weight)
        objectives = [scale * value + constant for value in objectives]
        fitted = fitted if is_source(label_proba) else like(label_proba, fitted)
    class_proba = rows.class_proba if out is None else Blocks.from_npy(out)
    return Decoupling(class_proba, fitted, objectives, rows.gap, len(objectives), converged)


def class_proba_from(label_proba, transition, *, tol=1e-9):
    """Return p(class | x) for a known transition, like `infer` but without its warnings.

    For predictions: a fitted model has already warned about its transition.

    >>> class_proba_from([[0.03, 0.97]], [[0.1, 0.9], [0.0, 1.0]]).round(6)
    array([[0.3, 0.7]])
    """
    label_proba, given = _check_pair(label_proba, transition)
    if is_source(label_proba):
        each = partial(class_proba_from, transition=given, tol=tol)
        return mapped(each, len(given), label_proba)
    rows = rows_for(label_proba, None, len(given))
    with np.errstate(under="ignore"):
        rows.solve(row_problem(given, None, tol, needs_mass=False))
    return rows.class_proba


def transition_from_labels(class_proba, label_index, pseudocounts, *, sample_weight=None):
    """Estimate the transition from p(class | x) and the observed labels (task 2 of the paper).

        M = Yᵀ S_D,    T = M + A with rows normalized.

    The estimate is accurate if class_proba is (nearly) one-hot, and biased otherwise. For example,
    with the exact p(y|x) and T = (.8 .2; .3 .7) it can return (.63 .37; .47 .53). To remove the
    bias, pass p(class | x, label) from `condition_on_label` instead of p(class | x), and repeat.

    Parameters
    ----------
    class_proba : array of shape (n_samples, n_classes)
        Y, p(class | x).
    label_index : integer array of shape (n_samples,)
        The column of each row's label.
    pseudocounts : array of shape (n_classes, n_labels)
        A. Zeros mean a flat prior. The number of labels is taken from its shape.
    sample_weight : array of shape (n_samples,), optional
        Weight of each row. None: all rows have weight 1.

    Examples
    --------
    >>> import numpy as np
    >>> class_proba = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    >>> transition_from_labels(class_proba, np.array([0, 1, 1]), np.zeros((2, 2)))
    array([[0.5, 0.5],
           [0. , 1. ]])
    """
    class_proba = check_proba("class_proba", class_proba)
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
    empty = np.flatnonzero(mass.sum(axis=1) == 0)
    if len(empty):
        warnings.warn(
            f"Class {some_of(empty.tolist())} has no samples and no pseudocounts. Its row of the "
            "transition is set to uniform. Add pseudocounts for that class.",
            InconsistentLabelWarning,
            stacklevel=2,
        )
        mass[empty] = 1.0
    return like(class_proba, mass / mass.sum(axis=1, keepdims=True))


def label_mass(class_proba, label_index, n_labels) -> np.ndarray:
    """Return the expected number of samples per class (rows) and label (columns), M = Yᵀ S_D.

    >>> label_mass(np.array([[0.9, 0.1], [0.2, 0.8]]), np.array([0, 0]), 2)
    array([[1.1, 0. ],
           [0.9, 0. ]])
    """
    class_proba = as_float_array("class_proba", class_proba)
    index = check_label_index(label_index, n_labels, class_proba)
    return _label_mass(class_proba, index, n_labels, None)


def _label_mass(class_proba, index, n_labels, weight):
    if is_numpy_array(class_proba):
        return sum_by_label(weighted(class_proba, weight), index, n_labels)
    xp = array_namespace(class_proba)
    columns = xp.arange(n_labels, dtype=index.dtype, device=device(index))
    given = xp.astype(index[:, None] == columns[None, :], xp.float64)
    mass = xp.matrix_transpose(xp.astype(class_proba, xp.float64)) @ weighted(given, weight)
    return as_numpy("label_mass", mass)


def sum_by_label(rows, label_index, n_labels) -> np.ndarray:
    """Return the sum of the rows with each label, (n_columns, n_labels): `label_mass` unchecked.

    >>> sum_by_label(np.array([[0.9, 0.1], [0.2, 0.8]]), np.array([0, 0]), 2)
    array([[1.1, 0. ],
           [0.9, 0. ]])
    """
    return np.stack([np.bincount(label_index, column, n_labels) for column in rows.T])


def condition_on_label(class_proba, transition, label_index):
    """Return p(class | x, label), which uses the label of each row (task 4, W).

        W_iy ∝ T_ys Y_iy,    s the label of row i.

    If the label of a row is impossible for all classes with positive class_proba, the result is
    W_iy ∝ T_ys, because a zero in T is exact and a zero in class_proba is an estimate. An
    `InconsistentLabelWarning` is issued if several classes can have the label.

    class_proba and transition must refer to the same label distribution: either both are weighted
    by label, or neither is.

    Examples
    --------
    >>> import numpy as np
    >>> class_proba, transition = np.array([[0.5, 0.5]]), np.array([[0.8, 0.2], [0.3, 0.7]])
    >>> condition_on_label(class_proba, transition, np.array([0])).round(3)
    array([[0.727, 0.273]])
    """
    class_proba = as_source("class_proba", class_proba)
    if is_source(class_proba):
        given = as_numpy("transition", transition)
        check_row_sums("transition", given)
        each = partial(_condition_block, transition=given)
        return mapped(each, len(given), class_proba, as_source("label_index", label_index))
    class_proba = check_proba("class_proba", class_proba)
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
    never = xp.sum(likelihood, axis=1, keepdims=True) == 0  # no class has the label: ignore it
    joint = xp.where(never, class_proba, joint)
    # If only one class can have the label, W is that class and no warning is needed.
    several = xp.sum(xp.astype(joint > 0, xp.int64), axis=1) > 1
    rows = xp.nonzero(~possible[:, 0] & several)[0]
    if rows.shape[0]:
        warnings.warn(
            f"{rows.shape[0]} rows have a label that none of their classes can have (first: row "
            f"{int(rows[0])}, label {int(index[rows[0]])}). For these rows the label is used and x "
            "is ignored; if no class can have the label, x is used. Add a small noise rate to the "
            "transition to make such labels possible.",
            InconsistentLabelWarning,
            stacklevel=2,
        )
    return on_simplex(joint)


def given_label_proba(class_proba, transition, label_index) -> np.ndarray:
    """Return p(label | x) of each row's own label s, Σ_y Y_iy T_ys, unchecked.

    >>> given_label_proba(np.array([[0.5, 0.5]]), np.array([[0.8, 0.2], [0.3, 0.7]]), np.array([0]))
    array([0.55])
    """
    return np.sum(class_proba * transition.T[label_index], axis=1)


def _condition_block(class_proba, label_index, *, transition):
    return condition_on_label(class_proba, transition, label_index)


def objective(
    label_proba, class_proba, transition, pseudocounts=None, class_prior=None, *, sample_weight=None
) -> float:
    """Return the objective of the paper.

        O = −KL(S, YT) + Σ_iy Y_iy log p(y) + Σ_ys A_ys log T_ys

    It is −inf if a row of positive weight has a label that none of its classes can have.

    Examples
    --------
    >>> import numpy as np
    >>> objective(np.array([[0.5, 0.5]]), np.array([[0.5, 0.5]]), np.eye(2))
    0.0
    """
    label_proba, given = _check_pair(label_proba, transition)
    xp = array_namespace(label_proba)
    class_proba = check_proba("class_proba", class_proba)
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
    weight = check_sample_weight(sample_weight, labels)
    if weight is not None:
        value = weight * xp.where(weight > 0, value, 0.0)  # 0 times −inf counts as 0
    total = float(xp.sum(value))
    if pseudocounts is None:
        return total
    return total + transition_prior(given, check_pseudocounts(pseudocounts, given))


# ---------------------------------------------------------------------------- passes over the rows


def one_pass(label_proba, transition, *, sample_weight=None, tol=1e-9) -> PassFound:
    """Solve some of the rows for a transition, and return only sums; any engine can call it.

    `add_passes` adds up the results for all parts of the rows, and `climb` finds the transition:

    >>> rows = [np.array([[0.03, 0.97], [0.2, 0.8]]), np.array([[0.1, 0.9]])]
    >>> def solve(transition, tol):
    ...     return add_passes([one_pass(block, transition, tol=tol) for block in rows])
    >>> start = np.array([[0.1, 0.9], [0.0, 1.0]])
    >>> transition, found, objectives, converged = climb(solve, start, 10 * start, 1e-9, 100)
    >>> transition.round(3)
    array([[0.109, 0.891],
           [0.   , 1.   ]])
    """
    label_proba, given = _check_pair(label_proba, transition)
    weight = check_sample_weight(sample_weight, label_proba)
    return rows_for(label_proba, weight, len(given)).solve(row_problem(given, None, tol))


def rows_for(label_proba, sample_weight, n_classes):
    """Return the driver of `infer` for this kind of input.

    A driver solves all rows in one pass, ``solve(problem) -> PassFound``, returns to an earlier
    state (`keep`, `restore`), and has the result of the last pass (`class_proba`, `gap`).
    """
    if is_source(label_proba):
        driver: type = SourceRows
    else:
        driver = CudaRows if has_kernel(label_proba, n_classes) else Rows
    return driver(label_proba, sample_weight, n_classes)


# ------------------------------------------------------------------------------ input and messages


def _check_pair(label_proba, transition):
    """Return the checked label_proba, in its own library, and the checked transition, in NumPy."""
    names = getattr(transition, "classes", None)
    given = check_row_stochastic("transition", as_numpy("transition", transition), names)
    labels = getattr(transition, "labels", None)
    label_proba = as_source("label_proba", in_label_order("label_proba", label_proba, labels))
    if is_source(label_proba):
        return label_proba, given  # its blocks are checked where they are
    label_proba = check_proba("label_proba", label_proba)
    if label_proba.shape[1] != given.shape[1]:
        raise ValueError(
            f"label_proba has {label_proba.shape[1]} columns, but the transition has shape "
            f"{given.shape}: {given.shape[0]} classes and {given.shape[1]} labels."
        )
    return label_proba, given


def _check_out(out, label_proba):
    if out is not None and not isinstance(label_proba, Blocks):
        raise TypeError(
            f"out is only for rows in Blocks; label_proba is {type(label_proba).__name__}. Remove "
            "the argument out, and write class_proba of the result to a file."
        )


def _check_weight(sample_weight, label_proba, n_labels):
    """Return the checked weights, and what is known about all rows."""
    if is_source(label_proba):
        weight = as_source("sample_weight", sample_weight)
        return weight, scan(label_proba, weight, n_labels)
    xp = array_namespace(label_proba)
    weight, n_rows = check_sample_weight(sample_weight, label_proba), label_proba.shape[0]
    seen = as_numpy("seen", xp.astype(xp.any(label_proba > 0, axis=0), xp.float64)) > 0
    if weight is None:
        return None, RowFacts(n_rows, seen, float(n_rows), 1.0)
    return weight, RowFacts(n_rows, seen, float(xp.sum(weight)), float(xp.max(weight)))


def _in_range(weight, counts, label_proba, max_weight):
    """Return weights and pseudocounts divided by a power of 2, and that power.

    The power is 1 unless the numbers are so large or small that products could overflow or
    underflow. Positive numbers stay positive.
    """
    largest = max_weight if counts is None else max(max_weight, float(counts.max()))
    scale = 1.0
    if not 1 / EXTREME <= largest <= EXTREME:
        scale = math.ldexp(1.0, math.frexp(largest)[1] - 1)
        if weight is None:
            weight = _of_rows(_ones, None, label_proba)
    if weight is not None:
        weight = _of_rows(partial(_divided, scale=scale), None, weight)
    if counts is not None:
        smallest = np.finfo(float).smallest_subnormal
        counts = np.where(counts > 0, np.maximum(counts / scale, smallest), 0.0)
    return weight, counts, scale


def _of_rows(function, n_columns, rows):
    """Return a function of rows, in memory or not; see `mapped`."""
    return mapped(function, n_columns, rows) if is_source(rows) else function(rows)


def _ones(rows):
    xp = array_namespace(rows)
    return xp.ones(rows.shape[0], dtype=xp.float64, device=device(rows))


def _divided(weight, scale):
    xp = array_namespace(weight)
    return xp.where(weight > 0, xp.clip(weight / scale, SMALLEST_WEIGHT, None), 0.0)


def _check_labels_can_occur(seen, transition, class_prior):
    """Warn about labels that no class can have. Raise if only the class prior rules out a label."""
    impossible = np.flatnonzero(seen & ~(transition > 0).any(axis=0))
    if len(impossible):
        warnings.warn(
            f"No class can have label {some_of(impossible.tolist())}, but its label_proba is "
            "positive. The label is ignored, because it would make the KL divergence infinite.",
            InconsistentLabelWarning,
            stacklevel=3,
        )
    if class_prior is None:
        return
    possible = (transition[class_prior > 0] > 0).any(axis=0)
    for label in np.flatnonzero(seen & (transition > 0).any(axis=0) & ~possible):
        classes = np.flatnonzero(transition[:, label] > 0).tolist()
        raise ValueError(
            f"class_prior is 0 for class {some_of(classes)}, but no other class can have label "
            f"{label}, which has positive label_proba. Give the class a small positive prior."
        )


def _infer_present(label_proba, given, weight, counts, prior, tol, max_iter, out) -> Decoupling:
    """Infer for the classes with a positive prior; the other classes get probability zero."""
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
    class_proba = _of_rows(partial(_with_absent, kept=kept), len(kept), found.class_proba)
    if out is not None:
        class_proba.to_npy(out)
        class_proba = Blocks.from_npy(out)
    transition, constant = given, 0.0
    if counts is not None:
        transition = normalize_rows(counts, given)
        constant = transition_prior(transition[~kept], counts[~kept])
    transition[kept] = as_numpy("transition", found.transition)
    return found._replace(
        class_proba=class_proba,
        transition=transition if is_source(label_proba) else like(label_proba, transition),
        objective=[value + constant for value in found.objective],
    )


def _with_absent(class_proba, kept):
    """Return class_proba with a column of zeros for each class that is not kept."""
    xp = array_namespace(class_proba)
    position = np.where(kept, np.cumsum(kept) - 1, kept.sum())  # the last column is zero
    return xp.take(
        xp.concat([class_proba, xp.zeros_like(class_proba[:, :1])], axis=1),
        xp.asarray(position, device=device(class_proba)),
        axis=1,
    )


def _uniform_prior_term(prior, total_weight) -> float:
    """Return Σ Y log p(y) for a uniform prior. It is constant, so the row solver leaves it out."""
    if prior is None or np.ptp(prior) > 0:
        return 0.0
    return total_weight * float(np.log(prior[0]))


def _warn(found: PassFound, transition, n_rows, converged):
    if found.n_ambiguous:
        warnings.warn(
            f"{found.n_ambiguous} of {n_rows} rows have several class distributions that explain "
            "them equally well; the one closest to the class prior is used. The transition has "
            f"{len(transition)} classes, rank {np.linalg.matrix_rank(transition)} and condition "
            f"number {np.linalg.cond(transition):.3g}.",
            IdentifiabilityWarning,
            stacklevel=3,
        )
    if not converged:
        from sklearn.exceptions import ConvergenceWarning

        warnings.warn(
            f"infer did not converge: the mean gap is {found.mean_gap:.2g} and the largest gap is "
            f"{found.max_gap:.2g}. Increase max_iter or tol.",
            ConvergenceWarning,
            stacklevel=3,
        )
