"""The client with its queue on disk: killed, throttled, refused, and never counted twice."""

import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from patra.client import Answer, Client
from patra.durable_client import DurableClient, EventQueue, QueueInUseError, QueueUnwritableError, _Sender
from tests.contract.attribution.test_client import endpoint
from tests.contract.attribution.test_http import House, fresh_event, house

__all__ = ["house"]

NOWHERE = "http://127.0.0.1:9"
LONG = 60.0
"""Seconds within which everything is answered on any machine."""

KILLED = """
import json, signal, sys
from patra.durable_client import DurableClient
client = DurableClient(sys.argv[1], app_id="app", path=sys.argv[2], exit_seconds=0)
for event in json.load(sys.stdin):
    assert client.add(event)
print("added", flush=True)
signal.pause()
"""


def killed_after_adding(url: str, path: Path, text: str) -> None:
    """Another process adds events and is killed."""
    process = subprocess.Popen(
        [sys.executable, "-c", KILLED, url, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(text)
    process.stdin.close()
    assert process.stdout.readline() == "added\n"
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    process.stdout.close()


def test_events_of_a_killed_app_are_sent_when_it_starts_again(house: House, tmp_path: Path):

    events = [fresh_event("impression", f"i{n}", renderAttemptId=f"ra{n}") for n in range(120)]
    killed_after_adding(NOWHERE, tmp_path / "queue", json.dumps(events))
    answers: list[Answer] = []
    client = DurableClient(house.url, app_id="app", path=tmp_path / "queue", on_answer=answers.append)
    assert client.flush(LONG)
    assert client.close()
    assert [(one.event["eventId"], one.code) for one in answers] == [(f"i{n}", "f_accepted") for n in range(120)]
    assert len(house.get("/attribution/facts/billable?limit=1000")["items"]) == 120


def test_a_batch_keeps_its_id_over_a_kill_so_that_nothing_counts_twice(tmp_path: Path):

    with endpoint() as (state, url):
        state.script = [(503, {"Retry-After": "3600"}, {})] * 2
        killed_after_adding(url, tmp_path / "queue", json.dumps([{"eventId": "a"}]))
        killed_after_adding(url, tmp_path / "queue", json.dumps([{"eventId": "b"}]))
        state.script = []
        client = DurableClient(url, app_id="app", path=tmp_path / "queue")
        assert client.flush(LONG)
        client.close()
        first = [batch["batchId"] for batch in state.batches if batch["events"][0]["eventId"] == "a"]
        assert len(set(first)) == 1
        assert [event["eventId"] for batch in state.batches[-2:] for event in batch["events"]] == ["a", "b"]


def test_retryable_items_stay_on_disk_and_the_others_go(tmp_path: Path):
    queue = EventQueue(tmp_path / "queue")
    for name in (b"1", b"2", b"3"):
        queue.append(name)
    found = queue.oldest_batch()
    assert found is not None
    batch_id, events = found
    queue.remove([events[0], events[2]])
    queue.append(b"4")
    queue.close()
    again = EventQueue(tmp_path / "queue")
    assert len(again) == 2
    left = again.oldest_batch()
    assert left is not None
    assert (left[0], [event.body for event in left[1]]) == (batch_id, [b"2"])
    again.remove(left[1])
    rest = again.oldest_batch()
    assert rest is not None
    assert rest[0] != batch_id
    again.close()


def test_flush_is_bounded_and_what_is_left_stays(tmp_path: Path):
    client = DurableClient(NOWHERE, app_id="app", path=tmp_path / "queue")
    assert client.add({"eventId": "a"})
    assert client.flush(0.05) is False
    assert client.close(0.05) is False
    assert client.add({"eventId": "b"}) is False
    left = EventQueue(tmp_path / "queue")
    assert len(left) == 1
    left.close()


def test_a_full_queue_refuses_and_a_file_in_use_too(tmp_path: Path):
    client = DurableClient(NOWHERE, app_id="app", path=tmp_path / "queue", max_waiting_events=1)
    assert [client.add({"eventId": "a"}), client.add({"eventId": "b"})] == [True, False]
    assert client.waiting == 1
    with pytest.raises(QueueInUseError):
        EventQueue(tmp_path / "queue")
    client.close(0)


def test_one_who_fails_to_listen_does_not_stop_the_thread(tmp_path: Path):
    told = threading.Event()

    def listen(answer: Answer) -> None:
        if answer.event["eventId"] == "a":
            raise RuntimeError("deaf")
        told.set()

    with endpoint() as (_, url):
        client = DurableClient(url, app_id="app", path=tmp_path / "queue", on_answer=listen)
        client.add({"eventId": "a"})
        client.add({"eventId": "b"})
        assert told.wait(LONG)
        assert client.close(LONG)


@pytest.mark.parametrize("status", [401, 403])
def test_a_refused_key_costs_no_event_and_the_right_one_sends_them_under_the_same_batch(status: int, tmp_path: Path):
    answers: list[Answer] = []
    with endpoint() as (state, url):
        queue = EventQueue(tmp_path / "queue")
        queue.append(b'{"eventId": "a"}')
        sender = _Sender(queue, url, app_id="app", key="old", on_answer=answers.append)
        state.script = [(status, {}, {"code": "f_app_key_missing"}), (503, {}, "")]
        assert sender.send_once() > 0
        assert (answers, len(queue), sender.key_refusal) == ([], 1, "f_app_key_missing")
        sender.send_once()
        assert sender.key_refusal == ""
        sender.close()
        queue.close()
        client = DurableClient(url, app_id="app", path=tmp_path / "queue", key="new", on_answer=answers.append)
        assert client.flush(LONG)
        assert client.close()
        assert client.key_refusal == ""
    assert [(one.event["eventId"], one.status) for one in answers] == [("a", "accepted")]
    assert len({batch["batchId"] for batch in state.batches}) == 1


def test_an_answer_is_told_once_though_the_disk_is_full_when_it_comes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    answers: list[Answer] = []
    with endpoint() as (_, url):
        queue = EventQueue(tmp_path / "queue")
        queue.append(b'{"eventId": "a"}')
        sender = _Sender(queue, url, app_id="app", on_answer=answers.append)

        def full(events: object) -> None:
            raise QueueUnwritableError("full")

        with monkeypatch.context() as disk:
            disk.setattr(queue, "remove", full)
            with pytest.raises(QueueUnwritableError):
                sender.send_once()
        while not sender.idle:
            sender.send_once()
        sender.close()
        queue.close()
    assert [(one.event["eventId"], one.status) for one in answers] == [("a", "accepted")]


def test_the_plain_clients_flush_is_bounded_too():
    client = Client(NOWHERE, app_id="app", sleep=lambda _: None)
    client.add({"eventId": "a"})
    assert client.flush(0.0) is False
    with endpoint() as (_, url):
        other = Client(url, app_id="app")
        other.add({"eventId": "a"})
        assert other.flush(LONG) is True


FULL_DISK = """
import resource, signal, sys
from patra.durable_client import DurableClient, EventQueue
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
queue = EventQueue(sys.argv[1])
event = b'{"eventId": "' + b"x" * 2000 + b'"}'
for _ in range(50):
    queue.append(event)
_, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
def disk(size):
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
def failed(work):
    try:
        work()
    except OSError as error:
        return type(error).__name__
disk(4096)
batch_id, events = None, []
print(failed(lambda: queue.append(event)), len(queue))
print(failed(queue.oldest_batch), len(queue))
disk(hard)
batch_id, events = queue.oldest_batch()
disk(4096)
print(failed(lambda: queue.remove(events)), len(queue))
disk(hard)
queue.append(event)
assert queue.oldest_batch()[0] == batch_id
queue.remove(events)
print(len(events), len(queue))
queue.close()
client = DurableClient("http://127.0.0.1:9", app_id="app", path=sys.argv[1], exit_seconds=0)
disk(4096)
print(client.add({"eventId": "x" * 9000}))
disk(hard)
print(client.add({"eventId": "y"}), client.waiting)
"""


def test_a_full_disk_refuses_events_loses_none_and_is_forgotten_once_there_is_room(tmp_path: Path):
    command = [sys.executable, "-c", FULL_DISK, str(tmp_path / "queue")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LONG, check=False)
    assert done.stdout.splitlines() == [
        "QueueUnwritableError 50",
        "QueueUnwritableError 50",
        "QueueUnwritableError 50",
        "50 1",
        "False",
        "True 2",
    ], done.stderr
