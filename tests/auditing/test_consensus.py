"""The consensus of several answers: numbers that follow by hand, summaries, pages."""

import json
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from looselabels import DecoupledClassifier, load, save
from looselabels.annotations import Annotations
from looselabels.auditing.annotator_findings import find_constant
from looselabels.auditing.audit import audit
from looselabels.auditing.consensus import ConsensusAudit, audit_answers
from looselabels.auditing.more_answers import MOST
from looselabels.estimation.annotators import annotator_accuracy, infer_from_annotators
from looselabels.learning.annotation_design import AnnotatorTransitions
from looselabels.transition import Transition
from tests.auditing.crowds import NAMES, crowd

pd = pytest.importorskip("pandas")


def audited(annotations, **parameters):
    found = infer_from_annotators(None, annotations.answers)
    names = [name for name in annotations.labels if name is not None]
    typical = Transition(found.pooled[0], classes=names, labels=annotations.labels)
    records = quality(annotations, names, annotator_accuracy(found))
    proba, transitions = found.class_proba_given_label, found.transitions
    return ConsensusAudit(annotations, proba, typical, transitions, records, **parameters)


def quality(annotations, classes, found):
    """Return the annotators as the audit gets them."""
    columns = zip(annotations.annotators, *found, strict=True)
    return [
        {
            "name": name,
            "answers": int(n_answers),
            "accuracy": float(accuracy),
            "low": float(low),
            "high": float(high),
            "confusions": [(classes[y], annotations.labels[s], p) for y, s, p in confusions],
        }
        for name, n_answers, accuracy, low, high, confusions in columns
    ]


@pytest.fixture(scope="module")
def small():
    return audited(crowd()[0])


# ------------------------------------------------------------------------------------ a classifier


class Fitted(SimpleNamespace):
    """What the audit reads of a classifier that was fitted to several answers per row."""

    class_estimator_ = "a model of the features"

    def predict_proba_given_label(self, X, Y):
        n_classes = len(self.transition_.classes)
        return np.full((len(X), n_classes), 1 / n_classes)


def fitted(annotations, **changes):
    found = audited(annotations)
    people, labels = annotations.annotators, annotations.labels
    names = people, found.transitions, found.transition.classes, labels
    known = AnnotatorTransitions(*names, same_as=np.arange(len(people)))
    quality = pd.DataFrame(found.annotators).rename(columns={"name": "annotator"})
    return Fitted(
        **{
            "annotators_": annotations.annotators,
            "transitions_": known,
            "transition_": found.transition,
            "annotator_quality_": quality.set_index("annotator"),
            "class_proba_given_label_": found.class_proba_given_label,
            "converged_": True,
            **changes,
        }
    )


def test_a_classifier_is_audited_with_the_answers_of_its_fit():
    annotations, _ = crowd()
    found = audit_answers(fitted(annotations), annotations.to_frame())
    expected = audited(annotations)
    assert found.annotations == annotations
    assert found.annotators == expected.annotators
    assert found.summary() == expected.summary()


def test_the_order_of_annotators_and_labels_is_that_of_the_classifier():
    annotations, _ = crowd()
    clf = fitted(annotations)
    for names in ([2, 0, 1], [1]):  # fewer annotators, and so perhaps fewer labels
        found = audit_answers(clf, annotations.to_frame()[names])
        assert found.annotations.annotators == (0, 1, 2)
        frame = found.annotations.to_frame()
        assert frame[names].equals(annotations.to_frame()[names])


def test_labels_keep_their_meaning_if_a_table_lacks_some_of_them():
    annotations, _ = crowd(classes=("cat", "dog", "eel"))
    rows = np.flatnonzero((annotations.to_frame() != "cat").all(axis=1))
    found = audit_answers(fitted(annotations), annotations.to_frame().iloc[rows], X=rows)
    assert found.annotations == annotations.take(rows)


def test_an_array_has_all_annotators_in_their_order():
    table = crowd()[0].to_frame().set_axis(["ann", "bob", "eve"], axis=1)
    clf = fitted(Annotations.from_table(table))
    assert audit_answers(clf, table.to_numpy()).annotations == Annotations.from_table(table)
    with pytest.raises(ValueError, match="array with 2 columns; the classifier was fitted to 3"):
        audit_answers(clf, table.to_numpy()[:, :2])


def test_columns_of_quality_can_be_a_dict():
    annotations, _ = crowd()
    clf = fitted(annotations)
    columns = clf.annotator_quality_.reset_index().to_dict("list")
    found = audit_answers(fitted(annotations, annotator_quality_=columns), annotations)
    assert found.annotators == audit_answers(clf, annotations).annotators


def test_other_rows_are_audited_by_their_features():
    annotations, _ = crowd()
    found = audit_answers(fitted(annotations), annotations.take([0, 1, 2]), X=np.zeros((3, 2)))
    assert found.probability.tolist() == [0.5] * 3


@pytest.fixture(scope="module")
def learned():
    """A pipeline that was fitted to features and answers, with both and with the classes."""
    annotations, truth = crowd(300, asked=0.5)
    X = np.random.default_rng(0).normal(size=(300, 2)) + 1.5 * truth[:, None]
    clf = make_pipeline(StandardScaler(), DecoupledClassifier(GaussianNB(), random_state=0))
    return SimpleNamespace(clf=clf.fit(X, annotations), X=X, Y=annotations, truth=truth)


def test_the_audit_of_a_fitted_classifier_uses_features_and_answers(learned):
    found = audit(learned.clf, learned.Y)
    assert isinstance(found, ConsensusAudit)
    assert np.array_equal(found.class_proba_given_label, learned.clf[-1].class_proba_given_label_)
    alone = audited(learned.Y)
    right, right_alone = (np.mean(a.consensus == learned.truth) for a in (found, alone))
    assert right > right_alone + 0.05


def test_a_fitted_classifier_audits_other_rows(learned, tmp_path):
    rows, expected = learned.Y.take([5, 3]), learned.clf[-1].class_proba_given_label_[[5, 3]]
    found = audit(learned.clf, rows, learned.X[[5, 3]])
    assert np.abs(found.class_proba_given_label - expected).max() < 0.2  # not out of sample
    pytest.importorskip("skops")
    save(learned.clf[-1], tmp_path / "model")
    loaded, X = load(tmp_path / "model"), learned.clf[0].transform(learned.X[[5, 3]])
    again = audit(loaded, rows, X)
    assert np.allclose(again.class_proba_given_label, found.class_proba_given_label)
    assert again.annotators == found.annotators
    with pytest.raises(ValueError, match="A model loaded from a file has no rows"):
        audit(loaded, rows)


def test_decisions_are_about_one_label_per_row(learned):
    with pytest.raises(ValueError, match="decisions cannot be combined with several answers"):
        audit(learned.clf, learned.Y, decisions=["cat"] * 300)


def test_rows_of_another_table_need_their_features():
    annotations, _ = crowd()
    with pytest.raises(ValueError, match="Y has 3 rows; the classifier was fitted to 200"):
        audit_answers(fitted(annotations), annotations.take([0, 1, 2]))


def test_unknown_annotators_and_labels_are_named():
    annotations, _ = crowd()
    clf, table = fitted(annotations), annotations.to_frame()
    with pytest.raises(ValueError, match=r"annotators of Y contain \['zoe'\]"):
        audit_answers(clf, table.assign(zoe="cat"))
    table.loc[0, 0] = "cow"
    with pytest.raises(ValueError, match=r"labels of Y contain \['cow'\]"):
        audit_answers(clf, table)


def test_an_annotator_who_always_says_the_same_is_a_finding():
    annotations, _ = crowd()
    annotations = Annotations.from_table(annotations.to_frame().assign(lazy="cat"))
    (finding,) = audit_answers(fitted(annotations), annotations).findings
    assert finding.words.startswith("All 200 answers of 'lazy' are 'cat'")


def test_copies_and_followers_are_found():
    annotations, truth = crowd(400, (0.75,) * 4, asked=0.9)
    rng, table = np.random.default_rng(0), annotations.to_frame()
    table["copy"] = table[1]
    follows = rng.random(400) < 0.8
    table["follower"] = table[2].where(follows, rng.choice(NAMES, 400))
    X = rng.normal(size=(400, 2)) + 3 * truth[:, None]  # without x, both would look very accurate
    clf = DecoupledClassifier(GaussianNB(), random_state=0).fit(X, table)
    kinds = {finding.kind: finding.words for finding in audit(clf, table).findings}
    assert kinds.keys() == {"copies", "agreement"}
    assert kinds["copies"].startswith("'copy' gave the same answers as '1'")
    assert kinds["agreement"].startswith("'2' and 'follower' agree in")


# --------------------------------------------------------------------------------------------- rows


def test_the_consensus_is_right_more_often_than_each_annotator():
    annotations, truth = crowd(1000)
    found = audited(annotations)
    assert np.mean(found.consensus == truth) > 0.85
    assert found.probability.mean() == pytest.approx(np.mean(found.consensus == truth), abs=0.04)


def test_the_least_certain_rows_come_first(small):
    table = small.table()
    assert list(table) == ["row", "consensus", "probability", "n_answers", "more_answers"]
    assert table["probability"].is_monotonic_increasing
    assert sorted(table["row"]) == list(range(200))
    open_rows = table[table["probability"] < 0.95]
    assert (open_rows["more_answers"] > 0).all()
    assert (table["more_answers"][len(open_rows) :] == 0).all()


def test_a_record_says_who_said_what(small):
    frame = small.annotations.to_frame()
    for record in small.records(20):
        said = frame.iloc[record["row"]].dropna().to_dict()
        assert {who: label for label, people in record["answers"] for who in people} == said
        assert record["n_answers"] == len(said)
        sizes = [len(people) for _, people in record["answers"]]
        assert sizes == sorted(sizes, reverse=True)


def test_rows_that_many_answers_do_not_settle_have_no_number():
    typical = Transition([[0.55, 0.45], [0.45, 0.55]], NAMES, NAMES)
    found = replace(audited(crowd()[0]), transition=typical)
    rows = found.records(5)
    assert {row["more_answers"] for row in rows} == {None}
    assert found.summary()["consensus"]["more_answers"][-1][0] is None
    assert np.isinf(found.table()["more_answers"].iloc[0])


def test_nobody_is_asked_if_a_missing_answer_is_a_label():
    rng = np.random.default_rng(0)
    truth = rng.integers(2, size=300)
    fires = rng.random((300, 4)) < 0.4
    table = np.full((300, 4), None, dtype=object)
    for a in range(4):  # each rule answers for one class only
        rows = np.flatnonzero(fires[:, a] & ((truth == a % 2) | (rng.random(300) < 0.2)))
        table[rows, a] = NAMES[a % 2]
    found = audited(Annotations.from_table(table, missing_is_label=True))
    assert found.more_answers is None
    assert "more_answers" not in found.records(1)[0]
    assert found.summary()["consensus"]["more_answers"] is None
    assert found.table()["more_answers"].isna().all()


# ------------------------------------------------------------------------------ annotators, summary


def test_the_summary_is_strict_json_and_its_numbers_add_up(small):
    content = json.loads(json.dumps(small.summary(), allow_nan=False))
    part = content["consensus"]
    assert part["n_settled"] + part["n_open"] == content["n_rows"] == 200
    assert sum(n_rows for _, n_rows in part["more_answers"]) == part["n_open"]
    assert sum(a["answers"] for a in content["annotators"]) == content["n_answers"]
    assert sum(c["consensus"] for c in content["class_shares"]) == 200
    assert part["expected_wrong"] == pytest.approx(np.sum(1 - small.probability))
    assert part["most"] == MOST


def test_the_vote_is_not_counted_if_a_label_names_no_class():
    annotations = Annotations.from_table(np.array([["cat", "pet"], ["dog", "pet"]] * 20, object))
    proba = np.array([[0.5, 0, 0.5], [0, 0.5, 0.5]])
    typical = Transition(proba, classes=NAMES, labels=annotations.labels)
    found = ConsensusAudit(annotations, np.eye(2)[[0, 1] * 20], typical, np.array([proba] * 2), [])
    assert found.summary()["consensus"]["n_unlike_vote"] is None


def test_the_audit_shows_itself(small):
    assert repr(small).startswith("ConsensusAudit(200 rows, ")
    assert "The consensus is settled in" in repr(small)
    html = small._repr_html_()
    assert "<th>consensus</th>" in html
    assert "to_html(path)" in html


def test_the_page_has_the_open_rows_and_all_annotators(small, tmp_path):
    pytest.importorskip("jinja2")
    path = tmp_path / "page.html"
    small.to_html(path)
    page = path.read_text(encoding="utf-8")
    assert page.count("<tr data-class=") == small.is_open.sum()
    assert "Rows to ask about next" in page
    with pytest.raises(FileExistsError, match="overwrite=True"):
        small.to_html(path)


def test_findings_are_warnings_on_the_page(tmp_path):
    pytest.importorskip("jinja2")
    annotations, _ = crowd()
    table = annotations.to_frame().assign(lazy="cat")
    annotations = Annotations.from_table(table)
    found = audited(annotations)
    findings = find_constant(annotations, found.class_proba_given_label, found.transition)
    found = audited(annotations, findings=tuple(findings))
    found.to_html(tmp_path / "page.html")
    assert "answers of &#39;lazy&#39;" in (tmp_path / "page.html").read_text(encoding="utf-8")


def test_the_number_of_further_answers_holds_in_half_of_real_futures():
    """The annotators really answer again; the audit knows only its estimates of them."""
    rng, accuracies = np.random.default_rng(1), np.linspace(0.6, 0.95, 20)
    annotations, truth = crowd(600, accuracies, asked=0.1)
    found = audited(annotations)
    in_time = []
    for row in np.flatnonzero(found.is_open & np.isfinite(found.more_answers)):
        proba, needed = found.class_proba_given_label[row], int(found.more_answers[row])
        most_probable = []
        for who in rng.integers(20, size=needed):
            is_right = rng.random() < accuracies[who]
            proba = proba * found.transitions[who, :, truth[row] if is_right else 1 - truth[row]]
            proba = proba / proba.sum()
            most_probable.append(proba.max())
        in_time.append(max(most_probable) >= 0.95)
    assert len(in_time) > 200
    assert 0.45 < np.mean(in_time) < 0.75  # more than half, because numbers of answers are whole
