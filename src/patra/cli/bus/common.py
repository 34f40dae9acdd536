"""What the bus's commands share: the bus of a store, who acts, and acts with their audit rows."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import click

from patra.cli.terminal.suggestions import nearest

if TYPE_CHECKING:  # imported late, so that --help starts fast
    from patra.app.wiring import Patra
    from patra.bus.bus import Bus
    from patra.kernel.db import Tx

REFUSED = 5


def bus_in(patra: "Patra") -> "Bus":
    from patra.app.components.bus import bus_of

    return bus_of(patra).bus


def who_is(by: str) -> str:
    from patra.app.access.actor import command_line_actor

    return by or command_line_actor().name


def act_audited(patra: "Patra", act: str, subject: str, work: "Callable[[Tx], Any]", by: str, **detail: Any) -> Any:
    """Do an operator's act with its audit row; a refusal is printed and ends the command."""
    from patra.app.access.actor import Actor, Role
    from patra.app.access.audit import audit
    from patra.bus.catalogue.reasons import Reason
    from patra.bus.publishing.envelope import Refused
    from patra.bus.store.groups import names

    def both(tx: "Tx") -> Any:
        done = work(tx)
        if not isinstance(done, Refused):
            audit(tx, Actor(name=by, role=Role.ADMIN), act, subject, detail, patra.clock.now())
        return done

    done = patra.db.run(both)
    if isinstance(done, Refused):
        hint = ""
        match done.code:
            case Reason.GROUP_UNKNOWN if done.place == "/group":
                hint = _hint(done.detail, patra.db.read(names), "`patra bus groups`")
            case Reason.GROUP_UNKNOWN if done.place == "/name":
                endpoints = [name.removeprefix("webhook.") for name in patra.db.read(names) if name[:8] == "webhook."]
                hint = _hint(done.detail, endpoints, "`patra bus webhooks`")
            case Reason.TYPE_UNKNOWN | Reason.STAGE:
                hint = _hint(done.detail, list(bus_in(patra).catalogue.types), "`patra bus catalogue`")
            case _:
                pass
        click.echo(f"patra: {done.code}: {done.detail}{hint}", err=True)
        raise SystemExit(REFUSED)
    return done


def _hint(detail: str, known: Sequence[str], lister: str) -> str:
    """What is meant by the name in a refusal, where it names nothing."""
    word = next((word for word in detail.split() if "." in word), detail.rpartition(" ")[2])
    if word in known:
        return ""
    near = nearest(word, known)
    return f" (did you mean {' or '.join(near)}?)" if near else f"; {lister} lists them"


def ask_confirmation(question: str) -> str:
    """The answer of the user; without a terminal, an error names the option to use instead."""
    import sys

    try:
        return click.prompt(question, default="", show_default=False, err=True)
    except click.Abort:
        if sys.stdin.isatty():
            raise
        raise click.UsageError(
            "there is no terminal to ask for confirmation: pass --confirm with the name of the group"
        ) from None


by_option = click.option("--by", default="", metavar="NAME", help="Who does it; your account when left out.")
