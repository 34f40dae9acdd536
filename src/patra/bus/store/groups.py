"""Consumer groups, their subscriptions, webhooks, operators' acts, the released catalogue, positions in streams."""

from enum import StrEnum
from typing import Any

import msgspec

from patra.bus.catalogue.versions import VersionRange, parse_range
from patra.kernel.clock import MINUTE
from patra.kernel.db import Queries, Tx
from patra.kernel.safety.known_secrets import know_secret
from patra.kernel.safety.redact import redact_url

Q = Queries.load("patra.bus")
MAX_COUNTED_EVENTS = 100_000
WEBHOOK_PREFIX = "webhook."  # in front of the group of an endpoint


class GroupState(StrEnum):
    ACTIVE = "active"
    PAUSED = "paused"


class GroupGone(LookupError):  # noqa: N818  as StoreBusy: what it is, not that it is one
    """A process works for a group that is not on the store."""


class Group(msgspec.Struct, frozen=True):
    group_id: int
    state: GroupState
    remote: bool = False  # whether programs pull its events


class GroupTotals(msgspec.Struct, frozen=True, kw_only=True):
    """How a group fares; `oldest` is when the oldest event that it has not handled was published.

    Counts end at MAX_COUNTED_EVENTS: a long line would take as long to count as to handle.
    """

    name: str
    state: GroupState
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
    """An endpoint as it was configured. `tenants` are those whose events it gets; none named: all."""

    name: str
    url: str
    secret: str
    created_by: str
    created_at: int
    tenants: tuple[str, ...] = ()
    old_secret: str = ""
    old_secret_until: int = 0

    def __repr__(self) -> str:
        """Without its secrets: a traceback or a log line must not hold them."""
        return f"Webhook(name={self.name!r}, url={redact_url(self.url)!r})"


class WebhookState(msgspec.Struct, frozen=True, kw_only=True):
    """The health of an endpoint; a suspended one is not called until an operator resumes it."""

    last_success_at: int | None
    suspended_at: int | None
    suspended_reason: str


class Position(msgspec.Struct, frozen=True):
    """How far a stream was read; another `incarnation` is another stream under the same name."""

    incarnation: str
    position: int


def lock(tx: Tx) -> None:
    """Wait for running publishers and keep new ones waiting while routes change."""
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
    return Group(row[0], GroupState(row[1]), bool(row[2])) if row else None


def require(tx: Tx, name: str) -> Group:
    """A group that must be there. Who works for it asks each time: it may be forgotten, and join again as another."""
    found = find(tx, name)
    if found is None:
        raise GroupGone(f"the group {name} is not on this store: it has not joined, or was forgotten since")
    return found


def set_state(tx: Tx, name: str, to: GroupState, now: int) -> bool:
    return tx.execute(Q["group_set_state"], {"name": name, "state": to.value, "now": now}) > 0


def set_remote(tx: Tx, name: str) -> None:
    """Note that a group is consumed by a program of others, over HTTP (B9)."""
    tx.execute(Q["group_set_remote"], {"name": name})


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


def names(tx: Tx) -> list[str]:
    return [name for (name,) in tx.fetch(Q["group_names"])]


def totals(tx: Tx) -> list[GroupTotals]:
    wanted: dict[str, dict[str, list[str]]] = {}
    for group, event_type, versions in tx.fetch(Q["subscriptions"]):
        wanted.setdefault(group, {}).setdefault(event_type, []).append(versions)
    return [
        GroupTotals(
            name=row["name"],
            state=GroupState(row["state"]),
            waiting=row["waiting"],
            failing=row["failing"],
            held=row["held"],
            dead=row["dead"],
            oldest=row["oldest"],
            subscriptions=wanted.get(row["name"], {}),
        )
        for row in tx.fetch_dicts(Q["group_totals"], {"most": MAX_COUNTED_EVENTS})
    ]


def oldest_waiting(tx: Tx, now: int) -> dict[str, int]:
    """By active group, since when the oldest event that it could handle waits: published, or due where that is later.

    What a long worker holds, what waits for its retry and what is scheduled for later could not be handled.
    """
    return {
        name: max(published_at, due_at) if state == "waiting" or replay else published_at
        for name, state, replay, due_at, published_at in tx.fetch(Q["groups_oldest_waiting"], {"now": now})
    }


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


def release_in_force(tx: Tx) -> tuple[str, str] | None:
    """The digest of the catalogue in force, and its text."""
    row = tx.fetch_one(Q["catalogue_last"])
    return (row[1], row[0]) if row else None


def record_release(tx: Tx, digest: str, content: bytes, now: int) -> bool:
    """Put a catalogue in force; its version goes up only when it is another one, and that is what is given back."""
    row = {"digest": digest, "released_at": now, "content": content.decode()}
    tx.insert_absent("bus_catalogue", [row], key=("digest",))
    return tx.execute(Q["catalogue_put_in_force"], {"digest": digest, "now": now}) > 0


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
        Webhook(
            name=name,
            url=url,
            secret=know_secret(secret),
            created_by=by,
            created_at=at,
            tenants=msgspec.json.decode(tenants, type=tuple[str, ...]),
            old_secret=know_secret(old),
            old_secret_until=until,
        )
        for name, url, secret, by, at, tenants, old, until in tx.fetch(Q["webhooks"])
    ]


def webhook_states(tx: Tx) -> dict[str, WebhookState]:
    return {
        name: WebhookState(last_success_at=success, suspended_at=at, suspended_reason=reason)
        for name, success, at, reason in tx.fetch(Q["webhook_states"])
    }


def add_webhook(tx: Tx, webhook: Webhook) -> bool:
    row = msgspec.structs.asdict(webhook) | {"tenants": msgspec.json.encode(webhook.tenants).decode()}
    return bool(tx.insert_absent("bus_webhook", [row], key=("name",)))


def rotate_webhook(tx: Tx, name: str, secret: str, until: int) -> bool:
    """A new secret; the old one signs along until an instant."""
    return tx.execute(Q["webhook_rotate"], {"name": name, "secret": secret, "until": until}) > 0


def forget_old_secrets(tx: Tx, now: int) -> int:
    """Secrets that were replaced and no longer sign leave the store."""
    return tx.execute(Q["webhooks_forget_old_secrets"], {"now": now})


def webhook_succeeded(tx: Tx, name: str, now: int) -> None:
    """Note, at most once a minute, that the endpoint took an event."""
    tx.execute(Q["webhook_succeeded"], {"name": name, "now": now, "before": now - MINUTE})


def suspend(tx: Tx, group: str, reason: str, now: int) -> bool:
    """Stop calling an endpoint and keep what it has still to get (B9); gives whether it was called until now."""
    tx.execute(Q["webhook_suspend"], {"name": group.removeprefix(WEBHOOK_PREFIX), "reason": reason, "now": now})
    changed = set_state(tx, group, GroupState.PAUSED, now)
    if changed:
        record_act(tx, by="bus", act="suspend", subject=group, detail={"reason": reason}, now=now)
    return changed


def resume(tx: Tx, group: str, now: int) -> bool:
    """Hand events to a group again, those that wait for a retry at once; gives whether it was paused."""
    tx.execute(Q["webhook_resume"], {"name": group.removeprefix(WEBHOOK_PREFIX)})
    changed = set_state(tx, group, GroupState.ACTIVE, now)
    if changed and group.startswith(WEBHOOK_PREFIX):
        tx.execute(Q["group_retry_now"], {"name": group, "now": now})
    return changed


def remove_webhook(tx: Tx, name: str) -> bool:
    return tx.execute(Q["webhook_remove"], {"name": name}) > 0
