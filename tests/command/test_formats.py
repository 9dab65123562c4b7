"""Tables other than CSV: types and cells that are kept, and errors that name the place."""

import bz2
import gzip
import io
import json
import lzma
import sys
import zipfile
from datetime import date, datetime
from pathlib import Path

import pytest

from looselabels.command.identity import identify
from looselabels.command.notes import collect_warnings
from looselabels.command.tables import (
    TableError,
    number_of_first_row,
    read_blocks,
    read_table,
    row_location,
)
from looselabels.command.writing import format_note, table_writer
from tests.command.calls import QUICK, animals, called, cells, files, pa, pd, read_csv

TABLE = [["name", "size", "kind"], ["Ann", 1, "cat"], ["Bob", 2.5, None], [None, None, "dog"]]
TEXT = [["Ann", "1", "cat"], ["Bob", "2.5", None], [None, None, "dog"]]


@pytest.fixture
def excel(tmp_path):
    """Write sheets, lists of rows by name, to an Excel file, and return its path."""
    openpyxl = pytest.importorskip("openpyxl", reason="the extra `excel` is not installed")

    def write(name="data.xlsx", **sheets):
        book = openpyxl.Workbook()
        book.remove(book.active)
        for title, rows in sheets.items():
            sheet = book.create_sheet(title)
            for row in rows:
                sheet.append(row)
        book.save(tmp_path / name)
        return tmp_path / name

    return write


def read(path, **options):
    """Return the cells of a table and the warnings, and check that blocks give the same."""
    with collect_warnings() as notes:
        frame = read_table(path, **options)
        blocks = list(read_blocks(path, 2, **options))
    assert [len(block) for block in blocks] == [2] * (len(frame) // 2) + [1] * (len(frame) % 2)
    pd.testing.assert_frame_equal(pd.concat(blocks), frame)
    return cells(frame), notes


# ---------------------------------------------------------------------------- compressed, Feather

PACK = {
    "gz": gzip.compress,
    "bz2": bz2.compress,
    "xz": lzma.compress,
    "zst": lambda data: packed_by_arrow(data),
}


def packed_by_arrow(data):
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as stream:
        stream.write(data)
    return sink.getvalue().to_pybytes()


@pytest.mark.parametrize("end", PACK)
def test_compressed_tables_are_read_and_damaged_ones_refused(end, file):
    content = b"name\tsize\n" + b"".join(b"pet %d\t%d\n" % (k, k) for k in range(9999))
    path = file(PACK[end](content), f"data.tsv.{end}")
    frame = read_table(path)
    assert cells(frame)[:2] == [["pet 0", "0"], ["pet 1", "1"]]
    assert len(frame) == 9999
    assert row_location(frame, 7) == f"{path}, line 9"
    with pytest.raises(TableError, match=r"is damaged: .*\. Compress it again\."):
        read_table(file(PACK[end](content)[:-9], f"data.tsv.{end}"))


@pytest.mark.parametrize("end", PACK)
def test_what_is_written_compressed_is_compressed(end, tmp_path):
    with table_writer(tmp_path / f"x.csv.{end}") as write:
        write(pd.DataFrame({"a": [1, 2]}))
    with open(tmp_path / f"x.csv.{end}", "rb") as handle:
        assert handle.read(2) == PACK[end](b"")[:2]
    assert cells(read_table(tmp_path / f"x.csv.{end}")) == [["1"], ["2"]]


def test_feather_files_and_streams_keep_their_types(tmp_path):
    frame = pd.DataFrame({"number": [1, 2, 3], "kind": pd.Categorical(["b", None, "a"])})
    table = pa.Table.from_pandas(frame)
    for name, open_writer in (("x.feather", pa.ipc.new_file), ("x.arrow", pa.ipc.new_stream)):
        with open_writer(str(tmp_path / name), table.schema) as writer:
            writer.write_table(table, max_chunksize=2)
        assert read(tmp_path / name)[0] == [[1, "b"], [2, None], [3, "a"]]
    with table_writer(tmp_path / "y.feather") as write:
        write(read_table(tmp_path / "x.feather"))
    assert pd.read_feather(tmp_path / "y.feather")["kind"].tolist()[::2] == ["b", "a"]


def test_bad_feather_files_are_refused(file, tmp_path):
    pd.DataFrame({"a": range(1000)}).to_feather(tmp_path / "good.feather")
    damaged = (tmp_path / "good.feather").read_bytes()[:-30]
    for content, message in {
        damaged: "is damaged",
        b"a,b\n1,2\n": "is not a Feather file: it does not start with ARROW1",
        b"FEA1": "is a Feather file of version 1; write it again",
    }.items():
        with pytest.raises(TableError, match=message):
            read_table(file(content, "x.feather"))


# -------------------------------------------------------------------------------------- JSON lines


def test_json_lines_are_read_as_text(file):
    rows = [{"a": "x", "b": 1.5, "c": True}, {"b": None, "a": ""}, {"c": "NA", "b": -3}]
    text = "\ufeff" + "\n\n".join(map(json.dumps, rows)).replace("1.5", "1.50")
    for name in ("data.jsonl", "data.NDJSON", "data.jsonl.gz"):
        content = gzip.compress(text.encode()) if name.endswith("gz") else text
        path = file(content, name)
        expected = [["x", "1.50", "true"], [None, None, None], [None, "-3", "NA"]]
        assert read(path)[0] == expected
        assert row_location(read_table(path), 1) == f"{path}, line 3"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"a": 1}\n{"a": 2', r"line 2: not valid JSON: Expecting ',' delimiter\.$"),
        ('{"a": 1}\n\n[1]', r"line 3: \['1'\] is not an object"),
        ('{"a": NaN}', "line 1: not valid JSON: NaN is not allowed"),
        ('{"a": 1, "a": 2}', "line 1: not valid JSON: the key 'a' occurs twice"),
        ('{"a": [1, 2]}', r"line 1, key 'a': \['1', '2'\] is not a single value"),
        ('{"a": "\\ud800"}', "line 1, key 'a': half of a character"),
        ('{"": 1}', "column 1 of 1 has no name"),
        ("\n\n", "is empty; it needs one JSON object per line"),
        ('{"kin": 1}', r"no column 'kind'\. Did you mean 'kin'"),
        (b'{"kind": "caf\xe9"}', "line 1: byte 0xe9 is not UTF-8"),
    ],
)
def test_bad_json_lines_are_refused_with_the_line(text, message, file):
    with pytest.raises(TableError, match=message):
        read_table(file(text, "data.jsonl"), label="kind" if "ki" in str(text) else None)


def test_a_key_that_comes_late_is_refused(file):
    path = file('{"a": 1}\n' * 3 + '{"a": 1, "b": 2}\n', "data.jsonl")
    assert cells(read_table(path))[-2:] == [["1", None], ["1", "2"]]
    with pytest.raises(TableError, match="line 4: the key 'b' is not in the first 2 lines; add it"):
        list(read_blocks(path, 2))


@pytest.mark.parametrize(
    ("content", "name", "message"),
    [
        (b'[{"a": 1}]', "data.json", r"is JSON, .*one object per line to a \.jsonl"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1", "data.xls", r"is an \.xls file .*save it as \.xlsx"),
        (b"a,b\n1,2\n", "data.xlsx", "is not an Excel file: it does not start with PK"),
    ],
)
def test_formats_that_are_not_read_are_refused_with_the_next_step(content, name, message, file):
    with pytest.raises(TableError, match=message):
        read_table(file(content, name))


# ------------------------------------------------------------------------------------------- Excel


def test_a_sheet_is_read_as_text(excel):
    path = excel(Pets=[*TABLE[:2], [], *TABLE[2:], [None, ""]])
    found, notes = read(path)
    assert found == TEXT
    assert notes == ["Sheet 'Pets' was read."]
    with collect_warnings():
        assert row_location(read_table(path), 1) == f"{path}, sheet 'Pets', row 4"


def test_only_excel_has_sheets(tmp_path):
    path = tmp_path / "data.csv"
    path.write_text("size,kind\n1,cat\n")
    with pytest.raises(TableError, match=r"data\.csv is CSV, which has no sheets\. Leave --sheet"):
        read_table(path, sheet="Pets")


def test_rows_of_a_sheet_have_its_numbers_unless_there_are_empty_ones(excel):
    for rows, first in ((TABLE, 2), ([TABLE[0], [], *TABLE[1:]], 1)):
        with collect_warnings():
            frame = read_table(excel(Pets=rows))
        found = identify(frame, label=frame.columns[0])
        assert (found.name, found.ids[0]) == ("Row", first)
        assert ("the header is row 1" in found.note) == (first == 2)


def test_cells_of_excel_are_written_as_in_csv(excel):
    row = [True, 3.0, 0.1, date(2026, 1, 2), datetime(2026, 1, 2, 3, 4, 5), "007", "NA", " x "]
    found, _ = read(excel(Sheet=[list("abcdefgh"), row]))
    assert found == [["true", "3", "0.1", "2026-01-02", "2026-01-02 03:04:05", "007", "NA", " x "]]


def test_the_first_sheet_is_read_or_the_one_that_is_named(excel):
    path = excel(Notes=[["text"], ["hello"]], Pets=TABLE)
    assert read(path) == (
        [["hello"]],
        ["Sheet 'Notes' was read. For another sheet, pass --sheet: 'Pets'."],
    )
    with pytest.warns(UserWarning, match="was read"), pytest.raises(TableError) as caught:
        read_table(path, label="kind")
    assert str(caught.value).endswith(
        "has no column 'kind'. It has 'text'. For another sheet, pass --sheet: 'Pets'."
    )
    assert read(path, sheet="Pets")[0] == TEXT
    with pytest.raises(TableError, match=r"has no sheet 'Pet'\. It has 'Notes', 'Pets'\.$"):
        read_table(path, sheet="Pet")


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([], "sheet 'S' is empty; it needs a header"),
        ([["a", "b"]], "sheet 'S' has a header but no rows"),
        ([["a", None, "b"], [1, 2, 3]], "sheet 'S': column 2 of 3 has no name"),
        ([["a", "a"], [1, 2]], "more than one column 'a'"),
        ([["Report"], [], ["a", "b"]], r"row 3: 2 cells where the header, row 1, has 1, 'b'"),
        ([["a"], ["#REF!"]], r"sheet 'S', cell A2: the error #REF!\. Correct its formula"),
        ([["kin"], ["x"]], r"sheet 'S' has no column 'kind'\. Did you mean 'kin'"),
    ],
)
@pytest.mark.filterwarnings("ignore:Sheet 'S' was read")
def test_bad_sheets_are_refused_with_the_place(rows, message, excel):
    path = excel(S=rows)
    with pytest.raises(TableError, match=message) as caught:
        read_table(path, label="kind" if rows and "kin" in rows[0] else None)
    assert str(caught.value).startswith(f"{path}, ")


def test_other_zip_files_are_not_excel(excel, file):
    good = excel(S=TABLE).read_bytes()
    no_sheet = good.replace(b"xl/worksheets/sheet1", b"xl/worksheets/sheet2")
    for names, message in (
        (["data.csv"], "is a zip archive; unpack it"),
        (["mimetype", "content.xml"], r"is not an \.xlsx file; save it"),
        (["xl/workbook.bin"], r"is not an \.xlsx file; save it"),
        (["xl/workbook.xml"], "is damaged"),
    ):
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w") as archive:
            for name in names:
                archive.writestr(name, "")
        with pytest.raises(TableError, match=message):
            read_table(file(packed.getvalue(), "x.xlsx"))
    for content, message in ((no_sheet, "has no sheet with cells"), (good[:-9], "is a damaged")):
        with pytest.raises(TableError, match=message):
            read_table(file(content, "x.xlsx"))


def test_without_openpyxl_one_line_says_what_to_install(excel, folder, monkeypatch):
    excel(S=TABLE)
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    found = called("audit", "data.xlsx", "--label", "kind")
    assert found.code == 2
    assert found.err == 'This needs openpyxl: pip install "looselabels[excel]"\n'
    assert files() == ["data.xlsx"]


def test_results_that_are_not_in_the_format_of_the_input_are_noted():
    assert format_note("data.csv.zst") == format_note("data.feather") == []
    for name in ("data.xlsx", "data.jsonl.gz"):
        assert "is a CSV file" in format_note(name)[0]


@pytest.mark.parametrize("suffix", [".xlsx", ".feather", ".jsonl", ".csv.zst"])
def test_every_format_is_audited_and_predicted(suffix, request, folder):
    frame = animals()
    rows = frame.astype(object).where(frame.notna(), None)
    if suffix == ".xlsx":
        excel = request.getfixturevalue("excel")
        excel(Notes=[["nothing"]], Pets=[list(frame), *rows.to_numpy().tolist()])
    elif suffix == ".feather":
        frame.to_feather("data.feather")
    elif suffix == ".jsonl":
        frame.to_json("data.jsonl", orient="records", lines=True)
    else:
        Path("data.csv.zst").write_bytes(packed_by_arrow(frame.to_csv(index=False).encode()))
    sheet = ["--sheet", "Pets"] if suffix == ".xlsx" else []
    found = called("audit", f"data{suffix}", "--label", "species", *QUICK, *sheet, "--json")
    assert found.code == 0, found.err
    table = "labels.feather" if suffix == ".feather" else "labels.csv"
    assert table in files("data-audit")
    summary = json.loads(found.out)
    assert ("is a CSV file" in found.err) == (suffix in (".xlsx", ".jsonl"))
    assert ("Sheet 'Pets' was read." in str(summary["warnings"])) == (suffix == ".xlsx")
    assert ("--sheet Pets" in summary["reproduce"]["command"]) == (suffix == ".xlsx")
    words = ("predict", "data-audit/model", f"data{suffix}", "--label", "species", *sheet)
    assert called(*words, "-o", f"out{'.feather' if 'f' in suffix else '.csv'}").code == 0
    assert called(*words).out.count("\n") == 81
    found = called(*words, "-o", "out.xlsx")
    assert (found.code, "tables are written as .csv" in found.err) == (3, True)


def test_rows_are_counted_as_people_see_them(excel, file):
    path = excel(Pets=TABLE)
    with collect_warnings():
        assert number_of_first_row(read_table(path)) == ("Row", 2)
    for content, name, expected in (
        ("a\n1\n", "data.csv.bz2", ("Line", 2)),
        ('a\n"1\n2"\n', "data.csv", ("Row", 2)),
        ('{"a": 1}\n', "data.jsonl", ("Row", 1)),
    ):
        content = bz2.compress(content.encode()) if name.endswith("bz2") else content
        assert number_of_first_row(read_table(file(content, name))) == expected


def test_decisions_about_merged_labels_of_a_sheet_are_applied(excel, folder):
    frame = animals(names=("Cat ", "dog"), unlabeled=0)
    excel(Notes=[["nothing"]], Pets=[list(frame), *frame.to_numpy().tolist()])
    words = ("--label", "species", "--sheet", "Pets", "--strip", "--merge", "Cat=cat")
    audit = ("audit", "data.xlsx", *words, *QUICK, "--force")
    found = called(*audit, "--accept-above", "0.6")
    assert found.code == 0, found.err
    decisions = read_csv("data-audit/decisions.csv")
    assert set(decisions["label"]) == {"cat", "dog"}
    found = called("apply", "data.xlsx", "data-audit/decisions.csv", *words)
    assert found.code == 0, found.err
    assert f"Labels: {len(decisions)} changed" in found.err
    assert "Note: Sheet 'Pets' was read.\n" in found.err
    corrected = read_csv("data-corrected.csv")["species"]
    assert (corrected != frame["species"]).sum() == len(decisions)
    plain = ("apply", "data.xlsx", "data-audit/decisions.csv", *words[:4], "--force")
    assert "cannot be matched" in called(*plain).err
    assert called(*audit, "--decisions", "data-audit/decisions.csv").code == 0
