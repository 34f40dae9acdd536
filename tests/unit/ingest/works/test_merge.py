"""The same work from several sources becomes one, and says who gave what."""

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from patra.ingest.works import Author, When, Work
from patra.ingest.works_join import joined
from patra.ingest.works_merge import grouped, keys_of, merged


def work(source: str, number: int = 1, **fields: object) -> Work:
    return Work(source=source, endpoint="e", id=f"{source}-{number}", **fields)  # type: ignore[arg-type]


def test_two_works_with_one_doi_are_one() -> None:
    crossref = work("crossref", doi="10.1/x", title="On boats", license="cc-by-4.0", updated="2026-01-01T00:00:00Z")
    openalex = work(
        "openalex", doi="10.1/x", openalex="W1", abstract="Water.", title="on boats", updated="2026-02-01T00:00:00Z"
    )
    [group] = grouped([openalex, crossref])
    one = merged(group)
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


def test_works_are_joined_through_a_third_one() -> None:
    pubmed = work("pubmed", pmid="7", title="A")
    crossref = work("crossref", doi="10.1/x", title="B")
    bridge = work("europepmc", pmid="7", doi="10.1/x")
    assert len(grouped([pubmed, crossref])) == 2
    assert len(grouped([pubmed, crossref, bridge])) == 1


def test_the_doi_that_datacite_gives_an_arxiv_paper_joins_it() -> None:
    datacite = work("datacite", doi="10.48550/arxiv.2201.06719")
    arxiv = work("arxiv", arxiv="2201.06719", doi="10.1103/physreva.106.012821")
    [group] = grouped([datacite, arxiv])
    one = merged(group)
    assert one.ids["doi"] == ["10.48550/arxiv.2201.06719", "10.1103/physreva.106.012821"]
    assert one.given_by["arxiv"] == "arxiv"


def test_a_work_without_identifiers_stands_alone() -> None:
    one, two = work("doaj", 1, title="Same"), work("doaj", 2, title="Same")
    assert len(grouped([one, two])) == 2
    assert merged([one]).key == "doaj:e:doaj-1"


def test_one_retraction_is_enough_and_a_deleted_record_gives_way() -> None:
    gone = work("pubmed", doi="10.1/x", title="Gone", deleted=True)
    there = work("orcid", doi="10.1/x", title="There", retracted=True)
    one = merged([gone, there])
    assert (one.title, one.retracted, one.deleted, one.given_by["retracted"]) == ("There", True, False, "orcid")
    assert merged([gone]).deleted


def test_the_order_in_which_works_come_does_not_matter() -> None:
    works = [
        work("crossref", doi="10.1/x", issued=When(at="2019-01-01T00:00:00Z", precision="year")),
        work("pubmed", doi="10.1/x", authors=[Author(name="Ada")]),
        work("hal", doi="10.1/x", authors=[Author(name="A. Lovelace")]),
    ]
    assert merged(works) == merged(works[::-1])
    assert merged(works).authors == [Author(name="Ada")]


identifiers = st.sampled_from([None, "1", "2", "3", "4", "5"])


@given(st.lists(st.tuples(identifiers, identifiers, identifiers), max_size=30))
def test_joining_in_files_is_joining_in_memory(tmp_path_factory: object, rows: list[tuple[str | None, ...]]) -> None:
    folder: Path = tmp_path_factory.mktemp("join")  # type: ignore[attr-defined]
    works = [work("s", n, doi=doi, pmid=pmid, arxiv=arxiv) for n, (doi, pmid, arxiv) in enumerate(rows)]
    found = [one for page in joined([works[:7], works[7:]], folder) for one in page]
    assert found == [merged(group) for group in grouped(works)]
    assert list(folder.iterdir()) == []


def test_a_chain_of_thousands_is_one_work_and_many_parts_keep_their_order(tmp_path: Path) -> None:
    """Each work shares one identifier with the one before it, and the ends meet last."""
    chain = [work("s", n, doi=f"10.1/{n // 2}", pmid=str((n + 1) // 2)) for n in range(4000)]
    alone = [work("t", n, arxiv=f"2201.{n:05}") for n in range(3000)]
    mixed = [one for pair in zip(chain, alone, strict=False) for one in pair] + chain[3000:]
    found = [one for page in joined([mixed], tmp_path) for one in page]
    assert [len(one.seen) for one in found] == [4000] + [1] * 3000
    assert [one.seen[0].id for one in found[1:]] == [one.id for one in alone]
    assert found == [merged(group) for group in grouped(mixed)]
    assert list(tmp_path.iterdir()) == []


def test_keys_are_in_one_form() -> None:
    assert keys_of(work("x", doi="10.48550/arxiv.2201.06719", arxiv="2201.06719")) == [
        "doi:10.48550/arxiv.2201.06719",
        "arxiv:2201.06719",
    ]
