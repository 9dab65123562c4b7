"""Files with features of the user's own: matched to rows by identifier or by order."""

import io
from pathlib import Path

import numpy as np
import pytest

from looselabels.command.feature_file import FeatureFile
from looselabels.command.features import Features
from looselabels.command.tables import TableError
from tests.command.calls import QUICK, animals, called, pd, read_csv
from tests.command.test_images import COLORS, draw

pytestmark = pytest.mark.usefixtures("folder")  # each test works in an empty folder

NAMES = pd.DataFrame({"name": ["Tom", "Rex", "Tom"], "nr": [1, 2, 3]})


def embedded(n_rows=80):
    """Write a table without features, and its features as files; return the table's features."""
    frame = animals(n_rows)
    names = [f"a{i}" for i in range(n_rows)]
    values = frame[["size", "weight"]]
    frame[["species"]].assign(name=names).to_csv("data.csv", index=False)
    shuffled = values.assign(name=names)[["name", "size", "weight"]].iloc[::-1]
    shuffled.to_csv("own.csv", index=False)
    shuffled.to_parquet("own.parquet", index=False)
    np.save("own.npy", values.to_numpy())
    return values.to_numpy()


# --------------------------------------------------------------------------------------- matching


def test_rows_are_matched_by_the_first_column(file):
    path = file("name,a,b\nRex,1,2\nTom,3,4\nBen,5,6\n", "own.csv")
    found = FeatureFile(path).of(NAMES)
    assert found.to_numpy().tolist() == [["3", "4"], ["1", "2"], ["3", "4"]]
    assert list(found.columns) == ["a", "b"]


def test_rows_are_matched_by_the_column_that_identifies_them(file):
    other_name = file("key,a\n2,20\n1,10\n3,30\n", "own.csv")
    assert FeatureFile(other_name).of(NAMES, "nr")["a"].tolist() == ["10", "20", "30"]
    by_name = file("name,a\nRex,20\nTom,10\n", "own.csv")  # another column than --id
    assert FeatureFile(by_name).of(NAMES, "nr")["a"].tolist() == ["10", "20", "10"]
    not_first = file("a,nr\n20,2\n10,1\n30,3\n", "own.csv")
    assert FeatureFile(not_first).of(NAMES, "nr")["a"].tolist() == ["10", "20", "30"]


def test_numbers_are_the_same_in_every_format(tmp_path):
    path = tmp_path / "own.parquet"
    pd.DataFrame({"nr": [3.0, 2.0, 1.0], "a": [30, 20, 10]}).to_parquet(path)
    text = NAMES.assign(nr=["1", "2", "3"])
    assert FeatureFile(path).of(text)["a"].tolist() == [10, 20, 30]


def test_large_integers_of_an_array_stay_different(tmp_path):
    np.save(tmp_path / "own.npy", np.array([[2**30], [2**30 + 1], [5]], dtype=np.int32))
    found = FeatureFile(tmp_path / "own.npy").of(NAMES).to_numpy().ravel()
    assert found.tolist() == [2**30, 2**30 + 1, 5]


def test_rows_of_an_array_are_in_order_in_every_block(tmp_path):
    np.save(tmp_path / "own.npy", np.arange(10, dtype=np.float16).reshape(5, 2))
    file = FeatureFile(tmp_path / "own.npy")
    first, second = file.of(NAMES), file.of(NAMES.iloc[:2], start=3)
    assert first.to_numpy().tolist() == [[0, 1], [2, 3], [4, 5]]
    assert second.to_numpy().tolist() == [[6, 7], [8, 9]]
    assert list(first.columns) == ["feature 1 of 2", "feature 2 of 2"]
    file.check_length(5)
    with pytest.raises(TableError, match=r"own\.npy has 5 rows, the table 4\. It needs one row"):
        file.check_length(4)
    with pytest.raises(TableError, match="has 5 rows, the table 6"):
        file.of(NAMES, start=3)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("name,a\nTom,1\n", r"no row for 1 of 2 values of column 'name': 'Rex'\."),
        ("name,a\nTom,1\nRex,2\nTom,3\n", "'name' identifies rows, but repeats 'Tom'"),
        ("name\nTom\nRex\n", "has identifiers, but no column of features"),
        ("path,a\nTom,1\n", r"first column, 'path', .* Rename the first column to one of 'name'"),
    ],
)
def test_files_that_do_not_match_are_refused(file, content, said):
    with pytest.raises(TableError, match=said):
        FeatureFile(file(content, "own.csv")).of(NAMES)


def saved(array, save=np.save):
    content = io.BytesIO()
    save(content, array)
    return content.getvalue()


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "is not an array of numbers"),
        (b"name,a", "is not an array of numbers"),
        (saved(np.ones((9, 2)))[:150], "is not an array of numbers"),
        (saved(np.ones((9, 2)), np.savez), "is an archive of arrays"),
        (saved(np.ones(9)), r"float64 with shape \(9,\); features must be numbers"),
        (saved(np.ones((9, 0))), r"float64 with shape \(9, 0\)"),
        (saved(np.full((9, 2), "a")), r"<U1 with shape \(9, 2\)"),
        (saved(np.full((9, 2), 1j)), "complex128 with shape"),
    ],
)
def test_files_that_are_no_matrix_are_refused(file, content, said):
    with pytest.raises(TableError, match=said):
        FeatureFile(file(content, "own.npy"))


def test_features_remember_that_they_are_from_a_file(tmp_path):
    features = Features.fit(pd.DataFrame({"a": [1.5, 2, 4]}))
    features.file = "own.npy"
    features.save(tmp_path)
    again = Features.load(tmp_path)
    assert again.file == "own.npy"
    with pytest.raises(TableError, match=r"fitted to the features in own\.npy: pass --features"):
        again.transform(NAMES)


# ------------------------------------------------------------------------------------ the command


@pytest.mark.parametrize("name", ["own.csv", "own.parquet", "own.npy"])
def test_an_audit_learns_from_a_file_and_its_model_needs_one(name):
    embedded()
    Path("sub").mkdir()
    Path(name).rename(f"sub/{name}")
    found = called("audit", "data.csv", "--label", "species", "--features", f"sub/{name}", *QUICK)
    assert found.code == 0, found.err
    assert f"--features {name}" in Path("data-audit/report.html").read_text()
    audited = read_csv("data-audit/labels.csv")
    assert list(audited.columns[:2]) == ["species", "name"]
    words = ("predict", "data-audit/model", "data.csv", "-o", "classes.csv")
    assert called(*words, "--features", f"sub/{name}").code == 0
    classes = read_csv("classes.csv")["class"]
    expected = np.where(np.arange(80) % 2, "dog", "cat")
    assert (classes == expected).mean() > 0.95
    found = called("predict", "data-audit/model", "data.csv")
    assert found.code == 3
    assert f"It was fitted to the features in {name}: pass --features FILE." in found.err


def test_all_files_give_the_same_features(monkeypatch):
    values = embedded()
    seen = []
    monkeypatch.setattr(
        "looselabels.command.fitting.fit", lambda X, *_, **__: seen.append(X) or 1 / 0
    )
    for name in ("own.csv", "own.parquet", "own.npy"):
        called("fit", "data.csv", "--label", "species", "--features", name)
    for X in seen:
        np.testing.assert_allclose(X, values, rtol=1e-6)
    assert len(seen) == 3


def test_the_label_in_a_file_is_no_feature(monkeypatch):
    embedded()
    own = read_csv("own.csv").assign(species="cat")
    own.to_csv("own.csv", index=False)
    used = []
    monkeypatch.setattr(
        "looselabels.command.features.Features.fit_transform",
        lambda frame, **_: used.extend(frame.columns) or 1 / 0,
    )
    called("fit", "data.csv", "--label", "species", "--features", "own.csv")
    assert used == ["size", "weight"]


def test_embeddings_of_a_folder_are_matched_by_path():
    pytest.importorskip("PIL")
    rows = ["file,a,b"]
    for k, name in enumerate(COLORS):
        for i in range(15):
            draw(f"fruits/{name}/{i}.png", (128, 128, 128), seed=i)
            rows.append(f"{name}/{i}.png,{k}.{i:02},{i / 7}")
    Path("own.csv").write_text("\n".join(reversed([*rows[1:], rows[0]])))
    found = called("audit", "fruits", "--features", "own.csv", *QUICK)
    assert found.code == 0, found.err
    assert "images read" not in found.err
    page = Path("fruits-audit/report.html").read_text()
    assert page.count("data:image/png;base64,") >= 30
    found = called("predict", "fruits-audit/model", "fruits", "--features", "own.csv")
    assert found.code == 0, found.err
    classes = [line.split(",")[2] for line in found.out.splitlines()[1:]]
    assert classes == ["apple"] * 15 + ["leaf"] * 15


@pytest.mark.parametrize(
    ("command", "name", "code", "said"),
    [
        ("audit", "none.npy", 5, "none.npy does not exist"),
        ("audit", "short.npy", 3, "short.npy has 5 rows, the table 80"),
        ("audit", "data.csv", 3, "column 'species' identifies rows, but repeats 'cat', 'dog'"),
        ("predict", "none.csv", 2, "'none.csv' does not exist"),
        ("predict", "short.npy", 3, "short.npy has 5 rows, the table 80"),
        ("predict", "long.npy", 3, "long.npy has 99 rows, the table 80"),
        ("predict", "wide.npy", 3, "no column 'feature 1 of 2', 'feature 2 of 2'"),
    ],
)
def test_a_wrong_file_is_one_line(command, name, code, said):
    embedded()
    np.save("short.npy", np.ones((5, 2)))
    np.save("long.npy", np.ones((99, 2)))
    np.save("wide.npy", np.ones((80, 3)))
    learn = ("--label", "species", "--features", "own.npy", *QUICK)
    if command == "predict":
        assert called("fit", "data.csv", *learn, "-o", "model").code == 0
        found = called("predict", "model", "data.csv", "--features", name)
    else:
        found = called("audit", "data.csv", "--label", "species", "--features", name)
    assert found.code == code
    assert said in found.err
    assert "Traceback" not in found.err
