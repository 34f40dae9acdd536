"""Consumer groups, their subscriptions, webhooks, operators' acts, the released catalogue, positions in streams."""

from enum import StrEnum
from typing import Any

import msgspec

from patra.bus.versions import VersionRange, parse_range
from patra.kernel.db import Queries, Tx

Q = Queries.load("patra.bus")


class G(StrEnum):
    ACTIVE = "active"
    PAUSED = "paused"


class GroupGone(LookupError):  # noqa: N818  as StoreBusy: what it is, not that it is one
    """A process works for a group that is not on the store."""


class Group(msgspec.Struct, frozen=True):
    group_id: int
    state: G


class GroupTotals(msgspec.Struct, frozen=True, kw_only=True):
    """How a group fares; `oldest` is when the oldest event that it has not handled was published."""

    name: str
    state: G
    waiting: int
    failing: int
    held: int
    dead: int
    oldest: int | None
    subscriptions: dict[str, list[str]]


class Act(msgspec.Struct, frozen=True, kw_only=True):
    at: int
    done_by: str
    act: str
    subject: str
    detail: dict[str, Any]


class Webhook(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    url: str
    secret: str
    created_by: str
    created_at: int


class Position(msgspec.Struct, frozen=True):
    """How far a stream was read; another `incarnation` is another stream under the same name."""

    incarnation: str
    position: int


def lock(tx: Tx) -> None:
    """Wait for publishers in hand and keep new ones waiting while routes change."""
    tx.fetch(Q["routing_lock"])


def lock_shared(tx: Tx) -> None:
    """Keep the routes as they are until this transaction is over."""
    tx.fetch(Q["routing_lock_shared"])


def ensure(tx: Tx, name: str, now: int) -> Group:
    tx.execute(Q["group_add"], {"name": name, "now": now})
    found = find(tx, name)
    if found is None:
        raise LookupError(name)
    return found


def find(tx: Tx, name: str) -> Group | None:
    row = tx.fetch_one(Q["group_find"], {"name": name})
    return Group(row[0], G(row[1])) if row else None


def require(tx: Tx, name: str) -> Group:
    """A group that must be there. Who works for it asks each time: it may be forgotten, and join again as another."""
    found = find(tx, name)
    if found is None:
        raise GroupGone(f"the group {name} is not on this store: it has not joined, or was forgotten since")
    return found


def set_state(tx: Tx, name: str, to: G, now: int) -> bool:
    return tx.execute(Q["group_set_state"], {"name": name, "state": to.value, "now": now}) > 0


def subscribe(tx: Tx, group_id: int, event_type: str, versions: str, now: int) -> bool:
    """Add a subscription; gives whether it is new."""
    row = {"group_id": group_id, "event_type": event_type, "versions": versions, "created_at": now}
    return bool(tx.insert_absent("bus_subscription", [row], key=("event_type", "group_id", "versions")))


def unsubscribe(tx: Tx, group_id: int, event_type: str) -> int:
    return tx.execute(Q["subscription_remove"], {"group_id": group_id, "event_type": event_type})


def remove(tx: Tx, group_id: int) -> int:
    """Forget a group: its subscriptions and what it had still to handle; gives how many events that were."""
    tx.execute(Q["subscriptions_remove_all"], {"group_id": group_id})
    waiting = tx.execute(Q["group_remove_deliveries"], {"group_id": group_id})
    tx.execute(Q["group_remove"], {"group_id": group_id})
    return waiting


def subscriptions(tx: Tx) -> list[tuple[str, str, VersionRange]]:
    """Group, event type, versions."""
    found: list[tuple[str, str, VersionRange]] = []
    for group, event_type, versions in tx.fetch(Q["subscriptions"]):
        if (accepted := parse_range(versions)) is not None:
            found.append((group, event_type, accepted))
    return found


def totals(tx: Tx) -> list[GroupTotals]:
    wanted: dict[str, dict[str, list[str]]] = {}
    for group, event_type, versions in tx.fetch(Q["subscriptions"]):
        wanted.setdefault(group, {}).setdefault(event_type, []).append(versions)
    return [
        GroupTotals(
            name=row["name"],
            state=G(row["state"]),
            waiting=row["waiting"],
            failing=row["failing"],
            held=row["held"],
            dead=row["dead"],
            oldest=row["oldest"],
            subscriptions=wanted.get(row["name"], {}),
        )
        for row in tx.fetch_dicts(Q["group_totals"])
    ]


def record_act(tx: Tx, *, by: str, act: str, subject: str, detail: dict[str, Any], now: int) -> None:
    row = {"at": now, "done_by": by, "act": act, "subject": subject, "detail": msgspec.json.encode(detail).decode()}
    tx.insert("bus_act", [row])


def acts(tx: Tx, *, subject: str = "", limit: int = 100) -> list[Act]:
    return [
        Act(at=at, done_by=by, act=act, subject=to, detail=msgspec.json.decode(detail, type=dict[str, Any]))
        for at, by, act, to, detail in tx.fetch(Q["acts"], {"subject": subject, "limit": limit})
    ]


def last_release(tx: Tx) -> bytes | None:
    row = tx.fetch_one(Q["catalogue_last"])
    return row[0].encode() if row else None


def record_release(tx: Tx, digest: str, content: bytes, now: int) -> None:
    row = {"digest": digest, "released_at": now, "content": content.decode()}
    tx.insert_absent("bus_catalogue", [row], key=("digest",))


def position(tx: Tx, stream: str) -> Position:
    row = tx.fetch_one(Q["position"], {"stream": stream})
    return Position(row[0], row[1]) if row else Position("", 0)


def set_position(tx: Tx, stream: str, was: Position, to: Position, now: int) -> bool:
    """Compare and set: False when another reader of the stream was faster."""
    params = {
        "stream": stream,
        "was_incarnation": was.incarnation,
        "was_position": was.position,
        "incarnation": to.incarnation,
        "position": to.position,
        "now": now,
    }
    return tx.execute(Q["position_set"], params) == 1


def webhooks(tx: Tx) -> list[Webhook]:
    return [
        Webhook(name=name, url=url, secret=secret, created_by=by, created_at=at)
        for name, url, secret, by, at in tx.fetch(Q["webhooks"])
    ]


def add_webhook(tx: Tx, webhook: Webhook) -> bool:
    return bool(tx.insert_absent("bus_webhook", [msgspec.structs.asdict(webhook)], key=("name",)))


def remove_webhook(tx: Tx, name: str) -> bool:
    return tx.execute(Q["webhook_remove"], {"name": name}) > 0
