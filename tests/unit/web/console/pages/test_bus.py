"""What the page of dead letters says of them."""

import re

import pytest

from patra.bus.bulk_acts import MAX_CAUSES
from patra.bus.store import dead_letters
from patra.bus.store.dead_letters import MAX_COUNTED_LETTERS
from patra.web.console.pages.bus import letters_title
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
