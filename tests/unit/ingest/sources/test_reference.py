"""The page of sources says what the packs say."""

from pathlib import Path

from patra.ingest import sources
from patra.ingest.works_docs import sources_page, summaries

PAGE = Path(__file__).resolve().parents[4] / "docs" / "reference" / "sources.md"


def test_the_page_of_sources_is_made_from_the_packs() -> None:
    """If this fails: python -c 'from patra.ingest.works_docs import sources_page; print(sources_page(), end="")'."""
    assert PAGE.read_text(encoding="utf-8") == sources_page()


def test_the_page_names_every_source_and_endpoint() -> None:
    page = sources_page()
    for name in sources.names():
        for endpoint in sources.pack(name).pack.endpoints:
            assert f"[{name}](#" in page
            assert f"`{endpoint}`" in page


def test_every_source_has_a_line() -> None:
    assert [one.source for one in summaries()] == list(sources.names())
