"""The batches of a run on an axis of time: what waited for the rate, what was under way, where a provider said 429."""

from collections.abc import Mapping, Sequence
from typing import Any, cast

from markupsafe import Markup

from patra.kernel.clock import SECOND
from patra.web.console.markup.formats import instant, link, plural, span_text

MS = SECOND // 1000
HEIGHT_PX = 44
ROW_PX = 6
LEAST_WIDTH = 0.2
"""Of a bar, in hundredths of the axis."""


def run_lane(run_id: str, batches: Sequence[Mapping[str, Any]]) -> Markup:
    """Nothing where no batch says how long it took."""
    found = [one for batch in batches if (one := _spans(batch)) is not None]
    if not found:
        return Markup("")
    begin, end = min(one[0] for one in found), max(one[2] for one in found)
    length = max(end - begin, 1)

    def place(at: int) -> float:
        return round(100 * (at - begin) / length, 3)

    bars = Markup("").join(
        _bar(run_id, batch, place(spans[0]), place(spans[1]), place(spans[2]))
        for batch in batches
        if (spans := _spans(batch)) is not None
    )
    waited = sum(sent - first for first, sent, _ in found)
    throttled = sum(_count(batch, "429Count") for batch in batches)
    label = (
        f"{plural(len(found), 'batch', 'batches')} in {span_text(length)}, {span_text(waited)} of it waiting for the "
        f"rate, {plural(throttled, 'answer')} of 429"
    )
    axis = Markup('<text x="0" y="{0}">0 s</text><text x="100%" y="{0}" text-anchor="end">{1}</text>').format(
        HEIGHT_PX - 4, span_text(length)
    )
    return Markup('<svg class="draw" height="{}" role="group" aria-label="{}">{}{}</svg>').format(
        HEIGHT_PX, label, bars, axis
    )


def _spans(batch: Mapping[str, Any]) -> tuple[int, int, int] | None:
    """When a batch began to wait, when it was sent, and when it was written."""
    end = instant(batch["created_at"])
    if end is None or "latencyMs" not in _stats(batch):
        return None
    sent = end - _count(batch, "latencyMs") * MS
    return sent - _count(batch, "waitMs") * MS, sent, end


def _stats(batch: Mapping[str, Any]) -> Mapping[str, Any]:
    stats = batch.get("stats")
    return cast("Mapping[str, Any]", stats) if isinstance(stats, dict) else {}


def _count(batch: Mapping[str, Any], name: str) -> int:
    value = _stats(batch).get(name, 0)
    return value if isinstance(value, int) else 0


def _bar(run_id: str, batch: Mapping[str, Any], first: float, sent: float, end: float) -> Markup:
    failed = batch["status_code"] == "FAILED"
    number = batch["batch_no"]
    said = f"b{number}: waited {_count(batch, 'waitMs')} ms, took {_count(batch, 'latencyMs')} ms"
    throttled = _count(batch, "429Count")
    said += f", {plural(throttled, 'answer')} of 429" if throttled else ""
    hot = Markup('<svg x="{}%" y="{}" overflow="visible"><path class="g-hot" d="M0 -5L5 0L0 5L-5 0z"/></svg>').format(
        sent, ROW_PX + 8
    )
    return Markup(
        '<a href="{}" aria-label="{}"><rect class="g-wait" x="{}%" y="{}" width="{}%" height="4"/>'
        '<rect class="{}" x="{}%" y="{}" width="{}%" height="16"/>{}<title>{}</title></a>'
    ).format(
        link(f"/ingest/batch/{run_id}/{number}"),
        said,
        first,
        ROW_PX + 6,
        round(sent - first, 3),
        "g-bad" if failed else "g-ok",
        sent,
        ROW_PX,
        max(round(end - sent, 3), LEAST_WIDTH),
        hot if throttled else "",
        said,
    )
