"""The command when processes, memory or the disk fail."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.command import calls  # noqa: F401  skips these tests without the extras

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
