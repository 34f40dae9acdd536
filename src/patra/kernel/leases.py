"""Leases: rows of a table of work, each held by one worker at a time.

A `LeaseTable` names the columns of any table that can be leased: an engine's own tasks, or the kernel's `krn_lease`.
Taking a lease raises the row's fence. A write of the work calls `guard` in its own transaction; it fails when the
lease was lost meanwhile, so a worker that was thought dead cannot write late.

Time is the caller's `now`; where several machines lease from one store, they pass `tx.server_now()`, the one clock that
they share.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache

import msgspec

from patra.kernel.db import Dialect, Row, Statement, Tx
from patra.kernel.db.api import identifier
from patra.kernel.db.queries import DIALECTS, parse_columns, statement
from patra.kernel.errors import Fenced

MAX_INT64 = 2**63 - 1
CONTENDERS = 4  # workers that look at the same moment: each reads this many times what it takes, to find some free


class LeaseTable(msgspec.Struct, frozen=True, kw_only=True):
    """Where work waits. `scope` says which rows belong to it, `ready` which of those may be taken, in SQL of our own.

    The table has an index on `(partition, priority, due, id) WHERE owner IS NULL AND ready`, and one on
    `(until) WHERE owner IS NOT NULL`. No partition is NULL, and there are hundreds of them at most: every search for
    work visits each that has some. On SQLite it is a table with a rowid.
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
        for name in (self.table, self.id, self.partition, self.priority, self.due):
            identifier(name)
        for name in (self.owner, self.until, self.fence, self.count):
            identifier(name)


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
        raise ValueError(f"{name!r} is not a name for a pool of work")
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
    tx: Tx,
    where: LeaseTable,
    *,
    holder: str,
    n: int,
    now: int,
    ttl: int,
    per_partition: int | None = None,
    bounds: Mapping[str, int] | None = None,
) -> list[Lease]:
    """Take up to `n` free and due pieces, by priority, then due time, then id, the partitions taking turns.

    Among pieces of one priority it is the turn of the partition of which the fewest are held, by whomever, so that one
    with much work does not keep the others waiting. `per_partition` bounds how many of one are held at once, `bounds`
    how many of a single one: of a partition that is bound to 0 nothing is taken. Only free work is taken: call `expire`
    before.
    """
    sql = _texts(where)
    if (per_partition is not None or bounds) and tx.dialect == "postgres":
        tx.fetch(sql.take_turns)  # another worker must not count the same partition as having room
    tighter = {k: v if per_partition is None else min(v, per_partition) for k, v in (bounds or {}).items()}
    own = msgspec.json.encode(tighter).decode() if tighter else None
    params = {"holder": holder, "until": now + ttl, "now": now, "bound": per_partition, "bounds": own}
    won: list[Row] = []
    while len(won) < n:
        found = tx.fetch(sql.take, {**params, "n": n - len(won)})
        if not found:
            break
        won += found
    return [
        Lease(id=item, partition=partition, holder=holder, fence=fence, until=now + ttl)
        for item, partition, fence in _in_turn(won)
    ]


def _in_turn(won: Sequence[Row]) -> Iterator[tuple[str, str, int]]:
    """By priority; in it the first of each partition, then the second of each, and so on."""
    ranks: dict[str, int] = {}
    ordered: list[tuple[int, int, int, str, str, int]] = []
    for priority, due, item, partition, fence in sorted(won):
        rank = ranks[partition] = ranks.get(partition, 0) + 1
        ordered.append((priority, rank, due, item, partition, fence))
    for _, _, _, item, partition, fence in sorted(ordered):
        yield item, partition, fence


def renew(tx: Tx, where: LeaseTable, leases: Iterable[Lease], *, now: int, ttl: int) -> list[Lease]:
    """Hold on to leases; gives those that are still held, with their new end."""
    kept = _still_held(tx, where, leases)
    tx.execute(_texts(where).renew, {"until": now + ttl}, rows=[(lease.id,) for lease in kept])
    return [msgspec.structs.replace(lease, until=now + ttl) for lease in kept]


def held_leases(tx: Tx, where: LeaseTable, leases: Iterable[Lease]) -> list[Lease]:
    """Those of the leases that were not lost, which cannot be lost while the transaction runs."""
    return _still_held(tx, where, leases)


def has_free(tx: Tx, where: LeaseTable, *, now: int) -> bool:
    """Whether there is work that nobody holds, or whose holder let it run out."""
    return bool(tx.fetch(_texts(where).free, {"now": now}))


def release(tx: Tx, where: LeaseTable, leases: Iterable[Lease]) -> int:
    """Give work back unfinished: the next worker may take it at once. A lost lease is left alone."""
    return tx.execute(_texts(where).release, rows=[(lease.id,) for lease in _still_held(tx, where, leases)])


def finish(tx: Tx, where: LeaseTable, leases: Iterable[Lease]) -> int:
    """Take finished work out of the table, in the transaction of its result. Raises `Fenced` when a lease was lost."""
    held = list(leases)
    guard(tx, where, held)
    return tx.execute(_texts(where).finish, rows=[(lease.id,) for lease in held])


def guard(tx: Tx, where: LeaseTable, leases: Sequence[Lease]) -> None:
    """Make the caller's transaction fail when one of the leases was lost, and keep them while it runs."""
    lost = {lease.id for lease in leases} - {lease.id for lease in _still_held(tx, where, leases)}
    if lost:
        raise Fenced("lease_lost", f"{len(lost)} of {where.table} went to another worker, among them {min(lost)}")


def _still_held(tx: Tx, where: LeaseTable, leases: Iterable[Lease]) -> list[Lease]:
    """Those of the leases that were not lost; their rows are locked for the rest of the transaction."""
    ordered = sorted(leases, key=lambda lease: lease.id)
    held = tx.fetch(_texts(where).lock, rows=[(lease.id, lease.holder, lease.fence) for lease in ordered])
    found = {item for (item,) in held}
    return [lease for lease in ordered if lease.id in found]


def expire(tx: Tx, where: LeaseTable, *, now: int, limit: int = 1000) -> list[str]:
    """Free expired leases, in bounded batches; gives the ids, for an engine that moves a state with them."""
    return sorted(item for (item,) in tx.fetch(_texts(where).expire, {"now": now, "limit": limit}))


class _Texts(msgspec.Struct, frozen=True, kw_only=True):
    expire: Statement
    take_turns: Statement
    take: Statement
    free: Statement
    lock: Statement
    renew: Statement
    release: Statement
    finish: Statement


@lru_cache(maxsize=64)
def _texts(w: LeaseTable) -> _Texts:
    t = w.table
    name = "'" + w.scope.replace("'", "''") + "'"
    held = f"{w.owner} IS NOT NULL AND {w.scope}"
    return _Texts(
        expire=Statement(name="expire", text={dialect: _expire(w, dialect) for dialect in DIALECTS}),
        take_turns=statement("take_turns", f"SELECT pg_advisory_xact_lock(hashtext('lease {t}'), hashtext({name}))"),
        take=Statement(name="take", text={dialect: _take(w, dialect) for dialect in DIALECTS}),
        free=statement(
            "free",
            f"SELECT 1 FROM {t} WHERE {w.owner} IS NULL AND {w.scope} AND {w.ready} AND {w.due} <= :now "
            f"UNION ALL SELECT 1 FROM {t} WHERE {held} AND {w.until} < :now LIMIT 1",
        ),
        lock=_by_id(
            w, "lock", f"SELECT {t}.{w.id}", f"{t}.{w.owner} = rows.holder AND {t}.{w.fence} = rows.fence", _HELD
        ),
        renew=_by_id(w, "renew", f"UPDATE {t} SET {w.until} = :until"),
        release=_by_id(w, "release", f"UPDATE {t} SET {w.owner} = NULL, {w.until} = NULL"),
        finish=_by_id(w, "finish", f"DELETE FROM {t}"),
    )


def _by_id(w: LeaseTable, name: str, act: str, also: str = "1 = 1", rows: str = "id text") -> Statement:
    """A statement on the rows of some ids, one lookup each.

    PostgreSQL would rather join, and read the whole table where it knows nothing of its contents yet (which is often,
    of a queue): LATERAL leaves it no choice. Reads lock; writes go to rows that were locked before, so that their place
    (`ctid`) cannot have changed.
    """
    t = w.table
    these = f"FROM {t} WHERE {w.scope} AND {t}.{w.id} = rows.id AND {also}"
    if act.startswith("SELECT"):
        texts: dict[Dialect, str] = {
            "sqlite": f"{act} FROM rows JOIN {t} ON {w.scope} AND {t}.{w.id} = rows.id AND {also}",
            "postgres": f"SELECT k_one.* FROM rows CROSS JOIN LATERAL ({act} {these} FOR UPDATE) k_one",
        }
    else:
        using = "USING" if act.startswith("DELETE") else "FROM"
        texts = {
            "sqlite": f"{act} WHERE {t}.rowid IN "
            f"(SELECT {t}.rowid FROM rows JOIN {t} ON {w.scope} AND {t}.{w.id} = rows.id)",
            "postgres": f"WITH k_one AS (SELECT k_row FROM rows CROSS JOIN LATERAL "
            f"(SELECT ctid AS k_row {these} LIMIT 1) x) {act} {using} k_one WHERE {t}.ctid = k_one.k_row",
        }
    return Statement(name=name, text=texts, rows=parse_columns(rows))


def _expire(w: LeaseTable, dialect: Dialect) -> str:
    """Free those that ran out first. On PostgreSQL an array of places, read once: a join reads the whole table."""
    held, order = f"{w.owner} IS NOT NULL AND {w.scope}", f"ORDER BY {w.until}, {w.id} LIMIT :limit"
    late = f"FROM {w.table} WHERE {held} AND {w.until} < :now {order}"
    chosen = (
        f"ctid = ANY(ARRAY(SELECT ctid {late} FOR UPDATE SKIP LOCKED))"
        if dialect == "postgres"
        else f"{w.id} IN (SELECT {w.id} {late})"
    )
    return f"UPDATE {w.table} SET {w.owner} = NULL, {w.until} = NULL WHERE {held} AND {chosen} RETURNING {w.id}"


def _take(w: LeaseTable, dialect: Dialect) -> str:
    """Mark the best free pieces as held, in one statement.

    `k_part` are the partitions that have free work, found by leaping from one to the next along the index. Of each the
    best few are looked at (`k_best`), and their turn counted from what of the partition is held already. Where more
    lies unseen, what comes after the last one seen (`k_seen`) must wait for another look: then the choice is the same
    as if all had been looked at. On PostgreSQL only the rows that are taken are locked, and those that others have
    locked are passed over.
    """
    t, postgres = w.table, dialect == "postgres"
    free = f"{w.owner} IS NULL AND {w.scope} AND {w.ready}"
    row = "ctid" if postgres else "rowid"
    order = f"{w.priority}, {w.due}, {w.id}"
    best = (
        f"(SELECT y.{row} AS k_row, y.{w.partition} AS k_p, y.{w.priority} AS k_priority, y.{w.due} AS k_due, "
        f"y.{w.id} AS k_id FROM {t} y WHERE {free} AND y.{w.partition} = k_part.k_name AND y.{w.due} <= :now "
        f"ORDER BY {order} LIMIT (SELECT k_n FROM k_depth))"
    )
    looked = (
        f"k_part CROSS JOIN LATERAL {best} y"
        if postgres
        else f"k_part JOIN (SELECT rowid AS k_row, {w.partition} AS k_p, {w.priority} AS k_priority, {w.due} AS k_due, "
        f"{w.id} AS k_id FROM {t}) y ON y.k_row IN (SELECT k_row FROM {best})"
    )
    # in the order of the index of what is held, up to a bound that the planner does not know: else it reads the table
    by_index = f" ORDER BY {w.until} LIMIT (SELECT {MAX_INT64})" if postgres else ""
    held = f"(SELECT {w.partition} AS k_p FROM {t} WHERE {w.owner} IS NOT NULL AND {w.scope}{by_index})"
    own = (
        "CAST(CAST(:bounds AS json) ->> k_p AS bigint)"
        if postgres
        else "(SELECT CAST(value AS integer) FROM json_each(:bounds) WHERE key = k_p)"
    )
    bound = f"{own}, :bound"
    taken = (
        # one row at a time, in order, until there are enough: no join that reads or locks more
        f"SELECT x.k_this FROM k_good CROSS JOIN LATERAL (SELECT ctid AS k_this FROM {t} WHERE ctid = k_good.k_row "
        f"AND {free} FOR UPDATE SKIP LOCKED) x LIMIT :n"
        if postgres
        else "SELECT k_row AS k_this FROM k_good LIMIT :n"
    )
    return (
        f"WITH RECURSIVE k_part(k_name) AS (SELECT min({w.partition}) FROM {t} WHERE {free} UNION ALL "
        f"SELECT (SELECT min({w.partition}) FROM {t} WHERE {free} AND {w.partition} > k_part.k_name) "
        "FROM k_part WHERE k_name IS NOT NULL), "
        f"k_depth(k_n) AS (SELECT {CONTENDERS if postgres else 1} * :n / coalesce(nullif(count(k_name), 0), 1) + 1 "
        "FROM k_part), "
        f"k_held(k_name, k_n) AS (SELECT k_p, count(*) FROM {held} k_one GROUP BY k_p), "
        "k_best AS (SELECT y.*, row_number() OVER k_one AS k_nth, coalesce(k_held.k_n, 0) + row_number() OVER k_one "
        f"AS k_turn FROM {looked} LEFT JOIN k_held ON k_held.k_name = k_part.k_name "
        "WINDOW k_one AS (PARTITION BY k_p ORDER BY k_priority, k_due, k_id)), "
        "k_seen AS (SELECT k_priority, k_turn FROM k_best WHERE k_nth = (SELECT k_n FROM k_depth) "
        f"AND k_turn < coalesce({bound}, k_turn + 1) ORDER BY k_priority, k_turn LIMIT 1), "
        "k_good AS (SELECT k_row FROM k_best WHERE (NOT EXISTS (SELECT 1 FROM k_seen) "
        f"OR (k_priority, k_turn) <= (SELECT k_priority, k_turn FROM k_seen)) AND k_turn <= coalesce({bound}, k_turn) "
        "ORDER BY k_priority, k_turn, k_due, k_id), "
        f"k_taken AS ({taken}) "
        f"UPDATE {t} SET {w.owner} = :holder, {w.until} = :until, {w.fence} = {w.fence} + 1, {w.count} = {w.count} + 1 "
        f"FROM k_taken WHERE {t}.{row} = k_this RETURNING {w.priority}, {w.due}, {w.id}, {w.partition}, {w.fence}"
    )


_HELD = "id text, holder text, fence int"
