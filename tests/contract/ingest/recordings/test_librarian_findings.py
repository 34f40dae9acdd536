"""What a librarian called wrong in works of recorded answers, each held against the raw record."""

import json
from typing import Any

import msgspec
import pytest

from tests.contract.ingest.recordings.shelf import needed, read, recording

pytestmark = needed

FOUND: list[tuple[str, str, str, int | str, dict[str, Any]]] = [
    # Springer deposits its licence for text mining as that of the version of record
    ("crossref", "works", "crossref/001", 3, {"license": None}),
    ("crossref", "works", "crossref/001", 19, {"license": "cc-by-4.0"}),
    ("crossref", "works", "crossref/002", 1, {"volume": None, "issue": "18"}),  # its volume is the text "null"
    # the group of a preprint is a subject here, and its server there
    ("crossref", "work", "crossref/032", 0, {"container": None}),
    ("crossref", "work", "crossref/036", 0, {"container": "SSRN"}),
    ("crossref", "work", "crossref/038", 0, {"container": "PsyArXiv"}),
    # the journal's own entry names none, the article does
    ("doaj", "article", "doaj/003", 0, {"issn": ["1662-5196"]}),
    ("doaj", "articles", "doaj/001", 3, {"issn": ["1672-5123"]}),
    # the article names the ISSN of the printed journal, too
    ("doaj", "articles", "doaj/001", 4, {"issn": ["2164-1250", "2372-255X"]}),
    ("eric", "search", "eric/001", 0, {"publisher": "Journal of Educational Technology and Online Learning"}),
    # a text of many commas is a list
    ("datacite", "dois", "datacite/001", 1, {"keywords": [
        "sport", "rural community", "football club", "countryside", "football fans", "social capital", "Poland",
        "sport organization", "społeczność wiejska", "klub piłkarski", "wieś", "kibice piłkarscy", "kapitał społeczny",
        "Polska", "organizacja sportowa",
    ]}),
    ("opencitations", "work", "opencitations/007", 0, {"id": "10.1371/journal.pone.0000308"}),
    ("europepmc", "search", "europepmc/010", 95, {"authors": [
        {"name": "W Zhou", "given": "W", "family": "Zhou"}, {"name": "JP Thiery", "given": "JP", "family": "Thiery"},
    ]}),
    # the publisher's item number stands where pages will be
    ("europepmc", "search", "europepmc/001", 37, {"pages": None, "doi": "10.1016/j.jare.2025.06.025"}),
    ("europepmc", "search", "europepmc/008", 11, {"pages": "jmg-2025-110769"}),
    ("europepmc", "search", "europepmc/015", 7, {"pages": "127-8, 130, 137-8"}),
    ("europepmc", "search", "europepmc/015", 3, {"issued": {"at": "1972-01-01T00:00:00Z", "precision": "year"}}),
    # funders and their awards, as OpenAlex writes them since 2025
    ("openalex", "work", "openalex/015", 0, {"funders": [
        {"name": "CERN", "id": "https://ror.org/01ggx4157"},
        {"name": "Sponsoring Consortium for Open Access Publishing in Particle Physics", "id": "https://openalex.org/F4320321382"},
    ]}),
    ("openalex", "work", "openalex/016", 0, {"funders": [
        {"name": "National Institutes of Health", "id": "https://ror.org/01cwqze88",
         "awards": ["T32 OD011089", "R01 NS089482", "K01 OD018244", "T32OD011089", "R01 NS077869", "P40OD013117",
                    "P40 OD013117", "P01 MH070306"]},
        {"name": "National Institute of Mental Health", "id": "https://ror.org/04xeg9z08",
         "awards": ["P01MH070306", "P01 MH070306", "R25 MH080661"]},
        {"name": "National Institute of Neurological Disorders and Stroke", "id": "https://ror.org/01s5ya894",
         "awards": ["R01 NS076357", "R01 NS077869", "R01 NS089482", "R01NS089482"]},
    ]}),
    # two grants of one institute
    ("pubmed", "fetch", "pubmed/032", 0, {"funders": [{"name": "NIMH NIH HHS", "awards": ["P30 MH062294", "P30 MH62294"]}]}),
    ("openaire", "products", "openaire/001", 1, {
        "type": "report", "funders": [{"name": "European Commission", "awards": ["874708"]}], "citations": {"count": 0},
        "oa_url": "https://ec.europa.eu/research/participants/documents/downloadPublic?documentIds=080166e5de59705d&appId=PPGMS",
    }),
    ("datacite", "doi", "datacite/007", 0, {
        "keywords": ["unextendible product basis", "quantum entanglement", "graph factorization"], "isbn": ["9783939897552"],
    }),
    ("arxiv", "oai", "arxiv/013", 0, {
        "keywords": ["hep-th", "gr-qc"],
        "ids": {"oai": "oai:arXiv.org:2101.11905", "journal_ref": "J. Phys. Commun. 6 025003 (2022)"},
    }),
    ("clinicaltrials", "study", "clinicaltrials/005", 0, {
        "keywords": ["Alcohol Use Disorder", "Glutamate", "Alcohol use", "GABA", "GET73", "Non-treatment seeking"],
        "mesh": ["Alcoholism", "Alcohol Drinking"], "references": ["pmid:23032071"],
    }),
    # master's and doctoral theses of a Turkish repository
    ("oaipmh", "records", "oaipmh/020", 0, {"type": "thesis", "language": "tr"}),
    ("oaipmh", "marc", "oaipmh/026", 0, {
        "keywords": ["Particle Physics - Experiment", "Physics", "BTAGGING", "FUTURE"], "publisher": "CERN",
        "ids": {"oai": "oai:cds.cern.ch:2956726", "report": "ATL-PHYS-PUB-2026-002"},
    }),
    # the only subject that PMC names is the heading of the journal: no keyword, and sometimes the type
    ("pmc", "records", "pmc/001", 1, {"keywords": None, "type": "article"}),
    ("pmc", "records", "pmc/003", 11, {"keywords": None, "type": "letter"}),
    # in print on 24 June, on line on 11 June
    ("pmc", "records", "pmc/002", 15, {"type": "letter", "issued": {"at": "2014-06-11T00:00:00Z", "precision": "day"}}),
    # where it is printed is not an abstract
    ("oaipmh", "records", "datacite/018", 30, {
        "abstract": None, "container": "GMS Medizin - Bibliothek - Information", "issn": ["1865-066X"],
    }),
    ("core", "search_v2", "core/001", 5, {"abstract": None}),
    # the deposit has no spaces around its italics
    ("crossref", "work", "crossref/034", 0, {
        "title": "Exploring G-quadruplex structure in PRCC-TFE3 fusion Oncogene: Plausible use as anti cancer therapy for"
                 " translocation Renal cell carcinoma (tRCC)",
    }),
    # a division and its laboratory are no person
    ("oaipmh", "records", "datacite/018", 22, {
        "authors": [{"name": "Environmental Sciences Division, Oak Ridge National Laboratory"}],
    }),
    # journal, volume, issue and pages are one text in Dublin Core
    ("oaipmh", "records", "zenodo/007", 6, {"container": "Evolution", "volume": "29", "issue": "4", "pages": "750-762"}),
    ("oaipmh", "records", "zenodo/007", 1, {
        "container": "Annales de la Société Entomologique de Belgique", "volume": "56", "pages": "339-342", "issue": None,
    }),
    # one of two spellings has a hyphen of its own (U+2010)
    ("datacite", "doi", "datacite/009", 0, {"funders": [{
        "name": "National Institute of Food and Agriculture", "id": "https://ror.org/05qx3fv49",
        "awards": ["2020-33522-32317", "7008054"],
    }]}),
    # initials are letters of any alphabet
    ("europepmc", "search", "europepmc/006", "40505840", {"authors": [
        {"name": "V Dias", "given": "V", "family": "Dias"}, {"name": "Â Alves", "given": "Â", "family": "Alves"},
        {"name": "R Medeiros", "given": "R", "family": "Medeiros"}, {"name": "AL Teixeira", "given": "AL", "family": "Teixeira"},
        {"name": "F Dias", "given": "F", "family": "Dias"},
    ]}),
    # a record that names the first author only
    ("oaipmh", "records", "datacite/018", 3, {"authors": [{"name": "Jenni Schmitt"}], "authors_truncated": True}),
    ("oaipmh", "records", "datacite/018", 7, {"authors": [{"name": "Art King, Ph.D."}], "authors_truncated": True}),
    ("oaipmh", "records", "datacite/018", 30, {"authors_truncated": None}),
    # nobody sees a space without width at the end
    ("oaipmh", "records", "oaipmh/025", 13, {"title": "Two Forms of Spatial Imagery: Neuroimaging Evidence"}),
]  # fmt: skip


@pytest.mark.parametrize(("source", "endpoint", "name", "at", "expected"), FOUND)
def test_a_work_says_what_the_raw_record_does(
    source: str, endpoint: str, name: str, at: int | str, expected: dict[str, Any]
) -> None:
    works = [one.work for one in read(source, endpoint, name)]
    found = msgspec.to_builtins(works[at] if isinstance(at, int) else next(w for w in works if w and w.id == at))
    assert {field: found.get(field) for field in expected} == expected


@pytest.mark.parametrize(
    ("source", "endpoint", "name", "names"),
    [
        ("openalex", "work", "openalex/014", {"Mihai G Netea", "Tania Azam"}),
        ("biorxiv", "feed", "biorxiv/003", {"PCAWG Network", "International Multiple Sclerosis Genetics Consortium"}),
        ("zenodo", "record", "zenodo/002", {"Nicolas Hulscher, BS"}),
        ("oaipmh", "records", "zenodo/007", {"M. Arshad Shehzad Hassan, Guobing Song, Xiaoning Kang"}),
    ],
)
def test_names_are_without_numbers_and_commas_and_several_in_one_text_are_not_turned_round(
    source: str, endpoint: str, name: str, names: set[str]
) -> None:
    found = {author.name for one in read(source, endpoint, name) if one.work is not None for author in one.work.authors}
    assert names <= found
    assert [one for one in found if one.endswith((",", ")")) and "Lucy" not in one] == []


def test_a_collaboration_has_no_family_name() -> None:
    [one] = read("arxiv", "oai", "arxiv/014")
    assert one.work is not None
    assert msgspec.to_builtins(one.work.authors[0]) == {"name": "Planck Collaboration"}
    assert one.work.authors[1].family == "Wang"


def test_what_the_source_does_not_count_is_not_nought() -> None:
    """A client that asked for DOI and title only got nothing about citations."""
    assert all(
        "is-referenced-by-count" not in item for item in json.loads(recording("crossref/013").body)["message"]["items"]
    )
    for one in read("crossref", "works", "crossref/013"):
        assert isinstance(one.fields, dict)
        assert "count" not in one.fields.get("citations", {})


def test_no_licence_for_text_mining_is_the_licence_of_a_work() -> None:
    works = [one.work for number in (1, 2, 3) for one in read("crossref", "works", f"crossref/{number:03}")]
    licences = {work.license for work in works if work is not None and work.license}
    assert "cc-by-4.0" in licences
    assert [one for one in licences if "tdm" in one] == []


def test_retractions_and_corrections_in_pmc_are_no_articles() -> None:
    works = [one.work for number in range(1, 5) for one in read("pmc", "records", f"pmc/{number:03}")]
    types = [work.type for work in works if work is not None]
    assert (types.count("erratum"), types.count("review"), types.count("letter")) == (2, 3, 10)


def test_sections_of_an_abstract_have_their_titles_with_a_colon() -> None:
    [one] = read("crossref", "work", "crossref/012")
    assert one.work is not None
    abstract = one.work.abstract or ""
    assert abstract.startswith("Background: The absence of high-quality next-generation sequencing (NGS)")
    assert " in China. Objective: Th" in abstract
