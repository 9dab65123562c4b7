"""Files and folders that are written completely or not at all, and read without running code.

`new_file` and `new_folder` write next to the target, flush to disk, and rename. A failure, Ctrl-C
included, leaves the target as it was, and what replaces it has its permissions. What a killed
process left behind is removed after a day; a folder that it had moved away is put back by the next
`new_folder`.
"""

import os
import secrets
import time
from collections.abc import Callable, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from shutil import copymode, rmtree
from zipfile import ZIP_STORED, ZipFile
from zlib import crc32

DAY = 24 * 60 * 60  # seconds
MOMENT = 0.2  # seconds; between two renames, a folder is gone for less than a millisecond
PRIVATE = 0o700  # permissions of what replaces something, until it is complete
CURRENT_IS_GONE = "the current folder was deleted. Change to another one, or pass absolute paths."
MAX_PREFIX = 40  # characters of the target's name; file systems allow 255 bytes


# ----------------------------------------------------------------------------------------- writing


@contextmanager
def new_file(path, check: Callable[[Path], object]):
    """Yield a temporary path; the file written there becomes `path` if no error occurs.

    Parameters
    ----------
    path : str or path
        The file to create or replace. A symbolic link stays a link; its target is replaced.
    check : callable
        Called with the resolved path before anything is written and again before the file is
        replaced, because another process may have created it. It raises if `path` must not be
        replaced.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     with new_file(f"{folder}/a.txt", check_parent) as temporary:
    ...         _ = temporary.write_text("complete")
    ...     Path(folder, "a.txt").read_text()
    'complete'
    """
    path = resolved(path)
    check(path)
    temporary = _temporary(path)
    try:
        if path.exists():
            temporary.touch(PRIVATE)
        yield temporary
        _flush_to_disk(temporary)
        check(path)
        _copy_mode(path, temporary)
        os.replace(temporary, path)
    finally:
        with suppress(OSError):  # the error that is already on its way matters more
            temporary.unlink(missing_ok=True)
        _remove_strays(path)


@contextmanager
def new_folder(path, check: Callable[[Path], object]):
    """Yield a temporary folder; it becomes `path` if no error occurs. See `new_file`.

    A folder cannot be replaced in one step: the old one is renamed first, and renamed back if the
    new one cannot take its place. If the process is killed between the two steps, the next call
    renames the old one back (`restore`).

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     with new_folder(f"{folder}/model", check_parent) as temporary:
    ...         _ = (temporary / "a.txt").write_text("complete")
    ...     os.listdir(f"{folder}/model")
    ['a.txt']
    """
    path = resolved(path)
    restore(path)
    check(path)
    temporary = _temporary(path)
    old = temporary.with_name(f"{temporary.name}.old")
    try:
        # within try: Ctrl-C may come right after it
        temporary.mkdir(PRIVATE if path.exists() else 0o777)
        yield temporary
        for file in temporary.rglob("*"):
            if file.is_file():
                _flush_to_disk(file)
        check(path)
        for file in (temporary, *temporary.rglob("*")):
            _copy_mode(path / file.relative_to(temporary), file)
        if path.exists():
            path.rename(old)
        temporary.rename(path)
        rmtree(old, ignore_errors=True)
    except BaseException:  # KeyboardInterrupt too
        if old.exists() and not path.exists():
            old.rename(path)
        raise
    finally:
        rmtree(temporary, ignore_errors=True)
        _remove_strays(path)


def resolved(path) -> Path:
    """Return an absolute path without links; raise if it is relative to a folder that is gone."""
    try:
        return Path(path).resolve()
    except FileNotFoundError:
        raise FileNotFoundError(f"{path} cannot be found: {CURRENT_IS_GONE}") from None


def restore(path: Path) -> None:
    """Put a folder back that a process moved away to replace it, and was killed."""
    left = left_behind(path)
    if left is not None:
        left.rename(path)


def left_behind(path: Path) -> Path | None:
    """Return where the folder `path` is if a process was killed while it replaced the folder.

    A process that is replacing the folder now gets a moment to finish.
    """
    end = time.monotonic() + MOMENT
    while (old := _moved_away(path)) is not None and time.monotonic() < end:
        time.sleep(MOMENT / 20)
    return old


def _moved_away(path):
    if path.exists() or not path.parent.is_dir():
        return None
    found = [old for old in path.parent.glob(".*.old") if old.name.startswith(_prefix(path))]
    with suppress(FileNotFoundError):  # it was removed meanwhile, because `path` is complete
        return max(found, key=lambda old: old.stat().st_ctime, default=None)
    return None


def check_parent(path: Path) -> None:
    """Raise if the folder in which `path` should be created does not exist."""
    if not path.parent.is_dir():
        raise FileNotFoundError(f"{path.parent} is not a folder; create it first.")


def unexpected_files(folder: Path, expected: Mapping) -> list[str]:
    """Return the paths in `folder`, relative to it, that are not in the `expected` tree.

    `expected` maps the name of a file to None and the name of a folder to a tree of its own.
    """
    found = []
    for path in folder.iterdir():
        if path.name not in expected:
            found.append(path.name)
        elif expected[path.name] is not None and path.is_dir():
            inner = unexpected_files(path, expected[path.name])
            found += [os.path.join(path.name, name) for name in inner]
    return sorted(found)


def _prefix(path):
    name = path.name
    if len(name) > MAX_PREFIX:  # the number tells it from other long names
        name = f"{name[:MAX_PREFIX]}~{crc32(name.encode(errors='replace')):08x}"
    return f".{name}.writing-"


def _temporary(path):
    return path.with_name(_prefix(path) + secrets.token_hex(4))


def _copy_mode(old, new):
    with suppress(FileNotFoundError):
        copymode(old, new)


def _flush_to_disk(file):
    """Wait until the content is on disk: a rename may get there before the content it names."""
    with open(file, "r+b") as handle:
        os.fsync(handle.fileno())


def _remove_strays(path):
    """Remove what killed processes left, unless it may be in use or the only copy of a result."""
    with suppress(OSError):  # failing to tidy up is no reason to fail
        if path.exists():
            for stray in path.parent.iterdir():
                if stray.name.startswith(_prefix(path)):
                    _remove_if_old(stray)


def _remove_if_old(stray):
    with suppress(OSError):
        if time.time() - stray.stat().st_mtime < DAY:  # another process may be writing it
            return
        if stray.is_dir():
            rmtree(stray)
        else:
            stray.unlink()


# ----------------------------------------------------------------------------------------- reading


@contextmanager
def reading(file: Path):
    """Open a file of a saved model; any error while reading becomes one line that names the file.

    A damaged file can raise any exception; callers get ValueError.
    """
    if not file.is_file():
        raise ValueError(f"{file} is missing: the model is not complete.")
    with open(file, "rb") as handle:
        try:
            yield handle
        except Exception as error:
            reason = str(error) if type(error) is ValueError else f"{type(error).__name__}: {error}"
            reason = " ".join(reason.split())
            reason = reason if reason.isprintable() else ascii(reason)
            raise ValueError(f"{file} cannot be loaded: {reason}") from error


def check_archive(handle) -> None:
    """Raise if a zip archive has members in folders, or compressed ones (zip bombs need them)."""
    with ZipFile(handle) as archive:
        for member in archive.infolist():
            name = _shortened(member.filename)
            if "/" in member.filename or "\\" in member.filename:
                raise ValueError(f"it holds the path {name}.")
            if member.compress_type != ZIP_STORED:
                raise ValueError(f"it holds {name}, compressed.")
    handle.seek(0)


def _shortened(text):
    """Return a name as messages show it: `short_repr` without an import of NumPy."""
    return repr(text) if len(text) < 60 else f"{text[:57]!r}…"
