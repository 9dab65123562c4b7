"""The rows that models learn from, where a table has more of them than a model needs.

Models are fitted to some rows, and each of these is predicted by a model that did not see it. All
other rows are predicted by the fitted model, which has not seen them either, block by block. Labels
take turns in the choice of rows, from the rarest to the most frequent, and each gets an equal part
of the room that is left: a rare label keeps all of its rows. In the sample, label s is

    w_s = p_sample(s) / p(s)

times as frequent as in the data. The models estimate p_w(s|x) ∝ w_s p(s|x), with known weights, as
in the draws of a balanced forest.
"""

import numpy as np
from sklearn.frozen import FrozenEstimator
from sklearn.utils import _safe_indexing, check_random_state

from looselabels.estimation.weighting import multiply_weights
from looselabels.learning.dask_rows import DaskRows
from looselabels.learning.label_design import LabelDesign
from looselabels.learning.label_model import LabelScores, score_labels
from looselabels.learning.out_of_sample import align, label_columns

BLOCK = 100_000  # rows that are predicted at once
MIN_ROWS = 2  # of a label, or groups: one to learn from, while the other is predicted


def choose_rows(
    label_index, max_rows, *, is_learned=None, groups=None, random_state=None
) -> np.ndarray | None:
    """Return the rows to fit models to, in increasing order; None: all of them.

    Parameters
    ----------
    label_index : integer array of shape (n_samples,)
        The label of each row.
    max_rows : int or None
        About how many rows to choose; None: all. There can be more of them: groups are taken
        whole, and each label keeps two rows.
    is_learned : bool array of shape (n_samples,), default=None
        Which rows a model may learn from. Others are chosen only with their group. None: all.
    groups : integer array of shape (n_samples,), default=None
        The group of each row, from 0.

    Examples
    --------
    >>> label_index = np.repeat([0, 1], [990, 10])
    >>> rows = choose_rows(label_index, 100, random_state=0)
    >>> np.bincount(label_index[rows])
    array([90, 10])
    """
    if max_rows is None or len(label_index) <= max_rows:
        return None
    rng = np.random.default_rng(check_random_state(random_state).randint(2**31 - 1))
    groups = np.arange(len(label_index)) if groups is None else groups
    sizes, is_chosen = np.bincount(groups), np.zeros(groups.max() + 1, dtype=bool)
    learned = np.flatnonzero(np.ones(len(groups), dtype=bool) if is_learned is None else is_learned)
    counts = np.bincount(label_index[learned])
    labels, room = np.flatnonzero(counts), float(max_rows)
    for n_done, label in enumerate(labels[np.argsort(counts[labels], kind="stable")]):
        found = np.unique(groups[learned[label_index[learned] == label]])
        found = rng.permutation(found[~is_chosen[found]])
        n_fitting = np.searchsorted(np.cumsum(sizes[found]), room / (len(labels) - n_done), "right")
        chosen = found[: max(n_fitting, MIN_ROWS)]
        is_chosen[chosen] = True
        room = max(room - sizes[chosen].sum(), 0.0)
    return np.flatnonzero(is_chosen[groups])


def sample_label_weights(design: LabelDesign, rows) -> np.ndarray:
    """Return how many times as frequent each label is in a sample of rows as in all rows."""
    n_labels, weight = len(design.transition.labels), design.sample_weight
    part = None if weight is None else weight[rows]
    sampled = np.bincount(design.label_index[rows], part, n_labels)
    total = np.bincount(design.label_index, weight, n_labels)
    shares = (sampled / sampled.sum(), total / total.sum())
    return np.divide(*shares, out=np.ones(n_labels), where=sampled > 0)


def weigh_sample(design: LabelDesign, rows, scores: LabelScores) -> LabelScores:
    """Return the scores of a sample with weights that make it stand for all rows.

    Rows whose labels were learned stay as much evidence as they are: they can be few of all rows.
    """
    drawn = sample_label_weights(design, rows)
    of_rows = 1 / drawn[scores.label_index]
    is_seen = np.isin(scores.label_index, scores.seen_labels)
    of_rows /= np.average(of_rows[is_seen], weights=scores.row_counts[is_seen])
    return scores._replace(
        sample_weight=multiply_weights(scores.sample_weight, of_rows),
        counts=multiply_weights(scores.counts, of_rows),
        label_weights=multiply_weights(scores.label_weights, drawn),
    )


def scores_of_sample(design: LabelDesign, rows, scores: LabelScores) -> LabelScores:
    """Return the scores of a part of all rows, with weights that make it stand for all of them."""
    part = score_labels(design.take(rows), scores.label_proba[rows], scores.label_weights)
    return weigh_sample(design, rows, part)._replace(label_weights=scores.label_weights)


def scores_with_known_classes(design: LabelDesign, scores: LabelScores, rows=None) -> LabelScores:
    """Return the scores after `design` knows the class of more rows.

    A reviewed row is no copy of the others any more, so they count anew. `rows` are those that the
    scores are a sample of; None: all.
    """
    if rows is None:
        return scores._replace(class_index=design.class_index, counts=design.counts)
    part = score_labels(design.take(rows), scores.label_proba, scores.label_weights)
    return weigh_sample(design, rows, part)._replace(label_weights=scores.label_weights)


def score_all_rows(estimator, X, design: LabelDesign, rows, scores: LabelScores) -> LabelScores:
    """Return the scores of all rows: those of the sample as they are, the others predicted.

    label_proba is in single precision, to take less memory.
    """
    weights, remote = scores.label_weights, None
    predictor = estimator, label_columns(estimator, design.transition)
    if isinstance(X, DaskRows):
        label_proba, remote = X.label_proba(*predictor, rows, scores.label_proba)
    else:
        label_proba = _all_label_proba(X, *predictor, rows, scores.label_proba)
    if not isinstance(estimator, FrozenEstimator):  # which did not learn from the sample
        weights = multiply_weights(weights, sample_label_weights(design, rows))
    return score_labels(design, label_proba, weights)._replace(remote=remote)


def _all_label_proba(X, estimator, columns, rows, known) -> np.ndarray:
    """Return `known` in its rows, and predictions in the others."""
    label_proba = np.empty((X.shape[0] if hasattr(X, "shape") else len(X), known.shape[1]), "f4")
    label_proba[rows] = known
    is_other = np.ones(len(label_proba), dtype=bool)
    is_other[rows] = False
    others = np.flatnonzero(is_other)
    for start in range(0, len(others), BLOCK):
        block = others[start : start + BLOCK]
        label_proba[block] = align(estimator, _safe_indexing(X, block), known.shape[1], columns)
    return label_proba
