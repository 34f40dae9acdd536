"""From the bytes of a request to checked events in the order of decision.

| module | for |
|---|---|
| `decompress`, `zstd` | `Content-Encoding`, at most 1 MiB of plain bytes (F11); zstd frames of the log |
| `envelope` | the batch of `POST /events`, or its refusal (§3.8.4, F11) |
| `validate`, `validate_fast` | the checks of one event, quarantine (§3.8.2, §3.8.5, §3.8.10, F2, F19); the quick way |
| `dedup_key` | priority of the keys: the one that an event is deduplicated by (§3.8.13) |
| `checked_event`, `identity` | a checked event; whom a decision is about |
| `response_proof` | whether a `responseReference` is proven to be the app's |
| `trusted_clock` | the arrival instant when the machine's clock jumps (F27) |
| `batch`, `parse_worker` | all of it, in the order of F12; in a child process |
| `fair_share` | how much of the intake one app may take |
"""
