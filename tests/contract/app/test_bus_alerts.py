"""Alerts of the bus: a freeze, dead letters and a group that is behind fire once, end once, and are shown like others."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner
from structlog.testing import capture_logs

from patra.app.bridges.bus_alerts import bus_readings
from patra.app.components.bus import bus_of
from patra.app.configuration.settings import Settings, StoreSettings
from patra.app.doctor import own_checks
from patra.app.wiring import build, packages
from patra.bus import operations
from patra.bus.catalogue.versions import parse_range
from patra.bus.publishing.envelope import DELIVER_AT
from patra.bus.store import groups, stream_control
from patra.bus.store.stream_control import FreezeTold
from patra.bus.transports import webhook
from patra.cli.main import cli
from patra.ingest.operations.alerting.acknowledgements import silence_alert
from patra.ingest.operations.alerting.bus_rules import ALL_RULES
from patra.ingest.operations.alerting.monitor import Watch, alerts
from patra.kernel.clock import HOUR, MINUTE, SECOND, format_instant
from patra.kernel.db import Database, migrate
from patra.kernel.db.queries import statement
from patra.kernel.testing import ManualClock
from tests.contract.bus.conftest import TYPES
from tests.contract.bus.site import Site
from tests.unit.bus.making import envelope

CHANNEL = "test.alerts"
TOLD = statement("told", "SELECT payload FROM krn_outbox WHERE channel = :channel ORDER BY seq")


class Watched(Site):
    """A bus and the watch that looks at it."""

    def __init__(self, db: Database) -> None:
        super().__init__(db, TYPES, clock=ManualClock())
        migrate(db, packages())
        self.effects_table()
        self.watch = Watch(db, self.clock, channels=[CHANNEL], handed_in=bus_readings(5 * MINUTE))

    def look(self, later: int = SECOND) -> list[tuple[str, str, str]]:
        """The notifications of a check that much later."""
        self.clock.advance(later)
        before = len(self.told())
        self.watch.run_once()
        return self.told()[before:]

    def told(self) -> list[tuple[str, str, str]]:
        rows = self.db.read(lambda tx: tx.fetch(TOLD, {"channel": CHANNEL}))
        found = [msgspec.json.decode(bytes(payload)) for (payload,) in rows]
        return [(one["alert"], one["state"], one["subject"]) for one in found]

    def firing(self) -> list[dict[str, Any]]:
        return [one for one in alerts(self.db, self.clock.now()) if one["state"] == "FIRING"]


@pytest.fixture
def watched(database: Database) -> Iterator[Watched]:
    return Watched(database)


def test_a_freeze_fires_once_and_ends_once(watched: Watched) -> None:
    assert watched.look() == []
    watched.run(operations.freeze, "thing.happened", by="ann", reason="broken")
    assert watched.look() == [("bus_frozen", "FIRING", "thing.happened")]
    assert watched.look() == []
    (shown,) = watched.firing()
    assert (shown["severity"], shown["detail"]) == ("critical", "b_operator: broken")
    assert "patra bus thaw" in shown["advice"]
    watched.run(operations.thaw, "thing.happened", by="ann")
    assert watched.look() == [("bus_frozen", "OVER", "thing.happened")]
    assert watched.look() == []
    (over,) = alerts(watched.db, watched.clock.now())
    assert (over["state"], over["advice"]) == ("OVER", ""), "there is nothing to do"


def test_a_type_that_several_stores_froze_is_one_alert_with_every_reason(watched: Watched) -> None:
    def told(store: str, reason: str) -> None:
        freeze = FreezeTold(store_id=store, event_type="thing.happened", reason=reason, since=1)
        watched.db.run(lambda tx: stream_control.take(tx, freeze, watched.clock.now()))

    watched.run(operations.freeze, "thing.happened", by="ann", reason="broken")
    told("there", "b_operator: lost")
    told("elsewhere", "b_operator: lost")
    assert watched.look() == [("bus_frozen", "FIRING", "thing.happened")]
    assert watched.look() == []
    (shown,) = watched.firing()
    assert shown["detail"] == "b_operator: lost; b_operator: broken"
    told("there", "")
    told("elsewhere", "")
    assert watched.look() == []
    assert watched.firing()[0]["detail"] == "b_operator: broken"
    watched.run(operations.thaw, "thing.happened", by="ann")
    assert watched.look() == [("bus_frozen", "OVER", "thing.happened")]


def test_dead_letters_fire_once_for_their_type_and_end_with_the_last(watched: Watched) -> None:
    watched.listen("one")
    watched.fail = {"bad"}
    first, second = envelope(payload={"key": "bad"}), envelope(payload={"key": "bad"})
    for made in (first, second):
        watched.publish(made)
        for _ in range(4):
            watched.pump()
            watched.clock.advance(MINUTE)
        if made is first:
            assert watched.look() == [("bus_dead_letters", "FIRING", "thing.happened")]
    assert watched.look() == []
    assert watched.firing()[0]["value"] == 2
    watched.run(operations.discard, "one", [first.event_id], by="ann", reason="useless")
    assert watched.look() == []
    watched.run(operations.discard, "one", [second.event_id], by="ann", reason="useless")
    assert watched.look() == [("bus_dead_letters", "OVER", "thing.happened")]
    assert watched.look() == []


def test_a_group_that_is_behind_fires_after_two_looks_and_ends_when_it_has_caught_up(watched: Watched) -> None:
    watched.listen("one")
    watched.publish(envelope())
    assert watched.look(5 * MINUTE) == []  # not more than is expected
    assert watched.look() == []  # the first look that is more
    assert watched.look(30 * SECOND) == [("bus_lag", "FIRING", "one")]
    assert watched.look() == []
    watched.pump()
    assert watched.look() == []  # it has to stay calm for five minutes
    assert watched.look(5 * MINUTE) == [("bus_lag", "OVER", "one")]
    assert watched.look() == []


def test_an_endpoint_that_the_bus_suspended_fires_once_and_ends_when_it_is_resumed(watched: Watched) -> None:
    wanted = {"thing.happened": parse_range(">=1")}
    for name in ("shop", "other"):
        watched.run(webhook.add, name, "https://shop.example/hook", wanted, by="ann")
    watched.publish(envelope())
    watched.look(6 * MINUTE)
    fired = [("bus_lag", "FIRING", "webhook.other"), ("bus_lag", "FIRING", "webhook.shop")]
    assert watched.look(MINUTE) == fired
    watched.db.run(lambda tx: groups.suspend(tx, "webhook.shop", "b_gone: said 410 to ann", watched.clock.now()))
    assert watched.look() == [("bus_suspended", "FIRING", "webhook.shop")]  # before its lag counts as over
    assert watched.look(5 * MINUTE) == [("bus_lag", "OVER", "webhook.shop")]
    shown = {one["alert"]: one for one in watched.firing()}["bus_suspended"]
    assert (shown["severity"], "b_gone" in shown["detail"], "ann" in shown["detail"]) == ("warning", True, False)
    assert "patra bus groups resume" in shown["advice"]
    watched.run(operations.pause, "webhook.other", by="ann")  # an operator's pause is no suspension
    assert watched.look() == []
    watched.run(operations.resume, "webhook.shop", by="ann")
    assert watched.look() == [("bus_suspended", "OVER", "webhook.shop")]
    assert watched.look() == []


def test_what_could_not_be_handled_yet_is_no_lag(watched: Watched) -> None:
    watched.listen("one")
    later = format_instant(watched.clock.now() + HOUR)
    watched.publish(envelope(extensions={DELIVER_AT: later}))
    assert [watched.look(20 * MINUTE) for _ in range(3)] == [[], [], []]  # the hour is over
    assert watched.look(4 * MINUTE) == []
    watched.look(2 * MINUTE)
    assert watched.look(MINUTE) == [("bus_lag", "FIRING", "one")]
    watched.run(operations.pause, "one", by="ann")  # an operator knows why
    watched.look()
    assert watched.look(5 * MINUTE) == [("bus_lag", "OVER", "one")]


def test_an_event_that_no_process_handles_is_lag_however_often_it_is_put_off(watched: Watched) -> None:
    watched.listen("one")
    watched.publish(envelope())
    watched.bus.consumers.clear()
    for _ in range(4):
        watched.pump("one")
        watched.look(2 * MINUTE)
    assert [one["alert"] for one in watched.firing()] == ["bus_lag"]


def test_an_alert_of_the_bus_is_silenced_like_any_other(watched: Watched) -> None:
    watched.run(operations.freeze, "thing.happened", by="ann", reason="broken")
    watched.look()
    now = watched.clock.now()
    watched.db.run(
        lambda tx: silence_alert(tx, "bus_frozen", "thing.happened", by="ann", why="known", until=now + HOUR, now=now)
    )
    watched.run(operations.thaw, "thing.happened", by="ann")
    assert watched.look() == []
    assert len({rule.name for rule in ALL_RULES}) == len(ALL_RULES)


def test_the_watch_of_a_patra_reads_the_bus_and_the_command_shows_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"sqlite:///{tmp_path / 'patra.db'}"
    patra = build(Settings(store=StoreSettings(url=url)), clock := ManualClock())
    bus = bus_of(patra).bus
    patra.db.run(lambda tx: operations.freeze(tx, bus, "task.submitted", by="ann", reason="broken"))
    with capture_logs() as lines:
        next(loop for loop in patra.loops if loop.name == "ingest.watch").run_once()
    assert [line["event"] for line in lines] == ["bus_alert"], "an alert is logged under the engine that it is about"
    (check,) = [one for one in own_checks(patra) if "bus_frozen" in one.found]
    assert (check.name, check.advice) == ("alerts", "`patra alerts` says what to do")
    clock.advance(12 * MINUTE)
    (check,) = [one for one in own_checks(patra) if "bus_frozen" in one.found]
    assert check.found.endswith("; last checked 12 min ago; no process runs the alerts loop now")
    patra.close(5)
    monkeypatch.setenv("PATRA_STORE_URL", url)
    monkeypatch.chdir(tmp_path)
    shown = CliRunner().invoke(cli, ["alerts", "--json"])
    assert [(one["alert"], one["state"]) for one in msgspec.json.decode(shown.stdout)] == [("bus_frozen", "FIRING")]
    assert "no process runs the alerts loop now: `patra up`" in shown.stderr
