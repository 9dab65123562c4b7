"""Whether results can be written to a place; checked before anything is computed."""

import os
import secrets
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from looselabels._files import check_parent, resolved, restore, unexpected_files
from looselabels._validation import some_of


def check_file(path, force=False) -> None:
    """Raise if a file cannot be written at `path`; "-" is stdout, which must be open."""
    if path == "-":
        if sys.stdout is None:
            raise OSError("stdout is closed; name a file with -o.")
        return
    path = resolved(path)
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder; name a file in it.")
    check_parent(path)
    if path.exists() and not path.is_file():
        raise FileExistsError(f"{path} is not a regular file; write to - (stdout) instead.")
    if path.exists() and not force:
        raise FileExistsError(f"{path} exists; --force replaces it.")
    if not os.access(path.parent, os.W_OK | os.X_OK):
        raise PermissionError(f"{path.parent} is not writable; choose another folder.")


def check_folder(path, force: bool, written: Mapping) -> Path:
    """Return the resolved path of a folder for results, or raise if it cannot be written.

    Parameters
    ----------
    path : str or path
        The folder; the one that contains it must exist.
    force : bool
        Whether to replace the results of an earlier run.
    written : mapping
        What a run writes, as a tree for `unexpected_files`. A folder that contains anything else
        is never replaced.
    """
    path = resolved(path)
    check_parent(path)
    _check_writable(path)
    restore(path)
    if not path.exists():
        return path
    if not path.is_dir():
        raise NotADirectoryError(f"{path} is a file; name a folder.")
    with suppress(FileNotFoundError):  # the current folder may be gone
        if os.path.samefile(path, "."):
            raise FileExistsError(f"{path} is the current folder; name a folder in it.")
    if any(path.iterdir()) and not force:
        raise FileExistsError(f"{path} exists; --force replaces what an earlier run wrote there.")
    others = unexpected_files(path, written)
    if others:
        raise FileExistsError(
            f"{path} contains {some_of(others)}, which no earlier run wrote: it is not replaced."
        )
    return path


def _check_writable(path):
    """Create a folder next to `path` and remove it: the only sure test on every file system."""
    probe = path.with_name(f".{path.name[:40]}.{secrets.token_hex(4)}")
    try:
        probe.mkdir()
    except OSError as error:
        reason = f"{path.parent} is not writable ({error.strerror}); choose another folder."
        raise PermissionError(reason) from None
    finally:  # also after Ctrl-C
        with suppress(OSError):
            probe.rmdir()
