"""The reference client against a scripted endpoint and against the real one: §3.8.6, §3.8.7, §3.8.8."""

import gzip
import json
import socket
import struct
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from patra.attribution.app_keys import add_key
from patra.client import Ack, Answer, Batch, Client, QueuedEvent, _decode_body
from tests.contract.attribution.test_http import House, fresh_event, house

__all__ = ["house"]

Script = list[Any]


class Endpoint:
    """Answers with what stands in the script: a status, a status with headers, or ACKs by reason code."""

    def __init__(self) -> None:
        self.script: Script = []
        self.batches: list[dict[str, Any]] = []
        self.encodings: list[str | None] = []
        self.routes: list[str] = []

    def answer(self, batch: dict[str, Any]) -> tuple[int, dict[str, str], bytes]:
        step = self.script.pop(0) if self.script else {}
        if isinstance(step, tuple):
            status, headers, body = step
            named = {"batchId": batch["batchId"], **body} if isinstance(body, dict) else body
            return status, headers, json.dumps(named).encode()
        items = []
        for index, event in enumerate(batch["events"]):
            status, code, retryable = step.get(event["eventId"], ("accepted", "f_accepted", False))
            items.append(
                {
                    "eventId": event["eventId"],
                    "eventIndex": index,
                    "ackStatus": status,
                    "ackReasonCode": code,
                    "retryable": retryable,
                    "serverEventKey": "fe_",
                }
            )
        return 200, {}, json.dumps({"batchId": batch["batchId"], "ackItems": items}).encode()


@contextmanager
def endpoint() -> Iterator[tuple[Endpoint, str]]:
    state = Endpoint()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            raw = self.rfile.read(int(self.headers["Content-Length"]))
            encoding = self.headers.get("Content-Encoding")
            batch = json.loads(gzip.decompress(raw) if encoding == "gzip" else raw)
            state.batches.append(batch)
            state.encodings.append(encoding)
            state.routes.append(self.headers.get("Patra-Route", ""))
            status, headers, body = state.answer(batch)
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield state, f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def sending(script: Script, count: int) -> tuple[Endpoint, list[Answer], list[float]]:
    """Send so many events through the script; gives what arrived, what was answered, and the pauses in between."""
    answers: list[Answer] = []
    pauses: list[float] = []
    with endpoint() as (state, url):
        state.script = script
        client = Client(url, app_id="app", on_answer=answers.append, sleep=pauses.append)
        for number in range(count):
            assert client.add({"eventId": f"e{number}", "pad": "x" * 50})
        client.flush()
        client.close()
    return state, answers, pauses


def test_all_requests_of_a_client_say_the_same_route_and_other_clients_another():
    first, second = (sending([(503, {}, b""), (200, {}, b"")], 150)[0] for _ in range(2))
    assert len(first.routes) > 2  # attempts of two batches
    assert {len(route) for route in first.routes} == {32}
    assert len({*first.routes}) == len({*second.routes}) == 1
    assert first.routes[0] != second.routes[0]


def ids(batch: dict[str, Any]) -> list[str]:
    return [event["eventId"] for event in batch["events"]]


def test_events_go_out_in_order_in_batches_of_at_most_100():
    state, answers, _ = sending([], 250)
    assert [len(batch["events"]) for batch in state.batches] == [100, 100, 50]
    assert [i for batch in state.batches for i in ids(batch)] == [f"e{n}" for n in range(250)]
    assert len({batch["batchId"] for batch in state.batches}) == 3
    assert state.encodings == ["gzip"] * 3
    assert len(answers) == 250


def test_a_batch_never_grows_past_what_the_server_takes():
    answers: list[Answer] = []
    with endpoint() as (state, url):
        client = Client(url, app_id="app", on_answer=answers.append, sleep=lambda seconds: None)
        for number in range(5):
            client.add({"eventId": f"e{number}", "pad": "x" * 400_000})
        client.flush()
        client.close()
    assert [ids(batch) for batch in state.batches] == [["e0", "e1"], ["e2", "e3"], ["e4"]]


def test_exactly_the_rejected_and_retryable_items_are_sent_again_under_the_same_batch():
    again = ("rejected", "f_store_unavailable", True)
    script = [
        {
            "e1": again,
            "e3": again,
            "e2": ("rejected", "f_event_time_invalid", False),
            "e0": ("duplicate", "f_dedup_committed_duplicate", False),
        },
        {"e3": again},
    ]
    state, answers, _ = sending(script, 5)
    assert [ids(batch) for batch in state.batches] == [["e0", "e1", "e2", "e3", "e4"], ["e1", "e3"], ["e3"]]
    assert len({batch["batchId"] for batch in state.batches}) == 1
    assert [batch["retrySequence"] for batch in state.batches] == [0, 1, 2]
    assert [(a.event["eventId"], a.status) for a in answers] == [
        ("e0", "duplicate"),
        ("e2", "rejected"),
        ("e4", "accepted"),
        ("e1", "accepted"),
        ("e3", "accepted"),
    ]


def test_when_the_server_cannot_now_the_whole_batch_is_sent_again_after_retry_after():
    script = [
        (503, {"Retry-After": "7"}, {"code": "f_intake_overloaded"}),
        (429, {}, {}),
        (500, {}, {}),
        (200, {}, {"odd": 1}),
    ]
    state, answers, pauses = sending(script, 2)
    assert [ids(batch) for batch in state.batches] == [["e0", "e1"]] * 5
    assert len({batch["batchId"] for batch in state.batches}) == 1
    assert pauses[0] == 7.0
    assert 0.5 <= pauses[1] <= 1.0 < pauses[2] <= 2.0 <= pauses[3] <= 4.0
    assert [a.status for a in answers] == ["accepted"] * 2


def test_retry_after_may_be_a_date_and_what_is_neither_is_not_looked_at():
    later = formatdate(time.time() + 3600, usegmt=True)
    asked = [later, "Mon, 01 Jan 2001 00:00:00 GMT", "0", "soon", "-5", "\xb2", "1.5", "9" * 20, "9" * 400]
    _, answers, pauses = sending([(503, {"Retry-After": text}, {}) for text in asked], 1)
    assert 3000 < pauses[0] <= 3600
    assert all(pause >= 0.25 for pause in pauses[1:3])  # at once would be without end
    assert all(1.0 <= pause <= 60.0 for pause in pauses[3:7])
    assert pauses[7:9] == [3600.0, 3600.0]
    assert [a.status for a in answers] == ["accepted"]


def test_every_attempt_sends_the_event_as_it_was_when_it_was_queued():
    with endpoint() as (state, url):
        state.script = [(503, {}, {})]
        client = Client(url, app_id="app", sleep=lambda seconds: None)
        event = {"eventId": "e", "note": "first"}
        client.add(event)
        event["note"] = "changed"
        client.flush()
        client.close()
    assert [batch["events"] for batch in state.batches] == [[{"eventId": "e", "note": "first"}]] * 2


def test_an_event_that_has_no_json_form_is_refused_when_it_is_queued_and_stops_nobody_else():
    with endpoint() as (state, url):
        client = Client(url, app_id="app")
        for bad in ({"eventId": object()}, {"eventId": "\ud800"}):
            with pytest.raises((TypeError, ValueError)):
                client.add(bad)
        client.add({"eventId": "e"})
        client.flush()
        client.close()
    assert [ids(batch) for batch in state.batches] == [["e"]]


def test_an_ack_that_comes_with_503_is_read_item_by_item():
    item = {"eventId": "e", "ackStatus": "rejected", "ackReasonCode": "f_store_unavailable", "serverEventKey": "fe_"}
    items = [{**item, "eventIndex": 0, "retryable": True}, {**item, "eventIndex": 1, "retryable": False}]
    state, answers, pauses = sending([(503, {"Retry-After": "1"}, {"ackItems": items})], 2)
    assert [ids(batch) for batch in state.batches] == [["e0", "e1"], ["e0"]]
    assert pauses[0] == 1.0
    assert [(a.event["eventId"], a.status) for a in answers] == [("e1", "rejected"), ("e0", "accepted")]


def test_nothing_overtakes_a_batch_that_is_retried():
    state, _, _ = sending([(503, {}, {})] * 2, 150)
    assert [ids(batch)[0] for batch in state.batches] == ["e0", "e0", "e0", "e100"]


def test_a_refused_batch_is_given_up_and_its_events_are_told_why():
    state, answers, _ = sending([(400, {}, {"code": "f_batch_schema_unsupported"}), (403, {}, {})], 150)
    assert len(state.batches) == 2
    assert {(a.status, a.code) for a in answers} == {
        ("rejected", "f_batch_schema_unsupported"),
        ("rejected", "http_403"),
    }
    assert len(answers) == 150


@pytest.mark.parametrize("status", [302, 404, 405, 421, 429, 502])
def test_what_says_nothing_about_the_batch_costs_no_event(status: int):
    state, answers, pauses = sending([(status, {}, {"code": "route_unknown"})], 2)
    assert [ids(batch) for batch in state.batches] == [["e0", "e1"]] * 2
    assert [a.status for a in answers] == ["accepted"] * 2
    assert pauses[0] > 0


def test_an_unreachable_server_is_tried_again_and_a_full_queue_says_no():
    client = Client("http://127.0.0.1:9", app_id="app", most_waiting=2)
    assert client.send_once() == 0.0
    assert [client.add({"eventId": str(n)}) for n in range(3)] == [True, True, False]
    assert 0.25 <= client.send_once() <= 0.5
    assert 0.5 <= client.send_once() <= 1.0


def test_the_client_and_the_server_understand_each_other(house: House):
    key = house.run(lambda tx: add_key(tx, "shop", 1))
    answers: list[Answer] = []
    client = Client(house.url, app_id="shop", key=key, on_answer=answers.append)
    events = [fresh_event("opportunity_created", f"o{n}", opportunityKey=f"opp{n}") for n in range(120)]
    for event in [*events, fresh_event("view", "v")]:
        client.add(event)
    client.flush()
    client.close()
    assert [a.status for a in answers] == ["accepted"] * 120 + ["rejected"]
    assert answers[-1].code == "f_event_type_unsupported"
    assert all(a.server_event_key for a in answers)


def test_an_event_that_no_batch_can_carry_is_answered_without_being_sent():
    answers: list[Answer] = []
    with endpoint() as (state, url):
        client = Client(url, app_id="app", on_answer=answers.append, sleep=lambda _: None)
        for name, size in (("first", 10), ("large", 2_000_000), ("last", 10)):
            client.add({"eventId": name, "pad": "x" * size})
        client.flush()
        client.close()
    assert [(a.event["eventId"], a.status, a.code) for a in answers] == [
        ("first", "accepted", "f_accepted"),
        ("large", "rejected", "f_body_too_large"),
        ("last", "accepted", "f_accepted"),
    ]
    assert [ids(batch) for batch in state.batches] == [["first"], ["last"]]


def test_the_ack_of_another_batch_or_of_other_places_answers_nothing():
    item = {"eventId": "e0", "ackStatus": "accepted", "ackReasonCode": "f_accepted", "retryable": False}
    foreign = {"batchId": "another", "ackItems": [{**item, "eventIndex": 0, "serverEventKey": "fe_"}]}
    with endpoint() as (state, url):
        answers: list[Answer] = []
        pauses: list[float] = []
        client = Client(url, app_id="app", on_answer=answers.append, sleep=pauses.append)
        client.add({"eventId": "e0"})
        state.script = [(200, {}, foreign), (200, {}, {"batchId": 1}), (200, {}, []), (200, {}, None)]
        client.flush()
        client.close()
    assert [a.code for a in answers] == ["f_accepted"]
    assert [len(batch["events"]) for batch in state.batches] == [1] * 5
    assert len({batch["batchId"] for batch in state.batches}) == 1
    wrong = [{**item, "eventIndex": 1}, {**item, "eventIndex": 0, "ackStatus": "maybe"}]
    for one in wrong:
        body = json.dumps({"batchId": "b", "ackItems": [{**one, "serverEventKey": "fe_"}]}).encode()
        ack = _decode_body(body, Ack)
        assert ack is None or not ack.answers(Batch(batch_id="b", events=[QueuedEvent({}, b"{}")]))


@pytest.mark.parametrize("asked", ["0", formatdate(0, usegmt=True), "1 jan 99999999999999999999 1:1:1 gmt", "-1", ""])
def test_a_server_that_says_to_come_back_at_once_is_not_asked_without_a_pause(asked: str):
    _, answers, pauses = sending([(503, {"Retry-After": asked}, {})] * 3, 1)
    assert [a.code for a in answers] == ["f_accepted"]
    assert all(pause >= 0.25 for pause in pauses[:3])


def test_one_who_fails_to_listen_costs_nobody_else_their_answer_and_no_event_is_sent_again():
    told: list[str] = []

    def listen(answer: Answer) -> None:
        told.append(answer.event["eventId"])
        if answer.event["eventId"] in {"e1", "e4"}:
            raise RuntimeError("not now")

    with endpoint() as (state, url):
        client = Client(url, app_id="app", on_answer=listen, sleep=lambda _: None)
        for number in range(5):
            client.add({"eventId": f"e{number}"})
        for _ in range(2):
            with pytest.raises(RuntimeError):
                client.flush()
        client.flush()
        client.close()
    assert told == [f"e{number}" for number in range(5)]
    assert len(state.batches) == 1


class Rough(Endpoint):
    """Does to the connection what stands in the script, and answers in the end; keeps what it took to be decided."""

    def __init__(self) -> None:
        super().__init__()
        self.taken: list[str] = []


@contextmanager
def rough(steps: Iterable[str]) -> Iterator[tuple[Rough, str]]:
    state = Rough()
    left = iter(steps)
    over = threading.Event()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self):
            step = next(left, "answer")
            if step == "reset before":
                self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                self.close_connection = True
                return
            raw = self.rfile.read(int(self.headers["Content-Length"]))
            batch = json.loads(gzip.decompress(raw) if self.headers.get("Content-Encoding") == "gzip" else raw)
            state.taken += [f"{batch['batchId']} {event['eventId']}" for event in batch["events"]]
            _, _, body = state.answer(batch)
            if step == "garbage":
                self.wfile.write(b"\x16\x03\x01 this is not HTTP\r\n\r\n")
                self.close_connection = True
                return
            if step == "silence":
                over.wait(30)
                return
            self.send_response(503 if step == "page" else 200)
            if step == "gzip":
                body = gzip.compress(body)
                self.send_header("Content-Encoding", "gzip")
            if step == "no gzip":
                self.send_header("Content-Encoding", "gzip")
            if step == "page":
                body = b"<html>502"
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if step == "drip":
                with suppress(OSError):
                    while not over.wait(0.02):
                        self.wfile.write(b" ")
            self.wfile.write(body[: len(body) // 2] if step == "half" else body)
            self.close_connection = step == "half"

        def log_message(self, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.handle_error = lambda *_: None  # type: ignore[method-assign]
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield state, f"http://127.0.0.1:{server.server_port}"
    finally:
        over.set()
        server.shutdown()
        thread.join()
        server.server_close()


ROUGH = ["reset before", "garbage", "silence", "half", "page", "no gzip", "gzip", "drip"]


@pytest.mark.parametrize("steps", [ROUGH, ROUGH[::-1], [one for one in ROUGH for _ in range(2)]])
def test_whatever_becomes_of_connections_and_answers_every_event_is_answered_once_and_in_order(steps: list[str]):
    answers: list[str] = []
    with rough(steps) as (state, url):
        client = Client(
            url, app_id="app", on_answer=lambda a: answers.append(a.event["eventId"]), timeout=0.3, sleep=lambda _: None
        )
        for number in range(250):
            client.add({"eventId": f"e{number}"})
        client.flush()
        client.close()
    assert answers == [f"e{number}" for number in range(250)]
    first = list(dict.fromkeys(state.taken))  # as a server sees them that knows keys it had before
    assert [one.split()[1] for one in first] == answers
