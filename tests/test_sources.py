"""Rows in blocks: the answers of the same rows in memory, constant memory, and plain errors."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from looselabels import Transition, _sources, infer
from looselabels import blocks as blocks_module
from looselabels.blocks import Blocks, regrouped
from looselabels.exceptions import IdentifiabilityWarning, InconsistentLabelWarning
from looselabels.inference import class_proba_from, condition_on_label

NOISY = np.array([[0.8, 0.15, 0.05], [0.1, 0.7, 0.2], [0.05, 0.05, 0.9]])
N = 150
quiet = pytest.mark.filterwarnings("ignore::looselabels.exceptions.IdentifiabilityWarning")


@pytest.fixture(autouse=True)
def _small_blocks(monkeypatch):
    """Regroup rows into several blocks, as with large tables."""
    monkeypatch.setattr(blocks_module, "ELEMENTS_PER_BLOCK", 120)
    monkeypatch.setattr(blocks_module, "MIN_BLOCK_ROWS", 8)


@pytest.fixture
def label_proba(rng):
    return rng.dirichlet([1.0, 0.5, 2.0], N)


def in_blocks(array, size):
    """Return the rows as Blocks, with an empty block after every other one."""

    def read():
        for begin in range(0, len(array), size):
            yield array[begin : begin + size]
            yield array[:0]

    return Blocks(read)


def assert_same(found, expected):
    assert found.converged
    assert expected.converged
    assert found.objective[-1] == pytest.approx(expected.objective[-1], rel=1e-10)
    assert_allclose(found.transition, expected.transition, atol=1e-8)
    assert_allclose(found.class_proba.to_array(), expected.class_proba, atol=1e-6)


# ---------------------------------------------------------------------------------------- inference


@pytest.mark.parametrize("size", [1, 7, N, N + 1])
@pytest.mark.parametrize("strength", [None, 10])
def test_blocks_of_any_size_give_the_answer_of_rows_in_memory(label_proba, strength, size):
    options = {"pseudocounts": None if strength is None else strength * NOISY, "tol": 1e-12}
    expected = infer(label_proba, NOISY, **options)
    found = infer(in_blocks(label_proba, size), NOISY, **options)
    assert_same(found, expected)
    assert found.gap.to_array().max() <= 1e-9
    assert len(found.gap.to_array()) == N


@pytest.mark.parametrize("strength", [None, 10])
@pytest.mark.parametrize("prior", [None, [0.2, 0.3, 0.5], [0.4, 0.0, 0.6]])
def test_class_proba_is_written_to_a_file_if_asked_for(rng, label_proba, tmp_path, strength, prior):
    options = {"sample_weight": rng.random(N), "class_prior": prior, "tol": 1e-12}
    options["pseudocounts"] = None if strength is None else strength * NOISY
    expected = infer(label_proba, NOISY, **options)
    found = infer(in_blocks(label_proba, 7), NOISY, out=tmp_path / "classes.npy", **options)
    assert_same(found, expected)
    assert_array_equal(np.load(tmp_path / "classes.npy"), found.class_proba.to_array())
    assert_allclose(found.gap.to_array(), expected.gap, atol=1e-9)


def test_with_a_known_transition_rows_are_solved_and_written_in_one_pass(
    label_proba, tmp_path, monkeypatch
):
    solved = []
    solve = _sources.Rows.solve

    def count(rows, problem):
        solved.append(len(rows.label_proba))
        return solve(rows, problem)

    monkeypatch.setattr(_sources.Rows, "solve", count)
    found = infer(in_blocks(label_proba, 7), NOISY, out=tmp_path / "classes.npy")
    found.class_proba.to_array()
    assert sum(solved) == N


def test_arrays_are_not_written_to_files(label_proba, tmp_path):
    with pytest.raises(TypeError, match=r"only for rows in Blocks; label_proba is ndarray"):
        infer(label_proba, NOISY, out=tmp_path / "classes.npy")


@quiet
@pytest.mark.parametrize("shape", [(2, 4), (4, 2)])
def test_blocks_agree_if_classes_and_labels_differ_in_number(rng, shape):
    transition = rng.dirichlet(np.ones(shape[1]), shape[0])
    label_proba = rng.dirichlet(np.ones(shape[1]), N)
    options = {"pseudocounts": 20 * transition, "tol": 1e-12}
    expected = infer(label_proba, transition, **options)
    found = infer(in_blocks(label_proba, 11), transition, **options)
    assert found.objective[-1] == pytest.approx(expected.objective[-1], rel=1e-10)
    assert_allclose(found.transition, expected.transition, atol=1e-8)


@pytest.mark.parametrize("prior", [[0.2, 0.3, 0.5], [1 / 3] * 3, [0.4, 0.0, 0.6]])
def test_blocks_agree_with_weights_and_a_class_prior(rng, label_proba, prior):
    weight = rng.random(N)
    weight[:40] = 0  # whole blocks without weight
    options = {"pseudocounts": 5 * NOISY, "class_prior": prior, "tol": 1e-12}
    expected = infer(label_proba, NOISY, sample_weight=weight, **options)
    for given in (weight, in_blocks(weight, 13)):
        found = infer(in_blocks(label_proba, 7), NOISY, sample_weight=given, **options)
        assert_same(found, expected)


def test_blocks_agree_with_extreme_weights_and_pseudocounts(label_proba):
    options = {"pseudocounts": 1e200 * NOISY, "tol": 1e-12}
    expected = infer(label_proba, NOISY, **options)
    assert_same(infer(in_blocks(label_proba, 7), NOISY, **options), expected)
    weight = np.linspace(0, 1e150, N)
    expected = infer(label_proba, NOISY, sample_weight=weight)
    found = infer(in_blocks(label_proba, 7), NOISY, sample_weight=weight)
    assert found.objective[-1] == pytest.approx(expected.objective[-1], rel=1e-10)


def test_single_precision_stays_single(label_proba):
    single = label_proba.astype(np.float32)
    found = infer(in_blocks(single, 7), NOISY)
    assert found.class_proba.to_array().dtype == np.float32
    assert_allclose(found.class_proba.to_array(), infer(single, NOISY).class_proba, atol=1e-3)


def test_columns_of_blocks_follow_a_transition_with_names(label_proba):
    named = Transition(NOISY, classes=list("abc"), labels=list("xyz"))
    found = infer(in_blocks(label_proba, 7), named)
    assert_allclose(found.class_proba.to_array(), infer(label_proba, named).class_proba, atol=1e-6)


def test_class_proba_is_solved_block_by_block(label_proba):
    found = class_proba_from(in_blocks(label_proba, 7), NOISY, tol=1e-12)
    assert_allclose(
        found.to_array(), class_proba_from(label_proba, NOISY, tol=1e-12), rtol=0, atol=1e-6
    )


def test_labels_of_blocks_are_used(rng, label_proba):
    label_index = rng.integers(3, size=N)
    expected = condition_on_label(label_proba, NOISY, label_index)
    for given in (label_index, in_blocks(label_index, 10)):
        found = condition_on_label(in_blocks(label_proba, 7), NOISY, given)
        assert_array_equal(found.to_array(), expected)


def test_warnings_count_the_rows_of_all_blocks(label_proba):
    unclear = np.array([[0.5, 0.5, 0.0], [0.5, 0.5, 0.0], [0.0, 0.0, 1.0]])
    with pytest.warns(IdentifiabilityWarning, match=f"{N} of {N} rows"):
        infer(in_blocks(label_proba, 7), unclear)
    never = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
    with pytest.warns(InconsistentLabelWarning, match="No class can have label 2"):
        infer(in_blocks(label_proba, 7), never)


# ------------------------------------------------------------------------------------------- errors


def test_a_generator_is_refused_because_it_can_be_read_only_once(label_proba):
    with pytest.raises(TypeError, match="generator can be read only once"):
        Blocks(block for block in [label_proba])
    with pytest.raises(TypeError, match=r"label_proba is a generator.*Blocks\(function\)"):
        infer((block for block in [label_proba]), NOISY)
    with pytest.raises(TypeError, match="got int"):
        Blocks(3)


def test_an_exhausted_generator_is_an_error(label_proba):
    once = (block for block in [label_proba])
    with pytest.raises(ValueError, match=f"{N} rows in the first loop and 0 in a later"):
        infer(Blocks(lambda: once), NOISY)


def test_fewer_rows_in_a_later_pass_are_an_error(label_proba):
    sizes = iter([N, N - 1])
    with pytest.raises(ValueError, match=f"{N} rows in the first loop and {N - 1} in a later"):
        infer(Blocks(lambda: iter([label_proba[: next(sizes)]])), NOISY)


def test_sources_without_rows_are_an_error():
    for empty in ([], [np.empty((0, 3))]):
        with pytest.raises(ValueError, match="no rows"):
            infer(Blocks(empty), NOISY)


def test_a_bad_row_is_named_with_its_place(label_proba):
    label_proba[93] *= 2
    size = 120 // 3
    with pytest.raises(ValueError, match=rf"row {93 - 2 * size} sums .*from row {2 * size}"):
        infer(in_blocks(label_proba, 7), NOISY)
    with pytest.raises(ValueError, match="3 labels"):
        infer(in_blocks(label_proba[:, :2], 7), NOISY)


def test_sample_weights_that_do_not_fit_are_named(label_proba):
    blocks = in_blocks(label_proba, 7)
    with pytest.raises(ValueError, match="do not match"):
        infer(blocks, NOISY, sample_weight=np.ones(N + 5))
    with pytest.raises(ValueError, match="all are zero"):
        infer(blocks, NOISY, sample_weight=np.zeros(N))
    with pytest.raises(ValueError, match="sample_weight must hold numbers"):
        infer(blocks, NOISY, sample_weight=-np.ones(N))
    with pytest.raises(ValueError, match="sample_weight has a block of shape"):
        infer(blocks, NOISY, sample_weight=np.ones((N, 1)))


def test_blocks_of_different_widths_are_an_error():
    with pytest.raises(ValueError, match="number of columns"):
        infer(Blocks([np.full((2, 3), 1 / 3), np.full((2, 2), 1 / 2)]), NOISY)
    with pytest.raises(ValueError, match="1-D or 2-D"):
        list(Blocks([np.zeros((1, 1, 1))]))


# --------------------------------------------------------------------------------- reading, writing


def test_rows_are_regrouped_in_order():
    found = list(regrouped([np.arange(3), np.arange(0), np.arange(3, 10)], 4))
    assert [list(block) for block in found] == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]


def test_npy_files_are_read_and_written(tmp_path, label_proba):
    in_blocks(label_proba, 7).to_npy(tmp_path / "a.npy")
    assert_array_equal(np.load(tmp_path / "a.npy"), label_proba)
    for source in (
        Blocks.from_npy(tmp_path / "a.npy", block_rows=9),
        Blocks.from_array(np.load(tmp_path / "a.npy", mmap_mode="r")),
    ):
        assert_array_equal(source.to_array(), label_proba)
    in_blocks(label_proba[:, 0], 7).to_npy(tmp_path / "b.npy")
    assert_array_equal(np.load(tmp_path / "b.npy"), label_proba[:, 0])


def test_parquet_files_are_read_and_written(tmp_path, label_proba):
    pytest.importorskip("pyarrow")
    for part, rows in enumerate(np.array_split(label_proba, 3)):
        in_blocks(rows, 7).to_parquet(tmp_path / f"{part}.parquet", columns=list("xyz"))
    assert_array_equal(Blocks.from_parquet(tmp_path).to_array(), label_proba)
    assert_array_equal(Blocks.from_parquet(tmp_path, ["z", "x"]).to_array(), label_proba[:, [2, 0]])
    assert_array_equal(Blocks.from_parquet(tmp_path, "y").to_array(), label_proba[:, 1])
    with pytest.raises(ValueError, match="no column 'w'; its columns are 'x', 'y', 'z'"):
        Blocks.from_parquet(tmp_path, ["w"])
    (folder := tmp_path / "empty").mkdir()
    with pytest.raises(FileNotFoundError, match="no files"):
        Blocks.from_parquet(folder)


def test_a_write_that_fails_leaves_no_file(tmp_path, label_proba):
    def fails():
        yield label_proba
        raise RuntimeError("the disk of the source is gone")

    for write in (Blocks(fails).to_npy, Blocks(fails).to_parquet):
        with pytest.raises(RuntimeError, match="disk"):
            write(tmp_path / "a")
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(ValueError, match="no blocks"):
        Blocks([]).to_npy(tmp_path / "a")


@pytest.mark.slow  # because the extra `bench` has zarr
@pytest.mark.filterwarnings("ignore:::zarr")
def test_zarr_arrays_are_sliced(label_proba):
    zarr = pytest.importorskip("zarr")
    source = Blocks.from_array(zarr.array(label_proba, chunks=(10, 3)))
    assert_array_equal(source.to_array(), label_proba)


# ------------------------------------------------------------------------------------------- memory

PEAK = """
import resource, sys
import numpy as np
from looselabels import infer
from looselabels.blocks import Blocks
from looselabels.inference import condition_on_label

n_rows, folder = int(sys.argv[1]), sys.argv[2]
transition = 0.7 * np.eye(10) + 0.03

def label_proba():
    rng = np.random.default_rng(0)
    for _ in range(0, n_rows, 10_000):
        yield rng.dirichlet(np.ones(10), 10_000) @ transition

infer(Blocks(label_proba), transition, pseudocounts=transition, max_iter=2)
found = infer(Blocks(label_proba), transition)
found.class_proba.to_npy(folder + "/a.npy")
given = condition_on_label(
    Blocks.from_npy(folder + "/a.npy"), transition, np.zeros(n_rows, np.int8)
)
given.to_parquet(folder + "/w.parquet")
status = open("/proc/self/status").read()
print(status.split("VmHWM:")[1].split()[0])
"""


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads the peak from /proc")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_memory_does_not_grow_with_rows(tmp_path):
    peaks = []
    for n_rows in (400_000, 1_600_000):
        command = [sys.executable, "-W", "ignore", "-c", PEAK, str(n_rows), str(tmp_path)]
        peaks.append(
            int(subprocess.run(command, capture_output=True, check=True, text=True).stdout)
        )
    assert peaks[1] - peaks[0] < 50 * 1024  # kilobytes; class_proba alone grows by 94,000
