"""The navigation takes the span of a list along to the other lists that have one."""

from typing import Any

from patra.web.console.navigation import navigation

SPAN = {"from": "2026-11-01T00:00:00Z", "to": "2026-11-02T00:00:00Z"}


def hrefs(current: str, query: dict[str, str]) -> dict[str, str]:
    found: dict[str, Any] = navigation({}, current, lambda _method, _template: True, query)
    return {entry.path: entry.href_with(found["span"]) for _, entries in found["sections"] for entry in entries}


def test_a_span_goes_along_to_lists_that_have_one_and_nowhere_else() -> None:
    taken = hrefs("/attribution/events", {**SPAN, "app": "shop", "before": "7"})
    assert taken["/bus/dead-letters"] == (
        "/console/bus/dead-letters?from=2026-11-01T00%3A00%3A00Z&to=2026-11-02T00%3A00%3A00Z"
    )
    assert taken["/loops"] == "/console/loops"
    assert {path for path, href in taken.items() if "from=" in href} == {
        "/attribution/events",
        "/attribution/settlement",
        "/attribution/rejects",
        "/attribution/history",
        "/bus/dead-letters",
    }


def test_what_another_view_means_by_from_and_a_span_without_a_beginning_stay_there() -> None:
    assert not [href for href in hrefs("/ingest", SPAN).values() if "?" in href]
    assert not [href for href in hrefs("/attribution/events", {"from": "", "to": SPAN["to"]}).values() if "?" in href]
