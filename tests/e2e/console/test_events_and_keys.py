"""The way of an event beside the list, closures by deadline, times in another zone, and what single keys do."""

import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest
from playwright.sync_api import Browser, Page, expect

from patra.kernel.clock import HOUR, format_instant
from tests.e2e.console.test_live import message, opened
from tests.e2e.console.world import TOKENS, World, world
from tests.unit.attribution import said

STEPS = ["Envelope", *(f"Check {number}" for number in range(1, 7)), "Dedup", "Owner", "Closure", "Facts", "Archive"]


@pytest.fixture
def abroad(browser: Browser) -> Iterator[Page]:
    """A page of a browser whose zone is nine hours ahead of UTC."""
    context = browser.new_context(viewport={"width": 1440, "height": 900}, timezone_id="Asia/Tokyo")
    yield context.new_page()
    context.close()


def test_a_row_of_the_list_shows_the_way_of_its_event_beside_it(site: World, page: Page):
    page.goto(f"{site.url}/console/attribution/events")
    page.locator("#events tr", has_text="impression").filter(has_text="accepted").first.get_by_role(
        "link"
    ).first.click()
    inspector = page.locator("#inspector")
    names = [
        text.partition(" passed")[0].partition(" not reached")[0] for text in inspector.locator("b").all_inner_texts()
    ]
    assert [name.split("\n")[0].strip() for name in names][: len(STEPS)] == STEPS
    expect(inspector).to_contain_text("open → closed_success")
    expect(inspector.get_by_role("img", name="It is closed_success, by impression")).to_be_visible()
    page.keyboard.press("Escape")
    expect(inspector).to_be_hidden()


def test_a_rejected_event_shows_the_check_that_failed_and_none_behind_it(site: World, page: Page):
    page.goto(f"{site.url}/console/attribution/events?answer=rejected")
    expect(page.locator("#events tr")).to_have_count(2)
    page.locator("#events tr", has_text="f_event_missing_required").get_by_role("link").first.click()
    ladder = page.locator("#inspector .ladder li")
    expect(ladder.filter(has_text="Check 2").locator(".ic.bad")).to_have_count(1)
    expect(ladder.filter(has_text="creativeId: expected text")).to_have_count(1)
    expect(page.locator("#inspector .ladder li.later")).to_have_count(8)


def test_open_closures_stand_by_their_deadline_with_a_chart_of_what_is_due(acting: World, page: Page):
    page.goto(f"{acting.url}/console/attribution/closures")
    times = page.locator("#closures tr td[data-label=Deadline] time")
    found = [str(times.nth(n).get_attribute("datetime")) for n in range(times.count())]
    assert found == sorted(found)
    assert len(found) >= 4
    expect(page.get_by_role("img", name=re.compile("closures due in the next 2 min"))).to_be_visible()
    expect(page.locator("h1")).to_have_text(f"{len(found)} closures are open")
    expect(page.locator(".hist")).to_contain_text("0 overdue")


def test_more_new_rows_than_a_page_holds_are_said_to_be_more(tmp_path: Path, page: Page):
    """In a world of its own: the lists of the others stay short."""
    with world(tmp_path) as made:
        opened(page, f"{made.url}/console/attribution/events")
        with message(page):
            for number in range(2):
                link = {"responseReference": f"many-{number}", "renderAttemptId": "ra"}
                made.send_events(
                    f"b-many-{number}", *(said.event("interaction", f"m-{number}-{n}", **link) for n in range(60))
                )
        expect(page.locator("#newrows")).to_contain_text("50 new rows or more")


def test_times_change_their_zone_and_keep_it_through_live_updates(acting: World, abroad: Page):
    opened(abroad, f"{acting.url}/console/bus/groups")
    opened(abroad, f"{acting.url}/console/attribution/events")
    first = abroad.locator("#events time").first
    shown, exact = first.inner_text().split()[-1], str(first.get_attribute("datetime"))
    assert shown == exact[11:23]  # many are decided in one second
    abroad.keyboard.press("g")
    abroad.keyboard.press("z")
    expect(abroad.locator("#zone")).to_have_text("Asia/Tokyo")
    assert int(first.inner_text().split()[-1][:2]) == (int(shown[:2]) + 9) % 24
    assert first.inner_text().endswith(exact[19:23])
    assert "UTC" in str(first.get_attribute("title"))
    with message(abroad):
        acting.send_events("b-zone", said.event("ad_filled", "z-1", responseReference="zone"))
    assert int(first.inner_text().split()[-1][:2]) == (int(shown[:2]) + 9) % 24


def test_axes_of_time_and_spans_change_their_zone_as_the_rows_do(site: World, abroad: Page):
    first = format_instant(site.clock.now() - HOUR)
    abroad.goto(f"{site.url}/console/attribution/rejects?from={first}")
    axis, chip = abroad.locator(".axis time").first, abroad.locator(".fchip time").first
    for shown in (axis, chip):  # with the day before midnight
        assert shown.inner_text().split()[-1] == first[11:19]
    abroad.keyboard.press("g")
    abroad.keyboard.press("z")
    expect(abroad.locator("#zone")).to_have_text("Asia/Tokyo")
    for shown in (axis, chip):
        assert int(shown.inner_text().split()[-1][:2]) == (int(first[11:13]) + 9) % 24
    abroad.goto(f"{site.url}/console/story?key={quote(site.known['run'])}")
    tick = abroad.locator("tspan[data-at]").first
    at = str(tick.get_attribute("data-at"))
    assert int((tick.text_content() or "").split()[-1][:2]) == (int(at[11:13]) + 9) % 24


def test_escape_closes_what_lies_on_top_and_home_goes_to_the_top(site: World, page: Page):
    page.goto(f"{site.url}/console/attribution/events?at={site.known['decision']}")
    page.evaluate('localStorage.setItem(\'patra_views\', \'[{"name":"mine","href":"/console/outbox"}]\')')
    page.reload()
    page.keyboard.press("g")
    page.keyboard.press("v")
    views = page.get_by_role("dialog", name="Saved views")
    expect(views.get_by_role("link", name="mine")).to_be_focused()
    page.keyboard.press("Escape")
    expect(views).to_be_hidden()
    expect(page.locator("#inspector")).to_be_visible()
    page.goto(f"{site.url}/console/reasons")
    page.keyboard.press("End")
    page.wait_for_function("() => scrollY > 0")
    page.keyboard.press("Home")
    page.wait_for_function("() => scrollY === 0")


def test_rows_that_all_changed_hide_none_where_the_list_has_no_other_page(site: World, page: Page):
    page.goto(f"{site.url}/console/bus/dead-letters?group=search-index")
    swapped = (
        "arranged(document.querySelector('#content').innerHTML.replaceAll('data-key=\"', 'data-key=\"other '), {})"
    )
    page.evaluate(f"() => {{ {swapped}; }}")
    expect(page.locator("#newrows button")).to_have_text(re.compile(r"^\d new rows$"))


def test_keys_lead_to_filters_problems_and_the_first_thing_that_needs_a_person(site: World, page: Page):
    page.goto(f"{site.url}/console/attribution/events")
    page.keyboard.press("f")
    expect(page.get_by_label("App")).to_be_focused()
    page.goto(f"{site.url}/console/story?key={site.known['letter-0']}&kind=bus.event_id")
    page.keyboard.press("n")
    assert page.evaluate("document.activeElement.closest('#story-entries') !== null")
    page.keyboard.press("e")
    assert page.evaluate("[...document.querySelectorAll('#story-entries details')].every((one) => one.open)")
    page.goto(f"{site.url}/console/")
    page.keyboard.press("1")
    page.wait_for_url(re.compile(r"/console/.+"))


def test_a_viewer_is_not_shown_views_that_are_not_for_viewers(guarded: World, page: Page):
    page.goto(f"{guarded.url}/console/")
    page.get_by_label("Token").fill(TOKENS["viewer"])
    page.keyboard.press("Enter")
    expect(page.get_by_role("navigation", name="Console").get_by_role("link", name="Loops")).to_have_count(1)
    for name in ("Audit", "New film"):
        expect(page.get_by_role("navigation", name="Console").get_by_role("link", name=name)).to_have_count(0)


def test_the_queue_draws_the_last_windows_of_each_row_and_says_what_share_failed(site: World, page: Page):
    page.goto(f"{site.url}/console/ingest")
    row = page.locator("#queue tr", has_text="BACKFILL").first
    expect(row.locator('svg[role="group"]')).to_have_attribute("aria-label", re.compile(r"BACKFILL query, \d+ window"))
    row.locator('svg[role="group"] a').first.focus()
    expect(page.locator('#queue a[href*="status=FAILED"]').first).to_have_text(re.compile(r"^1, \d+\.\d %$"))
    page.keyboard.press("Enter")  # of the link, not of its row
    expect(page).to_have_url(re.compile("/console/ingest/task/"))


def test_the_length_of_a_chapter_is_counted_as_it_is_typed_and_too_much_is_not_sent(site: World, page: Page):
    page.goto(f"{site.url}/console/studio/new")
    expect(page.locator("[data-length]")).to_contain_text("At most 200,000 characters")
    field = page.locator("textarea[name=chapter]")
    field.fill("Two cats \U0001f408.")
    expect(page.locator("[data-length]")).to_have_text("11 of at most 200,000 characters")
    field.fill("x" * 200_001)
    expect(page.locator("[data-length]")).to_have_class(re.compile("wrong"))
    page.get_by_role("button", name="Make the film").click()
    expect(page).to_have_url(re.compile("/studio/new$"))


def test_a_span_of_rejects_is_taken_with_the_keyboard_and_goes_along_to_the_dead_letters(site: World, page: Page):
    page.goto(f"{site.url}/console/attribution/rejects")
    expect(page.locator("#causes tr")).to_have_count(2)
    brush = page.get_by_role("slider", name=re.compile("the rejects"))
    brush.focus()
    page.keyboard.press("Home")
    page.keyboard.press("Shift+ArrowRight")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(r"/rejects\?from=[^&]+&to="))
    span = page.url.partition("?")[2]
    letters = page.get_by_role("navigation", name="Console").get_by_role("link", name="Dead letters")
    expect(letters).to_have_attribute("href", re.compile("[?&]from="))
    page.get_by_role("navigation", name="Console").get_by_role("link", name="Events").click()
    expect(page).to_have_url(re.compile(r"/events\?" + re.escape(span).replace("%3A", "(%3A|:)")))
    expect(page.get_by_label("Remove the filter time")).to_be_visible()
