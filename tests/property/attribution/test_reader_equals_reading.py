"""What comes back from the process that reads is what reading here would have given, whatever was sent (F2, F11)."""

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from patra.attribution.intake.batch import Batch, read_batch
from patra.attribution.intake.envelope import Envelope, as_read
from patra.attribution.intake.parse_worker import answer, batch_of
from patra.kernel.clock import parse_instant
from tests.property.attribution.logs import logs
from tests.support.examples import examples
from tests.unit.attribution.said import T0, envelope, event


def everything(batch: Batch) -> tuple[object, ...]:
    found = batch.envelope
    named = (found.batch_id, found.app_id) if isinstance(found, Envelope) else found
    sent = [as_read(one) for one in batch.as_sent()]
    return named, batch.events, batch.rejected, sent, batch.received_at, batch.body


def same(body: bytes, received_at: int) -> bytes:
    said = answer(body, received_at)
    assert everything(batch_of(said, body, received_at)) == everything(read_batch(body, received_at))
    return said


@settings(max_examples=examples(30))
@given(logs())
def test_a_batch_comes_back_from_the_reader_as_it_would_be_read_here(lines):
    for line in lines:
        if "batch" in line:
            same(msgspec.json.encode(line["batch"]), parse_instant(line["receivedAt"]) or 0)


@given(st.binary(max_size=200))
def test_rubbish_is_refused_by_the_reader_as_it_is_here(body):
    same(body, T0)


def test_a_batch_that_cannot_be_read_does_not_end_the_reader(monkeypatch):
    def fails(*_):
        raise RecursionError

    monkeypatch.setattr("patra.attribution.intake.parse_worker.read_batch", fails)
    assert answer(b"{}", T0) == b""


HUGE = b'{"n": 123456789012345678901234567890}'
HALF = b'{"t": "\\ud800"}'


@pytest.mark.parametrize("extension", [HUGE, HALF])
def test_what_the_reader_cannot_say_is_read_by_who_asked(extension):
    checked = msgspec.json.encode(envelope(event("impression", extensions={"x": 1})))
    assert same(checked.replace(b'{"x":1}', extension), T0)  # it goes on as it will be stored
    rejected = msgspec.json.encode(envelope(event("impression", eventType="other", extensions={"x": 1})))
    assert same(rejected, T0)
    assert not same(rejected.replace(b'{"x":1}', extension), T0)
