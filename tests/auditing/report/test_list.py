"""The list of rows agrees with the audit, and its review with decisions.csv."""

import json
import re

import pytest

from looselabels.auditing.report import render
from looselabels.auditing.report._list import row_list
from looselabels.auditing.report._words import percent
from tests.auditing.report.samples import Page, content_of, made_up_content, minimal_content


def texts_of(html):
    """Return the cells of the list as texts, row by row."""
    table = re.search(r'<table id="rows".*?</table>', html, re.DOTALL)[0]
    rows = [re.findall(r"<t[hd][^>]*>.*?</t[hd]>", row) for row in table.split("<tr")[1:]]
    return [[Page(cell).text for cell in row] for row in rows]


def text_of(content):
    return Page(render(content)).text


def pets(**parts):
    """Return content with two rows, one of them without a probability."""
    rows = [
        {"row": 7, "label": "cat", "suggestion": "dog", "class_proba": 0.9, "doubt": 0.95},
        {"row": 2, "label": "pet", "suggestion": "cat", "class_proba": None, "doubt": 0.25},
    ]
    rows = [row | {"label_proba": 0.1, "why": "looks odd"} for row in rows]
    return minimal_content() | {"rows": rows, "class_names": ["cat", "dog", "cow"]} | parts


# ---------------------------------------------------------------------------------- what it shows


def test_each_listed_row_is_that_of_the_audit(noise_estimated):
    header, *found = texts_of(render(content_of(noise_estimated)))
    assert header == ["Row (from 0)", "Label", "Suggested class", "Doubt", "Why"]
    assert len(found) == 40
    for cells, record in zip(found, noise_estimated.records(40), strict=True):
        suggestion = f"{record['suggestion']} {percent(record['class_proba'])}"
        doubt = percent(record["doubt"])
        assert cells == [str(record["row"]), record["label"], suggestion, doubt, record["why"]]


def test_row_numbers_say_that_they_count_from_0():
    assert "row 0 is the first row of the data" in text_of(pets())
    assert texts_of(render(pets()))[0][0] == "Row (from 0)"


def test_identifiers_replace_row_numbers():
    content = pets(id_name="Line", id_note="Lines are counted from 1: the header is line 1.")
    for row in content["rows"]:
        row["id"] = row["row"] + 2
    header, first, second = texts_of(render(content))
    assert (header[0], first[0], second[0]) == ("Line", "9", "4")
    text = text_of(content)
    assert "the header is line 1" in text
    assert "row 0" not in text
    del content["rows"][1]["id"]  # without all of them there are row numbers
    assert [row[0] for row in texts_of(render(content))] == ["Row (from 0)", "7", "2"]


def test_columns_of_the_table_are_shown():
    content = pets(shown_columns=["name", "size"])
    content["rows"][0]["cells"] = ["Tom", 3]
    content["rows"][1]["cells"] = [None]  # a missing value, and a missing cell
    header, first, second = texts_of(render(content))
    assert header[1:3] == ["name", "size"]
    assert first[1:3] == ["Tom", "3"]
    assert second[1:3] == ["", ""]


def test_long_numbers_are_rounded_for_display():
    content = pets(shown_columns=["a", "b", "c"])
    for row in content["rows"]:
        row["cells"] = ["-0.0216909535", "123456.789012", "12345678901234"]
    assert texts_of(render(content))[1][1:4] == ["-0.021691", "123456.8", "12345678901234"]


def test_long_texts_are_complete_up_to_a_limit_that_is_said():
    content = pets(shown_columns=["text"])
    content["rows"][0]["cells"], content["rows"][1]["cells"] = ["x" * 1000], ["short"]
    assert "x" * 1000 in texts_of(render(content))[1]
    assert "Texts are cut" not in text_of(content)
    content["rows"][0]["cells"] = ["x" * 1001]
    assert "x" * 999 + "…" in texts_of(render(content))[1]
    assert "To keep this page small: Texts are cut after 1,000 letters." in text_of(content)


def test_up_to_three_classes_have_a_probability():
    content = pets()
    proba = [["dog", 0.9], ["cat", 0.05], ["cow", 0.03], ["pig", 0.02]]
    content["rows"][0]["probabilities"] = proba
    _, first, second = texts_of(render(content))
    assert first[2] == "dog 90%cat 5%cow 3%"
    assert second[2] == "cat –"


def test_missing_numbers_are_a_dash():
    content = pets()
    content["rows"][0] |= {"class_proba": float("nan"), "doubt": None}
    content["wrong"] |= {"low": None, "high": None}
    html = render(content)
    assert [texts[2:4] for texts in texts_of(html)[1:]] == [["dog –", "–"], ["cat –", "25%"]]
    assert "90% interval:" not in html


def test_rows_without_a_label_are_not_doubted(noise_estimated):
    content = content_of(noise_estimated, None)
    assert len(content["rows"]) == 150
    found = row_list(content)
    assert len(found["rows"]) == noise_estimated.is_labeled.sum()
    assert None not in [row["label"] for row in found["rows"]]
    images = [None if row["label"] is None else [[1, 2]] for row in content["rows"]]
    assert render(content, images).count("<img") == len(found["rows"])


def test_labeled_rows_are_not_listed_if_unlabeled_ones_are_in_question(positive_unlabeled):
    content = content_of(positive_unlabeled, None) | {"question": "unlabeled"}
    labels = [row["label"] for row in row_list(content)["rows"]]
    assert labels == [None] * (~positive_unlabeled.is_labeled).sum()
    for row in content["rows"]:
        row["label"] = -1  # how some designs name the missing label
    assert len(row_list(content)["rows"]) == 150


def test_rows_that_are_not_listed_are_counted_and_their_file_is_named():
    sentence = "5 labels are more likely wrong than right; this page lists the first 2."
    assert sentence in text_of(pets(n_to_check=5))
    assert f"{sentence} labels.csv has all rows." in text_of(
        pets(n_to_check=5, table_file="labels.csv")
    )
    text = text_of(pets(n_to_check=2, table_file="labels.csv"))
    assert "this page lists" not in text
    assert "labels.csv has all rows." in text
    assert "this page lists" not in text_of(pets())


def test_more_unlabeled_rows_than_listed_are_counted():
    unlabeled = {"n_rows": 9, "classes": [{"name": "dog", "expected": 6, "low": 4, "high": 8}]}
    content = pets(question="unlabeled", unlabeled=unlabeled)
    sentence = (
        "About 6 unlabeled rows are probably of a labeled class; this page lists the first 2."
    )
    assert sentence in text_of(content)


# --------------------------------------------------------------------------------------- the review


def review_of(content):
    return json.loads(row_list(content)["review"]["data"])


def test_the_review_has_exact_names_and_numbers():
    content = pets()
    content["rows"][0] |= {"id": ' =1+"x"\n', "hash": "ab12", "doubt": 0.1 + 0.2}
    content["rows"][1]["id"] = 2
    found = review_of(content)
    names = found["names"]
    assert [names[i] for i in found["classes"]] == ["cat", "dog", "cow"]
    first, second = found["rows"]
    assert (first["id"], first["hash"], first["doubt"]) == (' =1+"x"\n', "ab12", 0.1 + 0.2)
    assert (second["id"], second["hash"]) == ("2", "")
    assert [names[first["label"]], names[first["suggestion"]]] == ["cat", "dog"]
    assert [names[second["label"]], names[second["suggestion"]]] == ["pet", "cat"]
    assert first["kept"] == 0  # its label names a class
    assert second["kept"] is None  # "pet" does not


def test_the_classes_of_the_menu_are_known_without_class_names():
    content = made_up_content(["cat", "dog"], n_rows=3)
    assert review_of(content)["names"][:2] == ["cat", "dog"]
    del content["classes"]
    found = review_of(content)
    suggestions = {row["suggestion"] for row in content["rows"]}
    assert {found["names"][i] for i in found["classes"]} == suggestions


def test_decisions_are_stored_under_a_key_that_belongs_to_the_content():
    key = row_list(pets())["review"]["key"]
    assert key == row_list(pets(data="renamed.csv"))["review"]["key"]
    for change in ({"doubt": 0.96}, {"id": 8}, {"suggestion": "cow"}, {"hash": "x"}):
        content = pets()
        for row in content["rows"]:
            row |= change
        assert row_list(content)["review"]["key"] != key


@pytest.mark.parametrize("rows", [[], None])
def test_without_rows_there_is_nothing_to_review(rows):
    html = render(pets(rows=rows))
    assert "There are no rows to list." in html
    assert 'id="review"' not in html


def test_a_label_with_a_source_is_written_as_its_cell():
    content = pets()
    content["rows"][0]["label"] = ["shop", "cat"]
    found = review_of(content)
    assert found["names"][found["rows"][0]["label"]] == "cat"
