"""100,000 messages in 1,000 groups, four relays killed with -9: delivered in order within each group, none lost.

Producers append in transactions that also count what they sent, and are killed too. The receiver, outside of all of them,
writes down what arrives, in order of arrival, and now and then says that it cannot take a message. At the end every group
must have arrived whole and in order; what arrived again must be a repetition of a key that had arrived.
"""

import json
import os
import random
import socket
import socketserver
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

from patra.kernel import outbox
from patra.kernel.clock import SECOND, SystemClock
from patra.kernel.db import Tx, migrate, open_database
from patra.kernel.db.queries import statement
from patra.kernel.outbox import Delivered, Message, Outcome, Pending, Policy, Relay, Retry, Untried
from patra.kernel.retry import DelayTable
from tests import services
from tests.prove.crew import Crew, Life

CHANNEL = "proof"
GROUPS = 1_000
POLICY = Policy(delays=DelayTable((SECOND // 20, SECOND // 5)), window=None, hold=3 * SECOND, groups=64, per_group=32)
TABLE = "CREATE TABLE prf_sent (group_no BIGINT PRIMARY KEY, count BIGINT NOT NULL)"
SENT = statement("sent", "SELECT group_no, count FROM prf_sent")
COUNT = statement(
    "count_sent",
    "INSERT INTO prf_sent (group_no, count) SELECT group_no, count FROM rows WHERE true "
    "ON CONFLICT (group_no) DO UPDATE SET count = excluded.count",
    "group_no int, count int",
)
WAITING = statement("waiting", "SELECT count(*) FROM krn_outbox")


def main() -> str:
    with services.postgres(durable=True) as url:
        figures = prove(url, messages=100_000, relays=4, every=0.4, at_least=30)
    with tempfile.TemporaryDirectory() as folder:
        small = prove(f"sqlite:///{Path(folder) / 'patra.db'}", messages=50_000, relays=1, every=0.5)
    return f"PostgreSQL {figures}; SQLite, one process: {small}"


def prove(
    url: str,
    *,
    messages: int,
    relays: int,
    every: float,
    groups: int = GROUPS,
    at_least: int = 5,
    most_kills: int | None = None,
    life: int = 20,
) -> str:
    db = open_database(url)
    migrate(db, ["patra.kernel"])
    db.run(lambda tx: tx.script(TABLE))
    each = messages // groups
    started = time.monotonic()
    with Receiver() as receiver:
        if relays == 1:  # embedded: one process does everything
            jobs = [["everything", f"{life}", url, receiver.port, f"0:{groups}", f"{each}"]]
        else:
            half = groups // 2
            jobs = [["relay", f"{life}", url, receiver.port] for _ in range(relays)]
            jobs += [["produce", f"{life}", url, part, f"{each}"] for part in (f"0:{half}", f"{half}:{groups}")]
        with Crew("tests.prove.kernel_outbox", jobs, most_kills=most_kills) as crew:

            def missing() -> str:
                sent = sum(count for _, count in db.read(lambda tx: tx.fetch(SENT)))
                waiting = db.read(lambda tx: tx.fetch(WAITING))[0][0]
                done = sent == each * groups and not waiting
                return "" if done else f"{sent} of {messages} sent, {waiting} waiting, {len(receiver.arrived)} arrived"

            crew.kill_until(missing, every=every)
        seconds = time.monotonic() - started
        repeated = check(receiver.arrived, groups, each)
    db.close()
    assert crew.kills >= at_least, f"only {crew.kills} kills: nothing is proved"
    return (
        f"{messages} messages, {groups} groups, {relays} relays, {crew.kills} kills, {seconds:.0f} s "
        f"({receiver.declined} declined, {repeated} arrived again)"
    )


def check(arrived: Sequence[str], groups: int, each: int) -> int:
    """Whole, in order, and nothing new among the repetitions; gives how many arrived again."""
    last = [0] * groups
    repeated = 0
    for key in arrived:
        group, number = map(int, key.split(":"))
        if number <= last[group]:
            repeated += 1
        else:
            assert number == last[group] + 1, f"group {group}: {number} arrived after {last[group]}"
            last[group] = number
    short = [group for group, number in enumerate(last) if number != each]
    assert not short, f"groups {short[:10]} did not arrive whole"
    return repeated


class Receiver:
    """Takes batches of keys over a socket, a JSON list a line, and answers with one code a key."""

    def __init__(self) -> None:
        self.arrived: list[str] = []
        self.declined = 0
        self._lock = threading.Lock()
        self._chance = random.Random(7)
        receiver = self

        class Handler(socketserver.StreamRequestHandler):
            def handle(self) -> None:
                for line in self.rfile:
                    if not line.endswith(b"\n"):
                        break  # the sender died in the middle of it
                    self.wfile.write(json.dumps(receiver.take(json.loads(line))).encode() + b"\n")

        class Server(socketserver.ThreadingTCPServer):
            daemon_threads = True

            def handle_error(self, *_: Any) -> None:
                """Senders die: that is what this is about."""

        self._server = Server(("127.0.0.1", 0), Handler)
        self.port = str(self._server.server_address[1])

    def take(self, keys: list[str]) -> list[str]:
        answers: list[str] = []
        waiting: set[str] = set()
        with self._lock:
            for key in keys:
                group = key.partition(":")[0]
                if group in waiting:
                    answers.append("untried")
                elif self._chance.random() < 0.002:
                    waiting.add(group)
                    self.declined += 1
                    answers.append("retry")
                else:
                    self.arrived.append(key)
                    answers.append("ok")
        return answers

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()


class Sender:
    """The delivery of a relay: one line to the receiver, one line back."""

    def __init__(self, port: str) -> None:
        self._file = socket.create_connection(("127.0.0.1", int(port))).makefile("rwb")

    def __call__(self, messages: Sequence[Pending]) -> list[Outcome]:
        self._file.write(json.dumps([message.key for message in messages]).encode() + b"\n")
        self._file.flush()
        known: dict[str, Outcome] = {"ok": Delivered(), "retry": Retry("busy"), "untried": Untried()}
        return [known[code] for code in json.loads(self._file.readline())]


class Producer:
    """Sends the next messages of random groups of its own, and counts them in the same transaction."""

    def __init__(self, url: str, part: str, each: str) -> None:
        self.db = open_database(url, wait=60)
        first, end = map(int, part.split(":"))
        self.groups = range(first, end)
        self.each = int(each)
        self.chance = random.Random(os.getpid())

    def run_once(self) -> bool:
        return self.db.run(self._send)

    def _send(self, tx: Tx) -> bool:
        sent = dict.fromkeys(self.groups, 0)
        sent |= {group: count for group, count in tx.fetch(SENT) if group in sent}
        short = [group for group, count in sent.items() if count < self.each]
        if not short:
            return False
        messages: list[Message] = []
        for group in self.chance.choices(short, k=self.chance.randint(1, 400)):
            if sent[group] < self.each:
                sent[group] += 1
                messages.append(Message(group=f"{group}", key=f"{group}:{sent[group]}", payload=b"x" * 100))
        outbox.append(tx, CHANNEL, messages, SystemClock().now())
        changed = {int(message.group) for message in messages}
        tx.execute(COUNT, rows=[(group, sent[group]) for group in sorted(changed)])
        return True


def relay(url: str, port: str) -> Relay:
    return Relay(open_database(url, wait=60), CHANNEL, Sender(port), POLICY, SystemClock())


def work(job: str, most: str, *arguments: str) -> None:
    life = Life(int(most))
    turn: list[Any] = []
    if job in {"relay", "everything"}:
        url, port, *rest = arguments
        runs = relay(url, port).run_once
        turn.append(lambda: not runs().idle)
        arguments = (url, *rest)
    if job in {"produce", "everything"}:
        turn.append(Producer(*arguments).run_once)
    while True:
        busy = [run() for run in turn]
        if any(busy):
            life.turn()
        else:
            time.sleep(0.02)


if __name__ == "__main__":
    work(*sys.argv[1:])
