"""`patra ingest run|replay|blackbox|alerts|cursors|errors` from the outside, against a provider."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml

from patra.cli.ingest.run import going_on
from patra.cli.main import run
from patra.ingest.planning.trigger import Trigger, activity_key
from patra.ingest.vocabulary.codes import Operation
from tests.contract.ingest.running.world import T0, T1, pack
from tests.support.hostile_provider import Provider, Reply, crowded, serving

Command = Callable[..., tuple[str, str]]
WINDOW = ("--from", "2026-03-01", "--to", "2026-03-03")


@pytest.fixture
def provider() -> Provider:
    return Provider(crowded(60, T0, T1, crowd=False))


@pytest.fixture
def patra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes], provider: Provider
) -> Iterator[Command]:
    """Run a command line on a store of its own, with the provider's pack loaded; gives its output and its errors."""
    monkeypatch.setenv("PATRA_STORE_URL", f"sqlite:///{tmp_path / 'patra.db'}")
    monkeypatch.setenv("PATRA_INGEST_KEEP_BODIES", "true")

    def command(*args: str, code: int = 0) -> tuple[str, str]:
        capfdbinary.readouterr()
        found = run(["ingest", *args])
        out, err = (stream.decode() for stream in capfdbinary.readouterr())
        assert found == code, out + err
        return out, err

    with serving(provider) as url:
        file = tmp_path / "hostile.yaml"
        file.write_text(yaml.safe_dump(pack(url, "PAGE")), "utf-8")
        command("pack", "load", str(file))
        yield command


def test_run_says_what_it_did_and_has_nothing_to_do_the_second_time(
    patra: Command, provider: Provider, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    out, err = patra("run", "hostile", "search", *WINDOW)
    assert "4 of 4 windows done" in out
    assert "60 new records" in out
    assert "no record for these" not in out
    assert err.startswith("hostile search HARVEST: windows ")
    asked = len(provider.asked)
    out, _ = patra("run", "hostile", "search", *WINDOW)
    assert "0 new records" in out or "done or under way" in out
    assert len(provider.asked) == asked
    watermark, _ = patra("cursors", "--json")
    assert json.loads(watermark)[0]["cursor_value"] == "2026-03-03T00:00:00Z"
    assert run(["audit", "--act", "ingest.run", "--subject", "hostile/search", "--json"]) == 0
    assert len(json.loads(capfdbinary.readouterr().out)) == 2


def test_a_harvest_that_matches_nothing_says_that_the_source_has_nothing(patra: Command) -> None:
    out, _ = patra("run", "hostile", "search", "--from", "2024-03-01", "--to", "2024-03-03")
    assert "0 new records" in out
    assert "the source has no record for these parameters in this window" in out


def test_run_fails_when_something_was_left_behind_and_says_what(patra: Command, provider: Provider) -> None:
    serve = provider._served
    provider._served = lambda m, p, q, b: (  # type: ignore[method-assign]
        Reply(status=400, body=b"no such field", kind="text/plain")
        if q.get("from") == "2026-03-01T12:00:00Z"
        else serve(m, p, q, b)
    )
    out, err = patra("run", "hostile", "search", *WINDOW, code=1)
    assert "3 of 4 windows done" in out
    assert "left behind: 1" in err
    assert "2026-03-01T12:00:00Z … 2026-03-02T00:00:00Z" in err
    assert "→ run it again" in err
    errors = json.loads(patra("errors", "hostile", "--json")[0])
    assert [one["error_level"] for one in errors] == ["L2"]
    run_id, batch = errors[0]["run_id"], str(errors[0]["batch_no"])
    replayed, _ = patra("replay", run_id, batch)
    assert "= status" in replayed  # the same refusal
    provider._served = serve  # type: ignore[method-assign]
    replayed, _ = patra("replay", run_id, batch, code=1)
    assert "≠ status" in replayed
    assert "400 → 200" in replayed
    patra("run", "hostile", "search", *WINDOW)


def test_run_asks_the_gate_of_all_processes_where_there_is_one(
    patra: Command, redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    redis = pytest.importorskip("redis").Redis.from_url(redis_url)
    redis.delete("patra:rate:hostile|search")
    monkeypatch.setenv("PATRA_INGEST_REDIS_URL", redis_url)
    patra("run", "hostile", "search", *WINDOW)
    assert redis.exists("patra:rate:hostile|search")
    redis.delete("patra:rate:hostile|search")
    plan = json.loads(patra("plans", "--json")[0])[0]["plan"]
    patra("replay", f"{plan}.t000001.r1", "1")
    assert redis.exists("patra:rate:hostile|search")


def test_a_backfill_is_known_again_by_the_words_of_its_bounds() -> None:
    def key(since: int, *said: str | None) -> str:
        trigger = Trigger(source="s", endpoint="e", operation=Operation.BACKFILL, since=since)
        return activity_key(going_on(trigger, *said), "s/e")

    assert key(1, "P7D", None) == key(2, "P7D", None)
    assert key(1, "P7D", None) != key(1, "P8D", None)
    assert key(1, "2026-01-01", "P1D") == key(1, "2026-01-01", "P1D")
    assert key(1, "2026-01-01", None) != key(2, "2026-01-02", None)


def test_run_refuses_what_cannot_be_planned(patra: Command) -> None:
    assert "not planned" in patra("run", "hostile", "nowhere", code=5)[1]
    assert "--patience" in patra("run", "hostile", "search", "--patience", "soon", code=2)[1]


def test_replay_and_blackbox_tell_of_a_batch(patra: Command, tmp_path: Path) -> None:
    patra("run", "hostile", "search", *WINDOW)
    plan = json.loads(patra("plans", "--json")[0])[0]["plan"]
    run_id = f"{plan}.t000001.r1"
    found = json.loads(patra("replay", run_id, "1", "--json")[0])
    assert found["conclusion"] == "i_replay_equal"
    kept, _ = patra("replay", run_id, "1", "--kept")
    assert "(kept body)" in kept
    assert "nothing was written" in kept
    assert "--why" in patra("replay", run_id, "1", "--full", code=2)[1]
    whole, _ = patra("replay", run_id, "1", "--kept", "--full", "--why", "TICKET-7")
    assert "rows: " in whole
    assert "same (undone)" in whole
    patra("replay", run_id, "99", code=5)
    out, _ = patra("blackbox", run_id, "1", "-o", str(tmp_path / "evidence"), "--why", "a question")
    assert "body.json" in out
    evidence = json.loads((tmp_path / "evidence" / "evidence.json").read_text("utf-8"))
    assert evidence["exported"]["why"] == "a question"
    assert evidence["exported"]["validUntil"] > evidence["exported"]["at"]
    assert evidence["body"]["hash"] == evidence["body_hash"]
    assert json.loads((tmp_path / "evidence" / "body.json").read_text("utf-8"))["items"]
    assert run(["audit"]) == 0
    patra("blackbox", run_id, "99", "--why", "a question", code=1)
    patra("blackbox", run_id, "1", code=2)  # the reason is asked for


def test_alerts_are_listed_and_one_that_fires_is_an_exit_code(patra: Command, tmp_path: Path) -> None:
    from patra.ingest.operations.alerting.monitor import Watch
    from patra.kernel.clock import SystemClock
    from patra.kernel.db import open_database

    assert patra("alerts")[0] == "no alert fires\n"
    db = open_database(f"sqlite:///{tmp_path / 'patra.db'}")
    from patra.ingest.planning.operations import BREAKER, halt

    db.run(lambda tx: halt(tx, "hostile", "search", BREAKER, reason="i_failed_fatal", detail="401", by="t", now=1))
    Watch(db, SystemClock()).run_once()
    db.close()
    out, _ = patra("alerts", code=1)
    assert "fatal" in out
    assert "patra ingest lift" in out
    assert json.loads(patra("alerts", "--json", code=1)[0])[0]["state"] == "FIRING"


def test_what_to_do_is_said_once(patra: Command, provider: Provider) -> None:
    provider._served = lambda *_: Reply(status=401, body=b"who are you", kind="text/plain")  # type: ignore[method-assign]
    _, err = patra("run", "hostile", "search", *WINDOW, "--executors", "1", code=1)
    assert "check the credential" in err
    assert "then lift the halt) (check" not in err
    assert "`patra ingest lift hostile search`" in err


def test_an_incomplete_window_ends_with_exit_code_1_and_is_read_anew_when_the_pack_is_mended(
    patra: Command, provider: Provider, tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    """The pack reads a next token from a place where the provider stops giving it: 25 of 60 came."""
    serve = provider._served

    def told_elsewhere(m: str, p: str, q: dict[str, str], b: bytes) -> Reply:
        reply = serve(m, p, q, b)
        tree = json.loads(reply.body)
        tree["cursor"] = tree.pop("next", None)
        return Reply(status=200, body=json.dumps(tree).encode(), kind=reply.kind)

    provider._served = told_elsewhere  # type: ignore[method-assign]
    tree = yaml.safe_load((tmp_path / "hostile.yaml").read_text("utf-8"))
    url = tree["defaults"]["http"]["baseUrl"]
    broken = pack(url, "TOKEN", window={"maxWindow": "P2D"})
    (tmp_path / "broken.yaml").write_text(yaml.safe_dump(broken | {"version": "2"}), "utf-8")
    patra("pack", "load", str(tmp_path / "broken.yaml"))
    _, err = patra("run", "hostile", "search", *WINDOW, code=1)
    assert "i_incomplete: incomplete, 35 missing: 25 of 60 promised positions came; read 2 times" in err
    assert "check the path of the next token or URL" in err
    errors = json.loads(patra("errors", "hostile", "--json")[0])
    assert [one["reason_code"] for one in errors] == ["i_incomplete"]
    run(["doctor", "--json"])
    checks = json.loads(capfdbinary.readouterr().out)
    found = next(one for one in checks if one["name"] == "ingest.completeness")
    assert (found["health"], "35 records or more are missing: hostile/search" in found["found"]) == ("warning", True)

    mended = pack(url, "TOKEN", window={"maxWindow": "P2D"}, pagination={"nextTokenPath": "$.cursor"})
    (tmp_path / "mended.yaml").write_text(yaml.safe_dump(mended | {"version": "3"}), "utf-8")
    patra("pack", "load", str(tmp_path / "mended.yaml"))
    out, _ = patra("run", "hostile", "search", *WINDOW)
    assert "35 new records" in out
    run(["doctor", "--json"])
    checks = json.loads(capfdbinary.readouterr().out)
    assert next(one for one in checks if one["name"] == "ingest.completeness")["health"] == "ok"


def test_coverage_shows_every_window_and_certifies_it(patra: Command, tmp_path: Path) -> None:
    patra("run", "hostile", "search", *WINDOW)
    out, _ = patra("coverage", "hostile", "search")
    assert "4 of 4 windows add up: 60 promised, 60 read, 60 landed, 0 in quarantine, 0 missing" in out
    page = json.loads(patra("coverage", "hostile", "--limit", "3", "--json")[0])
    rest = json.loads(patra("coverage", "hostile", "--limit", "3", "--after", page["after"], "--json")[0])
    windows = [*page["windows"], *rest["windows"]]
    assert [one["since"] for one in windows] == sorted(one["since"] for one in windows)
    assert (len(windows), rest["after"], windows[0]["since"]) == (4, "", "2026-03-01T00:00:00Z")
    file = tmp_path / "certificate.json"
    patra("coverage", "hostile", "--out", str(file))
    out, _ = patra("coverage", "verify", str(file))
    assert "hostile: 4 windows, all add up" in out
    forged = file.read_text("utf-8").replace('"promised": 60', '"promised": 59')
    file.write_text(forged, "utf-8")
    _, err = patra("coverage", "verify", str(file), code=1)
    assert "the hash does not fit" in err
    file.write_text("{}", "utf-8")
    patra("coverage", "verify", str(file), code=1)


def test_a_reread_reads_again_and_leaves_the_watermark(
    patra: Command, provider: Provider, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    patra("run", "hostile", "search", *WINDOW)
    before = json.loads(patra("cursors", "--json")[0])[0]["cursor_value"]
    asked = len(provider.asked)
    out, _ = patra("reread", "hostile", "search", "--from", "2026-03-01", "--to", "2026-03-02", "--why", "an outage")
    assert "2 of 2 windows done" in out
    assert len(provider.asked) > asked
    marks = {one["operation_code"]: one["cursor_value"] for one in json.loads(patra("cursors", "--json")[0])}
    assert marks["HARVEST"] == before
    assert run(["audit", "--act", "ingest.reread", "--json"]) == 0
    assert json.loads(capfdbinary.readouterr().out)[0]["detail"]["why"] == "an outage"
    patra("reread", "hostile", "search", "--from", "2026-03-01", "--to", "2026-03-02", code=2)
