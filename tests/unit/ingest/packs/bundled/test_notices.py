"""Notices in the forms that Crossref, PubMed and Europe PMC document: what they are, when they were given, by which id."""

from typing import Any

import msgspec
import pytest

from patra.ingest.packs.work import Work
from patra.ingest.works.merge import Retraction, retractions_of
from tests.unit.ingest.packs.bundled.test_librarian_cases import europepmc, pubmed
from tests.unit.ingest.packs.bundled.test_mapped_values import crossref, dublin_core, only


def refers(kind: str, source: str, pmid: str = "<PMID>9</PMID>") -> str:
    return (
        f'<CommentsCorrectionsList><CommentsCorrections RefType="{kind}"><RefSource>{source}</RefSource>{pmid}'
        "</CommentsCorrections></CommentsCorrectionsList>"
    )


def of_type(name: str) -> str:
    return f"<PublicationTypeList><PublicationType>{name}</PublicationType></PublicationTypeList>"


@pytest.mark.parametrize(
    ("source", "at"),
    [
        ("Fog. Lamps; 7:1", None),
        ("Lancet. 2010 Feb 6;375(9713):445", "2010 Feb 6"),
        ("J Fog. 2019 Mar;3(1):2. doi: 10.5555/r", "2019 Mar"),
        ("doi: 10.5555/r", None),
    ],
)
def test_a_notice_of_medline_says_when_it_was_given(source: str, at: str | None) -> None:
    expected = {"type": "retraction", "id": "pmid:9"} | ({"at": at} if at else {})
    assert only("pubmed", "fetch", pubmed("", refers("RetractionIn", source)))["notices"] == [expected]
    entry = {"id": "9", "source": "MED", "type": "Retraction in", "reference": source}
    assert europepmc(commentCorrectionList={"commentCorrection": [entry]})["notices"] == [expected]


def test_a_notice_that_is_not_in_medline_has_its_doi() -> None:
    found = only("pubmed", "fetch", pubmed("", refers("ErratumIn", "J Fog. 2019;3(1):2. doi: 10.5555/R", "")))
    assert found["notices"] == [{"type": "erratum", "id": "doi:10.5555/r", "at": "2019"}]


def test_what_was_retracted_and_published_again_is_retracted_in_europe_pmc() -> None:
    entry = {"id": "9", "source": "MED", "type": "Retracted and republished in"}
    found = europepmc(commentCorrectionList={"commentCorrection": [entry]})
    assert (found["retracted"], found["notices"]) == (True, [{"type": "retraction", "id": "pmid:9"}])
    corrected = {**entry, "type": "Corrected and republished in"}
    found = europepmc(commentCorrectionList={"commentCorrection": [corrected]})
    assert (found.get("retracted", False), found["notices"]) == (False, [{"type": "erratum", "id": "pmid:9"}])


@pytest.mark.parametrize("name", ["Retraction of Publication", "Retraction Notice", "Expression of Concern"])
def test_a_notice_of_medline_is_an_erratum(name: str) -> None:
    assert only("pubmed", "fetch", pubmed(of_type(name)))["type"] == "erratum"
    assert europepmc(pubTypeList={"pubType": [name]})["type"] == "erratum"


@pytest.mark.parametrize(
    ("source", "relation"),
    [
        ("bioRxiv. 2024 Jan 1:2024.01.01. doi: 10.1101/2024.01.01", "has-preprint"),
        ("Res Sq. 2024 Jan 1:rs.3. doi: 10.21203/rs.3", "has-preprint"),
        ("ArXiv. 2024 Jan 1:arXiv:2401.1v1", "has-preprint"),
        ("Cochrane Database Syst Rev. 2015 Feb 6;(2):CD1", None),
    ],
)
def test_what_an_article_updates_is_its_preprint_if_a_server_has_it(source: str, relation: str | None) -> None:
    found = only("pubmed", "fetch", pubmed("", refers("UpdateOf", source)))
    assert found.get("relations") == ([{"type": relation, "id": "pmid:9"}] if relation else None)


def updated_by(*kinds: str) -> dict[str, Any]:
    updates = [{"type": one, "DOI": "10.5555/R", "updated": {"date-time": "2026-02-03T00:00:00Z"}} for one in kinds]
    return only("crossref", "works", crossref(**{"updated-by": updates}))


def test_notices_of_crossref_have_the_words_of_the_shape_and_a_new_version_is_none() -> None:
    found = updated_by("expression_of_concern", "corrigendum", "erratum", "new_version", "new_edition", "retraction")
    assert [one["type"] for one in found["notices"]] == ["concern", "correction", "erratum", "retraction"]
    assert "notices" not in updated_by("new_version")


def test_a_funder_of_crossref_without_a_doi_has_its_ror() -> None:
    both = [{"id": "10.13039/1", "id-type": "DOI"}, {"id": "https://ror.org/01xtthb56", "id-type": "ROR"}]
    funders = [{"name": "Fog Fund", "DOI": "10.13039/1", "id": both}, {"name": "Lamp Fund", "id": both[1:]}]
    found = only("crossref", "works", crossref(funder=funders))
    assert [one["id"] for one in found["funders"]] == ["10.13039/1", "https://ror.org/01xtthb56"]


def titled(source: str, title: str) -> dict[str, Any]:
    match source:
        case "crossref":
            return only("crossref", "works", crossref(title=[title]))
        case "doaj":
            article = {"id": "1", "last_updated": "2026-01-01T00:00:00Z", "bibjson": {"title": title, "year": "2020"}}
            return only("doaj", "articles", msgspec.json.encode({"results": [article]}))
        case "openaire":
            return only("openaire", "products", msgspec.json.encode({"results": [{"id": "1", "mainTitle": title}]}))
        case "semanticscholar":
            paper = {"paperId": "1", "year": 2020, "title": title}
            return only("semanticscholar", "bulk", msgspec.json.encode({"data": [paper]}))
        case "core":
            work = {"id": 1, "title": title, "updatedDate": "2026-01-01T00:00:00"}
            return only("core", "works", msgspec.json.encode({"results": [work]}))
        case _:
            return only(source, "records", dublin_core(f"<dc:title>{title}</dc:title>"))


@pytest.mark.parametrize("source", ["crossref", "doaj", "openaire", "semanticscholar", "core", "pmc"])
def test_a_title_in_which_the_publisher_says_retracted(source: str) -> None:
    assert titled(source, "RETRACTED ARTICLE: Of fog")["retracted"] is True
    assert titled(source, "RETRACTED: Of fog")["retracted"] is True
    for title in ("Retracted: Of fog", "RETRACTED claims of fog", "Of RETRACTED: fog"):
        assert "retracted" not in titled(source, title)


def test_who_calls_a_work_retracted_and_when_over_three_sources() -> None:
    entry = {"id": "9", "source": "MED", "type": "Retraction in", "reference": "J Fog. 2026 Feb 3;4(1):2"}
    named = [
        updated_by("retraction"),
        only("pubmed", "fetch", pubmed("", refers("RetractionIn", "J Fog. 2026 Feb 3;4(1):2"))),
        europepmc(commentCorrectionList={"commentCorrection": [entry]}),
    ]
    found: list[Retraction] = retractions_of([msgspec.convert(one, Work) for one in named])
    assert [(one.source, one.notice, one.at) for one in found] == [
        ("crossref", "doi:10.5555/r", "2026-02-03T00:00:00Z"),
        ("pubmed", "pmid:9", "2026 Feb 3"),
        ("europepmc", "pmid:9", "2026 Feb 3"),
    ]
