"""A new version of a pack names another watermark: the harvest begins before where it stood, and says so."""

from patra.ingest.execution.progress import window_wanted
from patra.ingest.packs import bundled
from patra.ingest.planning.slicing.windows import Span
from patra.ingest.planning.trigger import Trigger
from patra.ingest.vocabulary.codes import Operation
from patra.ingest.vocabulary.reasons import Reason
from patra.kernel.clock import DAY, format_instant
from patra.kernel.db import Database
from tests.contract.ingest.site import Site, at

STOOD = at("2026-08-01T00:00:00Z")
INITIAL = 30 * DAY
NOW_FLOOR = at("2026-11-15T00:00:00Z")  # the lag is a day


def entered() -> str:
    """PubMed's pack as it was: windows by the date of entry, without a range of PMIDs."""
    text = bundled.text("pubmed")
    for new, old in (
        ("watermarkKey: crdt", "watermarkKey: edat"),
        ("default: crdt, values", "default: edat, values"),
        ("      pmids: {description", "      other: {description"),
    ):
        assert new in text
        text = text.replace(new, old, 1)
    return text.replace("params.pmids", "params.other")


def upgraded(db: Database, **params: str) -> Site:
    """A site whose PubMed stood still in August under the version before."""
    site = Site(db, migrated=False)
    site.load_text(entered())
    first = site.trigger("pubmed", "search", params=params)
    assert (first.outcome, first.detail) == (Reason.PLANNED, "")
    site.run("UPDATE ing_cursor SET normalized_instant = :at", at=STOOD)
    site.load_text(bundled.text("pubmed"))
    return site


def window(site: Site, plan_id: str | None) -> tuple[int, int]:
    [found] = site.rows("SELECT window_from, window_to FROM ing_plan WHERE plan_id = :plan", plan=plan_id)
    return found


def test_a_harvest_under_a_new_watermark_begins_before_where_the_old_one_stood(database: Database) -> None:
    site = upgraded(database, term="cancer")
    same = Trigger(source="pubmed", endpoint="search", operation=Operation.HARVEST, params={"term": "cancer"})
    spec = site.planner.compile(same).spec
    assert spec is not None
    wanted = site.db.read(lambda tx: window_wanted(tx, same, spec, site.clock.now()))
    assert wanted == Span(STOOD - INITIAL, NOW_FLOOR), "`run` answers for the same window that is planned"
    made = site.trigger("pubmed", "search", params={"term": "cancer"})
    assert made.outcome is Reason.PLANNED
    assert window(site, made.plan_id) == (STOOD - INITIAL, NOW_FLOOR)
    assert [problem.code for problem in made.problems if problem.code is Reason.WATERMARK_REPLACED]
    assert made.detail == (
        f"pubmed search was harvested by 'edat' up to {format_instant(STOOD)} and is harvested by 'crdt' now: "
        f"it begins at {format_instant(STOOD - INITIAL)} and reads again what lies between"
    )
    site.clock.advance(3 * DAY)
    again = site.trigger("pubmed", "search", params={"term": "cancer"})
    assert (again.outcome, again.detail) == (Reason.PLANNED, ""), "now it has a watermark of its own"


def test_another_wish_and_one_that_says_where_it_begins_are_not_moved(database: Database) -> None:
    site = upgraded(database)
    other = site.trigger("pubmed", "search", params={"term": "fog"})
    assert (window(site, other.plan_id), other.detail) == ((at("2026-10-17T00:00:00Z"), NOW_FLOOR), "")
    made = site.trigger("pubmed", "search", since="2026-11-01T00:00:00Z")
    assert window(site, made.plan_id) == (at("2026-11-01T00:00:00Z"), NOW_FLOOR)


def test_a_pack_without_an_initial_window_is_refused_until_someone_says_where_it_begins(database: Database) -> None:
    site = upgraded(database)
    text = bundled.text("pubmed")
    assert text.count("      initial: P30D\n") == 1
    site.load_text(text.replace("      initial: P30D\n", ""))
    refused = site.trigger("pubmed", "search")
    assert (refused.plan_id, "say --from" in refused.detail) == (None, True)
