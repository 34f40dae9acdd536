"""Makes a store of attribution many times as large: older copies of the rows that its writer committed.

A copy has item numbers, instants and hashes of its own; what is packed into one value (decisions, runs of the index) is
unpacked and packed again with them, and runs are joined as the index joins them. So tables, indexes, runs and sums have
the size and the shape that as much traffic would have left, and a search finds a key of the committed part among them.
Keys that every batch has (apps, attempts) are in every copy. The dedup ledger, which nothing reads but the intake, is
that of the committed part alone.
"""

import random
from collections.abc import Iterator, Sequence
from hashlib import sha256

import msgspec

from bench.attribution_traffic import APPS
from patra.attribution.decision.decide import ITEM_BITS
from patra.attribution.decision.decisions import PendingDecision
from patra.attribution.intake.envelope import display_text
from patra.attribution.intake.zstd import compress_body, decompress_body
from patra.attribution.storage import closure_index
from patra.attribution.storage.decision_codec import HEAD_BYTES, LENGTH, TWO_FRAMES
from patra.attribution.storage.key_index import ENTRY_BYTES, INDEXED, MERGED, merge_bodies, segments
from patra.attribution.storage.key_index_merge import MERGE_RUNS, MERGED_RUNS
from patra.attribution.storage.running_sums import MARKS
from patra.attribution.storage.sql import set_mark
from patra.kernel.clock import HOUR
from patra.kernel.db import Database, Tx
from patra.kernel.db.queries import statement

RUNS = "runs"
PAGE_ITEMS = 200
_encode = msgspec.json.Encoder(enc_hook=display_text).encode
_decode = msgspec.json.Decoder(list[PendingDecision]).decode
_COMMON = [*APPS, "at-1", "ra-1", *(f"ev-{attempt:03}-{i}" for attempt in range(40) for i in range(10))]


KEY_BYTES = 16


def _turned(column: str) -> str:
    """A hash turned by some bytes; after as many turns as it has bytes, its reverse turned."""
    reverse = " || ".join(f"substr({column}, {place}, 1)" for place in range(KEY_BYTES, 0, -1))
    source = f"CASE WHEN :turn < {KEY_BYTES} THEN {column} ELSE CAST({reverse} AS {{blob}}) END"
    by = f":turn % {KEY_BYTES}"
    turned = f"CAST(substr({source}, {by} + 1) || substr({source}, 1, {by}) AS {{blob}})"
    return f"CASE WHEN length({column}) > 0 THEN {turned} ELSE {column} END"


_TABLES = {
    "log": """INSERT INTO att_log (number, place, at, kind, app_id, batch_id, code, body) {override}
      SELECT number - :items, place, at - :age, kind, app_id, batch_id || '-' || :items, code, body
      FROM att_log WHERE number > :first ORDER BY number""",
    "billable": f"""INSERT INTO att_billable (decision_id, app_id, billable_type, opportunity, fact_hour, fact_at, status, closure)
      SELECT decision_id - :ids, app_id, billable_type, {_turned("opportunity")}, fact_hour - :hours, fact_at - :age, status,
      {_turned("closure")} FROM att_billable WHERE decision_id > :first_id ORDER BY decision_id""",
    "opportunity": f"""INSERT INTO att_opportunity (key, placement) SELECT {_turned("key")}, placement FROM (
      SELECT key, placement FROM temp_opportunity) o WHERE true ORDER BY 1 ON CONFLICT (key) DO NOTHING""",
    "drop": f"""INSERT INTO att_drop (key, decision_id, count) SELECT {_turned("key")}, decision_id - :ids, count
      FROM att_drop WHERE decision_id > :first_id ORDER BY 1""",
    "sum_hour": """INSERT INTO att_sum_hour (fact_hour, app_id, billable_type, facts)
      SELECT fact_hour - :hours, app_id, billable_type, facts FROM temp_sum_hour""",
    "sum_placement": f"""INSERT INTO att_sum_placement (fact_hour, app_id, billable_type, placement, opportunity, facts)
      SELECT fact_hour - :hours, app_id, billable_type, placement, {_turned("opportunity")}, facts FROM temp_sum_placement""",
}
_KEPT_APART = """
CREATE TEMP TABLE temp_sum_hour AS SELECT * FROM att_sum_hour;
CREATE TEMP TABLE temp_sum_placement AS SELECT * FROM att_sum_placement;
CREATE TEMP TABLE temp_opportunity AS SELECT key, placement FROM att_opportunity UNION SELECT key, placement FROM att_placement;
CREATE TEMP TABLE temp_closure AS SELECT * FROM att_closure
"""
_CLOSURES = "key, app_id, state, source, opened_at, due_at, click, click_due, timeout_id, body"
_CLOSURE = "app_id, state, source, opened_at - :age, due_at, click, click_due, timeout_id, body"
_BY_DIALECT = {
    "sqlite": {
        "closure": f"INSERT INTO att_closure (number, {_CLOSURES}) SELECT number - :closures, {_turned('key')}, {_CLOSURE} "
        "FROM temp_closure ORDER BY number",
        "closure_key": f"INSERT INTO att_closure_key (key, number) SELECT {_turned('key')}, number - :closures "
        "FROM temp_closure ORDER BY 1",
        "billing_key": f"INSERT INTO att_billing_key (closure, billable_type, decision_id) SELECT {_turned('closure')}, "
        "billable_type, decision_id - :ids FROM att_billing_key WHERE decision_id > :first_id ORDER BY 1",
    },
    "postgres": {
        "closure": f"INSERT INTO att_closure ({_CLOSURES}) SELECT {_turned('key')}, {_CLOSURE} FROM temp_closure ORDER BY 1"
    },
}


class Space(msgspec.Struct, frozen=True, kw_only=True):
    """Room for copies in front of what the writer commits: how many, and the numbers that one of them takes."""

    copies: int
    items: int
    age: int

    @property
    def runs(self) -> int:
        return self.items

    @property
    def closures(self) -> int:
        return self.items * 100


def leave_room(db: Database, space: Space) -> None:
    """Let the numbers of an empty store begin behind those of the copies."""
    items = space.copies * space.items

    def work(tx: Tx) -> None:
        if db.dialect == "sqlite":
            tx.script(f"INSERT INTO sqlite_sequence (name, seq) VALUES ('att_log', {items})")
            set_mark(tx, closure_index.KEYED, space.copies * space.closures)
        else:
            tx.script(f"ALTER SEQUENCE att_log_number_seq RESTART WITH {items + 1}")
        set_mark(tx, INDEXED, items)
        for name in (RUNS, MERGED_RUNS):
            set_mark(tx, name, space.copies * space.runs)
        for name in MARKS.values():
            set_mark(tx, name, ((items + 1) << ITEM_BITS) - 1)

    if space.copies:
        db.run(work)


def copy(db: Database, space: Space) -> None:
    """Put the copies there; the newest of them is next to what it is a copy of."""
    if not space.copies:
        return
    first = space.copies * space.items
    texts = _TABLES | _BY_DIALECT[db.dialect]

    def tables(tx: Tx) -> None:
        for text in _KEPT_APART.split(";"):
            tx.script(text)
        for number in range(1, space.copies + 1):
            params = {
                "items": number * space.items,
                "ids": (number * space.items) << ITEM_BITS,
                "first": first,
                "first_id": ((first + 1) << ITEM_BITS) - 1,
                "age": number * space.age,
                "hours": number * space.age // HOUR,
                "closures": number * space.closures,
                "turn": number,
            }
            for name, text in texts.items():
                made = text.replace("{blob}", "BLOB" if db.dialect == "sqlite" else "bytea")
                made = made.replace("{override}", "" if db.dialect == "sqlite" else "OVERRIDING SYSTEM VALUE")
                tx.execute(
                    statement(f"copy {name}", made), {key: value for key, value in params.items() if f":{key}" in made}
                )

    db.run(tables)
    _copy_decisions(db, space, first)
    _copy_index(db, space)


_DECISIONS = statement(
    "decisions", "SELECT item, at, archived, body FROM att_decision WHERE item > :after ORDER BY item LIMIT :limit"
)


def _copy_decisions(db: Database, space: Space, first: int) -> None:
    after = first
    while page := db.read(lambda tx, a=after: tx.fetch(_DECISIONS, {"after": a, "limit": PAGE_ITEMS})):
        after = page[-1][0]
        rows = [
            {"item": item - number * space.items, "at": at - number * space.age, "archived": archived, "body": made}
            for item, at, archived, body in page
            for number, made in enumerate(_decisions(bytes(body), space), 1)
        ]
        db.run(lambda tx, r=rows: tx.insert("att_decision", r))


def _decisions(body: bytes, space: Space) -> Iterator[bytes]:
    end = HEAD_BYTES + LENGTH.unpack_from(body, 1)[0]
    decisions, tales = _decode(decompress_body(body[HEAD_BYTES:end])), body[end:]
    for number in range(1, space.copies + 1):
        ids, age = (number * space.items) << ITEM_BITS, number * space.age
        moved = [msgspec.structs.replace(one, number=one.number - ids, at=one.at - age) for one in decisions]
        frame = compress_body(_encode(moved))
        yield b"".join((TWO_FRAMES, LENGTH.pack(len(frame)), frame, tales))


_BUCKET = statement("bucket", "SELECT run, last, body FROM att_locator WHERE bucket = :bucket ORDER BY run")


def _copy_index(db: Database, space: Space) -> None:
    rng = random.Random(1)
    patterns = [rng.randbytes(5) + bytes(3) for _ in range(space.copies)]
    common: dict[int, list[bytes]] = {}
    for key in _COMMON:
        hashed = sha256(key.encode()).digest()[:6]
        common.setdefault(hashed[0], []).append(hashed[1:])
    for bucket in range(256):
        found = db.read(lambda tx, b=bucket: tx.fetch(_BUCKET, {"bucket": b}))
        copied = [
            (run - number * space.runs, last - number * space.items, made)
            for number, pattern in reversed(list(enumerate(patterns, 1)))
            for run, last, body in found
            for made in [_value(bytes(body), number * space.items, pattern, common.get(bucket, []))]
        ]
        rows = [
            {"bucket": bucket, "run": some[0][0], "last": max(last for _, last, _ in some), "body": body}
            for some in _joined(copied)
            for body in [merge_bodies([body for *_, body in some]) if len(some) > 1 else some[0][2]]
        ]
        db.run(lambda tx, r=rows: tx.insert("att_locator", r))


def _joined(found: Sequence[tuple[int, int, bytes]]) -> Iterator[list[tuple[int, int, bytes]]]:
    """Values that a store would have joined into one while as much came in: those of so many runs."""
    some: list[tuple[int, int, bytes]] = []
    runs = 0
    for one in found:
        held = len(segments(one[2])[0])
        if some and runs + held > MERGE_RUNS:
            yield some
            some, runs = [], 0
        some.append(one)
        runs += held
    if some:
        yield some


def _value(body: bytes, items: int, pattern: bytes, common: Sequence[bytes]) -> bytes:
    """The entries of a bucket under other hashes, but for those of common keys, and for other items."""
    bases, ends, start = segments(body)
    entries = body[start:]
    mask = int.from_bytes(pattern * (len(entries) // ENTRY_BYTES), "big")
    mixed = (int.from_bytes(entries, "big") ^ mask).to_bytes(len(entries), "big")
    for key in common:
        mixed = mixed.replace(bytes(a ^ b for a, b in zip(key, pattern, strict=False)), key)
    if body[:1] != MERGED:
        return (bases[0] - items).to_bytes(8, "big") + mixed
    sizes = [end - begun for begun, end in zip([start, *ends], ends, strict=False)]
    heads = [
        (base - items).to_bytes(8, "big") + size.to_bytes(8, "big") for base, size in zip(bases, sizes, strict=True)
    ]
    return b"".join((body[:8], *heads, mixed))
