"""Names, numbers and sentences of the page."""

import pytest

from looselabels.auditing.report import _words as words
from looselabels.estimation.reliability import LARGE_ERROR, SMALL_ERROR


def verdict(expected, doubted, n_labeled=180, **more):
    wrong = {"expected": expected, "doubted": doubted, **more}
    return words.verdict({"n_labeled": n_labeled, "wrong": wrong})


def test_verdict_is_one_sentence():
    assert verdict(36.2, 33) == (
        "About 36 of 180 labels (20%) are probably wrong; 33 should be checked first."
    )
    assert verdict(1, 1, 2000) == (
        "About 1 of 2,000 labels (0.05%) is probably wrong; 1 should be checked first."
    )
    assert verdict(9, 0) == (
        "About 9 of 180 labels (5%) are probably wrong; "
        "no single label is more likely wrong than right."
    )
    assert verdict(None, None, why_no_count="Labels were taken to be right.") == (
        "Labels were taken to be right."
    )
    assert verdict(None, None) == "Wrong labels were not counted."


def test_an_interval_that_reaches_zero_is_an_upper_bound():
    assert verdict(4.2, 2, low=0.4, high=11.1) == (
        "At most 12 of 180 labels (7%) are wrong; 2 should be checked first."
    )
    assert verdict(0.1, 0, low=0.0, high=0.3) == (
        "At most 1 of 180 labels (0.6%) is wrong; no single label is more likely wrong than right."
    )
    assert verdict(4.2, 2, low=0.6, high=11.1).startswith("About 4 of 180 labels")


def test_zero_is_never_certain():
    for wrong in ({"low": 0.0, "high": 0.0}, {"low": None, "high": None}, {}):
        assert verdict(0.0, 0, **wrong).startswith("No sign of wrong labels was found among 180")


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
    assert sentence.endswith("used unchanged.") == (source != "estimated")
