"""What happened to a key, across all engines: found, ambiguous, or unknown with where was looked."""

import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from patra.web.console.markup.formats import instant, link, plural, span_text
from patra.web.console.markup.story_axis import axis
from patra.web.console.markup.story_lanes import lanes_of
from patra.web.console.view import Page, Route, View

SHAPES = {
    "in": ("In", "in"),
    "rule": ("Rule", "rule"),
    "written": ("Written", "write"),
    "out": ("Out", "out"),
    "act": ("Act", "person"),
}
EXAMPLES = {
    "attribution": (
        ("batchId, eventId, or both", "shop-b004/e-27"),
        ("closureKey, billingKey", "resp-7|ra-1"),
        ("sourceEventId, factId, recordKey", "fe_…, bf_…, 64 hex digits"),
        ("traceKey, requestKey, opportunityKey, responseReference", "as the SDK sent it"),
        ("canonicalDedupKey, attributionKey", "f_dedup_v1:…"),
        ("statement", "shop/2026-10"),
    ),
    "ingest": (
        ("plan, slice, task, run, batch", "p….t000017.r1/3"),
        ("record, by DOI or the provider's id", "10.1000/182, pmid:123"),
        ("cursor", "pubmed/HARVEST/global"),
        ("correlation id of a request", "ing-p….r1-3"),
    ),
    "bus": (
        ("event_id", "0190a1b2-…"),
        ("dead letter", "GROUP/event_id"),
        ("trace_id, correlation_id, idempotency key", "as it was published"),
    ),
    "studio": (("run, task, job", "run_…, job_…"), ("artifact", "art_…, or its hash")),
}
"""What may be asked for, by engine, and what each kind of key looks like."""
ENGINES = {"attribution": "Attribution", "ingest": "Ingest", "bus": "Bus", "studio": "Studio"}
BAD = frozenset({"rejected", "refused", "failed", "FAILED", "dead", "conflicted", "open_dead_letter", "given_up"})
WARN = frozenset({"waiting", "PARTIAL", "quarantined", "OPEN"})
OFF = frozenset({"duplicate", "discarded", "CANCELLED", "cancelled", "superseded", "SKIPPED", "skipped"})
PENDING_BAD = frozenset({"dead_letter", "quarantine"})
PAGES = {
    "ingest.plan": "/ingest/plan/{}",
    "ingest.task": "/ingest/task/{}",
    "ingest.run": "/ingest/run/{}",
    "studio.run": "/studio/run/{}",
}
"""Kinds of key that have a page of their own besides their story."""
STATES = {
    "attribution.closureKey": ("closure", ("closure_opened",)),
    "ingest.plan": ("plan", ("plan_created",)),
    "ingest.slice": ("slice", ("slice_cut",)),
    "ingest.task": ("task", ("task_created",)),
    "ingest.run": ("run", ("run_started",)),
    "ingest.batch": ("batch", ("batch_landed", "batch_ended")),
    "bus.dead_letter": ("dead_letter", ("dead_letter_written",)),
    "studio.task": ("film_run", ("run_moved",)),
    "studio.run": ("film_run", ("run_moved",)),
    "studio.job": ("job", ("job_state",)),
}
"""Kinds of key whose thing has a state: its machine, and the entries that say where it stands now."""
PAGE_LIMIT = 100
KEYS = "keys"
SHARED = "shared with others"
"""Headings of keys whose kind says all: what they are of, or what else has them."""
MAX_KEYS_OF_KIND = 12
MAX_RAW_ENTRIES = 40
"""A page with more entries shows what is stored of one at a time: all of them are megabytes that nobody reads."""
FILTERS = {"": "All", "problems": "Problems", "ways": "In and out"}


def story(view: View) -> Page:
    key, kind = view.filter_value("key"), view.filter_value("kind")
    if not key:
        return Page(
            title="Find a key",
            template="story.html",
            values={"key": "", "told": None, "searched": "", "kinds": EXAMPLES, "engine_names": ENGINES},
        )
    told = view.ask("/story", key=key, kind=kind, after=view.filter_value("after"), limit=PAGE_LIMIT)
    entries = [_display_entry(entry, number) for number, entry in enumerate(told["entries"])]
    raw = view.filter_value("raw")
    for entry in entries:
        entry["is_raw"] = len(entries) <= MAX_RAW_ENTRIES or entry["id"] == raw
        entry["raw_link"] = f"{view.here(raw=entry['id'])}#{entry['anchor']}"
    only = view.filter_value("only")
    chosen = [entry for entry in entries if _is_wanted(entry, only)]
    engines = [engine for engine in ENGINES if any(entry["engine"] == engine for entry in entries)]
    lanes = lanes_of(entries)
    values: dict[str, Any] = {
        "key": key,
        "kind": told["kind"] or "",
        "told": told,
        "searched": told["key"],
        "entries": entries,
        "groups": _groups(chosen),
        "raw": raw,
        "axis": axis(lanes, view.now) if len({entry["at"] for entry in entries}) > 1 else "",
        "lanes": [lane.name for lane in lanes],
        "pending": [one | {"tone": _pending_tone(one)} for one in told["pending"]],
        "rail": rail_of(told["related"]),
        "state": _state_of(told["kind"] or "", key, entries),
        "page_of": _page_of(told["kind"] or "", key),
        "verdict": _verdict(told, entries, engines),
        "tabs": [(name, label, view.here(only=name, after="")) for name, label in FILTERS.items()],
        "only": only,
        "problems": sum(entry["tone"] == "bad" for entry in entries),
        "more": view.here(after=told["next"]) if told["next"] else "",
        "first": view.here(after="") if view.filter_value("after") else "",
        "candidates": [one | {"href": link("/story", key=one["key"], kind=one["kind"])} for one in told["candidates"]],
        "command": f"patra story {shlex.quote(told['key'])}" + (f" --kind {kind}" if kind else ""),
        "engine_names": ENGINES,
    }
    return Page(title=f"Story of {told['key']}", template="story.html", values=values)


def tone(entry: Mapping[str, Any]) -> str:
    """Whether an entry is a problem, a delay or a repetition; most are none of it."""
    state, what = entry["state"], entry["what"]
    if state in BAD or what in {"dead_letter_written", "publish_refused"}:
        return "bad"
    if what == "delivery_failed" or state in WARN:
        return "warn"
    return "off" if state in OFF else ""


def _display_entry(entry: Mapping[str, Any], number: int) -> dict[str, Any]:
    word, icon = SHAPES[entry["shape"]]
    return {**entry, "anchor": f"e{number}", "tone": tone(entry), "word": word, "icon": icon}


def _is_wanted(entry: Mapping[str, Any], only: str) -> bool:
    match only:
        case "problems":
            return entry["tone"] in {"bad", "warn"}
        case "ways":
            return entry["shape"] in {"in", "out", "act"}
        case _:
            return True


def _groups(entries: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Entries of one instant and engine under one time, with the span to the group before.

    Equal neighbours are one row, which says how many they are and has the keys and anchors of all.
    """
    groups: list[dict[str, Any]] = []
    for entry in entries:
        if groups and groups[-1]["at"] == entry["at"] and groups[-1]["engine"] == entry["engine"]:
            rows = groups[-1]["rows"]
            if all(rows[-1][name] == entry[name] for name in ("text", "code", "tone", "detail")):
                also = [*rows[-1].get("also", ()), entry["anchor"]]
                related = list({one["key"]: one for one in (*rows[-1]["related"], *entry["related"])}.values())
                rows[-1] = {**rows[-1], "also": also, "related": related}
            else:
                rows.append(entry)
            continue
        gap = (instant(entry["at"]) or 0) - (instant(groups[-1]["at"]) or 0) if groups else 0
        groups.append(
            {"at": entry["at"], "engine": entry["engine"], "gap": span_text(gap) if gap else "", "rows": [entry]}
        )
    return groups


def rail_of(related: Sequence[Mapping[str, str]]) -> dict[str, list[dict[str, Any]]]:
    """Related keys by their relation, then by their kind: `more` are not listed."""
    found: dict[str, dict[str, list[dict[str, str]]]] = {}
    for one in related:
        name = one["kind"].partition(".")[2]
        row = {"key": one["key"], "href": link("/story", key=one["key"], kind=one["kind"])}
        found.setdefault(_heading(one["relation"], name), {}).setdefault(name, []).append(row)
    return {
        heading: [
            {"name": name, "keys": rows[:MAX_KEYS_OF_KIND], "more": max(len(rows) - MAX_KEYS_OF_KIND, 0)}
            for name, rows in kinds.items()
        ]
        for heading, kinds in found.items()
    }


def _heading(relation: str, kind: str) -> str:
    """One heading for all relations that say no more than the kind does: the run `…` is a run of this story."""
    if relation.startswith("same "):
        return SHARED
    return KEYS if relation.replace(" ", "_") in kind.lower() else relation


def _state_of(kind: str, key: str, entries: Sequence[Mapping[str, Any]]) -> tuple[str, str] | None:
    """The machine and the state of what a key stands for, where it has one."""
    machine, whats = STATES.get(kind, ("", ()))
    states = [
        entry["state"]
        for entry in entries
        if entry["what"] in whats and any(one["kind"] == kind and one["key"] == key for one in entry["related"])
    ]
    return (machine, states[-1]) if states else None


def _page_of(kind: str, key: str) -> str:
    return link(PAGES[kind].format(key)) if kind in PAGES else ""


def _pending_tone(one: Mapping[str, Any]) -> str:
    return "bad" if one["what"] in PENDING_BAD else "due"


def _verdict(told: Mapping[str, Any], entries: Sequence[Mapping[str, Any]], lanes: Sequence[str]) -> str:
    """The answer in a sentence or two: how much is known, whether something went wrong, what is still to come."""
    match told["outcome"]:
        case "ambiguous":
            many = "more than " if not all(place["complete"] for place in told["searched"]) else ""
            return f"This key stands for {many}{len(told['candidates'])} things. Choose the one that you mean."
        case "unknown":
            return "Nothing is known of this key."
        case _:
            names = [ENGINES[lane] for lane in lanes]
            where = " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
            problems = sum(entry["tone"] == "bad" for entry in entries)
            waiting = len(told["pending"])
            said = [told["verdict"]] if told["verdict"] else []
            said.append(f"{plural(len(entries), 'entry', 'entries')} in {where}.")
            said += [f"{plural(problems, 'problem')}."] if problems else []
            said.append(
                f"{plural(waiting, 'thing is', 'things are')} still to come." if waiting else "Nothing is pending."
            )
            return " ".join(said)


ROUTES = (Route(path="/story", handler=story, nav="/story"),)
