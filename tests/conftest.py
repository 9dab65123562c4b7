"""What several test files share: seeds that a variable can widen, and array libraries."""

import os
import signal

import numpy as np
import pytest

# A shell that starts the tests in the background lets them, and all that they start, ignore Ctrl-C.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_generate_tests(metafunc):
    """Seeds are fixed; LOOSELABELS_TEST_SEEDS=20 runs each seeded test on twenty of them."""
    if "seed" in metafunc.fixturenames:
        metafunc.parametrize("seed", range(int(os.environ.get("LOOSELABELS_TEST_SEEDS", "2"))))


@pytest.fixture(autouse=True)
def _same_chance_every_time():
    """Where a test passes no random_state scikit-learn draws from NumPy's global generator."""
    np.random.seed(0)  # noqa: NPY002 - the global one is meant


@pytest.fixture
def rng(seed):
    return np.random.default_rng(seed)


@pytest.fixture(params=["numpy", "array_api_strict", "torch"])
def xp(request):
    """An array library that follows the array API."""
    return pytest.importorskip(request.param, reason=f"{request.param} is not installed")
