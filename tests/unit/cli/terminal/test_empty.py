"""What an empty list says next is written down for every command that may print one."""

from collections.abc import Iterator

import click

from patra.cli.main import cli
from patra.cli.terminal.empty import ADVICE, explanation

NEVER_EMPTY = {
    "attribution archive",
    *("attribution closure", "attribution period close", "attribution reasons", "attribution reconcile"),
    *(
        "attribution reissue",
        "attribution statement show",
        "attribution history ask",
        "attribution history check",
        "attribution verify",
        "backup",
        "bus catalogue",
    ),
    *(
        "bus discard-all",
        "bus publish",
        "bus replay-all",
        "bus tail",
        "config show",
        "doctor",
        "alerts",
        "ingest alerts",
    ),
    *("ingest pack check", "ingest pack diff", "ingest pack load", "ingest pack show", "ingest pack trial"),
    *("ingest packs", "ingest plan", "ingest record", "ingest replay", "ingest reread", "ingest run"),
    *("ingest spec show", "ingest try", "story", "studio make", "studio show", "verify"),
}
"""Commands that print one thing, or say in a sentence of their own that there is nothing."""


def commands(command: click.Command, path: tuple[str, ...] = ()) -> Iterator[tuple[str, click.Command]]:
    yield " ".join(path), command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            found = command.get_command(context, name)
            assert found is not None
            yield from commands(found, (*path, name))


def test_every_command_that_lists_says_what_to_do_when_nothing_is_found() -> None:
    every = dict(commands(cli))
    lists = {path for path, command in every.items() if any("--wide" in option.opts for option in command.params)}
    assert lists - NEVER_EMPTY - ADVICE.keys() == set()
    assert (NEVER_EMPTY | ADVICE.keys()) - every.keys() == set()


def test_the_question_is_repeated_as_it_is_typed() -> None:
    command = dict(commands(cli))["ingest works"]
    root = click.Context(cli, info_name="patra")
    ingest = click.Context(click.Group("ingest"), info_name="ingest", parent=root)
    with command.make_context(
        "works", ["--source", "pubmd", "--source", "crossref", "--out", "sea fog.duckdb"], parent=ingest
    ):
        assert explanation() == (
            "nothing found: patra ingest works --out 'sea fog.duckdb' --source pubmd --source crossref\n"
            "`patra ingest coverage SOURCE ENDPOINT` says what was read, and how many records it had."
        )


def test_the_next_step_names_the_source_that_was_asked_for() -> None:
    coverage = dict(commands(cli))["ingest coverage"]
    parent = click.Context(cli, info_name="patra")
    inner = click.Context(click.Group("ingest"), info_name="ingest", parent=parent)
    ctx = click.Context(coverage, info_name="coverage", parent=inner)
    ctx.params = {"source": "crossref", "endpoint": "works"}
    with ctx:
        assert explanation().endswith("Nothing was read of it yet: `patra ingest run crossref works`.")
