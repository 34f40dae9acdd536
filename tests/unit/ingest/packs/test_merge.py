"""Five levels, each overriding the one before it (ch. 3.3.2), with the origin of each value."""

from patra.ingest.packs.merge import Level, Origin, merge
from patra.ingest.vocabulary.codes import HttpMethod, Operation
from tests.unit.ingest.sample_packs import loaded

PACK = {
    "defaults": {
        "retry": {"maxAttempts": 2, "factor": 3.0},
        "http": {"queryTemplate": {"a": "1", "b": "1"}, "method": "POST"},
    },
    "endpoints": {
        "e": {
            "method": "GET",
            "defaults": {"retry": {"maxAttempts": 3}, "http": {"queryTemplate": {"b": "2"}}},
            "retry": {"maxAttempts": 4},
            "errors": {"one": {"outcome": "L1"}, "two": {"outcome": "L2"}},
            "operations": {
                "BACKFILL": {
                    "retry": {"maxAttempts": 5},
                    "errors": {"three": {"outcome": "L3"}, "two": {"outcome": "L4"}},
                }
            },
        }
    },
}


def test_each_level_overrides_the_one_before_it():
    assert merge({"endpoints": {"e": {}}}, "e", None).sections.retry.max_attempts == 5
    found = merge(PACK, "e", Operation.HARVEST)
    assert found.sections.retry.max_attempts == 4
    assert merge(PACK, "e", Operation.BACKFILL).sections.retry.max_attempts == 5
    assert merge(PACK, "e", Operation.BACKFILL, {"retry": {"maxAttempts": 6}}).sections.retry.max_attempts == 6
    assert found.sections.http.method is HttpMethod.GET
    assert found.sections.retry.factor == 3.0
    assert found.sections.http.query_template == {"a": "1", "b": "2"}


def test_the_origin_of_each_value_is_kept():
    found = merge(PACK, "e", Operation.BACKFILL, {"retry": {"factor": 4.0}})
    assert found.origin(("retry", "maxAttempts")) == Origin(
        Level.OPERATION, ("endpoints", "e", "operations", "BACKFILL", "retry", "maxAttempts")
    )
    assert found.origin(("retry", "factor")) == Origin(Level.TRIGGER, ("trigger", "retry", "factor"))
    assert found.origin(("http", "method")) == Origin(Level.ENDPOINT, ("endpoints", "e", "method"))
    assert found.origin(("http", "queryTemplate", "a")).level is Level.SOURCE
    assert found.origin(("http", "queryTemplate", "b")) == Origin(
        Level.ENDPOINT, ("endpoints", "e", "defaults", "http", "queryTemplate", "b")
    )
    assert found.origin(("retry", "jitter")).level is Level.PLATFORM
    assert merge(PACK, "e", None).origin(("retry", "maxAttempts")).level is Level.SECTION


def test_null_takes_a_key_of_a_free_mapping_away():
    found = merge(PACK, "e", None, {"http": {"queryTemplate": {"a": None}}})
    assert found.sections.http.query_template == {"b": "2"}
    assert ("http", "queryTemplate", "a") not in found.origins


def test_lists_and_json_bodies_are_replaced_as_a_whole():
    tree = {
        "defaults": {"http": {"bodyTemplate": {"kind": "JSON", "json": {"a": 1}}}, "retry": {"retryableStatus": [500]}},
        "endpoints": {"e": {}},
    }
    found = merge(tree, "e", None, {"http": {"bodyTemplate": {"json": {"b": 2}}}, "retry": {"retryableStatus": [429]}})
    assert found.sections.http.body_template.json == {"b": 2}
    assert found.sections.retry.retryable_status == (429,)


def test_error_rules_of_a_higher_level_are_asked_first():
    assert merge(PACK, "e", Operation.HARVEST).rules == ("one", "two")
    assert merge(PACK, "e", Operation.BACKFILL).rules == ("three", "two", "one")


def test_merging_does_not_change_the_pack():
    pack = loaded("token")
    before = repr(pack.tree)
    merge(pack.tree, "works", Operation.BACKFILL, {"http": {"queryTemplate": {"x": "1"}}})
    assert repr(pack.tree) == before
