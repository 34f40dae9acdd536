"""C§3, C§4: who gets an event, and in which version."""

from patra.bus.catalogue.versions import Version, parse_range
from patra.bus.consuming.recipients import Subscription, recipients


def subscription(group_id, versions, event_type="thing.happened"):
    return Subscription(group_id=group_id, group=f"g{group_id}", event_type=event_type, versions=parse_range(versions))


def test_c4_each_group_gets_an_event_once_in_the_newest_version_it_reads():
    groups = [
        subscription(1, ">=1,<2"),
        subscription(2, ">=1"),
        subscription(3, ">=2"),
        subscription(4, ">=3"),
        subscription(5, ">=1", "other.happened"),
    ]
    found = recipients(groups, "thing.happened", [Version(1, 2), Version(2, 0)])
    assert found == {1: Version(1, 2), 2: Version(2, 0), 3: Version(2, 0)}


def test_a_group_with_two_handlers_gets_the_newer_version_only():
    groups = [subscription(1, ">=2,<3"), subscription(1, ">=1,<2")]
    assert recipients(groups, "thing.happened", [Version(1, 0), Version(2, 0)]) == {1: Version(2, 0)}
