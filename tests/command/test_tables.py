"""Tables that are read: what is not a proper table is an error that names the place."""

import gzip
import io
import os
import random
import threading
import tracemalloc
from contextlib import suppress

import pytest

from looselabels.command import sources
from looselabels.command.tables import (
    TableError,
    add_columns,
    read_blocks,
    read_table,
    values_of_one_type,
)
from looselabels.command.writing import table_writer
from tests.command.calls import cells, modules_loaded_by, pa, pd, pq

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
    "Excel": (b"PK\x03\x04rest", r"is a damaged zip or Excel file"),
    "nothing": (b"", r"is empty; it needs a header and rows"),
    "header only": (b"a,b\n", r"has a header but no rows"),
    "header without line end": (b"a,b", r"has a header but no rows"),
    "header and blank lines": (b"a,b\n\n\r\n", r"has a header but no rows"),
    "blank header": (b"\na,b\n1,2\n", r"line 1 is empty; it needs the names"),
    "semicolons": (b"a;b\n1;2\n", r"has one column, 'a;b'. If ';' separates .* --delimiter ';'"),
    "tabs": (b"a\tb\n1\t2\n", r"If '\\t' separates"),
    "duplicates": (b"a,b,a\n1,2,3\n", r"more than one column 'a'; rename"),
    "no name": (b",a\n0,1\n", r"column 1 of 2 has no name; .*index=False"),
    "CR only": (b"a,b\r1,2\r", r"lines end with CR alone. Save .* LF or CRLF line endings\.$"),
    "damaged gzip": (gzip.compress(b"a,b\n1,2\n" * 99)[:-20], r"is damaged: .*Compress it again"),
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


@pytest.mark.parametrize("size", [20, 100])
def test_a_mark_at_the_start_of_a_cell_is_part_of_it(size, file, monkeypatch):
    monkeypatch.setattr(sources, "BLOCK", size)  # so that blocks of rows begin with a mark
    rows = [["\ufeff1", "2"], ["\ufeff3", "\ufeff4"], ["\ufeff5", "6"]]
    path = file("\ufeffa,b\n" + "".join(",".join(row) + "\n" for row in rows))
    assert list(read_table(path).columns) == ["a", "b"]
    assert cells(read_table(path)) == rows


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
        b"a,b\n1,2\n": "is not a Parquet file",
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


@pytest.mark.parametrize("number", range(20))
def test_blocks_end_where_rows_end_whatever_the_quotes(number, file, monkeypatch):
    choices, draw = ["1", "x y", '"3"', '"4,\n5"', '6"', '"7""8,\n"', ""], random.Random(number)
    lines = [f"{draw.choice(choices)},{draw.choice(choices)}" for _ in range(50)]
    path = file("a,b\n" + draw.choice(["\n", "\r\n"]).join(lines))
    whole = read_table(path)
    assert len(whole) == 50
    monkeypatch.setattr(sources, "BLOCK", 40)
    assert cells(read_table(path)) == cells(whole)


def test_a_row_longer_than_a_block_is_named(file, stdin, monkeypatch):
    monkeypatch.setattr(sources, "BLOCK", 40)
    content = "a,b\n1,2\n\n" + "3," + "4" * 90 + "\n5,6\n"
    with pytest.raises(TableError, match=r"data.csv, line 4: a row is longer than 40 bytes"):
        read_table(file(content))
    stdin(content.encode())
    with pytest.raises(TableError, match=r"stdin, line 4: a row is longer"):
        list(read_blocks("-"))


@pytest.mark.parametrize("content", ["a,b\n1,2\n3,4\n", "a,b\n1\n3,4\n"], ids=["good", "ragged"])
def test_no_thread_of_pyarrow_reads_the_stream(content, file, monkeypatch):
    threads, checked = set(), sources.Utf8._checked

    def spy(text, data, **options):
        threads.add(threading.get_ident())
        return checked(text, data, **options)

    monkeypatch.setattr(sources.Utf8, "_checked", spy)
    with suppress(TableError):
        read_table(file(content))
    assert threads == {threading.get_ident()}


@pytest.mark.parametrize("start", [b"a,b\n1,", b'a,b\n1,"', b"a,b", b'a,"b'])
def test_a_long_row_in_a_small_file_needs_little_memory(start, file):
    path = file(gzip.compress(start + b"x" * 100_000_000, 1), "data.csv.gz")
    tracemalloc.start()
    with pytest.raises(TableError, match=r"data.csv.gz.*line \d: .*longer than 8,388,608 bytes"):
        list(read_blocks(path))
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 80e6


def test_a_long_json_line_is_named(file, monkeypatch):
    monkeypatch.setattr(sources, "BLOCK", 40)
    with pytest.raises(TableError, match=r"x.jsonl, line 2: longer than 40 bytes"):
        read_table(file('{"a": 1}\n{"a": "' + "x" * 90 + '"}\n', "x.jsonl"))


def test_a_small_file_with_millions_of_rows_is_refused_before_memory_is_full(file, monkeypatch):
    path = file(b"", "x.parquet")
    pq.write_table(pa.table({"a": pa.nulls(3_000_000, pa.float64())}), path)
    monkeypatch.setattr(sources, "_free_memory", lambda: 2**26)
    before = pa.total_allocated_bytes()
    with pytest.raises(
        MemoryError, match=r"x.parquet has more than \d+,\d+ rows, .*0.1 GiB that are free"
    ):
        read_table(path)
    assert pa.total_allocated_bytes() - before < 2**26
    assert sum(map(len, read_blocks(path))) == 3_000_000  # these are not kept
    assert sources._free_memory() > 0


def test_a_lack_of_memory_is_not_a_damaged_file(file, monkeypatch):
    def fail(*_, **__):
        raise pa.ArrowMemoryError("realloc of size 9 failed")

    path = file(b"", "x.parquet")
    pq.write_table(pa.table({"a": [1]}), path)
    monkeypatch.setattr(pq.ParquetFile, "iter_batches", fail)
    with pytest.raises(MemoryError, match=r"x.parquet cannot be read, realloc of size 9 failed"):
        read_table(path)


def test_a_pipe_is_read_once(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for content, message in {
        b"a,b\n1,2\n": None,
        b"a,b\n1,2\n3\n": "row 2: 1 cell",
        b"PAR1": "pass a file",
    }.items():
        writer = threading.Thread(target=pipe.write_bytes, args=(content,))
        writer.start()
        if message is None:
            assert cells(read_table(pipe)) == [["1", "2"]]
        else:
            with pytest.raises(TableError, match=message):
                read_table(pipe)
        writer.join()


def test_columns_are_added_and_never_replaced():
    frame = pd.DataFrame({"doubt": ["mine"], "looselabels_doubt": ["too"]})
    after = add_columns(frame, {"doubt": [0.5], "why": ["fits"]})
    assert after.to_dict("list") == {
        "doubt": ["mine"],
        "looselabels_doubt": ["too"],
        "looselabels_looselabels_doubt": [0.5],
        "why": ["fits"],
    }


@pytest.mark.parametrize(
    ("names", "values"),
    [
        ((0, 1), [0, 1]),
        ((0, "other"), ["0", "other"]),
        ((("web", "cat"), ("web", "dog")), ["('web', 'cat')", "('web', 'dog')"]),
    ],
)
def test_names_of_several_types_become_text(names, values):
    assert values_of_one_type(names).tolist() == values


def test_importing_the_module_imports_no_extra():
    loaded = modules_loaded_by("looselabels.command.tables")
    assert not loaded & {"pandas", "pyarrow", "sklearn", "scipy"}
