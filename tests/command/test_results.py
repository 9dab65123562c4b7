"""The results of an audit, as they are written."""

import json
from dataclasses import replace

import numpy as np
import pytest

from looselabels import Transition
from looselabels._files import unexpected_files
from looselabels.auditing.audit import audit
from looselabels.auditing.diagnose import Finding
from looselabels.command.features import RESULTS, Features
from looselabels.command.identity import identify
from looselabels.command.results import (
    AUDIT_FILES,
    MAX_LETTERS,
    columns_to_show,
    page_content,
    review_content,
    thumbnails,
    to_json,
    with_suggestions,
    write_audit,
)
from looselabels.command.review import Review
from tests.command.calls import files, pd, read_csv


@pytest.fixture(scope="module")
def found(fitted):
    return audit(fitted.clf, fitted.y)


@pytest.fixture(scope="module")
def review(fitted):
    return Review(identify(fitted.frame, label="species"), fitted.y, None, {})


def test_the_summary_is_strict_json(fitted, found):
    content = page_content(
        found, fitted.labels, "data.csv", "looselabels audit", ["a note"], fitted.features, 7
    )
    again = json.loads(to_json(content), parse_constant=pytest.fail)
    assert again["warnings"] == ["a note"]
    assert again["columns"] == {"used": 2, "ignored": []}
    assert again["reproduce"]["seed"] == 7
    assert again["design"]["words"]
    with pytest.raises(ValueError, match="JSON"):
        to_json({"share": np.nan})


def test_suggestions_that_are_as_good_as_random_are_left_out(fitted, found):
    useless = replace(found, findings=(Finding("features", True, None, "Add columns."),))
    (after,) = with_suggestions(fitted.frame, useless)
    assert after[["suggestion", "suggestion_proba", "doubt"]].isna().all(axis=None)
    assert set(after["why"]) == {"unknown: the labels cannot be predicted"}
    np.testing.assert_array_equal(after["label_proba"], found.label_proba)
    reviewed = replace(useless, class_index=np.where(np.arange(len(fitted.y)) == 3, 0, -1))
    (after,) = with_suggestions(fitted.frame, reviewed)
    assert np.flatnonzero(after["doubt"].notna()).tolist() == [3]


def test_suggestions_are_added_next_to_columns_of_the_same_name(fitted, found):
    (after,) = with_suggestions(fitted.frame.assign(doubt="mine"), found)
    assert (after["doubt"] == "mine").all()
    np.testing.assert_array_equal(after["looselabels_doubt"], found.doubt)
    assert set(after["suggestion"]) == {"cat", "dog"}
    (after,) = with_suggestions(fitted.frame, found)
    assert list(after.columns[3:]) == list(RESULTS)


def test_blocks_of_suggestions_have_all_rows_in_order(fitted, found, monkeypatch):
    (expected,) = with_suggestions(fitted.frame, found)
    monkeypatch.setattr("looselabels.command.results.N_ROWS", 7)
    blocks = list(with_suggestions(fitted.frame, found))
    assert max(map(len, blocks)) == 7
    pd.testing.assert_frame_equal(pd.concat(blocks), expected)


def test_an_audit_is_a_table_a_page_and_two_json_files(fitted, found, review, tmp_path):
    content = page_content(found, fitted.labels, "data.csv", "looselabels audit", [])
    for suffix in (".csv", ".parquet"):
        folder = tmp_path / suffix
        folder.mkdir()
        content |= review_content(found, fitted.frame, review, suffix=suffix)
        write_audit(folder, content, found, fitted.frame, images=None, excel_safe=False)
        assert files(folder) == [
            f"labels{suffix}",
            "report.html",
            "summary.json",
            "transition.json",
        ]
        assert unexpected_files(folder, AUDIT_FILES) == []
    assert len(read_csv(tmp_path / ".csv" / "labels.csv")) == 60
    text = (tmp_path / ".csv" / "transition.json").read_text(encoding="utf-8")
    assert Transition.from_json(text) == found.transition


def test_rows_of_pixels_get_thumbnails_in_the_order_of_the_page(fitted, found, rng):
    X = rng.integers(0, 256, (60, 64))
    pixels = Features.fit(pd.DataFrame(X, columns=[f"pixel{i}" for i in range(64)]))
    images = thumbnails(X, pixels, found.records())
    assert len(images) == 60
    np.testing.assert_array_equal(images[0], X[found.order[0]].reshape(8, 8))
    assert thumbnails(fitted.X, fitted.features, found.records()) is None
    assert thumbnails(None, None, found.records()) is None


# ----------------------------------------------------------------------------------------- review


def test_each_row_of_the_page_can_be_found_and_decided(fitted, found, review):
    content = review_content(found, fitted.frame, review, ["weight", "size"], ".parquet")
    first, row = content["rows"][0], int(found.order[0])
    assert (content["id_name"], content["table_file"]) == ("Row", "labels.parquet")
    assert (first["row"], first["id"]) == (row, row + 1)
    assert first["hash"] == review.identity.hashes([row])[0]
    assert content["shown_columns"] == ["weight", "size"]
    assert [float(cell) for cell in first["cells"]] == fitted.frame.loc[
        row, ["weight", "size"]
    ].tolist()
    assert content["class_names"] == ["cat", "dog"]
    assert first["probabilities"][0] == [first["suggestion"], first["class_proba"]]
    assert sum(p for _, p in first["probabilities"]) == pytest.approx(1)
    assert content["reviewed"] is None


def test_reviewed_rows_leave_the_list_but_are_counted(fitted, found, review):
    row = int(found.order[0])
    known = [None] * 60
    known[row] = found.records(1)[0]["suggestion"]
    reviewed = review._replace(known_classes=known, doubts={row: 0.75})
    before = review_content(found, fitted.frame, review)
    after = review_content(found, fitted.frame, reviewed)
    assert after["rows"] == before["rows"][1:]
    assert after["reviewed"] == {"n": 1, "confirmed": 1, "expected": 0.75}


def test_a_row_shows_its_three_most_probable_classes(review):
    proba = np.array([[0.1, 0.2, 0.3, 0.4]] * 20)
    found = audit(label_proba=proba, labels=list("abcd") * 5)
    frame = pd.DataFrame({"size": range(20), "species": list("abcd") * 5})
    few = Review(identify(frame, label="species"), list("abcd") * 5, None, {})
    for record in review_content(found, frame, few)["rows"]:
        chances = [p for _, p in record["probabilities"]]
        assert len(chances) == 3
        assert chances == sorted(chances, reverse=True)


def test_columns_that_help_people_are_shown_first():
    frame = pd.DataFrame(
        {
            "size": ["1", "2.5", None],
            "planet": "earth",
            "code": ["x1", "y2", "z3"],
            "note": ["a long story", "b", "c"],
            "weight": [1, 2, 3],
            "age": [4, 5, 6],
            "species": ["cat", "dog", "cat"],
        }
    )
    assert columns_to_show(frame, ("species", None)) == ["note", "code", "size", "weight"]
    assert columns_to_show(frame, ("species", "code")) == ["note", "size", "weight", "age"]


def test_pixels_are_not_shown_as_numbers(rng):
    frame = pd.DataFrame(rng.integers(0, 256, (60, 64)), columns=[f"pixel{i}" for i in range(64)])
    frame = frame.assign(name=[f"scan {i}" for i in range(60)])
    pixels = Features.fit(frame.drop(columns="name"))
    assert columns_to_show(frame, (), pixels) == ["name"]


def test_cells_are_short_texts_in_one_line(found, fitted):
    texts = ["two\nlines", None, "x" * 1_000, "\x1b[31m"] * 15
    frame = fitted.frame.assign(note=texts)
    review = Review(identify(frame, label="species"), fitted.y, None, {})
    rows = review_content(found, frame, review, ["note"])["rows"]
    shown = {record["cells"][0] for record in rows}
    assert shown == {"two lines", "", "x" * (MAX_LETTERS - 1) + "…", "\\x1b[31m"}
