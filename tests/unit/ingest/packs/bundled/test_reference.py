"""The page of sources says what the packs say."""

from pathlib import Path

import msgspec

from patra.ingest.packs import bundled
from patra.ingest.packs.work import Work
from patra.ingest.works.docs import UNPROVEN, sources_page, summaries

PAGE = Path(__file__).resolve().parents[5] / "docs" / "reference" / "sources.md"


def test_the_page_of_sources_is_made_from_the_packs() -> None:
    assert PAGE.read_text(encoding="utf-8") == sources_page(), (
        "python -m tests.unit.ingest.packs.bundled.test_reference"
    )


def test_the_page_names_every_source_and_endpoint() -> None:
    page = sources_page()
    for name in bundled.names():
        for endpoint in bundled.pack(name).pack.endpoints:
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
        ("oaipmh", "identifiers"),
        ("oaipmh", "datacite"),
        ("oaipmh", "jats"),
        ("oaipmh", "sets"),
    }


def test_the_page_shows_the_declared_semantics_of_every_endpoint_that_gives_records() -> None:
    page = sources_page()
    assert "| semanticscholar | `bulk` | `$['publicationDate', 'year']` | PUBLISHED | CONTENT |" in page
    assert "| opencitations | `work` |  | NONE | CONTENT |" in page
    assert "`reread`: P180D |" in page
    assert "`o:header/@status` is deleted" in page


def test_every_pack_says_what_its_totals_bounds_times_and_deletions_mean() -> None:
    """In sentences, with the provider's documentation; the page shows each of them."""
    page = sources_page()
    for name in bundled.names():
        found = bundled.pack(name).pack.semantics
        assert found is not None, name
        [row] = [line for line in page.splitlines() if line.startswith(f"| [{name}]({found.source})")]
        for sentence in (found.total, found.bounds, found.precision, found.update_time, found.deletions):
            assert sentence.endswith("."), f"{name}: {sentence!r} is not a sentence"
            assert f" {sentence} |" in row


def test_every_list_says_what_its_total_means_and_how_it_is_cut() -> None:
    """Written down, not left to the default; where bounds are not declared, more is read rather than less (I11)."""
    silent: list[tuple[str, str]] = []
    for name in bundled.names():
        tree = bundled.pack(name).tree
        for endpoint, at in tree["endpoints"].items():
            if at.get("role") == "DETAIL":
                continue
            pagination = {**tree.get("defaults", {}).get("pagination", {}), **at.get("pagination", {})}
            window = {**tree.get("defaults", {}).get("window", {}), **at.get("window", {})}
            assert "total" in pagination, (name, endpoint)
            if not {"bounds", "precision"} <= window.keys() and window.get("supportsUpdatedSince"):
                silent.append((name, endpoint))
    assert silent == [
        ("ads", "search"),
        ("arxiv", "query"),
        ("crossref", "works"),
        ("datacite", "dois"),
        ("doaj", "articles"),
        ("hal", "search"),
        ("zenodo", "records"),
    ]


def test_date_filters_that_rest_on_nothing_are_marked() -> None:
    unproven = {
        name for name in bundled.names() if (at := bundled.pack(name).pack.semantics) and at.date_filter == "unproven"
    }
    assert unproven == {"arxiv", "core", "doaj", "zenodo"}
    rows = [line for line in sources_page().splitlines() if line.endswith("| **unproven** |")]
    assert len(rows) == len(unproven)


def test_the_page_shows_every_field_of_a_work() -> None:
    page = sources_page()
    for field in msgspec.structs.fields(Work):
        [line] = [line for line in page.splitlines() if line.startswith(f"| `{field.name}` |")][:1]
        assert len(line) > len(f"| `{field.name}` | |") + 5


def test_every_source_has_a_line() -> None:
    assert [one.source for one in summaries()] == list(bundled.names())


if __name__ == "__main__":
    PAGE.write_text(sources_page(), encoding="utf-8")
