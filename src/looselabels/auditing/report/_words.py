"""Names, numbers and sentences, as a person reads them."""

from collections.abc import Hashable, Mapping, Sequence
from math import isfinite
from unicodedata import east_asian_width

from looselabels._names import shown

NOTHING = "–"  # stands where a number is missing


def name(value, most=40) -> str:
    """Return how the page writes a name: safe to print, never empty, at most `most` wide.

    >>> name(["pets", None]), name(" "), name("a" * 99, 5)
    ('pets: (unlabeled)', '(blank)', 'aaaa…')
    """
    written = shown(plain(value), most)
    return narrowed(written, most) if written.strip() else "(blank)"


def plain(value) -> Hashable:
    """Return a name as it was before JSON, which writes tuples as lists."""
    return tuple(plain(part) for part in value) if isinstance(value, list | tuple) else value


def narrowed(written: str, most: int) -> str:
    """Return the text cut to `most` columns; a wide character, as in Chinese, takes two."""
    if width(written) <= most:
        return written
    while width(written) > most - 1:
        written = written[:-1]
    return written + "…"


def width(written: str) -> int:
    """Return how many columns a text takes."""
    return sum(2 if east_asian_width(letter) in "WF" else 1 for letter in written)


def text(value, most=400) -> str:
    r"""Return a sentence without control characters or line breaks, cut to `most` letters.

    >>> text("a\nb \x1b[31m")
    'a b \\x1b[31m'
    """
    letters = " ".join(str(value)[: 2 * most].split())
    clean = "".join(c if c.isprintable() else ascii(c)[1:-1] for c in letters)
    return clean if len(clean) <= most else clean[: most - 1] + "…"


def known(value) -> bool:
    """Return whether there is a number at all."""
    return value is not None and isfinite(value)


def count(value) -> str:
    """Return a number of rows: 1,797."""
    return f"{round(value):,}" if known(value) else NOTHING


def several(value, one: str, many: str) -> str:
    """Return "1 class" or "2 classes"."""
    return f"{count(value)} {one if round(value) == 1 else many}"


def percent(share, digits=0) -> str:
    """Return a share for people: 20%, but 0.3% and 99.7% near the ends, where it matters.

    >>> [percent(share) for share in (0, 0.00001, 0.003, 0.2, 0.997, 0.99999, 1)]
    ['0%', '<0.01%', '0.3%', '20%', '99.7%', '>99.99%', '100%']
    """
    if not known(share):
        return NOTHING
    rest = min(share, 1 - share)
    if digits or rest >= 0.01 or rest <= 0:
        return f"{100 * share:.{digits}f}%"
    if rest < 1e-4:
        return "<0.01%" if share < 0.5 else ">99.99%"
    return f"{100 * share:.{1 if rest >= 0.001 else 2}f}%"


def interval(low, high, show=percent) -> str:
    """Return "15% to 25%", or nothing where the number was told and has no interval."""
    return f"{show(low)} to {show(high)}" if known(low) and known(high) and low < high else ""


def all_of(names: Sequence, most=10) -> str:
    """Return "a, b and c", or "a, b and 7 more"."""
    written = [name(value) for value in names[:most]]
    if len(names) > most:
        written.append(f"{len(names) - most:,} more")
    return " and ".join([", ".join(written[:-1]), written[-1]] if len(written) > 1 else written)


# --------------------------------------------------------------------------------------- sentences


def verdict(content: Mapping) -> str:
    """Return what the audit found, in one sentence."""
    wrong, labeled = content["wrong"], content["n_labeled"]
    expected, doubted = round(wrong["expected"]), wrong["doubted"]
    if not labeled:
        return "No row has a label, so there is no label to doubt."
    if expected < 1 and not doubted:
        return f"Probably none of {count(labeled)} labels is wrong."
    if expected < 1:
        found = f"Probably none of {count(labeled)} labels is wrong"
    else:
        are = "is" if expected == 1 else "are"
        share = percent(wrong["expected"] / labeled)
        found = f"About {expected:,} of {count(labeled)} labels ({share}) {are} probably wrong"
    if not doubted:
        return f"{found}; no single one is more likely wrong than right."
    return f"{found}; {doubted:,} {'is' if doubted == 1 else 'are'} worth a look first."


def warnings(content: Mapping) -> list[str]:
    """Return what to know before trusting the rest."""
    found = [text(sentence) for sentence in content.get("warnings", ())]
    unseen, alike = content.get("unsupported_labels"), content.get("indistinct_classes") or ()
    if unseen:
        found.append(f"The design names labels that no row has: {all_of(unseen)}.")
    for names in alike[:5]:
        found.append(
            f"No label tells {all_of(names)} apart. How rows divide between them is a guess."
        )
    if len(alike) > 5:
        found.append(f"{len(alike) - 5:,} more groups of classes are not told apart by any label.")
    if not content.get("converged", True):
        found.append("The estimate was stopped before it settled; the numbers may still move.")
    return found


def calibration_verdict(error) -> str:
    """Return how far to trust what the model says."""
    if not known(error):
        return ""
    points = f"{100 * error:.1f} percentage points"
    if error < 0.03:
        return f"Said and seen differ by {points} on average: close."
    if error < 0.08:
        return f"Said and seen differ by {points} on average: read single doubts with some care."
    return f"Said and seen differ by {points} on average: too much to trust single doubts."
