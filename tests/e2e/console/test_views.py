"""Every view opens in a real browser: in light, in dark and on a phone, without findings of axe, without a stranger's
markup coming to life."""

import re
from typing import Literal

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect

from tests.e2e.console.world import HOSTILE, World

VIEWS = {
    "overview": "/",
    "alerts": "/alerts",
    "events": "/attribution/events",
    "event-beside-the-list": "/attribution/events?at={decision}",
    "event": "/attribution/event?batch=b-1&event=e-2",
    "closures": "/attribution/closures",
    "closure": "/attribution/closure?key={closure}",
    "settlement": "/attribution/settlement",
    "statements": "/attribution/statements",
    "delivery": "/attribution/archive",
    "rejects": "/attribution/rejects",
    "history": "/attribution/history",
    "apps": "/attribution/apps",
    "board": "/ingest",
    "source": "/ingest/source/atomlike",
    "plans": "/ingest/plans",
    "plan": "/ingest/plan/{plan}",
    "tasks": "/ingest/tasks",
    "task": "/ingest/task/{task}",
    "run": "/ingest/run/{run}",
    "batch": "/ingest/batch/{run}/2",
    "coverage": "/ingest/coverage",
    "cursors": "/ingest/cursors",
    "cursor": "/ingest/cursor?source=atomlike&op=BACKFILL&ns=backfill:atomlike/query:history",
    "rate": "/ingest/rate",
    "quarantine": "/ingest/quarantine",
    "errors": "/ingest/errors",
    "schedules": "/ingest/schedules",
    "flow": "/bus",
    "groups": "/bus/groups",
    "group": "/bus/group/search-index",
    "types": "/bus/types",
    "type": "/bus/type/task.submitted",
    "dead-letters": "/bus/dead-letters",
    "dead-letter": "/bus/dead-letter/search-index/{letter-0}",
    "refusals": "/bus/refusals",
    "webhooks": "/bus/webhooks",
    "films": "/studio",
    "new-film": "/studio/new",
    "film": "/studio/run/{film}",
    "loops": "/loops",
    "outbox": "/outbox",
    "audit": "/audit",
    "settings": "/settings",
    "doctor": "/doctor",
    "story": "/story?key={letter-0}",
    "story-of-a-plan": "/story?key={plan}",
    "story-of-a-closure": "/story?key={closure}",
    "story-of-nothing": "/story?key=no-such-key",
    "story-of-several": "/story?key=c",
    "find": "/story",
    "rule": "/rule?at=f-3-8-19",
    "reasons": "/reasons",
    "keys": "/keys",
    "about": "/about",
    "confirm": "/confirm/bus.replay?group=search-index",
    "preview": "/confirm/bus.discard_all?group=search-index",
    "acts": "/bus/acts",
    "settings-changed": "/settings?origin=set",
}
RULES = {"runOnly": {"type": "tag", "values": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]}}


def address(site: World, name: str) -> str:
    path = VIEWS[name]
    for key, value in site.known.items():
        path = path.replace(f"{{{key}}}", value.replace("|", "%7C"))
    return f"{site.url}/console{path}"


@pytest.mark.parametrize("name", VIEWS)
def test_a_view_opens_fits_a_phone_and_axe_finds_nothing_serious(site: World, looking: Page, name: str):
    """One navigation for all of it: the page is looked at wide, then as narrow as a phone."""
    page = looking
    page.set_viewport_size({"width": 1440, "height": 900})
    answer = page.goto(address(site, name), wait_until="domcontentloaded")
    assert answer is not None
    assert answer.status == 200
    expect(page.locator("h1")).to_have_count(1)
    found = Axe().run(page, options=RULES).response["violations"]
    assert [(one["id"], one["nodes"][0]["html"]) for one in found if one["impact"] in {"serious", "critical"}] == []
    assert page.evaluate("window.pwned") is None
    page.set_viewport_size({"width": 390, "height": 844})
    wider = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    assert (wider, page.locator(".tabbar a").count()) == (0, 6)


def test_on_a_phone_the_open_view_is_in_sight_among_those_of_its_engine(site: World, page: Page):
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto(address(site, "webhooks"))
    expect(page.locator(".subnav [aria-current]")).to_be_in_viewport(ratio=1)


def test_dark_has_enough_contrast(site: World, browser: Browser):
    context = browser.new_context(color_scheme="dark")
    page = context.new_page()
    for name in ("overview", "events", "source", "dead-letter", "film", "confirm"):
        page.goto(address(site, name), wait_until="domcontentloaded")
        assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(21, 24, 28)"
        assert Axe().run(page, options={"runOnly": ["color-contrast"]}).response["violations"] == []
    context.close()


@pytest.mark.parametrize("name", ["overview", "dead-letters", "dead-letter", "quarantine", "errors", "run", "film"])
def test_what_strangers_wrote_is_shown_as_text(site: World, looking: Page, name: str):
    page = looking
    page.goto(address(site, name), wait_until="domcontentloaded")
    expect(page.locator("main")).to_contain_text("<script>window.pwned=1</script>")
    assert page.locator("main script, main img").count() == 0
    assert (
        "49" not in page.locator("main").inner_text().replace(HOSTILE, "")
        or "{{7*7}}" in page.locator("main").inner_text()
    )
    assert page.evaluate("window.pwned") is None


def test_an_unknown_page_says_so_and_keeps_the_search_box(site: World, page: Page):
    answer = page.goto(f"{site.url}/console/nowhere")
    assert answer is not None
    assert answer.status == 404
    expect(page.locator("h1")).to_have_text("There is no such page")
    expect(page.get_by_role("searchbox").or_(page.locator("#q"))).to_be_visible()


def test_the_root_leads_a_browser_to_the_console(site: World, page: Page):
    page.goto(site.url)
    assert page.url == f"{site.url}/console/"
    expect(page.locator("h1")).to_have_text("Three things need a person")


def test_a_line_of_the_overview_leads_to_where_it_is_dealt_with(site: World, page: Page):
    page.goto(f"{site.url}/console/")
    page.get_by_role("link", name="Open dead letters").last.click()
    expect(page.locator("h1")).to_have_text("4 dead letters are open")
    page.wait_for_load_state("load")  # a click on a row needs the scripts
    page.locator("#letters tr", has_text="search-index").first.click()
    expect(page.locator("h1")).to_contain_text(site.known["letter-1"][:8])


def test_the_keyboard_finds_moves_and_opens(site: World, page: Page):
    page.goto(f"{site.url}/console/ingest/plans")
    page.keyboard.press("/")
    expect(page.locator("#q")).to_be_focused()
    page.keyboard.type(site.known["plan"])
    page.keyboard.press("Enter")
    expect(page.locator(".crumbs")).to_contain_text("plan")
    expect(page.get_by_role("link", name="Open its page")).to_be_visible()
    page.goto(f"{site.url}/console/ingest/tasks")
    page.locator("main").focus()
    page.keyboard.press("j")
    page.keyboard.press("j")
    expect(page.locator("#tasks tr").nth(1)).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("h1")).to_contain_text(".t")
    page.keyboard.press("?")
    switch = page.locator("#single-keys")
    switch.click()
    expect(switch).to_have_attribute("aria-pressed", "false")
    page.locator("main").focus()
    page.keyboard.press("/")
    expect(page.locator("#q")).not_to_be_focused()
    switch.click()
    page.locator("main").focus()
    page.keyboard.press("/")
    expect(page.locator("#q")).to_be_focused()


def test_the_entry_of_the_open_view_is_in_sight(site: World, page: Page):
    page.set_viewport_size({"width": 1200, "height": 400})
    page.goto(f"{site.url}/console/doctor")
    expect(page.locator(".nav [aria-current]")).to_be_in_viewport()


def test_a_cause_of_dead_letters_can_be_replayed_on_a_phone(site: World, page: Page):
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto(f"{site.url}/console/bus/dead-letters")
    expect(page.locator("#causes tr").first.get_by_role("link", name="Replay")).to_be_visible()


@pytest.mark.parametrize("rows", ["#causes", "#letters"])
def test_the_acts_of_a_row_are_in_sight_where_the_table_is_wider_than_the_page(site: World, page: Page, rows: str):
    page.set_viewport_size({"width": 1024, "height": 1200})
    page.goto(address(site, "dead-letters"))
    box = page.locator(f".scroll:has({rows})")
    assert box.evaluate("box => box.scrollWidth > box.clientWidth")
    expect(page.locator(f"{rows} .act-cell .btn").last).to_be_in_viewport(ratio=1)


def test_the_theme_is_kept_for_the_next_page(site: World, page: Page):
    page.goto(f"{site.url}/console/")
    page.locator("#theme").click()
    page.goto(f"{site.url}/console/bus")
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"


def test_a_key_is_copied_whole(site: World, page: Page, context):
    context.grant_permissions(["clipboard-read", "clipboard-write"], origin=site.url)
    page.goto(address(site, "dead-letter"))
    page.locator("h1 .copy").click()
    expect(page.locator("#toast")).to_contain_text("Copied")
    assert page.evaluate("navigator.clipboard.readText()") == site.known["letter-0"]


def test_a_view_is_saved_under_a_name_opened_again_and_forgotten(site: World, page: Page):
    """By keyboard and by pointer; a name is text whatever it holds, and a page of a list is not kept."""
    page.goto(f"{site.url}/console/ingest/tasks?status=FAILED&after=")
    page.keyboard.press("g")
    page.keyboard.press("v")
    views = page.get_by_role("dialog", name="Saved views")
    expect(views).to_contain_text("None yet.")
    views.get_by_label("Save this page as").fill(HOSTILE[:60])
    page.keyboard.press("Enter")
    expect(views.get_by_role("link")).to_have_text(HOSTILE[:60])
    page.goto(f"{site.url}/console/bus/dead-letters?group=mail-out&state=all&before=x")
    page.get_by_role("button", name="Views", exact=True).click()
    views.get_by_label("Save this page as").fill("mail that failed")
    views.get_by_role("button", name="Save", exact=True).click()
    expect(views.get_by_role("link")).to_have_count(2)
    page.goto(f"{site.url}/console/")
    page.get_by_role("button", name="Views", exact=True).click()
    views.get_by_role("link", name="mail that failed").click()
    expect(page).to_have_url(f"{site.url}/console/bus/dead-letters?group=mail-out&state=all")
    page.get_by_role("button", name="mail that failed").click()  # the page says which view it is
    views.get_by_role("button", name="Forget mail that failed").click()
    expect(views.get_by_role("link")).to_have_text(HOSTILE[:60])
    page.keyboard.press("Escape")
    expect(views).to_be_hidden()
    assert page.evaluate("window.pwned") is None


@pytest.mark.parametrize(
    "kept",
    ['[{"name":"x","href":"javascript:window.pwned=1"}]', '[{"name":"x","href":"//other.example/console/"}]', "{", "7"],
)
def test_what_else_stands_in_the_storage_is_no_view(site: World, page: Page, kept: str):
    page.goto(f"{site.url}/console/")
    page.evaluate("(text) => localStorage.setItem('patra_views', text)", kept)
    page.reload()
    page.get_by_role("button", name="Views", exact=True).click()
    expect(page.get_by_role("dialog", name="Saved views")).to_contain_text("None yet.")
    expect(page.get_by_role("dialog", name="Saved views").get_by_role("link")).to_have_count(0)


def test_a_view_whose_address_has_a_lone_percent_sign_stops_no_other(site: World, page: Page):
    page.goto(f"{site.url}/console/")
    kept = '[{"name":"odd","href":"/console/bus/dead-letters?group=100%"}]'
    page.evaluate("(text) => localStorage.setItem('patra_views', text)", kept)
    page.reload()
    page.get_by_role("button", name="Views", exact=True).click()
    views = page.get_by_role("dialog", name="Saved views")
    expect(views.get_by_role("link")).to_have_text("odd")
    views.get_by_role("textbox").fill("another")
    views.get_by_role("textbox").press("Enter")
    expect(views.get_by_role("link")).to_have_count(2)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_saved_views_fit_a_phone_and_axe_finds_nothing_serious(
    site: World, browser: Browser, scheme: Literal["light", "dark"]
):
    context = browser.new_context(viewport={"width": 390, "height": 844}, color_scheme=scheme, has_touch=True)
    page = context.new_page()
    page.goto(f"{site.url}/console/bus/dead-letters?group=mail-out")
    page.get_by_label("Choose").first.check()
    page.get_by_role("button", name="Views", exact=True).click()
    page.get_by_label("Save this page as").fill("mail")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_role("dialog").get_by_role("link", name="mail (this one)")).to_be_in_viewport(ratio=1)
    found = Axe().run(page, options=RULES).response["violations"]
    assert [(one["id"], one["nodes"][0]["html"]) for one in found if one["impact"] in {"serious", "critical"}] == []
    assert page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth") == 0
    context.close()


def test_what_fingers_point_at_is_large_enough_where_keys_and_codes_stand_close(site: World, browser: Browser):
    context = browser.new_context(viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True)
    page = context.new_page()
    for name in (
        "story-of-a-closure",
        "story-of-a-plan",
        "event-beside-the-list",
        "rejects",
        "task",
        "dead-letters",
        "film",
    ):
        page.goto(address(site, name), wait_until="domcontentloaded")
        found = Axe().run(page, options={"runOnly": ["target-size"]}).response["violations"]
        assert [(name, node["html"]) for one in found for node in one["nodes"]] == []
    context.close()


def test_keys_go_to_the_next_tab_the_next_window_that_is_not_done_and_back_to_the_newest(site: World, page: Page):
    page.goto(address(site, "dead-letter"))
    page.keyboard.press("v")
    expect(page.get_by_role("navigation", name="Letter").locator("[aria-current]")).to_have_text("Against the contract")
    page.goto(address(site, "source"))
    page.keyboard.press("h")
    expect(page.locator(".strips a:focus")).to_have_attribute("aria-label", re.compile("failed|queued"))
    first = page.evaluate("document.activeElement.getAttribute('aria-label')")
    page.keyboard.press("ArrowRight")
    assert page.evaluate("document.activeElement.getAttribute('aria-label')") != first
    page.keyboard.press("ArrowLeft")
    assert page.evaluate("document.activeElement.getAttribute('aria-label')") == first
    page.goto(address(site, "events") + "?before=3")
    page.keyboard.press("Home")
    page.wait_for_url(lambda url: "before" not in url)


def test_the_queue_is_filtered_by_what_there_is(site: World, page: Page):
    page.goto(f"{site.url}/console/ingest")
    expect(page.locator("#queue tr")).not_to_have_count(0)
    page.get_by_label("Operation").select_option("UPDATE")
    page.get_by_role("button", name="Filter").click()
    expect(page.locator("#content")).to_contain_text("No tasks match operation UPDATE")
    page.get_by_role("link", name="Clear", exact=True).click()
    expect(page.locator("#queue tr")).not_to_have_count(0)
