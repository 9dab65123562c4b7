"""Run the code blocks of a page of the documentation, from top to bottom, in one folder.

Blocks of Python are doctests that share their names. Blocks of shell run each `looselabels` command
and compare what a block of `console` shows. A JSON block is a design file.
"""

import doctest
import json
import re
import shlex
import shutil
from pathlib import Path

import numpy as np

from looselabels.command.cli import run

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
BLOCK = re.compile(r"^ *(```+)([^\n]*)\n(.*?)^ *\1 *$", re.MULTILINE | re.DOTALL)
FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
NOT_RUN = ("pip ", "make ", "python ", "git ", "cd ", "#")  # words at the start of other commands


def find_pages():
    """Return the README and all pages of docs/ that people write."""
    made = (DOCS / "gallery", DOCS / "_generated")
    found = [page for page in sorted(DOCS.rglob("*.md")) if not set(page.parents) & set(made)]
    return [ROOT / "README.md", *found]


def blocks(page):
    """Return the line, the language and the code of each block."""
    text = page.read_text(encoding="utf-8")
    for match in BLOCK.finditer(text):
        yield text[: match.start()].count("\n") + 2, match[2].strip(), match[3]


def run_page(page, capsys):
    """Run all blocks of a page; the current folder has the files that the pages name."""
    names = {"__name__": "__main__"}
    for line, language, code in blocks(page):
        if language == "python":
            _run_python(code, names, page, line)
        elif language == "json":
            _show_design(code)
        elif language in ("", "sh", "console"):
            _run_shell(code, language, capsys, f"{page.name}, line {line}")


def _run_python(code, names, page, line):
    if ">>>" not in code:
        exec(compile("\n" * (line - 1) + code, str(page), "exec"), names)
        return
    test = doctest.DocTestParser().get_doctest(code, names, page.name, str(page), line - 1)
    test.globs = names  # not a copy: later blocks use the names of this one
    report = []
    doctest.DocTestRunner(optionflags=FLAGS).run(test, out=report.append, clear_globs=False)
    assert not report, "".join(report)


def _show_design(code):
    json.loads(code)
    Path("shown.json").write_text(code, encoding="utf-8")
    assert run(["design", "shown.json"]) == 0


def _run_shell(code, language, capsys, place):
    for command, expected in _commands(code, language):
        if command.startswith(NOT_RUN):
            continue
        arguments = shlex.split(command, comments=True)
        if not arguments:
            continue
        assert arguments[0] == "looselabels", f"{place}: what runs {command!r}?"
        _remove_results(arguments)
        capsys.readouterr()
        assert run(arguments[1:]) == 0, f"{place}: {command}\n{capsys.readouterr().err}"
        shown = capsys.readouterr()
        got = shown.err + shown.out
        if expected:
            same = doctest.OutputChecker().check_output(expected, got, FLAGS)
            assert same, f"{place}: {command}\n{got}"


def _commands(code, language):
    """Return each command with the output that is shown below it; only a console shows some."""
    joined = code.replace("\\\n", " ")
    if language != "console":
        return [(line.strip(), "") for line in joined.splitlines() if line.strip()]
    parts = re.split(r"^\$ ", joined, flags=re.MULTILINE)[1:]
    return [(part.partition("\n")[0], part.partition("\n")[2]) for part in parts]


def _remove_results(arguments):
    """Remove what an earlier command wrote in the same place."""
    kind = {"audit": "audit", "apply": "corrected", "fit": "model"}.get(arguments[1])
    if kind is not None:
        for path in Path().glob(f"{Path(arguments[2]).stem}-{kind}*"):
            shutil.rmtree(path) if path.is_dir() else path.unlink()


def write_files(folder):
    """Write the tables, images and designs that the commands of the pages name."""
    import pandas as pd
    from PIL import Image

    rng = np.random.default_rng(0)
    n = 120
    species = rng.choice(["cat", "dog", "wolf"], n)
    size = {"cat": 4.0, "dog": 20.0, "wolf": 40.0}
    weight = np.array([size[name] for name in species]) * rng.uniform(0.8, 1.2, n)
    tail = np.array([len(name) for name in species]) + rng.normal(0, 0.3, n)
    animals = pd.DataFrame({"name": [f"a{k:03}" for k in range(n)], "weight": weight, "tail": tail})
    labels = np.where(rng.random(n) < 0.08, rng.permutation(species), species)
    animals.assign(species=labels).to_csv(folder / "animals.csv", index=False)
    animals.to_csv(folder / "new.csv", index=False)
    for name in ("embeddings.parquet", "new.parquet"):
        animals.drop(columns="tail").to_parquet(folder / name)
    origin = np.where(rng.random(n) < 0.7, "shop", "checked")
    coarse = np.where(labels == "cat", "cat", "canine")
    both = animals.assign(origin=origin, species=np.where(origin == "shop", coarse, species))
    both.to_csv(folder / "both.csv", index=False)
    design = {
        "shop": {"meanings": {"cat": "cat", "canine": ["dog", "wolf"]}, "noise": 0.05},
        "checked": {"meanings": {"cat": "cat", "dog": "dog", "wolf": "wolf"}},
    }
    (folder / "both.json").write_text(json.dumps({"sources": design}))
    answers = {who: np.where(rng.random(n) < 0.8, species, "dog") for who in ("ann", "bob", "eve")}
    texts = animals.rename(columns={"name": "text_id"}).assign(**answers)
    for name in ("texts.csv", "more.csv"):
        texts.to_csv(folder / name, index=False)
    long = texts.melt("text_id", list(answers), "annotator", "label")
    long.to_csv(folder / "answers.csv", index=False)
    _write_images(folder, rng, Image)


def _write_images(folder, rng, image):
    pixels = []
    for name, level in (("cat", 60), ("dog", 180)):
        for place in ("photos", "new-photos"):
            (folder / place / name).mkdir(parents=True)
            for k in range(30):
                gray = rng.normal(level, 20, (16, 16)).clip(0, 255).astype("uint8")
                image.fromarray(gray).save(folder / place / name / f"{k:02}.png")
                pixels.append(gray.mean() if place == "photos" else None)
    kept = np.array([[value] for value in pixels if value is not None])
    np.save(folder / "embeddings.npy", kept)
