"""`patra bus catalogue`: event types; check a change, release it, write documentation (B4)."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from patra.cli.bus.common import bus_in
from patra.cli.terminal.groups import Group
from patra.cli.terminal.options import (
    config_option,
    json_option,
    json_wanted,
    load_settings,
    open_patra,
    outcome_option,
    say_outcome,
    show,
    store_is_there,
    wide_wanted,
)
from patra.cli.terminal.wrapping import say
from patra.kernel.errors import count_phrase

if TYPE_CHECKING:
    from patra.bus.catalogue.catalogue import Catalogue, EventType
    from patra.bus.catalogue.evolution import Objection


@click.group(cls=Group, invoke_without_command=True)
@click.pass_context
@config_option
@json_option
def catalogue(ctx: click.Context, config: str | None, as_json: bool) -> None:
    """Event types. Subcommands check a change against what was released, release it, and write documentation.

    On a terminal your own types are listed, and those that come with Patra with --wide.
    """
    if ctx.invoked_subcommand is not None:
        return
    found = _with_types_of_store(_catalogue(config), config)
    shown, left = _own_first(found)
    rows = [
        {"type": k.name, "producer": k.producer, "consumers": ", ".join(c.group for c in k.consumers),
         "versions": ", ".join(f"{c.version} {c.status}" for c in k.contracts.values()), "title": k.title}
        for k in (found.types.values() if as_json or not sys.stdout.isatty() else shown)
    ]  # fmt: skip
    show(rows, as_json=as_json)
    if left and not as_json and sys.stdout.isatty():
        say(f"and {count_phrase(left, 'type')} that come{'s' if left == 1 else ''} with Patra: --wide lists them")


def _own_first(found: "Catalogue") -> "tuple[list[EventType], int]":
    """The types for a person, and how many of Patra's are left out: all of them where there are others, but --wide."""
    from patra.bus.catalogue.catalogue import load

    bundled = load().types.keys()
    own = [kind for name, kind in found.types.items() if name not in bundled]
    rest = [kind for name, kind in found.types.items() if name in bundled]
    return (own, len(rest)) if own and not wide_wanted() else ([*own, *rest], 0)


def _with_types_of_store(found: "Catalogue", config: str | None) -> "Catalogue":
    """Also what programs registered on the store, where there is one and it answers."""
    from patra.bus.catalogue.registered_types import shown_types
    from patra.kernel.errors import PatraError

    if not store_is_there(load_settings(config).settings):
        return found
    try:
        with open_patra(config) as patra:
            return shown_types(found, patra.db.read(bus_in(patra).registered_elsewhere))
    except PatraError as error:
        click.echo(f"without the types that programs registered on the store: {error}", err=True)
        return found


def _catalogue(config: str | None, folder: str | None = None) -> Any:
    from patra.bus.catalogue.catalogue import load

    if folder is not None:
        return load([Path(folder)], built_in=False)
    return load([Path(one) for one in load_settings(config).settings.bus.catalogue])


def _released_folder(folder: str | None, against: str | None) -> Path:
    from importlib.resources import files

    from patra.bus.catalogue.catalogue import RELEASED

    if against:
        return Path(against)
    return Path(folder) / RELEASED if folder else Path(str(files("patra.bus") / "contracts" / RELEASED))


def _all_released(folder: str | None, against: str | None, config: str | None) -> list[Path]:
    """What a change is compared with: unless named, the built-in release and that of each folder in the settings."""
    from patra.bus.catalogue.catalogue import RELEASED

    first = _released_folder(folder, against)
    if folder or against:
        return [first]
    return [first, *(Path(one) / RELEASED for one in load_settings(config).settings.bus.catalogue)]


def _last(path: Path) -> Any:
    """What a released file holds; what is wrong with it is said with its path."""
    from patra.bus.catalogue.evolution import decode_release
    from patra.bus.catalogue.reasons import Reason
    from patra.kernel.errors import ConfigInvalid

    try:
        return decode_release(path.read_bytes())
    except OSError as error:
        raise ConfigInvalid(Reason.CATALOGUE_INVALID, f"it cannot be read: {error.strerror}", place=str(path)) from None
    except ConfigInvalid as error:
        raise ConfigInvalid(error.code, error.detail, place=str(path), advice=error.advice) from None


def _unwritable(error: OSError) -> click.ClickException:
    return click.FileError(str(error.filename), error.strerror)


folder_option = click.option(
    "--folder",
    type=click.Path(exists=True, file_okay=False),
    help="Contracts in this folder instead of the built-in ones.",
)
against_option = click.option(
    "--against",
    type=click.Path(dir_okay=False),
    help="Released file to compare with; released.json beside the contracts, of every folder in the settings.",
)


@catalogue.command()
@folder_option
@against_option
@click.option("--store", is_flag=True, help="Compare with what is in force on the store, and with its subscriptions.")
@config_option
@outcome_option
def check(folder: str | None, against: str | None, store: bool, config: str | None) -> None:
    """Refuse a change that breaks consumers without a new major version (exit code 1)."""
    from patra.bus.catalogue.evolution import Objection, objections

    compared = True
    if store:
        with open_patra(config) as patra:
            bus = bus_in(patra)
            found, others = patra.db.read(lambda tx: (bus.evolution(tx), bus.registered_elsewhere(tx).types))
        for name in others:
            click.echo(
                f"{name} is registered by a program, which handles it: there is no contract of it here", err=True
            )
    else:
        following = _catalogue(config, folder)
        found: list[Objection] = []
        released = _all_released(folder, against, config)
        compared = bool(against) or any(path.exists() for path in released[1:] or released)  # the first is built in
        for path in released:
            if path.exists() or against:  # a file that was named must be there
                found += objections(_last(path), following)
            else:
                click.echo(f"{path} is not there: nothing was released yet", err=True)
    _object(found)
    said = "is compatible with what was released" if compared else "is valid; there is no release to compare it with"
    say_outcome(f"the catalogue {said}", compatible=True, objections=[])
    if not (folder or against or load_settings(config).settings.bus.catalogue):
        click.echo("only the built-in types were checked: bus.catalogue of the settings names no folder", err=True)


@catalogue.command("release")
@folder_option
@against_option
@config_option
@outcome_option
def release_(folder: str | None, against: str | None, config: str | None) -> None:
    """Check, then write the released file that the next change is compared with.

    Without --folder: that of every folder in `bus.catalogue`. What comes with Patra is released by Patra alone.
    """
    from patra.bus.catalogue.evolution import objections

    targets = _targets(folder, against, config)
    found = [one for path, following in targets if path.exists() for one in objections(_last(path), following)]
    _object(found)
    written = [_write_release(path, following) for path, following in targets]
    said = [f"{one['file']}: {count_phrase(one['types'], 'event type')}, {one['digest'][:12]}" for one in written]
    say_outcome("\n".join(said), released=written)


def _object(found: "Sequence[Objection]") -> None:
    """Say what is incompatible and end with exit code 1; nothing to say: go on."""
    from patra.bus.catalogue.reasons import Reason

    if not found:
        return
    for objection in found:
        click.echo(str(objection), err=True)
    if any(objection.code is Reason.EVOLUTION_MAJOR for objection in found):
        click.echo(
            "Undo these changes, or make them in a new major: leave the released version as it was with "
            "`status: retiring`, and add the changed one with the next major and `status: current`.",
            err=True,
        )
    if json_wanted():
        show({"compatible": False, "objections": [str(one) for one in found]}, as_json=True)
    raise SystemExit(1)


def _targets(folder: str | None, against: str | None, config: str | None) -> "list[tuple[Path, Any]]":
    """Each released file to write, with the contracts that it is to hold."""
    from patra.bus.catalogue.catalogue import RELEASED

    if folder or against:
        return [(_released_folder(folder, against), _catalogue(config, folder))]
    folders = load_settings(config).settings.bus.catalogue
    if not folders:
        raise click.UsageError("there is nothing of yours to release: say --folder, or set bus.catalogue")
    return [(Path(one) / RELEASED, _catalogue(config, one)) for one in folders]


def _write_release(path: Path, following: Any) -> dict[str, Any]:
    from patra.bus.catalogue.evolution import encode_release, release

    made = release(following)
    try:
        path.write_bytes(encode_release(made))
    except OSError as error:
        raise _unwritable(error) from None
    return {"file": str(path), "types": len(made.types), "digest": made.digest}


@catalogue.command()
@click.option("--out", required=True, type=click.Path(file_okay=False), help="Folder to write into.")
@folder_option
@config_option
@outcome_option
def docs(out: str, folder: str | None, config: str | None) -> None:
    """Write asyncapi.json and a readable page for every event type."""
    import msgspec

    import patra
    from patra.bus import asyncapi

    found = _catalogue(config, folder)
    target = Path(out)
    document = msgspec.json.format(msgspec.json.encode(asyncapi.asyncapi(found, patra.__version__)), indent=2)
    written = {"asyncapi.json": document.decode(), "index.md": asyncapi.index(found), "all.md": asyncapi.book(found)}
    written |= {f"{name}.md": asyncapi.page(kind) for name, kind in found.types.items()}
    try:
        target.mkdir(parents=True, exist_ok=True)
        for name, text in written.items():
            (target / name).write_text(text, "utf-8")
    except OSError as error:
        raise _unwritable(error) from None
    say_outcome(
        f"{count_phrase(len(found.types), 'event type')} in {target}", types=len(found.types), folder=str(target)
    )
