"""The command when processes, memory or the disk fail."""

import subprocess
import sys
from pathlib import Path
from shutil import copytree

import pytest

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
