"""All results as tables in Markdown: docs/quality-tables.md."""

from collections import defaultdict

import numpy as np
from benchmarks.quality.answer import FOREST, LINEAR
from benchmarks.quality.data import DEVELOPMENT, NAMES, TEST
from benchmarks.quality.markdown import data_name, markdown
from benchmarks.quality.methods import (
    ALL,
    DEFAULT,
    METHODS,
    PU,
    REFERENCE,
    SAME_FOREST,
    SAME_LINEAR,
    methods_for,
    plain_for,
)
from benchmarks.quality.scores import LOSS, TIE, WIN, mean_and_sd
from benchmarks.quality.targets import (
    EVERY,
    MIN_LABELS,
    best_constant,
    by_problem,
    check_targets,
    prior_places,
)
from benchmarks.quality.wrong_labels import (
    count_table,
    flagged_table,
    transition_table,
    wrong_label_table,
)

HEAD = """# Quality: all tables

Look up the scores of one problem, data set or method here. [How good is it?](quality.md) summarizes
these tables, and explains what is compared and how.

{n_cells:,} runs (data, problem, labels per class, seed, method), {minutes:.0f} minutes of one core.
{seeds} per comparison: more than one where looselabels was not ahead in the first.
Commits: {commits}.
Numbers are mean ± standard deviation over seeds. The best peer has the best mean. A difference is
positive if looselabels is better. A win or loss is a mean difference of more than 0.005 and more
than two standard errors; all others are ties. Defaults were chosen on {development} only.
Names in **bold** are the test half: no default was chosen on {test}.

- "looselabels" is `DecoupledClassifier()`. Its peers have a forest or a linear model, whichever is
  better.
- "forest" and "linear" are base classifiers, the same for looselabels and its peers: scikit-learn's
  `RandomForestClassifier()`, and `LogisticRegression()` on scaled features.
- "balanced" is `decide="balanced"`.
- Macro-F1, F1, AUPRC and average precision: higher is better. Log-loss, calibration error, and
  errors of the class prior and of the transition: lower is better."""


def tables_page(scores, commits) -> str:
    """Return docs/quality-tables.md; `commits` has those of each method."""
    parts = [
        _head(scores, commits),
        "## Targets",
        "In how many comparisons each target was reached. A comparison is one problem on one data "
        f"set with one number of labels. Wrong labels: at least {MIN_LABELS} labels per class.",
        target_table(scores),
        "## Macro-F1",
        score_table(scores, "macro_f1", balanced="balanced_f1"),
        "## Macro-F1 with the same forest",
        score_table(scores, "macro_f1", SAME_FOREST),
        "## Macro-F1 with the same linear model",
        score_table(scores, "macro_f1", SAME_LINEAR),
        "## Wins, ties and losses",
        "Counts of wins / ties / losses against the best peer, over problems, data sets and "
        "numbers of labels.",
        outcome_table(scores),
        "## Log-loss",
        score_table(scores, "log_loss"),
        "## Calibration error",
        score_table(scores, "calibration_error"),
        "## Wrong labels",
        wrong_label_table(scores),
        "## Number of wrong labels",
        "The error of the number and the width of its 90 % interval are relative to the true "
        f"number, with at least {MIN_LABELS} labels per class. For cleanlab, the number of labels "
        "that it reports counts.",
        count_table(scores),
        "## Right labels that are flagged",
        "The share of labels with a doubt above 0.5, although all labels are right, and the "
        "out-of-sample accuracy of the labels.",
        flagged_table(scores),
        "## Positive-unlabeled",
        positive_table(scores),
        "## Class prior",
        f"Mean absolute error of the share of the positive class, with {MIN_LABELS} labels or "
        "more. The best constant is the median share of the problems.",
        prior_table(scores),
        "## Row error of the transition",
        "Mean over classes of the sum over labels of the absolute error of p(label | class).",
        transition_table(scores),
        "## Every method: macro-F1",
        'A "reference" is not a peer: label spreading has no base classifier; "all classes known" '
        'and "true transition" are upper bounds. The linear model is run with 30 % labels only if '
        "labels are positive-unlabeled.",
        method_table(scores),
        "## Time",
        "Processor time divided by that of one plain classifier with the same base (a forest for "
        "methods with a classifier of their own). Not all runs had the same machine and load, so "
        "read these ratios as orders of magnitude.",
        time_table(scores),
        "## Every macro-F1 loss",
        lost_table(scores),
    ]
    return "\n\n".join(parts) + "\n"


def _head(scores, commits):
    return HEAD.format(
        n_cells=len(scores.rows),
        commits=_names_of(commits),
        minutes=sum(row["seconds"] for row in scores.rows.values()) / 60,
        seeds=scores.n_seeds(),
        development=", ".join(DEVELOPMENT),
        test=", ".join(TEST),
    )


def _names_of(commits) -> str:
    """Return the commits of the methods, those of most methods last."""
    methods = defaultdict(list)
    for method, found in commits.items():
        methods[", ".join(sorted(found))].append(f'"{method}"')
    *few, (most, _) = sorted(methods.items(), key=lambda item: len(item[1]))
    parts = [f"{', '.join(names)}: {found}" for found, names in few]
    return "; ".join([*parts, f"all {'other ' if few else ''}methods: {most}"])


# ------------------------------------------------------------------------------ targets


def target_table(scores):
    """Return each target, in which share of comparisons it was reached, and the misses."""
    rows = []
    on_test = check_targets(scores.of_data(TEST))
    for test, every in zip(on_test, check_targets(scores), strict=True):
        missed = sorted((c for c in every.checks if not c.holds), key=lambda c: c.number)
        shown = [f"{c.where} {data_name(c.data)}".strip() + f": {c.number:+.3f}" for c in missed]
        rows.append([every.words, f"{every.goal:.0%}", _reached(test), _reached(every)])
        rows[-1].append("; ".join(shown))
    header = ["target", "goal", "test half", "all data", "missed by (difference, or value)"]
    return markdown(header, rows)


def _reached(target):
    if not target.checks:
        return "not run"
    held = sum(check.holds for check in target.checks)
    word = "yes" if target.is_reached else "no"
    return f"{word}, {held} of {len(target.checks)} ({target.percent})"


# ------------------------------------------------------------------------------ scores


def score_table(scores, score, method=DEFAULT, balanced=None):
    """Compare looselabels with the best peer, by family and data."""
    header = ["family", "data", "looselabels", "best peer", "peer", "difference", "outcome"]
    if balanced:
        header.insert(3, "balanced")
    rows = []
    for family, data, places in scores.by_family():
        compared = scores.compare(places, method, score)
        if compared is None:
            continue
        row = [family, data_name(data), mean_and_sd(compared.ours)]
        if balanced:
            row.append(mean_and_sd(scores.mean(places, method, balanced)))
        row += [mean_and_sd(compared.theirs), compared.peer]
        rows.append([*row, f"{compared.difference:+.3f}", compared.outcome])
    return markdown(header, rows)


def outcome_table(scores):
    """Return wins, ties and losses against the best peer of each cell, by family."""
    columns = {
        "macro-F1": (DEFAULT, "macro_f1"),
        "log-loss": (DEFAULT, "log_loss"),
        "macro-F1, same forest": (SAME_FOREST, "macro_f1"),
        "macro-F1, same linear model": (SAME_LINEAR, "macro_f1"),
    }
    rows = []
    for family in ALL:
        row = [family]
        for method, score in columns.values():
            for places in (_places(scores, family, TEST), _places(scores, family, NAMES)):
                found = [scores.compare([place], method, score) for place in places]
                outcomes = [c.outcome for c in found if c is not None]
                row.append(" / ".join(str(outcomes.count(o)) for o in (WIN, TIE, LOSS)))
        rows.append(row)
    header = [name for column in columns for name in (f"{column}, test half", "all data")]
    return markdown(["family", *header], rows)


def _places(scores, family, names):
    return [p for p in scores.places if p.family == family and p.data in names]


def positive_table(scores):
    """Return F1 and average precision of the positive class, next to the best peer."""
    rows = []
    for data, places in by_problem(scores, (PU,)):
        row = [places[0].problem, data_name(data)]
        for score in ("positive_f1", "average_precision"):
            compared = scores.compare(places, DEFAULT, score)
            if compared is None:
                row += [""] * 3
                continue
            best = f"{mean_and_sd(compared.theirs)}, {compared.peer}"
            row += [mean_and_sd(compared.ours), best, compared.outcome]
        rows.append(row)
    header = ["F1", "best peer", "outcome", "average precision", "best peer", "outcome"]
    return markdown(["problem", "data", *header], rows)


def prior_table(scores):
    """Return the mean |error| of the class prior, where there are enough labels."""
    names_of_data = [*dict.fromkeys(p.data for p in prior_places(scores)), None]
    errors = {
        name: [
            scores.mean(prior_places(scores, data), name, "class_prior_error")
            for data in names_of_data
        ]
        for name in scores.methods()
        if PU in METHODS[name].families
    }
    names = [name for name, found in errors.items() if any(map(len, found))]
    rows = [
        [
            data_name(data) if data else "all",
            *(mean_and_sd(errors[name][k]) for name in names),
            f"{best_constant(scores, prior_places(scores, data)):.3f}",
        ]
        for k, data in enumerate(names_of_data)
    ]
    return markdown(["data", *names, "best constant"], rows)


def method_table(scores):
    rows = []
    for family in ALL:
        for name in methods_for(family):
            found = [
                scores.mean(_places(scores, family, (data,)), name, "macro_f1") for data in NAMES
            ]
            if any(map(len, found)):
                shown = f"{name} (reference)" if METHODS[name].role == REFERENCE else name
                rows.append([family, shown, *map(mean_and_sd, found)])
    return markdown(["family", "method", *map(data_name, NAMES)], rows)


def time_table(scores):
    """Return the seconds of each method divided by those of the plain classifier."""
    rows = []
    for name in scores.methods():
        ratios = time_ratios(scores, name)
        if ratios:
            low, middle, high = np.quantile(ratios, [0.1, 0.5, 0.9])
            rows.append([name, f"{middle:.1f}", f"{low:.1f} to {high:.1f}"])
    return markdown(["method", "median ratio", "80 % of the problems"], rows)


def time_ratios(scores, method):
    """Return, for each place, our seconds divided by those of the plain classifier."""
    ratios = []
    for place in scores.places:
        plain = plain_for(place.family, LINEAR if METHODS[method].base == LINEAR else FOREST)
        own, theirs = (scores.mean([place], name, "seconds") for name in (method, plain))
        if len(own) and len(theirs):
            ratios.append(own.mean() / theirs.mean())
    return ratios


def lost_table(scores):
    """Return every place where macro-F1 is below the best peer, largest loss first."""
    found = [
        (place, name, scores.compare([place], name, "macro_f1"))
        for name in EVERY
        for place in scores.places
    ]
    lost = [one for one in found if one[2] is not None and one[2].outcome == LOSS]
    rows = [
        [
            place.problem, data_name(place.data), str(place.labels), name, mean_and_sd(c.ours),
            mean_and_sd(c.theirs), c.peer, f"{c.difference:+.3f}",
        ]
        for place, name, c in sorted(lost, key=lambda one: one[2].difference)
    ]  # fmt: skip
    header = ["problem", "data", "labels per class", "method", "looselabels", "best peer", "peer"]
    return markdown([*header, "difference"], rows)
