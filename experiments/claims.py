"""What the paper says in words, and what was to be reached, held against the rows.

A claim is one or more checks; a check compares two curves at every number of labels. No verdict
is written by hand: "holds" where all comparisons come out as claimed, "does not hold" where none
does, else "holds in part".
"""

import itertools
from typing import Any, NamedTuple

from experiments.curves import Series, library, paper

HOLDS, IN_PART, FAILS = "holds", "holds in part", "does not hold"
BETTER, MUCH = 0.01, 0.05  # what "improves" and what "heavily", "significantly", "much" ask for
FEW = {"fashion": 50, "kernel": 50, "news": 20}  # "few labels" are at most so many a class
SEVERAL = {"fashion": "7-positive", "kernel": "7-positive", "news": "14-positive"}
WEIGHTS = ("flat", "costs")
PU = "positive-unlabeled"


class Compared(NamedTuple):
    """What came out of a check."""

    words: str
    rows: list  #: of (labels a class, score of a, score of b, does it come out)


class Check(NamedTuple):
    """`a` against `b` in one problem: at each number of labels, low ≤ a − b ≤ high."""

    problem: str
    a: Series
    b: Any  #: a Series, or labels a class → the score to reach
    low: float = -1.0
    high: float = 1.0
    most: int | None = None  #: the most labels a class that the claim speaks of

    def compare(self, curves):
        """Return the comparison at each number of labels."""
        a = curves.means(self.problem, self.a)
        b = self.b if isinstance(self.b, dict) else curves.means(self.problem, self.b)
        shared = [k for k in a if k in b and (self.most is None or k <= self.most)]
        slack = 1e-9  # for rounding
        outcome = {k: self.low - slack <= a[k] - b[k] <= self.high + slack for k in shared}
        words = f"{self.problem} {self.a.weights}".strip()
        if self.a.method == "W" and not isinstance(self.b, dict):
            words += f", W / {self.b.method}"
        return Compared(words, [(k, a[k], b[k], outcome[k]) for k in shared])


def verdict(outcomes):
    """Return the verdict of many comparisons; "not run" where there are none."""
    if not outcomes:
        return "not run yet"
    return HOLDS if all(outcomes) else IN_PART if any(outcomes) else FAILS


def as_score(value):
    """Return a score as text: .843."""
    return f"{value:.3f}".removeprefix("0")


# ----------------------------------------------------------------------------------- the paper


def paper_claims(data, strength):
    """Return (words, rule, checks) of what the paper says of one grid."""

    def inferred(weights):
        return paper(weights, "inferred", strength)

    def given(weights):
        return paper(weights, "W", strength)

    def base(weights):
        return paper(weights, "baseline")

    several, few = SEVERAL[data], FEW[data]
    noisy = [(problem, weights) for problem in ("noisy-20", "noisy-50") for weights in WEIGHTS]
    semi = "semi-supervised"
    clear = [(name, weights) for name in (semi, several, PU) for weights in WEIGHTS]
    negative = [(name, weights) for name in (several, PU) for weights in WEIGHTS]
    return [
        (
            "Semi-supervised: inference does not improve the test score",
            f"inferred − baseline ≤ {BETTER}, flat and costs",
            [Check(semi, inferred(w), base(w), high=BETTER) for w in WEIGHTS],
        ),
        (
            f"{several}: costs are useful when very few labels are there",
            f"inferred, costs − flat ≥ {BETTER} up to {few} labels",
            [Check(several, inferred("costs"), inferred("flat"), BETTER, most=few)],
        ),
        (
            f"{several}, costs: inference improves when there is little data",
            f"inferred − baseline ≥ {BETTER} up to {few} labels",
            [Check(several, inferred("costs"), base("costs"), BETTER, most=few)],
        ),
        (
            f"{several}, flat: the baseline is quite poor",
            f"baseline, flat − costs ≤ −{MUCH}",
            [Check(several, base("flat"), base("costs"), high=-MUCH)],
        ),
        (
            f"{several}, flat: inference boosts it significantly",
            f"inferred − baseline ≥ {MUCH}",
            [Check(several, inferred("flat"), base("flat"), MUCH)],
        ),
        (
            f"{PU}, flat: inference heavily improves",
            f"inferred − baseline ≥ {MUCH}",
            [Check(PU, inferred("flat"), base("flat"), MUCH)],
        ),
        (
            f"{PU}, costs: so high that inference cannot improve it: it does not",
            f"inferred − baseline ≤ {BETTER}",
            [Check(PU, inferred("costs"), base("costs"), high=BETTER)],
        ),
        (
            f"{PU}, costs: so high …: the baseline is above flat after inference",
            "baseline, costs − inferred, flat ≥ 0",
            [Check(PU, base("costs"), inferred("flat"), 0)],
        ),
        (
            "W, with the labels given, improves on the training rows where labels are right",
            f"W − classifier ≥ 0; {semi}, {several}, {PU}; flat and costs",
            [Check(name, given(w), paper(w, "classifier"), 0) for name, w in clear],
        ),
        (
            "Noise: inference is only as good as the classifier on the test set",
            f"−{BETTER} ≤ inferred − baseline ≤ {BETTER}; noisy-20, -50; flat and costs",
            [Check(name, inferred(w), base(w), -BETTER, BETTER) for name, w in noisy],
        ),
        (
            "Noise: keeping the labels falls below what the classifier has learned",
            "labels kept − classifier ≤ 0; noisy-20, -50; flat and costs",
            [
                Check(name, paper(w, "labels kept"), paper(w, "classifier"), high=0)
                for name, w in noisy
            ],
        ),
        (
            "Noise: W is a much better way to use the labels than to keep them",
            f"W − labels kept ≥ {MUCH}; noisy-20, -50; flat and costs",
            [Check(name, given(w), paper(w, "labels kept"), MUCH) for name, w in noisy],
        ),
        (
            "Conclusion: W is an effective way to use the labels given on the training rows",
            "W − classifier, W − labels kept ≥ 0; noisy-20, -50; flat and costs",
            [
                Check(name, given(w), paper(w, other), 0)
                for name, w in noisy
                for other in ("classifier", "labels kept")
            ],
        ),
        (
            "Conclusion: a significant increase on problems with a negative class",
            f"inferred − baseline ≥ {MUCH}; {several}, {PU}; flat and costs",
            [Check(name, inferred(w), base(w), MUCH) for name, w in negative],
        ),
    ]


def rising(curves, strength):
    """Return the comparisons of W in noise with W at the number of labels before."""
    found = []
    for problem in ("noisy-20", "noisy-50"):
        for weights in WEIGHTS:
            means = list(curves.means(problem, paper(weights, "W", strength)).items())
            pairs = itertools.pairwise(means)
            steps = [(k, new, old, new >= old) for (_, old), (k, new) in pairs]
            found.append(Compared(f"{problem} {weights}", steps))
    return found


def lower(curves, low, high, strength):
    """Return the comparisons of two grids, `low` to be the lower one, at the label counts of both.

    The three test panels; 7-positive stands beside 14-positive.
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
    """Return how far the classifier's scores on training rows are from those on test rows.

    With each row left out of its own density, and with none left out.
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


# The columns that are read of the simulated data.
SIMULATED = ("draw", "unlabeled_area", "negative_area", "error", "error_if_labels_right")


def simulated_claims(rows):
    """Return (words, rule, comparisons) of what the paper says of the simulated data."""

    def compared(name, other, outcome):
        pairs = [(int(row["draw"]), float(row[name]), float(row[other])) for row in rows]
        return [Compared("", [(k, a, b, outcome(a, b)) for k, a, b in pairs])]

    return [
        (
            "After inference the classes take up some of the unlabeled space",
            "area of the negative class after < area of unlabeled before",
            compared("negative_area", "unlabeled_area", lambda a, b: a < b),
        ),
        (
            "The noisy labels still cause trouble",
            "error of p(class \\| x) > the error if the three labels were right",
            compared("error", "error_if_labels_right", lambda a, b: a > b),
        ),
    ]


# ----------------------------------------------------------------------------------- to reach

BARS = {
    "7-positive": {20: 0.68, 200: 0.77, 2000: 0.83},
    PU: {20: 0.68, 200: 0.74, 2000: 0.80},
}
AIM = {20: 0.70, 200: 0.78, 2000: 0.84}
W_BARS = {"noisy-20": {2000: 0.855}, "noisy-50": {2000: 0.78}}
BELOW_BASELINE, BELOW_W, LOSS = 0.005, 0.003, 0.05


def goals():
    """Return (words, rule, checks) of what the library was to reach on Fashion-MNIST."""
    found = []
    for problem, bars in BARS.items():
        words = "/".join(as_score(bar) for bar in bars.values())
        rule = f"score ≥ {words} at {'/'.join(str(k) for k in bars)} labels"
        found.append((f"{problem}, told", rule, [Check(problem, library("inferred"), bars, 0)]))
    words = "the aim: score ≥ .700/.780/.840 at 20/200/2000 labels"
    found.append(("7-positive, told", words, [Check("7-positive", library("inferred"), AIM, 0)]))
    for problem in BARS:
        told, nothing = library("inferred"), library("inferred", "nothing")
        rule = f"told nothing − told ≥ −{LOSS} at all label counts"
        found.append((f"{problem}, told nothing", rule, [Check(problem, nothing, told, -LOSS)]))
    for how in ("told", "nothing"):
        named = how if how == "told" else "told nothing"
        rule = f"inferred − baseline ≥ −{BELOW_BASELINE} at all label counts"
        semi = Check(
            "semi-supervised", library("inferred", how), library("baseline"), -BELOW_BASELINE
        )
        found.append((f"semi-supervised, {named}", rule, [semi]))
        for problem, bars in W_BARS.items():
            given = library("W", how)
            rule = f"W ≥ {as_score(bars[2000])} on the training rows at 2000 labels"
            found.append((f"{problem}, {named}", rule, [Check(problem, given, bars, 0)]))
            rule = f"W − classifier, W − labels kept ≥ −{BELOW_W} at all label counts"
            others = [library("classifier"), library("labels kept")]
            checks = [Check(problem, given, other, -BELOW_W) for other in others]
            found.append((f"{problem}, {named}", rule, checks))
    return found
