"""What may be sent to providers and what is sent, by rate key and by source."""

from collections.abc import Mapping, Sequence
from typing import Any

from patra.web.console.markup.drawings import bars, spark
from patra.web.console.markup.formats import instant, plural, span_text
from patra.web.console.view import Page, View


def rate(view: View) -> Page:
    found = view.ask("/ingest/rate")
    cooling = found["cooldowns"]
    active = sum(one["active"] for one in cooling)
    title = f"{plural(active, 'provider is', 'providers are')} cooling down" if active else "No provider cools down"
    gates = [
        {
            **gate,
            "allowed": (allowed := [float(rate) for rate in gate["allowed"]]),
            "allowed_drawing": spark(allowed, f"requests a second that the gate of {gate['rate_key']} allowed"),
            "used_drawing": bars(gate["used"], f"requests of {gate['rate_key']} by minute", "done", 28),
        }
        for gate in found["gates"]
    ]
    return Page(
        title=title,
        template="ingest/rate.html",
        values={"quotas": found["quotas"], "cooldowns": cooling, "gates": gates, "minutes": found["minutes"]},
    )


def with_traffic(
    view: View, sources: Mapping[str, dict[str, Any]], cursors: Sequence[Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """Sources with what was sent to each and how far its harvest is behind, so that one page shows all of it."""
    gates = view.ask("/ingest/rate")["gates"]
    marks = [(one["provenance_code"], one["operation_code"], instant(one["cursor_value"])) for one in cursors]
    found: list[dict[str, Any]] = []
    for name, source in sources.items():
        own = [gate for gate in gates if gate["source"] == name]
        reached = min((at for of, op, at in marks if of == name and op == "HARVEST" and at is not None), default=None)
        figures: dict[str, Any] = {
            total: sum(gate[total] for gate in own) for total in ("requests", "throttled", "wait_ms")
        }
        figures["behind"] = "" if reached is None else span_text(view.now - reached)
        found.append({**source, **figures})
    return found
