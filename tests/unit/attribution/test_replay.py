"""Replay: A1, §3.8.7, §3.8.30, and the form of the log."""

import json
import random
from pathlib import Path
from typing import Any

import msgspec
import pytest

from patra.attribution.commit import commit
from patra.attribution.decision.decide import Ticked
from patra.attribution.replay import replay, write_output
from patra.kernel.errors import Invalid
from tests.unit.attribution.said import answered, at, billed, closures, event, fresh, replayed, sent, terminal, tick

NAMES = [
    "opportunity_created",
    "auction_started",
    "ad_filled",
    "impression",
    "click",
    "interaction",
    "postback",
    "error",
]


def random_log(seed: int) -> list[dict[str, object]]:
    dice = random.Random(seed)
    lines: list[dict[str, object]] = []
    now = 0.0
    for number in range(40):
        now += dice.choice([0, 1, 30, 60, 119.999999, 120, 121, 4 * 86_400, 15 * 86_400, -5])
        if dice.random() < 0.15:
            lines.append(tick(now))
            continue
        events = [
            event(
                dice.choice(NAMES),
                f"e{dice.randrange(6)}",
                eventAt=at(now + dice.choice([-200, -1, 0, 0, 1])),
                renderAttemptId=f"r{dice.randrange(3)}",
                responseReference="ref",
                errorClass=dice.choice(["terminal", "other"]),
                creativeId=dice.choice("ab"),
            )
            for _ in range(dice.randrange(1, 6))
        ]
        lines.append(sent(now, *events, batch=f"b{number % 7}", app=dice.choice(["app", "app", "app", "other"])))
    return lines


@pytest.mark.parametrize("seed", range(25))
def test_the_result_does_not_depend_on_how_batches_are_grouped_into_commits(seed):
    lines = random_log(seed)
    one_by_one = replayed(*lines)
    assert replayed(*lines, group=[1000]) == one_by_one
    assert replayed(*lines, group=[2] * 50) == one_by_one
    assert replayed(*lines, group=[random.Random(seed).randrange(1, 6) for _ in range(50)]) == one_by_one


def test_two_runs_give_the_same_bytes(tmp_path: Path):
    for name in ("one", "two"):
        write_output(replayed(*random_log(7)), tmp_path / name)
    for path in sorted((tmp_path / "one").iterdir()):
        assert path.read_bytes() == (tmp_path / "two" / path.name).read_bytes()
    assert sorted(path.name for path in (tmp_path / "one").iterdir()) == [
        "acks.jsonl",
        "attribution.jsonl",
        "audits.jsonl",
        "billable.jsonl",
        "closures.jsonl",
        "records.jsonl",
    ]


def test_files_are_one_json_object_a_line(tmp_path: Path):
    output = replayed(sent(0, event("impression")), sent(1, event("click", traceKey="é\n\x00")))
    write_output(output, tmp_path)
    for name, objects in msgspec.structs.asdict(output).items():
        lines = (tmp_path / f"{name}.jsonl").read_bytes().splitlines()
        assert [json.loads(line) for line in lines] == objects


def test_lines_may_be_text_bytes_or_objects():
    line = sent(0, event("click"))
    text = json.dumps(line)
    assert replayed(text) == replayed(text.encode()) == replayed(line) == replayed(f"  {text}  ", "", "\n")


@pytest.mark.parametrize(
    "line",
    [
        "nope",
        "[]",
        "5",
        "{}",
        '{"receivedAt": "2026-01-01T00:00:00Z"}',
        '{"batch": {}}',
        '{"tick": 5}',
        '{"tick": "soon"}',
        '{"receivedAt": "2026-01-01T00:00:00", "batch": {}}',
        '{"tick": "2026-01-01T00:00:00Z", "batch": {}}',
        '{"tick": null}',
        '{"tick": "2026-01-01T00:00:00Z",}',
        '{"tick": "2026-01-01T00:00:00Z"} {}',
        '{"receivedAt": "2026-01-01T00:00:00Z", "batch": {"a": NaN}}',
        '{"receivedAt": "2026-01-01T00:00:00Z", "batch": {"a": "\\ud800"',
        '{"receivedAt": "\\ud800", "batch": {}}',
        '{"receivedAt": "2026-01-01T00:00:00Z", "batch": "\\ud800" 5}',
        '{"receivedAt": "2026-01-01T00:00:00Z" "batch": "\\ud800"}',
        '{"receivedAt": "2026-01-01T00:00:00Z", 5: "\\ud800"}',
        b'{"receivedAt": "2026-01-01T00:00:00Z", "batch": "\\ud800\xff"}',
        b'{"receivedAt": "2026-01-01T00:00:00Z", "batch": "\xff"}',
        b'{"receivedAt": "2026-01-01T00:00:00Z", "batch": {"\xc3": 1}}',
        b'{"tick": "2026-01-01T00:00:00Z", "note": "\xed\xa0\x80"}',
        "[" * 100_000,
        '{"receivedAt": "2026-01-01T00:00:00Z", "batch": ' + "[" * 100_000,
    ],
)
def test_a_line_that_is_neither_batch_nor_tick_is_refused_with_its_number(line):
    with pytest.raises(Invalid) as caught:
        replayed(tick(0), "", line)
    assert caught.value.place == "line 3"


@pytest.mark.parametrize("batch", ["null", "[]", "5", '"text"', "true", "{}"])
def test_a_batch_may_be_any_json(batch):
    output = replayed(f'{{"receivedAt": "2026-01-01T00:00:00Z", "batch": {batch}}}')
    assert output.acks[0]["code"] in {"f_batch_malformed", "f_batch_missing_required"}


def test_a_line_deeper_than_any_stack_or_with_half_surrogates_is_read():
    for levels in (400, 100_000):
        deep = json.dumps(sent(0, event("click"), "DEEP")).replace('"DEEP"', "[" * levels + "]" * levels)
        assert answered(deep) == [("accepted", "f_accepted"), ("rejected", "f_event_missing_required")]
    assert answered(sent(0, event("click", note="\ud800"))) == [("accepted", "f_accepted")]
    large = json.dumps(sent(0, event("click", note="\ud800", large="N"))).replace('"N"', f"[1e400, {'9' * 9000}]")
    assert answered(large) == [("accepted", "f_accepted")]


def test_a_batch_applies_the_deadlines_of_the_closures_that_its_events_name_and_of_no_other():
    timed_out = ("closed_failure", "system_timeout_synthesized")
    other = event("opportunity_created", eventAt=at(120))
    own = event("postback", eventAt=at(120))
    assert closures(replayed(sent(0, event("ad_filled")), sent(120, other)))["ref|ra"] == ("open", None)
    assert closures(replayed(sent(0, event("ad_filled")), sent(120, own)))["ref|ra"] == timed_out
    assert closures(replayed(sent(0, event("ad_filled")), sent(119.999999, own)))["ref|ra"] == ("open", None)
    assert closures(replayed(sent(0, event("ad_filled")), tick(120)))["ref|ra"] == timed_out


def test_a_line_that_goes_back_in_time_bills_the_click_that_the_live_engine_billed():
    """Seen with two writers on PostgreSQL: the lines of one process stood between those of another (F24)."""
    lines = [
        sent(0, event("ad_filled"), event("click")),
        sent(120.002, event("ad_filled", "other", renderAttemptId="rb"), batch="b2"),
        sent(119.999, event("impression", eventAt=at(119)), batch="b3"),
    ]
    for group in (None, [3], [1, 2], [2, 1]):
        assert billed(replayed(*lines, group=group)) == ["ref|ra|billable_click", "ref|ra|billable_impression"]


def test_a_refused_batch_brings_no_event_and_so_applies_no_deadline():
    assert closures(replayed(sent(0, event("ad_filled")), sent(120, schemaVersion="9")))["ref|ra"] == ("open", None)


def test_what_was_applied_stays_when_a_later_line_has_an_earlier_instant():
    lines = [sent(0, event("ad_filled")), tick(120), sent(50, event("impression"))]
    output = replayed(*lines)
    assert [fact["recordStatus"] for fact in output.attribution if fact["eventType"] == "failure"] == ["superseded"]
    assert replayed(*lines, group=[3]) == output


def test_more_overdue_closures_than_one_commit_takes_are_all_closed():
    lines = [
        sent(0, *[event("ad_filled", f"e{n}.{i}", renderAttemptId=f"{n}.{i}") for i in range(100)], batch=f"b{n}")
        for n in range(25)
    ]
    output = replayed(*lines, tick(120))
    assert {state for state, _ in closures(output).values()} == {"closed_failure"}
    assert len(output.closures) == 2500


def test_a_tick_closes_however_many_are_overdue_in_bounded_bites(monkeypatch: pytest.MonkeyPatch):
    lines = [
        *[sent(n, event("ad_filled", f"e{n}", renderAttemptId=f"r{n}"), batch=f"a{n}") for n in range(10)],
        sent(11, event("click", renderAttemptId="r3"), batch="b2"),
        tick(300),
        sent(301, event("impression", eventAt=at(300), renderAttemptId="r3"), batch="b3"),
    ]
    at_once = replayed(*lines)
    applied: list[int] = []

    def counted(*args: Any, **options: Any) -> Any:
        answers = commit(*args, **options)
        applied.extend(one.applied for one in answers if isinstance(one, Ticked))
        return answers

    monkeypatch.setattr("patra.attribution.replay.DUE_BATCH_SIZE", 3)
    monkeypatch.setattr("patra.attribution.replay.commit", counted)
    assert replayed(*lines, group=[1, 1000]) == at_once
    assert applied == [3, 3, 3, 2, 0]  # ten closures, and the click that waited
    assert {source for _, source in closures(at_once).values()} == {"system_timeout_synthesized", "impression"}


def test_the_answer_keeps_the_order_of_the_request_and_says_what_it_comes_to():
    good, bad = event("opportunity_created", "g"), event("view", "b")
    overall = {
        "accepted_all": sent(0, good),
        "rejected_all": sent(0, bad, None),
        "partial_success": sent(0, good, bad),
    }
    for expected, line in overall.items():
        assert replayed(line).acks[0]["overallStatus"] == expected
    assert replayed(sent(0, good), sent(1, good)).acks[1]["overallStatus"] == "partial_success"
    assert replayed(sent(0, good, good)).acks[0]["overallStatus"] == "partial_success"
    ack = replayed(sent(5, bad, good, None)).acks[0]
    assert list(ack) == ["batchId", "receivedAt", "overallStatus", "ackItems"]
    assert (ack["batchId"], ack["receivedAt"]) == ("b1", at(5))
    assert [(item["eventIndex"], item["eventId"]) for item in ack["ackItems"]] == [(0, "b"), (1, "g"), (2, None)]
    frozen = ["eventId", "eventIndex", "ackStatus", "ackReasonCode", "retryable", "serverEventKey"]
    assert list(ack["ackItems"][0]) == [*frozen, "extensions"]
    assert list(ack["ackItems"][1]) == frozen
    assert {item["retryable"] for item in ack["ackItems"]} == {False}


def test_the_same_request_is_answered_the_same_on_a_fresh_store():
    line = sent(0, event("impression"), terminal(), event("click", idempotencyKey="?"), event("view"), 7)
    assert replayed(line).acks == replayed(line).acks


def test_a_log_can_be_replayed_onto_a_store_that_replayed_before():
    db = fresh()
    replay([sent(0, event("ad_filled"))], db)
    output = replay([sent(1, event("impression"))], db)
    assert closures(output) == {"ref|ra": ("closed_success", "impression")}
    db.close()
