"""Types that programs registered on a store, and that this process has no contract of.

A program declares its contracts in code; another process of the store, such as `patra up`, need not have them. What one
of them adopts therefore leaves the types of the others as they are, and shows them from what was registered.
"""

import msgspec

from patra.bus.catalogue.catalogue import Catalogue, Contract, EventType, Ordering, Status
from patra.bus.catalogue.evolution import Release, ReleasedType
from patra.bus.catalogue.retries import RetryFile, retry_of
from patra.bus.catalogue.versions import Version, parse_version
from patra.kernel.clock import DAY

DEFAULT_DEAD_LETTER_THRESHOLD = 100
DEFAULT_RETENTION = 90 * DAY


def of_catalogue(last: Release, own: Catalogue) -> Release:
    """The types of a release that a catalogue has too: those that it can contradict."""
    return Release(types={name: kind for name, kind in last.types.items() if name in own.types})


def of_other_programs(last: Release, own: Catalogue) -> Release:
    """The types in use that a catalogue does not have. One that is retired for good need not be remembered."""
    return Release(
        types={
            name: kind
            for name, kind in last.types.items()
            if name not in own.types and any(one.status is not Status.RETIRED for one in kind.versions)
        }
    )


def with_others(own: Release, others: Release) -> Release:
    """What is in force on a store whose programs have different types."""
    return Release(types=dict(sorted({**others.types, **own.types}.items())))


def shown_types(own: Catalogue, others: Release) -> Catalogue:
    """Every type of a store, for people to look at. A release has no retries and no retention: those are defaults."""
    return Catalogue({**own.types, **{name: _event_type(name, kind) for name, kind in others.types.items()}})


def _event_type(name: str, kind: ReleasedType) -> EventType:
    scope, *key = kind.ordering or ("",)
    ordering = Ordering(scope=scope, key=tuple(key)) if key else None
    if ordering is not None and kind.on_dead_letter is not None:
        ordering = msgspec.structs.replace(ordering, on_dead_letter=kind.on_dead_letter)
    contracts = [
        Contract(version=_version(one.version), status=one.status, schema=one.schema, examples=())
        for one in kind.versions
    ]
    return EventType(
        name=name,
        title=name,
        description="Registered by a program, which handles it; this installation has no contract file of it.",
        producer=kind.producer,
        consumers=(),
        contracts={one.version.major: one for one in contracts},
        retry=retry_of(RetryFile(), name),
        dead_letter_threshold=DEFAULT_DEAD_LETTER_THRESHOLD,
        retention=DEFAULT_RETENTION,
        ordering=ordering,
        place="the store",
    )


def _version(text: str) -> Version:
    return parse_version(text) or Version(0, 0)
