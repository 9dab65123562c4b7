"""Annotators who break an assumption, as findings: they never change, copy, or agree too often."""

from looselabels._names import shown
from looselabels.annotations import Annotations
from looselabels.auditing.diagnose import Finding
from looselabels.auditing.votes import constant_annotators
from looselabels.estimation.agreement import AgreeingPair
from looselabels.transition import Transition

MAX_PAIRS = 5  # of annotators that findings are about


def find_constant(annotations: Annotations, class_proba, transition: Transition) -> list[Finding]:
    """Return a finding for each annotator who always gives the same answer."""
    found = constant_annotators(annotations.answers, class_proba, transition.proba)
    return [
        Finding(
            "constant",
            True,
            None,
            f"All {n_answers:,} answers of {shown(annotations.annotators[a])!r} are "
            f"{shown(annotations.labels[label])!r}; they say little about the rows.",
        )
        for a, label, n_answers in found
    ]


def find_pairs(annotations: Annotations, pairs: list[AgreeingPair]) -> list[Finding]:
    """Return a finding for each pair of annotators who do not answer independently."""
    found = []
    for pair in pairs[:MAX_PAIRS]:
        names = " and ".join(repr(shown(annotations.annotators[a])) for a in pair[:2])
        words = (
            f"{names} agree in {pair.agreement:.0%} of the {pair.n_rows:,} rows that both "
            f"answered; {pair.expected:.0%} are expected if all annotators answer independently. "
            "Some of them may not, and the consensus is then less certain than it looks."
        )
        found.append(Finding("agreement", True, pair.p_value, words))
    if len(pairs) > MAX_PAIRS:
        more = f"{len(pairs) - MAX_PAIRS:,} more pairs of annotators agree more than expected."
        found.append(Finding("agreement", True, None, more))
    return found


def find_copies(annotators: list[dict]) -> list[Finding]:
    """Return a finding for each annotator that was counted once with another one."""
    return [
        Finding(
            "copies",
            True,
            None,
            f"{shown(one['name'])!r} gave the same answers as {shown(one['copy_of'])!r} to all "
            "rows that both answered. They were counted once, as copies. If they answered "
            "independently, the consensus is more certain than it looks.",
        )
        for one in annotators
        if one.get("copy_of") is not None
    ]
