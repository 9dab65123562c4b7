"""The parts of the page that rows with several answers have: consensus, annotators, agreement."""

from collections.abc import Mapping

from looselabels.auditing.report._list import MAX_ROWS, ListedNames, cells_of, left_out
from looselabels.auditing.report._words import (
    clean,
    count,
    enumeration,
    interval,
    is_interval,
    is_number,
    name,
    percent,
    plural,
    tuple_from_json,
)

MAX_ANNOTATORS = 100  # that are listed
MAX_CONFUSIONS = 3  # of each annotator
MAX_NAMES = 3  # of the annotators who gave one answer


# ------------------------------------------------------------------------------------ main numbers


def consensus_facts(content: Mapping) -> list[tuple[str, str, str]]:
    """Return the main numbers as (name, number, note)."""
    part, n_rows = content["consensus"], content["n_rows"]
    unanswered = f"{count(part['n_unanswered'])} without an answer" if part["n_unanswered"] else ""
    by = plural(content["n_annotators"], "annotator", "annotators")
    per_row = f"by {by}, {content['n_answers'] / n_rows:.1f} per row"
    settled = f"{percent(part['n_settled'] / n_rows)} of rows: {_settled(part)}"
    found = [
        ("Rows", count(n_rows), unanswered),
        ("Answers", count(content["n_answers"]), per_row),
        ("Settled", count(part["n_settled"]), settled),
        (
            "Probably wrong",
            count(part["expected_wrong"]),
            "expected rows with a wrong consensus",
        ),
    ]
    observed = (content.get("agreement") or {}).get("observed")
    if is_number(observed):
        found.append(("Agreement", percent(observed), "of two answers to one row"))
    return found


def _settled(part) -> str:
    return f"a probability of at least {percent(part['settled_from'])}"


# --------------------------------------------------------------------------------------- sections


def consensus_view(content: Mapping) -> dict:
    """Return what the template needs for the sections on annotators and agreement."""
    part = content["consensus"]
    return {
        "settled": _settled(part),
        "unlike_vote": _unlike_vote(part.get("n_unlike_vote")),
        "needs": _needs(part),
        "annotators": _annotators(content),
        "agreement": _agreement(content.get("agreement") or {}),
    }


def _unlike_vote(n) -> str:
    if not is_number(n):
        return ""
    return f"The consensus differs from the majority vote in {plural(n, 'row', 'rows')}."


def _needs(part) -> str:
    """Return how many open rows need how many answers; nothing if nobody can be asked.

    >>> _needs({"most": 10, "more_answers": [[1, 120], [2, 1], [None, 7]]})
    'Of the open rows, 120 need 1, 1 needs 2 and 7 need more than 10 answers.'
    """
    numbers = part.get("more_answers")
    if not numbers:
        return ""
    needs = [
        f"{plural(n_rows, 'needs', 'need')} {written_number(n, part['most'])}"
        for n, n_rows in numbers
    ]
    return f"Of the open rows, {enumeration(needs, 20, str)} answers."


def written_number(n, most) -> str:
    """Return a number of further answers; None stands for more than `most`.

    >>> written_number(2, 10), written_number(None, 10)
    ('2', 'more than 10')
    """
    return f"more than {most}" if n is None else f"{n:.0f}"


def _annotators(content) -> dict | None:
    """Return the annotators, the least accurate first; those without an accuracy are last."""
    found = content.get("annotators") or []
    if not found:
        return None
    ranked = sorted(found, key=lambda a: (not is_number(a["accuracy"]), a["accuracy"] or 0))
    rows = [
        {
            "name": a["name"],
            "answers": count(a["answers"]),
            "accuracy": percent(a["accuracy"]),
            "v": a["accuracy"],
            "interval": interval(a.get("low"), a.get("high")),
            "bar": round(100 * (a["accuracy"] or 0), 1),
            "whisker": _whisker(a.get("low"), a.get("high")),
            "confusions": _confusions(a),
        }
        for a in ranked[:MAX_ANNOTATORS]
    ]
    return {"rows": rows, "of": len(ranked), "file": clean(content.get("annotators_file") or "")}


def _whisker(low, high) -> tuple[float, float] | None:
    return (round(100 * low, 1), round(100 * high, 1)) if is_interval(low, high) else None


def _confusions(annotator) -> str:
    """Return which classes get which other labels, as shares of the answers."""
    found = (annotator.get("confusions") or ())[:MAX_CONFUSIONS]
    return "; ".join(f"{name(y)} as {name(s)} {percent(share)}" for y, s, share in found)


def _agreement(part) -> list[str]:
    """Return sentences on how often two answers to one row are equal."""
    if not is_number(part.get("observed")):
        return ["No row has two answers, so agreement cannot be measured."]
    found = [
        f"Of all {plural(part['n_pairs'], 'pair', 'pairs')} of answers to one row, "
        f"{percent(part['observed'])} are equal."
    ]
    if is_number(part.get("expected")):
        found.append(
            f"If annotators answer independently, {percent(part['expected'])} are expected from "
            "their accuracies and confusions."
        )
    if is_number(part.get("chance")):
        found.append(f"Answers that ignore the row would agree in {percent(part['chance'])}.")
    return found


# --------------------------------------------------------------------------------- the list of rows


def consensus_list(content: Mapping) -> dict:
    """Return the list of rows to ask about next as the template shows it."""
    part, rows = content["consensus"], (content.get("rows") or [])[:MAX_ROWS]
    consensus = ListedNames(row["consensus"] for row in rows)
    columns, cells = cells_of(content, rows)
    return {
        "positions": list(range(len(rows))),
        "unlabeled": False,
        "review": None,
        "id_name": name(content.get("id_name") or "Row (from 0)"),
        "id_note": clean(content.get("id_note") or ""),
        "how_many": _how_many(content, part["n_open"], len(rows)),
        "columns": columns,
        "left_out": left_out(content, rows),
        "asks": any("more_answers" in row for row in rows),
        "rows": [
            {
                "id": row["id"],
                "class_id": consensus.ids[tuple_from_json(row["consensus"])],
                "consensus": row["consensus"],
                "probability": row["probability"],
                "probabilities": row.get("probabilities")
                or [(row["consensus"], row["probability"])],
                "answers": _answers(row.get("answers") or ()),
                "more": written_number(row.get("more_answers"), part["most"]),
                "more_v": _sorted_by(row.get("more_answers"), part["most"]),
                "cells": shown,
            }
            for row, shown in zip(rows, cells, strict=True)
        ],
        "classes": consensus.options(),
    }


def _sorted_by(n, most):
    return most + 1 if n is None else n


def _how_many(content, n_open, n_listed) -> str:
    found = []
    if n_open > n_listed:
        found.append(f"{n_open:,} rows are open; this page lists the first {n_listed:,}.")
    if content.get("table_file"):
        found.append(f"{name(content['table_file'])} has all rows.")
    return " ".join(found)


def _answers(answers) -> list[str]:
    """Return each label of a row with those who gave it.

    >>> _answers([["cat", ["ann", "bob"]], ["dog", ["eve"]]])
    ['cat (ann and bob)', 'dog (eve)']
    """
    return [f"{name(label)} ({enumeration(who, MAX_NAMES)})" for label, who in answers]
