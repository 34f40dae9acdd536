"""Put millions of keys into the ledger in bulk, in the shape that weeks of traffic would have left them.

Keys are random (they are hashes) and go in sorted, straight through the driver: `executemany` in one transaction on
SQLite, COPY on PostgreSQL, both while the indexes are away, which are then built at once. Nothing of Patra is measured
here. Windows are of 3 and of 14 days, mixed as the traffic mixes them.
"""

import argparse
import os
import random
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing

import psycopg

from patra.attribution.contract.windows import BILLING_WINDOW, DIAGNOSTICS_WINDOW
from patra.attribution.decision.dedup import SCOPE
from patra.kernel.clock import DAY, SystemClock

INDEX = "CREATE INDEX krn_ledger_expiry ON krn_ledger (scope, expires_at)"
KEYS = 10_000_000
_PARTS = 65_536  # by the first two bytes of the key
_ROW = 14 + 16  # bytes of noise in a row: the rest of its key, its fingerprint


def parts(count: int) -> Iterator[tuple[bytes, list[str], list[tuple[int, int]]]]:
    """The keys of a part share their first two bytes; gives these, rows of noise in hex, first instants with ends."""
    now, rng = SystemClock().now(), random.Random(1)
    windows = [DIAGNOSTICS_WINDOW] * 7 + [BILLING_WINDOW] * 4
    times = [(first, first + rng.choice(windows)) for first in (now - int(rng.random() * 3 * DAY) for _ in range(5003))]
    done = 0
    for part in range(_PARTS):
        size = count * (part + 1) // _PARTS - done
        noise = os.urandom(_ROW * size).hex()
        rows = sorted([noise[at : at + 2 * _ROW] for at in range(0, 2 * _ROW * size, 2 * _ROW)])
        yield part.to_bytes(2, "big"), rows, [times[(done + i) % 5003] for i in range(size)]
        done += size


def fill_sqlite(path: str, count: int = KEYS) -> float:
    """Fill the ledger of a migrated store that nobody has open; gives the seconds it took."""
    began = time.perf_counter()
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for pragma in ("synchronous=OFF", "cache_size=-262144", "wal_autocheckpoint=100000", "temp_store=MEMORY"):
            connection.execute(f"PRAGMA {pragma}")
        connection.execute("BEGIN")
        connection.execute("DROP INDEX krn_ledger_expiry")
        insert = (
            "INSERT INTO krn_ledger (scope, key, fingerprint, cycle, first_at, expires_at) "
            f"VALUES ('{SCOPE}', ?, ?, 1, ?, ?)"
        )
        for prefix, rows, times in parts(count):
            packed = [bytes.fromhex(row) for row in rows]
            connection.executemany(
                insert, [(prefix + row[:14], row[14:], *when) for row, when in zip(packed, times, strict=True)]
            )
        connection.execute(INDEX)
        connection.execute("COMMIT")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    os.sync()
    return time.perf_counter() - began


def fill_postgres(url: str, count: int = KEYS) -> float:
    began = time.perf_counter()
    with psycopg.connect(url, autocommit=True) as connection:
        with connection.transaction():
            connection.execute("SET LOCAL synchronous_commit = off")
            connection.execute("SET LOCAL maintenance_work_mem = '512MB'")
            connection.execute("DROP INDEX krn_ledger_expiry")
            connection.execute("ALTER TABLE krn_ledger DROP CONSTRAINT krn_ledger_pkey")
            columns = "scope, key, fingerprint, cycle, first_at, expires_at"
            with connection.cursor() as cursor, cursor.copy(f"COPY krn_ledger ({columns}) FROM STDIN") as copy:
                for prefix, rows, times in parts(count):
                    head = f"{SCOPE}\t\\\\x{prefix.hex()}"
                    copy.write(
                        "".join(
                            [
                                f"{head}{row[:28]}\t\\\\x{row[28:]}\t1\t{first}\t{ends}\n"
                                for row, (first, ends) in zip(rows, times, strict=True)
                            ]
                        )
                    )
            connection.execute("ALTER TABLE krn_ledger ADD CONSTRAINT krn_ledger_pkey PRIMARY KEY (scope, key)")
            connection.execute(INDEX)
        connection.execute("VACUUM (ANALYZE) krn_ledger")
        connection.execute("CHECKPOINT")
    return time.perf_counter() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("store", help="the path of a SQLite store, or the URL of a PostgreSQL one")
    parser.add_argument("--keys", type=int, default=KEYS)
    options = parser.parse_args()
    fill = fill_postgres if options.store.startswith("postgresql:") else fill_sqlite
    print(f"{options.keys:,} keys in {fill(options.store, options.keys):.0f} s")


if __name__ == "__main__":
    main()
