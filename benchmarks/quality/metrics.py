"""Scores of an answer, the result of a method."""

import numpy as np
from sklearn.metrics import average_precision_score, f1_score

MIN_PROBA = 1e-6  # smaller probabilities are raised to it in the log-loss
BINS = 10


def score(problem, answer) -> dict:
    """Return a score for each part of the answer that is not None."""
    scores = {}
    if answer.class_proba is not None:
        scores |= of_classes(problem, answer.class_proba)
    if answer.balanced is not None:
        scores["balanced_f1"] = macro_f1(problem.truth_test, answer.balanced)
    if answer.class_prior is not None and problem.negative is not None:
        error = abs(answer.class_prior - problem.class_prior)
        scores["class_prior_error"] = error[: problem.negative].mean()
    if answer.transition is not None:
        row_error = abs(answer.transition - problem.transition.proba).sum(axis=1)
        scores["transition_error"] = row_error.mean()
    if answer.doubt is not None:
        scores |= of_wrong_labels(problem, answer) | of_count(problem, answer)
    if answer.label_accuracy is not None:
        scores["label_accuracy"] = answer.label_accuracy
    return {name: float(value) for name, value in scores.items()}


def of_classes(problem, class_proba):
    """Return the scores of p(class | x) on the test rows."""
    truth, predicted = problem.truth_test, class_proba.argmax(axis=1)
    scores = {
        "macro_f1": macro_f1(truth, predicted),
        "log_loss": log_loss(truth, class_proba),
        "calibration_error": calibration_error(truth, class_proba),
    }
    if problem.family == "positive-unlabeled":
        scores["positive_f1"] = f1_score(truth == 0, predicted == 0, zero_division=0)
        scores["average_precision"] = average_precision_score(truth == 0, class_proba[:, 0])
    return scores


def macro_f1(truth, predicted):
    return f1_score(truth, predicted, average="macro", zero_division=0)


def log_loss(truth, class_proba):
    """Return −mean log p(truth | x), with p ≥ 1e-6 before each row is normalized."""
    proba = np.maximum(class_proba, MIN_PROBA)
    proba /= proba.sum(axis=1, keepdims=True)
    return -np.log(proba[np.arange(len(truth)), truth]).mean()


def calibration_error(truth, class_proba):
    """Return the mean |confidence − accuracy| over bins of the largest p(class | x)."""
    confidence, right = class_proba.max(axis=1), class_proba.argmax(axis=1) == truth
    bins = np.minimum((confidence * BINS).astype(int), BINS - 1)
    return sum(abs(np.sum((confidence - right)[bins == b])) for b in range(BINS)) / len(truth)


def of_wrong_labels(problem, answer):
    """Return how well wrong labels are ranked, detected and corrected."""
    truth, wrong = _labeled(problem)
    scores = {
        "corrected": np.mean(answer.corrected == truth),
        "flagged": np.mean(answer.is_doubted),
    }
    if not wrong.any():  # clean labels
        return scores
    ranked = answer.doubt if isinstance(answer.doubt, list) else [answer.doubt]
    return scores | {
        "auprc": max(average_precision_score(wrong, doubt) for doubt in ranked),
        "detection_f1": f1_score(wrong, answer.is_doubted, zero_division=0),
    }


def of_count(problem, answer):
    """Return the error of the number of wrong labels, relative to the true one, if that is not 0.

    The interval is scored by whether it held the true number, and by its relative width.
    """
    _, wrong = _labeled(problem)
    n_wrong, scores = wrong.sum(), {}
    if answer.n_wrong is not None and n_wrong:
        scores["count_error"] = abs(answer.n_wrong / n_wrong - 1)
    if answer.n_wrong_interval is not None:
        low, high = answer.n_wrong_interval
        scores["count_held"] = low <= n_wrong <= high
        if n_wrong:
            scores["count_width"] = (high - low) / n_wrong
    return scores


def _labeled(problem):
    """Return the classes of rows whose label names one class, and which labels are wrong."""
    rows = problem.exact >= 0
    return problem.truth[rows], problem.exact[rows] != problem.truth[rows]
