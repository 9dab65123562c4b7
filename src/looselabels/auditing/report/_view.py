"""The results of an audit, arranged as the template shows them."""

from collections.abc import Mapping
from functools import partial

import numpy as np

from looselabels.auditing.report import _charts as charts
from looselabels.auditing.report._charts import Matrix
from looselabels.auditing.report._consensus import (
    consensus_facts,
    consensus_list,
    consensus_view,
)
from looselabels.auditing.report._list import row_list
from looselabels.auditing.report._words import (
    SOURCE_NAMES,
    SOURCES,
    calibration_verdict,
    clean,
    count,
    counted_classes,
    enumeration,
    interval,
    is_about_consensus,
    is_about_unlabeled,
    is_interval,
    is_number,
    name,
    percent,
    printable,
    quoted,
    reviewed_sentence,
    transition_sentence,
    tuple_from_json,
    upper_end,
    verdict,
    warnings,
)
from looselabels.transition import guess_meanings, is_missing

MAX_CLASSES = 40  # in a table of classes
MAX_ENTRIES = 150  # in the table below a chart
MAX_DIFFERENCES = 12  # between what was assumed and what was estimated
SMALLEST_DIFFERENCE = 0.005  # that is listed; smaller ones disappear by rounding
MAX_IGNORED = 30  # ignored columns that are listed
MAX_VARIANTS = 20  # groups of spellings that are listed
MAX_COMMAND = 20_000  # letters; a command that was cut would do something else


def view(content: Mapping) -> dict:
    """Return what the template needs, by section; None where a section has no content."""
    flows, has_answers = _flows(content), is_about_consensus(content)
    return {
        "verdict": verdict(content),
        "data": content.get("data"),
        "label_column": content.get("label_column"),
        "rests": _rests(content),
        "list": consensus_list(content) if has_answers else row_list(content),
        "consensus": consensus_view(content) if has_answers else None,
        "shares": _shares(content.get("classes") or []),
        "transition": _transition(content),
        "flows": flows,
        "flow_table": _flow_table(content) if flows else None,
        "calibration": _calibration(content),
        "reproduce": _reproduce(content.get("reproduce")),
        "version": content.get("looselabels"),
    }


# --------------------------------------------------------------------------- what it is based on


def facts(content: Mapping) -> list[tuple[str, str, str]]:
    """Return the main numbers as (name, number, note)."""
    if is_about_consensus(content):
        return consensus_facts(content)
    classes = [_class_fact(part) for part in counted_classes(content)[:MAX_CLASSES]]
    return [*_sizes(content), *classes, *_wrong_facts(content)]


def _sizes(content) -> list[tuple[str, str, str]]:
    n_rows, n_labeled = content["n_rows"], content["n_labeled"]
    sizes = [
        ("Rows", count(n_rows), ""),
        ("Labeled", count(n_labeled), f"{percent(n_labeled / n_rows)} of rows" if n_rows else ""),
    ]
    if is_number(content.get("label_accuracy")):
        accuracy = percent(content["label_accuracy"])
        note = f"correctly, by a {_chosen(content)}model that has not seen the row"
        sources = (content.get("source_accuracy") or ())[:MAX_CLASSES]
        if sources:
            parts = ", ".join(f"{name(source)} {percent(share)}" for source, share in sources)
            note += f" but knows its source: {parts}"
        sizes.append(("Labels predicted", accuracy, note))
    return sizes


def _chosen(content) -> str:
    """Return the kind of model that predicted the labels best, if there was a choice."""
    losses = content.get("candidate_losses") or {}
    if len(losses) < 2 or "estimator" in losses:  # the user has chosen
        return ""
    return f"{min(losses, key=lambda name: losses[name])} "


def _class_fact(part) -> tuple[str, str, str]:
    number, note = _number(part)
    return f"Probably {quoted(part['name'])}", number, f"unlabeled; {note}" if note else "unlabeled"


def _wrong_facts(content) -> list[tuple[str, str, str]]:
    n_labeled, wrong = content["n_labeled"], content["wrong"]
    if not is_number(wrong["expected"]):
        return []
    number, note = _number(wrong)
    has_share = n_labeled and upper_end(wrong) is None
    share = [f"{percent(wrong['expected'] / n_labeled)} of labels"] if has_share else []
    words = "Wrong" if wrong.get("n_reviewed") == n_labeled else "Probably wrong"
    found = [(words, number, "; ".join(filter(None, [*share, note])))]
    if wrong["doubted"]:
        note = "more likely wrong than right"
        if is_about_unlabeled(content):  # the list is about other rows
            note += "; see the column doubt of labels.csv"
        found.append(("Check first", count(wrong["doubted"]), note))
    return found


def _number(part) -> tuple[str, str]:
    """Return an estimated number of rows and a note; if it can be zero, only its upper end."""
    most = upper_end(part)
    if most is None:
        between = interval(part.get("low"), part.get("high"), count)
        return count(part["expected"]), between and f"90% interval: {between}"
    return (
        (f"at most {count(most)}", "upper end of the 90% interval") if most else ("none found", "")
    )


def _rests(content) -> dict:
    """Return what the verdict is based on: facts, warnings, assumptions and their sources."""
    sources, design = content.get("sources") or {}, content.get("design") or {}
    sentences = [clean(sentence) for sentence in design.get("words", ())]
    if sources.get("label_rates") == "estimated":
        sentences.append("How often each class is labeled was not assumed, but estimated.")
    counted, why_no_count = counted_classes(content), content.get("wrong", {}).get("why_no_count")
    if why_no_count and clean(why_no_count) != verdict(content):
        sentences.append(clean(why_no_count))
    has_table = len(counted) > 1  # which has what `facts` says about classes
    return {
        "facts": [*_sizes(content), *_wrong_facts(content)] if has_table else facts(content),
        "classes": _counts(counted) if has_table else None,
        "warnings": warnings(content),
        "variants": _variants(content.get("variants") or []),
        "reviewed": reviewed_sentence(content),
        "sentences": sentences,
        "columns": _columns(content.get("columns")),
        "sources": [
            (written, SOURCES.get(sources[key], clean(sources[key], 40)))
            for key, written in SOURCE_NAMES.items()
            if key in sources
        ],
    }


def _counts(classes) -> dict:
    rows = [(name(part["name"]), *_number(part)) for part in classes]
    return {"rows": rows[:MAX_CLASSES], "more": max(len(rows) - MAX_CLASSES, 0)}


def _variants(variants) -> dict:
    """Return sentences on spellings of one label, and the command that merges all of them."""
    found = [
        f"{enumeration(part['labels'], write=quoted)} may be spellings of one label."
        for part in variants[:MAX_VARIANTS]
    ]
    command = variants[0].get("command") if variants else None
    return {
        "found": found,
        "more": max(len(variants) - MAX_VARIANTS, 0),
        "command": printable(command or "", MAX_COMMAND),
    }


# ---------------------------------------------------------------------------------------- matrices


def _used_matrix(content) -> Matrix | None:
    return Matrix.from_json(content.get("transition"))


def _assumed_matrix(content) -> Matrix | None:
    """Return the transition before anything was estimated, or None if none was specified."""
    used = _used_matrix(content)
    # summary.json of 0.1 has no sources, and holds the estimate in the place of the assumption
    if "sources" not in content and used is not None and used.has_intervals:
        return None
    return Matrix.from_json(content.get("design"))


def _row_counts(content, matrix: Matrix):
    """Return the expected rows of each label and of each class, if these are known."""
    rows = np.asarray(content.get("flow") or [], dtype=float)
    return (rows.sum(axis=1), rows.sum(axis=0)) if rows.shape == matrix.proba.T.shape else None


def _transition(content) -> dict | None:
    """Return how labels arise: one heat map, and how far it differs from what was assumed."""
    used, assumed = _used_matrix(content), _assumed_matrix(content)
    matrix = assumed if used is None else used
    if matrix is None:
        return None
    estimated = "estimated" if matrix.has_intervals else None
    source = (content.get("sources") or {}).get("transition") or estimated
    return {
        "sentence": transition_sentence(source),
        "map": charts.heat_map(matrix, _row_counts(content, matrix)),
        "table": _entries(matrix),
        "differences": _differences(matrix, assumed),
    }


def _differences(used: Matrix, assumed: Matrix | None) -> list[tuple]:
    """Return (class, label, assumed, used, interval) of the largest differences."""
    if assumed is None or assumed.proba.shape != used.proba.shape:
        return []
    sizes = np.abs(used.proba - assumed.proba)
    n_found = min(MAX_DIFFERENCES, np.count_nonzero(sizes > SMALLEST_DIFFERENCE))
    order = np.argsort(-sizes, axis=None, kind="stable")[:n_found]
    cells = [np.unravel_index(i, sizes.shape) for i in sorted(order.tolist())]
    entries = [_entry(used, *cell) for cell in cells]
    return [
        (*entry[:2], percent(assumed.proba[cell]), *entry[2:])
        for cell, entry in zip(cells, entries, strict=True)
    ]


def _entries(matrix: Matrix) -> dict:
    """Return the largest entries of a matrix as (class, label, share, interval), by class."""
    proba = matrix.proba
    order = np.argsort(-proba, axis=None, kind="stable")[: np.count_nonzero(proba > 0)]
    found = [np.unravel_index(i, proba.shape) for i in sorted(order[:MAX_ENTRIES].tolist())]
    rows = [_entry(matrix, y, s) for y, s in found]
    return {"rows": rows, "of": len(order), "intervals": any(row[3] for row in rows)}


def _entry(matrix: Matrix, y, s) -> tuple[str, str, str, str]:
    """Return class, label, share and interval of one cell."""
    between = interval(matrix.low[y, s], matrix.high[y, s])
    return name(matrix.classes[y]), name(matrix.labels[s]), percent(matrix.proba[y, s]), between


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


def _flows(content) -> list[dict]:
    """Return one drawing of the labeled rows and one of the others, each with its own scale."""
    parts, matrix = _flow_rows(content), _used_matrix(content) or _assumed_matrix(content)
    if parts is None or matrix is None:
        return []
    rows, labels, classes = parts
    is_right = content.get("is_right")  # summary.json of 0.1 lacks it
    is_right = guess_meanings(matrix) if is_right is None else np.asarray(is_right, dtype=bool)
    is_unlabeled = is_right.all(axis=1)  # a label that is right for every class cannot be wrong
    if is_unlabeled.all():
        is_unlabeled = np.array(list(map(is_missing, labels)))
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
    command, seed = printable(reproduce.get("command") or ""), reproduce.get("seed")
    return {"command": command, "seed": seed, "versions": reproduce.get("versions") or {}}
