"""What the proofs of ingest hold against providers that promise more than they give: every hole is told.

A list of one window is broken for good: its first page lacks a record that its total counts, and where pages are
chained, the next link is missing. As long as it is, each record that has not landed lies in a window that is INCOMPLETE,
and the watermark stands before it. Some records have no id at all: each is counted.
"""

from patra.ingest.landing.window_ledger import incomplete
from patra.ingest.planning.slicing.windows import Span
from patra.kernel.db import Database, Tx
from patra.kernel.db.queries import statement
from tests.support.hostile_provider import Item, Provider

LANDED = statement("landed", "SELECT provider_id, updated_at FROM ing_record WHERE provenance_code = :source")
MARK = statement(
    "mark",
    "SELECT normalized_instant FROM ing_cursor WHERE provenance_code = :source AND operation_code = 'HARVEST'",
)
NAMELESS = statement(
    "nameless",
    "SELECT coalesce(sum(null_items + without_id), 0) FROM ing_window_ledger"
    " WHERE provenance_code = :source AND leg_code = 'LIST' AND status_code IN ('COMPLETE', :handed_over)",
)
SELF_MENDING = frozenset({"OFFSET"})
"""The next page begins behind the records that came: what a short page lacks is on the next one."""
UNPROMISED = frozenset({"TIME"})
"""No total promises anything: a list by time is not broken here."""


def broken_instant(items: list[Item]) -> int:
    """The instant of a record in the first third: windows before it and behind it are sound."""
    return sorted(items)[len(items) // 3].updated


def state_of(tx: Tx, source: str) -> tuple[dict[str, int], int | None]:
    """What has landed, and the watermark, at one moment."""
    landed = dict(tx.fetch(LANDED, {"source": source}))
    mark = tx.fetch_one(MARK, {"source": source})
    return landed, mark[0] if mark else None


def no_gap(db: Database, source: str, truth: dict[str, int]) -> None:
    """Every record before the watermark has landed."""
    landed, mark = db.read(lambda tx: state_of(tx, source))
    lost = [one for one, at in truth.items() if mark is not None and at < mark and one not in landed]
    assert not lost, f"{source}: the watermark stands at {mark}, and {len(lost)} before it are not there: {lost[:5]}"


def told_holes(db: Database, source: str, kind: str, provider: Provider, window: Span) -> int:
    """Whatever has not landed of a window lies in one that is told as INCOMPLETE; gives how many are told.

    `provider` is still broken. Lists that are broken for good must be told; those that mend themselves may be whole.
    """
    landed, mark = db.read(lambda tx: state_of(tx, source))
    told = [one.window for one in db.read(lambda tx: incomplete(tx, source)) if one.window is not None]
    truth = {one: at for one, at in provider.named_truth.items() if window.start <= at < window.end}
    hidden = [one for one, at in truth.items() if one not in landed and not any(w.start <= at < w.end for w in told)]
    assert not hidden, f"{source}: {len(hidden)} records are missing, and no window tells of it: {hidden[:5]}"
    no_gap(db, source, truth)
    broken = provider.habits.broken_at
    if kind in UNPROMISED:
        assert not told, f"{source}: {told}"
    elif kind not in SELF_MENDING:
        assert [w for w in told if w.start <= broken < w.end], f"{source}: the broken list was believed"
        assert mark is None or mark <= broken, f"{source}: the watermark moved past the broken list"
    return len(told)


def counted_nameless(db: Database, source: str, kind: str, provider: Provider) -> None:
    """Every place of a list without an id was counted.

    Lists by time show some of theirs twice: those of the same content count once, so that only some can be asked for.
    """
    by_time = kind in UNPROMISED
    params = {"source": source, "handed_over": "HANDED_OVER" if by_time else ""}
    counted = db.read(lambda tx: tx.fetch(NAMELESS, params))[0][0]
    there = len(provider.truth) - len(provider.named_truth)
    right = counted >= min(there, 1) if by_time else counted == there
    assert right, f"{source}: {counted} places without an id were counted, there are {there}"
