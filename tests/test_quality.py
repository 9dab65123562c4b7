"""The quality benchmark: problems, scores, methods, interrupted runs, targets, pages."""

import re
import sys
from subprocess import run as run_command

import numpy as np
import pytest
from benchmarks.quality import answer, data, grid, metrics, ours, peers, problems, results, targets
from benchmarks.quality.__main__ import DOCS, entry, pages
from benchmarks.quality.methods import (
    ALL,
    CLEANLAB,
    DEFAULT,
    METHODS,
    OURS,
    PLAIN,
    PU,
    SAME,
    SEVERAL,
    select_methods,
)
from benchmarks.quality.page import change_of, outcome_of
from benchmarks.quality.results import RESULTS, Cell
from benchmarks.quality.scores import LOSS, TIE, WIN, Place, Scores
from sklearn.metrics import log_loss
from sklearn.semi_supervised import SelfTrainingClassifier

from looselabels import DecoupledClassifier

KINDS = [kind for kind in problems.FAMILY if not kind.startswith("human")]


@pytest.fixture(scope="module")
def digits():
    return data.sample(data.load("digits"), 0)


@pytest.fixture(scope="module")
def small(digits):
    """The first four digits: fits take no time."""
    rows, test = digits.y < 4, digits.y_test < 4
    return digits._replace(
        X=digits.X[rows], y=digits.y[rows], X_test=digits.X_test[test], y_test=digits.y_test[test]
    )


# ----------------------------------------------------------------------------------- problems


@pytest.mark.parametrize("kind", KINDS)
def test_a_label_means_the_class_of_its_row_unless_labels_are_wrong(digits, kind, seed):
    few, some, many = problems.counts_of(kind, digits)
    assert few < some < many
    problem = problems.make(kind, digits, some, seed)
    assert len(problem.labels) == len(problem.truth) == len(problem.X)
    right = [k in problem.meanings[s] for k, s in zip(problem.truth, problem.labels, strict=True)]
    expected = {"noisy-20": 0.8, "noisy-50": 0.5, "asymmetric-30": 0.7}
    labeled = np.array([len(problem.meanings[s]) == 1 for s in problem.labels])
    if kind in expected:
        assert abs(np.mean(np.array(right)[labeled]) - expected[kind]) < 0.09
    else:
        assert all(right)


@pytest.mark.parametrize("kind", [*problems.PARTIAL, "merged"])
def test_each_positive_class_has_as_many_labels_as_asked_for(digits, kind):
    problem = problems.make(kind, digits, 20, 0)
    counts = np.bincount(problem.truth[problem.exact >= 0], minlength=len(problem.classes))
    positive = [k for k in problem.classes if k != problem.negative]
    per_class = 20 * (problems.n_positive(kind, 10) if len(positive) == 1 else 1)
    assert counts[positive].tolist() == [per_class] * len(positive)
    assert counts.sum() == per_class * len(positive)


@pytest.mark.parametrize("kind", ["coarse", "merged"])
def test_the_specified_transition_is_close_to_the_observed_one(digits, kind):
    problem = problems.make(kind, digits, 27, 0)
    specified = ours.reorder(problem.specified, problem.transition)
    assert abs(specified - problem.transition.proba).sum(axis=1).max() < 0.2
    np.testing.assert_allclose(specified.sum(axis=1), 1)  # no label is missing


@pytest.mark.parametrize(("kind", "n_positive"), [("positive-1", 1), ("positive-70", 7)])
def test_the_first_classes_are_merged_into_the_positive_class(digits, kind, n_positive):
    problem = problems.make(kind, digits, 20, 0)
    np.testing.assert_array_equal(problem.truth == 0, digits.y < n_positive)
    assert problem.negative == 1


def test_seeds_have_different_training_rows_and_the_same_test_rows():
    loaded = data.load("gaussians")
    first, second = (data.sample(loaded, seed) for seed in (0, 1))
    assert not np.array_equal(first.X, second.X)
    np.testing.assert_array_equal(first.X_test, second.X_test)
    assert len(first.y) == data.ROWS


@pytest.mark.parametrize("name", ["digits", "gaussians"])
def test_the_number_of_classes_is_known_without_the_data(name):
    assert data.load(name).n_classes == problems.CLASSES[name]


def test_labels_given_by_people_are_a_separate_problem(digits):
    human = digits._replace(human={"human-9": (digits.y + 1) % 10})
    assert "human-9" in problems.kinds_of(human)
    assert "human-9" not in problems.kinds_of(digits)
    problem = problems.make("human-9", human, 20, 0)
    np.testing.assert_array_equal(problem.exact, (problem.truth + 1) % 10)
    np.testing.assert_array_equal(problem.transition.proba, np.roll(np.eye(10), 1, axis=1))


# ----------------------------------------------------------------------------------- scores


def test_log_loss_equals_that_of_scikit_learn_and_is_finite_at_zero(rng):
    class_proba, truth = rng.dirichlet(np.ones(4), 50), rng.integers(4, size=50)
    expected = log_loss(truth, class_proba, labels=range(4))
    np.testing.assert_allclose(metrics.log_loss(truth, class_proba), expected)
    wrong = np.eye(4)[(truth + 1) % 4]
    np.testing.assert_allclose(metrics.log_loss(truth, wrong), -np.log(1e-6), rtol=1e-5)


def test_calibration_error_is_the_gap_between_confidence_and_accuracy():
    class_proba = np.array([[0.95, 0.05]] * 10 + [[0.35, 0.65]] * 10)
    truth = np.array([0] * 8 + [1] * 2 + [1] * 6 + [0] * 4)  # 80 % and 60 % are right
    np.testing.assert_allclose(metrics.calibration_error(truth, class_proba), (0.15 + 0.05) / 2)


def test_the_best_of_several_rankings_of_the_labeled_rows_counts(small):
    problem = problems.make("noisy-20", small, 30, 0)
    rows = problem.exact >= 0
    wrong = problem.exact[rows] != problem.truth[rows]
    found = answer.Answer(
        doubt=[-1.0 * wrong, 1.0 * wrong], is_doubted=wrong, corrected=problem.truth[rows]
    )
    assert metrics.score(problem, found) == {"auprc": 1, "detection_f1": 1, "corrected": 1}


def test_the_prior_error_is_the_mean_over_classes_with_labels(small):
    problem = problems.make("multi-positive", small, 30, 0)
    guess = problem.class_prior + np.array([0.1, -0.2, 0.0, 0.1])
    found = metrics.score(problem, answer.Answer(class_prior=guess))
    np.testing.assert_allclose(found["class_prior_error"], 0.1)


# ----------------------------------------------------------------------------------- methods


@pytest.mark.parametrize("method", METHODS)
def test_every_method_returns_class_probabilities(small, method, monkeypatch):
    for library in ("cleanlab", "pulearn"):
        if method.startswith(library):
            pytest.importorskip(library, reason="the extra `bench` is not installed")
    for module in (answer, ours, peers):
        monkeypatch.setattr(module, "TREES", 10)
    family = METHODS[method].families[0]
    kind = next(kind for kind, its in problems.FAMILY.items() if its == family)
    answers, score = [], metrics.score
    monkeypatch.setattr(metrics, "score", lambda *given: answers.append(given[1]) or score(*given))
    _, scores = grid.run_cell(small, Cell("digits", kind, 25, 0, method))
    (found,) = answers
    if found.class_proba is None:
        assert set(scores) == {"class_prior", "class_prior_error", "seconds"}
        return
    assert found.class_proba.shape[0] == len(small.y_test)
    np.testing.assert_allclose(found.class_proba.sum(axis=1), 1)
    assert scores["macro_f1"] > 0.3 or family == "positive-unlabeled"


def test_a_row_is_negative_if_no_positive_class_reaches_one_half(small):
    problem = problems.make("multi-positive", small, 30, 0)
    scores = np.array([[0.4, 0.3, 0.49], [0.6, 0.7, 0.1], [1.7, 0.2, 0.1]])
    problem = problem._replace(X_test=scores)
    columns = iter(range(3))

    def fit(_X, _y):
        column = next(columns)

        class Model:
            def predict_proba(self, X):
                return np.column_stack([1 - X[:, column], X[:, column]])

        return Model()

    found = peers.one_versus_rest(problem, fit)
    assert found.class_proba.argmax(axis=1).tolist() == [3, 1, 0]
    assert found.class_prior is None


def test_held_out_rows_are_redrawn_until_one_is_positive():
    class Model:
        random_state, seeds = 0, []

        def set_params(self, random_state):
            self.random_state = random_state

        def fit(self, X, y):
            self.seeds.append(self.random_state)
            if len(self.seeds) < 3:
                raise ValueError("No positive examples found in the hold-out set.")
            return self

    assert peers.fit_with_redraws(Model(), None, None).seeds == [0, 1000, 2000]


def test_a_coarse_label_is_split_among_its_classes(small, monkeypatch):
    problem, seen = problems.make("coarse", small, 20, 0), []
    monkeypatch.setattr(peers, "_plain", lambda _problem, *given: seen.extend(given))
    peers.split_labels(problem, 0)
    X, y, weight, _ = seen
    np.testing.assert_allclose(weight.sum(), len(problem.labels))
    right = np.bincount(y, weight, 4)
    np.testing.assert_allclose(right, np.bincount(problem.truth, minlength=4), atol=8)
    assert len(X) == len(y) > len(problem.labels)


def test_self_training_as_the_estimator_gives_the_result_of_self_training(small):
    problem = problems.make("semi-supervised", small, 20, 0)
    forest = answer.base_forest(0).set_params(n_estimators=20)
    clf = DecoupledClassifier(
        ours.SelfTrained(forest, unlabeled=4), calibrate=None, label_weights=1, cv=2, random_state=0
    )
    clf.fit(problem.X, problem.labels)
    alone = SelfTrainingClassifier(forest).fit(problem.X, problem.exact)
    np.testing.assert_allclose(
        clf.predict_proba(small.X_test), alone.predict_proba(small.X_test), atol=1e-6
    )


def test_methods_are_selected_by_name_or_role():
    assert select_methods([OURS]) == [name for name in METHODS if name.startswith("looselabels")]
    assert select_methods([PLAIN, CLEANLAB]) == [PLAIN, CLEANLAB]
    assert select_methods([]) == []


# ----------------------------------------------------------------------------------- runs


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Return a function that runs the quick grid with a replaced, instant `run_cell`."""

    def run_cell(_data, cell):
        run.cells.append(cell)
        return cell, {"macro_f1": 0.5, "seconds": 1.0}

    def run(*more):
        run.cells = []
        return entry(["run", "--quick", "--jobs", "1", "--out", str(run.path), *more])

    monkeypatch.setattr(grid, "run_cell", run_cell)
    monkeypatch.setattr(grid, "commit", lambda: "test")
    run.path = tmp_path / "results.csv"
    return run


def test_a_second_run_has_nothing_to_do(run):
    assert run() == 0
    assert {cell.problem for cell in run.cells} >= {"multi-positive", "merged", "clean"}
    whole = run.path.read_bytes()
    assert run() == 0
    assert run.cells == []
    assert run.path.read_bytes() == whole


def test_a_truncated_file_is_completed_to_the_same_results(run):
    run()
    whole = run.path.read_bytes()
    for size in (0, 10, len(whole) // 2, len(whole) - 5, len(whole) - 1):
        run.path.write_bytes(whole[:size])
        assert run() == 0
        assert run.cells
        assert run.path.read_bytes() == whole


def test_redo_runs_one_method_again_and_keeps_the_others(run):
    run()
    whole = set(run.path.read_text().splitlines())
    assert run("--redo", DEFAULT) == 0
    assert {cell.method for cell in run.cells} == {DEFAULT}
    assert set(run.path.read_text().splitlines()) == whole


def test_options_restrict_the_data_and_the_methods(run):
    assert run("--only", "gaussians", "--method", "peer") == 0
    assert {cell.data for cell in run.cells} == {"gaussians"}
    assert not any(cell.method in select_methods([OURS]) for cell in run.cells)


def test_a_file_that_is_not_a_results_file_is_not_changed(run, capsys):
    run.path.write_text("name,age\nAnn,3\n")
    assert run() == 3
    assert "the first line is not the header of a results file" in capsys.readouterr().err
    assert run.path.read_text() == "name,age\nAnn,3\n"


def test_missing_data_is_reported_in_one_line(tmp_path, capsys):
    out = str(tmp_path / "results.csv")
    assert entry(["run", "--only", "cifar", "--data", str(tmp_path), "--out", out]) == 3
    message = capsys.readouterr().err
    assert message.startswith("CIFAR-10N (cifar10n.npz) was not found in")
    assert message.count("\n") == 1


# ----------------------------------------------------------------------------------- targets

PLACE = Place("news", "clean", 10)


def scores_of(place=PLACE, score="macro_f1", **by_method):
    names = {"ours": DEFAULT, "plain": PLAIN, "cleanlab": CLEANLAB}
    return Scores(
        {
            Cell(*place, seed, names[name]): {score: value, "seconds": 1.0}
            for name, values in by_method.items()
            for seed, value in enumerate(values)
        }
    )


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([0.52, 0.62, 0.72], WIN),  # seeds differ more than methods: they are compared in pairs
        ([0.48, 0.58, 0.68], LOSS),
        ([0.52, 0.58, 0.71], TIE),
        ([0.50, 0.60, 0.70], TIE),
    ],
)
def test_a_tie_is_within_one_standard_deviation_of_the_differences(values, expected):
    scores = scores_of(ours=values, plain=[0.5, 0.6, 0.7])
    assert scores.compare([PLACE], DEFAULT, "macro_f1").outcome == expected


def test_the_best_peer_has_the_highest_score_or_the_lowest_loss():
    values = {"ours": [0.3], "plain": [0.2], "cleanlab": [0.4]}
    up = scores_of(**values).compare([PLACE], DEFAULT, "macro_f1")
    assert (up.peer, up.outcome) == (CLEANLAB, LOSS)
    down = scores_of(score="log_loss", **values).compare([PLACE], DEFAULT, "log_loss")
    assert (down.peer, down.outcome) == (PLAIN, LOSS)


@pytest.mark.parametrize(("ours", "holds"), [([0.495], True), ([0.485], False)])
def test_clean_labels_may_cost_one_hundredth_of_macro_f1(ours, holds):
    found = dict(targets.check_targets(scores_of(ours=ours, plain=[0.5], cleanlab=[0.1])))
    (check,) = found["clean: macro-F1 at most 0.01 below the plain forest"]
    assert check.holds == holds


def test_only_seeds_that_both_methods_have_are_compared():
    scores = scores_of(ours=[0.5, 0.9], plain=[0.4])
    assert scores.compare([PLACE], DEFAULT, "macro_f1").difference == pytest.approx(0.1)
    assert scores.compare([PLACE], DEFAULT, "macro_f1", "self-training") is None


# ----------------------------------------------------------------------------------- pages


@pytest.fixture(scope="module")
def committed():
    return Scores(results.read(RESULTS))


@pytest.mark.parametrize("name", ["quality.md", "quality-tables.md"])
def test_the_pages_are_those_of_the_committed_results(name):
    assert (DOCS / name).read_text(encoding="utf-8") == pages(RESULTS)[name]


def test_the_command_prints_both_pages(capsys):
    assert entry(["table"]) == 0
    assert capsys.readouterr().out == "\n".join(pages(RESULTS).values()) + "\n"


def test_the_page_shows_every_loss_next_to_the_wins(committed):
    page = (DOCS / "quality.md").read_text(encoding="utf-8")
    section = page.partition("Every loss, by data set.")[2].partition("## ")[0]
    lost = [
        (family, place)
        for family, place, places in committed.by_family()
        for score in ("macro_f1", "log_loss", "calibration_error")
        if committed.compare(places, DEFAULT, score).outcome == LOSS
    ]
    assert section.count("\n| ") - 1 == len(lost) > 0
    for family, place in lost:
        assert re.search(rf"\| {family} \| \W*{place}\W* \|", section), (family, place)


def test_the_advice_agrees_with_the_results(committed):
    def gain(family, *change):
        return np.mean([c.difference for c in change_of(committed, family, *change)])

    for family in (SEVERAL, "noisy", "asymmetric", "human"):
        assert gain(family, "balanced_f1") > 0.005
    assert gain(PU, "balanced_f1") < -0.005
    for family in set(ALL) - {"clean", "human"}:  # keep the default forest
        assert gain(family, "macro_f1", SAME) < -0.02
    clean = {
        place: committed.compare(places, SAME, "macro_f1").difference
        for family, place, places in committed.by_family()
        if family == "clean"
    }
    assert clean.pop("gaussians") < -0.02
    assert min(clean.values()) > -0.001  # no loss with the forest of the peers


def test_a_family_wins_or_loses_by_most_of_its_data_sets():
    def compared(ours):
        return scores_of(ours=[ours], plain=[0.5]).compare([PLACE], DEFAULT, "macro_f1")

    def outcome(*ours):
        return outcome_of(dict(enumerate(map(compared, ours))))

    assert outcome(0.6, 0.6, 0.5) == WIN
    assert outcome(0.6, 0.5) == TIE
    assert outcome(0.6, 0.4, 0.4) == LOSS


def test_a_page_without_results_says_how_to_create_them(tmp_path, capsys):
    assert entry(["table", "--results", str(tmp_path / "none.csv")]) == 3
    assert "Run `python -m benchmarks.quality run` to create them" in capsys.readouterr().err


@pytest.mark.slow
def test_a_quick_run_fills_every_table(tmp_path, capsys):
    for library in ("cleanlab", "pulearn"):
        pytest.importorskip(library, reason="the extra `bench` is not installed")
    out = tmp_path / "results.csv"
    command = [sys.executable, "-m", "benchmarks.quality", "run", "--quick", "--out", str(out)]
    done = run_command(command, cwd=DOCS.parent, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found = results.read(out)
    assert {cell.method for cell in found} == set(METHODS) - {"looselabels on self-training"}
    assert entry(["table", "--results", str(out)]) == 0
    printed = capsys.readouterr().out
    assert "| multi-positive | digits | 0." in printed
    assert "| asymmetric-30 | digits | 0." in printed
