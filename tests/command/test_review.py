"""Reviews in an audit: earlier decisions are known, probable suggestions are accepted."""

import numpy as np
import pytest
from sklearn.naive_bayes import GaussianNB

from looselabels import DecoupledClassifier
from looselabels.auditing.audit import audit
from looselabels.command.decisions import correct
from looselabels.command.identity import identify
from looselabels.command.labels import Labels
from looselabels.command.review import Review, accept_above, read_review
from looselabels.command.tables import TableError, read_table
from looselabels.transition import Transition
from tests.command.calls import animals, cells, write_decisions, written_pets

pytestmark = pytest.mark.usefixtures("folder")


def reviewed(frame, *paths, **options):
    return read_review(frame, Labels("species", **options), "name", paths)


def test_without_decisions_labels_are_those_of_the_table():
    frame = written_pets()
    review = reviewed(frame)
    assert review.labels == cells(frame[["species"]].T)[0]
    assert (review.known_classes, review.doubts) == (None, {})


def test_an_audit_knows_decided_classes_and_the_labels_before():
    frame = written_pets()
    write_decisions(
        frame, (0, "accept", "dog"), (1, "keep", "dog"), (2, "skip", None), (3, "keep", None)
    )
    after, *_ = correct(frame, Labels("species"), "name", ["decisions.csv"])
    for table in (frame, written_pets(after, "after.csv")):
        review = reviewed(table, "decisions.csv")
        assert review.labels == cells(frame[["species"]].T)[0]
        assert review.known_classes == ["dog", "dog", *[None] * 38]
        assert review.doubts == {0: 0.75, 1: 0.75, 3: 0.75}


def test_decided_classes_have_the_type_of_the_labels():
    frame = animals(40, names=(0, 1), unlabeled=0).assign(name=[f"pet {k}" for k in range(40)])
    frame.astype({"species": "Int64"}).to_parquet("data.parquet", index=False)
    frame = read_table("data.parquet")
    write_decisions(frame, (0, "accept", "1"))
    assert reviewed(frame, "decisions.csv").known_classes[0] == 1


def test_a_class_that_is_never_labeled_can_be_decided_and_applied():
    frame = written_pets(
        animals(40, names=("cat", "dog", None), wrong=0).assign(name=[f"p{k}" for k in range(40)])
    )
    write_decisions(frame, (2, "change", "other"))
    after, *_ = correct(frame, Labels("species"), "name", ["decisions.csv"])
    review = reviewed(after, "decisions.csv", negative="other")
    assert review.known_classes[2] == "other"
    assert review.labels[2] is None


PETS = Transition.from_meanings({"cat": "cat", "dog": "dog", None: ["cat", "dog"]})


@pytest.mark.parametrize(
    ("options", "said"),
    [({}, "label rows of it, or pass --neg"), ({"design": PETS}, "add it to --design")],
)
def test_a_class_that_an_audit_does_not_know_is_refused_with_the_row_and_the_next_step(
    options, said
):
    frame = written_pets()
    write_decisions(frame, (0, "accept", "dog"), (1, "change", "cow"))
    with pytest.raises(TableError) as error:
        reviewed(frame, "decisions.csv", **options)
    assert "about name 'pet 1' is the class 'cow', which" in str(error.value)
    assert "it knows ['cat', 'dog']. Pass --negative, --design and --merge as" in str(error.value)
    assert f"If the class is new, {said}" in str(error.value)


def test_suggestions_above_a_probability_are_accepted(fitted):
    found = audit(fitted.clf, fitted.y)
    review = Review(identify(fitted.frame, label="species"), fitted.y, None, {})
    accepted, n_wrong = accept_above(found, review, 0.6)
    rows = accepted["id"].to_numpy() - 1  # rows of a frame count from 1
    assert len(rows) == np.sum(found.is_labeled & (found.doubt > 0.6)) > 1
    assert (accepted["label"] != accepted["class"]).all()
    assert accepted["label"].tolist() == [fitted.y[row] for row in rows]
    assert n_wrong == pytest.approx(np.sum(1 - found.doubt[rows]))  # two classes
    assert (accepted["decision"] == "accept").all()
    seen = Review(review.identity, fitted.y, None, {int(rows[0]): 0.9})
    assert accept_above(found, seen, 0.6)[0]["id"].tolist() == (rows[1:] + 1).tolist()
    assert accept_above(found, review, 0.999)[0].empty


def test_accepted_suggestions_are_applied_but_known_to_nobody(fitted):
    found = audit(fitted.clf, fitted.y)
    frame = written_pets(fitted.frame)
    review = Review(identify(frame, label="species"), fitted.y, None, {})
    accept_above(found, review, 0.6)[0].to_csv("decisions.csv", index=False)
    after, changes, _ = correct(frame, Labels("species"), None, ["decisions.csv"])
    assert len(changes) > 1
    with pytest.warns(UserWarning, match=f"without a review are not used: {len(changes)}"):
        again = read_review(after, Labels("species"), None, ["decisions.csv"])
    assert again == (again.identity, fitted.y, None, {})


def test_unlabeled_rows_are_accepted_as_a_class_that_has_labels(fitted):
    frame = fitted.frame.assign(species=np.where(fitted.frame["species"] == "cat", "cat", None))
    y = frame["species"].tolist()
    options = {"noise": 0, "refit": False, "random_state": 0}
    clf = DecoupledClassifier(GaussianNB(), negative="dog", **options)
    found = audit(clf.fit(frame[["size", "weight"]].fillna(0), y), y)
    review = Review(identify(frame, label="species"), y, None, {})
    accepted, _ = accept_above(found, review, 0.6)
    assert len(accepted) > 3
    assert accepted["label"].isna().all()
    assert set(accepted["class"]) == {"cat"}


def test_the_summary_counts_reviewed_labels_that_were_wrong(fitted):
    found = audit(fitted.clf, fitted.y)
    labeled = np.flatnonzero(found.is_labeled)[:3].tolist()
    unlabeled = np.flatnonzero(~found.is_labeled)[:1].tolist()
    known = [None] * len(fitted.y)
    known[labeled[0]] = fitted.y[labeled[0]]
    known[labeled[1]] = "dog" if fitted.y[labeled[1]] == "cat" else "cat"
    known[unlabeled[0]] = "cat"
    doubts = dict(zip(labeled + unlabeled, (0.5, 0.75, 0.25, 0.0), strict=True))
    review = Review(identify(fitted.frame, label="species"), fitted.y, known, doubts)
    assert review.summary(found) == {"n": 3, "confirmed": 1, "expected": 1.5}
    only_unlabeled = review._replace(doubts={unlabeled[0]: 0.0})
    assert only_unlabeled.summary(found) is None
    assert review._replace(known_classes=[None] * len(fitted.y)).summary(found) == {
        **{"n": 3, "confirmed": 0, "expected": 1.5},
    }


def test_the_summary_counts_reviewed_rows_that_were_of_a_labeled_class(fitted):
    y = [label if label == "cat" else None for label in fitted.y]
    clf = DecoupledClassifier(GaussianNB(), negative="dog", refit=False, random_state=0)
    found = audit(clf.fit(fitted.X, y), y)
    a, b, c, d = np.flatnonzero(~found.is_labeled)[:4].tolist()
    labeled = int(np.flatnonzero(found.is_labeled)[0])
    known = [None] * len(y)
    known[a], known[b], known[labeled] = "cat", "dog", "dog"
    doubts = {a: 0.75, b: 0.5, c: 0.25, labeled: 0.9}
    review = Review(identify(fitted.frame, label="species"), y, known, doubts)
    assert review.summary(found) == {"n": 2, "confirmed": 1, "expected": 1.25}
    old = review._replace(doubts=dict.fromkeys((a, b, d), 0.0))  # of a page of 0.1
    assert old.summary(found) == {"n": 2, "confirmed": 1, "expected": None}
    assert review._replace(doubts={c: 0.25}).summary(found) is None
