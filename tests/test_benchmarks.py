"""Quick runs of the benchmarks print all rows of their tables."""

import subprocess
import sys
from pathlib import Path

import pytest
from benchmarks.same_numbers import distance, numbers
from sklearn.datasets import load_iris
from sklearn.naive_bayes import GaussianNB

from looselabels import DecoupledClassifier

FOLDER = Path(__file__).parent.parent / "benchmarks"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("script", "rows"),
    [
        ("bench_infer.py", ["joint", "em", "small", "known", "linear", "adam"]),
        (
            "bench_scale.py",
            ["stream | joint", "stream | known T", "linear", "table | audit", "dask"],
        ),
        ("bench_classifier.py", ["out of bag", "3 folds"]),
        ("bench_audit.py", ["cross-prediction of classes", "auditing", "all of these", "saving"]),
        ("quality_noise.py", ["wine | forest", "wine | linear", "classes"]),
        ("quality_refit.py", ["digits | coarse | linear", "digits | coarse | default forest"]),
        ("quality_rounds.py", ["linear | noisy-20 | ", "linear | all | "]),
        ("quality_draws.py", ["digits | multi-positive | 9 | linear", "error of class shares"]),
        ("false_alarms.py", ["Gaussians | forest", "digits, spread 2 | linear"]),
        ("quality_intervals.py", ["uniform 10% | low", "one class 40% | high", "every other"]),
        ("quality_review.py", ["wine | uniform 15% | ours", "wine | uniform 15% | random"]),
        ("quality_negative_noise.py", ["low overlap | forest | 0%", "low overlap | linear | 20%"]),
        ("quality_transitions.py", ["rows | noise | likelihood | calibrated", "100 | uniform 20%"]),
        (
            "quality_class_prior.py",
            ["digits | 7 | forest", "digits | 1 | linear", "all", "closest, of 4 cells"],
        ),
        ("quality_annotators.py run --redo looselabels", ["digits, 20 annotators, 3 per row | "]),
        ("quality_annotator_intervals.py", ["one label set | 20", "rules that abstain | 40"]),
        (
            "bench_density.py",
            ["one bandwidth", "200 columns", "13 bandwidths", "one KernelDensity"],
        ),
    ],
)
def test_a_quick_run_prints_every_row(script, rows):
    name, *words = script.split()
    command = [sys.executable, str(FOLDER / name), *words, "--quick"]
    printed = subprocess.run(command, capture_output=True, check=True, text=True).stdout
    for row in rows:
        assert f"| {row}" in printed


def test_two_fits_have_the_same_numbers_also_where_labels_are_not_counted():
    clf = DecoupledClassifier(GaussianNB(), noise=0, refit=False, random_state=0)
    first, second = (numbers(clf, *load_iris(return_X_y=True), {}) for _ in range(2))
    assert "wrong expected" in first
    assert {distance(first[key], second[key]) for key in first} == {0.0}
