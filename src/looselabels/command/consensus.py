"""The results of an audit of several answers per row: two tables, the page, and two JSON files."""

from collections import Counter
from pathlib import Path

import numpy as np

from looselabels._names import shown
from looselabels.auditing.consensus import ConsensusAudit
from looselabels.auditing.more_answers import MOST
from looselabels.auditing.pages import MAX_SHOWN, most_probable
from looselabels.auditing.report import render
from looselabels.command.features import Features
from looselabels.command.identity import Identity
from looselabels.command.results import about_run, cells_of, to_json, without_rows
from looselabels.command.spelling import spelling_variants
from looselabels.command.tables import add_columns, pd, values_of_one_type
from looselabels.command.writing import table_writer

ANNOTATORS = "annotators.csv"


def page_content(found: ConsensusAudit, data, command, notes, features: Features | None, seed):
    """Return the content of the page and of summary.json, without the rows.

    The parameters are those of `results.page_content`; without features, the classes follow from
    the answers alone.
    """
    content = found.summary() | about_run(found, data, command, notes, features, seed)
    answers, labels = found.annotations.answers, found.annotations.labels
    counts = Counter(labels[s] for s in answers.label.tolist())
    return content | {
        "design": {"words": describe(found, features)},
        "variants": spelling_variants(counts, command),
        "annotators_file": ANNOTATORS,
    }


def describe(found: ConsensusAudit, features: Features | None) -> list[str]:
    """Return sentences on what was assumed about the answers."""
    silence = (
        "A missing answer means that the annotator was not asked. It says nothing about the class."
    )
    if found.annotations.answers.missing_label is not None:
        silence = (
            "You specified that a missing answer is a label: it says something about the class."
        )
    learned = "The features of a row and its answers are combined: p(class | x, answers)."
    return [
        silence,
        "Each annotator has a transition of their own. With few answers, it is close to that of a "
        "typical annotator.",
        learned if features else "There are no features: classes follow from the answers alone.",
        "Annotators are assumed to answer independently of each other, given the class.",
    ]


def list_content(found: ConsensusAudit, frame, identity: Identity, columns, suffix) -> dict:
    """Return the rows to ask about next: how each is named, its cells, its answers."""
    records = found.records(min(MAX_SHOWN, int(found.is_open.sum())))
    rows = [record["row"] for record in records]
    return {
        "id_name": identity.name,
        "id_note": identity.note,
        "shown_columns": list(columns),
        "table_file": f"labels{suffix}",
        "rows": [
            record
            | {"id": identity.ids[record["row"]], "cells": cells}
            | {"probabilities": most_probable(found, record["row"])}
            for record, cells in zip(records, cells_of(frame, rows, columns), strict=True)
        ],
    }


def with_consensus(frame, found: ConsensusAudit):
    """Return the table with the consensus of each row, and how many answers it has and needs."""
    columns = {
        "consensus": values_of_one_type(found.transition.classes)[found.consensus],
        "probability": found.probability,
        "n_answers": found.annotations.answers.n_answers,
    }
    if found.more_answers is not None:  # as text: there is no number above `MOST`
        is_more = np.isinf(found.more_answers)
        numbers = np.where(is_more, 0, found.more_answers).astype(int).astype(str)
        columns["more_answers"] = np.where(is_more, f">{MOST}", numbers)
    return add_columns(frame, columns)


def annotators_table(found: ConsensusAudit):
    """Return a table with one row per annotator."""
    names = ("answers", "accuracy", "low", "high")
    columns = {name: [one[name] for one in found.annotators] for name in names}
    confusions = [
        "; ".join(f"{shown(y)} as {shown(s)} {share:.1%}" for y, s, share in one["confusions"])
        for one in found.annotators
    ]
    people = values_of_one_type(found.annotations.annotators)
    copied = [one.get("copy_of") for one in found.annotators]
    copy_of = [None if name is None else shown(name) for name in copied]
    columns |= {"confusions": confusions, "copy_of": copy_of}
    return pd.DataFrame({"annotator": people, **columns})


def write_consensus(folder: Path, content, found: ConsensusAudit, frame, *, images, excel_safe):
    """Write all results except the model to `folder`; the parameters are those of `write_audit`."""
    with table_writer(folder / content["table_file"], excel_safe=excel_safe) as write:
        write(with_consensus(frame, found))
    with table_writer(folder / ANNOTATORS, excel_safe=excel_safe) as write:
        write(annotators_table(found))
    (folder / "report.html").write_text(render(content, images), encoding="utf-8")
    (folder / "transition.json").write_text(found.transition.to_json(), encoding="utf-8")
    (folder / "summary.json").write_text(to_json(without_rows(content)), encoding="utf-8")
