"""The intake with fair shares: the app that overdoes it gets 503 with `Retry-After`, another is served."""

import threading
from pathlib import Path
from typing import Any

import msgspec

from patra.app.configuration.engine_settings import AttributionSettings
from patra.app.configuration.settings import Settings, StoreSettings, WebSettings
from patra.app.wiring import build
from patra.attribution.app_keys import add_key
from patra.attribution.decision.ack import BatchAck
from patra.attribution.intake.fair_share import AppLimits
from patra.attribution.writer import APP_OVERDOES, Engine, Limits, Overloaded
from patra.kernel.db import Database, migrate
from patra.kernel.testing import ManualClock
from patra.web.asgi import app
from patra.web.uvicorn_server import serving
from tests.contract.attribution.test_http import House, fresh_event
from tests.unit.attribution.said import PACKAGES, T0, envelope, event


def test_places_in_the_queue_are_given_back_when_a_batch_is_answered(database: Database):
    migrate(database, PACKAGES)
    limits = Limits(waiting=2, apps=AppLimits(queue_share=0.5), announce=0)
    engine = Engine(database, ManualClock(T0), limits=limits)
    for _ in range(3):  # one place, used again and again
        reply = engine.submit(b"{}", app_id="app")
        assert not isinstance(reply, Overloaded)
        answered = threading.Event()
        reply.add_done_callback(lambda _, answered=answered: answered.set())  # after the place was given back
        assert answered.wait(30)
    engine.close()


def test_an_app_that_fills_its_share_of_the_queue_is_told_to_wait_and_another_is_served(database: Database):
    migrate(database, PACKAGES)
    limits = Limits(waiting=4, writers=1, apps=AppLimits(queue_share=0.5), announce=0)
    inside, go_on = threading.Event(), threading.Event()

    def hand(*_: object) -> None:
        inside.set()
        assert go_on.wait(60)

    engine = Engine(database, ManualClock(T0), limits=limits, hand=hand)

    def submit(name: str, number: int) -> Any:
        return engine.submit(
            msgspec.json.encode(envelope(event("click"), app=name, batch=f"{name}{number}")), app_id=name
        )

    try:
        taken = [submit("greedy", 0)]
        assert inside.wait(30)  # the writer stands still: what comes now waits
        taken.append(submit("greedy", 1))
        assert submit("greedy", 2) == Overloaded(retry_after=1, why=APP_OVERDOES)
        taken += [submit("modest", 0), submit("modest", 1)]
    finally:
        go_on.set()
    assert [type(one.result(30)) for one in taken] == [BatchAck] * 4
    engine.close()


def test_who_sends_too_fast_is_told_to_wait_alone(tmp_path: Path):
    settings = Settings(
        store=StoreSettings(url=f"sqlite:///{tmp_path}/patra.db"),
        web=WebSettings(port=0),
        attribution=AttributionSettings(app_rates={"greedy": 0.001}),
    )
    patra = build(settings)
    keys = {name: patra.db.run(lambda tx, name=name: add_key(tx, name, 0)) for name in ("greedy", "modest")}
    with serving(app(patra), settings.web) as served:
        house = House(patra, served.url)

        def send(name: str, event_id: str) -> tuple[int, str | None]:
            batch = envelope(fresh_event("click", event_id), app=name, batch=event_id)
            answer = house.post(batch, Authorization=f"Bearer {keys[name]}")
            return answer.status, answer.headers.get("Retry-After")

        assert send("greedy", "g1") == (200, None)
        status, wait = send("greedy", "g2")
        assert status == 503
        assert wait is not None
        assert 900 <= int(wait) <= 1000
        assert [send("modest", f"m{n}") for n in range(3)] == [(200, None)] * 3
    patra.close(5)
