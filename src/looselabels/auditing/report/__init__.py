"""One self-contained HTML page that says which labels to doubt, and why."""

from base64 import b64encode
from collections.abc import Mapping, Sequence
from hashlib import sha256
from importlib.resources import files

from looselabels._validation import import_extra
from looselabels.auditing.report._thumbnails import thumbnails
from looselabels.auditing.report._view import MOST_ROWS, view
from looselabels.auditing.report._words import count, name, percent, several, text

MOST_BYTES = 1_500_000  # a page that mail still takes


def render(content: Mapping, images: Sequence | None = None) -> str:
    """Return the report of an audit as one HTML page that needs nothing else.

    Parameters
    ----------
    content : dict
        What the audit found, as in summary.json, with its `rows`. Whatever is missing is left out.
    images : sequence of arrays, optional
        A picture for each of the rows, or None: (height, width) or (height, width, 3), as uint8 or
        as numbers of any range. They are shrunk until the page is below 1.5 MB.

    Examples
    --------
    >>> page = render({
    ...     "data": "pets.csv", "n_rows": 100, "n_labeled": 50,
    ...     "wrong": {"expected": 4.2, "low": 2, "high": 7, "doubted": 3},
    ... })
    >>> "About 4 of 50 labels (8%) are probably wrong; 3 are worth a look first." in page
    True
    """
    template = _template()
    shown = view(content)
    page = template.render(view=shown, images=None).lstrip()
    if images is None:
        return page
    n_rows = len(content.get("rows", ()))
    if len(images) != n_rows:
        raise ValueError(f"images has {len(images)} entries; rows has {n_rows}. Give one a row.")
    # what the text leaves goes to the pictures; the rest is their markup
    budget = MOST_BYTES - len(page.encode()) - 200 * min(n_rows, MOST_ROWS)
    pictures = thumbnails(images[:MOST_ROWS], budget)
    return template.render(view=shown, images=pictures).lstrip()


def _template():
    jinja2 = import_extra("jinja2", '"looselabels[report]"')
    here = files(__package__)
    # by hash, the browser runs these two and nothing that a name may smuggle in
    inlined = {
        kind: here.joinpath(f"page.{kind}").read_text(encoding="utf-8") for kind in ("css", "js")
    }
    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters |= {"count": count, "name": name, "percent": percent, "words": text}
    environment.filters["several"] = several
    environment.globals |= {
        **{kind: jinja2.utils.markupsafe.Markup(source) for kind, source in inlined.items()},
        **{f"{kind}_hash": _hash(source) for kind, source in inlined.items()},
    }
    return environment.from_string(here.joinpath("page.html.jinja").read_text(encoding="utf-8"))


def _hash(source: str) -> str:
    return "sha256-" + b64encode(sha256(source.encode()).digest()).decode()
