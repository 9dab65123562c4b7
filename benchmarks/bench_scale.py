"""Time rows that are read block by block, or are in Dask, relative to the same rows in memory.

    python benchmarks/bench_scale.py              # everything (an hour, 4 GiB of memory)
    python benchmarks/bench_scale.py --quick      # small sizes, to test the script
    python benchmarks/bench_scale.py --only stream

All times of a row are from one run on one machine. Times of blocks include reading label_proba from
a file and writing class_proba to another. `table` is the command from reading a Parquet file to
writing results. Dask has two workers with one thread each; rows in memory use one thread per core.
"""

import argparse
import tempfile
from concurrent.futures import ProcessPoolExecutor
from contextlib import redirect_stderr, redirect_stdout
from functools import partial
from importlib.util import find_spec
from io import StringIO
from multiprocessing import get_context
from pathlib import Path
from time import perf_counter, process_time
from typing import NamedTuple

import numpy as np

from bench_infer import (
    best_time,
    ignore_expected_warnings,
    infer_both,
    installed,
    machine,
    memory,
    nanoseconds,
    shape,
    slope,
    timed,
    warm_up,
)
from looselabels import infer
from looselabels.blocks import Blocks
from looselabels.inference import class_proba_from
from simulate import confusion, joint_problem, partial_transition, simulate

COLUMNS = ("", "case", "time", "compared with", "ratio", "target", "remarks")
BLOCK = 100_000  # rows
N_COLUMNS = 20


class Sizes(NamedTuple):
    joint_rows: int = 200_000
    known_rows: int = 10**7
    linear_rows: tuple = (10**5, 10**6, 10**7)
    tables: tuple = ((500_000, "auto"), (5_000_000, "auto"), (5_000_000, "forest"))


QUICK = Sizes(20_000, 100_000, (10**4, 10**5), ((500, "auto"),))


# ------------------------------------------------------------------------------------- the sections


def stream(sizes: Sizes):
    """Time blocks that are read from a file, with class_proba written to another."""
    for case, label_proba, transition, run, read in stream_cases(sizes):
        with tempfile.TemporaryDirectory() as folder:
            np.save(f"{folder}/rows.npy", label_proba)
            alone, expected = best_time(partial(run, label_proba, transition), max_calls=2)
            expected, case = getattr(expected, "n_iter", 1), f"{case}, {shape(label_proba)}"
            seconds, passes = best_time(partial(read, folder, transition), max_calls=2)
        compared = f"in memory: {timed(alone)}"
        remarks = f"passes that solve rows: {passes}, in memory {expected}"
        yield case, timed(seconds), compared, f"{seconds / alone:.2g} ×", "≤ 1.3 ×", remarks


def stream_cases(sizes: Sizes):
    label_proba, transition = joint_problem("smooth", 0.03, sizes.joint_rows)
    yield "joint", label_proba, transition, infer_both, read_joint
    label_proba, _ = simulate(sizes.joint_rows, confusion(10))
    yield "joint, noisy labels", label_proba, confusion(10), infer_both, read_joint
    label_proba, _ = simulate(sizes.known_rows, confusion(10))
    yield (
        "known T, class_proba_from",
        label_proba,
        confusion(10),
        class_proba_from,
        read_class_proba,
    )
    yield "known T, infer", label_proba, confusion(10), infer, read_known


def read_joint(folder, transition):
    found = infer_both(Blocks.from_npy(f"{folder}/rows.npy"), transition)
    found.class_proba.to_npy(f"{folder}/classes.npy")
    return found.n_iter + 1  # class_proba is solved again when it is written


def read_known(folder, transition):
    rows = Blocks.from_npy(f"{folder}/rows.npy")
    return infer(rows, transition, out=f"{folder}/classes.npy").n_iter


def read_class_proba(folder, transition):
    rows = Blocks.from_npy(f"{folder}/rows.npy")
    class_proba_from(rows, transition).to_npy(f"{folder}/classes.npy")
    return 1


def linear(sizes: Sizes):
    """Show how time grows with rows from a generator, and the memory for the most rows."""
    counts, transition = sizes.linear_rows, partial_transition(10)
    seconds = [
        best_time(partial(infer, generated(n, transition), transition), max_calls=2)[0]
        for n in counts
    ]
    case = f"{counts[0]:.0e} to {counts[-1]:.0e} rows × 10 from a generator"
    remarks = f"ns per row at each power of ten: {nanoseconds(seconds, counts)}"
    ratio = f"slope {slope(counts, seconds):.3f}"
    yield case, timed(seconds[-1]), "n", ratio, "1.0 ± 0.1", remarks

    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as fresh:
        added = fresh.submit(memory_of_blocks, counts[-1]).result()
    case = f"added memory, {counts[-1]:,} × 10 from a generator"
    compared = f"Ŝ: {80 * counts[-1] / 2**20:,.0f} MiB"
    ratio = f"{added / (80 * counts[-1]):.2f} × Ŝ"
    yield case, f"{added / 2**20:,.0f} MiB", compared, ratio, "< 1 GiB", "with class_proba written"


def generated(n_rows, transition):
    """Return Blocks with the rows of one block again and again: simulating them takes longer."""
    block, _ = simulate(min(n_rows, BLOCK), transition)
    return Blocks(lambda: (block for _ in range(0, n_rows, len(block))))


def memory_of_blocks(n_rows):
    """Return the bytes that `infer` and a file of class_proba add; run it in a fresh process."""
    ignore_expected_warnings()
    transition = partial_transition(10)
    infer(simulate(1_000, transition)[0], transition)  # loads compiled code first
    before = memory("VmRSS")
    with tempfile.TemporaryDirectory() as folder:
        found = infer(generated(n_rows, transition), transition)
        found.class_proba.to_npy(f"{folder}/classes.npy")
    return memory("VmHWM") - before


def table(sizes: Sizes):
    """Time `looselabels audit` of tables that are larger than the sample that models learn from."""
    for n_rows, model in sizes.tables:
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder, "table.parquet")
            write_table(file, n_rows)
            with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as fresh:
                seconds, cpu, peak = fresh.submit(audit_table, str(file), model).result()
            size = file.stat().st_size
        case = f"audit of {n_rows:,} rows × {N_COLUMNS} columns, --model {model}"
        remarks = f"{timed(cpu)} of processor time; peak memory {peak / 2**20:,.0f} MiB"
        compared = f"file: {size / 2**20:,.0f} MiB"
        yield case, timed(seconds), compared, f"{peak / 2**30:.2f} GiB", "< 4 GiB", remarks


def write_table(file, n_rows):
    """Write Gaussian samples of three classes, one label in ten drawn at random, in blocks."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng, writer = np.random.default_rng(0), None
    means = 0.8 * rng.normal(size=(3, N_COLUMNS))
    for start in range(0, n_rows, BLOCK):
        classes = rng.integers(3, size=min(BLOCK, n_rows - start))
        X = (means[classes] + rng.normal(size=(len(classes), N_COLUMNS))).astype(np.float32)
        is_random = rng.random(len(classes)) < 0.1
        labels = np.where(is_random, rng.integers(3, size=len(classes)), classes)
        columns = {f"x{i}": column for i, column in enumerate(X.T)}
        block = pa.table(columns | {"label": np.array(["cat", "dog", "fox"])[labels]})
        writer = writer or pq.ParquetWriter(file, block.schema)
        writer.write_table(block)
    writer.close()


def audit_table(file, model):
    """Return the elapsed time, processor time and peak memory of an audit, in a fresh process."""
    from looselabels.command.cli import run

    options = ["--label", "label", "--model", model, "--jobs", "2", "--quiet", "--json"]
    start = perf_counter()
    with redirect_stdout(StringIO()), redirect_stderr(StringIO()) as errors:
        if run(["audit", file, *options, "-o", f"{file}-audit"]):
            raise RuntimeError(errors.getvalue())
    return perf_counter() - start, process_time(), memory("VmHWM")


def dask(sizes: Sizes):
    """Time two workers of a local cluster that hold the rows, and two threads on the same rows."""
    if not find_spec("distributed"):
        yield "skipped", "", "Dask is not installed (pip install 'looselabels[dask]')", "", "", ""
        return
    import dask.array
    from distributed import Client, LocalCluster, wait

    cases = [("joint", sizes.joint_rows, infer_both), ("known T", sizes.known_rows, infer)]
    cluster = LocalCluster(2, threads_per_worker=1, dashboard_address=":0")
    with tempfile.TemporaryDirectory() as folder, cluster, Client(cluster):
        for name, n_rows, run in cases:
            transition, file = confusion(10), Path(folder, "rows.npy")
            block = min(BLOCK, n_rows // 8)  # four or more for each worker
            label_proba, _ = simulate(n_rows, transition)
            np.save(file, label_proba)
            alone, expected = best_time(partial(run, label_proba, transition), max_calls=2)
            case, passes = f"{name}, {shape(label_proba)}", expected.n_iter
            del label_proba, expected  # the workers need the memory
            rows = dask.array.map_blocks(
                read_rows,
                str(file),
                chunks=dask.array.core.normalize_chunks((block, 10), (n_rows, 10)),
                dtype=float,
                meta=np.empty((0, 0)),
            ).persist()
            wait(rows)
            run(rows[: 2 * block], transition)  # loads compiled code on both workers
            seconds, found = best_time(partial(run, rows, transition), max_calls=2)
            again, _ = best_time(lambda f=found: f.class_proba.sum(axis=0).compute(), max_calls=1)
            remarks = f"passes {found.n_iter}, in memory {passes}; reading class_proba "
            remarks += f"(solved again) {timed(again)} more; {installed('distributed')}"
            ratio, target = f"{seconds / alone:.2g} ×", "≤ 1.5 ×"
            yield case, timed(seconds), f"threads: {timed(alone)}", ratio, target, remarks


def read_rows(file, block_info=None):
    begin, end = block_info[None]["array-location"][0]
    return np.array(np.load(file, mmap_mode="r")[begin:end])


# --------------------------------------------------------------------------- measuring and printing

SECTIONS = {section.__name__: section for section in (stream, linear, table, dask)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--only", nargs="+", choices=SECTIONS, default=list(SECTIONS))
    parser.add_argument("--quick", action="store_true", help="small sizes, less than a minute")
    options = parser.parse_args()
    ignore_expected_warnings()
    warm_up()
    print(f"{machine()}, {installed('dask')}.\n")
    print(f"| {' | '.join(COLUMNS)} |\n{'|---' * len(COLUMNS)}|", flush=True)
    for section in options.only:
        for row in SECTIONS[section](QUICK if options.quick else Sizes()):
            print(f"| {section} | {' | '.join(row)} |", flush=True)


if __name__ == "__main__":
    main()
