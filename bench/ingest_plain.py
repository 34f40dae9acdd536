"""What a script of one afternoon does: fetch a page, decode it, upsert its records, commit, follow the cursor.

    python -m bench.ingest_plain SERVER STORE [stdlib|msgspec]

No black box, no cursor, no outbox, no retries: the limit that bookkeeping is measured by. Writes one line of JSON.
"""

import json
import resource
import sys
import time
from collections.abc import Callable
from http.client import HTTPConnection
from typing import Any

import msgspec

from bench.ingest_upsert import TABLE, UPSERT, sqlite


def dumps(item: Any) -> bytes:
    return json.dumps(item, separators=(",", ":"), ensure_ascii=False).encode()


def main(server: str, store: str, library: str) -> None:
    loads: Callable[[bytes], Any] = json.loads if library == "stdlib" else msgspec.json.decode
    encode: Callable[[Any], bytes] = dumps if library == "stdlib" else msgspec.json.encode
    write, close = sqlite(store) if store.startswith("sqlite") else postgres(store)
    connection = HTTPConnection(server.removeprefix("http://"))
    begun, cpu, landed = time.perf_counter(), time.process_time(), 0
    cursor: str | None = "*"
    while cursor is not None:
        connection.request("GET", f"/works?cursor={cursor}")
        message = loads(connection.getresponse().read())["message"]
        write([(item["DOI"], item["indexed"]["date-time"], encode(item)) for item in message["items"]])
        landed += len(message["items"])
        cursor = message["next-cursor"]
    found = {"seconds": time.perf_counter() - begun, "cpu": time.process_time() - cpu, "landed": landed}
    close()
    print(json.dumps({**found, "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}))


def postgres(store: str) -> tuple[Callable[[list[Any]], object], Callable[[], object]]:
    import psycopg

    db = psycopg.connect(store)
    db.execute(TABLE.format(blob="BYTEA").encode())
    db.commit()

    def write(rows: list[Any]) -> None:
        with db.transaction(), db.cursor() as cursor:
            cursor.executemany(UPSERT.format(marks="%s,%s,%s").encode(), rows)

    return write, db.close


if __name__ == "__main__":
    main(*sys.argv[1:3], library=(*sys.argv[3:], "msgspec")[0])
