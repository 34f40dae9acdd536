"""Turns the fields of an event into every key that is derived from them (§3.8.12, §3.8.17, §3.8.29, F7).

Keys are built, never guessed (A3): sha256 in lower-case hex over UTF-8, fields joined by `|`, `NA` for what is absent.
"""

from collections.abc import Sequence
from hashlib import sha256

from patra.attribution.contract.event_types import NA
from patra.attribution.contract.versions import CURRENT, VERSIONS

DEDUP_VERSION = "f_dedup_v1"
HALF_DIGEST_BYTES = 16
"""Bytes of a sha256 that stand for it in the store."""


def semantic_digest(values: Sequence[str]) -> str:
    """`semanticPayloadDigest`: the listed fields of the type, joined by `|`."""
    return sha256("|".join(values).encode()).hexdigest()


def computed_key(
    app_id: str,
    event_type: str,
    request: str,
    attempt: str,
    opportunity: str,
    reference: str | None,
    render: str | None,
    digest: str,
) -> bytes:
    """`computedKey` as its 32 bytes."""
    text = f"{app_id}|{event_type}|{request}|{attempt}|{opportunity}|{reference or NA}|{render or NA}|{digest}"
    return sha256(text.encode()).digest()


def client_idempotency_key(app_id: str, idempotency_key: str) -> str:
    return f"{DEDUP_VERSION}:client_idempotency:{app_id}|{idempotency_key}"


def client_event_key(app_id: str, batch_id: str, event_id: str) -> str:
    """`eventIdScoped` of the default scope, `batch_scoped`."""
    return f"{DEDUP_VERSION}:client_event_id:{app_id}|{batch_id}|{event_id}"


def global_event_key(app_id: str, event_id: str) -> str:
    return f"{DEDUP_VERSION}:client_event_id:{app_id}|global|{event_id}"


def computed_dedup_key(computed: bytes) -> str:
    return f"{DEDUP_VERSION}:computed:{computed.hex()}"


def key_source(dedup: str) -> str:
    """The `keySource` of a `canonicalDedupKey`: client_idempotency, client_event_id or computed."""
    return dedup.split(":", 2)[1]


def in_cycle(dedup: str, cycle: int) -> str:
    """The dedup key as F7's keys use it: from the second cycle on with `#n` appended (F9)."""
    return dedup if cycle == 1 else f"{dedup}#{cycle}"


def server_event_key(dedup: str, cycle: int) -> str:
    """`serverEventKey`, which is also the `sourceEventId`."""
    return f"fe_{_hex32(in_cycle(dedup, cycle))}"


def server_event_key_without_dedup(app_id: str, batch_id: str, index: int) -> str:
    """The `serverEventKey` of an event that was rejected before it had a dedup key."""
    return f"fe_{_hex32(f'{app_id}|{batch_id}|{index}')}"


def closure_key(reference: str, render: str) -> str:
    return f"{reference}|{render}"


def billing_key(reference: str, render: str, billable_type: str) -> str:
    return f"{reference}|{render}|{billable_type}"


def billable_fact_id(billing: str) -> str:
    return f"bf_{_hex32(billing)}"


def attribution_key(attribution_type: str, dedup: str, cycle: int) -> str:
    return f"{attribution_type}|{in_cycle(dedup, cycle)}"


def attribution_fact_id(attribution: str) -> str:
    return f"af_{_hex32(attribution)}"


def audit_key(source_event_id: str, action: str, reason: str) -> str:
    """What a decision audit is keyed by (F20); also its `payloadKey`."""
    return f"{source_event_id}|{action}|{reason}"


def archive_version(versions: int, issue: int = 1) -> str:
    """`archiveContractVersion` of a record; one that an operator issued again has `.r2`, `.r3` … appended (F26)."""
    archive = VERSIONS[versions].archiveContractVersion
    return archive if issue == 1 else f"{archive}.r{issue}"


def record_key(record_type: str, payload_key: str, dedup: str | None, versions: int = CURRENT, issue: int = 1) -> str:
    """`recordKey` (§3.8.29): the same record has the same key however often it is sent."""
    archive = archive_version(versions, issue)
    return sha256(f"{record_type}|{payload_key}|{dedup or NA}|{archive}".encode()).hexdigest()


def opportunity(app_id: str, opportunity_key: str) -> bytes:
    """What stands for an opportunity of an app in the store."""
    return half(f"{app_id}|{opportunity_key}")


def half(text: str) -> bytes:
    """The first half of a key's sha256: what stands for it in the store, as the kernel's `key16`."""
    return sha256(text.encode()).digest()[:HALF_DIGEST_BYTES]


def _hex32(text: str) -> str:
    return sha256(text.encode()).hexdigest()[:32]
