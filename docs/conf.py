"""Settings of the documentation site: ``make docs`` builds it without network access."""

import os
import re
import sys
import warnings
from pathlib import Path

import matplotlib

DOCS = Path(__file__).resolve().parent
ROOT = DOCS.parent
LINK = re.compile(r"\]\((?P<path>[\w./-]+)(?P<anchor>#[\w-]*)?\)")
sys.path.insert(0, str(DOCS / "_ext"))
matplotlib.use("Agg")
# sphinx-gallery looks up the old names of classes, too.
warnings.filterwarnings("ignore", category=FutureWarning, module="sphinx_gallery")

import looselabels  # noqa: E402 - after the path and the backend are set

project = "looselabels"
author = "The looselabels developers"
project_copyright = author
version = release = looselabels.__version__

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "from_code",  # heat maps, help texts and a report that the build makes
    "native_math",  # formulas as MathML: no script has to be loaded
]
exclude_patterns = ["_build", "gallery/*.ipynb", "tour.py"]

# Markdown
myst_enable_extensions = ["attrs_inline", "colon_fence", "dollarmath", "tasklist"]
myst_heading_anchors = 3

# Pages that show a file next to docs/. Links between all of these files are kept, so that they also
# work where the repository is read.
SHOWN = {
    "architecture": "ARCHITECTURE.md",
    "benchmarks": "benchmarks/README.md",
    "changelog": "CHANGELOG.md",
    "contributing": "CONTRIBUTING.md",
    "experiments": "experiments/README.md",
    "security": "SECURITY.md",
}

OPTIONAL = ("reliability", "scale")  # left out of the contents while they do not exist

# Python
autodoc_member_order = "bysource"
autodoc_typehints = "none"
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

# Gallery
sphinx_gallery_conf = {
    "examples_dirs": ["../examples"],
    "gallery_dirs": ["gallery"],
    "filename_pattern": r"\.py$",
    "abort_on_example_error": False,
    "only_warn_on_example_error": True,  # a warning is an error: the build fails in the end
    "download_all_examples": False,
    "remove_config_comments": True,
    "show_memory": False,
    "write_computation_times": False,  # that page loads scripts from elsewhere
    "min_reported_time": 5,
    "within_subsection_order": "ExampleTitleSortKey",
}

# HTML
html_theme = "pydata_sphinx_theme"
html_title = "looselabels"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_theme_options = {
    "show_prev_next": True,
    "navigation_with_keys": False,
    "header_links_before_dropdown": 7,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
}
html_sidebars = {"index": [], "tutorial": [], "which-design": []}


def _show_file(app, page, source):
    """Show another file on some pages, and let links to shown files lead to their pages."""
    file = ROOT / SHOWN[page] if page in SHOWN else DOCS / f"{page}.md"
    if page in SHOWN:
        source[0] = file.read_text(encoding="utf-8")
        app.env.note_dependency(str(file))
    pages = {(ROOT / shown).resolve(): DOCS / f"{name}.md" for name, shown in SHOWN.items()}
    pages[ROOT / "README.md"] = DOCS / "index.md"

    def link(match):
        target = (file.parent / match["path"]).resolve()
        if not target.exists():
            return match[0]
        target = pages.get(target, target)
        return f"]({os.path.relpath(target, (DOCS / page).parent)}{match['anchor'] or ''})"

    source[0] = LINK.sub(link, source[0]).replace("\n\n```\n", "\n```\n")  # no empty last lines
    for name in OPTIONAL:
        if not (DOCS / f"{name}.md").exists():
            source[0] = re.sub(rf"^(\.\./)?{name}\n", "", source[0], flags=re.MULTILINE)


def setup(app):
    """Register what the pages need."""
    app.connect("source-read", _show_file)
