"""A table of work goes in; pieces of it, each held by one worker at a time, come out (DESIGN: leases).

A `LeaseTable` names the columns of any table that can be leased: an engine's own tasks, or the kernel's `krn_lease`.
Taking a lease raises the row's fence. A write of the work calls `guard` in its own transaction; it fails when the
lease was lost meanwhile, so a worker that was thought dead cannot write late.

Time is the caller's `now`; where several machines lease from one store, they pass `tx.server_now()`, the one clock that
they share.
"""

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache

import msgspec

from patra.kernel.db import Statement, Tx
from patra.kernel.db.queries import Column, parse_columns
from patra.kernel.errors import Fenced

_IDENTIFIER = re.compile(r"[a-z_][a-z0-9_]*\Z")


class LeaseTable(msgspec.Struct, frozen=True, kw_only=True):
    """Where work waits. `scope` says which rows belong to it, `ready` which of those may be taken, in SQL of our own.

    The table has an index on `(partition, priority, due, id) WHERE owner IS NULL AND ready`, and one on
    `(until) WHERE owner IS NOT NULL`.
    """

    table: str
    id: str
    partition: str
    priority: str
    due: str
    owner: str = "lease_owner"
    until: str = "leased_until"
    fence: str = "lease_fence"
    count: str = "lease_count"
    scope: str = "1 = 1"
    ready: str = "1 = 1"

    def __post_init__(self) -> None:
        for name in (self.table, self.id, self.partition, self.priority, self.due, self.owner, self.until, self.fence):
            if not _IDENTIFIER.match(name):
                raise ValueError(f"{name!r} is no name of ours for a table or column")


class Lease(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    partition: str
    holder: str
    fence: int
    until: int


class Work(msgspec.Struct, frozen=True, kw_only=True):
    """A piece of work in the kernel's own table."""

    item: str
    partition: str = ""
    priority: int = 100
    due_at: int = 0


def pool(name: str) -> LeaseTable:
    """The kernel's own table of work, under a name."""
    if not re.fullmatch(r"[a-z0-9_.-]+", name):
        raise ValueError(f"{name!r} is no name for a pool of work")
    return LeaseTable(
        table="krn_lease",
        id="item",
        partition="partition_key",
        priority="priority",
        due="due_at",
        scope=f"pool = '{name}'",
    )


def add(tx: Tx, name: str, work: Sequence[Work]) -> int:
    """Put work into a pool; what is there already stays as it is. Gives how many were new."""
    rows = [
        {"pool": name, "item": w.item, "partition_key": w.partition, "priority": w.priority, "due_at": w.due_at}
        for w in work
    ]
    return len(tx.insert_absent("krn_lease", rows, key=("pool", "item")))


def acquire(
    tx: Tx, where: LeaseTable, *, holder: str, n: int, now: int, ttl: int, per_partition: int | None = None
) -> list[Lease]:
    """Take up to `n` free and due pieces, by priority, then due time, then id, in turn across the partitions.

    `per_partition` bounds how many of one partition are held at once, by whomever. Call `expire` before: only free work
    is taken.
    """
    sql = _texts(where)
    taken: dict[str, int] = {}
    if per_partition is not None:
        if tx.dialect == "postgres":  # the count and what is taken on it must not be mixed with another worker's
            tx.fetch(sql.take_turns)
        taken = dict(tx.fetch(sql.held))
    wanted = n if per_partition is None else min(n, per_partition)
    ranks: dict[str, int] = {}
    candidates: list[tuple[int, int, int, str]] = []
    for item, partition, priority, due in tx.fetch(sql.candidates, {"now": now, "limit": wanted}):
        rank = ranks.get(partition, taken.get(partition, 0))
        ranks[partition] = rank + 1
        if per_partition is None or rank < per_partition:
            candidates.append((rank, priority, due, item))
    chosen = sorted(candidates)[:n]
    order = {item: place for place, (_, _, _, item) in enumerate(chosen)}
    won = tx.fetch(sql.take, {"holder": holder, "until": now + ttl}, rows=[(item,) for item in sorted(order)])
    leases = [Lease(id=item, partition=part, holder=holder, fence=fence, until=now + ttl) for item, part, fence in won]
    return sorted(leases, key=lambda lease: order[lease.id])


def renew(tx: Tx, where: LeaseTable, leases: Iterable[Lease], *, now: int, ttl: int) -> list[Lease]:
    """Hold on to leases; gives those that are still held, with their new end."""
    by_id = {lease.id: lease for lease in leases}
    kept = tx.fetch(_texts(where).renew, {"until": now + ttl}, rows=_rows(by_id.values()))
    return [msgspec.structs.replace(by_id[item], until=now + ttl) for (item,) in kept]


def release(tx: Tx, where: LeaseTable, leases: Iterable[Lease]) -> int:
    """Give work back unfinished: the next worker may take it at once. A lost lease is left alone."""
    return tx.execute(_texts(where).release, rows=_rows(leases))


def finish(tx: Tx, where: LeaseTable, leases: Iterable[Lease]) -> int:
    """Take finished work out of the table, in the transaction of its result. Raises `Fenced` when a lease was lost."""
    held = list(leases)
    guard(tx, where, held)
    return tx.execute(_texts(where).finish, rows=_rows(held))


def guard(tx: Tx, where: LeaseTable, leases: Sequence[Lease]) -> None:
    """Make the caller's transaction fail when one of the leases was lost, and keep them while it runs."""
    held = {item for (item,) in tx.fetch(_texts(where).guard, rows=_rows(leases))}
    lost = sorted({lease.id for lease in leases} - held)
    if lost:
        raise Fenced("lease_lost", f"{len(lost)} of {where.table} went to another worker, among them {lost[0]}")


def expire(tx: Tx, where: LeaseTable, *, now: int, limit: int = 1000) -> list[str]:
    """Free what its holder let run out, in bounded bites; gives the ids, for an engine that moves a state with them."""
    return [item for (item,) in tx.fetch(_texts(where).expire, {"now": now, "limit": limit})]


class _Texts(msgspec.Struct, frozen=True, kw_only=True):
    expire: Statement
    take_turns: Statement
    held: Statement
    candidates: Statement
    take: Statement
    renew: Statement
    release: Statement
    finish: Statement
    guard: Statement


def _rows(leases: Iterable[Lease]) -> list[tuple[str, str, int]]:
    return [(lease.id, lease.holder, lease.fence) for lease in sorted(leases, key=lambda lease: lease.id)]


@lru_cache(maxsize=64)
def _texts(w: LeaseTable) -> _Texts:
    t = w.table
    mine = f"{w.scope} AND {t}.{w.id} = rows.id AND {t}.{w.owner} = rows.holder AND {t}.{w.fence} = rows.fence"
    free = f"{w.owner} IS NULL AND {w.scope} AND {w.ready}"
    held = f"{w.owner} IS NOT NULL AND {w.scope}"
    # The partitions that have free work, found by leaping from one to the next along the index.
    parts = (
        f"WITH RECURSIVE parts(p) AS (SELECT min({w.partition}) FROM {t} WHERE {free} UNION ALL "
        f"SELECT (SELECT min({w.partition}) FROM {t} WHERE {free} AND {w.partition} > parts.p) "
        "FROM parts WHERE p IS NOT NULL)"
    )
    best = (
        f"FROM {t} x WHERE {free} AND x.{w.partition} = parts.p AND x.{w.due} <= :now "
        f"ORDER BY x.{w.priority}, x.{w.due}, x.{w.id} LIMIT :limit"
    )
    found = f"x.{w.id}, x.{w.partition}, x.{w.priority}, x.{w.due}"
    order = f"ORDER BY x.{w.partition}, x.{w.priority}, x.{w.due}, x.{w.id}"
    return _Texts(
        expire=_same(
            "expire",
            f"UPDATE {t} SET {w.owner} = NULL, {w.until} = NULL WHERE {held} AND {w.until} < :now AND {w.id} IN "
            f"(SELECT {w.id} FROM {t} WHERE {held} AND {w.until} < :now ORDER BY {w.until} LIMIT :limit "
            f"{{skip_locked}}) RETURNING {w.id}",
        ),
        take_turns=_same("take_turns", f"SELECT pg_advisory_xact_lock(hashtext('lease {t}'))"),
        held=_same("held", f"SELECT {w.partition}, count(*) FROM {t} WHERE {held} GROUP BY {w.partition}"),
        candidates=Statement(
            name="candidates",
            text={
                "sqlite": f"{parts} SELECT {found} FROM parts JOIN {t} x ON x.rowid IN (SELECT x.rowid {best}) {order}",
                "postgres": f"{parts} SELECT {found} FROM parts CROSS JOIN LATERAL "
                f"(SELECT * {best} {{skip_locked}}) x {order}",
            },
        ),
        take=_same(
            "take",
            f"UPDATE {t} SET {w.owner} = :holder, {w.until} = :until, "
            f"{w.fence} = {w.fence} + 1, {w.count} = {w.count} + 1 "
            f"FROM rows WHERE {t}.{w.id} = rows.id AND {free} RETURNING {t}.{w.id}, {w.partition}, {w.fence}",
            "id text",
        ),
        renew=_same("renew", f"UPDATE {t} SET {w.until} = :until FROM rows WHERE {mine} RETURNING {t}.{w.id}", _HELD),
        release=_same("release", f"UPDATE {t} SET {w.owner} = NULL, {w.until} = NULL FROM rows WHERE {mine}", _HELD),
        finish=_same("finish", f"DELETE FROM {t} WHERE {w.scope} AND {w.id} IN (SELECT id FROM rows)", _HELD),
        guard=_same("guard", f"SELECT {t}.{w.id} FROM rows JOIN {t} ON {mine} {{for_update}}", _HELD),
    )


_HELD = "id text, holder text, fence int"


def _same(name: str, text: str, rows: str = "") -> Statement:
    columns: tuple[Column, ...] = parse_columns(rows)
    return Statement(name=name, text={"sqlite": text, "postgres": text}, rows=columns)
