"""Which labels are probably wrong, which class is right instead, and how certain that is.

If a class is never labeled, the question is another one: which unlabeled rows are probably of a
class that has labels (`Audit.question`). This module is about single rows; `summary` has the
numbers about all of them.
"""

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import _num_samples, check_is_fitted

from looselabels._dask import in_memory
from looselabels._names import as_column, listed, read_classes, shown
from looselabels._rows import on_simplex
from looselabels._validation import as_counts, import_extra
from looselabels.auditing.consensus import audit_answers
from looselabels.auditing.diagnose import (
    Finding,
    better_model,
    diagnose,
    diagnose_new_rows,
    mean_skill,
    skills_of,
)
from looselabels.auditing.intervals import (
    draw,
    draw_from_mass,
)
from looselabels.auditing.pages import page_content, summary_html, write_page
from looselabels.auditing.report import verdict
from looselabels.auditing.summary import DOUBTED, counts, summarize
from looselabels.estimation.sampling import sample_rows
from looselabels.estimation.weighting import weighted_transition
from looselabels.inference import condition_on_label, given_label_proba, label_mass
from looselabels.learning.classifier import DecoupledClassifier
from looselabels.learning.copies import RowGroups, group_rows, specified_copies
from looselabels.learning.decoupling import insert_known
from looselabels.learning.label_model import LabelModel, LabelScores
from looselabels.learning.out_of_sample import PrecomputedProba
from looselabels.plotting import AuditDisplay
from looselabels.transition import Transition, can_be_wrong, is_missing

POSSIBLE = 0.1  # doubt above which the most probable other class is named
MAX_DIVERGENCE = 0.1  # nats; above this no combination of classes reproduces p(label | x)
MAX_ROWS = 5_000  # from which shares of all rows are computed
MAX_LETTERS = 10_000  # of a name that is converted to text
COLUMNS = ("row", "label", "suggestion", "class_proba", "label_proba", "doubt", "why")
TABLES = {"pandas": '"looselabels[tables]"', "polars": "polars"}

# Why wrong labels are not counted (`Audit.why_no_count`).
NO_LABELS = "No row has a label, so there is no label to check."
NEVER_WRONG = "Every label is possible for every class, so no label can be wrong."
ASSUMED_TO_BE_RIGHT = (
    "Labels were assumed to be right, as you specified. Fit with noise='estimate' to look for "
    "wrong labels."
)
RIGHT_WITH_STRENGTH = (
    "Labels were assumed to be right, because strength is finite and noise was not specified. Fit "
    "with noise='estimate' to look for wrong labels."
)
RIGHT_WITH_METHOD = (
    "Labels were assumed to be right, because class_prior names a method, which needs right "
    "labels. To look for wrong labels, fit with noise='estimate' and without class_prior."
)
# What follows from labels that are not predicted, and why they are not.
NO_WRONG_LABELS = "Wrong labels cannot be found: {}"
NO_UNLABELED_ROWS = "Unlabeled rows of a labeled class cannot be counted: {}"
USELESS_FEATURES = "the features do not predict the labels."
USELESS_ESTIMATOR = "your estimator does not predict the labels, but another does."
USELESS_PROBA = "the given probabilities do not predict the labels."
NOT_PREDICTED = "unknown: the labels cannot be predicted"  # `Audit.why` then


def audit(
    clf=None,
    y=None,
    X=None,
    *,
    label_proba=None,
    labels=None,
    transition=None,
    decisions=None,
    copies=None,
    random_state=0,
) -> "Audit":
    """Find labels that are probably wrong and what they should be, with probabilities.

    Three ways to call it: ``audit(clf, y)`` with a fitted classifier and the labels that it was
    fitted to; ``audit(clf, y, X)`` with rows that it was not fitted to; or
    ``audit(label_proba=…, labels=…)`` with out-of-sample p(label | x) of any model.

    If a class is never labeled, it finds the unlabeled rows that are probably of a labeled class
    instead; see `Audit.question`. Its summary counts wrong labels too, if labels can be wrong.

    If the features do not predict the labels, there are no suggestions: `Audit.predicts_labels`.

    Counts are counts of rows: how many labels of this table are wrong. Sample weights of the fit do
    not change them. Class shares, the transition and the calibration describe what the rows stand
    for, and use the weights, like the classifier.

    Parameters
    ----------
    clf : DecoupledClassifier, or a Pipeline that ends with one
        Fitted.
    y : column of shape (n_samples,), or table of shape (n_samples, n_annotators)
        The labels to check, in the order of the rows of the fit. Other labels than those of the fit
        are counted as given, but p(class | x, label) stays that of the fit; the order is not
        checked. With `X`, the labels of its rows. If the classifier was fitted to several answers
        per row, these answers; the result is then a `ConsensusAudit`.
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
    copies : column of shape (n_samples,), default=None
        Equal values in rows of `X` or `label_proba` that are copies of each other, which count
        once in intervals. None: copies are looked for in `X`. If equal rows are not copies, pass a
        different value for each row. The copies of rows of the fit are known.
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
    without_clf = {"label_proba": label_proba, "labels": labels, "transition": transition}
    _check_call({"y": y, "X": X} if clf is None else without_clf, clf)
    if clf is None:
        if label_proba is None or labels is None:
            raise ValueError("audit takes (clf, y), or label_proba= and labels=; one is missing.")
        clf, y = DecoupledClassifier(transition=transition), as_column(labels)
        clf.fit_from_proba(label_proba, y, copies=copies)
        copies = None
    if isinstance(clf, Pipeline):
        X = X if X is None else clf[:-1].transform(X)
        clf = clf[-1]
    check_is_fitted(clf, "converged_")
    if getattr(clf, "annotators_", None) is not None:
        for name, value in (("decisions", decisions), ("copies", copies)):
            if value is not None:
                raise ValueError(f"{name} cannot be combined with several answers per row.")
        # the type of the result follows from y, which a type checker does not see
        return audit_answers(clf, y, X, random_state=random_state)  # type: ignore[return-value]
    y = as_column(y)
    index, known = clf.transition_.label_index(y), None
    if decisions is not None:
        known = read_classes("decisions", decisions, clf.transition_.classes, len(index))
    if X is not None:
        class_proba, groups = in_memory(clf.predict_proba(X)), _copies_among(clf, X, copies)
        return audit_new_rows(clf, class_proba, index, groups, known, random_state)
    if copies is not None:
        raise ValueError(
            "copies cannot be combined with (clf, y): the fit knows them. Pass them to "
            "fit_from_proba, or pass the rows as well: audit(clf, y, X, copies=…)."
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
    skills = skills_of(model, clf.label_scores_._replace(label_index=index))
    return Audit(
        model,
        index,
        clf.class_proba_,
        clf.class_proba_given_label_,
        bool(clf.converged_),
        **_skill_of_audit(skills),
        share_infeasible=_share_infeasible(clf.label_scores_, clf.calibration_, model),
        findings=tuple(diagnose(clf, y)),
        groups=groups,
        sample_weight=clf.sample_weight_,
        candidate_losses=clf.candidate_losses_,
        has_own_proba=isinstance(clf.estimator_, PrecomputedProba),
        class_index=clf.label_scores_.class_index,
        random_state=random_state,
    )


def _copies_among(clf, X, copies):
    """Return the groups of copies in new rows; None: there are none."""
    if copies is not None:
        return specified_copies(copies, _num_samples(X))
    # probabilities can be equal by chance
    return None if isinstance(clf.estimator_, PrecomputedProba) else group_rows(X)


def audit_new_rows(
    clf, class_proba, label_index, groups=None, class_index=None, random_state=0
) -> "Audit":
    """Return the audit of rows that were not in the fit, from their predicted p(class | x)."""
    model, transition = clf.label_model_, clf.transition_.proba
    given_label = condition_on_label(class_proba, transition, label_index)  # checks their lengths
    counts = np.ones(len(label_index))
    scores = LabelScores(
        class_proba @ transition, label_index, None, None,
        counts=counts if groups is None else groups.count_once(label_index, counts),
        groups=groups,
    )  # fmt: skip
    return Audit(
        model,
        label_index,
        class_proba,
        insert_known(given_label, class_index),
        bool(clf.converged_),
        **_skill_of_audit(skills_of(model, scores)),
        findings=tuple(diagnose_new_rows(model, scores)),
        groups=groups,
        class_index=class_index,
        random_state=random_state,
    )


def _check_call(unused: dict, clf):
    """Raise if an argument of the other way to call `audit` is given; it would be ignored."""
    given = [name for name, value in unused.items() if value is not None]
    if given:
        way = "without a classifier" if clf is None else "with a classifier"
        raise ValueError(
            f"audit {way} does not use {listed(given)[1:-1]}. It takes either (clf, y, X=…), or "
            "label_proba=, labels= and transition=. Leave out what belongs to the other way."
        )


def _skill_of_audit(skills) -> dict:
    """Return how often labels are predicted, as an `Audit` has it, from `skills_of`."""
    skill = mean_skill(skills)
    return {
        "label_accuracy": None if skill is None else skill.accuracy,
        "source_accuracy": {
            name: of_source.accuracy for name, (of_source, _) in skills.items() if name is not None
        },
    }


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
    source_accuracy: dict = field(default_factory=dict)  #: the same within each of merged data sets
    share_infeasible: float | None = None  #: rows whose p(label | x) no class distribution explains
    findings: tuple[Finding, ...] = ()  #: tests of the assumptions; see `diagnose`
    groups: RowGroups | None = None  #: copies of rows, which reduce the evidence
    sample_weight: np.ndarray | None = None  #: for shares and calibration; rows count once
    candidate_losses: dict | None = None  #: log-loss of the labels by each candidate estimator
    has_own_proba: bool = False  #: whether p(label | x) was passed instead of rows
    class_index: np.ndarray | None = None  #: of rows whose class is known, −1 elsewhere
    random_state: Any = 0

    def __repr__(self):
        size = f"{len(self.label_index)} rows, {self.has_label.sum()} labeled"
        return f"Audit({size}. {verdict(counts(self))})"

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
        if not self.has_label.any():
            return NO_LABELS
        if not self.is_labeled.any():
            return NEVER_WRONG
        if self.is_reviewed[self.is_labeled].all():
            return None
        if self.model.sources.noise != "estimated" and not self._is_noise_possible:
            return self._why_right
        return None if self.predicts_labels else NO_WRONG_LABELS.format(self._why_not_predicted)

    @property
    def why_no_unlabeled_count(self) -> str | None:
        """Why unlabeled rows of a labeled class cannot be counted, in a sentence; None: they can.

        If neither label rates nor class shares are specified, only features that predict the labels
        show how many rows there are.
        """
        sources = self.model.sources
        is_open = sources.label_rates == sources.class_prior == "estimated"
        if not is_open or self.predicts_labels or self.is_reviewed[~self.is_labeled].all():
            return None
        return NO_UNLABELED_ROWS.format(self._why_not_predicted)

    @property
    def _why_not_predicted(self) -> str:
        if self.has_own_proba:
            return USELESS_PROBA
        is_best = better_model(self.candidate_losses) is None
        return USELESS_FEATURES if is_best else USELESS_ESTIMATOR

    @property
    def _why_right(self) -> str:
        """Return a sentence on why labels were assumed to be right, and what to change."""
        if self.model.sources.noise != "assumed":
            return ASSUMED_TO_BE_RIGHT
        return RIGHT_WITH_STRENGTH if np.isfinite(self.model.strength) else RIGHT_WITH_METHOD

    @property
    def predicts_labels(self) -> bool:
        """Whether the features predict the labels, out of sample, better than their frequencies.

        If not, `doubt` and `suggestion` say nothing about a row: no row is to be checked.
        """
        return not any(finding.kind == "features" and finding.found for finding in self.findings)

    @cached_property
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
        return self.transition.is_right

    @cached_property
    def is_labeled(self) -> np.ndarray:
        """Which rows have a label that can be wrong."""
        return can_be_wrong(self.transition)[self.label_index]

    @cached_property
    def has_label(self) -> np.ndarray:
        """Which rows have a label, also if no label of the transition can be wrong."""
        if can_be_wrong(self.transition).any():  # the missing label is the one that cannot
            return self.is_labeled
        return ~np.array(list(map(is_missing, self.transition.labels)))[self.label_index]

    @cached_property
    def is_never_labeled(self) -> np.ndarray:
        """Which classes no label stands for, such as the negative class, (n_classes,)."""
        can_be_given = can_be_wrong(self.transition)
        return can_be_given.any() & ~self.is_right[can_be_given].any(axis=0)

    @cached_property
    def is_asked(self) -> np.ndarray:
        """Which rows the question is about: those with a label, or those without."""
        return self.is_labeled == (self.question == "labels")

    @cached_property
    def is_open(self) -> np.ndarray:
        """Which rows can be reviewed next, the first ones of the `order`.

        The question is about them, nobody reviewed them, and `predicts_labels` is true.
        """
        return self.is_asked & ~self.is_reviewed & self.predicts_labels

    @cached_property
    def is_reviewed(self) -> np.ndarray:
        """Which rows have a known class; their doubt is 0 or 1."""
        if self.class_index is None:
            return np.zeros(len(self.label_index), dtype=bool)
        return self.class_index >= 0

    @cached_property
    def is_known(self) -> np.ndarray:
        """Which rows have a doubt and a suggestion that say something: see `predicts_labels`."""
        return self.is_reviewed | self.predicts_labels

    @cached_property
    def label_proba(self) -> np.ndarray:
        """Return p(label | x) of each row's own label."""
        return given_label_proba(self.class_proba, self.transition.proba, self.label_index)

    @cached_property
    def doubt(self) -> np.ndarray:
        """The probability that each row's label is wrong, given x and the label; 0 without one.

        It is as good as random unless `predicts_labels` is true.
        """
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

        The most doubtful label comes first, or the unlabeled row that is most probably positive.
        """
        return np.lexsort((-self._value, ~self.is_asked, self.is_reviewed))

    @cached_property
    def is_to_check(self) -> np.ndarray:
        """Which open rows more likely have a wrong label than not, or are of a labeled class."""
        return self.is_open & (self._value > DOUBTED)

    @property
    def _value(self) -> np.ndarray:
        """The probability that the question asks for."""
        return self.doubt if self.question == "labels" else self.positive_proba

    def why(self, row) -> str:
        """Return one short clause about the label of a row."""
        label = self.transition.labels[self.label_index[row]]
        best = self.transition.classes[self.suggestion[row]]
        if self.is_reviewed[row]:
            return f"reviewed: {shown(best)!r}"
        if not self.predicts_labels:
            return NOT_PREDICTED
        if self.question == "unlabeled" and not (self.is_labeled[row] and self._is_noise_possible):
            return self._why_positive(row)
        if not self.is_labeled[row]:
            no_label = "" if self.has_label[row] else "no label; "
            return f"{no_label}looks like {shown(best)!r}"
        if self.doubt[row] > DOUBTED:
            return f"looks like {shown(best)!r}, not {shown(label)!r}"
        if self.doubt[row] > POSSIBLE:
            is_right = self.is_right[self.label_index[row]]
            others = np.where(is_right, -1, self.class_proba_given_label[row])
            return f"could be {shown(self.transition.classes[int(others.argmax())])!r}"
        return "fits"

    def _why_positive(self, row) -> str:
        """Return one clause about a row without a label, or whose label is assumed to be right."""
        if self.is_labeled[row]:
            return "labeled; assumed to be right"
        proba = self.class_proba_given_label[row]
        labeled = self.transition.classes[int(np.where(self.is_never_labeled, -1, proba).argmax())]
        if self.positive_proba[row] > DOUBTED:
            return f"looks like {shown(labeled)!r}"
        if self.positive_proba[row] > POSSIBLE:
            return f"could be {shown(labeled)!r}"
        return f"looks like {shown(self.transition.classes[self.suggestion[row]])!r}"

    def records(self, most=None) -> list[dict]:
        """Return the first rows in their `order` as plain values; rows count from 0.

        If the features do not predict the labels, there are suggestions and doubts of reviewed rows
        only: others would be as good as random.
        """
        classes, labels = self.transition.classes, self.transition.labels
        rows = self.order[:most].tolist()
        return [
            {
                "row": i,
                "label": labels[self.label_index[i]],
                "suggestion": classes[self.suggestion[i]] if self.is_known[i] else None,
                "class_proba": self._if_known(
                    i, self.class_proba_given_label[i, self.suggestion[i]]
                ),
                "label_proba": float(self.label_proba[i]),
                "doubt": self._if_known(i, self.doubt[i]),
                "why": self.why(i),
                "to_check": bool(self.is_to_check[i]),
                "positive_proba": float(self.positive_proba[i]),
            }
            for i in rows
        ]

    def _if_known(self, row, value) -> float:
        return float(value) if self.is_known[row] else np.nan

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
        name = "doubt" if is_about_labels else "p(labeled class | x, unlabeled)"
        names = self.transition.classes, self.transition.labels
        return AuditDisplay(self._value[self.is_asked], self.flow(), *names, name).plot(axes)

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
        write_page(path, *page_content(self, X), overwrite=overwrite)

    # -------------------------------------------------------------------------- summaries

    @cached_property
    def draws(self):
        """Return draws of class shares, transitions and label mass; see `intervals`."""
        return self._draw(1 if self.sample_weight is None else as_counts(self.sample_weight))

    @cached_property
    def draws_of_rows(self):
        """Draws in which each row counts once, whatever its weight."""
        return self.draws if self.sample_weight is None else self._draw(1)

    @cached_property
    def draws_unreviewed(self):
        """Draws of the rows that were not reviewed, each counted once."""
        if not self.is_reviewed.any():
            return self.draws_of_rows
        return self._draw(~self.is_reviewed, by_rows=True)

    def _draw(self, counts, by_rows=False):
        is_always_right = ~can_be_wrong(self.transition)
        counts = np.broadcast_to(np.asarray(counts, float), len(self.label_index))
        repeats = 1.0 if self.groups is None else self.groups.copies_per_row(counts)
        mass = self._label_mass(counts) / repeats  # as much evidence as there is
        if by_rows:  # rows that were chosen, whose labels do not follow the transition
            proba, seed = self.transition.proba, self.random_state
            drawn = draw_from_mass(mass, proba, is_always_right, random_state=seed)
        else:
            drawn = draw(self.model, mass, is_always_right, random_state=self.random_state)
        return drawn._replace(label_mass=drawn.label_mass * repeats)

    def _label_mass(self, counts):
        """Return how many rows of each class have each label if each row counts `counts` times."""
        counted = self.class_proba_given_label * np.reshape(counts, (-1, 1))
        return label_mass(counted, self.label_index, len(self.transition.labels))

    def summary(self) -> dict:
        """Return everything except the rows, in types that JSON has; intervals are 90 %."""
        return summarize(self)

    def flow(self) -> np.ndarray:
        """Return how many rows of each label are of each class, (n_labels, n_classes)."""
        return self._label_mass(1).T


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
