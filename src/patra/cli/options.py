"""Options that commands share go in; settings, a Patra, and printed values come out.

A command of an engine looks like this:

    @group.command()
    @config_option
    @json_option
    def status(config: str | None, as_json: bool) -> None:
        with opened(config) as patra:
            show(patra.engine(Engine).status(), as_json=as_json)
"""

import sys
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click

if TYPE_CHECKING:  # imported late, so that --help starts fast
    from pathlib import Path

    from patra.app.settings import Settings
    from patra.app.sources import Loaded
    from patra.app.wiring import Patra

F = TypeVar("F", bound=Callable[..., Any])


def config_option(command: F) -> F:
    """`--config FILE`, also accepted before the command's name."""

    def given(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:
        del param
        before: dict[str, str | None] = ctx.find_root().obj or {}
        return value or before.get("config")

    return click.option(
        "--config", metavar="FILE", callback=given, help="Settings file instead of ./patra.toml (or set PATRA_CONFIG)."
    )(command)


def address_options(command: F) -> F:
    """`--host`, `--port`: where to listen, instead of the settings."""
    host = click.option("--host", help="Address to listen on, instead of web.host.")
    port = click.option("--port", type=int, help="Port to listen on, instead of web.port; 0 takes a free one.")
    return host(port(command))


def json_option(command: F) -> F:
    return click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")(command)


def loaded(config: str | None, **overrides: Any) -> "Loaded":
    """The settings; overrides are options by key with two underscores, `web__port=8642`, and None for not given."""
    from patra.app.sources import load

    given = {key.replace("__", ".", 1): value for key, value in overrides.items() if value is not None}
    return load(config, overrides=given)


@contextmanager
def opened(config: str | None) -> "Generator[Patra]":
    """A Patra for one command: no loops, quiet logs, closed at the end."""
    from patra.app.wiring import build

    settings = loaded(config).settings
    log_quietly(settings)
    patra = build(settings)
    try:
        yield patra
    finally:
        patra.close(0)


def audited(patra: "Patra", act: str, subject: str, **detail: Any) -> None:
    """Write down what was done where it took more than one transaction, as the HTTP interface does."""
    from patra.app.actor import command_line_actor
    from patra.app.audit import audit

    now = patra.clock.now()
    patra.db.run(lambda tx: audit(tx, command_line_actor(), act, subject, detail, now))


def store_is_there(settings: "Settings") -> bool:
    """Whether there is a store to ask; a SQLite file that nobody has made is none."""
    from pathlib import Path

    from patra.app.references import resolve

    kind, mark, path = resolve(settings.store.url, "store.url").partition(":///")
    return not mark or kind != "sqlite" or Path(path).exists()


def spare_the_store(patra: "Patra", out: "Path | str") -> None:
    """Refuse to write a result over the store that it comes from."""
    from pathlib import Path

    from patra.kernel.errors import Invalid

    if patra.db.holds(Path(out)):
        raise Invalid("file_is_the_store", f"{out} is the store itself", place="--out", advice="name another file")


def log_quietly(settings: "Settings") -> None:
    """A command that prints its result logs only what is wrong."""
    from patra.kernel.telemetry import setup_logging

    level = settings.log.level if settings.log.level in {"warning", "error"} else "warning"
    setup_logging(level=level, format=settings.log.format)


def show(value: Any, *, as_json: bool) -> None:
    """Print a struct, or a list of them, as JSON or for people."""
    import msgspec

    if as_json:
        click.echo(msgspec.json.format(msgspec.json.encode(value), indent=2).decode())
        return
    plain: Any = msgspec.json.decode(msgspec.json.encode(value))  # by way of JSON, since a part may be JSON already
    if isinstance(plain, list):
        rows = cast("list[dict[str, Any]]", plain)
        if not rows:
            click.echo("nothing")
            return
        table(list(rows[0]), [[row.get(name) for name in rows[0]] for row in rows])
    else:
        fields: Mapping[str, Any] = plain
        table(["", ""], [[name, field] for name, field in fields.items()], header=False)


def table(names: Sequence[str], rows: Sequence[Sequence[Any]], *, header: bool = True) -> None:
    """Columns for people: aligned on a terminal, tab-separated into a pipe."""
    cells = [[_cell(value) for value in row] for row in rows]
    if not sys.stdout.isatty():
        for row in [list(names), *cells] if header else cells:
            click.echo("\t".join(row))
        return
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table

    grid = Table(*names, box=SIMPLE_HEAD, show_header=header, pad_edge=False)
    for row in cells:
        grid.add_row(*row)
    Console(markup=False, highlight=False).print(grid)


def _cell(value: Any) -> str:
    import msgspec

    match value:
        case None:
            return ""
        case bool():
            return "yes" if value else "no"
        case str():
            return value
        case dict() | list() | tuple():
            return msgspec.json.encode(value).decode() if value else ""
        case _:
            return str(value)
