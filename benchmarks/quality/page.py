"""The page of the benchmark, docs/quality.md: where looselabels wins and loses, what to change."""

from collections import Counter
from pathlib import Path

import numpy as np
from benchmarks.quality.data import DEVELOPMENT, TEST
from benchmarks.quality.markdown import data_name, markdown
from benchmarks.quality.methods import (
    ALL,
    CANDIDATES,
    DEFAULT,
    METHODS,
    PEER,
    PU,
    SAME_FOREST,
    SAME_LINEAR,
    SEMI,
    SEVERAL,
)
from benchmarks.quality.problems import NOISY, SHARES
from benchmarks.quality.scores import LOSS, TIE, WIN, Compared, mean_and_sd
from benchmarks.quality.tables import time_ratios
from benchmarks.quality.targets import (
    EVERY,
    best_constant,
    by_problem,
    check_targets,
    prior_places,
    true_transition,
)
from benchmarks.quality.wrong_labels import compare_with_cleanlab, count_table

SITUATIONS = {
    SEMI: "right, but some rows are unlabeled",
    SEVERAL: "several positive classes; all other rows are unlabeled",
    PU: "one positive class; all other rows are unlabeled",
    "noisy": "20 or 50 % are wrong, and some rows are unlabeled",
    "coarse": "some name a group of classes instead of one class",
    "clean": "complete and right, but you do not know that",
    "overlap": "complete and right, but classes overlap widely",
    "asymmetric": "30 % of each class have the label of the next class",
    "uneven": "25 % of every other class, or 40 % of the largest class, are wrong",
    "copies": "10 % are wrong, and half of the rows occur twice",
    "human": "given by people; 9 or 40 % are wrong",
    "merged": "from two data sets that name different classes",
    CANDIDATES: "two or three possible classes per row",
}
SCORES = {"macro_f1": "macro-F1", "log_loss": "log-loss", "calibration_error": "calibration error"}
AMOUNTS = ("few", "some", "many")

TEMPLATE = Path(__file__).with_name("page.md")  # Markdown with {names} of values


def front_page(scores) -> str:
    """Return docs/quality.md."""
    outcomes = {family: _by_data(scores, family, "macro_f1") for family in ALL}
    log_loss = [c for family in ALL for c in _by_data(scores, family, "log_loss").values()]
    balanced = {family: change_of(scores, family, "balanced_f1") for family in ALL}
    prior = _class_prior(scores)
    return TEMPLATE.read_text(encoding="utf-8").format(
        n_data=len({place.data for place in scores.places}),
        n_families=sum(map(bool, outcomes.values())),
        winning=_families(outcomes, WIN),
        even=_families(outcomes, TIE),
        losing=_families(outcomes, LOSS),
        log_loss_wins=sum(c.outcome == WIN for c in log_loss),
        log_loss_losses=sum(c.outcome == LOSS for c in log_loss),
        log_loss_all=len(log_loss),
        time=_median(time_ratios(scores, DEFAULT)),
        targets=target_list(scores),
        situations=situation_table(scores),
        bases=base_table(scores),
        losses=loss_table(scores),
        changes=change_table(scores),
        balanced_wins=_families(balanced, WIN),
        balanced_losses=_families(balanced, LOSS),
        amounts=amount_table(scores),
        wrong_labels=wrong_label_table(scores),
        counts=count_table(scores),
        prior_ours=prior[DEFAULT],
        prior_name=prior["peer"],
        prior_peer=prior[prior["peer"]],
        prior_constant=prior["constant"],
        n_seeds=scores.n_seeds(),
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
    counts = Counter(c.outcome for c in _values(compared))
    most = [o for o in (WIN, LOSS) if 2 * counts[o] > len(compared)]
    return most[0] if most else TIE


def _families(outcomes, outcome):
    found = [
        f"{family} ({_signed(_mean(_values(compared)))})"
        for family, compared in outcomes.items()
        if compared and outcome_of(compared) == outcome
    ]
    return ", ".join(found) or "none"


def change_of(scores, family, score, method=DEFAULT, base="macro_f1"):
    """Return how a score of `method` differs from the default's macro-F1, on each data set."""
    found = {}
    for _, data, places in (one for one in scores.by_family() if one[0] == family):
        places = [p for p in places if len(scores.mean([p], method, score))]
        ours, default = scores.mean(places, method, score), scores.mean(places, DEFAULT, base)
        if len(ours) and len(ours) == len(default):
            found[data] = Compared(ours, default, DEFAULT, lower=False)
    return found


def _values(compared):
    return list(compared.values())


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


def base_table(scores):
    """Return differences and outcomes against the best peer with the same base, by family."""
    rows = []
    for family in ALL:
        row = [family]
        for method in (SAME_FOREST, SAME_LINEAR):
            places = [p for p in scores.places if p.family == family]
            found = [scores.compare([place], method, "macro_f1") for place in places]
            compared = [c for c in found if c is not None]
            row += [_signed(_mean(compared)), _counts(compared) if compared else ""]
        if any(row[1:]):
            rows.append(row)
    outcome = "wins / ties / losses"
    return markdown(["labels", "forest", outcome, "linear", outcome], rows)


def loss_table(scores):
    """Return every loss on a data set, by score: of the default, and with the bases of peers."""
    rows = []
    for score, name in SCORES.items():
        for method in EVERY if score == "macro_f1" else (DEFAULT,):
            for family in ALL:
                for data, c in _by_data(scores, family, score, method).items():
                    if c.outcome == LOSS:
                        both = mean_and_sd(c.ours), mean_and_sd(c.theirs)
                        rows.append([name, method, family, data_name(data), *both, c.peer])
    return markdown(["score", "method", "labels", "data", "looselabels", "best peer", "peer"], rows)


def change_table(scores):
    """Return what other parameters than the defaults do to macro-F1, by family."""
    rows = []
    for family in ALL:
        default = _values(_by_data(scores, family, "macro_f1"))
        if not default:
            continue
        row = [family, f"{np.mean([c.ours.mean() for c in default]):.3f}"]
        for score, method in (
            ("balanced_f1", DEFAULT),
            ("macro_f1", SAME_FOREST),
            ("macro_f1", SAME_LINEAR),
        ):
            change = _values(change_of(scores, family, score, method))
            row += [_signed(_mean(change)), _counts(change)]
        rows.append(row)
    outcome = "wins / ties / losses"
    changes = ['`decide="balanced"`', "forest", "linear"]
    return markdown(["labels", "default", *(x for c in changes for x in (c, outcome))], rows)


def amount_table(scores):
    """Return differences to the best peer by the number of labels."""
    rows = []
    for family in ALL:
        compared = {amount: [] for amount in AMOUNTS}
        for place in (p for p in scores.places if p.family == family):
            counts = sorted(p.labels for p in scores.places if p[:2] == place[:2])
            found = scores.compare([place], DEFAULT, "macro_f1")
            if len(counts) == len(SHARES[place.problem]) and found is not None:
                amount = AMOUNTS[-len(counts) :][counts.index(place.labels)]
                compared[amount].append(found)
        if any(compared.values()):
            cells = [[_signed(_mean(c)), _counts(c) if c else ""] for c in compared.values()]
            rows.append([family, *(cell for pair in cells for cell in pair)])
    outcome = "wins / ties / losses"
    return markdown(["labels", *(name for a in AMOUNTS for name in (a, outcome))], rows)


def wrong_label_table(scores):
    """Return how well wrong labels are ranked and corrected, by problem."""
    rows = []
    pairs = list(by_problem(scores, NOISY))
    for problem in dict.fromkeys(places[0].problem for _, places in pairs):
        every = [places for _, places in pairs if places[0].problem == problem]
        for method in EVERY:
            row = [problem, method]
            for score in ("auprc", "corrected"):
                found = [compare_with_cleanlab(scores, places, method, score) for places in every]
                row += _pair([c for c in found if c is not None])
            best = [scores.mean(places, true_transition(method), "corrected") for places in every]
            means = [values.mean() for values in best if len(values)]
            row.append(f"{np.mean(means):.3f}" if means else "")
            rows.append(row)
    columns = [
        name
        for score in ("AUPRC", "right")
        for name in (score, f"{score}, cleanlab", "wins / ties / losses")
    ]
    return markdown(["problem", "method", *columns, "right, true transition"], rows)


def _pair(found):
    """Return our mean, the peer's mean and the outcomes as cells of a table."""
    if not found:
        return [""] * 3
    means = [np.mean([getattr(c, who).mean() for c in found]) for who in ("ours", "theirs")]
    return [*(f"{mean:.3f}" for mean in means), _counts(found)]


def target_list(scores):
    """Return each target, its goal and in which share of the comparisons it was reached."""
    rows = []
    on_test = check_targets(scores.of_data(TEST))
    for test, every in zip(on_test, check_targets(scores), strict=True):
        rows.append([every.words, f"{every.goal:.0%}", test.percent, every.percent])
    return markdown(["target", "goal", "test half", "all data"], rows)


def _class_prior(scores):
    """Return the mean error of the class prior: ours, the best peer's, the best constant's."""
    places = prior_places(scores)
    errors = {}
    for name, method in METHODS.items():
        error = scores.mean(places, name, "class_prior_error")
        if method.role == PEER or name == DEFAULT:
            errors[name] = float(error.mean()) if len(error) else np.nan
    peers = {name: e for name, e in errors.items() if name != DEFAULT and not np.isnan(e)}
    peer = min(peers, key=lambda name: peers[name]) if peers else DEFAULT
    constant = best_constant(scores, places) if places else np.nan
    return errors | {"peer": peer, "constant": constant}


def _median(values):
    return float(np.median(values)) if values else np.nan
