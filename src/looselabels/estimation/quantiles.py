"""Intervals from draws: the middle part of the values, with as much below it as above."""

import numpy as np


def interval_ends(level=0.9) -> tuple[float, float]:
    """Return the probabilities of the two quantiles that enclose a share `level` of the values.

    >>> interval_ends(0.5)
    (0.25, 0.75)
    """
    if not 0 < level < 1:
        raise ValueError(f"level must be between 0 and 1; it is {level}.")
    return (1 - level) / 2, (1 + level) / 2


def quantile_interval(draws, level=0.9, estimate=None) -> tuple[np.ndarray, np.ndarray]:
    """Return the lower and the upper end of the interval that holds a share `level` of the draws.

    `draws` has one draw per entry of its first axis. If an `estimate` is given, the interval is
    extended to contain it: draws can be skewed, or center at another estimate.

    >>> low, high = quantile_interval(np.arange(101.0), level=0.5)
    >>> float(low), float(high)
    (25.0, 75.0)
    >>> [float(end) for end in quantile_interval(np.arange(101.0), level=0.5, estimate=20)]
    [20.0, 75.0]
    """
    low, high = np.quantile(draws, interval_ends(level), axis=0)
    if estimate is None:
        return low, high
    return np.minimum(low, estimate), np.maximum(high, estimate)
