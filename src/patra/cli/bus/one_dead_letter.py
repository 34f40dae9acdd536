"""One dead letter whole: as JSON for programs, and for people what failed, beside an event that did not."""

from typing import TYPE_CHECKING, Any

import click

from patra.cli.bus.common import bus_in
from patra.cli.terminal.options import table
from patra.cli.terminal.wrapping import say

if TYPE_CHECKING:
    from patra.app.wiring import Patra
    from patra.bus.consuming.dead_letter import DeadLetter


def whole_letter(patra: "Patra", letter: "DeadLetter") -> dict[str, Any]:
    """Every field, the envelope, the violations of the contract, and the last event that the group handled."""
    import msgspec

    from patra.bus.catalogue.registered_types import shown_types
    from patra.bus.consuming.dead_letter import violations
    from patra.kernel.clock import format_instant
    from patra.kernel.safety.redact import redact

    bus = bus_in(patra)
    catalogue = shown_types(bus.catalogue, patra.db.read(bus.registered_elsewhere))
    fields: dict[str, Any] = msgspec.to_builtins(letter)
    told = {k: format_instant(v) if k.endswith("_at") and v is not None else v for k, v in fields.items()}
    written = {k: redact(v) for k, v in told.items() if k in {"error_detail", "traceback", "close_reason"}}
    return {
        **told,
        **written,
        "envelope": redact(msgspec.json.decode(letter.envelope)),
        **_beside(patra, letter),
        "violations": redact([msgspec.to_builtins(v) for v in violations(catalogue, letter)]),
    }


def _beside(patra: "Patra", letter: "DeadLetter") -> dict[str, Any]:
    """The last event of its type that the group handled, and what the dead letters of the cause share."""
    import msgspec

    from patra.bus.last_handled import comparison
    from patra.kernel.clock import format_instant

    found = patra.db.read(lambda tx: comparison(tx, letter))
    last = None if found.last_handled is None else msgspec.structs.asdict(found.last_handled)
    if last is not None:
        last |= {name: format_instant(last[name]) for name in ("published_at", "handled_at")}
    shared = [msgspec.structs.asdict(one) for one in found.shared]
    return {"last_handled": last, "shared": shared, "compared": {"letters": found.letters, "handled": found.handled}}


def print_letter(whole: dict[str, Any]) -> None:
    """For a terminal. `--json` has every field."""
    group, event_id, envelope = whole["group"], whole["event_id"], whole["envelope"]
    rows = [
        ["group", group],
        ["event_id", event_id],
        ["type", f"{whole['event_type']} {whole['event_version']}"],
        ["producer", whole["producer"]],
        ["tenant", whole["tenant_id"]],
        ["key", envelope.get("idempotency_key")],
        ["state", whole["state"]],
        ["error", f"{whole['error_code']}: {whole['error_detail']}"],
        ["attempts", whole["attempts"]],
        ["last failed", whole["last_failed_at"]],
        ["replays", whole["replay_count"] or None],
        ["closed", whole["close_reason"]],
        ["payload", envelope.get("payload")],
    ]
    last = whole["last_handled"]
    if last is not None:
        rows += [["last handled", last["event_id"]], ["its payload", last["payload"]]]
    table(["", ""], rows, header=False)
    for one in whole["shared"]:
        say(f"differs at {one['path']}: {one['letters']}; in handled events {one['handled']}")
    for one in whole["violations"]:
        say(f"breaks its contract at {one['place']}: {one['detail']}")
    if not whole["violations"]:
        click.echo("the payload of the dead letter keeps its contract")
    if whole["traceback"]:
        click.echo(f"\n{whole['traceback'].rstrip()}\n")
    if whole["state"] == "open":
        click.echo(f"next: patra bus replay {group} {event_id} --confirm {group}")
        click.echo(f"  or: patra bus discard {group} {event_id} --reason WHY")
