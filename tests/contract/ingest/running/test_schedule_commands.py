"""`patra ingest schedule …` as a librarian uses it: add, look, run, export, remove."""

import json
import sys
from pathlib import Path

import duckdb
import pytest
import yaml

from tests.contract.ingest.running import test_running_commands
from tests.contract.ingest.running.test_running_commands import Command
from tests.support.hostile_provider import Provider

patra = test_running_commands.patra
provider = test_running_commands.provider


@pytest.fixture
def file(patra: Command, tmp_path: Path) -> Path:
    """The pack with windows so wide that all of it is one, and works instead of raw records."""
    path = tmp_path / "hostile.yaml"
    tree = yaml.safe_load(path.read_text("utf-8"))
    tree["version"] = "2"
    search = tree["endpoints"]["search"]
    search["window"] |= {"maxWindow": "P3000D"}
    search["params"] = {"term": {"default": ""}}
    search["http"]["queryTemplate"]["term"] = "${params.term}"
    search["output"] = {"shape": "work", "fields": {"title": "$.title"}}
    path.write_text(yaml.safe_dump(tree), "utf-8")
    patra("pack", "load", str(path))
    return path


@pytest.mark.usefixtures("file")
def test_a_schedule_is_added_run_with_its_export_and_removed(
    patra: Command, provider: Provider, tmp_path: Path
) -> None:
    out = tmp_path / "library.duckdb"
    when = ("--at", "03:30", "--timezone", "Europe/Berlin", "--jitter", "PT5M", "--missed", "all")
    then = ("--then", "export", "works", "--out", str(out), "--dedupe")
    said, _ = patra("schedule", "add", "hostile/nightly", "search", *when, *then)
    assert said == "schedule hostile/nightly is added; `patra up` runs it, the first time at once\n"
    (row,) = json.loads(patra("schedule", "list", "--json")[0])
    assert (row["job"], row["on"], row["cron"], row["timezone"]) == (
        "hostile/nightly",
        "yes",
        "30 3 * * *",
        "Europe/Berlin",
    )
    assert row["then"] == f"export works to {out}"
    said, _ = patra("schedule", "run", "hostile/nightly", "--work")
    assert "60 new records" in said
    assert f"60 rows in {out}" in said
    with duckdb.connect(str(out), read_only=True) as library:
        assert library.execute("SELECT count(*) FROM works").fetchall() == [(60,)]
    (line,) = json.loads(patra("schedule", "history", "hostile/nightly", "--json")[0])
    assert (line["outcome"], line["then"], line["then_detail"]) == ("i_planned", "DONE", f"60 rows in {out}")
    patra("schedule", "disable", "hostile/nightly")
    assert json.loads(patra("schedules", "--json")[0])[0]["on"] == "no"
    patra("schedule", "remove", "hostile/nightly")
    assert json.loads(patra("schedule", "list", "--json")[0]) == []
    assert provider.asked


@pytest.mark.usefixtures("file")
def test_on_a_terminal_schedules_that_are_off_are_names(
    patra: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    then = ("--then", "export", "works", "--out", str(tmp_path / "otters.duckdb"))
    patra("schedule", "add", "hostile/otters", "search", "--at", "03:30", *then)
    patra("schedule", "add", "hostile/fog", "search", "--at", "03:30")
    patra("schedule", "disable", "hostile/fog")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    said, _ = patra("schedule", "list")
    rows = [line for line in said.splitlines() if "30 3 * * *" in line]
    assert len(rows) == 1
    assert "export works to otters.duckdb" in said, "the file is named from the folder that one is in"
    assert "off: hostile/fog; `patra ingest schedule enable JOB` turns one on" in said


@pytest.mark.usefixtures("file")
@pytest.mark.parametrize(
    ("said", "code", "word"),
    [
        (("nightly", "search", "--at", "03:30"), 5, "is not a SOURCE/NAME"),
        (("hostile/n", "search"), 2, "say when: --cron CRON, or --at HH:MM"),
        (("hostile/n", "search", "--at", "25:00"), 2, "is not a time; write 03:30"),
        (("hostile/n", "search", "--cron", "every night"), 5, "is not a schedule"),
        (
            ("hostile/n", "serch", "--at", "03:30"),
            5,
            "i_pack_bad_reference: endpoint: hostile has no endpoint 'serch' (did you mean search? known: ",
        ),
        (("nobody/n", "search", "--at", "03:30"), 5, "no such source is loaded: nobody"),
        (("hostile/n", "search", "--at", "03:30", "--timezone", "Mars/Olympus"), 5, "is not a time zone"),
        (("hostile/n", "search", "--at", "03:30", "--jitter", "soon"), 5, "soon"),
        (("hostile/n", "search", "--at", "03:30", "--operation", "BACKFILL"), 5, "say how far back it goes"),
        (
            ("hostile/n", "search", "--at", "03:30", "--param", "tern=1"),
            5,
            "i_param_invalid: params.tern: hostile search has no parameter 'tern' (did you mean term? known: term)",
        ),
        (("hostile/n", "details", "--at", "03:30"), 5, "hostile details does not offer HARVEST"),
        (("hostile/n", "search", "--at", "03:30", "--topic", "sea otters"), 2, "'sea otters' is not a name"),
        (
            ("hostile/n", "search", "--at", "03:30", "--operation", "UPDATE", "--topic", "otters"),
            5,
            "it finds nothing for a topic",
        ),
        (("hostile/n", "search", "--at", "03:30", "--out", "x.duckdb"), 2, "belong to --then export"),
        (("hostile/n", "search", "--at", "03:30", "--then", "export", "works"), 2, "needs a file: --out FILE"),
        (("hostile/n", "search", "--at", "03:30", "--then", "export", "works", "--out", "x.doc"), 5, "x.doc"),
    ],
)
def test_what_cannot_be_scheduled_is_refused_with_a_reason(
    patra: Command, said: tuple[str, ...], code: int, word: str
) -> None:
    _, err = patra("schedule", "add", *said, code=code)
    assert word in err
    assert "hostile.yaml" not in err, "what was said on the command line is not the pack's fault"
    assert json.loads(patra("schedule", "list", "--json")[0]) == []


@pytest.mark.usefixtures("file")
def test_names_are_taken_once_and_a_packs_schedule_is_only_turned_off(patra: Command, file: Path) -> None:
    tree = yaml.safe_load(file.read_text("utf-8")) | {"version": "3"}
    tree["schedules"] = {"daily": {"endpoint": "search", "operation": "HARVEST", "cron": "0 3 * * *", "enabled": False}}
    file.write_text(yaml.safe_dump(tree), "utf-8")
    patra("pack", "load", str(file))
    _, err = patra("schedule", "add", "hostile/daily", "search", "--at", "03:30", code=5)
    assert "there is a schedule hostile/daily" in err
    assert "it belongs to its pack: choose another name" in err
    patra("schedule", "add", "hostile/own", "search", "--at", "03:30")
    _, err = patra("schedule", "add", "hostile/own", "search", "--at", "04:30", code=5)
    assert "`patra ingest schedule change hostile/own …` changes it" in err
    _, err = patra("schedule", "remove", "hostile/daily", code=5)
    assert "`patra ingest schedule disable hostile/daily` turns it off" in err
    _, err = patra("schedule", "history", "hostile/none", code=5)
    assert "there is no schedule hostile/none" in err
    assert patra("schedule", "history", "hostile/daily", "--json")[0].strip() == "[]"


@pytest.mark.usefixtures("file")
def test_the_works_of_one_topic_are_exported_alone(patra: Command, tmp_path: Path) -> None:
    out, day = tmp_path / "otters.duckdb", ("--from", "2026-03-01", "--to", "2026-03-02")
    patra("run", "hostile", "search", "--operation", "BACKFILL", *day, "--param", "term=bees")
    then = ("--topic", "otters", "--then", "export", "works", "--out", str(out))
    patra("schedule", "add", "hostile/otters", "search", "--at", "03:30", "--param", "term=otters", *then)
    assert json.loads(patra("schedule", "list", "--json")[0])[0]["topic"] == "otters"
    _, err = patra("works", "--topic", "otter", code=2)
    assert "no search has the topic 'otter'" in err
    assert "known: none" in err
    said, _ = patra("run", "hostile", "search", *day, "--param", "term=otters", "--topic", "otters")
    found = int(said.partition(" known")[0].rpartition(" ")[2])
    assert 0 < found < 60
    _, err = patra("works", "--topic", "otters", "--out", str(out))
    assert f"{found} rows in {out}" in err
    assert len(patra("records", "--topic", "otters")[0].splitlines()) == found
    patra("run", "hostile", "search", "--param", "term=bees", "--from", "2026-03-01", "--to", "2026-03-03")
    assert len(patra("records")[0].splitlines()) == 60
    assert len(patra("records", "--topic", "otters")[0].splitlines()) == found
    _, err = patra("works", "--topic", "otter", code=2)
    assert "did you mean otters?" in err


@pytest.mark.usefixtures("file")
def test_what_a_trigger_says_wrongly_is_named_and_not_the_pack(patra: Command) -> None:
    _, err = patra("run", "hostile", "search", "--param", "tern=1", code=5)
    assert "params.tern: hostile search has no parameter 'tern'" in err
    assert "did you mean term? known: term" in err
    assert "hostile.yaml" not in err
    _, err = patra("plan", "hostile", "serch", code=5)
    assert "endpoint: hostile has no endpoint 'serch'" in err
    assert "did you mean search?" in err
    assert "hostile.yaml" not in err
