"""What may be sent to providers and what is sent, by rate key and by source."""

from collections.abc import Mapping, Sequence
from typing import Any

from markupsafe import Markup

from patra.web.console.markup.drawings import Part, bars, shares, spark
from patra.web.console.markup.formats import instant, number_text, plural, span_text
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
        values={
            "quotas": [quota | {"bar": _share(quota)} for quota in found["quotas"]],
            "cooldowns": cooling,
            "gates": gates,
            "minutes": found["minutes"],
        },
    )


def _share(quota: Mapping[str, Any]) -> Markup:
    """What was used, what plans reserved beyond that, and what is left of a quota; nothing without a limit."""
    limit, used = quota["limit"], quota["consumed"]
    if not limit:
        return Markup("")
    planned = max(min(quota["reserved"], limit) - used, 0)
    left = max(limit - used - planned, 0)
    return shares(
        [
            Part(count=used, tone="bad" if used >= limit else "done", label=f"{number_text(used)} used"),
            Part(count=planned, tone="wait", label=f"{number_text(planned)} more reserved by plans"),
            Part(count=left, tone="none", label=f"{number_text(left)} left"),
        ]
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
