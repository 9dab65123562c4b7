"""Models on disk: a classifier and the features it needs, saved, loaded, and applied to a table."""

from itertools import filterfalse
from pathlib import Path

import numpy as np

from looselabels._files import left_behind, resolved
from looselabels._names import listed, shown
from looselabels.auditing.audit import audit_new_rows
from looselabels.command import features as columns
from looselabels.command.answers import answers_for_model
from looselabels.command.features import Features
from looselabels.command.labels import Labels, check_known, labels_of
from looselabels.command.tables import add_columns, values_of_one_type
from looselabels.learning import persistence
from looselabels.learning.classifier import DecoupledClassifier
from looselabels.learning.persistence import load, save
from looselabels.transition import is_missing

# What a model consists of, as a tree for `unexpected_files`.
MODEL_FILES = {
    "classifier": dict.fromkeys(persistence.FILES),
    "features": dict.fromkeys(columns.FILES),
}


def write_model(folder: Path, clf, features: Features | None) -> None:
    """Write a model for `read_model`: the classifier and, if it has them, its features."""
    folder.mkdir(exist_ok=True)
    save(clf, folder / "classifier")
    if features is not None:
        (folder / "features").mkdir()
        features.save(folder / "features")


def read_model(folder: Path) -> tuple[DecoupledClassifier, Features]:
    """Return the classifier and the features of a model."""
    left = left_behind(resolved(folder)) or left_behind(resolved(folder).parent)
    if not folder.exists():
        hint = "" if left is None else f" A command that was killed left the old one in {left}."
        raise FileNotFoundError(
            f"{folder} does not exist; looselabels audit and looselabels fit write a model.{hint}"
        )
    if not (folder / "classifier").is_dir():
        within = folder / "model"  # of the results of an audit
        hint = f" Its model is {within}." if (within / "classifier").is_dir() else ""
        raise ValueError(
            f"{folder} is not a model: a model is a folder written by looselabels audit or fit."
            f"{hint}"
        )
    if not (folder / "features").is_dir():
        raise ValueError(
            f"{folder} was fitted to the probabilities of another model and cannot predict from a "
            "table. In Python, use looselabels.load on its folder classifier, and "
            "predict_proba(label_proba)."
        )
    stamp = folder / "classifier" / persistence.DECOUPLING  # no two models have equal ones
    before = stamp.read_bytes() if stamp.is_file() else b""
    found = load(folder / "classifier"), Features.load(folder / "features")
    if stamp.read_bytes() != before:
        raise ValueError(f"{folder} was replaced while it was read; run the command again.")
    return found


def with_classes(
    frame,
    clf,
    features: Features,
    *,
    rows=None,
    label=None,
    unlabeled=(),
    strip=False,
    merge=None,
    source=None,
    all_classes=False,
):
    """Return a table with predicted classes as additional columns.

    Parameters
    ----------
    frame : DataFrame
        The table.
    clf, features : DecoupledClassifier and Features
        A model, as returned by `read_model`.
    rows : DataFrame, default=None
        The table that has the features of the rows. None: `frame`.
    label : str or sequence of str, default=None
        A column of labels. If given, predictions are p(class | x, label), with the doubt about
        each label in a further column. If the model was fitted to several answers per row: the
        columns of some annotators. Predictions are p(class | x, answers).
    unlabeled : sequence of str, default=()
        Cells of `label` that mean "no label", in addition to empty ones.
    strip, merge : bool and mapping
        How labels are spelled, as in `Labels`.
    source : str, default=None
        The column that names the data set of each row, if the model was fitted with one.
    all_classes : bool, default=False
        Whether to add a column with the probability of each class.
    """
    X = features.transform(frame if rows is None else rows)
    columns = [label] if isinstance(label, str) else list(label or ())
    labels = Labels("", unlabeled, source=source, strip=strip, merge=merge or {})
    doubt: dict = {}
    if not columns:
        proba = clf.predict_proba(X)
    elif hasattr(clf, "annotators_"):
        answers = answers_for_model(frame, labels, columns, clf)
        proba = clf.predict_proba_given_label(X, answers)
    else:
        proba, doubt["doubt"] = _given_label(frame, clf, X, columns, labels)
    names = values_of_one_type(clf.transition_.classes)
    best = {"class": names[proba.argmax(axis=1)], "class_proba": proba.max(axis=1)}
    frame = add_columns(frame, best | doubt)
    if all_classes:
        for k, name in enumerate(names):
            frame = add_columns(frame, {f"p({shown(name, 60)})": proba[:, k]})
    return frame


def _given_label(frame, clf, X, columns, labels: Labels):
    """Return p(class | x, label) of all rows, and the doubt about their labels."""
    if len(columns) > 1:
        raise ValueError(
            f"The model was fitted to one label per row; name one column, not {listed(columns)}."
        )
    known, (column,) = clf.transition_.labels, columns
    _check_source(labels.source, known)
    y = labels_of(frame, labels._replace(column=column), known)
    check_known(filterfalse(is_missing, y), known, column)
    # a missing label that the transition does not include says nothing about the class
    rows = [i for i, name in enumerate(y) if not is_missing(name) or name in known]
    proba, doubt = clf.predict_proba(X), np.zeros(len(y))
    if rows:
        index = clf.transition_.label_index([y[i] for i in rows])
        found = audit_new_rows(clf, proba[rows], index)
        proba[rows], doubt[rows] = found.class_proba_given_label, found.doubt
    return proba, doubt


def _check_source(source, known):
    has_sources = isinstance(known[0], tuple)
    if has_sources and source is None:
        raise ValueError("The model was fitted with --source; name that column: --source COLUMN.")
    if source is not None and not has_sources:
        raise ValueError("The model was fitted without --source; leave it out.")
