"""The bus on its pages: who sends what how fast, and a letter that breaks its contract, field by field."""

from playwright.sync_api import Page, expect

from patra.kernel.db.queries import statement
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
