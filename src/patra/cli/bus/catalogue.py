"""`patra bus catalogue`: event types; check a change, release it, write documentation (B4)."""

from pathlib import Path
from typing import Any

import click

from patra.cli.bus.common import bus_in
from patra.cli.options import config_option, json_option, opened, show


@click.group(invoke_without_command=True)
@click.pass_context
@config_option
@json_option
def catalogue(ctx: click.Context, config: str | None, as_json: bool) -> None:
    """Event types. Subcommands check a change against what was released, release it, and write documentation."""
    if ctx.invoked_subcommand is not None:
        return
    found = _catalogue(config)
    rows = [
        {"type": k.name, "producer": k.producer, "consumers": ", ".join(c.group for c in k.consumers),
         "versions": ", ".join(f"{c.version} {c.status}" for c in k.contracts.values()), "title": k.title}
        for k in found.types.values()
    ]  # fmt: skip
    show(rows, as_json=as_json)


def _catalogue(config: str | None, folder: str | None = None) -> Any:
    from patra.bus.catalogue import load
    from patra.cli.options import loaded

    if folder is not None:
        return load([Path(folder)], built_in=False)
    return load([Path(one) for one in loaded(config).settings.bus.catalogue])


def _released(folder: str | None, against: str | None) -> Path:
    from importlib.resources import files

    from patra.bus.catalogue import RELEASED

    if against:
        return Path(against)
    return Path(folder) / RELEASED if folder else Path(str(files("patra.bus") / "contracts" / RELEASED))


def _all_released(folder: str | None, against: str | None, config: str | None) -> list[Path]:
    """What a change is compared with: without a word, the built-in release and that of each folder in the settings."""
    from patra.bus.catalogue import RELEASED
    from patra.cli.options import loaded

    first = _released(folder, against)
    if folder or against:
        return [first]
    return [first, *(Path(one) / RELEASED for one in loaded(config).settings.bus.catalogue)]


def _last(path: Path) -> Any:
    """What a released file holds; what is wrong with it is said with its path."""
    from patra.bus.evolution import decode_release
    from patra.bus.reasons import R
    from patra.kernel.errors import ConfigInvalid

    try:
        return decode_release(path.read_bytes())
    except OSError as error:
        raise ConfigInvalid(R.CATALOGUE_INVALID, f"it cannot be read: {error.strerror}", place=str(path)) from None
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
def check(folder: str | None, against: str | None, store: bool, config: str | None) -> None:
    """Refuse a change that breaks consumers without a new major version (exit code 1)."""
    from patra.bus.evolution import Objection, objections

    if store:
        with opened(config) as patra:
            found = patra.db.read(bus_in(patra).evolution)
    else:
        following = _catalogue(config, folder)
        found: list[Objection] = []
        for path in _all_released(folder, against, config):
            if path.exists() or against:  # a file that was named must be there
                found += objections(_last(path), following)
            else:
                click.echo(f"{path} is not there: nothing was released yet", err=True)
    for objection in found:
        click.echo(str(objection), err=True)
    if found:
        raise SystemExit(1)
    click.echo("the catalogue follows on what was released")


@catalogue.command("release")
@folder_option
@against_option
@config_option
def release_(folder: str | None, against: str | None, config: str | None) -> None:
    """Check, then write the released file that the next change is compared with."""
    from patra.bus.catalogue import load
    from patra.bus.evolution import encode_release, objections, release

    path = _released(folder, against)
    following = _catalogue(config, folder) if folder or against else load([])  # beside the built-in: these alone
    found = objections(_last(path), following) if path.exists() else []
    for objection in found:
        click.echo(str(objection), err=True)
    if found:
        raise SystemExit(1)
    made = release(following)
    try:
        path.write_bytes(encode_release(made))
    except OSError as error:
        raise _unwritable(error) from None
    click.echo(f"{path}: {len(made.types)} event types, {made.digest[:12]}")


@catalogue.command()
@click.option("--out", required=True, type=click.Path(file_okay=False), help="Folder to write into.")
@folder_option
@config_option
def docs(out: str, folder: str | None, config: str | None) -> None:
    """Write asyncapi.json and a readable page for every event type."""
    import msgspec

    import patra
    from patra.bus import pages

    found = _catalogue(config, folder)
    target = Path(out)
    document = msgspec.json.format(msgspec.json.encode(pages.asyncapi(found, patra.__version__)), indent=2)
    written = {"asyncapi.json": document.decode(), "index.md": pages.index(found), "all.md": pages.book(found)}
    written |= {f"{name}.md": pages.page(kind) for name, kind in found.types.items()}
    try:
        target.mkdir(parents=True, exist_ok=True)
        for name, text in written.items():
            (target / name).write_text(text, "utf-8")
    except OSError as error:
        raise _unwritable(error) from None
    click.echo(f"{len(found.types)} event types in {target}")
