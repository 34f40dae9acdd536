"""Values that stand in a record and are not the work's own: an erratum's DOI, another paper's withdrawal, an address."""

from typing import Any

import msgspec
import pytest

from tests.unit.ingest.packs.bundled.test_mapped_values import dublin_core, oai, only


@pytest.mark.parametrize(
    ("comments", "withdrawn"),
    [
        ("This paper has been withdrawn by the author\n  due to an error", True),
        ("Paper withdrawn", True),
        ("12 pages. This manuscript was withdrawn", True),
        ("Because of an error this paper has been withdrawn", True),
        ("This version withdrawn by arXiv administrators", True),
        ("Replaces arXiv:0707.1234, which has been withdrawn", False),
        ("Section 4 has been withdrawn", False),
        ("The previous version was withdrawn", False),
        ("The companion paper has been withdrawn", False),
        ("This paper has been temporarily withdrawn", True),
        ("The authors have withdrawn this paper due to an error in Lemma 3", True),
        ("5 pages. We withdraw this preprint", True),
        ("This article has been removed by arXiv administrators for overlap with another", True),
        ("The authors have withdrawn the claim of Section 2", False),
        ("Published in PRD; figures of v1 withdrawn", False),
    ],
)
def test_what_arxiv_calls_withdrawn_is_this_paper(comments: str, withdrawn: bool) -> None:
    inside = f"<id>2601.00001</id><title>Fog</title><comments>{comments}</comments><abstract>Fog.</abstract>"
    found = only("arxiv", "oai", oai(f'<arXiv xmlns="http://arxiv.org/OAI/arXiv/">{inside}</arXiv>'))
    assert found.get("retracted", False) is withdrawn


def test_a_paper_that_arxiv_calls_withdrawn_says_since_when() -> None:
    def notices(comments: str) -> list[dict[str, str]] | None:
        inside = f"<id>2601.00001</id><created>2026-01-02</created><updated>2026-02-03</updated><comments>{comments}</comments>"
        return only("arxiv", "oai", oai(f'<arXiv xmlns="http://arxiv.org/OAI/arXiv/">{inside}</arXiv>')).get("notices")

    assert notices("This paper has been withdrawn") == [{"type": "withdrawal", "at": "2026-02-03"}]
    assert notices("7 pages") is None
    entry = """<feed xmlns="http://www.w3.org/2005/Atom"><entry><id>http://arxiv.org/abs/2601.00001v2</id><title>Fog</title>
    <updated>2026-02-03T04:05:06Z</updated><published>2026-01-02T00:00:00Z</published>
    <comment xmlns="http://arxiv.org/schemas/atom">Withdrawn by the author</comment></entry></feed>"""
    found = only("arxiv", "query", entry.encode())
    assert (found["retracted"], found["notices"]) == (True, [{"type": "withdrawal", "at": "2026-02-03T04:05:06Z"}])


@pytest.mark.parametrize(
    ("abstract", "withdrawn"),
    [
        ("This paper has been withdrawn by the authors.", True),
        ("The paper has been withdrawn due to an error.", True),
        ("Withdrawn.", True),
        ("The drug was withdrawn from the market in 2004.", False),
        ("We ask why this paper withdrawal happens.", False),
    ],
)
def test_an_abstract_of_arxiv_that_only_says_that_the_paper_is_withdrawn(abstract: str, withdrawn: bool) -> None:
    inside = f"<id>2601.00001</id><title>Fog</title><comments>1 page</comments><abstract>{abstract}</abstract>"
    found = only("arxiv", "oai", oai(f'<arXiv xmlns="http://arxiv.org/OAI/arXiv/">{inside}</arXiv>'))
    assert found.get("retracted", False) is withdrawn


def inspire(*dois: dict[str, str]) -> dict[str, Any]:
    metadata = {"titles": [{"title": "Fog"}], "dois": list(dois)}
    hit = {"id": "1", "updated": "2026-01-01T00:00:00+00:00", "metadata": metadata}
    return only("inspire", "literature", msgspec.json.encode({"hits": {"hits": [hit], "total": 1}}))


def test_the_doi_of_an_erratum_is_not_that_of_the_work_even_where_it_is_the_only_one() -> None:
    erratum = {"value": "10.5555/e", "material": "erratum"}
    assert "doi" not in inspire(erratum)
    assert inspire(erratum)["notices"] == [{"type": "erratum", "id": "doi:10.5555/e"}]
    assert inspire(erratum, {"value": "10.48550/arXiv.2601.00001", "material": "preprint"})["doi"].startswith(
        "10.48550"
    )
    assert inspire({"value": "10.5555/r", "material": "reprint"}, {"value": "10.5555/x"})["doi"] == "10.5555/x"


def test_numbers_of_other_kinds_are_no_isbn_and_no_issn() -> None:
    """An id of OpenAlex has ten digits, and a span of years the form of an ISSN."""
    record = {
        "id": "doi:10.5555/x openalex:W2890123456 omid:br/06", "title": "Fog", "type": "book chapter", "pub_date": "2018",
        "venue": "Fog 1939-1945 [isbn:9783030006679 isbn:9783030006686 issn:0302-9743 omid:br/061]",
    }  # fmt: skip
    found = only("opencitations", "work", msgspec.json.encode([record]))
    assert (found["isbn"], found["issn"]) == (["9783030006679", "9783030006686"], ["0302-9743"])


def test_an_arxiv_id_of_what_a_work_is_part_of_is_not_its_own() -> None:
    def found(relationship: str) -> str | None:
        given = {
            "external-id-type": "arxiv",
            "external-id-value": "2601.00001",
            "external-id-relationship": relationship,
        }
        summary = {
            "path": "/0000-0002-1825-0097/work/1", "last-modified-date": {"value": 1767225600000},
            "title": {"title": {"value": "Fog"}}, "external-ids": {"external-id": [given]},
        }  # fmt: skip
        return only("orcid", "works", msgspec.json.encode({"group": [{"work-summary": [summary]}]})).get("arxiv")

    assert (found("self"), found("part-of")) == ("2601.00001", None)


def test_a_journal_is_named_by_no_issn_and_no_address() -> None:
    def found(*sources: str) -> dict[str, Any]:
        elements = "".join(f"<dc:source>{source}</dc:source>" for source in sources)
        return only("oaipmh", "records", dublin_core(f"<dc:title>x</dc:title>{elements}"))

    hal = found("ISSN: 0028-0836", "EISSN: 1476-4687", "Nature", "https://hal.science/hal-1")
    assert (hal["container"], hal["issn"]) == ("Nature", ["0028-0836", "1476-4687"])
    assert "container" not in found("http://www.example.org/fog.pdf")


def test_where_it_is_printed_may_stand_in_a_description() -> None:
    text = "Fog Online, yr. 2012, vol. 7, iss. 2, pg. 23-44; ISSN 2245-3342"
    found = only("oaipmh", "records", dublin_core(f"<dc:title>x</dc:title><dc:description>{text}</dc:description>"))
    assert [found.get(name) for name in ("container", "volume", "issue", "pages", "issn", "abstract")] == [
        "Fog Online", "7", "2", "23-44", ["2245-3342"], None,
    ]  # fmt: skip


def test_what_a_dataset_cites_is_among_its_references() -> None:
    related = [
        {"relationType": kind, "relatedIdentifierType": "DOI", "relatedIdentifier": f"10.5555/{kind}"}
        for kind in ("Cites", "References", "IsCitedBy")
    ]
    attributes = {"doi": "10.5555/1", "updated": "2026-01-01T00:00:00Z", "relatedIdentifiers": related}
    found = only("datacite", "dois", msgspec.json.encode({"data": [{"id": "1", "attributes": attributes}]}))
    assert found["references"] == ["doi:10.5555/cites", "doi:10.5555/references"]


def test_open_access_is_no_licence() -> None:
    def found(*licences: str) -> str | None:
        product = {"id": "1", "mainTitle": "Fog", "instances": [{"license": one} for one in licences]}
        return only("openaire", "products", msgspec.json.encode({"results": [product]})).get("license")

    assert (found("OPEN ACCESS"), found("OPEN ACCESS", "CC BY")) == (None, "cc-by")
