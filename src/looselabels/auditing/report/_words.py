"""How the page writes names, numbers and sentences."""

from collections.abc import Hashable, Mapping, Sequence
from math import ceil, isfinite
from unicodedata import east_asian_width

from looselabels._names import shown
from looselabels.estimation.reliability import LARGE_ERROR, SMALL_ERROR

NO_NUMBER = "–"  # written where a number is missing
MAX_GROUPS = 5  # of classes that cannot be distinguished, before the rest is only counted

SOURCE_NAMES = {
    "label_rates": "How often each class is labeled",
    "noise": "How often labels are wrong",
    "class_prior": "Class shares",
    "transition": "Transition as a whole",
}
SOURCES = {
    "specified": "specified",
    "implied": "implied by the label counts",
    "estimated": "estimated",
    "assumed": "assumed to be right, because of other parameters",
    "pooled": "estimated, as the mean of all annotators",
}


# ------------------------------------------------------------------------------- names and numbers


def name(value, max_width=40) -> str:
    """Return a name as the page writes it: printable, never empty, at most `max_width` columns.

    >>> name(["pets", None]), name(" "), name("a" * 99, 5)
    ('pets: (unlabeled)', '(blank)', 'aaaa…')
    """
    written = shown(tuple_from_json(value), max_width)
    return shortened(written, max_width) if written.strip() else "(blank)"


def quoted(value) -> str:
    """Return a name in quotation marks, which show spaces at its ends.

    >>> quoted("billing ")
    "'billing '"
    """
    return f"'{name(value)}'"


def exact_text(value) -> str:
    """Return a name unchanged as text, for files: "" stands for the missing label.

    >>> exact_text(None), exact_text(3), exact_text(["web", "cat"])
    ('', '3', 'web: cat')
    """
    if isinstance(value, list | tuple):
        return ": ".join(map(exact_text, value))
    return "" if value is None else str(value)


def tuple_from_json(value) -> Hashable:
    """Return a name with its lists as tuples: JSON has no tuples and writes them as lists."""
    if isinstance(value, list | tuple):
        return tuple(tuple_from_json(part) for part in value)
    return value


def shortened(written: str, max_width: int) -> str:
    """Return the text, cut to `max_width` columns if it is wider.

    >>> shortened("日本語", 5), shortened("日本", 4)
    ('日本…', '日本')
    """
    if width(written) <= max_width:
        return written
    while width(written) > max_width - 1:
        written = written[:-1]
    return written + "…"


def width(written: str) -> int:
    """Return the number of columns of a text; a wide character, as in Chinese, takes two."""
    return sum(2 if east_asian_width(letter) in "WF" else 1 for letter in written)


def clean(value, max_letters=400) -> str:
    r"""Return a sentence in one line, without control characters, cut to `max_letters`.

    >>> clean("a\nb \x1b[31m")
    'a b \\x1b[31m'
    """
    return printable(" ".join(str(value)[: 2 * max_letters].split()), max_letters)


def printable(text: str, max_letters=1000) -> str:
    r"""Return a text without control characters; spaces stay, as a command needs them.

    >>> printable("--merge 'a  b'\n")
    "--merge 'a  b'\\n"
    """
    if not text.isprintable():
        text = "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text[: max_letters + 1])
    return text if len(text) <= max_letters else text[: max_letters - 1] + "…"


def is_number(value) -> bool:
    """Return whether a value is a finite number, neither None nor NaN."""
    return value is not None and isfinite(value)


def count(value) -> str:
    """Return a number of rows with separators: 1,797."""
    return f"{round(value):,}" if is_number(value) else NO_NUMBER


def plural(value, one: str, many: str) -> str:
    """Return a count with its noun: "1 class", "2 classes"."""
    return f"{count(value)} {one if round(value) == 1 else many}"


def percent(share, digits=0) -> str:
    """Return a share in percent, with more digits close to 0% and 100%.

    >>> [percent(share) for share in (0, 0.00001, 0.003, 0.2, 0.997, 0.99999, 1 - 1e-16)]
    ['0%', '<0.01%', '0.3%', '20%', '99.7%', '>99.99%', '100%']
    """
    if not is_number(share):
        return NO_NUMBER
    distance = min(share, 1 - share)  # to the closer end
    if digits or distance >= 0.01 or not 0 < share < 1 - 1e-12:  # a sum to 1 is rounded
        return f"{100 * share:.{digits}f}%"
    if distance < 1e-4:
        return "<0.01%" if share < 0.5 else ">99.99%"
    return f"{100 * share:.{1 if distance >= 0.001 else 2}f}%"


def is_interval(low, high) -> bool:
    """Return whether two ends make an interval; those of a fixed number are equal."""
    return is_number(low) and is_number(high) and low < high


def interval(low, high, write=percent) -> str:
    """Return "15% to 25%", or nothing where there is no interval."""
    return f"{write(low)} to {write(high)}" if is_interval(low, high) else ""


def enumeration(names: Sequence, max_names=10, write=name) -> str:
    """Return names as part of a sentence.

    >>> enumeration(["cat", "dog", "cow"]), enumeration(["cat", "dog", "cow"], 2)
    ('cat, dog and cow', 'cat, dog and 1 more')
    """
    written = [write(value) for value in names[:max_names]]
    if len(names) > max_names:
        written.append(f"{len(names) - max_names:,} more")
    return " and ".join([", ".join(written[:-1]), written[-1]] if len(written) > 1 else written)


# --------------------------------------------------------------------------------------- sentences


def verdict(content: Mapping) -> str:
    """Return the main result of the audit in one sentence, or why there is no count.

    >>> spam = {"name": "spam", "expected": 120.3, "low": 95, "high": 150}
    >>> content = {"question": "unlabeled", "unlabeled": {"n_rows": 400, "classes": [spam]}}
    >>> verdict(content)
    "About 120 (95 to 150) of the 400 unlabeled rows are probably 'spam'."
    """
    if is_about_consensus(content):
        return _verdict_on_consensus(content)
    unlabeled = content.get("unlabeled") or {}
    if classes := counted_classes(content):
        return _verdict_on_unlabeled(classes, unlabeled)
    if is_about_unlabeled(content) and unlabeled.get("why_no_count"):
        return clean(unlabeled["why_no_count"])
    wrong = content["wrong"]
    if not is_number(wrong["expected"]):
        return clean(wrong.get("why_no_count") or "Wrong labels were not counted.")
    found, one = _number_wrong(wrong, content["n_labeled"]), "single"
    if wrong.get("n_reviewed"):
        found, one = _number_left(wrong, content["n_labeled"] - wrong["n_reviewed"]), "other"
    if wrong.get("n_reviewed") == content["n_labeled"]:
        return f"{found}."
    if wrong["doubted"]:
        return f"{found}; {wrong['doubted']:,} should be checked first."
    return f"{found}; no {one} label is more likely wrong than right."


def _number_wrong(wrong: Mapping, n_labeled: int) -> str:
    if upper_end(wrong) == 0:
        return f"No sign of wrong labels was found among {n_labeled:,} labels"
    written, verb = _estimate(wrong)
    return f"{written} of {n_labeled:,} labels {verb} wrong"


def _number_left(wrong: Mapping, n_left: int) -> str:
    """Return how many labels are wrong among those that nobody reviewed.

    >>> wrong = {"expected": 11.2, "low": 9, "high": 15, "found": 8}
    >>> _number_left(wrong, 170)
    'About 3 (1 to 7) of the 170 labels that were not reviewed are probably wrong'
    """
    if not n_left:
        return f"All labels were reviewed, and {wrong['found']:,} were wrong"
    left = {key: wrong[key] - wrong["found"] for key in ("expected", "low", "high")}
    if upper_end(left) == 0:
        return f"No sign of wrong labels was found among the {n_left:,} that were not reviewed"
    written, verb = _estimate(left)
    return f"{written} of the {n_left:,} labels that were not reviewed {verb} wrong"


def _verdict_on_unlabeled(classes: Sequence[Mapping], unlabeled: Mapping) -> str:
    rows = f"of the {unlabeled['n_rows']:,} unlabeled rows"
    if len(classes) == 1:
        written, verb = _estimate(classes[0])
        return f"{written} {rows} {verb} {quoted(classes[0]['name'])}."
    without_ends = {"expected": sum(part["expected"] for part in classes)}
    written, verb = _estimate(unlabeled.get("together") or without_ends)
    return f"{written} {rows} {verb} of one of {len(classes):,} labeled classes."


def _verdict_on_consensus(content: Mapping) -> str:
    """Return how many rows have a settled class.

    >>> _verdict_on_consensus({"n_rows": 40, "consensus": {"n_open": 3, "n_settled": 37}})
    'The consensus is settled in 37 of 40 rows; 3 are open.'
    """
    part, n_rows = content["consensus"], content["n_rows"]
    if not part["n_open"]:
        return f"The consensus is settled in all {n_rows:,} rows."
    need = "need more answers" if part.get("more_answers") else "are open"
    if part["n_open"] == 1:
        need = need.replace("need", "needs").replace("are", "is")
    found = f"{part['n_settled']:,} of {n_rows:,} rows" if part["n_settled"] else "none of the rows"
    return f"The consensus is settled in {found}; {part['n_open']:,} {need}."


def _estimate(part: Mapping) -> tuple[str, str]:
    """Return an estimated number with its interval, and the verb that follows it."""
    most = upper_end(part)
    if most is not None:
        return f"At most {most:,}", "is" if most == 1 else "are"
    n, ends = round(part["expected"]), (part.get("low"), part.get("high"))
    between = f" ({interval(*ends, count)})" if is_interval(*ends) else ""
    return f"About {n:,}{between}", "is probably" if n == 1 else "are probably"


def upper_end(part: Mapping) -> int | None:
    """Return the upper end of an interval that reaches zero: only this end is known then.

    >>> upper_end({"expected": 3.1, "low": 0.2, "high": 7.3})
    8
    >>> upper_end({"expected": 3.1, "low": 1, "high": 7.3})  # None: it does not reach zero
    """
    low, high = (part["expected"] if part.get(k) is None else part[k] for k in ("low", "high"))
    return None if round(low) else ceil(high)


def is_about_unlabeled(content: Mapping) -> bool:
    """Return whether the audit asks for the classes of unlabeled rows, not for wrong labels."""
    return content.get("question") == "unlabeled"


def is_about_consensus(content: Mapping) -> bool:
    """Return whether rows have several answers, and the audit asks for their consensus."""
    return content.get("question") == "consensus"


def counted_classes(content: Mapping) -> list[Mapping]:
    """Return the classes whose unlabeled rows were counted; none if labels are in question."""
    classes = (content.get("unlabeled") or {}).get("classes") or ()
    return [c for c in classes if is_number(c["expected"]) and is_about_unlabeled(content)]


def reviewed_sentence(content: Mapping) -> str:
    """Return how many doubts a person confirmed, next to how many were expected.

    >>> reviewed_sentence({"reviewed": {"n": 50, "confirmed": 31, "expected": 28.4}})
    'Of 50 reviewed labels 31 were wrong; 28 were expected.'

    If the audit is about unlabeled rows, the sentence is about how many were of a labeled class.
    """
    reviewed = content.get("reviewed")
    if not reviewed or not reviewed["n"]:
        return ""
    n, confirmed, expected = (count(reviewed[k]) for k in ("n", "confirmed", "expected"))
    found = f"Of {n} reviewed labels {confirmed} were wrong"
    if is_about_unlabeled(content):
        found = f"Of {n} reviewed unlabeled rows {confirmed} were of a labeled class"
    return f"{found}; {expected} were expected." if is_number(reviewed["expected"]) else f"{found}."


def warnings(content: Mapping) -> list[str]:
    """Return what the reader should know before relying on the numbers."""
    found = [clean(sentence) for sentence in content.get("warnings", ())]
    unused, groups = content.get("unsupported_labels"), content.get("indistinct_classes") or ()
    if unused:
        found.append(f"The design names labels that no row has: {enumeration(unused)}.")
    for classes in groups[:MAX_GROUPS]:
        found.append(
            f"The classes {enumeration(classes)} have identical label distributions and cannot be "
            "distinguished; how rows are divided among them is arbitrary."
        )
    if len(groups) > MAX_GROUPS:
        more = plural(len(groups) - MAX_GROUPS, "more group of classes", "more groups of classes")
        found.append(f"There is no way to distinguish the classes within {more}.")
    if not content.get("converged", True):
        found.append("The estimation stopped before it converged; the numbers may still change.")
    return found


def transition_sentence(source: str | None) -> str:
    """Return where the transition comes from; None: it is unknown, but no estimate."""
    return {
        "specified": "You specified the transition; it was used unchanged.",
        "implied": "The label counts imply the transition; it was used unchanged.",
        "estimated": "The transition was estimated from the data.",
        "pooled": "This is the transition of a typical annotator, estimated from all answers.",
    }.get(source or "", "The transition was used unchanged.")


def calibration_verdict(error) -> str:
    """Return how far single probabilities can be trusted, given the calibration error.

    >>> print(calibration_verdict(0.121))
    Predicted label probabilities are off by 12.1 percentage points on average; do not trust \
single doubts.
    """
    if not is_number(error):
        return ""
    found = (
        f"Predicted label probabilities are off by {100 * error:.1f} percentage points on average"
    )
    if error < SMALL_ERROR:
        return f"{found}, which is a small error."
    if error < LARGE_ERROR:
        return f"{found}; treat single doubts with care."
    return f"{found}; do not trust single doubts."
