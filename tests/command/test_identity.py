"""The identity of rows: identifiers that people use, and hashes that notice other cells."""

import gzip
import re

import pytest

from looselabels.command.identity import identify
from looselabels.command.tables import TableError, read_table
from tests.command.calls import HOSTILE_TEXT, pd

ROWS = pd.DataFrame(
    {
        "name": ["Tom", "Rex", "Kit"],
        "size": [3.0, 7.25, None],
        "count": [1, 20, 300],
        "tame": [True, False, True],
        "note": ["a, b", None, "two\nlines"],
        "kind": ["cat", "dog", "cat"],
    }
)
SIMPLE = "size,kind\n1,cat\n2,dog\n3,cat\n"


def hashes(frame, column=None):
    return identify(frame, column, label="kind").hashes(range(len(frame)))


# ------------------------------------------------------------------------------------ identifiers


@pytest.mark.parametrize("ending", ["\n", "\r\n"])
@pytest.mark.parametrize("end", ["", "\n"])
def test_a_row_of_a_csv_file_is_named_by_its_line(file, ending, end):
    path = file((SIMPLE.rstrip("\n") + end).replace("\n", ending))
    found = identify(read_table(path), label="kind")
    assert (found.name, list(found.ids)) == ("Line", [2, 3, 4])
    assert "the header is line 1" in found.note


def test_a_compressed_csv_file_has_lines_too(file):
    path = file(gzip.compress(SIMPLE.encode()), "data.csv.gz")
    assert identify(read_table(path), label="kind").name == "Line"


@pytest.mark.parametrize(
    "text", ['size,kind\n1,"c\nat"\n2,dog\n3,cat\n', "size,kind\n1,cat\n\n2,dog\n3,cat\n"]
)
def test_rows_that_are_not_lines_are_numbered_as_in_a_spreadsheet(file, text):
    found = identify(read_table(file(text)), label="kind")
    assert (found.name, list(found.ids)) == ("Row", [2, 3, 4])
    assert "header is row 1" in found.note


def test_rows_from_a_pipe_are_numbered_as_in_a_spreadsheet(stdin):
    stdin(SIMPLE.encode())
    found = identify(read_table("-"), label="kind")
    assert (found.name, list(found.ids)) == ("Row", [2, 3, 4])


def test_rows_of_parquet_files_and_of_frames_are_numbered_from_1(tmp_path):
    ROWS.to_parquet(tmp_path / "data.parquet", index=False)
    for frame in (ROWS, read_table(tmp_path / "data.parquet")):
        found = identify(frame, label="kind")
        assert (found.name, list(found.ids)) == ("Row", [1, 2, 3])
        assert "from 1; the header is not counted" in found.note


def test_a_column_names_the_rows():
    found = identify(ROWS, "name", label="kind")
    assert (found.name, found.ids) == ("name", ["Tom", "Rex", "Kit"])
    assert found.positions(["Kit", "kit", "Tom"]) == [2, None, 0]
    assert identify(ROWS, "count", label="kind").positions(["300", "0300"]) == [2, None]


@pytest.mark.parametrize(
    ("column", "said"),
    [
        ("nmae", r"The table has no column 'nmae'\. Did you mean 'name'\?"),
        ("kind", "Column 'kind' is the label; it cannot identify rows"),
        ("size", r"data\.csv, line 4: column 'size' is empty, but each row needs an identifier"),
        ("tame", r"'tame' has 'True' twice, at .*line 2 and .*line 4; an identifier must be uniq"),
    ],
)
def test_a_column_that_does_not_name_the_rows_is_refused(file, column, said):
    frame = read_table(file(ROWS.drop(columns="note").to_csv(index=False)))
    with pytest.raises(TableError, match=said):
        identify(frame, column, label="kind")


# ----------------------------------------------------------------------------------------- hashes


def test_a_hash_does_not_depend_on_the_label_or_the_order_of_columns():
    assert hashes(ROWS.assign(kind="dog")) == hashes(ROWS)
    assert hashes(ROWS[ROWS.columns[::-1]]) == hashes(ROWS)


def test_a_hash_is_short_and_is_not_read_as_a_number():
    assert all(re.fullmatch("h[0-9a-f]{12}", digest) for digest in hashes(ROWS))
    assert identify(ROWS, label="kind").hashes([]) == []


@pytest.mark.parametrize("column", ["name", "size", "count", "tame", "note"])
def test_a_hash_depends_on_each_cell_of_its_own_row(column):
    value = {"name": "Tim", "size": 3.5, "count": 2, "tame": False, "note": ""}[column]
    changed = ROWS.copy()
    changed.loc[0, column] = value
    before, after = hashes(ROWS), hashes(changed)
    assert before[0] != after[0]
    assert before[1:] == after[1:]
    assert identify(ROWS, label="kind").hashes([2, 0]) == [before[2], before[0]]


def test_a_hash_depends_on_the_identifier():
    twice = pd.concat([ROWS, ROWS], ignore_index=True)
    assert len(set(hashes(twice))) == 6
    assert len(set(hashes(ROWS) + hashes(ROWS, "name"))) == 6


def test_csv_and_parquet_have_the_same_hashes(tmp_path):
    ROWS.astype({"size": "float32"}).to_parquet(tmp_path / "data.parquet", index=False)
    ROWS.to_csv(tmp_path / "data.csv", index=False)
    tables = [read_table(tmp_path / name) for name in ("data.parquet", "data.csv")]
    assert hashes(tables[0], "name") == hashes(tables[1], "name")


def test_a_spreadsheet_that_writes_true_in_capitals_keeps_the_hashes():
    text = ROWS["tame"].astype(str)
    for spelling in (text, text.str.upper(), text.str.lower()):
        assert hashes(ROWS.assign(tame=spelling)) == hashes(ROWS)


def test_any_text_and_any_type_has_a_hash():
    frame = pd.DataFrame({"text": HOSTILE_TEXT, "kind": "cat"})
    frame["list"] = [[i] for i in range(len(frame))]
    frame["bytes"] = b"\xff"
    assert len(set(hashes(frame))) == len(frame)
