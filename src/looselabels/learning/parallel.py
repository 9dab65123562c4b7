"""Work that is done in parallel, with results in order."""

import warnings
from collections.abc import Callable, Iterable, Iterator

from joblib import Parallel, delayed, effective_n_jobs
from joblib.externals.loky.process_executor import TerminatedWorkerError
from joblib.parallel import get_active_backend


def in_order(function: Callable, arguments: Iterable, n_jobs=None, prefer=None) -> Iterator:
    """Yield `function(*a)` for each a of `arguments`, in their order, as joblib computes them.

    If the operating system kills a worker process, which happens if memory is short, what is left
    is tried once more with half as many processes.

    >>> list(in_order(pow, [(2, 3), (3, 2)]))
    [8, 9]
    """
    arguments, done, has_failed = list(arguments), 0, False
    while done < len(arguments):
        try:
            tasks = (delayed(function)(*a) for a in arguments[done:])
            for result in _parallel(n_jobs, prefer)(tasks):
                done += 1
                yield result
        except TerminatedWorkerError:
            n_processes = effective_n_jobs(n_jobs)
            if has_failed or n_processes < 2:
                raise MemoryError(
                    "a worker process was killed again, probably because memory is short; "
                    f"n_jobs is {n_processes}, use n_jobs=1"
                ) from None
            has_failed, n_jobs = True, n_processes // 2
            warnings.warn(
                "A worker process was killed, probably because memory is short: going on with "
                f"n_jobs={n_jobs} instead of {n_processes}.",
                UserWarning,
                stacklevel=2,
            )


def _parallel(n_jobs, prefer):
    """Return joblib's Parallel that yields results, by threads if the backend of the user cannot.

    The backend "multiprocessing" cannot; nor can it send functions that are defined in functions.
    """
    backend, _ = get_active_backend()
    if not backend.supports_return_generator:
        return Parallel(n_jobs, backend="threading", return_as="generator")
    return Parallel(n_jobs, prefer=prefer, return_as="generator")
