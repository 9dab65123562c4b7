"""Targets of the benchmark, and in which share of the comparisons each was reached."""

from typing import NamedTuple

import numpy as np
from benchmarks.quality.answer import FOREST, LINEAR, OWN
from benchmarks.quality.methods import (
    ALL,
    AS_NEGATIVE,
    DEFAULT,
    KNOWN,
    METHODS,
    PLAIN,
    PU,
    SAME_FOREST,
    SAME_LINEAR,
    SEVERAL,
    TRUE_TRANSITION,
    named,
)
from benchmarks.quality.problems import CLASSES, NOISY, n_positive
from benchmarks.quality.scores import LOSS

MIN_LABELS = 50  # per class; with fewer, noise and class shares are not compared
SAME = (SAME_FOREST, SAME_LINEAR)
EVERY = (DEFAULT, *SAME)


class Check(NamedTuple):
    """One comparison: on which data and problem, whether the target was reached, the number."""

    data: str
    where: str
    holds: bool
    number: float


class Target(NamedTuple):
    """What should hold, in which share of the checks, and the checks."""

    words: str
    goal: float
    checks: list[Check]

    @property
    def share(self):
        """The share of checks that hold; NaN without checks."""
        return float(np.mean([check.holds for check in self.checks])) if self.checks else np.nan

    @property
    def percent(self):
        """The share in words, rounded down: 447 of 448 checks are not 100 %."""
        return f"{int(100 * self.share + 1e-9)}%" if self.checks else ""

    @property
    def is_reached(self):
        return self.share >= self.goal - 1e-9


def check_targets(scores) -> list[Target]:
    """Return all targets, checked on all results in `scores`."""
    return [*_accuracy(scores), *_noise(scores), *_clean(scores), *_shares(scores)]


# ------------------------------------------------------------------------------ macro-F1


def _accuracy(scores):
    same = [_against_peers(scores, name) for name in SAME]
    pairs = [pair for found in same for pair in found]
    found = [
        Target("same base: no loss of macro-F1 to the best peer", 0.9, _not_lost(pairs)),
        Target(
            "same base: the upper 95 % bound of the difference is not below −0.02", 1.0,
            [_check(place, name, c.upper >= -0.02, c.upper) for place, name, c in pairs],
        ),
    ]  # fmt: skip
    for words, bases in {"peers with a forest": (OWN, FOREST), "all peers": None}.items():
        default = _against_peers(scores, DEFAULT, bases)
        mean = f"default, {words}: the mean difference of no family is below zero"
        found += [
            Target(f"default, {words}: no loss to the best one", 0.95, _not_lost(default)),
            Target(mean, 1.0, _family_means(default)),
        ]
    return found


def _against_peers(scores, method, bases=None, score="macro_f1", places=None):
    """Return place, method and comparison with the best peer for each place."""
    every = scores.places if places is None else places
    found = [
        (place, method, scores.compare([place], method, score, None, bases)) for place in every
    ]
    return [one for one in found if one[2] is not None]


def _not_lost(found):
    return [_check(place, name, c.outcome != LOSS, c.difference) for place, name, c in found]


def _check(place, method, holds, number):
    base = METHODS[method].base
    where = f"{place.problem}, {place.labels} labels" + ("" if base == OWN else f", {base}")
    return Check(place.data, where, bool(holds), float(number))


def _family_means(found):
    means = {
        family: np.mean([c.difference for place, _, c in found if place.family == family])
        for family in ALL
        if any(place.family == family for place, _, _ in found)
    }
    return [Check("", family, bool(mean >= 0), float(mean)) for family, mean in means.items()]


# ------------------------------------------------------------------------------ wrong labels


def noise_places(scores):
    """Return the places with wrong labels and enough labels to estimate how many are wrong."""
    return [p for p in scores.places if p.family in NOISY and p.labels >= MIN_LABELS]


def _noise(scores):
    places = noise_places(scores)
    ranked = [pair for m in EVERY for pair in _against_peers(scores, m, None, "auprc", places)]
    corrected = [
        (place, method, scores.compare([place], method, "corrected", true_transition(method)))
        for method in EVERY
        for place in places
    ]
    counted = [
        _check(place, method, error.mean() <= 0.25, error.mean())
        for method in (DEFAULT, SAME_FOREST)
        for place in places
        if len(error := scores.mean([place], method, "count_error"))
    ]
    return [
        Target(
            "wrong labels: after correction, at most 0.01 fewer labels are right than with the "
            "true transition", 0.85,
            [
                _check(place, method, c.difference >= -0.01, c.difference)
                for place, method, c in corrected
                if c is not None
            ],
        ),
        Target("wrong labels: no loss of AUPRC to the best peer", 0.9, _not_lost(ranked)),
        Target(
            "wrong labels: their number is within 25 % of the truth (default and forest)", 0.85,
            counted,
        ),
    ]  # fmt: skip


def true_transition(method):
    """Return the reference with the true transition and the base of `method`."""
    return named(TRUE_TRANSITION, METHODS[method].base)


# ------------------------------------------------------------------------------ clean labels


def _clean(scores):
    places = [p for p in scores.places if p.family in ("clean", "overlap")]
    flagged = []
    for place in places:
        for method in EVERY:
            accuracy = scores.mean([place], method, "label_accuracy")
            share = scores.mean([place], method, "flagged")
            if len(accuracy) and accuracy.mean() >= 0.98:
                flagged.append(_check(place, method, share.mean() <= 0.005, share.mean()))
    compared = [
        (place, method, scores.compare([place], method, "macro_f1", plain))
        for method, plain in zip(EVERY, map(_plain_of, EVERY), strict=True)
        for place in places
    ]
    return [
        Target(
            "clean labels: at most 0.5 % are flagged where the out-of-sample accuracy is at "
            "least 0.98", 1.0, flagged,
        ),
        Target(
            "clean labels: no loss of macro-F1 to the plain classifier (default: the plain forest)",
            1.0, _not_lost([one for one in compared if one[2] is not None]),
        ),
    ]  # fmt: skip


def _plain_of(method):
    return named(PLAIN, LINEAR if method == SAME_LINEAR else FOREST)


# ------------------------------------------------------------------------------ class shares


def _shares(scores):
    errors = [
        (place, scores.mean([place], DEFAULT, "class_prior_error"))
        for place in prior_places(scores)
    ]
    found = [float(error.mean()) for _, error in errors if len(error)]
    mean = float(np.mean(found)) if found else np.nan
    return [
        Target(
            "multi-positive, 30 % labeled: at least 95 % of the macro-F1 with all classes known",
            0.8, _share_of_known(scores),
        ),
        Target(
            "class prior: the mean error over problems is at most 0.03", 1.0,
            [Check("", PU, mean <= 0.03, mean)] if found else [],
        ),
    ]  # fmt: skip


def _share_of_known(scores):
    found = []
    for place in (p for p in scores.places if p.family == SEVERAL):
        counts = sorted(p.labels for p in scores.places if p[:2] == place[:2])
        compared = scores.compare([place], DEFAULT, "macro_f1", named(KNOWN, FOREST))
        if compared is None or place.labels != counts[len(counts) // 2]:  # the middle is 30 %
            continue
        share = float(compared.ours.mean() / compared.theirs.mean())
        found.append(_check(place, DEFAULT, share >= 0.95, share))
    return found


def prior_places(scores, data=None):
    """Return the positive-unlabeled places with enough labels to estimate the class prior."""
    return [
        p
        for p in scores.places
        if p.family == PU
        and p.labels * n_positive(p.problem, CLASSES[p.data]) >= MIN_LABELS
        and data in (None, p.data)
    ]


def best_constant(scores, places):
    """Return the mean error of the best constant class prior, the median over the places."""
    found = [scores.mean([p], named(AS_NEGATIVE, FOREST), "class_prior") for p in places]
    shares = np.array([share.mean() for share in found if len(share)])
    return float(np.mean(abs(shares - np.median(shares)))) if len(shares) else np.nan


def by_problem(scores, families):
    """Yield data and the places of one problem on this data."""
    pairs = dict.fromkeys((p.data, p.problem) for p in scores.places if p.family in families)
    for data, problem in pairs:
        yield data, [p for p in scores.places if (p.data, p.problem) == (data, problem)]
