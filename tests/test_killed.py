"""Files, folders of results and models when processes fail or are killed at any step of writing.

Hypothesis chooses what happens. A killed process is a real one: a child that leaves without
cleaning up at its n-th access to the file system.
"""

import os
import sys
import tempfile
import warnings
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from looselabels import DecoupledClassifier, Transition, load, save
from looselabels._files import check_parent, new_file, new_folder
from looselabels.command.places import check_folder
from tests import strategies  # noqa: F401  its profile: no deadline, fixed examples

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
LETTERS = "abc"
ACCESSES = ("open", "os.", "shutil.")
RESULTS = dict.fromkeys(("labels.csv", "summary.json"))
MODELS = {
    letter: DecoupledClassifier(transition=Transition.identity([letter, "x"])).fit_from_proba(
        np.array([[0.2, 0.8], [0.9, 0.1]]), ["x", letter]
    )
    for letter in LETTERS
}


class Kind:
    """What is written: one file, by default."""

    new, check = staticmethod(new_file), staticmethod(check_parent)

    def write(self, path, letter, between=lambda: None):
        """Write the letter, call `between`, and write the rest."""
        with self.new(path, self.check) as temporary:
            self.fill(temporary, letter, between)

    def fill(self, path, letter, between):
        with open(path, "w") as file:
            file.write(letter)
            file.flush()
            between()
            file.write(letter)

    def read(self, path):
        """Return the letter; raise if the content is not complete."""
        first, second = path.read_text()
        assert first == second
        return first


class Folder(Kind):
    """A folder with two files, as the command writes one."""

    new = staticmethod(new_folder)
    check = staticmethod(partial(check_folder, force=True, written=RESULTS))

    def fill(self, path, letter, between):
        (path / "labels.csv").write_text(letter)
        between()
        (path / "summary.json").write_text(letter)

    def read(self, path):
        first, second = (path / name for name in RESULTS)
        assert first.read_text() == second.read_text()
        return first.read_text()


class Model(Kind):
    """A saved classifier."""

    def write(self, path, letter, between=lambda: None):
        save(MODELS[letter], path, overwrite=True)
        between()

    def read(self, path):
        return load(path).classes_[0]


def kill_at(step, write):
    """Call `write` in a child process that ends at once at its n-th access to the file system."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # about threads; the child starts none
        child = os.fork()
    if child:
        return os.waitpid(child, 0)[1] == 0
    left = step

    def count(event, _):
        nonlocal left
        if event.startswith(ACCESSES):
            left -= 1
            if left < 0:
                os._exit(9)

    try:
        sys.addaudithook(count)
        write()
        os._exit(0)
    finally:
        os._exit(1)  # never return to the test


class Writing(RuleBasedStateMachine):
    """One place that processes write to, one after the other."""

    kind: Kind

    def __init__(self):
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.path = Path(self.folder.name, "target")
        self.possible = {None}  # the letters that a reader may find; None: nothing

    def teardown(self):
        """Remove everything."""
        self.folder.cleanup()

    @rule(letter=st.sampled_from(LETTERS))
    def write(self, letter):
        """Write without trouble."""
        self.kind.write(self.path, letter)
        self.possible = {letter}

    @rule(letter=st.sampled_from(LETTERS), step=st.integers(0, 60))
    def be_killed(self, letter, step):
        """Be killed at some step of writing, or finish before."""
        finished = kill_at(step, lambda: self.kind.write(self.path, letter))
        self.possible = {letter} if finished else self.possible | {letter}

    @rule(letter=st.sampled_from(LETTERS))
    def fail(self, letter):
        """Fail half way."""
        if isinstance(self.kind, Model):  # it has no half way
            return
        with pytest.raises(OSError, match="full"):
            self.kind.write(self.path, letter, between=fail)

    @invariant()
    def a_reader_finds_one_complete_content(self):
        """What is there is complete; what is not there is next to it, complete."""
        if self.path.exists():
            found = self.kind.read(self.path)
            assert found in self.possible
            self.possible = {found}
        elif None not in self.possible:  # killed between two renames
            left = self.path.parent.glob(".target.writing-*.old")
            assert {self.kind.read(path) for path in left} & self.possible


def fail():
    raise OSError("the disk is full")


@pytest.mark.slow
@pytest.mark.parametrize("kind", [Kind(), Folder(), Model()], ids=["file", "results", "model"])
def test_a_reader_finds_one_complete_content_whatever_happened_to_writers(kind):
    machine = type("Machine", (Writing,), {"kind": kind})
    run_state_machine_as_test(
        machine, settings=settings(max_examples=60, stateful_step_count=8, derandomize=True)
    )
