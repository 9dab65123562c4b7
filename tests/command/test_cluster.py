"""Fits on a cluster of Dask: the same results, and plain errors."""

import os
import subprocess
import sys
import threading
import time
from functools import partial
from pathlib import Path

import pytest
from joblib import Parallel, delayed

from looselabels.command import cluster
from looselabels.command.cluster import on_cluster
from tests.command.calls import CSV, called

AUDIT = ("audit", "data.csv", "--label", "species", "--noise", "0.1", "--model", "linear")
GONE = "tcp://127.0.0.1:9"  # the port of a service that throws everything away


@pytest.fixture(autouse=True)
def _table(folder):
    Path("data.csv").write_text(CSV)


def test_a_cluster_is_either_elsewhere_or_here():
    found = called(*AUDIT, "--scheduler", GONE, "--workers", "2")
    assert (found.code, "either --scheduler or --workers" in found.err) == (2, True)
    found = called(*AUDIT, "--workers", "0")
    assert (found.code, "--workers" in found.err) == (2, True)


def test_probabilities_of_another_model_need_no_cluster():
    Path("p.csv").write_text("cat,dog\n" + "0.5,0.5\n" * 80)
    found = called(*AUDIT, "--proba", "p.csv", "--workers", "2")
    assert (found.code, "either a cluster or --proba" in found.err) == (2, True)


def test_a_missing_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    found = called(*AUDIT, "--workers", "2")
    assert found.code == 2
    assert found.err == 'This needs distributed: pip install "looselabels[dask]"\n'


def test_workers_that_cannot_start_are_one_line(monkeypatch):
    distributed = pytest.importorskip("distributed", reason="the extra `dask` is not installed")

    def fail(*_, **__):
        raise RuntimeError("Nanny failed to start.")

    monkeypatch.setattr(distributed, "LocalCluster", fail)
    found = called(*AUDIT, "--workers", "2")
    assert found.code == 5
    assert found.err == (
        "Dask cannot start --workers 2 on this machine: Nanny failed to start. Pass fewer, or fit "
        "without a cluster.\n"
    )


# ------------------------------------------------------------------------------------- on a cluster

ON_CLUSTER = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::ResourceWarning"),  # a killed worker closes no socket
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


def slow(test):
    for mark in ON_CLUSTER:
        test = mark(test)
    return test


@pytest.fixture
def scheduler(tmp_path):
    """Start a scheduler as a process, and return it with its address and a way to add workers."""
    pytest.importorskip("distributed", reason="the extra `dask` is not installed")
    file = tmp_path / "scheduler.json"
    started = []

    def start(kind, *words):
        module = [sys.executable, "-m", f"distributed.cli.dask_{kind}"]
        words = [*module, *words, "--no-dashboard", "--scheduler-file", str(file)]
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        started.append(subprocess.Popen(words, **quiet))
        return started[-1]

    process = start("scheduler", "--port", "0", "--host", "127.0.0.1")
    while not file.exists():
        time.sleep(0.1)
    address = next(word for word in file.read_text().split('"') if word.startswith("tcp://"))
    yield process, address, partial(start, "worker", "--nthreads", "2")  # joblib uses no single one
    for process in started:
        process.kill()
        process.wait()


@slow
@pytest.mark.parametrize("model", ["linear", "forest"])
def test_workers_give_the_results_of_this_machine(model):
    pytest.importorskip("distributed", reason="the extra `dask` is not installed")
    words = (*AUDIT[:-1], model)
    for out, more in (("here", ()), ("there", ("--workers", "2"))):
        assert called(*words, "-o", out, *more).code == 0
    for name in ("labels.csv", "summary.json"):
        assert Path("there", name).read_text() == Path("here", name).read_text()


@slow
def test_a_scheduler_elsewhere_gives_the_results_of_this_machine(scheduler):
    _, address, start_worker = scheduler
    start_worker()
    assert called(*AUDIT, "-o", "here").code == 0
    assert called(*AUDIT, "-o", "there", "--scheduler", address).code == 0
    assert Path("there/labels.csv").read_text() == Path("here/labels.csv").read_text()


@slow
def test_a_scheduler_that_is_not_there_is_one_line(monkeypatch):
    pytest.importorskip("distributed", reason="the extra `dask` is not installed")
    monkeypatch.setattr(cluster, "SECONDS", 1)
    for address in (GONE, "nowhere", "x://y"):
        found = called(*AUDIT, "--scheduler", address)
        assert found.code == 5
        assert found.err.startswith(f"No Dask scheduler answers at {address} within 1 s.")
        assert found.err.count("\n") == 1


@slow
def test_a_scheduler_without_workers_is_one_line(scheduler, monkeypatch):
    monkeypatch.setattr(cluster, "SECONDS", 2)
    found = called(*AUDIT, "--scheduler", scheduler[1])
    assert (found.code, found.err.count("\n")) == (5, 1)
    assert "has no workers" in found.err


@slow
def test_a_fit_that_kills_every_worker_is_one_error():
    pytest.importorskip("distributed", reason="the extra `dask` is not installed")
    with (
        pytest.raises(ChildProcessError, match="Every Dask worker that tried one of the fits died"),
        on_cluster(None, 2),
    ):
        Parallel()(delayed(os._exit)(1) for _ in range(2))


@slow
def test_losing_the_scheduler_during_a_fit_is_one_error(scheduler):
    process, address, start_worker = scheduler
    start_worker()
    with on_cluster(address, None):
        threading.Timer(2.0, process.kill).start()
        with pytest.raises(ConnectionError, match="lost data or its scheduler during a fit"):
            Parallel()(delayed(time.sleep)(1) for _ in range(60))
