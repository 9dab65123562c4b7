"""The CUDA kernels: their arithmetic on the CPU with a C++ compiler, and whole passes on a GPU."""

import ctypes
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from types import SimpleNamespace

import numpy as np
import pytest

from looselabels import _cuda, infer
from looselabels._blocks import row_problem, solve_block
from looselabels.exceptions import IdentifiabilityWarning

COMPILER = shutil.which("g++") or shutil.which("clang++")
needs_compiler = pytest.mark.skipif(COMPILER is None, reason="needs a C++ compiler")
# Solves rows one after the other with the functions that the kernels call.
LOOP = """
extern "C" void solve(const double *shared, const REAL *labels, const REAL *start, long n_rows,
                      int dual, double *proba, double *gaps, bool *settled) {
    problem = *reinterpret_cast<const Problem *>(shared);
    double columns[K * L];
    for (int i = 0; i < K * L; ++i) columns[i] = problem.inverse[(i % L) * K + i / L];
    for (long i = 0; i < n_rows; ++i) {
        Row row;
        const REAL *from = start ? start + i * K : nullptr;
        settled[i] = dual ? solve_row<true>(labels + i * L, from, columns, row)
                          : solve_row<false>(labels + i * L, from, columns, row);
        for (int k = 0; k < K; ++k) proba[i * K + k] = row.point[k];
        gaps[i] = row.gap;
    }
}
"""
CUDA_WORDS = ("-D__device__=", "-D__constant__=static", "-D__noinline__=", "-Wno-unknown-pragmas")


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    """Return a function that solves rows with the code of the kernels, compiled for the CPU."""
    folder = tmp_path_factory.mktemp("cuda")

    @cache
    def build(n_classes, n_labels):
        path = folder / f"rows_{n_classes}_{n_labels}.cpp"
        path.write_text(_cuda.source() + LOOP)
        library = path.with_suffix(".so")
        options = (*_cuda.options_for(n_classes, n_labels, "double"), *CUDA_WORDS)
        command = (COMPILER, "-O1", "-shared", "-fPIC", "-include", "math.h", *options)
        subprocess.run((*command, str(path), "-o", str(library)), check=True)
        return ctypes.CDLL(str(library)).solve

    def solve(label_proba, problem, dual, start=None):
        n_classes, n_labels = problem.transition.shape
        proba = np.empty((len(label_proba), n_classes))
        gap, settled = np.empty(len(label_proba)), np.empty(len(label_proba), dtype=bool)
        arrays = (_cuda.pack(problem), np.ascontiguousarray(label_proba), start)
        pointers = (None if a is None else ctypes.c_void_p(a.ctypes.data) for a in arrays)
        results = (ctypes.c_void_p(a.ctypes.data) for a in (proba, gap, settled))
        build(n_classes, n_labels)(*pointers, ctypes.c_long(len(gap)), int(dual), *results)
        return proba, gap, settled

    return solve


def rows_of(transition, n_rows=300, zeros=0.0, seed=0):
    rng = np.random.default_rng(seed)
    class_proba = rng.dirichlet(np.full(len(transition), 0.5), n_rows)
    label_proba = class_proba @ transition * np.exp(0.3 * rng.standard_normal(transition.shape[1]))
    label_proba = label_proba * np.exp(0.1 * rng.standard_normal(label_proba.shape))
    label_proba[rng.random(label_proba.shape) < zeros] = 0.0
    label_proba[label_proba.sum(axis=1) == 0, 0] = 1.0
    return label_proba / label_proba.sum(axis=1, keepdims=True)


def noisy(n_classes, seed=1):
    rng = np.random.default_rng(seed)
    return 0.7 * np.eye(n_classes) + 0.3 * rng.dirichlet(np.ones(n_classes), n_classes)


def wide():
    return np.random.default_rng(2).dirichlet(np.ones(7), 4)


@needs_compiler
@pytest.mark.parametrize("dual", [True, False])
def test_the_kernels_find_the_optima_of_the_row_solver(compiled, dual):
    problem = row_problem(noisy(6), None, 1e-9)
    label_proba = rows_of(problem.transition)
    expected = solve_block(label_proba, None, None, problem)
    proba, gap, settled = compiled(label_proba, problem, dual)
    assert (settled.mean() if dual else settled.all()) > 0.99
    assert gap[settled].max() <= 1e-10
    np.testing.assert_allclose(proba[settled], expected.class_proba[settled], atol=1e-6)
    assert (expected.class_proba[settled] == 0).any(axis=1).mean() > 0.2  # not only inner optima


@needs_compiler
@pytest.mark.parametrize("prior", [None, np.array([0.4, 0.3, 0.2, 0.1])])
def test_the_ascent_accepts_any_shape_zeros_and_a_prior(compiled, prior):
    problem = row_problem(wide(), prior, 1e-9)
    label_proba = rows_of(problem.transition, zeros=0.2)
    expected = solve_block(label_proba, None, None, problem)
    proba, gap, settled = compiled(label_proba, problem, dual=False)
    assert settled.mean() > 0.9
    assert gap[settled].max() <= 1e-10
    np.testing.assert_allclose(proba[settled], expected.class_proba[settled], atol=1e-5)


@needs_compiler
def test_a_pass_continues_from_the_class_proba_of_the_last_one(compiled):
    problem = row_problem(noisy(6), None, 1e-9)
    label_proba = rows_of(problem.transition)
    proba, _, _ = compiled(label_proba, problem, dual=True)
    moved = row_problem(0.99 * noisy(6) + 0.01 / 6, None, 1e-9)
    expected = solve_block(label_proba, None, None, moved)
    again, _, settled = compiled(label_proba, moved, dual=True, start=proba)
    assert settled.mean() > 0.99
    np.testing.assert_allclose(again[settled], expected.class_proba[settled], atol=1e-6)


@needs_compiler
def test_rows_with_several_optima_are_left(compiled):
    transition = np.array([[0.1, 0.0, 0.9], [0.0, 0.2, 0.8], [0.0, 0.0, 1.0]])
    problem = row_problem(transition, None, 1e-9)
    label_proba = np.array([[0.0, 0.0, 1.0], [0.05, 0.05, 0.9]])
    assert compiled(label_proba, problem, dual=False)[2].tolist() == [True, True]
    equal = row_problem(np.array([[0.5, 0.5, 0.0], [0.5, 0.5, 0.0], [0.0, 0.0, 1.0]]), None, 1e-9)
    assert compiled(label_proba, equal, dual=False)[2].tolist() == [True, False]


def test_only_square_invertible_transitions_use_the_dual():
    assert _cuda.kernels_for(row_problem(noisy(4), None, 1e-9)) == ("dual_rows", "ascend_rows")
    prior = np.array([0.4, 0.3, 0.2, 0.1])
    assert _cuda.kernels_for(row_problem(noisy(4), prior, 1e-9)) == ("ascend_rows",)
    assert _cuda.kernels_for(row_problem(wide(), None, 1e-9)) == ("ascend_rows",)


def test_a_kernel_sees_the_problem_of_its_thread(monkeypatch):
    """A module has one variable `problem`; a kernel reads it some time after its launch."""
    shared = np.zeros(0)

    def copy_from_host(pointer, n_bytes):
        nonlocal shared
        shared = np.ctypeslib.as_array((ctypes.c_double * (n_bytes // 8)).from_address(pointer))
        shared = shared.copy()

    class Labels(np.ndarray):
        device = SimpleNamespace(attributes={"MultiProcessorCount": 1})

    def to_numpy(sums):  # waits for the kernel
        time.sleep(0.002)
        return np.append(shared[:4], np.zeros(4))

    variable = SimpleNamespace(copy_from_host=copy_from_host)
    module = SimpleNamespace(
        get_global=lambda name: variable,
        get_function=lambda name: lambda *launch: time.sleep(0.002),
    )
    cupy = SimpleNamespace(
        empty=np.zeros, asnumpy=to_numpy, ndarray=np.ndarray, from_dlpack=lambda array: array
    )
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    monkeypatch.setattr(_cuda, "_module", lambda *sizes: module)
    rows = SimpleNamespace(
        labels=np.zeros((10, 2)).view(Labels), solved=False, sample_weight=None, left=None
    )

    def solve(noise):
        transition = np.array([[1 - noise, noise], [noise, 1 - noise]])
        problem = row_problem(transition, None, 1e-9)
        sums, _ = _cuda.CudaRows._run(rows, "dual_rows", problem, None, None, None)
        return abs(sums.label_mass - transition).max()

    with ThreadPoolExecutor(4) as pool:
        assert max(pool.map(solve, np.linspace(0.1, 0.4, 20))) == 0


def test_numpy_arrays_do_not_use_the_gpu():
    assert not _cuda.has_kernel(np.ones((2, 2)), 2)


# --------------------------------------------------------------------------------- on a real GPU


def gpu(library):
    """Return the function that moves an array to the GPU; skip without library or GPU."""
    module = pytest.importorskip(library)
    present = module.cuda.is_available() if library == "torch" else has_device(module)
    if not present:
        pytest.skip(f"{library} sees no GPU")
    return (lambda a: module.asarray(a, device="cuda")) if library == "torch" else module.asarray


def has_device(cupy):
    try:
        return cupy.cuda.runtime.getDeviceCount() > 0
    except cupy.cuda.runtime.CUDARuntimeError:
        return False


def to_numpy(array):
    return array.cpu().numpy() if hasattr(array, "cpu") else array.get()


PROBLEMS = {
    "invertible": (noisy(10), 0.0),
    "two classes": (noisy(2), 0.0),
    "32 classes": (noisy(32), 0.0),
    "more labels than classes": (wide(), 0.0),
    "more classes than labels": (wide().T / wide().sum(axis=0)[:, None], 0.0),
    "zeros": (noisy(8), 0.3),
    "rare labels": (0.03 * np.eye(6) + 0.97 * np.eye(6)[-1], 0.2),
}


@pytest.mark.gpu
@pytest.mark.parametrize("library", ["cupy", "torch"])
@pytest.mark.parametrize("joint", [False, True])
@pytest.mark.parametrize("name", PROBLEMS)
@pytest.mark.filterwarnings("ignore::looselabels.exceptions.IdentifiabilityWarning")
def test_the_gpu_gives_the_answer_of_the_cpu(library, joint, name):
    move = gpu(library)
    transition, zeros = PROBLEMS[name]
    label_proba = rows_of(transition, n_rows=3000, zeros=zeros)
    weight = np.random.default_rng(3).integers(0, 3, len(label_proba)).astype(float)
    counts = 50 * transition if joint else None
    options = {"pseudocounts": counts, "tol": 1e-12}
    expected = infer(label_proba, transition, sample_weight=weight, **options)
    found = infer(move(label_proba), transition, sample_weight=move(weight), **options)
    assert found.converged
    assert found.objective[-1] == pytest.approx(expected.objective[-1], rel=1e-10)
    np.testing.assert_allclose(to_numpy(found.transition), expected.transition, atol=1e-8)
    # With more classes than labels, class_proba follows the last digits of the transition.
    atol = 1e-6 if len(transition) <= transition.shape[1] else 1e-4
    np.testing.assert_allclose(to_numpy(found.class_proba), expected.class_proba, atol=atol)


@pytest.mark.gpu
@pytest.mark.parametrize("library", ["cupy", "torch"])
def test_float32_on_the_gpu_is_close_to_float64(library):
    move = gpu(library)
    transition = noisy(10)
    label_proba = rows_of(transition, n_rows=20_000)
    options = {"pseudocounts": 50 * transition, "tol": 1e-9}
    expected = infer(label_proba, transition, **options)
    found = infer(move(label_proba.astype(np.float32)), transition, **options)
    assert found.objective[-1] == pytest.approx(expected.objective[-1], rel=1e-6)
    np.testing.assert_allclose(to_numpy(found.class_proba), expected.class_proba, atol=1e-3)


@pytest.mark.gpu
def test_rows_with_several_optima_get_the_one_closest_to_the_prior_on_the_gpu():
    move = gpu("cupy")
    transition = np.array([[0.5, 0.5, 0.0], [0.5, 0.5, 0.0], [0.0, 0.0, 1.0]])
    with pytest.warns(IdentifiabilityWarning, match="2 of 2 rows"):
        found = infer(move(np.array([[0.2, 0.2, 0.6], [0.5, 0.5, 0.0]])), transition)
    expected = [[0.2, 0.2, 0.6], [0.5, 0.5, 0.0]]
    np.testing.assert_allclose(to_numpy(found.class_proba), expected, atol=1e-9)
