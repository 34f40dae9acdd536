"""How much of a quota there is, as the newest plans of a source were compiled with it, and when it is used up."""

from collections.abc import Iterable

import msgspec

from patra.ingest.packs.spec import Leg, decode_spec
from patra.ingest.ratelimit.policy import rate_key, rate_policy
from patra.ingest.vocabulary.codes import AuthType, Operation
from patra.kernel.db import Tx
from patra.kernel.db.queries import statement

Limits = dict[str, dict[str, int]]
"""Requests by rate key and period."""
NEWEST = statement(
    "newest_snapshot",
    "SELECT expr_proto_snapshot FROM ing_plan WHERE provenance_code = :source AND operation_code = :operation"
    " ORDER BY created_at DESC LIMIT 1",
)


def quota_limits(tx: Tx, rate_keys: Iterable[str]) -> Limits:
    """The limits of these keys, by the newest plan of each operation of their sources; what has no plan is left out."""
    keys = set(rate_keys)
    found: Limits = {}
    for source in sorted({key.partition("|")[0] for key in keys}):
        for operation in Operation:
            for (snapshot,) in tx.fetch(NEWEST, {"source": source, "operation": operation.value}):
                for key, limits in _limits_of(snapshot).items():
                    found.setdefault(key, limits)
    return {key: limits for key in keys if (limits := found.get(key) or found.get(key.rpartition("|")[0]))}


def _limits_of(snapshot: str) -> Limits:
    try:
        spec = decode_spec(snapshot)
    except msgspec.MsgspecError:  # of another release; the planner reports it
        return {}
    found: Limits = {}
    legs: list[Leg] = [spec] if spec.detail is None else [spec, spec.detail]
    for leg in legs:
        required = leg.auth.type is not AuthType.NONE and not leg.auth.optional
        for authenticated in (required, True):
            found.setdefault(
                rate_key(spec.provenance_code, leg, authenticated=authenticated), _quotas(leg, authenticated)
            )
    return found


def _quotas(leg: Leg, authenticated: bool) -> dict[str, int]:
    policy = rate_policy(leg.rate_limit, leg.limits, authenticated=authenticated)
    return {code: quota for code, quota in (("HOUR", policy.quota_hour), ("DAY", policy.quota_day)) if quota}


def used_up_at(limit: int | None, used: int, begin: int, end: int, now: int) -> int | None:
    """When a quota is used up if it goes on like this; None where that is not before its period ends."""
    if not limit or used <= 0:
        return None
    at = now if used >= limit else begin + (max(now - begin, 1) * limit) // used
    return at if at < end else None
