"""The examples run, are short, and reach their scores. (tests/test_docs.py runs the pages.)"""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[1] / "examples"
EXAMPLES = sorted(FOLDER.glob("plot_*.py"))


def printed(name):
    """Run an example; return a function that returns the number printed after some text."""
    if name.startswith("plot_"):
        pytest.importorskip("matplotlib", reason="the extra `plot` is not installed")
    # Warnings are errors, except that the Agg backend cannot show a figure.
    strict = ["-W", "error::UserWarning", "-W", "ignore:FigureCanvasAgg is non-interactive"]
    run = subprocess.run(
        [sys.executable, *strict, FOLDER / f"{name}.py"],
        env={**os.environ, "MPLBACKEND": "Agg"},
        capture_output=True,
        encoding="utf-8",
        timeout=300,
    )
    assert run.returncode == 0, run.stderr
    return lambda text: float(re.search(re.escape(text) + r":? (\d+(\.\d+)?)", run.stdout)[1])


def test_every_example_is_tested():
    here = Path(__file__).read_text(encoding="utf-8")
    assert EXAMPLES
    examples = FOLDER.glob("*.py")
    assert [path.stem for path in examples if f'printed("{path.stem}")' not in here] == []


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_is_short_and_starts_with_a_title(path):
    lines = path.read_text(encoding="utf-8").splitlines()
    assert len(lines) < 60
    assert lines[0] == '"""'
    assert lines[2] == "=" * len(lines[1])


@pytest.mark.slow
def test_positive_unlabeled_classifies_digits_that_the_forest_calls_unlabeled():
    f1 = printed("plot_positive_unlabeled")
    assert f1("forest alone") < 0.1  # 0.06 is the score of predicting "other" for every sample
    assert f1("looselabels") > 0.93  # reaches 0.96


@pytest.mark.slow
def test_noisy_labels_are_corrected_by_image_and_label():
    accuracy = printed("plot_noisy_labels")
    assert accuracy("labels") == pytest.approx(70, abs=3.3)  # 3 standard deviations
    assert accuracy("trees alone") > 88  # reaches 91.2
    assert accuracy("p(class | x, label)") > 99  # reaches 99.3
    assert accuracy("Correct after the change") > 98  # reaches 99.1


@pytest.mark.slow
def test_merged_data_sets_determine_a_class_that_no_label_names():
    accuracy = printed("plot_merge_datasets")
    assert accuracy("looselabels") > accuracy("trees alone") + 30  # reaches 83.9 and 50.9
    assert accuracy("Share of wolves found, although no label names them") > 78  # reaches 81.8


@pytest.mark.slow
def test_labeling_functions_learn_which_rules_are_often_wrong():
    share = printed("labeling_functions")
    assert share("majority vote") < 80  # 75.2
    assert share("these: majority vote 75.2%, looselabels") > 94  # reaches 97.7
    assert share("the other posts: looselabels") > 97  # reaches 100
    assert share("team      is right in") < 50  # 31 % in truth
    assert share("orbit     is right in") > 90  # 100 % in truth


@pytest.mark.slow
def test_wrong_labels_are_found_if_nothing_is_known_about_them():
    count = printed("plot_find_wrong_labels")
    assert count("Wrong labels:") <= 90  # the lower end of the interval
    assert count("Doubtful labels") < 105  # 95
    assert count("Wrong labels among these") > 80  # 84


@pytest.mark.slow
def test_each_design_of_figure_1_determines_its_classes():
    number = printed("plot_designs")
    for panel in "(a) supervised", "(e) several rates", "(g) merged data sets":
        rank = int(number(f"{panel}: rank"))
        assert number(f"{panel}: rank {rank}, classes") == rank


@pytest.mark.slow
def test_inference_is_the_rule_of_elkan_and_noto_where_that_is_a_probability():
    number = printed("plot_elkan_noto")
    assert number("Largest quotient") > 1.1
    assert number("Largest inferred probability") == 1
    assert number("Largest difference elsewhere") < 1e-5


@pytest.mark.slow
def test_coarse_labels_help_to_classify():
    accuracy = printed("plot_coarse_labels")
    assert accuracy("all labels") > accuracy("fine labels only") + 4  # reaches 92.1 and 84.4


@pytest.mark.slow
def test_candidate_sets_are_resolved():
    assert printed("plot_candidate_sets")("Right species") > 82  # reaches 87.3


@pytest.mark.slow
def test_annotators_have_accuracies_and_a_consensus():
    number = printed("plot_annotators")
    assert number("looselabels") > number("majority vote") + 8  # reaches 95.7 and 81.0
    assert number("Intervals that contain the true accuracy") >= 8  # 10 of 10


@pytest.mark.slow
def test_uneven_noise_is_estimated_with_its_direction():
    number = printed("plot_estimate_noise")
    assert number("8 labeled 3") == pytest.approx(0.4, abs=0.06)
    assert number("9 labeled 4") == pytest.approx(0.2, abs=0.07)
    assert number("116 before the correction,") < 15  # 7


@pytest.mark.slow
def test_class_shares_are_estimated_for_different_label_rates():
    number = printed("plot_class_shares")
    assert number("rate 0.8") == pytest.approx(0.37, abs=0.03)
    assert number("Intervals that contain the true share 0.37") >= 3  # 3 of 4


@pytest.mark.slow
def test_doubts_say_how_many_labels_are_wrong():
    number = printed("plot_doubts")
    expected = int(number("Wrong labels among these"))
    assert number(f"{expected} expected,") == pytest.approx(expected, abs=5)  # 36 and 38


@pytest.mark.slow
def test_noise_that_depends_on_x_is_reported_as_a_violation():
    found = printed("plot_limits")
    assert found("the same rate everywhere") == 0
    assert found("more at the border") == 1


@pytest.mark.slow
def test_classes_have_regions_where_every_label_is_missing():
    share = printed("plot_simulated")
    assert share('Rows whose most probable label is "unlabeled"') > 95
    assert share("Rows whose class is right") > 77  # 81.0
