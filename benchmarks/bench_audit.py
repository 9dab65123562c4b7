"""Time `looselabels audit`, step by step, relative to the cross-predictions that it makes.

python benchmarks/bench_audit.py [--quick] [--rows 20000] [--model linear] [--no-refit]

Seconds are processor time of all threads: on shared cores they vary less than elapsed time.
"""

import argparse
import subprocess
import sys
from collections import Counter
from contextlib import redirect_stderr
from functools import wraps
from io import StringIO
from os import times
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter, process_time

import numpy as np
import pandas as pd

from bench_infer import machine
from looselabels import Transition
from looselabels._progress import listen
from looselabels.command.cli import run
from looselabels.datasets import make_loose_labels
from looselabels.learning.training import Training
from simulate import blobs

N_COLUMNS, N_LABELS, WRONG = 30, 10, 0.1
FILES = ("reading", "writing", "saving")  # steps that read or write files
START = "import pandas, skops.io, looselabels.command.results"
MOST = 1.5  # times the cross-predictions
NAMES = {"fitting": "encoding columns, finding copies", "predicting labels": "choosing the model"}


def write_table(file, n_rows):
    """Write a table of Gaussian samples whose labels are wrong at random."""
    X, y = blobs(np.random.default_rng(0), n_rows, N_LABELS, N_COLUMNS)
    noisy = Transition.identity(range(N_LABELS)).with_noise(WRONG)
    labels = make_loose_labels(y.tolist(), noisy, random_state=0).astype(int)
    frame = pd.DataFrame(X, columns=[f"x{i}" for i in range(N_COLUMNS)])
    frame.assign(label=[f"class {label}" for label in labels]).to_csv(file, index=False)


class Timer:
    """The seconds of each step that an audit reports, and of the cross-predictions within.

    These are of labels (`Training.score`), and in a refit of classes (`Training.learn`).
    """

    def __init__(self):
        self.seconds, self.predictions, self.calls = Counter(), Counter(), Counter()
        self.words, self.since = "", process_time()

    def tell(self, _, words):
        now = process_time()
        self.seconds[self.words] += now - self.since
        self.words, self.since = words, now

    def timed(self, predict, what):
        @wraps(predict)
        def timed_predict(training, *arguments):
            begin = process_time()
            found = predict(training, *arguments)
            took, key = process_time() - begin, f"{what}, {type(training.estimator).__name__}"
            self.seconds[self.words] -= took
            self.predictions[key] += took
            self.calls[key] += 1
            return found

        return timed_predict


def audit(file, *options):
    """Run the command on a table; return its timer and the elapsed seconds."""
    words = ["audit", str(file), "--label", "label", "-o", str(file.with_suffix("")), *options]
    timer, score, learn, begin = Timer(), Training.score, Training.learn, perf_counter()
    Training.score = timer.timed(score, "labels")
    Training.learn = timer.timed(learn, "classes")
    try:
        with listen(timer.tell), redirect_stderr(StringIO()):
            code = run(words)
    finally:
        Training.score, Training.learn = score, learn
    if code:
        raise SystemExit(f"The command failed with code {code}.")
    return timer, perf_counter() - begin


def start_seconds():
    """Return the processor time of starting Python and importing what an audit needs."""
    before = times()
    subprocess.run([sys.executable, "-c", START], check=True)
    after = times()
    return sum(after[2:4]) - sum(before[2:4])


def print_table(timer, elapsed):
    """Print each cross-prediction, the other steps, their ratio, and reading and writing."""
    cross = sum(timer.predictions.values())
    rest = {words: took for words, took in timer.seconds.items() if words and words not in FILES}

    def row(name, took, target=""):
        print(f"| {name} | {took:.2f} s | {took / cross:.2f} | {target} |")

    print("\n| step | processor time | ratio to the cross-predictions | target |")
    print("|---|---|---|---|")
    for name, took in timer.predictions.items():
        row(f"cross-prediction of {name}, {timer.calls[name]} ×", took)
    for words, took in rest.items():
        row(NAMES.get(words, words), took)
    row("all of these", cross + sum(rest.values()), f"≤ {MOST}")
    for words in FILES:
        row(words, timer.seconds[words])
    row("starting Python and importing", start_seconds())
    print(f"\nElapsed: {elapsed:.1f} s.")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few rows, to test the script")
    parser.add_argument("--rows", type=int, default=5_000)
    parser.add_argument("--model", default="auto", help="as in looselabels audit")
    parser.add_argument("--no-refit", action="store_true", help="as in looselabels audit")
    given = parser.parse_args()
    options = ["--model", given.model, *(["--no-refit"] if given.no_refit else [])]
    n_rows = 600 if given.quick else given.rows
    with TemporaryDirectory() as folder:
        for name, n in (("warm-up.csv", 500), ("table.csv", n_rows)):  # compiles the kernels
            write_table(Path(folder) / name, n)
            timer, elapsed = audit(Path(folder) / name, *options)
    print(machine())
    print(f"\n{n_rows:,} rows × {N_COLUMNS} columns, {N_LABELS} labels, {WRONG:.0%} of them wrong")
    print_table(timer, elapsed)


if __name__ == "__main__":
    main()
