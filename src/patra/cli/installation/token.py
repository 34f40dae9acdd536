"""`patra token …`: bearer tokens for the settings or kept in the store, where they expire, rotate and are revoked."""

from typing import TYPE_CHECKING, TypeVar

import click

from patra.cli.terminal.groups import Group
from patra.cli.terminal.options import config_option, json_option, open_patra, outcome_option, say_outcome, show

if TYPE_CHECKING:
    from collections.abc import Callable

    from patra.app.access.tokens import NewToken
    from patra.app.configuration.settings import Settings
    from patra.kernel.db import Tx

T = TypeVar("T")
EPILOG = """\b
Examples:
  patra token new admin --name alice                           # for the settings
  patra token new viewer --name prometheus --engine operations --expires P90D
  patra token new viewer --name partner --app shop             # reads what is of the app shop, and nothing else
  patra token new publisher --name shop-sdk --app shop         # sends events of the app shop (POST /events)
  patra token new publisher --name gateway --producer Gateway --tenant acme
  patra token new publisher --name uploads --group uploads --tenant acme     # takes events over HTTP

\b
The token is shown once and kept nowhere, only its hash, which is of no use to a thief."""

LIST_EPILOG = """\b
Examples:
  patra token list
  patra token list --name partner --json"""
ROTATE_EPILOG = """\b
Examples:
  patra token rotate prometheus
  patra token rotate prometheus --overlap PT1H --expires P90D --json"""
REVOKE_EPILOG = """\b
Examples:
  patra token revoke partner"""


@click.group("token", cls=Group)
def group() -> None:
    """Make, list, rotate and revoke bearer tokens for the API."""


@group.command(epilog=EPILOG)
@click.argument("role", type=click.Choice(["viewer", "operator", "admin", "publisher"]))
@click.option("--name", default="", metavar="NAME", help="Who holds it; the audit names them so.")
@click.option("--store", is_flag=True, help="Keep it in the store instead of the settings; the options below imply it.")
@click.option(
    "--engine",
    "engines",
    multiple=True,
    type=click.Choice(["operations", "attribution", "ingest", "bus", "studio"]),
    help="Only this section of the API; repeatable.",
)
@click.option("--app", default="", metavar="APP", help="Of a viewer or publisher: only this app.")
@click.option("--tenant", "tenants", multiple=True, help="Of a viewer or publisher: only this tenant; repeatable.")
@click.option("--producer", "producers", multiple=True, help="Of a publisher: a module it speaks for; repeatable.")
@click.option(
    "--group", "groups", multiple=True, help="Of a publisher: a consumer group it takes events for; repeatable."
)
@click.option("--expires", default="", metavar="DURATION", help="After which time it ends, such as P90D.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@config_option
def new(
    role: str,
    name: str,
    store: bool,
    engines: tuple[str, ...],
    app: str,
    tenants: tuple[str, ...],
    producers: tuple[str, ...],
    groups: tuple[str, ...],
    expires: str,
    as_json: bool,
    config: str | None,
) -> None:
    """Make a token: for the settings, or kept in the store.

    A viewer reads, an operator also acts (wake, retry, replay), an admin may do everything. A publisher publishes
    events for the producers and tenants, or for the app, that it is bound to, takes events for its groups, and does
    nothing else.

    A token of the store works at once in every running process, may expire, and can be rotated and revoked without a
    restart. Tokens of the store count where tokens are required: web.tokens_required, or any token in the settings.
    """
    if not (store or engines or app or tenants or producers or groups or expires):
        _for_the_settings(role, name, as_json=as_json)
        return
    from patra.app.access.actor import Role, Scope
    from patra.app.access.tokens import add_token
    from patra.app.components.bus_publishers import configured_scopes

    if not name:
        raise click.UsageError("a token of the store needs a --name: it is rotated and revoked by it")
    scope = Scope(engines=engines, app=app, tenants=tenants, producers=producers, groups=groups)
    lifetime = _microseconds(expires, "--expires") if expires else None
    made = _act_audited(
        config,
        "token.new",
        name,
        lambda tx, now, by, settings: add_token(
            tx, name, Role(role), scope, by=by, now=now, lifetime=lifetime, configured=configured_scopes(settings)
        ),
        {"role": role, "scope": str(scope)},
        create=True,
    )
    _print(made, as_json=as_json)


@group.command("list", epilog=LIST_EPILOG)
@click.option("--name", default="", help="Only of this holder.")
@config_option
@json_option
def list_tokens(name: str, config: str | None, as_json: bool) -> None:
    """Every token that the store keeps: its holder, state, scopes and last use. No token can be read from it."""
    from patra.app.access.tokens import tokens

    with open_patra(config) as patra:
        now = patra.clock.now()
        found = patra.db.read(lambda tx: tokens(tx, now, name))
    rows = [
        {
            "name": one.name,
            "id": one.token_id,
            "state": one.state,
            "role": one.role,
            "scope": str(one.scope),
            "created": one.created_at,
            "by": one.created_by,
            "expires": one.expires_at,
            "revoked": one.revoked_at,
            "used": one.used_at,
        }
        for one in found
    ]
    show(rows, as_json=as_json)


@group.command(epilog=ROTATE_EPILOG)
@click.argument("name")
@click.option(
    "--overlap", default="P1D", show_default=True, metavar="DURATION", help="For how long the old token stays in force."
)
@click.option(
    "--expires",
    default="",
    metavar="DURATION",
    help="After which time the new one ends; as long as the old by default.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@config_option
def rotate(name: str, overlap: str, expires: str, as_json: bool, config: str | None) -> None:
    """Give NAME a new token with the same role and scopes; the old one stays in force for a while."""
    from patra.app.access.tokens import rotate_token

    span = _microseconds(overlap, "--overlap")
    lifetime = _microseconds(expires, "--expires") if expires else None
    made = _act_audited(
        config,
        "token.rotate",
        name,
        lambda tx, now, by, _: rotate_token(tx, name, by=by, now=now, overlap=span, lifetime=lifetime),
        {"overlap": overlap},
    )
    _print(made, as_json=as_json)


@group.command(epilog=REVOKE_EPILOG)
@click.argument("name")
@config_option
@outcome_option
def revoke(name: str, config: str | None) -> None:
    """End every token of NAME; running processes refuse them from the next request on."""
    from patra.app.access.tokens import revoke_token

    changed = _act_audited(config, "token.revoke", name, lambda tx, now, _by, _: revoke_token(tx, name, now=now), {})
    say_outcome(f"{changed} {'token' if changed == 1 else 'tokens'} of {name} revoked", name=name, revoked=changed)


def _act_audited(
    config: str | None,
    act: str,
    name: str,
    work: "Callable[[Tx, int, str, Settings], T]",
    detail: dict[str, str],
    *,
    create: bool = False,
) -> "T":
    """Do it and write the audit row in one transaction."""
    from patra.app.access.actor import command_line_actor
    from patra.app.access.audit import audit

    actor = command_line_actor()
    with open_patra(config, create=create) as patra:
        now = patra.clock.now()

        def both(tx: "Tx") -> T:
            result = work(tx, now, actor.name, patra.settings)
            audit(tx, actor, act, name, detail, now)
            return result

        return patra.db.run(both)


def _print(made: "NewToken", *, as_json: bool) -> None:
    import msgspec

    if as_json:
        click.echo(msgspec.json.encode(made).decode())
        return
    click.echo(f"token of {made.name} (shown once, give it to its holder):\n  {made.token}")
    click.echo(f"expires: {made.expires_at or 'never'}")


def _microseconds(text: str, option: str) -> int:
    from patra.kernel.clock import parse_duration
    from patra.kernel.errors import Invalid

    try:
        return parse_duration(text)
    except Invalid as error:
        raise click.BadParameter(f"{error.detail}; {error.advice}", param_hint=option) from None


def _for_the_settings(role: str, name: str, *, as_json: bool) -> None:
    import secrets
    from hashlib import sha256

    import msgspec

    if not name.replace("-", "").replace("_", "").replace(".", "").replace("@", "").isalnum() and name:
        raise click.BadParameter("letters, digits and . _ - @ only", param_hint="--name")
    if role == "publisher" and not name:
        raise click.UsageError("a publisher needs a --name: the settings bind it to producers and tenants by it")
    token = secrets.token_urlsafe(32)
    entry = f"{name}=" * bool(name) + f"sha256:{sha256(token.encode()).hexdigest()}"
    if as_json:
        click.echo(msgspec.json.encode({"token": token, "setting": f"web.{role}_tokens", "entry": entry}).decode())
        return
    click.echo(
        f"""token (shown once, give it to its holder):
  {token}

in the settings file:
  [web]
  {role}_tokens = ["{entry}"]
{_BINDING.format(name=name) if role == "publisher" else ""}
or in the environment:
  PATRA_WEB_{role.upper()}_TOKENS={entry}

then:
{_first_request(role, token)}"""
    )


_BINDING = """
  [bus.publishers."{name}"]          # for whom it publishes; without this table nothing starts
  producers = ["Gateway"]
  tenants = ["example"]
"""


def _first_request(role: str, token: str) -> str:
    """A request that this token may make."""
    if role == "publisher":
        return f"""  patra bus publish --sample task.submitted |
    curl -H 'Authorization: Bearer {token}' -H 'Content-Type: application/json' \\
      --data-binary @- http://127.0.0.1:8642/bus/events"""
    return f"  curl -H 'Authorization: Bearer {token}' http://127.0.0.1:8642/loops"
