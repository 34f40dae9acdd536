"""A server whose batches are read by a child process answers as one that reads them itself, child or no child."""

import os
import signal
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from patra.attribution.intake.envelope import Refused
from patra.attribution.intake.parse_worker import Reader, batch_of
from patra.attribution.writer import Engine, Limits, NotTaken
from patra.kernel.clock import parse_instant
from patra.kernel.db import Database, migrate
from patra.kernel.testing import ManualClock
from tests.contract.attribution.test_engine import answer, body, codes
from tests.property.attribution.logs import seeded_log
from tests.support.faults import FaultyDatabase
from tests.unit.attribution.said import PACKAGES, T0, event, fresh


def engine_on(database: Database, *, reader: bool = True) -> Engine:
    migrate(database, PACKAGES)
    return Engine(database, ManualClock(T0), limits=Limits(writers=1, reader=reader))


@pytest.fixture
def engine(database: Database) -> Iterator[Engine]:
    found = engine_on(database)
    answer(found.submit(body(event("opportunity_created"), batch="first")))  # starts the reader
    assert found._reader is not None
    assert found._reader._came.poll(60_000)
    assert found._reader.ready
    yield found
    found.close()


def child(engine: Engine) -> Any:
    assert engine._reader is not None
    return engine._reader._child


def test_the_answers_are_those_of_a_server_that_reads_by_itself(engine: Engine):
    log = [line for line in seeded_log(3, lines=40, events=12) if "batch" in line]
    sent = [(msgspec.json.encode(line["batch"]), parse_instant(line["receivedAt"]) or 0) for line in log]
    apart = [answer(one) for one in [engine.submit(batch, at) for batch, at in sent]]
    alone = engine_on(fresh(), reader=False)
    answer(alone.submit(body(event("opportunity_created"), batch="first")))
    assert apart == [answer(alone.submit(batch, at)) for batch, at in sent]
    alone.close()


def test_when_the_reader_dies_nothing_is_lost_and_the_server_reads_by_itself(engine: Engine):
    os.kill(child(engine).pid, signal.SIGSTOP)
    waiting = [engine.submit(body(event("interaction", f"i{n}"), batch=f"b{n}")) for n in range(20)]
    child(engine).kill()
    child(engine).wait()
    later = [engine.submit(body(event("interaction", f"i{n}"), batch=f"b{n}")) for n in range(20, 40)]
    assert [codes(answer(one)) for one in waiting + later] == [["f_accepted"]] * 40
    assert engine._reader is not None
    assert not engine._reader.alive


def test_a_reader_that_falls_silent_is_given_up(engine: Engine, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("patra.attribution.intake.parse_worker.PATIENCE_SECONDS", 0.05)
    child(engine).send_signal(signal.SIGSTOP)
    waiting = [engine.submit(body(event("interaction", f"i{n}"), batch=f"b{n}")) for n in range(5)]
    assert [codes(answer(one)) for one in waiting] == [["f_accepted"]] * 5
    assert child(engine).wait(30) == -signal.SIGKILL


def test_a_body_that_does_not_fit_the_pipe_of_a_silent_reader_is_answered(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("patra.attribution.intake.parse_worker.PATIENCE_SECONDS", 0.05)
    child(engine).send_signal(signal.SIGSTOP)
    large = body(event("interaction", "i", extensions={"x": "x" * 3_000_000}), batch="large")
    assert codes(answer(engine.submit(large))) == ["f_accepted"]


def test_a_signal_to_all_processes_leaves_the_reader_to_its_server(engine: Engine):
    answer(engine.submit(body(event("impression"), batch="second")))
    for number in (signal.SIGINT, signal.SIGTERM):
        child(engine).send_signal(number)
    assert codes(answer(engine.submit(body(event("interaction"), batch="third")))) == ["f_accepted"]
    assert engine._reader is not None
    assert engine._reader.alive
    engine.close()
    assert child(engine).returncode == 0


def test_a_batch_of_another_app_than_the_keys_is_refused_when_it_was_read(engine: Engine):
    found = answer(engine.submit(body(event("click"), batch="b"), app_id="another"))
    assert isinstance(found, Refused)
    assert found.batch_id == "b"


def test_when_the_store_fails_every_event_is_named_in_the_answer():
    counting = FaultyDatabase(fresh())
    engine = engine_on(counting)
    answer(engine.submit(body(event("ad_filled"), batch="first")))
    counting._fail_at = counting.steps + 1
    failed = answer(engine.submit(body(event("click", "c1"), event("view", "v1"))))
    engine.close()
    assert isinstance(failed, NotTaken)
    assert failed.ack is not None
    assert [item.eventId for item in failed.ack.ackItems] == ["c1", "v1"]


def test_where_no_process_can_be_started_the_server_reads_by_itself(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("sys.executable", "/nowhere/python")
    engine = engine_on(fresh())
    taken = [answer(engine.submit(body(event("interaction", f"i{n}"), batch=f"b{n}"))) for n in range(3)]
    engine.close()
    assert [codes(one) for one in taken] == [["f_accepted"]] * 3


def test_until_the_reader_is_ready_the_server_reads_by_itself(database: Database, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(Reader, "ready", property(lambda self: False))
    monkeypatch.setattr(Reader, "send", lambda *_: pytest.fail("nothing is sent to a child that has not begun"))
    engine = engine_on(database)
    taken = [answer(engine.submit(body(event("interaction", f"i{n}"), batch=f"b{n}"))) for n in range(3)]
    engine.close()
    assert [codes(one) for one in taken] == [["f_accepted"]] * 3


def test_a_reader_that_ends_before_it_began_is_never_ready(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("sys.executable", "/bin/false")
    reader = Reader()
    reader._child.wait(30)
    assert not reader.ready
    assert not reader.alive
    reader.close()


def test_an_answer_is_there_or_not_without_waiting_for_it():
    reader = Reader()
    reader._came.poll(30_000)
    assert reader.ready
    assert not reader.has_answer
    sent = [body(event("click"), batch=name) for name in ("b1", "b2")]
    for one in sent:
        reader.send(one, T0)
    while not reader.has_answer:
        reader._came.poll(30_000)
    found = [batch_of(reader.receive(), one, T0) for one in sent]
    assert [one.envelope.batch_id for one in found] == ["b1", "b2"]
    assert not reader.has_answer
    reader.close()
    assert reader.has_answer  # there is nobody to wait for


def test_a_reader_whose_server_is_gone_ends():
    reader = Reader()
    reader._up.close()
    reader.send(body(event("click")), T0)
    assert reader._child.wait(30) == 0
