"""The compiled row solver: a numba that fails costs time, but no result."""

import subprocess
import sys

import numpy as np
import pytest
from numpy.testing import assert_allclose

from looselabels import _blocks, _compiled, _rows, infer

pytest.importorskip("numba", reason="the extra `speed` is not installed")

NOISY = np.array([[0.8, 0.2, 0.0], [0.1, 0.7, 0.2], [0.1, 0.0, 0.9]])
DAMAGED = """
import warnings
from pathlib import Path
import numpy as np
from looselabels import _rows_numba, infer
for kernel in (_rows_numba._evaluate_rows, _rows_numba._ascend_rows):
    index = Path(kernel._cache._cache_file._index_path)
    index.parent.mkdir(parents=True, exist_ok=True)
    index.write_bytes(b"damaged")
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    for _ in range(2):
        infer(np.full((3000, 2), 0.5), np.eye(2))
print(*(warning.message for warning in caught), sep="\\n")
"""


@pytest.fixture(autouse=True)
def numba_works(monkeypatch):
    """Let each test begin without an error of numba."""
    monkeypatch.setattr(_compiled, "ERRORS", [])


@pytest.mark.parametrize(
    "error",
    [OSError(28, "No space left on device"), RuntimeError("cannot cache function: no locator")],
)
def test_rows_are_solved_without_numba_if_it_fails(error, rng, monkeypatch):
    labels, calls = rng.dirichlet(np.ones(3), 5000), []
    expected = infer(labels, NOISY)

    def fail(name):
        calls.append(name)
        raise error

    monkeypatch.setattr(_compiled, "import_module", fail)
    with pytest.warns(RuntimeWarning, match=r"numba failed \(.*NUMBA_CACHE_DIR") as caught:
        found = infer(labels, NOISY)
    assert len(caught) == len(calls) == 1
    assert_allclose(found.class_proba, expected.class_proba, atol=1e-6)
    infer(labels, NOISY)  # without a second warning, which would be an error here
    assert _blocks._row_solver(labels) is _rows


def test_a_lack_of_memory_is_not_an_error_of_numba(monkeypatch):
    def fail(name):
        raise MemoryError

    monkeypatch.setattr(_compiled, "import_module", fail)
    with pytest.raises(MemoryError):
        infer(np.full((9, 3), 1 / 3), NOISY)
    assert not _compiled.ERRORS


def test_a_damaged_cache_is_one_warning(tmp_path, monkeypatch):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    words = [sys.executable, "-c", DAMAGED]
    done = subprocess.run(words, capture_output=True, check=True, text=True, timeout=120)
    assert done.stdout.startswith("numba failed (UnpicklingError")
    assert done.stdout.count("\n") == 1
