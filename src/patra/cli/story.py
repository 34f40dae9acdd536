"""`patra story KEY`: everything that happened to a key, across all engines."""

import shlex
import sys
from collections.abc import Sequence
from itertools import groupby
from typing import TYPE_CHECKING

import click

from patra.cli.terminal.options import STORE, config_option, json_option, open_patra, show, table, wide_wanted
from patra.cli.terminal.wrapping import say
from patra.kernel.errors import count_phrase

if TYPE_CHECKING:  # imported late, so that --help starts fast
    from patra.app.story.model import Related, Story, StoryEntry

EPILOG = """\b
Examples:
  patra story batch-17/evt-3                 one event of a batch
  patra story 'resp-7|ra-1'                  a closure, by its closureKey
  patra story 10.1000/182                    a record, by its DOI
  patra story p0123456789abcdef.t000017.r1/3 a batch of a run
  patra story 0190a1b2-… --json | jq '.pending'
  patra story e-1 --kind eventId             where a key stands for several things
Exit codes: 0 found, 1 unknown or ambiguous."""

RECORD_STEPS = frozenset({"record_moved", "decision_audit_recorded"})
WORK_MOVES = frozenset({"plan_moved", "slice_moved", "task_moved", "run_moved"})
WORK_PARTS = frozenset({"slice_cut", "task_created"})
"""Steps of the work of ingest that a story leaves to --wide while all of it goes as it should."""
NORMAL_STATES = frozenset(
    {"DRAFT", "SLICING", "READY", "PENDING", "DISPATCHED", "EXECUTING", "PLANNED", "RUNNING", "SUCCEEDED"}
)
"""Not QUEUED: a task moves there only where a lease ran out, it was deferred, or asked for again."""
OF_WORK = frozenset({"ingest.slice", "ingest.task"})
"""Kinds of key whose story begins with the slice or the task itself."""


@click.command("story", epilog=EPILOG)
@click.argument("key")
@click.option("--kind", default="", metavar="KIND", help="What the key is, such as batchId, ingest.run or event_id.")
@click.option("--limit", type=click.IntRange(1, 500), default=100, show_default=True, help="How many entries.")
@click.option("--after", default="", metavar="PLACE", help="Go on after this place: what `next` of a page says.")
@config_option
@json_option
def command(key: str, kind: str, limit: int, after: str, config: str | None, as_json: bool) -> None:
    """Show what happened to a key of any kind, why, what followed from it, and what is still pending."""
    from patra.app.story.search import story

    with open_patra(config) as patra:
        found = story(patra.db, key, kind=kind, limit=limit, after=after)
    if as_json:
        show(found, as_json=True)
    else:
        print_story(found)
    if found.outcome != "found":
        raise SystemExit(1)


def print_story(found: "Story") -> None:
    match found.outcome:
        case "unknown":
            ctx = click.get_current_context(silent=True)
            store = ctx.find_root().meta.get(STORE) if ctx is not None else None
            say(f"{found.key} was not found{f' in {store}' if store else ''}. It was looked for as")
            for place in found.searched:
                kinds = ", ".join(kind.partition(".")[2] for kind in place.kinds)
                say(f"  {place.engine}: {kinds or 'nothing, by its form it is not a key of this engine'}")
            for line in found.advice:
                say(line)
        case "ambiguous":
            click.echo(f"{found.key} stands for several things:")
            for one in found.candidates:
                say(f"  patra story {shlex.quote(one.key)} --kind {one.kind}    {one.label}")
            for line in found.advice:
                say(line)
        case _:
            _entries(found)


def _entries(found: "Story") -> None:
    click.echo(f"{found.kind} {found.key}")
    if found.verdict:
        say(found.verdict)
    if sys.stdout.isatty():
        told = found.entries if wide_wanted() else _without_bookkeeping(found.entries)
        shown = told if wide_wanted() else _without_work(told, found.kind or "")
        _entries_table([[one.at, one.engine, _text(one)] for one in shown])
        if len(told) < len(found.entries):
            left = count_phrase(len(found.entries) - len(told), "step")
            say(f"and {left} of records that were committed as they should: --wide lists them")
        if len(shown) < len(told):
            left = count_phrase(len(told) - len(shown), "step")
            say(f"and {left} of plans, tasks and runs that went as they should: --wide lists them")
    else:
        for entry in found.entries:
            click.echo(f"{entry.at}  {entry.engine:<11}  {entry.what:<26}  {_text(entry)}")
    if found.next:
        click.echo(f"more: --after '{found.next}'")
    for pending in found.pending:
        say(f"pending  {pending.due or 'waits'}  {pending.engine}  {pending.text}")
    _print_related(found.related)
    for place in found.searched:
        if not place.complete:
            say(f"{place.engine} knows more than is listed here: ask for a related key")
    for line in found.advice:
        say(line)


def _text(entry: "StoryEntry") -> str:
    return f"{entry.text}{f'  [{entry.code}]' if entry.code else ''}"


def _without_bookkeeping(entries: "Sequence[StoryEntry]") -> "Sequence[StoryEntry]":
    """Leave out that the records of decisions, which are listed themselves, were committed; unless one was not."""
    if any(one.state != "committed" for one in entries if one.what in RECORD_STEPS):
        return entries
    return [one for one in entries if one.what not in RECORD_STEPS]


def _without_work(entries: "Sequence[StoryEntry]", kind: str) -> "Sequence[StoryEntry]":
    """Leave out the steps of plans, slices, tasks and runs of ingest; each of one that left the normal way stays."""
    troubled = {
        key for one in entries if one.what in WORK_MOVES and one.state not in NORMAL_STATES for key in _own_keys(one)
    }

    def left_out(one: "StoryEntry") -> bool:
        if one.engine != "ingest" or one.state not in NORMAL_STATES or troubled.intersection(_own_keys(one)):
            return False
        return one.what in WORK_MOVES or (one.what in WORK_PARTS and kind not in OF_WORK)

    return [one for one in entries if not left_out(one)]


def _own_keys(entry: "StoryEntry") -> "set[Related]":
    """The key of the thing itself, which an entry names first."""
    return set(entry.related[:1])


def _entries_table(rows: Sequence[list[str]]) -> None:
    """On a terminal: entries of the same text that follow each other are one row, and one engine needs no column."""
    if wide_wanted():
        table(["when", "engine", "what happened"], rows)
        return
    runs = [list(run) for _, run in groupby(rows, key=lambda row: row[1:])]
    joined = [[*run[0][:2], f"{run[0][2]}{f'  ({len(run)} times)' if len(run) > 1 else ''}"] for run in runs]
    if len({row[1] for row in rows}) > 1:
        table(["when", "engine", "what happened"], joined)
    else:
        table(["when", "what happened"], [[row[0], row[2]] for row in joined])


def _print_related(related: "Sequence[Related]") -> None:
    """Keys to go on with; on a terminal each once, and without those of records and audits, of which there are many."""
    internal = {"attribution.recordKey", "attribution.auditKey"}
    everything = wide_wanted() or not sys.stdout.isatty()
    if not everything:
        first = {(one.kind, one.key): one for one in reversed(related)}
        related = [one for one in related if first[one.kind, one.key] is one]
    shown = [one for one in related if everything or one.kind not in internal]
    for one in shown:
        say(f"related  {one.relation}: {one.kind} {one.key}")
    if len(shown) < len(related):
        say(f"related  {len(related) - len(shown)} keys of records and audits: --wide lists them")
