"""The section of benchmarks/README.md: targets first, then all scores."""

from collections import defaultdict
from typing import NamedTuple

import numpy as np
from benchmarks.annotators import results
from benchmarks.annotators.methods import METHODS, NO_FEATURES, OURS, OWN
from benchmarks.annotators.peers import PEERS
from benchmarks.annotators.problems import PLACES, Place
from benchmarks.quality.answer import FOREST, LINEAR
from benchmarks.quality.markdown import markdown
from benchmarks.quality.scores import Compared

LOWER = ("log_loss",)
RIVALS = {NO_FEATURES: (LINEAR, FOREST), LINEAR: (LINEAR,), OWN: (LINEAR, FOREST)}
WITHOUT_X = tuple(name for name in PEERS if name != "CROWDLAB")
BASE_NAMES = {NO_FEATURES: "no features", LINEAR: "logistic regression", OWN: "default"}
MAX_CROSS, MAX_RATIO, SLACK, FEW = 6, 1.5, 0.01, 3
COVERAGE = (0.85, 0.95)
COSTS = (LINEAR, OWN)  # the bases with cross-predictions


class Scores:
    """All results; `of` has one number per seed."""

    def __init__(self, rows):
        self._found = defaultdict(dict)
        for cell, scores in rows.items():
            place = Place(cell.data, cell.crowd, cell.answers)
            for name, value in scores.items():
                self._found[place, cell.method, cell.base, name][cell.seed] = value
        self.places = [p for p in PLACES if any(key[0] == p for key in self._found)]

    def of(self, place, method, base, score):
        return self._found.get((place, method, base, score), {})

    def ours(self, score):
        """Return the numbers of looselabels, one per seed, by place and base."""
        found = {
            (place, base): np.array(list(self.of(place, OURS, base, score).values()))
            for place in self.places
            for base in BASE_NAMES
        }
        return {key: numbers for key, numbers in found.items() if len(numbers)}

    def compare(self, place, base, score) -> Compared | None:
        """Compare looselabels with the best peer: the one to which it loses most or gains least."""
        peers = WITHOUT_X if base == NO_FEATURES else PEERS
        pairs = [self._pair(place, base, score, name, b) for name in peers for b in RIVALS[base]]
        found = [pair for pair in pairs if pair is not None]
        return min(found, key=lambda pair: pair.difference) if found else None

    def _pair(self, place, base, score, peer, peer_base):
        ours, theirs = self.of(place, OURS, base, score), self.of(place, peer, peer_base, score)
        seeds = sorted(ours.keys() & theirs.keys())
        if not seeds:
            return None
        pairs = np.array([[ours[seed], theirs[seed]] for seed in seeds])
        return Compared(pairs[:, 0], pairs[:, 1], peer, score in LOWER)


class Target(NamedTuple):
    """What should hold; where it does not, with the number."""

    words: str
    n_checks: int
    missed: list[str]


def section(path, seeds=()) -> str:
    """Return targets and tables of the results in `path`, in Markdown; no `seeds`: of all seeds."""
    rows = results.read(path)
    scores = Scores({cell: row for cell, row in rows.items() if not seeds or cell.seed in seeds})
    targets = [
        [t.words, f"{t.n_checks - len(t.missed)} of {t.n_checks}", "; ".join(t.missed) or "none"]
        for t in check_targets(scores)
    ]
    parts = [
        f"looselabels at {results.commits(path, [OURS])}, peers at {results.commits(path, PEERS)}.",
        _mean_gains(scores),
        markdown(["target", "reached", "missed"], targets),
        "Share of right classes on the training rows that have an answer:",
        _table(scores, "right"),
        "Log-loss of the consensus on these rows:",
        _table(scores, "log_loss"),
        "How certain looselabels is of the consensus, and how often it is right on these rows:",
        _certainty_table(scores),
        "Macro-F1 on test rows, logistic regression:",
        _table(scores, "macro_f1", LINEAR),
        "Macro-F1 on test rows, a forest for the peers and the default of looselabels:",
        _table(scores, "macro_f1", FOREST),
        "Share of the 90 % accuracy intervals that hold the truth, and the cost of a fit: number "
        "of cross-predictions / time relative to theirs / processor seconds:",
        _own_table(scores),
    ]
    return "\n\n".join(parts)


def _mean_gains(scores):
    """Say how far looselabels is ahead of the best peer of each place, on average."""
    parts = []
    for base in COSTS:
        for score in ("right", "macro_f1"):
            pairs = [scores.compare(place, base, score) for place in scores.places]
            gains = [pair.difference for pair in pairs if pair is not None]
            if gains:
                parts.append(f"{BASE_NAMES[base]}, {score} {np.mean(gains):+.3f}")
    return f"Mean difference from the best peer of each place: {'; '.join(parts)}."


# ------------------------------------------------------------------------------ targets


def check_targets(scores) -> list[Target]:
    """Return all targets, checked on all results."""
    pairs = {
        (place, base, score): scores.compare(place, base, score)
        for place in scores.places
        for base in BASE_NAMES
        for score in ("right", "macro_f1", "log_loss")
    }
    pairs = {key: pair for key, pair in pairs.items() if pair is not None}
    with_x = {key: pair for key, pair in pairs.items() if key[1] != NO_FEATURES}
    shares = {key: pair for key, pair in with_x.items() if key[2] != "log_loss"}
    few = {key: pair for key, pair in shares.items() if key[0].answers <= FEW}
    alone = {k: p for k, p in pairs.items() if k[1:] == (NO_FEATURES, "right")}
    loss = {key: pair for key, pair in with_x.items() if key[2] == "log_loss"}
    return [
        _target("no loss to the best peer", shares, lambda pair: pair.outcome != "loss"),
        _target("ahead with at most 3 answers", few, lambda pair: pair.difference > 0),
        _target(
            f"without features at most {SLACK} behind", alone, lambda p: p.difference >= -SLACK
        ),
        _target("log-loss below every peer's", loss, lambda pair: pair.difference > 0),
        _coverage(scores),
        _limit(scores, "cross_predictions", f"at most {MAX_CROSS} cross-predictions", MAX_CROSS),
        _limit(scores, "time_ratio", f"at most {MAX_RATIO} × their time", MAX_RATIO),
    ]


def _target(words, pairs, holds):
    missed = [
        f"{_name(place)}, {BASE_NAMES[base]}, {score}: {pair.difference:+.3f} ({pair.peer})"
        for (place, base, score), pair in pairs.items()
        if not holds(pair)
    ]
    return Target(words, len(pairs), missed)


def _coverage(scores):
    """Check the accuracy intervals of all annotators together."""
    n_intervals, n_held = (sum(map(sum, scores.ours(s).values())) for s in ("intervals", "held"))
    share = n_held / max(n_intervals, 1)
    low, high = COVERAGE
    words = f"90 % accuracy intervals hold in {low:.0%} to {high:.0%}"
    number = f"{share:.1%} of {n_intervals:.0f}"
    return Target(f"{words}: {number}", 1, [] if low <= share <= high else [number])


def _limit(scores, score, words, limit):
    """Check that the mean over seeds is at most `limit`."""
    means = {key: numbers.mean() for key, numbers in scores.ours(score).items()}
    missed = [
        f"{_name(place)}, {BASE_NAMES[base]}: {mean:.2f}"
        for (place, base), mean in means.items()
        if mean > limit
    ]
    return Target(words, len(means), missed)


# ------------------------------------------------------------------------------ tables


def _table(scores, score, base=None):
    """Return one line per place; columns are the methods that have this score."""
    columns = _columns(base)
    lines = []
    for place in scores.places:
        found = [list(scores.of(place, m, b, score).values()) for m, b in columns.values()]
        lines.append([_name(place), *(f"{np.mean(v):.3f}" if v else "" for v in found)])
    return markdown(["data", *columns], lines)


def _own_table(scores):
    """Return what only looselabels has: accuracy intervals, and cross-predictions."""
    names = ("held", "intervals", "cross_predictions", "time_ratio", "seconds")
    numbers = {name: scores.ours(name) for name in names}
    lines = []
    for place in scores.places:
        keys = [(place, base) for base in BASE_NAMES if (place, base) in numbers["seconds"]]
        held = [numbers["held"][key].sum() / numbers["intervals"][key].sum() for key in keys]
        costs = [
            [numbers[name][key].mean() for name in names[2:]] for key in keys if key[1] in COSTS
        ]
        lines.append(
            [_name(place), *(f"{share:.0%}" for share in held)]
            + [f"{calls:.1f} / {ratio:.1f} / {seconds:.1f}" for calls, ratio, seconds in costs]
        )
    costs = [f"cost, {BASE_NAMES[base]}" for base in COSTS]
    return markdown(
        ["data", *(f"intervals, {name}" for name in BASE_NAMES.values()), *costs], lines
    )


def _certainty_table(scores):
    """Return mean probability and share of right classes, which should be equal."""
    certainty, right = scores.ours("certainty"), scores.ours("right")
    lines = [
        [_name(place)]
        + [
            f"{certainty[place, base].mean():.3f} / {right[place, base].mean():.3f}"
            for base in BASE_NAMES
            if (place, base) in certainty
        ]
        for place in scores.places
    ]
    return markdown(["data", *BASE_NAMES.values()], lines)


def _columns(base):
    """Return method and base of each column, by its name; without `base`: all that differ."""
    if base is not None:
        own = OWN if base == FOREST else base
        return {name: (name, own if name == OURS else base) for name in METHODS}
    ours = {f"{OURS}, {BASE_NAMES[b]}": (OURS, b) for b in METHODS[OURS]}
    crowdlab = {f"CROWDLAB, {b}": ("CROWDLAB", b) for b in METHODS["CROWDLAB"]}
    return {name: (name, LINEAR) for name in WITHOUT_X} | crowdlab | ours


def _name(place):
    answers = f", {place.answers} per row" if place.answers else ""
    return f"{place.data}, {place.crowd}{answers}"
