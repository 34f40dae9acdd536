"""What operators do in the browser: asked once more, done once, written into the audit; refused to those who may not."""

import re

import urllib3
from playwright.sync_api import Browser, Locator, Page, expect

from patra.kernel.clock import DAY, SECOND, format_instant
from patra.kernel.db.queries import statement
from tests.e2e.console.test_views import VIEWS, address
from tests.e2e.console.world import TOKENS, World
from tests.unit.app.test_outbox_admin import refuse

TOUCH = statement("touch", "UPDATE bus_dead_letter SET attempts = 91 WHERE group_name = 'search-index'")
REOPEN = statement(
    "reopen",
    "UPDATE bus_dead_letter SET state = 'open', closed_by = NULL, closed_at = NULL, close_reason = NULL"
    " WHERE group_name = 'search-index'",
)
FAIL_ALL = statement("fail_all", "UPDATE ing_task SET status_code = 'FAILED' WHERE status_code = 'QUEUED'")


def sign_in(page: Page, world: World, role: str, path: str = "/") -> None:
    page.goto(f"{world.url}/console{path}")
    page.get_by_label("Token").fill(TOKENS[role])
    page.get_by_role("button", name="Sign in").click()


def ask(link: Locator) -> Locator:
    """The dialog that a click opens; without its scripts, a page that is still being loaded leads to a page instead."""
    link.page.wait_for_load_state("load")
    link.click()
    return link.page.get_by_role("dialog")


def test_a_source_is_paused_and_resumed_in_a_dialog(acting: World, page: Page):
    page.goto(f"{acting.url}/console/ingest")
    dialog = ask(page.get_by_role("link", name="Pause…"))
    expect(dialog).to_contain_text("Nothing new is planned or begun")
    dialog.get_by_label("Why").fill("maintenance")
    dialog.get_by_role("button", name="Pause").click()
    expect(page.locator(".banner")).to_contain_text("atomlike / query is paused.")
    ask(page.get_by_role("link", name="Resume…")).get_by_role("button", name="Resume").click()
    expect(page.locator(".banner")).to_contain_text("atomlike / query goes on.")
    assert acting.audit()[:2] == [
        ("local", "ingest.resume", "atomlike/query"),
        ("local", "ingest.pause", "atomlike/query"),
    ]


def test_one_dead_letter_of_a_cause_can_be_tried_before_all_of_it(site: World, page: Page):
    page.goto(f"{site.url}/console/bus/dead-letters?group=search-index")
    page.locator("#causes").get_by_role("link", name="Replay 2…").click()
    dialog = page.get_by_role("dialog", name="Confirm")
    dialog.get_by_role("link", name="replay the latest alone first…").click()
    chosen = dialog.get_by_label("Event ids")
    expect(chosen).to_have_value(re.compile(r"^[0-9a-f-]{36}$"))
    back = str(dialog.locator("input[name=back]").get_attribute("value"))
    assert back == f"/console/bus/dead-letter/search-index/{chosen.input_value()}"
    page.goto(f"{site.url}/console/confirm/bus.discard_all?group=search-index")
    expect(page.locator(".preview")).not_to_contain_text("alone first")


def test_all_letters_of_a_cause_are_replayed_after_a_preview_and_the_typed_name(acting: World, page: Page):
    page.goto(f"{acting.url}/console/bus/dead-letters?group=mail-out")
    dialog = ask(page.get_by_role("link", name="Replay 2…"))
    expect(dialog.locator(".preview")).to_contain_text("2 dead letters are touched")
    expect(dialog.locator(".preview")).to_contain_text("b_handler_failed")
    button = dialog.get_by_role("button", name="Replay all")
    expect(button).to_be_disabled()
    dialog.locator("[name=confirm]").fill("mail-out")
    expect(button).to_be_enabled()
    button.click()
    expect(page.locator(".banner")).to_contain_text("2 dead letters are being replayed.")
    expect(page.locator("h1")).to_contain_text("running")
    acting.work_off_acts()
    page.reload()
    expect(page.locator("h1")).to_contain_text("done")
    expect(page.locator(".figures")).to_contain_text("2 of 2")
    page.goto(f"{acting.url}/console/bus/dead-letters?group=mail-out")
    expect(page.locator(".empty")).to_contain_text("No dead letter is waiting with group mail-out. There were some.")
    page.get_by_role("link", name="Those being replayed").click()
    expect(page.locator("#letters tr")).to_have_count(2)
    assert acting.audit()[0] == ("local", "bus.bulk_act", "mail-out")


def test_an_alert_is_acknowledged_silenced_and_told_again(acting: World, page: Page):
    page.goto(f"{acting.url}/console/alerts")
    row = page.locator("#alerts tr", has_text="oailike")
    expect(row).to_contain_text("nobody yet")
    dialog = ask(row.get_by_role("link", name="Acknowledge…"))
    dialog.get_by_label("Why").fill("the key is being renewed")
    dialog.get_by_role("button", name="Acknowledge").click()
    expect(row).to_contain_text("the key is being renewed")
    dialog = ask(row.get_by_role("link", name="Silence…"))
    dialog.get_by_label("Why").fill("until tomorrow")
    dialog.get_by_role("button", name="Silence").click()
    expect(row).to_contain_text("silent until")
    ask(row.get_by_role("link", name="End silence…")).get_by_role("button", name="End the silence").click()
    expect(row).not_to_contain_text("silent until")
    names = [act for _, act, _ in acting.audit()[:3]]
    assert names == ["ingest.end_silence", "ingest.silence", "ingest.acknowledge"]


def test_a_period_is_closed_and_reconciled_with_their_list(acting: World, page: Page):
    acting.clock.advance(SECOND)
    period = format_instant(acting.clock.now() - 2 * DAY)[:10]
    page.goto(f"{acting.url}/console/attribution/statements")
    dialog = ask(page.get_by_role("link", name="Close a period…"))
    dialog.locator("[name=app]").fill("shop")
    dialog.locator("[name=period]").fill(period)
    dialog.get_by_label("Facts without a price").select_option("yes")
    dialog.get_by_role("button", name="Close the period").click()
    expect(page.locator("h1")).to_have_text(f"Statement of shop, {period}")
    dialog = ask(page.get_by_role("link", name="Reconcile…"))
    dialog.get_by_label("Their list").fill("billingKey,priceMicros\nx|y|billable_click,1\n")
    dialog.get_by_role("button", name="Compare").click()
    expect(page.locator("#differences")).to_contain_text("theirs only")


def test_a_letter_is_discarded_with_a_reason_and_not_without(acting: World, page: Page):
    letter = acting.known["letter-0"]
    page.goto(f"{acting.url}/console/confirm/bus.discard?group=search-index&event_ids={letter}")
    page.locator("[name=reason]").evaluate("field => field.required = false")
    page.get_by_role("button", name="Discard").click()
    expect(page.locator(".wrong")).to_have_text("This is needed.")
    page.locator("[name=reason]").fill("the chapter was withdrawn")
    page.get_by_role("button", name="Discard").click()
    expect(page.locator(".banner")).to_contain_text("1 dead letter of search-index.")
    page.goto(f"{acting.url}/console/bus/dead-letter/search-index/{letter}")
    expect(page.locator("h1")).to_contain_text("discarded")


def test_a_type_is_frozen_and_thawed(acting: World, page: Page):
    """One that no other test publishes."""
    page.goto(f"{acting.url}/console/bus/type/job.failed")
    dialog = ask(page.get_by_role("link", name="Freeze…"))
    dialog.get_by_label("Why").fill("a bad release")
    dialog.locator("[name=confirm]").fill("job.failed")
    dialog.get_by_role("button", name="Freeze").click()
    expect(page.locator("h1")).to_contain_text("frozen")
    ask(page.get_by_role("link", name="Thaw…")).get_by_role("button", name="Thaw").click()
    expect(page.locator("h1")).to_contain_text("open")


def test_a_failed_task_is_queued_again(acting: World, page: Page):
    page.goto(f"{acting.url}/console/ingest/task/{acting.known['task']}")
    expect(page.locator("h1")).to_contain_text("FAILED")
    ask(page.get_by_role("link", name="Requeue…")).get_by_role("button", name="Requeue").click()
    expect(page.locator("h1")).to_contain_text("QUEUED")


def test_a_quarantined_record_is_signalled_and_shown_as_waiting(acting: World, page: Page):
    page.goto(f"{acting.url}/console/ingest/quarantine")
    dialog = ask(page.locator("#quarantine tr", has_text="10.5555/boats.1").get_by_role("link", name="Fetch again…"))
    expect(dialog).to_contain_text("The next UPDATE of the endpoint asks the provider for them")
    expect(dialog.locator("[name=keys]")).to_have_value("10.5555/boats.1")
    dialog.get_by_label("Why").fill("the title was mended")
    dialog.get_by_role("button", name="Fetch again").click()
    expect(page.locator(".banner")).to_contain_text("1 record of atomlike / query will be fetched again")
    expect(page.locator("#signals tr")).to_contain_text("the title was mended")
    assert acting.audit()[0] == ("local", "ingest.signal", "atomlike/query")


def test_a_window_is_planned(acting: World, page: Page):
    page.goto(f"{acting.url}/console/ingest/source/atomlike")
    dialog = ask(page.get_by_role("link", name="Plan query…"))
    dialog.get_by_label("Operation").select_option("BACKFILL")
    dialog.locator("[name=since]").fill("2026-01-01T00:00:00Z")
    dialog.locator("[name=until]").fill("2026-01-03T00:00:00Z")
    dialog.get_by_label("Campaign").fill("january")
    dialog.get_by_role("button", name="Plan").click()
    expect(page.locator(".banner")).to_contain_text("i_planned: 2 slices.")
    expect(page.locator("h1")).to_contain_text("sliced")


def test_a_film_is_submitted(acting: World, page: Page):
    page.goto(f"{acting.url}/console/studio/new")
    page.get_by_label("Chapter").fill("A river\n\nThe river is wide. Nobody crosses it.")
    page.get_by_role("button", name="Make the film").click()
    expect(page.locator("h1")).to_contain_text("A river")
    ask(page.get_by_role("link", name="Cancel…")).get_by_role("button", name="Cancel the run").click()
    expect(page.locator("main")).to_contain_text("cancelled")


def test_a_key_of_an_app_is_shown_once(guarded: World, page: Page):
    sign_in(page, guarded, "admin", "/confirm/attribution.app.add?app=kiosk&back=/console/attribution/apps")
    page.get_by_role("button", name="Make a key").click()
    expect(page.locator(".secret code")).to_contain_text("pk_")
    page.get_by_role("link", name="Go back").click()
    expect(page.locator("#keys tr")).to_have_count(1)
    expect(page.locator("main")).not_to_contain_text("pk_")


def test_a_refusal_stands_in_the_form_with_its_code(acting: World, page: Page):
    page.goto(f"{acting.url}/console/confirm/bus.replay?group=nobody")
    page.locator("[name=confirm]").fill("nobody")
    page.get_by_role("button", name="Replay").click()
    expect(page.locator(".problem")).to_contain_text("b_group_unknown")


def test_a_viewer_sees_everything_and_no_act(guarded: World, page: Page):
    sign_in(page, guarded, "viewer")
    expect(page.locator(".who")).to_contain_text("viewer")
    expect(page.locator("h1")).to_have_text("Three things need a person")
    for path in ("/", "/ingest", "/bus/dead-letters", "/bus/groups", "/loops", "/bus/webhooks", "/attribution/apps"):
        page.goto(f"{guarded.url}/console{path}")
        assert page.locator("a[href^='/console/confirm'], button[formaction]").count() == 0
    [cookie] = [one for one in page.context.cookies() if one["name"] == "patra_console"]
    http, sent = urllib3.PoolManager(retries=False), {"Cookie": f"patra_console={cookie['value']}"}
    views = [name for name, path in VIEWS.items() if not path.startswith("/confirm/")]
    shown = {name: http.request("GET", address(guarded, name), headers=sent) for name in views}
    assert {name: one.status for name, one in shown.items() if one.status != 200} == {"audit": 403}
    acts = (b"/console/confirm/", b"formaction=")
    assert [name for name, one in shown.items() if any(mark in one.data for mark in acts)] == []
    page.goto(f"{guarded.url}/console/audit")
    expect(page.locator("main")).to_contain_text("This needs the role admin")
    page.goto(f"{guarded.url}/console/confirm/bus.pause?group=search-index")
    expect(page.locator("main")).to_contain_text("This needs the role operator")


def test_signing_in_leads_back_and_signing_out_ends_the_session(guarded: World, page: Page):
    sign_in(page, guarded, "operator", "/bus/groups")
    expect(page).to_have_url(f"{guarded.url}/console/bus/groups")
    expect(page.get_by_role("link", name="Pause…").first).to_be_visible()
    [cookie] = [one for one in page.context.cookies() if one["name"] == "patra_console"]
    assert (cookie["httpOnly"], cookie["sameSite"], cookie["path"]) == (True, "Strict", "/console")
    page.get_by_role("button", name="Sign out").click()
    expect(page).to_have_url(f"{guarded.url}/console/login")
    page.goto(f"{guarded.url}/console/")
    expect(page.locator("h1")).to_have_text("Sign in with a token")


def test_an_unknown_token_is_told_so(guarded: World, page: Page):
    page.goto(f"{guarded.url}/console/")
    page.get_by_label("Token").fill("no such token, at least none of ours")
    page.get_by_role("button", name="Sign in").click()
    expect(page.locator("#wrong")).to_have_text("This token is not known.")


def test_everything_works_without_script(acting: World, browser):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(f"{acting.url}/console/bus/groups")
    page.locator("tr", has_text="search-index").get_by_role("link", name="Pause…").click()
    page.get_by_role("button", name="Pause").click()
    expect(page.locator("tr", has_text="search-index")).to_contain_text("paused")
    context.close()


def test_rows_are_chosen_by_box_key_and_span_and_replayed_with_one_confirmation(acting: World, page: Page):
    """The choice stays while the page is live; the row's own link is not followed."""
    letters = [acting.known[name] for name in ("letter-0", "letter-1")]
    acting.patra.db.run(lambda tx: tx.execute(REOPEN, {}))
    page.goto(f"{acting.url}/console/bus/dead-letters?group=search-index")
    bar = page.locator(".choose")
    expect(bar).to_contain_text("none chosen")
    expect(bar.get_by_role("button", name="Replay…")).to_be_disabled()
    page.get_by_label(f"Choose {letters[0]}").check()
    expect(bar).to_contain_text("1 of 2 chosen")
    page.keyboard.press("x")  # of the row whose box has the focus
    expect(bar).to_contain_text("none chosen")
    page.keyboard.press("k")
    page.keyboard.press("x")
    expect(bar).to_contain_text("1 of 2 chosen")
    expect(page.locator("#letters input").first).to_be_checked()
    page.locator("#letters input").last.click(modifiers=["Shift"])
    expect(bar).to_contain_text("2 of 2 chosen")
    bar.get_by_label("All").uncheck()
    expect(bar).to_contain_text("none chosen")
    bar.get_by_label("All").check()
    expect(bar).to_contain_text("2 of 2 chosen")
    acting.patra.db.run(lambda tx: tx.execute(TOUCH, {}))
    expect(page.locator("#letters tr").first).to_contain_text("91")  # the page is live
    expect(page.locator("#letters input:checked")).to_have_count(2)
    expect(page.locator("#letters tr[aria-selected=true]")).to_have_count(2)
    page.keyboard.press("r")
    dialog = page.get_by_role("dialog")
    expect(dialog.locator("[name=event_ids]")).to_have_value("\n".join(sorted(letters, reverse=True)))
    dialog.locator("[name=confirm]").fill("search-index")
    dialog.get_by_role("button", name="Replay").click()
    expect(page.locator(".banner")).to_contain_text("2 dead letters of search-index")
    assert acting.audit()[0] == ("local", "bus.replay", "search-index")
    states = {one["state"] for one in acting.get("/bus/dead-letters?group=search-index&state=all")["dead_letters"]}
    assert states == {"replaying"}


def test_rows_of_several_groups_are_chosen_one_group_at_a_time(site: World, page: Page):
    page.goto(f"{site.url}/console/bus/dead-letters")
    expect(page.locator(".choose-among")).to_contain_text("mail-out, search-index")
    assert page.locator(".choose, .pick").count() == 0
    page.locator(".choose-among").get_by_role("link", name="search-index").click()
    expect(page.locator(".choose")).to_contain_text("none chosen")
    expect(page.locator("#letters input")).to_have_count(2)


def test_without_script_the_same_rows_ask_the_same_confirmation(acting: World, browser: Browser):
    context = browser.new_context(java_script_enabled=False, viewport={"width": 390, "height": 844})
    page = context.new_page()
    acting.patra.db.run(lambda tx: tx.execute(FAIL_ALL, {}))
    page.goto(f"{acting.url}/console/ingest/tasks?status=FAILED")
    boxes = page.locator("#tasks input[type=checkbox]")
    count = boxes.count()
    assert count > 2
    for number in range(2):
        boxes.nth(number).check()
    page.get_by_role("button", name="Requeue…").click()
    expect(page.locator("h1")).to_have_text("Requeue failed tasks")
    assert len(page.locator("[name=tasks]").input_value().splitlines()) == 2
    page.get_by_role("button", name="Requeue").click()
    expect(page.locator(".banner")).to_contain_text("2 tasks are queued.")
    expect(boxes).to_have_count(count - 2)
    context.close()


def test_who_may_not_act_sees_no_boxes(guarded: World, page: Page):
    sign_in(page, guarded, "viewer")
    for path in ("/bus/dead-letters?group=search-index", "/ingest/tasks?status=FAILED", "/ingest/quarantine"):
        page.goto(f"{guarded.url}/console{path}")
        expect(page.locator("tbody tr").first).to_be_visible()
        assert page.locator(".choose, .choose-among, .pick, input[type=checkbox]").count() == 0


def test_messages_that_are_chosen_are_each_sent_again(acting: World, page: Page):
    """Their numbers stand in a field of several lines: one of a single line would join them to one number."""
    refuse(acting.patra.db, "ingest.record", "chosen-1", "chosen-2")
    page.goto(f"{acting.url}/console/outbox?channel=ingest.record")
    boxes = page.locator("#outbox input")
    count = boxes.count()
    page.locator(".choose").get_by_label("All").check()
    page.locator(".choose").get_by_role("button", name="Send again…").click()
    dialog = page.get_by_role("dialog")
    assert len(dialog.locator("[name=seqs]").input_value().splitlines()) == count
    dialog.get_by_role("button", name="Send again").click()
    expect(page.locator(".banner")).to_contain_text(f"{count} messages of ingest.record will be sent again.")
    expect(boxes).to_have_count(0)


def test_an_act_on_many_says_how_many_it_left_as_they_are(acting: World, page: Page):
    acting.patra.db.run(lambda tx: tx.execute(FAIL_ALL, {}))
    failed = acting.get("/ingest/tasks?status=FAILED&limit=1")["tasks"][0]["task"]
    acting.post(f"/ingest/tasks/{failed}/requeue", {})
    other = acting.get("/ingest/tasks?status=FAILED&limit=1")["tasks"][0]["task"]
    page.goto(f"{acting.url}/console/confirm/ingest.requeue_tasks?tasks={failed}&tasks={other}")
    page.get_by_role("button", name="Requeue").click()
    expect(page.locator(".banner")).to_contain_text("1 task is queued. 1 was left: not failed any more.")


def test_the_command_of_an_act_names_what_the_act_would_touch(site: World, page: Page):
    letters = [site.known[name] for name in ("letter-0", "letter-1")]
    asked = "&".join(f"event_ids={letter}" for letter in letters)
    page.goto(f"{site.url}/console/confirm/bus.replay?group=search-index&{asked}")
    expect(page.locator(".cmd code")).to_have_text(f"$ patra bus replay search-index {' '.join(letters)}")
    page.goto(f"{site.url}/console/confirm/bus.replay?group=search-index&error_code=b_handler_failed")
    expect(page.locator(".cmd code")).to_have_text("$ patra bus replay search-index --error-code b_handler_failed")
    page.goto(f"{site.url}/console/confirm/bus.replay?group=search-index")
    expect(page.locator(".cmd code")).to_have_text("$ patra bus replay search-index --all")
    page.goto(f"{site.url}/console/confirm/bus.discard?group=search-index&event_ids={letters[0]}")
    expect(page.locator(".cmd code")).to_have_text(f'$ patra bus discard search-index {letters[0]} --reason "…"')
