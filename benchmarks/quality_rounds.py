"""Which rule should choose how often, and from which rows, models learn the classes?

python benchmarks/quality_rounds.py [--quick] [--jobs N] [--seeds N] [--samples FOLDER]

On the development data of benchmarks/quality, models learn the classes in one to three rounds, from
soft labels of all rows or from the surest rows. Each rule chooses one of these attempts by the
losses of held-out labels. The table has the mean macro-F1 on test rows of what the rules choose,
next to no round at all and to the attempt that is best on the test rows.
"""

import sys
import warnings
from collections import defaultdict
from contextlib import nullcontext
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple
from unittest import mock

import click
import numpy as np
from joblib import Parallel, delayed
from sklearn.metrics import f1_score
from threadpoolctl import threadpool_limits

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.quality import problems
from benchmarks.quality.answer import FOREST, LINEAR, OWN, make_base
from benchmarks.quality.data import DEVELOPMENT, read_sample, store_samples

from looselabels import DecoupledClassifier
from looselabels.estimation.losses import first_good, is_better
from looselabels.learning import training
from looselabels.learning.decoupling import decouple
from looselabels.learning.training import Rounds

KINDS = (
    "noisy-50", "noisy-20", "asymmetric-30", "uneven-25", "overlap", "semi-supervised",
    "multi-positive", "positive-50", "coarse",
)  # fmt: skip


class Tried(NamedTuple):
    """Rounds of learning the classes, the losses of held-out labels, and macro-F1."""

    rounds: Rounds
    losses: np.ndarray
    macro_f1: float


# ------------------------------------------------------------------------------------------- rules


def no_round(none, soft, sure, weight):
    """Return the attempt that learns nothing."""
    return none


def fewest_on_soft(none, soft, sure, weight):
    """Return the fewest rounds on soft labels within one standard error of the best."""
    return _fewest(none, _helpful(none, soft, weight), weight)


def fewest(none, soft, sure, weight):
    """Let the first round choose the rows, then return the fewest rounds."""
    return _fewest(none, _helpful(none, _better_start(soft, sure, weight), weight), weight)


def best_on_soft(none, soft, sure, weight):
    """Return the best rounds on soft labels, if they beat no round by one standard error."""
    return _fewest(none, _helpful(none, soft, weight)[-1:], weight)


def best(none, soft, sure, weight):
    """Let the first round choose the rows, then return the best rounds: the library's rule."""
    return _fewest(none, _helpful(none, _better_start(soft, sure, weight), weight)[-1:], weight)


def best_of_all(none, soft, sure, weight):
    """Return the attempt with the highest macro-F1 on test rows: no rule can know it."""
    return max([none, *soft, *sure], key=lambda tried: tried.macro_f1)


RULES = (no_round, fewest_on_soft, best_on_soft, fewest, best, best_of_all)


def _better_start(soft, sure, weight):
    return sure if is_better(sure[0].losses, soft[0].losses, weight) else soft


def _helpful(none, chain, weight):
    """Return the rounds of a chain until one does not help."""
    helpful = [none]
    for tried in chain:
        if not is_better(tried.losses, helpful[-1].losses, weight):
            break
        helpful.append(tried)
    return helpful[1:]


def _fewest(none, chain, weight):
    attempts = [none, *chain]
    return attempts[first_good(np.stack([tried.losses for tried in attempts]), weight)]


# ---------------------------------------------------------------------------------------- attempts


def try_all(problem, base, seed):
    """Return no round, the rounds on soft labels and on sure rows, and the rows' weights."""
    arguments = []

    def keep(*given):
        arguments.append(given)
        return Rounds(0)

    with mock.patch.object(training, "choose_rounds", keep):
        clf = DecoupledClassifier(
            make_base(base, seed), problem.specified, negative=problem.negative, random_state=seed
        ).fit(problem.X, problem.labels)
    rows, model, calibrate = arguments[0]
    start = decouple(clf.label_scores_, model, calibrate)

    def macro_f1(rounds):
        found = training.learn_in_rounds(rows, clf.label_scores_, start, calibrate, rounds)
        class_proba = training.predict_classes(
            problem.X_test, clf.estimator_, found.class_estimator, found.model.transition,
            clf.label_scores_.label_weights, found.label_calibration, found.class_calibration,
        )  # fmt: skip
        return float(f1_score(problem.truth_test, class_proba.argmax(axis=1), average="macro"))

    splits = training._held_out_rows(rows)
    trials = [training.Trial(rows, model, calibrate, *split) for split in splits]
    if not trials:
        return None
    none = training._attempt(trials, Rounds(0), [trial.found for trial in trials])
    chains = []
    for only_sure in (False, True):
        attempts = [none]
        for _ in range(training._max_rounds(rows)):
            attempts.append(training._learn_again(trials, attempts[-1], only_sure, 3))
        chains.append([Tried(a.rounds, a.losses, macro_f1(a.rounds)) for a in attempts[1:]])
    weight = np.concatenate([trial.weight for trial in trials])
    return Tried(none.rounds, none.losses, macro_f1(none.rounds)), *chains, weight


def measure(data, kind, n_labels, seed, base):
    """Return macro-F1 of what each rule chooses; None if there are too few labels for a choice."""
    problem = problems.make(kind, data, n_labels, seed)
    with warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore")
        found = try_all(problem, base, seed)
    return None if found is None else (base, kind, [rule(*found).macro_f1 for rule in RULES])


@click.command()
@click.option("--quick", is_flag=True, help="Digits with 20 % wrong labels and a linear model.")
@click.option("--jobs", default=2, show_default=True)
@click.option("--seeds", default=1, show_default=True)
@click.option("--samples", type=click.Path(file_okay=False), help="A folder that keeps the rows.")
def main(quick, jobs, seeds, samples):
    """Print a line for each base and kind of labels, and their means."""
    names, kinds, bases = DEVELOPMENT, KINDS, (LINEAR, FOREST, OWN)
    if quick:
        names, kinds, bases = ("digits",), ("noisy-20",), (LINEAR,)
    with nullcontext(samples) if samples else TemporaryDirectory() as folder:
        store_samples(folder, names, seeds)
        work = [
            delayed(measure)(data, kind, n_labels, seed, base)
            for name in names
            for seed in range(seeds)
            for data in [read_sample(folder, name, seed)]
            for kind in kinds
            for n_labels in problems.counts_of(kind, data)[: 1 if quick else 2]
            for base in bases
        ]
        found = Parallel(jobs, batch_size=1)(work)
    print_means([line for line in found if line is not None])


def print_means(lines):
    """Print the mean macro-F1 of the rules, a line per base and kind of labels."""
    by_line = defaultdict(list)
    for base, kind, scores in lines:
        for key in ((base, kind), (base, "all")):
            by_line[key].append(scores)
    names = " | ".join(rule.__name__.replace("_", " ") for rule in RULES)
    print(f"| base | labels | {names} | problems |\n|{'---|' * (len(RULES) + 3)}")
    for (base, kind), scores in sorted(by_line.items(), key=lambda item: (item[0][1] == "all",)):
        means = " | ".join(f"{mean:.3f}" for mean in np.mean(scores, axis=0))
        print(f"| {base} | {kind} | {means} | {len(scores)} |")


if __name__ == "__main__":
    main()
