"""Decisions of a review: read strictly, matched by identity, and applied."""

import csv
from pathlib import Path

import pytest

from looselabels.command.decisions import (
    COLUMNS,
    Decision,
    _one_per_id,
    correct,
    read_decisions,
    with_labels,
)
from looselabels.command.labels import Labels
from looselabels.command.review import read_review
from looselabels.command.tables import TableError, read_table
from tests.command.calls import (
    animals,
    cells,
    pd,
    read_csv,
    write_decisions,
    written_pets,
)

pytestmark = pytest.mark.usefixtures("folder")

HEADER = ",".join(COLUMNS) + "\n"


def corrected(frame, *paths, unlabeled=()):
    return correct(frame, Labels("species", unlabeled), "name", paths)


# ------------------------------------------------------------------------------------------- read


def test_decisions_are_read_as_they_were_written():
    frame = written_pets()
    path = write_decisions(frame, (0, "keep", "cat"), (3, "change", "dog"), (7, "accept", "cat"))
    keep, change, accept = read_decisions(path)
    assert (keep.id, keep.label, keep.doubt, keep.decided) == ("pet 0", "cat", 0.75, "cat")
    assert keep.new_label == keep.label
    assert (change.decision, change.new_label) == ("change", "dog")
    assert (accept.label, accept.new_label) == (None, "cat")


@pytest.mark.parametrize("quoting", [csv.QUOTE_MINIMAL, csv.QUOTE_ALL])
def test_decisions_that_a_spreadsheet_wrote_with_semicolons_are_read(quoting):
    path = write_decisions(written_pets(), (0, "keep", "cat"), (3, "change", "dog"))
    expected, frame = read_decisions(path), read_csv(path)
    saved = frame.assign(doubt=frame["doubt"].str.replace(".", ","))
    assert saved["doubt"][0] == "0,75"
    saved.to_csv(path, sep=";", index=False, encoding="utf-8-sig", quoting=quoting)
    assert read_decisions(path) == expected


@pytest.mark.parametrize("text", ["", "(unlabeled)"])
def test_a_row_without_a_label_is_written_in_two_ways(text):
    frame = written_pets()
    path = write_decisions(frame, (7, "accept", "cat"), label=text)
    assert read_decisions(path)[0].label is None


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("a,cat,dog,0.5,maybe,dog,h", r"the decision is 'maybe'; it must be 'keep', 'accept', 'ch"),
        ("a,cat,dog,0.5,,dog,h", "the decision is ''"),
        ("a,cat,dog,0.5,accept,,h", "the decision is 'accept', but the class is missing"),
        ("a,cat,dog,0.5,change,,h", "the decision is 'change', but the class is missing"),
        ("a,cat,dog,0.5,keep,dog,h", "the decision is 'keep', but the class is 'dog' and the la"),
        (",cat,dog,0.5,keep,cat,h", "the id is missing"),
        ("a,cat,dog,0.5,keep,cat,", "the hash is missing"),
        ("a,cat,dog,,keep,cat,h", "the doubt is ''; it must be a number from 0 to 1"),
        ("a,cat,dog,high,keep,cat,h", "the doubt is 'high'"),
        ("a,cat,dog,nan,keep,cat,h", "the doubt is 'nan'"),
        ("a,cat,dog,75,keep,cat,h", "the doubt is '75'"),
    ],
)
def test_a_line_that_cannot_be_used_is_named(line, said):
    Path("decisions.csv").write_text(f"{HEADER}b,cat,dog,0.5,keep,cat,h\n{line}\n")
    with pytest.raises(TableError, match=rf"decisions\.csv, line 3: {said}"):
        read_decisions("decisions.csv")


@pytest.mark.parametrize(
    "line", ["a,1,2,0.5,keep,1.0,h", "a,pet,cat,0.5,keep,,h", "a,,,0,keep,x,h"]
)
def test_a_label_is_kept_with_the_class_that_it_names_or_with_none(line):
    Path("decisions.csv").write_text(f"{HEADER}{line}\n")
    assert read_decisions("decisions.csv")[0].decision == "keep"


@pytest.mark.parametrize(
    ("words", "is_reviewed"),
    [(("accept", "cat"), False), (("accept", "cow"), True), (("keep", "dog"), True)],
)
def test_a_person_has_reviewed_what_an_audit_does_not_accept_itself(words, is_reviewed):
    frame = written_pets()
    path = write_decisions(frame, (1, *words), reviewed="no", label="dog")
    assert read_decisions(path)[0].is_reviewed == is_reviewed


def test_another_table_is_not_a_file_of_decisions():
    written_pets()
    with pytest.raises(TableError, match=r"data\.csv has no column 'id'"):
        read_decisions("data.csv")


# ------------------------------------------------------------------------------------------ match


def refused(frame, *paths):
    with pytest.raises(TableError) as error:
        corrected(frame, *paths)
    return str(error.value)


def test_decisions_about_unknown_rows_are_named():
    frame = written_pets()
    write_decisions(frame, (0, "accept", "dog"), (1, "accept", "cat"), id=["pet 0", "pet 99"])
    said = refused(frame, "decisions.csv")
    assert said.startswith("1 of 2 decisions cannot be matched: no row has name 'pet 99'. ")


def test_identifiers_without_the_zeros_that_a_spreadsheet_removes_are_recognized():
    ids = [f"{row:03}" for row in range(80)]
    frame = written_pets(animals().assign(name=ids))
    path = write_decisions(frame, (0, "change", "dog"), (15, "change", "cat"), id=["0", "15"])
    after, changes, _ = corrected(frame, path)
    assert changes["id"].tolist() == ["000", "015"]
    assert after["species"][[0, 15]].tolist() == ["dog", "cat"]
    write_decisions(frame, (0, "change", "dog"), id="8")  # the hash is that of another row
    assert "other cells changed in name '008'" in refused(frame, path)
    write_decisions(frame, (0, "change", "dog"), id="99")
    assert "no row has name '99'" in refused(frame, path)


def test_decisions_about_rows_that_changed_are_named():
    frame = written_pets()
    write_decisions(frame, *((row, "accept", "dog") for row in range(0, 20, 2)))
    after = written_pets(pd.read_csv("data.csv").assign(size=1.0), "after.csv")
    said = refused(after, "decisions.csv")
    assert "10 of 10 decisions cannot be matched: other cells changed in name 'pet 0', " in said
    assert "'pet 8' and 5 more. Pass the table that was audited" in said


def test_a_label_that_somebody_else_changed_is_not_overwritten():
    frame = written_pets()
    write_decisions(frame, (0, "accept", "dog"), (1, "keep", "dog"), (2, "accept", "dog"))
    after = frame.assign(species=["cow", "cat", *frame["species"][2:]])
    said = refused(after, "decisions.csv")
    assert "2 of 3 decisions" in said
    assert "the label is neither the reviewed nor the decided one in name 'pet 0', 'pet 1'" in said


def test_a_review_counts_more_than_the_same_decision_without_one():
    automatic = Decision("a", "cat", 0.9, "accept", "dog", "h", is_reviewed=False)
    reviewed = automatic._replace(is_reviewed=True)
    for pair in ([automatic, reviewed], [reviewed, automatic]):
        assert _one_per_id(pair) == [reviewed]


def test_decisions_that_contradict_each_other_are_refused():
    frame = written_pets()
    write_decisions(frame, (0, "keep", "cat"), (0, "change", "dog"))
    said = refused(frame, "decisions.csv")
    assert "'pet 0' contradict each other: 'cat' → 'cat' and 'cat' → 'dog'" in said
    one = write_decisions(frame, (1, "keep", "dog"), name="one.csv")
    other = write_decisions(frame, (1, "accept", "cat"), name="other.csv")
    assert "'pet 1' contradict each other" in refused(frame, one, other)


def test_equal_decisions_count_once_and_skipped_rows_are_left_alone():
    frame = written_pets()
    one = write_decisions(frame, (0, "accept", "dog"), (1, "skip", None), name="one.csv")
    other = write_decisions(frame, (0, "change", "dog"), (1, "accept", "cat"), name="other.csv")
    after, changes, said = corrected(frame, one, other)
    assert after["species"][:2].tolist() == ["dog", "cat"]
    assert len(changes) == 2
    assert said == "Labels: 2 changed, 0 changed before, 0 kept, 1 skipped."


def test_line_numbers_match_rows_only_if_the_order_is_the_same():
    frame = written_pets()
    write_decisions(frame, (3, "accept", "cat"), column=None)
    after, *_ = correct(frame, Labels("species"), None, ["decisions.csv"])
    assert after["species"][3] == "cat"
    backwards = written_pets(pd.read_csv("data.csv")[::-1], "backwards.csv")
    with pytest.raises(TableError, match="other cells changed in Line '5'"):
        correct(backwards, Labels("species"), None, ["decisions.csv"])


# ------------------------------------------------------------------------------------------ apply


def test_decisions_change_labels_and_nothing_else():
    frame = written_pets()
    write_decisions(
        frame, (0, "accept", "dog"), (1, "keep", "dog"), (2, "skip", None), (7, "change", 'a, "b"')
    )
    after, changes, said = corrected(frame, "decisions.csv")
    expected = cells(frame)
    expected[0][2], expected[7][2] = "dog", 'a, "b"'
    assert cells(after) == expected
    assert cells(changes) == [
        ["pet 0", "cat", "dog", "accept"],
        ["pet 7", None, 'a, "b"', "change"],
    ]
    assert list(changes.columns) == ["id", "old_label", "new_label", "decision"]
    assert said == "Labels: 2 changed, 0 changed before, 1 kept, 1 skipped."


def test_decisions_can_be_applied_again():
    frame = written_pets()
    write_decisions(frame, (0, "accept", "dog"), (1, "keep", "dog"))
    after, *_ = corrected(frame, "decisions.csv")
    again, changes, said = corrected(written_pets(after, "after.csv"), "decisions.csv")
    assert cells(again) == cells(after)
    assert changes.empty
    assert said == "Labels: 0 changed, 1 changed before, 1 kept, 0 skipped."


def test_rows_are_found_by_name_in_another_order():
    frame = written_pets()
    write_decisions(frame, (0, "accept", "dog"))
    backwards = written_pets(pd.read_csv("data.csv")[::-1], "backwards.csv")
    after, *_ = corrected(backwards, "decisions.csv")
    assert cells(after)[:39] == cells(backwards)[:39]
    assert cells(after)[39][2:] == ["dog", "pet 0"]


def test_cells_that_mean_no_label_can_be_named():
    written_pets()
    frame = written_pets(read_csv("data.csv").replace({"species": {"": "?"}}))
    write_decisions(frame, (7, "accept", "cat"), label="")
    assert "'pet 7'" in refused(frame, "decisions.csv")
    after, *_ = corrected(frame, "decisions.csv", unlabeled=("?",))
    assert after["species"][7] == "cat"


@pytest.mark.parametrize("kind", ["Int64", "float64", "boolean", "category"])
def test_labels_of_a_parquet_file_keep_their_type(kind):
    frame = animals(40, names=(0, 1), unlabeled=0).assign(name=[f"pet {k}" for k in range(40)])
    frame.astype({"species": kind}).to_parquet("data.parquet", index=False)
    frame = read_table("data.parquet")
    new = frame["species"][1]
    write_decisions(frame, (0, "accept", str(new)))
    after, *_ = corrected(frame, "decisions.csv")
    assert after["species"].dtype == frame["species"].dtype
    assert after["species"][:2].tolist() == [new, new]
    assert corrected(after, "decisions.csv")[1].empty
    write_decisions(frame, (0, "change", "other"))
    with pytest.raises(TableError, match=r"'species' holds .* and cannot hold .*'other'"):
        corrected(frame, "decisions.csv")


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
@pytest.mark.parametrize(
    ("kind", "table", "sheet"),
    [
        ("float64", ("2.0", "1.0"), ("2", "1")),  # a spreadsheet shows 1.0 as 1
        ("Int64", ("2", "1"), ("2.0", "1.0")),
        ("boolean", ("True", "False"), ("TRUE", "FALSE")),
    ],
)
def test_labels_are_written_as_the_table_writes_them(kind, table, sheet, suffix):
    names = (True, False) if kind == "boolean" else (2, 1)
    frame = animals(40, names=names).assign(name=[f"pet {k}" for k in range(40)])
    frame = frame.astype({"species": kind})
    frame.to_csv("data.csv", index=False)
    frame.to_parquet("data.parquet", index=False)
    frame = read_table(f"data{suffix}")
    rows = [int((frame["species"].astype(str) == str(name)).idxmax()) for name in table]
    rows.append(int(frame["species"].isna().idxmax()))
    new = [*sheet[::-1], sheet[0]]
    decisions = [(row, "change", label) for row, label in zip(rows, new, strict=True)]
    path = write_decisions(frame, *decisions, label=[*sheet, None])
    write_decisions(frame, *decisions, name="own.csv", **{"class": [*table[::-1], table[0]]})
    after, changes, said = corrected(frame, path, "own.csv")
    assert said.startswith("Labels: 3 changed")
    assert cells(changes[["old_label", "new_label"]]) == [
        [table[0], table[1]], [table[1], table[0]], [None, table[0]]
    ]  # fmt: skip
    assert after["species"].dtype == frame["species"].dtype
    assert [str(label) for label in after["species"][rows]] == [*table[::-1], table[0]]
    for paths in ([path], ["own.csv"], [path, "own.csv"]):
        assert corrected(after, *paths)[1].empty
        reviews = [read_review(t, Labels("species"), "name", paths) for t in (frame, after)]
        assert reviews[0].labels == reviews[1].labels
        assert reviews[0].known_classes == reviews[1].known_classes


def test_with_labels_can_remove_a_label():
    frame = written_pets()
    assert with_labels(frame, "species", {0: None})["species"].isna().tolist()[:2] == [True, False]
    assert cells(with_labels(frame, "species", {})) == cells(frame)
