"""`patra attribution app …`: keys of apps."""

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

import click

from patra.cli.terminal.groups import Group
from patra.cli.terminal.options import (
    config_option,
    json_option,
    json_wanted,
    open_patra,
    outcome_option,
    say_outcome,
    show,
)

if TYPE_CHECKING:
    from patra.kernel.db import Tx

T = TypeVar("T")


@click.group("app", cls=Group)
def app_group() -> None:
    """Apps that may send events, and their keys.

    While no app is registered, every app on this machine may send, as long as Patra is on a loopback address
    and neither tokens nor a proxy are configured.
    """


def _act_audited(config: str | None, act: str, app_id: str, work: "Callable[[Tx, int], T]") -> "T":
    """Do it and write the audit row in one transaction."""
    from patra.app.access.actor import command_line_actor
    from patra.app.access.audit import audit

    with open_patra(config, create=act == "add") as patra:
        now = patra.clock.now()

        def both(tx: "Tx") -> "T":
            result = work(tx, now)
            audit(tx, command_line_actor(), f"attribution.app.{act}", app_id, {}, now)
            return result

        return patra.db.run(both)


@app_group.command("add")
@click.argument("app_id", metavar="APP")
@config_option
@outcome_option
def app_add(app_id: str, config: str | None) -> None:
    """Register an app, or give it one more key; the key is printed once and kept as its hash only."""
    from patra.attribution.app_keys import add_key

    key = _act_audited(config, "add", app_id, lambda tx, now: add_key(tx, app_id, now))
    say_outcome(key, app=app_id, key=key)
    if sys.stdout.isatty() and not json_wanted():
        click.echo("send it as `Authorization: Bearer KEY`; from now on batches of every app need a key", err=True)


@app_group.command("rotate")
@click.argument("app_id", metavar="APP")
@config_option
@outcome_option
def app_rotate(app_id: str, config: str | None) -> None:
    """Revoke every key of an app and print a new one."""
    from patra.attribution.app_keys import rotate_key

    key = _act_audited(config, "rotate", app_id, lambda tx, now: rotate_key(tx, app_id, now))
    say_outcome(key, app=app_id, key=key)


@app_group.command("revoke")
@click.argument("app_id", metavar="APP")
@click.option("--key", "key_id", metavar="ID", help="Only the key whose id begins so; all of the app by default.")
@config_option
@outcome_option
def app_revoke(app_id: str, key_id: str | None, config: str | None) -> None:
    """Revoke keys; a process that runs refuses them within two seconds."""
    from patra.attribution.app_keys import revoke_keys

    revoked = _act_audited(config, "revoke", app_id, lambda tx, now: revoke_keys(tx, app_id, now, key_id))
    say_outcome("\n".join(revoked), app=app_id, revoked=list(revoked))


@app_group.command("list")
@config_option
@json_option
def app_list(config: str | None, as_json: bool) -> None:
    """All keys, also revoked ones, by their hash."""
    from patra.attribution.app_keys import app_keys

    with open_patra(config) as patra:
        show(patra.db.read(app_keys), as_json=as_json)
