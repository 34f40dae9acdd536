"""Reads what a commit needs and writes what it decided: a few statements on sets, whatever its size.

Locking, where several processes write (PostgreSQL; SQLite has one writer at a time):

0. a commit enters together with others; one that was undone because another was first enters alone: it waits until
   those at work are done, and others wait for it, so it is not overtaken a second time (`enter`);
1. the closures that are there are locked in the order of their keys (`closures_by_key … FOR UPDATE`), so what is read
   of them stays true until the commit;
2. the numbers in the log are drawn next: two commits that meet on a closure are numbered in the order of their locks;
3. counts of drops, then ledger keys, then new closures are written, each set in the order of its keys. One that finds
   that another was first with a ledger key or a closure waits for that commit and decides again on what it left.

Every commit goes through these sets in this order, so no two can wait for each other in a circle.
"""

from bisect import insort
from collections.abc import Collection, Mapping, Sequence
from operator import attrgetter
from typing import Any

import msgspec

from patra.attribution.contract.event_types import MAX_FIELD_CHARS
from patra.attribution.contract.keys import half
from patra.attribution.contract.reasons import Reason
from patra.attribution.decision.closure_rules import Status
from patra.attribution.decision.closure_state import Click, Closure, ClosureState, Terminal
from patra.attribution.decision.decide import ITEM_BITS, Changes, Drop, RejectedEvent, Superseded
from patra.attribution.decision.output_records import RECORD, RecordTransition
from patra.attribution.intake.batch import Batch, Item, time_of_item
from patra.attribution.intake.checked_event import subject_of
from patra.attribution.intake.envelope import Refused, as_read, display_text, legal_id
from patra.attribution.intake.identity import Origin, Subject
from patra.attribution.storage.closure_index import Numbers
from patra.attribution.storage.decision_codec import pack_decisions
from patra.attribution.storage.sql import Q
from patra.kernel.canonical import fingerprint, sha256_hex
from patra.kernel.db import Row, Tx
from patra.kernel.errors import NotCanonical
from patra.kernel.machine import journal

_encode = msgspec.json.Encoder(enc_hook=display_text).encode


class ClosureBody(msgspec.Struct, frozen=True, array_like=True):
    """What of a closure is only read together with its row."""

    closure: str
    opener: Subject | None
    """Only while it is open: a timeout asks for it."""
    ended_by: Origin | None
    clicked_by: Subject | None
    """Only while it waits."""
    click_code: Reason | None
    billed: Origin | None
    opener_batch: str | None = None
    """The batch of the event that opened it, as long as that is kept."""
    click_batch: str | None = None
    """The batch of the click, as long as that waits."""


class ReducedBody(ClosureBody, frozen=True, array_like=True):
    """That of a closure whose settled impression left the store; earlier releases read it without what it adds."""

    stated_in: tuple[str, int] | None = None
    """App and number of the statement that counts the impression: it names the creative that a click is priced by."""


_decode_closure = msgspec.json.Decoder(ReducedBody).decode


# --- reading ----------------------------------------------------------------------------------------------------------


def enter(tx: Tx, *, alone: bool) -> None:
    """Begin to commit, together with others or alone, until the transaction ends."""
    if tx.dialect == "postgres":
        tx.fetch(Q["enter_alone" if alone else "enter"])


def load_closures(tx: Tx, keys: Collection[bytes], numbers: Numbers) -> dict[bytes, Closure]:
    """The closures of a set of keys, locked until the transaction ends; on SQLite `numbers` finds them."""
    if tx.dialect == "sqlite":
        found = tx.fetch(Q["closures_by_number"], rows=[(number,) for number in sorted(numbers.find(tx, keys))])
    else:
        found = tx.fetch(Q["closures_by_key"], rows=[(key,) for key in sorted(keys)])
    return {closure.key: closure for closure in map(closure_of, found)}


def closure_of(row: Row) -> Closure:
    key, app_id, state, source, opened_at, click, click_due, timeout_id, body, number = row
    rest = _decode_closure(body)
    return Closure(
        key=bytes(key),
        closure=rest.closure,
        app=app_id,
        opened_at=opened_at,
        opener=rest.opener,
        state=ClosureState(state),
        source=Terminal(source) if source else None,
        ended_by=rest.ended_by,
        timeout=timeout_id,
        click=Click(click) if click else None,
        clicked_by=rest.clicked_by,
        click_code=rest.click_code,
        billed=rest.billed,
        opener_batch=rest.opener_batch,
        click_batch=rest.click_batch,
        click_due=click_due,
        stated_in=rest.stated_in,
        number=number,
        is_new=False,
        changed=False,
    )


def outcome_of_closure(body: bytes, stated_in: tuple[str, int] | None) -> bytes:
    """The body of a closed closure, reduced: what is decided about money by its row stays as it is.

    `stated_in`: the statement of its impression, if that leaves the store now; one that is named already stays.
    """
    was = _decode_closure(body)
    return _encode(_with_statement(ClosureBody(was.closure, None, None, None, None, None), stated_in or was.stated_in))


def statement_of_impression(body: bytes) -> tuple[str, int] | None:
    """App and number of the statement that counts the impression of a closure, where its body names it."""
    return _decode_closure(body).stated_in


def _with_statement(body: ClosureBody, stated_in: tuple[str, int] | None) -> ClosureBody:
    return body if stated_in is None else ReducedBody(**msgspec.structs.asdict(body), stated_in=stated_in)


def due_until(tx: Tx, now: int, limit: int) -> int | None:
    """The latest of the first `limit` deadlines at or before an instant; None where nothing is due."""
    return tx.fetch(Q["due_until"], {"now": now, "limit": limit})[0][0]


def due_closures(tx: Tx, now: int) -> list[bytes]:
    """Keys of closures with a deadline at or before an instant, the earliest first; they are locked with the others."""
    return [bytes(key) for (key,) in tx.fetch(Q["closures_due"], {"now": now})]


def next_due(tx: Tx) -> int | None:
    return tx.fetch(Q["next_due"])[0][0]


def announce(tx: Tx, process: str, oldest: int, now: int, lost: int) -> int:
    """Say since when a batch may wait in a process; gives the earliest such instant of all that are heard of."""
    tx.execute(Q["announce"], {"process": process, "oldest": oldest, "now": now})
    tx.execute(Q["forget_lost"], {"lost": lost})
    return tx.fetch(Q["oldest_waiting"])[0][0]


def forget_intake(tx: Tx, process: str) -> None:
    """A process ends: no batch waits there."""
    tx.execute(Q["forget_intake"], {"process": process})


# --- writing ----------------------------------------------------------------------------------------------------------


def append_log(tx: Tx, items: Sequence[Item]) -> list[int]:
    """Put the items into the log and give their numbers."""
    numbers = {
        place: number
        for number, place in tx.fetch(Q["append_log"], rows=[_log_row(i, one) for i, one in enumerate(items)])
    }
    return [numbers[place] for place in range(len(items))]


def _log_row(place: int, one: Item) -> Row:
    if not isinstance(one, Batch):
        return place, one.at, "tick", None, None, None, None
    if isinstance(one.envelope, Refused):
        batch_id = one.envelope.batch_id
        legal = batch_id if batch_id and legal_id(batch_id) else None
        return place, one.received_at, "refused", None, legal, one.envelope.code.value, one.log
    return place, one.received_at, "batch", one.envelope.app_id, one.envelope.batch_id, None, one.log


def write(tx: Tx, changes: Changes, items: Mapping[int, Item], numbers: Numbers, *, archived: bool) -> None:
    """Write all that was decided on the items, which come by number, but for dedup keys (`dedup_keys`) and drops.

    `archived`: the store itself is the archive.
    """
    _write_closures(tx, changes.closures, numbers)
    status = RECORD.target(Status.NEW, RecordTransition.WRITTEN) if archived else Status.NEW
    tx.write(Q["insert_billables"], {"status": status}, rows=changes.billables)
    tx.write(Q["append_placements"], rows=changes.placements)
    rows = [
        (n, time_of_item(items[n]), pack_decisions(made, items[n])) for n, made in changes.decisions.items() if made
    ]
    tx.write(Q["append_decisions"], {"archived": int(archived)}, rows=rows)
    _supersede(tx, changes.superseded)


def _write_closures(tx: Tx, closures: Sequence[Closure], numbers: Numbers) -> None:
    new = [closure for closure in closures if closure.is_new]
    moved = [closure for closure in closures if not closure.is_new]
    if tx.dialect == "sqlite":
        rows = [(number, c.key, c.app, c.opened_at, *_moving(c)) for number, c in enumerate(new, numbers.newest + 1)]
        tx.execute(Q["insert_closures_by_number"], rows=rows)
        for number, key, *_ in rows:
            numbers.add(key, number)
        tx.execute(Q["update_closures_by_number"], rows=sorted((c.number, *_moving(c)) for c in moved))
        return
    tx.claim(Q["insert_closures"], rows=sorted((c.key, c.app, c.opened_at, *_moving(c)) for c in new))
    tx.write(Q["move_closures"], rows=sorted((c.key, c.app, c.opened_at, *_moving(c)) for c in moved))


def _moving(closure: Closure) -> Row:
    opener = subject_of(closure.opener) if closure.opener and closure.state is ClosureState.OPEN else None
    clicked = subject_of(closure.clicked_by) if closure.clicked_by else None
    body = ClosureBody(
        closure.closure,
        opener,
        closure.ended_by,
        clicked,
        closure.click_code,
        closure.billed,
        closure.opener_batch if opener else None,
        closure.click_batch if clicked else None,
    )
    source, click = closure.source, closure.click
    return (  # plain texts: a member of an enum costs the driver four times as much
        closure.state.value,
        source and source.value,
        closure.next_due,
        click and click.value,
        closure.click_due,
        closure.timeout,
        _encode(_with_statement(body, closure.stated_in)),
    )


def write_drops(tx: Tx, changes: Changes) -> None:
    """Count them; those that were dropped so for the first time take their places among the decisions."""
    drops = changes.drops
    rows = [(key, drop.made.number, drop.count) for key, drop in sorted(drops.items())]
    owners = {bytes(key): number for key, number in tx.fetch(Q["count_drops"], rows=rows)}
    new = {key: drop for key, drop in drops.items() if owners[key] == drop.made.number}
    for drop in new.values():
        insort(changes.decisions[drop.made.number >> ITEM_BITS], drop.made, key=attrgetter("number"))
    rejected: dict[bytes, tuple[Row, int]] = {}
    for key, drop in drops.items():
        for one in drop.rejected:
            row = _reject(drop, owners[key], one)
            known = rejected.get(row[0])
            rejected[row[0]] = (row, 1) if known is None else (known[0], known[1] + 1)
    tx.execute(Q["write_rejects"], rows=[(*row, count) for _, (row, count) in sorted(rejected.items())])


def _reject(drop: Drop, number: int, one: RejectedEvent) -> Row:
    """The row of a rejected event: one for each app, batch, place, code and payload (F19, F25)."""
    sent, code = as_read(one.event), drop.made.ruling.reason.value
    payload = digest(sent)
    return (
        half(f"{drop.app}|{one.batch_id}|{one.place}|{code}|{payload}"),
        number,
        one.at,
        drop.app,
        one.batch_id,
        one.place,
        code,
        drop.source,
        payload,
        _encode(sent) if one.quarantined else None,
        one.sent_id.replace("\x00", "\ufffd")[:MAX_FIELD_CHARS] if isinstance(one.sent_id, str) else None,
        one.field,
        one.expected,
        one.also_wrong or None,
    )


def digest(sent: Any) -> str:
    """The sha256 of an event as sent: of its canonical form, or of its JSON where it has none."""
    try:
        return fingerprint(sent)
    except NotCanonical:
        return sha256_hex(msgspec.json.encode(sent, order="sorted", enc_hook=display_text))


def _supersede(tx: Tx, records: Sequence[Superseded]) -> None:
    """A timeout's attribution record that gives way to an impression; committed first if it still is new (F17)."""
    if not records:
        return
    by_id = {record.decision_id: record for record in records}
    rows: list[Row] = [(number,) for number in sorted(by_id)]
    tx.execute(Q["state_before_superseding"], rows=[(number, number >> ITEM_BITS) for (number,) in rows])
    for name, was, on, reason in (
        ("commit_before_superseding", Status.NEW, RecordTransition.WRITTEN, Reason.TIMEOUT),
        ("supersede", Status.COMMITTED, RecordTransition.SUPERSEDED, Reason.TIMEOUT_SUPERSEDED),
    ):
        moved = [by_id[number] for (number,) in sorted(tx.fetch(Q[name], rows=rows))]
        journal(tx, [RECORD.move(one.record_key, was, on, reason=reason, at=one.at) for one in moved])
