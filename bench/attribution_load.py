"""Send batches to `POST /events` from a process of its own, closed loop or open loop, and say how it went as JSON.

Closed loop: every connection sends its next batch when the last was answered; gives the throughput. Open loop: batches
are due on a fixed schedule whatever the server does, and a latency is counted from the scheduled instant, so that a
server that stalls cannot hide the batches that it made wait. Plain asyncio protocols and prepared bodies: the sender
has to cost little, since it shares the machine with what it measures.
"""

import argparse
import asyncio
import itertools
import subprocess
import sys
import time
from collections import Counter, deque
from pathlib import Path
from typing import cast

import msgspec
import uvloop

from bench.attribution_traffic import APPS, filled, mark, templates

ACCEPTED = b'"ackStatus":"accepted"'
DUPLICATE = b'"ackStatus":"duplicate"'
PATIENCE = 120.0


class Outcome(msgspec.Struct, kw_only=True):
    """What came back. Latencies are in milliseconds."""

    seconds: float
    batches: int
    accepted: int
    duplicate: int
    statuses: dict[str, int]
    p50: float
    p99: float
    worst: float
    late: int
    """Open loop: batches that were due and had no answer when the time was up."""

    @property
    def rate(self) -> float:
        return self.accepted / self.seconds


class Connection(asyncio.Protocol):
    """One keep-alive connection: a request at a time, its answer read as far as it must be."""

    def __init__(self, number: int, bodies: list[bytes], load: "Load") -> None:
        self.number = number
        self.bodies = bodies
        self.load = load
        self.sent = 0
        self.mark = mark(number, 0)
        self.began = 0.0
        self.transport: asyncio.Transport
        self._parts: list[bytes] = []
        self._missing = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)

    def send(self, began: float) -> None:
        self.began = began
        before, self.mark = self.mark, mark(self.number, self.sent + 1)
        body = filled(self.bodies[self.sent % len(self.bodies)], self.mark, before)
        self.sent += 1
        self.transport.writelines((self.load.head % len(body), body))

    def data_received(self, data: bytes) -> None:
        if not self._parts:
            head, end, rest = data.partition(b"\r\n\r\n")
            if not end:
                raise RuntimeError("the head of an answer came in pieces")
            lower = head.lower()
            at = lower.index(b"content-length:") + 15
            self._missing = int(lower[at:].split(b"\r\n", 1)[0]) - len(rest)
            self._parts = [data]
        else:
            self._parts.append(data)
            self._missing -= len(data)
        if self._missing <= 0:
            answer = b"".join(self._parts) if len(self._parts) > 1 else data
            self._parts = []
            self.load.answered(self, answer)

    def connection_lost(self, exc: Exception | None) -> None:
        del exc
        self.load.lost()


class Load:
    """The connections, the answers they got, and when which of them sends."""

    def __init__(self, host: str, path: str, offset: int, key: str) -> None:
        auth = f"Authorization: Bearer {key}\r\n" if key else ""
        self.head = (
            f"POST {path} HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\n{auth}Content-Length: "
        ).encode() + b"%d\r\n\r\n"
        self.offset = offset
        self.connections: list[Connection] = []
        self.free: deque[Connection] = deque()
        self.due: deque[float] = deque()
        self.latencies: list[float] = []
        self.accepted = self.duplicate = 0
        self.statuses: Counter[str] = Counter()
        self.closed_loop = True
        self.counting = self.sending = True
        self.count_from = 0.0

    async def connect(self, host: str, port: int, count: int) -> None:
        bodies = [templates(app) for app in APPS]
        loop = asyncio.get_running_loop()
        for number in range(count):
            _, connection = await loop.create_connection(
                lambda number=number: Connection(self.offset + number, bodies[number % len(bodies)], self), host, port
            )
            self.connections.append(connection)
            self.free.append(connection)

    def answered(self, connection: Connection, answer: bytes) -> None:
        now = time.perf_counter()
        if self.counting and connection.began >= self.count_from:
            self.latencies.append(now - connection.began)
            self.accepted += answer.count(ACCEPTED)
            self.duplicate += answer.count(DUPLICATE)
            self.statuses[answer[9:12].decode()] += 1
        if self.closed_loop and self.sending:
            connection.send(now)
        elif self.due:
            connection.send(self.due.popleft())
        else:
            self.free.append(connection)

    def lost(self) -> None:
        if self.sending:
            self.statuses["lost"] += 1

    async def closed(self, seconds: float, warm: float) -> float:
        """Everybody sends as fast as answers come; gives how long was counted."""
        self.counting = warm <= 0
        now = time.perf_counter()
        while self.free:
            self.free.popleft().send(now)
        await asyncio.sleep(warm)
        self.counting = True
        began = time.perf_counter()
        await asyncio.sleep(seconds)
        self.counting = self.sending = False
        return time.perf_counter() - began

    async def open(self, seconds: float, warm: float, rate: float) -> tuple[float, int]:
        """A batch every 1/rate seconds; gives how long that was, and what was never answered."""
        self.closed_loop = False
        began = time.perf_counter() + 0.05
        self.count_from = began + warm
        planned = int((warm + seconds) * rate)
        for number in range(planned):
            at = began + number / rate
            while (wait := at - time.perf_counter()) > 0:  # noqa: ASYNC110  a schedule, not a wait for something
                await asyncio.sleep(wait if wait > 0.0005 else 0)
            if self.free:
                self.free.popleft().send(at)
            else:
                self.due.append(at)
        until = time.perf_counter() + PATIENCE
        self.sending = False
        while len(self.free) < len(self.connections) and time.perf_counter() < until:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        return time.perf_counter() - began - warm, int(seconds * rate) - len(self.latencies)


async def _main(options: argparse.Namespace) -> Outcome:
    load = Load(f"{options.host}:{options.port}", options.path, options.offset, options.key)
    await load.connect(options.host, options.port, options.connections)
    late = 0
    if options.rate:
        seconds, late = await load.open(options.seconds, options.warm, options.rate)
    else:
        seconds = await load.closed(options.seconds, options.warm)
    latencies = sorted(load.latencies) or [0.0]
    return Outcome(
        seconds=seconds,
        batches=len(load.latencies),
        accepted=load.accepted,
        duplicate=load.duplicate,
        statuses=dict(load.statuses),
        p50=1000 * latencies[len(latencies) // 2],
        p99=1000 * latencies[min(len(latencies) - 1, int(len(latencies) * 0.99))],
        worst=1000 * latencies[-1],
        late=max(late, 0),
    )


_senders = itertools.count(1)


def run(
    url: str,
    *,
    seconds: float,
    warm: float = 2.0,
    connections: int = 16,
    rate: float = 0.0,
    path: str = "/events",
    key: str = "",
) -> Outcome:
    """Run a sender in a process of its own against a server; `rate` in batches a second makes it open loop."""
    host, port = url.removeprefix("http://").split(":")
    command = [sys.executable, "-m", "bench.attribution_load", "--host", host, "--port", port, "--path", path]
    command += ["--seconds", str(seconds), "--warm", str(warm), "--connections", str(connections)]
    command += ["--rate", str(rate), "--offset", str(next(_senders) * 512), "--key", key]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=Path(__file__).parent.parent)
    if done.returncode:
        raise RuntimeError(f"the sender failed:\n{done.stderr[-2000:]}")
    return msgspec.json.decode(done.stdout, type=Outcome)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--path", default="/events")
    parser.add_argument("--key", default="")
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--warm", type=float, default=2)
    parser.add_argument("--connections", type=int, default=16)
    parser.add_argument("--rate", type=float, default=0, help="batches a second; 0 is closed loop")
    parser.add_argument("--offset", type=int, default=0, help="number of the first connection: keys differ by it")
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        outcome = runner.run(_main(parser.parse_args()))
    sys.stdout.write(msgspec.json.encode(outcome).decode())


if __name__ == "__main__":
    main()
