"""`patra ingest blackbox|replay`: the evidence of a batch, and the same batch again without any effect (ch. 14.9)."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from patra.cli.terminal.options import config_option, json_option, open_patra, outcome_option, say_outcome, show
from patra.cli.terminal.wrapping import say

if TYPE_CHECKING:
    from patra.ingest.operations.replay import Report

REPLAY = """\b
Examples:
  patra ingest errors crossref                    the latest failed batches, with run and number
  patra ingest replay p1f….t000003.r1 4           ask the provider again, as it was asked
  patra ingest replay p1f….t000003.r1 4 --kept    read the kept body again; needs no network
  patra ingest replay p1f….t000003.r1 4 --full --why "TICKET-7"   the way into the store too, undone
Exit code 0 when the answer is the same, 1 when it is not, 5 when there is nothing to replay."""
BLACKBOX = """\b
Examples:
  patra ingest blackbox p1f….t000003.r1 4 --why "TICKET-7"               JSON on standard output
  patra ingest blackbox p1f….t000003.r1 4 --why "TICKET-7" -o evidence   evidence.json, and the body if it was kept
The export is written into the audit; hand it on for as long as `exported.validUntil` says."""
VALID_DAYS = 7  # ch. 14.11


@click.command(epilog=BLACKBOX)
@click.argument("run_id", metavar="RUN")
@click.argument("batch_no", metavar="BATCH", type=click.IntRange(0, 2**31))
@click.option("-o", "--out", type=click.Path(path_type=Path), help="Folder to write evidence.json and the body into.")
@click.option("--why", required=True, help="The reason, for the audit.")
@config_option
@outcome_option
def blackbox(config: str | None, run_id: str, batch_no: int, out: Path | None, why: str) -> int:
    """Export the evidence of one batch: request, answer, counts, cursor events, and the body where it was kept."""
    from patra.app.access.actor import command_line_actor
    from patra.app.access.audit import audit
    from patra.ingest.operations.reads.blackbox import export, for_others, kept_body, suffix_of
    from patra.kernel.clock import DAY, format_instant

    actor = command_line_actor()
    with open_patra(config) as patra:
        evidence = export(patra.db, run_id, batch_no)
        if evidence is None:
            click.echo(f"there is no batch {batch_no} of run {run_id}", err=True)
            return 1
        now = patra.clock.now()
        exported = {
            "by": actor.name,
            "at": format_instant(now),
            "why": why,
            "validUntil": format_instant(now + VALID_DAYS * DAY),
        }
        patra.db.run(lambda tx: audit(tx, actor, "ingest.blackbox", f"{run_id}/{batch_no}", {"why": why}, now))
        body = kept_body(patra.db, evidence["body_hash"])
    evidence = for_others(evidence, exported)
    if out is None:
        show(evidence, as_json=True)
        return 0
    _write(out, evidence, body, suffix_of(evidence))
    return 0


def _write_privately(path: Path, content: bytes) -> None:
    """For its owner alone, also where the file was there with other rights."""
    import os

    handle = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600)
    with os.fdopen(handle, "wb") as file:
        os.fchmod(handle, 0o600)
        file.write(content)


def _write(out: Path, evidence: dict[str, Any], body: bytes | None, suffix: str) -> None:
    import msgspec

    out.mkdir(parents=True, exist_ok=True)
    files = {"evidence.json": msgspec.json.format(msgspec.json.encode(evidence), indent=2) + b"\n"}
    if body is not None:
        files[f"body.{suffix}"] = body
    for name, content in files.items():
        _write_privately(out / name, content)
    said = [f"{out / name}: {len(content)} bytes" for name, content in files.items()]
    said += ["the body was not kept (ingest.keep_bodies)"] if body is None else []
    say_outcome("\n".join(said), files=[str(out / name) for name in files], body_kept=body is not None)


@click.command(epilog=REPLAY)
@click.argument("run_id", metavar="RUN")
@click.argument("batch_no", metavar="BATCH", type=click.IntRange(0, 2**31))
@click.option("--kept", is_flag=True, help="Read the kept body again instead of asking the provider.")
@click.option("--full", is_flag=True, help="Go the way into the store too, in a transaction that is undone.")
@click.option("--why", default="", help="With --full: the reason, for the audit.")
@config_option
@json_option
def replay(config: str | None, run_id: str, batch_no: int, *, kept: bool, full: bool, why: str, as_json: bool) -> int:
    """Repeat one batch and compare; nothing is written, no cursor moves."""
    import threading

    from patra.app.access.actor import command_line_actor
    from patra.app.access.audit import audit
    from patra.app.components.ingest import Ingest
    from patra.ingest.operations.replay import replay as replayed
    from patra.kernel.errors import Invalid
    from patra.kernel.telemetry import get_logger

    if full and not why:
        raise click.UsageError("--full holds rows of the store while it runs: say --why, which is audited")
    stopping, actor = threading.Event(), command_line_actor()
    with open_patra(config) as patra:
        services = patra.engine(Ingest).services
        if full:
            now, act = patra.clock.now(), {"why": why}
            patra.db.run(lambda tx: audit(tx, actor, "ingest.replay.full", f"{run_id}/{batch_no}", act, now))
        found = replayed(
            patra.db,
            services,
            run_id,
            batch_no,
            lambda microseconds: not stopping.wait(microseconds / 1_000_000),
            kept=kept,
            full=full,
        )
        if found is None:
            raise Invalid("batch_missing", f"there is no batch {batch_no} of run {run_id}")
        get_logger().info(
            "ingest_replayed",
            run_id=run_id,
            batch_no=batch_no,
            by=actor.name,
            how=found.how,
            conclusion=found.conclusion.value,
        )
    if as_json:
        show(found, as_json=True)
    else:
        _tell(found)
    return 0 if found.equal else 1


def _tell(found: "Report") -> None:
    say(f"batch {found.batch_no} of {found.run_id}, {found.source} {found.endpoint} {found.operation}")
    say(f"  then {found.happened_at}, now {found.replayed_at} ({found.how})")
    request = found.request
    if "refused" in request:
        click.echo(f"  not sent: {request['refused']}")
    else:
        click.echo(f"\n{request['method']} {request['url']}")
        for line in request["headers"]:
            click.echo(f"  {line}")
        if request["body"]:
            click.echo(f"  {request['body'][:500]}")
    click.echo("")
    _tell_lines(found)
    for name, ids in (("gone since", found.missing_ids), ("new since", found.added_ids)):
        if ids:
            say(f"{name}: {', '.join(ids)}")
    if found.would:
        done = ", ".join(f"{count} {name}" for name, count in found.would.items() if count) or "nothing"
        say(f"taken in now, this would be: {done} (nothing was written)")
    for one in found.written:
        mark = {True: "same", False: "DIFFERS", None: "cannot be compared"}[one.same]
        say(f"  {one.what}: {one.then} then, {one.now} now: {mark} (undone)")
    say(f"\n{found.text}{f' ({found.detail})' if found.detail and not found.equal else ''}")


def _tell_lines(found: "Report") -> None:
    marks = {True: "=", False: "≠", None: "?"}
    width = max(len(one.what) for one in found.compared)
    for one in found.compared:
        note = "  (may differ)" if one.same is False and one.weight == "informative" else ""
        both = _short(one.now) if one.same else f"{_short(one.then)} → {_short(one.now)}"
        click.echo(f"  {marks[one.same]} {one.what:<{width}}  {both}{note}")


def _short(value: Any) -> str:
    text = "none" if value is None else str(value)
    return text if len(text) <= 60 else f"{text[:57]}…"
