"""What may be sent to the providers, what was sent, and who asked to be left alone until when; all bounded."""

from typing import Any

import msgspec

from patra.ingest.operations.reads.quota_limits import quota_limits, used_up_at
from patra.kernel.clock import DAY, HOUR, MINUTE, format_instant
from patra.kernel.db import Tx
from patra.kernel.db.queries import statement

MAX_ROWS = 200
LENGTHS = {"HOUR": HOUR, "DAY": DAY}
QUOTAS = statement(
    "console_quotas",
    "SELECT rate_key, period_code, period_start, reserved, consumed, updated_at FROM ing_quota"
    " WHERE (period_code = 'DAY' AND period_start = :day) OR (period_code = 'HOUR' AND period_start = :hour)"
    " ORDER BY rate_key, period_code LIMIT :limit",
)
COOLDOWNS = statement(
    "console_cooldowns",
    "SELECT rate_key, cooldown_until, updated_at FROM ing_cooldown ORDER BY cooldown_until DESC LIMIT :limit",
)


MINUTES = 15
MAX_BATCHES = 2000
BATCHES = statement(
    "console_rate_batches",
    "SELECT b.created_at, b.stats, b.response_digest,"
    " (SELECT p.provenance_code FROM ing_plan p WHERE p.plan_id = b.plan_id) AS provenance_code"
    " FROM ing_task_run_batch b WHERE b.created_at > :since ORDER BY b.created_at DESC LIMIT :limit",
)


def gates(tx: Tx, now: int) -> list[dict[str, Any]]:
    """What each rate key may send and sends, of the batches of the last minutes, all processes together.

    `allowed` is the rate at each batch, the oldest first: it falls with 429 and grows again (AIMD). `used` counts
    requests by minute.
    """
    rows = tx.fetch(BATCHES, {"since": now - MINUTES * MINUTE, "limit": MAX_BATCHES})
    found: dict[str, dict[str, Any]] = {}
    for at, stats_text, digest_text, source in reversed(rows):
        if source is None:  # its plan is gone
            continue
        stats: dict[str, Any] = msgspec.json.decode(stats_text)
        digest: dict[str, Any] = msgspec.json.decode(digest_text)
        key = str(digest.get("rate.limitKey") or source)
        gate = found.setdefault(
            key,
            {
                "rate_key": key,
                "source": source,
                "allowed": [],
                "used": [0] * MINUTES,
                "requests": 0,
                "wait_ms": 0,
                "throttled": 0,
                "demoted": 0,
                "last_at": at,
                "burst": None,
            },
        )
        requests = int(stats.get("requests", 1))
        if "rate.r" in digest:
            gate["allowed"].append(float(digest["rate.r"]))
        gate["used"][min(MINUTES - 1, max(0, MINUTES - 1 - (now - at) // MINUTE))] += requests
        gate["requests"] += requests
        gate["wait_ms"] += int(stats.get("waitMs", 0))
        gate["throttled"] += int(stats.get("429Count", 0))
        gate["demoted"] += '"qpsDownshift":true' in str(stats_text)
        gate["last_at"], gate["burst"] = at, digest.get("rate.burst")
    return sorted(found.values(), key=lambda gate: gate["rate_key"])


def quotas(tx: Tx, now: int) -> list[dict[str, Any]]:
    """The periods of now: what plans reserved, what was used, when the next one begins.

    `limit` is what the pack allows, null where no plan says; `used_up_at` is when that is used up if it goes on like
    this, null where the period ends before.
    """
    given = {"day": now // DAY * DAY, "hour": now // HOUR * HOUR, "limit": MAX_ROWS}
    rows = tx.fetch_dicts(QUOTAS, given)
    limits = quota_limits(tx, [row["rate_key"] for row in rows])
    found: list[dict[str, Any]] = []
    for row in rows:
        begin, end = row["period_start"], row["period_start"] + LENGTHS[row["period_code"]]
        limit = limits.get(row["rate_key"], {}).get(row["period_code"])
        at = used_up_at(limit, row["consumed"], begin, end, now)
        found.append(row | {"limit": limit, "ends_at": end, "used_up_at": at})
    return found


def cooldowns(tx: Tx, now: int) -> list[dict[str, Any]]:
    """The last that every provider asked for, those of now first."""
    found = tx.fetch_dicts(COOLDOWNS, {"limit": MAX_ROWS})
    return [row | {"active": row["cooldown_until"] > now} for row in found]


class Rates(msgspec.Struct, frozen=True, kw_only=True):
    """What may be sent, what is sent, and who asked to be left alone; instants in text."""

    minutes: int
    gates: list[dict[str, Any]]
    quotas: list[dict[str, Any]]
    cooldowns: list[dict[str, Any]]


def rates(tx: Tx, now: int) -> Rates:
    return Rates(
        minutes=MINUTES,
        gates=[_legible(row) for row in gates(tx, now)],
        quotas=[_legible(row) for row in quotas(tx, now)],
        cooldowns=[_legible(row) for row in cooldowns(tx, now)],
    )


def _legible(row: dict[str, Any]) -> dict[str, Any]:
    return {
        name: format_instant(value) if value is not None and name.endswith(("_at", "_until", "_start")) else value
        for name, value in row.items()
    }
