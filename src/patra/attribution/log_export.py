"""Turns the log of a live store into the lines that `replay` reads: what came in, in the order of decision.

A batch that was not JSON stands as the text it was, which is refused in the same way. Ticks are the turns of the timer
that applied something.

Lines that retention moved to history are read from there. A log that lost its beginning, because it was deleted or its
files are not given, begins with a line that says so, and `replay` refuses it: without what came before, duplicates
would be billed once more (F24).

The log is that of one moment, however long reading it takes: on PostgreSQL numbers are drawn before they are committed,
so a batch may turn up behind what was read already, and what builds on it must not be read without it.
"""

from collections.abc import Iterator

import msgspec

from patra.attribution.history.files import Span, files_between
from patra.attribution.history.kinds import log_lost_before, log_purged_before
from patra.attribution.history.log_lines import LogLine, lines_of_file
from patra.attribution.intake.envelope import read_json
from patra.attribution.intake.zstd import decompress_body
from patra.attribution.storage.key_index import MAX_TRANSACTION_TIME
from patra.attribution.storage.sql import Q
from patra.kernel.clock import format_instant
from patra.kernel.db import Database, Row, Tx
from patra.kernel.errors import StoreBusy
from patra.kernel.files import FilePlace

PAGE_ROWS = 500
LAST_NUMBER = 2**62


def export_log(db: Database, now: int, history: FilePlace | None = None) -> Iterator[bytes]:
    """Every line of the log that is still kept, each a JSON object without the line's end; with `history`, all others.

    Raises Invalid where a file of history is missing or damaged.
    """
    missing_before = log_purged_before if history is None else log_lost_before
    purged = db.read(missing_before)
    if purged is not None:
        yield msgspec.json.encode({"purgedBefore": format_instant(purged)})
    for _, at, kind, sent in _lines(db, now, history):
        if kind == "tick":
            yield msgspec.json.encode({"tick": format_instant(at)})
        else:
            yield msgspec.json.encode({"receivedAt": format_instant(at), "batch": _json(sent or b"")})
    if purged is None and db.read(missing_before) is not None:
        raise StoreBusy("log_purged_meanwhile", "lines of the log were purged while it was read: export again")


def _lines(db: Database, now: int, history: FilePlace | None) -> Iterator[LogLine]:
    """Lines by number, from the store and from files. A page is read together with the list of files, and lines are
    deleted after their file is listed: what a page lacks is in a file, also where lines move while it is read.
    """
    settled, newer = db.read(lambda tx: _extent(tx, now - MAX_TRANSACTION_TIME))
    last = max(newer, default=settled)
    after, more, known, waiting = 0, True, set[int](), list[LogLine]()
    while more:
        page, files = db.read(lambda tx, after=after: _page(tx, after, history, known))
        bound = min(files[0].first if files else LAST_NUMBER, last + 1)
        if len(page) == PAGE_ROWS:
            bound = min(bound, page[-1][0] + 1)
        found = {line[0]: line for line in waiting if line[0] < bound}
        for number, at, kind, body in page:
            if number < bound and (number <= settled or number in newer):
                found[number] = number, at, kind, None if body is None else decompress_body(bytes(body))
        yield from (found[number] for number in sorted(found))
        waiting = [line for line in waiting if line[0] >= bound]
        after = max(after, bound - 1)
        if history is not None and files and bound == files[0].first:
            known.add(files[0].number)
            lines = (line for line in lines_of_file(history, files[0]) if line[0] > after)
            waiting = sorted([*waiting, *lines])
        else:
            more = after < last


def _page(tx: Tx, after: int, history: FilePlace | None, known: set[int]) -> tuple[list[Row], list[Span]]:
    """The next lines of the store, and the files that are still to be read; in this order."""
    rows = tx.fetch(Q["log_page"], {"after": after, "limit": PAGE_ROWS})
    files = files_between(tx, "log") if history is not None else []
    return rows, [one for one in files if one.number not in known]


def _extent(tx: Tx, before: int) -> tuple[int, set[int]]:
    """Up to which number no line can turn up any more, and the numbers beyond it that are there."""
    received = tx.fetch(Q["received_before"], {"before": before})
    settled = received[0][0] if received else 0
    return settled, {number for (number,) in tx.fetch(Q["log_numbers"], {"after": settled})}


def _json(body: bytes) -> msgspec.Raw:
    """The batch as it was sent, on one line; as text where it was not JSON at all."""
    try:
        read_json(body)
    except (ValueError, RecursionError):
        return msgspec.Raw(msgspec.json.encode(body.decode(errors="replace")))
    return msgspec.Raw(_one_line(body))


def _one_line(body: bytes) -> bytes:
    """JSON text holds line ends only between its tokens, where a space does as well."""
    return body.replace(b"\r", b" ").replace(b"\n", b" ")
