"""Entries of several engines as one timeline: in the order of time, redacted, page by page. Pure."""

from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Any, cast

import msgspec

from patra.app.story.model import Candidate, Entry, Pending, Related, Shape, StoryCandidate, StoryEntry, StoryPending
from patra.app.story.paragraphs import link
from patra.kernel.clock import format_instant
from patra.kernel.safety.redact import redact, redact_text
from patra.kernel.safety.untrusted_text import integer_of

MAX_DETAIL_BYTES = 16 * 1024
"""Details larger than this are left out: a story is to be read by people."""
MAX_RELATED = 200
_INSTANTS = ("_at", "_time", "_from", "_to", "_instant", "_until")
_SHAPES = list(Shape)


class Masks(dict[str, str]):
    """Texts as they are shown, for one story: its entries name the same keys over and over."""

    def __missing__(self, text: str) -> str:
        masked = self[text] = redact_text(text)
        return masked


def in_order(entries: Iterable[Entry]) -> list[Entry]:
    """Each entry once, by instant; at one instant what came in goes before what was decided, written and sent."""
    distinct: dict[str, Entry] = {}
    for entry in entries:
        distinct.setdefault(entry.id, entry)
    return sorted(distinct.values(), key=lambda entry: (entry.at, _SHAPES.index(entry.shape)))


def page(entries: Sequence[Entry], limit: int, after: str) -> tuple[list[Entry], str | None]:
    """The entries that follow a place, and the place of the next page, if there is one."""
    start = _start(entries, after)
    shown = list(entries[start : start + limit])
    more = start + limit < len(entries)
    return shown, place_of(shown[-1]) if shown and more else None


def place_of(entry: Entry) -> str:
    return f"{entry.at}~{entry.id}"


def _start(entries: Sequence[Entry], after: str) -> int:
    """Behind the entry of a place; if it is gone since, before the first that is later."""
    if not after:
        return 0
    at, _, entry_id = after.partition("~")
    for index, entry in enumerate(entries):
        if entry.id == entry_id:
            return index + 1
    instant = integer_of(at) or 0
    return next((index for index, entry in enumerate(entries) if entry.at > instant), len(entries))


def entry_shown(entry: Entry, masks: Masks) -> StoryEntry:
    """An entry of the answer: instants as text, nothing secret or personal in it."""
    return StoryEntry(
        id=redact_text(entry.id),
        at=format_instant(entry.at),
        engine=entry.engine.value,
        shape=entry.shape.value,
        what=entry.what,
        text=redact_text(entry.text),
        state=entry.state,
        code=entry.code,
        code_text=entry.code_text,
        rule_version=entry.rule_version,
        docs=link(entry.paragraph),
        detail=detail_shown(entry.detail),
        related=related_shown(entry.related, masks),
    )


def pending_shown(pending: Pending, masks: Masks) -> StoryPending:
    return StoryPending(
        engine=pending.engine.value,
        what=pending.what,
        text=redact_text(pending.text),
        due=None if pending.due is None else format_instant(pending.due),
        state=pending.state,
        related=related_shown(pending.related, masks),
    )


def candidate_shown(candidate: Candidate) -> StoryCandidate:
    return StoryCandidate(
        engine=candidate.engine.value,
        kind=candidate.kind,
        key=redact_text(candidate.key),
        label=redact_text(candidate.label),
        count=candidate.count,
    )


def related_shown(related: Iterable[Related], masks: Masks) -> list[Related]:
    """Keys by relation, each once; a key that is a person's or a secret is masked and leads nowhere."""
    distinct = islice(dict.fromkeys(one for one in related if one.key), MAX_RELATED)
    return list(dict.fromkeys(_mask_related(one, masks[one.key]) for one in distinct))


def _mask_related(one: Related, key: str) -> Related:
    return one if key == one.key else msgspec.structs.replace(one, key=key)


def detail_shown(detail: dict[str, Any]) -> dict[str, Any]:
    readable: Any = _readable(msgspec.to_builtins(detail, builtin_types=(bytes,)))
    redacted = cast("dict[str, Any]", redact(readable))
    size = len(msgspec.json.encode(redacted))
    return redacted if size <= MAX_DETAIL_BYTES else {"omitted_bytes": size}


def _readable(value: Any) -> Any:
    """Instants of rows as text."""
    if isinstance(value, dict):
        fields = cast("dict[str, Any]", value)
        return {
            name: format_instant(item) if name.endswith(_INSTANTS) and type(item) is int else _readable(item)
            for name, item in fields.items()
        }
    if isinstance(value, list):
        return [_readable(item) for item in cast("list[Any]", value)]
    return value
