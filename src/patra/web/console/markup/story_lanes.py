"""The lanes of a story's axis: one for each thing that has a state or acts, with its states as bars.

Pure. An engine with more such things than can be read has one lane without bars.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from patra.web.console.markup.formats import instant, short_key
from patra.web.console.markup.tones import tone_of

Shown = Mapping[str, Any]
MAX_LANES_OF_ENGINE = 8
MAX_NAME_LENGTH = 18
NAMES = {"attribution": "Attribution", "ingest": "Ingest", "bus": "Bus", "studio": "Studio"}
PEOPLE = "People"
_LANES = {
    "batch_received": "Intake",
    "batch_refused": "Intake",
    "event_decided": "Intake",
    "closure_opened": "Closure",
    "decision_audit_recorded": "Facts",
    "billable_fact_recorded": "Facts",
    "attribution_fact_recorded": "Facts",
    "record_moved": "Facts",
    "period_closed": "Statement",
    "trigger_received": "Plan",
    "plan_created": "Plan",
    "plan_moved": "Plan",
    "slice_cut": "Plan",
    "slice_moved": "Plan",
    "cursor_advanced": "Cursor",
    "cursor_kept": "Cursor",
    "cursor_state": "Cursor",
    "record_created": "Record",
    "record_changed": "Record",
    "record_quarantined": "Record",
    "event_published": "Events",
    "publish_refused": "Events",
    "task_submitted": "Film",
    "run_moved": "Film",
    "film_published": "Film",
    "job_state": "Jobs",
    "artifact_made": "Artifacts",
    "run_observed": "Observed",
}
"""The lane of an entry by what it says; tasks, closures and groups have lanes of their own."""
_ORDER = (
    "Intake", "Closure", "Facts", "Statement", "Plan", "Task", "Record", "Cursor", "Events", "Group",
    "Film", "Jobs", "Artifacts", "Observed", *NAMES.values(),
)  # fmt: skip
_ENDED = frozenset(
    {"SUCCEEDED", "PARTIAL", "FAILED", "CANCELLED", "completed", "failed", "cancelled", "replayed", "discarded"}
)
_ENDS_CLOSURE = {"impression": "closed_success", "failure": "closed_failure"}


class Bar(NamedTuple):
    """A state from one instant to another; `anchor` is that of the entry with which it began."""

    begin: int
    end: int
    state: str
    tone: str
    anchor: str


class _Thing(NamedTuple):
    kind: str
    key: str


class Lane(NamedTuple):
    name: str
    entries: list[Shown]
    bars: list[Bar]


def lanes_of(entries: Sequence[Shown]) -> list[Lane]:
    """The lanes engine by engine, in the order in which data passes; people stand last."""
    last = max((_at(entry) for entry in entries), default=0)
    found: list[Lane] = []
    for engine, name in NAMES.items():
        of_engine = [one for one in entries if one["engine"] == engine and one["shape"] != "act"]
        things: dict[_Thing, list[Shown]] = {}
        for one in of_engine:
            things.setdefault(_thing(one), []).append(one)
        if len(things) > MAX_LANES_OF_ENGINE:
            found.append(Lane(name, of_engine, []))
            continue
        ordered = sorted(things.items(), key=lambda item: _ORDER.index(item[0].kind))
        kinds = Counter(thing.kind for thing in things)
        found += [Lane(_name(thing, some, kinds), some, _bars(some, of_engine, last)) for thing, some in ordered]
    if acts := [one for one in entries if one["shape"] == "act"]:
        found.append(Lane(PEOPLE, acts, []))
    return found


def _thing(entry: Shown) -> _Thing:
    """What an entry is about. The runs and batches of a task are shown with it."""
    what, keys = entry["what"], _keys(entry)
    if entry["engine"] == "bus" and (group := entry["detail"].get("group")):
        return _Thing("Group", str(group))
    if entry["engine"] == "ingest" and what.startswith(("task_", "run_", "batch_")):
        return _Thing("Task", keys.get("ingest.task") or keys.get("ingest.run", "").partition(".r")[0])
    if what == "closure_opened":
        return _Thing("Closure", keys.get("attribution.closureKey", ""))
    return _Thing(_LANES.get(what, NAMES[entry["engine"]]), "")


def _name(thing: _Thing, entries: Sequence[Shown], kinds: Mapping[str, int]) -> str:
    """What is written beside a lane: the only closure or task needs no key, one of several tasks has its source."""
    if thing.kind == "Group":
        return short_key(thing.key, MAX_NAME_LENGTH)
    if not thing.key or kinds[thing.kind] == 1:
        return thing.kind
    source = next((str(name) for one in entries if (name := one["detail"].get("provenance_code"))), "")
    text = f"{source} {thing.key.rpartition('.')[2]}" if thing.kind == "Task" else thing.key
    return short_key(text.strip(), MAX_NAME_LENGTH)


def _bars(entries: Sequence[Shown], of_engine: Sequence[Shown], last: int) -> list[Bar]:
    """The states of a lane's thing, one after the other."""
    closure = next((one for one in entries if one["what"] == "closure_opened"), None)
    if closure is not None:
        return _between(_moves_of_closure(closure, of_engine), "closure", last)
    machine, moves = "", list[tuple[int, str, str]]()
    for entry in entries:
        match entry["engine"], entry["what"]:
            case "ingest", "task_moved":
                machine = "task"
            case "studio", "run_moved":
                machine = "film_run"
            case "bus", "dead_letter_written":
                machine = "dead_letter"
                moves.append((_at(entry), "open", entry["anchor"]))
                continue
            case "bus", what if what.startswith("dead_letter_"):
                pass
            case _:
                continue
        moves.append((_at(entry), entry["state"], entry["anchor"]))
    return _between(moves, machine, last)


def _moves_of_closure(closure: Shown, of_engine: Sequence[Shown]) -> list[tuple[int, str, str]]:
    """Opened, ended by a terminal event, and perhaps once more: an impression takes the place of a failure."""
    key = _keys(closure).get("attribution.closureKey", "")
    moves = [(_at(closure), "open", closure["anchor"])]
    for entry in of_engine:
        fact: dict[str, Any] = entry["detail"].get("fact") or {}
        ended = _ENDS_CLOSURE.get(str(fact.get("eventType")))
        if entry["what"] != "attribution_fact_recorded" or ended is None or moves[-1][1] == "closed_success":
            continue
        if f"{fact.get('responseReferenceOrNA')}|{fact.get('renderAttemptIdOrNA')}" == key:
            moves.append((_at(entry), ended, entry["anchor"]))
    return moves


def _between(moves: Sequence[tuple[int, str, str]], machine: str, last: int) -> list[Bar]:
    """Each state until the next one; the last until the end of the axis, unless the thing has ended with it."""
    ends = [*(at for at, _, _ in moves[1:]), last]
    return [
        Bar(begin, end, state, tone_of(machine, state).tone, anchor)
        for (begin, state, anchor), end in zip(moves, ends, strict=False)
        if end > begin and state not in _ENDED
    ]


def _keys(entry: Shown) -> dict[str, str]:
    """The first key of each kind that an entry is related to."""
    found: dict[str, str] = {}
    for one in entry["related"]:
        found.setdefault(one["kind"], one["key"])
    return found


def _at(entry: Shown) -> int:
    return instant(entry["at"]) or 0
