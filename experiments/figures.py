"""The figures of the grids, from their rows, and figure 1: the same rows give the same bytes."""

from pathlib import Path

from experiments.curves import SHOWN, Curves, library, paper
from experiments.grids import GRIDS, HERE, RESULTS
from experiments.simulated_figure import plot_simulated
from experiments.transitions import designs

FIGURES = HERE / "figures"
STYLE = {
    "svg.hashsalt": "looselabels",  # names inside the file are the same in every run
    "svg.fonttype": "path",  # looks the same without the font
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "0.9",
}
TITLES = {"fashion": "Fashion-MNIST", "news": "20 Newsgroups"}
MODELS = {"forest": "forest", "kernel": "kernel densities"}
FLAT, COSTS, TOLD, NOTHING, BALANCED = "#0072B2", "#E69F00", "#009E73", "#CC79A7", "0.55"


def plot_all(results=RESULTS, figures=FIGURES) -> list[Path]:
    """Draw a figure of each grid that has results, and the two others; return their paths."""
    from matplotlib import rc_context

    figures = Path(figures)
    figures.mkdir(parents=True, exist_ok=True)
    drawn = {"transitions": plot_transitions, "simulated": plot_simulated}
    for name in GRIDS:
        path = Path(results) / f"{name}.csv"
        if path.exists():
            drawn[name] = lambda name=name, path=path: plot_panels(name, Curves.read(path))
    paths = []
    with rc_context(STYLE):
        for name, draw in drawn.items():
            paths.append(figures / f"{name}.svg")
            draw().savefig(paths[-1], metadata={"Date": None})
    return paths


# ----------------------------------------------------------------------------------- eight panels


def panels_of(problems):
    """Return (problem, what is scored) of the paper's eight panels, in its order."""
    semi, several, unlabeled, *noisy = problems
    both = [(name, kind) for name in (semi, several, unlabeled) for kind in ("test", "W")]
    return both + [(name, "W") for name in noisy]


def plot_panels(name, curves):
    """Return the figure of an experiment: F1 over labels a class, in eight panels."""
    from matplotlib.figure import Figure

    experiment = GRIDS[name]
    figure = Figure(figsize=(8.5, 12), layout="constrained")
    axes = figure.subplots(4, 2).flat
    handles: dict = {}
    for ax, (problem, kind) in zip(axes, panels_of(experiment.problems), strict=True):
        for series, label, style in _styles(kind, noisy=problem.startswith("noisy")):
            seeds = curves.seeds(problem, series)
            if seeds:
                handles[label] = _draw(ax, seeds, style)
        of = "test score" if kind == "test" else "W on the training rows"
        ax.set_title(f"{problem}, {of}", loc="left", fontsize=10)
        score = "F1 of the positive class" if problem == "positive-unlabeled" else "macro-F1"
        ax.set(xscale="log", xlabel="labels a class", ylabel=score, ylim=(0, 1))
        ax.set_xticks(experiment.counts, labels=[str(count) for count in experiment.counts])
        ax.minorticks_off()
    seeds = {
        name: min(map(len, curves.seeds("semi-supervised", series).values()), default=0)
        for name, series in {"paper": paper("flat", "h"), "looselabels": library("W")}.items()
    }
    figure.suptitle(
        f"{TITLES[experiment.data]}, {MODELS[experiment.model]}\n"
        f"Means over seeds (paper: {seeds['paper']}, looselabels: {seeds['looselabels']}); "
        "bands from the lowest to the highest"
    )
    figure.legend(handles.values(), handles, loc="outside lower center", ncols=3, frameon=False)
    return figure


def _styles(kind, noisy):
    """Return (series, words, style) of the curves of a panel, those in front last.

    Keeping the labels is a choice where they are noisy; elsewhere they are right.
    """
    before = "baseline" if kind == "test" else "classifier"
    after = "inferred" if kind == "test" else "W"
    strength = {"inf": "T kept"}.get(SHOWN, f"strength {SHOWN}")
    curves = []
    for weights, color in (("flat", FLAT), ("costs", COSTS)):
        words = f"paper, {weights}"
        if kind == "test":
            curves.append((paper(weights, "h"), f"{words}: h(x)", {"color": color, "ls": ":"}))
        curves += [
            (paper(weights, before), f"{words}: label's class", {"color": color, "ls": "--"}),
            (paper(weights, after), f"{words}: inferred, {strength}", {"color": color}),
        ]
    if noisy:
        for weights, dashes in (("flat", "-"), ("costs", "--")):
            kept = {"color": "k", "ls": dashes, "lw": 1.1}
            curves.append((paper(weights, "labels kept"), f"paper, {weights}: labels kept", kept))
        kept = {"color": "k", "ls": ":", "lw": 1.1}
        curves.append((library("labels kept"), "looselabels: labels kept", kept))
    plain = {"color": BALANCED, "ls": "--"}
    return [
        *curves,
        (library(before), "looselabels: label's class", plain),
        (library(after, "nothing"), "looselabels, told nothing", {"color": NOTHING, "lw": 2}),
        (library(after, "told"), "looselabels, told the rates", {"color": TOLD, "lw": 2}),
    ]


def _draw(ax, seeds, style):
    """Draw the mean over seeds, and a band from the lowest seed to the highest."""
    counts = list(seeds)
    scores = list(seeds.values())
    marker = "o" if len(counts) == 1 else None  # one point has no line
    means = [sum(values) / len(values) for values in scores]
    (line,) = ax.plot(counts, means, marker=marker, **style)
    low, high = [min(values) for values in scores], [max(values) for values in scores]
    ax.fill_between(counts, low, high, color=style["color"], alpha=0.15, lw=0)
    return line


# ----------------------------------------------------------------------------------- figure 1


def plot_transitions():
    """Return figure 1: the heat map of each design."""
    from matplotlib.figure import Figure

    from looselabels.plotting import TransitionDisplay

    figure = Figure(figsize=(11, 5.5), layout="constrained")
    axes = figure.subplots(2, 4)
    for ax, (title, design) in zip(axes.flat, designs().items(), strict=False):
        TransitionDisplay(design.proba, design.classes, design.labels).plot(ax)
        ax.grid(False)
        ax.spines[:].set_visible(False)
        ax.tick_params(axis="x", rotation=0)
        for text in ax.get_xticklabels():
            text.set_ha("center")
        ax.set_title(title, loc="left", fontsize=10)
    axes.flat[-1].set_axis_off()
    return figure
