"""Sphinx: MyST Markdown with the Furo theme. Generated parts stand in the pages already (`patra.cli.reference`)."""

import re
import tomllib
from pathlib import Path
from typing import Any

from docutils import nodes

import patra

project = "Patra"
author = "the Patra authors"
copyright = "the Patra authors"
version = release = patra.__version__

extensions = ["myst_parser"]
myst_enable_extensions = ["attrs_inline", "colon_fence"]
myst_heading_anchors = 3
html_theme = "furo"
html_static_path = ["static"]
html_css_files = ["landing.css"]
html_logo = html_favicon = "images/logo.svg"
html_theme_options = {
    "sidebar_hide_name": False,
    "light_css_variables": {"color-brand-primary": "#0b6e6e", "color-brand-content": "#0b6e6e"},
    "dark_css_variables": {"color-brand-primary": "#5cc7c0", "color-brand-content": "#5cc7c0"},
}
html_title = f"Patra {version}"
html_show_sphinx = False
exclude_patterns = ["_build"]
suppress_warnings: list[str] = []

NAVIGATION = tomllib.loads((Path(__file__).parent / "navigation.toml").read_text(encoding="utf-8"))
WHOLE_CODE_CHARS = 28
"""Code of so few characters stays on one line of a table's cell; what is longer, such as JSON, may break anywhere."""
ANCHOR = re.compile(r'^<a id="([\w-]+)"></a>$', re.MULTILINE)  # what the repository view understands, as MyST has it
PICTURE = re.compile(r"^!\[([^\]]*)\]\(([\w./-]*console-[\w-]+)\.(png|webp)\)$", re.MULTILINE)


def in_both_modes(page: Path, source: str) -> str:
    """Pictures of the console that exist in dark, too, are shown as the reader's mode wants (classes of Furo)."""

    def both(picture: re.Match[str]) -> str:
        words, name, kind = picture.groups()
        if f"{name}-dark.{kind}" in source or not (page.parent / f"{name}-dark.{kind}").exists():
            return picture[0]  # the page shows both by itself, or there is only one
        return f"![{words}]({name}.{kind}){{.only-light}}\n![{words}]({name}-dark.{kind}){{.only-dark}}"

    return PICTURE.sub(both, source)


def complete_page(app: Any, docname: str, source: list[str]) -> None:
    """Add what only Sphinx needs: the targets of links in MyST's form, dark pictures, and the navigation."""
    navigation = NAVIGATION.get(docname, {}).get("toctrees", "")
    text = in_both_modes(Path(app.srcdir) / docname, source[0])
    source[0] = ANCHOR.sub(r"(\1)=", text) + ("\n" + navigation if navigation else "")


def keep_short_codes_whole(_app: Any, doctree: nodes.document, _docname: str) -> None:
    """Mark the short codes of tables: a column's width goes by them, and a name is not broken in the middle."""
    for cell in doctree.findall(nodes.entry):
        for code in cell.findall(nodes.literal):
            if len(code.astext()) <= WHOLE_CODE_CHARS:
                code["classes"].append("whole")


def setup(app: Any) -> None:
    app.connect("doctree-resolved", keep_short_codes_whole)
    app.connect("source-read", complete_page)
