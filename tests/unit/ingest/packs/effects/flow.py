"""RateLimit, RateHeaders, RateIdentified, RateAuthenticated, Limits, Retry, Batching, TwoPhase, Planning, Update."""

from typing import Any

from patra.ingest.http.client import Failure, Fault, Outgoing
from patra.ingest.planning import store
from patra.ingest.vocabulary.codes import Operation
from patra.kernel.db.queries import statement
from tests.support.hostile_provider import Reply
from tests.unit.ingest.packs.effects.observe import (
    KEY,
    TWO_PHASE,
    Case,
    case,
    checked,
    harvested,
    permits,
    planned,
    request,
)
from tests.unit.ingest.packs.effects.stand_in import DAY, Site, as_json, spread

RATE = "rateLimit"
HEADERS = f"{RATE}.headers"


def failing(times: int, status: int = 503, **headers: str):
    """The first answers are failures."""
    return lambda number, _: as_json({}, status, **headers) if number <= times else None


def cut_off(number: int, _: Outgoing) -> Failure | None:
    return Failure(fault=Fault.RESET, detail="cut") if number == 1 else None


def saying(**headers: str):
    """Every answer of the list carries headers."""

    def script(number: int, _: Outgoing) -> Reply | None:
        items = [{"id": f"r{number * 10 + n:03}", "updated": "2026-03-01T10:00:00Z"} for n in range(10)]
        return as_json({"items": items if number < 4 else [], "total": 30}, **headers)

    return script


def settled(s: Site) -> tuple[Any, ...]:
    """What is left of buckets and quotas."""
    return s.sent, s.rows("SELECT rate_key, period_code, reserved, consumed FROM ing_quota ORDER BY 1, 2")


def concurrency(s: Site) -> Any:
    return s.services.limiters.bounds(s.clock.now())


def stale(s: Site) -> None:
    """Days later, all records are looked at again."""
    s.clock.advance(40 * DAY)
    s.trigger(Operation.UPDATE)


def signalled(s: Site) -> None:
    now = s.clock.now()
    s.db.run(
        lambda tx: store.raise_signals(tx, "s", "search", ["r001"], reason="i_operator", detail="", by="t", now=now)
    )
    s.trigger(Operation.UPDATE)


def remapped(s: Site) -> None:
    """Records that another mapping made."""
    s.db.run(lambda tx: tx.execute(statement("test", "UPDATE ing_record SET expr_hash = 'other'"), {}))
    s.trigger(Operation.UPDATE)


def missing_detail(_: int, sent: Outgoing) -> Reply | None:
    return as_json({"items": []}) if sent.url.endswith("/details") else None


AUTHENTICATED = f"{RATE}.authenticated"
IDENTIFIED = f"{RATE}.identified"
MAILTO = {
    "params": {"mailto": {"default": "a@example.org"}, "address": {"maxLength": 9}},
    f"{IDENTIFIED}.param": "mailto",
}
QUOTA = {RATE: {"quotaDaily": 100}}
SMALL = {"window.maxWindow": "PT1H"}
NO_UPDATE = {"update": {"exprChange": False, "signals": False}}
BIG = spread(80)

CASES: dict[str, Case] = {
    "RateLimit.refillRatePerSec": case(harvested(), f"{RATE}.refillRatePerSec", 2),
    "RateLimit.burstCapacity": case(harvested(), f"{RATE}.burstCapacity", 3),
    "RateLimit.warmupSec": case(harvested(), f"{RATE}.warmupSec", 60),
    "RateLimit.cost": case(harvested(), f"{RATE}.cost", 2, given={f"{RATE}.burstCapacity": 2}),
    "RateLimit.scope": case(harvested(show=settled), f"{RATE}.scope", "SOURCE", given=QUOTA),
    "RateLimit.perCredential": case(harvested(show=settled), f"{RATE}.perCredential", True, given=KEY | QUOTA),
    "RateLimit.maxConcurrency": case(harvested(show=concurrency), f"{RATE}.maxConcurrency", 2),
    "RateLimit.demoteRate": case(harvested(script=failing(1, 429)), f"{RATE}.demoteRate", 5),
    "RateLimit.demoteRateMaxMultiplier": case(harvested(script=failing(2, 429)), f"{RATE}.demoteRateMaxMultiplier", 1),
    "RateLimit.minRatePerSec": case(harvested(script=failing(2, 429)), f"{RATE}.minRatePerSec", 9),
    "RateLimit.recoverStepPerSec": case(harvested(items=BIG, script=failing(1, 429)), f"{RATE}.recoverStepPerSec", 5, given={f"{RATE}.coolDown": "PT1S"}),
    "RateLimit.coolDown": case(harvested(items=BIG, script=failing(1, 429)), f"{RATE}.coolDown", "PT1S", given={f"{RATE}.recoverStepPerSec": 5}),
    "RateLimit.headerAdaptive": case(harvested(script=saying(X_RateLimit_Remaining="0", X_RateLimit_Reset="60")), f"{RATE}.headerAdaptive", False),
    "RateLimit.retryAfterRespect": case(checked, f"{RATE}.retryAfterRespect", False),
    "RateLimit.quotaHourly": case(harvested(), f"{RATE}.quotaHourly", 2),
    "RateLimit.quotaDaily": case(harvested(), f"{RATE}.quotaDaily", 2),
    "RateLimit.quotaReserve": case(planned(), f"{RATE}.quotaReserve", 0.9, given={"window.maxWindow": "PT1H", RATE: {"quotaDaily": 40}}),
    "RateLimit.quotaShare": case(planned(), f"{RATE}.quotaShare", {"HARVEST": 0.2}, given={"window.maxWindow": "PT1H", RATE: {"quotaDaily": 40}}),
    "RateHeaders.limit": case(harvested(script=saying(X_My_Limit="1", X_My_Interval="10s")), f"{HEADERS}.limit", "X-My-Limit", given={f"{HEADERS}.interval": "X-My-Interval"}),
    "RateHeaders.interval": case(harvested(script=saying(X_RateLimit_Limit="1", X_My_Interval="10s")), f"{HEADERS}.interval", "X-My-Interval"),
    "RateHeaders.remaining": case(harvested(script=saying(X_Left="0", X_RateLimit_Reset="60")), f"{HEADERS}.remaining", "X-Left"),
    "RateHeaders.reset": case(harvested(script=saying(X_RateLimit_Remaining="0", X_Again="60")), f"{HEADERS}.reset", "X-Again"),
    "RateHeaders.resetKind": case(harvested(script=saying(X_RateLimit_Remaining="0", X_RateLimit_Reset="1774915260")), f"{HEADERS}.resetKind", "EPOCH_MS"),
    "RateHeaders.concurrency": case(permits, f"{HEADERS}.concurrency", "X-Many", given={f"{RATE}.burstCapacity": 9}),
    "RateHeaders.cost": case(harvested(script=saying(X_Cost="5")), f"{HEADERS}.cost", "X-Cost"),
    "RateIdentified.param": case(harvested(), f"{IDENTIFIED}.param", "address", given=MAILTO | {f"{IDENTIFIED}.refillRatePerSec": 1}),
    "RateIdentified.refillRatePerSec": case(harvested(), f"{IDENTIFIED}.refillRatePerSec", 1, given=MAILTO),
    "RateIdentified.burstCapacity": case(harvested(), f"{IDENTIFIED}.burstCapacity", 3, given=MAILTO),
    "RateAuthenticated.refillRatePerSec": case(harvested(), f"{AUTHENTICATED}.refillRatePerSec", 1, given=KEY),
    "RateAuthenticated.burstCapacity": case(harvested(), f"{AUTHENTICATED}.burstCapacity", 3, given=KEY),
    "RateAuthenticated.quotaHourly": case(harvested(), f"{AUTHENTICATED}.quotaHourly", 2, given=KEY),
    "RateAuthenticated.quotaDaily": case(harvested(), f"{AUTHENTICATED}.quotaDaily", 2, given=KEY),
    "RateAuthenticated.maxConcurrency": case(permits, f"{AUTHENTICATED}.maxConcurrency", 1, given={f"{RATE}.burstCapacity": 9}),
    "RateLimit.quantum": case(permits, f"{RATE}.quantum", 2, given={f"{RATE}.burstCapacity": 9}),
    "Limits.maxPageSize": case(checked, "limits.maxPageSize", 5),
    "Limits.maxDepth": case(harvested(), "limits.maxDepth", 20),
    "Limits.maxIdBatch": case(checked, "/endpoints.details.limits.maxIdBatch", 5),
    "Limits.maxRatePerSec": case(checked, "limits.maxRatePerSec", 5),
    "Limits.maxConcurrency": case(checked, "limits.maxConcurrency", 1),
    "Limits.maxAttempts": case(checked, "limits.maxAttempts", 2),
    "Limits.quotaDaily": case(checked, "limits.quotaDaily", 10, given=QUOTA),
    "Limits.quotaHourly": case(checked, "limits.quotaHourly", 10, given={RATE: {"quotaHourly": 100}}),
    "Limits.maxUrlLength": case(request, "limits.maxUrlLength", 64),
    "Retry.policy": case(harvested(script=failing(1)), "retry.policy", "none"),
    "Retry.maxAttempts": case(harvested(script=failing(3)), "retry.maxAttempts", 2),
    "Retry.baseDelay": case(harvested(script=failing(1)), "retry.baseDelay", "PT5S"),
    "Retry.maxDelay": case(harvested(script=failing(3)), "retry.maxDelay", "PT5S", given={"retry.baseDelay": "PT5S"}),
    "Retry.factor": case(harvested(script=failing(3)), "retry.factor", 5, given={"retry.baseDelay": "PT3S"}),
    "Retry.jitter": case(harvested(script=failing(1)), "retry.jitter", 1, given={"retry.baseDelay": "PT5S"}),
    "Retry.retryableStatus": case(harvested(script=failing(1, 404)), "retry.retryableStatus", [404]),
    "Retry.retryableErrors": case(harvested(script=cut_off), "retry.retryableErrors", ["timeout"]),
    "Batching.idBatchSize": case(harvested(), "/endpoints.details.batching.idBatchSize", 3, given=TWO_PHASE),
    "Batching.combineThreshold": case(harvested(), "/endpoints.details.batching.combineThreshold", 25, given=TWO_PHASE),
    "Batching.missingIds": case(harvested(script=missing_detail), "/endpoints.details.batching.missingIds", "IGNORE", given=TWO_PHASE),
    "TwoPhase.enabled": case(harvested(), "twoPhase.enabled", True, given={"http.queryTemplate.ids": "1", "response": {"itemsPath": "$.items", "idPath": "$", "updatedAtPath": "$"}}),
    "TwoPhase.linkedEndpoint": case(checked, "twoPhase.linkedEndpoint", "nothing"),
    "Planning.dimension": case(planned(), "planning.dimension", "PAGE"),
    "Planning.maxPagesPerSlice": case(planned(estimate=1000), "planning.maxPagesPerSlice", 10),
    "Planning.pagesPerSlice": case(planned(estimate=1000), "planning.pagesPerSlice", 10, given={"planning.dimension": "PAGE"}),
    "Planning.idsPerSlice": case(planned(Operation.UPDATE, ids=tuple("abcd")), "planning.idsPerSlice", 2),
    "Planning.hashBuckets": case(planned(Operation.UPDATE, ids=tuple("abcd")), "planning.hashBuckets", 4),
    "Planning.maxRequests": case(harvested(), "planning.maxRequests", 1),
    "Planning.maxDurationSec": case(harvested(), "planning.maxDurationSec", 1, given={f"{RATE}.refillRatePerSec": 0.5}),
    "Planning.priority": case(planned(), "planning.priority", 7),
    "Planning.inventoryLimit": case(planned(), "planning.inventoryLimit", 2, given=SMALL),
    "Planning.spread": case(planned(), "planning.spread", "PT1M", given=SMALL),
    "Planning.resliceBytes": case(harvested(items=BIG), "planning.resliceBytes", 1024, given={"pagination.pageSize": 50}),
    "Planning.resliceThrottled": case(harvested(items=BIG, script=lambda n, _: as_json({}, 429) if n < 4 else None), "planning.resliceThrottled", 0.9, given={"pagination.pageSize": 3}),
    "Update.staleAfter": case(harvested(then=stale), "update.staleAfter", "P30D", given=NO_UPDATE),
    "Update.rounds": case(harvested(then=stale), "update.rounds", 10, given={"update": {"staleAfter": "P30D"}}),
    "Update.exprChange": case(harvested(then=remapped), "update.exprChange", False),
    "Update.signals": case(harvested(then=signalled), "update.signals", False),
    "Update.maxCandidates": case(harvested(then=stale), "update.maxCandidates", 5, given={"update": {"staleAfter": "P30D"}}),
}  # fmt: skip
