"""The documentation: each page runs from top to bottom, and the site is built without warnings."""

import inspect
import re
import shutil
import subprocess
import sys
from importlib import import_module

import pytest

import looselabels
from tests.pages import DOCS, ROOT, blocks, find_pages, run_page, write_files

LANGUAGES = {"", "console", "json", "python", "sh", "text"}
PUBLIC_MODULES = (
    "annotations", "blocks", "datasets", "exceptions", "features", "inference", "model_selection",
    "plotting",
)  # fmt: skip
INTERNAL = {  # without an underscore, because other modules of the package use them
    "annotations.read_annotations",
    "annotations.warn_if_each_annotator_uses_one_label",
    "annotations.warn_if_label_sets_are_disjoint",
    "annotations.warn_of_labels_that_look_missing",
    "blocks.aligned",
    "blocks.regrouped",
    "blocks.rows_per_block",
    "inference.climb",
    "inference.given_label_proba",
    "inference.growth_bound",
    "inference.normalize_rows",
    "inference.rows_for",
    "inference.sum_by_label",
}
# of scikit-learn, and an old name
PLUMBING = re.compile(r"set_\w+_request|get_metadata_routing|label_weights_")


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A folder with the files that pages name, and decisions about one of them."""
    pytest.importorskip("PIL", reason="the extra `images` is not installed")
    pytest.importorskip("pandas", reason="the extra `tables` is not installed")
    folder = tmp_path_factory.mktemp("files")
    write_files(folder)
    from looselabels.command.cli import run

    out = folder / "once"
    arguments = ["audit", folder / "animals.csv", "--label", "species", "--accept-above", "0.6"]
    assert run([*map(str, arguments), "-o", str(out)]) == 0
    lines = (out / "decisions.csv").read_text().splitlines(keepends=True)
    for name, rows in (("decisions", lines[1:]), ("first", lines[1:3]), ("second", lines[3:5])):
        (folder / f"{name}.csv").write_text("".join([lines[0], *rows]))
    return folder


def name_of(page):
    return str(page.relative_to(ROOT))


@pytest.mark.parametrize("page", find_pages(), ids=name_of)
def test_each_block_of_a_page_is_of_a_kind_that_is_run(page):
    languages = {language for _, language, _ in blocks(page) if not language.startswith("{")}
    assert languages <= LANGUAGES


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::Warning:(cleanlab|crowdkit|pulearn|xgboost)")
@pytest.mark.parametrize("page", [page for page in find_pages() if any(blocks(page))], ids=name_of)
def test_a_page_runs_from_top_to_bottom(page, files, tmp_path, monkeypatch, capsys):
    for name in re.findall(r"^>>> (?:from|import) (\w+)", page.read_text(), re.MULTILINE):
        pytest.importorskip(name, reason=f"{name} is not installed")
    folder = shutil.copytree(files, tmp_path / "files")
    monkeypatch.chdir(folder)
    run_page(page, capsys)


@pytest.mark.slow
def test_the_tour_runs_as_a_notebook():
    jupytext = pytest.importorskip("jupytext", reason="the extra `docs` is not installed")
    client = pytest.importorskip("nbclient", reason="the extra `docs` is not installed")
    notebook = jupytext.read(DOCS / "tour.py")
    done = client.NotebookClient(notebook, timeout=300, kernel_name="python3").execute()
    outputs = [out for cell in done.cells if cell.cell_type == "code" for out in cell.outputs]
    kinds = [kind for out in outputs for kind in out.get("data", {})]
    assert kinds.count("image/png") >= 3
    assert any("text/html" in out.get("data", {}) for out in outputs)  # the page of an audit


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The site, built from scratch; warnings are errors."""
    pytest.importorskip("sphinx_gallery", reason="the extra `docs` is not installed")
    out = tmp_path_factory.mktemp("site")
    shutil.rmtree(DOCS / "gallery", ignore_errors=True)
    options = ["-W", "--keep-going", "-q", "-d", out / "doctrees"]
    command = [sys.executable, "-m", "sphinx", *options, DOCS, out / "html"]
    built = subprocess.run(command, capture_output=True, encoding="utf-8", timeout=1800)
    assert built.returncode == 0, built.stderr
    return out / "html"


@pytest.mark.slow
def test_the_site_is_built_without_warnings(site):
    assert (site / "index.html").exists()


@pytest.mark.slow
def test_no_page_loads_a_file_from_elsewhere(site):
    loaded = re.compile(r"<(?:script|img|iframe|link)[^>]+(?:src|href)=\"(https?:[^\"]+)")
    pages = site.rglob("*.html")
    assert {url for page in pages for url in loaded.findall(page.read_text())} == set()


def public_names():
    """Return each public name, and the methods of classes as ``name.method``."""
    found = {name: getattr(looselabels, name) for name in looselabels.__all__}
    for module in map(import_module, (f"looselabels.{name}" for name in PUBLIC_MODULES)):
        for name, thing in vars(module).items():
            place = f"{module.__name__.partition('.')[2]}.{name}"
            is_own = callable(thing) and thing.__module__ == module.__name__
            if is_own and not name.startswith("_") and name not in found and place not in INTERNAL:
                found[place] = thing
    for name, thing in found.items():
        yield name
        if inspect.isclass(thing) and not issubclass(thing, Warning):
            for base in thing.__mro__:
                if base.__module__.startswith("looselabels"):
                    yield from (f"{name}.{m}" for m in vars(base) if is_method(base, m))


def is_method(owner, name):
    is_public = not name.startswith("_") and not PLUMBING.fullmatch(name)
    return is_public and callable(getattr(owner, name))


@pytest.mark.slow
def test_the_reference_has_every_public_name_and_method(site):
    pages = "".join(page.read_text() for page in (site / "reference").glob("*.html"))
    names = set(public_names())
    assert {"audit", "Transition.partial", "inference.objective"} < names
    missing = sorted(name for name in names if f'id="looselabels.{name}"' not in pages)
    assert missing == []


@pytest.mark.slow
def test_the_reference_has_every_command(site):
    from looselabels.command.cli import main

    page = (site / "reference" / "command.html").read_text()
    assert [name for name in main.commands if f"Usage: looselabels {name} " not in page] == []
