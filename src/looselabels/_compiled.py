"""The compiled row solver, replaced by the batched one if numba fails.

numba keeps compiled code in files. If these are damaged, or cannot be written, it raises errors of
many types, when a kernel is defined or when it is first called. No result may depend on that.
"""

import warnings
from functools import partial
from importlib import import_module
from threading import Lock

from looselabels import _rows

ERRORS: list[Exception] = []  # the first one ends the use of numba in this process
LOCK = Lock()


def _solve(name, *arguments):
    if not ERRORS:
        try:
            return getattr(import_module("looselabels._rows_numba"), name)(*arguments)
        except MemoryError:
            raise
        except Exception as error:
            with LOCK:  # of several threads that fail, one warns
                if not ERRORS:
                    _warn(error)
                ERRORS.append(error)
    return getattr(_rows, name)(*arguments)


# The functions of `_rows`, compiled as long as numba works.
evaluate, ascend, solve_dual, is_ambiguous = (
    partial(_solve, name) for name in ("evaluate", "ascend", "solve_dual", "is_ambiguous")
)


def _warn(error):
    warnings.warn(
        f"numba failed ({type(error).__name__}: {error}), so rows are solved without it: slower, "
        "with the same results. If its cache is damaged, full or not writable, set the environment "
        "variable NUMBA_CACHE_DIR to an empty folder.",
        RuntimeWarning,
        stacklevel=3,
    )
