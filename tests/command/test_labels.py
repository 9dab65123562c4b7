"""The labels of a table."""

import numpy as np
import pytest

from looselabels import Transition
from looselabels.command.labels import (
    MIN_ROWS,
    Labels,
    cells_as_labels,
    check_known,
    note_copies,
    read_labels,
)
from looselabels.command.notes import collect_warnings
from tests.command.calls import pd


def column(*cells):
    return pd.DataFrame({"y": pd.Series(cells, dtype=object)})


def test_empty_cells_and_specified_ones_are_unlabeled():
    frame = column(*["a", None, "b", "?", np.nan, pd.NA] * 2)
    assert read_labels(frame, Labels("y", ("?",))) == ["a", None, "b", None, None, None] * 2


def test_labels_keep_their_type_and_their_spaces():
    for cells in (["a", " a "], [1, 2], [True, False], ["NA", "null"], ["01", "1"]):
        with collect_warnings():
            assert read_labels(column(*cells * 5), Labels("y")) == cells * 5


@pytest.mark.parametrize(
    ("cells", "unlabeled", "expected"),
    [
        ([-1, 1], ("-1",), [None, 1]),
        ([-1.0, 1.0], ("-1",), [None, 1]),
        ([True, False], ("False",), [True, None]),
        ([True, False], ("false",), [True, None]),
        (["-1", "-1.0"], ("-1",), [None, "-1.0"]),  # text is not converted
    ],
)
def test_what_means_unlabeled_is_text_whatever_the_labels_are(cells, unlabeled, expected):
    assert cells_as_labels(pd.Series(cells, dtype=object), unlabeled) == expected


@pytest.mark.parametrize(
    ("cells", "known"),
    [
        (["1", "0"], (1, 0)),
        (["1.0", "0.0"], (1, 0)),
        (["True", "False"], (True, False)),
        (["true", "false"], (True, False)),
        (["TRUE", "FALSE"], ("True", "False")),  # as a spreadsheet writes them
        (["TRUE", "FALSE"], (True, False)),
        ([1, 0], ("1", "0")),
        (["v1.0", "v1"], ("v1.0", "v1")),
        (["True", "true"], ("True", "true")),
    ],
)
def test_text_is_read_as_the_labels_that_are_known(cells, known):
    assert cells_as_labels(pd.Series(cells, dtype=object), (), known) == list(known)


def test_identifiers_are_refused_and_many_labels_are_not():
    few = [f"label {i}" for i in range(40)]
    assert len(set(read_labels(column(*few * 3), Labels("y")))) == 40
    with pytest.raises(ValueError, match=r"'y' has 40 different labels in 60 labeled rows\. Is it"):
        read_labels(column(*few, *few[:20]), Labels("y"))
    twenty = column(*few[:20])  # so few may be classes
    assert len(read_labels(twenty, Labels("y"))) == 20
    with pytest.raises(ValueError, match=rf"has 9 rows; at least {MIN_ROWS} are needed"):
        read_labels(column(*few[:9]), Labels("y"))


@pytest.mark.parametrize(
    ("cells", "options", "message"),
    [
        ([None] * 12, {}, "contains no label"),
        (["(unlabeled)", "a"] * 6, {}, "If it means 'no label', pass --unlabeled"),
        ([0.5, 1.0] * 6, {}, "looks like a measurement"),
        (["a", None] * 6, {}, r"only one label, \['a'\].*--negative other"),
        (["a", "b"] * 6, {"negative": "b"}, "--unlabeled 'b' if these rows are unlabeled"),
        (["True", "False"] * 6, {"negative": "FALSE"}, "label 'False'.* pass --unlabeled 'False'"),
        (["1.0", "0.0"] * 6, {"negative": "0"}, r"label '0\.0'.* pass --unlabeled '0\.0'"),
        ([f"label {i}" for i in range(1001)] * 2, {}, "at most 1,000 are possible"),
    ],
)
def test_labels_from_which_nothing_can_be_learned_are_refused(cells, options, message):
    with pytest.raises(ValueError, match=message):
        read_labels(column(*cells), Labels("y", **options))


def test_one_label_and_a_negative_class_are_enough():
    assert read_labels(column(*["a", None] * 6), Labels("y", negative="b")) == ["a", None] * 6


def test_words_that_match_no_cell_are_warnings():
    merge = {"Cat ": "cat", "cow": "dog"}
    with collect_warnings() as notes:
        labels = Labels("y", unlabeled=("?",), merge=merge)
        assert set(read_labels(column(*["Cat ", "cat", "dog"] * 4), labels)) == {"cat", "dog"}
    assert notes == ["--unlabeled '?' matches no cell.", "--merge 'cow' matches no cell."]


def test_a_message_about_unknown_labels_lists_only_what_a_cell_can_spell():
    known = (*"abcdefg", None)
    allowed = r"known labels are \('a', 'b', 'c', 'd', 'e' and 2 more\)"
    with pytest.raises(ValueError, match=rf"holds \['x'\]; the {allowed}\. Correct"):
        check_known(["a", "x", None], known, "y")
    with pytest.raises(ValueError, match=rf"holds \['x'\]; the {allowed}\. Correct"):
        check_known(["a", "x", None], known[:-1], "y")


def test_labels_must_be_those_of_the_design():
    known = Labels("y", design=Transition.identity(["a", "b"]), noise=0.0)
    assert read_labels(column(*"abababababab"), known) == list("abababababab")
    with pytest.raises(ValueError, match=r"holds \['c'\]; the known labels are \('a', 'b'\)"):
        read_labels(column(*"abc" * 4), known)
    with pytest.raises(ValueError, match="the design does not include a missing label"):
        check_known(["a", None], known.design.labels, "y")


def test_stripped_labels_keep_their_case_and_single_spaces():
    cells = [" a  b\t", "a b", "A b", "\u00a0a b", "  ", " ?"]
    found = cells_as_labels(pd.Series(cells, dtype=object), ("?",), strip=True)
    assert found == ["a b", "a b", "A b", "a b", None, None]


@pytest.mark.parametrize(
    ("cells", "merge", "expected"),
    [
        (["a", "A", "b"], {"a": "A"}, ["A", "A", "b"]),
        ([1, 2, 3], {"3": "2"}, [1, 2, 2]),
        ([1.0, 2.0, 3.0], {"3": "other"}, [1, 2, "other"]),
        ([" a", "a"], {" a": "b"}, ["b", "a"]),
        ([None, "None"], {"None": "b"}, [None, "b"]),
        ([None, "None"], {"a": "b"}, [None, "None"]),
        ([1.0, 2.0], {"2": "1.0"}, [1.0, 1.0]),
    ],
)
def test_merged_labels_keep_the_type_of_the_label_they_join(cells, merge, expected):
    assert cells_as_labels(pd.Series(cells, dtype=object), merge=merge) == expected


def test_merged_labels_are_found_in_the_design_and_among_missing_ones():
    known = cells_as_labels(pd.Series(["one", "none"]), ("0",), (1, 2), merge={"one": "1"})
    assert known == [1, "none"]
    assert cells_as_labels(pd.Series(["none"]), ("0",), merge={"none": "0"}) == [None]


def test_a_column_that_is_nearly_a_copy_of_the_labels_is_named():
    y = [*["cat", "dog", "emu"] * 100, None]
    code = pd.Series([*[1, 2, 3] * 100, None])
    code[[0, 1]] = [2, 3]  # two errors were corrected
    frame = pd.DataFrame({"code": code, "size": np.arange(301) % 7, "row": np.arange(301)})
    (note,) = note_copies(frame, y, ["code", "size", "row"])
    assert note.startswith("Column 'code' alone predicts 99.3% of the labels: if it was made from")
    code[2:10] = None  # other rows with an empty cell have other labels
    assert note_copies(frame.assign(code=code), y, ["code"]) == []
    assert note_copies(frame, [*["cat"] * 280, *["dog"] * 20, None], ["code"]) == []


def test_labels_of_sources_and_columns_of_any_type_are_compared():
    y = [("web", "cat"), ("web", "dog")] * 50
    frame = pd.DataFrame({"flag": [True, False] * 50, "kind": pd.Categorical(["a", "b"] * 50)})
    assert len(note_copies(frame, y, ["flag", "kind"])) == 2
    few = frame[:18]  # two values need twenty rows
    assert note_copies(few, y[:18], ["flag", "kind"]) == []
