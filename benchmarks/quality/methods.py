"""The methods: which problems each one solves, and its role in the comparison."""

from collections.abc import Callable
from typing import NamedTuple

from benchmarks.quality import ours, peers
from benchmarks.quality.problems import FAMILY

ALL = tuple(dict.fromkeys(FAMILY.values()))
SEMI, SEVERAL, PU = "semi-supervised", "multi-positive", "positive-unlabeled"
UNCLEAR = ("coarse", "merged")
WRONG = ("noisy", "asymmetric", "human", "clean")
OURS, PEER, REFERENCE = "ours", "peer", "reference"  # a reference is never the best peer


class Method(NamedTuple):
    """A function of a problem and a seed, the families of problems it solves, and its role."""

    answer: Callable
    families: tuple[str, ...]
    role: str


DEFAULT, SAME = "looselabels", "looselabels, same forest"
RECIPE = "looselabels on self-training"
PLAIN, AS_NEGATIVE, KNOWN = "plain", "plain, unlabeled as negative", "all classes known"
CLEANLAB, SELF_TRAINING = "cleanlab", "self-training"
METHODS = {
    PLAIN: Method(peers.plain, tuple(f for f in ALL if f != PU), PEER),
    AS_NEGATIVE: Method(peers.as_negative, (SEVERAL, PU), PEER),
    "plain, labels split": Method(peers.split_labels, UNCLEAR, PEER),
    SELF_TRAINING: Method(peers.self_training, (SEMI, "noisy", *UNCLEAR), PEER),
    CLEANLAB: Method(peers.cleanlab, WRONG, PEER),
    "cleanlab, unlabeled as negative": Method(peers.cleanlab_as_negative, (SEVERAL, PU), PEER),
    "pulearn, Elkan–Noto": Method(peers.elkan_noto, (SEVERAL, PU), PEER),
    "pulearn, weighted": Method(peers.elkan_noto_weighted, (SEVERAL, PU), PEER),
    "pulearn, bagging": Method(peers.pu_bagging, (SEVERAL, PU), PEER),
    "pulearn, histogram prior": Method(peers.histogram_prior, (PU,), PEER),
    "label spreading": Method(peers.label_spreading, (SEMI, "noisy", *UNCLEAR), REFERENCE),
    KNOWN: Method(peers.all_known, (SEVERAL, PU), REFERENCE),
    DEFAULT: Method(ours.default, ALL, OURS),
    SAME: Method(ours.same_forest, ALL, OURS),
    RECIPE: Method(ours.on_self_training, (SEMI,), OURS),
}


def methods_for(family, role=None):
    """Return the names of the methods that solve the problems of a family."""
    return [
        name
        for name, method in METHODS.items()
        if family in method.families and role in (None, method.role)
    ]


def select_methods(names):
    """Return the methods whose name or role is in `names`."""
    return [name for name, method in METHODS.items() if {name, method.role} & set(names)]
