"""Tables and matrices that are mapped from temporary files."""

import gc
import os
import re
import subprocess
import sys
from errno import EIO, ENOSPC
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from looselabels.command import spilling
from looselabels.command.features import Features
from looselabels.command.spilling import matrix_of
from looselabels.command.tables import read_table


@pytest.fixture
def small_memory(monkeypatch):
    monkeypatch.setattr(spilling, "KEPT_BYTES", 1000)


def table(n_rows=500):
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "size": rng.normal(size=n_rows).round(3),
            "color": rng.choice(["red", "green", None], size=n_rows),
            "day": pd.date_range("2020-01-01", periods=n_rows).strftime("%Y-%m-%d"),
            "label": pd.Categorical(rng.choice(["cat", "dog"], size=n_rows)),
        }
    )


@pytest.mark.parametrize("suffix", ["csv", "parquet", "feather"])
def test_a_table_from_a_temporary_file_is_the_same_table(tmp_path, monkeypatch, suffix):
    path = tmp_path / f"t.{suffix}"
    write = getattr(table(), f"to_{suffix}")
    write(path, **({"index": False} if suffix == "csv" else {}))
    expected = read_table(path)
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    monkeypatch.setattr(spilling, "KEPT_BYTES", 1000)
    before = pa.total_allocated_bytes()
    mapped = read_table(path)
    pd.testing.assert_frame_equal(mapped, expected)
    pd.testing.assert_frame_equal(mapped.iloc[[3, 1]], expected.iloc[[3, 1]])
    assert mapped.attrs == expected.attrs
    gc.collect()
    assert list(temporary.iterdir()) == []
    assert pa.total_allocated_bytes() - before < 10_000


def test_a_large_matrix_is_in_a_file_that_is_gone(tmp_path, monkeypatch, small_memory):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    blocks = [np.full((60, 5), 1.5), np.full((40, 5), 2.0)[::-1]]
    X = matrix_of(blocks, (100, 5))
    assert isinstance(X, np.memmap)
    assert list(tmp_path.iterdir()) == []
    np.testing.assert_array_equal(X, np.concatenate(blocks))
    assert not isinstance(matrix_of(blocks[:1], (60, 4)), np.memmap)


@pytest.mark.parametrize(("code", "words"), [(ENOSPC, "full. Set TMPDIR"), (EIO, "Input")])
def test_a_full_disk_is_an_error_that_says_what_to_do(code, words, small_memory):
    def blocks():
        yield np.zeros((100, 5))
        raise OSError(code, os.strerror(code))

    with pytest.raises(OSError, match=re.escape(words)):
        matrix_of(blocks(), (200, 5))


def test_features_of_a_large_table_are_those_of_its_sample(monkeypatch, small_memory):
    frame = table()
    small, expected = Features.fit_transform(frame, label="label", impute=True)
    monkeypatch.setattr("looselabels.command.features.MAX_FIT_ROWS", 200)
    monkeypatch.setattr("looselabels.command.features.N_ROWS", 33)
    features, X = Features.fit_transform(frame, label="label", impute=True)
    assert isinstance(X, np.memmap)
    assert features.feature_names == small.feature_names
    np.testing.assert_array_equal(X, expected)


def test_a_wrong_cell_outside_of_the_sample_is_named(monkeypatch, tmp_path):
    frame = table().astype({"size": str})
    frame.loc[321, "size"] = "1,5"
    path = tmp_path / "t.csv"
    frame.to_csv(path, index=False)
    monkeypatch.setattr("looselabels.command.features.MAX_FIT_ROWS", 20)
    with pytest.raises(ValueError, match=r"line 323, column 'size': '1,5' is not a number"):
        Features.fit_transform(read_table(path), label="label")


PEAK_OF_AUDIT = """
import sys, threading
from pathlib import Path
from looselabels.command import features, spilling
from looselabels.command.cli import run

spilling.KEPT_BYTES, features.MAX_FIT_ROWS = 2**20, 5000

def anonymous():
    return int(Path("/proc/self/status").read_text().split("RssAnon:")[1].split()[0])

def watch():
    while not done.wait(0.01):
        peaks.append(anonymous())

peaks, done = [anonymous()], threading.Event()
watcher = threading.Thread(target=watch)
watcher.start()
options = ["--model", "linear", "--max-fit-rows", "5000", "--jobs", "1", "--quiet"]
code = run(["audit", sys.argv[1], "--label", "label", *options])
done.set()
watcher.join()
print("peak", max(peaks))
sys.exit(code)
"""


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads memory from /proc")
def test_four_times_the_rows_need_little_more_memory(tmp_path):
    peaks = []
    for n_rows in (100_000, 400_000):
        X = np.random.default_rng(0).normal(size=(n_rows, 40)).astype(np.float32)
        frame = pd.DataFrame(X, columns=[f"x{i}" for i in range(40)])
        path = tmp_path / f"{n_rows}.parquet"
        frame.assign(label=np.where(X[:, 0] > 0, "cat", "dog")).to_parquet(
            path, row_group_size=50_000
        )
        words = [sys.executable, "-c", PEAK_OF_AUDIT, str(path)]
        found = subprocess.run(words, capture_output=True, text=True, check=True, cwd=tmp_path)
        peaks.append(int(found.stdout.split("peak")[-1]))
    # kilobytes; what belongs to a row takes about 70,000 more. With cells and features in memory it
    # would be 230,000.
    assert peaks[1] - peaks[0] < 100_000
