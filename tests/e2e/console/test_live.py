"""Live pages: news arrive, rows wait behind a button, pause holds, a restart of the server is survived."""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from playwright.sync_api import Page, Route, expect

from tests.e2e.console.world import World
from tests.unit.attribution import said

COUNT_MESSAGES = """window.messages = 0;
document.addEventListener('htmx:sse:before:message', (event) => { if (!event.detail.message.event) window.messages++; });"""


def opened(page: Page, address: str) -> None:
    """Open a live page and wait for its first message, so that the next one is news."""
    page.add_init_script(COUNT_MESSAGES)
    page.goto(address)
    page.wait_for_function("() => window.messages >= 1")


@contextmanager
def message(page: Page) -> Iterator[None]:
    """Wait for the message that follows what is done."""
    seen = page.evaluate("window.messages")
    yield
    page.wait_for_function("(seen) => window.messages > seen", arg=seen)


def test_a_state_changes_on_the_open_page(acting: World, page: Page):
    page.goto(f"{acting.url}/console/bus/groups")
    row = page.locator("tr", has_text="gateway")
    expect(row).to_contain_text("active")
    acting.post("/bus/groups/gateway/pause", {})
    expect(row).to_contain_text("paused")


def test_a_page_is_live_however_late_its_scripts_come(site: World, page: Page):
    held: list[Route] = []
    page.route("**/hx-sse-*", lambda route: held.append(route))  # noqa: PLW0108  playwright looks into a Python function
    page.goto(f"{site.url}/console/bus/groups", wait_until="commit")
    page.wait_for_function("() => window.htmx !== undefined")
    page.evaluate("() => new Promise((done) => setTimeout(() => setTimeout(done)))")
    with page.expect_response(lambda answer: "/console/live" in answer.url) as answer:
        held[0].continue_()
    assert answer.value.status == 200


def test_new_rows_wait_behind_a_button(acting: World, page: Page):
    page.goto(f"{acting.url}/console/attribution/events")
    rows = page.locator("#events tr")
    before = rows.count()
    first = rows.first.get_attribute("data-key")
    place = rows.first.bounding_box()
    acting.send_events("b-new", said.event("ad_filled", "n-1", responseReference="new"))
    pill = page.locator("#newrows button")
    expect(pill).to_have_text("1 new row")
    assert rows.first.bounding_box() == place  # nothing moves under the hand
    assert rows.count() == before
    assert rows.first.get_attribute("data-key") == first
    pill.click()
    expect(rows).to_have_count(before + 1)
    expect(rows.first).to_contain_text("n-1")


def test_pause_holds_until_it_is_ended(acting: World, page: Page):
    opened(page, f"{acting.url}/console/bus/groups")
    row = page.locator("tr", has_text="planner")
    page.keyboard.press("p")
    expect(page.locator("#live")).to_have_attribute("aria-pressed", "false")
    with message(page):
        acting.post("/bus/groups/planner/pause", {})
    expect(row).to_contain_text("active")
    page.keyboard.press("p")
    expect(row).to_contain_text("paused")


def test_a_restart_of_the_server_is_survived(acting: World, page: Page):
    row = page.locator("tr", has_text="model-router")
    with page.expect_response(lambda answer: "/console/live" in answer.url):
        page.goto(f"{acting.url}/console/bus/groups")
    port = int(acting.url.rpartition(":")[2])
    acting.stop()
    try:
        expect(page.locator("#stale")).to_be_visible()
    finally:
        acting.serve(port)  # for the tests that follow
    acting.post("/bus/groups/model-router/pause", {})
    expect(row).to_contain_text("paused")
    expect(page.locator("#stale")).to_be_hidden()


@pytest.mark.parametrize(
    ("refuse", "says"),
    [
        (lambda route: route.abort(), "the server does not answer"),
        (lambda route: route.fulfill(status=503, body="no"), "no stream left"),
    ],
    ids=["not reached", "no stream left"],
)
def test_a_page_whose_first_connection_fails_keeps_what_it_shows_and_tries_again(
    acting: World, page: Page, refuse: Callable[[Route], None], says: str
):
    page.route(re.compile("/console/live"), refuse, times=1)
    with page.expect_response(lambda answer: "/console/live" in answer.url and answer.status == 200):
        page.goto(f"{acting.url}/console/bus/groups")
        expect(page.locator("#stale")).to_contain_text(says)
        expect(page.locator("tr", has_text="planner")).to_be_visible()
    expect(page.locator("#stale")).to_be_hidden()


def test_an_open_dialog_is_not_taken_away(acting: World, page: Page):
    opened(page, f"{acting.url}/console/bus/groups")
    page.locator("tr", has_text="observer").get_by_role("link", name="Pause…").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_be_visible()
    with message(page):
        acting.post("/bus/groups/composer/pause", {})
    expect(dialog).to_be_visible()
    dialog.get_by_role("button", name="Not now").click()
    expect(dialog).to_be_hidden()


def test_what_came_while_a_dialog_was_open_is_shown_when_it_is_closed(acting: World, page: Page):
    opened(page, f"{acting.url}/console/bus/groups")
    page.locator("tr", has_text="observer").get_by_role("link", name="Pause…").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_be_visible()
    with message(page):
        acting.post("/bus/groups/mail-out/pause", {})
    row = page.locator("tr", has_text="mail-out")
    expect(row).to_contain_text("active")
    page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()
    expect(row).to_contain_text("paused")


def test_a_press_that_opens_a_context_menu_does_not_hold_the_page(acting: World, page: Page):
    """The menu may swallow the release."""
    opened(page, f"{acting.url}/console/bus/groups")
    row = page.locator("tr", has_text="worker-hub")
    row.locator("td").first.hover()
    page.mouse.down(button="right")
    acting.post("/bus/groups/worker-hub/pause", {})
    expect(row).to_contain_text("paused")
    acting.post("/bus/groups/worker-hub/resume", {})  # for the tests that follow


def test_a_press_holds_the_page_until_the_pointer_is_taken_elsewhere(acting: World, page: Page):
    opened(page, f"{acting.url}/console/bus/groups")
    row = page.locator("tr", has_text="worker-hub")
    page.locator("h1").hover()
    act, shown, following = "pause", "active", "paused"
    for elsewhere in ("window blur", "document visibilitychange", "document pointercancel", "document contextmenu"):
        target, _, event = elsewhere.partition(" ")
        page.mouse.down()
        with message(page):
            acting.post(f"/bus/groups/worker-hub/{act}", {})
        expect(row).to_contain_text(shown)
        page.evaluate(f"{target}.dispatchEvent(new Event('{event}'))")
        expect(row, elsewhere).to_contain_text(following)
        page.mouse.up()
        act, shown, following = "resume" if act == "pause" else "pause", following, shown


def test_a_second_press_is_not_ended_by_the_release_of_the_first(acting: World, page: Page):
    """A busy page handles a release late: the next press may come before it."""
    opened(page, f"{acting.url}/console/bus/groups")
    row = page.locator("tr", has_text="worker-hub")
    row.locator("td").first.evaluate("""(cell) => {
      for (const type of ["pointerdown", "pointerup", "pointerdown"]) cell.dispatchEvent(new PointerEvent(type, { bubbles: true }));
    }""")
    with message(page):
        acting.post("/bus/groups/worker-hub/pause", {})
    expect(row).to_contain_text("active")
    page.evaluate("document.dispatchEvent(new Event('pointerup'))")
    expect(row).to_contain_text("paused")
    acting.post("/bus/groups/worker-hub/resume", {})  # for the tests that follow


def test_news_take_nothing_out_of_the_hand(acting: World, page: Page):
    """What is typed, opened and focused stays; and the navigation counts with the page."""
    frozen = page.locator("[data-count=frozen]")
    opened(page, f"{acting.url}/console/ingest/task/{acting.known['queued']}")
    page.locator("summary").first.click()
    with message(page):
        acting.post("/bus/types/job.claimed/freeze", {"reason": "a bad release"})
    expect(frozen).to_be_visible()
    expect(page.locator("details").first).to_have_attribute("open", "")
    opened(page, f"{acting.url}/console/ingest/tasks")
    field, row = page.locator("[name=plan]"), page.locator("#tasks tr").nth(1)
    field.press_sequentially("pl")
    before = frozen.inner_text()
    with message(page):
        acting.post("/bus/types/job.claimed/thaw", {})
    expect(frozen).not_to_have_text(before)
    field.press_sequentially("an")
    expect(field).to_have_value("plan")
    row.focus()
    with message(page):
        acting.post("/bus/types/job.claimed/freeze", {"reason": "a bad release"})
    expect(row).to_be_focused()


@pytest.mark.parametrize(
    ("refuse", "says"),
    [
        (lambda route: route.abort(), "The server does not answer"),
        (lambda route: route.fulfill(status=502, body="<h1>Bad gateway</h1>"), "The server answered 502"),
    ],
    ids=["not reached", "a proxy answers"],
)
def test_a_dialog_that_cannot_be_loaded_says_so_and_can_be_tried_again(
    site: World, page: Page, refuse: Callable[[Route], None], says: str
):
    page.route(re.compile("/console/confirm/"), refuse, times=1)
    page.goto(f"{site.url}/console/bus/groups")
    page.locator("tr", has_text="search-index").get_by_role("link", name="Pause…").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.locator("h2")).to_have_text(says)
    expect(dialog).to_contain_text("Nothing was done.")
    dialog.get_by_role("button", name="Try again").click()
    expect(dialog.locator("h2")).to_have_text("Pause the group search-index")
