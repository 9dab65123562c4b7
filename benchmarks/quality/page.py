"""The page of the benchmark, docs/quality.md: where looselabels wins and loses, what to change."""

from collections import Counter
from pathlib import Path

import numpy as np
from benchmarks.quality.data import DEVELOPMENT, NAMES, TEST
from benchmarks.quality.methods import (
    ALL,
    AS_NEGATIVE,
    CLEANLAB,
    DEFAULT,
    METHODS,
    PEER,
    PLAIN,
    PU,
    SAME,
    SEMI,
    SEVERAL,
)
from benchmarks.quality.scores import LOSS, TIE, WIN, Compared, mean_and_sd
from benchmarks.quality.tables import data_name, markdown
from benchmarks.quality.targets import WRONG_LABELS, best_constant, by_problem, prior_places

SITUATIONS = {
    SEMI: "right, but some rows are unlabeled",
    SEVERAL: "several positive classes; all other rows are unlabeled",
    PU: "one positive class; all other rows are unlabeled",
    "noisy": "20 or 50 % are wrong, and some rows are unlabeled",
    "coarse": "some name a group of classes instead of one class",
    "clean": "complete and right, but you do not know that",
    "asymmetric": "30 % of each class have the label of the next class",
    "human": "given by people; 9 or 40 % are wrong",
    "merged": "from two data sets that name different classes",
}
SCORES = {"macro_f1": "macro-F1", "log_loss": "log-loss", "calibration_error": "calibration error"}
AMOUNTS = ("few", "some", "many")

TEMPLATE = Path(__file__).with_name("page.md")  # Markdown with {names} of values


def front_page(scores) -> str:
    """Return docs/quality.md."""
    outcomes = {family: _by_data(scores, family, "macro_f1") for family in ALL}
    log_loss = [c for family in ALL for c in _by_data(scores, family, "log_loss").values()]
    clean = {d: c.difference for d, c in _by_data(scores, "clean", "macro_f1", SAME).items()}
    distinct = [difference for data, difference in clean.items() if data != "gaussians"]
    prior = _class_prior(scores)
    return TEMPLATE.read_text(encoding="utf-8").format(
        n_data=len(NAMES),
        n_families=len(ALL),
        winning=_families(outcomes, WIN),
        even=_families(outcomes, TIE),
        losing=_families(outcomes, LOSS),
        log_loss_wins=sum(c.outcome == WIN for c in log_loss),
        log_loss_losses=sum(c.outcome == LOSS for c in log_loss),
        log_loss_all=len(log_loss),
        time=_median_time(scores),
        situations=situation_table(scores),
        losses=loss_table(scores),
        changes=change_table(scores),
        clean_cost=-_mean(outcomes["clean"].values()),
        clean_low=_signed(min(distinct, default=np.nan)),
        clean_high=_signed(max(distinct, default=np.nan)),
        clean_overlap=_signed(clean.get("gaussians", np.nan)),
        amounts=amount_table(scores),
        wrong_labels=wrong_label_table(scores),
        prior_ours=prior[DEFAULT],
        prior_name=prior["peer"],
        prior_peer=prior[prior["peer"]],
        prior_constant=prior["constant"],
        development=", ".join(DEVELOPMENT),
        test=" and ".join(TEST),
    )


# ------------------------------------------------------------------------------ comparisons


def _by_data(scores, family, score, method=DEFAULT):
    """Return the comparison with the best peer on each data set of a family."""
    compared = {
        data: scores.compare(places, method, score)
        for found, data, places in scores.by_family()
        if found == family
    }
    return {data: c for data, c in compared.items() if c is not None}


def outcome_of(compared):
    """Return WIN or LOSS if this is the outcome on most data sets, else TIE."""
    counts = Counter(c.outcome for c in compared.values())
    most = [o for o in (WIN, LOSS) if 2 * counts[o] > len(compared)]
    return most[0] if most else TIE


def _families(outcomes, outcome):
    found = [
        f"{family} ({_mean(compared.values()):+.3f})"
        for family, compared in outcomes.items()
        if compared and outcome_of(compared) == outcome
    ]
    return ", ".join(found) or "none"


def change_of(scores, family, score, method=DEFAULT, base="macro_f1"):
    """Return how a score of `method` differs from the default's macro-F1, on each data set."""
    found = []
    for _, _, places in (one for one in scores.by_family() if one[0] == family):
        ours, default = scores.mean(places, method, score), scores.mean(places, DEFAULT, base)
        if len(ours) and len(default):
            found.append(Compared(ours, default, DEFAULT, lower=False))
    return found


def _mean(compared):
    differences = [c.difference for c in compared]
    return float(np.mean(differences)) if differences else np.nan


def _counts(compared):
    counts = Counter(c.outcome for c in compared)
    return " / ".join(str(counts[o]) for o in (WIN, TIE, LOSS))


def _signed(number):
    return "" if np.isnan(number) else f"{round(number, 3) + 0.0:+.3f}"  # never −0.000


# ------------------------------------------------------------------------------ tables


def situation_table(scores):
    """Return differences and outcomes against the best peer, by family."""
    rows = []
    for family in ALL:
        compared = list(_by_data(scores, family, "macro_f1").values())
        if not compared:
            continue
        differences = [c.difference for c in compared]
        peers = Counter(c.peer for c in compared)
        row = [family, SITUATIONS[family], peers.most_common(1)[0][0], _signed(_mean(compared))]
        low, high = _signed(min(differences)), _signed(max(differences))
        row.append(f"{low} to {high}" if len(compared) > 1 else "one data set")
        row += [_counts(_by_data(scores, family, score).values()) for score in SCORES]
        rows.append(row)
    header = ["labels", "what they are", "usual best peer", "difference", "range"]
    return markdown([*header, *SCORES.values()], rows)


def loss_table(scores):
    """Return every loss on a data set, by score."""
    rows = []
    for score, name in SCORES.items():
        for family in ALL:
            for data, c in _by_data(scores, family, score).items():
                if c.outcome == LOSS:
                    ours, theirs = mean_and_sd(c.ours), f"{mean_and_sd(c.theirs)} ({c.peer})"
                    rows.append([name, family, data_name(data), ours, theirs])
    return markdown(["score", "labels", "data", "looselabels", "best peer"], rows)


def change_table(scores):
    """Return what other parameters than the defaults do to macro-F1, by family."""
    rows = []
    for family in ALL:
        default = list(_by_data(scores, family, "macro_f1").values())
        if not default:
            continue
        row = [family, f"{np.mean([c.ours.mean() for c in default]):.3f}"]
        for change in (
            change_of(scores, family, "balanced_f1"),
            change_of(scores, family, "macro_f1", SAME),
        ):
            row += [_signed(_mean(change)), _counts(change)]
        rows.append(row)
    outcome = "wins / ties / losses"
    forest = "`estimator=RandomForestClassifier()`"
    return markdown(["labels", "default", '`decide="balanced"`', outcome, forest, outcome], rows)


def amount_table(scores):
    """Return differences to the best peer by the number of labels."""
    rows = []
    for family in ALL:
        compared = {amount: [] for amount in AMOUNTS}
        for place in (p for p in scores.places if p.family == family):
            counts = sorted(p.labels for p in scores.places if p[:2] == place[:2])
            found = scores.compare([place], DEFAULT, "macro_f1")
            if len(counts) == len(AMOUNTS) and found is not None:
                compared[AMOUNTS[counts.index(place.labels)]].append(found)
        if any(compared.values()):
            cells = [[_signed(_mean(c)), _counts(c)] for c in compared.values()]
            rows.append([family, *(cell for pair in cells for cell in pair)])
    outcome = "wins / ties / losses"
    return markdown(["labels", *(name for a in AMOUNTS for name in (a, outcome))], rows)


def wrong_label_table(scores):
    """Return how well wrong labels are ranked and corrected, by problem."""
    rows = []
    pairs = list(by_problem(scores, WRONG_LABELS))
    for problem in dict.fromkeys(places[0].problem for _, places in pairs):
        row = [problem]
        for score in ("auprc", "corrected"):
            every = [p for _, p in pairs if p[0].problem == problem]
            found = [scores.compare(p, DEFAULT, score, CLEANLAB) for p in every]
            found = [c for c in found if c is not None]
            if not found:
                row += [""] * 3
                continue
            row += [f"{np.mean([c.ours.mean() for c in found]):.3f}"]
            row += [f"{np.mean([c.theirs.mean() for c in found]):.3f}", _counts(found)]
        rows.append(row)
    columns = [
        f"{score}, {name}" if name else "wins / ties / losses"
        for score in ("AUPRC", "right")
        for name in ("looselabels", "cleanlab", "")
    ]
    return markdown(["problem", *columns], rows)


def _class_prior(scores):
    """Return the mean error of the class prior: ours, the best peer's, the best constant's."""
    places = prior_places(scores)
    errors = {}
    for name, method in METHODS.items():
        error = scores.mean(places, name, "class_prior_error")
        if method.role == PEER or name == DEFAULT:
            errors[name] = float(error.mean()) if len(error) else np.nan
    peers = {name: e for name, e in errors.items() if name != DEFAULT and not np.isnan(e)}
    peer = min(peers, key=lambda name: peers[name]) if peers else CLEANLAB
    constant = best_constant(scores, places) if places else np.nan
    return errors | {"peer": peer, "constant": constant}


def _median_time(scores):
    """Return the median over places of our seconds divided by those of the plain forest."""
    ratios = []
    for place in scores.places:
        plain = AS_NEGATIVE if place.family == PU else PLAIN
        ours, theirs = (scores.mean([place], name, "seconds") for name in (DEFAULT, plain))
        if len(ours) and len(theirs):
            ratios.append(ours.mean() / theirs.mean())
    return float(np.median(ratios)) if ratios else np.nan
