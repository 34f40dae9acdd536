"""`patra ingest …` from the outside: packs, snapshots, plans, operations."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from patra.cli.main import run
from patra.ingest.packs import bundled
from tests.unit.ingest.sample_packs import HERE, changed, line_of

Command = Callable[..., str]


@pytest.fixture
def patra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]) -> Command:
    """Run a command line on a store of its own; gives standard output and error together."""
    monkeypatch.setenv("PATRA_STORE_URL", f"sqlite:///{tmp_path / 'patra.db'}")

    def command(*args: str, code: int = 0) -> str:
        capfdbinary.readouterr()
        found = run(["ingest", *args])
        out, err = (stream.decode() for stream in capfdbinary.readouterr())
        assert found == code, out + err
        return out if "--json" in args else out + err

    return command


def pack(folder: Path, name: str, *replacements: tuple[str, str]) -> str:
    path = folder / f"{name}.yaml"
    path.write_text(changed(name, *replacements), "utf-8")
    return str(path)


def test_check_reports_every_problem_with_file_line_path_and_advice(patra, tmp_path):
    file = pack(
        tmp_path, "page", ("method: GET", "method: FETCH"), ("pageSize: 100, maxPage", "pagesize: 100, maxPage")
    )
    said = patra("pack", "check", file, code=1)
    line = line_of(Path(file).read_text("utf-8"), "method: FETCH")
    assert f"error: {file}:{line}:13: endpoints.articles.method: the dictionary http_method has no code 'FETCH'" in said
    assert "did you mean pageSize?" in said
    assert "cannot be loaded" in said
    found = json.loads(patra("pack", "check", file, "--json", code=1))
    assert {problem["code"] for problem in found} == {"i_code_unknown", "i_pack_unknown_field"}
    assert "may be loaded" in patra("pack", "check", str(HERE))
    assert "cannot be read" in patra("pack", "check", str(tmp_path / "nothing.yaml"), code=1)
    assert "Correct these first" in said, "an entry that cannot be read hides what is checked after it"
    assert "Correct these first" not in patra("pack", "check", str(HERE))


def test_load_writes_all_or_nothing_and_says_what_changed(patra, tmp_path):
    good, bad = pack(tmp_path, "token"), pack(tmp_path, "page", ("method: GET", "method: FETCH"))
    assert "nothing was loaded: 1 of 2" in patra("pack", "load", good, bad, code=1)
    assert "store_missing" in patra("sources", code=3)
    assert "tokenlike 1.0: new, version 1" in patra("pack", "load", good)
    assert "unchanged (version 1)" in patra("pack", "load", good)
    newer = pack(tmp_path, "token", ("maxPageSize: 1000", "maxPageSize: 1500"))
    assert "~ endpoints.works.limits.maxPageSize: 1000 → 1500" in patra("pack", "diff", newer, code=1)
    assert "~ endpoints.works.limits.maxPageSize: 1000 → 1500" in patra("pack", "load", newer)
    assert "no difference" in patra("pack", "diff", newer)
    assert "1000 → 1500" in patra("pack", "diff", "tokenlike", "1", "2", code=1)
    assert [row["version"] for row in json.loads(patra("pack", "show", "tokenlike", "--versions", "--json"))] == [1, 2]
    assert "maxPageSize: 1500" in patra("pack", "show", "tokenlike")
    assert "maxPageSize: 1000" in patra("pack", "show", "tokenlike", "--version", "1")
    assert "i_source_unknown" in patra("pack", "show", "nope", code=5)


def test_load_is_silent_about_what_is_known_of_the_packs_that_come_with_patra(patra, tmp_path):
    file = tmp_path / "pubmed.yaml"
    file.write_text(bundled.text("pubmed"), "utf-8")
    assert "warning:" in patra("pack", "check", str(file))
    assert patra("pack", "load", str(file)).startswith("pubmed ")
    file.write_text(bundled.text("pubmed").replace("first, stable: true", "first, stable: false"), "utf-8")
    said = patra("pack", "load", str(file))
    assert f"{file}: 1 warning; `patra ingest pack check {file}` shows them" in said


def test_what_show_prints_can_be_loaded_again(patra, tmp_path):
    patra("pack", "load", pack(tmp_path, "twophase"))
    again = tmp_path / "again.yaml"
    again.write_text(patra("pack", "show", "pmlike"), "utf-8")
    assert "no difference" in patra("pack", "diff", str(again))


def test_the_schema_is_printed_for_editors(patra):
    schema = json.loads(patra("pack", "schema"))
    assert schema["$schema"].endswith("2020-12/schema")
    assert "Pagination" in schema["$defs"]


def test_a_snapshot_is_shown_with_its_origins(patra, tmp_path):
    file = pack(tmp_path, "token")
    patra("pack", "load", file)
    said = patra("spec", "show", "tokenlike", "works", "--set", "retry.maxAttempts=3")
    assert f"pagination.pageSize\t1000\tsection\t{file}:37" in said
    assert "retry.maxAttempts\t3\ttrigger" in said
    assert "retry.factor" not in said
    assert "retry.factor\t2.0\tplatform" in patra("spec", "show", "tokenlike", "works", "--all")
    assert json.loads(patra("spec", "show", "tokenlike", "works", "--json"))["pagination"]["pageSize"] == 1000
    assert "--set" in patra("spec", "show", "tokenlike", "works", "--set", "retry.nope=3", code=2)
    assert "i_param_invalid" in patra("spec", "show", "tokenlike", "works", "--param", "nope=1", code=5)


def test_a_plan_from_dry_run_to_lineage(patra, tmp_path):
    patra("pack", "load", pack(tmp_path, "offset"))
    window = ("--operation", "BACKFILL", "--from", "2026-01-01", "--to", "2026-01-04")
    dry = patra("plan", "atomlike", "query", *window, "--dry-run")
    assert "TIME\t2026-01-03T00:00:00Z\t2026-01-04T00:00:00Z" in dry
    assert "3 slices, at least 3 requests; at least 0:00:" in dry
    cost = json.loads(patra("plan", "atomlike", "query", *window, "--dry-run", "--json"))["cost"]
    assert (cost["slices"], cost["requests"], cost["measured"]) == (3, 3, False)
    assert ": patra ingest plans\n" in patra("plans")
    assert "is READY, 3 new slices" in patra("plan", "atomlike", "query", *window)
    assert "done or under way" in patra("plan", "atomlike", "query", *window, code=1)
    (found,) = json.loads(patra("plans", "--json"))
    assert (found["status"], found["slices"]) == ("READY", 3)
    assert len(json.loads(patra("tasks", "--plan", found["plan"], "--json"))) == 3
    lineage = json.loads(patra("lineage", found["plan"], "--json"))
    assert lineage["task_counts"] == {"QUEUED": 3}
    assert "QUEUED\t3" in patra("queue")
    assert "i_plan_unknown" in patra("lineage", "nope", code=5)


@pytest.mark.parametrize(
    ("args", "code", "said"),
    [
        (["nope", "x"], 5, "no source 'nope'"),
        (["atomlike", "qery"], 5, "did you mean query?"),
        (["atomlike", "query", "--from", "yesterday"], 2, "is not an instant"),
        (["atomlike", "query", "--from", "P1Y"], 2, "calendar"),
        (["atomlike", "query", "--param", "x"], 2, "NAME=VALUE"),
        (["atomlike", "query", "--operation", "BACKFILL"], 5, "--from"),
        (["atomlike", "query", "--operation", "UPDATE"], 5, "DETAIL"),
    ],
)
def test_a_trigger_that_is_refused_says_why(patra, tmp_path, args, code, said):
    patra("pack", "load", pack(tmp_path, "offset"))
    assert said in patra("plan", *args, code=code)


def test_what_operators_do_is_done_and_audited(patra, tmp_path, capfdbinary):
    patra("pack", "load", pack(tmp_path, "offset"))
    patra("pause", "atomlike", "--why", "maintenance")
    assert "maintenance" in patra("plan", "atomlike", "query", code=5)
    assert "pause" in patra("sources")
    patra("resume", "atomlike")
    patra("resume", "atomlike", code=1)
    patra("lift", "atomlike", "query", code=1)
    patra("plan", "atomlike", "query", "--from", "P3D")
    (plan,) = json.loads(patra("plans", "--json"))
    patra("cancel", f"{plan['plan']}.t000001")
    patra("cancel", f"{plan['plan']}.s000002")
    patra("requeue", f"{plan['plan']}.t000001", code=1)
    assert "changed" in patra("cancel", plan["plan"], "--why", "wrong window")
    patra("signal", "atomlike", "query", "id1", "id2")
    assert "i_endpoint_unknown" in patra("signal", "atomlike", "nowhere", "id1", code=5)
    assert "i_" in patra("signal", "nobody", "query", "id1", code=5)
    assert "i_paused" in patra("refused")
    capfdbinary.readouterr()
    assert run(["audit", "--json"]) == 0
    audit = json.loads(capfdbinary.readouterr().out)
    (lifted,) = [entry for entry in audit if entry["act"] == "ingest.lift"]
    assert lifted["detail"]["reason"] == "i_lifted"
    assert [entry["act"] for entry in audit] == [
        "ingest.signal",
        "ingest.cancel_plan",
        "ingest.requeue_task",
        "ingest.cancel_slice",
        "ingest.cancel_task",
        "ingest.plan",
        "ingest.lift",
        "ingest.resume",
        "ingest.resume",
        "ingest.plan",
        "ingest.pause",
        "ingest.pack_load",
    ]


def test_schedules_show_when_they_fire(patra, tmp_path):
    patra("pack", "load", pack(tmp_path, "page"))
    (row,) = json.loads(patra("schedules", "--json"))
    assert (row["job"], row["cron"]) == ("pagelike/hourly", "5 * * * *")
