"""Words on the terminal while an experiment runs."""

import sys


def say(words):
    """Print a line of progress."""
    print(words, file=sys.stderr, flush=True)


def minutes(seconds):
    """Return a duration in words."""
    return f"{seconds / 60:.0f} min" if seconds > 90 else f"{seconds:.0f} s"


def time_left(cells, taken):
    """Return how long `cells` will take, in words, by what cells of their setting took so far."""
    means = {setting: sum(times) / len(times) for setting, times in taken.items()}
    longest = max(means.values())
    return f"about {minutes(sum(means.get(cell.setting, longest) for cell in cells))} left"
