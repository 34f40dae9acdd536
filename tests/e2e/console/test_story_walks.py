"""From every key of the world the story leads on: each related key that a story offers is found, whatever its kind.

The walk asks as `GET /story` does, in the process; a page is looked at for each engine. `test_story.py` of the contract
tests makes every kind of key with the engines themselves.
"""

from collections import deque

import urllib3

from patra.app.story.search import story
from patra.kernel.db.queries import statement
from tests.e2e.console.world import World

MADE_UP = {"studio.task"}
"""What the world never had: it writes events without a film."""
EVERY = {
    "ingest.plan": "SELECT plan_id FROM ing_plan",
    "ingest.slice": "SELECT slice_id FROM ing_plan_slice",
    "ingest.task": "SELECT task_id FROM ing_task",
    "ingest.run": "SELECT run_id FROM ing_task_run",
    "ingest.batch": "SELECT batch_id FROM ing_task_run_batch",
    "bus.event_id": "SELECT event_id FROM bus_event",
    "bus.dead_letter": "SELECT letter_id FROM bus_dead_letter",
}
EFFECTS = {
    "bus.dead_letter": "bus.event_id",
    "ingest.batch": "ingest.plan",
    "ingest.run": "ingest.plan",
    "ingest.task": "ingest.plan",
    "ingest.slice": "ingest.plan",
}
"""What the story of a kind must lead to: its origin."""


def test_every_row_has_its_story_and_every_key_of_it_leads_on(site: World) -> None:
    db = site.patra.db
    waiting: deque[tuple[str, str]] = deque()
    for kind, text in EVERY.items():
        keys = [str(row[0]) for row in db.read(lambda tx, text=text: tx.fetch(statement("every", text)))]
        assert keys, kind
        waiting += [(kind, key) for key in keys]
    waiting += [("attribution.closureKey", one["closureKey"]) for one in site.get("/attribution/closures")["closures"]]
    waiting += [("attribution.batchId", "b-1"), ("attribution.event", "b-1/e-2"), ("studio.run", site.known["film"])]
    rows, seen, lost = len(waiting), set(waiting), set[str]()
    while waiting:
        kind, key = waiting.popleft()
        found = story(db, key, kind=kind)
        if found.outcome == "unknown":
            lost.add(kind)
            continue
        reached = {one.kind for one in found.related}
        assert EFFECTS.get(kind) in {None, *reached}, (kind, key, reached)
        for one in found.related:
            if (one.kind, one.key) not in seen:
                seen.add((one.kind, one.key))
                waiting.append((one.kind, one.key))
    assert lost == MADE_UP
    assert len(seen) > rows
    assert {kind.partition(".")[0] for kind, _ in seen} == {"attribution", "ingest", "bus", "studio"}


def test_a_fact_leads_to_its_event_its_closure_and_its_batch(site: World) -> None:
    found = story(site.patra.db, "ref|ra|billable_impression")
    assert {"attribution.eventId", "attribution.closureKey", "attribution.batchId", "attribution.factId"} <= {
        one.kind for one in found.related
    }


def test_a_page_is_there_for_each_engine(site: World) -> None:
    http = urllib3.PoolManager(retries=False)
    for name in ("closure", "plan", "letter-0", "film"):
        answer = http.request("GET", f"{site.url}/console/story?key={site.known[name].replace('|', '%7C')}")
        text = answer.data.decode()
        assert (answer.status, 'id="story-entries"' in text or 'id="candidates"' in text) == (200, True)


def test_the_command_that_replays_a_dead_letter_is_shown_whole(site: World) -> None:
    """Behind `mail-out:` it would be masked as somebody's address."""
    texts = [one.text for one in story(site.patra.db, site.known["letter-0"]).pending if one.what == "dead_letter"]
    assert [
        f"`patra bus replay {group} {site.known['letter-0']}`" in text
        for group, text in zip(("mail-out", "search-index"), sorted(texts), strict=True)
    ] == [True, True]
