"""The command: bad input and hostile names, row by row of the table of faults.

Rows that cannot reach the command: 4, 5, 25, 26, 30 (arrays and weights; a table has none), 14 (a
CSV file has text only, a Parquet column one type), 98 and 99 on idx files (they are not read, and a
gzip file has no size to check), 107 (no markup is read). In test_cli.py: 8, 10, 22, 81, 82, 86, 87,
89, 91, 92, 93, 105, 108, 111.
"""

import io
import json
import os
import pickle
import re
import subprocess
from pathlib import Path
from shutil import copytree
from types import SimpleNamespace

import numpy as np
import pytest

from looselabels import Transition
from tests.command.calls import (
    CSV,
    QUICK,
    WRITTEN,
    animals,
    called,
    files,
    pd,
    read_csv,
)

pytestmark = pytest.mark.usefixtures("folder")  # each test works in an empty folder

AUDIT = "audit data.csv --label species"
IDS = "id,species\n" + "".join(f"{i},{'cd'[i % 2]}\n" for i in range(60))


def parquet(labels):
    file = io.BytesIO()
    frame = pd.DataFrame({"size": np.arange(len(labels)) / 7, "species": labels})
    frame.to_parquet(file, index=False)
    return file.getvalue()


def npy(array, save=np.save):
    file = io.BytesIO()
    save(file, array)
    return file.getvalue()


def with_proba(array, data=CSV):
    """Return a table, and what --proba is given."""
    return {"data.csv": data, "p.npy": array if isinstance(array, bytes) else npy(array)}


def with_design(design, data=CSV):
    return {"data.csv": data, "d.json": json.dumps(design)}


HUGE = b"\x93NUMPY\x01\x00v\x00{'descr': '<f8', 'fortran_order': False, 'shape': (10**12, 3), }"
HUGE = HUGE.replace(b"10**12", b"1000000000000").ljust(127) + b"\n"
DEEP = '{"meanings": ' * 100_000
DAYS = [pd.Timestamp("2020-01-01"), pd.Timestamp("2021-01-01")]
ONE = "size,species\n" + "1,a\n2,\n" * 9
TWO = "size,species\n" + "1,a\n2,b\n" * 9
MANY = "size,species\n" + "".join(f"{i % 7},{i % 99_500}\n" for i in range(100_000))
SEVERAL = "size,species\n" + "".join(f"{i % 7},{i % 2_000}\n" for i in range(10_000))
PETS = {"meanings": {"cat": "cat", "dog": "dog"}}
PETS_OR_NOT = {"meanings": {**PETS["meanings"], "": ["cat", "dog"]}}
NOT_ONE = '{"schema": 1, "classes": ["a"], "labels": ["b"], "proba": [[0.5]]}'
PARQUET = "audit data.parquet --label species"
DESIGN = "design design.json"
DESIGNED = f"{AUDIT} --design d.json"
PREDICT = "predict MODEL data.csv"
LABELED = f"{PREDICT} --label species"
PROBA = f"{AUDIT} --proba p.npy"
# fault, what it is, files, command, exit code, words in the message
BAD = [
    (3, "infinite", CSV + "inf,1,cat\n", AUDIT, 3, r"line 82, column 'size': 'inf' is not a fi"),
    (3, "1e400", CSV + "1,1e400,cat\n", AUDIT, 3, r"line 82, column 'weight': '1e400' is not"),
    (3, "infinite at predict", "size,weight\n1,2\n-inf,1\n", PREDICT, 3, "line 3, column 'size'"),
    (6, "no columns", "species\n" + "cat\ndog\n" * 20, AUDIT, 3, "no usable feature column"),
    (6, "no rows", "size,species\n", AUDIT, 3, "data.csv has a header but no rows"),
    (6, "only identifiers", IDS, AUDIT, 3, "no usable .*'id'.*identifier.*--features"),
    (7, "one row", "size,species\n1,cat\n", AUDIT, 3, "has 1 row; at least 10"),
    (10, "no such feature", "size\n1\n", PREDICT, 3, "no column 'weight'.*It has 'size'"),
    (10, "a word for a number", "size,weight\n1,x\n", PREDICT, 3, "line 2, .*'x' is not a number"),
    (10, "no such column", CSV, f"{AUDIT} --features sise", 3, r"Did you mean 'size'\?"),
    (10, "the label", CSV, f"{AUDIT} --features species", 3, "'species' is the label"),
    (16, "measured", parquet([0.5, 1.5] * 30), PARQUET, 3, r"'species' contains \d.5 and looks"),
    (17, "lists", parquet([["cat"], ["dog"]] * 30), PARQUET, 3, "'species' holds lists"),
    (17, "not a simplex", with_proba(np.ones((80, 3))), PROBA, 3, "must sum to 1"),
    (17, "columns", with_proba(np.ones((80, 2)) / 2), PROBA, 3, "3 labels need as many columns"),
    (17, "rows", with_proba(np.ones((9, 3)) / 3), PROBA, 3, "p.npy has 9 rows; the table has 80"),
    (17, "no file", CSV, PROBA, 5, "p.npy: No such file"),
    (18, "all unlabeled", ONE.replace("a", ""), AUDIT, 3, "'species' contains no label"),
    (
        18,
        "specified so",
        TWO,
        f"{AUDIT} --unlabeled a --unlabeled b",
        3,
        "'species' contains no label",
    ),
    (19, "one label", ONE, AUDIT, 3, r"only one label, \['a'\].*--negative other"),
    (19, "negative has labels", CSV, f"{AUDIT} --negative dog", 3, "'dog'.*--unlabeled 'dog'"),
    (20, "design", with_design(PETS_OR_NOT, CSV + "1,2,cow\n"), DESIGNED, 3, r"holds \['cow'\]; "),
    (20, "missing", with_design(PETS), DESIGNED, 3, "rows without a label.*Add what it means"),
    (20, "predict", "size,weight,species\n1,2,cow\n", LABELED, 3, r"holds \['cow'\]; .*'cat', 'd"),
    (20, "no such label column", "size,weight\n1,2\n", LABELED, 3, "no column 'species'"),
    (27, "identifiers", MANY, AUDIT, 3, r"99,500 .* in 100,000 labeled rows\. Is it an identifier"),
    (27, "too many", SEVERAL, AUDIT, 3, "2,000 different labels .*at most 1,000"),
    (28, "NUL", CSV + "1,2,c\0t\n", AUDIT, 3, "line 82: a NUL byte"),
    (28, "the word", CSV.replace("cat", "(unlabeled)"), AUDIT, 3, "'.unlabeled.'.*--unlabeled"),
    (29, "dates", parquet(DAYS * 9), PARQUET, 3, "Timestamp.*use text"),
    (87, "no table", {}, AUDIT, 5, "data.csv: No such file"),
    (87, "a folder", {}, "audit . --label species", 2, r"\. is a folder\. For a table, name its"),
    (87, "no model", CSV, "predict nowhere data.csv", 5, "nowhere does not exist"),
    (87, "no design", {}, DESIGN, 5, "design.json: No such file"),
    (96, "0 bytes", "", AUDIT, 3, "data.csv is empty"),
    (
        96,
        "too few cells",
        CSV + "1,2\n",
        AUDIT,
        3,
        "line 82: 2 cells where the header has 3, '1,2'",
    ),
    (96, "too many cells", CSV + "1,2,3,4\n", AUDIT, 3, "line 82: 4 cells"),
    (96, "open quote", CSV + '1,2,"cat\n', AUDIT, 3, 'line 82: .*quote .". not closed'),
    (
        96,
        "wrong delimiter",
        CSV.replace(",", ";"),
        AUDIT,
        3,
        r"its cells, pass --delimiter ';' if data\.csv is DATA, and",
    ),
    (96, "tabs in .csv", CSV.replace(",", "\t"), AUDIT, 3, r"pass --delimiter tab if"),
    (96, "Latin-1", CSV.encode() + b"1,2,caf\xe9\n", AUDIT, 3, "line 82: byte 0xe9 is not UTF-8"),
    (96, "UTF-16", CSV.encode("utf-16"), AUDIT, 3, "UTF-16; save it as UTF-8"),
    (96, "Excel", b"PK\x03\x04", AUDIT, 3, "zip or Excel file"),
    (96, "no such column", CSV, "audit data.csv --label Specis", 3, "Did you mean 'species'"),
    (96, "damaged Parquet", b"PAR1 and no more", PARQUET, 3, "data.parquet is damaged"),
    (96, "no Parquet", CSV, PARQUET, 3, "is not a Parquet file"),
    (
        96,
        "a word for a number",
        CSV + "1,abc,cat\n",
        AUDIT,
        3,
        "line 82, column 'weight': 'abc' is",
    ),
    (
        96,
        "no such text",
        CSV,
        f"{AUDIT} --text siez",
        3,
        r"no column 'siez'. Did you mean 'size'\?",
    ),
    (97, "duplicate", "size,size,species\n1,2,cat\n", AUDIT, 3, "more than one column 'size'"),
    (97, "nameless column", ",size,species\n1,2,cat\n", AUDIT, 3, "column 1 of 3 has no name"),
    (98, "header of 22 TiB", with_proba(HUGE), PROBA, None, "is not an array|Not enough memory"),
    (99, "no array", with_proba(b"1 2 3"), PROBA, 3, "p.npy is not an array of numbers"),
    (99, "empty array file", with_proba(b""), PROBA, 3, "p.npy is not an array of numbers"),
    (99, "archive", with_proba(npy(np.ones(3), np.savez)), PROBA, 3, "p.npy is an archive"),
    (100, "pickle", {"m": pickle.dumps(1)}, "predict m data.csv", 3, "m is not a model"),
    (100, "folder", CSV, "predict . data.csv", 3, "is not a model: a model is a folder"),
    (102, "objects", with_proba(npy(np.array([{}]))), PROBA, 3, "p.npy is not an array of numbers"),
    (110, "no JSON", "{", DESIGN, 2, "design.json: it is not valid JSON"),
    (110, "not UTF-8", b'{"meanings": {"\xe9": "a"}}', DESIGN, 2, "is not valid JSON: 'utf-8'"),
    (110, "deep", DEEP, DESIGN, 2, "is not valid JSON: maximum recursion"),
    (110, "no object", "[1]", DESIGN, 2, "needs the key 'meanings'"),
    (110, "no keys", "{}", DESIGN, 2, "needs the key 'meanings'"),
    (110, "unknown key", '{"meanings": {"a": "b"}, "nose": 1}', DESIGN, 2, "key 'nose'; possible"),
    (110, "key twice", '{"meanings": {"a": "b", "a": "c"}}', DESIGN, 2, "key 'a' occurs twice"),
    (110, "NaN", '{"meanings": {"a": "b"}, "noise": NaN}', DESIGN, 2, "NaN is not allowed"),
    (110, "no mapping", '{"meanings": ["a"]}', DESIGN, 2, "meanings must be a mapping"),
    (110, "nothing", '{"meanings": {}}', DESIGN, 2, "meanings contains no label"),
    (110, "no class", '{"meanings": {"a": null}}', DESIGN, 2, "Give the class a name"),
    (110, "lists in lists", '{"meanings": {"a": [["b"]]}}', DESIGN, 2, "design.json: "),
    (110, "counts", '{"meanings": {"a": "b"}, "counts": {"c": 1}}', DESIGN, 2, r"names \['c'\]"),
    (110, "noise", '{"meanings": {"a": "b", "c": "d"}, "noise": "much"}', DESIGN, 2, "'much'"),
    (110, "rows of 0.5", NOT_ONE, DESIGN, 2, "row 'a' sums to 0.5"),
    (110, "in an audit", {"data.csv": CSV, "d.json": "{"}, DESIGNED, 2, "d.json: it is not valid"),
]


def place(content, command):
    """Write the files of a bad case; one without a name has that of the command."""
    if not isinstance(content, dict):
        names = [word for word in command.split() if word.endswith((".csv", ".parquet", ".json"))]
        content = {names[0]: content}
    for name, part in content.items():
        Path(name).write_bytes(part if isinstance(part, bytes) else part.encode())


@pytest.mark.parametrize(
    ("number", "what", "content", "command", "code", "said"),
    BAD,
    ids=[f"{row[0]} {row[1]}" for row in BAD],
)
def test_bad_input_gets_one_line_and_leaves_nothing(
    number, what, content, command, code, said, model
):
    place(content, command)
    before = files()
    found = called(*(str(model) if word == "MODEL" else word for word in command.split()))
    assert found.code == code or (code is None and found.code in (3, 5)), found.err
    assert re.search(said, found.err), found.err
    assert "Traceback" not in found.err
    if code != 2:  # then click shows how it is used
        assert found.err.count("\n") == 1
        assert len(found.err) < 500
    assert found.out == ""
    assert files() == before


def test_a_damaged_or_newer_model_is_refused(model, folder):  # faults 101, 103
    Path("new.csv").write_text("size,weight\n1,2\n")
    for name, change in [
        ("classifier/estimator.skops", lambda data: data[:1000]),
        ("classifier/decoupling.json", lambda data: data.replace(b'"schema": 1', b'"schema": 9')),
        ("classifier/arrays.npz", lambda data: b""),
        ("features/features.json", lambda data: data.replace(b'"schema": 1', b'"schema": 9')),
    ]:
        damaged = copytree(model, folder / name.replace("/", "-"))
        file = damaged / name
        file.write_bytes(change(file.read_bytes()))
        found = called("predict", damaged, "new.csv")
        assert found.code == 3
        assert f"{file} cannot be loaded: " in found.err
        assert found.out == ""


# ----------------------------------------------------------------------------------- hostile names

HOSTILE = (
    *("NA", "null", "-1", "🦆", "\u202ertl", "two\nlines", "\x1b[31mred", "=cmd|' /C calc'!A0"),
    *("</script><script>document.title='!'</script>", "../../escaped", "[/red]", "m" * 1_000_000),
)


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    """An audit of names that break things, behind a byte order mark, with odd columns."""
    folder = tmp_path_factory.mktemp("outer") / "hostile"
    folder.mkdir()
    frame = animals(120, names=HOSTILE, wrong=0.03)
    frame["c" * 10_000] = frame["size"]  # long, and a copy: faults 9, 12
    frame["\u202eשלום\x1b[31m<b>"] = ["x", None] * 60
    frame = frame.rename(columns={"species": "<i>species"})
    frame.loc[5, "weight"] = None  # faults 1, 2
    frame.to_csv(folder / "data.csv", index=False, encoding="utf-8-sig")
    words = ("audit", folder / "data.csv", "--label", "<i>species", *QUICK, "-o", folder / "out")
    return SimpleNamespace(folder=folder, result=called(*words), out=folder / "out")


def test_hostile_names_are_kept_in_the_data(hostile):  # faults 12, 28, 94, 95
    assert hostile.result.code == 0, hostile.result.err
    before, after = read_csv(hostile.folder / "data.csv"), read_csv(hostile.out / "labels.csv")
    assert after[before.columns].equals(before)
    assert set(after["suggestion"]) <= set(HOSTILE)
    transition = Transition.from_json((hostile.out / "transition.json").read_text())
    assert set(transition.classes) == set(HOSTILE)


def test_hostile_names_do_nothing_to_the_terminal_the_page_or_the_disk(hostile):  # 104, 106, 109
    page = (hostile.out / "report.html").read_text(encoding="utf-8")
    assert "<script>document.title" not in page
    assert "<i>species" not in page
    assert "\x1b" not in page
    assert len(page) < 1_500_000  # the longest name, of a million letters, is there once
    assert all(c.isprintable() or c == "\n" for c in hostile.result.err)
    assert len(hostile.result.err) < 2000
    assert files(hostile.folder.parent) == ["hostile"]
    assert files(hostile.out) == WRITTEN


def test_hostile_names_are_predicted(hostile):
    words = ("predict", hostile.out / "model", hostile.folder / "data.csv", "--all-classes")
    found = called(*words, "--label", "<i>species")
    assert found.code == 0, found.err
    after = pd.read_csv(io.StringIO(found.out), dtype=str, keep_default_na=False)
    assert len(after.columns) == 5 + 3 + len(HOSTILE)
    assert "p(\\x1b[31mred)" in after.columns


def words_of(command):
    """Return the words of a command as a shell reads them."""
    words = ["bash", "-c", f"printf '%s\\0' {command}"]
    environment = os.environ | {"LC_ALL": "C.UTF-8"}
    done = subprocess.run(words, capture_output=True, check=True, env=environment, timeout=60)
    return done.stdout.decode().split("\0")[:-1]


@pytest.mark.parametrize(
    "variants",
    [
        ("cat ", "  cat"),
        ("Cat", "CAT "),
        ("C'a't\u00a0", "c'a't"),
        ("C\tat\n=x\\", "c at =X\\"),
        ("-Cat=$HOME", "-cat=$HOME"),
    ],
)
def test_variants_of_a_label_are_found_and_merged_by_the_command_on_the_page(variants):
    frame = animals(names=(variants[0], "dog"))
    rows = frame.index[::4]
    frame.loc[rows, "species"] = frame.loc[rows, "species"].replace(*variants)
    frame.to_csv("data.csv", index=False)
    found = called("audit", "data.csv", "--label", "species", *QUICK, "--json")
    assert found.code == 0, found.err
    (variant,) = json.loads(found.out)["variants"]
    assert variant["labels"] == sorted(variants)
    assert "differ only in case or spaces. To merge them, add --" in found.err
    found = called(*words_of(variant["command"])[1:], "--json")
    assert found.code == 0, found.err
    summary = json.loads(found.out)
    assert summary["variants"] == []
    assert len(summary["classes"]) == 2
    assert "case or spaces" not in found.err
    assert "matches no cell" not in found.err
    assert read_csv("data-audit/labels.csv")["species"].isin(variants).sum() > 30


def test_a_model_of_merged_labels_reads_the_same_spellings():
    animals(names=("Cat ", "dog")).to_csv("data.csv", index=False)
    words = ("--merge", "Cat=cat", "--strip")
    found = called("fit", "data.csv", "--label", "species", *QUICK, *words)
    assert found.code == 0, found.err
    predict = ("predict", "data-model", "data.csv", "--label", "species")
    assert "holds ['Cat ']; the known labels are ('cat', 'dog'" in called(*predict).err
    assert called(*predict, *words).code == 0


def test_a_word_that_merges_nothing_is_refused():
    found = called("audit", "data.csv", "--label", "species", "--merge", "Cat")
    assert found.code == 2
    assert "'Cat' is neither FROM=TO nor a file" in found.err


def test_variants_are_noted_by_fit():
    frame = animals()
    frame.loc[:40, "species"] = frame.loc[:40, "species"].replace("cat", "Cat ")
    frame.to_csv("data.csv", index=False)
    found = called("fit", "data.csv", "--label", "species", *QUICK)
    assert found.code == 0, found.err
    assert "Labels ['Cat ', 'cat'] differ only in case or spaces. To merge them, add" in found.err


@pytest.mark.parametrize(
    "labels",
    [
        pd.Series([True, False] * 30),
        pd.Series([True, False, None] * 20, dtype="boolean"),
        pd.Series([0, 1] * 30),
        pd.Series([0.0, 1.0, None] * 20),
        pd.Series(["b", "a"] * 30, dtype="category").cat.add_categories("c"),
        pd.Series(["-1", "1"] * 30),
    ],
    ids=["bool", "bool or missing", "int", "float", "categories", "-1"],
)  # faults 13, 15, 29
def test_labels_of_any_type_work_in_both_formats(labels):
    frame = animals(60).assign(species=labels)
    frame.to_csv("data.csv", index=False)
    frame.to_parquet("data.parquet", index=False)
    for name in ("data.csv", "data.parquet"):
        found = called("fit", name, "--label", "species", *QUICK, "--force", "--json")
        assert found.code == 0, found.err
        assert len(json.loads(found.out)["classes"]) == 2
        for table in ("data.csv", "data.parquet"):
            found = called("predict", "data-model", table, "--label", "species")
            assert found.code == 0, found.err


def test_a_label_seen_once_is_noted_and_audited():  # fault 23
    Path("data.csv").write_text(CSV + "3,-9,zebra\n")
    for name, said in (("kernel", ""), ("linear", r"Label \['zebra'\] has 1 sample: 2 folds")):
        words = ("audit", "data.csv", "--label", "species", "--model", name, "--jobs", "1")
        found = called(*words, "--noise", "0.1", "--force")
        assert found.code == 0, found.err
        assert re.search(said, found.err)


def test_a_label_seen_once_is_audited_where_noise_is_estimated():  # fault 23
    Path("data.csv").write_text(CSV + "3,-9,zebra\n")
    found = called("audit", "data.csv", "--label", "species", "--jobs", "1", "--no-refit")
    assert found.code == 0, found.err


def test_a_word_among_numbers_is_read_if_its_column_is_declared_as_text():
    Path("data.csv").write_text(CSV + "1,abc,cat\n")
    words = ("fit", "data.csv", "--label", "species", "--text", "weight", *QUICK)
    assert called(*words).code == 0
    found = called("predict", "data-model", "data.csv")
    assert found.code == 0, found.err


def test_equal_rows_with_other_labels_are_fine():  # fault 24
    Path("data.csv").write_text("size,species\n" + "1,cat\n1,dog\n2,cat\n2,dog\n3,dog\n" * 12)
    assert called("audit", "data.csv", "--label", "species", *QUICK).code == 0


def test_a_label_of_the_design_that_is_not_there_is_noted():  # fault 21
    Path("data.csv").write_text(CSV)
    meanings = {"cat": "cat", "dog": "dog", "cow": "cow", "": ["cat", "dog", "cow"]}
    Path("design.json").write_text(json.dumps({"meanings": meanings}))
    words = ("audit", "data.csv", "--label", "species", "--model", "kernel")
    found = called(*words, "--design", "design.json")
    assert found.code == 0, found.err
    assert "Labels ['cow'] of the design do not occur in the table" in found.err


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("--groups", "naem"), 3, "The table has no column 'naem'. Did you mean 'name'?"),
        (("--groups", "species"), 3, "Column 'species' is the label; it cannot be the group too."),
        (("--groups", "name"), 3, "data.csv, line 4: column 'name' is empty, but each row needs a"),
        (
            ("--groups", "size", "--features", "size"),
            3,
            "Column 'size' is the group; it cannot be a feature too.",
        ),
        (("--groups", "farm", "--proba", "p.npy"), 2, "Pass either --groups or --proba"),
    ],
)
def test_bad_groups_are_one_line(words, code, said):
    frame = animals(20).assign(name=[f"pet {k}" for k in range(20)], farm="north")
    frame.loc[2, "name"] = None
    frame.to_csv("data.csv", index=False)
    found = called("audit", "data.csv", "--label", "species", *words)
    assert found.code == code
    assert said in found.err
    assert files() == ["data.csv"]
