"""Fixtures of the tests of the command."""

import io
import sys

import pytest

from tests.command.calls import fitted_animals, small_model


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Make an empty folder the current one."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def file(tmp_path):
    """Write bytes or text to a file, and return its path."""

    def write(content, name="data.csv"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


@pytest.fixture
def stdin(monkeypatch):
    """Put bytes into stdin."""

    def pipe(content):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))

    return pipe


@pytest.fixture(scope="session")
def fitted():
    """A table of animals and a classifier that was fitted to it; see `fitted_animals`."""
    return fitted_animals()


@pytest.fixture(scope="session")
def model(tmp_path_factory):
    """The folder of a model of cats and dogs."""
    return small_model(tmp_path_factory.mktemp("model"))
