"""Design files."""

import json

import pytest

from looselabels import Transition
from looselabels.command.design import read_design
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
    ],
)
def test_what_is_wrong_with_a_file_is_said(text, message, tmp_path):
    file = tmp_path / "design.json"
    file.write_text(text)
    with pytest.raises(ValueError, match=message):
        read_design(file)
