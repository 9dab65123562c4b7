"""Tables about wrong labels: how well they are found, corrected and counted."""

import numpy as np
from benchmarks.quality.answer import FOREST, LINEAR
from benchmarks.quality.markdown import data_name, markdown
from benchmarks.quality.methods import CLEANLAB, METHODS, named
from benchmarks.quality.problems import CHECKED, NOISY
from benchmarks.quality.scores import mean_and_sd
from benchmarks.quality.targets import EVERY, MIN_LABELS, by_problem, true_transition

CLEAN = tuple(family for family in CHECKED if family not in NOISY)
COMPARED = (*EVERY, named(CLEANLAB, FOREST), named(CLEANLAB, LINEAR))


def wrong_label_table(scores):
    """Return how well wrong labels are ranked, detected and corrected, next to cleanlab."""
    rows = []
    for data, places in by_problem(scores, NOISY):
        for method in EVERY:
            compared = compare_with_cleanlab(scores, places, method, "auprc")
            if compared is None:
                continue
            row = [places[0].problem, data_name(data), method, compared.peer]
            for score in ("auprc", "detection_f1", "corrected"):
                pair = (method, compared.peer)
                row += [mean_and_sd(scores.mean(places, name, score)) for name in pair]
            best = scores.mean(places, true_transition(method), "corrected")
            rows.append([*row, mean_and_sd(best)])
    columns = ("AUPRC", "F1 of detection", "right after correction")
    header = [f"{column}{who}" for column in columns for who in ("", ", cleanlab")]
    return markdown(["problem", "data", "method", "peer", *header, "true transition"], rows)


def compare_with_cleanlab(scores, places, method, score):
    """Compare `method` with cleanlab of the same base; the default with a forest."""
    base = LINEAR if METHODS[method].base == LINEAR else FOREST
    return scores.compare(places, method, score, named(CLEANLAB, base))


def count_table(scores):
    """Return how close the estimated number of wrong labels is, by problem and method."""
    rows = []
    pairs = list(by_problem(scores, NOISY))
    for problem in dict.fromkeys(places[0].problem for _, places in pairs):
        for method in COMPARED:
            found = counted(scores, [p for _, ps in pairs for p in ps], problem, method)
            if found is not None:
                rows.append([problem, method, *found])
    header = ["median error", "within 25 %", "interval contains the truth", "median width"]
    return markdown(["problem", "method", *header], rows)


def counted(scores, places, problem, method):
    """Return error, hits, coverage and width of the number of wrong labels, as text."""
    chosen = [p for p in places if p.problem == problem and p.labels >= MIN_LABELS]

    def values(score):
        found = [scores.mean([place], method, score) for place in chosen]
        return np.concatenate([*found, np.empty(0)])  # one per place and seed

    errors, held, widths = map(values, ("count_error", "count_held", "count_width"))
    if not len(errors):
        return None
    row = [f"{np.median(errors):.2f}", f"{(errors <= 0.25).sum()} of {len(errors)}"]
    if not len(held):
        return [*row, "", ""]
    return [*row, f"{held.sum():.0f} of {len(held)}", f"{np.median(widths):.2f}"]


def flagged_table(scores):
    """Return the share of right labels that are flagged, and how well labels are predicted."""
    rows = []
    for data, places in by_problem(scores, CLEAN):
        flagged = [scores.mean(places, name, "flagged") for name in COMPARED]
        accuracy = [scores.mean(places, name, "label_accuracy") for name in EVERY]
        if any(map(len, flagged)):
            shown = [f"{found.mean():.1%}" if len(found) else "" for found in flagged]
            row = [places[0].problem, data_name(data), *shown]
            rows.append(row + [mean_and_sd(found) for found in accuracy])
    header = ["problem", "data", *COMPARED, *(f"accuracy, {name}" for name in EVERY)]
    return markdown(header, rows)


def transition_table(scores):
    rows = []
    for family, data, places in scores.by_family():
        found = [scores.mean(places, name, "transition_error") for name in COMPARED]
        if any(map(len, found)):
            rows.append([family, data_name(data), *map(mean_and_sd, found)])
    return markdown(["family", "data", *COMPARED], rows)
