"""The log of a live store goes in; the lines that `replay` reads come out: what came in, in the order of decision.

A batch that was no JSON stands as the text it was, which is refused in the same way. Ticks are the turns of the timer
that applied something.

The log is that of one moment, however long reading it takes: on PostgreSQL numbers are drawn before they are committed,
so a batch may turn up behind what was read already, and what builds on it must not be read without it.
"""

from collections.abc import Iterator

import msgspec
import zstandard

from patra.attribution.intake import read_json
from patra.attribution.locate import LATEST_COMMIT
from patra.attribution.statements import Q
from patra.kernel.clock import format_instant
from patra.kernel.db import Database, Tx

PAGE = 500
MOST_BYTES = 64 * 1024 * 1024


def exported(db: Database, now: int) -> Iterator[bytes]:
    """Every line of the log that is still kept, each a JSON object without the line's end."""
    settled, newer = db.read(lambda tx: _extent(tx, now - LATEST_COMMIT))
    last = max(newer, default=settled)
    after = 0
    while rows := db.read(lambda tx, after=after: tx.fetch(Q["log_page"], {"after": after, "limit": PAGE})):
        for number, at, kind, body in rows:
            after = number
            if number > last:
                return
            if number > settled and number not in newer:
                continue
            if kind == "tick":
                yield msgspec.json.encode({"tick": format_instant(at)})
            else:
                batch = zstandard.ZstdDecompressor().decompress(bytes(body), max_output_size=MOST_BYTES)
                yield msgspec.json.encode({"receivedAt": format_instant(at), "batch": _json(batch)})


def _extent(tx: Tx, before: int) -> tuple[int, set[int]]:
    """Up to which number no line can turn up any more, and the numbers beyond it that are there."""
    received = tx.fetch(Q["received_before"], {"before": before})
    settled = received[0][0] if received else 0
    return settled, {number for (number,) in tx.fetch(Q["log_numbers"], {"after": settled})}


def _json(body: bytes) -> msgspec.Raw:
    """The batch as it was sent, on one line; as text where it was no JSON at all."""
    try:
        read_json(body)
    except (ValueError, RecursionError):
        return msgspec.Raw(msgspec.json.encode(body.decode(errors="replace")))
    return msgspec.Raw(_one_line(body))


def _one_line(body: bytes) -> bytes:
    """JSON text holds line ends only between its tokens, where a space does as well."""
    return body.replace(b"\r", b" ").replace(b"\n", b" ")
