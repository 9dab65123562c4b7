"""Tasks in parallel: a process that is killed costs time, but no result."""

import os
import signal
import warnings
from pathlib import Path

import joblib
import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn import __version__, config_context, get_config
from sklearn.linear_model import LogisticRegression

from looselabels import BalancedForestClassifier, DecoupledClassifier
from looselabels.learning import workers
from looselabels.learning.workers import TerminatedWorkerError, each_warning_once, in_parallel


def square_or_die(number, file):
    """Return the square; the task of number 2 dies as long as the file holds letters."""
    file = Path(file)
    if number == 2 and file.read_text():
        file.write_text(file.read_text()[1:])
        os.kill(os.getpid(), signal.SIGKILL)
    return number**2


def warn_or_return(number):
    """Return the number, after a warning."""
    warnings.warn(f"Warning of {number}.", UserWarning, stacklevel=2)
    return number


@pytest.mark.slow
def test_processes_have_the_configuration_of_the_fit():
    with config_context(enable_metadata_routing=True):
        (config,) = in_parallel(get_config, [()], 2)
    assert config["enable_metadata_routing"]


@pytest.mark.slow
@pytest.mark.skipif(__version__.startswith("1.6"), reason="filters stay in one process")
def test_processes_show_only_the_warnings_that_this_one_shows():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert list(in_parallel(warn_or_return, [(3,)], 2)) == [3]
        warnings.simplefilter("error")
        with pytest.raises(UserWarning, match="of 3"):
            list(in_parallel(warn_or_return, [(3,)], 2))


def test_a_warning_is_shown_once_if_only_its_numbers_differ(recwarn):
    with each_warning_once():
        for number in range(3):
            warn_or_return(number)
        warnings.warn("Another one.", UserWarning, stacklevel=1)
        warnings.warn("Warning of 3.", RuntimeWarning, stacklevel=1)
    shown = [str(one.message) for one in recwarn]
    assert shown == ["Warning of 0.", "Another one.", "Warning of 3."]


def test_after_a_block_that_raises_warnings_are_shown_again():
    show = warnings.showwarning
    with pytest.raises(KeyError), each_warning_once():
        raise KeyError
    assert warnings.showwarning is show


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

    def results(function, arguments, n_jobs, prefer):
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


@pytest.mark.parametrize("backend", ["multiprocessing", "threading"])
@pytest.mark.parametrize("estimator", [None, LogisticRegression()])
def test_every_backend_gives_the_same_result(backend, estimator):
    index = np.arange(60) % 2
    X = np.random.default_rng(0).standard_normal((60, 2)) + 2 * index[:, None]
    clf = DecoupledClassifier(estimator, refit=estimator is not None, random_state=0)
    expected = clf.fit(X, index).predict_proba(X)
    with joblib.parallel_config(backend=backend, n_jobs=2):
        assert_array_equal(clf.fit(X, index).predict_proba(X), expected)


# ---------------------------------------------------------------------------------- a Dask cluster


@pytest.fixture
def client():
    distributed = pytest.importorskip("distributed", reason="the extra `dask` is not installed")
    quiet = {"silence_logs": "CRITICAL", "dashboard_address": ":0"}
    with (
        distributed.LocalCluster(2, threads_per_worker=1, processes=True, **quiet) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


FOREST = BalancedForestClassifier(10, random_state=0)


def tasks_done(dask_worker):
    return dask_worker.state.executed_count


@pytest.mark.slow
@pytest.mark.parametrize("estimator", [FOREST, LogisticRegression()])
def test_a_fit_on_workers_of_dask_gives_the_same_classes(client, estimator):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 3))
    y = np.where(rng.random(150) < 0.9, X[:, 0] > 0, X[:, 1] > 0)
    clf = DecoupledClassifier(estimator, noise=0.1, refit=False, random_state=0)
    expected = clf.fit(X, y).predict_proba(X)
    with joblib.parallel_config("dask"):
        assert_array_equal(clf.fit(X, y).predict_proba(X), expected)
    assert sum(client.run(tasks_done).values()) >= 5


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::ResourceWarning")  # a killed worker closes no socket
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_task_that_killed_a_worker_of_dask_is_repeated(client, tmp_path):
    file = tmp_path / "lives"
    tasks = [(number, file) for number in range(5)]
    file.write_text("x")
    with joblib.parallel_config("dask"):
        assert list(in_parallel(square_or_die, tasks, 2)) == [0, 1, 4, 9, 16]
