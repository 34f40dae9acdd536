"""Turns a function into a consumer: which events it takes, for which group, and how it is run (C§3).

Three ways to handle an event, all with the effect exactly once:

| kind | the function | when it runs |
|---|---|---|
| single | `handle(tx, event)` | in the transaction that takes the event from the group's line |
| batch | `handle(tx, events)` | the same, for sets: as many events at once as are there |
| long | `work(event, hold) -> finish` | outside any transaction, under a lease that is renewed; `finish(tx)` writes |
"""

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from difflib import get_close_matches
from enum import StrEnum
from threading import Event as Flag
from traceback import format_exception
from typing import Any, TypeAlias, TypedDict

import msgspec

from patra.bus.catalogue.catalogue import Catalogue, is_group
from patra.bus.catalogue.reasons import Reason
from patra.bus.catalogue.versions import Version, VersionRange, parse_range
from patra.bus.consuming.delivery_order import Waiting
from patra.bus.publishing.envelope import Envelope, Wire, decode_wire, parse_wire
from patra.kernel.clock import SECOND
from patra.kernel.db import Tx
from patra.kernel.errors import ConfigInvalid, PatraError, Permanent, Transient
from patra.kernel.safety.redact import redact_text

MAX_DETAIL_CHARS = 4000
MAX_TRACEBACK_CHARS = 8000
MAX_EFFECTS_PER_EVENT = 100
MAX_EFFECT_CHARS = 300


class Effect(msgspec.Struct, frozen=True):
    """A row that the handling of an event wrote: its table and key, as the handler declared them."""

    table: str
    key: str


class Event:
    """What a handler gets: the envelope, and which try this is. `replay` is set when an operator sent it again."""

    __slots__ = ("_effects", "_envelope", "_waiting", "_wire")

    def __init__(self, waiting: Waiting) -> None:
        self._waiting = waiting
        self._wire: Wire | None = None  # read when first asked for
        self._envelope: Envelope | None = None
        self._effects: list[Effect] | None = None

    def wrote(self, table: str, key: object) -> None:
        """Declare a row that the handler wrote for this event: the timeline shows it beside "handled"."""
        if self._effects is None:
            self._effects = []
        if len(self._effects) < MAX_EFFECTS_PER_EVENT:
            self._effects.append(
                Effect(_storable_text(table)[:MAX_EFFECT_CHARS], _storable_text(str(key))[:MAX_EFFECT_CHARS])
            )

    @property
    def effects(self) -> Sequence[Effect]:
        """What was declared, the first hundred."""
        return self._effects or ()

    @property
    def envelope(self) -> Envelope:
        if self._envelope is None:
            self._envelope = parse_wire(self._read())
        return self._envelope

    @property
    def payload(self) -> dict[str, Any]:
        return self._read().payload

    @property
    def event_id(self) -> str:
        return self._waiting.event_id

    @property
    def event_type(self) -> str:
        return self._waiting.event_type

    @property
    def published_at(self) -> int:
        return self._waiting.published_at

    @property
    def attempt(self) -> int:
        return self._waiting.tries

    @property
    def replay(self) -> bool:
        return self._waiting.replay

    def _read(self) -> Wire:
        if self._wire is None:
            self._wire = decode_wire(self._waiting.body or "{}")
        return self._wire


class Hold:
    """A long handler's view of its lease: when `lost` is set, another worker has the event, and nothing will count."""

    def __init__(self) -> None:
        self._lost = Flag()

    @property
    def lost(self) -> bool:
        return self._lost.is_set()

    def lose(self) -> None:
        self._lost.set()


class Poison(Permanent):
    """Raised by a handler when no retry can help: the event becomes a dead letter at once, under the handler's code."""


class RetryLater(Transient):
    """Raised by a handler that knows when it is worth while to try again: at the earliest in `seconds`."""

    def __init__(self, code: str, detail: str, *, seconds: float) -> None:
        super().__init__(code, detail)
        self.wait = int(seconds * SECOND)


class EndpointFailed(Transient):
    """Raised by a handler that calls an endpoint which is down: that hurts the endpoint alone (B9).

    The event waits by the consumer's `schedule`, at least for `wait` µs; `gone` says that no later call can succeed.
    """

    def __init__(self, code: str, detail: str, *, wait: int = 0, gone: bool = False) -> None:
        super().__init__(code, detail)
        self.wait = wait
        self.gone = gone


Finish: TypeAlias = Callable[[Tx], None]
Single: TypeAlias = Callable[[Tx, Event], None]
Batch: TypeAlias = Callable[[Tx, Sequence[Event]], None]
Long: TypeAlias = Callable[[Event, Hold], Finish | None]
EffectsOf: TypeAlias = Callable[[Event], Iterable[tuple[str, object]]]


class ConsumerOptions(TypedDict, total=False):
    """What a declaration may say beside type, group and versions; see `Consumer`."""

    concurrency: int | None
    from_beginning: bool
    effects: EffectsOf | None


class Kind(StrEnum):
    SINGLE = "single"
    BATCH = "batch"
    LONG = "long"


class Consumer(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """One handler of a group. `concurrency` bounds how many of the group work at once, over all processes."""

    event_type: str
    group: str
    versions: VersionRange
    kind: Kind
    handler: Callable[..., Any]
    concurrency: int | None = None
    lease: int = 60 * SECOND
    from_beginning: bool = False
    effects: EffectsOf | None = None  # the rows (table, key) that the handling of an event writes, for its timeline
    schedule: tuple[int, ...] = ()  # of an endpoint: the waits after each failure (µs), instead of the type's retries
    majors: frozenset[int] | None = None  # which major versions the handler can know; None: all of `versions`

    def takes(self, event_type: str, version: Version) -> bool:
        known = self.majors is None or version.major in self.majors
        return known and event_type == self.event_type and version in self.versions

    def declare_effects(self, events: Iterable[Event]) -> None:
        """Add what the consumer declares for every event to what its handler declared."""
        if self.effects is not None:
            for event in events:
                for table, key in self.effects(event):
                    event.wrote(table, key)


def in_process(
    catalogue: Catalogue,
    kind: Kind,
    event_type: str,
    group: str,
    versions: str,
    handler: Callable[..., Any],
    options: Mapping[str, Any],
) -> Consumer:
    """A consumer whose handler is a function of this process.

    It gets events of the major versions that the process has a contract of, whatever its range says: while versions
    roll, an event of a later major waits in the group's line for a process that knows it (B8).
    """
    place = f"consumer {group}/{event_type}"
    require_plain_function(handler, place)
    accepted = parse_versions(versions, place)
    majors = frozenset(known.contracts) if (known := catalogue.types.get(event_type)) else None
    return Consumer(
        event_type=event_type, group=group, versions=accepted, kind=kind, handler=handler, majors=majors, **options
    )


def require_plain_function(handler: Callable[..., Any], place: str) -> None:
    """Raise ConfigInvalid for a coroutine or generator function: a call of it runs nothing, and looks like success."""
    called = handler if inspect.isroutine(handler) else getattr(handler, "__call__", handler)  # noqa: B004
    deferred = (inspect.iscoroutinefunction, inspect.isgeneratorfunction, inspect.isasyncgenfunction)
    if any(is_so(one) for one in (handler, called) for is_so in deferred):
        detail = "a handler is a plain function: nothing would await `async def` or run a generator"
        advice = "pass work to an event loop by `tx.after_commit(lambda: loop.call_soon_threadsafe(…))`"
        raise ConfigInvalid(Reason.CATALOGUE_INVALID, detail, place=place, advice=advice)


def require_no_awaitable(result: object) -> None:
    """Raise TypeError for what a handler returned instead of doing it; the event fails and is not lost."""
    if result is not None and inspect.isawaitable(result):
        if inspect.iscoroutine(result):
            result.close()
        raise TypeError("the handler returned an awaitable, which nothing awaits: a handler is a plain function")


def declare_consumer(catalogue: Catalogue, consumer: Consumer, others: Sequence[Consumer]) -> Consumer:
    """Check a consumer against the catalogue: it may only ask for what is published, and changes nothing there."""
    place = f"consumer {consumer.group}/{consumer.event_type}"
    if not is_group(consumer.group):
        raise ConfigInvalid(Reason.GROUP_UNKNOWN, f"{consumer.group!r} is not a name for a group", place=place)
    kind = catalogue.types.get(consumer.event_type)
    if kind is None:
        near = get_close_matches(consumer.event_type, catalogue.types, n=1)
        advice = f"did you mean {near[0]}?" if near else "declare it, or name the folder of its contract"
        raise ConfigInvalid(Reason.TYPE_UNKNOWN, "the catalogue has no such event type", place=place, advice=advice)
    if not consumer.versions.majors(set(kind.contracts)):
        known = ", ".join(str(c.version) for c in kind.contracts.values())
        raise ConfigInvalid(
            Reason.VERSION_UNKNOWN, f"no version is {consumer.versions.text}; there is {known}", place=place
        )
    for other in others:
        if (other.group, other.event_type) == (consumer.group, consumer.event_type):
            known_majors = set(kind.contracts)
            if other.versions.majors(known_majors) & consumer.versions.majors(known_majors):
                raise ConfigInvalid(
                    Reason.CATALOGUE_INVALID, "two handlers of one group take the same version of a type", place=place
                )
        if other.group == consumer.group and other.concurrency != consumer.concurrency:
            raise ConfigInvalid(
                Reason.CATALOGUE_INVALID, "the handlers of a group have one bound of concurrency", place=place
            )
    return consumer


def parse_versions(text: str, place: str) -> VersionRange:
    versions = parse_range(text)
    if versions is None:
        raise ConfigInvalid(Reason.VERSION_UNKNOWN, f"{text!r} is not a range such as `>=1,<2`", place=place)
    return versions


class Trouble(msgspec.Struct, frozen=True, kw_only=True):
    """A handler's failure in words that can be kept: code, detail without secrets, whether retries can help."""

    code: str
    detail: str
    poison: bool
    wait: int = 0  # µs that an endpoint or a handler asked for
    gone: bool = False  # an endpoint that will not come back
    traceback: str = ""
    kinds: tuple[str, ...] = ()  # the code and the names of the error's types, by which a contract has retries


class HandlerFailure(msgspec.Struct, frozen=True, kw_only=True):
    """A handler failed on an event, which comes back at `due_at`, or became a dead letter (None)."""

    group: str
    event_id: str
    event_type: str
    attempt: int
    trouble: Trouble
    due_at: int | None


def trouble(error: BaseException) -> Trouble:
    code = str(error.code if isinstance(error, PatraError) else Reason.HANDLER_FAILED)[:200]
    detail = error.detail if isinstance(error, PatraError) else f"{type(error).__name__}: {error}"
    told = Trouble(
        code=code,
        detail=_storable_text(detail)[:MAX_DETAIL_CHARS],
        poison=isinstance(error, Poison),
        traceback=_storable_text("".join(format_exception(error)))[-MAX_TRACEBACK_CHARS:],
        kinds=(code, *[kind.__name__ for kind in type(error).__mro__[:-2]]),
    )
    if isinstance(error, RetryLater):
        return msgspec.structs.replace(told, wait=error.wait)
    if isinstance(error, EndpointFailed):
        return msgspec.structs.replace(told, wait=error.wait, gone=error.gone)
    return told


def _storable_text(text: str) -> str:
    """Without secrets, and as a store can hold it."""
    return redact_text(text).replace("\x00", "\ufffd").encode("utf-8", "replace").decode()
