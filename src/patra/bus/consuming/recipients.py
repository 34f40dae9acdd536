"""Which consumer groups get an event, and in which of its versions (C§3, C§4, B8)."""

from collections.abc import Collection, Iterable

import msgspec

from patra.bus.catalogue.versions import Version, VersionRange


class Subscription(msgspec.Struct, frozen=True, kw_only=True):
    """A group's wish for one event type."""

    group_id: int
    group: str
    event_type: str
    versions: VersionRange


def recipients(
    subscriptions: Iterable[Subscription],
    event_type: str,
    versions: Collection[Version],
    avoided: Collection[int] = (),
) -> dict[int, Version]:
    """Which groups get an event, and in which of its versions: the newest that the group reads. Each group gets one.

    A major in `avoided` goes to groups only that read no other version of the event (B8: it is a shadow for them).
    """
    chosen: dict[int, Version] = {}
    for subscription in subscriptions:
        if subscription.event_type != event_type:
            continue
        readable = [version for version in versions if version in subscription.versions]
        if readable:
            best = max(readable, key=lambda version: _preference(version, avoided))
            before = chosen.get(subscription.group_id, best)
            chosen[subscription.group_id] = max(best, before, key=lambda version: _preference(version, avoided))
    return chosen


def _preference(version: Version, avoided: Collection[int]) -> tuple[bool, Version]:
    return version.major not in avoided, version
