"""`patra attribution …` from the outside: replay, export, find, settle, app keys."""

import csv
import json
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import duckdb
import pytest
import structlog

from patra.app.configuration.settings import Settings, StoreSettings
from patra.app.wiring import build
from patra.attribution.commit import commit
from patra.attribution.decision.decide import ITEM_BITS
from patra.attribution.intake.batch import Tick, read_batch
from patra.attribution.storage import read
from patra.cli.main import run
from patra.kernel.clock import parse_instant
from patra.kernel.db import open_database
from patra.kernel.db.queries import statement
from tests.contract.attribution.test_record_keys import FIRST
from tests.contract.attribution.test_record_keys import SECOND as OTHER
from tests.unit.attribution.said import ABSENT, T0, at, event, replayed, sent, terminal, tick
from tests.unit.attribution.test_replay import random_log

Patra = Callable[..., str]
FILES = ["acks", "attribution", "audits", "billable", "closures", "records"]


@pytest.fixture
def patra(
    database_url: str, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> Iterator[Patra]:
    """Run a command line on the store at hand and give its output; it must succeed."""
    monkeypatch.setenv("PATRA_STORE_URL", database_url)
    assert run(["migrate"]) == 0

    def command(*args: str, code: int = 0) -> str:
        capfdbinary.readouterr()
        found = run(["attribution", *args])
        out, err = capfdbinary.readouterr()
        assert found == code, err.decode()
        return out.decode() if code == 0 else err.decode()

    yield command
    structlog.reset_defaults()  # the log went to the captured standard error, which is closed now


def log_file(folder: Path, lines: list[dict[str, object]]) -> str:
    path = folder / "log.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return str(path)


def fed(database_url: str, *lines: dict[str, object]) -> None:
    """Let a live store decide the lines."""
    patra = build(Settings(store=StoreSettings(url=database_url)))
    for line in lines:
        if "tick" in line:
            commit(patra.db, [Tick(at=parse_instant(str(line["tick"])) or 0)], due=100)
        else:
            body = line["raw"] if "raw" in line else json.dumps(line["batch"]).encode()
            commit(patra.db, [read_batch(body, parse_instant(str(line["receivedAt"])) or 0)])  # type: ignore[arg-type]
    patra.close(1)


def written(folder: Path) -> dict[str, list[object]]:
    return {name: [json.loads(line) for line in (folder / f"{name}.jsonl").read_text().splitlines()] for name in FILES}


def test_replay_writes_what_the_log_comes_to(patra: Patra, tmp_path: Path):
    lines = random_log(3)
    patra("replay", log_file(tmp_path, lines), "--out", str(tmp_path / "out"))
    output = replayed(*lines)
    assert written(tmp_path / "out") == {name: getattr(output, name) for name in FILES}


def test_replay_on_a_given_store_gives_the_same_bytes_and_wants_it_empty(
    patra: Patra, tmp_path: Path, database_url: str
):
    log = log_file(tmp_path, random_log(4))
    patra("replay", log, "--out", str(tmp_path / "temporary"))
    patra("replay", log, "--out", str(tmp_path / "given"), "--store", database_url)
    for name in FILES:
        assert (tmp_path / "temporary" / f"{name}.jsonl").read_bytes() == (
            tmp_path / "given" / f"{name}.jsonl"
        ).read_bytes()
    assert "replay_store_not_empty" in patra(
        "replay", log, "--out", str(tmp_path / "again"), "--store", database_url, code=5
    )


def test_a_bad_line_is_named_and_nothing_is_written(patra: Patra, tmp_path: Path):
    (tmp_path / "log.jsonl").write_text(json.dumps(tick(0)) + "\n{}\n")
    said = patra("replay", str(tmp_path / "log.jsonl"), "--out", str(tmp_path / "out"), code=5)
    assert "line 2" in said
    assert not (tmp_path / "out").exists()


def test_nothing_of_a_log_with_a_bad_line_is_decided_on_a_given_store(patra: Patra, tmp_path: Path, database_url: str):
    log = tmp_path / "log.jsonl"
    log.write_bytes(json.dumps(sent(0, event("click"))).encode() + b'\n{"receivedAt": "2026", "batch": "\xff"}\n')
    into = ("--out", str(tmp_path / "out"), "--store", database_url)
    said = patra("replay", str(log), *into, code=5)
    assert "line 2" in said
    assert "utf-8" in said
    assert not (tmp_path / "out").exists()
    log.write_text(json.dumps(sent(0, event("click"))) + "\n")
    patra("replay", str(log), *into)
    assert len((tmp_path / "out" / "acks.jsonl").read_text().splitlines()) == 1


def test_the_exported_log_of_a_live_store_replays_to_what_that_store_decided(
    patra: Patra, tmp_path: Path, database_url: str
):
    lines = random_log(5)
    odd = [
        {"receivedAt": at(0), "raw": b"not json \xff"},
        {"receivedAt": at(0), "raw": b'{"batchId":\n"x"}\r\n'},
        {"receivedAt": at(0), "raw": b"[1,\n2]"},
        {
            "receivedAt": at(0),
            "raw": json.dumps(sent(0, event("click", note="\ud800"), "DEEP")["batch"])
            .replace('"DEEP"', "[" * 500 + "]" * 500)
            .encode(),
        },
    ]
    fed(database_url, *odd, *lines)
    exported = patra("log", "export")
    (tmp_path / "exported.jsonl").write_text(exported)
    patra("replay", str(tmp_path / "exported.jsonl"), "--out", str(tmp_path / "out"))
    replays = written(tmp_path / "out")
    assert [ack.get("code") for ack in replays["acks"][:4]] == [
        "f_batch_malformed",
        "f_batch_missing_required",
        "f_batch_malformed",
        None,
    ]  # type: ignore[attr-defined]
    live = json.loads(patra("closures", "--json", "--limit", "1000"))
    assert {(c["closureKey"], c["state"]) for c in live} == {(c["closureKey"], c["state"]) for c in replays["closures"]}  # type: ignore[index]


def test_find_event_and_closure_tell_the_story(patra: Patra, database_url: str):
    fed(
        database_url,
        sent(0, event("ad_filled", "f"), event("view", "v"), batch="b9"),
        sent(1, terminal("t"), batch="b10"),
    )
    found = json.loads(patra("find", "ref|ra", "--json"))
    assert [d["audit"]["decisionReasonCode"] for d in found] == ["f_accepted", "f_accepted"]
    assert [d["batchId"] for d in found] == ["b9", "b10"]
    assert found[0]["keySource"] == "client_event_id"
    assert found[0]["detail"] == {"creativeId": "cr"}
    one = json.loads(patra("event", "--batch", "b9", "--event", "v", "--json"))
    assert [d["audit"]["decisionReasonCode"] for d in one] == ["f_event_type_unsupported"]
    assert patra("event", "--batch", "b9", "--event", "v", "--code", "f_accepted", "--json") == "[]\n"
    assert "attr_failure_terminal" in patra("find", "b10")
    for key in ("t", "att", "ra", "app"):
        assert "attr_failure_terminal" in patra("find", key), key
    assert len(json.loads(patra("find", "app", "--limit", "2", "--json"))) == 2
    assert json.loads(patra("find", "ref", "--app", "other", "--json")) == []
    assert len(json.loads(patra("find", "app", "--code", "f_event_type_unsupported", "--json"))) == 1
    assert "is not UTF-8" in patra("find", "\udcff", code=2)
    assert "is not UTF-8" in patra("closure", "\udcff", code=2)
    assert json.loads(patra("closure", "ref|ra", "--json"))["aggregate"] == "consistent_non_billable"
    assert "no closure" in patra("closure", "nothing", code=1)
    assert json.loads(patra("rejects", "--before", at(0), "--json")) == []
    assert "--before" in patra("rejects", "--before", "soon", code=2)
    assert [r["ackReasonCode"] for r in json.loads(patra("rejects", "--batch", "b9", "--json"))] == [
        "f_event_type_unsupported"
    ]


def test_rejects_are_shown_as_a_table_also_where_one_is_in_quarantine(patra: Patra, database_url: str):
    fed(database_url, sent(0, event("view", "v"), event("click", "c", responseReference=ABSENT)))
    listed = patra("rejects")
    assert "f_event_type_unsupported" in listed
    assert '"clickTarget":"shop"' in listed


def test_rejected_events_of_a_batch_are_listed_in_its_order(patra: Patra, database_url: str):
    fed(database_url, sent(0, *(event("view", f"v{number}") for number in range(6))))
    assert [one["eventIndex"] for one in json.loads(patra("rejects", "--json"))] == [0, 1, 2, 3, 4, 5]


def test_rejects_name_all_required_fields_that_are_missing(patra: Patra, database_url: str):
    fed(database_url, sent(0, event("click", "c", traceKey="", clickTarget=ABSENT, eventVersion=1.5)))
    heading, row = (line.split("\t") for line in patra("rejects").splitlines())
    told = dict(zip(heading, row, strict=True))
    assert (told["fieldPath"], told["alsoWrong"]) == ("traceKey", "clickTarget, eventVersion")


def test_a_price_is_listed_with_the_date_that_it_begins_at(patra: Patra, monkeypatch: pytest.MonkeyPatch):
    patra("rate", "add", "click", "150000", "EUR", "--from", "2026-01-01")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    assert "2026-01-01T00:00:00" in patra("rate", "list")


def test_an_empty_key_is_no_key_and_what_is_not_found_is_nothing(patra: Patra, database_url: str):
    fed(database_url, sent(0, event("click"), schemaVersion="9"))
    assert "is empty" in patra("find", "", code=2)
    assert "is empty" in patra("event", "--batch", "", code=2)
    assert patra("find", "unheard-of") == ""  # standard error says what was looked for


def test_closures_that_succeeded_are_looked_for_until_the_page_is_full(
    patra: Patra, database_url: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(read, "MAX_CLOSURES_READ", 1)
    opened = [event("ad_filled", f"f{n}", renderAttemptId=f"ra{n}") for n in range(4)]
    fed(database_url, sent(0, *opened, event("impression", "i", renderAttemptId="ra9")))
    found = json.loads(patra("closures", "--json", "--state", "closed_success"))
    assert [closure["closureKey"] for closure in found] == ["ref|ra9"]


def test_closures_come_in_pages(patra: Patra, database_url: str, capfdbinary: pytest.CaptureFixture[bytes]):
    fed(database_url, sent(0, *[event("click", f"c{n}", renderAttemptId=f"ra{n}") for n in range(3)]))
    patra("reasons")  # what the store said when it was fed is read
    found: list[str] = []
    after: list[str] = []
    for _ in range(3):
        assert run(["attribution", "closures", "--json", "--limit", "1", *after]) == 0
        out, err = capfdbinary.readouterr()
        found += [closure["closureKey"] for closure in json.loads(out)]
        after = err.decode().split()[-2:]
    assert sorted(found) == ["ref|ra0", "ref|ra1", "ref|ra2"]
    assert json.loads(patra("closures", "--json", *after)) == []
    assert "not the end of a page" in patra("closures", "--after", "x", code=2)


def test_a_batch_that_was_refused_as_a_whole_is_found_by_its_id_with_its_code(patra: Patra, database_url: str):
    fed(
        database_url,
        sent(0, event("click"), batch="b1", schemaVersion="9"),
        sent(1, batch="b1"),
        {"receivedAt": at(2), "raw": b"{"},
        sent(3, event("click"), batch="b1"),
    )
    listed = json.loads(patra("refused", "--json"))
    assert [(one["batchId"], one["code"]) for one in listed] == [
        (None, "f_batch_malformed"),
        ("b1", "f_batch_events_invalid"),
        ("b1", "f_batch_schema_unsupported"),
    ]
    of_batch = json.loads(patra("refused", "--batch", "b1", "--json"))
    assert [one["receivedAt"] for one in of_batch] == [at(1), at(0)]
    assert len(json.loads(patra("refused", "--before", str(listed[0]["number"]), "--limit", "1", "--json"))) == 1
    assert json.loads(patra("refused", "--batch", "b1", "--code", "f_batch_malformed", "--json")) == []
    assert len(json.loads(patra("find", "b1", "--json"))) == 1


def test_facts_audits_and_records_are_listed_as_json_lines(patra: Patra, database_url: str):
    fed(database_url, sent(0, event("impression"), event("view", "v")))
    for what, count in (("billable", 1), ("attribution", 1), ("audits", 2), ("records", 4)):
        lines = [json.loads(line) for line in patra("list", what).splitlines()]
        assert len(lines) == count
    assert len(patra("list", "records", "--key", "ref|ra").splitlines()) == 3
    assert len(patra("list", "audits", "--app", "app").splitlines()) == 2
    assert patra("list", "audits", "--app", "other") == ""


def test_a_settlement_is_a_table_csv_json_or_parquet(patra: Patra, tmp_path: Path, database_url: str):
    fed(
        database_url,
        sent(0, event("opportunity_created"), event("impression")),
        sent(1, event("click")),
        sent(2, event("impression", "again")),
    )
    span = ["--from", "2026-01-01", "--to", "2026-01-02T00:00:00Z"]
    assert patra("settle", *span).splitlines()[-1].split("\t") == ["total", "1", "1"]
    assert [row.split("\t") for row in patra("settle", *span, "--by", "day").splitlines()] == [
        ["day", "impressions", "clicks"],
        ["2026-01-01", "1", "1"],
        ["total", "1", "1"],
    ]
    assert patra("settle", *span, "--by", "placement").splitlines()[0] == "app\tplacement\timpressions\tclicks"
    assert (
        patra("settle", *span, "--by", "placement", "--format", "csv")
        == "app_id,day,placement,impressions,clicks\napp,,home,1,1\n"
    )
    assert json.loads(patra("settle", *span, "--by", "day", "--format", "json"))["lines"][0]["day"] == "2026-01-01"
    patra("settle", *span, "--format", "parquet", "--out", str(tmp_path / "s.parquet"))
    assert duckdb.sql(f"SELECT app_id, impressions, clicks FROM '{tmp_path}/s.parquet'").fetchall() == [("app", 1, 1)]
    assert patra("settle", "--from", "2026-01-02", "--to", "2026-01-03").splitlines()[-1].split("\t")[1:] == ["0", "0"]
    assert "--from" in patra("settle", "--from", "soon", "--to", "2026-01-03", code=2)
    assert "--to" in patra("settle", "--from", "2026-01-03", "--to", "2026-01-02", code=2)
    assert patra("settle", "--from", "1970-01-01T00:00:00Z", "--to", "9999-12-31").endswith("total\t1\t1\n")
    for name in ("s.csv", "s.JSON"):
        patra("settle", *span, "--out", str(tmp_path / name))
    assert (tmp_path / "s.csv").read_text() == "app_id,day,placement,impressions,clicks\napp,,,1,1\n"
    assert json.loads((tmp_path / "s.JSON").read_text())["impressions"] == 1
    assert "--format" in patra("settle", *span, "--out", str(tmp_path / "s.txt"), code=2)
    assert "--out" in patra("settle", *span, "--format", "table", "--out", str(tmp_path / "s.csv"), code=2)
    assert "--out" in patra("settle", *span, "--format", "parquet", code=2)
    for name in ("no/s.csv", "no/s.parquet"):
        assert "file_unusable" in patra("settle", *span, "--out", str(tmp_path / name), code=5)
    empty = ["--from", "2026-02-01", "--to", "2026-02-02"]
    patra("settle", *empty, "--by", "placement", "--out", str(tmp_path / "none.parquet"))
    assert duckdb.sql(f"SELECT count(*) FROM '{tmp_path}/none.parquet'").fetchall() == [(0,)]
    assert T0


@pytest.mark.parametrize("seed", range(3))
def test_the_forms_of_a_settlement_agree_with_each_other_and_with_a_replay(
    patra: Patra, tmp_path: Path, database_url: str, seed: int
):
    lines = random_log(seed)
    fed(database_url, *lines)
    patra("replay", log_file(tmp_path, lines), "--out", str(tmp_path / "facts"))
    billable = written(tmp_path / "facts")["billable"]
    kinds = ("billable_impression", "billable_click")
    days = Counter((fact["factAt"][:10], fact["billableType"]) for fact in billable)  # type: ignore[index]
    by_day = [[day, *(days[day, kind] for kind in kinds)] for day in sorted({day for day, _ in days})]
    totals = [sum(line[1] for line in by_day), sum(line[2] for line in by_day)]
    span = ["--from", "2025-01-01", "--to", "2027-01-01"]
    for by in ("app", "day", "placement"):
        for form in ("csv", "json", "parquet"):
            patra("settle", *span, "--by", by, "--out", str(tmp_path / f"{by}.{form}"))
        settled = json.loads((tmp_path / f"{by}.json").read_text())
        rows = [tuple(line.values()) for line in settled["lines"]]
        assert [settled["impressions"], settled["clicks"]] == totals
        assert duckdb.sql(f"SELECT * FROM '{tmp_path}/{by}.parquet'").fetchall() == rows
        with (tmp_path / f"{by}.csv").open(newline="") as file:
            assert [(*line[:3], int(line[3]), int(line[4])) for line in list(csv.reader(file))[1:]] == rows
        if by == "day":
            assert [[day, impressions, clicks] for _, day, _, impressions, clicks in rows] == by_day
    assert totals[0] > 0


def test_a_settlement_goes_by_the_instant_whatever_its_offset_and_by_days_of_utc(patra: Patra, database_url: str):
    instants = ["2025-12-31T23:59:59.999999Z", "2026-01-01T00:00:00Z", "2026-01-01T23:59:59.999999Z"]
    events = [event("impression", f"e{n}", renderAttemptId=f"r{n}", eventAt=one) for n, one in enumerate(instants)]
    fed(database_url, sent(86_400, *events))

    def counted(begin: str, end: str, by: str = "day") -> list[list[object]]:
        found = json.loads(patra("settle", "--from", begin, "--to", end, "--by", by, "--format", "json"))
        return [[line["day"], line["impressions"]] for line in found["lines"]]

    assert counted("2025-12-31", "2026-01-02") == [["2025-12-31", 1], ["2026-01-01", 2]]
    assert counted("2026-01-01", "2026-01-02") == [["2026-01-01", 2]]
    assert counted("2026-01-01T08:00:00+08:00", "2026-01-02") == [["2026-01-01", 2]]
    assert counted("2026-01-01", "2026-01-01T23:59:59.999999Z") == [["2026-01-01", 1]]
    assert counted("2025-12-31T18:59:59.999999-05:00", "2025-12-31T19:00:00-05:00") == [["2025-12-31", 1]]
    assert counted("2026-01-01", "2026-01-01") == []


def test_a_settlement_tells_what_it_does_not_count(
    patra: Patra, database_url: str, capfdbinary: pytest.CaptureFixture[bytes], tmp_path: Path
):
    fed(database_url, sent(0, *[event("impression", f"e{n}", renderAttemptId=f"r{n}") for n in range(4)]))
    db = open_database(database_url)
    for place, status in ((1, "new"), (2, "conflicted"), (3, "new")):
        text = f"UPDATE att_billable SET status = '{status}' WHERE decision_id = {(1 << ITEM_BITS) + place}"
        db.run(lambda tx, text=text: tx.script(text))
    db.close()
    span = ["settle", "--from", "2026-01-01", "--to", "2026-01-02"]
    found = json.loads(patra(*span, "--format", "json"))
    assert (found["impressions"], found["uncounted"]) == (1, {"conflicted": 1, "new": 2})
    assert run(["attribution", *span, "--out", str(tmp_path / "s.csv")]) == 0
    assert b"not counted, since the archive does not have them: 1 conflicted, 2 new" in capfdbinary.readouterr().err
    assert (
        json.loads(patra("settle", "--from", "2026-01-02", "--to", "2026-01-03", "--format", "json"))["uncounted"] == {}
    )


def test_a_placement_counts_also_where_it_comes_later_than_its_fact_and_is_empty_where_it_never_comes(
    patra: Patra, database_url: str
):
    fed(
        database_url,
        sent(0, event("impression"), event("impression", "other", renderAttemptId="r2", opportunityKey="o2")),
    )
    span = ["settle", "--from", "2026-01-01", "--to", "2026-01-02", "--by", "placement", "--format", "csv"]
    assert patra(*span).splitlines()[1:] == ["app,,,2,0"]
    fed(database_url, sent(50, event("opportunity_created", "late"), batch="b2"))
    fed(database_url, sent(60, event("opportunity_created", "second", placementKey="foot"), batch="b3"))
    assert patra(*span).splitlines()[1:] == ["app,,,1,0", "app,,home,1,0"]


def test_a_log_is_exported_into_a_file_also_where_nothing_came_in(patra: Patra, tmp_path: Path):
    patra("log", "export", "--out", str(tmp_path / "log.jsonl"))
    assert (tmp_path / "log.jsonl").read_bytes() == b""
    assert patra("replay", str(tmp_path / "log.jsonl"), "--out", str(tmp_path / "facts")).startswith("0 batches")
    assert "no/log.jsonl" in patra("log", "export", "--out", str(tmp_path / "no/log.jsonl"), code=5)


@pytest.mark.parametrize(
    "command", [["log", "export"], ["settle", "--from", "2026-01-01", "--to", "2026-02-01", "--format", "csv"]]
)
def test_nothing_is_written_over_the_store(patra: Patra, database_url: str, command: list[str]):
    if not database_url.startswith("sqlite"):
        pytest.skip("a file is the store of SQLite alone")
    fed(database_url, sent(0, event("impression")))
    assert "file_is_the_store" in patra(*command, "--out", database_url.removeprefix("sqlite:///"), code=5)
    assert [one["audit"]["decisionAction"] for one in json.loads(patra("find", "ref|ra", "--json"))] == ["both_emit"]


def test_app_keys_are_added_listed_rotated_and_revoked(patra: Patra):
    key = patra("app", "add", "shop").strip()
    assert key.startswith("pk_")
    listed = json.loads(patra("app", "list", "--json"))
    assert [(k["app_id"], k["revoked_at"]) for k in listed] == [("shop", None)]
    assert patra("app", "rotate", "shop").strip() != key
    patra("app", "revoke", "shop")
    assert all(k["revoked_at"] for k in json.loads(patra("app", "list", "--json")))
    assert "app_key_unknown" in patra("app", "revoke", "shop", code=5)
    assert "app_key_unknown" in patra("app", "rotate", "nobody", code=5)
    for _ in range(17):  # two of them begin with the same digit
        patra("app", "add", "many")
    ids = [k["key_id"] for k in json.loads(patra("app", "list", "--json")) if k["app_id"] == "many"]
    twice = next(one[0] for one in ids if sum(other[0] == one[0] for other in ids) > 1)
    assert "app_key_ambiguous" in patra("app", "revoke", "many", "--key", twice, code=5)
    assert "app_key_unknown" in patra("app", "revoke", "many", "--key", "", code=5)
    assert patra("app", "revoke", "many", "--key", ids[0]).split() == [ids[0]]
    assert len(patra("app", "revoke", "many").split()) == 16
    assert "app_id_invalid" in patra("app", "add", "not legal", code=5)


def test_every_reason_is_listed(patra: Patra):
    listed = {r["code"]: r for r in json.loads(patra("reasons", "--json"))}
    assert listed["f_store_unavailable"]["retryable"]
    assert not listed["f_accepted"]["retryable"]


def test_a_record_in_conflict_is_issued_again_and_the_act_is_audited(patra: Patra, database_url: str):
    fed(database_url, sent(0, event("ad_filled", "f1", **FIRST)), sent(1, event("ad_filled", "f2", **OTHER)), tick(200))
    made = json.loads(patra("reissue", "r|x|a", "--json"))
    assert {(one["archiveContractVersion"], one["recordStatus"]) for one in made} == {("f_archive_v1.r2", "committed")}
    db = open_database(database_url)
    acts = db.read(lambda tx: tx.fetch(statement("acts", "SELECT act, subject FROM app_audit")))
    db.close()
    assert ("attribution.record.reissue", "r|x|a") in acts
    assert "reissue_nothing" in patra("reissue", "r|x|a", code=5)


def test_a_log_under_other_rules_tells_the_difference_in_facts_and_money(patra: Patra, tmp_path: Path):
    log = log_file(tmp_path, [sent(0, event("click")), sent(200, event("impression"), batch="b2")])
    (tmp_path / "next.toml").write_text('name = "v2"\nclick_wait_seconds = 300\n')
    patra("rate", "add", "click", "150000", "EUR", "--from", "2026-01-01")
    (tmp_path / "rates.json").write_text(patra("rate", "list", "--json"))
    rules, rates = ("--rules", str(tmp_path / "next.toml")), ("--rates", str(tmp_path / "rates.json"))
    shown = patra("replay", log, *rules, *rates)
    assert "billable_click\t0\t1\t+1" in shown
    assert "micros EUR\t0\t150000\t+150000" in shown
    found = json.loads(patra("replay", log, *rules, *rates, "--json", "--out", str(tmp_path / "out")))
    assert [(one["billingKey"], one["only"]) for one in found["facts"]] == [("ref|ra|billable_click", "v2")]
    assert len(written(tmp_path / "out")["billable"]) == 2
    assert "--out" in patra("replay", log, code=2)
    assert "--store" in patra("replay", log, *rules, "--store", "sqlite:///x.db", code=2)


def test_a_log_that_lost_its_beginning_is_compared_under_no_rules(patra: Patra, tmp_path: Path):
    log = log_file(tmp_path, [{"purgedBefore": at(0)}, sent(200, event("impression"))])
    (tmp_path / "next.toml").write_text('name = "v2"\nclick_wait_seconds = 300\n')
    refused = patra("replay", log, "--rules", str(tmp_path / "next.toml"), "--out", str(tmp_path / "out"), code=5)
    assert "log_beginning_missing" in refused
    assert not (tmp_path / "out").exists()
