"""Marks that cite the specification (`§3.8.19`, `ch. 10.3`, `C§5`, `F9`) as links into `docs/specification`."""

import re
from collections.abc import Mapping
from pathlib import Path

MARK = re.compile(
    r"(?<![\[\w`#])(?:C§(?P<c>\d+(?:\.\d+)*)|§(?P<f>\d+(?:\.\d+)*)|ch\. (?P<i>\d+(?:\.\d+)*)"
    r"|(?P<ruling>[FIBA]\d{1,2}))(?![\w\]])"
)
TARGET = re.compile(r'^<a id="((?:f|i|c|ruling)-[\w-]+)"></a>$', re.MULTILINE)


def targets(specification: Path) -> dict[str, str]:
    """Every link target of the specification, with its page."""
    return {
        anchor: page.relative_to(specification).as_posix()
        for page in sorted(specification.rglob("*.md"))
        for anchor in TARGET.findall(page.read_text(encoding="utf-8"))
    }


def link_marks(text: str, known: Mapping[str, str], prefix: str) -> str:
    """The text with its marks as links; a mark without a target, or inside code, stays as it is."""

    def link(match: re.Match[str]) -> str:
        kind, number = next((kind, value) for kind, value in match.groupdict().items() if value)
        anchor = f"{kind}-{number.lower().replace('.', '-')}"
        while anchor not in known and anchor.count("-") > 1:
            anchor = anchor.rpartition("-")[0]  # an item of a list is cited by its section
        return f"[{match[0]}]({prefix}{known[anchor]}#{anchor})" if anchor in known else match[0]

    parts = re.split(r"(```.*?```|`[^`\n]*`|\[[^\]]*\]\([^)]*\)|^#[^\n]*$)", text, flags=re.DOTALL | re.MULTILINE)
    return "".join(part if at % 2 else MARK.sub(link, part) for at, part in enumerate(parts))
