"""`POST /events` and what can be read over HTTP, on a real server: §3.8.4 to §3.8.8, F10, F11, F19."""

import gzip
import json
import os
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from typing import Any

import msgspec
import pytest
import urllib3
import zstandard

from patra.app.components.attribution import Attribution
from patra.app.configuration.engine_settings import AttributionSettings
from patra.app.configuration.settings import Settings, StoreSettings, WebSettings
from patra.app.wiring import Patra, build
from patra.attribution.app_keys import add_key, revoke_keys, rotate_key
from patra.attribution.contract.reasons import Reason
from patra.attribution.storage import read
from patra.attribution.storage.key_index import Indexer
from patra.attribution.turned_away import MAX_PENDING
from patra.kernel.clock import SECOND, SystemClock, format_instant
from patra.kernel.db import Tx
from patra.kernel.errors import StoreUnavailable
from patra.kernel.safety.threads import Threads
from patra.web.asgi import app
from patra.web.uvicorn_server import serving
from tests.unit.attribution.said import envelope, event

MIB = 1024 * 1024


def now(seconds: float = 0) -> str:
    return format_instant(SystemClock().now() + round(seconds * SECOND))


def fresh_event(name: str, event_id: str, **changes: Any) -> dict[str, Any]:
    return event(name, event_id, eventAt=now(), **changes)


class House:
    """A Patra behind a real socket."""

    def __init__(self, patra: Patra, url: str) -> None:
        self.patra = patra
        self.attribution = patra.engine(Attribution)
        self.url = url
        self.http = urllib3.PoolManager(retries=False)

    def post(self, batch: Any, **headers: str) -> urllib3.BaseHTTPResponse:
        body = batch if isinstance(batch, bytes) else json.dumps(batch).encode()
        names = {name.replace("_", "-"): value for name, value in headers.items()}
        return self.http.request("POST", f"{self.url}/events", body=body, headers=names)

    def get(self, path: str) -> Any:
        answer = self.http.request("GET", f"{self.url}{path}")
        return answer.json() if answer.status == 200 else answer

    def run(self, work: Any) -> Any:
        return self.patra.db.run(work)


@pytest.fixture
def house(database_url: str) -> Iterator[House]:
    settings = Settings(
        store=StoreSettings(url=database_url),
        web=WebSettings(port=0),
        attribution=AttributionSettings(waiting_batches=4),
    )
    patra = build(settings)
    with serving(app(patra), settings.web) as served:
        yield House(patra, served.url)
    patra.close(5)


def test_a_batch_is_answered_event_by_event(house: House):
    answer = house.post(envelope(fresh_event("impression", "i"), event("view", "v")))
    assert (answer.status, answer.headers["content-type"]) == (200, "application/json")
    ack = answer.json()
    assert ack["overallStatus"] == "partial_success"
    assert [item["ackReasonCode"] for item in ack["ackItems"]] == ["f_accepted", "f_event_type_unsupported"]
    again = house.post(envelope(fresh_event("impression", "i"))).json()
    assert again["ackItems"][0]["ackReasonCode"] == "f_dedup_committed_duplicate"


@pytest.mark.parametrize(
    ("encoding", "pack"),
    [
        ("gzip", gzip.compress),
        ("zstd", zstandard.ZstdCompressor().compress),
        ("identity", bytes),
        ("GZIP", gzip.compress),
    ],
)
def test_bodies_may_be_gzip_or_zstd(house: House, encoding: str, pack: Any):
    body = pack(json.dumps(envelope(fresh_event("click", "c"))).encode())
    assert house.post(body, Content_Encoding=encoding).status == 200


def test_an_encoding_that_is_not_known_is_415_and_a_body_that_is_not_what_it_says_is_400(house: House):
    assert (house.post(b"x", Content_Encoding="br").status, house.post(b"x", Content_Encoding="br").json()["code"]) == (
        415,
        "f_encoding_unsupported",
    )
    broken = house.post(b"x", Content_Encoding="gzip")
    assert (broken.status, broken.json()["code"]) == (400, "f_encoding_malformed")


def test_what_an_encoding_adds_does_not_count_against_the_mebibyte(house: House):
    plain = json.dumps(envelope(fresh_event("click", "c", note=os.urandom(300_000).hex()))).encode()
    plain += b" " * (MIB - len(plain))
    stored = gzip.compress(plain, 0)
    assert len(stored) > MIB
    assert house.post(stored, Content_Encoding="gzip").status == 200


def test_more_than_a_mebibyte_is_413_as_sent_and_inflated(house: House):
    fits = json.dumps(envelope(fresh_event("click", "c"))).encode()
    assert house.post(fits + b" " * (MIB - len(fits))).status == 200
    large = house.post(fits + b" " * (MIB + 1 - len(fits)))
    bomb = house.post(gzip.compress(b" " * 50 * MIB), Content_Encoding="gzip")
    assert {(large.status, large.json()["code"]), (bomb.status, bomb.json()["code"])} == {(413, "f_body_too_large")}


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"batchId": "?"}, "f_batch_id_invalid"),
        ({"schemaVersion": "2"}, "f_batch_schema_unsupported"),
        ({"events": []}, "f_batch_events_invalid"),
        ({"sentAt": ""}, "f_batch_missing_required"),
    ],
)
def test_a_refused_envelope_is_400_with_its_code_and_batch(house: House, change: dict[str, Any], code: str):
    answer = house.post(envelope(event("click"), **change))
    assert (answer.status, answer.headers["content-type"]) == (400, "application/problem+json")
    assert (answer.json()["code"], answer.json()["batchId"]) == (code, change.get("batchId", "b1"))
    malformed = house.post(b"{")
    assert (malformed.status, malformed.json()["code"], "batchId" in malformed.json()) == (
        400,
        "f_batch_malformed",
        False,
    )


def test_once_an_app_is_registered_a_key_is_needed_and_it_is_good_for_its_app_alone(house: House):
    key = house.run(lambda tx: add_key(tx, "app", 1))
    house.attribution.keys._read_at = None
    batch = envelope(fresh_event("click", "c"))
    missing, unknown = house.post(batch), house.post(batch, Authorization="Bearer nothing")
    assert {(a.status, a.json()["code"]) for a in (missing, unknown)} == {(401, "f_app_key_missing")}
    assert "WWW-Authenticate" in missing.headers
    assert house.post(batch, Authorization=f"Bearer {key}").status == 200
    foreign = house.post(envelope(event("click"), app="other"), Authorization=f"Bearer {key}")
    assert (foreign.status, foreign.json()["code"]) == (403, "f_app_key_foreign")
    assert house.get("/attribution/timeline/other") == {"decisions": [], "next": None, "refused": []}


def test_while_the_store_does_not_answer_for_the_keys_only_so_many_wait_and_others_are_turned_away(house: House):
    release = threading.Event()
    keys, reads = house.attribution.keys, list[Any]()
    original = keys._db.read

    def stalled(work: Any) -> Any:
        if not work.__qualname__.startswith("Keyring."):  # counts of the console read the same store
            return original(work)
        reads.append(work)
        release.wait(20)
        raise StoreUnavailable("store_unavailable", "gone")

    keys._db.read = stalled  # type: ignore[method-assign]
    keys._read_at = None
    answers: list[tuple[int, str, str | None]] = []
    answered = threading.Event()

    def send(n: int) -> None:
        answer = house.post(envelope(fresh_event("click", f"c{n}"), batch=f"b{n}"))
        answers.append((answer.status, answer.json()["code"], answer.headers.get("Retry-After")))
        answered.set()

    senders = [threading.Thread(target=send, args=(n,)) for n in range(5)]
    for sender in senders:
        sender.start()
    assert answered.wait(20)
    assert answers == [(503, "f_intake_overloaded", "1")]
    release.set()
    for sender in senders:
        sender.join()
    assert answers[1:] == [(503, "f_store_unavailable", "1")] * 4
    assert len(reads) == 1
    keys._db.read = original  # type: ignore[method-assign]
    assert house.post(envelope(fresh_event("click", "c9"), batch="b9")).status == 200


def test_a_revoked_or_rotated_key_is_refused_and_revoking_the_last_one_opens_nothing(house: House):
    old = house.run(lambda tx: add_key(tx, "app", 1))
    new = house.run(lambda tx: rotate_key(tx, "app", 2))
    house.attribution.keys._read_at = None
    batch = envelope(fresh_event("click", "c"))
    assert house.post(batch, Authorization=f"Bearer {old}").status == 401
    assert house.post(batch, Authorization=f"Bearer {new}").status == 200
    house.run(lambda tx: revoke_keys(tx, "app", 3))
    house.attribution.keys._read_at = None
    assert house.post(batch, Authorization=f"Bearer {new}").status == 401
    assert house.post(batch).status == 401


def test_app_keys_are_kept_as_hashes_only(house: House):
    key = house.http.request("POST", f"{house.url}/attribution/apps/app/keys", headers={"Content-Length": "0"}).json()[
        "key"
    ]
    listed = house.get("/attribution/apps")["keys"]
    assert [(entry["app_id"], entry["revoked_at"]) for entry in listed] == [("app", None)]
    assert key not in json.dumps(listed)
    assert house.http.request("DELETE", f"{house.url}/attribution/apps/app/keys").json()["revoked"] == [
        listed[0]["key_id"]
    ]
    assert house.http.request("DELETE", f"{house.url}/attribution/apps/app/keys").status == 400


def test_when_too_many_batches_wait_the_next_is_turned_away_with_retry_after(house: House):
    release, entered = threading.Event(), threading.Event()

    def slow(tx: Tx) -> None:
        entered.set()
        release.wait(20)

    engine = house.attribution.engine
    engine._limits = msgspec.structs.replace(engine._limits, writers=1)  # before the first batch: none has begun
    engine._threads = Threads(engine._duties())
    original = engine.db.run
    engine.db.run = lambda work, **more: (slow(None), original(work, **more))[1]  # type: ignore[method-assign,arg-type]
    answers: list[int] = []
    senders = [
        threading.Thread(
            target=lambda n=n: answers.append(house.post(envelope(fresh_event("click", f"c{n}"), batch=f"b{n}")).status)
        )
        for n in range(5)
    ]
    senders[0].start()
    assert entered.wait(20)
    for sender in senders[1:]:
        sender.start()
    while len(engine._queue) < 4:
        pass
    shed = house.post(envelope(fresh_event("click", "c9"), batch="b9"))
    assert (shed.status, shed.json()["code"], shed.headers["Retry-After"]) == (503, "f_intake_overloaded", "1")
    unread = house.post(b"x" * MIB, Content_Encoding="gzip")  # neither inflated nor judged, and the connection goes on
    assert (unread.status, unread.json()["code"]) == (503, "f_intake_overloaded")
    release.set()
    for sender in senders:
        sender.join()
    engine.db.run = original  # type: ignore[method-assign]
    assert answers == [200] * 5
    assert house.post(envelope(fresh_event("click", "c9"), batch="b9")).json()["ackItems"][0]["ackStatus"] != "rejected"


def test_batches_that_are_turned_away_unread_leave_a_row_with_what_is_legible(house: House):
    batch = envelope(fresh_event("click", "c"), batch="b1")
    assert house.post(batch, Content_Encoding="br").status == 415
    assert house.post(b"x" * (MIB + 1)).status == 413
    key = house.run(lambda tx: add_key(tx, "app", 1))
    house.attribution.keys._read_at = None
    for _ in range(3):
        assert house.post(batch).status == 401
    foreign = envelope(fresh_event("click", "c"), batch="b2", app="other")
    assert house.post(foreign, Authorization=f"Bearer {key}").status == 403
    house.attribution.turned_away.run_once()
    assert house.post(batch).status == 401
    house.attribution.turned_away.run_once()
    found = {one["code"]: one for one in house.get("/attribution/turned-away")["batches"]}
    size = len(json.dumps(batch).encode())
    told = {code: (one["appId"], one["batchId"], one["count"], one["largestBytes"]) for code, one in found.items()}
    assert told == {
        "f_encoding_unsupported": (None, None, 1, size),
        "f_body_too_large": (None, None, 1, MIB + 1),
        "f_app_key_missing": (None, None, 4, size),
        "f_app_key_foreign": ("app", "b2", 1, len(json.dumps(foreign).encode())),
    }


def test_a_flood_of_batches_that_are_turned_away_stays_bounded(house: House):
    seen = house.attribution.turned_away
    for n in range(MAX_PENDING + 500):
        seen.note(Reason.APP_KEY_FOREIGN, app_id="app", batch_id=f"b{n}")
    assert seen.run_once() == MAX_PENDING + 1
    batches = house.get("/attribution/turned-away?limit=1000")["batches"]
    (rest,) = [one for one in batches if one["appId"] is None]
    assert rest["count"] == 500


def test_when_the_store_cannot_be_written_every_item_may_be_sent_again(house: House):
    engine = house.attribution.engine
    original = engine.db.run

    def broken(work: Any, **_: Any) -> Any:
        raise StoreUnavailable("store_unavailable", "gone")

    engine.db.run = broken  # type: ignore[method-assign]
    batch = envelope(fresh_event("click", "c"), event("view", 7), None)
    answer = house.post(batch)
    assert (answer.status, answer.headers["Retry-After"]) == (503, "1")
    items = answer.json()["ackItems"]
    assert {(i["ackStatus"], i["ackReasonCode"], i["retryable"]) for i in items} == {
        ("rejected", "f_store_unavailable", True)
    }
    assert [i["eventId"] for i in items] == ["c", 7, None]
    refused = house.post(b"{")
    assert (refused.status, refused.json()["code"]) == (503, "f_store_unavailable")
    engine.db.run = original  # type: ignore[method-assign]
    assert house.post(batch).json()["ackItems"][0]["ackStatus"] == "accepted"


def test_a_dispute_is_settled_by_any_key_of_the_specification(house: House):
    house.post(envelope(fresh_event("impression", "i"), fresh_event("click", "c"), event("view", "v"), batch="b7"))
    for indexed in (False, True):
        if indexed:
            assert Indexer(house.attribution.engine.db, SystemClock(), patience=0).run_once().items == 1
        everything = house.get("/attribution/decisions")["decisions"]
        impression = next(
            d for d in everything if d["billable"] and d["billable"]["billableType"] == "billable_impression"
        )
        keys = [
            impression["audit"]["sourceEventId"],
            impression["billable"]["billingKey"],
            impression["billable"]["factId"],
            impression["attribution"]["attributionKey"],
            impression["attribution"]["factId"],
            *[record["recordKey"] for record in impression["records"]],
            impression["records"][0]["relationKeys"]["canonicalDedupKey"],
            "trace",
            "req",
            "att",
            "opp",
            "ra",
            "i",
            "app",
            "ref",
            "ref|ra",
            "b7",
        ]
        for key in keys:
            found = house.get(f"/attribution/timeline/{key.replace('#', '%23')}")["decisions"]
            assert impression["number"] in [d["number"] for d in found], key
        rejected = house.get("/attribution/timeline/b7")["decisions"]
        assert "f_event_type_unsupported" in {d["audit"]["decisionReasonCode"] for d in rejected}
        assert {d["batchId"] for d in rejected if d["batchId"]} == {"b7"}
        page = house.get("/attribution/timeline/app?limit=1")
        assert house.get(f"/attribution/timeline/app?limit=1&after={page['next']}")["decisions"] != page["decisions"]
        (view,) = house.get("/attribution/events?batchId=b7&eventId=v&code=f_event_type_unsupported")["decisions"]
        assert view["audit"]["decisionReasonCode"] == "f_event_type_unsupported"
        assert house.get("/attribution/events?eventId=v").status == 400
        assert house.get("/attribution/events?batchId=b7&appId=other")["decisions"] == []
        assert house.get("/attribution/audits?appId=other")["items"] == []
        assert house.get("/attribution/timeline/nothing") == {"decisions": [], "next": None, "refused": []}


def test_facts_audits_and_records_can_be_listed_and_paged(house: House):
    house.post(
        envelope(
            fresh_event("impression", "i"), event("view", "v"), fresh_event("click", "c", traceKey="t2"), batch="b7"
        )
    )
    for path, count in (("facts/billable", 2), ("facts/attribution", 2), ("audits", 3), ("records", 7)):
        assert len(house.get(f"/attribution/{path}")["items"]) == count
        first = house.get(f"/attribution/{path}?limit=2")
        rest = house.get(f"/attribution/{path}?after={first['next']}")
        assert len(first["items"]) + len(rest["items"]) == count
        assert rest["next"] is None
    assert {fact["recordStatus"] for fact in house.get("/attribution/facts/billable")["items"]} == {"committed"}
    assert {audit["count"] for audit in house.get("/attribution/audits")["items"]} == {1}
    assert len(house.get("/attribution/records?key=t2")["items"]) == 3


def test_a_page_of_closures_that_succeeded_leads_past_those_that_did_not(house: House, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(read, "MAX_CLOSURES_READ", 2)
    opened = [fresh_event("ad_filled", f"f{n}", renderAttemptId=f"ra{n}") for n in range(6)]
    house.post(envelope(*opened, fresh_event("impression", "i", renderAttemptId="ra9"), batch="b8"))
    pages, after = [], ""
    while after is not None:
        page = house.get(f"/attribution/closures?state=closed_success&after={after}")
        pages.append([one["closureKey"] for one in page["closures"]])
        after = page["next"]
    assert sorted(pages) == [[], [], [], ["ref|ra9"]]


def test_reissuing_is_an_operators_act_that_says_where_nothing_was_given_up(house: House):
    house.post(envelope(fresh_event("impression", "i"), batch="b8"))
    found = house.http.request("POST", f"{house.url}/attribution/reissue", json={"key": "ref|ra"})
    assert (found.status, found.json()["code"]) == (400, "reissue_nothing")


def test_closures_rejects_and_quarantine_can_be_read(house: House):
    house.post(
        envelope(
            fresh_event("impression", "i"),
            fresh_event("click", "lost", responseReference=""),
            event("view", "v"),
            batch="b7",
        )
    )
    closure = house.get("/attribution/closures/ref|ra")
    assert (closure["state"], closure["terminalSource"], closure["aggregate"]) == (
        "closed_success",
        "impression",
        "consistent_committed",
    )
    assert [c["closureKey"] for c in house.get("/attribution/closures?state=closed_success")["closures"]] == ["ref|ra"]
    assert house.get("/attribution/closures?state=open")["closures"] == []
    assert house.get("/attribution/closures/nothing").status == 404
    rejects = house.get("/attribution/rejects?batchId=b7")["rejects"]
    assert {(r["eventIndex"], r["ackReasonCode"], "raw" in r and r["raw"] is not None) for r in rejects} == {
        (1, "f_event_missing_required", True),
        (2, "f_event_type_unsupported", False),
    }
    assert {(r["eventId"], r["fieldPath"]) for r in rejects} == {("lost", "responseReference"), ("v", "eventType")}
    quarantine = house.get("/attribution/rejects?quarantined=true")["rejects"]
    assert quarantine[0]["raw"]["eventId"] == "lost"
    assert house.get("/attribution/rejects?code=f_event_type_unsupported")["rejects"][0]["eventIndex"] == 2
    page = house.get("/attribution/rejects?limit=1")
    other = house.get(f"/attribution/rejects?limit=1&before={page['next']}")
    assert page["rejects"] != other["rejects"] != []
    assert house.get("/attribution/rejects?before=soon").status == 400


def test_a_settlement_is_saved_as_a_file_from_http_and_the_console(house: House):
    house.post(envelope(fresh_event("opportunity_created", "o"), fresh_event("impression", "i1")))
    begin, end = now(-3600).replace("+", "%2B"), now(3600).replace("+", "%2B")
    asked = f"/attribution/settlement/file?begin={begin}&end={end}&by=placement"
    answer = house.http.request("GET", f"{house.url}{asked}&format=csv")
    assert answer.data.decode().splitlines()[0] == "app_id,day,placement,impressions,clicks"
    assert len(answer.data.decode().splitlines()) == 2
    assert (answer.headers["content-type"], answer.headers["content-disposition"]) == (
        "application/octet-stream",
        f'attachment; filename="settlement-{begin[:10]}-{end[:10]}-by-placement.csv"',
    )
    saved = json.loads(house.http.request("GET", f"{house.url}{asked}&format=json").data)
    assert saved == house.get(f"/attribution/settlement?begin={begin}&end={end}&by=placement")
    assert house.get("/attribution/settlement/file?begin=x&end=y").status == 400
    page = f"{house.url}/console/attribution/settlement?from={begin}&to={end}&by=placement"
    links = re.findall(r'href="([^"]*file=[a-z]+)"', house.http.request("GET", page).data.decode())
    files = [house.http.request("GET", f"{house.url}{unescape(link)}") for link in links]
    assert [file.headers["content-type"] for file in files] == ["application/octet-stream"] * 3
    assert (files[0].data, json.loads(files[1].data), files[2].data[:4]) == (answer.data, saved, b"PAR1")
    wrong = house.http.request("GET", f"{house.url}/console/attribution/settlement?from=x&file=csv")
    assert (wrong.status, "text/html" in wrong.headers["content-type"]) == (400, True)


def test_rejects_are_counted_on_an_axis_of_time_and_listed_by_span(house: House):
    began = house.patra.clock.now()
    bad = [fresh_event("click", "lost", responseReference=""), event("view", "v"), event("view", "w")]
    house.post(envelope(*bad, batch="b7"))
    found = house.get("/attribution/rejects/over-time?parts=4")
    assert (len(found["counts"]), sum(found["counts"]), found["more"]) == (4, 3, False)
    causes = {(one["code"], one["events"], sum(one["counts"])) for one in found["causes"]}
    assert causes == {("f_event_type_unsupported", 2, 2), ("f_event_missing_required", 1, 1)}
    assert sum(house.get("/attribution/rejects/over-time?quarantined=true")["counts"]) == 1
    assert sum(house.get("/attribution/rejects/over-time?code=f_event_missing_required")["counts"]) == 1
    edge = format_instant(began)
    for path in ("/attribution/rejects", "/attribution/rejects/over-time"):
        for wrong in ("since=soon", "until=soon", f"since={edge}&until={edge}"):
            assert house.get(f"{path}?{wrong}").status == 400
    assert len(house.get(f"/attribution/rejects?since={edge}")["rejects"]) == 3
    assert house.get(f"/attribution/rejects?until={edge}")["rejects"] == []
    (latest, *_) = house.get("/attribution/rejects")["rejects"]
    assert house.get(f"/attribution/rejects?until={latest['at']}")["rejects"] == []
    later = format_instant(house.patra.clock.now() + 1_000_000)
    assert house.get(f"/attribution/rejects?since={later}")["rejects"] == []
    assert sum(house.get(f"/attribution/rejects/over-time?until={edge}")["counts"]) == 0
    page = house.http.request("GET", f"{house.url}/console/attribution/rejects").data.decode()
    assert ("data-brush" in page, "f_event_type_unsupported of app" in page) == (True, True)


def test_an_empty_list_says_how_many_there_are_without_its_narrowest_filter(house: House):
    house.post(envelope(event("view", "v"), event("view", "w"), batch="b7"))

    def empty(path: str) -> tuple[str, str] | None:
        text = unescape(house.http.request("GET", f"{house.url}/console{path}").data.decode())
        said = re.search(r'Without <b class="strong">([^<]*</b>: [^<]*)\.<', text)
        drop = re.search(r'href="([^"]*)">Drop ', text)
        return (said[1].replace("</b>", ""), drop[1]) if said and drop else None

    path = "/attribution/rejects"
    assert empty(f"{path}?code=f_never&batch=b7") == ("code: 2", f"/console{path}?batch=b7")
    assert empty(f"{path}?from=2020-01-01T00:00:00Z&to=2020-01-02T00:00:00Z&batch=b7") == (
        "time: 2",
        f"/console{path}?batch=b7",
    )
    assert empty(f"{path}?code=f_never&batch=b8") is None
    assert empty(path) is None
    assert empty("/attribution/events?app=other&answer=rejected") == (
        "app: 2",
        "/console/attribution/events?answer=rejected",
    )
    assert empty("/ingest/tasks?status=FAILED") is None


def test_of_very_many_rejects_the_latest_are_counted_and_the_axis_begins_with_them(
    house: House, monkeypatch: pytest.MonkeyPatch
):
    for number in range(3):
        house.post(envelope(event("view", f"v{number}"), batch=f"b{number}"))
    monkeypatch.setattr(sys.modules["patra.attribution.queries.rejects"], "MAX_COUNTED_REJECTS", 2)
    found = house.get("/attribution/rejects/over-time?since=2020-01-01T00:00:00Z")
    first = house.get("/attribution/rejects")["rejects"][1]["at"]
    assert (found["more"], sum(found["counts"]), found["since"]) == (True, 2, first)


def test_a_settlement_counts_committed_billable_facts(house: House):
    began = now()
    events = [
        fresh_event("opportunity_created", "o"),
        fresh_event("impression", "i1"),
        fresh_event("impression", "i2", renderAttemptId="two", opportunityKey="other"),
        fresh_event("impression", "i3"),
    ]
    house.post(envelope(*events))
    span = f"begin={now(-3600).replace('+', '%2B')}&end={now(3600)}"
    by_app = house.get(f"/attribution/settlement?{span}")
    assert (by_app["impressions"], by_app["clicks"]) == (2, 0)
    assert [(line["app_id"], line["impressions"]) for line in by_app["lines"]] == [("app", 2)]
    by_placement = house.get(f"/attribution/settlement?{span}&by=placement")
    assert [(line["placement"], line["impressions"]) for line in by_placement["lines"]] == [("", 1), ("home", 1)]
    by_day = house.get(f"/attribution/settlement?{span}&by=day")
    assert {line["day"] for line in by_day["lines"]} <= {began[:10], now()[:10]}  # midnight may pass meanwhile
    assert sum(line["impressions"] for line in by_day["lines"]) == 2
    assert house.get("/attribution/settlement?begin=x&end=y").status == 400
    assert house.get(f"/attribution/settlement?begin={now()}&end=2026-01-01T00:00:00Z").status == 400
    assert house.get(f"/attribution/settlement?begin={now(10)}&end={now(20)}")["impressions"] == 0


def test_the_interface_is_described(house: House):
    paths = house.get("/openapi.json")["paths"]
    assert {"/events", "/attribution/timeline/{key}", "/attribution/settlement"} <= set(paths)


@pytest.mark.skipif(shutil.which("curl") is None, reason="the documentation shows curl")
def test_the_commands_of_the_documentation_do_what_it_says(house: House):
    page = (Path(__file__).parents[3] / "docs" / "reference" / "attribution.md").read_text()
    shell = page.partition("```sh\n")[2].partition("```")[0].replace("http://127.0.0.1:8642", house.url)
    post = shell[: shell.index("patra attribution")]
    first, second = (
        json.loads(subprocess.run(["sh", "-c", post], capture_output=True, check=True).stdout) for _ in range(2)
    )
    assert (first["overallStatus"], second["overallStatus"]) == ("accepted_all", "partial_success")
    assert {item["ackStatus"] for item in second["ackItems"]} == {"duplicate"}
    found = house.get("/attribution/timeline/ref1|ra1")["decisions"]
    assert {one["audit"]["decisionReasonCode"] for one in found} == {"f_accepted", "f_dedup_committed_duplicate"}
    settled = house.get("/attribution/settlement?begin=2026-01-01T00:00:00Z&end=2100-01-01T00:00:00Z&by=placement")
    assert [(line["placement"], line["impressions"]) for line in settled["lines"]] == [("home", 1)]
    python = page.partition("```python\n")[2].partition("```")[0].replace("http://127.0.0.1:8642", house.url)
    told: list[Any] = []
    exec(python.replace("print", "told.append"), {"told": told})
    assert [one.code for one in told] == ["f_accepted"]


def test_the_latest_decisions_are_read_first_by_app_type_and_code(house: House) -> None:
    sent = [fresh_event("ad_filled", "e-1"), fresh_event("impression", "e-2"), fresh_event("nonsense", "e-3")]
    assert house.post(envelope(*sent, sentAt=now())).status == 200
    numbers = [one["number"] for one in house.get("/attribution/newest")["decisions"]]
    assert len(numbers) == 3
    assert numbers == sorted(numbers, reverse=True)
    of_type = house.get("/attribution/newest?type=impression&appId=app")["decisions"]
    assert [one["attribution"]["eventType"] for one in of_type] == ["impression"]
    assert house.get("/attribution/newest?appId=other")["decisions"] == []
    first = house.get("/attribution/newest?limit=1")
    following = house.get(f"/attribution/newest?limit=1&before={first['next']}")
    assert first["decisions"] != following["decisions"]
    assert house.get("/attribution/archive")["where"] == "store"
    at = first["decisions"][0]["audit"]["decidedAt"]
    assert house.get(f"/attribution/newest?until={at}")["decisions"] == []
    assert len(house.get(f"/attribution/newest?since={at}&type=impression")["decisions"]) == 1
    for wrong in ("since=yesterday", "until=2026-01-01"):
        assert house.get(f"/attribution/newest?{wrong}").status == 400
