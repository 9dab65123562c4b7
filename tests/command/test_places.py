"""Places for results: what is there is never lost, and problems are reported early."""

import os
from functools import partial

import pytest

from looselabels._files import new_folder
from looselabels.command.places import check_file, check_folder
from tests.command.calls import files
from tests.test_files import interrupt_mkdir

WRITTEN = {"summary.json": None, "model": {"classifier": {"arrays.npz": None}}}
check = partial(check_folder, written=WRITTEN)


def test_places_where_no_file_can_be_are_refused_at_once(tmp_path, monkeypatch):
    there = tmp_path / "there.csv"
    there.write_text("old")
    with pytest.raises(FileExistsError, match=r"there.csv exists; --force replaces it"):
        check_file(there)
    check_file(there, force=True)
    check_file("-")
    with pytest.raises(IsADirectoryError, match="is a folder; name a file in it"):
        check_file(tmp_path, force=True)
    for path in (tmp_path / "no" / "x.csv", there / "x.csv"):
        with pytest.raises(FileNotFoundError, match="is not a folder; create it first"):
            check_file(path)
    with pytest.raises(FileExistsError, match="is not a regular file"):
        check_file("/dev/null", force=True)
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(PermissionError, match="is not writable"):
        check_file(tmp_path / "x.csv")


def test_a_folder_is_replaced_only_when_forced_and_only_if_a_run_wrote_all_of_it(tmp_path):
    out = tmp_path / "out"
    assert check(out, force=False) == out
    (out / "model" / "classifier").mkdir(parents=True)
    with pytest.raises(FileExistsError, match="out exists; --force replaces"):
        check(out, force=False)
    assert check(out, force=True) == out
    (out / "model" / "classifier" / "mine.txt").touch()
    with pytest.raises(FileExistsError, match=os.path.join("model", "classifier", "mine.txt")):
        check(out, force=True)


def test_an_empty_folder_needs_no_force(tmp_path):
    assert check(tmp_path, force=False) == tmp_path


def test_a_file_or_the_current_folder_is_not_a_place_for_a_folder(tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    with pytest.raises(NotADirectoryError, match="is a file; name a folder"):
        check(tmp_path / "file", force=True)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(FileExistsError, match="is the current folder"):
        check(tmp_path, force=True)


def test_a_folder_that_appears_while_results_are_computed_is_kept(tmp_path):
    def write():
        with new_folder(tmp_path / "out", partial(check, force=False)):
            (tmp_path / "out").mkdir()
            (tmp_path / "out" / "thesis.txt").touch()

    with pytest.raises(FileExistsError, match="out exists"):
        write()
    assert files(tmp_path) == ["out"]
    assert files(tmp_path / "out") == ["thesis.txt"]


def test_an_interrupted_check_leaves_no_trace(tmp_path, monkeypatch):
    interrupt_mkdir(monkeypatch)
    with pytest.raises(KeyboardInterrupt):
        check_folder(tmp_path / "out", False, {})
    assert list(tmp_path.iterdir()) == []


def test_checking_leaves_no_trace(tmp_path):
    check(tmp_path / "out", force=False)
    assert files(tmp_path) == []
