"""All results as tables in Markdown: docs/quality-tables.md."""

import numpy as np
from benchmarks.quality.data import DEVELOPMENT, NAMES, TEST
from benchmarks.quality.methods import (
    ALL,
    AS_NEGATIVE,
    CLEANLAB,
    DEFAULT,
    METHODS,
    PLAIN,
    PU,
    REFERENCE,
    SAME,
    methods_for,
)
from benchmarks.quality.scores import LOSS, TIE, WIN, mean_and_sd
from benchmarks.quality.targets import (
    WRONG_LABELS,
    best_constant,
    by_problem,
    check_targets,
    prior_places,
)

HEAD = """# Quality: all tables

Look up the scores of one problem, data set or method here. [How good is it?](quality.md) summarizes
these tables, and explains what is compared and how.

{n_cells:,} runs (data, problem, labels per class, seed, method), {minutes:.0f} minutes of one core.
Seeds per data set: {seeds}.
Numbers are mean ± standard deviation over seeds. The best peer has the best mean. A difference is
positive if looselabels is better. A tie is a difference within one standard deviation of the
differences between seeds. Defaults may be chosen on {development}.
Names in **bold** are the test half: no default was chosen on {test}.

- "looselabels" is `DecoupledClassifier()` with its default forest of 100 trees; "same forest" uses
  the `RandomForestClassifier()` of the peers.
- "balanced" is `decide="balanced"`.
- Macro-F1, F1, AUPRC and average precision: higher is better. Log-loss, calibration error, and
  errors of the class prior and of the transition: lower is better."""


def tables_page(scores) -> str:
    """Return docs/quality-tables.md."""
    parts = [
        _head(scores),
        "## Targets",
        target_table(scores),
        "## Macro-F1",
        score_table(scores, "macro_f1", "balanced_f1"),
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
        "## Positive-unlabeled",
        positive_table(scores),
        "## Class prior",
        "Mean absolute error of the share of the positive class, with 50 labels or more. The best "
        "constant is the median share of the problems.",
        prior_table(scores),
        "## Row error of the transition",
        "Mean over classes of the sum over labels of the absolute error of p(label | class).",
        transition_table(scores),
        "## Every method: macro-F1",
        'A "reference" is not a peer: label spreading does not use the forest, and "all classes '
        'known" is an upper bound.',
        method_table(scores),
        "## Time",
        "Processor time divided by that of one plain forest.",
        time_table(scores),
        "## Every macro-F1 loss",
        lost_table(scores),
    ]
    return "\n\n".join(parts) + "\n"


def _head(scores):
    seeds: dict[str, set] = {name: set() for name in NAMES}
    for cell in scores.rows:
        if cell.method == DEFAULT:
            seeds[cell.data].add(cell.seed)
    return HEAD.format(
        n_cells=len(scores.rows),
        minutes=sum(row["seconds"] for row in scores.rows.values()) / 60,
        seeds=", ".join(f"{name} {len(found)}" for name, found in seeds.items() if found),
        development=", ".join(DEVELOPMENT),
        test=", ".join(TEST),
    )


def markdown(header, rows):
    """Return a table."""
    lines = [f"| {' | '.join(header)} |", "|" + "---|" * len(header)]
    return "\n".join(lines + [f"| {' | '.join(row)} |" for row in rows])


def data_name(data):
    """Return the name of a data set, in bold for the test half."""
    return f"**{data}**" if data in TEST else data


# ------------------------------------------------------------------------------ targets


def target_table(scores):
    """Return each target, how many of its checks hold, and those that do not."""
    rows = []
    for words, checks in check_targets(scores):
        test = [check for check in checks if check.data in TEST]
        missed = [f"{c.where}, {data_name(c.data)}: {c.number:+.3f}" for c in checks if not c.holds]
        rows.append([words, _counted(test), _counted(checks), "; ".join(missed)])
    return markdown(["target", "test half", "all data", "missed by (difference, or value)"], rows)


def _counted(checks):
    if not checks:
        return "not run"
    held = sum(check.holds for check in checks)
    return f"{'yes' if held == len(checks) else 'no'}, {held} of {len(checks)}"


# ------------------------------------------------------------------------------ scores


def score_table(scores, score, balanced=None):
    """Compare looselabels with the best peer, by family and data."""
    header = ["family", "data", "looselabels", "same forest", "best peer", "peer", "difference"]
    header.append("outcome")
    if balanced:
        header.insert(3, "balanced")
    rows = []
    for family, data, places in scores.by_family():
        compared = scores.compare(places, DEFAULT, score)
        if compared is None:
            continue
        row = [family, data_name(data), mean_and_sd(scores.mean(places, DEFAULT, score))]
        if balanced:
            row.append(mean_and_sd(scores.mean(places, DEFAULT, balanced)))
        row += [
            mean_and_sd(scores.mean(places, SAME, score)),
            mean_and_sd(compared.theirs),
            compared.peer,
        ]
        rows.append([*row, f"{compared.difference:+.3f}", compared.outcome])
    return markdown(header, rows)


def outcome_table(scores):
    """Return wins, ties and losses against the best peer of each cell, by family."""
    rows = []
    for family in ALL:
        row = [family]
        for score in ("macro_f1", "log_loss"):
            for places in (_places(scores, family, TEST), _places(scores, family, NAMES)):
                found = [scores.compare([place], DEFAULT, score) for place in places]
                outcomes = [c.outcome for c in found if c is not None]
                row.append(" / ".join(str(outcomes.count(o)) for o in (WIN, TIE, LOSS)))
        rows.append(row)
    header = ["family", "macro-F1, test half", "all data", "log-loss, test half", "all data"]
    return markdown(header, rows)


def _places(scores, family, names):
    return [p for p in scores.places if p.family == family and p.data in names]


def wrong_label_table(scores):
    """Return how well wrong labels are ranked, detected and corrected, next to cleanlab."""
    rows = []
    for data, places in by_problem(scores, WRONG_LABELS):
        row = [places[0].problem, data_name(data)]
        for score in ("auprc", "detection_f1", "corrected"):
            row += [
                mean_and_sd(scores.mean(places, name, score)) for name in (DEFAULT, SAME, CLEANLAB)
            ]
        rows.append(row)
    names = ("looselabels", "same forest", "cleanlab")
    columns = ("AUPRC", "F1 of detection", "right after correction")
    header = [f"{column}, {name}" for column in columns for name in names]
    return markdown(["problem", "data", *header], rows)


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
            best = f"{mean_and_sd(compared.theirs)} ({compared.peer})"
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


def transition_table(scores):
    rows = []
    for family, data, places in scores.by_family():
        found = [scores.mean(places, n, "transition_error") for n in (DEFAULT, SAME, CLEANLAB)]
        if any(map(len, found)):
            rows.append([family, data_name(data), *map(mean_and_sd, found)])
    return markdown(["family", "data", "looselabels", "same forest", "cleanlab"], rows)


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
    """Return the seconds of each method divided by those of the plain forest."""
    rows = []
    for name in scores.methods():
        ratios = []
        for place in scores.places:
            base = AS_NEGATIVE if place.family == PU else PLAIN
            own, plain = (scores.mean([place], n, "seconds") for n in (name, base))
            if len(own) and len(plain):
                ratios.append(own.mean() / plain.mean())
        if ratios:
            low, middle, high = np.quantile(ratios, [0.1, 0.5, 0.9])
            rows.append([name, f"{middle:.1f}", f"{low:.1f} to {high:.1f}"])
    return markdown(["method", "median ratio", "80 % of the problems"], rows)


def lost_table(scores):
    """Return every place where macro-F1 is below the best peer, largest loss first."""
    found = [(place, scores.compare([place], DEFAULT, "macro_f1")) for place in scores.places]
    lost = [(place, c) for place, c in found if c is not None and c.outcome == LOSS]
    rows = [
        [
            place.problem, data_name(place.data), str(place.labels), mean_and_sd(c.ours),
            mean_and_sd(c.theirs), c.peer, f"{c.difference:+.3f}",
        ]
        for place, c in sorted(lost, key=lambda one: one[1].difference)
    ]  # fmt: skip
    header = [
        "problem",
        "data",
        "labels per class",
        "looselabels",
        "best peer",
        "peer",
        "difference",
    ]
    return markdown(header, rows)
