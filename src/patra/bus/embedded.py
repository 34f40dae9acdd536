"""The bus in a program of your own: open a store, declare contracts, publish, consume. `from patra import Bus`.

bus = Bus.open("sqlite:///shop.db")
bus.declare("order.placed", OrderPlaced, producer="Shop", example=OrderPlaced(order_id="o1", cents=500))

@bus.consume("order.placed", group="mailer")
def mail(tx, event): ...

bus.publish("order.placed", OrderPlaced(order_id="o2", cents=900), tenant="acme", key="o2")
bus.run_until_idle()     # or bus.start(), bus.close()
"""

import logging
import threading
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self, TypedDict, TypeVar, Unpack, cast

import msgspec

from patra.bus.bus import Bus as Core
from patra.bus.catalogue.catalogue import Catalogue, EventType, load, parse
from patra.bus.catalogue.reasons import Reason
from patra.bus.catalogue.type_schema import plain_payload, type_schema
from patra.bus.consuming.consumer import HandlerFailure, require_plain_function
from patra.bus.dispatch.dispatcher import Dispatcher
from patra.bus.dispatch.long_worker import LongWorker
from patra.bus.publishing.dual_publishing import Translate
from patra.bus.publishing.envelope import DELIVER_AT, Refused
from patra.bus.publishing.publisher_tokens import Publisher
from patra.bus.runtime import BusEngine, Duty
from patra.bus.store import events
from patra.kernel.clock import SECOND, Clock, SystemClock, format_instant
from patra.kernel.db import Database, Tx, migrate, open_database
from patra.kernel.errors import ConfigInvalid, Permanent, count_phrase
from patra.kernel.ids import new_id
from patra.kernel.safety.redact import redact_text
from patra.kernel.safety.untrusted_text import without_controls
from patra.kernel.telemetry import get_logger

log = get_logger()
LOG = logging.getLogger("patra.bus")
"""Of failures of the program's own handlers: the program decides by `logging` where they go, by default to stderr."""

H = TypeVar("H", bound=Callable[..., Any])
T = TypeVar("T")
PACKAGES = ("patra.kernel", "patra.bus")
RETRY_SECONDS = 1.0  # after an error at a loop's edge


class NatsOptions(TypedDict, total=False):
    """The broker, where there is one; see `BusEngine`."""

    nats_url: str
    credentials: str
    replicas: int


class EventRefused(Permanent):
    """The bus did not take an event; `refused` says why, with the place in the envelope."""

    def __init__(self, refused: Refused) -> None:
        told = "; ".join(f"{one.place}: {one.detail}" for one in (refused, *refused.others))
        super().__init__(refused.code.value, told)
        self.refused = refused


class HandlersFailed(Permanent):
    """Handlers raised while `run_until_idle` ran; `failures` has each, with its traceback."""

    def __init__(self, failures: Sequence[HandlerFailure]) -> None:
        first = failures[0]
        ends = "a dead letter" if first.due_at is None else f"comes back at {format_instant(first.due_at)}"
        more = f" (and {len(failures) - 1} more)" if len(failures) > 1 else ""
        detail = f"{first.group} on {first.event_type} {first.event_id}, try {first.attempt}, {ends}{more}"
        super().__init__(first.trouble.code, f"{detail}: {first.trouble.detail}\n{first.trouble.traceback}")
        self.failures = tuple(failures)


class Bus:
    """Contracts and consumers are declared first; the first publish or run puts them in force on the store."""

    def __init__(
        self, db: Database, clock: Clock, types: Iterable[EventType] = (), **nats: Unpack[NatsOptions]
    ) -> None:
        self.db = db
        self.clock = clock
        self._types = {kind.name: kind for kind in types}
        self._versions: dict[str, list[dict[str, Any]]] = {}  # of types that were declared here
        self._declarations: list[Callable[[Core], object]] = []
        self._nats = nats
        self._engine: BusEngine | None = None
        self._building = threading.Lock()
        self._threads: list[threading.Thread] = []
        self._stop = threading.Event()

    @classmethod
    def open(
        cls,
        url: str,
        *,
        contracts: Iterable[str | Path] = (),
        built_in: bool = False,
        clock: Clock | None = None,
        nats_url: str = "",
        nats_credentials: str = "",
        nats_replicas: int = 1,
    ) -> Self:
        """The bus on a store, whose tables are made where they are missing.

        `contracts` are folders of YAML contracts; `built_in` adds those that come with Patra. Programs and a Patra may
        share a store with different types: each leaves those of the others as they are. `nats_credentials` is the text
        of a credentials file or an nkey's seed, `nats_replicas` on how many servers of a cluster the stream is kept.
        """
        db = open_database(url)
        migrate(db, list(PACKAGES))
        known = load([Path(folder) for folder in contracts], built_in=built_in)
        nats = NatsOptions(nats_url=nats_url, credentials=nats_credentials, replicas=nats_replicas)
        return cls(db, clock or SystemClock(), known.types.values(), **nats)

    def declare(
        self,
        event_type: str,
        payload: type[Any],
        *,
        producer: str,
        example: Any,
        version: str = "1.0",
        status: Literal["current", "retiring", "retired"] = "current",
        **more: Any,
    ) -> None:
        """A contract from a type that msgspec or pydantic can describe; `more` as in a contract file (`retry` …).

        Declared again with a later major version, a type has both: the earlier one is retiring, unless it is retired.
        """
        made = {
            "version": version,
            "status": status,
            "schema": type_schema(payload),
            "examples": [plain_payload(example)],
        }
        earlier = self._versions.get(event_type, [])
        versions = [{**one, "status": "retiring"} if one["status"] == "current" else one for one in earlier] + [made]
        file = {
            "type": event_type,
            "title": event_type,
            "description": (payload.__doc__ or event_type).strip(),
            "producer": producer,
            "versions": versions,
            **more,
        }
        self._add(parse(msgspec.json.encode(file).decode(), event_type), another_version=bool(earlier))
        self._versions[event_type] = versions

    def declare_file(self, path: str | Path) -> None:
        """A contract from a YAML file."""
        self._add(parse(Path(path).read_text("utf-8"), Path(path).name))

    def _add(self, kind: EventType, *, another_version: bool = False) -> None:
        if self._engine is not None or (kind.name in self._types and not another_version):
            detail = "contracts are declared once, before the first publish or run"
            raise ConfigInvalid(Reason.CATALOGUE_INVALID, detail, place=kind.name)
        self._types[kind.name] = kind

    def consume(
        self, event_type: str, *, group: str, kind: Literal["single", "batch", "long"] = "single", **more: Any
    ) -> Callable[[H], H]:
        """Declare a handler: `handle(tx, event)`, a batch `handle(tx, events)`, long `work(event, hold) -> finish`."""

        def declare(handler: H) -> H:
            place = f"consumer {group}/{event_type}"
            require_plain_function(handler, place)
            if self._threads:
                detail = "consumers are declared before `bus.start()`: no thread would handle their events"
                raise ConfigInvalid(Reason.CATALOGUE_INVALID, detail, place=place)

            def declaration(core: Core) -> object:
                chosen = {"single": core.consumer, "batch": core.batch_consumer, "long": core.long_consumer}[kind]
                return cast("Any", chosen)(event_type, group=group, **more)(handler)

            if self._engine is not None:
                declaration(self._engine.bus)
                self._join(self._engine.bus)
            self._declarations.append(declaration)
            return handler

        return declare

    def translate(self, event_type: str, *, given: int, made: int) -> Callable[[Translate], Translate]:
        """Declare how a payload of one major version becomes another: what is published in one is in both."""

        def declare(translate: Translate) -> Translate:
            def declaration(core: Core) -> object:
                return core.translations.add(event_type, given, made, translate)

            if self._engine is not None:
                declaration(self._engine.bus)
            self._declarations.append(declaration)
            return translate

        return declare

    def publish(
        self,
        event_type: str,
        payload: Any,
        *,
        tenant: str,
        key: str,
        project: str = "default",
        trace: str = "",
        correlation: str = "",
        causation: str | None = None,
        version: str | None = None,
        publisher: Publisher | str | None = None,
        deliver_at: datetime | None = None,
        tx: Tx | None = None,
    ) -> str:
        """Publish an event; gives its id, or that of the first when `key` was used before. Raises EventRefused.

        With `tx` it is published if, and only if, that transaction commits; begin it by `transaction`, or `prepare` the
        bus before. Ids, time and trace are filled in. With `deliver_at` no group handles it before that time.
        `version` is that of the payload, such as "1.0"; the newest when left out.
        """
        if tx is not None and self._engine is None:
            detail = (
                "the bus is not prepared: begin the transaction by `bus.transaction`, or call `bus.prepare()` before"
            )
            raise ConfigInvalid(Reason.CATALOGUE_INVALID, detail, place=event_type)
        core = self.engine.bus
        if event_type not in core.catalogue.types:
            unknown = Refused(
                code=Reason.TYPE_UNKNOWN, place="/event_type", detail=f"the catalogue has no {event_type}"
            )
            raise EventRefused(unknown)
        made = core.envelope(
            event_type,
            plain_payload(payload),
            tenant_id=tenant,
            project_id=project,
            trace_id=trace or new_id(),
            correlation_id=correlation or trace or key,
            causation_id=causation,
            idempotency_key=key,
            version=version,
        )
        if deliver_at is not None:
            made = msgspec.structs.replace(made, extensions={DELIVER_AT: format_instant(_instant(deliver_at))})
        if tx is not None:
            outcome = core.publish(tx, made, publisher=publisher)
        else:
            outcome = self.db.run(lambda own: core.publish(own, made, publisher=publisher))
        if isinstance(outcome, Refused):
            raise EventRefused(outcome)
        return outcome.event_id

    def transaction(self, work: Callable[[Tx], T]) -> T:
        """Run `work(tx)` in one transaction; it is run again when it loses a race."""
        self.prepare()
        return self.db.run(work)

    def prepare(self) -> None:
        """Put contracts and consumers in force on the store, where that has not happened yet."""
        _ = self.engine

    @property
    def engine(self) -> BusEngine:
        """The engine below, built and put in force on the store when it is first needed."""
        if self._engine is None:
            with self._building:  # several threads may publish first
                self._engine = self._engine or self._build_engine()
        return self._engine

    def _build_engine(self) -> BusEngine:
        made = BusEngine(self.db, self.clock, Catalogue(dict(self._types)), **self._nats)
        for declaration in self._declarations:
            declaration(made.bus)
        made.adopt()
        self._join(made.bus)
        return made

    def _join(self, core: Core) -> None:
        """Subscribe the groups, and warn of events that a new group will not get: the producer may have run first."""
        for consumer in self.db.run(core.join):
            asked = consumer.event_type
            if self.db.read(partial(events.page_before, event_type=asked, limit=1)).events:
                LOG.warning(
                    "group %s is new and gets events published from now on, not the earlier ones of %s; "
                    "to include them, `patra bus groups forget %s`, then subscribe with from_beginning=True",
                    consumer.group,
                    asked,
                    consumer.group,
                )

    def run_until_idle(self, *, raise_failures: bool = True) -> int:
        """Handle everything that is due now, in this thread; gives how many events were handled. For tests and scripts.

        Raises HandlersFailed at the end when a handler failed; with `raise_failures=False` a warning says how many did.
        What failed and waits for its retry is not due: set the clock forward (`ManualClock`) and run again. Over NATS
        it first sends what this store has published, and takes what is on the stream.
        """
        handled = 0
        core = self.engine.bus
        failures: list[HandlerFailure] = []
        before, core.on_failure = core.on_failure, failures.append
        workers = {group: LongWorker(self.db, core, group) for group in core.groups()}
        try:
            busy = True
            while busy:
                busy = self.engine.carry()
                for group, worker in workers.items():
                    step = Dispatcher(self.db, core, group, slow_start=False).run_once()
                    long = worker.run_once(1.0 if worker.in_hand else 0.0)
                    handled += step.handled + long.handled
                    busy = busy or step.busy or long.started > 0 or worker.in_hand > 0
        finally:
            core.on_failure = before
            for worker in workers.values():
                worker.close()
        if failures and raise_failures:
            raise HandlersFailed(failures)
        if failures:
            LOG.warning("%s failed; the first: %s", count_phrase(len(failures), "attempt"), _failure_text(failures[0]))
        return handled

    def start(self, *, workers: int = 1) -> None:
        """Handle events in threads of this process, until `close`. What a handler raises is logged as a warning.

        Consumers are declared before. Called again, it changes nothing.
        """
        if self._threads:
            return
        engine = self.engine
        engine.bus.on_failure = _log_failure
        duties = engine.duties() + [d for g in engine.bus.groups() for d in engine.group_duties(g, workers=workers)]
        for duty in duties:
            thread = threading.Thread(target=self._loop, args=(duty,), name=duty.name, daemon=True)
            self._threads.append(thread)
            thread.start()

    def _loop(self, duty: Duty) -> None:
        while not self._stop.is_set():
            try:
                turn = duty.run_once()
                if not getattr(turn, "done", 0):
                    self._stop.wait(duty.every / SECOND)
            except Exception as error:  # noqa: BLE001  the edge of a loop: it goes on when the store is back
                if self._stop.is_set():
                    return
                log.warning("bus_loop_failed", loop=duty.name, error=str(error))
                self._stop.wait(RETRY_SECONDS)

    def close(self) -> None:
        """Stop the threads, return deliveries that are not finished, close the store."""
        self._stop.set()
        if self._engine is not None:
            self._engine.close()
        for thread in self._threads:
            thread.join(5)
        self.db.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()


def _log_failure(failure: HandlerFailure) -> None:
    LOG.warning("%s", _failure_text(failure))


def _failure_text(failure: HandlerFailure) -> str:
    after = "it is a dead letter" if failure.due_at is None else f"it comes back at {format_instant(failure.due_at)}"
    about = f"{failure.group} failed on {failure.event_type} {failure.event_id}, attempt {failure.attempt}"
    error = without_controls(redact_text(f"{failure.trouble.code}: {failure.trouble.detail}"))
    return f"{about}; {after}: {error}"


def _instant(at: datetime) -> int:
    if at.tzinfo is None:
        raise ValueError("a time without its zone: say datetime(…, tzinfo=UTC)")
    return int(at.timestamp() * SECOND)
