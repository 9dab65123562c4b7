"""Independent tasks in parallel, by joblib; a killed process costs time, but no result."""

import re
import warnings
from concurrent.futures import Future
from contextlib import contextmanager
from functools import cache
from itertools import starmap

from joblib import effective_n_jobs
from joblib.externals.loky.process_executor import TerminatedWorkerError
from joblib.parallel import get_active_backend
from sklearn.utils.parallel import Parallel, delayed


def in_parallel(function, arguments, n_jobs, prefer=None):
    """Yield ``function(*one)`` for each `one` of `arguments`, in their order.

    If a process is killed, which usually means that memory ran out, the tasks that are left are
    done by half as many processes. Never by this one: whatever killed the other could kill it too.

    Examples
    --------
    >>> list(in_parallel(pow, [(2, 3), (3, 2)], n_jobs=1))
    [8, 9]
    """
    arguments, n_done = list(arguments), 0
    try:
        for result in _results(function, arguments, n_jobs, prefer):
            yield result
            n_done += 1
        return
    except TerminatedWorkerError:
        n_before = effective_n_jobs(n_jobs)
    n_processes = max(2, n_before // 2)
    warnings.warn(
        f"One of {n_before} processes was killed, probably because memory ran out; "
        f"{n_processes} processes continue.",
        RuntimeWarning,
        stacklevel=2,
    )
    try:
        yield from _results(function, arguments[n_done:], n_processes, prefer)
    except TerminatedWorkerError as error:
        raise ChildProcessError(
            f"Processes were killed twice, the second time with {n_processes} of them at work. If "
            "memory ran out, use one process (n_jobs=1; --jobs 1) or fewer rows."
        ) from error


def _results(function, arguments, n_jobs, prefer):
    """Return an iterator of results, by threads if the backend of the user has none.

    One job needs no joblib, which takes longer for a task than a small tree takes to predict.
    Processes get the configuration of scikit-learn and the filters of warnings of this one.
    The backend "multiprocessing" has none; nor can it send functions that are defined in functions.
    """
    if effective_n_jobs(n_jobs) == 1 and not uses_dask():
        return starmap(function, arguments)
    backend, _ = get_active_backend()
    how = {"prefer": prefer} if backend.supports_return_generator else {"backend": "threading"}
    if uses_dask():
        how["backend"] = dask_backend(backend.client)
    run = Parallel(n_jobs, return_as="generator", **how)
    return run(delayed(function)(*one) for one in arguments)


@contextmanager
def each_warning_once():
    """Show a warning of the block once, also if many models give it, with other numbers in it."""
    shown, show = set(), warnings.showwarning

    def show_new(message, category, filename, lineno, *rest):
        kind = category, filename, lineno, re.sub(r"\d+", "", str(message))
        if kind not in shown:
            shown.add(kind)
            show(message, category, filename, lineno, *rest)

    warnings.showwarning = show_new
    try:
        yield
    finally:
        warnings.showwarning = show


# ---------------------------------------------------------------------------------- a Dask cluster


def uses_dask() -> bool:
    """Return whether joblib's backend for Dask is active, as in ``parallel_config("dask")``."""
    return "Dask" in type(get_active_backend()[0]).__name__


def dask_backend(client=None):
    """Return joblib's backend for a client of Dask, but one that reports lost tasks.

    joblib 1.6 waits without end for a task whose workers have died, because nothing tells it.
    """
    return _dask_backend_class()(client=client)


@cache
def _dask_backend_class():
    from joblib._dask import DaskDistributedBackend  # needs Dask

    class DaskBackend(DaskDistributedBackend):
        def submit(self, func, callback=None):
            def report(done):
                if done.exception() is not None:
                    callback(done)  # joblib calls it for results only

            future = super().submit(func, callback)
            future.add_done_callback(report)
            return future

        def retrieve_result_callback(self, out):
            lost = out.exception() if isinstance(out, Future) else out
            if isinstance(lost, BaseException):
                raise _plain_error(lost) from lost
            return super().retrieve_result_callback(out)

        def get_nested_backend(self):
            return type(self)(client=self.client), -1

        def __reduce__(self):
            return dask_backend, ()

    return DaskBackend


def _plain_error(error):
    """Return what happened to a task of Dask in one line."""
    name = type(error).__name__
    if name == "KilledWorker":
        return ChildProcessError(
            "Every Dask worker that tried one of the fits died. If memory ran out, use workers "
            "with more memory, or fewer rows."
        )
    if "Cancelled" in name or name == "CommClosedError":
        return ConnectionError(
            "The Dask cluster lost data or its scheduler during a fit. Check that the scheduler "
            "and its workers run, and fit again."
        )
    return error
