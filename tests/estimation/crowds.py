"""Simulated crowds, and the model of Dawid and Skene in plain loops."""

import numpy as np

from looselabels.annotations import Answers


def draw_labels(rng, proba):
    """Draw one label from each row of probabilities."""
    return (rng.random(len(proba))[:, None] > proba.cumsum(axis=1)[:, :-1]).sum(axis=1)


def crowd(rng, n_rows=500, n_annotators=20, n_classes=4, per_row=3):
    """Return answers, classes and transitions: experts, spammers and one systematic confuser."""
    classes = rng.integers(n_classes, size=n_rows)
    kinds = rng.choice([0.95, 0.7, 0.0], size=n_annotators, p=[0.3, 0.5, 0.2])
    competence = np.clip(kinds + rng.uniform(-0.1, 0.04, n_annotators) * (kinds > 0), 0, 1)
    transitions = competence[:, None, None] * np.eye(n_classes)
    transitions = transitions + (1 - competence[:, None, None]) / n_classes
    transitions[0] = np.roll(np.eye(n_classes), 1, axis=0) * 0.9 + 0.1 / n_classes
    row = np.repeat(np.arange(n_rows), per_row)
    annotator = rng.permuted(np.tile(np.arange(n_annotators), (n_rows, 1)), axis=1)[:, :per_row]
    annotator = np.sort(annotator, axis=1).ravel()
    label = draw_labels(rng, transitions[annotator, classes[row]])
    answers = Answers(row, annotator, label, n_rows, n_annotators, n_classes)
    return answers, classes, transitions


def dawid_skene(answers, n_steps=100):
    """Return p(class | answers) by the EM of Dawid and Skene, without shrinkage."""
    n_classes = answers.n_labels
    proba = np.zeros((answers.n_rows, n_classes))
    np.add.at(proba, (answers.row, answers.label), 1)
    proba /= proba.sum(axis=1, keepdims=True)
    for _ in range(n_steps):
        counts = np.full((answers.n_annotators, n_classes, n_classes), 1e-10)
        for row, annotator, label in zip(*answers[:3], strict=True):
            counts[annotator, :, label] += proba[row]
        logs = np.log(counts / counts.sum(axis=2, keepdims=True))
        scores = np.tile(np.log(proba.mean(axis=0) + 1e-10), (answers.n_rows, 1))
        for row, annotator, label in zip(*answers[:3], strict=True):
            scores[row] += logs[annotator, :, label]
        proba = np.exp(scores - scores.max(axis=1, keepdims=True))
        proba /= proba.sum(axis=1, keepdims=True)
    return proba
