"""People, pages, subjects and grants in one form, whatever providers write."""

from typing import Any

import pytest

from patra.ingest.expressions.bibliography import (
    align_lists,
    grants,
    page_range,
    pages,
    parse_printed,
    person,
    publisher_name,
    surname_first,
    terms,
)
from patra.ingest.expressions.cleaners import clean


@pytest.mark.parametrize(
    ("text", "name", "given", "family"),
    [
        ("Lovelace, Ada", "Ada Lovelace", "Ada", "Lovelace"),
        ("Ada Lovelace, PhD", "Ada Lovelace, PhD", None, None),
        ("PCAWG Network,", "PCAWG Network", None, None),
        ("Smith, John, Jr.", "John Smith, Jr.", "John", "Smith"),
        ("Hulscher, Nicolas, BS", "Nicolas Hulscher, BS", "Nicolas", "Hulscher"),
        ("El-Kassaby, Yousry, A.", "Yousry A. El-Kassaby", "Yousry A.", "El-Kassaby"),
        ("Smith, J., Doe, K.", "Smith, J., Doe, K.", None, None),
        ("Jenni Schmitt et al.", "Jenni Schmitt", None, None),
        ("Schmitt, Jenni, et al", "Jenni Schmitt", "Jenni", "Schmitt"),
        ("Art King, Ph.D. et al.", "Art King, Ph.D.", None, None),
        ("Fog, Al", "Al Fog", "Al", "Fog"),
        ("Fog Division, Oak Ridge National Laboratory", "Fog Division, Oak Ridge National Laboratory", None, None),
        (
            "M. Arshad Shehzad Hassan, Guobing Song, Xiaoning Kang",
            "M. Arshad Shehzad Hassan, Guobing Song, Xiaoning Kang",
            None,
            None,
        ),
        ("Li, MD", "MD Li", "MD", "Li"),
        ("三輪 嘉尚", "三輪 嘉尚", None, None),
        # family names that mean something, too
        ("Bureau, Thomas E.", "Thomas E. Bureau", "Thomas E.", "Bureau"),
        ("Hospital, Frédéric", "Frédéric Hospital", "Frédéric", "Hospital"),
        ("Museum of Fog, Oslo", "Museum of Fog, Oslo", None, None),
        ("Fog, Institute of Lamps", "Fog, Institute of Lamps", None, None),
        ("J. Dupont, M. Curie", "J. Dupont, M. Curie", None, None),
        ("St. John, Ada", "Ada St. John", "Ada", "St. John"),
    ],
)
def test_a_person(text: str, name: str, given: str | None, family: str | None) -> None:
    parts = {"given": given, "family": family} if family else {}
    assert person(text) == {"name": name, **parts}


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("Thiery JP", ("JP", "Thiery")),
        ("Vázquez-Arreguín K", ("K", "Vázquez-Arreguín")),
        ("Van Den Bossche T", ("T", "Van Den Bossche")),
        ("Alves Â", ("Â", "Alves")),
        ("王 明", None),
        ("IASLC Basic and Translational Science Committee", None),
        ("Sumit", None),
    ],
)
def test_a_name_with_its_initials_last(text: str, parts: tuple[str, str] | None) -> None:
    found = {"given": parts[0], "family": parts[1]} if parts else {}
    name = f"{parts[0]} {parts[1]}" if parts else text
    assert surname_first(text) == {"name": name, **found}
    assert clean(["surname_first"], [text, {"name": "x"}]) == [{"name": name, **found}, {"name": "x"}]


def test_commas_alone_are_nobody() -> None:
    assert person(" , ;") is None


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("253-277", "253-277"),
        ("253–277", "253-277"),
        ("253--277", "253-277"),
        ("pp. 253 - 277", "253-277"),
        ("P1-P7", "P1-P7"),
        ("e123", "e123"),
        ("12-12", "12"),
        ("253-", "253"),
        ("127-8, 130, 137-8", "127-8, 130, 137-8"),
        ("jmg-2025-110769", "jmg-2025-110769"),
        ("_2304-1_-_2304-8_", "2304-1-2304-8"),
        ("S2090-1232(25)00434-5", None),
        ("S0945-053X(25)00050-2", None),
        ("n/a-n/a", None),
        ("-", None),
        # indexes leave out what the last page shares with the first
        ("444-58", "444-458"),
        ("113-25", "113-125"),
        ("S139-47", "S139-S147"),
        ("014301-4", "014301-014304"),
        ("2304-1", "2304-1"),
        ("1-15", "1-15"),
        ("L25-L28", "L25-L28"),
        ("e12-3, e20", "e12-3, e20"),
    ],
)
def test_pages(text: str, found: str | None) -> None:
    assert pages(text) == found


@pytest.mark.parametrize(
    ("text", "ends"),
    [
        ("253-277", ("253", "277")),
        ("e123", ("e123", None)),
        ("2304-1-2304-8", ("2304-1", "2304-8")),
        ("jmg-2025-110769", ("jmg-2025-110769", None)),
        ("127-8, 130, 137-8", ("127-8, 130, 137-8", None)),
    ],
)
def test_the_hyphen_in_the_middle_parts_the_first_page_from_the_last(text: str, ends: tuple[str, str | None]) -> None:
    assert page_range(text) == ends


def test_keywords_of_one_text_are_parted_and_each_is_there_once() -> None:
    assert terms(["fog; lamps ;", "Fog", "Crosses, Genetic"]) == ["fog", "lamps", "Crosses, Genetic"]
    assert terms([" ; "]) is None
    assert terms(["sport, fog, lamps, Poland, wieś"]) == ["sport", "fog", "lamps", "Poland", "wieś"]
    assert terms(["Receptors, Antigen, T-Cell, gamma-delta"]) == ["Receptors, Antigen, T-Cell, gamma-delta"]
    assert clean(["terms"], "a &amp; b; c") == ["a & b", "c"]


def test_commas_inside_a_word_part_no_keywords() -> None:
    chemical = "1,2,3,4,6-penta-O-galloyl-beta-D-glucose"
    assert terms([chemical]) == [chemical]
    assert terms(["N,N,N',N'-tetramethyl-1,4-phenylenediamine, dyes"]) == [
        "N,N,N',N'-tetramethyl-1,4-phenylenediamine, dyes"
    ]
    assert terms([f"tannins, {chemical}, gallic acid, tea, oak"]) == ["tannins", chemical, "gallic acid", "tea", "oak"]
    assert terms([f"{chemical}; tea"]) == [chemical, "tea"]


def test_a_funder_is_there_once_with_all_its_awards() -> None:
    given: list[dict[str, Any]] = [
        {"name": "NIH", "awards": ["R01", "R01"]},
        {"name": "NIH", "awards": ["R02"]},
        {"name": "ERC", "id": "7", "awards": None},
        {"name": "ERC again", "id": "7"},
        {"awards": ["nobody's"]},
    ]
    assert grants(given) == [{"name": "NIH", "awards": ["R01", "R02"]}, {"name": "ERC", "id": "7"}]
    assert grants([]) is None


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("Online Submission", "Online Submission"),
        ("U.S. Department of Education", "U.S. Department of Education"),
        ("U.S. Department of Education. 400 Maryland Avenue SW, Washington, DC 20202", "U.S. Department of Education"),
        ("U.S. Department of Education. Available from: ED Pubs. P.O. Box 1398, Jessup, MD 20794",
         "U.S. Department of Education"),
        ("St. Martin's Press", "St. Martin's Press"),
        ("St. Martin's Press. 175 Fifth Avenue, New York, NY 10010. Tel: 646-307-5151", "St. Martin's Press"),
        ("W. W. Norton. P.O. Box 5, Scranton, PA", "W. W. Norton"),
        ("John Wiley & Sons, Inc. 111 River Street, Hoboken, NJ 07030", "John Wiley & Sons, Inc."),
        ("Routledge. Available from: Taylor & Francis, Ltd. 530 Walnut Street", "Routledge"),
        ("SAGE Publications. Tel: 800-818-7243", "SAGE Publications"),
        ("National Inst. of Education. 1200 19th Street NW", "National Inst. of Education"),
        ("Press of the Lamp. Department of Fog. Web site: http://lamp.example.org", "Press of the Lamp"),
        ("American Psychological Association. Journals Department, 750 First Street NE", "American Psychological Association"),
        ("Fog Press. Hotel Division", "Fog Press. Hotel Division"),  # nothing of it is an address
    ],
)  # fmt: skip
def test_the_name_of_a_publisher_ends_where_an_address_follows(text: str, name: str) -> None:
    assert publisher_name(text) == name
    assert clean(["publisher"], [text, 5]) == [name]


def test_a_funder_that_two_lists_name_by_different_ids_is_one() -> None:
    entries = [
        {"name": "CERN", "id": "https://ror.org/01ggx4157"},
        {"name": "CERN", "id": "https://openalex.org/F4320313559", "awards": ["1"]},
        {"id": "https://openalex.org/F4320313559", "awards": ["2"]},
    ]
    assert grants(entries) == [{"name": "CERN", "id": "https://ror.org/01ggx4157", "awards": ["1", "2"]}]


def test_lists_side_by_side_are_people() -> None:
    side_by_side = {
        "name": [{"name": "Ada Lovelace", "given": "Ada", "family": "Lovelace"}, {"name": "Sameer"}],
        "affiliation": ["Oslo, NO; Bergen, NO", "-"],
        "orcid": ["-", "0000-0002-1825-0097"],
        "given": ["of another length"],
    }
    assert align_lists(side_by_side) == [
        {"name": "Ada Lovelace", "given": "Ada", "family": "Lovelace", "affiliation": ["Oslo, NO", "Bergen, NO"]},
        {"name": "Sameer", "orcid": "0000-0002-1825-0097"},
    ]
    assert align_lists({"given": ["Vincent", ""], "family": ["Bichet", "INRAE"]}) == [
        {"given": "Vincent", "family": "Bichet", "name": "Vincent Bichet"},
        {"family": "INRAE", "name": "INRAE"},
    ]
    assert align_lists({"name": None}) is None


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("Annals of Fog; Vol. 7 No. 2 (2012): Lamps; 23-44", ("Annals of Fog", "7", "2", "23-44")),
        ("Proceedings of Fog; Vol. 2 No. 1: Fog '26; 1-12", ("Proceedings of Fog", "2", "1", "1-12")),
        ("Revista X; v. 5, n. 2 (2010); 11-20", ("Revista X", "5", "2", "11-20")),
        ("Revista X; Vol. 12 N\u00fam. 3 (2019): Oto\u00f1o; 5\u201317", ("Revista X", "12", "3", "5-17")),
        ("The Mind Repository (beta); No 1 (2013)", ("The Mind Repository (beta)", None, "1", None)),
        ("Journal of Lamps; 2022", ("Journal of Lamps", None, None, None)),
        ("Evolution: 29 (1975) no. 4, pp. 750-762", ("Evolution", "29", "4", "750-762")),
        ("Annales: 56 (1912) pp. 339-42", ("Annales", "56", None, "339-342")),
        ("MIPO Online, yr. 2012, vol. 7, iss. 2, pg. 23-44", ("MIPO Online", "7", "2", "23-44")),
        ("GMS Fog; 12(3):Doc25", ("GMS Fog", "12", "3", "Doc25")),
        ("GMS Fog; 11:Doc01", ("GMS Fog", "11", None, "Doc01")),
        ("Nature", ("Nature", None, None, None)),
        ("Smith, J.; Doe, K. A book; Oslo", ("Smith, J.; Doe, K. A book; Oslo", None, None, None)),
    ],
)
def test_where_a_work_is_printed(text: str, parts: tuple[str | None, ...]) -> None:
    names = ("container", "volume", "issue", "pages")
    assert parse_printed(text) == {name: part for name, part in zip(names, parts, strict=True) if part is not None}
