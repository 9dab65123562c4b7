"""One model or many on draws, and which draws: on the development data of benchmarks/quality.

python benchmarks/quality_draws.py [--quick] [--jobs N] [--data FOLDER]

For the user's own estimator, a forest or a linear model, it prints macro-F1 on test rows with one
model, with draws outside of 2, 3 or 5 folds, with bootstrap samples, and with the choice of the
library; then the mean error of the class shares, where a class has no labels.
"""

import sys
import warnings
from pathlib import Path
from unittest.mock import patch

import click
import numpy as np
from joblib import Parallel, delayed
from threadpoolctl import threadpool_limits

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.quality import metrics, problems
from benchmarks.quality.answer import FOREST, LINEAR, make_base
from benchmarks.quality.data import DEVELOPMENT, load, sample
from benchmarks.quality.ours import answer
from sklearn.utils import check_random_state

from looselabels.learning import draws
from looselabels.learning.draws import BalancedDraws

KINDS = (
    "semi-supervised", "multi-positive", "positive-30", "positive-50", "noisy-20", "noisy-50",
    "coarse", "clean",
)  # fmt: skip


class BootstrapDraws(BalancedDraws):
    """Draws with replacement from all rows; a row is predicted by the models that did not draw it.

    Rows of an abundant label are predicted by more models than those of a rare one.
    """

    def _draws(self, strata, weight, groups, sizes):
        rng = np.random.default_rng(check_random_state(self.random_state).randint(2**31 - 1))
        by_stratum = [np.flatnonzero(strata == k) for k in range(strata.max() + 1)]
        n_drawn = sizes(np.array([len(rows) for rows in by_stratum]))
        for _ in range(12):
            pairs = zip(by_stratum, n_drawn, strict=True)
            rows = np.sort(np.concatenate([rng.choice(rows, size) for rows, size in pairs]))
            yield rows, np.setdiff1d(np.arange(len(strata)), rows)


VARIANTS = {
    "one model": {"cv": 5},
    "2 folds, 5 times": {"draws": BalancedDraws, "folds": 2, "repeats": 5},
    "3 folds, 4 times": {"draws": BalancedDraws, "folds": 3, "repeats": 4},
    "5 folds, 3 times": {"draws": BalancedDraws, "folds": 5, "repeats": 3},
    "bootstrap": {"draws": BootstrapDraws, "folds": 3, "repeats": 4},
    "chosen": {},
}


def run(data, kind, count, base, variant, seed=0):
    """Return macro-F1 of one fit, and the error of the class shares or NaN."""
    options = dict(VARIANTS[variant])
    kind_of_draws, folds = options.pop("draws", None), options.pop("folds", draws.N_FOLDS)
    repeats = options.pop("repeats", draws.N_REPEATS)
    problem = problems.make(kind, data, count, seed)
    estimator = make_base(base, seed)
    if kind_of_draws is not None:
        estimator = kind_of_draws(estimator, random_state=seed)
    with (
        warnings.catch_warnings(),
        threadpool_limits(1),
        patch.object(draws, "N_FOLDS", folds),
        patch.object(BalancedDraws, "n_repeats", repeats),
        np.errstate(invalid="ignore"),  # rows that all bootstrap samples hold
    ):
        warnings.simplefilter("ignore")
        scores = metrics.score(problem, answer(problem, estimator, seed, **options))
    return scores["macro_f1"], scores.get("class_prior_error", np.nan)


def counts(kind, data):
    """Return the numbers of labels per class: 30 %, and 10 % if a class has no labels."""
    few = problems.counts_of(kind, data)[:1] if "positive" in kind else []
    return [*few, problems.middle_count(data)]


@click.command()
@click.option("--quick", is_flag=True, help="Digits, a linear model and three kinds of labels.")
@click.option("--only", multiple=True, type=click.Choice(DEVELOPMENT), help="This data set only.")
@click.option("--base", multiple=True, type=click.Choice([LINEAR, FOREST]), help="This base only.")
@click.option("--jobs", type=click.IntRange(1), default=2, show_default=True)
@click.option("--data", type=click.Path(file_okay=False), help="The folder with the data.")
def main(quick, only, base, jobs, data):
    """Compare one model with many on draws."""
    names = ("digits",) if quick else only or DEVELOPMENT
    bases = (LINEAR,) if quick else base or (LINEAR, FOREST)
    loaded = {name: sample(load(name, data), 0) for name in names}
    cells = [
        (name, kind, count, name_of_base)
        for name in names
        for kind in (("multi-positive", "noisy-20", "clean") if quick else KINDS)
        if kind in problems.kinds_of(loaded[name])
        for count in counts(kind, loaded[name])
        for name_of_base in bases
    ]
    found = Parallel(jobs)(
        delayed(run)(loaded[name], kind, count, base, variant)
        for name, kind, count, base in cells
        for variant in VARIANTS
    )
    table = np.array(found).reshape(len(cells), len(VARIANTS), 2)
    print("Macro-F1\n\n| data | labels | per class | base |", " | ".join(VARIANTS), "|")
    print("|---" * (4 + len(VARIANTS)) + "|")
    for cell, row in zip(cells, table[:, :, 0], strict=True):
        print("|", " | ".join([*map(str, cell), *(f"{value:.3f}" for value in row)]), "|")
    for title, part in (("mean", table[:, :, 0]), ("error of class shares", table[:, :, 1])):
        print(f"| {title} | | | |", " | ".join(f"{v:.3f}" for v in np.nanmean(part, axis=0)), "|")


if __name__ == "__main__":
    main()
