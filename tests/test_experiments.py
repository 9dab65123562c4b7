"""The experiments: data that are not what they should be, runs that are cut off, problems."""

import gzip
import hashlib
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from experiments import claims, data, grids, results, tables
from experiments.__main__ import entry
from experiments.curves import Curves, Series
from experiments.problems import make_problem

ROOT = Path(__file__).parents[1]
NAME = "news-forest"
ONE_PROBLEM = ("run", NAME, "--only-problem", "noisy-20", "--seeds", "1")

# ----------------------------------------------------------------------------------- data

TINY = np.arange(6, dtype=np.uint8).reshape(2, 3)


def idx(shape=(2, 3), content=bytes(range(6)), magic=b"\0\0\x08"):
    return magic + bytes([len(shape)]) + np.array(shape, dtype=">u4").tobytes() + content


SUM = hashlib.sha256(idx()).hexdigest()


@pytest.fixture
def read(tmp_path):
    def read(content, sha256=SUM):
        path = tmp_path / "tiny.gz"
        path.write_bytes(content)
        return data.read_idx(path, (2, 3), sha256)

    return read


def test_idx_comes_back_as_it_was_written(read):
    np.testing.assert_array_equal(read(gzip.compress(idx())), TINY)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (gzip.compress(idx())[:-9], "a whole gzip file"),
        (b"not gzip at all", "a whole gzip file"),
        (b"", "expected the header"),
        (gzip.compress(idx()[:5]), "expected the header 0x00000802 2 × 3"),
        (gzip.compress(idx(content=b"1234")), "expected 6 bytes of data, found 4"),
        (gzip.compress(idx(content=b"1234567")), "expected 6 bytes of data, found more"),
        (gzip.compress(idx(magic=b"\0\0\x0d")), "found 0x00000d02"),
        (gzip.compress(idx(content=b"abcdef")), "expected sha256"),
    ],
)
def test_a_file_that_is_not_the_data_is_one_line_that_names_it(read, content, words):
    with pytest.raises(data.DataError, match=words) as error:
        read(content)
    assert "tiny.gz" in str(error.value)
    assert "\n" not in str(error.value)


def test_a_header_that_claims_a_terabyte_asks_for_no_memory(read):
    with pytest.raises(data.DataError, match="found 0x00000803 1000000 × 1000000"):
        read(gzip.compress(idx((10**6, 10**6, 1))))


def test_a_missing_file_beside_others_is_named(tmp_path):
    with pytest.raises(data.DataError, match=r"gone\.gz is missing"):
        data.read_idx(tmp_path / "gone.gz", (2, 3), SUM)


@pytest.mark.parametrize("name", ["fashion-forest", "news-forest"])
def test_a_folder_without_data_is_one_line_that_names_the_places(tmp_path, capsys, name):
    empty = tmp_path / "empty"
    assert entry(["run", name, "--data", str(empty), "--out", str(tmp_path)]) == 3
    said = capsys.readouterr().err.splitlines()[-1]
    assert f"in none of {empty / grids_folder(name)}, {empty}. Give its folder" in said


def grids_folder(name):
    return {"fashion-forest": "fashion-mnist", "news-forest": "20newsgroups"}[name]


def test_the_folder_may_be_given_by_a_variable(tmp_path, monkeypatch):
    monkeypatch.setenv("LOOSELABELS_DATA", str(tmp_path))
    assert data.places("fashion-mnist") == [tmp_path / "fashion-mnist", tmp_path]
    monkeypatch.delenv("LOOSELABELS_DATA")
    assert data.places("fashion-mnist")[0] == data.DEBIAN[0]


def test_a_wrong_or_broken_archive_of_news_is_one_line(tmp_path):
    path = tmp_path / "20news-bydate.tar.gz"
    path.write_bytes(b"nothing of the kind")
    with pytest.raises(data.DataError, match="expected sha256 8f1b2514ca22…, found"):
        data.load_news(tmp_path)
    with pytest.raises(data.DataError, match="a whole tar archive"):
        data.read_news(path, hashlib.sha256(path.read_bytes()).hexdigest())


# ----------------------------------------------------------------------------------- results


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Return a function that runs a grid whose cells take no time; `run.cells` were run."""

    def cell_rows(_data, cell):
        run.cells.append(cell)
        shown = cell.setting + (" told" if cell.setting == "looselabels" else "")
        common = {"setting": shown, "weights": "flat", "seconds": 1.0}
        score = cell.labels_a_class / 1000
        return [common | {"method": name, "macro_f1": score} for name in ("baseline", "inferred")]

    def run():
        run.cells = []
        return entry([*ONE_PROBLEM, "--out", str(tmp_path)])

    monkeypatch.setattr(grids, "load", lambda *_: None)
    monkeypatch.setattr(grids, "run_forest_cell", cell_rows)
    monkeypatch.setenv("LOOSELABELS_COMMIT", "test")
    run.path = tmp_path / f"{NAME}.csv"
    return run


def test_a_second_run_finds_all_cells(run):
    assert run() == 0
    assert len(run.cells) == 10  # two settings, five label counts
    whole = run.path.read_bytes()
    assert run() == 0
    assert run.cells == []
    assert run.path.read_bytes() == whole
    assert len(results.read_rows(run.path)) == 20


def test_what_was_cut_off_anywhere_is_redone_to_the_same_table(run):
    run()
    whole = run.path.read_bytes()
    lines = whole.splitlines(keepends=True)
    for size in (0, 10, len(lines[0]), len(whole) // 2, len(whole) - 5, len(whole) - 1):
        run.path.write_bytes(whole[:size])
        assert run() == 0
        assert run.path.read_bytes() == whole
        assert run.cells


def test_a_cell_cut_between_two_lines_is_redone(run):
    run()
    whole = run.path.read_bytes()
    lines = whole.splitlines(keepends=True)
    run.path.write_bytes(b"".join(lines[:-1]))
    assert len(results.read_rows(run.path)) == 18  # half a cell is not read
    run()
    assert [str(cell) for cell in run.cells] == ["noisy-20, 300 labels a class, seed 0, paper"]
    assert run.path.read_bytes() == whole


def test_a_file_that_is_not_results_is_left_alone(run, capsys):
    run.path.write_text("name,age\nAnn,3\n")
    assert run() == 3
    assert "its first line is not that of results" in capsys.readouterr().err
    assert run.path.read_text() == "name,age\nAnn,3\n"


def test_a_full_disk_keeps_finished_cells(run, monkeypatch, capsys):
    write, written = results._write, []

    def write_until_full(file, content):
        written.append(content)
        if len(written) < 4:
            return write(file, content)
        write(file, content[:30])  # a part still fits
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(results, "_write", write_until_full)
    assert run() == 5
    said = capsys.readouterr().err.splitlines()[-1]
    assert said == "No space left on device; finished cells are kept."
    assert run.path.read_bytes() == b"".join(written[:3])
    monkeypatch.setattr(results, "_write", write)
    assert run() == 0
    assert len(run.cells) == 7
    assert len(results.read_rows(run.path)) == 20


def test_an_interrupt_keeps_finished_cells(run, monkeypatch, capsys):
    cell_rows = grids.run_forest_cell

    def interrupted(loaded, cell):
        if len(run.cells) == 2:
            raise KeyboardInterrupt
        return cell_rows(loaded, cell)

    monkeypatch.setattr(grids, "run_forest_cell", interrupted)
    assert run() == 130
    assert "The same command goes on" in capsys.readouterr().err
    assert len(results.read_rows(run.path)) == 4


def test_two_runs_in_one_folder_do_not_mix(run, tmp_path, capsys):
    with results.locked(tmp_path):
        assert run() == 5
    assert capsys.readouterr().err == (
        f"{tmp_path} is in use by another run (process {os.getpid()}).\n"
    )
    assert run() == 0  # the lock is gone


@pytest.mark.parametrize("arguments", [["run", "mnist"], ["run", NAME, "--only-problem", "x"]])
def test_an_unknown_name_lists_the_known_ones(arguments, capsys):
    assert entry(arguments) == 2
    said = capsys.readouterr().err
    names = grids.GRIDS if arguments[1] == "mnist" else grids.GRIDS[NAME].problems
    for name in names:
        assert name in said


# ----------------------------------------------------------------------------------- problems

Y = np.repeat(np.arange(20), 50)
KINDS = ("semi-supervised", "7-positive", "14-positive", "positive-unlabeled")


@pytest.mark.parametrize("kind", KINDS)
def test_a_problem_labels_so_many_of_each_positive_class_and_tells_the_rate(kind, seed):
    problem = make_problem(kind, Y, Y[::-1], 10, seed)
    positive = {"semi-supervised": 20, "7-positive": 7, "14-positive": 14}.get(kind, 1)
    labeled = np.array([label is not None for label in problem.labels])
    counts = np.bincount(problem.labels[labeled].astype(int), minlength=positive)
    assert counts.tolist() == [10] * positive
    assert (problem.labels[labeled] == Y[labeled]).all()
    assert problem.negative == (None if positive == 20 else positive)
    assert problem.design.labels == (*range(positive), None)
    design = problem.design.proba
    np.testing.assert_allclose(np.diag(design)[:positive], 0.2)  # 10 of 50
    np.testing.assert_allclose(design[:positive, -1], 0.8)
    if positive < 20:
        assert design[-1].tolist() == [0.0] * positive + [1.0]
        assert (problem.truth == np.minimum(Y, positive)).all()
        assert (problem.truth_test == np.minimum(Y, positive)[::-1]).all()
    np.testing.assert_allclose(problem.class_prior[:positive], 0.05)


@pytest.mark.parametrize(("kind", "noise"), [("noisy-20", 0.2), ("noisy-50", 0.5)])
def test_noise_is_at_its_rate_and_never_the_class_itself(kind, noise, seed):
    y = np.repeat(np.arange(10), 1000)
    problem = make_problem(kind, y, y, 400, seed)
    rows = np.flatnonzero([label is not None for label in problem.labels])
    assert len(rows) == 4000
    given = problem.labels[rows].astype(int)
    assert abs((given != y[rows]).mean() - noise) < 0.03
    assert problem.negative is None
    np.testing.assert_allclose(np.diag(problem.design.proba), 0.4 * (1 - noise))
    np.testing.assert_allclose(problem.design.proba[0, 1:-1], 0.4 * noise / 9)


def test_a_class_with_fewer_rows_is_labeled_whole():
    y = np.repeat([0, 1], [3, 50])
    problem = make_problem("semi-supervised", y, y, 10, 0)
    np.testing.assert_allclose(problem.design.proba, [[1, 0, 0], [0, 0.2, 0.8]])


def test_the_same_seed_draws_the_same_labels():
    draws = [make_problem("noisy-20", Y, Y, 10, seed).labels.tolist() for seed in (0, 0, 1)]
    assert draws[0] == draws[1] != draws[2]


# ----------------------------------------------------------------------------------- claims


def curves_of(**scores):
    """Return curves of noisy-20: labels a class → score, of each series."""
    return Curves(
        {"problem": "noisy-20", "labels_a_class": count, "macro_f1": score, **series._asdict()}
        for name, of_counts in scores.items()
        for series in [Series("paper", "flat", name)]
        for count, values in of_counts.items()
        for score in values
    )


@pytest.mark.parametrize(
    ("baseline", "expected"),
    [
        ({20: [0.4], 50: [0.5]}, "holds (2 of 2)"),
        ({20: [0.4], 50: [0.595]}, "holds in part (1 of 2)"),
        ({20: [0.5, 0.7], 50: [0.6]}, "does not hold (0 of 2)"),  # the mean of the seeds counts
        ({200: [0.1]}, "not run yet"),
    ],
)
def test_a_verdict_follows_from_the_rows(baseline, expected):
    curves = curves_of(baseline=baseline, h={20: [0.6], 50: [0.6]})
    check = claims.Check(
        "noisy-20", claims.paper("flat", "h"), claims.paper("flat", "baseline"), 0.01
    )
    assert tables.counted([check.compare(curves)]) == expected


def test_the_readme_has_what_the_command_prints(capsys):
    assert entry(["claims"]) == 0
    assert capsys.readouterr().out.strip() in (ROOT / "experiments" / "README.md").read_text()


def test_claims_without_results_say_how_to_get_them(tmp_path, capsys):
    assert entry(["claims", "--results", str(tmp_path)]) == 3
    assert "`python -m experiments run` makes them" in capsys.readouterr().err


# ----------------------------------------------------------------------------------- figures


def test_figures_are_the_same_bytes_each_time_and_small(tmp_path):
    pytest.importorskip("matplotlib", reason="the extra `plot` is not installed")
    (tmp_path / f"{NAME}.csv").write_bytes((grids.RESULTS / f"{NAME}.csv").read_bytes())
    drawn = []
    for folder in ("a", "b"):
        assert entry(["plot", "--results", str(tmp_path), "--out", str(tmp_path / folder)]) == 0
        paths = sorted((tmp_path / folder).iterdir())
        assert [path.name for path in paths] == ["news-forest.svg", "transitions.svg"]
        drawn.append([path.read_bytes() for path in paths])
    assert drawn[0] == drawn[1]
    assert max(map(len, drawn[0])) < 300_000


# ----------------------------------------------------------------------------------- end to end


@pytest.mark.slow
def test_a_quick_run_of_one_problem_writes_all_its_rows(tmp_path):
    folder = os.environ.get("LOOSELABELS_DATA")
    if not folder:
        pytest.skip("LOOSELABELS_DATA does not say where Fashion-MNIST is")
    command = ["run", "fashion-forest", "--quick", "--only-problem", "7-positive", "--out"]
    done = subprocess.run(
        [sys.executable, "-m", "experiments", *command, str(tmp_path)],
        cwd=ROOT, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    rows = results.read_rows(tmp_path / "fashion-forest.csv")
    assert {results.cell_of(row) for row in rows} == set(
        grids.cells_of("fashion-forest", quick=True, problems=["7-positive"])
    )
    assert {row["method"] for row in rows} == {"baseline", "classifier", "inferred", "W", "h"}
    assert all(0 <= float(row["macro_f1"]) <= 1 for row in rows)
