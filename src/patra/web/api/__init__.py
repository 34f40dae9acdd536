"""The endpoints, one file an engine: each exports `routes(patra) -> list[Endpoint]`.

| file or folder | for |
|---|---|
| `operations`, `tokens`, `story` | health, readiness, metrics, loops, the audit; tokens; the timeline of a key |
| `attribution` with `attribution_acts`, `attribution_reads`, `attribution_settlement` | events in; acts, lists, money |
| `rejects/` | rejected events, refused batches, what was turned away |
| `attribution_history` | what has left the store for files |
| `ingest` with `ingest_acts`, `ingest_alerts`, `ingest_plans`, `ingest_reads`, `ingest_replay` | the running side |
| `ingest_packs` | packs and their trials, schedules of one's own |
| `bus/` | events, groups, dead letters, the catalogue |
| `studio/` | runs, films, stills, captions, edits of shots |
"""
