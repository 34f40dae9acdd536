"""Partitions of a table whose numbers only grow, on PostgreSQL: made far ahead of the writers, dropped whole.

    TABLE_first   numbers from `first` on, up to the next one
    TABLE_rest    the default partition: numbers that no other one takes

Making them stops no writer. A partition is attached while it is empty, its locks are taken only where nobody holds them
(where the writers are in the default partition already: within the bound `WAIT_MS`), and the default partition is not
read: where it has rows, a constraint that says it has none of the new numbers is validated first, beside the writers.
No number is lost where nobody makes partitions any more, as in a store with processes of an earlier release only: rows
go to the default partition, which `patra doctor` reports.

A table that is not partitioned, as in stores of earlier releases and on SQLite, has none, and stays as it is.
"""

import re

import msgspec

from patra.kernel.clock import DAY, Clock
from patra.kernel.db.api import Database, Tx, identifier
from patra.kernel.db.queries import statement
from patra.kernel.errors import StoreBusy
from patra.kernel.telemetry import get_logger

log = get_logger()

_PARTITIONS = statement(
    "partitions",
    "SELECT c.relname, pg_get_expr(c.relpartbound, c.oid) FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid "
    "WHERE i.inhparent = to_regclass(:table) AND c.relpartbound IS NOT NULL",
)
_LAST_NUMBER = statement(
    "last_number",
    "SELECT coalesce(pg_sequence_last_value(pg_get_serial_sequence(:table, :key)::regclass), 0)",
)
_GUARD = statement(
    "rest_guard",
    "SELECT conname, convalidated::int FROM pg_constraint "
    "WHERE conrelid = to_regclass(:rest) AND contype = 'c' AND strpos(conname, :begin) = 1",
)
_TRY_LOCK = statement(
    "try_partition_lock",
    "SELECT pg_try_advisory_xact_lock(7026818, (to_regclass(:table)::oid::bigint % 2147483647)::int)::int",
)
"""Two numbers: the locks of one number, such as that of commits, are others."""
_BOUNDS = re.compile(r"FOR VALUES FROM \('(-?\d+)'\) TO \('(-?\d+)'\)")
_WITHOUT = re.compile(r"_without_(\d+)_(\d+)$")

WAIT_MS = 50
"""How long dropping a partition, or making one too late, may stand in the queue for a lock, with others behind it."""
LEAST_NUMBERS = 1 << 20
MOST_NUMBERS = 1 << 28
MARGIN = 4
"""How many times the least width lies between the writers and a constraint on the partition that they write into."""
SLICES_OF_A_COPY = 16
_WHOLE = 1 << 62
_NO_TIMEOUT = "SET LOCAL statement_timeout = 0"  # rows are read in a time that goes by their number


class GrowingTable(msgspec.Struct, frozen=True, kw_only=True):
    """A table that may be partitioned: `key` is its number, from a sequence of its own; `time` about grows with it."""

    name: str
    key: str
    time: str

    @property
    def rest(self) -> str:
        return f"{self.name}_rest"


class Partition(msgspec.Struct, frozen=True, kw_only=True):
    """A partition with the numbers from `first` up to, not including, `end`."""

    name: str
    first: int
    end: int


class Shape(msgspec.Struct, frozen=True, kw_only=True):
    """How a table stands: its partitions in their order (none: it is whole), and what is in the default one."""

    partitions: list[Partition]
    last: int
    """The number that was given last."""
    beyond: int
    """Rows in the default partition, counted up to some thousand."""

    @property
    def ahead(self) -> int:
        """How many numbers are left until no partition takes them."""
        return self.partitions[-1].end - 1 - self.last if self.partitions else 0


def partitions(tx: Tx, table: GrowingTable) -> list[Partition]:
    """Those with bounds, in their order; none where the table is whole."""
    if tx.dialect != "postgres":
        return []
    found: list[Partition] = []
    for name, bound in tx.fetch(_PARTITIONS, {"table": table.name}):
        if match := _BOUNDS.fullmatch(bound or ""):  # NULL: of the snapshot, and dropped since
            found.append(Partition(name=name, first=int(match[1]), end=int(match[2])))
    return sorted(found, key=lambda one: one.first)


def shape(tx: Tx, table: GrowingTable) -> Shape:
    found = partitions(tx, table)
    if not found:
        return Shape(partitions=[], last=0, beyond=0)
    beyond = tx.fetch(statement("rows_of_rest", f"SELECT count(*) FROM (SELECT 1 FROM {table.rest} LIMIT 10000) r"))
    return Shape(partitions=found, last=_last(tx, table), beyond=beyond[0][0])


def _last(tx: Tx, table: GrowingTable) -> int:
    return tx.fetch(_LAST_NUMBER, {"table": table.name, "key": table.key})[0][0]


# --- made ahead -------------------------------------------------------------------------------------------------------


class Made(msgspec.Struct, frozen=True, kw_only=True):
    """One turn: steps on the way to new partitions."""

    steps: int = 0


class PartitionMaker:
    """Keeps partitions ahead of the writers; where nothing is to do a turn reads one number."""

    def __init__(self, db: Database, clock: Clock, table: GrowingTable) -> None:
        self._db = db
        self._clock = clock
        self._table = table
        self._enough_until = -1
        """Up to this number nothing is to do; nobody takes partitions back that are still to be written."""

    def run_once(self) -> Made:
        """One step, if one is due; while a backup or another process reads the default partition, none is done."""
        if self._enough_until >= 0 and (
            self._enough_until == _WHOLE or self._db.read(lambda tx: _last(tx, self._table)) <= self._enough_until
        ):
            return Made()
        try:
            steps, self._enough_until = self._db.run(lambda tx: step_ahead(tx, self._table, self._clock.now()))
        except StoreBusy:
            return Made()
        return Made(steps=steps)


def step_ahead(tx: Tx, table: GrowingTable, now: int) -> tuple[int, int]:
    """Do the next step on the way to a partition that is wanted, in a transaction of its own.

    Gives how many were done (0 or 1), and up to which number nothing more is to do (-1: ask again).
    """
    if not tx.fetch(_TRY_LOCK, {"table": table.name})[0][0]:
        return 0, -1
    found = partitions(tx, table)  # behind the lock: another process may have made some just now
    if not found:
        return 0, _WHOLE
    last = _last(tx, table)
    if last >= found[-1].end:  # the writers are in the default partition: waiting a little, as they do for each other
        log.warning("partitions_ran_out", table=table.name, last=last, end=found[-1].end)
        tx.script(f"SET LOCAL lock_timeout = {WAIT_MS}")
    nowait = last < found[-1].end
    if guard := _guard(tx, table):
        return _step_behind_guard(tx, table, guard, last, nowait=nowait), -1
    enough = _enough_until(found)
    if last <= enough:
        return 0, enough
    width = _width(tx, table, last, now)
    behind_rest = _rest_is_used(tx, table)
    first = last + max(width, MARGIN * LEAST_NUMBERS) if behind_rest and last >= found[-1].end else found[-1].end
    if behind_rest:
        _lock(tx, table.rest, "ACCESS EXCLUSIVE", nowait=nowait)
        key = identifier(table.key)
        tx.script(
            f"ALTER TABLE {table.rest} ADD CONSTRAINT {table.rest}_without_{first}_{first + width} "
            f"CHECK ({key} < {first} OR {key} >= {first + width}) NOT VALID"
        )
    else:
        _attach(tx, table, first, first + width, nowait=nowait)
    return 1, -1


def _enough_until(found: list[Partition]) -> int:
    """Two partitions of the newest one's width, or two of the least, stay ahead."""
    newest = found[-1]
    return newest.end - 2 * max(newest.end - newest.first, LEAST_NUMBERS)


def _guard(tx: Tx, table: GrowingTable) -> tuple[str, bool] | None:
    found = tx.fetch(_GUARD, {"rest": table.rest, "begin": f"{table.rest}_without_"})
    return (found[0][0], bool(found[0][1])) if found else None


def _step_behind_guard(tx: Tx, table: GrowingTable, guard: tuple[str, bool], last: int, *, nowait: bool) -> int:
    """The default partition has rows, and a constraint that keeps the numbers of the next partition out of it."""
    name, valid = guard
    match = _WITHOUT.search(name)
    first, end = (int(match[1]), int(match[2])) if match else (0, 0)
    if first <= last:  # the writers were faster: the constraint would refuse their rows
        _lock(tx, table.rest, "ACCESS EXCLUSIVE", nowait=nowait)
        tx.script(f"ALTER TABLE {table.rest} DROP CONSTRAINT {identifier(name)}")
    elif not valid:
        tx.script(_NO_TIMEOUT)
        tx.script(f"ALTER TABLE {table.rest} VALIDATE CONSTRAINT {identifier(name)}")
    else:
        _attach(tx, table, first, end, nowait=nowait)
        tx.script(f"ALTER TABLE {table.rest} DROP CONSTRAINT {identifier(name)}")
    return 1


def _rest_is_used(tx: Tx, table: GrowingTable) -> bool:
    return bool(tx.fetch(statement("rest_is_used", f"SELECT 1 FROM {table.rest} LIMIT 1")))


def _width(tx: Tx, table: GrowingTable, last: int, now: int) -> int:
    """About the numbers of a day."""
    key, time = identifier(table.key), identifier(table.time)
    text = f"SELECT {key} FROM {identifier(table.name)} WHERE {time} < :before ORDER BY {time} DESC LIMIT 1"
    before = tx.fetch(statement("number_before", text), {"before": now - DAY})
    numbers = max(last - (before[0][0] if before else 0), LEAST_NUMBERS, 1)
    return min(1 << (numbers - 1).bit_length(), MOST_NUMBERS)


def _attach(tx: Tx, table: GrowingTable, first: int, end: int, *, nowait: bool = True) -> None:
    _lock(tx, table.name, "SHARE UPDATE EXCLUSIVE", nowait=nowait)
    _lock(tx, table.rest, "ACCESS EXCLUSIVE", nowait=nowait)
    name = identifier(f"{table.name}_{first}")
    tx.script(f"CREATE TABLE {name} (LIKE {table.name} INCLUDING DEFAULTS INCLUDING CONSTRAINTS INCLUDING STORAGE)")
    tx.script(f"ALTER TABLE {table.name} ATTACH PARTITION {name} FOR VALUES FROM ({first}) TO ({end})")
    log.info("partition_made", table=table.name, first=first, end=end)


def _lock(tx: Tx, name: str, mode: str, *, nowait: bool) -> None:
    """Take a lock or give up, at once or when the bound is over: nobody waits behind one who does not wait.

    Of the table itself: a vacuum of some partition is in nobody's way.
    """
    tx.script(f"LOCK TABLE ONLY {identifier(name)} IN {mode} MODE{' NOWAIT' if nowait else ''}")


# --- dropped ----------------------------------------------------------------------------------------------------------


def full_partitions(tx: Tx, table: GrowingTable) -> list[Partition]:
    """Those behind which the writers are: a row has a number beyond. The last one stays: others begin at its end."""
    found = partitions(tx, table)[:-1]
    if not found:
        return []
    newest = tx.fetch(statement("newest_number", f"SELECT max({identifier(table.key)}) FROM {table.name}"))[0][0]
    return [one for one in found if newest is not None and one.end <= newest]


def newest_instant(tx: Tx, table: GrowingTable, partition: Partition) -> int | None:
    """The latest instant of a partition's rows; None where it is empty, or was dropped since it was found."""
    key = identifier(table.key)
    text = f"SELECT max({identifier(table.time)}) FROM {identifier(table.name)} WHERE {key} >= :first AND {key} < :end"
    bounds = {"first": partition.first, "end": partition.end}
    return tx.fetch(statement("newest_instant", text), bounds)[0][0]


def hold_still(tx: Tx, table: GrowingTable, partition: Partition) -> bool:
    """Keep rows out of a full partition until the transaction ends; False where it is gone, or another does it."""
    if not tx.fetch(_TRY_LOCK, {"table": table.name})[0][0]:
        return False
    if partition not in partitions(tx, table):
        return False
    tx.script(_NO_TIMEOUT)
    tx.script(f"SET LOCAL lock_timeout = {WAIT_MS}")
    tx.script(f"LOCK TABLE {identifier(partition.name)} IN SHARE MODE")
    return True


def keep_partitions(tx: Tx, table: GrowingTable) -> None:
    """Keep partitions from being dropped until a reading transaction ends, which begins with this.

    A snapshot does not hold them: once one is dropped, a transaction that began before reads none of its rows.
    """
    if tx.dialect == "postgres":
        tx.script(f"LOCK TABLE ONLY {identifier(table.name)} IN ACCESS SHARE MODE")


def rows_of(tx: Tx, table: GrowingTable, partition: Partition, first: int, last: int) -> int:
    """How many rows a partition has from one number to another, both included."""
    key = identifier(table.key)
    text = f"SELECT count(*) FROM {identifier(partition.name)} WHERE {key} >= :first AND {key} <= :last"
    return tx.fetch(statement("rows_of_partition", text), {"first": first, "last": last})[0][0]


def drop(tx: Tx, table: GrowingTable, partition: Partition) -> None:
    """Drop a partition that is held; raises StoreBusy where the table is not free within the bound."""
    _lock(tx, table.name, "ACCESS EXCLUSIVE", nowait=False)
    tx.script(f"DROP TABLE {identifier(partition.name)}")
    log.info("partition_dropped", table=table.name, first=partition.first, end=partition.end)


# --- copied -----------------------------------------------------------------------------------------------------------


def make_for_copy(tx: Tx, table: GrowingTable, *, rows: int, last: int) -> None:
    """Make partitions for rows that are about to be copied into an empty table; `last` is their highest number."""
    found = partitions(tx, table)
    if not found or last < found[0].end:
        return
    for one in found:
        tx.script(f"DROP TABLE {identifier(one.name)}")
    width = max(-(-rows // SLICES_OF_A_COPY), LEAST_NUMBERS)
    first = max(last - rows, 0)
    bounds = [0, *range(first, last + 1, width)] if first else [*range(0, last + 1, width)]
    for start, end in zip(bounds, [*bounds[1:], bounds[-1] + width], strict=True):
        _attach(tx, table, start, end)
