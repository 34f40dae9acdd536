"""A run and a batch go in, the evidence of what happened comes out, by its keys (ch. 14.9.1); nothing is written."""

from typing import Any

import msgspec

from patra.ingest.records import content_of
from patra.ingest.running_store import Q
from patra.kernel.clock import format_instant
from patra.kernel.db import Database, Tx

_JSON = ("request_digest", "response_digest", "stats", "record_remarks", "checkpoint", "slice_spec")
_SUFFIXES = {"json": "json", "xml": "xml", "html": "html", "plain": "txt"}


def export(db: Database, run_id: str, batch_no: int) -> dict[str, Any] | None:
    """Where it stood, what was asked, what was answered, what became of it, and what it said to the cursor."""

    def read(tx: Tx) -> dict[str, Any] | None:
        found = tx.fetch_dicts(Q["blackbox_batch"], {"run_id": run_id, "batch_no": batch_no})
        if not found:
            return None
        events = tx.fetch_dicts(Q["blackbox_events"], {"run_id": run_id, "batch_no": batch_no})
        digest = found[0]["body_hash"]
        kept = tx.fetch_one(Q["body_get"], {"body_hash": digest}) if digest else None
        body = None if kept is None else {"hash": digest, "keptAt": format_instant(kept[1])}
        return {**_legible(found[0]), "cursorEvents": [_legible(event) for event in events], "body": body}

    return db.read(read)


def kept_body(db: Database, body_hash: str | None) -> bytes | None:
    """The body of an answer as it came, where the installation keeps bodies and this one is still there."""
    if not body_hash:
        return None
    row = db.read(lambda tx: tx.fetch_one(Q["body_get"], {"body_hash": body_hash}))
    return None if row is None else content_of(bytes(row[0]))


def suffix_of(evidence: dict[str, Any]) -> str:
    """What a file with the body is called: `json`, `xml` …, by the type that the provider gave it."""
    kind = str(evidence["response_digest"].get("headerHints", {}).get("content-type", "")).partition(";")[0].lower()
    return next((suffix for mark, suffix in _SUFFIXES.items() if mark in kind), "bin")


def view(db: Database, name: str, params: dict[str, Any]) -> list[dict[str, Any]]:
    """A read-only list for people, by the name of its statement."""
    return [_legible(row) for row in db.read(lambda tx: tx.fetch_dicts(Q[name], params))]


def _legible(row: dict[str, Any]) -> dict[str, Any]:
    """Instants as text, stored JSON as JSON, samples as text."""
    out: dict[str, Any] = {}
    for name, value in row.items():
        if value is not None and isinstance(value, int) and name.endswith(("_at", "_time", "_from", "_to", "_instant")):
            out[name] = format_instant(value)
        elif name in _JSON and isinstance(value, str) and value:
            out[name] = msgspec.json.decode(value)
        elif isinstance(value, bytes):
            out[name] = value.decode("utf-8", "replace")
        else:
            out[name] = value
    return out
