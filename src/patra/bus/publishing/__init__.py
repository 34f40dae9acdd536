"""Envelopes, the same as CloudEvents, and the decision whether an event is published.

| module | for |
|---|---|
| `refusal` | why an event is not taken, with all that is wrong with it |
| `submission` | what a sender may leave out is filled in where its events arrive |
| `envelope`, `json_text` | the envelope's fields and forms (C§1); JSON without duplicate keys |
| `cloudevents`, `foreign_cloudevents` | envelopes as CloudEvents and back; CloudEvents of other systems |
| `publish` | published, refused or a duplicate: producer, schema, version, idempotency, freeze (C§3, C§4, C§5) |
| `publisher_tokens` | for which producers and tenants a token may publish (B7) |
| `dual_publishing` | one event in two majors during a rollout (C§4, B8) |
"""
