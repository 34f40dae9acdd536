"""`patra ingest pack …`: packs checked, loaded, shown, compared. `patra ingest spec …`: snapshots with origins."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from patra.cli.ingest.group import trigger_of, trigger_options
from patra.cli.ingest.operations import act, why_option
from patra.cli.ingest.pack_new import new, unreadable
from patra.cli.terminal.groups import Group
from patra.cli.terminal.options import (
    config_option,
    json_option,
    open_patra,
    outcome_option,
    show,
    store_is_there,
    table,
    without_controls,
)
from patra.cli.terminal.options import load_settings as settings_of

if TYPE_CHECKING:
    from patra.ingest.packs.compiler import LoadedPack
    from patra.ingest.packs.diff import Change
    from patra.ingest.packs.problems import Problem
    from patra.ingest.packs.secret_grants import Grant
    from patra.kernel.db import Tx


@click.group(cls=Group)
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


def _check_pack(path: Path, grants: "Sequence[Grant] | None") -> "tuple[LoadedPack | None, list[Problem], bool]":
    """A pack, if it may be loaded, everything that is to be said about it, and whether its entries could not be read.

    Without grants nothing is said about secrets. Where an entry could not be read, nothing else was checked.
    """
    from patra.ingest.packs.compiler import check_pack, load_pack
    from patra.ingest.packs.problems import Problem, errors, order_problems
    from patra.ingest.packs.schema import Pack
    from patra.ingest.packs.secret_grants import problems_of
    from patra.ingest.packs.yaml.yaml_document import read_document
    from patra.ingest.vocabulary.reasons import Reason

    try:
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        message = unreadable(path, error)
        return None, [Problem(code=Reason.PACK_UNREADABLE, message=message, file=str(path))], False
    document = read_document(text, str(path), Pack)
    loaded = load_pack(document)
    if loaded is None:
        return None, order_problems(document.problems), True
    problems = order_problems([*check_pack(loaded), *([] if grants is None else problems_of(loaded, grants))])
    return (None if errors(problems) else loaded), problems, False


def _grants(config: str | None) -> "list[Grant]":
    """Which secrets are allowed; none where there is no store yet."""
    from patra.ingest.packs import secret_grants

    if not store_is_there(settings_of(config).settings):
        return []
    with open_patra(config) as patra:
        return patra.db.read(secret_grants.grants_of)


def _report(problems: "list[Problem]") -> None:
    for problem in problems:
        click.echo(without_controls(f"{problem.severity}: {problem}"), err=True)


def _own_warnings(loaded: "LoadedPack", problems: "Sequence[Problem]") -> "list[Problem]":
    """The warnings that the pack of the distribution does not give, too: its fallbacks are known and documented."""
    from patra.ingest.packs import bundled
    from patra.ingest.packs.compiler import check_pack

    name = loaded.pack.source
    known = [(one.code, one.path) for one in check_pack(bundled.pack(name))] if name in bundled.names() else []
    return [one for one in problems if (one.code, one.path) not in known]


@pack.command(epilog="\b\nExit code 1 when a pack cannot be loaded; warnings name the fallbacks that will be taken.")
@click.argument("paths", nargs=-1, required=True, metavar="FILE|DIR…")
@config_option
@json_option
def check(paths: tuple[str, ...], config: str | None, as_json: bool) -> None:
    """Report every problem of a pack with file, line, path and what to do. Needs no store and creates none.

    Where there is a store, it says which secrets the pack may read (`patra ingest secret`).
    """
    failed = 0
    found: list[Problem] = []
    grants = _grants(config)
    for path in _files(paths):
        loaded, problems, unread = _check_pack(path, grants)
        found += problems
        failed += loaded is None
        if not as_json:
            _report(problems)
            click.echo(f"{path}: {'may be loaded' if loaded else 'cannot be loaded'}")
            if unread:
                click.echo(
                    "Correct these first: the rest of the pack is checked once every entry can be read.", err=True
                )
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
    from patra.app.access.actor import command_line_actor
    from patra.app.access.audit import audit
    from patra.ingest.packs import registry

    packs: list[LoadedPack] = []
    failed = 0
    grants = _grants(config)
    for path in _files(paths):
        loaded, problems, _ = _check_pack(path, grants)
        if loaded is None:
            _report(problems)
            failed += 1
        else:
            if new := len(_own_warnings(loaded, problems)):
                count = "1 warning" if new == 1 else f"{new} warnings"
                click.echo(f"{path}: {count}; `patra ingest pack check {path}` shows them", err=True)
            packs.append(loaded)
    if failed:
        click.echo(f"nothing was loaded: {failed} of {failed + len(packs)} packs cannot be loaded", err=True)
        raise click.exceptions.Exit(1)
    actor = command_line_actor()
    with open_patra(config, create=True) as patra:
        now = patra.clock.now()

        def work(tx: "Tx") -> list[registry.RegistryEntry]:
            done = registry.load(tx, packs, by=actor.name, now=now)
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


@pack.command()
@click.argument("path", metavar="FILE")
@click.option("--share", type=click.IntRange(1, 100), default=20, show_default=True, help="Plans of a hundred.")
@why_option
@config_option
@outcome_option
def stage(path: str, share: int, why: str, config: str | None) -> None:
    """Put a new version on trial: a share of the plans is made from it, the others from the version in force."""
    from patra.ingest.packs import staged_release
    from patra.ingest.planning.operations import Act

    loaded, problems, _ = _check_pack(Path(path), _grants(config))
    _report(problems)
    if loaded is None:
        raise click.exceptions.Exit(1)
    source = loaded.pack.source

    def work(tx: "Tx", by: str, now: int) -> Act:
        number = staged_release.stage(tx, loaded, share, by=by, now=now)
        detail = {"version": number, "share": share, "why": why}
        return Act(act="ingest.pack_stage", subject=source, changed=1, detail=detail)

    act(config, work)


@pack.command()
@click.argument("source")
@config_option
@json_option
def trial(source: str, config: str | None, as_json: bool) -> None:
    """Compare the version on trial with the one in force: plans, tasks, failures, quarantined records."""
    from patra.ingest.packs import staged_release

    with open_patra(config) as patra:
        show(patra.db.read(lambda tx: staged_release.compare(tx, source)), as_json=as_json)


@pack.command()
@click.argument("source")
@why_option
@config_option
@outcome_option
def promote(source: str, why: str, config: str | None) -> None:
    """Put the version on trial in force for all plans to come."""
    from patra.ingest.planning.operations import promote_pack

    act(config, lambda tx, by, now: promote_pack(tx, source, by=by, why=why, now=now))


@pack.command()
@click.argument("source")
@why_option
@config_option
@outcome_option
def rollback(source: str, why: str, config: str | None) -> None:
    """End the trial: plans to come are made from the version in force."""
    from patra.ingest.planning.operations import roll_back_pack

    act(config, lambda tx, _by, _now: roll_back_pack(tx, source, why=why))


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
    from patra.ingest.packs import registry
    from patra.kernel.clock import format_instant
    from patra.kernel.errors import Invalid

    with open_patra(config) as patra:
        if version_no is None and patra.db.read(lambda tx: registry.read_tree(tx, source)) is None:
            raise patra.db.read(lambda tx: registry.unknown_source(tx, source))
        if listing:
            found = patra.db.read(lambda tx: registry.versions(tx, source))
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
            lambda tx: (
                registry.read_tree(tx, source) if version_no is None else registry.version_tree(tx, source, version_no)
            )
        )
    if tree is None:
        advice = f"`patra ingest pack show {source} --versions` lists them"
        raise Invalid("i_source_unknown", f"{source} has no such version", advice=advice)
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
    from patra.ingest.packs import registry
    from patra.ingest.packs.diff import difference
    from patra.kernel.errors import Invalid

    if first is None:
        loaded, problems, _ = _check_pack(Path(what), None)
        if loaded is None:
            _report(problems)
            raise click.exceptions.Exit(5)
        with open_patra(config) as patra:
            before = patra.db.read(lambda tx: registry.read_tree(tx, loaded.pack.source))
        changes = difference(before, loaded.tree)
    else:
        with open_patra(config) as patra:
            old, new = patra.db.read(
                lambda tx: (
                    registry.version_tree(tx, what, first),
                    registry.version_tree(tx, what, second) if second is not None else registry.read_tree(tx, what),
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
@outcome_option
def schema() -> None:
    """Print the JSON Schema of the pack format, for editors."""
    from patra.ingest.reference import pack_schema

    show(pack_schema(), as_json=True)


@click.group(cls=Group)
def spec() -> None:
    """Show the settings that a plan would get, and where each comes from."""


@spec.command("show")
@trigger_options
@click.option("--all", "everything", is_flag=True, help="Values that the platform gives, too.")
@config_option
@json_option
def show_spec(config: str | None, as_json: bool, everything: bool, **said: Any) -> None:
    """Compile a snapshot and show each value with its origin: the level, the file and the line it comes from."""
    from patra.ingest.packs import registry
    from patra.ingest.packs.provenance import with_origins
    from patra.ingest.packs.spec import encode_spec
    from patra.ingest.planning.planner import Planner

    with open_patra(config) as patra:
        trigger = trigger_of(patra.clock.now(), **said)
        compiled = Planner(patra.db, patra.clock).compile(trigger)
        loaded = patra.db.read(lambda tx: registry.read_pack(tx, trigger.source))
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
