"""Synthetic papers for the simulated providers: the same library for the same seed and span of days.

The papers are of our own making. They have what real ones have: crowded days, titles with markup, authors without a
given name, groups, dates that are known to the year only or not at all.

| file | in | out |
|---|---|---|
| providers.py | seed, days | papers |
| providers_pubmed.py | papers, request | esearch and efetch as NCBI answers them |
| providers_crossref.py | papers, request | /works as Crossref answers it |
| providers_openalex.py | papers, request | /works as OpenAlex answers it |
| providers_http.py | the three | a server with rate limits and troubles; packs that point to it |
| providers_show.py | the server, a store | the ingest step of the demonstration: a crash, a recovery, one library |
"""

import random
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, timedelta

import msgspec

TOPICS = ("paper boats", "tidal marshes", "lighthouse optics", "river otters", "sea fog", "harbour acoustics")
_METHODS = ("A survey of", "Long-term observation of", "A model of", "Notes on", "The economics of", "Measuring")
_PLACES = ("in northern estuaries", "after storms", "over two centuries", "under low light", "near small ports")
_GIVEN = ("Ada", "Mei", "Oluwaseun", "Íris", "Jonas", "Fatima", "Kenji", "Zoë", "Ravi", "Nadia")
_FAMILY = ("Halvorsen", "Okafor", "Lindqvist", "Tanaka", "da Costa", "Müller", "Novák", "Haddad", "Singh", "O'Neill")
_TEXT = (
    "water light signal drift keel fold paper river tide current harbour mast sample station season gauge salt bird "
    "reed stone wind pressure wave depth shore record night boat vessel sheet channel buoy lamp lens mirror"
)
_WORDS = _TEXT.split()
_JOURNALS = ("Annals of Small Boats", "Journal of Estuaries", "Lantern & Lens", "Proceedings of the Fog Society")


class Person(msgspec.Struct, frozen=True):
    """An author; a group has a family name only, and `group` says so."""

    family: str
    given: str | None = None
    orcid: str | None = None
    affiliation: str | None = None
    group: bool = False


class Paper(msgspec.Struct, frozen=True, kw_only=True):
    """One synthetic paper, with every field that any of the providers returns."""

    no: int
    topic: str
    title: str
    abstract: str
    authors: tuple[Person, ...]
    journal: str
    entered: date
    """The day on which it came into PubMed, and into the indexes of the others."""
    indexed: datetime
    issued: tuple[int | None, ...]
    """As Crossref writes it: (2026, 3, 5), (2026, 3), (2026,) or (None,)."""
    retracted: bool = False

    @property
    def pmid(self) -> str:
        return str(90_000_000 + self.no)

    @property
    def doi(self) -> str:
        return f"10.5555/boats.{self.no}"

    @property
    def openalex(self) -> str:
        return f"W{9_900_000_000 + self.no}"


class Library(msgspec.Struct, frozen=True):
    """All papers, by day and by each identifier."""

    papers: tuple[Paper, ...]
    by_pmid: Mapping[str, Paper]
    by_doi: Mapping[str, Paper]
    by_openalex: Mapping[str, Paper]


def library(
    days: int = 365,
    *,
    per_day: int = 6,
    start: date = date(2025, 11, 1),
    crowded: Mapping[date, int] | None = None,
    seed: int = 1,
    earlier: int = 0,
) -> Library:
    """A library of so many days; `crowded` ones have as many papers as it says, `earlier` ones lie before `start`."""
    chance = random.Random(seed)
    papers: list[Paper] = []
    for offset in (*range(days), *range(-1, -earlier - 1, -1)):
        day = start + timedelta(days=offset)
        count = (crowded or {}).get(day, chance.randint(max(per_day - 3, 0), per_day + 3))
        papers += [_paper(chance, len(papers) + number, day) for number in range(count)]
    return Library(
        papers=tuple(papers),
        by_pmid={paper.pmid: paper for paper in papers},
        by_doi={paper.doi: paper for paper in papers},
        by_openalex={paper.openalex: paper for paper in papers},
    )


def filters_of(text: str) -> dict[str, str]:
    """`a:1,b:2` as Crossref and OpenAlex write filters."""
    pairs = (part.partition(":") for part in text.split(",") if part)
    return {name: value for name, _, value in pairs}


def _paper(chance: random.Random, number: int, day: date) -> Paper:
    topic = TOPICS[number % len(TOPICS)]
    title = f"{chance.choice(_METHODS)} {topic} {chance.choice(_PLACES)}"
    if number % 17 == 0:
        title = title.replace(topic, f"<i>{topic}</i>")
    at = datetime(day.year, day.month, day.day, tzinfo=UTC) + timedelta(seconds=chance.randrange(86_400))
    return Paper(
        no=number,
        topic=topic,
        title=title,
        abstract=_abstract(chance),
        authors=_authors(chance, number),
        journal=_JOURNALS[number % len(_JOURNALS)],
        entered=day,
        indexed=at,
        issued=_issue_date(number, day),
        retracted=number % 97 == 0,
    )


def _abstract(chance: random.Random) -> str:
    sentences = [" ".join(chance.choices(_WORDS, k=chance.randint(8, 16))).capitalize() for _ in range(4)]
    return ". ".join(sentences) + ". H<sub>2</sub>O & salt were measured."


def _authors(chance: random.Random, number: int) -> tuple[Person, ...]:
    people = tuple(
        Person(
            family=chance.choice(_FAMILY),
            given=chance.choice(_GIVEN) if (number + place) % 23 else None,
            orcid=f"0000-0002-{number % 10_000:04}-{1000 + place}" if place == 0 else None,
            affiliation=f"Institute of {_JOURNALS[place % 4].split()[-1]}, Harbour Street {place + 1}",
        )
        for place in range(chance.randint(1, 5))
    )
    return (*people, Person(family="The Paper Boat Collaboration", group=True)) if number % 29 == 0 else people


def _issue_date(number: int, day: date) -> tuple[int | None, ...]:
    if number % 13 == 0:
        return (None,)
    parts: Sequence[int] = (day.year, day.month, day.day)
    return tuple(parts[: 1 + number % 3]) if number % 3 else tuple(parts)
