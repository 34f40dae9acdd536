"""The literature ingestion platform: packs become plans, plans become tasks, tasks become records.

Folders in the order in which data passes through them; a later one may import an earlier one. The planner and the
executors meet only in the store.

| folder | for |
|---|---|
| `vocabulary/` | codes, reason codes, instants |
| `expressions/` | the expression language of packs |
| `packs/` | the pack format, its checks, the compiler, the registry, the bundled packs |
| `ratelimit/` | permits for requests |
| `planning/` | triggers, windows, slices, quotas, queued tasks |
| `http/` | one request and its response |
| `extraction/` | class of a response, items, pagination, mapping |
| `fetching/` | one page of an endpoint, with resilience |
| `landing/` | records, cursors, evidence, one transaction per batch |
| `execution/` | a task from lease to end |
| `works/` | the common shape: reading, merging, joining, exporting |
| `operations/` | views, alerts, replay, dry run, retention |
| `sql/` | named statements; tables and indexes in `sql/migrations` (ch. 7, 13.3, 13.4) |
| `reference` | reference pages and the JSON Schema of packs |

Rules that several modules carry out:

- security in general (ch. 2.7): secrets in `http.credentials`, redaction in `landing.evidence`, rates and quotas in
  `ratelimit` and `planning.limits`
- order under concurrency (ch. 11.9): `planning.trigger` (partition), `landing.records`, `landing.cursor_store`,
  `kernel.leases`
- no network in the planner (I3): `planning` cannot import `http`; sizes come from `landing.size_report` and are used
  in `planning.slicing.windows`
"""
