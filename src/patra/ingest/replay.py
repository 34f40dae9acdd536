"""A run and a batch go in; the same request is sent again, or its kept body read, and a report comes out (14.9.2).

Everything comes from the evidence: the plan's snapshot, the place in the list, the window. The request is rendered
anew and must be the same to the byte, its secrets by their names. It is sent as every request is, with a permit of the
rate gate, once; what comes back is judged, read and mapped, and what would become of it is worked out. Nothing is
written: the store is only read. In full, which somebody has to allow, the way into the store is gone too, in a
transaction that never commits (`rehearsal`).
"""

from enum import StrEnum
from typing import Any

import msgspec
from msgspec.structs import replace

from patra.ingest.blackbox import export, kept_body
from patra.ingest.classify import Action, Verdict
from patra.ingest.codes import Operation, RetryPolicy
from patra.ingest.course import Course
from patra.ingest.escaping import Refused
from patra.ingest.evidence import body_hash, content_hash
from patra.ingest.executor import credential
from patra.ingest.fetching import Deferred, fetch
from patra.ingest.gates import Pause
from patra.ingest.landing import Landing, ids_of, nothing, records_of
from patra.ingest.line import Line, request_hash
from patra.ingest.reading import Document, Listed
from patra.ingest.reasons_running import X
from patra.ingest.records import Stored, sort_out
from patra.ingest.rehearsal import rehearse
from patra.ingest.request import At
from patra.ingest.running_store import Place, Q
from patra.ingest.runs import Phase
from patra.ingest.services import Services
from patra.ingest.slicing import Span
from patra.ingest.spec import Spec, decode_spec, sealed
from patra.ingest.transport import Answer
from patra.kernel.clock import format_instant, parse_instant
from patra.kernel.db import Database
from patra.kernel.errors import Invalid
from patra.kernel.redact import redact, redact_url

NOT_KEPT = "(not kept)"
SHOWN_IDS = 10


class Weight(StrEnum):
    """What a difference means."""

    DECISIVE = "decisive"
    INFORMATIVE = "informative"  # it may differ although nothing has changed: a total that grows, a time stamp


class Compared(msgspec.Struct, frozen=True, kw_only=True):
    """One line of the report; `same` is None where there is nothing to compare with."""

    what: str
    then: Any
    now: Any
    same: bool | None
    weight: Weight = Weight.DECISIVE


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
    conclusion: X
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
        return self.conclusion is X.REPLAY_EQUAL and all(one.same is not False for one in self.written)


class _Seen(msgspec.Struct, frozen=True, kw_only=True):
    """What an answer holds, by this program."""

    status: int | None
    verdict: Verdict
    listed: Listed | None
    landing: Landing
    body: bytes | None


class _Batch(msgspec.Struct, frozen=True, kw_only=True):
    """A batch with what it takes to do it again."""

    evidence: dict[str, Any]
    fingerprint: str
    spec: Spec
    course: Course
    line: Line
    at: At
    phase: Phase

    @property
    def answered(self) -> dict[str, Any]:
        return self.evidence["response_digest"]


def replay(
    db: Database,
    services: Services,
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
    shown = batch.line.shown(batch.at)
    request = _request(batch, shown)
    before = _from_body(batch, body) if body is not None else None
    detail = ""
    if isinstance(shown, Refused):
        seen, detail = None, f"{shown.place}: {shown.detail}"
    elif kept:
        seen = before
    else:
        correlation = f"ing-{run_id}-{batch_no}-replay"  # the mark of a replay, for whoever reads the provider's log
        found = fetch(
            services, batch.line, batch.at, pause, task=f"{run_id}-replay", correlation=correlation, fragile=False
        )
        if isinstance(found, Deferred):
            seen, detail = None, f"{found.code.text} until {format_instant(found.until)}: {found.detail}"
        else:
            answer = found.answer
            seen = _Seen(
                status=answer.status if answer is not None else None,
                verdict=found.verdict,
                listed=found.listed,
                landing=_landing(batch, found.listed),
                body=answer.body if answer is not None else None,
            )
            detail = found.verdict.detail
    compared = [request["compared"], _snapshot(batch), *(_compared(batch, seen) if seen is not None else ())]
    conclusion = _conclusion(compared, seen, batch)
    missing, added = _ids(before, seen, kept=kept)
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
        written=_written(db, batch, seen, now) if full and seen is not None else [],
        detail=detail,
    )


# --- what happened then


def _load(db: Database, run_id: str, batch_no: int) -> _Batch | None:
    evidence = export(db, run_id, batch_no)
    if evidence is None:
        return None
    row = db.read(lambda tx: tx.fetch_one(Q["replay_context"], {"plan_id": evidence["plan_id"]}))
    if row is None:
        raise Invalid("plan_missing", f"the plan {evidence['plan_id']} is gone, and with it the snapshot")
    spec = decode_spec(row[0])
    once = replace(spec, retry=_once(spec), detail=_once_detail(spec))
    course = Course(once, lambda code: credential(db, spec.provenance_code, code))
    phase = Phase(evidence["phase_code"])
    return _Batch(
        evidence=evidence,
        fingerprint=row[1],
        spec=spec,
        course=course,
        line=course.line(phase),
        at=msgspec.convert(evidence["request_digest"]["at"], At),
        phase=phase,
    )


def _once(leg: Any) -> Any:
    return replace(leg.retry, policy=RetryPolicy.NONE)


def _once_detail(spec: Spec) -> Any:
    return None if spec.detail is None else replace(spec.detail, retry=_once(spec.detail))


def _request(batch: _Batch, shown: Any) -> dict[str, Any]:
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


def _snapshot(batch: _Batch) -> Compared:
    """Whether the plan's snapshot still has its fingerprint; a newer program may know fields that it has not."""
    then, now = batch.fingerprint, sealed(batch.spec).spec_fingerprint
    return Compared(what="snapshot", then=then, now=now, same=then == now, weight=Weight.INFORMATIVE)


def _from_body(batch: _Batch, body: bytes) -> _Seen:
    """What this program makes of the body that was kept."""
    then = batch.answered
    shown = batch.line.shown(batch.at)
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
        verdict = batch.line.classifier.listed(listed, batch.at) or verdict
        listed = listed if verdict.action is Action.ACCEPT else None
    elif verdict.code is X.NO_CONTENT:
        verdict = batch.line.classifier.silent(batch.at) or verdict
    return _Seen(status=answer.status, verdict=verdict, listed=listed, landing=_landing(batch, listed), body=body)


def _landing(batch: _Batch, listed: Listed | None) -> Landing:
    if listed is None:
        return nothing()
    items = listed.items or []
    if batch.phase is Phase.LIST and batch.course.detail is not None:
        return ids_of(batch.line, items)
    filtered = batch.phase is Phase.LIST and batch.spec.window.client_filter
    return records_of(batch.line, items, batch.at.now, batch.course.plan, _window(batch) if filtered else None)


def _window(batch: _Batch) -> Span | None:
    start, end = batch.evidence["window_from"], batch.evidence["window_to"]
    return None if start is None or end is None else Span(parse_instant(start) or 0, parse_instant(end) or 0)


# --- then and now


def _compared(batch: _Batch, seen: _Seen) -> list[Compared]:
    then, listed = batch.answered, seen.listed
    token, url = (listed.token, listed.url) if listed is not None else (None, None)
    landed = batch.evidence["status_code"] == "SUCCEEDED"

    def line(what: str, was: Any, now: Any, weight: Weight = Weight.DECISIVE, *, known: bool = True) -> Compared:
        return Compared(
            what=what, then=was if known else NOT_KEPT, now=now, same=was == now if known else None, weight=weight
        )

    return [
        line("status", then["status"], seen.status),
        line("verdict", then["verdict"]["code"], seen.verdict.code.value),
        line("records", then["itemsCount"], len(listed.items or ()) if listed is not None else 0),
        line("ids", then.get("idsHash"), seen.landing.digest, known=landed and "idsHash" in then),
        line("content", then.get("contentHash"), content_hash(seen.landing), known=landed and "contentHash" in then),
        line("next", bool(then.get("nextTokenHint") or then.get("nextUrlHint")), bool(token or url)),
        # providers may make a new token for every request: the same page, another name for the next one
        line("nextToken", then.get("nextTokenHint"), token, Weight.INFORMATIVE),
        line("nextUrl", then.get("nextUrlHint"), None if url is None else redact_url(url), Weight.INFORMATIVE),
        line("hasMore", then.get("hasMoreHint"), listed.has_more if listed is not None else None),
        line("total", then.get("totalHint"), listed.total if listed is not None else None, Weight.INFORMATIVE),
        line(
            "body",
            then.get("bodyHash"),
            None if seen.body is None else f"sha256:{body_hash(seen.body)}",
            Weight.INFORMATIVE,
        ),
    ]


def _conclusion(compared: list[Compared], seen: _Seen | None, batch: _Batch) -> X:
    if compared[0].same is False:
        return X.REPLAY_REQUEST
    if seen is None:
        return X.REPLAY_UNANSWERED
    if all(one.same is not False for one in compared if one.weight is Weight.DECISIVE):
        return X.REPLAY_EQUAL
    answered = seen.verdict.level is None or batch.answered["verdict"]["level"] is not None
    return X.REPLAY_CHANGED if answered else X.REPLAY_UNANSWERED


def _ids(before: _Seen | None, seen: _Seen | None, *, kept: bool) -> tuple[list[str], list[str]]:
    """Which ids went and which came, where the body was kept to tell."""
    if before is None or seen is None or kept:
        return [], []
    then, now = before.landing.ids, seen.landing.ids
    gone = [one for one in then if one not in set(now)]
    came = [one for one in now if one not in set(then)]
    return gone[:SHOWN_IDS], came[:SHOWN_IDS]


def _would(db: Database, batch: _Batch, seen: _Seen) -> dict[str, int]:
    landing, spec = seen.landing, batch.spec
    key = {"source": spec.provenance_code, "endpoint": spec.endpoint_code}
    rows = [(one,) for one in sorted({record.id for record in landing.records})]
    known = db.read(lambda tx: tx.fetch(Q["records_known"], key, rows=rows))
    remap = spec.operation.value == "UPDATE"
    out = sort_out(landing.records, {row[0]: Stored(*row[1:]) for row in known}, spec.record_expr_hash, remap=remap)
    return {
        "inserted": len(out.new),
        "updated": len(out.newer),
        "equal": len(out.equal),
        "older": len(out.older),
        "repeated": out.repeated,
        "quarantined": len(landing.bad),
    }


def _written(db: Database, batch: _Batch, seen: _Seen, now: int) -> list[Compared]:
    """The way into the store, gone once more and undone."""
    evidence, spec = batch.evidence, batch.spec
    place = Place(
        source=spec.provenance_code,
        endpoint=spec.endpoint_code,
        operation=spec.operation.value,
        expr_hash=spec.record_expr_hash,
        plan_id=evidence["plan_id"],
        slice_id=evidence["slice_id"],
        task_id=evidence["task_id"],
        run_id=evidence["run_id"],
        batch_no=evidence["batch_no"],
    )
    remap = spec.operation is Operation.UPDATE
    found = rehearse(db, place, evidence["before_key"], seen.landing.records, now, remap=remap)
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
