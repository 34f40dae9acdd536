"""F24: the log of a live store, replayed elsewhere, gives what was answered and stored, also where its instants wobble."""

import json
import threading
from typing import Any

import msgspec
import pytest

from patra.attribution.commit import commit
from patra.attribution.decision.ack import BatchAck
from patra.attribution.intake.batch import Tick, read_batch
from patra.attribution.intake.envelope import Refused
from patra.attribution.log_export import export_log
from patra.attribution.replay import output_of
from patra.attribution.storage.dedup_keys import Keys
from patra.attribution.storage.read import every_decision
from patra.attribution.writer import Engine, Limits
from patra.kernel.clock import SECOND, parse_instant
from patra.kernel.db import Database, migrate, open_database
from patra.kernel.db.queries import statement
from patra.kernel.testing import ManualClock
from tests.property.attribution.logs import seeded_log
from tests.unit.attribution.said import PACKAGES, T0, billed, envelope, event, replayed

LATER = 2**61
WAITS = statement("waits", "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted")


def body(*events: Any, **changes: Any) -> bytes:
    return json.dumps(envelope(*events, **changes)).encode()


def assert_same(live: Any, again: Any) -> None:
    for name, found in msgspec.structs.asdict(live).items():
        assert getattr(again, name) == found, name


@pytest.mark.parametrize("seed", range(4))
def test_a_live_log_with_wobbling_instants_replays_to_what_was_answered(database: Database, seed: int):
    migrate(database, PACKAGES)
    engine = Engine(database, ManualClock(T0), limits=Limits(writers=1, announce=0, group=8))
    pending: list[Any] = []
    answers: list[BatchAck | Refused] = []
    for line in seeded_log(seed, lines=80, events=6):
        if "tick" in line:
            answers += [one.result(30) for one in pending]
            pending = []
            commit(database, [Tick(at=parse_instant(line["tick"]) or 0)], due=5, keys=engine.keys)
        else:
            at = parse_instant(line["receivedAt"])
            pending.append(engine.submit(json.dumps(line["batch"]).encode(), at))
    answers += [one.result(30) for one in pending]
    engine.close()
    assert_same(output_of(database, answers), replayed(*export_log(database, LATER)))


def test_batches_of_one_commit_apply_the_deadlines_of_their_own_closures_only(database: Database):
    migrate(database, PACKAGES)
    keys = Keys()
    commit(database, [read_batch(body(event("ad_filled"), event("click")), T0)], keys=keys)
    late = body(event("ad_filled", "other", renderAttemptId="rb"), event("postback", renderAttemptId="rb"), batch="b2")
    seen = body(event("impression"), batch="b3")
    # in one commit the second batch's closure is at hand while the first is decided
    commit(database, [read_batch(late, T0 + 121 * SECOND), read_batch(seen, T0 + 119 * SECOND)], keys=keys)
    expected = ["ref|ra|billable_click", "ref|ra|billable_impression"]
    assert billed(output_of(database, [])) == expected
    assert billed(replayed(*export_log(database, LATER))) == expected


def test_a_postback_decided_while_another_writer_opens_its_closure_is_replayed_as_it_was_answered(postgres_url: str):
    """The opener draws the earlier number and commits later: a commit without the closure decides again, alone."""
    first, second = (open_database(postgres_url) for _ in range(2))
    migrate(first, PACKAGES)
    opening, go_on = threading.Event(), threading.Event()

    def hold(*_: Any) -> None:
        opening.set()
        assert go_on.wait(30)

    answers: dict[int, Any] = {}
    impression = read_batch(body(event("impression")), T0)
    postback = read_batch(body(event("postback", postbackStatus="failed"), batch="b2"), T0)
    one = threading.Thread(target=lambda: answers.update({0: commit(first, [impression], hand=hold)}))
    other = threading.Thread(target=lambda: answers.update({1: commit(second, [postback], hand=lambda *_: None)}))
    try:
        one.start()
        assert opening.wait(30)
        other.start()
        while other.is_alive() and not first.read(lambda tx: tx.fetch(WAITS))[0][0]:
            pass
        go_on.set()
        one.join(30)
        other.join(30)
        live = output_of(first, [answers[0][0], answers[1][0]])
        again = replayed(*export_log(first, LATER))
        assert again.acks == live.acks
        assert [fact["recordStatus"] for fact in again.attribution if fact["eventType"] == "postback"] == ["conflicted"]
        decided = {one.decision.subject.event_id: one.decision.status for one in every_decision(first)}
        assert decided["postback"] == "conflicted"
    finally:
        go_on.set()
        first.close()
        second.close()
