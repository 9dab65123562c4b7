"""A folder of images with one subfolder per class, read as a table of paths and labels."""

import os
import warnings
from pathlib import Path
from typing import NamedTuple

from looselabels._validation import some_of
from looselabels.command.images import SUFFIXES
from looselabels.command.tables import TableError, pa, pd

PATH, LABEL = "path", "label"  # the columns of the table
N_ROWS = 10_000  # per block
PARTS = {"train", "training", "test", "testing", "val", "valid", "validation", "dev"}


def read_image_folder(folder, *, labeled=True):
    """Return a table with a row per image: its path, relative to the folder, and its label.

    The label is the name of the subfolder; images directly in the folder have none. Hidden files
    are skipped, and so are links out of the folder and to folders, and files that are no images;
    a warning names them.

    Parameters
    ----------
    folder : str or path
        The folder.
    labeled : bool, default=True
        Whether to raise if no image has a label.
    """
    found = _list_files(Path(folder))
    if not found.images:
        raise TableError(f"{folder} contains no image ({', '.join(SUFFIXES)}).")
    labels = [path.split("/")[0] if "/" in path else None for path in found.images]
    distinct = sorted({label for label in labels if label is not None})
    if labeled and not distinct:
        raise TableError(f"{folder} has no subfolder with images; make one for each class.")
    if labeled and {label.lower() for label in distinct} <= PARTS:
        raise TableError(
            f"The subfolders of {folder} are {some_of(distinct)}, which look like parts of "
            f"the data, not like classes. Name one of them: {Path(folder) / distinct[0]}."
        )
    _warn_of_what_was_skipped(found)
    table = pa.table({PATH: pa.array(found.images), LABEL: pa.array(labels, pa.string())})
    frame = table.to_pandas(types_mapper=pd.ArrowDtype)
    frame.attrs["looselabels_folder"] = str(folder)
    return frame


def image_folder_blocks(folder):
    """Yield the table of a folder in blocks, whose labels may all be missing."""
    frame = read_image_folder(folder, labeled=False)
    for start in range(0, len(frame), N_ROWS):
        yield frame.iloc[start : start + N_ROWS]


def with_paths_from(frame, folder, place):
    """Return the table of `folder` with paths that are relative to the folder `place` instead."""
    try:
        start = os.path.relpath(folder, place)
    except ValueError:  # two drives of Windows
        start = os.path.abspath(folder)
    paths = [Path(start, path).as_posix() for path in frame[PATH]]
    return frame.assign(**{PATH: pd.array(paths, frame[PATH].dtype)})


class _Files(NamedTuple):
    """The files of a folder, as paths relative to it with / as separator, in order."""

    images: list[str]
    others: list[str]
    links: list[str]


def _list_files(folder: Path) -> _Files:
    found, top = _Files([], [], []), os.path.realpath(folder)
    for place, folders, names in os.walk(folder, onerror=_raise):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        links = [name for name in folders if os.path.islink(os.path.join(place, name))]
        found.links.extend(_relative(folder, place, name) for name in links)
        for name in sorted(name for name in names if not name.startswith(".")):
            file = os.path.join(place, name)
            is_inside = os.path.realpath(file).startswith(os.path.join(top, ""))
            if os.path.islink(file) and not is_inside:
                kind = found.links
            elif name.lower().endswith(SUFFIXES) and os.path.isfile(file) and _is_unicode(file):
                kind = found.images
            else:
                kind = found.others
            kind.append(_relative(folder, place, name))
    found.images.sort(key=lambda path: path.split("/"))  # as sorted(Path(folder).rglob("*"))
    return found


def _raise(error):
    raise error


def _is_unicode(name) -> bool:
    """Return whether a name can be written to a table; on Linux, it may be any bytes."""
    try:
        return bool(name.encode())
    except UnicodeEncodeError:
        return False


def _relative(folder, place, name):
    return Path(place, name).relative_to(folder).as_posix()


def _warn_of_what_was_skipped(found: _Files):
    deeper = [path for path in found.images if path.count("/") > 1]
    for words, names in (
        ("Files that are no images were skipped", found.others),
        ("Links to folders, or out of the folder, were skipped", found.links),
        ("Images in deeper folders have the name of the first folder as label", deeper),
    ):
        if names:
            warnings.warn(f"{words} ({len(names):,}): {some_of(names, 3)}.", stacklevel=3)
