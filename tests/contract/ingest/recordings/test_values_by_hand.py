"""Single values that packs once mapped wrongly, each read by hand from the raw answer."""

from typing import Any

import msgspec
import pytest

from patra.ingest.packs.work import Work
from tests.contract.ingest.recordings.shelf import needed, read, recording

pytestmark = needed


def work(source: str, endpoint: str, name: str, which: int | str) -> Work:
    works = [one.work for one in read(source, endpoint, name) if one.work is not None]
    return works[which] if isinstance(which, int) else next(one for one in works if one.id == which)


VALUES: list[tuple[str, str, str, int | str, dict[str, Any]]] = [
    # Harvard's repository names the DOI of the article among the relations, with the journal and a link to PMC
    ("oaipmh", "records", "oaipmh/025", "oai:dash.harvard.edu:1/10060087", {"doi": "10.2337/dc10-1547"}),
    ("oaipmh", "records", "oaipmh/025", "oai:dash.harvard.edu:1/10060078", {"doi": "10.1073/pnas.1016693108"}),
    ("oaipmh", "records", "oaipmh/025", "oai:dash.harvard.edu:1/10060083", {"doi": None}),
    ("oaipmh", "records", "datacite/018", "oai:oai.datacite.org:1543868", {"type": "article"}),
    # a subtitle belongs to its title
    ("crossref", "works", "crossref/002", 0, {
        "title": "Widget, widget as you lead, I am performing well indeed! using results from an exploratory offline study"
                 " to inform an empirical online study about a learning analytics widget in a collaborative learning"
                 " environment",
    }),
    ("crossref", "works", "crossref/009", 0, {"title": "Icônes"}),  # its subtitle is an empty text
    # licences for text mining and for sharing policies are not those of the work
    ("crossref", "works", "crossref/002", 4, {"license": None}),
    ("crossref", "works", "crossref/001", 19, {"license": "cc-by-4.0"}),
    # published on line on 31 July, in the volume of 2018
    ("pubmed", "fetch", "pubmed/026", 0, {"issued": {"at": "2018-07-31T00:00:00Z", "precision": "day"}}),
    ("pubmed", "fetch", "pubmed/027", 0, {"issued": {"at": "2018-06-28T00:00:00Z", "precision": "day"}}),
    ("pubmed", "fetch", "pubmed/007", 0, {"issued": {"at": "2015-09-16T00:00:00Z", "precision": "day"}}),
    ("openalex", "work", "openalex/012", 0, {"issued": {"at": "1999-01-01T00:00:00Z", "precision": "year"}}),
    ("openalex", "work", "openalex/018", 0, {"container": "Worldwide Protein Data Bank"}),
    # `created` says 2025-06-28, 2024-05-16 and 2016-01-13
    ("arxiv", "oai", "arxiv/013", "oai:arXiv.org:2207.10712", {
        "issued": {"at": "2022-07-01T00:00:00Z", "precision": "month"},
    }),
    ("arxiv", "oai", "arxiv/013", "oai:arXiv.org:2405.10228", {
        "issued": {"at": "2024-05-01T00:00:00Z", "precision": "month"},
    }),
    ("arxiv", "oai", "arxiv/014", 0, {"issued": {"at": "2016-01-13T00:00:00Z", "precision": "day"}}),
    ("datacite", "dois", "datacite/001", 1, {"type": "book", "publisher": "Zenodo", "container": None}),
    ("datacite", "dois", "datacite/001", 4, {"type": "other"}),
    ("datacite", "doi", "datacite/007", 0, {"container": "LIPIcs, Volume 22, TQC 2013"}),
    # not open access, and yet free to read in PMC
    ("europepmc", "search", "europepmc/001", "39709208", {"oa_url": "https://europepmc.org/articles/PMC12124214"}),
    ("europepmc", "search", "europepmc/001", "39709209", {"oa_url": None}),
    # the journal has articles in Spanish and in Portuguese
    ("doaj", "articles", "doaj/001", "00000d914fd04a18adf84e756444ec98", {"language": None, "license": "cc-by"}),
    ("doaj", "articles", "doaj/001", "00001149f7964522953b91582f289cfc", {"language": "pt"}),
    ("orcid", "works", "orcid/008", 0, {"authors": [{"name": "Peter Binfield", "orcid": "0000-0002-9341-7985"}]}),
    # 28 records of one author; a day that is not known is 00
    ("ads", "search", "ads/003", "1971Sci...174..142S", {
        "doi": "10.1126/science.174.4005.142", "issued": {"at": "1971-10-01T00:00:00Z", "precision": "month"},
        "updated": "2015-04-11T13:53:02.829000Z",
    }),
    ("ads", "search", "ads/003", "2012GCN..13229...1S", {
        "issued": {"at": "2012-01-01T00:00:00Z", "precision": "year"}, "volume": "13229", "pages": "1", "doi": None,
        "title": "GRB120404A: GROND observations show steeply decaying afterglow.",
    }),
    ("ads", "search", "ads/003", "2012GCN..13048...1S", {
        "title": "GROND observations of GRB 120311A.", "citations": {"count": 0},
    }),
    ("inspire", "literature", "inspire/001", "833081", {
        "doi": "10.1142/s0217751x09046382", "arxiv": "0910.0897", "container": "Int.J.Mod.Phys.A", "volume": "24",
        "pages": "5861-5876", "issued": {"at": "2009-10-01T00:00:00Z", "precision": "month"},
        "citations": {"count": 17, "at": "2023-03-10T02:15:11.405933+00:00"},
    }),
    ("inspire", "literature", "inspire/001", "1497903", {
        "doi": None, "issue": "36", "issued": {"at": "2016-01-01T00:00:00Z", "precision": "year"},
    }),
    ("inspire", "literature", "inspire/001", "1698434", {
        "doi": "10.1140/epjc/s10052-019-6584-z", "article_number": "129",
        "issued": {"at": "2019-01-01T00:00:00Z", "precision": "year"}, "pages": None,
    }),
    ("jstage", "articles", "jstage/001", 0, {
        "doi": "10.1248/cpb.31.1141", "issn": ["0009-2363", "1347-5223"], "volume": "31", "issue": "4",
        "pages": "1141-1150", "updated": "2008-03-31T00:00:00Z", "container": "Chemical and Pharmaceutical Bulletin",
    }),
    ("jstage", "articles", "jstage/001", 1, {
        "issn": ["2424-3078"], "pages": "2304-1-2304-8", "issue": None, "issued": {"at": "2014-01-01T00:00:00Z", "precision": "year"},
    }),
    ("openaire", "products", "openaire/001", 0, {
        "doi": "10.1089/crispr.2020.0030", "pmid": "33560914", "pmcid": "PMC7307694", "license": "cc-by-nc",
        "container": "The CRISPR Journal", "volume": "3", "pages": "142-145", "issn": ["2573-1599", "2573-1602"],
        "language": "en", "type": "article", "updated": None,
    }),
    ("openaire", "products", "openaire/001", 1, {
        "doi": None, "issued": None, "title": "Design and validate probes for CRISPR ON, CRISPR/CAS9, CRISPR/CAS13",
        "language": None,
    }),
    ("openaire", "products", "openaire/001", 3, {"title": "Special Issue: Expanding the CRISPR Toolbox", "license": None}),
    ("opencitations", "work", "opencitations/007", 0, {
        "doi": "10.1371/journal.pone.0000308", "pmid": "17375194", "openalex": "W2046766973", "container": "Plos One",
        "ids": {"omid": "br/062601549659"}, "issn": ["1932-6203"], "pages": "e308", "volume": "2", "issue": "3",
        "type": "article", "publisher": "Public Library Of Science (PLoS)",
        "authors": [
            {"name": "Heather Piwowar", "given": "Heather", "family": "Piwowar", "orcid": "0000-0003-1613-5981"},
            {"name": "Roger S. Day", "given": "Roger S.", "family": "Day"},
            {"name": "Douglas B. Fridsma", "given": "Douglas B.", "family": "Fridsma"},
        ],
    }),
    ("opencitations", "cited", "opencitations/004", 0, {
        "doi": "10.1108/jd-12-2013-0166", "citations": {"count": 20}, "pages": "253-277", "issn": ["0022-0418"],
        "issued": {"at": "2015-01-01T00:00:00Z", "precision": "year"},
    }),
    ("pmc", "records", "pmc/001", 0, {
        "pmcid": "PMC3539697", "pmid": "23295480", "doi": "10.1107/s1744309112047562",
        "issued": {"at": "2012-12-25T00:00:00Z", "precision": "day"}, "updated": "2014-12-25T00:00:00Z",
        "publisher": "International Union of Crystallography",
    }),
    ("pmc", "convert", "pmc/005", 0, {
        "pmcid": "PMC2883744", "pmid": "20495566", "doi": "10.1038/ng.590", "ids": {"manuscript": "NIHMS198092"},
    }),
    ("pmc", "records", "pmc/004", 0, {"type": "article"}),
    ("dblp", "search", "dblp/001", 0, {
        "doi": "10.1109/dac18074.2021.9586227", "type": "conference-paper", "container": "DAC", "pages": "169-174",
        "title": "Attentional Transfer is All You Need: Technology-aware Layout Pattern Generation",
        "authors": [{"name": "Xiaopeng Zhang"}, {"name": "Haoyu Yang"}, {"name": "Evangeline F. Y. Young"}],
    }),
    ("eric", "search", "eric/001", 0, {
        "id": "EJ1286736", "issn": ["2618-6586"], "type": "article", "language": "en",
        "issued": {"at": "2021-01-01T00:00:00Z", "precision": "year"},
        "authors": [{"name": "Davut Çulha", "given": "Davut", "family": "Çulha"}],
    }),
    ("unpaywall", "doi", "unpaywall/002", 0, {
        "doi": "10.1001/jamadermatol.2015.3091", "issued": {"at": "2016-01-01T00:00:00Z", "precision": "year"},
        "oa_url": "https://jamanetwork.com/journals/jamadermatology/articlepdf/2471551/doi150042.pdf",
        "issn": ["2168-6068"], "type": "article",
    }),
    ("unpaywall", "doi", "unpaywall/003", 0, {"doi": "10.1641/0006-3568(2005)055[0851:potapf]2.0.co;2"}),
    ("unpaywall", "doi", "unpaywall/006", 0, {"type": "article"}),
    ("crossref", "works", "crossref/002", 0, {
        "pages": "289-298", "citations": {"count": 11, "at": "2026-03-09T07:38:00Z"},
        "funders": [{"name": "European Commission", "awards": ["619424"]}],
        "full_text": [
            {"url": "https://dl.acm.org/doi/10.1145/3027385.3027428", "version": "vor"}
        ],
    }),
    ("crossref", "work", "crossref/035", 0, {"volume": "10", "issue": "4", "pages": "e43211", "issn": ["2291-9279"]}),
    ("pubmed", "fetch", "pubmed/027", 0, {
        "volume": "5", "issue": "2", "pages": "026002", "issn": ["2329-4302"],
        "keywords": [
            "asthma", "chronic obstructive lung disease", "image processing, biomarkers",
            "magnetic resonance imaging", "thoracic computed tomography",
        ],
    }),
    ("openalex", "work", "openalex/023", 0, {
        "volume": "403", "issue": "6772", "pages": "853-858", "issn": ["0028-0836", "1476-4687"],
        "citations": {"count": 31026, "at": "2026-05-21T09:19:25.381259Z"},
        "mesh": ["Animals", "Conservation of Natural Resources", "Plants", "Research Support as Topic", "Ecosystem"],
    }),
    ("datacite", "doi", "datacite/007", 0, {
        "volume": "22", "pages": "93-105", "relations": [{"type": "is-part-of", "id": "doi:10.4230/lipics.tqc.2013"}],
    }),
    ("zenodo", "record", "zenodo/001", 0, {
        "volume": "2", "issue": "3", "pages": "315-324",
        "keywords": ["social media", "twitter", "nlp", "covid-19", "covid19"],
        "relations": [
            {"type": "is-version-of", "id": "doi:10.5281/zenodo.3723939"},
            {"type": "is-supplement-to", "id": "arxiv:2004.03688"},
        ],
    }),
    ("doaj", "articles", "doaj/001", 0, {"volume": "11", "issue": "1", "pages": "1-6", "issn": ["2041-1723"]}),
    ("openalex", "works", "openalex/022", 0, {"issued": {"at": "2015-12-21T00:00:00Z", "precision": "day"}}),
]  # fmt: skip


@pytest.mark.parametrize(("source", "endpoint", "name", "which", "expected"), VALUES)
def test_a_field_has_the_value_of_the_raw_record(
    source: str, endpoint: str, name: str, which: int | str, expected: dict[str, Any]
) -> None:
    found: dict[str, Any] = msgspec.to_builtins(work(source, endpoint, name, which))
    assert {key: found.get(key) for key in expected} == expected


def test_no_preprint_of_the_new_arxiv_host_is_dated_after_the_month_of_its_id() -> None:
    for one in read("arxiv", "oai", "arxiv/013"):
        assert one.work is not None
        assert one.work.issued is not None
        assert one.work.arxiv is not None
        assert one.work.issued.at[2:7].replace("-", "") <= one.work.arxiv[:4]


def test_a_preprint_of_osf_has_the_doi_that_stands_among_its_links() -> None:
    """The recording is the bare resource; the service wraps it in `data`."""
    body = recording("osf/007").body
    [one] = read("osf", "preprint", "osf/007", f'{{"data": {body}}}')
    assert one.work is not None
    found = msgspec.to_builtins(one.work)
    assert found["title"] == "Konsep Allah Dalam Teologi Proses"
    assert found["issued"] == {"at": "2021-07-19T00:00:00Z", "precision": "day"}
    assert found["updated"] == "2021-07-19T07:42:12.725457Z"
    assert found["doi"].startswith("10.")
    subjects = ["Arts and Humanities", "Religion", "Christianity"]
    assert found["keywords"] == ["Gambar", "Respon", "Teologi Proses", "Tuhan", *subjects]


def test_an_organisation_has_its_display_name() -> None:
    [*found] = read("ror", "organizations", "ror/004")
    fields = found[0].fields
    assert isinstance(fields, dict)
    assert (fields["ror"], fields["name"], fields["country"]) == ("https://ror.org/00pv45a02", "FH Münster", "DE")
    assert fields["types"] == ["education"]


def test_the_parts_of_a_recorded_article() -> None:
    """Volume, number and ISSN of an article in Frontiers in physiology, as PubMed has them."""
    found = msgspec.to_builtins(work("pubmed", "fetch", "pubmed/026", 0))
    assert (found["volume"], found["pages"], found["issn"]) == ("9", "1034", ["1664-042X"])
