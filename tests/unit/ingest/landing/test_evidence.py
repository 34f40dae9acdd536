"""The digests of a batch row say what was asked and answered, and open no door."""

import json

from msgspec.structs import replace

from patra.ingest.extraction.classify import Action, Verdict
from patra.ingest.fetching.fetch import Fetched
from patra.ingest.fetching.sender import Tally
from patra.ingest.http.client import Answer
from patra.ingest.landing.evidence import batch_stats, content_hash, error_of, request_digest, response_digest
from patra.ingest.landing.page_records import nothing
from patra.ingest.landing.records import Sorted, incoming
from patra.ingest.vocabulary.run_reasons import RunReason
from tests.unit.ingest.execution.scopes import NOW, scope_of, spec_of

SCOPE = scope_of(spec_of())
LINE = SCOPE.course.listing
AT = SCOPE.at(LINE, SCOPE.first, NOW)
OK = Verdict(action=Action.ACCEPT, code=RunReason.OK)


def fetched(body: bytes = b"<feed/>", **headers: str) -> Fetched:
    url = "https://export.example.org/api/query"
    answer = Answer(status=200, headers=headers, body=body, url=url, elapsed=1000, wire_bytes=len(body))
    gate, tally = LINE.gate({}), Tally(requests=1)
    return Fetched(at=AT, verdict=OK, answer=answer, document=None, listed=None, tally=tally, gate=gate)


def test_a_request_is_shown_with_its_hash_and_the_place_it_was_rendered_at():
    shown = json.loads(request_digest(LINE, AT))
    assert (shown["method"], shown["leg"], shown["at"]["offset"]) == ("GET", "query", 0)
    assert shown["url"].startswith("https://export.example.org/api/query?")
    later = json.loads(request_digest(LINE, replace(AT, offset=100)))
    assert later["hash"] != shown["hash"]
    assert request_digest(LINE, AT) == request_digest(LINE, AT)


def test_an_answer_is_kept_as_a_hash_and_a_sample_without_addresses():
    found = json.loads(response_digest(LINE, fetched(b"from someone@example.org", date="today"), has_next=False))
    assert (found["status"], found["bodyBytes"], found["headerHints"]) == (200, 24, {"date": "today"})
    assert "someone@example.org" not in found["sample"]
    assert found["bodyHash"].startswith("sha256:")
    assert found["itemsCount"] == 0


def test_the_content_of_an_answer_is_the_same_in_any_order():
    one, two = (incoming(name, NOW, None, {"title": name}, None, deleted=False) for name in ("a", "b"))
    assert one is not None
    assert two is not None
    there, back = replace(nothing(), records=[one, two]), replace(nothing(), records=[two, one])
    assert content_hash(there) == content_hash(back)
    assert content_hash(there) != content_hash(nothing())


def test_the_stats_of_a_batch_count_every_record_once():
    new = incoming("a", NOW, None, {"title": "a"}, None, deleted=False)
    assert new is not None
    sorted_ = Sorted(new=[new], newer=[], equal=["b", "c"], older=["d"], repeated=1)
    text = batch_stats(
        fetched(), Tally(requests=2, retries=1), sorted_, 1, 7, 1,
        has_next=True, next_hint={"page": 2}, latency=5000, healed={"qpsDownshift": True},
    )  # fmt: skip
    found = json.loads(text)
    assert (found["itemsCount"], found["inserted"], found["skipped"], found["failed"]) == (7, 1, 5, 1)
    assert found["itemsCount"] == found["inserted"] + found["updated"] + found["skipped"] + found["failed"]
    assert found["nextHint"] == {"token": None, "page": 2, "url": None}
    assert found["selfHealing"] == {"qpsDownshift": True, "pageSizeShrink": False}
    assert (found["latencyMs"], found["examples"]["inserted"]) == (5, ["a"])


def test_an_error_reads_as_code_detail_and_advice():
    verdict = Verdict(action=Action.HALT, code=RunReason.UNAUTHORIZED, level="L4", detail="401", advice="look")
    assert error_of(verdict) == "i_unauthorized: 401 (look)"
    assert error_of(OK) is None
