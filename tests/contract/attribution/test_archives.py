"""Parquet files and an HTTP endpoint as archives: F21."""

import json
import sqlite3
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import duckdb
import pytest

from patra.attribution.contract.reasons import Reason
from patra.attribution.decision.closure_rules import Status
from patra.attribution.decision.output_records import Record
from patra.attribution.delivery.http_archive import MAX_SPLITS, HttpArchive
from patra.attribution.delivery.parquet_archive import ParquetArchive
from patra.attribution.delivery.port import Outcome, Rejected, Retry, Written
from patra.attribution.delivery.relay import open_archive
from patra.attribution.replay import replay
from patra.attribution.storage.read import every_decision
from patra.kernel.errors import ConfigInvalid
from tests.unit.attribution.said import event, fresh, sent, tick


def some_records() -> list[Record]:
    db = fresh()
    replay(
        [sent(0, event("ad_filled"), event("click", traceKey="é\x00'")), tick(120), sent(130, event("impression"))], db
    )
    return [record for decision in every_decision(db) for record in decision.records]


def rows(folder: Path) -> list[tuple[Any, ...]]:
    return duckdb.sql(
        f"SELECT record_key, record_status, payload, record, output_at FROM '{folder}/records-*.parquet' ORDER BY 1, 2"
    ).fetchall()


def test_parquet_files_hold_every_record_once(tmp_path: Path):
    records = some_records()
    archive = ParquetArchive(str(tmp_path / "it's"))
    assert archive.write(records[:3]) == [Written()] * 3
    assert archive.write(records) == [Written()] * len(records)
    archive.close()
    found = rows(tmp_path / "it''s")
    assert [row[0] for row in found] == sorted(record.key for record in records)
    by_key = {record.key: record for record in records}
    for key, status, payload, record, output_at in found:
        assert (status, json.loads(payload), json.loads(record)) == (
            by_key[key].status,
            by_key[key].payload,
            by_key[key].body,
        )
        assert output_at.year == 2026


def test_a_record_in_a_new_status_is_added_and_another_payload_is_a_mismatch(tmp_path: Path):
    record = some_records()[0]
    archive = ParquetArchive(str(tmp_path))
    archive.write([record])
    superseded = record._replace(
        status=type(record.status).SUPERSEDED, body={**record.body, "recordStatus": "superseded"}
    )
    assert archive.write([superseded]) == [Written()]
    assert archive.write([record._replace(payload={**record.payload, "traceKey": "other"})]) == [
        Rejected(Reason.RECORDKEY_MISMATCH)
    ]
    assert [row[1] for row in rows(tmp_path)] == ["committed", "superseded"]


def test_two_records_of_one_call_with_one_key_are_told_apart(tmp_path: Path):
    record = some_records()[0]
    other = record._replace(payload={**record.payload, "decidedAt": "later"})
    superseded = record._replace(status=Status.SUPERSEDED)
    archive = ParquetArchive(str(tmp_path))
    assert archive.write([record, other, record, superseded]) == [
        Written(),
        Rejected(Reason.RECORDKEY_MISMATCH),
        Written(),
        Written(),
    ]
    assert [(row[0], row[1]) for row in rows(tmp_path)] == [(record.key, "committed"), (record.key, "superseded")]
    archive.close()


def test_a_file_that_a_crash_left_behind_does_not_count(tmp_path: Path):
    records = some_records()
    archive = ParquetArchive(str(tmp_path))
    archive.write(records)
    archive.close()
    (tmp_path / "records-left.parquet").write_bytes(b"half a file")
    (tmp_path / ".records-left.parquet.part").write_bytes(b"half a file")
    archive = ParquetArchive(str(tmp_path))
    assert archive.write(records) == [Written()] * len(records)
    assert len(rows(tmp_path)) == len(records)
    assert len([path for path in tmp_path.iterdir() if path.name != "index.db"]) == 1


def test_a_command_that_opens_the_archive_while_another_process_writes_removes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    records = some_records()
    archive = ParquetArchive(str(tmp_path))
    save = archive._save

    def watched(some: Sequence[Record], path: Path) -> None:
        save(some, path)
        other = ParquetArchive(str(tmp_path))  # `patra attribution settle` does that
        other._index.execute("PRAGMA busy_timeout=0")
        assert other.write(some) == [Retry(Reason.ARCHIVE_UNAVAILABLE)] * len(some)
        other.close()

    monkeypatch.setattr(archive, "_save", watched)
    assert archive.write(records) == [Written()] * len(records)
    assert len(rows(tmp_path)) == len(records)


def test_a_folder_that_cannot_be_written_is_tried_again(tmp_path: Path):
    archive = ParquetArchive(str(tmp_path))
    blocker = sqlite3.connect(tmp_path / "index.db", isolation_level=None)
    archive._index.execute("PRAGMA busy_timeout=0")
    blocker.execute("BEGIN EXCLUSIVE")
    assert archive.write(some_records()[:1]) == [Retry(Reason.ARCHIVE_UNAVAILABLE)]
    blocker.execute("ROLLBACK")
    blocker.close()
    archive._folder = tmp_path / "gone"
    assert archive.write(some_records()[:1]) == [Retry(Reason.ARCHIVE_UNAVAILABLE)]


class Endpoint:
    def __init__(self) -> None:
        self.bodies: list[Any] = []
        self.answers: list[tuple[int, bytes]] = []
        self.refuses: set[str] = set()
        self.refusal = 422
        self.takes: Callable[[], object] = lambda: None
        self.keys: list[str | None] = []


@contextmanager
def endpoint() -> Iterator[tuple[Endpoint, str]]:
    state = Endpoint()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            state.bodies.append(body)
            state.keys.append(self.headers.get("Authorization"))
            state.takes()
            status, answer = state.answers.pop(0) if state.answers else (200, b"")
            if {entry["record"]["recordKey"] for entry in body["records"]} & state.refuses:
                status, answer = state.refusal, b'{"code": "too_odd"}'
            self.send_response(status)
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield state, f"http://127.0.0.1:{server.server_port}/archive"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_an_endpoint_is_told_the_key_where_there_is_one():
    with endpoint() as (state, url):
        for key in ("secret", ""):
            archive = open_archive(url, key)
            assert archive is not None
            assert archive.write(some_records()[:1]) == [Written()]
            archive.close()
    assert state.keys == ["Bearer secret", None]


def test_an_endpoint_gets_record_payload_and_digest():
    records = some_records()
    with endpoint() as (state, url):
        archive = HttpArchive(url)
        assert archive.write(records) == [Written()] * len(records)
        archive.close()
    assert [entry["record"] for entry in state.bodies[0]["records"]] == [record.body for record in records]
    assert [entry["payload"] for entry in state.bodies[0]["records"]] == [record.payload for record in records]
    assert [entry["payloadDigest"] for entry in state.bodies[0]["records"]] == [record.digest for record in records]


@pytest.mark.parametrize(
    ("status", "code"),
    [
        (408, Reason.ARCHIVE_TIMEOUT),
        (429, Reason.ARCHIVE_RATE_LIMITED),
        (500, Reason.ARCHIVE_UNAVAILABLE),
        (503, Reason.ARCHIVE_UNAVAILABLE),
        (302, Reason.ARCHIVE_UNAVAILABLE),
        (401, Reason.ARCHIVE_UNAVAILABLE),
        (403, Reason.ARCHIVE_UNAVAILABLE),
        (404, Reason.ARCHIVE_UNAVAILABLE),
        (405, Reason.ARCHIVE_UNAVAILABLE),
    ],
)
def test_an_endpoint_that_cannot_now_is_tried_again(status: int, code: Reason):
    with endpoint() as (state, url):
        archive = HttpArchive(url)
        state.answers = [(status, b"")] * 3
        assert archive.write(some_records()[:2]) == [Retry(code)] * 2
        archive.close()


def test_an_endpoint_that_is_not_there_or_silent_is_tried_again():
    assert HttpArchive("http://127.0.0.1:9/").write(some_records()[:1]) == [Retry(Reason.ARCHIVE_UNAVAILABLE)]
    listener = __import__("socket").create_server(("127.0.0.1", 0))
    archive = HttpArchive(f"http://127.0.0.1:{listener.getsockname()[1]}/", read=0.05)
    assert archive.write(some_records()[:1]) == [Retry(Reason.ARCHIVE_TIMEOUT)]
    archive.close()
    listener.close()


def test_one_record_that_is_refused_does_not_take_the_others_along():
    records = some_records()
    with endpoint() as (state, url):
        archive = HttpArchive(url)
        state.refuses = {records[2].key}
        outcomes = archive.write(records)
        archive.close()
    assert outcomes == [Rejected("too_odd") if record is records[2] else Written() for record in records]


def test_one_record_that_the_endpoint_stumbles_over_does_not_take_the_others_along():
    records = [
        record._replace(body={**record.body, "relationKeys": {**record.body["relationKeys"], "closureKeyOrNA": str(n)}})
        for n, record in enumerate(some_records() * 40)
    ]
    records = [record._replace(key=f"{n:064x}") for n, record in enumerate(records)]
    records = [record._replace(body={**record.body, "recordKey": record.key}) for record in records]
    with endpoint() as (state, url):
        archive = HttpArchive(url)
        state.refuses, state.refusal = {records[123].key, records[301].key}, 500
        outcomes = archive.write(records)
        archive.close()
    assert [n for n, outcome in enumerate(outcomes) if outcome != Written()] == [123, 301]
    assert {outcomes[123], outcomes[301]} == {Retry(Reason.ARCHIVE_UNAVAILABLE)}


def test_an_endpoint_that_is_down_is_not_asked_for_every_half():
    with endpoint() as (state, url):
        archive = HttpArchive(url)
        records = some_records() * 40
        state.answers = [(500, b"")] * 100
        assert set(archive.write(records)) == {Retry(Reason.ARCHIVE_UNAVAILABLE)}
        archive.close()
    assert len(state.bodies) <= 2 * MAX_SPLITS + 1


def test_a_refusal_that_names_no_code_is_told_by_our_own():
    records = some_records()[:1]
    unnamed = {"results": [{"recordKey": records[0].key, "status": "refused"}]}
    with endpoint() as (state, url):
        archive = HttpArchive(url)
        state.answers = [(422, b"no JSON"), (422, b"{}"), (200, json.dumps(unnamed).encode())]
        assert [archive.write(records) for _ in range(3)] == [[Rejected(Reason.ARCHIVE_REFUSED)]] * 3
        archive.close()


def test_an_endpoint_may_answer_for_each_record():
    records = some_records()[:4]
    results = [
        {"recordKey": records[0].key, "status": "written"},
        {"recordKey": records[1].key, "status": "retry", "code": "g_archive_rate_limited"},
        {"recordKey": records[2].key, "status": "refused", "code": "f_output_recordkey_payload_mismatch"},
        {"recordKey": records[3].key, "status": "written"},
    ]
    with endpoint() as (state, url):
        archive = HttpArchive(url)
        state.answers = [(200, json.dumps({"results": results}).encode())]
        assert archive.write(records) == [
            Written(),
            Retry(Reason.ARCHIVE_RATE_LIMITED),
            Rejected(Reason.RECORDKEY_MISMATCH),
            Written(),
        ]
        archive.close()


def test_a_record_that_the_results_do_not_name_is_sent_again():
    """§3.8.29: nobody confirmed that it is written."""
    records = some_records()[:3]
    named = {"results": [{"recordKey": records[1].key, "status": "written"}]}
    with endpoint() as (state, url):
        archive = HttpArchive(url)
        state.answers = [(200, json.dumps(named).encode()), (200, b'{"results": []}')]
        assert archive.write(records) == [
            Retry(Reason.ARCHIVE_UNAVAILABLE),
            Written(),
            Retry(Reason.ARCHIVE_UNAVAILABLE),
        ]
        assert archive.write(records) == [Retry(Reason.ARCHIVE_UNAVAILABLE)] * 3
        state.answers = [(200, b'{"taken": 3}'), (204, b"")]
        assert [archive.write(records) for _ in range(2)] == [[Written()] * 3] * 2
        archive.close()


def test_a_page_that_somebody_else_answers_with_is_not_taken_for_written():
    with endpoint() as (state, url):
        archive = HttpArchive(url)
        state.answers = [(200, b"\n<!doctype html><title>Log in</title>")]
        assert archive.write(some_records()[:1]) == [Retry(Reason.ARCHIVE_UNAVAILABLE)]
        archive.close()


@pytest.mark.parametrize("code", ["a\x00b", "x" * 129, "two words", "\u2713", "a\n"])
def test_a_code_that_is_none_is_told_by_our_own(code: str):
    records = some_records()[:1]
    refused = {"results": [{"recordKey": records[0].key, "status": "refused", "code": code}]}
    with endpoint() as (state, url):
        archive = HttpArchive(url)
        state.answers = [(200, json.dumps(refused).encode()), (400, json.dumps({"code": code}).encode())]
        assert [archive.write(records) for _ in range(2)] == [[Rejected(Reason.ARCHIVE_REFUSED)]] * 2
        archive.close()


def test_sending_in_halves_ends_when_the_time_of_one_call_is_up():
    records = some_records()
    now = [0.0]
    with endpoint() as (state, url):
        state.takes = lambda: now.__setitem__(0, now[0] + 10)  # seconds, whatever it answers
        state.refuses = {record.key for record in records}
        archive = HttpArchive(url, connect=5, read=30, monotonic=lambda: now[0])
        left, asked, found = records, list[int](), list[Outcome]()
        while left:
            outcomes = archive.write(left)
            asked.append(len(state.bodies) - sum(asked))
            found += [outcome for outcome in outcomes if outcome != Retry(Reason.ARCHIVE_TIMEOUT)]
            left = [r for r, outcome in zip(left, outcomes, strict=True) if outcome == Retry(Reason.ARCHIVE_TIMEOUT)]
        state.refuses, state.takes = set(), lambda: None
        sizes = len(state.bodies)
        for _ in range(4):
            archive.write(records)
        archive.close()
    assert max(asked) == 4  # the fourth is asked in the last 5 seconds
    assert found == [Rejected("too_odd")] * len(records)
    assert [len(body["records"]) for body in state.bodies[sizes:]][-1] == len(records)  # all at once again


def test_nothing_of_a_group_is_sent_behind_a_half_that_failed():
    records = [record for record in some_records() if record.group == "ref|ra|trace"][:4]
    assert len(records) == 4
    with endpoint() as (state, url):
        archive = HttpArchive(url)
        state.answers = [(400, b""), (503, b"")]
        assert archive.write(records) == [Retry(Reason.ARCHIVE_UNAVAILABLE)] * 4
        archive.close()
    assert len(state.bodies) == 2


def test_an_answer_that_cannot_be_understood_is_not_taken_for_written():
    records = some_records()[:2]
    keys = [record.key for record in records]
    odd = {"results": [{"recordKey": keys[0], "status": "failed"}, {"recordKey": keys[1], "status": "written"}]}
    with endpoint() as (state, url):
        archive = HttpArchive(url)
        state.answers = [(200, json.dumps(odd).encode()), (200, b'{"results": [{"recordKey"'), (200, b'{"results": 1}')]
        assert archive.write(records) == [Retry(Reason.ARCHIVE_UNAVAILABLE), Written()]
        assert [archive.write(records) for _ in range(2)] == [[Retry(Reason.ARCHIVE_UNAVAILABLE)] * 2] * 2
        state.answers = [(200, b"fine"), (200, b" " * (5 * 1024 * 1024))]
        assert archive.write(records) == [Written()] * 2
        assert archive.write(records) == [Retry(Reason.ARCHIVE_UNAVAILABLE)] * 2
        archive.close()


def test_an_answer_that_drips_in_ends_when_its_time_is_up():
    over = threading.Event()

    class Dripping(BaseHTTPRequestHandler):
        def do_POST(self):
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(200)
            self.send_header("Content-Length", "1000000")
            self.end_headers()
            with suppress(OSError):
                while not over.wait(0.01):
                    self.wfile.write(b" ")

        def log_message(self, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Dripping)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    archive = HttpArchive(f"http://127.0.0.1:{server.server_port}/", read=0.2)
    assert archive.write(some_records()[:1]) == [Retry(Reason.ARCHIVE_TIMEOUT)]
    archive.close()
    over.set()
    server.shutdown()
    thread.join()
    server.server_close()


def test_an_archive_is_named_by_where_it_is(tmp_path: Path):
    assert open_archive("store") is None
    assert isinstance(open_archive(f"parquet:{tmp_path}"), ParquetArchive)
    assert isinstance(open_archive("https://archive.example/records"), HttpArchive)
    for wrong in ("tape", "parquet:", ""):
        with pytest.raises(ConfigInvalid):
            open_archive(wrong)
