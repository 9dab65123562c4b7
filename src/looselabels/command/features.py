"""Columns of a table as a float32 matrix, the same way for every table to come.

Why this does not stand on skrub's TableVectorizer: to save one takes pickle, or the word that 25
private types, several of them functions, are to be trusted; here a model is JSON and plain arrays.
"""

import json
import re
from dataclasses import dataclass
from datetime import datetime
from itertools import product
from math import isqrt
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np

from looselabels import __version__
from looselabels._validation import short_repr, some_of
from looselabels.command import tables
from looselabels.command.tables import TableError, nearest, pa, pc, pd

SCHEMA = 1
JSON, ARRAYS = "features.json", "features.npz"
FEW = 20  # rows; with fewer, a different value in each means nothing
MISSING = ("", "na", "n/a", "nan", "null", "none", "?")  # in a column of numbers or dates
MOST_CATEGORIES = 40
N_HASHES, N_COMPONENTS, N_SAMPLES = 2**14, 20, 10_000  # of a text column
PARTS = ("days", "month", "day", "day_of_week", "hour")  # of a date
DATE_STYLES = (  # month before day where both would do, as pandas reads it
    *("%m/%d/%Y", "%d/%m/%Y", "%m-%d-%Y", "%d-%m-%Y", "%d.%m.%Y", "%Y/%m/%d", "%Y.%m.%d"),
    *("%m/%d/%y", "%d/%m/%y", "%d.%m.%y", "%d %b %Y", "%d %B %Y", "%b %d, %Y", "%B %d, %Y"),
    *("%d-%b-%Y", "%d-%b-%y", "%d/%b/%Y"),
)
TIME_STYLES = ("", " %H:%M", " %H:%M:%S", " %H:%M:%S.%f", " %I:%M %p", " %I:%M:%S %p")


class Features:
    """The columns of a table as a float32 matrix, the same way for every table to come.

    Numbers stay numbers; dates become days and their parts; up to 40 categories become a column of
    0 and 1 each; more categories and free text become 20 components of their n-grams (latent
    semantic analysis). Columns that can teach nothing are ignored, and it is said why.

    Attributes
    ----------
    ignored : list of (str, str)
        The columns that none come from, and why.
    notes : list of str
        What a user should know of how columns were read.
    has_missing : bool
        Whether the matrix of the table that it was fitted to has NaN.
    image_shape : (int, int) or None
        The shape of the image that a row is, where the columns are the pixels of one.

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
        self.has_missing, self._medians, self._gaps = False, None, []

    @property
    def used(self) -> list[str]:
        """The columns that features come from."""
        return [encoder.column for encoder in self._encoders]

    @property
    def feature_names(self) -> list[str]:
        """The columns of the matrix."""
        names = [name for encoder in self._encoders for name in encoder.names]
        return names + [f"{names[i]} is missing" for i in self._gaps]

    @classmethod
    def fit(cls, frame, *, label=None, columns=None, impute=False):
        """Return features for tables like `frame`; see `fit_transform`."""
        return cls.fit_transform(frame, label=label, columns=columns, impute=impute)[0]

    @classmethod
    def fit_transform(cls, frame, *, label=None, columns=None, impute=False):
        """Return features for tables like `frame`, and the matrix of `frame`.

        Parameters
        ----------
        frame : DataFrame
            As `read_table` returns it.
        label : str, default=None
            A column that is no feature.
        columns : list of str, default=None
            The columns to use, even if they look like identifiers; by default all.
        impute : bool, default=False
            Whether a missing number becomes the median of its column, and a further column says
            that it was missing; otherwise it is NaN.
        """
        chosen = _columns(frame, _chosen(frame, label, columns))
        found = [_fitted(column, columns is not None) for column in chosen]
        pixels = _pixels(found)
        ignored = [(f.column, f.why) for f in found if f.why and f.column not in pixels]
        found = list(pixels.values()) or [f for f in found if not f.why]
        if not found:
            reasons = "; ".join(f"{short_repr(name)}: {why}" for name, why in ignored[:5])
            hint = ". Name columns to use them all the same (--features)." if reasons else ""
            raise TableError(f"No column is left to learn from. {reasons}{hint}".strip())
        features = cls([f.encoder for f in found], ignored, [f.note for f in found if f.note])
        features.image_shape = 2 * (isqrt(len(pixels)),) if pixels else None
        X = _side_by_side([f.encoded for f in found])
        if impute:
            features._medians = np.nanmedian(X, axis=0)
            features._gaps = np.flatnonzero(np.isnan(X).any(axis=0)).tolist()
            X = features._imputed(X)
        features.has_missing = bool(np.isnan(X).any())
        return features, X

    def transform(self, frame) -> np.ndarray:
        """Return the matrix of a table, float32 of shape (n_rows, n_features).

        Further columns are ignored, and so are categories that are new.
        """
        names = list(frame.columns)
        missing = [name for name in self.used if name not in names]
        if missing:
            raise TableError(
                f"The table has no column {some_of(missing)}, which the features come from."
                f"{nearest(missing[0], names)}"
            )
        columns = zip(self._encoders, _columns(frame, self.used), strict=True)
        X = _side_by_side([encoder.encode(column) for encoder, column in columns])
        return X if self._medians is None else self._imputed(X)

    def _imputed(self, X):
        missing = np.isnan(X)
        return np.hstack([np.where(missing, self._medians, X), missing[:, self._gaps]])

    def save(self, folder) -> None:
        """Write features.json and features.npz into a folder that is there."""
        from looselabels.learning.persistence import _writing

        states = [{"kind": encoder.kind, **vars(encoder)} for encoder in self._encoders]
        arrays = {} if self._medians is None else {"medians": self._medians}
        for i, encoder in enumerate(self._encoders):
            arrays |= {f"{name}{i}": states[i].pop(name) for name in encoder.arrays}
        content = {
            "schema": SCHEMA,
            "looselabels": __version__,
            "encoders": states,
            "ignored": self.ignored,
            "notes": self.notes,
            "image_shape": self.image_shape,
            "has_missing": self.has_missing,
            "gaps": self._gaps,
        }
        with _writing(Path(folder, JSON)) as handle:
            handle.write(json.dumps(content, allow_nan=False).encode())
        with _writing(Path(folder, ARRAYS)) as handle:
            np.savez(handle, **arrays)

    @classmethod
    def load(cls, folder):
        """Return the features that `save` wrote; the files hold data only, nothing runs."""
        from looselabels.learning.persistence import _check_archive, _reading

        with _reading(Path(folder, ARRAYS)) as handle:
            _check_archive(handle)
            with np.load(handle, allow_pickle=False) as file:
                arrays = dict(file)
        with _reading(Path(folder, JSON)) as handle:
            content = json.loads(handle.read())
            found = content.get("schema") if isinstance(content, dict) else content
            if found != SCHEMA:
                raise ValueError(
                    f"it has schema {short_repr(found)}; looselabels {__version__} reads schema "
                    f"{SCHEMA}. A newer looselabels may read it."
                )
            encoders = []
            for i, state in enumerate(content["encoders"]):
                kind = KINDS[state.pop("kind")]
                encoders.append(kind(**state, **{key: arrays[f"{key}{i}"] for key in kind.arrays}))
            features = cls(encoders, *(content[name] for name in ("ignored", "notes")))
            features.image_shape = content["image_shape"] and tuple(content["image_shape"])
            features.has_missing, features._gaps = content["has_missing"], content["gaps"]
            features._medians = arrays.get("medians")
            return features


# ----------------------------------------------------------------------------------------- columns


class _Column(NamedTuple):
    """A column, and the frame that it is of, to say where a cell is that cannot be used."""

    name: str
    cells: Any  # of pyarrow; text is large_string
    frame: Any

    def misfit(self, position, reason) -> TableError:
        """Return what is wrong with a cell, or, without a position, with the column."""
        name = short_repr(self.name)
        if position is None:
            return TableError(f"Column {name} {reason}; now it holds {self.cells.type}.")
        value = short_repr(self.cells[position].as_py())
        where = f"{tables._place(self.frame, position)}, column {name}"
        return TableError(f"{where}: {value} {reason}. Correct the cell, or empty it.")


class _Found(NamedTuple):
    """What is found of a column: how it is encoded, why it should not be, what to tell the user."""

    column: str
    encoder: Any = None
    encoded: Any = None
    why: str = ""
    note: str = ""


def _chosen(frame, label, columns) -> list:
    names = list(frame.columns)
    tables._check_columns(names, label, "The table")
    for name in columns or ():
        tables._check_columns(names, name, "The table")
        if name == label:
            raise TableError(f"Column {short_repr(name)} is the label; it cannot be a feature too.")
    return [name for name in (names if columns is None else columns) if name != label]


def _columns(frame, names):
    """Yield the columns, each in one piece."""
    for name, cells in zip(names, tables._arrow(frame[names]).columns, strict=True):
        if tables._is_text(cells.type) or pa.types.is_null(cells.type):
            cells = cells.cast(pa.large_string())  # in one piece it may be over 2 GiB
        yield _Column(name, cells.combine_chunks(), frame)


def _fitted(column, named) -> _Found:
    """Return how a column is encoded; one that the user `named` may be an identifier."""
    name, cells = column.name, column.cells
    if cells.null_count == len(cells):
        return _Found(name, why="every cell is empty")
    if found := _Numbers.fit(column, named) or _Dates.fit(column):
        return found
    if not tables._is_text(cells.type):
        return _Found(name, why=f"it holds {cells.type}, which is not read")
    texts = cells.unique().drop_null().to_pylist()
    if len(texts) == 1 and not cells.null_count:
        return _Found(name, why=f"every cell is {short_repr(texts[0])}")
    if not named and FEW <= len(cells) == len(texts):
        words = pc.match_substring_regex(cells, r"^[\w.@:/+\-]{1,64}$")
        if pc.all(words).as_py():
            return _Found(name, why="every cell is different and one word, like an identifier")
    kind = KINDS["categories" if len(texts) <= MOST_CATEGORIES else "text"]
    encoder = kind.fit(column, texts)
    return _Found(name, encoder, encoder.encode(column))


def _side_by_side(parts) -> np.ndarray:
    parts = [part if part.ndim == 2 else part[:, None] for part in parts]
    X = np.empty((len(parts[0]), sum(part.shape[1] for part in parts)), np.float32)
    return np.concatenate(parts, axis=1, out=X)


def _pixels(found) -> dict:
    """Return the columns of a square image by name, in its order; none where there is none.

    They are called pixel0…, pixel_0_0… or 1x1…, or only numbered and go from 0 to 255, and are all
    that can be learned from.
    """
    pattern = r"(?i)(pixel|pix|px|p|)[ _.-]?(\d+)(?:[ _.,x-](\d+))?"
    numbers = [f for f in found if isinstance(f.encoder, _Numbers)]
    matches = [(f, m) for f in numbers if (m := re.fullmatch(pattern, str(f.column)))]
    side = isqrt(len(matches))
    useful = sum(not f.why for f in found)
    if side < 8 or side**2 != len(matches) or sum(not f.why for f, _ in matches) < useful:
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


# ------------------------------------------------------------------------------- kinds of columns


@dataclass
class _Encoder:
    """How a column becomes features; its fields are all that is saved of it."""

    column: str
    names: list[str]  # of the features
    kind: ClassVar[str]  # its name in JSON
    arrays: ClassVar[tuple[str, ...]] = ()  # the fields that are not in JSON


@dataclass
class _Numbers(_Encoder):
    kind = "numbers"

    @classmethod
    def fit(cls, column, named) -> _Found | None:
        """Return a column of numbers, if it is one."""
        values = _numbers(column.cells)
        if values is None or np.isnan(values).all():
            return None
        why = ""
        if np.ptp(values) == 0:  # NaN where cells are missing, and which ones are may teach
            why = f"every cell is {short_repr(column.cells[0].as_py())}"
        elif not named and _number_rows(column.name, values):
            why = "its whole numbers tell rows apart, like an identifier"
        note = _note_missing(column, np.isnan(values))
        encoder = cls(column.name, [column.name])
        return _Found(column.name, encoder, _narrow(column, values), why, note)

    def encode(self, column) -> np.ndarray:
        """Return the numbers, NaN where they are missing."""
        values = _numbers(column.cells)
        if values is not None:
            return _narrow(column, values)
        if not tables._is_text(column.cells.type):
            raise column.misfit(None, "should hold numbers")
        fits = pc.match_substring_regex(_without_missing(column.cells), tables.NUMBER)
        position = pc.index(fits, False).as_py()
        raise column.misfit(position, "is no number, as its column should hold")


def _numbers(cells):
    """Return a column as float64, None if it is none."""
    types, kind, scale = pa.types, cells.type, 1.0
    if types.is_duration(kind):
        cells, scale = cells.cast(pa.duration("us"), safe=False).cast(pa.int64()), 1e6
    elif types.is_temporal(kind) or types.is_nested(kind):
        return None
    try:
        try:
            numbers = cells.cast(pa.float64(), safe=False)
        except pa.ArrowInvalid:
            numbers = _without_missing(cells).cast(pa.float64())
    except pa.ArrowException:
        return None
    return numbers.to_numpy(zero_copy_only=False) / scale


def _without_missing(cells):
    """Return trimmed text, null where it is a word for missing."""
    trimmed = pc.utf8_trim_whitespace(cells)
    missing = pc.is_in(pc.utf8_lower(trimmed), value_set=pa.array(MISSING, cells.type))
    return pc.if_else(missing, None, trimmed)


def _note_missing(column, missing) -> str:
    """Return which words were taken as `missing`."""
    words = column.cells.filter(pa.array(missing)).drop_null()
    if not tables._is_text(words.type) or not len(words):
        return ""
    cells = f"{len(words)} cell{'s' if len(words) > 1 else ''}"
    shown = some_of(words.unique().to_pylist())
    return f"Column {short_repr(column.name)}: {cells} ({shown}) taken as missing."


def _narrow(column, values) -> np.ndarray:
    with np.errstate(over="ignore"):
        narrow = values.astype(np.float32)
    infinite = np.isinf(narrow)
    if infinite.any():
        raise column.misfit(int(infinite.argmax()), "is no finite number (of single precision)")
    return narrow


def _number_rows(name, values) -> bool:
    """Return whether whole numbers, all different, are sorted, without gaps, or called an id."""
    if len(values) < FEW or not (values == np.floor(values)).all():
        return False
    ordered = np.sort(values)
    if not (np.diff(ordered) > 0).all():
        return False
    called = re.search(r"(?i)(^|[\W_])(id|idx|index|key|nr|no)$|(?-i:[a-z]I[dD]$)", str(name))
    dense = ordered[-1] - ordered[0] < 2 * len(values)
    return bool(called) or dense or bool((ordered == values).all())


@dataclass
class _Dates(_Encoder):
    format: str | None  # of text
    parts: list[str]
    kind = "dates"

    @classmethod
    def fit(cls, column) -> _Found | None:
        """Return a column of dates or times, if it is one."""
        name, kind, style = column.name, column.cells.type, None
        if tables._is_text(kind):
            style = _date_format(_without_missing(column.cells).unique().drop_null().to_pylist())
        if style is None and not (pa.types.is_timestamp(kind) or pa.types.is_date(kind)):
            return None
        encoder = cls(name, [], style, list(PARTS))
        encoded = encoder.encode(column)
        note = f"Column {short_repr(name)}: dates, read as {style}. " if style else ""
        note += _note_missing(column, np.isnan(encoded[:, 0]))
        varies = [np.ptp(part) != 0 for part in encoded.T]
        encoder.parts = [part for part, does in zip(PARTS, varies, strict=True) if does]
        encoder.names = [f"{name} {part}" for part in encoder.parts]
        why = "" if encoder.parts else f"every cell is {column.cells[0].as_py()}"
        return _Found(name, encoder, encoded[:, varies], why, note.strip())

    def encode(self, column) -> np.ndarray:
        """Return the days since 1970 and the parts of each date."""
        if tables._is_text(column.cells.type):
            codes, texts = _distinct(_without_missing(column.cells))
            dates = _parsed(texts, self.format or "ISO8601")
            if np.isnat(dates).any():
                position = int(np.isin(codes, np.flatnonzero(np.isnat(dates))).argmax())
                reason = f"is no date as its column should hold ({self.format})"
                raise column.misfit(position, reason)
            dates = np.append(dates, np.datetime64("NaT", "us"))[codes]  # the last: code -1
        elif pa.types.is_timestamp(column.cells.type) or pa.types.is_date(column.cells.type):
            times = column.cells.cast(pa.timestamp("us"), safe=False)
            dates = times.to_numpy(zero_copy_only=False)
        else:
            raise column.misfit(None, "should hold dates")
        known = {"days": (dates - np.datetime64(0, "us")) / np.timedelta64(1, "D")}
        known |= {part: getattr(pd.Series(dates).dt, part) for part in PARTS[1:]}
        return np.column_stack([known[part] for part in self.parts]).astype(np.float32)


def _parsed(texts, style) -> np.ndarray:
    """Return dates, NaT where a text is none of this style."""
    dates = pd.to_datetime(pd.Series(texts, dtype=object), format=style, errors="coerce", utc=True)
    return dates.dt.tz_localize(None).to_numpy().astype("M8[us]")


def _date_format(texts) -> str | None:
    """Return the one format of all dates; of 1/2/2000, day and month are as the others show."""
    if not texts or not re.search(r"\d", texts[0]):
        return None
    styles = ["ISO8601"] if re.match(r"\d{4}-\d\d", texts[0]) else []
    styles += [d + t for d in DATE_STYLES for t in TIME_STYLES if _is_date(texts[0], d + t)]
    for style in styles:
        if not any(np.isnat(_parsed(part, style)).any() for part in (texts[:50], texts)):
            return style
    return None


def _is_date(text, style) -> bool:
    try:
        return bool(datetime.strptime(text, style))
    except ValueError:
        return False


def _distinct(cells):
    """Return which of the distinct texts each cell is, -1 where missing, and these texts."""
    encoded = cells.cast(pa.large_string()).dictionary_encode()
    codes = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    return codes, encoded.dictionary.to_pylist()


@dataclass
class _Categories(_Encoder):
    values: list[str | None]  # one a feature; None is a missing cell
    kind = "categories"

    @classmethod
    def fit(cls, column, texts):
        """Return an encoder of few categories."""
        name, values = column.name, sorted(texts)
        names = [f"{name} = {value}" for value in values]
        if column.cells.null_count:
            return cls(name, [*names, f"{name} is missing"], [*values, None])
        start = len(values) == 2  # one of two says it all
        return cls(name, names[start:], values[start:])

    def encode(self, column) -> np.ndarray:
        """Return 1 in the column of a cell's category; a new category has none."""
        codes, texts = _distinct(column.cells)
        place = {value: i for i, value in enumerate(self.values)}
        rows = [place.get(text, len(place)) for text in (*texts, None)]
        return np.eye(len(place) + 1, len(place), dtype=np.float32)[rows][codes]


@dataclass
class _Text(_Encoder):
    analyzer: str
    idf: np.ndarray
    components: np.ndarray
    kind, arrays = "text", ("idf", "components")

    def __post_init__(self):
        if {self.idf.shape, self.components.shape[1:]} != {(N_HASHES,)}:
            raise ValueError(f"{ARRAYS} has other components of {short_repr(self.column)}.")

    @classmethod
    def fit(cls, column, texts):
        """Return an encoder of text; the components are those of a sample of its values."""
        from sklearn.utils.extmath import randomized_svd
        from threadpoolctl import threadpool_limits

        chosen = np.random.default_rng(0).permutation(len(texts))[:N_SAMPLES]
        sample = [texts[i] for i in chosen]
        words = np.mean([text.count(" ") for text in sample])
        analyzer = "word" if words > 6 else "char_wb"
        counts = _counts(sample, analyzer)
        seen = np.bincount(counts.indices, minlength=N_HASHES)
        idf = np.log((1 + len(sample)) / (1 + seen)).astype(np.float32) + 1
        with threadpool_limits(1):  # so narrow a matrix loses time to threads
            svd = randomized_svd(_weighted(counts, idf), N_COMPONENTS, n_iter=3, random_state=0)
        names = [f"{column.name} #{i + 1}" for i in range(len(svd[2]))]
        return cls(column.name, names, analyzer, idf, svd[2])

    def encode(self, column) -> np.ndarray:
        """Return the components of each text, 0 where it is missing."""
        codes, texts = _distinct(column.cells)
        encoded = np.zeros((len(texts) + 1, len(self.components)), np.float32)  # the last: missing
        for start in range(0, len(texts), N_SAMPLES):
            counts = _counts(texts[start : start + N_SAMPLES], self.analyzer)
            block = _weighted(counts, self.idf) @ self.components.T
            encoded[start : start + len(block)] = block
        return encoded[codes]


def _counts(texts, analyzer):
    """Return how often each n-gram occurs; hashes need no vocabulary."""
    from sklearn.feature_extraction.text import HashingVectorizer

    return HashingVectorizer(
        analyzer=analyzer,
        ngram_range=(3, 4) if analyzer == "char_wb" else (1, 1),
        n_features=N_HASHES,
        alternate_sign=False,
        norm=None,
        dtype=np.float32,
    ).transform(texts)


def _weighted(counts, idf):
    """Return rows of length 1, each n-gram weighted by how rare it is."""
    from sklearn.preprocessing import normalize

    counts.data *= idf[counts.indices]
    return normalize(counts, copy=False)


KINDS: dict[str, Any] = {kind.kind: kind for kind in (_Numbers, _Dates, _Categories, _Text)}
