"""Names, numbers and sentences of the page."""

import pytest

from looselabels.auditing.report import _words as words
from looselabels.estimation.reliability import LARGE_ERROR, SMALL_ERROR


def verdict(expected, doubted, n_labeled=180, **more):
    wrong = {"expected": expected, "doubted": doubted, **more}
    return words.verdict({"n_labeled": n_labeled, "wrong": wrong})


def test_verdict_is_one_sentence():
    assert verdict(36.2, 33, low=28.4, high=1200) == (
        "About 36 (28 to 1,200) of 180 labels are probably wrong; 33 should be checked first."
    )
    assert verdict(1, 1, 2000) == (
        "About 1 of 2,000 labels is probably wrong; 1 should be checked first."
    )
    assert verdict(9, 0) == (
        "About 9 of 180 labels are probably wrong; no single label is more likely wrong than right."
    )
    assert verdict(None, None, why_no_count="Labels were assumed to be right.") == (
        "Labels were assumed to be right."
    )
    assert verdict(None, None) == "Wrong labels were not counted."


def test_an_interval_that_reaches_zero_is_an_upper_bound():
    assert verdict(4.2, 2, low=0.4, high=11.1) == (
        "At most 12 of 180 labels are wrong; 2 should be checked first."
    )
    assert verdict(0.1, 0, low=0.0, high=0.3) == (
        "At most 1 of 180 labels is wrong; no single label is more likely wrong than right."
    )
    assert verdict(4.2, 2, low=0.6, high=11.1).startswith("About 4 (1 to 11) of 180 labels")


def test_zero_is_never_certain():
    for wrong in ({"low": 0.0, "high": 0.0}, {"low": None, "high": None}, {}):
        assert verdict(0.0, 0, **wrong).startswith("No sign of wrong labels was found among 180")


def on_unlabeled(*classes):
    wrong = {"expected": None, "doubted": None, "why_no_count": "Labels were assumed to be right."}
    found = {"n_rows": 400, "classes": list(classes)}
    return {"question": "unlabeled", "unlabeled": found, "n_labeled": 180, "wrong": wrong}


def test_unlabeled_rows_are_another_question():
    spam = {"name": "spam", "expected": 120.3, "low": 95, "high": 150}
    rare = {"name": "rare", "expected": 0.9, "low": 0.1, "high": 2.5}
    assert words.verdict(on_unlabeled(spam)) == (
        "About 120 (95 to 150) of the 400 unlabeled rows are probably 'spam'."
    )
    assert words.verdict(on_unlabeled(rare)) == "At most 3 of the 400 unlabeled rows are 'rare'."
    assert words.verdict(on_unlabeled(spam, rare)) == (
        "About 121 of the 400 unlabeled rows are probably of one of 2 labeled classes."
    )
    for uncounted in (on_unlabeled(), on_unlabeled(spam | {"expected": None})):
        assert words.verdict(uncounted) == "Labels were assumed to be right."
    assert words.verdict(on_unlabeled(spam) | {"question": "labels"}) == (
        "Labels were assumed to be right."
    )


def test_several_classes_have_one_interval():
    found = on_unlabeled({"name": "spam", "expected": 83.6}, {"name": "rare", "expected": 37.0})
    for low, high, number in [
        (80.2, 150, "About 121 (80 to 150) of the 400 unlabeled rows are probably"),
        (0.0, 149.2, "At most 150 of the 400 unlabeled rows are"),
    ]:
        found["unlabeled"]["together"] = {"expected": 120.6, "low": low, "high": high}
        assert words.verdict(found) == f"{number} of one of 2 labeled classes."


def test_unlabeled_rows_that_cannot_be_counted_have_no_number():
    found = on_unlabeled(dict.fromkeys(("expected", "low", "high")) | {"name": "spam"})
    found["unlabeled"]["why_no_count"] = "The features do not predict the labels."
    assert words.verdict(found) == "The features do not predict the labels."
    assert words.verdict(found | {"question": "labels"}) == "Labels were assumed to be right."


def test_reviewed_labels_are_compared_with_what_was_expected():
    assert words.reviewed_sentence({}) == words.reviewed_sentence({"reviewed": {"n": 0}}) == ""
    reviewed = {"n": 1200, "confirmed": 31, "expected": 28.5001}
    assert words.reviewed_sentence({"reviewed": reviewed}) == (
        "Of 1,200 reviewed labels 31 were wrong; 29 were expected."
    )


def test_exact_texts_are_not_shortened():
    long = "\xa0\n" + "x" * 1000
    assert words.exact_text(long) == long
    assert words.exact_text(["web", None]) == "web: "
    assert words.exact_text(2.5) == "2.5"


@pytest.mark.parametrize(
    ("error", "advice"),
    [
        (0.9 * SMALL_ERROR, "which is a small error"),
        (SMALL_ERROR, "treat single doubts with care"),
        (0.99 * LARGE_ERROR, "treat single doubts with care"),
        (LARGE_ERROR, "do not trust single doubts"),
    ],
)
def test_calibration_verdict_changes_at_the_shared_thresholds(error, advice):
    assert words.calibration_verdict(error).endswith(f"{advice}.")


def test_calibration_verdict_is_empty_without_an_error():
    assert words.calibration_verdict(None) == words.calibration_verdict(float("nan")) == ""


def test_warnings_name_at_most_five_groups_of_classes():
    groups = [[f"a{i}", f"b{i}"] for i in range(8)]
    found = words.warnings({"indistinct_classes": groups})
    assert [sentence.split(" have ")[0] for sentence in found[:5]] == [
        f"The classes a{i} and b{i}" for i in range(5)
    ]
    assert "3 more groups of classes" in found[5]
    assert len(found) == 6


def test_intervals_of_fixed_or_missing_numbers_are_empty():
    assert words.interval(0.15, 0.25) == "15% to 25%"
    assert words.interval(0.15, 0.15) == words.interval(None, 0.25) == ""


@pytest.mark.parametrize("source", [*words.SOURCES, None])
def test_only_an_estimated_transition_was_changed(source):
    sentence = words.transition_sentence(source)
    assert sentence.endswith("used unchanged.") == (source not in ("estimated", "pooled"))
