"""The export commands, from a store to a file or the standard output."""

import contextlib
import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import duckdb
import msgspec
import pytest
from click.testing import CliRunner

from patra.cli.ingest.works import bundled, records, works
from patra.kernel.clock import parse_instant
from patra.kernel.db import migrate, open_database
from patra.kernel.errors import Invalid
from tests.unit.ingest.works.test_export import row


@pytest.fixture
def config(tmp_path: Path) -> str:
    url = f"sqlite:///{tmp_path / 'patra.db'}"
    db = open_database(url)
    migrate(db, ["patra.kernel", "patra.ingest"])
    rows = [row("crossref", 1, {"doi": "10.1/x", "title": "On boats"}), row("hal", 1, {"doi": "10.1/x"})]
    db.run(lambda tx: tx.insert("ing_record", rows))
    db.close()
    path = tmp_path / "patra.toml"
    path.write_text(f'[store]\nurl = "{url}"\n')
    return str(path)


def test_on_a_terminal_works_are_a_table_and_json_lines_only_where_asked_for(
    config: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    monkeypatch.setattr("patra.cli.ingest.works.SHOWN_ROWS", 1)
    with contextlib.suppress(SystemExit):
        works.main(["--config", config])
    said = capsys.readouterr()
    assert "On boats" in said.out
    assert "{" not in said.out
    assert said.err == "the first 1; --out FILE writes all, with every column\n"
    with contextlib.suppress(SystemExit):
        works.main(["--config", config, "--json"])
    assert capsys.readouterr().out.startswith('{"source":"crossref"')


def test_works_go_to_the_standard_output_line_by_line(config: str) -> None:
    result = CliRunner().invoke(works, ["--config", config])
    assert result.exit_code == 0, result.output
    found = [json.loads(line) for line in result.stdout.splitlines() if line.startswith("{")]
    assert [one["source"] for one in found] == ["crossref", "hal"]


def test_works_are_joined_into_a_duckdb_file(config: str, tmp_path: Path) -> None:
    out = tmp_path / "library.duckdb"
    result = CliRunner().invoke(works, ["--config", config, "--dedupe", "--out", str(out)])
    assert result.exit_code == 0, result.output
    with duckdb.connect(str(out)) as con:
        assert con.execute("SELECT doi, sources, given_by['title'] FROM works").fetchall() == [
            ("10.1/x", ["crossref", "hal"], "crossref")
        ]


@pytest.mark.parametrize("name", ["patra.db", "patra.db-wal", "link.db"])
def test_no_export_is_written_over_the_store(config: str, tmp_path: Path, name: str) -> None:
    (tmp_path / "link.db").symlink_to(tmp_path / "patra.db")
    for command, more in ((works, ["--dedupe"]), (works, []), (records, [])):
        asked = ["--config", config, "--format", "duckdb", "--out", str(tmp_path / name), *more]
        refused = CliRunner().invoke(command, asked).exception
        assert isinstance(refused, Invalid)
        assert refused.code == "file_is_the_store"
    assert CliRunner().invoke(works, ["--config", config]).stdout.count("10.1/x") == 2  # all is still there


def test_records_of_one_source(config: str, tmp_path: Path) -> None:
    out = tmp_path / "records.jsonl"
    result = CliRunner().invoke(records, ["--config", config, "--source", "hal", "--out", str(out)])
    assert result.exit_code == 0, result.output
    [line] = out.read_bytes().splitlines()
    assert msgspec.json.decode(line)["source"] == "hal"


def test_records_of_a_source_since_an_instant(config: str, tmp_path: Path) -> None:
    db = open_database(f"sqlite:///{tmp_path / 'patra.db'}")
    later = {**row("hal", 2, {"title": "later"}), "updated_at": parse_instant("2026-05-01T00:00:00Z")}
    earlier = {**row("hal", 3, {"title": "earlier"}), "updated_at": parse_instant("1931-05-01T00:00:00Z")}
    db.run(lambda tx: tx.insert("ing_record", [later, earlier]))
    db.close()

    def exported(*said: str) -> list[str]:
        out = tmp_path / "records.jsonl"
        result = CliRunner().invoke(records, [*said, "--config", config, "-o", str(out)])
        assert result.exit_code == 0, result.output
        return sorted(msgspec.json.decode(line)["id"] for line in out.read_bytes().splitlines())

    assert exported("hal") == sorted([row("hal", n, {})["provider_id"] for n in (1, 2, 3)])
    assert exported("hal", "--since", "2026-05-01") == [later["provider_id"]]
    assert exported("crossref", "--source", "hal", "--since", "2026-05-01") == [later["provider_id"]]
    assert CliRunner().invoke(records, ["hal", "--since", "soon", "--config", config]).exit_code == 2


def test_what_cannot_be_is_refused(config: str) -> None:
    assert CliRunner().invoke(works, ["--config", config, "--dedupe", "--raw"]).exit_code == 2
    assert CliRunner().invoke(works, ["--config", config, "--format", "parquet"]).exit_code == 2


def test_the_packs_of_the_distribution_are_listed_and_printed() -> None:
    listed = CliRunner().invoke(bundled, ["--json"])
    assert len(json.loads(listed.stdout)) == 26
    assert CliRunner().invoke(bundled, ["crossref"]).stdout.startswith("# Crossref")


@pytest.mark.parametrize("options", [[], ["--dedupe"]])
def test_a_terminal_sees_how_far_it_is(config: str, tmp_path: Path, options: list[str]) -> None:
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "patra", "ingest", "works", "--config", config]
    process = subprocess.Popen([*command, "--out", str(tmp_path / "x.parquet"), *options], stderr=theirs)
    os.close(theirs)
    shown = b""
    with contextlib.suppress(OSError):  # the end of a pseudo-terminal is an error
        while more := os.read(ours, 4096):
            shown += more
    os.close(ours)
    assert process.wait() == 0
    assert b"2/2" in shown


def test_records_that_are_no_works_are_counted(config: str, tmp_path: Path) -> None:
    db = open_database(f"sqlite:///{tmp_path / 'patra.db'}")
    db.run(lambda tx: tx.insert("ing_record", [row("mine", 1, {"language": ["en"]})]))
    db.close()
    result = CliRunner().invoke(works, ["--config", config, "--out", str(tmp_path / "works.csv")])
    assert "2 rows in" in result.stderr
    assert "1 records are not works" in result.stderr


def test_joined_works_say_why_and_who_calls_them_retracted_and_when(config: str) -> None:
    preprint = {
        "doi": "10.2/p", "relations": [{"type": "is-preprint-of", "id": "doi:10.1/x"}],
        "retracted": True, "notices": [{"type": "withdrawal", "at": "2025-03-04T05:06:07"}],
    }  # fmt: skip
    db = open_database(f"sqlite:///{Path(config).with_name('patra.db')}")
    db.run(lambda tx: tx.insert("ing_record", [row("osf", 1, preprint)]))
    db.close()
    result = CliRunner().invoke(works, ["--config", config, "--dedupe"])
    [found] = [json.loads(line) for line in result.stdout.splitlines() if line.startswith("{")]
    [join] = found["joins"]
    assert (join["by"], join["why"], len(join["records"])) == ("doi:10.1/x", "is-preprint-of", 3)
    [said] = found["retractions"]
    assert (said["source"], said["at"], found["retracted"]) == ("osf", "2025-03-04T05:06:07", True)
