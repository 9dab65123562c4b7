"""Names and modules of 0.1 that moved: they work, with one warning that says where they are now."""

import pickle
import sys
import warnings
from importlib import import_module

import pytest

import looselabels
from looselabels._renamed import MODULES, MOVED, NAMES


@pytest.fixture
def fresh(monkeypatch):
    """Forget the modules that were imported by their old names: each warns once per process."""
    for old in MODULES:
        monkeypatch.delitem(sys.modules, old, raising=False)
        monkeypatch.delattr(looselabels, old.removeprefix("looselabels."), raising=False)
    yield
    for old in MODULES:  # what this test imported
        sys.modules.pop(old, None)
        vars(looselabels).pop(old.removeprefix("looselabels."), None)


def run(code):
    """Run a line of a user, and return its variables and what its warnings say."""
    variables = {"__name__": "user"}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default", FutureWarning)
        exec(compile(code, "user.py", "exec"), variables)
    assert {warning.category for warning in caught} <= {FutureWarning}
    assert {warning.filename for warning in caught} <= {"user.py"}
    return variables, [str(warning.message) for warning in caught]


@pytest.mark.parametrize(("name", "home"), NAMES.items())
@pytest.mark.parametrize("code", ["from looselabels import {0}", "import looselabels as l; l.{0}"])
def test_an_old_name_works_with_one_warning_that_names_the_new_place(name, home, code):
    _, messages = run(code.format(name))
    old = f"looselabels.{name} is now {home}.{name}; the old name will be removed in 0.3."
    assert messages == [old]
    _, messages = run(f"from {home} import {name}")
    assert messages == []


@pytest.mark.parametrize("name", NAMES)
def test_an_old_name_is_the_thing_itself(name):
    with pytest.warns(FutureWarning, match=NAMES[name]):
        assert getattr(looselabels, name) is getattr(import_module(NAMES[name]), name)
    assert name not in looselabels.__all__


@pytest.mark.usefixtures("fresh")
@pytest.mark.parametrize(("old", "new"), MODULES.items())
def test_an_old_module_works_with_one_warning_that_names_the_new_place(old, new):
    home = import_module(new)
    public = next(
        name
        for name, value in vars(home).items()
        if getattr(value, "__module__", None) == new and not name.startswith("_")
    )
    found, messages = run(f"import {old}\nfrom {old} import {public} as it")
    assert messages == [f"The module {old} is now {new}; the old name will be removed in 0.3."]
    assert found["it"] is getattr(home, public)


@pytest.mark.usefixtures("fresh")
@pytest.mark.parametrize(("old", "new"), MOVED.items())
def test_a_name_that_left_its_module_is_found_under_the_old_one(old, new):
    module, name = old.rsplit(".", 1)
    found, messages = run(f"from {module} import {name}")
    assert len(messages) == 1
    assert found[name] is getattr(import_module(new), name)


@pytest.mark.usefixtures("fresh")
def test_a_name_that_an_old_module_never_had_is_an_import_error():
    with (
        pytest.warns(FutureWarning, match="The module looselabels.forest is now"),
        pytest.raises(ImportError, match="cannot import name 'no_such_name'"),
    ):
        exec("from looselabels.forest import no_such_name")


@pytest.mark.usefixtures("fresh")
def test_a_pickle_that_names_the_old_module_loads():
    forest = looselabels.BalancedForestClassifier(7, random_state=3)
    new = f"c{type(forest).__module__}\n".encode()
    written = pickle.dumps(forest, protocol=0)  # in which names are plain text
    assert written.count(new) == 1
    with pytest.warns(FutureWarning, match="looselabels.forest is now") as caught:
        loaded = pickle.loads(written.replace(new, b"clooselabels.forest\n"))
    assert len(caught) == 1
    assert type(loaded) is looselabels.BalancedForestClassifier
    assert loaded.get_params() == forest.get_params()
