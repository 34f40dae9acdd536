"""Tokens and URLs that lead back, and ranges of a key that begin at the same token: told as what they are, or read."""

import json
import random
from typing import Any

import pytest

from patra.ingest.operations.coverage import coverage
from patra.kernel.db import Database
from tests.contract.ingest.running.test_key_ranges import DENSE, by_key, counted
from tests.contract.ingest.running.test_lists_without_a_total import SPREAD, Serve, landed, run, served_by, with_items
from tests.contract.ingest.running.world import T0, T1, pack, world
from tests.support.hostile_provider import Habits, Reply


def led(reply: Reply, to: str) -> Reply:
    """The same page, with its link to another one."""
    tree = json.loads(reply.body)
    if tree.get("next") is None:
        return reply
    stem, _, _ = tree["next"].rpartition(".")
    return with_items(reply, lambda items: items, next=f"{stem}.{to}")


def place(query: dict[str, str]) -> str:
    return (query.get("token") or query.get("cursor") or "").rpartition(".")[2]


@pytest.mark.parametrize("shuffled", [False, True])
@pytest.mark.parametrize("total_path", [None, "$.total"])
@pytest.mark.parametrize("kind", ["TOKEN", "URL"])
def test_a_circle_of_links_is_told_as_one(
    database: Database, kind: str, total_path: str | None, shuffled: bool
) -> None:
    """The third page leads back to the second, whose records may stand there in another order each time."""
    chance = random.Random(7)

    def answer(query: dict[str, str], serve: Serve) -> Reply:
        reply = serve(query)
        if shuffled:
            reply = with_items(reply, lambda items: chance.sample(items, len(items)))
        return led(reply, "10") if place(query) == "20" else reply

    with world(database, SPREAD) as w:
        served_by(w, answer)
        assert run(w, kind, total_path) == [("FAILED", "i_loop")]
        assert len(landed(w)) == 30
        assert w.watermark() is None or w.watermark() <= T0
        error = w.one("SELECT error FROM ing_task_run")
        assert "leads back to one that was read before" in error
        assert "say how it shows" in error
        assert [one.status for one in database.read(lambda tx: coverage(tx, "hostile")).windows] == ["FAILED"]


@pytest.mark.parametrize("kind", ["TOKEN", "URL"])
def test_one_link_that_leads_back_is_a_slip(database: Database, kind: str) -> None:
    asked: list[str] = []

    def answer(query: dict[str, str], serve: Serve) -> Reply:
        asked.append(place(query))
        slips = place(query) == "20" and asked.count("20") == 1
        return led(serve(query), "10") if slips else serve(query)

    with world(database, SPREAD) as w:
        served_by(w, answer)
        assert run(w, kind) == [("SUCCEEDED", "i_done")]
        assert landed(w) == set(w.provider.truth)


def test_ranges_of_a_key_begin_at_the_same_token(database: Database) -> None:
    """Each range asks for the first token again: it is another list."""
    with world(database, DENSE, Habits(depth=20)) as w:
        tree: dict[str, Any] = by_key(w)
        chained = pack(w.url, "TOKEN", pagination={"pageSize": 5})["endpoints"]["search"]
        search = tree["endpoints"]["search"]
        query = {k: v for k, v in search["http"]["queryTemplate"].items() if k != "offset"}
        search |= {"path": chained["path"], "pagination": chained["pagination"]}
        search["http"]["queryTemplate"] = query | {"token": "${page.token}"}
        w.load(tree)
        w.trigger()
        w.drain()
        assert not any(state.startswith("FAILED") for state in w.tasks())
        assert w.landed() == w.provider.truth
        assert counted(w)[0] == "COMPLETE"
        assert w.watermark() == T1
