"""looselabels and the peers: the consensus of the training rows, and a classifier for new rows."""

import io
import time
import warnings
from contextlib import contextmanager, redirect_stderr
from functools import cache
from typing import NamedTuple

import numpy as np
from benchmarks.annotators.peers import PEERS, crowdlab
from benchmarks.annotators.problems import make
from benchmarks.quality.answer import FOREST, LINEAR, OWN, make_base, place_columns
from benchmarks.quality.metrics import log_loss, macro_f1
from sklearn.dummy import DummyClassifier

from looselabels import DecoupledClassifier
from looselabels.annotations import Annotations
from looselabels.learning.training import Training

OURS, NO_FEATURES = "looselabels", "none"  # OWN: the default of looselabels
METHODS = dict.fromkeys(PEERS, (LINEAR, FOREST)) | {OURS: (NO_FEATURES, LINEAR, OWN)}
MIN_ANSWERS = 10  # of an annotator whose accuracy interval is checked


class Cell(NamedTuple):
    """One run."""

    data: str
    crowd: str
    answers: int
    seed: int
    method: str
    base: str


def run(cell, place, folder=None) -> dict:
    """Return the scores of a cell. Consensus is scored on the rows with an answer."""
    problem = make(place, cell.seed, folder)
    with warnings.catch_warnings(), redirect_stderr(io.StringIO()):  # progress bars of peers
        warnings.simplefilter("ignore")
        if cell.method == OURS:
            return _ours(problem, cell.seed, cell.base)
        begin = time.process_time()
        proba = _consensus(place, cell.seed, folder, cell.method, cell.base)
        predicted = _fit_consensus(problem, proba, make_base(cell.base, cell.seed))
    found = of_consensus(problem, proba) | {"seconds": time.process_time() - begin}
    return found | {"macro_f1": macro_f1(problem.y_test, predicted)}


def of_consensus(problem, proba):
    """Return the scores of p(class | x, answers) of the rows with an answer."""
    y = problem.y[is_answered(problem)]
    right, certainty = np.mean(proba.argmax(axis=1) == y), proba.max(axis=1).mean()
    return {"right": right, "certainty": certainty, "log_loss": log_loss(y, proba)}


def is_answered(problem):
    return (problem.answers >= 0).any(axis=1)


# ------------------------------------------------------------------------------ peers


def _consensus(place, seed, folder, method, base):
    """Return p(class | answers); only CROWDLAB depends on the base classifier."""
    return _cached(place, seed, folder, method, base if PEERS[method] is crowdlab else None)


@cache
def _cached(place, seed, folder, method, base):
    problem = make(place, seed, folder)
    rows = is_answered(problem)
    return PEERS[method](
        problem.answers[rows], problem.n_classes, seed=seed, base=base and make_base(base, seed),
        X=problem.X[rows],
    )  # fmt: skip


def _fit_consensus(problem, proba, base):
    """Return the classes of the test rows, predicted by the base fitted to the consensus."""
    classes = proba.argmax(axis=1)
    if len(np.unique(classes)) == 1:  # some peers find a single class
        base = DummyClassifier()
    return base.fit(problem.X[is_answered(problem)], classes).predict(problem.X_test)


# ------------------------------------------------------------------------------ ours


def _ours(problem, seed, base):
    """Return the scores of looselabels; NO_FEATURES: from the answers alone."""
    Y = _annotations(problem)
    X = None if base == NO_FEATURES else problem.X
    estimator = None if base == NO_FEATURES else make_base(base, seed)
    with _counted() as counted:
        begin = time.process_time()
        clf = DecoupledClassifier(estimator, random_state=seed).fit(X, Y)
        seconds = time.process_time() - begin
    columns = clf.classes_.astype(int)
    proba = place_columns(clf.class_proba_given_label_, columns, problem.n_classes)
    scores = of_consensus(problem, proba[is_answered(problem)]) | _intervals(problem, clf)
    scores["seconds"] = seconds
    if X is not None:
        scores["macro_f1"] = macro_f1(problem.y_test, clf.predict(problem.X_test))
        scores["cross_predictions"] = counted["calls"]
        scores["time_ratio"] = seconds / counted["seconds"]
    return scores


def _annotations(problem):
    """Return the answers as looselabels takes them; a function that abstains says so."""
    table = np.where(problem.answers < 0, None, problem.answers.astype(object))
    return Annotations.from_table(table, missing_is_label=problem.abstains)


def _intervals(problem, clf):
    """Return how many annotators have enough answers, and how many intervals are right."""
    quality = clf.annotator_quality_
    asked = np.asarray(quality["answers"]) >= MIN_ANSWERS
    accuracy = problem.accuracy[np.array(list(clf.annotators_), dtype=int)]
    is_held = (np.asarray(quality["low"]) <= accuracy) & (accuracy <= np.asarray(quality["high"]))
    return {"intervals": asked.sum(), "held": np.sum(is_held & asked)}


@contextmanager
def _counted():
    """Count and time the cross-predictions: models that predict rows that they have not seen."""
    counted = {"calls": 0, "seconds": 0.0}
    known = {name: getattr(Training, name) for name in ("score", "learn")}

    def count(function):
        def call(*args, **kwargs):
            begin = time.process_time()
            try:
                return function(*args, **kwargs)
            finally:
                counted["calls"] += 1
                counted["seconds"] += time.process_time() - begin

        return call

    for name, function in known.items():
        setattr(Training, name, count(function))
    try:
        yield counted
    finally:
        for name, function in known.items():
            setattr(Training, name, function)
