"""Tables that are written: nothing is lost, and a failure leaves nothing behind."""

import errno
import os

import numpy as np
import pytest

from looselabels.command.tables import TableError, read_table
from looselabels.command.writing import table_writer
from tests.command.calls import HOSTILE_TEXT, cells, modules_loaded_by, pd


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".csv.gz", ".parquet"])
def test_hostile_text_comes_back_as_it_was(suffix, tmp_path):
    path = tmp_path / f"x{suffix}"
    columns = [text for text in HOSTILE_TEXT if text]
    frame = pd.DataFrame([[text] * len(columns) for text in HOSTILE_TEXT], columns=columns)
    with table_writer(path) as write:
        for start in range(0, len(frame), 7):
            write(frame[start : start + 7])
    found = read_table(path)
    assert list(found.columns) == columns
    assert cells(found) == cells(frame)


def test_a_csv_file_is_written_as_it_was_read(file, tmp_path):
    content = 'a,"b, c",d\n01,1.50,\n"x ""y""","l\n2",-0\n'
    with table_writer(tmp_path / "out.csv") as write:
        write(read_table(file(content)))
    assert (tmp_path / "out.csv").read_text(encoding="utf-8") == content


def test_a_column_alone_keeps_its_missing_cells(tmp_path):
    with table_writer(tmp_path / "x.csv") as write:
        write(pd.DataFrame({"a": ["x", None, "y"]}))
    assert cells(read_table(tmp_path / "x.csv")) == [["x"], [None], ["y"]]


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_numbers_in_csv_are_read_back_exactly(dtype, tmp_path, rng):
    numbers = np.concatenate([rng.normal(size=500) ** 9, [0.1, 1 / 3, 5e-324, 1e300, np.nan, -0.0]])
    with np.errstate(over="ignore"):
        numbers = numbers.astype(dtype)
    numbers = numbers[~np.isinf(numbers)]
    with table_writer(tmp_path / "x.csv") as write:
        write(pd.DataFrame({"a": numbers, "b": 1}))
    found = read_table(tmp_path / "x.csv")["a"]
    np.testing.assert_array_equal(
        [dtype(x) if isinstance(x, str) else np.nan for x in found], numbers
    )


def test_excel_safe_marks_text_that_would_run_and_no_number(tmp_path):
    text = ["=cmd", "+x", "-x", "@x", "\tx", "\rx", "-1.5", "+2", "-1e-3", "x=1", None, "-", 'a"b']
    frame = pd.DataFrame({"=head": text, "n": -1.0})
    with table_writer(tmp_path / "x.csv", excel_safe=True) as write:
        write(frame)
    found = read_table(tmp_path / "x.csv")
    marked = ["'=cmd", "'+x", "'-x", "'@x", "'\tx", "'\rx", *text[6:11], "'-", 'a"b']
    assert list(found.columns) == ["'=head", "n"]
    assert cells(found[["'=head"]]) == [[cell] for cell in marked]
    assert set(found["n"]) == {"-1"}


def test_what_csv_cannot_hold_is_said(tmp_path):
    with (
        pytest.raises(TableError, match="CSV cannot hold a column of list"),
        table_writer(tmp_path / "x.csv") as write,
    ):
        write(pd.DataFrame({"a": [[1], [2]]}))
    with (
        pytest.raises(TableError, match=r"A column mixes types: .*column a"),
        table_writer(tmp_path / "x.parquet") as write,
    ):
        write(pd.DataFrame({"a": ["x", 1]}))
    assert list(tmp_path.iterdir()) == []


def test_a_parquet_column_may_be_missing_at_first(tmp_path):
    with table_writer(tmp_path / "x.parquet") as write:
        write(pd.DataFrame({"a": [None], "b": [1]}))
        write(pd.DataFrame({"a": ["x"], "b": [2]}))
    assert cells(read_table(tmp_path / "x.parquet")) == [[None, 1], ["x", 2]]


def test_stdout_gets_csv(capfdbinary):
    with table_writer("-") as write:
        write(pd.DataFrame({"ä": ["🦆"]}))
    assert capfdbinary.readouterr().out == "ä\n🦆\n".encode()


@pytest.mark.parametrize("name", ["x.csv", "x.csv.gz", "x.parquet"])
@pytest.mark.parametrize("fails", ["write", "fsync", "replace", "body"])
def test_a_failure_leaves_the_old_file_and_nothing_else(name, fails, tmp_path, monkeypatch):
    path = tmp_path / name
    path.write_text("old")

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    def write_all():
        with table_writer(path, force=True) as write:
            if fails == "write":  # to a device that is full, after the temporary file is opened
                temporary = next(p for p in tmp_path.iterdir() if p != path)
                with open("/dev/full", "wb") as device:
                    descriptor = next(
                        int(fd)
                        for fd in os.listdir("/proc/self/fd")
                        if os.path.realpath(f"/proc/self/fd/{fd}") == str(temporary)
                    )
                    os.dup2(device.fileno(), descriptor)
            write(pd.DataFrame({"a": np.random.default_rng(0).normal(size=100_000), "b": "x"}))
            if fails == "body":
                full()

    if fails in ("fsync", "replace"):
        monkeypatch.setattr(os, fails, full)
    with pytest.raises(OSError, match="No space left"):
        write_all()
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_importing_the_module_imports_no_extra():
    loaded = modules_loaded_by("looselabels.command.writing")
    assert not loaded & {"pandas", "pyarrow", "sklearn", "scipy"}
