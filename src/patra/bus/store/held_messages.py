"""Messages of a stream that wait for a process whose catalogue knows their type and version (B8)."""

from collections.abc import Collection, Sequence

import msgspec

from patra.kernel.db import Queries, Tx

Q = Queries.load("patra.bus")


class HeldMessage(msgspec.Struct, frozen=True):
    held_id: int
    position: int
    body: str
    published_by: str


class NewHeldMessage(msgspec.Struct, frozen=True, kw_only=True):
    """`major` is the newest version in the message that the reader does not know."""

    position: int
    event_type: str
    major: int
    body: str
    published_by: str
    detail: str


class HeldCount(msgspec.Struct, frozen=True, kw_only=True):
    """How many messages of a type and major are held, and since when the first."""

    event_type: str
    major: int
    messages: int
    oldest: int


def hold(tx: Tx, stream: str, messages: Sequence[NewHeldMessage], now: int) -> None:
    """Keep messages in the order in which they came."""
    if messages:
        tx.insert(
            "bus_held_message", [{"stream": stream, "held_at": now, **msgspec.structs.asdict(one)} for one in messages]
        )


def list_known(tx: Tx, stream: str, majors: Collection[tuple[str, int]], limit: int) -> list[HeldMessage]:
    """The oldest messages whose type and major are among those given."""
    found = tx.fetch(Q["held_messages_known"], {"stream": stream, "limit": limit}, rows=sorted(majors))
    return [HeldMessage(*row) for row in found]


def remove(tx: Tx, held: Sequence[HeldMessage]) -> int:
    return tx.execute(Q["held_messages_remove"], rows=[(one.held_id,) for one in held])


def counts(tx: Tx) -> list[HeldCount]:
    return [HeldCount(**row) for row in tx.fetch_dicts(Q["held_messages_counts"])]
