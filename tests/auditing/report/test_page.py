"""The page as a whole: names cannot inject code, it needs no other file, and it stays small."""

import json
import re
import sys
from base64 import b64encode
from collections import Counter
from hashlib import sha256

import numpy as np
import pytest

from looselabels.auditing.report import MAX_BYTES, MAX_ROWS, render
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
    html = render(content)
    html.encode()  # a lone surrogate would fail here
    harmless = made_up_content(["cat", "dog"], n_rows=4)
    harmless["sources"] = dict.fromkeys(content["sources"], hostile and "specified")
    page, expected = Page(html), Page(render(harmless))
    assert page.tags == expected.tags
    assert Counter(a[:2] for a in page.attributes) == Counter(a[:2] for a in expected.attributes)
    assert not {letter for letter in html if not letter.isprintable()} - {"\n"}
    assert len(html) < 100_000


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


@pytest.mark.parametrize("n_classes", [100, 400])
def test_the_largest_page_is_below_its_limit(n_classes):
    rng = np.random.default_rng(0)
    names = [f'"<&>"{i}' * 2000 for i in range(n_classes)]
    content = made_up_content(names, n_rows=MAX_ROWS + 100)
    for images in (
        rng.integers(0, 256, (MAX_ROWS + 100, 28, 28), dtype=np.uint8),
        [rng.random((100, 90, 3))] * (MAX_ROWS + 100),
    ):
        html = render(content, images)
        assert html.count("<img") == MAX_ROWS
        assert len(html.encode()) <= MAX_BYTES


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
