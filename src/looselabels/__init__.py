"""Learn classes from labels that are not quite the classes."""

from importlib import import_module

__version__ = "0.1.0"

# Where each public name lives. Nothing is imported before it is asked for, so that importing the
# package and `looselabels --help` stay quick; `__init__.pyi` shows the names to type checkers.
_HOME = {
    "Audit": "auditing",
    "BalancedForestClassifier": "forest",
    "DecoupledClassifier": "classifier",
    "Decoupling": "inference",
    "IdentifiabilityWarning": "_validation",
    "InconsistentLabelWarning": "_validation",
    "KernelDensityClassifier": "density",
    "LabelStratifiedKFold": "out_of_sample",
    "Transition": "transition",
    "audit": "auditing",
    "diagnose": "diagnostics",
    "estimate_class_prior": "class_prior",
    "estimate_transition": "estimate",
    "infer": "inference",
    "load": "persistence",
    "neg_label_log_loss": "classifier",
    "save": "persistence",
}

__all__ = sorted(_HOME)


def __getattr__(name):
    if name in _HOME:
        return getattr(import_module(f"looselabels.{_HOME[name]}"), name)
    raise AttributeError(f"module 'looselabels' has no attribute {name!r}")


def __dir__():
    return [*__all__, "__version__"]
