"""The layout shows the architecture: imports point one way."""

import ast
import subprocess
import sys
from pathlib import Path

import looselabels

PACKAGE = Path(looselabels.__file__).parent

# Each file imports only from those that are listed before it.
LAYERS = [
    *("_renamed", "exceptions", "_validation", "_names", "_files", "_progress"),
    *("blocks", "_rows", "_dual_numba", "_rows_numba", "_compiled", "_interior"),
    *("_blocks", "_cuda"),
    *("_climb", "_dask", "_sources", "inference"),
    *("plotting", "transition", "datasets", "annotations"),
    "model_selection",
    *("estimation.sampling", "estimation.quantiles", "estimation.reliability"),
    *("estimation.weighting", "estimation.minimization"),
    *("estimation.calibration", "estimation.losses"),
    *("estimation.confident", "estimation.errors", "estimation.noise"),
    *("estimation.class_prior", "estimation.noisy_positives", "estimation.transition"),
    "estimation.log_gamma",
    *("estimation.annotator_levels", "estimation.annotator_accuracy"),
    "estimation.annotator_powers",
    *("estimation.annotator_input", "estimation.annotator_passes", "estimation.annotators"),
    "estimation.agreement",
    *(
        "learning.unchanged",
        "learning.workers",
        "learning.copies",
        "learning.density",
        "learning.trees",
    ),
    *("learning.soft_labels", "learning.forest", "learning.linear", "learning.out_of_sample"),
    "learning.dask_rows",
    *("learning.weighted_copies", "learning.draws", "learning.label_design"),
    *("learning.label_model", "learning.row_sample", "learning.dask_training"),
    *("learning.decoupling", "learning.sure_rows", "learning.training"),
    *("learning.candidates", "learning.annotation_design", "learning.annotated"),
    *("learning.classifier", "learning.plain_values", "learning.persistence"),
    *("auditing.diagnose", "auditing.intervals", "auditing.more_answers", "auditing.votes"),
    *("auditing.annotator_findings", "auditing.report", "auditing.pages", "auditing.consensus"),
    *("auditing.summary", "auditing.audit"),
    *("command.shell", "command.sources", "command.spilling", "command.formats"),
    *("command.tables", "command.places", "command.writing"),
    *("command.feature_file", "command.encoders", "command.images", "command.image_folder"),
    *("command.features", "command.spelling", "command.labels", "command.design"),
    *("command.identity", "command.answers", "command.decisions", "command.review"),
    *("command.fitting", "command.notes", "command.models", "command.results"),
    "command.consensus",
    *("command.demo", "command.options", "command.cluster"),
    *("command.workflow", "command.terminal", "command.cli"),
    "features",  # the encoders of the command, for users of the library
]
NUMERICS = ["_validation", "blocks", "_rows", "_dual_numba", "_rows_numba", "_compiled", "_blocks"]
NUMERICS += ["_interior", "_cuda", "_climb", "_dask", "_sources", "inference"]


def imported_modules(path):
    """Yield the dotted names that a file imports, at its top or within functions."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module
            yield from (f"{node.module}.{name.name}" for name in node.names)


def layer_of(path):
    """Return the layer of a file; the files of the report are one."""
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(parts[:2] if parts[:2] == ("auditing", "report") else parts)


def source_files():
    return [path for path in PACKAGE.rglob("*.py") if layer_of(path).split(".")[-1] != "__init__"]


def layers_imported(path):
    found = {name.removeprefix("looselabels.") for name in imported_modules(path)}
    return {layer for layer in LAYERS for name in found if f"{name}.".startswith(f"{layer}.")}


def test_every_file_has_its_layer():
    assert {layer_of(path) for path in source_files()} == set(LAYERS)


def test_imports_point_one_way():
    for path in source_files():
        layer = layer_of(path)
        allowed = set(LAYERS[: LAYERS.index(layer) + 1])
        assert layers_imported(path) <= allowed, path


def test_each_folder_imports_only_from_those_above_it():
    folders = ["estimation", "learning", "auditing", "command", "features"]
    places = [layer.split(".")[0] for layer in LAYERS]
    order = [folders.index(place) + 1 if place in folders else 0 for place in places]
    assert order == sorted(order)


def test_the_folders_themselves_import_nothing():
    for path in PACKAGE.glob("*/__init__.py"):
        assert list(imported_modules(path)) == []


def test_the_numerics_know_nothing_of_scikit_learn():
    for name in NUMERICS:
        found = {m for m in imported_modules(PACKAGE / f"{name}.py") if m.startswith("sklearn")}
        # The one exception: infer warns with the class that scikit-learn users filter by.
        assert found <= {"sklearn.exceptions", "sklearn.exceptions.ConvergenceWarning"}, name


def test_importing_the_package_imports_nothing_heavy():
    code = (
        "import sys, looselabels.command.cli\nprint(sorted({m.split('.')[0] for m in sys.modules}))"
    )
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, check=True, text=True
    )
    for module in ("numpy", "scipy", "sklearn", "numba", "pandas", "matplotlib"):
        assert f"'{module}'" not in loaded.stdout
