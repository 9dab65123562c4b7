"""The terminal."""

import io
import os
import sys

import pytest

from looselabels.command.terminal import drop_broken_stdout, print_line, progress, shortest


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
    with progress("reading", quiet) as reach:
        reach(10, "fitting")
        reach(100)
    assert ("fitting" in sys.stderr.getvalue()) == shown
    assert ("100%" in sys.stderr.getvalue()) == shown


def test_a_path_is_shown_relative_to_the_current_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert str(shortest(tmp_path / "out" / "report.html")) == "out/report.html"
    assert shortest(tmp_path.parent) == tmp_path.parent


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
