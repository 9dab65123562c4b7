"""The terminal: lines on stderr, a progress bar, and a stdout that may be closed."""

import os
import sys
from contextlib import contextmanager, suppress
from pathlib import Path

import click


def print_line(text) -> None:
    """Print a line to stderr; control characters are escaped."""
    safe = "".join(c if c.isprintable() or c == "\n" else ascii(c)[1:-1] for c in text)
    click.echo(safe, err=True)


@contextmanager
def progress(label, quiet=False):
    """Yield a function that sets a progress bar to a percentage; it is shown only on a terminal."""
    if quiet or not sys.stderr.isatty():
        yield lambda percent, doing=None: None
        return
    with click.progressbar(length=100, label=label, file=sys.stderr, show_eta=True) as bar:

        def reach(percent, doing=None):
            bar.label = doing or bar.label
            bar.update(percent - bar.pos)

        yield reach


def shortest(path: Path) -> Path:
    """Return the path relative to the current folder if it is in there."""
    try:
        return path.relative_to(Path.cwd())
    except ValueError:
        return path


def drop_broken_stdout() -> None:
    """Redirect a broken stdout to nowhere; otherwise Python fails to flush it at exit."""
    try:
        sys.stdout.flush()
    except (AttributeError, OSError, ValueError):
        with suppress(AttributeError, OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
