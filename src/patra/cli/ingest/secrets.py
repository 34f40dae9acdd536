"""`patra ingest secret …`: which secrets the pack of a source may read, each act with its row in the audit."""

import re
from typing import TYPE_CHECKING

import click

from patra.cli.terminal.groups import Group
from patra.cli.terminal.options import (
    config_option,
    json_option,
    open_patra,
    outcome_option,
    say_outcome,
    show,
    without_controls,
)

if TYPE_CHECKING:
    from patra.kernel.db import Tx

EPILOG = """\b
Examples:
  patra ingest secret allow mine env:MY_API_KEY --host api.example.org
  patra ingest secret list
  patra ingest secret revoke mine MY_API_KEY
NAME is a reference as packs write it (env:NAME, file:PATH, keyring:SERVICE/USER); a bare name means a variable.
The packs of the distribution read their own documented variables without this, for their own hosts."""


@click.group(cls=Group, epilog=EPILOG)
def secret() -> None:
    """Say which secrets the pack of a source may read."""


def _reference(name: str) -> str:
    from patra.ingest.packs.sections.transport import SECRET_REFERENCE

    text = name if ":" in name else f"env:{name}"
    if not re.match(SECRET_REFERENCE, text):
        raise click.BadParameter(
            f"{name!r} is not a reference; write env:NAME, file:PATH or keyring:SERVICE/USER", param_hint="NAME"
        )
    return text


@secret.command()
@click.argument("source")
@click.argument("name")
@click.option(
    "--host", "hosts", multiple=True, metavar="HOST", help="Only while the pack's hosts are these; repeatable."
)
@config_option
@outcome_option
def allow(source: str, name: str, hosts: tuple[str, ...], config: str | None) -> None:
    """Let the pack of SOURCE read the secret NAME and send it to its hosts."""
    from patra.app.access.actor import command_line_actor
    from patra.app.access.audit import audit
    from patra.ingest.packs import secret_grants

    reference, actor = _reference(name), command_line_actor()
    with open_patra(config, create=True) as patra:
        now = patra.clock.now()

        def work(tx: "Tx") -> None:
            secret_grants.allow(tx, source, reference, hosts, by=actor.name, now=now)
            audit(tx, actor, "ingest.secret_allow", source, {"reference": reference, "hosts": list(hosts)}, now)

        patra.db.run(work)
    where = f" while its hosts are {', '.join(hosts)}" if hosts else ""
    text = without_controls(f"{source} may read {reference}{where}")
    say_outcome(text, source=source, reference=reference, hosts=list(hosts), allowed=True)


@secret.command()
@click.argument("source")
@click.argument("name")
@config_option
@outcome_option
def revoke(source: str, name: str, config: str | None) -> None:
    """Revoke a secret; running processes stop using it with their next task. Exit code 1 when it was not allowed."""
    from patra.app.access.actor import command_line_actor
    from patra.app.access.audit import audit
    from patra.ingest.packs import secret_grants

    reference, actor = _reference(name), command_line_actor()
    with open_patra(config) as patra:
        now = patra.clock.now()

        def work(tx: "Tx") -> bool:
            done = secret_grants.revoke(tx, source, reference, by=actor.name, now=now)
            audit(tx, actor, "ingest.secret_revoke", source, {"reference": reference, "changed": done}, now)
            return done

        done = patra.db.run(work)
    text = f"{source} may no longer read {reference}" if done else f"{reference} was not allowed for {source}"
    say_outcome(text, source=source, reference=reference, allowed=False, changed=done)
    if not done:
        raise click.exceptions.Exit(1)


@secret.command("list")
@click.option("--source", default="", help="Only this source.")
@config_option
@json_option
def show_grants(source: str, config: str | None, as_json: bool) -> None:
    """List what was allowed, by whom and when. No secret is read for it."""
    from patra.ingest.packs import secret_grants
    from patra.kernel.clock import format_instant

    with open_patra(config) as patra:
        found = patra.db.read(lambda tx: secret_grants.grants_of(tx, source))
    rows = [
        {
            "source": one.source,
            "reference": one.reference,
            "hosts": list(one.hosts),
            "allowed": format_instant(one.allowed_at),
            "by": one.allowed_by,
        }
        for one in found
    ]
    show(rows, as_json=as_json)
