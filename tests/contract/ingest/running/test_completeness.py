"""A window is done when it adds up: what a provider promises and does not give is never a silent hole (ruling I10)."""

import json
from typing import Any

import pytest

from patra.ingest.landing.window_ledger import incomplete
from patra.ingest.planning import operations
from patra.kernel.db import Database
from tests.contract.ingest.running.world import T0, T1, World, pack, world
from tests.support.hostile_provider import Item, Reply, crowded

SPREAD = crowded(200, T0, T1, crowd=False)
WHOLE = {"maxWindow": "P2D"}


def altered(w: World, change) -> None:
    """Each answer of the list goes through `change(query, body)` before it is sent."""
    serve = w.provider._served

    def served(method: str, path: str, query: dict[str, str], body: bytes) -> Reply:
        reply = serve(method, path, query, body)
        if path == "/details" or reply.status != 200:
            return reply
        tree: dict[str, Any] = json.loads(reply.body)
        change(query, tree)
        return Reply(status=200, body=json.dumps(tree).encode(), kind=reply.kind)

    w.provider._served = served  # type: ignore[method-assign]


def ledger(w: World, leg: str = "LIST", status: str | None = None) -> dict[str, Any]:
    """The row of the only window, or of the only one in this state."""
    names = (
        "status_code, promised_first, promised_last, positions, distinct_ids, null_items, without_id, suppressed,"
        " inserted, updated, equal_count, quarantined, gone, readings, missing, detail"
    )
    rows = w.rows(
        f"SELECT {names} FROM ing_window_ledger WHERE leg_code = :leg AND (:status = '' OR status_code = :status)",
        leg=leg,
        status=status or "",
    )
    assert len(rows) == 1, rows
    return dict(zip(names.split(", "), rows[0], strict=True)) if ", " in names else {}


def lose_next(w: World, kind: str) -> None:
    """The page that ends at the hundredth record has no next link."""

    def change(query: dict[str, str], tree: dict[str, Any]) -> None:
        following = tree.get("next") or ""
        if following.endswith(".100") or "100" in following.rpartition("cursor=")[2].rpartition(".")[2]:
            tree["next"] = None

    altered(w, change)


@pytest.mark.parametrize("kind", ["TOKEN", "URL"])
def test_a_list_that_loses_its_next_link_before_the_total_is_incomplete(database: Database, kind: str) -> None:
    with world(database, SPREAD) as w:
        w.load(pack(w.url, kind, window=WHOLE))
        serve = w.provider._served
        lose_next(w, kind)
        w.trigger()
        w.drain()
        assert w.tasks() == {"FAILED i_incomplete": 1}
        assert w.watermark() == T0
        assert len(w.landed()) == 100
        row = ledger(w)
        assert (row["status_code"], row["promised_last"], row["positions"], row["missing"]) == (
            "INCOMPLETE",
            200,
            100,
            100,
        )
        assert row["readings"] == 2
        error = w.one("SELECT error FROM ing_task_run WHERE status_code = 'FAILED'")
        assert "100 missing: 100 of 200 promised positions came" in error
        assert "fix the pack and run the same again" in error
        assert [one.missing for one in w.db.read(incomplete)] == [100]

        w.provider._served = serve  # type: ignore[method-assign]
        w.trigger(since=None)
        w.drain()
        assert w.landed() == w.provider.truth
        assert w.watermark() == T1
        assert w.db.read(incomplete) == []
        assert ledger(w, status="COMPLETE")["positions"] == 200


def test_a_next_link_that_is_missing_once_is_asked_for_again(database: Database) -> None:
    with world(database, SPREAD) as w:
        w.load(pack(w.url, "TOKEN", window=WHOLE))
        lost: list[str] = []

        def change(query: dict[str, str], tree: dict[str, Any]) -> None:
            if (tree.get("next") or "").endswith(".100") and not lost:
                lost.append(tree["next"])
                tree["next"] = None

        altered(w, change)
        w.trigger()
        w.drain()
        assert lost
        assert w.tasks() == {"SUCCEEDED i_done": 1}
        assert w.landed() == w.provider.truth
        assert len(w.provider.asked) == 8 + 1


def short_page(w: World, number: str = "3") -> None:
    def change(query: dict[str, str], tree: dict[str, Any]) -> None:
        if query.get("page") == number:
            del tree["items"][-5:]

    altered(w, change)


@pytest.mark.parametrize("short", [None, "CONTINUE"])
def test_a_page_that_is_five_short_leaves_the_window_incomplete(database: Database, short: str | None) -> None:
    """The pages behind it are read all the same: only the five are missing."""
    with world(database, SPREAD) as w:
        w.load(pack(w.url, "PAGE", window=WHOLE, pagination={"shortPage": short} if short else {}))
        short_page(w)
        w.trigger()
        w.drain()
        assert w.tasks() == {"FAILED i_incomplete": 1}
        assert w.watermark() == T0
        assert len(w.landed()) == 195
        assert ledger(w)["missing"] == 5


def test_a_rising_list_confirms_nothing_before_it_adds_up(database: Database) -> None:
    ordering = {"orderBy": "updated asc", "ascending": True, "stable": True}
    with world(database, SPREAD) as w:
        tree = pack(w.url, "PAGE", window=WHOLE, ordering=ordering)
        tree["endpoints"]["search"]["http"]["queryTemplate"]["order"] = "asc"
        w.load(tree)
        short_page(w)
        w.trigger()
        w.drain()
        assert w.tasks() == {"FAILED i_incomplete": 1}
        assert w.watermark() == T0


def test_a_record_that_stands_in_anothers_place_is_missed(database: Database) -> None:
    """As many positions as promised, but one record came twice and another never."""
    with world(database, SPREAD) as w:
        w.load(pack(w.url, "PAGE", window=WHOLE))
        first: list[Any] = []

        def change(query: dict[str, str], tree: dict[str, Any]) -> None:
            if query["page"] == "1":
                first[:] = tree["items"][:1]
            if query["page"] == "2":
                tree["items"][7] = first[0]

        altered(w, change)
        w.trigger()
        w.drain()
        assert w.tasks() == {"FAILED i_incomplete": 1}
        row = ledger(w)
        assert (row["positions"], row["distinct_ids"], row["missing"]) == (200, 199, 1)
        assert "stood there twice" in row["detail"]


def test_nulls_in_a_list_of_ids_are_positions_and_end_nothing(database: Database) -> None:
    with world(database, SPREAD) as w:
        w.load(pack(w.url, "OFFSET", two_phase=True, window=WHOLE))

        def change(query: dict[str, str], tree: dict[str, Any]) -> None:
            if query["offset"] == "50":
                tree["items"][3] = tree["items"][4] = None

        altered(w, change)
        w.trigger()
        w.drain()
        assert w.tasks() == {"SUCCEEDED i_done": 1}
        assert len(w.landed()) == 198
        row = ledger(w)
        assert (row["positions"], row["null_items"], row["distinct_ids"]) == (200, 2, 198)
        details = ledger(w, "DETAIL")
        assert (details["positions"], details["inserted"], details["gone"]) == (198, 198, 0)


@pytest.mark.parametrize(("missing", "column"), [("IGNORE", "gone"), ("QUARANTINE", "quarantined")])
def test_every_listed_id_ends_as_landed_quarantined_or_gone(database: Database, missing: str, column: str) -> None:
    with world(database, SPREAD) as w:
        tree = pack(w.url, "OFFSET", two_phase=True, window=WHOLE)
        tree["endpoints"]["details"]["batching"]["missingIds"] = missing
        w.load(tree)
        lost = SPREAD[9].id
        serve = w.provider._served

        def served(method: str, path: str, query: dict[str, str], body: bytes) -> Reply:
            if path == "/details":
                body = body.replace(lost.encode(), b"nobody")
            return serve(method, path, query, body)

        w.provider._served = served  # type: ignore[method-assign]
        w.trigger()
        w.drain()
        row = ledger(w, "DETAIL")
        assert (row["positions"], row["inserted"], row[column]) == (200, 199, 1)
        assert row["inserted"] + row["quarantined"] + row["gone"] == 200
        assert w.tasks() == {"SUCCEEDED i_done": 1}


def test_a_listed_id_that_its_details_do_not_know_is_set_aside_and_not_deleted(database: Database) -> None:
    """`missingIds: DELETED` is for records that are stored: nothing landed for this one (I10)."""
    with world(database, SPREAD[:5]) as w:
        tree = pack(w.url, "OFFSET", two_phase=True, window=WHOLE)
        details = tree["endpoints"]["details"]
        details["batching"] |= {"missingIds": "DELETED", "idBatchSize": 1}
        details["errors"] = {"gone": {"status": [404], "outcome": "EMPTY"}}
        w.load(tree)
        lost = SPREAD[2].id
        serve = w.provider._served

        def served(method: str, path: str, query: dict[str, str], body: bytes) -> Reply:
            if path == "/details" and lost.encode() in body:
                return Reply(status=404, body=b"{}", kind="application/json")
            return serve(method, path, query, body)

        w.provider._served = served  # type: ignore[method-assign]
        w.trigger()
        w.drain()
        row = ledger(w, "DETAIL")
        assert (row["positions"], row["inserted"], row["quarantined"], row["equal_count"]) == (5, 4, 1, 0)
        assert w.rows("SELECT provider_id, status_code FROM ing_quarantine") == [(lost, "OPEN")]


def suppressing(w: World) -> None:
    """Two records of every page are withheld; the total counts them."""

    def change(query: dict[str, str], tree: dict[str, Any]) -> None:
        del tree["items"][3:5]

    altered(w, change)


@pytest.mark.parametrize("kind", ["OFFSET", "PAGE", "TOKEN"])
def test_a_walk_over_suppressed_records_is_read_once(database: Database, kind: str) -> None:
    with world(database, SPREAD) as w:
        w.load(pack(w.url, kind, window=WHOLE, pagination={"shortPage": "SUPPRESSED"}))
        suppressing(w)
        w.trigger()
        w.drain()
        assert w.tasks() == {"SUCCEEDED i_done": 1}
        assert w.watermark() == T1
        assert len(w.provider.asked) == 8
        row = ledger(w)
        assert (row["positions"], row["suppressed"], row["missing"]) == (184, 16, 0)


def test_suppression_that_nobody_declared_is_incomplete(database: Database) -> None:
    with world(database, SPREAD) as w:
        w.load(pack(w.url, "PAGE", window=WHOLE, pagination={"shortPage": "CONTINUE"}))
        suppressing(w)
        w.trigger()
        w.drain()
        assert w.tasks() == {"FAILED i_incomplete": 1}
        assert ledger(w)["missing"] == 16


@pytest.mark.parametrize(
    ("declared", "too_high", "done"),
    [
        ({"total": "EXACT"}, 1, False),
        ({"total": "ESTIMATE", "totalTolerance": 0.05}, 10, True),
        ({"total": "ESTIMATE", "totalTolerance": 0.05}, 11, False),
        ({"total": "UPPER_BOUND"}, 5000, True),
        ({"total": "NONE"}, 5000, True),
    ],
)
def test_a_total_promises_what_the_pack_declares(
    database: Database, declared: dict[str, Any], too_high: int, done: bool
) -> None:
    items = [Item(T0 + (n + 1) * 1_000_000, f"r{n:04}") for n in range(200)]
    with world(database, items) as w:
        w.load(pack(w.url, "PAGE", window=WHOLE, pagination={"pageSize": 30, **declared}))

        def change(query: dict[str, str], tree: dict[str, Any]) -> None:
            tree["total"] += too_high

        altered(w, change)
        w.trigger()
        w.drain()
        expected = {"SUCCEEDED i_done": 1} if done else {"FAILED i_incomplete": 1}
        assert w.tasks() == expected
        assert w.watermark() == (T1 if done else T0)


@pytest.mark.parametrize(
    ("total", "words"),
    [
        (lambda tree: None, "no page gave a number at `totalPath` ($.total)"),
        (lambda tree: {"value": 200}, "no page gave a number"),
        (lambda tree: len(tree["items"]), "it is the number of records of each page"),
        (lambda tree: 50, "100 records came for 50 promised"),
    ],
)
def test_a_total_that_counts_nothing_proves_no_list_that_lost_its_next_link(
    database: Database, total: Any, words: str
) -> None:
    """Without a total that could be right, a chain that is cut off looks like a whole one."""
    with world(database, SPREAD) as w:
        w.load(pack(w.url, "TOKEN", window=WHOLE))

        def change(query: dict[str, str], tree: dict[str, Any]) -> None:
            tree["total"] = total(tree)
            if (tree.get("next") or "").endswith(".100"):
                tree["next"] = None

        altered(w, change)
        w.trigger()
        w.drain()
        assert w.tasks() == {"FAILED i_incomplete": 1}
        assert w.watermark() == T0
        assert words in ledger(w)["detail"]


@pytest.mark.parametrize("meaning", ["ESTIMATE", "NONE"])
def test_a_list_of_short_pages_is_read_past_a_total_that_is_too_low(database: Database, meaning: str) -> None:
    with world(database, SPREAD) as w:
        w.load(pack(w.url, "OFFSET", window=WHOLE, pagination={"shortPage": "CONTINUE", "total": meaning}))

        def change(query: dict[str, str], tree: dict[str, Any]) -> None:
            tree["total"] = 60
            del tree["items"][20:]

        altered(w, change)
        w.trigger()
        w.drain()
        assert w.tasks() == {"SUCCEEDED i_done": 1}
        assert w.landed() == w.provider.truth


def test_a_window_that_adds_up_keeps_its_counts(database: Database) -> None:
    with world(database, SPREAD) as w:
        w.load(pack(w.url, "OFFSET", window=WHOLE))
        w.trigger()
        w.drain()
        row = ledger(w)
        assert row["status_code"] == "COMPLETE"
        assert (row["promised_first"], row["promised_last"], row["positions"]) == (200, 200, 200)
        assert (row["distinct_ids"], row["inserted"], row["missing"], row["readings"]) == (200, 200, 0, 1)


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
def test_a_window_that_is_read_anew_counts_its_quarantine_anew(database: Database) -> None:
    """What a task had set aside before its count began is counted again: the ledger says what the last reading saw."""
    with world(database, SPREAD[:50]) as w:
        broken = {"fields": {"title": {"path": "$.title", "enum": ["none such"]}}}
        w.load(pack(w.url, "OFFSET", output=broken, window=WHOLE, ordering={"rereadLastPage": True}))
        lies = [True]

        def more(_: dict[str, str], tree: dict[str, Any]) -> None:
            tree["total"] += 10 * lies[0]

        altered(w, more)
        w.trigger()
        w.drain()
        row = ledger(w)
        assert (row["status_code"], row["quarantined"]) == ("INCOMPLETE", 50)
        task = w.one("SELECT task_id FROM ing_task")
        lies[0] = False
        w.db.run(lambda tx: operations.requeue_task(tx, task, why="mended", now=w.clock.now()))
        w.drain()
        row = ledger(w)
        assert (row["status_code"], row["positions"], row["quarantined"]) == ("COMPLETE", 50, 50)
