"""Are these rows probabilities, and do the names match? If not: what, where, and what to do."""

from collections.abc import Sequence
from importlib import import_module

import numpy as np
from array_api_compat import array_namespace, device, is_array_api_obj, is_numpy_array, to_device

# ------------------------------------------------------------------------------------------ arrays


def as_float_array(name, array):
    """Return a floating-point array of any library as it is, anything else as NumPy float64."""
    if is_array_api_obj(array):
        xp = array_namespace(array)
        if array.dtype in (xp.float32, xp.float64):
            return array
        return xp.astype(array, xp.float64)
    return as_numpy(name, array)


def as_numpy(name, array) -> np.ndarray:
    """Return `array`, of whatever library or device, as NumPy float64."""
    if is_array_api_obj(array) and not is_numpy_array(array):
        try:
            array = np.from_dlpack(array)
        except (BufferError, RuntimeError, TypeError, ValueError):  # it is on another device
            array = np.from_dlpack(to_device(array, "cpu"))
    try:
        return np.asarray(array, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} must be an array of numbers: {error}") from None


def check_row_stochastic(name, matrix, row_names: Sequence | None = None, *, tol=None):
    """Return `matrix` with rows that sum to exactly 1, or say which row is no distribution.

    Sums may be off by rounding, `tol` (by default 1e-8 a column, more in single precision); such
    rows are normalized.
    """
    total = check_row_sums(name, matrix, row_names, tol=tol)
    return matrix / array_namespace(matrix).astype(total, matrix.dtype)[:, None]


def check_row_sums(name, matrix, row_names: Sequence | None = None, *, tol=None):
    """Return the sum of each row, or say which row is no distribution."""
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
            f"{float(total[row]):.6g}. {hint}"
        )
    return total


def check_2d(name, matrix):
    """Say that `matrix` is no table with at least one row and column."""
    if matrix.ndim != 2 or 0 in matrix.shape:
        raise ValueError(
            f"{name} must be a 2-D array with at least one row and one column; "
            f"its shape is {tuple(matrix.shape)}."
        )


def check_entries(name, matrix, row_names=None):
    """Say where `matrix` holds a number that is negative or not finite."""
    xp = array_namespace(matrix)
    bad = ~(xp.isfinite(matrix) & (matrix >= 0))
    if not bool(xp.any(bad)):
        return
    row = int(xp.argmax(xp.astype(xp.any(bad, axis=1), xp.int8)))
    column = int(xp.argmax(xp.astype(bad[row, :], xp.int8)))
    raise ValueError(
        f"{name} must hold numbers that are finite and not negative; {row_called(row, row_names)}, "
        f"column {column} is {float(matrix[row, column])}."
    )


def check_class_prior(class_prior, n_classes, class_names=None) -> np.ndarray:
    """Return a distribution over the classes, or say what keeps `class_prior` from being one."""
    prior = as_numpy("class_prior", class_prior)
    if prior.shape != (n_classes,):
        raise ValueError(
            f"class_prior has shape {prior.shape}; {n_classes} classes need ({n_classes},)."
        )
    return check_row_stochastic("class_prior", prior[None, :], ["class_prior"])[0]


def check_pseudocounts(pseudocounts, transition) -> np.ndarray:
    """Return counts that fit the transition, or say where they do not."""
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
            f"pseudocounts must be 0 where the transition is 0 (a zero is a promise); row {row}, "
            f"column {column} is {counts[row, column]}. Give the transition a small number there."
        )
    return counts


def check_sample_weight(sample_weight, rows):
    """Return weights in the library of `rows`, one a row, or None for equal ones."""
    if sample_weight is None:
        return None
    weight = as_numpy("sample_weight", sample_weight)
    if weight.shape != (rows.shape[0],):
        raise ValueError(
            f"sample_weight has shape {weight.shape}; {rows.shape[0]} rows need ({rows.shape[0]},)."
        )
    check_entries("sample_weight", weight[:, None])
    if not weight.any():
        raise ValueError("sample_weight must have a positive number; all are 0.")
    return array_namespace(rows).asarray(weight, device=device(rows))


def check_label_weights(label_weights, n_labels):
    """Return one weight a label, all ones for None."""
    if label_weights is None:
        return np.ones(n_labels)
    weights = as_numpy("label_weights", label_weights)
    if weights.shape != (n_labels,):
        raise ValueError(
            f"label_weights has shape {weights.shape}; {n_labels} labels need ({n_labels},)."
        )
    check_entries("label_weights", weights[:, None])
    return weights


def as_counts(sample_weight):
    """Return weights as counts of rows; where all are below 1 they are shares of something."""
    return sample_weight / min(sample_weight.max(), 1.0)


def check_label_index(label_index, n_labels, rows):
    """Return the columns of the labels given, one a row of `rows`, or say which one is off."""
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
    """Return how a message names a row: by its name where it has one, else by its index."""
    return f"row {row}" if row_names is None else f"row {short_repr(row_names[row])}"


def short_repr(value, most=60) -> str:
    """Return `repr(value)`, safe to print and never longer than `most` characters."""
    text = ascii(value) if isinstance(value, str) and not value.isprintable() else repr(value)
    return text if len(text) <= most else text[: most - 1] + "…"


def some_of(names: Sequence, most=5) -> str:
    """Return the first few names as a message lists them."""
    shown = ", ".join(short_repr(name) for name in names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"


# --------------------------------------------------------------------------------- what is at hand


def check_size(what: str, n_rows: int, n_columns: int, most_bytes=2 * 1024**3):
    """Say what a matrix would need before anyone allocates it."""
    size = 8 * n_rows * n_columns
    if size > most_bytes:
        power = min(int(np.log2(size)) // 10, 6)
        unit = ("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")[power]
        raise ValueError(
            f"{what} would need {size / 1024**power:.1f} {unit} ({n_rows} × {n_columns} numbers). "
            "Merge rare labels or take fewer classes; a column of identifiers holds no labels."
        )


def import_extra(module: str, install: str):
    """Return an optional module, or say in one line how to install it."""
    try:
        return import_module(module)
    except ImportError:
        name = module.split(".")[0]
        raise ImportError(f"This needs {name}: pip install {install}") from None
