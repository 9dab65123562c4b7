"""The claims as tables in Markdown, for README.md."""

from pathlib import Path

from experiments.claims import (
    PU,
    SEVERAL,
    SIMULATED,
    WEIGHTS,
    as_score,
    goals,
    less_biased,
    lower,
    paper_claims,
    rising,
    simulated_claims,
    verdict,
)
from experiments.curves import Curves, paper
from experiments.results import read_rows, read_table

GRID_FILES = {"fashion": "fashion-forest", "kernel": "fashion-kernel", "news": "news-forest"}
SHOWN_COUNTS = {
    "fashion": (20, 200, 2000),
    "kernel": (20, 200, 2000),
    "kernel, fashion": (20, 200, 2000),
    "news": (20, 100, 300),
    "simulated": (0, 1, 2),
}
STRENGTHS = ("inf", "1000")
BESIDE_FASHION = {
    "kernel": (
        "Kernel densities",
        "lower performance in general",
        "inferred, kernel − forest < 0; the three test panels; flat and costs",
    ),
    "news": (
        "20 Newsgroups",
        "generally lower",
        "inferred, News − Fashion < 0 at 20 and 50 labels; the three test panels",
    ),
}


def paper_table(curves, simulated):
    """Return the lines of the table of what the paper says."""
    lines = [
        "| data | the paper says | it holds where | our numbers, T kept | T kept | strength 1000 |",
        "|---|---|---|---|---|---|",
    ]
    for grid, found in curves.items():
        for words, rule, compared in _compared(grid, found):
            lines.append(_line(f"{grid}, {_seeds(found)}", words, rule, grid, compared))
    for grid, (name, words, rule) in BESIDE_FASHION.items():
        compared = [lower(curves, grid, "fashion", strength) for strength in STRENGTHS]
        where = f"{grid}, fashion"
        lines.append(_line(where, f"{name}: {words}", rule, where, compared))
        lines.append(_similar(curves, grid, name))
    rule = "classifier, \\|train − test\\| left out ≤ in-sample; all problems; flat and costs"
    words = "Leaving out the row itself makes densities less biased towards the training rows"
    lines.append(_line("kernel", words, rule, "kernel", [less_biased(curves["kernel"])]))
    for words, rule, found in simulated_claims(simulated):
        where = f"simulated, {len(simulated)} draws"
        lines.append(_line(where, words, rule, "simulated", [found]))
    return lines


def _line(where, words, rule, shown_at, compared):
    """Return a line of the table; what has no T has one verdict."""
    verdicts = [*map(counted, compared), ""][: len(STRENGTHS)]
    return f"| {' | '.join([where, words, rule, shown(shown_at, compared[0]), *verdicts])} |"


def _compared(grid, curves):
    """Return (words, rule, what came out by each strength) of each claim."""
    by_strength = [paper_claims(grid, strength) for strength in STRENGTHS]
    found = [
        (*same[0][:2], [[check.compare(curves) for check in checks] for _, _, checks in same])
        for same in zip(*by_strength, strict=True)
    ]
    rule = "W − W at fewer labels ≥ 0; noisy-20, -50; flat and costs"
    steps = [rising(curves, strength) for strength in STRENGTHS]
    return [*found, ("Noise: W increases with more labels", rule, steps)]


def _similar(curves, grid, name):
    """Return the line that compares the verdicts of a grid with those of forests on Fashion."""
    verdicts = [
        [[verdict(_outcomes(one)) for one in found] for _, _, found in _compared(g, curves[g])]
        for g in (grid, "fashion")
    ]
    cells = []
    for k in range(len(STRENGTHS)):
        pairs = [(one[k], other[k]) for one, other in zip(*verdicts, strict=True)]
        same = [one == other for one, other in pairs if verdict([]) not in (one, other)]
        cells.append(_counted(same))
    words = f"{name}: similar results | a claim's verdict is that of forests on Fashion-MNIST"
    return f"| {grid}, fashion | {words} | | {' | '.join(cells)} |"


def _seeds(curves):
    """Return how many seeds the paper's method was run with, in words."""
    scores = curves.seeds("semi-supervised", paper("flat", "baseline")).values()
    least = min(map(len, scores), default=0)
    return {0: "not run", 1: "1 seed"}.get(least, f"{least} seeds")


def _outcomes(compared):
    return [row[3] for found in compared for row in found.rows]


def counted(compared):
    """Return the verdict, and in how many comparisons it came out as claimed."""
    return _counted(_outcomes(compared))


def _counted(outcomes):
    return f"{verdict(outcomes)} ({sum(outcomes)} of {len(outcomes)})" if outcomes else verdict([])


def shown(where, compared):
    """Return "labels: a / b" of each check, at three numbers of labels where there are more."""
    parts = []
    for words, rows in filter(lambda found: found.rows, compared):
        chosen = [row for row in rows if row[0] in SHOWN_COUNTS.get(where, ())] or rows
        scores = ", ".join(f"{k}: {as_score(a)} / {as_score(b)}" for k, a, b, _ in chosen)
        parts.append(f"{words} {scores}" if len(compared) > 1 else scores)
    return "<br>".join(parts)


def goal_table(curves):
    """Return the lines of the table of what was to be reached."""
    lines = [
        "| Fashion-MNIST | it holds where | our numbers | verdict | worst | short at |",
        "|---|---|---|---|---|---|",
    ]
    for words, rule, checks in goals():
        compared = [check.compare(curves) for check in checks]
        rows = [row for found in compared for row in found.rows]
        worst = min(rows, key=lambda row: row[1] - row[2], default=None)
        at = f"{worst[1] - worst[2]:+.4f} at {worst[0]}" if worst else ""
        short = ", ".join(str(k) for k in sorted({row[0] for row in rows if not row[3]}))
        cells = [words, rule, shown("fashion", compared), counted(compared), at, short]
        lines.append(f"| {' | '.join(cells)} |")
    return lines


# ----------------------------------------------------------------------------------- strengths


def strength_table(curves):
    """Return the lines of the table of the paper's strengths: mean test scores over its cells."""
    best = total = 0
    lines = ["| data | problem | weights | T kept | 1000 | 1 |", "|---|---|---|---|---|---|"]
    for data, found in curves.items():
        for problem in ("semi-supervised", SEVERAL[data], PU, "noisy-20", "noisy-50"):
            for weights in WEIGHTS:
                series = [paper(weights, "inferred", name) for name in ("inf", "1000", "1")]
                means = [list(found.means(problem, one).values()) for one in series]
                averages = [round(sum(m) / len(m), 3) for m in means if m]
                if not averages:
                    continue
                best, total = best + (averages[0] == max(averages)), total + 1
                cells = [as_score(sum(m) / len(m)) if m else "not run" for m in means]
                lines.append(f"| {data} | {problem} | {weights} | {' | '.join(cells)} |")
    return [*lines, "", f"T kept is the best, or as good as the best, in {best} of {total} lines."]


def report(folder) -> str:
    """Return the three tables in Markdown."""
    paths = {grid: Path(folder) / f"{name}.csv" for grid, name in GRID_FILES.items()}
    rows = {grid: read_rows(path) if path.exists() else [] for grid, path in paths.items()}
    if not any(rows.values()):
        raise ValueError(f"{folder} has no results; `python -m experiments run` makes them.")
    curves = {grid: Curves(found) for grid, found in rows.items()}
    first = {grid: Curves(r for r in found if r["seed"] == "0") for grid, found in rows.items()}
    simulated = read_table(Path(folder) / "simulated.csv", SIMULATED)
    parts = [
        "### What the paper says",
        "Means over the seeds that were run; a / b are the two sides of the rule.",
        "\n".join(paper_table(curves, simulated)),
        "### What was to be reached",
        "\n".join(goal_table(curves["fashion"])),
        "### The paper's strengths",
        "Mean test score over the label counts, in seed 0: the one that all strengths have.",
        "\n".join(strength_table(first)),
    ]
    return "\n\n".join(parts)
