"""A Patra in several processes, the servers it stands on, clients that keep every acknowledgement, and the reckoning."""

import itertools
import json
import random
import subprocess
import threading
import time
from collections.abc import Generator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from types import MappingProxyType

import urllib3

from patra.attribution.verify import verify
from patra.bus.catalogue.catalogue import Catalogue
from patra.bus.catalogue.catalogue import load as load_catalogue
from patra.kernel.clock import HOUR, SystemClock, format_instant
from patra.kernel.db import open_database
from patra.kernel.errors import Transient
from tests import services
from tests.e2e.attribution.clients import Answers
from tests.e2e.attribution.store import rows
from tests.e2e.process import PATRA, environment
from tests.prove.attribution_kills import Client, Seen
from tests.prove.balancer import Balancer
from tests.prove.chaos_faults import Proxy, Shim, small_disk, until
from tests.prove.ingest_harvest import LANDED, Way, load, opened, tree, window
from tests.prove.postgres_pair import Pair
from tests.support.hostile_provider import Habits, Provider, crowded, serving

TWICE = "SELECT identity FROM bus_event GROUP BY identity HAVING count(DISTINCT event_id) > 1"
WAY = Way("OFFSET", xml=False, two_phase=False)
HOURS = 48
TIMEOUT = urllib3.Timeout(connect=2, read=20)
SETTINGS = {
    "PATRA_STORE_SILENT_SECONDS": "2",
    "PATRA_WEB_REQUEST_SECONDS": "15",
    "PATRA_WEB_SHUTDOWN_SECONDS": "10",
    "PATRA_LOG_LEVEL": "warning",
    "PATRA_LOG_FORMAT": "json",
}


class World:
    """Everything that may be broken, and what was promised meanwhile."""

    def __init__(
        self,
        stack: ExitStack,
        folder: Path,
        *,
        postgres: bool,
        services_too: bool = True,
        small: bool = False,
        copies: int = 1,
        disk_size: str = "",
        settings: Mapping[str, str] = MappingProxyType({}),
        seed: int = 1,
        lasts: float = 3.0,
    ) -> None:
        """`small`: the API alone, without loops, and only what it does by itself: events and publishing.

        `copies`: so many processes of each kind, the APIs behind a balancer. `disk_size`: of the disk that may be filled.
        """
        self.small, self.copies = small, copies
        self.stack, self.folder, self.random, self.lasts = stack, folder, random.Random(seed), lasts
        self.shim, self.server_shim = _shim(folder, "patra"), _shim(folder, "server")
        self.disk = folder / "disk"
        self.may_fill = stack.enter_context(small_disk(self.disk, disk_size or ("400m" if postgres else "200m")))
        self.pair: Pair | None = None
        self.store_proxy: Proxy | None = None
        self.nats: dict[str, subprocess.Popen[bytes]] = {}
        self.nats_proxy: Proxy | None = None
        self.redis_url = ""
        self.settings = {**SETTINGS, "PATRA_STUDIO_FOLDER": str(folder / "films"), **self.shim.environment, **settings}
        self.url = self._postgres() if postgres else f"sqlite:///{self.disk / 'patra.db'}"
        self.settings["PATRA_STORE_URL"] = self.url
        if services_too:
            self._nats()
            self._redis()
        self.ports = {
            f"{kind}{number}": services.free_port()
            for kind in ("web", "work")
            for number in ("", *range(2, copies + 1))
        }
        self.port = self.ports["web"]
        if copies > 1:
            self.balancer = Balancer([port for name, port in self.ports.items() if name.startswith("web")])
            stack.callback(self.balancer.close)
            self.port = self.balancer.port
        self.address = f"http://127.0.0.1:{self.port}"
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        self.stop = threading.Event()
        self.clients: list[threading.Thread] = []
        self.answers = Answers()
        self.published: dict[str, str] = {}
        self.plans: dict[int, str] = {}
        self.runs: set[str] = set()
        self.trouble: list[str] = []
        if not small:
            self.provider = self._provider()
        stack.callback(self._end)

    # --- what it stands on

    def _postgres(self) -> str:
        self.pair = Pair(self.disk / "primary", self.folder / "standby", self.server_shim.environment)
        self.stack.callback(self.pair.close)
        self.pair.start()
        self.store_proxy = Proxy(self.pair.primary.port)
        self.stack.callback(self.store_proxy.close)
        hosts = f"127.0.0.1:{self.store_proxy.port},127.0.0.1:{self.pair.standby.port}"
        return f"postgresql://postgres@{hosts}/postgres?connect_timeout=2"

    def _redis(self) -> None:
        self._redis_port = services.free_port()
        self.redis_url = self.settings["PATRA_INGEST_REDIS_URL"] = f"redis://127.0.0.1:{self._redis_port}/0"
        self.start_redis()
        self.stack.callback(self._end_redis)

    def _end_redis(self) -> None:
        self.redis.kill()
        self.redis.wait()

    def start_redis(self) -> None:
        """It keeps nothing: one that was killed comes back empty."""
        command = [str(services.BIN / "redis-server"), "--port", str(self._redis_port), "--bind", "127.0.0.1"]
        command += ["--save", "", "--dir", str(self.folder)]
        self.redis = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        until(lambda: services._listens(self._redis_port), "Redis to listen")

    def _nats(self) -> None:
        """Three servers; Patra is configured with one, through a proxy."""
        ports, routes = [services.free_port() for _ in range(3)], [services.free_port() for _ in range(3)]
        others = ",".join(f"nats://127.0.0.1:{port}" for port in routes)
        self._nats_commands = {
            f"n{n}": [
                *(str(services.BIN / "nats-server"), "-a", "127.0.0.1", "-p", str(ports[n]), "-js", "-n", f"n{n}"),
                *("-sd", str(self.folder / f"js{n}"), "--cluster_name", "c", "--routes", others),
                *("--cluster", f"nats://127.0.0.1:{routes[n]}"),
            ]
            for n in range(3)
        }
        for name in self._nats_commands:
            self.start_nats(name)
        self.stack.callback(lambda: [one.kill() for one in self.nats.values()])
        self.nats_proxy = Proxy(ports[0])
        self.stack.callback(self.nats_proxy.close)
        known = [f"nats://127.0.0.1:{port}" for port in (self.nats_proxy.port, *ports[1:])]
        self.settings |= {"PATRA_BUS_NATS_URL": ",".join(known), "PATRA_BUS_NATS_REPLICAS": "3"}

    def start_nats(self, name: str) -> None:
        self.nats[name] = subprocess.Popen(
            self._nats_commands[name], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )

    def _provider(self) -> Provider:
        self.start, end = window(HOURS // 24)
        provider = Provider(crowded(HOURS * 10, self.start, end, crowd=False), Habits(seed=3, fails=20))
        url = self.stack.enter_context(serving(provider))
        with opened(self.url) as db:
            load(db, tree(WAY, url))
        return provider

    # --- Patra

    def up(self) -> None:
        """Whatever of Patra is not running runs."""
        kinds = {"web": ["web"], "work": ["work", "attribution", "bus", "ingest"]}
        commands = {
            name: [*kinds[name.rstrip("0123456789")], "--port", str(port)]
            for name, port in self.ports.items()
            if name.startswith("web") or not self.small
        }
        for name, command in commands.items():
            if name in self.processes and self.processes[name].poll() is None:
                continue
            with (self.folder / f"{name}.log").open("ab") as log:
                self.processes[name] = subprocess.Popen(
                    [*PATRA, *command], cwd=self.folder, env=environment(**self.settings), stdout=log, stderr=log
                )
        try:
            until(lambda: all(map(self.is_healthy, commands)), "Patra to answer")
        except AssertionError as error:
            raise AssertionError(f"{error}: {self.tail()}") from error

    def is_healthy(self, name: str) -> bool:
        url = f"http://127.0.0.1:{self.ports[name]}/health"
        with suppress(urllib3.exceptions.HTTPError):
            return urllib3.request("GET", url, retries=False, timeout=2).status == 200
        return False

    def check_alive(self, what: str) -> None:
        """Nobody was killed, so nobody may have ended."""
        ended = {name: one.poll() for name, one in self.processes.items() if one.poll() is not None}
        assert not ended, f"ended after {what}: {ended}; {self.tail()}"

    def tail(self) -> str:
        return " | ".join(
            (self.folder / f"{name}.log").read_text("utf-8", "replace")[-500:]
            for name in self.ports
            if (self.folder / f"{name}.log").exists()
        )

    def _errors(self) -> str:
        """The lines of the logs about requests that were answered with a 500, with their tracebacks."""
        logs = (self.folder / f"{name}.log" for name in self.ports)
        lines = (line for log in logs if log.exists() for line in log.read_text("utf-8", "replace").splitlines())
        return "\n".join([line for line in lines if '"error_id"' in line][:3])

    @property
    def pids(self) -> list[int]:
        return [one.pid for one in self.processes.values() if one.poll() is None]

    def _end(self) -> None:
        self.stop.set()
        for process in self.processes.values():
            process.kill()
            process.wait()

    # --- work that is acknowledged

    def work(self) -> None:
        """Clients of every engine, until `stop`."""
        own = [
            threading.Thread(target=self._each, args=(one,), daemon=True)
            for one in ([self._publish] if self.small else [self._publish, self._plan, self._submit])
        ]
        self.clients = [*(Client(n, self.address, self.answers, self.stop, 10**9) for n in range(2)), *own]
        for client in self.clients:
            client.start()

    def _each(self, send) -> None:
        pool = urllib3.PoolManager(retries=False, timeout=TIMEOUT)
        for number in itertools.count():
            while not self.stop.is_set():
                try:
                    if send(pool, number):
                        break
                except urllib3.exceptions.HTTPError:
                    pass
                except AssertionError as error:
                    self.trouble.append(str(error))
                    return
                time.sleep(0.1)
            if self.stop.wait(0.1):
                return

    def _post(self, pool, path: str, body: bytes):
        return pool.request("POST", f"{self.address}{path}", body=body, headers={"Content-Type": "application/json"})

    def _publish(self, pool, number: int) -> bool:
        answer = self._post(pool, "/bus/events", self._event(number))
        if answer.status != 200:
            assert answer.status >= 500, answer.data
            return False
        self.published[f"k{number}"] = json.loads(answer.data)["events"][0]["event_id"]
        return True

    def _event(self, number: int) -> bytes:
        kind = CATALOGUE.types["task.submitted"]
        body = {
            "event_type": kind.name,
            "event_version": "1.0",
            "producer": kind.producer,
            "tenant_id": "t",
            "project_id": "p",
            "idempotency_key": f"k{number}",
            "payload": kind.contracts[1].examples[0],
        }
        return json.dumps(body).encode()

    def _plan(self, pool, number: int) -> bool:
        if number >= HOURS:
            self.stop.wait(5)
            return True
        since, end = self.start + number * HOUR, self.start + (number + 1) * HOUR
        asked = {"source": WAY.source, "endpoint": "search", "operation": "BACKFILL", "activity": f"a{number}"}
        asked |= {"since": format_instant(since), "until": format_instant(end)}
        answer = self._post(pool, "/ingest/plans", json.dumps(asked).encode())
        if answer.status != 200:
            assert answer.status >= 500, answer.data
            return False
        self.plans[number] = json.loads(answer.data)["outcome"]
        self.stop.wait(0.4)
        return True

    def _submit(self, pool, number: int) -> bool:
        body = {"chapter": "The Test\n\nThe sea was calm.", "task_id": f"task-{number}"}
        answer = self._post(pool, "/studio/runs", json.dumps(body).encode())
        if answer.status != 202:
            assert answer.status >= 500, answer.data
            return False
        self.runs.add(json.loads(answer.data)["run_id"])
        self.stop.wait(1.0)
        return True

    def progress(self) -> tuple[int, int, int, int]:
        return len(self.answers.told), len(self.published), len(self.plans), len(self.runs)

    def goes_on(self, what: str) -> None:
        """Events, publishes and films are acknowledged again, by themselves."""
        events, published, _, runs = self.progress()

        def more() -> bool:
            now = self.progress()
            assert not self.trouble, self.trouble
            return now[0] > events and now[1] > published and (now[3] > runs or self.small)

        try:
            until(more, f"work to go on after {what}", 180)
        except AssertionError as error:
            raise AssertionError(f"{error}: {self.progress()}; {self.tail()}") from error

    # --- the reckoning

    def reckon(self) -> str:
        """Everything that was acknowledged is there, once; everything that was begun ends."""
        self.stop.set()
        for client in self.clients:
            client.join()
        db = open_database(self.url, wait=60)
        seen = Seen()
        seen.look(db)
        accepted = [source for key, source in self.answers.sources.items() if self.answers.accepted(key)]
        seen.check(accepted)
        stored = {one for (one,) in rows(db, "SELECT event_id FROM bus_event")}
        lost = [key for key, one in self.published.items() if one not in stored]
        assert not lost, f"{len(lost)} acknowledged events of the bus are not in the store: {lost[:5]}"
        assert len(set(self.published.values())) == len(self.published), "two keys became one event"
        assert not rows(db, TWICE), "one key became two events"
        assert verify(db, SystemClock()).findings == []
        if self.small:
            db.close()
            return f"{len(accepted):,} events, {len(self.published):,} published"
        self._delivered(db)
        self._harvest(db)
        runs = {one for (one,) in rows(db, "SELECT run_id FROM stu_task")} if self.runs else set()
        assert self.runs <= runs, f"{len(self.runs - runs)} acknowledged films are not in the store"
        assert not [one for one in self.answers.trouble if '"status":500' in one], self._errors()
        db.close()
        return f"{len(accepted):,} events, {len(self.published):,} published, {len(self.plans)} plans, {len(self.runs)} films"

    def _delivered(self, db) -> None:
        """What waited when the clients ended goes out; films that are still being made go on to say new things."""
        last = _asked(db, "SELECT coalesce(max(seq), 0) FROM krn_outbox")
        pending = f"SELECT count(*) FROM krn_outbox WHERE status = 'pending' AND seq <= {last}"
        try:
            until(lambda: not _asked(db, pending), "the outbox", 300)
        except AssertionError as error:
            waiting = rows(db, "SELECT * FROM krn_outbox WHERE status = 'pending' ORDER BY seq LIMIT 3")
            loops = [
                urllib3.request("GET", f"http://127.0.0.1:{port}/loops", retries=False, timeout=TIMEOUT).data
                for port in self.ports.values()
            ]
            raise AssertionError(f"{error}: {waiting}; {loops}; {self.tail()}") from error
        given_up = rows(db, "SELECT * FROM krn_outbox WHERE status <> 'pending'")
        assert not given_up, given_up[:3]

    def _harvest(self, db) -> None:
        """Every record of every window that was planned has landed."""
        left = "SELECT count(*) FROM ing_task WHERE status_code IN ('QUEUED', 'DISPATCHED', 'EXECUTING')"
        until(lambda: not _asked(db, left), "the harvest", 600)
        landed = dict(db.read(lambda tx: tx.fetch(LANDED, {"source": WAY.source})))
        wanted = [(self.start + n * HOUR, self.start + (n + 1) * HOUR) for n in self.plans]
        truth = [one for one, at in self.provider.truth.items() if any(begin <= at < end for begin, end in wanted)]
        lost = [one for one in truth if one not in landed]
        assert not lost, f"{len(lost)} of {len(truth)} records of {len(wanted)} windows did not land"


def _asked(db, text: str) -> int:
    """A count; more than none while the store does not answer."""
    try:
        return rows(db, text)[0][0]
    except Transient:
        return 1


def _shim(folder: Path, name: str) -> Shim:
    own = folder / f"shim-{name}"
    own.mkdir(mode=0o755)
    return Shim(own)


CATALOGUE: Catalogue


@contextmanager
def world(folder: Path, **options) -> Generator[World]:
    global CATALOGUE  # noqa: PLW0603  read once
    CATALOGUE = load_catalogue()
    folder.chmod(0o755)
    with ExitStack() as stack:
        made = World(stack, folder, **options)
        made.up()
        made.work()
        yield made
