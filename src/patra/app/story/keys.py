"""Which kinds of key a text can be. A kind is `engine.name`; people may leave the engine out.

The form of a text only rules kinds out where it cannot be one; what is left is looked up. Nothing is guessed.
"""

import re
from collections.abc import Callable
from typing import Final

from patra.app.story.model import Engine

MAX_KEY_CHARACTERS = 1000
"""The longest key that any engine has: an attribution key with its dedup key."""

_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}").fullmatch
_HEX64 = re.compile(r"[0-9a-f]{64}").fullmatch
_PLAN = re.compile(r"p[0-9a-f]{16}").fullmatch
_SLICE = re.compile(r"p[0-9a-f]{16}\.s\d{6,}").fullmatch
_TASK = re.compile(r"p[0-9a-f]{16}\.t\d{6,}").fullmatch
_RUN = re.compile(r"p[0-9a-f]{16}\.t\d{6,}\.r\d+").fullmatch
_BATCH = re.compile(r"(p[0-9a-f]{16}\.t\d{6,}\.r\d+)(?:/|\.b)(\d{1,9})").fullmatch
_CORRELATION = re.compile(r"ing-(p[0-9a-f]{16}\.t\d{6,}\.r\d+)-(\d{1,9})(?:-replay)?").fullmatch
_INSTANCE = re.compile(r"i[0-9a-f]{16}|[0-9a-f]{64}").fullmatch
_DOI = re.compile(r"(?:https?://(?:dx\.)?doi\.org/|doi:)?(10\.\d{4,9}/\S+)", re.IGNORECASE).fullmatch

Form = Callable[[str], object]


def _any(_: str) -> bool:
    return True


def _dead_letter(text: str) -> bool:
    group, _, event_id = text.rpartition("/")
    return bool(group) and _UUID(event_id) is not None


def _begins(*prefixes: str) -> Form:
    return lambda text: text.startswith(prefixes)


KINDS: Final[dict[str, tuple[Engine, Form]]] = {
    "attribution.event": (Engine.ATTRIBUTION, lambda text: "/" in text),
    "attribution.batchId": (Engine.ATTRIBUTION, _any),
    "attribution.eventId": (Engine.ATTRIBUTION, _any),
    "attribution.sourceEventId": (Engine.ATTRIBUTION, _begins("fe_")),
    "attribution.canonicalDedupKey": (Engine.ATTRIBUTION, lambda text: ":" in text),
    "attribution.closureKey": (Engine.ATTRIBUTION, lambda text: "|" in text),
    "attribution.billingKey": (Engine.ATTRIBUTION, lambda text: "|billable_" in text),
    "attribution.attributionKey": (Engine.ATTRIBUTION, _begins("attr_")),
    "attribution.factId": (Engine.ATTRIBUTION, _begins("bf_", "af_")),
    "attribution.auditKey": (Engine.ATTRIBUTION, lambda text: text.startswith("fe_") and "|" in text),
    "attribution.recordKey": (Engine.ATTRIBUTION, _HEX64),
    "attribution.traceKey": (Engine.ATTRIBUTION, _any),
    "attribution.requestKey": (Engine.ATTRIBUTION, _any),
    "attribution.attemptKey": (Engine.ATTRIBUTION, _any),
    "attribution.opportunityKey": (Engine.ATTRIBUTION, _any),
    "attribution.responseReference": (Engine.ATTRIBUTION, _any),
    "attribution.renderAttemptId": (Engine.ATTRIBUTION, _any),
    "attribution.appId": (Engine.ATTRIBUTION, _any),
    "attribution.statement": (Engine.ATTRIBUTION, lambda text: bool(_HEX64(text)) or "/" in text),
    "ingest.plan": (Engine.INGEST, _PLAN),
    "ingest.slice": (Engine.INGEST, _SLICE),
    "ingest.task": (Engine.INGEST, _TASK),
    "ingest.run": (Engine.INGEST, _RUN),
    "ingest.batch": (Engine.INGEST, _BATCH),
    "ingest.correlation_id": (Engine.INGEST, _CORRELATION),
    "ingest.schedule_instance": (Engine.INGEST, _INSTANCE),
    "ingest.record": (Engine.INGEST, _any),
    "ingest.cursor": (Engine.INGEST, _any),
    "bus.event_id": (Engine.BUS, _UUID),
    "bus.dead_letter": (Engine.BUS, _dead_letter),
    "bus.trace_id": (Engine.BUS, _any),
    "bus.correlation_id": (Engine.BUS, _any),
    "bus.idempotency_key": (Engine.BUS, _any),
    "studio.task": (Engine.STUDIO, _any),
    "studio.run": (Engine.STUDIO, _begins("run_")),
    "studio.job": (Engine.STUDIO, _begins("job_")),
    "studio.artifact": (Engine.STUDIO, lambda text: _HEX64(text) or text.startswith("art_")),
}
"""Every kind of key, the engine that has it, and the form that a text must have to be one; the order is precedence."""

ALIASES = {"serverEventKey": "sourceEventId", "payloadKey": "auditKey", "doi": "record", "provider_id": "record"}
"""Other names of a kind."""


SOURCE_BY_PREFIX = {"pmid": "pubmed", "pmcid": "pmc"}
"""Prefixes of an id that are not the name of a source, as `arxiv` and `openalex` are; `doi` is any source's."""

NAMES: Final = sorted({*KINDS, *(kind.partition(".")[2] for kind in KINDS), *ALIASES})
"""What a kind may be called: `engine.name`, the name alone, or an alias."""


def kinds_named(name: str) -> list[str]:
    """The kinds that a name stands for: a whole kind, a name without its engine, or an alias of one."""
    engine, dot, last = name.rpartition(".")
    wanted = f"{engine}{dot}{ALIASES.get(last, last)}"
    return [kind for kind in KINDS if kind == wanted or (not engine and kind.partition(".")[2] == wanted)]


def kinds_possible(key: str, wanted: str = "") -> dict[Engine, list[str]]:
    """The kinds that a text can be by its form, by engine; of those wanted, where some are."""
    named = kinds_named(wanted) if wanted else list(KINDS)
    found: dict[Engine, list[str]] = {engine: [] for engine in Engine}
    if not is_searchable(key):
        return found
    for kind in named:
        engine, form = KINDS[kind]
        if form(key):
            found[engine].append(kind)
    return found


def is_searchable(key: str) -> bool:
    """Whether a text can be a key at all: no store holds U+0000 or a lone surrogate as text."""
    return 0 < len(key) <= MAX_KEY_CHARACTERS and "\x00" not in key and not any("\ud800" <= c <= "\udfff" for c in key)


def doi(key: str) -> str | None:
    """A DOI without its resolver, in lower case (DOIs are case-insensitive); None for any other text."""
    found = _DOI(key)
    return found[1].lower() if found else None


def source_and_id(key: str) -> tuple[str, str] | None:
    """Source and the provider's id of `source:id`; `pmid:` and `pmcid:` stand for the sources whose ids they are."""
    prefix, colon, provider_id = key.partition(":")
    source = prefix.strip().lower()
    return (SOURCE_BY_PREFIX.get(source, source), provider_id.strip()) if colon and source and provider_id else None


def ingest_batch(key: str) -> tuple[str, int] | None:
    """Run and number of a batch, from `run/no`, `run.bNo` or the correlation id that the provider saw."""
    found = _BATCH(key) or _CORRELATION(key)
    return (found[1], int(found[2])) if found else None


def event_in_batch(key: str) -> list[tuple[str, str]]:
    """Every way to read `batchId/eventId`: a batch's id has no slash, an event's may have any character."""
    batch, slash, event = key.partition("/")
    return [(batch, event)] if slash and batch and event else []


def dead_letter(key: str) -> tuple[str, str] | None:
    """Group and event of `group/event_id`."""
    group, _, event_id = key.rpartition("/")
    return (group, event_id) if _dead_letter(key) else None


def is_event_id(key: str) -> bool:
    return _UUID(key) is not None
