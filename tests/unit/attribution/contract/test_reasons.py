"""Every code is reached by a test and explained in the documentation."""

from pathlib import Path

import pytest

from patra.attribution.contract.reasons import RETRYABLE, Reason
from tests.unit.attribution.said import ABSENT, at, event, replayed, sent, terminal, tick

ROOT = Path(__file__).parents[4]
PAGE = ROOT / "docs" / "reference" / "attribution-reasons.md"

LOG = [
    sent(0, event("opportunity_created"), event("opportunity_created"), event("view"), None),
    sent(1, event("ad_filled"), event("ad_filled", creativeId="other"), event("click", "c1")),
    sent(2, event("ad_filled"), event("click", "?", eventId="a b", traceKey=ABSENT), event("click", eventAt="never")),
    sent(3, event("click", "g", eventIdScope="global_unique"), event("click", "s", eventAt=at(-20 * 86_400))),
    sent(4, event("interaction", interactionType="odd"), event("auction_started", idempotencyKey="not legal")),
    sent(5, event("impression"), event("impression", "i2"), event("click", "c2"), terminal("t1")),
    sent(6, event("postback", postbackStatus="failed"), app="app"),
    sent(7, event("click", "x"), app="other"),
    sent(8, terminal("t2", renderAttemptId="two"), batch="b8"),
    sent(9, terminal("t3", renderAttemptId="two"), event("impression", "i3", renderAttemptId="two"), batch="b9"),
    sent(10, terminal("t4", renderAttemptId="two"), event("click", "c3", renderAttemptId="two"), batch="b10"),
    sent(11, event("click", "c4", renderAttemptId="three"), batch="b11"),
    tick(500),
    sent(600, batch="not legal"),
    sent(600, event("click"), sdkVersion=None),
    sent(600, event("click"), schemaVersion="7"),
    sent(600),
    {"receivedAt": at(600), "batch": 5},
]


def reached() -> set[str]:
    output = replayed(*LOG)
    codes = {ack["code"] for ack in output.acks if "code" in ack}
    codes |= {item["ackReasonCode"] for ack in output.acks for item in ack.get("ackItems", [])}
    return codes | {audit["decisionReasonCode"] for audit in output.audits}


def test_only_the_two_codes_of_ours_may_be_retried():
    assert {code.value for code in RETRYABLE} == {"f_store_unavailable", "f_intake_overloaded"}


@pytest.mark.parametrize("code", list(Reason))
def test_every_code_is_explained_in_the_documentation(code: Reason):
    assert f"| `{code.value}` | {code.text} |" in PAGE.read_text()


def test_the_documentation_explains_no_code_that_there_is_not():
    documented = {line.split("`")[1] for line in PAGE.read_text().splitlines() if line.startswith("| `")}
    assert documented == {code.value for code in Reason}
