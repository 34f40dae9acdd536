"""Works as reference managers read them: CSL-JSON, BibTeX and RIS."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from patra.ingest.packs.work import Author, Link, When, Work
from patra.ingest.works.citation_formats import bibtex, citation_key, csl, date_parts, ris
from patra.ingest.works.export import WORKS, row_of
from patra.ingest.works.file_writers import export, format_of, sink

ARTICLE = row_of(
    Work(
        source="crossref", endpoint="works", id="10.7717/peerj.4375", doi="10.7717/peerj.4375", pmid="29456894",
        title="The state of OA: 50% & more", container="PeerJ", publisher="PeerJ, Inc.", type="article", volume="6",
        issue="2", pages="253-277", issn=["2167-8359"], keywords=["Open access"], language="en",
        issued=When(at="2018-02-01T00:00:00Z", precision="month"), url="https://doi.org/10.7717/peerj.4375",
        authors=[Author(name="Heather Piwowar", given="Heather", family="Piwowar"), Author(name="OA {Group}")],
        retracted=True,
    )
)  # fmt: skip


def test_an_article_in_csl_json() -> None:
    assert csl(ARTICLE) == {
        "id": "piwowar2018state:10.7717-peerj.4375",
        "type": "article-journal",
        "title": "The state of OA: 50% & more",
        "author": [{"family": "Piwowar", "given": "Heather"}, {"literal": "OA {Group}"}],
        "container-title": "PeerJ",
        "publisher": "PeerJ, Inc.",
        "issued": {"date-parts": [[2018, 2]]},
        "volume": "6",
        "issue": "2",
        "page": "253-277",
        "language": "en",
        "DOI": "10.7717/peerj.4375",
        "PMID": "29456894",
        "ISSN": "2167-8359",
        "URL": "https://doi.org/10.7717/peerj.4375",
        "keyword": "Open access",
        "status": "retracted",
    }


def test_an_article_in_bibtex() -> None:
    assert bibtex(ARTICLE) == (
        "@article{piwowar2018state:10.7717-peerj.4375,\n"
        "  author = {Piwowar, Heather and {OA \\{Group\\}}},\n"
        "  title = {{The state of OA: 50\\% \\& more}},\n"
        "  journal = {PeerJ},\n"
        "  publisher = {PeerJ, Inc.},\n"
        "  year = {2018},\n"
        "  month = feb,\n"
        "  volume = {6},\n"
        "  number = {2},\n"
        "  pages = {253--277},\n"
        "  doi = {10.7717/peerj.4375},\n"
        "  issn = {2167-8359},\n"
        "  language = {en},\n"
        "  url = {https://doi.org/10.7717/peerj.4375},\n"
        "  keywords = {Open access},\n"
        "  note = {Retracted}\n"
        "}\n"
    )


CHAPTER = row_of(
    Work(
        source="crossref", endpoint="works", id="10.5555/c", title="On fog", container="Weather", type="chapter",
        issued=When(at="2020-01-01T00:00:00Z", precision="year"), authors=[Author(name="Ada Lovelace")],
        editors=[Author(name="Grace Hopper", given="Grace", family="Hopper"), Author(name="Fog Committee")],
    )
)  # fmt: skip


def test_editors_of_a_volume_are_cited_and_those_of_a_journal_are_not() -> None:
    assert csl(CHAPTER)["editor"] == [{"family": "Hopper", "given": "Grace"}, {"literal": "Fog Committee"}]
    assert "  editor = {Hopper, Grace and {Fog Committee}},\n" in bibtex(CHAPTER)
    assert "\r\nED  - Hopper, Grace\r\nED  - Fog Committee\r\n" in ris(CHAPTER)
    article = {**CHAPTER, "type": "article"}
    assert "editor" not in csl(article)
    assert "editor" not in bibtex(article)
    assert "\r\nED" not in ris(article)


def test_a_thesis_has_a_school_also_where_no_publisher_is_named() -> None:
    thesis = {**CHAPTER, "type": "thesis", "container": "University of Fog"}
    assert "  school = {University of Fog},\n" in bibtex(thesis)
    assert "howpublished" not in bibtex(thesis)
    both = bibtex({**thesis, "publisher": "Fog Libraries", "type": "report"})
    assert "  institution = {Fog Libraries},\n  howpublished = {University of Fog},\n" in both


def test_a_book_without_authors_is_cited_by_its_editors() -> None:
    book = {**CHAPTER, "type": "book", "authors": []}
    assert citation_key(book) == "hopper2020:10.5555-c"
    assert bibtex(book).startswith("@book{hopper2020:10.5555-c,\n  editor = {Hopper, Grace and {Fog Committee}},\n")


def test_an_article_in_ris() -> None:
    assert ris(ARTICLE).split("\r\n") == [
        "TY  - JOUR", "ID  - piwowar2018state:10.7717-peerj.4375", "AU  - Piwowar, Heather", "AU  - OA {Group}",
        "TI  - The state of OA: 50% & more", "T2  - PeerJ", "PB  - PeerJ, Inc.", "PY  - 2018", "DA  - 2018/02/",
        "VL  - 6", "IS  - 2", "SP  - 253", "EP  - 277", "DO  - 10.7717/peerj.4375", "AN  - 29456894",
        "SN  - 2167-8359", "KW  - Open access", "LA  - en", "UR  - https://doi.org/10.7717/peerj.4375",
        "N1  - Retracted", "ER  - ", "",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("precision", "parts"), [("year", [2018]), ("month", [2018, 2]), ("day", [2018, 2, 1]), ("instant", [2018, 2, 1])]
)
def test_a_date_is_written_as_far_as_it_is_known(precision: str, parts: list[int]) -> None:
    assert date_parts({"issued": "2018-02-01T00:00:00Z", "issued_precision": precision}) == parts


def test_a_work_of_which_little_is_known_is_written_all_the_same() -> None:
    bare = row_of(Work(source="s", endpoint="e", id="1"))
    assert csl(bare) == {"id": "anon:1", "type": "document"}
    assert bibtex(bare) == "@misc{anon:1,\n\n}\n"
    assert ris(bare) == "TY  - GEN\r\nID  - anon:1\r\nER  - \r\n"
    assert citation_key({"title": "On Boats", "authors": [{"name": "Ada Lovelace"}]}) == "lovelaceboats"


def entry(**fields: Any) -> dict[str, Any]:
    return row_of(Work(source="s", endpoint="e", id="1", **fields))


def field(text: str, name: str) -> str | None:
    """The value of a field of a BibTeX entry, as a parser finds it: braces are counted, whatever stands before them."""
    start = text.find(f"  {name} = ")
    if start < 0:
        return None
    value = text[start + len(f"  {name} = ") :]
    if not value.startswith("{"):
        return value.partition(",")[0]
    depth = 0
    for at, one in enumerate(value):
        depth += (one == "{") - (one == "}")
        if depth == 0:
            return value[1:at]
    raise AssertionError(f"the braces of {name} are not closed")


@pytest.mark.parametrize(
    ("title", "written"),
    [
        ("Sets {a, b} & 50% of #1_x", r"{Sets \{a, b\} \& 50\% of \#1\_x}"),
        ("An open brace { alone", r"{An open brace \textbraceleft{} alone}"),
        ("} then {", r"{\textbraceright{} then \textbraceleft{}}"),
        (r"A \ and ~ and ^", r"{A \textbackslash{} and \textasciitilde{} and \textasciicircum{}}"),
        (r"Landé $g_J$ factors of $5s~^2S_{1/2}$ in $^{111}$Cd$^+$", r"{Landé $g_J$ factors of $5s~^2S_{1/2}$ in $^{111}$Cd$^+$}"),
        ("US$5 and A$10 & more", r"{US\$5 and A\$10 \& more}"),
        ("From $5 to $10", r"{From \$5 to \$10}"),
        ("意味的類似度を用いた", "{意味的類似度を用いた}"),
        # untrusted text between dollars is a formula only where TeX does nothing else with it
        (r"The $\input{/etc/passwd}$ of", r"{The \$\textbackslash{}input\{/etc/passwd\}\$ of}"),
        (r"$\immediate\write18{x}$", r"{\$\textbackslash{}immediate\textbackslash{}write18\{x\}\$}"),
        (r"$\write18{x}$", r"{\$\textbackslash{}write18\{x\}\$}"),
        (r"$\begin{filecontents}x\end{filecontents}$",
         r"{\$\textbackslash{}begin\{filecontents\}x\textbackslash{}end\{filecontents\}\$}"),
        ("$^^5cinput{x}$", r"{\$\textasciicircum{}\textasciicircum{}5cinput\{x\}\$}"),
        (r"$\@@input x$", r"{\$\textbackslash{}@@input x\$}"),
        ("Of $x%=y$ and", r"{Of \$x\%=y\$ and}"),
        (r"$a\\%=b$", r"{\$a\textbackslash{}\textbackslash{}\%=b\$}"),
        (r"An end $\alpha\$ that is none", r"{An end \$\textbackslash{}alpha\textbackslash{}\$ that is none}"),
        (r"$p=95\%$ of $\mathrm{H\alpha}\,\leq\Delta_{x}$", r"{$p=95\%$ of $\mathrm{H\alpha}\,\leq\Delta_{x}$}"),
        (r"$\begin{pmatrix}1\\2\end{pmatrix}$", r"{$\begin{pmatrix}1\\2\end{pmatrix}$}"),
        (r"$\inputs\leftarrow\definite$", r"{$\inputs\leftarrow\definite$}"),
    ],
)  # fmt: skip
def test_an_awkward_title_in_bibtex(title: str, written: str) -> None:
    text = bibtex(entry(title=title, volume="7"))
    assert field(text, "title") == written
    assert field(text, "volume") == "7", "what stands after it can still be read"


@pytest.mark.parametrize(
    ("author", "written"),
    [
        (Author(name="Joop de Kraker", given="Joop", family="de Kraker"), "de Kraker, Joop"),
        (Author(name="Heather Piwowar"), "Heather Piwowar"),  # BibTeX parts it
        (Author(name="Planck Collaboration"), "{Planck Collaboration}"),
        (Author(name="The Lamp Group", family="The Lamp Group"), "{The Lamp Group}"),
        (Author(name="Bill and Melinda Gates Foundation"), "{Bill and Melinda Gates Foundation}"),
        (Author(name="Food & Drug Agency"), r"{Food \& Drug Agency}"),
        (Author(name="Sumit"), "{Sumit}"),
        (Author(name="Zhou W"), "{Zhou W}"),
        (Author(name="Zhou W", given="W", family="Zhou"), "Zhou, W"),
        (Author(name="MS Hassan", given="MS", family="Hassan"), "Hassan, M. S."),  # styles shorten MS to M.
        (Author(name="ADA FOG", given="ADA", family="FOG"), "FOG, ADA"),
        (Author(name="In-Soo Kim"), "In-Soo Kim"),
        (Author(name="Lamps in Fog"), "{Lamps in Fog}"),
        (Author(name="宮地 元彦"), "{宮地 元彦}"),
        (Author(name="小明 王", given="小明", family="王"), "王, 小明"),
        (Author(name="Nicolas Hulscher, BS"), "Nicolas Hulscher"),
    ],
)
def test_an_awkward_author_in_bibtex(author: Author, written: str) -> None:
    assert field(bibtex(entry(title="x", authors=[author])), "author") == written


def test_authors_that_were_cut_off_are_the_others() -> None:
    cut = entry(authors=[Author(name="Ada Lovelace", given="Ada", family="Lovelace")], authors_truncated=True)
    assert field(bibtex(cut), "author") == "Lovelace, Ada and others"


@pytest.mark.parametrize(
    ("fields", "written", "ends"),
    [
        ({"pages": "253-277"}, "253--277", ("253", "277")),
        ({"pages": "e123"}, "e123", ("e123", None)),
        ({"pages": "S1-S5"}, "S1--S5", ("S1", "S5")),
        ({"pages": "2304-1-2304-8"}, "2304-1--2304-8", ("2304-1", "2304-8")),
        ({"pages": "jmg-2025-110769"}, "jmg-2025-110769", ("jmg-2025-110769", None)),
        ({"pages": "127-8, 130, 137-8"}, "127--8, 130, 137--8", ("127-8, 130, 137-8", None)),
        ({"article_number": "e2021-35"}, "e2021-35", ("e2021-35", None)),
    ],
)
def test_awkward_pages(fields: dict[str, str], written: str, ends: tuple[str, str | None]) -> None:
    row = entry(**fields)
    assert field(bibtex(row), "pages") == written
    lines = dict(line.split("  - ", 1) for line in ris(row).split("\r\n") if "  - " in line)
    assert (lines.get("SP"), lines.get("EP")) == ends


def test_a_year_alone_stays_a_year_in_every_format() -> None:
    row = entry(title="x", issued=When(at="2007-01-01T00:00:00Z", precision="year"))
    assert csl(row)["issued"] == {"date-parts": [[2007]]}
    assert (field(bibtex(row), "year"), field(bibtex(row), "month")) == ("2007", None)
    assert "PY  - 2007\r\nDA  - 2007//\r\n" in ris(row)


def test_keywords_and_headings_stand_together_and_a_comma_of_their_own_does_not_part_them() -> None:
    row = entry(keywords=["fog", "Weather"], mesh=["Weather", "Crosses, Genetic"])
    assert field(bibtex(row), "keywords") == "fog; Weather; Crosses, Genetic"
    assert csl(row)["keyword"] == "fog; Weather; Crosses, Genetic"
    assert ris(row).count("KW  - ") == 3


@pytest.mark.parametrize(
    ("author", "key"),
    [("Zoë Müller", "muller"), ("宮地 元彦", "anon"), ("Jan Łukasz", "lukasz"), ("Søren Æbelø", "aebelo")],
)
def test_a_key_is_ascii(author: str, key: str) -> None:
    found = citation_key({"authors": [{"name": author}], "title": "Über den Nebel", "doi": "10.5555/x(1)[2]<3>"})
    assert found == f"{key}uber:10.5555-x-1--2--3-"
    assert found.isascii()


def test_a_url_with_braces_does_not_open_one() -> None:
    text = bibtex(entry(url="https://x.org/{a\\b", volume="7"))
    assert (field(text, "url"), field(text, "volume")) == ("https://x.org/%7Ba%5Cb", "7")


def test_commands_that_do_more_than_mathematics_are_text() -> None:
    commands = (
        "input include openin openout read write csname catcode def edef gdef let immediate special usepackage loop "
        "expandafter newcommand lowercase directlua"
    )
    for command in commands.split():
        written = field(bibtex(entry(title=rf"A $\{command} x$")), "title")
        assert written == rf"{{A \$\textbackslash{{}}{command} x\$}}", command


@pytest.mark.parametrize("rows", [[], [ARTICLE], [ARTICLE, ARTICLE]])
def test_csl_json_is_one_array(tmp_path: Path, rows: list[dict[str, Any]]) -> None:
    path = tmp_path / "w.csljson"
    assert export([rows[:1], rows[1:]], sink(path, format_of(path), WORKS)) == len(rows)
    assert json.loads(path.read_text(encoding="utf-8")) == [csl(row) for row in rows]


@pytest.mark.parametrize(("name", "begin"), [("a.bib", "@article{"), ("a.ris", "TY  - "), ("a.csljson", '"type":')])
def test_what_was_taken_back_or_has_neither_title_nor_doi_is_no_reference(
    tmp_path: Path, name: str, begin: str
) -> None:
    nameless = {"source": "oaipmh", "endpoint": "records", "id": "oai:x:1", "deleted": False}
    path = tmp_path / name
    assert export([[nameless, {**ARTICLE, "deleted": True}, ARTICLE]], sink(path, format_of(path), WORKS)) == 1
    assert path.read_text().count(begin) == 1


@pytest.mark.parametrize(("name", "written"), [("w.bib", bibtex), ("w.ris.gz", ris)])
def test_entries_stand_one_after_the_other(tmp_path: Path, name: str, written: Any) -> None:
    path = tmp_path / name
    assert export([[ARTICLE, ARTICLE]], sink(path, format_of(path), WORKS)) == 2
    body = gzip.decompress(path.read_bytes()) if name.endswith(".gz") else path.read_bytes()
    assert body.decode() == f"{written(ARTICLE)}\n{written(ARTICLE)}\n"


@pytest.mark.parametrize(
    ("author", "in_csl", "in_ris"),
    [
        (Author(name="Jevin D. West"), {"family": "West", "given": "Jevin D."}, "West, Jevin D."),
        (
            Author(name="Gustavo A. B. da Fonseca"),
            {"family": "da Fonseca", "given": "Gustavo A. B."},
            "da Fonseca, Gustavo A. B.",
        ),
        (
            Author(name="Canadian Respiratory Research Network"),
            {"literal": "Canadian Respiratory Research Network"},
            None,
        ),
        (Author(name="宮地 元彦"), {"literal": "宮地 元彦"}, None),
        (Author(name="Sameer"), {"literal": "Sameer"}, None),
        (Author(name="Nguyen The Hung"), {"family": "Hung", "given": "Nguyen The"}, "Hung, Nguyen The"),
        (Author(name="The Lamps"), {"literal": "The Lamps"}, None),
        (Author(name="GMDS-Projektgruppe „MI-Lehre“"), {"literal": "GMDS-Projektgruppe „MI-Lehre“"}, None),
        (Author(name="Harvey A. Risch, MD, PhD"), {"family": "Risch", "given": "Harvey A."}, "Risch, Harvey A."),
        (
            Author(name="Jessie A. G. L. van Buggenum"),
            {"family": "van Buggenum", "given": "Jessie A. G. L."},
            "van Buggenum, Jessie A. G. L.",
        ),
        (
            Author(name="Sam Fog Jr", given="Sam", family="Fog", suffix="Jr"),
            {"family": "Fog", "given": "Sam", "suffix": "Jr"},
            "Fog, Sam, Jr",
        ),
    ],
)
def test_a_person_has_a_family_name_and_a_group_does_not(
    author: Author, in_csl: dict[str, str], in_ris: str | None
) -> None:
    row = entry(authors=[author])
    assert csl(row)["author"] == [in_csl]
    assert f"AU  - {in_ris or author.name}\r\n" in ris(row)


def test_the_suffix_of_a_name_stands_where_bibtex_wants_it() -> None:
    assert (
        field(bibtex(entry(authors=[Author(name="Sam Fog Jr", given="Sam", family="Fog", suffix="Jr")])), "author")
        == "Fog, Jr, Sam"
    )


def test_an_article_without_pages_is_cited_by_its_number_and_a_preprint_by_that_of_arxiv() -> None:
    assert csl(entry(article_number="129"))["page"] == "129"
    assert csl(entry(type="preprint", arxiv="2502.09460"))["number"] == "arXiv:2502.09460"


@pytest.mark.parametrize(
    ("url", "links", "tag"),
    [
        ("https://lamps.org/1.pdf", [], "L1"),
        ("https://arxiv.org/pdf/1706.03762", [], "L1"),
        ("https://lamps.org/article/1/_pdf", [], "L1"),
        ("https://lamps.org/download/1", [Link(url="https://lamps.org/download/1", type="application/pdf")], "L1"),
        ("https://arxiv.org/abs/1706.03762", [], "L2"),
        ("https://lamps.org/pdfs-of-fog", [], "L2"),
    ],
)
def test_a_page_is_no_pdf_in_ris(url: str, links: list[Link], tag: str) -> None:
    work = Work(source="s", endpoint="e", id="1", title="Fog", oa_url=url, full_text=links)
    assert f"{tag}  - {url}\r\n" in ris(row_of(work))


def test_a_degree_is_no_part_of_a_key() -> None:
    work = Work(source="s", endpoint="e", id="1", title="Autopsy", authors=[Author(name="Nicolas Hulscher, BS")])
    assert citation_key(row_of(work)) == "hulscherautopsy:1"


@pytest.mark.parametrize(
    ("publisher", "lines"),
    [
        ("Zenodo", ["institution = {Zenodo}"]),
        (None, ["institution = {Zenodo}"]),
        ("Lamp Press", ["institution = {Lamp Press}", "howpublished = {Zenodo}"]),
    ],
)
def test_where_a_report_stands_is_written_once(publisher: str | None, lines: list[str]) -> None:
    work = Work(source="s", endpoint="e", id="1", title="Fog", type="report", container="Zenodo", publisher=publisher)
    found = bibtex(row_of(work)).splitlines()
    assert [line.strip(" ,") for line in found if "institution" in line or "howpublished" in line] == lines


def test_what_follows_a_name_is_no_family_name() -> None:
    """Sources that give a name as one text write `Martin Luther King Jr.`."""
    row = {
        **ARTICLE,
        "authors": [{"name": "Martin Luther King Jr."}, {"name": "Fog Trial II"}, {"name": "Ada B. Fog III, PhD"}],
    }
    assert csl(row)["author"] == [
        {"family": "King", "given": "Martin Luther", "suffix": "Jr."},
        {"literal": "Fog Trial II"},  # a person, or not
        {"family": "Fog", "given": "Ada B.", "suffix": "III"},
    ]
    assert "  author = {King, Jr., Martin Luther and " in bibtex(row)
    assert "AU  - King, Martin Luther, Jr.\r\n" in ris(row)
    assert citation_key(row).startswith("king2018")


def test_a_book_stands_in_a_series_and_a_chapter_in_a_book() -> None:
    book = {**CHAPTER, "type": "book", "publisher": "Lamp Press"}
    assert (csl(book).get("collection-title"), csl(book).get("container-title")) == ("Weather", None)
    assert "  series = {Weather},\n" in bibtex(book)
    assert csl(CHAPTER)["container-title"] == "Weather"
    deposited = {**book, "container": "Zenodo", "publisher": "Zenodo"}
    assert ("collection-title" in csl(deposited), "series" in bibtex(deposited)) == (False, False)
    assert "\r\nT2" not in ris(deposited)


@pytest.mark.parametrize(
    ("kind", "publisher", "written"),
    [
        ("preprint", "Cold Spring Harbor Laboratory", "bioRxiv"),
        ("preprint", None, "bioRxiv"),
        ("thesis", None, "bioRxiv"),
        ("report", "Lamp Press", "Lamp Press"),
    ],
)
def test_reference_managers_find_the_server_of_a_preprint_and_the_school_of_a_thesis(
    kind: str, publisher: str | None, written: str
) -> None:
    row = entry(title="Fog", type=kind, container="bioRxiv", publisher=publisher)
    assert csl(row)["publisher"] == written
    assert f"PB  - {written}\r\n" in ris(row)
    assert ("container-title" in csl(row)) is (kind == "report")


def test_a_year_of_ris_has_four_digits() -> None:
    row = entry(title="Fog", issued=When(at="0850-01-01T00:00:00Z", precision="year"))
    assert "PY  - 0850\r\nDA  - 0850//\r\n" in ris(row)
