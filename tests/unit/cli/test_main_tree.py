"""What holds for every command there is: `--json`, suggestions, and that questions leave nothing behind."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import msgspec
import pytest

from patra.cli.main import cli
from patra.cli.terminal.groups import Group
from tests.unit.cli.conftest import Patra


def tree(command: click.Command, path: str = "") -> Iterator[tuple[str, click.Command]]:
    """Every command by its path, the groups too."""
    yield path, command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            child = command.get_command(context, name)
            assert child is not None
            yield from tree(child, f"{path} {name}".strip())


EVERY = dict(tree(cli))
RUNS = {
    path: command
    for path, command in EVERY.items()
    if not isinstance(command, click.Group) or (command.invoke_without_command and path)
}
WITHOUT_JSON = {
    "up": "a server",
    "web": "a server",
    "work": "a server",
    "demo": "a server",
    "completion": "a script for a shell",
    "ingest show": "prints nothing but JSON",
}


def test_every_command_prints_json() -> None:
    without = {path for path, command in RUNS.items() if "--json" not in _options(command)}
    assert without == set(WITHOUT_JSON)


@pytest.mark.parametrize("width", [80, 100])
def test_help_fits_the_terminal(width: int) -> None:
    too_wide = {}
    for path, command in EVERY.items():
        context = click.Context(command, info_name=f"patra {path}".strip(), terminal_width=width)
        lines = command.get_help(context).splitlines()
        if wide := [line for line in lines if len(line) > width and not line.strip().startswith(COMMAND_LINES)]:
            too_wide[path] = wide
    assert too_wide == {}


COMMAND_LINES = ("patra ", "PATRA_", "cat ", "curl ", "--", "Usage:")
"""What is typed stays on one line."""


def _options(command: click.Command) -> set[str]:
    return {name for parameter in command.params for name in parameter.opts}


def test_every_group_suggests_the_nearest_name_and_has_its_own_commands_only(patra: Patra) -> None:
    groups = {path: command for path, command in EVERY.items() if isinstance(command, click.Group)}
    assert [path for path, command in groups.items() if not isinstance(command, Group)] == []
    for path, command in groups.items():
        name = max(command.list_commands(click.Context(command)), key=len)
        result = patra(*path.split(), name[:-1] + "~")
        assert result.code == 2, path
        assert f"Did you mean {name}?" in result.err, path
    assert len({id(command) for command in EVERY.values()}) == len(EVERY)  # nothing hangs in two places


@pytest.mark.parametrize("path", sorted(path for path, command in EVERY.items() if isinstance(command, click.Group)))
def test_no_summary_is_cut_in_the_help_of_a_group(patra: Patra, path: str) -> None:
    listed = patra(*path.split(), "--help").out.partition("Show this message and exit.\n")[2].partition("Examples:")[0]
    words = " ".join(listed.split())
    assert words
    assert "..." not in words
    group = EVERY[path]
    assert isinstance(group, click.Group)
    for name in group.list_commands(click.Context(group)):
        assert re.search(rf"(?:^| ){name} \S.*?\.(?: |$)", words), name  # a whole sentence


# --- questions leave nothing behind -----------------------------------------------------------------------------------

BEGINS_WORK = {
    "up", "web", "work", "demo", "migrate", "backup", "restore", "ingest pack load", "ingest pack new", "ingest plan",
    "ingest run", "ingest secret allow", "bus publish", "bus consume", "bus webhooks add", "bus catalogue release", "bus catalogue docs",
    "attribution app add", "attribution replay", "studio make",
}  # fmt: skip
ARGUMENTS = {
    "doctor": "",
    "attribution event": "--batch b",
    "attribution settle": "--from 2026-01-01 --to 2026-02-01",
    "attribution send-sample": "--url http://127.0.0.1:9",
    "attribution rate add": "impression 5 EUR --from 2026-01-01",
    "attribution period close": "2026-01 --app a",
    "attribution statement show": "2026-01 --app a",
    "attribution statement export": "2026-01 --app a",
    "attribution statement verify": "{json}",
    "attribution reconcile": "{csv} --app a --period 2026-01",
    "ingest pack check": "{yaml}",
    "ingest pack diff": "{yaml}",
    "ingest pack show": "crossref",
    "ingest packs": "crossref",
    "ingest blackbox": "r 1 --why r",
    "ingest dismiss": "crossref works k --why r",
    "attribution history restore": "--from 2026-01-01 --to 2026-01-02 --why r",
    "ingest history restore": "--run r --why r",
    "ingest schedule add": "crossref/nightly works --at 03:00",
    "ingest schedule change": "crossref/nightly works --at 03:00",
    "ingest silence": "fatal crossref/works --for PT4H --why r",
    "ingest replay": "r 1",
    "ingest secret revoke": "crossref env:KEY",
    "ingest try": "{yaml} works",
    "ingest reread": "crossref works --from 2026-01-01 --to 2026-01-02 --why r",
    "ingest requeue": "p.t000001",
    "outbox requeue": "ingest.record 1",
    "bus discard": "g e --reason r",
    "bus discard-all": "g --reason r",
    "bus new": "order.placed --producer Shop",
    "bus groups forget": "g --confirm g",
    "bus replay": "g --all --confirm g",
    "bus tail": "--no-follow",
    "token new": "viewer",
    "studio edit": "r s --place kitchen",
    "studio storyboard": "r -o {csv}",
}
FLAGS = {"migrate": "--check", "ingest plan": "crossref works --dry-run", "bus publish": "--sample task.submitted"}


def _line(path: str, files: dict[str, str]) -> list[str]:
    if path in ARGUMENTS or path in FLAGS:
        return [*path.split(), *(ARGUMENTS | FLAGS)[path].format(**files).split()]
    required = [one for one in RUNS[path].params if isinstance(one, click.Argument) and one.required]
    return [*path.split(), *(_value(one.type) for one in required)]


def _value(kind: Any) -> str:
    return kind.choices[0] if isinstance(kind, click.Choice) else "1" if isinstance(kind, click.IntRange) else "x"


@pytest.mark.parametrize("path", sorted(set(RUNS) - BEGINS_WORK | set(FLAGS)))
def test_a_question_in_an_empty_folder_leaves_nothing_behind(
    patra: Patra, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    inputs, folder = tmp_path / "inputs", tmp_path / "empty"
    inputs.mkdir()
    folder.mkdir()
    files = {kind: str(inputs / f"file.{kind}") for kind in ("json", "csv", "yaml")}
    for name, text in zip(files.values(), ["{}", "billingKey\nb\n", "source: {}\n"], strict=True):
        Path(name).write_text(text, "utf-8")
    monkeypatch.chdir(folder)
    result = patra(*_line(path, files))
    assert result.code not in {2, 70}, result.err
    assert list(folder.iterdir()) == []


# --- acts answer in JSON ----------------------------------------------------------------------------------------------

ACTS = [
    "migrate",
    "attribution app add shop",
    "attribution app rotate shop",
    "attribution app revoke shop",
    "attribution rate add impression 5 EUR --from 2026-01-01",
    "attribution settle --from 2026-01-01 --to 2026-02-01",
    "ingest secret allow mine env:KEY",
    "ingest secret revoke mine env:KEY",
    "ingest works --out works.csv",
    "bus webhooks add shop https://shop.example/ task.submitted",
    "bus groups pause webhook.shop",
    "bus freeze task.submitted --reason r",
    "bus thaw task.submitted",
    "bus catalogue check",
    "bus catalogue docs --out pages",
]


def test_acts_answer_in_json_and_say_what_changed(patra: Patra) -> None:
    answers: dict[str, Any] = {}
    for line in ACTS:
        result = patra(*line.split(), "--json")
        assert result.code in {0, 1}, (line, result.err)
        answers[line] = msgspec.json.decode(result.out)
    assert answers["attribution app rotate shop"]["key"] != answers["attribution app add shop"]["key"]
    assert len(answers["attribution app revoke shop"]["revoked"]) == 1
    assert answers["attribution rate add impression 5 EUR --from 2026-01-01"] == {"version": 1}
    assert answers["bus groups pause webhook.shop"] == {"group": "webhook.shop", "state": "paused", "changed": True}
    assert answers["bus thaw task.submitted"] == {"type": "task.submitted", "frozen": False}
    assert answers["ingest works --out works.csv"] == {"rows": 0, "file": "works.csv"}
    assert answers["ingest secret revoke mine env:KEY"]["changed"] is True


@pytest.mark.parametrize("name", ["attribution", "ingest", "bus"])
def test_each_command_of_an_engine_is_in_one_section_of_its_help(name: str) -> None:
    group = EVERY[name]
    assert isinstance(group, Group)
    named = [command for names in group.sections.values() for command in names.split()]
    assert sorted(named) == sorted(group.list_commands(click.Context(group)))
    help_text = group.get_help(click.Context(group))
    assert all(f"\n{title}:\n" in help_text for title in group.sections)
