"""Check the wheel and the sdist in dist/, and try them in empty environments: `make package`.

Users get these files and not the clone. A template that is missing in the wheel, for example, is
still next to the sources here, so that no other test would notice it.
"""

import argparse
import os
import re
import subprocess
import tarfile
import tempfile
import zipfile
from email.parser import BytesParser
from pathlib import Path

ROOT = Path(__file__).parent.parent

# Needs no extra.
FIT_AND_AUDIT = """
import csv

from sklearn.datasets import load_iris
from looselabels import DecoupledClassifier, audit

X, y = load_iris(return_X_y=True)
labels = y.copy()
labels[::15] = (y[::15] + 1) % 3
clf = DecoupledClassifier(noise="estimate", refit=False, random_state=0).fit(X, labels)
n_doubtful = (audit(clf, labels).doubt > 0.5).sum()
print(f"fit: {clf.score(X, y):.0%} right; audit: {n_doubtful} labels are doubtful, 10 are wrong")
assert clf.score(X, y) > 0.9
assert 5 <= n_doubtful <= 15
with open("iris.csv", "w", newline="") as file:
    csv.writer(file).writerow([*"abcd", "species"])
    csv.writer(file).writerows([*row, f"iris {label}"] for row, label in zip(X, labels))
"""

# Tests of the mathematics, of templates, and of files that only the sdist has.
SDIST_TESTS = [
    "tests/auditing/report",
    "tests/test_cuda.py",
    "tests/test_experiments.py",
    "tests/test_public_api.py",
    "tests/test_reliability.py",
    "tests/test_transition.py",
]


def check_contents(wheel, sdist):
    """Compare the names in both files with those in git: nothing is missing or added."""
    listing = subprocess.check_output(["git", "ls-files"], cwd=ROOT, text=True)
    tracked = {name for name in listing.splitlines() if (ROOT / name).is_file()}
    sources = {name.removeprefix("src/") for name in tracked if name.startswith("src/")}
    with zipfile.ZipFile(wheel) as archive:
        packed = {name for name in archive.namelist() if ".dist-info/" not in name}
    assert packed == sources, f"{wheel.name} differs from src/: {sorted(packed ^ sources)}"
    with tarfile.open(sdist) as archive:
        packed = {name.partition("/")[2] for name in archive.getnames()} - {"PKG-INFO"}
    assert packed == tracked, f"{sdist.name} differs from git: {sorted(packed ^ tracked)}"


def check_description(wheel):
    """Check that the text on the package index has no link that works only in a clone."""
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        description = BytesParser().parsebytes(archive.read(name)).get_payload()
    assert description.startswith("# looselabels"), f"{wheel.name} has no description"
    links = [link for link in re.findall(r"\]\(([^)]*)\)", description) if "://" not in link]
    assert not links, f"links in the README that break on the package index: {links}"


class Environment:
    """An empty environment in `folder`, whose programs run in the folder `at`."""

    def __init__(self, folder, python, at):
        subprocess.run([python, "-m", "venv", folder], check=True)
        self.bin, self.at = Path(folder, "bin"), at

    def __call__(self, program, *arguments):
        """Run a program; the clone must not be on its path."""
        environ = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        subprocess.run([self.bin / program, *arguments], cwd=self.at, env=environ, check=True)

    def install(self, what):
        """Install a package, or one with its extras."""
        self("python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", what)


def try_wheel(wheel, folder, python):
    """Fit and audit without extras; then audit a table by the command, with the extra `cli`."""
    run = Environment(folder / "venv", python, at=folder)
    run.install(str(wheel))
    run("python", "-c", FIT_AND_AUDIT)
    run.install(f"{wheel}[cli]")
    run("looselabels", "--version")
    run("looselabels", "audit", "iris.csv", "--label", "species", "-o", "audit")
    run("looselabels", "predict", "audit/model", "iris.csv", "-o", "predicted.csv")
    written = [folder / "audit" / "report.html", folder / "predicted.csv"]
    assert all(path.stat().st_size > 1000 for path in written)


def try_sdist(sdist, folder, python):
    """Run a part of the tests in the unpacked sdist, with the package that is built from it."""
    with tarfile.open(sdist) as archive:
        archive.extractall(folder, filter="data")
    (unpacked,) = folder.iterdir()
    run = Environment(folder / "venv", python, at=unpacked)
    run.install(f"{unpacked}[test]")
    run("python", "-m", "pytest", "-q", *SDIST_TESTS)


def main():
    """Check the wheel and the sdist, install each into an empty environment, and use it."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--dist", type=Path, default=ROOT / "dist", help="default: dist/")
    parser.add_argument("--python", default="python3", help="of the environments")
    options = parser.parse_args()
    (wheel,) = options.dist.resolve().glob("*.whl")
    (sdist,) = options.dist.resolve().glob("*.tar.gz")
    check_contents(wheel, sdist)
    check_description(wheel)
    for attempt, file in [(try_wheel, wheel), (try_sdist, sdist)]:
        with tempfile.TemporaryDirectory() as folder:
            attempt(file, Path(folder), options.python)
        print(f"{file.name}: installed into an empty environment, and works")


if __name__ == "__main__":
    main()
