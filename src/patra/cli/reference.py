"""The code's own declarations go in (settings, commands, endpoints, metrics, machines, reasons); Markdown comes out.

The reference pages of the documentation are made of these when it is built, so they cannot fall behind the code.
"""

import importlib
import pkgutil
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import click
import msgspec

import patra
from patra.app.settings import Setting, Settings, StoreSettings, every_setting, sections
from patra.app.wiring import build
from patra.cli.main import COMMANDS, ENGINES, EXIT_CODES, cli
from patra.kernel.machine import declared
from patra.kernel.reason import Reason
from patra.kernel.telemetry import METRICS
from patra.web.server import app


def settings_page() -> str:
    """Every setting by section."""
    parts: list[str] = []
    for section, struct in sections().items():
        parts += [f"## {section}", str(struct.__doc__)]
        own = [setting for setting in every_setting() if setting.section == section]
        if not own:
            parts.append("No settings yet.")
        for setting in own:
            parts += [
                f"### {setting.key}",
                setting.description,
                _table(("type", "default", "variable"), [(_type(setting), _default(setting), f"`{setting.variable}`")]),
            ]
    return _page(parts)


def commands_page() -> str:
    """Every command with its options and examples, and the exit codes."""
    parts: list[str] = ["## Exit codes", _literal(EXIT_CODES.partition("\n")[2].partition("\n")[2])]
    for name in (*COMMANDS, *ENGINES):
        command = cli.get_command(click.Context(cli), name)
        if command is not None:
            parts += _command(command, f"patra {name}", 2)
    return _page(parts)


def endpoints_page() -> str:
    """Every endpoint of the HTTP interface."""
    whole = build(Settings(store=StoreSettings(url="sqlite:///:memory:")))
    try:
        endpoints = app(whole).endpoints
    finally:
        whole.close(0)
    parts: list[str] = []
    for tag in dict.fromkeys(endpoint.tag for endpoint in endpoints):
        parts.append(f"## {tag}")
        parts.append(
            _table(
                ("method", "path", "role", "what it does"),
                [
                    (
                        e.method,
                        f"`{e.template}`",
                        e.role.value if e.role else "anyone",
                        _sentence(e.summary, e.description),
                    )
                    for e in endpoints
                    if e.tag == tag
                ],
            )
        )
    return _page(parts)


def metrics_page() -> str:
    """Every metric with its labels."""
    import_everything()
    rows = [
        (f"`{metric.name}`", metric.kind, ", ".join(f"`{label}`" for label in metric.labels), metric.help)
        for metric in sorted(METRICS, key=lambda metric: metric.name)
    ]
    return _page([_table(("metric", "kind", "labels", "meaning"), rows)])


def machines_page() -> str:
    """Every state machine as its table."""
    import_everything()
    parts: list[str] = []
    for machine in declared():
        ends = ", ".join(f"`{state}`" for state in machine.states if state in machine.terminal) or "none"
        parts += [
            f"## {machine.name}",
            f"Rule version `{machine.version}`. Begins in `{machine.initial}`; final states: {ends}.",
            _table(
                ("from", "on", "to"), [(f"`{was}`", f"`{on}`", f"`{to}`") for (was, on), to in machine.edges.items()]
            ),
            _literal(machine.mermaid(), "text"),
        ]
    return _page(parts)


def reasons_page() -> str:
    """Every reason code by engine."""
    import_everything()
    parts: list[str] = []
    for reasons in sorted(Reason.__subclasses__(), key=lambda kind: kind.__module__):
        parts.append(f"## {reasons.__module__.split('.')[1]}")
        parts.append(_table(("code", "given when"), [(f"`{reason.value}`", reason.text) for reason in reasons]))
    return _page(parts)


PAGES: dict[str, Callable[[], str]] = {
    "settings": settings_page,
    "commands": commands_page,
    "endpoints": endpoints_page,
    "metrics": metrics_page,
    "machines": machines_page,
    "reasons": reasons_page,
}


def import_everything() -> None:
    """Import every module of Patra, so that whatever declares itself on import has done so."""
    for module in _modules():
        importlib.import_module(module)


def _modules() -> Iterator[str]:
    for info in pkgutil.walk_packages(patra.__path__, "patra."):
        if not info.name.endswith("__main__"):
            yield info.name


def _command(command: click.Command, name: str, level: int) -> list[str]:
    parts = [f"{'#' * level} {name}", command.help or ""]
    if isinstance(command, click.Group):
        context = click.Context(command)
        for child in command.list_commands(context):
            if (sub := command.get_command(context, child)) is not None and not sub.hidden:
                parts += _command(sub, f"{name} {child}", level + 1)
        return parts
    usage = " ".join([name, *command.collect_usage_pieces(click.Context(command))])
    parts.append(_literal(usage))
    options = [parameter for parameter in command.params if isinstance(parameter, click.Option)]
    if options:
        parts.append(_table(("option", "meaning"), [(f"`{', '.join(o.opts)}`", _option(o)) for o in options]))
    if command.epilog:
        parts += [_literal(block) for block in re.split(r"\n*\x08\n", command.epilog) if block.strip()]
    return parts


def _option(option: click.Option) -> str:
    default = (
        f" Default: `{option.default}`." if isinstance(option.default, (int, float)) and option.show_default else ""
    )
    return f"{option.help or ''}{default}"


def _type(setting: Setting) -> str:
    kind = msgspec.inspect.type_info(setting.type)
    while isinstance(kind, msgspec.inspect.Metadata):
        kind = kind.type
    match kind:
        case msgspec.inspect.BoolType():
            return "`true` or `false`"
        case (
            msgspec.inspect.IntType(ge=least, gt=above, le=most)
            | msgspec.inspect.FloatType(ge=least, gt=above, le=most)
        ):
            name = "integer" if isinstance(kind, msgspec.inspect.IntType) else "number"
            bounds = [f"≥ {least:g}" if least is not None else "", f"> {above:g}" if above is not None else ""]
            return ", ".join(filter(None, [name, *bounds, f"≤ {most:g}" if most is not None else ""]))
        case msgspec.inspect.LiteralType(values=values):
            return ", ".join(f"`{value}`" for value in values)
        case msgspec.inspect.VarTupleType() | msgspec.inspect.ListType():
            return "list of text" if isinstance(kind.item_type, msgspec.inspect.StrType) else "list"
        case msgspec.inspect.DictType():
            return "table"
        case _:
            return "text"


def _default(setting: Setting) -> str:
    return f"`{msgspec.json.encode(setting.default).decode()}`"


def _sentence(*texts: str) -> str:
    return " ".join(f"{text.rstrip('.')}." for text in texts if text)


def _table(names: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    def line(cells: Sequence[Any]) -> str:
        return "| " + " | ".join(str(cell).replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"

    return "\n".join([line(names), "|" + "---|" * len(names), *map(line, rows)])


def _literal(text: str, language: str = "text") -> str:
    return f"```{language}\n{text.strip(chr(10))}\n```"


def _page(parts: Iterable[str]) -> str:
    return "\n\n".join(part for part in parts if part) + "\n"
