"""Simulate how often 90 % intervals of the accuracy of annotators hold the truth.

python benchmarks/quality_annotator_intervals.py [--runs 10] [--quick]

Four classes, 500 rows, annotators with at least 10 answers. About a third of them know the class in
93 % of the rows, a third in 70 %, and all others answer by chance. "one label set": all name the
classes. "coarse": half of them have two labels only, "0 or 1" and "2 or 3"; who they are is
specified (a design for each annotator), or has to be found. "rules" vote for one class or abstain.
Given the class, all are independent of each other, and of p(class | x) where there is one.
"""

import argparse

import numpy as np

from looselabels.annotations import Answers
from looselabels.estimation.annotators import annotator_accuracy, infer_from_annotators

N_ROWS, N_CLASSES, MIN_ANSWERS = 500, 4, 10
CROWDS = [(20, 3), (20, 8), (200, 3), (200, 8)]  # annotators, answers per row
FINE = np.hstack([np.eye(4), np.zeros((4, 2))])  # which label is right for which class
COARSE = np.hstack([np.zeros((4, 4)), np.repeat(np.eye(2), 2, axis=0)])


def one_label_set(rng, n_annotators, per_row):
    """Return accuracies and their estimates, if all annotators name the classes."""
    answers, true = draw_answers(rng, [FINE] * n_annotators, per_row)
    return true, infer_from_annotators(None, answers._replace(n_labels=N_CLASSES))


def coarse_specified(rng, n_annotators, per_row):
    """Return the same if the design of each annotator is specified."""
    designs = [FINE, COARSE] * (n_annotators // 2)
    answers, true = draw_answers(rng, designs, per_row)
    return true, infer_from_annotators(None, answers, designs=dict(enumerate(designs)))


def coarse_to_be_found(rng, n_annotators, per_row):
    """Return the same if only the meaning of all labels is specified."""
    answers, true = draw_answers(rng, [FINE, COARSE] * (n_annotators // 2), per_row)
    return true, infer_from_annotators(None, answers, designs=(FINE + COARSE) / 2)


def draw_answers(rng, designs, per_row):
    """Return answers, and the accuracy of each annotator."""
    n = len(designs)
    classes, competence = rng.integers(N_CLASSES, size=N_ROWS), rng.choice([0.93, 0.7, 0], n)
    competence = competence + rng.uniform(-0.05, 0.05, n) * (competence > 0)
    chance = np.array([design.any(axis=0) / design.any(axis=0).sum() for design in designs])
    share = competence[:, None, None]
    transitions = share * np.array(designs) + (1 - share) * chance[:, None]
    asked = np.sort(rng.random((N_ROWS, n)).argsort(axis=1)[:, :per_row], axis=1)
    row, annotator = np.repeat(np.arange(N_ROWS), per_row), asked.ravel()
    sums = transitions[annotator, classes[row]].cumsum(axis=1)
    label = np.minimum((rng.random((len(row), 1)) > sums).sum(axis=1), sums.shape[1] - 1)
    true = (transitions * np.array(designs)).sum(axis=2).mean(axis=1)
    return Answers(row, annotator, label, N_ROWS, n, FINE.shape[1]), true


def rules(rng, n_rules, has_features):
    """Return the same for rules that abstain."""
    rights, every = np.arange(n_rules) % N_CLASSES, np.arange(n_rules)
    fires = rng.uniform(0.01, 0.1, size=(N_CLASSES, n_rules))
    fires[rights, every] = rng.uniform(0.3, 0.7, n_rules)
    classes = rng.integers(N_CLASSES, size=N_ROWS)
    row, rule = np.nonzero(rng.random((N_ROWS, n_rules)) < fires[classes])
    answers = Answers(row, rule, rights[rule], N_ROWS, n_rules, N_CLASSES + 1, N_CLASSES)
    scores = np.exp(2 * rng.normal(2 * np.eye(N_CLASSES)[classes]))
    class_proba = scores / scores.sum(axis=1, keepdims=True) if has_features else None
    true = fires[rights, every] / fires.sum(axis=0)
    return true, infer_from_annotators(class_proba, answers)


def share_held(simulation, arguments, n_runs):
    """Return how many intervals there are, which share holds the truth, and the mean error."""
    held, errors = [], []
    for seed in range(n_runs):
        true, inferred = simulation(np.random.default_rng(seed), *arguments)
        found = annotator_accuracy(inferred)
        kept = found.n_answers >= MIN_ANSWERS
        held.append(((found.low <= true) & (true <= found.high))[kept])
        errors.append((found.accuracy - true)[kept])
    held = np.concatenate(held)
    return len(held), held.mean(), np.concatenate(errors).mean()


def main():
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=10, help="simulations per line")
    parser.add_argument("--quick", action="store_true", help="a small part, to test the script")
    options = parser.parse_args()
    n_runs, crowds = (1, CROWDS[:1]) if options.quick else (options.runs, CROWDS)
    crowd_names = {
        "one label set": one_label_set,
        "coarse, specified": coarse_specified,
        "coarse, to be found": coarse_to_be_found,
    }
    lines = [
        (f"{name} | {n} annotators, {per_row} per row", simulation, (n, per_row))
        for name, simulation in crowd_names.items()
        for n, per_row in crowds
    ]
    lines += [
        (f"rules that abstain | {n} rules, {words}", rules, (n, has_features))
        for n in (8, 40)
        for words, has_features in (("answers alone", False), ("with p(class given x)", True))
    ]
    print("| answers | size | intervals | hold the truth | mean error |\n|---|---|---|---|---|")
    for words, simulation, arguments in lines:
        count, share, error = share_held(simulation, arguments, n_runs)
        print(f"| {words} | {count} | {share:.0%} | {error:+.3f} |", flush=True)


if __name__ == "__main__":
    main()
