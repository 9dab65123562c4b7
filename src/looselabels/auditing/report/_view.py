"""What an audit found, as the template shows it."""

from collections import Counter
from collections.abc import Mapping
from functools import partial

import numpy as np

from looselabels.auditing.report import _charts as charts
from looselabels.auditing.report._words import (
    calibration_verdict,
    count,
    interval,
    known,
    name,
    percent,
    plain,
    text,
    verdict,
    warnings,
)

MOST_ROWS = 500
MOST_CLASSES = 40  # in the table of shares
MOST_ENTRIES = 150  # in the table beside a chart


def view(content: Mapping) -> dict:
    """Return everything the template needs, section by section; None where there is nothing."""
    flows = _flows(content)
    return {
        "verdict": verdict(content),
        "facts": _facts(content),
        "warnings": warnings(content),
        "data": content.get("data"),
        "label_column": content.get("label_column"),
        "design": _design(content),
        "columns": _columns(content.get("columns")),
        "shares": _shares(content.get("classes") or []),
        "transition": _transition(content),
        "doubts": _doubts(content.get("rows") or []),
        "flows": flows,
        "moves": _moves(content) if flows else None,
        "calibration": _calibration(content),
        "reproduce": _reproduce(content.get("reproduce")),
        "version": content.get("looselabels"),
    }


def _facts(content) -> list[tuple[str, str, str]]:
    n_rows, labeled, wrong = content["n_rows"], content["n_labeled"], content["wrong"]
    share = f"{percent(labeled / n_rows)} of the rows" if n_rows else ""
    between = interval(wrong.get("low"), wrong.get("high"), count)
    return [
        ("Rows", count(n_rows), ""),
        ("Labeled", count(labeled), share),
        ("Probably wrong", count(wrong["expected"]), between),
        ("Worth a look first", count(wrong["doubted"]), "more likely wrong than right"),
    ]


# ---------------------------------------------------------------------------------------- matrices


def _weights(content):
    """Return how many rows each label and each class of the design has, where it is known."""
    rows = np.asarray(content.get("flow") or [], dtype=float)
    return (rows.sum(axis=1), rows.sum(axis=0)) if rows.size else None


def _design(content) -> dict | None:
    design = content.get("design")
    if design is None:
        return None
    words = [text(sentence) for sentence in design.get("words", ())]
    if not design.get("proba"):
        return {"words": words, "map": None, "table": None}
    drawn = charts.heat_map(design, _weights(content))
    return {"words": words, "map": drawn, "table": _entries(design)}


def _transition(content) -> dict | None:
    used, design = content.get("transition"), content.get("design") or {}
    if not used or not used.get("proba"):
        return None
    same_names = all(plain(used[key]) == plain(design.get(key)) for key in ("classes", "labels"))
    low, high = (used.get(key, used["proba"]) for key in ("low", "high"))
    told = np.array_equal(low, high) and np.array_equal(used["proba"], design.get("proba", ()))
    if same_names and told:
        return {"told": True}
    weights = _weights(content) if same_names else None
    return {"told": False, "map": charts.heat_map(used, weights), "table": _entries(used)}


def _entries(matrix) -> dict:
    """Return the largest entries of a matrix as (class, label, share, interval), by class."""
    proba = np.asarray(matrix["proba"], dtype=float)
    bounds = [np.asarray(matrix.get(key) or proba, dtype=float) for key in ("low", "high")]
    order = np.argsort(-proba, axis=None, kind="stable")[: np.count_nonzero(proba > 0)]
    found = [np.unravel_index(i, proba.shape) for i in sorted(order[:MOST_ENTRIES].tolist())]
    rows = [
        (
            name(matrix["classes"][y]),
            name(matrix["labels"][s]),
            percent(proba[y, s]),
            interval(bounds[0][y, s], bounds[1][y, s]),
        )
        for y, s in found
    ]
    return {"rows": rows, "of": len(order), "intervals": any(row[3] for row in rows)}


# --------------------------------------------------------------------------------- classes and flow


def _shares(classes) -> dict | None:
    if not classes:
        return None
    ranked = sorted(classes, key=lambda c: -c["share"]) if len(classes) > MOST_CLASSES else classes
    kept, rest = ranked[:MOST_CLASSES], ranked[MOST_CLASSES:]
    ends = [value for c in kept for value in (c["share"], c.get("high")) if known(value)]
    most = max([*ends, 1e-9])
    show = partial(percent, digits=1) if most < 0.15 else percent
    rows = [
        {
            "name": c["name"],
            "share": show(c["share"]),
            "interval": interval(c.get("low"), c.get("high"), show),
            "bar": round(100 * c["share"] / most, 1),
            "whisker": _whisker(c, most),
        }
        for c in kept
    ]
    return {"rows": rows, "more": len(rest), "more_share": percent(sum(c["share"] for c in rest))}


def _whisker(shares, most) -> tuple[float, float] | None:
    low, high = shares.get("low"), shares.get("high")
    if not (known(low) and known(high) and low < high):
        return None
    return round(100 * low / most, 1), round(100 * high / most, 1)


def _flow_parts(content):
    design, rows = content.get("design"), np.asarray(content.get("flow") or [], dtype=float)
    if design is None or not rows.size:
        return None
    return rows, design["labels"], design["classes"]


def _flows(content) -> list[dict]:
    """Return one drawing of the labeled rows and one of the rest, each at its own scale."""
    parts = _flow_parts(content)
    if parts is None:
        return []
    rows, labels, classes = parts
    found = []
    for title, unlabeled in (("Rows with a label", False), ("Rows without a label", True)):
        kept = [s for s, label in enumerate(labels) if charts.missing(label) == unlabeled]
        drawn = charts.flow(rows[kept], [labels[s] for s in kept], classes) if kept else None
        if drawn:
            found.append({"title": title, "unlabeled": unlabeled, **drawn})
    return found


def _moves(content) -> dict:
    """Return the largest numbers of rows as (label, class, rows)."""
    rows, labels, classes = _flow_parts(content)
    order = np.argsort(-rows, axis=None, kind="stable")[: np.count_nonzero(rows >= 0.5)]
    found = [np.unravel_index(i, rows.shape) for i in order[:MOST_ENTRIES]]
    entries = [(name(labels[s]), name(classes[y]), count(rows[s, y])) for s, y in found]
    return {"rows": entries, "of": len(order)}


# ------------------------------------------------------------------------------------ the rest


def _doubts(rows) -> dict:
    kept = rows[:MOST_ROWS]
    filters = {}
    for key in ("label", "suggestion"):
        counts = Counter(plain(row[key]) for row in kept)
        filters[key] = {found: i for i, found in enumerate(counts)}, counts
    shown = [
        {
            **row,
            "label_id": filters["label"][0][plain(row["label"])],
            "class_id": filters["suggestion"][0][plain(row["suggestion"])],
        }
        for row in kept
    ]
    return {
        "rows": shown,
        "labels": _options(*filters["label"]),
        "classes": _options(*filters["suggestion"]),
    }


def _options(ids, counts) -> list[tuple[int, str, int]]:
    """Return number, name and rows of each name, as a menu lists them."""
    options = [(i, name(found), counts[found]) for found, i in ids.items()]
    return sorted(options, key=lambda option: option[1].casefold())


def _columns(columns) -> dict | None:
    if columns is None:
        return None
    ignored = [(name(c["name"]), text(c["why"], 100)) for c in columns.get("ignored", ())]
    return {"used": columns.get("used"), "ignored": ignored[:30], "more": max(len(ignored) - 30, 0)}


def _calibration(content) -> dict | None:
    calibration, infeasible = content.get("calibration"), content.get("infeasible")
    if not calibration or not calibration.get("bins"):
        return None
    return {
        **charts.reliability(calibration["bins"]),
        "bins": calibration["bins"],
        "verdict": calibration_verdict(calibration.get("error")),
        "infeasible": percent(infeasible) if known(infeasible) and infeasible > 0 else "",
    }


def _reproduce(reproduce) -> dict | None:
    if not reproduce:
        return None
    command, seed = reproduce.get("command"), reproduce.get("seed")
    return {"command": command, "seed": seed, "versions": reproduce.get("versions") or {}}
