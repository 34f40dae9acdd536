"""§3.8.29.1, F26: the built-in archive checks a `recordKey` against the digest of its payload, like any other."""

from typing import Any

import pytest

from patra.attribution.replay import replay
from patra.kernel.db import Database, migrate
from patra.kernel.machine import history
from tests.unit.attribution.said import PACKAGES, at, event, sent, tick

MISMATCH = "f_output_recordkey_payload_mismatch"
FIRST = {"opportunityKey": "o|r", "responseReference": "x", "renderAttemptId": "a"}
SECOND = {"opportunityKey": "o", "responseReference": "r|x", "renderAttemptId": "a"}
"""Two closures, and the fields of each join to the same computed key of a synthesised failure."""


def timeouts(output: Any) -> list[tuple[str, str, str, str]]:
    failures = [one for one in output.records if one["sourceKeys"]["eventId"] == "NA"]
    return sorted(
        (one["relationKeys"]["closureKeyOrNA"], one["recordType"], one["recordStatus"], one["decisionReasonCode"])
        for one in failures
    )


@pytest.mark.parametrize("at_once", [True, False])
def test_a_second_payload_under_a_record_key_is_conflicted_and_says_why(database: Database, at_once: bool):
    migrate(database, PACKAGES)
    lines = [sent(0, event("ad_filled", "f1", **FIRST)), sent(1, event("ad_filled", "f2", **SECOND))]
    ticks = [tick(200)] if at_once else [tick(120), tick(200)]
    output = replay([*lines, *ticks], database)
    assert timeouts(output) == [
        ("r|x|a", "attribution_fact", "conflicted", MISMATCH),
        ("r|x|a", "decision_audit", "conflicted", MISMATCH),
        ("x|a", "attribution_fact", "committed", "f_terminal_timeout_autofill"),
        ("x|a", "decision_audit", "committed", "f_terminal_timeout_autofill"),
    ]
    keys = {one["recordKey"] for one in output.records if one["recordStatus"] == "conflicted"}
    moves = database.read(lambda tx: history(tx, keys))
    assert {(move.was, move.to, move.reason, at(121)) for move in moves} == {("new", "conflicted", MISMATCH, at(121))}
    assert len(moves) == len(keys) == 2


def test_the_same_payload_under_a_record_key_is_no_conflict(database: Database):
    """The audits of two failures at one instant say the same; only their facts differ."""
    migrate(database, PACKAGES)
    lines = [sent(0, event("ad_filled", "f1", **FIRST), event("ad_filled", "f2", **SECOND)), tick(200)]
    found = timeouts(replay(lines, database))
    assert {status for _, kind, status, _ in found if kind == "decision_audit"} == {"committed"}
    assert sorted(status for _, kind, status, _ in found if kind == "attribution_fact") == ["committed", "conflicted"]
