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
@click.option("--quick", is_flag=True, help="2,000 rows, the fewest labels, one seed.")
@click.option("--data", type=click.Path(file_okay=False), help="The folder of the data.")
@click.option("--out", type=click.Path(file_okay=False), help="The folder of the results.")
@click.option("--seeds", type=click.IntRange(1), default=3, show_default=True)
@click.option("--only-problem", multiple=True, help="Run this problem only; may be repeated.")
@click.option("--only-labels", multiple=True, type=int, help="So many labels a class only.")
@click.option("--skip-paper", is_flag=True, help="Leave the paper's method to a later run.")
@click.option("--device", help="Where PyTorch sums kernels, as cuda. Default: NumPy.")
def run(experiment, quick, data, out, seeds, only_problem, only_labels, skip_paper, device):
    """Run what of EXPERIMENT (default: all) is not in the results yet."""
    from experiments.grids import GRIDS, RESULTS, run_grid, run_table
    from experiments.results import locked

    every = {problem for name in experiment if name in GRIDS for problem in GRIDS[name].problems}
    for problem in only_problem:
        if problem not in every:
            raise click.UsageError(f"{problem!r} is not one of {', '.join(sorted(every))}.")
    folder = out or (RESULTS / "quick" if quick else RESULTS)
    with locked(folder):
        for name in experiment:
            if name not in GRIDS:
                run_table(name, folder)
                continue
            run_grid(
                name, folder, data=data, quick=quick, device=device, seeds=seeds,
                problems=only_problem, counts=only_labels, skip_paper=skip_paper,
            )  # fmt: skip


@main.command()
@click.option("--results", type=click.Path(file_okay=False), help="The folder of the results.")
@click.option("--out", type=click.Path(file_okay=False), help="The folder of the figures.")
def plot(results, out):
    """Draw the figures of the grids that have results, of the simulated data, and figure 1."""
    from experiments.figures import FIGURES, plot_all
    from experiments.grids import RESULTS
    from looselabels._validation import import_extra

    import_extra("matplotlib", '"looselabels[plot]"')
    for path in plot_all(results or RESULTS, out or FIGURES):
        click.echo(path)


@main.command()
@click.option("--results", type=click.Path(file_okay=False), help="The folder of the results.")
def claims(results):
    """Print what the paper claims, and what was to be reached, with the numbers of the rows."""
    from experiments.grids import RESULTS
    from experiments.tables import report

    click.echo(report(results or RESULTS))


def entry(arguments=None) -> int:
    """Run the command and return its exit code; what goes wrong is one line on stderr."""
    return run_command(main, "python -m experiments", arguments)


if __name__ == "__main__":
    sys.exit(entry())
