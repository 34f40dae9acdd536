"""Which secrets a source's pack may read: those that the installation has allowed, and its own of the distribution.

A pack names its secrets by reference, and says where requests go. The author of a pack could therefore name any
variable or file of the process and send it to a host of their own. So a reference is good for a source only where an
operator has allowed it (`patra ingest secret allow`), or where it is the documented variable of a pack of the
distribution and goes to the hosts of that pack, over TLS and without a proxy. What is not allowed is withheld when a
run wants to read it.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast
from urllib.parse import urlsplit

import msgspec

from patra.ingest.packs import bundled
from patra.ingest.packs.compiler import LoadedPack
from patra.ingest.packs.merge import Tree
from patra.ingest.packs.problems import Problem, Severity
from patra.ingest.packs.sections import Credential
from patra.ingest.packs.spec import Leg, Spec
from patra.ingest.vocabulary.reasons import Reason
from patra.kernel.db import Queries, Tx
from patra.kernel.ids import new_id

Q = Queries.load("patra.ingest")
WITHHELD = "withheld:"
"""Stands before a reference that the source may not read; no kind of reference is called so."""


class Grant(msgspec.Struct, frozen=True, kw_only=True):
    """A reference that a source may read, and the hosts it may be sent to; none named means all of the pack's."""

    source: str
    reference: str
    hosts: tuple[str, ...] = ()
    allowed_by: str = ""
    allowed_at: int = 0


class Destination(msgspec.Struct, frozen=True, kw_only=True):
    """Where the requests of a source go."""

    source: str
    hosts: frozenset[str]
    direct: bool
    """Over TLS and through no proxy: nobody but the host reads them."""


def destination_of(spec: Spec) -> Destination:
    """Where the requests of a snapshot go."""
    legs: list[Leg] = [spec] if spec.detail is None else [spec, spec.detail]
    direct = not any(leg.http.allow_http or leg.http.proxy for leg in legs)
    return Destination(source=spec.provenance_code, hosts=_lower(spec.hosts), direct=direct)


def destination_of_pack(loaded: LoadedPack) -> Destination:
    """Where the requests of a whole pack may go; a base URL that parameters decide may go anywhere."""
    found = dict[str, set[str]]()
    for name, value in _leaves(loaded.tree):
        found.setdefault(name, set()).add(str(value))
    hosts = {*loaded.pack.hosts, *(_host(url) for url in found.get("baseUrl", ()))}
    direct = "True" not in found.get("allowHttp", ()) and "proxy" not in found
    return Destination(source=loaded.pack.source, hosts=_lower(hosts), direct=direct)


def is_allowed(reference: str, destination: Destination, grants: Sequence[Grant]) -> bool:
    """Whether a secret may be read for requests that go there."""
    return _is_documented(reference, destination) or any(
        grant.source == destination.source
        and grant.reference == reference
        and (not grant.hosts or destination.hosts <= _lower(grant.hosts))
        for grant in grants
    )


def withhold(credential: Credential, destination: Destination, grants: Sequence[Grant]) -> Credential:
    """The credential with every reference marked that the source may not read."""
    secrets = {
        name: reference if is_allowed(reference, destination, grants) else f"{WITHHELD}{reference}"
        for name, reference in credential.secrets.items()
    }
    return msgspec.structs.replace(credential, secrets=secrets)


def problems_of(loaded: LoadedPack, grants: Sequence[Grant]) -> list[Problem]:
    """What a pack wants to read and may not: an error, or a warning where it goes on without."""
    destination = destination_of_pack(loaded)
    needed = {auth["credentialRef"] for auth in _auths(loaded.tree) if auth.get("credentialRef") and _needs(auth)}
    readable = {
        credential.pool
        for credential in loaded.pack.credentials.values()
        if all(is_allowed(reference, destination, grants) for reference in credential.secrets.values())
    }
    found: list[Problem] = []
    for code, credential in loaded.pack.credentials.items():
        stands_in = credential.pool is not None and credential.pool in readable
        error = code in needed or (credential.pool in needed and not stands_in)
        severity = Severity.ERROR if error else Severity.WARNING
        without = f"the others of the pool {credential.pool} stand in" if stands_in else "it is read without"
        then = "" if error else f"; until then {without}"
        for name, reference in credential.secrets.items():
            if is_allowed(reference, destination, grants):
                continue
            found.append(
                loaded.source.problem(
                    Reason.SECRET_NOT_ALLOWED,
                    ("credentials", code, "secrets", name),
                    f"{destination.source} may not read {reference} and send it to "
                    f"{', '.join(sorted(destination.hosts))}{then}",
                    f"if that is what you want: patra ingest secret allow {destination.source} {reference}",
                    severity,
                )
            )
    return found


def grants_of(tx: Tx, source: str = "") -> list[Grant]:
    """What is allowed, of one source or of all."""
    return [
        Grant(
            source=row["provenance_code"],
            reference=row["reference"],
            hosts=tuple(msgspec.json.decode(row["hosts"], type=list[str])),
            allowed_by=row["allowed_by"],
            allowed_at=row["allowed_at"],
        )
        for row in tx.fetch_dicts(Q["secret_grants"], {"source": source})
    ]


def allow(tx: Tx, source: str, reference: str, hosts: Sequence[str], *, by: str, now: int) -> Grant:
    """Let a source read a secret; an earlier grant of the same secret is replaced."""
    revoke(tx, source, reference, by=by, now=now)
    row = {"provenance_code": source, "reference": reference, "hosts": msgspec.json.encode(sorted(hosts)).decode()}
    tx.insert("ing_secret_grant", [{"grant_id": new_id(), **row, "allowed_by": by, "allowed_at": now}])
    return Grant(source=source, reference=reference, hosts=tuple(sorted(hosts)), allowed_by=by, allowed_at=now)


def revoke(tx: Tx, source: str, reference: str, *, by: str, now: int) -> bool:
    """Take it back; whether there was anything to take."""
    params = {"source": source, "reference": reference, "by": by, "now": now}
    return tx.execute(Q["secret_grant_revoke"], params) > 0


def revision(tx: Tx) -> tuple[int, int]:
    """Another value whenever anything was allowed or revoked."""
    row = tx.fetch_one(Q["secret_grant_revision"])
    return (0, 0) if row is None else (row[0], row[1])


def _is_documented(reference: str, destination: Destination) -> bool:
    if destination.source not in bundled.names() or not destination.direct:
        return False
    ours = bundled.pack(destination.source).pack
    named = {one for credential in ours.credentials.values() for one in credential.secrets.values()}
    return reference in named and destination.hosts <= _lower(ours.hosts)


def _needs(auth: Mapping[str, Any]) -> bool:
    return not auth.get("optional", False)


def _auths(tree: Any) -> Iterator[Mapping[str, Any]]:
    """Every `auth` section of a pack, as it is written."""
    if isinstance(tree, dict):
        for name, value in cast("Tree", tree).items():
            if name == "auth" and isinstance(value, dict):
                yield cast("Tree", value)
            yield from _auths(value)


def _leaves(tree: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(tree, dict):
        for name, value in cast("Tree", tree).items():
            if isinstance(value, dict):
                yield from _leaves(value)
            elif value is not None:
                yield name, value


def _host(url: str) -> str:
    return url if "${" in url else urlsplit(url).netloc


def _lower(hosts: Sequence[str] | set[str] | frozenset[str]) -> frozenset[str]:
    return frozenset(host.lower() for host in hosts)
