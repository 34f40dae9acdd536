"""Put millions of keys into the ledger in bulk, in the shape that years of traffic would have left them.

Keys are random (they are hashes); windows end in the order in which the keys were claimed, of 3 and of 14 days mixed.
Rows go in sorted by key while the index of windows is away, which is then built at once.
"""

import argparse
import os
import random
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing

import psycopg

from patra.attribution.contract import BILLING_WINDOW, DIAGNOSTICS_WINDOW
from patra.attribution.dedup import SCOPE
from patra.kernel.clock import DAY, SystemClock

INDEX = "CREATE INDEX krn_ledger_expiry ON krn_ledger (scope, expires_at)"
KEYS = 10_000_000


def entries(count: int) -> Iterator[tuple[bytes, bytes, int, int]]:
    """Key, fingerprint, first instant, end of window; sorted by key."""
    now = SystemClock().now()
    step = 2**64 // count
    rng = random.Random(1)
    done = 0
    while done < count:
        noise = os.urandom(40 * 10_000)
        for i in range(min(10_000, count - done)):
            at = i * 40
            high = (done + i) * step + int.from_bytes(noise[at : at + 4]) % step
            first = now - int(rng.random() * 3 * DAY)
            window = BILLING_WINDOW if noise[at] & 3 == 0 else DIAGNOSTICS_WINDOW
            yield high.to_bytes(8) + noise[at + 32 : at + 40], noise[at : at + 32], first, first + window
        done += 10_000


def fill_sqlite(path: str, count: int = KEYS) -> float:
    """Fill the ledger of a migrated store that nobody has open; gives the seconds it took."""
    began = time.perf_counter()
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for pragma in ("synchronous=OFF", "cache_size=-262144", "wal_autocheckpoint=100000", "temp_store=MEMORY"):
            connection.execute(f"PRAGMA {pragma}")
        connection.execute("BEGIN")
        connection.execute("DROP INDEX krn_ledger_expiry")
        connection.executemany(
            "INSERT INTO krn_ledger (scope, key, fingerprint, cycle, first_at, expires_at) VALUES (?, ?, ?, 1, ?, ?)",
            ((SCOPE, *entry) for entry in entries(count)),
        )
        connection.execute(INDEX)
        connection.execute("COMMIT")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        connection.execute("ANALYZE krn_ledger")
    os.sync()
    return time.perf_counter() - began


def fill_postgres(url: str, count: int = KEYS) -> float:
    began = time.perf_counter()
    with psycopg.connect(url, autocommit=True) as connection:
        with connection.transaction():
            connection.execute("SET LOCAL synchronous_commit = off")
            connection.execute("DROP INDEX krn_ledger_expiry")
            with (
                connection.cursor() as cursor,
                cursor.copy(
                    "COPY krn_ledger (scope, key, fingerprint, cycle, first_at, expires_at) FROM STDIN"
                ) as copy,
            ):
                block: list[str] = []
                for key, mark, first, expires in entries(count):
                    block.append(f"{SCOPE}\t\\\\x{key.hex()}\t\\\\x{mark.hex()}\t1\t{first}\t{expires}\n")
                    if len(block) == 2000:
                        copy.write("".join(block))
                        block.clear()
                copy.write("".join(block))
            connection.execute("SET LOCAL maintenance_work_mem = '512MB'")
            connection.execute(INDEX)
        connection.execute("VACUUM ANALYZE krn_ledger")
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
