"""Targets of the benchmark, and whether they were reached: on the test half and on all data."""

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
MIN_LABELS_FOR_PRIOR = 50  # with fewer labels, errors of the class prior are not compared


class Check(NamedTuple):
    """One comparison: on which data and problem, whether the target was reached, the number."""

    data: str
    where: str
    holds: bool
    number: float


def check_targets(scores):
    """Return pairs (target in words, its checks)."""
    return [
        (
            "macro-F1 at or above the best peer, except in semi-supervised",
            _against_best(scores, "macro_f1", lambda family: family != SEMI),
        ),
        (
            "macro-F1 strictly above the best peer in multi-positive, coarse and merged",
            _against_best(scores, "macro_f1", lambda family: family in (SEVERAL, *UNCLEAR), True),
        ),
        (
            "semi-supervised: macro-F1 at most 0.005 below the plain forest",
            _below_plain(scores, SEMI, 0.005),
        ),
        (
            "semi-supervised: looselabels on self-training is as good as self-training",
            _against(scores, RECIPE, SELF_TRAINING, "macro_f1", (SEMI,)),
        ),
        (
            "clean: macro-F1 at most 0.01 below the plain forest",
            _below_plain(scores, "clean", 0.01),
        ),
        (
            "multi-positive, 30 % labeled: 95 % of the macro-F1 with all classes known",
            _share_of_known(scores),
        ),
        (
            "wrong labels: AUPRC at or above cleanlab's best score",
            _against(scores, DEFAULT, CLEANLAB, "auprc", WRONG_LABELS),
        ),
        (
            "wrong labels: more labels are right after correction than with cleanlab",
            _against(scores, DEFAULT, CLEANLAB, "corrected", WRONG_LABELS, strictly=True),
        ),
        (
            "class prior: mean error at most 0.04, and below that of the best constant",
            _priors(scores),
        ),
        (
            "log-loss at or below the best peer",
            _against_best(scores, "log_loss", lambda _: True),
        ),
    ]


def _against_best(scores, score, is_included, strictly=False):
    compared = [
        (family, data, scores.compare(places, DEFAULT, score))
        for family, data, places in scores.by_family()
        if is_included(family)
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
        Check(data, where, c.outcome == WIN if strictly else c.outcome != LOSS, c.difference)
        for where, data, c in compared
        if c is not None
    ]


def by_problem(scores, families):
    """Yield data and the places of one problem on this data."""
    pairs = dict.fromkeys((p.data, p.problem) for p in scores.places if p.family in families)
    for data, problem in pairs:
        yield data, [p for p in scores.places if (p.data, p.problem) == (data, problem)]


def _below_plain(scores, family, max_loss):
    found = []
    for _, data, places in (one for one in scores.by_family() if one[0] == family):
        compared = scores.compare(places, DEFAULT, "macro_f1", PLAIN)
        if compared is not None:
            difference = compared.difference
            found.append(Check(data, family, difference >= -max_loss, difference))
    return found


def _share_of_known(scores):
    found = []
    for place in (p for p in scores.places if p.family == SEVERAL):
        counts = sorted(p.labels for p in scores.places if p[:2] == place[:2])
        compared = scores.compare([place], DEFAULT, "macro_f1", KNOWN)
        if compared is None or place.labels != counts[len(counts) // 2]:  # the middle is 30 %
            continue
        share = compared.ours.mean() / compared.theirs.mean()
        found.append(Check(place.data, place.problem, share >= 0.95, share))
    return found


def prior_places(scores, data=None):
    """Return the positive-unlabeled places with enough labels to estimate the class prior."""
    return [
        p
        for p in scores.places
        if p.family == PU
        and p.labels * n_positive(p.problem, CLASSES[p.data]) >= MIN_LABELS_FOR_PRIOR
        and data in (None, p.data)
    ]


def best_constant(scores, places):
    """Return the mean error of the best constant class prior, the median over the places."""
    shares = [scores.mean([p], AS_NEGATIVE, "class_prior").mean() for p in places]
    return float(np.mean(abs(np.array(shares) - np.median(shares))))


def _priors(scores):
    found = []
    for data in [*dict.fromkeys(p.data for p in prior_places(scores)), None]:  # None: all data
        places = prior_places(scores, data)
        error = scores.mean(places, DEFAULT, "class_prior_error")
        if len(error):
            holds = error.mean() <= min(0.04, best_constant(scores, places))
            found.append(Check(data or "all", PU, bool(holds), float(error.mean())))
    return found
