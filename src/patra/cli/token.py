"""`patra token new ROLE`: a bearer token, its hash, and how to configure it."""

import click

EPILOG = """\b
Examples:
  patra token new admin --name alice
  patra token new viewer --name prometheus --json

\b
The token is shown once and kept nowhere. The settings hold its hash, which is of no use to a thief."""


@click.group("token")
def group() -> None:
    """Make bearer tokens for the API."""


@group.command(epilog=EPILOG)
@click.argument("role", type=click.Choice(["viewer", "operator", "admin"]))
@click.option("--name", default="", metavar="NAME", help="Who holds it; the audit names them so.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def new(role: str, name: str, as_json: bool) -> None:
    """Make a token and say how to configure it.

    A viewer reads, an operator also acts (wake, retry, replay), an admin may do everything.
    """
    import secrets
    from hashlib import sha256

    import msgspec

    if not name.replace("-", "").replace("_", "").replace(".", "").replace("@", "").isalnum() and name:
        raise click.BadParameter("letters, digits and . _ - @ only", param_hint="--name")
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

or in the environment:
  PATRA_WEB_{role.upper()}_TOKENS={entry}

then:
  curl -H 'Authorization: Bearer {token}' http://127.0.0.1:8642/loops"""
    )
