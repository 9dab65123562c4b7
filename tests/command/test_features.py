"""The columns of a table as a matrix, encoded in the same way for every later table."""

import io
import json

import numpy as np
import pytest

from looselabels.command.features import RESULTS, Features
from looselabels.command.tables import TableError, add_columns, read_blocks, read_table
from looselabels.command.writing import table_writer
from tests.command.calls import modules_loaded_by, pd


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


def test_numbers_that_may_identify_rows_are_used_with_a_note(rng):
    frame = pd.DataFrame({"post": rng.permutation(10_000)[:300] + 5, "size": rng.random(300)})
    features = Features.fit(frame)
    assert features.used == ["post", "size"]
    (note,) = features.notes
    assert note.startswith(
        "Column 'post': every row has a different whole number. If it identifies"
    )
    assert Features.fit(frame, columns=["post", "size"]).notes == []


def test_identifiers_stay_identifiers_if_a_few_rows_are_there_twice():
    names = [f"R{k:03d}" for k in range(60)]
    for n_twice, ignored in ((0, True), (3, True), (12, False)):
        frame = pd.DataFrame({"name": names[:n_twice] + names[n_twice:] + names[:n_twice]})
        frame["size"] = np.arange(len(frame)) % 7 + 0.5
        found = dict(Features.fit(frame).ignored).get("name", "")
        assert found.endswith("row has a different word, like an identifier") == ignored
        assert found.startswith("nearly") == (ignored and n_twice > 0)


def as_read(frame, tmp_path, suffix=".csv"):
    path = tmp_path / f"table{suffix}"
    with table_writer(path, force=True) as write:
        write(frame.convert_dtypes())
    return read_table(path)


def test_each_kind_of_column_is_recognized(mixed, tmp_path):
    features, X = Features.fit_transform(as_read(mixed, tmp_path), label="label")
    assert features.used == ["size", "age", "color", "yes", "city", "text", "when", "iso"]
    assert features.ignored == [
        ("row", "every row has a different whole number, like an identifier"),
        ("uuid", "every row has a different word, like an identifier"),
        ("same", "every cell is 'x'"),
        ("none", "every cell is empty"),
    ]
    n = int((mixed["age"] == "NA").sum())
    assert features.notes == [
        f"Column 'age': {n} cells ('NA') read as missing.",
        "Column 'when': read as dates, %d/%m/%Y %H:%M.",
        "Column 'iso': read as dates, ISO8601.",
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


def test_the_results_of_an_audit_are_no_features_unless_they_are_named():
    values = {name: [0.5, 0.25, 0.75] * 4 for name in ("size", *RESULTS)}
    frame = pd.DataFrame(values | {"label": ["a", "b", "c"] * 4})
    features = Features.fit(frame, label="label")
    assert features.used == ["size"]
    assert dict(features.ignored)["doubt"] == "it is an earlier result of looselabels"
    assert Features.fit(frame, label="label", columns=["doubt"]).used == ["doubt"]
    assert "doubt" in Features.fit(frame.drop(columns="why"), label="label").used


@pytest.mark.parametrize(
    "added",
    [
        list(RESULTS),
        ["consensus", "probability", "n_answers", "more_answers"],
        ["class", "class_proba", "doubt", "p(a)", "p(b)"],
    ],
)
def test_what_was_added_to_a_table_several_times_is_no_feature(added):
    frame = pd.DataFrame({"doubt": [0.5, 0.25, 0.75] * 4, "label": ["a", "b", "c"] * 4})
    frame["class"] = [1.0, 2.5, 2.0] * 4  # columns of the user
    for _ in range(3):
        frame = add_columns(frame, dict.fromkeys(added, [0.5, 0.25, 0.75] * 4))
        assert Features.fit(frame, label="label").used == ["doubt", "class"]
    assert len(frame.columns) == 3 + 3 * len(added)


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
@pytest.mark.parametrize("missing", [[], [None, "NA"]])
def test_true_and_false_are_0_and_1_in_all_formats(impute, missing):
    bools = pd.DataFrame({"size": np.arange(12) / 8, "tame": [True, False, False] * 4})
    bools["tame"] = bools["tame"].astype("boolean")
    bools.loc[: len(missing) - 1, "tame"] = pd.NA
    features, X = Features.fit_transform(bools, impute=impute)
    for true, false in (("True", "False"), ("TRUE", "FALSE"), ("true", "false"), ("True", "false")):
        texts = bools["tame"].map({True: true, False: false}).astype(object)
        texts[: len(missing)] = missing
        written, again = Features.fit_transform(bools.assign(tame=texts), impute=impute)
        assert written.feature_names == features.feature_names
        for found in (
            again,
            features.transform(bools.assign(tame=texts)),
            written.transform(bools),
        ):
            np.testing.assert_array_equal(found, X)


def test_a_model_that_has_true_as_a_category_reads_other_spellings():
    texts = pd.DataFrame({"tame": ["True", "False", None] * 4})
    features, X = Features.fit_transform(texts, text=["tame"])  # as models fitted before 0.2 do
    assert features.feature_names == ["tame = False", "tame = True", "tame is missing"]
    upper = texts.assign(tame=texts["tame"].str.upper())
    for other in (upper, texts.assign(tame=[True, False, None] * 4)):
        np.testing.assert_array_equal(features.transform(other), X)


def test_a_cell_that_is_not_true_or_false_is_named():
    features = Features.fit(pd.DataFrame({"tame": [True, False] * 4}))
    message = "Row 2, column 'tame': 'maybe' is not true or false, but its column holds these"
    with pytest.raises(TableError, match=message):
        features.transform(pd.DataFrame({"tame": ["True", "maybe", "False"]}))
    with pytest.raises(TableError, match="Row 2, column 'tame': 'True' is not a number"):
        features.transform(pd.DataFrame({"tame": ["1", "True"]}))


@pytest.mark.parametrize("impute", [False, True])
def test_saved_features_give_the_same_matrix(impute, mixed, tmp_path):
    frame = as_read(mixed, tmp_path)
    features, X = Features.fit_transform(frame, label="label", impute=impute)
    features.save(tmp_path)
    again = Features.load(tmp_path)
    np.testing.assert_array_equal(again.transform(frame), X)
    for name in ("used", "ignored", "notes", "feature_names", "image_shape"):
        assert getattr(again, name) == getattr(features, name)


def test_offsets_are_saved_and_files_of_0_1_have_none(tmp_path):
    day = pd.to_datetime("2024-05-01")
    seconds = np.arange(30.0)[::-1]
    frame = pd.DataFrame({"t": 1.7e9 + seconds, "day": day + pd.to_timedelta(seconds, unit="s")})
    features, X = Features.fit_transform(frame, columns=["t", "day"])
    assert len(np.unique(X[:, 0])) == len(np.unique(X[:, 1])) == 30
    features.save(tmp_path)
    np.testing.assert_array_equal(Features.load(tmp_path).transform(frame), X)
    forge(lambda c: [encoder.pop("offset") for encoder in c["encoders"]])(tmp_path)
    old = Features.load(tmp_path).transform(frame)
    np.testing.assert_array_equal(old[:, 0], np.float32(frame["t"]))
    np.testing.assert_allclose(old[:, 1], (day - pd.Timestamp(0)).days, atol=1e-3)


def test_damaged_or_newer_features_are_refused(mixed, tmp_path):
    Features.fit(mixed, label="label").save(tmp_path)
    json_file, array_file = tmp_path / "features.json", tmp_path / "features.npz"
    content, arrays = json_file.read_bytes(), array_file.read_bytes()
    np.savez(array_file, idf5=np.array([{}], dtype=object))
    with pytest.raises(ValueError, match=r"features.npz cannot be loaded: .*allow_pickle"):
        Features.load(tmp_path)
    found = dict(np.load(io.BytesIO(arrays)))
    np.savez(array_file, **found | {"idf4": np.ones(3)})
    with pytest.raises(ValueError, match=r"the text column \'city\' have the wrong shape"):
        Features.load(tmp_path)
    array_file.write_bytes(arrays)
    for broken, message in {
        json.dumps(json.loads(content) | {"schema": 2}): "it has schema 2; .*newer version",
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


def forge(change):
    """Return a function that changes features.json by a function of its content."""

    def forged(folder):
        file = folder / "features.json"
        content = json.loads(file.read_text())
        change(content)
        file.write_text(json.dumps(content))

    return forged


def forge_arrays(**change):
    def forged(folder):
        np.savez(folder / "features.npz", **dict(np.load(folder / "features.npz")) | change)

    return forged


@pytest.mark.parametrize(
    ("forged", "message"),
    [
        (forge(lambda c: c["encoders"][0].update(offset="x")), "offset of .* is 'x', not a number"),
        (forge(lambda c: c["encoders"][0].update(offset=np.inf)), "offset of .* is inf, not a num"),
        (forge(lambda c: c.update(gaps=[99])), r"gaps are \[99\]; it has \d+ features"),
        (forge(lambda c: c.update(gaps=[-1])), r"gaps are \[-1\]"),
        (forge(lambda c: c.update(gaps=[0.5])), r"gaps are \[0.5\]"),
        (forge(lambda c: c.update(encoders=[])), r"its columns are \[\]"),
        (forge(lambda c: c["encoders"].append(c["encoders"][0])), "its columns are "),
        (forge(lambda c: c["encoders"][0].update(names=[])), "'size' has 1 features and 0 names"),
        (forge(lambda c: c["encoders"][2]["values"].pop()), "'color' has 3 features and 4 names"),
        (forge(lambda c: c["encoders"][6].update(parts=["year"])), "KeyError: 'year'"),
        (forge(lambda c: c["encoders"][4].update(analyzer="x")), "analyzer is 'x'; it is word"),
        (forge(lambda c: c.update(image_shape=[8, 8])), r"image_shape is \(8, 8\); it has"),
        (forge_arrays(medians=np.ones(3)), r"medians must be \d+ finite numbers"),
        (forge_arrays(idf4=np.full(2**14, np.nan)), "the arrays of 'city' must be finite"),
    ],
)
def test_features_that_do_not_fit_together_are_refused(forged, message, mixed, tmp_path):
    Features.fit(mixed, label="label", impute=True).save(tmp_path)
    forged(tmp_path)
    with pytest.raises(ValueError, match=r"features\.json cannot be loaded: .*" + message):
        Features.load(tmp_path)


def test_imputed_features_have_no_gaps_and_say_where_they_were():
    frame = pd.DataFrame({"a": ["1", None, "3", "9"], "b": ["1", "2", "4", "4"]})
    features, X = Features.fit_transform(frame, impute=True)
    assert features.feature_names == ["a", "b", "a is missing"]
    np.testing.assert_array_equal(X, [[1, 1, 0], [3, 2, 1], [3, 4, 0], [9, 4, 0]])
    assert X.dtype == np.float32
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


def test_nothing_to_learn_from_is_an_error():
    with pytest.raises(TableError, match=r"no usable feature column\. 'a': every cell is 1"):
        Features.fit(pd.DataFrame({"a": [1, 1], "y": [0, 1]}), label="y")


def test_plain_numbers_are_the_plain_matrix(rng):
    X = rng.normal(size=(40, 5))
    _, found = Features.fit_transform(pd.DataFrame(X).rename(columns="x{}".format))
    np.testing.assert_array_equal(found, X.astype(np.float32))
    assert found.flags.c_contiguous


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


def test_files_of_0_1_have_a_field_that_is_ignored(mixed, tmp_path):
    features = Features.fit(mixed, label="label")
    features.save(tmp_path)
    file = tmp_path / "features.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"has_missing": True}))
    again = Features.load(tmp_path)
    np.testing.assert_array_equal(again.transform(mixed), features.transform(mixed))


def test_importing_the_module_imports_no_extra():
    loaded = modules_loaded_by("looselabels.command.features")
    assert not loaded & {"pandas", "pyarrow", "sklearn", "scipy"}
