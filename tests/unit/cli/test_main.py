"""What a user sees: help that teaches, results on standard output, one precise line for each error, an exit code."""

import errno
import json
import os
import re
import subprocess
import sys
from hashlib import sha256
from pathlib import Path

import click
import msgspec
import pytest

from patra.app.configuration.settings import every_setting
from patra.cli.main import COMMANDS, ENGINES, EXIT_CODES, cli
from patra.cli.terminal.empty import ADVICE
from patra.ingest.packs import bundled
from tests.unit.cli.conftest import Patra


def leaves(command: click.Command, name: str) -> list[tuple[str, click.Command]]:
    if isinstance(command, click.Group):
        context = click.Context(command)
        found = [(child, command.get_command(context, child)) for child in command.list_commands(context)]
        return [leaf for child, sub in found if sub for leaf in leaves(sub, f"{name} {child}")]
    return [(name, command)]


OWN = [(name, command) for name, command in leaves(cli, "patra") if name.split()[1] in COMMANDS]


@pytest.mark.parametrize(("name", "command"), OWN, ids=[name for name, _ in OWN])
def test_every_command_explains_itself_with_examples(name: str, command: click.Command) -> None:
    assert command.help
    assert "Examples:" in (command.epilog or ""), f"{name} shows no example"
    assert name in (command.epilog or "")
    for parameter in command.params:
        assert isinstance(parameter, click.Argument) or getattr(parameter, "help", ""), f"{name} {parameter.name}"


def test_the_list_of_commands_is_shown_with_what_each_is_for(patra: Patra) -> None:
    result = patra("--help")
    assert result.code == 0
    for name, (_, text) in COMMANDS.items():
        assert f"  {name} " in result.out
        assert text in result.out
    assert "Exit codes:" in result.out


def test_help_starts_without_importing_what_it_does_not_need() -> None:
    heavy = {
        "msgspec",
        "starlette",
        "uvicorn",
        "structlog",
        "rich",
        "prometheus_client",
        "psycopg",
        "sqlite3",
        "asyncio",
    }
    program = (
        "import sys; from patra.cli.main import run; code = run(['--help']); "
        f"print(sorted({heavy!r} & set(sys.modules)), file=sys.stderr); sys.exit(code)"
    )
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert result.stderr.strip() == "[]"


def test_a_command_imports_its_own_engine_and_no_other(tmp_path: Path) -> None:
    heavy = {"structlog", "rich", "urllib3", "lxml", "regex", "nats", "asyncio", "psycopg", "starlette", "numpy"}
    imported = {"migrate": "", "audit": "", "bus groups": "bus"}
    program = f"""
import sys
from patra.cli.main import run
for words in {list(imported)!r}:
    assert run(words.split()) == 0
    parts = [name.split(".") for name in sys.modules if name.startswith("patra.") and name.count(".") > 1]
    engines = {{"attribution", "bus", "ingest", "studio"}} & {{part[1] for part in parts if part[2] != "sql"}}
    print("imported", words, *sorted(engines | {heavy!r} & set(sys.modules)), sep=",", file=sys.stderr)
"""
    result = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=tmp_path, env=_plain_environ()
    )
    told = [line.split(",", 2)[1:] for line in result.stderr.splitlines() if line.startswith("imported,")]
    assert {words: "".join(names) for words, *names in told} == imported


def _plain_environ() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith("PATRA_")}


def test_every_engine_has_its_commands() -> None:
    assert set(cli.list_commands(click.Context(cli))) == set(COMMANDS) | set(ENGINES)


def test_an_unknown_command_is_a_usage_error_with_the_nearest_name(patra: Patra) -> None:
    result = patra("docter")
    assert result.code == 2
    assert "Did you mean doctor?" in result.err


def test_config_show_prints_every_setting_with_its_origin_and_no_secret(
    patra: Patra, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("patra.toml").write_text('[web]\nport = 9000\nadmin_tokens = ["alice=sha256:beef"]\n')
    monkeypatch.setenv("PATRA_STORE_URL", "postgresql://patra:hunter2@db/patra")
    monkeypatch.setenv("PATRA_SOTRE_URL", "x")

    rows = {row["key"]: row for row in msgspec.json.decode(patra("config", "show", "--json").out)}
    text = patra("config", "show")

    assert set(rows) == {setting.key for setting in every_setting()}
    assert (rows["web.port"]["value"], Path(rows["web.port"]["origin"]).name) == (9000, "patra.toml")
    assert rows["store.url"]["origin"] == "PATRA_STORE_URL"
    assert rows["web.admin_tokens"]["value"] == ["alice=(hidden)"]
    assert "hunter2" not in text.out
    assert "beef" not in text.out
    assert "web.port\t9000\t" in text.out
    assert "PATRA_SOTRE_URL is set, but is not a setting" in text.err


def test_another_settings_file_is_named_before_or_after_the_command(patra: Patra) -> None:
    Path("other.toml").write_text("[web]\nport = 9001\n")
    for args in (("--config", "other.toml", "config", "show"), ("config", "show", "--config", "other.toml")):
        assert "web.port\t9001\tother.toml" in patra(*args).out


@pytest.mark.parametrize(
    "command", [("up",), ("web",), ("work",), ("doctor",), ("migrate",), ("audit",), ("config", "show")]
)
def test_a_wrong_setting_is_one_line_with_its_place_and_exit_code_3(patra: Patra, command: tuple[str, ...]) -> None:
    Path("patra.toml").write_text("[web]\nport = -1\n")
    result = patra(*command)
    assert result.code == 3
    (line,) = result.err.splitlines()
    assert line.startswith("patra: ")
    assert "patra.toml: web.port: config_wrong_value: " in line
    assert "Port to listen on" in line
    assert result.out == ""


def test_migrate_applies_what_is_missing_once_and_is_audited(patra: Patra) -> None:
    check = patra("migrate", "--check")
    assert check.code == 1
    assert "missing\tpatra.app\t0001\taudit" in check.out
    assert "applied\tpatra.app\t0001\taudit" in patra("migrate").out
    assert patra("migrate").out == "the store is up to date\n"
    assert patra("migrate", "--check").code == 0

    (act,) = msgspec.json.decode(patra("audit", "--json").out)
    assert (act["act"], act["subject"]) == ("store.migrate", "store")
    assert act["detail"]["newest"]["patra.app"] > 0
    assert ": patra audit --act other" in patra("audit", "--act", "other").err


def test_a_new_token_is_printed_with_the_settings_that_let_it_in(patra: Patra) -> None:
    made = msgspec.json.decode(patra("token", "new", "operator", "--name", "olga", "--json").out)
    assert made["setting"] == "web.operator_tokens"
    assert made["entry"] == f"olga=sha256:{sha256(made['token'].encode()).hexdigest()}"
    text = patra("token", "new", "admin").out
    assert 'admin_tokens = ["sha256:' in text
    assert "PATRA_WEB_ADMIN_TOKENS=sha256:" in text
    assert "/loops" in text
    assert patra("token", "new", "king").code == 2
    assert patra("token", "new", "admin", "--name", "a,b").code == 2


def test_a_new_publisher_is_told_its_table_and_a_request_that_it_may_make(patra: Patra) -> None:
    text = patra("token", "new", "publisher", "--name", "gateway").out
    assert '[bus.publishers."gateway"]' in text
    assert "/bus/events" in text
    assert "/loops" not in text
    nameless = patra("token", "new", "publisher")
    assert (nameless.code, "--name" in nameless.err) == (2, True)


def test_a_token_of_a_group_has_the_tenants_that_the_settings_give_the_group(patra: Patra) -> None:
    table = '[bus.publishers.gateway]\nproducers = ["Gateway"]\ntenants = ["acme"]\ngroups = ["uploads"]\n'
    Path("patra.toml").write_text(table)
    token = ("token", "new", "publisher", "--name", "worker", "--group", "uploads", "--tenant")
    refused = patra(*token, "other")
    assert refused.code != 0
    assert "gateway consumes for the group uploads with other tenants" in refused.err
    assert patra(*token, "acme").code == 0


def test_doctor_ends_with_1_when_something_is_broken_and_0_otherwise(patra: Patra) -> None:
    good = patra("doctor")
    assert good.code == 0
    assert "warning\tstore\t" in good.out
    Path("patra.db").write_bytes(b"rubbish" * 1000)
    bad = patra("doctor", "--json")
    assert bad.code == 1
    assert [check["name"] for check in msgspec.json.decode(bad.out) if check["health"] == "broken"] == ["store"]


def test_a_store_that_cannot_be_used_is_exit_code_4(patra: Patra) -> None:
    Path("patra.db").write_bytes(b"rubbish" * 1000)
    result = patra("audit")
    assert result.code == 4
    assert result.err.startswith("patra: store_unavailable: ")


@pytest.mark.parametrize("url", ["postgresql://me:secret@127.0.0.1:1/x", "postgresql:///x?host=/nowhere"])
def test_a_server_that_is_not_there_is_one_line_with_what_to_do(
    patra: Patra, monkeypatch: pytest.MonkeyPatch, url: str
) -> None:
    monkeypatch.setenv("PATRA_STORE_URL", url)
    result = patra("bus", "groups")
    assert (result.code, result.err.count("\n")) == (4, 1)
    assert result.err.startswith("patra: store_unavailable: postgresql://")
    assert result.err.endswith("(start the server, or correct the URL of the store)\n")
    assert "secret" not in result.err


def test_a_store_of_a_newer_version_is_exit_code_3(patra: Patra) -> None:
    import sqlite3

    patra("migrate")
    with sqlite3.connect("patra.db") as connection:
        connection.execute("INSERT INTO krn_migration VALUES ('patra.app', 9999, 'later', 'x', 0)")
    result = patra("audit")
    assert result.code == 3
    assert "migration_from_the_future" in result.err


def test_listening_beyond_this_machine_without_a_token_is_refused_before_anything_is_opened(patra: Patra) -> None:
    result = patra("up", "--host", "0.0.0.0")
    assert result.code == 3
    assert "config_bind_needs_token" in result.err
    assert "patra token new admin" in result.err
    assert not Path("patra.db").exists()


def test_an_unknown_loop_is_refused_with_those_there_are(patra: Patra) -> None:
    result = patra("work", "bus.nosuch")
    assert result.code == 3
    assert "loop_unknown" in result.err
    assert "bus.upkeep" in result.err


def test_a_loop_of_no_engine_is_refused_before_a_store_is_made(patra: Patra) -> None:
    result = patra("work", "nosuch")
    assert result.code == 3
    assert "loop_unknown" in result.err
    assert not Path("patra.db").exists()


def test_a_bug_is_one_line_and_exit_code_70_and_shows_itself_on_request(
    patra: Patra, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("patra.app.configuration.settings_loader.load", lambda *args, **kwargs: 1 // 0)
    result = patra("config", "show")
    assert result.code == 70
    assert len(result.err.splitlines()) == 1
    assert "internal_error: ZeroDivisionError" in result.err
    monkeypatch.setenv("PATRA_DEBUG", "1")
    assert "Traceback" in patra("config", "show").err


def test_the_exit_codes_are_in_the_help() -> None:
    for code in (0, 1, 2, 3, 4, 5, 70, 130):
        assert f"\n  {code} " in EXIT_CODES


@pytest.mark.parametrize(
    "line",
    [
        "attribution settle --from 2026-01-01 --to 2026-02-01 --out {file}/x.csv",
        "ingest works --out {file}/x.csv",
    ],
)
def test_a_file_that_cannot_be_written_is_said_and_no_bug(patra: Patra, tmp_path: Path, line: str) -> None:
    (tmp_path / "file").write_text("no folder")
    assert patra("migrate").code == 0
    result = patra(*line.format(file=tmp_path / "file").split())
    assert result.code == 5, result.err
    assert f"{tmp_path / 'file'}" in result.err
    assert "file_unusable: " in result.err


def test_a_full_disk_is_no_bug(monkeypatch: pytest.MonkeyPatch, patra: Patra) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(cli, "main", full)
    result = patra("doctor")
    assert (result.code, result.err) == (5, "patra: file_unusable: No space left on device\n")


@pytest.mark.parametrize(
    "line",
    [
        "attribution closures --limit {n}",
        "attribution closures --limit -1",
        "attribution refused --before {n}",
        "attribution list billable --after {n}",
        "attribution find x --limit {n}",
        "ingest pack show x --version {n}",
        "ingest blackbox run {n} --why test",
        "ingest replay run {n}",
        "ingest try x y --records -1",
    ],
)
def test_a_number_beyond_all_bounds_is_a_wrong_command_line(patra: Patra, line: str) -> None:
    result = patra(*line.format(n=10**30).split())
    assert result.code == 2, result.err


def test_a_store_is_backed_up_verified_and_restored(patra: Patra, tmp_path: Path) -> None:
    assert patra("migrate").code == 0
    said = dict(line.split("\t") for line in patra("backup", "copy.db").out.splitlines())
    whole = json.loads((tmp_path / said["manifest"]).read_text("utf-8"))
    assert (said["file"], said["sha256"]) == ("copy.db", whole["sha256"])
    assert (int(said["tables"]), int(said["rows"])) == (len(whole["rows"]), sum(whole["rows"].values()))
    assert json.loads(patra("backup", "again.db", "--json").out)["migrations"] == whole["migrations"]
    assert patra("verify", "copy.db").code == 0
    assert patra("verify").code == 0
    restored = patra("restore", "copy.db", "--replace")
    assert (restored.code, restored.out.startswith("patra.db is restored")) == (0, True)
    assert "store.restore" in patra("audit").out
    with (tmp_path / "copy.db").open("r+b") as file:
        file.write(b"not a database")
    found = patra("verify", "copy.db")
    assert found.code == 1
    assert "sha256 differs" in found.out
    refused = patra("restore", "copy.db", "--replace")
    assert (refused.code, "backup_corrupt" in refused.err) == (5, True)


@pytest.mark.parametrize(
    ("line", "meant"),
    [
        ("bus dead-leters", "dead-letters"),
        ("bus groups pausse", "pause"),
        ("ingest quarantin", "quarantine"),
        ("ingest pack chek", "check"),
        ("attribution app ad", "add"),
    ],
)
def test_a_mistyped_command_is_answered_with_the_nearest_at_every_level(patra: Patra, line: str, meant: str) -> None:
    result = patra(*line.split())
    assert result.code == 2
    assert f"Did you mean {meant}?" in result.err


@pytest.mark.parametrize(
    "line",
    ["bus dead-letters", "ingest queue", "attribution find x", "story x", "audit", "studio runs", "bus groups pause x"],
)
def test_a_question_in_the_wrong_folder_creates_nothing_and_says_where_it_looked(
    patra: Patra, tmp_path: Path, line: str
) -> None:
    result = patra(*line.split())
    assert result.code == 3
    assert "store_missing" in result.err
    assert str(tmp_path / "patra.db") in result.err
    assert list(tmp_path.iterdir()) == []


def test_an_empty_result_says_what_was_looked_for_where_and_what_to_do(patra: Patra, tmp_path: Path) -> None:
    assert patra("migrate").code == 0
    result = patra("bus", "dead-letters", "--trace", "t1")
    assert result.out == ""
    assert result.err == (
        f"nothing found in {tmp_path / 'patra.db'}: patra bus dead-letters --trace t1\n"
        "`--state replaying` lists those under replay, `all` also those closed; retries are `failing` in `patra bus groups`.\n"
    )
    assert patra("bus", "dead-letters", "--json").out == "[]\n"


def test_a_store_in_a_folder_that_was_not_there_is_made_and_said(
    patra: Patra, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATRA_STORE_URL", f"sqlite:///{tmp_path / 'mistyped' / 'patra.db'}")
    first = patra("migrate")
    assert first.code == 0
    assert "store_folder_made" in first.err
    assert str(tmp_path / "mistyped") in first.err
    assert "store.url" in first.err
    assert "store_folder_made" not in patra("migrate").err, "it is there now"


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_completion_of_a_shell_is_printed(patra: Patra, shell: str) -> None:
    result = patra("completion", shell)
    assert result.code == 0
    assert "_PATRA_COMPLETE" in result.out
    assert "patra" in result.out


def test_every_advice_for_an_empty_result_belongs_to_a_command(patra: Patra) -> None:
    for path in ADVICE:
        assert patra(*path.split(), "--help").code == 0, path


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("bus dead-letters --group mailer", "There is no consumer group 'mailer'. There is none yet."),
        (
            "attribution rejects --code f_event_mising_required",
            "There is no reason code 'f_event_mising_required'. Did you mean f_event_missing_required?",
        ),
        ("ingest runs --status FAILD", "There is no state 'FAILD'. Did you mean FAILED?"),
        ("ingest quarantine --status LOST", "There is no state 'LOST'. Known: DISMISSED, OPEN, RESOLVED."),
        ("ingest errors pubmd", "There is no source 'pubmd'. There is none yet."),
        (
            "attribution settle --from 2026-01-01 --to 2026-02-01",
            ": patra attribution settle --from 2026-01-01 --to 2026-02-01\n",
        ),
    ],
)
def test_an_empty_result_says_which_filter_names_what_does_not_exist(patra: Patra, line: str, said: str) -> None:
    assert patra("migrate").code == 0
    result = patra(*line.split())
    assert said in result.err + result.out


@pytest.mark.parametrize(
    ("line", "code", "said"),
    [
        ("attribution send-sample --without responseRefernce", 2, "Did you mean responseReference?"),
        ("attribution send-sample --without colour", 2, "no sample has a field 'colour'. They have "),
        ("attribution reasons f_app_key_mising", 2, "Did you mean f_app_key_missing?"),
        ("attribution settle --from yesterday --to 2026-01-01", 2, "'yesterday' is neither a date"),
        ("attribution settle --from 2026-01-01 --to 2026-02-01 --by plaecment", 2, "Did you mean placement?"),
        ("attribution settle --from 2026-01-01 --to 2026-02-01 --by app,app", 2, "cannot be 'app' twice"),
        ("config show web.prot", 2, "Did you mean web.port?"),
        ("story e1 --kind evntId", 5, "did you mean eventId?"),
        ("ingest coverage crosref", 5, "i_source_unknown"),
        ("ingest packs pubmd", 5, "did you mean pubmed?"),
        ("ingest schedule add a/b c --at 03:00 --last 30", 5, "last: duration_invalid"),
        ("ingest pack load nosuch.yaml", 1, "error: nosuch.yaml: cannot be read: No such file or directory ["),
        ("attribution closure resp-1", 1, "`patra attribution find resp-1` looks for a part of its key"),
    ],
)
def test_a_mistake_is_answered_with_its_place_and_what_was_meant(patra: Patra, line: str, code: int, said: str) -> None:
    assert patra("migrate").code == 0
    result = patra(*line.split())
    assert (result.code, said in result.err) == (code, True), result.err


def test_config_show_shows_one_setting_or_a_section(patra: Patra) -> None:
    assert patra("config", "show", "web.port").out == "setting\tvalue\tfrom\nweb.port\t8642\tdefault\n"
    section = msgspec.json.decode(patra("config", "show", "web", "--json").out)
    assert {row["key"].partition(".")[0] for row in section} == {"web"}


def test_one_reason_is_explained_alone(patra: Patra) -> None:
    result = patra("attribution", "reasons", "f_app_key_missing")
    assert [line.split("\t")[0] for line in result.out.splitlines()] == ["code", "f_app_key_missing"]


def test_tail_is_limited_like_other_lists(patra: Patra) -> None:
    assert patra("migrate").code == 0
    assert patra("bus", "tail", "--limit", "1", "--no-follow").code == 0


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("story nosuch", "patra.db. It was looked for as"),
        ("bus freeze job.created2", "the catalogue has no job.created2 (did you mean job.created?)"),
        ("bus groups pause mailer", "there is no group mailer; `patra bus groups` lists them"),
    ],
)
def test_a_name_that_is_not_there_is_answered_with_the_place_to_look(
    patra: Patra, capsys: pytest.CaptureFixture[str], line: str, said: str
) -> None:
    assert patra("migrate").code == 0
    with pytest.raises(SystemExit):
        patra(*line.split())
    captured = capsys.readouterr()
    assert said in captured.out + captured.err


def test_on_a_terminal_the_doctor_gives_its_advice_below_the_table(
    patra: Patra, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert patra("migrate").code == 0
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("COLUMNS", "100")
    said = click.unstyle(patra("doctor").out)
    assert re.search(
        r"^what to do\n(  .*\n)*  ingest.sources: load one with `patra ingest pack load FILE`$", said, re.MULTILINE
    )
    advice = said.partition("\nwhat to do\n")[2].splitlines()
    assert max(map(len, advice)) <= 100
    assert "what to do" not in said.splitlines()[0]


def test_a_schedule_that_has_not_fired_yet_says_when_it_does(patra: Patra, tmp_path: Path) -> None:
    (tmp_path / "crossref.yaml").write_text(bundled.text("crossref"), encoding="utf-8")
    assert patra("ingest", "pack", "load", "crossref.yaml").code == 0
    assert (
        patra(
            *["ingest", "schedule", "add", "crossref/otters", "works", "--param", "query=otters", "--at", "03:00"]
        ).code
        == 0
    )
    listed = patra("ingest", "schedule", "list")
    assert listed.err == "for the first time as soon as `patra up` runs: crossref/otters\n"


def test_coverage_of_what_was_never_read_says_so_and_of_no_endpoint_is_refused(patra: Patra, tmp_path: Path) -> None:
    (tmp_path / "crossref.yaml").write_text(bundled.text("crossref"), encoding="utf-8")
    assert patra("ingest", "pack", "load", "crossref.yaml").code == 0
    empty = patra("ingest", "coverage", "crossref", "works")
    assert (empty.code, empty.out) == (0, "")
    assert "Nothing was read of it yet: `patra ingest run crossref works`." in empty.err
    wrong = patra("ingest", "coverage", "crossref", "wroks")
    assert (wrong.code, "crossref has no endpoint 'wroks' (did you mean works?" in wrong.err) == (5, True)
    assert "did you mean crossref?" in patra("ingest", "coverage", "crosref").err
    assert "did you mean crossref?" in patra("ingest", "pack", "trial", "crosref").err
    assert "did you mean crossref?" in patra("ingest", "pack", "show", "crosref").err
    assert "crossref has no endpoint 'wroks'" in patra("ingest", "pause", "crossref", "wroks").err


def test_a_list_is_not_read_from_an_endpoint_of_single_records(patra: Patra, tmp_path: Path) -> None:
    (tmp_path / "crossref.yaml").write_text(bundled.text("crossref"), encoding="utf-8")
    assert patra("ingest", "pack", "load", "crossref.yaml").code == 0
    assert patra("ingest", "coverage", "crossref", "work").err == (
        "crossref work gives records by id; windows are those of a list\n"
    )
    for line in (["run"], ["plan", "--dry-run"], ["plan"]):
        refused = patra("ingest", *line, "crossref", "work")
        said = "crossref work gives records by id; HARVEST reads a list [i_operation_unsupported]"
        assert (refused.code, said in refused.err) == (5, True)
        assert "did you mean works? lists: works" in refused.err
        assert refused.err.count("[i_") == 1, "one slip is one problem"


def test_a_pack_that_is_not_there_is_answered_with_what_was_meant(patra: Patra, tmp_path: Path) -> None:
    (tmp_path / "mylibrary.yaml").write_text("source: mylibrary\n", encoding="utf-8")
    assert "(did you mean mylibrary.yaml?)" in patra("ingest", "pack", "check", "mylibrary").err
    assert "(did you mean mylibrary.yaml?)" in patra("ingest", "pack", "load", "mylibary.yaml").err
    assert "(`patra ingest packs arxiv > arxiv.yaml` writes it)" in patra("ingest", "pack", "load", "arxiv").err
    assert "nothing was loaded: 1 of 1 packs cannot be loaded" in patra("ingest", "pack", "load", "nosuch").err


def test_a_settlement_by_filters_that_counts_nothing_says_what_was_looked_for(patra: Patra) -> None:
    assert patra("migrate").code == 0
    said = patra(*["attribution", "settle", "--from", "2026-01-01", "--to", "2026-02-01", "--where", "placement=hom"])
    assert "--to 2026-02-01 --where placement=hom\n" in said.err
