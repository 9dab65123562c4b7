"""Columns as features, the same for every table."""

import io
import json
import subprocess
import sys

import numpy as np
import pytest

from looselabels.command.features import Features
from looselabels.command.tables import TableError, read_blocks, read_table, table_writer

pd = pytest.importorskip("pandas")
pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")


@pytest.fixture
def file(tmp_path):
    """Write text to data.csv, and return its path."""

    def write(content):
        path = tmp_path / "data.csv"
        path.write_text(content, encoding="utf-8")
        return path

    return write


@pytest.fixture(scope="module")
def mixed():
    """A table of every kind of column, as text."""
    rng, n = np.random.default_rng(0), 300
    words = np.array(["red", "blue", "green", "dog", "cat", "house", "tree", "run"])
    days = pd.date_range("2024-01-01", periods=n, freq="7h")
    frame = pd.DataFrame(
        {
            "row": np.arange(n),
            "size": rng.normal(size=n),
            "age": np.where(rng.random(n) < 0.1, "NA", rng.integers(0, 90, n).astype(str)),
            "color": rng.choice(["red", "blue", "green"], n),
            "yes": rng.choice(["yes", "no"], n),
            "city": [f"city {i}" for i in rng.integers(0, 60, n)],
            "text": [" ".join(rng.choice(words, 9)) for _ in range(n)],
            "when": days.strftime("%d/%m/%Y %H:%M"),
            "iso": days.strftime("%Y-%m-%dT%H:%M:%S"),
            "uuid": [f"{i:032x}" for i in rng.integers(0, 2**60, n)],
            "same": "x",
            "none": None,
            "label": rng.choice(["a", "b"], n),
        }
    ).astype(object)
    for i, name in enumerate(["color", "city", "text", "when"]):
        frame.loc[i, name] = None
    return frame


def as_read(frame, tmp_path, suffix=".csv"):
    path = tmp_path / f"table{suffix}"
    with table_writer(path, force=True) as write:
        write(frame.convert_dtypes())
    return read_table(path)


def test_kinds_of_columns_are_told_apart(mixed, tmp_path):
    features, X = Features.fit_transform(as_read(mixed, tmp_path), label="label")
    assert features.used == ["size", "age", "color", "yes", "city", "text", "when", "iso"]
    assert features.ignored == [
        ("row", "its whole numbers tell rows apart, like an identifier"),
        ("uuid", "every cell is different and one word, like an identifier"),
        ("same", "every cell is 'x'"),
        ("none", "every cell is empty"),
    ]
    n = int((mixed["age"] == "NA").sum())
    assert features.notes == [
        f"Column 'age': {n} cells ('NA') taken as missing.",
        "Column 'when': dates, read as %d/%m/%Y %H:%M.",
        "Column 'iso': dates, read as ISO8601.",
    ]
    assert X.dtype == np.float32
    assert X.shape == (300, len(features.feature_names))
    by_name = dict(zip(features.feature_names, X.T, strict=True))
    np.testing.assert_array_equal(by_name["size"], mixed["size"].to_numpy(np.float32))
    np.testing.assert_array_equal(np.isnan(by_name["age"]), mixed["age"] == "NA")
    np.testing.assert_array_equal(by_name["color = red"], mixed["color"] == "red")
    np.testing.assert_array_equal(by_name["color is missing"], mixed["color"].isna())
    np.testing.assert_array_equal(by_name["yes = yes"], mixed["yes"] == "yes")
    assert "yes = no" not in by_name
    np.testing.assert_array_equal(by_name["iso hour"][:4], [0, 7, 14, 21])
    np.testing.assert_array_equal(by_name["when days"][4:], by_name["iso days"][4:])
    assert by_name["iso days"][0] == 19723
    assert features.has_missing


def test_blocks_give_the_same_matrix_as_the_table(mixed, tmp_path):
    frame = as_read(mixed, tmp_path)
    features, X = Features.fit_transform(frame, label="label")
    np.testing.assert_array_equal(features.transform(frame), X)
    blocks = [features.transform(block) for block in read_blocks(tmp_path / "table.csv", 77)]
    np.testing.assert_allclose(np.vstack(blocks), X, atol=1e-6)


def test_csv_and_parquet_give_the_same_matrix(mixed, tmp_path):
    csv, parquet = (as_read(mixed, tmp_path, suffix) for suffix in (".csv", ".parquet"))
    assert str(parquet["size"].dtype) != str(csv["size"].dtype)
    features, X = Features.fit_transform(csv, label="label")
    np.testing.assert_array_equal(Features.fit_transform(parquet, label="label")[1], X)
    np.testing.assert_array_equal(features.transform(parquet), X)


@pytest.mark.parametrize("impute", [False, True])
def test_saved_features_give_the_same_matrix(impute, mixed, tmp_path):
    frame = as_read(mixed, tmp_path)
    features, X = Features.fit_transform(frame, label="label", impute=impute)
    features.save(tmp_path)
    again = Features.load(tmp_path)
    np.testing.assert_array_equal(again.transform(frame), X)
    for name in ("used", "ignored", "notes", "feature_names", "has_missing", "image_shape"):
        assert getattr(again, name) == getattr(features, name)


def test_damaged_or_newer_features_are_refused(mixed, tmp_path):
    Features.fit(mixed, label="label").save(tmp_path)
    json_file, array_file = tmp_path / "features.json", tmp_path / "features.npz"
    content, arrays = json_file.read_bytes(), array_file.read_bytes()
    np.savez(array_file, idf5=np.array([{}], dtype=object))
    with pytest.raises(ValueError, match=r"features.npz cannot be loaded: .*allow_pickle"):
        Features.load(tmp_path)
    found = dict(np.load(io.BytesIO(arrays)))
    np.savez(array_file, **found | {"idf4": np.ones(3)})
    with pytest.raises(ValueError, match=r"features.npz has other components"):
        Features.load(tmp_path)
    array_file.write_bytes(arrays)
    for broken, message in {
        json.dumps(json.loads(content) | {"schema": 2}): "it has schema 2; .* newer looselabels",
        content[:-9].decode(): "features.json cannot be loaded",
        "[]": "it has schema",
        content.decode().replace('"text"', '"os.system"'): "cannot be loaded",
    }.items():
        json_file.write_text(broken)
        with pytest.raises(ValueError, match=message):
            Features.load(tmp_path)
    json_file.unlink()
    with pytest.raises(ValueError, match="is missing"):
        Features.load(tmp_path)


def test_imputed_features_have_no_gaps_and_say_where_they_were():
    frame = pd.DataFrame({"a": ["1", None, "3", "9"], "b": ["1", "2", "4", "4"]})
    features, X = Features.fit_transform(frame, impute=True)
    assert features.feature_names == ["a", "b", "a is missing"]
    np.testing.assert_array_equal(X, [[1, 1, 0], [3, 2, 1], [3, 4, 0], [9, 4, 0]])
    assert X.dtype == np.float32
    assert not features.has_missing
    new = features.transform(pd.DataFrame({"b": [None, "?"], "a": ["5", ""]}))
    np.testing.assert_array_equal(new, [[5, 3, 0], [3, 3, 1]])


def test_new_categories_and_texts_are_fine_and_other_columns_ignored(mixed):
    features = Features.fit(mixed, label="label")
    new = mixed[:3].assign(color="mauve", city="nowhere", text="", more=1).drop(columns="label")
    X = features.transform(new)
    three = Features.fit(pd.DataFrame({"color": ["red", "green", "blue"]}))
    new = pd.DataFrame({"color": ["blue", "red", "mauve", None]})
    np.testing.assert_array_equal(
        three.transform(new), [[1, 0, 0], [0, 0, 1], [0, 0, 0], [0, 0, 0]]
    )
    names = features.feature_names
    assert not X[:, [name.startswith("color") for name in names]].any()
    assert np.isfinite(X[:, [name.startswith("text") for name in names]]).all()


def test_a_column_that_is_not_there_is_named(mixed):
    features = Features.fit(mixed, label="label")
    with pytest.raises(TableError, match=r"no column 'age', .* Did you mean 'Age'\?"):
        features.transform(mixed.rename(columns={"age": "Age"}))
    with pytest.raises(TableError, match=r"no column 'coler'\. Did you mean 'color'"):
        Features.fit(mixed, label="label", columns=["coler"])
    with pytest.raises(TableError, match="'label' is the label"):
        Features.fit(mixed, label="label", columns=["size", "label"])


@pytest.mark.parametrize("value", ["inf", "-Infinity", "1e400", "1e39"])
def test_numbers_that_are_not_finite_are_refused_by_line(value, file):
    path = file(f'x,text\n1,"two\nlines"\n2,b\n\n{value},c\n')
    pattern = rf"data.csv, line 6, column 'x': '{value}' is no finite number"
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
        f"x,when\n{rows}two,01/01/2024\n": "line 32, column 'x': 'two' is no number",
        f"x,when\n{rows}1,yesterday\n": "line 32, column 'when': 'yesterday' is no date",
    }.items():
        with pytest.raises(TableError, match=message):
            list(map(features.transform, read_blocks(file(content), 7)))
    with pytest.raises(TableError, match="Column 'x' should hold numbers; now it holds timestamp"):
        features.transform(
            pd.DataFrame({"x": pd.to_datetime(["2024-01-01"]), "when": ["01/01/2024"]})
        )


def test_words_for_missing_count_only_among_numbers(file):
    frame = read_table(file("a,b,c\n1,NA,x\n?,u,y\nNaN, v,x\n 4 ,w,y\n"))
    features, X = Features.fit_transform(frame)
    assert features.notes == ["Column 'a': 2 cells ('?', 'NaN') taken as missing."]
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


def test_nothing_to_learn_from_is_an_error():
    with pytest.raises(TableError, match=r"No column is left to learn from\. 'a': every cell is 1"):
        Features.fit(pd.DataFrame({"a": [1, 1], "y": [0, 1]}), label="y")


def test_plain_numbers_are_the_plain_matrix(rng):
    X = rng.normal(size=(40, 5))
    features, found = Features.fit_transform(pd.DataFrame(X).rename(columns="x{}".format))
    np.testing.assert_array_equal(found, X.astype(np.float32))
    assert found.flags.c_contiguous
    assert not features.has_missing


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
    assert features.ignored == [("list", "it holds list<item: int64>, which is not read")]
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
    assert [f"read as {style}." in note for note in features.notes] == [True] * bool(style)
    if style:
        assert features.feature_names[0] == "when days"
        first = pd.Timestamp(2024, *{"%m/%d/%Y": (1, 2), "ISO8601": (1, 31)}.get(style, (2, 1)))
        if style != "%b %d, %Y":
            assert int(X[0, 0]) == (first - pd.Timestamp(0)).days


def test_dates_far_away_are_dates_or_text():
    dates = pd.DataFrame({"when": ["9999-12-31", "2024-01-31"]})  # text before pandas 3
    assert Features.fit(dates).feature_names[0] in ("when days", "when = 9999-12-31")


@pytest.mark.parametrize(
    ("names", "seen"),
    [
        ([f"pixel{i}" for i in range(64)], True),
        ([f"Pixel_{i}" for i in range(1, 65)], True),
        ([f"pixel_{i}_{j}" for i in range(8) for j in range(8)], True),
        ([f"{i}x{j}" for i in range(1, 9) for j in range(1, 9)], True),
        ([str(i) for i in range(64)], True),
        ([f"x{i}" for i in range(64)], False),
        ([f"pixel{i}" for i in range(63)], False),
        ([f"pixel{i}" for i in range(2, 66)], False),
    ],
)
def test_pixels_are_seen_and_stay_in_the_order_of_the_image(names, seen, rng):
    X = rng.integers(0, 256, (30, len(names)))
    X[:, 0] = 0  # a corner is often constant
    frame = pd.DataFrame(X, columns=names).assign(id=range(30), label="a")
    shuffled = frame[list(rng.permutation(frame.columns))]
    features, found = Features.fit_transform(shuffled, label="label")
    assert features.image_shape == ((8, 8) if seen else None)
    if seen:
        np.testing.assert_array_equal(found, X)
        assert [name for name, _ in features.ignored] == ["id"]
        other = Features.fit(shuffled.assign(age=rng.normal(size=30)), label="label")
        assert other.image_shape is None
        assert names[0] in [name for name, _ in other.ignored]


def test_numbered_columns_beyond_gray_values_are_no_pixels(rng):
    for scale, shift in ((1, -0.5), (300, 0)):
        frame = pd.DataFrame(scale * rng.random((30, 64)) + shift).rename(columns=str)
        assert Features.fit(frame).image_shape is None


def test_importing_features_imports_no_extra():
    code = "import sys, looselabels.command.features\nprint({m.split('.')[0] for m in sys.modules})"
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, check=True, text=True
    )
    for module in ("pandas", "pyarrow", "sklearn", "skrub", "scipy"):
        assert f"'{module}'" not in loaded.stdout
