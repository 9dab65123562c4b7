"""What the tests of the command share: tables, calls of the command, and contents of folders."""

import io
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from looselabels.command.cli import run
from looselabels.command.features import Features
from looselabels.command.fitting import fit
from looselabels.command.identity import identify
from looselabels.command.labels import Labels, read_labels
from looselabels.command.tables import read_table

pd = pytest.importorskip("pandas")
pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")
pytest.importorskip("skops")
pytest.importorskip("jinja2")

QUICK = ("--model", "kernel", "--noise", "0.1", "--no-refit")
WRITTEN = ["labels.csv", "model", "report.html", "summary.json", "transition.json"]
HOSTILE_TEXT = [
    *("a\nb", "a\r\nb", "cr\rcr", 'say "hi"', '"', "a,b", " padded ", "\t", "é", "🦆", "\u202eRTL"),
    *("=cmd|' /C calc'!A0", "NA", "null", "nan", "None", "01", "1", "1.50", "-1", "\ufeffbom", "'"),
    *("</script>", "\x1b[31m", "x" * 200_000, None),
]


def animals(n_rows=80, names=("cat", "dog"), unlabeled=0.1, wrong=0.05):
    """Return a table whose columns `size` and `weight` determine the class of each row."""
    rng = np.random.default_rng(0)
    classes = np.arange(n_rows) % len(names)
    given = np.where(rng.random(n_rows) < wrong, (classes + 1) % len(names), classes)
    labels = [None if rng.random() < unlabeled else names[k] for k in given]
    numbers = {"size": rng.normal(6 * classes, 1), "weight": rng.normal(-4 * classes, 1)}
    frame = pd.DataFrame(numbers).round(3)
    return frame.assign(species=pd.Series(labels, dtype=object))


CSV = animals().to_csv(index=False)


def fitted_animals(frame=None, **options):
    """Return a table, its labels, and a kernel classifier; `options` are those of `Labels`."""
    frame = animals(60) if frame is None else frame
    labels = Labels("species", **{"noise": 0.1, **options})
    features, X = Features.fit_transform(frame, label="species", impute=True)
    y = read_labels(frame, labels)
    clf = fit(X, y, labels, model="kernel", refit=False)
    return SimpleNamespace(frame=frame, labels=labels, features=features, X=X, y=y, clf=clf)


def called(*arguments):
    """Run the command and return its exit code and its output."""
    out, err = io.TextIOWrapper(io.BytesIO(), encoding="utf-8"), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = run([str(word) for word in arguments])
    out.flush()
    return SimpleNamespace(code=code, out=out.buffer.getvalue().decode(), err=err.getvalue())


def written_pets(frame=None, name="data.csv"):
    """Write a table of 40 named animals, one of them unlabeled, and read it again."""
    if frame is None:
        frame = animals(40, unlabeled=0).assign(name=[f"pet {k}" for k in range(40)])
        frame.loc[7, "species"] = None
    frame.to_csv(name, index=False)
    return read_table(name)


def write_decisions(frame, *rows, column="name", name="decisions.csv", **changes):
    """Write decisions, each (row, decision, class); `changes` replace columns of the file."""
    identity = identify(frame, column, label="species")
    positions = [row for row, *_ in rows]
    labels = frame["species"].astype(object).where(frame["species"].notna(), None)
    content = {
        "id": [identity.ids[row] for row in positions],
        "label": [labels[row] for row in positions],
        "suggestion": "cat",
        "doubt": 0.75,
        "decision": [word for _, word, _ in rows],
        "class": [of_class for *_, of_class in rows],
        "hash": identity.hashes(positions),
    }
    pd.DataFrame(content).assign(**changes).to_csv(name, index=False)
    return name


def files(folder="."):
    return sorted(path.name for path in Path(folder).iterdir())


def read_csv(path):
    return pd.read_csv(path, dtype=str, keep_default_na=False)


def cells(frame):
    """Return a frame as lists, a missing cell as None."""
    return frame.astype(object).where(frame.notna(), None).to_numpy().tolist()


def small_model(folder):
    """Fit a model of cats and dogs, some of them unlabeled, and return its folder."""
    (folder / "animals.csv").write_text(CSV)
    words = ("fit", folder / "animals.csv", "--label", "species", *QUICK, "-o", folder / "model")
    assert called(*words).code == 0
    return folder / "model"


def modules_loaded_by(module):
    """Return the top-level modules that a new process has loaded after importing `module`."""
    code = f"import sys, {module}\nprint(*sorted({{m.split('.')[0] for m in sys.modules}}))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    return set(done.stdout.split())
