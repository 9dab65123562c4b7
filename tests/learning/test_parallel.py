"""Work in parallel: results in order, whatever joblib and the operating system do."""

import os
import signal
from pathlib import Path

import joblib
import numpy as np
import pytest
from joblib.externals.loky.process_executor import TerminatedWorkerError
from numpy.testing import assert_array_equal
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB

from looselabels import DecoupledClassifier
from looselabels.learning import parallel
from looselabels.learning.parallel import in_order

RNG = np.random.default_rng(0)
INDEX = np.arange(60) % 2
X = RNG.standard_normal((60, 2)) + 2 * INDEX[:, None]


def square(x):
    return x * x


def test_results_are_in_order_and_none_is_lost():
    assert list(in_order(square, [(x,) for x in range(9)], 3, prefer="threads")) == [
        x * x for x in range(9)
    ]
    assert list(in_order(square, [])) == []


@pytest.mark.parametrize("backend", ["multiprocessing", "threading"])
@pytest.mark.parametrize("estimator", [None, LogisticRegression()])
def test_every_backend_gives_the_same_result(backend, estimator):
    clf = DecoupledClassifier(estimator, refit=estimator is not None, random_state=0)
    expected = clf.fit(X, INDEX).predict_proba(X)
    with joblib.parallel_config(backend=backend, n_jobs=2):
        assert_array_equal(clf.fit(X, INDEX).predict_proba(X), expected)


class Killer:
    """Stands for joblib's Parallel, whose worker is killed after each result a few times."""

    def __init__(self, kills):
        self.kills, self.asked = kills, []

    def __call__(self, n_jobs, prefer):
        self.asked.append(n_jobs)
        return self.run

    def run(self, tasks):
        for k, (function, args, _) in enumerate(tasks):
            if k == 1 and self.kills:
                self.kills -= 1
                raise TerminatedWorkerError("killed")
            yield function(*args)


def test_after_a_killed_worker_the_rest_is_done_by_half_as_many(monkeypatch):
    killer = Killer(1)
    monkeypatch.setattr(parallel, "_parallel", killer)
    with pytest.warns(UserWarning, match=r"killed, .* going on with n_jobs=2 instead of 4"):
        assert list(in_order(square, [(1,), (2,), (3,)], 4)) == [1, 4, 9]
    assert killer.asked == [4, 2]


def test_a_second_killed_worker_is_an_error_that_says_what_to_do(monkeypatch):
    monkeypatch.setattr(parallel, "_parallel", Killer(2))
    results = in_order(square, [(1,), (2,), (3,)], 4)
    with (
        pytest.warns(UserWarning, match="n_jobs=2 instead of 4"),
        pytest.raises(MemoryError, match=r"a worker process was killed again.*use n_jobs=1"),
    ):
        list(results)


class Fragile(GaussianNB):
    """Kills the process that fits it, unless that is the test or a file says it happened before."""

    def __init__(self, file=None, parent=None):
        super().__init__()
        self.file, self.parent = file, parent

    def fit(self, X, y, sample_weight=None):
        if os.getpid() != self.parent and not Path(self.file).exists():
            Path(self.file).touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return super().fit(X, y, sample_weight)


@pytest.mark.slow
def test_a_fit_whose_worker_was_killed_ends_with_the_same_result(tmp_path):
    fragile = Fragile(str(tmp_path / "killed"), os.getpid())
    clf = DecoupledClassifier(fragile, cv=3, refit=False, n_jobs=2, random_state=0)
    with pytest.warns(UserWarning, match="going on with n_jobs=1 instead of 2"):
        found = clf.fit(X, INDEX).class_proba_
    plain = DecoupledClassifier(GaussianNB(), cv=3, refit=False, random_state=0)
    expected = plain.fit(X, INDEX).class_proba_
    assert_array_equal(found, expected)
