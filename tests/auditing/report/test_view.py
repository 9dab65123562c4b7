"""The sections of the page agree with the audit that they show."""

import re
from dataclasses import replace
from math import ceil

import numpy as np
import pytest

from looselabels import Transition, audit
from looselabels.auditing.diagnose import Finding
from looselabels.auditing.report import facts, render
from looselabels.auditing.report._view import view
from looselabels.auditing.report._words import count, percent
from tests.auditing.report.samples import Page, content_of, made_up_content, minimal_content

SECTIONS = ("rests", "list", "shares", "arise", "calibration", "reproduce")  # in their order


def section(html, name):
    """Return the text of one section."""
    start = html.index(f'<section aria-labelledby="{name}">')
    return Page(html[start : html.index("</section>", start) + len("</section>")]).text


def n_heat_maps(html):
    return html.count('class="chart map')


# ------------------------------------------------------------------------------------------ content


def test_sections_without_content_are_left_out():
    full = made_up_content(["cat", "dog"])
    html = render(full)
    assert re.findall(r'<section aria-labelledby="(.*?)"', html) == list(SECTIONS)
    assert re.findall(r'<li><a href="#(.*?)"', html) == list(SECTIONS)
    html = render(minimal_content())
    Page(html)
    assert [name for name in SECTIONS if f'id="{name}"' in html] == ["rests", "list"]
    assert "There are no rows to list." in html
    for key in set(full) - set(minimal_content()):
        Page(render({k: value for k, value in full.items() if k != key}))
    for key in ("columns", "calibration", "sources", "transition", "reproduce"):
        Page(render(full | {key: {}}))
    empty = full | {"transition": None, "design": {"words": []}, "flow": [], "sources": {}}
    assert 'id="arise"' not in render(empty)


def test_the_verdict_and_the_facts_are_those_of_the_audit(noise_estimated):
    content = content_of(noise_estimated)
    wrong, text = content["wrong"], Page(render(content)).text
    n_labeled, doubted = noise_estimated.is_labeled.sum(), np.sum(noise_estimated.doubt > 0.5)
    assert f"At most {ceil(wrong['high'])} of {n_labeled} labels" in text
    assert f"{doubted} should be checked first." in text
    assert "upper end of the 90% interval" in text
    assert f"{percent(n_labeled / 150)} of rows" in text


def test_the_verdict_has_an_interval_and_the_facts_say_which(noise_estimated):
    content = content_of(noise_estimated)
    content["wrong"] |= {"expected": 24.0, "low": 18.0, "high": 31.0}
    text, n_labeled = Page(render(content)).text, content["n_labeled"]
    assert f"About 24 (18 to 31) of {n_labeled} labels are probably wrong;" in text
    assert f"Probably wrong24 {24 / n_labeled:.0%} of labels; 90% interval: 18 to 31" in text


def test_the_page_names_the_estimator_that_was_chosen(noise_estimated):
    content = content_of(noise_estimated) | {"candidate_losses": {"forest": 0.3, "linear": 0.2}}
    assert "correctly, by a linear model that has not seen the row" in Page(render(content)).text
    content["candidate_losses"] = None
    assert "correctly, by a model that has not seen the row" in Page(render(content)).text


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


def test_warnings_come_first():
    html = render(made_up_content(["cat", "dog", "wolf"]))
    assert html.index("The class cat is rare.") < html.index('id="list"')
    for sentence in (
        "The design names labels that no row has: cat.",
        "The classes cat and dog have identical label distributions and cannot be distinguished",
        "The estimation stopped before it converged",
    ):
        assert sentence in html


def test_an_audit_without_warnings_has_no_warnings(noise_estimated):
    assert "Before you rely on this" not in render(content_of(noise_estimated))


def test_spellings_of_a_label_are_one_finding_with_a_command():
    variants = [{"labels": ["Billing", "billing "], "command": "looselabels audit t.csv --strip"}]
    text = section(render(minimal_content() | {"variants": variants}), "rests")
    assert (
        "Before you rely on this 'Billing' and 'billing ' may be spellings of one label. "
        "To merge them: looselabels audit t.csv --strip"
    ) in text
    variants[0]["command"] = "looselabels audit --merge 'a  b'"  # both spaces are needed
    assert "--merge &#39;a  b&#39;</code>" in render(minimal_content() | {"variants": variants})
    many = section(render(minimal_content() | {"variants": variants * 21}), "rests")
    assert many.count("'billing '") == 20
    assert many.count("looselabels audit --merge 'a b'") == 1
    assert "To merge all spellings:" in many
    long = [variants[0] | {"command": "looselabels audit " + "--merge a=b " * 500 + "--end"}]
    assert "--end</code>" in render(minimal_content() | {"variants": long})  # it is not cut
    assert "1 more label has several spellings." in many


def test_reviewed_labels_are_compared_with_what_was_expected():
    reviewed = {"n": 50, "confirmed": 31, "expected": 28.4}
    text = section(render(minimal_content() | {"reviewed": reviewed}), "rests")
    assert "Of 50 reviewed labels 31 were wrong; 28 were expected." in text


# ---------------------------------------------------------------------------------- unlabeled rows


def about_unlabeled(found, *classes):
    """Return the content of an audit that asks for the classes of unlabeled rows."""
    n_rows = int(np.sum(~found.is_labeled))
    rows = [row for row in content_of(found, None)["rows"] if row["label"] is None]
    unlabeled = {"n_rows": n_rows, "classes": list(classes)}
    return content_of(found) | {"question": "unlabeled", "unlabeled": unlabeled, "rows": rows}


def test_a_page_about_unlabeled_rows_has_their_number_and_no_doubts(positive_unlabeled):
    setosa = {"name": "setosa", "expected": 25.4, "low": 20, "high": 31}
    content = about_unlabeled(positive_unlabeled, setosa)
    html, n_rows = render(content), content["unlabeled"]["n_rows"]
    text = Page(html).text
    assert f"About 25 (20 to 31) of the {n_rows} unlabeled rows are probably 'setosa'." in text
    assert "Probably 'setosa'25 unlabeled; 90% interval: 20 to 31" in section(html, "rests")
    listed = section(html, "list")
    assert listed.startswith("Unlabeled rows and their probable classes These rows have no label.")
    assert "Row (from 0)Probable classProbabilityWhy" in listed
    assert "oubt" not in listed
    assert len(view(content)["list"]["rows"]) == n_rows


def test_several_classes_of_unlabeled_rows_are_a_table(positive_unlabeled):
    parts = [
        {"name": "setosa", "expected": 25.4, "low": 20, "high": 31},
        {"name": "versicolor", "expected": 2.2, "low": 0.1, "high": 5.5},
    ]
    content = about_unlabeled(positive_unlabeled, *parts)
    text = section(render(content), "rests")
    assert "ClassUnlabeled rowsNote setosa2590% interval: 20 to 31" in text
    assert "versicolorat most 6upper end of the 90% interval" in text
    assert "Probably" not in text  # no fact says the same again
    assert [fact[0] for fact in facts(content)[3:]] == [
        "Probably 'setosa'",
        "Probably 'versicolor'",
    ]


# -------------------------------------------------------------------------- assumed and estimated


def test_an_estimate_is_not_shown_as_assumed(noise_estimated):
    content = content_of(noise_estimated)
    html = render(content)
    assert n_heat_maps(html) == 1
    text = section(html, "arise")
    assert "The transition was estimated from the data." in text
    used = view(content)["transition"]["table"]["rows"]
    assert len(used) > 6  # with the wrong labels that were found
    assert all(entry[3] for entry in used if entry[1] != "(unlabeled)")


def test_assumed_and_estimated_shares_are_side_by_side_where_they_differ(noise_estimated):
    content = content_of(noise_estimated)
    labeled = percent(noise_estimated.is_labeled.mean())
    found = view(content)["transition"]["differences"]
    proba = noise_estimated.transition.proba
    for k, name in enumerate(noise_estimated.transition.classes):
        own = next(entry for entry in found if entry[:2] == (name, name))
        assert own[2:4] == (labeled, percent(proba[k, k]))  # without noise, and with it
    assert "(unlabeled)" not in [entry[1] for entry in found]  # equal: missing at random
    content["design"]["proba"] = content["transition"]["proba"]
    assert view(content)["transition"]["differences"] == []
    assert "What was assumed and what was estimated" not in render(content)


def test_open_label_rates_are_not_shown_as_assumed(positive_unlabeled):
    content = content_of(positive_unlabeled)
    html = render(content)
    assert view(content)["transition"]["differences"] == []
    assert n_heat_maps(html) == 1
    text = section(html, "rests")
    assert "How often each class is labeled was not assumed, but estimated." in text
    assert "How often each class is labeledestimated" in text


def test_a_specified_transition_is_drawn_once(specified):
    html = render(content_of(specified))
    text = section(html, "arise")
    assert "You specified the transition; it was used unchanged." in text
    assert "What was assumed and what was estimated" not in text
    assert n_heat_maps(html) == 1
    entries = view(content_of(specified))["transition"]["table"]["rows"]
    assert ("setosa", "setosa", percent(0.7 * 0.9), "") in entries


def test_an_implied_transition_is_drawn_once(noise_specified):
    html = render(content_of(noise_specified))
    text = section(html, "arise")
    assert "The label counts imply the transition; it was used unchanged." in text
    assert n_heat_maps(html) == 1
    sources = section(html, "rests")
    assert "How often each class is labeledimplied by the label counts" in sources
    assert "How often labels are wrongspecified" in sources


def test_sources_are_listed(noise_estimated):
    text = section(render(content_of(noise_estimated)), "rests")
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
    assert ("The transition was used unchanged." in html) == (audited == "specified")
    assert "What was assumed and what was estimated" not in html


def test_labels_that_cannot_be_wrong_are_not_said_to_be_right(positive_unlabeled):
    text = Page(render(content_of(positive_unlabeled))).text
    assert positive_unlabeled.why_no_count in text
    assert "To look for wrong labels, fit with noise='estimate'" in text
    assert "Probably wrong" not in text


def test_a_page_without_a_count_of_unlabeled_rows_says_why_once(positive_unlabeled):
    finding = Finding("features", True, None, "The features are useless.")
    found = replace(positive_unlabeled, findings=(finding,))
    text = Page(render(content_of(found, 0))).text
    assert text.count(found.why_no_unlabeled_count) == text.count(found.why_no_count) == 1
    assert "Probably '" not in text
    assert "Expected number of unlabeled rows" not in text


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
        label_proba=label_proba, labels=labels, transition=design.with_noise({"cow": 0.5})
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
