"""Tables: strict in, loss-free out."""

import errno
import gzip
import io
import os
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

from looselabels.command.tables import (
    TableError,
    check_place,
    new_file,
    read_blocks,
    read_table,
    table_writer,
)

pd = pytest.importorskip("pandas")
pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

HOSTILE = [
    *("a\nb", "a\r\nb", "cr\rcr", 'say "hi"', '"', "a,b", " padded ", "\t", "é", "🦆", "\u202eRTL"),
    *("=cmd|' /C calc'!A0", "NA", "null", "nan", "None", "01", "1", "1.50", "-1", "\ufeffbom", "'"),
    *("</script>", "\x1b[31m", "x" * 200_000, None),
]


@pytest.fixture
def file(tmp_path):
    """Write bytes or text to a file, and return its path."""

    def write(content, name="data.csv"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


@pytest.fixture
def stdin(monkeypatch):
    def pipe(content):
        stream = io.TextIOWrapper(io.BytesIO(content))
        monkeypatch.setattr(sys, "stdin", stream)

    return pipe


def cells(frame):
    """Return a frame as lists, a missing cell as None."""
    return frame.astype(object).where(frame.notna(), None).to_numpy().tolist()


# -------------------------------------------------------------------------------------------- read

BAD = {
    "too few cells": (b"a,b\n1,2\n3\n", r"line 3: 1 cell where the header has 2, '3'"),
    "too many cells": (b"a,b\n1,2\n\n3,4,5\n", r"line 4: 3 cells where the header has 2, '3,4,5'"),
    "after a cell of two lines": (b'a,b\n"x\ny",2\n3\n', r"line 4: 1 cell"),
    "after a cell of 1 MB": (b"a,b\n1," + b"x" * 1_000_000 + b"\n3\n", r"line 3: 1 cell"),
    "quote not closed": (b'a,b\n1,2\n"3,4\n5,6\n', r"line 3: .*quote \(\"\) not closed"),
    "last quote not closed": (b'a,b\n1,2\n3,"4\n5,6\n', r"line 3: .*quote \(\"\) not closed"),
    "long quote not closed": (b'a,b\n1,"2\n' + b"3,4\n" * 3_000_000, r"line 2: .*not closed"),
    "NUL": (b"a,b\n1,2\n3,\x00\n", r"line 3: a NUL byte"),
    "Latin-1": (b"a,b\n1,caf\xe9\n", r"line 2: byte 0xe9 is not UTF-8 .*'é'.* Save .* UTF-8"),
    "UTF-8 cut at the end": (b"a,b\n1,2\n3,\xc3", r"line 3: byte 0xc3 is not UTF-8"),
    "UTF-16": ("a,b\n1,2\n".encode("utf-16"), r"is UTF-16; save it as UTF-8"),
    "Excel": (b"PK\x03\x04rest", r"zip or Excel file; save it as CSV"),
    "nothing": (b"", r"is empty; it needs a header and rows"),
    "header only": (b"a,b\n", r"has a header and no rows"),
    "header without line end": (b"a,b", r"has a header and no rows"),
    "header and blank lines": (b"a,b\n\n\r\n", r"has a header and no rows"),
    "blank header": (b"\na,b\n1,2\n", r"line 1 is empty; it needs the names"),
    "semicolons": (b"a;b\n1;2\n", r"has one column, 'a;b'. If ';' separates .* delimiter"),
    "tabs": (b"a\tb\n1\t2\n", r"If '\\t' separates"),
    "duplicates": (b"a,b,a\n1,2,3\n", r"more than one column 'a'; rename"),
    "no name": (b",a\n0,1\n", r"column 1 of 2 has no name; .*index=False"),
    "CR only": (b"a,b\r1,2\r", r"line ends LF or CRLF"),
    "damaged gzip": (gzip.compress(b"a,b\n1,2\n" * 99)[:-20], r"is damaged: .*Compress it anew"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_file_is_refused_with_place_and_next_step(name, file):
    content, message = BAD[name]
    path = file(content)
    for read in (read_table, lambda source: list(read_blocks(source, 1000))):
        with pytest.raises(TableError, match=message) as caught:
            read(path)
        assert str(caught.value).startswith(str(path))


@pytest.mark.parametrize("name", BAD)
def test_stdin_is_read_as_strictly(name, stdin):
    content, message = BAD[name]
    stdin(content)
    with pytest.raises(TableError, match=message):
        read_table("-")
    stdin(content)
    with pytest.raises(
        TableError, match=r"(?s)^stdin.*(row|line|quote|header|zip|UTF-16|damaged|;|delimiter)"
    ):
        list(read_blocks("-", 1000))


def test_a_missing_file_and_a_folder_are_os_errors(tmp_path):
    with pytest.raises(FileNotFoundError):
        read_table(tmp_path / "none.csv")
    with pytest.raises(IsADirectoryError):
        read_table(tmp_path)


@pytest.mark.parametrize(
    "content",
    [
        b"a,b\n1,2\n",
        b"\xef\xbb\xbfa,b\n1,2",
        b"a,b\r\n1,2\r\n",
        b'"a","b"\n"1","2"\n',
        b"a,b\n\n1,2\n\n",
    ],
)
def test_a_mark_line_ends_quotes_and_blank_lines_change_nothing(content, file):
    for path in (file(content), file(gzip.compress(content), "data.csv.gz")):
        frame = read_table(path)
        assert list(frame.columns) == ["a", "b"]
        assert cells(frame) == [["1", "2"]]


def test_only_an_empty_cell_is_missing(file):
    frame = read_table(file('label,x\nNA,1\nnull,\n"",nan\n01,None\n1,x"y\n'), label="label")
    assert cells(frame) == [
        ["NA", "1"],
        ["null", None],
        [None, "nan"],
        ["01", "None"],
        ["1", 'x"y'],
    ]


def test_tabs_separate_tsv_and_a_delimiter_can_be_given(file):
    assert cells(read_table(file("a\tb\n1,5\t2\n", "data.tsv"))) == [["1,5", "2"]]
    path = file("a;b\n1,5;2\n3\n")
    with pytest.raises(TableError, match="line 3: 1 cell"):
        read_table(path, delimiter=";")
    assert cells(read_table(file("a;b\n1,5;2\n"), delimiter=";")) == [["1,5", "2"]]


def test_a_label_that_is_not_there_gets_the_nearest_name(file):
    csv, parquet = file("id,Species,x\n1,a,2\n"), file(b"", "data.parquet")
    pq.write_table(pa.table({"id": [1], "Species": ["a"]}), parquet)
    for path in (csv, parquet):
        for read in (read_table, lambda *a, **k: list(read_blocks(*a, **k))):
            with pytest.raises(
                TableError, match=r"no column 'specis'. Did you mean 'Species'\? It has"
            ):
                read(path, label="specis")


def test_parquet_is_known_by_its_content_and_keeps_its_types(file):
    path = file(b"", "no-extension")
    table = pa.table(
        {
            "int": pa.array([1, None, 2**60]),
            "bool": [True, None, False],
            "category": pa.array(["b", None, "a"]).dictionary_encode(),
            "float": [0.5, None, float("nan")],
        }
    )
    pq.write_table(table, path)
    frame = read_table(path, label="int")
    assert frame["int"].tolist()[::2] == [1, 2**60]
    assert type(frame["int"].tolist()[2]) is int
    assert frame["bool"].tolist()[::2] == [True, False]
    assert frame["category"].tolist()[::2] == ["b", "a"]
    assert frame["category"].dtype == pd.ArrowDtype(pa.string())
    assert frame.isna().iloc[1].all()
    with table_writer(path.with_name("x.csv")) as write:
        write(frame)
    assert cells(read_table(path.with_name("x.csv")))[2] == [str(2**60), "false", "a", None]


def test_bad_parquet_is_refused(file, stdin):
    good = io.BytesIO()
    pq.write_table(pa.table({"a": range(1000)}), good)
    for content, message in {
        good.getvalue()[:-30]: "is damaged",
        b"a,b\n1,2\n": "is no Parquet file",
        b"PAR1": "is damaged",
    }.items():
        with pytest.raises(TableError, match=message):
            read_table(file(content, "x.parquet"))
    twice = io.BytesIO()
    pq.write_table(pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["a", "a"]), twice)
    with pytest.raises(TableError, match="more than one column 'a'"):
        read_table(file(twice.getvalue()))
    nothing = io.BytesIO()
    pq.write_table(pa.table({"a": pa.array([], pa.int64())}), nothing)
    with pytest.raises(TableError, match="no rows"):
        read_table(file(nothing.getvalue()))


@pytest.mark.parametrize("suffix", [".csv", ".csv.gz", ".parquet"])
@pytest.mark.parametrize("n_rows", [1, 7, 99, 100, 101])
def test_blocks_are_the_table(suffix, n_rows, tmp_path):
    frame = pd.DataFrame({"i": range(100), "s": [f"{i},\n" if i % 3 else None for i in range(100)]})
    path = tmp_path / f"x{suffix}"
    with table_writer(path) as write:
        write(frame)
    whole, blocks = read_table(path), list(read_blocks(path, n_rows))
    assert [len(block) for block in blocks[:-1]] == [n_rows] * (len(blocks) - 1)
    assert 0 < len(blocks[-1]) <= n_rows
    pd.testing.assert_frame_equal(pd.concat(blocks), whole)
    assert cells(whole)[:2] == [["0" if suffix != ".parquet" else 0, None], [whole.i[1], "1,\n"]]


def test_blocks_do_not_need_the_whole_file_in_memory(tmp_path):
    path = tmp_path / "x.csv"
    row = ",".join(["0.123456789"] * 20) + "\n"
    with open(path, "w") as handle:
        handle.write(",".join(f"c{i}" for i in range(20)) + "\n")
        handle.writelines(row * 1000 for _ in range(300))  # 72 MB
    before = pa.total_allocated_bytes()
    most = 0
    for block in read_blocks(path, 5000):
        most = max(most, pa.total_allocated_bytes() - before)
        assert len(block) == 5000
    assert most < 50e6


def test_a_pipe_is_read_once(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for content, message in {
        b"a,b\n1,2\n": None,
        b"a,b\n1,2\n3\n": "row 2: 1 cell",
        b"PAR1": "give it as a file",
    }.items():
        writer = threading.Thread(target=pipe.write_bytes, args=(content,))
        writer.start()
        if message is None:
            assert cells(read_table(pipe)) == [["1", "2"]]
        else:
            with pytest.raises(TableError, match=message):
                read_table(pipe)
        writer.join()


# ------------------------------------------------------------------------------------------- write


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".csv.gz", ".parquet"])
def test_hostile_text_comes_back_as_it_was(suffix, tmp_path):
    path = tmp_path / f"x{suffix}"
    columns = [text for text in HOSTILE if text]
    frame = pd.DataFrame([[text] * len(columns) for text in HOSTILE], columns=columns)
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


def test_places_where_no_file_can_be_are_refused_at_once(tmp_path, monkeypatch):
    there = tmp_path / "there.csv"
    there.write_text("old")
    with pytest.raises(FileExistsError, match=r"there.csv exists; --force replaces it"):
        check_place(there)
    check_place(there, force=True)
    check_place("-")
    with pytest.raises(IsADirectoryError, match="is a folder; name a file in it"):
        check_place(tmp_path, force=True)
    for path in (tmp_path / "no" / "x.csv", there / "x.csv"):
        with pytest.raises(FileNotFoundError, match="is no folder; create it first"):
            check_place(path)
    with pytest.raises(FileExistsError, match="is no regular file"):
        check_place("/dev/null", force=True)
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(PermissionError, match="cannot be written to"):
        check_place(tmp_path / "x.csv")


def test_a_file_appears_whole_with_the_usual_permissions(tmp_path):
    path, link = tmp_path / "x.csv", tmp_path / "link.csv"
    link.symlink_to(path)
    with new_file(link) as temporary:
        temporary.write_text("new")
        assert not path.exists()
        assert temporary.parent == tmp_path
    assert path.read_text() == "new"
    assert link.is_symlink()
    (tmp_path / "usual").touch()
    assert path.stat().st_mode == (tmp_path / "usual").stat().st_mode


def test_a_file_that_appears_meanwhile_is_not_replaced(tmp_path):
    def write():
        with new_file(tmp_path / "x.csv") as temporary:
            temporary.write_text("new")
            (tmp_path / "x.csv").write_text("other")

    with pytest.raises(FileExistsError):
        write()
    assert (tmp_path / "x.csv").read_text() == "other"
    assert len(list(tmp_path.iterdir())) == 1


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


def test_what_a_killed_run_left_is_removed_once_it_is_old(tmp_path):
    old, young = tmp_path / ".x.csv.writing-1", tmp_path / ".x.csv.writing-2"
    for stray in (old, young):
        stray.touch()
    os.utime(old, (0, time.time() - 2 * 24 * 60 * 60))
    with new_file(tmp_path / "x.csv") as temporary:
        temporary.touch()
    assert sorted(path.name for path in tmp_path.iterdir()) == [young.name, "x.csv"]


def test_importing_tables_imports_no_extra():
    code = "import sys, looselabels.command.tables\nprint({m.split('.')[0] for m in sys.modules})"
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, check=True, text=True
    )
    for module in ("pandas", "pyarrow", "sklearn", "skrub", "scipy"):
        assert f"'{module}'" not in loaded.stdout
