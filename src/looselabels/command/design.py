"""Design files: a small JSON file that specifies p(label | class)."""

import json
from pathlib import Path

from looselabels._names import UNLABELED
from looselabels._validation import parse_json, short_repr
from looselabels.transition import Transition

KEYS = ("meanings", "counts", "noise")


def read_design(path: Path) -> Transition:
    """Return the transition that a JSON file specifies.

    The file contains either a transition, as written by `Transition.to_json`, or the classes that
    each label can stand for ("meanings"), optionally with the number of rows per label ("counts")
    and the share of wrong labels ("noise"). The key "" or "(unlabeled)" is the missing label.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     file = Path(folder, "pets.json")
    ...     _ = file.write_text('{"meanings": {"cat": "cat", "": ["cat", "dog"]}}')
    ...     read_design(file).labels
    ('cat', None)
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
        content = parse_json(text)
    except (json.JSONDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ValueError(f"it is not valid JSON: {error}.") from None
    if not isinstance(content, dict) or not {"meanings", "proba"} & set(content):
        raise ValueError("it needs the key 'meanings', or 'proba' of a transition.")
    if "meanings" not in content:
        return Transition.from_json(text)
    _check_keys(content)
    meanings, counts = _with_missing(content["meanings"]), content.get("counts")
    transition = Transition.from_meanings(meanings, counts and _with_missing(counts))
    return transition.with_noise(content.get("noise", 0.0))


def _check_keys(content):
    unknown = [key for key in content if key not in KEYS]
    if unknown:
        raise ValueError(f"it has the key {short_repr(unknown[0])}; possible keys are {KEYS}.")
    for key in ("meanings", "counts"):
        value = content.get(key, {})
        if not isinstance(value, dict) and not (key == "counts" and value is None):
            raise ValueError(f"{key} must be a mapping from label; it is {short_repr(value)}.")
    if not content["meanings"]:
        raise ValueError("meanings contains no label.")


def _with_missing(by_label):
    """Return a mapping by label with None instead of "" or "(unlabeled)"."""
    names = ("", UNLABELED)
    return {None if label in names else label: value for label, value in by_label.items()}
