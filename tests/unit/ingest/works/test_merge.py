"""The same work from several sources becomes one, and says who gave what."""

from itertools import permutations
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from patra.ingest.packs.work import Author, Notice, Relation, When, Work
from patra.ingest.works.export import row_of
from patra.ingest.works.join import join_works
from patra.ingest.works.merge import Join, Retraction, group_works, keys_of, merge_works


def work(source: str, number: int = 1, **fields: object) -> Work:
    return Work(source=source, endpoint="e", id=f"{source}-{number}", **fields)  # type: ignore[arg-type]


def test_two_works_with_one_doi_are_one() -> None:
    crossref = work("crossref", doi="10.1/x", title="On boats", license="cc-by-4.0", updated="2026-01-01T00:00:00Z")
    openalex = work(
        "openalex", doi="10.1/x", openalex="W1", abstract="Water.", title="on boats", updated="2026-02-01T00:00:00Z"
    )
    [group] = group_works([openalex, crossref])
    one = merge_works(group)
    assert (one.key, one.title, one.abstract, one.license) == ("doi:10.1/x", "On boats", "Water.", "cc-by-4.0")
    assert one.given_by == {
        "doi": "crossref",
        "openalex": "openalex",
        "title": "crossref",
        "abstract": "openalex",
        "license": "crossref",
    }
    assert [seen.source for seen in one.seen] == ["crossref", "openalex"]
    assert one.updated == "2026-02-01T00:00:00Z"


def test_the_editors_of_a_joined_work_are_those_of_one_source() -> None:
    crossref = work("crossref", doi="10.1/x", authors=[Author(name="Ada Lovelace")])
    datacite = work("datacite", doi="10.1/x", editors=[Author(name="Grace Hopper")])
    zenodo = work("zenodo", doi="10.1/x", editors=[Author(name="G. Hopper")])
    [group] = group_works([zenodo, datacite, crossref])
    one = merge_works(group)
    assert ([person.name for person in one.editors], one.given_by["editors"]) == (["Grace Hopper"], "datacite")
    assert row_of(one)["editors"] == [{"name": "Grace Hopper"}]


def test_works_are_joined_through_a_third_one() -> None:
    pubmed = work("pubmed", pmid="7", title="A")
    crossref = work("crossref", doi="10.1/x", title="B")
    bridge = work("europepmc", pmid="7", doi="10.1/x")
    assert len(group_works([pubmed, crossref])) == 2
    assert len(group_works([pubmed, crossref, bridge])) == 1


def test_the_doi_that_datacite_gives_an_arxiv_paper_joins_it() -> None:
    datacite = work("datacite", doi="10.48550/arxiv.2201.06719")
    arxiv = work("arxiv", arxiv="2201.06719", doi="10.1103/physreva.106.012821")
    [group] = group_works([datacite, arxiv])
    one = merge_works(group)
    assert one.ids["doi"] == ["10.48550/arxiv.2201.06719", "10.1103/physreva.106.012821"]
    assert one.given_by["arxiv"] == "arxiv"


def test_a_preprint_and_its_article_are_one_work_and_the_join_is_explained() -> None:
    preprint = work(
        "biorxiv", doi="10.1101/p", relations=[Relation(type="is-preprint-of", id="doi:10.5555/j")], type="preprint"
    )
    article = work("crossref", doi="10.5555/j", type="article")
    other = work("pubmed", doi="10.5555/j", pmid="7")
    [group] = group_works([preprint, article, other])
    one = merge_works(group)
    assert (one.doi, one.type) == ("10.5555/j", "article")
    assert one.joins == [
        Join(
            by="doi:10.5555/j",
            records=["pubmed:pubmed-1", "crossref:crossref-1", "biorxiv:biorxiv-1"],
            why="is-preprint-of",
        )
    ]
    assert merge_works(group_works([article, other])[0]).joins[0].why == "identifier"


def test_of_a_preprint_and_its_article_the_article_is_cited_whichever_source_comes_first() -> None:
    """The place of one with the volume of the other would be a citation of neither."""
    arxiv = work(
        "arxiv", arxiv="2601.1", doi="10.5555/j", title="Fog, v1", container="arXiv", type="preprint", abstract="A"
    )
    article = work(
        "openalex", doi="10.5555/j", title="Fog", container="Annals", volume="7", type="article", abstract="B"
    )
    one = merge_works([arxiv, article])
    assert (one.type, one.container, one.volume, one.title, one.abstract) == ("article", "Annals", "7", "Fog", "A")
    named = Relation(type="is-preprint-of", id="doi:10.5555/j")
    posted = work("crossref", 1, doi="10.1101/p", title="Fog", container="bioRxiv", type="preprint", relations=[named])
    printed = work("crossref", 2, doi="10.5555/j", title="Fog", container="Annals", type="article")
    for order in permutations([posted, printed]):
        assert (merge_works(order).key, merge_works(order).container, merge_works(order).type) == (
            "doi:10.5555/j",
            "Annals",
            "article",
        )


def test_an_article_is_not_published_by_the_server_of_its_preprint() -> None:
    server = "Cold Spring Harbor Laboratory"
    named = Relation(type="is-preprint-of", id="doi:10.5555/j")
    posted = work(
        "crossref", 1, doi="10.1101/p", title="Fog", type="preprint", publisher=server, pages="1", relations=[named]
    )
    printed = work("pubmed", doi="10.5555/j", title="Fog", container="Annals", volume="7", type="article")
    one = merge_works([posted, printed])
    assert (one.container, one.volume, one.publisher, one.pages) == ("Annals", "7", None, None)
    assert "publisher" not in one.given_by
    assert merge_works([posted]).publisher == server


def test_who_calls_a_preprint_an_article_does_not_make_it_one() -> None:
    posted = work("biorxiv", doi="10.1101/p", title="Fog", container="bioRxiv", type="preprint")
    listed = work("orcid", doi="10.1101/p", title="Fog", container="Fog Letters", type="article")
    unplaced = work("openalex", doi="10.5555/j", title="Fog", type="article")
    for others in ([listed], [unplaced]):
        assert (merge_works([posted, *others]).type, merge_works([posted, *others]).container) == (
            "preprint",
            "bioRxiv",
        )


def issued(at: str, precision: str) -> When:
    return When(at=f"{at}T00:00:00Z", precision=precision)


YEAR, MONTH, DAY = issued("2026-01-01", "year"), issued("2026-10-01", "month"), issued("2026-10-18", "day")
"""The same date, as sources state it more and less exactly."""


@pytest.mark.parametrize(
    ("dates", "taken"),
    [
        ({"pubmed": YEAR, "openalex": DAY}, "openalex"),
        ({"pubmed": YEAR, "crossref": MONTH}, "crossref"),
        ({"pubmed": MONTH, "crossref": YEAR, "openalex": DAY}, "openalex"),
        ({"pubmed": YEAR, "crossref": MONTH, "openalex": DAY}, "openalex"),
        ({"pubmed": DAY, "openalex": When(at="2026-10-18T07:00:00Z", precision="instant")}, "openalex"),
        # another year, another month, another day: the order of the sources
        ({"pubmed": YEAR, "openalex": issued("2025-12-30", "day")}, "pubmed"),
        ({"pubmed": MONTH, "openalex": issued("2026-09-30", "day")}, "pubmed"),
        ({"pubmed": DAY, "openalex": When(at="2026-10-19T07:00:00Z", precision="instant")}, "pubmed"),
        # two that agree with the year and not with each other: the order decides between them
        ({"pubmed": YEAR, "crossref": MONTH, "openalex": issued("2026-03-02", "day")}, "crossref"),
        ({"pubmed": YEAR, "crossref": issued("2026-03-02", "day"), "openalex": DAY}, "crossref"),
        # no more exact
        ({"pubmed": DAY, "openalex": YEAR}, "pubmed"),
        ({"pubmed": DAY, "openalex": DAY}, "pubmed"),
        ({"pubmed": YEAR, "openalex": issued("2026-10-18", "guess")}, "pubmed"),
    ],
)
def test_a_date_gives_way_to_a_more_exact_one_that_agrees_with_it(dates: dict[str, When], taken: str) -> None:
    works = [work(source, doi="10.1/x", issued=at) for source, at in dates.items()]
    for order in permutations(works):
        one = merge_works(order)
        assert (one.issued, one.given_by["issued"]) == (dates[taken], taken)


def test_the_date_of_a_preprint_or_of_a_record_taken_back_makes_none_more_exact() -> None:
    article = work("pubmed", doi="10.1/x", type="article", issued=YEAR)
    assert merge_works([work("biorxiv", doi="10.1/x", type="preprint", issued=DAY), article]).issued == YEAR
    assert merge_works([work("openalex", doi="10.1/x", deleted=True, issued=DAY), article]).issued == YEAR
    posted = work("pubmed", doi="10.1/x", type="preprint", issued=YEAR)
    assert merge_works([work("biorxiv", doi="10.1/x", type="preprint", issued=DAY), posted]).issued == DAY


def test_a_cut_list_of_authors_gives_way_to_a_whole_one() -> None:
    cut = work("openalex", doi="10.1/x", authors=[Author(name="A")], authors_truncated=True)
    whole = work("core", doi="10.1/x", authors=[Author(name="A"), Author(name="B")])
    assert (len(merge_works([cut, whole]).authors), merge_works([cut, whole]).given_by["authors"]) == (2, "core")
    assert merge_works([cut]).given_by["authors"] == "openalex"
    assert (merge_works([cut]).authors_truncated, merge_works([cut, whole]).authors_truncated) == (True, False)
    assert (row_of(merge_works([cut]))["authors_truncated"], row_of(whole)["authors_truncated"]) == (True, False)


def test_a_part_and_its_whole_are_two_works() -> None:
    part = work("datacite", doi="10.1/part", relations=[Relation(type="is-part-of", id="doi:10.1/whole")])
    assert len(group_works([part, work("datacite", 2, doi="10.1/whole")])) == 2


def test_who_calls_a_work_retracted_and_when() -> None:
    notice = Notice(type="retraction", id="doi:10.1/r", at="2010-02-06")
    crossref = work("crossref", doi="10.1/x", notices=[notice], updated="2026-01-01T00:00:00Z")
    pubmed = work("pubmed", doi="10.1/x", retracted=True, updated="2026-02-01T00:00:00Z")
    silent = work("doaj", doi="10.1/x", notices=[Notice(type="erratum", id="doi:10.1/e")])
    one = merge_works([crossref, pubmed, silent])
    assert one.retracted
    assert one.retractions == [
        Retraction(source="pubmed", id="pubmed-1", updated="2026-02-01T00:00:00Z"),
        Retraction(
            source="crossref", id="crossref-1", updated="2026-01-01T00:00:00Z", notice="doi:10.1/r", at="2010-02-06"
        ),
    ]
    assert [one.type for one in one.notices] == ["retraction", "erratum"]
    assert not merge_works([silent]).retracted
    partial = work("crossref", doi="10.1/x", notices=[Notice(type="partial_retraction", id="doi:10.1/p")])
    assert (merge_works([partial]).retracted, merge_works([partial]).notices[0].type) == (False, "partial_retraction")


def test_a_work_without_identifiers_stands_alone() -> None:
    one, two = work("doaj", 1, title="Same"), work("doaj", 2, title="Same")
    assert len(group_works([one, two])) == 2
    assert merge_works([one]).key == "doaj:e:doaj-1"


def test_one_retraction_is_enough_and_a_deleted_record_gives_way() -> None:
    gone = work("pubmed", doi="10.1/x", title="Gone", deleted=True)
    there = work("orcid", doi="10.1/x", title="There", retracted=True)
    one = merge_works([gone, there])
    assert (one.title, one.retracted, one.deleted, one.given_by["retracted"]) == ("There", True, False, "orcid")
    assert merge_works([gone]).deleted


def test_the_order_in_which_works_come_does_not_matter() -> None:
    works = [
        work("crossref", doi="10.1/x", issued=When(at="2019-01-01T00:00:00Z", precision="year")),
        work("pubmed", doi="10.1/x", authors=[Author(name="Ada")]),
        work("hal", doi="10.1/x", authors=[Author(name="A. Lovelace")]),
    ]
    assert merge_works(works) == merge_works(works[::-1])
    assert merge_works(works).authors == [Author(name="Ada")]


identifiers = st.sampled_from([None, "1", "2", "3", "4", "5"])


@given(st.lists(st.tuples(identifiers, identifiers, identifiers), max_size=30))
def test_joining_in_files_is_joining_in_memory(tmp_path_factory: object, rows: list[tuple[str | None, ...]]) -> None:
    folder: Path = tmp_path_factory.mktemp("join")  # type: ignore[attr-defined]
    works = [work("s", n, doi=doi, pmid=pmid, arxiv=arxiv) for n, (doi, pmid, arxiv) in enumerate(rows)]
    found = [one for page in join_works([works[:7], works[7:]], folder) for one in page]
    assert found == [merge_works(group) for group in group_works(works)]
    assert list(folder.iterdir()) == []


def test_a_chain_of_thousands_is_one_work_and_many_parts_keep_their_order(tmp_path: Path) -> None:
    """Each work shares one identifier with the one before it, and the ends meet last."""
    chain = [work("s", n, doi=f"10.1/{n // 2}", pmid=str((n + 1) // 2)) for n in range(4000)]
    alone = [work("t", n, arxiv=f"2201.{n:05}") for n in range(3000)]
    mixed = [one for pair in zip(chain, alone, strict=False) for one in pair] + chain[3000:]
    found = [one for page in join_works([mixed], tmp_path) for one in page]
    assert [len(one.seen) for one in found] == [4000] + [1] * 3000
    assert [one.seen[0].id for one in found[1:]] == [one.id for one in alone]
    assert found == [merge_works(group) for group in group_works(mixed)]
    assert list(tmp_path.iterdir()) == []


def test_keys_are_in_one_form() -> None:
    assert keys_of(work("x", doi="10.48550/arxiv.2201.06719", arxiv="2201.06719")) == [
        "doi:10.48550/arxiv.2201.06719",
        "arxiv:2201.06719",
    ]


def test_an_alias_is_joined_with_what_it_leads_to_and_gives_way_to_it() -> None:
    same = Relation(type="is-identical-to", id="doi:10.5555/new")
    alias = work("crossref", 1, doi="10.5555/a-old", relations=[same])
    target = work("crossref", 2, doi="10.5555/new", title="Fog")
    [group] = group_works([alias, target])
    one = merge_works(group)
    assert (one.doi, one.title, one.key) == ("10.5555/new", "Fog", "doi:10.5555/new")
    assert one.ids["doi"] == ["10.5555/new", "10.5555/a-old"]
    assert [(join.by, join.why) for join in one.joins] == [("doi:10.5555/new", "is-identical-to")]
