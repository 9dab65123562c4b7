"""The command when processes, memory or the disk fail."""

import os
import re
import subprocess
import sys
from pathlib import Path
from shutil import copytree

import pytest

from looselabels.command.features import Features
from tests.command.calls import CSV, QUICK, called, files

pytestmark = pytest.mark.usefixtures("folder")  # each test works in an empty folder


def command(*words):
    """Return the words that start the command in a process of its own."""
    return [sys.executable, "-m", "looselabels.command.cli", *map(str, words)]


@pytest.mark.slow
def test_a_ragged_file_does_not_hang_at_exit(model):
    Path("ragged.csv").write_text("size,weight,length\n1\n" + "1,2,3\n" * 3_000_000)
    said = "ragged.csv, line 2: 1 cell where the header has 3, '1'.\n"
    for _ in range(6):
        words = command("predict", model, "ragged.csv")
        done = subprocess.run(words, capture_output=True, timeout=60, text=True)
        assert (done.returncode, done.stderr) == (3, said)


def test_results_that_a_killed_run_moved_away_are_put_back(model):
    Path("data.csv").write_text(CSV)
    copytree(model, ".out.writing-1.old")
    Path(".out.writing-1").mkdir()
    found = called("predict", "out", "data.csv")
    assert found.code == 5
    assert "A command that was killed left the old one in" in found.err
    words = ("fit", "data.csv", "--label", "species", *QUICK, "-o", "out")
    found = called(*words)
    assert (found.code, files()) == (5, [".out.writing-1", "data.csv", "out"])
    assert "out exists; --force replaces" in found.err
    assert called("predict", "out", "data.csv").code == 0


@pytest.fixture
def gone(folder):
    """Delete the current folder; its parent has a table and decisions about none of its rows."""
    (folder / "data.csv").write_text(CSV)
    (folder / "gone").mkdir()
    os.chdir(folder / "gone")
    (folder / "gone").rmdir()
    yield folder
    os.chdir(folder)


def test_absolute_paths_need_no_current_folder(gone, model):
    words = (gone / "data.csv", "--label", "species", *QUICK, "-o")
    for command in ("fit", "audit"):
        for again in ((), ("--force",)):
            found = called(command, *words, gone / command, *again)
            assert found.code == 0, found.err
            assert str(gone / command) in found.err
    assert called("predict", model, gone / "data.csv", "-o", gone / "out.csv").code == 0


@pytest.mark.parametrize(
    "words",
    [
        ("fit", "data.csv", "--label", "species"),
        ("audit", "FOLDER/data.csv", "--label", "species"),
        ("audit", "FOLDER/data.csv", "--label", "species", "-o", "out"),
        ("predict", "model", "FOLDER/data.csv"),
        ("predict", "MODEL", "FOLDER/data.csv", "-o", "out.csv"),
        ("demo", "--seeds", "1"),
    ],
)
def test_a_current_folder_that_is_gone_is_named(words, gone, model):
    places = {"FOLDER": str(gone), "MODEL": str(model)}
    for name, place in places.items():
        words = [word.replace(name, place) for word in words]
    found = called(*words)
    assert found.code == 5
    assert re.search(
        "(?i)the current folder was deleted. Change to another one, or pass abs", found.err
    )


def test_a_model_that_is_replaced_while_it_is_read_is_refused(model, monkeypatch):
    copytree(model, "mine")
    Path("data.csv").write_text(CSV)
    plain = Features.load

    def replace_before(folder):
        file = Path("mine", "classifier", "decoupling.json")
        file.write_text(file.read_text() + " ")
        return plain(folder)

    monkeypatch.setattr(Features, "load", replace_before)
    found = called("predict", "mine", "data.csv")
    assert found.code == 3
    assert "mine was replaced while it was read; run the command again." in found.err
