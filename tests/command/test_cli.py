"""The command as a user calls it: options, output, exit codes. Bad input: test_cli_bad_input.py.

Most tests fit a kernel with a specified noise rate, which is much faster than a forest.
"""

import errno
import io
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from types import SimpleNamespace

import click
import numpy as np
import pytest

from looselabels import DecoupledClassifier, Transition, __version__
from looselabels._files import DAY
from looselabels.command import cli, fitting, models
from looselabels.command.cli import run
from looselabels.command.features import RESULTS, Features
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

COMMANDS = ("audit", "fit", "predict", "apply", "design", "demo")


@pytest.fixture(scope="module")
def audited(tmp_path_factory):
    """One audit with all defaults, by a forest, of a table with an identifier and a constant."""
    folder = tmp_path_factory.mktemp("audited")
    frame = animals(100).assign(id=range(100), planet="earth")
    frame.to_csv(folder / "animals.csv", index=False)
    before = os.getcwd()
    os.chdir(folder)
    result = called("audit", "animals.csv", "--label", "species", "--json")
    os.chdir(before)
    return SimpleNamespace(folder=folder, frame=frame, out=folder / "animals-audit", result=result)


# ----------------------------------------------------------------------------------------- output


@pytest.mark.parametrize("command", [(), *((name,) for name in COMMANDS)])
def test_help_starts_with_examples(command):
    found = called(*command, "--help")
    assert found.code == 0
    assert found.out.index("Examples:") < found.out.index("Options:")
    assert f"looselabels {' '.join(command)}".strip() in found.out[found.out.index("Examples:") :]


def test_the_version_is_printed():
    assert __version__ in called("--version").out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["audti"], "No such command 'audti'"),
        (["audit"], "Missing argument 'DATA'"),
        (["audit", "x.csv"], "Missing option '--label'"),
        (["audit", "x.csv", "--label", "y", "--model", "tree"], "'tree' is not one of"),
        (["audit", "x.csv", "--label", "y", "--noise", "2"], "'2' is neither a number from 0 to 1"),
        (["audit", "x.csv", "--label", "y", "--noise", "nan"], "'nan' is neither"),
        (["audit", "x.csv", "--label", "y", "--delimiter", ";;"], "';;' is not a single character"),
        (["audit", "x.csv", "--label", "y", "--jobs", "0"], "0 is not a number of cores"),
        (["audit", "x.csv", "--label", "y", "--seed", "-1"], "-1 is not in the range"),
        (["demo", "--seeds", "0"], "0 is not in the range"),
        (["design", "--\x1b[31m"], "No such option"),
        pytest.param(
            ["design", "--\x1b[31m"],
            r"\x1b[31m",
            marks=pytest.mark.skipif(version("click") < "8.2", reason="click 8.1 leaves it out"),
        ),
    ],
)
def test_wrong_words_exit_with_2_before_anything_is_read(words, said):
    found = called(*words)
    assert found.code == 2
    assert said in found.err
    assert "\x1b" not in found.err
    assert found.out == ""
    assert files() == []


def test_json_is_alone_on_stdout_and_all_else_on_stderr(audited):
    summary = json.loads(audited.result.out)
    assert summary == json.loads((audited.out / "summary.json").read_text())
    assert summary["n_rows"] == 100
    assert f"of {summary['n_labeled']} labels" in audited.result.err
    assert "Labels predicted  " in audited.result.err
    assert "Page: animals-audit/report.html" in audited.result.err


def test_without_json_an_audit_prints_nothing_on_stdout():
    Path("data.csv").write_text(CSV)
    found = called("audit", "data.csv", "--label", "species", *QUICK)
    assert (found.code, found.out) == (0, "")


def test_every_command_that_finds_something_has_json(model):
    Path("data.csv").write_text(CSV)
    found = called("fit", "data.csv", "--label", "species", *QUICK, "--json")
    fitted = json.loads(found.out)
    assert fitted["classes"] == ["cat", "dog"]
    assert fitted["converged"] is True
    Path("design.json").write_text('{"meanings": {"pet": ["cat", "dog"], "cat": "cat"}}')
    found = called("design", "design.json", "--json")
    assert Transition.from_json(found.out).labels == ("pet", "cat")


def test_a_progress_bar_is_for_terminals_only(monkeypatch):
    Path("data.csv").write_text(CSV)

    class Terminal(io.StringIO):
        def isatty(self):
            return True

    def said(*more):
        monkeypatch.setattr(sys, "stderr", Terminal())
        words = ["audit", "data.csv", "--label", "species", "--force", *QUICK, *more]
        assert run(words) == 0
        return sys.stderr.getvalue()

    assert re.search(r"writing +\[#+-*\] +\d+%", said())
    assert "writing" not in said("--quiet")
    words = ("audit", "data.csv", "--label", "species", "--force", *QUICK)
    assert called(*words).err.startswith("About ")


def test_control_characters_of_names_do_not_reach_the_terminal():  # fault 106
    found = called("audit", "\x1b[31m\u202e.csv", "--label", "y", "-o", "out")
    assert found.err == "\\x1b[31m\\u202e.csv: No such file or directory\n"


def test_nothing_is_colored(audited, monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b" not in called("audit", "--help").out + audited.result.err


def test_a_bug_exits_with_1_and_shows_a_traceback_for_debug_only(monkeypatch):
    Path("data.csv").write_text(CSV)

    def broken(*_, **__):
        raise KeyError("oops")

    monkeypatch.setattr(fitting, "fit", broken)
    words = ("audit", "data.csv", "--label", "species")
    found = called(*words)
    assert found.code == 1
    assert "Internal error, please report it: KeyError: 'oops'" in found.err
    assert "Traceback" not in found.err
    assert "Traceback" in called(*words, "--debug").err
    assert files() == ["data.csv"]


def test_a_missing_extra_exits_with_2_and_says_what_to_install(monkeypatch):
    Path("data.csv").write_text(CSV)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    found = called("audit", "data.csv", "--label", "species")
    assert found.code == 2
    assert 'pip install "looselabels[cli]"' in found.err


def test_strict_exits_with_4_if_the_inference_did_not_converge(monkeypatch):
    Path("data.csv").write_text(CSV)
    fit = fitting.fit

    def not_converged(*words, **options):
        clf = fit(*words, **options)
        clf.converged_ = False
        return clf

    monkeypatch.setattr(fitting, "fit", not_converged)
    for command, out in (("audit", "data-audit"), ("fit", "data-model")):
        words = (command, "data.csv", "--label", "species", *QUICK)
        assert called(*words).code == 0
        found = called(*words, "--strict", "--force")
        assert found.code == 4
        assert "did not converge" in found.err
        assert out in files()


# ------------------------------------------------------------------------------------------ audit


def test_an_audit_writes_the_table_a_page_a_model_and_two_json_files(audited):
    assert audited.result.code == 0, audited.result.err
    assert files(audited.out) == WRITTEN
    assert "<html" in (audited.out / "report.html").read_text(encoding="utf-8")
    transition = Transition.from_json((audited.out / "transition.json").read_text())
    assert transition.labels == ("cat", "dog", None)


def test_the_table_keeps_its_cells_and_gets_suggestions(audited):
    before, after = (
        read_csv(audited.folder / "animals.csv"),
        read_csv(audited.out / "labels.csv"),
    )
    assert after[before.columns].equals(before)
    assert list(after.columns[len(before.columns) :]) == list(RESULTS)
    wrong = audited.frame["species"] == np.where(np.arange(100) % 2, "cat", "dog")
    doubted = after["doubt"].astype(float) > 0.5
    assert wrong.sum() > 2
    assert (doubted == wrong).mean() > 0.95


def test_identifiers_and_constants_are_said_on_stderr_and_on_the_page(audited):
    page = (audited.out / "report.html").read_text(encoding="utf-8")
    for words in (audited.result.err, page):
        assert "like an identifier" in words
        assert "every cell is" in words
    ignored = json.loads((audited.out / "summary.json").read_text())["columns"]["ignored"]
    assert [column["name"] for column in ignored] == ["id", "planet"]


def test_an_audit_says_nothing_of_the_machine_it_ran_on(audited):  # fault 111
    for name in ("report.html", "summary.json", "transition.json"):
        content = (audited.out / name).read_text(encoding="utf-8")
        assert str(audited.folder) not in content
        assert os.uname().nodename not in content


def test_the_page_has_the_command_as_it_can_be_given_again():
    Path("data.csv").write_text(CSV)
    Path("sub").mkdir()
    Path("sub/a design.json").write_text(
        '{"meanings": {"cat": "cat", "dog": "dog", "": ["cat", "dog"]}}'
    )
    words = ["--label", "species", "--unlabeled", "?", "--unlabeled", "", "--model", "kernel"]
    words += ["--noise", "0", "--features", "size", "--excel-safe", "--design"]
    found = called(
        "audit", "data.csv", *words, Path("sub/a design.json").resolve(), "--json", "--quiet"
    )
    command = json.loads(found.out)["reproduce"]["command"]
    given = "--label species --unlabeled '?' --unlabeled '' --model kernel --noise 0.0"
    given += " --features size --excel-safe --design 'a design.json'"
    assert command.startswith("looselabels audit data.csv ")
    assert sorted(command.split()[3:]) == sorted(given.split())


@pytest.mark.parametrize("name", ["forest", "linear", "kernel", "boosting"])
def test_each_model_finds_wrong_labels_and_predicts(name):
    frame = animals(90, wrong=0.08)
    frame.loc[3, "size"] = None
    frame.to_csv("data.csv", index=False)
    words = ("--label", "species", "--noise", "0.08", "--model", name, "--jobs", "1", "--no-refit")
    found = called("audit", "data.csv", *words)
    assert found.code == 0, found.err
    classes = np.where(np.arange(90) % 2, "dog", "cat")
    suggested = read_csv("data-audit/labels.csv")["suggestion"]
    assert np.mean(suggested == classes) > 0.9
    frame.drop(columns="species").to_csv("new.csv", index=False)
    found = called("predict", "data-audit/model", "new.csv")
    assert found.code == 0, found.err
    assert np.mean(pd.read_csv(io.StringIO(found.out))["class"] == classes) > 0.9


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_models_learn_from_a_sample_of_a_large_table_and_all_rows_are_written(suffix, monkeypatch):
    monkeypatch.setattr("looselabels.command.spilling.KEPT_BYTES", 1000)
    monkeypatch.setattr("looselabels.command.features.MAX_FIT_ROWS", 120)
    monkeypatch.setattr("looselabels.command.features.N_ROWS", 50)
    monkeypatch.setattr("looselabels.command.results.N_ROWS", 60)
    frame, data = animals(400, wrong=0.08), f"data.{suffix}"
    getattr(frame, f"to_{suffix}")(data, index=False)
    words = ("--label", "species", "--noise", "0.08", "--model", "linear", "--jobs", "1")
    found = called("audit", data, *words, "--max-fit-rows", "100")
    assert found.code == 0, found.err
    assert "learned from a sample of 100 of the 400 rows" in found.err
    table = f"data-audit/labels.{suffix}"
    after = read_csv(table) if suffix == "csv" else pd.read_parquet(table)
    assert after["size"].astype(float).tolist() == frame["size"].tolist()
    assert np.mean(after["suggestion"] == np.where(np.arange(400) % 2, "dog", "cat")) > 0.9
    command = json.loads(Path("data-audit/summary.json").read_text())["reproduce"]["command"]
    assert "--max-fit-rows 100" in command


def test_a_parquet_file_gives_a_parquet_file_with_its_types():
    frame = animals().assign(
        species=lambda t: t["species"].map({"cat": 0, "dog": 1}).astype("Int64")
    )
    frame.to_parquet("data.parquet", index=False)
    found = called("audit", "data.parquet", "--label", "species", *QUICK)
    assert found.code == 0, found.err
    assert "labels.parquet" in files("data-audit")
    after = pd.read_parquet("data-audit/labels.parquet")
    assert after["suggestion"].dtype.kind == "i"
    assert after[frame.columns].astype(float).equals(frame.astype(float))


def test_a_class_of_another_type_than_the_labels_makes_a_column_of_text():
    frame = animals(names=(0, 1, None), unlabeled=0.3).astype({"species": "Int64"})
    frame.to_parquet("data.parquet", index=False)
    words = ("audit", "data.parquet", "--label", "species", "--negative", "other", *QUICK)
    found = called(*words)
    assert found.code == 0, found.err
    assert set(pd.read_parquet("data-audit/labels.parquet")["suggestion"]) == {"0", "1", "other"}


def test_a_table_comes_from_stdin(monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(CSV.encode())))
    assert called("audit", "-", "--label", "species", *QUICK).code == 0
    assert files() == ["stdin-audit"]


def test_unlabeled_names_cells_without_a_label():
    frame = animals().fillna({"species": "?"})
    frame.to_csv("data.csv", index=False)
    words = ("audit", "data.csv", "--label", "species", *QUICK, "--force", "--json")
    assert len(json.loads(called(*words).out)["classes"]) == 3
    found = called(*words, "--unlabeled", "?", "--unlabeled", "none of these")
    summary = json.loads(found.out)
    assert [share["name"] for share in summary["classes"]] == ["cat", "dog"]
    assert summary["n_labeled"] == (frame["species"] != "?").sum()
    assert "--unlabeled 'none of these' matches no cell." in found.err


def test_negative_names_a_class_that_no_label_names():
    frame = animals(120, names=("cat", "dog", None), unlabeled=0.2, wrong=0)
    frame.to_csv("data.csv", index=False)
    found = called("audit", "data.csv", "--label", "species", "--negative", "wolf", *QUICK)
    assert found.code == 0, found.err
    suggested = read_csv("data-audit/labels.csv")["suggestion"]
    assert np.mean(suggested[2::3] == "wolf") > 0.8
    assert np.mean(suggested[0::3] == "cat") > 0.8


@pytest.mark.parametrize("noise", ["estimate", "0.1"])
def test_one_label_can_be_on_rows_of_the_negative_class(noise):
    rng = np.random.default_rng(0)
    is_cat = np.arange(400) < 160
    sizes = rng.normal(np.where(is_cat[:, None], 4.0, 0.0), 1.0, (400, 2)).round(3)
    species = np.where(is_cat & (rng.random(400) < 0.5), "cat", None)
    wrong = rng.choice(np.flatnonzero(~is_cat), 10, replace=False)
    species[wrong] = "cat"
    frame = pd.DataFrame({"size": sizes[:, 0], "weight": sizes[:, 1], "species": species})
    frame.to_csv("data.csv", index=False)
    noise = () if noise == "estimate" else ("--noise", noise)  # the default
    words = ("--label", "species", "--negative", "other", "--model", "linear", "--json", *noise)
    found = called("audit", "data.csv", *words)
    assert found.code == 0, found.err
    count = json.loads(found.out)["wrong"]
    assert count["low"] <= len(wrong) <= count["high"] < 40
    assert count["expected"] == pytest.approx(len(wrong), abs=5)
    after = read_csv("data-audit/labels.csv")
    doubted = after[(after["species"] == "cat") & (after["suggestion"] == "other")]
    assert set(doubted.index) <= set(wrong)
    assert len(doubted) >= 6  # a single row at the edge is not certain


def test_noise_is_what_was_specified():
    Path("data.csv").write_text(CSV)
    chosen = ("--label", "species", "--model", "kernel", "--noise", "0.2")
    summary = json.loads(called("audit", "data.csv", *chosen, "--json").out)
    proba = np.array(summary["transition"]["proba"])
    assert proba[0, 1] / proba[0, :2].sum() == pytest.approx(0.2)
    assert "You specified that 20% of labels are wrong." in summary["design"]["words"]


def test_an_audit_that_cannot_find_wrong_labels_says_so():
    Path("data.csv").write_text(CSV)
    words = ("audit", "data.csv", "--label", "species", "--model", "kernel", "--noise", "0")
    found = called(*words)
    sentence = "right, as you specified. To look for wrong labels, pass --noise estimate."
    assert sentence in found.err
    assert "wrong  " not in found.err
    assert sentence in Path("data-audit/report.html").read_text()


def test_a_design_specifies_the_transition():
    animals(names=("cat", "canine")).to_csv("data.csv", index=False)
    meanings = {"cat": "cat", "canine": ["dog", "wolf"], "": ["cat", "dog", "wolf"]}
    Path("design.json").write_text(json.dumps({"meanings": meanings, "noise": 0.05}))
    words = ("audit", "data.csv", "--label", "species", "--model", "kernel", "--json")
    found = called(*words, "--design", "design.json")
    assert found.code == 0, found.err
    assert json.loads(found.out)["design"]["classes"] == ["cat", "dog", "wolf"]
    assert "classes ('dog', 'wolf') have identical label distributions" in found.err  # fault 22
    found = called(*words, "--force", "--design", "data-audit/transition.json")
    assert json.loads(found.out)["design"]["classes"] == ["cat", "dog", "wolf"]
    found = called(*words, "--force", "--design", "design.json", "--negative", "wolf")
    assert found.code == 2
    assert "Pass either --negative or --design" in found.err


def test_features_are_the_columns_that_were_chosen():
    animals().assign(row=range(80)).to_csv("data.csv", index=False)
    words = ("audit", "data.csv", "--label", "species", *QUICK, "--json")
    found = called(*words, "--features", "row, size,row")  # an identifier too, if it is named
    assert json.loads(found.out)["columns"] == {"used": 2, "ignored": []}
    Path("new.csv").write_text("size,row\n6,1\n0,2\n")
    assert called("predict", "data-audit/model", "new.csv").out.count("\n") == 3


def test_proba_of_another_model_is_audited_without_features():
    frame = animals(wrong=0.1).drop(columns=["size", "weight"])
    frame.to_csv("data.csv", index=False)
    is_cat = np.arange(80) % 2 == 0
    label_proba = np.where(is_cat[:, None], [0.8, 0.1, 0.1], [0.1, 0.8, 0.1])
    np.save("mine.npy", label_proba.astype(np.float32))
    words = ("audit", "data.csv", "--label", "species", "--proba", "mine.npy", "--noise", "0.1")
    found = called(*words)
    assert found.code == 0, found.err
    assert (read_csv("data-audit/labels.csv")["suggestion"] == np.where(is_cat, "cat", "dog")).all()
    found = called("predict", "data-audit/model", "data.csv")
    assert found.code == 3
    assert "fitted to the probabilities of another model" in found.err


def test_excel_safe_marks_names_that_would_run_and_no_number():  # fault 105
    animals(names=("=cmd", "dog")).to_csv("data.csv", index=False)
    words = ("audit", "data.csv", "--label", "species", *QUICK)
    assert called(*words).code == 0
    assert "'=cmd" not in set(read_csv("data-audit/labels.csv")["species"])
    assert called(*words, "--excel-safe", "--force").code == 0
    after = read_csv("data-audit/labels.csv")
    assert {"'=cmd", "dog"} <= set(after["species"])
    assert {"'=cmd", "dog"} == set(after["suggestion"])
    assert (after["weight"].astype(float) < 0).any()
    assert called("predict", "data-audit/model", "data.csv", "--excel-safe").out.count("'=cmd") > 40


@pytest.mark.parametrize(
    ("word", "refit"), [((), True), (("--refit",), True), (("--no-refit",), False)]
)
def test_models_learn_the_classes_unless_they_should_not(word, refit, monkeypatch):
    passed = []
    monkeypatch.setattr(fitting, "fit", lambda *_, **options: passed.append(options) or 1 / 0)
    Path("data.csv").write_text(CSV)
    called("fit", "data.csv", "--label", "species", *word)
    assert passed[0]["refit"] is refit
    assert DecoupledClassifier().refit is True  # one default for the command and the classifier


def test_jobs_and_seed_are_passed_on():
    Path("data.csv").write_text(CSV)
    words = ("fit", "data.csv", "--label", "species", "--noise", "0.1", "--no-refit", "--force")
    stored = []
    for seed in ("1", "1", "2"):
        assert called(*words, "--seed", seed, "--jobs", "1").code == 0
        stored.append(called("predict", "data-model", "data.csv").out)
    assert stored[0] == stored[1] != stored[2]


# ---------------------------------------------------------------------------------------- folders


def test_force_replaces_only_what_an_earlier_run_wrote():
    Path("data.csv").write_text(CSV)
    for command, out, inner in (
        ("audit", "data-audit", "model"),
        ("fit", "data-model", "features"),
    ):
        words = (command, "data.csv", "--label", "species", *QUICK)
        assert called(*words).code == 0
        before = files(out)
        found = called(*words)
        assert found.code == 5
        assert "exists; --force replaces what an earlier run wrote" in found.err
        assert called(*words, "--force").code == 0
        for mine in (Path(out, "notes.txt"), Path(out, inner, "notes.txt")):
            mine.write_text("mine")
            found = called(*words, "--force")
            assert found.code == 5
            assert "notes.txt" in found.err
            assert mine.read_text() == "mine"
            mine.unlink()
        assert called(*words, "--force").code == 0
        assert files(out) == before
    assert files() == ["data-audit", "data-model", "data.csv"]


def test_places_that_take_no_folder_are_said_before_anything_is_read(monkeypatch):  # fault 87
    Path("a file").write_text("mine")
    Path("labels.csv").write_text("mine")  # a name that a run writes
    Path("full").mkdir()
    Path("full/thesis.txt").write_text("mine")
    for out, said in [
        ("nowhere/out", "nowhere is not a folder; create it first"),
        ("a file", "is a file; name a folder"),
        ("labels.csv", "is a file; name a folder"),
        ("a file/out", "a file is not a folder"),
        (".", "is the current folder"),
        ("full", "'thesis.txt', which no earlier run wrote"),
        ("x" * 300, "File name too long"),
    ]:
        for command in ("audit", "fit"):
            found = called(command, "no such.csv", "--label", "y", "-o", out, "--force")
            assert found.code == 5
            assert said in found.err
    assert files() == ["a file", "full", "labels.csv"]
    monkeypatch.setattr(Path, "mkdir", lambda *_: (_ for _ in ()).throw(OSError(errno.EROFS, "ro")))
    found = called("audit", "no such.csv", "--label", "y", "-o", "out")
    assert (found.code, "is not writable (ro)" in found.err) == (5, True)


def test_an_empty_folder_and_a_link_to_one_are_fine():
    Path("data.csv").write_text(CSV)
    Path("real").mkdir()
    Path("link").symlink_to("real")
    assert called("fit", "data.csv", "--label", "species", *QUICK, "-o", "link").code == 0
    assert Path("link").is_symlink()
    assert files("real") == ["classifier", "features"]


@pytest.mark.parametrize("command", ["audit", "fit"])
@pytest.mark.parametrize(
    ("failure", "code", "said"),
    [
        (OSError(errno.ENOSPC, "No space left on device"), 5, "No space left on device"),
        (KeyboardInterrupt(), 130, "Interrupted; no incomplete file was left"),
        (cli.Terminated(), 143, "Terminated; no incomplete file was left"),
        (MemoryError("Unable to allocate 7.3 TiB"), 5, "Not enough memory: Unable to allocate 7.3"),
    ],
    ids=["full disk", "Ctrl-C", "SIGTERM", "memory"],
)  # faults 86, 81, 82, 92
def test_what_fails_while_writing_leaves_the_old_results(command, failure, code, said, monkeypatch):
    Path("data.csv").write_text(CSV)
    words = (command, "data.csv", "--label", "species", *QUICK, "-o", "out")
    assert called(*words).code == 0
    before = {path: path.read_bytes() for path in Path("out").rglob("*") if path.is_file()}

    def fails(*_, **__):
        raise failure

    monkeypatch.setattr(models, "save", fails)
    found = called(*words, "--force")
    assert (found.code, found.out) == (code, "")
    assert said in found.err
    assert "None" not in found.err
    assert files() == ["data.csv", "out"]
    assert {path: path.read_bytes() for path in Path("out").rglob("*") if path.is_file()} == before


def test_a_folder_that_appears_meanwhile_is_not_replaced(monkeypatch):
    Path("data.csv").write_text(CSV)
    save = models.save

    def slowly(*words):
        Path("out").mkdir(exist_ok=True)
        Path("out/thesis.txt").write_text("mine")
        save(*words)

    monkeypatch.setattr(models, "save", slowly)
    found = called("audit", "data.csv", "--label", "species", *QUICK, "-o", "out")
    assert found.code == 5
    assert files() == ["data.csv", "out"]
    assert files("out") == ["thesis.txt"]


def test_what_a_killed_run_left_is_removed_once_it_is_old():  # fault 93
    Path("data.csv").write_text(CSV)
    for name, age in ((".out.writing-1", 2), (".out.writing-2", 0), (".other.writing-1", 2)):
        Path(name).mkdir()
        Path(name, "labels.csv").touch()
        os.utime(name, times=2 * (time.time() - age * DAY,))
    assert called("fit", "data.csv", "--label", "species", *QUICK, "-o", "out").code == 0
    assert files() == [".other.writing-1", ".out.writing-2", "data.csv", "out"]


# ---------------------------------------------------------------------------------------- predict


def test_predict_reads_csv_and_parquet_and_writes_either(model):
    frame = animals(50).drop(columns="species")
    frame.to_csv("new.csv", index=False)
    frame.to_parquet("new.parquet", index=False)
    printed = pd.read_csv(io.StringIO(called("predict", model, "new.csv").out))
    assert list(printed.columns) == ["size", "weight", "class", "class_proba"]
    for source in ("new.csv", "new.parquet"):
        assert called("predict", model, source, "-o", f"{source}-classes.csv").code == 0
        assert called("predict", model, source, "-o", f"{source}-classes.parquet").code == 0
        for found in (
            pd.read_csv(f"{source}-classes.csv"),
            pd.read_parquet(f"{source}-classes.parquet").astype({"size": float, "weight": float}),
        ):
            assert (found["class"] == printed["class"]).all()
            assert np.allclose(found["class_proba"], printed["class_proba"])


def test_predict_streams_stdin_in_blocks(model, monkeypatch):
    from looselabels.command import tables

    text = animals(50).drop(columns="species").to_csv(index=False)
    Path("new.csv").write_text(text)
    whole = called("predict", model, "new.csv").out
    sizes, read = [], tables.read_blocks

    def small(*words, **options):
        for block in read(*words, n_rows=20, **options):
            sizes.append(len(block))
            yield block

    monkeypatch.setattr(tables, "read_blocks", small)
    for words in ((model, "-"), (model,)):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
        found = called("predict", *words)
        assert found.out == whole
        assert found.err == "50 rows predicted.\n"
    assert sizes == [20, 20, 10] * 2


def test_one_row_is_predicted_as_it_is_among_others(model):  # fault 8
    Path("new.csv").write_text("size,weight\n0,0\n3,-2\n6,-4\n")
    Path("one.csv").write_text("weight,more,size\n-2,x,3\n")  # in another order: fault 10
    many = called("predict", model, "new.csv").out.splitlines()
    one = called("predict", model, "one.csv").out.splitlines()
    (known, sure), (name, proba) = many[2].split(",")[2:], one[1].split(",")[3:]
    assert known == name
    assert float(sure) == pytest.approx(float(proba), rel=1e-6)


def test_labels_count_at_predict_where_they_are_given(model):
    Path("new.csv").write_text("size,weight,kind\n3,-2,cat\n3,-2,dog\n3,-2,\n3,-2,?\n")
    found = called(
        "predict", model, "new.csv", "--label", "kind", "--unlabeled", "?", "--all-classes"
    )
    assert found.code == 0, found.err
    after = pd.read_csv(io.StringIO(found.out))
    assert list(after.columns[3:]) == ["class", "class_proba", "doubt", "p(cat)", "p(dog)"]
    assert after["p(cat)"][0] > after["p(cat)"][2] > after["p(cat)"][1]
    assert after["p(cat)"][2] == after["p(cat)"][3]
    assert after["doubt"][2] == 0
    after["age"] = [1, 2, 3, 5]
    assert Features.fit(after, label="kind").used == ["age"]  # and nothing that was added


def test_a_model_of_numbers_reads_labels_from_text_and_from_numbers():
    frame = animals(unlabeled=0).assign(species=lambda t: (t["species"] == "dog").astype(int))
    frame.to_parquet("data.parquet", index=False)
    assert called("fit", "data.parquet", "--label", "species", *QUICK).code == 0
    frame.to_csv("data.csv", index=False)
    predict = ("predict", "data-model", "--label", "species")
    from_text = called(*predict, "data.csv")
    assert from_text.code == 0, from_text.err
    from_numbers = called(*predict, "data.parquet")
    assert from_text.out == from_numbers.out
    # no row was unlabeled, and a row without a label is still predicted
    Path("new.csv").write_text("size,weight,species\n0,0,\n0,0,1\n")
    found = called(*predict, "new.csv")
    assert found.code == 0, found.err
    assert [row.split(",")[3] for row in found.out.splitlines()[1:]] == ["0", "0"]


def test_columns_of_the_table_are_never_replaced(model):
    Path("new.csv").write_text("size,weight,class,looselabels_class\n0,0,mine,too\n")
    found = called("predict", model, "new.csv").out.splitlines()
    assert (
        found[0] == "size,weight,class,looselabels_class,looselabels_looselabels_class,class_proba"
    )
    assert found[1].startswith("0,0,mine,too,cat,")


def test_predict_does_not_replace_a_file_without_force(model):
    Path("new.csv").write_text("size,weight\n0,0\n")
    Path("mine.csv").write_text("mine")
    found = called("predict", model, "new.csv", "-o", "mine.csv")
    assert found.code == 5
    assert "exists; --force replaces it" in found.err
    assert Path("mine.csv").read_text() == "mine"
    assert called("predict", model, "new.csv", "-o", "mine.csv", "--force").code == 0
    assert Path("mine.csv").read_text() != "mine"


@pytest.mark.parametrize("command", ["audit", "fit", "apply"])
def test_several_files_are_not_written_to_stdout(command, folder):
    decisions = ["decisions.csv"] if command == "apply" else []
    Path("data.csv").write_text(CSV)
    found = called(command, "data.csv", *decisions, "--label", "species", "-o", "-")
    assert found.code == 2
    assert "--out is -, but more than one file is written" in found.err
    assert files() == ["data.csv"]


def test_results_never_replace_what_they_were_computed_from(model):
    design = '{"meanings": {"cat": "cat", "pet": ["cat", "dog"]}}'
    written = {"data.csv": CSV, "d.json": design, "out/labels.csv": CSV}
    os.mkdir("out")
    for name, text in written.items():
        Path(name).write_text(text)
    os.symlink("data.csv", "link.csv")
    audit = ("audit", "out/labels.csv", "--label", "species", *QUICK)
    for words in (
        ("predict", model, "data.csv", "-o", "data.csv"),
        ("predict", model, "link.csv", "-o", "data.csv"),
        ("predict", model, "data.csv", "-o", "link.csv"),
        ("design", "d.json", "-o", "./d.json"),
        (*audit, "-o", "out"),
    ):
        found = called(*words, "--force")
        assert found.code == 2
        assert "is an input and is not replaced. Pass another --out." in found.err
    assert {name: Path(name).read_text() for name in written} == written
    assert files("out") == ["labels.csv"]


def test_a_bad_row_late_in_a_table_leaves_no_file(model):
    Path("new.csv").write_text("size,weight\n" + "0,0\n" * 60_000 + "x,0\n")
    found = called("predict", model, "new.csv", "-o", "out.csv")
    assert found.code == 3
    assert "new.csv, line 60002, column 'size': 'x' is not a number" in found.err
    assert files() == ["new.csv"]


# --------------------------------------------------------------------------------- design and demo


def test_a_design_is_printed_written_and_drawn():
    pytest.importorskip("matplotlib")
    meanings = {"cat": "cat", "not cat": ["dog", "$\\wolf$", "狼"], "": ["cat", "dog"]}  # fault 108
    Path("coarse.json").write_text(
        json.dumps({"meanings": meanings, "counts": {"cat": 5, "not cat": 5, "": 90}})
    )
    found = called("design", "coarse.json", "-o", "t.json", "--plot", "t.png")
    assert found.code == 0, found.err
    assert found.out.startswith("class")
    assert "(unlabeled)" in found.out
    assert Path("t.png").read_bytes().startswith(b"\x89PNG")
    written = Transition.from_json(Path("t.json").read_text())
    assert written.labels == ("cat", "not cat", None)
    assert called("design", "t.json").out == found.out
    assert called("design", "t.json", "-o", "t.json").code == 2
    assert called("design", "coarse.json", "--plot", "t.xyz").code == 2
    assert files() == ["coarse.json", "t.json", "t.png"]


def test_the_demo_ends_with_what_it_found_and_its_page():
    found = called("demo", "--seeds", "1", "-o", "shown")
    assert found.code == 0, found.err
    errors, classes, page = found.out.splitlines()
    assert re.fullmatch(r"\d\d% of the planted errors are among the top suggestions\.", errors)
    assert re.fullmatch(r"\d\d% of these suggestions name the correct class\.", classes)
    assert page == f"Page: {Path('shown', 'report.html')}"
    again = called("demo", "--seeds", "1", "-o", "shown", "--json")  # replaces what it wrote
    assert f"{json.loads(again.out)['found']:.0%} of the planted" in errors
    assert files() == ["shown"]


# -------------------------------------------------------------------------------------- processes


@contextmanager
def started(*words, **options):
    command = [sys.executable, "-m", "looselabels.command.cli", *map(str, words)]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options}
    with subprocess.Popen(command, **pipes) as process:
        yield process


def test_a_closed_pipe_ends_quietly(model):  # fault 89
    Path("new.csv").write_text("size,weight\n" + "0,0\n" * 60_000)
    with started("predict", model, "new.csv") as process:
        assert process.stdout.readline().startswith(b"size,weight,class")
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(60) == 0


def test_a_full_disk_behind_stdout_exits_with_5(model):  # fault 86
    Path("new.csv").write_text("size,weight\n0,0\n")
    words = ("predict", model, "new.csv")
    with open("/dev/full", "wb") as full, started(*words, stdout=full) as process:
        assert process.stderr.read() == b"No space left on device\n"
        assert process.wait(60) == 5


def closed(redirection, *words):
    """Run the command with a descriptor closed; return its exit code, stdout and stderr."""
    command = shlex.join([sys.executable, "-m", "looselabels.command.cli", *map(str, words)])
    found = subprocess.run(
        ["sh", "-c", f"{command} {redirection}"], capture_output=True, text=True, timeout=60
    )
    return found.returncode, found.stdout, found.stderr


def test_results_are_not_written_to_a_closed_stdout(model, monkeypatch):
    Path("new.csv").write_text("size,weight\n0,0\n")
    monkeypatch.setattr(sys, "stdout", None)
    assert run(["predict", str(model), "new.csv"]) == 5
    assert run(["predict", str(model), "new.csv", "-o", "out.csv", "--quiet"]) == 0


@pytest.mark.slow
def test_a_closed_stdout_is_no_bug_and_no_place_for_results(model):
    Path("new.csv").write_text("size,weight\n0,0\n")
    words = ("predict", model, "new.csv")
    assert closed(">&-", *words) == (5, "", "stdout is closed; name a file with -o.\n")
    assert closed(">&-", *words, "-o", "out.csv") == (0, "", "1 rows predicted.\n")


@pytest.mark.slow
def test_a_closed_stderr_hides_messages_and_nothing_is_written_elsewhere(model):
    Path("new.csv").write_text("size,weight\n0,0\n")
    code, out, _ = closed("2>&-", "predict", model, "new.csv")
    assert code == 0
    assert out.startswith("size,weight,class")
    assert closed(">&- 2>&-", "predict", model, "new.csv", "-o", "out.csv") == (0, "", "")
    assert Path("out.csv").read_text() == out
    assert closed("2>&-", "design", "nothing.json") == (5, "", "")


@pytest.mark.slow
def test_a_closed_stdin_is_empty(model):
    found = closed("<&-", "predict", model, "-")
    assert found == (3, "", "stdin is empty; it needs a header and rows.\n")


def test_a_terminal_without_a_letter_gets_its_number():  # fault 91
    design = '{"meanings": {"dog": "dog", "狼": "狼"}}'
    Path("design.json").write_text(design, encoding="utf-8")
    poor = {**os.environ, "PYTHONIOENCODING": "latin-1", "LC_ALL": "C"}
    with started("design", "design.json", env=poor) as process:
        assert b"\\u72fc" in process.stdout.read()
        assert process.wait(60) == 0


SLOW = """
import sys, time
from pathlib import Path
from looselabels.command import cli, models
def save(*_):
    Path("started").touch()
    time.sleep(60)
models.save = save
sys.argv[1:] = ["fit", "data.csv", "--label", "species", "--model", "kernel", "--noise", "0.1"]
cli.entry()
"""


@pytest.mark.parametrize(("sent", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_leaves_nothing_half_written(sent, code):  # faults 81, 82
    Path("data.csv").write_text(CSV)
    command = [sys.executable, "-c", SLOW]
    with subprocess.Popen(command, stderr=subprocess.PIPE) as process:
        while not Path("started").exists():
            assert process.poll() is None, process.stderr.read()
            time.sleep(0.05)
        assert any(name.startswith(".data-model") for name in files())
        process.send_signal(sent)
        assert b"no incomplete file was left" in process.stderr.read()
        assert process.wait(10) == code
    assert files() == ["data.csv", "started"]


def test_every_option_is_in_a_test():
    tests = Path(__file__).parent.glob("test_*.py")
    here = "".join(path.read_text(encoding="utf-8") for path in tests)
    for command in cli.main.commands.values():
        for option in command.params:
            if isinstance(option, click.Option):
                assert any(f'"{name}"' in here for name in option.opts), option.opts


def test_a_model_of_columns_that_say_nothing_is_saved_with_a_note(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.standard_normal((200, 3)), columns=["a", "b", "c"])
    frame.assign(label=rng.choice(["cat", "dog"], 200)).to_csv("noise.csv", index=False)
    frame.assign(label=np.where(frame["a"] > 0, "cat", "dog")).to_csv("signal.csv", index=False)
    options = ("--label", "label", "--model", "linear", "--no-refit")
    assert "Note: The features do not predict" in called("fit", "noise.csv", *options).err
    assert "do not predict" not in called("fit", "signal.csv", *options).err


def test_probabilities_that_do_not_predict_the_labels_are_named_and_not_the_columns(
    tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": np.arange(200), "label": rng.choice(["cat", "dog"], 200)})
    frame.to_csv("pets.csv", index=False)
    proba = pd.DataFrame(rng.dirichlet([1, 1], 200), columns=["cat", "dog"])
    proba.to_csv("proba.csv", index=False)
    found = called("audit", "pets.csv", "--label", "label", "--proba", "proba.csv")
    assert found.code == 0
    assert "Wrong labels cannot be found: --proba does not predict the labels." in found.err
    page = Path("pets-audit/report.html").read_text(encoding="utf-8")
    assert "There are no rows to list. The given probabilities do not predict the labels" in page


def test_columns_that_do_not_predict_the_labels_give_no_count(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.standard_normal((200, 3)), columns=["a", "b", "c"])
    frame.assign(label=rng.choice(["cat", "dog"], 200)).to_csv("noise.csv", index=False)
    found = called("audit", "noise.csv", "--label", "label", "--model", "linear", "--json")
    assert found.code == 0
    assert "Wrong labels cannot be found: the columns do not predict the labels." in found.err
    assert json.loads(found.out)["wrong"]["expected"] is None
    page = Path("noise-audit/report.html").read_text(encoding="utf-8")
    assert "Wrong labels cannot be found" in page
    assert "Probably wrong" not in page


# ---------------------------------------------------------------------------------- groups, copies


def repeated_animals():
    """Return a table in which every animal is there three times, under the name of the animal."""
    frame = animals(60, unlabeled=0)
    frame["name"] = [f"animal {k}" for k in range(60)]
    return frame.loc[np.repeat(np.arange(60), 3)]


def test_copies_are_counted_on_the_page_and_in_the_terminal():
    repeated_animals().drop(columns="name").to_csv("data.csv", index=False)
    found = called("audit", "data.csv", "--label", "species", *QUICK)
    assert found.code == 0, found.err
    said = "120 of 180 rows are copies of other rows"
    assert said in found.err
    assert said in Path("data-audit/report.html").read_text(encoding="utf-8")
    assert said in " ".join(json.loads(Path("data-audit/summary.json").read_text())["warnings"])


@pytest.mark.parametrize("columns", [["size", "weight"], ["text"]])
def test_copies_are_found_next_to_the_probabilities_of_another_model(columns):
    frame = repeated_animals()
    frame["text"] = frame["size"].astype(str) + " meters, " + frame["weight"].astype(str) + " tons"
    proba = np.where((frame["species"] == "cat").to_numpy()[:, None], [0.9, 0.1], [0.1, 0.9])
    pd.DataFrame(proba, columns=["cat", "dog"]).to_csv("p.csv", index=False)
    frame = frame[[*columns, "species"]].assign(line=range(180))
    frame.to_csv("data.csv", index=False)
    words = ("--label", "species", "--proba", "p.csv", "--noise", "0.1", "--force")
    found = called("audit", "data.csv", *words, "--id", "line")
    assert "120 of 180 rows are copies of other rows. Copies count once" in found.err, found.err
    assert "pass --groups with a column that is different in each row" in found.err
    found = called("audit", "data.csv", *words, "--groups", "line")
    assert (found.code, "copies" in found.err) == (0, False)


@pytest.mark.parametrize("command", ["audit", "fit"])
def test_a_column_of_groups_keeps_rows_together_and_is_no_feature(command, monkeypatch):
    repeated_animals().to_csv("data.csv", index=False)
    seen = []

    def spy(X, y, labels, *, groups, **options):
        seen.append((X.shape, groups))
        return plain(X, y, labels, groups=groups, **options)

    plain = fitting.fit
    monkeypatch.setattr(fitting, "fit", spy)
    words = (command, "data.csv", "--label", "species", "--groups", "name", *QUICK)
    found = called(*words)
    assert found.code == 0, found.err
    ((shape, groups),) = seen
    assert shape == (180, 2)
    assert groups == [f"animal {k}" for k in np.repeat(np.arange(60), 3)]
    assert ("120 of 180 rows are copies" in found.err) == (command == "audit")
    if command == "audit":
        assert "--groups name" in Path("data-audit/report.html").read_text(encoding="utf-8")
