"""Sentences for the user: assumptions, ignored columns, warnings."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
from sklearn.naive_bayes import GaussianNB

from looselabels import DecoupledClassifier, Transition
from looselabels.auditing.audit import audit
from looselabels.auditing.diagnose import Finding
from looselabels.auditing.pages import violated_assumptions
from looselabels.command.features import Features
from looselabels.command.labels import Labels
from looselabels.command.notes import (
    collect_warnings,
    describe,
    describe_result,
    ignored_columns,
    why_no_count,
    why_no_unlabeled_count,
    words_of_command,
)
from tests.command.calls import QUICK, animals, called, fitted_animals


def described(frame=None, **options):
    """Return the audit of a small table, and what is said about its assumptions."""
    fitted = fitted_animals(frame, **options)
    found = audit(fitted.clf, fitted.y)
    return found, " ".join(describe(found, fitted.labels))


def test_warnings_become_lines_each_once():
    with collect_warnings() as notes:
        warnings.warn("two\n  lines", stacklevel=1)
        assert notes == ["two lines"]
        warnings.warn("two lines", stacklevel=1)
        warnings.warn("of libraries", DeprecationWarning, stacklevel=1)
    assert notes == ["two lines"]
    with pytest.warns(UserWarning, match="again"):
        warnings.warn("again", stacklevel=1)


SAID = {  # by the library, and by the command
    "label_proba has shape (400, 2); 3 labels need as many columns, in the order of the "
    "transition's labels.": "--proba has 400 rows and 2 columns; 3 labels need as many columns, in "
    "sorted order, or in that of the design.",
    "columns of label_proba lacks ['cat']; it must name ('cat', 'dog').": "The header of --proba "
    "lacks ['cat']; it must name ('cat', 'dog').",
    "Each row of label_proba must sum to 1; row 0 sums to 1.5.": "Each row of --proba must sum to "
    "1; row 0, counted from 0, sums to 1.5.",
    "noise='em' compares labels with each other, but y has only one. Use noise='estimate' or a "
    "number.": "--noise em compares labels with each other, but the table has only one. Use "
    "--noise estimate or a number.",
    "noise='estimate' estimates all of the noise, but the transition has some.": "--noise estimate "
    "estimates all of the noise, but the design has some.",
    "It is of class 'other', which the transition never labels.": "It is of class 'other', which "
    "the design never labels.",
    "Specify negative='other' in place of the transition: all is estimated then.": "Pass "
    "--negative 'other', not --design: all is estimated then.",
    "Leave noise out and add a share, as in transition.with_noise({'other': 0.01}).": "Leave "
    '--noise out and add a share, as in "noise": {"other": 0.01}.',
    "If you know the share of wrong labels, specify it as noise, such as 0.1.": "If you know the "
    "share of wrong labels, pass it as in --noise 0.1.",
    "A forest is much better than your estimator. Consider estimator=None.": "A forest is much "
    "better than your --model. Consider --model auto.",
    "Column 'y' holds a noise of 0.1.": "Column 'y' holds a noise of 0.1.",
}


@pytest.mark.parametrize(
    ("label", "shown"),
    [("", "''"), (" ", "' '"), (-1, "-1"), ("NA", "NA"), ("?", "'?'"), ("<NA>", "'<NA>'")],
)
def test_a_label_that_looks_missing_can_be_seen_and_copied(label, shown):
    y = np.array([label, "a"] * 10, dtype=object) if isinstance(label, str) else [label, 0, 1] * 10
    X = np.random.default_rng(0).normal(size=(len(y), 2))
    with pytest.warns(UserWarning, match="taken to be a class") as warned:
        DecoupledClassifier(GaussianNB(), random_state=0).fit(X, y)
    note = words_of_command(str(warned[0].message))
    assert note.startswith(f"The label {shown} occurs in 10 rows;")
    assert note.endswith(f"pass --unlabeled {shown}.")


@pytest.mark.parametrize("said", SAID)
def test_sentences_of_the_library_are_said_with_options(said):
    assert words_of_command(said) == SAID[said]


@pytest.mark.parametrize("command", ["audit", "fit"])
def test_a_negative_class_without_unlabeled_rows_is_said_with_options(folder, command):
    animals(40, unlabeled=0).to_csv("data.csv", index=False)
    found = called(command, "data.csv", "--label", "species", "--negative", "cow", *QUICK)
    assert found.code == 3
    assert found.err == (
        "--negative needs rows of every label and rows without a label; no row without a label has "
        "positive weight. Leave --negative out, or pass --class-share.\n"
    )


def test_warnings_are_said_with_options():
    with collect_warnings() as notes:
        warnings.warn("Labels ['x'] of the transition do not occur in y: …", stacklevel=1)
    assert notes == ["Labels ['x'] of the design do not occur in the table: …"]


@pytest.mark.parametrize(
    ("noise", "sentence"),
    [
        (0.1, "You specified that 10% of labels are wrong."),
        (0.0025, "You specified that 0.25% of labels are wrong."),
        (0.0, "You specified that given labels are correct."),
        ("estimate", "You did not specify how often labels are wrong."),
    ],
)
def test_the_source_of_the_noise_is_said(noise, sentence):
    found, words = described(noise=noise)
    assert sentence in words
    assert f"{found.is_labeled.sum()} of 60 rows have a label" in words
    assert "Labels are missing at random" in words


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (
            {"class_prior": {"cat": 0.5, "dog": 0.45, "other": 0.05}, "negative": "other"},
            "labeled follows from the class shares. You specified the class shares: cat 50%, dog 4",
        ),
        (
            {"label_rate": 0.9, "class_prior": {"cat": 0.5, "dog": 0.5}, "negative": "other"},
            "You specified that 90% of the rows of each class are labeled. You specified that 10%",
        ),
    ],
)
def test_class_shares_and_label_rates_are_said_to_be_specified(options, sentence):
    words = described(**options)[1]
    assert sentence in words
    assert "missing at random" not in words


def test_the_result_has_the_accuracy_of_the_labels_and_the_interval(fitted):
    content = audit(fitted.clf, fitted.y).summary()
    content["wrong"] |= {"expected": 4.0, "low": 2.0, "high": 7.0, "doubted": 3}
    content["label_accuracy"] = 0.934
    assert describe_result(content) == [
        f"About 4 (2 to 7) of {content['n_labeled']} labels are probably wrong; "
        "3 should be checked first.",
        "  Rows              60",
        f"  Labeled           {content['n_labeled']}  {content['n_labeled'] / 60:.0%} of rows",
        "  Labels predicted  93%  correctly, by a model that has not seen the row",
        f"  Probably wrong    4  {4 / content['n_labeled']:.0%} of labels; 90% interval: 2 to 7",
        "  Check first       3  more likely wrong than right",
    ]
    content["reviewed"] = {"n": 20, "confirmed": 14, "expected": 13.2}
    assert describe_result(content)[-1] == (
        "Of 20 reviewed labels 14 were wrong; 13 were expected."
    )


def test_why_there_is_no_count_is_said_in_the_words_of_the_command(fitted):
    labels = fitted.labels
    assert why_no_count(audit(fitted.clf, fitted.y), labels) is None
    found, _ = described(noise=0.0)
    assert why_no_count(found, labels).endswith("To look for wrong labels, pass --noise estimate.")
    useless = Finding("features", True, None, "")
    found = replace(audit(fitted.clf, fitted.y), findings=(useless,))
    assert why_no_count(found, labels).endswith("the columns do not predict the labels.")
    found = replace(found, has_own_proba=True)
    assert why_no_count(found, labels).endswith("--proba does not predict the labels.")


def test_why_unlabeled_rows_are_not_counted_is_said_in_the_words_of_the_command():
    found, _ = described(negative="other", noise=0.0)
    assert why_no_unlabeled_count(found) is None
    found = replace(found, findings=(Finding("features", True, None, ""),))
    assert why_no_unlabeled_count(found).endswith("counted: the columns do not predict the labels.")


def test_an_estimate_of_the_noise_is_not_proposed_with_a_label_rate_that_excludes_it():
    found, _ = described(noise=0.0)
    labels = Labels("species", negative="other", noise=0.0, label_rate=0.5)
    assert why_no_count(found, labels).endswith("as --noise, or leave --label-rate out.")
    assert "Given labels are taken to be correct: you specified --label-rate" in " ".join(
        describe(found, labels)
    )


def test_the_source_of_the_noise_is_that_of_the_audit_and_not_of_the_options(fitted):
    found = audit(fitted.clf, fitted.y)
    sources = found.model.sources._replace(noise="estimated")
    found = replace(found, model=found.model._replace(sources=sources))
    assert "did not specify how often labels are wrong" in " ".join(describe(found, fitted.labels))


def test_labels_that_are_all_there_are_not_said_to_be_missing():
    _, words = described(animals(60, unlabeled=0))
    assert "60 of 60 rows have a label (100%)." in words
    assert "missing" not in words


def test_a_design_is_said_to_be_specified():
    design = Transition.partial(["cat", "dog"], labeled=0.9).with_noise(0.05)
    _, words = described(noise=0.0, design=design)
    assert "You specified p(label | class) with a design." in words
    assert "You specified no label noise beyond that of the design." in words
    assert "missing at random" not in words


def test_estimates_are_not_among_the_assumptions():
    _, words = described(
        animals(60, names=("cat", "dog", None), unlabeled=0.5), negative="cow", noise=0.2
    )
    assert "'cow' has no label of its own. All other classes are labeled at the same rate" in words
    assert "estimated" not in words


def test_violated_assumptions_are_said_in_the_words_of_the_finding(fitted):
    found = audit(fitted.clf, fitted.y)
    assert "depend only on the class of a row" in " ".join(describe(found, fitted.labels))
    findings = (
        Finding("instance", True, 0.001, "labels depend on more"),
        Finding("identifiability", True, None, "rank 2 for 3 classes"),
        Finding("calibration", False, 0.5, "close"),
    )
    found = replace(found, findings=findings)
    assert violated_assumptions(found) == ["labels depend on more", "rank 2 for 3 classes"]
    assert "depend only on the class" not in " ".join(describe(found, fitted.labels))


def test_ignored_columns_are_one_sentence():
    frame = animals(30).assign(**{f"c{i}": 1 for i in range(7)})
    (words,) = ignored_columns(Features.fit(frame, label="species"))
    assert words.startswith("Ignored columns: 'c0': every cell is 1;")
    assert words.endswith("and 2 more.")
    assert ignored_columns(Features.fit(animals(30), label="species")) == []
    assert ignored_columns(None) == []
