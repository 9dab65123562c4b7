"""The report: an audit as one self-contained HTML page."""

from base64 import b64encode
from collections.abc import Mapping, Sequence
from hashlib import sha256
from importlib.resources import files

from looselabels._validation import import_extra
from looselabels.auditing.report._list import FROM_0
from looselabels.auditing.report._thumbnails import thumbnails
from looselabels.auditing.report._view import facts, view
from looselabels.auditing.report._words import (
    clean,
    count,
    name,
    percent,
    plural,
    reviewed_sentence,
    verdict,
)

__all__ = ["FROM_0", "facts", "render", "reviewed_sentence", "verdict"]

MAX_BYTES = 10_000_000  # small enough to be sent by mail
IMAGE_MARKUP = 500  # bytes of HTML around each image, at most
FILES = ("page.html.jinja", "consensus.html.jinja", "page.css", "list.js", "review.js")


def render(content: Mapping, images: Sequence | None = None) -> str:
    """Return the report of an audit as one HTML page without external files.

    Parameters
    ----------
    content : dict
        The results of the audit, as in summary.json, together with its `rows`. Sections whose
        content is missing are left out.
    images : sequence of arrays, optional
        One image per row, or None for a row without one: (height, width) or (height, width, 3), as
        uint8 or as numbers of any range. They are scaled down until the page is below 10 MB.

    Examples
    --------
    >>> page = render({
    ...     "data": "pets.csv", "n_rows": 100, "n_labeled": 50,
    ...     "wrong": {"expected": 4.2, "low": 2, "high": 7, "doubted": 3},
    ... })
    >>> "About 4 (2 to 7) of 50 labels are probably wrong; 3 should be checked first." in page
    True
    """
    template, shown = _template(), view(content)
    page = template.render(view=shown, images=None, n_left_out=0).lstrip()
    if images is None:
        return page
    n_rows = len(content.get("rows", ()))
    if len(images) != n_rows:
        raise ValueError(
            f"images has {len(images)} entries; rows has {n_rows}. Pass one image (or None) per "
            "row."
        )
    listed = [images[i] for i in shown["list"]["positions"]]
    uris = thumbnails(listed, MAX_BYTES - len(page.encode()) - IMAGE_MARKUP * len(listed))
    n_left_out = sum(
        uri is None and image is not None for uri, image in zip(uris, listed, strict=True)
    )
    shown_images = uris if any(uris) else None
    return template.render(view=shown, images=shown_images, n_left_out=n_left_out).lstrip()


def _template():
    jinja2 = import_extra("jinja2", '"looselabels[report]"')
    folder = files(__package__)
    read = {path: folder.joinpath(path).read_text(encoding="utf-8") for path in FILES}
    inlined = {"css": read["page.css"], "js": read["list.js"] + read["review.js"]}
    environment = jinja2.Environment(
        loader=jinja2.DictLoader(read),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "clean": clean,
        "count": count,
        "name": name,
        "percent": percent,
        "plural": plural,
    }
    # The browser runs only the script and style with these hashes, not code injected by a name.
    environment.globals |= {
        **{kind: jinja2.utils.markupsafe.Markup(source) for kind, source in inlined.items()},
        **{f"{kind}_hash": _hash(source) for kind, source in inlined.items()},
    }
    return environment.get_template("page.html.jinja")


def _hash(source: str) -> str:
    return "sha256-" + b64encode(sha256(source.encode()).digest()).decode()
