"""Learn classes from labels that are not quite the classes."""

from importlib import import_module

from looselabels._renamed import NAMES as _RENAMED
from looselabels._renamed import find_old_modules, renamed

__version__ = "0.2.0.dev0"

# Where each public name is defined. Nothing is imported before it is used, so that importing the
# package and `looselabels --help` are quick; `__init__.pyi` shows the names to type checkers.
_HOME = {
    "BalancedForestClassifier": "learning.forest",
    "DecoupledClassifier": "learning.classifier",
    "KernelDensityClassifier": "learning.density",
    "Transition": "transition",
    "audit": "auditing.audit",
    "diagnose": "auditing.diagnose",
    "estimate_class_prior": "estimation.class_prior",
    "estimate_transition": "estimation.transition",
    "infer": "inference",
    "load": "learning.persistence",
    "save": "learning.persistence",
}

__all__ = sorted(_HOME)

find_old_modules()


def __getattr__(name):
    if name in _HOME:
        return getattr(import_module(f"looselabels.{_HOME[name]}"), name)
    if name in _RENAMED:
        return renamed(name)
    raise AttributeError(f"module 'looselabels' has no attribute {name!r}")


def __dir__():
    return [*__all__, "__version__"]
