"""A table with messy labels → a model, an audit, and a folder with both and a page to look at.

What the command does, without its options and its words on the terminal.
"""

import json
import secrets
import sys
import warnings
from contextlib import contextmanager
from pathlib import Path
from shutil import rmtree
from typing import Any, NamedTuple

import numpy as np

from looselabels import __version__
from looselabels._names import listed, shown
from looselabels.auditing import Audit, audit
from looselabels.classifier import DecoupledClassifier
from looselabels.features import Features
from looselabels.persistence import load, save
from looselabels.report import render
from looselabels.tables import read_blocks, table_writer
from looselabels.transition import Transition

MODELS = ("forest", "linear", "kernel", "boosting")
MOST_SHOWN = 500  # rows on the page
COLUMNS = ("suggestion", "suggestion_proba", "label_proba", "doubt", "why")


class Labels(NamedTuple):
    """What is known of a column of labels before anything is learned."""

    column: str
    unlabeled: tuple = ()  #: cells that mean "no label", besides empty ones
    negative: Any = None  #: the class of unlabeled rows that belong to none of the others
    noise: float | str = "estimate"  #: how often a label is wrong
    design: Transition | None = None  #: how labels arise, where more is known


def read_labels(frame, labels: Labels) -> list:
    """Return the labels of a table: None where a cell is empty or means "unlabeled"."""
    missing = set(labels.unlabeled)
    cells = frame[labels.column].astype(object)
    column = [None if cell in missing else cell for cell in cells.where(cells.notna(), None)]
    distinct = {cell for cell in column if cell is not None}
    if len(distinct) == 1 and labels.negative is None and labels.design is None:
        only = listed(distinct)
        raise ValueError(
            f"Column {labels.column!r} holds one label only, {only}: there is nothing to tell "
            "apart. If rows without it are of another class, name that class: --negative other."
        )
    return column


# --------------------------------------------------------------------------------------------- fit


def estimator_of(model: str):
    """Return the classifier of that name; None is the default forest."""
    if model == "linear":
        from sklearn.linear_model import LogisticRegression
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler

        return make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
    if model == "kernel":
        from looselabels.density import KernelDensityClassifier

        return KernelDensityClassifier()
    if model == "boosting":
        from sklearn.ensemble import HistGradientBoostingClassifier

        return HistGradientBoostingClassifier(random_state=0)
    return None


def fit(X, y, labels: Labels, *, model="forest", seed=0, n_jobs=None) -> DecoupledClassifier:
    """Fit a classifier to features and labels."""
    clf = _classifier(estimator_of(model), labels, seed, n_jobs)
    return clf.fit(X, y)


def fit_from_proba(label_proba, y, labels: Labels, *, seed=0) -> DecoupledClassifier:
    """Fit to p(label | x) of a model that lives elsewhere."""
    return _classifier(None, labels, seed, None).fit_from_proba(label_proba, y)


def _classifier(estimator, labels, seed, n_jobs):
    return DecoupledClassifier(
        estimator,
        labels.design,
        negative=labels.negative if labels.design is None else None,
        noise=labels.noise,
        n_jobs=n_jobs,
        random_state=seed,
    )


@contextmanager
def noted():
    """Collect warnings as plain sentences instead of showing them."""
    notes: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            yield notes
        finally:
            kinds = (DeprecationWarning, FutureWarning, PendingDeprecationWarning)
            said = [str(w.message) for w in caught if not issubclass(w.category, kinds)]
            notes.extend(" ".join(text.split()) for text in dict.fromkeys(said))


# ----------------------------------------------------------------------------------------- content


def describe(found: Audit, labels: Labels) -> list[str]:
    """Say what was assumed of the labels, in plain sentences."""
    n_labeled, n_rows = int(found.is_labeled.sum()), len(found.label_index)
    words = [f"{n_labeled:,} of {n_rows:,} rows have a label ({n_labeled / n_rows:.0%})."]
    if labels.design is not None:
        words.append("How labels arise was told, by a design.")
    if labels.negative is not None:
        name, rate = shown(labels.negative), found.transition.proba[0, 0]
        words.append(
            f"Rows without a label may be of any class. '{name}' is never labeled; of the other "
            f"classes {rate:.0%} is (estimated from the data)."
        )
    elif n_labeled < n_rows and labels.design is None:
        words.append("Labels are missing at random: the same share of each class has none.")
    if labels.noise == "estimate":
        words.append("How often labels are wrong, and for which classes, was estimated.")
    elif labels.noise:
        words.append(f"{labels.noise:.0%} of the labels are wrong (told).")
    else:
        words.append("Labels are as right as the design says; no further noise was assumed.")
    return words


def page_content(found: Audit, labels: Labels, data, command, notes, features=None, seed=0):
    """Return what the page shows and summary.json holds (without the rows)."""
    import sklearn

    content = found.summary()
    content["design"]["words"] = describe(found, labels)
    content |= {
        "data": data,
        "label_column": labels.column,
        "warnings": list(notes),
        "reproduce": {
            "command": command,
            "versions": {
                "looselabels": __version__,
                "scikit-learn": sklearn.__version__,
                "python": ".".join(map(str, sys.version_info[:3])),
            },
            "seed": seed,
        },
    }
    if features is not None:
        ignored = [{"name": name, "why": why} for name, why in features.ignored]
        content["columns"] = {"used": len(features.used), "ignored": ignored}
    return content


def with_suggestions(frame, found: Audit):
    """Return the table with a column each for the suggestion, how sure it is, doubt and why."""
    columns = {name: name if name not in frame else f"looselabels_{name}" for name in COLUMNS}
    classes = np.array(found.transition.classes, dtype=object)
    rows = range(len(found.label_index))
    return frame.assign(
        **{
            columns["suggestion"]: classes[found.suggestion],
            columns["suggestion_proba"]: found.class_proba_given_label.max(axis=1),
            columns["label_proba"]: found.label_proba,
            columns["doubt"]: found.doubt,
            columns["why"]: [found.why(row) for row in rows],
        }
    )


# ------------------------------------------------------------------------------------------ folder


def check_folder(out: Path, force: bool) -> None:
    """Say, before anything is computed, why results cannot go to the folder `out`."""
    if not out.parent.is_dir():
        raise FileNotFoundError(f"{out.parent} is no folder; create it first.")
    probe = out.parent / f".{out.name}.{secrets.token_hex(4)}"
    probe.mkdir()  # raises where the folder cannot be written to
    probe.rmdir()
    if not out.exists():
        return
    if not force:
        raise FileExistsError(f"{out} exists; --force replaces what an earlier run wrote there.")
    names = {file.name for file in out.iterdir()} if out.is_dir() else {out.name}
    strange = sorted(names - {"summary.json", "report.html", "model", "transition.json"})
    strange = [name for name in strange if not name.startswith("labels.")]
    if strange and names:
        raise FileExistsError(
            f"{out} holds {listed(strange)}, which no earlier run wrote: it is not replaced."
        )


@contextmanager
def new_folder(out: Path):
    """Yield a folder that becomes `out` when all is written, and leaves nothing when it fails."""
    fresh = out.parent / f".{out.name}.{secrets.token_hex(4)}"
    fresh.mkdir()
    try:
        yield fresh
        old = None
        if out.exists():
            old = out.rename(out.parent / f".{out.name}.old-{secrets.token_hex(4)}")
        fresh.rename(out)
        if old is not None:
            rmtree(old, ignore_errors=True)
    finally:
        rmtree(fresh, ignore_errors=True)


def write_model(folder: Path, clf, features: Features | None) -> None:
    """Write a model that `read_model` reads: the classifier, and how columns become features."""
    folder.mkdir()
    save(clf, folder / "classifier")
    if features is not None:
        (folder / "features").mkdir()
        features.save(folder / "features")


def read_model(folder: Path) -> tuple[DecoupledClassifier, Features]:
    """Return the classifier and the features of a model."""
    if not (folder / "classifier").is_dir():
        raise FileNotFoundError(f"{folder} is no model; audit and fit write one.")
    if not (folder / "features").is_dir():
        raise ValueError(
            f"{folder} was fitted to probabilities of another model; it cannot predict from a "
            "table. Use looselabels.load and predict_proba(label_proba)."
        )
    return load(folder / "classifier"), Features.load(folder / "features")


def write_audit(folder: Path, content, found: Audit, frame, suffix, *, images, excel_safe) -> None:
    """Write the table, the page, the transition and the summary."""
    with table_writer(folder / f"labels{suffix}", excel_safe=excel_safe) as write:
        write(with_suggestions(frame, found))
    page = render(content | {"rows": found.records(MOST_SHOWN)}, images)
    (folder / "report.html").write_text(page, encoding="utf-8")
    (folder / "transition.json").write_text(found.transition.to_json(), encoding="utf-8")
    (folder / "summary.json").write_text(to_json(content), encoding="utf-8")


def to_json(content) -> str:
    """Return strict JSON; names that JSON has no type for become text."""
    return json.dumps(content, allow_nan=False, default=str, indent=1)


def thumbnails(X, features, found: Audit):
    """Return a picture for each row on the page where the features are pixels, else None."""
    if features is None or features.image_shape is None:
        return None
    rows = found.order[:MOST_SHOWN]
    return [X[row].reshape(features.image_shape) for row in rows]


# ----------------------------------------------------------------------------------------- predict


def predict_blocks(model: Path, source, write, *, label=None, delimiter=None, all_classes=False):
    """Predict the classes of a table block by block; yields the number of rows after each."""
    clf, features = read_model(model)
    done = 0
    for frame in read_blocks(source, label=label, delimiter=delimiter):
        X = features.transform(frame)
        proba = clf.predict_proba(X)
        columns = {}
        if label is not None:
            y = [None if cell is None else cell for cell in _cells(frame[label])]
            found = audit(clf, _as_known(y, clf), X)
            proba = found.class_proba_given_label
            columns = {"doubt": found.doubt}
        columns = {
            "class": clf.classes_[proba.argmax(axis=1)],
            "class_proba": proba.max(axis=1),
        } | columns
        if all_classes:
            columns |= {f"p({shown(c, 60)})": proba[:, k] for k, c in enumerate(clf.classes_)}
        taken = {name: f"looselabels_{name}" for name in columns if name in frame}
        write(frame.assign(**{taken.get(name, name): v for name, v in columns.items()}))
        done += len(frame)
        yield done


def _cells(column):
    cells = column.astype(object)
    return cells.where(cells.notna(), None)


def _as_known(y, clf):
    """Return labels of a CSV file, which are text, as the model knows them."""
    by_text = {str(label): label for label in clf.transition_.labels if label is not None}
    return [by_text.get(str(label), label) if label is not None else None for label in y]
