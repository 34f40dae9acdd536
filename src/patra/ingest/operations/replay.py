"""Sends the request of a batch again, or reads its kept body, and reports what differs (14.9.2).

Everything comes from the evidence: the plan's snapshot, the place in the list, the window. The request is rendered
again and must be the same to the byte, its secrets by their names. It is sent as every request is, with a permit of the
rate gate, once; the answer is judged, read and mapped, and the changes it would make are computed. Nothing is written:
the store is only read. A full replay, which an operator has to allow, also writes to the store, in a transaction that
never commits (`rehearsal`).
"""

from typing import Any

import msgspec
from msgspec.structs import replace

from patra.ingest.execution.executor import compile_snapshot
from patra.ingest.expressions.escaping import Refused
from patra.ingest.extraction.body_parser import Document
from patra.ingest.extraction.classify import Action
from patra.ingest.extraction.response import Listed
from patra.ingest.fetching.endpoint_client import request_hash
from patra.ingest.fetching.fetch import fetch
from patra.ingest.fetching.runtime import Runtime
from patra.ingest.fetching.sender import Deferred
from patra.ingest.http.client import Answer
from patra.ingest.http.request import Position
from patra.ingest.landing.page_records import Landing, ids_of, nothing, records_of
from patra.ingest.landing.records import Stored, sort_out
from patra.ingest.landing.run_state import Phase, correlation_id
from patra.ingest.landing.store import Q, RecordOrigin
from patra.ingest.operations.dry_run import rehearse
from patra.ingest.operations.reads.blackbox import export, kept_body
from patra.ingest.operations.replay_comparison import (
    Compared,
    ReplayedBatch,
    SeenBatch,
    Weight,
    compared_lines,
    conclusion_of,
    moved_ids,
)
from patra.ingest.packs.spec import Spec, decode_spec, seal_spec
from patra.ingest.planning.slicing.windows import Span
from patra.ingest.ratelimit.limiter import Pause
from patra.ingest.vocabulary.codes import OnEqual, Operation, RetryPolicy
from patra.ingest.vocabulary.run_reasons import RunReason
from patra.kernel.clock import format_instant, parse_instant
from patra.kernel.db import Database
from patra.kernel.errors import Invalid
from patra.kernel.safety.redact import redact, redact_url


class Report(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What a replay found."""

    run_id: str
    batch_no: int
    source: str
    endpoint: str
    operation: str
    how: str
    """`network`, or `kept body`."""
    happened_at: str
    replayed_at: str
    conclusion: RunReason
    text: str
    request: dict[str, Any]
    compared: list[Compared]
    missing_ids: list[str] = []
    added_ids: list[str] = []
    would: dict[str, int] = {}
    """What the upsert rule would do with these records now; nothing of it is done."""
    written: list[Compared] = []
    """In full: what the batch has left in the store, and what it would leave there now."""
    detail: str = ""

    @property
    def equal(self) -> bool:
        return self.conclusion is RunReason.REPLAY_EQUAL and all(one.same is not False for one in self.written)


def replay(
    db: Database,
    services: Runtime,
    run_id: str,
    batch_no: int,
    pause: Pause,
    *,
    kept: bool = False,
    full: bool = False,
) -> Report | None:
    """Do a batch again without any effect; None where there is no such batch. `kept`: without the network; `full`: the
    way into the store too.
    """
    batch = _load(db, run_id, batch_no)
    if batch is None:
        return None
    now = services.clock.now()
    body = kept_body(db, batch.evidence["body_hash"])
    if kept and body is None:
        advice = "set `ingest.keep_bodies`, or replay over the network"
        raise Invalid("body_not_kept", f"the body of batch {batch_no} of run {run_id} is not kept", advice=advice)
    shown = batch.line.masked_request(batch.at)
    request = _request(batch, shown)
    before = _from_body(batch, body) if body is not None else None
    detail = ""
    if isinstance(shown, Refused):
        seen, detail = None, f"{shown.place}: {shown.detail}"
    elif kept:
        seen = before
    else:
        # marks a replay in the provider's log
        correlation = f"{correlation_id(run_id, batch_no)}-replay"
        found = fetch(
            services, batch.line, batch.at, pause, task=f"{run_id}-replay", correlation=correlation, fragile=False
        )
        if isinstance(found, Deferred):
            seen, detail = None, f"{found.code.text} until {format_instant(found.until)}: {found.detail}"
        else:
            answer = found.answer
            seen = SeenBatch(
                status=answer.status if answer is not None else None,
                verdict=found.verdict,
                listed=found.listed,
                landing=_landing(batch, found.listed),
                body=answer.body if answer is not None else None,
            )
            detail = found.verdict.detail
    compared = [request["compared"], _snapshot(batch), *(compared_lines(batch, seen) if seen is not None else ())]
    conclusion = conclusion_of(compared, seen, batch)
    missing, added = moved_ids(before, seen, kept=kept)
    evidence = batch.evidence
    return Report(
        run_id=run_id,
        batch_no=batch_no,
        source=batch.spec.provenance_code,
        endpoint=batch.spec.endpoint_code,
        operation=batch.spec.operation.value,
        how="kept body" if kept else "network",
        happened_at=evidence["created_at"],
        replayed_at=format_instant(now),
        conclusion=conclusion,
        text=conclusion.text,
        request=request["shown"],
        compared=compared,
        missing_ids=missing,
        added_ids=added,
        would=_would(db, batch, seen) if seen is not None else {},
        written=_write_and_undo(db, batch, seen, now) if full and seen is not None else [],
        detail=detail,
    )


# --- what happened then


def _load(db: Database, run_id: str, batch_no: int) -> ReplayedBatch | None:
    evidence = export(db, run_id, batch_no)
    if evidence is None:
        return None
    row = db.read(lambda tx: tx.fetch_one(Q["replay_context"], {"plan_id": evidence["plan_id"]}))
    if row is None:
        raise Invalid("plan_missing", f"the plan {evidence['plan_id']} is gone, and with it the snapshot")
    spec = decode_spec(row[0])
    once = replace(spec, retry=_once(spec), detail=_once_detail(spec))
    course = compile_snapshot(db, once)
    phase = Phase(evidence["phase_code"])
    return ReplayedBatch(
        evidence=evidence,
        fingerprint=row[1],
        spec=spec,
        course=course,
        line=course.line(phase),
        at=msgspec.convert(evidence["request_digest"]["at"], Position),
        phase=phase,
    )


def _once(leg: Any) -> Any:
    return replace(leg.retry, policy=RetryPolicy.NONE)


def _once_detail(spec: Spec) -> Any:
    return None if spec.detail is None else replace(spec.detail, retry=_once(spec.detail))


def _request(batch: ReplayedBatch, shown: Any) -> dict[str, Any]:
    then = batch.evidence["request_digest"]
    if isinstance(shown, Refused):
        refused = f"{shown.place}: {shown.detail}"
        line = Compared(
            what="request",
            then=then.get("hash") or then.get("refused"),
            now=refused,
            same=then.get("refused") == refused,
        )
        return {"compared": line, "shown": {"refused": refused}}
    digest = request_hash(shown)
    return {
        "compared": Compared(what="request", then=then.get("hash"), now=digest, same=then.get("hash") == digest),
        "shown": {
            "method": shown.method,
            "url": redact_url(shown.url),
            "headers": [f"{name}: {redact({name: value})[name]}" for name, value in shown.headers],
            "body": None if shown.body is None else redact(shown.body.decode("utf-8", "replace")),
        },
    }


def _snapshot(batch: ReplayedBatch) -> Compared:
    """Whether the plan's snapshot still has its fingerprint; a newer program may know fields that it has not."""
    then, now = batch.fingerprint, seal_spec(batch.spec).spec_fingerprint
    return Compared(what="snapshot", then=then, now=now, same=then == now, weight=Weight.INFORMATIVE)


def _from_body(batch: ReplayedBatch, body: bytes) -> SeenBatch:
    """What this program makes of the body that was kept."""
    then = batch.all_answered
    shown = batch.line.masked_request(batch.at)
    answer = Answer(
        status=then["status"],
        headers=then.get("headerHints", {}),
        body=body,
        url="" if isinstance(shown, Refused) else shown.url,
        elapsed=0,
        wire_bytes=len(body),
    )
    verdict, document = batch.line.classifier.judge(answer, batch.at.now)
    listed = None
    if verdict.action is Action.ACCEPT and isinstance(document, Document):
        listed = batch.line.reader.page(document, answer.headers, answer.url)
        verdict = batch.line.classifier.judge_list(listed, batch.at, status=answer.status) or verdict
        listed = listed if verdict.action is Action.ACCEPT else None
    elif verdict.code is RunReason.NO_CONTENT:
        verdict = batch.line.classifier.silent(batch.at) or verdict
    return SeenBatch(status=answer.status, verdict=verdict, listed=listed, landing=_landing(batch, listed), body=body)


def _landing(batch: ReplayedBatch, listed: Listed | None) -> Landing:
    if listed is None:
        return nothing()
    items = listed.items or []
    if batch.phase is Phase.LIST and batch.course.detail is not None:
        return ids_of(batch.line, items)
    filtered = batch.phase is Phase.LIST and batch.spec.window.client_filter
    return records_of(batch.line, items, batch.at.now, batch.course.plan, _window(batch) if filtered else None)


def _window(batch: ReplayedBatch) -> Span | None:
    start, end = batch.evidence["window_from"], batch.evidence["window_to"]
    return None if start is None or end is None else Span(parse_instant(start) or 0, parse_instant(end) or 0)


def _would(db: Database, batch: ReplayedBatch, seen: SeenBatch) -> dict[str, int]:
    landing, spec = seen.landing, batch.spec
    key = {"source": spec.provenance_code, "endpoint": spec.endpoint_code}
    rows = [(one,) for one in sorted({record.id for record in landing.records})]
    known = db.read(lambda tx: tx.fetch(Q["records_known"], key, rows=rows))
    remap = spec.operation.value == "UPDATE"
    stored = {row[0]: Stored(*row[1:]) for row in known}
    by_content = spec.yields.response.on_equal is OnEqual.CONTENT
    out = sort_out(landing.records, stored, spec.record_expr_hash, remap=remap, by_content=by_content)
    return {
        "inserted": len(out.new),
        "updated": len(out.newer),
        "equal": len(out.equal),
        "older": len(out.older),
        "repeated": out.repeated,
        "quarantined": len(landing.bad),
    }


def _write_and_undo(db: Database, batch: ReplayedBatch, seen: SeenBatch, now: int) -> list[Compared]:
    """The way into the store, gone once more and undone."""
    evidence, spec = batch.evidence, batch.spec
    place = RecordOrigin(
        source=spec.provenance_code,
        endpoint=spec.kept_under,
        operation=spec.operation.value,
        expr_hash=spec.record_expr_hash,
        plan_id=evidence["plan_id"],
        slice_id=evidence["slice_id"],
        task_id=evidence["task_id"],
        run_id=evidence["run_id"],
        batch_no=evidence["batch_no"],
    )
    remap = spec.operation is Operation.UPDATE
    by_content = spec.yields.response.on_equal is OnEqual.CONTENT
    records = seen.landing.records
    found = rehearse(db, place, evidence["before_key"], records, now, remap=remap, by_content=by_content)
    stats, events = evidence["stats"], evidence["cursorEvents"]
    newest = seen.landing.newest
    then = sum(stats[name] for name in found.wrote)
    lines = [
        Compared(what="batch", then=True, now=found.found, same=found.found),
        Compared(
            what="rows",
            then=found.own,
            now=found.own - len(found.differing),
            same=not found.differing,
        ),
        Compared(what="upserts", then=then, now=sum(found.wrote.values()), same=then == sum(found.wrote.values())),
    ]
    observed = events[0]["observed_max_value"] if events else None
    if observed is not None and newest is not None:
        again = format_instant(newest)
        lines.append(Compared(what="observedMax", then=observed, now=again, same=observed == again))
    return lines
