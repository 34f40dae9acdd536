"""Which versions a publisher's functions add to what it publishes (B4, B8)."""

from patra.bus.publishing.dual_publishing import Translations
from tests.unit.bus.making import THING_2, catalogue, envelope, event_type, version

LIVE = catalogue(event_type(versions=[version("1.0", status="retiring"), version("2.0", THING_2)]))
RETIRED = catalogue(event_type(versions=[version("1.0", status="retired"), version("2.0", THING_2)]))


def added(types, *given):
    functions = Translations()
    functions.add("thing.happened", 1, 2, lambda payload: {"key": payload["key"], "number": 1})
    return [(one.event_id, one.event_version) for one in functions.complete_versions(types, given)[len(given) :]]


def test_a_version_that_is_no_longer_published_is_not_translated():
    made = envelope()
    assert added(LIVE, made) == [(made.event_id, "2.0")]
    assert added(RETIRED, made) == []


def test_a_function_that_fails_on_one_payload_leaves_the_others_as_they_are():
    broken, good = envelope(payload={"other": 1}), envelope()
    assert added(LIVE, broken, good) == [(good.event_id, "2.0")]
