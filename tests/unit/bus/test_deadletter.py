"""C§6, B5: dead letters, replay, freeze: the rules without a store."""

import pytest

from patra.bus.deadletter import DEAD_LETTER, DeadLetter, L, On, letter_id, violations
from patra.bus.delivery import DELIVERY
from patra.bus.envelope import encode
from patra.bus.freeze import F, Freeze, after_backlog, by_hand, thawed
from patra.bus.reasons import R
from patra.bus.replay import confirmation, discharge, plan
from tests.unit.bus.making import THING_2, catalogue, envelope, event_type, version

NOW = 5_000


def letter(state=L.OPEN, body=None):
    made = envelope()
    return DeadLetter(
        letter_id=letter_id("group", made.event_id), group="group", event_id=made.event_id, event_type=made.event_type, event_version="1.0",
        producer="Maker", tenant_id="tenant", trace_id="trace", correlation_id="c", error_code="code", error_detail="", reason=R.RETRIES_EXHAUSTED,
        attempts=6, first_failed_at=1, last_failed_at=2, state=state, replay_count=0, replayed_by=None, replayed_at=None, closed_by=None,
        closed_at=None, close_reason=None, envelope=(body or encode(made)).decode(),
    )  # fmt: skip


def test_c6_the_record_has_every_field_that_is_asked_for():
    assert {
        "event_id",
        "event_type",
        "producer",
        "trace_id",
        "error_code",
        "first_failed_at",
        "last_failed_at",
        "replay_count",
        "replayed_by",
    } <= set(DeadLetter.__struct_fields__)


def test_dead_letters_never_expire():
    over = {L.REPLAYED, L.DISCARDED}
    assert {(was, to) for (was, on), to in DEAD_LETTER.edges.items() if on is not On.FAILED_AGAIN and to in over} == {
        (L.REPLAYING, L.REPLAYED),
        (L.OPEN, L.DISCARDED),
    }
    assert {to for (was, _), to in DEAD_LETTER.edges.items() if was in over} == {L.OPEN}  # dead once more
    assert {on for (_, on) in DEAD_LETTER.edges} == {On.REPLAY, On.HANDLED, On.FAILED_AGAIN, On.DISCARD}
    assert DELIVERY.initial == "ready"


@pytest.mark.parametrize(
    ("confirm", "by", "expected"),
    [
        ("group", "ann", None),
        ("Group", "ann", R.REPLAY_UNCONFIRMED),
        ("", "ann", R.REPLAY_UNCONFIRMED),
        ("group", " ", R.REPLAY_UNNAMED),
    ],
)
def test_c6_1_a_replay_is_confirmed_by_a_person_and_by_name(confirm, by, expected):
    found = confirmation("group", confirm, by)
    assert (found.code if found else None) == expected


@pytest.mark.parametrize(
    ("by", "why", "expected"),
    [("ann", "test data", None), ("", "x", R.REPLAY_UNNAMED), ("ann", " ", R.DISCARD_UNEXPLAINED)],
)
def test_a_discard_has_a_name_and_a_reason(by, why, expected):
    found = discharge(by, why)
    assert (found.code if found else None) == expected


def test_only_open_letters_are_replayed_or_discarded():
    open_, busy = letter(), letter(L.REPLAYING)
    found = plan([open_, busy, letter(L.DISCARDED)], On.REPLAY, R.REPLAY_ASKED, NOW)
    assert [m.subject for m in found.moves] == [open_.letter_id]
    assert {r.code for r in found.refused.values()} == {R.LETTER_NOT_OPEN}
    assert len(plan([open_, busy], On.DISCARD, R.DISCARDED, NOW).moves) == 1


def test_a_letter_is_compared_with_the_schema_as_it_stands_today():
    types = catalogue(event_type(versions=[version("1.0", THING_2)]))
    assert [(v.place, v.rule) for v in violations(types, letter())] == [("/payload/number", "required")]
    assert violations(catalogue(), letter()) == []
    assert violations(catalogue(event_type("other.happened")), letter())[0].rule == R.VERSION_UNKNOWN
    assert violations(catalogue(), letter(body=b"{}"))[0].rule == R.ENVELOPE_MISSING


def test_c6_a_backlog_over_the_threshold_freezes_and_one_at_it_does_not():
    calm = Freeze(event_type="t.t")
    assert not after_backlog(calm, 100, 100, NOW).frozen
    frozen = after_backlog(calm, 101, 100, NOW)
    assert frozen.state is F.FROZEN
    assert "101" in frozen.reason
    assert frozen.reason.startswith(R.BACKLOG_OVER)


def test_b5_emptying_the_backlog_lifts_the_freeze_and_nothing_less_does():
    frozen = after_backlog(Freeze(event_type="t.t"), 101, 100, NOW)
    assert after_backlog(frozen, 1, 100, NOW).frozen
    assert not after_backlog(frozen, 0, 100, NOW).frozen
    assert after_backlog(frozen, 0, 100, NOW).reason == R.BACKLOG_EMPTY


def test_b5_an_operators_word_lifts_it_and_is_not_undone_by_the_next_letter():
    frozen = after_backlog(Freeze(event_type="t.t"), 101, 100, NOW)
    lifted = thawed(frozen, 101, "ann", NOW)
    assert not lifted.frozen
    assert lifted.reason == R.OPERATOR
    assert not after_backlog(lifted, 102, 100, NOW).frozen
    assert after_backlog(lifted, 202, 100, NOW).frozen
    emptied = after_backlog(lifted, 0, 100, NOW)
    assert after_backlog(emptied, 101, 100, NOW).frozen


def test_b5_what_an_operator_froze_only_an_operator_thaws():
    frozen = by_hand(Freeze(event_type="t.t"), "ann", "broken producer", NOW)
    assert after_backlog(frozen, 0, 100, NOW) == frozen
    assert after_backlog(frozen, 500, 100, NOW) == frozen
    assert not thawed(frozen, 0, "ann", NOW).frozen
