"""Markdown tables for README.md: runs, claims, targets, losses and strengths."""

from collections import Counter
from pathlib import Path

from experiments.claims import (
    IN_WORDS,
    LARGE_MARGIN,
    PU,
    SEVERAL,
    SIMULATED,
    WEIGHTS,
    as_score,
    less_biased,
    losses,
    lower,
    paper_claims,
    rising,
    simulated_claims,
    targets,
    verdict,
)
from experiments.curves import Curves, paper
from experiments.results import cell_of, read_rows, read_table

GRID_FILES = {"fashion": "fashion-forest", "kernel": "fashion-kernel", "news": "news-forest"}
SHOWN_COUNTS = {
    "fashion": (20, 200, 2000),
    "kernel": (20, 200, 2000),
    "kernel, fashion": (20, 200, 2000),
    "news": (20, 100, 300),
    "simulated": (0, 1, 2),
}
STRENGTHS = ("inf", "1000")
COMPARED_WITH_FASHION = {
    "kernel": (
        "Kernel densities",
        "lower scores in general",
        "inferred, kernel − forest < 0; test rows; flat and costs",
    ),
    "news": (
        "20 Newsgroups",
        "lower scores in general",
        "inferred, News − Fashion < 0 at 20 and 50 labels; test rows",
    ),
}


def paper_table(curves, simulated):
    """Return the lines of the table of claims."""
    lines = [
        "| data | the paper says | rule | our numbers, T fixed | T fixed | strength 1000 |",
        "|---|---|---|---|---|---|",
    ]
    for grid, found in curves.items():
        for claim, rule, compared in _compared(grid, found):
            lines.append(_line(f"{grid}, {_seeds(found)}", claim, rule, grid, compared))
    for grid, (name, claim, rule) in COMPARED_WITH_FASHION.items():
        compared = [lower(curves, grid, "fashion", strength) for strength in STRENGTHS]
        where = f"{grid}, fashion"
        lines.append(_line(where, f"{name}: {claim}", rule, where, compared))
        lines.append(_similar(curves, grid, name))
    rule = "\\|train − test\\|, leave-one-out ≤ in-sample; all problems; flat and costs"
    claim = "Leaving the row itself out reduces the bias towards the training rows"
    lines.append(_line("kernel", claim, rule, "kernel", [less_biased(curves["kernel"])]))
    for claim, rule, found in simulated_claims(simulated):
        where = f"simulated, {len(simulated)} draws"
        lines.append(_line(where, claim, rule, "simulated", [found]))
    return lines


def _line(where, claim, rule, shown_at, compared):
    """Return a line of the table; claims that do not depend on T have one verdict."""
    verdicts = [*map(counted, compared), ""][: len(STRENGTHS)]
    return f"| {' | '.join([where, claim, rule, shown(shown_at, compared[0]), *verdicts])} |"


def _compared(grid, curves):
    """Return (claim, rule, comparisons by strength) for each claim."""
    by_strength = [paper_claims(grid, strength) for strength in STRENGTHS]
    found = [
        (*same[0][:2], [[check.compare(curves) for check in checks] for _, _, checks in same])
        for same in zip(*by_strength, strict=True)
    ]
    rule = "W − W with fewer labels ≥ 0; noisy-20, -50; flat and costs"
    steps = [rising(curves, strength) for strength in STRENGTHS]
    return [*found, ("Noise: W improves with more labels", rule, steps)]


def _similar(curves, grid, name):
    """Return the line that compares the verdicts of a grid with those for fashion-forest."""
    verdicts = [
        [[verdict(_outcomes(one)) for one in found] for _, _, found in _compared(g, curves[g])]
        for g in (grid, "fashion")
    ]
    cells = []
    for k in range(len(STRENGTHS)):
        pairs = [(one[k], other[k]) for one, other in zip(*verdicts, strict=True)]
        same = [one == other for one, other in pairs if verdict([]) not in (one, other)]
        cells.append(_counted(same))
    claim = f"{name}: similar results | verdicts equal those for forests on Fashion-MNIST"
    return f"| {grid}, fashion | {claim} | | {' | '.join(cells)} |"


def _seeds(curves):
    """Return the number of seeds of the paper's method, in words."""
    scores = curves.seeds("semi-supervised", paper("flat", "baseline")).values()
    least = min(map(len, scores), default=0)
    return {0: "not run", 1: "1 seed"}.get(least, f"{least} seeds")


def _outcomes(compared):
    return [row[3] for found in compared for row in found.rows]


def counted(compared):
    """Return the verdict and the number of comparisons that agree with the claim."""
    return _counted(_outcomes(compared))


def _counted(outcomes):
    return f"{verdict(outcomes)} ({sum(outcomes)} of {len(outcomes)})" if outcomes else verdict([])


def shown(where, compared):
    """Return "labels: a / b" for each check, at up to three numbers of labels."""
    parts = []
    for title, rows in filter(lambda found: found.rows, compared):
        chosen = [row for row in rows if row[0] in SHOWN_COUNTS.get(where, ())] or rows
        scores = ", ".join(f"{k}: {as_score(a)} / {as_score(b)}" for k, a, b, _ in chosen)
        parts.append(f"{title} {scores}" if len(compared) > 1 else scores)
    return "<br>".join(parts)


# ----------------------------------------------------------------------------------- the library


def target_table(curves):
    """Return the lines of the table of targets."""
    lines = [
        "| Fashion-MNIST | target | our numbers | verdict | smallest margin | missed at |",
        "|---|---|---|---|---|---|",
    ]
    for problem, rule, checks in targets():
        compared = [check.compare(curves) for check in checks]
        rows = [
            (a - b, count, agrees, check)
            for check, found in zip(checks, compared, strict=True)
            for count, a, b, agrees in found.rows
        ]
        at = ""
        if rows:
            margin, count, _, check = min(rows, key=lambda row: row[0])
            seeds = _by_seed(curves.seeds(check.problem, check.a)[count])
            at = f"{margin:+.4f} at {count} (seeds {seeds})"
        missed = ", ".join(str(k) for k in sorted({row[1] for row in rows if not row[2]}))
        cells = [problem, rule, shown("fashion", compared), counted(compared), at, missed]
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def loss_table(curves):
    """Return the lines of the table of cases in which the library scores below an alternative."""
    lines = [
        "| data | problem | labels per class | library | its score (seeds) | best alternative |",
        "|---|---|---|---|---|---|",
    ]
    for data, of_grid in curves.items():
        for loss in losses(data, of_grid):
            mean = as_score(sum(loss.scores) / len(loss.scores))
            score = f"{mean} ({_by_seed(loss.scores)})"
            other = f"{loss.alternative}: {as_score(loss.best)}"
            cells = [data, loss.problem, str(loss.n_labels), IN_WORDS[loss.setting], score, other]
            lines.append(f"| {' | '.join(cells)} |")
    return lines


def _by_seed(scores):
    return ", ".join(map(as_score, scores))


# ----------------------------------------------------------------------------------- strengths


def strength_table(curves):
    """Return the lines of the table of strengths: mean test scores over the label counts."""
    best = total = 0
    lines = ["| data | problem | weights | T fixed | 1000 | 1 |", "|---|---|---|---|---|---|"]
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
    return [
        *lines,
        "",
        f"T fixed is the best choice, or ties with the best, in {best} of {total} lines.",
    ]


# ----------------------------------------------------------------------------------- all tables


def run_table(rows):
    """Return the lines of the table of what was run, and at which commits."""
    lines = [
        "| grid | setting | problems | label counts | seeds | cells | cells by commit |",
        "|---|---|---|---|---|---|---|",
    ]
    for data, of_grid in rows.items():
        by_setting: dict = {}
        for row in of_grid:
            cell = cell_of(row)
            by_setting.setdefault(cell.setting, {})[cell] = row["commit"]
        for setting, commits in sorted(by_setting.items()):
            sizes = [len({cell[k] for cell in commits}) for k in range(3)]
            counts = Counter(commits.values()).most_common()
            made = ", ".join(f"{commit}: {count}" for commit, count in counts)
            cells = [GRID_FILES[data], setting, *map(str, sizes), str(len(commits)), made]
            lines.append(f"| {' | '.join(cells)} |")
    return lines


def report(folder) -> str:
    """Return all tables in Markdown."""
    paths = {grid: Path(folder) / f"{name}.csv" for grid, name in GRID_FILES.items()}
    rows = {grid: read_rows(path) if path.exists() else [] for grid, path in paths.items()}
    if not any(rows.values()):
        raise ValueError(f"{folder} has no results. Run `python -m experiments run` first.")
    curves = {grid: Curves(found) for grid, found in rows.items()}
    first = {grid: Curves(r for r in found if r["seed"] == "0") for grid, found in rows.items()}
    simulated = read_table(Path(folder) / "simulated.csv", SIMULATED)
    parts = [
        "### What was run",
        "\n".join(run_table(rows)),
        "### Claims of the paper",
        "Scores are means over seeds; a / b are the two sides of the rule.",
        "\n".join(paper_table(curves, simulated)),
        "### Targets of the library",
        "\n".join(target_table(curves["fashion"])),
        "### Where the library loses",
        f"Test scores at least {LARGE_MARGIN} below the best alternative: the class of the most "
        "probable label by the library's own model (looselabels baseline), or a method of the "
        "paper with T fixed.",
        "\n".join(loss_table(curves)),
        "### Strengths of the paper's method",
        "Mean test score over the label counts in seed 0, for which all strengths were run.",
        "\n".join(strength_table(first)),
    ]
    return "\n\n".join(parts)
