"""Names of looselabels 0.1 that have moved. They work, with a FutureWarning, until 0.3.

Modules are found under their old names by an entry in ``sys.meta_path``, so that models that were
pickled or saved by 0.1 load as well.
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
    "looselabels.features": "looselabels.command.features",
    "looselabels.forest": "looselabels.learning.forest",
    "looselabels.likelihood": "looselabels.estimation.noise",
    "looselabels.out_of_sample": "looselabels.learning.out_of_sample",
    "looselabels.persistence": "looselabels.learning.persistence",
    "looselabels.report": "looselabels.auditing.report",
    "looselabels.tables": "looselabels.command.tables",
    "looselabels.uncertainty": "looselabels.auditing.intervals",
    "looselabels.workflow": "looselabels.command.workflow",
}
# Names that moved to another file than the rest of their module.
MOVED = {
    "looselabels.forest.ClassForest": "looselabels.learning.soft_labels",
    "looselabels.classifier.neg_label_log_loss": "looselabels.model_selection",
    "looselabels.out_of_sample.LabelStratifiedKFold": "looselabels.model_selection",
}


def renamed(name):
    """Return a public name of 0.1 that has moved, with a warning that says where it is now."""
    home = NAMES[name]
    _warn(f"looselabels.{name} is now {home}.{name}", stacklevel=4)
    return getattr(import_module(home), name)


def find_old_modules():
    """Let old modules be imported under their old names."""
    if not any(isinstance(finder, _OldModules) for finder in sys.meta_path):
        sys.meta_path.append(_OldModules())


class _OldModules(MetaPathFinder, Loader):
    def find_spec(self, fullname, path=None, target=None):
        return ModuleSpec(fullname, self) if fullname in MODULES else None

    def create_module(self, spec):
        return None  # an empty one

    def exec_module(self, module):
        old, new = module.__name__, MODULES[module.__name__]
        _warn(f"The module {old} is now {new}", stacklevel=3)

        def forward(name):
            return getattr(import_module(MOVED.get(f"{old}.{name}", new)), name)

        module.__getattr__ = forward


def _warn(message, stacklevel):
    words = f"{message}; the old name will be removed in 0.3."
    warnings.warn(words, FutureWarning, stacklevel=stacklevel)
