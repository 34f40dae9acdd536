"""Decisions on their way to an archive outside the store: how many, which are sent next, and when the first is lost."""

from typing import Any

import msgspec

from patra.attribution.delivery.relay import CHANNEL, POLICY
from patra.kernel import outbox
from patra.kernel.clock import format_instant
from patra.kernel.db import Tx
from patra.kernel.safety.redact import redact_url

WAITING_SHOWN = 50
MAX_COUNTED = 10_000


class ArchiveDelivery(msgspec.Struct, frozen=True, kw_only=True):
    """Records on their way to an archive outside the store: how many by state, and which are sent next.

    The window in which an archive may fail begins with the first failure: `lost_at` is when the first of those that
    fail since `failing_since` is given up, so that no settlement counts it. Both are null while nothing fails.
    """

    where: str
    states: dict[str, int]
    """Counted up to a bound."""
    waiting: list[dict[str, Any]]
    failing_since: str | None
    lost_at: str | None


def archive_delivery(tx: Tx, where: str) -> ArchiveDelivery:
    """`where` is the setting; what is secret in it is left out."""
    backlog = outbox.backlog_up_to(tx, MAX_COUNTED)
    failing = outbox.failing_since(tx).get(CHANNEL)
    waiting = [row | {"lost_at": _given_up_at(row["failed_at"])} for row in outbox.waiting(tx, CHANNEL, WAITING_SHOWN)]
    return ArchiveDelivery(
        where=redact_url(where.partition("?")[0]),
        states={state: count for (channel, state), count in backlog.items() if channel == CHANNEL},
        waiting=[_with_instants(one) for one in waiting],
        failing_since=None if failing is None else format_instant(failing),
        lost_at=None if (lost := _given_up_at(failing)) is None else format_instant(lost),
    )


def _given_up_at(first_failure: int | None) -> int | None:
    return None if first_failure is None or POLICY.window is None else first_failure + POLICY.window


def _with_instants(row: dict[str, Any]) -> dict[str, Any]:
    return {
        name: format_instant(value) if value is not None and name.endswith("_at") else value
        for name, value in row.items()
    }
