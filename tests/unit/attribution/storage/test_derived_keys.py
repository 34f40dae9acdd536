"""A key that is a hash is found among rows that the index has not reached without reading the decisions of each."""

from collections.abc import Iterator

import pytest

from patra.attribution.contract.keys import attribution_fact_id, billable_fact_id
from patra.attribution.decision.decisions import attribution_key_of, billing_key_of
from patra.attribution.decision.output_records import record_keys
from patra.attribution.replay import replay
from patra.attribution.storage import derived_keys, read
from patra.attribution.storage.key_search import find, find_latest
from patra.attribution.storage.read import every_decision
from patra.kernel.db import Database
from tests.unit.attribution.said import event, fresh, sent

BATCHES = 30


@pytest.fixture(scope="module")
def store() -> Iterator[Database]:
    db = fresh()
    lines = [
        sent(
            number,
            event("impression", f"i{number}", responseReference=f"r{number}"),
            event("click", f"c{number}", responseReference=f"r{number}"),
            batch=f"b{number}",
        )
        for number in range(BATCHES)
    ]
    replay(lines, db)
    yield db
    db.close()


def hashed_keys(store: Database) -> set[str]:
    found: set[str] = set()
    for one in every_decision(store):
        billing, attribution = billing_key_of(one.decision), attribution_key_of(one.decision)
        found |= {*record_keys(one.decision)}
        found |= {billable_fact_id(billing)} if billing else set()
        found |= {attribution_fact_id(attribution)} if attribution else set()
    return found


def test_only_rows_that_have_the_key_are_read_once_their_hashes_are_known(
    store: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = sorted(hashed_keys(store))
    assert {key[:3] for key in asked if len(key) != 64} == {"af_", "bf_"}
    store.read(lambda tx: find(tx, asked[0]))
    rows: list[int] = []
    unpacked = read.unpack_decisions

    def counted(item: int, body: bytes, text: bytes | None = None) -> object:
        rows.append(item)
        return unpacked(item, body, text)

    monkeypatch.setattr(read, "unpack_decisions", counted)
    for key in asked:
        rows.clear()
        found = store.read(lambda tx, key=key: find_latest(tx, key, limit=10)).found
        assert len(found) == 1, key
        assert rows == [found[0].archived.id >> 20], key
    rows.clear()
    assert store.read(lambda tx: find(tx, "0" * 64)).found == []
    assert store.read(lambda tx: find(tx, "attr_click|f_dedup_v1:client_event_id:app|no-such-event")).found == []
    assert rows == []


@pytest.mark.parametrize(
    ("key", "beginning"),
    [
        ("bf_0011223344556677", bytes.fromhex("001122334455")),
        ("af_0011223344556677", bytes.fromhex("001122334455")),
        ("ab" * 32, bytes.fromhex("ab" * 6)),
        ("z" * 64, None),
        ("bf_no hex at all", None),
        ("a-trace-key", None),
        ("bf_", None),
    ],
)
def test_the_beginning_of_a_key_that_is_a_hash(key: str, beginning: bytes | None) -> None:
    assert derived_keys.beginning_of(key) == beginning
