"""What can be specified about labels on the command line: sources, shares, noise, probabilities."""

import json
from pathlib import Path

import numpy as np
import pytest

from tests.command.calls import CSV, QUICK, animals, called, files, pd, read_csv

pytestmark = pytest.mark.usefixtures("folder")

AUDIT = ("audit", "data.csv", "--label", "species", "--model", "kernel", "--force", "--json")
CLASSES = {"cat": "cat", "dog": "dog"}
BOTH = {"sources": {"checked": {"meanings": CLASSES}, "web": {"meanings": CLASSES, "noise": 0.2}}}


def summary(*words):
    found = called(*AUDIT, *words)
    assert found.code == 0, found.err
    return json.loads(found.out)


def two_sources():
    """Write a table of checked rows, which are right, and of rows from the web."""
    frame = animals(120, unlabeled=0, wrong=0.2)
    frame["from"] = np.where(np.arange(120) % 3 == 0, "checked", "web")
    classes = np.where(np.arange(120) % 2, "dog", "cat")
    frame["species"] = np.where(frame["from"] == "checked", classes, frame["species"])
    frame.to_csv("data.csv", index=False)
    Path("both.json").write_text(json.dumps(BOTH))
    return frame, classes


def test_each_source_has_a_design_of_its_own():
    frame, classes = two_sources()
    found = summary("--source", "from", "--design", "both.json")
    assert found["design"]["labels"][2] == ["web", "cat"]
    row = dict(zip(map(tuple, found["design"]["labels"]), found["design"]["proba"][0], strict=True))
    assert row[("checked", "cat")] == pytest.approx(1 / 3, abs=0.05)
    assert row[("web", "dog")] == pytest.approx(2 / 3 * 0.2, abs=0.02)
    after = read_csv("data-audit/labels.csv")
    doubted = after["doubt"].astype(float) > 0.5
    assert not doubted[frame["from"] == "checked"].any()
    assert (doubted == (frame["species"] != classes)).mean() > 0.95
    assert found["columns"]["used"] == 2  # the source is not a feature
    accuracy = dict(found["source_accuracy"])
    assert accuracy["checked"] > 0.95 > 0.85 > accuracy["web"] > 0.7
    assert 0.8 < found["label_accuracy"] < 0.9  # sources need not be guessed
    page = Path("data-audit/report.html").read_text()
    assert f"but knows its source: checked {accuracy['checked']:.0%}, web " in page
    words = ("predict", "data-audit/model", "data.csv", "--label", "species")
    assert called(*words, "--source", "from").code == 0
    assert "was fitted with --source" in called(*words).err


def test_a_model_without_sources_takes_none():
    two_sources()
    assert called("fit", "data.csv", "--label", "species", "--features", "size", *QUICK).code == 0
    words = ("predict", "data-model", "data.csv", "--label", "species", "--source", "from")
    assert "was fitted without --source" in called(*words).err


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["--source", "from"], 2, "--source needs --design"),
        (["--design", "both.json"], 2, "such a design needs --source"),
        (["--source", "from", "--design", "one.json"], 2, "is for a design with 'sources'"),
        (["--source", "from", "--design", "both.json", "--noise", ".1"], 2, "rate for each source"),
        (["--source", "size", "--design", "both.json"], 3, "names the sources ['"),
        (["--source", "form", "--design", "both.json"], 3, "no column 'form'. Did you mean 'from'"),
        (["--label-rate", "0.5"], 2, "--label-rate needs --negative"),
        (["--label-rate", "0", "--negative", "x"], 2, "0.0 is not in the range 0<x<=1"),
        (["--label-rate", ".5", "--negative", "x", "--class-share", "x=.1"], 2, "Pass either"),
        (["--label-rate", ".5", "--negative", "x", "--noise", "em"], 2, "an estimated --noise"),
        (["--class-share", "cow=0.5"], 3, "no class 'cow'. The classes are 'cat', 'dog'"),
        (["--noise", "anchors"], 2, "nor one of 'estimate', 'calibrated'"),
    ],
)
def test_contradictions_are_refused(words, code, said):
    two_sources()
    Path("one.json").write_text(json.dumps({"meanings": CLASSES}))
    before = files()
    found = called(*AUDIT, *words)
    assert found.code == code
    assert said in found.err
    assert files() == before


def test_noise_is_estimated_with_a_design_if_that_is_asked():
    Path("data.csv").write_text(CSV)
    Path("d.json").write_text(json.dumps({"meanings": {**CLASSES, "": ["cat", "dog"]}}))
    found = summary("--design", "d.json")
    assert found["sources"]["noise"] == "specified"
    found = summary("--design", "d.json", "--noise", "estimate")
    assert found["sources"]["noise"] == "estimated"
    assert "You did not specify how often labels are wrong." in found["design"]["words"]
    assert summary("--noise", "confident")["sources"]["noise"] == "estimated"


def test_a_known_class_share_or_label_rate_is_used():
    frame = animals(120, names=("cat", None), unlabeled=0.4, wrong=0)
    frame.to_csv("data.csv", index=False)
    rate = frame["species"].notna().sum() / 60
    for words in (["--class-share", "cat=0.5"], ["--label-rate", f"{rate}"]):
        found = summary("--negative", "other", "--noise", "0", *words)
        assert found["sources"]["class_prior"] == "specified"
        assert found["transition"]["proba"][0][0] == pytest.approx(rate)
        assert words[0] in found["reproduce"]["command"]
    for noise in ([], ["--noise", "0.1"]):  # by default there is none, and the rate is what it is
        found = summary("--negative", "other", "--label-rate", f"{rate}", *noise)
        assert found["sources"]["noise"] == "specified"
        assert found["transition"]["proba"][0][0] == pytest.approx(rate)


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".npy"])
def test_probabilities_of_another_model_replace_the_fit(suffix):
    Path("data.csv").write_text(CSV)
    frame = animals()
    p_dog = np.where(np.arange(80) % 2, 0.9, 0.1)
    proba = pd.DataFrame({"dog": p_dog, "cat": 1 - p_dog})
    if suffix == ".npy":
        share = frame["species"].isna().mean()
        given = proba[["cat", "dog"]].to_numpy() * (1 - share)
        np.save("p.npy", np.hstack([given, np.full((80, 1), share)]))
    else:
        proba.to_csv("p.csv", index=False)
        proba.to_parquet("p.parquet")
    found = summary("--proba", f"p{suffix}", "--noise", "0.05")
    assert f"--proba p{suffix}" in found["reproduce"]["command"]
    wrong = frame["species"] == np.where(np.arange(80) % 2, "cat", "dog")
    assert found["label_accuracy"] == pytest.approx(1 - wrong.sum() / frame["species"].count())


@pytest.mark.parametrize("command", [["fit", "pets.csv"], ["apply", "pets.csv", "pets.csv"]])
def test_other_commands_take_one_column_of_labels(command):
    found = called(*command, "--label", "Ann", "--label", "Bob")
    assert found.code == 2
    assert "it is given 2 times. Only audit and predict take several columns." in found.err


@pytest.mark.parametrize("command", ["audit", "fit"])
def test_a_copy_of_the_labels_is_named_on_the_terminal(command):
    frame = animals(unlabeled=0)
    frame.assign(code=frame["species"].str[0]).to_csv("data.csv", index=False)
    found = called(command, "data.csv", "--label", "species", *QUICK)
    assert found.code == 0
    assert "Note: Column 'code' alone predicts 100.0% of the labels" in found.err
