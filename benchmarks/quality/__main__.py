"""The command ``python -m benchmarks.quality``."""

import sys
from pathlib import Path

import click
from benchmarks.quality.data import NAMES
from benchmarks.quality.methods import APART, METHODS, OURS, PEER, named
from benchmarks.quality.results import RESULTS
from experiments.ending import run_command
from experiments.results import locked

PAGE = Path(__file__).parents[2] / "docs" / "quality.md"
MARK = "<!-- what follows is what `python -m benchmarks.quality table` prints -->"
METHOD = click.Choice([OURS, PEER, APART, *METHODS])


@click.group()
def main():
    """Compare looselabels with its peers."""


@main.command("run")
@click.option("--quick", is_flag=True, help="Digits and Gaussians, one seed, 30 % labeled.")
@click.option("--data", type=click.Path(file_okay=False), help="The folder of the data.")
@click.option("--out", type=click.Path(dir_okay=False), help="The file of the results.")
@click.option("--only", multiple=True, type=click.Choice(NAMES), help="This data set only.")
@click.option("--method", multiple=True, type=METHOD, help="Run this method only, or this role.")
@click.option("--redo", multiple=True, type=METHOD, help="Forget what it said, and run it.")
@click.option("--seeds", type=click.IntRange(1), default=3, show_default=True)
@click.option("--jobs", type=click.IntRange(1), default=2, show_default=True)
def run(quick, data, out, only, method, redo, seeds, jobs):
    """Run the cells that are not in the results yet."""
    from benchmarks.quality.grid import run as run_grid

    path = Path(out or (RESULTS.with_name("quick.csv") if quick else RESULTS))
    with locked(path.parent):
        run_grid(
            path, quick=quick, folder=data, names=only, methods=named(method), redo=named(redo),
            seeds=1 if quick else seeds, jobs=jobs,
        )  # fmt: skip


@main.command()
@click.option("--results", type=click.Path(dir_okay=False), help="The file of the results.")
@click.option("--write", is_flag=True, help="Put them into docs/quality.md.")
def table(results, write):
    """Print the tables of docs/quality.md."""
    from benchmarks.quality.tables import report

    text = report(results or RESULTS)
    if not write:
        click.echo(text)
        return
    words, _, _ = PAGE.read_text(encoding="utf-8").partition(MARK)
    PAGE.write_text(f"{words}{MARK}\n\n{text}\n", encoding="utf-8")


def entry(arguments=None) -> int:
    """Run the command and return its exit code; what goes wrong is one line on stderr."""
    return run_command(main, "python -m benchmarks.quality", arguments)


if __name__ == "__main__":
    sys.exit(entry())
