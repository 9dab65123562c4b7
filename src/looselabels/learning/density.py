"""Kernel density classification: p(label | x) from the distances to the training rows.

    p(s|x) ∝ p(s) Σ_{j: s_j = s} w_j K_h(x − x_j) / Σ_{j: s_j = s} w_j,    K_h(z) = exp(−|z|² / 2h²)

The kernel matrix K does not depend on the labels. `kernel_sums` therefore computes it once, block
by block, and multiplies it by any number of weight columns for several bandwidths. It can leave
each row out of its own sum. `KernelDensityClassifier` is a thin wrapper around this function.
"""

import warnings
from copy import copy
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
from sklearn.utils.validation import check_consistent_length, check_is_fitted, validate_data

from looselabels._blocks import like, one_blas_thread
from looselabels._validation import (
    as_float_array,
    as_numpy,
    check_2d,
    check_entries,
    check_sample_weight,
    short_repr,
    some_of,
)
from looselabels.estimation.calibration import TINY

# For NumPy arrays: larger blocks do not speed up the products and no longer fit into the caches.
ROWS_PER_BLOCK = 512
FLOAT32_TERMS = 4096  # number of float32 terms that are summed before float64 takes over
MIN_LOG_KERNEL = -700.0  # a float64 kernel whose logarithm is below this counts as zero
# Factors around Scott's rule, from wide to narrow: the widest bandwidth wins a tie.
BANDWIDTH_STEPS = 2.0 ** np.arange(1, -5.5, -0.5)


class KernelSums(NamedTuple):
    """Σ_j c_j K_h(x − x_j), stored as ``sums · exp(−nearest / 2h²)``.

    Factoring out the nearest kernel avoids underflow in hundreds of dimensions.
    """

    nearest: Any  #: (n_queries,) squared distance to the nearest row with a nonzero weight
    sums: Any  #: (n_bandwidths, n_queries, n_columns) float64


def kernel_sums(X, query, columns, bandwidths, *, n_jobs=None) -> KernelSums:
    """Sum Gaussian kernels centered at the rows of `X`, weighted by each column of `columns`.

        sums[h, i, c] = Σ_j columns[j, c] exp(−(|x_i − x_j|² − nearest_i) / 2h²)

    Products are computed in the dtype of `X` (float32 is at least twice as fast as float64), sums
    in float64. Apart from a copy of `X` and the result, memory stays below scikit-learn's
    ``working_memory``. Kernels that are e⁸⁷ times (float64: e⁷⁰⁰ times) smaller than the kernel of
    the nearest row count as 0.

    Parameters
    ----------
    X : array of shape (n_samples, n_features)
        Kernel centers, a NumPy, PyTorch or CuPy array. The result is of the same library.
    query : array of shape (n_queries, n_features) or None
        Points at which the sums are evaluated. None: the rows of `X`, each without its own kernel.
    columns : array of shape (n_samples, n_columns)
        Weights × one-hot labels, for any number of labelings. Rows of zeros are skipped.
    bandwidths : sequence of float
        Values of h. All of them share the same distances.
    n_jobs : int, default=None
        Number of blocks computed in parallel, in threads with one BLAS thread each. None: one block
        at a time with all BLAS threads; exp is single-threaded then, so use ``n_jobs=-1`` on
        machines with many cores. Ignored for libraries other than NumPy, which run their own
        threads or device.

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
            f"columns has shape {tuple(columns.shape)}; X has {X.shape[0]} rows, so columns must "
            f"have shape ({X.shape[0]}, n_columns)."
        )
    rates = _rates(_check_bandwidths(bandwidths), X)
    counts = xp.any(columns != 0, axis=1)
    # Centering: far from the origin, |x|² + |y|² − 2x·y in float32 loses all digits.
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

    _in_blocks(one_block, at.shape[0], _rows_per_block(X, n_threads), n_threads)
    return KernelSums(nearest, sums)


def _log_kernel(at, rows, half_norm, own):
    """Return −(|x − y|² − nearest) / 2, which is 0 at the nearest row, and `nearest`."""
    xp = array_namespace(at)
    # |x|² is the same for all rows y, so x·y − |y|²/2 suffices. It is largest at the nearest row.
    log_kernel = at @ rows.T
    log_kernel -= half_norm
    if own is not None:
        here = xp.arange(at.shape[0], device=device(at))
        log_kernel[here, here + own] = -xp.inf
    top = xp.max(log_kernel, axis=1)
    log_kernel -= xp.where(xp.isfinite(top), top, 0.0)[:, None]
    return log_kernel, xp.clip(xp.sum(at * at, axis=1) - 2 * top, 0.0, None)


def _kernels(log_kernel, rates):
    """Yield the kernel of each bandwidth; the last one overwrites `log_kernel`."""
    xp = array_namespace(log_kernel)
    for position, rate in enumerate(rates):
        # For distant rows, −inf and a kernel of 0 are the correct limits.
        with np.errstate(over="ignore", under="ignore"):
            if position + 1 < len(rates):
                kernel = log_kernel * rate
            else:
                kernel = log_kernel
                kernel *= rate
            if is_numpy_array(kernel) and kernel.dtype == np.float64:
                # exp is ten times slower where it underflows. The subtraction restores exact zeros.
                np.maximum(kernel, MIN_LOG_KERNEL, out=kernel)
                np.exp(kernel, out=kernel)
                kernel -= np.exp(MIN_LOG_KERNEL)
            else:
                xp.exp(kernel, out=kernel)
        yield kernel


def _float64_product(kernel, columns):
    """Return kernel @ columns: partial sums in the dtype of `kernel`, their total in float64."""
    xp = array_namespace(kernel)
    total = xp.zeros((kernel.shape[0], columns.shape[1]), dtype=xp.float64, device=device(kernel))
    with np.errstate(under="ignore"):
        for part in gen_batches(columns.shape[0], FLOAT32_TERMS):
            total += kernel[:, part] @ columns[part, :]
    return total


def _rates(bandwidths, X) -> list[float]:
    """Return 1/h², clipped to positive finite numbers of X's dtype: 0 · −inf would be NaN."""
    limits = array_namespace(X).finfo(X.dtype)
    with np.errstate(over="ignore", under="ignore", divide="ignore"):
        rates = (1 / np.asarray(bandwidths, dtype=np.float64)) ** 2
    return np.clip(rates, float(limits.smallest_normal), float(limits.max)).tolist()


def _rows_per_block(X, n_threads) -> int:
    limits = array_namespace(X).finfo(X.dtype)
    row_bytes = 2 * X.shape[0] * limits.bits // 8  # log_kernel and the kernel of one bandwidth
    max_rows = int(get_config()["working_memory"] * 2**20 // (row_bytes * n_threads))
    return max(1, min(ROWS_PER_BLOCK, max_rows) if is_numpy_array(X) else max_rows)


def _in_blocks(function, n_rows, size, n_threads):
    blocks = gen_batches(n_rows, size)
    if n_threads == 1:
        for block in blocks:
            function(block)
        return
    with one_blas_thread():
        Parallel(n_threads, require="sharedmem")(delayed(function)(block) for block in blocks)


# --------------------------------------------------------------------------------- standardization


def standardization(X, weight):
    """Return the indices, weighted means and standard deviations of the columns that vary.

    >>> standardization(np.array([[0.0, 7.0], [4.0, 7.0], [9.0, 7.0]]), np.array([1.0, 1.0, 0.0]))
    (array([0]), array([2.]), array([2.]))
    """
    xp = array_namespace(X)
    if not bool(xp.all(weight > 0)):  # rows of weight 0 must not make a column vary
        used = xp.nonzero(weight > 0)[0]
        X, weight = xp.take(X, used, axis=0), xp.take(weight, used)
    kept = xp.nonzero(xp.max(X, axis=0) > xp.min(X, axis=0))[0]
    X, share = xp.take(X, kept, axis=1), (weight / xp.sum(weight))[:, None]
    with np.errstate(all="ignore"):
        center = xp.astype(xp.sum(X * share, axis=0, dtype=xp.float64), X.dtype)
        X = X - center
        span = xp.max(xp.abs(X), axis=0)  # keeps the squares from overflowing or underflowing
        X = X / span
        shift = xp.sum(X * share, axis=0, dtype=xp.float64)  # rounding error of the mean
        variance = xp.sum(X * X * share, axis=0, dtype=xp.float64) - shift**2
        scale = span * xp.astype(xp.sqrt(variance), X.dtype)
    bad = ~(xp.isfinite(scale) & (scale > 0))
    if bool(xp.any(bad)):
        column = int(kept[int(xp.argmax(xp.astype(bad, xp.int8)))])
        raise ValueError(
            f"Column {column} of X has numbers too large or too small for {X.dtype}: its standard "
            "deviation overflows or underflows. Rescale the column."
        )
    return kept, center, scale


def standardize(X, kept, center, scale):
    """Return the columns `kept` of `X`, minus `center`, divided by `scale`."""
    xp = array_namespace(X)
    if kept.shape[0] < X.shape[1]:
        X = xp.take(X, kept, axis=1)
    limit = float(xp.finfo(X.dtype).max) ** 0.5 / 1e4  # sums of its squares stay finite
    with np.errstate(over="ignore"):
        return xp.clip((X - center) / scale, -limit, limit)


# ---------------------------------------------------------------------------------- the classifier


class KernelDensityClassifier(ClassifierMixin, BaseEstimator):
    """p(label | x) from kernel densities, with leave-one-out probabilities at no extra cost.

        p(s|x) ∝ p(s) Σ_{j: s_j = s} w_j K_h(x − x_j) / Σ_{j: s_j = s} w_j

    K_h is a Gaussian with standard deviation h on standardized features. With the default priors
    this simplifies to p(s|x) ∝ Σ_{j: s_j = s} w_j K_h(x − x_j).

    Parameters
    ----------
    bandwidth : float, sequence of float or None, default=None
        h, in standard deviations of a feature. From a sequence, the bandwidth with the smallest
        leave-one-out log-loss is chosen (the first of several equal ones). None: a sequence around
        n^(−1/(d + 4)) √d, Scott's rule for the length of a vector of d features.
    priors : array of shape (n_classes,), default=None
        p(s), in the order of `classes_`. None: the weighted label frequencies.
    n_jobs : int, default=None
        Number of blocks of rows computed in parallel, in threads; see `kernel_sums`.

    Attributes
    ----------
    classes_ : array
        The labels, in the order of the columns of `predict_proba`.
    priors_ : array
        p(s), as specified or estimated.
    bandwidth_ : float
        h, as specified or chosen.
    loo_proba_ : array of shape (n_samples, n_classes)
        p(label | x) of each training row, computed without that row: it is removed from the
        density, from the total weight of its label and from the default priors, but not from the
        standardization and the choice of the bandwidth. Set by `fit` only.
    loo_log_loss_ : dict
        Leave-one-out log-loss of each bandwidth: the weighted mean of −log p(label | x).

    Notes
    -----
    A row gets the priors if no other training row is left. A label with a single sample has
    density, and hence probability, 0 at that sample. Products are computed in the dtype of X:
    float32 is accurate enough for most data and at least twice as fast as float64. PyTorch and CuPy
    arrays stay on their device; `predict_proba` returns an array of the library of its X.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> clf = KernelDensityClassifier().fit(X, y)
    >>> clf.loo_proba_[50].round(2)  # predicted from the other 149 flowers
    array([0.  , 0.99, 0.01])
    >>> round(float((clf.loo_proba_.argmax(axis=1) == y).mean()), 2)
    0.95
    """

    def __init__(self, bandwidth=None, *, priors=None, n_jobs=None):
        self.bandwidth = bandwidth
        self.priors = priors
        self.n_jobs = n_jobs

    def fit(self, X, y, sample_weight=None):
        """Store the training rows, choose the bandwidth and compute `loo_proba_`.

        Parameters
        ----------
        X : array or DataFrame of shape (n_samples, n_features)
            Numbers; sparse matrices are not supported.
        y : column of shape (n_samples,)
            Labels.
        sample_weight : array of shape (n_samples,), default=None
            Number of times that each row counts.
        """
        self.__dict__, self.loo_proba_ = self._fit(X, y, sample_weight)
        return self

    def fit_out_of_sample(self, X, y, sample_weight=None):
        """Fit, and return the leave-one-out p(label | x) of the training rows.

        The arguments are those of `fit`. The result is the `loo_proba_` that `fit` would store; its
        columns follow `classes_`. The fitted classifier does not keep it.

        >>> clf = KernelDensityClassifier(0.5)
        >>> clf.fit_out_of_sample([[0.0], [1.0], [10.0], [11.0]], ["a", "a", "b", "b"]).round(2)
        array([[1., 0.],
               [1., 0.],
               [0., 1.],
               [0., 1.]])
        >>> hasattr(clf, "loo_proba_")
        False
        """
        self.__dict__, loo_proba = self._fit(X, y, sample_weight)
        return loo_proba

    def predict_proba(self, X):
        """Return p(label | x); the columns follow `classes_`."""
        check_is_fitted(self)
        X = _check_rows(self, X, reset=False)
        query = standardize(_moved(X, self._rows), *self._varying)
        found = kernel_sums(self._rows, query, self._columns, [self.bandwidth_], n_jobs=self.n_jobs)
        return _moved(normalize_sums(found.sums[0, ...], self.priors_), X)

    def predict(self, X):
        """Return the most probable label of each row."""
        proba = self.predict_proba(X)
        return self.classes_[as_numpy("proba", proba).argmax(axis=1)]

    def _fit(self, X, y, sample_weight):
        """Return the attributes of the fitted classifier and the leave-one-out p(label | x).

        `self` is not modified: a fit that fails leaves it as it was.
        """
        fitted = copy(self)
        fitted.__dict__.pop("loo_proba_", None)  # it may stem from an earlier fit
        X = _check_rows(fitted, X, reset=True)
        fitted.classes_, index = _check_labels(X, y)
        weight = _check_weight(sample_weight, X)
        label_weight = np.bincount(index, weight, len(fitted.classes_))
        fitted.priors_ = _check_priors(self.priors, label_weight)
        fitted._varying = standardization(X, like(X, weight))
        _warn_about_constants(fitted)
        fitted._rows = rows = standardize(X, *fitted._varying)
        if self.bandwidth is None:
            bandwidths = _scott(int((weight > 0).sum()), rows.shape[1])
        else:
            bandwidths = _check_bandwidths(self.bandwidth)
        # With the default priors, p(s) cancels the total weight of label s.
        own, share = label_weight[index], weight
        if self.priors is not None:
            share = weight * fitted.priors_[index] / _positive(own)
        fitted._columns = _one_hot(index, share, rows, len(fitted.classes_))
        sums = kernel_sums(rows, None, fitted._columns, bandwidths, n_jobs=self.n_jobs).sums
        if self.priors is not None:  # leaving a row out lowers the total weight of its label
            factors = np.ones(sums.shape[1:])
            factors[np.arange(len(index)), index] = own / _positive(own - weight)
            sums *= like(sums, factors)
        probas, losses = leave_one_out(sums, index, weight, fitted.priors_)
        best = int(np.argmin(losses))
        fitted.bandwidth_ = bandwidths[best]
        fitted.loo_log_loss_ = dict(zip(bandwidths, losses, strict=True))
        return vars(fitted), _moved(probas[best], X)


def leave_one_out(sums, index, weight, priors):
    """Return p(label | x) for each bandwidth, and the log-loss of each bandwidth.

    `sums` has the kernel sums of the training rows without their own kernel, of shape
    (n_bandwidths, n_samples, n_labels); `index` has the label of each row.

    >>> sums = np.array([[[3.0, 1.0], [0.0, 0.0]]])  # one bandwidth, two rows, two labels
    >>> leave_one_out(sums, np.array([0, 1]), np.ones(2), np.array([0.5, 0.5]))[0]
    [array([[0.75, 0.25],
           [0.5 , 0.5 ]])]
    """
    xp, place = array_namespace(sums), device(sums)
    index, here = xp.asarray(index, device=place), xp.arange(len(index), device=place)
    probas = [normalize_sums(sums[h, ...], priors) for h in range(sums.shape[0])]
    share = like(sums, weight / weight.sum())
    losses = [-xp.sum(share * xp.log(xp.clip(p[here, index], TINY, None))) for p in probas]
    return probas, [float(loss) for loss in losses]


def normalize_sums(sums, priors):
    """Return `sums` with rows normalized to 1; rows of zeros become the priors.

    >>> normalize_sums(np.array([[3.0, 1.0], [0.0, 0.0]]), np.array([0.9, 0.1]))
    array([[0.75, 0.25],
           [0.9 , 0.1 ]])
    """
    xp = array_namespace(sums)
    sums = xp.clip(sums, 0.0, None)  # subtracting exp(MIN_LOG_KERNEL) may leave a rounding error
    total = xp.sum(sums, axis=1, keepdims=True)
    return xp.where(total > 0, sums / xp.where(total > 0, total, 1.0), like(sums, priors))


def _one_hot(index, weight, rows, n_classes):
    """Return one column per label: the weights of its rows, and 0 elsewhere."""
    columns = np.zeros((len(index), n_classes))
    columns[np.arange(len(index)), index] = weight
    return like(rows, columns)


def _positive(values):
    return np.where(values > 0, values, 1.0)


def _moved(values, array):
    """Return `values` in the library and dtype, and on the device, of `array`."""
    xp = array_namespace(array)
    with np.errstate(under="ignore"):
        if array_namespace(values) is xp and device(values) == device(array):
            return xp.astype(values, array.dtype, copy=False)
        return like(array, as_numpy("X", values))


# ---------------------------------------------------------------------------------- input checks


def _check_rows(estimator, X, *, reset):
    """Return `X` in its own library, as float32 or float64, or say why it cannot be used."""
    if issparse(X):
        raise ValueError(
            f"X is a sparse matrix; {type(estimator).__name__} supports dense arrays only. Pass "
            "X.toarray(), or reduce the columns with TruncatedSVD."
        )
    if not is_array_api_obj(X) or is_numpy_array(X):
        return validate_data(estimator, X, dtype=[np.float64, np.float32], reset=reset)
    xp, X = array_namespace(X), as_float_array("X", X)
    check_2d("X", X)
    if not bool(xp.all(xp.isfinite(X))):
        row = int(xp.argmax(xp.astype(~xp.all(xp.isfinite(X), axis=1), xp.int8)))
        raise ValueError(f"X must hold finite numbers; row {row} has NaN or infinity.")
    validate_data(estimator, X, reset=reset, skip_check_array=True)
    return X


def _warn_about_constants(fitted):
    kept = as_numpy("kept", fitted._varying[0])
    constant = np.setdiff1d(np.arange(fitted.n_features_in_), kept).tolist()
    if constant:
        names = getattr(fitted, "feature_names_in_", range(fitted.n_features_in_))
        warnings.warn(
            f"X has constant columns: {some_of([names[c] for c in constant])}. They carry no "
            "information about the labels and are ignored, here and in predict.",
            UserWarning,
            stacklevel=4,  # the caller of fit
        )


def _check_labels(X, y):
    """Return the sorted labels and, for each row, the position of its label among them."""
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
    weight = check_sample_weight(sample_weight, np.empty((X.shape[0], 0)))
    return weight / weight.max()  # weights of any size fit float32


def _check_priors(priors, label_weight):
    if priors is None:
        return label_weight / label_weight.sum()
    specified = as_numpy("priors", priors)
    if specified.shape != label_weight.shape:
        raise ValueError(
            f"priors has shape {specified.shape}; y has {len(label_weight)} labels, so priors must "
            f"have shape ({len(label_weight)},)."
        )
    check_entries("priors", specified[None, :], ["priors"])
    total = specified.sum()
    if abs(total - 1) > 1e-8 * len(specified):
        raise ValueError(f"priors must sum to 1; they sum to {total:.6g}. Divide them by this sum.")
    return specified / total


def _scott(n_rows, n_features) -> list[float]:
    """Return bandwidths around Scott's rule for the length of a vector of `n_features`."""
    rule = n_rows ** (-1 / (n_features + 4)) * max(n_features, 1) ** 0.5
    return (rule * BANDWIDTH_STEPS).tolist()


def _check_bandwidths(bandwidths) -> list[float]:
    """Return one or several bandwidths as a list, or say which one is invalid."""
    try:
        specified = np.atleast_1d(np.asarray(bandwidths, dtype=np.float64))
    except (TypeError, ValueError):
        specified = np.empty(0)
    if specified.ndim != 1 or not specified.size:
        raise ValueError(
            "bandwidth must be a positive number or a sequence of them; it is "
            f"{short_repr(bandwidths)}."
        )
    bad = ~(np.isfinite(specified) & (specified > 0))
    if bad.any():
        first = int(np.argmax(bad))
        where = f"the one at position {first}" if specified.size > 1 else "it"
        raise ValueError(
            f"bandwidth must be positive and finite (in standard deviations); {where} is "
            f"{specified[first]}. Try 0.5."
        )
    return specified.tolist()
