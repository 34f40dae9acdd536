"""The formats in which OAI-PMH repositories give their records, in answers of our own making."""

from typing import Any

import pytest

from tests.unit.ingest.packs.bundled.test_mapped_values import oai, only, works

DATACITE = """<oai_datacite xmlns="http://schema.datacite.org/oai/oai-1.1/"><payload>
<resource xmlns="http://datacite.org/schema/kernel-4"><identifier identifierType="DOI">10.5555/Fog.1</identifier>
<creators><creator><creatorName>Lovelace, Ada</creatorName><givenName>Ada</givenName><familyName>Lovelace</familyName>
<nameIdentifier nameIdentifierScheme="ORCID">https://orcid.org/0000-0002-1825-0097</nameIdentifier></creator>
<creator><creatorName nameType="Organizational">Fog Society</creatorName></creator></creators>
<titles><title titleType="Subtitle">A study</title><title>Fog &amp; lamps</title></titles><publisher>Zenodo</publisher>
<publicationYear>2024</publicationYear><resourceType resourceTypeGeneral="JournalArticle">Paper</resourceType>
<subjects><subject>fog</subject></subjects><dates><date dateType="Issued">2024-03-05</date></dates>
<language>en</language><rightsList><rights rightsURI="https://creativecommons.org/licenses/by/4.0/">CC</rights></rightsList>
<descriptions><description descriptionType="Other">Notes</description>
<description descriptionType="Abstract">&lt;p&gt;Of fog.&lt;/p&gt;</description></descriptions>
</resource></payload></oai_datacite>"""

JATS = """<article xmlns="https://jats.nlm.nih.gov/ns/archiving/1.3/" article-type="research-article" xml:lang="en">
<front><journal-meta><journal-title-group><journal-title>Annals of Fog</journal-title></journal-title-group>
<issn pub-type="epub">1234-5679</issn><publisher><publisher-name>Lantern</publisher-name></publisher></journal-meta>
<article-meta><article-id pub-id-type="pmid">123</article-id><article-id pub-id-type="doi">10.5555/fog.2</article-id>
<title-group><article-title>Lamps in <italic>fog</italic></article-title></title-group>
<contrib-group><contrib contrib-type="author"><contrib-id contrib-id-type="orcid">0000-0002-1825-0097</contrib-id>
<name><surname>Hopper</surname><given-names>Grace</given-names></name></contrib>
<contrib contrib-type="author"><collab>The Lamp Group</collab></contrib>
<contrib contrib-type="editor"><name><surname>No</surname></name></contrib></contrib-group>
<pub-date pub-type="epub"><day>5</day><month>3</month><year>2024</year></pub-date>
<volume>7</volume><issue>2</issue><fpage>11</fpage><lpage>19</lpage>
<permissions><license xmlns:xlink="http://www.w3.org/1999/xlink" xlink:href="https://creativecommons.org/licenses/by/4.0/"/>
</permissions><abstract><p>Of lamps.</p></abstract><kwd-group><kwd>lamp</kwd></kwd-group></article-meta></front></article>"""

MARC = """<record xmlns="http://www.loc.gov/MARC21/slim"><datafield tag="024"><subfield code="2">DOI</subfield>
<subfield code="a">10.5555/fog.3</subfield></datafield><datafield tag="245"><subfield code="a">Fog</subfield></datafield>
<datafield tag="100"><subfield code="a">Lovelace, Ada</subfield></datafield>
<datafield tag="260"><subfield code="c">2024</subfield></datafield></record>"""


def parts(found: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: found.get(name) for name in names}


def test_a_record_of_datacite() -> None:
    found = only("oaipmh", "datacite", oai(DATACITE))
    assert parts(found, "doi", "title", "abstract", "type", "language", "license", "publisher", "url", "keywords") == {
        "doi": "10.5555/fog.1",
        "title": "Fog & lamps",
        "abstract": "Of fog.",
        "type": "article",
        "language": "en",
        "license": "cc-by-4.0",
        "publisher": "Zenodo",
        "url": "https://doi.org/10.5555/fog.1",
        "keywords": ["fog"],
    }
    assert [author["name"] for author in found["authors"]] == ["Ada Lovelace", "Fog Society"]
    assert found["authors"][0]["orcid"] == "0000-0002-1825-0097"
    assert found["issued"] == {"at": "2024-03-05T00:00:00Z", "precision": "day"}


def test_an_article_in_jats() -> None:
    found = only("oaipmh", "jats", oai(JATS))
    names = ("doi", "pmid", "title", "abstract", "container", "publisher", "type", "volume", "issue", "pages", "issn")
    assert parts(found, *names, "license", "language", "keywords") == {
        "doi": "10.5555/fog.2",
        "pmid": "123",
        "title": "Lamps in fog",
        "abstract": "Of lamps.",
        "container": "Annals of Fog",
        "publisher": "Lantern",
        "type": "article",
        "volume": "7",
        "issue": "2",
        "pages": "11-19",
        "issn": ["1234-5679"],
        "license": "cc-by-4.0",
        "language": "en",
        "keywords": ["lamp"],
    }
    assert [author["name"] for author in found["authors"]] == ["Grace Hopper", "The Lamp Group"]
    assert found["issued"] == {"at": "2024-03-05T00:00:00Z", "precision": "day"}


def test_a_date_of_jats_without_its_day_is_a_month() -> None:
    found = only("oaipmh", "jats", oai(JATS.replace("<day>5</day>", "")))
    assert found["issued"] == {"at": "2024-03-01T00:00:00Z", "precision": "month"}


def test_a_record_in_marc_21() -> None:
    found = only("oaipmh", "marc", oai(MARC))
    assert parts(found, "doi", "title") == {"doi": "10.5555/fog.3", "title": "Fog"}
    assert [author["name"] for author in found["authors"]] == ["Ada Lovelace"]
    assert found["issued"]["precision"] == "year"


def names_of(found: dict[str, Any]) -> list[list[str]]:
    return [[one["name"] for one in found.get(who, [])] for who in ("authors", "editors")]


def test_editors_are_told_from_authors_in_every_format() -> None:
    editor = '<contributor contributorType="{}"><contributorName>Hopper, Grace</contributorName></contributor>'
    both = "".join(map(editor.format, ("Editor", "DataCollector")))
    datacite = DATACITE.replace("</creators>", f"</creators><contributors>{both}</contributors>")
    assert names_of(only("oaipmh", "datacite", oai(datacite))) == [["Ada Lovelace", "Fog Society"], ["Grace Hopper"]]

    assert names_of(only("oaipmh", "jats", oai(JATS))) == [["Grace Hopper", "The Lamp Group"], ["No"]]

    field = '<datafield tag="700"><subfield code="a">{}</subfield><subfield code="{}">{}</subfield></datafield>'
    people = [("Hopper, Grace", "e", "ed."), ("Somerville, Mary", "4", "edt"), ("Babbage, Charles", "e", "dir."),
              ("Faraday, Michael", "4", "ths"), ("Boole, George", "e", "author")]  # fmt: skip
    marc = MARC.replace("</record>", "".join(field.format(*one) for one in people) + "</record>")
    assert names_of(only("oaipmh", "marc", oai(marc))) == [
        ["Ada Lovelace", "George Boole"],
        ["Grace Hopper", "Mary Somerville"],
    ]


def test_an_affiliation_of_jats_stands_with_the_name() -> None:
    institution = '<institution-id institution-id-type="ROR">https://ror.org/01xtthb56</institution-id>'
    place = (
        f"<aff><institution-wrap>{institution}<institution>University of Oslo</institution></institution-wrap></aff>"
    )
    found = only("oaipmh", "jats", oai(JATS.replace("</given-names></name>", f"</given-names></name>{place}", 1)))
    assert found["authors"][0]["ror"] == ["https://ror.org/01xtthb56"]
    assert found["authors"][0]["affiliation"] == ["University of Oslo"]


AFFILIATIONS = """<aff id="aff1"><label>1</label>Department of Lamps, <institution-wrap><institution-id
institution-id-type="ror">https://ror.org/01xtthb56</institution-id><institution>University of Oslo</institution>
</institution-wrap>, <country>Norway</country></aff><aff id="aff2"><sup>2</sup><institution>Fog Society</institution></aff>
<aff id="aff3">Nobody's place</aff>"""


@pytest.mark.parametrize("place", ["in the group", "behind the group"])
@pytest.mark.parametrize("rids", ['<xref ref-type="aff" rid="aff2"/><xref ref-type="aff" rid="aff1"/>',
                                  '<xref ref-type="aff" rid="aff2 aff1">1,2</xref><xref ref-type="corresp" rid="aff3"/>'])  # fmt: skip
def test_an_author_of_jats_has_the_affiliations_that_its_references_lead_to(place: str, rids: str) -> None:
    body = JATS.replace("</given-names></name>", f"</given-names></name>{rids}", 1)
    body = body.replace("<surname>No</surname></name>", '<surname>No</surname></name><xref ref-type="aff" rid="aff3"/>')
    end = "</contrib-group>"
    body = body.replace(end, AFFILIATIONS + end if place == "in the group" else end + AFFILIATIONS, 1)
    found = only("oaipmh", "jats", oai(body))
    [hopper, group], [editor] = found["authors"], found["editors"]
    assert sorted(hopper["affiliation"]) == ["Department of Lamps, University of Oslo, Norway", "Fog Society"]
    assert hopper["ror"] == ["https://ror.org/01xtthb56"]
    assert "affiliation" not in group
    assert editor["affiliation"] == ["Nobody's place"]


def test_a_reference_of_jats_that_leads_nowhere_is_no_affiliation() -> None:
    body = JATS.replace("</given-names></name>", '</given-names></name><xref ref-type="aff" rid="gone"/>', 1)
    assert "affiliation" not in only("oaipmh", "jats", oai(body))["authors"][0]


def test_a_deleted_record_has_no_metadata_in_any_format() -> None:
    gone = oai("").replace(b"<header>", b'<header status="deleted">')
    for endpoint in ("records", "datacite", "jats", "marc"):
        assert [one["deleted"] for one in works("oaipmh", endpoint, gone)] == [True]
