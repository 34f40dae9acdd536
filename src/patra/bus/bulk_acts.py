"""Act on all dead letters that a query finds, in batches, after a preview of how many and which they are (C§6).

The dead letters are fixed when the act begins: later ones are never replayed or discarded with it, only counted beside
it. Each batch is one transaction with the progress, so that an act survives a restart and can be stopped between two.
"""

import msgspec

from patra.bus import operations
from patra.bus.bus import Bus
from patra.bus.catalogue.reasons import Reason
from patra.bus.catalogue.registered_types import shown_types
from patra.bus.consuming import replay as rules
from patra.bus.consuming.dead_letter import DeadLetterState, Filter, violations
from patra.bus.publishing.envelope import Refused
from patra.bus.store import dead_letters, groups
from patra.kernel.db import Database, Tx
from patra.kernel.ids import new_id

Q = dead_letters.Q
BITE_LETTERS = 200
MAX_CAUSES = 200
SAMPLE_LETTERS = 50
LATEST = 2**62


class Cause(msgspec.Struct, frozen=True, kw_only=True):
    """Dead letters of one group, type and error code; `detail` is what the latest of them said."""

    group: str
    event_type: str
    error_code: str
    detail: str
    letters: int
    first_failed_at: int
    last_failed_at: int
    replayed_before: int


class Preview(msgspec.Struct, frozen=True, kw_only=True):
    """What an act on all that a query finds would touch, in numbers, and the latest dead letters themselves."""

    letters: int
    replayed_before: int
    causes: list[Cause]
    sample: list[str]
    """The event ids of the latest dead letters."""
    sample_breaking_contract: int
    """How many of the sample do not keep the contract as it stands today: they will fail again."""
    as_of: int
    """When it was made. An act with `failed_to` after it touches what the preview counted, and nothing newer."""


class BulkAct(msgspec.Struct, frozen=True, kw_only=True):
    """An act on many dead letters. `refused`: no longer open at their turn; `last_code`: why, for the last one."""

    act_id: str
    kind: str
    group: str
    event_type: str
    error_code: str
    by: str
    why: str
    begun_at: int
    ended_at: int | None
    state: str
    total: int
    moved: int
    refused: int
    last_letter: str
    last_code: str

    @property
    def remaining(self) -> int:
        return self.total - self.moved - self.refused


class Progress(msgspec.Struct, frozen=True, kw_only=True):
    """An act, the results for its dead letters so far, and how many have failed in the same way since it began."""

    act: BulkAct
    states: dict[str, int]
    new_since: int


def causes(tx: Tx, wanted: Filter, *, limit: int = MAX_CAUSES) -> list[Cause]:
    """Dead letters grouped by cause, the most frequent first."""
    return [cause for cause, _ in causes_over_time(tx, wanted, LATEST, parts=0, step=1, limit=limit)]


def causes_over_time(
    tx: Tx, wanted: Filter, until: int, *, parts: int, step: int, limit: int = MAX_CAUSES
) -> list[tuple[Cause, list[int]]]:
    """The same, each with how many failed last in each of so many equal parts of the time before an instant."""
    narrow = {"state": wanted.state or DeadLetterState.OPEN, "tenant_id": wanted.tenant_id or ""}
    span = {"since": until - parts * step, "step": step}
    counts: dict[tuple[str, str, str], list[int]] = {}
    sums: dict[tuple[str, str, str], tuple[int, int, int, int]] = {}
    for group, event_type, code, part, letters, first, last, again in tx.fetch(
        Q["letter_causes"], _given_fields(wanted) | narrow | span
    ):
        key = (group, event_type, code)
        before = sums.get(key, (0, LATEST, 0, 0))
        sums[key] = (before[0] + letters, min(before[1], first), max(before[2], last), before[3] + int(again))
        of_parts = counts.setdefault(key, [0] * parts)
        if 0 <= part < parts:
            of_parts[part] = letters
    most = sorted(sums, key=lambda key: (-sums[key][0], key))[:limit]
    latest = [(*key, sums[key][2]) for key in most]
    details = {
        (group, kind, code): said
        for group, kind, code, said in tx.fetch(Q["letter_cause_details"], narrow, rows=latest)
    }
    return [
        (
            Cause(
                group=key[0],
                event_type=key[1],
                error_code=key[2],
                detail=details.get(key, ""),  # it may be handled since the first statement
                letters=sums[key][0],
                first_failed_at=sums[key][1],
                last_failed_at=sums[key][2],
                replayed_before=sums[key][3],
            ),
            counts[key],
        )
        for key in most
    ]


def preview(tx: Tx, bus: Bus, wanted: Filter, *, max_causes: int = MAX_CAUSES) -> Preview:
    """What replaying or discarding all open dead letters that a query finds would touch."""
    as_of = bus.clock.now()  # before the first query: what dies meanwhile may not be counted, and is left alone
    open_ones = msgspec.structs.replace(wanted, state=DeadLetterState.OPEN)
    found = causes(tx, open_ones, limit=max_causes)
    letters, again = tx.fetch(Q["bulk_letters_count"], _given_fields(wanted))[0]  # the causes shown may not be all
    sample = [one.letter for one in dead_letters.find(tx, open_ones, limit=SAMPLE_LETTERS)]
    catalogue = shown_types(bus.catalogue, bus.registered_elsewhere(tx))
    return Preview(
        letters=letters,
        replayed_before=int(again),
        causes=found,
        sample=[letter.event_id for letter in sample],
        sample_breaking_contract=sum(1 for letter in sample if violations(catalogue, letter)),
        as_of=as_of,
    )


def begin(tx: Tx, bus: Bus, kind: str, wanted: Filter, *, by: str, confirm: str, why: str) -> BulkAct | Refused:
    """Select the dead letters that a query finds in one group, and begin to replay or discard them.

    With `failed_to` only those that died before it: what a preview did not count is left alone.
    """
    if wanted.group is None:
        return Refused(code=Reason.GROUP_UNKNOWN, place="/group", detail="an act goes to one group: name it")
    refusal = rules.confirmation(wanted.group, confirm, by)
    if refusal is None and kind == "discard":
        refusal = rules.discharge(by, why)
    if refusal is None and groups.find(tx, wanted.group) is None and kind == "replay":
        refusal = Refused(code=Reason.GROUP_UNKNOWN, place="/group", detail=f"there is no group {wanted.group}")
    if refusal is not None:
        return refusal
    act_id, now = new_id(), bus.clock.now()
    fixed = {"act_id": act_id, "failed_to": LATEST if wanted.failed_to is None else wanted.failed_to}
    total = tx.execute(Q["bulk_letters_fix"], _given_fields(wanted) | fixed)
    row = {
        "act_id": act_id,
        "kind": kind,
        "group_name": wanted.group,
        "event_type": wanted.event_type or "",
        "error_code": wanted.error_code or "",
        "done_by": by,
        "why": why.replace("\0", "\ufffd"),
        "begun_at": now,
        "ended_at": None if total else now,
        "state": "running" if total else "done",
        "total": total,
        "moved": 0,
        "refused": 0,
        "last_letter": "",
        "last_code": "",
    }
    tx.insert("bus_bulk_act", [row])
    return _act(tx, act_id) or _unknown_act(act_id)


def work_off(tx: Tx, bus: Bus, act_id: str, *, limit: int = BITE_LETTERS) -> int:
    """The next batch of an act; gives how many dead letters it had, 0 when the act has ended."""
    act = _act(tx, act_id, "bulk_act_locked")
    if act is None or act.state != "running":
        return 0
    wanted_batch = {"act_id": act_id, "after": act.last_letter, "limit": limit}
    letters = [str(row[0]) for row in tx.fetch(Q["bulk_batch"], wanted_batch)]
    if letters:
        done = _act_on_letters(tx, bus, act, [one.removeprefix(f"{act.group}/") for one in letters])
        moved = len(done.letters) if isinstance(done, operations.Done) else 0
        code = done.code if isinstance(done, Refused) else next((one.code for one in done.refused.values()), "")
        counts = {"moved": moved, "refused": len(letters) - moved, "last": letters[-1], "code": str(code)}
        tx.execute(Q["bulk_advance"], {"act_id": act_id, **counts})
    if len(letters) < limit:
        tx.execute(Q["bulk_end"], {"act_id": act_id, "state": "done", "now": bus.clock.now()})
    return len(letters)


def _act_on_letters(tx: Tx, bus: Bus, act: BulkAct, event_ids: list[str]) -> operations.Done | Refused:
    if act.kind == "replay":
        return operations.replay(tx, bus, act.group, event_ids, by=act.by, confirm=act.group)
    return operations.discard(tx, bus, act.group, event_ids, by=act.by, reason=act.why)


def run_once(db: Database, bus: Bus) -> int:
    """A batch of the act that waits longest; a turn with nothing to do only reads."""
    found = db.read(lambda tx: tx.fetch_one(Q["bulk_running"]))
    return 0 if found is None else db.run(lambda tx: work_off(tx, bus, str(found[0])))


def stop(tx: Tx, bus: Bus, act_id: str) -> BulkAct | Refused:
    """End an act after its current batch; what was moved stays so."""
    tx.execute(Q["bulk_end"], {"act_id": act_id, "state": "stopped", "now": bus.clock.now()})
    return _act(tx, act_id) or _unknown_act(act_id)


def progress(tx: Tx, act_id: str) -> Progress | Refused:
    act = _act(tx, act_id)
    if act is None:
        return _unknown_act(act_id)
    states = {
        str(state): int(count)
        for state, count in tx.fetch(Q["bulk_states"], {"act_id": act_id, "last": act.last_letter})
    }
    since = {
        "since": act.begun_at,
        "group_name": act.group,
        "event_type": act.event_type,
        "error_code": act.error_code,
    }
    return Progress(act=act, states=states, new_since=tx.fetch(Q["bulk_new_since"], since)[0][0])


def acts(tx: Tx, *, limit: int, before: str = "") -> list[BulkAct]:
    """The latest first; `before` is the id of the last of the page before."""
    last = _act(tx, before) if before else None
    place = {"before_at": last.begun_at if last else LATEST, "before_id": last.act_id if last else ""}
    return [_of(row) for row in tx.fetch(Q["bulk_acts"], place | {"limit": limit})]


def _act(tx: Tx, act_id: str, name: str = "bulk_act") -> BulkAct | None:
    row = tx.fetch_one(Q[name], {"act_id": act_id})
    return None if row is None else _of(row)


def _of(row: tuple[object, ...]) -> BulkAct:
    return msgspec.convert(dict(zip(BulkAct.__struct_fields__, row, strict=True)), BulkAct)


def _given_fields(wanted: Filter) -> dict[str, str]:
    return {
        "group_name": wanted.group or "",
        "event_type": wanted.event_type or "",
        "error_code": wanted.error_code or "",
    }


def _unknown_act(act_id: str) -> Refused:
    return Refused(code=Reason.BULK_ACT_UNKNOWN, place="/act_id", detail=f"there is no act {act_id}")
