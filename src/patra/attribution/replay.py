"""A log of batches and ticks goes in; every answer, fact, audit, record and closure that follows from it comes out.

Each line is `{"receivedAt": …, "batch": <any JSON>}` or `{"tick": …}`. Lines are decided in the order of the file. The
instant of a line, of a well-formed batch as of a tick, first applies every deadline at or before it, each as of its own
(A1); what was applied stays, also where a later line has an earlier instant. The built-in archive takes records at
once. The order of the output: answers as the lines of batches; closures by key; everything else by its instant, then by
its key. None of it depends on a clock, on the database, or on how batches are grouped into commits.
"""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, repeat
from pathlib import Path
from typing import Any

import msgspec

from patra.attribution.ack import BatchAck, encode_ack
from patra.attribution.batch import Item, Tick, instant, read_batch
from patra.attribution.commit import EVERYTHING, commit
from patra.attribution.decide import Answer, Ticked
from patra.attribution.facts import attribution_fact, audit, billable_fact, closure_line
from patra.attribution.intake import Refused, read_json
from patra.attribution.keystore import Keys
from patra.attribution.reading import every_closure, every_decision, something_due
from patra.attribution.records import RANK, Record
from patra.attribution.store import due_closures
from patra.kernel.clock import parse_instant
from patra.kernel.db import Database
from patra.kernel.errors import Invalid

BITE = 2000
"""Overdue closures that one commit takes before the batches at hand."""

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


def replay(lines: Iterable[Line], db: Database, *, group: Iterable[int] | None = None) -> ReplayOutput:
    """Decide a log on an empty, migrated store; `group` says how many consecutive batches go into each commit.

    A tick ends a commit; batches beyond the last group are committed one by one.
    """
    answers: list[Answer] = []
    keys = Keys()
    for items in _grouped(_items(lines), group or ()):
        for some in _bounded(db, items):
            first = instant(some[0])
            while db.read(lambda tx, first=first: something_due(tx, first)):
                commit(db, [Tick(at=first)], due=BITE, keys=keys)
            answers += commit(db, some, due=EVERYTHING, keys=keys)
    return _output(db, [_ack(answer) for answer in answers if not isinstance(answer, Ticked)])


def _bounded(db: Database, items: list[Item]) -> list[list[Item]]:
    """The items of a commit; one by one where a jump in time among them brings more deadlines than a commit takes."""
    latest = max(map(instant, items))
    if len(items) > 1 and len(db.read(lambda tx: due_closures(tx, latest, BITE + 1))) > BITE:
        return [[item] for item in items]
    return [items]


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


_decode = msgspec.json.Decoder(_Line).decode


def check_log(lines: Iterable[Line]) -> None:
    """Refuse a log with a line that cannot be read, before anything is decided."""
    for text, place in _texts(lines):
        _line(text, place)


def _items(lines: Iterable[Line]) -> Iterator[Item]:
    for text, place in _texts(lines):
        at, batch = _line(text, place)
        yield Tick(at=at) if batch is None else read_batch(batch, at)


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
        raise Invalid("log_line_invalid", f"{name} is no RFC 3339 instant with an offset", place=place)
    return found


def _grouped(items: Iterable[Item], sizes: Iterable[int]) -> Iterator[list[Item]]:
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


def _output(db: Database, acks: list[Object]) -> ReplayOutput:
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
        acks=acks,
        billable=_ordered(billable),
        attribution=_ordered(attribution),
        audits=_ordered(audits),
        records=_ordered(records),
        closures=[closure_line(closure) for closure in sorted(every_closure(db), key=lambda c: c.closure)],
    )


def _audit_order(found: Object) -> str:
    return f"{found['sourceEventId']}|{found['decisionAction']}|{found['decisionReasonCode']}"


def _record_order(at: int, record: Record) -> tuple[int, str, int, str, Object]:
    return at, record.group, RANK[record.type], record.key, record.body


def _ordered(found: Sequence[tuple[Any, ...]]) -> list[Object]:
    """Objects by what stands before them; no two have the same keys."""
    return [msgspec.to_builtins(entry[-1]) for entry in sorted(found, key=lambda entry: entry[:-1])]
