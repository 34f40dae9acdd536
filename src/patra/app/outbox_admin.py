"""What the outbox could not deliver, and another try for it (A4)."""

from collections.abc import Sequence

import msgspec

from patra.app.component import Check, Health
from patra.attribution.delivery.relay import CHANNEL as ARCHIVE
from patra.kernel import outbox
from patra.kernel.clock import format_instant
from patra.kernel.db import Database, Tx
from patra.kernel.errors import IllegalMove

MAX_COUNTED = 100_000
"""Messages of a channel that the doctor counts; where there are more, it says so."""


class UndeliveredMessage(msgspec.Struct, frozen=True, kw_only=True):
    """A message that was refused or given up."""

    channel: str
    seq: int
    key: str
    state: str
    reason: str
    attempts: int
    appended_at: str
    failed_at: str


def lines(tx: Tx, *, channel: str = "", after: int = 0, limit: int = 100) -> list[UndeliveredMessage]:
    """The oldest first; `after` is the `seq` to page on from."""
    return [
        UndeliveredMessage(
            channel=one.channel,
            seq=one.seq,
            key=one.key,
            state=one.state,
            reason=one.reason or "",
            attempts=one.attempts,
            appended_at=format_instant(one.appended_at),
            failed_at=format_instant(one.failed_at),
        )
        for one in outbox.undelivered_messages(tx, channel=channel, after=after, limit=limit)
    ]


def requeue(tx: Tx, channel: str, seqs: Sequence[int], now: int) -> int:
    """Try messages again; gives how many. What an archive did not take is the state of its record, and final."""
    if channel == ARCHIVE:
        raise IllegalMove("outbox_final", "a record that its archive did not take is conflicted or rejected for good")
    return outbox.requeue(tx, channel, seqs, now)


def check(db: Database) -> Check:
    """The doctor's look: whether something waits for an operator."""
    found = db.read(lambda tx: outbox.backlog_up_to(tx, MAX_COUNTED))
    dead = [f"{_count_phrase(n)} of {channel} {state}" for (channel, state), n in found.items() if state != "pending"]
    if not dead:
        more = any(count >= MAX_COUNTED for count in found.values())
        waiting = f"{sum(found.values())}{' or more' if more else ''}"
        return Check(name="outbox", health=Health.OK, found=f"{waiting} on their way, none refused or given up")
    return Check(name="outbox", health=Health.WARNING, found=", ".join(dead), advice="`patra outbox` says why")


def _count_phrase(count: int) -> str:
    return str(count) if count < MAX_COUNTED else f"{count} or more"
