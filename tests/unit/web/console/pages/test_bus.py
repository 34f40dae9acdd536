"""What the page of dead letters says of them."""

import re

import pytest

from patra.bus.bulk_acts import MAX_CAUSES
from patra.bus.store import dead_letters
from patra.bus.store.dead_letters import MAX_COUNTED_LETTERS
from patra.web.console.pages.bus import contract_fields, group_answer, letters_title
from tests.unit.bus.making import dead_letter
from tests.unit.web.served import served


@pytest.mark.parametrize(
    ("open_count", "replaying", "said"),
    [
        (0, 0, "No dead letter is open"),
        (1, 0, "1 dead letter is open"),
        (0, 2, "No dead letter is open, 2 are being replayed"),
        (4, 1, "4 dead letters are open, 1 is being replayed"),
        (MAX_COUNTED_LETTERS - 1, 0, "99,999 dead letters are open"),
        (MAX_COUNTED_LETTERS, 0, "100,000+ dead letters are open"),
        (0, MAX_COUNTED_LETTERS, "No dead letter is open, 100,000+ are being replayed"),
    ],
)
def test_those_that_wait_and_those_on_their_way_are_told_apart(open_count: int, replaying: int, said: str) -> None:
    assert letters_title(open_count, replaying) == said


def test_dead_letters_of_more_causes_than_are_listed_are_all_counted() -> None:
    many = MAX_CAUSES + 1
    with served() as client:
        letters = [dead_letter(n, error_code=f"code-{n}") for n in range(many)]
        client.patra.db.run(lambda tx: dead_letters.write(tx, letters))
        shown = client.get("/console/bus/dead-letters").data.decode()
    assert f"{many} dead letters are open" in shown
    assert re.search(rf'data-count="dead_letters">.*?<span>{many}</span>', shown)


def test_a_chart_that_counts_the_latest_only_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    with served() as client:
        client.patra.db.run(lambda tx: dead_letters.write(tx, [dead_letter(n) for n in range(3)]))
        whole = client.get("/console/bus/dead-letters").data.decode()
        monkeypatch.setattr(dead_letters, "MAX_COUNTED_LETTERS", 2)
        part = client.get("/console/bus/dead-letters").data.decode()
    assert ("are counted" in whole, "are counted" in part) == (False, True)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({}, "It keeps up: nothing waits, nothing fails."),
        ({"waiting": 2, "lag": "3 s"}, "2 events wait, the oldest for 3 s."),
        ({"state": "paused", "waiting": 1}, "It is paused: 1 event waits until it is resumed, nothing is lost."),
        ({"failing": 1, "waiting": 1}, "1 event fails and will be tried again; 1 event waits."),
        ({"dead": 2}, "2 events have failed for good; it keeps up with the others."),
        ({"dead": 1, "waiting": 3}, "1 event has failed for good; 3 events wait."),
    ],
)
def test_a_group_says_how_it_fares(changed: dict[str, object], said: str) -> None:
    assert group_answer({"state": "active", "waiting": 0, "failing": 0, "dead": 0, "lag": "", **changed}) == said


def test_the_fields_of_a_contract_are_those_of_its_payload_with_its_example() -> None:
    payload = {"properties": {"cents": {"type": "integer", "minimum": 0}}, "required": ["cents"]}
    contract = {
        "payload": {"schema": {"properties": {"payload": payload}}},
        "examples": [{"payload": {"payload": {"cents": 5}}}],
    }
    assert [(one.path, one.says, one.has) for one in contract_fields(contract)] == [
        ("/cents", "integer, minimum 0, required", "5")
    ]
    assert contract_fields({}) == []
