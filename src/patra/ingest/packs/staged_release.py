"""A new version of a pack on trial for a share of the plans; compared, then promoted or taken back (ch. 3.5).

Plans keep the snapshot that they were made with, so a promotion or a withdrawal changes plans to come and no others.
Schedules and credentials stay those of the version in force until the new one is promoted.
"""

from hashlib import sha256

import msgspec

from patra.ingest.packs import registry
from patra.ingest.packs.compiler import LoadedPack
from patra.ingest.packs.registry import RegistryEntry
from patra.ingest.vocabulary.reasons import Reason
from patra.kernel.db import Tx
from patra.kernel.errors import Invalid

Q = registry.Q


class Staged(msgspec.Struct, frozen=True, kw_only=True):
    """A version on trial."""

    pack: LoadedPack
    version_no: int
    share: int
    by: str
    at: int


class Results(msgspec.Struct, frozen=True, kw_only=True):
    """The results of plans of one version since the trial began."""

    version: str
    version_no: int
    role: str
    plans: int
    tasks: int
    succeeded: int
    failed: int
    quarantined: int


def stage(tx: Tx, loaded: LoadedPack, share: int, *, by: str, now: int) -> int:
    """Put a version on trial for so many of a hundred plans; gives its number."""
    source = loaded.pack.source
    if not tx.fetch(Q["registry_source"], {"source": source}):
        raise Invalid(Reason.SOURCE_UNKNOWN, f"no version of {source} is loaded", advice="`patra ingest pack load` it")
    version_no = registry.keep_version(tx, loaded, by=by, now=now)
    tx.execute(Q["stage_pack"], rows=[(source, version_no, share, by, now)])
    return version_no


def staged_version(tx: Tx, source: str) -> Staged | None:
    """The version of a source that is on trial."""
    row = tx.fetch_one(Q["stage_of"], {"source": source})
    if row is None:
        return None
    version_no, share, by, at = row
    pack = registry.version_pack(tx, source, version_no)
    return None if pack is None else Staged(pack=pack, version_no=version_no, share=share, by=by, at=at)


def takes_part(found: Staged, what: str) -> bool:
    """Whether a plan is made from the version on trial; the same plan always gets the same answer."""
    return int.from_bytes(sha256(what.encode()).digest()[:8]) % 100 < found.share


def promote(tx: Tx, source: str, *, by: str, now: int, version: int | None = None) -> RegistryEntry:
    """The version on trial is in force for all plans to come; with `version` only if it is the one on trial."""
    found = _known_version(tx, source)
    if version is not None and version != found.version_no:
        raise _other(source, version, found.version_no)
    _end(tx, source, found)
    return registry.load(tx, [found.pack], by=by, now=now)[0]


def roll_back(tx: Tx, source: str) -> Staged:
    """The trial is over; plans to come are made from the version in force."""
    found = _known_version(tx, source)
    _end(tx, source, found)
    return found


def compare(tx: Tx, source: str) -> list[Results]:
    """The results of both versions since the trial began."""
    found = _known_version(tx, source)
    current = registry.read_pack(tx, source)
    current_no = tx.fetch_dicts(Q["registry_source"], {"source": source})[0]["version_no"]
    sides = [("in force", current_no, current), ("on trial", found.version_no, found.pack)]
    return [_results(tx, role, number, pack, found.at) for role, number, pack in sides if pack is not None]


def _results(tx: Tx, role: str, version_no: int, pack: LoadedPack, since: int) -> Results:
    params = {"source": pack.pack.source, "since": since, "mark": f'%"packHash":"{pack.hash}"%'}
    plans, tasks, succeeded, failed = tx.fetch(Q["stage_comparison"], params)[0]
    (quarantined,) = tx.fetch(Q["stage_quarantine"], params)[0]
    return Results(
        version=pack.pack.version,
        version_no=version_no,
        role=role,
        plans=plans,
        tasks=tasks,
        succeeded=succeeded or 0,
        failed=failed or 0,
        quarantined=quarantined,
    )


def _known_version(tx: Tx, source: str) -> Staged:
    found = staged_version(tx, source)
    if found is None:
        if not tx.fetch(Q["registry_source"], {"source": source}):
            raise registry.unknown_source(tx, source)
        raise Invalid(
            Reason.NOT_STAGED, f"no version of {source} is on trial", advice="`patra ingest pack stage FILE` begins one"
        )
    return found


def _end(tx: Tx, source: str, found: Staged) -> None:
    """The trial of just this version is over: another one may have been put on trial since it was read."""
    if not tx.execute(Q["unstage_pack"], {"source": source, "version_no": found.version_no}):
        now = staged_version(tx, source)
        raise _other(source, found.version_no, now.version_no if now is not None else None)


def _other(source: str, wanted: int, found: int | None) -> Invalid:
    is_now = f"no. {found} is" if found is not None else "none is"
    return Invalid(
        Reason.NOT_STAGED,
        f"version no. {wanted} of {source} is not on trial: {is_now}",
        advice=f"`patra ingest pack trial {source}` compares the one that is",
    )
