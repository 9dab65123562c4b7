"""The command audits several answers per row: what it writes, and what it refuses."""

import numpy as np
import pytest

from tests.command.calls import called, files, pd

SEVERAL = ("--label", "ann", "--label", "bob", "--label", "eve")
LONG = ("--annotations", "answers.csv", "--id", "name")


def write_pets(n_rows=120, accuracies=(0.95, 0.85, 0.7), asked=0.8):
    """Write pets.csv with the answers of three annotators, and answers.csv with the same ones."""
    rng = np.random.default_rng(0)
    truth = np.arange(n_rows) % 2
    frame = pd.DataFrame({"name": [f"pet {k}" for k in range(n_rows)]})
    frame["size"] = rng.normal(2 * truth, 1).round(3)
    frame["weight"] = rng.normal(-2 * truth, 1).round(3)
    for name, accuracy in zip(("ann", "bob", "eve"), accuracies, strict=True):
        given = np.where(rng.random(n_rows) < accuracy, truth, 1 - truth)
        answers = pd.Series(np.array(["cat", "dog"])[given])
        frame[name] = answers.where(rng.random(n_rows) < asked, None)
    frame.to_csv("pets.csv", index=False)
    long = frame.melt("name", ["ann", "bob", "eve"], "annotator", "label").dropna()
    long.to_csv("answers.csv", index=False)
    frame[["name", "size", "weight"]].to_csv("rows.csv", index=False)
    return frame


@pytest.fixture
def pets(folder):
    return write_pets()


# ----------------------------------------------------------------------------------- contradictions


def test_a_column_cannot_be_two_annotators(pets):
    done = called("audit", "pets.csv", "--label", "ann", "--label", "bob", "--label", "ann")
    assert done.code == 2
    assert "--label 'ann' is given twice." in done.err


def test_an_unknown_column_is_named(pets):
    done = called("audit", "pets.csv", "--label", "ann", "--label", "bobby")
    assert done.code == 3
    assert "no column 'bobby'" in done.err


def test_answers_are_in_columns_or_in_a_file(pets):
    done = called("audit", "pets.csv", "--label", "ann", *LONG)
    assert done.code == 2
    assert "Pass either --label or --annotations" in done.err


@pytest.mark.parametrize("answers", [SEVERAL, LONG])
@pytest.mark.parametrize(
    "option",
    [
        ("--negative", "cat"),
        ("--noise", "0"),
        ("--noise", "estimate"),
        ("--design", "design.json"),
        ("--source", "name"),
        ("--class-share", "cat=0.5"),
        ("--label-rate", "0.5"),
        ("--decisions", "decisions.csv"),
        ("--accept-above", "0"),
        ("--proba", "proba.csv"),
    ],
)
def test_options_for_one_label_per_row_are_refused(pets, answers, option):
    done = called("audit", "pets.csv", *answers, *option)
    assert done.code == 2
    assert f"{option[0]} cannot be combined with {answers[0].replace('--label', 'several')}" in (
        done.err
    )
    assert "pets-audit" not in files()


def test_a_file_of_answers_needs_identifiers(pets):
    done = called("audit", "rows.csv", "--annotations", "answers.csv")
    assert done.code == 2
    assert "--annotations needs --id, the column of DATA that names its rows." in done.err


def test_an_annotator_cannot_name_rows(pets):
    done = called("audit", "pets.csv", *SEVERAL, "--id", "eve")
    assert done.code == 2
    assert "--id 'eve' is a --label too" in done.err


def test_a_file_of_answers_that_does_not_exist_is_named(pets):
    done = called("audit", "rows.csv", "--annotations", "none.csv", "--id", "name")
    assert done.code == 5
    assert "none.csv" in done.err


def test_a_folder_of_images_has_no_columns_of_answers(folder):
    (folder / "photos").mkdir()
    done = called("audit", "photos", *SEVERAL)
    assert done.code == 2
    assert "photos is a folder" in done.err
