"""A function goes in, a consumer comes out: which events it takes, for which group, and how it is run (C§3).

Three ways to handle an event, all with the effect exactly once:

| kind | the function | when it runs |
|---|---|---|
| single | `handle(tx, event)` | in the transaction that takes the event from the group's line |
| batch | `handle(tx, events)` | the same, for sets: as many events at once as are there |
| long | `work(event, hold) -> finish` | outside any transaction, under a lease that is renewed; `finish(tx)` writes |
"""

from collections.abc import Callable, Sequence
from enum import StrEnum
from threading import Event as Flag
from typing import Any, TypeAlias

import msgspec

from patra.bus.catalogue import Catalogue, is_group
from patra.bus.delivery import Waiting
from patra.bus.envelope import Envelope, Wire, decode_wire, unwired
from patra.bus.reasons import R
from patra.bus.versions import Version, VersionRange, parse_range
from patra.kernel.clock import SECOND
from patra.kernel.db import Tx
from patra.kernel.errors import ConfigInvalid, PatraError, Permanent
from patra.kernel.redact import redact_text

LONGEST_DETAIL = 4000


class Event:
    """What a handler gets: the envelope, and which try this is. `replay` is set when an operator sent it again."""

    __slots__ = ("_envelope", "_waiting", "_wire")

    def __init__(self, waiting: Waiting) -> None:
        self._waiting = waiting
        self._wire: Wire | None = None  # read when first asked for
        self._envelope: Envelope | None = None

    @property
    def envelope(self) -> Envelope:
        if self._envelope is None:
            self._envelope = unwired(self._read())
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


Finish: TypeAlias = Callable[[Tx], None]
Single: TypeAlias = Callable[[Tx, Event], None]
Batch: TypeAlias = Callable[[Tx, Sequence[Event]], None]
Long: TypeAlias = Callable[[Event, Hold], Finish | None]


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

    def takes(self, event_type: str, version: Version) -> bool:
        return event_type == self.event_type and version in self.versions


def declared(catalogue: Catalogue, consumer: Consumer, others: Sequence[Consumer]) -> Consumer:
    """Check a consumer against the catalogue: it may only ask for what is published, and changes nothing there."""
    place = f"consumer {consumer.group}/{consumer.event_type}"
    if not is_group(consumer.group):
        raise ConfigInvalid(R.GROUP_UNKNOWN, f"{consumer.group!r} is no name for a group", place=place)
    kind = catalogue.types.get(consumer.event_type)
    if kind is None:
        raise ConfigInvalid(R.TYPE_UNKNOWN, "the catalogue has no such event type", place=place)
    if not consumer.versions.majors(set(kind.contracts)):
        known = ", ".join(str(c.version) for c in kind.contracts.values())
        raise ConfigInvalid(R.VERSION_UNKNOWN, f"no version is {consumer.versions.text}; there is {known}", place=place)
    for other in others:
        if (other.group, other.event_type) == (consumer.group, consumer.event_type):
            known_majors = set(kind.contracts)
            if other.versions.majors(known_majors) & consumer.versions.majors(known_majors):
                raise ConfigInvalid(
                    R.CATALOGUE_INVALID, "two handlers of one group take the same version of a type", place=place
                )
        if other.group == consumer.group and other.concurrency != consumer.concurrency:
            raise ConfigInvalid(
                R.CATALOGUE_INVALID, "the handlers of a group have one bound of concurrency", place=place
            )
    return consumer


def parse_versions(text: str, place: str) -> VersionRange:
    versions = parse_range(text)
    if versions is None:
        raise ConfigInvalid(R.VERSION_UNKNOWN, f"{text!r} is no range such as `>=1,<2`", place=place)
    return versions


class Trouble(msgspec.Struct, frozen=True, kw_only=True):
    """A handler's failure in words that can be kept: code, detail without secrets, whether retries can help."""

    code: str
    detail: str
    poison: bool


def trouble(error: BaseException) -> Trouble:
    code = error.code if isinstance(error, PatraError) else R.HANDLER_FAILED
    detail = error.detail if isinstance(error, PatraError) else f"{type(error).__name__}: {error}"
    text = redact_text(detail)[:LONGEST_DETAIL].replace("\x00", "\ufffd").encode("utf-8", "replace").decode()
    return Trouble(code=str(code)[:200], detail=text, poison=isinstance(error, Poison))
