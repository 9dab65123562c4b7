"""What tests of the command share: a table, a call, and what is in a folder."""

import io
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from looselabels.command.cli import run

pd = pytest.importorskip("pandas")
pytest.importorskip("pyarrow")
pytest.importorskip("skops")
pytest.importorskip("jinja2")

QUICK = ("--model", "kernel", "--noise", "0.1")
WRITTEN = ["labels.csv", "model", "report.html", "summary.json", "transition.json"]


def animals(n_rows=80, names=("cat", "dog"), unlabeled=0.1, wrong=0.05):
    """Return a table whose classes can be told from `size` and `weight`."""
    rng = np.random.default_rng(0)
    classes = np.arange(n_rows) % len(names)
    given = np.where(rng.random(n_rows) < wrong, (classes + 1) % len(names), classes)
    labels = [None if rng.random() < unlabeled else names[k] for k in given]
    numbers = {"size": rng.normal(6 * classes, 1), "weight": rng.normal(-4 * classes, 1)}
    frame = pd.DataFrame(numbers).round(3)
    return frame.assign(species=pd.Series(labels, dtype=object))


CSV = animals().to_csv(index=False)


def called(*arguments):
    """Run the command and return its exit code and what it wrote."""
    out, err = io.TextIOWrapper(io.BytesIO(), encoding="utf-8"), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = run([str(word) for word in arguments])
    out.flush()
    return SimpleNamespace(code=code, out=out.buffer.getvalue().decode(), err=err.getvalue())


def files(folder="."):
    return sorted(path.name for path in Path(folder).iterdir())


def read_csv(path):
    return pd.read_csv(path, dtype=str, keep_default_na=False)


def small_model(folder):
    """Fit a model of cats and dogs, some of them unlabeled, and return where it is."""
    (folder / "animals.csv").write_text(CSV)
    words = ("fit", folder / "animals.csv", "--label", "species", *QUICK, "-o", folder / "model")
    assert called(*words).code == 0
    return folder / "model"
