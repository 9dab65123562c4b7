"""The columns of a table as a float32 matrix, encoded in the same way for every later table.

skrub's TableVectorizer does the same, but saving one requires pickle or trust in 25 private types,
some of them functions. Here a model consists of JSON and plain arrays.
"""

import json
import re
from itertools import product
from math import isqrt
from pathlib import Path

import numpy as np

from looselabels import __version__
from looselabels._files import check_archive, reading
from looselabels._validation import short_repr, some_of
from looselabels.command.encoders import (
    ENCODERS,
    Column,
    FittedColumn,
    Numbers,
    fit_column,
    fit_text,
)
from looselabels.command.images import Images, fit_images
from looselabels.command.spilling import matrix_of
from looselabels.command.tables import (
    N_ROWS,
    TableError,
    arrow_table,
    check_columns,
    is_text,
    nearest,
    pa,
    row_location,
)
from looselabels.estimation.sampling import MAX_FIT_ROWS, sample_rows

SCHEMA = 1
FILES = JSON, ARRAYS = "features.json", "features.npz"
RESULTS = ("suggestion", "suggestion_proba", "label_proba", "doubt", "why")  # of an audit
ADDED = (  # columns that commands add to a table, in their order, and others that may follow
    (RESULTS, r"(?!)"),  # matches no name: nothing follows
    (("consensus", "probability", "n_answers"), "more_answers"),
    (("class", "class_proba"), r"doubt|p\(.+\)"),
)
MIN_SIDE = 8  # pixels; a smaller grid of numbered columns may be chance


class Features:
    """The columns of a table as a float32 matrix, encoded in the same way for every later table.

    Numbers are used as they are. Dates become days and their parts. Up to 40 categories become one
    column of 0 and 1 each. More categories and free text become 20 components of their n-grams
    (latent semantic analysis). Paths of image files become the pixels of small images. Columns
    without information are ignored.

    Attributes
    ----------
    ignored : list of (str, str)
        The ignored columns, each with the reason.
    notes : list of str
        What the user should know about how columns were read.
    image_shape : (int, int) or None
        The shape of the image in each row if the columns are its pixels.
    file : str or None
        The name of the file of features, if the columns are from one; see `FeatureFile`.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"size": [1.5, 2, 4], "color": ["red", "blue", None], "y": [0, 1, 0]})
    >>> features = Features.fit(frame, label="y")
    >>> features.feature_names
    ['size', 'color = blue', 'color = red', 'color is missing']
    >>> features.transform(pd.DataFrame({"size": [3.0], "color": ["red"]}))
    array([[3., 0., 1., 0.]], dtype=float32)
    """

    def __init__(self, encoders, ignored, notes):
        self._encoders, self.notes = encoders, notes
        self.ignored = [(name, why) for name, why in ignored]
        self.image_shape: tuple | None = None
        self.file: str | None = None
        self._medians: np.ndarray | None = None
        self._gaps: list[int] = []  # imputed columns

    @property
    def used(self) -> list[str]:
        """The columns of the table that are used."""
        return [encoder.column for encoder in self._encoders]

    @property
    def feature_names(self) -> list[str]:
        """The names of the columns of the matrix."""
        names = [name for encoder in self._encoders for name in encoder.names]
        return names + [f"{names[i]} is missing" for i in self._gaps]

    @classmethod
    def fit(cls, frame, *, label=None, columns=None, impute=False, text=()):
        """Return the features of tables like `frame`; see `fit_transform`."""
        return cls.fit_transform(frame, label=label, columns=columns, impute=impute, text=text)[0]

    @classmethod
    def fit_transform(
        cls, frame, *, label=None, groups=None, columns=None, impute=False, image=None, text=()
    ):
        """Return the features of tables like `frame`, and the matrix of `frame`.

        With more than 200,000 rows, a random sample of them decides how columns are encoded. If the
        matrix is large, it is mapped from a temporary file.

        Parameters
        ----------
        frame : DataFrame
            A table, as returned by `read_table`.
        label : str, default=None
            The column of labels, which is not used as a feature.
        groups : str, default=None
            The column of groups, which is not used as a feature.
        columns : list of str, default=None
            The columns to use, even if they look like identifiers. None: all.
        impute : bool, default=False
            Whether to replace missing numbers by the median of their column, and to add a column
            that is 1 where a number was missing. Otherwise missing numbers are NaN.
        image : str, default=None
            A column of paths of image files, relative to the folder of the table. Other columns
            of such paths are recognized if the files exist.
        text : sequence of str, default=()
            Columns of words, even if most of their cells look like numbers, dates or identifiers.
        """
        if len(frame) > MAX_FIT_ROWS:
            rows = sample_rows(len(frame), MAX_FIT_ROWS, random_state=0)
            features, _ = cls.fit_transform(
                frame.iloc[rows], label=label, groups=groups, columns=columns, impute=impute,
                image=image, text=text,
            )  # fmt: skip
            return features, features._transform_blocks(frame)
        names, named = _chosen(frame, label, groups, columns), columns is not None
        for name in text:
            check_columns(names, name, "The table, without labels and groups,")
        results = set() if named else _results(list(frame.columns))
        found = [
            FittedColumn(column.name, why="it is an earlier result of looselabels")
            if column.name in results
            else fit_text(column, named=True)
            if column.name in text
            else fit_images(column, declared=column.name == image, named=named)
            or fit_column(column, named)
            for column in _columns(frame, names)
        ]
        pixels = _pixels(found)
        ignored = [(f.column, f.why) for f in found if f.why and f.column not in pixels]
        found = list(pixels.values()) or [f for f in found if not f.why]
        if not found:
            reasons = "; ".join(f"{short_repr(name)}: {why}" for name, why in ignored[:5])
            hint = ". To use columns anyway, name them: --features, or columns= in Python."
            found_none = f"The table has no usable feature column. {reasons}".strip()
            raise TableError(found_none + hint if reasons else found_none)
        features = cls([f.encoder for f in found], ignored, [f.note for f in found if f.note])
        features.image_shape = 2 * (isqrt(len(pixels)),) if pixels else None
        X = _side_by_side([f.encoded for f in found])
        if impute:
            features._medians = np.nanmedian(X, axis=0)
            features._gaps = np.flatnonzero(np.isnan(X).any(axis=0)).tolist()
            X = features._imputed(X)
        return features, X

    def transform(self, frame) -> np.ndarray:
        """Return the matrix of a table, float32 of shape (n_rows, n_features).

        Additional columns and new categories are ignored.
        """
        names = list(frame.columns)
        missing = [name for name in self.used if name not in names]
        if missing:
            hint = f" It was fitted to the features in {self.file}: pass --features FILE."
            raise TableError(
                f"The table has no column {some_of(missing)}, which the model needs."
                f"{nearest(missing[0], names) if self.file is None else hint}"
            )
        columns = zip(self._encoders, _columns(frame, self.used), strict=True)
        X = _side_by_side([encoder.encode(column) for encoder, column in columns])
        return X if self._medians is None else self._imputed(X)

    def _transform_blocks(self, frame) -> np.ndarray:
        """Return the matrix of a large table, encoded block by block."""
        starts = range(0, len(frame), N_ROWS)
        blocks = (self.transform(frame.iloc[start : start + N_ROWS]) for start in starts)
        return matrix_of(blocks, (len(frame), len(self.feature_names)))

    def _imputed(self, X):
        missing = np.isnan(X)
        return np.hstack([np.where(missing, self._medians, X), missing[:, self._gaps]])

    def save(self, folder) -> None:
        """Write features.json and features.npz into an existing folder."""
        states = [{"kind": encoder.kind, **vars(encoder)} for encoder in self._encoders]
        arrays: dict = {} if self._medians is None else {"medians": self._medians}
        for i, encoder in enumerate(self._encoders):
            arrays |= {f"{name}{i}": states[i].pop(name) for name in encoder.arrays}
        content = {
            "schema": SCHEMA,
            "looselabels": __version__,
            "encoders": states,
            "ignored": self.ignored,
            "notes": self.notes,
            "image_shape": self.image_shape,
            "file": self.file,
            "gaps": self._gaps,
        }
        Path(folder, JSON).write_text(json.dumps(content, allow_nan=False), encoding="utf-8")
        np.savez(Path(folder, ARRAYS), **arrays)

    @classmethod
    def load(cls, folder):
        """Return the features that `save` wrote. The files contain only data; no code is run."""
        with reading(Path(folder, ARRAYS)) as handle:
            check_archive(handle)
            with np.load(handle, allow_pickle=False) as file:
                arrays = dict(file)
        with reading(Path(folder, JSON)) as handle:
            content = json.loads(handle.read())
            found = content.get("schema") if isinstance(content, dict) else content
            if found != SCHEMA:
                raise ValueError(
                    f"it has schema {short_repr(found)}; looselabels {__version__} reads schema "
                    f"{SCHEMA}. A newer version of looselabels may read it."
                )
            encoders = []
            for i, state in enumerate(content["encoders"]):
                kind = (ENCODERS | {Images.kind: Images})[state.pop("kind")]
                encoders.append(kind(**state, **{key: arrays[f"{key}{i}"] for key in kind.arrays}))
            features = cls(encoders, *(content[name] for name in ("ignored", "notes")))
            features.image_shape = content["image_shape"] and tuple(content["image_shape"])
            features.file = content.get("file")
            features._gaps = content["gaps"]
            features._medians = arrays.get("medians")
            features._check()
            return features

    def _check(self):
        """Raise if what was loaded does not fit together."""
        n_features = sum(_checked_width(encoder) for encoder in self._encoders)
        if not n_features or len(set(self.used)) < len(self._encoders):
            raise ValueError(f"its columns are {short_repr(self.used)}.")
        if not set(self._gaps) <= set(range(n_features)) or (self._gaps and self._medians is None):
            raise ValueError(f"gaps are {short_repr(self._gaps)}; it has {n_features} features.")
        if self._medians is not None and not (
            self._medians.shape == (n_features,) and np.isfinite(self._medians).all()
        ):
            raise ValueError(f"medians must be {n_features} finite numbers.")
        if self.image_shape is not None and np.prod(self.image_shape) != n_features:
            raise ValueError(f"image_shape is {self.image_shape}; it has {n_features} features.")


def _checked_width(encoder) -> int:
    """Return the number of features of a loaded encoder, which encodes an empty cell as a test."""
    if not isinstance(encoder, Images):  # they check their sizes themselves, and need pillow
        column = Column(encoder.column, pa.nulls(1, pa.large_string()), None)
        width = encoder.encode(column).size
        if width != len(encoder.names):
            name = short_repr(encoder.column)
            raise ValueError(f"column {name} has {width} features and {len(encoder.names)} names.")
    return len(encoder.names)


# ----------------------------------------------------------------------------------------- columns


def _chosen(frame, label, groups, columns) -> list:
    """Return the names of the columns to use; raise if one of them does not exist."""
    names, roles = list(frame.columns), {groups: "group", label: "label"}
    check_columns(names, label, "The table")
    for name in columns or ():
        check_columns(names, name, "The table")
        if name in roles:
            raise TableError(
                f"Column {short_repr(name)} is the {roles[name]}; it cannot be a feature too."
            )
    return [name for name in (names if columns is None else columns) if name not in roles]


def _results(names) -> set:
    """Return the columns that commands added: to learn from them would confirm their results.

    They stand side by side, with a prefix if the table had such a column (see `add_columns`).
    Those of an audit are also known in another order, if all of them are there.

    >>> names = ["doubt", "size", "class", "class_proba", "looselabels_doubt", "p(cat)", "age"]
    >>> sorted(_results(names))
    ['class', 'class_proba', 'looselabels_doubt', 'p(cat)']
    """
    bare = [re.sub("^(looselabels_)+", "", str(name)) for name in names]
    found: set = set()
    for block, more in ADDED:
        for start in range(len(names)):
            end = start + len(block)
            if tuple(bare[start:end]) == block:
                while end < len(names) and re.fullmatch(more, bare[end]):
                    end += 1
                found.update(names[start:end])
    return found or (set(RESULTS) if set(RESULTS) <= set(names) else set())


def read_groups(frame, column, label) -> list | None:
    """Return the group of each row, from a column that is not the label; None without a column.

    >>> import pandas as pd
    >>> frame = pd.DataFrame({"patient": ["Ann", "Bob", "Ann"], "kind": ["cat", "dog", "cat"]})
    >>> read_groups(frame, "patient", label="kind")
    ['Ann', 'Bob', 'Ann']
    """
    if column is None:
        return None
    check_columns(list(frame.columns), column, "The table")
    if column == label:
        raise TableError(f"Column {short_repr(column)} is the label; it cannot be the group too.")
    is_missing = frame[column].isna().to_numpy()
    if is_missing.any():
        raise TableError(
            f"{row_location(frame, int(is_missing.argmax()))}: column {short_repr(column)} is "
            "empty, but each row needs a group. Give a row that belongs to no other a group of "
            "its own."
        )
    return frame[column].tolist()


def _columns(frame, names):
    """Yield each column as one Arrow array."""
    for name, cells in zip(names, arrow_table(frame[names]).columns, strict=True):
        if is_text(cells.type) or pa.types.is_null(cells.type):
            cells = cells.cast(pa.large_string())  # one array of pa.string() holds at most 2 GiB
        yield Column(name, cells.combine_chunks(), frame)


def _side_by_side(parts) -> np.ndarray:
    parts = [part if part.ndim == 2 else part[:, None] for part in parts]
    X = np.empty((len(parts[0]), sum(part.shape[1] for part in parts)), np.float32)
    return np.concatenate(parts, axis=1, out=X)


def _pixels(found) -> dict:
    """Return the columns that are the pixels of a square image, by name and in order, or {}.

    They are named pixel0…, pixel_0_0… or 1x1…, or are only numbered and hold values from 0 to 255.
    The table has no other usable column.
    """
    pattern = r"(?i)(pixel|pix|px|p|)[ _.-]?(\d+)(?:[ _.,x-](\d+))?"
    numbers = [f for f in found if isinstance(f.encoder, Numbers)]
    matches = [(f, m) for f in numbers if (m := re.fullmatch(pattern, str(f.column)))]
    side = isqrt(len(matches))
    useful = sum(not f.why for f in found)
    if side < MIN_SIDE or side**2 != len(matches) or sum(not f.why for f, _ in matches) < useful:
        return {}
    places = [tuple(int(part) for part in m.groups()[1:] if part) for _, m in matches]
    first = min(places)[0]
    in_line = [(first + i,) for i in range(side**2)]
    in_square = list(product(range(first, first + side), repeat=2))
    if first > 1 or sorted(places) not in (in_line, in_square):
        return {}
    numbered = not any(m[1] or m[3] for _, m in matches)
    if numbered and any(np.nanmin(f.encoded) < 0 or np.nanmax(f.encoded) > 255 for f, _ in matches):
        return {}
    return {matches[i][0].column: matches[i][0] for i in np.lexsort(np.transpose(places)[::-1])}
