"""Shards are installations, each with a database and apps of its own: together they decide and settle what one would."""

import random
from collections import Counter
from contextlib import ExitStack

from patra.attribution.app_keys import Keyring, add_key
from patra.attribution.commit import commit
from patra.attribution.intake.batch import read_batch
from patra.attribution.settlement.counts import settle
from patra.attribution.storage.read import every_decision
from patra.kernel.clock import DAY, SECOND
from patra.kernel.db import Database, migrate, open_database
from patra.kernel.testing import ManualClock
from tests.conftest import schema_of_its_own
from tests.e2e.attribution.clients import body, event
from tests.unit.attribution.said import PACKAGES, T0

SHARD_OF = {"news-web": 0, "news-ios": 0, "shop-web": 1, "shop-ios": 1}  # as the proxy before them has it


def traffic() -> list[tuple[str, bytes]]:
    """Batches of all apps in turn, some sent twice; keys that two apps have in common are keys of each of them."""
    rng = random.Random(24)
    found: list[tuple[str, bytes]] = []
    for number in range(40):
        app = rng.choice(list(SHARD_OF))
        name = f"{app}-{number}"
        kinds = rng.sample(["ad_filled", "impression", "click"], rng.randint(1, 3))
        events = [event(kind, name, f"{number}-{kind}", eventAt="2026-01-01T00:00:00.000Z") for kind in kinds]
        found += [(app, body(f"b-{number}", events, app=app))] * rng.randint(1, 2)
    rng.shuffle(found)
    return found


def decisions(db: Database) -> Counter[tuple[str, str, str]]:
    return Counter(
        (one.decision.subject.dedup or "", one.decision.reason, str(one.decision.billable))
        for one in every_decision(db)
    )


def test_two_databases_decide_and_settle_together_what_one_does(postgres_server: str) -> None:
    with ExitStack() as stack:
        shards = [open_database(stack.enter_context(schema_of_its_own(postgres_server))) for _ in range(2)]
        whole = open_database("sqlite:///:memory:")
        for db in (whole, *shards):
            migrate(db, PACKAGES)
            stack.callback(db.close)
        for number, (app, sent) in enumerate(traffic()):
            for db in (whole, shards[SHARD_OF[app]]):
                commit(db, [read_batch(sent, T0 + number * SECOND)])
        parts = [db.read(lambda tx: settle(tx, T0 - DAY, T0 + DAY, "app")) for db in shards]
        total = whole.read(lambda tx: settle(tx, T0 - DAY, T0 + DAY, "app"))
        assert total.impressions
        assert sorted((line for part in parts for line in part.lines), key=str) == sorted(total.lines, key=str)
        assert sum(part.impressions for part in parts) == total.impressions
        assert sum((decisions(db) for db in shards), Counter()) == decisions(whole)
        assert all(part.lines for part in parts)


def test_a_key_is_good_at_its_own_shard_alone_so_that_a_batch_that_was_sent_astray_is_taken_nowhere() -> None:
    with ExitStack() as stack:
        shards = [open_database("sqlite:///:memory:") for _ in range(2)]
        for db in shards:
            migrate(db, PACKAGES)
            stack.callback(db.close)
        keys = {app: shards[SHARD_OF[app]].run(lambda tx, app=app: add_key(tx, app, T0)) for app in SHARD_OF}
        for number, db in enumerate(shards):
            ring = Keyring(db, ManualClock(T0))
            ring.refresh()
            assert {app for app, key in keys.items() if ring.app_of(key) == app} == {
                app for app, shard in SHARD_OF.items() if shard == number
            }
