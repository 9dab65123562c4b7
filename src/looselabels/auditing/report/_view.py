"""The results of an audit, arranged as the template shows them."""

from collections import Counter
from collections.abc import Mapping
from functools import partial

import numpy as np

from looselabels.auditing.report import _charts as charts
from looselabels.auditing.report._charts import Matrix
from looselabels.auditing.report._words import (
    SOURCE_NAMES,
    SOURCES,
    calibration_verdict,
    clean,
    count,
    interval,
    is_interval,
    is_number,
    max_wrong,
    name,
    percent,
    transition_sentence,
    tuple_from_json,
    verdict,
    warnings,
)
from looselabels.transition import meanings

MAX_ROWS = 500  # on the page
MAX_CLASSES = 40  # in the table of class shares
MAX_ENTRIES = 150  # in the table below a chart
MAX_IGNORED = 30  # ignored columns that are listed


def view(content: Mapping) -> dict:
    """Return what the template needs, by section; None where a section has no content."""
    used, is_right = Matrix.from_json(content.get("transition")), _is_right(content)
    assumed = _assumed_matrix(content, used)
    flows = _flows(content, is_right)
    return {
        "verdict": verdict(content),
        "facts": facts(content),
        "warnings": warnings(content),
        "data": content.get("data"),
        "label_column": content.get("label_column"),
        "design": _design(content, assumed),
        "columns": _columns(content.get("columns")),
        "shares": _shares(content.get("classes") or []),
        "transition": _transition(content, used, assumed),
        "doubts": _doubts(content.get("rows") or []),
        "flows": flows,
        "flow_table": _flow_table(content) if flows else None,
        "calibration": _calibration(content),
        "reproduce": _reproduce(content.get("reproduce")),
        "version": content.get("looselabels"),
    }


def facts(content: Mapping) -> list[tuple[str, str, str]]:
    """Return the main numbers as (name, number, note)."""
    n_rows, n_labeled, wrong = content["n_rows"], content["n_labeled"], content["wrong"]
    sizes = [
        ("Rows", count(n_rows), ""),
        ("Labeled", count(n_labeled), f"{percent(n_labeled / n_rows)} of rows" if n_rows else ""),
    ]
    if is_number(content.get("label_accuracy")):
        accuracy = percent(content["label_accuracy"])
        note = f"correctly, by a {_chosen(content)}model without the row"
        sizes.append(("Labels predicted", accuracy, note))
    if not is_number(wrong["expected"]):
        return sizes
    return [
        *sizes,
        ("Probably wrong", *_number_wrong(wrong)),
        ("Check first", count(wrong["doubted"]), "more likely wrong than right"),
    ]


def _chosen(content) -> str:
    """Return the kind of model that predicted the labels best, if there was a choice."""
    losses = content.get("candidate_losses") or {}
    return f"{min(losses, key=lambda name: losses[name])} " if len(losses) > 1 else ""


def _number_wrong(wrong) -> tuple[str, str]:
    """Return the number of wrong labels and a note; if it can be zero, only its upper end."""
    most = max_wrong(wrong)
    if most is None:
        between = interval(wrong.get("low"), wrong.get("high"), count)
        return count(wrong["expected"]), between and f"90% interval: {between}"
    return (
        (f"at most {count(most)}", "upper end of the 90% interval") if most else ("none found", "")
    )


# ---------------------------------------------------------------------------------------- matrices


def _is_right(content) -> np.ndarray | None:
    """Return which labels are right for which classes, (n_labels, n_classes)."""
    matrix = Matrix.from_json(content.get("transition")) or Matrix.from_json(content.get("design"))
    return None if matrix is None else meanings(matrix)


def _assumed_matrix(content, used: Matrix | None) -> Matrix | None:
    """Return the transition before anything was estimated, or None if it was left open."""
    assumed = Matrix.from_json(content.get("design"))
    # summary.json of 0.1 has no sources, and holds the estimate in the place of the assumption
    if "sources" not in content and used is not None and used.has_intervals:
        return None
    return assumed


def _row_counts(content, matrix: Matrix):
    """Return the expected rows of each label and of each class, if these are known."""
    rows = np.asarray(content.get("flow") or [], dtype=float)
    return (rows.sum(axis=1), rows.sum(axis=0)) if rows.shape == matrix.proba.T.shape else None


def _design(content, assumed: Matrix | None) -> dict | None:
    design = content.get("design")
    if design is None:
        return None
    sentences = [clean(sentence) for sentence in design.get("words", ())]
    if (content.get("sources") or {}).get("label_rates") == "estimated":
        sentences.append("How often each class is labeled was not assumed, but estimated.")
    if not sentences and assumed is None and content.get("columns") is None:
        return None
    return {"words": sentences} | _drawn(content, assumed)


def _transition(content, used: Matrix | None, assumed: Matrix | None) -> dict | None:
    if used is None:
        return None
    sources = content.get("sources") or {}
    source = sources.get("transition") or ("estimated" if used.has_intervals else None)
    repeats = source != "estimated" and assumed is not None
    return {
        "sentence": transition_sentence(source),
        "repeats": repeats,
        "sources": [
            (written, SOURCES.get(sources[key], clean(sources[key], 40)))
            for key, written in SOURCE_NAMES.items()
            if key in sources
        ],
    } | _drawn(content, None if repeats else used)


def _drawn(content, matrix: Matrix | None) -> dict:
    if matrix is None:
        return {"map": None, "table": None}
    drawing = charts.heat_map(matrix, _row_counts(content, matrix))
    return {"map": drawing, "table": _entries(matrix)}


def _entries(matrix: Matrix) -> dict:
    """Return the largest entries of a matrix as (class, label, share, interval), by class."""
    proba = matrix.proba
    order = np.argsort(-proba, axis=None, kind="stable")[: np.count_nonzero(proba > 0)]
    found = [np.unravel_index(i, proba.shape) for i in sorted(order[:MAX_ENTRIES].tolist())]
    rows = [
        (
            name(matrix.classes[y]),
            name(matrix.labels[s]),
            percent(proba[y, s]),
            interval(matrix.low[y, s], matrix.high[y, s]),
        )
        for y, s in found
    ]
    return {"rows": rows, "of": len(order), "intervals": any(row[3] for row in rows)}


# --------------------------------------------------------------------------------- classes and flow


def _shares(classes) -> dict | None:
    if not classes:
        return None
    ranked = sorted(classes, key=lambda c: -c["share"]) if len(classes) > MAX_CLASSES else classes
    kept, rest = ranked[:MAX_CLASSES], ranked[MAX_CLASSES:]
    ends = [value for c in kept for value in (c["share"], c.get("high")) if is_number(value)]
    largest = max([*ends, 1e-9])
    write = partial(percent, digits=1) if largest < 0.15 else percent
    rows = [
        {
            "name": c["name"],
            "share": write(c["share"]),
            "interval": interval(c.get("low"), c.get("high"), write),
            "bar": round(100 * c["share"] / largest, 1),
            "whisker": _whisker(c.get("low"), c.get("high"), largest),
        }
        for c in kept
    ]
    return {"rows": rows, "more": len(rest), "more_share": percent(sum(c["share"] for c in rest))}


def _whisker(low, high, largest) -> tuple[float, float] | None:
    """Return where the line of an interval starts and ends, in percent of the longest bar."""
    if not is_interval(low, high):
        return None
    return round(100 * low / largest, 1), round(100 * high / largest, 1)


def _flow_rows(content):
    """Return the expected rows (n_labels, n_classes) with the names of labels and classes."""
    design, rows = content.get("design"), np.asarray(content.get("flow") or [], dtype=float)
    if design is None or not rows.size:
        return None
    return rows, *([tuple_from_json(n) for n in design[key]] for key in ("labels", "classes"))


def _flows(content, is_right) -> list[dict]:
    """Return one drawing of the labeled rows and one of the others, each with its own scale."""
    parts = _flow_rows(content)
    if parts is None or is_right is None:
        return []
    rows, labels, classes = parts
    is_unlabeled = is_right.all(axis=1)  # a label that is right for every class cannot be wrong
    found = []
    for title, unlabeled in (("Rows with a label", False), ("Rows without a label", True)):
        kept = np.flatnonzero(is_unlabeled == unlabeled)
        if not kept.size:
            continue
        right = is_right[kept] & (not unlabeled)
        drawn = charts.flow(rows[kept], [labels[s] for s in kept], classes, right)
        if drawn:
            found.append({"title": title, "unlabeled": unlabeled, **drawn})
    return found


def _flow_table(content) -> dict:
    """Return the largest numbers of rows as (label, class, rows)."""
    rows, labels, classes = _flow_rows(content)
    order = np.argsort(-rows, axis=None, kind="stable")[: np.count_nonzero(rows >= 0.5)]
    found = [np.unravel_index(i, rows.shape) for i in order[:MAX_ENTRIES]]
    entries = [(name(labels[s]), name(classes[y]), count(rows[s, y])) for s, y in found]
    return {"rows": entries, "of": len(order)}


# ------------------------------------------------------------------------------- the other sections


def _doubts(rows) -> dict:
    """Return the rows with the numbers that the two filters know their names by."""
    kept = rows[:MAX_ROWS]
    counts = {
        key: Counter(tuple_from_json(row[key]) for row in kept) for key in ("label", "suggestion")
    }
    ids = {key: {value: i for i, value in enumerate(counts[key])} for key in counts}
    shown = [
        {
            **row,
            "label_id": ids["label"][tuple_from_json(row["label"])],
            "class_id": ids["suggestion"][tuple_from_json(row["suggestion"])],
        }
        for row in kept
    ]
    labels, classes = (_options(counts[key]) for key in ("label", "suggestion"))
    return {"rows": shown, "labels": labels, "classes": classes}


def _options(counts: Counter) -> list[tuple[int, str, int]]:
    """Return number, name and rows of each value, in the order of a menu."""
    options = [(i, name(value), n) for i, (value, n) in enumerate(counts.items())]
    return sorted(options, key=lambda option: option[1].casefold())


def _columns(columns) -> dict | None:
    if columns is None:
        return None
    ignored = [(name(c["name"]), clean(c["why"], 100)) for c in columns.get("ignored", ())]
    return {
        "used": columns.get("used"),
        "ignored": ignored[:MAX_IGNORED],
        "more": max(len(ignored) - MAX_IGNORED, 0),
    }


def _calibration(content) -> dict | None:
    calibration, infeasible = content.get("calibration"), content.get("infeasible")
    if not calibration or not calibration.get("bins"):
        return None
    return {
        **charts.reliability(calibration["bins"]),
        "bins": calibration["bins"],
        "verdict": calibration_verdict(calibration.get("error")),
        "infeasible": percent(infeasible) if is_number(infeasible) and infeasible > 0 else "",
    }


def _reproduce(reproduce) -> dict | None:
    if not reproduce:
        return None
    command, seed = reproduce.get("command"), reproduce.get("seed")
    return {"command": command, "seed": seed, "versions": reproduce.get("versions") or {}}
