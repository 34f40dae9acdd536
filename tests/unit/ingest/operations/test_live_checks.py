"""What a person has to check, and what one page already contradicts."""

from patra.ingest.operations.live_checks import LiveCheck, lines_of, live_checks
from patra.ingest.operations.try_source import Tried, Wanted
from patra.ingest.packs import bundled


def checks(source: str, endpoint: str, *times: str, total: int = 3, deleted: int = 0) -> dict[str, LiveCheck]:
    records = [{"id": time, "updated": time} for time in times] + [
        {"id": str(n), "deleted": True} for n in range(deleted)
    ]
    found = Tried(
        verdict="accept",
        total=total,
        items=len(records),
        records=records,
        window_from="2026-03-01T00:00:00Z",
        window_to="2026-03-02T00:00:00Z",
    )
    return {one.topic: one for one in live_checks(bundled.pack(source), Wanted(endpoint=endpoint), found, source)}


def test_every_topic_has_what_is_declared_what_is_seen_and_what_to_ask() -> None:
    found = checks("ror", "organizations", "2026-03-01T00:00:00Z", deleted=1)
    assert list(found) == ["total", "bounds", "order", "precision", "deletions", "update time"]
    assert found["total"].declared.startswith("EXACT (`number_of_results` is exact")
    assert found["bounds"].declared.startswith("inclusive (Ranges in square brackets include both days.")
    assert found["deletions"].seen == "1 of 2 records of this page are deleted"
    assert found["precision"].seen.endswith("days")
    assert not any(one.contradicted for one in found.values())
    text = "\n".join(lines_of(list(found.values())))
    assert "patra ingest try ror organizations" in text
    assert "patra ingest record" in text


def test_commands_that_are_advised_can_be_typed() -> None:
    """A pack is named as the command was given it; without an endpoint by id no command asks for one."""
    wanted = Wanted(endpoint="organizations")
    asked = live_checks(bundled.pack("ror"), wanted, Tried(verdict="accept", items=0, records=[]), "mine.yaml")
    text = "\n".join(lines_of(asked))
    assert "`patra ingest try mine.yaml organizations`" in text
    by_id = {one.topic: one.ask for one in asked}["deletions"]
    assert "--id" not in by_id or "try mine.yaml " in by_id


def test_a_page_that_contradicts_the_pack_is_marked() -> None:
    early, late = "2026-03-01T01:00:00Z", "2026-03-01T02:00:00Z"
    assert checks("doaj", "articles", late, early)["order"].contradicted, "declared rising"
    assert not checks("doaj", "articles", early, late)["order"].contradicted
    assert checks("zenodo", "records", "2020-01-01T00:00:00Z")["bounds"].contradicted, "all outside the window"
    assert checks("zenodo", "records", early, late, total=1)["total"].contradicted, "more than the total"
    assert not checks("semanticscholar", "bulk", "2020-01-01T00:00:00Z", total=0)["total"].contradicted, "an estimate"
    marked = [
        line for line in lines_of(list(checks("doaj", "articles", late, early).values())) if "CONTRADICTED" in line
    ]
    assert marked == ["order  ← CONTRADICTED by this page"]
