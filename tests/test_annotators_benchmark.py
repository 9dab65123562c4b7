"""The benchmark of annotators: its crowds, peers, interrupted runs and targets."""

import importlib
import sys
from pathlib import Path

import numpy as np
import pytest
from benchmarks.annotators import keywords, methods, peers, problems, results, tables
from benchmarks.annotators.methods import METHODS, OURS, Cell
from benchmarks.quality.answer import LINEAR
from click.testing import CliRunner

FOLDER = Path(__file__).parent.parent / "benchmarks"
PLACE = problems.PLACES[1]


@pytest.fixture
def command(monkeypatch):
    monkeypatch.syspath_prepend(FOLDER)
    yield importlib.import_module("quality_annotators")
    sys.modules.pop("quality_annotators")


# ----------------------------------------------------------------------------------- problems


def test_a_crowd_is_as_accurate_as_it_says_and_has_two_copies_of_its_first_annotator(rng):
    y = rng.integers(10, size=20_000)
    answers, accuracy = problems.simulate(y, 20, 3, rng)
    assert answers.shape == (20_000, 20)
    assert ((answers[:, :18] >= 0).sum(axis=1) == 3).all()
    np.testing.assert_allclose(problems.share_right(answers, y), accuracy, atol=0.04)
    assert (answers[:, [18, 19]] == answers[:, :1]).all()
    assert accuracy.max() > 0.9
    constant = [len(set(column[column >= 0].tolist())) == 1 for column in answers.T]
    assert 1 <= sum(constant) <= 3  # spammers with a favorite class


def test_seeds_have_other_answers_but_the_same_test_rows():
    first, again, other = (problems.make(PLACE, seed) for seed in (0, 0, 1))
    assert (first.answers == again.answers).all()
    assert (first.answers != other.answers).any()
    assert (first.X_test == other.X_test).all()


def test_a_keyword_function_votes_for_its_group_or_abstains():
    votes = keywords.vote(["The orbit of a PUCK.", "nothing"])
    groups = sorted(keywords.RULES)
    assert sorted(votes[0][votes[0] >= 0]) == [
        groups.index(g) for g in groups if g.endswith(("hockey", "space"))
    ]
    assert (votes[1] == -1).all()


# ----------------------------------------------------------------------------------- peers


def test_the_probabilities_of_crowdlab_are_its_scores_and_the_model_divides_the_rest():
    pd = pytest.importorskip("pandas")
    found = {
        "label_quality": pd.DataFrame({"consensus_label": [0], "consensus_quality_score": [0.6]}),
        "detailed_label_quality": pd.DataFrame([[0.6, 0.1]]),
    }
    proba = peers._posterior(found, np.array([[0.0, 2.0]]), np.array([[0.5, 0.3, 0.1, 0.1]]))
    np.testing.assert_allclose(proba, [[0.6, 0.225, 0.1, 0.075]])


def test_a_peer_that_is_not_installed_is_one_line_that_says_how_to_install_it(
    command, monkeypatch, tmp_path
):
    def absent(*_, **__):
        raise ModuleNotFoundError("No module named 'crowdkit'", name="crowdkit.aggregation")

    monkeypatch.setattr(peers, "import_module", absent)
    run = _run(command, tmp_path, "--method", "GLAD", "--method", "majority vote")
    assert "2 cells were left out: pip install --no-deps crowd-kit" in run.output
    assert "| 0.689 |" in run.output


# ----------------------------------------------------------------------------------- runs


def test_looselabels_is_scored_with_and_without_features(monkeypatch):
    monkeypatch.setattr(problems, "ROWS", 200)
    cells = [Cell(*PLACE, 0, OURS, base) for base in (methods.NO_FEATURES, LINEAR)]
    alone, with_features = (methods.run(cell, PLACE) for cell in cells)
    assert with_features["right"] > alone["right"] + 0.05
    assert with_features["macro_f1"] > 0.7
    assert with_features["log_loss"] < alone["log_loss"]
    assert 1 <= with_features["cross_predictions"] <= 6
    assert with_features["time_ratio"] > 1
    assert with_features["right"] - 0.1 < with_features["certainty"] < 1
    assert 15 < alone["intervals"] <= 20
    assert alone["held"] <= alone["intervals"]


def test_a_run_that_was_interrupted_continues_after_the_last_complete_line(command, tmp_path):
    _run(command, tmp_path, "--method", "majority vote")
    path = tmp_path / "found.csv"
    complete = path.read_text(encoding="utf-8")
    assert len(complete.splitlines()) == 3
    path.write_text(complete[: complete.rfind(",", 0, -10)], encoding="utf-8")
    run = _run(command, tmp_path, "--method", "majority vote")
    assert run.output.count(", majority vote, ") == 1  # one of two cells is computed again
    lines = zip(path.read_text(encoding="utf-8").splitlines(), complete.splitlines(), strict=True)
    assert all(a.split(",")[:9] == b.split(",")[:9] for a, b in lines)


def _run(command, tmp_path, *options):
    arguments = ["run", "--quick", "--out", str(tmp_path / "found.csv"), *options]
    return CliRunner().invoke(command.main, arguments, catch_exceptions=False)


# ----------------------------------------------------------------------------------- targets


def test_losses_and_intervals_that_miss_are_named(tmp_path):
    path = tmp_path / "found.csv"
    for seed in range(3):
        for method, bases in METHODS.items():
            for base in bases:
                behind = 0.1 if method == OURS else 0.0
                scores = {"right": 0.9 - behind + 0.001 * seed, "log_loss": 0.3 - behind}
                scores |= {"macro_f1": 0.8, "intervals": 20, "held": 20}
                scores |= {"cross_predictions": 3, "time_ratio": 1.2, "seconds": 2, "certainty": 1}
                results.append(path, Cell(*PLACE, seed, method, base), scores, "abc")
    path.write_text(",".join(results.COLUMNS) + "\n" + path.read_text())
    found = {
        t.words.partition(":")[0]: t
        for t in tables.check_targets(tables.Scores(results.read(path)))
    }
    lost = found["no loss to the best peer"]
    assert (lost.n_checks, len(lost.missed)) == (4, 2)
    assert "digits, 20 annotators, 3 per row, default, right: -0.100" in lost.missed[1]
    assert len(found["ahead with at most 3 answers"].missed) == 4
    assert len(found["without features at most 0.01 behind"].missed) == 1
    assert found["log-loss below every peer's"].missed == []
    assert found["90 % accuracy intervals hold in 85% to 95%"].missed == ["100.0% of 180"]
    assert "looselabels at abc, peers at abc." in tables.section(path)
    assert "default, right -0.100; default, macro_f1 +0.000." in tables.section(path)
    assert "| 0.801 |" in tables.section(path)  # the mean over seeds
    assert "| 0.802 |" in tables.section(path, seeds=(2,))
    assert "| 1.000 / 0.801 | 1.000 / 0.801 | 1.000 / 0.801 |" in tables.section(path)
    assert "| 100% | 100% | 100% | 3.0 / 1.2 / 2.0 | 3.0 / 1.2 / 2.0 |" in tables.section(path)
