"""A fitted classifier and its labels → labels to doubt, what they should be, how certain that is.

If a class is never labeled and no label is expected to be wrong, unlabeled rows take the place of
labels: which of them are probably of a class that has labels (`Audit.question`).

Nothing is computed here: every number comes from `inference`, `intervals` or `reliability`. Here it
is combined with names and sentences.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from looselabels import __version__
from looselabels._files import check_parent, new_file
from looselabels._names import read_classes, shown
from looselabels._rows import on_simplex
from looselabels._validation import as_counts, import_extra
from looselabels.auditing.diagnose import Finding, diagnose, skill_of
from looselabels.auditing.intervals import (
    add_noise_range,
    add_share_range,
    draw,
    draw_from_mass,
)
from looselabels.auditing.pages import page_content, summary_html
from looselabels.auditing.report import render, verdict
from looselabels.estimation.quantiles import quantile_interval
from looselabels.estimation.reliability import reliability
from looselabels.estimation.sampling import sample_rows
from looselabels.estimation.weighting import weighted_transition
from looselabels.inference import label_mass
from looselabels.learning.classifier import DecoupledClassifier
from looselabels.learning.decoupling import insert_known
from looselabels.learning.label_model import LabelModel
from looselabels.plotting import AuditDisplay
from looselabels.transition import Transition, can_be_wrong, is_missing, meanings

DOUBTED = 0.5  # doubt above which a label is more likely wrong than right
POSSIBLE = 0.1  # doubt above which the most probable other class is named
MAX_DIVERGENCE = 0.1  # nats; above this no combination of classes reproduces p(label | x)
MAX_ROWS = 5_000  # from which shares of all rows are computed
MAX_LETTERS = 10_000  # of a name that is converted to text
COLUMNS = ("row", "label", "suggestion", "class_proba", "label_proba", "doubt", "why")
ENDS = ("expected", "low", "high")  # of an estimated number of rows
TABLES = {"pandas": '"looselabels[tables]"', "polars": "polars"}

# Why wrong labels are not counted (`Audit.why_no_count`).
NO_LABELS = "No row has a label, so there is no label to check."
TAKEN_TO_BE_RIGHT = (
    "Labels were taken to be right: noise is 0. Fit with noise='estimate' to look for wrong labels."
)
USELESS_FEATURES = "Wrong labels cannot be found: the features do not predict the labels."


def audit(
    clf=None,
    y=None,
    X=None,
    *,
    label_proba=None,
    labels=None,
    transition=None,
    decisions=None,
    random_state=0,
) -> "Audit":
    """Find labels that are probably wrong and what they should be, with probabilities.

    Three ways to call it: ``audit(clf, y)`` with a fitted classifier and the labels that it was
    fitted to; ``audit(clf, y, X)`` with rows that it was not fitted to; or
    ``audit(label_proba=…, labels=…)`` with out-of-sample p(label | x) of any model.

    If a class is never labeled and labels are taken to be right, it finds the unlabeled rows that
    are probably of a labeled class instead; see `Audit.question`.

    Counts are counts of rows: how many labels of this table are wrong. Sample weights of the fit do
    not change them. Class shares, the transition and the calibration describe what the rows stand
    for, and use the weights, like the classifier.

    Parameters
    ----------
    clf : DecoupledClassifier
        Fitted.
    y : column of shape (n_samples,)
        The labels as given.
    X : features that the classifier accepts, optional
        Rows other than those of the fit. Required for a model that was loaded from a file, which
        does not contain its training rows.
    label_proba : array of shape (n_samples, n_labels)
        Columns in the order of the transition's labels; without a transition, in the sorted order
        of the labels, the missing label last. Columns of a DataFrame are matched by name.
    labels : column of shape (n_samples,)
        The labels that belong to label_proba.
    transition : Transition, optional
        How the labels arise. None: each label names a class, some may be missing, and the noise is
        estimated.
    decisions : column of shape (n_samples,), default=None
        The classes of rows that were reviewed, missing for all others; see `known_classes` of
        `DecoupledClassifier.fit`. The label model is estimated again with them, but no estimator is
        fitted. With `X`, only the reviewed rows change.
    random_state : int, default=0
        Seed of the draws for the intervals.

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
        clf.fit_from_proba(label_proba, labels, known_classes=decisions)
    check_is_fitted(clf, "converged_")
    index, known = clf.transition_.label_index(y), None
    if decisions is not None:
        known = read_classes("decisions", decisions, clf.transition_.classes, len(index))
    if X is not None:
        return Audit(
            clf.label_model_,
            index,
            clf.predict_proba(X),
            insert_known(clf.predict_proba_given_label(X, y), known),
            bool(clf.converged_),
            class_index=known,
            random_state=random_state,
        )
    if not hasattr(clf, "class_proba_"):
        raise ValueError("A model loaded from a file has no rows; pass them: audit(clf, y, X).")
    if len(index) != len(clf.class_proba_):
        raise ValueError(
            f"y has {len(index)} rows; the classifier was fitted to {len(clf.class_proba_)}. Pass "
            "the rows that y belongs to: audit(clf, y, X)."
        )
    clf = clf.with_known_classes(decisions)
    model, groups = clf.label_model_, clf.label_scores_.groups
    skill = skill_of(model, clf.label_scores_._replace(label_index=index))
    return Audit(
        model,
        index,
        clf.class_proba_,
        clf.class_proba_given_label_,
        bool(clf.converged_),
        label_accuracy=None if skill is None else skill.accuracy,
        share_infeasible=_share_infeasible(clf.label_scores_, clf.calibration_, model),
        findings=tuple(diagnose(clf, y)),
        copies_per_row=1.0 if groups is None else groups.copies_per_row,
        sample_weight=clf.sample_weight_,
        candidate_losses=clf.candidate_losses_,
        class_index=clf.label_scores_.class_index,
        random_state=random_state,
    )


@dataclass(frozen=True, eq=False, repr=False)
class Audit:
    """The result of `audit`: a table of rows, and summaries with 90 % intervals.

    `question` says whether it is about labels or about unlabeled rows; `table`, `plot` and
    `to_html` show the answer.
    """

    model: LabelModel  #: how labels arise, and where each number comes from
    label_index: np.ndarray
    class_proba: np.ndarray
    class_proba_given_label: np.ndarray
    converged: bool
    label_accuracy: float | None = None  #: how often the most probable label is the given one
    share_infeasible: float | None = None  #: rows whose p(label | x) no class distribution explains
    findings: tuple[Finding, ...] = ()  #: tests of the assumptions; see `diagnose`
    copies_per_row: float = 1.0  #: by which copies reduce the evidence; see `RowGroups`
    sample_weight: np.ndarray | None = None  #: for shares and calibration; rows count once
    candidate_losses: dict | None = None  #: log-loss of the labels by each candidate estimator
    class_index: np.ndarray | None = None  #: of rows whose class is known, −1 elsewhere
    random_state: Any = 0

    def __repr__(self):
        size = f"{len(self.label_index)} rows, {self.is_labeled.sum()} labeled"
        return f"Audit({size}. {verdict(self._counts())})"

    @cached_property
    def question(self) -> str:
        """What the audit asks: which "labels" are wrong, or which classes "unlabeled" rows are of.

        It asks about unlabeled rows if a class is never labeled (positive-unlabeled learning). The
        number of wrong labels is in the summary as well.
        """
        is_about_rows = self.is_never_labeled.any() and not self.is_labeled.all()
        return "unlabeled" if is_about_rows else "labels"

    @property
    def why_no_count(self) -> str | None:
        """Why wrong labels cannot be counted, in a sentence; None: they can."""
        if not self.is_labeled.any():
            return NO_LABELS
        if self.is_reviewed[self.is_labeled].all():
            return None
        if self.model.sources.noise != "estimated" and not self._is_noise_possible:
            return TAKEN_TO_BE_RIGHT
        if any(finding.kind == "features" and finding.found for finding in self.findings):
            return USELESS_FEATURES
        return None

    @property
    def _is_noise_possible(self) -> bool:
        return bool(np.any(self.transition.proba.T[~self.is_right] > 0))

    # ------------------------------------------------------------------------------- rows

    @property
    def transition(self) -> Transition:
        """How labels arise, as it was used in the end."""
        return self.model.transition

    @cached_property
    def is_right(self) -> np.ndarray:
        """Which labels are right for which classes, (n_labels, n_classes)."""
        return meanings(self.transition)

    @cached_property
    def is_labeled(self) -> np.ndarray:
        """Which rows have a label that can be wrong."""
        return can_be_wrong(self.transition)[self.label_index]

    @cached_property
    def is_never_labeled(self) -> np.ndarray:
        """Which classes no label stands for, such as the negative class, (n_classes,)."""
        return ~self.is_right[can_be_wrong(self.transition)].any(axis=0)

    @cached_property
    def is_asked(self) -> np.ndarray:
        """Which rows the question is about: those with a label, or those without."""
        return self.is_labeled == (self.question == "labels")

    @cached_property
    def is_reviewed(self) -> np.ndarray:
        """Which rows have a known class; their doubt is 0 or 1."""
        if self.class_index is None:
            return np.zeros(len(self.label_index), dtype=bool)
        return self.class_index >= 0

    @cached_property
    def label_proba(self) -> np.ndarray:
        """Return p(label | x) of each row's own label."""
        rows = np.arange(len(self.label_index))
        return (self.class_proba @ self.transition.proba)[rows, self.label_index]

    @cached_property
    def doubt(self) -> np.ndarray:
        """The probability that each row's label is wrong, given x and the label; 0 without one."""
        wrong = ~self.is_right[self.label_index]
        return np.minimum(np.sum(self.class_proba_given_label * wrong, axis=1), 1)

    @cached_property
    def suggestion(self) -> np.ndarray:
        """The position of each row's most probable class, given x and the label."""
        return self.class_proba_given_label.argmax(axis=1)

    @cached_property
    def positive_proba(self) -> np.ndarray:
        """The probability that each row is of a class that has labels, given x and the label."""
        return np.sum(self.class_proba_given_label[:, ~self.is_never_labeled], axis=1)

    @cached_property
    def order(self) -> np.ndarray:
        """The rows that the question is about, then the others, then reviewed rows.

        The most doubted label comes first, or the unlabeled row that is most surely positive.
        """
        value = self.doubt if self.question == "labels" else self.positive_proba
        return np.lexsort((-value, ~self.is_asked, self.is_reviewed))

    def why(self, row) -> str:
        """Return one short clause about the label of a row."""
        label = self.transition.labels[self.label_index[row]]
        best = self.transition.classes[self.suggestion[row]]
        if self.is_reviewed[row]:
            return f"reviewed: {shown(best)!r}"
        if self.question == "unlabeled":
            return self._why_positive(row)
        if not self.is_labeled[row]:
            return f"no label; looks like {shown(best)!r}"
        if self.doubt[row] > DOUBTED:
            return f"looks like {shown(best)!r}, not {shown(label)!r}"
        if self.doubt[row] > POSSIBLE:
            is_right = self.is_right[self.label_index[row]]
            others = np.where(is_right, -1, self.class_proba_given_label[row])
            return f"could be {shown(self.transition.classes[int(others.argmax())])!r}"
        return "fits"

    def _why_positive(self, row) -> str:
        """Return one short clause about the class of a row if labels are taken to be right."""
        if self.is_labeled[row]:
            return "labeled; taken to be right"
        proba = self.class_proba_given_label[row]
        labeled = self.transition.classes[int(np.where(self.is_never_labeled, -1, proba).argmax())]
        if self.positive_proba[row] > DOUBTED:
            return f"looks like {shown(labeled)!r}"
        if self.positive_proba[row] > POSSIBLE:
            return f"could be {shown(labeled)!r}"
        return f"looks like {shown(self.transition.classes[self.suggestion[row]])!r}"

    def records(self, most=None) -> list[dict]:
        """Return the first rows in their `order` as plain values; rows count from 0."""
        classes, labels = self.transition.classes, self.transition.labels
        rows = self.order[:most].tolist()
        return [
            {
                "row": i,
                "label": labels[self.label_index[i]],
                "suggestion": classes[self.suggestion[i]],
                "class_proba": float(self.class_proba_given_label[i, self.suggestion[i]]),
                "label_proba": float(self.label_proba[i]),
                "doubt": float(self.doubt[i]),
                "why": self.why(i),
            }
            for i in rows
        ]

    def table(self, library="pandas"):
        """Return all rows as a DataFrame of pandas or polars, in their `order`.

        Names keep their types; in polars, tuples and names of several types become text.
        """
        if library not in TABLES:
            raise ValueError(f"library must be one of {tuple(TABLES)}; it is {library!r}.")
        frames = import_extra(library, TABLES[library])
        records = self.records()
        columns = {name: [record[name] for record in records] for name in COLUMNS}
        for name in ("label", "suggestion"):
            if library == "pandas":  # as objects, names keep their types: 1 and None, tuples
                columns[name] = frames.Series(columns[name], dtype=object)
            elif not _is_one_type(columns[name]):  # a column of polars has one type
                columns[name] = [
                    value if value is None else shown(value, MAX_LETTERS) for value in columns[name]
                ]
        return frames.DataFrame(columns)

    # ------------------------------------------------------------------- notebooks and pages

    def _repr_html_(self):
        return summary_html(self)

    def plot(self, axes=None) -> AuditDisplay:
        """Draw how many rows have which doubt, and which classes labels stand for.

        The first plot has the doubts of the labels, or the probabilities of unlabeled rows to be of
        a class that has labels; the second has the expected rows of each label and class (needs
        matplotlib). `axes` are two matplotlib Axes; None: those of a new figure.
        """
        is_about_labels = self.question == "labels"
        value = self.doubt if is_about_labels else self.positive_proba
        name = "doubt" if is_about_labels else "p(labeled class | x, unlabeled)"
        names = self.transition.classes, self.transition.labels
        return AuditDisplay(value[self.is_asked], self.flow(), *names, name).plot(axes)

    def to_html(self, path, X=None, *, overwrite=False) -> None:
        """Write the report to the file `path`: one page without external files (needs jinja2).

        It lists the first 500 rows of the `order` that the question is about. The file is written
        completely or not at all.

        Parameters
        ----------
        path : str or path
            The file; its folder must exist.
        X : DataFrame or array, default=None
            What the page shows of each row, in the order of y: a DataFrame of pandas or polars, of
            which it shows the first four columns, or images, as an array of shape (n_rows, height,
            width) or (n_rows, height, width, 3).
        overwrite : bool, default=False
            Whether to replace an existing file.
        """

        def check(target):
            check_parent(target)
            if target.is_dir():
                raise IsADirectoryError(f"{target} is a folder; name a file in it.")
            if target.exists() and not overwrite:
                raise FileExistsError(f"{target} exists; overwrite=True replaces it.")

        with new_file(path, check) as temporary:
            temporary.write_text(render(*page_content(self, X)), encoding="utf-8")

    # -------------------------------------------------------------------------- summaries

    @cached_property
    def draws(self):
        """Return draws of class shares, transitions and label mass; see `intervals`."""
        return self._draw(1 if self.sample_weight is None else as_counts(self.sample_weight))

    @cached_property
    def _draws_of_rows(self):
        """Draws in which each row counts once, whatever its weight."""
        return self.draws if self.sample_weight is None else self._draw(1)

    @cached_property
    def _n_wrong(self):
        """Draws of how many labels are wrong in rows that were not reviewed."""
        draws = self._draws_of_rows
        if self.is_reviewed.any():
            draws = self._draw(~self.is_reviewed, by_rows=True)
        wrong = ~self.is_right.T & can_be_wrong(self.transition)
        return np.sum(draws.label_mass * wrong, axis=(1, 2))

    def _draw(self, counts, by_rows=False):
        is_always_right = ~can_be_wrong(self.transition)
        mass = self._label_mass(counts) / self.copies_per_row  # as much evidence as there is
        if by_rows:  # rows that were chosen, whose labels do not follow the transition
            proba, seed = self.transition.proba, self.random_state
            drawn = draw_from_mass(mass, proba, is_always_right, random_state=seed)
        else:
            drawn = draw(self.model, mass, is_always_right, random_state=self.random_state)
        return drawn._replace(label_mass=drawn.label_mass * self.copies_per_row)

    def _label_mass(self, counts):
        """Return how many rows of each class have each label if each row counts `counts` times."""
        counted = self.class_proba_given_label * np.reshape(counts, (-1, 1))
        return label_mass(counted, self.label_index, len(self.transition.labels))

    def summary(self) -> dict:
        """Return everything except the rows, in types that JSON has; intervals are 90 %."""
        return {
            "schema": 1,
            "looselabels": __version__,
            **self._counts(),
            "label_accuracy": self.label_accuracy,
            "candidate_losses": self.candidate_losses,
            "design": self._design(),
            "sources": self.model.sources._asdict(),
            "classes": self._class_shares(),
            "transition": self._transition(),
            "flow": self.flow().tolist(),
            "calibration": self._calibration(),
            "infeasible": self.share_infeasible,
            "unsupported_labels": self._unsupported(),
            "indistinct_classes": [list(group) for group in self.transition.indistinct_classes()],
            "converged": self.converged,
            "findings": [finding._asdict() for finding in self.findings],
        }

    def _counts(self):
        """Return the answers to both questions, and how many rows are more likely so than not."""
        wrong, positive = self._wrong(), self.positive_proba[~self.is_labeled] > DOUBTED
        return {
            "n_rows": len(self.label_index),
            "n_labeled": int(self.is_labeled.sum()),
            "question": self.question,
            "n_to_check": wrong["doubted"] if self.question == "labels" else int(positive.sum()),
            "wrong": wrong,
            "unlabeled": self._unlabeled(),
        }

    def flow(self) -> np.ndarray:
        """Return how many rows of each label are of each class, (n_labels, n_classes)."""
        return self._label_mass(1).T

    def _design(self):
        """Return what was assumed before anything was estimated; open label rates are left out."""
        if self.model.assumed is not None:
            return _named_matrix(self.model.assumed)
        names = _named_matrix(self.transition)
        return {"classes": names["classes"], "labels": names["labels"]}

    def _class_shares(self):
        share = self.draws.class_share.mean(axis=0)
        low, high = quantile_interval(self.draws.class_share, estimate=share)
        if self.model.class_prior_interval is not None:
            # this one knows how uncertain label rates are, and draws how classes divide the rest
            ends = self.model.class_prior_interval
            low, high = np.minimum(low, ends[0]), np.maximum(high, ends[1])
        return [
            {"name": name, "share": float(s), "low": float(a), "high": float(b)}
            for name, s, a, b in zip(self.transition.classes, share, low, high, strict=True)
        ]

    def _transition(self):
        low, high = quantile_interval(self.draws.transition, estimate=self.transition.proba)
        return _named_matrix(self.transition) | {"low": low.tolist(), "high": high.tolist()}

    def _wrong(self):
        why = {"why_no_count": self.why_no_count}
        if self.why_no_count is not None:  # no count is better than a wrong one
            return dict.fromkeys((*ENDS, "doubted")) | why
        expected = self._n_wrong.mean()
        interval = quantile_interval(self._n_wrong, estimate=expected)
        is_open = self.is_labeled & ~self.is_reviewed
        n_found = int(np.sum(self.doubt[self.is_reviewed]))
        wrong_share = self.model.wrong_share_interval
        low, high = add_noise_range(interval, expected, int(is_open.sum()), wrong_share)
        return {
            "expected": float(expected) + n_found,
            "low": low + n_found,
            "high": high + n_found,
            "doubted": int(np.sum(self.doubt[is_open] > DOUBTED)),
        } | why

    def _unlabeled(self):
        """Return how many unlabeled rows are of each class that has labels.

        None if every class has labels: then unlabeled rows are not the place to look for a class.
        """
        if not self.is_never_labeled.any() or self.is_labeled.all():
            return None
        n_rows = int(np.sum(~self.is_labeled))
        drawn = self._draws_of_rows.label_mass[:, :, ~can_be_wrong(self.transition)].sum(axis=2)
        expected = drawn.mean(axis=0)
        low, high = add_share_range(
            quantile_interval(drawn, estimate=expected), expected, len(self.label_index), self.model
        )
        columns = (expected, np.maximum(low, 0), np.minimum(high, n_rows))
        return {
            "n_rows": n_rows,
            "classes": [
                {
                    "name": self.transition.classes[y],
                    **{key: float(c[y]) for key, c in zip(ENDS, columns, strict=True)},
                }
                for y in np.flatnonzero(~self.is_never_labeled)
            ],
        }

    def _calibration(self):
        named = can_be_wrong(self.transition)
        if not named.any():
            return {"bins": [], "error": None}
        rows, position = np.flatnonzero(self.is_labeled), np.cumsum(named) - 1
        predicted = on_simplex((self.class_proba @ self.transition.proba)[rows][:, named])
        weight = None if self.sample_weight is None else as_counts(self.sample_weight)[rows]
        found = reliability(predicted, position[self.label_index[rows]], weight)
        names = ("confidence", "frequency", "count")
        columns = (column.tolist() for column in found[:3])
        bins = [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]
        return {"bins": bins, "error": found.error}

    def _unsupported(self):
        seen = set(self.label_index.tolist())
        labels = self.transition.labels
        return [name for s, name in enumerate(labels) if s not in seen and not is_missing(name)]


def _named_matrix(transition):
    return {
        "classes": list(transition.classes),
        "labels": list(transition.labels),
        "proba": transition.proba.tolist(),
    }


def _is_one_type(values) -> bool:
    types = {type(value) for value in values} - {type(None)}
    return len(types) <= 1 and tuple not in types


def _share_infeasible(scores, calibration, model: LabelModel) -> float:
    """Return the share of rows, of a few thousand, that the transition cannot explain."""
    transition = model.transition
    rows = sample_rows(len(scores.label_proba), MAX_ROWS)
    label_proba = calibration.apply(on_simplex(scores.label_proba[rows].astype(float)))
    inner = weighted_transition(transition.proba, scores.label_weights)
    weighted = Transition(inner, transition.classes, transition.labels)
    return float(np.mean(weighted.infeasible(label_proba, MAX_DIVERGENCE)))
