"""Twenty kills with -9 under load: what was acknowledged is there once, deadlines are kept, the archive is complete."""

import random
import signal
import tempfile
import threading
import time
from collections import Counter
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import quote

import msgspec
import psycopg
import urllib3

from patra.attribution.commit import commit
from patra.attribution.contract.windows import WAIT_WINDOW
from patra.attribution.decision.closure_state import ClosureState, Terminal
from patra.attribution.delivery.relay import handing
from patra.attribution.intake.batch import read_batch
from patra.attribution.storage.read import decisions_after, every_closure, every_decision
from patra.attribution.verify import verify
from patra.kernel.clock import SECOND, SystemClock
from patra.kernel.db import migrate, open_database
from tests import services
from tests.e2e.attribution.clients import Answers, body, event, post
from tests.e2e.attribution.store import rows
from tests.e2e.process import PATRA, started

SEEDS = 40  # closures that were opened before and see nothing more: each has a deadline within the run
TROUBLE = 0.02  # of the archive's answers are 503
PATIENCE = 180.0  # without any progress
PACE = 0.03  # seconds that a client leaves between two batches: the archive has to take all of it in the end


class Receiver:
    """An archive behind HTTP: it keeps every record in the order of arrival, and fails now and then."""

    def __init__(self, seed):
        self.first = {}  # recordKey → (place, record, digest)
        self.received = 0
        self.trouble = []
        self._random = random.Random(seed)
        self._lock = threading.Lock()

    def take(self, request):
        with self._lock:
            if self._random.random() < TROUBLE:
                return 503
            for one in msgspec.json.decode(request)["records"]:
                self.received += 1
                record, digest = one["record"], one["payloadDigest"]
                known = self.first.setdefault(record["recordKey"], (len(self.first), record, digest))
                if known[2] != digest:
                    self.trouble.append(f"{record['recordKey']}: another payload under the same key")
            return 200

    @contextmanager
    def serving(self):
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                size = int(self.headers["Content-Length"])
                request = self.rfile.read(size)
                if len(request) < size:  # the sender was killed while it wrote
                    self.close_connection = True
                    return
                self.send_response(receiver.take(request))
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *args):
                pass

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        server.daemon_threads = True
        server.handle_error = lambda *_: None  # connections of killed senders
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/archive"
        finally:
            server.shutdown()
            server.server_close()


class Client(threading.Thread):
    """Sends new events until it is asked to stop; a batch without an answer is sent again, as an SDK must."""

    def __init__(self, number, url, answers, stop, most):
        super().__init__(name=f"client {number}", daemon=True)
        self.number, self.url, self.answers, self.stop = number, url, answers, stop
        self.most = most  # batches
        self.random = random.Random(number)

    def run(self):
        pool = urllib3.PoolManager(maxsize=1)
        batch = 0
        while not self.stop.is_set() and batch < self.most:
            events = self._events(batch)
            sent = body(f"b-{self.number}-{batch}", events)
            while not self._answered(pool, events, sent):
                time.sleep(0.05)  # the server is gone: it will be back
            batch += 1
            time.sleep(PACE)

    def _events(self, batch):
        found = []
        for attempt in range(self.random.randint(4, 12)):
            name = f"{self.number}-{batch}-{attempt}"
            kinds = ["ad_filled", "impression", "click", "interaction"]
            self.random.shuffle(kinds)
            found += [event(kind, name, f"{name}-{kind}") for kind in kinds]
        return found

    def _answered(self, pool, events, sent):
        try:
            answer = post(pool, self.url, sent)
        except (urllib3.exceptions.HTTPError, OSError):
            self.answers.note(0)
            return False
        self.answers.note(answer.status, "" if answer.status in {200, 503} else answer.data.decode()[:300])
        if answer.status != 200:
            return False
        self.answers.keep(events, answer.data)
        return True


def _seed(db, count, hand):
    """Closures whose deadlines come soon; gives the deadline of each closure key."""
    migrate(db, ["patra.kernel", "patra.app", "patra.attribution"])
    deadlines = {}
    now = SystemClock().now()
    for number in range(count):
        opened = now - WAIT_WINDOW + (1 + number // 2) * SECOND
        name = f"seed-{number}"
        batch = read_batch(body(f"b-{name}", [event("ad_filled", name, name)]), opened)
        commit(db, [batch], hand=hand)
        deadlines[f"rr-{name}|ra-1"] = opened + WAIT_WINDOW
    return deadlines


class Seen:
    """The decisions of the store so far, read on from where the last look ended."""

    def __init__(self):
        self.after = -1
        self.kept = Counter()  # (source, attribution type) of what was not dropped

    def look(self, db):
        while page := db.read(lambda tx: decisions_after(tx, self.after, 5000)):
            for one in page:
                if one.decision.attribution is not None:
                    self.kept[one.decision.subject.source, one.decision.attribution] += 1
            self.after = page[-1].id

    def check(self, sources):
        assert not self.kept or set(self.kept.values()) == {1}, self.kept.most_common(3)
        missing = set(sources) - {source for source, _ in self.kept}
        assert not missing, f"{len(missing)} acknowledged events are not in the store"


def prove(store, folder, *, kills, clients, pause, seeds=SEEDS, most=10**9, outside=True, seed=1):
    """Load, kill, look, again and again; gives the figures. `outside`: the archive is not the store itself.

    What a killed process was taking to an archive outside is held for two and a half minutes before another takes it.
    """
    rng = random.Random(seed)
    db = open_database(store)
    deadlines = _seed(db, seeds, handing(SystemClock()) if outside else None)
    answers, stop, seen, receiver = Answers(), threading.Event(), Seen(), Receiver(seed)
    port = services.free_port()
    with receiver.serving() as archive:
        settings = {"PATRA_STORE_URL": store, "PATRA_ATTRIBUTION_ARCHIVE": archive if outside else "store"}
        crew = [Client(number, f"http://127.0.0.1:{port}", answers, stop, most) for number in range(clients)]
        for client in crew:
            client.start()
        for _ in range(kills):
            with started(folder, [*PATRA, "up", "--port", str(port)], **settings) as process:
                process.until("listening")
                threading.Thread(target=process.ended, daemon=True).start()
                time.sleep(pause * (0.2 + 1.6 * rng.random()))
                process.signal(signal.SIGKILL)
            acknowledged = list(answers.sources.values())  # before looking: what comes later may not be there yet
            seen.look(db)
            seen.check(acknowledged)
            assert verify(db, SystemClock()).findings == []
        with started(folder, [*PATRA, "up", "--port", str(port)], **settings) as process:
            process.until("listening")
            threading.Thread(target=process.ended, daemon=True).start()
            stop.set()
            for client in crew:
                client.join()
            _until(lambda: _waiting(db, max(deadlines.values())))
    assert not answers.trouble, answers.trouble[:3]
    everything = Seen()
    everything.look(db)
    everything.check(answers.sources.values())
    _check_deadlines(db, deadlines)
    _check_archive(db, receiver if outside else None)
    assert verify(db, SystemClock()).findings == []
    db.close()
    lost = answers.statuses[0]
    return f"{kills} kills, {len(answers.told):,} events acknowledged, {lost:,} requests lost, {receiver.received:,} records"


def _waiting(db, last_deadline):
    """What is still to be done: deadlines, and records on their way."""
    if SystemClock().now() < last_deadline:
        return "deadlines are still to come"
    now = SystemClock().now()
    due = sum(closure.next_due is not None and closure.next_due <= now for closure in every_closure(db))
    if due:
        return f"{due} deadlines are not applied"
    left = rows(db, "SELECT count(*) FROM krn_outbox WHERE channel = 'attribution.archive'")[0][0]
    return f"{left} messages are on their way" if left else ""


def _until(missing):
    """Wait while there is progress, however slow the machine."""
    before, limit = "", time.monotonic() + PATIENCE
    while what := missing():
        if what != before:
            before, limit = what, time.monotonic() + PATIENCE
        assert time.monotonic() < limit, what
        time.sleep(0.2)


def _check_deadlines(db, deadlines):
    timeouts = Counter()
    at = {}
    for one in every_decision(db):
        if one.decision.reason == "f_terminal_timeout_autofill":
            timeouts[one.decision.subject.closure] += 1
            at[one.decision.subject.closure] = one.decision.at
    for closure in every_closure(db):
        if closure.closure in deadlines:
            assert closure.state is ClosureState.CLOSED_FAILURE, closure
            assert closure.source is Terminal.TIMEOUT, closure
            assert timeouts[closure.closure] == 1, closure
            assert at[closure.closure] == deadlines[closure.closure], closure


def _check_archive(db, receiver):
    """Every record arrived; a decision's audit before its facts, and a group's audits in the order of their instants."""
    groups = {}
    expected = set()
    for one in every_decision(db):
        assert "new" not in {status and status.value for status in one.statuses}, one
        if receiver is None:
            continue
        places = []
        for record in one.records:
            assert record.key in receiver.first, f"{record.type} of {one.id} never arrived"
            expected.add(record.key)
            places.append(receiver.first[record.key][0])
        assert places == sorted(places), one
        groups.setdefault(one.records[0].group, []).append((one.decision.at, places[0]))
    if receiver is not None:
        assert not receiver.trouble, receiver.trouble[:3]
        assert set(receiver.first) == expected
    for group, found in groups.items():
        order = [at for at, _ in sorted(found, key=lambda pair: pair[1])]
        assert order == sorted(order), group


def main(kills=20):
    figures = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        store = f"sqlite:///{folder / 'kills.db'}"
        figures.append("SQLite: " + prove(store, folder, kills=kills, clients=4, pause=1.5))
        print(f"   {figures[-1]}", flush=True)
        with services.postgres() as server:
            with psycopg.connect(server, autocommit=True) as admin:
                admin.execute("DROP SCHEMA IF EXISTS attribution_kills CASCADE")
                admin.execute("CREATE SCHEMA attribution_kills")
            store = f"{server}?options={quote('-csearch_path=attribution_kills')}"
            figures.append("PostgreSQL: " + prove(store, folder, kills=kills, clients=4, pause=1.5))
    return "; ".join(figures)
