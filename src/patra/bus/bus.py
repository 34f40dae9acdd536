"""The bus as modules use it: publish in the caller's transaction, declare consumers, join them to a store.

bus = Bus(load(), clock)

@bus.consumer("job.succeeded", group="composer", versions=">=1,<2")
def on_job(tx: Tx, event: Event) -> None: ...

db.run(lambda tx: bus.publish(tx, bus.envelope("run.created", payload, tenant_id=…, …)))
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar, Unpack

from patra.bus.adopted_catalogue import Differs, Standing, majors, missing_version, standings
from patra.bus.catalogue.catalogue import Catalogue
from patra.bus.catalogue.evolution import Objection, Release, decode_release, encode_release, objections, release
from patra.bus.catalogue.registered_types import of_catalogue, of_other_programs, with_others
from patra.bus.catalogue.versions import Version, VersionRange
from patra.bus.consuming.consumer import (
    Batch,
    Consumer,
    ConsumerOptions,
    HandlerFailure,
    Kind,
    Long,
    Single,
    declare_consumer,
    in_process,
)
from patra.bus.consuming.freeze import Freeze
from patra.bus.consuming.recipients import Subscription
from patra.bus.consuming.version_stages import begin_stages, end_stages, hasty
from patra.bus.publishing import publish as rules
from patra.bus.publishing.dual_publishing import Translations
from patra.bus.publishing.envelope import Envelope, Refused
from patra.bus.publishing.publish import Candidate, Outcome, Publication, Published
from patra.bus.publishing.publisher_tokens import Publisher, module_publisher
from patra.bus.store import dead_letters, deliveries, events, groups, stream_control, version_stages
from patra.bus.store.senders import Direct, Sender
from patra.bus.store.stream_control import CatalogueTold, FreezeTold
from patra.kernel.clock import SECOND, Clock
from patra.kernel.db import Tx
from patra.kernel.errors import ConfigInvalid
from patra.kernel.ids import new_id
from patra.kernel.telemetry import counter

S = TypeVar("S", bound=Single)
B = TypeVar("B", bound=Batch)
L = TypeVar("L", bound=Long)

MAX_KNOWN_CATALOGUES = 16
PUBLISHED = counter(
    "patra_bus_published_total",
    "Events published, by type and result (new, duplicate, refused).",
    "event_type",
    "result",
)


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
        self.translations = Translations()
        self._sender = sender or Direct()
        self._standings: dict[str, Mapping[str, Standing]] = {}  # by the digest of an adopted catalogue
        self._adopted_majors: dict[str, Mapping[str, frozenset[int]]] = {}  # by the same digest
        self.on_failure: Callable[[HandlerFailure], None] | None = None  # called for each failure once it is committed
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

    def publish(
        self, tx: Tx, envelope: Envelope, *renditions: Envelope, publisher: Publisher | str | None = None
    ) -> Outcome:
        """Publish one event, with its renditions in other majors that are still in use, if there are any (B4)."""
        return self.publish_many(tx, [envelope, *renditions], publisher=publisher)[0]

    def publish_many(
        self, tx: Tx, envelopes: Sequence[Envelope], *, publisher: Publisher | str | None = None
    ) -> list[Outcome]:
        """Publish a set: one look-up and one insert a table. Each event is answered for itself, in its place.

        Envelopes of one type and idempotency key in different majors are renditions of one event. `publisher` is who
        hands them in (B7), a text the module of that name; without it, the process itself, which may say anything.
        """
        now, asked = self.clock.now(), len(envelopes)
        envelopes = self.translations.complete_versions(self.catalogue, envelopes)
        who = module_publisher(publisher) if isinstance(publisher, str) else publisher
        by = who.name if who else ""
        outcomes: dict[int, Outcome] = {}
        candidates: list[Candidate] = []
        for index, envelope in enumerate(envelopes):
            match rules.examine(self.catalogue, envelope, who, index):
                case Candidate() as candidate:
                    candidates.append(candidate)
                case Refused() as refused:
                    outcomes[index] = refused
        gathered = rules.gather(candidates)
        outcomes |= gathered.refused
        for publication, outcome in self._write_publications(tx, gathered.publications, now, by):
            for candidate in publication.renditions:
                outcomes[candidate.index] = outcome
        for candidate, first in gathered.repeats:
            outcomes[candidate.index] = rules.answer_repeat(candidate, first, outcomes[first.index])
        refused = [(envelopes[i], o) for i, o in outcomes.items() if isinstance(o, Refused)]
        if refused:
            events.record_refusals(tx, refused, now, by)
        answered = {index: outcomes[index] for index in range(asked)}
        self._count(envelopes, answered)
        return list(answered.values())

    def refuse(self, tx: Tx, unread: Sequence[tuple[Envelope, Refused]], *, by: str = "") -> None:
        """Leave a row for what could not be read as an envelope, with whatever of it is legible (A4)."""
        events.record_refusals(tx, unread, self.clock.now(), by)
        self._count([one for one, _ in unread], dict(enumerate(refused for _, refused in unread)))

    def _count(self, envelopes: Sequence[Envelope], outcomes: Mapping[int, Outcome]) -> None:
        results = Counter([(envelopes[i].event_type, _result(outcome)) for i, outcome in outcomes.items()])
        for (name, result), count in results.items():
            PUBLISHED.labels(name if name in self.catalogue.types else "unknown", result).inc(count)

    def _write_publications(
        self, tx: Tx, publications: Sequence[Publication], now: int, by: str
    ) -> list[tuple[Publication, Outcome]]:
        if not publications:
            return []
        routes = events.routing(tx, rules.types_of(publications))
        hindered = self._hindrances(tx, routes, publications)
        held = [p for p in publications if p.renditions[0].kind.name in routes.frozen or p.identity in hindered]
        free = [p for p in publications if p.renditions[0].kind.name not in routes.frozen]
        if hindered:
            free = [p for p in free if p.identity not in hindered]
        seqs = events.insert(tx, free, now, by)
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
            known = events.find_known(tx, [p.identity for p in stale])
            for publication in stale:
                before = known.get(publication.identity)
                frozen = publication.renditions[0].kind.name in routes.frozen
                if before is None and publication.identity in hindered:
                    answers.append((publication, hindered[publication.identity]))
                elif before is None and not frozen:
                    answers.append((publication, rules.refuse_reuse(publication.event_id)))
                else:
                    answers.append((publication, rules.decide(publication, before, routes.frozen)))
        if fresh:
            self._sender.send(tx, routes, fresh, seqs, now)
            if self._wake is not None:
                tx.after_commit(self._wake)
        return answers

    def _hindrances(self, tx: Tx, routes: events.Routing, publications: Sequence[Publication]) -> dict[bytes, Refused]:
        """What this process may not publish since its catalogue is not the adopted one, and why (B8)."""
        views = [self._standing(tx, digest) for digest in (routes.adopted, *routes.remote) if digest]
        found: dict[bytes, Refused] = {}
        for differing in filter(None, views):
            found |= self._behind(differing, routes, publications)
        return found

    def _behind(
        self, differing: Mapping[str, Standing], routes: events.Routing, publications: Sequence[Publication]
    ) -> dict[bytes, Refused]:
        found: dict[bytes, Refused] = {}
        for publication in publications:
            name = publication.renditions[0].kind.name
            match differing.get(name):
                case None:
                    pass
                case Refused() as refused:
                    found[publication.identity] = refused
                case Differs() as standing:
                    versions = [Version(c.major, c.minor) for c in publication.renditions]
                    listening = routes.subscriptions.get(name, ())
                    broker = not isinstance(self._sender, Direct)
                    if refused := missing_version(standing, name, versions, listening, broker=broker):
                        found[publication.identity] = refused
        return found

    def _standing(self, tx: Tx, digest: str) -> Mapping[str, Standing]:
        """How this catalogue stands to an adopted one; read and compared once for each that is adopted."""
        if (known := self._standings.get(digest)) is None:
            content = stream_control.catalogue(tx, digest) or groups.last_release(tx)
            known = {} if content is None else standings(decode_release(content), self.catalogue)
            if len(self._standings) >= MAX_KNOWN_CATALOGUES:
                self._standings.clear()
            self._standings[digest] = known
        return known

    def tell_freeze(self, tx: Tx, freeze: Freeze) -> None:
        """Announce to stores that share the stream that a type was frozen or thawed: their publishers follow (B5)."""
        here = stream_control.store_id(tx)
        reason = f"{freeze.reason} (on store {here})" if freeze.is_frozen else ""
        told = FreezeTold(store_id=here, event_type=freeze.event_type, reason=reason, since=freeze.since)
        self._sender.tell(tx, told, self.clock.now())

    def announce(self, tx: Tx) -> None:
        """Announce the whole state of this store to those that share the stream: the stream is new to it."""
        for freeze in dead_letters.freezes_ever(tx):
            self.tell_freeze(tx, freeze)
        if (adopted := groups.release_in_force(tx)) is not None:
            digest, content = adopted
            here = stream_control.store_id(tx)
            self._sender.tell(tx, CatalogueTold(store_id=here, digest=digest, content=content), self.clock.now())

    def adopted_majors(self, tx: Tx, digest: str) -> Mapping[str, frozenset[int]]:
        """The major versions of each type in the adopted catalogue with this digest."""
        if digest and digest not in self._adopted_majors:
            content = groups.last_release(tx)
            self._adopted_majors = {digest: majors(decode_release(content)) if content else {}}
        return self._adopted_majors.get(digest, {})

    # ---- consuming

    def consumer(
        self, event_type: str, *, group: str, versions: str = ">=1", **options: Unpack[ConsumerOptions]
    ) -> Callable[[S], S]:
        """Declare a handler of single events: `handle(tx, event)`."""
        return self._declare(Kind.SINGLE, event_type, group, versions, **options)

    def batch_consumer(
        self, event_type: str, *, group: str, versions: str = ">=1", **options: Unpack[ConsumerOptions]
    ) -> Callable[[B], B]:
        """Declare a handler of sets: `handle(tx, events)`."""
        return self._declare(Kind.BATCH, event_type, group, versions, **options)

    def long_consumer(
        self,
        event_type: str,
        *,
        group: str,
        versions: str = ">=1",
        lease: int = 60 * SECOND,
        **options: Unpack[ConsumerOptions],
    ) -> Callable[[L], L]:
        """Declare a handler of long work: `work(event, hold) -> finish(tx) | None`, under a lease, not a time-out.

        One at a time, unless `concurrency` says otherwise.
        """
        return self._declare(Kind.LONG, event_type, group, versions, **{"concurrency": 1, **options, "lease": lease})

    def _declare(self, kind: Kind, event_type: str, group: str, versions: str, **options: Any) -> Callable[[Any], Any]:
        def declare(handler: Any) -> Any:
            self.add(in_process(self.catalogue, kind, event_type, group, versions, handler, options))
            return handler

        return declare

    def add(self, consumer: Consumer) -> None:
        """Declare a consumer that was built elsewhere."""
        self.consumers.append(declare_consumer(self.catalogue, consumer, self.consumers))

    def groups(self) -> list[str]:
        return sorted({consumer.group for consumer in self.consumers})

    def handler(self, group: str, event_type: str, version: Version) -> Consumer | None:
        """The consumer of a group for an event, if this process has one."""
        return next((c for c in self.consumers if c.group == group and c.takes(event_type, version)), None)

    # ---- joining a store

    def join(self, tx: Tx) -> list[Consumer]:
        """Write down what the consumers of this process ask for; from here on events are kept for their groups.

        A new subscription begins now, or at the oldest event that is still kept; returns the consumers of those that
        begin now. What was asked for before stays until an operator takes it back: another process may still need it.
        """
        now = self.clock.now()
        groups.lock(tx)
        if not self.evolution(tx):
            self._put_in_force(tx)  # with the first subscription to a new version publishers know of that version (B8)
        # the newest first: of an event in two majors a group that begins at the beginning gets that one, too
        ordered = sorted(self.consumers, key=self._newest_major, reverse=True)
        new = [self.subscribe(tx, c.group, c.event_type, c.versions, c.from_beginning, now) for c in ordered]
        return [c for c, is_new in zip(ordered, new, strict=True) if is_new and not c.from_beginning]

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
        """Why this catalogue cannot follow on the last one, in the types that both have (B4)."""
        last = groups.last_release(tx)
        if last is None:
            return []
        in_use: dict[str, list[VersionRange]] = {}
        for _, event_type, versions in groups.subscriptions(tx):
            in_use.setdefault(event_type, []).append(versions)
        read_types = [one for one in version_stages.find(tx) if one.event_type in in_use]
        return objections(of_catalogue(decode_release(last), self.catalogue), self.catalogue, in_use) + hasty(
            self.catalogue, read_types
        )

    def registered_elsewhere(self, tx: Tx) -> Release:
        """The types that other programs registered on the store, and that this process has no contract of."""
        last = groups.last_release(tx)
        return Release(types={}) if last is None else of_other_programs(decode_release(last), self.catalogue)

    def adopt(self, tx: Tx) -> None:
        """Put this catalogue in force on the store. Raises ConfigInvalid when it breaks what was released there."""
        groups.lock(tx)
        found = self.evolution(tx)
        if found:
            first = f"{found[0].event_type}{found[0].place}: {found[0].detail}"
            detail = "; ".join([first, *(str(objection) for objection in found[1:])])
            raise ConfigInvalid(found[0].code, detail, place="catalogue", advice="see `patra bus catalogue check`")
        self._put_in_force(tx)

    def _put_in_force(self, tx: Tx) -> None:
        content, now = with_others(release(self.catalogue), self.registered_elsewhere(tx)), self.clock.now()
        if (last := groups.last_release(tx)) is not None:
            known = version_stages.find(tx)
            version_stages.put(tx, begin_stages(decode_release(last), self.catalogue, now))
            version_stages.put(tx, end_stages(self.catalogue, known, now))
        if groups.record_release(tx, content.digest, encode_release(content), now):
            here, text = stream_control.store_id(tx), encode_release(content).decode()
            self._sender.tell(tx, CatalogueTold(store_id=here, digest=content.digest, content=text), now)


def _result(outcome: Outcome) -> str:
    if isinstance(outcome, Refused):
        return "refused"
    return "duplicate" if outcome.duplicate else "new"
