# ruff: noqa: N815  names of the specification
"""What a user would write instead: FastAPI, pydantic, SQLAlchemy's ORM, a unique constraint, a row at a time.

Four rows an event on PostgreSQL, as attribution has them: the dedup key, the audit, the attribution fact, the output record.
It knows no closures, windows, conflicts or deadlines; it is here for its speed alone.
"""

import hashlib
import os
from datetime import UTC, datetime
from typing import Any

import uvicorn
from fastapi import FastAPI
from pydantic import BaseModel, ConfigDict, Field
from sqlalchemy import DateTime, String, create_engine
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column


class Base(DeclarativeBase):
    pass


class Seen(Base):
    __tablename__ = "naive_seen"
    id: Mapped[int] = mapped_column(primary_key=True)
    key: Mapped[str] = mapped_column(String(200), unique=True)
    fingerprint: Mapped[str] = mapped_column(String(64))
    first_at: Mapped[datetime] = mapped_column(DateTime(timezone=True))


class Audit(Base):
    __tablename__ = "naive_audit"
    id: Mapped[int] = mapped_column(primary_key=True)
    source_event_id: Mapped[str] = mapped_column(String(64), index=True)
    action: Mapped[str]
    reason: Mapped[str]
    decided_at: Mapped[datetime] = mapped_column(DateTime(timezone=True))


class Fact(Base):
    __tablename__ = "naive_fact"
    id: Mapped[int] = mapped_column(primary_key=True)
    attribution_key: Mapped[str] = mapped_column(String(300), index=True)
    source_event_id: Mapped[str]
    event_type: Mapped[str]
    response_reference: Mapped[str | None]
    render_attempt_id: Mapped[str | None]
    opportunity_key: Mapped[str]
    trace_key: Mapped[str]
    fact_at: Mapped[datetime] = mapped_column(DateTime(timezone=True))


class Record(Base):
    __tablename__ = "naive_record"
    record_key: Mapped[str] = mapped_column(String(64), primary_key=True)
    record_type: Mapped[str]
    status: Mapped[str]
    payload_key: Mapped[str]
    request_key: Mapped[str]
    attempt_key: Mapped[str]
    output_at: Mapped[datetime] = mapped_column(DateTime(timezone=True))


class Event(BaseModel):
    model_config = ConfigDict(extra="allow")
    eventId: str = Field(min_length=1, max_length=128)
    eventType: str
    eventAt: datetime
    traceKey: str
    requestKey: str
    attemptKey: str
    opportunityKey: str
    eventVersion: str
    idempotencyKey: str | None = None
    responseReference: str | None = None
    renderAttemptId: str | None = None


class Batch(BaseModel):
    batchId: str
    appId: str
    sdkVersion: str
    sentAt: datetime
    schemaVersion: str
    events: list[Event] = Field(min_length=1, max_length=100)


app = FastAPI()
engine = create_engine(os.environ.get("NAIVE_URL", "sqlite://"), pool_size=10)


@app.get("/ready")
def ready() -> dict[str, bool]:
    return {"ready": True}


@app.post("/events")
def take(batch: Batch) -> dict[str, Any]:
    received = datetime.now(UTC)
    with Session(engine) as session:
        items = [_event(session, batch, event, index, received) for index, event in enumerate(batch.events)]
    return {"batchId": batch.batchId, "receivedAt": received.isoformat(), "ackItems": items}


def _event(session: Session, batch: Batch, event: Event, index: int, received: datetime) -> dict[str, Any]:
    scoped = event.idempotencyKey or f"{batch.batchId}|{event.eventId}"
    key = f"f_dedup_v1:{batch.appId}|{scoped}"
    source = "fe_" + _hash(key)[:32]
    status = "accepted"
    try:
        session.add(Seen(key=key, fingerprint=_hash(event.model_dump_json()), first_at=received))
        session.add(Audit(source_event_id=source, action="attribution_emit", reason="f_accepted", decided_at=received))
        session.add(
            Fact(
                attribution_key=f"attr_{event.eventType}|{key}",
                source_event_id=source,
                event_type=event.eventType,
                response_reference=event.responseReference,
                render_attempt_id=event.renderAttemptId,
                opportunity_key=event.opportunityKey,
                trace_key=event.traceKey,
                fact_at=event.eventAt,
            )
        )
        session.add(
            Record(
                record_key=_hash(f"attribution_fact|{key}"),
                record_type="attribution_fact",
                status="committed",
                payload_key=source,
                request_key=event.requestKey,
                attempt_key=event.attemptKey,
                output_at=received,
            )
        )
        session.commit()
    except IntegrityError:
        session.rollback()
        status = "duplicate"
    return {
        "eventId": event.eventId,
        "eventIndex": index,
        "ackStatus": status,
        "ackReasonCode": "f_accepted" if status == "accepted" else "f_dedup_committed_duplicate",
        "retryable": False,
        "serverEventKey": source,
    }


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


if __name__ == "__main__":
    Base.metadata.create_all(engine)
    uvicorn.run(app, host="127.0.0.1", port=int(os.environ["NAIVE_PORT"]), log_level="warning", access_log=False)
