"""Messages between stores that share a stream: frozen types, adopted catalogues (B5, B8)."""

import msgspec

from patra.kernel.db import Queries, Tx
from patra.kernel.ids import new_id

Q = Queries.load("patra.bus")
SUBJECT = "_control"
PREFIX = b'{"patra_control":'


class FreezeTold(msgspec.Struct, frozen=True, kw_only=True, tag="freeze"):
    """A store froze publishing of a type, or thawed it: then the reason is empty."""

    store_id: str
    event_type: str
    reason: str
    since: int


class CatalogueTold(msgspec.Struct, frozen=True, kw_only=True, tag="catalogue"):
    """A store adopted a catalogue."""

    store_id: str
    digest: str
    content: str


class Control(msgspec.Struct, frozen=True, kw_only=True):
    """A message of the stream that is not an event."""

    patra_control: FreezeTold | CatalogueTold


def encode(told: FreezeTold | CatalogueTold) -> bytes:
    return msgspec.json.encode(Control(patra_control=told))


def decode(body: bytes) -> FreezeTold | CatalogueTold | None:
    """The content of a control message, if it is one. Raises msgspec.DecodeError where it cannot be read."""
    if not body.startswith(PREFIX):
        return None
    return msgspec.json.decode(body, type=Control).patra_control


def store_id(tx: Tx) -> str:
    """How this store is known to others; made when first asked for."""
    if (row := tx.fetch_one(Q["store_id"])) is None:
        tx.insert_absent("bus_store", [{"only_row": 1, "store_id": new_id()}], key=("only_row",))
        row = tx.fetch_one(Q["store_id"])
    return str(row[0]) if row else ""


def take(tx: Tx, told: FreezeTold | CatalogueTold, now: int) -> bool:
    """Store the state that another store announced; gives whether it was another."""
    if told.store_id == store_id(tx):
        return False
    match told:
        case FreezeTold(reason=""):
            tx.execute(Q["remote_freeze_remove"], {"event_type": told.event_type, "store_id": told.store_id})
        case FreezeTold():
            tx.execute(Q["remote_freeze_set"], msgspec.structs.asdict(told))
        case CatalogueTold():
            params = {"store_id": told.store_id, "digest": told.digest, "content": told.content, "now": now}
            tx.execute(Q["remote_catalogue_set"], params)
    return True


def forget_freezes(tx: Tx, event_type: str) -> int:
    """An operator's word holds here against freezes of other stores."""
    return tx.execute(Q["remote_freeze_remove"], {"event_type": event_type, "store_id": ""})


def catalogue(tx: Tx, digest: str) -> bytes | None:
    row = tx.fetch_one(Q["remote_catalogue"], {"digest": digest})
    return row[0].encode() if row else None
