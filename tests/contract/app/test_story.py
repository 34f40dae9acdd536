"""The story of a key: from every key to its origin and its effects, on both databases, with data the engines made."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import msgspec
import pytest

from patra.app.component import Context
from patra.app.components import attribution as attribution_part
from patra.app.components import bus as bus_part
from patra.app.components.attribution import Attribution
from patra.app.configuration.engine_settings import AttributionSettings
from patra.app.configuration.settings import Settings
from patra.app.loops import Loop
from patra.app.story.keys import KINDS
from patra.app.story.model import Story
from patra.app.story.search import story
from patra.app.wiring import packages
from patra.attribution.settlement.period import close_period, parse_period
from patra.attribution.storage.read import every_decision
from patra.attribution.writer import Overloaded
from patra.bus import operations
from patra.ingest.landing.identifiers import note_identifiers
from patra.ingest.landing.records import Incoming, incoming
from patra.ingest.landing.store import RecordOrigin, store_records
from patra.kernel.clock import DAY, SECOND, format_instant
from patra.kernel.db import Database, Tx, migrate
from patra.kernel.testing import ManualClock
from tests.contract.app.test_ingest_wiring import process
from tests.contract.bus.conftest import TYPES
from tests.contract.bus.site import Site as BusSite
from tests.contract.studio.conftest import Site as StudioSite
from tests.contract.studio.conftest import each_site, tiny  # noqa: F401  fixtures
from tests.unit.attribution.said import ABSENT, T0, envelope, event
from tests.unit.bus.making import envelope as bus_envelope


def whats(found: Story) -> set[str]:
    return {entry.what for entry in found.entries}


def related(found: Story, kind: str) -> set[str]:
    return {one.key for one in found.related if one.kind == kind}


def opened(db: Database, key: str, kind: str = "", **more: Any) -> Story:
    """A story that was found; its entries are in the order of time and every code is explained."""
    found = story(db, key, kind=kind, **more)
    assert found.outcome == "found", (key, kind, found.candidates, found.searched)
    assert [entry.at for entry in found.entries] == sorted(entry.at for entry in found.entries)
    assert [entry.code for entry in found.entries if entry.code and not entry.code_text] == []
    return found


# --- attribution ------------------------------------------------------------------------------------------------------


class House:
    """Attribution with the bus as its archive; loops are turned by hand."""

    def __init__(self, db: Database) -> None:
        migrate(db, packages())
        self.db = db
        self.clock = ManualClock(T0)
        settings = Settings(attribution=AttributionSettings(archive="bus"))
        self.ground = Context(settings=settings, db=db, clock=self.clock, engines={})
        self.bus = bus_part.join(self.ground)
        self.ground.engines["bus"] = self.bus.engine
        self.joined = attribution_part.join(self.ground)
        self.ground.engines["attribution"] = self.joined.engine
        self.loops: dict[str, Loop] = {loop.name: loop for loop in self.joined.loops}

    def take(self, *events: Any, **changes: Any) -> None:
        body = msgspec.json.encode(envelope(*events, **changes))
        taken = self.ground.engine(Attribution).engine.submit(body, self.clock.now())
        assert not isinstance(taken, Overloaded)
        taken.result()

    def deliver(self) -> None:
        loop = self.loops["attribution.archive"]
        while loop.again(loop.run_once()):
            pass

    def close(self) -> None:
        for part in (self.joined, self.bus):
            if part.release:
                part.release()


@pytest.fixture
def house(database: Database) -> Iterator[House]:
    made = House(database)
    yield made
    made.close()


def every_attribution_key(db: Database) -> list[tuple[str, str]]:
    """Every key of every record, fact and audit of the store, with its kind."""
    found: set[tuple[str, str]] = set()
    for one in every_decision(db):
        for record in one.records:
            found |= {(f"attribution.{k.removesuffix('OrNA')}", v) for k, v in record.body["sourceKeys"].items()}
            found |= {(f"attribution.{k.removesuffix('OrNA')}", v) for k, v in record.body["relationKeys"].items()}
            found.add(("attribution.recordKey", record.key))
            if "factId" in record.payload:
                found.add(("attribution.factId", record.payload["factId"]))
            else:
                found.add(("attribution.auditKey", record.body["payloadRef"]["payloadKey"]))
    return sorted((kind, key) for kind, key in found if key != "NA")


def test_the_story_of_a_rejected_event_tells_the_field_and_what_was_expected(house: House) -> None:
    house.take(event("click", "lacking", traceKey=""), batch="batch-1", app="app-1")
    found = opened(house.db, "lacking", "attribution.eventId")
    (entry,) = [entry for entry in found.entries if entry.what == "event_decided"]
    wrong = "traceKey was expected to be text of 1 to 1,024 characters"
    assert entry.text.endswith(f" was not counted: {wrong}."), "the cause, and not all that the code stands for"
    assert found.verdict == f"Not billed: {wrong} (f_event_missing_required)."
    (told,) = entry.detail["rejects"]
    assert (told["batchId"], told["eventIndex"], told["eventId"], told["fieldPath"]) == (
        "batch-1",
        0,
        "lacking",
        "traceKey",
    )


def test_the_story_of_a_rejected_event_tells_all_required_fields_that_are_missing(house: House) -> None:
    house.take(event("click", "lacking", traceKey="", clickTarget=ABSENT, eventVersion=1.5), batch="batch-1")
    found = opened(house.db, "lacking", "attribution.eventId")
    (entry,) = [entry for entry in found.entries if entry.what == "event_decided"]
    wrong = "traceKey was expected to be text of 1 to 1,024 characters; also wrong: clickTarget, eventVersion"
    assert entry.text.endswith(f" was not counted: {wrong}.")
    assert found.verdict == f"Not billed: {wrong} (f_event_missing_required)."
    assert [told["alsoWrong"] for told in entry.detail["rejects"]] == ["clickTarget, eventVersion"]


def test_every_key_of_attribution_leads_to_the_decision_and_on_to_the_bus(house: House) -> None:
    house.take(event("ad_filled"), event("impression"), event("click"), batch="batch-1", app="app-1")
    house.deliver()
    tried = [
        *every_attribution_key(house.db),
        ("attribution.batchId", "batch-1"),
        ("attribution.event", "batch-1/impression"),
        ("attribution.appId", "app-1"),
    ]
    of_decisions = {kind for kind in KINDS if kind.startswith("attribution.")} - {"attribution.statement"}
    assert {kind for kind, _ in tried} == of_decisions
    for kind, key in tried:
        found = opened(house.db, key, kind)
        assert found.kind == kind
        assert {"event_decided", "decision_audit_recorded", "event_published"} <= whats(found), (kind, key)
        assert related(found, "attribution.batchId") | {"batch-1"} == {"batch-1"}
        assert related(found, "bus.event_id"), (kind, key)


@pytest.mark.parametrize("by", ["hash", "app and period"])
def test_a_statement_leads_to_its_facts_and_each_of_them_back(house: House, by: str) -> None:
    house.take(event("ad_filled"), event("impression"), batch="batch-1", app="app-1")
    house.deliver()
    january = parse_period("2026-01")
    made = close_period(house.db, ManualClock(january.end + 30 * DAY), "app-1", january, allow_unpriced=True).statement
    key = made.hash if by == "hash" else "app-1/2026-01"
    found = opened(house.db, key)
    assert (found.kind, whats(found)) == ("attribution.statement", {"period_closed"})
    assert related(found, "attribution.appId") == {"app-1"}
    (fact,) = related(found, "attribution.billingKey")
    back = opened(house.db, fact)
    assert {"event_decided", "billable_fact_recorded", "period_closed"} <= whats(back)
    assert related(back, "attribution.statement") == {made.hash}


def test_from_an_event_one_walks_to_its_closure_its_facts_its_record_and_its_bus_event(house: House) -> None:
    house.take(event("ad_filled"), event("impression"), batch="batch-1")
    house.deliver()
    first = opened(house.db, "batch-1/impression")
    assert first.kind == "attribution.event"
    assert {"batch_received", "billable_fact_recorded", "attribution_fact_recorded", "closure_opened"} <= whats(first)
    (decided,) = [entry for entry in first.entries if entry.what == "event_decided"]
    assert (decided.code, decided.state) == ("f_accepted", "both_emit")
    assert decided.docs == "specification/rulings.html#ruling-f8"
    assert decided.rule_version
    closure = opened(house.db, "ref|ra")
    assert closure.kind == "attribution.closureKey"
    assert related(closure, "attribution.billingKey") == {"ref|ra|billable_impression"}
    billed = opened(house.db, "ref|ra|billable_impression")
    assert billed.kind == "attribution.billingKey"
    (fact,) = [entry for entry in billed.entries if entry.what == "billable_fact_recorded"]
    assert fact.state == "committed"
    (record_key,) = [one.key for one in fact.related if one.kind == "attribution.recordKey"]
    (published,) = [
        entry
        for entry in opened(house.db, record_key).entries
        if entry.what == "event_published" and entry.detail["payload"]["recordKey"] == record_key
    ]
    back = opened(house.db, published.detail["event_id"])
    assert back.kind == "bus.event_id"
    assert record_key in related(back, "attribution.recordKey")
    assert "event_decided" in whats(back)


def test_an_open_closure_is_pending_until_its_deadline(house: House) -> None:
    house.take(event("ad_filled"), batch="batch-1")
    found = opened(house.db, "ad_filled", "eventId")
    (pending,) = [one for one in found.pending if one.what == "closure_deadline"]
    assert pending.due == format_instant(T0 + 120 * SECOND)
    assert {one.what for one in found.pending} == {"closure_deadline", "archive_delivery"}
    house.deliver()
    assert {one.what for one in opened(house.db, "ad_filled", "eventId").pending} == {"closure_deadline"}


def test_a_refused_batch_is_told_with_its_code(house: House) -> None:
    house.take(batch="bad-batch")
    found = opened(house.db, "bad-batch")
    assert [(entry.what, entry.code) for entry in found.entries] == [("batch_refused", "f_batch_events_invalid")]


def test_a_text_that_is_two_keys_is_ambiguous_until_the_kind_is_named(house: House) -> None:
    house.take(event("impression", "same", traceKey="t-1"), batch="b-1")
    house.take(event("click", "other", traceKey="same"), batch="b-2")
    found = story(house.db, "same")
    assert found.outcome == "ambiguous"
    assert [(one.kind, one.count) for one in found.candidates] == [
        ("attribution.eventId", 1),
        ("attribution.traceKey", 1),
    ]
    assert found.entries == []
    chosen = opened(house.db, "same", found.candidates[1].kind)
    assert {entry.detail["fields"].get("clickTarget") for entry in chosen.entries if entry.what == "event_decided"} == {
        "shop"
    }


def test_an_event_id_that_very_many_events_have_offers_the_latest_of_them(house: House) -> None:
    for number in range(45):
        house.take(event("interaction", "counter-1", traceKey=f"t-{number}"), batch=f"b-{number}", app="app-1")
    found = story(house.db, "counter-1")
    assert (found.outcome, found.entries, found.next) == ("ambiguous", [], None)
    assert [(one.kind, one.key) for one in found.candidates] == [
        ("attribution.event", f"b-{number}/counter-1") for number in range(44, 24, -1)
    ]
    assert found.candidates[0].label.startswith("interaction of app app-1, ")
    assert found.advice[0].startswith("These are the latest 20 events with this eventId; about ")
    assert found.advice[0].endswith(". All of them, page by page: `patra attribution find counter-1`")
    assert {one.engine: one.complete for one in found.searched}["attribution"] is False
    chosen = opened(house.db, found.candidates[3].key, found.candidates[3].kind)
    assert related(chosen, "attribution.batchId") == {"b-41"}
    assert story(house.db, "counter-1", kind="eventId").candidates == found.candidates


@pytest.mark.parametrize("wrong", [{}, {"eventAt": "soon"}], ids=["taken", "rejected"])
def test_very_many_events_of_one_batch_with_one_event_id_are_told(house: House, wrong: dict[str, str]) -> None:
    """Their batch and `eventId` are those of all of them: there is nothing to choose from."""
    same = [event("interaction", "counter-1", idempotencyKey=f"i-{n}", traceKey=f"t-{n}", **wrong) for n in range(50)]
    house.take(*same, batch="b-1", app="app-1")
    found = opened(house.db, "counter-1", limit=500)
    assert "event_decided" in whats(found)
    assert related(found, "attribution.batchId") == {"b-1"}


def test_of_a_key_of_very_many_decisions_the_latest_are_told(house: House) -> None:
    for number in range(12):
        house.take(*[event("interaction", f"e-{number}-{n}") for n in range(10)], batch=f"b-{number}", app="app-1")
    found = opened(house.db, "app-1", limit=500)
    told = [entry.id for entry in found.entries if entry.what == "event_decided"]
    assert len(told) == 100
    assert related(found, "attribution.batchId") == {f"b-{number}" for number in range(2, 12)}
    (advice,) = found.advice
    assert advice.startswith("The latest 100 decisions are read; about ")
    assert found.verdict.startswith("In the part that is read here: ")
    assert {one.engine: one.complete for one in found.searched}["attribution"] is False


def test_what_nobody_knows_says_where_was_looked(house: House) -> None:
    found = story(house.db, "nobody-has-this")
    assert (found.outcome, found.entries, found.candidates) == ("unknown", [], [])
    searched = {one.engine: one.kinds for one in found.searched}
    assert set(searched) == {"attribution", "ingest", "bus", "studio"}
    assert "attribution.batchId" in searched["attribution"]
    assert "ingest.plan" not in searched["ingest"]  # by its form it is none
    assert found.advice
    assert story(house.db, "no\x00text").outcome == "unknown"


def test_a_story_comes_in_pages_that_tell_everything_once(house: House) -> None:
    house.take(*[event("interaction", f"e-{n}") for n in range(30)], batch="long")
    whole = opened(house.db, "long", limit=500)
    told, after = [], ""
    while True:
        some = opened(house.db, "long", limit=7, after=after)
        told += [entry.id for entry in some.entries]
        if some.next is None:
            break
        after = some.next
    assert told == [entry.id for entry in whole.entries]
    assert len(told) > 60


def test_addresses_and_secrets_are_nowhere_in_a_story(house: House) -> None:
    secret, address = "sk-abcdefghijklmnopqrstuvwxyz", "ann.example@example.com"
    house.take(
        event("click", "planted", traceKey=address, clickTarget=f"https://u:{secret}@x.example/?api_key={secret}"),
        batch="b-1",
    )
    house.deliver()
    for key in ("b-1", "planted", address):
        text = msgspec.json.encode(opened(house.db, key)).decode()
        assert secret not in text
        assert address not in text


# --- ingest -----------------------------------------------------------------------------------------------------------


def test_every_key_of_ingest_leads_up_to_its_trigger_and_down_to_the_bus(database: Database) -> None:
    with process(database) as p:
        migrate(database, packages())
        p.w.trigger()
        p.w.drain()
        p.turns("ingest.relay")
        (instance, trigger_key), *_ = p.w.rows("SELECT schedule_instance_id, trigger_key FROM ing_schedule_instance")
        provider_id, run_id, batch_no, task_id = p.w.rows(
            "SELECT provider_id, run_id, batch_no, task_id FROM ing_record ORDER BY provider_id LIMIT 1"
        )[0]
        plan_id, slice_id = p.w.rows("SELECT plan_id, slice_id FROM ing_task WHERE task_id = :t", t=task_id)[0]
        (namespace,) = p.w.rows("SELECT namespace_key FROM ing_cursor")[0]
        lineage = {
            "ingest.schedule_instance": instance,
            "ingest.plan": plan_id,
            "ingest.slice": slice_id,
            "ingest.task": task_id,
            "ingest.run": run_id,
            "ingest.batch": f"{run_id}/{batch_no}",
        }
        up = [
            {"trigger_received"},
            {"plan_created"},
            {"slice_cut"},
            {"task_created"},
            {"run_started"},
            {"batch_landed"},
        ]
        for depth, (kind, key) in enumerate(lineage.items()):
            found = opened(database, key)
            assert found.kind == kind
            assert set().union(*up[: depth + 1]) <= whats(found), kind
            if depth >= 2:  # from a slice on the events of its runs belong to it
                assert {"event_published", "batch_landed", "run_started"} <= whats(found), kind
        assert opened(database, trigger_key).kind == "ingest.schedule_instance"
        assert opened(database, f"ing-{run_id}-{batch_no}").kind == "ingest.correlation_id"
        batch = opened(database, f"{run_id}/{batch_no}", limit=500)
        published = [entry for entry in batch.entries if entry.what == "event_published"]
        assert {entry.detail["payload"]["batch_no"] for entry in published} == {batch_no}
        of_batch = [one for one in p.events() if one["payload"]["batch_no"] == batch_no and one["trace_id"] == run_id]
        assert {entry.detail["event_id"] for entry in published} == {one["event_id"] for one in of_batch}
        for key in (provider_id, f"hostile|search|{provider_id}", f"hostile:{provider_id}"):
            found = opened(database, key)
            assert found.kind == "ingest.record"
            assert set().union(*up) | {"record_changed", "event_published"} <= whats(found)
            (event_entry,) = [entry for entry in found.entries if entry.what == "event_published"]
            assert event_entry.detail["payload"]["provider_id"] == provider_id
        back = opened(database, event_entry.detail["event_id"])
        assert {"record_changed", "batch_landed", "trigger_received"} <= whats(back)
        for key in (namespace, f"hostile/HARVEST/{namespace}"):
            found = opened(database, key)
            assert found.kind == "ingest.cursor"
            assert {"cursor_state", "cursor_advanced", "plan_created"} <= whats(found)


def test_a_doi_leads_to_every_source_that_has_the_work_and_each_record_to_the_doi(database: Database) -> None:
    migrate(database, packages())
    own_ids = {"crossref": "10.5555/OTTERS.1", "openalex": "https://openalex.org/W99", "pubmed": "90001"}
    fields = {"doi": "10.5555/otters.1", "openalex": "W99", "pmid": "90001"}
    for number, (source, own) in enumerate(own_ids.items()):
        place = RecordOrigin(
            source=source, endpoint="works", operation="BACKFILL", expr_hash="e", plan_id="p", slice_id="s",
            task_id="t", run_id="r", batch_no=number,
        )  # fmt: skip
        record = incoming(own, 1, None, fields, None, deleted=False)
        assert record is not None

        def land(tx: Tx, place: RecordOrigin = place, record: Incoming = record) -> None:
            note_identifiers(tx, place, store_records(tx, place, [record], 1, remap=False))

        database.run(land)
    for key in ("10.5555/Otters.1", "https://doi.org/10.5555/otters.1"):
        found = opened(database, key)
        assert found.verdict.startswith("Stored from 3 sources: crossref, openalex, pubmed.")
        assert {one.detail["provider_id"] for one in found.entries if one.what == "record_changed"} == {
            *own_ids.values()
        }
    for key in ("W99", "openalex:W99", "OpenAlex:W99"):
        found = opened(database, key)
        assert [one.detail["provider_id"] for one in found.entries] == ["https://openalex.org/W99"]
        assert ("same work", "10.5555/otters.1") in {(one.relation, one.key) for one in found.related}
    assert story(database, "crossref:W99").outcome == "unknown", "another source has that id"


def test_what_waits_in_ingest_says_when_it_is_due(database: Database) -> None:
    with process(database) as p:
        migrate(database, packages())
        p.w.trigger()
        task_id, due = p.w.rows("SELECT task_id, scheduled_at FROM ing_task ORDER BY task_id LIMIT 1")[0]
        (pending,) = opened(database, task_id).pending
        assert (pending.what, pending.due, pending.state) == ("task", format_instant(due), "QUEUED")
        p.w.drain()
        (run_id,) = p.w.rows("SELECT run_id FROM ing_task_run ORDER BY run_id LIMIT 1")[0]
        assert [one.what for one in opened(database, f"{run_id}/1").pending] == ["publication"]
        p.turns("ingest.relay")
        assert opened(database, f"{run_id}/1").pending == []


# --- the bus ----------------------------------------------------------------------------------------------------------


@contextmanager
def bus_site(db: Database) -> Iterator[BusSite]:
    site = BusSite(db, TYPES)
    migrate(db, packages())
    site.effects_table()
    yield site


def test_every_key_of_the_bus_leads_to_deliveries_dead_letters_and_replays(database: Database) -> None:
    with bus_site(database) as site:
        site.listen("one")
        site.listen("two")
        made = bus_envelope(payload={"key": "bad"}, idempotency_key='odd "key"')
        site.fail = {"bad"}
        site.publish(made)
        site.pump("one")
        waiting = opened(database, made.event_id)
        assert {one.what for one in waiting.pending} == {"delivery"}
        assert {"event_published", "delivery_failed"} <= whats(waiting)
        failed = next(one for one in waiting.entries if one.what == "delivery_failed")
        assert failed.text == "Group one failed to handle the event, once so far: ValueError: no luck with bad"
        for _ in range(3):
            site.clock.advance(60 * SECOND)
            site.pump("one")
        site.fail = set()
        site.pump("two")
        letter = f"one/{made.event_id}"
        tried = {
            "bus.event_id": made.event_id,
            "bus.dead_letter": letter,
            "bus.trace_id": made.trace_id,
            "bus.correlation_id": made.correlation_id,
            "bus.idempotency_key": made.idempotency_key,
        }
        for kind, key in tried.items():
            found = opened(database, key, kind)
            assert found.kind == kind
            assert {"event_published", "event_handled", "dead_letter_written"} <= whats(found), kind
            assert [(one.what, one.due) for one in found.pending] == [("dead_letter", None)]
            assert letter in related(found, "bus.dead_letter") | {key}
            assert "ValueError: no luck with bad (b_handler_failed)" in found.verdict
            said = [one.text for one in found.entries if one.what in {"attempt_failed", "dead_letter_written"}]
            assert [text.partition(": ")[2] for text in said] == ["ValueError: no luck with bad"] * 4
        assert {e.detail["group"] for e in found.entries if e.what == "event_handled"} == {"two"}
        site.run(operations.replay, "one", [made.event_id], by="ann", confirm="one")
        site.pump()
        found = opened(database, letter)
        assert {"dead_letter_replaying", "dead_letter_replayed"} <= whats(found)
        assert [e.detail["attempt"] for e in found.entries if e.what == "attempt_failed"] == [1, 2, 3]
        assert {e.detail["group"] for e in found.entries if e.what == "event_handled"} == {"one", "two"}
        assert found.pending == []


def test_a_discarded_dead_letter_is_not_told_as_handled(database: Database) -> None:
    with bus_site(database) as site:
        site.listen("one")
        made = bus_envelope(payload={"key": "bad"})
        site.fail = {"bad"}
        site.publish(made)
        for _ in range(4):
            site.pump("one")
            site.clock.advance(60 * SECOND)
        site.run(operations.discard, "one", [made.event_id], by="ann", reason="useless")
        found = opened(database, made.event_id)
        assert "dead_letter_discarded" in whats(found)
        assert "event_handled" not in whats(found)
        assert found.pending == []


def test_a_refused_publication_is_found_by_its_idempotency_key(database: Database) -> None:
    with bus_site(database) as site:
        made = bus_envelope(payload={"key": 5}, idempotency_key="refused-one")
        site.publish(made)
        for key in ("refused-one", made.event_id):
            found = opened(database, key)
            (entry,) = found.entries
            assert (entry.what, entry.code) == ("publish_refused", "b_payload_invalid")
            assert "was refused, once: /payload/key: the value is not of type" in entry.text, "the place and the fault"
            assert "/payload/key" in found.verdict


# --- the studio -------------------------------------------------------------------------------------------------------


def test_every_key_of_the_studio_leads_to_its_task_its_jobs_and_its_film(each_site: StudioSite) -> None:  # noqa: F811
    site, db = each_site, each_site.db
    migrate(db, packages())
    run_id = site.submit("The sea was calm at dusk.")
    task_id = site.studio.progress(run_id).task_id
    assert [one.what for one in opened(db, task_id).pending if one.engine == "studio"] == ["run"]
    site.drain(run_id)
    assert site.stage(run_id) == "completed"
    whole = opened(db, run_id, limit=500)
    assert whole.kind == "studio.run"
    assert {"task_submitted", "run_moved", "job_state", "film_published", "event_published"} <= whats(whole)
    assert [one for one in whole.pending if one.engine == "studio"] == []
    assert opened(db, task_id).kind == "studio.task"
    jobs, artifacts = related(whole, "studio.job"), related(whole, "studio.artifact")
    assert len(jobs) == 3  # audio, lipsync, video; one for text is made only where a chat server is configured
    for job_id in jobs:
        found = opened(db, job_id)
        assert found.kind == "studio.job"
        assert {"task_submitted", "run_moved", "job_state"} <= whats(found)
    assert artifacts
    for digest in artifacts:
        found = opened(db, digest)
        assert found.kind == "studio.artifact"
        assert {"task_submitted", "run_moved"} <= whats(found)
        assert run_id in related(found, "studio.run")
    made = [e for e in opened(db, min(artifacts)).entries if e.what == "artifact_made"]
    assert all(opened(db, one.detail["artifact_id"]).kind == "studio.artifact" for one in made)
    of_bus = related(whole, "bus.event_id")
    assert of_bus
    for event_id in sorted(of_bus)[:10]:
        assert "task_submitted" in whats(opened(db, event_id))
