"""Weeks of traffic on a store that purges day after day, beside one that keeps everything: §3.8.14, §3.8.23, §3.8.29."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Any

import pytest
import zstandard

from patra.attribution.commit import commit
from patra.attribution.delivery.relay import Delivery, handing
from patra.attribution.intake.batch import Tick, read_batch
from patra.attribution.log_export import export_log
from patra.attribution.replay import ReplayOutput, replay
from patra.attribution.retention import Purged, Retention, into_files, purge_once
from patra.attribution.settlement import By, settle
from patra.attribution.storage.dedup_keys import Keys, carry_once
from patra.attribution.storage.key_index import Indexer
from patra.attribution.storage.key_search import find
from patra.attribution.storage.read import every_decision
from patra.kernel.clock import DAY, HOUR, SECOND
from patra.kernel.db import Database, migrate, open_database
from patra.kernel.errors import Invalid
from patra.kernel.testing import ManualClock
from tests.contract.attribution.archives import ListedArchive
from tests.unit.attribution.said import ALL_DUE_CLOSURES, PACKAGES, T0, at, envelope, event, terminal

WEEKS = 6
KINDS = ("opportunity_created", "ad_filled", "impression", "impression", "click", "interaction", "postback", "view")


def traffic(seed: int) -> Iterator[tuple[int, dict[str, Any]]]:
    """Batches of some weeks and the seconds of their arrival: few keys, repeated within their windows and long after."""
    dice = Random(seed)
    sent: list[dict[str, Any]] = []
    for number in range(WEEKS * 7 * 3):
        now = number * 8 * 3600 + dice.randrange(3600)
        events = [_event(dice, now, number, i) for i in range(3)]
        if sent and dice.random() < 0.5:
            yield now, dice.choice(sent)  # a batch once more: a duplicate, past its window a late one
        made = envelope(*events, batch=f"b{number}", app=dice.choice(["app", "app", "other"]))
        sent.append(made)
        yield now + 1, made
        if dice.random() < 0.3:
            yield now + 2, made


def _event(dice: Random, now: int, number: int, place: int) -> dict[str, Any]:
    day = max(number // 3 - dice.choice([0, 0, 0, 1, 5, 13, 30]), 0)
    link = {"renderAttemptId": f"r{day}.{dice.randrange(3)}", "traceKey": f"t{day}", "opportunityKey": f"o{day}"}
    key = {"idempotencyKey": f"k{dice.randrange(12)}"} if dice.random() < 0.3 else {}
    fields = {**link, **key, "eventAt": at(now - dice.choice([0, 0, 60, 86_400]))}
    if dice.random() < 0.1:
        return terminal(f"e{number}.{place}", **fields)
    return event(dice.choice(KINDS), f"e{number}.{place}", **fields)


class House:
    """A store with everything that runs beside its writer, on a clock set by hand; `kept` is what it purges."""

    def __init__(self, db: Database, kept: Retention, keep: Any, archive: ListedArchive | None) -> None:
        migrate(db, PACKAGES)
        self.db, self.kept, self.keep = db, kept, keep
        self.clock = ManualClock(T0)
        self.keys = Keys()
        self.indexer = Indexer(db, self.clock, patience=0)
        self.delivery = Delivery(db, archive, self.clock) if archive else None
        self.hand = handing(self.clock) if archive else None
        self.acks: list[Any] = []
        self.purged = 0

    def take(self, batch: dict[str, Any]) -> None:
        now = self.clock.now()
        while commit(self.db, [Tick(at=now)], due=ALL_DUE_CLOSURES, hand=self.hand, keys=self.keys)[0].applied:  # type: ignore[union-attr]
            pass
        self.acks += commit(self.db, [read_batch(json.dumps(batch).encode(), now)], hand=self.hand, keys=self.keys)

    def upkeep(self) -> None:
        while self.delivery and not self.delivery.relay.run_once().idle:
            pass
        while self.indexer.run_once().items or carry_once(self.db, self.keys, self.clock.now()):
            pass
        while (done := purge_once(self.db, self.clock.now(), self.kept, keep=self.keep)) != Purged():
            self.purged += done.facts + done.audits + done.log + done.rejects + done.ledger


def lived(house: House, lines: Sequence[tuple[int, dict[str, Any]]]) -> None:
    day = 0
    for seconds, batch in lines:
        house.clock.set(T0 + seconds * SECOND)
        house.take(batch)
        if seconds // 86_400 > day:
            day = seconds // 86_400
            house.clock.advance(HOUR)
            house.upkeep()
    house.clock.advance(DAY)
    house.upkeep()


def kept_records(folder: Path) -> list[dict[str, Any]]:
    return [
        json.loads(line)["record"]
        for file in sorted(folder.iterdir())
        for line in zstandard.ZstdDecompressor().decompress(file.read_bytes(), max_output_size=1 << 24).splitlines()
    ]


def settlements(db: Database) -> list[Any]:
    spans = [(T0 + n * 7 * DAY, T0 + (n + 1) * 7 * DAY) for n in range(WEEKS)]
    ways: tuple[By, ...] = ("app", "day", "placement")
    return [db.read(lambda tx, a=a, b=b, by=by: settle(tx, a, b, by)) for a, b in spans for by in ways]


def replayed_on(lines: Sequence[tuple[int, dict[str, Any]]]) -> tuple[ReplayOutput, list[Any]]:
    db = open_database("sqlite:///:memory:")
    try:
        migrate(db, PACKAGES)
        ticked = [({"tick": at(seconds)}, {"receivedAt": at(seconds), "batch": batch}) for seconds, batch in lines]
        output = replay([line for pair in ticked for line in pair], db)
        return output, settlements(db)
    finally:
        db.close()


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("outside", [False, True])
def test_purging_every_day_for_weeks_changes_no_answer_and_no_settlement(
    database: Database, tmp_path: Path, outside: bool, seed: int
):
    lines = list(traffic(seed))
    expected, settled = replayed_on(lines)
    archive = ListedArchive() if outside else None
    kept = Retention(log=2 * DAY, rejects=3 * DAY, audits=None, facts=4 * DAY)
    house = House(database, kept, into_files(tmp_path / "kept"), archive)
    lived(house, lines)
    assert house.purged > 500
    told = [[(i.ackStatus, i.ackReasonCode, i.serverEventKey) for i in ack.ackItems] for ack in house.acks]
    assert told == [
        [(i["ackStatus"], i["ackReasonCode"], i["serverEventKey"]) for i in ack["ackItems"]] for ack in expected.acks
    ]
    assert settlements(house.db) == settled
    left = [record for one in every_decision(house.db) for record in one.records]
    filed = kept_records(tmp_path / "kept")
    wanted = {record["recordKey"] for record in expected.records}
    assert {r["recordKey"] for r in filed} | {r.key for r in left} == wanted
    assert len(filed) + len(left) == len(wanted)
    for record in left[::7]:
        found = house.db.read(lambda tx, key=record.key: find(tx, key)).found
        assert [one.archived.decision.at for one in found] == [record.at]
    if archive:
        assert {record.key for record in archive.written} == wanted


def test_the_log_of_a_store_that_purged_its_beginning_says_so_and_is_not_replayed(database: Database):
    lines = list(traffic(3))
    house = House(database, Retention(log=5 * DAY), None, None)
    lived(house, lines)
    first, *found = [json.loads(line) for line in export_log(house.db, house.clock.now())]
    assert list(first) == ["purgedBefore"]
    assert at(0) < first["purgedBefore"] <= found[0].get("receivedAt", found[0].get("tick"))
    batches = [line for line in found if "batch" in line]
    assert batches == [{"receivedAt": at(s), "batch": batch} for s, batch in lines[-len(batches) :]]
    assert 10 < len(batches) < len(lines) / 2
    db = open_database("sqlite:///:memory:")
    try:
        migrate(db, PACKAGES)
        with pytest.raises(Invalid, match="lost its beginning") as caught:
            replay([first, *found], db)
        assert caught.value.code == "log_beginning_missing"
        assert list(every_decision(db)) == []
    finally:
        db.close()
