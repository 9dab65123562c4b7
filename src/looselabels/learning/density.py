"""Kernel densities: p(label | x) from the distances to the training rows, and nothing else.

    p(s|x) ∝ p(s) Σ_{j: s_j = s} w_j K_h(x − x_j) / Σ_{j: s_j = s} w_j,    K_h(z) = exp(−|z|² / 2h²)

K does not depend on the labels: `kernel_sums` takes any number of columns of weights through one
pass over it, for several bandwidths at once, block by block, with each row left out of its own sum
where it is asked to. `KernelDensityClassifier` is a thin shell over that function.
"""

import warnings
from typing import Any, NamedTuple

import numpy as np
from array_api_compat import (
    array_namespace,
    device,
    is_array_api_obj,
    is_numpy_array,
    to_device,
)
from joblib import Parallel, delayed, effective_n_jobs
from scipy.sparse import issparse
from sklearn import get_config
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_array, column_or_1d, gen_batches
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import (
    _check_sample_weight,
    check_consistent_length,
    check_is_fitted,
    validate_data,
)

from looselabels._blocks import BLAS_LOCK, _blas, like
from looselabels._validation import (
    as_float_array,
    as_numpy,
    check_2d,
    check_entries,
    short_repr,
    some_of,
)
from looselabels.estimation.calibration import FLOOR

ROWS_A_BLOCK = 512  # of NumPy: more gain nothing in the products, and leave the caches
TERMS_AT_ONCE = 4096  # float32 terms of a sum that are added before float64 takes over
LOWEST = -700.0  # the logarithm of a kernel that counts as zero, in float64
STEPS = 2.0 ** np.arange(1, -5.5, -0.5)  # around Scott's rule; of equal losses the first wins


class KernelSums(NamedTuple):
    """Σ_j c_j K_h(x − x_j) as ``sums · exp(−nearest / 2h²)``: 784 dimensions do not underflow."""

    nearest: Any  #: (n_queries,) squared distance to the nearest row that counts
    sums: Any  #: (n_bandwidths, n_queries, n_columns) float64


def kernel_sums(X, query, columns, bandwidths, *, n_jobs=None) -> KernelSums:
    """Sum Gaussian kernels around the rows of `X`, weighted by each of the `columns`.

        sums[h, i, c] = Σ_j columns[j, c] exp(−(|x_i − x_j|² − nearest_i) / 2h²)

    Products are in the type of `X` (float32 is at least twice as fast), sums in float64. Memory,
    beside a copy of `X` and the answer, stays under scikit-learn's ``working_memory``. A column
    whose kernels are e⁸⁷ (float64: e⁷⁰⁰) times smaller than that of the nearest row sums to 0.

    Parameters
    ----------
    X : array of shape (n_samples, n_features)
        Where the kernels stand: NumPy, PyTorch or CuPy; the answer is of the same library.
    query : array of shape (n_queries, n_features) or None
        Where the sums are taken. None: at the rows of `X`, each without its own kernel.
    columns : array of shape (n_samples, n_columns)
        Weights × one-hot labels, of as many labelings as wanted. A row of zeros is no kernel.
    bandwidths : sequence of float
        h; all share each block of distances.
    n_jobs : int, default=None
        Blocks at once, in threads, each with one BLAS thread. None: one block, with all of BLAS's;
        but exp has one thread then, so that many cores are better used by ``n_jobs=-1``. Libraries
        other than NumPy have threads or a device of their own.

    Examples
    --------
    >>> X, columns = np.array([[0.0], [1.0], [3.0]]), np.eye(3)
    >>> found = kernel_sums(X, None, columns, [1.0])
    >>> found.nearest
    array([1., 1., 4.])
    >>> found.sums[0].round(4)  # e^−4 = 0.0183, e^−1.5 = 0.2231, e^−2.5 = 0.0821
    array([[0.    , 1.    , 0.0183],
           [1.    , 0.    , 0.2231],
           [0.0821, 1.    , 0.    ]])
    """
    X = as_float_array("X", X)
    xp, kind = array_namespace(X), {"device": device(X)}
    columns = xp.asarray(columns, dtype=X.dtype, **kind)
    if columns.ndim != 2 or columns.shape[0] != X.shape[0]:
        raise ValueError(
            f"columns has shape {tuple(columns.shape)}; {X.shape[0]} rows of X need as many."
        )
    rates = _rates(_check_bandwidths(bandwidths), X)
    counts = xp.any(columns != 0, axis=1)
    # |x|² + |y|² − 2x·y of float32 loses everything far from the origin.
    total = xp.sum(xp.where(counts[:, None], X, 0.0), axis=0, dtype=xp.float64)
    center = xp.astype(total / max(int(xp.sum(counts)), 1), X.dtype)
    rows = X - center
    half_norm = xp.where(counts, xp.sum(rows * rows, axis=1) / 2, xp.inf)
    at = rows if query is None else xp.asarray(query, dtype=X.dtype, **kind) - center
    sums = xp.empty((len(rates), at.shape[0], columns.shape[1]), dtype=xp.float64, **kind)
    nearest = xp.empty(at.shape[0], dtype=X.dtype, **kind)
    n_threads = effective_n_jobs(n_jobs) if is_numpy_array(X) else 1

    def one_block(block):
        own = block.start if query is None else None
        log_kernel, nearest[block] = _log_kernel(at[block, :], rows, half_norm, own)
        for position, kernel in enumerate(_kernels(log_kernel, rates)):
            sums[position, block, :] = _float64_product(kernel, columns)

    _in_blocks(one_block, at.shape[0], _rows_a_block(X, n_threads), n_threads)
    return KernelSums(nearest, sums)


def _log_kernel(at, rows, half_norm, own):
    """Return −(|x − y|² − nearest) / 2, zero at the nearest row, and that distance squared."""
    xp = array_namespace(at)
    # |x|² is the same for all rows y: x·y − |y|²/2 is enough, and is largest at the nearest.
    log_kernel = at @ rows.T
    log_kernel -= half_norm
    if own is not None:
        here = xp.arange(at.shape[0], device=device(at))
        log_kernel[here, here + own] = -xp.inf
    top = xp.max(log_kernel, axis=1)
    log_kernel -= xp.where(xp.isfinite(top), top, 0.0)[:, None]
    return log_kernel, xp.clip(xp.sum(at * at, axis=1) - 2 * top, 0.0, None)


def _kernels(log_kernel, rates):
    """Yield the kernel of each bandwidth; the last one takes the place of `log_kernel`."""
    xp = array_namespace(log_kernel)
    for position, rate in enumerate(rates):
        # Far rows may overflow to −inf and their kernels underflow to 0: that is what they are.
        with np.errstate(over="ignore", under="ignore"):
            if position + 1 < len(rates):
                kernel = log_kernel * rate
            else:
                kernel = log_kernel
                kernel *= rate
            if is_numpy_array(kernel) and kernel.dtype == np.float64:
                # Its exp takes ten times as long where it underflows. The zeros are exact again.
                np.maximum(kernel, LOWEST, out=kernel)
                np.exp(kernel, out=kernel)
                kernel -= np.exp(LOWEST)
            else:
                xp.exp(kernel, out=kernel)
        yield kernel


def _float64_product(kernel, columns):
    """Return kernel @ columns, adding up in float64 what float32 has summed over a few terms."""
    xp = array_namespace(kernel)
    total = xp.zeros((kernel.shape[0], columns.shape[1]), dtype=xp.float64, device=device(kernel))
    with np.errstate(under="ignore"):
        for part in gen_batches(columns.shape[0], TERMS_AT_ONCE):
            total += kernel[:, part] @ columns[part, :]
    return total


def _rates(bandwidths, X) -> list[float]:
    """Return 1/h², kept within the numbers of X's type: any rate times −inf is −inf, not NaN."""
    limits = array_namespace(X).finfo(X.dtype)
    with np.errstate(over="ignore", under="ignore", divide="ignore"):
        rates = (1 / np.asarray(bandwidths, dtype=np.float64)) ** 2
    return np.clip(rates, float(limits.smallest_normal), float(limits.max)).tolist()


def _rows_a_block(X, n_threads) -> int:
    limits = array_namespace(X).finfo(X.dtype)
    row_bytes = 2 * X.shape[0] * limits.bits // 8  # log_kernel, and the kernel of one bandwidth
    most = int(get_config()["working_memory"] * 2**20 // (row_bytes * n_threads))
    return max(1, min(ROWS_A_BLOCK, most) if is_numpy_array(X) else most)


def _in_blocks(function, n_rows, size, n_threads):
    blocks = gen_batches(n_rows, size)
    if n_threads == 1:
        for block in blocks:
            function(block)
        return
    # The limit is the process's own: two threads must not set and restore it in turns.
    with BLAS_LOCK, _blas().limit(limits=1):
        Parallel(n_threads, require="sharedmem")(delayed(function)(block) for block in blocks)


# --------------------------------------------------------------------------------- standardization


def standardization(X, weight):
    """Return the columns that vary, their weighted means and their standard deviations.

    >>> standardization(np.array([[0.0, 7.0], [4.0, 7.0], [9.0, 7.0]]), np.array([1.0, 1.0, 0.0]))
    (array([0]), array([2.]), array([2.]))
    """
    xp = array_namespace(X)
    if not bool(xp.all(weight > 0)):  # these rows have no say
        seen = xp.nonzero(weight > 0)[0]
        X, weight = xp.take(X, seen, axis=0), xp.take(weight, seen)
    kept = xp.nonzero(xp.max(X, axis=0) > xp.min(X, axis=0))[0]
    X, share = xp.take(X, kept, axis=1), (weight / xp.sum(weight))[:, None]
    with np.errstate(all="ignore"):
        center = xp.astype(xp.sum(X * share, axis=0, dtype=xp.float64), X.dtype)
        X = X - center
        span = xp.max(xp.abs(X), axis=0)  # squares may neither overflow nor vanish
        X = X / span
        shift = xp.sum(X * share, axis=0, dtype=xp.float64)  # what rounding left of the mean
        variance = xp.sum(X * X * share, axis=0, dtype=xp.float64) - shift**2
        scale = span * xp.astype(xp.sqrt(variance), X.dtype)
    bad = ~(xp.isfinite(scale) & (scale > 0))
    if bool(xp.any(bad)):
        column = int(kept[int(xp.argmax(xp.astype(bad, xp.int8)))])
        raise ValueError(
            f"Column {column} of X has numbers too large or too small for {X.dtype}: its standard "
            "deviation is not one. Rescale the column."
        )
    return kept, center, scale


def standardize(X, kept, center, scale):
    """Return the columns `kept` of `X`, less `center`, over `scale`."""
    xp = array_namespace(X)
    if kept.shape[0] < X.shape[1]:
        X = xp.take(X, kept, axis=1)
    limit = float(xp.finfo(X.dtype).max) ** 0.5 / 1e4  # its square, summed, is still a number
    with np.errstate(over="ignore"):
        return xp.clip((X - center) / scale, -limit, limit)


# ------------------------------------------------------------------------------------- the shell


class KernelDensityClassifier(ClassifierMixin, BaseEstimator):
    """p(label | x) by kernel densities, with the out-of-sample rows that come for free.

        p(s|x) ∝ p(s) Σ_{j: s_j = s} w_j K_h(x − x_j) / Σ_{j: s_j = s} w_j

    K_h is a Gaussian of standard deviation h on standardized features; with the default priors,
    p(s|x) ∝ Σ_{j: s_j = s} w_j K_h(x − x_j).

    Parameters
    ----------
    bandwidth : float, sequence of float or None, default=None
        h, in standard deviations of a feature. Of a sequence, the first with the smallest
        leave-one-out log-loss is taken. None is a sequence around n^(−1/(d + 4)) √d, Scott's rule
        for the length of a vector of d features.
    priors : array of shape (n_classes,), default=None
        p(s), in the order of `classes_`. None: the weighted frequencies of the labels.
    n_jobs : int, default=None
        Blocks of rows at once, in threads; see `kernel_sums`.

    Attributes
    ----------
    classes_ : array
        The labels, columns of `predict_proba`.
    priors_ : array
        p(s), given or estimated.
    bandwidth_ : float
        h, given or chosen.
    loo_proba_ : array of shape (n_samples, n_classes)
        p(label | x) of the training rows, each from the fit without it, but for the
        standardization and the bandwidth. The row is missing from its density, from the weight
        that this is divided by, and from the default priors.
    loo_log_loss_ : dict
        The mean −log of `loo_proba_` of the labels given, for each bandwidth tried.

    Notes
    -----
    Where no density is left (a single training row, left out) a row gets the priors. A label with
    one sample has no density, and probability 0, at that sample. Products of distances are of the
    type of X: float32 is accurate enough for most data, and at least twice as fast. PyTorch and
    CuPy arrays are worked on where they are, and `predict_proba` returns their kind.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> clf = KernelDensityClassifier().fit(X, y)
    >>> clf.loo_proba_[50].round(2)  # by all the other flowers
    array([0.  , 0.99, 0.01])
    >>> round(float((clf.loo_proba_.argmax(axis=1) == y).mean()), 2)
    0.95
    """

    def __init__(self, bandwidth=None, *, priors=None, n_jobs=None):
        self.bandwidth = bandwidth
        self.priors = priors
        self.n_jobs = n_jobs

    def fit(self, X, y, sample_weight=None):
        """Keep the rows and their labels `y`, choose the bandwidth, and leave each row out once.

        Parameters
        ----------
        X : array or DataFrame of shape (n_samples, n_features)
            Numbers; no sparse matrix.
        y : column of shape (n_samples,)
            Labels.
        sample_weight : array of shape (n_samples,), default=None
            How often each row counts.
        """
        X = self._check_rows(X, reset=True)
        classes, index = _check_labels(X, y)
        weight = _check_weight(sample_weight, X)
        label_weight = np.bincount(index, weight, len(classes))
        priors = _check_priors(self.priors, label_weight)
        varying = standardization(X, like(X, weight))
        self._warn_of_constants(varying[0])
        rows = standardize(X, *varying)
        if self.bandwidth is None:
            grid = _scott(int((weight > 0).sum()), rows.shape[1])
        else:
            grid = _check_bandwidths(self.bandwidth)
        own = label_weight[index]
        if self.priors is None:  # p(s) and the weight of label s cancel, also without a row
            columns, regained = _one_hot(index, weight, rows, len(classes)), np.ones(len(own))
        else:
            share = weight * priors[index] / _positive(own)
            columns = _one_hot(index, share, rows, len(classes))
            regained = own / _positive(own - weight)
        sums = kernel_sums(rows, None, columns, grid, n_jobs=self.n_jobs).sums
        probas, losses = _leave_one_out(sums, index, weight, priors, regained)
        best = int(np.argmin(losses))
        # Nothing is set before all has been found: a fit that fails leaves the last one whole.
        self._varying, self._rows, self._columns = varying, rows, columns
        self.classes_, self.priors_, self.bandwidth_ = classes, priors, grid[best]
        self.loo_proba_ = _moved(probas[best], X)
        self.loo_log_loss_ = dict(zip(grid, losses, strict=True))
        return self

    def predict_proba(self, X):
        """Return p(label | x); columns are `classes_`."""
        check_is_fitted(self)
        X = self._check_rows(X, reset=False)
        query = standardize(_moved(X, self._rows), *self._varying)
        found = kernel_sums(self._rows, query, self._columns, [self.bandwidth_], n_jobs=self.n_jobs)
        return _moved(_normalized(found.sums[0, ...], self.priors_), X)

    def predict(self, X):
        """Return the most probable label of each row."""
        proba = self.predict_proba(X)
        return self.classes_[as_numpy("proba", proba).argmax(axis=1)]

    def _check_rows(self, X, *, reset):
        """Return `X` in its own library, float32 or float64, or say why it cannot be used."""
        if issparse(X):
            raise ValueError(
                f"X is a sparse matrix; {type(self).__name__} is dense only. Pass X.toarray(), or "
                "fewer columns from TruncatedSVD."
            )
        if not is_array_api_obj(X) or is_numpy_array(X):
            return validate_data(self, X, dtype=[np.float64, np.float32], reset=reset)
        xp, X = array_namespace(X), as_float_array("X", X)
        check_2d("X", X)
        if not bool(xp.all(xp.isfinite(X))):
            row = int(xp.argmax(xp.astype(~xp.all(xp.isfinite(X), axis=1), xp.int8)))
            raise ValueError(f"X must hold finite numbers; row {row} has NaN or infinity.")
        validate_data(self, X, reset=reset, skip_check_array=True)
        return X

    def _warn_of_constants(self, kept):
        constant = np.setdiff1d(np.arange(self.n_features_in_), as_numpy("kept", kept)).tolist()
        if constant:
            names = getattr(self, "feature_names_in_", range(self.n_features_in_))
            warnings.warn(
                f"Columns {some_of([names[c] for c in constant])} of X are constant: they say "
                "nothing of the labels and are ignored, here and in predict.",
                UserWarning,
                stacklevel=3,
            )


def _leave_one_out(sums, index, weight, priors, regained):
    """Return p(label | x) of each bandwidth and row, and the log-loss of each bandwidth.

    `regained` is by how much a label's density rises when its weight is divided by without the row.
    """
    xp = array_namespace(sums)
    index, here = xp.asarray(index, device=device(sums)), xp.arange(len(index), device=device(sums))
    sums[:, here, index] *= like(sums, regained)
    probas = [_normalized(part, priors) for part in (sums[h, ...] for h in range(sums.shape[0]))]
    share = like(sums, weight / weight.sum())
    losses = [-xp.sum(share * xp.log(xp.clip(p[here, index], FLOOR, None))) for p in probas]
    return probas, [float(loss) for loss in losses]


def _normalized(sums, priors):
    """Return rows that sum to 1: the priors where nothing is left to go by."""
    xp = array_namespace(sums)
    sums = xp.clip(sums, 0.0, None)  # a zero may be off by a rounding of exp(LOWEST)
    total = xp.sum(sums, axis=1, keepdims=True)
    return xp.where(total > 0, sums / xp.where(total > 0, total, 1.0), like(sums, priors))


def _one_hot(index, weight, rows, n_classes):
    """Return one column a label, with the weights of its rows."""
    columns = np.zeros((len(index), n_classes))
    columns[np.arange(len(index)), index] = weight
    return like(rows, columns)


def _positive(values):
    return np.where(values > 0, values, 1.0)


def _moved(values, array):
    """Return `values` in the library, type and place of `array`."""
    xp = array_namespace(array)
    with np.errstate(under="ignore"):
        if array_namespace(values) is xp and device(values) == device(array):
            return xp.astype(values, array.dtype, copy=False)
        return like(array, as_numpy("X", values))


# ------------------------------------------------------------------------------------ what is given


def _check_labels(X, y):
    """Return the labels, sorted, and the position of each row's."""
    if y is None:
        raise ValueError(
            "KernelDensityClassifier requires y to be passed, but the target y is None."
        )
    if is_array_api_obj(y) and not is_numpy_array(y):
        y = np.from_dlpack(to_device(y, "cpu"))
    y = column_or_1d(check_array(y, ensure_2d=False, dtype=None, input_name="y"), warn=True)
    check_consistent_length(X, y)
    check_classification_targets(y)
    return np.unique(y, return_inverse=True)


def _check_weight(sample_weight, X):
    if sample_weight is None:
        return np.ones(X.shape[0])
    if is_array_api_obj(sample_weight):
        sample_weight = as_numpy("sample_weight", sample_weight)
    weight = _check_sample_weight(
        sample_weight, np.zeros((X.shape[0], 1)), dtype=np.float64, ensure_non_negative=True
    )
    if not weight.any():
        raise ValueError("sample_weight must have a positive number; all are zero.")
    return weight / weight.max()  # any size of them fits float32


def _check_priors(priors, label_weight):
    if priors is None:
        return label_weight / label_weight.sum()
    given = as_numpy("priors", priors)
    if given.shape != label_weight.shape:
        raise ValueError(
            f"priors has shape {given.shape}; y has {len(label_weight)} labels, which need "
            f"({len(label_weight)},)."
        )
    check_entries("priors", given[None, :])
    if abs(given.sum() - 1) > 1e-8 * len(given):
        raise ValueError(
            f"priors must sum to 1; they sum to {given.sum():.6g}. Divide them by that."
        )
    return given / given.sum()


def _scott(n_rows, n_features) -> list[float]:
    """Return bandwidths around Scott's rule for the length of a vector of so many features."""
    return (n_rows ** (-1 / (n_features + 4)) * max(n_features, 1) ** 0.5 * STEPS).tolist()


def _check_bandwidths(bandwidths) -> list[float]:
    """Return one or several bandwidths as a list, or say which one is none."""
    try:
        given = np.atleast_1d(np.asarray(bandwidths, dtype=np.float64))
    except (TypeError, ValueError):
        given = np.empty(0)
    if given.ndim != 1 or not given.size:
        raise ValueError(
            f"bandwidth must be a positive number, or several; it is {short_repr(bandwidths)}."
        )
    bad = ~(np.isfinite(given) & (given > 0))
    if bad.any():
        where = f"; number {int(np.argmax(bad))}" if given.size > 1 else "; it"
        raise ValueError(
            f"bandwidth must be positive and finite, in standard deviations{where} is "
            f"{given[np.argmax(bad)]}. Try 0.5."
        )
    return given.tolist()
