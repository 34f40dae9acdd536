# ruff: noqa: INP001, T201  a script of the documentation
"""Takes the paragraphs of the specification that stories refer to into the console, which shows them under `/rule`.

python docs/rules.py      writes rules.json; `./dev docs` runs it, a test holds the file current
"""

import json
import re
from pathlib import Path

from markdown_it import MarkdownIt

ROOT = Path(__file__).parents[1]
TARGET = ROOT / "src" / "patra" / "web" / "console" / "rules.json"
ANCHOR = re.compile(r'^<a id="([\w-]+)"></a>\n(#+) (.+)$', re.MULTILINE)
LINK = re.compile(r"\[([^\]]*)\]\(([^)\s]*)\)")
REFERENCE = re.compile(r'"((?:f-3-8|i|c)-[\d-]+|ruling-[a-z]\d+)"')


def referenced() -> list[str]:
    """The anchors that the code of the story names."""
    sources = sorted((ROOT / "src" / "patra" / "app" / "story").glob("*.py"))
    return sorted({anchor for source in sources for anchor in REFERENCE.findall(source.read_text("utf-8"))})


def sections() -> dict[str, tuple[str, str]]:
    """Title and Markdown of the section of every anchor of the specification."""
    found: dict[str, tuple[str, str]] = {}
    for page in sorted((ROOT / "docs" / "specification").rglob("*.md")):
        text = page.read_text("utf-8")
        heads = list(ANCHOR.finditer(text))
        for number, head in enumerate(heads):
            level = len(head[2])
            end = next((later.start() for later in heads[number + 1 :] if len(later[2]) <= level), len(text))
            found[head[1]] = (head[3].replace("`", ""), text[head.end() : end])
    return found


def rules() -> dict[str, dict[str, str]]:
    """The referenced paragraphs as HTML; a link to another of them stays one, any other is only its text."""
    wanted, known, markdown = referenced(), sections(), MarkdownIt("commonmark", {"html": False}).enable("table")

    def linked(match: re.Match[str]) -> str:
        anchor = match[2].rpartition("#")[2]
        return f"[{match[1]}](/console/rule?at={anchor})" if anchor in wanted else match[1]

    found: dict[str, dict[str, str]] = {}
    for anchor in wanted:
        title, text = known[anchor]
        text = LINK.sub(linked, re.sub(r'^<a id="[^"]*"></a>\n', "", text, flags=re.MULTILINE))
        found[anchor] = {"title": LINK.sub(r"\1", title), "html": markdown.render(text)}
    return found


def text() -> str:
    return json.dumps(rules(), ensure_ascii=False, indent=1) + "\n"


if __name__ == "__main__":
    TARGET.write_text(text(), "utf-8")
    print(TARGET)
