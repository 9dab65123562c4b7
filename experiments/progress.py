"""Progress messages on stderr while an experiment runs."""

import sys


def print_progress(message):
    """Print one line to stderr."""
    print(message, file=sys.stderr, flush=True)


def duration(seconds):
    """Return a duration as text, in seconds or minutes."""
    return f"{seconds / 60:.0f} min" if seconds > 90 else f"{seconds:.0f} s"


def time_left(cells, taken, jobs=1):
    """Estimate how long `cells` will take; `taken` lists the past durations of each setting."""
    means = {setting: sum(times) / len(times) for setting, times in taken.items()}
    longest = max(means.values())
    seconds = sum(means.get(cell.setting, longest) for cell in cells) / jobs
    return f"about {duration(seconds)} left"
