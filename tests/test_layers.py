"""The layout shows the architecture: imports point one way."""

import ast
import subprocess
import sys
from pathlib import Path

import looselabels

PACKAGE = Path(looselabels.__file__).parent

# Each file imports only what stands before it.
LAYERS = [
    "_validation",
    "_names",
    "_rows",
    "_rows_numba",
    "_blocks",
    "inference",
    "plotting",
    "transition",
    "calibration",
    "likelihood",
    "class_prior",
    "estimate",
    "density",
    "forest",
    "out_of_sample",
    "classifier",
    "diagnostics",
    "persistence",
    "uncertainty",
    "auditing",
    "report",
    "tables",
    "features",
    "workflow",
    "datasets",
    "demo",
    "cli",
]
NUMERICS = ["_validation", "_rows", "_rows_numba", "_blocks", "inference"]


def imported_modules(path, *, everywhere=True):
    """Yield the dotted names that a file imports, at its top or `everywhere`."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree) if everywhere else tree.body:
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module
            yield from (f"{node.module}.{name.name}" for name in node.names)


def ours(path):
    parts = (name.split(".") for name in imported_modules(path))
    return {part[1] for part in parts if part[0] == "looselabels" and len(part) > 1} & set(LAYERS)


def test_every_file_has_its_layer():
    files = {path.stem for path in PACKAGE.glob("*.py")} | {"report"}
    assert files == {*LAYERS, "__init__"}


def test_imports_point_one_way():
    for position, name in enumerate(LAYERS):
        file = PACKAGE / f"{name}.py"
        files = [file] if file.exists() else sorted((PACKAGE / name).glob("*.py"))
        for file in files:
            assert ours(file) - {name} <= set(LAYERS[:position]), file


def test_the_numerics_know_nothing_of_scikit_learn():
    for name in NUMERICS:
        found = {m for m in imported_modules(PACKAGE / f"{name}.py") if m.startswith("sklearn")}
        # The one exception: infer warns with the class that scikit-learn users filter by.
        assert found <= {"sklearn.exceptions", "sklearn.exceptions.ConvergenceWarning"}, name


def test_importing_the_package_imports_nothing_heavy():
    code = "import sys, looselabels.cli; print(sorted({m.split('.')[0] for m in sys.modules}))"
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, check=True, text=True
    )
    for module in ("numpy", "scipy", "sklearn", "numba", "pandas", "matplotlib"):
        assert f"'{module}'" not in loaded.stdout
