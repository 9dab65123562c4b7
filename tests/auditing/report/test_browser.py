"""The page in a real browser: sorting, filters, keyboard, phone, dark mode, paper."""

import re
from collections import Counter

import numpy as np
import pytest

from looselabels.auditing.report import render
from tests.auditing.report.conftest import NAMES
from tests.auditing.report.samples import (
    HOSTILE,
    SCRIPT,
    consensus_content,
    made_up_content,
    minimal_content,
)

COLUMNS = ("Row (from 0)", "Label", "Suggested class", "Doubt", "Why")


def column_of(page, position):
    cells = page.locator(f"#rows tbody tr:visible > :nth-child({position + 1})")
    return cells.evaluate_all(
        "cells => cells.map(c => c.dataset.v ?? c.dataset.text ?? c.textContent)"
    )


def cells_of(page, column):
    """Return the texts of a column of the table that was audited."""
    return page.locator(f"#rows td[data-title={column}]").all_text_contents()


def natural(value):
    """Return a sort key in which numbers within text count as numbers."""
    return [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", value)]


@pytest.mark.slow
@pytest.mark.parametrize("column", COLUMNS)
def test_each_header_sorts_up_and_down(visit, content, column):
    content["rows"][3]["doubt"] = None
    page = visit(content)
    header = page.locator("#rows th", has_text=re.compile(f"^{re.escape(column)}$"))
    position = COLUMNS.index(column)
    button = header.get_by_role("button")
    for direction in ("ascending", "descending"):
        button.click()
        assert header.get_attribute("aria-sort") == direction
        assert page.locator("#rows [aria-sort]").count() == 1
        found = column_of(page, position)
        assert len(found) == 40
        if column == "Doubt":
            assert all(value == "None" for value in found[len(found) - found.count("None") :])
            keys = [float(value) for value in found if value != "None"]
        elif column == COLUMNS[0]:
            keys = [int(value) for value in found]
        else:
            keys = [natural(value) for value in found if SCRIPT not in value]
            keys = [tuple((isinstance(p, str), p) for p in key) for key in keys]
        assert keys == sorted(keys, reverse=direction == "descending")


@pytest.mark.slow
@pytest.mark.parametrize("consensus", [False, True])
def test_columns_of_numbers_are_sorted_by_value(visit, consensus):
    content = consensus_content() if consensus else made_up_content(NAMES)
    content["shown_columns"] = ["size", "text"]
    content["rows"] = content["rows"][:1] * 9
    numbers = ["3", "", "-10", "0.25", "-1", "1e-05", "0.5", "10", "-2"]
    texts = ["v10", "v9", "", "-1", "-2", "3", "x", "v8", "10"]
    for i, cells in enumerate(zip(numbers, texts, strict=True)):
        content["rows"][i] = content["rows"][i] | {"cells": cells}
    page = visit(content)
    ordered = ["-10", "-2", "-1", "1e-05", "0.25", "0.5", "3", "10"]
    button = page.locator("#rows th button", has_text="size")
    for expected in (ordered, ordered[::-1]):
        button.click()
        assert cells_of(page, "size") == [*expected, ""]
    page.locator("#rows th button", has_text="text").click()
    assert [text for text in cells_of(page, "text") if text > "u"] == ["v8", "v9", "v10", "x"]


@pytest.mark.slow
def test_the_keyboard_sorts(visit, content):
    page = visit(content)
    page.locator("#rows th button", has_text="Doubt").focus()
    page.keyboard.press("Enter")
    doubts = [float(value) for value in column_of(page, 3)]
    assert doubts == sorted(doubts)
    page.keyboard.press("Space")
    assert [float(value) for value in column_of(page, 3)] == doubts[::-1]


@pytest.mark.slow
def test_the_keyboard_reaches_the_report_first(visit, content):
    page = visit(content)
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the report"
    assert page.locator(".skip").bounding_box()["x"] >= 0


@pytest.mark.slow
def test_filters_count_what_they_show(visit, content):
    page, status = visit(content), "Showing {} of 40"
    shown = page.locator("#count")
    assert shown.get_attribute("role") == "status"
    assert shown.text_content() == status.format(40)
    rows = content["rows"]
    labels, suggestions = (Counter(row[key] for row in rows) for key in ("label", "suggestion"))
    pairs = Counter((row["label"], row["suggestion"]) for row in rows)
    label, suggestion = next(  # such that each of the two filters hides rows
        pair for pair, n in pairs.items() if n < min(labels[pair[0]], suggestions[pair[1]])
    )
    n_label, n_both = labels[label], pairs[label, suggestion]
    page.get_by_label("Label", exact=True).select_option(label=f"{label} ({n_label})")
    assert shown.text_content() == status.format(n_label)
    assert column_of(page, 1) == [label] * n_label
    option = f"{suggestion} ({suggestions[suggestion]})"
    page.get_by_label("Suggested class", exact=True).select_option(label=option)
    assert shown.text_content() == status.format(n_both)
    assert page.locator("#rows tbody tr:visible").count() == n_both
    page.locator("#rows th button", has_text="Row").click()  # sorting keeps the filters
    assert page.locator("#rows tbody tr:visible").count() == n_both


@pytest.mark.slow
def test_a_script_as_a_label_is_only_text(visit, content):
    page = visit(content)
    assert page.title() == "Label report: animals.csv"
    assert page.locator("#rows td", has_text=SCRIPT).count() > 0
    assert page.locator("script").count() == 1


@pytest.mark.slow
def test_the_policy_stops_a_script_that_got_in(browser, tmp_path):
    """A script that was not escaped would still not run."""
    html = render(minimal_content()).replace(
        "</main>", f"{SCRIPT}<style>body{{color:red}}</style></main>"
    )
    (tmp_path / "broken.html").write_text(html, encoding="utf-8")
    page = browser.new_page()
    page.goto((tmp_path / "broken.html").as_uri())
    assert page.title() == "Label report"
    assert page.evaluate("getComputedStyle(document.body).color") != "rgb(255, 0, 0)"
    page.close()


@pytest.mark.slow
@pytest.mark.parametrize("names", [NAMES, HOSTILE, [f"class {i}" for i in range(100)]])
def test_a_phone_never_scrolls_sideways(visit, names):
    long = "x" * 10_000
    content = made_up_content(names) | {"warnings": [long], "data": long, "label_column": long}
    content["design"]["words"] = [long]
    page = visit(content, viewport={"width": 375, "height": 700})
    page.evaluate("document.querySelectorAll('details').forEach(d => { d.open = true })")
    assert page.evaluate("document.documentElement.scrollWidth") <= 375


@pytest.mark.slow
@pytest.mark.parametrize("width", [1200, 1600])
def test_columns_of_text_have_room_and_nothing_covers_why(visit, width):
    names = ("technical", "shipping", "billing")
    content = made_up_content(names) | {"id_name": "ticket", "class_names": names}
    for i, row in enumerate(content["rows"]):
        cells = ["eight words of a subject line or so", "word " * 90, "web form", "Asia Pacific"]
        row |= {"id": f"TICKET-{i:05}", "cells": cells, "hash": ""}
        row["why"] = "looks like 'shipping', not 'technical'"
    content["shown_columns"] = ["subject", "message", "channel", "region"]
    page = visit(content, viewport={"width": width, "height": 900})
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    row = page.locator("#rows tbody tr").first
    box = {c: row.locator(f".{c}").first.bounding_box() for c in ("long", "why", "decide")}
    assert box["why"]["x"] + box["why"]["width"] <= box["decide"]["x"] + 1
    assert box["decide"]["x"] + box["decide"]["width"] <= width
    assert box["long"]["width"] > width / 6
    assert row.locator(".long").count() == 1
    buttons = row.locator(".decide button").evaluate_all(
        "all => all.map(b => b.scrollWidth <= b.clientWidth)"
    )
    assert buttons == [True] * 4  # no text is cut


@pytest.mark.slow
def test_long_names_of_classes_cover_no_number(visit):
    names = ("card_payment_fee_charged_twice_abroad", "Donaudampfschifffahrtsgesellschaft")
    page = visit(made_up_content(names), viewport={"width": 1200, "height": 900})
    assert page.locator(".proba").evaluate_all(
        "all => all.every(cell => cell.scrollWidth <= cell.clientWidth)"
    )


@pytest.mark.slow
def test_a_date_is_in_one_line(visit):
    content = made_up_content(("cat", "dog"))
    for row in content["rows"]:
        row["cells"] = ["2026-10-02", "02.10.2026", "10/02/2026", "word " * 90]
    content["shown_columns"] = ["first", "second", "third", "text"]
    page = visit(content, viewport={"width": 1000, "height": 900})
    heights = (
        page.locator("#rows tbody tr")
        .first.locator(".cell div")
        .evaluate_all("cells => cells.map(cell => cell.clientHeight)")
    )
    assert heights[0] == heights[1] == heights[2] == heights[3] / 3


@pytest.mark.slow
def test_dark_mode_is_dark_and_paper_is_white(visit, content):
    page = visit(content, color_scheme="dark")
    background = "getComputedStyle(document.body).backgroundColor"
    assert page.evaluate(background) == "rgb(20, 23, 26)"
    page.emulate_media(media="print", color_scheme="dark")
    assert page.evaluate(background) == "rgb(255, 255, 255)"


@pytest.mark.slow
def test_paper_has_every_row_and_no_controls(visit, content):
    page = visit(content, [np.eye(8)] * 40)
    page.emulate_media(media="print")
    for hidden in ("nav", "#controls", "#review", "summary", ".decide button"):
        assert not page.locator(hidden).first.is_visible()
    box = page.locator(".tall").evaluate("box => [box.scrollHeight, box.clientHeight]")
    assert box[0] == box[1]
    assert page.locator("#rows img").last.is_visible()
    assert page.pdf().startswith(b"%PDF")


@pytest.mark.slow
def test_without_scripts_the_table_is_plain_and_complete(visit, content):
    page = visit(content, java_script_enabled=False)
    assert page.locator("#rows tbody tr").count() == 40
    assert page.locator("#rows button").count() == 0
    assert not page.locator("#controls").is_visible()
    assert not page.locator("#review").is_visible()
    assert not page.locator("dialog").is_visible()


@pytest.mark.slow
def test_text_has_enough_contrast(visit):
    """At least 4.5, in light and in dark mode, also on the shades of the heat map."""
    measure = """() => {
      const ctx = document.createElement("canvas").getContext("2d", {willReadFrequently: true});
      const light = (layers) => {
        for (const [color, alpha] of layers) {
          ctx.globalAlpha = alpha; ctx.fillStyle = color; ctx.fillRect(0, 0, 1, 1);
        }
        const lin = (v) => (v /= 255) <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4;
        const [r, g, b] = ctx.getImageData(0, 0, 1, 1).data;
        return .2126 * lin(r) + .7152 * lin(g) + .0722 * lin(b) + .05;
      };
      const root = getComputedStyle(document.documentElement);
      const color = (name) => root.getPropertyValue("--" + name);
      const contrast = (text, layers) => {
        const [a, b] = [light([[color(text), 1]]), light(layers)];
        return Math.max(a, b) / Math.min(a, b);
      };
      const grounds = ["paper", "panel"].map((name) => [[color(name), 1]]);
      const found = ["ink", "quiet", "accent"].flatMap((t) => grounds.map((g) => contrast(t, g)));
      for (const path of document.querySelectorAll(".numbered path")) {
        const shade = Number(path.getAttribute("class").slice(1));
        const over = [color("accent"), Number(getComputedStyle(path).strokeOpacity)];
        found.push(contrast(shade > 8 ? "over" : "ink", [[color("panel"), 1], over]));
      }
      return found;
    }"""
    content = made_up_content([f"class {i}" for i in range(10)])
    content["transition"]["proba"] = [[((j + 1) / 10) ** 2 for j in range(11)] for _ in range(10)]
    for scheme in ("light", "dark"):
        found = visit(content, color_scheme=scheme).evaluate(measure)
        assert len(found) >= 16
        assert min(found) >= 4.5
