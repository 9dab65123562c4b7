"""Design files."""

import json

import click
import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from looselabels import DecoupledClassifier, Transition
from looselabels.command.design import class_prior, read_design, read_design_file
from looselabels.command.labels import Labels, read_labels
from tests.command.calls import pd


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
    assert read_labels(pd.DataFrame({"y": ["0", "1", None] * 4}), labels) == [0, 1, None] * 4


def test_noise_of_a_design_moves_labels_to_other_classes(tmp_path):
    file = tmp_path / "design.json"
    file.write_text('{"meanings": {"cat": "cat", "dog": "dog"}, "counts": null, "noise": 0.1}')
    assert read_design(file).proba.tolist() == [
        pytest.approx([0.9, 0.1]),
        pytest.approx([0.1, 0.9]),
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "it is not valid JSON"),
        ("[1]", "needs the key 'meanings'"),
        ('{"meanings": {"a": "b"}, "nose": 1}', "the key 'nose'; possible keys are"),
        ('{"meanings": ["a"]}', r"meanings must be a mapping from label; it is \['a'\]"),
        ('{"meanings": null}', "meanings must be a mapping"),
        ('{"meanings": {"a": "b"}, "counts": [1]}', "counts must be a mapping"),
        ('{"meanings": {}}', "meanings contains no label"),
        ('{"meanings": {"a": "b"}, "noise": NaN}', "NaN is not allowed"),
        ('{"sources": []}', r"sources must be a mapping from data set; it is \[\]"),
        ('{"sources": {}}', "sources contains no data set"),
        ('{"sources": {"A": {"meanings": {}}}}', "source 'A': meanings contains no label"),
        ('{"sources": {"A": {"meanings": {"a": "b"}}}, "noise": 0}', "the key 'noise'; possible"),
        ('{"sources": {"A": {"meanings": {"a": "b"}}}, "sizes": {"B": 1}}', r"names \['B'\]"),
    ],
)
def test_what_is_wrong_with_a_file_is_said(text, message, tmp_path):
    file = tmp_path / "design.json"
    file.write_text(text)
    with pytest.raises(ValueError, match=message):
        read_design(file)


@pytest.mark.parametrize(
    ("key", "value"), [("noise", 10**400), ("counts", {"cat": 10**400, "dog": 1})]
)
def test_a_number_that_no_float_can_be_is_an_error_of_the_file(key, value, tmp_path):
    file = written({"meanings": {"cat": "cat", "dog": "dog"}, key: value}, tmp_path)
    with pytest.raises(click.UsageError, match=r"design\.json: .*above 1\.8e308, .* See loose"):
        read_design_file(file)


# ------------------------------------------------------------------------------- counts and sources

MEANINGS = {"cat": "cat", "canine": ["dog", "wolf"], "dog": "dog"}
Y = ["cat"] * 6 + ["canine"] * 4 + ["dog"] * 2


def written(content, folder):
    file = folder / "design.json"
    file.write_text(json.dumps(content))
    return file


def test_counts_come_from_the_table_unless_the_file_has_some(tmp_path):
    file = written({"meanings": MEANINGS}, tmp_path)
    assert read_design(file) == Transition.from_meanings(MEANINGS)
    assert read_design(file, Y) == Transition.from_meanings(MEANINGS, [6, 4, 2])
    assert read_design(file, Y[:10]) == Transition.from_meanings(MEANINGS, [6, 4, 1])
    counts = {"cat": 1, "canine": 2, "dog": 3}
    file = written({"meanings": MEANINGS, "counts": counts}, tmp_path)
    assert read_design(file, Y) == Transition.from_meanings(MEANINGS, counts)


def test_sources_are_combined_with_the_rows_of_each_class_that_their_labels_imply(tmp_path):
    checked = {"meanings": {"cat": "cat", "dog": "dog"}}
    shop = json.loads(Transition.partial(["cat"], labeled=0.5, negative="dog").to_json())
    design = {"sources": {"shop": shop, "checked": checked}}
    y = [("shop", "cat")] * 2 + [("shop", None)] * 4 + [("checked", "dog")] * 2
    found = read_design(written(design, tmp_path), y)
    assert found.labels == (("shop", "cat"), ("shop", None), ("checked", "cat"), ("checked", "dog"))
    # one row more than 4 cats and 2 dogs of the shop, and 0 cats and 2 dogs that were checked
    assert found.proba[0].tolist() == pytest.approx([5 / 12, 5 / 12, 1 / 6, 0])
    assert found.proba[1].tolist() == pytest.approx([0, 1 / 2, 0, 1 / 2])
    assert read_design(written(design, tmp_path)).proba[0].tolist() == [0.25, 0.25, 0.5, 0]
    design["sizes"] = {"shop": {"cat": 1, "dog": 3}, "checked": 1}
    found = read_design(written(design, tmp_path), y)
    assert found.proba.tolist() == [[0.25, 0.25, 0.5, 0], [0, 0.75, 0, 0.25]]


def test_class_shares_of_each_source_improve_suggestions_if_they_differ(tmp_path):
    rng = np.random.default_rng(0)
    source = rng.choice(["shop", "checked"], 1000)
    is_dog = rng.random(1000) < np.where(source == "shop", 0.8, 0.2)
    X = rng.normal(size=(1000, 2)) + 1.2 * is_dog[:, None]
    is_wrong = (source == "shop") & (rng.random(1000) < 0.2)
    label = np.where(is_dog ^ is_wrong, "dog", "cat")
    y = list(zip(source.tolist(), label.tolist(), strict=True))
    named = {"meanings": {"cat": "cat", "dog": "dog"}}
    design = {"sources": {"shop": named | {"noise": 0.2}, "checked": named}}

    def share_right(design):
        transition = read_design(written(design, tmp_path), y)
        clf = DecoupledClassifier(LogisticRegression(), transition, refit=False, random_state=0)
        suggested = clf.fit(X, y).class_proba_given_label_.argmax(axis=1)
        return np.mean((np.array(clf.classes_)[suggested] == "dog") == is_dog)

    equal = design | {"sizes": {"shop": 500, "checked": 500}}
    assert share_right(design) > share_right(equal) + 0.02


def test_labels_of_several_sources_are_pairs(tmp_path):
    design = {"A": {"meanings": {"1": "cat"}}, "2": {"meanings": {"x": "cat", "": ["cat", "dog"]}}}
    labels = Labels(
        "y",
        design=read_design(written({"sources": design}, tmp_path)),
        source="s",
        unlabeled=("?",),
        strip=True,
    )
    frame = pd.DataFrame({"y": [1, "x ", None, "?"] * 3, "s": ["A", 2, 2, 2.0] * 3})
    assert read_labels(frame, labels) == [("A", "1"), ("2", "x"), ("2", None), ("2", None)] * 3
    for column, cell, message in (
        ("s", "B", r"Column 's' names the sources \['B'\], which the design does not include; it"),
        ("s", None, "Row 1: column 's' is empty, but each row needs a source"),
        ("y", "z", r"'y' holds \[\('A', 'z'\)\]; the known labels are"),
        ("y", None, "'y' has rows of source 'A' without a label, but the design does not include"),
    ):
        changed = frame.astype(object)
        changed.loc[0, column] = cell
        with pytest.raises(ValueError, match=message):
            read_labels(changed, labels)
    with pytest.raises(ValueError, match="The table has no column 's'"):
        read_labels(frame.drop(columns="s"), labels)


# ------------------------------------------------------------------- class shares and label rates


def test_a_class_that_is_left_out_gets_the_rest():
    labels = Labels("y", design=Transition.identity([1, 2, 3]))
    assert class_prior(Y, labels, ["1=0.5", "3.0=0.1"]) == {1: 0.5, 2: pytest.approx(0.4), 3: 0.1}
    assert class_prior(Y, labels) is None


@pytest.mark.parametrize(
    ("options", "shares", "message"),
    [
        (
            {},
            ["cta=0.5"],
            r"no class 'cta'\. Did you mean 'cat'\? The classes are 'canine'",
        ),
        ({}, ["cat=0.5"], "the shares of 'canine' and 1 more are missing; one class can be left"),
        ({}, ["cat=0.5", "cat=0.2"], "--class-share of 'cat' is given 2 times"),
        ({}, ["cat=0.9", "dog=0.2"], "the shares sum to 1.1; they must be at most 1"),
        ({}, ["cat=0.3", "dog=0.2", "canine=0.4"], "sum to 0.9; they must be exactly 1"),
        ({"noise": 0.0}, ["cat=0.4", "dog=0.2"], "'cat' has a share of 0.4, but 0.5 of all rows"),
        ({"negative": "other", "label_rate": 0.9}, [], "--label-rate 0.9 is too low: 1 of all"),
    ],
)
def test_shares_that_contradict_the_labels_are_refused(options, shares, message):
    with pytest.raises(ValueError, match=message):
        class_prior(Y, Labels("y", **options), shares)


def test_shares_may_differ_from_labels_that_can_be_wrong():
    shares = class_prior(Y, Labels("y", noise=0.1), ["cat=0.4", "dog=0.2"])
    assert shares == {"canine": pytest.approx(0.4), "cat": 0.4, "dog": 0.2}
