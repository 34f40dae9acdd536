"""What the ingest platform says of a changed record keeps the contract of `ingest.record.changed`, whatever it holds."""

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from patra.app.bridges.ingest_events import (
    EVENT_TYPE,
    HALTED,
    change_key,
    envelopes,
    halt_events,
    idempotency_key,
    in_line,
    payload,
    together,
)
from patra.bus.bus import Bus
from patra.bus.catalogue.catalogue import load
from patra.bus.publishing.envelope import check
from patra.bus.publishing.publish import Candidate, examine
from patra.bus.publishing.publisher_tokens import module_publisher
from patra.ingest.landing.change_messages import Change, Changes, Halt, message_of
from patra.ingest.landing.records import Incoming, Sorted, Stored
from patra.ingest.landing.store import RecordOrigin
from patra.ingest.vocabulary.run_reasons import RunReason
from patra.kernel.clock import parse_instant
from patra.kernel.outbox import Delivered, Pending, Refused, Retry, Untried
from patra.kernel.testing import ManualClock

BUS = Bus(load(), ManualClock())
CONTRACT = BUS.catalogue.types[EVENT_TYPE].contracts[1]
EARLIEST, LATEST = parse_instant("1800-01-01T00:00:00Z") or 0, parse_instant("9999-12-31T23:59:59Z") or 0

names = st.from_regex(r"[a-z][a-z0-9_-]{0,63}", fullmatch=True)
hashes = st.from_regex(r"[0-9a-f]{64}", fullmatch=True)
ids = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=2000)
places = st.builds(
    RecordOrigin,
    source=names,
    endpoint=names,
    operation=st.just("HARVEST"),
    expr_hash=hashes,
    plan_id=names,
    slice_id=names,
    task_id=names,
    run_id=names,
    batch_no=st.integers(0, 10**6),
)
records = st.builds(
    Incoming,
    id=ids,
    updated_at=st.integers(EARLIEST, LATEST),
    version=st.none() | ids,
    deleted=st.booleans(),
    content=st.just(b"{}"),
    content_hash=hashes,
)


def pending(key: str, body: bytes, group: bytes = b"g", seq: int = 1) -> Pending:
    return Pending(seq=seq, group_key=group, key=key, payload=body, appended_at=7, attempt=0, failed_at=None)


KNOWN = Stored(0, None, "e", "c")


@given(places, st.lists(records, max_size=4), st.lists(records, max_size=4))
def test_every_record_that_a_batch_changed_becomes_an_event_that_the_bus_takes(
    place: RecordOrigin, new: list[Incoming], newer: list[Incoming]
) -> None:
    message = message_of(place, Sorted(new=new, newer=[(r, KNOWN) for r in newer], equal=["e"], older=["o"]))
    if message is None:
        assert not new
        assert not newer
        return
    made = envelopes(BUS, pending(message.key, message.payload))
    assert isinstance(made, list)
    told = [(one.payload["record_key"], one.payload["change"]) for one in made]
    name = f"{place.source}|{place.endpoint}"
    assert told == [(f"{name}|{r.id}", "created") for r in new] + [(f"{name}|{r.id}", "updated") for r in newer]
    for one in made:
        assert CONTRACT.violations(one.payload) == []
        assert check(one) is None
        assert isinstance(examine(BUS.catalogue, one, module_publisher("Ingest")), Candidate)
        assert one.occurred_at == 7


def test_the_words_of_the_platform_are_put_into_those_of_the_contract() -> None:
    changed_at = parse_instant("2026-01-02T03:04:05Z") or 0
    one = Change("10.1000/182", changed_at, "2", True, "update", "0" * 64)
    said = Changes(source="crossref", endpoint="works", expr_hash="1" * 64, run_id="t.r1", batch_no=3, records=[one])
    assert payload(said, one) == {
        "provenance_code": "crossref",
        "endpoint_name": "works",
        "provider_id": "10.1000/182",
        "record_key": "crossref|works|10.1000/182",
        "change": "updated",
        "updated_at": "2026-01-02T03:04:05Z",
        "deleted": True,
        "content_hash": "0" * 64,
        "expr_hash": "1" * 64,
        "run_id": "t.r1",
        "batch_no": 3,
    }
    assert change_key(said, one) == f"crossref/works/10.1000/182@{changed_at}.2.11111111.t.r1.3"


@given(
    names,
    names,
    st.sampled_from(RunReason),
    st.text(st.characters(exclude_categories=["Cs"])),
    st.text("a `\n", max_size=3000),
)
def test_a_halt_of_any_kind_becomes_an_event_that_the_bus_takes(
    source: str, endpoint: str, code: RunReason, detail: str, advice: str
) -> None:
    said = Halt(
        source=source, endpoint=endpoint, level="L4", code=code.value, detail=detail, advice=advice, run_id="t.r1"
    )
    (one,) = halt_events(BUS, pending("k", msgspec.json.encode(said)))
    assert BUS.catalogue.types[HALTED].contracts[1].violations(one.payload) == []
    assert isinstance(examine(BUS.catalogue, one, module_publisher("Ingest")), Candidate)
    assert f"`patra ingest lift {source} {endpoint}`" in one.payload["lift_advice"]
    assert halt_events(BUS, pending("k", b"[]")) == Refused("b_payload_invalid")


def test_a_message_waits_if_one_of_its_events_must_and_is_refused_if_one_is() -> None:
    assert together([Delivered(), Delivered()]) == Delivered()
    assert together([Delivered(), Refused("x"), Refused("y")]) == Refused("x")
    assert together([Refused("x"), Retry("later"), Delivered()]) == Retry("later")


def test_a_key_that_is_no_name_on_the_bus_is_hashed() -> None:
    assert idempotency_key("a/b/c@1..12345678") == "a/b/c@1..12345678"
    hashed = {idempotency_key(key) for key in ("x" * 257, "x" * 258, "a\nb", "a\x00b", "a\ufffeb")}
    assert {len(key) for key in hashed} == {64}
    assert len(hashed) == 5


def test_a_message_that_says_nothing_of_a_record_is_refused() -> None:
    for body in (b"", b"[]", b'{"providerId": "x"}', b"\xff"):
        assert envelopes(BUS, pending("k", body)) == Refused("b_payload_invalid")


def test_what_follows_a_message_that_must_wait_waits_with_it() -> None:
    messages = [pending("k", b"", group, seq) for seq, group in enumerate([b"a", b"b", b"a", b"b", b"a"])]
    outcomes = [Retry("x"), Refused("y"), Delivered(), Delivered(), Retry("x")]
    assert in_line(messages, outcomes) == [Retry("x"), Refused("y"), Untried(), Delivered(), Untried()]
