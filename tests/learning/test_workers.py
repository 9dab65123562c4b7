"""Tasks in parallel: a process that is killed costs time, but no result."""

import os
import signal
from pathlib import Path

import pytest

from looselabels.learning import workers
from looselabels.learning.workers import TerminatedWorkerError, in_parallel


def square_or_die(number, file):
    """Return the square; the task of number 2 dies as long as the file holds letters."""
    file = Path(file)
    if number == 2 and file.read_text():
        file.write_text(file.read_text()[1:])
        os.kill(os.getpid(), signal.SIGKILL)
    return number**2


@pytest.mark.slow
def test_a_killed_process_is_replaced_once(tmp_path):
    file = tmp_path / "lives"
    tasks = [(number, file) for number in range(5)]
    file.write_text("x")
    with pytest.warns(RuntimeWarning, match="One of 2 processes was killed"):
        assert list(in_parallel(square_or_die, tasks, 2)) == [0, 1, 4, 9, 16]
    file.write_text("x" * 10)
    with (
        pytest.warns(RuntimeWarning, match="was killed"),
        pytest.raises(ChildProcessError, match=r"killed twice, .*n_jobs=1; --jobs 1"),
    ):
        list(in_parallel(square_or_die, tasks, 2))


@pytest.mark.parametrize(("n_jobs", "half"), [(8, 4), (2, 2)])
def test_only_the_tasks_that_are_left_are_repeated_with_half_the_processes(
    n_jobs, half, monkeypatch
):
    calls = []

    def results(function, arguments, n_jobs):
        calls.append((arguments, n_jobs))
        yield from (function(*one) for one in arguments[:2])
        if len(calls) == 1:
            raise TerminatedWorkerError
        yield from (function(*one) for one in arguments[2:])

    monkeypatch.setattr(workers, "_results", results)
    tasks = [(k,) for k in range(5)]
    with pytest.warns(RuntimeWarning, match=f"One of {n_jobs} .*; {half} processes continue"):
        assert list(in_parallel(abs, tasks, n_jobs)) == [0, 1, 2, 3, 4]
    assert calls == [(tasks, n_jobs), (tasks[2:], half)]
