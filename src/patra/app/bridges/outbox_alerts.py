"""Turns the outbox of a store into readings of alerts: an archive, a bus or a receiver that does not take messages."""

from collections.abc import Callable, Mapping, Sequence

from patra.ingest.operations.alerting.alerts import Reading
from patra.ingest.operations.alerting.bus_rules import UNDELIVERED
from patra.kernel import outbox
from patra.kernel.clock import DAY, MINUTE
from patra.kernel.db import Tx


def outbox_readings(longest_failing: int) -> Callable[[Tx, int], Mapping[str, Sequence[Reading]]]:
    """What the watch reads of the outbox; a delivery may fail for so many µs before it is reported."""

    def read(tx: Tx, now: int) -> Mapping[str, Sequence[Reading]]:
        refused = {one.channel: one for one in outbox.refused_since(tx, now - DAY)}
        failing = {channel: at for channel, at in outbox.failing_since(tx).items() if now - at > longest_failing}
        return {
            UNDELIVERED: [
                Reading(
                    subject=channel,
                    value=refused[channel].count if channel in refused else 0,
                    breach=True,
                    calm=False,
                    text=_text(refused.get(channel), failing.get(channel), now),
                )
                for channel in sorted({*refused, *failing})
            ]
        }

    return read


def _text(refused: outbox.RefusedMessages | None, failing_since: int | None, now: int) -> str:
    """By the codes alone: what a receiver answered may hold what is not for everyone who gets alerts."""
    parts: list[str] = []
    if refused is not None:
        messages = f"{refused.count} message{'s' if refused.count > 1 else ''}"
        parts.append(f"{messages} refused or given up within a day ({refused.reason.partition(':')[0] or 'no reason'})")
    if failing_since is not None:
        parts.append(f"delivery has failed for {(now - failing_since) // MINUTE} min and is tried again")
    return "; ".join(parts)
