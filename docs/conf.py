"""Sphinx: MyST Markdown, and reference pages that are made from the code while the documentation is built.

A page says ```` ```{reference} settings ```` where the generated part belongs; `patra.cli.reference` knows the names.
"""

from docutils import nodes
from docutils.parsers.rst import Directive
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

import patra
from patra.cli.reference import PAGES
from patra.kernel.telemetry import setup_logging

project = "Patra"
author = "the Patra authors"
copyright = "the Patra authors"
version = release = patra.__version__

extensions = ["myst_parser"]
myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 3
html_theme = "furo"
html_title = f"Patra {version}"
html_show_sphinx = False
exclude_patterns = ["_build"]
suppress_warnings: list[str] = []


class Reference(SphinxDirective):
    """The generated Markdown of one reference page, in place."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        return self.parse_text_to_nodes(PAGES[self.arguments[0]](), allow_section_headings=True)


def setup(app: Sphinx) -> None:
    setup_logging(level="warning")
    directive: type[Directive] = Reference
    app.add_directive("reference", directive)
