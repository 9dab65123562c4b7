"""The examples run, stay short, and print what they claim. (pytest runs docs/recipes.md itself.)"""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).parents[1] / "examples").glob("plot_*.py"))


def printed(name):
    """Run an example and return a function that finds the number it prints after some words."""
    pytest.importorskip("matplotlib", reason="the extra `plot` is not installed")
    # a warning in an example is a mistake, but for the one that nothing can be shown here
    strict = ["-W", "error::UserWarning", "-W", "ignore:FigureCanvasAgg is non-interactive"]
    path = next(path for path in EXAMPLES if path.stem == name)
    run = subprocess.run(
        [sys.executable, *strict, path],
        env={**os.environ, "MPLBACKEND": "Agg"},
        capture_output=True,
        encoding="utf-8",
        timeout=300,
    )
    assert run.returncode == 0, run.stderr
    return lambda words: float(re.search(re.escape(words) + r":? (\d+(\.\d+)?)", run.stdout)[1])


def test_every_example_is_tested():
    here = Path(__file__).read_text(encoding="utf-8")
    assert EXAMPLES
    assert [path.stem for path in EXAMPLES if f'printed("{path.stem}")' not in here] == []


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_is_short_and_starts_with_a_title(path):
    lines = path.read_text(encoding="utf-8").splitlines()
    assert len(lines) < 60
    assert lines[0] == '"""'
    assert lines[2] == "=" * len(lines[1])


@pytest.mark.slow
def test_positive_unlabeled_finds_the_digits_that_the_forest_calls_unlabeled():
    f1 = printed("plot_positive_unlabeled")
    assert f1("forest alone") < 0.2
    assert f1("looselabels") > 0.75


@pytest.mark.slow
def test_noisy_labels_are_repaired_by_the_class_given_image_and_label():
    right = printed("plot_noisy_labels")
    assert right("labels as given") < 75
    assert right("p(class | x, label)") > right("forest alone") > right("labels as given")
    assert right("now right") > 90


@pytest.mark.slow
def test_merged_data_sets_teach_a_class_that_no_label_names():
    right = printed("plot_merge_datasets")
    assert right("looselabels") > right("trees alone") + 20
    assert right("Wolves found, which no label names") > 50
