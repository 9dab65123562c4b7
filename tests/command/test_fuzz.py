"""Damaged files: a few of them by hand, and as many as fit into a minute."""

import os
from itertools import islice

import numpy as np
import pytest

from looselabels.command import formats
from looselabels.command.feature_file import FeatureFile
from looselabels.command.sources import BLOCK
from looselabels.command.tables import TableError, read_table
from tests.command.calls import pa

fuzzing = pytest.importorskip("tests.fuzz")
SECONDS = float(os.environ.get("FUZZ_SECONDS", "5"))


@pytest.mark.slow
@pytest.mark.parametrize("name", fuzzing.READERS)
def test_a_damaged_file_raises_an_error_of_our_own_or_none(name, tmp_path):
    assert list(islice(fuzzing.fuzz(name, tmp_path, SECONDS), 3)) == []


def test_only_raise_statements_of_the_project_make_errors_of_our_own():
    def error_of(function, *arguments):
        with pytest.raises((ValueError, TypeError)) as caught:
            function(*arguments)
        return caught.value

    assert fuzzing.is_our_own(error_of(read_table, __file__))
    assert not fuzzing.is_our_own(error_of(float, "one"))
    assert not fuzzing.is_our_own(error_of(read_table, None))


@pytest.mark.parametrize(
    "header",
    [b"{'descr': '<f8', 'shape': (", b"{'shape': (99999999999999999999, 2)}", b"{'descr': ',<f8'}"],
)
def test_an_array_with_a_damaged_header_is_a_line(header, tmp_path):
    path = tmp_path / "features.npy"
    np.save(path, np.ones((2, 2)))
    content = path.read_bytes()
    path.write_bytes(content[:10] + header.ljust(len(content) - 10 - 32) + content[-32:])
    with pytest.raises(TableError, match="is not an array of numbers"):
        FeatureFile(path)


def test_offsets_of_a_feather_file_that_leave_its_text_are_noticed(tmp_path):
    path = tmp_path / "data.feather"
    table = pa.table({"name": ["abc", "defg"]})
    with pa.ipc.new_file(path, table.schema) as writer:
        writer.write_table(table)
    content, offsets = path.read_bytes(), np.array([0, 3, 7], "<i4").tobytes()
    assert content.count(offsets) == 1
    path.write_bytes(content.replace(offsets, np.array([0, 3, 2**30], "<i4").tobytes()))
    with pytest.raises(TableError, match=r"data\.feather is damaged"):
        read_table(path)


def test_half_a_character_at_the_end_or_in_a_key_is_named(file):
    with pytest.raises(TableError, match="line 2: byte 0xc3 is not UTF-8"):
        read_table(file(b'{"a": 1}\n{"a": \xc3', "data.jsonl"))
    with pytest.raises(TableError, match="half of a character"):
        read_table(file(rb'{"a\ud800": 1}', "data.jsonl"))


def test_a_line_of_json_that_is_longer_than_a_block_is_named(file):
    line = '{"a": "' + "é" * (BLOCK // 2) + '"}'
    with pytest.raises(TableError, match="line 1: not valid JSON"):
        read_table(file(line, "data.jsonl"))


def test_a_forged_row_number_does_not_stand_for_a_billion_rows(tmp_path, monkeypatch):
    monkeypatch.setattr(formats, "EXCEL_ROWS", 1000)
    openpyxl = pytest.importorskip("openpyxl")
    path = tmp_path / "data.xlsx"
    book = openpyxl.Workbook()
    book.active.append(["a"])
    book.active.cell(1001, 1, "x")
    book.save(path)
    with pytest.raises(TableError, match="has more than 1,000 rows"):
        read_table(path)
