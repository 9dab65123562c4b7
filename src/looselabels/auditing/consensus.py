"""Several answers per row → the class that they and x suggest, and which rows to ask about next.

Numbers come from p(class | x, all answers) and from the transition of each annotator. Here are the
rows and the summary; `votes` compares answers, `more_answers` looks ahead.
"""

from dataclasses import dataclass
from functools import cached_property
from itertools import groupby

import numpy as np

from looselabels import __version__
from looselabels._validation import import_extra
from looselabels.annotations import Annotations
from looselabels.auditing.annotator_findings import find_constant, find_copies, find_pairs
from looselabels.auditing.diagnose import Finding
from looselabels.auditing.more_answers import MOST, SETTLED, answers_to_settle
from looselabels.auditing.pages import page_content, summary_html, write_page
from looselabels.auditing.report import verdict
from looselabels.auditing.votes import agreement, rows_unlike_vote
from looselabels.estimation.agreement import agreeing_pairs
from looselabels.transition import Transition, named_class

COLUMNS = ("row", "consensus", "probability", "n_answers", "more_answers")


def audit_answers(clf, Y, X=None, *, random_state=0) -> "ConsensusAudit":
    """Return the audit of a classifier that was fitted to several answers per row.

    Parameters
    ----------
    clf : DecoupledClassifier
        Fitted to a table of answers, or to `Annotations`.
    Y : table of shape (n_samples, n_annotators) or Annotations
        The answers as given.
    X : features that the classifier accepts, optional
        Rows other than those of the fit.
    random_state : int, default=0
        Seed of the futures from which the number of further answers follows.

    Examples
    --------
    >>> from looselabels import DecoupledClassifier
    >>> votes = [["cat", "cat", "cat"], ["dog", "dog", "dog"]] * 20 + [["cat", "cat", "dog"]] * 3
    >>> votes += [["dog", "cat", "dog"]] * 3 + [["cat", None, "dog"]]
    >>> table = np.array(votes, dtype=object)
    >>> found = audit_answers(DecoupledClassifier().fit(None, table), table)
    >>> found.table().head(1)[["row", "n_answers"]].values.tolist()
    [[46, 2]]
    """
    known = clf.transitions_
    annotations, _ = known.read(Y)
    if X is not None or (clf.class_estimator_ is None and len(annotations) != _n_fitted(clf)):
        proba = clf.predict_proba_given_label(X, Y)
    elif not hasattr(clf, "class_proba_given_label_"):
        raise ValueError("A model loaded from a file has no rows; pass them: audit(clf, Y, X).")
    elif len(annotations) != len(clf.class_proba_given_label_):
        raise ValueError(
            f"Y has {len(annotations)} rows; the classifier was fitted to "
            f"{len(clf.class_proba_given_label_)}. Pass the rows that Y belongs to: "
            "audit(clf, Y, X)."
        )
    else:
        proba = clf.class_proba_given_label_
    annotators, pairs = _records(clf.annotator_quality_), []
    if hasattr(clf, "annotator_inference_"):  # not if it was loaded from a file
        answers = clf.annotation_design_.annotations.answers  # with copies counted once
        pairs = agreeing_pairs(clf.annotator_inference_, answers)
    findings = (
        *find_constant(annotations, proba, clf.transition_),
        *find_copies(annotators),
        *find_pairs(annotations, pairs),
    )
    return ConsensusAudit(
        annotations,
        proba,
        clf.transition_,
        known.proba,
        annotators,
        bool(clf.converged_),
        findings,
        random_state,
    )


def _records(quality) -> list[dict]:
    """Return the rows of `annotator_quality_`, a DataFrame or a dict of columns."""
    columns = quality if isinstance(quality, dict) else quality.reset_index()
    values = {name: list(columns[name]) for name in columns}
    for name in ("answers", "accuracy", "low", "high"):
        values[name] = np.asarray(columns[name]).tolist()  # as plain numbers
    values["name"] = values.pop("annotator")
    return [dict(zip(values, row, strict=True)) for row in zip(*values.values(), strict=True)]


def _n_fitted(clf) -> int:
    """Return the number of rows of the fit; 0 if the classifier was loaded from a file."""
    return len(getattr(clf, "class_proba_given_label_", ()))


@dataclass(frozen=True, eq=False, repr=False)
class ConsensusAudit:
    """The result of `audit` with several answers per row: consensus, annotators, agreement.

    The consensus of a row is its most probable class given x and all of its answers. `table` has
    all rows, those to ask about next first; `annotators` has the annotators.
    """

    annotations: Annotations
    class_proba_given_label: np.ndarray  #: p(class | x, all answers), (n_rows, n_classes)
    transition: Transition  #: of a typical annotator
    transitions: np.ndarray  #: of each annotator, (n_annotators, n_classes, n_labels)
    annotators: list[dict]  #: as in `annotator_quality_`, one for each annotator
    converged: bool = True
    findings: tuple[Finding, ...] = ()  #: annotators that break an assumption
    random_state: int = 0

    question = "consensus"

    def __repr__(self):
        a = self.annotations
        size = f"{len(a)} rows, {a.n_answers} answers by {len(a.annotators)} annotators"
        return f"ConsensusAudit({size}. {verdict(self._counts())})"

    # ------------------------------------------------------------------------------- rows

    @cached_property
    def consensus(self) -> np.ndarray:
        """The position of each row's most probable class."""
        return self.class_proba_given_label.argmax(axis=1)

    @cached_property
    def probability(self) -> np.ndarray:
        """The probability of the consensus, given x and all answers."""
        return self.class_proba_given_label.max(axis=1)

    @cached_property
    def is_open(self) -> np.ndarray:
        """Which rows need more answers: no class has a probability of 95 %."""
        return self.probability < SETTLED

    @cached_property
    def order(self) -> np.ndarray:
        """The rows, the least certain first."""
        return np.argsort(self.probability, kind="stable")

    @cached_property
    def more_answers(self) -> np.ndarray | None:
        """How many further answers by a typical annotator settle each row in half of all cases.

        Infinite: more than 10. None if a missing answer is a label, as with labeling functions that
        abstain: then everyone has answered.
        """
        if self.annotations.answers.missing_label is not None:
            return None
        proba, seed = self.transition.proba, self.random_state
        return answers_to_settle(self.class_proba_given_label, proba, random_state=seed)

    def records(self, most=None) -> list[dict]:
        """Return the first rows in their `order` as plain values; rows count from 0.

        `answers` has each label of the row with its annotators. `more_answers` is None if more than
        10 are needed, and left out where nobody can be asked.
        """
        rows = self.order[:most]
        n_answers, given = self.annotations.answers.n_answers, self._answers_of(rows)
        found = []
        for i, answers in zip(rows.tolist(), given, strict=True):
            record = {
                "row": i,
                "answers": answers,
                "consensus": self.transition.classes[self.consensus[i]],
                "probability": float(self.probability[i]),
                "n_answers": int(n_answers[i]),
            }
            if self.more_answers is not None:
                record["more_answers"] = _finite(self.more_answers[i])
            found.append(record)
        return found

    def _answers_of(self, rows) -> list[list]:
        """Return (label, names of annotators) of each of `rows`, the most frequent label first."""
        part, names = self.annotations.answers.take(rows), self.annotations
        found: list[list] = [[] for _ in rows]
        order = np.lexsort((part.annotator, part.label, part.row))
        triples = np.stack([part.row, part.label, part.annotator], axis=1)[order].tolist()
        for (row, label), group in groupby(triples, key=lambda answer: answer[:2]):
            who = [names.annotators[a] for *_, a in group]
            found[row].append((names.labels[label], who))
        return [sorted(answers, key=lambda answer: -len(answer[1])) for answers in found]

    def table(self):
        """Return all rows as a pandas DataFrame, in their `order`; more than 10 answers are inf."""
        pandas = import_extra("pandas", '"looselabels[tables]"')
        classes = np.empty(len(self.transition.classes), dtype=object)
        classes[:] = self.transition.classes
        more, order = self.more_answers, self.order
        columns = (
            np.arange(len(order)),
            classes[self.consensus],
            self.probability,
            self.annotations.answers.n_answers,
            np.full(len(order), np.nan) if more is None else more,
        )
        named = zip(COLUMNS, columns, strict=True)
        return pandas.DataFrame({name: column[order] for name, column in named})

    # --------------------------------------------------------------- summaries and pages

    def _counts(self) -> dict:
        """Return what the verdict needs."""
        n_open = int(self.is_open.sum())
        numbers = None if self.more_answers is None else _histogram(self.more_answers[self.is_open])
        return {
            "question": self.question,
            "n_rows": len(self.annotations),
            "n_annotators": len(self.annotations.annotators),
            "n_answers": self.annotations.n_answers,
            "consensus": {
                "settled_from": SETTLED,
                "n_settled": len(self.annotations) - n_open,
                "n_open": n_open,
                "n_unanswered": int(np.sum(self.annotations.answers.n_answers == 0)),
                "expected_wrong": float(np.sum(1 - self.probability)),
                "n_unlike_vote": self._n_unlike_vote(),
                "most": MOST,
                "more_answers": numbers,
            },
        }

    def _n_unlike_vote(self) -> int | None:
        """Return in how many rows the consensus is no majority; None if labels are not classes."""
        answers, classes = self.annotations.answers, self.transition.classes
        named = [named_class(label, classes) for label in self.annotations.labels]
        if any(named[s] is None for s in range(answers.n_labels) if s != answers.missing_label):
            return None
        class_of_label = np.array([-1 if k is None else k for k in named])
        return len(rows_unlike_vote(answers, self.consensus, class_of_label))

    def summary(self) -> dict:
        """Return everything except the rows, in types that JSON has; intervals are 90 %."""
        transition, proba = self.transition, self.class_proba_given_label
        shares = zip(
            transition.classes,
            proba.mean(axis=0).tolist(),
            np.bincount(self.consensus, minlength=len(transition.classes)).tolist(),
            strict=True,
        )
        answers = self.annotations.answers
        return {
            "schema": 1,
            "looselabels": __version__,
            **self._counts(),
            "class_shares": [{"name": n, "share": p, "consensus": k} for n, p, k in shares],
            "annotators": self.annotators,
            "agreement": agreement(answers, proba, self.transitions),
            "sources": {"transition": "pooled"},
            "transition": {
                "classes": list(transition.classes),
                "labels": list(transition.labels),
                "proba": transition.proba.tolist(),
            },
            "converged": self.converged,
            "findings": [finding._asdict() for finding in self.findings],
        }

    def _repr_html_(self):
        return summary_html(self)

    def to_html(self, path, X=None, *, overwrite=False) -> None:
        """Write the report to the file `path`: one page without external files (needs jinja2).

        It lists the first 500 rows that need more answers. The parameters are those of
        `Audit.to_html`.
        """
        write_page(path, *page_content(self, X), overwrite=overwrite)


def _finite(n) -> int | None:
    return None if np.isinf(n) else int(n)


def _histogram(numbers) -> list[tuple[int | None, int]]:
    """Return how many rows need each number of answers; None, more than 10, is last."""
    values, counts = np.unique(numbers, return_counts=True)
    return [(_finite(n), int(count)) for n, count in zip(values, counts, strict=True)]
