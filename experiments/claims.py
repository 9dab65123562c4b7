"""The claims of the paper and the targets of the library, tested on the result rows.

A claim consists of checks; a check compares two curves at each number of labels. All verdicts are
computed: a claim "holds" if all comparisons agree with it, "does not hold" if none does, and "holds
in part" otherwise.
"""

import itertools
from typing import Any, NamedTuple

from experiments.cells import OPEN, SPECIFIED
from experiments.curves import SHOWN_STRENGTH, Series, library, paper

HOLDS, IN_PART, FAILS = "holds", "holds in part", "does not hold"
# Required difference of F1 for "improves", and for "heavily", "significantly" and "much".
MARGIN, LARGE_MARGIN = 0.01, 0.05
MAX_FEW = {
    "fashion": 50,
    "kernel": 50,
    "news": 20,
}  # up to this number of labels per class is "few"
SEVERAL = {"fashion": "7-positive", "kernel": "7-positive", "news": "14-positive"}
WEIGHTS = ("flat", "costs")
PU = "positive-unlabeled"
NOISY = [(name, weights) for name in ("noisy-20", "noisy-50") for weights in WEIGHTS]


class Compared(NamedTuple):
    """The result of a check."""

    title: str
    rows: list  #: (labels per class, score of a, score of b, whether the comparison agrees)


class Check(NamedTuple):
    """The claim that low ≤ a − b ≤ high in one problem, at each number of labels."""

    problem: str
    a: Series
    b: Any  #: a Series, or target scores by number of labels per class
    low: float = -1.0
    high: float = 1.0
    max_labels: int | None = None  #: the claim is about at most this number of labels per class

    def compare(self, curves):
        """Return the comparison at each number of labels."""
        a = curves.means(self.problem, self.a)
        b = self.b if isinstance(self.b, dict) else curves.means(self.problem, self.b)
        shared = [k for k in a if k in b and (self.max_labels is None or k <= self.max_labels)]
        tol = 1e-9  # rounding
        outcome = {k: self.low - tol <= a[k] - b[k] <= self.high + tol for k in shared}
        title = f"{self.problem} {self.a.weights}".strip()
        if self.a.method == "W" and not isinstance(self.b, dict):
            title += f", W / {self.b.method}"
        return Compared(title, [(k, a[k], b[k], outcome[k]) for k in shared])


def verdict(outcomes):
    """Return the verdict of many comparisons; "not run yet" without any."""
    if not outcomes:
        return "not run yet"
    return HOLDS if all(outcomes) else IN_PART if any(outcomes) else FAILS


def as_score(value):
    """Return a score as text: .843."""
    return f"{value:.3f}".removeprefix("0")


# ----------------------------------------------------------------------------------- the paper


def paper_claims(data, strength):
    """Return (claim, rule, checks) for all claims of the paper about one grid."""
    several = SEVERAL[data]
    return [
        *_claims_for_correct_labels(several, MAX_FEW[data], strength),
        *_claims_for_noisy_labels(strength),
        *_conclusions(several, strength),
    ]


def _claims_for_correct_labels(several, few, strength):
    semi = "semi-supervised"
    all_problems = [(name, w) for name in (semi, several, PU) for w in WEIGHTS]
    inferred, base = _series("inferred", strength), _series("baseline")
    given, classifier = _series("W", strength), _series("classifier")
    return [
        (
            "Semi-supervised: inference does not improve the test score",
            f"inferred − baseline ≤ {MARGIN}, flat and costs",
            [Check(semi, inferred[w], base[w], high=MARGIN) for w in WEIGHTS],
        ),
        (
            f"{several}: costs are useful with very few labels",
            f"inferred, costs − flat ≥ {MARGIN} up to {few} labels",
            [Check(several, inferred["costs"], inferred["flat"], MARGIN, max_labels=few)],
        ),
        (
            f"{several}, costs: inference improves the score with few labels",
            f"inferred − baseline ≥ {MARGIN} up to {few} labels",
            [Check(several, inferred["costs"], base["costs"], MARGIN, max_labels=few)],
        ),
        (
            f"{several}, flat: the baseline is poor",
            f"baseline, flat − costs ≤ −{LARGE_MARGIN}",
            [Check(several, base["flat"], base["costs"], high=-LARGE_MARGIN)],
        ),
        (
            f"{several}, flat: inference improves it significantly",
            f"inferred − baseline ≥ {LARGE_MARGIN}",
            [Check(several, inferred["flat"], base["flat"], LARGE_MARGIN)],
        ),
        (
            f"{PU}, flat: inference heavily improves the score",
            f"inferred − baseline ≥ {LARGE_MARGIN}",
            [Check(PU, inferred["flat"], base["flat"], LARGE_MARGIN)],
        ),
        (
            f"{PU}, costs: the baseline is too high for inference to improve it",
            f"inferred − baseline ≤ {MARGIN}",
            [Check(PU, inferred["costs"], base["costs"], high=MARGIN)],
        ),
        (
            f"{PU}, costs: the baseline exceeds the inferred flat score",
            "baseline, costs − inferred, flat ≥ 0",
            [Check(PU, base["costs"], inferred["flat"], 0)],
        ),
        (
            "W, which uses the given labels, improves the training rows if labels are correct",
            f"W − classifier ≥ 0; {semi}, {several}, {PU}; flat and costs",
            [Check(name, given[w], classifier[w], 0) for name, w in all_problems],
        ),
    ]


def _claims_for_noisy_labels(strength):
    inferred, base = _series("inferred", strength), _series("baseline")
    given, classifier = _series("W", strength), _series("classifier")
    kept = _series("labels kept")
    return [
        (
            "Noise: inference equals the classifier on the test set",
            f"−{MARGIN} ≤ inferred − baseline ≤ {MARGIN}; noisy-20, -50; flat and costs",
            [Check(name, inferred[w], base[w], -MARGIN, MARGIN) for name, w in NOISY],
        ),
        (
            "Noise: keeping the labels is worse than the classifier",
            "labels kept − classifier ≤ 0; noisy-20, -50; flat and costs",
            [Check(name, kept[w], classifier[w], high=0) for name, w in NOISY],
        ),
        (
            "Noise: W is much better than keeping the labels",
            f"W − labels kept ≥ {LARGE_MARGIN}; noisy-20, -50; flat and costs",
            [Check(name, given[w], kept[w], LARGE_MARGIN) for name, w in NOISY],
        ),
    ]


def _conclusions(several, strength):
    negative = [(name, w) for name in (several, PU) for w in WEIGHTS]
    inferred, base = _series("inferred", strength), _series("baseline")
    given = _series("W", strength)
    return [
        (
            "Conclusion: W is an effective use of the labels on the training rows",
            "W − classifier, W − labels kept ≥ 0; noisy-20, -50; flat and costs",
            [
                Check(name, given[w], paper(w, other), 0)
                for name, w in NOISY
                for other in ("classifier", "labels kept")
            ],
        ),
        (
            "Conclusion: a significant improvement on problems with a negative class",
            f"inferred − baseline ≥ {LARGE_MARGIN}; {several}, {PU}; flat and costs",
            [Check(name, inferred[w], base[w], LARGE_MARGIN) for name, w in negative],
        ),
    ]


def _series(method, strength=SHOWN_STRENGTH):
    """Return the series of one method of the paper by label weights."""
    return {weights: paper(weights, method, strength) for weights in WEIGHTS}


def rising(curves, strength):
    """Compare W in noisy problems with W at the next smaller number of labels."""
    found = []
    for problem, weights in NOISY:
        means = list(curves.means(problem, paper(weights, "W", strength)).items())
        pairs = itertools.pairwise(means)
        steps = [(k, new, old, new >= old) for (_, old), (k, new) in pairs]
        found.append(Compared(f"{problem} {weights}", steps))
    return found


def lower(curves, low, high, strength):
    """Compare two grids at the label counts of both; grid `low` should have the lower scores.

    This uses the three problems with test scores in the figures; 7-positive is compared with
    14-positive.
    """
    found = []
    for problem in ("semi-supervised", "several", PU):
        names = [{"several": SEVERAL[grid]}.get(problem, problem) for grid in (low, high)]
        for weights in WEIGHTS:
            series = paper(weights, "inferred", strength)
            a, b = (curves[g].means(n, series) for g, n in zip((low, high), names, strict=True))
            rows = [(k, a[k], b[k], a[k] < b[k]) for k in a if k in b]
            found.append(Compared(f"{names[0]} {weights}", rows))
    return found


def less_biased(curves):
    """Compare how far scores on training rows are from scores on test rows.

    The first number is for leave-one-out densities, the second one for in-sample densities.
    """
    found = []
    for problem in ("semi-supervised", SEVERAL["kernel"], PU, "noisy-20", "noisy-50"):
        for weights in WEIGHTS:
            names = ("classifier", "in-sample", "baseline")
            scores = [curves.means(problem, paper(weights, name)) for name in names]
            out, within, test = scores
            gaps = [(k, abs(out[k] - test[k]), abs(within[k] - test[k])) for k in out]
            rows = [(k, a, b, a <= b) for k, a, b in gaps]
            found.append(Compared(f"{problem} {weights}", rows))
    return found


# The columns of simulated.csv that the claims use.
SIMULATED = ("draw", "unlabeled_area", "negative_area", "error", "error_if_labels_right")


def simulated_claims(rows):
    """Return (claim, rule, comparisons) for the simulated data."""

    def compared(name, other, outcome):
        pairs = [(int(row["draw"]), float(row[name]), float(row[other])) for row in rows]
        return [Compared("", [(k, a, b, outcome(a, b)) for k, a, b in pairs])]

    return [
        (
            "After inference, the positive classes occupy some of the unlabeled area",
            "area of the negative class after inference < unlabeled area before",
            compared("negative_area", "unlabeled_area", lambda a, b: a < b),
        ),
        (
            "The wrong labels still cause errors",
            "error of p(class \\| x) > error with all labels correct",
            compared("error", "error_if_labels_right", lambda a, b: a > b),
        ),
    ]


# ----------------------------------------------------------------------------------- targets

TARGETS = {
    "7-positive": {20: 0.68, 200: 0.77, 2000: 0.83},
    PU: {20: 0.68, 200: 0.74, 2000: 0.80},
}
STRETCH_TARGETS = {20: 0.70, 200: 0.78, 2000: 0.84}
W_TARGETS = {"noisy-20": {2000: 0.855}, "noisy-50": {2000: 0.78}}
# How far T estimated may be below T specified, inference below the baseline, and W below both the
# classifier and the labels.
MAX_LOSS, MAX_BELOW_BASELINE, MAX_BELOW_LABELS = 0.05, 0.005, 0.003
IN_WORDS = {SPECIFIED: "T specified", OPEN: "T estimated"}


def targets():
    """Return (problem, rule, checks) for all targets of the library on Fashion-MNIST."""
    found = []
    score = library("inferred")
    goals = [(*target, "score") for target in TARGETS.items()]
    for problem, bars, name in [*goals, ("7-positive", STRETCH_TARGETS, "stretch target: score")]:
        scores, counts = "/".join(map(as_score, bars.values())), "/".join(map(str, bars))
        rule = f"{name} ≥ {scores} at {counts} labels"
        found.append((f"{problem}, T specified", rule, [Check(problem, score, bars, 0)]))
    for problem in TARGETS:
        rule = f"T estimated − T specified ≥ −{MAX_LOSS} at all label counts"
        check = Check(problem, library("inferred", OPEN), score, -MAX_LOSS)
        found.append((f"{problem}, T estimated", rule, [check]))
    for setting, words in IN_WORDS.items():
        rule = f"inferred − baseline ≥ −{MAX_BELOW_BASELINE} at all label counts"
        inferred, baseline = library("inferred", setting), library("baseline")
        check = Check("semi-supervised", inferred, baseline, -MAX_BELOW_BASELINE)
        found.append((f"semi-supervised, {words}", rule, [check]))
        for problem, bars in W_TARGETS.items():
            given = library("W", setting)
            rule = f"W ≥ {as_score(bars[2000])} on the training rows at 2000 labels"
            found.append((f"{problem}, {words}", rule, [Check(problem, given, bars, 0)]))
            rule = f"W − classifier, W − labels kept ≥ −{MAX_BELOW_LABELS} at all label counts"
            others = [library("classifier"), library("labels kept")]
            checks = [Check(problem, given, other, -MAX_BELOW_LABELS) for other in others]
            found.append((f"{problem}, {words}", rule, checks))
    return found


class Loss(NamedTuple):
    """A case in which the library scores far below an alternative."""

    problem: str
    setting: str
    n_labels: int
    scores: list[float]  #: by seed
    alternative: Series
    best: float  #: mean score of the best alternative


def losses(data, curves):
    """Return where the library is below the best alternative by LARGE_MARGIN, on the test rows.

    Alternatives are the forest or kernels of the library without inference, and the methods of the
    paper.
    """
    names = ("baseline", "h", "inferred")
    series = [library("baseline"), *(paper(w, name) for w in WEIGHTS for name in names)]
    found = []
    for problem in ("semi-supervised", SEVERAL[data], PU, "noisy-20", "noisy-50"):
        means = {one: curves.means(problem, one) for one in series}
        for setting in (SPECIFIED, OPEN):
            for count, scores in curves.seeds(problem, library("inferred", setting)).items():
                others = {one: mean[count] for one, mean in means.items() if count in mean}
                best = max(others, key=others.__getitem__)
                if others[best] - sum(scores) / len(scores) >= LARGE_MARGIN:
                    found.append(Loss(problem, setting, count, scores, best, others[best]))
    return found
