"""Columns of a table as numbers: one encoder per kind of column.

A column holds numbers, dates, few categories, or text. `fit_column` decides which; the fields of
an encoder are JSON values and plain arrays, so that it can be saved without pickle.
"""

import re
from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar, NamedTuple

import numpy as np

from looselabels._validation import as_number, short_repr, some_of
from looselabels.command.tables import NUMBER, TableError, is_text, pa, pc, pd, row_location

MIN_ROWS_OF_IDENTIFIER = 20  # in fewer rows, distinct values are no sign of an identifier
MIN_SHARE_OF_IDENTIFIERS = 0.95  # different words; a few rows can be there twice
MIN_ROWS_OF_KIND = 10  # in fewer rows, a word among numbers or dates is no typing error
IS_TEXT = " If the column holds words, name it with --text (in Python: text=)."
WITH_COMMA = r"^[+-]?(\d+(,\d+)?|\d{1,3}(,\d{3})+\.\d*|\d+\.\d+)([eE][+-]?\d+)?$"
MIN_KEPT = 0.99  # of the different numbers must be different in float32 too
AMOUNT = r"^[+-]?([$€£¥]?) ?[+-]?\d[\d.,]* ?"  # a number, before its unit
UNIT = r"([^\W\d_]{0,3}[%°²³/$€£¥]?[^\W\d_]{0,3})$"
CODE = r"\d+[A-Za-z]+"  # such as 1000A, if it is different in each row
MISSING = ("", "na", "n/a", "nan", "null", "none", "?")  # in a column of numbers or dates
BOOL = "(?i)^(true|false)$"
MAX_CATEGORIES = 40
N_HASHES, N_COMPONENTS, N_SAMPLES = 2**14, 20, 10_000  # of a text column
PARTS = ("days", "month", "day", "day_of_week", "hour")  # of a date
DATE_STYLES = (  # month before day where both are possible, as in pandas
    *("%m/%d/%Y", "%d/%m/%Y", "%m-%d-%Y", "%d-%m-%Y", "%d.%m.%Y", "%Y/%m/%d", "%Y.%m.%d"),
    *("%m/%d/%y", "%d/%m/%y", "%d.%m.%y", "%d %b %Y", "%d %B %Y", "%b %d, %Y", "%B %d, %Y"),
    *("%d-%b-%Y", "%d-%b-%y", "%d/%b/%Y"),
)
TIME_STYLES = ("", " %H:%M", " %H:%M:%S", " %H:%M:%S.%f", " %I:%M %p", " %I:%M:%S %p")


class Column(NamedTuple):
    """A column, and the table it is from: an error names the line of a cell."""

    name: str
    cells: Any  # a pyarrow array; text is large_string
    frame: Any

    def error(self, position, reason, hint="") -> TableError:
        """Return the error about one cell, or about the whole column if `position` is None."""
        name = short_repr(self.name)
        if position is None:
            return TableError(f"Column {name} {reason}; it holds {self.cells.type}.")
        value = short_repr(self.cells[position].as_py())
        where = f"{row_location(self.frame, position)}, column {name}"
        return TableError(f"{where}: {value} {reason}. Correct the cell, or empty it.{hint}")


class FittedColumn(NamedTuple):
    """How a column is encoded, or why it is ignored."""

    column: str
    encoder: Any = None
    encoded: Any = None  # an array of one row per cell
    why: str = ""  # the reason to ignore the column, if any
    note: str = ""  # what the user should know about how it was read


def fit_column(column: Column, named: bool) -> FittedColumn:
    """Return the encoder of a column and the encoded cells, or the reason to ignore the column.

    A column that the user `named` is not ignored for looking like an identifier.
    """
    name, cells = column.name, column.cells
    if cells.null_count == len(cells):
        return FittedColumn(name, why="every cell is empty")
    if found := Numbers.fit(column, named) or Dates.fit(column):
        return found
    if not is_text(cells.type):
        return FittedColumn(name, why=f"it holds {cells.type}, which is not supported")
    _check_no_commas(column)
    note = _note_almost_numbers(column) or _note_almost_dates(column) or _note_unit(column)
    found = fit_text(column, named or bool(note))
    return found._replace(note="" if found.why else note)


def fit_text(column: Column, named: bool) -> FittedColumn:
    """Return the same for a column whose cells are words, whatever they look like."""
    column = column._replace(cells=column.cells.cast(pa.large_string()))
    name, cells = column.name, column.cells
    texts = cells.unique().drop_null().to_pylist()
    if len(texts) == 1 and not cells.null_count:
        return FittedColumn(name, why=f"every cell is {short_repr(texts[0])}")
    is_full = len(cells) >= MIN_ROWS_OF_IDENTIFIER and not cells.null_count
    if not named and is_full and len(texts) >= MIN_SHARE_OF_IDENTIFIERS * len(cells):
        words = pc.match_substring_regex(cells, r"^[\w.@:/+\-]{1,64}$")
        if pc.all(words).as_py():
            rows = "every row" if len(texts) == len(cells) else "nearly every row"
            return FittedColumn(name, why=f"{rows} has a different word, like an identifier")
    kind = ENCODERS["categories" if len(texts) <= MAX_CATEGORIES else "text"]
    encoder = kind.fit(column, texts)
    return FittedColumn(name, encoder, encoder.encode(column))


@dataclass
class Encoder:
    """Turns the cells of a column into features; its fields are all that is saved."""

    column: str
    names: list[str]  # of the features
    kind: ClassVar[str]  # as saved in JSON
    arrays: ClassVar[tuple[str, ...]] = ()  # the fields that are saved as arrays


@dataclass
class Numbers(Encoder):
    """Numbers as they are, or relative to an offset; 1 for true; NaN where a cell is missing."""

    offset: float = 0.0  # none in files of 0.1
    kind = "numbers"

    def __post_init__(self):
        _check_offset(self)

    @classmethod
    def fit(cls, column, named) -> FittedColumn | None:
        """Return the fitted column, or None if it does not hold numbers."""
        values = _numbers(column.cells)
        if values is None or np.isnan(values).all():
            return None
        why = ""
        if np.ptp(values) == 0:  # not if cells are missing, which may be informative
            rounded = " up to rounding" if len(column.cells.unique()) > 1 else ""
            why = f"every cell is {short_repr(column.cells[0].as_py())}{rounded}"
        elif not named and _is_identifier(column.name, values):
            why = "every row has a different whole number, like an identifier"
        note = _note_missing(column, np.isnan(values))
        if not why and not named and _are_distinct(values):
            note = (
                f"Column {short_repr(column.name)}: every row has a different whole number. If it "
                "identifies rows, it is no feature: name it with --id, or leave it out."
            )
        encoder = cls(column.name, [column.name], _offset(values))
        return FittedColumn(
            column.name, encoder, _narrow(column, values, encoder.offset), why, note
        )

    def encode(self, column) -> np.ndarray:
        """Return the numbers; NaN where a cell is missing."""
        values = _numbers(column.cells)
        if values is not None:
            return _narrow(column, values, self.offset)
        if not is_text(column.cells.type):
            raise column.error(None, "should hold numbers")
        fits, reason = _look_like_numbers(column.cells), "a number, but its column holds numbers"
        if not pc.any(fits).as_py():
            are_bools = pc.match_substring_regex(_without_missing(column.cells), BOOL)
            if pc.any(are_bools).as_py():
                fits, reason = are_bools, "true or false, but its column holds these"
        raise column.error(pc.index(fits, False).as_py(), f"is not {reason}")


def _numbers(cells):
    """Return a column as float64, or None if it holds neither numbers nor true and false.

    Formats write true and True, and spreadsheets TRUE: all of them are 1.
    """
    types, kind, scale = pa.types, cells.type, 1.0
    if types.is_duration(kind):
        cells, scale = cells.cast(pa.duration("us"), safe=False).cast(pa.int64()), 1e6
    elif types.is_temporal(kind) or types.is_nested(kind):
        return None
    try:
        try:
            numbers = cells.cast(pa.float64(), safe=False)
        except pa.ArrowInvalid:
            cells = _without_missing(cells)
            is_bool = pc.all(pc.match_substring_regex(cells, BOOL)).as_py()
            numbers = (cells.cast(pa.bool_()) if is_bool else cells).cast(pa.float64())
    except pa.ArrowException:
        return None
    return numbers.to_numpy(zero_copy_only=False) / scale


def _without_missing(cells):
    """Return trimmed text; null where it is one of the `MISSING` words."""
    trimmed = pc.utf8_trim_whitespace(cells)
    missing = pc.is_in(pc.utf8_lower(trimmed), value_set=pa.array(MISSING, cells.type))
    return pc.if_else(missing, None, trimmed)


def _look_like_numbers(cells):
    """Return whether each cell is a number; null where it is missing."""
    return pc.match_substring_regex(_without_missing(cells), NUMBER)


def _are_few(n_wrong, n_cells) -> bool:
    """Return whether cells are typing errors: one of them, or one in twenty, is not as the others.

    They would turn all other numbers or dates of the column into words.
    """
    return n_cells >= MIN_ROWS_OF_KIND and n_wrong <= max(1, n_cells // 20)


def _note_almost_numbers(column) -> str:
    """Return a note if most cells are numbers; raise if only a few are not."""
    fits = _look_like_numbers(column.cells)
    n_cells, n_numbers = len(fits) - fits.null_count, pc.sum(fits).as_py() or 0
    position = pc.index(fits, False).as_py()
    if _are_few(n_cells - n_numbers, n_cells):
        reason = f"is not a number, but {n_numbers:,} of {n_cells:,} cells of its column are"
        raise column.error(position, reason, IS_TEXT)
    return _note_most(column, position, n_numbers, n_cells, "numbers")


def _note_most(column, position, n_fitting, n_cells, kind) -> str:
    """Return a note on a column of words if most of its cells are not words; else nothing."""
    if n_cells < MIN_ROWS_OF_KIND or 2 * n_fitting <= n_cells:
        return ""
    value = short_repr(column.cells[position].as_py())
    line = row_location(column.frame, position).rpartition(", ")[2].lower()  # pages name no path
    return (
        f"Column {short_repr(column.name)} was read as words: {n_fitting:,} of {n_cells:,} cells "
        f"are {kind}, but others are not, such as {value} in {line}. Correct or empty these, or "
        "name the column with --text (in Python: text=)."
    )


def _note_unit(column) -> str:
    """Return a note if most cells are numbers with the same unit, as in 12.5 kg or 12.5%."""
    cells = _without_missing(column.cells).drop_null()
    first = cells[0].as_py() if len(cells) else ""
    found = re.match(AMOUNT + UNIT, first)
    if found is None or not any(found.groups()) or len(cells) < MIN_ROWS_OF_KIND:
        return ""
    if re.fullmatch(CODE, first) and len(cells.unique()) == len(cells):
        return ""
    same = pc.match_substring_regex(cells, AMOUNT + re.escape(found[2]) + "$")
    if 2 * pc.sum(same).as_py() <= len(cells):
        return ""
    return (
        f"Column {short_repr(column.name)} was read as words, because its numbers have a unit, as "
        f"in {short_repr(first)}. Write them without it, so that they are read as numbers."
    )


def _check_no_commas(column):
    """Raise if all cells are numbers, and some of them have a comma: as words they are lost."""
    cells = _without_missing(column.cells)
    position = pc.index(pc.match_substring(cells, ","), True).as_py()
    if position < 0 or len(cells) - cells.null_count < MIN_ROWS_OF_KIND:
        return
    if pc.all(pc.match_substring_regex(cells, WITH_COMMA)).as_py():
        reason = "has a comma, but its column looks like numbers; write them without, as in 1234.5"
        raise column.error(position, reason, IS_TEXT)


def _note_almost_dates(column) -> str:
    """Return a note if most cells are dates of one format; raise if only a few are not."""
    codes, texts = _distinct(_without_missing(column.cells))
    is_wrong = {
        style: np.append(np.isnat(_parsed(texts, style)), False)[codes]  # code -1: missing
        for text in texts[:2]  # the first may be the wrong one
        for style in _date_styles(text)
    }
    style = min(is_wrong, key=lambda style: is_wrong[style].sum(), default=None)
    if style is None:
        return ""
    n_cells, n_wrong = np.count_nonzero(codes >= 0), is_wrong[style].sum()
    position = int(is_wrong[style].argmax())
    if _are_few(n_wrong, n_cells):
        reason = f"is not a date like {n_cells - n_wrong:,} of {n_cells:,} cells of its column"
        raise column.error(position, f"{reason} ({style})", IS_TEXT)
    return _note_most(column, position, n_cells - n_wrong, n_cells, f"dates ({style})")


def _note_missing(column, missing) -> str:
    """Return a sentence on the words that were read as missing values."""
    words = column.cells.filter(pa.array(missing)).drop_null()
    if not is_text(words.type) or not len(words):
        return ""
    cells = f"{len(words)} cell{'s' if len(words) > 1 else ''}"
    shown = some_of(words.unique().to_pylist())
    return f"Column {short_repr(column.name)}: {cells} ({shown}) read as missing."


def _offset(values) -> float:
    """Return what to subtract from numbers before they become float32, which has 24 bits.

    It is 0 unless numbers become equal that are not, such as times in seconds since 1970.

    >>> _offset(np.array([1.0, 2.5, np.nan])), _offset(1.7e9 + np.arange(5))
    (0.0, 1700000002.0)
    """
    distinct = np.unique(values[np.isfinite(values)])
    n_kept = _n_distinct_narrow(distinct)
    if n_kept >= MIN_KEPT * len(distinct):
        return 0.0
    middle = float(np.median(distinct))
    return middle if _n_distinct_narrow(distinct - middle) > n_kept else 0.0


def _n_distinct_narrow(values) -> int:
    with np.errstate(over="ignore"):
        return len(np.unique(values.astype(np.float32)))


def _check_offset(encoder):
    """Raise if the offset of a loaded encoder is not a finite number."""
    if not np.isfinite(as_number(encoder.offset)):
        name = short_repr(encoder.column)
        raise ValueError(f"the offset of {name} is {short_repr(encoder.offset)}, not a number.")


def _narrow(column, values, offset) -> np.ndarray:
    """Return values relative to the offset, in float32; raise if one of them is infinite."""
    with np.errstate(over="ignore"):
        narrow = (values - offset).astype(np.float32)
    infinite = np.isinf(narrow)
    if infinite.any():
        raise column.error(int(infinite.argmax()), "is not a finite number (in single precision)")
    return narrow


def _are_distinct(values) -> bool:
    """Return whether numbers are whole and all different, and enough for that to mean something."""
    if len(values) < MIN_ROWS_OF_IDENTIFIER or not (values == np.floor(values)).all():
        return False
    return bool((np.diff(np.sort(values)) > 0).all())


def _is_identifier(name, values) -> bool:
    """Return whether numbers look like an identifier of rows.

    They are whole and distinct, and they are sorted, nearly without gaps, or named like an id.
    """
    if not _are_distinct(values):
        return False
    ordered = np.sort(values)
    called = re.search(r"(?i)(^|[\W_])(id|idx|index|key|nr|no)$|(?-i:[a-z]I[dD]$)", str(name))
    dense = ordered[-1] - ordered[0] < 2 * len(values)
    return bool(called) or dense or bool((ordered == values).all())


@dataclass
class Dates(Encoder):
    """Days since 1970, and the month, day, day of the week and hour if they vary."""

    format: str | None  # of dates that are text
    parts: list[str]
    offset: float = 0.0  # of the days; none in files of 0.1
    kind = "dates"

    def __post_init__(self):
        _check_offset(self)

    @classmethod
    def fit(cls, column) -> FittedColumn | None:
        """Return the fitted column, or None if it does not hold dates."""
        name, kind, style = column.name, column.cells.type, None
        if is_text(kind):
            style = _date_format(_without_missing(column.cells).unique().drop_null().to_pylist())
        if style is None and not (pa.types.is_timestamp(kind) or pa.types.is_date(kind)):
            return None
        encoder = cls(name, [], style, list(PARTS))
        known = encoder._read(column)
        encoder.offset = _offset(known[:, 0])
        encoded = encoder._relative(known)
        note = f"Column {short_repr(name)}: read as dates, {style}. " if style else ""
        note += _note_missing(column, np.isnan(encoded[:, 0]))
        varies = [np.ptp(part) != 0 for part in encoded.T]
        encoder.parts = [part for part, does in zip(PARTS, varies, strict=True) if does]
        encoder.names = [f"{name} {part}" for part in encoder.parts]
        why = "" if encoder.parts else f"every cell is {column.cells[0].as_py()}"
        return FittedColumn(name, encoder, encoded[:, varies], why, note.strip())

    def encode(self, column) -> np.ndarray:
        """Return the days relative to the offset and the parts of each date; NaN for missing."""
        return self._relative(self._read(column))

    def _relative(self, known) -> np.ndarray:
        is_days = np.array([part == "days" for part in self.parts], dtype=bool)
        return (known - self.offset * is_days).astype(np.float32)

    def _read(self, column) -> np.ndarray:
        """Return the days since 1970 and the parts of each date."""
        if is_text(column.cells.type):
            codes, texts = _distinct(_without_missing(column.cells))
            dates = _parsed(texts, self.format or "ISO8601")
            if np.isnat(dates).any():
                position = int(np.isin(codes, np.flatnonzero(np.isnat(dates))).argmax())
                reason = f"is not a date like the others of its column ({self.format})"
                raise column.error(position, reason)
            dates = np.append(dates, np.datetime64("NaT", "us"))[codes]  # the last is for code -1
        elif pa.types.is_timestamp(column.cells.type) or pa.types.is_date(column.cells.type):
            times = column.cells.cast(pa.timestamp("us"), safe=False)
            dates = times.to_numpy(zero_copy_only=False)
        else:
            raise column.error(None, "should hold dates")
        known = {"days": (dates - np.datetime64(0, "us")) / np.timedelta64(1, "D")}
        known |= {part: getattr(pd.Series(dates).dt, part) for part in PARTS[1:]}
        return np.column_stack([known[part] for part in self.parts]).astype(float)


def _parsed(texts, style) -> np.ndarray:
    """Return dates; NaT where a text does not have this format."""
    dates = pd.to_datetime(pd.Series(texts, dtype=object), format=style, errors="coerce", utc=True)
    return dates.dt.tz_localize(None).to_numpy().astype("M8[us]")


def _date_format(texts) -> str | None:
    """Return the format that fits all dates: 13/1/2000 shows which number is the day."""
    for style in _date_styles(texts[0]) if texts else []:
        if not any(np.isnat(_parsed(part, style)).any() for part in (texts[:50], texts)):
            return style
    return None


def _date_styles(text) -> list[str]:
    """Return the formats in which a text is a date."""
    if not re.search(r"\d", text):
        return []
    styles = ["ISO8601"] if re.match(r"\d{4}-\d\d", text) else []
    return styles + [d + t for d in DATE_STYLES for t in TIME_STYLES if _is_date(text, d + t)]


def _is_date(text, style) -> bool:
    try:
        return bool(datetime.strptime(text, style))
    except ValueError:
        return False


def _distinct(cells):
    """Return the position of each cell among the distinct texts (-1: missing), and these texts."""
    encoded = cells.cast(pa.large_string()).dictionary_encode()
    codes = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    return codes, encoded.dictionary.to_pylist()


@dataclass
class Categories(Encoder):
    """A feature per category: 1 for its cells, otherwise 0."""

    values: list[str | None]  # one per feature; None is a missing cell
    kind = "categories"

    @classmethod
    def fit(cls, column, texts):
        """Return the encoder of a column with these distinct `texts`."""
        name, values = column.name, sorted(texts)
        names = [f"{name} = {value}" for value in values]
        if column.cells.null_count:
            return cls(name, [*names, f"{name} is missing"], [*values, None])
        start = len(values) == 2  # the second of two categories is 1 minus the first
        return cls(name, names[start:], values[start:])

    def encode(self, column) -> np.ndarray:
        """Return 1 in the column of a cell's category; only zeros for a new category.

        Another file may spell True as true or TRUE.
        """
        codes, texts = _distinct(column.cells)
        place = {value: i for i, value in enumerate(self.values)}
        bools = {v.lower(): i for v, i in place.items() if v is not None and re.match(BOOL, v)}
        new = len(place)
        rows = [place.get(text, bools.get(str(text).lower(), new)) for text in (*texts, None)]
        return np.eye(len(place) + 1, len(place), dtype=np.float32)[rows][codes]


@dataclass
class Text(Encoder):
    """Components of the n-grams of text (latent semantic analysis)."""

    analyzer: str
    idf: np.ndarray
    components: np.ndarray
    kind, arrays = "text", ("idf", "components")

    def __post_init__(self):
        if {self.idf.shape, self.components.shape[1:]} != {(N_HASHES,)}:
            name = short_repr(self.column)
            raise ValueError(f"the arrays of the text column {name} have the wrong shape.")
        if self.analyzer not in ("word", "char_wb"):
            raise ValueError(f"analyzer is {short_repr(self.analyzer)}; it is word or char_wb.")
        if not (np.isfinite(self.idf).all() and np.isfinite(self.components).all()):
            raise ValueError(f"the arrays of {short_repr(self.column)} must be finite numbers.")

    @classmethod
    def fit(cls, column, texts):
        """Return the encoder of a column with these distinct `texts`; a sample of them is used."""
        from sklearn.utils.extmath import randomized_svd
        from threadpoolctl import threadpool_limits

        chosen = np.random.default_rng(0).permutation(len(texts))[:N_SAMPLES]
        sample = [texts[i] for i in chosen]
        words = np.mean([text.count(" ") for text in sample])
        analyzer = "word" if words > 6 else "char_wb"
        counts = _counts(sample, analyzer)
        seen = np.bincount(counts.indices, minlength=N_HASHES)
        idf = np.log((1 + len(sample)) / (1 + seen)).astype(np.float32) + 1
        with threadpool_limits(1):  # threads slow down products with so few columns
            svd = randomized_svd(_weighted(counts, idf), N_COMPONENTS, n_iter=3, random_state=0)
        names = [f"{column.name} #{i + 1}" for i in range(len(svd[2]))]
        return cls(column.name, names, analyzer, idf, svd[2])

    def encode(self, column) -> np.ndarray:
        """Return the components of each text; 0 where a cell is missing."""
        codes, texts = _distinct(column.cells)
        encoded = np.zeros((len(texts) + 1, len(self.components)), np.float32)  # the last: missing
        for start in range(0, len(texts), N_SAMPLES):
            counts = _counts(texts[start : start + N_SAMPLES], self.analyzer)
            block = _weighted(counts, self.idf) @ self.components.T
            encoded[start : start + len(block)] = block
        return encoded[codes]


def _counts(texts, analyzer):
    """Return how often each n-gram occurs; hashing needs no vocabulary."""
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
    """Return rows of unit length; rare n-grams have higher weights."""
    from sklearn.preprocessing import normalize

    counts.data *= idf[counts.indices]
    return normalize(counts, copy=False)


ENCODERS: dict[str, Any] = {kind.kind: kind for kind in (Numbers, Dates, Categories, Text)}
