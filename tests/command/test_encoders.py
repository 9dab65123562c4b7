"""One encoder per kind of column: numbers, dates, categories, text."""

import re

import numpy as np
import pytest

from looselabels.command.encoders import MAX_CATEGORIES, N_COMPONENTS, Column, fit_column
from looselabels.command.features import Features
from looselabels.command.tables import TableError, read_blocks, read_table
from tests.command.calls import pa, pd, pq


def column(*cells):
    """Return a column of text, as it is read from CSV."""
    return Column("c", pa.array(cells, pa.large_string()), pd.DataFrame({"c": cells}))


@pytest.mark.parametrize(
    ("cells", "kind"),
    [
        (["1", "2.5", None], "numbers"),
        (["2024-01-31", "2024-02-01"], "dates"),
        (["red", "blue", "red"], "categories"),
        ([f"color number {i % 50}" for i in range(90)], "text"),
    ],
)
def test_the_cells_decide_the_kind_of_a_column(cells, kind):
    fitted = fit_column(column(*cells), named=False)
    assert fitted.encoder.kind == kind
    assert fitted.encoded.shape[0] == len(cells)
    np.testing.assert_array_equal(fitted.encoder.encode(column(*cells)), fitted.encoded)


def test_many_categories_become_components_of_text():
    few, many = ([f"value {i % n}" for i in range(120)] for n in (MAX_CATEGORIES, 41))
    assert fit_column(column(*few), named=False).encoded.shape[1] == MAX_CATEGORIES
    assert fit_column(column(*many), named=False).encoded.shape[1] == N_COMPONENTS


@pytest.mark.parametrize("value", ["inf", "-Infinity", "1e400", "1e39"])
def test_numbers_that_are_not_finite_are_refused_by_line(value, file):
    path = file(f'x,text\n1,"two\nlines"\n2,b\n\n{value},c\n')
    pattern = rf"data.csv, line 6, column 'x': '{value}' is not a finite number"
    with pytest.raises(TableError, match=pattern):
        Features.fit(read_table(path))
    with pytest.raises(TableError, match=pattern):
        Features.fit(read_table(path).iloc[[0, 2]])
    with pytest.raises(TableError, match="Row 3, column 'x': inf"):
        Features.fit(pd.DataFrame({"x": [1, 2, np.inf]}))
    pq.write_table(pa.table({"x": [1, 2, np.inf]}), path)
    with pytest.raises(TableError, match=r"data\.csv, row 3, column 'x': inf"):
        Features.fit(read_table(path))


def test_a_cell_that_does_not_fit_its_column_is_refused_by_line(file):
    rows = "".join(f"{i}.5,0{1 + i % 9}/12/2024\n" for i in range(30))
    features = Features.fit(read_table(file("x,when\n" + rows)))
    for content, message in {
        f"x,when\n{rows}two,01/01/2024\n": "line 32, column 'x': 'two' is not a number",
        f"x,when\n{rows}1,yesterday\n": "line 32, column 'when': 'yesterday' is not a date",
    }.items():
        with pytest.raises(TableError, match=message):
            list(map(features.transform, read_blocks(file(content), 7)))
    with pytest.raises(TableError, match="Column 'x' should hold numbers; it holds timestamp"):
        features.transform(
            pd.DataFrame({"x": pd.to_datetime(["2024-01-01"]), "when": ["01/01/2024"]})
        )


@pytest.mark.parametrize("repeat", [1, 2], ids=["distinct", "repeated"])
def test_a_word_among_numbers_is_refused_by_line(repeat, file):
    cells = [f"{i // repeat}" for i in range(40)]
    cells[5], cells[6] = "abc", "n/a"
    path = file("x\n" + "\n".join(cells))
    message = (
        r"data.csv, line 7, column 'x': 'abc' is not a number, but 38 of 39 cells of its column "
        r"are. Correct the cell, or empty it. .*--text \(in Python: text=\)"
    )
    for columns in (None, ["x"]):
        with pytest.raises(TableError, match=message):
            Features.fit(read_table(path), columns=columns)
    features = Features.fit(read_table(path), text=["x"])
    assert (features.used, features.ignored) == (["x"], [])
    assert "x = abc" in features.feature_names


def test_a_column_of_numbers_with_several_words_is_noted_and_no_identifier(file):
    numbers = [f"{i}.5" for i in range(75)]
    for words in (["broken", "missing?", "no-data", "unknown", "off"], ["off"] * 5):
        path = file("x\n" + "\n".join([*numbers[:3], *words, *numbers[3:]]))
        features = Features.fit(read_table(path))
        assert (features.used, features.ignored) == (["x"], [])
        (note,) = features.notes
        assert note == (
            "Column 'x' was read as words: 75 of 80 cells are numbers, but others are not, such "
            f"as '{words[0]}' in line 5. Correct or empty these, or name the column with --text "
            "(in Python: text=)."
        )
        assert Features.fit(read_table(path), text=["x"]).notes == []


def test_a_column_of_dates_with_several_words_is_noted(file):
    cells = [f"{1 + i % 28:02}/{1 + i // 28:02}/2024" for i in range(75)] + list("abcde")
    features = Features.fit(read_table(file("x\n" + "\n".join(cells))))
    assert features.used == ["x"]
    assert features.notes[0].startswith(
        "Column 'x' was read as words: 75 of 80 cells are dates (%d/%m/%Y), but others are not, "
        "such as 'a' in line 77."
    )


@pytest.mark.parametrize(
    "style",
    ["{}%", "{} kg", "{}.5 kg", "-{}.5°C", "${}", "€ {}", "-${}", "{} €", "{}$", "{}m²", "{} km/h"],
)
def test_numbers_with_a_unit_are_noted_and_no_identifier(style, file):
    cells = [style.format(i) for i in range(60)]
    features = Features.fit(read_table(file("x\n?\n" + "\n".join(cells))))
    assert features.used == ["x"]
    assert features.notes == [
        "Column 'x' was read as words, because its numbers have a unit, as in "
        f"'{cells[0]}'. Write them without it, so that they are read as numbers."
    ]


@pytest.mark.parametrize("style", ["u{}@x.org", "A{}", "{}A", "{}-B", "room {}", "10.0.0.{}"])
def test_codes_with_numbers_are_no_amounts(style):
    fitted = fit_column(column(*[style.format(i) for i in range(60)]), named=False)
    assert fitted.note == ""
    assert ("identifier" in fitted.why) == (" " not in style)


def test_codes_that_repeat_are_amounts():
    """No identifier, so a length in cm; the column is used in both cases."""
    cells = [f"{i % 30}cm" for i in range(60)]
    fitted = fit_column(column(*cells), named=False)
    assert fitted.why == ""
    assert "because its numbers have a unit, as in '0cm'" in fitted.note


def test_a_column_that_is_ignored_has_no_note():
    """That its numbers have a unit would be one sentence too many."""
    fitted = fit_column(column(*["5 kg"] * 60), named=False)
    assert (fitted.why, fitted.note) == ("every cell is '5 kg'", "")


@pytest.mark.parametrize("number", ["5,123", "-0,5", "1,234.5", "12,345,678.", "1,5e-3"])
def test_numbers_with_a_comma_are_refused_by_line(number, file):
    cells = ["7", "n/a", *[f'"{number}"'] * 20, "8"]
    path = file("x\n" + "\n".join(cells))
    message = rf"data.csv, line 4, column 'x': '{re.escape(number)}' has a comma, .* --text"
    with pytest.raises(TableError, match=message):
        Features.fit(read_table(path))
    assert Features.fit(read_table(path), text=["x"]).used == ["x"]


@pytest.mark.parametrize("cell", ["1,2,5", "3, 4", "a,1", ","])
def test_a_comma_in_words_and_lists_is_no_part_of_a_number(cell, file):
    path = file("x\n" + "\n".join(["7", *[f'"{cell}"'] * 20]))
    assert Features.fit(read_table(path)).used == ["x"]


def test_numbers_that_are_equal_up_to_rounding_are_not_called_equal(file):
    path = file("x,y\n" + "\n".join(f"{2**63 + i},{i % 3}" for i in range(20)))
    features = Features.fit(read_table(path))
    assert dict(features.ignored) == {"x": f"every cell is '{2**63}' up to rounding"}


@pytest.mark.parametrize("start", [0, 2**24, 1_700_000_000, -(2**40)])
def test_numbers_that_differ_by_little_stay_different(start):
    values = start + np.r_[0:10, 20:30]
    cells = column(*map(str, values), "0", None)
    fitted = fit_column(cells, named=True)
    encoded = fitted.encoded[:20]
    np.testing.assert_array_equal(encoded - encoded[0], values - start)
    np.testing.assert_array_equal(fitted.encoder.encode(cells), fitted.encoded)
    assert (fitted.encoder.offset == 0) == (start == 0)


def test_times_that_differ_in_seconds_stay_different(file):
    seconds = np.r_[0:10, 20:30]
    times = pd.to_datetime("2024-05-01 12:00:09") + pd.to_timedelta(seconds, unit="s")
    rows = "\n".join(times.strftime("%Y-%m-%d %H:%M:%S"))
    features, X = Features.fit_transform(read_table(file("when\n" + rows)))
    assert features.feature_names == ["when days"]
    np.testing.assert_allclose((X[:, 0] - X[0, 0]) * 86400, seconds, atol=0.01)


@pytest.mark.parametrize("position", [0, 7])
@pytest.mark.parametrize("wrong", ["31/02/2024", "yesterday", "2024"])
def test_a_wrong_date_is_refused_by_line(position, wrong, file):
    cells = [f"{1 + i % 28:02}/{1 + i % 12:02}/2024" for i in range(40)]
    cells[position], cells[20] = wrong, "n/a"
    path = file("when\n" + "\n".join(cells))
    message = (
        rf"data.csv, line {position + 2}, column 'when': '{wrong}' is not a date like 38 of 39 "
        r"cells of its column \(%d/%m/%Y\). Correct the cell, or empty it. .*--text"
    )
    with pytest.raises(TableError, match=message):
        Features.fit(read_table(path))
    features = Features.fit(read_table(path), text=["when"])
    assert f"when = {wrong}" in features.feature_names


def test_a_mixture_of_words_and_dates_is_text():
    cells = ["2024-01-31"] * 17 + ["never", "often", "today"]
    assert fit_column(column(*cells), named=False).encoder.kind == "categories"


def test_a_mixture_of_words_and_numbers_is_text():
    for cells in (["1"] * 17 + ["S", "M", "L"], ["1", "2", "S"]):
        assert fit_column(column(*cells), named=False).encoder.kind == "categories"


def test_numbers_and_dates_are_categories_if_declared_as_text(file):
    frame = pd.DataFrame(
        {"code": [1, 2, 3] * 9, "day": pd.to_datetime(["2024-01-31"] * 26 + [None])}
    )
    features, X = Features.fit_transform(frame, text=["code", "day"])
    assert features.feature_names[:3] == ["code = 1", "code = 2", "code = 3"]
    np.testing.assert_array_equal(features.transform(frame), X)
    with pytest.raises(TableError, match=r"no column 'cod'\. Did you mean 'code'"):
        Features.fit(frame, text=["cod"])
    with pytest.raises(TableError, match="without labels and groups, has no column 'code'"):
        Features.fit(frame, text=["code"], label="code")


def test_words_for_missing_count_only_among_numbers(file):
    frame = read_table(file("a,b,c\n1,NA,x\n?,u,y\nNaN, v,x\n 4 ,w,y\n"))
    features, X = Features.fit_transform(frame)
    assert features.notes == ["Column 'a': 2 cells ('?', 'NaN') read as missing."]
    np.testing.assert_array_equal(X[:, 0], [1, np.nan, np.nan, 4])
    assert "b = NA" in features.feature_names


def test_identifiers_are_ignored_and_measurements_are_not(rng):
    n = 50
    frame = pd.DataFrame(
        {
            "id": rng.permutation(10**6)[:n],
            "index": np.arange(n) * 1000,
            "shuffled": rng.permutation(n),
            "price": rng.permutation(10**6)[:n],
            "float": rng.normal(size=n),
            "email": [f"u{i}@x.org" for i in range(n)],
            "note": [f"note {i}" for i in range(n)],
            "chinese": ["字" * (i + 1) for i in range(n)],
            "date": pd.date_range("2024-01-01", periods=n).strftime("%Y-%m-%d"),
        }
    )
    features = Features.fit(frame)
    assert [name for name, _ in features.ignored] == ["id", "index", "shuffled", "email"]
    assert Features.fit(frame, columns=["email", "id"]).used == ["email", "id"]
    assert Features.fit(frame[:10]).ignored == []


def test_columns_of_other_types(rng):
    frame = pd.DataFrame(
        {
            "bool": rng.random(30) < 0.5,
            "duration": pd.to_timedelta(rng.integers(0, 99, 30), unit="s"),
            "list": [[1]] * 30,
            "category": pd.Categorical(rng.choice(["a", "b", "c"], 30)),
            "date": pd.to_datetime(rng.integers(0, 10**9, 30), unit="s"),
        }
    )
    features, X = Features.fit_transform(frame)
    assert features.ignored == [("list", "it holds list<item: int64>, which is not supported")]
    np.testing.assert_array_equal(X[:, 0], frame["bool"])
    np.testing.assert_array_equal(X[:, 1], frame["duration"].dt.total_seconds())
    with pytest.raises(TableError, match=r"A column mixes types: .*column a"):
        Features.fit(pd.DataFrame({"a": ["x", 1, {}]}))


@pytest.mark.parametrize(
    ("dates", "style"),
    [
        (["2024-01-31", "2024-02-01 10:30", "1866-10-14T00:00:00+02:00"], "ISO8601"),
        (["1/2/2024", "3/4/2024"], "%m/%d/%Y"),
        (["1/2/2024", "13/4/2024"], "%d/%m/%Y"),
        (["1.2.24 8:05", "31.12.99 23:59", "NA"], "%d.%m.%y %H:%M"),
        (["Jan 5, 2024", "Mar 31, 2024"], "%b %d, %Y"),
        (["1/2/2024", "31/31/2024"], None),
        (["10:30", "10:31"], None),
        (["192.168.1.1", "10.0.0.1"], None),
    ],
)
def test_dates_are_read_in_one_format(dates, style):
    features, X = Features.fit_transform(pd.DataFrame({"when": dates}))
    assert [f"read as dates, {style}." in note for note in features.notes] == [True] * bool(style)
    if style:
        assert features.feature_names[0] == "when days"
        first = pd.Timestamp(2024, *{"%m/%d/%Y": (1, 2), "ISO8601": (1, 31)}.get(style, (2, 1)))
        if style != "%b %d, %Y":
            assert int(X[0, 0]) == (first - pd.Timestamp(0)).days


def test_dates_far_away_are_dates_or_text():
    dates = pd.DataFrame({"when": ["9999-12-31", "2024-01-31"]})  # text before pandas 3
    assert Features.fit(dates).feature_names[0] in ("when days", "when = 9999-12-31")
