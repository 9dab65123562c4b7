"""An audit as a whole: how many labels are wrong, class shares, how labels arise, calibration."""

import numpy as np

from looselabels import __version__
from looselabels._rows import on_simplex
from looselabels._validation import as_counts
from looselabels.auditing.intervals import add_noise_range, add_room, add_share_range
from looselabels.estimation.quantiles import quantile_interval
from looselabels.estimation.reliability import reliability
from looselabels.transition import can_be_wrong, is_missing

DOUBTED = 0.5  # doubt above which a label is more likely wrong than right
ENDS = ("expected", "low", "high")  # of an estimated number of rows


def summarize(found) -> dict:
    """Return an `Audit` without its rows, in types that JSON has; intervals are 90 %."""
    return {
        "schema": 1,
        "looselabels": __version__,
        **counts(found),
        "label_accuracy": found.label_accuracy,
        "source_accuracy": list(map(list, found.source_accuracy.items())),
        "candidate_losses": found.candidate_losses,
        "design": _design(found),
        "sources": found.model.sources._asdict(),
        "classes": _class_shares(found),
        "transition": _transition(found),
        "flow": found.flow().tolist(),
        "is_right": found.is_right.tolist(),
        "calibration": _calibration(found),
        "infeasible": found.share_infeasible,
        "unsupported_labels": _unsupported(found),
        "indistinct_classes": [list(group) for group in found.transition.indistinct_classes()],
        "converged": found.converged,
        "findings": [finding._asdict() for finding in found.findings],
    }


def counts(found) -> dict:
    """Return the answers to both questions, and how many rows are more likely so than not."""
    wrong, n_to_check = _wrong(found), int(found.is_to_check.sum())
    return {
        "n_rows": len(found.label_index),
        "n_labeled": int(found.has_label.sum()),
        "question": found.question,
        "n_to_check": wrong["doubted"] if found.question == "labels" else n_to_check,
        "wrong": wrong,
        "unlabeled": _unlabeled(found),
    }


def _wrong(found):
    """Return how many labels are wrong: those that a review found, and those that are expected."""
    why = {"why_no_count": found.why_no_count}
    if found.why_no_count is not None:  # no count is better than a wrong one
        return dict.fromkeys((*ENDS, "doubted", "found", "n_reviewed")) | why
    is_wrong = ~found.is_right.T & can_be_wrong(found.transition)
    drawn = np.sum(found.draws_unreviewed.label_mass * is_wrong, axis=(1, 2))
    expected = drawn.mean()
    interval = quantile_interval(drawn, estimate=expected)
    is_unreviewed = found.is_labeled & ~found.is_reviewed
    n_found = int(np.sum(found.doubt[found.is_reviewed]))
    wrong_share = found.model.wrong_share_interval
    low, high = add_noise_range(interval, expected, int(is_unreviewed.sum()), wrong_share)
    return {
        "expected": float(expected) + n_found,
        "low": low + n_found,
        "high": high + n_found,
        "doubted": int(np.sum(found.doubt[is_unreviewed] > DOUBTED)),
        "found": n_found,
        "n_reviewed": int(np.sum(found.is_labeled & found.is_reviewed)),
    } | why


def _unlabeled(found):
    """Return how many unlabeled rows are of each class that has labels, and of all together.

    None if every class has labels: then unlabeled rows are not the place to look for a class.
    """
    if not found.is_never_labeled.any() or found.is_labeled.all():
        return None
    has_labels, why = ~found.is_never_labeled, found.why_no_unlabeled_count
    names = [found.transition.classes[y] for y in np.flatnonzero(has_labels)]
    parts = np.vstack([np.eye(len(has_labels))[has_labels], has_labels])
    numbers = [dict.fromkeys(ENDS)] * len(parts) if why else _count_unlabeled(found, parts)
    *of_classes, together = numbers
    return {
        "n_rows": int(np.sum(~found.is_labeled)),
        "why_no_count": why,
        "together": together,
        "classes": [{"name": name, **ends} for name, ends in zip(names, of_classes, strict=True)],
    }


def _count_unlabeled(found, parts) -> list[dict]:
    """Return how many unlabeled rows are of the classes of each part, (n_parts, n_classes)."""
    is_always_right = ~can_be_wrong(found.transition)
    drawn = found.draws_of_rows.label_mass[:, :, is_always_right].sum(axis=2) @ parts.T
    expected, n_rows = drawn.mean(axis=0), len(found.label_index)
    interval = quantile_interval(drawn, estimate=expected)
    low, high = add_share_range(interval, expected, n_rows, found.model, parts)
    of_class = _reviewed_unlabeled(found)
    known = parts @ of_class
    most = np.sum(~found.is_labeled) - of_class.sum() + known  # all others are of these classes
    columns = [np.clip(ends, known, most).tolist() for ends in (expected, low, high)]
    return [dict(zip(ENDS, ends, strict=True)) for ends in zip(*columns, strict=True)]


def _reviewed_unlabeled(found):
    """Return how many unlabeled rows a review found to be of each class."""
    rows = ~found.is_labeled & found.is_reviewed
    known = found.class_index[rows] if rows.any() else []
    return np.bincount(known, minlength=len(found.transition.classes))


def _design(found):
    """Return what was assumed before anything was estimated; open label rates are left out."""
    if found.model.assumed is not None:
        return _named_matrix(found.model.assumed)
    names = _named_matrix(found.transition)
    return {"classes": names["classes"], "labels": names["labels"]}


def _class_shares(found):
    share = found.draws.class_share.mean(axis=0)
    low, high = quantile_interval(found.draws.class_share, estimate=share)
    if found.model.class_share_room is not None:
        low, high = add_room((low, high), share, found.model.class_share_room)
        low, high = np.maximum(low, 0), np.minimum(high, 1)
    if found.model.class_prior_interval is not None:
        # this one knows how uncertain label rates are, and draws how classes divide the rest
        ends = found.model.class_prior_interval
        low, high = np.minimum(low, ends[0]), np.maximum(high, ends[1])
    return [
        {"name": name, "share": float(s), "low": float(a), "high": float(b)}
        for name, s, a, b in zip(found.transition.classes, share, low, high, strict=True)
    ]


def _transition(found):
    low, high = quantile_interval(found.draws.transition, estimate=found.transition.proba)
    return _named_matrix(found.transition) | {"low": low.tolist(), "high": high.tolist()}


def _calibration(found):
    named = can_be_wrong(found.transition)
    if named.sum() < 2:  # a single label is always predicted
        return {"bins": [], "error": None}
    rows, position = np.flatnonzero(found.is_labeled), np.cumsum(named) - 1
    predicted = on_simplex((found.class_proba @ found.transition.proba)[rows][:, named])
    weight = None if found.sample_weight is None else as_counts(found.sample_weight)[rows]
    measured = reliability(predicted, position[found.label_index[rows]], weight)
    names = ("confidence", "frequency", "count")
    columns = (column.tolist() for column in measured[:3])
    bins = [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]
    return {"bins": bins, "error": measured.error}


def _unsupported(found):
    seen = set(found.label_index.tolist())
    labels = found.transition.labels
    return [name for s, name in enumerate(labels) if s not in seen and not is_missing(name)]


def _named_matrix(transition):
    return {
        "classes": list(transition.classes),
        "labels": list(transition.labels),
        "proba": transition.proba.tolist(),
    }
