"""The loop as a user goes through it: audit, review, apply, audit again."""

import json
import os
import re
from pathlib import Path

import numpy as np
import pytest

from looselabels.command.decisions import COLUMNS
from tests.command.calls import CSV, WRITTEN, animals, called, cells, files, pd, read_csv

pytestmark = pytest.mark.usefixtures("folder")  # each test works in an empty folder

CLASSES = {"cat": "cat", "dog": "dog"}
SOURCES = {"web": {"meanings": CLASSES, "noise": 0.2}, "lab": {"meanings": {"pet": ["cat", "dog"]}}}
KERNEL = ("--label", "species", "--model", "kernel", "--no-refit", "--noise", "0.1")
CHOSEN = (*KERNEL, "--features", "size,weight")
APPLY = ("apply", "data.csv", "decisions.csv", "--label", "species")


def named(n_rows=100, **options):
    return animals(n_rows, **options).assign(name=[f"pet {k}" for k in range(n_rows)])


def audited(*words, data="data.csv"):
    """Audit a table and return the summary."""
    found = called("audit", data, *CHOSEN, "--json", "--force", *words)
    assert found.code == 0, found.err
    return json.loads(found.out) | {"said": found.err}


def reviewed(page, decide, name="decisions.csv"):
    """Write the decisions of a person about the rows of a page: `decide` returns a class."""
    lines = []
    for record in page["rows"]:
        of_class = decide(record)
        if of_class is not None:
            word = "keep" if of_class == record["label"] else "change"
            values = {"decision": word, "class": of_class}
            lines.append({name: (record | values)[name] for name in COLUMNS})
    pd.DataFrame(lines, columns=COLUMNS).to_csv(name, index=False)
    return lines


@pytest.fixture
def page(monkeypatch):
    """The content of the last page that was rendered."""
    from looselabels.command import results

    content: dict = {}

    def render(new, images):
        content.clear()
        content.update(new)
        return rendered(new, images)

    rendered = results.render
    monkeypatch.setattr(results, "render", render)
    return content


# ------------------------------------------------------------------------------------------- page


def test_the_page_names_rows_by_line_and_shows_columns(page):
    named().to_csv("data.csv", index=False)
    summary = audited()
    assert summary["id_name"] == "Line"
    assert summary["shown_columns"] == ["name", "size", "weight"]
    assert summary["table_file"] == "labels.csv"
    assert "rows" not in summary
    lines = Path("data.csv").read_text().splitlines()
    for record in page["rows"][:5]:
        assert lines[record["id"] - 1].split(",")[3] == record["cells"][0]


def test_id_and_show_choose_columns(page):
    named().to_csv("data.csv", index=False)
    summary = audited("--id", "name", "--show", "weight", "--show", "name", "--show", "weight")
    assert (summary["id_name"], summary["shown_columns"]) == ("name", ["weight", "name"])
    assert page["rows"][0]["cells"][1] == page["rows"][0]["id"]
    assert "--id name --show weight --show name" in summary["reproduce"]["command"]


def test_the_identifier_is_no_feature_unless_it_is_named():
    frame = named().assign(name=np.arange(100) * 7 % 100)
    frame.to_csv("data.csv", index=False)
    for more, used in (((), 2), (("--features", "size,name"), 2), (("--features", "name"), 1)):
        found = called("audit", "data.csv", *KERNEL, "--id", "name", "--json", "--force", *more)
        assert json.loads(found.out)["columns"]["used"] == used


# ----------------------------------------------------------------------------------------- accept


def test_columns_that_say_nothing_list_no_row_and_no_suggestion_is_accepted():
    frame = animals(200, unlabeled=0)
    frame["species"] = np.random.default_rng(0).permutation(frame["species"])
    frame.to_csv("data.csv", index=False)
    found = called("audit", "data.csv", *KERNEL, "--accept-above", "0.6")
    assert found.code == 3
    assert "--accept-above 0.6: no suggestion was accepted, because the columns" in found.err
    assert not Path("data-audit/decisions.csv").exists()
    assert (read_csv("data-audit/labels.csv")[["suggestion", "doubt"]] == "").all(axis=None)
    page = Path("data-audit/report.html").read_text(encoding="utf-8")
    assert "There are no rows to list. The features do not predict the labels" in page
    for words in ("more likely wrong than right", "To check ("):
        assert words not in page


def test_suggestions_are_accepted_above_a_probability_and_applied():
    named().to_csv("data.csv", index=False)
    summary = audited("--accept-above", "0.9")
    assert files("data-audit") == sorted([*WRITTEN, "decisions.csv"])
    decisions = read_csv("data-audit/decisions.csv")
    assert list(decisions.columns[:7]) == list(COLUMNS)
    said = re.search(
        r"accepted in decisions.csv: (\d+), .* above 0.9; about (\d+.\d) of them are expected to",
        summary["said"],
    )
    assert int(said[1]) == len(decisions) == summary["n_to_check"] > 1
    assert float(said[2]) == round(np.sum(1 - decisions["doubt"].astype(float)), 1)

    found = called("apply", "data.csv", "data-audit/decisions.csv", "--label", "species")
    assert found.code == 0, found.err
    assert f"Labels: {len(decisions)} changed, 0 changed before" in found.err
    before, after = read_csv("data.csv"), read_csv("data-corrected.csv")
    right = np.where(np.arange(100) % 2, "dog", "cat")
    changed = (before["species"] != after["species"]).to_numpy()
    assert changed.sum() == len(decisions)
    assert (after["species"][changed] == right[changed]).all()
    others = before.columns.drop("species")
    assert after[others].equals(before[others])
    assert read_csv("data-corrected-changes.csv")["id"].tolist() == decisions["id"].tolist()


def test_without_a_probable_suggestion_there_is_no_file():
    named().to_csv("data.csv", index=False)
    assert (
        "No suggestion has a probability above 0.999" in audited("--accept-above", "0.999")["said"]
    )
    assert files("data-audit") == WRITTEN


def test_decisions_of_a_person_are_not_replaced(page):
    named().to_csv("data.csv", index=False)
    audited("--accept-above", "0.9")
    audited("--accept-above", "0.8")  # those of the command are
    reviewed(page, lambda record: record["suggestion"], "data-audit/decisions.csv")
    mine = Path("data-audit/decisions.csv").read_text()
    found = called("audit", "data.csv", *CHOSEN, "--accept-above", "0.9", "--force")
    assert found.code == 5
    assert "data-audit/decisions.csv is the result of a review and is not replaced" in found.err
    audited()
    assert Path("data-audit/decisions.csv").read_text() == mine


# ------------------------------------------------------------------------------------------ apply


def test_a_review_is_applied_and_stays_valid(page):
    named().to_csv("data.csv", index=False)
    audited("--id", "name")
    lines = reviewed(page, lambda record: "cat" if record["doubt"] > 0.5 else record["label"])
    found = called(*APPLY, "--id", "name", "-o", "better.csv")
    assert found.code == 0, found.err
    assert files() == [
        "better-changes.csv",
        "better.csv",
        "data-audit",
        "data.csv",
        "decisions.csv",
    ]
    n_changed = sum(line["decision"] == "change" for line in lines)
    assert len(read_csv("better-changes.csv")) == n_changed > 0
    Path("data.csv").unlink()
    found = called("apply", "better.csv", *APPLY[2:], "--id", "name", "-o", "again.csv")
    assert f"Labels: 0 changed, {n_changed} changed before" in found.err
    assert Path("again.csv").read_text() == Path("better.csv").read_text()


def test_a_parquet_table_stays_one(page):
    frame = named().astype({"species": "category"})
    frame.to_parquet("data.parquet", index=False)
    audited(data="data.parquet")
    reviewed(page, lambda record: record["suggestion"] if record["doubt"] > 0.5 else None)
    found = called("apply", "data.parquet", "decisions.csv", "--label", "species")
    assert found.code == 0, found.err
    before, after = cells(frame), cells(pd.read_parquet("data-corrected.parquet"))
    n_changed = sum(old != new for old, new in zip(before, after, strict=True))
    assert n_changed == len(read_csv("data-corrected-changes.csv")) > 1


def test_outputs_are_not_replaced_without_force_and_inputs_never(page):
    Path("data.csv").write_text(CSV)
    audited()
    reviewed(page, lambda record: record["label"])
    assert called(*APPLY).code == 0
    found = called(*APPLY)
    assert found.code == 5
    assert "data-corrected.csv exists; --force replaces it" in found.err
    assert called(*APPLY, "--force").code == 0
    os.rename("data-corrected-changes.csv", "x-changes.csv")
    os.symlink("data.csv", "link.csv")
    for out in ("data.csv", "./data.csv", "link.csv", "decisions.csv"):
        found = called(*APPLY, "-o", out, "--force")
        assert found.code == 2
        assert "is an input and is not replaced" in found.err
    found = called("apply", "x-changes.csv", *APPLY[2:], "-o", "x.csv", "--force")
    assert "x-changes.csv is an input and is not replaced" in found.err
    assert Path("data.csv").read_text() == CSV


def test_a_table_from_stdin_is_corrected(page, stdin):
    Path("data.csv").write_text(CSV)
    audited()
    reviewed(page, lambda record: record["suggestion"])
    for more in ((), ("--force",)):
        stdin(CSV.encode())
        found = called("apply", "-", *APPLY[2:], *more)
        assert found.code == 0, found.err
    assert called(*APPLY).code == 0
    assert Path("stdin-corrected.csv").read_text() == Path("data-corrected.csv").read_text()


# -------------------------------------------------------------------------------------- bad input

DECIDED = "id,label,suggestion,doubt,decision,class,hash\n"
LINES = {
    "unknown id": ("99,dog,cat,0.9,accept,cat,h000000000000", "no row has Line '99'"),
    "other cells": ("3,dog,cat,0.9,accept,cat,h000000000000", "other cells changed in Line '3'"),
    "word": ("3,dog,cat,0.9,maybe,cat,h0", "decisions.csv, line 2: the decision is 'maybe'"),
    "class": ("3,dog,cat,0.9,accept,,h0", "line 2: the decision is 'accept', but the class is mis"),
    "hash": ("3,dog,cat,0.9,accept,cat,", "line 2: the hash is missing"),
    "doubt": ("3,dog,cat,much,accept,cat,h0", "line 2: the doubt is 'much'"),
    "cells": ("3,dog", "line 2: 2 cells where the header has 7"),
    "none": ("", "decisions.csv has a header but no rows"),
    "two": (
        "3,dog,cat,0.9,accept,cat,h0\n3,dog,cat,0.9,keep,dog,h0",
        "Two decisions about '3' contradict each other: 'dog' → 'cat' and 'dog' → 'dog'",
    ),
}


@pytest.mark.parametrize("what", LINES)
@pytest.mark.parametrize("command", ["apply", "audit"])
def test_bad_decisions_are_one_line_and_nothing_is_written(what, command):
    line, said = LINES[what]
    Path("data.csv").write_text(CSV)
    Path("decisions.csv").write_text(f"{DECIDED}{line}\n")
    words = APPLY if command == "apply" else ("audit", "data.csv", *CHOSEN, "--decisions", APPLY[2])
    found = called(*words)
    assert (found.code, found.out) == (3, ""), found.err
    assert said in found.err
    assert found.err.count("\n") == 1
    assert files() == ["data.csv", "decisions.csv"]


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("apply", "data.csv", "data.csv", "--label", "species"), 3, "data.csv has no column 'id'"),
        (("apply", "data.csv", "no.csv", "--label", "species"), 5, "no.csv: No such file"),
        (("apply", "no.csv", "data.csv", "--label", "species"), 5, "no.csv: No such file"),
        (("apply", "data.csv", "--label", "species"), 2, "Missing argument 'DECISIONS...'"),
        (("apply", "data.csv", "data.csv"), 2, "Missing option '--label'"),
        (("apply", "data.csv", "data.csv", "--label", "specis"), 3, "Did you mean 'species'?"),
        (("audit", "data.csv", *CHOSEN, "--id", "siez"), 3, "no column 'siez'. Did you mean 'size"),
        (("audit", "data.csv", *CHOSEN, "--id", "species"), 3, "is the label; it cannot identify"),
        (
            ("audit", "data.csv", *CHOSEN, "--id", "kind"),
            3,
            "'kind' has 'pet' twice, at data.csv, l",
        ),
        (("audit", "data.csv", *CHOSEN, "--show", "siez"), 3, "no column 'siez'. Did you mean"),
        (("audit", "data.csv", *CHOSEN, "--accept-above", "95"), 2, "95.0 is not a probability"),
        (("audit", "data.csv", *CHOSEN, "--accept-above", "nan"), 2, "nan is not a probability"),
        (("audit", "data.csv", *CHOSEN, "--decisions", "no.csv"), 5, "no.csv: No such file"),
    ],
)
def test_bad_options_are_one_line(words, code, said):
    animals(20).assign(kind="pet").to_csv("data.csv", index=False)
    found = called(*words)
    assert found.code == code
    assert said in found.err
    assert "Traceback" not in found.err
    assert files() == ["data.csv"]


# ------------------------------------------------------------------------------------- audit again


def test_an_audit_after_a_review_knows_what_was_decided(page):
    frame = named(200, wrong=0.2)
    frame.to_csv("data.csv", index=False)
    audited("--id", "name")
    right = {f"pet {k}": "dog" if k % 2 else "cat" for k in range(200)}
    first = [record["id"] for record in page["rows"][:20]]
    lines = reviewed(page, lambda record: right[record["id"]] if record["id"] in first else None)
    confirmed = sum(line["decision"] == "change" for line in lines)
    expected = sum(line["doubt"] for line in lines)
    assert called(*APPLY, "--id", "name").code == 0

    same = []
    for data in ("data.csv", "data-corrected.csv"):  # the same numbers before and after `apply`
        summary = audited("--id", "name", "--decisions", "decisions.csv", data=data)
        numbers = {"n": 20, "confirmed": confirmed, "expected": pytest.approx(expected)}
        assert summary["reviewed"] == numbers
        said = f"Of 20 reviewed labels {confirmed} were wrong; {expected:.0f} were expected."
        assert said in summary["said"]
        assert not {record["id"] for record in page["rows"]} & set(first)
        assert "--decisions decisions.csv" in summary["reproduce"]["command"]
        same.append((summary["wrong"], summary["n_to_check"], page["rows"]))
    assert same[0] == same[1]


def test_rows_of_several_sources_are_reviewed_applied_and_audited_again(page):
    frame = named(120, unlabeled=0, wrong=0.2)
    frame["from"] = np.where(np.arange(120) % 4, "web", "lab")
    frame["species"] = np.where(frame["from"] == "lab", "pet", frame["species"])
    frame.to_csv("data.csv", index=False)
    Path("both.json").write_text(json.dumps({"sources": SOURCES}))
    words = ("--label", "species", "--model", "kernel", "--no-refit", "--features", "size,weight")
    words += ("--id", "name", "--source", "from", "--design", "both.json", "--force", "--json")
    found = called("audit", "data.csv", *words, "--accept-above", "0.9")
    assert found.code == 0, found.err
    accepted = read_csv("data-audit/decisions.csv")
    assert set(accepted["label"]) == {"cat", "dog"}  # the cells, without their source
    for record in page["rows"]:
        record["label"] = record["label"][-1]  # as the page writes it
    reviewed(page, lambda record: record["suggestion"] if record["doubt"] > 0.5 else None)
    assert called(*APPLY, "data-audit/decisions.csv", "--id", "name").code == 0
    same = []
    for data in ("data.csv", "data-corrected.csv"):
        found = called("audit", data, *words, "--decisions", "decisions.csv")
        assert found.code == 0, found.err
        summary = json.loads(found.out)
        assert summary["reviewed"]["n"] == len(read_csv("decisions.csv")) > 5
        same.append((summary["wrong"], page["rows"]))
    assert same[0] == same[1]
    assert (read_csv("data-corrected.csv")["species"] != frame["species"]).sum() > 5


def test_a_class_of_the_design_that_no_label_names_is_decided_applied_and_known(page):
    frame = named(120, names=("dog", "wolf", "cat"), unlabeled=0, wrong=0)
    frame["species"] = frame["species"].replace("wolf", "canine")
    frame.to_csv("data.csv", index=False)
    meanings = {"dog": "dog", "canine": ["dog", "wolf"], "cat": "cat"}
    Path("coarse.json").write_text(json.dumps({"meanings": meanings, "noise": 0.1}))
    words = ("--label", "species", "--model", "kernel", "--no-refit", "--features", "size,weight")
    words += ("--design", "coarse.json", "--force", "--json")
    assert called("audit", "data.csv", *words).code == 0
    lines = reviewed(page, lambda record: "wolf" if record["label"] == "canine" else None)
    assert len(lines) == 40
    assert called(*APPLY).code == 0
    for data in ("data.csv", "data-corrected.csv"):
        found = called("audit", data, *words, "--decisions", "decisions.csv")
        assert json.loads(found.out)["reviewed"]["n"] == 40, found.err
    found = called("audit", "data-corrected.csv", *words)
    assert found.code == 3
    assert "holds ['wolf']; the known labels are ('dog', 'canine', 'cat')" in found.err
    assert "They are classes of the design: if a review decided on them, pass --dec" in found.err


def test_unlabeled_rows_that_were_left_are_known_to_be_of_the_negative_class(page):
    frame = named(200, wrong=0)
    is_cat = np.arange(200) % 2 == 0
    frame["species"] = np.where(is_cat & (np.arange(200) % 4 == 0), "cat", None)
    frame.to_csv("data.csv", index=False)
    words = (
        "--label",
        "species",
        "--negative",
        "dog",
        "--model",
        "kernel",
        "--no-refit",
        "--id",
        "name",
    )
    words += ("--features", "size,weight", "--force", "--json")
    found = called("audit", "data.csv", *words)
    assert found.code == 0, found.err
    is_cat = dict(zip(frame["name"], is_cat, strict=True))
    lines = []
    for record in page["rows"][30:70]:  # as the page does it: a row that is left is a dog
        word, of_class = ("accept", "cat") if is_cat[record["id"]] else ("keep", "dog")
        values = {"decision": word, "class": of_class, "doubt": record["positive_proba"]}
        lines.append({name: (record | values)[name] for name in COLUMNS})
    pd.DataFrame(lines, columns=COLUMNS).to_csv("decisions.csv", index=False)
    n_cats = sum(line["class"] == "cat" for line in lines)
    assert 0 < n_cats < 40
    assert called(*APPLY, "--id", "name").code == 0
    for data in ("data.csv", "data-corrected.csv"):
        found = called("audit", data, *words, "--decisions", "decisions.csv")
        said = f"Of 40 reviewed unlabeled rows {n_cats} were of a labeled class; "
        assert said in found.err
        expected = json.loads(found.out)["reviewed"]["expected"]
        assert expected == pytest.approx(sum(line["doubt"] for line in lines))
        assert not {record["id"] for record in page["rows"]} & {line["id"] for line in lines}
    assert "dog" not in set(read_csv("data-corrected.csv")["species"])


def test_apply_says_how_to_audit_again_also_with_a_class_that_is_never_labeled(page):
    frame = named(100, wrong=0)
    frame["species"] = np.where(np.arange(100) % 4 == 0, "cat", None)  # half of the cats
    frame.to_csv("data.csv", index=False)
    words = ("--label", "species", "--negative", "a dog", "--model", "kernel", "--no-refit")
    words += ("--force",)
    assert called("audit", "data.csv", *words).code == 0
    row = page["rows"][0]
    reviewed({"rows": [row]}, lambda _: "a dog", "my decisions.csv")
    found = called("apply", "data.csv", "my decisions.csv", "--label", "species")
    assert found.code == 0, found.err
    again = "audit data.csv with --decisions 'my decisions.csv'."
    assert f"To audit again with these decisions, {again}" in found.err
    assert "has new labels, ['a dog']" in found.err
    assert "add --unlabeled 'a dog' if they are the class of --negative" in found.err
    for more in (("--decisions", "my decisions.csv"), ("--unlabeled", "a dog")):
        assert called("audit", "data-corrected.csv", *words, *more).code == 0
    found = called("apply", "data-corrected.csv", "my decisions.csv", *APPLY[3:], "-o", "b.csv")
    assert "new labels" not in found.err


@pytest.mark.parametrize("command", ["apply", "audit"])
def test_decisions_that_name_rows_in_another_way_suggest_an_id(page, command):
    named().assign(number=range(3, 103)).to_csv("data.csv", index=False)
    words = ("audit", "data.csv", *CHOSEN, "--force", "--decisions", "decisions.csv")
    words = APPLY if command == "apply" else words
    audited("--id", "name")
    reviewed(page, lambda record: record["label"])
    found = called(*words)
    assert found.code == 3
    assert "no row has Line 'pet " in found.err
    assert "Column 'name' has these identifiers: try --id name. Pass the table" in found.err
    audited("--id", "number")  # most of these are numbers of lines too
    reviewed(page, lambda record: record["label"])
    assert "other cells changed in Line '" in called(*words).err
    assert "Column 'number' has these identifiers: try --id number." in called(*words).err
    audited()
    reviewed(page, lambda record: record["label"])
    found = called(*words, "--id", "name")
    assert "These identifiers may count lines: try without --id." in found.err
    assert called(*words).code == 0
    Path("decisions.csv").write_text(
        re.sub("(?m)^([0-9])", r"00\1", Path("decisions.csv").read_text())
    )
    found = called(*words, "--id", "name", "--force")  # no line is named 007
    assert "no row has name '00" in found.err
    assert "may count lines" not in found.err
