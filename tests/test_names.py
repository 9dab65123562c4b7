"""Names of classes and labels: plain Python whatever library they come from, and distinct."""

import numpy as np
import pytest
from hypothesis import given
from numpy.testing import assert_array_equal
from sklearn.exceptions import DataConversionWarning

from looselabels._names import (
    UNLABELED,
    as_column,
    in_label_order,
    listed,
    match_names,
    numbers_by_name,
    plain_name,
    read_column,
    read_names,
    read_table,
    shown,
    swap_name,
)
from tests.strategies import names

pandas = pytest.importorskip("pandas", reason="the extra `tables` is not installed")
polars = pytest.importorskip("polars", reason="polars is not installed")


# ----------------------------------------------------------------------------------- single names


def test_the_missing_values_of_all_libraries_are_the_missing_label():
    not_a_time = np.datetime64("NaT", "s")
    for missing in (None, np.nan, np.float32("nan"), pandas.NA, pandas.NaT, not_a_time):
        assert plain_name(missing) is None
    assert plain_name(("web", np.nan)) == ("web", None)


@pytest.mark.parametrize(
    "labels", [[0.0, 1.0, 1.0], [0, 1, 1], ["a", "b", "b"], [True, False, False]]
)
def test_labels_that_are_masked_are_missing(labels):
    found, index = read_column("y", np.ma.array(labels, mask=[False, False, True]))
    assert found == (*labels[:2], None)
    assert index.tolist() == [0, 1, 2]


def test_scalars_of_numpy_become_plain():
    plain = [plain_name(name) for name in (np.int64(1), np.float32(0.5), np.str_("x"), np.True_)]
    assert plain == [1, 0.5, "x", True]
    assert [type(name) for name in plain] == [int, float, str, bool]


@pytest.mark.parametrize("name", [b"cat", np.inf, [1], {}, object])
def test_other_values_cannot_be_names(name):
    with pytest.raises(ValueError, match=r"cannot name a class or label; use text"):
        plain_name(name)


def test_complex_numbers_are_refused_in_the_words_of_scikit_learn():
    with pytest.raises(ValueError, match=r"^Complex data not supported"):
        plain_name(1j)


@given(names(4, missing=True))
def test_names_are_read_unchanged(given_names):
    assert read_names("labels", given_names) == tuple(given_names)


def test_names_that_become_equal_are_not_distinct():
    with pytest.raises(ValueError, match=r"^labels must be distinct; \[1, '\(unlabeled\)'\] occur"):
        read_names("labels", [1, np.int8(1), None, np.nan, 2])


def test_the_displayed_text_of_the_missing_label_cannot_be_a_name():
    for name in (UNLABELED, ("web", UNLABELED)):
        with pytest.raises(ValueError, match="the text that displays the missing label; use None"):
            read_names("labels", ["cat", name])


def test_names_are_displayed_in_one_short_line():
    assert shown(1.5) == "1.5"
    assert shown(("a", ("b", None))) == "a: b: (unlabeled)"
    assert shown("a\nb") == r"a\nb"
    assert shown("x" * 50, 5) == "xxxx…"
    assert listed([]) == "[]"
    assert listed(("a", None), 1) == "('a', '(unlabeled)')"
    assert listed(("a", None, "b"), 1) == "('a' and 2 more)"


def test_a_name_is_replaced_inside_tuples_too():
    assert swap_name(("web", ("a", None)), None, "?") == ("web", ("a", "?"))
    assert swap_name("web", None, "?") == "web"


# ----------------------------------------------------------------------------- matching by name


def test_names_are_matched_whatever_their_order():
    assert match_names("x", ["b", "a", "c"], ("a", "b", "c")) == [1, 0, 2]
    with pytest.raises(ValueError, match=r"^x names \['d'\]; it can name \('a', 'b'\)\.$"):
        match_names("x", ["a", "b", "d"], ("a", "b"))
    with pytest.raises(ValueError, match=r"^x lacks \['b'\]; it must name \('a', 'b'\)\.$"):
        match_names("x", ["a"], ("a", "b"))


@pytest.mark.parametrize(
    "values",
    [0.5, [0.5, 0.5], {"b": 0.5, "a": 0.5}, pandas.Series({"b": 0.5, "a": 0.5}), (0.5, 0.5)],
    ids=lambda values: type(values).__name__,
)
def test_numbers_are_one_for_all_in_order_or_by_name(values):
    assert numbers_by_name("rate", values, ("a", "b"), maximum=1).tolist() == [0.5, 0.5]


def test_a_mapping_of_numbers_is_put_in_the_order_of_the_names():
    assert numbers_by_name("rate", {"b": 2, "a": 1}, ("a", "b")).tolist() == [1, 2]
    series = pandas.Series([2.0, 1.0], ["b", "a"])
    assert numbers_by_name("rate", series, ("a", "b")).tolist() == [1, 2]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([0.1, 1.5], r"^rate of 'b' is 1\.5; it must be between 0 and 1\.$"),
        (-1, r"^rate of 'a' is -1; it must be between 0 and 1\.$"),
        ([0.1, np.nan], r"^rate of 'b' is nan"),
        ([0.1], r"^rate has shape \(1,\); it needs one number each for \('a', 'b'\)\.$"),
    ],
)
def test_a_number_out_of_range_is_named(values, message):
    with pytest.raises(ValueError, match=message):
        numbers_by_name("rate", values, ("a", "b"), maximum=1)


# ---------------------------------------------------------------------------- columns and tables


def test_the_names_of_a_column_are_in_order_of_appearance():
    found, index = read_column("y", np.array(["b", None, "a", "b", np.nan], dtype=object))
    assert found == ("b", None, "a")
    assert_array_equal(index, [0, 1, 2, 0, 1])


@pytest.mark.parametrize("column", [[True, 1, 0], [0.0, False], [np.True_, 1, None], [1, np.True_]])
def test_true_is_not_taken_for_one(column):
    with pytest.raises(ValueError, match=r"one type; y contains .* next to True or False"):
        read_column("y", column)


def test_bool_alone_is_a_label():
    names, index = read_column("y", [True, None, np.nan, np.False_, True])
    assert names == (True, None, False)
    assert index.tolist() == [0, 1, 1, 2, 0]


def test_all_nan_of_a_float_column_are_one_label():
    found, index = read_column("y", np.array([np.nan, 2.0, np.nan]))
    assert found == (None, 2.0)
    assert_array_equal(index, [0, 1, 0])


def test_unused_categories_are_among_the_names():
    column = pandas.Series(["a", None], dtype=pandas.CategoricalDtype(["z", "a"]))
    found, index = read_column("y", column)
    assert found == ("a", None, "z")
    assert_array_equal(index, [0, 1])


def test_a_table_with_one_column_is_a_column_with_a_warning():
    assert as_column(["a", "b"]) == ["a", "b"]
    for table in (np.array([["a"], ["b"]]), pandas.DataFrame({"y": ["a", "b"]})):
        with pytest.warns(DataConversionWarning, match="A column-vector y was passed"):
            assert list(as_column(table)) == ["a", "b"]
    with pytest.raises(ValueError, match="requires y to be passed, but the target y is None"):
        as_column(None)


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_a_frame_is_read_in_its_own_order_or_the_one_given(library):
    if library == "pandas":
        frame = pandas.DataFrame([[0.1, 0.9], [0.2, 0.8]], ["x", "y"], ["a", UNLABELED])
    else:
        frame = polars.DataFrame({"": ["x", "y"], "a": [0.1, 0.2], UNLABELED: [0.9, 0.8]})
    array, rows, columns = read_table("t", frame, None, None)
    assert (rows, columns) == (("x", "y"), ("a", None))
    assert array.tolist() == [[0.1, 0.9], [0.2, 0.8]]
    array, rows, columns = read_table("t", frame, ["y", "x"], [None, "a"])
    assert (rows, columns) == (("y", "x"), (None, "a"))
    assert array.tolist() == [[0.8, 0.2], [0.9, 0.1]]


def test_numbers_that_a_file_turned_into_text_are_found():
    frame = pandas.DataFrame([[0.1, 0.9]], ["1"], ["2.5", "True"])
    assert read_table("t", frame, [1], [True, 2.5])[0].tolist() == [[0.9, 0.1]]


def test_an_array_needs_names_for_its_shape():
    with pytest.raises(ValueError, match=r"^t is an array without names; pass rows and columns"):
        read_table("t", np.eye(2), None, None, words=("rows", "columns"))
    with pytest.raises(
        ValueError,
        match=r"^t has shape \(1, 2\); 2 classes and 1 labels need \(2, 1\)\. Pass the transpose",
    ):
        read_table("t", [[1, 2]], ["a", "b"], ["x"])


# ------------------------------------------------------------------------ columns of label_proba


def test_columns_of_label_proba_are_matched_by_name():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"(unlabeled)": [0.1], "dog": [0.2], "cat": [0.7]})
    found = in_label_order("label_proba", frame, ("cat", "dog", None))
    np.testing.assert_array_equal(found, [[0.7, 0.2, 0.1]])


def test_columns_that_do_not_match_are_named():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"cat": [0.7], "dgo": [0.3]})
    with pytest.raises(ValueError, match=r"columns of label_proba names \['dgo'\]; .*'cat', 'dog'"):
        in_label_order("label_proba", frame, ("cat", "dog"))
    with pytest.raises(ValueError, match=r"columns of label_proba lacks \['dog'\]"):
        in_label_order("label_proba", frame[["cat"]], ("cat", "dog"))


def test_arrays_have_no_names():
    array = np.array([[0.7, 0.3]])
    assert in_label_order("label_proba", array, ("cat", "dog")) is array
