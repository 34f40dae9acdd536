"""The registry in the store: packs are loaded in one transaction and read back as they were (ruling I5, ch. 3.7)."""

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Any

import msgspec

from patra.ingest.packs.checks import BUILT_IN, Dictionary
from patra.ingest.packs.compiler import LoadedPack
from patra.ingest.packs.diff import Change, difference
from patra.ingest.packs.merge import Tree
from patra.ingest.packs.problems import Mark, Source, TreePath
from patra.ingest.packs.registry_rows import TABLES, dictionary_rows, rows_of, tree_of
from patra.ingest.packs.schema import Pack
from patra.ingest.packs.yaml.removed_fields import without_removed_fields
from patra.ingest.vocabulary.reasons import Reason
from patra.kernel.canonical import fingerprint
from patra.kernel.db import Queries, Statement, Tx
from patra.kernel.db.queries import statement
from patra.kernel.errors import Invalid, Permanent

Q = Queries.load("patra.ingest")


class RegistryEntry(msgspec.Struct, frozen=True, kw_only=True):
    """What loading a pack did: nothing (`changes` empty), or a new version."""

    source: str
    version_no: int
    pack_version: str
    pack_hash: str
    changes: tuple[Change, ...]
    first: bool


class PackVersion(msgspec.Struct, frozen=True, kw_only=True):
    """A pack as it was loaded at some time."""

    version_no: int
    pack_version: str
    pack_hash: str
    file_name: str
    loaded_at: int
    loaded_by: str


def load(tx: Tx, packs: Sequence[LoadedPack], *, by: str, now: int) -> list[RegistryEntry]:
    """Write packs that passed their checks into the registry; one that is there already changes nothing."""
    seed_dictionary(tx)
    return [_load(tx, pack, by, now) for pack in packs]


def _load(tx: Tx, loaded: LoadedPack, by: str, now: int) -> RegistryEntry:
    source = loaded.pack.source
    known = tx.fetch_dicts(Q["registry_source"], {"source": source})
    before = _readable(tx, source) if known else None
    if known and known[0]["pack_hash"] == loaded.hash and before == loaded.tree:
        return RegistryEntry(
            source=source,
            version_no=known[0]["version_no"],
            pack_version=loaded.pack.version,
            pack_hash=loaded.hash,
            changes=(),
            first=False,
        )
    version_no = keep_version(tx, loaded, by=by, now=now)
    created_at = known[0]["created_at"] if known else now
    rows = rows_of(loaded.tree, pack_hash=loaded.hash, version_no=version_no, created_at=created_at, now=now)
    for table in TABLES:
        tx.execute(_of_source("DELETE FROM", table), {"source": source})
        tx.insert(table, rows[table])
    return RegistryEntry(
        source=source,
        version_no=version_no,
        pack_version=loaded.pack.version,
        pack_hash=loaded.hash,
        changes=tuple(difference(before, loaded.tree)),
        first=before is None,
    )


def keep_version(tx: Tx, loaded: LoadedPack, *, by: str, now: int) -> int:
    """Keep a pack as the next version of its source, without putting it in force; gives the version's number."""
    source = loaded.pack.source
    last = tx.fetch_one(Q["last_pack_version"], {"source": source})
    version_no = ((last[0] if last else None) or 0) + 1
    tx.insert(
        "reg_pack",
        [
            {
                "provenance_code": source,
                "version_no": version_no,
                "pack_version": loaded.pack.version,
                "pack_hash": loaded.hash,
                "file_name": loaded.source.file,
                "document": msgspec.json.encode(loaded.tree).decode(),
                "marks": _marks_text(loaded.source),
                "loaded_at": now,
                "loaded_by": by,
            }
        ],
    )
    return version_no


def version_pack(tx: Tx, source: str, version_no: int) -> LoadedPack | None:
    """A version ready to be compiled, whether or not it is in force."""
    row = tx.fetch_one(Q["pack_version"], {"source": source, "version_no": version_no})
    if row is None:
        return None
    try:
        tree: Tree = without_removed_fields(msgspec.json.decode(row[4]))
        pack = msgspec.convert(tree, Pack)
    except (msgspec.MsgspecError, KeyError, TypeError) as error:
        raise _broken_tables(source, error) from error
    return LoadedPack(tree=tree, pack=pack, hash=fingerprint(tree), source=Source(row[3], _marks(row[5])))


def _readable(tx: Tx, source: str) -> Tree | None:
    """What is there, if it can be read: loading a pack repairs a registry that cannot."""
    try:
        return read_tree(tx, source)
    except Permanent:
        return None


def read_tree(tx: Tx, source: str) -> Tree | None:
    """What the registry says about a source, as a pack's tree."""
    rows: dict[str, list[dict[str, Any]]] = {
        table: tx.fetch_dicts(_of_source("SELECT * FROM", table), {"source": source}) for table in TABLES
    }
    if not rows["reg_provenance"]:
        return None
    try:
        return without_removed_fields(tree_of(rows))
    except (msgspec.MsgspecError, KeyError, TypeError) as error:
        raise _broken_tables(source, error) from error


def read_pack(tx: Tx, source: str) -> LoadedPack | None:
    """A source ready to be compiled, with the places of the file that it was loaded from."""
    tree = read_tree(tx, source)
    if tree is None:
        return None
    found = tx.fetch_one(Q["registry_source"], {"source": source})
    version = found[6] if found else 0
    row = tx.fetch_one(Q["pack_version"], {"source": source, "version_no": version})
    places = Source(row[3], _marks(row[5])) if row else Source()
    try:
        pack = msgspec.convert(tree, Pack)
    except msgspec.ValidationError as error:
        raise _broken_tables(source, error) from error
    return LoadedPack(tree=tree, pack=pack, hash=fingerprint(tree), source=places)


def _broken_tables(source: str, error: Exception) -> Permanent:
    """The tables were edited by hand."""
    return Permanent("i_registry_broken", f"the registry of {source} cannot be read ({error}); load its pack again")


def versions(tx: Tx, source: str) -> list[PackVersion]:
    """Every version of a pack that was loaded, the oldest first."""
    return [
        PackVersion(version_no=n, pack_version=v, pack_hash=h, file_name=f, loaded_at=at, loaded_by=by)
        for n, v, h, f, at, by in tx.fetch(Q["pack_versions"], {"source": source})
    ]


def version_tree(tx: Tx, source: str, version_no: int) -> Tree | None:
    """The tree of a version, as it was loaded."""
    row = tx.fetch_one(Q["pack_version"], {"source": source, "version_no": version_no})
    return msgspec.json.decode(row[4]) if row else None


def unknown_source(tx: Tx, source: str) -> Invalid:
    """What is said where no such source is loaded; the nearest one is named."""
    near = get_close_matches(source, [row["provenance_code"] for row in sources(tx)], 1)
    advice = f"{f'did you mean {near[0]}? ' if near else ''}`patra ingest sources` lists those that are loaded"
    return Invalid(Reason.SOURCE_UNKNOWN, f"{Reason.SOURCE_UNKNOWN.text}: {source}", advice=advice)


def sources(tx: Tx) -> list[dict[str, Any]]:
    """Every source with its version and how much it has."""
    return tx.fetch_dicts(Q["registry_sources"])


def stamp(tx: Tx, source: str) -> list[Any] | None:
    """What changes when a pack is loaded or a code is turned off; None where there is no pack, or one is on trial."""
    row = tx.fetch_one(Q["registry_stamp"], {"source": source})
    if row is None or row[-1]:
        return None
    return [*row[:-1], sorted(f"{kind}/{item}/{on}" for kind, item, on in tx.fetch(Q["dictionary"]))]


def seed_dictionary(tx: Tx) -> None:
    """Add what the dictionary does not have yet; what is there, enabled or not, stays as it is."""
    keys = {
        "sys_dict_type": ("type_code",),
        "sys_dict_item": ("type_code", "item_code"),
        "sys_dict_item_alias": ("type_code", "alias_code"),
    }
    for table, rows in dictionary_rows().items():
        tx.insert_absent(table, rows, key=keys[table])


def dictionary(tx: Tx) -> Dictionary:
    """The codes that may be used: those of the store that are not turned off, and those that it does not have yet.

    A release brings new codes, and the store gets them when a pack is loaded: until then they are in force, too.
    """
    found = {code: set(items) for code, items in BUILT_IN.items()}
    for type_code, item_code, enabled in tx.fetch(Q["dictionary"]):
        items = found.setdefault(type_code, set())
        items.add(item_code) if enabled else items.discard(item_code)
    return {code: frozenset(items) for code, items in found.items()}


def _of_source(verb: str, table: str) -> Statement:
    return statement(f"{verb} {table}", f"{verb} {table} WHERE provenance_code = :source")


def _marks_text(source: Source) -> str:
    return msgspec.json.encode([[list(path), mark.line, mark.column] for path, mark in source.marks.items()]).decode()


def _marks(text: str) -> Mapping[TreePath, Mark]:
    return {tuple(path): Mark(line, column) for path, line, column in msgspec.json.decode(text)}
