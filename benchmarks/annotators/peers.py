"""The peers, called as a user would, with their own defaults.

Each returns p(class | answers) of the rows with an answer. Only CROWDLAB uses the features.
"""

import contextlib
import io
from importlib import import_module

import numpy as np
from sklearn.model_selection import cross_val_predict

SETUP = {  # what to install, by the module that is missing
    "crowdkit": "pip install --no-deps crowd-kit; pip install attrs nltk",
    "cleanlab": "pip install cleanlab",
    "snorkel": "pip install --no-deps snorkel; pip install munkres networkx torch",
}


def majority_vote(answers, n_classes, **_):
    """Return the shares of the answers."""
    return _shares(answers, n_classes)


def dawid_skene(answers, n_classes, **_):
    return _crowdkit("DawidSkene", answers, n_classes)


def glad(answers, n_classes, **_):
    return _crowdkit("GLAD", answers, n_classes)


def mace(answers, n_classes, seed, **_):
    return _crowdkit("MACE", answers, n_classes, random_state=seed)


def snorkel(answers, n_classes, seed, **_):
    """Snorkel's label model: accuracies from the agreement of all pairs."""
    model = import_module("snorkel.labeling.model").LabelModel(n_classes, verbose=False)
    with contextlib.redirect_stderr(io.StringIO()):
        model.fit(answers, seed=seed, progress_bar=False)
    return model.predict_proba(answers)


def crowdlab(answers, n_classes, base, X, **_):
    """CROWDLAB: the base classifier learns the majority vote, out of sample."""
    multiannotator = import_module("cleanlab.multiannotator")
    used = np.flatnonzero((answers >= 0).any(axis=0))  # it refuses annotators without an answer
    labels = np.where(answers < 0, np.nan, answers)[:, used]
    vote = multiannotator.get_majority_vote_label(labels, verbose=False)
    predicted = np.zeros((len(vote), n_classes))
    known, index = np.unique(vote, return_inverse=True)
    predicted[:, known] = cross_val_predict(base, X, index, cv=5, method="predict_proba")
    found = multiannotator.get_label_quality_multiannotator(labels, predicted, verbose=False)
    return _posterior(found, labels, predicted)


def _posterior(found, labels, predicted):
    """Return CROWDLAB's p(class): a label's score is p of its class; the model has the rest."""
    proba = np.full(predicted.shape, np.nan)
    named = found["detailed_label_quality"].to_numpy(dtype=float)
    for a in range(labels.shape[1]):
        rows = np.flatnonzero(~np.isnan(labels[:, a]))
        proba[rows, labels[rows, a].astype(int)] = named[rows, a]
    best = found["label_quality"]
    rows = np.arange(len(proba))
    proba[rows, best["consensus_label"].astype(int)] = best["consensus_quality_score"]
    rest = np.where(np.isnan(proba), predicted + 1e-12, 0)
    rest *= np.clip(1 - np.nansum(proba, axis=1), 0, None)[:, None] / rest.sum(axis=1)[:, None]
    return np.where(np.isnan(proba), rest, proba)


def _crowdkit(name, answers, n_classes, **options):
    """Return the probabilities of one of crowd-kit's aggregations."""
    import pandas as pd

    model = getattr(import_module("crowdkit.aggregation"), name)(**options)
    rows, annotators = np.nonzero(answers >= 0)
    table = pd.DataFrame({"task": rows, "worker": annotators, "label": answers[rows, annotators]})
    found = model.fit_predict_proba(table)
    every = found.reindex(index=range(len(answers)), columns=range(n_classes))
    return every.fillna(0.0).to_numpy()


def _shares(answers, n_classes):
    counts = np.stack([np.sum(answers == k, axis=1) for k in range(n_classes)], axis=1)
    return counts / counts.sum(axis=1, keepdims=True)


PEERS = {
    "majority vote": majority_vote,
    "Dawid–Skene": dawid_skene,
    "GLAD": glad,
    "MACE": mace,
    "snorkel": snorkel,
    "CROWDLAB": crowdlab,
}
