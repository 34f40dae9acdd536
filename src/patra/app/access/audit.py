"""Writes one row per act of an operator, in the same transaction: who did what to what, and when."""

from typing import Any

import msgspec

from patra.app.access.actor import Actor
from patra.kernel.clock import format_instant
from patra.kernel.db import Queries, Tx
from patra.kernel.safety.redact import redact

Q = Queries.load("patra.app")


class AuditEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One act. `act` is a constant name such as `loop.wake`, `subject` what it was done to."""

    id: int
    at: str
    actor: str
    role: str
    act: str
    subject: str
    detail: dict[str, Any]


def audit(tx: Tx, actor: Actor, act: str, subject: str, detail: dict[str, Any], now: int) -> None:
    """Write the row, without secrets in its detail; call it in the transaction of the act, so that none is alone."""
    tx.insert(
        "app_audit",
        [
            {
                "at": now,
                "actor": actor.name,
                "role": actor.role.value,
                "act": act,
                "subject": _storable(subject),
                "detail": _storable(msgspec.json.encode(redact(detail)).decode()),
            }
        ],
    )


def list_acts(tx: Tx, *, limit: int, before: int | None = None, act: str = "", subject: str = "") -> list[AuditEntry]:
    """The newest acts first; `before` is the id to page on from, an empty `act` or `subject` stands for any."""
    rows = tx.fetch(Q["audit_page"], {"limit": limit, "before": before or 2**62, "act": act, "subject": subject})
    return [
        AuditEntry(
            id=number,
            at=format_instant(at),
            actor=actor,
            role=role,
            act=done,
            subject=to,
            detail=msgspec.json.decode(detail, type=dict[str, Any]),
        )
        for number, at, actor, role, done, to, detail in rows
    ]


def _storable(text: str) -> str:
    """PostgreSQL's text holds no U+0000."""
    return text.replace("\x00", "\ufffd")
