"""Statements as they are kept: their hashes, their chain, and which facts count as stated.

A statement that changed would be handed over wrong, and a fact that is no longer noted as stated would be billed once
more as an adjustment. The facts of the newest statements of an app are hashed again; of older ones, which are ever
more, `statement verify` does it when they are handed over.
"""

from collections.abc import Iterator
from hashlib import sha256
from typing import Any

import msgspec
import zstandard

from patra.attribution.checks.finding import Finding
from patra.attribution.intake.zstd import decompress_body
from patra.attribution.storage.sql import Q
from patra.kernel.canonical import canonical, fingerprint
from patra.kernel.db import Database, Tx
from patra.kernel.errors import NotCanonical, StoreCorrupt

NEWEST_STATEMENTS = 3
"""Statements of each app whose facts are hashed again."""

_Statement = dict[str, Any]


def statement_findings(db: Database) -> Iterator[Finding]:
    """What is wrong with the statements of every app; their facts are read page by page, each in one transaction."""
    chains, findings = db.read(_chains)
    yield from findings
    for app_id, chain in chains.items():
        for number, statement in chain[-NEWEST_STATEMENTS:]:
            if statement is not None and _facts_hash(db, app_id, number) != statement.get("factsHash"):
                yield Finding(check="statement_facts_differ", key=f"{app_id}/{statement.get('period')}")


_Chains = dict[str, list[tuple[int, _Statement | None]]]
"""The statements of each app with their numbers, the oldest first; None of one that is not what its hash says."""


def _chains(tx: Tx) -> tuple[_Chains, list[Finding]]:
    chains: _Chains = {}
    findings: list[Finding] = []
    stated: dict[str, int] = {}
    for app_id, number, kept_hash, body in tx.fetch(Q["every_statement"]):
        chain, statement = chains.setdefault(app_id, []), _sound(bytes(body), kept_hash)
        last, before = chain[-1] if chain else (0, None)
        previous = before["hash"] if before is not None else None
        if statement is None or (statement["appId"], statement["number"]) != (app_id, number):
            findings.append(Finding(check="statement_differs", key=f"{app_id}, statement {number}"))
            statement = None
        elif number != last + 1 or (previous != statement["previousHash"] and (before or not chain)):
            findings.append(Finding(check="statement_does_not_follow", key=f"{app_id}/{statement['period']}"))
        if statement is not None:
            stated[app_id] = stated.get(app_id, 0) + statement["impressions"] + statement["clicks"]
        chain.append((number, statement))
    noted: dict[str, int] = dict(tx.fetch(Q["stated_by_app"]))
    whole = {app_id for app_id, chain in chains.items() if all(one is not None for _, one in chain)}
    for app_id in sorted((whole | noted.keys()) - (chains.keys() - whole)):
        if noted.get(app_id, 0) != stated.get(app_id, 0):
            key = f"{app_id}: {noted.get(app_id, 0)} instead of {stated.get(app_id, 0)}"
            findings.append(Finding(check="stated_facts_differ", key=key))
    return chains, findings


def _sound(body: bytes, kept_hash: str) -> _Statement | None:
    """A statement that is what its hash says, and whose hash is the one that it is found by."""
    try:
        statement: _Statement = msgspec.json.decode(body, type=dict[str, Any])
        is_sound = statement.get("hash") == kept_hash == fingerprint({**statement, "hash": ""})
    except (msgspec.MsgspecError, UnicodeDecodeError, NotCanonical):
        return None
    return statement if is_sound else None


def _facts_hash(db: Database, app_id: str, number: int) -> str:
    """The hash of the facts of a statement; empty where they cannot be read."""
    hashed, page, separator = sha256(b"["), 0, b""
    try:
        while found := db.read(
            lambda tx, page=page: tx.fetch(Q["statement_page"], _statement_query(app_id, number, page))
        ):
            for fact in msgspec.json.decode(decompress_body(bytes(found[0][0])), type=list[Any]):
                hashed.update(separator + canonical(fact))
                separator = b","
            page += 1
    except (msgspec.MsgspecError, UnicodeDecodeError, zstandard.ZstdError, NotCanonical, StoreCorrupt):
        return ""
    hashed.update(b"]")
    return hashed.hexdigest()


def _statement_query(app_id: str, number: int, page: int) -> dict[str, Any]:
    return {"app_id": app_id, "number": number, "page": page}
