"""Marks that cite the specification become links to a target that is there."""

import re
from pathlib import Path

from patra.cli.citations import link_marks, targets

KNOWN = {"f-3-8-29": "attribution.md", "c-5": "event-contracts.md", "i-10-3": "ingest/10.md", "ruling-f9": "rulings.md"}
DOCS = Path(__file__).parents[3] / "docs"


def test_every_kind_of_mark_is_linked() -> None:
    text = link_marks("as §3.8.29.2, C§5, ch. 10.3 and F9 say", KNOWN, "s/")
    assert text == (
        "as [§3.8.29.2](s/attribution.md#f-3-8-29), [C§5](s/event-contracts.md#c-5), "
        "[ch. 10.3](s/ingest/10.md#i-10-3) and [F9](s/rulings.md#ruling-f9) say"
    )


def test_code_headings_links_and_unknown_marks_stay() -> None:
    for text in ("`F9`", "# On F9", "[see F9](x#F9)", "F77", "§1.1", "XF9"):
        assert link_marks(text, KNOWN, "s/") == text


def test_every_link_of_the_user_pages_into_the_specification_has_its_target() -> None:
    known = targets(DOCS / "specification")
    found = [
        (page, file, anchor)
        for folder in ("tutorial", "how-to", "reference", "explanation")
        for page in (DOCS / folder).glob("*.md")
        for file, anchor in re.findall(r"\(\.\./specification/([\w/.-]+)#([\w-]+)\)", page.read_text("utf-8"))
    ]
    assert len(found) > 40
    assert [one for one in found if known.get(one[2]) != one[1]] == []
