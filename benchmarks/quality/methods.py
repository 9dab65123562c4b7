"""The methods: which problems each one solves, with which base classifier, and its role."""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from benchmarks.quality import ours, peers
from benchmarks.quality.answer import FOREST, LINEAR, OWN
from benchmarks.quality.problems import CHECKED, FAMILY, NOISY

ALL = tuple(dict.fromkeys(FAMILY.values()))
SEMI, SEVERAL, PU = "semi-supervised", "multi-positive", "positive-unlabeled"
CANDIDATES = "candidates"
UNCLEAR = ("coarse", "merged")
ONE_CLASS = tuple(f for f in ALL if f not in (PU, CANDIDATES))  # some labels name one class
OURS, PEER, REFERENCE = "ours", "peer", "reference"  # a reference is never the best peer
BOTH = (FOREST, LINEAR)


class Method(NamedTuple):
    """A function of a problem and a seed, the families of problems it solves, and its role."""

    answer: Callable
    families: tuple[str, ...]
    role: str
    base: str


def named(stem, base):
    """Return the name of a method with a base classifier."""
    return stem if base == OWN else f"{stem} ({base})"


def _methods(stem, function, families, role, bases):
    return {
        named(stem, base): Method(partial(function, base=base), families, role, base)
        for base in bases
    }


LOOSE, PLAIN, AS_NEGATIVE = "looselabels", "plain", "plain, unlabeled as negative"
SPLIT, SELF_TRAINING, CLEANLAB = "plain, labels split", "self-training", "cleanlab"
KNOWN, TRUE_TRANSITION = "all classes known", "looselabels, true transition"
METHODS: dict[str, Method] = {
    **_methods(PLAIN, peers.plain, ONE_CLASS, PEER, BOTH),
    **_methods(AS_NEGATIVE, peers.as_negative, (SEVERAL, PU), PEER, BOTH),
    **_methods(SPLIT, peers.split_labels, (*UNCLEAR, CANDIDATES), PEER, BOTH),
    **_methods(SELF_TRAINING, peers.self_training, (SEMI, "noisy", *UNCLEAR), PEER, BOTH),
    **_methods(CLEANLAB, peers.cleanlab, CHECKED, PEER, BOTH),
    **_methods(
        "cleanlab, unlabeled as negative", peers.cleanlab_as_negative, (SEVERAL, PU), PEER, BOTH
    ),
    **_methods("pulearn, Elkan–Noto", peers.elkan_noto, (SEVERAL, PU), PEER, BOTH),
    **_methods("pulearn, weighted", peers.elkan_noto_weighted, (SEVERAL, PU), PEER, BOTH),
    **_methods("pulearn, bagging", peers.pu_bagging, (SEVERAL, PU), PEER, BOTH),
    **_methods("pulearn, histogram prior", peers.histogram_prior, (PU,), PEER, (OWN,)),
    **_methods(
        "label spreading", peers.label_spreading, (SEMI, "noisy", *UNCLEAR), REFERENCE, (OWN,)
    ),
    **_methods(KNOWN, peers.all_known, (SEVERAL, PU, CANDIDATES), REFERENCE, BOTH),
    **_methods(TRUE_TRANSITION, ours.with_true_transition, NOISY, REFERENCE, (OWN, *BOTH)),
    **_methods(LOOSE, ours.decoupled, ALL, OURS, (OWN, *BOTH)),
    **_methods("looselabels on self-training", ours.on_self_training, (SEMI,), OURS, (FOREST,)),
}
DEFAULT, SAME_FOREST, SAME_LINEAR = (named(LOOSE, base) for base in (OWN, FOREST, LINEAR))
RECIPE = named("looselabels on self-training", FOREST)


def methods_for(family, role=None, bases=None):
    """Return the names of the methods that solve the problems of a family."""
    return [
        name
        for name, method in METHODS.items()
        if family in method.families
        and role in (None, method.role)
        and (bases is None or method.base in bases)
    ]


def select_methods(names):
    """Return the methods whose name, role or base is in `names`."""
    chosen = set(names)
    return [name for name, method in METHODS.items() if {name, *method[2:]} & chosen]


def plain_for(family, base=FOREST):
    """Return the simplest peer of a family, to which times are compared."""
    return named({PU: AS_NEGATIVE, CANDIDATES: SPLIT}.get(family, PLAIN), base)
