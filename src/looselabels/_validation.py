"""Checks of arrays. Each message names the argument, the place, the value and what to do."""

import json
from collections.abc import Sequence
from importlib import import_module
from numbers import Integral, Real

import numpy as np
from array_api_compat import array_namespace, device, is_array_api_obj, is_numpy_array, to_device

# ------------------------------------------------------------------------------------------ arrays


def as_float_array(name, array):
    """Return a float32 or float64 array of any library unchanged, anything else as float64."""
    if is_array_api_obj(array):
        xp = array_namespace(array)
        if array.dtype in (xp.float32, xp.float64):
            return array
        return xp.astype(array, xp.float64)
    return as_numpy(name, array)


def as_numpy(name, array) -> np.ndarray:
    """Return an array of any library and device as NumPy float64."""
    try:
        return np.asarray(_from_library(array), dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} must be an array of numbers: {error}") from None
    except OverflowError:  # Python's whole numbers have no limit
        raise ValueError(
            f"{name} must be an array of numbers: one of them is above 1.8e308, the largest that "
            "there is. Is it a typing error?"
        ) from None


def as_number(value) -> float:
    """Return a real number as float; anything else as NaN, which is outside of every range.

    >>> as_number(2), as_number("2"), as_number(True), as_number(10**400)
    (2.0, nan, nan, nan)
    """
    try:
        return float(value) if isinstance(value, Real) and not isinstance(value, bool) else np.nan
    except OverflowError:
        return np.nan


def is_whole(value, least=0) -> bool:
    """Return whether a value is a whole number, at least `least`.

    >>> is_whole(2, 1), is_whole(1.5), is_whole(-1), is_whole(True)
    (True, False, False, False)
    """
    return isinstance(value, Integral) and not isinstance(value, bool) and int(value) >= least


def single_from_half(proba):
    """Return rows of half precision as single precision, normalized; anything else unchanged.

    Their sums are off by about 0.001, which is an error in every other precision.

    >>> single_from_half(np.array([[0.2, 0.8]], dtype=np.float16)).sum(axis=1)
    array([1.], dtype=float32)
    """
    if "float16" not in str(getattr(proba, "dtype", "")):
        return proba
    xp = array_namespace(proba)
    rows = xp.astype(proba, xp.float32)
    total = xp.sum(rows, axis=-1, keepdims=True)
    is_rounding = xp.abs(total - 1) <= 4 * float(xp.finfo(proba.dtype).eps)
    return rows / xp.where(is_rounding, total, xp.ones_like(total))


def _from_library(array):
    """Return an array of another library as a NumPy array, anything else unchanged."""
    if not is_array_api_obj(array) or is_numpy_array(array):
        return array
    try:
        return np.from_dlpack(array)
    except (BufferError, RuntimeError, TypeError, ValueError):  # it is on another device
        return np.from_dlpack(to_device(array, "cpu"))


def check_scores(label_proba, label_index, sample_weight=None):
    """Return p(label | x), the labels and the weights of the same rows as NumPy arrays.

    Parameters
    ----------
    label_proba : array of shape (n_samples, n_labels)
        Rows sum to 1 up to 1e-5, the precision of classifiers that compute in single precision.
        They are normalized.
    label_index : integers of shape (n_samples,)
        The column of the label of each row.
    sample_weight : array of shape (n_samples,), optional
        None becomes ones.

    Examples
    --------
    >>> label_proba, label_index, sample_weight = check_scores([[0.3, 0.7], [1, 0]], [1, 0])
    >>> label_index, sample_weight
    (array([1, 0]), array([1., 1.]))
    >>> check_scores([[0.3, 0.7], [1, 0]], [1, 2])
    Traceback (most recent call last):
    ...
    ValueError: label_index must be between 0 and 1; row 1 is 2.
    """
    proba = as_numpy("label_proba", single_from_half(label_proba))
    proba = check_row_stochastic("label_proba", proba, tol=1e-5)
    index = check_label_index(_from_library(label_index), proba.shape[1], proba)
    weight = check_sample_weight(sample_weight, proba)
    return proba, index, weight_of_rows(weight, len(proba))


def check_proba(name, array):
    """Return p(· | x), one row per sample, as floats in its own library.

    Sums may differ from 1 by 1e-5, the precision of classifiers that compute in single precision.
    """
    proba = as_float_array(name, single_from_half(array))
    check_row_sums(name, proba, tol=1e-5)
    return proba


def check_row_stochastic(name, matrix, row_names: Sequence | None = None, *, tol=None):
    """Return `matrix` with its rows normalized, or raise an error that names a bad row.

    Sums may differ from 1 by `tol`, by default 1e-8 per column and more in single precision.
    """
    total = check_row_sums(name, matrix, row_names, tol=tol)
    return matrix / array_namespace(matrix).astype(total, matrix.dtype)[:, None]


def check_row_sums(name, matrix, row_names: Sequence | None = None, *, tol=None):
    """Return the sum of each row, or raise an error that names a row that is not a distribution."""
    xp = array_namespace(matrix)
    check_2d(name, matrix)
    check_entries(name, matrix, row_names)
    if tol is None:
        tol = matrix.shape[1] * max(1e-8, 4 * float(xp.finfo(matrix.dtype).eps))
    total = xp.sum(matrix, axis=1, dtype=xp.float64)
    off = xp.abs(total - 1) > tol
    if bool(xp.any(off)):
        row = int(xp.argmax(xp.astype(off, xp.int8)))
        columns = xp.sum(matrix, axis=0, dtype=xp.float64)
        if bool(xp.all(xp.abs(columns - 1) <= tol)):
            hint = "Its columns do: pass the transpose."
        else:
            hint = "Divide each row by its sum if only proportions are known."
        raise ValueError(
            f"Each row of {name} must sum to 1; {row_called(row, row_names)} sums to "
            f"{_not_one(float(total[row]))}. {hint}"
        )
    return total


def check_2d(name, matrix):
    """Raise an error if `matrix` is not 2-D with at least one row and one column."""
    if matrix.ndim != 2 or 0 in matrix.shape:
        raise ValueError(
            f"{name} must be a 2-D array with at least one row and one column; "
            f"its shape is {tuple(matrix.shape)}."
        )


def check_entries(name, array, row_names=None):
    """Raise an error that names the first entry of a vector or matrix that is negative or NaN."""
    xp = array_namespace(array)
    bad = ~(xp.isfinite(array) & (array >= 0))
    if not bool(xp.any(bad)):
        return
    rows = bad if bad.ndim == 1 else xp.any(bad, axis=1)
    row = int(xp.argmax(xp.astype(rows, xp.int8)))
    place, value = row_called(row, row_names), array[row, ...]
    if bad.ndim == 2:
        column = int(xp.argmax(xp.astype(bad[row, :], xp.int8)))
        place, value = f"{place}, column {column}", value[column]
    raise ValueError(
        f"{name} must hold numbers that are finite and not negative; {place} is {float(value)}."
    )


def check_class_prior(class_prior, n_classes) -> np.ndarray:
    """Return `class_prior` as a normalized array, or raise an error if it is not a distribution."""
    prior = as_numpy("class_prior", class_prior)
    if prior.shape != (n_classes,):
        raise ValueError(
            f"class_prior has shape {prior.shape}; {n_classes} classes need ({n_classes},)."
        )
    check_entries("class_prior", prior)
    total = prior.sum()
    if abs(total - 1) > 1e-8 * n_classes:
        raise ValueError(
            f"class_prior must sum to 1; it sums to {_not_one(total)}. Divide it by its sum if "
            "only proportions are known."
        )
    return prior / total


def check_pseudocounts(pseudocounts, transition) -> np.ndarray:
    """Return the pseudocounts as an array, or raise an error if they contradict the transition."""
    counts = as_numpy("pseudocounts", pseudocounts)
    if counts.shape != transition.shape:
        raise ValueError(
            f"pseudocounts has shape {counts.shape}; the transition has {transition.shape}."
        )
    check_entries("pseudocounts", counts)
    broken = (counts > 0) & (transition == 0)
    if broken.any():
        row, column = np.argwhere(broken)[0]
        raise ValueError(
            "pseudocounts must be 0 where the transition is 0, because the class never has the "
            f"label; row {row}, column {column} is {counts[row, column]}. Give the transition a "
            "small probability there if the class can have this label."
        )
    return counts


def check_sample_weight(sample_weight, rows):
    """Return one weight per row in the array library of `rows`; None stays None."""
    if sample_weight is None:
        return None
    weight = as_numpy("sample_weight", sample_weight)
    if weight.shape != (rows.shape[0],):
        raise ValueError(
            f"sample_weight has shape {weight.shape}; {rows.shape[0]} rows need ({rows.shape[0]},)."
        )
    check_entries("sample_weight", weight)
    if not weight.any():
        raise ValueError("sample_weight must contain a positive number; all are zero.")
    return array_namespace(rows).asarray(weight, device=device(rows))


def weight_of_rows(sample_weight, n_rows) -> np.ndarray:
    """Return how often each row counts as floating-point numbers; None becomes ones.

    >>> weight_of_rows(None, 2), weight_of_rows([1, 3], 2)
    (array([1., 1.]), array([1., 3.]))
    """
    return np.ones(n_rows) if sample_weight is None else np.asarray(sample_weight, float)


def as_counts(sample_weight):
    """Return weights as row counts: if all are below 1, they are scaled to a maximum of 1."""
    return sample_weight / min(sample_weight.max(), 1.0)


def check_label_index(label_index, n_labels, rows):
    """Return the column of the label of each row, or raise an error that names a bad one."""
    xp = array_namespace(rows)
    index = xp.asarray(label_index, device=device(rows))
    if index.shape != (rows.shape[0],):
        raise ValueError(
            f"label_index has shape {tuple(index.shape)}; {rows.shape[0]} rows need "
            f"({rows.shape[0]},)."
        )
    if not xp.isdtype(index.dtype, "integral"):
        raise ValueError(f"label_index must hold integers; its type is {index.dtype}.")
    off = (index < 0) | (index >= n_labels)
    if bool(xp.any(off)):
        row = int(xp.argmax(xp.astype(off, xp.int8)))
        raise ValueError(
            f"label_index must be between 0 and {n_labels - 1}; row {row} is {int(index[row])}."
        )
    return index


# ----------------------------------------------------------------------------------------- wording


def row_called(row: int, row_names: Sequence | None = None) -> str:
    """Return how a message names a row: by its name if it has one, otherwise by its index."""
    return f"row {row}" if row_names is None else f"row {short_repr(row_names[row])}"


def short_repr(value, max_length=60) -> str:
    """Return `repr(value)`, printable and cut to at most `max_length` characters."""
    text = ascii(value) if isinstance(value, str) and not value.isprintable() else repr(value)
    return text if len(text) <= max_length else text[: max_length - 1] + "…"


def some_of(names: Sequence, max_names=5) -> str:
    """Return the first names for a message, as in "'a', 'b' and 3 more".

    A single name more is written too: "and 1 more" would hide a name and save no room.

    >>> some_of("abc", 2), some_of("abcd", 2)
    ("'a', 'b', 'c'", "'a', 'b' and 2 more")
    """
    if len(names) <= max_names + 1:
        return ", ".join(short_repr(name) for name in names)
    shown = ", ".join(short_repr(name) for name in names[:max_names])
    return f"{shown} and {len(names) - max_names} more"


def _not_one(total: float) -> str:
    """Return a sum that is not 1, with as many digits as it takes to see this."""
    text = f"{total:.6g}"
    return f"{total:.12g}" if text == "1" else text


# ------------------------------------------------------------------------- memory, extras and JSON


def check_size(name: str, n_rows: int, n_columns: int, max_bytes=2 * 1024**3):
    """Raise an error if a float64 matrix would be too large, before it is allocated."""
    size = 8 * n_rows * n_columns
    if size > max_bytes:
        power = min(int(np.log2(size)) // 10, 6)
        unit = ("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")[power]
        raise ValueError(
            f"{name} would need {size / 1024**power:.1f} {unit} ({n_rows} × {n_columns} numbers). "
            "Merge rare labels or use fewer classes. Is this a column of identifiers?"
        )


def import_extra(module: str, install: str):
    """Import and return an optional module, or raise an error that says how to install it."""
    try:
        return import_module(module)
    except ImportError:
        name = module.split(".")[0]
        raise ImportError(f"This needs {name}: pip install {install}") from None


def parse_json(text, **options):
    """Return the content of strict JSON: without NaN and infinity, and with distinct keys.

    `options` are those of `json.loads`.

    >>> parse_json('{"a": 1, "a": 2}')
    Traceback (most recent call last):
    ...
    ValueError: the key 'a' occurs twice
    """
    return json.loads(
        text, parse_constant=_refuse_constant, object_pairs_hook=_distinct_keys, **options
    )


def _refuse_constant(constant):
    raise ValueError(f"{constant} is not allowed")


def _distinct_keys(pairs):
    found = dict(pairs)
    if len(found) < len(pairs):
        twice = next(key for i, (key, _) in enumerate(pairs) if key in dict(pairs[:i]))
        raise ValueError(f"the key {short_repr(twice)} occurs twice")
    return found
