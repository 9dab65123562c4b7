"""The report: nothing that a name holds gets out, all of it fits, and a person can use it."""

import json
import re
import shutil
import struct
import sys
import zlib
from base64 import b64decode, b64encode
from collections import Counter
from hashlib import sha256
from html.parser import HTMLParser

import numpy as np
import pytest

pytest.importorskip("jinja2", reason="jinja2 is not installed")

from looselabels.auditing.report import MOST_BYTES, render
from looselabels.auditing.report import _charts as charts
from looselabels.auditing.report import _thumbnails as pictures
from looselabels.auditing.report import _words as words

SCRIPT = '<script>document.title="x"</script>'
HOSTILE = [
    SCRIPT,
    "</script><script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "\"' onmouseover='alert(1)",
    "{{ 7 * 7 }}{% raw %}",
    "gnp.\u202efdp",
    "\x1b[31mred\x1b[0m",
    "x" * 10_000,
    "",
    "  ",
    "</style></svg>]]>-->",
    "\ud800",
]


def content_of(names, unlabeled=True, n_rows=40):
    """Return content as an audit would write it, with numbers that only have to be plausible."""
    rng = np.random.default_rng(0)
    names, labels = list(names), [*names, *([None] if unlabeled else [])]
    proba = rng.dirichlet(np.ones(len(labels)), len(names))
    share = rng.dirichlet(np.ones(len(names)))
    matrix = {"classes": names, "labels": labels, "proba": proba.tolist()}
    interval = {"low": (0.9 * proba).tolist(), "high": (proba + 0.1 * (1 - proba)).tolist()}
    doubts = np.sort(rng.random(n_rows))[::-1]
    rows = [
        {
            "row": int(rng.integers(1000)),
            "label": names[rng.integers(len(names))],
            "suggestion": names[rng.integers(len(names))],
            "class_proba": rng.random(),
            "label_proba": rng.random(),
            "doubt": doubt,
            "why": f"looks like {names[0]}",
        }
        for doubt in doubts.tolist()
    ]
    return {
        "schema": 1,
        "looselabels": "0.1.0",
        "data": "animals.csv",
        "label_column": "species",
        "n_rows": 1797,
        "n_labeled": 180,
        "design": {"words": ["Labels are missing at random."], **matrix},
        "classes": [
            {"name": name, "share": s, "low": 0.9 * s, "high": 1.1 * s}
            for name, s in zip(names, share.tolist(), strict=True)
        ],
        "transition": {**matrix, **interval},
        "wrong": {"expected": 36.2, "low": 28, "high": 45, "doubted": 33},
        "flow": (1797 * share[:, None] * proba).T.tolist(),
        "calibration": {
            "bins": [{"confidence": 0.15, "frequency": 0.12, "count": 310}],
            "error": 0.021,
        },
        "infeasible": 0.031,
        "unsupported_labels": names[:1],
        "indistinct_classes": [names[:2]],
        "warnings": [f"The class {names[0]} is rare."],
        "converged": False,
        "columns": {"used": 12, "ignored": [{"name": names[0], "why": f"{names[0]} is unique"}]},
        "reproduce": {"command": "looselabels audit", "versions": {"numpy": "2.1"}, "seed": 0},
        "rows": rows,
    }


def bare():
    return {
        "n_rows": 10,
        "n_labeled": 5,
        "wrong": {"expected": 1.0, "low": 0, "high": 2, "doubted": 1},
    }


class Page(HTMLParser):
    """Tags that must balance, and what they hold."""

    VOID = ("meta", "link", "img")

    def __init__(self, html):
        super().__init__()
        self.open, self.tags, self.attributes, self.ids = [], Counter(), [], []
        self.scripts, self.texts = [], []
        self.feed(html)
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attributes):
        self.tags[tag] += 1
        self.attributes += [(tag, *pair) for pair in attributes]
        self.ids += [value for key, value in attributes if key == "id"]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.tags[tag] += 1
        self.attributes += [(tag, *pair) for pair in attributes]

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append(data)


# ------------------------------------------------------------------------------------ hostile names


@pytest.mark.parametrize("hostile", HOSTILE)
def test_a_hostile_name_stays_text_wherever_it_is(hostile):
    content = content_of([hostile, "dog"], n_rows=4)
    content |= {"data": hostile, "label_column": hostile, "looselabels": hostile}
    content["design"]["words"] = [hostile]
    content["reproduce"] = {
        "command": hostile or "-",
        "versions": {hostile: hostile},
        "seed": hostile,
    }
    content["rows"][0] |= {"row": hostile, "why": hostile}
    html = render(content)
    html.encode()  # a lone surrogate would fail here
    page, tame = Page(html), Page(render(content_of(["cat", "dog"], n_rows=4)))
    assert page.tags == tame.tags
    assert Counter(a[:2] for a in page.attributes) == Counter(a[:2] for a in tame.attributes)
    assert not {letter for letter in html if not letter.isprintable()} - {"\n"}
    assert len(html) < 100_000


def test_no_tag_and_no_handler_comes_from_a_name():
    page = Page(render(content_of(HOSTILE)))
    assert "{{ 7 * 7 }}{% raw %}" in page.texts
    assert page.tags["script"] == page.tags["style"] == 1
    assert not [a for a in page.attributes if a[1].startswith("on") or a[1] == "style"]


def test_names_of_any_type_are_shown():
    names = [True, 3, 2.5, ("web", "cat"), ("web", None), "日本語" * 30, None]
    html = render(json.loads(json.dumps(content_of(names, unlabeled=False))))
    for text in ("True", "2.5", "web: cat", "web: (unlabeled)", "日本語", "(unlabeled)"):
        assert text in html


# ---------------------------------------------------------------------------------- self-contained


def hash_of(html, tag):
    source = re.search(rf"<{tag}>(.*?)</{tag}>", html, re.DOTALL)[1]
    return "sha256-" + b64encode(sha256(source.encode()).digest()).decode()


def test_the_policy_allows_this_script_and_this_style_only():
    html = render(content_of(["cat", "dog"]))
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', html)[1]
    assert policy == (
        "default-src 'none'; img-src data:; "
        f"style-src '{hash_of(html, 'style')}'; script-src '{hash_of(html, 'script')}'; "
        "base-uri 'none'; form-action 'none'"
    )
    assert html.index("Content-Security-Policy") < html.index("<style>")


def test_nothing_leads_out_of_the_page():
    html = render(content_of(["cat", "dog"]), [np.eye(4)] * 40)
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
    content = content_of(names, n_rows=600)
    images = rng.integers(0, 256, (600, 28, 28), dtype=np.uint8)
    html = render(content, images)
    assert html.count("<img") == 500
    assert len(html.encode()) <= MOST_BYTES
    html = render(content, [rng.random((100, 90, 3))] * 600)
    assert html.count("<img") == 500
    assert len(html.encode()) <= MOST_BYTES


def test_no_jinja2_is_one_clear_line(monkeypatch):
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(
        ImportError, match=r'^This needs jinja2: pip install "looselabels\[report\]"$'
    ):
        render(bare())


# ---------------------------------------------------------------------------------------- sections


def test_whatever_is_missing_is_left_out():
    full = content_of(["cat", "dog"])
    ids = ("assumed", "shares", "transition", "doubts", "moves", "calibration", "reproduce")
    assert all(f'id="{section}"' in render(full) for section in ids)
    page = render(bare())
    Page(page)
    assert [section for section in ids if f'id="{section}"' in page] == ["doubts"]
    assert "No label stands out." in page
    for key in set(full) - set(bare()):
        Page(render({k: value for k, value in full.items() if k != key}))
    for key in ("columns", "calibration", "design", "transition", "reproduce"):
        Page(
            render(full | {key: {}} if key != "design" else full | {key: {"words": []}, "flow": []})
        )


def test_the_verdict_is_one_sentence():
    def said(expected, doubted, labeled=180):
        return words.verdict(
            {"n_labeled": labeled, "wrong": {"expected": expected, "doubted": doubted}}
        )

    assert said(36.2, 33) == (
        "About 36 of 180 labels (20%) are probably wrong; 33 are worth a look first."
    )
    assert said(1, 1, 2000) == (
        "About 1 of 2,000 labels (0.05%) is probably wrong; 1 is worth a look first."
    )
    assert said(9, 0) == (
        "About 9 of 180 labels (5%) are probably wrong; "
        "no single one is more likely wrong than right."
    )
    assert said(0.2, 0) == "Probably none of 180 labels is wrong."
    assert said(0.0, 0, 0) == "No row has a label, so there is no label to doubt."


def test_warnings_come_first_and_in_plain_words():
    page = render(content_of(["cat", "dog", "wolf"]))
    assert page.index("The class cat is rare.") < page.index('id="assumed"')
    for sentence in (
        "The design names labels that no row has: cat.",
        "No label tells cat and dog apart.",
        "The estimate was stopped before it settled",
    ):
        assert sentence in page
    quiet = content_of(["cat", "dog"]) | {"converged": True, "warnings": []}
    quiet |= {"unsupported_labels": [], "indistinct_classes": []}
    assert "Before you rely on this" not in render(quiet)


def test_a_told_transition_is_not_drawn_twice():
    content = content_of(["cat", "dog"])
    told = content["design"]["proba"]
    content["transition"] |= {"low": told, "high": told}
    page = render(content)
    assert "was not changed" in page
    assert page.count('class="chart map') == 1


def test_missing_numbers_are_a_dash():
    content = content_of(["cat", "dog"], n_rows=2)
    content["rows"][0] |= {"class_proba": None, "label_proba": float("nan")}
    content["wrong"] |= {"low": None, "high": None}
    assert render(content).count(">–</td>") == 2


def test_images_are_one_a_row():
    with pytest.raises(ValueError, match="images has 3 entries; rows has 40"):
        render(content_of(["cat", "dog"]), [None] * 3)
    page = render(content_of(["cat", "dog"], n_rows=2), [None, np.eye(3)])
    assert page.count("<img") == 1


# ------------------------------------------------------------------------------------------ charts


def test_shades_cover_each_cell_once_and_zeros_never():
    proba = np.array([[0.0, 0.5, 0.5], [1.0, 0.0, 0.0]])
    drawn = dict(charts._strokes(proba, merge=True))
    assert drawn == {8: "M1 0h2", 10: "M0 1h1"}
    apart = dict(charts._strokes(proba, merge=False))
    assert apart[8].count("M") == 2


@pytest.mark.parametrize(("n", "numbers"), [(3, 9), (12, 144), (30, 900), (31, 0), (130, 0)])
def test_many_names_get_no_numbers(n, numbers):
    matrix = {"classes": range(n), "labels": range(n), "proba": np.full((n, n), 1 / n)}
    drawn = charts.heat_map(matrix, (np.arange(n), np.arange(n)))
    assert len(drawn["numbers"]) == numbers
    assert drawn["width"] < 1000
    assert drawn["left_out"] == (max(0, n - 120),) * 2
    assert drawn["row_names"][0][1] == str(max(0, n - 120))  # the largest are kept


def test_bands_fill_their_nodes():
    rows = np.array([[10.0, 2.0], [0.1, 20.0]])
    drawn = charts.flow(rows, ["cat", "dog"], ["cat", "dog"])
    assert [band[2] for band in drawn["bands"]] == [
        "cat to cat: 10 rows",
        "cat to dog: 2 rows",
        "dog to dog: 20 rows",
    ]
    assert [band[1] for band in drawn["bands"]] == [True, False, True]
    # the second band of a label starts where the first ends
    first, second = (re.findall(r"-?[\d.]+", band[0]) for band in drawn["bands"][:2])
    assert second[1] == first[-1]
    heights = [sum(node[1] for node in drawn[side]) for side in ("left", "right")]
    assert heights[0] == pytest.approx(heights[1], abs=0.5)


def test_of_many_labels_only_those_that_move_are_drawn():
    n = 50
    rows = 100 * np.eye(n) + 1
    drawn = charts.flow(rows, list(range(n)), list(range(n)))
    assert len(drawn["bands"]) == charts.MOST_BANDS
    assert not any(stay for _, stay, _ in drawn["bands"])
    assert drawn["stay"] == 101 * n
    assert drawn["rest"] + len(drawn["bands"]) == n * (n - 1)
    assert charts.flow(np.zeros((2, 2)), ["a", "b"], ["a", "b"]) is None


def test_a_label_of_a_data_set_names_its_class():
    assert charts.stays(["web", "cat"], "cat")
    assert not charts.stays("canine", "dog")
    assert charts.missing(("web", None))
    assert not charts.missing(())


# ---------------------------------------------------------------------------------------- pictures


def decoded(uri):
    """Return the pixels of a PNG without filters, read by the letter of its format."""
    data = b64decode(uri.removeprefix("data:image/png;base64,"))
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    chunks, at = {}, 8
    while at < len(data):
        (length,), kind = struct.unpack(">I", data[at : at + 4]), data[at + 4 : at + 8]
        body = data[at + 8 : at + 8 + length]
        (check,) = struct.unpack(">I", data[at + 8 + length : at + 12 + length])
        assert check == zlib.crc32(kind + body)
        chunks[kind], at = body, at + 12 + length
    width, height, depth, color = struct.unpack(">2I2B", chunks[b"IHDR"][:10])
    assert depth == 8
    assert list(chunks) == [b"IHDR", b"IDAT", b"IEND"]
    channels = {0: 1, 2: 3}[color]
    lines = np.frombuffer(zlib.decompress(chunks[b"IDAT"]), np.uint8).reshape(height, -1)
    assert not lines[:, 0].any()
    return lines[:, 1:].reshape(height, width, channels).squeeze()


@pytest.mark.parametrize("shape", [(5, 7), (7, 5, 3)])
def test_a_small_picture_keeps_its_pixels(shape):
    image = np.random.default_rng(0).integers(0, 256, shape, dtype=np.uint8)
    np.testing.assert_array_equal(decoded(pictures.thumbnails([image], 10_000)[0]), image)


def test_numbers_of_any_range_are_stretched_alike():
    first, second = np.array([[0.0, 16.0]]), np.array([[8.0, np.nan, np.inf]])
    uris = pictures.thumbnails([first, None, second, first > 1], 10_000)
    assert uris[1] is None
    np.testing.assert_array_equal(decoded(uris[0]), [0, 255])
    np.testing.assert_array_equal(decoded(uris[2]), [127, 0, 255])


def test_a_large_picture_shrinks_to_means_and_keeps_its_shape():
    image = np.kron([[0, 100], [200, 50]], np.ones((100, 50))).astype(np.uint8)
    small = decoded(pictures.thumbnails([image], 10_000)[0])
    assert small.shape == (64, 32)
    assert small[0, 0] == 0
    assert small[-1, 0] == 200
    tiny = decoded(pictures.thumbnails([image[:, :1]], 10_000)[0])
    assert tiny.shape == (64,)


def test_pictures_shrink_until_they_fit():
    noise = list(np.random.default_rng(0).integers(0, 256, (50, 64, 64), dtype=np.uint8))
    for most in (400_000, 100_000, 20_000):
        assert most / 4 < sum(map(len, pictures.thumbnails(noise, most))) <= most
    assert pictures.thumbnails(noise, 100) == [None] * 50


@pytest.mark.parametrize("image", [np.ones(3), np.ones((0, 2)), np.ones((2, 2, 4)), [["a"]]])
def test_what_is_no_picture_is_named(image):
    with pytest.raises(ValueError, match="Image 1 "):
        pictures.thumbnails([np.eye(2), image], 1000)


# ----------------------------------------------------------------------------------- in the browser

NAMES = ["cat", "dog", SCRIPT, "10", "9"]
COLUMNS = ["Row", "Label", "Suggested class", "Doubt", "Class probability", "Label probability"]


@pytest.fixture(scope="module")
def browser():
    api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    path = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "chrome"))), None)
    if path is None:
        pytest.skip("no Chromium is installed")
    with api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def visit(browser, tmp_path):
    """Open a report; at the end, nothing was logged and no request has left the page."""
    complaints, requests, pages = [], [], []

    def opened(content, images=None, **settings):
        path = tmp_path / "report.html"
        path.write_text(render(content, images), encoding="utf-8")
        page = browser.new_page(**settings)
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("request", lambda request: requests.append(request.url))
        page.goto(path.as_uri())
        pages.append(page)
        return page

    yield opened
    for page in pages:
        page.close()
    assert complaints == []
    assert requests
    assert all(url.startswith(("file:", "data:")) for url in requests)


def column_of(page, position):
    cells = page.locator(f"#rows tbody tr:visible > :nth-child({position + 1})")
    return cells.evaluate_all("cells => cells.map(c => c.dataset.v ?? c.textContent)")


def natural(value):
    """Numbers within text count as numbers, as people sort."""
    return [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", value)]


@pytest.mark.slow
@pytest.mark.parametrize("column", COLUMNS)
def test_each_header_sorts_up_and_down(visit, column):
    content = content_of(NAMES)
    content["rows"][3]["class_proba"] = None
    page = visit(content)
    header = page.locator("#rows th", has_text=re.compile(f"^{column}$"))
    position = COLUMNS.index(column)
    button = header.get_by_role("button")
    for direction in ("ascending", "descending"):
        button.click()
        assert header.get_attribute("aria-sort") == direction
        assert page.locator("#rows [aria-sort]").count() == 1
        found = column_of(page, position)
        assert len(found) == 40
        if position > 2:
            assert all(value == "None" for value in found[len(found) - found.count("None") :])
            keys = [float(value) for value in found if value != "None"]
        elif column == "Row":
            keys = [int(value) for value in found]
        else:
            keys = [natural(value) for value in found if value != SCRIPT]
            keys = [tuple((isinstance(p, str), p) for p in key) for key in keys]
        assert keys == sorted(keys, reverse=direction == "descending")


@pytest.mark.slow
def test_the_keyboard_sorts(visit):
    page = visit(content_of(NAMES))
    page.locator("#rows th button", has_text="Doubt").focus()
    page.keyboard.press("Enter")
    doubts = [float(value) for value in column_of(page, 3)]
    assert doubts == sorted(doubts)
    page.keyboard.press("Space")
    assert [float(value) for value in column_of(page, 3)] == doubts[::-1]


@pytest.mark.slow
def test_the_keyboard_reaches_the_report_first(visit):
    page = visit(content_of(NAMES))
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the report"
    assert page.locator(".skip").bounding_box()["x"] >= 0


@pytest.mark.slow
def test_filters_count_what_they_show(visit):
    content = content_of(NAMES)
    page = visit(content)
    rows = content["rows"]
    assert page.get_by_role("status").text_content() == "Showing 40 of 40"
    cats = [row for row in rows if row["label"] == "cat"]
    page.get_by_label("Label", exact=True).select_option(label=f"cat ({len(cats)})")
    assert page.get_by_role("status").text_content() == f"Showing {len(cats)} of 40"
    assert column_of(page, 1) == ["cat"] * len(cats)
    dogs = sum(row["suggestion"] == "dog" for row in rows)
    page.get_by_label("Suggested class", exact=True).select_option(label=f"dog ({dogs})")
    both = sum(row["suggestion"] == "dog" for row in cats)
    assert page.get_by_role("status").text_content() == f"Showing {both} of 40"
    assert page.locator("#rows tbody tr:visible").count() == both
    page.locator("#rows th button", has_text="Row").click()  # sorting keeps the filter
    assert page.locator("#rows tbody tr:visible").count() == both


@pytest.mark.slow
def test_a_script_as_a_label_is_only_text(visit):
    page = visit(content_of(NAMES))
    assert page.title() == "Label report: animals.csv"
    assert page.locator("#rows td", has_text=SCRIPT).count() > 0
    assert page.locator("script").count() == 1


@pytest.mark.slow
def test_the_policy_stops_a_script_that_got_in(browser, tmp_path):
    """The second lock: even if a name were not escaped, it would not run."""
    html = render(bare()).replace("</main>", f"{SCRIPT}<style>body{{color:red}}</style></main>")
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
    content = content_of(names) | {"warnings": [long], "data": long, "label_column": long}
    content["design"]["words"] = [long]
    page = visit(content, viewport={"width": 375, "height": 700})
    page.evaluate("document.querySelectorAll('details').forEach(d => { d.open = true })")
    assert page.evaluate("document.documentElement.scrollWidth") <= 375


@pytest.mark.slow
def test_dark_is_dark_and_paper_is_white(visit):
    page = visit(content_of(NAMES), color_scheme="dark")
    ground = "getComputedStyle(document.body).backgroundColor"
    assert page.evaluate(ground) == "rgb(20, 23, 26)"
    page.emulate_media(media="print", color_scheme="dark")
    assert page.evaluate(ground) == "rgb(255, 255, 255)"


@pytest.mark.slow
def test_paper_has_every_row_and_no_controls(visit):
    page = visit(content_of(NAMES), [np.eye(8)] * 40)
    page.emulate_media(media="print")
    for hidden in ("nav", "#controls", "summary"):
        assert not page.locator(hidden).first.is_visible()
    box = page.locator(".tall").evaluate("box => [box.scrollHeight, box.clientHeight]")
    assert box[0] == box[1]
    assert page.locator("#rows img").last.is_visible()
    assert page.pdf().startswith(b"%PDF")


@pytest.mark.slow
def test_without_scripts_the_table_is_plain_and_complete(visit):
    page = visit(content_of(NAMES), java_script_enabled=False)
    assert page.locator("#rows tbody tr").count() == 40
    assert page.locator("#rows button").count() == 0
    assert not page.locator("#controls").is_visible()


@pytest.mark.slow
def test_text_stands_out_from_its_ground(visit):
    """Contrast of at least 4.5, on the shades of the heat map too, by light and by dark."""
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
    content = content_of([f"class {i}" for i in range(10)])
    content["design"]["proba"] = [[((j + 1) / 10) ** 2 for j in range(11)] for _ in range(10)]
    for scheme in ("light", "dark"):
        found = visit(content, color_scheme=scheme).evaluate(measure)
        assert len(found) >= 16
        assert min(found) >= 4.5
