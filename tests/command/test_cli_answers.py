"""The command audits several answers per row: what it writes, and what it refuses."""

import contextlib
import io
import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from looselabels import load
from looselabels.command.features import Features
from tests.command.calls import WRITTEN, called, files, pd, read_csv

SEVERAL = ("--label", "ann", "--label", "bob", "--label", "eve")
LONG = ("--annotations", "answers.csv", "--id", "name")
QUICK = ("--model", "kernel")


def write_pets(n_rows=120, accuracies=(0.95, 0.85, 0.7), asked=0.8):
    """Write pets.csv with the answers of three annotators, and answers.csv with the same ones."""
    rng = np.random.default_rng(0)
    truth = np.arange(n_rows) % 2
    frame = pd.DataFrame({"name": [f"pet {k}" for k in range(n_rows)]})
    frame["size"] = rng.normal(2 * truth, 1).round(3)
    frame["weight"] = rng.normal(-2 * truth, 1).round(3)
    for name, accuracy in zip(("ann", "bob", "eve"), accuracies, strict=True):
        given = np.where(rng.random(n_rows) < accuracy, truth, 1 - truth)
        answers = pd.Series(np.array(["cat", "dog"])[given])
        frame[name] = answers.where(rng.random(n_rows) < asked, None)
    frame.to_csv("pets.csv", index=False)
    long = frame.melt("name", ["ann", "bob", "eve"], "annotator", "label").dropna()
    long.to_csv("answers.csv", index=False)
    frame[["name", "size", "weight"]].to_csv("rows.csv", index=False)
    return frame


@pytest.fixture
def pets(folder):
    return write_pets()


# ------------------------------------------------------------------------------------------ results


@pytest.fixture(scope="module")
def audited(tmp_path_factory):
    """Audit both forms of the same answers, and return the folder with all files."""
    folder = tmp_path_factory.mktemp("pets")
    with contextlib.chdir(folder):
        write_pets()
        wide = called("audit", "pets.csv", *SEVERAL, "--id", "name", *QUICK, "--json")
        (folder / "elsewhere").mkdir()
        Path("answers.csv").rename("elsewhere/answers.csv")
        long = ("--annotations", "elsewhere/answers.csv", "--id", "name")
        long = called("audit", "rows.csv", *long, *QUICK)
    assert (wide.code, long.code) == (0, 0), wide.err + long.err
    return SimpleNamespace(folder=folder, wide=wide, long=long)


def test_the_table_has_the_consensus_of_each_row(audited):
    table = read_csv(audited.folder / "pets-audit" / "labels.csv")
    names = ["consensus", "probability", "n_answers", "more_answers"]
    assert list(table)[-4:] == names
    given = read_csv(audited.folder / "pets.csv")
    assert table[list(given)].equals(given)  # the cells of the table are unchanged
    counts = (given[["ann", "bob", "eve"]] != "").sum(axis=1)
    assert table["n_answers"].astype(int).tolist() == counts.tolist()
    is_right = table["consensus"].to_numpy() == np.array(["cat", "dog"] * 60)
    assert is_right.mean() > 0.93
    is_settled = table["probability"].astype(float) >= 0.95
    assert (table["more_answers"] == "0").tolist() == is_settled.tolist()
    ignored = dict(Features.fit(table).ignored)  # by the next audit
    assert {ignored.get(name) for name in names} == {"it is an earlier result of looselabels"}


def test_the_folder_has_all_results(audited):
    written = ["annotators.csv", *WRITTEN]
    assert files(audited.folder / "pets-audit") == files(audited.folder / "rows-audit") == written
    people = read_csv(audited.folder / "pets-audit" / "annotators.csv")
    names = ["annotator", "answers", "accuracy", "low", "high", "confusions", "copy_of"]
    assert list(people) == names
    accuracy = people["accuracy"].astype(float)
    assert accuracy.is_monotonic_decreasing  # as they were drawn
    assert (people["low"].astype(float) < accuracy).all()


def test_columns_and_a_file_of_answers_give_the_same_consensus(audited):
    wide, long = (
        read_csv(audited.folder / name / "labels.csv").iloc[:, -4:]
        for name in ("pets-audit", "rows-audit")
    )
    assert wide.equals(long)


def test_the_summary_is_printed_and_written(audited):
    written = json.loads((audited.folder / "pets-audit" / "summary.json").read_text())
    assert json.loads(audited.wide.out) == written
    assert written["question"] == "consensus"
    assert written["n_annotators"] == 3
    assert "rows" not in written


def test_the_terminal_has_the_verdict_and_the_main_numbers(audited):
    assert "The consensus is settled in" in audited.wide.err
    assert "by 3 annotators" in audited.wide.err
    assert "Page: pets-audit/report.html" in audited.wide.err.replace("\\", "/")


def test_the_page_repeats_the_command_without_folders(audited):
    wide = (audited.folder / "pets-audit" / "report.html").read_text(encoding="utf-8")
    assert "looselabels audit pets.csv --label ann --label bob --label eve" in wide
    long = (audited.folder / "rows-audit" / "report.html").read_text(encoding="utf-8")
    assert "looselabels audit rows.csv --annotations answers.csv" in long
    assert "elsewhere" not in long


def test_the_model_predicts_rows_without_answers(audited):
    model, rows = audited.folder / "pets-audit" / "model", audited.folder / "rows.csv"
    done = called("predict", model, rows)
    predicted = pd.read_csv(io.StringIO(done.out))["class"]
    assert np.mean(predicted == np.array(["cat", "dog"] * 60)) > 0.85


def test_the_model_predicts_rows_with_the_answers_of_some_annotators(audited):
    model, table = audited.folder / "pets-audit" / "model", audited.folder / "pets.csv"
    alone = called("predict", model, table, "--all-classes").out
    found = called("predict", model, table, *SEVERAL[:4], "--all-classes")
    assert found.code == 0, found.err
    alone, given = (pd.read_csv(io.StringIO(text)) for text in (alone, found.out))
    transitions = load(model / "classifier").transitions_
    expected = alone[["p(cat)", "p(dog)"]].to_numpy()
    for name in ("ann", "bob"):
        cells = given[name].map({"cat": 0, "dog": 1})
        factors = transitions[name].proba.T[cells.fillna(0).astype(int)]
        expected = expected * np.where(cells.notna().to_numpy()[:, None], factors, 1)
    expected /= expected.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(given[["p(cat)", "p(dog)"]], expected, atol=1e-9)
    truth = np.array(["cat", "dog"] * 60)
    assert (given["class"] == truth).mean() > (alone["class"] == truth).mean()


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (("size",), "The model has no annotator 'size'; it has 'ann', 'bob', 'eve'."),
        (("ann", "bobby"), "The table has no column 'bobby'"),
        (("eve",), "Column 'eve' holds ['cow']; the known labels are ('cat', 'dog')"),
    ],
)
def test_answers_that_a_model_does_not_know_are_named(audited, tmp_path, columns, message):
    table = read_csv(audited.folder / "pets.csv")
    table.assign(eve="cow").to_csv(tmp_path / "new.csv", index=False)
    words = [word for name in columns for word in ("--label", name)]
    found = called("predict", audited.folder / "pets-audit" / "model", tmp_path / "new.csv", *words)
    assert found.code == 3
    assert message in found.err


def test_a_missing_answer_can_be_a_label(pets):
    """ann and bob answer about cats only, and eve answers about all."""
    rules = pets.assign(**{name: pets[name].where(pets[name] == "cat") for name in ("ann", "bob")})
    rules.to_csv("pets.csv", index=False)
    words = (*SEVERAL, "--id", "name", *QUICK)
    done = called("audit", "pets.csv", *words, "--missing-is-label")
    assert done.code == 0, done.err
    page = Path("pets-audit/report.html").read_text(encoding="utf-8")
    assert "You specified that a missing answer is a label" in page
    assert "--missing-is-label" in page
    table = read_csv("pets-audit/labels.csv")
    assert "more_answers" not in table  # everyone has answered
    predicted = called("predict", "pets-audit/model", "pets.csv", *SEVERAL)
    assert predicted.code == 0, predicted.err
    found = pd.read_csv(io.StringIO(predicted.out))["class"]
    assert (found == np.array(["cat", "dog"] * 60)).mean() > 0.9


@pytest.mark.parametrize("is_declared", [True, False])
def test_rules_that_vote_for_one_label_are_noted_unless_silence_is_a_label(pets, is_declared):
    votes = {"ann": "cat", "bob": "dog", "eve": "dog"}
    rules = pets.assign(**{name: pets[name].where(pets[name] == votes[name]) for name in votes})
    rules.to_csv("pets.csv", index=False)
    words = ["--missing-is-label"] * is_declared
    done = called("audit", "pets.csv", *SEVERAL, "--id", "name", *QUICK, *words)
    assert done.code == 0, done.err
    said = "gives one label only: 'ann' always says 'cat', and 'bob' always says 'dog'."
    assert (said in done.err) is not is_declared
    assert ("that abstain elsewhere, pass --missing-is-label." in done.err) is not is_declared


def test_a_label_that_looks_missing_is_noted(pets):
    numbers = {"cat": "0", "dog": "1"}
    for name in ("ann", "bob", "eve"):
        pets[name] = pets[name].map(numbers).fillna("-1")
    pets.drop(columns=["size", "weight"]).to_csv("pets.csv", index=False)
    words = (*SEVERAL, "--id", "name")
    said = "The label -1 occurs in 70 answers; it is taken to be a class. If it means that there is"
    hint = "no answer, pass --unlabeled -1. If it means that a labeling function abstains, also"
    done = called("audit", "pets.csv", *words)
    assert f"{said} {hint} pass --missing-is-label." in done.err
    done = called("audit", "pets.csv", *words, "--unlabeled", "-1", "--force")
    assert done.code == 0
    assert "taken to be a class" not in done.err


def test_missing_is_a_label_of_several_annotators_only(pets):
    done = called("audit", "pets.csv", "--label", "ann", "--missing-is-label")
    assert done.code == 2
    assert "--missing-is-label needs several --label, or --annotations." in done.err


def test_answers_alone_are_enough(pets):
    pets.drop(columns=["size", "weight"]).to_csv("only.csv", index=False)
    done = called("audit", "only.csv", *SEVERAL, "--id", "name")
    assert done.code == 0
    assert "There is no column to learn from" in done.err
    written = ["annotators.csv", *(name for name in WRITTEN if name != "model")]
    assert files("only-audit") == written


def test_a_consensus_of_one_label_is_saved_if_a_row_has_no_answer(folder):
    frame = write_pets().assign(ann="ok", bob="ok", eve="ok")
    frame.loc[3, "eve"] = "bad"
    frame.loc[7, ["ann", "bob", "eve"]] = None
    frame.to_csv("pets.csv", index=False)
    found = called("audit", "pets.csv", *SEVERAL, *QUICK)
    assert found.code == 0, found.err
    done = called("predict", "pets-audit/model", "rows.csv")
    assert (pd.read_csv(io.StringIO(done.out))["class"] == "ok").all()


def test_spellings_of_one_label_are_reported(pets):
    pets.assign(eve=pets["eve"].replace("cat", "Cat")).to_csv("pets.csv", index=False)
    done = called("audit", "pets.csv", *SEVERAL, "--id", "name", *QUICK)
    assert "differ only in case or spaces" in done.err


def test_the_decisions_of_a_person_stay_in_a_folder_that_is_replaced(pets):
    only = pets.drop(columns=["size", "weight"])
    only.to_csv("only.csv", index=False)
    words = ("audit", "only.csv", *SEVERAL, "--id", "name")
    assert called(*words).code == 0
    Path("only-audit/decisions.csv").write_text("by hand")
    assert called(*words).code == 5
    assert called(*words, "--force").code == 0
    assert Path("only-audit/decisions.csv").read_text() == "by hand"


# ----------------------------------------------------------------------------------- contradictions


def test_a_column_cannot_be_two_annotators(pets):
    done = called("audit", "pets.csv", "--label", "ann", "--label", "bob", "--label", "ann")
    assert done.code == 2
    assert "--label 'ann' is given twice." in done.err


def test_an_unknown_column_is_named(pets):
    done = called("audit", "pets.csv", "--label", "ann", "--label", "bobby")
    assert done.code == 3
    assert "no column 'bobby'" in done.err


def test_answers_are_in_columns_or_in_a_file(pets):
    done = called("audit", "pets.csv", "--label", "ann", *LONG)
    assert done.code == 2
    assert "Pass either --label or --annotations" in done.err


@pytest.mark.parametrize("answers", [SEVERAL, LONG])
@pytest.mark.parametrize(
    "option",
    [
        ("--negative", "cat"),
        ("--noise", "0"),
        ("--noise", "estimate"),
        ("--design", "design.json"),
        ("--source", "name"),
        ("--class-share", "cat=0.5"),
        ("--label-rate", "0.5"),
        ("--decisions", "decisions.csv"),
        ("--accept-above", "0"),
        ("--proba", "proba.csv"),
    ],
)
def test_options_for_one_label_per_row_are_refused(pets, answers, option):
    done = called("audit", "pets.csv", *answers, *option)
    assert done.code == 2
    assert f"{option[0]} cannot be combined with {answers[0].replace('--label', 'several')}" in (
        done.err
    )
    assert "pets-audit" not in files()


def test_a_file_of_answers_needs_identifiers(pets):
    done = called("audit", "rows.csv", "--annotations", "answers.csv")
    assert done.code == 2
    assert "--annotations needs --id, the column of DATA that names its rows." in done.err


def test_an_annotator_cannot_name_rows(pets):
    done = called("audit", "pets.csv", *SEVERAL, "--id", "eve")
    assert done.code == 2
    assert "--id 'eve' is a --label too" in done.err


def test_a_file_of_answers_that_does_not_exist_is_named(pets):
    done = called("audit", "rows.csv", "--annotations", "none.csv", "--id", "name")
    assert done.code == 5
    assert "none.csv" in done.err


def test_a_file_of_answers_with_semicolons_is_to_be_saved_with_commas(pets):
    read_csv("answers.csv").to_csv("answers.csv", sep=";", index=False)
    done = called("audit", "rows.csv", *LONG)
    assert done.code == 3
    assert "if answers.csv is DATA, and otherwise save it as CSV with commas." in done.err


def test_a_folder_of_images_has_no_columns_of_answers(folder):
    (folder / "photos").mkdir()
    done = called("audit", "photos", *SEVERAL)
    assert done.code == 2
    assert "photos is a folder" in done.err
