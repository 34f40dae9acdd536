"""Cases of our own making for what a librarian called wrong and no recording has: notices, relations, dates, cards."""

from typing import Any

import msgspec
import pytest

from patra.ingest.packs.work import Work
from patra.ingest.works.merge import group_works, merge_works
from tests.unit.ingest.packs.bundled.test_mapped_values import crossref, oai, only
from tests.unit.ingest.packs.bundled.test_oai_formats import JATS


def pubmed(inside: str, after: str = "") -> bytes:
    return f"""<PubmedArticleSet><PubmedArticle><MedlineCitation><PMID>1</PMID>
    <DateRevised><Year>2026</Year><Month>01</Month><Day>02</Day></DateRevised>
    <Article><Journal><Title>Annals</Title></Journal><ArticleTitle>Fog</ArticleTitle>{inside}</Article>
    {after}</MedlineCitation></PubmedArticle></PubmedArticleSet>""".encode()


def refers(kind: str) -> str:
    return (
        f'<CommentsCorrectionsList><CommentsCorrections RefType="{kind}"><PMID>9</PMID></CommentsCorrections>'
        "</CommentsCorrectionsList>"
    )


def test_a_doi_that_pubmed_calls_invalid_is_none() -> None:
    wrong = '<ELocationID EIdType="doi" ValidYN="N">10.5555/wrong</ELocationID>'
    right = '<ELocationID EIdType="doi" ValidYN="Y">10.5555/right</ELocationID>'
    assert "doi" not in only("pubmed", "fetch", pubmed(wrong))
    assert only("pubmed", "fetch", pubmed(wrong + right))["doi"] == "10.5555/right"


@pytest.mark.parametrize(
    ("kind", "notice", "retracted"),
    [
        ("RetractionIn", "retraction", True),
        ("RetractedandRepublishedIn", "retraction", True),
        ("ErratumIn", "erratum", None),
        ("CorrectedandRepublishedIn", "erratum", None),
        ("ExpressionOfConcernIn", "concern", None),
        ("CommentIn", None, None),
    ],
)
def test_notices_of_pubmed(kind: str, notice: str | None, retracted: bool | None) -> None:
    found = only("pubmed", "fetch", pubmed("", refers(kind)))
    assert found.get("notices") == ([{"type": notice, "id": "pmid:9"}] if notice else None)
    assert found.get("retracted") is retracted


def test_the_update_of_a_preprint_is_its_article_and_that_of_a_review_is_not() -> None:
    types = "<PublicationTypeList><PublicationType>Preprint</PublicationType></PublicationTypeList>"
    preprint = only("pubmed", "fetch", pubmed(types, refers("UpdateIn")))
    assert preprint["relations"] == [{"type": "is-preprint-of", "id": "pmid:9"}]
    assert "relations" not in only("pubmed", "fetch", pubmed("", refers("UpdateIn")))


def europepmc(**more: Any) -> dict[str, Any]:
    record = {"id": "1", "source": "MED", "pmid": "1", "firstIndexDate": "2026-01-01", "title": "Fog", **more}
    return only("europepmc", "search", msgspec.json.encode({"hitCount": 1, "resultList": {"result": [record]}}))


@pytest.mark.parametrize(
    ("first", "printed", "told", "at", "precision"),
    [
        ("2025-07-01", "2025-07-01", "2025 Jul", "2025-07-01", "month"),
        ("2025-07-01", "2025-07-01", "2025 Jul 1", "2025-07-01", "day"),
        ("2013-03-01", "2013-03-01", "2013 Mar-Apr", "2013-03-01", "month"),
        ("1972-01-01", "1972-01-01", "1972", "1972-01-01", "year"),
        ("2025-06-28", "2025-07-01", "2025 Jul", "2025-06-28", "day"),  # it was on line before
        ("1972-01-01", None, None, "1972-01-01", "year"),  # `lite` does not say
    ],
)
def test_a_date_of_print_is_known_as_far_as_its_text_says(
    first: str, printed: str | None, told: str | None, at: str, precision: str
) -> None:
    info = {"printPublicationDate": printed, "dateOfPublication": told} if printed else {}
    found = europepmc(firstPublicationDate=first, journalInfo=info)
    assert found["issued"] == {"at": f"{at}T00:00:00Z", "precision": precision}


def test_notices_and_preprints_of_europe_pmc() -> None:
    entries = [
        {"id": "9", "source": "MED", "type": "Retraction in"},
        {"id": "PPR7", "source": "PPR", "type": "Erratum in"},
        {"id": "8", "source": "MED", "type": "Comment in"},
        {"id": "7", "source": "MED", "type": "Preprint of"},
        {"id": "PPR6", "source": "PPR", "type": "Preprint in"},
    ]
    found = europepmc(commentCorrectionList={"commentCorrection": entries})
    assert found["notices"] == [{"type": "retraction", "id": "pmid:9"}, {"type": "erratum"}]
    assert found["relations"] == [{"type": "is-preprint-of", "id": "pmid:7"}]
    assert found["retracted"] is True
    assert "retracted" not in europepmc(commentCorrectionList={"commentCorrection": entries[1:]})


@pytest.mark.parametrize(
    ("kind", "parts", "name"),
    [
        ("Personal", {}, "Ada Lovelace"),
        ("Organizational", {}, "Lovelace, Ada"),
        (None, {}, "Lovelace, Ada"),
        (None, {"givenName": "Ada", "familyName": "Lovelace"}, "Ada Lovelace"),
    ],
)
def test_a_person_of_datacite_is_turned_round_and_an_organisation_is_not(
    kind: str | None, parts: dict[str, str], name: str
) -> None:
    creator = {"name": "Lovelace, Ada", "nameType": kind, **parts}
    attributes = {"doi": "10.5555/x", "updated": "2026-01-01T00:00:00Z", "creators": [creator]}
    found = only("datacite", "dois", msgspec.json.encode({"data": [{"id": "10.5555/x", "attributes": attributes}]}))
    assert found["authors"][0]["name"] == name


CARD = """<record xmlns="http://www.loc.gov/MARC21/slim"><datafield tag="020"><subfield code="a">978-1-4842-6700-4 (pbk.)
</subfield></datafield><datafield tag="245"><subfield code="a">Fog :</subfield><subfield code="b">a study /</subfield>
<subfield code="c">by A. Lovelace.</subfield></datafield><datafield tag="100"><subfield code="a">Lovelace, Ada,</subfield>
<subfield code="d">1815-1852.</subfield></datafield><datafield tag="260"><subfield code="a">London :</subfield>
<subfield code="b">Lantern,</subfield><subfield code="c">1843.</subfield></datafield>
<datafield tag="650"><subfield code="a">Weather;</subfield></datafield>
<datafield tag="773"><subfield code="t">Annals of fog,</subfield><subfield code="x">1234-5679</subfield>
<subfield code="v">7</subfield><subfield code="n">2</subfield><subfield code="c">pp. 11–19</subfield></datafield></record>"""


def test_a_catalogue_card_is_read_without_its_punctuation() -> None:
    found = only("oaipmh", "marc", oai(CARD))
    assert (found["title"], found["publisher"], found["container"]) == ("Fog: a study", "Lantern", "Annals of fog")
    assert (found["isbn"], found["issn"], found["keywords"]) == (["9781484267004"], ["1234-5679"], ["Weather"])
    assert (found["volume"], found["issue"], found["pages"]) == ("7", "2", "11-19")
    assert [author["name"] for author in found["authors"]] == ["Ada Lovelace"]
    assert found["issued"] == {"at": "1843-01-01T00:00:00Z", "precision": "year"}


@pytest.mark.parametrize(
    ("inside", "text"),
    [
        ("<title>Abstract</title><p>One.</p><p>Two.</p>", "One. Two."),
        ("<sec><title>Aim</title><p>One.</p></sec><sec><title>Methods</title><p>Two.</p></sec>", "Aim: One. Methods: Two."),
    ],
)  # fmt: skip
def test_the_paragraphs_and_sections_of_an_abstract_in_jats(inside: str, text: str) -> None:
    body = oai(JATS.replace("<abstract><p>Of lamps.</p>", f"<abstract>{inside}"))
    assert only("oaipmh", "jats", body)["abstract"] == text


def test_an_article_in_jats_without_pages_has_a_number_a_subtitle_and_its_type() -> None:
    body = JATS.replace("<fpage>11</fpage><lpage>19</lpage>", "<elocation-id>e77</elocation-id>")
    body = body.replace("</article-title>", "</article-title><subtitle>a review</subtitle>", 1)
    found = only("oaipmh", "jats", oai(body.replace("research-article", "review-article")))
    assert (found["article_number"], found["title"], found["type"]) == ("e77", "Lamps in fog: a review", "review")
    assert "pages" not in found


def test_a_server_of_osf_has_its_name() -> None:
    record = {
        "id": "abcde",
        "attributes": {"title": "x", "date_modified": "2026-01-02T03:04:05"},
        "relationships": {"provider": {"data": {"id": "psyarxiv"}}},
    }
    assert only("osf", "preprints", msgspec.json.encode({"data": [record]}))["container"] == "PsyArXiv"


@pytest.mark.parametrize("name", ["U.S. Department of Education", "St. Martin's Press", "Routledge"])
@pytest.mark.parametrize(
    "address", ["", ". 5 Main Street, Lamp, NY 10010. Tel: 1-2", ". Available from: ED Pubs. P.O. Box 1"]
)
def test_a_publisher_of_eric_is_a_name_without_its_address(name: str, address: str) -> None:
    record = {"id": "ED1", "title": "Fog", "publicationdateyear": 2020, "publisher": name + address}
    body = msgspec.json.encode({"response": {"numFound": 1, "docs": [record]}})
    assert only("eric", "search", body)["publisher"] == name


def test_a_removed_article_of_crossref_is_retracted() -> None:
    notice = {"type": "removal", "DOI": "10.5555/R", "updated": {"date-time": "2026-02-03T00:00:00Z"}}
    assert only("crossref", "works", crossref(**{"updated-by": [notice]}))["retracted"] is True


def test_affiliations_of_datacite_have_their_ror_where_they_are_asked_for() -> None:
    oslo = {
        "name": "University of Oslo",
        "affiliationIdentifier": "https://ror.org/01xtthb56",
        "affiliationIdentifierScheme": "ROR",
    }
    creator = {
        "name": "Fog, Ada",
        "givenName": "Ada",
        "familyName": "Fog",
        "affiliation": [oslo, {"name": "Fog Society"}],
    }
    attributes = {"doi": "10.5555/x", "updated": "2026-01-02T00:00:00Z", "creators": [creator]}
    found = only("datacite", "dois", msgspec.json.encode({"data": [{"id": "10.5555/x", "attributes": attributes}]}))
    [author] = found["authors"]
    assert author["affiliation"] == ["University of Oslo", "Fog Society"]
    assert author["ror"] == ["https://ror.org/01xtthb56"]


def test_a_notice_of_crossref_is_an_erratum_and_a_new_version_is_not() -> None:
    def kind(update: str) -> str:
        return only("crossref", "works", crossref(type="journal-article", **{"update-to": [{"type": update}]}))["type"]

    assert {kind(one) for one in ("retraction", "corrigendum", "expression_of_concern")} == {"erratum"}
    assert kind("new_version") == "article"


def test_crossref_says_what_a_work_is_part_of_and_who_is_junior() -> None:
    found = only(
        "crossref",
        "works",
        crossref(
            relation={
                "is-part-of": [{"id-type": "doi", "id": "10.5555/WHOLE"}],
                "is-same-as": [{"id-type": "doi", "id": "10.5555/b"}],
            },
            author=[{"given": "Sam", "family": "Fog", "suffix": "Jr"}],
            link=[{"URL": "https://fog.org/1", "content-type": "unspecified", "content-version": "vor"}],
        ),
    )
    assert found["relations"] == [
        {"type": "is-identical-to", "id": "doi:10.5555/b"},
        {"type": "is-part-of", "id": "doi:10.5555/whole"},
    ]
    assert found["authors"] == [{"name": "Sam Fog Jr", "given": "Sam", "family": "Fog", "suffix": "Jr"}]
    assert found["full_text"] == [{"url": "https://fog.org/1", "version": "vor"}]


def test_a_misspelt_author_of_pubmed_is_left_out_and_what_was_cited_before_2019_is_there() -> None:
    names = '<Author ValidYN="N"><LastName>Fgo</LastName></Author><Author ValidYN="Y"><LastName>Fog</LastName></Author>'
    found = only("pubmed", "fetch", pubmed(f"<AuthorList>{names}</AuthorList>", refers("Cites")))
    assert [author["name"] for author in found["authors"]] == ["Fog"]
    assert found["references"] == ["pmid:9"]


@pytest.mark.parametrize(
    ("month", "precision"), [("6", "month"), ("June", "month"), ("sep", "month"), ("0", "year"), ("Abril", "year")]
)
def test_the_month_of_doaj_is_a_number_or_a_name(month: str, precision: str) -> None:
    article = {
        "id": "1",
        "last_updated": "2020-11-25T02:27:47Z",
        "bibjson": {"title": "Fog", "year": "2020", "month": month},
    }
    found = only("doaj", "articles", msgspec.json.encode({"total": 1, "results": [article]}))
    assert found["issued"]["precision"] == precision


@pytest.mark.parametrize(
    "said",
    [
        {"type_crossref": "proceedings-article"},
        {"primary_location": {"raw_type": "proceedings-article"}},
        {"primary_location": {"source": {"type": "conference"}}},
    ],
)
def test_a_paper_of_proceedings_is_no_article_in_openalex(said: dict[str, Any]) -> None:
    work = {"id": "https://openalex.org/W1", "updated_date": "2026-01-02T00:00:00", "type": "article", "title": "Fog"}
    body = msgspec.json.encode({"meta": {"count": 1}, "results": [work | said]})
    assert only("openalex", "works", body)["type"] == "conference-paper"


def test_the_venue_of_semantic_scholar_has_its_issns() -> None:
    venue = {"name": "Fog", "issn": "2167-8359", "alternate_issns": ["0028-0836"]}
    found = only(
        "semanticscholar",
        "bulk",
        msgspec.json.encode({"data": [{"paperId": "1", "year": 2020, "publicationVenue": venue}]}),
    )
    assert found["issn"] == ["2167-8359", "0028-0836"]


def test_pages_and_volume_of_semantic_scholar_are_without_white_space() -> None:
    paper = {"paperId": "1", "year": 2020, "journal": {"name": "Fog", "volume": " 7 ", "pages": "\n   11-19\n "}}
    found = only("semanticscholar", "bulk", msgspec.json.encode({"data": [paper]}))
    assert (found["volume"], found["pages"]) == ("7", "11-19")


def test_a_preprint_in_one_index_and_its_article_in_another_are_joined_by_what_pubmed_says() -> None:
    types = "<PublicationTypeList><PublicationType>Preprint</PublicationType></PublicationTypeList>"
    preprint = msgspec.convert(only("pubmed", "fetch", pubmed(types, refers("UpdateIn"))), Work)
    article = msgspec.convert(europepmc(pmid="9", id="9"), Work)
    [group] = group_works([preprint, article])
    assert [(one.by, one.why) for one in merge_works(group).joins] == [("pmid:9", "is-preprint-of")]
