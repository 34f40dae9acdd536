"""Bus: who sends what to whom, how far behind each group is, what failed permanently, and what is frozen."""

from typing import Any, cast

from markupsafe import Markup

from patra.bus.consuming.dead_letter import DeadLetterState
from patra.bus.store.dead_letters import MAX_COUNTED_LETTERS
from patra.web.console.calls import Refusal
from patra.web.console.markup.drawings import Part, bars, shares
from patra.web.console.markup.flow_drawing import Stream, flow_drawing
from patra.web.console.markup.formats import clock_text, instant, link, number_text, plural, span_text, time_tag
from patra.web.console.markup.json_view import difference, json_lines, line_count
from patra.web.console.markup.schema_diff import FieldDifference, differences
from patra.web.console.markup.time_brush import time_brush
from patra.web.console.pages.choice import choice
from patra.web.console.pages.time_span import NO_PLACE, span_values, time_span
from patra.web.console.reads.attention import dead_letters_waiting
from patra.web.console.view import PAGE_SIZE, Page, Route, View
from patra.web.problem import Problem

LETTER_STATES = ("open", "replaying", "replayed", "discarded", "all")
MAX_DRAWN_TYPES = 24
OVER_TIME_PARTS = 60
MAX_COMPARED_LINES = 1_000
TEN = 10
NEAR_SHARE = 0.5
"""Of the dead letters with which a type freezes: with more of them it is said in a warning's colour."""
ACT_TONES = {"running": ("run", "running"), "done": ("ok", "done"), "stopped": ("off", "stopped")}


def flow(view: View) -> Page:
    """Producer, type, groups: drawn for what flows or fails, and as a table that reads at forty types."""
    found, health = view.ask("/bus/flow"), view.ask("/bus/health")
    groups = {group["name"]: {**_with_lag(group, view.now), "tone": _group_tone(group)} for group in found["groups"]}
    frozen = {one["event_type"] for one in health["frozen"]}
    rows: list[dict[str, Any]] = [
        {
            **kind,
            "frozen": kind["type"] in frozen,
            "dead": health["dead_letters"].get(kind["type"], 0),
            "groups": [groups[name] for name in kind["readers"]],
            "rate": _rate_text(kind),
        }
        for kind in found["types"]
    ]
    rows.sort(key=lambda row: (-row["dead"], not row["frozen"], -row["events"], not row["readers"], row["type"]))
    flowing = [row for row in rows if row["events"] or row["dead"] or row["frozen"]][:MAX_DRAWN_TYPES]
    busy = sum(1 for row in rows if row["events"])
    readers = plural(len(groups), "group reads", "groups read") if groups else "no group reads"
    return Page(
        title=f"{plural(busy, 'type flows', 'types flow') if busy else 'No event flows'} now, {readers}",
        template="bus/flow.html",
        values={
            "rows": rows,
            "troubles": health["troubles"],
            "drawing": flow_drawing([_stream(row) for row in flowing]) if flowing else "",
            "drawn": len(flowing),
            "minutes": found["window_s"] // 60,
        },
    )


def _stream(row: dict[str, Any]) -> Stream:
    return Stream(
        producer=row["producer"],
        type=row["type"],
        href=link(f"/bus/type/{row['type']}"),
        per_minute=float(row["per_minute"]),
        rate_text=row["rate"],
        tone="hold" if row["frozen"] else "bad" if row["dead"] else "",
        readers=tuple((group["name"], group["tone"]) for group in row["groups"]),
    )


def _rate_text(kind: dict[str, Any]) -> str:
    if not kind["events"]:
        return "0"
    rate = float(kind["per_minute"])
    return f"{'over ' if kind['more'] else ''}{rate:,.0f}" if rate >= TEN else f"{rate:.1f}"


def _group_tone(group: dict[str, Any]) -> str:
    if group["state"] == "paused":
        return "hold"
    return "bad" if group["dead"] else "warn" if group["failing"] else "done"


def groups(view: View) -> Page:
    found = [_with_lag(group, view.now) for group in view.ask("/bus/groups")["groups"]]
    found.sort(key=lambda group: (-group["dead"], group["oldest"] or "9", group["name"]))
    waiting = sum(group["waiting"] for group in found)
    events = plural(waiting, "event waits", "events wait") if waiting else "No event waits"
    title = f"{events} for {plural(len(found), 'group')}" if found else "No group has joined"
    return Page(title=title, template="bus/groups.html", values={"groups": found})


def group(view: View) -> Page:
    """One group: how far behind, what fails and when it is tried again, what failed for good, what it reads."""
    name = view.path["group"]
    found = view.ask("/bus/groups/{group}", {"group": name})
    one = _with_lag(found["group"], view.now)
    causes = view.part("dead letters", lambda: _causes(view, "open", {"group": name})) if one["dead"] else []
    return Page(
        title=name,
        template="bus/group.html",
        values={"group": one, "failing": found["failing"], "causes": causes or [], "answer": group_answer(one)},
    )


def group_answer(one: dict[str, Any]) -> str:
    """How a group fares, in a sentence."""
    waiting = plural(one["waiting"], "event waits", "events wait")
    if one["state"] == "paused":
        return f"It is paused: {waiting} until it is resumed, nothing is lost."
    if one["failing"]:
        return f"{plural(one['failing'], 'event fails', 'events fail')} and will be tried again; {waiting}."
    if one["dead"]:
        count = plural(one["dead"], "event has failed", "events have failed")
        return (
            f"{count} for good; it keeps up with the others." if not one["waiting"] else f"{count} for good; {waiting}."
        )
    return (
        f"{waiting}, the oldest for {one['lag']}." if one["waiting"] else "It keeps up: nothing waits, nothing fails."
    )


def types(view: View) -> Page:
    found = view.ask("/bus/catalogue")["types"]
    frozen = {one["event_type"]: one for one in view.ask("/bus/health")["frozen"]}
    return Page(
        title=plural(len(found), "event type"), template="bus/types.html", values={"types": found, "frozen": frozen}
    )


def event_type(view: View) -> Page:
    name = view.path["type"]
    found = next((kind for kind in view.ask("/bus/catalogue")["types"] if kind["type"] == name), None)
    if found is None:
        raise Refusal(Problem(404, "b_type_unknown", "There is no such event type", name))
    health = view.ask("/bus/health")
    document = view.ask("/bus/catalogue/asyncapi")
    key = name.replace(".", "_")
    messages = document["channels"][key]["messages"]
    contracts = [document["components"]["messages"][message] for message in messages]
    return Page(
        title=name,
        template="bus/type.html",
        values={
            "kind": found,
            "description": document["channels"][key].get("description", ""),
            "frozen": next((one for one in health["frozen"] if one["event_type"] == name), None),
            "dead": health["dead_letters"].get(name, 0),
            "limit": health["freezes_at"].get(name),
            "readers": [g for g in view.ask("/bus/groups")["groups"] if name in g["subscriptions"]],
            "contracts": [contract | {"fields": contract_fields(contract)} for contract in contracts],
        },
    )


def contract_fields(contract: dict[str, Any]) -> list[FieldDifference]:
    """The fields of a payload as the contract has them, each with its value in the first example."""
    schema: Any = contract
    for name in ("payload", "schema", "properties", "payload"):
        schema = cast("dict[str, Any]", schema).get(name) if isinstance(schema, dict) else None
    example: Any = next(iter(contract.get("examples", ())), None)
    for name in ("payload", "payload"):
        example = cast("dict[str, Any]", example).get(name) if isinstance(example, dict) else None
    return differences(cast("dict[str, Any]", schema), example, []) if isinstance(schema, dict) else []


def dead_letters(view: View) -> Page:
    filters = view.filters("group", "type", "error_code")
    state = view.filter_value("state", "open")
    span = time_span(view)
    asked = {**filters, "state": state, **span.as_query()}
    page = view.ask("/bus/dead-letters", **asked, before=view.filter_value("before"), limit=PAGE_SIZE)
    letters = page["dead_letters"]
    waiting = dead_letters_waiting(view.calls)
    replaying = waiting[DeadLetterState.REPLAYING]
    ever = bool(letters) or bool(view.ask("/bus/dead-letters", **filters, state="all", limit=1)["dead_letters"])
    open_groups = sorted({letter["group"] for letter in letters if letter["state"] == DeadLetterState.OPEN})
    return Page(
        title=letters_title(waiting[DeadLetterState.OPEN], replaying),
        template="bus/dead_letters.html",
        values={
            "letters": letters,
            "causes": _causes(view, state, filters),
            "backlogs": view.part("freezes", lambda: _backlogs(view)) or {},
            "state": state,
            "states": LETTER_STATES,
            "filters": filters,
            "ever": ever,
            "when": view.part("times of failure", lambda: _over_time(view, asked)),
            **span_values(view, span),
            "span_kept": {**filters, "state": state},
            **choice(view, open_groups, "bus.replay", "bus.discard"),
            "replaying": replaying,
            "older": view.here(before=page["next"]) if page["next"] else "",
        },
    )


def _over_time(view: View, asked: dict[str, str]) -> Markup:
    """When the dead letters of the list failed, as a drawing from which a span is taken."""
    found = view.ask("/bus/dead-letters/over-time", **asked, parts=OVER_TIME_PARTS)
    begin, end, counts = instant(found["since"]) or 0, instant(found["until"]) or 0, found["counts"]
    first, last = (clock_text(at, view.now) for at in (begin, end))
    ends = (time_tag(at, view.now) for at in (begin, end))
    drawing = bars([float(n) for n in counts], f"dead letters by their last failure, {first} to {last} UTC", "bad")
    href = view.here(**NO_PLACE, **{"from": "", "to": ""})
    axis = Markup('<p class="axis"><span>{}</span><span>{}</span></p>').format(*ends)
    said = f"Of these very many, the latest {number_text(MAX_COUNTED_LETTERS)} are counted."
    note = Markup('<p class="dim f13">{}</p>').format(said) if found["more"] else Markup("")
    return time_brush(drawing, begin, end, len(counts), href, "the dead letters") + axis + note


def letters_title(open_count: int, replaying: int) -> str:
    """How many wait for a person, and how many are on their way: both are in the backlog of the groups."""
    waiting = _count_phrase(open_count, "dead letter is", "dead letters are") if open_count else "No dead letter is"
    on_their_way = f", {_count_phrase(replaying, 'is', 'are')} being replayed" if replaying else ""
    return f"{waiting} open{on_their_way}"


def _count_phrase(count: int, one: str, many: str) -> str:
    """`4 are`; where counting ended at its bound, `100,000+ are`."""
    return plural(count, one, many) if count < MAX_COUNTED_LETTERS else f"{number_text(count)}+ {many}"


def dead_letter(view: View) -> Page:
    path = {"group": view.path["group"], "event_id": view.path["event_id"]}
    found = view.ask("/bus/dead-letters/{group}/{event_id}", path)
    letter, violations = found["dead_letter"], found["violations"]
    tab = view.filter_value("tab", "contract" if violations else "handled")
    timeline = view.ask("/bus/timeline/{key}", {"key": letter["event_id"]})["entries"]
    return Page(
        title=f"Dead letter of {letter['group']}",
        template="bus/dead_letter.html",
        values={
            "letter": letter,
            "violations": violations,
            "fields": _against_contract(view, letter, violations),
            "lines": _mark_payload(letter["envelope"].get("payload"), violations),
            "tab": tab,
            "beside": view.part("last handled", lambda: _beside(view, path)) if tab == "handled" else None,
            "timeline": timeline,
            "searched": letter["event_id"],
        },
    )


def _beside(view: View, path: dict[str, str]) -> dict[str, Any]:
    """Its payload beside that of the last handled event, line by line, unless they are too long for that."""
    found = view.ask("/bus/dead-letters/{group}/{event_id}/beside", path)
    last = found["last_handled"]
    if last is None or max(line_count(found["payload"]), line_count(last["payload"])) > MAX_COMPARED_LINES:
        return found | {"lines": []}
    return found | {"lines": difference(found["payload"], last["payload"])}


def acts(view: View) -> Page:
    page = view.ask("/bus/acts", before=view.filter_value("before"), limit=PAGE_SIZE)
    older = view.here(before=page["next"]) if page["next"] else ""
    values = {"acts": page["acts"], "tones": ACT_TONES, "older": older}
    return Page(title="Acts on many", template="bus/acts.html", values=values)


def act(view: View) -> Page:
    found = view.ask("/bus/acts/{act_id}", {"act_id": view.path["act"]})
    failed = found["letters"].get("open", 0) if found["act"] == "replay" else 0
    handled = found["moved"] - failed
    drawing = shares(
        [
            Part(count=handled, tone="done", label=f"{handled} taken"),
            Part(count=failed, tone="bad", label=f"{failed} failed again"),
            Part(count=found["refused"], tone="off", label=f"{found['refused']} not open any more"),
            Part(count=found["left"], tone="wait", label=f"{found['left']} to go"),
        ]
    )
    verb = {"replay": "Replay of", "discard": "Discard of"}[found["act"]]
    return Page(
        title=f"{verb} {plural(found['total'], 'dead letter')} of {found['group']}",
        template="bus/act.html",
        values={"found": found, "failed": failed, "drawing": drawing, "tone": ACT_TONES[found["state"]]},
    )


def refusals(view: View) -> Page:
    before = view.filter_value("before")
    page = view.ask("/bus/refusals", code=view.filter_value("code"), before=before, limit=PAGE_SIZE)
    count = sum(one["count"] for one in page["refusals"])
    found = "No publish was refused" if not count else f"{plural(count, 'publish was', 'publishes were')} refused"
    return Page(
        title="Refusals" if before or page["next"] or view.filters("code") else found,
        template="bus/refusals.html",
        values={
            "rows": page["refusals"],
            "filters": view.filters("code"),
            "older": view.here(before=page["next"]) if page["next"] else "",
            "newest": view.here(before="") if before else "",
        },
    )


def webhooks(view: View) -> Page:
    hooks = view.ask("/bus/webhooks")["webhooks"]
    groups = {group["name"]: _with_lag(group, view.now) for group in view.ask("/bus/groups")["groups"]}
    return Page(
        title="Webhooks",
        template="bus/webhooks.html",
        values={"hooks": [{**hook, "group": groups.get(hook["group"])} for hook in hooks]},
    )


def _with_lag(group: dict[str, Any], now: int) -> dict[str, Any]:
    oldest = instant(group["oldest"])
    return {**group, "lag": span_text(now - oldest) if oldest is not None else ""}


def _causes(view: View, state: str, filters: dict[str, str]) -> list[dict[str, Any]]:
    """Dead letters grouped by group, type and code; of all states there would be too many."""
    if state == "all":
        return []
    return [
        {
            **one,
            "type": one["event_type"],
            "code": one["error_code"],
            "count": one["letters"],
            "drawing": bars(one["hours"], f"{plural(sum(one['hours']), 'failure')} in the last 24 hours", "bad", 24),
        }
        for one in view.ask("/bus/dead-letters/causes", **filters, state=state)["causes"]
    ]


def _backlogs(view: View) -> dict[str, dict[str, Any]]:
    """Of types with dead letters: how many they have, with how many they freeze, and whether that is near."""
    health = view.ask("/bus/health")
    limits: dict[str, int] = health["freezes_at"]
    return {
        name: {"count": count, "limit": limits[name], "is_near": count > limits[name] * NEAR_SHARE}
        for name, count in health["dead_letters"].items()
        if name in limits
    }


def _against_contract(view: View, letter: dict[str, Any], broken: list[dict[str, Any]]) -> list[FieldDifference]:
    """The payload field by field against the schema of its version; empty where the catalogue has none."""
    document = view.ask("/bus/catalogue/asyncapi")
    major = str(letter["event_version"]).partition(".")[0]
    message = document["components"]["messages"].get(f"{letter['event_type'].replace('.', '_')}_v{major}")
    if message is None:
        return []
    schema = message["payload"]["schema"]["properties"]["payload"]
    inside = [{**one, "place": str(one["place"]).removeprefix("/payload")} for one in broken]
    return differences(schema, letter["envelope"].get("payload"), inside)


def _mark_payload(payload: Any, violations: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The payload line by line, each violation under the line of its field."""
    lines: list[dict[str, Any]] = [{"text": text, "violations": []} for text in json_lines(payload)]
    for violation in violations:
        place = str(violation.get("place") or violation.get("path") or "")
        name = f'"{place.rpartition("/")[2]}":'
        at = next((line for line in lines if line["text"].lstrip().startswith(name)), lines[0])
        at["violations"].append({**violation, "place": place})
    return lines


ROUTES = (
    Route(path="/bus", handler=flow, nav="/bus"),
    Route(path="/bus/groups", handler=groups, nav="/bus/groups"),
    Route(path="/bus/group/{group}", handler=group, nav="/bus/groups"),
    Route(path="/bus/types", handler=types, nav="/bus/types"),
    Route(path="/bus/type/{type}", handler=event_type, nav="/bus/types"),
    Route(path="/bus/dead-letters", handler=dead_letters, nav="/bus/dead-letters"),
    Route(path="/bus/dead-letter/{group}/{event_id}", handler=dead_letter, nav="/bus/dead-letters"),
    Route(path="/bus/acts", handler=acts, nav="/bus/dead-letters"),
    Route(path="/bus/act/{act}", handler=act, nav="/bus/dead-letters"),
    Route(path="/bus/refusals", handler=refusals, nav="/bus/refusals"),
    Route(path="/bus/webhooks", handler=webhooks, nav="/bus/webhooks"),
)
