"""Names of classes and labels: reading, matching and displaying them."""

import warnings
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from itertools import chain, compress

import numpy as np

from looselabels._validation import as_numpy, check_2d, short_repr, single_from_half, some_of

UNLABELED = "(unlabeled)"  # how the missing label, None, is displayed
LOOK_MISSING = (  # how missing values look as text, and what people write in their place
    *("", "nan", "none", "null", "<na>", "na", "n/a", "#n/a", "?", "unknown"),
)


def listed(names: Iterable, max_names=5) -> str:
    """Return the first names for a message, in the brackets of a list or a tuple.

    >>> listed(["cat", None])
    "['cat', '(unlabeled)']"
    >>> listed(tuple(range(9)))
    '(0, 1, 2, 3, 4 and 4 more)'
    """
    start, end = "()" if isinstance(names, tuple) else "[]"
    return start + some_of([UNLABELED if name is None else name for name in names], max_names) + end


def shown(name: Hashable, max_length=40) -> str:
    """Return the text that displays a name in a table or a plot.

    >>> shown(None), shown(("web", "cat"))
    ('(unlabeled)', 'web: cat')
    """
    if name is None:
        return UNLABELED
    if isinstance(name, tuple):
        return ": ".join(shown(part, max_length) for part in name)
    text = str(name)
    text = text if text.isprintable() else ascii(text)[1:-1]
    return text if len(text) <= max_length else text[: max_length - 1] + "…"


def plain_name(name: Hashable) -> Hashable:
    """Return the name of a class or label as plain Python: text, number, bool, or a tuple.

    The missing values of all libraries (None, NaN, NA, NaT) become None, the missing label.
    """
    if isinstance(name, np.generic):
        name = name.item()
    if isinstance(name, tuple):
        return tuple(plain_name(part) for part in name)
    # the missing values of pandas are recognized by type name: pandas may not be installed
    if name is None or type(name).__name__ in ("NAType", "NaTType"):
        return None
    if isinstance(name, float) and np.isnan(name):
        return None
    if isinstance(name, str | int) or (isinstance(name, float) and np.isfinite(name)):
        return name
    if isinstance(name, complex):
        raise ValueError(f"Complex data not supported: {name} cannot name a class or label.")
    raise ValueError(
        f"{short_repr(name)} ({type(name).__name__}) cannot name a class or label; "
        "use text, whole numbers or bool."
    )


def read_names(argument: str, names: Iterable) -> tuple:
    """Return `names` as a tuple of distinct plain names."""
    if isinstance(names, str) or not isinstance(names, Iterable):
        raise ValueError(f"{argument} must be a list of names; it is {short_repr(names)}.")
    plain = tuple(plain_name(name) for name in names)
    if len(set(plain)) < len(plain):
        twice = [name for name, count in Counter(plain).items() if count > 1]
        raise ValueError(f"{argument} must be distinct; {listed(twice)} occur more than once.")
    if swap_name(plain, UNLABELED, None) != plain:
        raise ValueError(
            f"{argument} contain {UNLABELED!r}, the text that displays the missing label; use None."
        )
    return plain


def look_missing(labels: Iterable, is_full=True) -> list[int]:
    """Return the positions of labels with which other tools and conversions mark missing ones.

    These are empty text, the names of missing values, and -1, as in scikit-learn and Snorkel, if no
    label is missing (`is_full`) and the others are 0, 1, 2, …. Of -1 and 1 alone, both are classes.

    >>> look_missing([-1, 0, 1]), look_missing([-1, 1]), look_missing(["cat", "nan"])
    ([0], [], [1])
    """
    texts = [UNLABELED if label is None else str(label).strip().lower() for label in labels]
    others = [text for text in texts if text not in ("-1", UNLABELED)]
    is_mark = is_full and all(map(str.isdecimal, others)) and others != ["1"]
    marks = (*LOOK_MISSING, "-1") if is_mark else LOOK_MISSING
    return [s for s, text in enumerate(texts) if text in marks]


def match_names(argument: str, found: Iterable, wanted: Sequence) -> list[int]:
    """Return the position in `found` of each name in `wanted`; both must hold the same names."""
    position = {name: i for i, name in enumerate(read_names(f"names in {argument}", found))}
    expected = set(wanted)
    unknown = [name for name in position if name not in expected]
    missing = [name for name in wanted if name not in position]
    if unknown:
        raise ValueError(f"{argument} names {listed(unknown)}; it can name {listed(wanted)}.")
    if missing:
        raise ValueError(f"{argument} lacks {listed(missing)}; it must name {listed(wanted)}.")
    return [position[name] for name in wanted]


def numbers_by_name(argument: str, values, names: Sequence, *, maximum=np.inf) -> np.ndarray:
    """Return one number from 0 to `maximum` for each of `names`.

    `values` is one number for all names, a sequence in their order, or a mapping from name to
    number.
    """
    if hasattr(values, "to_dict"):  # a pandas Series is matched by its index
        values = values.to_dict()
    if isinstance(values, Mapping):
        order = match_names(argument, values, names)
        values = list(values.values())
        values = [values[i] for i in order]
    numbers = as_numpy(argument, values)
    if numbers.ndim == 0:
        numbers = np.full(len(names), float(numbers))
    if numbers.shape != (len(names),):
        raise ValueError(
            f"{argument} has shape {numbers.shape}; it needs one number each for {listed(names)}."
        )
    good = np.isfinite(numbers) & (numbers >= 0) & (numbers <= maximum)
    if not good.all():
        name, value = names[int(np.argmin(good))], numbers[np.argmin(good)]
        allowed = "finite and not negative" if np.isinf(maximum) else f"between 0 and {maximum:g}"
        raise ValueError(f"{argument} of {short_repr(name)} is {value:.6g}; it must be {allowed}.")
    return numbers


def swap_name(name: Hashable, old: Hashable, new: Hashable) -> Hashable:
    """Return `name` with `old` replaced by `new`, also inside tuples."""
    if isinstance(name, tuple):
        return tuple(swap_name(part, old, new) for part in name)
    return new if name == old else name


def sorted_labels(labels):
    """Return the labels sorted; whole numbers of a float column become integers."""
    for name in labels:
        if isinstance(name, float) and not name.is_integer():
            raise ValueError(
                f"Unknown label type: y contains {name} and looks like a continuous target; "
                "convert it to text if it is a label."
            )
    try:
        return [int(name) if isinstance(name, float) else name for name in sorted(labels)]
    except TypeError:
        kinds = {type(name).__name__: name for name in labels}
        raise ValueError(
            f"labels must be of one type; y contains {' and '.join(kinds)}, as in "
            f"{listed(kinds.values())}. Convert all of them to text."
        ) from None


# ------------------------------------------------------------------------------ columns and tables


def as_column(y):
    """Return `y` as a column; a table with one column is converted with a warning."""
    if y is None:
        raise ValueError("This classifier requires y to be passed, but the target y is None.")
    if getattr(y, "ndim", 1) == 2 and y.shape[1] == 1:
        from sklearn.exceptions import DataConversionWarning

        message = "A column-vector y was passed when a 1d array was expected."
        warnings.warn(message, DataConversionWarning, stacklevel=3)
        return y[:, 0] if isinstance(y, np.ndarray) else y.iloc[:, 0]
    return y


def read_column(argument: str, column) -> tuple[tuple, np.ndarray]:
    """Return the distinct names in a column of labels, and the position of each row's name.

    The names include the unused categories of a categorical column.

    >>> read_column("y", ["dog", None, "dog"])
    (('dog', None), array([0, 1, 0]))
    """
    dtype, shape = getattr(column, "dtype", None), getattr(column, "shape", None)
    if shape is not None and len(shape) != 1:
        raise ValueError(
            f"{argument} must be a column with one label per sample; its shape is {shape}."
        )
    if isinstance(column, str | bytes | Mapping) or not isinstance(column, Iterable):
        raise ValueError(f"{argument} must be a column of labels; it is {short_repr(column)}.")
    if getattr(dtype, "kind", None) in ("m", "M"):
        raise ValueError(
            f"{argument} contains times ({dtype}); convert them to text to use them as labels."
        )
    if isinstance(dtype, np.dtype) and dtype.kind == "f":
        # in a list each NaN would be a distinct object, and so a distinct name
        masked = column.mask if isinstance(column, np.ma.MaskedArray) else False
        numbers = np.asarray(column)
        column = numbers.astype(object)
        column[np.isnan(numbers) | masked] = None
    values = column.tolist() if hasattr(column, "tolist") else list(column)
    _check_no_bool_among_numbers(argument, values)
    categories: list = getattr(getattr(dtype, "categories", None), "to_list", list)()
    try:
        # one lookup per row; the slower conversion only once per distinct value
        plain = {value: plain_name(value) for value in dict.fromkeys(chain(values, categories))}
    except TypeError:
        raise ValueError(
            f"{argument} must be a column with one label per sample; its rows are lists."
        ) from None
    position = {name: i for i, name in enumerate(dict.fromkeys(plain.values()))}
    index = {value: position[name] for value, name in plain.items()}
    return tuple(position), np.fromiter(map(index.__getitem__, values), np.intp, len(values))


def _check_no_bool_among_numbers(argument, values):
    """Raise if True would be taken for 1, to which it is equal in Python."""
    bools = {kind for kind in set(map(type, values)) if issubclass(kind, bool | np.bool_)}
    if not bools:
        return
    numbers = (v for v in values if isinstance(v, int | float | np.number) and v == v)  # not NaN
    for number in numbers:
        if type(number) not in bools:
            raise ValueError(
                f"labels must be of one type; {argument} contains {short_repr(number)} next to "
                "True or False, and 1 equals True. Convert all of them to text."
            )


def read_classes(argument: str, column, classes: Sequence, n_rows: int) -> np.ndarray:
    """Return the position in `classes` of each row's class, −1 where it is missing.

    >>> read_classes("known_classes", ["dog", None], ("cat", "dog"), n_rows=2)
    array([ 1, -1])
    """
    names, index = read_column(argument, column)
    if len(index) != n_rows:
        raise ValueError(f"{argument} has {len(index)} rows; y has {n_rows}.")
    used = compress(names, np.bincount(index, minlength=len(names)))
    unknown = [name for name in used if name is not None and name not in classes]
    if unknown:
        raise ValueError(
            f"{argument} contains {listed(unknown)}; the classes of the classifier are "
            f"{listed(classes)}."
        )
    position = {name: y for y, name in enumerate(classes)}
    return np.array([position.get(name, -1) for name in names], dtype=np.intp)[index]


def read_table(
    argument: str, table, rows, columns, *, words=("classes", "labels")
) -> tuple[np.ndarray, tuple, tuple]:
    """Return a table as an array, with the names of its rows and columns.

    A DataFrame has names; it is reordered by `rows` and `columns` if these are given. An array has
    no names and needs both. Messages call rows and columns by `words`.
    """
    if not hasattr(table, "columns"):
        return _read_array(argument, table, rows, columns, words)
    if hasattr(table, "iloc"):
        values, own = table.to_numpy(), (table.index, table.columns)
    else:  # polars has no index; the first column holds the row names
        values, own = table[:, 1:].to_numpy(), (table.to_series(0), table.columns[1:])
    row_order, rows = _order(f"{words[0]} of {argument}", own[0], rows)
    column_order, columns = _order(f"{words[1]} of {argument}", own[1], columns)
    return as_numpy(argument, values)[np.ix_(row_order, column_order)], rows, columns


def _read_array(argument, array, rows, columns, words):
    if rows is None or columns is None:
        raise ValueError(f"{argument} is an array without names; pass {' and '.join(words)}.")
    rows, columns = read_names(words[0], rows), read_names(words[1], columns)
    matrix, needed = as_numpy(argument, array), (len(rows), len(columns))
    check_2d(argument, matrix)
    if matrix.shape != needed:
        hint = " Pass the transpose." if matrix.T.shape == needed else ""
        raise ValueError(
            f"{argument} has shape {matrix.shape}; {needed[0]} {words[0]} and {needed[1]} "
            f"{words[1]} need {needed}.{hint}"
        )
    return matrix, rows, columns


def in_label_order(argument: str, proba, labels):
    """Return a DataFrame with one column per label as an array, columns in the order of `labels`.

    Anything that has no named columns is returned as it is, and so is everything if `labels` is
    None, for a transition without names.
    """
    if labels is None or not hasattr(proba, "columns"):
        return proba
    order, _ = _order(f"columns of {argument}", proba.columns, labels)
    if hasattr(proba, "to_dask_array"):
        return proba.to_dask_array()[:, order]
    return as_numpy(argument, single_from_half(proba.to_numpy()))[:, order]


def check_distinct_columns(X):
    """Raise if two columns of a table of features have the same name."""
    twice = [name for name, count in Counter(getattr(X, "columns", ())).items() if count > 1]
    if twice:
        raise ValueError(f"X has more than one column {listed(twice)[1:-1]}; rename them.")


def _order(argument, found, wanted):
    """Return the positions in `found` of the `wanted` names (None: all names), and the names."""
    found = [swap_name(plain_name(name), UNLABELED, None) for name in found]
    wanted = read_names(argument, found if wanted is None else wanted)
    # files and polars convert names to text: the label 1 is found as "1"
    known = {str(swap_name(name, None, UNLABELED)): name for name in wanted}
    known |= {name: name for name in wanted}
    return match_names(argument, [known.get(name, name) for name in found], wanted), wanted
