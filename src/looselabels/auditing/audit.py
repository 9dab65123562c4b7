"""A fitted classifier and its labels → labels to doubt, what they should be, how sure that is.

Nothing is computed here: every number comes from `inference`, `uncertainty` and `calibration`, and
is put side by side with names and words.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from looselabels import __version__
from looselabels._names import shown
from looselabels._rows import on_simplex
from looselabels._validation import import_extra
from looselabels.auditing.diagnose import Finding, diagnose
from looselabels.auditing.intervals import draw, draw_from_mass, interval
from looselabels.estimation.calibration import reliability, weighted_transition
from looselabels.inference import label_mass
from looselabels.learning.classifier import DecoupledClassifier
from looselabels.transition import Transition, meanings

DOUBTED = 0.5  # doubt above which a label is more likely wrong than right
POSSIBLE = 0.1  # doubt from which another class is worth a word
UNEXPLAINED = 0.1  # nats by which no mix of classes explains p(label | x)
MOST_ROWS = 5000  # that shares over all rows are computed from
COLUMNS = ("row", "label", "suggestion", "class_proba", "label_proba", "doubt", "why")
MOST_LETTERS = 10_000  # of a name that becomes text
TABLES = {"pandas": '"looselabels[tables]"', "polars": "polars"}


def audit(
    clf=None, y=None, X=None, *, label_proba=None, labels=None, transition=None, random_state=0
) -> "Audit":
    """Say which labels to doubt and what they should be, and how sure that is.

    Either ``audit(clf, y)``: a fitted classifier and the labels that it was fitted to;
    ``audit(clf, y, X)``: a fitted classifier, and rows it was not fitted to; or
    ``audit(label_proba=…, labels=…)``: p(label | x) of any model, out of sample, and the labels.

    Parameters
    ----------
    clf : DecoupledClassifier
        Fitted.
    y : column of shape (n_samples,)
        The labels as given.
    X : what the classifier takes, optional
        Other rows than those of the fit. A model that was loaded needs it: it carries no rows.
    label_proba : array of shape (n_samples, n_labels)
        In the order of the transition's labels; without one, of the labels, sorted, and the missing
        one last.
    labels : column of shape (n_samples,)
        The labels that go with label_proba.
    transition : Transition, optional
        How the labels arise. None: the labels name classes, some are missing where some are, and
        how many are wrong is estimated.
    random_state : int, default=0
        Seed of the draws behind the intervals.

    Examples
    --------
    >>> label_proba = np.array([[0.95, 0.05]] * 20 + [[0.05, 0.95]] * 20)
    >>> labels = ["cat"] * 20 + ["dog"] * 19 + ["cat"]
    >>> t = Transition.identity(["cat", "dog"]).with_noise(0.05)
    >>> found = audit(label_proba=label_proba, labels=labels, transition=t)
    >>> found.table().head(1)[["row", "label", "suggestion", "why"]].values.tolist()
    [[39, 'cat', 'dog', "looks like 'dog', not 'cat'"]]
    """
    if clf is None:
        if label_proba is None or labels is None:
            raise ValueError("audit takes (clf, y), or label_proba= and labels=; one is missing.")
        noise = "estimate" if transition is None else 0.0
        clf, y = DecoupledClassifier(transition=transition, noise=noise), labels
        clf.fit_from_proba(label_proba, labels)
    check_is_fitted(clf, "converged_")
    design, index = clf.transition_, clf.transition_.label_index(y)
    if X is not None:
        proba, given_label = clf.predict_proba(X), clf.predict_proba_given_label(X, y)
        return Audit(clf, index, proba, given_label, None, random_state)
    if not hasattr(clf, "class_proba_"):
        raise ValueError("A model that was loaded carries no rows: pass them, audit(clf, y, X).")
    if len(index) != len(clf.class_proba_):
        raise ValueError(
            f"y has {len(index)} rows; the classifier was fitted to {len(clf.class_proba_)}. Pass "
            "the rows that y belongs to: audit(clf, y, X)."
        )
    unexplained = _share_unexplained(clf, design)
    given_label, findings = clf.class_proba_given_label_, tuple(diagnose(clf, y))
    return Audit(clf, index, clf.class_proba_, given_label, unexplained, random_state, findings)


@dataclass(frozen=True, eq=False, repr=False)
class Audit:
    """What `audit` found: a table of rows, and summaries with intervals of 90 %."""

    clf: DecoupledClassifier
    label_index: np.ndarray
    class_proba: np.ndarray
    class_proba_given_label: np.ndarray
    unexplained: float | None  #: the share of rows whose p(label | x) no mix of classes explains
    random_state: Any = 0
    findings: tuple[Finding, ...] = ()  #: what the labels say of the assumptions; see `diagnose`

    def __repr__(self):
        low, high = interval(self._n_wrong)
        return (
            f"Audit({len(self.label_index)} rows, {self.is_labeled.sum()} labeled: "
            f"{low:.0f} to {high:.0f} labels wrong, {(self.doubt > DOUBTED).sum()} to look at)"
        )

    # ------------------------------------------------------------------------------- rows

    @property
    def transition(self) -> Transition:
        """How labels arise, as assumed or as found."""
        return self.clf.transition_

    @cached_property
    def is_right(self) -> np.ndarray:
        """Which labels are right for which classes, (n_labels, n_classes)."""
        return meanings(self.transition)

    @cached_property
    def is_labeled(self) -> np.ndarray:
        """Which rows have a label that can be wrong."""
        return ~np.all(self.is_right, axis=1)[self.label_index]

    @cached_property
    def label_proba(self) -> np.ndarray:
        """Return p(label | x) of each row's own label."""
        rows = np.arange(len(self.label_index))
        return (self.class_proba @ self.transition.proba)[rows, self.label_index]

    @cached_property
    def doubt(self) -> np.ndarray:
        """How likely each row's label is wrong, given x and the label; 0 where there is none."""
        wrong = ~self.is_right[self.label_index]
        return np.minimum(np.sum(self.class_proba_given_label * wrong, axis=1), 1)

    @cached_property
    def suggestion(self) -> np.ndarray:
        """The position of each row's most probable class, given x and the label."""
        return self.class_proba_given_label.argmax(axis=1)

    @cached_property
    def order(self) -> np.ndarray:
        """The rows, most doubted first; rows without a label last."""
        return np.lexsort((-self.doubt, ~self.is_labeled))

    def why(self, row) -> str:
        """Return one short clause on the label of a row."""
        label = self.transition.labels[self.label_index[row]]
        best = self.transition.classes[self.suggestion[row]]
        if not self.is_labeled[row]:
            return f"no label; looks like {shown(best)!r}"
        if self.doubt[row] > DOUBTED:
            return f"looks like {shown(best)!r}, not {shown(label)!r}"
        if self.doubt[row] > POSSIBLE:
            others = np.where(self.is_right[self.label_index[row]], -1, self._given(row))
            return f"could be {shown(self.transition.classes[int(others.argmax())])!r}"
        return "fits"

    def _given(self, row):
        return self.class_proba_given_label[row]

    def records(self, most=None) -> list[dict]:
        """Return the first rows, most doubted first, as plain values."""
        classes, labels = self.transition.classes, self.transition.labels
        rows = self.order[:most].tolist()
        return [
            {
                "row": i,
                "label": labels[self.label_index[i]],
                "suggestion": classes[self.suggestion[i]],
                "class_proba": float(self._given(i)[self.suggestion[i]]),
                "label_proba": float(self.label_proba[i]),
                "doubt": float(self.doubt[i]),
                "why": self.why(i),
            }
            for i in rows
        ]

    def table(self, library="pandas"):
        """Return all rows as a DataFrame of pandas or polars, most doubted first.

        Names stay what they are; in polars tuples, and names of several types, become text.
        """
        if library not in TABLES:
            raise ValueError(f"library must be one of {tuple(TABLES)}; it is {library!r}.")
        frames = import_extra(library, TABLES[library])
        records = self.records()
        columns = {name: [record[name] for record in records] for name in COLUMNS}
        for name in ("label", "suggestion"):
            if library == "pandas":  # as objects names stay what they are: 1 and None, tuples
                columns[name] = frames.Series(columns[name], dtype=object)
            elif len({type(value) for value in columns[name]} - {type(None)}) > 1 or any(
                isinstance(value, tuple) for value in columns[name]
            ):  # polars has one type a column: text
                columns[name] = [
                    value if value is None else shown(value, MOST_LETTERS)
                    for value in columns[name]
                ]
        return frames.DataFrame(columns)

    # -------------------------------------------------------------------------- summaries

    @cached_property
    def draws(self):
        """Return draws of class shares, transitions and label mass that fit the label counts."""
        proba, seed = self.transition.proba, self.random_state
        if isinstance(self.clf.noise, str) or self.clf.negative is not None:
            # the rate of missing labels is in question where it was estimated
            is_sure = self.is_right.all(axis=1) & (self.clf.negative is None)
            return draw_from_mass(self.flow().T, proba, is_sure, random_state=seed)
        counts = np.bincount(self.label_index, minlength=proba.shape[1])
        return draw(counts, proba, self.clf.strength, random_state=seed)

    @cached_property
    def _n_wrong(self):
        wrong = ~self.is_right.T & ~self.is_right.all(axis=1)
        return np.sum(self.draws.label_mass * wrong, axis=(1, 2))

    def summary(self) -> dict:
        """Return everything but the rows, as JSON can hold it; intervals are of 90 %."""
        return {
            "schema": 1,
            "looselabels": __version__,
            "n_rows": len(self.label_index),
            "n_labeled": int(self.is_labeled.sum()),
            "design": _named_matrix(self.transition),
            "classes": self._class_shares(),
            "transition": self._transition(),
            "wrong": self._wrong(),
            "flow": self.flow().tolist(),
            "calibration": self._calibration(),
            "infeasible": self.unexplained,
            "unsupported_labels": self._unsupported(),
            "indistinct_classes": [list(group) for group in self.transition.indistinct_classes()],
            "converged": bool(self.clf.converged_),
            "findings": [finding._asdict() for finding in self.findings],
        }

    def flow(self) -> np.ndarray:
        """Return how many rows of each label are of each class, (n_labels, n_classes)."""
        given_label, n_labels = self.class_proba_given_label, len(self.transition.labels)
        return label_mass(given_label, self.label_index, n_labels).T

    def _class_shares(self):
        low, high = interval(self.draws.class_share)
        share = self.draws.class_share.mean(axis=0)
        return [
            {"name": name, "share": float(s), "low": float(a), "high": float(b)}
            for name, s, a, b in zip(self.transition.classes, share, low, high, strict=True)
        ]

    def _transition(self):
        low, high = interval(self.draws.transition)
        return _named_matrix(self.transition) | {"low": low.tolist(), "high": high.tolist()}

    def _wrong(self):
        low, high = interval(self._n_wrong)
        return {
            "expected": float(self._n_wrong.mean()),
            "low": float(low),
            "high": float(high),
            "doubted": int(np.sum(self.doubt > DOUBTED)),
        }

    def _calibration(self):
        named = ~self.is_right.all(axis=1)
        if not named.any():
            return {"bins": [], "error": None}
        rows, position = np.flatnonzero(self.is_labeled), np.cumsum(named) - 1
        said_of_labels = on_simplex((self.class_proba @ self.transition.proba)[rows][:, named])
        found = reliability(said_of_labels, position[self.label_index[rows]])
        names = ("confidence", "frequency", "count")
        columns = (column.tolist() for column in found)
        bins = [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]
        return {"bins": bins, "error": found.error}

    def _unsupported(self):
        seen = set(self.label_index.tolist())
        labels = self.transition.labels
        return [name for s, name in enumerate(labels) if s not in seen and name is not None]


def _named_matrix(transition):
    return {
        "classes": list(transition.classes),
        "labels": list(transition.labels),
        "proba": transition.proba.tolist(),
    }


def _share_unexplained(clf, design):
    """Return the share of rows, of a few thousand, that the transition cannot explain."""
    proba, weights = design.proba, clf.label_weights_
    if weights is not None:
        proba = weighted_transition(proba, weights)
    step = -(-len(clf.label_proba_) // MOST_ROWS)
    label_proba = clf.calibration_.apply(on_simplex(clf.label_proba_[::step].astype(float)))
    inner = Transition(proba, design.classes, design.labels)
    return float(np.mean(inner.infeasible(label_proba, UNEXPLAINED)))
