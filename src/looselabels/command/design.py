"""What is specified about labels: design files, class shares and label rates."""

import json
from collections import Counter
from pathlib import Path

import click
import numpy as np

from looselabels._names import UNLABELED
from looselabels._validation import parse_json, short_repr
from looselabels.command.labels import Labels
from looselabels.command.sources import nearest
from looselabels.command.spelling import label_as_text
from looselabels.learning.label_design import implied_class_prior
from looselabels.transition import Transition, is_missing

KEYS = ("meanings", "counts", "noise")
ROUNDING = 1e-6  # of shares that are written by hand


def read_design(path: Path, y=None) -> Transition:
    """Return the transition that a JSON file specifies.

    The file contains either a transition, as written by `Transition.to_json`, or the classes that
    each label can stand for ("meanings"), optionally with the number of rows per label ("counts")
    and the share of wrong labels ("noise"). The key "" or "(unlabeled)" is the missing label.
    If a table consists of several data sets, "sources" maps the name of each of them to such a
    design, and the labels are pairs (source, label).

    Parameters
    ----------
    path : Path
        The file.
    y : list of labels, default=None
        Where counts are taken from if the file has none. None: they are equal.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     file = Path(folder, "pets.json")
    ...     _ = file.write_text('{"meanings": {"cat": "cat", "": ["cat", "dog"]}}')
    ...     print(read_design(file, ["cat"] * 3 + [None] * 2))
    class   cat  (unlabeled)
    cat    0.75         0.25
    dog       0            1
    """
    try:
        content = parse_json(path.read_text(encoding="utf-8-sig"))
    except (json.JSONDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ValueError(f"it is not valid JSON: {error}.") from None
    counts = None if y is None else Counter(y)
    if isinstance(content, dict) and "sources" in content:
        return _merged_sources(content, counts)
    return _transition(content, counts)


def read_design_file(path, y=None):
    """Return the transition of a design file; an error names the file and the help."""
    try:
        return read_design(path, y)
    except (ValueError, TypeError, RecursionError) as error:
        reason = " ".join(str(error).split()).removesuffix(".")
        raise click.UsageError(f"{path}: {reason}. See looselabels design --help.") from None


def _merged_sources(content, counts) -> Transition:
    """Return the transition of several data sets.

    Sizes that are not in the file are the rows of each class that the label counts imply, because
    data sets rarely have the same class shares.
    """
    _check_keys(content, ("sources", "sizes"), ("sources", "sizes"))
    if not content["sources"]:
        raise ValueError("sources contains no data set.")
    own: dict[str, Counter] = {name: Counter() for name in content["sources"]}
    for (source, label), count in (counts or {}).items():
        own[source][label] = count
    transitions = {}
    for name, part in content["sources"].items():
        try:
            transitions[name] = _transition(part, None if counts is None else own[name])
        except (ValueError, TypeError) as error:
            raise ValueError(f"source {short_repr(name)}: {error}") from None
    sizes = {name: _rows_by_class(t, own[name]) for name, t in transitions.items()}
    return Transition.combine(transitions, content.get("sizes") or sizes)


def _rows_by_class(transition, counts) -> dict:
    """Return the rows of each class that label counts imply, and one more: none is impossible."""
    rows = np.array([counts[label] for label in transition.labels], dtype=float)
    by_class = np.zeros(len(transition.classes))
    if rows.any():
        by_class = rows.sum() * implied_class_prior(transition.proba, rows / rows.sum())
    return dict(zip(transition.classes, (1 + by_class).tolist(), strict=True))


def _transition(content, counts) -> Transition:
    """Return the transition of one data set."""
    if not isinstance(content, dict) or not {"meanings", "proba"} & set(content):
        raise ValueError("it needs the key 'meanings', or 'proba' of a transition.")
    if "meanings" not in content:
        return Transition.from_json(json.dumps(content))
    _check_keys(content, KEYS, ("meanings", "counts"))
    if not content["meanings"]:
        raise ValueError("meanings contains no label.")
    meanings, given = _with_missing(content["meanings"]), content.get("counts")
    if given:
        counts = _with_missing(given)
    elif counts is not None:  # a label without rows is rare, but not impossible
        counts = {label: max(1, counts[label]) for label in meanings}
    return Transition.from_meanings(meanings, counts).with_noise(content.get("noise", 0.0))


def _check_keys(content, keys, mappings):
    unknown = [key for key in content if key not in keys]
    if unknown:
        raise ValueError(f"it has the key {short_repr(unknown[0])}; possible keys are {keys}.")
    for key in mappings:
        value = content.get(key, {})
        if not isinstance(value, dict) and not (key in ("counts", "sizes") and value is None):
            of = "data set" if "sources" in keys else "label"
            raise ValueError(f"{key} must be a mapping from {of}; it is {short_repr(value)}.")


def _with_missing(by_label):
    """Return a mapping by label with None instead of "" or "(unlabeled)"."""
    names = ("", UNLABELED)
    return {None if label in names else label: value for label, value in by_label.items()}


# ------------------------------------------------------------------- class shares and label rates


def class_prior(y, labels: Labels, shares=()) -> dict | None:
    """Return the share of each class that --class-share or --label-rate specifies, or None.

    Parameters
    ----------
    y : list
        The labels.
    labels : Labels
        What else was specified about them. With a `label_rate`, p(class) = n_class / (n · rate).
    shares : sequence of text, default=()
        CLASS=SHARE. One class can be left out; it gets the rest.

    Examples
    --------
    >>> y, labels = ["cat", None, "dog", None], Labels("kind", negative="other")
    >>> class_prior(y, labels, ["cat=0.5", "dog=0.25"])
    {'cat': 0.5, 'dog': 0.25, 'other': 0.25}
    >>> class_prior(y, labels._replace(label_rate=0.8))
    {'cat': 0.3125, 'dog': 0.3125, 'other': 0.375}
    """
    if not shares and labels.label_rate is None:
        return None
    counts = Counter(label for label in y if not is_missing(label))
    observed = {label: counts[label] / len(y) for label in sorted(counts, key=str)}
    if labels.label_rate is not None:
        # the share of the labels that are on rows of their class
        right = 1 - labels.noise if isinstance(labels.noise, float) else 1.0
        observed = {name: right * share for name, share in observed.items()}
        return _shares_of_rate(observed, labels.negative, labels.label_rate)
    names = list(observed) if labels.design is None else list(labels.design.classes)
    names += [] if labels.negative is None else [labels.negative]
    given = [(name, float(share)) for name, _, share in (word.rpartition("=") for word in shares)]
    for name, count in Counter(name for name, _ in given).items():
        if count > 1:
            raise ValueError(f"--class-share of {short_repr(name)} is given {count} times.")
    prior = _complete(dict(given), names)
    if labels.design is None:
        _check_observed(prior, observed, noise=labels.noise)
    return prior


def _shares_of_rate(observed, negative, rate) -> dict:
    labeled = sum(observed.values())
    if labeled > rate * (1 + ROUNDING):
        raise ValueError(
            f"--label-rate {rate:g} is too low: {labeled:.3g} of all rows are labeled, so that the "
            f"labeled classes would have {labeled / rate:.3g} times as many rows as the table."
        )
    prior = {name: share / rate for name, share in observed.items()}
    return prior | {negative: max(0.0, 1 - sum(prior.values()))}


def _complete(shares, names) -> dict:
    """Return one share for each of the names; one that was left out gets the rest."""
    by_text = {label_as_text(name): name for name in names}
    for name in shares:
        if label_as_text(name) not in by_text:
            hint = nearest(name, names).replace("It has", "The classes are")
            raise ValueError(f"--class-share: there is no class {short_repr(name)}.{hint}")
    prior = {by_text[label_as_text(name)]: share for name, share in shares.items()}
    left_out, total = [name for name in names if name not in prior], sum(prior.values())
    if len(left_out) > 1:
        raise ValueError(
            f"--class-share: the shares of {short_repr(left_out[0])} and {len(left_out) - 1} more "
            "are missing; one class can be left out."
        )
    if total > 1 + ROUNDING or (not left_out and total < 1 - ROUNDING):
        least = "at most" if left_out else "exactly"
        raise ValueError(f"--class-share: the shares sum to {total:.8g}; they must be {least} 1.")
    return {name: prior.get(name, max(0.0, 1 - total)) for name in names}


def _check_observed(prior, observed, noise):
    """Raise if more rows have the label of a class than the class has rows."""
    if sum(observed.values()) > 1 - ROUNDING and noise != 0:
        return  # every row has a label, and wrong ones explain the difference
    for name, share in observed.items():
        if share > prior[name] + ROUNDING:
            raise ValueError(
                f"--class-share: {short_repr(name)} has a share of {prior[name]:.6g}, but "
                f"{share:.6g} of all rows have its label. It must be at least that."
            )
