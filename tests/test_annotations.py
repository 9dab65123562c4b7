"""Annotations: several labels per row, from wide tables and from long ones."""

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from looselabels.annotations import (
    Annotations,
    Answers,
    annotations_to_table,
    read_annotations,
    warn_if_each_annotator_uses_one_label,
    warn_if_label_sets_are_disjoint,
    warn_of_labels_that_look_missing,
)
from looselabels.exceptions import IdentifiabilityWarning

pandas = pytest.importorskip("pandas", reason="the extra `tables` is not installed")
polars = pytest.importorskip("polars", reason="polars is not installed")

TABLE = np.array([["cat", None, "dog"], [None, None, None], ["dog", "dog", None]], dtype=object)


# ------------------------------------------------------------------------------------ wide tables


def test_columns_are_annotators_and_missing_values_are_no_answers():
    found = Annotations.from_table(pandas.DataFrame(TABLE, columns=["ann", "bob", "eve"]))
    assert found.annotators == ("ann", "bob", "eve")
    assert found.labels == ("cat", "dog")
    assert_array_equal(found.answers.row, [0, 0, 2, 2])
    assert_array_equal(found.answers.annotator, [0, 2, 0, 1])
    assert_array_equal(found.answers.label, [0, 1, 1, 1])
    assert (len(found), found.n_answers, found.answers.missing_label) == (3, 4, None)


def test_tables_of_all_libraries_and_kinds_of_missing_values_agree():
    numbers = np.array([[0, np.nan, 1], [np.nan] * 3, [1, 1, np.nan]])
    frame = pandas.DataFrame(numbers, columns=["0", "1", "2"])
    wide = [frame, frame.astype("Int64"), frame.astype(object).where(frame.notna(), None)]
    wide.append(polars.DataFrame(numbers, schema=["0", "1", "2"], nan_to_null=True))
    found = [Annotations.from_table(table) for table in wide]
    assert all(other == found[0] for other in found)
    assert found[0].labels == (0, 1)
    assert Annotations.from_table(numbers).annotators == (0, 1, 2)
    assert_array_equal(Annotations.from_table(numbers).answers.label, found[0].answers.label)


def test_an_annotator_without_answers_is_kept():
    found = Annotations.from_table(np.array([[1, None], [0, None]], dtype=object))
    assert found.annotators == (0, 1)
    assert found.answers.n_annotators == 2


def test_no_answer_can_be_a_label_which_comes_last():
    found = Annotations.from_table(TABLE, missing_is_label=True)
    assert found.labels == ("cat", "dog", None)
    assert (found.answers.missing_label, found.answers.n_labels, found.n_answers) == (2, 3, 4)


def test_a_table_without_answers_has_rows():
    found = Annotations.from_table(np.full((2, 2), None))
    assert (len(found), found.n_answers, found.labels) == (2, 0, ())


def test_a_bad_label_is_named_with_its_column():
    with pytest.raises(ValueError, match=r"column 'bob' of Y"):
        Annotations.from_table(pandas.DataFrame({"ann": [1, 2], "bob": [[1], [2]]}))
    with pytest.raises(ValueError, match=r"labels must be of one type"):
        Annotations.from_table(np.array([["cat", 1]], dtype=object))
    with pytest.raises(ValueError, match=r"columns of Y must be distinct; \['ann'\]"):
        Annotations.from_table(pandas.DataFrame([[1, 2]], columns=["ann", "ann"]))
    for missing in (None, np.nan):
        with pytest.raises(ValueError, match=r"column 1 of Y has no name; name its annotator"):
            Annotations.from_table(pandas.DataFrame([[1, 2]], columns=["ann", missing]))


def test_a_column_is_no_table():
    assert read_annotations(["cat", "dog"]) is None
    assert read_annotations(np.array([[1], [2]])) is None
    assert read_annotations([("web", "cat"), ("web", "dog")]) is None  # tuples can be labels
    with pytest.raises(ValueError, match=r"one column per annotator.*annotations_to_table"):
        Annotations.from_table([1, 2])


def test_tables_and_annotations_are_read():
    found = read_annotations(TABLE)
    assert found == Annotations.from_table(TABLE)
    assert read_annotations(found) is found


# ------------------------------------------------------------------------------------ long tables


def test_triples_give_the_same_as_the_table():
    wide = Annotations.from_table(pandas.DataFrame(TABLE, columns=["ann", "bob", "eve"]))
    rows, people = [2, 0, 2, 0], ["bob", "ann", "ann", "eve"]
    labels = ["dog", "cat", "dog", "dog"]
    assert annotations_to_table(rows, people, labels) == wide
    names = np.array(["x", "y", "z"])
    assert annotations_to_table(names[rows], people, labels, index=names) == wide


def test_missing_labels_in_triples_are_no_answers():
    found = annotations_to_table([0, 1], ["ann", "bob"], ["cat", None])
    assert found.n_answers == 1
    assert found.annotators == ("ann", "bob")
    assert len(found) == 2


def test_rows_at_the_end_may_have_no_answers():
    assert len(annotations_to_table([0], ["ann"], ["cat"], n_rows=5)) == 5


def test_two_answers_by_one_annotator_for_one_row_are_an_error():
    message = r"row 7 has several answers by annotator 'ann', 'cat' and 'dog'; 1 answers repeat"
    with pytest.raises(ValueError, match=message):
        annotations_to_table([7, 1, 7], ["ann", "ann", "ann"], ["cat", "cat", "dog"])


def test_answers_for_unknown_rows_are_named():
    with pytest.raises(ValueError, match=r"rows contains 'q', 'r', which index does not have"):
        annotations_to_table(["a", "q", "r"], [1, 1, 1], [0, 0, 0], index=["a", "b"])
    with pytest.raises(ValueError, match=r"rows contains -1, 9; positions are between 0 and 2"):
        annotations_to_table([0, 9, -1], [1, 1, 1], [0, 0, 0], n_rows=3)
    with pytest.raises(ValueError, match=r"if they are identifiers, pass those of all rows"):
        annotations_to_table(["a"], [1], [0])


def test_triples_must_be_complete():
    with pytest.raises(ValueError, match=r"equal length; they have 2, 1 and 2"):
        annotations_to_table([0, 1], ["ann"], [0, 1])
    with pytest.raises(ValueError, match=r"answer 1 has no annotator"):
        annotations_to_table([0, 1], ["ann", None], [0, 1])


# ---------------------------------------------------------------------------------------- the value


@given(st.lists(st.integers(0, 4), max_size=9), st.integers(0, 2**32 - 1))
def test_taking_rows_is_taking_rows_of_the_table(rows, seed):
    table = np.random.default_rng(seed).choice([None, "a", "b"], size=(5, 3))
    table[0] = "a"  # some answers in any case
    found = Annotations.from_table(table).take(rows)
    assert_array_equal(found.to_frame().to_numpy(), table[np.array(rows, int)])


def test_rows_can_be_taken_by_a_mask():
    found = Annotations.from_table(TABLE)
    assert found.take(np.array([True, False, True])) == found.take([0, 2])


def test_annotations_cannot_be_changed():
    found = Annotations.from_table(TABLE)
    with pytest.raises(AttributeError):
        found.labels = ()
    with pytest.raises(ValueError, match="read-only"):
        found.answers.label[0] = 1
    assert pickle.loads(pickle.dumps(found)) == found


def test_memory_is_that_of_the_answers():
    n = 10_000
    found = annotations_to_table(np.arange(n), np.arange(n), np.zeros(n, int), n_rows=n)
    assert sum(array.nbytes for array in found.answers[:3]) == 3 * 8 * n


def test_label_sets_without_a_common_label_are_warned_about():
    people = ["ann", "ann", "bob", "bob"]
    with pytest.warns(IdentifiabilityWarning, match=r"both \['a', 'b'\] and \['x', 'y'\]"):
        warn_if_label_sets_are_disjoint(annotations_to_table([0, 1, 0, 1], people, list("abxy")))
    # annotators who always say the same, and sets that overlap
    warn_if_label_sets_are_disjoint(annotations_to_table([0, 1, 0, 1], people, list("aabb")))
    warn_if_label_sets_are_disjoint(annotations_to_table([0, 1, 0, 1], people, list("abbc")))


def test_annotators_who_always_give_the_same_label_are_warned_about():
    rules = [["cat", None, None], [None, "dog", None], ["cat", "dog", None]] * 4
    with pytest.warns(IdentifiabilityWarning, match="0 always says 'cat', and 1 always says 'dog'"):
        warn_if_each_annotator_uses_one_label(Annotations.from_table(np.array(rules)))


@pytest.mark.parametrize(
    ("table", "missing_is_label"),
    [
        ([["cat", None], [None, "dog"]] * 5, True),  # silence is a label
        ([["cat", None], ["cat", "cat"]] * 5, False),  # they agree
        ([["cat", None], [None, "dog"]] * 4, False),  # by chance
        ([["cat", None], [None, "dog"]] * 5 + [["dog", None]], False),
        (np.where(np.eye(10), [["cat", "dog"] * 5], None), False),  # one answer each
    ],
)
def test_annotators_who_give_different_labels_are_not_warned_about(table, missing_is_label):
    answers = Annotations.from_table(np.array(table), missing_is_label=missing_is_label)
    warn_if_each_annotator_uses_one_label(answers)


@pytest.mark.parametrize(
    ("table", "label"),
    [
        (np.array([[-1, 0], [1, -1]]), "-1 in 2 answers"),
        (np.array([[-1.0, 1.0], [2.0, 1.0]]), "-1 in 1 answers"),
        (np.array([["-1", "0"], ["1", "-1"]]), "'-1' in 2 answers"),
        (np.array([["", "a"], ["b", "a"]]), "'' in 1 answers"),
        (np.array([[np.nan, "a"], ["b", "a"]]), "'nan' in 1 answers"),
        (np.array([[None, "None"], ["b", "a"]], dtype=object), "'None' in 1 answers"),
    ],
)
def test_a_label_that_other_tools_use_for_no_answer_is_warned_about(table, label):
    with pytest.warns(UserWarning, match=f"Y contains the label {label}.*replace it with None"):
        warn_of_labels_that_look_missing(Annotations.from_table(table))


@pytest.mark.parametrize(
    "table",
    [
        np.array([[-1, 1], [1, 1]]),  # both are classes
        np.array([["-1", "1"], ["1", "1"]]),
        np.array([[-1, -2], [1, 0]]),
        np.array([[-1, None], [1, 0]], dtype=object),  # there is another sign for no answer
        np.array([["a", "b"], ["a", "none of these"]]),
    ],
)
def test_other_labels_are_classes(table):
    warn_of_labels_that_look_missing(Annotations.from_table(table))


def test_answers_of_a_row_are_counted():
    answers = Answers(np.array([0, 0, 2]), np.array([0, 1, 0]), np.zeros(3, int), 4, 2, 1)
    assert_array_equal(answers.n_answers, [2, 0, 1, 0])
