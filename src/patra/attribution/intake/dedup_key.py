"""The one key that an event is deduplicated by (§3.8.13): the first of its keys that is legal.

| priority | key | `canonicalDedupKey` after its version | taken when |
|---|---|---|---|
| 1 | `idempotencyKey` | `client_idempotency:appId|idempotencyKey` | it is legal |
| 2 | `eventIdScoped` | `client_event_id:appId|global|eventId` | `eventId` is legal, its scope is `global_unique` |
| 2 | `eventIdScoped` | `client_event_id:appId|batchId|eventId` | `eventId` is legal, its scope is any other |
| 3 | `computedKey` | `computed:` and its hex | neither is legal |

`validate` checks which of them are legal and rejects a `global_unique` that is not verified; `decision/dedup` rejects
a key that was seen with another payload.
"""

from patra.attribution.contract import keys


def dedup_key(
    app_id: str,
    batch_id: str,
    *,
    idempotency_key: str | None,
    event_id: str | None,
    everywhere: bool,
    computed: bytes,
) -> str:
    """The key of highest priority. An id that is not legal is None; `everywhere`: its scope is `global_unique`."""
    if idempotency_key is not None:
        return keys.client_idempotency_key(app_id, idempotency_key)
    if event_id is None:
        return keys.computed_dedup_key(computed)
    if everywhere:
        return keys.global_event_key(app_id, event_id)
    return keys.client_event_key(app_id, batch_id, event_id)
