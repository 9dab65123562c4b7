"""Decisions of a review: read strictly, matched by identity, applied, and known to an audit."""

from pathlib import Path

import numpy as np
import pytest

from looselabels.auditing.audit import audit
from looselabels.command.decisions import (
    COLUMNS,
    Review,
    accept_above,
    correct,
    read_decisions,
    read_review,
    with_labels,
)
from looselabels.command.identity import identify
from looselabels.command.labels import Labels
from looselabels.command.tables import TableError, read_table
from tests.command.calls import animals, cells, pd, read_csv

pytestmark = pytest.mark.usefixtures("folder")

HEADER = ",".join(COLUMNS) + "\n"


def written(frame=None, name="data.csv"):
    """Write a table of 40 named animals, one of them unlabeled, and read it again."""
    if frame is None:
        frame = animals(40, unlabeled=0).assign(name=[f"pet {k}" for k in range(40)])
        frame.loc[7, "species"] = None
    frame.to_csv(name, index=False)
    return read_table(name)


def decided(frame, *rows, column="name", name="decisions.csv", **changes):
    """Write decisions, each (row, decision, class); `changes` replace columns of the file."""
    identity = identify(frame, column, label="species")
    positions = [row for row, *_ in rows]
    labels = frame["species"].astype(object).where(frame["species"].notna(), None)
    content = {
        "id": [identity.ids[row] for row in positions],
        "label": [labels[row] for row in positions],
        "suggestion": "cat",
        "doubt": 0.75,
        "decision": [word for _, word, _ in rows],
        "class": [of_class for *_, of_class in rows],
        "hash": identity.hashes(positions),
    }
    pd.DataFrame(content).assign(**changes).to_csv(name, index=False)
    return name


def corrected(frame, *paths, unlabeled=()):
    return correct(frame, Labels("species", unlabeled), "name", paths)


# ------------------------------------------------------------------------------------------- read


def test_decisions_are_read_as_they_were_written():
    frame = written()
    path = decided(frame, (0, "keep", "cat"), (3, "change", "dog"), (7, "accept", "cat"))
    keep, change, accept = read_decisions(path)
    assert (keep.id, keep.label, keep.doubt, keep.decided) == ("pet 0", "cat", 0.75, "cat")
    assert keep.new_label == keep.label
    assert (change.decision, change.new_label) == ("change", "dog")
    assert (accept.label, accept.new_label) == (None, "cat")


@pytest.mark.parametrize("text", ["", "(unlabeled)"])
def test_a_row_without_a_label_is_written_in_two_ways(text):
    frame = written()
    path = decided(frame, (7, "accept", "cat"), label=text)
    assert read_decisions(path)[0].label is None


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("a,cat,dog,0.5,maybe,dog,h", r"the decision is 'maybe'; it must be 'keep', 'accept', 'ch"),
        ("a,cat,dog,0.5,,dog,h", "the decision is ''"),
        ("a,cat,dog,0.5,accept,,h", "the decision is 'accept', but the class is missing"),
        ("a,cat,dog,0.5,change,,h", "the decision is 'change', but the class is missing"),
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


def test_another_table_is_not_a_file_of_decisions():
    written()
    with pytest.raises(TableError, match=r"data\.csv has no column 'id'"):
        read_decisions("data.csv")


# ------------------------------------------------------------------------------------------ match


def refused(frame, *paths):
    with pytest.raises(TableError) as error:
        corrected(frame, *paths)
    return str(error.value)


def test_decisions_about_unknown_rows_are_named():
    frame = written()
    decided(frame, (0, "accept", "dog"), (1, "accept", "cat"), id=["pet 0", "pet 99"])
    said = refused(frame, "decisions.csv")
    assert said.startswith("1 of 2 decisions cannot be matched: no row has name 'pet 99'. ")


def test_decisions_about_rows_that_changed_are_named():
    frame = written()
    decided(frame, *((row, "accept", "dog") for row in range(0, 20, 2)))
    after = written(pd.read_csv("data.csv").assign(size=1.0), "after.csv")
    said = refused(after, "decisions.csv")
    assert "10 of 10 decisions cannot be matched: other cells changed in name 'pet 0', " in said
    assert "'pet 8' and 5 more. Pass the table that was audited" in said


def test_a_label_that_somebody_else_changed_is_not_overwritten():
    frame = written()
    decided(frame, (0, "accept", "dog"), (1, "keep", "dog"), (2, "accept", "dog"))
    after = frame.assign(species=["cow", "cat", *frame["species"][2:]])
    said = refused(after, "decisions.csv")
    assert "2 of 3 decisions" in said
    assert "the label is neither the reviewed nor the decided one in name 'pet 0', 'pet 1'" in said


def test_decisions_that_contradict_each_other_are_refused():
    frame = written()
    decided(frame, (0, "keep", "cat"), (0, "change", "dog"))
    said = refused(frame, "decisions.csv")
    assert "'pet 0' contradict each other: 'cat' → 'cat' and 'cat' → 'dog'" in said
    one = decided(frame, (1, "keep", "dog"), name="one.csv")
    other = decided(frame, (1, "accept", "cat"), name="other.csv")
    assert "'pet 1' contradict each other" in refused(frame, one, other)


def test_equal_decisions_count_once_and_skipped_rows_are_left_alone():
    frame = written()
    one = decided(frame, (0, "accept", "dog"), (1, "skip", None), name="one.csv")
    other = decided(frame, (0, "change", "dog"), (1, "accept", "cat"), name="other.csv")
    after, changes, said = corrected(frame, one, other)
    assert after["species"][:2].tolist() == ["dog", "cat"]
    assert len(changes) == 2
    assert said == "Labels: 2 changed, 0 changed before, 0 kept, 1 skipped."


def test_line_numbers_match_rows_only_if_the_order_is_the_same():
    frame = written()
    decided(frame, (3, "accept", "cat"), column=None)
    after, *_ = correct(frame, Labels("species"), None, ["decisions.csv"])
    assert after["species"][3] == "cat"
    backwards = written(pd.read_csv("data.csv")[::-1], "backwards.csv")
    with pytest.raises(TableError, match="other cells changed in Line '5'"):
        correct(backwards, Labels("species"), None, ["decisions.csv"])


# ------------------------------------------------------------------------------------------ apply


def test_decisions_change_labels_and_nothing_else():
    frame = written()
    decided(
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
    frame = written()
    decided(frame, (0, "accept", "dog"), (1, "keep", "dog"))
    after, *_ = corrected(frame, "decisions.csv")
    again, changes, said = corrected(written(after, "after.csv"), "decisions.csv")
    assert cells(again) == cells(after)
    assert changes.empty
    assert said == "Labels: 0 changed, 1 changed before, 1 kept, 0 skipped."


def test_rows_are_found_by_name_in_another_order():
    frame = written()
    decided(frame, (0, "accept", "dog"))
    backwards = written(pd.read_csv("data.csv")[::-1], "backwards.csv")
    after, *_ = corrected(backwards, "decisions.csv")
    assert cells(after)[:39] == cells(backwards)[:39]
    assert cells(after)[39][2:] == ["dog", "pet 0"]


def test_cells_that_mean_no_label_can_be_named():
    written()
    frame = written(read_csv("data.csv").replace({"species": {"": "?"}}))
    decided(frame, (7, "accept", "cat"), label="")
    assert "'pet 7'" in refused(frame, "decisions.csv")
    after, *_ = corrected(frame, "decisions.csv", unlabeled=("?",))
    assert after["species"][7] == "cat"


@pytest.mark.parametrize("kind", ["Int64", "float64", "boolean", "category"])
def test_labels_of_a_parquet_file_keep_their_type(kind):
    frame = animals(40, names=(0, 1), unlabeled=0).assign(name=[f"pet {k}" for k in range(40)])
    frame.astype({"species": kind}).to_parquet("data.parquet", index=False)
    frame = read_table("data.parquet")
    new = frame["species"][1]
    decided(frame, (0, "accept", str(new)))
    after, *_ = corrected(frame, "decisions.csv")
    assert after["species"].dtype == frame["species"].dtype
    assert after["species"][:2].tolist() == [new, new]
    assert corrected(after, "decisions.csv")[1].empty
    decided(frame, (0, "change", "other"))
    with pytest.raises(TableError, match=r"'species' holds .* and cannot hold .*'other'"):
        corrected(frame, "decisions.csv")


def test_with_labels_can_remove_a_label():
    frame = written()
    assert with_labels(frame, "species", {0: None})["species"].isna().tolist()[:2] == [True, False]
    assert cells(with_labels(frame, "species", {})) == cells(frame)


# ------------------------------------------------------------------------------------------ audit


def reviewed(frame, *paths, **options):
    return read_review(frame, Labels("species", **options), "name", paths)


def test_without_decisions_labels_are_those_of_the_table():
    frame = written()
    review = reviewed(frame)
    assert review.labels == cells(frame[["species"]].T)[0]
    assert (review.known_classes, review.doubts) == (None, {})


def test_an_audit_knows_decided_classes_and_the_labels_before():
    frame = written()
    decided(frame, (0, "accept", "dog"), (1, "keep", "dog"), (2, "skip", None), (3, "keep", None))
    for table in (frame, written(corrected(frame, "decisions.csv")[0], "after.csv")):
        review = reviewed(table, "decisions.csv")
        assert review.labels == cells(frame[["species"]].T)[0]
        assert review.known_classes == ["dog", "dog", *[None] * 38]
        assert review.doubts == {0: 0.75, 1: 0.75, 3: 0.75}


def test_decided_classes_have_the_type_of_the_labels():
    frame = animals(40, names=(0, 1), unlabeled=0).assign(name=[f"pet {k}" for k in range(40)])
    frame.astype({"species": "Int64"}).to_parquet("data.parquet", index=False)
    frame = read_table("data.parquet")
    decided(frame, (0, "accept", "1"))
    assert reviewed(frame, "decisions.csv").known_classes[0] == 1


def test_a_class_that_is_never_labeled_can_be_decided_and_applied():
    frame = written(
        animals(40, names=("cat", "dog", None), wrong=0).assign(name=[f"p{k}" for k in range(40)])
    )
    decided(frame, (2, "change", "other"))
    after, *_ = corrected(frame, "decisions.csv")
    review = reviewed(after, "decisions.csv", negative="other")
    assert review.known_classes[2] == "other"
    assert review.labels[2] is None


def test_a_class_that_no_label_names_cannot_be_known():
    frame = written()
    decided(frame, (0, "accept", "dog"), (1, "change", "cow"))
    with pytest.raises(
        TableError, match=r"about 'pet 1' is the class 'cow', .* are \['cat', 'dog'\]"
    ):
        reviewed(frame, "decisions.csv")


def test_suggestions_above_a_probability_are_accepted(fitted):
    found = audit(fitted.clf, fitted.y)
    review = Review(identify(fitted.frame, label="species"), fitted.y, None, {})
    accepted, n_wrong = accept_above(found, review, 0.6)
    rows = accepted["id"].to_numpy() - 1  # rows of a frame count from 1
    assert len(rows) == np.sum(found.is_labeled & (found.doubt > 0.6)) > 1
    assert (accepted["label"] != accepted["class"]).all()
    assert accepted["label"].tolist() == [fitted.y[row] for row in rows]
    assert n_wrong == pytest.approx(np.sum(1 - found.doubt[rows]))  # two classes
    assert (accepted["decision"] == "accept").all()
    seen = Review(review.identity, fitted.y, None, {int(rows[0]): 0.9})
    assert accept_above(found, seen, 0.6)[0]["id"].tolist() == (rows[1:] + 1).tolist()
    assert accept_above(found, review, 0.999)[0].empty


def test_accepted_suggestions_are_applied_but_known_to_nobody(fitted):
    found = audit(fitted.clf, fitted.y)
    frame = written(fitted.frame)
    review = Review(identify(frame, label="species"), fitted.y, None, {})
    accept_above(found, review, 0.6)[0].to_csv("decisions.csv", index=False)
    after, changes, _ = correct(frame, Labels("species"), None, ["decisions.csv"])
    assert len(changes) > 1
    again = read_review(after, Labels("species"), None, ["decisions.csv"])
    assert again == (again.identity, fitted.y, None, {})


def test_the_summary_counts_reviewed_labels_that_were_wrong(fitted):
    found = audit(fitted.clf, fitted.y)
    labeled = np.flatnonzero(found.is_labeled)[:3].tolist()
    unlabeled = np.flatnonzero(~found.is_labeled)[:1].tolist()
    known = [None] * len(fitted.y)
    known[labeled[0]] = fitted.y[labeled[0]]
    known[labeled[1]] = "dog" if fitted.y[labeled[1]] == "cat" else "cat"
    known[unlabeled[0]] = "cat"
    doubts = dict(zip(labeled + unlabeled, (0.5, 0.75, 0.25, 0.0), strict=True))
    review = Review(identify(fitted.frame, label="species"), fitted.y, known, doubts)
    assert review.summary(found) == {"n": 3, "confirmed": 1, "expected": 1.5}
    only_unlabeled = review._replace(doubts={unlabeled[0]: 0.0})
    assert only_unlabeled.summary(found) is None
