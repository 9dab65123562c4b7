"""The terminal: lines on stderr, a progress bar, and a stdout that may be closed."""

import os
import sys
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NoReturn

import click

from looselabels._progress import listen

LABEL_WIDTH = len("predicting labels")  # the longest label, so that the bar stays in its place


def print_line(text) -> None:
    """Print a line to stderr; control characters are escaped."""
    safe = "".join(c if c.isprintable() or c == "\n" else ascii(c)[1:-1] for c in text)
    click.echo(safe, err=True)


@contextmanager
def progress(quiet=False):
    """Show a progress bar, with the time left, for the steps within; only on a terminal."""
    if quiet or not sys.stderr.isatty():
        yield
        return
    with click.progressbar(length=1000, file=sys.stderr, show_percent=True) as bar:

        def show(share, words):
            bar.label = f"{words:{LABEL_WIDTH}}"
            bar.update(round(1000 * share) - bar.pos)
            bar.render_progress()  # a new label too, if the bar has not moved

        with listen(show):
            yield


def shortest(path: Path) -> Path:
    """Return the path relative to the current folder if it is in there."""
    try:
        return path.relative_to(Path.cwd())
    except (ValueError, FileNotFoundError):  # it is elsewhere, or the current folder is gone
        return path


def open_closed_streams() -> None:
    """Open what the caller has closed, as in ``2>&-``; otherwise the next file takes its number.

    A closed stdin is empty and a closed stderr forgets what is written. sys.stdout stays None:
    results without a place are an error (`check_file`).
    """
    if sys.stdin is None:
        sys.stdin = open(os.devnull, encoding="utf-8")  # noqa: SIM115 - until the process ends
    if sys.stdout is None:
        os.open(os.devnull, os.O_WRONLY)
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115


def drop_broken_stdout() -> None:
    """Redirect a broken stdout to nowhere; otherwise Python fails to flush it at exit."""
    try:
        sys.stdout.flush()
    except (AttributeError, OSError, ValueError):
        with suppress(AttributeError, OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def leave(code: int) -> NoReturn:
    """End the process, and do not wait for threads that are still at work, as after Ctrl-C.

    Python would stop them in the middle of what they do, and C++ code, as in the trees of
    scikit-learn, then aborts the process.
    """
    for stream in (sys.stdout, sys.stderr):
        with suppress(AttributeError, OSError, ValueError):
            stream.flush()
    os._exit(code)
