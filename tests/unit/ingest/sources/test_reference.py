"""The page of sources says what the packs say."""

from pathlib import Path

from patra.ingest import sources
from patra.ingest.works_docs import UNPROVEN, sources_page, summaries

PAGE = Path(__file__).resolve().parents[4] / "docs" / "reference" / "sources.md"


def test_the_page_of_sources_is_made_from_the_packs() -> None:
    assert PAGE.read_text(encoding="utf-8") == sources_page(), "python -m tests.unit.ingest.sources.test_reference"


def test_the_page_names_every_source_and_endpoint() -> None:
    page = sources_page()
    for name in sources.names():
        for endpoint in sources.pack(name).pack.endpoints:
            assert f"[{name}](#" in page
            assert f"`{endpoint}`" in page


def test_the_page_says_what_was_never_seen_from_the_real_service() -> None:
    rows = [line for line in sources_page().splitlines() if line.startswith("| [")]
    unproven = {tuple(cell.strip(" `") for cell in row.split("|")[1:3]) for row in rows if UNPROVEN in row}
    assert {(source.partition("]")[0].strip("["), endpoint) for source, endpoint in unproven} == {
        ("biorxiv", "details"),
        ("biorxiv", "byDoi"),
        ("core", "works"),
        ("core", "work"),
        ("hal", "search"),
        ("hal", "byId"),
    }


def test_every_source_has_a_line() -> None:
    assert [one.source for one in summaries()] == list(sources.names())


if __name__ == "__main__":
    PAGE.write_text(sources_page(), encoding="utf-8")
