"""Recorded works as BibTeX, RIS and CSL-JSON: what comes out is what the three formats allow, whatever a provider wrote."""

import re
from collections.abc import Iterator
from typing import Any

import pytest

from patra.ingest.works.citation_formats import BIBTEX_TYPES, CSL_TYPES, RIS_TYPES, bibtex, csl, is_citable, ris
from patra.ingest.works.export import row_of
from tests.contract.ingest.recordings.shelf import needed, read
from tests.contract.ingest.recordings.test_every_record_maps import WHOLE

pytestmark = needed

SOURCES = sorted({source for source, *_ in WHOLE})
MAX_PAGES = 4
RIS = """
ABST ADVS AGGR ANCIENT ART BILL BLOG BOOK CASE CHAP CHART CLSWK COMP CONF CPAPER CTLG DATA DBASE DICT EBOOK ECHAP EDBOOK
EJOUR ELEC ENCYC EQUA FIGURE GEN GOVDOC GRANT HEAR ICOMM INPR JFULL JOUR LEGAL MANSCPT MAP MGZN MPCT MULTI MUSIC NEWS
PAMP PAT PCOMM RPRT SER SLIDE SOUND STAND STAT THES UNPB VIDEO
"""
CSL = """
article article-journal article-magazine article-newspaper bill book broadcast chapter classic collection dataset
document entry entry-dictionary entry-encyclopedia event figure graphic hearing interview legal_case legislation
manuscript map motion_picture musical_score pamphlet paper-conference patent performance periodical
personal_communication post post-weblog regulation report review review-book software song speech standard thesis treaty
webpage
"""
BIBTEX = """
article book booklet conference inbook incollection inproceedings manual mastersthesis misc phdthesis proceedings
techreport unpublished
"""
FORMULA = re.compile(r"(?<!\\)\$[^$]*\$")
FIELD = re.compile(r"  ([a-z]+) = (?:\{(.*)\}|[a-z]{3})", re.DOTALL)
ADDRESSES = {"doi", "url"}


def rows(source: str) -> Iterator[dict[str, Any]]:
    pages = [one[:3] for one in WHOLE if one[0] == source and one[3]]
    for page in pages[:: max(1, len(pages) // MAX_PAGES)]:
        for one in read(*page):
            if one.work is not None and is_citable(row := row_of(one.work)):
                yield row


def test_the_words_for_types_are_those_of_the_formats() -> None:
    assert {*RIS_TYPES.values(), "GEN"} <= set(RIS.split())
    assert {*CSL_TYPES.values(), "document"} <= set(CSL.split())
    assert {*BIBTEX_TYPES.values(), "misc"} <= set(BIBTEX.split())


@pytest.mark.parametrize("source", SOURCES)
def test_an_entry_of_bibtex_has_balanced_braces_and_nothing_that_tex_would_read(source: str) -> None:
    for row in rows(source):
        entry = bibtex(row)
        found = re.fullmatch(r"@[a-z]+\{([^\s,{}\\%#]+),\n(.+)\n\}\n", entry, re.DOTALL)
        assert found is not None, entry
        assert found[1].isascii()
        for field in re.split(r",\n(?=  [a-z]+ = )", found[2]):
            parts = FIELD.fullmatch(field)
            assert parts is not None, field
            name, value = parts[1], parts[2] or ""
            depth = 0
            for sign in value:
                depth += (sign == "{") - (sign == "}")
                assert depth >= 0, field
            assert depth == 0, field
            if name not in ADDRESSES:
                assert re.search(r"(?<!\\)[%&#_$]", FORMULA.sub("", value)) is None, field


@pytest.mark.parametrize("source", SOURCES)
def test_a_record_of_ris_is_lines_of_a_tag_and_a_value(source: str) -> None:
    for row in rows(source):
        first, *between, last, after = ris(row).split("\r\n")
        assert (first[:6], last, after) == ("TY  - ", "ER  - ", "")
        assert all(re.fullmatch(r"[A-Z][A-Z0-9]  - \S[^\r\n]*", line) for line in between), between
        dates = [line[6:] for line in between if line.startswith("DA")]
        assert all(re.fullmatch(r"\d{4}/(\d\d)?/(\d\d)?", date) for date in dates), dates


@pytest.mark.parametrize("source", SOURCES)
def test_an_item_of_csl_has_names_dates_and_texts(source: str) -> None:
    for row in rows(source):
        item = csl(row)
        for person in [*item.pop("author", []), *item.pop("editor", [])]:
            assert set(person) <= {"family", "given", "suffix"} or set(person) == {"literal"}, person
            assert all(value and isinstance(value, str) for value in person.values()), person
        for parts in item.pop("issued", {"date-parts": []})["date-parts"]:
            assert all(type(part) is int for part in parts)
            assert 1 <= len(parts) <= 3
            assert (parts[1:2] or [1])[0] in range(1, 13)
            assert (parts[2:3] or [1])[0] in range(1, 32)
        assert all(value and isinstance(value, str) for value in item.values()), item
