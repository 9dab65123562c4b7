"""The results as tables in Markdown, for docs/quality.md."""

import numpy as np
from benchmarks.quality import results
from benchmarks.quality.data import DEVELOPMENT, NAMES, TEST
from benchmarks.quality.methods import (
    ALL,
    APART,
    AS_NEGATIVE,
    CLEANLAB,
    DEFAULT,
    METHODS,
    PLAIN,
    PU,
    SAME,
    serving,
)
from benchmarks.quality.scores import LOSS, TIE, WIN, Scores, shown
from benchmarks.quality.verdicts import (
    WRONG_LABELS,
    best_constant,
    by_problem,
    must_reach,
    prior_places,
)


def report(path) -> str:
    """Return all tables of the results in `path`."""
    scores = Scores(results.read(path))
    if not scores.rows:
        raise ValueError(f"{path} has no results; `python -m benchmarks.quality run` makes them.")
    parts = [
        _head(scores),
        "## Must reach",
        verdict_table(scores),
        "## Macro-F1",
        score_table(scores, "macro_f1", "balanced_f1"),
        "## Wins, ties and losses",
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
        prior_table(scores),
        "## Row error of the transition",
        transition_table(scores),
        "## Every method: macro-F1",
        method_table(scores),
        "## Time",
        time_table(scores),
        "## Lost cells",
        lost_table(scores),
    ]
    return "\n\n".join(parts)


def _head(scores):
    seconds = sum(row["seconds"] for row in scores.rows.values())
    seeds: dict[str, set] = {name: set() for name in NAMES}
    for cell in scores.rows:
        if cell.method == DEFAULT:
            seeds[cell.data].add(cell.seed)
    counted = ", ".join(f"{name} {len(found)}" for name, found in seeds.items() if found)
    return (
        f"{len(scores.rows)} cells (data, problem, labels a class, seed, method), "
        f"{seconds / 60:.0f} minutes of one core; seeds: {counted}. Mean ± standard "
        "deviation over seeds. The best peer is chosen afterwards, by its mean. A tie is a "
        "difference within one standard deviation of the differences between seeds. Development "
        f"half: {', '.join(DEVELOPMENT)}; test half, in **bold**: {', '.join(TEST)}."
    )


def markdown(header, rows):
    """Return a table."""
    lines = [f"| {' | '.join(header)} |", "|" + "---|" * len(header)]
    return "\n".join(lines + [f"| {' | '.join(row)} |" for row in rows])


def _name(data):
    return f"**{data}**" if data in TEST else data


# ------------------------------------------------------------------------------ verdicts


def verdict_table(scores):
    rows = []
    for words, checks in must_reach(scores):
        test = [check for check in checks if check.data in TEST]
        missed = [f"{c.where}, {_name(c.data)}: {c.number:+.3f}" for c in checks if not c.holds]
        rows.append([words, _counted(test), _counted(checks), "; ".join(missed)])
    return markdown(
        ["must reach", "test half", "both halves", "missed (difference, or value)"], rows
    )


def _counted(checks):
    if not checks:
        return "not run"
    held = sum(check.holds for check in checks)
    return f"{'yes' if held == len(checks) else 'no'}, {held} of {len(checks)}"


# ------------------------------------------------------------------------------ scores


def score_table(scores, score, balanced=None):
    """Return looselabels beside the best peer, by family and data."""
    header = ["family", "data", "looselabels", "same forest", "best peer", "", "difference", ""]
    if balanced:
        header.insert(3, "decided for balanced error")
    rows = []
    for family, data, places in scores.by_family():
        compared = scores.compare(places, DEFAULT, score)
        if compared is None:
            continue
        row = [family, _name(data), shown(scores.mean(places, DEFAULT, score))]
        if balanced:
            row.append(shown(scores.mean(places, DEFAULT, balanced)))
        row += [shown(scores.mean(places, SAME, score)), shown(compared.theirs), compared.peer]
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
    header = ["family", "macro-F1, test half", "both", "log-loss, test half", "both"]
    return markdown(header, rows)


def _places(scores, family, names):
    return [p for p in scores.places if p.family == family and p.data in names]


def wrong_label_table(scores):
    rows = []
    for data, places in by_problem(scores, WRONG_LABELS):
        row = [places[0].problem, _name(data)]
        for score in ("auprc", "detection_f1", "corrected"):
            row += [shown(scores.mean(places, name, score)) for name in (DEFAULT, SAME, CLEANLAB)]
        rows.append(row)
    names = ("looselabels", "same forest", "cleanlab")
    words = ("AUPRC", "F1 of the decision", "right after correction")
    header = [f"{word}, {name}" for word in words for name in names]
    return markdown(["problem", "data", *header], rows)


def positive_table(scores):
    rows = []
    for data, places in by_problem(scores, (PU,)):
        row = [places[0].problem, _name(data)]
        for score in ("positive_f1", "average_precision"):
            compared = scores.compare(places, DEFAULT, score)
            if compared is None:
                row += [""] * 3
                continue
            best = f"{shown(compared.theirs)} ({compared.peer})"
            row += [shown(compared.ours), best, compared.outcome]
        rows.append(row)
    header = ["F1", "best peer", "", "average precision", "best peer", ""]
    return markdown(["problem", "data", *header], rows)


def prior_table(scores):
    """Return the mean |error| of the class prior, where there are 50 labels or more."""
    there = [*dict.fromkeys(p.data for p in prior_places(scores)), None]
    errors = {
        name: [scores.mean(prior_places(scores, data), name, "class_prior_error") for data in there]
        for name in scores.methods()
        if PU in METHODS[name].families
    }
    names = [name for name, found in errors.items() if any(map(len, found))]
    rows = [
        [
            _name(data) if data else "all",
            *(shown(errors[name][k]) for name in names),
            f"{best_constant(scores, prior_places(scores, data)):.3f}",
        ]
        for k, data in enumerate(there)
    ]
    return markdown(["data", *names, "best constant"], rows)


def transition_table(scores):
    rows = []
    for family, data, places in scores.by_family():
        found = [scores.mean(places, n, "transition_error") for n in (DEFAULT, SAME, CLEANLAB)]
        if any(map(len, found)):
            rows.append([family, _name(data), *map(shown, found)])
    return markdown(["family", "data", "looselabels", "same forest", "cleanlab"], rows)


def method_table(scores):
    rows = []
    for family in ALL:
        for name in serving(family):
            found = [
                scores.mean(_places(scores, family, (data,)), name, "macro_f1") for data in NAMES
            ]
            if any(map(len, found)):
                words = f"{name} (apart)" if METHODS[name].role == APART else name
                rows.append([family, words, *map(shown, found)])
    return markdown(["family", "method", *map(_name, NAMES)], rows)


def time_table(scores):
    """Return the seconds of each method as a multiple of those of the plain forest."""
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
    return markdown(["method", "median, times the plain forest's", "80 % of the cells"], rows)


def lost_table(scores):
    """Return every cell whose macro-F1 is below the best peer's, most lost first."""
    found = [(place, scores.compare([place], DEFAULT, "macro_f1")) for place in scores.places]
    lost = [(place, c) for place, c in found if c is not None and c.outcome == LOSS]
    rows = [
        [
            place.problem, _name(place.data), str(place.labels), shown(c.ours), shown(c.theirs),
            c.peer, f"{c.difference:+.3f}",
        ]
        for place, c in sorted(lost, key=lambda one: one[1].difference)
    ]  # fmt: skip
    header = ["problem", "data", "labels a class", "looselabels", "best peer", "", "difference"]
    return markdown(header, rows)
