"""The answer of a story in a sentence or two, made from its entries and what is pending: billed, landed, handled, dead.

Pure. Each engine says at most one sentence; the engine of the key speaks first.
"""

from collections import Counter
from collections.abc import Callable, Collection, Sequence

from patra.app.story.model import Engine, Entry, Pending
from patra.kernel.clock import format_instant

UNBILLED_STATES = frozenset({"conflicted", "rejected"})
RESENT_CODES = frozenset({"f_dedup_inflight_duplicate", "f_dedup_committed_duplicate"})
ENDED_STATES = {"SUCCEEDED": "is done", "FAILED": "failed", "PARTIAL": "is incomplete", "CANCELLED": "was cancelled"}
WORK_KINDS = frozenset({"ingest.plan", "ingest.slice", "ingest.task", "ingest.run", "ingest.batch"})
"""Kinds of key whose story is that of the work; of any other, that of the record."""
MAX_NAMED = 3


def verdict(kind: str, entries: Sequence[Entry], pending: Sequence[Pending]) -> str:
    """What became of a key of some kind; empty where the entries say nothing of it."""
    first = kind.partition(".")[0]
    engines = sorted(Engine, key=lambda engine: engine.value != first)
    said = [
        _SENTENCES[engine](kind, [one for one in entries if one.engine is engine], _of(pending, engine))
        for engine in engines
    ]
    return " ".join(sentence for sentence in said if sentence)


def _of(pending: Sequence[Pending], engine: Engine) -> list[Pending]:
    return [one for one in pending if one.engine is engine]


def _attribution(_: str, entries: Sequence[Entry], pending: Sequence[Pending]) -> str:
    billed = [one for one in entries if one.what == "billable_fact_recorded"]
    good = [one for one in billed if one.state not in UNBILLED_STATES | {"superseded"}]
    if good:
        waits = sum(one.state == "new" for one in good)
        return f"Billed {_times(len(good))}{f', {waits} of it not yet archived' if waits else ''}."
    if billed:
        return f"Not billed: its record is {billed[-1].state}{_because(billed[-1])}."
    due = min((one.due for one in pending if one.due is not None), default=None)
    if due is not None:
        return f"Not billed yet: open until {format_instant(due)}."
    decided = [one for one in entries if one.what in {"event_decided", "batch_refused"}]
    if not decided:
        return ""
    codes = Counter(one.code for one in decided)
    if set(codes) == {"f_accepted"}:
        return "Counted, nothing to bill."
    others = [one for one in decided if one.code != "f_accepted"]
    telling = [one for one in others if one.code not in RESENT_CODES] or others  # sending it again changes nothing
    return f"Not billed{_because(telling[-1])}."


def _ingest(kind: str, entries: Sequence[Entry], pending: Sequence[Pending]) -> str:
    whats = Counter(one.what for one in entries)
    if pending:
        return f"Ingest: {pending[0].text}"
    records = [one for one in entries if one.what in {"record_changed", "record_created"}]
    if whats["record_quarantined"] and not records:
        return "Set aside in the quarantine."
    if records and kind not in WORK_KINDS:
        sources = sorted({str(one.detail["provenance_code"]) for one in records if "provenance_code" in one.detail})
        return (
            f"Stored from {len(sources)} sources: {', '.join(sources)}."
            if len(sources) > 1
            else "The record is stored."
        )
    tasks = [one for one in entries if one.what in {"task_created", "run_started", "batch_landed", "batch_ended"}]
    for name, text in (
        ("task_created", "task"),
        ("run_started", "run"),
        ("batch_ended", "batch"),
        ("batch_landed", "batch"),
    ):
        ended = [one for one in tasks if one.what == name]
        if ended:
            return _states(text, ended)
    return ""


def _states(noun: str, ended: Sequence[Entry]) -> str:
    counts = Counter(one.state for one in ended)
    last = next((one for one in reversed(ended) if one.state == "FAILED"), ended[-1])
    if len(ended) == 1:
        why = _because(last) if last.state == "FAILED" else ""
        return f"The {noun} {ENDED_STATES.get(last.state, f'is {last.state}')}{why}."
    return f"{len(ended)} {noun}s: " + ", ".join(f"{count} {state}" for state, count in counts.most_common()) + "."


def _bus(_: str, entries: Sequence[Entry], pending: Sequence[Pending]) -> str:
    handled = {one.detail.get("group") for one in entries if one.what == "event_handled"}
    dead = [one for one in entries if one.what == "dead_letter_written" and one.state in {"open", "replaying"}]
    waiting = sum(one.what == "delivery" for one in pending)
    refused = next((one for one in entries if one.what == "publish_refused"), None)
    parts = [f"handled by {_groups(handled)}"] if handled else []
    if waiting:
        parts.append(f"{waiting} {'delivery waits' if waiting == 1 else 'deliveries wait'}")
    if dead:
        parts.append(f"dead in {_groups({one.detail.get('group') for one in dead})}{_because(dead[-1])}")
    if not parts and refused is not None:
        parts.append(f"publishing was refused{_because(refused)}")
    return f"On the bus: {'; '.join(parts)}." if parts else ""


def _studio(_: str, entries: Sequence[Entry], pending: Sequence[Pending]) -> str:
    if any(one.what == "film_published" for one in entries):
        return "The film is published."
    moves = [one for one in entries if one.what == "run_moved"]
    if moves and moves[-1].state in {"failed", "cancelled"}:
        return f"The run {'failed' if moves[-1].state == 'failed' else 'was cancelled'}{_because(moves[-1])}."
    return f"The film is under way: {pending[0].text}" if pending else ""


def _because(entry: Entry) -> str:
    text = entry.cause or entry.code_text
    return f": {text} ({entry.code})" if entry.code and text else f" ({entry.code})" if entry.code else ""


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times, each under a key of its own"


def _groups(names: Collection[object]) -> str:
    known = sorted(str(name) for name in names)
    more = f" and {len(known) - MAX_NAMED} more" if len(known) > MAX_NAMED else ""
    return ", ".join(known[:MAX_NAMED]) + more


_SENTENCES: dict[Engine, Callable[[str, Sequence[Entry], Sequence[Pending]], str]] = {
    Engine.ATTRIBUTION: _attribution,
    Engine.INGEST: _ingest,
    Engine.BUS: _bus,
    Engine.STUDIO: _studio,
}
