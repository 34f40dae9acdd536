"""`patra ingest pack …`: packs checked, loaded, shown, compared. `patra ingest spec …`: snapshots with origins."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from patra.cli.ingest import trigger_of, trigger_options
from patra.cli.ingest_new import command as new
from patra.cli.options import config_option, json_option, opened, show, table

if TYPE_CHECKING:
    from patra.ingest.compiler import LoadedPack
    from patra.ingest.difference import Change
    from patra.ingest.problem import Problem
    from patra.kernel.db import Tx


@click.group()
def pack() -> None:
    """Start, check, load, show and compare source packs."""


pack.add_command(new)


def _files(paths: tuple[str, ...]) -> list[Path]:
    found: list[Path] = []
    for text in paths:
        path = Path(text)
        found += sorted([*path.glob("*.yaml"), *path.glob("*.yml")]) if path.is_dir() else [path]
    if not found:
        raise click.UsageError("there is no pack in that folder: its files end in .yaml")
    return found


def _checked(path: Path) -> "tuple[LoadedPack | None, list[Problem]]":
    """A pack, if it may be loaded, and everything that is to be said about it."""
    from patra.ingest.compiler import check_pack, load_pack
    from patra.ingest.document import read_document
    from patra.ingest.pack import Pack
    from patra.ingest.problem import Problem, errors, ordered
    from patra.ingest.reasons import R

    try:
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        return None, [Problem(code=R.PACK_UNREADABLE, message=f"cannot be read: {error}", file=str(path))]
    document = read_document(text, str(path), Pack)
    loaded = load_pack(document)
    if loaded is None:
        return None, ordered(document.problems)
    problems = check_pack(loaded)
    return (None if errors(problems) else loaded), problems


def _report(problems: "list[Problem]") -> None:
    for problem in problems:
        click.echo(f"{problem.severity}: {problem}", err=True)


@pack.command(epilog="\b\nExit code 1 when a pack cannot be loaded; warnings are lesser ways that will be taken.")
@click.argument("paths", nargs=-1, required=True, metavar="FILE|DIR…")
@json_option
def check(paths: tuple[str, ...], as_json: bool) -> None:
    """Report every problem of a pack with file, line, path and what to do. Needs no store."""
    failed = 0
    found: list[Problem] = []
    for path in _files(paths):
        loaded, problems = _checked(path)
        found += problems
        failed += loaded is None
        if not as_json:
            _report(problems)
            click.echo(f"{path}: {'may be loaded' if loaded else 'cannot be loaded'}")
    if as_json:
        show(found, as_json=True)
    if failed:
        raise click.exceptions.Exit(1)


@pack.command()
@click.argument("paths", nargs=-1, required=True, metavar="FILE|DIR…")
@config_option
@json_option
def load(paths: tuple[str, ...], config: str | None, as_json: bool) -> None:
    """Check packs and write them into the registry, all in one transaction or none; prints what changed."""
    from patra.app.actor import command_line_actor
    from patra.app.audit import audit
    from patra.ingest import shelf

    packs: list[LoadedPack] = []
    failed = 0
    for path in _files(paths):
        loaded, problems = _checked(path)
        _report(problems)
        if loaded is None:
            failed += 1
        else:
            packs.append(loaded)
    if failed:
        click.echo(f"nothing was loaded: {failed} of {failed + len(packs)} cannot be", err=True)
        raise click.exceptions.Exit(1)
    actor = command_line_actor()
    with opened(config) as patra:
        now = patra.clock.now()

        def work(tx: "Tx") -> list[shelf.Shelved]:
            done = shelf.load(tx, packs, by=actor.name, now=now)
            for one in done:
                if one.changes:
                    detail = {"version": one.version_no, "hash": one.pack_hash, "changes": len(one.changes)}
                    audit(tx, actor, "ingest.pack_load", one.source, detail, now)
            return done

        done = patra.db.run(work)
    if as_json:
        show(done, as_json=True)
        return
    for one in done:
        if not one.changes:
            click.echo(f"{one.source} {one.pack_version}: unchanged (version {one.version_no})")
            continue
        click.echo(f"{one.source} {one.pack_version}: {'new' if one.first else 'changed'}, version {one.version_no}")
        if not one.first:
            _changes(list(one.changes))


def _changes(changes: "list[Change]") -> None:
    for change in changes:
        match change.kind:
            case "added":
                click.echo(f"  + {change.path}: {_brief(change.after)}")
            case "removed":
                click.echo(f"  - {change.path}: {_brief(change.before)}")
            case _:
                click.echo(f"  ~ {change.path}: {_brief(change.before)} → {_brief(change.after)}")


def _brief(value: Any) -> str:
    import msgspec

    text = msgspec.json.encode(value).decode()
    return text if len(text) <= 100 else f"{text[:97]}…"


@pack.command("show")
@click.argument("source")
@click.option("--version", "version_no", type=click.IntRange(1, 2**31), help="As it was loaded then, instead of now.")
@click.option("--versions", "listing", is_flag=True, help="List the versions that were loaded.")
@config_option
@json_option
def show_pack(source: str, version_no: int | None, listing: bool, config: str | None, as_json: bool) -> None:
    """Show what the registry holds for a source, as YAML."""
    from patra.ingest import shelf
    from patra.kernel.clock import format_instant
    from patra.kernel.errors import Invalid

    with opened(config) as patra:
        if listing:
            found = patra.db.read(lambda tx: shelf.versions(tx, source))
            rows = [
                {
                    "version": v.version_no,
                    "pack": v.pack_version,
                    "hash": v.pack_hash[:12],
                    "file": v.file_name,
                    "loaded": format_instant(v.loaded_at),
                    "by": v.loaded_by,
                }
                for v in found
            ]
            show(rows, as_json=as_json)
            return
        tree = patra.db.read(
            lambda tx: shelf.read_tree(tx, source) if version_no is None else shelf.version_tree(tx, source, version_no)
        )
    if tree is None:
        raise Invalid("i_source_unknown", f"no such source or version: {source}", advice="`patra ingest sources`")
    if as_json:
        show(tree, as_json=True)
        return
    import yaml

    click.echo(yaml.safe_dump(tree, sort_keys=False, allow_unicode=True, width=110), nl=False)


@pack.command()
@click.argument("what", metavar="FILE|SOURCE")
@click.argument("first", type=click.IntRange(1, 2**31), required=False, metavar="[VERSION")
@click.argument("second", type=click.IntRange(1, 2**31), required=False, metavar="VERSION]")
@config_option
@json_option
def diff(what: str, first: int | None, second: int | None, config: str | None, as_json: bool) -> None:
    """Show what loading FILE would change, or what changed between versions of SOURCE. Exit code 1 if anything."""
    from patra.ingest import shelf
    from patra.ingest.difference import difference
    from patra.kernel.errors import Invalid

    if first is None:
        loaded, problems = _checked(Path(what))
        if loaded is None:
            _report(problems)
            raise click.exceptions.Exit(5)
        with opened(config) as patra:
            before = patra.db.read(lambda tx: shelf.read_tree(tx, loaded.pack.source))
        changes = difference(before, loaded.tree)
    else:
        with opened(config) as patra:
            old, new = patra.db.read(
                lambda tx: (
                    shelf.version_tree(tx, what, first),
                    shelf.version_tree(tx, what, second) if second is not None else shelf.read_tree(tx, what),
                )
            )
        if old is None or new is None:
            raise Invalid(
                "i_source_unknown", f"{what} has no such version", advice=f"`patra ingest pack show {what} --versions`"
            )
        changes = difference(old, new)
    if as_json:
        show(changes, as_json=True)
    else:
        _changes(changes)
        click.echo("no difference" if not changes else f"{len(changes)} differences")
    if changes:
        raise click.exceptions.Exit(1)


@pack.command()
def schema() -> None:
    """Print the JSON Schema of the pack format, for editors."""
    from patra.ingest.reference import pack_schema

    show(pack_schema(), as_json=True)


@click.group()
def spec() -> None:
    """Show the snapshot that a plan would get."""


@spec.command("show")
@trigger_options
@click.option("--all", "everything", is_flag=True, help="Values that the platform gives, too.")
@config_option
@json_option
def show_spec(config: str | None, as_json: bool, everything: bool, **said: Any) -> None:
    """Compile a snapshot and show each value with its origin: the level, the file and the line it comes from."""
    from patra.ingest import shelf
    from patra.ingest.origins import with_origins
    from patra.ingest.planner import Planner
    from patra.ingest.spec import encode_spec

    with opened(config) as patra:
        trigger = trigger_of(patra.clock.now(), **said)
        compiled = Planner(patra.db, patra.clock).compile(trigger)
        loaded = patra.db.read(lambda tx: shelf.read_pack(tx, trigger.source))
    _report(list(compiled.problems))
    if compiled.spec is None or loaded is None:
        raise click.exceptions.Exit(5)
    if as_json:
        import msgspec

        click.echo(msgspec.json.format(encode_spec(compiled.spec), indent=2))
        return
    rows = [
        [row.path, row.value, row.level, row.place]
        for row in with_origins(compiled, loaded.source)
        if everything or row.level != "platform"
    ]
    table(["path", "value", "level", "where"], rows)
    made = compiled.spec
    for name, value in (
        ("spec_fingerprint", made.spec_fingerprint),
        ("expr_proto_hash", made.expr_proto_hash),
        ("record_expr_hash", made.record_expr_hash),
        ("namespace", f"{made.cursor.scope} {made.cursor.namespace_key}"),
        ("hosts", ", ".join(made.hosts)),
    ):
        click.echo(f"{name}: {value}")
