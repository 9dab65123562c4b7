"""The command ``python -m benchmarks.quality``."""

import sys
from pathlib import Path

import click
from benchmarks.quality.answer import FOREST, LINEAR
from benchmarks.quality.data import NAMES
from benchmarks.quality.methods import METHODS, OURS, PEER, REFERENCE, select_methods
from benchmarks.quality.results import RESULTS, commits, read
from experiments.ending import run_command
from experiments.results import locked

DOCS = Path(__file__).parents[2] / "docs"
METHOD = click.Choice([OURS, PEER, REFERENCE, FOREST, LINEAR, *METHODS])


@click.group()
def main():
    """Compare looselabels with its peers."""


@main.command("run")
@click.option("--quick", is_flag=True, help="Digits and Gaussians, one seed, one problem per kind.")
@click.option("--data", type=click.Path(file_okay=False), help="The folder with the data.")
@click.option(
    "--samples",
    type=click.Path(file_okay=False),
    help="Keep the rows of each seed in this folder; data is read only if they are not there.",
)
@click.option("--out", type=click.Path(dir_okay=False), help="The results file.")
@click.option("--only", multiple=True, type=click.Choice(NAMES), help="Run this data set only.")
@click.option("--method", multiple=True, type=METHOD, help="Run this method, role or base only.")
@click.option("--redo", multiple=True, type=METHOD, help="Drop its results and run it again.")
@click.option("--seeds", type=click.IntRange(1), default=3, show_default=True)
@click.option(
    "--more", type=click.IntRange(0), default=0, help="Seeds to add where looselabels is not ahead."
)
@click.option("--jobs", type=click.IntRange(1), default=2, show_default=True)
@click.option("--minutes", type=float, default=float("inf"), help="Start no cell after this time.")
@click.option("--commit", help="The commit to note in the results. [default: ask git]")
def run(quick, out, method, redo, only, data, commit, seeds, **options):
    """Run the cells that have no results yet."""
    from benchmarks.quality.grid import run as run_grid

    path = Path(out or (RESULTS.with_name("quick.csv") if quick else RESULTS))
    with locked(path.parent):
        run_grid(
            path, quick=quick, folder=data, names=only, methods=select_methods(method),
            redo=select_methods(redo), seeds=1 if quick else seeds, mark=commit, **options,
        )  # fmt: skip


@main.command()
@click.option("--results", type=click.Path(dir_okay=False), help="The results file.")
@click.option("--write", is_flag=True, help="Write docs/quality.md and docs/quality-tables.md.")
def table(results, write):
    """Print the page docs/quality.md and the tables of docs/quality-tables.md."""
    for name, text in pages(results or RESULTS).items():
        if write:
            (DOCS / name).write_text(text, encoding="utf-8")
        else:
            click.echo(text)


def pages(path):
    """Return the pages that the results in `path` give, by file name."""
    from benchmarks.quality.page import front_page
    from benchmarks.quality.scores import Scores
    from benchmarks.quality.tables import tables_page

    scores = Scores(read(path))
    if not scores.rows:
        raise ValueError(
            f"{path} has no results. Run `python -m benchmarks.quality run` to create them."
        )
    return {
        "quality.md": front_page(scores),
        "quality-tables.md": tables_page(scores, commits(path)),
    }


def entry(arguments=None) -> int:
    """Run the command and return its exit code; an error is one line on stderr."""
    return run_command(main, "python -m benchmarks.quality", arguments)


if __name__ == "__main__":
    sys.exit(entry())
