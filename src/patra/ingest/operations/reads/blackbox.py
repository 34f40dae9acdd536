"""Turns a run and a batch into the evidence of what happened, by its keys (ch. 14.9.1); nothing is written."""

from typing import Any

from patra.ingest.landing.records import content_of
from patra.ingest.landing.store import Q
from patra.ingest.operations.reads.legible_rows import legible_row, redacted_row
from patra.ingest.operations.reads.listing import MAX_PAGE_ROWS
from patra.ingest.operations.reads.read_models import read_list
from patra.kernel.clock import format_instant
from patra.kernel.db import Database, Tx
from patra.kernel.safety.redact import redact

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
        return {**legible_row(found[0]), "cursorEvents": [legible_row(event) for event in events], "body": body}

    return db.read(read)


def for_others(evidence: dict[str, Any], exported: dict[str, str]) -> dict[str, Any]:
    """Evidence that is handed on: what people and providers wrote is redacted; keys, windows and cursors stay.

    An id of eleven digits looks like a telephone number: redacted, the evidence would not say what was read.
    """
    events = [redacted_row(event) for event in evidence["cursorEvents"]]
    return {"exported": redact(exported), **redacted_row(evidence), "cursorEvents": events}


def display_batch(db: Database, run_id: str, batch_no: int) -> dict[str, Any] | None:
    """The same for those who look: what people and providers wrote is redacted."""
    found = export(db, run_id, batch_no)
    if found is None:
        return None
    return {**redacted_row(found), "cursorEvents": [redacted_row(event) for event in found["cursorEvents"]]}


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
    """The first rows of a list for people: `view_cursors`, `view_errors` or `view_quarantine` (those that are open)."""
    listing = name.removeprefix("view_")
    wanted: dict[str, Any] = {"source": params.get("source", "")}
    if listing == "quarantine":
        wanted["status"] = "OPEN"
    limit = params.get("limit", MAX_PAGE_ROWS)
    return db.read(lambda tx: read_list(tx, listing, wanted, limit=limit)).rows
