"""Write formulas as MathML, which browsers draw themselves; no script is loaded."""

from docutils.utils.math.latex2mathml import tex2mathml


def _visit_inline(self, node):
    self.body.append(tex2mathml(node.astext()))
    raise _skip()


def _visit_block(self, node):
    source = node.astext()
    if "\\\\" in source and "\\begin{" not in source:
        source = f"\\begin{{aligned}}{source}\\end{{aligned}}"
    self.body.append(f'<div class="formula">{tex2mathml(source, as_block=True)}</div>')
    raise _skip()


def _skip():
    from docutils.nodes import SkipNode

    return SkipNode()


def setup(app):
    """Register the renderer and choose it."""
    app.add_html_math_renderer("mathml", (_visit_inline, None), (_visit_block, None))
    app.config.html_math_renderer = "mathml"
    return {"parallel_read_safe": True, "parallel_write_safe": True}
