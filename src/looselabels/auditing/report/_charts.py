"""Where the lines and bands of each chart go; the template only writes them down."""

from collections.abc import Sequence
from itertools import groupby
from math import ceil, sqrt

import numpy as np

from looselabels.auditing.report._words import count, known, name, percent, plain, width

LETTER = 7.2  # pixels, of a wide system font at the size of the charts
MOST_INTERVALS = 12  # names; a heat map with more has no room for intervals,
MOST_NUMBERS = 30  # with more than this none for numbers,
MOST_CELLS = 120  # and more than this are left out
MOST_BANDS = 24
BANDS_WIDTH = 220
SLANT = 0.64  # sine of the 40 degrees by which long names lean


# ---------------------------------------------------------------------------------------- heat map


def level(share: float) -> int:
    """Return the shade, 0 to 10, of a share; by its root, so that a few percent show.

    >>> [level(share) for share in (0, 0.001, 0.04, 0.25, 1)]
    [0, 1, 2, 5, 10]
    """
    return min(10, ceil(10 * sqrt(share) - 1e-9)) if known(share) and share > 0 else 0


def heat_map(matrix: dict, weights=None) -> dict:
    """Return the drawing of p(label | class): shades as strokes, names, numbers.

    `weights`, of labels and of classes, say which to keep where there are too many to draw.
    """
    proba = np.asarray(matrix["proba"], dtype=float)
    n_classes, n_labels = proba.shape
    label_weights, class_weights = (None, None) if weights is None else weights
    rows, columns = _largest(class_weights, n_classes), _largest(label_weights, n_labels)
    drawn = _layout(
        [name(matrix["classes"][i], 18) for i in rows],
        [name(matrix["labels"][i], 18) for i in columns],
    )
    proba = proba[np.ix_(rows, columns)]
    drawn["strokes"] = _strokes(proba, merge=not drawn["numbered"])
    low, high = (_cut(matrix.get(key), rows, columns) for key in ("low", "high"))
    drawn["numbers"] = _numbers(proba, low, high, drawn) if drawn["numbered"] else []
    drawn["left_out"] = (n_classes - len(rows), n_labels - len(columns))
    return drawn


def _largest(weights, n: int) -> list[int]:
    if n <= MOST_CELLS:
        return list(range(n))
    weights = -np.arange(n) if weights is None else np.asarray(weights, dtype=float)
    return sorted(np.argsort(-weights, kind="stable")[:MOST_CELLS].tolist())


def _cut(matrix, rows, columns):
    return None if matrix is None else np.asarray(matrix, dtype=float)[np.ix_(rows, columns)]


def _layout(classes: Sequence[str], labels: Sequence[str]) -> dict:
    most = max(len(classes), len(labels))
    longest = LETTER * max(map(width, labels))
    if most <= MOST_INTERVALS:
        cell = (max(64, min(round(longest) + 12, 600 // len(labels))), 40)
    elif most <= MOST_NUMBERS:
        cell = (27, 22)
    else:
        cell = (max(7, 780 // most),) * 2
    slanted = longest > cell[0] - 6
    left = round(LETTER * max(*map(width, classes), 6) + 14)
    top = round(SLANT * longest + 22) if slanted else 28
    # of names that would touch, every second, third, … is written
    row_step, column_step = ceil(14 / cell[1]), ceil(20 / cell[0])
    rows = [(top + cell[1] * (i + 0.5), classes[i]) for i in range(0, len(classes), row_step)]
    # from the last, which is often (unlabeled) and should have its name
    written = range(len(labels) - 1, -1, -column_step)[::-1]
    columns = [(left + cell[0] * (i + 0.5), labels[i]) for i in written]
    return {
        "cell": cell,
        "left": left,
        "top": top,
        "width_cells": cell[0] * len(labels),
        "height_cells": cell[1] * len(classes),
        "width": left + cell[0] * len(labels) + (round(0.77 * longest) if slanted else 8),
        "height": top + cell[1] * len(classes) + 4,
        "slanted": slanted,
        "numbered": most <= MOST_NUMBERS,
        "row_names": rows,
        "column_names": columns,
    }


def _strokes(proba: np.ndarray, merge: bool) -> list[tuple[int, str]]:
    """Return for each shade one path of horizontal strokes, in units of a cell."""
    paths: dict[int, list[str]] = {}
    for y, row in enumerate(proba):
        x = 0
        for key, run in groupby(enumerate(row), lambda item: (level(item[1]), not merge and item)):
            length = len(list(run))
            if key[0]:
                paths.setdefault(key[0], []).append(f"M{x} {y}h{length if merge else '.96'}")
            x += length
    return [(shade, "".join(paths[shade])) for shade in sorted(paths)]


def _numbers(proba, low, high, drawn) -> list[tuple]:
    """Return x, y, number, interval and shade of each cell that is not 0."""
    (wide, tall), left, top = drawn["cell"], drawn["left"], drawn["top"]
    roomy = wide > 40
    found = []
    for (y, x), share in np.ndenumerate(proba):
        between = ""
        if roomy and low is not None and high is not None and low[y, x] < high[y, x]:
            between = f"{percent(low[y, x])[:-1]}–{percent(high[y, x])[:-1]}"
        number = percent(share) if roomy else f"{100 * share:.0f}"
        if share > 0:
            middle = (left + wide * (x + 0.48), top + tall * (y + 0.5))
            found.append((*(round(at, 1) for at in middle), number, between, level(share)))
    return found


# -------------------------------------------------------------------------------------------- flow


def missing(label) -> bool:
    """Return whether a label says that there is none, also within a data set."""
    label = plain(label)
    return label is None or (isinstance(label, tuple) and bool(label) and missing(label[-1]))


def stays(label, given_class) -> bool:
    """Return whether a label names the class; that of a data set, ("web", "cat"), names cat."""
    label, given_class = plain(label), plain(given_class)
    return label == given_class or (isinstance(label, tuple) and label[-1:] == (given_class,))


def flow(rows: np.ndarray, labels: Sequence, classes: Sequence) -> dict | None:
    """Return the drawing of rows that go from labels to classes; of too many bands the largest.

    With many names only those that move are drawn: the rest would hide them.
    """
    bands = [
        (float(n), s, y, stays(labels[s], classes[y]))
        for (s, y), n in np.ndenumerate(rows)
        if n >= 0.5
    ]
    many = max(len(labels), len(classes)) > MOST_INTERVALS
    moving = [band for band in bands if not (many and band[3])]
    drawn = sorted(sorted(moving, reverse=True)[:MOST_BANDS], key=lambda band: band[1:3])
    if not drawn:
        return None
    sides = [_nodes(drawn, end) for end in (1, 2)]
    tall = min(480, max(160, 26 * max(map(len, sides))))
    scale = tall / sum(band[0] for band in drawn)
    left, right = (_stack(side, scale) for side in sides)
    names = [[name(value, 16) for value in values] for values in (labels, classes)]
    named = [
        _named(left, names[0], rows.sum(axis=1)),
        _named(right, names[1], rows.sum(axis=0)),
    ]
    gutters = [max(LETTER * width(f"{node[2]} {node[3]}") for node in side) + 16 for side in named]
    ends = round(gutters[0]), round(gutters[0]) + BANDS_WIDTH
    return {
        "width": ends[1] + round(gutters[1]),
        "x0": ends[0],
        "x1": ends[1],
        "height": max(_end(left), _end(right)) + 4,
        "bands": [_band(band, left, right, scale, ends, names) for band in drawn],
        "left": named[0],
        "right": named[1],
        "stay": sum(band[0] for band in bands if band[3]) if many else None,
        "rest": sum(band[0] for band in moving) - sum(band[0] for band in drawn),
        "rest_bands": len(moving) - len(drawn),
    }


def _nodes(bands, end: int) -> dict[int, float]:
    found: dict[int, float] = {}
    for band in bands:
        found[band[end]] = found.get(band[end], 0) + band[0]
    return dict(sorted(found.items()))


def _stack(nodes: dict[int, float], scale: float) -> dict[int, list[float]]:
    """Return top, height and how much is used of each node, with room for its name."""
    found, y = {}, 4.0
    for node, n in nodes.items():
        tall = n * scale
        slot = max(tall, 18)
        found[node] = [y + (slot - tall) / 2, tall, 0.0]
        y += slot + 6
    return found


def _end(stack) -> float:
    last = list(stack.values())[-1]
    return round(max(last[0] + last[1], last[0] + last[1] / 2 + 12), 1)


def _band(band, left, right, scale, ends, names) -> tuple[str, bool, str]:
    n, s, y, stay = band
    thick = n * scale
    tops = []
    for node in (left[s], right[y]):
        tops.append(node[0] + node[2])
        node[2] += thick
    (a, b), (c, d) = tops, [top + thick for top in tops]
    x0, x1 = ends
    middle = (x0 + x1) / 2
    path = f"M{x0} {a:.1f}C{middle} {a:.1f} {middle} {b:.1f} {x1} {b:.1f}"
    path += f"V{d:.1f}C{middle} {d:.1f} {middle} {c:.1f} {x0} {c:.1f}Z"
    return path, stay, f"{names[0][s]} to {names[1][y]}: {count(n)} rows"


def _named(stack, names, totals) -> list[tuple]:
    return [
        (round(top, 1), round(max(tall, 1), 1), names[node], count(totals[node]))
        for node, (top, tall, _) in stack.items()
    ]


# ------------------------------------------------------------------------------------- calibration


def reliability(bins: Sequence[dict]) -> dict:
    """Return the points of said against seen, each as large as its rows are many."""
    bins = [b for b in bins if b["count"] and known(b["confidence"]) and known(b["frequency"])]
    most = max((b["count"] for b in bins), default=1)
    points = [
        (
            round(48 + 280 * b["confidence"], 1),
            round(292 - 280 * b["frequency"], 1),
            round(3 + 7 * sqrt(b["count"] / most), 1),
            f"said {percent(b['confidence'])}, seen {percent(b['frequency'])}, {count(b['count'])}",
        )
        for b in bins
    ]
    return {"points": points, "line": " ".join(f"{x},{y}" for x, y, *_ in points)}
