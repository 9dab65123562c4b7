"""What SECURITY.md promises: nothing is unpickled, and nothing calls the network."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import looselabels
from tests.test_layers import imported_modules, source_files

RUNS_CODE = {"pickle", "cPickle", "dill", "cloudpickle", "marshal", "shelve", "joblib.load"}
NETWORK = {"socket", "ssl", "urllib", "http", "requests", "ftplib", "smtplib", "asyncio"}
# Python reports what it does to audit hooks; a hook that raises stops it. The pickled cache of
# compiled code is numba's, not a file of ours. scikit-learn imports dask if it is installed, which
# then pickles functions of its own in memory.
WATCHED = """
import os
import sys
seen = []
def refuse(event, arguments):
    if not event.startswith(FORBIDDEN):
        return
    by = sys._getframe(1).f_code.co_filename
    if "numba" not in by and f"{os.sep}dask{os.sep}" not in by:
        seen.append(event)
        raise PermissionError(f"{event} {arguments}")
sys.addaudithook(refuse)
"""
EVERYTHING = """
import numpy as np
from looselabels import DecoupledClassifier, audit, diagnose, infer, load, save
from looselabels.command.cli import run

rng = np.random.default_rng(0)
X = rng.normal(size=(60, 2)) + 4 * (np.arange(60) % 2)[:, None]
y = np.where(rng.random(60) < 0.7, np.array(["cat", "dog"], object)[np.arange(60) % 2], None)
clf = DecoupledClassifier(noise="estimate", random_state=0).fit(X, y)
print(audit(clf, y).summary()["wrong"])
diagnose(clf, y)
save(clf, "model")
assert (load("model").predict_proba(X) == clf.predict_proba(X)).all()
lines = [f"{a:.3f},{b:.3f},{label or ''}" for (a, b), label in zip(X, y)]
open("data.csv", "w").write("\\n".join(["size,weight,kind", *lines]) + "\\n")
assert run(["audit", "data.csv", "--label", "kind", "-o", "results"]) == 0
assert run(["predict", "results/model", "data.csv", "-o", "classes.csv"]) == 0
"""


def run_watched(code, forbidden, folder):
    """Run code in a new process in which events that start with `forbidden` are errors."""
    code = f"FORBIDDEN = {forbidden!r}\n{WATCHED}\n{code}\nassert not seen, seen\nprint('done')"
    return subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code], cwd=folder, capture_output=True, text=True
    )


@pytest.mark.slow
def test_fits_audits_commands_and_models_use_neither_the_network_nor_pickle(tmp_path):
    pytest.importorskip("skops")
    pytest.importorskip("pandas")
    done = run_watched(EVERYTHING, ("socket.", "pickle.find_class", "urllib."), tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("done\n")


@pytest.mark.parametrize(
    ("code", "event"),
    [
        ("import socket; socket.create_connection(('127.0.0.1', 9))", "socket."),
        ("import pickle, pathlib; pickle.loads(pickle.dumps(pathlib.Path))", "pickle.find_class"),
    ],
)
def test_the_watch_notices_what_it_should(code, event, tmp_path):
    done = run_watched(code, (event,), tmp_path)
    assert done.returncode == 1
    assert f"PermissionError: {event}" in done.stderr


def test_no_source_imports_what_can_run_code_from_a_file_or_call_the_network():
    for path in source_files():
        for name in imported_modules(path):
            assert not {name, name.split(".")[0]} & (RUNS_CODE | NETWORK), path


def test_arrays_are_read_without_pickle():
    calls = [
        node
        for path in Path(looselabels.__file__).parent.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and ast.unparse(node.func) in ("np.load", "numpy.load")
    ]
    assert calls
    for call in calls:
        given = {keyword.arg: ast.unparse(keyword.value) for keyword in call.keywords}
        assert given.get("allow_pickle") == "False"
