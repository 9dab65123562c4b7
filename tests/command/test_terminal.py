"""The terminal."""

import contextlib
import io
import os
import re
import shlex
import signal
import subprocess
import sys
from contextlib import suppress

import pytest

from looselabels._progress import steps
from looselabels.command.terminal import drop_broken_stdout, print_line, progress, shortest
from tests.command.calls import QUICK, animals, called


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_control_characters_are_escaped(capsys):
    print_line("\x1b[31m\u202e\nü")
    assert capsys.readouterr() == ("", "\\x1b[31m\\u202e\nü\n")


@pytest.mark.parametrize(
    ("stream", "quiet", "shown"),
    [(Terminal, False, True), (Terminal, True, False), (io.StringIO, False, False)],
)
def test_a_progress_bar_is_shown_only_on_a_terminal(stream, quiet, shown, monkeypatch):
    monkeypatch.setattr(sys, "stderr", stream())
    with progress(quiet), steps(1, 1) as begin:
        begin("reading")
        begin("fitting")
    written = sys.stderr.getvalue()
    if shown:
        assert re.search(r"reading .*  0%.*fitting .* 50%.*fitting .* 100%", written, re.DOTALL)
    else:
        assert written == ""


def run_on_a_terminal(folder, *more, interrupt_at=None):
    """Run an audit whose stderr is a pseudo terminal; return what it writes there, and its code."""
    pty = pytest.importorskip("pty")
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "looselabels.command.cli", "audit", "data.csv", *more]
    with subprocess.Popen(command, cwd=folder, stderr=theirs) as process:
        os.close(theirs)
        written = ""
        with suppress(OSError):  # Linux reports the end of a terminal as an error
            while part := os.read(ours, 10_000):
                written += part.decode()
                if interrupt_at is not None and interrupt_at in written:
                    process.send_signal(signal.SIGINT)
                    interrupt_at = None
        os.close(ours)
    return written, process.returncode


def test_an_audit_moves_a_bar_on_a_terminal_from_0_to_100_percent_in_many_steps(tmp_path):
    animals(200).to_csv(tmp_path / "data.csv", index=False)
    written, code = run_on_a_terminal(tmp_path, "--label", "species")
    assert code == 0, written
    percent = [int(found) for found in re.findall(r"\] +(\d+)%", written)]
    assert percent == sorted(percent)
    assert len(set(percent)) > 50
    assert (percent[0], percent[-1]) == (0, 100)
    assert re.search(r"\d+%  00:00:\d\d", written)  # the time left
    for words in ("reading", "predicting labels", "inferring classes", "auditing", "saving"):
        assert words in written


def test_a_quiet_audit_writes_the_same_on_a_terminal_as_elsewhere(tmp_path):
    animals(200).to_csv(tmp_path / "data.csv", index=False)
    options = ("--label", "species", *QUICK, "-o", "out", "--force")
    on_a_terminal, _ = run_on_a_terminal(tmp_path, *options, "--quiet")
    with contextlib.chdir(tmp_path):
        assert called("audit", "data.csv", *options).err == on_a_terminal.replace("\r\n", "\n")
    assert "#]" not in on_a_terminal


def test_an_interruption_of_the_fit_leaves_nothing_and_says_so_in_one_line(tmp_path):
    animals(2000).to_csv(tmp_path / "data.csv", index=False)
    written, code = run_on_a_terminal(tmp_path, "--label", "species", interrupt_at=" 20%")
    assert code == 130
    assert written.splitlines()[-1] == "Interrupted; no incomplete file was left."
    assert os.listdir(tmp_path) == ["data.csv"]


def test_threads_that_are_still_at_work_do_not_abort_the_process(tmp_path):
    code = (
        "import threading, time\n"
        "import numpy as np\n"
        "from sklearn.tree import DecisionTreeClassifier\n"
        "from looselabels.command import cli\n"
        "X = np.random.default_rng(0).normal(size=(50, 5))\n"
        "def fit_trees():\n"
        "    while True:\n"
        "        DecisionTreeClassifier().fit(X, np.arange(50) % 9)\n"
        "def run():\n"
        "    for _ in range(20):\n"
        "        threading.Thread(target=fit_trees, daemon=True).start()\n"
        "    time.sleep(0.3)\n"
        "    print('the end', end='')\n"
        "    return 130\n"
        "cli.run = run\n"
        "cli.entry()\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True)
    assert (done.returncode, done.stdout, done.stderr) == (130, b"the end", b"")


def test_a_path_is_shown_relative_to_the_current_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert str(shortest(tmp_path / "out" / "report.html")) == "out/report.html"
    assert shortest(tmp_path.parent) == tmp_path.parent


def test_streams_that_were_closed_do_not_become_files(tmp_path):
    code = (
        "import os, sys\n"
        "from looselabels.command.terminal import open_closed_streams\n"
        "open_closed_streams()\n"
        "file = open('result', 'w')\n"
        "assert sys.stdout is None\n"
        "print(file.fileno() > 2, repr(sys.stdin.read()), file=file)\n"
        "print('a message', file=sys.stderr, flush=True)\n"
        "os.write(1, b'of a C library')\n"
    )
    command = f"{shlex.join([sys.executable, '-c', code])} <&- >&- 2>&-"
    assert subprocess.run(["sh", "-c", command], cwd=tmp_path).returncode == 0
    assert (tmp_path / "result").read_text() == "True ''\n"


def test_a_pipe_that_was_closed_does_not_fail_at_exit(monkeypatch):
    reader, writer = os.pipe()
    os.close(reader)
    with open(writer, "w") as stdout:
        monkeypatch.setattr(sys, "stdout", stdout)
        stdout.write("nobody reads this")
        with pytest.raises(BrokenPipeError):
            stdout.flush()
        drop_broken_stdout()
        stdout.flush()
    monkeypatch.setattr(sys, "stdout", None)
    drop_broken_stdout()
