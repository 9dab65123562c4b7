"""Contents for the page: hostile or extreme ones made by hand, and those of real audits."""

import json
from collections import Counter
from html.parser import HTMLParser

import numpy as np

SCRIPT = '<script>document.title="x"</script>'
HOSTILE = [
    SCRIPT,
    "</script><script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "\"' onmouseover='alert(1)",
    "{{ 7 * 7 }}{% raw %}",
    "gnp.\u202efdp",
    "\x1b[31mred\x1b[0m",
    "x" * 10_000,
    "",
    "  ",
    "</style></svg>]]>-->",
    "\ud800",
]


def content_of(found, n_rows=40):
    """Return the content of a real audit as the page gets it from summary.json."""
    return json.loads(json.dumps(found.summary() | {"rows": found.records(n_rows)}))


def minimal_content():
    """Return the least that a page can be made of."""
    return {
        "n_rows": 10,
        "n_labeled": 5,
        "wrong": {"expected": 1.0, "low": 0, "high": 2, "doubted": 1},
    }


def made_up_content(names, unlabeled=True, n_rows=40):
    """Return content with all sections, whatever the names are; its numbers mean nothing."""
    rng = np.random.default_rng(0)
    names, labels = list(names), [*names, *([None] if unlabeled else [])]
    proba = rng.dirichlet(np.ones(len(labels)), len(names))
    share = rng.dirichlet(np.ones(len(names)))
    matrix = {"classes": names, "labels": labels, "proba": proba.tolist()}
    interval = {"low": (0.9 * proba).tolist(), "high": (proba + 0.1 * (1 - proba)).tolist()}
    doubts = np.sort(rng.random(n_rows))[::-1]
    rows = [
        {
            "row": int(rng.integers(1000)),
            "label": names[rng.integers(len(names))],
            "suggestion": names[rng.integers(len(names))],
            "class_proba": rng.random(),
            "label_proba": rng.random(),
            "doubt": doubt,
            "why": f"looks like {names[0]}",
        }
        for doubt in doubts.tolist()
    ]
    return {
        "schema": 1,
        "looselabels": "0.1.0",
        "data": "animals.csv",
        "label_column": "species",
        "n_rows": 1797,
        "n_labeled": 180,
        "design": {"words": ["Labels are missing at random."], **matrix},
        "sources": dict.fromkeys(
            ("label_rates", "noise", "class_prior", "transition"), "estimated"
        ),
        "classes": [
            {"name": name, "share": s, "low": 0.9 * s, "high": 1.1 * s}
            for name, s in zip(names, share.tolist(), strict=True)
        ],
        "transition": {**matrix, **interval},
        "wrong": {"expected": 36.2, "low": 28, "high": 45, "doubted": 33},
        "flow": (1797 * share[:, None] * proba).T.tolist(),
        "calibration": {
            "bins": [{"confidence": 0.15, "frequency": 0.12, "count": 310}],
            "error": 0.021,
        },
        "infeasible": 0.031,
        "unsupported_labels": names[:1],
        "indistinct_classes": [names[:2]],
        "warnings": [f"The class {names[0]} is rare."],
        "converged": False,
        "columns": {"used": 12, "ignored": [{"name": names[0], "why": f"{names[0]} is unique"}]},
        "reproduce": {"command": "looselabels audit", "versions": {"numpy": "2.1"}, "seed": 0},
        "rows": rows,
    }


def consensus_content(names=("cat", "dog"), annotators=("ann", "bob", "eve"), n_rows=4):
    """Return content about several answers per row, whatever the names are."""
    names, annotators = list(names), list(annotators)
    proba = np.where(np.eye(len(names)), 0.8, 0.2 / max(len(names) - 1, 1))
    first, last = names[0], names[-1]
    return {
        "looselabels": "0.2.0",
        "data": "animals.csv",
        "question": "consensus",
        "n_rows": 1500,
        "n_annotators": len(annotators),
        "n_answers": 3600,
        "consensus": {
            "settled_from": 0.95,
            "n_settled": 1500 - n_rows,
            "n_open": n_rows,
            "n_unanswered": 2,
            "expected_wrong": 31.4,
            "n_unlike_vote": 43,
            "most": 10,
            "more_answers": [[1, n_rows - 1], [None, 1]],
        },
        "annotators": [
            {
                "name": annotator,
                "answers": 40 * (k + 1),
                "accuracy": 0.9 - 0.1 * k,
                "low": 0.85 - 0.1 * k,
                "high": 0.94 - 0.1 * k,
                "confusions": [[first, last, 0.12], [last, first, 0.03]],
            }
            for k, annotator in enumerate(annotators)
        ],
        "agreement": {"n_pairs": 2000, "observed": 0.81, "expected": 0.79, "chance": 0.35},
        "sources": {"transition": "pooled"},
        "design": {"words": [f"The answers name {first}."]},
        "transition": {"classes": names, "labels": names, "proba": proba.tolist()},
        "warnings": [f"{annotators[0]} always says {first}."],
        "converged": True,
        "id_name": "name",
        "id_note": f"Rows are named by {first}.",
        "shown_columns": ["text"],
        "table_file": "labels.csv",
        "annotators_file": "annotators.csv",
        "reproduce": {"command": "looselabels audit", "versions": {"numpy": "2.1"}, "seed": 0},
        "rows": [
            {
                "row": row,
                "id": f"pet {row}",
                "cells": [first[:1000]],
                "answers": [[first, annotators[:2]], [last, annotators[2:]]],
                "consensus": names[row % len(names)],
                "probability": 0.5 + row / 10,
                "probabilities": [[first, 0.5 + row / 10], [last, 0.5 - row / 10]],
                "n_answers": 3,
                "more_answers": 1 if row else None,
            }
            for row in range(n_rows)
        ],
    }


class Page(HTMLParser):
    """The tags of a page, which must balance, and their contents."""

    VOID = ("meta", "link", "img")

    def __init__(self, html):
        super().__init__()
        self.open, self.tags, self.attributes, self.ids = [], Counter(), [], []
        self.texts = []
        self.feed(html)
        self.close()
        assert not self.open

    @property
    def text(self):
        """The text of the page without tags, in one line."""
        return " ".join("".join(self.texts).split())

    def handle_starttag(self, tag, attributes):
        self.tags[tag] += 1
        self.attributes += [(tag, *pair) for pair in attributes]
        self.ids += [value for key, value in attributes if key == "id"]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.tags[tag] += 1
        self.attributes += [(tag, *pair) for pair in attributes]

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append(data)
