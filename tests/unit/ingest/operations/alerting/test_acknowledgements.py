"""Silences and acknowledgements: which notifications alerts and notes lead to."""

from patra.ingest.operations.alerting.acknowledgements import Note, NoteKind, acknowledgement, is_owed, telling
from patra.ingest.operations.alerting.alert_state import Alert, AlertState
from patra.ingest.operations.alerting.alerts import Severity
from patra.kernel.clock import HOUR, MINUTE

NOW = 1_800_000_000_000_000


def alert(state: AlertState = AlertState.FIRING, since: int = NOW, fired: int | None = NOW) -> Alert:
    return Alert(
        rule="fatal",
        subject="crossref/works",
        severity=Severity.CRITICAL,
        state=state,
        value=1,
        text="401",
        since=since,
        seen_at=NOW,
        fired_at=fired,
        over_at=NOW if state is AlertState.OVER else None,
    )


def silent(until: int, held: int | None = None) -> dict[tuple[str, NoteKind], Note]:
    note = Note(by="ada", at=NOW - HOUR, until=until, why="maintenance", held_at=held)
    return {("fatal|crossref/works", NoteKind.SILENCE): note}


def known(at: int, until: int | None = None) -> dict[tuple[str, NoteKind], Note]:
    return {("fatal|crossref/works", NoteKind.ACK): Note(by="ada", at=at, until=until, why="")}


def test_what_is_not_silent_is_told():
    found = telling([alert()], [alert()], {}, NOW)
    assert (found.told, found.held) == ((alert(),), ())


def test_what_is_silent_is_held_back_with_the_instant_of_its_firing():
    found = telling([alert()], [alert()], silent(NOW + HOUR), NOW)
    assert (found.told, found.held) == ((), (("fatal|crossref/works", NOW),))


def test_what_still_fires_when_its_silence_ends_is_told_once():
    notes = silent(NOW + HOUR, held=NOW)
    assert telling([], [alert()], notes, NOW + HOUR - 1).told == ()
    later = telling([], [alert()], notes, NOW + HOUR)
    assert (later.told, later.held) == ((alert(),), (("fatal|crossref/works", None),))
    assert not is_owed(silent(NOW + HOUR), alert(), NOW + HOUR)


def test_that_it_is_over_is_not_told_when_nobody_heard_that_it_fired():
    over = alert(AlertState.OVER)
    in_silence = telling([over], [over], silent(NOW + HOUR, held=NOW), NOW + MINUTE)
    after = telling([over], [over], silent(NOW + HOUR, held=NOW), NOW + 2 * HOUR)
    assert (in_silence.told, after.told) == ((), ())
    assert after.held == (("fatal|crossref/works", None),)


def test_a_firing_that_was_held_back_earlier_does_not_make_another_one_owed():
    assert not is_owed(silent(NOW - MINUTE, held=NOW - HOUR), alert(), NOW)


def test_an_acknowledgement_holds_for_its_episode_and_no_longer_than_it_says():
    assert acknowledgement(known(NOW), alert(), NOW) is not None
    assert acknowledgement(known(NOW - 1), alert(), NOW) is None
    assert acknowledgement(known(NOW, NOW + HOUR), alert(), NOW + HOUR) is None
    assert acknowledgement(known(NOW), alert(AlertState.OVER), NOW) is None
