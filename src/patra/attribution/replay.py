"""Turns a log of batches and ticks into every answer, fact, audit, record and closure that follows from it.

Each line is `{"receivedAt": …, "batch": <any JSON>}` or `{"tick": …}`. Lines are decided in the order of the file. A
tick applies every deadline at or before its instant, each as of its own (A1); a batch only those of the closures that
its events name (F24). What was applied stays, also where a later line has an earlier instant: a log that several
writers made at once gives what they answered. The built-in archive takes records at once. The order of the output:
answers as the lines of batches; closures by key; everything else by its instant, then by its key. None of it depends on
a clock, on the database, or on how batches are grouped into commits.
"""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, repeat
from pathlib import Path
from typing import Any

import msgspec

from patra.attribution.commit import commit
from patra.attribution.contract.rules import LIVE_RULES, Rules
from patra.attribution.decision.ack import BatchAck, encode_ack
from patra.attribution.decision.decide import Answer, Ticked
from patra.attribution.decision.decisions import attribution_fact, audit, billable_fact, closure_line
from patra.attribution.decision.output_records import RANK, Record
from patra.attribution.intake.batch import Item, Tick, read_batch
from patra.attribution.intake.envelope import Refused, read_json
from patra.attribution.storage.dedup_keys import Keys
from patra.attribution.storage.read import every_closure, every_decision
from patra.kernel.clock import parse_instant
from patra.kernel.db import Database
from patra.kernel.errors import Invalid

DUE_BATCH_SIZE = 2000
"""Overdue closures that one commit takes, and those that share the last one's deadline."""

Line = str | bytes | dict[str, Any]
Object = dict[str, Any]


class ReplayOutput(msgspec.Struct, frozen=True, kw_only=True):
    """The six files, as lists of objects in the order of the file."""

    acks: list[Object]
    billable: list[Object]
    attribution: list[Object]
    audits: list[Object]
    records: list[Object]
    closures: list[Object]


def replay(
    lines: Iterable[Line], db: Database, *, group: Iterable[int] | None = None, rules: Rules = LIVE_RULES
) -> ReplayOutput:
    """Decide a log on an empty, migrated store; `group` says how many consecutive batches go into each commit.

    A tick ends a commit; batches beyond the last group are committed one by one.
    """
    answers: list[Answer] = []
    keys = Keys()
    for items in _group_items(_items(lines, rules), group or ()):
        if isinstance(items[0], Tick):
            while commit(db, items, due=DUE_BATCH_SIZE, keys=keys, rules=rules) != [Ticked(0)]:
                pass
        else:
            answers += commit(db, items, keys=keys, rules=rules)
    return output_of(db, [answer for answer in answers if not isinstance(answer, Ticked)])


def write_output(output: ReplayOutput, folder: Path) -> None:
    """One file for each list, an object a line, in UTF-8."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, objects in msgspec.structs.asdict(output).items():
        (folder / f"{name}.jsonl").write_bytes(msgspec.json.Encoder().encode_lines(objects))


# --- reading the log --------------------------------------------------------------------------------------------------


class _Line(msgspec.Struct):
    """A line of the log; which of its fields are there says what it is."""

    receivedAt: str | msgspec.UnsetType = msgspec.UNSET  # noqa: N815  names of the log's format
    batch: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    tick: str | msgspec.UnsetType = msgspec.UNSET
    purgedBefore: str | msgspec.UnsetType = msgspec.UNSET  # noqa: N815


_decode = msgspec.json.Decoder(_Line).decode


def last_instant(lines: Iterable[Line]) -> int | None:
    """The latest instant of a log, None of an empty one; refuses a line that cannot be read."""
    return max((_line(text, place)[0] for text, place in _texts(lines)), default=None)


def check_log(lines: Iterable[Line]) -> None:
    """Refuse a log with a line that cannot be read, before anything is decided."""
    for text, place in _texts(lines):
        _line(text, place)


def _items(lines: Iterable[Line], rules: Rules) -> Iterator[Item]:
    for text, place in _texts(lines):
        at, batch = _line(text, place)
        yield Tick(at=at) if batch is None else read_batch(batch, at, rules)


def _texts(lines: Iterable[Line]) -> Iterator[tuple[str | bytes, str]]:
    for number, line in enumerate(lines, start=1):
        text = line if isinstance(line, str | bytes) else json.dumps(line)
        if text.strip():
            yield text, f"line {number}"


def _line(text: str | bytes, place: str) -> tuple[int, bytes | None]:
    """The instant of a line and its batch, None of a tick."""
    try:
        if isinstance(text, bytes):  # a batch is passed over unread, so its bytes are looked at here
            str(text, "utf-8")
        line = _decode(text)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        line = _careful_line(text, place)
    if line.tick is not msgspec.UNSET and line.receivedAt is msgspec.UNSET and line.batch is msgspec.UNSET:
        return _instant(line.tick, "tick", place), None
    if line.tick is msgspec.UNSET and line.receivedAt is not msgspec.UNSET and line.batch is not msgspec.UNSET:
        return _instant(line.receivedAt, "receivedAt", place), bytes(line.batch)
    if line.purgedBefore is not msgspec.UNSET:
        raise Invalid(
            "log_beginning_missing",
            f"the log lost its beginning: lines before {line.purgedBefore} were purged from the store it came from. "
            "A replay without them would take repeated events for new ones and bill them again",
            place=place,
            advice="replay a log that was exported before attribution.keep_log_days had passed",
        )
    raise Invalid("log_line_invalid", "the line is neither a batch nor a tick", place=place, advice=_ADVICE)


_ADVICE = 'a line is {"receivedAt": "…", "batch": …} or {"tick": "…"}'


def _careful_line(text: str | bytes, place: str) -> _Line:
    """A line that msgspec cannot read because of what its batch holds: half surrogates, or nesting past any stack.

    Its members are found by their brackets and read one by one, the batch as a live one is read (`intake`).
    """
    try:
        members = _members(text if isinstance(text, str) else text.decode())
        read = {name: read_json(value.encode()) for name, value in members.items()}
        line = msgspec.convert({name: read[name] for name in ("receivedAt", "tick") if name in read}, _Line)
        if "batch" in members:
            line.batch = msgspec.Raw(members["batch"].encode())
    except (ValueError, RecursionError) as error:
        raise Invalid("log_line_invalid", f"not a line of a log: {error}", place=place, advice=_ADVICE) from None
    return line


_MARKS = re.compile(r'"(?:[^"\\]|\\.)*+"?|[\[\]{},:]', re.DOTALL)


def _members(text: str) -> dict[str, str]:
    """The members of a JSON object, unread, by name; raises ValueError where it is none."""
    found: dict[str, str] = {}
    depth = begin = 0
    name: str | None = None
    for mark in _MARKS.finditer(text):
        sign = mark[0]
        if depth == 1 and sign in {",", "}"}:
            if name is not None:
                found[name] = text[begin : mark.start()]
            elif sign == "," or found or text[begin : mark.start()].strip():
                raise ValueError("a member without a name")
            name, begin = None, mark.end()
        elif depth == 1 and sign == ":" and name is None:
            name, begin = msgspec.json.decode(text[begin : mark.start()], type=str), mark.end()
        if sign in {"{", "["}:
            if depth == 0 and (sign == "[" or begin or text[: mark.start()].strip()):
                raise ValueError("not a JSON object")
            depth += 1
            begin = mark.end() if depth == 1 else begin
        elif sign in {"}", "]"}:
            depth -= 1
    if depth or not begin or text[begin:].strip():
        raise ValueError("not a JSON object")
    return found


def _instant(text: str, name: str, place: str) -> int:
    found = parse_instant(text)
    if found is None:
        raise Invalid("log_line_invalid", f"{name} is not an RFC 3339 instant with an offset", place=place)
    return found


def _group_items(items: Iterable[Item], sizes: Iterable[int]) -> Iterator[list[Item]]:
    wanted = chain(sizes, repeat(1))
    size, held = max(next(wanted), 1), list[Item]()
    for item in items:
        if isinstance(item, Tick):
            if held:
                yield held
                size, held = max(next(wanted), 1), []
            yield [item]
            continue
        held.append(item)
        if len(held) >= size:
            yield held
            size, held = max(next(wanted), 1), []
    if held:
        yield held


# --- the output -------------------------------------------------------------------------------------------------------


def _ack(answer: BatchAck | Refused) -> Object:
    """The body of the answer, or the code of a refused envelope."""
    if isinstance(answer, Refused):
        return {"code": answer.code.value}
    return msgspec.json.decode(encode_ack(answer))


def output_of(db: Database, answers: Sequence[BatchAck | Refused]) -> ReplayOutput:
    """What a store holds, beside the answers that were given: of a replay, or of a live store to compare with one."""
    billable: list[tuple[int, str, Object]] = []
    attribution: list[tuple[int, str, Object]] = []
    audits: list[tuple[int, str, Object]] = []
    records: list[tuple[int, str, int, str, Object]] = []
    for archived in every_decision(db):
        decision, statuses = archived.decision, archived.statuses
        audits.append((decision.at, _audit_order(found := audit(decision)), {**found, "count": archived.count}))
        if (fact := billable_fact(decision)) is not None:
            billable.append((decision.at, fact["billingKey"], fact))
        if (fact := attribution_fact(decision)) is not None:
            attribution.append((decision.at, fact["attributionKey"], {**fact, "recordStatus": statuses.attribution}))
        records += [_record_order(decision.at, record) for record in archived.records]
    return ReplayOutput(
        acks=[_ack(answer) for answer in answers],
        billable=_order_objects(billable),
        attribution=_order_objects(attribution),
        audits=_order_objects(audits),
        records=_order_objects(records),
        closures=[closure_line(closure) for closure in sorted(every_closure(db), key=lambda c: c.closure)],
    )


def _audit_order(found: Object) -> str:
    return f"{found['sourceEventId']}|{found['decisionAction']}|{found['decisionReasonCode']}"


def _record_order(at: int, record: Record) -> tuple[int, str, int, str, Object]:
    return at, record.group, RANK[record.type], record.key, record.body


def _order_objects(found: Sequence[tuple[Any, ...]]) -> list[Object]:
    """Objects by what stands before them; no two have the same keys."""
    return [msgspec.to_builtins(entry[-1]) for entry in sorted(found, key=lambda entry: entry[:-1])]
