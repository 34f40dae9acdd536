"""`patra bus new`: a contract to begin with, drafted from a name and, if there is one, an example."""

from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click

from patra.cli.terminal.options import outcome_option, say_outcome

if TYPE_CHECKING:
    from collections.abc import Mapping

EPILOG = """\b
Examples:
  patra bus new order.placed --producer Shop
  patra bus new order.placed --producer Shop --example order.json --folder contracts"""


@click.command("new", epilog=EPILOG)
@click.argument("event_type")
@click.option("--producer", required=True, help="The one module that publishes this type.")
@click.option(
    "--example", type=click.File("rb"), help="A payload as JSON (- for standard input): its fields are taken over."
)
@click.option(
    "--folder", type=click.Path(file_okay=False), default="", help="Write TYPE.yaml there, instead of printing it."
)
@outcome_option
def new(event_type: str, producer: str, example: Any, folder: str) -> None:
    """Draft the contract of EVENT_TYPE: a file for a folder that `bus.catalogue` names.

    Fields of the example are required, each with its type; look through them before you release the contract.
    """
    import msgspec

    from patra.bus.catalogue.catalogue import parse

    try:
        payload: Any = msgspec.json.decode(example.read()) if example else {"id": "1"}
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise click.BadParameter(str(error), param_hint="--example") from None
    if not isinstance(payload, dict):
        raise click.BadParameter("a payload is a JSON object", param_hint="--example")
    text = _draft(event_type, producer, payload)  # pyright: ignore[reportUnknownArgumentType]
    parse(text, f"{event_type}.yaml")  # an invalid contract is reported with its position
    if not folder:
        say_outcome(text.removesuffix("\n"), type=event_type, contract=text)
        return
    path = Path(folder) / f"{event_type}.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise click.ClickException(f"{path} is there already") from None
    say_outcome(str(path), type=event_type, file=str(path))
    click.echo(f"next: name {folder} in bus.catalogue, then `patra bus catalogue check`", err=True)


def _draft(event_type: str, producer: str, payload: "Mapping[str, Any]") -> str:
    import yaml

    title = event_type.replace(".", " ").replace("_", " ").capitalize()
    made = {
        "type": event_type,
        "title": title,
        "description": "Say what happened, for the people who consume it.",
        "producer": producer,
        "versions": [{"version": "1.0", "schema": _schema(payload), "examples": [dict(payload)]}],
    }
    return yaml.safe_dump(made, sort_keys=False, allow_unicode=True)


def _schema(value: Any) -> dict[str, Any]:
    match value:
        case dict():
            fields = cast("dict[str, Any]", value)
            return {
                "type": "object",
                "additionalProperties": False,
                "required": list(fields),
                "properties": {name: _schema(inner) for name, inner in fields.items()},
            }
        case list():
            items = cast("list[Any]", value)
            return {"type": "array", "items": _schema(items[0])} if items else {"type": "array"}
        case bool():
            return {"type": "boolean"}
        case int():
            return {"type": "integer"}
        case float():
            return {"type": "number"}
        case None:
            return {"type": "null"}
        case _:
            return {"type": "string"}
