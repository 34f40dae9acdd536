"""What a group has still to handle, and its inbox on the kernel's ledger: an effect happens once (C§3)."""

from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from typing import Any

import msgspec

from patra.bus.catalogue.versions import Version
from patra.bus.consuming.delivery_order import FAR_FUTURE, SHARDS, DeliveryState, Reach, Waiting
from patra.bus.publishing.envelope import DELIVER_AT, decode_trusted, deliver_at
from patra.kernel import ledger
from patra.kernel.clock import DAY
from patra.kernel.db import Queries, Tx

Q = Queries.load("patra.bus")

INBOX_WINDOW = 90 * DAY
INBOX_KEPT_FOREVER = 100 * 365 * DAY
DEAD = "bus.dead_letter"  # holds the inbox entry of a dead letter until a replay releases it
SLOT_LOCK_BASE = 7026819 << 32  # advisory locks of our own, one a group and slot
KEY_LOCK_BASE = 7026820 << 32  # and one a group and shard of its ordering keys
LOOKAHEAD_FACTOR = 8  # times the batch: how far a worker looks past events of keys in other hands


class Failure(msgspec.Struct, frozen=True, kw_only=True):
    """What became of an event that failed."""

    seq: int
    state: DeliveryState
    due_at: int
    attempts: int
    first_failed_at: int
    last_failed_at: int
    error_code: str
    error_detail: str


class Retrying(msgspec.Struct, frozen=True):
    """An event that a group failed on and that is still being retried: not yet a dead letter."""

    group: str
    event_id: str
    event_type: str
    failures: int
    due_at: int
    error_code: str
    error_detail: str
    webhook: bool
    """Whether the group is an endpoint, which has waits of its own."""


def retrying(tx: Tx, group: str, limit: int) -> list[Retrying]:
    """What a group, or with an empty name any, is still retrying; the next to be tried first."""
    found = tx.fetch(Q["deliveries_failing"], {"group_name": group, "limit": limit})
    return [
        Retrying(group, event, kind, failures, due_at, code or "", detail or "", bool(webhook))
        for group, event, kind, failures, due_at, code, detail, webhook in found
    ]


def due(tx: Tx, group_id: int, now: int, limit: int) -> list[Waiting]:
    """Take due events, oldest first; on PostgreSQL the rows are locked, and those of other workers skipped."""
    found = tx.fetch(Q["deliveries_due"], {"group_id": group_id, "now": now, "limit": limit})
    return [_waiting(row) for row in found]


def due_by_key(
    tx: Tx, group_id: int, now: int, limit: int, reach: Reach, *, far: bool = True
) -> tuple[list[Waiting], int]:
    """The same for a group with ordering keys: only keys in nobody's hands; gives how many shards were in others'.

    With `far` it looks past events of shards that it does not ask for, or does not get.
    """
    params = {
        "group_id": group_id,
        "now": now,
        "limit": limit,
        "window": limit * LOOKAHEAD_FACTOR if far else limit,
        "group_shards": KEY_LOCK_BASE + group_id * SHARDS,
        "first": reach.first,
        "share": reach.share,
    }
    found = tx.fetch(Q["deliveries_due_by_key"], params)
    return [_waiting(row[:-1]) for row in found], found[0][-1] if found else 0


def find_held(tx: Tx, group_id: int, seqs: Collection[int]) -> list[Waiting]:
    return [
        _waiting(row)
        for row in tx.fetch(Q["deliveries_held"], {"group_id": group_id}, rows=[(s,) for s in sorted(seqs)])
    ]


def standing(tx: Tx, group_id: int, taken: Sequence[Waiting]) -> dict[bytes, list[tuple[int, int]]]:
    """For the ordering keys at hand, the unhandled events that decide whether they are in line: the head of each key,
    and everything between the first and the last one taken.
    """
    spans: dict[bytes, tuple[int, int]] = {}
    for one in taken:
        if one.order_key is not None:
            first, last = spans.get(one.order_key, (one.seq, one.seq))
            spans[one.order_key] = (min(first, one.seq), max(last, one.seq))
    found: dict[bytes, list[tuple[int, int]]] = {}
    group = {"group_id": group_id}
    for key, seq, due_at in tx.fetch(Q["deliveries_heads"], group, rows=[(key,) for key in sorted(spans)]):
        found.setdefault(bytes(key), []).append((seq, due_at))
    between = [(key, first, last) for key, (first, last) in sorted(spans.items()) if first < last]
    for key, seq, due_at in tx.fetch(Q["deliveries_between"], group, rows=between):
        found.setdefault(bytes(key), []).append((seq, due_at))
    return found


def put_off(tx: Tx, group_id: int, until: Mapping[int, int]) -> None:
    tx.execute(Q["deliveries_put_off"], {"group_id": group_id}, rows=sorted(until.items()))


def delete_done(tx: Tx, group_id: int, seqs: Collection[int]) -> None:
    tx.execute(Q["deliveries_done"], {"group_id": group_id}, rows=[(seq,) for seq in sorted(seqs)])


def hold(tx: Tx, group_id: int, seqs: Collection[int]) -> None:
    """Out of line until it is finished: a worker works on it under a lease."""
    tx.execute(Q["deliveries_hold"], {"group_id": group_id}, rows=[(seq, FAR_FUTURE) for seq in sorted(seqs)])


def put_back(tx: Tx, group_id: int, seqs: Collection[int], due_at: int) -> None:
    """Into line again, from out of the hands of workers who do not work on such events."""
    tx.execute(Q["deliveries_return"], {"group_id": group_id}, rows=[(seq, due_at) for seq in sorted(seqs)])


def count_losses(tx: Tx, group_id: int, seqs: Collection[int], now: int, by: int = 1) -> None:
    """What is true if the worker dies now; `deliveries_failed` and `deliveries_done` take it back."""
    params = {"group_id": group_id, "by": by, "now": now}
    tx.execute(Q["deliveries_count_losses"], params, rows=[(s,) for s in sorted(seqs)])


def lose_ahead(tx: Tx, group_id: int, seq: int, due_at: int, now: int, *, code: str, detail: str) -> None:
    """Write what is true if the process dies now: the event was lost once more, and comes back later."""
    params = {
        "group_id": group_id,
        "seq": seq,
        "due_at": due_at,
        "now": now,
        "error_code": code,
        "error_detail": detail,
    }
    tx.execute(Q["delivery_lost_ahead"], params)


def in_trial(tx: Tx, group_id: int, trial: Waiting) -> bool:
    """Whether the event still stands as the process wrote it down before its trial; locked, if so."""
    params = {"group_id": group_id, "seq": trial.seq, "lost": trial.lost}
    return bool(tx.fetch(Q["delivery_in_trial"], params))


def write_failures(tx: Tx, group_id: int, failures: Sequence[Failure]) -> None:
    rows = [msgspec.structs.astuple(f) for f in sorted(failures, key=lambda f: f.seq)]
    tx.execute(Q["deliveries_failed"], {"group_id": group_id}, rows=rows)


def replay(tx: Tx, group_id: int, events: Sequence[tuple[int, bytes | None]], now: int) -> None:
    """Put dead letters before their group again, marked to pass its inbox once."""
    tx.execute(Q["deliveries_replay"], {"group_id": group_id, "now": now}, rows=sorted(events, key=lambda e: e[0]))


def call_up(tx: Tx, group_id: int, overtaken: Mapping[int, bytes], now: int) -> bool:
    """Bring due entries that stand before some events (key by seq) to the front; gives whether there was any."""
    rows = sorted({key: seq for seq, key in sorted(overtaken.items())}.items())
    return tx.execute(Q["deliveries_call_up"], {"group_id": group_id, "now": now}, rows=rows) > 0


def wake_followers(tx: Tx, group_id: int, keys: Collection[bytes], now: int) -> None:
    """Let events that waited behind a failed one of their key look again at once."""
    tx.execute(Q["deliveries_wake_followers"], {"group_id": group_id, "now": now}, rows=[(k,) for k in sorted(keys)])


def backfill(tx: Tx, group_id: int, event_type: str, major: int, minors: tuple[int, int], now: int) -> int:
    """What is still kept of a major, for a group that begins at the beginning and has it in no other major."""
    which = {"group_id": group_id, "event_type": event_type, "major": major}
    count = tx.execute(Q["deliveries_backfill"], {**which, "first": minors[0], "last": minors[1], "now": now})
    marked = tx.fetch(Q["deliveries_marked"], {**which, "mark": f'%"{DELIVER_AT}"%'})
    scheduled = [(group_id, seq, due_at) for seq, body in marked if (due_at := deliver_at(decode_trusted(body))) > now]
    tx.execute(Q["deliveries_schedule"], rows=scheduled)
    return count


def next_due(tx: Tx, group_id: int) -> int | None:
    return tx.fetch(Q["deliveries_next_due"], {"group_id": group_id})[0][0]


def of_event(tx: Tx, event_id: str) -> list[dict[str, Any]]:
    return tx.fetch_dicts(Q["deliveries_of_event"], {"event_id": event_id})


def of_events(tx: Tx, event_ids: Collection[str], limit: int = 1000) -> list[dict[str, Any]]:
    """Where some events stand in the lines of the groups; an event that a group has handled stands in none."""
    rows = [(event_id,) for event_id in sorted(event_ids)]
    return tx.fetch_dicts(Q["deliveries_of_events"], {"limit": limit}, rows=rows)


def handled_at(tx: Tx, group: str, event_ids: Collection[str]) -> dict[str, int]:
    """When a group handled some events, as far as its inbox reaches back; dead letters are not handled."""
    keys = {_key(event_id): event_id for event_id in event_ids if _is_event_id(event_id)}
    found = ledger.entries(tx, inbox(group), list(keys))
    return {keys[bytes(key)]: entry.first_at for key, entry in found.items() if entry.held_until is None}


def in_inbox(tx: Tx, group: str, event_ids: Collection[str], now: int) -> set[str]:
    """Events that `accept` would not let pass: handled, or dead letters."""
    keys = {_key(event_id): event_id for event_id in event_ids}
    found = ledger.entries(tx, inbox(group), list(keys))
    return {keys[bytes(key)] for key, entry in found.items() if entry.expires_at > now}


def remove_repeats(tx: Tx, seqs: Collection[int]) -> int:
    """Take new lines out again whose group has the event in line already, in a version that was entered before."""
    return tx.execute(Q["deliveries_remove_repeats"], rows=[(seq,) for seq in sorted(seqs)])


def slot(tx: Tx, group_id: int, number: int) -> bool:
    """Whether this worker may work as one of a bounded number; SQLite has one writer anyway."""
    return bool(tx.fetch(Q["slot"], {"group_slot": SLOT_LOCK_BASE + group_id * 1024 + number}))


def accept(tx: Tx, group: str, events: Sequence[Waiting], now: int) -> set[int]:
    """The inbox: gives those (by seq) whose effect has not happened in this group; they are marked as happening.

    A replay passes on purpose: the entry that its dead letter left is taken out first.
    """
    if not events:
        return set()
    scope = inbox(group)
    replays = [_key(e.event_id) for e in events if e.replay]
    if replays:
        ledger.release(tx, scope, replays, holder=DEAD)
    claims = [ledger.Claim(key=_key(e.event_id), fingerprint=b"", window=INBOX_WINDOW) for e in events]
    verdicts = ledger.claim(tx, scope, claims, now)
    return {event.seq for event, verdict in zip(events, verdicts, strict=True) if verdict.has_won}


def dead_letter(tx: Tx, group: str, events: Sequence[Waiting], now: int) -> None:
    """A dead letter keeps its inbox entry: a copy that a transport brings later is not a second chance."""
    claims = [ledger.Claim(key=_key(e.event_id), fingerprint=b"", window=INBOX_KEPT_FOREVER) for e in events]
    ledger.claim(tx, inbox(group), claims, now, hold=INBOX_KEPT_FOREVER, holder=DEAD)


def delete_discarded(tx: Tx, group: str, event_ids: Collection[str]) -> None:
    """A discarded event is over: its entry stays permanently, held by no worker."""
    ledger.settle(tx, inbox(group), [_key(event_id) for event_id in event_ids], holder=DEAD)


def inbox(group: str) -> str:
    return f"bus.inbox.{group}"


def _key(event_id: str) -> bytes:
    """The sixteen bytes of the id itself: version 7 grows with time, so the inbox's index does too."""
    return bytes.fromhex(event_id.replace("-", ""))


def _is_event_id(text: str) -> bool:
    """Whether a text can be the id of an event: the same questions are asked with a trace or another key."""
    try:
        return len(_key(text)) == 16
    except ValueError:
        return False


def _waiting(row: tuple[Any, ...]) -> Waiting:
    seq, order_key, attempts, due_at, again, first_failed_at, kind, major, minor, event_id, at, body, lost = row
    key = None if order_key is None else bytes(order_key)
    return Waiting(
        seq, key, attempts, due_at, bool(again), first_failed_at, kind, _version(major, minor), event_id, at, body, lost
    )


_version = lru_cache(maxsize=1024)(Version)
