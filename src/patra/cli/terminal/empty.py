"""What an empty result says: what was looked for, in which store, and what to do next."""

import shlex
from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Any, cast

import click

from patra.cli.terminal.suggestions import did_you_mean, nearest

if TYPE_CHECKING:
    from patra.kernel.db import Tx

ADVICE = {
    "attribution find": "An id must be complete; `patra attribution rejects` lists what was not accepted.",
    "attribution event": "`patra attribution turned-away` lists batches that were not read.",
    "attribution closures": "A closure begins with the first impression, failure or click of a render attempt.",
    "attribution history list": "Nothing was older than `attribution.keep_log_days`, or no place is set.",
    "attribution rejects": "`patra attribution turned-away` lists batches that were not even read.",
    "attribution app list": "`patra attribution app add APP` registers an app and prints its key.",
    "attribution list": "`patra attribution send-sample` sends events to try it with.",
    "attribution rate list": "`patra attribution rate add impression 2500 EUR --from 2026-01-01` adds a price.",
    "attribution refused": "`patra attribution rejects` lists single events that were rejected.",
    "attribution settle": "`patra attribution list billable` lists billable facts, `rejects` what was not accepted.",
    "attribution statement list": "`patra attribution period close PERIOD --app APP` makes a statement.",
    "attribution turned-away": "Every batch that arrived was read; `patra attribution rejects` lists rejected events.",
    "audit": "Acts of operators and commands that change something are listed here.",
    "bus acts": "`patra bus replay-all` and `discard-all` begin such an act.",
    "bus dead-letters": "`--state replaying` lists those under replay, `all` also those closed; "
    "retries are `failing` in `patra bus groups`.",
    "bus freeze": "No event type is frozen.",
    "bus groups": "A group appears when its consumer first runs.",
    "bus stage": "Every event type has one major version, or its newest is in force everywhere.",
    "bus timeline": "`patra bus tail` shows recent events with their ids.",
    "bus webhooks": "`patra bus webhooks add NAME URL TYPE` adds an endpoint.",
    "ingest coverage": "Nothing was read of it yet: `patra ingest run SOURCE ENDPOINT`.",
    "ingest cursor-timeline": "`patra ingest cursors` lists the watermarks that there are.",
    "ingest cursors": "A watermark appears with the first run: `patra ingest run SOURCE ENDPOINT`.",
    "ingest errors": "No batch and no run has failed.",
    "ingest batches": "`patra ingest runs` lists the runs whose batches are kept, `history list` those moved away.",
    "ingest runs": "`patra ingest tasks` shows whether anything waits to be run.",
    "ingest signals": "No record waits to be fetched again.",
    "ingest history list": "Nothing was older than `ingest.keep_history_days` so far.",
    "ingest lineage": "`patra ingest plans`, `tasks` and `runs` list the ids that can be asked for.",
    "ingest plans": "`patra ingest plan SOURCE ENDPOINT` makes one, `patra ingest run` also does its work.",
    "ingest quarantine": "Every record that was read was also taken in.",
    "ingest queue": "`patra ingest plan SOURCE ENDPOINT` puts work into it.",
    "ingest rate": "No source was asked within the last 15 minutes; `patra ingest runs` lists what was read before.",
    "ingest windows": "No window of it was planned: `patra ingest plan SOURCE ENDPOINT`.",
    "ingest records": "`patra ingest coverage SOURCE ENDPOINT` says what was read, and how many records it had.",
    "ingest works": "`patra ingest coverage SOURCE ENDPOINT` says what was read, and how many records it had.",
    "ingest refused": "No trigger was refused.",
    "ingest schedule history": "Schedules fire while `patra up` runs; `patra ingest schedule list` shows which are on.",
    "ingest schedule list": "`patra ingest schedule add SOURCE/NAME ENDPOINT --at 03:00` adds one; packs bring others.",
    "ingest schedules": "Schedules are part of a pack: `patra ingest pack load FILE`.",
    "ingest secret list": "`patra ingest secret allow SOURCE env:NAME` allows a source to read one.",
    "ingest sources": "`patra ingest packs` lists the packs that come with Patra; load one.",
    "ingest tasks": "`patra ingest plans` shows whether anything was planned.",
    "ingest top-errors": "No batch and no run has failed.",
    "outbox": "Everything was delivered.",
    "studio shots": "`patra studio show RUN` says how far the run is; shots are there once it is planned.",
    "token list": "`patra token new ROLE` makes one; tokens of the settings are not listed here.",
    "studio runs": "`patra studio make CHAPTER.txt` makes a film.",
}


def explanation() -> str:
    """The sentences for the command that is running."""
    ctx = click.get_current_context(silent=True)
    if ctx is None:
        return "nothing found"
    path = ctx.command_path.partition(" ")[2]
    store = ctx.find_root().meta.get("patra.store", "")
    said = f"nothing found{f' in {store}' if store else ''}: {' '.join(['patra', path, *_search_terms(ctx)])}"
    advice = _mistaken(ctx, path) or _fill_advice(ADVICE.get(path, ""), ctx)
    return f"{said}\n{advice}" if advice else said


def _fill_advice(advice: str, ctx: click.Context) -> str:
    """The advice for the source and the endpoint that were asked for."""
    for name in ("source", "endpoint"):
        if isinstance(value := ctx.params.get(name), str) and value:
            advice = advice.replace(name.upper(), value)
    return advice


def _mistaken(ctx: click.Context, path: str) -> str:
    """The filters that nothing can pass, since they name what does not exist."""
    found: list[str] = []
    for parameter in ctx.command.params:
        for word in _words(ctx.params.get(parameter.name or "")):
            if not word or (known := _known_names(ctx, path, parameter.name or "")) is None:
                continue
            what, names = known
            if names is not None and word not in names:
                meant = did_you_mean(nearest(word, names)) or (
                    f"Known: {', '.join(sorted(names))}." if names else "There is none yet."
                )
                found.append(f"There is no {what} {word!r}. {meant}")
    return "\n".join(found)


def _words(value: Any) -> list[str]:
    """The texts of an option that may be given once or many times."""
    values: Sequence[Any] = cast("tuple[Any, ...]", value) if isinstance(value, tuple) else [value]
    return [word for word in values if isinstance(word, str)]


def _known_names(ctx: click.Context, path: str, name: str) -> tuple[str, Collection[str] | None] | None:
    """What a filter names, and the names there are; None where it may be anything."""
    match path.partition(" ")[0], name:
        case "attribution", "code":
            from patra.attribution.contract.reasons import Reason

            return "reason code", [one.value for one in Reason]
        case "ingest", "status" if path.rpartition(" ")[2] in {"plans", "tasks", "runs", "quarantine"}:
            return "state", _ingest_states(path.rpartition(" ")[2])
        case "ingest", "source" | "sources" | "named":
            return "source", _in_store(ctx, _ingest_sources)
        case "bus", "group_name":
            return "consumer group", _in_store(ctx, _bus_groups)
        case _:
            return None


def _ingest_states(what: str) -> Collection[str]:
    from patra.ingest.landing.run_state import RunStatus
    from patra.ingest.operations.reads.read_models import QUARANTINE_STATES
    from patra.ingest.planning.states import PlanStatus, TaskStatus

    if what == "quarantine":
        return QUARANTINE_STATES
    return [one.value for one in {"plans": PlanStatus, "tasks": TaskStatus, "runs": RunStatus}[what]]


def _ingest_sources(tx: "Tx") -> Collection[str]:
    from patra.ingest.packs.registry import sources

    return [row["provenance_code"] for row in sources(tx)]


def _bus_groups(tx: "Tx") -> Collection[str]:
    from patra.bus.store.groups import names

    return names(tx)


def _in_store(ctx: click.Context, names: "Callable[[Tx], Collection[str]]") -> Collection[str] | None:
    """Names that the store knows; None where the command opened none."""
    opened: Any = ctx.find_root().meta.get("patra.open")
    if opened is None:
        return None
    with opened() as patra:
        return patra.db.read(names)


def _search_terms(ctx: click.Context) -> list[str]:
    """What narrowed the search, as it is typed: the arguments, and the options that were given."""
    given: list[str] = []
    for parameter in ctx.command.params:
        value: Any = ctx.params.get(parameter.name or "")
        source = ctx.get_parameter_source(parameter.name or "")
        if source is not click.core.ParameterSource.COMMANDLINE or value is True:
            continue
        if parameter.name in {"config", "limit", "as_json"}:
            continue
        for word in _words(value) if isinstance(value, tuple) else [str(value)]:
            given += [max(parameter.opts, key=len)] if isinstance(parameter, click.Option) else []
            given.append(shlex.quote(word))
    return given
