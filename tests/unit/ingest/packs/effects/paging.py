"""Pagination, Initial, Ordering, Window, Cursor."""

from typing import Any

from patra.ingest.http.client import Outgoing
from tests.support.hostile_provider import Item, Provider, Reply
from tests.unit.ingest.packs.effects.observe import (
    PAGE,
    TOKEN,
    URL,
    Case,
    case,
    checked,
    harvested,
    next_url_request,
    planned,
    record,
    watermark,
)
from tests.unit.ingest.packs.effects.stand_in import HOUR, MINUTE, NOW, T0, Site, as_json, listed, spread

NUMBERED = [Item(T0 + number * MINUTE, str(number), f"Title {number}") for number in range(1, 26)]
BY_ID = {
    "cursor.type": "ID",
    "ordering": {"orderBy": "item_id desc", "stable": True, "monotonic": True},
    "supports": ["HARVEST"],
    "http.queryTemplate": {"size": "${page.size}", "offset": "${page.offset}"},
}


def harvested_again(s: Site) -> None:
    s.trigger(since=None, until=None)


LIST = [{"id": f"r{n:03}", "updated": "2026-03-01T10:00:00Z", "title": ""} for n in range(10)]
TWENTY = spread(20)


def changed(**fields: Any):
    """The first answer of the list has other fields."""

    def script(number: int, sent: Outgoing) -> Reply | None:
        if number > 1:
            return None
        reply = Provider(TWENTY).answer("GET", sent.url.removeprefix("https://api.example.org"), b"")
        return as_json({**listed(reply), **fields})

    return script


def empty_second(number: int, _: Outgoing) -> Reply | None:
    return as_json({"items": [], "total": 20}) if number == 2 else None


def two_pages(number: int, _: Outgoing) -> Reply | None:
    return as_json({"items": LIST[:7] if number == 1 else [], "total": 30})


def dropped_token(number: int, _: Outgoing) -> Reply | None:
    return as_json({"items": LIST, "total": 30}) if number == 1 else None


def same_token(number: int, _: Outgoing) -> Reply | None:
    items = [{**one, "id": f"{number}-{one['id']}"} for one in LIST]
    return as_json({"items": items, "total": 30, "next": "same"}) if number < 4 else as_json({"items": [], "total": 30})


def next_url(number: int, _: Outgoing) -> Reply | None:
    following = "https://api.example.org/other?cursor=2" if number == 1 else None
    return as_json({"items": LIST, "total": 20, "next": following})


def slow_token(number: int, sent: Outgoing) -> Reply | None:
    """The second page is unavailable for so long that the task is put back."""
    return as_json({}, 503, Retry_After="3600") if number == 2 else None


def odd_page(number: int, sent: Outgoing) -> Reply | None:
    """A page with seven records of ten."""
    return as_json({"items": LIST[:7], "total": 17}) if number == 1 else None


LINK = URL | {"path": "/link", "pagination": {"type": "URL", "nextUrlLink": "next", "pageSize": 10}}
NO_LIMIT = {"response.totalPath": None}
FILTERED = {"http.queryTemplate": {"size": "${page.size}", "offset": "${page.offset}"}, "window.supportsUpdatedSince": False, "window.clientFilter": True, "ordering": {"stable": True, "monotonic": True, "orderBy": "updated desc"}}  # fmt: skip
EARLIER = [*(Item(T0 - number * HOUR, f"e{number}", "Early") for number in range(1, 31)), *TWENTY]

RISING = {"http.queryTemplate.from": "${coalesce(page.from, window.from)}", "http.queryTemplate.order": "asc", "ordering": {"ascending": True, "stable": True, "monotonic": True}}  # fmt: skip

CASES: dict[str, Case] = {
    "Initial.offset": case(harvested(), "pagination.initial.offset", 5),
    "Initial.page": case(harvested(), "pagination.initial.page", 2, given=PAGE),
    "Initial.token": case(harvested(), "pagination.initial.token", "c1.0", given=TOKEN),
    "Initial.url": case(harvested(), "pagination.initial.url", "https://api.example.org/url?size=10&from=2026-03-02T00:00:00Z", given=URL),
    "Pagination.type": case(harvested(), "pagination.type", "TIME", given=RISING),
    "Pagination.pageSize": case(harvested(), "pagination.pageSize", 20),
    "Pagination.maxPage": case(harvested(), "pagination.maxPage", 2),
    "Pagination.base1": case(harvested(), "pagination.base1", False, given=PAGE),
    "Pagination.step": case(harvested(script=odd_page), "pagination.step", "REQUESTED", given={"pagination.shortPage": "CONTINUE", "response.totalPath": None}),
    "Pagination.nextTokenPath": case(harvested(), "pagination.nextTokenPath", "$.nothing", given=TOKEN),
    "Pagination.nextTokenParam": case(harvested(script=changed(next="https://api.example.org/x?token=c1.10")), "pagination.nextTokenParam", "token", given=TOKEN),
    "Pagination.nextUrlPath": case(harvested(script=next_url), "pagination.nextUrlPath", "$.nothing", given=URL),
    "Pagination.nextUrlLink": case(harvested(), "pagination.nextUrlLink", "prev", given=LINK),
    "Pagination.carryQuery": case(next_url_request, "pagination.carryQuery", True, given=URL),
    "Pagination.pinPath": case(next_url_request, "pagination.pinPath", True, given=URL),
    "Pagination.emptyPage": case(harvested(script=empty_second), "pagination.emptyPage", "PROBE", given=NO_LIMIT),
    "Pagination.shortPage": case(harvested(script=two_pages), "pagination.shortPage", "END", given=NO_LIMIT),
    "Pagination.total": case(harvested(script=lambda n, _: as_json({"items": LIST if n == 1 else [], "total": 50})), "pagination.total", "NONE"),
    "Pagination.totalTolerance": case(harvested(script=lambda n, _: as_json({"items": LIST[:10] if n == 1 else [], "total": 11})), "pagination.totalTolerance", 0.5, given={"pagination.total": "ESTIMATE"}),
    "Pagination.verify": case(harvested(), "pagination.verify", "TWICE", given=NO_LIMIT),
    "Pagination.repeatedToken": case(harvested(script=same_token), "pagination.repeatedToken", "END", given=TOKEN | NO_LIMIT),
    "Pagination.lastPageProbe": case(harvested(script=dropped_token), "pagination.lastPageProbe", True, given=TOKEN | NO_LIMIT),
    "Pagination.tokenTtl": case(harvested(script=slow_token), "pagination.tokenTtl", "PT5M", given=TOKEN | {"retry": {"maxAttempts": 1}}),
    "Pagination.bridgeToTime": case(harvested(), "pagination.bridgeToTime", False, given={"pagination.maxPage": 2}),
    "Ordering.orderBy": case(harvested(items=EARLIER), "ordering.orderBy", "title desc", given=FILTERED),
    "Ordering.monotonic": case(planned(), "ordering.monotonic", False, given=FILTERED),
    "Ordering.ascending": case(harvested(), "ordering.ascending", True, given={"pagination.maxPage": 2, "http.queryTemplate.order": "asc"} | NO_LIMIT),
    "Ordering.stable": case(harvested(items=spread(25)), "ordering.stable", False),
    "Ordering.asOf": case(harvested(items=spread(25)), "ordering.asOf", True, given={"ordering.stable": False}),
    "Ordering.rereadLastPage": case(harvested(items=spread(25)), "ordering.rereadLastPage", True),
    "Window.supportsUpdatedSince": case(planned(), "window.supportsUpdatedSince", False, given={"window.clientFilter": True, "ordering.monotonic": True}),
    "Window.clientFilter": case(harvested(items=EARLIER), "window.clientFilter", True, given={"http.queryTemplate": {"x": "${window.from}", "size": "${page.size}", "offset": "${page.offset}"}}),
    "Window.safetyLag": case(planned(until=None), "window.safetyLag", "PT5H"),
    "Window.minWindow": case(planned(estimate=100), "window.minWindow", "PT12H", given={"planning": {"maxPagesPerSlice": 1}}),
    "Window.maxWindow": case(planned(), "window.maxWindow", "PT12H"),
    "Window.align": case(planned(since=T0 + 10 * MINUTE), "window.align", "hour", given={"window.minWindow": "PT1H"}),
    "Window.watermarkKey": case(watermark, "window.watermarkKey", "changed"),
    "Window.substituteKey": case(record({"updated": None, "made": "2026-03-01"}), "window.substituteKey", "made", given={"response.updatedAtPath": "", "response.onEqual": "CONTENT", "response.updateTime": "NONE", "output.fields.made": "$.made", "ordering.monotonic": True}),
    "Window.initial": case(planned(since=None), "window.initial", "2026-03-01T12:00:00Z"),
    "Window.overshoot": case(planned(until=NOW + HOUR), "window.overshoot", "REJECT"),
    "Window.sourceTimezone": case(record({"updated": "2026-03-01T10:00:00"}), "window.sourceTimezone", "America/New_York"),
    "Window.bounds": case(harvested(), "window.bounds", "inclusive", given={"window.precision": "second"}),
    "Window.precision": case(harvested(until=T0 + 5 * HOUR), "window.precision", "second", given={"window.bounds": "inclusive", "window.precision": "day"}),
    "Cursor.type": case(watermark, "cursor.type", "ID", given=BY_ID | {"cursor.type": None, "http.queryTemplate.from": "${window.from}"}),
    "Cursor.scope": case(watermark, "cursor.scope", "GLOBAL"),
    "Cursor.direction": case(checked, "cursor.direction", "BACKFILL"),
    "Cursor.key": case(watermark, "cursor.key", "mine"),
    "Cursor.revision": case(watermark, "cursor.revision", 2),
    "Cursor.overlap": case(harvested(items=NUMBERED, since=None, until=None, then=harvested_again), "cursor.overlap", 15, given=BY_ID),
}  # fmt: skip
