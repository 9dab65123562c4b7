"""The quality benchmark: problems, scores, methods, interrupted runs, targets, pages."""

import re
import sys
from subprocess import run as run_command

import numpy as np
import pytest
from benchmarks.quality import answer, data, grid, metrics, ours, peers, problems, results, targets
from benchmarks.quality.__main__ import DOCS, entry, pages
from benchmarks.quality.answer import FOREST, LINEAR
from benchmarks.quality.methods import (
    CLEANLAB,
    DEFAULT,
    METHODS,
    OURS,
    RECIPE,
    SAME_FOREST,
    SAME_LINEAR,
    TRUE_TRANSITION,
    methods_for,
    named,
    select_methods,
)
from benchmarks.quality.page import outcome_of
from benchmarks.quality.results import RESULTS, Cell
from benchmarks.quality.scores import LOSS, TIE, WIN, Place, Scores
from sklearn.metrics import log_loss
from sklearn.semi_supervised import SelfTrainingClassifier

from looselabels import DecoupledClassifier

KINDS = [kind for kind in problems.FAMILY if not kind.startswith("human")]
PLAIN, PLAIN_LINEAR = named("plain", FOREST), named("plain", LINEAR)
CLEANLAB_FOREST = named(CLEANLAB, FOREST)
CLEANLAB_LINEAR = named(CLEANLAB, LINEAR)


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
    counts = problems.counts_of(kind, digits)
    assert counts == sorted(set(counts))
    assert problems.middle_count(digits) in counts
    problem = problems.make(kind, digits, problems.middle_count(digits), seed)
    assert len(problem.labels) == len(problem.truth) == len(problem.X)
    right = [k in problem.meanings[s] for k, s in zip(problem.truth, problem.labels, strict=True)]
    expected = {
        "noisy-20": 0.8, "noisy-50": 0.5, "asymmetric-30": 0.7, "uneven-25": 1 - 0.25 / 2,
        "largest-40": 1 - 0.4 / 10, "copies": 0.9,
    }  # fmt: skip
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


def test_every_other_class_has_wrong_labels(digits):
    problem = problems.make("uneven-25", digits, 90, 0)
    rates = 1 - np.diag(problem.transition.proba)
    assert (rates[1::2] == 0).all()
    np.testing.assert_allclose(rates[::2].mean(), 0.25, atol=0.05)
    assert np.count_nonzero(problem.transition.proba[0]) > 5  # wrong labels go everywhere


def test_the_largest_class_has_wrong_labels(digits):
    problem = problems.make("largest-40", digits, 90, 0)
    rates = 1 - np.diag(problem.transition.proba)
    assert np.flatnonzero(rates).tolist() == [np.bincount(problem.truth).argmax()]
    assert abs(rates.max() - 0.4) < 0.12


def test_half_of_the_rows_are_copies_with_the_label_of_their_original(digits):
    problem = problems.make("copies", digits, 80, 0)
    _, original, counts = np.unique(problem.X, axis=0, return_inverse=True, return_counts=True)
    assert set(counts) == {1, 2}
    assert abs((counts == 2).sum() - len(counts) / 2) <= 1
    label_of = dict(zip(original, problem.exact, strict=True))
    assert [label_of[row] for row in original] == problem.exact.tolist()


def test_noise_in_the_features_makes_classes_overlap_and_moving_them_apart_separates_them(small):
    def accuracy(kind):
        problem = problems.make(kind, small, 90, 0)
        assert problem.exact.tolist() == problem.truth.tolist()
        model = answer.make_base(LINEAR, 0).fit(problem.X, problem.truth)
        return model.score(problem.X_test, problem.truth_test)

    assert accuracy("overlap") < accuracy("clean") - 0.01
    assert accuracy("clean") <= accuracy("distinct") == 1


def test_candidates_are_two_or_three_classes_that_repeat(digits):
    problem = problems.make("candidates", digits, 90, 0)
    assert {len(label) for label in problem.labels} == {2, 3}
    assert 20 < len(problem.meanings) <= 40
    assert (problem.exact == -1).all()


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


def test_stored_rows_are_those_of_the_seed(digits, tmp_path):
    human = digits._replace(human={"human-9": digits.y}, human_noise={"human-9": np.eye(10)})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(data, "sample", lambda _loaded, _seed: human)
        data.store_samples(tmp_path, ["digits"], 1)
        patch.setattr(data, "load", None)  # not needed again
        data.store_samples(tmp_path, ["digits"], 1)
    found = data.read_sample(tmp_path, "digits", 0)
    assert found.name == "digits"
    for name in ("X", "y", "X_test", "y_test"):
        np.testing.assert_array_equal(getattr(found, name), getattr(human, name))
    np.testing.assert_array_equal(found.human["human-9"], digits.y)
    np.testing.assert_array_equal(found.human_noise["human-9"], np.eye(10))
    assert list(found.human) == ["human-9"]


def test_labels_given_by_people_are_a_separate_problem(digits):
    noise = np.roll(np.eye(10), 1, axis=1)
    human = digits._replace(human={"human-9": (digits.y + 1) % 10}, human_noise={"human-9": noise})
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
    scores = metrics.score(problem, found)
    assert scores.pop("flagged") == wrong.mean()
    assert scores == {"auprc": 1, "detection_f1": 1, "corrected": 1}


@pytest.mark.parametrize(("interval", "held"), [((15, 25), 1), ((21, 25), 0)])
def test_the_error_of_the_number_of_wrong_labels_is_relative(small, interval, held):
    problem = problems.make("clean", small, 30, 0)
    labels = problem.labels.copy()
    labels[:20] = (labels[:20] + 1) % 4
    found = answer.Answer(n_wrong=25, n_wrong_interval=interval)
    scores = metrics.of_count(problem._replace(labels=labels), found)
    assert scores["count_error"] == pytest.approx(0.25)
    assert scores["count_held"] == held
    assert scores["count_width"] == pytest.approx((interval[1] - interval[0]) / 20)
    assert metrics.of_count(problem, found) == {"count_held": 0}  # no label is wrong


def test_the_prior_error_is_the_mean_over_classes_with_labels(small):
    problem = problems.make("multi-positive", small, 30, 0)
    guess = problem.class_prior + np.array([0.1, -0.2, 0.0, 0.1])
    found = metrics.score(problem, answer.Answer(class_prior=guess))
    np.testing.assert_allclose(found["class_prior_error"], 0.1)


# ----------------------------------------------------------------------------------- methods


@pytest.mark.slow  # and some methods need the extra `bench`, as these tests do
@pytest.mark.parametrize("method", METHODS)
def test_every_method_returns_class_probabilities(small, method, monkeypatch):
    for library in ("cleanlab", "pulearn"):
        if method.startswith(library):
            pytest.importorskip(library, reason="the extra `bench` is not installed")
    for module in (answer, peers):
        monkeypatch.setattr(module, "TREES", 10)
    monkeypatch.setattr(grid, "read_sample", lambda *_: small)
    family = METHODS[method].families[0]
    kind = next(kind for kind, its in problems.FAMILY.items() if its == family)
    answers, score = [], metrics.score
    monkeypatch.setattr(metrics, "score", lambda *given: answers.append(given[1]) or score(*given))
    _, scores = grid.run_cell("", Cell("digits", kind, 25, 0, method))
    (found,) = answers
    if found.class_proba is None:
        assert set(scores) == {"class_prior", "class_prior_error", "seconds"}
        return
    assert found.class_proba.shape[0] == len(small.y_test)
    np.testing.assert_allclose(found.class_proba.sum(axis=1), 1)
    assert scores["macro_f1"] > 0.3 or family == "positive-unlabeled"


def test_the_default_is_called_without_an_estimator(small, monkeypatch):
    seen = []

    class Stop(Exception):
        pass

    def classifier(*given, **named_parameters):
        seen.append((given, named_parameters))
        raise Stop

    monkeypatch.setattr(ours, "DecoupledClassifier", classifier)
    problem = problems.make("semi-supervised", small, 20, 0)
    with pytest.raises(Stop):
        METHODS[DEFAULT].answer(problem, 7)
    assert seen == [((None, None), {"negative": None, "random_state": 7})]


def test_the_linear_base_uses_weights(small):
    weight = (small.y < 2).astype(float)
    model = answer.make_base(LINEAR, 0).fit(small.X, small.y, sample_weight=weight)
    assert set(model.predict(small.X_test)) <= {0, 1}


def test_the_true_transition_keeps_labels_missing_at_random(small):
    problem = problems.make("noisy-20", small, 40, 0)
    specified = ours.true_noise(problem)
    missing = np.mean([label is None for label in problem.labels])
    np.testing.assert_allclose(specified.proba[:, -1], missing)
    noise = np.full((4, 4), 0.2 / 3) + (0.8 - 0.2 / 3) * np.eye(4)
    np.testing.assert_allclose(specified.proba[:, :-1], (1 - missing) * noise)
    assert specified.labels == (0, 1, 2, 3, None)


@pytest.mark.parametrize("kind", ["asymmetric-30", "uneven-25", "largest-40", "copies"])
def test_labels_are_drawn_with_the_true_transition(kind):
    truth = np.repeat(np.arange(4), 20_000)
    labels = problems._labels(kind, truth, np.random.default_rng(0))
    meanings = {k: [k] for k in range(4)}
    shares = problems.observed_transition(labels, truth, meanings, range(4)).proba
    np.testing.assert_allclose(shares, problems.drawn_noise(kind, truth), atol=0.015)


@pytest.mark.slow
def test_the_audit_of_noisy_labels_is_scored(small, monkeypatch):
    monkeypatch.setattr(answer, "TREES", 20)
    problem = problems.make("uneven-25", small, 60, 0)
    for name in (SAME_FOREST, named(TRUE_TRANSITION, FOREST)):
        scores = metrics.score(problem, METHODS[name].answer(problem, 0))
        assert {"auprc", "corrected", "flagged", "count_error", "count_held"} <= set(scores)
        assert 0.5 < scores["label_accuracy"] < 1
        assert scores["corrected"] > 0.9


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
    peers.split_labels(problem, 0, FOREST)
    X, y, weight, *_ = seen
    np.testing.assert_allclose(weight.sum(), len(problem.labels))
    right = np.bincount(y, weight, 4)
    np.testing.assert_allclose(right, np.bincount(problem.truth, minlength=4), atol=8)
    assert len(X) == len(y) > len(problem.labels)


def test_self_training_as_the_estimator_gives_the_result_of_self_training(small):
    problem = problems.make("semi-supervised", small, 20, 0)
    forest = answer.make_base(FOREST, 0).set_params(n_estimators=20)
    options = {"noise": 0, "calibrate": None, "label_weights": 1, "cv": 2, "random_state": 0}
    clf = DecoupledClassifier(ours.SelfTrained(forest, unlabeled=4), **options)
    clf.fit(problem.X, problem.labels)
    alone = SelfTrainingClassifier(forest).fit(problem.X, problem.exact)
    np.testing.assert_allclose(
        clf.predict_proba(small.X_test), alone.predict_proba(small.X_test), atol=1e-6
    )


def test_methods_are_selected_by_name_or_role():
    assert select_methods([OURS]) == [DEFAULT, SAME_FOREST, SAME_LINEAR, RECIPE]
    assert select_methods([PLAIN, CLEANLAB_FOREST]) == [PLAIN, CLEANLAB_FOREST]
    assert SAME_LINEAR in select_methods([LINEAR])
    assert DEFAULT not in select_methods([LINEAR])
    assert select_methods([]) == []


# ----------------------------------------------------------------------------------- runs


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Return a function that runs the quick grid with a replaced, instant `run_cell`."""

    def run_cell(_samples, cell):
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


def test_no_cell_is_started_after_the_last_minute(run, capsys):
    assert run("--minutes", "0") == 0
    assert run.cells == []
    assert run() == 0
    some = run.path.read_text().splitlines(keepends=True)[:20]
    run.path.write_text("".join(some))
    capsys.readouterr()
    assert run("--minutes", "10") == 0
    assert len(run.cells) > 50
    n_cells = len(run.cells)  # one second each
    expected = f"{n_cells} cells to run, about {n_cells / 60:.0f} minutes"
    assert expected in capsys.readouterr().err


def test_the_first_seed_of_all_data_comes_first(tmp_path, small):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(grid, "read_sample", lambda _samples, name, _seed: small._replace(name=name))
        cells = grid.missing_cells({}, tmp_path, ["digits", "news"], 2)
    seeds = [cell.seed for cell in cells]
    assert seeds == sorted(seeds)
    assert {cell.data for cell in cells[: len(cells) // 2]} == {"digits", "news"}
    counts = {c.labels for c in cells if c.problem == "positive-1" and c.method == SAME_LINEAR}
    assert counts == {problems.middle_count(small)}


def test_a_cell_that_fails_is_reported_and_stays_missing(run, capsys, monkeypatch):
    def run_cell(_samples, cell):
        if cell.problem == "merged":
            raise ZeroDivisionError("no rows")
        return cell, {"macro_f1": 0.5, "seconds": 1.0}

    works = grid.run_cell
    monkeypatch.setattr(grid, "run_cell", run_cell)
    assert run() == 3
    assert "cells failed. The first: digits, merged" in capsys.readouterr().err
    found = {cell.problem for cell in results.read(run.path)}
    assert "clean" in found
    assert "merged" not in found
    monkeypatch.setattr(grid, "run_cell", works)
    assert run() == 0
    assert {cell.problem for cell in run.cells} == {"merged"}


def test_more_seeds_are_run_where_looselabels_is_not_ahead(tmp_path, small, monkeypatch):
    monkeypatch.setattr(grid, "read_sample", lambda *_: small._replace(name="news"))
    whole = grid.missing_cells({}, tmp_path, ["news"], 1)
    done = {cell: {"macro_f1": 0.6 if cell.method in targets.EVERY else 0.5} for cell in whole}
    assert grid.missing_cells(done, tmp_path, ["news"], 1, more=2) == []
    tied = next(c for c in whole if c.method == SAME_LINEAR and c.problem == "copies")
    done[tied]["macro_f1"] = 0.504
    more = grid.missing_cells(done, tmp_path, ["news"], 1, more=2)
    assert [cell.seed for cell in more] == [1, 1, 1, 2, 2, 2]
    assert {cell[:3] for cell in more} == {tied[:3]}
    assert {cell.method for cell in more} == {SAME_LINEAR, PLAIN_LINEAR, CLEANLAB_LINEAR}
    # the first seed chooses, so that a run can be continued
    done |= {cell: {"macro_f1": 0.9 if cell.method in targets.EVERY else 0.5} for cell in more[:3]}
    assert grid.missing_cells(done, tmp_path, ["news"], 1, more=2) == more[3:]


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
    names = {"ours": DEFAULT, "plain": PLAIN, "cleanlab": CLEANLAB_FOREST}
    names |= {"same": SAME_FOREST, "linear": SAME_LINEAR, "plain_linear": PLAIN_LINEAR}
    names |= {"true": TRUE_TRANSITION}
    return Scores(
        {
            Cell(*place, seed, names[name]): {score: value, "seconds": 1.0}
            for name, values in by_method.items()
            for seed, value in enumerate(values)
        }
    )


def target(scores, words):
    (found,) = [t for t in targets.check_targets(scores) if t.words.startswith(words)]
    return found


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([0.52, 0.62, 0.72], WIN),  # seeds differ more than methods: they are compared in pairs
        ([0.48, 0.58, 0.68], LOSS),
        ([0.496, 0.596, 0.696], TIE),  # at most 0.005
        ([0.48, 0.60, 0.69], TIE),  # the mean is -0.01, its standard error 0.006
        ([0.48, 0.59, 0.69], LOSS),
        ([0.50, 0.60, 0.70], TIE),
    ],
)
def test_a_loss_exceeds_a_threshold_and_two_standard_errors(values, expected):
    scores = scores_of(ours=values, plain=[0.5, 0.6, 0.7])
    assert scores.compare([PLACE], DEFAULT, "macro_f1").outcome == expected


def test_the_upper_bound_is_that_of_a_one_sided_t_test():
    from scipy.stats import ttest_1samp

    compared = scores_of(ours=[0.48, 0.57, 0.69], plain=[0.5, 0.6, 0.7]).compare(
        [PLACE], DEFAULT, "macro_f1"
    )
    interval = ttest_1samp(compared.gains, 0, alternative="less").confidence_interval(0.95)
    assert compared.upper == pytest.approx(interval.high)


def test_the_best_peer_has_the_highest_score_or_the_lowest_loss():
    values = {"ours": [0.3], "plain": [0.2], "cleanlab": [0.4]}
    up = scores_of(**values).compare([PLACE], DEFAULT, "macro_f1")
    assert (up.peer, up.outcome) == (CLEANLAB_FOREST, LOSS)
    down = scores_of(score="log_loss", **values).compare([PLACE], DEFAULT, "log_loss")
    assert (down.peer, down.outcome) == (PLAIN, LOSS)


def test_a_share_is_not_rounded_up_to_all_comparisons():
    checks = [targets.Check("digits", "clean", holds, 0.0) for holds in [True] * 447 + [False]]
    percents = [targets.Target("", 1, found).percent for found in (checks, checks[:-1], [])]
    assert percents == ["99%", "100%", ""]


def test_the_best_peer_has_the_same_base_and_the_default_is_compared_with_all():
    scores = scores_of(ours=[0.5], same=[0.5], linear=[0.5], plain=[0.4], plain_linear=[0.6])
    peers = [scores.compare([PLACE], m, "macro_f1").peer for m in targets.EVERY]
    assert peers == [PLAIN_LINEAR, PLAIN, PLAIN_LINEAR]
    assert target(scores, "default, peers with a forest: no loss").share == 1
    assert target(scores, "default, all peers: no loss").share == 0
    same = target(scores, "same base: no loss")
    assert [check.holds for check in same.checks] == [True, False]
    assert not same.is_reached


@pytest.mark.parametrize(("ours", "holds"), [([0.45, 0.452], False), ([0.45, 0.49], True)])
def test_no_difference_may_be_certainly_below_two_hundredths(ours, holds):
    scores = scores_of(same=ours, plain=[0.5, 0.5])
    (check,) = target(scores, "same base: the upper 95 % bound").checks
    assert check.holds == holds


def test_references_are_never_the_best_peer():
    for family in set(problems.FAMILY.values()):
        assert all(METHODS[name].role == "peer" for name in methods_for(family, "peer"))
        assert "label spreading" not in methods_for(family, "peer")


@pytest.mark.parametrize(("ours", "holds"), [([0.496], True), ([0.494], False)])
def test_clean_labels_may_cost_half_of_one_hundredth_of_macro_f1(ours, holds):
    scores = scores_of(ours=ours, plain=[0.5], cleanlab=[0.1])
    (check,) = target(scores, "clean labels: no loss").checks
    assert check.holds == holds


@pytest.mark.parametrize(
    ("labels", "value", "holds"), [(60, 0.89, [True]), (60, 0.87, [False]), (40, 0.0, [])]
)
def test_corrected_labels_are_compared_with_the_true_transition(labels, value, holds):
    place = Place("news", "uneven-25", labels)
    scores = scores_of(place, "corrected", ours=[value], true=[0.895])
    found = target(scores, "wrong labels: after correction")
    assert [check.holds for check in found.checks] == holds


@pytest.mark.parametrize(("error", "holds"), [([0.1, 0.3], True), ([0.2, 0.4], False)])
def test_the_number_of_wrong_labels_may_be_off_by_a_quarter(error, holds):
    scores = scores_of(Place("news", "copies", 60), "count_error", ours=error)
    assert target(scores, "wrong labels: their number").is_reached == holds


def test_a_family_mean_below_zero_is_a_miss():
    scores = scores_of(ours=[0.499], plain=[0.5])  # a tie, but below
    assert target(scores, "default, all peers: no loss").is_reached
    assert not target(scores, "default, all peers: the mean").is_reached


def test_only_seeds_that_both_methods_have_are_compared():
    scores = scores_of(ours=[0.5, 0.9], plain=[0.4])
    assert scores.n_seeds() == "1 to 2 seeds"
    assert scores.compare([PLACE], DEFAULT, "macro_f1").difference == pytest.approx(0.1)
    assert scores.compare([PLACE], DEFAULT, "macro_f1", "self-training (forest)") is None
    rows = {cell: row for cell, row in scores_of(ours=[0.1, 0.9], plain=[0.5, 0.8]).rows.items()
            if cell != Cell(*PLACE, 0, DEFAULT)}  # fmt: skip
    assert Scores(rows).compare([PLACE], DEFAULT, "macro_f1").difference == pytest.approx(0.1)


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
    lost = []
    for family, place, places in committed.by_family():
        for score in ("macro_f1", "log_loss", "calibration_error"):
            for method in targets.EVERY if score == "macro_f1" else [DEFAULT]:
                compared = committed.compare(places, method, score)
                if compared is not None and compared.outcome == LOSS:
                    lost.append((re.escape(method), family, place))
    assert section.count("\n| ") - 1 == len(lost) > 0
    for method, family, place in lost:
        assert re.search(rf"\| {method} \| {family} \| \W*{place}\W* \|", section), (family, place)


def test_the_pages_can_be_made_from_one_cell(tmp_path):
    path = tmp_path / "results.csv"
    for cell in (Cell(*PLACE, 0, DEFAULT), Cell("digits", "positive-1", 90, 1, DEFAULT)):
        results.tidy(path)
        results.append(path, cell, {"macro_f1": 0.5, "seconds": 1.0}, "test")
        assert [text.startswith("# ") for text in pages(path).values()] == [True, True]


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
    assert {cell.method for cell in found} == set(METHODS) - {RECIPE}
    assert entry(["table", "--results", str(out)]) == 0
    printed = capsys.readouterr().out
    assert "| multi-positive | digits | 0." in printed
    assert "| asymmetric-30 | digits | looselabels | cleanlab (forest) | 0." in printed
    assert re.search(r"\| asymmetric-30 \| looselabels \| [01]\.\d\d \| [01] of 1 \|", printed)
