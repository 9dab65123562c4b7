"""The page about several answers per row: rows to ask about, annotators, agreement."""

from collections import Counter

import pytest

from looselabels.auditing.report import facts, render, verdict
from looselabels.auditing.report._consensus import (
    MAX_ANNOTATORS,
    consensus_list,
    consensus_view,
)
from tests.auditing.report.samples import HOSTILE, Page, consensus_content


def page_of(content):
    return Page(render(content)).text


# -------------------------------------------------------------------------------------- the verdict


def test_the_verdict_counts_rows_that_are_settled_and_rows_that_are_not():
    assert verdict(consensus_content()) == (
        "The consensus is settled in 1,496 of 1,500 rows; 4 need more answers."
    )


def test_the_verdict_asks_nobody_where_rules_have_answered_everything():
    content = consensus_content()
    content["consensus"]["more_answers"] = None
    assert verdict(content).endswith("4 are open.")


@pytest.mark.parametrize(
    ("settled", "n_open", "words"),
    [
        (1499, 1, "settled in 1,499 of 1,500 rows; 1 needs more answers."),
        (1500, 0, "settled in all 1,500 rows."),
        (0, 1500, "settled in none of the rows; 1,500 need more answers."),
    ],
)
def test_the_verdict_is_a_sentence_for_every_number(settled, n_open, words):
    content = consensus_content()
    content["consensus"] |= {"n_settled": settled, "n_open": n_open}
    assert verdict(content) == f"The consensus is {words}"


def test_the_main_numbers_have_their_base():
    found = {name: (number, note) for name, number, note in facts(consensus_content())}
    assert found["Rows"] == ("1,500", "2 without an answer")
    assert found["Answers"] == ("3,600", "by 3 annotators, 2.4 per row")
    assert found["Settled"] == ("1,496", "99.7% of rows: a probability of at least 95%")
    assert found["Probably wrong"][0] == "31"
    assert found["Agreement"][0] == "81%"


def test_agreement_is_no_fact_if_no_row_has_two_answers():
    content = consensus_content()
    content["agreement"] = {"n_pairs": 0, "observed": None, "expected": None, "chance": 0.5}
    assert "Agreement" not in [name for name, _, _ in facts(content)]
    assert "No row has two answers" in page_of(content)


# ------------------------------------------------------------------------------------- the sections


def test_the_page_has_all_sections():
    page = Page(render(consensus_content()))
    assert {"list", "annotators", "agreement", "arise", "reproduce"} <= set(page.ids)
    assert {"#list", "#annotators", "#agreement"} <= {a[2] for a in page.attributes}
    for words in (
        "Rows to ask about next",
        "The consensus differs from the majority vote in 43 rows.",
        "79% are expected from their accuracies and confusions",
        "transition of a typical annotator",
        "annotators answer independently of each other",
    ):
        assert words in page.text
    assert "Doubt" not in page.text


def test_a_row_shows_who_said_what():
    assert "cat (ann and bob), dog (eve)" in page_of(consensus_content())


def test_a_row_without_answers_says_so():
    content = consensus_content(n_rows=1)
    content["rows"][0]["answers"] = []
    assert '<td class="why" data-title="Answers">none</td>' in render(content)


def test_no_number_is_shown_beyond_what_can_be_relied_on():
    rows = consensus_list(consensus_content())["rows"]
    assert [row["more"] for row in rows] == ["more than 10", "1", "1", "1"]
    assert rows[0]["more_v"] > rows[1]["more_v"]  # it sorts after all numbers
    needed = "Of the open rows, 3 need 1 and 1 needs more than 10 answers."
    assert needed in page_of(consensus_content())


def test_nobody_can_be_asked_if_rows_have_no_number_of_answers():
    content = consensus_content()
    content["consensus"]["more_answers"] = None
    for row in content["rows"]:
        del row["more_answers"]
    assert "More answers" not in page_of(content)


def test_the_least_accurate_annotators_come_first():
    rows = consensus_view(consensus_content())["annotators"]["rows"]
    assert [row["name"] for row in rows] == ["eve", "bob", "ann"]
    assert rows[0]["interval"] == "65% to 74%"
    assert rows[0]["confusions"] == "cat as dog 12%; dog as cat 3%"


def test_an_annotator_without_an_accuracy_comes_last():
    content = consensus_content()
    content["annotators"][1] |= {"accuracy": None, "low": None, "high": None, "confusions": []}
    last = consensus_view(content)["annotators"]["rows"][-1]
    assert (last["name"], last["accuracy"], last["interval"]) == ("bob", "–", "")
    assert last["whisker"] is None


def test_a_crowd_is_cut_and_the_page_names_the_file_with_all_of_it():
    content = consensus_content(annotators=[f"worker {k}" for k in range(250)])
    assert len(consensus_view(content)["annotators"]["rows"]) == MAX_ANNOTATORS
    assert "100 of 250; annotators.csv has all of them" in page_of(content)


def test_a_page_where_everything_is_settled_lists_no_rows():
    content = consensus_content(n_rows=0) | {"n_rows": 20}
    content["consensus"] |= {"n_settled": 20, "more_answers": []}
    assert "Every row is settled" in page_of(content)


def test_the_page_says_how_many_open_rows_it_leaves_out():
    content = consensus_content()
    content["consensus"]["n_open"] = 900
    assert "900 rows are open; this page lists the first 4." in page_of(content)


@pytest.mark.parametrize("hostile", HOSTILE)
def test_a_hostile_name_stays_text(hostile):
    harmless = Page(render(consensus_content(["cat", "dog"], ["cat", "bob", "eve"])))
    page = Page(render(consensus_content([hostile, "dog"], [hostile, "bob", "eve"])))
    assert page.tags == harmless.tags
    assert Counter(a[:2] for a in page.attributes) == Counter(a[:2] for a in harmless.attributes)


# ---------------------------------------------------------------------------------------- a browser


@pytest.mark.slow
def test_the_list_sorts_and_filters_in_a_browser(visit):
    page = visit(consensus_content())
    column = page.locator("#rows tbody tr:visible td[data-title='More answers']")
    assert column.all_text_contents() == ["more than 10", "1", "1", "1"]
    page.locator("#rows th button", has_text="More answers").click()
    assert column.all_text_contents()[-1] == "more than 10"
    page.locator("#by-class").select_option("1")
    assert page.locator("#count").text_content() == "Showing 2 of 4"
