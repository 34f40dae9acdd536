"""Which kinds a text can be, by its form."""

import pytest

from patra.app.story.keys import (
    KINDS,
    MAX_KEY_CHARACTERS,
    dead_letter,
    doi,
    event_in_batch,
    ingest_batch,
    kinds_named,
    kinds_possible,
    source_and_id,
)

PLAN = "p0123456789abcdef"
EVENT = "01a1e8f0-7c1a-7000-8000-1234567890ab"
FORMS = {
    "attribution.event": "batch-1/e-1",
    "attribution.batchId": "batch-1",
    "attribution.eventId": "e-1",
    "attribution.sourceEventId": "fe_0123",
    "attribution.canonicalDedupKey": "f_dedup_v1:computed:00ff",
    "attribution.closureKey": "ref|ra",
    "attribution.billingKey": "ref|ra|billable_click",
    "attribution.attributionKey": "attr_click|f_dedup_v1:computed:00ff",
    "attribution.factId": "bf_0123",
    "attribution.auditKey": "fe_0123|drop|f_dedup_committed_duplicate",
    "attribution.recordKey": "a" * 64,
    "attribution.statement": "app-1/2026-01",
    "ingest.plan": PLAN,
    "ingest.slice": f"{PLAN}.s000017",
    "ingest.task": f"{PLAN}.t000017",
    "ingest.run": f"{PLAN}.t000017.r2",
    "ingest.batch": f"{PLAN}.t000017.r2/3",
    "ingest.correlation_id": f"ing-{PLAN}.t000017.r2-3",
    "ingest.schedule_instance": "i0123456789abcdef",
    "bus.event_id": EVENT,
    "bus.dead_letter": f"search-index/{EVENT}",
    "studio.run": "run_0123",
    "studio.job": "job_0123",
    "studio.artifact": "b" * 64,
}


@pytest.mark.parametrize(("kind", "key"), FORMS.items())
def test_a_key_of_a_kind_has_its_form(kind: str, key: str) -> None:
    assert kind in kinds_possible(key)[KINDS[kind][0]]
    assert kinds_possible(key, kind)[KINDS[kind][0]] == [kind]


def test_kinds_with_a_form_of_their_own_are_not_looked_for_under_another() -> None:
    plain = {kind for kinds in kinds_possible("plain").values() for kind in kinds}
    with_form = set(FORMS) - {"attribution.batchId", "attribution.eventId"}
    assert plain == set(KINDS) - with_form


@pytest.mark.parametrize("key", ["", "a\x00b", "\ud800", "x" * (MAX_KEY_CHARACTERS + 1)])
def test_what_no_store_can_hold_is_looked_for_nowhere(key: str) -> None:
    assert [kinds for kinds in kinds_possible(key).values() if kinds] == []


def test_a_kind_may_be_named_without_its_engine_and_by_its_other_names() -> None:
    assert kinds_named("batchId") == ["attribution.batchId"]
    assert kinds_named("task") == ["ingest.task", "studio.task"]
    assert kinds_named("studio.task") == ["studio.task"]
    assert kinds_named("serverEventKey") == ["attribution.sourceEventId"]
    assert kinds_named("doi") == kinds_named("ingest.provider_id") == ["ingest.record"]
    assert kinds_named("nonsense") == kinds_named("bus.batchId") == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("pubmed:90001", ("pubmed", "90001")),
        ("pmid:90001", ("pubmed", "90001")),
        ("PMID: 90001", ("pubmed", "90001")),
        ("pmcid:PMC7", ("pmc", "PMC7")),
        ("arXiv:2401.00001", ("arxiv", "2401.00001")),
        ("a:b:c", ("a", "b:c")),
        ("pmid:", None),
        (":1", None),
        ("90001", None),
    ],
)
def test_a_source_before_the_id_is_read(text: str, expected: tuple[str, str] | None) -> None:
    assert source_and_id(text) == expected


@pytest.mark.parametrize("text", ["10.1000/ABC", "doi:10.1000/abc", "https://doi.org/10.1000/Abc", "DOI:10.1000/abc"])
def test_a_doi_is_known_in_every_way_it_is_written(text: str) -> None:
    assert doi(text) == "10.1000/abc"


def test_other_texts_are_no_doi() -> None:
    assert [doi(text) for text in ("10.1/x", "11.1000/abc", "10.1000/", "a 10.1000/abc")] == [None] * 4


def test_composed_keys_come_apart() -> None:
    run = f"{PLAN}.t000017.r2"
    assert ingest_batch(f"{run}/3") == ingest_batch(f"{run}.b3") == ingest_batch(f"ing-{run}-3-replay") == (run, 3)
    assert ingest_batch(run) is None
    assert event_in_batch("b/e/1") == [("b", "e/1")]
    assert event_in_batch("b/") == event_in_batch("/e") == event_in_batch("b") == []
    assert dead_letter(f"a/b/{EVENT}") == ("a/b", EVENT)
    assert dead_letter(f"/{EVENT}") is None
