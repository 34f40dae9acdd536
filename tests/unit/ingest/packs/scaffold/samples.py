"""Answers of our own making, in the forms that providers use, with what a person reads off each of them."""

from typing import Any, NamedTuple


class Case(NamedTuple):
    body: str
    query: str
    """What was asked, behind the host."""
    items: str
    id: str
    updated: str
    pagination: dict[str, Any]
    first: dict[str, Any]
    """Some of the first record, as `patra ingest try` must show it."""
    windowed: bool = False
    headers: dict[str, str] = {}  # noqa: RUF012  never changed


NEXT_LINK = Case(
    body="""{"meta": {"total": 3}, "links": {"self": "https://x.org/works", "next": "https://x.org/works?page=2"},
    "data": [
     {"id": 17, "attributes": {"title": "On <i>boats</i>", "doi": "10.5555/AB", "updated": "2026-03-01T10:00:00Z",
      "creators": [{"name": "Lovelace, Ada"}, {"name": "Hopper, Grace"}], "publicationYear": 2026}},
     {"id": 18, "attributes": {"title": "On fog", "doi": "10.5555/AC", "updated": "2026-03-02T10:00:00Z",
      "creators": [{"name": "Noether, Emmy"}], "publicationYear": 2025}}]}""",
    query="/works?query=boats",
    items="$.data",
    id="$.id",
    updated="$.attributes.updated",
    pagination={"type": "URL", "nextUrlPath": "$.links.next"},
    first={
        "id": "17",
        "title": "On boats",
        "doi": "10.5555/ab",
        "updated": "2026-03-01T10:00:00Z",
        "issued": {"at": "2026-01-01T00:00:00Z", "precision": "year"},
        "authors": [
            {"name": "Ada Lovelace", "given": "Ada", "family": "Lovelace"},
            {"name": "Grace Hopper", "given": "Grace", "family": "Hopper"},
        ],
    },
)

CURSOR = Case(
    body="""{"status": "ok", "message": {"total-results": 9, "next-cursor": "DnF1ZXJ5", "items": [
     {"DOI": "10.5555/1", "title": ["Paper boats"], "indexed": {"date-time": "2026-03-01T01:02:03Z"},
      "issued": {"date-parts": [[2026, 2]]}, "author": [{"given": "Ada", "family": "Lovelace"}], "type": "journal-article",
      "container-title": ["Annals of Small Boats"], "URL": "https://doi.org/10.5555/1"},
     {"DOI": "10.5555/2", "title": ["Sea fog"], "indexed": {"date-time": "2026-03-01T02:02:03Z"},
      "issued": {"date-parts": [[null]]}, "author": [{"family": "Hopper"}], "type": "book-chapter",
      "container-title": ["The Fog"], "URL": "https://doi.org/10.5555/2"}]}}""",
    query="/works?filter=from-index-date:2026-03-01,until-index-date:2026-03-02&cursor=*&rows=2&mailto=me@example.org",
    items="$.message.items",
    id="$.DOI",
    updated="$.indexed['date-time']",
    pagination={"type": "TOKEN", "nextTokenPath": "$.message['next-cursor']", "initial": {"token": "*"}, "pageSize": 2},
    first={
        "id": "10.5555/1",
        "title": "Paper boats",
        "doi": "10.5555/1",
        "issued": {"at": "2026-02-01T00:00:00Z", "precision": "month"},
        "authors": [{"given": "Ada", "family": "Lovelace", "name": "Ada Lovelace"}],
        "container": "Annals of Small Boats",
    },
    windowed=True,
)

PAGES = Case(
    body="""{"total": 40, "page": 1, "pageSize": 2, "results": [
     {"id": "a1", "last_updated": "2026-03-01T10:00:00Z", "bibjson": {"title": "One", "year": "2024",
      "author": [{"name": "Ada Lovelace", "affiliation": "Analytical Engines"}], "journal": {"title": "Boats"},
      "abstract": "A long enough abstract to be taken for one, with sixty characters and more of text."}},
     {"id": "b2", "last_updated": "2026-03-02T10:00:00Z", "bibjson": {"title": "Two", "year": "2025",
      "author": [{"name": "Grace Hopper", "affiliation": "Navy"}], "journal": {"title": "Fog"},
      "abstract": "Another abstract that is long enough to be taken for one, whatever else it may be about."}}]}""",
    query="/search/articles?page=1&pageSize=2",
    items="$.results",
    id="$.id",
    updated="$.last_updated",
    pagination={"type": "PAGE", "base1": True, "pageSize": 2},
    first={
        "title": "One",
        "container": "Boats",
        "issued": {"at": "2024-01-01T00:00:00Z", "precision": "year"},
        "authors": [{"name": "Ada Lovelace", "affiliation": ["Analytical Engines"]}],
    },
)

OFFSET = Case(
    body="""{"numFound": 4, "start": 0, "docs": [
     {"docid": 7, "halId_s": "hal-7", "title_s": ["Sur les bateaux"], "modifiedDate_tdate": "2026-03-01T00:00:00Z",
      "doiId_s": "10.5555/x", "authFullName_s": ["Ada Lovelace", "Grace Hopper"]},
     {"docid": 8, "halId_s": "hal-8", "title_s": ["Sur la brume"], "modifiedDate_tdate": "2026-03-01T05:00:00Z",
      "authFullName_s": ["Emmy Noether"]}]}""",
    query="/search/?q=*:*&start=0&rows=2&api_key=very-secret",
    items="$.docs",
    id="$.docid",
    updated="$.modifiedDate_tdate",
    pagination={"type": "OFFSET", "pageSize": 2},
    first={"id": "7", "title": "Sur les bateaux", "doi": "10.5555/x"},
)

LINK_HEADER = Case(
    body="""[{"id": "r1", "name": "Boats, a review", "updated_at": "2026-03-01T00:00:00Z", "html_url": "https://x.org/r1"},
     {"id": "r2", "name": "Fog, a review", "updated_at": "2026-03-02T00:00:00Z", "html_url": "https://x.org/r2"}]""",
    query="/repos?per_page=2",
    items="$",
    id="$.id",
    updated="$.updated_at",
    pagination={"type": "URL", "nextUrlLink": "next"},
    first={"id": "r1", "title": "Boats, a review", "url": "https://x.org/r1"},
    headers={"Link": '<https://x.org/repos?page=2>; rel="next"'},
)

ATOM = Case(
    body="""<?xml version="1.0"?><feed xmlns="http://www.w3.org/2005/Atom"
     xmlns:opensearch="http://a9.com/-/spec/opensearch/1.1/"><title>Results</title>
     <opensearch:totalResults>2</opensearch:totalResults>
     <entry><id>http://arxiv.org/abs/2603.00001v2</id><updated>2026-03-01T10:00:00Z</updated>
      <published>2026-02-01T10:00:00Z</published><title>Boats
      again</title><summary>A long enough summary to be taken for one, with sixty characters and more.</summary>
      <author><name>Ada Lovelace</name></author><author><name>Grace Hopper</name></author>
      <link href="https://arxiv.org/abs/2603.00001v2" rel="alternate"/><link href="https://x.org/pdf" rel="related"/></entry>
     <entry><id>http://arxiv.org/abs/2603.00002v1</id><updated>2026-03-01T11:00:00Z</updated>
      <published>2026-02-02T10:00:00Z</published><title>Fog</title>
      <summary>Another summary that is long enough to be taken for one, whatever it says.</summary>
      <author><name>Emmy Noether</name></author><link href="https://arxiv.org/abs/2603.00002v1" rel="alternate"/></entry></feed>""",
    query="/api/query?search_query=all:boats&start=0&max_results=2",
    items="/a:feed/a:entry",
    id="a:id",
    updated="a:updated",
    pagination={"type": "OFFSET", "pageSize": 2},
    first={
        "title": "Boats again",
        "arxiv": "2603.00001",
        "url": "https://arxiv.org/abs/2603.00001v2",
        "authors": [{"name": "Ada Lovelace"}, {"name": "Grace Hopper"}],
    },
)

OAI = Case(
    body="""<OAI-PMH xmlns="http://www.openarchives.org/OAI/2.0/"><responseDate>2026-03-03T00:00:00Z</responseDate>
     <request verb="ListRecords">https://repository.example.org/oai</request><ListRecords>
     <record><header><identifier>oai:x.org:1</identifier><datestamp>2026-03-01</datestamp></header><metadata>
      <oai_dc:dc xmlns:oai_dc="http://www.openarchives.org/OAI/2.0/oai_dc/" xmlns:dc="http://purl.org/dc/elements/1.1/">
      <dc:title>Boats</dc:title><dc:creator>Lovelace, Ada</dc:creator><dc:date>2025-12</dc:date></oai_dc:dc></metadata></record>
     <record><header status="deleted"><identifier>oai:x.org:2</identifier><datestamp>2026-03-02</datestamp></header></record>
     <resumptionToken completeListSize="7">abc</resumptionToken></ListRecords></OAI-PMH>""",
    query="/oai?verb=ListRecords&metadataPrefix=oai_dc",
    items="//o:record",
    id="o:header/o:identifier",
    updated="o:header/o:datestamp",
    pagination={"type": "TOKEN", "nextTokenPath": "//o:resumptionToken[normalize-space()]"},
    first={
        "id": "oai:x.org:1",
        "title": "Boats",
        "authors": [{"name": "Ada Lovelace", "given": "Ada", "family": "Lovelace"}],
    },
    windowed=True,
)

PLAIN_XML = Case(
    body="""<PubmedArticleSet>
     <PubmedArticle><MedlineCitation><PMID>11</PMID><DateRevised><Year>2026</Year><Month>03</Month><Day>01</Day></DateRevised>
      <Article><ArticleTitle>Boats and <i>keels</i></ArticleTitle><Journal><Title>Boats</Title></Journal>
      <AuthorList><Author><LastName>Lovelace</LastName><ForeName>Ada</ForeName></Author></AuthorList></Article></MedlineCitation>
      <PubmedData><ArticleIdList><ArticleId IdType="pubmed">11</ArticleId><ArticleId IdType="doi">10.5555/b</ArticleId>
      </ArticleIdList></PubmedData></PubmedArticle>
     <PubmedArticle><MedlineCitation><PMID>12</PMID><DateRevised><Year>2026</Year><Month>03</Month><Day>02</Day></DateRevised>
      <Article><ArticleTitle>Fog</ArticleTitle><Journal><Title>Fog</Title></Journal>
      <AuthorList><Author><LastName>Hopper</LastName><ForeName>Grace</ForeName></Author></AuthorList></Article></MedlineCitation>
      <PubmedData><ArticleIdList><ArticleId IdType="pubmed">12</ArticleId><ArticleId IdType="doi">10.5555/f</ArticleId>
      </ArticleIdList></PubmedData></PubmedArticle></PubmedArticleSet>""",
    query="/efetch?db=pubmed&retmode=xml&retstart=0&retmax=2",
    items="/PubmedArticleSet/PubmedArticle",
    id="MedlineCitation/PMID",
    updated="translate(normalize-space(concat(MedlineCitation/DateRevised[1]/Year, ' ', "
    "MedlineCitation/DateRevised[1]/Month, ' ', MedlineCitation/DateRevised[1]/Day)), ' ', '-')",
    pagination={"type": "OFFSET", "pageSize": 2},
    first={
        "id": "11",
        "pmid": "11",
        "doi": "10.5555/b",
        "title": "Boats and keels",
        "updated": "2026-03-01T00:00:00Z",
        "container": "Boats",
        "authors": [{"given": "Ada", "family": "Lovelace", "name": "Ada Lovelace"}],
    },
)

TOKEN_IN_NUMBERS = Case(
    body="""{"total": 300, "offset": 0, "next": 2, "data": [
     {"paperId": "p1", "title": "Boats", "publicationDate": "2026-03-01", "authors": [{"authorId": "1", "name": "A L"}]},
     {"paperId": "p2", "title": "Fog", "publicationDate": "2026-03-02", "authors": [{"authorId": "2", "name": "G H"}]}]}""",
    query="/graph/v1/paper/search?query=boats",
    items="$.data",
    id="$.paperId",
    updated="$.publicationDate",
    pagination={"type": "TOKEN", "nextTokenPath": "$.next"},
    first={"id": "p1", "title": "Boats", "authors": [{"name": "A L"}]},
)

CASES = {
    "next link in the body": NEXT_LINK,
    "cursor": CURSOR,
    "page numbers": PAGES,
    "offset": OFFSET,
    "Link header": LINK_HEADER,
    "Atom": ATOM,
    "OAI-PMH": OAI,
    "XML of one's own": PLAIN_XML,
    "next as a number": TOKEN_IN_NUMBERS,
}
