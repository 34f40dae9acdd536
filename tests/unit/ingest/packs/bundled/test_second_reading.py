"""Cases of our own making for what the second reading by hand found and no recording has: withdrawals, errata, kinds."""

from typing import Any

import msgspec
import pytest

from tests.unit.ingest.packs.bundled.test_mapped_values import only


def osf(**attributes: Any) -> dict[str, Any]:
    record = {
        "id": "abcde",
        "attributes": {"title": "Fog", "date_modified": "2026-01-02T03:04:05", **attributes},
        "relationships": {"license": {"data": {"id": "563c1cf88c5e4a3877f9e965"}}},
        "links": {"html": "https://osf.io/abcde/"},
    }
    return only("osf", "preprints", msgspec.json.encode({"data": [record]}))


def test_a_withdrawn_preprint_says_when_and_is_read_nowhere() -> None:
    found = osf(date_withdrawn="2025-03-04T05:06:07")
    assert (found["retracted"], found["notices"]) == (True, [{"type": "withdrawal", "at": "2025-03-04T05:06:07"}])
    assert "oa_url" not in found


def test_a_preprint_that_stands_has_no_notice_and_no_licence_that_nobody_knows() -> None:
    found = osf(date_withdrawn=None)
    assert found["oa_url"] == "https://osf.io/abcde/"
    assert {"notices", "license"} & set(found) == set()


@pytest.mark.parametrize(
    ("kinds", "name"),
    [
        (["Dissertations/Theses - Masters Theses"], "thesis"),
        (["Numerical/Quantitative Data", "Reports - Research"], "dataset"),
        (["Reports - Evaluative"], "report"),
        (["Guides - Classroom - Teacher"], "other"),
    ],
)
def test_kinds_and_sponsors_of_eric(kinds: list[str], name: str) -> None:
    sponsor = "Institute of Education Sciences (ED)"
    record = {"id": "ED1", "title": "Fog", "publicationdateyear": 2020, "publicationtype": kinds, "sponsor": [sponsor]}
    found = only("eric", "search", msgspec.json.encode({"response": {"numFound": 1, "docs": [record]}}))
    assert (found["type"], found["funders"]) == (name, [{"name": sponsor}])


def dblp(**info: Any) -> dict[str, Any]:
    hit = {"info": {"title": "Fog.", "year": "2017", "url": "https://dblp.org/rec/x", **info}}
    return only("dblp", "search", msgspec.json.encode({"result": {"hits": {"@total": "1", "hit": [hit]}}}))


def test_a_volume_of_corr_is_the_id_of_a_preprint() -> None:
    found = dblp(key="journals/corr/L17", type="Informal and Other Publications", venue="CoRR", volume="abs/1706.03762")
    assert (found["arxiv"], found["type"], found["container"]) == ("1706.03762", "preprint", "CoRR")
    assert "volume" not in found
    assert dblp(key="journals/x/L17", type="Journal Articles", volume="57")["volume"] == "57"


@pytest.mark.parametrize(("key", "name"), [("phd/us/L17", "thesis"), ("ms/L17", "thesis"), ("books/daglib/1", "book")])
def test_the_key_of_dblp_says_what_is_a_thesis(key: str, name: str) -> None:
    found = dblp(key=key, type="Books and Theses", publisher="Lamp Press")
    assert (found["type"], found["publisher"]) == (name, "Lamp Press")


def test_an_article_of_jstage_without_an_english_page_has_its_japanese_one() -> None:
    body = """<feed xmlns="http://www.w3.org/2005/Atom"><entry>
    <article_title><en/><ja>霧</ja></article_title>
    <article_link><en/><ja>https://www.jstage.jst.go.jp/article/x/1/2/1_3/_article/-char/ja/</ja></article_link>
    <author><en/><ja><name>三輪 嘉尚</name></ja></author>
    <id>x</id><updated>2008-03-31T09:00+09:00</updated></entry></feed>""".encode()
    found = only("jstage", "articles", body)
    assert (found["title"], found["ids"]) == ("霧", {"jstage": "x/1/2/1_3/_article"})
    assert found["url"] == "https://www.jstage.jst.go.jp/article/x/1/2/1_3/_article/-char/ja/"


def zenodo(doi: str, **metadata: Any) -> dict[str, Any]:
    record = {"id": 1, "updated": "2026-01-02T03:04:05Z", "metadata": {"title": "Fog", "doi": doi, **metadata}}
    return only("zenodo", "records", msgspec.json.encode({"hits": {"total": 1, "hits": [record]}}))


def test_zenodo_publishes_what_has_its_own_doi() -> None:
    assert zenodo("10.5281/zenodo.1")["publisher"] == "Zenodo"
    assert "publisher" not in zenodo("10.11646/zootaxa.1")
    assert zenodo("10.5281/zenodo.1", imprint={"publisher": "Lamp Press"})["publisher"] == "Lamp Press"


def test_a_figure_of_zenodo_is_a_component_and_a_preprint_has_its_id() -> None:
    related = [
        {"identifier": "arXiv:2004.03688", "relation": "isSupplementTo", "scheme": "arxiv"},
        {"identifier": "https://arxiv.org/abs/2004.03689", "relation": "cites", "scheme": "url"},
    ]
    found = zenodo(
        "10.5281/zenodo.1", resource_type={"type": "image", "subtype": "figure"}, related_identifiers=related
    )
    assert found["type"] == "component"
    assert found["relations"] == [{"type": "is-supplement-to", "id": "arxiv:2004.03688"}]


def openaire(**more: Any) -> dict[str, Any]:
    return only("openaire", "products", msgspec.json.encode({"results": [{"id": "1", "mainTitle": "Fog", **more}]}))


def test_a_product_of_openaire_has_its_subtitle_and_the_kind_that_one_of_its_indexes_knows() -> None:
    kinds = [{"type": "Other literature type"}, {"type": "Conference object"}]
    found = openaire(subTitle="A study", instances=kinds, publicationDate="2018-01-01")
    assert (found["title"], found["type"]) == ("Fog: A study", "conference-paper")
    assert found["issued"] == {"at": "2018-01-01T00:00:00Z", "precision": "year"}
    assert openaire(instances=kinds[:1], publicationDate="2018-03-02")["type"] == "other"


def test_an_erratum_of_inspire_is_a_notice_and_not_the_doi() -> None:
    metadata = {
        "titles": [{"title": "Fog"}],
        "dois": [
            {"value": "10.5555/E", "material": "erratum"},
            {"value": "10.5555/r", "material": "reprint"},
            {"value": "10.5555/A", "material": "publication"},
        ],
        "keywords": [{"schema": "INSPIRE", "value": "neutrino: oscillation"}],
        "isbns": [{"value": "9780306406157"}],
        "imprints": [{"publisher": "Lamp Press"}],
        "references": [{"reference": {"label": "1", "dois": ["10.5555/C"]}}, {"reference": {"label": "2"}}],
    }
    body = {"hits": {"total": 1, "hits": [{"id": "1", "updated": "2026-01-01T00:00:00+00:00", "metadata": metadata}]}}
    found = only("inspire", "literature", msgspec.json.encode(body))
    assert (found["doi"], found["notices"]) == ("10.5555/a", [{"type": "erratum", "id": "doi:10.5555/e"}])
    assert (found["keywords"], found["isbn"]) == (["neutrino: oscillation"], ["9780306406157"])
    assert (found["publisher"], found["references"]) == ("Lamp Press", ["doi:10.5555/c"])


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("retraction notice", "erratum"),
        ("journal editorial", "letter"),
        ("proceedings", "book"),
        ("report", "report"),
        ("journal issue", "journal"),
        ("book series", "book"),
    ],
)
def test_kinds_and_ids_of_opencitations(kind: str, name: str) -> None:
    record = {
        "id": "doi:10.5555/x isbn:9780306406157 pmcid:PMC123 arxiv:1706.03762 omid:br/1",
        "title": "Fog",
        "venue": "Lamps [isbn:9783161484100 omid:br/2]",
        "type": kind,
    }
    found = only("opencitations", "work", msgspec.json.encode([record]))
    assert (found["type"], found["pmcid"], found["arxiv"]) == (name, "PMC123", "1706.03762")
    assert found["isbn"] == ["9780306406157", "9783161484100"]


@pytest.mark.parametrize(
    ("more", "name"),
    [
        ({"publication_info": [{"journal_title": "Annals", "year": 2019}]}, "article"),
        ({"publication_info": [{"pubinfo_freetext": "to appear"}]}, "preprint"),
        ({}, "preprint"),
    ],
)
def test_an_article_of_inspire_that_no_journal_has_is_a_preprint(more: dict[str, Any], name: str) -> None:
    eprint = [{"value": "1706.03762", "categories": ["hep-ph"]}]
    metadata = {"titles": [{"title": "Fog"}], "document_type": ["article"], "arxiv_eprints": eprint, **more}
    body = {"hits": {"total": 1, "hits": [{"id": "1", "updated": "2026-01-01T00:00:00+00:00", "metadata": metadata}]}}
    assert only("inspire", "literature", msgspec.json.encode(body))["type"] == name
