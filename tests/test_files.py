"""Files and folders are written completely or not at all, and damage is one clear line."""

import errno
import io
import os
import signal
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import pytest

from looselabels._files import (
    DAY,
    check_archive,
    check_parent,
    left_behind,
    new_file,
    new_folder,
    reading,
    unexpected_files,
)

NEW = {"file": new_file, "folder": new_folder}
FAILURES = [OSError(errno.ENOSPC, "No space left"), KeyboardInterrupt("stopped")]


def put(path, text):
    """Write a file, or a folder with one file in a folder of its own, in place."""
    if path.name == "file" or ".file." in path.name:
        path.write_text(text)
    else:
        (path / "inner").mkdir(parents=True, exist_ok=True)
        (path / "inner" / "a.txt").write_text(text)


def content(path):
    return path.read_text() if path.is_file() else (path / "inner" / "a.txt").read_text()


def names(folder):
    return sorted(os.listdir(folder))


@pytest.fixture(params=NEW)
def target(request, tmp_path):
    """The path of a file or folder that does not exist, in an empty folder."""
    return tmp_path / request.param


def write(target, text, check=check_parent):
    with NEW[target.name](target, check) as temporary:
        put(temporary, text)


# ----------------------------------------------------------------------------------------- writing


def test_the_target_appears_when_everything_is_written(target):
    with NEW[target.name](target, check_parent) as temporary:
        assert temporary.parent == target.parent
        put(temporary, "new")
        assert not target.exists()
    assert content(target) == "new"
    assert names(target.parent) == [target.name]


def test_the_old_content_stays_until_everything_is_written(target):
    write(target, "old")
    with NEW[target.name](target, check_parent) as temporary:
        put(temporary, "new")
        assert content(target) == "old"
    assert content(target) == "new"
    assert names(target.parent) == [target.name]


def test_the_target_has_the_usual_permissions(target):
    write(target, "new")
    usual = target.with_name("usual")
    usual.touch() if target.is_file() else usual.mkdir()
    assert target.stat().st_mode == usual.stat().st_mode


@pytest.mark.parametrize("mode", [0o700, 0o750, 0o555])
def test_what_is_replaced_keeps_its_permissions_and_is_private_until_then(target, mode):
    write(target, "old")
    inner = target if target.is_file() else target / "inner" / "a.txt"
    inner.chmod(0o640)
    target.chmod(mode)
    with NEW[target.name](target, check_parent) as temporary:
        assert temporary.stat().st_mode & 0o077 == 0
        put(temporary, "new")
    assert content(target) == "new"
    assert target.stat().st_mode & 0o777 == mode
    assert inner.stat().st_mode & 0o777 == (mode if target.is_file() else 0o640)


def test_a_link_stays_a_link(target):
    link = target.with_name("link")
    write(target, "old")
    link.symlink_to(target)
    with NEW[target.name](link, check_parent) as temporary:
        put(temporary, "new")
    assert link.is_symlink()
    assert content(target) == "new"


def test_every_file_is_flushed_before_it_is_renamed(target, monkeypatch):
    flushed, fsync = [], os.fsync

    def record(descriptor):
        assert not target.exists()
        flushed.append(os.path.basename(os.readlink(f"/proc/self/fd/{descriptor}")))
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", record)
    write(target, "new")
    assert len(flushed) == 1
    assert flushed[0] == "a.txt" or flushed[0].startswith(".file.writing-")


@pytest.mark.parametrize("failure", FAILURES, ids=["full disk", "Ctrl-C"])
@pytest.mark.parametrize("existed", [False, True])
@pytest.mark.parametrize("moment", ["writing", "flushing", "checking", "renaming"])
def test_a_failure_leaves_the_old_content_and_nothing_else(
    target, failure, existed, moment, monkeypatch
):
    if existed:
        write(target, "old")
    checks = []

    def fail(*_):
        raise failure

    def check(path):
        checks.append(path)
        if moment == "checking" and len(checks) == 2:
            fail()

    rename = Path.rename

    def rename_unless_new(path, to):
        if to == target and not path.name.endswith(".old"):
            assert not target.exists()  # the old folder has been moved away
            fail()
        return rename(path, to)

    if moment == "renaming":
        monkeypatch.setattr(Path, "rename", rename_unless_new)
        monkeypatch.setattr(os, "replace", fail)
    if moment == "flushing":
        monkeypatch.setattr(os, "fsync", fail)

    def write_all():
        with NEW[target.name](target, check) as temporary:
            put(temporary, "new")
            if moment == "writing":
                fail()

    with pytest.raises(type(failure), match=str(failure.args[-1])):
        write_all()
    assert names(target.parent) == [target.name] * existed
    assert not existed or content(target) == "old"


def interrupt_mkdir(monkeypatch):
    """Let Ctrl-C come right after a folder was created."""
    mkdir = Path.mkdir

    def mkdir_and_stop(path, *args, **kwargs):
        mkdir(path, *args, **kwargs)
        raise KeyboardInterrupt

    monkeypatch.setattr(Path, "mkdir", mkdir_and_stop)


def test_an_interruption_while_the_folder_is_created_leaves_no_hidden_folder(tmp_path, monkeypatch):
    interrupt_mkdir(monkeypatch)
    with pytest.raises(KeyboardInterrupt), new_folder(tmp_path / "folder", check_parent):
        pass
    assert names(tmp_path) == []


def test_the_check_comes_before_writing_and_again_before_replacing(target):
    def refuse_if_it_exists(path):
        if path.exists():
            raise FileExistsError(path)

    def write_while_another_does():
        with NEW[target.name](target, refuse_if_it_exists) as temporary:
            put(temporary, "new")
            put(target, "of another process")

    with pytest.raises(FileExistsError):
        write_while_another_does()
    assert content(target) == "of another process"
    with pytest.raises(FileExistsError):
        write(target, "new", refuse_if_it_exists)
    assert names(target.parent) == [target.name]


def test_what_killed_processes_left_is_removed_after_a_day(target):
    old, young, other = (
        target.with_name(name)
        for name in (f".{target.name}.writing-1", f".{target.name}.writing-2", ".x.writing-1")
    )
    for stray in (old, young, other):
        put(stray, "incomplete")
    for stray in (old, other):
        os.utime(stray, 2 * (time.time() - 2 * DAY,))
    write(target, "new")
    assert names(target.parent) == sorted([young.name, other.name, target.name])


def test_a_clock_that_was_set_back_removes_nothing(target):
    stray = target.with_name(f".{target.name}.writing-0123")
    stray.touch()
    os.utime(stray, (time.time() + 7 * DAY,) * 2)
    write(target, "new")
    assert stray.exists()
    assert content(target) == "new"


def test_the_only_copy_of_a_result_is_not_removed(target):
    stray = target.with_name(f".{target.name}.writing-1.old")
    put(stray, "complete")
    os.utime(stray, (0, 0))

    def fail():
        with NEW[target.name](target, check_parent):
            raise OSError

    with pytest.raises(OSError):
        fail()
    assert names(target.parent) == [stray.name if target.name == "file" else target.name]


KILLED = """
import os, signal, sys
from pathlib import Path
from looselabels._files import check_parent, new_folder
rename = Path.rename
def rename_once(path, to):
    rename(path, to)
    os.kill(os.getpid(), signal.SIGKILL)
Path.rename = rename_once
with new_folder(sys.argv[1], check_parent) as temporary:
    (temporary / "new").touch()
"""


@pytest.mark.parametrize("name", ["folder", "folder" * 30])
def test_a_folder_is_put_back_after_a_kill_between_two_renames(name, tmp_path):
    target, other = tmp_path / name, tmp_path / f"{name}2"
    put(target, "old")
    killed = subprocess.run([sys.executable, "-c", KILLED, target], check=False)
    assert killed.returncode == -signal.SIGKILL
    assert not target.exists()
    assert left_behind(other) is None
    assert content(left_behind(target)) == "old"
    seen = []
    with new_folder(target, lambda path: seen.append(content(path))) as temporary:
        put(temporary, "new")
    assert (seen, content(target)) == (["old", "old"], "new")
    assert left_behind(target) is None


def test_a_folder_that_another_process_is_replacing_is_not_put_back(tmp_path, monkeypatch):
    target, old = tmp_path / "folder", tmp_path / ".folder.writing-1.old"
    put(old, "old")
    monkeypatch.setattr(time, "sleep", lambda _: put(target, "of the other"))
    seen = []
    with new_folder(target, lambda path: seen.append(content(path))) as temporary:
        put(temporary, "new")
    assert seen == ["of the other"] * 2
    assert content(old) == "old"


def test_the_containing_folder_must_exist(target):
    with pytest.raises(FileNotFoundError, match="nowhere is not a folder; create it first"):
        write(target.parent / "nowhere" / target.name, "new")


def test_long_names_can_be_written(tmp_path):
    with new_file(tmp_path / ("x" * 250), check_parent) as temporary:
        temporary.write_text("new")
    assert names(tmp_path) == ["x" * 250]


def test_unexpected_files_are_named_at_every_depth(tmp_path):
    tree = {"a.txt": None, "inner": {"b.txt": None}}
    (tmp_path / "inner").mkdir()
    for name in ("a.txt", "inner/b.txt"):
        (tmp_path / name).touch()
    assert unexpected_files(tmp_path, tree) == []
    for name in ("b.txt", "inner/a.txt"):
        (tmp_path / name).touch()
    assert unexpected_files(tmp_path, tree) == ["b.txt", os.path.join("inner", "a.txt")]


# ----------------------------------------------------------------------------------------- reading


def test_an_error_while_reading_is_one_line_that_names_the_file(tmp_path):
    file = tmp_path / "arrays.npz"

    def read(error=None):
        with reading(file) as handle:
            if error is not None:
                raise error
            return handle.read()

    with pytest.raises(ValueError, match=r"arrays\.npz is missing: the model is not complete"):
        read()
    file.write_bytes(b"1")
    assert read() == b"1"
    for error, reason in [
        (ValueError("two\n  lines"), "two lines"),
        (KeyError("a"), "KeyError: 'a'"),
        (OSError("\x1b[31m"), r"'OSError: \\x1b\[31m'"),
    ]:
        with pytest.raises(ValueError, match=rf"arrays\.npz cannot be loaded: {reason}$"):
            read(error)


@pytest.mark.parametrize(
    ("name", "compression", "message"),
    [
        ("a.npy", zipfile.ZIP_STORED, None),
        ("../a.npy", zipfile.ZIP_STORED, r"it holds the path '\.\./a\.npy'"),
        ("a.npy", zipfile.ZIP_DEFLATED, r"it holds 'a\.npy', compressed"),
    ],
)
def test_archives_with_folders_or_compression_are_refused(name, compression, message):
    handle = io.BytesIO()
    with zipfile.ZipFile(handle, "w", compression) as archive:
        archive.writestr(name, b"0" * 1000)
    if message is None:
        check_archive(handle)
        assert handle.tell() == 0
        return
    with pytest.raises(ValueError, match=message):
        check_archive(handle)


def test_importing_the_module_imports_nothing_heavy():
    code = "import sys, looselabels._files\nprint(*{m.split('.')[0] for m in sys.modules})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    assert not {"numpy", "scipy", "sklearn"} & set(done.stdout.split())
