"""What the specification fixes: event types with their fields, windows, version anchors, reason codes, key derivation.

| module | for |
|---|---|
| `event_types` | the dictionary: what each type requires, its tier, what of it is hashed (§3.8.5, §3.8.9) |
| `event_fields` | every field of a batch and its events, for schemas and reference pages (§3.8.4, §3.8.5) |
| `windows`, `rules` | the frozen windows (§3.8.14, §3.8.18); the same as one value, which a what-if replaces |
| `keys` | every key that is derived from an event (§3.8.12, §3.8.17, §3.8.29) |
| `versions` | version anchors of output records (§3.8.28) |
| `reasons` | every code that is given, and which of them a client may send the same event again for (F10) |
"""
