"""CloudEvents as other systems send them: what our envelope asks for beyond CloudEvents is filled in (B1, B7).

An event whose `source` is not one of our producers comes from a sender that knows nothing of Patra:

| attribute | becomes |
|---|---|
| `source` | the producer that the catalogue names for the type; kept as `originsource` |
| `id`, where it is not a UUID of version 7 | a new `event_id`; kept as `originid` |
| `idempotencykey`, absent | `source` and `id`, unique as CloudEvents promise: the same again is a duplicate |
| `eventversion`, absent | the highest live version of the type that is for all: not in stage shadow or dual (B8) |
| `tenantid`, absent | the tenant of the publisher, where it is bound to one |
| `projectid`, absent | `default` |

Whether the publisher may speak for that producer is decided by what it is bound to, as ever.
"""

from collections.abc import Callable, Collection, Mapping
from typing import Any, TypeAlias
from urllib.parse import quote

from patra.bus.catalogue.catalogue import Catalogue, EventType
from patra.bus.publishing.envelope import MAX_NAME_CHARS, is_event_id
from patra.kernel.canonical import sha256_hex

SOURCE = "urn:patra:producer:"
ORIGIN_SOURCE = "originsource"
ORIGIN_ID = "originid"
DEFAULT_PROJECT = "default"
UNKNOWN_PRODUCER = "unknown"

Completion: TypeAlias = Callable[[Mapping[str, Any]], dict[str, Any]]


def completion(
    catalogue: Catalogue,
    tenants: Collection[str] | None,
    majors_not_for_all: Callable[[], Mapping[str, Collection[int]]] = dict,
) -> Completion:
    """Fills in the attributes of events of other senders; `tenants` are those of who hands them in.

    `majors_not_for_all` gives, by type, the new majors that not all groups read yet; it is asked only for a type of
    several live majors.
    """
    tenant = next(iter(tenants)) if tenants is not None and len(tenants) == 1 else None

    def complete_attributes(attributes: Mapping[str, Any]) -> dict[str, Any]:
        given = {name: value for name, value in attributes.items() if value is not None}
        source, identifier, name = given.get("source"), given.get("id"), given.get("type")
        if not isinstance(source, str) or not source or source.startswith(SOURCE):
            return dict(attributes)
        kind = catalogue.types.get(name) if isinstance(name, str) else None
        made: dict[str, Any] = {"projectid": DEFAULT_PROJECT}
        if tenant is not None:
            made["tenantid"] = tenant
        if "eventversion" not in given:  # of a type that is unknown any version will do: that is what is refused
            made |= {"eventversion": "1.0"} if kind is None else _version(kind, majors_not_for_all)
        if isinstance(identifier, str) and identifier:
            made["idempotencykey"] = _key(source, identifier)
        made |= given
        made[ORIGIN_SOURCE] = source
        made["source"] = SOURCE + quote(kind.producer if kind else UNKNOWN_PRODUCER, safe="")
        if isinstance(identifier, str) and not is_event_id(identifier):
            made[ORIGIN_ID] = made.pop("id")
        return made

    return complete_attributes


def _version(kind: EventType, majors_not_for_all: Callable[[], Mapping[str, Collection[int]]]) -> dict[str, str]:
    """None where no version is clear: then the sender is asked for it."""
    majors = set(kind.live)
    if len(majors) > 1:
        majors -= set(majors_not_for_all().get(kind.name, ()))
    return {"eventversion": str(kind.contracts[max(majors)].version)} if majors else {}


def _key(source: str, identifier: str) -> str:
    """Both together, so that no two pairs share a key: the first space ends a URI, which has none in it.

    A source that is not a URI and has a space is hashed behind its length, in a text that begins with a space as no URI
    does. No key in clear is one that was hashed: it has a space in it.
    """
    if " " in source:
        return f"sha256:{sha256_hex(f' {len(source)} {source} {identifier}')}"
    both = f"{source} {identifier}"
    return both if len(both) <= MAX_NAME_CHARS else f"sha256:{sha256_hex(both)}"
