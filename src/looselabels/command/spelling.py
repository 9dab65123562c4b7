"""Spellings of labels: merging them, and finding labels that differ only in their spelling."""

import re
from collections.abc import Mapping
from pathlib import Path

from looselabels._names import listed
from looselabels._validation import parse_json, short_repr
from looselabels.command.shell import join_pair, shell_word, split_pair
from looselabels.command.tables import read_table


def label_as_text(label) -> str:
    """Return one text for labels that files write in several ways: True and TRUE, 1.0 and 1."""
    text = str(label)
    if text.lower() in ("true", "false"):
        return text.lower()
    return text.removesuffix(".0") if re.fullmatch(r"-?\d+\.0", text) else text


def respelled(label, strip, merge):
    """Return the label that a cell stands for."""
    if label is not None and label_as_text(label) in merge:
        return merge[label_as_text(label)]
    if strip and isinstance(label, str):
        label = joined(label) or None
    return None if label is None else merge.get(label_as_text(label), label)


def joined(text) -> str:
    """Return a text without spaces around it, and with single spaces in it."""
    return " ".join(text.split())


def read_merges(words) -> dict[str, str]:
    """Return the label to use instead of each `label_as_text`, from FROM=TO and from files.

    A file is JSON, {"billing": "Billing"}, or a table with the columns from and to. A label that is
    merged into one that is merged itself gets the last of them.

    Examples
    --------
    >>> read_merges(["billing=Billing", "Billing=Invoice"])
    {'billing': 'Invoice', 'Billing': 'Invoice'}
    """
    pairs = [pair for word in words for pair in _pairs(word)]
    merge: dict[str, str] = {}
    for old, new in pairs:
        if not new:
            raise ValueError(f"--merge {old!r} names no label. Is it --unlabeled {old!r}?")
        key = label_as_text(old)
        if merge.setdefault(key, new) != new:
            names = listed([merge[key], new])
            raise ValueError(
                f"--merge: {short_repr(old)} is mapped to each of {names}; keep one of them."
            )
    return {old: _end_of_chain(old, merge) for old in merge}


def _pairs(word) -> list[tuple[str, str]]:
    path = Path(word)
    if not path.is_file():
        pair = split_pair(word)
        return [] if pair is None else [pair]
    if path.suffix.lower() == ".json":
        try:
            found = parse_json(path.read_text(encoding="utf-8-sig"))
        except (ValueError, RecursionError) as error:
            raise ValueError(f"{path} is not valid JSON: {error}.") from None
        if not isinstance(found, dict) or not all(isinstance(new, str) for new in found.values()):
            raise ValueError(f'{path} must map labels to labels, such as {{"billing": "Billing"}}.')
        return list(found.items())
    frame = read_table(path)
    if list(frame.columns) != ["from", "to"]:
        raise ValueError(f"{path} must have the columns from and to; it has {list(frame.columns)}.")
    return [(str(old), "" if new is None else str(new)) for old, new in _cells(frame)]


def _cells(frame):
    return frame.astype(object).where(frame.notna(), None).to_numpy().tolist()


def _end_of_chain(label, merge) -> str:
    seen = [label]
    while (new := merge.get(label_as_text(seen[-1]), seen[-1])) != seen[-1]:
        seen.append(new)
        if new in seen[:-1]:
            raise ValueError(f"--merge: {listed(seen)} form a circle; name the label to keep.")
    return seen[-1]


def spelling_variants(counts: Mapping, command="") -> list[dict]:
    """Return the labels that differ only in case, in spaces or as 1 and 1.0, and how to merge them.

    Parameters
    ----------
    counts : mapping from label to its number of rows
        The most frequent spelling is kept, without unnecessary spaces.
    command : str, default=""
        The command that the options are added to: in each finding, those of all of them.

    Examples
    --------
    >>> spelling_variants({"Billing": 7, "billing ": 1, "other": 5})[0]["options"]
    "--merge 'billing =Billing'"
    >>> spelling_variants({"Billing": 7, "Billing ": 1})[0]["options"]
    '--strip'
    """
    groups: dict = {}
    for label in sorted(label for label in counts if isinstance(label, str)):
        groups.setdefault(label_as_text(joined(label).casefold()), []).append(label)
    found = [
        {"labels": group, "options": " ".join(map(shell_word, _merging_options(group, counts)))}
        for group in groups.values()
        if len(group) > 1
    ]
    merging = f"{command} {_all_options(found)} --force".strip()
    return [variant | {"command": merging} for variant in found]


def _all_options(variants) -> str:
    return " ".join(dict.fromkeys(variant["options"] for variant in variants))


def _merging_options(group, counts) -> list[str]:
    if len(set(map(joined, group))) == 1:
        return ["--strip"]
    kept = joined(max(group, key=lambda label: counts[label]))
    return [w for label in group if label != kept for w in ("--merge", join_pair(label, kept))]


def _difference(group) -> str:
    if len({joined(label).casefold() for label in group}) > 1:
        return "are spellings of one number"
    return "differ only in case or spaces"


def describe_variants(variants) -> list[str]:
    """Return one sentence for each finding of `spelling_variants`, and the options for all."""
    found = [f"Labels {listed(v['labels'])} {_difference(v['labels'])}." for v in variants]
    if found:
        them = "all of these" if len(found) > 1 else "them"
        found[-1] += f" To merge {them}, add {_all_options(variants)}."
    return found
