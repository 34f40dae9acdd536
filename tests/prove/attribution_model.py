"""Thousands of seeded logs through the engine and its second reading, on both databases and in random commits."""

import argparse
import json
import random
import sys
import time
from collections import Counter
from contextlib import contextmanager
from urllib.parse import quote

import psycopg

from patra.attribution.replay import replay
from patra.kernel.db import migrate, open_database
from tests import services
from tests.model.attribution import run
from tests.property.attribution.compare import differences
from tests.property.attribution.logs import seeded_log
from tests.property.attribution.shrink import shrunk

# (database, how many logs, lines a log, events a batch at most)
PLAN = [
    ("sqlite", 2000, 25, 7),
    ("sqlite", 8, 1200, 30),
    ("postgres", 150, 25, 7),
    ("postgres", 2, 600, 30),
]


@contextmanager
def store(database, server):
    """An empty store."""
    if database == "sqlite":
        db = open_database("sqlite:///:memory:")
        yield db
        db.close()
        return
    with psycopg.connect(server, autocommit=True) as admin:
        admin.execute("CREATE SCHEMA attribution_model")
        try:
            db = open_database(f"{server}?options={quote('-csearch_path=attribution_model')}")
            yield db
            db.close()
        finally:
            admin.execute("DROP SCHEMA attribution_model CASCADE")


def compared(database, server, lines, group):
    with store(database, server) as db:
        try:
            migrate(db, ["patra.kernel", "patra.attribution"])
            ours = replay(lines, db, group=group)
        except Exception as problem:  # noqa: BLE001  a crash is a difference like any other
            return [f"the engine fell over: {type(problem).__name__}: {problem}"], None
    return differences(ours, run(lines)), ours


def main(argv=None):
    parser = argparse.ArgumentParser(prog="attribution-model", description=__doc__)
    parser.add_argument("--seed", type=int, default=1, help="the first seed")
    parser.add_argument("--scale", type=float, default=1.0, help="this part of the planned number of logs")
    parser.add_argument("--database", choices=["sqlite", "postgres"], help="on this database only")
    options = parser.parse_args(argv if argv is not None else [])
    plan = [step for step in PLAN if options.database in (None, step[0])]
    with services.postgres() if any(step[0] == "postgres" for step in plan) else _nothing() as server:
        for database, planned, lines, events in plan:
            failed = _part(
                database, server, range(options.seed, options.seed + _scaled(planned, options.scale)), lines, events
            )
            if failed:
                sys.exit(1)


def _part(database, server, seeds, length, events):
    started = time.monotonic()
    codes = Counter()
    for seed in seeds:
        lines = seeded_log(seed, lines=length, events=events)
        group = random.Random(seed).choice([None, *([n] * length for n in (2, 3, 5, 17, length))])
        found, ours = compared(database, server, lines, group)
        if found:
            print(
                f"seed {seed}, {length} lines, {events} events, group {group} on {database}: {len(found)} differences"
            )
            least = shrunk(lines, lambda some, group=group: bool(compared(database, server, some, group)[0]))
            print("\n".join(json.dumps(line) for line in least))
            print("\n".join(compared(database, server, least, group)[0]))
            return True
        codes.update(item["ackReasonCode"] for ack in ours.acks for item in ack.get("ackItems", []))
        codes.update(ack["code"] for ack in ours.acks if "code" in ack)
    seconds = time.monotonic() - started
    print(
        f"{database}: {len(seeds)} logs of {length} lines, {codes.total()} answers equal to the model's in {seconds:.0f} s"
    )
    for code, times in codes.most_common():
        print(f"  {times:8} {code}")
    return False


def _scaled(number, scale):
    return max(1, round(number * scale))


@contextmanager
def _nothing():
    yield None


if __name__ == "__main__":
    main(sys.argv[1:])
