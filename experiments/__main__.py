"""The command ``python -m experiments``."""

import sys

import click

from experiments.ending import run_command


@click.group()
def main():
    """Reproduce the paper's experiments."""


def _names(_context, _parameter, value):
    from experiments.grids import EXPERIMENTS

    unknown = [name for name in value if name not in EXPERIMENTS]
    if unknown:
        raise click.UsageError(f"{unknown[0]!r} is not one of {', '.join(EXPERIMENTS)}.")
    return value or EXPERIMENTS


@main.command()
@click.argument("experiment", nargs=-1, callback=_names)
@click.option(
    "--quick", is_flag=True, help="Use 2,000 rows, the smallest number of labels and one seed."
)
@click.option("--data", type=click.Path(file_okay=False), help="Folder with the data sets.")
@click.option("--out", type=click.Path(file_okay=False), help="Folder for the results.")
@click.option(
    "--seeds", type=click.IntRange(1), default=3, show_default=True, help="Number of seeds."
)
@click.option("--only-problem", multiple=True, help="Run only this problem; can be repeated.")
@click.option(
    "--only-labels", multiple=True, type=int,
    help="Run only this number of labels per class; can be repeated.",
)  # fmt: skip
@click.option("--skip-paper", is_flag=True, help="Do not run the method of the paper.")
@click.option("--device", help="Compute kernel sums with PyTorch on this device, e.g. cuda.")
@click.option(
    "--jobs", type=click.IntRange(1), default=1, show_default=True,
    help="Number of cells to run at the same time, each on one core; 1: one cell on all cores.",
)  # fmt: skip
def run(experiment, quick, data, out, seeds, only_problem, only_labels, skip_paper, device, jobs):
    """Run the missing parts of each EXPERIMENT (default: all experiments)."""
    from experiments.grids import GRIDS, RESULTS, run_grid, run_table
    from experiments.results import locked

    known = {problem for name in experiment if name in GRIDS for problem in GRIDS[name].problems}
    for problem in only_problem:
        if problem not in known:
            raise click.UsageError(f"{problem!r} is not one of {', '.join(sorted(known))}.")
    folder = out or (RESULTS / "quick" if quick else RESULTS)
    with locked(folder):
        for name in experiment:
            if name not in GRIDS:
                run_table(name, folder)
                continue
            run_grid(
                name, folder, data=data, quick=quick, device=device, jobs=jobs, seeds=seeds,
                problems=only_problem, counts=only_labels, skip_paper=skip_paper,
            )  # fmt: skip


@main.command()
@click.option("--results", type=click.Path(file_okay=False), help="Folder with the results.")
@click.option("--out", type=click.Path(file_okay=False), help="Folder for the figures.")
def plot(results, out):
    """Draw all figures. Grids without results are skipped."""
    from experiments.figures import FIGURES, plot_all
    from experiments.grids import RESULTS
    from looselabels._validation import import_extra

    import_extra("matplotlib", '"looselabels[plot]"')
    for path in plot_all(results or RESULTS, out or FIGURES):
        click.echo(path)


@main.command()
@click.option("--results", type=click.Path(file_okay=False), help="Folder with the results.")
def claims(results):
    """Print which claims of the paper hold, and which targets the library reaches."""
    from experiments.grids import RESULTS
    from experiments.tables import report

    click.echo(report(results or RESULTS))


def entry(arguments=None) -> int:
    """Run the command and return its exit code; errors are one line on stderr."""
    return run_command(main, "python -m experiments", arguments)


if __name__ == "__main__":
    sys.exit(entry())
