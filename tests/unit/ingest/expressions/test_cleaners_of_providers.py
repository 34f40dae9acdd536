"""Cases of our own making for what providers write, one line each."""

from typing import Any

import pytest

from patra.ingest.expressions.cleaners import clean

CASES: list[tuple[str, Any, Any]] = [
    ("text", "A\n   <i>KRAS</i>\n panel", "A KRAS panel"),
    ("text", "H<sub>2</sub>O &amp; salt", "H2O & salt"),
    ("text", "&lt;i&gt;Lavandula&lt;/i&gt; Mill.", "Lavandula Mill."),
    ("text", "p < 0.05 and q > 3", "p < 0.05 and q > 3"),
    ("text", "a<b and c>d", "a<b and c>d"),
    ("text", '<p class="x">One</p><p>Two</p>', "One Two"),
    ("text", "意味的類似度", "意味的類似度"),
    ("text", "  ", None),
    ("abstract", "<jats:title>Abstract</jats:title><jats:p>Despite</jats:p>", "Despite"),
    ("abstract", "<p><strong>ABSTRACT</strong></p>\n<p>We</p>", "We"),
    ("abstract", "Abstract algebra is fun", "Abstract algebra is fun"),
    ("abstract", "<p>The <b>Summary</b> page</p>", "The Summary page"),
    ("abstract", "ends. \\n (B) goes on with \\nu", "ends. (B) goes on with \\nu"),
    ("abstract", "<jats:p/>", None),
    ("abstract", "Abstract\n\nAdvancements in fog", "Advancements in fog"),
    ("abstract", "Abstract: Assuming that", "Assuming that"),
    ("abstract", "Abstract Expressionism in fog", "Abstract Expressionism in fog"),
    ("abstract", "https://thekeep.eiu.edu/5442/thumbnail.jp", None),
    ("abstract", "Contains fulltext : 121229.pdf (Publisher’s version ) (Open Access)", None),
    ("abstract", "Item does not contain fulltext Fog is wet.", "Fog is wet."),
    ("abstract", "Fulltext search in fog", "Fulltext search in fog"),
    ("pages", 7, "7"),
    ("numbering", "null", None),
    ("numbering", "-", None),
    ("numbering", 7, "7"),
    ("numbering", "n° 95", "n° 95"),
    ("pages", "253&#8211;277", "253-277"),
    ("isbd", "A study of fog : in two parts /", "A study of fog: in two parts"),
    ("isbd", "Fog 1:2", "Fog 1:2"),
    ("full_stop", "Of <i>fog</i> in the USA.", "Of fog in the USA"),
    ("full_stop", "Fog, version 2.2025.", "Fog, version 2.2025"),
    ("full_stop", "[Of fog].", "[Of fog]"),
    ("full_stop", "Fog in the U.S.", "Fog in the U.S."),
    ("full_stop", "Lamps: Luxia minor sp. nov.", "Lamps: Luxia minor sp. nov."),
    ("full_stop", "And yet...", "And yet..."),
    ("full_stop", "Is it fog?", "Is it fog?"),
    ("full_stop", ".", None),
    ("card_date", "c1843.", "1843"),
    ("card_date", "[1843?]", "1843"),
    ("card_date", "13 Mar 2026", "13 Mar 2026"),
    ("unnumbered", "Mihai G Netea (15649)", "Mihai G Netea"),
    ("unnumbered", "Liangli (Lucy) Yu", "Liangli (Lucy) Yu"),
    ("url", "https://x.org/a?b=1&amp;c=2", "https://x.org/a?b=1&c=2"),
    ("sections", [{"label": "AIM", "text": "To see."}, {"text": "We saw."}], "AIM: To see. We saw."),
    ("doi", "https://doi.org/10.7717/PeerJ.4375", "10.7717/peerj.4375"),
    ("doi", "doi:10.1038/srep22278", "10.1038/srep22278"),
    ("doi", "10.1103/PhysRevD.93.016005, 10.1103/PhysRevD.98.079901", "10.1103/physrevd.93.016005"),
    ("doi", "oai:CiteSeerX.psu:10.1.1.618.5850", None),
    ("pmcid", "https://www.ncbi.nlm.nih.gov/pmc/articles/5815332", "PMC5815332"),
    ("pmcid", "PMC12062895", "PMC12062895"),
    ("arxiv", "http://arxiv.org/abs/2202.12139v1", "2202.12139"),
    ("arxiv", "http://arxiv.org/abs/astro-ph/0601001v2", "astro-ph/0601001"),
    ("license", "http://creativecommons.org/licenses/by-nc/4.0/", "cc-by-nc-4.0"),
    ("license", "https://creativecommons.org/publicdomain/zero/1.0/legalcode", "cc0-1.0"),
    ("license", "CC BY", "cc-by"),
    ("license", "cc by 3.0", "cc-by-3.0"),
    ("license", "cc-by-4.0", "cc-by-4.0"),
    ("license", "other-pd", "other-pd"),
    ("language", "eng", "en"),
    ("language", "English", "en"),
    ("language", "pt_BR", "pt"),
    ("language", "mul", None),
    ("person", "Lovelace, Ada", {"name": "Ada Lovelace", "given": "Ada", "family": "Lovelace"}),
    ("person", "Harvey A. Risch, MD, PhD", {"name": "Harvey A. Risch, MD, PhD"}),
    ("person", "The Fog Society", {"name": "The Fog Society"}),
    ("known_date", {"date-parts": [[None]]}, None),
    ("known_date", {"date-parts": [[2019]]}, {"date-parts": [[2019]]}),
    ("known_date", "n.d.", None),
    ("earliest", ["2015-05-12T17:08:30Z", "2015-05-09", "nothing"], "2015-05-09"),
    ("longest", ["SeriesInformation", "A real description of it"], "A real description of it"),
    ("uninvert", {"again": [2], "boats": [1], "paper": [0]}, "paper boats again"),
]


@pytest.mark.parametrize(("name", "value", "expected"), CASES, ids=[f"{n}-{i}" for i, (n, _, _) in enumerate(CASES)])
def test_what_a_cleaner_makes_of_a_value(name: str, value: Any, expected: Any) -> None:
    assert clean([name], value) == expected


def test_a_list_is_cleaned_item_by_item_and_nothings_fall_out() -> None:
    assert (
        clean(["doi", "first"], ["http://zenodo.org/record/13841", "doi:10.5281/zenodo.13841"])
        == "10.5281/zenodo.13841"
    )
    assert clean(["text"], ["", "  "]) is None


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("Sudilovsky, V.", "V. Sudilovsky"),
        ("Smith, M.A.", "M.A. Smith"),
        ("Lovelace, Ada", "Ada Lovelace"),
        ("Ada Lovelace, M.A.", "Ada Lovelace, M.A."),
        ("Ada Lovelace, PhD, III", "Ada Lovelace, PhD, III"),
        ("King, Jr.", "King, Jr."),
        ("Davis, III", "Davis, III"),
        ("Davis, PhD", "Davis, PhD"),
    ],
)
def test_initials_are_no_degrees_and_no_numerals(written: str, name: str) -> None:
    assert clean(("person",), written)["name"] == name
