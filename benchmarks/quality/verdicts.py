"""What was to be reached, and whether it was: on the test half of the data, and on all."""

from typing import NamedTuple

import numpy as np
from benchmarks.quality.methods import (
    AS_NEGATIVE,
    CLEANLAB,
    DEFAULT,
    KNOWN,
    PLAIN,
    PU,
    RECIPE,
    SELF_TRAINING,
    SEMI,
    SEVERAL,
    UNCLEAR,
)
from benchmarks.quality.problems import CLASSES, n_positive
from benchmarks.quality.scores import LOSS, WIN

WRONG_LABELS = ("noisy", "asymmetric", "human")
ENOUGH = 50  # labels, for a class prior


class Check(NamedTuple):
    """One thing that was compared: where, whether it came out, and by how much."""

    data: str
    where: str
    holds: bool
    number: float


def must_reach(scores):
    """Return (what was to be reached, its checks)."""
    return [
        (
            "macro-F1 at or above the best peer's, but for semi-supervised",
            _against_best(scores, "macro_f1", lambda family: family != SEMI),
        ),
        (
            "macro-F1 strictly above it in multi-positive, coarse and merged",
            _against_best(scores, "macro_f1", lambda family: family in (SEVERAL, *UNCLEAR), True),
        ),
        ("semi-supervised: macro-F1 at most .005 below plain", _below_plain(scores, SEMI, 0.005)),
        (
            "semi-supervised: the recipe matches self-training",
            _against(scores, RECIPE, SELF_TRAINING, "macro_f1", (SEMI,)),
        ),
        ("clean: macro-F1 at most .01 below plain", _below_plain(scores, "clean", 0.01)),
        ("multi-positive, 30 % labeled: 95 % of what knowing all gives", _share_of_known(scores)),
        (
            "wrong labels: AUPRC at or above cleanlab's best score",
            _against(scores, DEFAULT, CLEANLAB, "auprc", WRONG_LABELS),
        ),
        (
            "wrong labels: more are right after correction than by cleanlab",
            _against(scores, DEFAULT, CLEANLAB, "corrected", WRONG_LABELS, strictly=True),
        ),
        ("class prior: mean error at most .04, and below the best constant's", _priors(scores)),
        ("log-loss at or below the best peer's", _against_best(scores, "log_loss", lambda _: True)),
    ]


def _against_best(scores, score, which, strictly=False):
    compared = [
        (family, data, scores.compare(places, DEFAULT, score))
        for family, data, places in scores.by_family()
        if which(family)
    ]
    return _checks(compared, strictly)


def _against(scores, ours, theirs, score, families, strictly=False):
    compared = [
        (places[0].problem, data, scores.compare(places, ours, score, theirs))
        for data, places in by_problem(scores, families)
    ]
    return _checks(compared, strictly)


def _checks(compared, strictly):
    return [
        Check(data, what, c.outcome == WIN if strictly else c.outcome != LOSS, c.difference)
        for what, data, c in compared
        if c is not None
    ]


def by_problem(scores, families):
    """Yield data and the places of one problem on it."""
    there = dict.fromkeys((p.data, p.problem) for p in scores.places if p.family in families)
    for data, problem in there:
        yield data, [p for p in scores.places if (p.data, p.problem) == (data, problem)]


def _below_plain(scores, family, most):
    found = []
    for _, data, places in (one for one in scores.by_family() if one[0] == family):
        compared = scores.compare(places, DEFAULT, "macro_f1", PLAIN)
        if compared is not None:
            difference = compared.difference
            found.append(Check(data, family, difference >= -most, difference))
    return found


def _share_of_known(scores):
    found = []
    for place in (p for p in scores.places if p.family == SEVERAL):
        at = sorted(p.labels for p in scores.places if p[:2] == place[:2])
        compared = scores.compare([place], DEFAULT, "macro_f1", KNOWN)
        if compared is None or place.labels != at[len(at) // 2]:  # the middle one is 30 %
            continue
        share = compared.ours.mean() / compared.theirs.mean()
        found.append(Check(place.data, place.problem, share >= 0.95, share))
    return found


def prior_places(scores, data=None):
    """Return the positive-unlabeled places with enough labels."""
    return [
        p
        for p in scores.places
        if p.family == PU
        and p.labels * n_positive(p.problem, CLASSES[p.data]) >= ENOUGH
        and data in (None, p.data)
    ]


def best_constant(scores, places):
    """Return the mean error of the best constant guess of the class prior: their median."""
    shares = [scores.mean([p], AS_NEGATIVE, "class_prior").mean() for p in places]
    return float(np.mean(abs(np.array(shares) - np.median(shares))))


def _priors(scores):
    found = []
    for data in [*dict.fromkeys(p.data for p in prior_places(scores)), None]:  # and of all data
        places = prior_places(scores, data)
        error = scores.mean(places, DEFAULT, "class_prior_error")
        if len(error):
            holds = error.mean() <= min(0.04, best_constant(scores, places))
            found.append(Check(data or "all", PU, bool(holds), float(error.mean())))
    return found
