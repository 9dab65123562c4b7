"""The public names: importable, documented, and documented as they are."""

import ast
import inspect
import re
from pathlib import Path

import pytest

import looselabels

PUBLIC = looselabels.__all__


@pytest.mark.parametrize("name", PUBLIC)
def test_each_public_name_is_importable_and_documented(name):
    assert inspect.getdoc(getattr(looselabels, name))


def test_type_checkers_see_the_same_names():
    stub = Path(looselabels.__file__).with_suffix(".pyi").read_text(encoding="utf-8")
    imports = [node for node in ast.parse(stub).body if isinstance(node, ast.ImportFrom)]
    assert sorted(alias.asname for node in imports for alias in node.names) == PUBLIC


def test_the_names_are_listed_and_no_others_exist():
    assert set(PUBLIC) <= set(dir(looselabels))
    with pytest.raises(AttributeError, match="no attribute 'inverse_noise_matrix'"):
        looselabels.inverse_noise_matrix  # noqa: B018


def test_every_public_name_is_in_the_readme_s_table():
    readme = (Path(__file__).parent.parent / "README.md").read_text(encoding="utf-8")
    assert [name for name in PUBLIC if f"`{name}" not in readme] == []


def public_callables():
    for name in PUBLIC:
        thing = getattr(looselabels, name)
        if inspect.isfunction(thing):
            yield name, thing
        elif inspect.isclass(thing) and thing.__module__ != "looselabels.exceptions":
            yield name, thing
            for attribute, value in vars(thing).items():
                function = value.__func__ if isinstance(value, classmethod) else value
                if inspect.isfunction(function) and not attribute.startswith("_"):
                    yield f"{name}.{attribute}", function


@pytest.mark.parametrize(("name", "thing"), [pytest.param(*c, id=c[0]) for c in public_callables()])
def test_documented_defaults_are_the_real_ones(name, thing):
    parameters = inspect.signature(thing).parameters
    documented = re.findall(r"^(\w+) : .*default=(\S+)", inspect.getdoc(thing) or "", re.MULTILINE)
    for parameter, default in documented:
        default = float("inf") if default == "inf" else ast.literal_eval(default.rstrip(",."))
        assert parameters[parameter].default == default, (name, parameter)


def test_the_check_of_defaults_sees_defaults():
    assert re.findall(r"^(\w+) : .*default=(\S+)", inspect.getdoc(looselabels.infer), re.MULTILINE)


def test_the_version_is_the_package_s():
    from importlib.metadata import version

    assert looselabels.__version__ == version("looselabels")
