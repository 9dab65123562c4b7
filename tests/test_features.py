"""Tables as features for users of the library: the same numbers as in the command."""

import pickle
import sys

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from looselabels import DecoupledClassifier, audit
from looselabels.command.features import Features
from looselabels.command.tables import read_table
from looselabels.features import TableFeatures

pd = pytest.importorskip("pandas", reason="the extra `tables` is not installed")
pytest.importorskip("pyarrow", reason="the extra `tables` is not installed")


@pytest.fixture(scope="module")
def frame():
    """A table with numbers, dates, categories, text, an identifier and a constant."""
    rng = np.random.default_rng(0)
    n, words = 60, ["red", "small", "large", "round", "flat", "old", "new", "soft", "hard"]
    return pd.DataFrame(
        {
            "id": [f"row-{i}" for i in range(n)],
            "size": rng.normal(size=n).round(3),
            "color": rng.choice(["red", "blue", "green"], n),
            "day": pd.date_range("2024-01-01", periods=n).strftime("%Y-%m-%d"),
            "note": [" ".join(rng.choice(words, 9)) for _ in range(n)],
            "unit": "cm",
        }
    )


def test_a_frame_gives_the_numbers_of_its_file_in_the_command(frame, tmp_path):
    frame.assign(label=["a", "b"] * 30).to_csv(tmp_path / "t.csv", index=False)
    features, expected = Features.fit_transform(read_table(tmp_path / "t.csv"), label="label")
    ours = TableFeatures()
    assert_array_equal(ours.fit_transform(frame), expected)
    assert ours.get_feature_names_out().tolist() == features.feature_names
    assert ours.features_.ignored == features.ignored == [
        ("id", "every row has a different word, like an identifier"),
        ("unit", "every cell is 'cm'"),
    ]  # fmt: skip
    assert ours.n_features_in_ == 6


def test_types_of_pandas_and_of_polars_give_the_same_numbers(frame):
    polars = pytest.importorskip("polars")
    typed = frame.assign(color=frame["color"].astype("category"), day=pd.to_datetime(frame["day"]))
    expected = TableFeatures().fit_transform(frame)
    assert_array_equal(TableFeatures().fit_transform(typed), expected)
    assert_array_equal(
        TableFeatures().fit_transform(polars.DataFrame(frame.to_dict("list"))), expected
    )


def test_new_rows_are_encoded_by_the_names_of_their_columns(frame):
    features = TableFeatures().fit(frame)
    X = features.transform(frame)
    assert_array_equal(features.transform(frame[frame.columns[::-1]].assign(more=1)), X)
    assert_array_equal(features.transform(frame[:7]), X[:7])
    assert X.dtype == np.float32


def test_columns_can_be_chosen_and_missing_numbers_replaced(frame):
    holes = frame.assign(size=frame["size"].where(frame.index % 3 > 0))
    assert np.isnan(TableFeatures(["size"]).fit_transform(holes)).sum() == 20
    features = TableFeatures(columns=["size", "id"], impute=True)
    X = features.fit_transform(holes)
    assert not np.isnan(X).any()
    assert features.features_.used == ["size", "id"]
    assert features.get_feature_names_out()[-1] == "size is missing"


def test_it_is_an_estimator_of_scikit_learn(frame):
    features = TableFeatures().set_params(columns=["size", "color"])
    again = clone(features)
    assert again.get_params() == {"columns": ["size", "color"], "impute": False, "text": ()}
    with pytest.raises(NotFittedError):
        again.transform(frame)
    loaded = pickle.loads(pickle.dumps(features.fit(frame)))
    assert_array_equal(loaded.transform(frame), features.transform(frame))
    named = clone(features).set_output(transform="pandas").fit_transform(frame)
    assert list(named.columns) == ["size", "color = blue", "color = green", "color = red"]


def test_it_is_a_step_before_a_classifier_or_inside_of_one(frame):
    labels = np.where(frame["color"] == "red", "warm", "cold").astype(object)
    labels[::4] = None
    linear = LogisticRegression(max_iter=500)
    outside = make_pipeline(
        TableFeatures(["size", "color"]), DecoupledClassifier(linear, refit=False, random_state=0)
    ).fit(frame, labels)
    steps = make_pipeline(TableFeatures(["size", "color"]), linear)
    inside = DecoupledClassifier(steps, refit=False, random_state=0).fit(frame, labels)
    for clf in (outside, inside):
        assert np.mean((clf.predict(frame) == "warm") == (frame["color"] == "red")) > 0.95
    assert audit(inside, labels).table().shape == (60, 7)


def test_arrays_and_a_missing_extra_are_one_clear_line(frame, monkeypatch):
    with pytest.raises(TypeError, match=r"takes a DataFrame .* ndarray \(3, 2\)\. Arrays of numb"):
        TableFeatures().fit(np.zeros((3, 2)))
    with pytest.raises(ValueError, match=r"no column 'sise'.* Did you mean 'size'"):
        TableFeatures(["sise"]).fit(frame)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ImportError, match="pyarrow: pip install"):
        TableFeatures().fit(frame)


def test_columns_of_words_can_be_declared():
    frame = pd.DataFrame({"size": ["1", "2", "3"] * 9, "code": [*"12" * 13, "x"]})
    with pytest.raises(ValueError, match=r"Row 27, column 'code': 'x' is not a number"):
        TableFeatures().fit(frame)
    names = TableFeatures(text=["code"]).fit(frame).get_feature_names_out()
    assert names.tolist() == ["size", "code = 1", "code = 2", "code = x"]
