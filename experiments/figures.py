"""The figures. Equal results give byte-identical files."""

from pathlib import Path

from experiments.cells import OPEN
from experiments.curves import SHOWN_STRENGTH, Curves, library, paper
from experiments.grids import GRIDS, HERE, RESULTS
from experiments.simulated_figure import plot_simulated
from experiments.transitions import designs

FIGURES = HERE / "figures"
STYLE = {
    "svg.hashsalt": "looselabels",  # identifiers inside the file are the same in all runs
    "svg.fonttype": "path",  # does not need the font
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "0.9",
}
TITLES = {"fashion": "Fashion-MNIST", "news": "20 Newsgroups"}
MODELS = {"forest": "forest", "kernel": "kernel densities"}
FLAT, COSTS, BALANCED = "#0072B2", "#E69F00", "0.55"
SPECIFIED_COLOR, OPEN_COLOR = "#009E73", "#CC79A7"


def plot_all(results=RESULTS, figures=FIGURES) -> list[Path]:
    """Draw the figures of all grids with results, and two others; return their paths."""
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
    """Return (problem, scored rows) of the eight panels, in the order of the paper."""
    semi, several, unlabeled, *noisy = problems
    both = [(name, kind) for name in (semi, several, unlabeled) for kind in ("test", "W")]
    return both + [(name, "W") for name in noisy]


def plot_panels(name, curves):
    """Return the figure of an experiment: F1 by number of labels per class, in eight panels."""
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
        scored = "test rows" if kind == "test" else "W on the training rows"
        ax.set_title(f"{problem}, {scored}", loc="left", fontsize=10)
        score = "F1 of the positive class" if problem == "positive-unlabeled" else "macro-F1"
        ax.set(xscale="log", xlabel="labels per class", ylabel=score, ylim=(0, 1))
        ax.set_xticks(experiment.counts, labels=[str(count) for count in experiment.counts])
        ax.minorticks_off()
    seeds = {
        name: min(map(len, curves.seeds("semi-supervised", series).values()), default=0)
        for name, series in {"paper": paper("flat", "h"), "looselabels": library("W")}.items()
    }
    figure.suptitle(
        f"{TITLES[experiment.data]}, {MODELS[experiment.model]}\n"
        f"Mean over seeds (paper: {seeds['paper']}, looselabels: {seeds['looselabels']}); "
        "bands: lowest to highest seed"
    )
    figure.legend(handles.values(), handles, loc="outside lower center", ncols=3, frameon=False)
    return figure


def _styles(kind, noisy):
    """Return (series, caption, style) of the curves of a panel; the last ones are in front.

    "Labels kept" is a baseline for noisy labels only: elsewhere all labels are correct.
    """
    before = "baseline" if kind == "test" else "classifier"
    after = "inferred" if kind == "test" else "W"
    strength = {"inf": "T fixed"}.get(SHOWN_STRENGTH, f"strength {SHOWN_STRENGTH}")
    curves = []
    for weights, color in (("flat", FLAT), ("costs", COSTS)):
        caption = f"paper, {weights}"
        if kind == "test":
            curves.append((paper(weights, "h"), f"{caption}: h(x)", {"color": color, "ls": ":"}))
        curves += [
            (
                paper(weights, before),
                f"{caption}: class of the label",
                {"color": color, "ls": "--"},
            ),
            (paper(weights, after), f"{caption}: inferred, {strength}", {"color": color}),
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
        (library(before), "looselabels: class of the label", plain),
        (library(after, OPEN), "looselabels, T estimated", {"color": OPEN_COLOR, "lw": 2}),
        (library(after), "looselabels, T specified", {"color": SPECIFIED_COLOR, "lw": 2}),
    ]


def _draw(ax, seeds, style):
    """Draw the mean over seeds and a band from the lowest to the highest seed."""
    counts = list(seeds)
    scores = list(seeds.values())
    marker = "o" if len(counts) == 1 else None  # a single point has no line
    means = [sum(values) / len(values) for values in scores]
    (line,) = ax.plot(counts, means, marker=marker, **style)
    low, high = [min(values) for values in scores], [max(values) for values in scores]
    ax.fill_between(counts, low, high, color=style["color"], alpha=0.15, lw=0)
    return line


# ----------------------------------------------------------------------------------- figure 1


def plot_transitions():
    """Return figure 1: a heat map of each transition."""
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
