"""The records that an UPDATE fetches again: signalled, mapped by an old expression, or stale (ch. 4.14, 6.3.2)."""

from patra.ingest.packs.spec import Spec
from patra.ingest.planning.store import Q
from patra.kernel.clock import parse_duration
from patra.kernel.db import Tx


def update_candidates(tx: Tx, spec: Spec, limit: int, now: int) -> tuple[list[str], list[str]]:
    """Ids that a refresh at `now` would take, each once: signalled ones, and those found by hash or age."""
    signalled = _signalled_records(tx, spec, limit) if spec.update.signals else []
    found: dict[str, None] = {}
    if spec.update.expr_change:
        found |= dict.fromkeys(_of_other_expressions(tx, spec, limit))
    if spec.update.stale_after is not None:
        found |= dict.fromkeys(_stale(tx, spec, now - parse_duration(spec.update.stale_after), limit))
    known = set(signalled)
    return signalled, [one for one in found if one not in known][: max(limit - len(signalled), 0)]


def _signalled_records(tx: Tx, spec: Spec, limit: int) -> list[str]:
    """Records that a signal asks for and no plan has taken."""
    return [row[0] for row in tx.fetch(Q["candidates_signalled"], {**_place(spec), "limit": limit})]


def _of_other_expressions(tx: Tx, spec: Spec, limit: int) -> list[str]:
    """Records that were mapped by none of the present expressions."""
    current = [(one,) for one in spec.current_expr_hashes or [spec.record_expr_hash]]
    return [row[0] for row in tx.fetch(Q["candidates_changed"], {**_place(spec), "limit": limit}, rows=current)]


def _stale(tx: Tx, spec: Spec, before: int, limit: int) -> list[str]:
    """Records last fetched before an instant, at most the share of one round."""
    total = tx.fetch_one(Q["records_of"], _place(spec))
    share = -(-(total[0] if total else 0) // spec.update.rounds)
    params = {**_place(spec), "before": before, "limit": min(limit, share)}
    return [row[0] for row in tx.fetch(Q["candidates_stale"], params)]


def _place(spec: Spec) -> dict[str, str]:
    return {"source": spec.provenance_code, "endpoint": spec.kept_under}
