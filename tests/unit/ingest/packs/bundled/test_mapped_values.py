"""Values of records of our own making, in the form that providers send, where no recording has the case."""

from typing import Any

import msgspec
import pytest

from patra.ingest.extraction.body_parser import Document, parse
from patra.ingest.extraction.classify import Action, Classifier
from patra.ingest.extraction.mapping import Flaw, Mapper
from patra.ingest.extraction.response import Identity, Reader
from patra.ingest.http.client import Answer
from patra.ingest.packs import bundled
from patra.ingest.packs.compiler import Overrides, compile_spec
from patra.ingest.packs.spec import Leg
from patra.ingest.packs.work import TYPES, Origin, work_of
from patra.ingest.vocabulary.codes import Operation

GIVEN = {
    "oaipmh": {"baseUrl": "https://repository.example.org/oai"},
    "dblp": {"query": "fog"},
    "eric": {"search": "fog"},
}


def leg(source: str, endpoint: str) -> Leg:
    for operation in (Operation.BACKFILL, Operation.HARVEST, Operation.UPDATE):
        spec = compile_spec(bundled.pack(source), endpoint, operation, Overrides(params=GIVEN.get(source, {}))).spec
        if spec is not None:
            return spec.detail if operation is Operation.UPDATE and spec.detail is not None else spec
    raise AssertionError(f"{source} {endpoint} does not compile")


def works(source: str, endpoint: str, body: bytes) -> list[dict[str, Any]]:
    at = leg(source, endpoint)
    document = parse(body, at.response.format)
    assert isinstance(document, Document), document
    reader, mapper = Reader(at), Mapper(at.mapping.output, at.response, at.expr, at.params)
    out: list[dict[str, Any]] = []
    for item in reader.page(document, {}, "https://example.org").items or []:
        identity, fields = reader.identity(item), mapper(item, 0, {"source": source})
        assert isinstance(identity, Identity), identity
        assert not isinstance(fields, Flaw), fields
        origin = Origin(
            source=source, endpoint=endpoint, id=identity.id, updated_at=identity.updated_at, deleted=identity.deleted
        )
        out.append(msgspec.to_builtins(work_of(fields, origin)))
    return out


def only(source: str, endpoint: str, body: bytes) -> dict[str, Any]:
    [found] = works(source, endpoint, body)
    return found


def oai(metadata: str, prefix: str = "") -> bytes:
    return f"""<OAI-PMH xmlns="http://www.openarchives.org/OAI/2.0/"><ListRecords><record><header>
    <identifier>oai:x:1</identifier><datestamp>2026-01-02</datestamp></header><metadata>{prefix}{metadata}</metadata>
    </record></ListRecords></OAI-PMH>""".encode()


def dublin_core(elements: str) -> bytes:
    return oai(
        '<oai_dc:dc xmlns:oai_dc="http://www.openarchives.org/OAI/2.0/oai_dc/" '
        f'xmlns:dc="http://purl.org/dc/elements/1.1/">{elements}</oai_dc:dc>'
    )


def crossref(**work: Any) -> bytes:
    whole = {"DOI": "10.5555/x", "indexed": {"date-time": "2026-01-01T00:00:00Z"}, "type": "journal-article", **work}
    return msgspec.json.encode({"message": {"items": [whole]}})


BOOK = b"""<PubmedArticleSet><PubmedBookArticle><BookDocument><PMID Version="1">20301425</PMID>
<ArticleIdList><ArticleId IdType="bookaccession">NBK1247</ArticleId></ArticleIdList>
<Book><Publisher><PublisherName>University of Washington, Seattle</PublisherName></Publisher>
<BookTitle book="gene">GeneReviews</BookTitle><PubDate><Year>1993</Year></PubDate>
<AuthorList Type="editors"><Author><LastName>Adam</LastName><ForeName>Margaret P</ForeName></Author></AuthorList></Book>
%s<Language>eng</Language>%s<PublicationType UI="D016454">Review</PublicationType>
<DateRevised><Year>2025</Year><Month>03</Month><Day>20</Day></DateRevised></BookDocument>
<PubmedBookData/></PubmedBookArticle></PubmedArticleSet>"""
CHAPTER = BOOK % (
    b'<ArticleTitle book="gene" part="brca1">BRCA1- and BRCA2-Associated Cancer</ArticleTitle>',
    b'<AuthorList Type="authors"><Author><LastName>Petrucelli</LastName><ForeName>Nancie</ForeName></Author></AuthorList>',
)


def test_a_chapter_of_an_ncbi_book_has_its_authors_its_accession_and_its_book() -> None:
    found = only("pubmed", "fetch", CHAPTER)
    assert [author["name"] for author in found["authors"]] == ["Nancie Petrucelli"]
    assert (found["type"], found["container"], found["ids"]) == ("chapter", "GeneReviews", {"bookaccession": "NBK1247"})


def test_a_whole_ncbi_book_has_its_editors_and_no_container() -> None:
    found = only("pubmed", "fetch", BOOK % (b"", b""))
    assert found["editors"] == [{"name": "Margaret P Adam", "given": "Margaret P", "family": "Adam"}]
    assert "authors" not in found
    assert (found["type"], found["title"], "container" in found) == ("book", "GeneReviews", False)


def test_a_chapter_has_its_own_authors_and_the_editors_of_its_book() -> None:
    found = only("pubmed", "fetch", CHAPTER)
    assert ([one["name"] for one in found["authors"]], [one["name"] for one in found["editors"]]) == (
        ["Nancie Petrucelli"],
        ["Margaret P Adam"],
    )
    part = crossref(
        type="book-chapter", author=[{"family": "Lovelace"}], editor=[{"given": "Grace", "family": "Hopper"}]
    )
    assert [one["name"] for one in only("crossref", "works", part)["editors"]] == ["Grace Hopper"]


def test_who_edits_is_no_author_in_inspire_dblp_and_orcid() -> None:
    people = [{"full_name": "Hopper, Grace", "inspire_roles": ["editor"]}, {"full_name": "Lovelace, Ada"}]
    inspire = {"hits": {"hits": [{"id": "1", "updated": "2026-01-01T00:00:00+00:00", "metadata": {
        "control_number": 1, "titles": [{"title": "Fog"}], "authors": [
            *people, {"full_name": "Babbage, Charles", "inspire_roles": ["supervisor"]}],
    }}], "total": 1}}  # fmt: skip
    found = only("inspire", "literature", msgspec.json.encode(inspire))
    assert [[one["name"] for one in found[who]] for who in ("authors", "editors")] == [
        ["Ada Lovelace"],
        ["Grace Hopper"],
    ]

    hit = {"info": {"key": "conf/fog/2026", "title": "Fog.", "type": "Editorship", "year": "2026",
                    "authors": {"author": [{"text": "Grace Hopper 0001"}]}}}  # fmt: skip
    dblp = {"result": {"hits": {"@total": "1", "@sent": "1", "@first": "0", "hit": [hit]}}}
    found = only("dblp", "search", msgspec.json.encode(dblp))
    assert ("authors" in found, found["editors"]) == (False, [{"name": "Grace Hopper"}])

    roles = [{"credit-name": {"value": name}, "contributor-attributes": {"contributor-role": role}}
             for name, role in (("Grace Hopper", "EDITOR"), ("Ada Lovelace", "AUTHOR"), ("Mary Somerville", None))]  # fmt: skip
    orcid = {"path": "/0000-0002-1825-0097/work/1", "last-modified-date": {"value": 1767225600000}, "title": {"title": {"value": "Fog"}},
             "contributors": {"contributor": roles}}  # fmt: skip
    found = only("orcid", "work", msgspec.json.encode(orcid))
    assert [[one["name"] for one in found[who]] for who in ("authors", "editors")] == [
        ["Ada Lovelace", "Mary Somerville"], ["Grace Hopper"],
    ]  # fmt: skip


def test_laboratories_of_hal_go_to_the_author_that_they_name() -> None:
    packed = "7-8_FacetSep_Grace Hopper_JoinSep_9_FacetSep_Fog Laboratory [Brest]"
    twice = [packed, packed.replace("Grace Hopper", "Ada Lovelace"), packed.replace("Fog", "Steam")]
    doc = {"halId_s": "hal-1", "modifiedDate_tdate": "2026-01-01T00:00:00Z", "title_s": ["Fog"],
           "authFullName_s": ["Ada Lovelace", "Grace Hopper", "Ada Lovelace"], "authIdHasPrimaryStructure_fs": twice,
           "scientificEditor_s": ["Somerville, Mary ; Charles Babbage"]}  # fmt: skip
    found = only("hal", "search", msgspec.json.encode({"response": {"numFound": 1, "docs": [doc]}}))
    assert [author.get("affiliation") for author in found["authors"]] == [
        None, ["Fog Laboratory [Brest]", "Steam Laboratory [Brest]"], None,
    ]  # fmt: skip
    assert [one["name"] for one in found["editors"]] == ["Mary Somerville", "Charles Babbage"]


def test_contributors_are_the_authors_where_no_creator_is_named() -> None:
    both = dublin_core("<dc:creator>Lovelace, Ada</dc:creator><dc:contributor>Hopper, Grace</dc:contributor>")
    one = dublin_core("<dc:title>x</dc:title><dc:contributor>Hopper, Grace</dc:contributor>")
    assert [author["name"] for author in only("oaipmh", "records", both)["authors"]] == ["Ada Lovelace"]
    assert [author["name"] for author in only("oaipmh", "records", one)["authors"]] == ["Grace Hopper"]


def test_an_audience_is_no_abstract() -> None:
    alone = dublin_core("<dc:title>x</dc:title><dc:description>International audience</dc:description>")
    beside = dublin_core("<dc:description>International audience</dc:description><dc:description>Fog.</dc:description>")
    assert "abstract" not in only("oaipmh", "records", alone)
    assert only("oaipmh", "records", beside)["abstract"] == "Fog."


def test_an_alternative_identifier_is_the_doi_and_several_relations_are_none() -> None:
    hal = "<dc:title>x</dc:title><dc:relation>info:eu-repo/semantics/altIdentifier/doi/10.1016/J.X.1</dc:relation>"
    dryad = "<dc:title>x</dc:title><dc:relation>doi:10.5061/a/1</dc:relation><dc:relation>doi:10.5061/a/2</dc:relation>"
    assert only("oaipmh", "records", dublin_core(hal))["doi"] == "10.1016/j.x.1"
    assert "doi" not in only("oaipmh", "records", dublin_core(dryad))


def test_a_type_without_its_space_is_an_article() -> None:
    found = only("oaipmh", "records", dublin_core("<dc:title>x</dc:title><dc:type>JournalArticle</dc:type>"))
    assert found["type"] == "article"


def test_the_container_of_a_chapter_is_its_book() -> None:
    titles = {"container-title": ["Lecture Notes in Computer Science", "Advances in Fog"]}
    assert only("crossref", "works", crossref(type="book-chapter", **titles))["container"] == "Advances in Fog"
    assert only("crossref", "works", crossref(**titles))["container"] == "Lecture Notes in Computer Science"


def test_the_licence_is_that_of_the_version_of_record() -> None:
    tdm = {"content-version": "tdm", "URL": "https://www.elsevier.com/tdm/userlicense/1.0/"}
    vor = {"content-version": "vor", "URL": "http://creativecommons.org/licenses/by/4.0/"}
    assert only("crossref", "works", crossref(license=[tdm, vor]))["license"] == "cc-by-4.0"
    assert "license" not in only("crossref", "works", crossref(license=[tdm]))


def test_a_formula_of_a_title_is_written_without_its_layout() -> None:
    title = "On <mml:math><mml:mrow>\n  <mml:msub>\n <mml:mi>H</mml:mi> <mml:mn>2</mml:mn></mml:msub>\n</mml:mrow></mml:math> gas"
    assert only("crossref", "works", crossref(title=[title]))["title"] == "On H2 gas"


def test_a_colon_is_no_author() -> None:
    authors = "".join(f"<author><keyname>{name}</keyname></author>" for name in ("LIGO Collaboration", ":", "Abbott"))
    body = oai(f'<arXiv xmlns="http://arxiv.org/OAI/arXiv/"><id>2601.00001</id><authors>{authors}</authors></arXiv>')
    assert [one["name"] for one in only("arxiv", "oai", body)["authors"]] == ["LIGO Collaboration", "Abbott"]


@pytest.mark.parametrize(
    ("id_", "created", "updated", "at", "precision"),
    [
        ("2507.00001", "2025-06-30", "2025-07-02", "2025-06-30", "day"),  # sent on the eve of the month of its id
        ("2507.00001", "2026-01-05", "2026-01-06", "2025-07-01", "month"),
        ("astro-ph/9901001", "2003-01-05", "2003-01-06", "1999-01-01", "month"),
        ("math/0601001", "2006-01-01", None, "2006-01-01", "day"),
    ],
)
def test_the_month_of_an_arxiv_id_bounds_the_date(
    id_: str, created: str, updated: str | None, at: str, precision: str
) -> None:
    later = f"<updated>{updated}</updated>" if updated else ""
    body = oai(f'<arXiv xmlns="http://arxiv.org/OAI/arXiv/"><id>{id_}</id><created>{created}</created>{later}</arXiv>')
    assert only("arxiv", "oai", body)["issued"] == {"at": f"{at}T00:00:00Z", "precision": precision}


@pytest.mark.parametrize(
    ("month", "precision"), [("0", "year"), ("00", "year"), ("13", "year"), ("4", "month"), ("04", "month")]
)
def test_month_zero_of_doaj_is_no_month(month: str, precision: str) -> None:
    record = {"id": "1", "last_updated": "2026-01-01T00:00:00Z", "bibjson": {"year": "2020", "month": month}}
    found = only("doaj", "articles", msgspec.json.encode({"results": [record]}))
    assert found["issued"]["precision"] == precision


@pytest.mark.parametrize(
    ("source", "endpoint", "body", "licence"),
    [
        ("semanticscholar", "bulk", {"data": [{"paperId": "1", "year": 2020, "openAccessPdf": {"license": "CCBYNCND"}}]}, "cc-by-nc-nd"),
        ("semanticscholar", "bulk", {"data": [{"paperId": "1", "year": 2020, "openAccessPdf": {"license": "CCBY"}}]}, "cc-by"),
        ("zenodo", "records", {"hits": {"hits": [{"id": 1, "updated": "2026-01-01T00:00:00Z", "metadata": {"title": "x", "license": {"id": "cc-zero"}}}]}}, "cc0"),
    ],
)  # fmt: skip
def test_a_licence_in_the_spelling_of_its_provider(source: str, endpoint: str, body: Any, licence: str) -> None:
    assert only(source, endpoint, msgspec.json.encode(body))["license"] == licence


@pytest.mark.parametrize(
    ("general", "own", "type_"),
    [
        ("Text", "Dissertation", "thesis"),
        ("Text", "Journal Article", "article"),
        ("Text", "", "other"),
        ("Dataset", "Book", "dataset"),
    ],
)
def test_a_text_of_datacite_is_what_its_depositor_calls_it(general: str, own: str, type_: str) -> None:
    types = {"resourceTypeGeneral": general, "resourceType": own}
    record = {"id": "10.5555/x", "attributes": {"doi": "10.5555/x", "updated": "2026-01-01T00:00:00Z", "types": types}}
    assert only("datacite", "dois", msgspec.json.encode({"data": [record]}))["type"] == type_


def test_an_undefined_field_of_solr_is_the_query_that_is_wrong() -> None:
    body = b'{"response-code":500,"developer-message":"Error from server: undefined field: \\"keywrd\\""}'
    answer = Answer(status=500, headers={}, body=body, url="https://pub.orcid.org", elapsed=1, wire_bytes=1)
    verdict, _ = Classifier(leg("orcid", "people")).judge(answer, 0)
    assert (verdict.action, verdict.level) == (Action.FAIL, "L2")


@pytest.mark.parametrize(
    ("body", "action", "level"),
    [
        (b'{"error": "Rate limit exceeded", "message": "You have used your daily budget"}', Action.RETRY, "L1"),
        (b'{"error": "Forbidden", "message": "from_updated_date needs a paid plan"}', Action.FAIL, "L2"),
    ],
)
def test_a_403_of_openalex_does_not_halt_it(body: bytes, action: Action, level: str) -> None:
    headers = {"content-type": "application/json"}
    answer = Answer(status=403, headers=headers, body=body, url="https://api.openalex.org", elapsed=1, wire_bytes=1)
    verdict, _ = Classifier(leg("openalex", "works")).judge(answer, 0)
    assert (verdict.action, verdict.level) == (action, level)


def test_a_cut_list_of_authors_says_so() -> None:
    work = {"id": "https://openalex.org/W1", "updated_date": "2026-01-01", "is_authors_truncated": True}
    assert only("openalex", "works", msgspec.json.encode({"results": [work]}))["authors_truncated"] is True
    whole = msgspec.json.encode({"results": [{**work, "is_authors_truncated": False}]})
    assert "authors_truncated" not in only("openalex", "works", whole)


@pytest.mark.parametrize(
    ("author", "names"),
    [
        ({"@pid": "1", "text": "Ada Lovelace 0001"}, ["Ada Lovelace"]),
        (
            [{"@pid": "1", "text": "Ada Lovelace"}, {"@pid": "2", "text": "Grace Hopper 0002"}],
            ["Ada Lovelace", "Grace Hopper"],
        ),
    ],
)
def test_one_author_of_dblp_is_an_object_and_several_are_a_list(author: Any, names: list[str]) -> None:
    hit = {"info": {"key": "a/b", "year": "2020", "title": "Fog.", "authors": {"author": author}}}
    found = only("dblp", "search", msgspec.json.encode({"result": {"hits": {"@total": "1", "hit": [hit]}}}))
    assert ([one["name"] for one in found["authors"]], found["title"]) == (names, "Fog")


def test_a_withdrawn_preprint_of_osf_is_retracted_and_names_its_article() -> None:
    attributes = {
        "title": "Fog &amp; lamps", "date_modified": "2026-01-02T03:04:05.000006", "date_published": "2026-01-01T00:00:00",
        "date_withdrawn": "2026-01-02T00:00:00", "doi": "10.5555/J.1",
    }  # fmt: skip
    record = {
        "id": "abcde",
        "attributes": attributes,
        "links": {"preprint_doi": "https://doi.org/10.31234/osf.io/abcde"},
    }
    body = {"data": [record], "links": {"meta": {"total": 1}}}
    found = only("osf", "preprints", msgspec.json.encode(body))
    assert (found["doi"], found["title"], found["retracted"]) == ("10.31234/osf.io/abcde", "Fog & lamps", True)
    assert found["relations"] == [{"type": "is-preprint-of", "id": "doi:10.5555/j.1"}]


def test_the_issn_of_a_container_of_datacite() -> None:
    container = {"identifier": "1234-567x", "identifierType": "ISSN", "title": "Annals of Fog", "volume": "3"}
    attributes = {"doi": "10.5555/x", "updated": "2026-01-01T00:00:00Z", "container": container}
    found = only("datacite", "dois", msgspec.json.encode({"data": [{"id": "10.5555/x", "attributes": attributes}]}))
    assert (found["issn"], found["volume"], found["container"]) == (["1234-567X"], "3", "Annals of Fog")


def test_relations_notices_and_affiliations_of_crossref() -> None:
    found = only(
        "crossref",
        "works",
        crossref(
            relation={
                "is-preprint-of": [{"id-type": "doi", "id": "10.5555/J.1", "asserted-by": "subject"}],
                "has-version": [{"id-type": "doi", "id": "10.5555/x.v2"}, {"id-type": "uri", "id": "https://x.org"}],
                "has-review": [{"id-type": "doi", "id": "10.5555/review"}],
            },
            author=[
                {
                    "given": "Ada",
                    "family": "Lovelace",
                    "affiliation": [{"name": "Oslo", "id": [{"id": "https://ror.org/01xtthb56", "id-type": "ROR"}]}],
                }
            ],
            **{
                "updated-by": [
                    {"type": "retraction", "DOI": "10.5555/R", "updated": {"date-time": "2026-02-03T00:00:00Z"}}
                ]
            },
        ),
    )
    assert found["relations"] == [
        {"type": "is-preprint-of", "id": "doi:10.5555/j.1"},
        {"type": "has-version", "id": "doi:10.5555/x.v2"},
    ]
    assert found["notices"] == [{"type": "retraction", "id": "doi:10.5555/r", "at": "2026-02-03T00:00:00Z"}]
    assert (found["retracted"], found["authors"][0]["ror"]) == (True, ["https://ror.org/01xtthb56"])


def test_grants_headings_and_notices_of_pubmed() -> None:
    body = b"""<PubmedArticleSet><PubmedArticle><MedlineCitation><PMID>1</PMID>
    <DateRevised><Year>2026</Year><Month>01</Month><Day>02</Day></DateRevised>
    <Article><Journal><ISSN>1234-5678</ISSN><Title>Annals</Title></Journal><ArticleTitle>Fog</ArticleTitle>
    <GrantList><Grant><GrantID>R01</GrantID><Agency>NIH</Agency></Grant></GrantList></Article>
    <MedlineJournalInfo><ISSNLinking>1234-5678</ISSNLinking></MedlineJournalInfo>
    <CommentsCorrectionsList><CommentsCorrections RefType="RetractionIn"><PMID>9</PMID></CommentsCorrections>
    <CommentsCorrections RefType="CommentIn"><PMID>8</PMID></CommentsCorrections></CommentsCorrectionsList>
    <MeshHeadingList><MeshHeading><DescriptorName>Weather</DescriptorName></MeshHeading></MeshHeadingList>
    </MedlineCitation></PubmedArticle></PubmedArticleSet>"""
    found = only("pubmed", "fetch", body)
    assert found["funders"] == [{"name": "NIH", "awards": ["R01"]}]
    assert (found["mesh"], found["issn"]) == (["Weather"], ["1234-5678"])
    assert (found["notices"], found["retracted"]) == ([{"type": "retraction", "id": "pmid:9"}], True)


def test_the_full_record_of_europe_pmc() -> None:
    record = {
        "id": "1", "source": "MED", "firstIndexDate": "2026-01-01", "title": "Fog", "citedByCount": 3, "pageInfo": "1-9",
        "journalInfo": {"volume": "2", "issue": "1", "journal": {"title": "Annals", "issn": "1234-5678", "essn": "2345-6789"}},
        "keywordList": {"keyword": ["fog"]}, "meshHeadingList": {"meshHeading": [{"descriptorName": "Weather"}]},
        "grantsList": {"grant": [{"grantId": "G1", "agency": "Wellcome"}]},
        "fullTextUrlList": {"fullTextUrl": [{"documentStyle": "pdf", "url": "https://europepmc.org/1.pdf"}]},
    }  # fmt: skip
    found = only("europepmc", "search", msgspec.json.encode({"hitCount": 1, "resultList": {"result": [record]}}))
    assert (found["volume"], found["issue"], found["pages"]) == ("2", "1", "1-9")
    assert (found["issn"], found["mesh"], found["citations"]) == (["1234-5678", "2345-6789"], ["Weather"], {"count": 3})
    assert found["funders"] == [{"name": "Wellcome", "awards": ["G1"]}]
    assert found["full_text"] == [{"url": "https://europepmc.org/1.pdf", "type": "application/pdf"}]


def test_grants_and_relations_of_datacite_and_openalex() -> None:
    attributes = {
        "doi": "10.5555/x", "updated": "2026-01-01T00:00:00Z",
        "fundingReferences": [{"funderName": "ERC", "funderIdentifier": "10.13039/501100000781", "awardNumber": 7}],
        "relatedIdentifiers": [
            {"relationType": "IsVersionOf", "relatedIdentifier": "10.5555/X", "relatedIdentifierType": "DOI"},
            {"relationType": "References", "relatedIdentifier": "10.5555/cited", "relatedIdentifierType": "DOI"},
        ],
    }  # fmt: skip
    one = only("datacite", "dois", msgspec.json.encode({"data": [{"id": "10.5555/x", "attributes": attributes}]}))
    assert one["relations"] == [{"type": "is-version-of", "id": "doi:10.5555/x"}]
    assert one["references"] == ["doi:10.5555/cited"]
    assert one["funders"][0]["name"] == "ERC"
    work = {
        "id": "https://openalex.org/W1", "updated_date": "2026-01-01", "biblio": {"first_page": "7", "last_page": "7"},
        "grants": [{"funder": "https://openalex.org/F1", "funder_display_name": "ERC", "award_id": None}],
        "locations": [{"pdf_url": "https://x.org/1.pdf", "version": "acceptedVersion"}],
    }  # fmt: skip
    two = only("openalex", "works", msgspec.json.encode({"results": [work]}))
    assert (two["pages"], two["funders"]) == ("7", [{"name": "ERC", "id": "https://openalex.org/F1"}])
    assert two["full_text"] == [{"url": "https://x.org/1.pdf", "type": "application/pdf", "version": "am"}]


@pytest.mark.parametrize(
    ("comments", "abstract", "withdrawn"),
    [
        ("This paper has been withdrawn by the author due to an error in equation (4)", "Fog.", True),
        ("Withdrawn; superseded by 2601.00002", "Fog.", True),
        ("12 pages", "This paper has been withdrawn by the authors.", True),
        ("12 pages, on funds that were withdrawn from banks", "Fog is withdrawn from lakes.", False),
        ("12 pages", "Fog.", False),
    ],
)
def test_arxiv_says_in_words_that_a_preprint_was_withdrawn(comments: str, abstract: str, withdrawn: bool) -> None:
    inside = f"<id>2601.00001</id><title>Fog</title><comments>{comments}</comments><abstract>{abstract}</abstract>"
    found = only("arxiv", "oai", oai(f'<arXiv xmlns="http://arxiv.org/OAI/arXiv/">{inside}</arXiv>'))
    assert found.get("retracted", False) is withdrawn
    entry = (
        '<feed xmlns="http://www.w3.org/2005/Atom" xmlns:x="http://arxiv.org/schemas/atom"><entry>'
        f"<id>http://arxiv.org/abs/2601.00001v2</id><updated>2026-01-02T00:00:00Z</updated><title>Fog</title>"
        f"<summary>{abstract}</summary><x:comment>{comments}</x:comment></entry></feed>"
    )
    assert only("arxiv", "query", entry.encode()).get("retracted", False) is withdrawn


def test_inspire_and_datacite_say_that_a_work_was_withdrawn() -> None:
    hit = {"id": "1", "updated": "2026-01-01T00:00:00+00:00"}
    for withdrawn in (True, False):
        metadata = {"titles": [{"title": "Fog"}], **({"withdrawn": True} if withdrawn else {})}
        body = {"hits": {"hits": [{**hit, "metadata": metadata}], "total": 1}}
        assert only("inspire", "literature", msgspec.json.encode(body)).get("retracted", False) is withdrawn
        dates = [{"date": "2026-01-01", "dateType": "Withdrawn" if withdrawn else "Issued"}]
        attributes = {
            "doi": "10.5555/1",
            "titles": [{"title": "Fog"}],
            "updated": "2026-01-01T00:00:00Z",
            "dates": dates,
        }
        listed = {"data": [{"id": "10.5555/1", "attributes": attributes}]}
        assert only("datacite", "dois", msgspec.json.encode(listed)).get("retracted", False) is withdrawn


def test_editors_of_a_volume_in_ads() -> None:
    doc = {"bibcode": "2026Fog..1", "title": ["Fog"], "author": ["Lovelace, A."], "editor": ["Hopper, G."],
           "update_timestamp": "2026-01-01T00:00:00Z", "doctype": "inproceedings"}  # fmt: skip
    found = only("ads", "search", msgspec.json.encode({"response": {"numFound": 1, "docs": [doc]}}))
    assert [[one["name"] for one in found[who]] for who in ("authors", "editors")] == [["A. Lovelace"], ["G. Hopper"]]


def test_a_subtitle_follows_its_title_and_no_second_sign() -> None:
    for title, whole in (("Why fog?", "Why fog? A study"), ("Fog", "Fog: A study")):
        assert only("crossref", "works", crossref(title=[title], subtitle=["A study"]))["title"] == whole
        titles = [{"title": "A study", "titleType": "Subtitle"}, {"title": "Nebel", "titleType": "TranslatedTitle"},
                  {"title": title, "titleType": None}]  # fmt: skip
        attributes = {"doi": "10.5555/1", "titles": titles, "updated": "2026-01-01T00:00:00Z"}
        listed = {"data": [{"id": "10.5555/1", "attributes": attributes}]}
        assert only("datacite", "dois", msgspec.json.encode(listed))["title"] == whole
    alone = {
        "doi": "10.5555/1",
        "titles": [{"title": "Nebel", "titleType": "TranslatedTitle"}],
        "updated": "2026-01-01T00:00:00Z",
    }
    assert (
        only("datacite", "dois", msgspec.json.encode({"data": [{"id": "1", "attributes": alone}]}))["title"] == "Nebel"
    )


def test_a_source_of_open_journal_systems_is_a_journal_with_its_volume_and_its_issns() -> None:
    sources = ["Annals of Fog; Vol. 7 No. 2 (2012): Lamps; 23-44", "1234-5679", "0378-5955"]
    elements = "".join(f"<dc:source>{source}</dc:source>" for source in sources)
    found = only("oaipmh", "records", dublin_core(f"<dc:title>x</dc:title>{elements}"))
    assert [found[name] for name in ("container", "volume", "issue", "pages", "issn")] == [
        "Annals of Fog", "7", "2", "23-44", ["1234-5679", "0378-5955"],
    ]  # fmt: skip
    alone = only("oaipmh", "records", dublin_core("<dc:title>x</dc:title><dc:source>1234-5679</dc:source>"))
    assert (alone["issn"], "container" in alone) == (["1234-5679"], False)


CROSSREF_TYPES = """
book book-chapter book-part book-section book-series book-set book-track component database dataset dissertation edited-book
grant journal journal-article journal-issue journal-volume monograph other peer-review posted-content proceedings
proceedings-article proceedings-series reference-book reference-entry report report-component report-series standard
standard-series
"""
OPENALEX_TYPES = """
article book book-chapter dataset dissertation editorial erratum grant letter libguides other paratext peer-review preprint
reference-entry report retraction review software standard supplementary-materials
"""
DATACITE_TYPES = """
Audiovisual Award Book BookChapter Collection ComputationalNotebook ConferencePaper ConferenceProceeding DataPaper Dataset
Dissertation Event Image Instrument InteractiveResource Journal JournalArticle Model Other OutputManagementPlan PeerReview
PhysicalObject Poster Preprint Presentation Project Report Service Software Sound Standard StudyRegistration Text Workflow
"""


def test_every_type_that_three_providers_document_has_a_word_of_the_common_shape() -> None:
    unknown: set[str] = set()
    for kind in CROSSREF_TYPES.split():
        unknown |= {only("crossref", "works", crossref(type=kind))["type"]} - set(TYPES)
    for kind in OPENALEX_TYPES.split():
        listed = {
            "results": [{"id": "https://openalex.org/W1", "updated_date": "2026-01-01", "title": "x", "type": kind}]
        }
        unknown |= {only("openalex", "works", msgspec.json.encode(listed))["type"]} - set(TYPES)
    for kind in DATACITE_TYPES.split():
        attributes = {"doi": "10.5555/1", "updated": "2026-01-01T00:00:00Z", "types": {"resourceTypeGeneral": kind}}
        listed = {"data": [{"id": "10.5555/1", "attributes": attributes}]}
        unknown |= {only("datacite", "dois", msgspec.json.encode(listed))["type"]} - set(TYPES)
    assert unknown == set()
