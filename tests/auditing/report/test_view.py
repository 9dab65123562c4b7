"""The sections of the page agree with the audit that they show."""

import re
from math import ceil

import numpy as np
import pytest

from looselabels import Transition, audit
from looselabels.auditing.report import render
from looselabels.auditing.report._view import view
from looselabels.auditing.report._words import count, percent
from tests.auditing.report.samples import Page, content_of, made_up_content, minimal_content

SECTIONS = ("assumed", "shares", "transition", "doubts", "moves", "calibration", "reproduce")


def section(html, name):
    """Return the text of one section."""
    start = html.index(f'<section aria-labelledby="{name}">')
    return Page(html[start : html.index("</section>", start) + len("</section>")]).text


def n_heat_maps(html):
    return html.count('class="chart map')


# ------------------------------------------------------------------------------------------ content


def test_sections_without_content_are_left_out():
    full = made_up_content(["cat", "dog"])
    assert all(f'id="{name}"' in render(full) for name in SECTIONS)
    html = render(minimal_content())
    Page(html)
    assert [name for name in SECTIONS if f'id="{name}"' in html] == ["doubts"]
    assert "There are no rows to list." in html
    for key in set(full) - set(minimal_content()):
        Page(render({k: value for k, value in full.items() if k != key}))
    for key in ("columns", "calibration", "sources", "transition", "reproduce"):
        Page(render(full | {key: {}}))
    empty = full | {"design": {"words": []}, "flow": [], "columns": None, "sources": {}}
    assert 'id="assumed"' not in render(empty)


def test_the_verdict_and_the_facts_are_those_of_the_audit(noise_estimated):
    content = content_of(noise_estimated)
    wrong, text = content["wrong"], Page(render(content)).text
    n_labeled, doubted = noise_estimated.is_labeled.sum(), np.sum(noise_estimated.doubt > 0.5)
    assert f"At most {ceil(wrong['high'])} of {n_labeled} labels" in text
    assert f"{doubted} should be checked first." in text
    assert "upper end of the 90% interval" in text
    assert f"{percent(n_labeled / 150)} of rows" in text


def test_the_page_names_the_estimator_that_was_chosen(noise_estimated):
    content = content_of(noise_estimated) | {"candidate_losses": {"forest": 0.3, "linear": 0.2}}
    assert "correctly, by a linear model without the row" in Page(render(content)).text
    content["candidate_losses"] = None
    assert "correctly, by a model without the row" in Page(render(content)).text


def test_class_shares_are_those_of_the_audit(noise_estimated):
    content = content_of(noise_estimated)
    assert [row["name"] for row in view(content)["shares"]["rows"]] == [
        "setosa",
        "versicolor",
        "virginica",
    ]
    text = section(render(content), "shares")
    for part in content["classes"]:
        low, high = percent(part["low"]), percent(part["high"])
        assert f"{part['name']}{percent(part['share'])}{low} to {high}" in text


def test_each_listed_row_is_that_of_the_audit(noise_estimated):
    html = render(content_of(noise_estimated))
    table = re.search(r'<table id="rows">.*?</table>', html, re.DOTALL)[0]
    found = [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row) for row in table.split("<tr")[2:]]
    assert len(found) == 40
    for cells, record in zip(found, noise_estimated.records(40), strict=True):
        assert cells[:3] == [str(record["row"]), record["label"], record["suggestion"]]
        assert cells[3] == f"<b>{percent(record['doubt'])}</b>"
        assert cells[4:6] == [percent(record["class_proba"]), percent(record["label_proba"])]


def test_row_numbers_say_that_they_count_from_0(noise_estimated):
    html = render(content_of(noise_estimated))
    text = section(html, "doubts")
    assert "Row (from 0)LabelSuggested class" in text  # the header of the table
    assert "row 0 is the first row of data" in text


def test_missing_numbers_are_a_dash(noise_estimated):
    content = content_of(noise_estimated, 2)
    content["rows"][0] |= {"class_proba": None, "label_proba": float("nan")}
    content["wrong"] |= {"low": None, "high": None}
    html = render(content)
    assert html.count(">–</td>") == 2
    assert "90% interval:" not in html


def test_warnings_come_first():
    html = render(made_up_content(["cat", "dog", "wolf"]))
    assert html.index("The class cat is rare.") < html.index('id="assumed"')
    for sentence in (
        "The design names labels that no row has: cat.",
        "The classes cat and dog have identical label distributions and cannot be distinguished",
        "The estimation stopped before it converged",
    ):
        assert sentence in html


def test_an_audit_without_warnings_has_no_warnings(noise_estimated):
    assert "Before you rely on this" not in render(content_of(noise_estimated))


# -------------------------------------------------------------------------- assumed and estimated


def test_an_estimate_is_not_shown_as_assumed(noise_estimated):
    content = content_of(noise_estimated)
    assumed = [entry[:3] for entry in view(content)["design"]["table"]["rows"]]
    labeled = percent(noise_estimated.is_labeled.mean())
    unlabeled = percent(1 - noise_estimated.is_labeled.mean())
    for name in noise_estimated.transition.classes:  # labels are right, or missing at random
        assert [entry for entry in assumed if entry[0] == name] == [
            (name, name, labeled),
            (name, "(unlabeled)", unlabeled),
        ]
    html = render(content)
    assert n_heat_maps(html) == 2
    assert "The transition was estimated from the data." in section(html, "transition")
    used = view(content)["transition"]["table"]["rows"]
    assert len(used) > len(assumed)  # with the wrong labels that were found
    assert all(entry[3] for entry in used if entry[1] != "(unlabeled)")


def test_open_label_rates_are_not_shown_as_assumed(positive_unlabeled):
    content = content_of(positive_unlabeled)
    html = render(content)
    assert view(content)["design"]["map"] is None
    assert n_heat_maps(html) == 1
    sentence = "How often each class is labeled was not assumed, but estimated."
    assert sentence in section(html, "assumed")
    assert "How often each class is labeledestimated" in section(html, "transition")


def test_a_specified_transition_is_drawn_once(specified):
    html = render(content_of(specified))
    text = section(html, "transition")
    assert "You specified the transition; it was used unchanged. It is shown under" in text
    assert n_heat_maps(html) == 1
    entries = view(content_of(specified))["design"]["table"]["rows"]
    assert ("setosa", "setosa", percent(0.7 * 0.9), "") in entries


def test_an_implied_transition_is_drawn_once(noise_specified):
    html = render(content_of(noise_specified))
    text = section(html, "transition")
    assert "The label counts imply the transition; it was used unchanged." in text
    assert n_heat_maps(html) == 1
    assert "How often each class is labeledimplied by the label counts" in text
    assert "How often labels are wrongspecified" in text


def test_sources_are_listed(noise_estimated):
    text = section(render(content_of(noise_estimated)), "transition")
    for part in (
        "How often each class is labeledimplied by the label counts",
        "How often labels are wrongestimated",
        "Class sharesestimated",
        "Transition as a wholeestimated",
    ):
        assert part in text


@pytest.mark.parametrize("audited", ["noise_estimated", "specified"])
def test_a_summary_of_0_1_has_no_sources_and_is_shown(audited, request):
    content = content_of(request.getfixturevalue(audited))
    del content["sources"]
    content["design"]["proba"] = content["transition"]["proba"]  # 0.1 wrote the estimate here
    html = render(content)
    Page(html)
    assert n_heat_maps(html) == 1
    is_specified = audited == "specified"
    assert ('id="assumed"' in html) == is_specified  # with the words of the command it would stay
    assert ("The transition was used unchanged." in html) == is_specified


def test_labels_that_cannot_be_wrong_are_not_said_to_be_right(positive_unlabeled):
    text = Page(render(content_of(positive_unlabeled))).text
    assert positive_unlabeled.why_no_count in text
    assert "Fit with noise='estimate' to look for wrong labels." in text
    assert "Probably wrong" not in text


def test_a_number_that_can_be_zero_is_an_upper_bound(noise_estimated):
    content = content_of(noise_estimated)
    wrong = content["wrong"] | {"expected": 2.0, "low": 0.0, "high": 8.6}
    text = Page(render(content | {"wrong": wrong})).text
    assert "At most 9 of" in text
    assert "Probably wrongat most 9 upper end of the 90% interval" in text
    assert "0 to 9" not in text
    none = content["wrong"] | {"expected": 0.0, "low": 0.0, "high": 0.0}
    assert "Probably wrongnone found" in Page(render(content | {"wrong": none})).text


# ---------------------------------------------------------------------------- labels and classes


def test_colored_bands_are_the_wrong_labels(noise_estimated):
    (labeled, rest) = view(content_of(noise_estimated))["flows"]
    assert (labeled["unlabeled"], rest["unlabeled"]) == (False, True)
    assert [node[2:] for node in rest["left"]] == [
        ("(unlabeled)", count((~noise_estimated.is_labeled).sum()))
    ]
    wrong = [words for _, is_right, words in labeled["bands"] if not is_right]
    assert wrong
    n_wrong = sum(int(words.split(": ")[1].split()[0]) for words in wrong)
    assert n_wrong == pytest.approx(noise_estimated.doubt.sum(), abs=0.5 * 6)


def test_a_coarse_label_is_right_for_each_of_its_classes():
    design = Transition.from_meanings({"pet": ["cat", "dog"], "cat": "cat", "cow": "cow"})
    labels = ["pet"] * 20 + ["cat"] * 10 + ["cow"] * 10
    label_proba = np.repeat([[0.5, 0.4, 0.1], [0.1, 0.1, 0.8]], [30, 10], axis=0)
    found = audit(
        label_proba=label_proba, labels=labels, transition=design.with_noise({"cow": 0.1})
    )
    bands = view(content_of(found))["flows"][0]["bands"]
    right = {words.split(":")[0] for _, is_right, words in bands if is_right}
    assert right == {"pet to cat", "pet to dog", "cat to cat", "cow to cow"}


# ------------------------------------------------------------------------------------- calibration


def test_the_calibration_is_that_of_the_audit(noise_estimated):
    content = content_of(noise_estimated)
    calibration = content["calibration"]
    shown = view(content)["calibration"]
    assert len(shown["points"]) == len(calibration["bins"])
    error = f"off by {100 * calibration['error']:.1f} percentage points on average"
    assert error in section(render(content), "calibration")


def test_rows_without_an_explanation_are_mentioned(noise_estimated):
    content = content_of(noise_estimated)
    sentence = "no combination of classes reproduces the predicted label probabilities"
    assert f"For 12% of the rows, {sentence}" in render(content | {"infeasible": 0.12})
    assert sentence not in render(content | {"infeasible": 0.0})
