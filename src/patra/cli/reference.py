"""The generated parts of the reference pages: settings, commands, endpoints, metrics, machines, reasons, columns.

`python -m patra.cli.reference docs/reference` writes them between the marks of the committed pages; a test holds the
pages to what the code declares.
"""

import importlib
import json
import pkgutil
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Any

import click
import msgspec

import patra
from patra.app.configuration.settings import Setting, Settings, StoreSettings, every_setting, sections
from patra.app.wiring import build
from patra.attribution.contract.event_fields import (
    ENVELOPE_FIELDS,
    ENVELOPE_REQUIRED,
    FIELDS,
    Field,
    Form,
    example_event,
    optional_fields,
    required_fields,
)
from patra.attribution.contract.event_types import KINDS, MAX_FIELD_CHARS, tier
from patra.bus.publishing.envelope import OPTIONAL, Wire
from patra.cli.citations import link_marks, targets
from patra.cli.machine_svg import machine_svg
from patra.cli.main import COMMANDS, ENGINES, EXIT_CODES, cli
from patra.ingest.packs.work import Work
from patra.ingest.works.export import JOINED, WORKS
from patra.ingest.works.merge import Merged
from patra.kernel.clock import DAY
from patra.kernel.machine import Machine, declared_machines
from patra.kernel.reason import ReasonCode
from patra.kernel.telemetry import METRICS
from patra.web.asgi import app


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
        if not metric.name.startswith("patra_test_")  # declared by tests
    ]
    return _page([_table(("metric", "kind", "labels", "meaning"), rows)])


def machines_page() -> str:
    """Every state machine as its table."""
    import_everything()
    parts: list[str] = []
    for machine in _our_machines():
        ends = ", ".join(f"`{state}`" for state in machine.states if state in machine.terminal) or "none"
        parts += [
            f"## {machine.name}",
            f"Rule version `{machine.version}`. Begins in `{machine.initial}`; final states: {ends}.",
            _table(
                ("from", "on", "to"), [(f"`{was}`", f"`{on}`", f"`{to}`") for (was, on), to in machine.edges.items()]
            ),
            f"![{machine.name}: states and transitions](machines/{machine.name}.svg)",
        ]
    return _page(parts)


def reasons_page() -> str:
    """Every reason code by engine."""
    import_everything()
    parts: list[str] = []
    ours = [kind for kind in ReasonCode.__subclasses__() if kind.__module__.startswith("patra.")]
    for reasons in sorted(ours, key=lambda kind: kind.__module__):
        parts.append(f"## {reasons.__module__.split('.')[1]}")
        parts.append(_table(("code", "given when"), [(f"`{reason.value}`", reason.text) for reason in reasons]))
    return _page(parts)


def events_page() -> str:
    """The input contract of attribution: every type with its fields, values and an example."""
    parts = ["## Envelope", _fields_table(ENVELOPE_FIELDS, ENVELOPE_REQUIRED)]
    for kind in KINDS.values():
        own = (*required_fields(kind), *optional_fields(kind))
        parts += [
            f"## {kind.name}",
            f"Tier `{tier(kind)}`: taken up to {kind.window // DAY} days after `eventAt`. Fact: `{kind.attribution}`.",
            _fields_table([FIELDS[name] for name in own if name != "eventType"], required_fields(kind)),
            _literal(json.dumps(example_event(kind), indent=2), "json"),
        ]
    return _page(parts)


def _fields_table(fields: Iterable[Field], required: Sequence[str]) -> str:
    return _table(
        ("field", "required", "holds", "example", "meaning"),
        [
            (
                f"`{field.name}`",
                "yes" if field.name in required else "",
                _holds(field),
                f"`{json.dumps(field.example)}`",
                field.purpose,
            )
            for field in fields
        ],
    )


def _holds(field: Field) -> str:
    values = ", ".join(f"`{value}`" for value in field.values)
    match field.form:
        case Form.ID:
            return "1 to 128 of `A-Z a-z 0-9 . _ : -`"
        case Form.TEXT:
            return f"text of 1 to {MAX_FIELD_CHARS:,} characters"
        case Form.INSTANT:
            return "RFC 3339 instant with an offset"
        case Form.VERSION:
            return f"integer, or text of 1 to {MAX_FIELD_CHARS:,} characters"
        case Form.ENUM:
            return values
        case Form.OPEN_ENUM:
            return f"{values}; another text is taken too"
        case Form.OBJECT:
            return "object"


def envelope_page() -> str:
    """Every field of an event's envelope."""
    import_everything()
    return _page(
        [
            _table(
                ("field", "type", "required", "meaning"),
                [
                    (f"`{field.name}`", _shape(field.type), _needed_extra(field.name), ENVELOPE[field.name])
                    for field in msgspec.structs.fields(Wire)
                ],
            )
        ]
    )


def works_page() -> str:
    """Every column of exported works."""
    described = {
        field.name: _description(field.type) for struct in (Merged, Work) for field in msgspec.structs.fields(struct)
    } | {
        "ids": "Further identifiers by kind; one text each without `--dedupe`, a list of them with it.",
        "sources": "Sources that have the work.",
        "issued": "When it was published; with `--dedupe` by the first source that says so, or by a later one that "
        "says it more exactly and agrees (same year, or same year and month).",
        "issued_precision": "How exactly `issued` is known: `year`, `month`, `day` or `instant`.",
    }
    rows = [
        (f"`{name}`", f"`{kind}`", "yes" if name in WORKS.columns else "", "yes" if name in JOINED.columns else "",
         described.get(name, ""))
        for name, kind in (dict(WORKS.columns) | dict(JOINED.columns)).items()
    ]  # fmt: skip
    return _page([_table(("column", "DuckDB type", "one row per record", "with `--dedupe`", "what it holds"), rows)])


def write(folder: Path) -> None:
    """Put the generated parts into the pages of a folder, and draw the state machines."""
    known = targets(folder.parent / "specification")
    for page in sorted(folder.glob("*.md")):
        text = page.read_text(encoding="utf-8")
        page.write_text(current(text, known), encoding="utf-8")
    drawings = folder / "machines"
    drawings.mkdir(exist_ok=True)
    for name, drawing in drawings_of_machines().items():
        (drawings / name).write_text(drawing, encoding="utf-8")


def _our_machines() -> "list[Machine[StrEnum, str]]":
    """Those of Patra: a program around it may declare its own."""
    return [machine for machine in declared_machines() if type(machine.initial).__module__.startswith("patra.")]


def drawings_of_machines() -> dict[str, str]:
    """Every state machine as a picture, by the name of its file."""
    import_everything()
    return {f"{machine.name}.svg": machine_svg(machine) for machine in _our_machines()}


def current(text: str, known: Mapping[str, str]) -> str:
    """A page with its generated part as the code has it today."""

    def part(match: re.Match[str]) -> str:
        return f"{match[1]}\n\n{link_marks(PAGES[match[2]](), known, '../specification/')}\n{match[3]}"

    return MARKS.sub(part, text)


MARKS = re.compile(r"(<!-- generated: (\w+); `\./dev docs` writes it -->).*?(<!-- end -->)", re.DOTALL)
ENVELOPE = {
    "event_id": "UUIDv7, filled in when left out; the same however often the event is delivered.",
    "event_type": "Lower-case words joined by dots, as the catalogue has it.",
    "event_version": "Version of the payload's contract, `1.0`.",
    "schema_version": "Version of the envelope itself, `1.0`.",
    "producer": "The one authoritative producer of this type.",
    "forwarded_by": "Who passed the event on, where that was not its producer; in order.",
    "tenant_id": "Whose event it is; consumers and webhooks can be limited to a tenant.",
    "project_id": "A part of the tenant.",
    "trace_id": "Shared by everything that one request caused.",
    "correlation_id": "Shared by the events of one business process, such as an order.",
    "causation_id": "The `event_id` of the event that caused this one.",
    "idempotency_key": "The sender's own key: the same key and payload again is the same event.",
    "occurred_at": "When it happened, RFC 3339 in UTC; filled in when left out.",
    "extensions": "Attributes of a CloudEvent that have no field here, kept as they came.",
    "payload": "The event itself, as its contract describes it.",
}
FILLED_IN = frozenset({"event_id", "schema_version", "trace_id", "correlation_id", "occurred_at"})
"""Fields that the bus fills in when a sender leaves them out."""


def _needed_extra(name: str) -> str:
    return "" if name in OPTIONAL else "filled in" if name in FILLED_IN else "yes"


def _shape(kind: Any) -> str:
    match msgspec.inspect.type_info(kind):
        case msgspec.inspect.StrType():
            return "text"
        case msgspec.inspect.UnionType():
            return "text or null"
        case msgspec.inspect.VarTupleType():
            return "list of text"
        case _:
            return "object"


def _description(kind: Any) -> str:
    notes = getattr(kind, "__metadata__", ())
    return next((note.description or "" for note in notes if isinstance(note, msgspec.Meta)), "")


PAGES: dict[str, Callable[[], str]] = {
    "settings": settings_page,
    "commands": commands_page,
    "endpoints": endpoints_page,
    "metrics": metrics_page,
    "machines": machines_page,
    "reasons": reasons_page,
    "attribution_events": events_page,
    "envelope": envelope_page,
    "works": works_page,
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


if __name__ == "__main__":
    write(Path(sys.argv[1]))
