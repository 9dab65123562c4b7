"""Audits in notebooks, as plots and as pages."""

from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest

from looselabels import Transition, audit
from looselabels.auditing.pages import FROM_0, MAX_COLUMNS, MAX_LETTERS, page_content
from looselabels.auditing.report import facts, verdict
from looselabels.plotting import AuditDisplay

pytest.importorskip("jinja2", reason="the extra `report` is not installed")
pd = pytest.importorskip("pandas", reason="the extra `tables` is not installed")

CLASSES = ["cat", "<b>dog</b>"]
N_ROWS = 40


@pytest.fixture(scope="module")
def noisy():
    """The audit of 40 labels, two of which are wrong; one name is markup."""
    label_proba = np.repeat([[0.95, 0.05], [0.05, 0.95]], 20, axis=0)
    labels = np.repeat(CLASSES, 20).astype(object)
    labels[[3, 33]] = labels[[33, 3]]
    t = Transition.identity(CLASSES).with_noise(0.05)
    return audit(label_proba=label_proba, labels=labels, transition=t)


@pytest.fixture(scope="module")
def positive():
    """The audit of 40 rows: 8 of 20 cats are labeled, everything else is not."""
    t = Transition.partial(["cat"], labeled=0.4, negative="other")
    label_proba = np.repeat([[0.39, 0.61], [0.02, 0.98]], 20, axis=0)
    labels = ["cat"] * 8 + [None] * 32
    return audit(label_proba=label_proba, labels=labels, transition=t)


class Tags(HTMLParser):
    """Collects the tags and the text of a page; void ones are not closed."""

    def __init__(self, page):
        super().__init__()
        self.opened, self.text = [], []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.opened.append(tag)

    def handle_data(self, data):
        self.text.append(data)


# ------------------------------------------------------------------------------------ the notebook


def test_a_notebook_shows_the_verdict_the_facts_and_the_first_rows(noisy):
    found = Tags(noisy._repr_html_())
    content = noisy.summary()
    assert verdict(content) in found.text
    for name, _, _ in facts(content):
        assert name in found.text
    assert found.opened.count("tr") == len(facts(content)) + 1 + 10  # with a header
    cells = found.text[found.text.index("why") + 1 :]
    assert cells[:2] == [str(noisy.order[0]), noisy.records(1)[0]["label"]]
    assert f"{noisy.records(1)[0]['doubt']:.0%}" in cells
    assert any(FROM_0 in text for text in found.text)


def test_everything_in_a_notebook_is_escaped_and_nothing_is_loaded(noisy):
    page = noisy._repr_html_()
    assert "&lt;b&gt;dog" in page
    assert set(Tags(page).opened) <= {*("div", "p", "strong", "table"), *("thead", "tbody"),
                                      *("tr", "th", "td")}  # fmt: skip
    assert "http" not in page


def test_a_notebook_shows_unlabeled_rows_if_they_are_in_question(positive):
    found = Tags(positive._repr_html_())
    cells = found.text[found.text.index("why") + 1 :]
    first = positive.records(1)[0]
    row = [str(first["row"]), "(unlabeled)", "cat", f"{first['class_proba']:.0%}"]
    assert cells[:5] == [*row, "looks like 'cat'"]
    assert found.opened.count("tr") == len(facts(positive.summary())) + 1 + 10


def test_a_notebook_needs_no_rows():
    t = Transition.partial(["cat", "dog"]).with_noise(0.1)
    rows = np.full((20, 3), 1 / 3)
    found = audit(label_proba=rows, labels=["cat", "dog", *[None] * 18], transition=t)
    found = replace(found, label_index=np.full(20, t.labels.index(None)))
    assert "No row has a label" in found._repr_html_()
    assert "why" not in Tags(found._repr_html_()).text


# ---------------------------------------------------------------------------------------- the plot


@pytest.fixture
def pyplot():
    matplotlib = pytest.importorskip("matplotlib", reason="the extra `plot` is not installed")
    matplotlib.use("Agg")
    from matplotlib import pyplot

    yield pyplot
    pyplot.close("all")


def test_a_plot_has_the_doubts_of_labels_and_the_expected_rows(noisy, pyplot):
    display = noisy.plot()
    assert isinstance(display, AuditDisplay)
    doubts, flow = display.axes_
    assert sum(bar.get_height() for bar in doubts.patches) == N_ROWS
    assert doubts.get_xlabel() == "doubt"
    assert [text.get_text() for text in flow.texts] == [
        f"{n:.0f}" if n >= 0.5 else "" for n in noisy.flow().ravel()
    ]
    assert [t.get_text() for t in flow.get_xticklabels()] == CLASSES
    display.figure_.canvas.draw()
    _, axes = pyplot.subplots(1, 2)
    assert noisy.plot(axes).axes_ is axes


def test_a_plot_of_unlabeled_rows_has_their_probabilities(positive, pyplot):
    first, _ = positive.plot().axes_
    assert sum(bar.get_height() for bar in first.patches) == 32
    assert first.get_xlabel() == "p(labeled class | x, unlabeled)"


def test_a_plot_without_rows_or_with_many_classes_can_be_drawn(pyplot):
    for values, n in (([], 2), ([0.5], 30)):
        names = list(range(n))
        display = AuditDisplay(values, np.eye(n), names, names, "doubt").plot()
        display.figure_.canvas.draw()
        heights = [bar.get_height() for bar in display.axes_[0].patches]
        assert sum(heights) == len(values)


# ---------------------------------------------------------------------------------------- the page


def test_a_page_is_written_and_never_replaced_unless_asked_for(noisy, tmp_path):
    path = tmp_path / "report.html"
    noisy.to_html(path)
    page = path.read_text(encoding="utf-8")
    assert verdict(noisy.summary()) in page
    assert "<b>dog" not in page
    assert [file.name for file in tmp_path.iterdir()] == ["report.html"]
    with pytest.raises(FileExistsError, match="exists; overwrite=True replaces it"):
        noisy.to_html(path)
    path.write_text("old")
    noisy.to_html(str(path), overwrite=True)
    assert path.read_text(encoding="utf-8") == page
    with pytest.raises(IsADirectoryError, match="is a folder; name a file"):
        noisy.to_html(tmp_path, overwrite=True)
    with pytest.raises(FileNotFoundError, match="create it first"):
        noisy.to_html(tmp_path / "none" / "report.html")


def test_an_error_leaves_the_old_page(noisy, tmp_path):
    path = tmp_path / "report.html"
    path.write_text("old")
    with pytest.raises(ValueError, match="X has 3 rows; the audit has 40"):
        noisy.to_html(path, pd.DataFrame({"a": [1, 2, 3]}), overwrite=True)
    assert path.read_text() == "old"


def test_the_rows_of_a_page_are_those_in_question_counted_from_0(noisy, positive):
    content, images = page_content(noisy)
    assert images is None
    assert (content["id_name"], content["id_note"]) == ("Row", FROM_0)
    assert [row["id"] for row in content["rows"]] == noisy.order.tolist()
    assert content["class_names"] == CLASSES
    for row in content["rows"]:
        proba = noisy.class_proba_given_label[row["row"]]
        assert [p for _, p in row["probabilities"]] == sorted(proba.tolist(), reverse=True)
        assert row["probabilities"][0][0] == row["suggestion"]
    content, _ = page_content(positive)
    assert content["question"] == "unlabeled"
    assert len(content["rows"]) == 32
    assert all(row["label"] is None for row in content["rows"])


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_a_page_shows_the_first_columns_of_a_table(noisy, library):
    frames = pytest.importorskip(library)
    table = frames.DataFrame(
        {
            "text": ["two\nlines", "x" * 1000] * 20,
            "number": [1.5, None] * 20,
            "when": [pd.Timestamp("2024-01-02"), None] * 20,
            "kind": [True, False] * 20,
            "fifth": [0] * N_ROWS,
        }
    )
    content, images = page_content(noisy, table)
    assert images is None
    assert content["shown_columns"] == ["text", "number", "when", "kind"]
    cells = {row["row"]: row["cells"] for row in content["rows"]}
    assert cells[0] == ["two lines", "1.5", "2024-01-02 00:00:00", "True"]
    assert len(cells[1][0]) == MAX_LETTERS
    assert cells[1][1:] == ["", "", "False"]
    assert len(content["shown_columns"]) == MAX_COLUMNS


def test_a_page_shows_images_and_refuses_other_arrays(noisy, tmp_path):
    images = np.arange(N_ROWS * 16).reshape(N_ROWS, 4, 4) / (N_ROWS * 16)
    _, shown = page_content(noisy, images)
    for row, image in zip(noisy.order, shown, strict=True):
        assert (image == images[row]).all()
    noisy.to_html(tmp_path / "a.html", images)
    page = (tmp_path / "a.html").read_text(encoding="utf-8")
    assert page.count("data:image/") >= N_ROWS
    with pytest.raises(ValueError, match=r"images of shape .*; its shape is \(40, 2\)"):
        noisy.to_html(tmp_path / "b.html", np.zeros((N_ROWS, 2)))
