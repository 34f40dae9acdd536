"""The log of a live store goes in; the lines that `replay` reads come out: what came in, in the order of decision.

A batch that was no JSON stands as the text it was, which is refused in the same way. Ticks are the turns of the timer
that applied something.
"""

from collections.abc import Iterator

import msgspec
import zstandard

from patra.attribution.intake import read_json
from patra.attribution.statements import Q
from patra.kernel.clock import format_instant
from patra.kernel.db import Database

PAGE = 500
MOST_BYTES = 64 * 1024 * 1024


def exported(db: Database, *, after: int = 0) -> Iterator[bytes]:
    """Every line of the log that is still kept, each a JSON object without the line's end."""
    while rows := db.read(lambda tx, after=after: tx.fetch(Q["log_page"], {"after": after, "limit": PAGE})):
        for number, at, kind, body in rows:
            after = number
            if kind == "tick":
                yield msgspec.json.encode({"tick": format_instant(at)})
            else:
                batch = zstandard.ZstdDecompressor().decompress(bytes(body), max_output_size=MOST_BYTES)
                yield msgspec.json.encode({"receivedAt": format_instant(at), "batch": _json(batch)})


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
