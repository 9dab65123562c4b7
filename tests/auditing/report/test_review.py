"""The review in a real browser: decisions by keyboard and mouse, a reload, decisions.csv."""

import csv
import io
import re

import pytest

from looselabels.auditing.report import render
from tests.auditing.report.samples import SCRIPT, made_up_content

CLASSES = ("cat", 'dog "Rex", big', "=1+1", SCRIPT)
HEADER = ["id", "label", "suggestion", "doubt", "decision", "class", "hash"]


@pytest.fixture
def content():
    """Twelve rows with awkward names and identifiers; one label names no class."""
    content = made_up_content(CLASSES, n_rows=12) | {"class_names": list(CLASSES)}
    for i, row in enumerate(content["rows"]):
        row |= {"id": f"row {i}", "hash": f"hash{i}", "cells": ["x" * 600]}
    content["rows"][1] |= {"id": "@line\nbreak, \u65e5\u672c", "hash": ""}
    content["rows"][2] |= {"label": "pet", "id": " spaces "}
    content["rows"][3] |= {"doubt": None, "id": "-5"}
    return content | {"id_name": "name", "shown_columns": ["text"]}


def start(page):
    page.get_by_role("button", name="Start the review").press("Enter")


def reload(page):
    page.wait_for_timeout(500)  # a browser writes its storage a moment later
    page.reload()


def progress(page):
    return page.locator("#progress").text_content()


def downloaded(page):
    """Return the bytes of decisions.csv."""
    with page.expect_download() as found:
        page.get_by_role("button", name="Download decisions.csv").click()
    assert found.value.suggested_filename == "decisions.csv"
    with open(found.value.path(), "rb") as file:
        return file.read()


def records(data):
    """Return the rows of decisions.csv; the header is checked."""
    header, *rows = csv.reader(io.StringIO(data.decode("utf-8"), newline=""))
    assert header == HEADER
    return rows


def expected(content, row, decision, chosen):
    """Return what decisions.csv should say about a row."""
    found = content["rows"][row]
    doubt = "" if found["doubt"] is None else repr(found["doubt"])
    return [
        *(found["id"], found["label"], found["suggestion"], doubt),
        *(decision, chosen, found["hash"]),
    ]


def focused_id(page):
    return page.evaluate("document.activeElement.closest('tr')?.cells[0].textContent")


@pytest.mark.slow
def test_ten_rows_are_decided_by_keyboard_and_survive_a_reload(visit, content):
    page = visit(content)
    rows = content["rows"]
    assert progress(page) == "0 of 12 decided"
    assert page.get_by_role("button", name="Download decisions.csv").is_disabled()
    start(page)
    for key in "kkkakAssk":  # capital letters count as well
        page.keyboard.press(key)
    page.keyboard.press("c")
    page.keyboard.press("End")
    page.keyboard.press("Enter")
    assert progress(page) == "10 of 12 decided"
    before = downloaded(page)
    reload(page)
    assert progress(page) == "10 of 12 decided"
    assert page.locator("progress").evaluate("bar => bar.value") == 10
    after = downloaded(page)
    assert before == after
    assert not after.startswith(b"\xef\xbb\xbf")
    decisions = ["keep"] * 3 + ["accept", "keep", "accept", "skip", "skip", "keep", "change"]
    classes = {
        "keep": lambda row: row["label"] if row["label"] in CLASSES else "",
        "accept": lambda row: row["suggestion"],
        "skip": lambda row: "",
        "change": lambda row: CLASSES[-1],
    }
    assert records(after) == [
        expected(content, i, decision, classes[decision](rows[i]))
        for i, decision in enumerate(decisions)
    ]


@pytest.mark.slow
def test_numbers_in_the_file_are_exact(visit, content):
    content["rows"][0]["doubt"] = 0.1 + 0.2
    page = visit(content)
    start(page)
    page.keyboard.press("a")
    assert float(records(downloaded(page))[0][3]) == 0.1 + 0.2


@pytest.mark.slow
def test_decisions_can_be_changed_cleared_and_undone(visit, content):
    page = visit(content)
    start(page)
    page.keyboard.press("k")
    page.keyboard.press("ArrowUp")
    page.keyboard.press("s")  # another decision replaces the first
    assert progress(page) == "1 of 12 decided"
    assert records(downloaded(page)) == [expected(content, 0, "skip", "")]
    page.locator("#rows tbody tr").first.focus()
    page.keyboard.press("s")  # the same decision again clears it
    assert progress(page) == "0 of 12 decided"
    assert focused_id(page) == "row 0"
    page.keyboard.press("u")  # undo brings it back
    assert progress(page) == "1 of 12 decided"
    page.get_by_role("button", name="Undo").click()
    page.keyboard.press("u")
    assert progress(page) == "0 of 12 decided"
    assert page.get_by_role("button", name="Undo").is_disabled()
    reload(page)
    assert progress(page) == "0 of 12 decided"


@pytest.mark.slow
def test_the_mouse_decides_and_buttons_say_what_was_decided(visit, content):
    page = visit(content)
    group = page.get_by_role("group", name="Decision on row 4")
    group.get_by_role("button", name="Accept").click()
    pressed = page.locator("#rows [aria-pressed=true]")
    assert pressed.all_text_contents() == ["Accept"]
    group.get_by_role("button", name="Other\u2026").click()
    page.get_by_role("dialog").get_by_label("Choose a class for row 4").select_option("=1+1")
    page.get_by_role("button", name="Choose", exact=True).click()
    assert pressed.all_text_contents() == ["=1+1"]
    assert records(downloaded(page)) == [expected(content, 4, "change", "=1+1")]
    group.get_by_role("button", name="=1+1").click()
    page.get_by_role("button", name="Cancel").click()
    assert progress(page) == "1 of 12 decided"


@pytest.mark.slow
def test_letters_decide_only_in_the_list(visit, content):
    page = visit(content)
    for element in ("#by-label", "#download", "#start", "main"):
        page.locator(element).first.evaluate("element => element.focus()")
        for key in "kas":
            page.keyboard.press(key)
    start(page)
    page.keyboard.press("Control+a")
    page.keyboard.press("c")
    page.keyboard.press("k")  # in the dialog, a letter looks for a class
    page.keyboard.press("Escape")
    assert focused_id(page) == "row 0"
    assert progress(page) == "0 of 12 decided"


@pytest.mark.slow
def test_rows_that_are_not_decided_can_be_filtered(visit, content):
    page = visit(content)
    page.get_by_label("Decision", exact=True).select_option(label="Not decided")
    start(page)
    page.keyboard.press("k")
    page.keyboard.press("k")
    assert page.locator("#count").text_content() == "Showing 10 of 12"
    assert focused_id(page).strip() == "spaces"  # the next row, not one that is hidden
    page.keyboard.press("u")
    assert page.locator("#count").text_content() == "Showing 11 of 12"
    page.get_by_label("Decision", exact=True).select_option(label="Decided")
    assert page.locator("#rows tbody tr:visible").count() == 1


@pytest.mark.slow
def test_filters_that_hide_all_rows_say_so_and_are_where_the_review_starts(visit, content):
    page, shown = visit(content), "Showing {} of 12"
    decision = page.get_by_label("Decision", exact=True)
    decision.select_option(label="Decided")
    assert page.locator("#count").text_content() == f"{shown.format(0)}; the filters hide all rows"
    start(page)
    assert page.evaluate("document.activeElement.id") == "by-label"
    decision.select_option(label="All")
    assert page.locator("#count").text_content() == shown.format(12)
    start(page)
    assert focused_id(page) == "row 0"


@pytest.mark.slow
def test_progress_counts_rows_to_check_and_others_are_behind_a_filter(visit, content):
    for i, row in enumerate(content["rows"]):
        row["to_check"] = i < 5
    page = visit(content)
    assert "The first 5 are more likely wrong than right; the other 7 are probably right." in (
        page.locator("main").text_content()
    )
    assert progress(page) == "0 of 5 decided"
    assert page.locator("#rows tbody tr:visible").count() == 5
    start(page)
    for _ in range(5):
        page.keyboard.press("a")
    assert progress(page) == "5 of 5 decided"
    assert page.locator("progress").evaluate("bar => bar.value / bar.max") == 1
    menu = page.get_by_label("Rows", exact=True)
    assert menu.locator("option").all_text_contents() == [
        *("To check (5)", "Probably right (7)", "All (12)"),
    ]
    menu.select_option(label="Probably right (7)")
    assert page.locator("#count").text_content() == "Showing 7 of 12"
    start(page)
    page.keyboard.press("k")
    assert progress(page) == "5 of 5 decided, and 1 more"
    assert len(records(downloaded(page))) == 6


@pytest.mark.slow
@pytest.mark.parametrize("to_check", [True, False])
def test_rows_that_are_all_of_one_kind_need_no_filter(visit, content, to_check):
    for row in content["rows"]:
        row["to_check"] = to_check
    page = visit(content)
    assert page.get_by_label("Rows", exact=True).count() == 0
    assert progress(page) == "0 of 12 decided"
    assert page.locator("#rows tbody tr:visible").count() == 12


@pytest.mark.slow
def test_the_file_is_in_the_order_of_the_page_whatever_the_list_is_sorted_by(visit, content):
    page = visit(content)
    page.locator("#rows th button", has_text="Doubt").click()  # lowest first
    start(page)
    assert focused_id(page) == "row 11"
    page.keyboard.press("a")
    page.keyboard.press("a")
    assert [row[0] for row in records(downloaded(page))] == ["row 10", "row 11"]


@pytest.mark.slow
def test_tab_stops_at_one_row_only_and_the_active_row_shows_its_whole_text(visit, content):
    page = visit(content)
    start(page)
    page.keyboard.press("ArrowDown")
    stops = "document.querySelectorAll('#rows tbody [tabindex=\"0\"]').length"
    assert page.evaluate(stops) == 5  # the row and its four buttons
    tall, short = (
        page.locator("#rows .cell div").nth(i).evaluate("d => [d.scrollHeight, d.clientHeight]")
        for i in (1, 0)
    )
    assert tall[0] == tall[1]
    assert short[0] > short[1]
    outline = page.evaluate("getComputedStyle(document.activeElement).outlineWidth")
    assert outline == "3px"


@pytest.mark.slow
def test_other_content_does_not_get_the_decisions(visit, content, tmp_path):
    page = visit(content)
    start(page)
    page.keyboard.press("k")
    same, other = render(content), render(content | {"rows": content["rows"][1:]})
    for html, decided in ((other, "0 of 11 decided"), (same, "1 of 12 decided")):
        (tmp_path / "report.html").write_text(html, encoding="utf-8")
        reload(page)
        assert progress(page) == decided


@pytest.mark.slow
def test_a_browser_that_stores_nothing_says_so(visit, content):
    page = visit(content)
    page.add_init_script("Storage.prototype.setItem = () => { throw new Error('full'); }")
    reload(page)
    assert not page.get_by_role("alert").is_visible()
    start(page)
    page.keyboard.press("k")
    assert "does not store decisions" in page.get_by_role("alert").text_content()
    assert page.get_by_role("alert").is_visible()
    assert len(records(downloaded(page))) == 1
    page.add_init_script("Storage.prototype.getItem = () => { throw new Error('blocked'); }")
    reload(page)
    assert page.get_by_role("alert").is_visible()


@pytest.mark.slow
def test_paper_shows_what_was_decided(visit, content):
    page = visit(content)
    start(page)
    page.keyboard.press("k")
    page.emulate_media(media="print")
    assert page.locator(".decide button:visible").all_text_contents() == ["Keep"]


@pytest.mark.slow
def test_unlabeled_rows_are_left_or_get_a_class(visit, content):
    for row in content["rows"]:
        row |= {"label": None, "doubt": 0.0}
    classes = [{"name": "cat", "expected": 5, "low": 3, "high": 8}]
    content |= {"question": "unlabeled", "unlabeled": {"n_rows": 12, "classes": classes}}
    page = visit(content)
    assert page.get_by_label("Label", exact=True).count() == 0
    start(page)
    page.keyboard.press("k")
    page.keyboard.press("a")
    leave = page.locator("#rows [aria-pressed=true]").first
    assert leave.text_content() == "Leave"
    suggestion = content["rows"][1]["suggestion"]
    found = [[row[1], *row[4:6]] for row in records(downloaded(page))]
    assert found == [["", "keep", ""], ["", "accept", suggestion]]


@pytest.mark.slow
def test_rows_that_are_left_are_of_the_class_that_is_never_labeled(visit, content):
    for i, row in enumerate(content["rows"]):
        row |= {"label": None, "doubt": 0.0, "positive_proba": (i + 1) / 16}
    content["rows"][1]["suggestion"] = SCRIPT  # the class without a label
    content["rows"][2]["suggestion"] = "cat"
    classes = [{"name": name, "expected": 5, "low": 3, "high": 8} for name in CLASSES[:3]]
    content |= {"question": "unlabeled", "unlabeled": {"n_rows": 12, "classes": classes}}
    page = visit(content)
    assert f"leave unlabeled, because the class is {SCRIPT}" in page.locator(".keys").text_content()
    start(page)
    for key in "kaak":
        page.keyboard.press(key)
    found = [[row[1], *row[3:6]] for row in records(downloaded(page))]
    assert found == [
        ["", "0.0625", "keep", SCRIPT],
        ["", "0.125", "keep", SCRIPT],  # an accepted suggestion that says the same
        ["", "0.1875", "accept", "cat"],
        ["", "0.25", "keep", SCRIPT],
    ]
    page.locator("#rows tbody tr").nth(1).focus()
    page.keyboard.press("a")  # the same again clears it
    assert progress(page) == "3 of 12 decided"


@pytest.mark.slow
def test_the_review_is_labeled_for_screen_readers(visit, content):
    page = visit(content)
    assert page.locator("#progress").get_attribute("role") == "status"
    assert page.get_by_role("progressbar", name="0 of 12 decided").count() == 1
    names = page.locator("#rows tbody [role=group]").evaluate_all(
        "groups => groups.map(g => g.ariaLabel)"
    )
    assert len(set(names)) == 12
    keys = page.locator("kbd").all_text_contents()
    assert re.fullmatch("\u2193\u2191KACSU", "".join(keys))
