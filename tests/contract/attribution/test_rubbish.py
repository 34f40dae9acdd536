"""What no SDK should send, sent to a real server: never a 500, never a batch lost or poisoned, and the log replays (A4)."""

import gzip
import json
import random
import socket
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote, urlsplit

import pytest
import zstandard

from patra.app.configuration.engine_settings import AttributionSettings
from patra.app.configuration.settings import Settings, StoreSettings, WebSettings
from patra.app.wiring import build
from patra.attribution.log_export import export_log
from patra.attribution.queries import listing
from patra.web.asgi import app
from patra.web.uvicorn_server import serving
from tests.contract.attribution.test_http import MIB, House, fresh_event
from tests.unit.attribution.said import envelope, replayed

ENVELOPE_CODES = {
    "f_batch_malformed",
    "f_batch_missing_required",
    "f_batch_id_invalid",
    "f_batch_schema_unsupported",
    "f_batch_events_invalid",
}


@pytest.fixture
def house(database_url: str) -> Iterator[House]:
    settings = Settings(
        store=StoreSettings(url=database_url), web=WebSettings(port=0), attribution=AttributionSettings()
    )
    patra = build(settings)
    with serving(app(patra), settings.web) as served:
        yield House(patra, served.url)
    patra.close(5)


def deep(levels: int) -> str:
    return "[" * levels + "]" * levels


RUBBISH = {
    "a huge integer": "9" * 400,
    "an integer past 64 bits": "18446744073709551616",
    "an integer of 4,300 digits": "9" * 4300,
    "an integer of 4,301 digits": "9" * 4301,
    "an integer of 100,000 digits": "9" * 100_000,
    "a negative integer past 64 bits": "-9223372036854775809",
    "a number past every double": "1e400",
    "a number below every double": "-1e400",
    "a number next to nothing": "1e-400",
    "a minus zero": "-0.0",
    "half a surrogate pair": '"\\ud800"',
    "the other half": '"a\\udfffb"',
    "halves in the wrong order": '"\\udc00\\ud800"',
    "U+0000": '"\\u0000"',
    "a text of U+0000": '"' + "\\u0000" * 500 + '"',
    "the last code point": '"\\udbff\\udfff"',
    "no character": '"\\uffff\\ufffe"',
    "a text of 1,025 characters": '"' + "x" * 1025 + '"',
    "a text of 500,000 characters": '"' + "x" * 500_000 + '"',
    "an empty text": '""',
    "a right-to-left override": '"\\u202e\\u0007\\u001b[31m"',
    "a quotation": '"\\"\'`;--\\\\"',
    "a nest of 200": deep(200),
    "a nest of 255": deep(255),
    "a nest of 300": deep(300),
    "a nest of 10,000": deep(10_000),
    "a nest of 200,000": deep(200_000),
    "a nest of objects": '{"a":' * 300 + "1" + "}" * 300,
    "a nest beside half a surrogate pair": f'["\\ud800", {deep(200)}]',
    "a name that stands twice": '{"a": 1, "a": [2], "a": null}',
    "a name of half a surrogate pair": '{"\\ud800": 1, "\\udfff": 2}',
    "a name of U+0000": '{"\\u0000": "\\u0000"}',
    "an empty name": '{"": {"": ""}}',
    "true": "true",
    "null": "null",
    "a list of everything": '[1e400, "\\ud800", null, {"a": 99999999999999999999999}, true, -1.5e-310]',
}
"""Values as JSON has them, written out: some of them no encoder would write."""

FIELDS = [
    "eventId",
    "eventType",
    "eventAt",
    "eventVersion",
    "traceKey",
    "requestKey",
    "responseReference",
    "renderAttemptId",
    "creativeId",
    "idempotencyKey",
    "eventIdScope",
    "extensions",
    "note",
]


def with_value(sent: dict[str, Any], field: str, value: str) -> str:
    """An event as JSON, with a field of any value."""
    rest = json.dumps({name: one for name, one in sent.items() if name != field})
    return f'{rest[:-1]},"{field}":{value}}}'


def batch_of(events: list[str], batch_id: str) -> bytes:
    return json.dumps(envelope("EVENTS", batch=batch_id)).replace('"EVENTS"', ",".join(events)).encode()


def good(name: str) -> dict[str, Any]:
    return fresh_event("opportunity_created", name)


def test_rubbish_in_some_events_costs_no_other_event_its_place(house: House):
    for number, (what, value) in enumerate(RUBBISH.items()):
        fields = FIELDS if len(value) < 50_000 else ["note", "traceKey"]
        bad = [
            with_value(fresh_event("click", f"bad{i}", renderAttemptId=f"x{number}.{i}"), field, value)
            for i, field in enumerate(fields)
        ]
        answer = house.post(batch_of([json.dumps(good("before")), *bad, json.dumps(good("after"))], f"b{number}"))
        assert answer.status == 200, (what, answer.data[:300])
        items = answer.json()["ackItems"]
        assert [item["eventIndex"] for item in items] == list(range(len(fields) + 2))
        assert {items[0]["ackReasonCode"], items[-1]["ackReasonCode"]} == {"f_accepted"}, what
    everything_can_be_read(house)


def test_rubbish_as_an_event_costs_no_other_event_its_place(house: House):
    for number, (what, value) in enumerate(RUBBISH.items()):
        events = [json.dumps(good("before")), value, json.dumps(good("after"))]
        answer = house.post(batch_of(events, f"b{number}"))
        assert answer.status == 200, (what, answer.data[:300])
        assert [item["ackStatus"] for item in answer.json()["ackItems"]] == ["accepted", "rejected", "accepted"], what
    everything_can_be_read(house)


def test_rubbish_in_the_envelope_is_refused_with_a_code_or_decides_nothing(house: House):
    fields = ("batchId", "appId", "sdkVersion", "schemaVersion", "events", "extensions")
    for number, (what, value) in enumerate(RUBBISH.items()):
        for field in (fields[number % len(fields)], "note"):
            body = with_value(envelope(fresh_event("click", "c"), batch=f"b{field}"), field, value)
            answer = house.post(body.encode())
            assert answer.status in {200, 400}, (what, field, answer.data[:300])
            if answer.status == 400:
                assert answer.json()["code"] in ENVELOPE_CODES, (what, field)
    everything_can_be_read(house)


def test_a_sound_batch_with_any_bytes_changed_is_answered_with_a_code(house: House):
    dice = random.Random(4)
    body = batch_of([json.dumps(fresh_event(name, name)) for name in ("ad_filled", "impression", "click")], "b")
    for _ in range(150):
        changed = bytearray(body)
        for _ in range(dice.choice([1, 1, 2, 5, 40])):
            place = dice.randrange(len(changed))
            match dice.randrange(4):
                case 0:
                    changed[place] = dice.randrange(256)
                case 1:
                    del changed[place : place + dice.choice([1, 3, 30])]
                case 2:
                    changed[place:place] = dice.choice(
                        [b"\\ud800", b"\x00", b"\xff", b"[", b'"', b"\\", b"1e999", b"NaN"]
                    )
                case _:
                    changed[place:place] = changed[place : place + 20]
        answer = house.post(bytes(changed))
        assert answer.status in {200, 400}, (bytes(changed), answer.data)
    everything_can_be_read(house)


@pytest.mark.parametrize("word", ["NaN", "Infinity", "-Infinity", "nan", "undefined", "'x'", "01", "1.", ".5", "+1"])
def test_what_is_no_json_is_malformed_as_a_whole_wherever_it_stands(house: House, word: str):
    for field in ("note", "eventAt", "eventVersion"):
        answer = house.post(batch_of([with_value(fresh_event("click", "c"), field, word)], "b"))
        assert (answer.status, answer.json()["code"]) == (400, "f_batch_malformed"), field


def test_compressed_rubbish_is_refused_with_a_code(house: House):
    body = batch_of([json.dumps(fresh_event("click", "c"))], "b")
    for encoding, packed in (("gzip", gzip.compress(body)), ("zstd", zstandard.ZstdCompressor().compress(body))):
        for cut in (1, 5, len(packed) // 2, len(packed) - 1):
            answer = house.post(packed[:cut], Content_Encoding=encoding)
            assert (answer.status, answer.json()["code"]) == (400, "f_encoding_malformed"), (encoding, cut)
        assert house.post(packed, Content_Encoding=encoding).status == 200
        assert house.post(b"", Content_Encoding=encoding).json()["code"] == "f_encoding_malformed"
    for bomb in (gzip.compress(bytes(500 * MIB), 9), zstandard.ZstdCompressor().compress(bytes(500 * MIB))):
        encoding = "gzip" if bomb[:2] == b"\x1f\x8b" else "zstd"
        assert house.post(bomb, Content_Encoding=encoding).status == 413
    twice = house.post(gzip.compress(gzip.compress(body)), Content_Encoding="gzip")
    assert twice.json()["code"] == "f_batch_malformed"


def test_a_content_length_that_lies_harms_only_its_own_connection(house: House):
    body = batch_of([json.dumps(fresh_event("click", "c"))], "b")
    for length in (len(body) - 10, len(body) + 10, 10**15, 0):
        said = talked(house, b"POST /events HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: %d\r\n\r\n" % length, body)
        assert b" 500 " not in said.split(b"\r\n")[0], (length, said)
    for header in (b"-1", b"1e3", b"0x10", b"9" * 40, b"\xb2", b"5, 5", b""):
        said = talked(
            house, b"POST /events HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: " + header + b"\r\n\r\n", body
        )
        assert b" 500 " not in said.split(b"\r\n")[0], (header, said)
    said = talked(house, b"POST /events HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\nfff\r\n", body)
    assert b" 500 " not in said.split(b"\r\n")[0]
    assert house.post(batch_of([json.dumps(fresh_event("click", "d"))], "d")).status == 200
    everything_can_be_read(house)


def test_who_sends_far_too_much_gets_its_answer_once_all_is_sent(house: House):
    """Cut off in the middle of its writing, a client would see a reset connection and send the same again."""
    body = b" " * (10 * 1024 * 1024)
    head = b"POST /events HTTP/1.1\r\nHost: 127.0.0.1\r\n"
    chunk = b"100000\r\n" + body[: 1 << 20] + b"\r\n"
    for request in (
        head + b"Content-Length: %d\r\n\r\n" % len(body) + body,
        head + b"Transfer-Encoding: chunked\r\n\r\n" + 10 * chunk + b"0\r\n\r\n",
    ):
        place = urlsplit(house.url)
        with socket.create_connection((place.hostname or "", place.port or 0), timeout=30) as peer:
            peer.sendall(request)
            assert peer.recv(12) == b"HTTP/1.1 413"
    assert house.post(batch_of([json.dumps(fresh_event("click", "d"))], "d")).status == 200


def test_questions_of_any_text_are_answered(house: House):
    house.post(batch_of([json.dumps(fresh_event("click", "c"))], "b"))
    for text in (
        "\ud800",
        "\x00",
        "é" * 500,
        "bf_" + "z" * 32,
        "f_dedup_v1:",
        "attr_click|f_dedup_v1:x",
        "%",
        "//",
        "' OR 1",
    ):
        key = quote(text.encode(errors="surrogatepass"), safe="")
        for path in (f"timeline/{key}", f"closures/{key}", f"rejects?batchId={key}", f"records?key={key}"):
            answer = house.http.request("GET", f"{house.url}/attribution/{path}")
            assert answer.status in {200, 400, 404}, (text, path, answer.data)


def talked(house: House, *parts: bytes) -> bytes:
    """Send bytes over a connection of its own, say that no more come, and give what is answered."""
    place = urlsplit(house.url)
    with socket.create_connection((place.hostname or "", place.port or 0), timeout=30) as peer:
        try:
            peer.sendall(b"".join(parts))
            peer.shutdown(socket.SHUT_WR)
            said = b""
            while part := peer.recv(65536):
                said += part
        except OSError:  # it hung up on us: a fair answer to a lie
            return b""
        return said


def everything_can_be_read(house: House) -> None:
    """All that was stored is there to be read, every record is committed, and the log replays to the same answers."""
    db = house.patra.db
    after = -1
    while (page := house.get(f"/attribution/decisions?after={after}&limit=1000"))["decisions"]:
        after = page["decisions"][-1]["number"]
    assert house.http.request("GET", f"{house.url}/attribution/rejects?limit=1000").status == 200
    assert house.http.request("GET", f"{house.url}/attribution/rejects?quarantined=true&limit=1000").status == 200
    assert house.http.request("GET", f"{house.url}/attribution/closures?limit=1000").status == 200
    replay = replayed(*export_log(db, house.patra.clock.now()))
    for what, again in (("audits", replay.audits), ("billable", replay.billable), ("attribution", replay.attribution)):
        live: list[dict[str, Any]] = []
        following: int | None = -1
        while following is not None:
            some, following = db.read(lambda tx, w=what, f=following: listing(tx, w, after=f, limit=1000))  # type: ignore[misc]
            live += some
        bare = [
            {name: one for name, one in line.items() if what != "billable" or name != "recordStatus"} for line in live
        ]
        assert sorted(map(json.dumps, bare)) == sorted(map(json.dumps, again)), what
