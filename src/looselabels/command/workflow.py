"""A table with messy labels → a model, an audit, and a folder with both and a page to look at.

What the command does, without its options and its words on the terminal.
"""

import json
import re
import secrets
import sys
import time
import warnings
from contextlib import contextmanager, suppress
from pathlib import Path
from shutil import rmtree
from typing import Any, NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

from looselabels import __version__
from looselabels._names import UNLABELED, listed, plain_name, shown
from looselabels._validation import short_repr
from looselabels.auditing.audit import Audit, audit
from looselabels.auditing.report import render
from looselabels.command.features import Features
from looselabels.command.tables import DAY, table_writer
from looselabels.learning.classifier import DecoupledClassifier
from looselabels.learning.persistence import load, save
from looselabels.transition import Transition, _once, _refuse

AUDIT = ("labels.csv", "labels.parquet", "model", "report.html", "summary.json", "transition.json")
MODEL = ("classifier", "features")
MOST_SHOWN = 500  # rows on the page
FEWEST_ROWS = 10  # of which a few are left out in turn
MANY_ROWS = 10_000  # that boosting needs threads for
FEW_LABELS, MOST_LABELS = 20, 1000  # more than 20 may be identifiers; more than 1000 take hours
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
    known = () if labels.design is None else labels.design.labels
    column = cells_as_labels(frame[labels.column], labels.unlabeled, known)
    if labels.design is not None:
        check_known(column, known, labels.column)
    distinct = {cell for cell in column if cell is not None}
    _check_labels(labels, distinct, sum(cell is not None for cell in column), len(column))
    _note_labels(frame, labels, distinct)
    return column


def cells_as_labels(cells, unlabeled=(), known=()) -> list:
    """Return a column of cells as labels; text that writes one of the `known` labels is that."""
    by_text = {_as_text(label): label for label in known if label is not None}
    missing = {_as_text(text) for text in unlabeled}
    values = cells.astype(object).tolist()
    labels: dict = {}
    try:
        for cell in set(values):  # whatever is slow, once a distinct cell
            label = plain_name(cell)
            if label in unlabeled or (not isinstance(label, str) and _as_text(label) in missing):
                labels[cell] = None
            else:
                labels[cell] = label if label in known else by_text.get(_as_text(label), label)
        return [labels[cell] for cell in values]
    except TypeError:
        name = short_repr(cells.name)
        raise ValueError(f"Column {name} holds lists; a label is text, a number or bool.") from None


def check_known(labels, known, column) -> None:
    """Say which labels of a column are none of those that are `known`."""
    unknown = sorted({label for label in labels if label not in known}, key=str)
    if unknown == [None]:
        raise ValueError(
            f"Column {short_repr(column)} has rows without a label, which the design does not "
            'know; say what a missing label means: "": ["dog", "wolf"].'
        )
    if unknown:
        raise ValueError(
            f"Column {short_repr(column)} holds {listed(unknown)}; the labels that are known are "
            f"{listed(known)}. Correct the cells, or give what means 'no label' by --unlabeled."
        )


def _as_text(label) -> str:
    """Return the one text of labels that files write in more ways: True and true, 1.0 and 1."""
    text = str(label)
    if text in ("True", "False"):
        return text.lower()
    return text.removesuffix(".0") if re.fullmatch(r"-?\d+\.0", text) else text


def _check_labels(labels: Labels, distinct, n_labeled, n_rows):
    """Say why nothing can be learned from a column of labels."""
    name = f"Column {short_repr(labels.column)}"
    if n_rows < FEWEST_ROWS:
        raise ValueError(f"The table has too few rows, {n_rows}; give it {FEWEST_ROWS} or more.")
    if not distinct:
        raise ValueError(f"{name} holds no label; label at least one row of each class.")
    if UNLABELED in distinct:
        raise ValueError(
            f"{name} holds the text {UNLABELED!r}. If it means 'no label': --unlabeled "
            f"{UNLABELED!r}; else rename it."
        )
    parts = [label for label in distinct if isinstance(label, float) and not label.is_integer()]
    if parts:
        raise ValueError(f"{name} holds {parts[0]}, as a measurement does; write labels as text.")
    n_labels = f"{name} has {len(distinct):,} different labels in {n_labeled:,} labeled rows"
    if len(distinct) > FEW_LABELS and 2 * len(distinct) > n_labeled:
        raise ValueError(f"{n_labels}; is it an identifier? Give the column of labels by --label.")
    if len(distinct) > MOST_LABELS:
        raise ValueError(f"{n_labels}; {MOST_LABELS:,} is the most. Merge those that are rare.")
    if labels.design is None:
        _check_negative(labels, distinct, name)


def _check_negative(labels: Labels, distinct, name):
    """Say that labels and the class without a label do not go together."""
    told = labels.noise not in (0, "estimate")
    if labels.negative in {_as_text(label) for label in distinct}:
        negative = short_repr(labels.negative)
        raise ValueError(
            f"{name} holds the label {negative}; a negative class has none. Leave out --negative, "
            f"or say that these cells are no label: --unlabeled {negative}."
        )
    if len(distinct) == 1 and labels.negative is None:
        raise ValueError(
            f"{name} holds one label only, {listed(distinct)}: there is nothing to tell apart. If "
            "rows without it are of another class, name that class: --negative other."
        )
    if len(distinct) == 1 and told:
        raise ValueError(
            f"{name} holds one label only, {listed(distinct)}: no row can have another one by "
            "mistake. Leave out --noise."
        )


def _note_labels(frame, labels: Labels, distinct):
    """Warn of what may be a slip: an --unlabeled that is nowhere, labels that are nearly equal."""
    cells = {_as_text(cell) for cell in frame[labels.column].unique()}
    for text in labels.unlabeled:
        if text and _as_text(text) not in cells:
            warnings.warn(f"No cell is {short_repr(text)}, as --unlabeled says.", stacklevel=3)
    alike: dict = {}
    for label in distinct:
        alike.setdefault(" ".join(str(label).split()).casefold(), []).append(label)
    for group in alike.values():
        if len(group) > 1:
            names = listed(sorted(group, key=str))
            warnings.warn(f"Labels {names} differ in case or spaces only.", stacklevel=3)


# ------------------------------------------------------------------------------------------ design


def read_design(path: Path) -> Transition:
    """Return the transition of a JSON file: one that was written, or what each label means."""
    try:
        text = path.read_text(encoding="utf-8-sig")
        content = json.loads(text, parse_constant=_refuse, object_pairs_hook=_once)
    except (json.JSONDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ValueError(f"it is no JSON: {error}.") from None
    keys = ("meanings", "counts", "noise")
    if not isinstance(content, dict) or not {"meanings", "proba"} & set(content):
        raise ValueError("it needs the key 'meanings', or 'proba' of a transition.")
    if "meanings" not in content:
        return Transition.from_json(text)
    strange = [key for key in content if key not in keys]
    if strange:
        raise ValueError(f"it has the key {short_repr(strange[0])}; it can have {listed(keys)}.")
    meanings, counts = content["meanings"], content.get("counts")
    for key, value in (("meanings", meanings), ("counts", counts)):
        if not isinstance(value, dict) and value is not None:
            raise ValueError(f"{key} must map each label to something; it is {short_repr(value)}.")
    if not meanings:
        raise ValueError("meanings names no label.")
    transition = Transition.from_meanings(_with_missing(meanings), _with_missing(counts))
    return transition.with_noise(content.get("noise", 0.0))


def _with_missing(by_label):
    """Return a mapping by label in which "", as a cell is, or "(unlabeled)" is the missing one."""
    if by_label is None:
        return None
    names = ("", UNLABELED)
    return {None if label in names else label: value for label, value in by_label.items()}


# --------------------------------------------------------------------------------------------- fit


def estimator_of(model: str):
    """Return the classifier of that name; None is the default forest."""
    if model == "linear":
        from sklearn.linear_model import LogisticRegression
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler

        return make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
    if model == "kernel":
        from looselabels.learning.density import KernelDensityClassifier

        return KernelDensityClassifier()
    if model == "boosting":
        from sklearn.ensemble import HistGradientBoostingClassifier

        return HistGradientBoostingClassifier(random_state=0)
    return None


def fit(X, y, labels: Labels, *, model="forest", seed=0, n_jobs=None) -> DecoupledClassifier:
    """Fit a classifier to features and labels."""
    clf = _classifier(estimator_of(model), labels, seed, n_jobs)
    # small trees lose time to threads, up to tenfold where the cores are busy
    few = model == "boosting" and len(X) < MANY_ROWS
    with threadpool_limits(1 if few else None, "openmp"):
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
        refit=False,  # the class that it suggests for a wrong label is right less often (demo)
        n_jobs=n_jobs,
        random_state=seed,
    )


@contextmanager
def noted():
    """Collect warnings as plain sentences, as they come, instead of showing them."""
    notes: list[str] = []
    kinds = (DeprecationWarning, FutureWarning, PendingDeprecationWarning)

    def note(message, category, *_):
        text = " ".join(str(message).split())
        if not issubclass(category, kinds) and text not in notes:
            notes.append(text)

    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning = note
        yield notes


# ----------------------------------------------------------------------------------------- content


def describe(found: Audit, labels: Labels) -> list[str]:
    """Say what was assumed of the labels, in plain sentences."""
    n_labeled, n_rows = int(found.is_labeled.sum()), len(found.label_index)
    words = [f"{n_labeled:,} of {n_rows:,} rows have a label ({n_labeled / n_rows:.0%})."]
    if labels.design is not None:
        words.append("How labels arise was told, by a design.")
    if labels.negative is not None and labels.design is None:
        name, missing = shown(labels.negative), found.transition.labels.index(None)
        rate = 1 - found.transition.proba[0, missing]
        words.append(
            f"Rows without a label may be of any class. '{name}' is never labeled; of the other "
            f"classes {rate:.0%} is (estimated from the data)."
        )
    elif n_labeled < n_rows and labels.design is None:
        words.append("Labels are missing at random: the same share of each class has none.")
    if isinstance(labels.noise, str):
        words.append("How often labels are wrong, and for which classes, was estimated.")
    elif labels.noise:
        words.append(f"{100 * labels.noise:.3g}% of the labels are wrong (told).")
    elif labels.design is not None:
        words.append("Labels are as right as the design says; no further noise was assumed.")
    else:
        words.append("Labels are right where there is one (told).")
    words += [
        "Labels depend on the class of a row alone "
        f"({'not tested' if finding.p_value is None else 'nothing speaks against it'})."
        for finding in found.findings
        if finding.kind == "instance" and not finding.found
    ]
    return words


def page_content(found: Audit, labels: Labels, data, command, notes, features=None, seed=0):
    """Return what the page shows and summary.json holds (without the rows)."""
    import sklearn

    content = found.summary()
    content["design"]["words"] = describe(found, labels)
    content |= {
        "data": data,
        "label_column": labels.column,
        "warnings": [*notes, *ignored_columns(features), *failed_assumptions(found)],
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


def failed_assumptions(found: Audit) -> list[str]:
    """Return what the labels speak against; the page itself names classes that are alike."""
    alike = bool(found.transition.indistinct_classes())
    return [
        finding.words
        for finding in found.findings
        if finding.found and not (alike and finding.kind == "identifiability")
    ]


def ignored_columns(features: Features | None) -> list[str]:
    """Return a sentence on the columns that are not learned from, if there are any."""
    if features is None or not features.ignored:
        return []
    first = "; ".join(f"{short_repr(name)}: {why}" for name, why in features.ignored[:5])
    more = f"; and {len(features.ignored) - 5} more" if len(features.ignored) > 5 else ""
    return [f"Not learned from: {first}{more}."]


def with_suggestions(frame, found: Audit):
    """Return the table with a column each for the suggestion, how sure it is, doubt and why."""
    rows = range(len(found.label_index))
    values = (
        _class_names(found.transition.classes)[found.suggestion],
        found.class_proba_given_label.max(axis=1),
        found.label_proba,
        found.doubt,
        [found.why(row) for row in rows],
    )
    return _beside(frame, dict(zip(COLUMNS, values, strict=True)))


def _class_names(classes) -> np.ndarray:
    """Return the classes as they go into a column, which is of one type."""
    names = np.empty(len(classes), dtype=object)
    one_type = len({type(name) for name in classes}) == 1 and not isinstance(classes[0], tuple)
    names[:] = list(classes) if one_type else [str(name) for name in classes]
    return names


def _beside(frame, columns):
    """Return the table with further columns; none of its own is replaced."""
    taken = set(frame.columns)
    fresh = {}
    for name, values in columns.items():
        while name in taken or name in fresh:
            name = f"looselabels_{name}"
        fresh[name] = values
    return frame.assign(**fresh)


# ------------------------------------------------------------------------------------------ folder


def check_folder(out: Path, force: bool, written=AUDIT) -> Path:
    """Return where results go, or say, before anything is computed, why they cannot."""
    out = out.resolve()  # a link to a folder stays a link
    if not out.parent.is_dir():
        raise FileNotFoundError(f"{out.parent} is no folder; create it first.")
    probe = out.parent / f".{out.name[:40]}.{secrets.token_hex(4)}"
    try:
        probe.mkdir()
        probe.rmdir()
    except OSError as error:
        reason = f"{out.parent} cannot be written to ({error.strerror}); choose another folder."
        raise PermissionError(reason) from None
    if not out.exists():
        return out
    if not out.is_dir():
        raise NotADirectoryError(f"{out} is a file; name a folder.")
    if out.samefile("."):
        raise FileExistsError(f"{out} is the current folder; name one in it.")
    names = {file.name for file in out.iterdir()}
    if names and not force:
        raise FileExistsError(f"{out} exists; --force replaces what an earlier run wrote there.")
    strange = _not_written(out, names, written)
    if strange:
        raise FileExistsError(
            f"{out} holds {listed(strange)}, which no earlier run wrote: it is not replaced."
        )
    return out


def _not_written(folder, names, written) -> list[str]:
    """Return the files in a folder that are none that a run writes."""
    strange = [folder / name for name in names if name not in written]
    model = folder / "model" if "model" in written else folder
    files = {"decoupling.json", "arrays.npz", "estimator.skops", "class_estimator.skops"}
    wanted = {"classifier": files}
    wanted |= {"features": {"features.json", "features.npz"}, "model": set(MODEL)}
    for part in (model, model / "classifier", model / "features"):
        if part.is_dir() and part != folder:
            strange += [file for file in part.iterdir() if file.name not in wanted[part.name]]
    return sorted(str(file.relative_to(folder)) for file in strange)


@contextmanager
def new_folder(out: Path, force=False, written=AUDIT):
    """Yield a folder that becomes `out` when all is written, and leaves nothing when it fails."""
    prefix = f".{out.name[:40]}.writing-"
    fresh = out.parent / f"{prefix}{secrets.token_hex(4)}"
    old = fresh.with_name(f"{fresh.name}.old")
    fresh.mkdir()
    try:
        yield fresh
        check_folder(out, force, written)  # it may have appeared meanwhile
        if out.exists():
            out.rename(old)
        fresh.rename(out)
    finally:
        if old.exists() and not out.exists():
            old.rename(out)
        rmtree(old, ignore_errors=True)
        rmtree(fresh, ignore_errors=True)
        _remove_strays(out, prefix)


def _remove_strays(out, prefix):
    """Remove what killed runs left, but the only copy of a result; a younger one may be at work."""
    for stray in out.parent.iterdir():
        with suppress(OSError):  # this is tidiness
            is_ours = stray.name.startswith(prefix) and stray.is_dir()
            if is_ours and out.exists() and time.time() - stray.stat().st_mtime > DAY:
                rmtree(stray)


def write_model(folder: Path, clf, features: Features | None) -> None:
    """Write a model that `read_model` reads: the classifier, and how columns become features."""
    folder.mkdir(exist_ok=True)
    save(clf, folder / "classifier")
    if features is not None:
        (folder / "features").mkdir()
        features.save(folder / "features")


def read_model(folder: Path) -> tuple[DecoupledClassifier, Features]:
    """Return the classifier and the features of a model."""
    if not folder.exists():
        raise FileNotFoundError(f"{folder} does not exist; audit and fit write a model.")
    if not (folder / "classifier").is_dir():
        raise ValueError(f"{folder} is no model, which is a folder that audit and fit write.")
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


def with_classes(frame, clf, features: Features, *, label=None, unlabeled=(), all_classes=False):
    """Return a table with its classes, predicted from its features and, if given, its labels."""
    X = features.transform(frame)
    proba, columns = clf.predict_proba(X), {}
    if label is not None:
        known = clf.transition_.labels
        y = cells_as_labels(frame[label], unlabeled, known)
        check_known(y, tuple(dict.fromkeys((*known, None))), label)
        # without a label of its own, a missing one tells nothing
        rows = [i for i, name in enumerate(y) if name is not None or None in known]
        doubt = np.zeros(len(y))
        if rows:
            found = audit(clf, [y[i] for i in rows], X[rows])
            proba[rows], doubt[rows] = found.class_proba_given_label, found.doubt
        columns = {"doubt": doubt}
    names = _class_names(clf.transition_.classes)
    columns = {"class": names[proba.argmax(axis=1)], "class_proba": proba.max(axis=1)} | columns
    frame = _beside(frame, columns)
    if all_classes:
        for k, name in enumerate(names):
            frame = _beside(frame, {f"p({shown(name, 60)})": proba[:, k]})
    return frame
