"""The bus on its pages: who sends what how fast, and a letter that breaks its contract, field by field."""

import re
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Browser, Page, expect

from patra.kernel.clock import SECOND, format_instant
from patra.kernel.db.queries import statement
from patra.web.console.markup.formats import instant
from tests.e2e.console.world import TOKENS, World

BREAK = statement(
    "break",
    """UPDATE bus_dead_letter SET envelope =
      replace(replace(envelope, '"requested_quality"', '"quality"'), '"zh-CN"', '"?"')
    WHERE event_id = :id""",
)

OTHER_TENANT = statement("move", "UPDATE bus_dead_letter SET tenant_id = 'other' WHERE event_id = :id")


def test_what_was_published_lately_is_drawn_and_counted(site: World, page: Page):
    found = {one["type"]: one for one in site.get("/bus/flow")["types"]}
    assert found["task.submitted"]["events"] == 4
    assert found["task.submitted"]["per_minute"] == 0.8
    assert {"search-index", "mail-out"} <= set(found["task.submitted"]["readers"])
    assert found["job.failed"]["events"] == 0
    page.goto(f"{site.url}/console/bus")
    drawing = page.locator("svg.flowgraph")
    expect(drawing).to_contain_text("task.submitted")
    expect(drawing).to_contain_text("search-index")
    expect(drawing).not_to_contain_text("job.failed")
    expect(page.locator("#flow tr", has_text="task.submitted")).to_contain_text("0.8")
    drawing.get_by_text("task.submitted").click()
    expect(page.locator("h1")).to_contain_text("task.submitted")


def test_a_letter_that_breaks_its_contract_is_shown_field_by_field(acting: World, page: Page):
    letter = acting.known["letter-1"]
    acting.patra.db.run(lambda tx: tx.execute(BREAK, {"id": letter}))
    page.goto(f"{acting.url}/console/bus/dead-letter/search-index/{letter}")
    rows = page.locator("#differences tr")
    expect(rows.filter(has_text="/language_context/source_language")).to_contain_text("breaks a rule")
    expect(rows.filter(has_text="/requested_quality")).to_contain_text("is missing")
    expect(rows.filter(has_text="/requested_quality")).to_contain_text("draft | standard | high, required")
    expect(rows.filter(has_text="/quality")).to_contain_text("is not in the contract")


def test_a_letter_stands_beside_the_last_event_that_was_handled(site: World, page: Page):
    """The first thing shown of a letter whose payload keeps its contract: what differs, and what all letters share."""
    page.goto(f"{site.url}/console/bus/dead-letter/search-index/{site.known['letter-0']}")
    expect(page.get_by_role("navigation", name="Letter").locator("[aria-current]")).to_have_text(
        "Against the last handled"
    )
    shared = page.locator("#shared tr")
    expect(shared).to_have_count(1)
    expect(shared).to_contain_text("/chapter/title")
    expect(shared).to_contain_text("window.pwned")
    beside = page.locator("table.diff")
    expect(beside.locator("tr", has_text='"title"').locator("td.del").last).to_contain_text("window.pwned")
    expect(beside.locator("tr", has_text="task-0").locator("td.add").last).to_contain_text("task-2")
    expect(beside).to_contain_text("equal lines")
    expect(page.locator("section .key", has_text=site.known["letter-2"][-4:])).to_be_visible()


def test_a_letter_of_a_group_that_handled_nothing_says_so(guarded: World, page: Page):
    """Another tenant's letter: what others sent is not shown beside it."""
    page.goto(f"{guarded.url}/console/login?next=/console/bus/dead-letters")
    page.get_by_label("Token").fill(TOKENS["viewer"])
    page.get_by_role("button", name="Sign in").click()
    expect(page.locator("h1")).to_contain_text("dead letters are open")
    letter = guarded.known["letter-1"]
    guarded.patra.db.run(lambda tx: tx.execute(OTHER_TENANT, {"id": letter}))
    page.goto(f"{guarded.url}/console/bus/dead-letter/mail-out/{letter}?tab=handled")
    expect(page.locator("#content")).to_contain_text("there is nothing to hold this one against")
    expect(page.locator("table.diff")).to_have_count(0)


def _instants(site: World) -> list[int]:
    """When the letters of a group failed last, the earliest first."""
    found = site.get("/bus/dead-letters?group=search-index")["dead_letters"]
    return sorted(instant(one["last_failed_at"]) or 0 for one in found)


def test_a_span_is_taken_by_dragging_moved_by_keys_and_dropped(site: World, page: Page):
    early, late = _instants(site)
    page.goto(f"{site.url}/console/bus/dead-letters?group=search-index")
    brush = page.get_by_role("slider")
    expect(page.locator("#letters tr")).to_have_count(2)
    box = brush.bounding_box()
    assert box is not None
    begin, end = (instant(brush.get_attribute(f"data-{name}") or "") or 0 for name in ("begin", "end"))

    def place(at: int) -> float:
        return box["x"] + box["width"] * (at - begin) / (end - begin)

    half = (late - early) // 2
    page.mouse.move(place(early - half), box["y"] + 20)
    page.mouse.down()
    page.mouse.move(place(early + half), box["y"] + 20, steps=4)
    expect(brush.locator(".brush-text")).to_contain_text("let go to show it")
    page.mouse.up()
    expect(page.locator(".fchip", has_text="time")).to_be_visible()
    expect(page.locator("#letters tr")).to_have_count(1)
    taken = parse_qs(urlsplit(page.url).query)
    assert (instant(taken["from"][0]) or 0) <= early < (instant(taken["to"][0]) or 0) <= late
    assert taken["group"] == ["search-index"]
    page.keyboard.press("[")
    expect(page.locator("#content")).to_contain_text("No dead letters match")
    page.keyboard.press("]")
    expect(page.locator("#letters tr")).to_have_count(1)
    page.get_by_label("Remove the filter time").click()
    expect(page.locator("#letters tr")).to_have_count(2)


def test_a_span_is_taken_with_the_keyboard_and_said_and_left(site: World, page: Page):
    page.goto(f"{site.url}/console/bus/dead-letters?group=search-index")
    brush = page.get_by_role("slider")
    brush.focus()
    page.keyboard.press("End")
    page.keyboard.press("Escape")
    expect(brush).to_have_attribute("aria-valuetext", "no span is taken")
    page.keyboard.press("Home")
    for _ in range(3):
        page.keyboard.press("Shift+ArrowRight")
    expect(brush).to_have_attribute("aria-valuenow", "3")
    expect(brush).to_have_attribute("aria-valuetext", re.compile(r"UTC to .*UTC"))
    page.keyboard.press("Enter")
    expect(page.locator(".fchip", has_text="time")).to_be_visible()
    begin, end = (instant(text) or 0 for text in (parse_qs(urlsplit(page.url).query)[one][0] for one in ("from", "to")))
    assert 39 * SECOND < end - begin < 41 * SECOND  # four of sixty parts of ten minutes


@pytest.mark.parametrize("path", ["/attribution/events?answer=rejected", "/ingest/source/atomlike"])
def test_the_other_axes_of_time_give_a_span_too(site: World, page: Page, path: str):
    page.goto(f"{site.url}/console{path}")
    page.get_by_role("slider").focus()
    page.keyboard.press("Home")
    page.keyboard.press("Enter")
    page.wait_for_url("**from=*")
    expect(page.locator("[data-to=earlier]")).to_be_visible()
    assert path.partition("?")[2] in page.url


def test_a_span_without_script_is_typed(site: World, browser: Browser):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    early, late = _instants(site)
    page.goto(f"{site.url}/console/bus/dead-letters?group=search-index")
    page.locator("summary", has_text="Span of time").click()
    page.get_by_label("From").fill(format_instant(early + 1))
    page.get_by_label("To, not included").fill(format_instant(late + 1))
    page.get_by_role("button", name="Show").click()
    expect(page.locator("#letters tr")).to_have_count(1)
    expect(page.locator(".fchip", has_text="search-index")).to_be_visible()
    context.close()
