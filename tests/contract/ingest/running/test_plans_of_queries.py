"""PostgreSQL finds the records of a batch by their key, however little it knows of the table."""

from patra.ingest.landing.store import Q
from patra.kernel.db import Database
from patra.kernel.db.queries import Statement
from tests.contract.ingest.running.world import T0, T1, pack, world
from tests.support.hostile_provider import crowded


def test_known_records_are_looked_up_by_the_primary_key(database: Database) -> None:
    if database.dialect == "sqlite":
        return
    with world(database, crowded(1000, T0, T1)) as w:
        w.load(pack(w.url, "OFFSET", pagination={"pageSize": 100}))
        w.trigger()
        w.drain()
        key = {"source": "hostile", "endpoint": "search"}
        rows = [(one,) for one in list(w.provider.truth)[:100]]
        for name in ("records_seen", "records_known"):
            text = Q[name].postgres.replace("WITH", "EXPLAIN WITH", 1)
            stmt = Statement(name=name, text={"sqlite": "", "postgres": Q[name].text["postgres"]}, rows=Q[name].rows)
            stmt.__dict__["postgres"] = text
            lines = [line for (line,) in w.db.run(lambda tx, s=stmt: tx.fetch(s, key, rows=rows))]
            at = next(n for n, line in enumerate(lines) if "on ing_record" in line)
            assert "ing_record_pkey" in lines[at], lines
            assert "provider_id = ANY" in lines[at + 1], lines
            assert "Index Cond" in lines[at + 1], lines
