"""The audit: doubted labels, sentences, and numbers that agree with the inference."""

import json
from copy import copy
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_breast_cancer, load_digits, make_classification
from sklearn.discriminant_analysis import QuadraticDiscriminantAnalysis
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from looselabels import BalancedForestClassifier, DecoupledClassifier, Transition
from looselabels.auditing.audit import DOUBTED, POSSIBLE, Audit, audit
from looselabels.auditing.diagnose import Finding, diagnose
from looselabels.auditing.report import facts, verdict
from looselabels.datasets import make_gaussians, make_loose_labels
from looselabels.exceptions import IdentifiabilityWarning
from looselabels.learning.density import KernelDensityClassifier

COLUMNS = ["row", "label", "suggestion", "class_proba", "label_proba", "doubt", "why"]
PARTS = [
    "schema", "looselabels", "n_rows", "n_labeled", "question", "n_to_check", "wrong", "unlabeled",
    "label_accuracy", "source_accuracy", "candidate_losses", "design", "sources", "classes",
    "transition", "flow", "is_right", "calibration", "infeasible", "unsupported_labels",
    "indistinct_classes", "converged", "findings",
]  # fmt: skip
NO_NUMBERS = dict.fromkeys(("expected", "low", "high", "doubted", "found", "n_reviewed"))
HOSTILE = ["<script>", "a\nb", "\x1b[31mred", "x" * 300, "", " ", "label", "{0}", "\u202egnp", "é"]


def fitted(design, n_samples=300, **parameters):
    """Return a classifier of the Gaussians, and the labels that it was fitted to."""
    data = make_gaussians(n_samples, random_state=0)
    position = {name: k for k, name in enumerate(data.classes)}
    classes = [design.classes[position[name] % len(design.classes)] for name in data.y]
    labels = make_loose_labels(classes, design, random_state=0)
    clf = DecoupledClassifier(GaussianNB(), design, cv=3, random_state=0, **parameters)
    return clf.fit(data.X, labels), labels, data.X


NAMES = ["red", "green", "blue", "other"]
PARTLY_LABELED = Transition.partial(NAMES, labeled=0.6).with_noise(0.1)


@pytest.fixture(scope="module")
def partly():
    """A classifier of partly labeled rows with some wrong labels, its labels and rows."""
    return fitted(PARTLY_LABELED)


@pytest.fixture(scope="module")
def found(partly):
    clf, labels, _ = partly
    return audit(clf, labels)


# --------------------------------------------------------------------------------------- the table


def test_the_table_has_one_row_per_sample_and_the_documented_columns(found):
    table = found.table()
    assert list(table.columns) == COLUMNS
    assert sorted(table["row"]) == list(range(300))


def test_pandas_and_polars_get_the_same_rows(found):
    polars = pytest.importorskip("polars")
    table = found.table("polars")
    assert isinstance(table, polars.DataFrame)
    assert table.columns == COLUMNS
    pandas = found.table()
    for name in COLUMNS:
        assert table[name].to_list() == pandas[name].tolist()


def test_the_most_doubted_label_comes_first_and_rows_without_a_label_last(found):
    table = found.table()
    n_labeled = found.is_labeled.sum()
    labeled, rest = table[:n_labeled], table[n_labeled:]
    assert labeled["doubt"].is_monotonic_decreasing
    assert all(label is not None for label in labeled["label"])
    assert all(label is None for label in rest["label"])
    assert not rest["doubt"].any()
    assert table["doubt"].between(0, 1).all()


def test_equally_doubted_rows_keep_their_order():
    label_proba = np.tile([0.5, 0.5], (40, 1))
    t = Transition.identity(["a", "b"]).with_noise(0.1)
    table = audit(label_proba=label_proba, labels=["a", "b"] * 20, transition=t).table()
    for _, rows in table.groupby("label"):
        assert rows["row"].is_monotonic_increasing


def test_each_row_agrees_with_the_inference(found, partly):
    W, T, clf = partly[0].class_proba_given_label_, found.transition, partly[0]
    index = T.label_index([record["label"] for record in found.records()])
    for record, s in zip(found.records(), index.tolist(), strict=True):
        i = record["row"]
        assert T.classes[W[i].argmax()] == record["suggestion"]
        assert record["class_proba"] == W[i].max()
        assert record["label_proba"] == pytest.approx(clf.class_proba_[i] @ T.proba[:, s])
        if record["label"] is not None:
            wrong = 1 - W[i, T.classes.index(record["label"])]
            assert record["doubt"] == pytest.approx(wrong, abs=1e-12)


def test_the_sentence_depends_on_the_doubt(found):
    starts = set()
    for record in found.records():
        why, label, best = record["why"], record["label"], record["suggestion"]
        if label is None:
            assert why == f"no label; looks like {best!r}"
        elif record["doubt"] > DOUBTED:
            assert why == f"looks like {best!r}, not {label!r}"
        elif record["doubt"] > POSSIBLE:
            other = why.removeprefix("could be ").strip("'")
            assert other in found.transition.classes
            assert other != label
        else:
            assert why == "fits"
        assert why == found.why(record["row"])
        starts.add(why.split()[0])
    assert starts == {"no", "looks", "could", "fits"}


def test_the_first_records_are_the_beginning_of_all_records(found):
    assert found.records(7) == found.records()[:7]
    assert found.records(0) == []


def test_records_hold_plain_values(found):
    for record in found.records():
        assert type(record["row"]) is int
        assert {type(record[name]) for name in ("class_proba", "label_proba", "doubt")} == {float}
    json.dumps(found.records())


def test_names_keep_their_types_in_a_table():
    t = Transition.partial([0, 1], labeled=0.5)
    found = audit(*fitted(t)[:2])
    assert {type(name) for name in found.table()["label"]} == {int, type(None)}
    assert set(found.table()["suggestion"]) == {0, 1}
    sets = Transition.combine({"a": t, 1: t}, sizes={"a": 1, 1: 1})
    found = audit(*fitted(sets, 100)[:2])
    assert set(found.table()["label"]) == set(sets.labels)


def test_in_polars_numbers_stay_numbers_and_tuples_become_text():
    pytest.importorskip("polars")
    t = Transition.partial([0, 1], labeled=0.5)
    found = audit(*fitted(t, 100)[:2])
    assert set(found.table("polars")["label"]) == {0, 1, None}
    sets = Transition.combine({"a": t, 1: t}, sizes={"a": 1, 1: 1})
    found = audit(*fitted(sets, 100)[:2])
    texts = {"a: 0", "a: 1", "a: (unlabeled)", "1: 0", "1: 1", "1: (unlabeled)"}
    assert set(found.table("polars")["label"]) == texts


# ------------------------------------------------------------------------ meanings of labels


@pytest.mark.parametrize("rate", [0.1, 0.4])  # 0.4: a cat gets "canine" nearly as often as a dog
def test_a_coarse_label_is_doubted_as_a_whole(rate):
    meant = {"dog": "dog", "canine": ["dog", "wolf"], "cat": "cat"}
    t = Transition.from_meanings(meant).with_noise(rate)
    label_proba = np.repeat([[0.6, 0.35, 0.05], [0.05, 0.9, 0.05], [0.05, 0.05, 0.9]], 20, axis=0)
    labels = ["dog"] * 20 + ["canine"] * 20 + ["cat"] * 19 + ["canine"]
    found = audit(label_proba=label_proba, labels=labels, transition=t)
    (first, second) = found.records(2)
    assert (first["row"], first["suggestion"]) == (59, "cat")
    assert second["doubt"] < POSSIBLE
    W = found.class_proba_given_label
    assert_allclose(found.doubt[20:40], W[20:40, t.classes.index("cat")], atol=1e-12)


# ------------------------------------------------------------------------------------- ways to call


def test_probabilities_of_any_model_are_audited_as_by_a_classifier(partly):
    clf, labels, _ = partly
    given, design = clf.label_proba_, clf.transition_
    found = audit(label_proba=given, labels=labels, transition=design)
    again = DecoupledClassifier(transition=design).fit_from_proba(given, labels)
    expected = audit(again, labels)
    assert found.records() == expected.records()
    assert found.summary() == expected.summary()


def test_without_a_transition_noise_is_estimated():
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=400)
    labels = np.where(rng.random(400) < 0.2, (y + rng.integers(1, 3, 400)) % 3, y)
    label_proba = (0.8 * np.eye(3) + 0.1 * (1 - np.eye(3)))[y]
    found = audit(label_proba=label_proba, labels=labels)
    # 15 % are estimated of 20 %: a part could be overlap of the classes
    assert_allclose(found.transition.proba, 0.7 * np.eye(3) + 0.1, atol=0.05)
    assert set(found.table()["row"][: np.sum(labels != y)]) == set(np.flatnonzero(labels != y))


def test_new_rows_are_predicted_once(partly, monkeypatch):
    clf, labels, X = partly
    predict, calls = DecoupledClassifier.predict_proba, []
    monkeypatch.setattr(
        DecoupledClassifier, "predict_proba", lambda *args: calls.append(1) or predict(*args)
    )
    audit(clf, labels[:20], X[:20])
    assert len(calls) == 1


def test_new_rows_are_audited_by_their_predictions(partly):
    clf, _, X = partly
    new, labels = X[:50] + 0.1, ["red", None] * 25
    found = audit(clf, labels, new)
    assert_array_equal(found.class_proba, clf.predict_proba(new))
    assert_array_equal(found.class_proba_given_label, clf.predict_proba_given_label(new, labels))
    summary = found.summary()
    assert (summary["n_rows"], summary["n_labeled"], summary["infeasible"]) == (50, 25, None)


def test_a_loaded_model_audits_as_the_one_that_was_saved(tmp_path):
    pytest.importorskip("skops")
    from looselabels import load, save

    for parameters in ({}, {"strength": 50}):
        clf, labels, X = fitted(PARTLY_LABELED, **parameters)
        save(clf, tmp_path / "model", overwrite=True)
        loaded = load(tmp_path / "model")
        expected = audit(clf, labels, X)
        assert audit(loaded, labels, X).summary() == expected.summary()
        assert audit(loaded, labels, X).records() == expected.records()
        with pytest.raises(ValueError, match=r"has no rows; pass them: audit\(clf, y, X\)"):
            audit(loaded, labels)


def test_missing_or_unknown_arguments_are_named(partly, found):
    with pytest.raises(ValueError, match=r"\(clf, y\), or label_proba= and labels="):
        audit()
    with pytest.raises(ValueError, match="one is missing"):
        audit(label_proba=np.eye(2))
    with pytest.raises(ValueError, match="one is missing"):
        audit(labels=["a", "b"])
    clf, labels, X = partly
    with pytest.raises(ValueError, match="y"):
        audit(clf)
    with pytest.raises(ValueError, match="y has 299 rows; the classifier was fitted to 300"):
        audit(clf, labels[1:])
    with pytest.raises(ValueError, match=r"299|300"):
        audit(clf, labels, X[1:])
    with pytest.raises(ValueError, match=r"labels \['purple'\] are not in the transition"):
        audit(clf, ["purple"] * 300)
    with pytest.raises(NotFittedError):
        audit(DecoupledClassifier(), labels)
    with pytest.raises(ValueError, match=r"one of \('pandas', 'polars'\); it is 'arrow'"):
        found.table("arrow")


@pytest.mark.parametrize("name", ["label_proba", "labels", "transition"])
def test_arguments_that_do_not_go_with_a_classifier_are_named(name):
    labels = ["a", "b"] * 10
    clf = DecoupledClassifier().fit_from_proba(np.tile(np.eye(2), (10, 1)), labels)
    with pytest.raises(ValueError, match=f"with a classifier does not use '{name}'"):
        audit(clf, labels, **{name: Transition.identity(["a", "b"])})


@pytest.mark.parametrize("name", ["y", "X"])
def test_arguments_that_need_a_classifier_are_named(name):
    with pytest.raises(ValueError, match=f"without a classifier does not use '{name}'"):
        audit(label_proba=np.eye(2), labels=["a", "b"], **{name: ["a", "b"]})


def test_other_labels_of_the_same_rows_are_counted_as_given(partly):
    """The doubts are those of the fit: class_proba_given_label_ belongs to its labels."""
    clf, labels, X = partly
    swapped = np.where(labels == "red", "green", labels)
    reds = np.flatnonzero(labels == "red")
    assert audit(clf, swapped).doubt[reds].mean() > 0.8
    assert audit(clf, swapped, X).doubt[reds].mean() > 0.5


# --------------------------------------------------------------------------------------- summaries


def numbers(value):
    """Return every number within a summary."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        return [number for part in value for number in numbers(part)]
    return [] if value is None or isinstance(value, str | bool) else [value]


@pytest.mark.parametrize("parameters", [{}, {"strength": 50.0}, {"noise": 0.1}])
def test_a_summary_is_json_with_all_its_parts_and_finite_numbers(parameters):
    clf, labels, _ = fitted(PARTLY_LABELED, **parameters)
    summary = audit(clf, labels).summary()
    assert list(summary) == PARTS
    assert json.loads(json.dumps(summary, allow_nan=False)) == summary
    assert np.isfinite(numbers(summary)).all()
    assert summary["schema"] == 1
    assert set(summary["wrong"]) == {*NO_NUMBERS, "why_no_count"}
    assert set(summary["transition"]) == {"classes", "labels", "proba", "low", "high"}
    assert set(summary["calibration"]) == {"bins", "error"}
    assert all(
        set(b) == {"confidence", "frequency", "count"} for b in summary["calibration"]["bins"]
    )


def test_a_summary_agrees_with_the_inference(found, partly):
    summary, T = found.summary(), found.transition
    W, index = partly[0].class_proba_given_label_, found.label_index
    given = np.eye(len(T.labels))[index]
    assert_allclose(summary["flow"], (W.T @ given).T)
    assert_allclose(np.sum(summary["flow"], axis=1), given.sum(axis=0))
    assert summary["n_rows"] == 300
    assert summary["n_labeled"] == np.sum(index < 4)
    wrong = summary["wrong"]
    assert wrong["low"] <= wrong["expected"] <= wrong["high"]
    assert wrong["low"] < found.doubt.sum() < wrong["high"]
    assert wrong["doubted"] == np.sum(found.doubt > DOUBTED)
    assert_allclose(summary["transition"]["proba"], T.proba)
    assert summary["design"]["labels"] == list(T.labels)
    low, share, high = ([c[k] for c in summary["classes"]] for k in ("low", "share", "high"))
    assert (np.less(low, share) & np.less(share, high)).all()
    assert sum(share) == pytest.approx(1)
    counts = [b["count"] for b in summary["calibration"]["bins"]]
    assert sum(counts) == summary["n_labeled"]


def test_the_same_seed_gives_the_same_summary_and_another_one_a_similar_one(partly, found):
    clf, labels, _ = partly
    summary = found.summary()
    assert audit(clf, labels).summary() == summary
    other = audit(clf, labels, random_state=1).summary()
    assert other != summary
    assert other["wrong"]["expected"] == pytest.approx(summary["wrong"]["expected"], rel=0.05)


def test_if_labels_cannot_be_wrong_none_is_doubted():
    clf, labels, _ = fitted(Transition.identity(NAMES))
    found = audit(clf, labels)
    assert not found.doubt.any()
    assert set(found.table()["why"]) == {"fits"}


def test_labels_without_rows_and_indistinct_classes_are_named():
    t = Transition.from_meanings({"pet": ["cat", "dog"], "bird": "bird", "fish": "fish"})
    t = t.with_noise(0.1)
    data = make_gaussians(200, random_state=0)
    labels = np.where(data.y == "red", "pet", "bird")
    clf = DecoupledClassifier(GaussianNB(), t, cv=3, random_state=0)
    with pytest.warns(UserWarning, match="do not occur in y"), pytest.warns(IdentifiabilityWarning):
        clf.fit(data.X, labels)
    summary = audit(clf, labels).summary()
    assert summary["unsupported_labels"] == ["fish"]
    assert summary["indistinct_classes"] == [["cat", "dog"]]
    assert np.isfinite(numbers(summary)).all()
    missing = Transition.partial(["a", "b"]).with_noise(0.1)
    found = audit(label_proba=np.full((4, 3), 1 / 3), labels=["a", "b"] * 2, transition=missing)
    assert found.summary()["unsupported_labels"] == []  # a complete column is not reported


def test_an_audit_without_labels_has_nothing_to_doubt(partly):
    clf, _, X = partly
    summary = audit(clf, [None] * 20, X[:20]).summary()
    assert summary["n_labeled"] == 0
    assert summary["wrong"] == NO_NUMBERS | {
        "why_no_count": "No row has a label, so there is no label to check."
    }
    assert summary["calibration"] == {"bins": [], "error": None}


def weak_labels():
    """Return rows and labels that exclude no class, with their transition."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 300)
    t = Transition([[0.7, 0.3], [0.2, 0.8]], ["cat", "dog"], ["small", "large"])
    labels = np.where(rng.random(300) < t.proba[y, 1], "large", "small")
    return np.column_stack([3 * y + rng.standard_normal(300), np.ones(300)]), labels, t


def test_labels_that_exclude_no_class_are_labels_that_cannot_be_wrong(tmp_path):
    X, labels, t = weak_labels()
    found = audit(DecoupledClassifier(GaussianNB(), t, refit=False).fit(X, labels), labels)
    assert found.question == "labels"
    assert found.why_no_count == (
        "Every label is possible for every class, so no label can be wrong."
    )
    assert repr(found) == f"Audit(300 rows, 300 labeled. {found.why_no_count})"
    assert found.why(0) == "looks like 'dog'"
    assert (found.summary()["n_labeled"], found.summary()["unlabeled"]) == (300, None)
    found.to_html(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "Rows with a label" in page
    assert "Rows without a label" not in page
    assert "nlabeled rows" not in page


def test_what_excludes_noise_is_named_with_what_to_change():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 300)
    X, labels = 3 * y[:, None] + rng.standard_normal((300, 2)), np.array(["cat", "dog"])[y]
    cats = np.where((y == 0) & (rng.random(300) < 0.5), "cat", None)

    def why(labels, **settings):
        clf = DecoupledClassifier(GaussianNB(), refit=False, random_state=0, **settings)
        return audit(clf.fit(X, labels), labels).why_no_count

    assert "as you specified. Fit with noise='estimate'" in why(labels, noise=0)
    assert "because strength is finite and noise was not specified" in why(labels, strength=50)
    assert "as you specified" in why(labels, strength=50, noise=0)
    assert why(labels, strength=50, noise="estimate") is None
    said = why(cats, negative="dog", class_prior="density-ratio")
    assert "class_prior names a method, which needs right labels" in said
    assert "fit with noise='estimate' and without class_prior" in said
    assert why(cats, negative="dog", noise="estimate") is None


def test_rows_that_no_combination_of_classes_explains_are_counted():
    t = Transition.partial(["cat"], labeled=0.4, negative="other")
    rows = np.repeat([[0.3, 0.7], [0.95, 0.05]], [30, 10], axis=0)
    found = audit(label_proba=rows, labels=["cat", None] * 20, transition=t)
    assert found.summary()["infeasible"] == 0.25


def test_an_audit_of_values_needs_no_classifier(found):
    again = Audit(
        found.model, found.label_index, found.class_proba, found.class_proba_given_label, True
    )
    assert again.records() == found.records()
    expected = found.summary() | {"label_accuracy": None, "infeasible": None, "findings": []}
    assert again.summary() == expected


def test_an_audit_is_shown_as_its_size_and_the_verdict_of_its_page(found):
    sentence = verdict(found.summary())
    assert repr(found) == f"Audit(300 rows, {found.is_labeled.sum()} labeled. {sentence})"
    assert f"About {found.summary()['wrong']['expected']:.0f} " in sentence


def test_an_interval_that_reaches_zero_is_shown_as_an_upper_bound(found):
    few = found.class_proba_given_label.copy()
    right = found.is_right[found.label_index]
    few[found.is_labeled] = np.where(right, 1.0, 0.0)[found.is_labeled]
    sources = found.model.sources._replace(noise="estimated")
    found = replace(found, model=found.model._replace(sources=sources), class_proba_given_label=few)
    assert "labeled. No sign of wrong labels" in repr(found)
    row = int(np.argmax(found.is_labeled))
    few[row] = np.where(right[row], 0.4, 0.6 / (few.shape[1] - 1))
    found = replace(found, class_proba_given_label=few)
    assert found.summary()["wrong"]["high"] > found.summary()["wrong"]["low"] == 0
    assert "labeled. At most 3 of " in repr(found)


def test_names_of_any_kind_are_kept():
    design = Transition.partial(HOSTILE, labeled=0.9).with_noise(0.1)
    labels = (HOSTILE * 12)[:110] + [None] * 10
    label_proba = np.random.default_rng(0).dirichlet(np.ones(11), 120)
    found = audit(label_proba=label_proba, labels=labels, transition=design)
    assert json.loads(json.dumps(found.summary())) == found.summary()
    assert all(record["why"].isprintable() for record in found.records())
    assert {record["label"] for record in found.records()} == {*HOSTILE, None}
    assert found.table().shape == (120, 7)


# ----------------------------------------------------- what was specified, implied, estimated

POSITIVE = Transition.partial(NAMES[:3], labeled=0.3, negative="other")
HALF = Transition.partial(NAMES, labeled=0.6)


@pytest.fixture(scope="module")
def fit_to():
    """A function that returns a classifier fitted to Gaussians, and their labels; it remembers."""
    data = make_gaussians(300, random_state=0)
    designs = {
        "noisy": Transition.identity(NAMES).with_noise(0.2),
        "partly": PARTLY_LABELED,
        "positive": POSITIVE,
    }
    known = {}

    def fit(name, estimator=None, **parameters):
        estimator = GaussianNB() if estimator is None else estimator
        key = repr((name, estimator, {key: str(value) for key, value in parameters.items()}))
        if key not in known:
            cv = 3 if isinstance(estimator, GaussianNB) else None
            labels = make_loose_labels(data.y, designs[name], random_state=0)
            clf = DecoupledClassifier(estimator, cv=cv, random_state=0, **parameters)
            known[key] = clf.fit(data.X, labels), labels
        clf, labels = known[key]
        return copy(clf), labels

    return fit


@pytest.mark.parametrize("estimator", [GaussianNB(), BalancedForestClassifier(20, random_state=0)])
@pytest.mark.parametrize("noise", [0.0, 0.1])
def test_a_specified_and_an_implied_transition_that_are_equal_give_the_same_audit(
    fit_to, estimator, noise
):
    prior = dict.fromkeys(NAMES, 0.25)
    implied, labels = fit_to(
        "positive", estimator, negative="other", class_prior=prior, noise=noise
    )
    design = implied.transition_
    if not noise:
        design = Transition.from_labels(labels, negative="other", class_prior=prior)
    specified, _ = fit_to("positive", estimator, transition=design, class_prior=prior)
    assert diagnose(implied, labels) == diagnose(specified, labels)
    of_implied, of_specified = audit(implied, labels), audit(specified, labels)
    assert of_implied.records() == of_specified.records()
    first, second = of_implied.summary(), of_specified.summary()
    assert first.pop("sources")["transition"] == "implied"
    assert second.pop("sources")["transition"] == "specified"
    assert first == second
    assert first["transition"]["low"] == first["transition"]["proba"]  # nothing was estimated
    assert first["findings"][0]["p_value"] is not None  # and so it was tested


@pytest.mark.parametrize(
    "later", [{"noise": "estimate"}, {"negative": "other"}, {"strength": 5}, {"class_prior": None}]
)
@pytest.mark.parametrize("parameters", [{"transition": HALF, "noise": 0.1}, {"noise": "estimate"}])
def test_parameters_that_are_set_after_the_fit_change_nothing(fit_to, parameters, later):
    clf, labels = fit_to("partly", **parameters)
    found, findings = audit(clf, labels), diagnose(clf, labels)
    clf.set_params(**later)
    again = audit(clf, labels)
    assert again.summary() == found.summary()
    assert again.records() == found.records()
    assert diagnose(clf, labels) == findings


@pytest.mark.parametrize(
    ("name", "parameters", "is_counted"),
    [
        ("noisy", {"noise": 0.0}, False),
        ("partly", {"transition": HALF, "noise": 0.0}, False),
        ("positive", {"negative": "other", "noise": 0.0}, False),
        ("positive", {"negative": "other", "noise": 0.05}, True),
        ("partly", {"transition": HALF, "noise": 0.1}, True),
        ("noisy", {"noise": "estimate"}, True),
    ],
)
def test_labels_that_are_specified_as_right_are_not_counted(fit_to, name, parameters, is_counted):
    clf, labels = fit_to(name, **parameters)
    found = audit(clf, labels)
    if is_counted:
        assert found.why_no_count is None
        return
    assert found.why_no_count == (
        "Labels were assumed to be right, as you specified. "
        "Fit with noise='estimate' to look for wrong labels."
    )
    assert found.summary()["wrong"] == NO_NUMBERS | {"why_no_count": found.why_no_count}
    assert repr(found).endswith(f"labeled. {verdict(found.summary())})")


@pytest.mark.parametrize(
    ("name", "parameters", "expected"),
    [  # label rates, noise, class prior, transition
        ("partly", {"transition": HALF, "noise": 0.1}, "specified specified implied specified"),
        ("partly", {"noise": 0.1}, "implied specified implied implied"),
        ("partly", {"noise": "estimate"}, "implied estimated estimated estimated"),
        ("partly", {}, "implied estimated estimated estimated"),
        ("positive", {"negative": "other", "noise": 0}, "estimated specified estimated estimated"),
        (
            "positive",
            {"negative": "other", "noise": 0, "class_prior": dict.fromkeys(NAMES, 0.25)},
            "implied specified specified implied",
        ),
        ("noisy", {"noise": 0.2, "strength": 30.0}, "implied specified implied estimated"),
    ],
)
def test_the_summary_names_the_source_of_each_number(fit_to, name, parameters, expected):
    clf, labels = fit_to(name, **parameters)
    sources = audit(clf, labels).summary()["sources"]
    keys = ("label_rates", "noise", "class_prior", "transition")
    assert sources == dict(zip(keys, expected.split(), strict=True))


def test_the_design_is_what_was_assumed_and_not_what_was_estimated(fit_to):
    clf, labels = fit_to("partly", noise="estimate")
    summary, assumed = audit(clf, labels).summary(), Transition.from_labels(labels)
    assert summary["design"]["classes"] == list(assumed.classes)
    assert summary["design"]["labels"] == list(assumed.labels)
    assert_array_equal(summary["design"]["proba"], assumed.proba)
    assert_array_equal(summary["transition"]["proba"], clf.transition_.proba)
    assert np.max(abs(clf.transition_.proba - assumed.proba)) > 0.02


def test_the_design_includes_noise_that_was_specified_and_is_not_what_was_inferred(fit_to):
    clf, labels = fit_to("partly", transition=HALF, noise=0.1, strength=30.0)
    summary = audit(clf, labels).summary()
    assert_allclose(summary["design"]["proba"], PARTLY_LABELED.proba)
    assert_array_equal(summary["transition"]["proba"], clf.transition_.proba)
    assert np.max(abs(clf.transition_.proba - PARTLY_LABELED.proba)) > 0.02


def test_label_rates_that_were_left_open_have_no_numbers_in_the_design(fit_to):
    clf, labels = fit_to("positive", negative="other", noise=0.05)
    design = audit(clf, labels).summary()["design"]
    names = clf.transition_.classes, clf.transition_.labels
    assert design == {"classes": list(names[0]), "labels": list(names[1])}


# ------------------------------------------------------------------------- the other question


CAT_OR_DOG = Transition.partial(["cat", "dog"], labeled=0.4, negative="other")


@pytest.fixture(scope="module")
def some_positive():
    """p(label | x), labels and classes of rows of which 40 % of the cats and dogs are labeled."""
    rng = np.random.default_rng(0)
    y = rng.choice(3, 600, p=[0.2, 0.3, 0.5])
    x = rng.normal(2.5 * y)
    joint = np.exp(-0.5 * (x[:, None] - 2.5 * np.arange(3)) ** 2) * [0.2, 0.3, 0.5]
    label_proba = joint / joint.sum(axis=1, keepdims=True) @ CAT_OR_DOG.proba
    classes = np.array(CAT_OR_DOG.classes)[y]
    return label_proba, make_loose_labels(classes, CAT_OR_DOG, random_state=1), classes


@pytest.fixture(scope="module")
def positive(some_positive):
    """The audit of these rows."""
    label_proba, labels, _ = some_positive
    return audit(label_proba=label_proba, labels=labels, transition=CAT_OR_DOG)


def test_if_a_class_is_never_labeled_unlabeled_rows_are_in_question(positive):
    assert positive.question == positive.summary()["question"] == "unlabeled"
    assert positive.summary()["wrong"]["why_no_count"].startswith("Labels were assumed to be right")
    no_labels = replace(positive, label_index=np.full(600, CAT_OR_DOG.labels.index(None)))
    assert no_labels.question == "unlabeled"


def test_if_labels_can_be_wrong_both_questions_are_answered(some_positive):
    label_proba, labels, _ = some_positive
    noisy = CAT_OR_DOG.with_noise(0.05)
    found = audit(label_proba=label_proba, labels=labels, transition=noisy)
    summary = found.summary()
    assert found.question == summary["question"] == "unlabeled"
    assert summary["wrong"]["expected"] > 0
    assert summary["unlabeled"]["n_rows"] == np.sum(~found.is_labeled)
    assert not found.is_labeled[found.order[0]]


def test_if_every_class_is_labeled_labels_are_in_question(found):
    for one in (found, replace(found, class_proba_given_label=found.is_right[found.label_index])):
        assert one.question == "labels"
        assert one.summary()["unlabeled"] is None
        assert one.summary()["n_to_check"] == np.sum(one.doubt > 0.5)


def test_the_rows_that_are_most_certainly_positive_come_first(positive):
    table, n = positive.table(), int(np.sum(~positive.is_labeled))
    assert all(label is None for label in table["label"][:n])
    assert all(label is not None for label in table["label"][n:])
    values = 1 - positive.class_proba_given_label[table["row"][:n], 2]
    assert (np.diff(values) <= 1e-12).all()
    n_to_check = positive.summary()["n_to_check"]
    assert 0 < n_to_check == np.sum(values > 0.5) < n
    is_first = [i < n_to_check for i in range(len(table))]
    assert [record["to_check"] for record in positive.records()] == is_first


def test_the_sentence_names_a_class_that_has_labels_if_one_is_possible(positive):
    seen = set()
    for record in positive.records():
        proba = positive.class_proba_given_label[record["row"]]
        best = "cat" if proba[0] > proba[1] else "dog"
        if record["label"] is not None:
            expected = "labeled; assumed to be right"
        elif 1 - proba[2] > DOUBTED:
            expected = f"looks like {best!r}"
        elif 1 - proba[2] > POSSIBLE:
            expected = f"could be {best!r}"
        else:
            expected = "looks like 'other'"
        assert record["why"] == expected
        seen.add(expected)
    assert len(seen) == 5, seen  # cats do not look like "other": nothing "could be" one


@pytest.mark.parametrize("parameters", [{"transition": CAT_OR_DOG}, {"negative": "other"}])
def test_the_expected_number_of_unlabeled_rows_of_each_class_is_close_to_the_truth(
    some_positive, parameters
):
    label_proba, labels, classes = some_positive
    clf = DecoupledClassifier(random_state=0, **parameters).fit_from_proba(label_proba, labels)
    found = audit(clf, labels)
    counted = found.summary()["unlabeled"]
    is_unlabeled = np.array([label is None for label in labels])
    assert [part["name"] for part in counted["classes"]] == ["cat", "dog"]
    for k, part in enumerate(counted["classes"]):
        n_rows = np.sum(is_unlabeled & (classes == part["name"]))
        assert 0 < part["low"] < part["expected"] < part["high"] < counted["n_rows"]
        assert part["low"] - 5 < n_rows < part["high"] + 5  # one of four is outside, by 4
        assert part["low"] < found.flow()[-1, k] < part["high"]
        assert part["high"] - part["low"] < 100


def test_counts_of_unlabeled_rows_include_the_uncertainty_of_class_shares(positive):
    prior = positive.model.class_prior
    ends = prior - np.array([0.1, 0.9, 0]), prior + np.array([0.9, 0.1, 0])
    found = replace(positive, model=positive.model._replace(class_prior_interval=ends))
    counted = found.summary()["unlabeled"]
    cat, dog = counted["classes"]
    assert cat["low"] == pytest.approx(cat["expected"] - 60)
    assert dog["high"] == pytest.approx(dog["expected"] + 60)
    assert (cat["high"], dog["low"]) == (counted["n_rows"], 0)


def test_all_labeled_classes_together_have_an_interval_of_their_own(some_positive):
    label_proba, labels, classes = some_positive
    clf = DecoupledClassifier(negative="other", noise=0, random_state=0)
    counted = audit(clf.fit_from_proba(label_proba, labels), labels).summary()["unlabeled"]
    together, of_classes = counted["together"], counted["classes"]
    assert together["expected"] == pytest.approx(sum(part["expected"] for part in of_classes))
    is_unlabeled = np.array([label is None for label in labels])
    n_rows = np.sum(is_unlabeled & (classes != "other"))
    assert 0 < together["low"] - 5 < n_rows < together["high"] + 5 < counted["n_rows"]


# -------------------------------------------------------------------------------- intervals


def distances(summary):
    """Return how far each estimate lies outside of its interval, 0 if it is inside."""

    def outside(values):
        low, value, high = (np.array(v) for v in values)
        assert (low <= high).all()
        return np.maximum(np.maximum(low - value, value - high), 0)

    shares = [[c[k] for c in summary["classes"]] for k in ("low", "share", "high")]
    wrong = [summary["wrong"][k] for k in ("low", "expected", "high")]
    return {
        "classes": outside(shares),
        "wrong": outside([0, 0, 0] if summary["wrong"]["why_no_count"] else wrong),
        "transition": outside([summary["transition"][k] for k in ("low", "proba", "high")]),
    }


@pytest.mark.parametrize(
    ("name", "parameters", "width"),
    [
        ("partly", {"transition": HALF, "noise": 0.1}, 0),
        ("positive", {"negative": "other", "noise": 0, "class_prior": [0.25] * 3}, 0),
        ("partly", {"transition": HALF, "noise": 0.1, "strength": 30.0}, 0.15),
        ("noisy", {"noise": 0.2, "strength": 30.0}, 0.14),
        ("noisy", {}, 0.13),
        ("positive", {"negative": "other", "noise": 0}, 0.05),
    ],
)
def test_intervals_contain_their_estimates(fit_to, name, parameters, width):
    clf, labels = fit_to(name, **parameters)
    summary = audit(clf, labels).summary()
    for distance in distances(summary).values():
        assert not distance.any()
    low, high = (np.array(summary["transition"][k]) for k in ("low", "high"))
    assert np.mean(high - low) == pytest.approx(width, abs=0.01)


@pytest.mark.parametrize("n_wrong", [0, 20])
def test_one_label_with_a_negative_class_can_be_wrong(n_wrong):
    rng = np.random.default_rng(0)
    is_positive = np.arange(800) < 300
    X = rng.standard_normal((800, 2)) + 4.0 * is_positive[:, None]
    labels = np.where(is_positive & (rng.random(800) < 0.4), "positive", None)
    labels[-n_wrong or 800 :] = "positive"
    clf = DecoupledClassifier(GaussianNB(), negative="other", noise="estimate", refit=False)
    found = audit(clf.fit(X, labels), labels)
    wrong = found.summary()["wrong"]
    assert wrong["low"] <= n_wrong <= wrong["high"]
    assert wrong["expected"] == pytest.approx(n_wrong, abs=6)
    if n_wrong:
        assert wrong["low"] > 5
        assert set(range(780, 800)) <= set(np.argsort(-found.doubt)[:25].tolist())
    else:  # that none is wrong cannot be known
        assert 0 == round(wrong["low"]) < wrong["high"] < 10


@pytest.mark.filterwarnings("ignore:Too few rows")  # the classes of "positive" overlap
@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("partly", {"noise": "estimate"}),
        ("positive", {"negative": "other", "noise": 0.1}),
        ("positive", {"negative": "other", "noise": "estimate"}),
    ],
)
def test_intervals_contain_small_probabilities(fit_to, name, parameters):
    """Draws of T are from the label mass, which calibration and class prior move a little.

    Where this mass is a fraction of a row, draws are so close together that they can all miss the
    estimate.
    """
    clf, labels = fit_to(name, **parameters)
    for distance in distances(audit(clf, labels).summary()).values():
        assert not distance.any()


def test_shares_include_the_uncertainty_of_noise_that_was_estimated(fit_to):
    clf, labels = fit_to("noisy")
    found, room = audit(clf, labels), np.array([[0.02, 0, 0.5, 0], [0, 0.01, 0.5, 0]])
    assert found.model.class_share_room.any()
    wide, narrow = (
        replace(found, model=found.model._replace(class_share_room=one)).summary()["classes"]
        for one in (room, None)
    )
    for k, (more, less) in enumerate(zip(wide, narrow, strict=True)):
        below, above = (less["share"] - less["low"], less["high"] - less["share"])
        assert more["share"] == less["share"]
        assert more["low"] == pytest.approx(max(less["share"] - np.hypot(below, room[0, k]), 0))
        assert more["high"] == pytest.approx(min(less["share"] + np.hypot(above, room[1, k]), 1))


def test_shares_include_the_uncertainty_of_label_rates_that_were_estimated(fit_to):
    clf, labels = fit_to("positive", negative="other", noise=0)
    found = audit(clf, labels)
    drawn = replace(found, model=found.model._replace(class_prior_interval=None))
    ends, narrow = (
        np.array([[part[k] for part in one.summary()["classes"]] for k in ("low", "high")])
        for one in (found, drawn)
    )
    low, high = clf.class_prior_interval_
    assert_array_equal(ends, [np.minimum(low, narrow[0]), np.maximum(high, narrow[1])])
    assert np.any(ends != narrow)


def useless(found, **changes):
    """Return an audit as if the features did not predict the labels."""
    return replace(found, findings=(Finding("features", True, None, ""),), **changes)


def test_unlabeled_rows_are_not_counted_if_features_say_nothing_and_label_rates_are_open(fit_to):
    clf, labels = fit_to("positive", negative="other", noise=0)
    assert audit(clf, labels).summary()["unlabeled"]["why_no_count"] is None
    found = useless(audit(clf, labels))
    why = "Unlabeled rows of a labeled class cannot be counted: {} do not predict the labels."
    words = why.format("the features")
    assert found.why_no_unlabeled_count == words
    assert repr(found).endswith(f"labeled. {words})")
    summary = found.summary()
    counted, no_number = summary["unlabeled"], dict.fromkeys(("expected", "low", "high"))
    assert (verdict(summary), counted["why_no_count"]) == (words, words)
    assert (summary["n_to_check"], counted["together"]) == (0, no_number)
    assert counted["classes"] == [{"name": name, **no_number} for name in clf.classes_[:3]]
    given = useless(found, has_own_proba=True)
    assert given.why_no_unlabeled_count == why.format("the given probabilities")


@pytest.mark.filterwarnings("ignore:Too few rows")
@pytest.mark.parametrize("noise", [0, "estimate"])
def test_class_shares_show_how_many_unlabeled_rows_there_are_if_features_say_nothing(fit_to, noise):
    clf, labels = fit_to("positive", negative="other", noise=noise, class_prior=[0.25] * 3)
    found = useless(audit(clf, labels))
    assert found.why_no_unlabeled_count is None
    assert found.summary()["unlabeled"]["together"]["expected"] > 0


def test_unlabeled_rows_that_are_all_reviewed_are_counted_if_features_say_nothing(fit_to):
    clf, labels = fit_to("positive", negative="other", noise=0)
    decisions = [NAMES[0] if label is None else None for label in labels]
    counted = useless(audit(clf, labels, decisions=decisions)).summary()["unlabeled"]
    assert counted["together"] == dict.fromkeys(("expected", "low", "high"), counted["n_rows"])


@pytest.mark.parametrize("n_reviewed", [100, None])
def test_the_count_of_unlabeled_rows_includes_those_that_a_review_found(fit_to, n_reviewed):
    clf, labels = fit_to("positive", negative="other", noise=0)
    unlabeled = np.flatnonzero([label is None for label in labels])
    rows, decisions = unlabeled[:n_reviewed], np.full(len(labels), None)
    decisions[rows] = NAMES[0]
    found = audit(clf, labels, decisions=decisions).summary()["unlabeled"]
    for part in found["classes"]:
        n_found = len(rows) if part["name"] == NAMES[0] else 0
        assert n_found <= part["low"] <= part["expected"] <= part["high"]
        assert part["high"] <= len(unlabeled) - len(rows) + n_found


# ---------------------------------------------------------------------------------- sample weights


@pytest.mark.parametrize("noise", [0.1, "estimate"])
def test_weights_change_shares_and_calibration_but_not_counts_of_rows(noise):
    rng = np.random.default_rng(0)
    label_proba = rng.dirichlet([0.1, 0.1], 200) @ [[0.9, 0.1], [0.1, 0.9]]
    y = np.where(rng.random(200) < label_proba[:, 0], "a", "b")
    weight = np.where(label_proba[:, 0] > 0.5, 3.0, 1.0)
    clf = DecoupledClassifier(noise=noise).fit_from_proba(label_proba, y, sample_weight=weight)
    found = audit(clf, y)
    rows = np.repeat(np.arange(200), weight.astype(int))
    copies = DecoupledClassifier(noise=noise).fit_from_proba(label_proba[rows], y[rows])
    weighted, copied = found.summary(), audit(copies, y[rows]).summary()
    for part, other in zip(weighted["classes"], copied["classes"], strict=True):
        assert {**part, "name": 0} == pytest.approx({**other, "name": 0}, abs=1e-6)
    assert_allclose(weighted["transition"]["high"], copied["transition"]["high"], atol=1e-6)
    assert weighted["calibration"]["error"] == pytest.approx(copied["calibration"]["error"])
    assert_allclose(np.sum(weighted["flow"], axis=1), [np.sum(y == "a"), np.sum(y == "b")])
    assert weighted["wrong"]["expected"] == pytest.approx(found.doubt.sum(), rel=0.2)
    assert 8 < weighted["wrong"]["expected"] < 0.7 * copied["wrong"]["expected"]


# ------------------------------------------------------------------------------------- real labels


@pytest.mark.parametrize("noise", [0.1, "estimate"])
def test_planted_wrong_labels_come_first(noise):
    X, y = load_digits(return_X_y=True)
    rng = np.random.default_rng(0)
    wrong = rng.random(len(y)) < 0.1
    labels = np.where(wrong, (y + rng.integers(1, 10, len(y))) % 10, y)
    model = LogisticRegression(C=0.1, max_iter=500)
    clf = DecoupledClassifier(model, noise=noise, cv=3, refit=False, random_state=0)
    clf.fit(X / 16, labels)
    found = audit(clf, labels)
    assert average_precision_score(wrong, found.doubt) > 0.97  # .99 here, .98 with other labels
    first = found.records(50)
    assert all(wrong[record["row"]] for record in first)
    right = [record["suggestion"] == y[record["row"]] for record in first]
    assert np.mean(right) > 0.9  # .98 and .92
    summary = found.summary()["wrong"]
    assert summary["low"] < wrong.sum() < summary["high"]
    assert summary["expected"] == pytest.approx(wrong.sum(), rel=0.1)  # 181 and 189 of 179


def test_single_precision_is_audited_like_double_precision():
    X, y = load_digits(n_class=3, return_X_y=True)
    X = X[:, X.std(axis=0) > 0].astype(np.float32)
    clf = DecoupledClassifier(KernelDensityClassifier(), noise=0.1).fit(X, y)
    assert clf.label_scores_.label_proba.dtype == np.float32
    assert 0 <= audit(clf, y).summary()["infeasible"] <= 1


def test_labels_that_cannot_be_wrong_have_no_calibration():
    design = Transition([[0.5, 0.5], [0.5001, 0.4999]], ["a", "b"], ["x", "y"])
    labels = ["x", "y"] * 10
    found = audit(label_proba=np.full((20, 2), 0.5), labels=labels, transition=design)
    assert found.summary()["calibration"] == {"bins": [], "error": None}


# ------------------------------------------------------------------------- useless features


def test_features_that_say_nothing_give_no_count_of_wrong_labels():
    n_useful = 0
    for seed in range(8):
        rng = np.random.default_rng(seed)
        X, y = rng.standard_normal((300, 5)), rng.integers(0, 3, 300)
        clf = DecoupledClassifier(GaussianNB(), cv=3, refit=False, random_state=0).fit(X, y)
        found = audit(clf, y)
        n_useful += found.why_no_count is None
        if found.why_no_count is not None:
            assert found.why_no_count.endswith("the features do not predict the labels.")
            wrong = NO_NUMBERS | {"why_no_count": found.why_no_count}
            assert found.summary()["wrong"] == wrong
            assert repr(found) == f"Audit(300 rows, 300 labeled. {found.why_no_count})"
            assert (found.doubt > 0.5).any()
            assert not found.is_to_check.any()
            assert set(map(found.why, range(300))) == {"unknown: the labels cannot be predicted"}
            assert "looks like" not in found._repr_html_()
            table = found.table()
            assert table[["suggestion", "class_proba", "doubt"]].isna().all(axis=None)
            assert table["label_proba"].notna().all()
    assert n_useful <= 1  # two standard errors: 2 % of them by chance


def test_a_reviewed_row_keeps_its_doubt_where_features_say_nothing():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((300, 5)), rng.integers(0, 2, 300)
    clf = DecoupledClassifier(GaussianNB(), cv=3, refit=False, random_state=0).fit(X, y)
    found = audit(clf, y, decisions=[1 - y[0], *[None] * 299])
    assert not found.predicts_labels
    assert (found.doubt[0], found.why(0)) == (1, f"reviewed: '{1 - y[0]}'")
    known = found.table().set_index("row").loc[0]
    assert (known["suggestion"], known["class_proba"], known["doubt"]) == (1 - y[0], 1, 1)


def new_rows(**settings):
    """Return a classifier, and rows and labels that it was not fitted to; column 0 is useful."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 500)
    X = np.column_stack([2 * y + rng.standard_normal(500), rng.standard_normal((500, 3))])
    clf = DecoupledClassifier(GaussianNB(), noise=0.1, refit=False, random_state=0, **settings)
    return clf.fit(X[:200], y[:200]), X[200:], y[200:]


def test_new_rows_have_the_accuracy_of_their_labels():
    clf, X, y = new_rows()
    found = audit(clf, y, X)
    assert found.predicts_labels
    assert found.label_accuracy == pytest.approx(np.mean(clf.predict(X) == y))
    assert found.summary()["wrong"]["expected"] is not None


def test_new_rows_whose_features_say_nothing_have_no_count_of_wrong_labels():
    clf, X, y = new_rows()
    X = np.random.default_rng(0).permutation(X)
    found = audit(clf, y, X)
    assert found.why_no_count.endswith("the features do not predict the labels.")
    assert not found.is_to_check.any()
    assert found.summary()["n_to_check"] is None
    few = audit(clf, y[:5], X[:5])  # too few to tell
    assert few.why_no_count is None


def test_new_rows_of_one_class_or_with_a_rare_one_do_not_make_features_useless():
    """Labels that are nearly equal cannot be predicted better than by their frequencies."""
    n_useless, rng = 0, np.random.default_rng(0)
    clf, X, y = new_rows()
    for _ in range(40):
        one = rng.permutation(np.flatnonzero(y == 0))[:60]
        few = np.concatenate([one[:54], rng.permutation(np.flatnonzero(y == 1))[:6]])
        for rows in (one, few):
            labels = np.where(rng.random(60) < 0.1, 1 - y[rows], y[rows])
            n_useless += not audit(clf, labels, X[rows]).predicts_labels
    assert n_useless == 0


def test_wrong_labels_of_new_rows_are_found_if_all_rows_look_like_one_class():
    rng = np.random.default_rng(0)
    y = np.arange(200) % 2
    X = rng.normal(6 * y)[:, None]
    clf = DecoupledClassifier(GaussianNB(), noise=0.02, refit=False, random_state=0).fit(X, y)
    labels = np.where(np.arange(60) % 5, 0, 1)
    found = audit(clf, labels, rng.normal(size=(60, 1)))
    assert found.why_no_count is None
    assert_array_equal(found.is_to_check, labels == 1)


def test_an_estimator_that_does_not_predict_the_labels_is_no_fault_of_the_features():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((400, 2))
    y = (X[:, 0] * X[:, 1] > 0).astype(int)
    clf = DecoupledClassifier(LogisticRegression(), refit=False, random_state=0).fit(X, y)
    found = audit(clf, y)
    assert found.why_no_count.endswith(
        "your estimator does not predict the labels, but another does."
    )
    (features,) = (finding for finding in found.findings if finding.kind == "features")
    assert "but a forest does. Wrong labels cannot be found with your estimator" in features.words


def test_copies_among_new_rows_count_once():
    clf, X, y = new_rows()
    once, thrice = audit(clf, y, X), audit(clf, np.tile(y, 3), np.tile(X, (3, 1)))
    assert once.groups is None
    assert thrice.groups.copies_per_row(np.ones(900)) == 3
    (copies,) = (finding for finding in thrice.findings if finding.kind == "copies")
    assert copies.words.startswith("600 of 900 rows are copies of other rows.")
    assert thrice.label_accuracy == pytest.approx(once.label_accuracy)


def test_equal_probabilities_of_another_model_are_copies_only_if_you_say_so():
    clf, X, y = new_rows()
    given, names = np.tile(clf.predict_label_proba(X).round(1), (3, 1)), np.tile(np.arange(300), 3)
    y, other = np.tile(y, 3), DecoupledClassifier(noise=0.1)
    assert audit(other.fit_from_proba(given, y), y, given).groups is None
    t = Transition.identity([0, 1]).with_noise(0.1)
    for found in (
        audit(other, y, given, copies=names),
        audit(other.fit_from_proba(given, y, copies=names), y),
        audit(label_proba=given, labels=y, transition=t, copies=names),
    ):
        assert found.groups.copies_per_row(np.ones(900)) == 3
        (copies,) = (finding for finding in found.findings if finding.kind == "copies")
        assert copies.words.startswith("600 of 900 rows are copies of other rows. Copies count")
        assert "specify copies with a different value for each row" in copies.words


def test_copies_that_were_specified_widen_intervals_as_fewer_rows_do():
    clf, X, y = new_rows()
    given = clf.predict_label_proba(X)
    once = audit(label_proba=given, labels=y).summary()["wrong"]
    rows = np.tile(np.arange(300), 3)
    thrice = audit(label_proba=given[rows], labels=y[rows], copies=rows).summary()["wrong"]
    width, expected = (thrice["high"] - thrice["low"]) / 3, thrice["expected"] / 3
    assert width == pytest.approx(once["high"] - once["low"], rel=0.1)
    assert expected == pytest.approx(once["expected"], rel=0.05)


def test_copies_can_be_denied_but_not_changed_after_a_fit():
    clf, X, y = new_rows()
    rows = np.tile(np.arange(300), 3)
    assert audit(clf, y[rows], X[rows], copies=range(900)).groups is None
    with pytest.raises(ValueError, match=r"copies cannot be combined with \(clf, y\)"):
        audit(clf, y[:200], copies=range(200))
    with pytest.raises(ValueError, match="copies has 3 values; X has 300 rows"):
        audit(clf, y, X, copies=[1, 2, 3])


def test_useful_features_give_a_count_and_the_accuracy_of_the_labels():
    X, y = load_digits(return_X_y=True)
    labels = np.where(np.arange(len(y)) % 10 == 0, (y + 1) % 10, y)
    clf = DecoupledClassifier(GaussianNB(), noise=0.1, cv=3, random_state=0).fit(X, labels)
    summary = audit(clf, labels).summary()
    predicted = clf.label_scores_.label_proba.argmax(axis=1)
    assert summary["label_accuracy"] == pytest.approx(np.mean(predicted == labels))
    assert summary["wrong"]["expected"] is not None
    assert summary["wrong"]["why_no_count"] is None


def test_labels_of_merged_data_sets_are_predicted_within_each():
    rng = np.random.default_rng(0)
    source, y = rng.integers(0, 2, 400), rng.integers(0, 2, 400)
    cat = [0.9, 0.6]  # p(label "cat" | x) of a cat, by source; x says nothing about the source
    is_cat = rng.random(400) < np.where(y == 0, np.take(cat, source), 1 - np.take(cat, source))
    names = [("web", "lab")[k] for k in source]
    labels = [(name, "cat" if c else "dog") for name, c in zip(names, is_cat, strict=True)]
    pets = Transition.identity(["cat", "dog"])
    t = Transition.combine(
        {"web": pets.with_noise(0.1), "lab": pets.with_noise(0.4)}, sizes={"web": 1, "lab": 1}
    )
    given = np.array([[0.45, 0.05, 0.3, 0.2], [0.05, 0.45, 0.2, 0.3]])[y]
    found = audit(label_proba=given, labels=labels, transition=t)
    is_predicted = (y == 0) == is_cat
    assert found.label_accuracy == pytest.approx(is_predicted.mean())
    assert found.source_accuracy == {
        name: pytest.approx(is_predicted[np.array(names) == name].mean()) for name in ("web", "lab")
    }
    (features,) = (one for one in found.findings if one.kind == "features")
    assert not features.found


def test_features_that_predict_only_the_data_set_are_useless():
    rng = np.random.default_rng(0)
    source = rng.integers(0, 2, 400)
    labels = [(("web", "lab")[k], ("cat", "dog")[rng.integers(2)]) for k in source]
    pets = Transition.identity(["cat", "dog"]).with_noise(0.2)
    t = Transition.combine({"web": pets, "lab": pets}, sizes={"web": 1, "lab": 1})
    noise = rng.uniform(-0.04, 0.04, 400)
    given = np.array([[0.45, 0.45, 0.05, 0.05], [0.05, 0.05, 0.45, 0.45]])[source]
    given += np.column_stack([noise, -noise, noise, -noise])
    found = audit(label_proba=given, labels=labels, transition=t)
    assert found.label_accuracy < 0.6
    assert found.why_no_count.endswith("the given probabilities do not predict the labels.")
    [words] = [finding.words for finding in found.findings if finding.kind == "features"]
    assert words.startswith("The given probabilities do not predict the labels better")


def test_data_sets_with_one_label_each_are_predicted_against_each_other():
    cats = Transition.from_meanings({"cat": "cat"})
    rest = Transition.from_meanings({None: ["cat", "dog"]})
    t = Transition.combine({"ads": cats, "web": rest}, sizes={"ads": 1, "web": 1})
    given = np.repeat([[0.9, 0.1], [0.1, 0.9]], 20, axis=0)
    labels = [("ads", "cat")] * 18 + [("web", None)] * 22
    found = audit(label_proba=given, labels=labels, transition=t)
    assert (found.label_accuracy, found.source_accuracy) == (pytest.approx(0.95), {})


def test_one_label_and_missing_ones_are_predicted_against_each_other():
    rng = np.random.default_rng(0)
    y = np.where(rng.random(300) < 0.4, "cat", None)
    X = np.column_stack([(y == "cat") + rng.standard_normal(300), rng.standard_normal(300)])
    for columns, useless in ((X, False), (X[:, 1:], True)):
        options = {"class_prior": {"cat": 0.6}, "noise": 0, "cv": 3, "random_state": 0}
        clf = DecoupledClassifier(GaussianNB(), negative="dog", **options)
        (finding,) = (
            one for one in audit(clf.fit(columns, y), y).findings if one.kind == "features"
        )
        assert finding.found == useless


# ----------------------------------------------------------------------------------------- copies


def wrong_labels(clf, X, y):
    """Return the interval of the number of wrong labels around the expected number."""
    found = audit(clf.fit(X, y), y)
    wrong = found.summary()["wrong"]
    return np.array([wrong["low"], wrong["expected"], wrong["high"]]), found


@pytest.mark.parametrize("noise", ["estimate", 0.1])
@pytest.mark.parametrize("name", ["forest", "linear"])
def test_a_table_repeated_three_times_has_three_times_the_wrong_labels(name, noise):
    X, classes = load_breast_cancer(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    wrong = np.random.default_rng(0).random(len(X)) < 0.1
    y = np.where(wrong, 1 - classes, classes)

    def clf(times):  # three times the rows weaken a penalty to a third
        estimator = LogisticRegression(C=1 / times) if name == "linear" else None
        return DecoupledClassifier(estimator, noise=noise, refit=False, random_state=0)

    once, _ = wrong_labels(clf(1), X, y)
    thrice, found = wrong_labels(clf(3), np.repeat(X, 3, axis=0), np.repeat(y, 3))
    assert thrice[1] == pytest.approx(3 * once[1], rel=0.05)
    assert np.ptp(thrice) / thrice[1] == pytest.approx(np.ptp(once) / once[1], rel=0.1)
    assert thrice[0] < 3 * wrong.sum() < thrice[2]
    (copies,) = (finding for finding in found.findings if finding.kind == "copies")
    assert copies.words.startswith("1,138 of 1,707 rows are copies of other rows.")


def test_explicit_groups_do_not_reduce_the_evidence():
    y = np.arange(90) % 2
    X = np.random.default_rng(0).standard_normal((90, 2)) + 4 * y[:, None]
    clf = DecoupledClassifier(GaussianNB(), noise=0.1, random_state=0)
    widths = [np.ptp(wrong_labels(clf, X, y)[0])]
    found = audit(clf.fit(X, y, groups=np.arange(90) // 3), y)
    widths.append(found.summary()["wrong"]["high"] - found.summary()["wrong"]["low"])
    assert found.groups.copies_per_row(np.ones(90)) == 1
    assert not any(finding.found for finding in found.findings if finding.kind == "copies")
    assert widths[0] == widths[1]


# ----------------------------------------------------------------------------------- reviewed rows


def planted(kind):
    """Return rows, classes, and labels of which about 300 of 2,000 are wrong."""
    X, classes = make_classification(
        2000, 10, n_informative=8, n_redundant=0, n_classes=3, n_clusters_per_class=1,
        class_sep=2.0, flip_y=0, random_state=0,
    )  # fmt: skip
    rng = np.random.default_rng(0)
    if kind == "uniform":
        is_wrong, shift = rng.random(2000) < 0.15, rng.integers(1, 3, 2000)
    else:
        is_wrong, shift = (classes == 1) & (rng.random(2000) < 0.45), 1
    return X, classes, np.where(is_wrong, (classes + shift) % 3, classes)


def audited(X, labels, **known):
    estimator = QuadraticDiscriminantAnalysis(reg_param=0.01)
    clf = DecoupledClassifier(estimator, noise="estimate", refit=False, random_state=0)
    clf.fit(X, labels, **known)
    return clf, audit(clf, labels)


def reviewed(classes, rows):
    known = np.full(len(classes), None)
    known[rows] = classes[rows]
    return known


@pytest.fixture(scope="module", params=["uniform", "one class"])
def review(request):
    """Rows, classes, labels, a classifier, its audit, and the classes of 200 reviewed rows."""
    X, classes, labels = planted(request.param)
    clf, first = audited(X, labels)
    return X, classes, labels, clf, first, reviewed(classes, first.order[:200])


def test_after_200_reviews_the_interval_still_holds_all_wrong_labels(review):
    _, classes, labels, clf, _, known = review
    found, n_wrong = audit(clf, labels, decisions=known), np.sum(labels != classes)
    wrong = found.summary()["wrong"]
    assert wrong["low"] <= n_wrong <= wrong["high"]
    n_found = np.sum((labels != classes)[found.is_reviewed])
    assert n_found > 150
    rest = wrong["expected"] - n_found
    assert 0.75 < rest / (n_wrong - n_found) < 1.25
    assert wrong["high"] - wrong["low"] < 80


def test_reviewed_rows_are_facts_and_come_last(review):
    _, classes, labels, clf, _, known = review
    found = audit(clf, labels, decisions=known)
    is_reviewed = known != None  # noqa: E711  element by element
    assert_array_equal(found.is_reviewed, is_reviewed)
    assert_array_equal(found.doubt[is_reviewed], (labels != classes)[is_reviewed])
    assert_array_equal(found.suggestion[is_reviewed], classes[is_reviewed])
    assert found.is_reviewed[found.order[-200:]].all()
    doubted = found.doubt[~is_reviewed] > DOUBTED
    assert found.summary()["wrong"]["doubted"] == doubted.sum()
    assert found.why(found.order[-1]).startswith("reviewed: ")
    assert found.summary()["n_to_check"] == doubted.sum()
    wrong = found.summary()["wrong"]
    assert (wrong["found"], wrong["n_reviewed"]) == ((labels != classes)[is_reviewed].sum(), 200)
    assert f"of the {len(labels) - 200:,} labels that were not reviewed" in repr(found)


def test_after_a_review_of_all_labels_nothing_is_left_to_say_about_single_ones(review):
    _, classes, labels, clf, *_ = review
    found = audit(clf, labels, decisions=classes)
    n_wrong = np.sum(labels != classes)
    assert f"All labels were reviewed, and {n_wrong} were wrong.)" in repr(found)
    assert ("Wrong", f"{n_wrong}") in [fact[:2] for fact in facts(found.summary())]


def test_rivals_that_do_not_know_the_review_are_not_compared(review):
    *_, clf, _, known = review
    clf.rival_wrong_shares_ = {"forest": (0.9, 0.95)}
    assert clf.with_known_classes(known).rival_wrong_shares_ == {}
    clf.rival_wrong_shares_ = {}


def test_a_pipeline_is_audited_by_its_last_step():
    X = np.random.default_rng(0).standard_normal((60, 2)) + 4 * (np.arange(60) % 2)[:, None]
    y = np.array(["cat", "dog"])[np.arange(60) % 2]
    clf = DecoupledClassifier(GaussianNB(), noise=0.1, refit=False, random_state=0)
    pipe = make_pipeline(StandardScaler(), clf).fit(X, y)
    assert_array_equal(audit(pipe, y).doubt, audit(pipe[-1], y).doubt)
    assert_array_equal(audit(pipe, y, X).class_proba, pipe.predict_proba(X))
    assert diagnose(pipe, y) == diagnose(pipe[-1], y)


@pytest.mark.filterwarnings("ignore:A column-vector y")
def test_a_table_with_one_column_of_labels_is_audited_like_the_column():
    pd = pytest.importorskip("pandas")
    label_proba = np.array([[0.95, 0.05]] * 20 + [[0.05, 0.95]] * 20)
    labels = np.array(["cat"] * 20 + ["dog"] * 19 + ["cat"])
    found = audit(label_proba=label_proba, labels=labels)
    again = audit(label_proba=label_proba, labels=pd.DataFrame({"label": labels}))
    assert_array_equal(found.doubt, again.doubt)
    clf = DecoupledClassifier().fit_from_proba(label_proba, labels)
    assert_array_equal(audit(clf, labels[:, None]).doubt, found.doubt)
    assert diagnose(clf, labels[:, None]) == diagnose(clf, labels)


def test_several_answers_per_row_are_no_labels_to_diagnose():
    rng = np.random.default_rng(0)
    X, answers = rng.standard_normal((60, 2)), rng.integers(0, 2, (60, 3))
    clf = DecoupledClassifier(GaussianNB(), refit=False, random_state=0).fit(X, answers)
    for y in (answers, answers[:, 0]):
        with pytest.raises(ValueError, match=r"diagnose is for one label per row.*audit\(clf, Y\)"):
            diagnose(clf, y)


def test_reviewed_rows_are_no_longer_to_check_if_unlabeled_rows_are_in_question(some_positive):
    label_proba, labels, classes = some_positive
    parts = {"label_proba": label_proba, "labels": labels, "transition": CAT_OR_DOG}
    before = audit(**parts)
    decisions = np.full(len(classes), None)
    decisions[before.order[:20]] = classes[before.order[:20]]
    after = audit(**parts, decisions=decisions)
    is_positive = (after.positive_proba > 0.5) & ~after.is_labeled
    assert after.summary()["n_to_check"] == np.sum(is_positive & ~after.is_reviewed)
    assert is_positive[after.is_reviewed].any()


def test_a_label_on_a_row_of_the_negative_class_is_said_to_be_doubtful(some_positive):
    label_proba, labels, _ = some_positive
    proba = CAT_OR_DOG.proba.copy()
    proba[-1] = [0.05, 0.05, 0.9]  # others are labeled by mistake
    noisy = Transition(proba, CAT_OR_DOG.classes, CAT_OR_DOG.labels)
    found = audit(label_proba=label_proba, labels=labels, transition=noisy)
    row = int(np.argmax(np.where(found.is_labeled, found.doubt, -1)))
    assert found.question == "unlabeled"
    assert found.doubt[row] > 0.5
    assert found.why(row).startswith("looks like 'other', not")


def test_decisions_and_known_classes_of_the_fit_give_the_same_audit(review):
    X, _, labels, clf, _, known = review
    fitted, _ = audited(X, labels, known_classes=known)
    again = clf.with_known_classes(known)
    assert_array_equal(again.transition_.proba, fitted.transition_.proba)
    assert_array_equal(again.class_proba_given_label_, fitted.class_proba_given_label_)
    assert again.label_model_.wrong_share_interval == fitted.label_model_.wrong_share_interval
    assert_array_equal(again.predict_proba(X), fitted.predict_proba(X))


def test_relabeled_rows_as_clean_data_would_hide_the_other_wrong_labels():
    """The treatment that decisions replace: it forgets that only doubtful rows were reviewed."""
    X, classes, labels = planted("uniform")
    _, first = audited(X, labels)
    relabeled = np.where(np.isin(np.arange(2000), first.order[:200]), classes, labels)
    _, second = audited(X, relabeled)
    assert second.summary()["wrong"]["high"] < np.sum(relabeled != classes)


def test_no_decision_changes_nothing(partly, found):
    clf, labels, _ = partly
    same = audit(clf, labels, decisions=[None] * len(labels))
    assert not same.is_reviewed.any()
    assert same.summary() == found.summary()
    assert_array_equal(same.order, found.order)
    assert_array_equal(same.class_proba_given_label, found.class_proba_given_label)


@pytest.mark.parametrize("noise", [0.1, 0.0, "estimate"])
def test_decisions_about_all_rows_give_exact_counts(noise):
    X, classes, labels = planted("uniform")
    X, classes, labels = X[:300], classes[:300], labels[:300]
    clf = DecoupledClassifier(GaussianNB(), noise=noise, refit=False, random_state=0)
    found = audit(clf.fit(X, labels), labels, decisions=classes)
    wrong, n_wrong = found.summary()["wrong"], np.sum(labels != classes)
    assert (wrong["expected"], wrong["low"], wrong["high"]) == (n_wrong, n_wrong, n_wrong)
    counted = np.zeros((3, 3))
    np.add.at(counted, (labels, classes), 1)
    assert_array_equal(found.flow(), counted)


def test_labels_confirmed_by_a_review_lower_the_doubt_of_similar_rows():
    X, _, labels = planted("one class")
    clf, first = audited(X, labels)
    rows = first.order[:60]
    kept = audit(clf, labels, decisions=reviewed(labels, rows))
    similar = first.order[60:120]
    assert kept.doubt[similar].sum() < 0.9 * first.doubt[similar].sum()


def test_after_a_refit_decisions_need_no_other_fit():
    X, classes, labels = planted("uniform")
    clf = DecoupledClassifier(GaussianNB(), noise=0.1, refit=1, random_state=0)
    clf.fit(X[:400], labels[:400])
    known = reviewed(classes[:400], np.arange(40))
    again = clf.with_known_classes(known)
    assert again.class_estimator_ is clf.class_estimator_
    assert again.class_calibration_.power == clf.class_calibration_.power
    assert_array_equal(again.class_proba_given_label_[:40], np.eye(3)[classes[:40]])
    assert clf.label_scores_.class_index is None


def test_decisions_about_other_rows_change_only_these_rows(partly, found):
    clf, labels, X = partly
    decisions = reviewed(np.array(NAMES)[found.suggestion], [0, 5])
    plain, decided = audit(clf, labels, X), audit(clf, labels, X, decisions=decisions)
    assert_array_equal(np.flatnonzero(decided.is_reviewed), [0, 5])
    others = ~decided.is_reviewed
    assert_array_equal(decided.doubt[others], plain.doubt[others])
    assert_array_equal(decided.suggestion[[0, 5]], found.suggestion[[0, 5]])


def test_decisions_that_cannot_be_used_are_refused(partly):
    clf, labels, _ = partly
    with pytest.raises(ValueError, match=r"decisions contains \['pink'\]"):
        audit(clf, labels, decisions=["pink", *[None] * (len(labels) - 1)])
    with pytest.raises(ValueError, match="decisions has 2 rows; y has 300"):
        audit(clf, labels, decisions=["red", None])
