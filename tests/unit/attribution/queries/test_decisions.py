"""A page of the newest decisions reads no more of the log than it shows, and nothing is left out between pages."""

from collections.abc import Iterator

import pytest

from patra.attribution.queries import Span, newest_decisions
from patra.attribution.replay import replay
from patra.attribution.storage import read
from patra.attribution.storage.read import every_decision
from patra.kernel.db import Database
from tests.unit.attribution.said import event, fresh, sent

BATCHES, EVENTS = 60, 5


@pytest.fixture(scope="module")
def store() -> Iterator[Database]:
    db = fresh()
    replay(
        [
            sent(
                number, *(event("impression", f"i{number}-{i}", responseReference=f"r{number}") for i in range(EVENTS))
            )
            for number in range(BATCHES)
        ],
        db,
    )
    yield db
    db.close()


def test_a_page_reads_about_as_many_batches_as_it_shows(store: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    rows: list[int] = []
    unpacked = read.unpack_decisions

    def counted(item: int, body: bytes, text: bytes | None = None) -> object:
        rows.append(item)
        return unpacked(item, body, text)

    monkeypatch.setattr(read, "unpack_decisions", counted)
    shown = store.read(lambda tx: newest_decisions(tx, lambda _, __: True, limit=EVENTS)).decisions
    assert len(shown) == EVENTS
    assert rows == [BATCHES]
    rows.clear()
    store.read(lambda tx: newest_decisions(tx, lambda _, __: True, limit=6 * EVENTS))
    assert len(rows) == 7  # 1, 2 and 4


@pytest.mark.parametrize("limit", [1, 3, 7, 50])
def test_pages_of_any_size_give_every_decision_once_the_newest_first(store: Database, limit: int) -> None:
    every = [one.id for one in every_decision(store)]
    seen: list[int] = []
    before: int | None = 2**62
    while before is not None:
        page = store.read(lambda tx, b=before: newest_decisions(tx, lambda _, __: True, before=b, limit=limit))
        seen += [one.number for one in page.decisions]
        before = page.next
    assert seen == every[::-1]


def test_a_page_that_finds_nothing_says_where_to_go_on_after_a_bounded_part(store: Database) -> None:
    page = store.read(lambda tx: newest_decisions(tx, lambda _, __: False, limit=5, steps=1))
    assert page.decisions == []
    assert page.next is not None
    assert page.next >> 20 == BATCHES - 20 + 1


@pytest.mark.parametrize(
    ("first", "last"), [(0, BATCHES), (7, 9), (8, 8), (BATCHES - 1, BATCHES), (0, 1), (None, 3), (50, None)]
)
def test_a_span_gives_the_decisions_made_in_it_and_ends(store: Database, first: int | None, last: int | None) -> None:
    every = {one.id: one.decision.at for one in every_decision(store)}
    times = sorted(set(every.values()))
    assert len(times) == BATCHES
    times.append(times[-1] + 1)
    since, until = (None if at is None else times[at] for at in (first, last))
    wanted = [number for number, at in every.items() if (since or 0) <= at < (until or 2**62)]
    seen: list[int] = []
    before: int | None = 2**62
    while before is not None:
        page = store.read(
            lambda tx, b=before: newest_decisions(
                tx, lambda _, __: True, before=b, limit=7, span=Span(since=since, until=until)
            )
        )
        seen += [one.number for one in page.decisions]
        before = page.next
    assert seen == sorted(wanted, reverse=True)
