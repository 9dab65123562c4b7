"""What the build makes from code: heat maps, help texts, and the report of the tutorial."""

import contextlib
import hashlib
import io
import re
import shlex
import tempfile
from pathlib import Path

import click
from docutils import nodes
from docutils.parsers.rst import Directive
from sphinx.util.docutils import SphinxDirective

from looselabels import Transition
from looselabels._names import shown
from looselabels.command.cli import main, run


class HeatMap(SphinxDirective):
    """Show a line of code that returns a Transition, and its heat map."""

    has_content = True

    def run(self):
        """Return the code and the picture."""
        code = "\n".join(self.content)
        transition = eval(code, {"Transition": Transition})
        block = nodes.literal_block(code, code, language="python")
        return [block, self._picture(code, transition)]

    def _picture(self, code, transition):
        name = hashlib.sha256(code.encode()).hexdigest()[:12]
        folder = Path(self.env.srcdir, "_generated")
        folder.mkdir(exist_ok=True)
        figure = transition.plot().figure_
        figure.savefig(folder / f"{name}.png", dpi=120)
        figure.clear()
        classes, labels = (
            ", ".join(shown(name) for name in names)
            for names in (transition.classes, transition.labels)
        )
        alt = f"Heat map of p(label | class); classes {classes}; labels {labels}"
        return nodes.image(uri=f"/_generated/{name}.png", alt=alt, classes=["heatmap"])


class CommandHelp(Directive):
    """Show the help text of a command, such as ``audit``; without a name, that of looselabels."""

    optional_arguments = 1

    def run(self):
        """Return the help text as it is in the terminal."""
        command, words = main, "looselabels"
        context = click.Context(main, info_name=words)
        if self.arguments:
            command = main.commands[self.arguments[0]]
            context = click.Context(command, info_name=self.arguments[0], parent=context)
        text = command.get_help(context)
        return [nodes.literal_block(text, text, language="none")]


def _write_report(app, error):
    """Run the first block and the last audit of the tutorial, and put its report into the site."""
    if error or app.builder.format != "html":
        return
    page = Path(app.srcdir, "tutorial.md").read_text(encoding="utf-8")
    code = re.search(r"```python\n(.*?)```", page, re.DOTALL)[1]
    command = re.search(r"^\$ looselabels (audit .*--merge.*)$", page, re.MULTILINE)[1]
    report = Path(app.outdir, "tutorial-report.html").resolve()
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        exec(re.sub(r"^(>>>|\.\.\.) ?", "", code, flags=re.MULTILINE), {})
        said = io.StringIO()
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            exit_code = run(shlex.split(command))
        if exit_code != 0:
            raise RuntimeError(f"looselabels {command}\n{said.getvalue()}")
        report.write_bytes(Path("scans-audit", "report.html").read_bytes())


def setup(app):
    """Register the directives and the report."""
    app.connect("build-finished", _write_report)
    app.add_directive("heatmap", HeatMap)
    app.add_directive("command-help", CommandHelp)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
