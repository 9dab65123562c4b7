"""What the command does, without the command: labels of a table, designs, folders, tables out."""

import json
import os
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from looselabels import Transition
from looselabels.auditing.audit import audit
from looselabels.auditing.diagnose import Finding
from looselabels.command.features import Features
from looselabels.command.workflow import (
    FEWEST_ROWS,
    MODEL,
    Labels,
    cells_as_labels,
    check_folder,
    describe,
    fit,
    ignored_columns,
    new_folder,
    noted,
    page_content,
    read_design,
    read_labels,
    read_model,
    to_json,
    with_classes,
    with_suggestions,
    write_model,
)
from tests.command.calls import animals, files, pd


@pytest.fixture(scope="module")
def fitted():
    """Labels, features and a classifier of cats and dogs."""
    frame, labels = animals(60), Labels("species", noise=0.1)
    features, X = Features.fit_transform(frame, label="species", impute=True)
    y = read_labels(frame, labels)
    return frame, labels, features, y, fit(X, y, labels, model="kernel")


# ----------------------------------------------------------------------------------------- labels


def column(*cells):
    return pd.DataFrame({"y": pd.Series(cells, dtype=object)})


def test_empty_cells_and_those_that_are_told_are_unlabeled():
    frame = column(*["a", None, "b", "?", np.nan, pd.NA] * 2)
    assert read_labels(frame, Labels("y", ("?",))) == ["a", None, "b", None, None, None] * 2


def test_labels_keep_their_type_and_their_spaces():
    for cells in (["a", " a "], [1, 2], [True, False], ["NA", "null"], ["01", "1"]):
        with noted():
            assert read_labels(column(*cells * 5), Labels("y")) == cells * 5


@pytest.mark.parametrize(
    ("cells", "unlabeled", "expected"),
    [
        ([-1, 1], ("-1",), [None, 1]),
        ([-1.0, 1.0], ("-1",), [None, 1]),
        ([True, False], ("False",), [True, None]),
        ([True, False], ("false",), [True, None]),
        (["-1", "-1.0"], ("-1",), [None, "-1.0"]),  # text is what it is
    ],
)
def test_what_means_unlabeled_is_text_whatever_the_labels_are(cells, unlabeled, expected):
    assert cells_as_labels(pd.Series(cells, dtype=object), unlabeled) == expected


@pytest.mark.parametrize(
    ("cells", "known"),
    [
        (["1", "0"], (1, 0)),
        (["1.0", "0.0"], (1, 0)),
        (["True", "False"], (True, False)),
        (["true", "false"], (True, False)),
        ([1, 0], ("1", "0")),
        (["v1.0", "v1"], ("v1.0", "v1")),
        (["True", "true"], ("True", "true")),
    ],
)
def test_text_is_read_as_the_labels_that_are_known(cells, known):
    assert cells_as_labels(pd.Series(cells, dtype=object), (), known) == list(known)


def test_an_identifier_is_no_label_but_many_labels_may_be():
    few = [f"label {i}" for i in range(40)]
    assert len(set(read_labels(column(*few * 3), Labels("y")))) == 40
    with pytest.raises(ValueError, match=r"'y' has 40 different labels in 60 labeled rows; is it"):
        read_labels(column(*few, *few[:20]), Labels("y"))
    twenty = column(*few[:20])  # as few may be what they are
    assert len(read_labels(twenty, Labels("y"))) == 20
    with pytest.raises(ValueError, match=rf"too few rows, 9; give it {FEWEST_ROWS} or more"):
        read_labels(column(*few[:9]), Labels("y"))


# ----------------------------------------------------------------------------------------- design


def test_a_design_of_meanings_knows_the_missing_label(tmp_path):
    file = tmp_path / "design.json"
    for missing in ("", "(unlabeled)"):
        meanings = {"cat": "cat", "canine": ["dog", "wolf"], missing: ["cat", "dog", "wolf"]}
        counts = {"cat": 10, "canine": 10, missing: 30}
        file.write_text(json.dumps({"meanings": meanings, "counts": counts}), encoding="utf-8-sig")
        found = read_design(file)
        assert found.labels == ("cat", "canine", None)
        assert found.proba[0].tolist() == pytest.approx([0.5, 0, 0.5])


def test_a_design_of_numbers_reads_labels_of_text(tmp_path):
    file = tmp_path / "design.json"
    file.write_text(Transition.partial([0, 1]).to_json())
    labels = Labels("y", design=read_design(file), noise=0.0)
    assert read_labels(column(*["0", "1", None] * 4), labels) == [0, 1, None] * 4


# ------------------------------------------------------------------------------------------ notes


def test_warnings_become_sentences_as_they_come_each_once():
    with noted() as notes:
        warnings.warn("two\n  lines", stacklevel=1)
        assert notes == ["two lines"]
        warnings.warn("two lines", stacklevel=1)
        warnings.warn("of libraries", DeprecationWarning, stacklevel=1)
    assert notes == ["two lines"]
    with pytest.warns(UserWarning, match="again"):
        warnings.warn("again", stacklevel=1)


def test_it_is_said_what_was_assumed(fitted):
    frame, labels, _, y, clf = fitted
    found = audit(clf, y)
    words = " ".join(describe(found, labels))
    assert f"{frame['species'].notna().sum()} of 60 rows have a label" in words
    assert "missing at random" in words
    assert "10% of the labels are wrong (told)" in words
    assert "0.25%" in " ".join(describe(found, labels._replace(noise=0.0025)))
    assert "was estimated" in " ".join(describe(found, labels._replace(noise="estimate")))
    assert "right where there is one" in " ".join(describe(found, labels._replace(noise=0.0)))
    design = labels._replace(noise=0.0, design=clf.transition_)
    assert "by a design" in " ".join(describe(found, design))


def test_what_labels_speak_against_is_said_in_the_words_of_the_finding(fitted):
    _, labels, _, y, clf = fitted
    found = audit(clf, y)
    assert "depend on the class of a row alone (nothing speaks" in " ".join(describe(found, labels))
    findings = (
        Finding("instance", True, 0.001, "labels depend on more"),
        Finding("identifiability", True, None, "rank 2 for 3 classes"),
        Finding("calibration", False, 0.5, "close"),
    )
    found = replace(found, findings=findings)
    content = page_content(found, labels, "pets.csv", "looselabels audit", ["a note"])
    assert content["warnings"] == ["a note", "labels depend on more", "rank 2 for 3 classes"]
    assert "class of a row alone" not in " ".join(describe(found, labels))
    assert [one["kind"] for one in content["findings"]] == [one.kind for one in findings]


def test_the_labeled_share_that_is_said_counts_wrong_labels_too():
    frame = animals(60, names=("cat", "dog", None), unlabeled=0.5)
    labels = Labels("species", negative="cow", noise=0.2)
    _, X = Features.fit_transform(frame, label="species", impute=True)
    y = read_labels(frame, labels)
    clf = fit(X, y, labels, model="kernel")
    share = clf.transition_.proba[0, :2].sum()
    assert f"of the other classes {share:.0%} is" in " ".join(describe(audit(clf, y), labels))


def test_what_was_assumed_is_said_of_any_way_to_estimate_noise():
    frame = animals(60)
    labels = Labels("species")
    _, X = Features.fit_transform(frame, label="species", impute=True)
    y = read_labels(frame, labels)
    found = audit(fit(X, y, labels, model="kernel"), y)
    words = " ".join(describe(found, labels._replace(noise="calibrated")))
    assert "How often labels are wrong, and for which classes, was estimated." in words


def test_ignored_columns_are_said_in_one_sentence():
    frame = animals(30).assign(**{f"c{i}": 1 for i in range(7)})
    (words,) = ignored_columns(Features.fit(frame, label="species"))
    assert words.startswith("Not learned from: 'c0': every cell is 1;")
    assert words.endswith("and 2 more.")
    assert (
        ignored_columns(None) == ignored_columns(Features.fit(animals(30), label="species")) == []
    )


def test_the_summary_is_strict_json(fitted):
    _, labels, features, y, clf = fitted
    content = page_content(audit(clf, y), labels, "data.csv", "looselabels …", ["a note"], features)
    again = json.loads(to_json(content), parse_constant=pytest.fail)
    assert again["warnings"] == ["a note"]
    assert again["columns"] == {"used": 2, "ignored": []}
    with pytest.raises(ValueError, match="JSON"):
        to_json({"share": np.nan})


# ----------------------------------------------------------------------------------------- tables


def test_suggestions_stand_beside_columns_of_the_same_name(fitted):
    frame, _, _, y, clf = fitted
    after = with_suggestions(frame.assign(doubt="mine"), audit(clf, y))
    assert (after["doubt"] == "mine").all()
    assert after["looselabels_doubt"].between(0, 1).all()
    assert set(after["suggestion"]) == {"cat", "dog"}


def test_a_class_has_its_column_even_if_another_is_shown_alike(fitted):
    frame, _, features, _, _ = fitted
    X = features.transform(frame)
    names = ["x" * 99 + end for end in "ab"]
    other = fit(X, [names[i % 2] for i in range(60)], Labels("y", noise=0.1), model="kernel")
    after = with_classes(frame, other, features, all_classes=True)
    proba = after[after.columns[-2:]].to_numpy()
    assert np.allclose(proba, other.predict_proba(X))


def test_a_model_is_read_as_it_was_written(fitted, tmp_path):
    frame, _, features, _, clf = fitted
    write_model(tmp_path / "model", clf, features)
    again = read_model(tmp_path / "model")
    assert with_classes(frame, *again).equals(with_classes(frame, clf, features))
    write_model(tmp_path / "alone", clf, None)
    with pytest.raises(ValueError, match="fitted to probabilities of another model"):
        read_model(tmp_path / "alone")


# ---------------------------------------------------------------------------------------- folders


def test_a_folder_appears_when_all_is_written(tmp_path):
    out = tmp_path / "out"
    with new_folder(out) as fresh:
        (fresh / "summary.json").write_text("1")
        assert not out.exists()
    assert files(tmp_path) == ["out"]
    with new_folder(out, force=True) as fresh:
        (fresh / "summary.json").write_text("2")
        assert (out / "summary.json").read_text() == "1"
    assert (out / "summary.json").read_text() == "2"
    assert files(tmp_path) == ["out"]


def test_a_folder_that_cannot_be_replaced_is_put_back(tmp_path, monkeypatch):
    out, rename = tmp_path / "out", Path.rename
    out.mkdir()
    (out / "summary.json").write_text("old")

    def fails(path, target):
        if path.name.endswith("old") or target != out:
            return rename(path, target)
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "rename", fails)
    with pytest.raises(OSError, match="No space"), new_folder(out, force=True) as fresh:
        (fresh / "summary.json").write_text("new")
    assert files(tmp_path) == ["out"]
    assert (out / "summary.json").read_text() == "old"


def test_only_what_a_run_of_the_same_kind_writes_is_replaced(tmp_path):
    (tmp_path / "out" / "classifier").mkdir(parents=True)
    assert check_folder(tmp_path / "out", True, MODEL) == tmp_path / "out"
    with pytest.raises(FileExistsError, match="'classifier'"):
        check_folder(tmp_path / "out", True)
    (tmp_path / "out" / "classifier" / "mine.txt").touch()
    with pytest.raises(FileExistsError, match=os.path.join("classifier", "mine.txt")):
        check_folder(tmp_path / "out", True, MODEL)
