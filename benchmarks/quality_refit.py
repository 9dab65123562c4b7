"""How often a model should learn the classes, and which estimator predicts the labels best.

python benchmarks/quality_refit.py [--quick] [--jobs N] [--samples FOLDER]
    [--only noise|audit|sure|pool]

Four tables on the development data of benchmarks/quality: macro-F1 with 0 to 3 rounds of learning
the classes and with the number that `refit=True` chooses; the out-of-sample log-loss of the labels
and macro-F1 of the default forest and of linear models; label weights that balance rare labels; and
what an estimate of the noise costs if all labels are right. `--only noise` prints the last one, for
all data and all kinds of labels for which noise is estimated by default: the cost has to be known
on the test half too. `--only audit` shows what a refit changes for wrong labels, without and with
it: how many labels are right after correction, AUPRC of the doubts, and the relative error of the
count. `--only sure` shows macro-F1 if models learn the classes from all rows, and if held-out rows
may choose to leave out rows that are not sure, on the development data. `--only pool` shows what
changes if noise is estimated from the estimator, a forest and a linear model together, and not from
the best of them alone, without a refit: the share of labels that are right after correction, the
relative error of the count of wrong labels, the share of rows that are flagged, and macro-F1.
"""

import sys
import warnings
from collections import defaultdict
from contextlib import nullcontext
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest import mock

import click
import numpy as np
from joblib import Parallel, delayed
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.quality import metrics, problems
from benchmarks.quality.data import DEVELOPMENT, NAMES, read_sample, store_samples
from benchmarks.quality.ours import answer

from looselabels import BalancedForestClassifier, DecoupledClassifier
from looselabels.learning import candidates
from looselabels.learning.forest import draw_sizes

KINDS = (
    "semi-supervised", "multi-positive", "positive-50", "noisy-20", "noisy-50", "coarse", "merged",
    "asymmetric-30", "clean",
)  # fmt: skip
RIGHT = (  # labels are right, and the user has not specified a transition
    "clean", "overlap", "semi-supervised", "multi-positive", "positive-1", "positive-30",
    "positive-50", "positive-70",
)  # fmt: skip
WRONG = (
    "noisy-20", "noisy-50", "asymmetric-30", "uneven-25", "largest-40", "copies", "human-9",
    "human-40",
)  # fmt: skip
OF_AUDITS = ("corrected", "auprc", "count_error")
OF_POOLS = ("corrected", "count_error", "flagged")
ROUNDS = (0, 1, 2, 3, True)
STRENGTHS = (0.01, 0.1, 1.0, 10.0)


def linear(C=1.0):
    """Return a scaled logistic regression."""
    return make_pipeline(StandardScaler(), LogisticRegression(C=C, tol=1e-3, max_iter=300))


def bases(seed):
    """Return the estimators by name."""
    return {
        "linear": linear(),
        "forest": RandomForestClassifier(100, random_state=seed),
        "default forest": BalancedForestClassifier(100, random_state=seed),
    }


def fit(problem, estimator, seed, **options):
    """Return a fitted classifier and its macro-F1 on the test rows."""
    clf = DecoupledClassifier(
        estimator, problem.specified, negative=problem.negative, random_state=seed, **options
    ).fit(problem.X, problem.labels)
    names = np.array(problem.classes)
    predicted = clf.predict(problem.X_test)
    return clf, f1_score(names[problem.truth_test], predicted, average="macro")


def compare_rounds(problem, seed):
    """Return macro-F1 for each base and number of rounds, and the number that was chosen."""
    lines = {}
    for name, base in bases(seed).items():
        fitted = [fit(problem, base, seed, refit=rounds) for rounds in ROUNDS]
        lines[name] = [score for _, score in fitted] + [fitted[-1][0].n_rounds_]
    return lines


def compare_estimators(problem, seed):
    """Return log-loss of the labels and macro-F1 of each candidate for the default."""
    tried = {"default forest": bases(seed)["default forest"]}
    tried |= {f"linear, C={C}": linear(C) for C in STRENGTHS}
    fitted = [fit(problem, one, seed, refit=False) for one in tried.values()]
    pairs = [(clf.label_scores_.log_loss(), score) for clf, score in fitted]
    return dict(zip(tried, pairs, strict=True))


def compare_weights(problem, seed):
    """Return macro-F1 without and with weights that balance the labels."""
    names, counts = np.unique([str(label) for label in problem.labels], return_counts=True)
    weights = draw_sizes(counts, 2) / counts
    if weights.min() > 0.9:
        return {}
    by_name = dict(zip(names, weights, strict=True))
    label_weights = {label: by_name[str(label)] for label in set(problem.labels)}
    lines = {}
    for name, base in list(bases(seed).items())[:2]:
        scores = [
            fit(problem, base, seed, refit=False, label_weights=w)[1] for w in (None, label_weights)
        ]
        lines[name] = scores
    return lines


def compare_noise(problem, seed):
    """Return macro-F1 without noise and with estimated noise, for each base; labels are right."""
    if problem.family in problems.NOISY or problem.specified is not None:
        return {}
    lines = {}
    for name, base in ({"default": None} | bases(seed)).items():
        if name != "default forest":  # the default is this one, or a linear model
            fitted = [fit(problem, base, seed, noise=noise) for noise in (0.0, "estimate")]
            lines[name] = [score for _, score in fitted]
    return lines


def compare_audits(problem, seed):
    """Return the scores of wrong labels without a refit and with it, for the default."""
    answers = [answer(problem, None, seed, refit=refit) for refit in (False, True)]
    scores = [metrics.score(problem, found) for found in answers]
    return {name: [found[name] for found in scores] for name in OF_AUDITS}


def compare_rows(problem, seed):
    """Return macro-F1 if models learn from all rows, and if they may leave out unsure ones."""
    lines = {}
    for name, base in bases(seed).items():
        scores = []
        for learns_from_all in (True, False):  # what the library decides by this function
            with mock.patch.object(candidates, "predicts_own_rows", return_value=learns_from_all):
                scores.append(fit(problem, base, seed)[1])
        lines[name] = scores
    return lines


def compare_pool(problem, seed):
    """Return scores if noise is estimated from one model, and if from all models together."""
    lines = {}
    for base, estimator in bases(seed).items():
        found = []
        for needs_pool in (False, True):  # what the library decides by this function
            with mock.patch.object(candidates, "needs_pool", return_value=needs_pool):
                answered = answer(problem, estimator, seed, refit=False)
            found.append(metrics.score(problem, answered))
        for score in (*OF_POOLS, "macro_f1"):
            lines[f"{base}: {score}"] = [one.get(score, np.nan) for one in found]
    return lines


def run(data, kind, seed, compared):
    """Return some comparisons of one problem."""
    problem = problems.make(kind, data, problems.counts_of(kind, data)[1], seed)
    with warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore")
        return data.name, kind, *(compare(problem, seed) for compare in compared)


PAIRS = {
    "noise": (NAMES, RIGHT, compare_noise),
    "audit": (NAMES, WRONG, compare_audits),
    "sure": (DEVELOPMENT, KINDS, compare_rows),
    "pool": (NAMES, (*WRONG, "clean", "overlap"), compare_pool),
}


@click.command()
@click.option("--quick", is_flag=True, help="Digits with coarse labels only.")
@click.option("--jobs", default=2, show_default=True)
@click.option("--seeds", default=2, show_default=True)
@click.option("--samples", type=click.Path(file_okay=False), help="A folder that keeps the rows.")
@click.option("--only", type=click.Choice(list(PAIRS)), help="Print this table only.")
def main(only, samples, **options):
    """Print the four tables, or one that compares pairs."""
    with nullcontext(samples) if samples else TemporaryDirectory() as folder:
        if only:
            print_one_table(folder, *PAIRS[only], **options)
        else:
            print_tables(folder, **options)


def print_one_table(samples, names, kinds, compare, *, seeds, jobs, quick):
    """Print one table of pairs, and means over the data."""
    names, kinds = (DEVELOPMENT[:1], kinds[:1]) if quick else (names, kinds)
    found = run_all(names, 1 if quick else seeds, kinds, samples, jobs, (compare,))
    print_means(found, all_bases=compare not in (compare_audits, compare_pool))


def print_tables(samples, *, seeds, jobs, quick):
    """Print the four tables, for the development data."""
    names, kinds = (DEVELOPMENT[:1], ("coarse",)) if quick else (DEVELOPMENT, KINDS)
    compared = compare_rounds, compare_estimators, compare_weights, compare_noise
    found = run_all(names, 1 if quick else seeds, kinds, samples, jobs, compared)
    columns = " | ".join(f"{rounds}" for rounds in (*ROUNDS[:-1], "chosen", "rounds"))
    print(f"| data | labels | base | {columns} |\n|{'---|' * 9}")
    for name, kind, rounds, *_ in found:
        for base, line in rounds.items():
            numbers = " | ".join(f"{number:.3f}" for number in line[:-1])
            print(f"| {name} | {kind} | {base} | {numbers} | {line[-1]} |")
    print("\nLog-loss of the labels / macro-F1 by estimator\n")
    for name, kind, _, tried, *_ in found:
        print(f"| {name} | {kind} |", " | ".join(f"{a:.3f} / {b:.3f}" for a, b in tried.values()))
    print("\nMacro-F1 without and with balancing label weights\n")
    _print_pairs((name, kind, weighted) for name, kind, _, _, weighted, _ in found)
    print("\nMacro-F1 without noise and with estimated noise, all labels right\n")
    print_means([(name, kind, noise) for name, kind, *_, noise in found])


def run_all(names, seeds, kinds, samples, jobs, compared):
    """Return the comparisons of all problems."""
    store_samples(samples, names, seeds)
    work = [
        delayed(run)(rows, kind, seed, compared)
        for name in names
        for seed in range(seeds)
        for rows in [read_sample(samples, name, seed)]
        for kind in kinds
        if kind in problems.kinds_of(rows)
    ]
    return Parallel(jobs, batch_size=1)(work)


def print_means(lines, all_bases=True):
    """Print all pairs, and mean differences: a line per kind of labels, a column per name.

    If the names are bases, there is a mean over all of them.
    """
    _print_pairs(lines)
    differences = defaultdict(list)
    for _, kind, pairs in lines:
        for name, (without, with_it) in pairs.items():
            if np.isnan([without, with_it]).any():  # right labels have no error of the count
                continue
            for column in (name, "mean") if all_bases else (name,):
                differences[kind, column].append(with_it - without)
                differences["all", column].append(with_it - without)
    if not differences:
        return
    kinds, names = (list(dict.fromkeys(column)) for column in zip(*differences, strict=True))
    if all_bases:
        names.append(names.pop(names.index("mean")))
    print(f"\n| mean difference | {' | '.join(names)} |\n|{'---|' * (1 + len(names))}")
    for kind in sorted(kinds, key="all".__eq__):
        found = (differences[kind, name] for name in names)
        cells = (f"{np.mean(pairs):+.4f}" if pairs else "" for pairs in found)
        print(f"| {kind} | {' | '.join(cells)} |")


def _print_pairs(lines):
    for name, kind, by_base in lines:
        for base, (without, with_it) in by_base.items():
            print(f"| {name} | {kind} | {base} | {without:.4f} | {with_it:.4f} |")


if __name__ == "__main__":
    main()
