"""Names of looselabels 0.1 that have moved. They work until 0.3 and issue a FutureWarning.

An entry in ``sys.meta_path`` finds modules by their old names. Models that were pickled or saved
by 0.1 need it to load.
"""

import sys
import warnings
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec

NAMES = {
    "Audit": "looselabels.auditing.audit",
    "Decoupling": "looselabels.inference",
    "IdentifiabilityWarning": "looselabels.exceptions",
    "InconsistentLabelWarning": "looselabels.exceptions",
    "LabelStratifiedKFold": "looselabels.model_selection",
    "neg_label_log_loss": "looselabels.model_selection",
}
MODULES = {
    "looselabels.calibration": "looselabels.estimation.calibration",
    "looselabels.class_prior": "looselabels.estimation.class_prior",
    "looselabels.classifier": "looselabels.learning.classifier",
    "looselabels.cli": "looselabels.command.cli",
    "looselabels.demo": "looselabels.command.demo",
    "looselabels.density": "looselabels.learning.density",
    "looselabels.diagnostics": "looselabels.auditing.diagnose",
    "looselabels.estimate": "looselabels.estimation.transition",
    "looselabels.forest": "looselabels.learning.forest",
    "looselabels.likelihood": "looselabels.estimation.noise",
    "looselabels.out_of_sample": "looselabels.learning.out_of_sample",
    "looselabels.persistence": "looselabels.learning.persistence",
    "looselabels.report": "looselabels.auditing.report",
    "looselabels.tables": "looselabels.command.tables",
    "looselabels.uncertainty": "looselabels.auditing.intervals",
    "looselabels.workflow": "looselabels.command.results",
}
# Names that did not move together with the rest of their module.
MOVED = {
    "looselabels.forest.ClassForest": "looselabels.learning.soft_labels",
    "looselabels.classifier.neg_label_log_loss": "looselabels.model_selection",
    "looselabels.out_of_sample.LabelStratifiedKFold": "looselabels.model_selection",
    "looselabels.tables.table_writer": "looselabels.command.writing",
    "looselabels.workflow.Labels": "looselabels.command.labels",
    "looselabels.workflow.cells_as_labels": "looselabels.command.labels",
    "looselabels.workflow.read_labels": "looselabels.command.labels",
    "looselabels.workflow.describe": "looselabels.command.notes",
    "looselabels.workflow.ignored_columns": "looselabels.command.notes",
    "looselabels.workflow.read_design": "looselabels.command.design",
    "looselabels.workflow.fit": "looselabels.command.fitting",
    "looselabels.workflow.fit_from_proba": "looselabels.command.fitting",
    "looselabels.workflow.read_model": "looselabels.command.models",
    "looselabels.workflow.write_model": "looselabels.command.models",
    "looselabels.workflow.with_classes": "looselabels.command.models",
}


def renamed(name):
    """Return the object of a public name that has moved; a warning names the new place."""
    home = NAMES[name]
    found = getattr(import_module(home), name)
    # After the import, which may reset the record of warnings: `from looselabels import name` looks
    # the name up twice, and that record keeps the second warning from being shown.
    _warn(f"looselabels.{name} is now {home}.{name}", stacklevel=4)
    return found


def warn_of_old_name(old, new):
    """Warn that an attribute is used by its old name."""
    _warn(f"{old} is now {new}", stacklevel=4)


def find_old_modules():
    """Make it possible to import modules by their old names."""
    if not any(isinstance(finder, _OldModules) for finder in sys.meta_path):
        sys.meta_path.append(_OldModules())


class _OldModules(MetaPathFinder, Loader):
    def find_spec(self, fullname, path=None, target=None):
        return ModuleSpec(fullname, self) if fullname in MODULES else None

    def create_module(self, spec):
        return None  # Python then creates an empty module

    def exec_module(self, module):
        old, new = module.__name__, MODULES[module.__name__]
        _warn(f"The module {old} is now {new}", stacklevel=3)

        def forward(name):
            return getattr(import_module(MOVED.get(f"{old}.{name}", new)), name)

        module.__getattr__ = forward


def _warn(message, stacklevel):
    words = f"{message}; the old name will be removed in 0.3."
    warnings.warn(words, FutureWarning, stacklevel=stacklevel)
