"""Eight clients send the same 20,000 events in different batches and orders to four processes: each is counted once."""

import random
import tempfile
import threading
import time
from collections import Counter
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import quote

import psycopg
import urllib3

from patra.attribution.decision.decisions import attribution_key_of, billing_key_of
from patra.attribution.log_export import export_log
from patra.attribution.replay import output_of, replay
from patra.attribution.storage.read import every_decision
from patra.attribution.verify import verify
from patra.kernel.clock import SystemClock
from patra.kernel.db import migrate, open_database
from tests import services
from tests.e2e.attribution.clients import Answers, body, event, post
from tests.e2e.process import up

EVENTS_AN_ATTEMPT = 5
WAIT_WINDOW = 120.0


def attempts(count):
    """What is sent, by render attempt: fill, two impressions that exclude each other, a click, and one thing more.

    Every tenth attempt has a terminal error in the place of the second impression.
    """
    found = []
    for number in range(count):
        name = f"{number:06}"
        second = "error" if number % 10 == 0 else "impression"
        kinds = [("fill", "ad_filled"), ("first", "impression"), ("second", second), ("click", "click")]
        kinds.append(("seen", "interaction"))
        found.append({place: event(kind, name, f"{name}-{place}") for place, kind in kinds})
    return found


class Client(threading.Thread):
    """Sends all events in an order and in batches of its own, each batch to any of the servers."""

    def __init__(self, number, urls, events, answers):
        super().__init__(name=f"client {number}", daemon=True)
        self.number, self.urls, self.answers = number, urls, answers
        self.random = random.Random(number)
        self.events = list(events)
        self.random.shuffle(self.events)

    def run(self):
        pool = urllib3.PoolManager(maxsize=len(self.urls))
        at = 0
        while at < len(self.events):
            size = self.random.randint(20, 100)
            batch = self.events[at : at + size]
            try:
                answer = post(pool, self.random.choice(self.urls), body(f"b-{self.number}-{at}", batch))
            except urllib3.exceptions.HTTPError as error:
                self.answers.note(0, f"client {self.number}: {error}")
                return
            self.answers.note(answer.status, "" if answer.status == 200 else answer.data.decode()[:300])
            if answer.status != 200:
                return
            self.answers.keep(batch, answer.data)
            at += size


def prove(store, folder, *, servers, clients, events):
    """Send, then hold the answers and the store to the promises; gives the figures."""
    sent = attempts(events // EVENTS_AN_ATTEMPT)
    flat = [one for attempt in sent for one in attempt.values()]
    answers = Answers()
    with ExitStack() as stack:
        urls = []
        for _ in range(servers):
            process = stack.enter_context(up(folder, PATRA_STORE_URL=store))
            threading.Thread(target=process.ended, daemon=True).start()  # reads the log, so that it never blocks
            urls.append(process.url)
        began = time.monotonic()
        crew = [Client(number, urls, flat, answers) for number in range(clients)]
        for client in crew:
            client.start()
        under_load = _exported_under_load(store, crew)
        for client in crew:
            client.join()
        seconds = time.monotonic() - began
    assert not answers.trouble, answers.trouble[:3]
    assert set(answers.statuses) == {200}, answers.statuses
    _check_answers(sent, answers, clients)
    db = open_database(store)
    try:
        _check_store(sent, answers, db, in_time=seconds < WAIT_WINDOW)
        _check_replay(db, under_load, answers.acks)
        assert verify(db, SystemClock()).findings == []
    finally:
        db.close()
    total = len(flat) * clients
    return f"{total:,} events in {seconds:.0f} s ({total / seconds:,.0f}/s), {answers.statuses[200]:,} batches"


def _exported_under_load(store, crew):
    """The log of one moment in the middle of it: the last one that was read whole before the first client was done."""
    db = open_database(store)
    try:
        kept = []
        while not kept or all(client.is_alive() for client in crew):
            lines = list(export_log(db, SystemClock().now()))
            if not kept or all(client.is_alive() for client in crew):
                kept = lines
        return kept
    finally:
        db.close()


def _check_replay(db, under_load, told):
    """The live log, replayed elsewhere, gives what was answered and what the store has.

    One that was exported under load gives the same answers to its batches, and no fact that the store does not have.
    """
    live = output_of(db, [])
    again = _replayed(export_log(db, SystemClock().now()))
    for name in ("billable", "attribution", "audits", "records", "closures"):
        assert getattr(again, name) == getattr(live, name), name
    assert {ack["batchId"]: ack for ack in again.acks} == told
    early = _replayed(under_load)
    assert early.acks
    assert all(told[ack["batchId"]] == ack for ack in early.acks)
    known = {fact["billingKey"]: fact for fact in live.billable}
    assert all(known.get(fact["billingKey"]) == fact for fact in early.billable)


def _replayed(lines):
    db = open_database("sqlite:///:memory:")
    try:
        migrate(db, ["patra.kernel", "patra.attribution"])
        return replay(lines, db)
    finally:
        db.close()


def _check_answers(sent, answers, clients):
    for attempt in sent:
        told = {place: answers.told[one["idempotencyKey"]] for place, one in attempt.items()}
        for place, answered in told.items():
            assert len(answered) == clients, (place, answered)
            assert sum(status == "accepted" for status, _ in answered) <= 1, (place, answered)
            assert all(status in {"accepted", "duplicate"} for status, _ in answered), (place, answered)
        for place in ("fill", "click", "seen"):
            accepted = answers.accepted(attempt[place]["idempotencyKey"])
            codes = {code for status, code in told[place] if status == "duplicate"}
            assert accepted == 1 or codes >= {"f_billing_conflict_duplicate_click"}, (place, told[place])
        ends = [answers.accepted(attempt[place]["idempotencyKey"]) for place in ("first", "second")]
        assert sum(ends) == 1, told  # one end a closure: an impression, or the failure


def _check_store(sent, answers, db, *, in_time):
    billing, attribution, decided = Counter(), Counter(), Counter()
    for one in every_decision(db):
        if (key := billing_key_of(one.decision)) is not None:
            billing[key] += 1
        if (key := attribution_key_of(one.decision)) is not None:
            attribution[key] += 1
        if one.decision.action != "drop":
            decided[one.decision.subject.source] += 1
    assert set(billing.values()) == {1}, billing.most_common(3)
    assert set(attribution.values()) == {1}, attribution.most_common(3)
    expected = set()
    for attempt in sent:
        closure = f"{attempt['first']['responseReference']}|{attempt['first']['renderAttemptId']}"
        shown = [p for p in ("first", "second") if attempt[p]["eventType"] == "impression"]
        if any(answers.accepted(attempt[place]["idempotencyKey"]) for place in shown):
            expected.add(f"{closure}|billable_impression")
            if in_time:  # a click waits 120 s for its impression
                expected.add(f"{closure}|billable_click")
    missing, beyond = expected - set(billing), set(billing) - expected
    assert not missing, sorted(missing)[:3]
    assert not beyond or not in_time, sorted(beyond)[:3]
    assert not set(answers.sources.values()) - set(decided), "an event that was answered is not in the store"


def main(events=20_000):
    figures = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with services.postgres() as server:
            with psycopg.connect(server, autocommit=True) as admin:
                admin.execute("DROP SCHEMA IF EXISTS attribution_concurrency CASCADE")
                admin.execute("CREATE SCHEMA attribution_concurrency")
            store = f"{server}?options={quote('-csearch_path=attribution_concurrency')}"
            figures.append("PostgreSQL, 4 processes: " + prove(store, folder, servers=4, clients=8, events=events))
            print(f"   {figures[-1]}", flush=True)
        store = f"sqlite:///{folder / 'concurrency.db'}"
        figures.append("SQLite, 1 process: " + prove(store, folder, servers=1, clients=8, events=events))
        print(f"   {figures[-1]}", flush=True)
        store = f"sqlite:///{folder / 'two.db'}"  # each reads again what the other wrote: right, and slow
        figures.append("SQLite, 2 processes: " + prove(store, folder, servers=2, clients=8, events=events // 10))
    return "; ".join(figures)
