"""Coordinates of the charts; the template only writes them down."""

from collections.abc import Sequence
from itertools import groupby
from math import ceil, sqrt
from typing import NamedTuple

import numpy as np

from looselabels.auditing.report._words import (
    count,
    is_interval,
    is_number,
    name,
    percent,
    tuple_from_json,
    width,
)

LETTER_WIDTH = 7.2  # pixels, of a wide system font at the size of the charts
# The most classes or labels that a heat map draws with intervals, with numbers, and at all.
MAX_WITH_INTERVALS = 12
MAX_WITH_NUMBERS = 30
MAX_DRAWN = 120
MAX_BANDS = 24
BANDS_WIDTH = 220
SLANT = (0.77, 0.64)  # cosine and sine of the 40 degrees by which long names are rotated


# ---------------------------------------------------------------------------------------- heat map


class Matrix(NamedTuple):
    """p(label | class) with its names and the ends of its intervals."""

    classes: tuple
    labels: tuple
    proba: np.ndarray  #: (n_classes, n_labels)
    low: np.ndarray  #: equal to `high` where there is no interval
    high: np.ndarray

    @classmethod
    def from_json(cls, part) -> "Matrix | None":
        """Return a matrix of summary.json, or None where it has no numbers."""
        if not part or not part.get("proba"):
            return None
        proba = np.asarray(part["proba"], dtype=float)
        low, high = (np.asarray(part.get(key) or proba, dtype=float) for key in ("low", "high"))
        classes, labels = (tuple(map(tuple_from_json, part[key])) for key in ("classes", "labels"))
        return cls(classes, labels, proba, low, high)

    @property
    def has_intervals(self) -> bool:
        """Whether any number has an interval."""
        return bool(np.any(self.low < self.high))

    def take(self, rows: list[int], columns: list[int]) -> "Matrix":
        """Return the matrix of some classes and labels only."""
        cells = np.ix_(rows, columns)
        return Matrix(
            tuple(self.classes[i] for i in rows),
            tuple(self.labels[i] for i in columns),
            *(numbers[cells] for numbers in (self.proba, self.low, self.high)),
        )


def shade(share: float) -> int:
    """Return the shade of a share, 0 to 10: by its square root, to make a few percent visible.

    >>> [shade(share) for share in (0, 0.001, 0.04, 0.25, 1)]
    [0, 1, 2, 5, 10]
    """
    return min(10, ceil(10 * sqrt(share) - 1e-9)) if is_number(share) and share > 0 else 0


def heat_map(matrix: Matrix, weights=None) -> dict:
    """Return the drawing of p(label | class): shades, names and numbers.

    `weights` are how many rows each label and each class has. With more than `MAX_DRAWN` names the
    heaviest are drawn.
    """
    n_classes, n_labels = matrix.proba.shape
    label_weights, class_weights = (None, None) if weights is None else weights
    rows, columns = _heaviest(class_weights, n_classes), _heaviest(label_weights, n_labels)
    part = matrix.take(rows, columns)
    drawing = _layout([name(c, 18) for c in part.classes], [name(s, 18) for s in part.labels])
    return drawing | {
        "strokes": _strokes(part.proba, merge=not drawing["numbered"]),
        "numbers": _numbers(part, drawing) if drawing["numbered"] else [],
        "left_out": (n_classes - len(rows), n_labels - len(columns)),
    }


def _heaviest(weights, n: int) -> list[int]:
    """Return the positions of the at most `MAX_DRAWN` heaviest of n names, in their order."""
    if n <= MAX_DRAWN:
        return list(range(n))
    weights = -np.arange(n) if weights is None else np.asarray(weights, dtype=float)
    return sorted(np.argsort(-weights, kind="stable")[:MAX_DRAWN].tolist())


def _layout(classes: Sequence[str], labels: Sequence[str]) -> dict:
    n_longest = max(len(classes), len(labels))
    longest_label = LETTER_WIDTH * max(map(width, labels))
    if n_longest <= MAX_WITH_INTERVALS:
        cell = (max(64, min(round(longest_label) + 12, 600 // len(labels))), 40)
    elif n_longest <= MAX_WITH_NUMBERS:
        cell = (27, 22)
    else:
        cell = (max(7, 780 // n_longest),) * 2
    slanted = longest_label > cell[0] - 6
    left = round(LETTER_WIDTH * max(*map(width, classes), 6) + 14)
    top = round(SLANT[1] * longest_label + 22) if slanted else 28
    overhang = round(SLANT[0] * longest_label) if slanted else 8
    return {
        "cell": cell,
        "left": left,
        "top": top,
        "width_cells": cell[0] * len(labels),
        "height_cells": cell[1] * len(classes),
        "width": left + cell[0] * len(labels) + overhang,
        "height": top + cell[1] * len(classes) + 4,
        "slanted": slanted,
        "numbered": n_longest <= MAX_WITH_NUMBERS,
        **_written_names(classes, labels, cell, left, top),
    }


def _written_names(classes, labels, cell, left, top) -> dict:
    """Return the names that have room: if neighbors would touch, every second or third one."""
    row_step, column_step = ceil(14 / cell[1]), ceil(20 / cell[0])
    rows = range(0, len(classes), row_step)
    # counted from the last label, which is often (unlabeled) and should keep its name
    columns = range(len(labels) - 1, -1, -column_step)[::-1]
    return {
        "row_names": [(top + cell[1] * (i + 0.5), classes[i]) for i in rows],
        "column_names": [(left + cell[0] * (i + 0.5), labels[i]) for i in columns],
    }


def _strokes(proba: np.ndarray, merge: bool) -> list[tuple[int, str]]:
    """Return one path of horizontal strokes per shade, in units of a cell.

    `merge` joins neighbors of one shade, which keeps the page of a large matrix small.
    """
    paths: dict[int, list[str]] = {}
    for y, row in enumerate(proba):
        x = 0
        for key, run in groupby(enumerate(row), lambda item: (shade(item[1]), not merge and item)):
            length = len(list(run))
            if key[0]:
                paths.setdefault(key[0], []).append(f"M{x} {y}h{length if merge else '.96'}")
            x += length
    return [(key, "".join(paths[key])) for key in sorted(paths)]


def _numbers(matrix: Matrix, drawing) -> list[tuple]:
    """Return x, y, number, interval and shade of each cell that is not 0."""
    (wide, tall), left, top = drawing["cell"], drawing["left"], drawing["top"]
    roomy = wide > 40
    found = []
    for (y, x), share in np.ndenumerate(matrix.proba):
        if not share > 0:
            continue
        low, high = matrix.low[y, x], matrix.high[y, x]
        between = _short_interval(low, high) if is_interval(low, high) else ""
        number = percent(share) if roomy else f"{100 * share:.0f}"
        center = (left + wide * (x + 0.48), top + tall * (y + 0.5))
        at = [round(coordinate, 1) for coordinate in center]
        found.append((*at, number, between if roomy else "", shade(share)))
    return found


def _short_interval(low, high) -> str:
    """Return an interval in percent that fits into a cell.

    >>> _short_interval(0.00001, 0.02), _short_interval(0.00001, 0.00002), _short_interval(0.1, 0.2)
    ('0–2', '<0.01', '10–20')
    """
    ends = ["0" if low < 1e-4 else percent(low)[:-1], percent(high)[:-1]]
    return ends[1] if high < 1e-4 else "–".join(ends)


# -------------------------------------------------------------------------------------------- flow


class Band(NamedTuple):
    """Expected rows with one label that are of one class."""

    n_rows: float
    label: int
    of_class: int
    is_right: bool  #: whether the label is right for that class


def flow(rows: np.ndarray, labels: Sequence, classes: Sequence, is_right) -> dict | None:
    """Return the drawing of rows from their labels to their classes, or None without rows.

    `rows` and `is_right` have shape (n_labels, n_classes). At most the `MAX_BANDS` largest bands
    are drawn; with many names only wrong labels, which the right ones would hide.
    """
    bands = [
        Band(float(n), s, y, bool(is_right[s, y])) for (s, y), n in np.ndenumerate(rows) if n >= 0.5
    ]
    only_wrong = max(len(labels), len(classes)) > MAX_WITH_INTERVALS
    candidates = [band for band in bands if not (only_wrong and band.is_right)]
    largest = sorted(candidates, reverse=True)[:MAX_BANDS]
    if not largest:
        return None
    drawn = sorted(largest, key=lambda band: (band.label, band.of_class))
    n_right = sum(band.n_rows for band in bands if band.is_right)
    return _flow_drawing(drawn, rows, labels, classes) | {
        "hidden_right": n_right if only_wrong else None,
        "rest": sum(band.n_rows for band in candidates) - sum(band.n_rows for band in drawn),
        "rest_bands": len(candidates) - len(drawn),
    }


def _flow_drawing(bands: list[Band], rows, labels, classes) -> dict:
    sides = [_nodes(bands, "label"), _nodes(bands, "of_class")]
    tall = min(480, max(160, 26 * max(map(len, sides))))
    scale = tall / sum(band.n_rows for band in bands)
    left, right = (_stack(side, scale) for side in sides)
    label_names, class_names = ([name(value, 16) for value in side] for side in (labels, classes))
    # as texts before the bands take up the room of their nodes
    left_nodes = _named(left, label_names, rows.sum(axis=1))
    right_nodes = _named(right, class_names, rows.sum(axis=0))
    x0 = _gutter(left_nodes)
    x1 = x0 + BANDS_WIDTH
    return {
        "width": x1 + _gutter(right_nodes),
        "x0": x0,
        "x1": x1,
        "height": max(_bottom(left), _bottom(right)) + 4,
        "bands": [
            (
                _band_path(band.n_rows * scale, left[band.label], right[band.of_class], x0, x1),
                band.is_right,
                f"{label_names[band.label]} to {class_names[band.of_class]}: "
                f"{count(band.n_rows)} rows",
            )
            for band in bands
        ],
        "left": left_nodes,
        "right": right_nodes,
    }


def _nodes(bands: list[Band], end: str) -> dict[int, float]:
    """Return the rows of each label or class, `end`, that has a band."""
    found: dict[int, float] = {}
    for band in bands:
        node = getattr(band, end)
        found[node] = found.get(node, 0) + band.n_rows
    return dict(sorted(found.items()))


def _stack(nodes: dict[int, float], scale: float) -> dict[int, list[float]]:
    """Return top, height and height taken by bands of each node, with room for its name."""
    found, y = {}, 4.0
    for node, n_rows in nodes.items():
        tall = n_rows * scale
        slot = max(tall, 18)
        found[node] = [y + (slot - tall) / 2, tall, 0.0]
        y += slot + 6
    return found


def _bottom(stack) -> float:
    top, tall, _ = list(stack.values())[-1]
    return round(max(top + tall, top + tall / 2 + 12), 1)


def _gutter(nodes) -> int:
    """Return the width that the names and numbers of one side need."""
    return round(max(LETTER_WIDTH * width(f"{node[2]} {node[3]}") for node in nodes) + 16)


def _band_path(thick, left, right, x0, x1) -> str:
    """Return the outline of a band, and take up its room in the nodes at both ends."""
    tops = []
    for node in (left, right):
        tops.append(node[0] + node[2])
        node[2] += thick
    (a, b), (c, d) = tops, [top + thick for top in tops]
    middle = (x0 + x1) / 2
    path = f"M{x0} {a:.1f}C{middle} {a:.1f} {middle} {b:.1f} {x1} {b:.1f}"
    return path + f"V{d:.1f}C{middle} {d:.1f} {middle} {c:.1f} {x0} {c:.1f}Z"


def _named(stack, names, totals) -> list[tuple]:
    return [
        (round(top, 1), round(max(tall, 1), 1), names[node], count(totals[node]))
        for node, (top, tall, _) in stack.items()
    ]


# ------------------------------------------------------------------------------------- calibration


def reliability(bins: Sequence[dict]) -> dict:
    """Return points of observed frequency over predicted probability, larger with more rows."""
    keys = ("confidence", "frequency")
    bins = [b for b in bins if b["count"] and all(is_number(b[key]) for key in keys)]
    largest = max((b["count"] for b in bins), default=1)
    points = [
        (
            round(48 + 280 * b["confidence"], 1),
            round(292 - 280 * b["frequency"], 1),
            round(3 + 7 * sqrt(b["count"] / largest), 1),
            f"predicted {percent(b['confidence'])}, observed {percent(b['frequency'])}, "
            f"{count(b['count'])} rows",
        )
        for b in bins
    ]
    return {"points": points, "line": " ".join(f"{x},{y}" for x, y, *_ in points)}
