"""What commands share: options, settings, an open Patra, and printing a result as JSON or for people.

A command of an engine looks like this:

    @group.command()
    @config_option
    @json_option
    def status(config: str | None, as_json: bool) -> None:
        with opened(config) as patra:
            show(patra.engine(Engine).status(), as_json=as_json)
"""

import re
import sys
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click

from patra.cli.terminal.tables import Styled
from patra.cli.terminal.wrapping import say, wrap_text
from patra.kernel.safety.untrusted_text import without_controls

if TYPE_CHECKING:  # imported late, so that --help starts fast
    from pathlib import Path

    from patra.app.configuration.settings import Settings
    from patra.app.configuration.settings_loader import Loaded
    from patra.app.wiring import Patra

_CONTROL_IN_JSON = re.compile("[\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")  # JSON escapes the others itself

_ESCAPES = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")  # all but lines and tabs

F = TypeVar("F", bound=Callable[..., Any])
STORE = "patra.store"  # in the context of a command: which store was opened, for people
OPEN = "patra.open"  # in the context of a command: opens the same store once more
WIDE = "patra.wide"  # in the context of a command: --wide was given
JSON = "patra.json"  # in the context of a command: --json was given


class AtLeast(click.IntRange):
    """A whole number with a lower bound; the upper one is what a store can compare with, and help does not show it."""

    def __init__(self, least: int, most: int = 2**62) -> None:
        super().__init__(least, most)

    def _describe_range(self) -> str:
        return f"x>={self.min}"


def config_option(command: F) -> F:
    """`--config FILE`, also accepted before the command's name."""

    def parse_given(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:
        del param
        before: dict[str, str | None] = ctx.find_root().obj or {}
        return value or before.get("config")

    return click.option(
        "--config",
        metavar="FILE",
        callback=parse_given,
        help="Settings file instead of ./patra.toml (or set PATRA_CONFIG).",
    )(command)


def address_options(command: F) -> F:
    """`--host`, `--port`: where to listen, instead of the settings."""
    host = click.option("--host", help="Address to listen on, instead of web.host.")
    port = click.option("--port", type=int, help="Port to listen on, instead of web.port; 0 takes a free one.")
    return host(port(command))


def json_option(command: F) -> F:
    """`--json`, and `--wide` for the table that is printed without it."""

    def keep(ctx: click.Context, param: click.Parameter, value: bool) -> None:
        del param
        ctx.meta[WIDE] = value

    wide = click.option(
        "--wide",
        is_flag=True,
        expose_value=False,
        callback=keep,
        help="On a terminal: exact times, and columns that are empty, too.",
    )
    return click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")(wide(command))


def outcome_option(command: F) -> F:
    """`--json` for a command that acts: what `say_outcome` gets is printed as JSON instead of a sentence."""

    def keep(ctx: click.Context, param: click.Parameter, value: bool) -> None:
        del param
        ctx.meta[JSON] = value or ctx.meta.get(JSON, False)

    return click.option(
        "--json",
        is_flag=True,
        expose_value=False,
        callback=keep,
        help="Print the outcome as JSON instead of a sentence.",
    )(command)


def json_wanted() -> bool:
    """Whether the command that is running was given `--json` by `outcome_option`."""
    ctx = click.get_current_context(silent=True)
    return bool(ctx is not None and ctx.meta.get(JSON))


def say_outcome(text: str, **fields: Any) -> None:
    """Print what an act did: as a sentence, or its fields as JSON."""
    if json_wanted():
        show(fields, as_json=True)
    elif text:
        say(text)


def load_settings(config: str | None, **overrides: Any) -> "Loaded":
    """The settings; overrides are options by key with two underscores, `web__port=8642`, and None for not given."""
    from patra.app.configuration.settings_loader import load

    given = {key.replace("__", ".", 1): value for key, value in overrides.items() if value is not None}
    return load(config, overrides=given)


@contextmanager
def open_patra(config: str | None, *, create: bool = False) -> "Generator[Patra]":
    """A Patra for one command: no loops, quiet logs, the engines that it asks for, closed at the end.

    Where there is no store yet, a command is refused unless it is one that begins work (`create`): a question that is
    asked in the wrong folder leaves nothing behind.
    """
    from patra.app.wiring import build

    settings = load_settings(config).settings
    log_quietly(settings)
    store = shown_store(settings)
    if not create:
        require_store(settings)
    if (ctx := click.get_current_context(silent=True)) is not None:
        ctx.find_root().meta[STORE] = store
        ctx.find_root().meta[OPEN] = lambda: open_patra(config)
    patra = build(settings, on_demand=True)
    try:
        yield patra
    finally:
        patra.close(0)


def audit_act(patra: "Patra", act: str, subject: str, **detail: Any) -> None:
    """Write down what was done where it took more than one transaction, as the HTTP interface does."""
    from patra.app.access.actor import command_line_actor
    from patra.app.access.audit import audit

    now = patra.clock.now()
    patra.db.run(lambda tx: audit(tx, command_line_actor(), act, subject, detail, now))


def require_store(settings: "Settings") -> None:
    """Refuse a command that asks a store where there is none, rather than make an empty one."""
    from patra.kernel.errors import ConfigInvalid

    if not store_is_there(settings):
        raise ConfigInvalid(
            "store_missing",
            f"there is no store at {shown_store(settings)}, and this command does not create one",
            place="store.url",
            advice="change to the folder of your store, or name its settings with --config; `patra up` and "
            "`patra migrate` create a store",
        )


def store_is_there(settings: "Settings") -> bool:
    """Whether there is a store to ask; a SQLite file that nobody has made is none."""
    from pathlib import Path

    from patra.app.configuration.secrets import resolve

    kind, mark, path = resolve(settings.store.url, "store.url").partition(":///")
    return not mark or kind != "sqlite" or path == ":memory:" or Path(path).exists()


def shown_store(settings: "Settings") -> str:
    """Where the store is, for people: the whole path of a file, a URL without its password."""
    from pathlib import Path

    from patra.app.configuration.secrets import resolve
    from patra.kernel.safety.redact import redact_url

    url = resolve(settings.store.url, "store.url")
    kind, mark, path = url.partition(":///")
    return str(Path(path).absolute()) if mark and kind == "sqlite" and path != ":memory:" else redact_url(url)


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


def show(value: Any, *, as_json: bool, exact: bool = False, titles: Mapping[str, str] | None = None) -> None:
    """Print a struct, or a list of them, as JSON or for people; `exact` keeps instants as they are.

    `titles` are headings of a table on a terminal.
    """
    import msgspec

    if as_json:
        text = msgspec.json.format(msgspec.json.encode(value), indent=2).decode()
        click.echo(_CONTROL_IN_JSON.sub(lambda match: f"\\u{ord(match[0]):04x}", text))
        return
    plain: Any = msgspec.json.decode(msgspec.json.encode(value))  # by way of JSON, since a part may be JSON already
    if isinstance(plain, list):
        rows = cast("list[dict[str, Any]]", plain)
        if not rows:
            from patra.cli.terminal.empty import explanation

            click.echo(without_controls(explanation(), keep="\n"), err=True)
            return
        table(list(rows[0]), [[row.get(name) for name in rows[0]] for row in rows], exact=exact, titles=titles)
    else:
        fields: Mapping[str, Any] = plain
        table(["", ""], [[name, field] for name, field in fields.items()], header=False, exact=exact)


def table(
    names: Sequence[str],
    rows: Sequence[Sequence[Any]],
    *,
    header: bool = True,
    exact: bool = False,
    titles: Mapping[str, str] | None = None,
) -> None:
    """Columns for people: a table or cards on a terminal, tab-separated into a pipe.

    `titles` are the words of a terminal for some of the names; those in a pipe are what programs read.
    """
    from patra.cli.terminal.tables import print_table

    shown: Mapping[str, str] = titles if titles and sys.stdout.isatty() else {}
    print_table(
        [without_controls(shown.get(name, name)) for name in names],
        [[_cell(value) for value in row] for row in rows],
        header=header,
        wide=wide_wanted(),
        exact=exact,
    )


def wide_wanted() -> bool:
    """Whether --wide was given to the command that runs."""
    ctx = click.get_current_context(silent=True)
    return bool(ctx is not None and ctx.meta.get(WIDE))


@contextmanager
def escaped_echo() -> "Generator[None]":
    """Within it `click.echo` writes control characters out, lines and tabs excepted: no command can forget to.

    What it says to a person on standard error is broken between words.
    """
    plain = click.echo

    def echo(message: Any = None, *args: Any, **options: Any) -> None:
        if isinstance(message, str) and not isinstance(message, Styled):
            message = _ESCAPES.sub(lambda match: f"\\u{ord(match[0]):04x}", message)  # in JSON that means the same
            message = wrap_text(message, err=True) if options.get("err") else message
        plain(message, *args, **options)

    click.echo = echo
    try:
        yield
    finally:
        click.echo = plain


def _cell(value: Any) -> str:
    import msgspec

    match value:
        case None:
            return ""
        case bool():
            return "yes" if value else "no"
        case str():
            return without_controls(value)
        case dict() | list() | tuple():
            return without_controls(msgspec.json.encode(value).decode()) if value else ""
        case _:
            return str(value)
