"""The page as a whole: names cannot inject code, it needs no other file, and it stays small."""

import json
import re
import sys
from base64 import b64encode
from collections import Counter
from hashlib import sha256

import numpy as np
import pytest

from looselabels.auditing.report import MAX_BYTES, render
from looselabels.auditing.report._list import MAX_COLUMNS, MAX_ROWS
from tests.auditing.report.samples import (
    HOSTILE,
    Page,
    content_of,
    made_up_content,
    minimal_content,
)

# ------------------------------------------------------------------------------------ hostile names


@pytest.mark.parametrize("hostile", HOSTILE)
def test_a_hostile_name_stays_text_everywhere(hostile):
    content = made_up_content([hostile, "dog"], n_rows=4)
    content |= {"data": hostile, "label_column": hostile, "looselabels": hostile}
    content["design"]["words"] = [hostile]
    content["sources"] = dict.fromkeys(content["sources"], hostile)
    content["reproduce"] = {
        "command": hostile or "-",
        "versions": {hostile: hostile},
        "seed": hostile,
    }
    content["rows"][0] |= {"row": hostile, "why": hostile}
    content = with_all_of_the_list(content, hostile)
    html = render(content)
    html.encode()  # a lone surrogate would fail here
    harmless = with_all_of_the_list(made_up_content(["cat", "dog"], n_rows=4), "cow")
    harmless["sources"] = dict.fromkeys(content["sources"], hostile and "specified")
    page, expected = Page(html), Page(render(harmless))
    assert page.tags == expected.tags
    assert Counter(a[:2] for a in page.attributes) == Counter(a[:2] for a in expected.attributes)
    assert not {letter for letter in html if not letter.isprintable()} - {"\n"}
    assert len(html) < 200_000


def with_all_of_the_list(content, text):
    """Return the content with everything that the list can show, each with this text."""
    rows = [
        row
        | {"id": text, "hash": text, "cells": [text[:1000], None], "probabilities": [[text, 0.2]]}
        | {"label": text, "suggestion": text}
        for row in content["rows"]
    ]
    more = dict.fromkeys(("id_name", "id_note", "table_file"), text)
    variants = [{"labels": [text, "cow"], "command": text.strip() or "-"}]
    shown = {"shown_columns": [text, "size"], "class_names": [text, "cow"]}
    return content | more | shown | {"rows": rows, "n_to_check": 900, "variants": variants}


def test_no_tag_and_no_handler_comes_from_a_name():
    page = Page(render(made_up_content(HOSTILE)))
    assert "{{ 7 * 7 }}{% raw %}" in page.texts
    assert page.tags["script"] == page.tags["style"] == 1
    assert not [a for a in page.attributes if a[1].startswith("on") or a[1] == "style"]


def test_names_of_any_type_are_shown():
    names = [True, 3, 2.5, ("web", "cat"), ("web", None), "日本語" * 30, None]
    html = render(json.loads(json.dumps(made_up_content(names, unlabeled=False))))
    for text in ("True", "2.5", "web: cat", "web: (unlabeled)", "日本語", "(unlabeled)"):
        assert text in html


# ---------------------------------------------------------------------------------- self-contained


def hash_of(html, tag):
    source = re.search(rf"<{tag}>(.*?)</{tag}>", html, re.DOTALL)[1]
    return "sha256-" + b64encode(sha256(source.encode()).digest()).decode()


def test_the_policy_allows_only_this_script_and_this_style(noise_estimated):
    html = render(content_of(noise_estimated))
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', html)[1]
    assert policy == (
        "default-src 'none'; img-src data:; "
        f"style-src '{hash_of(html, 'style')}'; script-src '{hash_of(html, 'script')}'; "
        "base-uri 'none'; form-action 'none'"
    )
    assert html.index("Content-Security-Policy") < html.index("<style>")


def test_the_page_links_to_nothing_outside(noise_estimated):
    html = render(content_of(noise_estimated), [np.eye(4)] * 40)
    assert "//" not in re.sub(r"//.*", "", re.search(r"<script>(.*?)</script>", html, re.S)[1])
    assert not re.search(r"https?:|@import|url\(", html)
    page = Page(html)
    links = {value for _, key, value in page.attributes if key in ("src", "href", "xlink:href")}
    assert all(link.startswith(("#", "data:")) for link in links)
    assert {link[1:] for link in links if link[0] == "#"} <= set(page.ids)
    assert len(set(page.ids)) == len(page.ids)


def test_the_largest_page_is_below_its_limit():
    rng = np.random.default_rng(0)
    names = [f'"<&>"{i}' * 2000 for i in range(400)]
    content = made_up_content(names, n_rows=MAX_ROWS + 100)
    content["shown_columns"] = names[:50]
    for row in content["rows"]:
        row |= {"id": names[0], "cells": names[:50]}
    for images in (
        rng.integers(0, 256, (MAX_ROWS + 100, 28, 28), dtype=np.uint8),
        [rng.random((100, 90, 3))] * (MAX_ROWS + 100),
    ):
        html = render(content, images)
        assert html.count("<img") == MAX_ROWS
        assert len(html.encode()) <= MAX_BYTES
    text = Page(html).text
    assert "To keep this page small: 30 more columns are not shown. Texts are cut after 60" in text
    assert html.count('class="cell"') == MAX_ROWS * MAX_COLUMNS
    assert "Rows cannot be decided here: their names and identifiers are too long." in text
    assert "data-review" not in html


def test_the_page_says_how_many_thumbnails_are_left_out(monkeypatch, noise_estimated):
    content, images = content_of(noise_estimated), [np.random.default_rng(0).random((32, 32))] * 40
    assert "left out" not in Page(render(content, images)).text
    limit = len(render(content).encode()) + 40 * 500 + 50_000
    monkeypatch.setattr("looselabels.auditing.report.MAX_BYTES", limit)
    monkeypatch.setattr("looselabels.auditing.report._thumbnails.SIDES", (32,))
    html = render(content, images)
    n_images = html.count("<img")
    assert 10 < n_images < 40
    assert f"Thumbnails of {40 - n_images} rows are left out." in Page(html).text
    assert len(html.encode()) <= limit
    monkeypatch.setattr("looselabels.auditing.report.MAX_BYTES", 1000)  # no room at all
    text = Page(render(content, images)).text
    assert "Thumbnails of 40 rows are left out." in text


def test_there_must_be_one_image_per_row(noise_estimated):
    with pytest.raises(ValueError, match="images has 3 entries; rows has 40"):
        render(content_of(noise_estimated), [None] * 3)
    assert render(content_of(noise_estimated, 2), [None, np.eye(3)]).count("<img") == 1


def test_without_jinja2_the_message_says_how_to_install_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(
        ImportError, match=r'^This needs jinja2: pip install "looselabels\[report\]"$'
    ):
        render(minimal_content())
