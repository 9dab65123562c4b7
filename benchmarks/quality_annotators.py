"""Several labels per row: compare looselabels with majority vote, Dawid–Skene and other peers.

python benchmarks/quality_annotators.py run [--quick] [--data FOLDER] [--redo METHOD]
python benchmarks/quality_annotators.py table

`run` adds the cells without results to benchmarks/annotators/results.csv, each as soon as it is
done: run it again to continue. `table` prints the section of benchmarks/README.md.
"""

import sys
import time
from collections import defaultdict
from pathlib import Path

import click
from threadpoolctl import threadpool_limits

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.annotators import methods, results
from benchmarks.annotators.methods import METHODS, Cell
from benchmarks.annotators.peers import SETUP
from benchmarks.annotators.problems import PLACES
from benchmarks.annotators.tables import section
from benchmarks.quality.grid import commit

METHOD = click.Choice(list(METHODS))
QUICK = PLACES[1]  # needs no download


@click.group()
def main():
    """Compare looselabels with its peers on rows with several labels."""


@main.command()
@click.option("--quick", is_flag=True, help="Digits, 3 answers by 20 annotators, one seed.")
@click.option("--data", type=click.Path(file_okay=False), help="The folder with the data.")
@click.option("--out", type=click.Path(dir_okay=False), help="The results file.")
@click.option("--method", multiple=True, type=METHOD, help="Run this method only.")
@click.option("--redo", multiple=True, type=METHOD, help="Drop its results and run it again.")
@click.option("--seeds", type=click.IntRange(1), default=3, show_default=True)
@click.option("--minutes", type=float, default=float("inf"), help="Start no cell after this time.")
def run(quick, data, out, method, redo, seeds, minutes):
    """Run the cells that have no results yet."""
    path = Path(out or (results.RESULTS.with_name("quick.csv") if quick else results.RESULTS))
    mark = commit()  # before results are dropped, which would count as a change
    results.keep(path, lambda cell: cell.method not in redo)
    places, seeds = ((QUICK,), 1) if quick else (PLACES, seeds)
    begin, absent = time.perf_counter(), defaultdict(int)
    for place, cell in missing_cells(results.read(path), places, seeds, method):
        if time.perf_counter() - begin > 60 * minutes:
            break
        try:
            with threadpool_limits(1):
                scores = methods.run(cell, place, data)
        except ModuleNotFoundError as error:
            absent[str(error.name).partition(".")[0]] += 1
            continue
        results.append(path, cell, scores, mark)
        click.echo(f"{', '.join(map(str, cell))}: {scores['right']:.3f}", err=True)
    results.keep(path, lambda cell: True)
    for module, count in absent.items():
        click.echo(f"{count} cells were left out: {SETUP.get(module, f'pip install {module}')}")
    if quick:
        click.echo(section(path))


def missing_cells(done, places, seeds, only=()):
    """Return place and cell of all runs without results, seed by seed."""
    cells = [
        (place, Cell(*place, seed, method, base))
        for seed in range(seeds)
        for place in places
        for method, bases in METHODS.items()
        for base in bases
        if not only or method in only
    ]
    return [(place, cell) for place, cell in cells if cell not in done]


@main.command()
@click.option("--results", "path", type=click.Path(dir_okay=False, exists=True))
@click.option("--seed", "seeds", multiple=True, type=int, help="Only the results of this seed.")
def table(path, seeds):
    """Print the section of benchmarks/README.md."""
    click.echo(section(path or results.RESULTS, seeds))


if __name__ == "__main__":
    main()
