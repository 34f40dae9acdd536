"""Who publishes, apart from what an envelope claims (B7): bound to the producers and tenants it may speak for."""

import re
from collections.abc import Iterable
from functools import lru_cache

import msgspec

from patra.bus.catalogue.reasons import Reason
from patra.bus.publishing.envelope import Envelope, Refused

ANY = "*"


class Publisher(msgspec.Struct, frozen=True, kw_only=True):
    """An identity that hands events in. `None` stands for any producer or tenant.

    `producers` are the modules whose own events it publishes; `forwards` those whose events it may pass on, marked;
    `groups` are the consumer groups for which it may take events, those of its tenants.
    """

    name: str
    producers: frozenset[str] | None = None
    tenants: frozenset[str] | None = None
    forwards: frozenset[str] | None = None
    groups: frozenset[str] | None = None

    def may_consume(self, group: str) -> bool:
        return self.groups is None or group in self.groups


def publisher(
    name: str,
    *,
    producers: Iterable[str] | None = None,
    tenants: Iterable[str] | None = None,
    forwards: Iterable[str] | None = (),
    groups: Iterable[str] | None = (),
) -> Publisher:
    """A bound identity: names of modules in any spelling; without `producers` it speaks for the module of its name."""
    return Publisher(
        name=name,
        producers=_modules([name] if producers is None else producers),
        tenants=None if tenants is None or ANY in (listed := set(tenants)) else frozenset(listed),
        forwards=_modules(forwards),
        groups=None if groups is None or ANY in (named := set(groups)) else frozenset(named),
    )


@lru_cache(maxsize=1024)
def module_publisher(name: str) -> Publisher:
    """A module of this process: it speaks for itself, to every tenant, and may pass on what others produced."""
    return publisher(name, forwards=None)


def unbound_publisher(name: str) -> Publisher:
    """A publisher that has the store itself, as an administrator does: known by name, bound to nothing."""
    return Publisher(name=name)


def authority_of(who: Publisher, envelope: Envelope) -> Refused | None:
    """Whether an identity may hand in this event: its tenant, its producer, and how it is marked when passed on."""
    if who.tenants is not None and envelope.tenant_id not in who.tenants:
        return Refused(
            code=Reason.PUBLISHER, place="/tenant_id", detail=f"{who.name} does not publish for {envelope.tenant_id}"
        )
    if who.producers is None:
        return None
    producer = module(envelope.producer)
    if not envelope.forwarded_by:
        if producer in who.producers:
            return None
        detail = f"{who.name} passes on an event of {envelope.producer} unsigned"
        return Refused(code=Reason.FORWARD_UNMARKED, place="/forwarded_by", detail=detail)
    if module(envelope.forwarded_by[-1]) not in who.producers:
        detail = f"the last to forward is {who.name}, who is not named last"
        return Refused(code=Reason.FORWARD_UNMARKED, place="/forwarded_by", detail=detail)
    if who.forwards is not None and producer not in who.forwards:
        return Refused(
            code=Reason.PUBLISHER,
            place="/producer",
            detail=f"{who.name} does not forward events of {envelope.producer}",
        )
    return None


@lru_cache(maxsize=4096)
def module(name: str) -> str:
    """`Worker Hub`, `worker-hub` and `worker_hub` are one module: C§5 itself writes it both ways."""
    return re.sub(r"[\s_-]+", "-", name.strip().casefold())


def same_module(one: str, other: str) -> bool:
    return module(one) == module(other)


def _modules(names: Iterable[str] | None) -> frozenset[str] | None:
    if names is None or ANY in (listed := list(names)):
        return None
    return frozenset(module(name) for name in listed)
