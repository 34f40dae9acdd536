"""C§6, B5: dead letters, replay, freeze: the rules without a store."""

import pytest

from patra.bus.catalogue.reasons import Reason
from patra.bus.consuming.consumer import trouble
from patra.bus.consuming.dead_letter import (
    DEAD_LETTER,
    DeadLetter,
    DeadLetterState,
    DeadLetterTransition,
    error_place,
    letter_id,
    violations,
)
from patra.bus.consuming.delivery_order import DELIVERY
from patra.bus.consuming.freeze import Freeze, FreezeState, after_backlog, by_hand, thaw_freeze
from patra.bus.consuming.replay import confirmation, discharge, plan
from patra.bus.publishing.envelope import encode
from tests.unit.bus.making import THING_2, catalogue, envelope, event_type, version

NOW = 5_000


def letter(state=DeadLetterState.OPEN, body=None):
    made = envelope()
    return DeadLetter(
        letter_id=letter_id("group", made.event_id), group="group", event_id=made.event_id, event_type=made.event_type, event_version="1.0",
        producer="Maker", tenant_id="tenant", trace_id="trace", correlation_id="c", error_code="code", error_detail="", reason=Reason.RETRIES_EXHAUSTED,
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
    over = {DeadLetterState.REPLAYED, DeadLetterState.DISCARDED}
    assert {
        (was, to)
        for (was, on), to in DEAD_LETTER.edges.items()
        if on is not DeadLetterTransition.FAILED_AGAIN and to in over
    } == {
        (DeadLetterState.REPLAYING, DeadLetterState.REPLAYED),
        (DeadLetterState.OPEN, DeadLetterState.DISCARDED),
    }
    assert {to for (was, _), to in DEAD_LETTER.edges.items() if was in over} == {DeadLetterState.OPEN}  # dead once more
    assert {on for (_, on) in DEAD_LETTER.edges} == {
        DeadLetterTransition.REPLAY,
        DeadLetterTransition.HANDLED,
        DeadLetterTransition.FAILED_AGAIN,
        DeadLetterTransition.DISCARD,
    }
    assert DELIVERY.initial == "ready"


@pytest.mark.parametrize(
    ("confirm", "by", "expected"),
    [
        ("group", "ann", None),
        ("Group", "ann", Reason.REPLAY_UNCONFIRMED),
        ("", "ann", Reason.REPLAY_UNCONFIRMED),
        ("group", " ", Reason.REPLAY_UNNAMED),
    ],
)
def test_c6_1_a_replay_is_confirmed_by_a_person_and_by_name(confirm, by, expected):
    found = confirmation("group", confirm, by)
    assert (found.code if found else None) == expected


@pytest.mark.parametrize(
    ("by", "why", "expected"),
    [("ann", "test data", None), ("", "x", Reason.REPLAY_UNNAMED), ("ann", " ", Reason.DISCARD_UNEXPLAINED)],
)
def test_a_discard_has_a_name_and_a_reason(by, why, expected):
    found = discharge(by, why)
    assert (found.code if found else None) == expected


def test_only_open_letters_are_replayed_or_discarded():
    open_, busy = letter(), letter(DeadLetterState.REPLAYING)
    found = plan(
        [open_, busy, letter(DeadLetterState.DISCARDED)], DeadLetterTransition.REPLAY, Reason.REPLAY_ASKED, NOW
    )
    assert [m.subject for m in found.moves] == [open_.letter_id]
    assert {r.code for r in found.refused.values()} == {Reason.LETTER_NOT_OPEN}
    assert len(plan([open_, busy], DeadLetterTransition.DISCARD, Reason.DISCARDED, NOW).moves) == 1


def test_a_letter_is_compared_with_the_schema_as_it_stands_today():
    types = catalogue(event_type(versions=[version("1.0", THING_2)]))
    assert [(v.place, v.rule) for v in violations(types, letter())] == [("/payload/number", "required")]
    assert violations(catalogue(), letter()) == []
    assert violations(catalogue(event_type("other.happened")), letter())[0].rule == Reason.VERSION_UNKNOWN
    assert violations(catalogue(), letter(body=b"{}"))[0].rule == Reason.ENVELOPE_MISSING


def test_c6_a_backlog_over_the_threshold_freezes_and_one_at_it_does_not():
    calm = Freeze(event_type="t.t")
    assert not after_backlog(calm, 100, 100, NOW).is_frozen
    frozen = after_backlog(calm, 101, 100, NOW)
    assert frozen.state is FreezeState.FROZEN
    assert "101" in frozen.reason
    assert frozen.reason.startswith(Reason.BACKLOG_OVER)


def test_b5_emptying_the_backlog_lifts_the_freeze_and_nothing_less_does():
    frozen = after_backlog(Freeze(event_type="t.t"), 101, 100, NOW)
    assert after_backlog(frozen, 1, 100, NOW).is_frozen
    assert not after_backlog(frozen, 0, 100, NOW).is_frozen
    assert after_backlog(frozen, 0, 100, NOW).reason == Reason.BACKLOG_EMPTY


def test_b5_an_operators_word_lifts_it_and_is_not_undone_by_the_next_letter():
    frozen = after_backlog(Freeze(event_type="t.t"), 101, 100, NOW)
    lifted = thaw_freeze(frozen, 101, "ann", NOW)
    assert not lifted.is_frozen
    assert lifted.reason == Reason.OPERATOR
    assert not after_backlog(lifted, 102, 100, NOW).is_frozen
    assert after_backlog(lifted, 202, 100, NOW).is_frozen
    emptied = after_backlog(lifted, 0, 100, NOW)
    assert after_backlog(emptied, 101, 100, NOW).is_frozen


def test_b5_what_an_operator_froze_only_an_operator_thaws():
    frozen = by_hand(Freeze(event_type="t.t"), "ann", "broken producer", NOW)
    assert after_backlog(frozen, 0, 100, NOW) == frozen
    assert after_backlog(frozen, 500, 100, NOW) == frozen
    assert not thaw_freeze(frozen, 0, "ann", NOW).is_frozen


def test_the_place_of_an_error_is_the_last_frame_of_its_traceback() -> None:
    def handler() -> None:
        raise ValueError("not yet")

    with pytest.raises(ValueError, match="not yet") as caught:
        handler()
    told = trouble(caught.value)
    assert error_place(told.traceback) == f"test_dead_letter.py:{handler.__code__.co_firstlineno + 1}"
    assert error_place('  File "C:\\app\\mail.py", line 7, in send') == "mail.py:7"
    assert error_place("") == error_place("the endpoint answered 500") == ""
