"""The bus on its pages: who sends what how fast, and a letter that breaks its contract, field by field."""

from playwright.sync_api import Page, expect

from patra.kernel.db.queries import statement
from tests.e2e.console.world import World

BREAK = statement(
    "break",
    """UPDATE bus_dead_letter SET envelope =
      replace(replace(envelope, '"requested_quality"', '"quality"'), '"zh-CN"', '"?"')
    WHERE event_id = :id""",
)


def test_what_was_published_lately_is_drawn_and_counted(site: World, page: Page):
    found = {one["type"]: one for one in site.get("/bus/flow")["types"]}
    assert found["task.submitted"]["events"] == 3
    assert found["task.submitted"]["per_minute"] == 0.6
    assert {"search-index", "mail-out"} <= set(found["task.submitted"]["readers"])
    assert found["job.failed"]["events"] == 0
    page.goto(f"{site.url}/console/bus")
    drawing = page.locator("svg.flowgraph")
    expect(drawing).to_contain_text("task.submitted")
    expect(drawing).to_contain_text("search-index")
    expect(drawing).not_to_contain_text("job.failed")
    expect(page.locator("#flow tr", has_text="task.submitted")).to_contain_text("0.6")
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
