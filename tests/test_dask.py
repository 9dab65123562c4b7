"""Rows in Dask: the answers of rows in memory, also if workers die, and plain errors."""

import os
import resource
import signal
import subprocess
import sys
import threading
import time
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose

from looselabels import Transition, infer
from looselabels._dask import is_dask
from looselabels.inference import class_proba_from, condition_on_label

pytestmark = [
    pytest.mark.slow,  # because the extra `bench` has Dask
    pytest.mark.filterwarnings("ignore::ResourceWarning"),  # a killed worker closes no socket
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
dask = pytest.importorskip("dask", reason="the extra `dask` is not installed")
da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")
distributed = pytest.importorskip("distributed")
import pandas as pd  # noqa: E402 - after the checks

NOISY = np.array([[0.8, 0.15, 0.05], [0.1, 0.7, 0.2], [0.05, 0.05, 0.9]])
N_BLOCKS, BLOCK_ROWS = 6, 50
OPTIONS = {"pseudocounts": 10 * NOISY, "tol": 1e-12}


def block_of_rows(block_info=None, before=lambda number: None):
    """Return a block of label_proba after `before` was called with its number."""
    number = block_info[None]["chunk-location"][0]
    before(number)
    return np.random.default_rng(number).dirichlet([1.0, 0.5, 2.0], BLOCK_ROWS)


def lazy_rows(**options):
    chunks = ((BLOCK_ROWS,) * N_BLOCKS, (3,))
    meta = np.empty((0, 0))
    return da.map_blocks(block_of_rows, chunks=chunks, dtype=float, meta=meta, **options)


@pytest.fixture(scope="module")
def label_proba():
    return lazy_rows().compute(scheduler="sync")


@pytest.fixture
def threads():
    with dask.config.set(scheduler="threads", num_workers=2):
        yield


@pytest.fixture
def cluster():
    quiet = {"silence_logs": "CRITICAL", "dashboard_address": ":0"}
    with (
        distributed.LocalCluster(2, threads_per_worker=1, processes=True, **quiet) as cluster,
        distributed.Client(cluster),
    ):
        yield cluster


def assert_same(found, expected):
    assert found.converged
    assert found.objective[-1] == pytest.approx(expected.objective[-1], rel=1e-10)
    assert_allclose(found.transition, expected.transition, atol=1e-8)
    assert_allclose(found.class_proba.compute(), expected.class_proba, atol=1e-6)
    assert found.gap.compute().max() <= 1e-9


# -------------------------------------------------------------------------------- without a cluster


@pytest.mark.parametrize("chunks", [(7, 3), (300, 2), (50, 1)])
def test_arrays_of_dask_give_the_answer_of_rows_in_memory(threads, label_proba, chunks):
    expected = infer(label_proba, NOISY, **OPTIONS)
    found = infer(da.from_array(label_proba, chunks=chunks), NOISY, **OPTIONS)
    assert isinstance(found.class_proba, da.Array)
    assert found.class_proba.shape == label_proba.shape
    assert_same(found, expected)


def test_weights_of_any_kind_are_divided_like_the_rows(threads, label_proba):
    weight = np.linspace(0, 1, len(label_proba))
    expected = infer(label_proba, NOISY, sample_weight=weight, **OPTIONS)
    rows = da.from_array(label_proba, chunks=(40, 3))
    for given in (weight, da.from_array(weight, chunks=33)):
        assert_same(infer(rows, NOISY, sample_weight=given, **OPTIONS), expected)
    with pytest.raises(ValueError, match="300 and 299 rows"):
        infer(rows, NOISY, sample_weight=weight[1:])


def test_a_class_that_the_prior_rules_out_is_absent(threads, label_proba):
    options = {"class_prior": [0.4, 0.0, 0.6], **OPTIONS}
    expected = infer(label_proba, NOISY, **options)
    assert_same(infer(lazy_rows(), NOISY, **options), expected)


def test_labels_are_used(threads, label_proba):
    label_index = np.random.default_rng(0).integers(3, size=len(label_proba))
    class_proba = class_proba_from(label_proba, NOISY)
    expected = condition_on_label(class_proba, NOISY, label_index)
    for given in (label_index, da.from_array(label_index, chunks=70)):
        lazy = class_proba_from(lazy_rows(), NOISY)
        assert_allclose(condition_on_label(lazy, NOISY, given).compute(), expected, atol=1e-6)


def test_columns_of_a_table_are_matched_by_name(threads, label_proba):
    frame = pd.DataFrame(label_proba[:, [2, 0, 1]], columns=["z", "x", "y"])
    named = Transition(NOISY, classes=["a", "b", "c"], labels=["x", "y", "z"])
    expected = infer(label_proba, NOISY, **OPTIONS)
    assert_same(infer(dd.from_pandas(frame, npartitions=4), named, **OPTIONS), expected)
    weight = dd.from_pandas(pd.Series(np.ones(len(frame))), npartitions=4)
    table = dd.from_pandas(frame[["x", "y", "z"]], npartitions=4)
    assert_same(infer(table, NOISY, sample_weight=weight, **OPTIONS), expected)


def test_blocks_may_be_empty_and_of_unknown_size(threads, label_proba):
    kept = (np.arange(len(label_proba)) // BLOCK_ROWS) % 2 == 0  # every other block is empty
    expected = infer(label_proba[kept], NOISY, **OPTIONS)
    rows = lazy_rows()
    chosen = rows[da.from_array(kept, chunks=BLOCK_ROWS)]
    assert np.isnan(chosen.chunks[0]).all()
    assert_same(infer(chosen, NOISY, **OPTIONS), expected)
    weight = da.ones(len(label_proba), chunks=BLOCK_ROWS)[da.from_array(kept, chunks=BLOCK_ROWS)]
    assert_same(infer(chosen, NOISY, sample_weight=weight, **OPTIONS), expected)
    with pytest.raises(ValueError, match=r"unknown.*compute_chunk_sizes"):
        infer(chosen, NOISY, sample_weight=np.ones(kept.sum()))
    fewer = da.arange(len(label_proba), chunks=BLOCK_ROWS)
    with pytest.raises(ValueError, match=r"Block \d has \d+ and \d+ rows in different arrays"):
        infer(chosen, NOISY, sample_weight=fewer[fewer > 0])
    with pytest.raises(ValueError, match="no rows"):
        infer(rows[rows[:, 0] > 2], NOISY)


def test_a_bad_row_is_named_with_its_block(threads, label_proba):
    wrong = label_proba.copy()
    wrong[130] *= 2
    with pytest.raises(ValueError, match=r"row 30 sums to 2.*block 2"):
        infer(da.from_array(wrong, chunks=(BLOCK_ROWS, 3)), NOISY)
    with pytest.raises(TypeError, match="table of Dask; got Delayed"):
        infer(dask.delayed(wrong), NOISY)


def test_an_object_that_could_hold_an_array_of_dask_but_holds_none_is_in_memory():
    class Labeled:  # as those of xarray
        def __dask_graph__(self):
            return None

    assert not is_dask(Labeled())
    assert is_dask(lazy_rows())


# ------------------------------------------------------------------------------------- on a cluster


def test_a_cluster_gives_the_answer_of_rows_in_memory(cluster, label_proba):
    assert_same(infer(lazy_rows(), NOISY, **OPTIONS), infer(label_proba, NOISY, **OPTIONS))


def page_faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt


@pytest.mark.skipif(sys.platform != "linux", reason="tests what glibc does")
def test_workers_reuse_the_memory_of_temporary_arrays(cluster):
    rows = da.from_array(
        np.random.default_rng(0).dirichlet(np.ones(3), 200_000), chunks=(50_000, 3)
    )
    client, rows = distributed.get_client(), rows.persist()
    infer(rows, NOISY)  # loads compiled code
    before = sum(client.run(page_faults).values())
    infer(rows, NOISY)
    faults = sum(client.run(page_faults).values()) - before
    assert faults < 0.1 * len(rows)


def kill_in_the_third_pass(folder, number):
    """Kill this worker when block 4 is computed for the third time."""
    if number == 4:
        earlier = len(list(Path(folder).iterdir()))
        Path(folder, str(earlier)).touch()
        if earlier == 2:
            os.kill(os.getpid(), signal.SIGKILL)


def test_the_answer_is_the_same_if_a_worker_is_killed(cluster, label_proba, tmp_path):
    rows = lazy_rows(before=partial(kill_in_the_third_pass, str(tmp_path)))
    found = infer(rows, NOISY, **OPTIONS)
    assert len(list(tmp_path.iterdir())) > 3
    assert_same(found, infer(label_proba, NOISY, **OPTIONS))


def test_rows_that_were_kept_in_a_killed_worker_are_computed_again(cluster, label_proba):
    rows = lazy_rows().persist()
    distributed.wait(rows)
    os.kill(next(iter(cluster.workers.values())).process.pid, signal.SIGKILL)
    found = infer(rows, NOISY, **OPTIONS)
    assert_same(found, infer(label_proba, NOISY, **OPTIONS))


def kill_always(number):
    if number == 3:
        os._exit(1)


def test_a_block_that_always_kills_its_worker_is_named(cluster):
    with pytest.raises(RuntimeError, match=r"computed block 3 of the rows died.*smaller blocks"):
        infer(lazy_rows(before=kill_always), NOISY)


def wait_a_little(number):
    time.sleep(0.2)


@pytest.fixture
def scheduler(tmp_path):
    """Start a scheduler and a worker as processes, and connect to them."""
    address = ["--scheduler-file", str(tmp_path / "scheduler.json"), "--no-dashboard"]
    run = partial(subprocess.Popen, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    begin = [sys.executable, "-m", "distributed.cli.dask_scheduler", "--port", "0"]
    processes = [run([*begin, "--host", "127.0.0.1", *address])]
    begin = [sys.executable, "-m", "distributed.cli.dask_worker", "--nthreads", "1"]
    processes.append(run([*begin, *address]))
    client = distributed.Client(scheduler_file=str(tmp_path / "scheduler.json"))
    try:
        client.wait_for_workers(1, timeout=60)
        yield processes[0]
    finally:
        for process in processes:
            process.kill()
            process.wait()
        client.close(timeout=1)


def save_block(block, folder, block_info=None):
    """Write a block to a file, slowly."""
    time.sleep(0.2)
    np.save(f"{folder}/{block_info[0]['chunk-location'][0]}.npy", block)
    return block


def kill_after_two_files(process, folder):
    while len(list(folder.glob("*.npy"))) < 2:
        time.sleep(0.02)
    process.kill()


def test_what_was_written_before_the_scheduler_was_lost_stays(scheduler, tmp_path):
    rows = lazy_rows(before=wait_a_little)
    found = infer(rows, NOISY)
    write = found.class_proba.map_blocks(save_block, str(tmp_path), dtype=float)
    threading.Thread(target=kill_after_two_files, args=(scheduler, tmp_path)).start()
    with pytest.raises(Exception):  # noqa: B017 - Dask's own
        write.compute()
    written = [file for file in tmp_path.glob("*.npy") if file.stat().st_size > BLOCK_ROWS * 24]
    assert 2 <= len(written) < N_BLOCKS
    expected = found.class_proba.compute(scheduler="sync")  # nothing that it needs is lost
    for file in written:
        number = int(file.stem)
        block = expected[number * BLOCK_ROWS : (number + 1) * BLOCK_ROWS]
        assert_allclose(np.load(file), block, atol=1e-9)


def test_losing_the_scheduler_during_a_pass_is_one_clear_error(scheduler):
    killer = threading.Timer(1.0, scheduler.kill)
    killer.start()
    with pytest.raises(ConnectionError, match="connection to the Dask scheduler was lost"):
        infer(lazy_rows(before=wait_a_little), NOISY, **OPTIONS)
