"""Checks of arrays: good input comes back as NumPy, bad input is named with its place and value."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from looselabels._validation import (
    as_counts,
    as_float_array,
    as_numpy,
    check_class_prior,
    check_entries,
    check_label_index,
    check_pseudocounts,
    check_row_stochastic,
    check_sample_weight,
    check_scores,
    check_size,
    import_extra,
    parse_json,
    short_repr,
    single_from_half,
    some_of,
)

ROWS = np.array([[0.25, 0.75], [1.0, 0.0], [0.5, 0.5]])


# ------------------------------------------------------------------------------------------ arrays


def test_single_precision_is_kept_and_integers_become_double(xp):
    single = xp.asarray([[1, 2]], dtype=xp.float32)
    assert as_float_array("x", single) is single
    assert as_float_array("x", xp.asarray([[1, 2]])).dtype == xp.float64
    assert as_float_array("x", [[1, 2]]).dtype == np.float64


def test_arrays_of_any_library_become_numpy(xp):
    array = as_numpy("x", xp.asarray([[0.5, 2.0]], dtype=xp.float32))
    assert isinstance(array, np.ndarray)
    assert array.dtype == np.float64
    assert array.tolist() == [[0.5, 2.0]]


def test_rows_of_half_precision_are_normalized_unless_they_are_far_from_1():
    rows = np.array([[0.2, 0.8], [0.2, 0.7], [0, 0], [np.nan, 1]], dtype=np.float16)
    single = single_from_half(rows)
    assert single.dtype == np.float32
    assert_allclose(single[0].sum(dtype=float), 1, atol=1e-7)
    assert_array_equal(single[1:], rows[1:].astype(np.float32))
    assert single_from_half(ROWS) is ROWS
    label_proba, _, _ = check_scores(rows[:1], [0])
    assert_allclose(label_proba, [[0.2, 0.8]], atol=1e-3)
    with pytest.raises(ValueError, match=r"label_proba must sum to 1; row 1 sums to 0\.9"):
        check_scores(rows[:2], [0, 0])


@pytest.mark.parametrize("number", [10**400, -(10**400)])
def test_a_whole_number_that_no_float_can_be_is_an_error_of_our_own(number):
    with pytest.raises(ValueError, match=r"^sizes must be an array of numbers: .* above 1\.8e308"):
        as_numpy("sizes", [1, number])


def test_text_is_not_an_array_of_numbers():
    with pytest.raises(ValueError, match=r"^rates must be an array of numbers: .*'many'"):
        as_numpy("rates", ["many"])


# ------------------------------------------------------------------- label_proba, labels, weights


def test_scores_come_back_as_numpy_arrays(xp):
    found = check_scores(xp.asarray(ROWS), xp.asarray([1, 0, 1]), xp.asarray([1.0, 0.0, 2.0]))
    assert [type(array) for array in found] == [np.ndarray] * 3
    assert_array_equal(found[0], ROWS)
    assert_array_equal(found[1], [1, 0, 1])
    assert_array_equal(found[2], [1, 0, 2])


def test_without_weights_each_row_counts_once():
    assert_array_equal(check_scores(ROWS, [0, 0, 1])[2], [1, 1, 1])


def test_scores_of_single_precision_are_normalized():
    label_proba, _, _ = check_scores(ROWS * (1 + 9e-6), [0, 0, 1])
    assert_allclose(label_proba, ROWS, rtol=1e-15)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            (ROWS * (1 + 1.1e-5), [0, 0, 1]),
            "row of label_proba must sum to 1; row 0 sums to 1.00001",
        ),
        ((-ROWS, [0, 0, 1]), "label_proba must hold .* not negative; row 0, column 0 is -0.25"),
        ((ROWS[0], [0]), r"label_proba must be a 2-D array .*; its shape is \(2,\)"),
        ((ROWS, [0, 0]), r"label_index has shape \(2,\); 3 rows need \(3,\)"),
        ((ROWS, [0, 0, 2]), "label_index must be between 0 and 1; row 2 is 2"),
        ((ROWS, [0, -1, 1]), "label_index must be between 0 and 1; row 1 is -1"),
        ((ROWS, [0.0, 0.0, 1.0]), "label_index must hold integers; its type is float64"),
        ((ROWS, [True, False, True]), "label_index must hold integers; its type is bool"),
        ((ROWS, [0, 0, 1], [1, 1]), r"sample_weight has shape \(2,\); 3 rows need \(3,\)"),
        ((ROWS, [0, 0, 1], [1, np.nan, 1]), "sample_weight must hold .*; row 1 is nan"),
        (
            (ROWS, [0, 0, 1], [0, 0, 0]),
            "must contain a positive number; all are zero",
        ),
    ],
)
def test_bad_scores_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        check_scores(*arguments)


def test_rows_are_normalized_within_rounding_only(xp):
    rows = xp.asarray(ROWS)
    assert_allclose(as_numpy("rows", check_row_stochastic("rows", rows * (1 + 1e-8))), ROWS)
    with pytest.raises(ValueError, match=r"row 0 sums to 1\.0000001\. Divide each row"):
        check_row_stochastic("rows", rows * (1 + 1e-7))


def test_columns_that_sum_to_one_suggest_the_transpose():
    with pytest.raises(ValueError, match=r"row 'a' sums to 0.3. Its columns do: pass the transp"):
        check_row_stochastic("rows", np.array([[0.1, 0.2], [0.9, 0.8]]), ["a", "b"])


def test_entries_are_named_by_row_and_column(xp):
    check_entries("x", xp.asarray([[0.0, 1.0]]))
    with pytest.raises(ValueError, match=r"^x must hold .*; row 1, column 0 is inf\.$"):
        check_entries("x", xp.asarray([[0.0, 1.0], [xp.inf, -1.0]]))
    with pytest.raises(ValueError, match=r"; row 'b' is -2\.0\.$"):
        check_entries("x", xp.asarray([0.0, -2.0]), ["a", "b"])


def test_weights_stay_in_the_library_of_the_rows(xp):
    weight = check_sample_weight([1, 2, 0], xp.asarray(ROWS))
    assert type(weight) is type(xp.asarray(ROWS))
    assert check_sample_weight(None, xp.asarray(ROWS)) is None
    index = check_label_index([1, 0, 1], 2, xp.asarray(ROWS))
    assert type(index) is type(xp.asarray(ROWS))


def test_weights_below_one_are_shares():
    assert as_counts(np.array([0.1, 0.2])).tolist() == [0.5, 1]
    assert as_counts(np.array([0.5, 2.0])).tolist() == [0.5, 2]


def test_a_class_prior_is_a_distribution_over_the_classes():
    assert check_class_prior([0.25, 0.75], 2).tolist() == [0.25, 0.75]
    with pytest.raises(ValueError, match=r"^class_prior must sum to 1; it sums to 1\.5\. Divide"):
        check_class_prior([0.75, 0.75], 2)
    with pytest.raises(ValueError, match=r"it sums to 0\.9999999\. Divide"):
        check_class_prior([0.5, 0.4999999], 2)
    with pytest.raises(ValueError, match=r"class_prior must hold .*; row 1 is -0\.5"):
        check_class_prior([1.5, -0.5], 2)
    with pytest.raises(ValueError, match=r"class_prior has shape \(2,\); 3 classes need \(3,\)"):
        check_class_prior([0.5, 0.5], 3)


def test_pseudocounts_keep_the_promises_of_the_transition():
    transition = np.array([[1.0, 0.0], [0.5, 0.5]])
    assert check_pseudocounts([[3, 0], [1, 1]], transition).tolist() == [[3, 0], [1, 1]]
    with pytest.raises(
        ValueError, match=r"must be 0 where the transition is 0, .* row 0, column 1"
    ):
        check_pseudocounts([[3, 1], [1, 1]], transition)


# ------------------------------------------------------------------------- wording, extras and JSON


def test_values_in_messages_are_short_and_printable():
    assert short_repr("cat") == "'cat'"
    assert short_repr("a\nb\x1b") == r"'a\nb\x1b'"
    assert short_repr("x" * 100) == "'" + "x" * 58 + "…"
    assert some_of(list("abc")) == "'a', 'b', 'c'"
    assert some_of(range(6)) == "0, 1, 2, 3, 4, 5"  # not "and 1 more", which could hide None
    assert some_of(range(7)) == "0, 1, 2, 3, 4 and 2 more"


@pytest.mark.parametrize(
    ("n_rows", "size"), [(2**14, "2.0 GiB"), (10**6, "122.1 GiB"), (10**9, "119.2 TiB")]
)
def test_a_matrix_too_large_for_memory_is_refused_with_its_size(n_rows, size):
    check_size("matrix", 2**14, 2**14)
    with pytest.raises(ValueError, match=f"^matrix would need {size} .{n_rows} × 16385 numbers"):
        check_size("matrix", n_rows, 2**14 + 1)


def test_an_extra_that_is_not_installed_is_one_line():
    assert import_extra("json", "json").loads("1") == 1
    with pytest.raises(ImportError, match=r"^This needs no_such_library: pip install it$"):
        import_extra("no_such_library.part", "it")


def test_json_is_strict():
    assert parse_json('{"a": [1, null]}') == {"a": [1, None]}
    for text in ("NaN", "[Infinity]", "-Infinity"):
        with pytest.raises(ValueError, match="is not allowed"):
            parse_json(text)
    with pytest.raises(ValueError, match="the key 'a' occurs twice"):
        parse_json('{"b": {"a": 1, "a": 1}}')
