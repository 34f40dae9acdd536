"""The bus as modules use it: publish in the caller's transaction, declare consumers, join them to a store.

bus = Bus(load(), clock)

@bus.consumer("job.succeeded", group="composer", versions=">=1,<2")
def on_job(tx: Tx, event: Event) -> None: ...

db.run(lambda tx: bus.publish(tx, bus.envelope("run.created", payload, tenant_id=…, …)))
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, TypeVar

from patra.bus import publish as rules
from patra.bus.catalogue import Catalogue
from patra.bus.consumer import Batch, Consumer, Kind, Long, Single, declared, parse_versions
from patra.bus.delivery import Subscription
from patra.bus.envelope import Envelope, Refused
from patra.bus.evolution import Objection, decode_release, encode_release, objections, release
from patra.bus.publish import Candidate, Outcome, Publication, Published
from patra.bus.store import deliveries, events, groups
from patra.bus.versions import Version, VersionRange
from patra.kernel.clock import SECOND, Clock
from patra.kernel.db import Tx
from patra.kernel.errors import ConfigInvalid
from patra.kernel.ids import new_id
from patra.kernel.telemetry import counter

S = TypeVar("S", bound=Single)
B = TypeVar("B", bound=Batch)
L = TypeVar("L", bound=Long)

PUBLISHED = counter(
    "patra_bus_published_total",
    "Events published, by type and result (new, duplicate, refused).",
    "event_type",
    "result",
)


class Sender(Protocol):
    """How committed events leave for the groups: at once into their lines, or through a broker."""

    def send(
        self,
        tx: Tx,
        routes: events.Routing,
        publications: Sequence[Publication],
        seqs: dict[tuple[bytes, int], int],
        now: int,
    ) -> None: ...


class Direct:
    """The store itself is the transport: the lines of all groups are filled in the publisher's own transaction."""

    def send(
        self,
        tx: Tx,
        routes: events.Routing,
        publications: Sequence[Publication],
        seqs: dict[tuple[bytes, int], int],
        now: int,
    ) -> None:
        events.fan_out(tx, routes, publications, seqs, now)


class Bus:
    """Contracts, consumers and the way to the store. It holds no connection and no thread."""

    def __init__(
        self,
        catalogue: Catalogue,
        clock: Clock,
        sender: Sender | None = None,
        *,
        wake: Callable[[], None] | None = None,
    ) -> None:
        self.catalogue = catalogue
        self.clock = clock
        self.consumers: list[Consumer] = []
        self._sender = sender or Direct()
        self._wake = wake  # called when something was published: who waits in this process need not hear of it

    # ---- publishing

    def envelope(
        self,
        event_type: str,
        payload: dict[str, Any],
        *,
        tenant_id: str,
        project_id: str,
        trace_id: str,
        correlation_id: str,
        idempotency_key: str,
        causation_id: str | None = None,
        version: str | None = None,
        occurred_at: int | None = None,
    ) -> Envelope:
        """A new envelope for a type of the catalogue: its producer, its current version, now, a new id."""
        kind = self.catalogue.types[event_type]
        current = kind.contracts[max(kind.contracts)].version
        return Envelope(
            event_id=new_id(),
            event_type=event_type,
            event_version=version or str(current),
            producer=kind.producer,
            tenant_id=tenant_id,
            project_id=project_id,
            trace_id=trace_id,
            correlation_id=correlation_id,
            causation_id=causation_id,
            idempotency_key=idempotency_key,
            occurred_at=self.clock.now() if occurred_at is None else occurred_at,
            payload=payload,
        )

    def publish(self, tx: Tx, envelope: Envelope, *renditions: Envelope, publisher: str | None = None) -> Outcome:
        """Publish one event, with its renditions in other majors that are still in use, if there are any (B4)."""
        return self.publish_many(tx, [envelope, *renditions], publisher=publisher)[0]

    def publish_many(self, tx: Tx, envelopes: Sequence[Envelope], *, publisher: str | None = None) -> list[Outcome]:
        """Publish a set: one look-up and one insert a table. Each event is answered for itself, in its place.

        Envelopes of one type and idempotency key in different majors are renditions of one event.
        """
        now = self.clock.now()
        outcomes: dict[int, Outcome] = {}
        candidates: list[Candidate] = []
        for index, envelope in enumerate(envelopes):
            match rules.examine(self.catalogue, envelope, publisher, index):
                case Candidate() as candidate:
                    candidates.append(candidate)
                case Refused() as refused:
                    outcomes[index] = refused
        gathered = rules.gather(candidates)
        outcomes |= gathered.refused
        for publication, outcome in self._written(tx, gathered.publications, now):
            for candidate in publication.renditions:
                outcomes[candidate.index] = outcome
        for candidate, first in gathered.repeats:
            outcomes[candidate.index] = rules.repeated(candidate, first, outcomes[first.index])
        refused = [(envelopes[i], o) for i, o in outcomes.items() if isinstance(o, Refused)]
        if refused:
            events.record_refusals(tx, refused, now)
        self._count(envelopes, outcomes)
        return [outcomes[index] for index in range(len(envelopes))]

    def refuse(self, tx: Tx, unread: Sequence[tuple[Envelope, Refused]]) -> None:
        """Leave a row for what could not be read as an envelope, with whatever of it is legible (A4)."""
        events.record_refusals(tx, unread, self.clock.now())
        self._count([one for one, _ in unread], dict(enumerate(refused for _, refused in unread)))

    def _count(self, envelopes: Sequence[Envelope], outcomes: Mapping[int, Outcome]) -> None:
        results = Counter([(envelopes[i].event_type, _result(outcome)) for i, outcome in outcomes.items()])
        for (name, result), count in results.items():
            PUBLISHED.labels(name if name in self.catalogue.types else "unknown", result).inc(count)

    def _written(self, tx: Tx, publications: Sequence[Publication], now: int) -> list[tuple[Publication, Outcome]]:
        if not publications:
            return []
        routes = events.routing(tx, rules.types_of(publications))
        held = [p for p in publications if p.renditions[0].kind.name in routes.frozen]
        free = [p for p in publications if p.renditions[0].kind.name not in routes.frozen]
        seqs = events.insert(tx, free, now)
        fresh: list[Publication] = []
        stale: list[Publication] = list(held)
        torn: list[int] = []
        if len(seqs) == sum(len(p.renditions) for p in free):
            fresh, free = free, []  # all of them are new
        for publication in free:
            got = [seqs.get((publication.identity, c.major)) for c in publication.renditions]
            if None not in got:
                fresh.append(publication)
                continue
            stale.append(publication)
            torn += [seq for seq in got if seq is not None]
        if torn:
            events.remove(tx, torn)
        answers: list[tuple[Publication, Outcome]] = [(p, Published(p.event_id)) for p in fresh]
        if stale:
            known = events.known(tx, [p.identity for p in stale])
            for publication in stale:
                before = known.get(publication.identity)
                frozen = publication.renditions[0].kind.name in routes.frozen
                if before is None and not frozen:
                    answers.append((publication, rules.reused(publication.event_id)))
                else:
                    answers.append((publication, rules.decide(publication, before, routes.frozen)))
        if fresh:
            self._sender.send(tx, routes, fresh, seqs, now)
            if self._wake is not None:
                tx.after_commit(self._wake)
        return answers

    # ---- consuming

    def consumer(
        self,
        event_type: str,
        *,
        group: str,
        versions: str = ">=1",
        concurrency: int | None = None,
        from_beginning: bool = False,
    ) -> Callable[[S], S]:
        """Declare a handler of single events: `handle(tx, event)`."""
        return self._declare(Kind.SINGLE, event_type, group, versions, concurrency, from_beginning)

    def batch_consumer(
        self,
        event_type: str,
        *,
        group: str,
        versions: str = ">=1",
        concurrency: int | None = None,
        from_beginning: bool = False,
    ) -> Callable[[B], B]:
        """Declare a handler of sets: `handle(tx, events)`."""
        return self._declare(Kind.BATCH, event_type, group, versions, concurrency, from_beginning)

    def long_consumer(
        self,
        event_type: str,
        *,
        group: str,
        versions: str = ">=1",
        concurrency: int | None = 1,
        lease: int = 60 * SECOND,
        from_beginning: bool = False,
    ) -> Callable[[L], L]:
        """Declare a handler of long work: `work(event, hold) -> finish(tx) | None`, under a lease, not a time-out."""
        return self._declare(Kind.LONG, event_type, group, versions, concurrency, from_beginning, lease)

    def _declare(
        self,
        kind: Kind,
        event_type: str,
        group: str,
        versions: str,
        concurrency: int | None,
        from_beginning: bool,
        lease: int = 60 * SECOND,
    ) -> Callable[[Any], Any]:
        def declare(handler: Any) -> Any:
            self.add(
                Consumer(
                    event_type=event_type,
                    group=group,
                    versions=parse_versions(versions, f"consumer {group}/{event_type}"),
                    kind=kind,
                    handler=handler,
                    concurrency=concurrency,
                    lease=lease,
                    from_beginning=from_beginning,
                )
            )
            return handler

        return declare

    def add(self, consumer: Consumer) -> None:
        """Declare a consumer that was built elsewhere."""
        self.consumers.append(declared(self.catalogue, consumer, self.consumers))

    def groups(self) -> list[str]:
        return sorted({consumer.group for consumer in self.consumers})

    def handler(self, group: str, event_type: str, version: Version) -> Consumer | None:
        """The consumer of a group for an event, if this process has one."""
        return next((c for c in self.consumers if c.group == group and c.takes(event_type, version)), None)

    # ---- joining a store

    def join(self, tx: Tx) -> None:
        """Write down what the consumers of this process ask for; from here on events are kept for their groups.

        A new subscription begins now, or at the oldest event that is still kept. What was asked for before stays until
        an operator takes it back: another process may still need it.
        """
        now = self.clock.now()
        groups.lock(tx)
        for consumer in sorted(self.consumers, key=self._newest_major, reverse=True):
            # the newest first: of an event in two majors a group that begins at the beginning gets that one, too
            self.subscribe(tx, consumer.group, consumer.event_type, consumer.versions, consumer.from_beginning, now)

    def _newest_major(self, consumer: Consumer) -> int:
        known = self.catalogue.types[consumer.event_type].contracts
        return max(consumer.versions.majors(set(known)), default=0)

    def subscribe(
        self, tx: Tx, group: str, event_type: str, versions: VersionRange, from_beginning: bool, now: int
    ) -> bool:
        """One subscription; gives whether it is new. The caller holds the lock of the routes."""
        found = groups.ensure(tx, group, now)
        if not groups.subscribe(tx, found.group_id, event_type, versions.text, now):
            return False
        if from_beginning:
            for major, contract in sorted(self.catalogue.types[event_type].contracts.items(), reverse=True):
                minors = [m for m in range(contract.version.minor + 1) if Version(major, m) in versions]
                if minors:
                    deliveries.backfill(tx, found.group_id, event_type, major, (minors[0], minors[-1]), now)
        return True

    def routes(self, tx: Tx, types: Sequence[str]) -> list[Subscription]:
        found = events.routing(tx, types)
        return [one for listening in found.subscriptions.values() for one in listening]

    def evolution(self, tx: Tx) -> list[Objection]:
        """Why this catalogue cannot follow on the one that was last in force on the store (B4)."""
        last = groups.last_release(tx)
        if last is None:
            return []
        in_use: dict[str, list[VersionRange]] = {}
        for _, event_type, versions in groups.subscriptions(tx):
            in_use.setdefault(event_type, []).append(versions)
        return objections(decode_release(last), self.catalogue, in_use)

    def adopt(self, tx: Tx) -> None:
        """Put this catalogue in force on the store. Raises ConfigInvalid when it breaks what was released there."""
        groups.lock(tx)
        found = self.evolution(tx)
        if found:
            detail = "; ".join(str(objection) for objection in found)
            raise ConfigInvalid(found[0].code, detail, place="catalogue", advice="see `patra bus catalogue check`")
        now_released = release(self.catalogue)
        groups.record_release(tx, now_released.digest, encode_release(now_released), self.clock.now())


def _result(outcome: Outcome) -> str:
    if isinstance(outcome, Refused):
        return "refused"
    return "duplicate" if outcome.duplicate else "new"
