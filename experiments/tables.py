"""The claims as tables in Markdown, for README.md."""

from pathlib import Path

from experiments.claims import (
    NOT_RUN,
    PU,
    SEVERAL,
    WEIGHTS,
    as_score,
    goals,
    lower_on_news,
    paper_claims,
    rising,
    verdict,
)
from experiments.curves import Curves, paper
from experiments.results import read_rows

FILES = {"fashion": "fashion-forest.csv", "news": "news-forest.csv"}
SHOWN_COUNTS = {"fashion": (20, 200, 2000), "news": (20, 100, 300)}


def paper_table(curves, strengths=("inf", "1000")):
    """Return the lines of the table of what the paper says."""
    lines = [
        "| data | the paper says | it holds where | our numbers, T kept | T kept | strength 1000 |",
        "|---|---|---|---|---|---|",
    ]
    for data, found in curves.items():
        for words, rule, compared in _compared(data, found, strengths):
            cells = [words, rule, shown(data, compared[0]), *map(counted, compared)]
            lines.append(f"| {data}, {_seeds(found)} | {' | '.join(cells)} |")
    if len(curves) == 2:
        rule = "inferred, News − Fashion < 0 at 20 and 50 labels; the three test panels"
        lower = [lower_on_news(curves, strength) for strength in strengths]
        cells = ["20 Newsgroups: generally lower", rule, shown("", lower[0]), *map(counted, lower)]
        lines += [f"| both | {' | '.join(cells)} |", _similar(curves, strengths)]
    return lines + [f"| | {words} | | | not run yet | not run yet |" for words in NOT_RUN]


def _compared(data, curves, strengths):
    """Return (words, rule, what came out by each strength) of each claim."""
    by_strength = [paper_claims(data, strength) for strength in strengths]
    found = [
        (*same[0][:2], [[check.compare(curves) for check in checks] for _, _, checks in same])
        for same in zip(*by_strength, strict=True)
    ]
    rule = "W − W at fewer labels ≥ 0; noisy-20, -50; flat and costs"
    steps = [rising(curves, strength) for strength in strengths]
    return [*found, ("Noise: W increases with more labels", rule, steps)]


def _similar(curves, strengths):
    """Return the line that compares the verdicts of the two data sets."""
    verdicts = [
        [[verdict(_outcomes(one)) for one in c] for _, _, c in _compared(data, found, strengths)]
        for data, found in curves.items()
    ]
    cells = []
    for k in range(len(strengths)):
        same = [one[k] == other[k] for one, other in zip(*verdicts, strict=True)]
        cells.append(f"{verdict(same)} ({sum(same)} of {len(same)})")
    words = "20 Newsgroups: similar results | a claim's verdict is that of Fashion-MNIST"
    return f"| both | {words} | | {' | '.join(cells)} |"


def _seeds(curves):
    """Return how many seeds the paper's method was run with, in words."""
    scores = curves.seeds("semi-supervised", paper("flat", "baseline")).values()
    least = min(map(len, scores), default=0)
    return f"{least} seed{'' if least == 1 else 's'}"


def _outcomes(compared):
    return [row[3] for found in compared for row in found.rows]


def counted(compared):
    """Return the verdict, and in how many comparisons it came out as claimed."""
    outcomes = _outcomes(compared)
    return f"{verdict(outcomes)} ({sum(outcomes)} of {len(outcomes)})" if outcomes else verdict([])


def shown(data, compared):
    """Return "labels: a / b" of each check, at three numbers of labels where there are more."""
    parts = []
    for words, rows in compared:
        chosen = [row for row in rows if row[0] in SHOWN_COUNTS.get(data, ())] or rows
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
                best, total = best + (averages[:1] == [max(averages, default=0)]), total + 1
                cells = [as_score(sum(m) / len(m)) if m else "not run" for m in means]
                lines.append(f"| {data} | {problem} | {weights} | {' | '.join(cells)} |")
    return [*lines, "", f"T kept is the best, or as good as the best, in {best} of {total} lines."]


def report(folder) -> str:
    """Return the three tables in Markdown."""
    paths = {data: Path(folder) / file for data, file in FILES.items()}
    rows = {data: read_rows(path) for data, path in paths.items() if path.exists()}
    if not rows:
        raise ValueError(f"{folder} has no results; `python -m experiments run` makes them.")
    curves = {data: Curves(found) for data, found in rows.items()}
    first = {data: Curves(r for r in found if r["seed"] == "0") for data, found in rows.items()}
    goal_lines = goal_table(curves["fashion"]) if "fashion" in curves else ["not run yet"]
    parts = [
        "### What the paper says",
        "Means over the seeds that were run; a / b are the two sides of the rule.",
        "\n".join(paper_table(curves)),
        "### What was to be reached",
        "\n".join(goal_lines),
        "### The paper's strengths",
        "Mean test score over the label counts, in seed 0: the one that all strengths have.",
        "\n".join(strength_table(first)),
    ]
    return "\n\n".join(parts)
